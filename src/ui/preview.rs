//! Charts of the selected kernel: limits, unit utilization, distribution of durations, and durations over the run.

use super::text::{align_left, align_right, bar, wrap_text};
use super::widgets::{gauge_lines, hint_badge, severity_glyph};
use super::{Role, Theme, chart};
use crate::analysis::hints::{Diagnosis, Severity};
use crate::analysis::kernel_group_detail::Detail;
use crate::analysis::readable::readable_name;
use crate::analysis::stats::Stats;
use crate::analysis::{GroupBy, GroupRow, labels};
use crate::app::{App, Report};
use crate::model::text::escape_unsafe;
use crate::model::{Nanos, units};
use ratatui::text::{Line, Span};

/// Number of rows of the histogram and of the chart of durations over time.
const ROWS: usize = 3;
/// Maximum number of listed kernels and diagnoses of a group.
const LISTED: usize = 5;
/// If removing a kernel would save more than this part of its time, that needs no words.
const WHOLE_SHARE: f64 = 0.9;
/// Share of the run from which a kernel is the run.
const WHOLE_RUN: f64 = 0.9;
/// Maximum number of headline lines.
const HEADLINE: usize = 3;

/// Lines with the first hint and its headline.
fn verdict_lines(report: &Report, row: usize, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(hint) = report.diagnosed.get(&row) else { return Vec::new() };
    let (mark, role) = severity_glyph(hint.severity);
    let mut out = vec![Line::from(vec![Span::styled(format!("{mark} {}", hint.id.id()), theme.style(role))])];
    let mut lines = wrap_text(&escape_unsafe(&hint.headline), columns);
    if lines.len() > HEADLINE {
        lines.truncate(HEADLINE);
        if let Some(last) = lines.last_mut() {
            *last = labels::cut_end(&format!("{last} …"), columns);
        }
    }
    out.extend(lines.into_iter().map(|l| Line::styled(l, theme.style(Role::Text))));
    out
}

/// Effect of a faster kernel on the duration of the run.
fn of_run(report: &Report, row: usize, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (Some(profile), Some(grouping)) = (&report.profile, &report.groups.grouping) else { return Vec::new() };
    let Some(group) = grouping.rows.get(row).filter(|g| matches!(grouping.by, GroupBy::Kernel | GroupBy::Name) || g.kernels == 1) else {
        return Vec::new();
    };
    let Some(kernel) = group.kernel.and_then(|k| profile.kernels.get(k.0 as usize)) else { return Vec::new() };
    // A curve covers all kernels with the same readable name; a row may cover only some of them, or others as well.
    let name = if grouping.by == GroupBy::Kernel { group.name.as_str().into() } else { readable_name(kernel) };
    let alike = || profile.kernels.iter().filter(|k| k.function() == kernel.function() && readable_name(k) == name).count();
    let whole = grouping.by == GroupBy::Kernel || alike() == group.kernels as usize;
    let Some(curve) = report.worths.get(&name).filter(|_| whole) else { return Vec::new() };
    let hint = report.diagnosed.get(&row);
    let worth = group.kernel.zip(hint).and_then(|(kernel, hint)| report.hint_worth(kernel.0, hint.id, hint.gain));
    let worth = worth.unwrap_or_else(|| curve.evaluate_gain(hint.and_then(|h| h.gain)));
    // Without measurements, "99% of the run, at most 98% to gain" tells nothing.
    if worth.saves.is_none() && worth.launches.is_none() && worth.share > WHOLE_RUN && worth.critical > WHOLE_SHARE * worth.share {
        return Vec::new();
    }
    // The figures are of the judged time, as on the overview, which may be longer than the time from the first to the
    // last operation: a marked step also has the host's part of it.
    let judged = report
        .triage
        .as_ref()
        .and_then(Option::as_ref)
        .filter(|t| report.shows_steady_state() || report.window.is_none() && t.outside.is_none());
    let effect = if let Some(triage) = judged {
        let judged = triage.length().max(1) as f64 * triage.devices.len().max(1) as f64;
        let factor = group.stats.total as f64 / judged / worth.share.max(f64::MIN_POSITIVE);
        worth.scale_to(factor).describe_bound().replace("the run", triage.base)
    } else if report.window.is_some() {
        worth.describe_bound().replace("the run", "the whole run")
    } else {
        worth.describe_bound()
    };
    wrap_text(&effect, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Text))).collect()
}

