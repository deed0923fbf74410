//! Panels below a short tree of ranges: the kernels launched inside the selected range, and its figures.

use super::panel::{Panel, draw_lines};
use super::text::{align_left, align_right, bar, wrap_text};
use super::{Role, Theme};
use crate::analysis::Family;
use crate::analysis::labels::{cut_end, cut_middle};
use crate::analysis::readable::readable_name;
use crate::analysis::table::ranges::{self, RangeRow, node_label};
use crate::analysis::table::{Outputs, columns_of};
use crate::app::{App, RangesScreen};
use crate::model::text::escape_unsafe;
use crate::model::{Nanos, units};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

/// Minimum number of rows of the panels.
pub const LEAST: u16 = 8;
/// Minimum width to show both panels.
const BOTH: u16 = 120;
/// Width of the range's figures without explanations, and maximum width with them.
const FIGURES: (u16, u16) = (28, 76);
/// Minimum total width of both panels to explain the figures.
const EXPLAINED: u16 = 150;
/// Widths of the figures of a kernel.
const TOTAL: usize = 9;
const COUNT: usize = 8;
const MEAN: usize = 9;
const BAR: usize = 9;

pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &RangesScreen, row: &RangeRow<'_>, theme: &Theme) {
    let [left, right] = if area.width >= BOTH {
        let figures = if area.width >= EXPLAINED { (area.width * 36 / 100).min(FIGURES.1) } else { FIGURES.0 };
        Layout::horizontal([Constraint::Min(10), Constraint::Length(figures)]).areas(area)
    } else {
        [area, Rect::default()]
    };
    draw_kernels(frame, left, app, screen, row, theme);
    if right.width > 0 {
        draw_figures(frame, right, row, theme);
    }
}

fn panel_title(word: &str, row: &RangeRow<'_>, columns: usize, theme: &Theme) -> Vec<Span<'static>> {
    let name = cut_middle(&escape_unsafe(&node_label(row.node)), columns.saturating_sub(word.len() + 6));
    vec![Span::styled(format!("{word} "), theme.style(Role::Title)), Span::styled(name, theme.style(Role::Text))]
}

fn draw_kernels(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &RangesScreen, row: &RangeRow<'_>, theme: &Theme) {
    let inner = Panel::new(panel_title("Kernels inside", row, area.width.into(), theme)).draw(frame, area, true, theme);
    let (dim, text) = (theme.style(Role::Dim), theme.style(Role::Text));
    let kernels = screen.inside.as_ref().filter(|i| i.0 == row.id).map(|i| &i.1);
    let profile = app.report().and_then(|r| r.profile.as_ref());
    let (Some(kernels), Some(profile)) = (kernels, profile) else {
        draw_lines(frame, inner, vec![Line::styled("…", dim)]);
        return;
    };
    if kernels.is_empty() {
        draw_lines(frame, inner, vec![Line::styled("no kernel was launched in this range", dim)]);
        return;
    }
    let columns = usize::from(inner.width);
    let name = columns.saturating_sub(BAR + 7 + TOTAL + COUNT + MEAN + 5).max(12);
    let all: i64 = kernels.iter().map(|k| k.1).fold(0, i64::saturating_add);
    let longest = kernels.first().map_or(1, |k| k.1).max(1);
    let room = usize::from(inner.height).saturating_sub(1);
    let head = format!(
        "{} {} {} {} {}",
        align_left("kernel", name),
        align_right("share", BAR + 7),
        align_right("total", TOTAL),
        align_right("count", COUNT),
        align_right("avg", MEAN)
    );
    let mut lines = vec![Line::styled(head, theme.style(Role::Head))];
    // The last line shows how many kernels are not listed.
    let listed = if kernels.len() > room { room.saturating_sub(1) } else { kernels.len() };
    for &(kernel, ns, count) in kernels.iter().take(listed) {
        let of = profile.kernels.get(kernel.0 as usize);
        let style = of.map_or(text, |k| theme.family_style(Family::guess(k.function(), k.demangled())));
        let label = cut_middle(&escape_unsafe(&of.map_or_else(Default::default, readable_name)), name);
        let mut spans = vec![Span::styled(align_left(&label, name), style), Span::raw(" ")];
        spans.extend(bar(ns as f64 / longest as f64, BAR, theme.style(Role::Part(crate::analysis::triage::TimeCategory::Kernels)), theme));
        let share = units::format_percent(ns as f64 / all.max(1) as f64 * 100.0);
        let count_text = units::format_grouped(count);
        spans.push(Span::styled(align_right(&share, 7), theme.style(Role::Title)));
        spans.push(Span::styled(format!(" {}", align_right(&Nanos(ns).to_string(), TOTAL)), text));
        spans.push(Span::styled(format!(" {}", align_right(&count_text, COUNT)), text));
        spans.push(Span::styled(format!(" {}", align_right(&Nanos::format_ns(ns as f64 / count.max(1) as f64), MEAN)), text));
        lines.push(Line::from(spans));
    }
    if kernels.len() > listed {
        lines.push(Line::styled(format!("and {} more", kernels.len() - listed), dim));
    }
    draw_lines(frame, inner, lines);
}

/// All figures of the range with explanations.
fn draw_figures(frame: &mut Frame<'_>, area: Rect, row: &RangeRow<'_>, theme: &Theme) {
    const TITLE: usize = 10;
    const VALUE: usize = 12;
    let inner = Panel::new(vec![Span::styled("Figures", theme.style(Role::Title))]).draw(frame, area, true, theme);
    let (dim, text) = (theme.style(Role::Dim), theme.style(Role::Text));
    let room = usize::from(inner.width).saturating_sub(TITLE + VALUE + 2);
    let explained = room >= 20;
    let figures: Vec<(&str, String, &str)> = columns_of(ranges::columns(row.node.flops > 0.0), Outputs::SCREEN)
        .into_iter()
        .map(|c| (c.title, c.shown(row), c.meaning))
        .filter(|f| !f.1.is_empty())
        .collect();
    // Use whole sentences if there is room for all figures.
    let wrapped: Vec<Vec<String>> = figures.iter().map(|f| if explained { wrap_text(f.2, room) } else { vec![String::new()] }).collect();
    let fits = wrapped.iter().map(Vec::len).sum::<usize>() <= usize::from(inner.height);
    let mut lines = Vec::new();
    for ((title, value, meaning), wrapped) in figures.into_iter().zip(wrapped) {
        let meanings = if fits { wrapped } else { vec![cut_end(meaning, room)] };
        for (at, meaning) in meanings.into_iter().enumerate() {
            let (title, value) = if at == 0 { (title, value.as_str()) } else { ("", "") };
            lines.push(Line::from(vec![
                Span::styled(align_left(title, TITLE), theme.style(Role::Head)),
                Span::styled(align_right(value, VALUE), text),
                Span::styled(format!("  {meaning}"), dim),
            ]));
        }
    }
    draw_lines(frame, inner, lines);
}
