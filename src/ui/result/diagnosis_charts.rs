//! Diagnosis charts: possible savings, unit utilization, warp stalls, and the kernel's point under the roofline.

use super::super::panel::{Panel, draw_lines, split_top};
use super::super::text::{align_left, align_right, bar, wrap_text};
use super::super::widgets::stacked_bar::{Share, share_legend, stacked_bar};
use super::super::widgets::{gauge, range_bar};
use super::super::{Role, Theme};
use super::{memory_chart, roofline};
use crate::analysis::Family;
use crate::analysis::hints::limits::AT_LIMIT;
use crate::analysis::hints::rule_context::Case;
use crate::analysis::hints::unit_throughput::{Busy, Unit};
use crate::analysis::hints::{Diagnosis, Hint, Severity};
use crate::analysis::labels::{cut_end, display_width};
use crate::analysis::memory_chart::Flow;
use crate::analysis::metric::Lookup;
use crate::app::{ActionId, App, ResultScreen};
use crate::model::text::escape_unsafe;
use crate::model::units;
use crate::model::{Metrics, Nanos};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

/// Minimum number of rows of a body to show the charts above the list.
pub const ABOVE: u16 = 27;
/// Minimum width to show the charts next to the list.
pub const BESIDE: u16 = 160;
/// Maximum number of units to draw.
const UNITS: usize = 7;
/// Largest saving that is stated in whole percent.
const MOST_SAVED: f64 = 0.99;
/// Number of rows for two charts side by side.
const ROWS: u16 = 9;
/// Number of rows for the memory chart, and for a panel that reports missing data.
const MEMORY: u16 = 8;
const LEAST: u16 = 3;
/// Width of the labels in front of bars.
const WORD: usize = 12;
/// Minimum width of the panel of units for a title that names the base of its shares.
const WIDE_TITLE: u16 = 52;
/// The same, for a shorter name of it.
const MIDDLE_TITLE: u16 = 44;

/// Draws the charts at the top of a narrow area, or in the left column of a wide one; returns the remaining area.
pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &ResultScreen, theme: &Theme) -> Rect {
    let case = Case::new(&screen.subject.facts);
    let first = screen.hints.selected_hint().and_then(|i| screen.subject.hints.get(i)).or(screen.subject.hints.first());
    let plot = screen.roofline.plot.as_ref().filter(|p| p.points.iter().any(|p| p.own));
    if area.width < BESIDE {
        let head = first.map_or(0, |h| verdict_height(h, area.width));
        let [top, middle, rest] = Layout::vertical([Constraint::Length(head), Constraint::Length(ROWS), Constraint::Min(4)]).areas(area);
        if let Some(hint) = first {
            draw_verdict(frame, top, (app, screen), (hint, &case), theme);
        }
        let wide = if plot.is_some() && area.width >= 116 { area.width / 4 } else { 0 };
        let [left, centre, right] =
            Layout::horizontal([Constraint::Min(36), Constraint::Length((area.width - wide) / 2), Constraint::Length(wide)]).areas(middle);
        draw_units(frame, left, app, screen, &case, theme);
        draw_stalls(frame, centre, app, screen, &case, theme);
        if let Some(plot) = plot.filter(|_| wide > 0) {
            draw_roofline(frame, right, app, screen, plot, theme);
        }
        return rest;
    }
    let [column, rest] = Layout::horizontal([Constraint::Percentage(45), Constraint::Min(60)]).areas(area);
    let head = first.map_or(0, |h| verdict_height(h, column.width));
    let [top, bars, waits, mut more] =
        Layout::vertical([Constraint::Length(head), Constraint::Length(ROWS + 3), Constraint::Length(ROWS - 1), Constraint::Min(0)])
            .areas(column);
    if let Some(hint) = first {
        draw_verdict(frame, top, (app, screen), (hint, &case), theme);
    }
    draw_units(frame, bars, app, screen, &case, theme);
    draw_stalls(frame, waits, app, screen, &case, theme);
    // AMD counters lack the data for a memory chart, and a thread trace has no rates.
    if screen.is_thread_trace() {
        return rest;
    }
    if more.height >= MEMORY && !screen.subject.is_amd() {
        let place = split_top(&mut more, MEMORY);
        draw_memory(frame, place, app, screen, theme);
    }
    match plot {
        Some(plot) if more.height >= MEMORY => draw_roofline(frame, more, app, screen, plot, theme),
        None if more.height >= LEAST => {
            // With nothing left to collect, there is no floating-point work to place.
            let complete = screen.roofline.plot.as_ref().is_some_and(|p| p.placed.missing.is_empty());
            let text = if complete {
                "No floating-point work was counted: a roofline does not apply.".to_owned()
            } else {
                format!("Not enough was counted: {} says what to collect for it.", app.session.key_label(ActionId::Roofline))
            };
            draw_missing(frame, split_top(&mut more, LEAST), "Roofline", &text, theme);
        }
        _ => {}
    }
    rest
}

