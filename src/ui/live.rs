//! Live view of a traced program: GPU utilization, limits, longest-running kernels, and overhead of the tracer.

use super::live_measured;
use super::panel::{Panel, draw_lines, draw_message, fits_borders, split_top};
use super::text::{align_left, align_right, bar, wrap_text};
use super::widgets::stacked_bar::{Share, share_legend, stacked_bar};
use super::widgets::{finding_glyph, highlight_row, hint_badge, share_sparkline};
use super::{Role, Theme};
use crate::analysis::labels::{cut_end, cut_middle, display_width};
use crate::analysis::live::{KernelNow, Live};
use crate::analysis::triage::{Severity, TimeCategory, Triage};
use crate::app::Watched;
use crate::model::live::Recorder;
use crate::model::text::escape_unsafe;
use crate::model::{Bytes, Nanos, ServerSummary, units};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

/// Maximum number of GPUs with a chart.
const GPUS: usize = 4;
/// Width of the label in front of a chart, and of the figure after it.
const NAME: usize = 11;
const FIGURE: usize = 9;
/// Minimum terminal width, in columns, to show the verdict to the right of the charts.
const BESIDE: u16 = 100;
/// Maximum number of rows of a chart.
const HIGH: usize = 4;
/// If the totals start at least this long after the recording, ns, show the time span that they cover.
const LATE: i64 = 3_000_000_000;
/// Number of rows for the verdict: headline, bar, legend.
const VERDICT: u16 = 6;

/// Draws the screen before the first process appears.
pub fn draw_waiting(frame: &mut Frame<'_>, area: Rect, output: &std::path::Path, theme: &Theme) {
    let text = format!(
        "No process is being traced here yet: nothing called {}.PID.wstrace is there. A trace begins with the first use of CUDA.",
        output.display()
    );
    draw_message(frame, area, &text, theme);
}

/// Draws a panel with a title, followed by a dimmed note.
fn draw_framed(frame: &mut Frame<'_>, area: Rect, (title, note): (&str, String), bordered: bool, theme: &Theme) -> Rect {
    let title = vec![Span::styled(title.to_owned(), theme.style(Role::Title)), Span::styled(note, theme.style(Role::Dim))];
    Panel::new(title).draw(frame, area, bordered, theme)
}

pub fn draw(frame: &mut Frame<'_>, mut area: Rect, watched: &Watched, live: &Live, theme: &Theme) {
    let bordered = fits_borders(area);
    let edge = if bordered { 2 } else { 1 };
    let said = remark_lines(live, usize::from(area.width.saturating_sub(2)), theme);
    let pictures = u16::try_from(live.devices.len().clamp(1, GPUS) + 1 + memory_lines(watched, live, 80, theme).len()).unwrap_or(2);
    let beside = area.width >= BESIDE;
    let high = if beside { pictures.max(VERDICT) } else { pictures } + edge;
    let mut top = split_top(&mut area, high);
    let last = recent_interval(live);
    if beside {
        let [gpus, verdict] = Layout::horizontal([Constraint::Percentage(45), Constraint::Min(40)]).areas(top);
        top = gpus;
        draw_verdict(frame, verdict, live, bordered, theme);
    }
    let inner = draw_framed(frame, top, ("GPU busy", format!(", the last {} s", live.launches.len())), bordered, theme);
    draw_lines(frame, inner, over_time(watched, live, (inner.width.into(), inner.height.into()), theme));
    if !beside {
        let rows = if area.height > 18 { VERDICT } else { 4 };
        draw_verdict(frame, split_top(&mut area, rows + edge), live, bordered, theme);
    }
    let foot = u16::try_from(said.len()).unwrap_or(1).min(area.height / 2);
    let rows = area.height - foot;
    let mut table = split_top(&mut area, rows);
    let measured = live_measured::panel_rows(live, table);
    let below = Rect { y: table.bottom() - measured, height: measured, ..table };
    table.height -= measured;
    if let Some(results) = live.measured.as_deref().filter(|_| measured > 0) {
        live_measured::draw(frame, below, (watched, results), bordered, theme);
    }
    let note = if live.recent_ns == 0 {
        format!(", {} by time since the start", units::format_count(live.kernels.len() as u64, "kernel"))
    } else {
        format!(", {} by time in the last {last}", units::format_count(live.different, "kernel"))
    };
    let inner = draw_framed(frame, table, ("Kernels", note), bordered, theme);
    draw_kernels(frame, inner, watched, live, theme);
    draw_lines(frame, Rect { x: area.x + 1, width: area.width.saturating_sub(1), ..area }, said);
}

