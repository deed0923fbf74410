//! First uses: what CUDA does once, at the first launch of a kernel or the first call of its kind.

use super::ops::{Op, Row};
use super::part::Cause;
use super::piece::Piece;
use crate::model::Profile;
use std::cell::OnceCell;

/// A launch call that holds its thread this long, ns, while the device has nothing to do, does more than launch: an ordinary one takes 2 to 10 µs,
/// under a profiler up to some ten.
pub const SLOW_LAUNCH_NS: i64 = 100_000;
/// The same for calls that allocate, or ask for something.
const SLOW_CALL_NS: i64 = 1_000_000;

/// When each kernel was launched for the first time, and each call made, in each process.
pub struct Firsts<'a> {
    profile: &'a Profile,
    pids: Vec<u32>,
    /// Of each place its index into `pids`.
    pid_of: Vec<usize>,
    /// By process and kernel the start of the first call; made when it is asked for.
    launches: OnceCell<Vec<i64>>,
    calls: OnceCell<Vec<i64>>,
}

impl<'a> Firsts<'a> {
    #[must_use]
    pub fn of(profile: &'a Profile) -> Self {
        let mut pids: Vec<u32> = profile.places.iter().map(|p| p.pid.unwrap_or_default()).collect();
        pids.sort_unstable();
        pids.dedup();
        let pid_of = profile.places.iter().map(|p| pids.binary_search(&p.pid.unwrap_or_default()).unwrap_or_default()).collect();
        Self { profile, pids, pid_of, launches: OnceCell::new(), calls: OnceCell::new() }
    }

    fn slot(&self, row: usize) -> Option<usize> {
        let launches = &self.profile.launches;
        let pid = *self.pid_of.get(launches.place(row)?.0 as usize)?;
        Some(pid * self.profile.kernels.len() + launches.kernel(row).0 as usize)
    }

    fn first_launches(&self) -> &[i64] {
        self.launches.get_or_init(|| {
            let launches = &self.profile.launches;
            let mut out = vec![i64::MAX; self.pids.len() * self.profile.kernels.len()];
            for row in 0..launches.len() {
                if let (Some(slot), Some((start, _))) = (self.slot(row), launches.call(row))
                    && let Some(first) = out.get_mut(slot)
                {
                    *first = (*first).min(start);
                }
            }
            out
        })
    }

    /// True if an operation is the first launch of its kernel in its process, by a call that took much longer than a launch does: its code was
    /// loaded, or the context got ready for it.
    #[must_use]
    pub fn slow_launch(&self, op: &Op) -> bool {
        let Row::Launch(row) = op.row else { return false };
        let row = row as usize;
        let launches = &self.profile.launches;
        let Some((start, cost)) = launches.call(row).filter(|c| c.1 >= SLOW_LAUNCH_NS) else { return false };
        // Nodes of a graph share a call; it is not theirs.
        cost > 0
            && launches.graph_node(row).is_none()
            && self.slot(row).and_then(|slot| self.first_launches().get(slot)).is_some_and(|&first| first == start)
    }

    /// True if a piece of idle time lies in the first call of its name, which was slow.
    #[must_use]
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
