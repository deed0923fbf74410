//! Input handling for overlays. An answer goes to the screen that opened the overlay, even if another screen is on top
//! by then.

use super::actions::{ActionId, KeyScope, find_action};
use super::clipboard;
use super::dispatch::dispatch_action;
use super::msg::Effect;
use super::navigation::{self, apply_response, navigate_to, set_status};
use super::overlay::filter_input::insert;
use super::overlay::{LineOf, Overlay, OverlayKind, Page, PickAction};
use super::run_events;
use super::screen::{Navigate, Response};
use super::state::App;
use crate::analysis::launch_list::JumpTo;
use crate::config::keys::Key;
use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers};
use tui_input::backend::crossterm::EventHandler;

/// Status message if the screen that opened the overlay was closed.
const GONE: &str = "the screen that this was about is closed; nothing was changed";

pub fn handle_key(app: &mut App, event: KeyEvent, key: Key) -> Vec<Effect> {
    let page = app.session.page_rows();
    let action = app.session.settings.keymap.find_action(key, KeyScope::Kernels);
    let Some(over) = &mut app.over else { return Vec::new() };
    match &mut over.what {
        OverlayKind::Page(what, at) => {
            let by = match (event.code, action) {
                (KeyCode::Esc | KeyCode::Enter, _) => return close_overlay(app),
                (KeyCode::Char('t'), _) if matches!(what, Page::Help) => {
                    app.over = None;
                    return begin_tour(app);
                }
                (_, Some(ActionId::Up)) => -1,
                (_, Some(ActionId::Down)) => 1,
                (_, Some(ActionId::PageUp)) => -page,
                (_, Some(ActionId::PageDown)) => page,
                (_, Some(ActionId::First)) => isize::MIN / 2,
                (_, Some(ActionId::Last)) => isize::MAX / 2,
                (_, Some(ActionId::Copy)) => {
                    if let Some(command) = what.command(&app.session) {
                        return vec![Effect::Copy(command, "command that confirms this".to_owned())];
                    }
                    // On an explanation, copying opens the screen's own copy menu; on other pages, the menu of names.
                    let screen = over.screen;
                    let explain = matches!(what, Page::Explain);
                    app.over = None;
                    let answer = app.with_screen(screen, |s, cx| if explain { s.act(ActionId::Copy, cx) } else { None });
                    let answer = answer.flatten().unwrap_or_else(|| Response::open_overlay(clipboard::table_menu()));
                    return apply_response(app, screen, answer);
                }
                // Hints on a launch that was not profiled ask for more counters.
                (_, Some(ActionId::Rerun)) if matches!(what, Page::Advice(_)) => {
                    app.over = None;
                    return dispatch_action(app, ActionId::Rerun);
                }
                (_, Some(a)) if is_close_action(a) => return close_overlay(app),
                _ => return set_status(app, format!("{} does nothing on this page; esc closes it", key.label()), false),
            };
            *at = at.saturating_add_signed(by).min(app.session.most_scroll);
            Vec::new()
        }
        OverlayKind::Number(input) => {
            match event.code {
                KeyCode::Esc => return close_overlay(app),
                KeyCode::Enter => {
                    let n = input.value().trim().parse().ok();
                    return match n {
                        Some(n) => apply_choice(app, PickAction::Jump(JumpTo::Nth(n))),
                        None => {
                            app.over = None;
                            set_status(app, "type a number from 0", true)
                        }
                    };
                }
                KeyCode::Char(c) if !c.is_ascii_digit() => {}
                _ => {
                    input.handle_event(&Event::Key(event));
                }
            }
            Vec::new()
        }
        OverlayKind::Line(what, input) => {
            let what = *what;
            match event.code {
                KeyCode::Esc => return close_overlay(app),
                KeyCode::Enter => {
                    let (text, screen) = (input.value().to_owned(), over.screen);
                    app.over = None;
                    if what == LineOf::View {
                        return vec![Effect::SaveView(text.into())];
                    }
                    return match app.with_screen(screen, |s, cx| s.line(what, &text, cx)) {
                        Some(answer) => apply_response(app, screen, answer),
                        None => set_status(app, GONE, true),
                    };
                }
                _ => {
                    input.handle_event(&Event::Key(event));
                }
            }
            Vec::new()
        }
        OverlayKind::Pick(_) => handle_pick_key(app, event, page),
    }
}

/// Starts or ends the tour.
pub fn begin_tour(app: &mut App) -> Vec<Effect> {
    if app.session.tour.is_none() && !app.session.report().is_some_and(super::session::Report::is_timeline) {
        return set_status(app, "the tour needs a timeline: warpscope demo --tour", false);
    }
    match super::tour::toggle(app) {
        Some(first) => dispatch_action(app, first),
        None if app.session.tour.is_none() => set_status(app, "the tour is over", false),
        None => Vec::new(),
    }
}

/// Returns true for actions that close a page, including the actions that open pages.
fn is_close_action(action: ActionId) -> bool {
    matches!(
        action,
        ActionId::Back
            | ActionId::Quit
            | ActionId::Help
            | ActionId::Notes
            | ActionId::FullName
            | ActionId::Details
            | ActionId::Checklist
            | ActionId::Hints
            | ActionId::RunFacts
    )
}

