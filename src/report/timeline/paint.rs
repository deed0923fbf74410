//! Lane of a timeline as glyphs, one per column, used both on the screen and in pipes.

use crate::analysis::labels::{cut_end, display_width};
use crate::analysis::timeline::{Block, Category, Cell, Events, Lane, Level, Plot, Window, compute_cells, visible_blocks};
use crate::analysis::triage::TimeCategory;
use crate::model::{Nanos, Profile};
use unicode_segmentation::UnicodeSegmentation;

/// Content of a column.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Fill {
    Blank,
    /// Busy share of the column, in eighths: 1 to 8.
    Level(u8),
    /// The first column of an event that is at least two columns wide.
    Begin,
    /// A character of the event's name.
    Letter(String),
    /// Second column of a wide character.
    Covered,
    /// Interior of an event.
    Inside,
    End,
    /// Idle time, with the cause.
    Idle(TimeCategory),
}

#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Glyph {
    pub fill: Fill,
    /// Category that accounts for most of the column.
    pub category: Option<Category>,
    /// Index of the event in the lane, if the event is wide enough to be visible.
    pub event: Option<usize>,
}

impl Glyph {
    const BLANK: Self = Self { fill: Fill::Blank, category: None, event: None };
}

const LEVELS: [&str; 8] = ["▁", "▂", "▃", "▄", "▅", "▆", "▇", "█"];

/// Block element for a level in eighths; values outside 1 to 8 are clamped.
pub fn level_char(eighths: u8) -> &'static str {
    LEVELS[usize::from(eighths.clamp(1, 8)) - 1]
}

/// Converts a share to eighths, at least one even for the shortest event.
pub fn to_eighths(share: f64) -> u8 {
    (share.clamp(0.0, 1.0) * 8.0).round().clamp(1.0, 8.0) as u8
}

/// Columns with their busy share.
fn density_glyphs(cells: &[Cell], of: &Events<'_>, lane: Option<&Lane>) -> Vec<Glyph> {
    let glyph = |cell: &Cell| {
        if cell.share <= 0.0 && cell.events == 0 {
            return Glyph::BLANK;
        }
        // A column that contains only zero-length events has the color of the first one.
        let first = || lane.and_then(|l| l.get(cell.first)).map(|id| of.category(id.to_event()));
        Glyph { fill: Fill::Level(to_eighths(cell.share)), category: cell.top.or_else(first), event: None }
    };
    cells.iter().map(glyph).collect()
}

/// A lane with the names of those events that are wide enough.
pub fn lane_glyphs(lane: &Lane, of: &Events<'_>, window: Window) -> Vec<Glyph> {
    let cells = compute_cells(lane, of, window);
    let mut out = density_glyphs(&cells, of, Some(lane));
    for block in visible_blocks(lane, of, window) {
        let wide = block.to - block.from;
        let Some(id) = lane.get(block.at) else { continue };
        let category = Some(of.category(id.to_event()));
        if wide < 2 {
            // If there is a single event in the column, it can be identified.
            if let Some(glyph) = out.get_mut(block.from).filter(|_| cells[block.from].events <= 1) {
                glyph.event = Some(block.at);
            }
            continue;
        }
        for glyph in &mut out[block.from..block.to] {
            *glyph = Glyph { fill: Fill::Inside, category, event: Some(block.at) };
        }
        // An event that extends beyond the window has no mark on that side.
        let (start, end) = of.span(id.to_event());
        let (begins, ends) = (start >= window.start, end <= window.end);
        if begins {
            out[block.from].fill = Fill::Begin;
        }
        if ends && wide > 2 {
            out[block.to - 1].fill = Fill::End;
        }
        write_name(&mut out, of, block, (begins, ends), id.to_event());
    }
    out
}

/// Minimum width of a truncated name, in columns.
const LEAST_NAME: usize = 5;

/// Writes the name of an event into its columns, and its duration if there is room.
fn write_name(out: &mut [Glyph], of: &Events<'_>, block: Block, (begins, ends): (bool, bool), event: crate::analysis::timeline::Event) {
    let from = block.from + usize::from(begins);
    let room = block.to.saturating_sub(from + usize::from(ends));
    if room < 2 {
        return;
    }
    let name = of.event_name(event);
    let (start, end) = of.span(event);
    let long = format!("{name} {}", Nanos(end - start));
    // Omit the name if only a few letters would fit.
    if display_width(&name) > room && room < LEAST_NAME {
        return;
    }
    let text = if display_width(&long) <= room { long } else { cut_end(&name, room) };
    let mut at = from;
    for letter in text.graphemes(true) {
        let wide = display_width(letter);
        if wide == 0 || at + wide > from + room {
            continue;
        }
        out[at].fill = Fill::Letter(letter.to_owned());
        for covered in &mut out[at + 1..at + wide] {
            covered.fill = Fill::Covered;
        }
        at += wide;
    }
}

/// Glyphs of a device or thread as a whole; idle columns show the cause of idle time.
pub fn summary_glyphs(cells: &[Cell], shades: &[Option<TimeCategory>], of: &Events<'_>, lane: Option<&Lane>) -> Vec<Glyph> {
    let mut out = density_glyphs(cells, of, lane);
    for (glyph, shade) in out.iter_mut().zip(shades) {
        if let (Fill::Blank, Some(part)) = (&glyph.fill, shade) {
            glyph.fill = Fill::Idle(*part);
        }
    }
    out
}

/// Value that fills a column: 100 for percentages, otherwise the largest value.
pub fn full_value(plot: &Plot) -> f64 {
    if plot.unit.contains('%') { plot.most.max(100.0) } else { plot.most }
}

/// A value over time as an area.
pub fn area_glyphs(plot: &Plot, profile: &Profile, window: Window) -> Vec<Glyph> {
    let full = full_value(plot).max(f64::MIN_POSITIVE);
    let glyph = |level: Option<Level>| match level {
        Some(l) if l.mean > 0.0 => Glyph { fill: Fill::Level(to_eighths(l.mean / full)), category: None, event: None },
        _ => Glyph::BLANK,
    };
    plot.column_levels(profile, window).into_iter().map(glyph).collect()
}

/// Glyphs without color: blocks in brackets, idle time as the lower-case letter of its cause.
pub fn to_text(glyphs: &[Glyph]) -> String {
    let mut out = String::with_capacity(glyphs.len() * 2);
    for glyph in glyphs {
        match &glyph.fill {
            Fill::Blank => out.push(' '),
            Fill::Level(n) => out.push_str(level_char(*n)),
            Fill::Begin => out.push('['),
            Fill::End => out.push(']'),
            Fill::Letter(letter) => out.push_str(letter),
            Fill::Covered => {}
            Fill::Inside => out.push('─'),
            Fill::Idle(part) => out.push_str(&part.letter().to_lowercase()),
        }
    }
    out
}
