//! Analyses that may take longer than a frame: requests, results, and the pure function that computes a result

mod memory;
mod ranks;

pub use memory::{Beside, Curve, Held, MemoryView};
pub use ranks::{Member as RankMember, Ranks};

use crate::analysis::checklist::{self, Item};
use crate::analysis::diff::Diff;
use crate::analysis::flops::{Joined, Rate, of_results};
use crate::analysis::hints::{FirstHint, first};
use crate::analysis::kernel_group_detail::Detail;
use crate::analysis::launch_list::{JumpTo, LaunchList, ListKey};
use crate::analysis::memory::HeldMemory;
use crate::analysis::name_pattern::name_pattern;
use crate::analysis::range_tree::{RangeTree, WorkInside};
use crate::analysis::timeline::{self, Built, Gaps, Matches, Timeline};
use crate::analysis::triage::{JudgedTime, Scope, Triage, find_idle_times, triage_profile};
use crate::analysis::what_if_curves::Worths;
use crate::analysis::{GroupBy, Grouping, Overview, Paths, next_step};
use crate::model::{Cancel, Metrics, Nanos, Profile};
use crate::report::hints::Advice;
use crate::rerun::match_results::{self, Join};
use crate::rerun::{Picked, Plan, RangeName, Request, nvtx, request};
use std::collections::HashMap;
use std::sync::Arc;

/// Analysis that a report or a screen can request.
#[derive(Clone, Debug)]
pub enum JobRequest {
    /// Header figures and the next step.
    Overview,
    /// Triage: the limits of the run.
    Triage,
    /// Tree of ranges.
    Tree,
    /// Work launched inside a node of the tree.
    Inside {
        /// Id of the screen that receives the result.
        screen: u64,
        tree: Arc<RangeTree>,
        node: u32,
    },
    /// Part of the timeline.
    Timeline(timeline::TimelinePart),
    /// Idle times of the devices, with causes.
    Gaps,
    /// Effect of faster kernels on the duration of the run.
    Worths,
    /// Timeline events whose names match `text`.
    Matches {
        /// Id of the screen that receives the result.
        screen: u64,
        timeline: Arc<Timeline>,
        text: String,
    },
    /// Triage of the whole run, with its warm-up: its time, ns.
    JudgeRun((i64, i64)),
    /// Triage of a window, ns.
    Judge {
        /// Id of the screen that receives the result.
        screen: u64,
        window: (i64, i64),
    },
    /// NVTX paths of all launches.
    Paths,
    Group(GroupBy),
    /// Details of one group.
    Detail {
        grouping: Arc<Grouping>,
        row: usize,
        /// Sequence number of the request; only the latest result is used.
        serial: u64,
    },
    /// Launches of one group, filtered and sorted.
    Launches {
        grouping: Arc<Grouping>,
        row: usize,
        /// Filter, order and screen of the list.
        key: ListKey,
        /// Current list; if only the order changes, the rest of its data is reused.
        before: Option<Arc<LaunchList>>,
        /// Launch to select in the list.
        keep: Option<u32>,
    },
    /// Position of a launch in a list.
    Jump {
        /// Id of the screen that receives the result.
        screen: u64,
        list: Arc<LaunchList>,
        to: JumpTo,
        /// Selected row.
        from: usize,
        /// Matches that determine which launches have results; `None` if all launches have results.
        joins: Option<Vec<Arc<Join>>>,
    },
    /// First hint on each result.
    Verdicts,
    /// Matches between launches and the results of another report.
    Join {
        other: usize,
        metrics: Arc<Metrics>,
    },
    /// Floating-point work in a window, from joined results.
    Work {
        window: (i64, i64),
        joined: Vec<(Arc<Metrics>, Arc<Join>)>,
    },
    /// Changes from another report to this one.
    Diff {
        before: Arc<Profile>,
        by: GroupBy,
        /// Indices of both reports.
        pair: (usize, usize),
        /// Triage of both runs, once known.
        judged: [Option<Arc<Triage>>; 2],
    },
    Memory {
        /// Id of the screen that receives the result.
        screen: u64,
    },
    /// Memory held by another report's program.
    Beside {
        /// Id of the screen that receives the result.
        screen: u64,
        before: Arc<Profile>,
        name: String,
    },
    /// Memory of a device within a time window, ns.
    MemoryWindow {
        screen: u64,
        view: Arc<MemoryView>,
        device: usize,
        window: (i64, i64),
    },
    /// Owners of memory after an event.
    Held {
        /// Id of the screen that receives the result.
        screen: u64,
        view: Arc<MemoryView>,
        device: usize,
        at: Option<u32>,
    },
    /// Analysis of these reports as ranks of one job.
    Ranks(Vec<RankMember>),
    /// Commands of the re-run screen.
    Rerun {
        grouping: Arc<Grouping>,
        rows: Vec<usize>,
        request: Request,
        /// Id of the screen that receives the result.
        screen: u64,
    },
    /// Advice based on a launch alone, without metrics.
    Advice {
        /// Id of the screen that receives the result.
        screen: u64,
        launch: u32,
    },
    /// Analysis steps covered by the session.
    Checklist {
        /// Id of the screen that receives the result.
        screen: u64,
        parts: Vec<ChecklistReport>,
    },
}

