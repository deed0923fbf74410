//! State of the screen that shows what changed between two runs.

use super::pick::{Choice, Item, Pick};
use super::work::{Ask, Work};
use super::{App, Effect, Overlay, Status};
use crate::analysis::GroupBy;
use crate::analysis::diff::Diff;
use std::sync::Arc;

/// The screen.
#[derive(Clone, Debug)]
pub struct DiffScreen {
    /// Index of the report before.
    pub before: usize,
    /// Index of the report after.
    pub after: usize,
    /// What came out; `None` until it is there.
    pub diff: Option<Arc<Diff>>,
    /// Selected row.
    pub selected: usize,
}

fn say(app: &mut App, text: impl Into<String>, error: bool) -> Vec<Effect> {
    app.status = Some(Status { text: text.into(), error });
    Vec::new()
}

/// Opens it on the report that is shown and another: asked for where there are several.
pub fn open(app: &mut App) -> Vec<Effect> {
    let others: Vec<usize> = (0..app.reports.len()).filter(|&i| i != app.active).collect();
    match others[..] {
        [] => say(app, "there is one report in this session; open two, or choose another run in the library", false),
        [other] => open_on(app, other.min(app.active), other.max(app.active)),
        _ => {
            let item = |i: usize| Item {
                label: app.reports[i].file.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned()),
                hint: app.reports[i].file.display().to_string(),
                letter: None,
                choice: Choice::Before(i),
            };
            let items = others.into_iter().map(item).collect();
            app.overlay = Some(Overlay::Pick(Pick::by_typing("compare with, as the one before", items)));
            Vec::new()
        }
    }
}

/// Opens it on two reports.
pub fn open_on(app: &mut App, before: usize, after: usize) -> Vec<Effect> {
    app.diff = Some(DiffScreen { before, after, diff: None, selected: 0 });
    app.library = None;
    app.active = after;
    want(app)
}

/// Asks for the comparison, once both reports are read.
#[must_use]
pub fn want(app: &App) -> Vec<Effect> {
    let Some(screen) = app.diff.as_ref().filter(|s| s.diff.is_none()) else { return Vec::new() };
    let ready = |i: usize| app.reports.get(i).filter(|r| !r.reading()).and_then(|r| Some((r.generation, r.profile.clone()?)));
    let (Some((_, before)), Some((generation, after))) = (ready(screen.before), ready(screen.after)) else { return Vec::new() };
    let ask = Ask::Diff { before, by: GroupBy::Name, pair: (screen.before, screen.after) };
    vec![Effect::Work(Box::new(Work { report: screen.after, generation, profile: after, paths: None, ask }))]
}

/// Takes it.
pub fn take(app: &mut App, pair: (usize, usize), diff: Arc<Diff>) {
    if let Some(screen) = app.diff.as_mut().filter(|s| (s.before, s.after) == pair) {
        screen.diff = Some(diff);
    }
}

/// To the selected kernel in the report after, or, when it is gone, before.
pub fn enter(app: &mut App) -> Vec<Effect> {
    let Some(screen) = &app.diff else { return Vec::new() };
    let Some(row) = screen.diff.as_ref().and_then(|d| d.rows.get(screen.selected)) else { return Vec::new() };
    let (report, name) = match (&row.after, &row.before) {
        (Some(side), _) => (screen.after, side.name.clone()),
        (None, Some(side)) => (screen.before, side.name.clone()),
        _ => return Vec::new(),
    };
    app.diff = None;
    app.active = report;
    let Some(r) = app.reports.get_mut(report) else { return Vec::new() };
    (r.launches, r.result, r.rerun) = (None, None, None);
    if r.kernels.select(&name) { r.want_detail(report) } else { Vec::new() }
}

/// The other way round.
pub fn swap(app: &mut App) -> Vec<Effect> {
    let Some(screen) = &app.diff else { return Vec::new() };
    let (before, after) = (screen.after, screen.before);
    open_on(app, before, after)
}
