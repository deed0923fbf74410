//! Interns places, and maps the device ordinals of a process to the machine's GPUs.

use super::calls::pid_of;
use super::target::Target;
use crate::import::sqlite::scan::NULL;
use crate::model::{LaunchSite, PlaceId};
use rustc_hash::FxHashMap;

/// `globalPid`, `deviceId`, `contextId` and `streamId`, which are columns of all device activity tables.
pub type Key = [i64; 4];

/// Distinct places, numbered in order of first appearance.
pub struct Places<'a> {
    target: &'a Target,
    ids: FxHashMap<(Key, Option<u32>), u32>,
    pub list: Vec<LaunchSite>,
}

impl<'a> Places<'a> {
    pub fn new(target: &'a Target) -> Self {
        Self { target, ids: FxHashMap::default(), list: Vec::new() }
    }

    /// Returns the id of a place.
    pub fn place_id(&mut self, key: Key, thread: Option<u32>) -> PlaceId {
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let id = *self.ids.entry((key, thread)).or_insert(next);
        if id == next {
            let [global, ordinal, context, stream] = key;
            let number = |v: i64| {
                if v == NULL { None } else { u32::try_from(v).ok() }
            };
            let (pid, ordinal) = (pid_of(global), number(ordinal));
            self.list.push(LaunchSite {
                pid,
                device: self.target.gpu_of(pid, ordinal),
                ordinal,
                context: number(context),
                stream: number(stream),
                thread,
            });
        }
        PlaceId(id)
    }
}
