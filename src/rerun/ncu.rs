//! Complete ncu commands: for launches of one kernel name, or for one launch each of several kernels.

use super::ncu_builder::Draft;
use super::processes::Scope;
use super::{Cost, Options, PartId, Rerun, collect, ncu_report_selection, parts, shell};
use crate::model::Profile;

/// Builds one command for launches of one name; an error if a single command cannot select them.
pub fn build_command(profile: &Profile, rows: &[usize], options: &Options, with_alternatives: bool) -> Result<Rerun, String> {
    let draft = Draft::new(profile, rows, options)?;
    if !draft.as_range && !draft.are_adjacent() && !draft.by_number() {
        return Err("these launches cannot be selected by one command".to_owned());
    }
    let mut rerun = draft.build_rerun();
    if with_alternatives {
        rerun.alternatives = draft.find_alternatives(&rerun);
    }
    ncu_report_selection::as_before(profile, rows, options, &mut rerun);
    Ok(rerun)
}

/// Builds one command for all these launches with one name, if a single command can select them.
pub fn build_if_selectable(profile: &Profile, rows: &[usize], options: &Options, with_alternatives: bool) -> Result<Option<Rerun>, String> {
    let draft = Draft::new(profile, rows, options)?;
    if !(draft.as_range || draft.are_adjacent() || draft.by_number()) {
        return Ok(None);
    }
    let mut rerun = draft.build_rerun();
    if with_alternatives {
        rerun.alternatives = draft.find_alternatives(&rerun);
    }
    ncu_report_selection::as_before(profile, rows, options, &mut rerun);
    Ok(Some(rerun))
}

/// Returns the processes over which a launch would be counted.
pub fn scope_of(profile: &Profile, row: usize, options: &Options) -> Option<Scope> {
    Draft::new(profile, &[row], options).ok().map(|d| d.scope)
}

/// Splits launches with one name into sequences that are contiguous in ncu's count.
pub fn split_adjacent(profile: &Profile, rows: &[usize], options: &Options) -> Result<Vec<Vec<usize>>, String> {
    let draft = Draft::new(profile, rows, options)?;
    let mut out: Vec<Vec<usize>> = Vec::new();
    let mut last = None;
    for (&row, &rank) in rows.iter().zip(&draft.skips) {
        match out.last_mut() {
            Some(group) if last.is_some_and(|l| rank == l + 1) => group.push(row),
            _ => out.push(vec![row]),
        }
        last = Some(rank);
    }
    Ok(out)
}

/// Builds one command for one launch each of several kernels, if each has the same number among the launches with its
/// name: `--kernel-id` counts per name.
pub fn build_for_kernels(profile: &Profile, rows: &[usize], options: &Options) -> Result<Option<Rerun>, String> {
    let mut drafts = Vec::new();
    for row in rows {
        drafts.push(Draft::new(profile, std::slice::from_ref(row), options)?);
    }
    let Some(first) = drafts.first() else {
        return Ok(None);
    };
    let mut names: Vec<&str> = drafts.iter().filter_map(|d| d.name.as_deref()).collect();
    let all_named = names.len() == rows.len();
    names.sort_unstable();
    names.dedup();
    let alike = drafts.iter().all(|d| {
        d.base == first.base && d.skips == first.skips && d.gate == first.gate && d.pid == first.pid && d.scope == Scope::One && !d.as_range
    });
    if !alike || !all_named || names.len() != rows.len() {
        return Ok(None);
    }
    let number = first.skips.first().copied().unwrap_or(0) + 1;
    let pattern = names.iter().map(|n| shell::escape_regex(n).replace(':', r"\x3a")).collect::<Vec<_>>().join("|");
    let n = rows.len();
    let mut rerun = first.build_rerun();
    for part in &mut rerun.parts {
        match part.id {
            PartId::Name => {
                part.words.truncate(part.words.len().saturating_sub(2));
                part.why = format!("{n} kernels, by their {} names.", first.base.as_str());
            }
            PartId::Which => {
                part.words =
                    ["--kernel-id".to_owned(), format!("::regex:^({pattern})$:{number}"), "--launch-count".to_owned(), n.to_string()]
                        .to_vec();
                part.why = format!(
                    "Any context and stream; then the {n} names, and which launch of each is profiled, counted from 1: ncu counts each name separately."
                );
            }
            _ => {}
        }
    }
    let output = options.output.clone().unwrap_or_else(|| format!("{n}-kernels"));
    if let Some(part) = rerun.parts.iter_mut().find(|p| p.id == PartId::Output) {
        *part = parts::output(&output, options.overwrite);
    }
    rerun.output = output;
    rerun.selects = drafts.iter().flat_map(Draft::selected_launches).collect();
    rerun.warnings = drafts.iter().flat_map(Draft::collect_warnings).fold(Vec::new(), |mut all, w| {
        if !all.contains(&w) {
            all.push(w);
        }
        all
    });
    let costs: Vec<Cost> = drafts.iter().map(Draft::estimate_cost).collect();
    let most = |f: fn(&Cost) -> Option<f64>| costs.iter().filter_map(f).fold(0.0, f64::max);
    rerun.cost.seconds = rerun.cost.seconds.and_then(|_| {
        let (figure, _) = options.collect.cost_per_result()?;
        Some(most(|c| c.seconds) + figure.seconds * (n - 1) as f64)
    });
    rerun.cost.bytes = options.collect.cost_per_result().map(|(f, _)| collect::BASE_BYTES + f.bytes * n as u64);
    Ok(Some(rerun))
}
