//! One report of the session: how far it is read, and what was computed from it.

use super::groups::Groups;
use super::settings::Settings;
use crate::analysis::flops::Rate;
use crate::analysis::group_detail::Detail;
use crate::analysis::hints::FirstHint;
use crate::analysis::next::key_of;
use crate::analysis::range_tree::RangeTree;
use crate::analysis::timeline::{Gaps, Part, Timeline};
use crate::analysis::triage::{Severity, Triage, Verdict};
use crate::analysis::worths::Worths;
use crate::analysis::{GroupBy, Grouping, Overview, Paths};
use crate::app::msg::Effect;
use crate::app::sight::Kept;
use crate::app::work::{Ask, Done, Work};
use crate::import::{Preview, Progress};
use crate::model::{Metrics, Nanos, Profile};
use crate::rerun::join::{Join, Pair, Sure};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// How far a report is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Being read: what, how much, out of how much.
    Reading(&'static str, u64, u64),
    Ready,
    /// Could not be read, and why.
    Failed(String),
}

#[derive(Clone, Debug)]
pub struct Report {
    pub file: PathBuf,
    /// Whether the program that it names may be run without showing it first: it is of the user's own run, or was shown.
    pub trusted: bool,
    /// Whether it is part of the program: the demo's.
    pub built_in: bool,
    /// The report whose file it is in, too: counters beside a timeline.
    pub part_of: Option<usize>,
    pub stage: Stage,
    /// The profile: at first with the columns of the first table, later whole.
    pub profile: Option<Arc<Profile>>,
    /// Counts the profiles, so that results about an older one can be told apart.
    pub generation: u64,
    /// The table while the first profile is being read.
    pub preview: Option<Preview>,
    pub overview: Option<Arc<Overview>>,
    /// What to look at next.
    pub next: Option<String>,
    /// What limits the run: `None` until that is known, `Some(None)` where nothing ran on a device.
    pub triage: Option<Option<Arc<Triage>>>,
    /// What faster kernels mean for the whole run; empty until it is known.
    pub worths: Arc<Worths>,
    /// Floating-point work of the run, by the results that were joined.
    pub work: Option<Rate>,
    /// Ranges as a tree, once somebody asked for it.
    pub tree: Option<Arc<RangeTree>>,
    /// What happened when, as far as it has been put in order; empty until somebody asked for it.
    pub lanes: Arc<Timeline>,
    /// The generation of the profile for which that was asked.
    lanes_asked: Option<u64>,
    /// When the devices had nothing to do, and why.
    pub gaps: Option<Arc<Gaps>>,
    /// Where in the timeline one was last.
    pub kept: Option<Box<Kept>>,
    /// Whether its first screen has been shown.
    pub greeted: bool,
    pub paths: Option<Arc<Paths>>,
    /// The generation of the profile for which they were asked.
    paths_asked: Option<u64>,
    /// Details of a group, with the grouping and row that they are about.
    pub detail: Option<(GroupBy, usize, Arc<Detail>)>,
    /// The grouping and row for which details were asked last, and the question's number.
    asked: Option<(GroupBy, usize, u64)>,
    /// Numbers questions and screens.
    serial: u64,
    /// Groups of its launches.
    pub groups: Groups,
    /// The window that everything about launches and ranges is narrowed to, ns: from, to (exclusive).
    pub window: Option<(i64, i64)>,
    /// What is known of the whole run while only a window is shown.
    pub(super) whole: Option<Box<Known>>,
    /// Which launches of this timeline the results of other reports of the session are of.
    pub joins: Vec<(usize, Arc<Join>)>,
    /// ncu's durations of results that were joined, by report and result.
    pub ncu_durations: HashMap<(usize, usize), Nanos>,
    /// First hints of results: of this report (`None`) or of another.
    pub verdicts: HashMap<(Option<usize>, usize), FirstHint>,
    /// Rows of the kernels table with the first hint of their longest result.
    pub diagnosed: HashMap<usize, FirstHint>,
    /// Kernels with the first hint of their longest result.
    pub hinted: HashMap<u32, FirstHint>,
    /// Rows of the grouping that have joined results, with whether one of them is known to be of its launch.
    pub profiled: HashMap<usize, bool>,
    /// Of each row of the grouping that has results the one that stands for it.
    best: HashMap<usize, Best>,
}

