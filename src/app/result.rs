//! State of the screens about one result: its metrics, its roofline, its code, and another result beside it.

use super::actions::ActionId;
use super::{App, Effect, Status};
use crate::analysis::hints::Subject;
use crate::analysis::page::{self, Row, Wish};
use crate::analysis::roofline::Plot;
use crate::analysis::{code, compare};
use crate::model::{Code, Details, Metrics};
use std::collections::BTreeSet;
use std::sync::Arc;
use tui_input::Input;

/// Which of the screens.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum View {
    /// Sections with metrics.
    Metrics,
    /// What is wrong, or right.
    Hints,
    /// The roofline.
    Roofline,
    /// Beside another result.
    Compare,
    /// Source lines and instructions.
    Source,
}

/// Something that is read when it is looked at.
#[derive(Clone, Debug)]
pub enum Asked<T> {
    /// Not asked for.
    No,
    /// On its way.
    Waiting,
    /// There.
    Is(Arc<T>),
    /// Could not be read, and why.
    Failed(String),
}

impl<T> Asked<T> {
    /// What is there.
    #[must_use]
    pub fn get(&self) -> Option<&Arc<T>> {
        match self {
            Self::Is(t) => Some(t),
            _ => None,
        }
    }
}

/// The screen.
#[derive(Clone, Debug)]
pub struct ResultScreen {
    /// The report that the result is in (not the one whose launch led here).
    pub report: usize,
    /// Its metrics.
    pub metrics: Arc<Metrics>,
    /// Index of the result.
    pub result: usize,
    /// How sure it is that the result is of the launch that led here.
    pub sure: Option<crate::rerun::join::Sure>,
    /// Which screen.
    pub view: View,
    /// The screen that it was opened with, to which the others lead back.
    pub opened: View,
    /// Sections, rules and instances.
    pub details: Asked<Details>,
    /// Binary and sources.
    pub code: Asked<Code>,
    /// Rows of the metrics screen.
    pub rows: Arc<Vec<Row>>,
    /// Index of the selected row.
    pub selected: usize,
    /// Typed filter.
    pub filter: Input,
    /// Whether keys go to the filter.
    pub typing: bool,
    /// Folds that are open.
    pub open: BTreeSet<String>,
    /// What the rules say about the result.
    pub subject: Arc<Subject>,
    /// Lines of the hints screen.
    pub hint_lines: Arc<[super::hints::Line]>,
    /// Index of its selected line.
    pub hint_selected: usize,
    /// Hints that were opened, or, of the first, closed.
    pub hint_toggled: BTreeSet<usize>,
    /// The roofline.
    pub plot: Option<Arc<Plot>>,
    /// Selected row of the roofline's list.
    pub plot_selected: usize,
    /// The other result: report, its metrics, result.
    pub other: Option<(usize, Arc<Metrics>, usize)>,
    /// Rows of the comparison.
    pub compared: Arc<Vec<compare::Row>>,
    /// Selected row of the comparison.
    pub compare_selected: usize,
    /// Lines and instructions.
    pub listing: Option<Arc<code::Listing>>,
    /// Whether the screen shows instructions.
    pub instructions: bool,
    /// Ordered by address or line instead of by samples.
    pub in_order: bool,
    /// Selected row of the listing.
    pub code_selected: usize,
}

impl ResultScreen {
    /// A screen for a result.
    #[must_use]
    pub fn new(report: usize, metrics: Arc<Metrics>, result: usize) -> Self {
        let subject = Arc::new(Subject::of_metrics(&metrics, result).unwrap_or_default());
        Self {
            report,
            metrics,
            result,
            sure: None,
            view: View::Metrics,
            opened: View::Metrics,
            details: Asked::No,
            code: Asked::No,
            rows: Arc::default(),
            selected: 0,
            filter: Input::default(),
            typing: false,
            open: BTreeSet::new(),
            subject,
            hint_lines: Arc::default(),
            hint_selected: 0,
            hint_toggled: BTreeSet::new(),
            plot: None,
            plot_selected: 0,
            other: None,
            compared: Arc::default(),
            compare_selected: 0,
            listing: None,
            instructions: false,
            in_order: false,
            code_selected: 0,
        }
    }

