//! One report of the session: how far it is read, what was computed from it, and its screens.

use super::hints::Verdict;
use super::work::{Ask, Detail, Done, Work};
use super::{Effect, KernelsScreen, LaunchesScreen, RerunScreen, ResultScreen, Settings};
use crate::analysis::{GroupBy, Grouping, Overview, Paths};
use crate::import::{Preview, Progress};
use crate::model::Metrics;
use crate::model::Profile;
use crate::rerun::join::Join;
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// How far a report is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Being read: what, how much, out of how much.
    Reading(&'static str, u64, u64),
    /// Read.
    Ready,
    /// Could not be read, and why.
    Failed(String),
}

/// One report.
#[derive(Clone, Debug)]
pub struct Report {
    /// The file.
    pub file: PathBuf,
    /// Whether the program that it names may be run without showing it first: it is of the user's own run, or was shown.
    pub trusted: bool,
    /// Whether it is part of the program: the demo's.
    pub built_in: bool,
    /// How far it is.
    pub stage: Stage,
    /// The profile: at first with the columns of the first table, later whole.
    pub profile: Option<Arc<Profile>>,
    /// Counts the profiles, so that results about an older one can be told apart.
    pub generation: u64,
    /// The table while the first profile is being read.
    pub preview: Option<Preview>,
    /// Header figures.
    pub overview: Option<Arc<Overview>>,
    /// What to look at next.
    pub next: Option<String>,
    /// NVTX paths.
    pub paths: Option<Arc<Paths>>,
    /// Details of a group, with the grouping and row that they are about.
    pub detail: Option<(GroupBy, usize, Arc<Detail>)>,
    /// The grouping and row for which details were asked last, and the question's number.
    asked: Option<(GroupBy, usize, u64)>,
    /// Numbers questions and screens.
    serial: u64,
    /// The kernels screen.
    pub kernels: KernelsScreen,
    /// The launches screen, when it is on.
    pub launches: Option<LaunchesScreen>,
    /// The re-run screen, when it is on.
    pub rerun: Option<RerunScreen>,
    /// The screen about a result, when it is on.
    pub result: Option<ResultScreen>,
    /// Which launches of this timeline the results of other reports of the session are of.
    pub joins: Vec<(usize, Arc<Join>)>,
    /// ncu's durations of results that were joined, by report and result.
    pub ncu_durations: HashMap<(usize, usize), crate::model::Nanos>,
    /// First hints of results: of this report (`None`) or of another.
    pub verdicts: HashMap<(Option<usize>, usize), Verdict>,
    /// Rows of the kernels table with the first hint of their longest result.
    pub diagnosed: HashMap<usize, Verdict>,
    /// Rows of the kernels table that have results, with whether one of them is known to be of its launch.
    pub profiled: HashMap<usize, bool>,
}

impl Report {
    /// A report that is not read yet.
    #[must_use]
    pub fn new(file: PathBuf, settings: &Settings) -> Self {
        Self {
            file,
            trusted: false,
            built_in: false,
            stage: Stage::Reading("opening", 0, 0),
            profile: None,
            generation: 0,
            preview: None,
            overview: None,
            next: None,
            paths: None,
            detail: None,
            asked: None,
            serial: 0,
            kernels: KernelsScreen::new(settings.group, settings.sort),
            launches: None,
            rerun: None,
            result: None,
            joins: Vec::new(),
            ncu_durations: HashMap::new(),
            profiled: HashMap::new(),
            verdicts: HashMap::new(),
            diagnosed: HashMap::new(),
        }
    }

    /// Whether it is still being read.
    #[must_use]
    pub fn reading(&self) -> bool {
        matches!(self.stage, Stage::Reading(..))
    }

    fn ask(&self, report: usize, ask: Ask) -> Vec<Effect> {
        let Some(profile) = self.profile.clone() else {
            return Vec::new();
        };
        vec![Effect::Work(Box::new(Work { report, generation: self.generation, profile, paths: self.paths.clone(), ask }))]
    }

    /// Takes what the reader says.
    pub fn progress(&mut self, index: usize, progress: Progress) -> Vec<Effect> {
        if !self.reading() {
            return Vec::new();
        }
        match progress {
            Progress::Stage { name, done, total } => {
                self.stage = Stage::Reading(name, done, total);
                Vec::new()
            }
            Progress::Preview(preview) => {
                self.preview = Some(preview);
                Vec::new()
            }
            Progress::Snapshot(profile) => {
                self.take_profile(profile);
                // The other groupings need what is still being read.
                let by = if self.kernels.by.is_kernel() { self.kernels.by } else { GroupBy::Name };
                self.ask(index, Ask::Group(by))
            }
        }
    }

