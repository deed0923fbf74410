//! One report of the session: loading state and analysis results

use super::groups::Groups;
use super::measured_group::{self, Best, Measured};
use super::settings::Settings;
use crate::analysis::flops::Rate;
use crate::analysis::hints::amd::Amd;
use crate::analysis::hints::{Diagnosis, FirstHint, Severity as HintSeverity};
use crate::analysis::kernel_group_detail::Detail;
use crate::analysis::next_step::key_of;
use crate::analysis::range_tree::RangeTree;
use crate::analysis::ranks::{Job, Member, complete_finding};
use crate::analysis::readable::readable_name;
use crate::analysis::timeline::{Gaps, Timeline, TimelinePart};
use crate::analysis::triage::{Severity, Triage, Verdict};
use crate::analysis::what_if_curves::Worths;
use crate::analysis::worth::Worth;
use crate::analysis::{GroupBy, Grouping, Overview, Paths};
use crate::app::jobs::{JobRequest, JobResult, Work};
use crate::app::msg::Effect;
use crate::app::timeline_view::SavedView;
use crate::config::First;
use crate::import::{Preview, Progress};
use crate::model::{Metrics, Nanos, Profile};
use crate::rerun::match_results::{Join, Pair, Sure};
use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::Arc;

/// Message about a report without launch times.
pub const NO_TIMELINE: &str = "this report has no timeline: its launches have no times";

/// Loading state of a report.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Being read: name of the loading stage, amount done, total.
    Reading(&'static str, u64, u64),
    Ready,
    /// The report could not be read, for this reason.
    Failed(String),
}

#[derive(Clone, Debug)]
pub struct Report {
    pub file: PathBuf,
    /// True if its program may run without confirmation, because the report is from the user's own run or the user has
    /// confirmed the program.
    pub trusted: bool,
    /// True for the demo's reports, which are built into the program.
    pub built_in: bool,
    /// Index of the timeline's report, if this report contains the counters from the same file.
    pub part_of: Option<usize>,
    pub stage: Stage,
    /// The profile: at first only the columns for the kernel table, later complete.
    pub profile: Option<Arc<Profile>>,
    /// Generation of the profile, used to detect results computed for an older one.
    pub generation: u64,
    /// Table to show while the profile is being read.
    pub preview: Option<Preview>,
    pub overview: Option<Arc<Overview>>,
    /// Suggested next step.
    pub next: Option<String>,
    /// Triage of the run: `None` until it is computed, `Some(None)` if nothing ran on a device.
    pub triage: Option<Option<Arc<Triage>>>,
    /// Effect of faster kernels on the duration of the run; empty until it is computed.
    pub worths: Arc<Worths>,
    /// Share of the judged time that launching each kernel costs, by readable name; empty unless launching limits the
    /// run.
    launch_costs: HashMap<String, f64>,
    /// Floating-point rate of the run, from joined results.
    pub work: Option<Rate>,
    /// Tree of ranges, computed on request.
    pub tree: Option<Arc<RangeTree>>,
    /// The part of the timeline built so far; empty until it is requested.
    pub lanes: Arc<Timeline>,
    /// Generation of the profile for which the timeline was requested.
    lanes_asked: Option<u64>,
    /// Idle times of the devices, with causes.
    pub gaps: Option<Arc<Gaps>>,
    /// Last view of the timeline.
    pub kept: Option<Box<SavedView>>,
    /// True once the initial screen has been opened.
    pub greeted: bool,
    pub paths: Option<Arc<Paths>>,
    /// Generation of the profile for which `paths` was requested.
    paths_asked: Option<u64>,
    /// Details of a group, with its grouping and row.
    pub detail: Option<(GroupBy, usize, Arc<Detail>)>,
    /// Grouping and row of the last request for details, and the sequence number of the request.
    asked: Option<(GroupBy, usize, u64)>,
    /// Counter for request and screen ids.
    serial: u64,
    pub groups: Groups,
    /// Time filter of launches and ranges, ns: start and end (exclusive).
    pub window: Option<(i64, i64)>,
    pub(super) base: BaseScope,
    /// Triage of the steady state while that of the whole run takes its place, because the user asked for the whole run.
    pub(super) steady: Option<Arc<Triage>>,
    /// Triage of the whole run, with its warm-up, once it was asked for.
    pub(super) run_triage: Option<Arc<Triage>>,
    /// Analysis of the whole run, kept while a time filter is set.
    pub(super) whole: Option<Box<Known>>,
    /// Matches between launches of this timeline and results of other reports in the session.
    pub joins: Vec<(usize, Arc<Join>)>,
    /// Durations that ncu measured for joined results, by report and result.
    pub ncu_durations: HashMap<(usize, usize), Nanos>,
    /// First hints by result, in this report (`None`) or another one.
    pub verdicts: HashMap<(Option<usize>, usize), FirstHint>,
    /// First hint for each kernel-table row, taken from its longest result; results in the window take precedence.
    pub diagnosed: HashMap<usize, FirstHint>,
    /// First hint on the longest result, by kernel.
    pub hinted: HashMap<u32, FirstHint>,
    /// Rows of the grouping that have joined results; true if at least one of the matches is certain.
    pub profiled: HashMap<usize, bool>,
    /// Representative result of each row of the grouping that has results.
    best: HashMap<usize, Best>,
}

