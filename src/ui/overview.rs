//! Overview screen: verdict, time breakdown, findings, and the longest-running kernels.

use super::finding_details::{detail_lines, put_advice};
use super::kernel_summary::cause_rows;
use super::panel::{BORDERED, draw_lines, draw_message, draw_panel, split_top};
use super::screens::{Place, ScreenView};
use super::step_chart;
use super::text::{align_left, align_right, bar, fit_parts, part, wrap_text};
use super::view::View;
use super::widgets::{finding_glyph, severity_glyph};
use super::{Role, Theme};
use crate::analysis::Family;
use crate::analysis::hints::KernelLead;
use crate::analysis::host_frames::frame_label;
use crate::analysis::labels::{self, cut_end, cut_middle, display_width};
use crate::analysis::readable::readable_name;
use crate::analysis::triage::{Finding, LineTime, PlaceKind, Severity, TimeCategory, Triage, Verdict};
use crate::app::screens::overview::{self, KERNELS};
use crate::app::session::Straggler;
use crate::app::session::lead::Lead;
use crate::app::{ActionId, App, Mouse, OverviewScreen, Report};
use crate::model::text::escape_unsafe;
use crate::model::{Nanos, units};
use crate::report;
use crate::report::finding_text::EvidenceText;
use crate::report::triage as say;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Minimum width to show the selected finding next to the list.
const BESIDE: u16 = 110;
/// Minimum width for a truncated sentence to be useful.
const SENTENCE: usize = 32;
/// Maximum number of headline lines.
const HEADLINE: usize = 3;

/// Width of a kernel's bar.
const BAR: usize = 8;
/// Minimum width of a kernel name, and that beside a diagnosis without a bar.
const NAME: usize = 20;
const SHORT_NAME: usize = 16;
/// Maximum width of a diagnosis, with the gap before it.
const HINT: usize = 24;
/// Number of program lines to show.
const LINES: usize = 3;
/// Maximum number of kernels above the chart of the steps.
const BESIDE_STEPS: u16 = 12;

impl ScreenView for OverviewScreen {
    fn draw(&self, frame: &mut Frame<'_>, at: Place, app: &App, view: &mut View, theme: &Theme) {
        draw(frame, at.area, app, self, view, theme);
    }

    fn next_step(&self, app: &App) -> Option<String> {
        next(app, self)
    }
}

fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &OverviewScreen, view: &mut View, theme: &Theme) {
    let Some(report) = app.report() else { return };
    let Some(triage) = overview::available_triage(report) else {
        draw_waiting(frame, area, app, report, theme);
        return;
    };
    let bordered = area.height >= BORDERED;
    let edge = if bordered { 2 } else { 1 };
    let mut rest = area;
    let columns = usize::from(area.width.saturating_sub(4));
    let title_room = usize::from(area.width.saturating_sub(if bordered { 6 } else { 2 }));
    let lead = app.session.lead(app.session.active);
    draw_verdict(frame, &mut rest, (triage, lead.as_ref()), columns, bordered, theme);
    let time = super::time_breakdown::lines(triage, columns, rest.height, view.ascii, theme);
    let height = u16::try_from(time.len()).unwrap_or(0) + edge;
    let heading = "Where the time went";
    let judged = say::judged_line(triage);
    let judged = whole_clauses(&judged, title_room.saturating_sub(heading.len() + 2));
    let title = vec![Span::styled(heading, theme.style(Role::Title)), Span::styled(format!("  {judged}"), theme.style(Role::Dim))];
    let inner = draw_panel(frame, split_top(&mut rest, height), title, bordered, theme);
    draw_lines(frame, inner, time);
    let listed = triage.findings.len() + usize::from(lead.is_some());
    let findings = u16::try_from(listed).unwrap_or(u16::MAX);
    let kernels = u16::try_from(triage.kernels.len().min(KERNELS)).unwrap_or(0).min(3);
    let beside = area.width >= BESIDE && bordered;
    let (mut list, detail) = if beside {
        let width = (area.width * 9 / 20).max(52);
        (Rect { width, ..rest }, Some(Rect { x: rest.x + width, width: rest.width - width, ..rest }))
    } else {
        (rest, None)
    };
    // Reserve rows at the bottom for the kernels; the findings get the rest.
    let kernel_rows = if kernels > 0 { kernels + edge } else { 0 };
    let lines = if bordered { triage.host_time.main_lines(LINES) } else { Vec::new() };
    let line_rows = if lines.is_empty() { 0 } else { u16::try_from(lines.len()).unwrap_or(0) + edge };
    let room = list.height.saturating_sub(kernel_rows + line_rows).max(edge + 1);
    let columns = usize::from(list.width);
    let remarks = remark_lines(app, (report, triage), columns, usize::from(room.saturating_sub(findings + edge)), bordered, theme);
    let remark_rows = u16::try_from(remarks.len()).unwrap_or(0);
    let wanted = (findings + edge + remark_rows).min(room);
    let mut title = vec![Span::styled("Findings", theme.style(Role::Title))];
    if wanted < findings + edge {
        title.push(Span::styled(format!("  {} of {findings}, scroll for more", wanted.saturating_sub(edge)), theme.style(Role::Dim)));
    }
    let inner = draw_panel(frame, split_top(&mut list, wanted), title, bordered, theme);
    let shown = inner.height.saturating_sub(remark_rows).max(1);
    finding_rows(frame, Rect { height: shown.min(inner.height), ..inner }, (triage, lead.as_ref()), screen.selected, view, theme);
    draw_lines(frame, Rect { y: inner.y + shown, height: inner.height.saturating_sub(shown), ..inner }, remarks);
    if line_rows > 0 && list.height > line_rows {
        draw_host_lines(frame, split_top(&mut list, line_rows), triage, &lines, theme);
    }
    if kernels > 0 && list.height > edge {
        let amd = app.report().and_then(|r| r.profile.as_ref()).is_some_and(|p| p.is_amd());
        let sum =
            if triage.devices.len() > 1 { format!("  on {}", units::format_count(triage.devices.len(), "GPU")) } else { String::new() };
        let all = u16::try_from(triage.kernels.len().min(KERNELS)).unwrap_or(0) + edge;
        // A chart of the steps says more than further kernels.
        let few = all.min(BESIDE_STEPS + edge);
        // With the details next to the list, the kernels get the rest of the column; without borders, at most three
        // rows.
        let wanted = if beside && list.height >= few + step_chart::LEAST && step_chart::is_useful(triage) {
            few
        } else if beside {
            list.height
        } else if bordered || list.height > all + 8 {
            kernel_rows
        } else {
            all
        };
        let room = usize::from(wanted.min(list.height).saturating_sub(edge));
        let of_all = if triage.kernels.len() > room {
            format!("  {room} of {}", units::format_grouped(triage.kernels.len() as u64))
        } else {
            String::new()
        };
        let title = vec![
            Span::styled("Kernels", theme.style(Role::Title)),
            Span::styled(of_all.clone(), theme.style(Role::Dim)),
            // Name the base, because the time breakdown above gives shares of the whole judged time.
            Span::styled(format!("  {SHARES}{sum}"), theme.style(Role::Dim)),
            family_shares(
                triage,
                amd,
                usize::from(list.width).saturating_sub(display_width(SHARES) + sum.len() + of_all.len() + 15),
                theme,
            ),
        ];
        let inner = draw_panel(frame, split_top(&mut list, wanted), title, bordered, theme);
        kernel_lines(frame, inner, report, (triage, listed), screen.selected, view, theme);
        if beside && list.height >= step_chart::LEAST {
            step_chart::draw(frame, &mut list, triage, "", theme);
        }
    }
    let below = (!beside && list.height > 6).then_some(list);
    if let Some(area) = detail.or(below) {
        draw_selected(frame, area, app, (report, triage), (screen.selected, bordered), theme);
    }
}