/// Draws the charts above the metrics: unit utilization and memory.
pub fn above_metrics(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &ResultScreen, theme: &Theme) -> Rect {
    let [top, rest] = Layout::vertical([Constraint::Length(MEMORY), Constraint::Min(4)]).areas(area);
    let [left, right] = Layout::horizontal([Constraint::Min(36), Constraint::Length((area.width * 2 / 3).max(80))]).areas(top);
    let case = Case::new(&screen.subject.facts);
    draw_units(frame, left, app, screen, &case, theme);
    draw_memory(frame, right, app, screen, theme);
    rest
}

/// Draws the memory chart: rates, hit rates, and the share of the peak that each part reaches.
fn draw_memory(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &ResultScreen, theme: &Theme) {
    let result = screen.metrics.results.get(screen.result);
    let Some(flow) = result.and_then(|r| Flow::from_lookup(&Lookup::new(&screen.metrics, r))) else {
        let text = format!("Not collected: {} collects MemoryWorkloadAnalysis_Chart.", app.session.key_label(ActionId::Rerun));
        draw_missing(frame, area, "Memory", &text, theme);
        return;
    };
    let title = vec![Span::styled("Memory", theme.style(Role::Title)), Span::styled(", % of peak", theme.style(Role::Dim))];
    let most = flow.busiest_edge().map(|b| b.1).into_iter().chain(flow.busy.into_iter().flatten()).reduce(f64::max);
    let busiest = most.map(|percent| format!("busiest {}", units::format_whole_percent(percent))).unwrap_or_default();
    let inner = Panel::new(title).note(vec![Span::styled(busiest, theme.style(Role::Dim))]).draw(frame, area, true, theme);
    let mut all = memory_chart::lines(&flow, usize::from(inner.width), theme);
    all.truncate(usize::from(inner.height));
    draw_lines(frame, inner, all);
}

fn verdict_height(hint: &Hint, width: u16) -> u16 {
    let lines = wrap_text(&escape_unsafe(&hint.headline), usize::from(width.saturating_sub(4))).len().min(2);
    let bars = if without_bars(hint) { 0 } else { 2 };
    u16::try_from(lines + bars).unwrap_or(4) + 2
}

/// Returns true if the hint has no best possible time to draw: the kernel is healthy, or the hint saves launches rather
/// than part of this launch.
fn without_bars(hint: &Hint) -> bool {
    hint.severity == Severity::Healthy || hint.id == Diagnosis::LaunchOverhead
}

