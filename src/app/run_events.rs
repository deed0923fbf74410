//! Handlers of run events: start, output, end, and reports, which open next to the launches that they belong to

use super::actions::ActionId;
use super::messages::{News, StepNews};
use super::msg::Effect;
use super::navigation::{add_reports, apply_response, quit_now, set_status, show_result, show_watched_run};
use super::overlay::{Item, PickAction, PickList, RunChoice};
use super::run_state::{Queue, Watched};
use super::screen::{Response, ResultView};
use super::screens::{LibraryScreen, RunScreen};
use super::state::App;
use crate::launch::runs::Stage;
use crate::library::{Run, State};
use crate::model::text::escape_unsafe;
use crate::rerun::{ProfiledResult, Verdict, shell, verify};
use std::path::PathBuf;

/// Handles preflight findings (true if one prevents the run): starts the run or asks the user.
pub fn handle_preflight(app: &mut App, found: &[(String, bool)]) -> Vec<Effect> {
    if app.running.starting.is_none() {
        return Vec::new();
    }
    // Do not open the prompt over a text input or another prompt, because the next letter typed would answer it.
    if app.over.is_some() {
        app.running.checked = Some(found.to_vec());
        return Vec::new();
    }
    if !found.iter().any(|(_, blocks)| *blocks) {
        let effects = start_run(app);
        if let Some((first, _)) = found.first() {
            set_status(app, format!("warning: {first}"), false);
        }
        return effects;
    }
    let mut items = vec![
        Item::new("back", "do not run it", 'b', PickAction::Run(RunChoice::Nothing)),
        Item::new("run anyway", "", 'r', PickAction::Run(RunChoice::Start)),
    ];
    let fact = |(text, blocks): &(String, bool)| {
        Item::new(if *blocks { "blocker" } else { "warning" }, text, None, PickAction::Run(RunChoice::Nothing))
    };
    items.extend(found.iter().map(fact));
    app.status = None;
    app.running.doubted = app.running.starting.take();
    let asked = app.top_entry().map_or(0, |e| e.id);
    apply_response(app, asked, Response::open_overlay(PickList::by_letter("this run will probably fail", items, None)))
}

fn start_run(app: &mut App) -> Vec<Effect> {
    let Some((start, origin)) = app.running.starting.take() else { return Vec::new() };
    let mut watched = Watched::new(shell::command_line(&start.argv), None, true);
    watched.origin = origin;
    app.running.watched = Some(watched);
    app.status = None;
    show_watched_run(app);
    vec![Effect::Start(Box::new(start))]
}

/// Handles the outcome of starting a run; an error also drops the runs waiting in the queue.
pub fn handle_started(app: &mut App, outcome: Result<Box<Run>, String>) -> Vec<Effect> {
    match outcome {
        Ok(run) => {
            app.running.queue.set_current(run.id);
            if let Some(watched) = &mut app.running.watched {
                watched.command = shell::command_line(&run.argv);
                watched.run = Some(run);
            }
            Vec::new()
        }
        Err(text) => {
            app.running.watched = None;
            app.running.queue = Queue::default();
            close_run_screen(app);
            set_status(app, text, true)
        }
    }
}

/// Closes the screen of the run.
fn close_run_screen(app: &mut App) {
    if let Some(id) = app.find_screen::<RunScreen>(None) {
        app.close_screen(id);
    }
}

