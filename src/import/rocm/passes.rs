//! Merges counter passes: rocprofv3 runs the program once per counter list and writes each run to a directory
//! `pass_N` or `pmc_N`. Dispatches with the same number, kernel and size are taken to be the same dispatch, which
//! gets the counters of all passes.

use super::rows::{Dispatch, Rows};
use rustc_hash::FxHashMap;
use std::path::Path;

/// Returns the pass number of a file, taken from the name of its directory.
pub fn pass_number(path: &Path) -> Option<u32> {
    let mut names = path.components().rev().skip(1).filter_map(|c| c.as_os_str().to_str());
    names.find_map(|n| n.strip_prefix("pass_").or_else(|| n.strip_prefix("pmc_"))?.parse().ok())
}

/// Merges the passes. Returns the total number of passes, and the number of passes whose dispatches differ, which
/// stay separate; `None` if there is only one pass.
pub fn merge_passes(rows: &mut Rows) -> Option<(usize, usize)> {
    let mut passes: Vec<u32> = rows.processes.iter().filter_map(|p| p.pass).collect();
    passes.sort_unstable();
    passes.dedup();
    let (&first, rest) = passes.split_first()?;
    if rest.is_empty() {
        return None;
    }
    let of_pass = |pass: u32| -> Vec<u32> { (0..).zip(&rows.processes).filter(|(_, p)| p.pass == Some(pass)).map(|(i, _)| i).collect() };
    let name = |d: &Dispatch| rows.symbols.get(d.symbol as usize).map_or("", |s| &s.formatted);
    let mut base: FxHashMap<(u32, u64), &Dispatch> = FxHashMap::default();
    let mut of: FxHashMap<u32, Vec<&Dispatch>> = FxHashMap::default();
    for d in &rows.dispatches {
        base.insert((d.process, d.id), d);
        of.entry(d.process).or_default().push(d);
    }
    // Maps each process of a later pass to the process of the first pass that it is merged into.
    let mut joined: FxHashMap<u32, u32> = FxHashMap::default();
    let mut others = 0;
    let firsts = of_pass(first);
    for &pass in rest {
        let pairs: Vec<(u32, u32)> = of_pass(pass).into_iter().zip(firsts.iter().copied()).collect();
        let same = |&(own, to): &(u32, u32)| {
            let list = of.get(&own).map_or(&[][..], Vec::as_slice);
            let alike =
                |d: &&Dispatch| base.get(&(to, d.id)).is_some_and(|b| b.grid == d.grid && b.workgroup == d.workgroup && name(b) == name(d));
            !list.is_empty() && list.iter().all(alike)
        };
        if !pairs.is_empty() && pairs.iter().all(same) {
            joined.extend(pairs);
        } else {
            others += 1;
        }
    }
    drop((base, of));
    rows.dispatches.retain(|d| !joined.contains_key(&d.process));
    for counter in &mut rows.counters {
        counter.process = joined.get(&counter.process).copied().unwrap_or(counter.process);
    }
    let alone = |process: u32| !joined.contains_key(&process);
    rows.calls.retain(|c| alone(c.process));
    rows.copies.retain(|c| alone(c.process));
    rows.allocations.retain(|a| alone(a.process));
    // If several passes collected a counter, use the value from the first of them.
    let mut seen = rustc_hash::FxHashSet::default();
    if !joined.is_empty() {
        rows.counters.retain(|c| seen.insert((c.process, c.dispatch, c.name)));
    }
    Some((passes.len(), others))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::rocm::rows::{Counter, Process, Symbol};

    fn rows(second: [u32; 3]) -> Rows {
        let process = |pass| Process { pass: Some(pass), ..Process::default() };
        let dispatch = |process, grid| Dispatch { process, id: 1, grid, workgroup: [64, 1, 1], symbol: process, ..Dispatch::default() };
        let counter = |process, name| Counter { process, dispatch: 1, name, value: 1.0 };
        Rows {
            processes: vec![process(1), process(2)],
            symbols: vec![Symbol { formatted: "k".into(), ..Symbol::default() }; 2],
            dispatches: vec![dispatch(0, [64, 1, 1]), dispatch(1, second)],
            counters: vec![counter(0, 0), counter(1, 1), counter(1, 0)],
            ..Rows::default()
        }
    }

    #[test]
    fn counters_of_all_passes_are_of_one_dispatch() {
        let mut same = rows([64, 1, 1]);
        assert_eq!(merge_passes(&mut same), Some((2, 0)));
        assert_eq!((same.dispatches.len(), same.counters.len()), (1, 2));
        assert!(same.counters.iter().all(|c| c.process == 0));
        let mut other = rows([128, 1, 1]);
        assert_eq!(merge_passes(&mut other), Some((2, 1)));
        assert_eq!((other.dispatches.len(), other.counters.len()), (2, 3));
    }

    #[test]
    fn folders_of_passes() {
        for (path, want) in [("out/pass_2/a_results.db", Some(2)), ("pmc_3/x/a.csv", Some(3)), ("pass_1", None), ("a/pass_x/b", None)] {
            assert_eq!(pass_number(Path::new(path)), want, "{path}");
        }
    }
}
