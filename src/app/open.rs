//! Navigation: applies the answers of screens and opens screens

use super::actions::{ActionId, Where};
use super::msg::Effect;
use super::over::{Choice, Item, Over, Pick, RunChoice};
use super::running::Watched;
use super::screen::{Answer, At, Go, News, ResultView, Status};
use super::screens::{
    DiffScreen, Kind, LaunchesScreen, LibraryScreen, MemoryScreen, Open, OverviewScreen, RangesScreen, RanksScreen, RerunScreen,
    ResultScreen, RunScreen, TimelineScreen,
};
use super::session::report::Best;
use super::state::App;
use super::work::Ask;
use crate::analysis::timeline::Event;
use crate::library::Run;
use crate::model::LaunchId;
use crate::report::timeline::describe;
use crate::rerun::join::Pair;
use crate::rerun::{Choose, Profiler, Within, shell};
use std::path::PathBuf;

/// Applies the answer of a screen.
pub fn carry(app: &mut App, asked: u64, answer: Answer) -> Vec<Effect> {
    let Answer { mut effects, say, over, go } = answer;
    if say.is_some() {
        app.status = say;
    }
    if let Some(what) = over {
        // The scroll limit is known only after the page was drawn.
        app.session.most_scroll = usize::MAX;
        app.over = Some(Over { screen: asked, report: app.report_of(asked), what });
    }
    if let Some(go) = go {
        effects.extend(self::go(app, asked, go));
    }
    effects
}

pub fn say(app: &mut App, text: impl Into<String>, error: bool) -> Vec<Effect> {
    app.status = Some(Status { text: text.into(), error });
    Vec::new()
}

/// Sends news to all screens of a report and those of no report.
pub fn tell(app: &mut App, report: usize, news: News<'_>) -> Vec<Effect> {
    let audience = app.audience(report);
    tell_these(app, &audience, news)
}

pub fn tell_all(app: &mut App, news: News<'_>) -> Vec<Effect> {
    let audience = app.everybody();
    tell_these(app, &audience, news)
}

fn tell_these(app: &mut App, audience: &[u64], news: News<'_>) -> Vec<Effect> {
    let mut effects = Vec::new();
    for &id in audience {
        if let Some(answer) = app.ask(id, |screen, cx| screen.take(news, cx)) {
            effects.extend(carry(app, id, answer));
        }
    }
    effects
}

/// Status for a report that cannot be judged as a run.
const NO_TIMELINE: &str = "this report has no timeline: its launches have no times";

/// Returns true if the report has a timeline, or may still get one.
fn timed(app: &App, report: usize) -> bool {
    app.session.reports.get(report).is_none_or(|r| r.profile.is_none() || r.timeline())
}

