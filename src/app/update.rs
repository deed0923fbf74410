//! Handling of messages

use super::deep_link::resume_deep_link;
use super::file_list;
use super::initial_screen::show_initial_screen;
use super::jobs::{JobRequest, JobResult};
use super::keys;
use super::msg::{Effect, Msg};
use super::navigation::{apply_response, broadcast_to_all, broadcast_to_report, no_metrics, quit_now, set_status};
use super::overlay::Page;
use super::run_events;
use super::screen::{Response, ScreenEvent};
use super::screens::ranks::request_for_overviews;
use super::state::App;
use super::tour;
use std::sync::Arc;

/// Updates the state according to a message and returns the effects.
pub fn update(app: &mut App, msg: Msg) -> Vec<Effect> {
    let effects = handle_message(app, msg);
    tour::update_step(app);
    effects
}

fn handle_message(app: &mut App, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(key) => keys::on_key(app, key),
        Msg::Paste(text) => keys::on_paste(app, &text),
        Msg::Mouse(mouse) => keys::on_mouse(app, mouse),
        Msg::Resize(w, h) => {
            app.session.size = (w, h);
            let mut effects = broadcast_to_all(app, ScreenEvent::Resized(w));
            effects.push(Effect::Redraw);
            effects
        }
        Msg::Progress(i, progress) => {
            let mut effects = app.session.reports.get_mut(i).map(|r| r.apply_progress(i, progress)).unwrap_or_default();
            effects.extend(show_initial_screen(app, i));
            effects.extend(resume_deep_link(app));
            effects
        }
        Msg::Loaded(i, outcome) => {
            let mut effects = app.session.reports.get_mut(i).map(|r| r.finish_loading(i, outcome)).unwrap_or_default();
            effects.extend(request_joins(app, i));
            effects.extend(add_measurements(app, i));
            effects.extend(resume_deep_link(app));
            effects.extend(show_initial_screen(app, i));
            effects.extend(run_events::check_awaited(app));
            effects.extend(broadcast_to_all(app, ScreenEvent::Loaded));
            effects
        }
        Msg::Preflight(found) => run_events::handle_preflight(app, &found),
        Msg::Started(outcome) => run_events::handle_started(app, outcome),
        Msg::Run(news) => run_events::handle_news(app, &news),
        Msg::Gpu(run, busy) => {
            app.running.record_gpu_sample(run, busy);
            Vec::new()
        }
        Msg::Live(run, live) => {
            app.running.update_live(run, live);
            Vec::new()
        }
        Msg::Snapshot(outcome) => run_events::open_snapshot(app, outcome),
        Msg::Step(run, news) => run_events::handle_step_news(app, run, &news),
        Msg::Library(outcome) => broadcast_to_all(app, ScreenEvent::Library(&outcome)),
        Msg::Files(found) => file_list::show_files(app, &found),
        Msg::Printed(run, lines, kept) => broadcast_to_all(app, ScreenEvent::Printed(run, &lines, &kept)),
        Msg::Details { report, from, result, outcome } => {
            broadcast_to_report(app, report, ScreenEvent::Details { from, result, outcome: &outcome })
        }
        Msg::Code { report, from, result, outcome } => {
            broadcast_to_report(app, report, ScreenEvent::Code { from, result, outcome: &outcome })
        }
        Msg::SourceText { report, file, outcome } => {
            broadcast_to_report(app, report, ScreenEvent::SourceText { file: &file, outcome: &outcome })
        }
        Msg::Done { report, generation, window, done } => self::handle_done(app, report, (generation, window), &done),
        Msg::Copied(Ok(text)) => set_status(app, text, false),
        Msg::Trouble(text) | Msg::Copied(Err(text)) => set_status(app, text, true),
        Msg::Verified { report, selects, found } => {
            broadcast_to_report(app, report, ScreenEvent::Verified { selects: &selects, found: &found })
        }
        Msg::Terminate => quit_now(app),
    }
}