/// Time that the screens of a report show unless the user chooses a window.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BaseScope {
    /// The steady state once it is known, so that the tables agree with the verdict.
    SteadyState,
    WholeRun,
}

/// Analysis set aside while a time filter is active.
#[derive(Clone, Debug, Default)]
pub(super) struct Known {
    pub(super) overview: Option<Arc<Overview>>,
    pub(super) next: Option<String>,
    /// True if triage has been computed.
    pub(super) judged: bool,
    pub(super) triage: Option<Arc<Triage>>,
    pub(super) work: Option<Rate>,
    pub(super) tree: Option<Arc<RangeTree>>,
    pub(super) grouping: Option<Arc<Grouping>>,
}

impl Report {
    /// Creates a report that has not been read yet.
    pub fn new(file: PathBuf, settings: &Settings) -> Self {
        Self {
            file,
            trusted: false,
            part_of: None,
            built_in: false,
            steady: None,
            run_triage: None,
            base: if settings.first == First::Overview { BaseScope::SteadyState } else { BaseScope::WholeRun },
            stage: Stage::Reading("opening", 0, 0),
            profile: None,
            generation: 0,
            preview: None,
            overview: None,
            next: None,
            triage: None,
            worths: Arc::default(),
            launch_costs: HashMap::new(),
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

    /// Start of the report's clock, ns since 1970; `None` if the report does not record it.
    pub fn clock_start(&self) -> Option<i64> {
        self.profile.as_ref()?.clock.epoch_ns
    }

    pub fn is_reading(&self) -> bool {
        matches!(self.stage, Stage::Reading(..))
    }

    /// Requests an analysis of this report; `report` is its index.
    pub fn request_work(&self, report: usize, ask: JobRequest) -> Vec<Effect> {
        let Some(profile) = self.profile.clone() else {
            return Vec::new();
        };
        let (generation, paths, window) = (self.generation, self.paths.clone(), self.window);
        let parts = if matches!(ask, JobRequest::Group(_)) { self.judged_parts() } else { None };
        vec![Effect::Work(Box::new(Work { report, generation, profile, paths, window, parts, ask }))]
    }

    /// Handles progress in reading.
    pub fn apply_progress(&mut self, index: usize, progress: Progress) -> Vec<Effect> {
        if !self.is_reading() {
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
                // Other groupings need data that is still being read.
                let by = if self.groups.by.is_kernel() { self.groups.by } else { GroupBy::Kernel };
                self.request_work(index, JobRequest::Group(by))
            }
        }
    }

    /// Returns true if the report is a timeline, which triage can analyze.
    pub fn is_timeline(&self) -> bool {
        self.profile.as_ref().is_some_and(|p| p.metrics.is_none() && p.totals.is_empty())
    }

    /// Reason why the report has no timeline; `None` if it has one, or may still get one.
    pub fn no_timeline_reason(&self) -> Option<&'static str> {
        (self.profile.is_some() && !self.is_timeline()).then_some(NO_TIMELINE)
    }

    /// Returns true if the report contains device operations with times.
    pub fn has_device_work(&self) -> bool {
        self.profile.as_ref().is_some_and(|p| !p.launches.is_empty() || !p.memops.is_empty() || !p.graphs.is_empty())
    }

    /// Returns true if the report has memory data.
    pub fn has_memory(&self) -> bool {
        self.profile.as_ref().is_some_and(|p| !p.memory.is_empty())
    }

