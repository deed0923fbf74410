//! What each message changes.

use super::actions::ActionId;
use super::choose;
use super::launches::LaunchSort;
use super::{App, DetailsRoom, Effect, Msg, Overlay, ResultView, Screen, Status, typing};
use crate::config::keys::Key;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

/// Changes the state by one message.
pub fn update(app: &mut App, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(key) => on_key(app, key),
        Msg::Paste(text) => typing::paste(app, &text),
        Msg::Trouble(text) => {
            app.status = Some(Status { text, error: true });
            Vec::new()
        }
        Msg::Mouse(mouse) => super::mouse::on_mouse(app, mouse),
        Msg::Resize(w, h) => {
            app.size = (w, h);
            vec![Effect::Redraw]
        }
        Msg::Progress(i, progress) => app.reports.get_mut(i).map(|r| r.progress(i, progress)).unwrap_or_default(),
        Msg::Loaded(i, outcome) => {
            let mut effects = app.reports.get_mut(i).map(|r| r.loaded(i, outcome)).unwrap_or_default();
            effects.extend(joins(app, i));
            effects.extend(super::run::arrived(app));
            effects.extend(super::diff::want(app));
            effects
        }
        Msg::Preflight(found) => super::run::preflight(app, &found),
        Msg::Started(outcome) => super::run::started(app, outcome),
        Msg::Run(news) => super::run::news(app, &news),
        Msg::Step(run, news) => super::steps::news(app, run, &news),
        Msg::Library(outcome) => super::library::take(app, outcome),
        Msg::Details { report, from, result, outcome } => {
            let pins = app.pins.clone();
            if let Some(screen) = waiting(app, report, from, result) {
                screen.take_details(outcome, &pins);
            }
            Vec::new()
        }
        Msg::Code { report, from, result, outcome } => {
            if let Some(screen) = waiting(app, report, from, result) {
                super::result_views::take_code(screen, outcome);
            }
            Vec::new()
        }
        Msg::Done { report, generation, done } => {
            if let super::Done::Diff(pair, diff) = done {
                super::diff::take(app, pair, diff);
                return Vec::new();
            }
            let mut effects = app.reports.get_mut(report).map(|r| r.done(report, generation, done)).unwrap_or_default();
            effects.extend(super::run::arrived(app));
            let ready = |s: &super::RerunScreen| s.run_when_ready && !s.pending();
            if let Some(screen) = app.reports.get_mut(report).and_then(|r| r.rerun.as_mut()).filter(|s| ready(s)) {
                screen.run_when_ready = false;
                // Who has gone elsewhere meanwhile is not surprised by a run.
                if report == app.active {
                    effects.extend(super::run::run_here(app));
                }
            }
            effects
        }
        Msg::Copied(outcome) => {
            let (text, error) = match outcome {
                Ok(text) => (text, false),
                Err(text) => (text, true),
            };
            app.status = Some(Status { text, error });
            Vec::new()
        }
        Msg::Verified { report, selects, found } => {
            let verdict = found.map(|f| crate::rerun::verify(&selects, &f));
            let (text, good) = match &verdict {
                Ok(v) => (v.sentence(), matches!(v, crate::rerun::Verdict::Verified(_))),
                Err(text) => (text.clone(), false),
            };
            if let Some(screen) = app.reports.get_mut(report).and_then(|r| r.rerun.as_mut())
                && verdict.is_ok()
                && screen.rerun().is_some_and(|r| r.selects == selects)
            {
                screen.verdict = Some((text.clone(), good));
            }
            app.status = Some(Status { text, error: !good });
            Vec::new()
        }
        Msg::Terminate => quit_now(app),
    }
}

/// The screen that asked for something about a result, if it is still about that.
fn waiting(app: &mut App, report: usize, from: usize, result: usize) -> Option<&mut super::ResultScreen> {
    app.reports.get_mut(report)?.result.as_mut().filter(|s| s.report == from && s.result == result)
}

