//! Navigation: applies the responses of screens and opens screens

use super::actions::{ActionId, KeyScope};
use super::jobs::JobRequest;
use super::msg::Effect;
use super::overlay::{Item, Overlay, PickAction, PickList, RunChoice};
use super::run_state::Watched;
use super::screen::{At, Navigate, Response, ResultView, ScreenEvent, Status};
use super::screens::overview::longest_occurrence;
use super::screens::{
    DiffScreen, Kind, LaunchesScreen, LibraryScreen, Open, RanksScreen, RerunScreen, ResultScreen, RunScreen, TimelineScreen,
};
use super::session::Report;
use super::session::measured_group::Best;
use super::session::report::NO_TIMELINE;
use super::state::App;
use crate::analysis::timeline::Event;
use crate::library::Run;
use crate::model::LaunchId;
use crate::report::timeline::describe;
use crate::rerun::match_results::Pair;
use crate::rerun::{Choose, Profiler, Within, shell};
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Applies the response of a screen.
pub fn apply_response(app: &mut App, asked: u64, answer: Response) -> Vec<Effect> {
    let Response { mut effects, say, over, go } = answer;
    if say.is_some() {
        app.status = say;
    }
    if let Some(what) = over {
        // The scroll limit is known only after the page has been drawn.
        app.session.most_scroll = usize::MAX;
        app.over = Some(Overlay { screen: asked, report: app.report_of(asked), what });
    }
    if let Some(go) = go {
        effects.extend(self::navigate_to(app, asked, go));
    }
    effects
}

pub fn set_status(app: &mut App, text: impl Into<String>, error: bool) -> Vec<Effect> {
    app.status = Some(Status { text: text.into(), error });
    Vec::new()
}

/// Broadcasts an event to all screens of a report and to the screens without a report.
pub fn broadcast_to_report(app: &mut App, report: usize, news: ScreenEvent<'_>) -> Vec<Effect> {
    let audience = app.screen_ids_of(report);
    broadcast_to(app, &audience, news)
}

pub fn broadcast_to_all(app: &mut App, news: ScreenEvent<'_>) -> Vec<Effect> {
    let audience = app.all_screen_ids();
    broadcast_to(app, &audience, news)
}

fn broadcast_to(app: &mut App, audience: &[u64], news: ScreenEvent<'_>) -> Vec<Effect> {
    let mut effects = Vec::new();
    for &id in audience {
        if let Some(answer) = app.with_screen(id, |screen, cx| screen.take(news, cx)) {
            effects.extend(apply_response(app, id, answer));
        }
    }
    effects
}