/// Length of the recent interval, in words.
fn recent_interval(live: &Live) -> String {
    if live.seconds == 1 { "second".to_owned() } else { format!("{} s", live.seconds) }
}

/// Utilization of each GPU and launches over time, using all available rows, and the memory use that nvidia-smi
/// reports.
fn over_time(watched: &Watched, live: &Live, (columns, rows): (usize, usize), theme: &Theme) -> Vec<Line<'static>> {
    if live.devices.is_empty() {
        return vec![Line::styled("no kernel has ended yet", theme.style(Role::Dim))];
    }
    let wide = columns.saturating_sub(NAME + FIGURE);
    let below = memory_lines(watched, live, columns, theme);
    let shown = live.devices.len().min(GPUS);
    let high = (rows.saturating_sub(below.len() + 1) / shown).clamp(1, HIGH);
    let mut out = Vec::new();
    let mut row = |name: &str, picture: Vec<String>, figure: &str, role: Role| {
        let last = picture.len().saturating_sub(1);
        for (i, line) in picture.into_iter().enumerate() {
            let (name, figure) = if i == last { (name, figure) } else { ("", "") };
            out.push(Line::from(vec![
                Span::styled(align_left(&cut_end(name, NAME - 1), NAME), theme.style(Role::Dim)),
                Span::styled(line, theme.style(role)),
                Span::styled(align_right(figure, FIGURE), theme.style(Role::Title)),
            ]));
        }
    };
    for (i, device) in live.devices.iter().take(GPUS).enumerate() {
        row(
            &format!("GPU {i}"),
            area_rows(device.busy.iter().copied(), wide, high),
            &units::format_whole_percent(live.recent_busy_share(device) * 100.0),
            Role::Bar,
        );
    }
    let most = live.launches.iter().copied().flatten().max().unwrap_or(0).max(1) as f64;
    row(
        "launches/s",
        area_rows(live.launches.iter().map(|n| n.map(|n| n as f64 / most)), wide, 1),
        &format_rate(live.launch_rate()),
        Role::Dim,
    );
    out.extend(below);
    out
}

/// Shares over time, latest on the right, as rows of eighth blocks from top to bottom.
fn area_rows(shares: impl DoubleEndedIterator<Item = Option<f64>>, columns: usize, rows: usize) -> Vec<String> {
    let mut all: Vec<Option<f64>> = shares.rev().take(columns).collect();
    all.resize(columns, None);
    all.reverse();
    let piece = |row: usize| {
        let part = move |share: f64| (share * rows as f64 - (rows - 1 - row) as f64).clamp(0.0, 1.0);
        // Only the bottom row distinguishes zero, a small share, and a missing one.
        let lowest = row + 1 == rows;
        share_sparkline(all.iter().map(|s| s.map(part).filter(|p| lowest || *p > 0.0)), columns)
    };
    (0..rows).map(piece).collect()
}

/// Formats a rate in about four characters.
fn format_rate(n: f64) -> String {
    match n {
        n if n >= 1e6 => format!("{:.1} M", n / 1e6),
        n if n >= 1e4 => format!("{:.0} k", n / 1e3),
        n if n >= 1e3 => format!("{:.1} k", n / 1e3),
        n if n >= 10.0 || n == 0.0 => format!("{n:.0}"),
        n => format!("{n:.1}"),
    }
}

