//! Threads that launch work for another thread, which waits meanwhile: PyTorch's autograd engine runs a backward pass on
//! a thread of its own.
//!
//! Two such threads take turns: while one launches, the other does not. Threads that work independently launch between
//! each other's launches.

use rustc_hash::{FxHashMap, FxHashSet};

/// Process and thread id.
pub type ThreadKey = (u32, u32);

/// Minimum mean number of launches in a turn: threads that launch independently, each as often as the other, have two.
const TURN: usize = 8;

/// Returns the pairs of a helper and the thread for which it launches, among `candidates`. `calls` has the launch times
/// of each thread in ascending order.
pub fn find_helpers(
    calls: &FxHashMap<ThreadKey, Vec<i64>>,
    candidates: &FxHashSet<(ThreadKey, ThreadKey)>,
) -> FxHashSet<(ThreadKey, ThreadKey)> {
    let take_turns = |pair: &(ThreadKey, ThreadKey)| {
        let (Some(a), Some(b)) = (calls.get(&pair.0), calls.get(&pair.1)) else { return false };
        a.len() >= TURN * count_turns(a, b) && b.len() >= TURN * count_turns(b, a)
    };
    candidates.iter().filter(|pair| take_turns(pair)).copied().collect()
}

/// Number of runs of launches that the other thread's launches divide these into.
fn count_turns(own: &[i64], other: &[i64]) -> usize {
    let (mut turns, mut place) = (0, usize::MAX);
    for &time in own {
        // The other thread's launches before this one; a new turn starts if there are more of them than before.
        let from = if place == usize::MAX { 0 } else { place };
        let before = from + other[from..].partition_point(|&t| t < time);
        if before != place {
            (turns, place) = (turns + 1, before);
        }
    }
    turns
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_that_take_turns_are_helpers_and_others_are_not() {
        let (main, engine, loader, worker) = ((1, 1), (1, 2), (1, 3), (1, 4));
        let mut calls: FxHashMap<ThreadKey, Vec<i64>> = FxHashMap::default();
        for step in 0..10 {
            let at = step * 1_000;
            calls.entry(main).or_default().extend((0..30).map(|n| at + n));
            calls.entry(engine).or_default().extend((0..50).map(|n| at + 500 + n));
            // One copy for each step, and launches all the time.
            calls.entry(loader).or_default().push(at + 20);
            calls.entry(worker).or_default().extend((0..100).map(|n| at + n * 10 + 5));
        }
        let candidates = [(engine, main), (loader, main), (worker, main), (worker, loader)].into_iter().collect();
        assert_eq!(find_helpers(&calls, &candidates), FxHashSet::from_iter([(engine, main)]));
    }
}