/// ncu measurements of a launch: first hint and unit utilization. Empty if ncu did not profile the launch.
pub fn of_launch(app: &App, report: &Report, launch: u32, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some((other, pair)) = report.find_pair(launch) else { return Vec::new() };
    let mut out = Vec::new();
    if let Some(hint) = report.verdicts.get(&(Some(other), pair.result)) {
        let (mark, role) = severity_glyph(report.severity_of_launch(launch, hint));
        out.push(Line::styled(format!("{mark} {}", hint.id.id()), theme.style(role)));
        out.extend(wrap_text(&pair.sure.describe(), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
        out.push(Line::default());
    }
    out.extend(measured_gauges(app, (other, pair.result), columns, theme));
    out
}

/// Unit utilization measured by ncu, relative to the peaks.
fn measured_gauges(app: &App, (from, result): (usize, usize), columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some((metrics, result)) = app.session.metrics(from).and_then(|m| Some((m, m.results.get(result)?))) else { return Vec::new() };
    gauge_lines(metrics, result, columns, theme)
}

/// Line that marks a duration below the histogram.
pub fn duration_marker(group: &GroupRow, duration: i64, columns: usize, theme: &Theme) -> Option<Line<'static>> {
    let ln = |v: i64| (v.max(1) as f64).ln();
    let (low, high) = (ln(group.stats.min), ln(group.stats.max));
    let share = (high > low).then(|| (ln(duration) - low) / (high - low))?;
    let text = Nanos(duration).to_string();
    let at = ((share * columns as f64) as usize).min(columns.saturating_sub(1));
    // Put the label on the side that has room.
    let right_side = at + 2 + labels::display_width(&text) <= columns;
    let line = if right_side {
        format!("{}▲ {text}", " ".repeat(at))
    } else {
        format!("{}▲", align_left(&align_right(&text, at.saturating_sub(1)), at))
    };
    Some(Line::styled(line, theme.style(Role::Key)))
}

/// Distribution of durations.
pub fn duration_histogram(group: &GroupRow, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let stats = &group.stats;
    let Some(histogram) = stats.histogram.filter(|_| stats.count > 1 && stats.max > stats.min) else { return Vec::new() };
    let (low, high) = (Nanos(stats.min).to_string(), Nanos(stats.max).to_string());
    if low == high {
        // A chart would show differences that its own labels cannot tell.
        let apart = units::format_percent((stats.max - stats.min) as f64 / stats.min.max(1) as f64 * 100.0);
        let text = format!("all {} took {low}, within {apart}", units::format_count(stats.count, "launch"));
        return wrap_text(&text, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))).collect();
    }
    // Stretch the histogram across the full width.
    let wide: Vec<u64> = (0..columns).map(|x| u64::from(histogram[x * histogram.len() / columns])).collect();
    let mut out = vec![heading_line("durations, log scale", &units::format_count(stats.count, "launch"), columns, theme)];
    out.extend(chart::histogram_lines(&wide, columns, ROWS).into_iter().map(|l| Line::styled(l, theme.style(Role::Bar))));
    let middle = stats.median.map_or_else(String::new, |m| format!("median {}", Nanos::format_ns(m)));
    out.push(axis_labels(&low, &middle, &high, columns, theme));
    out
}

/// Launches by duration in `columns` of equal ratio from `low` to `high` ns, in thousandths of a launch; each bin of
/// the statistics is spread evenly.
fn project_bins(stats: &Stats, (low, high): (f64, f64), columns: usize) -> Vec<u64> {
    let Some(histogram) = stats.histogram else { return Vec::new() };
    let position = |ns: f64| (ns.max(low) / low).ln() / (high / low).ln() * columns as f64;
    let (first, last) = (position(stats.min.max(1) as f64), position(stats.max.max(1) as f64));
    let wide = ((last - first) / histogram.len() as f64).max(1e-9);
    let mut out = vec![0_u64; columns];
    for (bin, &count) in histogram.iter().enumerate().filter(|(_, count)| **count > 0) {
        // If all launches have the same duration, their only bin is placed at that duration.
        let from = if stats.min == stats.max { first } else { first + bin as f64 * wide };
        for (at, column) in out.iter_mut().enumerate() {
            let (left, right) = (at as f64, at as f64 + 1.0);
            let within = if wide < 1e-6 {
                f64::from(u8::from(from.clamp(0.0, columns as f64 - 0.5) >= left && from.min(columns as f64 - 0.5) < right))
            } else {
                ((right.min(from + wide) - left.max(from)) / wide).max(0.0)
            };
            *column += (f64::from(count) * within * 1000.0).round() as u64;
        }
    }
    out
}

