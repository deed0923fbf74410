//! Details at the cursor, and figures for the marked time span.

use crate::analysis::labels::{cut_end, display_width, fit_labels};
use crate::analysis::metric::human_number;
use crate::analysis::overview::recorded_time;
use crate::analysis::readable::readable_name;
use crate::analysis::timeline::{Category, Event, Gap, GroupKey, HostCalls, Window, link, sum_calls};
use crate::analysis::triage::{Cause, Finding, TimeCategory, Triage, Verdict};
use crate::app::screens::timeline::inspect::{CursorContent, Look};
use crate::app::{ActionId, App, Report, TimelineScreen};
use crate::model::Nanos;
use crate::model::text::escape_unsafe;
use crate::model::units::{self, format_percent};
use crate::report::timeline::{describe, metric_unit};
use crate::ui::text::{align_left, align_right, wrap_text};
use crate::ui::{Role, Theme};
use ratatui::text::{Line, Span};

/// Width of the labels of facts.
const LABEL: usize = 14;
/// Minimum share of the view that the steady state fills to stand for all of it.
const MOST_OF_VIEW: f64 = 0.8;
/// Maximum share of the run for a view of which one wait may be most, although the run has many.
const ONE_GAP: f64 = 0.9;
/// Minimum width for two columns of facts.
const TWO: usize = 96;
/// Maximum width of a value in two columns.
const SHORT: usize = 34;

/// Title and lines of the pane.
pub struct Pane {
    pub title: Vec<Span<'static>>,
    pub lines: Vec<Line<'static>>,
}

fn fact_lines(facts: &[(String, String)], columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let label = |text: &str| Span::styled(align_left(text, LABEL), theme.style(Role::Dim));
    let mut out = Vec::new();
    let mut short: Option<Vec<Span<'static>>> = None;
    let half = columns / 2;
    for (name, value) in facts {
        let two = columns >= TWO && display_width(value) <= SHORT.min(half.saturating_sub(LABEL + 2));
        if two {
            match short.take() {
                Some(mut spans) => {
                    spans.push(label(name));
                    spans.push(Span::styled(value.clone(), theme.style(Role::Text)));
                    out.push(Line::from(spans));
                }
                None => short = Some(vec![label(name), Span::styled(align_left(value, half - LABEL), theme.style(Role::Text))]),
            }
            continue;
        }
        out.extend(short.take().map(Line::from));
        for (at, line) in wrap_text(value, columns.saturating_sub(LABEL).max(12)).into_iter().enumerate() {
            out.push(Line::from(vec![label(if at == 0 { name } else { "" }), Span::styled(line, theme.style(Role::Text))]));
        }
    }
    out.extend(short.map(Line::from));
    out
}