/// What is found out of a report anew when it is narrowed to a window.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) overview: Option<Arc<Overview>>,
    pub(super) next: Option<String>,
    /// Whether it was judged, and what came of that.
    pub(super) judged: bool,
    pub(super) triage: Option<Arc<Triage>>,
    pub(super) work: Option<Rate>,
    pub(super) tree: Option<Arc<RangeTree>>,
    pub(super) grouping: Option<Arc<Grouping>>,
}

/// A result: the report that it is in, its index, and how sure it is that it is of the launch meant; `None` where it is of this very report.
pub type Best = (usize, usize, Option<Sure>);

impl Report {
    /// A report that is not read yet.
    #[must_use]
    pub fn new(file: PathBuf, settings: &Settings) -> Self {
        Self {
            file,
            trusted: false,
            part_of: None,
            built_in: false,
            stage: Stage::Reading("opening", 0, 0),
            profile: None,
            generation: 0,
            preview: None,
            overview: None,
            next: None,
            triage: None,
            worths: Arc::default(),
            work: None,
            tree: None,
            lanes: Arc::default(),
            lanes_asked: None,
            gaps: None,
            kept: None,
            greeted: false,
            paths: None,
            paths_asked: None,
            detail: None,
            asked: None,
            serial: 0,
            groups: Groups::new(settings.group),
            window: None,
            whole: None,
            joins: Vec::new(),
            ncu_durations: HashMap::new(),
            profiled: HashMap::new(),
            verdicts: HashMap::new(),
            diagnosed: HashMap::new(),
            hinted: HashMap::new(),
            best: HashMap::new(),
        }
    }

    /// When its clock began, ns since 1970; `None` where the report does not say.
    #[must_use]
    pub fn began(&self) -> Option<i64> {
        self.profile.as_ref()?.clock.epoch_ns
    }

    #[must_use]
    pub fn reading(&self) -> bool {
        matches!(self.stage, Stage::Reading(..))
    }