/// Report of the session, for the checklist.
#[derive(Clone, Debug)]
pub struct ChecklistReport {
    pub profile: Arc<Profile>,
    /// Triage of the run, once known.
    pub triage: Option<Arc<Triage>>,
    /// Results of other reports, matched with the launches of this report.
    pub joined: Vec<(Arc<Metrics>, Arc<Join>)>,
}

/// Request for an analysis, with its input.
#[derive(Clone, Debug)]
pub struct Work {
    /// Index of the report in the session.
    pub report: usize,
    /// Generation of the report; results for an older generation are dropped.
    pub generation: u64,
    pub profile: Arc<Profile>,
    /// NVTX paths, once known.
    pub paths: Option<Arc<Paths>>,
    /// Time filter of the report, ns.
    pub window: Option<(i64, i64)>,
    /// Parts of the window outside of which nothing counts; for groups only.
    pub parts: Option<Arc<JudgedTime>>,
    pub ask: JobRequest,
}

impl Work {
    /// Work on a whole profile, without its NVTX paths.
    pub fn on_whole(report: usize, generation: u64, profile: Arc<Profile>, ask: JobRequest) -> Self {
        Self { report, generation, profile, paths: None, window: None, parts: None, ask }
    }

    /// Key of a request: a newer request replaces an older one with the same key.
    pub fn request_key(&self) -> (usize, std::mem::Discriminant<JobRequest>, usize) {
        let other = match self.ask {
            JobRequest::Join { other, .. } => other,
            JobRequest::Timeline(part) => part as usize,
            _ => 0,
        };
        (self.report, std::mem::discriminant(&self.ask), other)
    }

    /// Priority, lowest value first: requests that the user waits for precede those that only fill the header.
    pub fn urgency(&self) -> u8 {
        match self.ask {
            JobRequest::Launches { .. }
            | JobRequest::Jump { .. }
            | JobRequest::Rerun { .. }
            | JobRequest::Diff { .. }
            | JobRequest::Ranks(_)
            | JobRequest::Memory { .. }
            | JobRequest::Held { .. }
            | JobRequest::MemoryWindow { .. }
            | JobRequest::Beside { .. }
            | JobRequest::Advice { .. }
            | JobRequest::Checklist { .. }
            | JobRequest::Inside { .. }
            | JobRequest::Matches { .. }
            | JobRequest::Timeline(timeline::TimelinePart::Devices)
            | JobRequest::Tree => 0,
            JobRequest::Group(_) | JobRequest::Triage | JobRequest::Timeline(_) => 1,
            JobRequest::Detail { .. } | JobRequest::Gaps | JobRequest::Judge { .. } | JobRequest::JudgeRun(_) => 2,
            JobRequest::Verdicts | JobRequest::Join { .. } | JobRequest::Work { .. } | JobRequest::Overview => 3,
            JobRequest::Paths | JobRequest::Worths => 4,
        }
    }
}

