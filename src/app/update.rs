//! Effects of each message on the state

use super::arrive::arrive;
use super::first::greet;
use super::keys;
use super::msg::{Effect, Msg};
use super::open::{carry, no_metrics, quit_now, say, tell, tell_all};
use super::over::Page;
use super::runs;
use super::screen::{Answer, News};
use super::state::App;
use super::tour;
use super::work::{Ask, Done};
use std::sync::Arc;

/// Updates the state with a message.
pub fn update(app: &mut App, msg: Msg) -> Vec<Effect> {
    let effects = change(app, msg);
    tour::follow(app);
    effects
}

fn change(app: &mut App, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(key) => keys::on_key(app, key),
        Msg::Paste(text) => keys::paste(app, &text),
        Msg::Mouse(mouse) => keys::on_mouse(app, mouse),
        Msg::Resize(w, h) => {
            app.session.size = (w, h);
            vec![Effect::Redraw]
        }
        Msg::Progress(i, progress) => {
            let mut effects = app.session.reports.get_mut(i).map(|r| r.progress(i, progress)).unwrap_or_default();
            effects.extend(greet(app, i));
            effects.extend(arrive(app));
            effects
        }
        Msg::Loaded(i, outcome) => {
            let mut effects = app.session.reports.get_mut(i).map(|r| r.loaded(i, outcome)).unwrap_or_default();
            effects.extend(joins(app, i));
            effects.extend(measured(app, i));
            effects.extend(arrive(app));
            effects.extend(greet(app, i));
            effects.extend(runs::arrived(app));
            effects.extend(tell_all(app, News::Loaded));
            effects
        }
        Msg::Preflight(found) => runs::preflight(app, &found),
        Msg::Started(outcome) => runs::started(app, outcome),
        Msg::Run(news) => runs::news(app, &news),
        Msg::Gpu(run, busy) => {
            app.running.gpu(run, busy);
            Vec::new()
        }
        Msg::Live(run, live) => {
            app.running.stands(run, live);
            Vec::new()
        }
        Msg::Snapshot(outcome) => runs::snapshot(app, outcome),
        Msg::Step(run, news) => runs::step(app, run, &news),
        Msg::Library(outcome) => tell_all(app, News::Library(&outcome)),
        Msg::Printed(run, lines, kept) => tell_all(app, News::Printed(run, &lines, &kept)),
        Msg::Details { report, from, result, outcome } => tell(app, report, News::Details { from, result, outcome: &outcome }),
        Msg::Code { report, from, result, outcome } => tell(app, report, News::Code { from, result, outcome: &outcome }),
        Msg::Done { report, generation, window, done } => self::done(app, report, (generation, window), &done),
        Msg::Copied(Ok(text)) => say(app, text, false),
        Msg::Trouble(text) | Msg::Copied(Err(text)) => say(app, text, true),
        Msg::Verified { report, selects, found } => tell(app, report, News::Verified { selects: &selects, found: &found }),
        Msg::Terminate => quit_now(app),
    }
}

/// Handles a finished analysis: first in the report, then in its screens.
fn done(app: &mut App, report: usize, state: (u64, Option<(i64, i64)>), done: &Done) -> Vec<Effect> {
    // A page is text for the screen that asked and refers to no rows, so it stays valid if the profile has changed.
    let page = matches!(done, Done::Advice(..) | Done::Checklist(..));
    let taken = app.session.reports.get_mut(report).and_then(|r| r.done(report, state, done));
    let Some(mut effects) = taken.or(page.then(Vec::new)) else { return Vec::new() };
    effects.extend(tell(app, report, News::Done(done)));
    if matches!(done, Done::Triage(_) | Done::Joined(..)) {
        effects.extend(work(app, report));
    }
    match done {
        // Show the page only if its screen is still on top.
        Done::Advice(screen, advice) if shown(app, *screen) => effects.extend(match advice {
            Some(text) => carry(app, *screen, Answer::over(Page::Advice(text.clone()))),
            None => no_metrics(app),
        }),
        Done::Checklist(screen, items) if shown(app, *screen) => {
            effects.extend(carry(app, *screen, Answer::over(Page::Checklist(items.clone()))));
        }
        _ => {}
    }
    effects.extend(runs::arrived(app));
    effects.extend(arrive(app));
    effects
}

/// Returns true if a screen is on top, without an overlay.
fn shown(app: &App, screen: u64) -> bool {
    app.over.is_none() && app.top().is_some_and(|e| e.id == screen)
}

/// Requests the floating-point work of the run, from results that are joined with its launches.
fn work(app: &mut App, index: usize) -> Vec<Effect> {
    let session = &app.session;
    let Some(report) = session.reports.get(index) else { return Vec::new() };
    let Some(window) = report.triage.as_ref().and_then(|t| t.as_ref()).map(|t| t.window) else { return Vec::new() };
    let joined: Vec<_> =
        report.joins.iter().filter_map(|(other, join)| Some((session.metrics(*other)?.clone(), Arc::clone(join)))).collect();
    if joined.is_empty() { Vec::new() } else { report.ask(index, Ask::Work { window, joined }) }
}

/// Adds the counters in the file of a timeline as a report of their own, and joins it to the timeline.
fn measured(app: &mut App, of: usize) -> Vec<Effect> {
    let Some(profile) = app.session.reports.get(of).and_then(|r| r.profile.as_ref()).and_then(|p| p.measured.clone()) else {
        return Vec::new();
    };
    let mut effects = Vec::new();
    let at = app.session.reports.iter().position(|r| r.part_of == Some(of)).unwrap_or_else(|| {
        effects.push(Effect::Part(of));
        app.session.add_part(of)
    });
    app.furnish();
    effects.extend(app.session.reports.get_mut(at).map(|r| r.loaded(at, Ok(profile))).unwrap_or_default());
    effects.extend(joins(app, at));
    effects
}

/// Requests the matches between launches and results, of a report that was read and of all others.
fn joins(app: &App, new: usize) -> Vec<Effect> {
    let session = &app.session;
    let timeline = |i: usize| session.reports.get(i).filter(|_| session.timeline(i));
    let mut out = Vec::new();
    for other in (0..session.reports.len()).filter(|&o| o != new) {
        if let (Some(t), Some(m)) = (timeline(new), session.metrics(other)) {
            out.extend(t.want_join(new, other, m));
        }
        if let (Some(t), Some(m)) = (timeline(other), session.metrics(new)) {
            out.extend(t.want_join(other, new, m));
        }
    }
    out
}