/// Details at the cursor.
pub fn cursor_pane(
    app: &App,
    report: &Report,
    look: &Look<'_>,
    screen: &TimelineScreen,
    window: Window,
    columns: usize,
    theme: &Theme,
) -> Pane {
    let (Some(place), Some(line)) = (screen.place, screen.current_line()) else { return Pane { title: Vec::new(), lines: Vec::new() } };
    let step = window.column_width();
    let head = |role: Role, text: String| vec![Span::styled(cut_end(&text, columns.saturating_sub(2)), theme.style(role))];
    let time = ("at".to_owned(), describe::format_time(place.cursor, step.min(1_000)));
    match look.content_at(line, place.cursor, window) {
        CursorContent::Event(_, event) => {
            let category = look.events.category(event);
            // The kind already indicates a launch call: show the name of the kernel, unless the call launched a
            // graph.
            let named = match event {
                Event::LaunchCall(row) if look.events.graph_kernels(row).is_none() => Event::Launch(row),
                other => other,
            };
            let name = escape_unsafe(&look.events.event_name(named)).into_owned();
            let role = super::lanes::category_role(category);
            let role = if role == Role::Dim { Role::Title } else { role };
            let mut title = vec![Span::styled(category.display_name(), theme.style(role))];
            let room = columns.saturating_sub(display_width(category.display_name()) + 3);
            if name != category.display_name() {
                title.push(Span::styled(format!(" {}", cut_end(&name, room)), theme.style(Role::Title)));
            }
            let mut all: Vec<(String, String)> =
                describe::event_facts(look.timeline, &look.events, event, step).into_iter().map(|(l, v)| (l.to_owned(), v)).collect();
            if let Some(hint) = launch_diagnosis(report, event) {
                all.insert(2.min(all.len()), ("diagnosis".to_owned(), hint));
            }
            // Put long values last, where they may be truncated.
            let full = escape_unsafe(&describe::full_name(&look.events, named)).into_owned();
            // If the column contains several events, show their number.
            let (start, end) =
                (window.column_start(window.column_at(place.cursor)), window.column_start(window.column_at(place.cursor) + 1));
            let many: usize =
                look.lanes(line).iter().map(|(_, l)| l.count_before(&look.events, end) - l.count_before(&look.events, start)).sum();
            if many > 1 {
                let zoom = app.session.key_label(ActionId::ZoomIn);
                all.push(("in column".to_owned(), format!("{} begin here; {zoom} zooms in", units::format_count(many, "event"))));
            }
            let copy = matches!(event, Event::Mem(_));
            if !copy && (full != name || display_width(&name) > room) {
                all.push(("name".to_owned(), full));
            }
            Pane { title, lines: fact_lines(&all, columns, theme) }
        }
        CursorContent::Idle(gap, piece) => {
            let part = gap.most.cause.part();
            let recorded = &look.profile.recorded;
            let (began_before, goes_on) = (recorded.iter().any(|w| w.0 == gap.start), recorded.iter().any(|w| w.1 == gap.end));
            let most = if began_before || goes_on { "idle for at least " } else { "idle " };
            let mut title = vec![
                Span::styled(most, theme.style(Role::Part(part))),
                Span::styled(Nanos(gap.end - gap.start).to_string(), theme.style(Role::Title)),
            ];
            // A cause that is too long for the title is the first fact.
            let unknown = unrecorded_beginning(report, (gap.start, gap.end));
            let device = look.group(line).and_then(|g| if let GroupKey::Device(number) = g.key { Some(number) } else { None });
            let calls = device.and_then(|device| gap_calls(look, device, &gap));
            let loads = |calls: &Vec<HostCalls>| calls.iter().filter(|c| c.category == Category::Module).map(|c| c.ns).sum::<i64>();
            let cause = match (unknown, &calls) {
                (Some(_), _) => "not known: work from before the recording may have run",
                // Only the load of the code is recorded; what comes before it is not.
                (None, Some(calls)) if gap.most.cause == Cause::Compile && loads(calls) * 2 < gap.end - gap.start => "perhaps compiling",
                _ => gap.most.cause.as_text(),
            };
            let fits = display_width(cause) + 22 + most.len() <= columns;
            if fits {
                title.push(Span::styled(format!("  the host: {cause}"), theme.style(Role::Text)));
            }
            let time_at = |at: i64| describe::format_time(at, step.min(1_000));
            let mut all = vec![("host".to_owned(), cause.to_owned())];
            if began_before || goes_on {
                all.push((
                    "start".to_owned(),
                    time_at(gap.start) + if began_before { " or earlier: the recording opened then" } else { "" },
                ));
                all.push(("end".to_owned(), time_at(gap.end) + if goes_on { " or later: the recording closed then" } else { "" }));
            } else {
                all.push(("from".to_owned(), format!("{} to {}", time_at(gap.start), time_at(gap.end))));
            }
            if fits {
                all.remove(0);
            }
            if piece.end - piece.start < gap.end - gap.start {
                all.push(("at the cursor".to_owned(), {
                    let text = if piece.cause == gap.most.cause { cause } else { piece.cause.as_text() };
                    format!("{text} ({})", Nanos(piece.end - piece.start))
                }));
            }
            all.extend(left_out_phase(report, (gap.start, gap.end)).map(|what| ("phase".to_owned(), what)));
            let sampled = describe::sampled_activities(look.profile, place.cursor, (gap.start, gap.end));
            all.extend(sampled.into_iter().map(|text| ("sampled".to_owned(), text)));
            let mut lines = fact_lines(&all, columns, theme);
            if let (Some(gaps), Some(number)) = (look.gaps, device) {
                let sums = gaps.sum_by_part(number, gap.start, gap.end);
                let pieces = sums.into_iter().map(|(part, ns)| (format!("{} {}", part.short_label(), Nanos(ns)), Role::Part(part)));
                lines.extend(flow_pieces("of that", pieces.collect(), columns, theme));
                if !goes_on {
                    lines.extend(fact_lines(&ending_facts(look, number, gap.end), columns, theme));
                    lines.extend(host_lines(look, number, &gap, calls, columns, theme));
                }
            }
            Pane { title, lines }
        }
        CursorContent::Value(plot, value) => {
            let text = |v: f64| {
                let (number, unit) = human_number(v, metric_unit(&plot.unit));
                format!("{number} {unit}").trim_end().to_owned()
            };
            let name = look.row(line).map_or_else(String::new, |r| escape_unsafe(&r.name).into_owned());
            let mut all = vec![time, ("value".to_owned(), text(value)), ("maximum".to_owned(), text(plot.most))];
            let levels = plot.column_levels(look.profile, Window::new(window.start, window.end, 1));
            all.extend(levels.first().copied().flatten().map(|l| ("mean in view".to_owned(), text(l.mean))));
            Pane { title: head(Role::Title, name), lines: fact_lines(&all, columns, theme) }
        }
        CursorContent::Nothing => {
            let group = look.group(line).map_or_else(String::new, |g| escape_unsafe(&g.name).into_owned());
            Pane { title: head(Role::Dim, format!("{group}: nothing here")), lines: fact_lines(&[time], columns, theme) }
        }
    }
}

