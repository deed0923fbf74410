//! State of the hints screen: what is wrong, or right, with one result, line by line; each line leads on.

use super::result::{ResultScreen, View};
use super::{App, Effect, Overlay, Status};
use crate::analysis::checklist::{Item, Part, items};
use crate::analysis::gains;
use crate::analysis::hints::{Diagnosis, Facts, Severity, Subject, diagnose};
use crate::analysis::rows::Row;
use crate::model::{Details, Metrics};
use crate::rerun::Options;
use std::collections::{BTreeSet, HashMap};
use std::sync::Arc;

/// A line of the screen.
#[derive(Clone, Debug, PartialEq)]
pub enum Line {
    /// A hint, and whether it is open.
    Hint(usize, bool),
    /// How its gain was bounded.
    Bound(usize),
    /// A number that led to it.
    Evidence(usize, usize),
    /// An effect of it.
    Effect(usize, usize),
    /// Something to change.
    Action(usize, usize),
    /// What would confirm it.
    Confirm(usize),
    /// A title.
    Title(&'static str),
    /// A sentence of the reasoning.
    Reason(String),
    /// A rule of NVIDIA's with its estimate: rule and message.
    Theirs(usize, usize),
    /// Nothing is known.
    Nothing,
}

impl Line {
    /// Whether the selection stops here.
    #[must_use]
    pub fn selectable(&self) -> bool {
        matches!(self, Self::Hint(..) | Self::Evidence(..) | Self::Confirm(_) | Self::Theirs(..))
    }
}

/// Rules of NVIDIA's that are shown.
const MOST_THEIRS: usize = 5;

/// The lines. The first hint is open unless it was closed; the others when they were opened.
#[must_use]
pub fn lines(subject: &Subject, details: Option<&Details>, toggled: &BTreeSet<usize>) -> Vec<Line> {
    let mut out = Vec::new();
    for (i, hint) in subject.hints.iter().enumerate() {
        let open = (i == 0) != toggled.contains(&i);
        out.push(Line::Hint(i, open));
        if open {
            out.push(Line::Bound(i));
            out.extend((0..hint.evidence.len()).map(|e| Line::Evidence(i, e)));
            out.extend((0..hint.effects.len()).map(|e| Line::Effect(i, e)));
            out.extend((0..hint.actions.len()).map(|a| Line::Action(i, a)));
            if !hint.confirm.sections.is_empty() {
                out.push(Line::Confirm(i));
            }
        }
    }
    if subject.hints.is_empty() {
        out.push(Line::Nothing);
    }
    let reasons = crate::analysis::hints::reasoning::sentences(&subject.facts);
    if !reasons.is_empty() {
        out.push(Line::Title("How it was found"));
        out.extend(reasons.into_iter().map(Line::Reason));
    }
    let theirs = details.map(gains::largest).unwrap_or_default();
    if !theirs.is_empty() {
        out.push(Line::Title("NVIDIA's rules, by their estimates"));
        out.extend(theirs.into_iter().take(MOST_THEIRS).map(|(r, m, ..)| Line::Theirs(r, m)));
    }
    out
}

impl ResultScreen {
    /// The hint that the selected line is of.
    #[must_use]
    pub fn hint(&self) -> Option<usize> {
        self.hint_lines.get(self.hint_selected).and_then(|l| match l {
            Line::Hint(i, _) | Line::Evidence(i, _) | Line::Confirm(i) => Some(*i),
            _ => None,
        })
    }

    /// Makes the lines anew.
    pub fn arrange_hints(&mut self) {
        let before = self.hint_lines.get(self.hint_selected).cloned();
        self.hint_lines = lines(&self.subject, self.details.get().map(|d| &**d), &self.hint_toggled).into();
        let same = |l: &Line| match (&before, l) {
            (Some(Line::Hint(a, _)), Line::Hint(b, _)) => a == b,
            (Some(b), l) => b == l,
            (None, _) => false,
        };
        let at = self.hint_lines.iter().position(same).unwrap_or(self.hint_selected);
        self.hint_selected = at.min(self.hint_lines.len().saturating_sub(1));
    }

    /// Opens the screen at a hint.
    pub fn show_hint(&mut self, hint: usize) {
        self.view = View::Hints;
        if hint > 0 {
            self.hint_toggled.insert(hint);
        } else {
            self.hint_toggled.remove(&0);
        }
        self.arrange_hints();
        let at = self.hint_lines.iter().position(|l| matches!(l, Line::Hint(i, _) if *i == hint));
        self.hint_selected = at.unwrap_or(0);
    }

