//! Time breakdown of a run: stacked bars with a legend, and utilization over time.

use super::text::{align_left, align_right};
use super::widgets::stacked_bar::share_cells;
use super::{Role, Theme};
use crate::analysis::labels::display_width;
use crate::analysis::triage::{JudgedDevice, RUNNING, Slice, TimeCategory, Triage};
use crate::model::{Nanos, units};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

/// Maximum number of devices to draw separately.
const DEVICES: usize = 4;

/// Bars of the devices with their legend, and the utilization over time.
pub fn lines(triage: &Triage, columns: usize, room: u16, ascii: bool, theme: &Theme) -> Vec<Line<'static>> {
    let several = triage.devices.len() > 1;
    let length = triage.length().max(1) as f64;
    let mut out = Vec::new();
    let numbers: std::collections::BTreeSet<Option<u32>> = triage.devices.iter().map(|d| d.number).collect();
    let shared = numbers.len() < triage.devices.len();
    let label = match (shared, several) {
        (true, _) => 15,
        (false, true) => 8,
        _ => 0,
    };
    for device in triage.devices.iter().take(if room < 16 { 1 } else { DEVICES }) {
        let mut spans = Vec::new();
        if several {
            spans.push(Span::styled(align_left(&device_name(device, shared), label), theme.style(Role::Dim)));
        }
        let shares: Vec<(TimeCategory, f64)> = device.parts.iter().map(|(p, ns)| (*p, *ns as f64 / length)).collect();
        spans.extend(stacked_spans(&shares, columns.saturating_sub(label), theme));
        out.push(Line::from(spans));
    }
    if triage.devices.len() > DEVICES {
        let more = triage.devices.len() - DEVICES;
        out.push(Line::styled(format!("… and {} more", units::format_count(more, "device")), theme.style(Role::Dim)));
    }
    out.extend(legend_lines(triage, columns, ascii, theme));
    if room >= 14 {
        out.extend(strip_lines(triage, columns, ascii, theme));
    }
    out
}

fn device_name(device: &JudgedDevice, shared: bool) -> String {
    match (device.number, device.pid) {
        (Some(n), Some(pid)) if shared => format!("GPU {n} {pid}"),
        (Some(n), _) => format!("GPU {n}"),
        (None, Some(pid)) => format!("process {pid}"),
        _ => "GPU".to_owned(),
    }
}

/// Time breakdown of all devices, as one bar.
pub fn share_bar(triage: &Triage, columns: usize, theme: &Theme) -> Vec<Span<'static>> {
    let shares: Vec<(TimeCategory, f64)> = TimeCategory::ALL.into_iter().map(|p| (p, triage.part_percent(p) / 100.0)).collect();
    stacked_spans(&shares, columns, theme)
}

/// Stacked bar: the width of a part is its share, and its name is inside if there is room.
fn stacked_spans(shares: &[(TimeCategory, f64)], columns: usize, theme: &Theme) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    let there: Vec<&(TimeCategory, f64)> = shares.iter().filter(|s| s.1 > 0.0005).collect();
    // The bar is full even if tiny parts are left out.
    let sum = there.iter().map(|s| s.1).sum::<f64>().max(f64::MIN_POSITIVE);
    let cells = share_cells(&there.iter().map(|s| s.1 / sum).collect::<Vec<_>>(), columns);
    for (at, ((part, share), wide)) in there.into_iter().zip(cells).filter(|c| c.1 > 0).enumerate() {
        let percent = units::format_whole_percent(share * 100.0);
        let text = [format!(" {} {percent} ", part.short_label()), format!(" {percent} ")].into_iter().find(|t| display_width(t) <= wide);
        let style = theme.style(Role::Part(*part));
        spans.push(filled_span(&text.unwrap_or_default(), wide, (style, part.letter()), at));
    }
    spans
}

/// Text on a colored background; without colors, the rest is filled with the part's letter, on alternating backgrounds.
fn filled_span(text: &str, columns: usize, (style, letter): (Style, &str), at: usize) -> Span<'static> {
    let rest = columns - display_width(text).min(columns);
    match (style.fg.is_none(), at % 2 == 1) {
        (true, true) => Span::styled(format!("{text}{}", letter.repeat(rest)), style),
        (true, false) => Span::styled(format!("{text}{}", letter.repeat(rest)), style.add_modifier(Modifier::REVERSED)),
        (false, _) => Span::styled(format!("{text}{}", " ".repeat(rest)), style.add_modifier(Modifier::REVERSED)),
    }
}

const LEGEND: usize = 37;

