//! The launch that stands for several launches of a kernel.

use crate::model::Profile;

/// The part of the launches, and the largest number of them, that may belong to the warm-up.
const WARM_UP: (usize, usize) = (10, 100);

/// Returns the launch with the median duration; of two middle ones, the shorter. Among launches that take equally long,
/// it is the first one after what may be the warm-up: a later one is reached later when it is profiled again.
/// Launches without a recorded call do not count if others have one: they were made before the recording began, so a
/// re-run may not reach them.
pub fn median_launch(profile: &Profile, rows: &[u32]) -> Option<u32> {
    let called: Vec<u32> = rows.iter().copied().filter(|&row| profile.launches.call(row as usize).is_some()).collect();
    let rows = if called.is_empty() { rows } else { &called };
    let duration = |row: u32| profile.launches.duration(row as usize);
    let mut durations: Vec<i64> = rows.iter().map(|&row| duration(row)).collect();
    let middle = durations.len().checked_sub(1)? / 2;
    let median = *durations.select_nth_unstable(middle).1;
    let warm_up = (rows.len() / WARM_UP.0).min(WARM_UP.1);
    let (early, late) = rows.split_at(warm_up);
    let is_median = |row: &&u32| duration(**row) == median;
    late.iter().find(is_median).or_else(|| early.iter().rfind(is_median)).copied()
}
