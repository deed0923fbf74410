//! Turns selected launches into one command if it can select all of them, otherwise into several commands and a
//! directory for their reports.

use super::capture_range::{self, Gate};
use super::launch_skip::compared_name;
use super::{OpenedBy, Options, Profiler, Rerun, Within, graph, ncu, ncu_builder, nvtx, rocprof, tracer_measure};
use crate::model::kernel::UNNAMED;
use crate::model::metrics::IN_PLACE;
use crate::model::{LaunchId, NoteKind, Profile, Vendor};

/// Launches or a graph to profile again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    Launches(Vec<LaunchId>),
    /// Index into [`Profile::graphs`] of a graph that was traced as a whole.
    Graph(u32),
}

/// Commands that select the target.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// One command, or several to run in sequence.
    pub commands: Vec<Rerun>,
    /// Directory for the reports of several commands.
    pub folder: Option<String>,
}

/// Maximum number of launches per plan: a larger script would run for hours.
pub const MOST_LAUNCHES: usize = 1000;

/// Plans the re-run. The error is a sentence for the user.
pub fn plan(profile: &Profile, target: &Target, options: &Options) -> Result<Plan, String> {
    let wanted = match target {
        Target::Graph(_) if options.profiler == Profiler::InPlace => {
            return Err("the tracer measures no CUDA graphs, only kernels that are launched by themselves: use ncu".to_owned());
        }
        Target::Graph(index) => {
            return Ok(Plan { commands: vec![graph::graph_command(profile, *index as usize, options)?], folder: None });
        }
        Target::Launches(wanted) => wanted,
    };
    // Results measured during a run cover only a few of its launches; finding their positions requires the timeline.
    if profile.metrics.as_deref().is_some_and(|m| m.source.tool == IN_PLACE) {
        return Err("these results were measured in a run: choose a launch in its timeline, the report before this one".to_owned());
    }
    if profile.launches.is_empty() {
        return Err(if profile.totals.is_empty() {
            "this report has no launches to profile again".to_owned()
        } else {
            "this report has per-kernel totals only; open the report that it was made from".to_owned()
        });
    }
    let mut rows: Vec<usize> = wanted.iter().map(|l| l.0 as usize).collect();
    rows.sort_unstable();
    rows.dedup();
    if let Some(&row) = rows.iter().find(|&&r| r >= profile.launches.len()) {
        return Err(format!("there is no launch {row}: launches are numbered 0 to {}", profile.launches.len() - 1));
    }
    if rows.is_empty() {
        return Err("no launch is selected".to_owned());
    }
    if rows.len() > MOST_LAUNCHES {
        return Err(format!(
            "{} launches are selected; profile at most {MOST_LAUNCHES} at once: take the slowest few, or those inside an NVTX range",
            rows.len()
        ));
    }
    let device = |row: usize| profile.launches.place(row).and_then(|p| profile.places.get(p.0 as usize)).and_then(|p| profile.device_of(p));
    if let Some(of) = rows.iter().find_map(|&row| device(row).filter(|d| d.maker == Vendor::Other)) {
        let name = of.name.as_deref().unwrap_or("this GPU");
        return Err(format!(
            "{name} is neither NVIDIA's nor AMD's: ncu and rocprofv3 cannot measure its kernels, and no other tool is known here"
        ));
    }
    let amd = |&row: &usize| device(row).map_or_else(|| profile.is_amd(), |d| d.maker == Vendor::Amd);
    // Profilers select kernels by name, and count those of that name.
    let unnamed = |&row: &usize| profile.kernels.get(profile.launches.kernel(row).0 as usize).is_none_or(|k| k.function() == UNNAMED);
    if rows.iter().any(unnamed) {
        let part = profile
            .notes
            .iter()
            .find(|n| n.kind == NoteKind::Part)
            .map_or("", |_| ": they are in another file of this trace, which is not beside it");
        return Err(format!("the report has no names of these kernels, by which they are selected{part}"));
    }
    if rows.iter().any(amd) {
        return if rows.iter().all(amd) {
            let (commands, folder) = rocprof::build_commands(profile, &rows, options);
            Ok(Plan { commands, folder })
        } else {
            Err("these launches ran on GPUs of NVIDIA and AMD: choose those of one".to_owned())
        };
    }
    if options.profiler == Profiler::InPlace {
        return Ok(Plan { commands: vec![tracer_measure::build_command(profile, &rows, options)?], folder: None });
    }
    if options.whole_graph {
        return match rows.len() {
            1 => Ok(Plan { commands: vec![ncu::build_command(profile, &rows, options, true)?], folder: None }),
            _ => Err("select one launch to profile the graph it belongs to".to_owned()),
        };
    }
    let groups = group_launches(profile, &rows, options)?;
    if let [group] = &groups[..]
        && let Some(command) = ncu::build_if_selectable(profile, group, options, true)?
    {
        return Ok(Plan { commands: vec![command], folder: None });
    }
    if groups.len() > 1
        && groups.len() == rows.len()
        && let Some(command) = ncu::build_for_kernels(profile, &rows, options)?
    {
        return Ok(Plan { commands: vec![command], folder: None });
    }
    let folder = options.output.clone().unwrap_or_else(|| "warpscope-rerun".to_owned());
    let named = |rows: &[usize]| {
        let stem = format!("{}/{}", folder.trim_end_matches('/'), ncu_builder::report_stem(profile, rows));
        Options { output: Some(stem), ..options.clone() }
    };
    let mut commands = Vec::new();
    for group in groups {
        if let Some(command) = ncu::build_if_selectable(profile, &group, &named(&group), false)? {
            commands.push(command);
            continue;
        }
        // One command per contiguous sequence, and one for each remaining launch.
        for part in ncu::split_adjacent(profile, &group, options)? {
            commands.push(ncu::build_command(profile, &part, &named(&part), false)?);
        }
    }
    Ok(Plan { commands, folder: Some(folder) })
}

/// Grouping key of launches: name, process, and capture conditions.
type Key<'a> = (Option<&'a str>, u32, Gate);

/// Groups launches that one command may be able to select: same name, process and capture conditions.
fn group_launches(profile: &Profile, rows: &[usize], options: &Options) -> Result<Vec<Vec<usize>>, String> {
    let mut out: Vec<(Key<'_>, Vec<usize>)> = Vec::new();
    for &row in rows {
        let kernel = profile.kernels.get(profile.launches.kernel(row).0 as usize);
        // The conditions depend on the launch only if an enclosing range may replace the capture range.
        let around =
            if rows.len() > 1 && capture_range::opened_by(profile, options) == OpenedBy::Start && options.within == Within::Everything {
                Vec::new()
            } else {
                nvtx::enclosing_ranges(profile, row)
            };
        let key =
            (kernel.and_then(|k| compared_name(k, options.base.0)), profile.launch_pid(row), Gate::resolve(profile, options, &around)?);
        match out.iter_mut().find(|(k, _)| *k == key) {
            Some((_, group)) => group.push(row),
            None => out.push((key, vec![row])),
        }
    }
    Ok(out.into_iter().map(|(_, rows)| rows).collect())
}
