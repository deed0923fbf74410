//! Gauges of unit utilization for a result.

use super::super::{Role, Theme};
use super::gauge;
use crate::analysis::hints::limits::AT_LIMIT;
use crate::analysis::metric::Lookup;
use crate::model::units;
use crate::model::{Metrics, ResultMetrics};
use crate::ui::text::{align_left, align_right};
use ratatui::text::{Line, Span};

/// Labels of the four main figures, and the metrics for them.
pub const FIGURES: [(&str, &[&str]); 4] = [
    ("compute", &["sm__throughput.avg.pct_of_peak_sustained_elapsed", "GPU Speed Of Light Throughput: Compute (SM) Throughput"]),
    ("memory", &["gpu__compute_memory_throughput.avg.pct_of_peak_sustained_elapsed", "GPU Speed Of Light Throughput: Memory Throughput"]),
    (
        "DRAM",
        &[
            "gpu__dram_throughput.avg.pct_of_peak_sustained_elapsed",
            "dram__throughput.avg.pct_of_peak_sustained_elapsed",
            "GPU Speed Of Light Throughput: DRAM Throughput",
        ],
    ),
    ("occupancy", &["sm__warps_active.avg.pct_of_peak_sustained_active", "Occupancy: Achieved Occupancy"]),
];

/// Threshold of a figure as a share of the whole. Occupancy has none, because it is not a share of a unit's peak.
pub fn at_limit(figure: &str) -> Option<f64> {
    (figure != "occupancy").then_some(AT_LIMIT.value / 100.0)
}

/// Width of the labels in front of the bars.
const WORD: usize = 10;

/// One gauge per measured figure.
pub fn gauge_lines(metrics: &Metrics, result: &ResultMetrics, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let lookup = Lookup::new(metrics, result);
    let bar = columns.saturating_sub(WORD + 5);
    let line = |(word, names): &(&str, &[&str])| {
        let percent = lookup.first_finite(names)?;
        let mut spans = vec![Span::styled(align_left(word, WORD), theme.style(Role::Dim))];
        spans.extend(gauge(percent / 100.0, bar, at_limit(word), theme));
        spans.push(Span::styled(align_right(&units::format_whole_percent(percent), 5), theme.style(Role::Title)));
        Some(Line::from(spans))
    };
    FIGURES.iter().filter_map(line).collect()
}
