//! What each message changes.

use super::actions::{ActionId, Where};
use super::choose;
use super::launches::{JumpTo, LaunchSort};
use super::pick::Choice;
use super::{App, DetailsRoom, Effect, Msg, Overlay, Screen, Status};
use crate::config::keys::Key;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyEventKind, KeyModifiers};
use tui_input::backend::crossterm::EventHandler;
use tui_input::{Input, InputRequest};

/// Changes the state by one message.
pub fn update(app: &mut App, msg: Msg) -> Vec<Effect> {
    match msg {
        Msg::Key(key) => on_key(app, key),
        Msg::Paste(text) => paste(app, &text),
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
        Msg::Loaded(i, outcome) => app.reports.get_mut(i).map(|r| r.loaded(i, outcome)).unwrap_or_default(),
        Msg::Done { report, generation, done } => app.reports.get_mut(report).map(|r| r.done(report, generation, done)).unwrap_or_default(),
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
        Msg::Terminate => quit(app),
    }
}

fn quit(app: &App) -> Vec<Effect> {
    let mut effects: Vec<Effect> = (0..app.reports.len()).filter(|&i| app.reports[i].reading()).map(Effect::Cancel).collect();
    effects.push(Effect::Quit);
    effects
}

/// Whether typed letters go into a text.
fn takes_text(app: &App) -> bool {
    match &app.overlay {
        Some(Overlay::Pick(pick)) => pick.typed.is_some(),
        Some(Overlay::Number(_) | Overlay::Line(..)) => true,
        Some(_) => false,
        None => app.report().is_some_and(|r| r.kernels.typing && r.launches.is_none() && r.rerun.is_none()),
    }
}

/// Characters of a pasted text that are taken.
const MOST_PASTED: usize = 2_000;

/// Puts a text where letters go, and acts on it once.
fn paste(app: &mut App, text: &str) -> Vec<Effect> {
    let typing = takes_text(app);
    let index = app.active;
    let insert = |input: &mut Input, ok: fn(char) -> bool| {
        for c in text.chars().filter(|&c| !c.is_control() && ok(c)).take(MOST_PASTED) {
            input.handle(InputRequest::InsertChar(c));
        }
    };
    match &mut app.overlay {
        Some(Overlay::Pick(pick)) => {
            if let Some(input) = &mut pick.typed {
                insert(input, |_| true);
                pick.narrow();
            }
        }
        Some(Overlay::Number(input)) => insert(input, |c| c.is_ascii_digit()),
        Some(Overlay::Line(_, input)) => insert(input, |_| true),
        Some(_) => {}
        None => {
            if let Some(report) = app.reports.get_mut(index).filter(|_| typing) {
                insert(&mut report.kernels.filter, |_| true);
                report.kernels.arrange();
                report.kernels.selected = 0;
                return report.want_detail(index);
            }
        }
    }
    Vec::new()
}

pub(super) fn on_key(app: &mut App, event: KeyEvent) -> Vec<Effect> {
    if event.kind == KeyEventKind::Release {
        return Vec::new();
    }
    app.status = None;
    let key = Key::of(&event);
    let ctrl_c = event.code == KeyCode::Char('c') && event.modifiers.contains(KeyModifiers::CONTROL);
    if ctrl_c {
        return quit(app);
    }
    if app.overlay.is_some() {
        return overlay_key(app, event, key);
    }
    if takes_text(app) {
        return filter_key(app, event);
    }
    match app.settings.keymap.action(key, app.here()) {
        Some(id) => act(app, id),
        None => Vec::new(),
    }
}

fn filter_key(app: &mut App, event: KeyEvent) -> Vec<Effect> {
    let index = app.active;
    let Some(report) = app.reports.get_mut(index) else {
        return Vec::new();
    };
    let kernels = &mut report.kernels;
    match event.code {
        KeyCode::Enter => kernels.typing = false,
        KeyCode::Esc => {
            kernels.typing = false;
            kernels.filter.reset();
            kernels.arrange();
        }
        KeyCode::Up => return move_by(app, -1),
        KeyCode::Down => return move_by(app, 1),
        KeyCode::PageUp => return move_by(app, -page(app)),
        KeyCode::PageDown => return move_by(app, page(app)),
        _ => {
            let changed = kernels.filter.handle_event(&Event::Key(event)).is_some_and(|c| c.value);
            if changed {
                kernels.arrange();
                kernels.selected = 0;
            }
        }
    }
    report.want_detail(index)
}

