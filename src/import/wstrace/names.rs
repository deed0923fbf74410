//! Lookup tables for the ids in rows: strings, GPUs, and launch sites.

use super::key_values::Facts;
use super::rows::Rows;
use crate::model::{Device, LaunchSite, PlaceId};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Strings, categories and devices of one process.
pub struct Names {
    texts: FxHashMap<u32, Arc<str>>,
    /// String ids by domain and category.
    categories: FxHashMap<(u32, u32), u32>,
    pub pid: u32,
    /// Path of the executable.
    pub executable: Option<Arc<str>>,
    /// Time 0 of the session, which is the start of the first process, ns since 1970.
    pub zero: i64,
    /// Indices into the profile's devices, by device ordinal of the process.
    devices: FxHashMap<u32, u32>,
}

impl Names {
    pub fn new(rows: &mut Rows, facts: &Facts, zero: i64) -> Self {
        let strings = std::mem::take(&mut rows.strings).into_iter();
        let texts = strings.map(|(id, text)| (id, Arc::from(String::from_utf8_lossy(&text)))).collect();
        let categories = rows.categories.iter().map(|&(domain, category, text)| ((domain, category), text)).collect();
        let (pid, executable) = (facts.number("pid").unwrap_or(0), facts.get("executable").map(Arc::from));
        Self { texts, categories, pid, executable, zero, devices: FxHashMap::default() }
    }

    pub fn get(&self, id: u32) -> Option<Arc<str>> {
        self.texts.get(&id).cloned()
    }

    /// Returns the program's name for a category of a domain.
    pub fn category_name(&self, domain: u32, category: u32) -> Option<Arc<str>> {
        self.get(*self.categories.get(&(domain, category))?)
    }

    /// Converts a time to the session clock.
    pub fn session_time(&self, ns: i64) -> i64 {
        if ns == 0 { 0 } else { ns.saturating_sub(self.zero) }
    }

    pub fn device_index(&self, ordinal: u32) -> Option<u32> {
        self.devices.get(&ordinal).copied()
    }
}

/// Merges the GPUs of all processes. Since ordinals depend on `CUDA_VISIBLE_DEVICES`, GPUs are identified by PCI bus
/// id.
pub fn merge_devices(of: &mut [(Names, Vec<Device>)]) -> Vec<Device> {
    let mut out: Vec<Device> = Vec::new();
    // The key is the PCI bus id or, if that is unknown, the ordinal.
    let mut known: FxHashMap<(Option<String>, u32), u32> = FxHashMap::default();
    for (names, seen) in of.iter_mut() {
        for device in seen {
            let number = if device.bus.is_some() { 0 } else { device.id };
            let at = *known.entry((device.bus.clone(), number)).or_insert_with(|| {
                out.push(device.clone());
                u32::try_from(out.len() - 1).unwrap_or(u32::MAX)
            });
            names.devices.insert(device.id, at);
        }
    }
    let mut ids: Vec<u32> = out.iter().map(|d| d.id).collect();
    ids.sort_unstable();
    ids.dedup();
    if ids.len() < out.len() {
        // Renumber the GPUs, because processes may use the same ordinal for different ones.
        for (id, device) in (0..).zip(&mut out) {
            device.id = id;
        }
    }
    out
}

/// Distinct places, numbered in order of first appearance.
#[derive(Default)]
pub struct Places {
    ids: FxHashMap<(u32, [u32; 4]), u32>,
    list: Vec<LaunchSite>,
}

impl Places {
    /// Returns the id of a place by device ordinal, context, stream and thread (0 if unknown).
    pub fn place_id(&mut self, names: &Names, key: [u32; 4]) -> PlaceId {
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let id = *self.ids.entry((names.pid, key)).or_insert(next);
        if id == next {
            let [device, context, stream, thread] = key;
            self.list.push(LaunchSite {
                pid: Some(names.pid),
                device: names.device_index(device),
                ordinal: Some(device),
                context: Some(context),
                stream: Some(stream),
                thread: (thread != 0).then_some(thread),
            });
        }
        PlaceId(id)
    }

    /// Places that have been interned so far.
    pub fn so_far(&self) -> &[LaunchSite] {
        &self.list
    }

    pub fn into_list(self) -> Vec<LaunchSite> {
        self.list
    }
}
