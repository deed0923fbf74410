//! `--range`, `--phase`, `--from` and `--to`: the part of a run to judge.

use super::failure::Failure;
use super::time_window::Between;
use crate::analysis::triage::{self, JudgedTime, Phase, Scope};
use crate::model::{Cancel, Profile};
use clap::builder::PossibleValuesParser;
use std::sync::Arc;

/// The part of a run to judge; by default its steady state.
#[derive(Clone, Debug, Default, clap::Args)]
pub struct ScopeArgs {
    /// Judge only the time spent on ranges of this name (numbers may be written as #: `step #`).
    #[arg(long, value_name = "NAME", conflicts_with_all = ["from", "to"])]
    pub range: Option<String>,
    /// Judge only this phase of the run [default: steady, which leaves out the others].
    #[arg(long, value_name = "PHASE", value_parser = PossibleValuesParser::new(Phase::ALL.map(|p| p.1)), conflicts_with_all = ["from", "to", "range"])]
    pub phase: Option<String>,
    #[command(flatten)]
    pub between: Between,
}

impl ScopeArgs {
    /// Returns the selected windows; empty for the steady state.
    pub fn to_windows(&self, profile: &Profile, file: &str, device: Option<u32>) -> Result<Vec<(i64, i64)>, Failure> {
        let between = self.between.to_window().map_err(Failure::usage)?;
        Ok(match (&self.range, self.phase.as_deref().and_then(Phase::of)) {
            (Some(name), _) => windows_of_ranges(profile, file, name)?,
            (None, Some(phase)) if phase != Phase::Steady => phase_windows(profile, file, phase, device)?,
            (None, _) => between.map(|window| close_window(profile, window)).into_iter().collect(),
        })
    }

    /// Returns true if `--from` or `--to` was given.
    pub fn has_window(&self) -> bool {
        self.between.from.is_some() || self.between.to.is_some()
    }
}

/// Replaces an open end of a window by the begin or the end of what ran on the GPUs.
fn close_window(profile: &Profile, (from, to): (i64, i64)) -> (i64, i64) {
    let (first, last) = triage::gpu_span(profile).unwrap_or((0, 0));
    let from = if from == i64::MIN { first.min(to.saturating_sub(1)) } else { from };
    let to = if to == i64::MAX { last.max(from.saturating_add(1)) } else { to };
    (from, to)
}

/// Returns the time windows in which the devices worked on ranges with that name.
fn windows_of_ranges(profile: &Profile, file: &str, name: &str) -> Result<Vec<(i64, i64)>, Failure> {
    let found = triage::range_windows(profile, name);
    if !found.is_empty() {
        return Ok(found);
    }
    let near = triage::nearest_range(profile, name).map_or_else(String::new, |n| format!("; did you mean {n:?}?"));
    Err(Failure::wrong(format!("{file}: no range is called {name:?}, or nothing was launched in it{near}; `warpscope ranges` lists them")))
}

/// Returns the window of a phase, ns, and the parts of it that are judged; an error if the run has no such phase.
pub fn phase_parts(profile: &Profile, file: &str, phase: Phase) -> Result<((i64, i64), Arc<JudgedTime>), Failure> {
    if phase == Phase::Steady
        && let Some(found) = triage::triage_profile(profile, &Scope::default(), &Cancel::default())
    {
        return Ok((found.window, Arc::new(found.judged)));
    }
    let windows = phase_windows(profile, file, phase, None)?;
    let whole = (windows.iter().map(|w| w.0).min().unwrap_or(0), windows.iter().map(|w| w.1).max().unwrap_or(0));
    Ok((whole, Arc::new(JudgedTime::from_windows(&windows))))
}

/// Returns the windows of a phase, ns; an error if the run has no such phase.
pub fn phase_windows(profile: &Profile, file: &str, phase: Phase, device: Option<u32>) -> Result<Vec<(i64, i64)>, Failure> {
    let scope = Scope { device, ..Scope::default() };
    let found = triage::triage_profile(profile, &scope, &Cancel::default());
    let windows: Vec<(i64, i64)> = match phase {
        Phase::Steady => found.iter().map(|t| t.window).collect(),
        _ => found.iter().flat_map(|t| &t.left_out).filter(|l| l.phase == phase).map(|l| (l.start, l.end)).collect(),
    };
    if windows.is_empty() {
        let word = if phase == Phase::Steady { "steady state" } else { phase.word() };
        return Err(Failure::wrong(format!("{file}: no {word} was found: `warpscope triage` without --phase says what is left out")));
    }
    Ok(windows)
}