    /// Asks for a piece of analysis about this report, which has that index.
    #[must_use]
    pub fn ask(&self, report: usize, ask: Ask) -> Vec<Effect> {
        let Some(profile) = self.profile.clone() else {
            return Vec::new();
        };
        let (generation, paths, window) = (self.generation, self.paths.clone(), self.window);
        vec![Effect::Work(Box::new(Work { report, generation, profile, paths, window, ask }))]
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
                let by = if self.groups.by.is_kernel() { self.groups.by } else { GroupBy::Kernel };
                self.ask(index, Ask::Group(by))
            }
        }
    }

    /// Whether it is a timeline: what limits the run can be said of it.
    #[must_use]
    pub fn timeline(&self) -> bool {
        self.profile.as_ref().is_some_and(|p| p.metrics.is_none() && p.totals.is_empty())
    }

    /// Whether anything ran on a device, at a time that is known.
    #[must_use]
    pub fn ran(&self) -> bool {
        self.profile.as_ref().is_some_and(|p| !p.launches.is_empty() || !p.memops.is_empty() || !p.graphs.is_empty())
    }

    /// Whether it says anything of memory.
    #[must_use]
    pub fn remembers(&self) -> bool {
        self.profile.as_ref().is_some_and(|p| !p.memory.is_empty())
    }

    /// What limits the run, in a sentence, where that is not the kernels.
    fn verdict(&self) -> Option<String> {
        let first = self.triage.as_ref()?.as_ref()?.verdict().filter(|f| f.id != Verdict::GpuBound || f.severity > Severity::Low)?;
        Some(format!("{} ({}): {}", first.id, key_of("overview"), first.headline))
    }

    fn take_profile(&mut self, profile: Arc<Profile>) {
        self.profile = Some(profile);
        self.generation += 1;
        self.detail = None;
        self.asked = None;
        self.tree = None;
        (self.window, self.whole) = (None, None);
        (self.lanes, self.gaps, self.worths) = (Arc::default(), None, Arc::default());
    }

    /// Takes the whole profile, or why there is none.
    pub fn loaded(&mut self, index: usize, outcome: Result<Arc<Profile>, String>) -> Vec<Effect> {
        match outcome {
            Ok(profile) => {
                let ranges = !profile.ranges.is_empty();
                self.take_profile(profile);
                self.stage = Stage::Ready;
                self.preview = None;
                let mut effects = Vec::new();
                if self.groups.by == GroupBy::Nvtx && ranges {
                    effects.extend(self.want_paths(index));
                } else {
                    effects.extend(self.ask(index, Ask::Group(self.groups.by)));
                }
                effects.extend(self.ask(index, Ask::Overview));
                if self.timeline() {
                    effects.extend(self.ask(index, Ask::Triage));
                }
                if self.profile.as_ref().is_some_and(|p| p.metrics.is_some()) {
                    effects.extend(self.ask(index, Ask::Verdicts));
                }
                if ranges && self.groups.by != GroupBy::Nvtx {
                    effects.extend(self.want_paths(index));
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

    /// Takes the result of an analysis; false when it is about a state of the report that is gone.
    pub fn done(&mut self, index: usize, (generation, window): (u64, Option<(i64, i64)>), done: &Done) -> Option<Vec<Effect>> {
        if generation != self.generation || window != self.window && done.narrowed() {
            return None;
        }
        let profile = self.profile.clone()?;
        let mut effects = Vec::new();
        match done {
            Done::Overview(overview, next) => {
                self.overview = Some(Arc::clone(overview));
                if self.verdict().is_none() {
                    self.next = Some(next.clone());
                }
            }
            Done::Triage(found) => {
                self.triage = Some(found.clone());
                // They are of the whole run: a session that began with a window of it has none yet.
                effects = if self.window.is_none() || self.worths.is_empty() { self.ask(index, Ask::Worths) } else { Vec::new() };
                if let Some(sentence) = self.verdict() {
                    self.next = Some(sentence);
                }
            }
            Done::Work(work) => self.work = *work,
            Done::Tree(tree) => self.tree = Some(Arc::clone(tree)),
            Done::Timeline(built) => Arc::make_mut(&mut self.lanes).add((**built).clone()),
            Done::Gaps(gaps) => self.gaps = Some(Arc::clone(gaps)),
            Done::Worths(worths) => self.worths = Arc::clone(worths),
            Done::Paths(paths) => {
                self.paths = Some(Arc::clone(paths));
                // Details that were made without ranges are made again with them.
                self.forget_detail();
                if self.groups.by == GroupBy::Nvtx {
                    effects = self.ask(index, Ask::Group(GroupBy::Nvtx));
                }
            }
            Done::Group(grouping) if grouping.by == self.groups.by || self.groups.grouping.is_none() => {
                self.groups.take(&profile, Arc::clone(grouping));
                self.mark_profiled(index);
                self.forget_detail();
            }
            Done::Verdicts(verdicts) => {
                self.verdicts.extend(verdicts.iter().map(|(r, v)| ((None, *r), v.clone())));
                self.mark_profiled(index);
            }
            Done::Joined(other, join, durations, verdicts) => {
                self.verdicts.extend(verdicts.iter().map(|(r, v)| ((Some(*other), *r), v.clone())));
                self.ncu_durations.extend(durations.iter().map(|(result, d)| ((*other, *result), *d)));
                self.joins.retain(|(o, _)| o != other);
                self.joins.push((*other, Arc::clone(join)));
                self.joins.sort_by_key(|j| j.0);
                self.mark_profiled(index);
            }
            Done::Detail(serial, by, row, detail) if self.asked.is_some_and(|a| a.2 == *serial) => {
                self.detail = Some((*by, *row, Arc::clone(detail)));
            }
            // For screens.
            _ => {}
        }
        Some(effects)
    }

    pub(super) fn forget_detail(&mut self) {
        self.detail = None;
        self.asked = None;
    }

    /// Asks for the details of a group when the cursor rests, unless they are there or on their way.
    pub fn want_detail(&mut self, index: usize, row: Option<usize>) -> Vec<Effect> {
        let rest = |effect| match effect {
            Effect::Work(work) => Effect::Rest(work),
            other => other,
        };
        self.want_detail_now(index, row).into_iter().map(rest).collect()
    }

    /// Asks for them at once: the groups are new, not the cursor's place.
    pub fn want_detail_now(&mut self, index: usize, row: Option<usize>) -> Vec<Effect> {
        let (Some(grouping), Some(row)) = (self.groups.grouping.clone(), row) else { return Vec::new() };
        if self.asked.is_some_and(|(by, r, _)| (by, r) == (grouping.by, row)) {
            return Vec::new();
        }
        self.serial += 1;
        self.asked = Some((grouping.by, row, self.serial));
        self.ask(index, Ask::Detail { grouping, row, serial: self.serial })
    }

    /// The longest launch of a row, when its details are there.
    #[must_use]
    pub fn slowest_of(&self, row: usize) -> Option<u32> {
        self.detail.as_ref().filter(|d| d.1 == row).and_then(|d| d.2.slowest).map(|l| l.0)
    }

    /// Asks which launches the results of another report are of.
    #[must_use]
    pub fn want_join(&self, index: usize, other: usize, metrics: &Arc<Metrics>) -> Vec<Effect> {
        self.ask(index, Ask::Join { other, metrics: metrics.clone() })
    }

    /// The pair of a launch, the surest first, and the report that its result is in.
    #[must_use]
    pub fn pair(&self, launch: u32) -> Option<(usize, Pair)> {
        self.joins.iter().filter_map(|(other, join)| Some((*other, *join.of_launch(launch)?))).min_by_key(|p| p.1.sure)
    }

    /// The launch of this timeline that a result of another report is of.
    #[must_use]
    pub fn launch_of(&self, other: usize, result: usize) -> Option<Pair> {
        self.joins.iter().find(|(o, _)| *o == other)?.1.of_result(result).copied()
    }

    /// The result that stands for a row: of this report its longest, of others the longest that is surely of its launch, else the longest.
    #[must_use]
    pub fn best(&self, row: usize) -> Option<Best> {
        self.best.get(&row).copied()
    }

    pub(super) fn mark_profiled(&mut self, index: usize) {
        (self.profiled, self.diagnosed, self.best) = Default::default();
        let (Some(profile), Some(grouping)) = (&self.profile, &self.groups.grouping) else { return };
        let row_of = |launch: usize| grouping.row_of(profile, self.paths.as_deref(), launch);
        for pair in self.joins.iter().flat_map(|(_, j)| &j.pairs) {
            if let Some(row) = row_of(pair.launch as usize) {
                *self.profiled.entry(row).or_default() |= pair.sure.exact();
            }
        }
        let verdicts = &self.verdicts;
        let results = profile.metrics.as_ref().map_or(0, |m| m.results.len());
        let own = (0..results).map(|r| (r, verdicts.get(&(None, r)), (index, r, None)));
        let joined = self.joins.iter().flat_map(|(other, j)| {
            j.pairs.iter().map(move |p| (p.launch as usize, verdicts.get(&(Some(*other), p.result)), (*other, p.result, Some(p.sure))))
        });
        // Of each row its longest launch with a result.
        let mut longest: HashMap<usize, (i64, Option<&FirstHint>)> = HashMap::new();
        let mut of_kernel: HashMap<u32, (i64, Option<&FirstHint>)> = HashMap::new();
        let mut best: HashMap<usize, ((bool, i64), Best)> = HashMap::new();
        for (launch, verdict, result) in own.chain(joined).filter(|(l, ..)| *l < profile.launches.len()) {
            let duration = profile.launches.duration(launch);
            let kernel = profile.launches.kernel(launch).0;
            if of_kernel.get(&kernel).is_none_or(|(d, _)| duration > *d) {
                of_kernel.insert(kernel, (duration, verdict));
            }
            let Some(row) = row_of(launch) else { continue };
            if longest.get(&row).is_none_or(|(d, _)| duration > *d) {
                longest.insert(row, (duration, verdict));
            }
            let rank = (result.2.is_none_or(|s: Sure| s.exact()), duration);
            if best.get(&row).is_none_or(|(r, _)| rank > *r) {
                best.insert(row, (rank, result));
            }
        }
        self.diagnosed = longest.into_iter().filter_map(|(row, (_, v))| Some((row, v?.clone()))).collect();
        self.hinted = of_kernel.into_iter().filter_map(|(kernel, (_, v))| Some((kernel, v?.clone()))).collect();
        self.best = best.into_iter().map(|(row, (_, b))| (row, b)).collect();
    }

    /// Asks for the ranges around each launch, once for each profile: to ask again would begin again.
    fn want_paths(&mut self, index: usize) -> Vec<Effect> {
        if self.paths_asked.replace(self.generation) == Some(self.generation) {
            return Vec::new();
        }
        self.ask(index, Ask::Paths)
    }

    /// Asks for the timeline, once for each profile.
    pub fn want_lanes(&mut self, index: usize) -> Vec<Effect> {
        if self.lanes_asked.replace(self.generation) == Some(self.generation) {
            return Vec::new();
        }
        let parts = Part::ALL.into_iter().flat_map(|part| self.ask(index, Ask::Timeline(part)));
        parts.chain(self.ask(index, Ask::Gaps)).collect()
    }

    /// Groups in another way.
    pub fn group(&mut self, index: usize, by: GroupBy) -> Vec<Effect> {
        self.groups.by = by;
        self.groups.unmark();
        if by == GroupBy::Nvtx && self.paths.is_none() && self.profile.as_ref().is_some_and(|p| !p.ranges.is_empty()) {
            return self.want_paths(index);
        }
        self.ask(index, Ask::Group(by))
    }
}
