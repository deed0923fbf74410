//! The order in which a re-run will count the launches of a timeline.

use crate::model::{LaunchOrder, Launches};

/// Puts the launches into host launch order and says what that order rests on: `missing` launches have no call; `None` when no call was read.
#[must_use]
pub fn order(launches: Launches, missing: Option<u64>) -> (Launches, LaunchOrder) {
    let order = match missing {
        None => LaunchOrder::Device,
        Some(missing) if missing == launches.len() as u64 => LaunchOrder::Device,
        Some(0) => LaunchOrder::Host,
        Some(missing) => LaunchOrder::Partly(missing),
    };
    if launches.sorted_by_call() {
        return (launches, order);
    }
    let mut rows: Vec<u32> = (0..u32::try_from(launches.len()).unwrap_or(u32::MAX)).collect();
    rows.sort_unstable_by_key(|&row| (launches.order_key(row as usize), row));
    (launches.permuted(&rows), order)
}