/// All categories that have time, each with its time and share over all devices.
fn legend_lines(triage: &Triage, columns: usize, ascii: bool, theme: &Theme) -> Vec<Line<'static>> {
    let devices = triage.devices.len().max(1) as f64;
    let there: Vec<(TimeCategory, f64, f64)> = TimeCategory::ALL
        .into_iter()
        .map(|p| (p, triage.devices.iter().map(|d| d.parts[p as usize].1).sum::<i64>() as f64 / devices, triage.part_percent(p)))
        .filter(|p| p.1 > 0.0)
        .collect();
    let across = (columns / LEGEND).clamp(1, 5).min(there.len().max(1));
    let down = there.len().div_ceil(across);
    let wide = columns / across;
    (0..down)
        .map(|row| {
            let cell = |(part, ns, percent): &(TimeCategory, f64, f64)| {
                let style = theme.style(Role::Part(*part));
                let name = triage.doubt_idle(part.labelled());
                vec![
                    Span::styled(format!("{} ", part_glyph(*part, "■", ascii, theme)), style),
                    Span::styled(align_left(&name, wide.saturating_sub(2 + 9 + 6 + 1).min(22)), theme.style(Role::Text)),
                    Span::styled(align_right(&units::format_percent(*percent), 6), theme.style(Role::Title)),
                    Span::styled(align_right(&Nanos::format_ns(*ns), 9), theme.style(Role::Dim)),
                ]
            };
            let mut spans = Vec::new();
            for entry in there.iter().skip(row).step_by(down) {
                let mut cell = cell(entry);
                let used: usize = cell.iter().map(|s| display_width(&s.content)).sum();
                cell.push(Span::raw(" ".repeat(wide.saturating_sub(used))));
                spans.extend(cell);
            }
            Line::from(spans)
        })
        .collect()
}

/// Glyph of a category: a block in its color, or its letter if there are no colors or blocks.
pub fn part_glyph(part: TimeCategory, block: &'static str, ascii: bool, theme: &Theme) -> &'static str {
    if ascii || theme.style(Role::Part(part)).fg.is_none() { part.letter() } else { block }
}

/// Blocks of a column, by height in eighths.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Slices of the strip, averaged to `wide` columns; the idle category of a column is the most frequent one.
fn strip_columns(slices: &[Slice], wide: usize) -> Vec<Slice> {
    let column = |x: usize| {
        let from = (x * slices.len() / wide).min(slices.len() - 1);
        let part = &slices[from..((x + 1) * slices.len() / wide).clamp(from + 1, slices.len())];
        let mut running = [0.0_f32; RUNNING.len()];
        for slice in part {
            running.iter_mut().zip(slice.running).for_each(|(sum, share)| *sum += share / part.len() as f32);
        }
        let idle = || part.iter().filter_map(|s| s.idle);
        Slice { running, idle: idle().max_by_key(|p| idle().filter(|q| q == p).count()) }
    };
    (0..if slices.is_empty() { 0 } else { wide }).map(column).collect()
}

/// Height of a share in steps of `1 / most`; non-zero shares are always visible.
fn height_of(share: f32, most: usize) -> usize {
    if share > 0.0 { ((share * most as f32).round() as usize).clamp(1, most) } else { 0 }
}

/// The non-idle category that accounts for most of the time in a column.
fn main_running(slice: &Slice) -> Option<(TimeCategory, f32)> {
    RUNNING.into_iter().zip(slice.running).filter(|s| s.1 > 0.0).max_by(|a, b| a.1.total_cmp(&b.1))
}

/// Shares over time as eighth blocks, each column in the color of the category that ran most in it.
fn level_spans(columns: &[Slice], theme: &Theme) -> Vec<Span<'static>> {
    let span = |slice: &Slice| {
        let part = main_running(slice).map_or(TimeCategory::Kernels, |s| s.0);
        Span::styled(LEVELS[height_of(slice.busy(), 8)].to_string(), theme.style(Role::Part(part)))
    };
    columns.iter().map(span).collect()
}

/// Parts of a column from the bottom up, with the height of their upper ends in steps of `1 / most`: everything that
/// ran, then the idle category.
fn column_parts(slice: &Slice, most: usize) -> Vec<(Option<TimeCategory>, usize)> {
    let top = height_of(slice.busy(), most);
    let total = slice.running.iter().sum::<f32>();
    let mut sum = 0.0;
    let mut out: Vec<(Option<TimeCategory>, usize)> = Vec::new();
    for (part, share) in RUNNING.into_iter().zip(slice.running).filter(|s| s.1 > 0.0) {
        sum += share;
        let end = (sum / total * top as f32).round() as usize;
        if end > out.last().map_or(0, |o| o.1) {
            out.push((Some(part), end));
        }
    }
    if top < most {
        out.push((slice.idle, most));
    }
    out
}