fn overlay_key(app: &mut App, event: KeyEvent, key: Key) -> Vec<Effect> {
    let page = page(app);
    let action = app.settings.keymap.action(key, Where::Kernels);
    let Some(overlay) = &mut app.overlay else {
        return Vec::new();
    };
    match overlay {
        Overlay::Help(at) | Overlay::Notes(at) | Overlay::Names(at) | Overlay::Details(at) => {
            let step = match (event.code, action) {
                (KeyCode::Esc | KeyCode::Enter, _)
                | (_, Some(ActionId::Back | ActionId::Quit | ActionId::Help | ActionId::Notes | ActionId::FullName | ActionId::Details)) => {
                    app.overlay = None;
                    return Vec::new();
                }
                (_, Some(ActionId::Up)) => -1,
                (_, Some(ActionId::Down)) => 1,
                (_, Some(ActionId::PageUp)) => -page,
                (_, Some(ActionId::PageDown)) => page,
                (_, Some(ActionId::First)) => isize::MIN / 2,
                (_, Some(ActionId::Last)) => isize::MAX / 2,
                (_, Some(ActionId::Copy)) => {
                    app.overlay = Some(Overlay::Pick(choose::copies()));
                    return Vec::new();
                }
                _ => 0,
            };
            *at = at.saturating_add_signed(step);
            Vec::new()
        }
        Overlay::Number(input) => {
            match event.code {
                KeyCode::Esc => app.overlay = None,
                KeyCode::Enter => {
                    let n = input.value().trim().parse().ok();
                    app.overlay = None;
                    match n {
                        Some(n) => choose::jump(app, JumpTo::Nth(n)),
                        None => app.status = Some(Status { text: "type a number from 0".to_owned(), error: true }),
                    }
                }
                KeyCode::Char(c) if !c.is_ascii_digit() => {}
                _ => {
                    input.handle_event(&Event::Key(event));
                }
            }
            Vec::new()
        }
        Overlay::Line(what, input) => {
            let what = *what;
            match event.code {
                KeyCode::Esc => app.overlay = None,
                KeyCode::Enter => {
                    let text = input.value().to_owned();
                    app.overlay = None;
                    return super::rerun::take_line(app, what, &text);
                }
                _ => {
                    input.handle_event(&Event::Key(event));
                }
            }
            Vec::new()
        }
        Overlay::Pick(_) => pick_key(app, event, page),
    }
}

fn pick_key(app: &mut App, event: KeyEvent, page: isize) -> Vec<Effect> {
    let Some(Overlay::Pick(pick)) = &mut app.overlay else {
        return Vec::new();
    };
    match event.code {
        KeyCode::Esc => {
            let before = pick.before.take();
            app.overlay = None;
            if let Some(Choice::Theme(name)) = before {
                app.settings.theme = name;
            }
            return Vec::new();
        }
        KeyCode::Enter => {
            let chosen = pick.item().map(|i| i.choice.clone());
            return chosen.map(|c| choose::choose(app, c)).unwrap_or_default();
        }
        KeyCode::Up => pick.step(-1),
        KeyCode::Down | KeyCode::Tab => pick.step(1),
        KeyCode::PageUp => pick.step(-page),
        KeyCode::PageDown => pick.step(page),
        KeyCode::Char(c) if pick.typed.is_none() => {
            if let Some(chosen) = pick.by_key(c).map(|i| i.choice.clone()) {
                return choose::choose(app, chosen);
            }
            match c {
                'j' => pick.step(1),
                'k' => pick.step(-1),
                'q' => return pick_key(app, KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE), page),
                _ => {}
            }
        }
        _ => {
            if let Some(input) = &mut pick.typed
                && input.handle_event(&Event::Key(event)).is_some_and(|c| c.value)
            {
                pick.narrow();
            }
        }
    }
    preview_theme(app);
    Vec::new()
}

/// A theme is shown as soon as it is selected; Esc brings back the one before.
pub(super) fn preview_theme(app: &mut App) {
    if let Some(Overlay::Pick(pick)) = &app.overlay
        && let Some(Choice::Theme(name)) = pick.item().map(|i| i.choice.clone())
    {
        app.settings.theme = name;
    }
}

fn page(app: &App) -> isize {
    isize::try_from(app.size.1.saturating_sub(10).max(4)).unwrap_or(10)
}

pub(super) fn move_by(app: &mut App, by: isize) -> Vec<Effect> {
    let index = app.active;
    let Some(report) = app.reports.get_mut(index) else {
        return Vec::new();
    };
    if let Some(screen) = &mut report.rerun {
        screen.selected = screen.selected.saturating_add_signed(by).min(screen.len().saturating_sub(1));
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
        ActionId::Open if app.screen() == Screen::Rerun => super::rerun::edit(app),
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
        return Vec::new();
    }
    let (Some(grouping), Some(row), Some(profile)) = (report.kernels.grouping.clone(), report.kernels.row(), report.profile.clone()) else {
        return Vec::new();
    };
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
    let Some(report) = app.reports.get_mut(index) else {
        return Vec::new();
    };
    if report.rerun.take().is_some() {
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
