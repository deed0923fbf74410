//! Deep links: open the location named on the command line, and format the command that reopens the current location

use super::actions::{ActionId, KeyScope};
use super::msg::Effect;
use super::navigation::{launches_at, navigate_to, open_screen, set_status, show_result as open_result};
use super::screen::{At, Navigate, ResultView};
use super::screens::{KernelsScreen, LaunchesScreen, Open, RangesScreen, ResultScreen, TimelineScreen};
use super::session::{Location, Report};
use super::state::App;
use crate::analysis::timeline::Event;
use crate::model::Profile;
use crate::rerun::shell;

/// Result view of a screen; `None` if the screen is not about a result.
fn result_view(show: KeyScope) -> Option<ResultView> {
    Some(match show {
        KeyScope::Metrics => ResultView::Metrics,
        KeyScope::Hints => ResultView::Hints,
        KeyScope::Roofline => ResultView::Roofline,
        KeyScope::Source => ResultView::Source,
        _ => return None,
    })
}

/// Result of one attempt to reach the location.
enum Step {
    /// Required data is not loaded yet.
    Wait,
    /// Intermediate step: these effects must run before the next attempt.
    Way(Vec<Effect>),
    There(Vec<Effect>),
    /// The location does not exist, for this reason.
    Lost(String),
}

/// Continues toward the location named on the command line, to the extent that the loaded data allows.
pub fn resume_deep_link(app: &mut App) -> Vec<Effect> {
    let Some(address) = app.session.address.clone() else { return Vec::new() };
    match resolve_address(app, &address) {
        Step::Wait => Vec::new(),
        Step::Way(effects) => effects,
        Step::There(effects) => {
            app.session.address = None;
            effects
        }
        Step::Lost(why) => {
            app.session.address = None;
            set_status(app, why, true)
        }
    }
}

fn resolve_address(app: &mut App, address: &Location) -> Step {
    const AT: usize = 0;
    let Some(report) = app.session.reports.get_mut(AT) else { return Step::Lost("there is no report".to_owned()) };
    if report.is_reading() {
        return Step::Wait;
    }
    let Some(profile) = report.profile.clone() else {
        app.session.address = None;
        return Step::Wait;
    };
    report.greeted = true;
    let show = address.show.unwrap_or(match address {
        Location { result: Some(_), .. } => KeyScope::Metrics,
        Location { range: Some(_), .. } => KeyScope::Ranges,
        Location { launch: Some(_), .. } => KeyScope::Launches,
        _ => KeyScope::Kernels,
    });
    let timed = report.is_timeline();
    if let (true, Some(window)) = (timed && show != KeyScope::Timeline, address.window) {
        // Apply the time filter only once: the user may clear it later.
        if let Some(address) = &mut app.session.address {
            address.window = None;
        }
        let asked = app.top_entry().map_or(0, |e| e.id);
        return Step::Way(navigate_to(app, asked, Navigate::Window(Some(resolve_window(&profile, window)))));
    }
    if let Some(view) = result_view(show).filter(|_| address.result.is_some() || address.kernel.is_none()) {
        return go_to_result(app, AT, address.result.unwrap_or(0), view);
    }
    if show == KeyScope::Ranks {
        let reading = app.session.reports.iter().any(Report::is_reading);
        let asked = app.top_entry().map_or(0, |e| e.id);
        return if reading { Step::Wait } else { Step::There(navigate_to(app, asked, Navigate::Ranks)) };
    }
    if let Some(name) = &address.kernel {
        let report = &app.session.reports[AT];
        let Some(known) = report.groups.grouping.clone() else { return Step::Wait };
        let Some(kernels) = app.kernels_screen_mut(AT) else { return Step::Wait };
        if !kernels.select_by_name(name) {
            // The table adopts a new grouping only on the next message.
            let listed = kernels.selected_name().is_some() || known.rows.is_empty();
            let find = app.session.key_label(ActionId::Filter);
            return if listed {
                Step::Lost(format!("no kernel is called {name}; {find} finds kernels by a part of their name"))
            } else {
                Step::Wait
            };
        }
    }
    let launches = profile.launches.len();
    if let Some(launch) = address.launch.filter(|l| *l as usize >= launches) {
        return Step::Lost(format!("there is no launch {launch}: the report has {launches}"));
    }
    let table = app.kernels_id(AT);
    match show {
        KeyScope::Kernels => {
            let row = app.kernels_screen(AT).and_then(KernelsScreen::selected_row);
            Step::There(app.session.reports.get_mut(AT).map(|r| r.want_detail(AT, row)).unwrap_or_default())
        }
        KeyScope::Ranges if address.range.is_some() => {
            Step::There(navigate_to(app, table, Navigate::RangesAt(address.range.clone().unwrap_or_default())))
        }
        KeyScope::Timeline => go_to_timeline(app, AT, address),
        KeyScope::Launches | KeyScope::Rerun => to_launch(app, AT, address, show == KeyScope::Rerun),
        whole if Open::on_report(whole, 0).is_some() => {
            let there = app.find_on_report(AT, whole).is_some();
            Step::There(if there { Vec::new() } else { navigate_to(app, table, Navigate::Toggle(whole)) })
        }
        // A kernel given by name has a result only once results and launches are joined.
        _ => {
            let best = app.selection(table).result;
            match (best, result_view(show)) {
                (Some(best), Some(view)) => Step::There(open_result(app, AT, best, view, view)),
                _ if app.session.reports.iter().any(Report::is_reading) || joins_are_pending(app, AT) => Step::Wait,
                _ => Step::Lost("this kernel has no metrics".to_owned()),
            }
        }
    }
}

