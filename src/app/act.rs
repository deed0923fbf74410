//! Dispatch of actions: the top screen handles its own, all others have a common implementation.

use super::actions::table::Action;
use super::actions::{ACTIONS, ActionId, Where};
use super::arrive::command;
use super::checklist::checklist;
use super::msg::Effect;
use super::open::{carry, go, pair, quit, say, tell};
use super::over::{Choice, Item, LineOf, Page, Pick, What};
use super::screen::{Answer, Cx, Go, News, ResultView, Screen};
use super::screens::DiffScreen;
use super::session::DetailsRoom;
use super::state::App;
use crate::analysis::live::KernelNow;
use crate::model::Profile;
use std::cmp::Reverse;
use tui_input::Input;

/// Dispatches an action to the top screen.
pub fn act(app: &mut App, id: ActionId) -> Vec<Effect> {
    *app.session.used.entry(id).or_default() += 1;
    let Some(asked) = app.top().map(|e| e.id) else { return common(app, 0, id) };
    if read(app, id) {
        return Vec::new();
    }
    match app.ask(asked, |screen, cx| screen.act(id, cx)).flatten() {
        Some(answer) => carry(app, asked, answer),
        None => common(app, asked, id),
    }
}

/// While the details pane has focus, movement keys scroll it; any other action returns the focus to the table. Returns
/// true if the action needs no further handling.
fn read(app: &mut App, id: ActionId) -> bool {
    let page = app.session.page();
    let Some(at) = app.session.reading else { return false };
    if !matches!(app.here(), Where::Kernels | Where::Launches) || !app.session.details_beside() {
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
fn focus(app: &mut App, details: bool) -> Vec<Effect> {
    if details && !app.session.details_beside() {
        let key = app.session.key(ActionId::Details);
        return say(app, format!("there are no details beside the table; {key} shows them"), false);
    }
    if app.session.reading.is_none() || !details {
        (app.session.reading, app.session.most_scroll) = (details.then_some(0), usize::MAX);
    }
    Vec::new()
}

/// Moves the selection of the top screen.
pub fn scroll(app: &mut App, by: isize) -> Vec<Effect> {
    ask_top(app, |screen, cx| screen.scroll(by, cx))
}

/// Calls a closure with the top screen, and applies its answer.
pub fn ask_top(app: &mut App, ask: impl FnOnce(&mut dyn Screen, &mut Cx<'_>) -> Answer) -> Vec<Effect> {
    let Some(asked) = app.top().map(|e| e.id) else { return Vec::new() };
    app.ask(asked, ask).map(|answer| carry(app, asked, answer)).unwrap_or_default()
}

fn common(app: &mut App, asked: u64, id: ActionId) -> Vec<Effect> {
    let page = app.session.page();
    let over = |app: &mut App, page: Page| carry(app, asked, Answer::over(page));
    match id {
        ActionId::Up => scroll(app, -1),
        ActionId::Down => scroll(app, 1),
        ActionId::PageUp => scroll(app, -page),
        ActionId::PageDown => scroll(app, page),
        ActionId::First => scroll(app, isize::MIN / 2),
        ActionId::Last => scroll(app, isize::MAX / 2),
        ActionId::Metrics => go(app, asked, Go::Result(ResultView::Metrics)),
        ActionId::Hints => go(app, asked, Go::Result(ResultView::Hints)),
        ActionId::Roofline => go(app, asked, Go::Result(ResultView::Roofline)),
        ActionId::Source => go(app, asked, Go::Result(ResultView::Source)),
        ActionId::Rerun => go(app, asked, Go::Rerun { run: false, in_place: false }),
        ActionId::RunNow => go(app, asked, Go::Rerun { run: true, in_place: false }),
        ActionId::MeasureNow => measure(app, asked),
        ActionId::Pair => pair(app, asked),
        ActionId::Watch => go(app, asked, Go::Watch),
        ActionId::Overview => go(app, asked, Go::Overview),
        ActionId::Timeline => go(app, asked, Go::Timeline),
        ActionId::Ranges => go(app, asked, Go::Ranges(None)),
        ActionId::Narrow => widen(app, asked),
        ActionId::Kernels => go(app, asked, Go::Kernels(None)),
        ActionId::Library => go(app, asked, Go::Library),
        ActionId::Diff => {
            let answer = DiffScreen::ask(&app.session);
            carry(app, asked, answer)
        }
        ActionId::Memory => go(app, asked, Go::Memory),
        ActionId::Ranks => go(app, asked, Go::Ranks),
        ActionId::Checklist => checklist(app, asked),
        ActionId::CopyPlace => match command(app) {
            Some(text) => vec![Effect::Copy(text, "command that opens this place".to_owned())],
            None => say(app, "this screen belongs to no report: there is no command that opens it", false),
        },
        ActionId::Form => names(app),
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
            focus(app, details)
        }
        ActionId::FocusTable => focus(app, false),
        ActionId::FocusDetails => focus(app, true),
        ActionId::SaveView => {
            let name = format!("./warpscope-{}.svg", app.here().word().replace([' ', ','], "-"));
            carry(app, asked, Answer::over(What::Line(LineOf::View, Input::new(name))))
        }
        ActionId::Notes => over(app, Page::Notes),
        ActionId::Help => over(app, Page::Help),
        ActionId::NextReport => switch(app, 1),
        ActionId::PreviousReport => switch(app, -1),
        ActionId::Theme => {
            let themes = themes(app);
            carry(app, asked, Answer::over(themes))
        }
        ActionId::Palette => {
            let palette = palette(app);
            carry(app, asked, Answer::over(palette))
        }
        ActionId::Redraw => vec![Effect::Redraw],
        ActionId::Suspend => vec![Effect::Suspend],
        ActionId::Quit => quit(app),
        // Actions of other screens.
        _ => Vec::new(),
    }
}

/// Measures the selected kernel with the built-in tracer: its next launches if the program that is being traced
/// launches it, else this very launch in a new run.
fn measure(app: &mut App, asked: u64) -> Vec<Effect> {
    let (at, selection) = (app.report_of(asked), app.selection(asked));
    let profile = app.session.reports.get(at).and_then(|r| r.profile.as_deref());
    if profile.is_some_and(Profile::amd) {
        let run = app.session.key(ActionId::RunNow);
        return say(app, format!("the built-in tracer is for NVIDIA GPUs; {run} profiles the launch with rocprofv3"), true);
    }
    let launched = |l: u32| profile.filter(|p| (l as usize) < p.launches.len()).map(|p| p.launches.kernel(l as usize));
    let of_group = || selection.group.as_ref().and_then(|(grouping, row)| grouping.rows.get(*row)?.kernel);
    let kernel = selection.launch.and_then(launched).or_else(of_group).and_then(|k| profile?.kernels.get(k.0 as usize));
    let traced = app.running.watched.as_ref().filter(|w| w.live()).and_then(|w| w.traced.live.as_deref());
    let same = |k: &&KernelNow| kernel.is_some_and(|mine| *k.name == *mine.mangled() || *k.name == *mine.demangled());
    match traced.and_then(|live| live.kernels.iter().find(same)) {
        Some(kernel) => vec![Effect::Measure(kernel.name.to_string())],
        None => go(app, asked, Go::Rerun { run: true, in_place: true }),
    }
}

/// Clears the time filter of the report; without one, explains how to set it on the timeline.
fn widen(app: &mut App, asked: u64) -> Vec<Effect> {
    if app.session.reports.get(app.report_of(asked)).is_some_and(|r| r.window.is_some()) {
        return go(app, asked, Go::Window(None));
    }
    let (timeline, mark, narrow) =
        (app.session.key(ActionId::Timeline), app.session.key(ActionId::SetMark), app.session.key(ActionId::Narrow));
    say(
        app,
        format!("the whole run is shown; to narrow all screens, mark a window in the timeline ({timeline}) with {mark}, then {narrow}"),
        false,
    )
}

/// Switches all screens of the report to the next form of kernel names.
fn names(app: &mut App) -> Vec<Effect> {
    let at = app.session.active;
    let Some(report) = app.session.reports.get_mut(at) else { return Vec::new() };
    report.groups.form = report.groups.form.next();
    let word = report.groups.form.word();
    // Only kernels have names in several forms.
    if let Some(profile) = report.profile.clone().filter(|_| report.groups.by.is_kernel()) {
        report.groups.label(&profile);
    }
    let effects = tell(app, at, News::Names);
    say(app, format!("{word} names"), false);
    effects
}

/// Switches to the next or previous report and selects the same kernel there, for comparison.
fn switch(app: &mut App, by: isize) -> Vec<Effect> {
    let n = app.session.reports.len();
    if n < 2 {
        return say(app, "only one report is open; name several on the command line", false);
    }
    // Screens that belong to no report would hide the switch.
    app.close_common();
    let at = app.session.active;
    let name = app.kernels(at).and_then(|k| k.selected_name()).map(str::to_owned);
    let next = (at + n).saturating_add_signed(by) % n;
    app.session.active = next;
    let Some(kernels) = app.kernels_mut(next) else { return Vec::new() };
    if !name.is_some_and(|name| kernels.select(&name)) {
        return Vec::new();
    }
    let row = kernels.row();
    app.session.reports.get_mut(next).map(|r| r.want_detail(next, row)).unwrap_or_default()
}

/// Width of the key column in the list of actions.
const KEYS: usize = 9;

/// All actions available on this screen: most used first, then the screen's own in the order of its key bar. Movement
/// comes last, because its keys are well known.
fn palette(app: &App) -> Pick {
    let here = app.here();
    let mut all: Vec<&Action> = ACTIONS.iter().filter(|a| a.on.works(here) && a.id != ActionId::Palette).collect();
    let moves = |id| {
        use ActionId::{Down, First, Last, PageDown, PageUp, Up};
        matches!(id, Up | Down | PageUp | PageDown | First | Last)
    };
    let used = |id| app.session.used.get(&id).copied().unwrap_or(0);
    all.sort_by_key(|a| (moves(a.id), Reverse(used(a.id)), a.on == Where::Everywhere, a.footer.map_or(u8::MAX, |f| f.0)));
    let items = all.into_iter().map(|a| {
        let keys = app.session.settings.keymap.keys(a.id).iter().take(2).map(crate::config::keys::Key::label).collect::<Vec<_>>().join(" ");
        let hint = format!("{keys:<KEYS$}{}", a.help);
        Item::new(a.name, hint, None, Choice::Action(a.id))
    });
    Pick::by_typing("actions", items.collect())
}

/// Themes, previewed as the selection moves.
fn themes(app: &App) -> Pick {
    let settings = &app.session.settings;
    let current = Choice::Theme(settings.theme.clone());
    let items = settings.themes.iter().map(|t| Item::new(t, "", None, Choice::Theme(t.clone()))).collect();
    let mut pick = Pick::by_letter("theme", items, Some(&current));
    pick.before = Some(current);
    pick
}