/// A report was read: which launches are the results of, here or in the others?
fn joins(app: &App, new: usize) -> Vec<Effect> {
    let metrics = |i: usize| app.reports.get(i).and_then(|r| r.profile.as_ref()).and_then(|p| p.metrics.as_ref());
    let timeline = |i: usize| app.reports.get(i).filter(|r| r.profile.as_ref().is_some_and(|p| p.metrics.is_none() && p.complete));
    let mut out = Vec::new();
    for other in (0..app.reports.len()).filter(|&o| o != new) {
        if let (Some(t), Some(m)) = (timeline(new), metrics(other)) {
            out.extend(t.want_join(new, other, m));
        }
        if let (Some(t), Some(m)) = (timeline(other), metrics(new)) {
            out.extend(t.want_join(other, new, m));
        }
    }
    out
}

/// Ends the program; a run that would end with it is asked about first.
fn quit(app: &mut App) -> Vec<Effect> {
    if super::run::held(app) { super::run_ask::ask_before_quit(app) } else { quit_now(app) }
}

pub(super) fn quit_now(app: &App) -> Vec<Effect> {
    let mut effects: Vec<Effect> = (0..app.reports.len()).filter(|&i| app.reports[i].reading()).map(Effect::Cancel).collect();
    effects.push(Effect::Quit);
    effects
}

pub(super) fn on_key(app: &mut App, event: KeyEvent) -> Vec<Effect> {
    if event.kind == KeyEventKind::Release {
        return Vec::new();
    }
    app.status = None;
    let key = Key::of(&event);
    let ctrl_c = event.code == KeyCode::Char('c') && event.modifiers.contains(KeyModifiers::CONTROL);
    if ctrl_c {
        // Pressed once more while it is asked, it is meant.
        return if super::run_ask::asked_before_quit(app) { quit_now(app) } else { quit(app) };
    }
    // Keys that nobody sees the effect of have none, but for leaving.
    if app.size.0 < super::SMALLEST.0 || app.size.1 < super::SMALLEST.1 {
        let leaves = app.settings.keymap.action(key, super::Where::Kernels) == Some(ActionId::Quit);
        return if leaves && !super::run::held(app) { quit(app) } else { Vec::new() };
    }
    if app.overlay.is_some() {
        return typing::overlay_key(app, event, key);
    }
    if typing::takes_text(app) {
        return typing::filter_key(app, event);
    }
    let here = app.here();
    match app.settings.keymap.action(key, here) {
        // Other keys that lead back leave the run alone.
        Some(ActionId::Back) if here == super::Where::Run && event.code == KeyCode::Esc => super::run::stop(app),
        Some(id) => act(app, id),
        None => Vec::new(),
    }
}

pub(super) fn page(app: &App) -> isize {
    isize::try_from(app.size.1.saturating_sub(10).max(4)).unwrap_or(10)
}

pub(super) fn move_by(app: &mut App, by: isize) -> Vec<Effect> {
    let index = app.active;
    let shift = |at: usize, len: usize| at.saturating_add_signed(by).min(len.saturating_sub(1));
    match app.screen() {
        Screen::Run => {
            if let Some(screen) = &mut app.run {
                super::run::scroll(screen, by);
            }
            return Vec::new();
        }
        Screen::Library => {
            if let Some(screen) = &mut app.library {
                screen.selected = shift(screen.selected, screen.shown.len());
            }
            return Vec::new();
        }
        Screen::Diff => {
            if let Some(screen) = &mut app.diff {
                screen.selected = shift(screen.selected, screen.diff.as_ref().map_or(0, |d| d.rows.len()));
            }
            return Vec::new();
        }
        _ => {}
    }
    let Some(report) = app.reports.get_mut(index) else {
        return Vec::new();
    };
    if let Some(screen) = &mut report.rerun {
        screen.selected = screen.selected.saturating_add_signed(by).min(screen.len().saturating_sub(1));
        return Vec::new();
    }
    if let Some(screen) = &mut report.result {
        screen.move_by(by);
        return Vec::new();
    }
    if let Some(screen) = &mut report.launches {
        screen.selected = screen.selected.saturating_add_signed(by).min(screen.len().saturating_sub(1));
        return Vec::new();
    }
    let kernels = &mut report.kernels;
    kernels.selected = kernels.selected.saturating_add_signed(by).min(kernels.shown.len().saturating_sub(1));
    report.want_detail(index)
}