    /// Returns true for a report that contains nothing but memory, as a snapshot of PyTorch's allocator.
    pub fn is_memory_only(&self) -> bool {
        self.has_memory() && !self.has_device_work()
    }

    /// Sentence about the limit of the run; `None` if the kernels are the limit.
    pub(super) fn verdict_sentence(&self) -> Option<String> {
        let first = self.triage.as_ref()?.as_ref()?.verdict().filter(|f| f.id != Verdict::GpuBound || f.severity > Severity::Low)?;
        let gain = first.gain_percent();
        let figure = if gain >= 1.0 { format!(", {gain:.0}%") } else { String::new() };
        Some(format!("{} shows what limits the run: {}{figure}", key_of("overview"), first.id))
    }

    fn take_profile(&mut self, profile: Arc<Profile>) {
        self.profile = Some(profile);
        self.generation += 1;
        self.detail = None;
        self.asked = None;
        self.tree = None;
        (self.window, self.whole, self.steady, self.run_triage) = (None, None, None, None);
        (self.lanes, self.gaps, self.worths) = (Arc::default(), None, Arc::default());
    }

    /// Handles the complete profile, or the error from reading it.
    pub fn finish_loading(&mut self, index: usize, outcome: Result<Arc<Profile>, String>) -> Vec<Effect> {
        match outcome {
            Ok(profile) => {
                let ranges = !profile.ranges.is_empty() || !profile.graph_nodes.is_empty();
                self.take_profile(profile);
                self.stage = Stage::Ready;
                self.preview = None;
                let mut effects = Vec::new();
                if self.groups.by.needs_paths() && ranges {
                    effects.extend(self.want_paths(index));
                } else {
                    effects.extend(self.request_work(index, JobRequest::Group(self.groups.by)));
                }
                effects.extend(self.request_work(index, JobRequest::Overview));
                if self.is_timeline() {
                    effects.extend(self.request_work(index, JobRequest::Triage));
                }
                if self.profile.as_ref().is_some_and(|p| p.metrics.is_some()) {
                    effects.extend(self.request_work(index, JobRequest::Verdicts));
                }
                if ranges && !self.groups.by.needs_paths() {
                    effects.extend(self.want_paths(index));
                }
                effects
            }
            Err(text) => {
                // After an error or cancellation, keep the data read so far.
                self.stage = Stage::Failed(text);
                self.preview = None;
                self.request_work(index, JobRequest::Overview)
            }
        }
    }

    /// Completes findings on collectives by what the job shows of the ranks in this report.
    pub(super) fn complete_findings(&mut self, job: &Job, members: &[&Member]) {
        let complete = |triage: &mut Arc<Triage>| {
            for finding in &mut Arc::make_mut(triage).findings {
                complete_finding(finding, job, members);
            }
        };
        self.triage.iter_mut().flatten().for_each(complete);
        self.run_triage.iter_mut().for_each(complete);
    }

