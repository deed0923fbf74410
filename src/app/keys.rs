//! Keys, pasted text and the mouse, for every screen alike.

use super::act::{act, ask_top, scroll};
use super::actions::{ActionId, Where};
use super::answering;
use super::msg::{Effect, Mouse, Pointer};
use super::open::{quit, quit_now};
use super::over::finder::insert;
use super::over::{Choice, Over, RunChoice, Typed, What};
use super::state::{App, SMALLEST};
use crate::config::keys::Key;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

pub fn on_key(app: &mut App, event: KeyEvent) -> Vec<Effect> {
    if event.kind == KeyEventKind::Release {
        return Vec::new();
    }
    app.status = None;
    // Who presses a key goes elsewhere.
    app.session.address = None;
    let key = Key::of(&event);
    if event.code == KeyCode::Char('c') && event.modifiers.contains(KeyModifiers::CONTROL) {
        // Pressed once more while it is asked, it is meant.
        return if asked_before_quit(app) { quit_now(app) } else { quit(app) };
    }
    let keymap = &app.session.settings.keymap;
    // Keys that nobody sees the effect of have none, but for leaving.
    if app.session.size.0 < SMALLEST.0 || app.session.size.1 < SMALLEST.1 {
        let leaves = keymap.action(key, Where::Kernels) == Some(ActionId::Quit);
        return if leaves && !app.running.held() { quit(app) } else { Vec::new() };
    }
    if app.over.is_some() {
        return answering::key(app, event, key);
    }
    if takes_text(app) {
        return typed(app, event);
    }
    match app.session.settings.keymap.action(key, app.here()) {
        // Other keys that lead back leave a run alone.
        Some(ActionId::Back) if event.code == KeyCode::Esc && app.session.reading.is_none() => ask_top(app, |screen, cx| screen.escape(cx)),
        Some(id) => act(app, id),
        // As in vi and less, where no screen has another use for it.
        None if event.code == KeyCode::Char('g') && event.modifiers.is_empty() => act(app, ActionId::First),
        None => Vec::new(),
    }
}

/// Whether it is asked what becomes of the run.
fn asked_before_quit(app: &App) -> bool {
    let quits = Choice::Run(RunChoice::StopAndQuit);
    matches!(&app.over, Some(Over { what: What::Pick(list), .. }) if list.items.iter().any(|i| i.choice == quits))
}

/// Whether typed letters go into the screen's filter.
fn takes_text(app: &mut App) -> bool {
    let Some(asked) = app.top().map(|e| e.id) else { return false };
    app.ask(asked, |screen, _| screen.finder().is_some_and(|f| f.typing)).unwrap_or(false)
}

/// A key while a filter is typed.
fn typed(app: &mut App, event: KeyEvent) -> Vec<Effect> {
    let page = app.session.page();
    ask_top(app, |screen, cx| match screen.finder().map_or(Typed::Nothing, |f| f.key(event)) {
        Typed::Changed => screen.found(true, cx),
        Typed::Cleared => screen.found(false, cx),
        Typed::Rows(by) => screen.scroll(by, cx),
        Typed::Pages(by) => screen.scroll(by.saturating_mul(page), cx),
        Typed::Nothing => super::screen::Answer::none(),
    })
}

/// Puts a text where letters go, and acts on it once.
pub fn paste(app: &mut App, text: &str) -> Vec<Effect> {
    if app.over.is_some() {
        answering::paste(app, text);
        return Vec::new();
    }
    if !takes_text(app) {
        return Vec::new();
    }
    ask_top(app, |screen, cx| {
        if let Some(finder) = screen.finder() {
            insert(&mut finder.input, text, |_| true);
        }
        screen.found(true, cx)
    })
}

/// Changes the state by what the mouse did.
pub fn on_mouse(app: &mut App, mouse: Mouse) -> Vec<Effect> {
    match (mouse, app.over.is_some()) {
        (Mouse::Item(i), true) if app.over.as_ref().is_some_and(|o| matches!(o.what, What::Pick(_))) => answering::press(app, i),
        (Mouse::Wheel(by), false) => scroll(app, by),
        (Mouse::Point(pointer), false) => ask_top(app, |screen, cx| screen.point(pointer, cx)),
        (Mouse::Item(_), _) | (Mouse::Elsewhere | Mouse::Spot(..), false) | (Mouse::Point(Pointer::Drag(..)), true) => Vec::new(),
        (Mouse::Wheel(by) | Mouse::Point(Pointer::Wheel(_, by)), true) => {
            answering::wheel(app, by);
            Vec::new()
        }
        // A press outside closes what lies on top.
        (_, true) => on_key(app, KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)),
        (Mouse::Action(id), false) => act(app, id),
        (Mouse::Row(i), false) => ask_top(app, |screen, cx| screen.press(i, cx)),
        (Mouse::Head(i), false) => ask_top(app, |screen, cx| screen.head(i, cx)),
    }
}
