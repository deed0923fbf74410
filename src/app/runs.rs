//! Handlers of run events: runs start, print, end, and leave reports that are opened beside their launches

use super::actions::ActionId;
use super::msg::Effect;
use super::open::{add, carry, quit_now, say, show, watch};
use super::orders::{News, StepNews};
use super::over::{Choice, Item, Pick, RunChoice};
use super::running::{Queue, Watched};
use super::screen::{Answer, ResultView};
use super::screens::{LibraryScreen, RunScreen};
use super::state::App;
use crate::launch::runs::Stage;
use crate::library::{Run, State};
use crate::model::text::clean;
use crate::rerun::{Found, Verdict, shell, verify};
use std::path::PathBuf;

/// Handles the findings of preflight, each with whether it blocks: starts the run, or asks.
pub fn preflight(app: &mut App, found: &[(String, bool)]) -> Vec<Effect> {
    if app.running.starting.is_none() {
        return Vec::new();
    }
    // Do not interrupt typing or another question: the next letter would answer this one.
    if app.over.is_some() {
        app.running.checked = Some(found.to_vec());
        return Vec::new();
    }
    if !found.iter().any(|(_, blocks)| *blocks) {
        let effects = start(app);
        if let Some((first, _)) = found.first() {
            say(app, format!("warning: {first}"), false);
        }
        return effects;
    }
    let mut items = vec![
        Item::new("back", "do not run it", 'b', Choice::Run(RunChoice::Nothing)),
        Item::new("run anyway", "", 'r', Choice::Run(RunChoice::Start)),
    ];
    let fact = |(text, blocks): &(String, bool)| {
        Item::new(if *blocks { "blocker" } else { "warning" }, text, None, Choice::Run(RunChoice::Nothing))
    };
    items.extend(found.iter().map(fact));
    app.status = None;
    app.running.doubted = app.running.starting.take();
    let asked = app.top().map_or(0, |e| e.id);
    carry(app, asked, Answer::over(Pick::by_letter("this run will probably fail", items, None)))
}

fn start(app: &mut App) -> Vec<Effect> {
    let Some((start, origin)) = app.running.starting.take() else { return Vec::new() };
    let mut watched = Watched::new(shell::line(&start.argv), None, true);
    watched.origin = origin;
    app.running.watched = Some(watched);
    app.status = None;
    watch(app);
    vec![Effect::Start(Box::new(start))]
}

/// Handles the start of a run, or its failure.
pub fn started(app: &mut App, outcome: Result<Box<Run>, String>) -> Vec<Effect> {
    match outcome {
        Ok(run) => {
            app.running.queue.began(run.id);
            if let Some(watched) = &mut app.running.watched {
                watched.command = shell::line(&run.argv);
                watched.run = Some(run);
            }
            Vec::new()
        }
        Err(text) => {
            app.running.watched = None;
            app.running.queue = Queue::default();
            unwatch(app);
            say(app, text, true)
        }
    }
}

/// Closes the screen of the run.
fn unwatch(app: &mut App) {
    if let Some(id) = app.find::<RunScreen>(None) {
        app.close(id);
    }
}

/// Handles an update about the run; opens its reports at the end.
pub fn news(app: &mut App, news: &News) -> Vec<Effect> {
    let Some(watched) = app.running.watched.as_mut().filter(|s| s.run.as_ref().is_some_and(|r| r.id == news.run.id)) else {
        return Vec::new();
    };
    watched.take(news);
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
    let files: Vec<PathBuf> = run.openable().map(|r| r.path.clone()).collect();
    let why = run.findings.first().map(|f| f.what.clone());
    if files.is_empty() {
        watch(app);
        say(app, why.unwrap_or_else(|| format!("run {}: {}", run.id, run.state.word())), true);
        effects.extend(go_on(app, &run));
        return effects;
    }
    let first = app.session.reports.len();
    effects.extend(add(app, files));
    unwatch(app);
    if let Some(id) = app.find::<LibraryScreen>(None) {
        app.close(id);
    }
    let text = match (run.state, why) {
        (State::Done, _) | (_, None) => format!("run {} finished", run.id),
        (_, Some(why)) => why,
    };
    match origin {
        // The launch's report stays on the screen until the result is joined.
        Some(origin) => app.running.awaited = Some((origin, first)),
        // Do not switch reports under an overlay that is about another one.
        None if app.over.is_none() => app.session.active = first,
        None => {}
    }
    say(app, text, run.state == State::Failed);
    effects.extend(go_on(app, &run));
    effects
}

/// Opens the last seconds of a trace as a report.
pub fn snapshot(app: &mut App, outcome: Result<(PathBuf, bool), String>) -> Vec<Effect> {
    match outcome {
        Ok((path, new)) => {
            let first = app.session.reports.len();
            let back = app.session.key(ActionId::Watch);
            let text = if new { format!("saved to {}; {back} goes back to the program", path.display()) } else { String::new() };
            let effects = add(app, vec![path]);
            unwatch(app);
            if app.over.is_none() {
                app.session.active = first;
            }
            if new {
                say(app, text, false);
            }
            effects
        }
        Err(text) => say(app, text, true),
    }
}

