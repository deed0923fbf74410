//! Dispatch of actions: the top screen handles its own actions; all others have a common implementation

use super::actions::table::Action;
use super::actions::{ACTIONS, ActionId, KeyScope, find_action};
use super::checklist::request_checklist;
use super::deep_link::reopen_command;
use super::msg::Effect;
use super::navigation::{apply_response, broadcast_to_report, jump_to_pair, navigate_to, request_quit, set_status};
use super::overlay::{Item, LineOf, OverlayKind, Page, PickAction, PickList};
use super::screen::{Navigate, Response, ResultView, Screen, ScreenContext, ScreenEvent};
use super::screens::{DiffScreen, Open};
use super::session::{DetailsRoom, Report};
use super::state::App;
use crate::analysis::live::KernelNow;
use crate::model::Profile;
use std::cmp::Reverse;
use tui_input::Input;

/// Dispatches an action to the top screen.
pub fn dispatch_action(app: &mut App, id: ActionId) -> Vec<Effect> {
    *app.session.used.entry(id).or_default() += 1;
    let Some(asked) = app.top_entry().map(|e| e.id) else { return run_common_action(app, 0, id) };
    if scroll_details(app, id) {
        return Vec::new();
    }
    match app.with_screen(asked, |screen, cx| screen.act(id, cx)).flatten() {
        Some(answer) => apply_response(app, asked, answer),
        None => run_common_action(app, asked, id),
    }
}

/// While the details pane has focus, movement keys scroll it; any other action returns the focus to the table. Returns
/// true if the action needs no further handling.
fn scroll_details(app: &mut App, id: ActionId) -> bool {
    let page = app.session.page_rows();
    let Some(at) = app.session.reading else { return false };
    if !matches!(app.current_scope(), KeyScope::Kernels | KeyScope::Launches) || !app.session.details_beside() {
        app.session.reading = None;
        return false;
    }
    let by = match id {
        ActionId::Up => -1,
        ActionId::Down => 1,
        ActionId::PageUp => -page,
        ActionId::PageDown => page,
        ActionId::First => isize::MIN / 2,
        ActionId::Last => isize::MAX / 2,
        ActionId::Focus | ActionId::FocusDetails => return false,
        _ => {
            app.session.reading = None;
            return id == ActionId::Back;
        }
    };
    app.session.reading = Some(at.saturating_add_signed(by).min(app.session.most_scroll));
    true
}

/// Moves the focus to the details pane, or back to the table.
fn focus_details(app: &mut App, details: bool) -> Vec<Effect> {
    if details && !app.session.details_beside() {
        let key = app.session.key_label(ActionId::Details);
        return set_status(app, format!("there are no details beside the table; {key} shows them"), false);
    }
    if !details && app.session.reading.is_none() {
        return set_status(app, "the list has the focus", false);
    }
    if app.session.reading.is_none() || !details {
        (app.session.reading, app.session.most_scroll) = (details.then_some(0), usize::MAX);
    }
    Vec::new()
}

/// Moves the selection of the top screen.
pub fn scroll_top(app: &mut App, by: isize) -> Vec<Effect> {
    ask_top(app, |screen, cx| screen.scroll(by, cx))
}