    /// Handles the result of an analysis; returns `None` if the report has changed since the request.
    pub fn apply_result(&mut self, index: usize, (generation, window): (u64, Option<(i64, i64)>), done: &JobResult) -> Option<Vec<Effect>> {
        if generation != self.generation || window != self.window && done.depends_on_window() {
            return None;
        }
        let profile = self.profile.clone()?;
        let mut effects = Vec::new();
        match done {
            JobResult::Overview(overview, next) => {
                self.overview = Some(Arc::clone(overview));
                if self.verdict_sentence().is_none() {
                    self.next = Some(next.clone());
                }
            }
            JobResult::Triage(found) => {
                self.triage = Some(found.clone());
                self.launch_costs = self.whole_triage().map(|t| t.launch_costs(&profile)).unwrap_or_default();
                // The effects of faster kernels cover the whole run; a session that began with a time filter does not
                // have them yet.
                effects =
                    if self.window.is_none() || self.worths.is_empty() { self.request_work(index, JobRequest::Worths) } else { Vec::new() };
                if let Some(sentence) = self.verdict_sentence() {
                    self.next = Some(sentence);
                }
                effects.extend(self.apply_base_scope(index));
            }
            JobResult::RunJudged(found) => {
                self.run_triage = Some(Arc::clone(found));
                if self.steady.is_some() && self.window.is_none() {
                    self.triage = Some(Some(Arc::clone(found)));
                    self.next = self.verdict_sentence().or(self.next.take());
                }
            }
            JobResult::Work(work) => self.work = *work,
            JobResult::Tree(tree) => self.tree = Some(Arc::clone(tree)),
            JobResult::Timeline(built) => Arc::make_mut(&mut self.lanes).add_part((**built).clone()),
            JobResult::Gaps(gaps) => self.gaps = Some(Arc::clone(gaps)),
            JobResult::Worths(worths) => {
                self.worths = Arc::clone(worths);
                self.mark_profiled(index);
            }
            JobResult::Paths(paths) => {
                self.paths = Some(Arc::clone(paths));
                // Details computed without paths are incomplete: compute them again.
                self.forget_detail();
                if self.groups.by.needs_paths() {
                    effects = self.request_work(index, JobRequest::Group(self.groups.by));
                }
            }
            JobResult::Group(grouping) if grouping.by == self.groups.by || self.groups.grouping.is_none() => {
                self.groups.set_grouping(&profile, Arc::clone(grouping));
                self.mark_profiled(index);
                self.forget_detail();
                effects.extend(self.apply_base_scope(index));
            }
            JobResult::Verdicts(verdicts) => {
                self.verdicts.extend(verdicts.iter().map(|(r, v)| ((None, *r), v.clone())));
                self.mark_profiled(index);
            }
            JobResult::Joined(other, join, durations, verdicts) => {
                self.verdicts.extend(verdicts.iter().map(|(r, v)| ((Some(*other), *r), v.clone())));
                self.ncu_durations.extend(durations.iter().map(|(result, d)| ((*other, *result), *d)));
                self.joins.retain(|(o, _)| o != other);
                self.joins.push((*other, Arc::clone(join)));
                self.joins.sort_by_key(|j| j.0);
                self.mark_profiled(index);
            }
            JobResult::Detail(serial, by, row, detail) if self.asked.is_some_and(|a| a.2 == *serial) => {
                self.detail = Some((*by, *row, Arc::clone(detail)));
            }
            // All other results are used only by screens.
            _ => {}
        }
        Some(effects)
    }

    pub(super) fn forget_detail(&mut self) {
        self.detail = None;
        self.asked = None;
    }

    /// Requests the details of a group once the cursor rests, unless they are already available or requested.
    pub fn want_detail(&mut self, index: usize, row: Option<usize>) -> Vec<Effect> {
        let rest = |effect| match effect {
            Effect::Work(work) => Effect::Rest(work),
            other => other,
        };
        self.want_detail_now(index, row).into_iter().map(rest).collect()
    }

    /// Requests the details immediately: the groups are new, and the cursor did not move.
    pub fn want_detail_now(&mut self, index: usize, row: Option<usize>) -> Vec<Effect> {
        let (Some(grouping), Some(row)) = (self.groups.grouping.clone(), row) else { return Vec::new() };
        if self.asked.is_some_and(|(by, r, _)| (by, r) == (grouping.by, row)) {
            return Vec::new();
        }
        self.serial += 1;
        self.asked = Some((grouping.by, row, self.serial));
        self.request_work(index, JobRequest::Detail { grouping, row, serial: self.serial })
    }

    /// Time span of the run, to which its shares refer, ns: from the first operation on a GPU to the last, or from the
    /// first step if that begins earlier. With a time filter, the filter's window.
    pub fn run_span(&self) -> Option<(i64, i64)> {
        let (start, end) = self.overview.as_ref()?.span?;
        let whole = self.whole_triage().filter(|_| self.window.is_none());
        Some(whole.map_or((start, end), |t| (start.min(t.span.0), end.max(t.span.1))))
    }

    /// Converts a percentage of the time between the first and the last operation to a percentage of
    /// [`Self::run_span`]. Unchanged if only parts of the run were recorded.
    pub fn share_of_run(&self, percent: f64) -> f64 {
        let gated = self.profile.as_ref().is_some_and(|p| !p.recorded.is_empty());
        let own = self.overview.as_ref().and_then(|o| o.span_length());
        match (own, self.run_span()) {
            (Some(own), Some((start, end))) if end > start && !gated => percent * own as f64 / (end - start) as f64,
            _ => percent,
        }
    }

    /// Longest launch of a row; `None` until its details are computed.
    pub fn slowest_of(&self, row: usize) -> Option<u32> {
        self.detail.as_ref().filter(|d| d.1 == row).and_then(|d| d.2.slowest).map(|l| l.0)
    }