/// Representative launch of a range, and that range.
pub type Typical = (u32, Option<RangeName>);

#[derive(Clone, Debug)]
pub enum JobResult {
    /// Header figures and the next step.
    Overview(Arc<Overview>, String),
    /// Triage of the run; `None` if nothing ran on a device.
    Triage(Option<Arc<Triage>>),
    /// Triage of the whole run, with its warm-up.
    RunJudged(Arc<Triage>),
    Tree(Arc<RangeTree>),
    /// Kernels inside a tree node: screen, node, kernels with time and number of launches (longest first), and a
    /// representative launch of the first kernel with the node's enclosing range, if ncu can see that range.
    Inside(u64, u32, Arc<WorkInside>, Option<Typical>),
    Timeline(Box<Built>),
    Gaps(Arc<Gaps>),
    Worths(Arc<Worths>),
    /// Matching events: screen, text, number of timeline parts searched, matches.
    Matches(u64, String, usize, Arc<Matches>),
    /// Triage of a window: screen, window in ns, triage.
    Judged(u64, (i64, i64), Option<Arc<Triage>>),
    Paths(Arc<Paths>),
    Group(Arc<Grouping>),
    /// First hints on the report's own results.
    Verdicts(Arc<HashMap<usize, FirstHint>>),
    /// Matches with another report's results, ncu's durations of these results, and their first hints.
    Joined(usize, Arc<Join>, Arc<Vec<(usize, Nanos)>>, Arc<HashMap<usize, FirstHint>>),
    /// Floating-point rate of the run; `None` if no result counts floating-point operations.
    Work(Option<Rate>),
    /// Changes between two reports.
    Diff((usize, usize), Arc<Diff>),
    Ranks(Arc<Ranks>),
    /// Memory use: screen, and the analysis, or `None` if the report has no memory data.
    Memory(u64, Option<Arc<MemoryView>>),
    /// Owners of memory: screen, device, last event before the requested time, rows.
    Held(u64, usize, Option<u32>, Arc<[HeldMemory]>),
    /// Memory within a time window: screen, device, curve.
    MemoryWindow(u64, usize, Arc<Curve>),
    /// Memory held by the program of the report to compare with: screen, and the memory, or `None` if that report has
    /// no memory data.
    Beside(u64, Option<Arc<Beside>>),
    /// Details of a group: sequence number of the request, grouping, row.
    Detail(u64, GroupBy, usize, Arc<Detail>),
    /// Launches, and the row to select.
    Launches(ListKey, Arc<LaunchList>, usize),
    /// Position of a launch in a list: screen, list, target, and row if the launch is listed.
    Jumped(u64, Arc<LaunchList>, JumpTo, Option<usize>),
    /// Commands: screen, request, selected launches, and plan.
    Rerun(u64, Box<Request>, Arc<Picked>, Result<Arc<Plan>, String>),
    /// Advice on a launch: screen and advice.
    Advice(u64, Option<Arc<Advice>>),
    /// Checklist: screen and items.
    Checklist(u64, Arc<[Item]>),
}

impl JobResult {
    /// Returns true if the result depends on the report's time filter.
    pub fn depends_on_window(&self) -> bool {
        matches!(
            self,
            Self::Overview(..) | Self::Triage(_) | Self::Tree(_) | Self::Group(_) | Self::Detail(..) | Self::Work(_) | Self::Inside(..)
        )
    }
}

/// Triage of windows, or of the steady state; `None` if nothing ran on a device, or if canceled.
fn judge_run(profile: &Profile, windows: Vec<(i64, i64)>, is_run: bool, cancel: &Cancel) -> Option<Arc<Triage>> {
    let mut found = triage_profile(profile, &Scope { windows, ..Scope::default() }, cancel);
    // Memory findings apply to the whole run: omit them for a window.
    if let Some(found) = found.as_mut().filter(|_| is_run) {
        found.take_memory(crate::analysis::memory::summarize_findings(profile, None, cancel));
    }
    found.map(Arc::new)
}