/// Navigates from the screen with the id `asked`.
pub fn navigate_to(app: &mut App, asked: u64, go: Navigate) -> Vec<Effect> {
    let at = app.report_of(asked);
    match go {
        Navigate::Back => leave_screen(app, asked),
        Navigate::Launches { grouping, row } => {
            let id = app.push(at, |id| LaunchesScreen::new(grouping, row, id));
            open_screen(app, id)
        }
        Navigate::Toggle(screen) => toggle_screen(app, at, screen, None),
        Navigate::RangesAt(name) => toggle_screen(app, at, KeyScope::Ranges, Some(name)),
        Navigate::Timeline => open_timeline(app, asked),
        Navigate::Window(window) => set_time_filter(app, at, window),
        Navigate::Launch(launch) => launches_at(app, at, launch),
        Navigate::Kernels(_) if app.session.reports.get(at).is_some_and(Report::is_memory_only) => {
            set_status(app, "nothing but memory is recorded in this report", false)
        }
        Navigate::Kernels(name) => {
            app.close_all_of(at);
            name.map(|n| select_kernel(app, at, &n)).unwrap_or_default()
        }
        Navigate::Result(view) => open_selected_result(app, asked, view),
        Navigate::Rerun { run, in_place } => open_rerun(app, asked, run, in_place),
        Navigate::Kernel { report, name } => {
            app.close_common();
            app.close_all_of(report);
            app.session.active = report;
            select_kernel(app, report, &name)
        }
        Navigate::Changed { report, name, beside } => open_changed(app, asked, report, &name, beside),
        Navigate::TimelineOf { report, at: place } => {
            let ranks = app.entry(asked).is_some_and(|e| RanksScreen::of(&e.open).is_some());
            app.close_common();
            let id = app.push(report, |id| TimelineScreen::new(Some(place), id));
            if ranks {
                app.set_ranks_behind(id, app.session.active);
            }
            app.session.active = report;
            open_screen(app, id)
        }
        Navigate::Ranks => match app.find_screen::<RanksScreen>(None) {
            Some(id) => {
                app.close_screen(id);
                Vec::new()
            }
            None => {
                app.close_common();
                let screen = app.kept_ranks();
                let id = app.push_common(screen);
                open_screen(app, id)
            }
        },
        Navigate::Reports(files) => open_reports(app, &files),
        Navigate::Changes { before, after } => open_changes(app, before, after),
        Navigate::ChangesOf { before, after } => {
            let mut effects = open_reports(app, &[before.clone(), after.clone()]);
            if let (Some(before), Some(after)) = (app.session.find_report(&before), app.session.find_report(&after)) {
                effects.extend(open_changes(app, before, after));
            }
            effects
        }
        Navigate::Record(all) => {
            if app.running.starting.is_some() {
                return set_status(app, "preflight checks of another run are still in progress", true);
            }
            let effects: Vec<Effect> = app.running.enqueue_runs(all).into_iter().collect();
            set_status(app, "running preflight checks …", false);
            effects
        }
        // Start the run only if the user is still on this screen.
        Navigate::RunHere if app.over.is_none() && app.top_entry().is_some_and(|e| e.id == asked) => {
            let answer = app.with_screen(asked, |screen, cx| screen.act(ActionId::RunHere, cx)).flatten();
            answer.map(|a| apply_response(app, asked, a)).unwrap_or_default()
        }
        Navigate::RunHere => Vec::new(),
        Navigate::Watch if app.running.watched.is_none() => {
            let library = app.session.key_label(ActionId::Library);
            set_status(app, format!("no run was started here; {library} lists earlier runs"), false)
        }
        Navigate::Watch => {
            show_watched_run(app);
            Vec::new()
        }
        Navigate::Follow(run) => follow_run(app, &run),
        Navigate::Library => open_library(app),
        Navigate::Demo => vec![Effect::Demo],
        Navigate::Quit => request_quit(app),
    }
}

/// Toggles a screen about the whole report: closes it if it is on top, returns to it if it is below, or otherwise opens
/// it. The tree of ranges can open at a given range.
fn toggle_screen(app: &mut App, report: usize, screen: KeyScope, range: Option<String>) -> Vec<Effect> {
    let there = app.find_on_report(report, screen);
    let on_top = there.is_some() && app.top_entry().map(|e| e.id) == there;
    // Some reports contain nothing but memory data.
    let only = screen == KeyScope::Memory && app.stack_depth(report) > 1;
    if only && app.session.reports.get(report).is_some_and(Report::is_memory_only) {
        return set_status(app, "nothing but memory is recorded in this report", false);
    }
    if let (Some(id), Some(name)) = (there, &range) {
        app.close_above(id);
        if let Some(Open::Ranges(ranges)) = app.open_mut(id) {
            ranges.go_to_range(name.clone());
        }
        return app.with_screen(id, |screen, cx| screen.opened(cx)).map(|a| apply_response(app, id, a)).unwrap_or_default();
    }
    if let Some(id) = there {
        if on_top {
            app.close_screen(id);
        } else {
            app.close_above(id);
        }
        return Vec::new();
    }
    let Some(open) = app.make_on_report(screen) else { return Vec::new() };
    if let Some(why) = app.session.reports.get(report).and_then(|r| open.open.screen().refusal(r)) {
        return set_status(app, why, false);
    }
    let id = app.push_made(report, open);
    if let (Some(name), Some(Open::Ranges(ranges))) = (range, app.open_mut(id)) {
        ranges.go_to_range(name);
    }
    open_screen(app, id)
}