/// Returns true if the results of another report are not joined with the launches of this one yet.
fn joins_are_pending(app: &App, at: usize) -> bool {
    let Some(report) = app.session.reports.get(at).filter(|r| r.is_timeline()) else { return false };
    (0..app.session.reports.len())
        .any(|other| other != at && app.session.metrics(other).is_some() && report.joins.iter().all(|(joined, _)| *joined != other))
}

/// Opens a result of the report, or of the separate report that holds its measurements.
fn go_to_result(app: &mut App, at: usize, number: usize, view: ResultView) -> Step {
    let part = app.session.reports.iter().position(|r| r.part_of == Some(at));
    let from = if app.session.metrics(at).is_some() { Some(at) } else { part };
    let Some(metrics) = from.and_then(|f| app.session.metrics(f)) else {
        return Step::Lost("this report has no metrics of kernels".to_owned());
    };
    let there = metrics.results.len();
    if number >= there {
        return Step::Lost(format!("there is no result {number}: the report has {there}"));
    }
    let from = from.unwrap_or(at);
    if from != at {
        app.session.active = from;
    }
    Step::There(open_result(app, from, (from, number, None), view, view))
}

/// Opens the timeline at a time window or a launch.
fn go_to_timeline(app: &mut App, at: usize, address: &Location) -> Step {
    let Some(profile) = app.session.reports.get(at).and_then(|r| r.profile.clone()) else { return Step::Wait };
    let event = address.launch.map(Event::Launch);
    let of_launch = address.launch.map(|l| (profile.launches.start(l as usize), profile.launches.end(l as usize)));
    let place = address.window.or(of_launch).map(|(start, end)| At { start, end, event });
    let exact = address.window.is_some();
    let place = place.map(|p| {
        let (start, end) = resolve_window(&profile, (p.start, p.end));
        At { start, end, ..p }
    });
    let id = app.push(at, |id| if exact { TimelineScreen::new_exact(place, id) } else { TimelineScreen::new(place, id) });
    Step::There(open_screen(app, id))
}

/// Resolves a window with open ends (`i64::MIN`, `i64::MAX`) against the time span of the report, ns.
fn resolve_window(profile: &Profile, (from, to): (i64, i64)) -> (i64, i64) {
    let launches = &profile.launches;
    let ends = (0..launches.len()).map(|l| launches.end(l)).chain(profile.memops.iter().map(|m| m.start.0.saturating_add(m.duration.0)));
    let last = ends.max().unwrap_or(0).max(1);
    let from = if from == i64::MIN { 0 } else { from };
    (from, if to == i64::MAX { last.max(from.saturating_add(1)) } else { to })
}

