//! Host launch order, which is the order in which a re-run counts launches.

use crate::model::{LaunchOrder, Launches};

/// Sorts launches into host launch order and returns the resulting kind of order. `missing` is the number of launches
/// without a call, or `None` if calls were not read.
pub fn sort_launches(launches: Launches, missing: Option<u64>) -> (Launches, LaunchOrder) {
    let order = match missing {
        None => LaunchOrder::Device,
        Some(missing) if missing == launches.len() as u64 => LaunchOrder::Device,
        Some(0) => LaunchOrder::Host,
        Some(missing) => LaunchOrder::Partly(missing),
    };
    if launches.is_in_launch_order() {
        return (launches, order);
    }
    let mut rows: Vec<u32> = (0..u32::try_from(launches.len()).unwrap_or(u32::MAX)).collect();
    rows.sort_unstable_by_key(|&row| (launches.order_key(row as usize), row));
    (launches.with_order(&rows), order)
}
