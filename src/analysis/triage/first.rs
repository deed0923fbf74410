//! First uses: one-time work by CUDA at the first launch of a kernel or the first call of a function.

use super::device_ops::{DeviceOp, OperationRow};
use super::piece::Piece;
use super::time_category::Cause;
use crate::model::Profile;
use rustc_hash::FxHashMap;
use std::cell::OnceCell;

/// Minimum duration of a launch call on an idle device for the call to have done more than launch, ns: an ordinary call
/// takes 2 to 10 µs, under a profiler up to a few tens.
pub const FIRST_USE_LAUNCH_NS: i64 = 100_000;
/// The same threshold for allocations and other calls, ns.
const SLOW_CALL_NS: i64 = 1_000_000;

/// First launch of each kernel in its process, and first call of each function.
pub struct Firsts<'a> {
    profile: &'a Profile,
    /// Start of the call that first launched each kernel, by process and kernel; computed on first use.
    launches: OnceCell<FxHashMap<(u32, u32), i64>>,
    calls: OnceCell<Vec<i64>>,
}

impl<'a> Firsts<'a> {
    pub fn from_profile(profile: &'a Profile) -> Self {
        Self { profile, launches: OnceCell::new(), calls: OnceCell::new() }
    }

    fn kernel_slot(&self, row: usize) -> Option<(u32, u32)> {
        let launches = &self.profile.launches;
        let place = self.profile.places.get(launches.place(row)?.0 as usize)?;
        Some((place.pid.unwrap_or_default(), launches.kernel(row).0))
    }

    fn first_launches(&self) -> &FxHashMap<(u32, u32), i64> {
        self.launches.get_or_init(|| {
            let launches = &self.profile.launches;
            let mut out = FxHashMap::default();
            for row in 0..launches.len() {
                if let (Some(slot), Some((start, _))) = (self.kernel_slot(row), launches.call(row)) {
                    let first = out.entry(slot).or_insert(start);
                    *first = start.min(*first);
                }
            }
            out
        })
    }

    /// Returns true if an operation is the first launch of its kernel in its process and its call took much longer than
    /// a usual launch, because the call loaded code or prepared the context.
    pub fn slow_launch(&self, op: &DeviceOp) -> bool {
        let OperationRow::Launch(row) = op.row else { return false };
        let row = row as usize;
        let launches = &self.profile.launches;
        let Some((start, cost)) = launches.call(row).filter(|c| c.1 >= FIRST_USE_LAUNCH_NS) else { return false };
        // Graph nodes share the call that launched the graph.
        cost > 0
            && launches.graph_node(row).is_none()
            && self.kernel_slot(row).and_then(|slot| self.first_launches().get(&slot)).is_some_and(|&first| first == start)
    }

    /// Returns true if a piece of idle time lies within a slow first call of its function.
    pub fn slow_call(&self, piece: &Piece) -> bool {
        let calls = &self.profile.calls;
        let firsts = self.calls.get_or_init(|| {
            let mut out = vec![i64::MAX; calls.names.len()];
            for (name, start) in calls.name.iter().zip(&calls.start) {
                if let Some(first) = out.get_mut(*name as usize) {
                    *first = (*first).min(*start);
                }
            }
            out
        });
        matches!(piece.cause, Cause::Alloc | Cause::OtherCall)
            && piece.end - piece.start >= SLOW_CALL_NS
            && piece.name.and_then(|n| firsts.get(n as usize)).is_some_and(|&first| first == piece.at)
    }
}