/// Navigates from the screen with that number.
pub fn go(app: &mut App, asked: u64, go: Go) -> Vec<Effect> {
    let at = app.report_of(asked);
    match go {
        Go::Back => leave(app, asked),
        Go::Launches { grouping, row } => {
            let id = app.push(at, |id| LaunchesScreen::new(grouping, row, id));
            settle(app, id)
        }
        Go::Overview | Go::Ranges(_) if !timed(app, at) => say(app, NO_TIMELINE, false),
        Go::Overview => toggle::<OverviewScreen>(app, at, |_| OverviewScreen::default()),
        Go::Timeline => timeline(app, asked),
        Go::Window(window) => narrow(app, at, window),
        Go::Launch(launch) => launches_at(app, at, launch),
        Go::Memory => memory(app, at),
        Go::Ranges(name) => toggle::<RangesScreen>(app, at, |id| RangesScreen::new(name, id)),
        Go::Kernels(name) => {
            app.close_all_of(at);
            name.map(|n| select(app, at, &n)).unwrap_or_default()
        }
        Go::Result(view) => result(app, asked, view),
        Go::Rerun { run, in_place } => rerun(app, asked, run, in_place),
        Go::Kernel { report, name } => {
            app.close_common();
            app.close_all_of(report);
            app.session.active = report;
            select(app, report, &name)
        }
        Go::TimelineOf { report, at } => {
            app.close_common();
            app.close_all_of(report);
            app.session.active = report;
            let id = app.push(report, |id| TimelineScreen::new(Some(at), id));
            settle(app, id)
        }
        Go::Ranks => match app.find::<RanksScreen>(None) {
            Some(id) => {
                app.close(id);
                Vec::new()
            }
            None => {
                app.close_common();
                let screen = app.kept_ranks();
                let id = app.push_common(screen);
                settle(app, id)
            }
        },
        Go::Reports(files) => reports(app, &files),
        Go::Changes { before, after } => changes(app, before, after),
        Go::ChangesOf { before, after } => {
            let mut effects = reports(app, &[before.clone(), after.clone()]);
            if let (Some(before), Some(after)) = (app.session.position(&before), app.session.position(&after)) {
                effects.extend(changes(app, before, after));
            }
            effects
        }
        Go::Record(all) => {
            if app.running.starting.is_some() {
                return say(app, "preflight checks of another run are still in progress", true);
            }
            let effects: Vec<Effect> = app.running.record(all).into_iter().collect();
            say(app, "running preflight checks …", false);
            effects
        }
        // Start the run only if the user is still on this screen.
        Go::RunHere if app.over.is_none() && app.top().is_some_and(|e| e.id == asked) => {
            let answer = app.ask(asked, |screen, cx| screen.act(ActionId::RunHere, cx)).flatten();
            answer.map(|a| carry(app, asked, a)).unwrap_or_default()
        }
        Go::RunHere => Vec::new(),
        Go::Watch if app.running.watched.is_none() => {
            let library = app.session.key(ActionId::Library);
            say(app, format!("no run was started here; {library} lists earlier runs"), false)
        }
        Go::Watch => {
            watch(app);
            Vec::new()
        }
        Go::Follow(run) => follow(app, &run),
        Go::Library => library(app),
        Go::Demo => vec![Effect::Demo],
        Go::Quit => quit(app),
    }
}

/// Opens a screen about the timeline as a whole. If it is on top, closes it; if it is below, goes back to it.
fn toggle<K: Kind + Into<Open>>(app: &mut App, report: usize, make: impl FnOnce(u64) -> K) -> Vec<Effect> {
    match app.find::<K>(Some(report)) {
        Some(id) if app.top().is_some_and(|e| e.id == id) => {
            app.close(id);
            Vec::new()
        }
        Some(id) => {
            app.close_above(id);
            Vec::new()
        }
        None => {
            let id = app.push(report, make);
            settle(app, id)
        }
    }
}

/// Opens the timeline at the place of the selection; from the timeline, goes back.
fn timeline(app: &mut App, asked: u64) -> Vec<Effect> {
    let at = app.report_of(asked);
    if app.entry(asked).is_some_and(|e| TimelineScreen::of(&e.open).is_some()) {
        // The timeline's `back` saves its view.
        return app.ask(asked, |screen, cx| screen.back(cx)).map(|a| carry(app, asked, a)).unwrap_or_default();
    }
    let Some(report) = app.session.reports.get(at) else { return Vec::new() };
    // The waves of a thread trace have a timeline, too.
    if !report.timeline() && report.profile.as_ref().is_none_or(|p| !p.ranges.hardware()) {
        return say(app, NO_TIMELINE, false);
    }
    let selection = app.selection(asked);
    // A kernel's longest launch if it is known, else its first.
    let of_group = || {
        let (grouping, row) = selection.group.as_ref()?;
        let kernel = grouping.rows.get(*row)?.kernel?;
        let first = || report.profile.as_ref()?.launches.keys().0.iter().position(|&k| k == kernel.0);
        report.slowest_of(*row).or_else(|| u32::try_from(first()?).ok())
    };
    let launch = selection.launch.or_else(of_group);
    let of_launch = |launch: u32| {
        let launches = &report.profile.as_ref()?.launches;
        let row = launch as usize;
        Some(At { start: launches.start(row), end: launches.end(row), event: Some(Event::Launch(launch)) })
    };
    let place = selection.at.or_else(|| of_launch(launch?));
    let id = app.push(at, |id| TimelineScreen::new(place, id));
    settle(app, id)
}

