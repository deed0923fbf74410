//! Parents on other threads: forward operators of the backward pass, and the ranges of a thread for which another thread
//! launches.

use super::backward::Backward;
use super::helper_threads::{ThreadKey, find_helpers};
use super::{Builder, Link};
use crate::analysis::triage::device_ops::{DeviceOps, clamp_time};
use crate::model::RangeOrigin;
use crate::model::range::NONE;
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of threads with marked ranges in a process for which helpers are looked for.
const MOST_MARKED: usize = 16;

/// Approximate number of launches of a thread that tell for whom it works.
const SAMPLE: usize = 4_096;

/// Returns true for ranges that the program, or a library that it uses, marked, as opposed to those of a framework's
/// operators.
fn is_marked(origin: RangeOrigin) -> bool {
    matches!(origin, RangeOrigin::Nvtx | RangeOrigin::Annotation | RangeOrigin::Roctx)
}

impl Builder<'_> {
    /// Places engine operators under their forward operators. If only one of the two is in a range that the program
    /// marked, the operator belongs to what is around it in time: the forward range does not contain its work.
    pub fn link_backward(&mut self, backward: Backward) {
        for (sequence, (start, instance, thread)) in backward.engine {
            // Without gradients, all operators have sequence number 0, so require another thread: that is where a
            // backward pass runs.
            let Some(&(_, first, of)) = backward.forward.get(&sequence).filter(|f| f.2 != thread) else { continue };
            let around = self.innermost_range(of, start).and_then(|at| self.marked_range(of, at));
            let link = if self.marked_range(of, first) == around { (first, Link::Forward) } else { (around.unwrap_or(NONE), Link::Helper) };
            let own = &mut self.instances[instance as usize];
            (own.parent, own.link) = link;
        }
    }

    /// Finds the threads that launch work for others, and places their outermost ranges.
    pub fn link_helpers(&mut self) {
        let ranges = &self.profile.ranges;
        for (thread, (&(pid, tid), list)) in ranges.threads.iter().zip(&self.by_thread).enumerate() {
            if list.iter().any(|&(row, _)| is_marked(ranges.get(row as usize).origin)) {
                self.marked.entry(pid).or_default().push((tid, thread));
            }
        }
        self.marked.retain(|_, threads| threads.len() <= MOST_MARKED);
        let mut calls: FxHashMap<ThreadKey, Vec<i64>> = FxHashMap::default();
        let ops = DeviceOps::from_profile(self.profile);
        if self.marked.is_empty() || !self.has_helpers(&ops) {
            return;
        }
        for (pid, tid, time) in ops.iter().filter_map(|op| ops.find_origin(&op)) {
            if self.marked.contains_key(&pid) {
                calls.entry((pid, tid)).or_default().push(time);
            }
        }
        let mut candidates = FxHashSet::default();
        for (&thread, times) in &mut calls {
            times.sort_unstable();
            let own = self.marked.get(&thread.0).and_then(|all| all.iter().find(|t| t.0 == thread.1));
            let unmarked = |time: &i64| own.is_none_or(|own| self.marked_at(own.1, *time).is_none());
            let sample: Vec<i64> = times.iter().copied().step_by((times.len() / SAMPLE).max(1)).collect();
            let outside: Vec<i64> = sample.iter().copied().filter(unmarked).collect();
            // A thread whose work is in ranges of its own works for itself.
            if outside.len() * 2 >= sample.len() {
                candidates.extend(outside.into_iter().filter_map(|time| Some((thread, self.waiting_thread(thread, time)?))));
            }
        }
        self.helpers = find_helpers(&calls, &candidates);
        for thread in 0..self.by_thread.len() {
            let Some(&key) = ranges.threads.get(thread).filter(|t| self.is_helper(**t)) else { continue };
            for at in 0..self.by_thread[thread].len() {
                let (row, instance) = self.by_thread[thread][at];
                if self.instances[instance as usize].parent == NONE
                    && let Some(around) = self.range_of_waiting(key, clamp_time(ranges.get(row as usize).start))
                {
                    let own = &mut self.instances[instance as usize];
                    (own.parent, own.link) = (around, Link::Helper);
                }
            }
        }
    }

    /// Returns true if several threads of a process with marked ranges launch work.
    fn has_helpers(&self, ops: &DeviceOps<'_>) -> bool {
        let mut seen: FxHashMap<u32, u32> = FxHashMap::default();
        let launched = ops.iter().filter_map(|op| ops.find_origin(&op));
        launched.filter(|o| self.marked.contains_key(&o.0)).any(|(pid, tid, _)| *seen.entry(pid).or_insert(tid) != tid)
    }

    /// Returns the only other thread of the process on which a marked range is open.
    fn waiting_thread(&self, (pid, tid): ThreadKey, time: i64) -> Option<ThreadKey> {
        let others = self.marked.get(&pid)?.iter().filter(|other| other.0 != tid);
        let mut open = others.filter(|other| self.marked_at(other.1, time).is_some());
        let found = open.next()?;
        open.next().is_none().then_some((pid, found.0))
    }

    pub fn is_helper(&self, thread: ThreadKey) -> bool {
        self.helpers.iter().any(|(helper, _)| *helper == thread)
    }

    /// Returns the innermost marked range of the thread for which a helper launches at a time.
    pub fn range_of_waiting(&self, helper: ThreadKey, time: i64) -> Option<u32> {
        if !self.is_helper(helper) {
            return None;
        }
        let waiting = self.waiting_thread(helper, time).filter(|waiting| self.helpers.contains(&(helper, *waiting)))?;
        let thread = self.marked.get(&waiting.0)?.iter().find(|t| t.0 == waiting.1)?.1;
        self.marked_at(thread, time)
    }

    /// Returns the innermost range of a thread that the program marked and that is open at a time.
    fn marked_at(&self, thread: usize, time: i64) -> Option<u32> {
        self.marked_range(thread, self.innermost_range(thread, time)?)
    }

    /// Returns a range of a thread, or the innermost range around it, that the program marked.
    fn marked_range(&self, thread: usize, mut instance: u32) -> Option<u32> {
        let list = self.by_thread.get(thread)?;
        let base = list.first()?.1;
        loop {
            let (row, _) = *list.get(instance.checked_sub(base)? as usize)?;
            if is_marked(self.profile.ranges.get(row as usize).origin) {
                return Some(instance);
            }
            instance = self.instances.get(instance as usize).map(|i| i.parent).filter(|&parent| parent != NONE)?;
        }
    }
}
