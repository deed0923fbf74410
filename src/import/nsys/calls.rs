//! Reads host API calls and joins them to the kernels that they launched. Calls determine the launch order, by which
//! launches are counted when the program is run again.
//!
//! A call and its launches have the same process and correlation id; a correlation id by itself is not unique across
//! processes. Nodes of a graph share the graph launch call and are ordered by their start on the device.

use super::kernels::NO_CORRELATION;
use super::strings::Strings;
use crate::import::sqlite::db::Db;
use crate::import::sqlite::scan::{self, NULL};
use crate::import::{ImportError, Job};
use crate::model::api_call::{NONE, strip_version_suffix};
use crate::model::launches::TimesBuilder;
use crate::model::{CallKind, CallName, HostCalls, Launches, Nanos};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, AtomicU32, Ordering};
use std::sync::{Mutex, PoisonError};

/// Table of runtime and driver calls.
pub const RUNTIME: &str = "CUPTI_ACTIVITY_KIND_RUNTIME";
/// A serialized id in nsys consists of hardware (8 bits), VM (8), process (24) and thread (24).
const THREAD_BITS: u32 = 24;
const MASK: i64 = 0xff_ffff;

/// Extracts the process id from a serialized id.
pub fn pid_of(global: i64) -> Option<u32> {
    (global != NULL).then(|| u32::try_from((global >> THREAD_BITS) & MASK).unwrap_or_default())
}

/// Extracts the thread id from a serialized id.
pub fn tid_of(global: i64) -> Option<u32> {
    (global != NULL).then(|| u32::try_from(global & MASK).unwrap_or_default())
}

/// Maps the correlation ids of one process to consecutive numbers.
enum Correlations {
    /// One bit per id, and the number of bits that are set before each word.
    Bits { bits: Vec<u64>, before: Vec<u32> },
    /// A map, for a small number of ids that are far apart.
    Sparse(FxHashMap<u32, u32>),
}

impl Correlations {
    /// Assigns numbers starting at `first` to ids; also returns the next number. `room` limits the number of empty
    /// words in the bitmap.
    fn new(ids: impl Iterator<Item = u32> + Clone, first: u32, room: usize) -> (Self, u32) {
        let (max, count) = ids.clone().fold((0_u32, 0_usize), |(m, n), id| (m.max(id), n + 1));
        if max as usize / 64 > count.saturating_mul(16).saturating_add(room) {
            let mut map = FxHashMap::default();
            let mut next = first;
            for id in ids {
                map.entry(id).or_insert_with(|| {
                    next += 1;
                    next - 1
                });
            }
            return (Self::Sparse(map), next);
        }
        let mut bits = vec![0_u64; max as usize / 64 + 1];
        for id in ids {
            bits[id as usize / 64] |= 1 << (id % 64);
        }
        let mut next = first;
        let before = bits
            .iter()
            .map(|word| {
                let at = next;
                next += word.count_ones();
                at
            })
            .collect();
        (Self::Bits { bits, before }, next)
    }

    fn dense_number(&self, id: u32) -> Option<usize> {
        match self {
            Self::Bits { bits, before } => {
                let (word, bit) = (id as usize / 64, id % 64);
                let set = *bits.get(word)?;
                (set >> bit & 1 == 1).then(|| (before[word] + (set & ((1 << bit) - 1)).count_ones()) as usize)
            }
            Self::Sparse(map) => map.get(&id).map(|&n| n as usize),
        }
    }
}

/// Call data by number. Takes no more than 16 bytes per call, because both this table and the launches count toward
/// peak memory.
struct Found {
    start: Vec<AtomicI64>,
    cost: Vec<AtomicU32>,
    thread: Vec<AtomicU32>,
}

const UNSEEN: i64 = i64::MAX;

#[derive(Default)]
struct Reader {
    totals: FxHashMap<i64, (u64, i64)>,
    matters: FxHashMap<i64, bool>,
    kept: Vec<(usize, [i64; 5])>,
    blocked: Vec<(usize, i64)>,
}

/// Call data for each launch, in file order.
pub struct Joined {
    /// Device start minus call start, ns.
    pub since_call: TimesBuilder,
    /// Duration of the call, ns.
    pub cost: TimesBuilder,
    /// Number of launches without a call.
    pub missing: u64,
}

/// Launches to join to their calls.
pub struct Unjoined<'a> {
    /// The launches, which have no places yet.
    pub launches: &'a Launches,
    /// Correlation id of each launch.
    pub correlation: &'a [u32],
    /// Place of each launch; replaced with the result of `with_thread`.
    pub place: &'a mut [u32],
    /// Serialized process id of each place.
    pub place_pid: Vec<i64>,
    /// Maps a place and a launching thread to the same place with that thread.
    pub with_thread: &'a mut dyn FnMut(u32, Option<u32>) -> u32,
}

