//! Time breakdown of a run: stacked bars with a legend, and utilisation over time.

use super::text::{align_left, align_right};
use super::{Role, Theme};
use crate::analysis::labels::display_width;
use crate::analysis::triage::{Device, TimeCategory, Triage};
use crate::model::{Nanos, units};
use ratatui::style::{Color, Modifier, Style};
use ratatui::text::{Line, Span};

/// Maximum number of devices drawn separately.
const DEVICES: usize = 4;

/// Bars of the devices with their legend, and the utilisation over time.
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

fn device_name(device: &Device, shared: bool) -> String {
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

/// Stacked bar: the width of a part is its share, with its name inside if there is room.
fn stacked_spans(shares: &[(TimeCategory, f64)], columns: usize, theme: &Theme) -> Vec<Span<'static>> {
    let mut spans = Vec::new();
    let (mut done, mut sum) = (0, 0.0);
    let there: Vec<&(TimeCategory, f64)> = shares.iter().filter(|s| s.1 > 0.0005).collect();
    for (at, (part, share)) in there.iter().enumerate() {
        sum += share;
        let end = if at + 1 == there.len() { columns } else { (sum * columns as f64).round() as usize };
        let wide = end.saturating_sub(done);
        if wide == 0 {
            continue;
        }
        done = end;
        let percent = format!("{:.0}%", share * 100.0);
        let text = [format!(" {} {percent} ", part.short_label()), format!(" {percent} ")].into_iter().find(|t| display_width(t) <= wide);
        let style = theme.style(Role::Part(*part));
        spans.extend(filled_spans(text.unwrap_or_default(), wide, style, at));
    }
    spans
}

/// Text on a coloured background; without colours, the backgrounds alternate.
fn filled_spans(text: String, columns: usize, style: Style, at: usize) -> Vec<Span<'static>> {
    let blank = columns - display_width(&text).min(columns);
    let plain = style.fg.is_none();
    if plain && at % 2 == 1 {
        // Draw a shade to distinguish the part from its reversed neighbours.
        return vec![Span::styled(text, style), Span::styled("░".repeat(blank), style)];
    }
    vec![Span::styled(format!("{text}{}", " ".repeat(blank)), style.add_modifier(Modifier::REVERSED))]
}

const LEGEND: usize = 37;

/// All categories with time, each with its time and share over all devices.
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
                let name = if part.is_idle() { format!("idle: {}", part.short_label()) } else { part.short_label().to_owned() };
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

/// Glyph of a category: a block in its colour, or its letter without colours or blocks.
pub fn part_glyph(part: TimeCategory, block: &'static str, ascii: bool, theme: &Theme) -> &'static str {
    if ascii || theme.style(Role::Part(part)).fg.is_none() { part.letter() } else { block }
}

/// Blocks of a column, by height in eighths.
const LEVELS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Shares over time, in steps of `1 / most`, for columns `wide`; non-zero shares are always visible.
fn column_levels(slices: &[f32], wide: usize, most: usize) -> impl Iterator<Item = usize> + '_ {
    (0..if slices.is_empty() { 0 } else { wide }).map(move |x| {
        let from = (x * slices.len() / wide).min(slices.len() - 1);
        let part = &slices[from..((x + 1) * slices.len() / wide).clamp(from + 1, slices.len())];
        let share = part.iter().sum::<f32>() / part.len() as f32;
        if share > 0.0 { ((share * most as f32).round() as usize).clamp(1, most) } else { 0 }
    })
}

/// Shares over time as eighth blocks.
fn level_chars(slices: &[f32], wide: usize) -> String {
    column_levels(slices, wide, 8).map(|level| LEVELS[level]).collect()
}

/// Two rows of columns: busy time from below, and above it the colour of the dominant idle cause.
fn stacked_strip(slices: &[f32], wide: usize, idle: impl Fn(usize) -> Option<Color>, theme: &Theme) -> [Vec<Span<'static>>; 2] {
    let mut rows = [Vec::new(), Vec::new()];
    let busy = theme.style(Role::Part(TimeCategory::Kernels));
    for (x, level) in column_levels(slices, wide, 16).enumerate() {
        let style = idle(x).map_or(busy, |color| busy.bg(color));
        for (row, level) in rows.iter_mut().zip([level.saturating_sub(8), level.min(8)]) {
            row.push(Span::styled(LEVELS[level].to_string(), style));
        }
    }
    rows
}