    fn take_profile(&mut self, profile: Arc<Profile>) {
        self.profile = Some(profile);
        self.generation += 1;
        self.detail = None;
        self.asked = None;
    }

    /// Takes the whole profile, or why there is none.
    pub fn loaded(&mut self, index: usize, outcome: Result<Arc<Profile>, String>) -> Vec<Effect> {
        match outcome {
            Ok(profile) => {
                let ranges = !profile.ranges.ranges.is_empty();
                self.take_profile(profile);
                self.stage = Stage::Ready;
                self.preview = None;
                let mut effects = Vec::new();
                if self.kernels.by == GroupBy::Nvtx && ranges {
                    effects.extend(self.ask(index, Ask::Paths));
                } else {
                    effects.extend(self.ask(index, Ask::Group(self.kernels.by)));
                }
                effects.extend(self.ask(index, Ask::Overview));
                if self.profile.as_ref().is_some_and(|p| p.metrics.is_some()) {
                    effects.extend(self.ask(index, Ask::Verdicts));
                }
                if ranges && self.kernels.by != GroupBy::Nvtx {
                    effects.extend(self.ask(index, Ask::Paths));
                }
                effects
            }
            Err(text) => {
                // What was read before the failure or the cancellation stays on the screen.
                self.stage = Stage::Failed(text);
                self.preview = None;
                self.ask(index, Ask::Overview)
            }
        }
    }

    /// Takes the result of an analysis.
    pub fn done(&mut self, index: usize, generation: u64, done: Done) -> Vec<Effect> {
        if generation != self.generation {
            return Vec::new();
        }
        let Some(profile) = self.profile.clone() else {
            return Vec::new();
        };
        match done {
            Done::Overview(overview, next) => {
                self.overview = Some(overview);
                self.next = Some(next);
                Vec::new()
            }
            Done::Paths(paths) => {
                self.paths = Some(paths);
                // Details that were made without ranges are made again with them.
                self.detail = None;
                self.asked = None;
                let mut effects = self.want_detail_now(index);
                if self.kernels.by == GroupBy::Nvtx {
                    effects.extend(self.ask(index, Ask::Group(GroupBy::Nvtx)));
                }
                if self.launches.is_some() {
                    effects.extend(self.want_launches(index));
                }
                effects
            }
            Done::Group(grouping) => {
                if grouping.by == self.kernels.by || self.kernels.grouping.is_none() {
                    self.kernels.take(&profile, grouping);
                    self.mark_profiled();
                    self.detail = None;
                    self.asked = None;
                }
                self.want_detail_now(index)
            }
            Done::Verdicts(verdicts) => {
                self.verdicts.extend(verdicts.iter().map(|(r, v)| ((None, *r), v.clone())));
                self.mark_profiled();
                Vec::new()
            }
            Done::Joined(other, join, durations, verdicts) => {
                self.verdicts.extend(verdicts.iter().map(|(r, v)| ((Some(other), *r), v.clone())));
                self.ncu_durations.extend(durations.iter().map(|(result, d)| ((other, *result), *d)));
                self.joins.retain(|(o, _)| *o != other);
                self.joins.push((other, join));
                self.joins.sort_by_key(|j| j.0);
                self.mark_profiled();
                Vec::new()
            }
            // The session's, not the report's.
            Done::Diff(..) => Vec::new(),
            Done::Detail(serial, by, row, detail) => {
                if self.asked.is_some_and(|a| a.2 == serial) {
                    self.detail = Some((by, row, detail));
                }
                Vec::new()
            }
            Done::Launches(key, list) => {
                if let Some(screen) = &mut self.launches {
                    screen.take(key, list);
                }
                Vec::new()
            }
            Done::Rerun(serial, request, picked, plan) => {
                if let Some(screen) = &mut self.rerun {
                    screen.take(serial, *request, picked, plan);
                }
                Vec::new()
            }
        }
    }

    /// Asks for the details of the selected group when the cursor rests, unless they are there or on their way.
    pub fn want_detail(&mut self, index: usize) -> Vec<Effect> {
        let rest = |effect| match effect {
            Effect::Work(work) => Effect::Rest(work),
            other => other,
        };
        self.want_detail_now(index).into_iter().map(rest).collect()
    }