/// With borders, there is room for notes on missing data; without them, show only the first doubt about the triage or
/// memory finding. `room` is the number of lines that the findings, which come first, leave.
fn remark_lines(
    app: &App,
    (report, triage): (&Report, &Triage),
    columns: usize,
    room: usize,
    bordered: bool,
    theme: &Theme,
) -> Vec<Line<'static>> {
    if bordered {
        let mut remarks = missing_lines(report, triage, columns.saturating_sub(6), theme);
        if remarks.len() > room {
            remarks.truncate(room);
            if let Some(last) = remarks.last_mut() {
                let more = format!(" … ({})", app.session.key_label(ActionId::Notes));
                let room = columns.saturating_sub(4 + display_width(&more));
                let text: String = last.spans.iter().map(|s| s.content.as_ref()).collect();
                let text = if display_width(&text) > room { cut_end(&text, room).trim_end_matches(['…', ' ']).to_owned() } else { text };
                *last = Line::styled(format!("{text}{more}"), theme.style(Role::Dim));
            }
        }
        return remarks;
    }
    let columns = columns.saturating_sub(2);
    let most = room.clamp(1, 2);
    let wrong = say::warnings(triage).into_iter().next();
    let mut text = wrong.map(|text| wrap_text(&escape_unsafe(&text), columns)).unwrap_or_default();
    if text.len() > most {
        let rest = text.split_off(most - 1).join(" ");
        text.push(cut_end(&rest, columns));
    }
    text.into_iter().map(|l| Line::styled(l, theme.style(Role::Warn))).collect()
}

/// Draws the details of the selected kernel or finding.
fn draw_selected(
    frame: &mut Frame<'_>,
    area: Rect,
    app: &App,
    (report, triage): (&Report, &Triage),
    (selected, bordered): (usize, bool),
    theme: &Theme,
) {
    let lead = app.session.lead(app.session.active);
    let own = selected.checked_sub(usize::from(lead.is_some()));
    let kernel = own.and_then(|at| at.checked_sub(triage.findings.len())).and_then(|k| triage.kernels.get(k));
    let columns = usize::from(area.width.saturating_sub(4));
    let led = lead.filter(|_| own.is_none()).map(|lead| match lead {
        Lead::Straggler(s) => {
            let lines = detail_lines(s.finding, (triage.origin(), triage.base), None, columns, theme);
            (finding_glyph(s.finding), s.finding.id.id(), lines)
        }
        Lead::Kernel(lead) => {
            let at = triage.kernels.iter().find(|k| {
                report.profile.as_ref().and_then(|p| p.kernels.get(k.0 as usize)).is_some_and(|k| readable_name(k) == lead.kernel)
            });
            let lines = at.map(|k| kernel_details(app, report, triage, *k, columns, theme)).unwrap_or_default();
            (severity_glyph(lead.hint.severity), lead.hint.id.id(), lines)
        }
    });
    if let Some(((glyph, role), name, mut text)) = led {
        let inner = draw_panel(frame, area, vec![Span::styled(format!("{glyph} {name}"), theme.style(role))], bordered, theme);
        let height = usize::from(inner.height);
        if text.len() > height && height > 1 {
            text.truncate(height - 1);
            text.push(Line::styled(format!("… {} shows the rest", app.session.key_label(ActionId::Details)), theme.style(Role::Dim)));
        }
        draw_lines(frame, inner, text);
    } else if let Some(kernel) = kernel {
        let title = vec![Span::styled("Kernel", theme.style(Role::Title))];
        let inner = draw_panel(frame, area, title, bordered, theme);
        let text = kernel_details(app, report, triage, *kernel, usize::from(inner.width), theme);
        draw_lines(frame, inner, text);
    } else if let Some(finding) = own.and_then(|at| triage.findings.get(at)).or_else(|| triage.findings.first()) {
        let (glyph, role) = finding_glyph(finding);
        let title = vec![Span::styled(format!("{glyph} {}", finding.id.id()), theme.style(role))];
        let inner = draw_panel(frame, area, title, bordered, theme);
        let mut text = detail_lines(finding, (triage.origin(), triage.base), app.session.straggler(), usize::from(inner.width), theme);
        // The verdict's sentence is already at the top of the screen.
        if triage.verdict() == Some(finding) {
            let sentence = wrap_text(&escape_unsafe(&finding.headline), usize::from(inner.width).max(20)).len();
            text.drain(..sentence.min(text.len()));
        }
        // If the text is truncated, name the key that shows all of it. A heading alone at the end is useless.
        let height = usize::from(inner.height);
        if text.len() > height && height > 2 {
            // A heading follows an empty line.
            let heading = height > 3 && text.get(height - 3).is_some_and(|l| l.width() == 0);
            text.truncate(if heading { height - 3 } else { height - 1 });
            text.push(Line::styled(format!("… {} shows the rest", app.session.key_label(ActionId::Details)), theme.style(Role::Dim)));
        }
        draw_lines(frame, inner, text);
    }
}