/// Opens the timeline at the position of the selection; from the timeline, goes back.
fn open_timeline(app: &mut App, asked: u64) -> Vec<Effect> {
    let at = app.report_of(asked);
    if app.entry(asked).is_some_and(|e| TimelineScreen::of(&e.open).is_some()) {
        // The timeline's `back` saves its view.
        return app.with_screen(asked, |screen, cx| screen.back(cx)).map(|a| apply_response(app, asked, a)).unwrap_or_default();
    }
    let Some(report) = app.session.reports.get(at) else { return Vec::new() };
    // The waves of a thread trace also have a timeline.
    if !report.is_timeline() && report.profile.as_ref().is_none_or(|p| !p.ranges.is_hardware()) {
        return set_status(app, NO_TIMELINE, false);
    }
    let selection = app.selection(asked);
    // Use a kernel's longest launch if it is known, otherwise its first.
    let of_group = || {
        let (grouping, row) = selection.group.as_ref()?;
        let kernel = grouping.rows.get(*row)?.kernel?;
        let first = || report.profile.as_ref()?.launches.group_keys().0.iter().position(|&k| k == kernel.0);
        report.slowest_of(*row).or_else(|| u32::try_from(first()?).ok())
    };
    let launch = selection.launch.or_else(of_group);
    let of_launch = |launch: u32| {
        let launches = &report.profile.as_ref()?.launches;
        let row = launch as usize;
        Some(At { start: launches.start(row), end: launches.end(row), event: Some(Event::Launch(launch)) })
    };
    // Without a selection, the worst finding's longest occurrence is the place to look at.
    let of_verdict = || {
        let triage = report.triage.as_ref()?.as_ref()?;
        let (start, end) = longest_occurrence(triage.verdict()?, triage.window)?;
        Some(At { start, end, event: None })
    };
    let place = selection.at.or_else(|| of_launch(launch?)).or_else(of_verdict);
    let id = app.push(at, |id| TimelineScreen::new(place, id));
    open_screen(app, id)
}

/// Narrows all screens of a report to a window, or widens them again.
fn set_time_filter(app: &mut App, at: usize, window: Option<(i64, i64)>) -> Vec<Effect> {
    let key = app.session.key_label(ActionId::Narrow);
    let Some(report) = app.session.reports.get_mut(at) else { return Vec::new() };
    let mut effects = report.choose_window(at, window);
    let text = match window {
        Some(window) if report.steady_window() == Some(window) => {
            format!("all screens show only the steady state; {key} shows the whole run again")
        }
        Some(window) => format!("all screens show only {}; {key} shows the whole run again", describe::format_window(window)),
        None => "all screens show the whole run again".to_owned(),
    };
    set_status(app, text, false);
    effects.extend(broadcast_to_report(app, at, ScreenEvent::Window));
    effects
}

/// Opens the launch list of a launch's group, with the launch selected.
pub fn launches_at(app: &mut App, at: usize, launch: u32) -> Vec<Effect> {
    let mut effects = Vec::new();
    if app.session.reports.get(at).is_some_and(|r| r.is_outside_steady_state(launch)) {
        effects = set_time_filter(app, at, None);
        let key = app.session.key_label(ActionId::Narrow);
        set_status(app, format!("outside the steady state: all screens show the whole run; {key} shows the steady state again"), false);
    }
    effects.extend(open_launches_at(app, at, launch));
    effects
}

fn open_launches_at(app: &mut App, at: usize, launch: u32) -> Vec<Effect> {
    let Some(report) = app.session.reports.get(at) else { return Vec::new() };
    let (Some(grouping), Some(profile)) = (report.groups.grouping.clone(), &report.profile) else { return Vec::new() };
    let Some(row) = grouping.row_of(profile, report.paths.as_deref(), launch as usize) else {
        let key = app.session.key_label(ActionId::Narrow);
        return set_status(app, format!("this launch is not in the window that is shown; {key} shows the whole run"), false);
    };
    let id = app.push(at, |id| {
        let mut screen = LaunchesScreen::new(grouping, row, id);
        screen.wanted = Some(launch);
        screen
    });
    open_screen(app, id)
}

/// Notifies a screen that it has been opened, so that it can request its data.
pub fn open_screen(app: &mut App, id: u64) -> Vec<Effect> {
    let answer = app.with_screen(id, |screen, cx| screen.opened(cx));
    answer.map(|a| apply_response(app, id, a)).unwrap_or_default()
}

/// Opens what a comparison is about: both results of a kernel side by side, or its launches.
fn open_changed(app: &mut App, asked: u64, report: usize, name: &str, beside: Option<(Best, Best)>) -> Vec<Effect> {
    let changes = app.entry(asked).and_then(|e| DiffScreen::of(&e.open)).cloned();
    app.close_common();
    app.close_all_of(report);
    app.session.active = report;
    let mut effects = select_kernel(app, report, name);
    let kernels = app.kernels_id(report);
    if let Some((before, after)) = beside
        && let (Some(own), Some(other)) = (app.session.metrics(before.0).cloned(), app.session.metrics(after.0).cloned())
    {
        let mut screen = ResultScreen::new(before.0, own, before.1);
        screen.compare.other = Some((after.0, other, after.1));
        (screen.sure, screen.view, screen.opened) = (before.2, ResultView::Compare, ResultView::Compare);
        let id = app.push(report, |_| screen);
        effects.extend(open_screen(app, id));
    } else if app.kernels_screen_mut(report).is_some_and(|k| k.selected_name() == Some(name)) {
        let answer = app.with_screen(kernels, |screen, cx| screen.act(ActionId::Open, cx)).flatten();
        effects.extend(answer.map(|a| apply_response(app, kernels, a)).unwrap_or_default());
    }
    let opened = app.top_entry().map_or(kernels, |e| e.id);
    app.set_changes_behind(opened, changes);
    app.session.changes_behind = (opened == kernels).then_some(report);
    effects
}

