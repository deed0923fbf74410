//! What rows refer to by number: texts, and the queues that launches went to.

use super::facts::Facts;
use super::rows::Rows;
use crate::model::{Place, PlaceId};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// What rows refer to.
pub struct Names {
    texts: Vec<Option<Arc<str>>>,
    pub pid: u32,
    /// Start of the trace: the session's 0, ns since 1970.
    pub zero: i64,
}

impl Names {
    pub fn new(rows: &mut Rows, facts: &Facts) -> Self {
        let mut texts = Vec::new();
        for (id, text) in std::mem::take(&mut rows.strings) {
            let id = id as usize;
            // Numbers count up; a damaged one must not ask for memory.
            if id < (1 << 21) {
                if texts.len() <= id {
                    texts.resize(id + 1, None);
                }
                texts[id] = Some(Arc::from(String::from_utf8_lossy(&text)));
            }
        }
        Self { texts, pid: facts.number("pid").unwrap_or(0), zero: facts.number("started").unwrap_or(0) }
    }

    pub fn get(&self, id: u32) -> Option<Arc<str>> {
        self.texts.get(id as usize)?.clone()
    }

    /// A time as the session has it.
    pub fn time(&self, ns: i64) -> i64 {
        if ns == 0 { 0 } else { ns.saturating_sub(self.zero) }
    }
}

/// Distinct places, numbered as they are met.
#[derive(Default)]
pub struct Places {
    ids: FxHashMap<[u32; 4], u32>,
    list: Vec<Place>,
}

impl Places {
    /// Of a device's ordinal, context, stream and thread (0 where it is not known).
    pub fn id(&mut self, names: &Names, devices: &[u32], key: [u32; 4]) -> PlaceId {
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let id = *self.ids.entry(key).or_insert(next);
        if id == next {
            let [device, context, stream, thread] = key;
            self.list.push(Place {
                pid: Some(names.pid),
                device: devices.iter().position(|&d| d == device).and_then(|i| u32::try_from(i).ok()),
                ordinal: Some(device),
                context: Some(context),
                stream: Some(stream),
                thread: (thread != 0).then_some(thread),
            });
        }
        PlaceId(id)
    }

    pub fn list(self) -> Vec<Place> {
        self.list
    }
}