/// Utilisation of the devices over the window, with steps as ticks below it.
fn strip_lines(triage: &Triage, columns: usize, ascii: bool, theme: &Theme) -> Vec<Line<'static>> {
    const LABEL: usize = 6;
    let wide = columns.saturating_sub(LABEL).max(1);
    let slices = &triage.strip;
    if slices.is_empty() {
        return Vec::new();
    }
    // Dominant idle cause of a column.
    let cause = |x: usize| {
        let (from, to) = (x * slices.len() / wide, ((x + 1) * slices.len() / wide).max(x * slices.len() / wide + 1));
        let part = triage.why.get(from.min(triage.why.len().saturating_sub(1))..to.min(triage.why.len())).unwrap_or_default();
        part.iter().flatten().max_by_key(|p| part.iter().flatten().filter(|q| q == p).count()).copied()
    };
    let idle = triage.why.iter().any(Option::is_some);
    let colored = |x: usize| cause(x).and_then(|part| theme.style(Role::Part(part)).fg);
    let mut out = Vec::new();
    if idle && !ascii && (0..wide).any(|x| colored(x).is_some()) {
        out.extend(stacked_strip(slices, wide, colored, theme).into_iter().zip(["idle", "busy"]).map(|(mut spans, label)| {
            spans.insert(0, Span::styled(align_left(label, LABEL), theme.style(Role::Dim)));
            Line::from(spans)
        }));
    } else {
        out.push(Line::from(vec![
            Span::styled(align_left("busy", LABEL), theme.style(Role::Dim)),
            // This utilisation includes kernels and copies.
            Span::styled(level_chars(slices, wide), theme.style(Role::Part(TimeCategory::Kernels))),
        ]));
    }
    if idle && out.len() == 1 {
        let mut spans = vec![Span::styled(align_left("idle", LABEL), theme.style(Role::Dim))];
        spans.extend((0..wide).map(|x| match cause(x) {
            Some(part) => Span::styled(part_glyph(part, "▀", ascii, theme), theme.style(Role::Part(part))),
            None => Span::raw(" "),
        }));
        out.push(Line::from(spans));
    }
    // Omit ticks that would be closer than every third column.
    if !triage.steps.is_empty() && triage.steps.len() * 3 <= wide {
        let length = triage.length().max(1) as f64;
        let mut ticks = vec![' '; wide];
        for step in &triage.steps {
            let at = ((step.start - triage.window.0) as f64 / length * wide as f64) as usize;
            ticks[at.min(wide - 1)] = '╵';
        }
        out.push(Line::from(vec![
            Span::styled(align_left("steps", LABEL), theme.style(Role::Dim)),
            Span::styled(ticks.into_iter().collect::<String>(), theme.style(Role::Faint)),
        ]));
    }
    out
}

/// Columns of the strip in the header.
const SMALL: usize = 24;
/// Maximum number of idle causes in the header.
const NAMED: usize = 2;

/// Utilisation of the devices over the window, in a few columns.
pub fn small_strip(triage: &Triage, theme: &Theme) -> Vec<Span<'static>> {
    let busy = level_chars(&triage.strip, SMALL);
    vec![Span::styled(busy, theme.style(Role::Part(TimeCategory::Kernels)))]
}

/// Largest categories of idle time, in percent of the window.
pub fn idle_causes(triage: &Triage, theme: &Theme) -> Vec<Span<'static>> {
    let mut idle: Vec<(TimeCategory, f64)> =
        TimeCategory::ALL.into_iter().filter(|p| p.is_idle()).map(|p| (p, triage.part_percent(p))).filter(|p| p.1 >= 1.0).collect();
    idle.sort_by(|a, b| b.1.total_cmp(&a.1));
    if idle.is_empty() {
        return Vec::new();
    }
    // The other figures in the line cover the whole report.
    let part = triage.length() * 100 < (triage.span.1 - triage.span.0) * 99;
    let word = if part { "steady state idle: " } else { "idle: " };
    let mut spans = vec![Span::styled(word, theme.style(Role::Dim))];
    for (at, (part, percent)) in idle.into_iter().take(NAMED).enumerate() {
        if at > 0 {
            spans.push(Span::styled(" · ", theme.style(Role::Faint)));
        }
        spans.push(Span::styled(format!("{} {percent:.0}%", part.short_label()), theme.style(Role::Part(part))));
    }
    spans
}
