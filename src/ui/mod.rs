//! Draws the state. Drawing reads: it changes nothing but the [`View`], which remembers how far a table is scrolled and where things are.

pub mod ascii;
pub mod chart;
pub mod checklist;
pub mod clipboard;
pub mod detail;
pub mod diff;
pub mod footer;
pub mod header;
pub mod input;
pub mod kernels;
pub mod launches;
pub mod library;
pub mod overlay;
pub mod rerun;
pub mod result;
pub mod run;
pub mod run_steps;
pub mod status;
pub mod terminal;
pub mod text;
pub mod theme;
pub mod view;

pub use theme::{Role, Theme};
pub use view::View;

use crate::app::{App, DetailsRoom, SMALLEST, Screen, Stage};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::Line;

/// Draws everything.
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
        whole(frame, area, app, view, theme);
    }
    if view.ascii {
        ascii::asciify(frame.buffer_mut());
    }
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
fn whole(frame: &mut Frame<'_>, area: Rect, app: &App, view: &mut View, theme: &Theme) {
    let [head, body, next, foot] = Layout::vertical([
        Constraint::Length(2),
        Constraint::Min(6),
        Constraint::Length(status::next_height(app, area.width)),
        Constraint::Length(1),
    ])
    .areas(area);
    header::draw(frame, head, app, theme);
    let own = matches!(app.screen(), Screen::Run | Screen::Library | Screen::Diff);
    let failed = !own && app.report().is_some_and(|r| matches!(r.stage, Stage::Failed(_)) && r.profile.is_none());
    if failed {
        status::failure(frame, body, app, theme);
    } else {
        let details = app.details
            && matches!(app.screen(), Screen::Kernels | Screen::Launches)
            && app.report().is_some_and(|r| r.kernels.grouping.is_some());
        let (main, side) = match app.details_room() {
            DetailsRoom::Right if details => {
                let width = (area.width / 3).clamp(46, 58);
                let [main, side] = Layout::horizontal([Constraint::Min(60), Constraint::Length(width)]).areas(body);
                (main, Some((side, false)))
            }
            DetailsRoom::Below if details => {
                let [main, side] = Layout::vertical([Constraint::Min(10), Constraint::Length(below_height(app, body.height))]).areas(body);
                (main, Some((side, true)))
            }
            _ => (body, None),
        };
        match app.screen() {
            Screen::Kernels => kernels::draw(frame, main, app, view, theme),
            Screen::Launches => launches::draw(frame, main, app, view, theme),
            Screen::Rerun => rerun::draw(frame, main, app, view, theme),
            Screen::Result(_) => result::draw(frame, main, app, view, theme),
            Screen::Run => {
                if let Some(screen) = &app.run {
                    run::draw(frame, main, screen, theme);
                }
            }
            Screen::Library => {
                if let Some(screen) = &app.library {
                    library::draw(frame, main, app, screen, view, theme);
                }
            }
            Screen::Diff => {
                if let Some(screen) = &app.diff {
                    diff::draw(frame, main, app, screen, view, theme);
                }
            }
        }
        if let Some((side, below)) = side {
            detail::draw(frame, side, below, app, theme);
        }
    }
    status::next(frame, next, app, theme, view.ascii);
    footer::draw(frame, foot, app, theme, view.ascii);
    overlay::draw(frame, area, app, view, theme);
}

/// Rows of the details below the table: a third, and what the table leaves over, so far as it helps.
fn below_height(app: &App, body: u16) -> u16 {
    let rows = app.report().map_or(0, |r| if r.launches.is_some() { usize::MAX } else { r.kernels.shown.len() });
    let table = u16::try_from(rows.saturating_add(3)).unwrap_or(u16::MAX);
    body.saturating_sub(table).clamp(13.min(body / 3), 22.min(body / 2))
}
