//! Selects launches by property: slowest, median, nth, all launches of a kernel in a range, one per kernel.

use super::nvtx::{self, Cover, RangeName};
use crate::analysis::invocation;
use crate::analysis::median_launch::median_launch;
use crate::analysis::readable::readable_name;
use crate::model::{KernelId, LaunchId, Profile};
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Returns launches of these kernels, in launch order.
pub fn of_kernels(profile: &Profile, kernels: &BTreeSet<KernelId>) -> Vec<LaunchId> {
    (0..u32::try_from(profile.launches.len()).unwrap_or(u32::MAX))
        .filter(|&row| kernels.contains(&profile.launches.kernel(row as usize)))
        .map(LaunchId)
        .collect()
}

/// Returns the `n` longest launches, in launch order; in a tie, earlier launches are preferred.
pub fn slowest(profile: &Profile, launches: &[LaunchId], n: usize) -> Vec<LaunchId> {
    let mut by_time = launches.to_vec();
    by_time.sort_by_key(|l| (std::cmp::Reverse(profile.launches.duration(l.0 as usize)), *l));
    by_time.truncate(n);
    by_time.sort_unstable();
    by_time
}

/// Returns the launch with the median duration (see [`median_launch`]).
pub fn median(profile: &Profile, launches: &[LaunchId]) -> Option<LaunchId> {
    let rows: Vec<u32> = launches.iter().map(|l| l.0).collect();
    median_launch(profile, &rows).map(LaunchId)
}

/// Returns, for each process, the launch that has `nth` earlier launches of the same function.
pub fn nth_of(profile: &Profile, launches: &[LaunchId], nth: u64) -> Vec<LaunchId> {
    let wanted: BTreeSet<u32> = launches.iter().map(|l| l.0).collect();
    invocation::all_launches(profile)
        .filter(|(row, n)| u64::from(*n) == nth && wanted.contains(row))
        .map(|(row, _)| LaunchId(row))
        .collect()
}

/// Returns launches inside ranges with a name, or only inside the nth such range of each process, 1-based.
pub fn inside(profile: &Profile, launches: &[LaunchId], range: RangeName, instance: Option<u32>) -> Vec<LaunchId> {
    let covers: Vec<Cover> = match instance {
        None => vec![Cover::for_range(profile, range, None)],
        Some(n) => {
            let mut pids: Vec<u32> = profile.ranges.threads.iter().map(|t| t.0).collect();
            pids.sort_unstable();
            pids.dedup();
            let starts = pids.into_iter().filter_map(|pid| Some((pid, nvtx::start_of(profile, range, pid, n)?)));
            starts.map(|only| Cover::for_range(profile, range, Some(only))).collect()
        }
    };
    launches.iter().copied().filter(|l| covers.iter().any(|c| c.contains_launch(profile, l.0 as usize))).collect()
}

/// Groups kernels by readable name, as the table of kernels does, and returns the `n` groups with the largest total
/// time, longest first.
pub fn top_kernels(profile: &Profile, n: usize) -> Vec<BTreeSet<KernelId>> {
    let mut of_kernel = vec![0_i64; profile.kernels.len()];
    for row in 0..profile.launches.len() {
        if let Some(total) = of_kernel.get_mut(profile.launches.kernel(row).0 as usize) {
            *total = total.saturating_add(profile.launches.duration(row));
        }
    }
    let mut totals: BTreeMap<Cow<'_, str>, (i64, BTreeSet<KernelId>)> = BTreeMap::new();
    for ((id, kernel), ns) in (0..).zip(&profile.kernels).zip(of_kernel).filter(|(_, ns)| *ns > 0) {
        let total = totals.entry(readable_name(kernel)).or_default();
        total.0 = total.0.saturating_add(ns);
        total.1.insert(KernelId(id));
    }
    let mut totals: Vec<_> = totals.into_iter().collect();
    totals.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
    totals.into_iter().take(n).map(|(_, (_, ids))| ids).collect()
}