    /// Asks for them at once: the groups are new, not the cursor's place.
    fn want_detail_now(&mut self, index: usize) -> Vec<Effect> {
        let (Some(grouping), Some(row)) = (self.kernels.grouping.clone(), self.kernels.row()) else { return Vec::new() };
        if self.asked.is_some_and(|(by, r, _)| (by, r) == (grouping.by, row)) {
            return Vec::new();
        }
        self.serial += 1;
        self.asked = Some((grouping.by, row, self.serial));
        self.ask(index, Ask::Detail { grouping, row, serial: self.serial })
    }

    /// Asks which launches the results of another report are of.
    #[must_use]
    pub fn want_join(&self, index: usize, other: usize, metrics: &Arc<Metrics>) -> Vec<Effect> {
        self.ask(index, Ask::Join { other, metrics: metrics.clone() })
    }

    /// The pair of a launch, the surest first, and the report that its result is in.
    #[must_use]
    pub fn pair(&self, launch: u32) -> Option<(usize, crate::rerun::join::Pair)> {
        self.joins.iter().filter_map(|(other, join)| Some((*other, *join.of_launch(launch)?))).min_by_key(|p| p.1.sure)
    }

    /// The launch of this timeline that a result of another report is of.
    #[must_use]
    pub fn launch_of(&self, other: usize, result: usize) -> Option<crate::rerun::join::Pair> {
        self.joins.iter().find(|(o, _)| *o == other)?.1.of_result(result).copied()
    }

    fn mark_profiled(&mut self) {
        self.profiled.clear();
        self.diagnosed.clear();
        let (Some(profile), Some(grouping)) = (&self.profile, &self.kernels.grouping) else { return };
        for pair in self.joins.iter().flat_map(|(_, j)| &j.pairs) {
            if let Some(row) = grouping.row_of(profile, self.paths.as_deref(), pair.launch as usize) {
                *self.profiled.entry(row).or_default() |= pair.sure.exact();
            }
        }
        // Of each row its longest launch with a result, as the metrics key takes it.
        let mut best: HashMap<usize, (i64, Option<&Verdict>)> = HashMap::new();
        let verdicts = &self.verdicts;
        let results = profile.metrics.as_ref().map_or(0, |m| m.results.len());
        let own = (0..results).map(|r| (r, verdicts.get(&(None, r))));
        let joined = self
            .joins
            .iter()
            .flat_map(|(other, j)| j.pairs.iter().map(move |p| (p.launch as usize, verdicts.get(&(Some(*other), p.result)))));
        for (launch, verdict) in own.chain(joined).filter(|(l, _)| *l < profile.launches.len()) {
            let Some(row) = grouping.row_of(profile, self.paths.as_deref(), launch) else { continue };
            let duration = profile.launches.duration(launch);
            if best.get(&row).is_none_or(|(d, _)| duration > *d) {
                best.insert(row, (duration, verdict));
            }
        }
        self.diagnosed = best.into_iter().filter_map(|(row, (_, v))| Some((row, v?.clone()))).collect();
    }

    /// A number that no screen or question had before.
    pub(super) fn next_serial(&mut self) -> u64 {
        self.serial += 1;
        self.serial
    }

    /// Opens the launches screen on a group.
    pub fn open_launches(&mut self, index: usize, grouping: Arc<Grouping>, row: usize) -> Vec<Effect> {
        self.serial += 1;
        self.launches = Some(LaunchesScreen::new(grouping, row, self.serial));
        self.want_launches(index)
    }

    /// Asks for the launches that the launches screen is about.
    #[must_use]
    pub fn want_launches(&self, index: usize) -> Vec<Effect> {
        let Some(s) = &self.launches else {
            return Vec::new();
        };
        self.ask(index, Ask::Launches { grouping: s.grouping.clone(), row: s.row, key: s.key(), before: s.list.clone() })
    }

    /// Groups in another way.
    pub fn group(&mut self, index: usize, by: GroupBy) -> Vec<Effect> {
        self.kernels.by = by;
        self.kernels.unmark();
        if by == GroupBy::Nvtx && self.paths.is_none() && self.profile.as_ref().is_some_and(|p| !p.ranges.ranges.is_empty()) {
            return self.ask(index, Ask::Paths);
        }
        self.ask(index, Ask::Group(by))
    }

    /// Whether the screen shows groups of another kind than the one that was asked for last.
    #[must_use]
    pub fn grouping_pending(&self) -> bool {
        self.kernels.grouping.as_ref().is_some_and(|g| g.by != self.kernels.by)
    }
}