/// Draws the program lines with the most GPU idle time.
fn draw_host_lines(frame: &mut Frame<'_>, area: Rect, triage: &Triage, lines: &[LineTime], theme: &Theme) {
    let title = vec![
        Span::styled("Lines that the GPU waits for", theme.style(Role::Title)),
        // The time breakdown's share also has idle time without samples.
        Span::styled(if triage.host_time.exact { "  % of what is known" } else { "  % of sampled time" }, theme.style(Role::Dim)),
    ];
    let inner = draw_panel(frame, area, title, true, theme);
    let all = triage.host_time.known().max(1) as f64;
    let columns = usize::from(inner.width);
    let rows = lines.iter().map(|l| {
        let share = l.ns as f64 / all;
        let room = columns.saturating_sub(27);
        let mut spans =
            vec![Span::raw("  "), Span::styled(align_left(&cut_middle(&frame_label(&l.frame), room), room + 1), theme.style(Role::Text))];
        spans.extend(bar(share, 8, theme.style(Role::Part(l.cause.part())), theme));
        spans.push(Span::styled(align_right(&units::format_percent(share * 100.0), 7), theme.style(Role::Title)));
        spans.push(Span::styled(align_right(&Nanos(l.ns).to_string(), 9), theme.style(Role::Text)));
        Line::from(spans)
    });
    draw_lines(frame, inner, rows.collect());
}

/// Facts about a kernel.
fn kernel_details(
    app: &App,
    report: &Report,
    triage: &Triage,
    (kernel, ns, count): (u32, i64, u64),
    columns: usize,
    theme: &Theme,
) -> Vec<Line<'static>> {
    let Some(k) = report.profile.as_ref().and_then(|p| p.kernels.get(kernel as usize)) else { return Vec::new() };
    let text =
        |t: &str| wrap_text(&escape_unsafe(t), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Text))).collect::<Vec<_>>();
    let mut out = text(&readable_name(k));
    out.push(Line::default());
    let share = ns as f64 / triage.length().max(1) as f64 / triage.devices.len().max(1) as f64 * 100.0;
    let mean = Nanos::format_ns(ns as f64 / count.max(1) as f64);
    let base = triage.base;
    out.extend(text(&format!(
        "{} in {base}, {mean} each, {} of {base}",
        units::format_count(count, "launch"),
        units::format_percent(share)
    )));
    let name = readable_name(k);
    let row = report.groups.grouping.as_ref().and_then(|g| g.rows.iter().position(|r| r.name == name));
    if let Some(hint) = row.and_then(|r| report.diagnosed.get(&r)) {
        out.push(Line::default());
        out.extend(text(&format!("{}: {}", hint.id.id(), hint.headline)));
        let evidence: Vec<EvidenceText> = hint.advice.evidence.iter().map(report::hints::evidence_text).collect();
        put_advice(&mut out, (&hint.advice.actions, &evidence), columns, theme);
    }
    out.push(Line::default());
    let key = |id| app.session.key_label(id);
    out.extend(text(&format!(
        "{} goes to it in the table; there {} shows why it takes its time, {} profiles it again",
        key(ActionId::Open),
        key(ActionId::Hints),
        key(ActionId::Rerun)
    )));
    out
}