fn switch(app: &mut App, by: isize) -> Vec<Effect> {
    let n = app.reports.len();
    if n < 2 {
        app.status =
            Some(Status { text: "there is one report in this session; name several on the command line".to_owned(), error: false });
        return Vec::new();
    }
    let name = app.report().and_then(|r| r.kernels.selected_name());
    app.active = (app.active + n).saturating_add_signed(by) % n;
    let index = app.active;
    let (Some(report), Some(name)) = (app.reports.get_mut(index), name) else { return Vec::new() };
    // The same kernel in the other report: that is what one wants to compare.
    if report.kernels.select(&name) { report.want_detail(index) } else { Vec::new() }
}

/// Does an action.
pub fn act(app: &mut App, id: ActionId) -> Vec<Effect> {
    let index = app.active;
    let pick = |app: &mut App, pick| {
        app.overlay = Some(Overlay::Pick(pick));
        Vec::new()
    };
    match id {
        ActionId::Up => move_by(app, -1),
        ActionId::Down => move_by(app, 1),
        ActionId::PageUp => move_by(app, -page(app)),
        ActionId::PageDown => move_by(app, page(app)),
        ActionId::First => move_by(app, isize::MIN / 2),
        ActionId::Last => move_by(app, isize::MAX / 2),
        ActionId::Open if app.screen() == Screen::Run => Vec::new(),
        ActionId::Open if app.screen() == Screen::Library => super::library::enter(app),
        ActionId::Open if app.screen() == Screen::Diff => super::diff::enter(app),
        ActionId::RunHere => super::run::run_here(app),
        ActionId::RunNow => {
            let effects = super::rerun::open(app);
            if let Some(screen) = app.reports.get_mut(index).and_then(|r| r.rerun.as_mut()) {
                screen.run_when_ready = true;
            }
            effects
        }
        ActionId::Watch => super::run::watch(app),
        ActionId::Detach => super::run::detach(app),
        ActionId::Step => super::steps::go(app),
        ActionId::SkipStep => super::steps::skip(app),
        ActionId::Library => super::library::open(app),
        ActionId::FindRun => {
            if let Some(screen) = &mut app.library {
                screen.typing = true;
            }
            Vec::new()
        }
        ActionId::RunLog => super::library::log(app),
        ActionId::RunAgain => super::library::again(app),
        ActionId::RunCompare => super::library::compare(app),
        ActionId::RunFacts => super::library::facts(app),
        ActionId::RunOrigin => super::library::origin(app),
        ActionId::RunTags => super::library::ask_line(app, super::LineOf::Tags),
        ActionId::RunNote => super::library::ask_line(app, super::LineOf::Note),
        ActionId::RunDelete => super::library::ask_delete(app),
        ActionId::Diff => super::diff::open(app),
        ActionId::Swap => super::diff::swap(app),
        ActionId::Open if app.screen() == Screen::Rerun => super::rerun::edit(app),
        ActionId::Open if matches!(app.screen(), Screen::Result(_)) => super::result_views::enter(app),
        ActionId::Open if app.screen() == Screen::Launches && super::result::available(app) => super::result::open(app),
        ActionId::Metrics => super::result::open(app),
        ActionId::Pair => super::result_views::to_launch(app),
        ActionId::Roofline => super::result::turn(app, ResultView::Roofline),
        ActionId::Hints => super::hints::open(app),
        ActionId::Checklist => {
            app.overlay = Some(Overlay::Checklist(0, super::hints::checklist(app)));
            Vec::new()
        }
        ActionId::Compare => super::result::turn(app, ResultView::Compare),
        ActionId::CompareWith => super::result_views::ask_other(app),
        ActionId::Source => super::result::turn(app, ResultView::Source),
        ActionId::NextResult => super::result::step(app, 1),
        ActionId::PreviousResult => super::result::step(app, -1),
        ActionId::Pin => super::result::pin(app),
        ActionId::Instructions => super::result_views::source_mode(app, true),
        ActionId::CodeOrder => super::result_views::source_mode(app, false),
        ActionId::FindMetric | ActionId::NextSection | ActionId::PreviousSection => {
            if let Some(screen) = app.reports.get_mut(index).and_then(|r| r.result.as_mut()) {
                match id {
                    ActionId::FindMetric => screen.typing = true,
                    other => screen.section(other == ActionId::NextSection),
                }
            }
            Vec::new()
        }
        ActionId::Open => open(app),
        ActionId::Back => back(app),
        ActionId::Jump => pick(app, choose::jumps()),
        ActionId::Filter => {
            if let Some(report) = app.reports.get_mut(index) {
                report.kernels.typing = true;
            }
            Vec::new()
        }
        ActionId::Facet => {
            app.overlay = choose::facets(app).map(Overlay::Pick);
            Vec::new()
        }
        ActionId::Group => {
            let current = app.report().map(|r| r.kernels.by);
            current.map(|by| pick(app, choose::groupings(by))).unwrap_or_default()
        }
        ActionId::Sort => {
            let next = app.report().map(|r| match &r.launches {
                Some(screen) => choose::launch_orders(screen.sort),
                None => choose::orders(r.kernels.sort),
            });
            next.map(|p| pick(app, p)).unwrap_or_default()
        }
        ActionId::Reverse => {
            if app.screen() == Screen::Launches {
                return choose::sort_launches(app, LaunchSort::Launch, true);
            }
            let Some(report) = app.reports.get_mut(index) else {
                return Vec::new();
            };
            let sort = report.kernels.sort;
            report.kernels.sort_by(sort);
            report.want_detail(index)
        }
        ActionId::Form => {
            if let Some(report) = app.reports.get_mut(index) {
                report.kernels.form = report.kernels.form.next();
                // Only kernels have names in several forms, and only a filter looks at them.
                if let Some(profile) = report.profile.clone().filter(|_| report.kernels.by.is_kernel()) {
                    report.kernels.label(&profile);
                    if !report.kernels.filter.value().is_empty() {
                        report.kernels.arrange();
                    }
                }
                app.status = Some(Status { text: format!("{} names", report.kernels.form.word()), error: false });
            }
            Vec::new()
        }
        ActionId::FullName => {
            app.overlay = Some(Overlay::Names(0));
            Vec::new()
        }
        ActionId::Details => {
            match app.details_room() {
                DetailsRoom::Over => app.overlay = Some(Overlay::Details(0)),
                _ => app.details = !app.details,
            }
            Vec::new()
        }
        ActionId::Mark => {
            let Some(report) = app.reports.get_mut(index) else {
                return Vec::new();
            };
            report.kernels.toggle_mark();
            report.want_detail(index)
        }
        ActionId::Unmark => {
            if let Some(report) = app.reports.get_mut(index) {
                report.kernels.unmark();
            }
            Vec::new()
        }
        ActionId::Copy if matches!(app.screen(), Screen::Run | Screen::Library | Screen::Diff) => {
            choose::choose(app, super::pick::Choice::Copy(super::pick::CopyWhat::Command))
        }
        ActionId::Copy if app.report().is_some_and(|r| r.rerun.is_none() && r.result.is_some()) => {
            let view = app.report().and_then(|r| r.result.as_ref()).map_or(ResultView::Metrics, |s| s.view);
            pick(app, super::result_views::copies(view))
        }
        ActionId::Copy if app.screen() == Screen::Rerun => pick(app, choose::command_copies()),
        ActionId::Copy => pick(app, choose::copies()),
        ActionId::Rerun => super::rerun::open(app),
        ActionId::Save => super::rerun::ask_save(app),
        ActionId::Verify => super::rerun::ask_verify(app),
        ActionId::Undo => super::rerun::undo(app),
        ActionId::NextCommand => super::rerun::next_command(app),
        ActionId::Notes => {
            app.overlay = Some(Overlay::Notes(0));
            Vec::new()
        }
        ActionId::NextReport => switch(app, 1),
        ActionId::PreviousReport => switch(app, -1),
        ActionId::Theme => {
            let themes = choose::themes(app);
            pick(app, themes)
        }
        ActionId::Palette => {
            let palette = choose::palette(app);
            pick(app, palette)
        }
        ActionId::Help => {
            app.overlay = Some(Overlay::Help(0));
            Vec::new()
        }
        ActionId::Redraw => vec![Effect::Redraw],
        ActionId::Suspend => vec![Effect::Suspend],
        ActionId::Quit => quit(app),
    }
}