/// Rows of columns, top row first: categories that ran, stacked from the bottom, and above them the color of the main
/// idle cause. A cell has two colors, so it shows the two parts that take up most of it.
fn stacked_strip(columns: &[Slice], rows: usize, theme: &Theme) -> Vec<Vec<Span<'static>>> {
    let mut out = vec![Vec::new(); rows];
    for slice in columns {
        let parts = column_parts(slice, rows * 8);
        for (row, spans) in out.iter_mut().rev().enumerate() {
            let (low, high) = (row * 8, row * 8 + 8);
            let mut begin = 0;
            let mut within: Vec<(Option<TimeCategory>, usize, usize)> = Vec::new();
            for (part, end) in &parts {
                if *end > low && begin < high {
                    within.push((*part, begin.max(low) - low, (*end).min(high) - low));
                }
                begin = *end;
            }
            while within.len() > 2 {
                let least = (0..within.len()).min_by_key(|i| within[*i].2 - within[*i].1).unwrap_or_default();
                within.remove(least);
            }
            let color = |part: Option<TimeCategory>| part.and_then(|p| theme.style(Role::Part(p)).fg);
            // Idle time is drawn as background, so that it is not mistaken for something that ran.
            let span = match within[..] {
                [(Some(part), ..)] if !part.is_idle() => Span::styled("█", theme.style(Role::Part(part))),
                [(Some(lower), _, end), (upper, from, _)] if !lower.is_idle() => {
                    let style = theme.style(Role::Part(lower));
                    let level = end.max(from).clamp(1, 7);
                    Span::styled(LEVELS[level].to_string(), color(upper).map_or(style, |c| style.bg(c)))
                }
                [(part, ..), ..] => Span::styled(" ", color(part).map_or(Style::default(), |c| Style::default().bg(c))),
                [] => Span::raw(" "),
            };
            spans.push(span);
        }
    }
    out
}

/// Category that accounts for most of the time in a column, running or idle.
fn main_part(slice: &Slice) -> Option<TimeCategory> {
    let running = main_running(slice);
    match (slice.idle, running) {
        (Some(idle), Some((part, share))) => Some(if share >= 1.0 - slice.busy() { part } else { idle }),
        (idle, running) => idle.or(running.map(|r| r.0)),
    }
}

/// Activity of the devices over the window, with steps as ticks below.
fn strip_lines(triage: &Triage, columns: usize, ascii: bool, theme: &Theme) -> Vec<Line<'static>> {
    const LABEL: usize = 6;
    let wide = columns.saturating_sub(LABEL).max(1);
    let strip = strip_columns(&triage.strip, wide);
    if strip.is_empty() {
        return Vec::new();
    }
    let idle = strip.iter().any(|s| s.idle.is_some());
    let label = |text: &str| Span::styled(align_left(text, LABEL), theme.style(Role::Dim));
    let line = |name: &str, spans: Vec<Span<'static>>| std::iter::once(label(name)).chain(spans).collect::<Line<'static>>();
    let mut out = Vec::new();
    if !ascii && theme.style(Role::Part(TimeCategory::Kernels)).fg.is_some() {
        let names: &[&str] = if idle { &["GPU", ""] } else { &["GPU"] };
        out.extend(stacked_strip(&strip, names.len(), theme).into_iter().zip(names).map(|(spans, name)| line(name, spans)));
    } else {
        out.push(line("busy", level_spans(&strip, theme)));
        // One row of letters tells the parts apart; if only kernels ran, it would just repeat one letter.
        if strip.iter().filter_map(main_part).any(|p| p != TimeCategory::Kernels) {
            let letter = |slice: &Slice| match main_part(slice) {
                Some(part) => Span::styled(part.letter(), theme.style(Role::Part(part))),
                None => Span::raw(" "),
            };
            out.push(line("most", strip.iter().map(letter).collect()));
        }
    }
    // Omit the ticks if they would be closer than every third column.
    if !triage.steps.is_empty() && triage.steps.len() * 3 <= wide {
        let length = triage.length().max(1) as f64;
        let mut ticks = vec![' '; wide];
        for step in &triage.steps {
            let at = (triage.judged.position(step.start) as f64 / length * wide as f64) as usize;
            ticks[at.min(wide - 1)] = '╵';
        }
        out.push(Line::from(vec![
            Span::styled(align_left("steps", LABEL), theme.style(Role::Dim)),
            Span::styled(ticks.into_iter().collect::<String>(), theme.style(Role::Faint)),
        ]));
    }
    out
}