/// Handles an update about the run; opens its reports when it has ended.
pub fn handle_news(app: &mut App, news: &News) -> Vec<Effect> {
    let Some(watched) = app.running.watched.as_mut().filter(|s| s.run.as_ref().is_some_and(|r| r.id == news.run.id)) else {
        return Vec::new();
    };
    watched.apply_news(news);
    if !news.ended || watched.ended {
        return Vec::new();
    }
    watched.ended = true;
    let mut effects: Vec<Effect> = watched.doing.take().map(|_| Effect::EndStep).into_iter().collect();
    let run = news.run.clone();
    if !watched.opens {
        return effects;
    }
    let origin = watched.origin.take();
    let files: Vec<PathBuf> = run.openable_reports(crate::import::open::is_openable).map(|r| r.path.clone()).collect();
    let why = run.findings.first().map(|f| f.what.clone());
    if files.is_empty() {
        show_watched_run(app);
        set_status(app, why.unwrap_or_else(|| format!("run {}: {}", run.id, run.state.as_str())), true);
        effects.extend(go_on(app, &run));
        return effects;
    }
    let first = app.session.reports.len();
    effects.extend(add_reports(app, files));
    close_run_screen(app);
    if let Some(id) = app.find_screen::<LibraryScreen>(None) {
        app.close_screen(id);
    }
    let text = match (run.state, why) {
        (State::Done, _) | (_, None) => format!("run {} finished", run.id),
        (_, Some(why)) => why,
    };
    match origin {
        // Keep the launch's report on screen until the result is joined.
        Some(origin) => app.running.awaited = Some((origin, first)),
        // An open overlay may refer to another report: do not switch.
        None if app.over.is_none() => app.session.active = first,
        None => {}
    }
    set_status(app, text, run.state == State::Failed);
    effects.extend(go_on(app, &run));
    effects
}

/// Opens the last seconds of a trace as a report.
pub fn open_snapshot(app: &mut App, outcome: Result<(PathBuf, bool), String>) -> Vec<Effect> {
    match outcome {
        Ok((path, new)) => {
            let first = app.session.reports.len();
            let back = app.session.key_label(ActionId::Watch);
            let text = if new { format!("saved to {}; {back} goes back to the program", path.display()) } else { String::new() };
            let effects = add_reports(app, vec![path]);
            close_run_screen(app);
            if app.over.is_none() {
                app.session.active = first;
            }
            if new {
                set_status(app, text, false);
            }
            effects
        }
        Err(text) => set_status(app, text, true),
    }
}

/// Continues the queue after a run: starts the next run, or drops the rest and tells the user.
fn go_on(app: &mut App, run: &Run) -> Vec<Effect> {
    let queue = &mut app.running.queue;
    let Some((at, total)) = queue.finish_run(run.id) else { return Vec::new() };
    if run.state == State::Done
        && let Some(next) = queue.pop()
    {
        app.running.starting = Some(next);
        return start_run(app);
    }
    let left = queue.give_up();
    if left > 0 {
        let were = if left == 1 { "was" } else { "were" };
        let text = format!("run {} ({at} of {total}): {}; the remaining {left} {were} not started", run.id, run.state.as_str());
        queue.keep_message(text.clone());
        set_status(app, text, true);
    }
    Vec::new()
}

/// Beginning of the note that explains why a trace has no measurements.
const NOTHING_MEASURED: &str = "Nothing was measured";

