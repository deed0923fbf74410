//! What the mouse does to what it meets.

use super::launches::LaunchSort;
use super::typing::preview_theme;
use super::update::{move_by, on_key, open};
use super::{App, Effect, Mouse, Overlay, Screen, choose};
use crate::analysis::SortBy;
use crossterm::event::{KeyCode, KeyEvent, KeyModifiers};

/// Orders by column of the kernels screen, as its heads are numbered.
pub const HEADS: [SortBy; 9] =
    [SortBy::Name, SortBy::Total, SortBy::Count, SortBy::Avg, SortBy::Median, SortBy::P99, SortBy::Min, SortBy::Max, SortBy::Spread];

/// Changes the state by what the mouse did.
pub fn on_mouse(app: &mut App, mouse: Mouse) -> Vec<Effect> {
    match (mouse, &mut app.overlay) {
        (Mouse::Wheel(by), Some(Overlay::Pick(pick))) => {
            pick.step(by);
            preview_theme(app);
            Vec::new()
        }
        (
            Mouse::Wheel(by),
            Some(
                Overlay::Help(at)
                | Overlay::Notes(at)
                | Overlay::Names(at)
                | Overlay::Details(at)
                | Overlay::Explain(at)
                | Overlay::Checklist(at, _)
                | Overlay::RunFacts(at, _)
                | Overlay::Advice(at, _),
            ),
        ) => {
            *at = at.saturating_add_signed(by);
            Vec::new()
        }
        (Mouse::Item(i), Some(Overlay::Pick(pick))) => {
            pick.selected = i;
            let chosen = pick.item().map(|i| i.choice.clone());
            chosen.map(|c| choose::choose(app, c)).unwrap_or_default()
        }
        (Mouse::Wheel(by), None) => move_by(app, by),
        (Mouse::Wheel(_) | Mouse::Item(_), _) | (Mouse::Elsewhere, None) => Vec::new(),
        (_, Some(_)) => {
            // A press outside closes what lies on top.
            on_key(app, KeyEvent::new(KeyCode::Esc, KeyModifiers::NONE))
        }
        (Mouse::Row(i), None) => row_pressed(app, i),
        (Mouse::Head(i), None) => head_pressed(app, i),
    }
}

/// The first press selects a row, a press on the selected row opens it.
fn row_pressed(app: &mut App, row: usize) -> Vec<Effect> {
    let index = app.active;
    match app.screen() {
        Screen::Library => {
            let Some(screen) = &mut app.library else { return Vec::new() };
            if screen.selected == row {
                return super::library::enter(app);
            }
            screen.selected = row.min(screen.shown.len().saturating_sub(1));
            return Vec::new();
        }
        Screen::Diff => {
            let Some(screen) = &mut app.diff else { return Vec::new() };
            if screen.selected == row {
                return super::diff::enter(app);
            }
            screen.selected = row.min(screen.diff.as_ref().map_or(0, |d| d.rows.len().saturating_sub(1)));
            return Vec::new();
        }
        Screen::Run => return Vec::new(),
        _ => {}
    }
    let Some(report) = app.reports.get_mut(index) else {
        return Vec::new();
    };
    if let Some(screen) = &mut report.rerun {
        if screen.selected == row {
            return super::rerun::edit(app);
        }
        screen.selected = row.min(screen.len().saturating_sub(1));
        return Vec::new();
    }
    if let Some(screen) = &mut report.result {
        if screen.press(row) {
            return super::result_views::enter(app);
        }
        return Vec::new();
    }
    if let Some(screen) = &mut report.launches {
        screen.selected = row.min(screen.len().saturating_sub(1));
        return Vec::new();
    }
    if report.kernels.selected == row {
        return open(app);
    }
    report.kernels.selected = row.min(report.kernels.shown.len().saturating_sub(1));
    report.want_detail(index)
}

fn head_pressed(app: &mut App, head: usize) -> Vec<Effect> {
    let index = app.active;
    if app.screen() == Screen::Launches {
        let Some(&by) = LaunchSort::ALL.get(head) else {
            return Vec::new();
        };
        let same = app.report().and_then(|r| r.launches.as_ref()).is_some_and(|s| s.sort == by);
        return choose::sort_launches(app, by, same);
    }
    let (Some(report), Some(&by)) = (app.reports.get_mut(index), HEADS.get(head)) else {
        return Vec::new();
    };
    report.kernels.sort_by(by);
    report.want_detail(index)
}
