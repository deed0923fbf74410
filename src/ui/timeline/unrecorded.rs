//! Times in which nothing was recorded, hatched: blank cells would look idle.

use crate::analysis::timeline::Window;
use crate::report::timeline::paint::{Fill, Glyph};
use crate::ui::{Role, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;

/// Returns true for each column of a window in which nothing was recorded; empty if all of it was.
pub fn unrecorded_columns(recorded: &[(i64, i64)], window: Window) -> Vec<bool> {
    let is_unrecorded = |column: usize| {
        let (from, to) = (window.column_start(column), window.column_start(column + 1));
        let at = recorded.partition_point(|r| r.1 <= from);
        recorded.get(at).is_none_or(|r| r.0 >= to)
    };
    if recorded.is_empty() { Vec::new() } else { (0..window.columns).map(is_unrecorded).collect() }
}

/// Hatches those of these columns that are blank in a row.
pub fn hatch(buffer: &mut Buffer, area: Rect, glyphs: &[Glyph], columns: &[bool], ascii: bool, theme: &Theme) {
    let blank = |glyph: &Glyph| glyph.fill == Fill::Blank;
    for (x, _) in (area.x..area.right()).zip(glyphs.iter().zip(columns)).filter(|(_, (glyph, unrecorded))| **unrecorded && blank(glyph)) {
        for y in area.y..area.bottom() {
            if let Some(cell) = buffer.cell_mut((x, y)) {
                cell.set_symbol(if ascii { "." } else { "╱" });
                cell.set_style(theme.style(Role::Faint));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn columns_without_any_recorded_time_are_unrecorded() {
        let window = Window::new(0, 100, 10);
        assert!(unrecorded_columns(&[], window).is_empty());
        let columns = unrecorded_columns(&[(5, 25), (30, 30), (71, 72)], window);
        let drawn: String = columns.iter().map(|u| if *u { '/' } else { ' ' }).collect();
        assert_eq!(drawn, "   //// //");
    }
}