/// Narrows all screens of a report to a window, or widens them again.
fn narrow(app: &mut App, at: usize, window: Option<(i64, i64)>) -> Vec<Effect> {
    let key = app.session.key(ActionId::Narrow);
    let Some(report) = app.session.reports.get_mut(at) else { return Vec::new() };
    let mut effects = report.narrow(at, window);
    let text = match window {
        Some(window) => format!("all screens show only {}; {key} shows the whole run again", describe::window(window)),
        None => "all screens show the whole run again".to_owned(),
    };
    say(app, text, false);
    effects.extend(tell(app, at, News::Window));
    effects
}

/// Toggles the memory screen of a report.
fn memory(app: &mut App, at: usize) -> Vec<Effect> {
    if app.session.reports.get(at).is_some_and(|r| r.profile.is_some() && !r.reading() && !r.remembers()) {
        return say(app, "nothing is recorded of memory in this report; `warpscope help memory` says how to record it", false);
    }
    if app.depth(at) > 1 && app.session.reports.get(at).is_some_and(|r| r.profile.is_some() && !r.ran()) {
        return say(app, "nothing but memory is recorded in this report", false);
    }
    toggle::<MemoryScreen>(app, at, MemoryScreen::new)
}

/// Opens the launch list of a launch's group, with the launch selected.
pub fn launches_at(app: &mut App, at: usize, launch: u32) -> Vec<Effect> {
    let Some(report) = app.session.reports.get(at) else { return Vec::new() };
    let (Some(grouping), Some(profile)) = (report.groups.grouping.clone(), &report.profile) else { return Vec::new() };
    let Some(row) = grouping.row_of(profile, report.paths.as_deref(), launch as usize) else {
        let key = app.session.key(ActionId::Narrow);
        return say(app, format!("this launch is not in the window that is shown; {key} shows the whole run"), false);
    };
    let id = app.push(at, |id| {
        let mut screen = LaunchesScreen::new(grouping, row, id);
        screen.wanted = Some(launch);
        screen
    });
    settle(app, id)
}

/// Lets a screen that has just been opened request its data.
pub fn settle(app: &mut App, id: u64) -> Vec<Effect> {
    let answer = app.ask(id, |screen, cx| screen.opened(cx));
    answer.map(|a| carry(app, id, a)).unwrap_or_default()
}

/// Selects a kernel by name, and asks for its details.
fn select(app: &mut App, report: usize, name: &str) -> Vec<Effect> {
    let Some(kernels) = app.kernels_mut(report) else { return Vec::new() };
    if !kernels.select(name) {
        return Vec::new();
    }
    let row = kernels.row();
    app.session.reports.get_mut(report).map(|r| r.want_detail(report, row)).unwrap_or_default()
}

fn leave(app: &mut App, id: u64) -> Vec<Effect> {
    let run = app.entry(id).is_some_and(|e| RunScreen::of(&e.open).is_some());
    app.close(id);
    if run {
        if app.running.live() {
            let key = app.session.key(ActionId::Watch);
            say(app, format!("the run continues; {key} shows it"), false);
        } else {
            app.running.watched = None;
        }
    }
    // Without an open report, the library is the home screen.
    if app.top().is_none() { library(app) } else { Vec::new() }
}

/// Opens a screen about a result of a report.
pub fn show(app: &mut App, report: usize, (from, result, sure): Best, view: ResultView, opened: ResultView) -> Vec<Effect> {
    let Some(metrics) = app.session.metrics(from).cloned() else { return Vec::new() };
    let mut screen = ResultScreen::new(from, metrics, result);
    let view = if screen.has(view) { view } else { ResultView::Metrics };
    (screen.sure, screen.view, screen.opened) = (sure, view, opened);
    let id = app.push(report, |_| screen);
    settle(app, id)
}