/// Handles an awaited result that has been read or joined: verifies that it belongs to the selected launch and opens
/// its hints. Does nothing while an overlay is open.
pub fn check_awaited(app: &mut App) -> Vec<Effect> {
    if app.over.is_some() {
        return Vec::new();
    }
    if let Some(found) = app.running.checked.take() {
        return handle_preflight(app, &found);
    }
    let Some((origin, new)) = app.running.awaited.clone() else { return Vec::new() };
    let Some(report) = app.session.reports.get(new) else { return Vec::new() };
    if report.is_reading() {
        return Vec::new();
    }
    // The built-in tracer's measurements form a separate report alongside the timeline.
    let new = app.session.reports.iter().position(|r| r.part_of == Some(new)).unwrap_or(new);
    let Some(metrics) = app.session.metrics(new).cloned() else {
        app.running.awaited = None;
        app.session.active = new;
        let notes = app.session.reports.get(new).and_then(|r| r.profile.as_ref()).map(|p| &p.notes);
        let why = notes.and_then(|all| all.iter().find(|n| n.text.starts_with(NOTHING_MEASURED))).map(|n| n.text.clone());
        return why.map_or_else(Vec::new, |why| set_status(app, why, true));
    };
    let timeline = app.session.is_complete_timeline(origin.report);
    let joined = app.session.reports.get(origin.report).is_some_and(|r| r.joins.iter().any(|(o, _)| *o == new));
    if timeline && !joined {
        // The join is still being computed.
        return Vec::new();
    }
    app.running.awaited = None;
    let found = ProfiledResult::all_results(&metrics);
    let verdict = (!origin.selects.is_empty()).then(|| verify(&origin.selects, &found));
    let pair = app.session.reports.get(origin.report).and_then(|r| r.launch_of(new, 0));
    let at = if timeline && pair.is_some() { origin.report } else { new };
    app.session.active = at;
    app.close_results_of(at);
    let lost = timeline && pair.is_none();
    let text = match &verdict {
        Some(v @ Verdict::Verified(_)) if lost => format!("{}; shown on its own", v.sentence()),
        _ if lost => "the result matches no launch in the timeline: shown on its own".to_owned(),
        Some(v) => v.sentence(),
        None => "the result is ready".to_owned(),
    };
    let given_up = app.running.queue.take_message();
    let verified = matches!(verdict, Some(Verdict::Verified(_)));
    let wrong = !(verified || verdict.is_none() && !lost) || given_up.is_some();
    let text = given_up.map_or_else(|| text.clone(), |g| format!("{g}; {text}"));
    let effects = show_result(app, at, (new, 0, pair.map(|p| p.sure)), ResultView::Hints, ResultView::Metrics);
    set_status(app, text, wrong);
    effects
}

/// Applies a choice about a run; `asked` is the screen that opened the list.
pub fn apply_run_choice(app: &mut App, asked: u64, choice: RunChoice) -> Vec<Effect> {
    match choice {
        RunChoice::Start => {
            app.running.starting = app.running.doubted.take();
            start_run(app)
        }
        RunChoice::Stop => {
            let Some(watched) = &app.running.watched else { return Vec::new() };
            let text = watched.stop_message(&app.session.key_label(ActionId::StopRun));
            set_status(app, text, false);
            vec![Effect::StopRun]
        }
        RunChoice::Trust(report) => {
            if let Some(report) = app.session.reports.get_mut(report) {
                report.trusted = true;
            }
            let answer = app.with_screen(asked, |screen, cx| screen.act(ActionId::RunHere, cx)).flatten();
            answer.map(|a| apply_response(app, asked, a)).unwrap_or_default()
        }
        RunChoice::Nothing => Vec::new(),
        RunChoice::StopAndQuit => {
            // A stop in progress needs no further signal; another one would interrupt the writing of the report.
            let running = app.running.stop_stage() == Some(Stage::Running);
            running.then_some(Effect::StopRun).into_iter().chain(quit_now(app)).collect()
        }
        RunChoice::DetachAndQuit => std::iter::once(Effect::DetachRun).chain(quit_now(app)).collect(),
    }
}

/// Handles an update about a guided step of a run.
pub fn handle_step_news(app: &mut App, run: i64, news: &StepNews) -> Vec<Effect> {
    let Some(watched) = app.running.watched.as_mut().filter(|s| s.run.as_ref().is_some_and(|r| r.id == run)) else { return Vec::new() };
    let role = watched.next_step().map(|s| s.role.clone()).unwrap_or_default();
    match news {
        StepNews::Line(line) => {
            watched.push_line(Some(format!("warpscope: {role}: {}", escape_unsafe(line))));
            Vec::new()
        }
        StepNews::Ended(Ok(())) => {
            watched.doing = None;
            let effects = watched.advance_step(false);
            let then = watched.next_step().map_or_else(String::new, |s| format!("; then: {}", s.role));
            set_status(app, format!("{role}: done{then}"), false);
            effects
        }
        StepNews::Ended(Err(why)) => {
            watched.doing = None;
            set_status(app, format!("{role}: {}", escape_unsafe(why)), true)
        }
    }
}
