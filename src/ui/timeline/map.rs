//! Map of the whole run in two lines: utilization of the devices, idle causes, steps, and the visible window.

use super::lanes::{self, Lit};
use super::unrecorded::{hatch, unrecorded_columns};
use crate::analysis::timeline::{GroupKey, Window};
use crate::analysis::triage::Step;
use crate::app::Report;
use crate::app::screens::timeline::inspect::Look;
use crate::report::timeline::{idle_shades, paint};
use crate::ui::{Role, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Steps to mark with ticks; `None` if there are none, or if the ticks would be closer than every third column.
fn marked_steps(report: &Report, columns: usize) -> Option<&[Step]> {
    let steps = &report.whole_triage()?.steps;
    (!steps.is_empty() && steps.len() * 3 <= columns).then_some(steps)
}

/// Columns of the phases excluded from the verdict, with their names, if there is room for them.
fn named_phases(report: &Report, whole: Window) -> impl Iterator<Item = (usize, &'static str)> {
    let phases = report.whole_triage().map_or(&[][..], |t| &t.left_out).iter();
    phases.filter_map(move |left| {
        let (begin, end) = (whole.column_at(left.start), whole.column_at(left.end - 1));
        let word = left.phase.word();
        let room = (end + 1).saturating_sub(begin);
        (room >= word.len() + 2).then(|| (begin + (room - word.len()) / 2, word))
    })
}

/// Names the marks on the second line: `view, phases, steps`.
pub fn label(report: &Report, look: &Look<'_>, columns: usize) -> String {
    let whole = Window::new(look.timeline.span.0, look.timeline.span.1, columns.max(1));
    let phases = named_phases(report, whole).next().is_some();
    let words = [Some("view"), phases.then_some("phases"), marked_steps(report, columns).map(|_| "steps")];
    words.into_iter().flatten().collect::<Vec<_>>().join(", ")
}

/// Draws the map and marks the window from `shown.start` to `shown.end`.
pub fn draw(buffer: &mut Buffer, area: Rect, report: &Report, look: &Look<'_>, shown: Window, ascii: bool, theme: &Theme) {
    let columns = usize::from(area.width);
    if columns == 0 || area.height == 0 {
        return;
    }
    let whole = Window::new(look.timeline.span.0, look.timeline.span.1, columns);
    let first = look.timeline.groups.iter().find(|g| matches!(g.key, GroupKey::Device(_))).or(look.timeline.groups.first());
    if let Some(group) = first {
        let cells = group.summary_cells(&look.events, whole);
        let glyphs = paint::summary_glyphs(&cells, &idle_shades(look.gaps, group, whole), &look.events, group.main_lane().map(|t| t.1));
        lanes::draw(buffer, Rect { height: 1, ..area }, &glyphs, Lit::default(), &[], ascii, theme);
        hatch(buffer, Rect { height: 1, ..area }, &glyphs, &unrecorded_columns(&look.profile.recorded, whole), ascii, theme);
    }
    if area.height < 2 {
        return;
    }
    let y = area.y + 1;
    let x = |column: usize| area.x + u16::try_from(column).unwrap_or(0);
    let (from, to) = (whole.column_at(shown.start), whole.column_at(shown.end - 1));
    let all = (from, to) == (0, columns - 1);
    for column in from..=to {
        if let Some(cell) = buffer.cell_mut((x(column), y)) {
            cell.set_symbol(if all { "─" } else { "━" });
            cell.set_style(theme.style(if all { Role::Faint } else { Role::Key }));
        }
    }
    if let Some(steps) = marked_steps(report, columns) {
        for step in steps {
            if let Some(cell) = buffer.cell_mut((x(whole.column_at(step.start)), y)) {
                let inside = (from..=to).contains(&whole.column_at(step.start));
                cell.set_symbol(match (inside, all) {
                    (true, true) => "┴",
                    (true, false) => "┷",
                    (false, _) => "╵",
                });
                cell.set_style(theme.style(if inside && !all { Role::Key } else { Role::Dim }));
            }
        }
    }
    for (at, word) in named_phases(report, whole) {
        for (column, letter) in (at..).zip(word.chars()) {
            if let Some(cell) = buffer.cell_mut((x(column), y)) {
                cell.set_char(letter);
                cell.set_style(theme.style(Role::Dim));
            }
        }
    }
    // Mark the time filter of all screens.
    if let Some(window) = report.window {
        for (ns, symbol) in [(window.0, "["), (window.1 - 1, "]")] {
            if let Some(cell) = buffer.cell_mut((x(whole.column_at(ns)), y)) {
                cell.set_symbol(symbol);
                cell.set_style(theme.style(Role::Mark));
            }
        }
    }
}