/// Opens the result of the selection; without one, the advice derived from the launch alone, or else tells the user how
/// to get a result.
fn result(app: &mut App, asked: u64, view: ResultView) -> Vec<Effect> {
    let (at, selection) = (app.report_of(asked), app.selection(asked));
    if let Some(best) = selection.result {
        return show(app, at, best, view, view);
    }
    if view == ResultView::Hints
        && let Some(report) = app.session.reports.get(at).filter(|r| r.profile.as_ref().is_some_and(|p| p.metrics.is_none()))
        && let Some(launch) = selection.launch.or_else(|| report.slowest_of(selection.group?.1))
    {
        return report.ask(at, Ask::Advice { screen: asked, launch });
    }
    no_metrics(app)
}

/// Tells the user how to get metrics.
pub fn no_metrics(app: &mut App) -> Vec<Effect> {
    let (rerun, measure) = (app.session.key(ActionId::Rerun), app.session.key(ActionId::MeasureNow));
    let amd = app.session.report().and_then(|r| r.profile.as_ref()).is_some_and(|p| p.amd());
    let how = if amd { String::new() } else { format!(", {measure} measures it without ncu") };
    say(app, format!("no metrics: {rerun} shows the command that profiles it{how}"), false)
}

/// Opens the command that profiles the selected launch again, or a typical launch of each selected or marked group.
fn rerun(app: &mut App, asked: u64, run: bool, in_place: bool) -> Vec<Effect> {
    let (at, selection) = (app.report_of(asked), app.selection(asked));
    let place = app.entry(asked).map(|e| e.open.screen().place());
    let Some(report) = app.session.reports.get(at) else { return Vec::new() };
    let Some(profile) = &report.profile else { return say(app, "nothing has been read yet", false) };
    if profile.launches.is_empty() {
        let nothing = profile.totals.is_empty();
        let text = if nothing { "there is no launch to profile again" } else { "this report has per-kernel totals only" };
        return say(app, text, true);
    }
    if report.reading() {
        return say(app, "the launches are still being read", false);
    }
    let (rows, choose) = match (selection.launch, place) {
        (None, Some(Where::Ranges)) => return say(app, "no kernel was launched inside this range", true),
        (Some(launch), _) => (selection.group.as_ref().map(|g| vec![g.1]).unwrap_or_default(), Choose::One(LaunchId(launch))),
        (None, Some(Where::Overview)) => {
            let rows = selection.group.as_ref().map(|g| vec![g.1]).unwrap_or_default();
            (rows, Choose::Median)
        }
        (None, Some(Where::Kernels)) => {
            let marked = report.groups.marked_rows();
            let own = || selection.group.as_ref().map(|g| vec![g.1]).unwrap_or_default();
            (if marked.is_empty() { own() } else { marked }, Choose::Median)
        }
        (None, Some(Where::Timeline)) => return say(app, "no kernel is at the cursor", true),
        (None, Some(Where::Launches)) => return say(app, "no launch is selected", true),
        (None, _) => return say(app, "this result matches no launch in the timeline: select a launch there", true),
    };
    let Some((grouping, _)) = selection.group else { return say(app, "no kernel is selected", true) };
    let id = app.push(at, |id| {
        let mut screen = RerunScreen::new(grouping, rows, choose, id);
        if let Some(range) = selection.inside {
            screen.request.options.within = Within::Range(range, None);
        }
        // Sections that the hint asks for.
        if let Some(options) = selection.collect {
            screen.request.options = options;
        }
        if in_place {
            screen.request.options.profiler = Profiler::InPlace;
        }
        screen.run_when_ready = run;
        screen
    });
    settle(app, id)
}

/// Goes from a result to its launch in a timeline opened beside it, and back.
pub fn pair(app: &mut App, asked: u64) -> Vec<Effect> {
    let (at, selection) = (app.report_of(asked), app.selection(asked));
    let Some((from, result, _)) = selection.result else { return no_metrics(app) };
    let on_result = selection.collect.is_some();
    // Opened by way of a launch, which is below this screen.
    if from != at && on_result {
        return match app.session.reports.get(at).and_then(|r| r.launch_of(from, result)) {
            Some(pair) => to_launch(app, at, pair),
            None => say(app, "this result matches no launch in the timeline", false),
        };
    }
    if from != at || (!on_result && selection.launch.is_none()) {
        return self::result(app, asked, ResultView::Metrics);
    }
    let found = app.session.reports.iter().enumerate().find_map(|(i, r)| Some((i, r.launch_of(at, result)?)));
    match found {
        Some((timeline, pair)) => to_launch(app, timeline, pair),
        None => say(app, "no open timeline has this launch: open the nsys report alongside this one", false),
    }
}