fn close_overlay(app: &mut App) -> Vec<Effect> {
    app.over = None;
    run_events::check_awaited(app)
}

fn handle_pick_key(app: &mut App, event: KeyEvent, page: isize) -> Vec<Effect> {
    let Some(Overlay { what: OverlayKind::Pick(list), .. }) = &mut app.over else { return Vec::new() };
    match event.code {
        KeyCode::Esc => {
            if let Some(PickAction::Theme(name)) = list.before.take() {
                app.session.settings.theme = name;
            }
            return close_overlay(app);
        }
        KeyCode::Enter => {
            let chosen = list.chosen();
            return chosen.map(|c| apply_choice(app, c)).unwrap_or_default();
        }
        KeyCode::Up => list.move_selection(-1),
        KeyCode::Down | KeyCode::Tab => list.move_selection(1),
        KeyCode::PageUp => list.move_selection(-page),
        KeyCode::PageDown => list.move_selection(page),
        KeyCode::Char(c) if list.typed.is_none() => {
            if let Some(chosen) = list.by_key(c).map(|i| i.choice.clone()) {
                return apply_choice(app, chosen);
            }
            match c {
                'j' => list.move_selection(1),
                'k' => list.move_selection(-1),
                'q' => return handle_pick_key(app, KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE), page),
                _ => {}
            }
        }
        _ => {
            if let Some(input) = &mut list.typed
                && input.handle_event(&Event::Key(event)).is_some_and(|c| c.value)
            {
                list.apply_filter();
            }
        }
    }
    preview_theme(app);
    Vec::new()
}

/// Applies the selected theme at once; Esc restores the previous one.
fn preview_theme(app: &mut App) {
    if let Some(Overlay { what: OverlayKind::Pick(list), .. }) = &app.over
        && let Some(PickAction::Theme(name)) = list.selected_item().map(|i| i.choice.clone())
    {
        app.session.settings.theme = name;
    }
}

/// Scrolls the overlay with the mouse wheel.
pub fn scroll_overlay(app: &mut App, by: isize) {
    match app.over.as_mut().map(|o| &mut o.what) {
        Some(OverlayKind::Pick(list)) => {
            list.move_selection(by);
            preview_theme(app);
        }
        Some(OverlayKind::Page(_, at)) => *at = at.saturating_add_signed(by).min(app.session.most_scroll),
        _ => {}
    }
}

/// Selects the pressed item of the list and applies its choice.
pub fn press_item(app: &mut App, item: usize) -> Vec<Effect> {
    let Some(Overlay { what: OverlayKind::Pick(list), .. }) = &mut app.over else { return Vec::new() };
    list.selected = item;
    let chosen = list.selected_item().map(|i| i.choice.clone());
    chosen.map(|c| apply_choice(app, c)).unwrap_or_default()
}

/// Inserts pasted text into the overlay's input line.
pub fn paste_text(app: &mut App, text: &str) {
    match app.over.as_mut().map(|o| &mut o.what) {
        Some(OverlayKind::Pick(list)) => {
            if let Some(input) = &mut list.typed {
                insert(input, text, |_| true);
                list.apply_filter();
            }
        }
        Some(OverlayKind::Number(input)) => insert(input, text, |c| c.is_ascii_digit()),
        Some(OverlayKind::Line(_, input)) => insert(input, text, |_| true),
        Some(OverlayKind::Page(..)) | None => {}
    }
}

/// Applies the choice to the screen that opened the list.
fn apply_choice(app: &mut App, choice: PickAction) -> Vec<Effect> {
    let Some(over) = app.over.take() else { return Vec::new() };
    let asked = over.screen;
    let effects = match choice {
        PickAction::Action(id) if find_action(id).is_some_and(|a| !a.on.applies_to(app.current_scope())) => {
            let place = find_action(id).map_or("", |a| a.on.as_str());
            set_status(app, format!("this works on other screens: {place}"), false)
        }
        PickAction::Action(id) if app.top_entry().is_some_and(|e| e.id == asked) => dispatch_action(app, id),
        PickAction::Action(_) => set_status(app, "another screen came up meanwhile; nothing was done", true),
        PickAction::Theme(name) => {
            let text = format!("theme {name} for this session; theme = \"{name}\" in config.toml keeps it");
            app.session.settings.theme = name;
            set_status(app, text, false)
        }
        PickAction::Copy(what) => match app.with_screen(asked, |s, cx| s.copy(what, cx)) {
            Some(Some((text, said))) => vec![Effect::Copy(clipboard::sanitize_copy(what, &text), said)],
            Some(None) => set_status(app, "nothing is selected", true),
            None => set_status(app, GONE, true),
        },
        PickAction::Run(what) => run_events::apply_run_choice(app, asked, what),
        PickAction::OpenFile(path) => navigation::open_file(app, &path),
        PickAction::ListFiles(folder) => vec![Effect::Files { folders: vec![folder], shown: true }],
        PickAction::Changes(before, after) => navigate_to(app, asked, Navigate::Changes { before, after }),
        other => match app.with_screen(asked, |s, cx| s.choose(other, cx)) {
            Some(answer) => apply_response(app, asked, answer),
            None => set_status(app, GONE, true),
        },
    };
    effects.into_iter().chain(run_events::check_awaited(app)).collect()
}