    /// The launch that stands for a row, and that a re-run of the row profiles; `None` until its details are computed.
    pub fn median_of(&self, row: usize) -> Option<u32> {
        self.detail.as_ref().filter(|d| d.1 == row).and_then(|d| d.2.median).map(|l| l.0)
    }

    /// Requests the matches between launches and another report's results.
    pub fn want_join(&self, index: usize, other: usize, metrics: &Arc<Metrics>) -> Vec<Effect> {
        self.request_work(index, JobRequest::Join { other, metrics: metrics.clone() })
    }

    /// Most certain match of a launch, with the index of the report that contains the result.
    pub fn find_pair(&self, launch: u32) -> Option<(usize, Pair)> {
        self.joins.iter().filter_map(|(other, join)| Some((*other, *join.of_launch(launch)?))).min_by_key(|p| p.1.sure)
    }

    /// Launch of this timeline that matches a result of another report.
    pub fn launch_of(&self, other: usize, result: usize) -> Option<Pair> {
        self.joins.iter().find(|(o, _)| *o == other)?.1.of_result(result).copied()
    }

    /// Effect on the whole run of the change that a hint on a kernel recommends: shorter kernels, or fewer launches.
    pub fn hint_worth(&self, kernel: u32, id: Diagnosis, gain: Option<(f64, f64)>) -> Option<Worth> {
        let name = readable_name(self.profile.as_ref()?.kernels.get(kernel as usize)?);
        let launches = (id == Diagnosis::LaunchOverhead).then(|| self.launch_costs.get(name.as_ref()).copied()).flatten();
        Some(Worth { launches, ..self.worths.get(&name)?.evaluate_gain(gain) })
    }

    /// Severity of a hint on a launch, as far as it makes the run shorter.
    pub fn severity_of_launch(&self, launch: u32, hint: &FirstHint) -> HintSeverity {
        let kernel = self.profile.as_ref().filter(|p| (launch as usize) < p.launches.len()).map(|p| p.launches.kernel(launch as usize).0);
        kernel.and_then(|k| self.hint_worth(k, hint.id, hint.gain)).map_or(hint.severity, |w| w.severity_in_run(hint.severity))
    }

    /// Representative result of a row: the longest result of this report; among other reports, the longest one that
    /// certainly belongs to its launch, or otherwise the longest one.
    pub fn best_result(&self, row: usize) -> Option<Best> {
        self.best.get(&row).copied()
    }

    /// The measured launch of a launch's kernel, if it is outside of the shown time, and none inside was measured.
    pub fn measured_outside(&self, launch: u32) -> Option<u32> {
        let (profile, grouping) = (self.profile.as_ref()?, self.groups.grouping.as_ref()?);
        let kernel_of = |launch: u32| ((launch as usize) < profile.launches.len()).then(|| profile.launches.kernel(launch as usize));
        let kernel = kernel_of(launch)?;
        let pairs = self.joins.iter().flat_map(|(_, j)| &j.pairs).filter(|p| p.sure.is_exact() && kernel_of(p.launch) == Some(kernel));
        let mut measured: Vec<u32> = pairs.map(|p| p.launch).collect();
        measured.sort_unstable();
        let inside = |l: &u32| grouping.row_of(profile, self.paths.as_deref(), *l as usize).is_some();
        measured.first().copied().filter(|_| !measured.iter().any(inside))
    }

