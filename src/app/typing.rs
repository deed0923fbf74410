//! Keys and pasted text that go into a line or a list instead of doing an action.

use super::actions::{ActionId, Where};
use super::choose;
use super::launches::JumpTo;
use super::pick::Choice;
use super::{App, Effect, Overlay, Screen, Status};
use crate::config::keys::Key;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use tui_input::backend::crossterm::EventHandler;
use tui_input::{Input, InputRequest};

/// Characters of a pasted text that are taken.
const MOST_PASTED: usize = 2_000;

/// Whether typed letters go into a text.
pub(super) fn takes_text(app: &App) -> bool {
    match &app.overlay {
        Some(Overlay::Pick(pick)) => pick.typed.is_some(),
        Some(Overlay::Number(_) | Overlay::Line(..)) => true,
        Some(_) => false,
        None if app.screen() == Screen::Library => app.library.as_ref().is_some_and(|l| l.typing),
        None if matches!(app.screen(), Screen::Run | Screen::Diff) => false,
        None => app.report().is_some_and(|r| match &r.result {
            Some(screen) => r.rerun.is_none() && screen.typing && screen.view == super::ResultView::Metrics,
            None => r.kernels.typing && r.launches.is_none() && r.rerun.is_none(),
        }),
    }
}

/// Puts a text where letters go, and acts on it once.
pub(super) fn paste(app: &mut App, text: &str) -> Vec<Effect> {
    let typing = takes_text(app);
    let library = app.screen() == Screen::Library;
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
        None if library => {
            if let Some(screen) = app.library.as_mut().filter(|_| typing) {
                insert(&mut screen.filter, |_| true);
                screen.arrange();
            }
        }
        None => {
            let pins = app.pins.clone();
            if let Some(screen) = app.reports.get_mut(index).and_then(|r| r.result.as_mut()).filter(|_| typing) {
                insert(&mut screen.filter, |_| true);
                screen.selected = 0;
                screen.arrange(&pins);
                return Vec::new();
            }
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

pub(super) fn filter_key(app: &mut App, event: KeyEvent) -> Vec<Effect> {
    let index = app.active;
    if app.screen() == Screen::Library {
        return run_key(app, event);
    }
    if app.report().is_some_and(|r| r.result.is_some()) {
        return find_key(app, event);
    }
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
        KeyCode::Up => return super::update::move_by(app, -1),
        KeyCode::Down => return super::update::move_by(app, 1),
        KeyCode::PageUp => return super::update::move_by(app, -super::update::page(app)),
        KeyCode::PageDown => return super::update::move_by(app, super::update::page(app)),
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

/// A key while runs are searched for.
fn run_key(app: &mut App, event: KeyEvent) -> Vec<Effect> {
    let page = super::update::page(app);
    let Some(screen) = &mut app.library else { return Vec::new() };
    match event.code {
        KeyCode::Enter => screen.typing = false,
        KeyCode::Esc => {
            screen.typing = false;
            screen.filter.reset();
            screen.arrange();
        }
        KeyCode::Up => return super::update::move_by(app, -1),
        KeyCode::Down => return super::update::move_by(app, 1),
        KeyCode::PageUp => return super::update::move_by(app, -page),
        KeyCode::PageDown => return super::update::move_by(app, page),
        _ => {
            if screen.filter.handle_event(&Event::Key(event)).is_some_and(|c| c.value) {
                screen.selected = 0;
                screen.arrange();
            }
        }
    }
    Vec::new()
}

/// A key while a metric is searched for.
fn find_key(app: &mut App, event: KeyEvent) -> Vec<Effect> {
    let (index, page, pins) = (app.active, super::update::page(app), app.pins.clone());
    let Some(screen) = app.reports.get_mut(index).and_then(|r| r.result.as_mut()) else {
        return Vec::new();
    };
    match event.code {
        KeyCode::Enter => screen.typing = false,
        KeyCode::Esc => {
            screen.typing = false;
            screen.filter.reset();
            screen.arrange(&pins);
        }
        KeyCode::Up => screen.move_by(-1),
        KeyCode::Down => screen.move_by(1),
        KeyCode::PageUp => screen.move_by(-page),
        KeyCode::PageDown => screen.move_by(page),
        _ => {
            if screen.filter.handle_event(&Event::Key(event)).is_some_and(|c| c.value) {
                screen.arrange(&pins);
                screen.selected = 0;
            }
        }
    }
    Vec::new()
}

pub(super) fn overlay_key(app: &mut App, event: KeyEvent, key: Key) -> Vec<Effect> {
    let page = super::update::page(app);
    let action = app.settings.keymap.action(key, Where::Kernels);
    let Some(overlay) = &mut app.overlay else {
        return Vec::new();
    };
    match overlay {
        Overlay::Help(at)
        | Overlay::Notes(at)
        | Overlay::Names(at)
        | Overlay::Details(at)
        | Overlay::Explain(at)
        | Overlay::Checklist(at, _)
        | Overlay::RunFacts(at, _)
        | Overlay::Advice(at, _) => {
            let step = match (event.code, action) {
                (KeyCode::Esc | KeyCode::Enter, _)
                | (
                    _,
                    Some(
                        ActionId::Back
                        | ActionId::Quit
                        | ActionId::Help
                        | ActionId::Notes
                        | ActionId::FullName
                        | ActionId::Details
                        | ActionId::Checklist
                        | ActionId::Hints
                        | ActionId::RunFacts,
                    ),
                ) => {
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
                    let result = matches!(overlay, Overlay::Explain(_));
                    app.overlay = Some(Overlay::Pick(if result {
                        super::result_views::copies(super::ResultView::Metrics)
                    } else {
                        choose::copies()
                    }));
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
