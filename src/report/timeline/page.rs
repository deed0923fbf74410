//! Time window of a timeline as text.

use super::describe::format_time;
use super::paint::{self, to_text};
use super::ruler;
use crate::analysis::labels::{cut_end, cut_middle, display_width};
use crate::analysis::timeline::{Content, Gaps, Group, GroupKey, RowKind, Timeline, Window};
use crate::model::text::escape_unsafe;
use crate::model::{Nanos, Profile, units};
use std::io::{self, Write};

/// Width of the labels.
pub const LABEL: usize = 22;
/// Maximum number of lanes printed per row.
const LANES: usize = 16;

/// Label of a lane; the first lane of a row is labeled with the row's name.
pub fn lane_label(name: &str, lane: usize) -> String {
    if lane == 0 { format!("  {}", escape_unsafe(name)) } else { String::new() }
}

fn write_line(out: &mut dyn Write, label: &str, line: &str) -> io::Result<()> {
    let label = cut_end(label, LABEL - 1);
    let line = format!("{label}{}{line}", " ".repeat(LABEL - display_width(&label)));
    writeln!(out, "{}", line.trim_end())
}

/// Cause of a group's idle time in each column.
pub fn idle_shades(gaps: Option<&Gaps>, group: &Group, window: Window) -> Vec<Option<crate::analysis::triage::TimeCategory>> {
    match (gaps, group.key) {
        (Some(gaps), GroupKey::Device(device)) => gaps.dominant_parts(device, window),
        _ => vec![None; window.columns],
    }
}

/// Content of the printed window.
pub struct Shown<'a> {
    pub timeline: &'a Timeline,
    pub gaps: Option<&'a Gaps>,
    /// Only rows of these kinds; all rows if empty.
    pub kinds: &'a [RowKind],
}

/// Prints a window: devices and threads with their rows. Blocks are in brackets; lower-case letters on a device's own
/// line indicate the cause of idle time.
pub fn print_page(out: &mut dyn Write, profile: &Profile, shown: &Shown<'_>, window: Window) -> io::Result<()> {
    let of = shown.timeline.event_reader(profile);
    let step = window.column_width();
    writeln!(
        out,
        "{}: {} to {} ({}), {} of {} each",
        escape_unsafe(&profile.file_name()),
        format_time(window.start, step),
        format_time(window.end, step),
        Nanos(window.length()),
        units::format_count(window.columns, "column"),
        Nanos(step)
    )?;
    write_line(out, "", &ruler::axis_line(window, &[]))?;
    let mut letters = std::collections::BTreeSet::new();
    for group in shown.timeline.groups.iter().filter(|g| g.is_relevant()) {
        let wanted = |kind: RowKind| shown.kinds.is_empty() || shown.kinds.contains(&kind);
        if !group.rows.iter().any(|r| wanted(r.key.kind)) {
            continue;
        }
        let shades = idle_shades(shown.gaps, group, window);
        let glyphs = paint::summary_glyphs(&group.summary_cells(&of, window), &shades, &of, group.main_lane().map(|t| t.1));
        letters.extend(glyphs.iter().filter_map(|g| if let paint::Fill::Idle(part) = g.fill { Some(part) } else { None }));
        let about = if group.about.is_empty() { String::new() } else { format!(" {}", escape_unsafe(&group.about)) };
        write_line(out, &format!("{}{about}", escape_unsafe(&group.name)), &to_text(&glyphs))?;
        for row in group.rows.iter().filter(|r| wanted(r.key.kind)) {
            match &row.content {
                Content::Lanes(lanes) => {
                    let mut empty = 0;
                    for (number, lane) in lanes.iter().enumerate().take(LANES) {
                        let line = to_text(&paint::lane_glyphs(lane, &of, window));
                        // Omit lanes without events in the window, except for the first.
                        if number > 0 && line.trim().is_empty() {
                            empty += 1;
                            continue;
                        }
                        write_line(out, &lane_label(&row.name, number), &line)?;
                    }
                    let more = lanes.len().saturating_sub(LANES);
                    if more > 0 && empty < LANES - 1 {
                        write_line(out, "", &format!("… {} deeper", units::format_count(more, "lane")))?;
                    }
                }
                Content::Plot(plot) => {
                    let full = crate::analysis::metric::human_number(paint::full_value(plot), metric_unit(&plot.unit));
                    // The value at which a cell is full, not one that was reached.
                    let full = format!("to {} {}", full.0, full.1);
                    // Truncate the name rather than the full-scale value.
                    let room = (LABEL - 4).saturating_sub(display_width(&full));
                    write_line(
                        out,
                        &format!("  {} {full}", cut_middle(&escape_unsafe(&row.name), room)),
                        &to_text(&paint::area_glyphs(plot, profile, window)),
                    )?;
                }
            }
        }
    }
    if !letters.is_empty() {
        let legend: Vec<String> = letters.iter().map(|p| format!("{} {}", p.letter().to_lowercase(), p.short_label())).collect();
        writeln!(out, "idle: {}", legend.join(", "))?;
    }
    Ok(())
}

/// Unit of a counter, in the notation used for metrics.
pub fn metric_unit(unit: &str) -> &str {
    match unit {
        "B" => "byte",
        _ if unit.contains('%') => "%",
        other => other,
    }
}
