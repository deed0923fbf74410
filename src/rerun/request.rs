//! Turns a selection of launches in groups into commands.

use super::capture_range::opened_by;
use super::processes::Scope;
use super::{Enclosing, OpenedBy, Options, Plan, RangeName, Target, ncu, nvtx, plan, select_launches};
use crate::analysis::{Grouping, Paths};
use crate::model::{Cancel, LaunchId, Profile};
use std::sync::Arc;

/// Launches selected from the groups.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choose {
    One(LaunchId),
    /// From each group, the launch nearest to the median.
    Median,
    /// From each group, this many of the longest launches.
    Slowest(usize),
    /// From each group, the longest launch and the one nearest to the median.
    SlowestAndMedian,
    /// From each group, the first launch.
    First,
    /// All launches inside ranges with this name.
    Inside(RangeName),
    /// A CUDA graph that was traced as a whole, by its index.
    Graph(u32),
}

/// Input of a plan.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    pub choose: Choose,
    pub options: Options,
}

/// Selected launches and their context.
#[derive(Clone, Debug, Default)]
pub struct Picked {
    /// The launches, in launch order.
    pub launches: Vec<LaunchId>,
    /// Ranges around the first launch, innermost first, but only those that ncu can name.
    pub around: Vec<Enclosing>,
    /// The first launch is a node of a CUDA graph.
    pub node: bool,
    /// Start of the capture, as recorded in the report or set by the user.
    pub opened: Option<OpenedBy>,
    /// According to the report, the capture began after the program's start.
    pub gated: bool,
    /// Number of CUDA graphs that were traced as a whole.
    pub graphs: usize,
    /// Processes in which ncu counts launches up to the first one.
    pub scope: Option<Scope>,
}

/// Selects launches and plans the commands; `None` if cancelled. Reads each group once, O(launches) per group.
pub fn plan_request(
    profile: &Profile,
    paths: Option<&Paths>,
    grouping: &Grouping,
    rows: &[usize],
    request: &Request,
    cancel: &Cancel,
) -> Option<(Picked, Result<Arc<Plan>, String>)> {
    let mut launches = Vec::new();
    if let Choose::Graph(index) = request.choose {
        let picked = Picked { gated: profile.capture.gate.is_some(), graphs: profile.graphs.len(), ..Picked::default() };
        return Some((picked, plan(profile, &Target::Graph(index), &request.options).map(Arc::new)));
    }
    if let Choose::One(launch) = request.choose {
        launches.push(launch);
    } else {
        for &row in rows {
            if cancel.is_cancelled() {
                return None;
            }
            let group: Vec<LaunchId> = grouping.row_launches(profile, paths, row).into_iter().map(LaunchId).collect();
            match request.choose {
                Choose::One(_) | Choose::Graph(_) => {}
                Choose::Median => launches.extend(select_launches::median(profile, &group)),
                Choose::Slowest(n) => launches.extend(select_launches::slowest(profile, &group, n)),
                Choose::SlowestAndMedian => {
                    launches.extend(select_launches::slowest(profile, &group, 1));
                    launches.extend(select_launches::median(profile, &group));
                }
                Choose::First => launches.extend(group.first()),
                Choose::Inside(range) => launches.extend(select_launches::inside(profile, &group, range, None)),
            }
        }
    }
    launches.sort_unstable();
    launches.dedup();
    let first = launches.first().map(|l| l.0 as usize);
    let mut around = first.map(|row| nvtx::enclosing_ranges(profile, row)).unwrap_or_default();
    around.retain(|e| nvtx::filter_expression(profile, e.range).is_some());
    let made = plan(profile, &Target::Launches(launches.clone()), &request.options);
    let picked = Picked {
        around,
        node: first.is_some_and(|row| profile.launches.graph_node(row).is_some()),
        graphs: profile.graphs.len(),
        opened: Some(opened_by(profile, &request.options)),
        gated: opened_by(profile, &Options::default()) != OpenedBy::Start,
        scope: first.and_then(|row| ncu::scope_of(profile, row, &request.options)),
        launches,
    };
    Some((picked, made.map(Arc::new)))
}