pub(super) fn open(app: &mut App) -> Vec<Effect> {
    let index = app.active;
    let Some(report) = app.reports.get_mut(index) else {
        return Vec::new();
    };
    if report.launches.is_some() {
        // A launch leads to its metrics, or to how to get them.
        return if report.result.is_none() { super::result::open(app) } else { Vec::new() };
    }
    let (Some(grouping), Some(row), Some(profile)) = (report.kernels.grouping.clone(), report.kernels.row(), report.profile.clone()) else {
        return Vec::new();
    };
    // A kernel with one result has no list worth looking at.
    if profile.metrics.is_some() && grouping.rows.get(row).is_some_and(|g| g.stats.count == 1) {
        return super::result::open(app);
    }
    if profile.launches.is_empty() {
        app.status = Some(Status { text: "this report holds sums per kernel, no single launches".to_owned(), error: true });
        return Vec::new();
    }
    if report.reading() {
        app.status = Some(Status { text: "the launches are still being read".to_owned(), error: false });
        return Vec::new();
    }
    report.open_launches(index, grouping, row)
}

/// One step out: the launches screen's conditions, the screen, the filter, a running read. Nothing is left to leave: the user is told how to quit.
fn back(app: &mut App) -> Vec<Effect> {
    let index = app.active;
    let quit = app.settings.keymap.label(ActionId::Quit);
    match app.screen() {
        Screen::Run => return super::run::leave(app),
        Screen::Library => return super::library::leave(app, &quit),
        Screen::Diff => {
            app.diff = None;
            return Vec::new();
        }
        _ => {}
    }
    let Some(report) = app.reports.get_mut(index) else {
        return Vec::new();
    };
    if report.rerun.take().is_some() {
        return Vec::new();
    }
    if let Some(screen) = &mut report.result {
        if screen.view != ResultView::Metrics || screen.filter.value().is_empty() {
            if screen.view == screen.opened {
                report.result = None;
            } else {
                screen.view = screen.opened;
            }
        } else {
            screen.filter.reset();
            screen.arrange(&app.pins);
        }
        return Vec::new();
    }
    if let Some(screen) = &mut report.launches {
        if screen.facets.any() {
            screen.facets = super::launches::Facets::default();
            return report.want_launches(index);
        }
        report.launches = None;
        return Vec::new();
    }
    if !report.kernels.filter.value().is_empty() {
        report.kernels.filter.reset();
        report.kernels.arrange();
        return report.want_detail(index);
    }
    if report.reading() {
        return vec![Effect::Cancel(index)];
    }
    app.status = Some(Status { text: format!("{quit} quits"), error: false });
    Vec::new()
}