    /// Makes the rows anew, and keeps the selection on its row where it is still there.
    pub fn arrange(&mut self, pins: &[Arc<str>]) {
        let before = self.rows.get(self.selected).cloned();
        let none = Arc::default();
        let details = self.details.get().unwrap_or(&none);
        let wish =
            Wish { filter: self.filter.value().to_owned(), pins: pins.to_vec(), open: self.open.clone(), hints: self.subject.hints.len() };
        self.rows = Arc::new(page::rows(&self.metrics, self.result, details, &wish));
        let same = |row: &Row| match (&before, row) {
            (Some(Row::Fold { key: a, .. }), Row::Fold { key: b, .. }) => a == b,
            (Some(b), row) => b == row,
            (None, _) => false,
        };
        // A metric can be in several sections: the nearest row is meant.
        let all = self.rows.iter().enumerate().filter(|(_, r)| same(r)).map(|(i, _)| i);
        let at = all.min_by_key(|i| i.abs_diff(self.selected)).unwrap_or(0);
        self.selected = self.near(at, 1);
    }

    /// The selectable row at a place, else the next one in a direction, else the nearest in the other.
    fn near(&self, at: usize, step: isize) -> usize {
        let ok = |i: &usize| self.rows.get(*i).is_some_and(Row::selectable);
        let up = || (0..=at.min(self.rows.len().saturating_sub(1))).rev().find(ok);
        let down = || (at..self.rows.len()).find(ok);
        if step < 0 { up().or_else(down) } else { down().or_else(up) }.unwrap_or(0)
    }

    /// Moves the selection of the screen that is on.
    pub fn move_by(&mut self, by: isize) {
        let shift = |at: usize, len: usize| at.saturating_add_signed(by).min(len.saturating_sub(1));
        match self.view {
            View::Metrics => {
                // Over rows that are only read: the next one where the selection stops.
                let selectable: Vec<usize> = (0..self.rows.len()).filter(|&i| self.rows[i].selectable()).collect();
                let now = selectable.iter().position(|&i| i >= self.selected).unwrap_or(0);
                self.selected = selectable.get(shift(now, selectable.len())).copied().unwrap_or(0);
            }
            View::Hints => {
                let selectable: Vec<usize> = (0..self.hint_lines.len()).filter(|&i| self.hint_lines[i].selectable()).collect();
                let now = selectable.iter().position(|&i| i >= self.hint_selected).unwrap_or(0);
                self.hint_selected = selectable.get(shift(now, selectable.len())).copied().unwrap_or(0);
            }
            View::Roofline => self.plot_selected = shift(self.plot_selected, self.plot.as_ref().map_or(0, |p| p.points.len())),
            View::Compare => self.compare_selected = shift(self.compare_selected, self.compared.len()),
            View::Source => self.code_selected = shift(self.code_selected, self.code_rows()),
        }
    }

    /// Whether the report holds the code of the result.
    #[must_use]
    pub fn has_code(&self) -> bool {
        self.details.get().is_some_and(|d| !d.sources.is_empty())
    }

    /// Rows of the listing that is shown.
    #[must_use]
    pub fn code_rows(&self) -> usize {
        self.listing.as_ref().map_or(0, |l| if self.instructions { l.instructions.len() } else { l.lines.len() })
    }

    /// Selects a row by its place; true when it was selected already.
    pub fn press(&mut self, row: usize) -> bool {
        let at = match self.view {
            View::Metrics => {
                if !self.rows.get(row).is_some_and(Row::selectable) {
                    return false;
                }
                &mut self.selected
            }
            View::Hints => {
                if !self.hint_lines.get(row).is_some_and(super::hints::Line::selectable) {
                    return false;
                }
                &mut self.hint_selected
            }
            View::Roofline => &mut self.plot_selected,
            View::Compare => &mut self.compare_selected,
            View::Source => &mut self.code_selected,
        };
        let same = *at == row;
        *at = row;
        same
    }

    /// To the next or previous section.
    pub fn section(&mut self, forward: bool) {
        let head = |i: &usize| matches!(self.rows.get(*i), Some(Row::Section { .. }));
        let found = if forward { (self.selected + 1..self.rows.len()).find(head) } else { (0..self.selected).rev().find(head) };
        self.selected = found.unwrap_or(self.selected);
    }

    /// To a section by its identifier; false when it is not there.
    pub fn go_to(&mut self, id: &str) -> bool {
        let found = self.rows.iter().position(|r| matches!(r, Row::Section { id: i, .. } if **i == *id));
        self.selected = found.unwrap_or(self.selected);
        found.is_some()
    }