/// Calls a closure with the top screen and applies the response.
pub fn ask_top(app: &mut App, ask: impl FnOnce(&mut dyn Screen, &mut ScreenContext<'_>) -> Response) -> Vec<Effect> {
    let Some(asked) = app.top_entry().map(|e| e.id) else { return Vec::new() };
    app.with_screen(asked, ask).map(|answer| apply_response(app, asked, answer)).unwrap_or_default()
}

/// Screen about the whole report that an action with the same name opens and closes.
fn toggled_screen(id: ActionId) -> Option<KeyScope> {
    let screen = KeyScope::from_link(find_action(id)?.name)?;
    Open::on_report(screen, 0).map(|_| screen)
}

fn run_common_action(app: &mut App, asked: u64, id: ActionId) -> Vec<Effect> {
    let page = app.session.page_rows();
    let over = |app: &mut App, page: Page| apply_response(app, asked, Response::open_overlay(page));
    if let Some(screen) = toggled_screen(id) {
        return navigate_to(app, asked, Navigate::Toggle(screen));
    }
    match id {
        ActionId::Up => scroll_top(app, -1),
        ActionId::Down => scroll_top(app, 1),
        ActionId::PageUp => scroll_top(app, -page),
        ActionId::PageDown => scroll_top(app, page),
        ActionId::First => scroll_top(app, isize::MIN / 2),
        ActionId::Last => scroll_top(app, isize::MAX / 2),
        ActionId::Metrics => navigate_to(app, asked, Navigate::Result(ResultView::Metrics)),
        ActionId::Hints => navigate_to(app, asked, Navigate::Result(ResultView::Hints)),
        ActionId::Roofline => navigate_to(app, asked, Navigate::Result(ResultView::Roofline)),
        ActionId::Source => navigate_to(app, asked, Navigate::Result(ResultView::Source)),
        ActionId::Rerun => navigate_to(app, asked, Navigate::Rerun { run: false, in_place: false }),
        ActionId::RunNow => navigate_to(app, asked, Navigate::Rerun { run: true, in_place: false }),
        ActionId::MeasureNow => measure_selection(app, asked),
        ActionId::Pair => jump_to_pair(app, asked),
        ActionId::Watch => navigate_to(app, asked, Navigate::Watch),
        ActionId::Timeline => navigate_to(app, asked, Navigate::Timeline),
        ActionId::Narrow => toggle_steady_state(app, asked),
        ActionId::Kernels => navigate_to(app, asked, Navigate::Kernels(None)),
        ActionId::OpenFile => super::file_list::request_files(app),
        ActionId::Library => navigate_to(app, asked, Navigate::Library),
        ActionId::Diff => {
            let answer = DiffScreen::ask_baseline(&app.session);
            apply_response(app, asked, answer)
        }
        ActionId::Ranks => navigate_to(app, asked, Navigate::Ranks),
        ActionId::Checklist => request_checklist(app, asked),
        ActionId::CopyPlace => match reopen_command(app) {
            Some(text) => vec![Effect::Copy(text, "command that opens this place".to_owned())],
            None => set_status(app, "this screen belongs to no report: there is no command that opens it", false),
        },
        ActionId::Form => cycle_name_form(app),
        ActionId::FullName => over(app, Page::Names),
        ActionId::Details => match app.session.details_room() {
            DetailsRoom::Over => over(app, Page::Details),
            _ => {
                app.session.details = !app.session.details;
                Vec::new()
            }
        },
        ActionId::Focus => {
            let details = app.session.reading.is_none();
            focus_details(app, details)
        }
        ActionId::FocusTable => focus_details(app, false),
        ActionId::FocusDetails => focus_details(app, true),
        ActionId::SaveView => {
            let name = format!("./warpscope-{}.svg", app.current_scope().as_str().replace([' ', ','], "-"));
            apply_response(app, asked, Response::open_overlay(OverlayKind::Line(LineOf::View, Input::new(name))))
        }
        ActionId::Notes => over(app, Page::Notes),
        ActionId::Help => over(app, Page::Help),
        ActionId::NextReport => switch_report(app, 1),
        ActionId::PreviousReport => switch_report(app, -1),
        ActionId::Theme => {
            let themes = list_themes(app);
            apply_response(app, asked, Response::open_overlay(themes))
        }
        ActionId::Palette => {
            let palette = list_actions(app);
            apply_response(app, asked, Response::open_overlay(palette))
        }
        ActionId::Redraw => vec![Effect::Redraw],
        ActionId::Suspend => vec![Effect::Suspend],
        ActionId::Quit => request_quit(app),
        // Actions that only other screens handle.
        _ => Vec::new(),
    }
}

/// Measures the selected kernel with the built-in tracer: the next launches in the program being traced, or otherwise
/// this launch in a new run.
fn measure_selection(app: &mut App, asked: u64) -> Vec<Effect> {
    let (at, selection) = (app.report_of(asked), app.selection(asked));
    let profile = app.session.reports.get(at).and_then(|r| r.profile.as_deref());
    if profile.is_some_and(Profile::is_amd) {
        let run = app.session.key_label(ActionId::RunNow);
        return set_status(app, format!("the built-in tracer is for NVIDIA GPUs; {run} profiles the launch with rocprofv3"), true);
    }
    let launched = |l: u32| profile.filter(|p| (l as usize) < p.launches.len()).map(|p| p.launches.kernel(l as usize));
    let of_group = || selection.group.as_ref().and_then(|(grouping, row)| grouping.rows.get(*row)?.kernel);
    let kernel = selection.launch.and_then(launched).or_else(of_group).and_then(|k| profile?.kernels.get(k.0 as usize));
    let traced = app.running.watched.as_ref().filter(|w| w.is_live()).and_then(|w| w.traced.live.as_deref());
    let same = |k: &&KernelNow| kernel.is_some_and(|mine| *k.name == *mine.mangled() || *k.name == *mine.demangled());
    match traced.and_then(|live| live.kernels.iter().find(same)) {
        Some(kernel) => vec![Effect::Measure(kernel.name.to_string())],
        None => navigate_to(app, asked, Navigate::Rerun { run: true, in_place: true }),
    }
}

/// Clears the report's time filter if there is one; otherwise narrows all screens of the report to the steady state. If
/// that is the whole run, explains how to narrow them on the timeline.
fn toggle_steady_state(app: &mut App, asked: u64) -> Vec<Effect> {
    let report = app.session.reports.get(app.report_of(asked));
    if report.is_some_and(|r| r.window.is_some()) {
        return navigate_to(app, asked, Navigate::Window(None));
    }
    if let Some(steady) = report.and_then(Report::steady_window) {
        return navigate_to(app, asked, Navigate::Window(Some(steady)));
    }
    let (timeline, mark, narrow) =
        (app.session.key_label(ActionId::Timeline), app.session.key_label(ActionId::SetMark), app.session.key_label(ActionId::Narrow));
    set_status(
        app,
        format!(
            "the whole run is shown and judged; to narrow all screens, mark a window in the timeline ({timeline}) with {mark}, then {narrow}"
        ),
        false,
    )
}

/// Switches all screens of the report to the next form of kernel names.
fn cycle_name_form(app: &mut App) -> Vec<Effect> {
    let at = app.session.active;
    let Some(report) = app.session.reports.get_mut(at) else { return Vec::new() };
    report.groups.form = report.groups.form.next();
    let word = report.groups.form.as_str();
    // Only kernel names have several forms.
    if let Some(profile) = report.profile.clone().filter(|_| report.groups.by.is_kernel()) {
        report.groups.rebuild_labels(&profile);
    }
    let effects = broadcast_to_report(app, at, ScreenEvent::Names);
    set_status(app, format!("{word} names"), false);
    effects
}

/// Switches to the next or previous report and selects the same kernel there, for comparison.
fn switch_report(app: &mut App, by: isize) -> Vec<Effect> {
    let n = app.session.reports.len();
    if n < 2 {
        let open = app.session.key_label(ActionId::OpenFile);
        return set_status(app, format!("only one report is open; {open} opens a second one"), false);
    }
    // Screens without a report would cover the new report.
    app.close_common();
    let at = app.session.active;
    let name = app.kernels_screen(at).and_then(|k| k.selected_name()).map(str::to_owned);
    let next = (at + n).saturating_add_signed(by) % n;
    app.session.active = next;
    let Some(kernels) = app.kernels_screen_mut(next) else { return Vec::new() };
    if !name.is_some_and(|name| kernels.select_by_name(&name)) {
        return Vec::new();
    }
    let row = kernels.selected_row();
    app.session.reports.get_mut(next).map(|r| r.want_detail(next, row)).unwrap_or_default()
}

/// Width of the key column in the list of actions.
const KEYS: usize = 10;

/// All actions: first those of this screen (most used first, then in footer order, and movement last because its keys
/// are well known), then those of other screens, with the screens on which they work.
fn list_actions(app: &App) -> PickList {
    let here = app.current_scope();
    let mut all: Vec<&Action> = ACTIONS.iter().filter(|a| a.id != ActionId::Palette).collect();
    let moves = |id| {
        use ActionId::{Down, First, Last, PageDown, PageUp, Up};
        matches!(id, Up | Down | PageUp | PageDown | First | Last)
    };
    let used = |id| app.session.used.get(&id).copied().unwrap_or(0);
    all.sort_by_key(|a| {
        (!a.on.applies_to(here), moves(a.id), Reverse(used(a.id)), a.on == KeyScope::Everywhere, a.footer.map_or(u8::MAX, |f| f.0))
    });
    let items = all.into_iter().map(|a| {
        let keys = app.session.settings.keymap.first_labels(a.id, 2, KEYS - 1);
        let place = if a.on.applies_to(here) { String::new() } else { format!("on {}: ", a.on.as_str()) };
        let hint = format!("{keys:<KEYS$}{place}{}", a.help);
        Item::new(a.name, hint, None, PickAction::Action(a.id))
    });
    // List copying the table under the name of its format as well, so that typing `csv` finds it.
    let table = app.top_entry().filter(|e| {
        matches!(
            e.open.screen().place(),
            KeyScope::Kernels
                | KeyScope::Launches
                | KeyScope::Ranges
                | KeyScope::Lines
                | KeyScope::Diff
                | KeyScope::Memory
                | KeyScope::Overview
        )
    });
    let csv = table.map(|_| {
        let hint = format!("{:<KEYS$}copy (export, save) all listed rows as CSV; in the shell, `--format csv > FILE`", "");
        Item::new("copy-table-as-csv", hint, None, PickAction::Copy(super::overlay::CopyWhat::Table))
    });
    PickList::by_typing("actions", items.chain(csv).collect())
}

/// List of themes; selecting one previews it.
fn list_themes(app: &App) -> PickList {
    let settings = &app.session.settings;
    let current = PickAction::Theme(settings.theme.clone());
    let items = settings.themes.iter().map(|t| Item::new(t, "", None, PickAction::Theme(t.clone()))).collect();
    let mut pick = PickList::by_letter("theme", items, Some(&current));
    pick.before = Some(current);
    pick
}