/// Selects a kernel by name and requests its details.
fn select_kernel(app: &mut App, report: usize, name: &str) -> Vec<Effect> {
    let Some(groups) = app.session.reports.get(report).map(|r| r.groups.clone()) else { return Vec::new() };
    let Some(kernels) = app.kernels_screen_mut(report) else { return Vec::new() };
    if !kernels.select_by_name(name) {
        // A filter can hide the kernel.
        if !kernels.finder.clear() {
            return Vec::new();
        }
        kernels.rebuild_rows(&groups);
        if !kernels.select_by_name(name) {
            return Vec::new();
        }
    }
    let row = kernels.selected_row();
    app.session.reports.get_mut(report).map(|r| r.want_detail(report, row)).unwrap_or_default()
}

fn leave_screen(app: &mut App, id: u64) -> Vec<Effect> {
    if let Some(changes) = app.take_changes_behind(id) {
        app.close_screen(id);
        let id = app.push_common(changes);
        return open_screen(app, id);
    }
    if let Some(report) = app.take_ranks_behind(id) {
        app.close_screen(id);
        app.session.active = report;
        let screen = app.kept_ranks();
        let id = app.push_common(screen);
        return open_screen(app, id);
    }
    if app.is_home(id) {
        let at = app.report_of(id);
        if app.session.reports.get(at).is_some_and(|r| r.chosen_window().is_some()) {
            return set_time_filter(app, at, None);
        }
        let (quit, kernels) = (app.session.key_label(ActionId::Quit), app.session.key_label(ActionId::Kernels));
        if app.session.reports.get(at).is_some_and(Report::is_memory_only) {
            return set_status(app, format!("{quit} quits"), false);
        }
        return set_status(app, format!("{quit} quits, {kernels} shows the kernels"), false);
    }
    let run = app.entry(id).is_some_and(|e| RunScreen::of(&e.open).is_some());
    app.close_screen(id);
    if run {
        if app.running.is_live() {
            let key = app.session.key_label(ActionId::Watch);
            set_status(app, format!("the run continues; {key} shows it"), false);
        } else {
            app.running.watched = None;
        }
    }
    // Without an open report, the library is the home screen.
    if app.top_entry().is_none() { open_library(app) } else { Vec::new() }
}

/// Opens a screen about a result of a report.
pub fn show_result(app: &mut App, report: usize, (from, result, sure): Best, view: ResultView, opened: ResultView) -> Vec<Effect> {
    let Some(metrics) = app.session.metrics(from).cloned() else { return Vec::new() };
    let mut screen = ResultScreen::new(from, metrics, result);
    let view = if screen.has_view(view) { view } else { ResultView::Metrics };
    (screen.sure, screen.view, screen.opened) = (sure, view, opened);
    let id = app.push(report, |_| screen);
    open_screen(app, id)
}

/// Opens the result of the selection. Without a result, opens advice based on the launch alone, or explains how to get
/// a result.
fn open_selected_result(app: &mut App, asked: u64, view: ResultView) -> Vec<Effect> {
    let (at, selection) = (app.report_of(asked), app.selection(asked));
    if let Some(best) = selection.result {
        return show_result(app, at, best, view, view);
    }
    if view == ResultView::Hints
        && let Some(report) = app.session.reports.get(at).filter(|r| r.profile.as_ref().is_some_and(|p| p.metrics.is_none()))
        && let Some(launch) = selection.launch.or_else(|| report.median_of(selection.group?.1))
    {
        return report.request_work(at, JobRequest::Advice { screen: asked, launch });
    }
    no_metrics(app)
}

