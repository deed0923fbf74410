//! The `next:` line, and the message about a report that could not be read.

use super::screens::view_of;
use super::text::wrap_text;
use super::{Role, Theme};
use crate::app::actions::keymap::LINK;
use crate::app::{App, Stage, Status};
use crate::model::text::escape_unsafe;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line as Drawn, Span, Text};

fn next_step_text(app: &App) -> Option<String> {
    if let Some(tour) = crate::app::tour::current_text(app) {
        return Some(tour);
    }
    let open = &app.top_entry()?.open;
    let report = app.report();
    // If reading stopped early, the next step is the reason why the report is incomplete.
    if let (true, Some((Stage::Failed(why), true))) = (app.on_report(), report.map(|r| (&r.stage, r.profile.is_some()))) {
        return Some(why.clone());
    }
    view_of(open).next_step(app)
}

/// Number of lines for the next step: one, or two if there is room.
pub fn next_height(app: &App, width: u16) -> u16 {
    let columns = usize::from(width.saturating_sub(8)).max(20);
    // The height depends only on the next step, not on a message shown in its place, so that the screen does not jump.
    let lines = next_step_text(app).map_or(1, |s| wrap_text(&s, columns).len());
    if app.session.size.1 >= 22 { u16::try_from(lines.clamp(1, 2)).unwrap_or(1) } else { 1 }
}

/// Draws the next step, or the current message.
pub fn next(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme, ascii: bool) {
    if let Some(status) = &app.status {
        draw_message(frame, area, status, theme, ascii);
        return;
    }
    let Some(text) = next_step_text(app) else { return };
    let columns = usize::from(area.width.saturating_sub(8)).max(20);
    let shown =
        |piece: &str| if ascii { crate::config::keys::spell_out_keys(&escape_unsafe(piece)) } else { escape_unsafe(piece).into_owned() };
    let text = text.split(LINK).map(shown).collect::<Vec<_>>().join(&LINK.to_string());
    let mut lines = wrap_text(&text, columns);
    let height = usize::from(area.height.max(1));
    if lines.len() > height {
        let rest = lines[height - 1..].join(" ");
        lines.truncate(height - 1);
        lines.push(crate::analysis::labels::cut_end(&rest, columns));
    }
    let lines = lines.into_iter().enumerate().map(|(i, line)| {
        let mut spans = vec![Span::styled(if i == 0 { "next: " } else { "      " }, theme.style(Role::Dim))];
        // Keys are enclosed in `LINK` characters.
        let pieces = line.split(LINK).enumerate();
        spans.extend(pieces.map(|(i, piece)| Span::styled(piece.to_owned(), theme.style(if i % 2 == 1 { Role::Key } else { Role::Next }))));
        Drawn::from(spans)
    });
    frame.render_widget(lines.collect::<Text<'_>>(), Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area });
}

/// Draws a message in place of the next step for a few seconds.
fn draw_message(frame: &mut Frame<'_>, area: Rect, status: &Status, theme: &Theme, ascii: bool) {
    let columns = usize::from(area.width.saturating_sub(4)).max(20);
    let text = if ascii { crate::config::keys::spell_out_keys(&status.text) } else { status.text.clone() };
    let (mark, role) = if status.error { ("▲ ", Role::Bad) } else { ("• ", Role::Title) };
    let height = usize::from(area.height.max(1));
    let mut lines = wrap_text(&escape_unsafe(&text), columns);
    if lines.len() > height {
        let rest = lines[height - 1..].join(" ");
        lines.truncate(height - 1);
        lines.push(crate::analysis::labels::cut_end(&rest, columns));
    }
    let lines = lines.into_iter().enumerate().map(|(i, line)| {
        let head = if i == 0 { mark } else { "  " };
        Drawn::from(vec![Span::styled(head, theme.style(role)), Span::styled(line, theme.style(role))])
    });
    frame.render_widget(lines.collect::<Text<'_>>(), Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area });
}

/// Draws the reason why a report could not be read.
pub fn draw_failure(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    let Some(Stage::Failed(why)) = app.report().map(|r| &r.stage) else {
        return;
    };
    let columns = usize::from(area.width.saturating_sub(8)).clamp(20, 100);
    let mut lines = vec![Drawn::styled("This report could not be opened.", theme.style(Role::Bad)), Drawn::default()];
    // The sentence ends with the next step: put that on its own line.
    let why = escape_unsafe(why);
    let (what, next) = why.rsplit_once("; ").unwrap_or((&why, ""));
    lines.extend(wrap_text(what, columns).into_iter().map(|l| Drawn::styled(l, theme.style(Role::Text))));
    if !next.is_empty() {
        lines.push(Drawn::default());
        lines.extend(wrap_text(next, columns).into_iter().map(|l| Drawn::styled(l, theme.style(Role::Next))));
    }
    let top = area.height.saturating_sub(u16::try_from(lines.len()).unwrap_or(area.height)) / 3;
    frame.render_widget(
        Text::from(lines),
        Rect { x: area.x + 4, y: area.y + top, width: area.width.saturating_sub(8), height: area.height - top },
    );
}
