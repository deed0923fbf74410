//! Drawing of the application state. Drawing is read-only, except for the [`View`], which stores scroll positions and
//! click targets.

pub mod advice;
pub mod ascii;
pub mod chart;
pub mod checklist;
pub mod clickable_keys;
pub mod clipboard;
pub mod compact_backend;
pub mod detail;
pub mod diff;
pub mod diff_sides;
pub mod finding_details;
pub mod footer;
pub mod glossary;
pub mod header;
pub mod help;
pub mod input_parser;
pub mod kernel_summary;
pub mod kernels;
pub mod launches;
pub mod library;
mod lines;
mod live;
mod live_measured;
mod memory;
mod neighbours;
pub mod next_step;
pub mod overlay;
pub mod overview;
pub mod panel;
pub mod preview;
mod range_panel;
mod ranges;
mod ranks;
mod ranks_collectives;
mod ranks_steps;
pub mod rerun;
pub mod result;
pub mod run;
pub mod run_gpus;
pub mod run_steps;
pub mod screen_export;
pub mod screens;
mod step_chart;
pub mod table;
pub mod terminal;
pub mod text;
pub mod theme;
pub mod time_breakdown;
pub mod timeline;
pub mod view;
pub mod widgets;

pub use theme::{Role, Theme};
pub use view::View;

use screens::{Place, view_of};

use crate::app::{App, DetailsRoom, SMALLEST};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

pub fn draw(frame: &mut Frame<'_>, app: &App, view: &mut View, theme: &Theme) {
    let area = frame.area();
    view.hits.clear();
    frame.buffer_mut().set_style(area, theme.style(Role::Text));
    if area.width < SMALLEST.0 || area.height < SMALLEST.1 {
        let text = format!("warpscope needs {}×{}, this is {}×{}", SMALLEST.0, SMALLEST.1, area.width, area.height);
        frame.render_widget(
            Line::styled(crate::analysis::labels::cut_end(&text, area.width.into()), theme.style(Role::Warn)),
            Rect { height: area.height.min(1), ..area },
        );
    } else {
        draw_layout(frame, area, app, view, theme);
        clickable_keys::find_keys(frame.buffer_mut(), app, view, theme);
    }
    if view.ascii {
        ascii::asciify_buffer(frame.buffer_mut());
    }
    widgets::normalize_blanks(frame.buffer_mut());
}

/// ```text
///  header: file, tool, devices, launches, span
///  header: busy, kernels, top 3, copies, gaps, notes
///  bar: filter, grouping, order, rows
///  table                                              │ details
///  (details below the table on tall terminals)
///  next: …
///  footer: keys, or a message
/// ```
fn draw_layout(frame: &mut Frame<'_>, area: Rect, app: &App, view: &mut View, theme: &Theme) {
    let [head, body, next, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Min(6),
        Constraint::Length(next_step::next_height(app, area.width)),
        Constraint::Length(1),
    ])
    .areas(area);
    header::draw(frame, head, app, theme);
    let top = app.top_entry().map(|e| &e.open);
    if app.shows_failure() {
        next_step::draw_failure(frame, body, app, theme);
    } else {
        let rows = top.and_then(|open| view_of(open).rows_beside_details());
        let details = app.session.details
            && rows.is_some()
            && app.report().is_some_and(|r| r.groups.grouping.as_ref().is_some_and(|g| !g.rows.is_empty()));
        let (main, side) = match app.session.details_room() {
            DetailsRoom::Right if details => {
                // Names of kernels need the columns more than the details do, until there are enough for both.
                let width = if area.width >= 170 { 62 } else { (area.width * 3 / 10).max(36) };
                let [main, side] = Layout::horizontal([Constraint::Min(60), Constraint::Length(width)]).areas(body);
                (main, Some((side, false)))
            }
            DetailsRoom::Below if details => {
                let [main, side] = Layout::vertical([Constraint::Min(10), Constraint::Length(below_height(rows, body.height))]).areas(body);
                (main, Some((side, true)))
            }
            _ => (body, None),
        };
        if let Some(open) = top {
            view_of(open).draw(frame, Place { area: main, bordered: panel::fits_borders(body) }, app, view, theme);
        }
        if let Some((side, below)) = side {
            detail::draw(frame, side, (below, panel::fits_borders(body)), app, view, theme);
        }
    }
    next_step::next(frame, next, app, theme, view.ascii);
    footer::draw(frame, foot, app, view, theme);
    overlay::draw(frame, area, app, view, theme);
}

/// Number of rows for the details below the table: the rows that the table does not need, but at least a third (up to
/// 13) and at most half (up to 22) of the body.
fn below_height(rows: Option<usize>, body: u16) -> u16 {
    let table = u16::try_from(rows.unwrap_or(usize::MAX).saturating_add(3)).unwrap_or(u16::MAX);
    body.saturating_sub(table).clamp(13.min(body / 3), 22.min(body / 2))
}