/// Selects the launch of a pair in its timeline.
fn to_launch(app: &mut App, timeline: usize, pair: Pair) -> Vec<Effect> {
    app.close_common();
    app.close_all_of(timeline);
    app.session.active = timeline;
    let Some(report) = app.session.reports.get(timeline) else { return Vec::new() };
    let (Some(grouping), Some(profile)) = (report.groups.grouping.clone(), &report.profile) else { return Vec::new() };
    let Some(row) = grouping.row_of(profile, report.paths.as_deref(), pair.launch as usize) else { return Vec::new() };
    let name = grouping.rows.get(row).map(|r| r.name.clone()).unwrap_or_default();
    let mut effects = select(app, timeline, &name);
    effects.extend(launches_at(app, timeline, pair.launch));
    say(app, pair.sure.why(), false);
    effects
}

/// Shows reports, opening those that are not open yet.
fn reports(app: &mut App, files: &[PathBuf]) -> Vec<Effect> {
    let new: Vec<PathBuf> = files.iter().filter(|f| app.session.position(f).is_none()).cloned().collect();
    let effects = add(app, new);
    if let Some(at) = files.first().and_then(|f| app.session.position(f)) {
        app.session.active = at;
    }
    app.close_common();
    effects
}

/// Adds reports of the user's own runs to the session and reads them.
pub fn add(app: &mut App, files: Vec<PathBuf>) -> Vec<Effect> {
    if files.is_empty() {
        return Vec::new();
    }
    app.session.add(&files);
    app.furnish();
    vec![Effect::Open(files)]
}

/// Opens the changes between two reports.
fn changes(app: &mut App, before: usize, after: usize) -> Vec<Effect> {
    app.close_common();
    let id = app.push_common(DiffScreen::new(before, after));
    settle(app, id)
}

/// Shows the run that is watched.
pub fn watch(app: &mut App) {
    if let Some(id) = app.find::<RunScreen>(None) {
        app.close(id);
    }
    app.push_common(RunScreen);
}

/// Shows the output of a run of the library; follows it if the run is live.
fn follow(app: &mut App, run: &Run) -> Vec<Effect> {
    let id = run.id;
    let mut watched = Watched::new(shell::line(&run.argv), Some(Box::new(run.clone())), false);
    watched.opens = run.state.live();
    app.running.watched = Some(watched);
    watch(app);
    vec![Effect::Follow(id)]
}

/// Opens the run library.
pub fn library(app: &mut App) -> Vec<Effect> {
    app.close_common_but::<LibraryScreen>();
    let id = app.find::<LibraryScreen>(None);
    let id = id.unwrap_or_else(|| app.push_common(LibraryScreen::default()));
    settle(app, id)
}

/// Quits; asks first if a run would end with the program.
pub fn quit(app: &mut App) -> Vec<Effect> {
    if !app.running.held() {
        return quit_now(app);
    }
    let begun = app.running.watched.as_ref().is_some_and(|s| s.run.is_some());
    let mut items = vec![Item::new("stay", "", 'b', Choice::Run(RunChoice::Nothing))];
    // A run that has not begun cannot be detached.
    if begun {
        let hint = "the run continues; `warpscope attach` shows it again";
        items.push(Item::new("detach it and quit", hint, 'd', Choice::Run(RunChoice::DetachAndQuit)));
    }
    items.push(Item::new("stop it and quit", "asks the profiler to stop and write its report", 's', Choice::Run(RunChoice::StopAndQuit)));
    let asked = app.top().map_or(0, |e| e.id);
    carry(app, asked, Answer::over(Pick::by_letter("a run is in progress", items, None)))
}

#[must_use]
pub fn quit_now(app: &App) -> Vec<Effect> {
    let reading = app.session.reports.iter().enumerate().filter(|(_, r)| r.reading());
    reading.map(|(i, _)| Effect::Cancel(i)).chain([Effect::Quit]).collect()
}