/// Handles a finished analysis: first in the report, then in the screens.
fn handle_done(app: &mut App, report: usize, state: (u64, Option<(i64, i64)>), done: &JobResult) -> Vec<Effect> {
    // A page is text for one screen and does not refer to rows, so it stays valid even if the profile has changed.
    let page = matches!(done, JobResult::Advice(..) | JobResult::Checklist(..));
    let window = |app: &App| app.session.reports.get(report).and_then(|r| r.window);
    let before = window(app);
    let taken = app.session.reports.get_mut(report).and_then(|r| r.apply_result(report, state, done));
    let Some(mut effects) = taken.or(page.then(Vec::new)) else { return Vec::new() };
    effects.extend(broadcast_to_report(app, report, ScreenEvent::Done(done)));
    if window(app) != before {
        effects.extend(broadcast_to_report(app, report, ScreenEvent::Window));
    }
    if matches!(done, JobResult::Triage(_) | JobResult::Joined(..)) {
        effects.extend(request_flops(app, report));
    }
    if let JobResult::Ranks(ranks) = done {
        app.session.ranks = Some(Arc::clone(ranks));
    }
    if matches!(done, JobResult::Ranks(_) | JobResult::Triage(_) | JobResult::RunJudged(_)) {
        app.session.complete_findings();
    }
    if matches!(done, JobResult::Triage(_)) && app.session.ranks.is_none() {
        effects.extend(request_for_overviews(&app.session));
    }
    match done {
        // Show the page only if its screen is still on top.
        JobResult::Advice(screen, advice) if is_on_top(app, *screen) => effects.extend(match advice {
            Some(text) => apply_response(app, *screen, Response::open_overlay(Page::Advice(text.clone()))),
            None => no_metrics(app),
        }),
        JobResult::Checklist(screen, items) if is_on_top(app, *screen) => {
            effects.extend(apply_response(app, *screen, Response::open_overlay(Page::Checklist(items.clone()))));
        }
        _ => {}
    }
    effects.extend(run_events::check_awaited(app));
    effects.extend(resume_deep_link(app));
    effects
}

/// Returns true if a screen is on top with no overlay over it.
fn is_on_top(app: &App, screen: u64) -> bool {
    app.over.is_none() && app.top_entry().is_some_and(|e| e.id == screen)
}

/// Requests the floating-point work of the run, based on results joined with its launches.
fn request_flops(app: &mut App, index: usize) -> Vec<Effect> {
    let session = &app.session;
    let Some(report) = session.reports.get(index) else { return Vec::new() };
    let Some(window) = report.triage.as_ref().and_then(|t| t.as_ref()).map(|t| t.window) else { return Vec::new() };
    let joined: Vec<_> =
        report.joins.iter().filter_map(|(other, join)| Some((session.metrics(*other)?.clone(), Arc::clone(join)))).collect();
    if joined.is_empty() { Vec::new() } else { report.request_work(index, JobRequest::Work { window, joined }) }
}

/// Adds the counters from a timeline's file as a separate report and joins it with the timeline.
fn add_measurements(app: &mut App, of: usize) -> Vec<Effect> {
    let Some(profile) = app.session.reports.get(of).and_then(|r| r.profile.as_ref()).and_then(|p| p.measured.clone()) else {
        return Vec::new();
    };
    let mut effects = Vec::new();
    let at = app.session.reports.iter().position(|r| r.part_of == Some(of)).unwrap_or_else(|| {
        effects.push(Effect::Part(of));
        app.session.add_part(of)
    });
    app.ensure_root_screens();
    effects.extend(app.session.reports.get_mut(at).map(|r| r.finish_loading(at, Ok(profile))).unwrap_or_default());
    effects.extend(request_joins(app, at));
    effects
}

/// Requests the joins of a new report with all others: its launches with their results, and its results with their
/// launches.
fn request_joins(app: &App, new: usize) -> Vec<Effect> {
    let session = &app.session;
    let timeline = |i: usize| session.reports.get(i).filter(|_| session.is_complete_timeline(i));
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
