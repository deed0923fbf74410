//! Lanes as colored cells.

use crate::analysis::timeline::Category;
use crate::analysis::triage::TimeCategory;
use crate::report::timeline::paint::{Fill, Glyph, level_char};
use crate::ui::{Role, Theme};
use ratatui::buffer::Buffer;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};

/// Color of a category: device operations have the colors of the time breakdown; calls have the color of the idle
/// time that they cause.
pub fn category_role(category: Category) -> Role {
    match category {
        Category::Kernel => Role::Part(TimeCategory::Kernels),
        Category::Collective => Role::Part(TimeCategory::Collectives),
        Category::Copy | Category::Set => Role::Part(TimeCategory::Copies),
        Category::Launch | Category::CopyCall => Role::Part(TimeCategory::Launching),
        Category::Sync => Role::Part(TimeCategory::Synchronising),
        Category::Alloc => Role::Part(TimeCategory::Allocating),
        Category::Module => Role::Part(TimeCategory::Compiling),
        Category::GraphCall => Role::Part(TimeCategory::Graphs),
        Category::OsWait => Role::Part(TimeCategory::Waiting),
        Category::Os => Role::Part(TimeCategory::Computing),
        Category::OtherCall | Category::Overhead => Role::Part(TimeCategory::Other),
        // Enclosing ranges are not activities themselves.
        Category::Range | Category::Operator | Category::Python => Role::Dim,
    }
}

/// Highlighted events of a lane.
#[derive(Clone, Copy, Debug, Default)]
pub struct Lit {
    /// The event at the cursor.
    pub selected: Option<usize>,
    /// The event linked to the selected one.
    pub other: Option<usize>,
    /// First and last column of the idle time at the cursor.
    pub idle: Option<(usize, usize)>,
    /// True for a thread that only makes OS calls, such as the driver's own threads: its waiting is drawn muted.
    pub helper: bool,
}

/// Draws glyphs into the rows of a lane; text is in the first row. `matched` is true for columns with search matches.
pub fn draw(buffer: &mut Buffer, area: Rect, glyphs: &[Glyph], lit: Lit, matched: &[bool], ascii: bool, theme: &Theme) {
    let mono = theme.style(Role::Part(TimeCategory::Kernels)).fg.is_none();
    // Without colored blocks, events are drawn as text, which is not repeated in every row.
    let rows = if ascii || mono { 1 } else { area.height };
    for row in 0..rows {
        draw_row(buffer, area, (row, rows), glyphs, lit, matched, (ascii, mono), theme);
    }
}

#[allow(clippy::too_many_arguments, reason = "one row of `draw`")]
fn draw_row(
    buffer: &mut Buffer,
    area: Rect,
    (row, rows): (u16, u16),
    glyphs: &[Glyph],
    lit: Lit,
    matched: &[bool],
    (ascii, mono): (bool, bool),
    theme: &Theme,
) {
    for (x, (column, glyph)) in (area.x..area.right()).zip(glyphs.iter().enumerate()) {
        let Some(cell) = buffer.cell_mut((x, area.y + row)) else { break };
        let muted = lit.helper && glyph.category == Some(Category::OsWait);
        let role = if muted { Role::BarEmpty } else { glyph.category.map_or(Role::Dim, category_role) };
        let own = theme.style(role);
        let own = if matched.get(column).copied().unwrap_or_default() { own.patch(theme.style(Role::Match)) } else { own };
        let chosen = glyph.event.is_some() && glyph.event == lit.selected;
        let other = glyph.event.is_some() && glyph.event == lit.other;
        // The selected event keeps its colour between two bright edges.
        let edge = chosen && matches!(glyph.fill, Fill::Begin | Fill::End);
        let block = if chosen && mono {
            theme.style(Role::Selected).add_modifier(Modifier::BOLD | Modifier::UNDERLINED)
        } else if edge {
            theme.style(Role::Title).add_modifier(Modifier::REVERSED)
        } else if chosen || other {
            own.add_modifier(Modifier::REVERSED | Modifier::BOLD | Modifier::UNDERLINED)
        } else if !mono && (muted || glyph.category.is_some_and(Category::is_enclosing)) {
            // Draw enclosing ranges, and helper threads that wait for events, less prominently than actual work.
            theme.style(Role::Text).bg(theme.style(Role::Border).fg.unwrap_or_default())
        } else {
            own.add_modifier(Modifier::REVERSED)
        };
        // Plain text has no colored blocks: brackets mark both ends of an event.
        let bare = ascii && mono;
        let (symbol, style): (&str, Style) = match &glyph.fill {
            Fill::Blank => continue,
            Fill::Level(n) => {
                let filled = (u16::from(*n) * rows).saturating_sub(8 * (rows - 1 - row)).min(8);
                let style = if chosen { own.patch(theme.style(if mono { Role::Selected } else { Role::Title })) } else { own };
                let level = u8::try_from(filled).unwrap_or(8);
                (if level == 0 { " " } else { level_char(level) }, style)
            }
            Fill::Begin if bare => ("[", own),
            Fill::End if bare => ("]", own),
            Fill::Begin if edge && !ascii && !mono => (" ", block),
            Fill::Begin => (if ascii { "|" } else { "▏" }, block),
            Fill::Letter(_) | Fill::Covered if row > 0 => (" ", block),
            Fill::Letter(letter) => (letter.as_str(), block),
            Fill::Covered => ("", block),
            Fill::Inside | Fill::End if bare => ("-", own),
            Fill::Inside | Fill::End => (" ", block),
            Fill::Idle(part) => {
                let style = theme.style(Role::Part(*part));
                let at_cursor = lit.idle.is_some_and(|(first, last)| (first..=last).contains(&column));
                if ascii || mono {
                    let letter = part.letter();
                    cell.set_symbol(&if at_cursor { letter.to_uppercase() } else { letter.to_lowercase() });
                    cell.set_style(if at_cursor { style.add_modifier(Modifier::BOLD) } else { style });
                    continue;
                }
                (if at_cursor { "▓" } else { "░" }, style)
            }
        };
        cell.set_symbol(symbol);
        cell.set_style(style);
    }
}
