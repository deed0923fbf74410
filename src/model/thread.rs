//! Threads and their names.

use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Index into [`Profile::threads`](super::Profile::threads).
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct ThreadId(pub u32);

/// A thread of a process.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Thread {
    pub pid: u32,
    pub tid: u32,
    /// Name given by the program or the system.
    pub name: Option<Arc<str>>,
}

/// Distinct threads, numbered in the order in which they were added.
#[derive(Debug, Default)]
pub struct Threads {
    ids: FxHashMap<(u32, u32), u32>,
    list: Vec<Thread>,
}

impl Threads {
    /// Returns the id of a thread, adding the thread if needed.
    pub fn get_or_insert(&mut self, pid: u32, tid: u32) -> ThreadId {
        let next = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        let id = *self.ids.entry((pid, tid)).or_insert(next);
        if id == next {
            self.list.push(Thread { pid, tid, name: None });
        }
        ThreadId(id)
    }

    /// Returns true if the thread has been added.
    pub fn is_known(&self, pid: u32, tid: u32) -> bool {
        self.ids.contains_key(&(pid, tid))
    }

    /// Names a thread, unless it already has a name.
    pub fn set_name(&mut self, pid: u32, tid: u32, name: Arc<str>) {
        let ThreadId(id) = self.get_or_insert(pid, tid);
        if let Some(thread) = self.list.get_mut(id as usize) {
            thread.name.get_or_insert(name);
        }
    }

    pub fn into_threads(self) -> Vec<Thread> {
        self.list
    }
}
