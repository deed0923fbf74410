//! Live measurement of the selected kernel of a running program: first hint, unit utilization, and roofline.

use super::panel::{draw_lines, draw_panel};
use super::result::roofline_chart;
use super::text::wrap_text;
use super::widgets::{gauge_lines, severity_glyph};
use super::{Role, Theme};
use crate::analysis::labels::{cut_end, cut_middle};
use crate::analysis::live::Live;
use crate::analysis::live_results::{MeasuredNow, Results};
use crate::analysis::roofline::{Amount, Precision};
use crate::app::Watched;
use crate::model::text::escape_unsafe;
use crate::model::{Nanos, units};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

/// Minimum number of table rows to show the panel below the table, and the panel's fraction of these rows.
const LEAST: u16 = 20;
const PART: (u16, u16) = (11, 24);
/// Maximum number of rows of the panel.
const MOST: u16 = 15;
/// Maximum width of the gauges.
const GAUGES: usize = 100;
/// Minimum width to show the roofline next to the hint.
const WIDE: u16 = 90;

/// Number of rows of the panel; 0 if there is no room or nothing was measured.
pub fn panel_rows(live: &Live, area: Rect) -> u16 {
    if live.measured.is_none() || area.height < LEAST { 0 } else { (area.height * PART.0 / PART.1).min(MOST) }
}

/// Says how many launches were measured, and how many launch configurations the kernel has if the measured one is only
/// the longest.
fn measurement_note(of: &MeasuredNow) -> String {
    let launches = if of.launches > 0 { format!(" in {}", units::format_count(of.launches as u64, "launch")) } else { String::new() };
    let others = match of.configurations {
        0 | 1 => String::new(),
        n => format!("; the longest of {}", units::format_count(n as u64, "launch configuration")),
    };
    format!(", measured in place{launches}{others}")
}

/// Draws the panel of the selected kernel.
pub fn draw(frame: &mut Frame<'_>, area: Rect, (watched, results): (&Watched, &Results), bordered: bool, theme: &Theme) {
    let Some(kernel) = watched.traced.selected_kernel() else { return };
    let name = cut_middle(&escape_unsafe(&kernel.name), usize::from(area.width / 2));
    let of = results.of_kernel(&kernel.name);
    let note = of.map_or_else(|| ", not measured yet".to_owned(), measurement_note);
    let title = vec![Span::styled(name, theme.style(Role::Title)), Span::styled(note, theme.style(Role::Dim))];
    let inner = draw_panel(frame, area, title, bordered, theme);
    let Some(of) = of else {
        let text =
            format!("m measures its next launches. {} measured so far.", units::format_count(results.kernels.len() as u64, "kernel"));
        let said = wrap_text(&text, inner.width.into()).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))).collect();
        draw_lines(frame, inner, said);
        return;
    };
    let placed = watched.traced.plot.as_deref();
    let plot = placed.filter(|p| p.points.iter().any(|p| p.own));
    let beside = inner.width >= WIDE;
    let [left, right] = if plot.is_some() && beside {
        Layout::horizontal([Constraint::Percentage(46), Constraint::Min(30)]).spacing(2).areas(inner)
    } else {
        [inner, Rect::default()]
    };
    let mut said = hint_lines(of, results, (left.width.into(), left.height.into()), theme);
    match plot {
        Some(plot) if beside => {
            roofline_chart::draw_full_chart(frame, right, 0, plot, theme);
            if said.len() < usize::from(left.height) && plot.points.iter().any(|p| p.own && p.amount == Amount::AtMost) {
                let text = "roofline  operations are an upper bound; M on a launch of the report counts them";
                said.push(Line::styled(cut_end(text, left.width.into()), theme.style(Role::Dim)));
            }
        }
        None if said.len() < usize::from(left.height) => {
            let counted = placed.is_some_and(|p| p.placed.work.iter().any(|w| w.precision == Precision::Single && w.achieved == Some(0.0)));
            let text = if counted {
                "roofline  none: no floating-point operations"
            } else {
                "roofline  operations were not counted; M on a launch of the report counts them"
            };
            said.push(Line::styled(cut_end(text, left.width.into()), theme.style(Role::Dim)));
        }
        _ => {}
    }
    draw_lines(frame, left, said);
}

/// Lines with the first hint and its headline, and with the unit utilization.
fn hint_lines(of: &MeasuredNow, results: &Results, (columns, rows): (usize, usize), theme: &Theme) -> Vec<Line<'static>> {
    let Some(result) = results.metrics.results.get(of.result) else { return Vec::new() };
    let measures = gauge_lines(&results.metrics, result, columns.min(GAUGES), theme);
    let mut out = Vec::new();
    if let Some(hint) = &of.first {
        let (mark, role) = severity_glyph(hint.severity);
        out.push(Line::styled(format!("{mark} {}", hint.id.id()), theme.style(role)));
        let room = rows.saturating_sub(measures.len() + 2).max(1);
        let mut headline = wrap_text(&escape_unsafe(&hint.headline), columns);
        if headline.len() > room {
            let rest = headline.split_off(room - 1).join(" ");
            headline.push(cut_end(&rest, columns));
        }
        out.extend(headline.into_iter().map(|l| Line::styled(l, theme.style(Role::Text))));
    } else {
        out.push(Line::styled("no hint: the measured metrics do not show what limits it", theme.style(Role::Dim)));
    }
    if out.len() + measures.len() < rows {
        out.push(Line::default());
    }
    out.extend(measures);
    if let Some(duration) = results.metrics.duration(result).filter(|_| out.len() < rows) {
        out.push(Line::styled(format!("duration  {}", Nanos(duration.0)), theme.style(Role::Dim)));
    }
    out
}