/// Draws the hint: duration of the kernel, best possible duration, and the reason for it.
fn draw_verdict(frame: &mut Frame<'_>, area: Rect, (app, screen): (&App, &ResultScreen), (hint, case): (&Hint, &Case<'_>), theme: &Theme) {
    let worth = super::worth_in_run(app, screen, hint);
    let (mark, role) = super::hint_mark(app, screen, hint);
    let title = vec![
        Span::styled(format!("{mark} {}", hint.id.id()), theme.style(role)),
        Span::styled(format!("  {}", hint.sure.as_str()), theme.style(Role::Dim)),
    ];
    let saved = hint.gain_text_in_run(worth.as_ref());
    let mut panel = Panel::new(title);
    let healthy = without_bars(hint);
    if !healthy {
        panel = panel.note(vec![Span::styled(saved, theme.style(Role::Title))]);
    }
    let inner = panel.draw(frame, area, true, theme);
    let columns = usize::from(inner.width);
    let mut out = Vec::new();
    if !healthy {
        let ns = case.facts.duration_ns();
        let time = |share: f64| ns.map_or_else(|| units::format_whole_percent(share * 100.0), |ns| Nanos::format_ns(ns * share));
        let wide = columns.saturating_sub(WORD + 10);
        let (least, most) = hint.gain_range();
        let word = if hint.details.gain.expected.is_some() { "then" } else { "at best" };
        let mut spans = vec![Span::styled(align_left("now", WORD), theme.style(Role::Dim))];
        spans.extend(bar(1.0, wide, theme.style(Role::Bar), theme));
        spans.push(Span::styled(align_right(&time(1.0), 10), theme.style(Role::Title)));
        out.push(Line::from(spans));
        // The bar extends from the best to the worst expected time.
        // Savings are rounded down to a percent, and the times agree with them.
        let most = most.min(MOST_SAVED);
        let (best, worst) = (1.0 - most, if hint.details.gain.expected.is_some() { 1.0 - least.min(most) } else { 1.0 - most });
        let both = if worst - best < 0.01 { time(best) } else { format!("{} to {}", time(best), time(worst)) };
        let wide = wide.saturating_sub(display_width(&both).saturating_sub(9));
        let mut spans = vec![Span::styled(align_left(word, WORD), theme.style(Role::Dim))];
        spans.extend(range_bar(best, worst, wide, theme.style(Role::Good), theme));
        spans.push(Span::styled(align_right(&both, display_width(&both).max(9) + 1), theme.style(Role::Title)));
        out.push(Line::from(spans));
    }
    let mut text = wrap_text(&escape_unsafe(&hint.headline), columns);
    if text.len() > 2 {
        text.truncate(2);
        if let Some(last) = text.last_mut() {
            *last = cut_end(&format!("{last} …"), columns);
        }
    }
    out.extend(text.into_iter().map(|l| Line::styled(l, theme.style(Role::Text))));
    draw_lines(frame, inner, out);
}

/// Draws the utilization of each unit, busiest first.
/// Says which counters would show how busy the units are, without those that the report has.
fn missing_counters(metrics: &Metrics, result: usize) -> String {
    let Some(result) = metrics.results.get(result) else { return String::new() };
    let lookup = Lookup::new(metrics, result);
    let has = |name: &str| lookup.value(name).is_some();
    let cycles: Vec<&str> =
        ["SQ_ACTIVE_INST_VALU", "SQ_VALU_MFMA_BUSY_CYCLES", "SQ_LDS_IDX_ACTIVE"].into_iter().filter(|n| !has(n)).collect();
    let mut groups = Vec::new();
    if !cycles.is_empty() || !has("GRBM_GUI_ACTIVE") {
        groups.push(if cycles.is_empty() { "GRBM_GUI_ACTIVE".to_owned() } else { format!("GRBM_GUI_ACTIVE with {}", cycles.join(", ")) });
    }
    groups.extend(["FETCH_SIZE", "WRITE_SIZE"].into_iter().filter(|n| !has(n)).map(str::to_owned));
    let peaks = if has("FETCH_SIZE") || has("WRITE_SIZE") {
        " The report does not say which GPU this is, so the peak of its memory is not known."
    } else {
        ""
    };
    if groups.is_empty() { peaks.trim_start().to_owned() } else { format!("Not in this report: {}.{peaks}", groups.join("; ")) }
}