    /// Makes the listing anew.
    pub fn list_code(&mut self) {
        let (Some(code), Some(details)) = (self.code.get(), self.details.get()) else { return };
        self.listing = Some(Arc::new(code::list(&self.metrics, self.result, details, code, self.in_order)));
    }

    /// Takes what was read about the result.
    pub fn take_details(&mut self, outcome: Result<Arc<Details>, String>, pins: &[Arc<str>]) {
        self.details = match outcome {
            Ok(details) => Asked::Is(details),
            Err(text) => Asked::Failed(text),
        };
        let first = self.rows.is_empty() || self.selected == 0;
        self.arrange(pins);
        if first {
            self.selected = self.near(0, 1);
        }
        self.arrange_hints();
        self.list_code();
    }
}

fn say(app: &mut App, text: impl Into<String>, error: bool) -> Vec<Effect> {
    app.status = Some(Status { text: text.into(), error });
    Vec::new()
}

/// The result that the selection has, in this report or in one that was joined with it.
fn wanted(app: &App) -> Option<(usize, Arc<Metrics>, usize, Option<crate::rerun::join::Sure>)> {
    let index = app.active;
    let report = app.report()?;
    let profile = report.profile.as_ref()?;
    let paths = report.paths.as_deref();
    // A launch has its own result; of a group it is the longest launch that has one.
    let launches: Option<Vec<u32>> = match &report.launches {
        Some(screen) => Some(vec![screen.launch()?]),
        None => None,
    };
    let in_group = |launch: u32| {
        let (Some(grouping), Some(row)) = (&report.kernels.grouping, report.kernels.row()) else { return false };
        grouping.row_of(profile, paths, launch as usize) == Some(row)
    };
    if let Some(metrics) = &profile.metrics {
        let all = 0..u32::try_from(metrics.results.len()).unwrap_or(u32::MAX);
        let launch = match launches {
            Some(own) => own.first().copied(),
            None => all.filter(|&l| in_group(l)).max_by_key(|&l| (profile.launches.duration(l as usize), std::cmp::Reverse(l))),
        }?;
        return Some((index, metrics.clone(), launch as usize, None));
    }
    let pairs = report.joins.iter().flat_map(|(other, join)| join.pairs.iter().map(move |p| (*other, *p)));
    let best = match launches {
        Some(own) => pairs.filter(|(_, p)| own.contains(&p.launch)).min_by_key(|(_, p)| p.sure),
        None => pairs
            .filter(|(_, p)| in_group(p.launch))
            .min_by_key(|(_, p)| (!p.sure.exact(), std::cmp::Reverse(profile.launches.duration(p.launch as usize)))),
    };
    let (other, pair) = best?;
    let metrics = app.reports.get(other)?.profile.as_ref()?.metrics.clone()?;
    Some((other, metrics, pair.result, Some(pair.sure)))
}

/// Whether the selection has a result.
#[must_use]
pub fn available(app: &App) -> bool {
    wanted(app).is_some()
}

/// Opens the metrics of the selected launch, or of the longest profiled launch of the selected group.
pub fn open(app: &mut App) -> Vec<Effect> {
    let Some((report, metrics, result, sure)) = wanted(app) else {
        let rerun = app.settings.keymap.label(ActionId::Rerun);
        let text = format!("no metrics: {rerun} gives the command that profiles it; open its result beside this report");
        return say(app, text, false);
    };
    show(app, report, metrics, result, sure)
}

fn show(app: &mut App, from: usize, metrics: Arc<Metrics>, result: usize, sure: Option<crate::rerun::join::Sure>) -> Vec<Effect> {
    let mut screen = ResultScreen::new(from, metrics, result);
    screen.sure = sure;
    screen.details = Asked::Waiting;
    screen.arrange(&app.pins);
    let index = app.active;
    if let Some(report) = app.reports.get_mut(index) {
        report.result = Some(screen);
    }
    vec![Effect::Details { report: index, from, result }]
}