/// Reads the calls, and joins them to the launches.
pub fn read_calls(
    db: &Db,
    job: &Job<'_>,
    strings: &mut Strings<'_>,
    unjoined: Unjoined<'_>,
) -> Result<(Option<Joined>, HostCalls), ImportError> {
    let Unjoined { launches, correlation, place: places, place_pid, with_thread } = unjoined;
    if !db.has_table(RUNTIME) {
        for place in places.iter_mut() {
            *place = with_thread(*place, None);
        }
        return Ok((None, HostCalls::default()));
    }
    let with_process = db.has_column(RUNTIME, "globalTid") && db.has_column(super::kernels::KERNEL, "globalPid");
    let process = |global: i64| {
        if with_process && global != NULL { global >> THREAD_BITS } else { 0 }
    };
    let place_process: Vec<i64> = place_pid.iter().map(|&g| process(g)).collect();
    let mut processes: Vec<i64> = place_process.clone();
    processes.sort_unstable();
    processes.dedup();
    let process_at = |place: Option<&u32>| place.and_then(|&p| place_process.get(p as usize)).copied().unwrap_or(0);
    let mut numbers: FxHashMap<i64, Correlations> = FxHashMap::default();
    let mut total = 0;
    let mut by_process: FxHashMap<i64, Vec<u32>> = FxHashMap::default();
    if processes.len() > 1 {
        for (&id, place) in correlation.iter().zip(places.iter()).filter(|(id, _)| **id != NO_CORRELATION) {
            by_process.entry(process_at(Some(place))).or_default().push(id);
        }
    }
    // Limit the tables of all processes in total to the size allowed for a single process.
    let room = (1 << 20) / processes.len().max(1);
    for &p in &processes {
        let (correlations, next) = match by_process.get(&p) {
            Some(ids) => Correlations::new(ids.iter().copied(), total, room),
            None if processes.len() > 1 => continue,
            None => Correlations::new(correlation.iter().copied().filter(|&id| id != NO_CORRELATION), total, room),
        };
        total = next;
        numbers.insert(p, correlations);
    }
    drop(by_process);
    let found = Found {
        start: (0..total).map(|_| AtomicI64::new(UNSEEN)).collect(),
        cost: (0..total).map(|_| AtomicU32::new(0)).collect(),
        thread: (0..total).map(|_| AtomicU32::new(u32::MAX)).collect(),
    };
    let shared = Mutex::new(strings);
    let layout = scan::find_layout(db, RUNTIME)?;
    let readers = scan::scan_integers(
        db,
        RUNTIME,
        ["start", "end", "globalTid", "correlationId", "nameId"],
        ("API calls", layout),
        job,
        Reader::default,
        |reader, chunk, rows| {
            for &[start, end, thread, id, name] in rows {
                let total = reader.totals.entry(name).or_default();
                total.0 += 1;
                // A call without a start counts only toward the totals.
                if start == NULL {
                    continue;
                }
                total.1 = total.1.saturating_add(end.saturating_sub(start).max(0));
                let number = u32::try_from(id).ok().and_then(|id| numbers.get(&process(thread))?.dense_number(id));
                if let Some(n) = number {
                    found.start[n].fetch_min(start, Ordering::Relaxed);
                    let cost = end.saturating_sub(start).max(0);
                    match u32::try_from(cost) {
                        Ok(cost) => found.cost[n].fetch_max(cost, Ordering::Relaxed),
                        // Calls that blocked for more than four seconds are rare, so keep them in a list.
                        Err(_) => {
                            reader.blocked.push((n, cost));
                            0
                        }
                    };
                    found.thread[n].fetch_min(tid_of(thread).unwrap_or(u32::MAX), Ordering::Relaxed);
                    continue;
                }
                let matters = *reader.matters.entry(name).or_insert_with(|| {
                    let name = shared.lock().unwrap_or_else(PoisonError::into_inner).get(name);
                    name.is_none_or(|n| CallKind::from_name(&n).is_kept())
                });
                if matters {
                    reader.kept.push((chunk, [start, end, thread, id, name]));
                }
            }
            Ok(())
        },
    )?;
    let strings = shared.into_inner().unwrap_or_else(PoisonError::into_inner);
    let mut blocked: FxHashMap<usize, i64> = FxHashMap::default();
    for &(n, cost) in readers.iter().flat_map(|r| &r.blocked) {
        let longest = blocked.entry(n).or_default();
        *longest = cost.max(*longest);
    }
    let calls = merge_totals(readers, strings);
    let mut joined =
        Joined { since_call: TimesBuilder::with_capacity(launches.len()), cost: TimesBuilder::with_capacity(launches.len()), missing: 0 };
    for (row, place) in places.iter_mut().enumerate() {
        let id = correlation.get(row).copied().unwrap_or(NO_CORRELATION);
        let call = numbers.get(&process_at(Some(place))).filter(|_| id != NO_CORRELATION).and_then(|n| n.dense_number(id));
        let mut thread = None;
        match call.map(|n| (found.start[n].load(Ordering::Relaxed), n)) {
            Some((start, n)) if start != UNSEEN => {
                let cost = blocked.get(&n).copied().unwrap_or_else(|| i64::from(found.cost[n].load(Ordering::Relaxed)));
                joined.since_call.push(Some(launches.start(row).saturating_sub(start)));
                joined.cost.push(Some(cost));
                thread = Some(found.thread[n].load(Ordering::Relaxed)).filter(|&t| t != u32::MAX);
            }
            _ => {
                joined.since_call.push(None);
                joined.cost.push(None);
                joined.missing += 1;
            }
        }
        *place = with_thread(*place, thread);
    }
    Ok((Some(joined), calls))
}