/// Metrics of the server, and the GPUs' memory, power and clocks, if available.
fn memory_lines(watched: &Watched, live: &Live, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let of = |(index, samples): (&u32, &std::collections::VecDeque<crate::launch::doctor::smi::Busy>)| {
        let last = samples.back()?;
        let used = last.used.map(|mib| format!("{:.1} GiB", mib as f64 / 1024.0));
        let power = last.power.map(|w| format!("{w:.0} W"));
        let clock = last.clock.map(|mhz| format!("{mhz} MHz"));
        let text: Vec<String> = [used, power, clock].into_iter().flatten().collect();
        (!text.is_empty()).then(|| format!("GPU {index} {}", text.join(" ")))
    };
    let all: Vec<String> = watched.gpus.iter().filter_map(of).take(GPUS).collect();
    let memory = match &all[..] {
        [] => None,
        [one] => Some(one.trim_start_matches("GPU 0 ").to_owned()),
        _ => Some(all.join(" · ")),
    };
    let server = live.server.as_ref().map(ServerSummary::to_text).filter(|text| !text.is_empty());
    let rows = [("server", server, Role::Text), ("memory", memory, Role::Dim)];
    let line = |(name, text, role): (&str, Option<String>, Role)| {
        Some(Line::styled(cut_end(&format!("{}{}", align_left(name, NAME), text?), columns), theme.style(role)))
    };
    rows.into_iter().filter_map(line).collect()
}

/// Draws the verdict on the last seconds and the time breakdown.
fn draw_verdict(frame: &mut Frame<'_>, area: Rect, live: &Live, bordered: bool, theme: &Theme) {
    let judged = live.judged.as_ref();
    let Some(triage) = judged.and_then(|j| j.triage.as_deref()) else {
        let inner = draw_framed(frame, area, ("What limits it", String::new()), bordered, theme);
        let text = match judged {
            _ if live.recorders.iter().any(|r| !r.ended && r.stopped.is_some()) => "recording has stopped: see below",
            Some(_) if live.is_recording() == Some(false) => "nothing is recorded while the recording is closed",
            Some(_) => "nothing ran on a GPU in the last 10 s",
            None => "the first verdict comes in a moment",
        };
        draw_lines(frame, inner, vec![Line::styled(text, theme.style(Role::Dim))]);
        return;
    };
    let length = Nanos::format_ns(triage.length() as f64);
    let age = (live.now - judged.map_or(live.now, |j| j.at)) / 1_000_000_000;
    let when = if age > 3 { format!(", of {length}, {age} s ago") } else { format!(", of the last {length}") };
    let finding = triage.verdict();
    let mut title = vec![Span::styled("What limits it", theme.style(Role::Title))];
    if let Some(f) = finding {
        let (glyph, role) = finding_glyph(f);
        title = vec![Span::styled(format!("{glyph} {}", f.id.id()), theme.style(role))];
        if f.severity != Severity::Healthy && f.stake > 0.0 {
            title.push(Span::styled(format!("  up to {}", units::format_whole_percent(f.gain_percent())), theme.style(Role::Title)));
        }
    }
    title.push(Span::styled(when, theme.style(Role::Dim)));
    let inner = Panel::new(title).draw(frame, area, bordered, theme);
    let columns = usize::from(inner.width);
    let headline = finding.map_or_else(|| "nothing stands out".to_owned(), |f| escape_unsafe(&f.headline).into_owned());
    let rows = usize::from(inner.height);
    let mut text = wrap_text(&headline, columns);
    let most = if rows >= usize::from(VERDICT) { 3 } else { 1 };
    if text.len() > most {
        let rest = text.split_off(most - 1).join(" ");
        text.push(cut_end(&rest, columns));
    }
    let mut out: Vec<Line<'static>> = text.into_iter().map(|l| Line::styled(l, theme.style(Role::Text))).collect();
    let shares = time_shares(triage, theme);
    out.push(stacked_bar(&shares, columns));
    out.extend(share_legend(&shares, columns, rows.saturating_sub(out.len()).min(2), theme.style(Role::Dim), theme));
    draw_lines(frame, inner, out);
}

/// Time breakdown of the GPUs.
fn time_shares(triage: &Triage, theme: &Theme) -> Vec<Share> {
    let share = |part: TimeCategory| {
        let name = part.labelled();
        Share::of_category(part, name, triage.part_percent(part) / 100.0, theme)
    };
    TimeCategory::ALL.into_iter().map(share).filter(|s| s.share >= 0.005).collect()
}