fn draw_units(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &ResultScreen, case: &Case<'_>, theme: &Theme) {
    let mut ranked: Vec<Busy> = case.demand.shown_units();
    // The rules ignore L2 for a plain stream from device memory, of which it counts both directions; the chart includes
    // it, as ncu does, but below device memory.
    let both_ways = case.demand.get(Unit::L2).is_none();
    if both_ways && let Some(share) = case.facts.share("l2_throughput") {
        let above = ranked.iter().rposition(|b| b.unit == Unit::Dram || b.share > share).map_or(0, |at| at + 1);
        ranked.insert(above, Busy { unit: Unit::L2, share, concept: "l2_throughput" });
    }
    let amd = screen.subject.is_amd();
    let ranked: Vec<(&str, f64)> = if amd {
        screen.subject.units.clone()
    } else {
        ranked.iter().map(|b| (if both_ways && b.unit == Unit::L2 { "L2 rd+wr" } else { b.unit.label() }, b.share)).collect()
    };
    if ranked.is_empty() {
        let text = if amd {
            missing_counters(&screen.metrics, screen.result)
        } else {
            format!("Not collected: {} collects SpeedOfLight.", app.session.key_label(ActionId::Rerun))
        };
        draw_missing(frame, area, "Units", &text, theme);
        return;
    }
    let of = match area.width {
        WIDE_TITLE.. => ", % of peak over the whole kernel",
        MIDDLE_TITLE.. => ", % of peak, whole kernel",
        _ => ", % of peak",
    };
    let title = vec![Span::styled("Units", theme.style(Role::Title)), Span::styled(of, theme.style(Role::Dim))];
    let note = vec![Span::styled(format!("┊ {:.0}%", AT_LIMIT.value), theme.style(Role::Dim))];
    let inner = Panel::new(title).note(note).draw(frame, area, true, theme);
    let wide = usize::from(inner.width).saturating_sub(WORD + 5);
    let rows = usize::from(inner.height).min(if area.width >= BESIDE / 3 { UNITS + 3 } else { UNITS });
    let line = |(label, share): &(&str, f64)| {
        let mut spans = vec![Span::styled(align_left(label, WORD), theme.style(Role::Text))];
        spans.extend(gauge(*share, wide, Some(AT_LIMIT.value / 100.0), theme));
        let percent = if *share > 0.0 && *share < 0.005 { "<1".to_owned() } else { format!("{:.0}", share * 100.0) };
        spans.push(Span::styled(align_right(&percent, 5), theme.style(Role::Title)));
        Line::from(spans)
    };
    draw_lines(frame, inner, ranked.iter().take(rows).map(line).collect());
}

/// Colours of the parts, from largest to smallest, as on the source screen.
const SHADES: [Role; 6] = [Role::Peak, Role::Bar, Role::Family(Family::Attention), Role::Family(Family::Nccl), Role::Dim, Role::BarEmpty];

/// Draws the warp stall reasons between two instructions, or the wave cycles on an AMD GPU.
fn draw_stalls(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &ResultScreen, case: &Case<'_>, theme: &Theme) {
    if screen.subject.is_amd() {
        let sampled = screen.metrics.names.iter().any(|n| &**n == "PC_Samples");
        return draw_waves(frame, area, &screen.subject.waves, if sampled { ", % of the samples" } else { ", % of their cycles" }, theme);
    }
    let Some(stalls) = &case.stalls else {
        let text =
            format!("Not collected: {} collects WarpStateStats, or samples with SourceCounters.", app.session.key_label(ActionId::Rerun));
        draw_missing(frame, area, "Warps wait for", &text, theme);
        return;
    };
    let ranked = stalls.ranked_reasons();
    let issuing = stalls.share("selected");
    let waits: Vec<(String, f64)> = ranked.iter().filter(|r| r.0 != "selected").map(|r| (r.0.replace('_', " "), r.1)).collect();
    let title = vec![Span::styled("Warps wait for", theme.style(Role::Title)), Span::styled(", % of their cycles", theme.style(Role::Dim))];
    let note = vec![Span::styled(format!("issuing {}", units::format_whole_percent(issuing * 100.0)), theme.style(Role::Dim))];
    draw_parts(frame, area, Panel::new(title).note(note), &waits, theme);
}

/// Width of a percentage, with the gap before it.
const FIGURE: usize = 5;