/// The kernel that ends a device's idle time, or the next one after a copy that ends it, and its launch call.
fn ending_facts(look: &Look<'_>, device: u32, end: i64) -> Vec<(String, String)> {
    let Some(launch) = link::next_kernel(look.timeline, &look.events, device, end) else { return Vec::new() };
    let name = escape_unsafe(&look.events.event_name(Event::Launch(launch))).into_owned();
    let start = look.profile.launches.start(launch as usize);
    let mut out = vec![(if start <= end { "ended by" } else { "next kernel" }.to_owned(), name)];
    if let Some((began, took)) = look.profile.launches.call(launch as usize).filter(|c| c.0 <= start) {
        out.push(("its call".to_owned(), format!("began {} before it, took {}", Nanos(start - began), Nanos(took))));
    }
    out
}

/// The ranges around the middle and the calls in a device's idle time, on the thread that ends it.
fn host_lines(look: &Look<'_>, device: u32, gap: &Gap, calls: Option<Vec<HostCalls>>, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(thread) = ending_thread(look, device, gap) else { return Vec::new() };
    // The range around the beginning of the gap often ends right after it.
    let middle = gap.start + (gap.end - gap.start) / 2;
    let around = describe::enclosing_facts(look.timeline, &look.events, thread, middle, None);
    let around: Vec<_> = around.into_iter().map(|(label, names)| (label.to_owned(), names)).collect();
    let mut out = fact_lines(&around, columns, theme);
    let rows = calls.into_iter().flatten().map(|c| FigureRow {
        name: c.name,
        ns: c.ns,
        count: c.count as u64,
        role: super::lanes::category_role(c.category),
    });
    out.extend(figure_lines("calls in it", rows.collect(), columns, theme));
    out
}

/// The thread that launched what ends a device's idle time.
fn ending_thread(look: &Look<'_>, device: u32, gap: &Gap) -> Option<(u32, u32)> {
    link::event_thread(look.profile, link::next_operation(look.timeline, &look.events, device, gap.end)?)
}

fn gap_calls(look: &Look<'_>, device: u32, gap: &Gap) -> Option<Vec<HostCalls>> {
    sum_calls(look.timeline, &look.events, ending_thread(look, device, gap)?, (gap.start, gap.end))
}

/// First hint on a launch, if ncu measured it.
fn launch_diagnosis(report: &Report, event: Event) -> Option<String> {
    let Event::Launch(launch) = event else { return None };
    let (other, pair) = report.find_pair(launch)?;
    let hint = report.verdicts.get(&(Some(other), pair.result))?;
    Some(format!("{}: {}", hint.id.id(), hint.headline))
}