/// Merges the tables of the reader threads; individual calls are in file order.
fn merge_totals(readers: Vec<Reader>, strings: &mut Strings<'_>) -> HostCalls {
    let mut by_name: BTreeMap<String, (u64, i64, Vec<i64>)> = BTreeMap::new();
    let mut kept = Vec::new();
    for reader in readers {
        for (id, (count, total)) in reader.totals {
            let name = strings.get(id).map_or_else(|| "(unnamed call)".to_owned(), |n| strip_version_suffix(&n).to_owned());
            let row = by_name.entry(name).or_default();
            row.0 += count;
            row.1 = row.1.saturating_add(total);
            row.2.push(id);
        }
        kept.extend(reader.kept);
    }
    kept.sort_by_key(|&(chunk, [start, ..])| (chunk, start));
    let mut rows: Vec<_> = by_name.into_iter().collect();
    rows.sort_by_key(|(_, (_, total, _))| std::cmp::Reverse(*total));
    let mut index: FxHashMap<i64, u32> = FxHashMap::default();
    let mut calls = HostCalls::default();
    for (at, (name, (count, total, ids))) in rows.into_iter().enumerate() {
        index.extend(ids.into_iter().map(|id| (id, u32::try_from(at).unwrap_or(u32::MAX))));
        calls.names.push(CallName::new(name.into(), count, Nanos(total)));
    }
    let mut threads: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (_, [start, end, thread, id, name]) in kept {
        calls.start.push(start);
        calls.duration.push(end.saturating_sub(start).max(0));
        calls.name.push(index.get(&name).copied().unwrap_or(NONE));
        calls.correlation.push(u32::try_from(id).unwrap_or(NONE));
        let thread = (pid_of(thread).unwrap_or_default(), tid_of(thread).unwrap_or_default());
        calls.thread.push(*threads.entry(thread).or_insert_with(|| {
            calls.threads.push(thread);
            u32::try_from(calls.threads.len() - 1).unwrap_or(NONE)
        }));
    }
    calls
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn dense_and_sparse_ids_are_numbered_alike() {
        for ids in [vec![5_u32, 70, 71, 5], vec![3, 4_000_000_000, 9]] {
            let (correlations, next) = Correlations::new(ids.iter().copied(), 10, 1 << 20);
            let mut numbers: Vec<_> = ids.iter().map(|&id| correlations.dense_number(id)).collect();
            numbers.sort_unstable();
            numbers.dedup();
            assert_eq!(numbers, [Some(10), Some(11), Some(12)]);
            assert_eq!(next, 13);
            assert_eq!(correlations.dense_number(6), None);
        }
    }

    #[test]
    fn many_processes_take_no_more_room_than_one() {
        let far = || std::iter::once(60_000_000_u32);
        assert!(matches!(Correlations::new(far(), 0, 1 << 20).0, Correlations::Bits { .. }));
        assert!(matches!(Correlations::new(far(), 0, (1 << 20) / 10_000).0, Correlations::Sparse(_)));
    }

    #[test]
    fn ids_hold_process_and_thread() {
        let global = (1 << 56) | (897 << 24) | 0x385;
        assert_eq!((pid_of(global), tid_of(global)), (Some(897), Some(901)));
        assert_eq!(pid_of(NULL), None);
    }
}
