//! From what is wanted to commands: one where one can select it all, else several with a directory for their reports.

use super::count::name;
use super::{Options, Rerun, draft, graph, ncu, shell};
use crate::model::{LaunchId, Profile};
use std::collections::BTreeMap;

/// What is to be profiled again.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Target {
    /// These launches.
    Launches(Vec<LaunchId>),
    /// A graph that was traced whole: its index in [`Profile::graphs`].
    Graph(u32),
}

/// The commands that select it.
#[derive(Clone, Debug, PartialEq)]
pub struct Plan {
    /// One, or several to be run in turn.
    pub commands: Vec<Rerun>,
    /// Directory for the reports of several.
    pub folder: Option<String>,
}

/// Launches that one plan takes at most: a script of more would run for hours.
pub const MOST_LAUNCHES: usize = 1000;

/// Plans the re-run. Errors are sentences for the user.
pub fn plan(profile: &Profile, target: &Target, options: &Options) -> Result<Plan, String> {
    let wanted = match target {
        Target::Graph(index) => {
            return Ok(Plan { commands: vec![graph::graph(profile, *index as usize, options)?], folder: None });
        }
        Target::Launches(wanted) => wanted,
    };
    if profile.launches.is_empty() {
        return Err(if profile.totals.is_empty() {
            "this report has no launches to profile again".to_owned()
        } else {
            "this report holds sums per kernel, no single launches; open the report that it was made from".to_owned()
        });
    }
    let mut rows: Vec<usize> = wanted.iter().map(|l| l.0 as usize).collect();
    rows.sort_unstable();
    rows.dedup();
    if let Some(&row) = rows.iter().find(|&&r| r >= profile.launches.len()) {
        return Err(format!("there is no launch {row}: launches go from 0 to {}", profile.launches.len() - 1));
    }
    if rows.is_empty() {
        return Err("no launch is chosen".to_owned());
    }
    if rows.len() > MOST_LAUNCHES {
        return Err(format!("{} launches are chosen; profile at most {MOST_LAUNCHES} at once", rows.len()));
    }
    let one = |rows: &[usize], options: &Options| ncu::command(profile, rows, options, true);
    if options.whole_graph {
        if rows.len() > 1 {
            return Err("choose one launch to profile the graph that it belongs to".to_owned());
        }
        return Ok(Plan { commands: vec![one(&rows, options)?], folder: None });
    }
    // Launches that one command can select share their name and their process.
    let mut groups: BTreeMap<(Option<&str>, u32), Vec<usize>> = BTreeMap::new();
    let mut order = Vec::new();
    for &row in &rows {
        let kernel = profile.kernels.get(profile.launches.kernel(row).0 as usize);
        let key = (kernel.and_then(|k| name(k, options.base.0)), draft::pid_of(profile, row));
        let group = groups.entry(key).or_default();
        if group.is_empty() {
            order.push(key);
        }
        group.push(row);
    }
    if groups.len() == 1
        && let Some(command) = ncu::several(profile, &rows, options)?
    {
        return Ok(Plan { commands: vec![command], folder: None });
    }
    if groups.len() > 1
        && groups.len() == rows.len()
        && let Some(command) = ncu::each(profile, &rows, options)?
    {
        return Ok(Plan { commands: vec![command], folder: None });
    }
    let folder = options.output.clone().unwrap_or_else(|| "warpscope-rerun".to_owned());
    let mut commands = Vec::new();
    for key in order {
        let group = groups.remove(&key).unwrap_or_default();
        // Neighbours go together, the rest one by one.
        for part in ncu::neighbours(profile, &group, options)? {
            let stem = format!("{}/{}", folder.trim_end_matches('/'), shell::file_stem(&draft::stem(profile, &part)));
            commands.push(one(&part, &Options { output: Some(stem), ..options.clone() })?);
        }
    }
    Ok(Plan { commands, folder: Some(folder) })
}