/// Explains how to get metrics.
pub fn no_metrics(app: &mut App) -> Vec<Effect> {
    let (rerun, measure) = (app.session.key_label(ActionId::Rerun), app.session.key_label(ActionId::MeasureNow));
    let profile = app.session.report().and_then(|r| r.profile.as_ref());
    if profile.is_some_and(|p| p.launches.is_empty()) {
        let notes = app.session.key_label(ActionId::Notes);
        return set_status(app, format!("this report has no launch of a kernel to measure; {notes} may show why"), false);
    }
    let amd = profile.is_some_and(|p| p.is_amd());
    let how = if amd { String::new() } else { format!(", {measure} measures it without ncu") };
    set_status(app, format!("no metrics: {rerun} shows the command that profiles it{how}"), false)
}

/// Opens the re-run screen for the selected launch, or for a representative launch of each selected or marked group.
fn open_rerun(app: &mut App, asked: u64, run: bool, in_place: bool) -> Vec<Effect> {
    let (at, selection) = (app.report_of(asked), app.selection(asked));
    let place = app.entry(asked).map(|e| e.open.screen().place());
    let Some(report) = app.session.reports.get(at) else { return Vec::new() };
    let Some(profile) = &report.profile else { return set_status(app, "nothing has been read yet", false) };
    if profile.launches.is_empty() {
        let nothing = profile.totals.is_empty();
        let text = if nothing { "there is no launch to profile again" } else { "this report has per-kernel totals only" };
        return set_status(app, text, true);
    }
    if report.is_reading() {
        return set_status(app, "the launches are still being read", false);
    }
    let (rows, choose) = match (selection.launch, place) {
        (None, Some(KeyScope::Ranges)) => return set_status(app, "no kernel was launched inside this range", true),
        (Some(launch), _) => (selection.group.as_ref().map(|g| vec![g.1]).unwrap_or_default(), Choose::One(LaunchId(launch))),
        (None, Some(KeyScope::Overview)) => {
            let rows = selection.group.as_ref().map(|g| vec![g.1]).unwrap_or_default();
            (rows, Choose::Median)
        }
        (None, Some(KeyScope::Kernels)) => {
            let marked = report.groups.marked_rows();
            let own = || selection.group.as_ref().map(|g| vec![g.1]).unwrap_or_default();
            (if marked.is_empty() { own() } else { marked }, Choose::Median)
        }
        (None, Some(KeyScope::Timeline)) => {
            let open = app.session.key_label(ActionId::Open);
            return set_status(app, format!("no kernel is at the cursor, nor idle time that one ends; {open} opens what is there"), true);
        }
        (None, Some(KeyScope::Launches)) => return set_status(app, "no launch is selected", true),
        (None, _) => return set_status(app, "this result matches no launch in the timeline: select a launch there", true),
    };
    let Some((grouping, _)) = selection.group else { return set_status(app, "no kernel is selected", true) };
    // The same launch as on the command line, which knows no steady state.
    let (grouping, rows) = match (report.whole_grouping(), &choose) {
        (Some(whole), Choose::Median) if report.shows_steady_state() => match whole.rows_named(&grouping, &rows) {
            Some(rows) => (Arc::clone(whole), rows),
            None => (grouping, rows),
        },
        _ => (grouping, rows),
    };
    let id = app.push(at, |id| {
        let mut screen = RerunScreen::new(grouping, rows, choose, id);
        if let Some(range) = selection.inside {
            screen.request.options.within = Within::Range(range, None);
        }
        // Collect the sections that the hint needs.
        if let Some(options) = selection.collect {
            screen.request.options = options;
        }
        if in_place {
            screen.request.options.profiler = Profiler::InPlace;
        }
        screen.run_when_ready = run;
        screen
    });
    open_screen(app, id)
}

/// Jumps from a result to its launch in another open timeline and back.
pub fn jump_to_pair(app: &mut App, asked: u64) -> Vec<Effect> {
    let (at, selection) = (app.report_of(asked), app.selection(asked));
    let Some((from, result, _)) = selection.result else { return no_metrics(app) };
    let on_result = selection.collect.is_some();
    // The result was opened from a launch, whose screen is below this one.
    if from != at && on_result {
        return match app.session.reports.get(at).and_then(|r| r.launch_of(from, result)) {
            Some(pair) => to_launch(app, at, pair),
            None => set_status(app, "this result matches no launch in the timeline", false),
        };
    }
    if from != at || (!on_result && selection.launch.is_none()) {
        return self::open_selected_result(app, asked, ResultView::Metrics);
    }
    let found = app.session.reports.iter().enumerate().find_map(|(i, r)| Some((i, r.launch_of(at, result)?)));
    match found {
        Some((timeline, pair)) => to_launch(app, timeline, pair),
        None => set_status(app, "no open timeline has this launch: open the nsys report alongside this one", false),
    }
}