/// Opens a launch in the launch list of its group; with `rerun`, opens the re-run screen once the list is loaded.
fn to_launch(app: &mut App, at: usize, address: &Location, rerun: bool) -> Step {
    let table = app.kernels_id(at);
    if app.session.reports[at].profile.as_ref().is_some_and(|p| p.launches.is_empty()) {
        return Step::Lost("this report has no single launches".to_owned());
    }
    let Some(launch) = address.launch else {
        let Some(kernels) = app.kernels_screen(at) else { return Step::Wait };
        if app.session.reports[at].groups.grouping.is_none() || kernels.selected_row().is_none() {
            return Step::Wait;
        }
        if rerun {
            return Step::There(navigate_to(app, table, Navigate::Rerun { run: false, in_place: false }));
        }
        let group = app.selection(table).group;
        return match group {
            Some((grouping, row)) => Step::There(navigate_to(app, table, Navigate::Launches { grouping, row })),
            None => Step::Lost("there is no kernel to list the launches of".to_owned()),
        };
    };
    if let Some(id) = app.find_screen::<LaunchesScreen>(Some(at)) {
        return match app.launches_screen(at).and_then(LaunchesScreen::selected_launch) {
            Some(_) if rerun => Step::There(navigate_to(app, id, Navigate::Rerun { run: false, in_place: false })),
            Some(_) => Step::There(Vec::new()),
            None => Step::Wait,
        };
    }
    if app.session.reports[at].groups.grouping.is_none() {
        return Step::Wait;
    }
    let effects = launches_at(app, at, launch);
    // If no screen opened, `launches_at` has already told the user why.
    if app.find_screen::<LaunchesScreen>(Some(at)).is_none() { Step::There(effects) } else { Step::Way(effects) }
}

/// Returns the command that reopens the current location; `None` if the screen does not belong to a report.
pub fn reopen_command(app: &App) -> Option<String> {
    let session = &app.session;
    let shown = session.report()?;
    let own = shown.part_of.unwrap_or(session.active);
    let selected = app.top_selection();
    let place = app.current_scope();
    let mut address = Location { launch: selected.launch, window: shown.window, ..Location::default() };
    let group = selected.group.as_ref().and_then(|(grouping, row)| Some((grouping.by, grouping.rows.get(*row)?.name.clone())));
    let result = app.result_screen(session.active).filter(|_| KeyScope::Results.applies_to(place));
    // Name the report of this location as the first argument.
    let mut first = own;
    address.show = Some(match place {
        KeyScope::Timeline => {
            let place = app.report_screen::<TimelineScreen>(session.active).and_then(|t| t.place);
            address.window = place.map(|p| (p.start, p.end)).or(address.window);
            KeyScope::Timeline
        }
        KeyScope::Ranges => {
            address.range = app.report_screen::<RangesScreen>(session.active).and_then(|r| r.selected_node()).map(|n| n.1.name.clone());
            KeyScope::Ranges
        }
        own if own.link_name().is_some() && !KeyScope::Results.applies_to(own) => own,
        _ => {
            let ResultScreen { report, result, view, .. } = result?;
            let from = session.reports.get(*report)?;
            (first, address.result) = (from.part_of.unwrap_or(*report), Some(*result));
            (address.launch, address.window) = (None, None);
            match view {
                ResultView::Metrics | ResultView::Compare => KeyScope::Metrics,
                ResultView::Hints => KeyScope::Hints,
                ResultView::Roofline => KeyScope::Roofline,
                ResultView::Source => KeyScope::Source,
            }
        }
    });
    if matches!(address.show, Some(KeyScope::Kernels | KeyScope::Launches | KeyScope::Rerun)) {
        address.kernel = group.as_ref().map(|g| g.1.clone());
    }
    let by = group.map(|g| g.0).filter(|_| address.kernel.is_some());
    let mut words = vec!["warpscope".to_owned()];
    let files = || session.reports.iter().enumerate().filter(|(_, r)| r.part_of.is_none());
    if session.reports.get(first)?.built_in {
        words.push("demo".to_owned());
    } else {
        let others = files().filter(|(i, r)| *i != first && !r.built_in);
        words.extend(files().filter(|(i, _)| *i == first).chain(others).map(|(_, r)| r.file.to_string_lossy().into_owned()));
    }
    words.extend(address.to_args());
    words.extend(by.into_iter().flat_map(|by| ["--group".to_owned(), by.cli_name().to_owned()]));
    Some(shell::command_line(&words))
}
