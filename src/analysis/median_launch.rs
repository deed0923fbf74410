//! The launch that stands for several launches of a kernel.

use crate::model::Profile;

/// Returns the launch with the median duration; of two middle ones, the shorter. Among launches that take equally long,
/// it is the middle one in the given order, because the first ones often belong to the warm-up.
pub fn median_launch(profile: &Profile, rows: &[u32]) -> Option<u32> {
    let duration = |row: u32| profile.launches.duration(row as usize);
    let mut durations: Vec<i64> = rows.iter().map(|&row| duration(row)).collect();
    let middle = durations.len().checked_sub(1)? / 2;
    let median = *durations.select_nth_unstable(middle).1;
    let equal: Vec<u32> = rows.iter().copied().filter(|&row| duration(row) == median).collect();
    equal.get(equal.len() / 2).copied()
}