/// Titles and widths of a kernel's figures: recent share, launches per second, mean time, share and total time since
/// the start.
const COLUMNS: [(&str, usize); 5] = [("now", 6), ("launches/s", 12), ("mean", 10), ("all", 7), ("time", 10)];
const BAR: usize = 12;
/// Minimum width of a name.
const LEAST: usize = 24;
/// Width of the first hint, including the space before it.
const HINT: usize = 28;

#[derive(Clone, Copy)]
struct Widths {
    name: usize,
    bar: usize,
    /// Number of visible [`COLUMNS`].
    figures: usize,
    /// True if the first hint is shown.
    hint: bool,
}

fn fit_widths(columns: usize, live: &Live) -> Widths {
    let sum = |n: usize| COLUMNS[..n].iter().map(|c| c.1).sum::<usize>();
    let hint = live.measured.is_some() && LEAST + sum(1) + HINT <= columns;
    let rest = if hint { columns - HINT } else { columns };
    // Drop less important columns first.
    let figures = (1..=COLUMNS.len()).rev().find(|&n| LEAST + BAR + sum(n) <= rest).unwrap_or(1);
    let bar = if LEAST + BAR + sum(figures) <= rest { BAR } else { 0 };
    let longest = live.kernels.iter().map(|k| display_width(&k.name) + 2).max().unwrap_or(LEAST).max(LEAST);
    Widths { name: rest.saturating_sub(sum(figures) + bar).min(longest), bar, figures, hint }
}

fn draw_kernels(frame: &mut Frame<'_>, area: Rect, watched: &Watched, live: &Live, theme: &Theme) {
    let wide = fit_widths(area.width.into(), live);
    let mut head = align_left("", wide.name + wide.bar);
    COLUMNS[..wide.figures].iter().for_each(|(word, wide)| head.push_str(&align_right(word, *wide)));
    if wide.hint {
        head.push_str("   measured: first hint");
    }
    let mut out = vec![Line::styled(head, theme.style(Role::Head))];
    // If no kernel ran recently, compare rows by the time since the start.
    let time = |k: &KernelNow| if live.recent_ns == 0 { k.all.1 } else { k.recent.1 };
    let most = live.kernels.first().map_or(1, time).max(1);
    let rows = usize::from(area.height).saturating_sub(1);
    if rows == 0 {
        return;
    }
    let at = watched.traced.selected_index();
    let top = (at + 1).saturating_sub(rows);
    for kernel in live.kernels.iter().skip(top).take(rows) {
        out.push(kernel_line(kernel, live, time(kernel) as f64 / most as f64, wide, theme));
    }
    let row = u16::try_from(at - top + 1).unwrap_or(u16::MAX);
    draw_lines(frame, area, out);
    if row < area.height && !live.kernels.is_empty() {
        highlight_row(frame.buffer_mut(), Rect { y: area.y + row, height: 1, ..area }, theme);
    }
}

fn kernel_line(kernel: &KernelNow, live: &Live, share: f64, wide: Widths, theme: &Theme) -> Line<'static> {
    let (count, ns) = kernel.recent;
    let percent = |part: i64, whole: i64| units::format_percent(part as f64 / whole.max(1) as f64 * 100.0);
    let quiet = count == 0;
    let text = if quiet { Role::Dim } else { Role::Text };
    let name = cut_middle(&escape_unsafe(&kernel.name), wide.name - 2);
    let mut spans = vec![Span::styled(align_left(&name, wide.name), theme.style(text))];
    if wide.bar > 0 {
        spans.extend(bar(share, wide.bar, theme.style(Role::Part(TimeCategory::Kernels)), theme));
    }
    let (each, times) = if quiet { kernel.all } else { kernel.recent };
    let figures = [
        if quiet { "–".to_owned() } else { percent(ns, live.recent_ns) },
        if quiet { "–".to_owned() } else { format_rate(count as f64 / live.seconds.max(1) as f64) },
        if each == 0 { "–".to_owned() } else { Nanos::format_ns(times as f64 / each as f64) },
        percent(kernel.all.1, live.all_ns),
        Nanos(kernel.all.1).to_string(),
    ];
    let roles = [Role::Title, Role::Text, Role::Text, Role::Dim, Role::Dim];
    for ((text, role), (_, columns)) in figures.into_iter().zip(roles).zip(COLUMNS).take(wide.figures) {
        spans.push(Span::styled(align_right(&text, columns), theme.style(if quiet { Role::Dim } else { role })));
    }
    if let Some(hint) = live.measured.as_ref().and_then(|m| m.of_kernel(&kernel.name)?.first.as_ref()).filter(|_| wide.hint) {
        spans.push(Span::raw("   "));
        spans.extend(hint_badge(hint.id, hint.severity, HINT - 3, theme));
    }
    Line::from(spans)
}

