//! Kernels of a report: the most expensive ones, limits of the measured ones, and commands to measure kernels again.

use super::block::{Block, Picture, Table};
use super::svg::{Svg, WIDTH};
use crate::analysis::hints::{Severity, Subject, diagnosed_kernel};
use crate::analysis::labels::cut_label;
use crate::analysis::median_launch::median_launch;
use crate::analysis::readable::readable_name;
use crate::analysis::roofline::{Level, Plot};
use crate::analysis::{GroupBy, Grouping};
use crate::model::{Metrics, Nanos, Profile, units};
use crate::report::hints::{hint_text, no_hints_reason};
use crate::report::triage::format_flops;
use crate::rerun::confirm::Counted;
use crate::rerun::{Options, Target, plan};
use std::sync::Arc;

/// Maximum numbers of listed kernels, of explained results, and of kernels with a re-run command.
const KERNELS: usize = 20;
const RESULTS: usize = 12;
const AGAIN: usize = 3;
/// Maximum length of a kernel name, in characters.
const NAME: usize = 70;

/// The kernels of a timeline.
pub fn of_launches(profile: &Profile) -> Vec<Block<'static>> {
    let grouping = Grouping::from_profile(profile, GroupBy::Kernel, None);
    if grouping.rows.is_empty() {
        return Vec::new();
    }
    let mut rows: Vec<(usize, &crate::analysis::kernel_groups::GroupRow)> = grouping.rows.iter().enumerate().collect();
    rows.sort_by_key(|(_, r)| (std::cmp::Reverse(r.stats.total), r.name_rank));
    let cells = rows.iter().take(KERNELS).map(|(_, r)| {
        let median = r.stats.median.map_or_else(String::new, Nanos::format_ns);
        let count = units::format_grouped(r.stats.count);
        let max = Nanos(r.stats.max).to_string();
        vec![cut_label(&r.name, NAME), Nanos(r.stats.total).to_string(), units::format_percent(r.share_percent), count, median, max]
    });
    let head = vec![("kernel", false), ("time", true), ("share", true), ("launches", true), ("median", true), ("longest", true)];
    let mut out = vec![
        Block::Heading(3, "Kernels".to_owned()),
        Block::Text("Time in the whole run; shares are of the time of all kernels.".to_owned()),
        Block::Table(Table { head, rows: cells.collect() }),
    ];
    if rows.len() > KERNELS {
        out.push(Block::Text(format!("{} more are not listed.", units::format_count(rows.len() - KERNELS, "kernel"))));
    }
    let mut commands = Vec::new();
    for (row, _) in rows.iter().take(AGAIN) {
        let Some(launch) = median_launch(profile, &grouping.row_launches(profile, None, *row)) else { continue };
        let made = plan(profile, &Target::Launches(vec![crate::model::LaunchId(launch)]), &Options::default()).ok();
        let Some(command) = made.and_then(|p| p.commands.into_iter().next()) else { continue };
        let Some(block) = Block::command(command.argv()) else { continue };
        commands.push(block);
        commands.extend(command.warnings.iter().filter(|w| w.inexact).map(|w| Block::Text(format!("Not exact: {}", w.text))));
    }
    if !commands.is_empty() {
        out.push(Block::Text("To profile one launch of each of the first again:".to_owned()));
        out.extend(commands);
    }
    out
}

fn duration(metrics: &Metrics, s: &Subject) -> i64 {
    let of = |r: usize| {
        let result = metrics.results.get(r)?;
        // AMD's profilers report the duration among the counters.
        metrics
            .duration(result)
            .or_else(|| Some(Nanos(metrics.number(result, "Duration").filter(|n| n.is_finite() && *n > 0.0)?.round() as i64)))
    };
    s.result.and_then(of).map_or(0, |d| d.0)
}

/// Measured kernels, longest first.
fn measured_subjects(profile: &Profile, metrics: &Metrics) -> Vec<Subject> {
    let mut subjects: Vec<Subject> =
        diagnosed_kernel::list_places(profile).into_iter().filter_map(|p| p.diagnose_kernel(profile)).collect();
    subjects.sort_by_key(|s| (std::cmp::Reverse(duration(metrics, s)), s.launch));
    subjects
}

/// Diagnosis of the measured kernel with the longest duration.
pub fn verdict_text(profile: &Profile, metrics: &Metrics) -> Option<String> {
    let subjects = measured_subjects(profile, metrics);
    let first = subjects.first()?;
    let hint = first.hints.first()?;
    Some(format!(
        "{} ({}): {}: {}",
        cut_label(&readable_name(&first.kernel), NAME),
        Nanos(duration(metrics, first)),
        hint.id.id(),
        hint.headline
    ))
}