/// Selects the launch that matches a result in its timeline.
fn to_launch(app: &mut App, timeline: usize, pair: Pair) -> Vec<Effect> {
    app.close_common();
    app.close_all_of(timeline);
    app.session.active = timeline;
    let Some(report) = app.session.reports.get(timeline) else { return Vec::new() };
    let Some((grouping, row)) = report.group_of_launch(pair.launch) else { return Vec::new() };
    let name = grouping.rows.get(row).map(|r| r.name.clone()).unwrap_or_default();
    let mut effects = select_kernel(app, timeline, &name);
    effects.extend(launches_at(app, timeline, pair.launch));
    set_status(app, pair.sure.describe(), false);
    effects
}

/// Shows reports, opening them if necessary.
fn open_reports(app: &mut App, files: &[PathBuf]) -> Vec<Effect> {
    let new: Vec<PathBuf> = files.iter().filter(|f| app.session.find_report(f).is_none()).cloned().collect();
    let effects = add_reports(app, new);
    if let Some(at) = files.first().and_then(|f| app.session.find_report(f)) {
        app.session.active = at;
    }
    app.close_common();
    effects
}

/// Adds reports of the user's own runs to the session and reads them.
pub fn add_reports(app: &mut App, files: Vec<PathBuf>) -> Vec<Effect> {
    if files.is_empty() {
        return Vec::new();
    }
    app.session.add_reports(&files);
    app.ensure_root_screens();
    vec![Effect::Open(files)]
}

/// Opens a file that the user chose; its program is not trusted. A report that is open already is only shown.
pub fn open_file(app: &mut App, file: &Path) -> Vec<Effect> {
    let mut effects = Vec::new();
    if app.session.find_report(file).is_none() {
        app.session.add_report(file);
        app.ensure_root_screens();
        effects.push(Effect::Open(vec![file.to_owned()]));
    }
    app.session.active = app.session.find_report(file).unwrap_or(app.session.active);
    app.close_common();
    effects
}

/// Opens the changes between two reports.
fn open_changes(app: &mut App, before: usize, after: usize) -> Vec<Effect> {
    app.close_common();
    let id = app.push_common(DiffScreen::new(before, after));
    open_screen(app, id)
}

/// Brings the screen of the watched run to the top.
pub fn show_watched_run(app: &mut App) {
    if let Some(id) = app.find_screen::<RunScreen>(None) {
        app.close_screen(id);
    }
    app.push_common(RunScreen);
}

/// Shows the output of a run of the library; follows it if the run is live.
fn follow_run(app: &mut App, run: &Run) -> Vec<Effect> {
    let id = run.id;
    let mut watched = Watched::new(shell::command_line(&run.argv), Some(Box::new(run.clone())), false);
    watched.opens = run.state.is_live();
    app.running.watched = Some(watched);
    show_watched_run(app);
    vec![Effect::Follow(id)]
}

/// Opens the run library.
pub fn open_library(app: &mut App) -> Vec<Effect> {
    app.close_common_but::<LibraryScreen>();
    let id = app.find_screen::<LibraryScreen>(None);
    let id = id.unwrap_or_else(|| app.push_common(LibraryScreen::default()));
    open_screen(app, id)
}

/// Quits; asks first if quitting would end a run.
pub fn request_quit(app: &mut App) -> Vec<Effect> {
    if !app.running.has_attached_run() {
        return quit_now(app);
    }
    let begun = app.running.watched.as_ref().is_some_and(|s| s.run.is_some());
    let mut items = vec![Item::new("stay", "", 'b', PickAction::Run(RunChoice::Nothing))];
    // A run that has not started yet cannot be detached.
    if begun {
        let hint = "the run continues; `warpscope attach` shows it again";
        items.push(Item::new("detach it and quit", hint, 'd', PickAction::Run(RunChoice::DetachAndQuit)));
    }
    items.push(Item::new(
        "stop it and quit",
        "asks the profiler to stop and write its report",
        's',
        PickAction::Run(RunChoice::StopAndQuit),
    ));
    let asked = app.top_entry().map_or(0, |e| e.id);
    apply_response(app, asked, Response::open_overlay(PickList::by_letter("a run is in progress", items, None)))
}

pub fn quit_now(app: &App) -> Vec<Effect> {
    let reading = app.session.reports.iter().enumerate().filter(|(_, r)| r.is_reading());
    reading.map(|(i, _)| Effect::Cancel(i)).chain([Effect::Quit]).collect()
}