/// Draws a message until the analysis is available.
fn draw_waiting(frame: &mut Frame<'_>, area: Rect, app: &App, report: &Report, theme: &Theme) {
    let key = |id| app.session.key_label(id);
    let text = match (&report.triage, report.is_reading()) {
        (Some(None), _) if report.window.is_some() => {
            format!("Nothing ran on a GPU in this window. {} shows the whole run.", key(ActionId::Narrow))
        }
        (Some(None), _) => format!("No work of a GPU with times is in this report; {} may show why.", key(ActionId::Notes)),
        (_, true) => format!("The report is being read; {} goes to the table of kernels, which is there already.", key(ActionId::Kernels)),
        _ => "Working out what limits the run …".to_owned(),
    };
    draw_message(frame, area, &text, theme);
}

/// Names the idle categories of the bar to which a finding refers, with their total. Empty if the finding's own
/// percentage matches that total, unless the bar calls them only `other`.
fn of_idle_parts(triage: &Triage, finding: &Finding) -> String {
    let mut parts: Vec<TimeCategory> = finding.id.idle_causes().iter().map(|c| c.part()).collect();
    parts.dedup();
    parts.retain(|p| triage.part_percent(*p) >= 0.5);
    let all: f64 = parts.iter().map(|p| triage.part_percent(*p)).sum();
    if parts.is_empty() || (all - finding.gain_percent()).abs() < 1.0 && parts.iter().any(|p| p.short_label() != "other") {
        return String::new();
    }
    let names: Vec<&str> = parts.iter().map(|p| p.short_label()).collect();
    format!(", of the {all:.0}% idle: {}", names.join(" and "))
}