/// Results of individual kernels, as measured by a profiler.
pub fn of_results(profile: &Profile, metrics: &Arc<Metrics>, timeline: Option<&Profile>) -> Vec<Block<'static>> {
    let counted = Counted::new(profile, timeline);
    let subjects = measured_subjects(profile, metrics);
    let duration = |s: &Subject| duration(metrics, s);
    let mut out = vec![Block::Heading(3, "Kernels that were measured".to_owned())];
    let rows = subjects.iter().map(|s| {
        let first = s.hints.first().map_or_else(|| no_hints_reason(s), |h| h.id.id().to_owned());
        let gain = s.hints.first().filter(|h| h.severity > Severity::Healthy).map_or_else(String::new, |h| h.details.gain.to_text());
        vec![s.launch.to_string(), cut_label(&readable_name(&s.kernel), NAME), Nanos(duration(s)).to_string(), first, gain]
    });
    let head = vec![("result", true), ("kernel", false), ("duration", true), ("what limits it", false), ("saves", true)];
    out.push(Block::Table(Table { head, rows: rows.take(KERNELS * 2).collect() }));
    out.extend(subjects.first().and_then(|s| roofline_picture(metrics, s.result?)).map(Block::Picture));
    for subject in subjects.iter().take(RESULTS) {
        out.push(Block::Heading(4, format!("{} (result {})", cut_label(&readable_name(&subject.kernel), NAME), subject.launch)));
        if subject.hints.is_empty() {
            out.push(Block::Text(no_hints_reason(subject)));
        }
        out.extend(subject.hints.iter().take(2).map(|h| Block::Finding(hint_text(h))));
        let command = subject.hints.first().and_then(|h| counted.confirm_command(subject, &h.confirm).ok());
        out.extend(command.and_then(|c| Block::command(c.argv())));
    }
    if subjects.len() > RESULTS {
        out.push(Block::Text(format!(
            "{} more are not explained here; `warpscope hints` has them.",
            units::format_count(subjects.len() - RESULTS, "result")
        )));
    }
    out
}

/// Roofline: work per second against work per byte, with the roofs of the first result's chip.
fn roofline_picture(metrics: &Arc<Metrics>, result: usize) -> Option<Picture> {
    let plot = Plot::from_result(metrics, result, &[]);
    let points: Vec<_> = plot.points.iter().filter(|p| p.intensity.is_finite() && p.intensity > 0.0 && p.achieved > 0.0).collect();
    let memory = plot.placed.traffic.first().and_then(|t| t.peak)?;
    let roofs: Vec<(String, f64)> = plot.known_roofs().into_iter().filter(|r| r.used).map(|r| (r.work.name.clone(), r.peak)).collect();
    let highest = roofs.iter().map(|r| r.1).fold(0.0, f64::max);
    if points.is_empty() || highest <= 0.0 {
        return None;
    }
    let (left, right, top, bottom) = (70.0, WIDTH - 20.0, 16.0, 300.0);
    let xs = points.iter().map(|p| p.intensity).chain([highest / memory]);
    let (least, most) = xs.fold((f64::MAX, 0.0_f64), |(l, m), x| (l.min(x), m.max(x)));
    let (x0, x1) = ((least / 3.0).log10(), (most * 3.0).log10());
    let lowest = points.iter().map(|p| p.achieved).fold(f64::MAX, f64::min).min(highest / 1e3);
    let (y0, y1) = ((lowest / 2.0).log10(), (highest * 2.0).log10());
    let x = |v: f64| left + (v.log10() - x0) / (x1 - x0) * (right - left);
    let y = |v: f64| (bottom - (v.log10() - y0) / (y1 - y0) * (bottom - top)).clamp(top, bottom);
    let mut svg = Svg::new(330.0);
    svg.add_rect((left, top, right - left, bottom - top), "lane", "");
    let from = 10_f64.powf(x0);
    svg.add_line((x(from), y(from * memory)), (x(highest / memory), y(highest)), "roof");
    svg.add_text(
        (x(from) + 6.0, y(from * memory) - 6.0),
        "start",
        "dim",
        &format!("{} {:.0} GB/s", plot.placed.level_name(Level::Dram), memory / 1e9),
    );
    for (name, peak) in &roofs {
        svg.add_line((x(peak / memory).min(right), y(*peak)), (right, y(*peak)), "roof");
        svg.add_text((right - 4.0, y(*peak) - 5.0), "end", "dim", &format!("{name} {}", format_flops(*peak)));
    }
    for p in &points {
        let about = format!("{} ({}): {} at {:.2} operations a byte", p.kernel, p.work_label(), format_flops(p.achieved), p.intensity);
        svg.add_circle((x(p.intensity), y(p.achieved)), if p.own { 7.0 } else { 4.0 }, if p.own { "own" } else { "point" }, &about);
    }
    svg.add_text((left, 322.0), "start", "dim", &format!("operations per byte of {} traffic →", plot.placed.level_name(Level::Dram)));
    svg.add_text((8.0, top + 10.0), "start", "dim", "ops/s ↑");
    let first = points.first().map(|p| format!("{}: {} at {:.2} operations a byte", p.kernel, format_flops(p.achieved), p.intensity));
    Some(svg.into_picture(format!("Roofline. {}", first.unwrap_or_default())))
}