/// Labeled pieces of text, wrapped into lines.
fn flow_pieces(label: &str, pieces: Vec<(String, Role)>, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out: Vec<Line<'static>> = Vec::new();
    let mut used = usize::MAX;
    for (text, role) in pieces {
        let wide = display_width(&text) + 2;
        if used.saturating_add(wide) > columns + 2 {
            let label = if out.is_empty() { label } else { "" };
            out.push(Line::from(Span::styled(align_left(label, LABEL), theme.style(Role::Dim))));
            used = LABEL;
        }
        used += wide;
        if let Some(line) = out.last_mut() {
            line.spans.push(Span::styled(text, theme.style(role)));
            line.spans.push(Span::raw("  "));
        }
    }
    out
}

/// Name of an idle category; without colors, preceded by the letter that represents it in the rows.
fn idle_label(part: TimeCategory, theme: &Theme) -> String {
    let letter = if theme.style(Role::Part(part)).fg.is_none() { format!("{} ", part.letter().to_lowercase()) } else { String::new() };
    format!("{letter}{}", part.short_label())
}

/// Activity of the devices in a window, computed from their lanes alone, so that it is available immediately.
/// Shares are of the recorded time.
fn activity_lines(look: &Look<'_>, from: i64, to: i64, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    const WORDS: [(Category, &str); 4] =
        [(Category::Kernel, "kernels"), (Category::Collective, "collectives"), (Category::Copy, "memcpys"), (Category::Set, "memsets")];
    let recorded = recorded_time(look.profile, (from, to));
    if recorded == 0 {
        return vec![Line::styled("nothing was recorded in this time", theme.style(Role::Dim))];
    }
    let length = recorded as f64;
    let mut out = Vec::new();
    for group in look.timeline.groups.iter().filter(|g| matches!(g.key, GroupKey::Device(_))) {
        let (before, after) = (group.busy_before(&look.events, from), group.busy_before(&look.events, to));
        let share = |c: Category| (after.busy[c as usize] - before.busy[c as usize]) as f64 / length * 100.0;
        let busy: f64 = WORDS.iter().map(|w| share(w.0)).sum();
        let there = WORDS.iter().filter(|w| share(w.0) > 0.0);
        let mut pieces: Vec<(String, Role)> =
            there.map(|(c, word)| (format!("{word} {}", format_percent(share(*c))), super::lanes::category_role(*c))).collect();
        pieces.push((format!("idle {}", format_percent((100.0 - busy).max(0.0))), Role::Text));
        out.extend(flow_pieces(&escape_unsafe(&group.name), pieces, columns, theme));
        if let (Some(gaps), GroupKey::Device(number)) = (look.gaps, group.key) {
            let percent = |ns: i64| ns as f64 / length * 100.0;
            let sums = gaps.sum_by_part(number, from, to);
            let rest = (100.0 - busy) - sums.iter().map(|s| percent(s.1)).sum::<f64>();
            let shown = sums.into_iter().filter(|s| percent(s.1) >= 0.05);
            let mut pieces: Vec<(String, Role)> = shown
                .map(|(part, ns)| (format!("{} {}", idle_label(part, theme), format_percent(percent(ns))), Role::Part(part)))
                .collect();
            // Causes are kept only for the longest gaps, and gaps that were not recorded have no cause.
            if rest >= 0.5 {
                pieces.push((format!("no cause known {}", format_percent(rest)), Role::Dim));
            }
            // If a device has no gap with a known cause, it needs no row of causes.
            if pieces.iter().any(|p| p.1 != Role::Dim) {
                out.extend(flow_pieces("  idle", pieces, columns, theme));
            }
        }
    }
    let coverage = &look.profile.coverage;
    if let Some(lost) = coverage.describe_losses().filter(|_| coverage.is_inconclusive()) {
        let text = format!("{lost}: whether the GPU was idle is not known");
        out.extend(wrap_text(&text, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Warn))));
    }
    let unrecorded = (to - from) - recorded;
    if unrecorded as f64 >= (to - from) as f64 * 0.005 {
        let text = format!("shares of the recorded {}; {} were not recorded", Nanos(recorded), Nanos(unrecorded));
        out.extend(wrap_text(&text, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
    }
    out
}

/// Activity and limits of the marked window, or of the visible one.
pub fn window_pane(report: &Report, look: &Look<'_>, screen: &TimelineScreen, window: Window, columns: usize, theme: &Theme) -> Pane {
    let marked = screen.marked_window();
    let (from, to) = marked.unwrap_or((window.start, window.end));
    let word = if marked.is_some() { ("Marked", Role::Mark) } else { ("In view", Role::Title) };
    let step = (to - from) / 100;
    let title = vec![
        Span::styled(word.0, theme.style(word.1)),
        Span::styled(format!("  {}", Nanos(to - from)), theme.style(Role::Title)),
        Span::styled(format!("  {} to {}", describe::format_time(from, step), describe::format_time(to, step)), theme.style(Role::Dim)),
    ];
    if report.profile.is_some() && !report.has_device_work() {
        let text = "no work of a GPU is recorded in this report";
        return Pane { title, lines: vec![Line::styled(text, theme.style(Role::Dim))] };
    }
    // The overview counts the run from its first operation to its last.
    let whole = to - from;
    let Some((from, to)) = report.part_in_use((from, to)) else {
        let text = "before the first or after the last operation on a GPU";
        return Pane { title, lines: vec![Line::styled(text, theme.style(Role::Dim))] };
    };
    let mut lines = activity_lines(look, from, to, columns, theme);
    if (whole - (to - from)) as f64 >= whole as f64 * 0.005 {
        let text = format!(
            "shares of {}: {} before the first or after the last operation are left out",
            Nanos(to - from),
            Nanos(whole - (to - from))
        );
        lines.extend(wrap_text(&text, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
    }
    // The waves of a kernel are not a run, so triage does not apply.
    let run = !look.events.profile.ranges.is_hardware();
    let judged = screen.judged.as_ref().filter(|j| run && (marked.is_none() || j.window == (from, to)));
    // Part of a step says nothing about what limits the run.
    let step = report.whole_triage().and_then(|t| t.step_stats()).map(|s| s.median);
    let short = run && step.is_some_and(|step| to - from < step);
    if short {
        let text = "shorter than a step: the overview shows what limits the run";
        lines.extend(wrap_text(text, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
    }
    let beginning = unrecorded_beginning(report, (from, to));
    if let Some(what) = beginning.filter(|_| !short) {
        let text = format!("{what}; the overview shows what limits the rest");
        lines.extend(wrap_text(&text, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
    }
    match judged.map(|j| (&j.triage, j.window)) {
        Some((Some(Some(triage)), of)) if of == (from, to) => {
            if beginning.is_none() && !short && is_around_one_gap(triage, report.whole_triage().map(|t| &**t)) {
                let text = "one wait fills much of this view: the overview shows what limits the run";
                lines.extend(wrap_text(text, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
            } else if !short && beginning.is_none() {
                // If the whole steady state is in view, use the overview's verdict: a bit of warm-up around it should
                // not change the verdict.
                let steady = report.whole_triage().filter(|t| marked.is_none() && t.outside.is_some());
                let steady = steady.filter(|t| from <= t.window.0 && t.window.1 <= to);
                match steady {
                    // If the steady state is only part of the view, the shares above cover more than it does: show both
                    // verdicts.
                    Some(steady) if is_part(steady, to - from) && first_verdict(steady) != first_verdict(triage) => {
                        lines.extend(limit_lines("limit", triage, 1, columns, theme));
                        lines.extend(limit_lines("steady state", steady, 1, columns, theme));
                    }
                    Some(steady) => lines.extend(limit_lines("limit", steady, 1, columns, theme)),
                    None => lines.extend(limit_lines("limit", triage, 2, columns, theme)),
                }
            }
            lines.extend(kernel_lines(look, triage, columns, theme));
        }
        Some((Some(None), _)) => lines.push(Line::styled("nothing ran on a GPU in it", theme.style(Role::Dim))),
        Some(_) | None if run && !short => lines.push(Line::styled("working out what limits it …", theme.style(Role::Dim))),
        _ => {}
    }
    Pane { title, lines }
}

/// Names the phase of a gap that the overview's verdict leaves out; `None` for one that it covers.
fn left_out_phase(report: &Report, (from, to): (i64, i64)) -> Option<String> {
    let whole = report.whole_triage()?;
    let phase = whole.left_out.iter().find(|l| !l.unrecorded && l.start <= from && to <= l.end)?;
    Some(format!("{}, left out of the overview's verdict", phase.phase.word()))
}

/// Minimum share of a span that the beginning of a late recording fills to make its idle time unknown.
const MUCH_UNKNOWN: f64 = 0.1;

/// Describes the beginning of a recording that began late, if much of a span lies in it: what ran then was not recorded.
fn unrecorded_beginning(report: &Report, (from, to): (i64, i64)) -> Option<&str> {
    let inside = |start: i64, end: i64| (end.min(to) - start.max(from)) as f64 >= MUCH_UNKNOWN * (to - from) as f64;
    let left_out = &report.whole_triage()?.left_out;
    left_out.iter().find(|l| l.unrecorded && inside(l.start, l.end)).map(|l| l.what.as_str())
}

fn is_part(steady: &Triage, view: i64) -> bool {
    (steady.window.1 - steady.window.0) as f64 <= MOST_OF_VIEW * view as f64
}

/// Returns true if a view is so short a part of the run that the wait in it cannot be told from a single delay, although
/// the run may have many such waits.
fn is_around_one_gap(view: &Triage, run: Option<&Triage>) -> bool {
    let part = run.is_some_and(|run| view.length() as f64 <= ONE_GAP * run.length() as f64);
    part && first_verdict(view) == Some(Verdict::SingleDelay) && run.and_then(first_verdict) != Some(Verdict::SingleDelay)
}

fn first_verdict(triage: &Triage) -> Option<Verdict> {
    triage.findings.iter().find(|f| is_shown(f)).map(|f| f.id)
}

fn is_shown(finding: &Finding) -> bool {
    finding.id != Verdict::ShortCapture && finding.gain_percent() >= 1.0
}

/// Lines with the first findings.
fn limit_lines(label: &str, triage: &Triage, most: usize, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    for finding in triage.findings.iter().filter(|f| is_shown(f)).take(most) {
        // The sentence has the share of the time; the gain may be less.
        let gain = units::format_whole_percent(finding.gain_percent());
        let most = if finding.id == Verdict::GpuBound { gain } else { format!("up to {gain}") };
        let text = format!("{} ({most}): {}", finding.id.id(), escape_unsafe(&finding.headline));
        for (at, line) in wrap_text(&text, columns.saturating_sub(LABEL).max(20)).into_iter().enumerate() {
            let label = if at == 0 { label } else { "" };
            out.push(Line::from(vec![
                Span::styled(align_left(label, LABEL), theme.style(Role::Dim)),
                Span::styled(line, theme.style(Role::Text)),
            ]));
        }
    }
    out
}

/// Lines with the first kernels of the triage.
fn kernel_lines(look: &Look<'_>, triage: &Triage, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let row = |&(kernel, ns, count): &(u32, i64, u64)| {
        let kernel = look.profile.kernels.get(kernel as usize)?;
        Some(FigureRow { name: escape_unsafe(&readable_name(kernel)).into_owned(), ns, count, role: Role::Text })
    };
    figure_lines("kernels", triage.kernels.iter().take(LISTED).filter_map(row).collect(), columns, theme)
}

/// Maximum number of rows with a name, a time and a count; the pane shows as many as fit.
const LISTED: usize = 12;

/// Something that took a time, several times.
struct FigureRow {
    name: String,
    ns: i64,
    count: u64,
    role: Role,
}

/// Lines with names, times and counts.
fn figure_lines(label: &str, mut rows: Vec<FigureRow>, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    /// Width of the time and the count.
    const FIGURES: usize = 18;
    rows.truncate(LISTED);
    let room = columns.saturating_sub(LABEL + FIGURES + 2);
    let names: Vec<String> = rows.iter().map(|row| row.name.clone()).collect();
    let line = |(at, (row, name)): (usize, (FigureRow, String))| {
        let figures = format!("{} {}", Nanos(row.ns), align_right(&format!("×{}", units::format_grouped(row.count)), 8));
        Line::from(vec![
            Span::styled(align_left(if at == 0 { label } else { "" }, LABEL), theme.style(Role::Dim)),
            Span::styled(align_left(&name, room), theme.style(row.role)),
            Span::styled(align_right(&figures, FIGURES), theme.style(Role::Dim)),
        ])
    };
    rows.into_iter().zip(fit_labels(&names, room)).enumerate().map(line).collect()
}
