//! Launch durations by group and their statistics, computed on all processors.

use super::stats::Stats;
use std::sync::Mutex;

/// Statistics per group, and totals per kernel.
pub struct Sums {
    pub stats: Vec<Option<Stats>>,
    /// Time by kernel, ns.
    pub kernel_ns: Vec<i64>,
    pub kernel_launches: Vec<u32>,
}

/// Minimum number of launches for which starting several threads pays off.
const MANY: usize = 200_000;

/// Minimum number of launches in a group for all threads to share that group.
const ALONE: usize = 1 << 20;

/// Launches per group, and time and launches per kernel, as counted by one thread in its part of the launches.
struct Tally {
    groups: Vec<usize>,
    kernel_ns: Vec<i64>,
    kernel_launches: Vec<u32>,
}

/// Collects the durations of each group, splitting the launches among threads, and computes their statistics. `group`
/// maps a launch and its value in the column to a group, if any.
pub fn compute_sums<T: Copy + Default + Ord + Send + Sync + Into<i64>>(
    column: &[u32],
    groups: usize,
    kernels: usize,
    group: impl Fn(usize, u32) -> Option<usize> + Sync,
    duration: impl Fn(usize) -> T + Sync,
) -> Sums {
    let threads = if column.len() < MANY { 1 } else { std::thread::available_parallelism().map_or(1, std::num::NonZero::get) };
    let part = column.len().div_ceil(threads).max(1);
    let tally = |(at, part): (usize, &[u32])| {
        let mut tally = Tally { groups: vec![0; groups], kernel_ns: vec![0; kernels], kernel_launches: vec![0; kernels] };
        for (row, &value) in (at..).zip(part) {
            let Some(count) = group(row, value).and_then(|g| tally.groups.get_mut(g)) else { continue };
            *count += 1;
            if let Some(sum) = tally.kernel_ns.get_mut(value as usize) {
                *sum = sum.saturating_add(duration(row).into());
                tally.kernel_launches[value as usize] += 1;
            }
        }
        tally
    };
    let parts: Vec<(usize, &[u32])> = column.chunks(part).enumerate().map(|(i, p)| (i * part, p)).collect();
    let tallies: Vec<Tally> = if parts.len() < 2 {
        parts.iter().copied().map(tally).collect()
    } else {
        std::thread::scope(|scope| {
            let threads: Vec<_> = parts.iter().map(|&p| scope.spawn(move || tally(p))).collect();
            // Propagate a panic from the thread.
            threads.into_iter().map(|t| t.join().unwrap_or_else(|panic| std::panic::resume_unwind(panic))).collect()
        })
    };
    let counts: Vec<usize> = (0..groups).map(|g| tallies.iter().map(|t| t.groups[g]).sum()).collect();
    let mut values = vec![T::default(); column.len()];
    // Slices of the output, by thread and group, so that threads write without locks.
    let mut rooms: Vec<Vec<&mut [T]>> = tallies.iter().map(|_| Vec::with_capacity(groups)).collect();
    let mut rest = values.as_mut_slice();
    for g in 0..groups {
        for (tally, rooms) in tallies.iter().zip(&mut rooms) {
            let (room, tail) = rest.split_at_mut(tally.groups[g]);
            rooms.push(room);
            rest = tail;
        }
    }
    let put = |((at, part), mut rooms): ((usize, &[u32]), Vec<&mut [T]>)| {
        let mut next = vec![0_usize; rooms.len()];
        for (row, &value) in (at..).zip(part) {
            let Some(g) = group(row, value) else { continue };
            if let Some(place) = rooms.get_mut(g).and_then(|room| room.get_mut(next[g])) {
                *place = duration(row);
                next[g] += 1;
            }
        }
    };
    if parts.len() < 2 {
        parts.into_iter().zip(rooms).for_each(put);
    } else {
        let put = &put;
        std::thread::scope(|scope| {
            for work in parts.into_iter().zip(rooms) {
                scope.spawn(move || put(work));
            }
        });
    }
    let sum = |k: usize| tallies.iter().map(|t| t.kernel_ns[k]).fold(0, i64::saturating_add);
    Sums {
        stats: all_stats(&mut values, &counts),
        kernel_ns: (0..kernels).map(sum).collect(),
        kernel_launches: (0..kernels).map(|k| tallies.iter().map(|t| t.kernel_launches[k]).sum()).collect(),
    }
}

/// Computes the statistics of each group's values, which are stored group by group.
fn all_stats<T: Copy + Ord + Send + Sync + Into<i64>>(values: &mut [T], counts: &[usize]) -> Vec<Option<Stats>> {
    let mut slices = Vec::with_capacity(counts.len());
    let mut rest = values;
    for (g, &n) in counts.iter().enumerate() {
        let (head, tail) = rest.split_at_mut(n);
        slices.push((g, head));
        rest = tail;
    }
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get);
    // Process the longest groups first, so that the last one does not keep a single thread busy at the end.
    slices.sort_by_key(|(_, s)| s.len());
    let mut stats = vec![None; counts.len()];
    // All threads work together on a group with very many launches.
    while let Some((g, slice)) = slices.pop_if(|(_, s)| threads > 1 && s.len() >= ALONE) {
        stats[g] = Stats::of_many(slice, threads);
    }
    let out = Mutex::new(stats);
    let small = slices.iter().map(|(_, s)| s.len()).sum::<usize>() < 100_000;
    let queue = Mutex::new(slices);
    let work = || {
        while let Some((g, slice)) = queue.lock().ok().and_then(|mut q| q.pop()) {
            let stats = Stats::from_values(slice);
            if let Ok(mut out) = out.lock() {
                out[g] = stats;
            }
        }
    };
    if small || threads == 1 {
        work();
    } else {
        std::thread::scope(|scope| {
            for _ in 0..threads {
                scope.spawn(work);
            }
        });
    }
    out.into_inner().unwrap_or_default()
}
