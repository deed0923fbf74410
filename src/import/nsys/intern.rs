//! Interns values read by several threads. The final ids do not depend on thread timing.

use rustc_hash::{FxBuildHasher, FxHashMap};
use std::hash::{BuildHasher, Hash};
use std::sync::{Mutex, MutexGuard, PoisonError};

/// Distinct values with their ids, and the position at which each value was first seen.
#[derive(Debug)]
pub struct Interner<K> {
    inner: Mutex<Inner<K>>,
}

#[derive(Debug)]
struct Inner<K> {
    ids: FxHashMap<K, u32>,
    keys: Vec<(K, u64)>,
}

/// A thread's view of an [`Interner`]. It has a table of its own, and uses the shared one only for values missing
/// from it.
#[derive(Debug)]
pub struct Local<'a, K> {
    shared: &'a Interner<K>,
    ids: FxHashMap<K, u32>,
    /// Recently seen values by hash: reports repeat a few values millions of times.
    recent: Vec<Option<(K, u32)>>,
    last: Option<(K, u32)>,
}

/// Number of recent values cached per thread.
const RECENT: usize = 256;

impl<K: Copy + Eq + Hash> Default for Interner<K> {
    fn default() -> Self {
        Self { inner: Mutex::new(Inner { ids: FxHashMap::default(), keys: Vec::new() }) }
    }
}

impl<K: Copy + Eq + Hash> Interner<K> {
    fn lock_inner(&self) -> MutexGuard<'_, Inner<K>> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Returns the view for one thread. Each thread must see positions in ascending order.
    pub fn local_view(&self) -> Local<'_, K> {
        Local { shared: self, ids: FxHashMap::default(), recent: vec![None; RECENT], last: None }
    }

    /// Returns the values seen so far whose id is at least `from`, by id.
    pub fn values_from(&self, from: usize) -> Vec<K> {
        self.lock_inner().keys.iter().skip(from).map(|(k, _)| *k).collect()
    }

    /// Returns the values in order of first position, and for each id the index in that order.
    pub fn finish(&self) -> (Vec<K>, Vec<u32>) {
        let inner = self.lock_inner();
        let mut order: Vec<u32> = (0..u32::try_from(inner.keys.len()).unwrap_or(u32::MAX)).collect();
        order.sort_by_key(|&id| inner.keys[id as usize].1);
        let mut place = vec![0; order.len()];
        for (at, &id) in order.iter().enumerate() {
            place[id as usize] = u32::try_from(at).unwrap_or(u32::MAX);
        }
        (order.iter().map(|&id| inner.keys[id as usize].0).collect(), place)
    }
}

impl<K: Copy + Eq + Hash> Local<'_, K> {
    /// Returns the id of a value seen at `position`.
    pub fn intern_value(&mut self, key: K, position: u64) -> u32 {
        if let Some((last, id)) = self.last
            && last == key
        {
            return id;
        }
        // Use the upper bits of the hash, which are the best mixed.
        let slot = (FxBuildHasher.hash_one(key) >> 56) as usize % RECENT;
        if let Some((recent, id)) = self.recent[slot]
            && recent == key
        {
            self.last = Some((key, id));
            return id;
        }
        let id = match self.ids.get(&key) {
            Some(&id) => id,
            None => self.ask_shared(key, position),
        };
        self.recent[slot] = Some((key, id));
        self.last = Some((key, id));
        id
    }

    fn ask_shared(&mut self, key: K, position: u64) -> u32 {
        let mut inner = self.shared.lock_inner();
        let next = u32::try_from(inner.keys.len()).unwrap_or(u32::MAX);
        let id = *inner.ids.entry(key).or_insert(next);
        if id == next {
            inner.keys.push((key, position));
        } else if let Some(entry) = inner.keys.get_mut(id as usize) {
            entry.1 = entry.1.min(position);
        }
        self.ids.insert(key, id);
        id
    }
}

/// Maps a column of ids through the table from [`Interner::finish`]; does nothing if the table is the identity.
pub fn renumber_column(column: &mut [u32], place: &[u32]) {
    if place.iter().enumerate().all(|(i, &p)| i == p as usize) {
        return;
    }
    for id in column {
        if let Some(&p) = place.get(*id as usize) {
            *id = p;
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_follow_first_sight_whichever_thread_asks_first() {
        let interner = Interner::default();
        let (mut late, mut early) = (interner.local_view(), interner.local_view());
        let mut column =
            vec![late.intern_value("b", 10), late.intern_value("c", 11), early.intern_value("a", 0), early.intern_value("b", 1)];
        let (keys, place) = interner.finish();
        assert_eq!(keys, ["a", "b", "c"]);
        renumber_column(&mut column, &place);
        assert_eq!(column, [1, 2, 0, 1]);
    }
}