/// Performs an analysis; returns `None` if it was canceled.
pub fn perform_work(work: &Work, cancel: &Cancel) -> Option<JobResult> {
    let profile = &*work.profile;
    let paths = work.paths.as_deref();
    if cancel.is_cancelled() {
        return None;
    }
    Some(match &work.ask {
        JobRequest::Overview => {
            let overview = Overview::from_window(profile, work.window);
            if cancel.is_cancelled() {
                return None;
            }
            let sentence =
                next_step::next_step_sentence(profile, &overview, &Grouping::from_window(profile, GroupBy::Kernel, None, work.window));
            JobResult::Overview(Arc::new(overview), sentence)
        }
        JobRequest::Verdicts => {
            let metrics = profile.metrics.as_deref();
            JobResult::Verdicts(Arc::new(metrics.map(|m| first::of_results(m, 0..m.results.len())).unwrap_or_default()))
        }
        JobRequest::Join { other, metrics } => {
            let join = match_results::join_results(profile, metrics);
            let duration = |p: &match_results::Pair| Some((p.result, metrics.duration(metrics.results.get(p.result)?)?));
            let durations = join.pairs.iter().filter_map(duration).collect();
            let verdicts = first::of_results(metrics, join.pairs.iter().map(|p| p.result));
            JobResult::Joined(*other, Arc::new(join), Arc::new(durations), Arc::new(verdicts))
        }
        JobRequest::Work { window, joined } => {
            let joined: Vec<Joined> = joined.iter().flat_map(joined_pairs).collect();
            JobResult::Work(of_results(profile, &joined, *window))
        }
        JobRequest::Diff { before, by, pair, judged } => {
            let mut diff = crate::analysis::diff::diff_profiles(before, profile, *by);
            let judge = |known: &Option<Arc<Triage>>, p: &Profile| {
                known.clone().or_else(|| triage_profile(p, &Scope::default(), cancel).map(Arc::new))
            };
            let (was, is) = (judge(&judged[0], before), judge(&judged[1], profile));
            if cancel.is_cancelled() {
                return None;
            }
            crate::analysis::diff_steps::compare_lengths(&mut diff, (before, was.as_deref()), (profile, is.as_deref()), *by);
            JobResult::Diff(*pair, Arc::new(diff))
        }
        JobRequest::Memory { screen } => {
            let view = MemoryView::from_profile(profile, cancel);
            if cancel.is_cancelled() {
                return None;
            }
            JobResult::Memory(*screen, view.map(Arc::new))
        }
        JobRequest::Beside { screen, before, name } => {
            JobResult::Beside(*screen, Beside::from_profile(before, name.clone(), cancel).map(Arc::new))
        }
        JobRequest::MemoryWindow { screen, view, device, window } => {
            let curve = view.usage.devices.get(*device).map(|d| Curve::from_window(d, &view.usage.sites, *window))?;
            JobResult::MemoryWindow(*screen, *device, Arc::new(curve))
        }
        JobRequest::Held { screen, view, device, at } => JobResult::Held(*screen, *device, *at, view.owners_at(*device, *at).into()),
        JobRequest::Ranks(members) => JobResult::Ranks(Arc::new(Ranks::from_members(members))),
        JobRequest::Triage => {
            let windows: Vec<_> = work.window.into_iter().collect();
            let is_run = windows.is_empty();
            let found = judge_run(profile, windows, is_run, cancel);
            if cancel.is_cancelled() {
                return None;
            }
            JobResult::Triage(found)
        }
        JobRequest::JudgeRun(span) => JobResult::RunJudged(judge_run(profile, vec![*span], true, cancel)?),
        JobRequest::Tree => JobResult::Tree(Arc::new(RangeTree::from_window(profile, work.window, cancel)?)),
        JobRequest::Timeline(part) => JobResult::Timeline(Box::new(timeline::build_part(profile, *part, cancel)?)),
        JobRequest::Worths => JobResult::Worths(Arc::new(Worths::from_profile(profile, cancel))),
        JobRequest::Gaps => JobResult::Gaps(Arc::new(Gaps::new(find_idle_times(profile, cancel)?))),
        JobRequest::Matches { screen, timeline, text } => {
            let matches = Matches::find_all(timeline, &timeline.event_reader(profile), text, cancel)?;
            JobResult::Matches(*screen, text.clone(), timeline.parts.len(), Arc::new(matches))
        }
        JobRequest::Judge { screen, window } => {
            let found = triage_profile(profile, &Scope { windows: vec![*window], ..Scope::default() }, cancel);
            if cancel.is_cancelled() {
                return None;
            }
            JobResult::Judged(*screen, *window, found.map(Arc::new))
        }
        JobRequest::Inside { screen, tree, node } => {
            let work = tree.work_inside(profile, *node);
            let launch = work.kernels.first().and_then(|k| tree.median_launch(profile, *node, k.0));
            let typical = launch.map(|l| (l, enclosing_range(profile, tree, *node, l)));
            JobResult::Inside(*screen, *node, Arc::new(work), typical)
        }
        JobRequest::Paths => JobResult::Paths(Arc::new(Paths::from_profile(profile))),
        JobRequest::Group(by) => JobResult::Group(Arc::new(Grouping::from_parts(profile, *by, paths, work.window, work.parts.clone()))),
        JobRequest::Rerun { grouping, rows, request, screen } => {
            let (picked, plan) = request::plan_request(profile, paths, grouping, rows, request, cancel)?;
            JobResult::Rerun(*screen, Box::new(request.clone()), Arc::new(picked), plan)
        }
        JobRequest::Detail { grouping, row, serial } => {
            JobResult::Detail(*serial, grouping.by, *row, Arc::new(Detail::for_row(profile, paths, grouping, *row, cancel)?))
        }
        JobRequest::Launches { grouping, row, key, before, keep } => {
            let list = LaunchList::from_group(profile, paths, (grouping, *row), key, before.as_deref(), cancel)?;
            let at = keep.and_then(|launch| list.row_of_launch(launch)).unwrap_or(0);
            JobResult::Launches(key.clone(), Arc::new(list), at)
        }
        JobRequest::Jump { screen, list, to, from, joins } => {
            let profiled = |launch| joins.as_ref().is_none_or(|all| all.iter().any(|j| j.of_launch(launch).is_some()));
            JobResult::Jumped(*screen, Arc::clone(list), *to, list.find_jump_target(*to, *from, profiled))
        }
        JobRequest::Advice { screen, launch } => JobResult::Advice(*screen, Advice::for_launch(profile, *launch).map(Arc::new)),
        JobRequest::Checklist { screen, parts } => {
            let parts: Vec<checklist::ReportFacts<'_>> = parts
                .iter()
                .map(|part| checklist::ReportFacts {
                    profile: &part.profile,
                    triage: part.triage.clone(),
                    joined: part.joined.iter().flat_map(joined_pairs).collect(),
                })
                .collect();
            JobResult::Checklist(*screen, if parts.is_empty() { Arc::default() } else { checklist::checklist_items(&parts).into() })
        }
    })
}

/// Launches with their results.
fn joined_pairs((metrics, join): &(Arc<Metrics>, Arc<Join>)) -> Vec<Joined> {
    join.pairs.iter().map(|p| (p.launch, Arc::clone(metrics), p.result)).collect()
}

/// Range around a launch with the same name as a tree node.
fn enclosing_range(profile: &Profile, tree: &RangeTree, node: u32, launch: u32) -> Option<RangeName> {
    let name = name_pattern(&tree.nodes.get(node as usize)?.name);
    nvtx::enclosing_ranges(profile, launch as usize)
        .into_iter()
        .map(|e| e.range)
        .find(|r| name_pattern(&profile.ranges.label(r.name)) == name)
}
