//! Keyboard, paste and mouse input common to all screens

use super::actions::{ActionId, KeyScope};
use super::dispatch::{ask_top, dispatch_action, scroll_top};
use super::msg::{Effect, Mouse, Pointer};
use super::navigation::{quit_now, request_quit, set_status};
use super::overlay::filter_input::insert;
use super::overlay::{Overlay, OverlayKind, PickAction, RunChoice, Typed};
use super::overlay_input;
use super::state::{App, SMALLEST};
use crate::config::keys::Key;
use crossterm::event::{KeyCode, KeyEvent, KeyEventKind, KeyModifiers};

pub fn on_key(app: &mut App, event: KeyEvent) -> Vec<Effect> {
    if event.kind == KeyEventKind::Release {
        return Vec::new();
    }
    app.status = None;
    // A key press cancels navigation to the location named on the command line.
    app.session.address = None;
    let key = Key::from_event(&event);
    if event.code == KeyCode::Char('c') && event.modifiers.contains(KeyModifiers::CONTROL) {
        // Pressing Ctrl-C again while the quit prompt is open quits.
        return if asked_before_quit(app) { quit_now(app) } else { request_quit(app) };
    }
    let keymap = &app.session.settings.keymap;
    // On a terminal too small to draw on, only quitting works.
    if app.session.size.0 < SMALLEST.0 || app.session.size.1 < SMALLEST.1 {
        let leaves = keymap.find_action(key, KeyScope::Kernels) == Some(ActionId::Quit);
        return if leaves && !app.running.has_attached_run() { request_quit(app) } else { Vec::new() };
    }
    if app.over.is_some() {
        return overlay_input::handle_key(app, event, key);
    }
    if takes_text(app) {
        return handle_filter_key(app, event);
    }
    match app.session.settings.keymap.find_action(key, app.current_scope()) {
        // Esc is handled separately, because other keys bound to `Back` must not stop a run.
        Some(ActionId::Back) if event.code == KeyCode::Esc && app.session.reading.is_none() => ask_top(app, |screen, cx| screen.escape(cx)),
        Some(id) => dispatch_action(app, id),
        // `g` works as in vi and less, unless the screen uses it.
        None if event.code == KeyCode::Char('g') && event.modifiers.is_empty() => dispatch_action(app, ActionId::First),
        None => {
            let text = app.session.settings.keymap.elsewhere(key);
            set_status(app, text, false)
        }
    }
}

/// Returns true while the prompt about quitting during a run is open.
fn asked_before_quit(app: &App) -> bool {
    let quits = PickAction::Run(RunChoice::StopAndQuit);
    matches!(&app.over, Some(Overlay { what: OverlayKind::Pick(list), .. }) if list.items.iter().any(|i| i.choice == quits))
}

/// Returns true if typed letters go into the screen's filter.
fn takes_text(app: &mut App) -> bool {
    let Some(asked) = app.top_entry().map(|e| e.id) else { return false };
    app.with_screen(asked, |screen, _| screen.finder().is_some_and(|f| f.typing)).unwrap_or(false)
}

/// Handles a key while the filter has focus.
fn handle_filter_key(app: &mut App, event: KeyEvent) -> Vec<Effect> {
    let page = app.session.page_rows();
    ask_top(app, |screen, cx| match screen.finder().map_or(Typed::Nothing, |f| f.handle_key(event)) {
        Typed::Changed => screen.found(true, cx),
        Typed::Cleared => screen.found(false, cx),
        Typed::Rows(by) => screen.scroll(by, cx),
        Typed::Pages(by) => screen.scroll(by.saturating_mul(page), cx),
        Typed::Nothing => super::screen::Response::none(),
    })
}

/// Inserts pasted text into the filter and applies the filter once.
pub fn on_paste(app: &mut App, text: &str) -> Vec<Effect> {
    if app.over.is_some() {
        overlay_input::paste_text(app, text);
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

/// Handles a mouse event: an open overlay gets it; otherwise, the top screen or the pressed action does.
pub fn on_mouse(app: &mut App, mouse: Mouse) -> Vec<Effect> {
    match (mouse, app.over.is_some()) {
        (Mouse::Item(i), true) if app.over.as_ref().is_some_and(|o| matches!(o.what, OverlayKind::Pick(_))) => {
            overlay_input::press_item(app, i)
        }
        (Mouse::Wheel(by), false) => scroll_top(app, by),
        (Mouse::Point(pointer), false) => ask_top(app, |screen, cx| screen.point(pointer, cx)),
        (Mouse::Item(_), _) | (Mouse::Elsewhere | Mouse::Spot(..), false) | (Mouse::Point(Pointer::Drag(..)), true) => Vec::new(),
        (Mouse::Wheel(by) | Mouse::Point(Pointer::Wheel(_, by)), true) => {
            overlay_input::scroll_overlay(app, by);
            Vec::new()
        }
        // A press outside closes the overlay.
        (_, true) => on_key(app, KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE)),
        (Mouse::Action(id), false) => dispatch_action(app, id),
        (Mouse::Row(i), false) => ask_top(app, |screen, cx| screen.press(i, cx)),
        (Mouse::Head(sort), false) => ask_top(app, |screen, cx| screen.head(sort, cx)),
    }
}