    pub(super) fn mark_profiled(&mut self, index: usize) {
        (self.profiled, self.diagnosed, self.best) = Default::default();
        let (Some(profile), Some(grouping)) = (&self.profile, &self.groups.grouping) else { return };
        // A time window rarely contains the very launches that were measured, so also use results of the same kernels
        // outside it.
        let row_of = |launch: usize| grouping.row_of_group(profile, self.paths.as_deref(), launch);
        let inside = |launch: usize| grouping.row_of(profile, self.paths.as_deref(), launch).is_some();
        for pair in self.joins.iter().flat_map(|(_, j)| &j.pairs) {
            if let Some(row) = row_of(pair.launch as usize) {
                *self.profiled.entry(row).or_default() |= pair.sure.is_exact();
            }
        }
        let verdicts = &self.verdicts;
        let results = profile.metrics.as_ref().map_or(0, |m| m.results.len());
        let own = (0..results).map(|r| (r, verdicts.get(&(None, r)), (index, r, None)));
        let joined = self.joins.iter().flat_map(|(other, j)| {
            j.pairs.iter().map(move |p| (p.launch as usize, verdicts.get(&(Some(*other), p.result)), (*other, p.result, Some(p.sure))))
        });
        let mut of_row: HashMap<usize, Vec<Measured<'_>>> = HashMap::new();
        let mut of_kernel: HashMap<u32, Vec<Measured<'_>>> = HashMap::new();
        for (launch, verdict, result) in own.chain(joined).filter(|(l, ..)| *l < profile.launches.len()) {
            let exact = result.2.is_none_or(|s: Sure| s.is_exact());
            let own = profile.metrics.as_ref().filter(|_| result.2.is_none() && profile.is_amd());
            let counters = own.and_then(|m| Amd::of_result(m, result.1)).map_or(0, |amd| amd.counter_count());
            let launch_id = u32::try_from(launch).unwrap_or(u32::MAX);
            let measured = Measured { launch: launch_id, verdict, result, exact, counters, inside: inside(launch) };
            if let Some(row) = row_of(launch) {
                of_row.entry(row).or_default().push(measured.clone());
            }
            of_kernel.entry(profile.launches.kernel(launch).0).or_default().push(measured);
        }
        // One severity for all screens: in a run, it depends on what the run would gain.
        let in_run = |kernel: Option<u32>, share: f64, hint: &FirstHint| {
            // If the gain was not replayed on the run, weight it by the kernel's share of the time.
            let by_share = || hint.gain.map_or(hint.severity, |(_, most)| hint.severity.limit_to_run(most * share));
            let replayed = kernel.and_then(|k| self.hint_worth(k, hint.id, hint.gain)).filter(|w| w.saves.is_some());
            let severity = match replayed {
                _ if !self.is_timeline() => hint.severity,
                Some(worth) => worth.severity_in_run(hint.severity),
                None => by_share(),
            };
            FirstHint { severity, ..hint.clone() }
        };
        let chosen: HashMap<usize, &Measured<'_>> =
            of_row.iter().filter_map(|(row, all)| Some((*row, measured_group::representative(profile, all)?))).collect();
        let diagnosed = chosen.iter().filter_map(|(row, measured)| {
            let group = grouping.rows.get(*row)?;
            Some((*row, in_run(group.kernel.map(|k| k.0), group.share_percent / 100.0, measured.verdict?)))
        });
        let hinted = of_kernel.iter().filter_map(|(kernel, all)| {
            let verdict = measured_group::representative(profile, all)?.verdict?;
            Some((*kernel, in_run(Some(*kernel), 1.0, verdict)))
        });
        let (diagnosed, hinted) = (diagnosed.collect(), hinted.collect());
        (self.diagnosed, self.hinted) = (diagnosed, hinted);
        self.best = chosen.into_iter().map(|(row, measured)| (row, measured.result)).collect();
    }

    /// Requests the NVTX paths of all launches, once per profile, because a second request would start over.
    fn want_paths(&mut self, index: usize) -> Vec<Effect> {
        if self.paths_asked.replace(self.generation) == Some(self.generation) {
            return Vec::new();
        }
        self.request_work(index, JobRequest::Paths)
    }

    /// Requests the timeline, once per profile.
    pub fn want_lanes(&mut self, index: usize) -> Vec<Effect> {
        if self.lanes_asked.replace(self.generation) == Some(self.generation) {
            return Vec::new();
        }
        let parts = TimelinePart::ALL.into_iter().flat_map(|part| self.request_work(index, JobRequest::Timeline(part)));
        parts.chain(self.request_work(index, JobRequest::Gaps)).collect()
    }

    /// Changes the grouping and clears the marks, which belong to the old groups. A grouping by range may have to wait
    /// for the NVTX paths.
    pub fn set_grouping(&mut self, index: usize, by: GroupBy) -> Vec<Effect> {
        self.groups.by = by;
        self.groups.clear_marks();
        if by.needs_paths()
            && self.paths.is_none()
            && self.profile.as_ref().is_some_and(|p| !p.ranges.is_empty() || !p.graph_nodes.is_empty())
        {
            return self.want_paths(index);
        }
        self.request_work(index, JobRequest::Group(by))
    }
}