/// To the next or previous result of the same report.
pub fn step(app: &mut App, by: isize) -> Vec<Effect> {
    let index = app.active;
    let Some(old) = app.reports.get(index).and_then(|r| r.result.clone()) else { return Vec::new() };
    let n = old.metrics.results.len();
    if n < 2 {
        return say(app, "this is the only result of its report", false);
    }
    let mut next = (old.result + n).saturating_add_signed(by) % n;
    // Beside itself a result says nothing.
    if n > 2 && matches!(&old.other, Some((report, _, other)) if old.view == View::Compare && *report == old.report && *other == next) {
        next = (next + n).saturating_add_signed(by.signum()) % n;
    }
    // Reached through a timeline: how sure it is which launch the next one is of.
    let sure = app.reports.get(index).filter(|_| old.report != index).and_then(|r| r.launch_of(old.report, next)).map(|p| p.sure);
    let effects = show(app, old.report, old.metrics.clone(), next, sure);
    let pins = app.pins.clone();
    if let Some(screen) = app.reports.get_mut(index).and_then(|r| r.result.as_mut()) {
        (screen.view, screen.opened, screen.filter, screen.open) = (old.view, old.opened, old.filter, old.open);
        (screen.instructions, screen.in_order) = (old.instructions, old.in_order);
        // Two reports side by side go on together: to the same launch of the same kernel.
        screen.other = old.other.map(|(report, metrics, other)| {
            // By what a rebuild does not change: symbols may hold a hash.
            let key = |r: &crate::model::ResultMetrics| (r.kernel.function().to_owned(), r.grid, r.block);
            let own = screen.metrics.results.get(next).map(key);
            let nth = screen.metrics.results.iter().take(next).filter(|r| Some(key(r)) == own).count();
            let found = metrics.results.iter().enumerate().filter(|(_, r)| Some(key(r)) == own).nth(nth).map(|(i, _)| i);
            let at = found.filter(|_| report != screen.report).unwrap_or(other);
            (report, metrics, at)
        });
        screen.arrange(&pins);
        // The same row of the next result: that is what one wants to see.
        screen.selected = screen.near(old.selected.min(screen.rows.len().saturating_sub(1)), 1);
    }
    let more = enter(app);
    effects.into_iter().chain(more).collect()
}

/// Turns to one of the screens, or from it back to the metrics.
pub fn turn(app: &mut App, view: View) -> Vec<Effect> {
    let index = app.active;
    if app.report().is_some_and(|r| r.result.is_none()) {
        let effects = open(app);
        if effects.is_empty() {
            return effects;
        }
        if let Some(screen) = app.reports.get_mut(index).and_then(|r| r.result.as_mut()) {
            (screen.view, screen.opened) = (view, view);
        }
        return effects.into_iter().chain(enter(app)).collect();
    }
    if let Some(screen) = app.reports.get_mut(index).and_then(|r| r.result.as_mut()) {
        screen.view = match screen.view == view {
            true if screen.opened == view => View::Metrics,
            true => screen.opened,
            false => view,
        };
    }
    enter(app)
}

/// Makes what the screen that is on needs.
fn enter(app: &mut App) -> Vec<Effect> {
    let index = app.active;
    let marked = super::result_views::marked(app);
    let Some(screen) = app.reports.get_mut(index).and_then(|r| r.result.as_mut()) else { return Vec::new() };
    match screen.view {
        View::Metrics => Vec::new(),
        View::Hints => {
            screen.arrange_hints();
            Vec::new()
        }
        View::Roofline => {
            screen.plot = Some(Arc::new(Plot::of(&screen.metrics, screen.result, &marked)));
            screen.plot_selected = 0;
            Vec::new()
        }
        View::Compare => match &screen.other {
            Some((_, other, result)) => {
                screen.compared = Arc::new(compare::rows(&screen.metrics, screen.result, other, *result, ""));
                screen.compare_selected = screen.compare_selected.min(screen.compared.len().saturating_sub(1));
                Vec::new()
            }
            None => {
                screen.view = View::Metrics;
                super::result_views::ask_other(app)
            }
        },
        View::Source => {
            if matches!(screen.code, Asked::No) {
                screen.code = Asked::Waiting;
                return vec![Effect::Code { report: index, from: screen.report, result: screen.result }];
            }
            Vec::new()
        }
    }
}

/// Pins or unpins the selected metric.
pub fn pin(app: &mut App) -> Vec<Effect> {
    let index = app.active;
    let name = app.report().and_then(|r| r.result.as_ref()).and_then(|s| s.rows.get(s.selected)?.metric().cloned());
    let Some(name) = name else {
        return say(app, "no metric is selected", true);
    };
    let said = if app.pins.contains(&name) {
        app.pins.retain(|p| *p != name);
        format!("unpinned {name}")
    } else {
        let said = format!("pinned {name}: it is at the top of every result");
        app.pins.push(name);
        said
    };
    let pins = app.pins.clone();
    if let Some(screen) = app.reports.get_mut(index).and_then(|r| r.result.as_mut()) {
        screen.arrange(&pins);
    }
    say(app, said, false)
}
