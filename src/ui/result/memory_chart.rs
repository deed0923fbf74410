//! Text chart of the memory system: units with hit rates, and links with rate and share of the peak; the busiest
//! link is highlighted.

use super::super::{Role, Theme};
use crate::analysis::labels::{cut_end, display_width};
use crate::analysis::memory_chart::{Edge, Flow};
use crate::analysis::metric::{format_count, human_number};
use crate::model::units;
use ratatui::text::{Line, Span};

/// Width of a unit's box.
const UNIT: usize = 11;

fn center_text(text: &str, columns: usize) -> String {
    let text = cut_end(text, columns);
    let rest = columns - display_width(&text);
    format!("{}{text}{}", " ".repeat(rest / 2), " ".repeat(rest - rest / 2))
}

/// Labels of a link: share of the peak, and rate.
fn edge_labels(edge: Option<&Edge>) -> (String, String) {
    let Some(edge) = edge else { return (String::new(), String::new()) };
    let percent = edge.percent.map_or_else(String::new, units::format_whole_percent);
    let rate = edge.rate.map_or_else(String::new, |r| {
        let (number, unit) = human_number(r, "byte/second");
        format!("{number} {unit}")
    });
    (percent, rate)
}

/// Lines of the chart, `columns` wide (at least about 70).
pub fn lines(flow: &Flow, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let busiest = flow.busiest_edge().map(|(e, _)| e.metric.clone());
    let way = (columns.saturating_sub(4 * UNIT + 4) / 3).clamp(8, 22);
    // Hits and requests may be counted in different passes, and their ratio be slightly above 100%.
    let hit = |h: Option<f64>| h.map_or_else(String::new, |h| format!("hit {}", units::format_whole_percent(h.min(100.0))));
    let busy = |b: Option<f64>| b.map_or_else(String::new, |b| format!("busy {}", units::format_whole_percent(b)));
    let boxes = [
        ["SM".to_owned(), String::new(), String::new()],
        ["L1/TEX".to_owned(), hit(flow.l1_hit), busy(flow.busy[0])],
        ["L2".to_owned(), hit(flow.l2_hit), busy(flow.busy[1])],
        ["DRAM".to_owned(), String::new(), busy(flow.busy[2])],
    ];
    let find = |edges: &[Edge], word: &str| edges.iter().find(|e| e.word == word).cloned();
    // The upper links lead to the SM, the lower ones away from it.
    let inward = [flow.l1_data.clone(), find(&flow.l2, "reads"), find(&flow.dram, "reads")];
    let outward = [None, find(&flow.l2, "writes"), find(&flow.dram, "writes")];
    let lit = |edge: Option<&Edge>| {
        let is = edge.is_some_and(|e| busiest.as_deref() == Some(e.metric.as_str()));
        theme.style(if is { Role::Peak } else { Role::Dim })
    };
    let border = theme.style(Role::Border);
    for row in 0..6 {
        let mut spans = vec![Span::raw("  ")];
        for (i, unit) in boxes.iter().enumerate() {
            let inside = UNIT - 2;
            match row {
                0 => spans.push(Span::styled(format!("╭{}╮", "─".repeat(inside)), border)),
                5 => spans.push(Span::styled(format!("╰{}╯", "─".repeat(inside)), border)),
                _ => {
                    let (text, role) = match row {
                        1 => (unit[0].clone(), Role::Title),
                        2 => (unit[1].clone(), Role::Text),
                        3 => (unit[2].clone(), Role::Dim),
                        _ => (String::new(), Role::Dim),
                    };
                    spans.push(Span::styled("│", border));
                    spans.push(Span::styled(center_text(&text, inside), theme.style(role)));
                    spans.push(Span::styled("│", border));
                }
            }
            if i == 3 {
                continue;
            }
            let (edge, blank) = (if row < 3 { inward[i].as_ref() } else { outward[i].as_ref() }, " ".repeat(way));
            let (percent, rate) = edge_labels(edge);
            let text = match row {
                _ if edge.is_none() => blank,
                0 | 5 => center_text(&percent, way),
                1 | 4 => center_text(&rate, way),
                2 => format!("◀{}", "─".repeat(way - 1)),
                _ => format!("{}▶", "─".repeat(way - 1)),
            };
            spans.push(Span::styled(text, lit(edge)));
        }
        out.push(Line::from(spans));
    }
    if let Some(shared) = &flow.shared {
        let (percent, _) = edge_labels(Some(shared));
        let count = shared.bytes.map_or_else(String::new, format_count);
        out.push(Line::from(vec![
            Span::styled("  shared memory  ", theme.style(Role::Dim)),
            Span::styled(format!("{percent} of peak"), lit(Some(shared))),
            Span::styled(format!("  {count} wavefronts"), theme.style(Role::Dim)),
        ]));
    }
    for kind in &flow.kinds {
        let number = |n: Option<f64>| n.map_or_else(String::new, format_count);
        let mut spans = vec![Span::styled(format!("  {:<15}", kind.word), theme.style(Role::Dim))];
        spans.push(Span::styled(format!("{:>12} inst", number(kind.instructions)), theme.style(Role::Text)));
        if let Some(sectors) = kind.sectors {
            // A coalesced access of any width needs at most 16 sectors (Profiling Guide, definition of a sector).
            let role = if sectors > 16.0 { Role::Warn } else { Role::Text };
            spans.push(Span::styled(format!("{sectors:>8.1} sectors/request"), theme.style(role)));
        }
        if let Some(hit) = kind.hit {
            spans.push(Span::styled(format!("  hit {}", units::format_whole_percent(hit.min(100.0))), theme.style(Role::Text)));
        }
        out.push(Line::from(spans));
    }
    for edge in &flow.far {
        let (_, rate) = edge_labels(Some(edge));
        let bytes = edge.bytes.map_or_else(String::new, |b| {
            let (n, u) = human_number(b, "byte");
            format!("{n} {u}")
        });
        out.push(Line::from(vec![
            Span::styled(format!("  {:<15}", edge.word), theme.style(Role::Warn)),
            Span::styled(format!("{bytes:>12}  {rate}"), theme.style(Role::Text)),
        ]));
    }
    if flow.busy.iter().any(Option::is_some) {
        let l1 = if flow.l1_while_active { ", of L1/TEX while it was active" } else { "" };
        let text = format!("  busy: throughput in % of peak over the launch{l1}");
        out.push(Line::styled(cut_end(&text, columns), theme.style(Role::Faint)));
    }
    if let Some((edge, percent)) = flow.busiest_edge() {
        out.push(Line::styled(format!("  busiest: {} at {percent:.0}% of its peak", edge.metric), theme.style(Role::Faint)));
    }
    out
}