/// Histograms of the same kernel in two runs on one axis, each with its label and median.
pub fn paired_histograms(pair: &[(&str, &GroupRow)], columns: usize, room: usize, theme: &Theme) -> Vec<Line<'static>> {
    let drawn: Vec<_> = pair.iter().filter(|(_, g)| g.stats.histogram.is_some() && g.stats.count > 0).collect();
    let low = drawn.iter().map(|(_, g)| g.stats.min.max(1)).min().unwrap_or(1);
    let high = drawn.iter().map(|(_, g)| g.stats.max.max(1)).max().unwrap_or(1);
    if drawn.is_empty() || low >= high || drawn.iter().all(|(_, g)| g.stats.count < 2) {
        return Vec::new();
    }
    let mut out = Vec::new();
    // The axis is needed to read the charts, so these become lower first.
    let tall = (room.saturating_sub(1) / drawn.len()).saturating_sub(1).clamp(1, ROWS);
    for (word, group) in drawn {
        let median = group.stats.median.map_or_else(String::new, |m| format!(", median {}", Nanos::format_ns(m)));
        let counted = format!("{}{median}", units::format_count(group.stats.count, "launch"));
        out.push(heading_line(word, &counted, columns, theme));
        let bins = project_bins(&group.stats, (low as f64, high as f64), columns);
        out.extend(chart::histogram_lines(&bins, columns, tall).into_iter().map(|l| Line::styled(l, theme.style(Role::Bar))));
    }
    out.push(axis_labels(&Nanos(low).to_string(), "durations, log scale", &Nanos(high).to_string(), columns, theme));
    out
}

/// Durations over the course of the run.
fn over_time(detail: &Detail, group: &GroupRow, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    if detail.over_time.is_empty() || group.stats.count < 2 {
        return Vec::new();
    }
    let (low, high) = (group.stats.min, group.stats.max);
    if Nanos(low).to_string() == Nanos(high).to_string() {
        return Vec::new();
    }
    let mut out = vec![heading_line("over the run", &format!("{} to {}", Nanos(low), Nanos(high)), columns, theme)];
    out.extend(
        chart::extent_lines(&detail.over_time, columns, ROWS, (low, high)).into_iter().map(|l| Line::styled(l, theme.style(Role::Bar))),
    );
    out
}

/// Kernels of a group and their diagnoses, sorted by time, because a single launch does not represent several kernels.
fn group_lines(report: &Report, detail: &Detail, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(profile) = &report.profile else { return Vec::new() };
    let total = detail.kernels.iter().map(|k| k.1).fold(0, i64::saturating_add).max(1) as f64;
    let bars = (columns / 4).clamp(6, 16);
    let name = columns.saturating_sub(bars + 8);
    let line = |word: Vec<Span<'static>>, ns: i64| {
        let mut spans = word;
        spans.extend(bar(ns as f64 / total, bars, theme.style(Role::Bar), theme));
        spans.push(Span::styled(align_right(&units::format_percent(ns as f64 / total * 100.0), 7), theme.style(Role::Title)));
        Line::from(spans)
    };
    let mut out = Vec::new();
    let mut by_hint: Vec<(Diagnosis, Severity, i64)> = Vec::new();
    for (kernel, ns) in &detail.kernels {
        let Some(hint) = report.hinted.get(&kernel.0) else { continue };
        match by_hint.iter_mut().find(|h| h.0 == hint.id) {
            Some(sum) => (sum.1, sum.2) = (sum.1.max(hint.severity), sum.2.saturating_add(*ns)),
            None => by_hint.push((hint.id, hint.severity, *ns)),
        }
    }
    by_hint.sort_by_key(|h| std::cmp::Reverse(h.2));
    if !by_hint.is_empty() {
        out.push(heading_line("diagnoses", "share of its kernel time", columns, theme));
        out.extend(by_hint.iter().take(LISTED).map(|(id, severity, ns)| {
            let mut word = hint_badge(*id, *severity, name, theme);
            word.push(Span::raw(" "));
            line(word, *ns)
        }));
        out.push(Line::default());
    }
    out.push(heading_line("kernels", &units::format_count(detail.kernels.len(), "kernel"), columns, theme));
    out.extend(detail.kernels.iter().take(LISTED).map(|(kernel, ns)| {
        let text = profile.kernels.get(kernel.0 as usize).map_or_else(Default::default, readable_name);
        line(
            vec![Span::styled(format!("{} ", align_left(&labels::cut_label(&escape_unsafe(&text), name), name)), theme.style(Role::Text))],
            *ns,
        )
    }));
    out
}