/// Draws the panel of what limits the run: glyph with its colour, name, gain and certainty, and the sentences.
fn draw_lead(
    frame: &mut Frame<'_>,
    rest: &mut Rect,
    ((glyph, role), name, gain, sure): ((&'static str, Role), String, String, &'static str),
    mut sentences: Vec<String>,
    (columns, bordered): (usize, bool),
    theme: &Theme,
) {
    let title = vec![
        part(0, vec![Span::styled(format!("{glyph} {name}"), theme.style(role))]),
        part(1, vec![Span::styled(gain, theme.style(Role::Title))]),
        part(0, vec![Span::styled(format!("  {sure}"), theme.style(Role::Dim))]),
    ];
    let title = fit_parts(title, &Span::raw(""), columns).spans;
    let last = sentences.pop();
    let most = if bordered { HEADLINE } else { HEADLINE - 1 };
    if sentences.len() > most {
        let end = sentences.split_off(most - 1).join(" ");
        sentences.push(cut_end(&end, columns));
    }
    let text = sentences.into_iter().map(|l| Line::styled(l, theme.style(Role::Text)));
    let text: Vec<Line<'static>> = text.chain(last.map(|l| Line::styled(l, theme.style(Role::Dim)))).collect();
    let height = u16::try_from(text.len()).unwrap_or(1) + if bordered { 2 } else { 1 };
    let inner = draw_panel(frame, split_top(rest, height), title, bordered, theme);
    draw_lines(frame, inner, text);
}

fn draw_verdict(
    frame: &mut Frame<'_>,
    rest: &mut Rect,
    (triage, lead): (&Triage, Option<&Lead<'_>>),
    columns: usize,
    bordered: bool,
    theme: &Theme,
) {
    let Some(finding) = triage.verdict() else { return };
    // A rank that delays the others, or a kernel that promises more, comes before the first finding of the report itself.
    let beside = |headline: String| {
        let own = format!("besides: {}: {}", finding.id.id(), finding.headline);
        [wrap_text(&escape_unsafe(&headline), columns), vec![cut_end(&escape_unsafe(&own), columns)]].concat()
    };
    if let Some(Lead::Straggler(Straggler { finding, .. })) = lead {
        let gain = format!("  up to {} of the judged time", units::format_whole_percent(finding.gain_percent()));
        let title = (finding_glyph(finding), finding.id.id().to_owned(), gain, finding.sure.as_str());
        return draw_lead(frame, rest, title, beside(finding.headline.clone()), (columns, bordered), theme);
    }
    if let Some(Lead::Kernel(KernelLead { kernel, hint, gain })) = lead {
        let gain = format!("  up to {} of {}", units::format_whole_percent(gain * 100.0), triage.base);
        let title = (severity_glyph(hint.severity), hint.id.id().to_owned(), gain, "measured");
        return draw_lead(frame, rest, title, beside(format!("{kernel}: {}", hint.headline)), (columns, bordered), theme);
    }
    let (glyph, role) = finding_glyph(finding);
    let healthy = finding.severity == Severity::Healthy || finding.stake == 0.0 || finding.id == Verdict::GpuBound;
    let gain =
        if healthy { String::new() } else { format!("  up to {} of {}", units::format_whole_percent(finding.gain_percent()), triage.base) };
    let parts_of = if healthy { String::new() } else { of_idle_parts(triage, finding) };
    let title = vec![
        part(0, vec![Span::styled(format!("{glyph} {}", finding.id.id()), theme.style(role))]),
        part(1, vec![Span::styled(gain, theme.style(Role::Title))]),
        part(2, vec![Span::styled(parts_of, theme.style(Role::Title))]),
        part(0, vec![Span::styled(format!("  {}", finding.sure.as_str()), theme.style(Role::Dim))]),
    ];
    let title = fit_parts(title, &Span::raw(""), columns).spans;
    let mut text = wrap_text(&escape_unsafe(&finding.headline), columns);
    if text.len() > HEADLINE {
        let rest = text.split_off(HEADLINE - 1).join(" ");
        text.push(cut_end(&rest, columns));
    }
    let text: Vec<Line<'static>> = text.into_iter().map(|l| Line::styled(l, theme.style(Role::Text))).collect();
    let height = u16::try_from(text.len()).unwrap_or(1) + if bordered { 2 } else { 1 };
    let inner = draw_panel(frame, split_top(rest, height), title, bordered, theme);
    draw_lines(frame, inner, text);
}

/// As many clauses of a line as fit, at least the first.
fn whole_clauses(line: &str, columns: usize) -> &str {
    let ends = line.match_indices(", ").map(|(at, _)| at).chain([line.len()]);
    let fitting = ends.filter(|&end| display_width(&line[..end]) <= columns).last();
    fitting.or_else(|| line.find(", ")).map_or(line, |end| &line[..end])
}

fn select_row(frame: &mut Frame<'_>, rect: Rect, at: usize, selected: usize, view: &mut View, theme: &Theme) {
    view.hits.push((rect, Mouse::Row(at)));
    if at == selected {
        crate::ui::widgets::highlight_row(frame.buffer_mut(), rect, theme);
    }
}

fn finding_rows(
    frame: &mut Frame<'_>,
    area: Rect,
    (triage, lead): (&Triage, Option<&Lead<'_>>),
    selected: usize,
    view: &mut View,
    theme: &Theme,
) {
    let rows = cause_rows(triage, lead);
    if rows.is_empty() {
        frame.render_widget(Line::styled("nothing stands out", theme.style(Role::Dim)), area);
        return;
    }
    let top = view.scroll_to("overview", selected.min(rows.len() - 1), rows.len(), area.height.into());
    for (y, (at, cause)) in (0..area.height).zip(rows.iter().enumerate().skip(top)) {
        let (glyph, role) = cause.badge;
        let room = usize::from(area.width).saturating_sub(3 + 2 + 19 + 6 + 2);
        // The first letters of a sentence are meaningless: show the confidence instead.
        let tail = if room >= SENTENCE { cut_end(&escape_unsafe(&cause.headline), room) } else { cause.sure.to_owned() };
        let spans = vec![
            Span::styled(format!("{} ", align_right(&(at + 1).to_string(), 2)), theme.style(Role::Faint)),
            Span::styled(format!("{glyph} "), theme.style(role)),
            Span::styled(align_left(cause.id, 19), theme.style(role)),
            Span::styled(align_right(&cause.share, 5), theme.style(Role::Title)),
            Span::styled(format!("  {tail}"), theme.style(if room >= SENTENCE { Role::Text } else { Role::Dim })),
        ];
        let rect = Rect { y: area.y + y, height: 1, ..area };
        frame.render_widget(Line::from(spans), rect);
        select_row(frame, rect, at, selected, view, theme);
    }
}

/// Warnings about the triage, the measured work, and data that was not recorded.
fn missing_lines(report: &Report, triage: &Triage, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    // Operator shapes cover the whole window; results cover only the kernels that ncu measured.
    let measured = report.work.as_ref().filter(|_| triage.flops.is_none()).map(say::work_sentence);
    let wrong = say::warnings(triage);
    for text in wrong.iter().chain(&measured).chain(&say::remarks(triage)[wrong.len()..]) {
        if out.is_empty() {
            out.push(Line::default());
        }
        let role = if wrong.contains(text) { Role::Warn } else { Role::Dim };
        out.extend(wrap_text(&escape_unsafe(text), columns).into_iter().map(|l| Line::styled(l, theme.style(role))));
    }
    out
}

/// Base of the shares of kernels.
const SHARES: &str = "% of kernel time";

/// Shares of kernel time by family, relative to the same kernel time as the rows below.
fn family_shares(triage: &Triage, amd: bool, columns: usize, theme: &Theme) -> Span<'static> {
    let total: i64 = triage.families.iter().map(|f| f.1).sum();
    let shown: Vec<String> = triage
        .families
        .iter()
        .take(4)
        .map(|(family, ns)| {
            format!("{} {}", family.vendor_name(amd), units::format_whole_percent(*ns as f64 / total.max(1) as f64 * 100.0))
        })
        .collect();
    // Only whole shares are shown.
    let mut text = String::new();
    for share in shown {
        let longer = if text.is_empty() { format!(": {share}") } else { format!("{text} · {share}") };
        if display_width(&longer) > columns {
            break;
        }
        text = longer;
    }
    Span::styled(text, theme.style(Role::Dim))
}

fn kernel_lines(
    frame: &mut Frame<'_>,
    area: Rect,
    report: &Report,
    (triage, before): (&Triage, usize),
    selected: usize,
    view: &mut View,
    theme: &Theme,
) {
    let Some(profile) = &report.profile else { return };
    let total: i64 = triage.kernels.iter().map(|k| k.1).sum();
    let most = triage.kernels.first().map_or(1, |k| k.1).max(1);
    let wide = usize::from(area.width);
    let shown = triage.kernels.len().min(KERNELS);
    let at = selected.saturating_sub(before).min(shown.saturating_sub(1));
    let top = view.scroll_to("overview kernels", at, shown, area.height.into());
    // First hint on the result that stands for the kernel, if there is one.
    let hint = |name: &str| {
        let row = report.groups.grouping.as_ref()?.rows.iter().position(|r| r.name == name)?;
        report.diagnosed.get(&row).map(|h| h.id.id())
    };
    let function = |kernel: u32| profile.kernels.get(kernel as usize);
    let listed = || triage.kernels.iter().take(KERNELS).filter_map(|k| Some((k, function(k.0)?)));
    let hinted = listed()
        .skip(top)
        .take(area.height.into())
        .filter_map(|(_, k)| hint(&readable_name(k)))
        .map(display_width)
        .max()
        .map_or(0, |w| w + 2);
    // If there is no room for the names, drop less important columns first.
    let room = wide.saturating_sub(2 + BAR + 8);
    // A diagnosis says more than a bar.
    let hinted = hinted.min(HINT);
    let columns = [(BAR, 9, 9, hinted), (BAR, 0, 9, hinted), (BAR, 0, 0, hinted), (0, 0, 0, hinted), (BAR, 0, 0, 0)];
    let least = |bars: usize| if bars == 0 { SHORT_NAME } else { NAME };
    let fits = |c: &(usize, usize, usize, usize)| room + BAR >= least(c.0) + c.0 + c.1 + c.2 + c.3;
    let (bars, counts, times, hints) = columns.into_iter().find(fits).unwrap_or((BAR, 0, 0, 0));
    let name = (room + BAR).saturating_sub(bars + counts + times + hints);
    let names: Vec<String> = listed().map(|(_, k)| escape_unsafe(&readable_name(k)).into_owned()).collect();
    let labels = labels::fit_labels(&names, name);
    for (y, (at, ((_, ns, count), k))) in (0..area.height).zip(listed().enumerate().skip(top)) {
        let percent = units::format_percent(*ns as f64 / total.max(1) as f64 * 100.0);
        let number = format!("×{}", units::format_grouped(*count));
        // Collectives count as kernels, but computing less would not shorten them.
        let (text, part) = if Family::guess(k.function(), k.demangled()) == Family::Nccl {
            (Role::Dim, TimeCategory::Collectives)
        } else {
            (Role::Text, TimeCategory::Kernels)
        };
        let mut spans = vec![
            Span::raw("  "),
            Span::styled(align_left(labels.get(at).map_or("", String::as_str), name), theme.style(text)),
            Span::raw(" "),
        ];
        if bars > 0 {
            spans.extend(bar(*ns as f64 / most as f64, BAR, theme.style(Role::Part(part)), theme));
        }
        spans.push(Span::styled(align_right(&percent, 7), theme.style(Role::Title)));
        spans.push(Span::styled(align_right(&Nanos(*ns).to_string(), times), theme.style(Role::Text)));
        spans.push(Span::styled(align_right(&number, counts), theme.style(Role::Dim)));
        let hint = hint(&readable_name(k)).map_or_else(String::new, |h| format!("  {}", cut_end(h, hints.saturating_sub(2))));
        spans.push(Span::styled(align_left(&hint, hints), theme.style(Role::Text)));
        let rect = Rect { y: area.y + y, height: 1, ..area };
        frame.render_widget(Line::from(spans), rect);
        select_row(frame, rect, before + at, selected, view, theme);
    }
}

/// Returns true if the remedies for the selected finding are shown next to the list. The header, next step and footer
/// take up at most five rows.
fn shows_remedies((columns, rows): (u16, u16)) -> bool {
    columns >= BESIDE && rows >= BORDERED + 5
}

/// Suggested next step.
fn next(app: &App, screen: &OverviewScreen) -> Option<String> {
    let triage = overview::available_triage(app.report()?)?;
    let key = |id| app.session.key_link(id);
    let (open, details) = (key(ActionId::Open), key(ActionId::Details));
    Some(match overview::row_at(&app.session, app.session.active, triage, screen.selected)? {
        overview::OverviewRow::Lead(Lead::Straggler(Straggler { rank, .. })) => {
            format!("{open} shows the ranks side by side: rank {rank} makes the others wait")
        }
        overview::OverviewRow::Lead(Lead::Kernel(lead)) => {
            format!("{open} goes to {}, which has the most to gain", cut_middle(&escape_unsafe(&lead.kernel), 40))
        }
        overview::OverviewRow::Finding(f) => {
            let action = f.actions.first().map_or("", |a| a.trim_end_matches('.'));
            // The key goes to the longest occurrence, which is not always where most of the time is.
            let shown = f.places.iter().find(|p| p.kind == PlaceKind::Window);
            let is_there =
                |p: &crate::analysis::triage::Place| shown.is_none_or(|w| (p.end.min(w.end) - p.start.max(w.start)) * 2 >= w.end - w.start);
            let name = |kinds: &[PlaceKind]| {
                let place = f.places.iter().find(|p| kinds.contains(&p.kind) && is_there(p))?;
                Some(labels::cut_label(&escape_unsafe(&place.name), 32))
            };
            let to = if overview::opens_timeline(app.report()?, f) {
                let inside =
                    name(&[PlaceKind::Line, PlaceKind::Range, PlaceKind::Operator]).map_or_else(String::new, |n| format!(", in {n}"));
                format!("shows it on the timeline{inside}")
            } else {
                format!("goes to {}", name(&[PlaceKind::Kernel]).unwrap_or_else(|| "the kernels".to_owned()))
            };
            if shows_remedies(app.session.size) {
                format!("{open} {to}; {details} shows the evidence")
            } else {
                format!("{open} {to}; {details} shows the evidence. {action}")
            }
        }
        overview::OverviewRow::Kernel(_) => format!("{open} goes to this kernel in the table"),
    })
}
