//! Time filter of a report; the analysis of the whole run is kept

use super::report::{BaseScope, Known, Report};
use crate::analysis::Grouping;
use crate::analysis::triage::{JudgedTime, Triage};
use crate::app::jobs::JobRequest;
use crate::app::msg::Effect;
use std::sync::Arc;

impl Report {
    /// Narrows the report to its steady state if that is its base and no other window is set.
    pub(super) fn apply_base_scope(&mut self, index: usize) -> Vec<Effect> {
        // The groups of the whole run are kept, because launches outside the steady state belong to them.
        let is_due = self.base == BaseScope::SteadyState && self.window.is_none() && self.groups.grouping.is_some();
        match self.steady_window().filter(|_| is_due) {
            Some(steady) => self.set_window(index, Some(steady)),
            None => Vec::new(),
        }
    }

    /// Groups of the whole run, regardless of any time filter.
    pub fn whole_grouping(&self) -> Option<&Arc<Grouping>> {
        self.whole.as_ref().map_or(self.groups.grouping.as_ref(), |w| w.grouping.as_ref())
    }

    /// Group and row of a launch: in the groups of the time filter, or else of the whole run.
    pub fn group_of_launch(&self, launch: u32) -> Option<(Arc<Grouping>, usize)> {
        let (profile, paths) = (self.profile.as_deref()?, self.paths.as_deref());
        let whole = self.whole.as_ref().and_then(|w| w.grouping.as_ref()).filter(|g| g.by == self.groups.by);
        let mut known = self.groups.grouping.iter().chain(whole);
        let row = |g: &Arc<Grouping>| Some((Arc::clone(g), g.row_of(profile, paths, launch as usize)?));
        known.find_map(row).or_else(|| {
            let grouping = self.groups.grouping.as_ref()?;
            Some((Arc::clone(grouping), grouping.row_of_group(profile, paths, launch as usize)?))
        })
    }

    /// Chooses the time filter of the report as the user asked for it.
    pub fn choose_window(&mut self, index: usize, window: Option<(i64, i64)>) -> Vec<Effect> {
        if window.is_none() {
            self.base = BaseScope::WholeRun;
        } else if window == self.steady_window() {
            self.base = BaseScope::SteadyState;
        }
        let mut effects = self.set_window(index, window);
        effects.extend(self.judge_whole_run(index));
        effects
    }

    /// If the user asked for the whole run, puts its triage in the place of that of the steady state.
    fn judge_whole_run(&mut self, index: usize) -> Vec<Effect> {
        let steady = self.triage.clone().flatten().filter(|t| t.outside.is_some() && self.window.is_none());
        let Some(steady) = steady.filter(|_| self.base == BaseScope::WholeRun) else { return Vec::new() };
        let span = steady.span;
        self.steady = Some(steady);
        self.triage = self.run_triage.clone().map(Some);
        self.next = self.verdict_sentence();
        if self.triage.is_some() { Vec::new() } else { self.request_work(index, JobRequest::JudgeRun(span)) }
    }

    /// Time filter that the user set, ns; the steady state is none.
    pub fn chosen_window(&self) -> Option<(i64, i64)> {
        self.window.filter(|_| self.window != self.steady_window())
    }

    /// Returns true if all screens show the steady state.
    pub fn shows_steady_state(&self) -> bool {
        self.window.is_some() && self.chosen_window().is_none()
    }

    /// Parts of the steady state, if that is shown and has holes, in which counters were measured or nothing was recorded.
    pub(super) fn judged_parts(&self) -> Option<Arc<JudgedTime>> {
        let triage = self.whole_triage().filter(|t| self.shows_steady_state() && t.judged.count() > 1)?;
        Some(Arc::new(triage.judged.clone()))
    }

    /// Returns true if all screens show the steady state, and the launch is not in it.
    pub fn is_outside_steady_state(&self, launch: u32) -> bool {
        let known = self.window.filter(|_| self.shows_steady_state()).zip(self.profile.as_ref());
        known.is_some_and(|((from, to), profile)| {
            let start = profile.launches.start(launch as usize);
            !(from..to).contains(&start) || self.judged_parts().is_some_and(|p| !p.contains(start))
        })
    }

    /// Triage of the whole run, regardless of any time filter.
    pub fn whole_triage(&self) -> Option<&Arc<Triage>> {
        let own = || self.whole.as_ref().map_or(self.triage.as_ref().and_then(Option::as_ref), |w| w.triage.as_ref());
        self.steady.as_ref().or_else(own)
    }

    /// Steady-state window by which the run is evaluated, ns; `None` if that is the whole run.
    pub fn steady_window(&self) -> Option<(i64, i64)> {
        self.whole_triage().filter(|t| t.outside.is_some()).map(|t| t.window)
    }

    /// Returns true if the run is evaluated by its steady state while the tables show the whole run.
    pub fn judges_less_than_shown(&self) -> bool {
        self.window.is_none() && self.steady.is_none() && self.steady_window().is_some()
    }

    /// The part of a window in which the devices were in use, from the first operation of the run to the last, ns, so
    /// that shares of a window relate to the same time as shares of the run. `None` if the window lies outside.
    pub fn part_in_use(&self, (from, to): (i64, i64)) -> Option<(i64, i64)> {
        let Some(span) = self.whole_triage().map(|t| t.span) else { return Some((from, to)) };
        let (from, to) = (from.max(span.0), to.min(span.1));
        (from < to).then_some((from, to))
    }

    /// Sets the time filter of the report, ns, or clears it, which restores the analysis of the whole run immediately.
    fn set_window(&mut self, index: usize, window: Option<(i64, i64)>) -> Vec<Effect> {
        if window == self.window || self.is_reading() || self.profile.is_none() {
            return Vec::new();
        }
        if let Some(steady) = self.steady.take() {
            self.triage = Some(Some(steady));
        }
        let by = self.groups.by;
        // The old groups stay until the new ones are computed, so that lists do not jump twice.
        let known = Known {
            overview: self.overview.take(),
            next: self.next.take(),
            judged: self.triage.is_some(),
            triage: self.triage.take().flatten(),
            work: self.work.take(),
            tree: self.tree.take(),
            grouping: self.groups.grouping.clone(),
        };
        // The steady state has already been evaluated.
        let whole = self.whole.take();
        let judged_whole = whole.as_ref().map_or(known.triage.as_ref(), |w| w.triage.as_ref());
        let steady = judged_whole.filter(|t| t.outside.is_some() && window == Some(t.window)).cloned();
        self.window = window;
        self.forget_detail();
        let mut missing = vec![JobRequest::Group(by)];
        match window {
            Some(_) => {
                self.whole = whole.or(Some(Box::new(known)));
                // The steady state has already been evaluated.
                self.triage = steady.map(Some);
                self.next = self.verdict_sentence();
            }
            None => {
                let Known { overview, next, judged, triage, work, tree, grouping } = whole.map(|w| *w).unwrap_or_default();
                (self.overview, self.next, self.triage, self.work, self.tree) = (overview, next, judged.then_some(triage), work, tree);
                if let (Some(profile), Some(grouping)) = (self.profile.clone(), grouping.filter(|g| g.by == by)) {
                    self.groups.set_grouping(&profile, grouping);
                    self.mark_profiled(index);
                    missing.clear();
                }
            }
        }
        if self.overview.is_none() {
            missing.push(JobRequest::Overview);
        }
        if self.triage.is_none() && self.is_timeline() {
            missing.push(JobRequest::Triage);
        }
        missing.into_iter().flat_map(|ask| self.request_work(index, ask)).collect()
    }
}