/// Heading with a value on the right.
fn heading_line(word: &str, figure: &str, columns: usize, theme: &Theme) -> Line<'static> {
    // Without room for both, the figure loses its unit; if that is not enough, the word loses its qualifier instead.
    let fits = |word: &str, figure: &str| labels::display_width(word) + 1 + labels::display_width(figure) <= columns;
    let number = figure.split(' ').next().unwrap_or(figure);
    let (word, figure) = match () {
        () if fits(word, figure) => (word, figure),
        () if word.contains(", ") && fits(word, number) => (word, number),
        () => (word.split(", ").next().unwrap_or(word), figure),
    };
    let room = columns.saturating_sub(labels::display_width(word));
    Line::from(vec![
        Span::styled(word.to_owned(), theme.style(Role::Head)),
        Span::styled(align_right(figure, room), theme.style(Role::Dim)),
    ])
}

/// Labels below a chart: left end, middle, right end.
fn axis_labels(low: &str, middle: &str, high: &str, columns: usize, theme: &Theme) -> Line<'static> {
    let rest = columns.saturating_sub(labels::display_width(low) + labels::display_width(high));
    let middle = if labels::display_width(middle) + 2 <= rest { middle } else { "" };
    let before = (rest - labels::display_width(middle)) / 2;
    Line::from(vec![
        Span::styled(low.to_owned(), theme.style(Role::Dim)),
        Span::raw(" ".repeat(before)),
        Span::styled(middle.to_owned(), theme.style(Role::Text)),
        Span::raw(" ".repeat(rest - labels::display_width(middle) - before)),
        Span::styled(high.to_owned(), theme.style(Role::Dim)),
    ])
}

/// Charts of a table row, one below the other.
pub fn lines(app: &App, report: &Report, row: usize, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(grouping) = &report.groups.grouping else { return Vec::new() };
    let Some(group) = grouping.rows.get(row) else { return Vec::new() };
    let detail = report.detail.as_ref().filter(|(by, r, _)| *by == grouping.by && *r == row).map(|d| &d.2);
    // If the row covers several kernels, list all of them.
    let group_of = detail.filter(|d| !d.kernels.is_empty() && !grouping.by.is_kernel());
    let single = grouping.by.is_kernel();
    let blocks = [
        if single { verdict_lines(report, row, columns, theme) } else { Vec::new() },
        if single { of_run(report, row, columns, theme) } else { Vec::new() },
        report.best_result(row).filter(|_| single).map(|b| measured_gauges(app, (b.0, b.1), columns, theme)).unwrap_or_default(),
        group_of.map(|d| group_lines(report, d, columns, theme)).unwrap_or_default(),
        duration_histogram(group, columns, theme),
        detail.map(|d| over_time(d, group, columns, theme)).unwrap_or_default(),
    ];
    let mut out: Vec<Line<'static>> = Vec::new();
    for block in blocks.into_iter().filter(|b| !b.is_empty()) {
        if !out.is_empty() {
            out.push(Line::default());
        }
        out.extend(block);
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn bins_keep_their_launches_on_a_wider_axis() {
        let stats = Stats::from_values(&mut [100_i64, 120, 150, 200, 400, 800]).unwrap();
        for (low, high) in [(100.0, 800.0), (10.0, 100_000.0), (100.0, 801.0)] {
            let bins = project_bins(&stats, (low, high), 60);
            let sum: u64 = bins.iter().sum();
            assert!((5_900..=6_100).contains(&sum), "{low} {high} {sum}");
        }
        let bins = project_bins(&stats, (100.0, 1e6), 40);
        assert!(bins[..9].iter().any(|n| *n > 0) && bins[11..].iter().all(|n| *n == 0), "{bins:?}");
        // All launches have the same duration, including at the ends of the axis.
        for (value, at) in [(100_i64, 0), (1_000, 15), (10_000, 29)] {
            let one = Stats::from_values(&mut [value, value, value]).unwrap();
            let bins = project_bins(&one, (100.0, 10_000.0), 30);
            assert_eq!(bins.iter().position(|n| *n == 3_000), Some(at), "{value} {bins:?}");
        }
    }
}