/// Notes on the tracer's state, its overhead, and missing data.
fn remark_lines(live: &Live, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let dim = theme.style(Role::Dim);
    let mut out = Vec::new();
    let there: Vec<&Recorder> = live.recorders.iter().filter(|r| !r.ended && r.not_recorded.is_none()).collect();
    let bytes: u64 = live.recorders.iter().map(|r| r.bytes).sum();
    let kept = there.iter().find_map(|r| r.kept_ms);
    let mut text = vec![format!("{} recorded, {} written", units::format_count(live.recorded_kernels(), "kernel"), Bytes(bytes))];
    text.extend(live.bytes.map(|b| format!("{}/s", Bytes(b as u64))));
    text.extend(live.cost.map(|c| format!("tracer's threads {:.1}% of a core", c * 100.0)));
    text.extend((live.since > live.began + LATE).then(|| format!("sums of the last {}", Nanos(live.now - live.since))));
    text.extend(live.is_sampled().then(|| "short moments are recorded: figures are estimates from these".to_owned()));
    text.extend(kept.map(|ms| format!("the last {} are kept", Nanos::format_ns(ms as f64 * 1e6))));
    text.extend((there.len() > 1).then(|| format!("{} processes", there.len())));
    out.push(Line::styled(cut_end(&text.join(" · "), columns), dim));
    if let Some(r) = there.iter().max_by_key(|r| r.measured).filter(|r| r.measured > 0) {
        let share = r.measuring_ns as f64 / (r.time - r.started).max(1) as f64 * 100.0;
        let text = format!(
            "{} measured, which took {} of the run so far",
            units::format_count(r.measured, "launch"),
            units::format_percent(share)
        );
        out.push(Line::styled(cut_end(&text, columns), dim));
    }
    let lost: u64 = live.recorders.iter().map(|r| r.lost).sum();
    let mut wrong = |text: String| out.push(Line::styled(cut_end(&text, columns), theme.style(Role::Bad)));
    if lost > 0 {
        wrong(format!("{} lost: CUPTI had no room for them", units::format_count(lost, "record")));
    }
    for r in &live.recorders {
        if let Some(why) = &r.stopped {
            let still = if r.ended { "" } else { "; the program keeps running" };
            wrong(format!("process {}: the recording has ended: {why}{still}", r.pid));
        }
        if let Some(why) = &r.not_recorded {
            wrong(format!("process {} is not recorded: {}", r.pid, escape_unsafe(why)));
        }
    }
    for r in &there {
        let mut doubt = |text: String| out.push(Line::styled(cut_end(&text, columns), theme.style(Role::Warn)));
        if let Some(m) = &r.measuring {
            let (name, seconds) = (cut_middle(&escape_unsafe(&m.kernel), 40), m.ms / 1000);
            doubt(match m.passes {
                Some(passes) => {
                    format!("a launch of {name} has been replayed for {seconds} s ({} in all)", units::format_count(passes, "pass"))
                }
                None => format!("a measured launch of {name} has been running for {seconds} s: does it wait for another kernel?"),
            });
        }
        // If there are several ranks, the tracer measures only the first.
        if let Some(why) = r.not_measured.as_ref().filter(|_| r.rank.is_none_or(|rank| rank == 0)) {
            let what = if r.measured > 0 { "no longer measured" } else { "not measured" };
            doubt(format!("process {} is {what}: {}", r.pid, escape_unsafe(why)));
        }
    }
    if live.catching_up() {
        out.push(Line::styled(format!("reading what was recorded before: {} left", Bytes(live.behind)), theme.style(Role::Warn)));
    }
    out
}
