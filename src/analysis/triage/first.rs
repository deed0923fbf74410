//! First uses: what CUDA does once, at the first launch of a kernel or the first call of its kind, and what of a run's start consists of that.

use super::gaps::{Gaps, Piece};
use super::host::Host;
use super::ops::{Op, Ops, Row};
use super::part::Cause;
use super::sweep::{Gap, Hear, sweep};
use crate::model::Profile;
use std::cell::OnceCell;

/// A launch call that holds its thread this long, ns, while the device has nothing to do, does more than launch: an ordinary one takes 2 to 10 µs,
/// under a profiler up to some ten.
pub const SLOW_LAUNCH_NS: i64 = 100_000;
/// The same for calls that allocate, or ask for something.
const SLOW_CALL_NS: i64 = 1_000_000;

/// Share of the devices' work before which a run still starts.
const START: f64 = 0.1;
/// Share of the report that first uses must take to be left out.
const WORTH_IT: f64 = 0.03;
/// Operations that must be left to be judged.
const LEFT: usize = 30;
/// Share of an idle time that must be a first use.
const MOSTLY: f64 = 0.5;

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

    /// Whether an operation is the first launch of its kernel in its process, by a call that took much longer than a launch does: its code was
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

    /// Whether a piece of idle time lies in the first call of its name, which was slow.
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

struct Listen<'g> {
    gaps: Gaps<'g>,
    ops: &'g Ops<'g>,
    pieces: Vec<Piece>,
    /// Idle time in first uses so far, ns; when the last of them was over, and what it was.
    idle: i64,
    until: Option<(i64, String)>,
}

impl Listen<'_> {
    fn what(&self, gap: &Gap, longest: &Piece) -> String {
        let profile = self.ops.profile();
        match gap.next.map(|op| op.row) {
            Some(Row::Launch(row)) if longest.cause == Cause::Compile && longest.name.is_none() => {
                let kernel = profile.kernels.get(profile.launches.kernel(row as usize).0 as usize);
                format!("first launch of {}", kernel.map_or("a kernel", |k| k.function()))
            }
            _ => longest
                .name
                .and_then(|n| profile.calls.names.get(n as usize))
                .map_or_else(|| "loading of code".to_owned(), |n| format!("first {}", n.name)),
        }
    }
}

impl Hear for Listen<'_> {
    fn gap(&mut self, gap: &Gap) {
        let mut pieces = std::mem::take(&mut self.pieces);
        self.gaps.look(gap, &mut pieces);
        let first = |p: &&Piece| p.cause == Cause::Compile || self.gaps.firsts().slow_call(p);
        let ns: i64 = pieces.iter().filter(first).map(|p| p.end - p.start).sum();
        if gap.next.is_some() && ns as f64 >= MOSTLY * (gap.end - gap.start) as f64 {
            let longest = pieces.iter().filter(first).max_by_key(|p| p.end - p.start).copied();
            self.idle += ns;
            if let Some(longest) = longest.filter(|l| l.end - l.start >= SLOW_LAUNCH_NS) {
                self.until = Some((gap.end, self.what(gap, &longest)));
            }
        }
        self.pieces = pieces;
    }

    fn copy(&mut self, _: &Op, _: i64, _: i64) {}

    fn op(&mut self, op: &Op) {
        self.gaps.op(op);
    }
}

/// When a run that has no steps is past its first uses, and the last of these; `None` where they take next to nothing, or hardly anything is left.
/// `work` is the summed duration of all operations.
#[must_use]
pub fn start(ops: &Ops<'_>, host: &Host<'_>, span: (i64, i64), work: i64) -> Option<(i64, String)> {
    let mut listen = Listen { gaps: Gaps::new(ops, host), ops, pieces: Vec::new(), idle: 0, until: None };
    let mut done = 0_i64;
    let early = ops.iter().take_while(|op| {
        let go = done as f64 <= START * work as f64;
        done = done.saturating_add(op.end - op.start);
        go
    });
    sweep(early, ops.units.len(), &[span], &mut listen);
    let (until, what) = listen.until?;
    let left = ops.iter().filter(|op| op.start >= until).take(LEFT).count();
    (listen.idle as f64 >= WORTH_IT * (span.1 - span.0) as f64 && left >= LEFT).then_some((until, what))
}
