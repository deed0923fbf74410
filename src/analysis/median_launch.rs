//! The launch that stands for several launches of a kernel.

use crate::model::{ConfigId, Profile};
use rustc_hash::FxHashMap;

/// The part of the launches, and the largest number of them, that may belong to the warm-up.
const WARM_UP: (usize, usize) = (10, 100);

/// Returns the launch with the median duration; of two middle ones, the shorter. If one launch configuration takes most
/// of the time, only its launches count: a median over tiny and large grids stands for neither. Among launches that
/// take equally long, it is the first one after what may be the warm-up: a later one is reached later when it is
/// profiled again. Launches without a recorded call do not count if others have one: they were made before the recording began, so a
/// re-run may not reach them.
pub fn median_launch(profile: &Profile, rows: &[u32]) -> Option<u32> {
    let called: Vec<u32> = rows.iter().copied().filter(|&row| profile.launches.call(row as usize).is_some()).collect();
    let rows = if called.is_empty() { rows } else { &called };
    let duration = |row: u32| profile.launches.duration(row as usize);
    let main = main_config(profile, rows);
    let alike: Vec<u32> = rows.iter().copied().filter(|&row| main.is_none() || profile.launches.config(row as usize) == main).collect();
    let rows = &alike[..];
    let mut durations: Vec<i64> = rows.iter().map(|&row| duration(row)).collect();
    let middle = durations.len().checked_sub(1)? / 2;
    let median = *durations.select_nth_unstable(middle).1;
    let warm_up = (rows.len() / WARM_UP.0).min(WARM_UP.1);
    let (early, late) = rows.split_at(warm_up);
    let is_median = |row: &&u32| duration(**row) == median;
    late.iter().find(is_median).or_else(|| early.iter().rfind(is_median)).copied()
}

/// Returns the configuration of launches that take more than half of the time; `None` if there is none, or only one.
fn main_config(profile: &Profile, rows: &[u32]) -> Option<ConfigId> {
    let launches = &profile.launches;
    let mut times: FxHashMap<ConfigId, i64> = FxHashMap::default();
    let mut all = 0_i64;
    for &row in rows {
        let ns = launches.duration(row as usize);
        all = all.saturating_add(ns);
        let time = times.entry(launches.config(row as usize)?).or_default();
        *time = time.saturating_add(ns);
    }
    times.into_iter().find(|(_, ns)| *ns * 2 > all).map(|(config, _)| config)
}