    /// To a metric on the metrics screen; where no section shows it, it is searched for.
    fn go_to_metric(&mut self, name: &str, pins: &[Arc<str>]) {
        self.view = View::Metrics;
        self.filter.reset();
        self.arrange(pins);
        let is = |r: &Row| match r {
            Row::Cells { metrics, .. } => metrics.iter().any(|m| **m == *name),
            other => other.metric().is_some_and(|m| **m == *name),
        };
        if let Some(at) = self.rows.iter().position(is) {
            self.selected = at;
        } else {
            self.filter = name.into();
            self.arrange(pins);
            self.selected = self.rows.iter().position(is).unwrap_or(0);
        }
    }
}

/// Acts on the selected line: opens or closes a hint, goes to the metric's place or to NVIDIA's rule, or to the command that confirms.
pub fn enter(app: &mut App) -> Vec<Effect> {
    let (index, pins) = (app.active, app.pins.clone());
    let Some(screen) = app.reports.get_mut(index).and_then(|r| r.result.as_mut()) else { return Vec::new() };
    match screen.hint_lines.get(screen.hint_selected).cloned() {
        Some(Line::Hint(i, _)) => {
            if !screen.hint_toggled.remove(&i) {
                screen.hint_toggled.insert(i);
            }
            screen.arrange_hints();
        }
        Some(Line::Evidence(i, e)) => {
            let metric = screen.subject.hints.get(i).and_then(|h| h.evidence.get(e)).map(|e| e.metric.clone());
            match metric.filter(|m| !m.is_empty()) {
                Some(name) => screen.go_to_metric(&name, &pins),
                None => {
                    let text = "computed from the metrics around it".to_owned();
                    app.status = Some(Status { text, error: false });
                }
            }
        }
        Some(Line::Confirm(_)) => return super::rerun::open(app),
        Some(Line::Theirs(r, m)) => {
            screen.view = View::Metrics;
            screen.filter.reset();
            screen.arrange(&pins);
            let found = screen.rows.iter().position(|row| *row == Row::Rule(r, m));
            screen.selected = found.unwrap_or(screen.selected);
            if found.is_none() {
                app.overlay = Some(Overlay::Explain(0));
            }
        }
        _ => {}
    }
    Vec::new()
}

/// What a re-run from a result's screen collects: on the hints screen what confirms the selected hint, elsewhere the usual.
#[must_use]
pub fn options(screen: &ResultScreen) -> Options {
    if screen.view != View::Hints {
        return Options::first_look();
    }
    let hint = screen.hint().or(Some(0)).and_then(|i| screen.subject.hints.get(i));
    let confirm = hint.map(|h| h.confirm.clone()).filter(|c| !c.sections.is_empty()).or_else(|| screen.subject.collect());
    confirm.and_then(|c| crate::rerun::confirm::options(&c)).unwrap_or_else(Options::first_look)
}

/// Opens the hints of the selected kernel or launch: those of its result, or what the launch alone tells.
pub fn open(app: &mut App) -> Vec<Effect> {
    if app.report().is_some_and(|r| r.result.is_some()) || super::result::available(app) {
        return super::result::turn(app, View::Hints);
    }
    let subject = app.report().and_then(|r| {
        let profile = r.profile.as_deref().filter(|p| p.metrics.is_none())?;
        let launch = match &r.launches {
            Some(screen) => screen.launch()?,
            None => r.detail.as_ref().filter(|d| Some(d.1) == r.kernels.row())?.2.slowest?.0,
        };
        Some((profile, Subject::of_launch(profile, launch)?))
    });
    let columns = usize::from(app.size.0.saturating_sub(8)).clamp(20, 100);
    let text = subject.and_then(|(profile, s)| {
        let mut out = Vec::new();
        crate::report::hints::explain(&mut out, profile, std::iter::once(s), columns).ok()?;
        String::from_utf8(out).ok()
    });
    match text {
        Some(text) => app.overlay = Some(Overlay::Advice(0, text.lines().map(str::to_owned).collect())),
        // How to get there.
        None => return super::result::open(app),
    }
    Vec::new()
}

/// What of an analysis this session has: reckoned once, when it is asked for.
#[must_use]
pub fn checklist(app: &App) -> Arc<[Item]> {
    let metrics = |at: usize| -> Option<&Metrics> { app.reports.get(at)?.profile.as_ref()?.metrics.as_deref() };
    let parts: Vec<Part<'_>> = app
        .reports
        .iter()
        .filter_map(|r| {
            let joined = r.joins.iter().filter_map(|(other, join)| Some((metrics(*other)?, join)));
            let joined = joined.flat_map(|(m, join)| join.pairs.iter().map(move |p| (p.launch, m, p.result))).collect();
            Some(Part { profile: r.profile.as_deref()?, joined })
        })
        .collect();
    if parts.is_empty() { Arc::default() } else { items(&parts).into() }
}

/// The command that confirms the selected hint, and what it is.
#[must_use]
pub fn confirming(index: usize, report: &super::Report, screen: &ResultScreen) -> Option<(String, String)> {
    let hint = screen.hint().or(Some(0)).and_then(|i| screen.subject.hints.get(i));
    let confirm = hint.map(|h| h.confirm.clone()).filter(|c| !c.sections.is_empty()).or_else(|| screen.subject.collect())?;
    // Of a result in another report: the launch of the timeline that it is of.
    let launch =
        if screen.report == index { u32::try_from(screen.result).ok()? } else { report.launch_of(screen.report, screen.result)?.launch };
    let command = crate::rerun::confirm::command(report.profile.as_deref()?, launch, &confirm).ok()?;
    let shell = command.shell();
    (!shell.is_empty()).then(|| (shell, "command".to_owned()))
}

/// The first hint of a result, for tables.
#[derive(Clone, Debug, PartialEq)]
pub struct Verdict {
    /// What it says.
    pub id: Diagnosis,
    /// How much is at stake.
    pub severity: Severity,
    /// In this kernel's numbers.
    pub headline: String,
}

/// The first hint of each of some results that have one.
#[must_use]
pub fn verdicts(metrics: &Metrics, results: impl Iterator<Item = usize>) -> HashMap<usize, Verdict> {
    let first = |r| diagnose(&Facts::of_result(metrics, r)).into_iter().next();
    results
        .filter_map(|r| Some((r, first(r)?)))
        .map(|(r, h)| (r, Verdict { id: h.id, severity: h.severity, headline: h.headline }))
        .collect()
}