/// Number of columns of the strip in the header.
const SMALL: usize = 24;
/// Maximum number of idle causes in the header.
const NAMED: usize = 2;

/// Utilization of the devices over the window, in a few columns.
pub fn small_strip(triage: &Triage, theme: &Theme) -> Vec<Span<'static>> {
    let mut spans = vec![Span::styled("GPU ", theme.style(Role::Dim))];
    spans.extend(level_spans(&strip_columns(&triage.strip, SMALL), theme));
    spans
}

/// Largest categories of idle time, in percent of the window, whose name is given if the rest of the line covers more.
pub fn idle_causes(triage: &Triage, named: bool, theme: &Theme) -> Vec<Span<'static>> {
    let mut idle: Vec<(TimeCategory, f64)> =
        TimeCategory::ALL.into_iter().filter(|p| p.is_idle()).map(|p| (p, triage.part_percent(p))).filter(|p| p.1 >= 1.0).collect();
    idle.sort_by(|a, b| b.1.total_cmp(&a.1));
    if idle.is_empty() {
        return Vec::new();
    }
    let part = named && triage.length() * 100 < (triage.span.1 - triage.span.0) * 99;
    let word = if part { "steady state idle: " } else { "idle: " };
    let mut spans = vec![Span::styled(word, theme.style(Role::Dim))];
    for (at, (part, percent)) in idle.into_iter().take(NAMED).enumerate() {
        if at > 0 {
            spans.push(Span::styled(" · ", theme.style(Role::Faint)));
        }
        spans.push(Span::styled(format!("{} {}", part.short_label(), units::format_whole_percent(percent)), theme.style(Role::Part(part))));
    }
    spans
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::ColorMode;
    use crate::ui::theme::Library;

    fn slice(kernels: f32, collectives: f32, copies: f32, idle: Option<TimeCategory>) -> Slice {
        Slice { running: [kernels, collectives, copies], idle }
    }

    #[test]
    fn the_strip_tells_kernels_collectives_copies_and_idle_causes_apart() {
        use TimeCategory::{Collectives, Copies, Kernels, Launching, Waiting};
        let strip = [
            slice(1.0, 0.0, 0.0, None),
            slice(0.5, 0.5, 0.0, None),
            slice(0.0, 0.0, 0.5, Some(TimeCategory::Waiting)),
            slice(0.0, 0.0, 0.0, Some(TimeCategory::Launching)),
        ];
        let theme = Library::new(Vec::new()).theme("dark", ColorMode::True).unwrap();
        let color = |part| theme.style(Role::Part(part)).fg.unwrap();
        let rows = stacked_strip(&strip, 2, &theme);
        let (upper, lower) = (&rows[0], &rows[1]);
        assert_eq!(upper.iter().map(|s| s.content.as_ref()).collect::<String>(), "██  ");
        assert_eq!(lower.iter().map(|s| s.content.as_ref()).collect::<String>(), "███ ");
        let fg = |spans: &[Span<'_>]| spans.iter().map(|s| s.style.fg).collect::<Vec<_>>();
        assert_eq!(fg(&upper[..2]), [Some(color(Kernels)), Some(color(Collectives))]);
        assert_eq!(fg(&lower[..3]), [Some(color(Kernels)), Some(color(Kernels)), Some(color(Copies))]);
        assert_eq!((upper[2].style.bg, lower[3].style.bg), (Some(color(Waiting)), Some(color(Launching))));
        // The two parts of one cell.
        let cell = &stacked_strip(&[slice(0.25, 0.5, 0.0, Some(Waiting))], 1, &theme)[0][0];
        assert_eq!((cell.content.as_ref(), cell.style.fg, cell.style.bg), ("▆", Some(color(Collectives)), Some(color(Waiting))));
    }

    #[test]
    fn without_colours_a_row_of_letters_tells_them_apart() {
        let strip = [slice(1.0, 0.0, 0.0, None), slice(0.2, 0.7, 0.0, None), slice(0.3, 0.0, 0.0, Some(TimeCategory::Waiting))];
        let letters: Vec<&str> = strip.iter().filter_map(main_part).map(TimeCategory::letter).collect();
        assert_eq!(letters, ["K", "N", "W"]);
    }
}