/// Draws the wave cycles or samples on an AMD GPU by activity.
fn draw_waves(frame: &mut Frame<'_>, area: Rect, spent: &[(&'static str, f64)], of: &'static str, theme: &Theme) {
    if spent.is_empty() {
        let text = "Not collected: SQ_WAVE_CYCLES with SQ_WAIT_ANY, SQ_WAIT_INST_ANY and SQ_ACTIVE_INST_ANY.";
        return draw_missing(frame, area, "Waves", text, theme);
    }
    let title = vec![Span::styled("Waves", theme.style(Role::Title)), Span::styled(of, theme.style(Role::Dim))];
    let active =
        spent.iter().find(|s| s.0 == "active").map(|s| format!("active {}", units::format_whole_percent(s.1 * 100.0))).unwrap_or_default();
    let note = vec![Span::styled(active, theme.style(Role::Dim))];
    // The counters of an AMD GPU may count a cycle more than once: then the shares are no parts of a whole.
    if spent.iter().map(|s| s.1).sum::<f64>() > 1.005 {
        let inner = Panel::new(title).note(vec![Span::styled("they overlap", theme.style(Role::Dim))]).draw(frame, area, true, theme);
        let name = spent.iter().map(|s| display_width(s.0)).max().unwrap_or(0);
        let columns = usize::from(inner.width).saturating_sub(name + FIGURE + 1);
        let lines = spent.iter().map(|(word, share)| {
            let mut spans = vec![Span::styled(align_left(word, name + 1), theme.style(Role::Text))];
            spans.extend(bar(*share, columns, theme.style(Role::Bar), theme));
            spans.push(Span::styled(align_right(&units::format_whole_percent(share * 100.0), FIGURE), theme.style(Role::Title)));
            Line::from(spans)
        });
        return draw_lines(frame, inner, lines.collect());
    }
    let waits: Vec<(String, f64)> = spent.iter().filter(|s| s.0 != "active").map(|s| (s.0.to_owned(), s.1)).collect();
    draw_parts(frame, area, Panel::new(title).note(note), &waits, theme);
}

/// Draws parts of a whole as one bar with a legend, largest first.
fn draw_parts(frame: &mut Frame<'_>, area: Rect, panel: Panel, ranked: &[(String, f64)], theme: &Theme) {
    let mut shares: Vec<Share> = Vec::new();
    let mut waits = ranked.iter();
    for (role, (reason, share)) in SHADES.into_iter().take(SHADES.len() - 1).zip(&mut waits) {
        if *share >= 0.005 {
            shares.push(Share { name: reason.clone(), share: *share, style: theme.style(role), letter: None });
        }
    }
    let rest: f64 = waits.map(|r| r.1).sum();
    if rest >= 0.005 {
        shares.push(Share { name: "the rest".to_owned(), share: rest, style: theme.style(Role::BarEmpty), letter: None });
    }
    let inner = panel.draw(frame, area, true, theme);
    let columns = usize::from(inner.width);
    let mut out = vec![stacked_bar(&shares, columns), stacked_bar(&shares, columns)];
    // The bar is two rows tall; only one of them contains the figures.
    if let Some(first) = out.first_mut() {
        for span in &mut first.spans {
            span.content = " ".repeat(crate::analysis::labels::display_width(&span.content)).into();
        }
        if shares.iter().any(|s| s.style.fg.is_none()) {
            out.remove(0);
        }
    }
    let rows = usize::from(inner.height).saturating_sub(out.len());
    out.extend(share_legend(&shares, columns, rows, theme.style(Role::Text), theme));
    draw_lines(frame, inner, out);
}

fn draw_roofline(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    screen: &ResultScreen,
    plot: &crate::analysis::roofline::Plot,
    theme: &Theme,
) {
    let title = vec![Span::styled("Roofline", theme.style(Role::Title))];
    let note = vec![Span::styled(app.session.key_label(ActionId::Roofline), theme.style(Role::Key))];
    let inner = Panel::new(title).note(note).draw(frame, area, true, theme);
    roofline::draw_mini_chart(frame, inner, screen.roofline.selected, plot, theme);
}

/// Draws a panel that reports missing data.
fn draw_missing(frame: &mut Frame<'_>, area: Rect, title: &'static str, text: &str, theme: &Theme) {
    let inner = Panel::new(vec![Span::styled(title, theme.style(Role::Dim))]).draw(frame, area, true, theme);
    let text = wrap_text(text, usize::from(inner.width)).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))).collect();
    draw_lines(frame, inner, text);
}