/// Continues with the queue after a run: starts the next, or drops the rest and says so.
fn go_on(app: &mut App, run: &Run) -> Vec<Effect> {
    let queue = &mut app.running.queue;
    let Some((at, total)) = queue.ended(run.id) else { return Vec::new() };
    if run.state == State::Done
        && let Some(next) = queue.pop()
    {
        app.running.starting = Some(next);
        return start(app);
    }
    let left = queue.give_up();
    if left > 0 {
        let were = if left == 1 { "was" } else { "were" };
        let text = format!("run {} ({at} of {total}): {}; the remaining {left} {were} not started", run.id, run.state.word());
        queue.remember(text.clone());
        say(app, text, true);
    }
    Vec::new()
}

/// Beginning of the note that explains why a trace has no measurements.
const NOTHING_MEASURED: &str = "Nothing was measured";

/// Handles an awaited result that was read or joined: verifies that it is of the selected launch, and opens its hints.
/// Waits while an overlay is open.
pub fn arrived(app: &mut App) -> Vec<Effect> {
    if app.over.is_some() {
        return Vec::new();
    }
    if let Some(found) = app.running.checked.take() {
        return preflight(app, &found);
    }
    let Some((origin, new)) = app.running.awaited.clone() else { return Vec::new() };
    let Some(report) = app.session.reports.get(new) else { return Vec::new() };
    if report.reading() {
        return Vec::new();
    }
    // Measurements of the built-in tracer are a report of their own, beside the timeline they were taken in.
    let new = app.session.reports.iter().position(|r| r.part_of == Some(new)).unwrap_or(new);
    let Some(metrics) = app.session.metrics(new).cloned() else {
        app.running.awaited = None;
        app.session.active = new;
        let notes = app.session.reports.get(new).and_then(|r| r.profile.as_ref()).map(|p| &p.notes);
        let why = notes.and_then(|all| all.iter().find(|n| n.text.starts_with(NOTHING_MEASURED))).map(|n| n.text.clone());
        return why.map_or_else(Vec::new, |why| say(app, why, true));
    };
    let timeline = app.session.timeline(origin.report);
    let joined = app.session.reports.get(origin.report).is_some_and(|r| r.joins.iter().any(|(o, _)| *o == new));
    if timeline && !joined {
        // The join is still being computed.
        return Vec::new();
    }
    app.running.awaited = None;
    let found = Found::all(&metrics);
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
    let given_up = app.running.queue.given_up();
    let verified = matches!(verdict, Some(Verdict::Verified(_)));
    let wrong = !(verified || verdict.is_none() && !lost) || given_up.is_some();
    let text = given_up.map_or_else(|| text.clone(), |g| format!("{g}; {text}"));
    let effects = show(app, at, (new, 0, pair.map(|p| p.sure)), ResultView::Hints, ResultView::Metrics);
    say(app, text, wrong);
    effects
}

/// Applies a choice about a run; the list was opened on the screen with that number.
pub fn choose(app: &mut App, asked: u64, choice: RunChoice) -> Vec<Effect> {
    match choice {
        RunChoice::Start => {
            app.running.starting = app.running.doubted.take();
            start(app)
        }
        RunChoice::Stop => {
            let Some(watched) = &app.running.watched else { return Vec::new() };
            let text = watched.stop_said(&app.session.key(ActionId::StopRun));
            say(app, text, false);
            vec![Effect::StopRun]
        }
        RunChoice::Trust(report) => {
            if let Some(report) = app.session.reports.get_mut(report) {
                report.trusted = true;
            }
            let answer = app.ask(asked, |screen, cx| screen.act(ActionId::RunHere, cx)).flatten();
            answer.map(|a| carry(app, asked, a)).unwrap_or_default()
        }
        RunChoice::Nothing => Vec::new(),
        RunChoice::StopAndQuit => {
            // A stop in progress continues by itself: asking again would cut the writing of the report short.
            let running = app.running.stage() == Some(Stage::Running);
            running.then_some(Effect::StopRun).into_iter().chain(quit_now(app)).collect()
        }
        RunChoice::DetachAndQuit => std::iter::once(Effect::DetachRun).chain(quit_now(app)).collect(),
    }
}

/// Handles an update about the step that runs beside a run.
pub fn step(app: &mut App, run: i64, news: &StepNews) -> Vec<Effect> {
    let Some(watched) = app.running.watched.as_mut().filter(|s| s.run.as_ref().is_some_and(|r| r.id == run)) else { return Vec::new() };
    let role = watched.next_step().map(|s| s.role.clone()).unwrap_or_default();
    match news {
        StepNews::Line(line) => {
            watched.print(Some(format!("warpscope: {role}: {}", clean(line))));
            Vec::new()
        }
        StepNews::Ended(Ok(())) => {
            watched.doing = None;
            let effects = watched.advance(false);
            let then = watched.next_step().map_or_else(String::new, |s| format!("; then: {}", s.role));
            say(app, format!("{role}: done{then}"), false);
            effects
        }
        StepNews::Ended(Err(why)) => {
            watched.doing = None;
            say(app, format!("{role}: {}", clean(why)), true)
        }
    }
}
