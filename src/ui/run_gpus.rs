//! GPU utilization during a run.

use super::text::{align_left, align_right};
use super::widgets::{gauge, share_sparkline};
use super::{Role, Theme};
use crate::app::Watched;
use crate::launch::doctor::smi::Busy;
use crate::model::units;
use ratatui::text::{Line, Span};
use std::collections::VecDeque;

/// Maximum number of GPUs to draw.
const GPUS: usize = 8;
/// Widths of `GPU 12` and of a figure.
const NAME: usize = 7;
const FIGURE: usize = 5;

fn format_percent(value: Option<f32>) -> String {
    value.map_or_else(|| "–".to_owned(), |v| units::format_whole_percent(v.into()))
}

/// Memory, power and clock from the last sample.
fn device_figures(busy: &Busy) -> String {
    let mut out = Vec::new();
    out.extend(busy.used.map(|mib| format!("{:.1} GiB", mib as f64 / 1024.0)));
    out.extend(busy.power.map(|w| format!("{w:.0} W")));
    out.extend(busy.clock.map(|mhz| format!("{mhz} MHz")));
    out.join("  ")
}

/// One line per GPU: utilization over time, latest value, memory; if there is room, a second line with other figures.
pub fn lines(watched: &Watched, columns: usize, rows: usize, theme: &Theme) -> Vec<Line<'static>> {
    let each = if rows >= watched.gpus.len().min(GPUS) * 2 { 2 } else { 1 };
    let mut out = Vec::new();
    for (index, samples) in watched.gpus.iter().take(GPUS) {
        let Some(last) = samples.back() else { continue };
        let wide = columns.saturating_sub(NAME + FIGURE + 1);
        out.push(Line::from(over_time(*index, samples, wide, theme)));
        if each == 2 {
            let tail = device_figures(last);
            let bar = columns.saturating_sub(NAME + FIGURE + 1 + tail.len() + 2).min(30);
            let mut spans = vec![Span::styled(align_left("memory", NAME), theme.style(Role::Dim))];
            if let Some(memory) = last.memory.filter(|_| bar >= 6) {
                spans.extend(gauge(f64::from(memory) / 100.0, bar, None, theme));
            }
            spans.push(Span::styled(align_right(&format_percent(last.memory), FIGURE + 1), theme.style(Role::Text)));
            spans.push(Span::styled(format!("  {tail}"), theme.style(Role::Dim)));
            out.push(Line::from(spans));
        }
    }
    if watched.gpus.len() > GPUS {
        out.push(Line::styled(format!("… and {} more", watched.gpus.len() - GPUS), theme.style(Role::Dim)));
    }
    out.truncate(rows);
    out
}

/// Name, samples and latest value of one GPU.
fn over_time(index: u32, samples: &VecDeque<Busy>, wide: usize, theme: &Theme) -> Vec<Span<'static>> {
    let now = samples.back().and_then(|b| b.percent);
    let picture = share_sparkline(samples.iter().map(|b| b.percent.map(|p| f64::from(p) / 100.0)), wide);
    vec![
        Span::styled(align_left(&format!("GPU {index}"), NAME), theme.style(Role::Dim)),
        Span::styled(picture, theme.style(Role::Bar)),
        Span::styled(align_right(&format_percent(now), FIGURE + 1), theme.style(Role::Title)),
    ]
}

/// Summary of the first GPU, for a narrow screen.
pub fn summary_line(watched: &Watched, columns: usize, theme: &Theme) -> Option<Line<'static>> {
    let (index, samples) = watched.gpus.iter().next()?;
    let more = watched.gpus.len() - 1;
    let tail = if more > 0 { format!("  and {more} more") } else { String::new() };
    let mut spans = over_time(*index, samples, columns.saturating_sub(NAME + FIGURE + 1 + tail.len()).min(24), theme);
    spans.push(Span::styled(tail, theme.style(Role::Dim)));
    Some(Line::from(spans))
}
