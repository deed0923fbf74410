//! Summary panels below a short kernel table: time breakdown, diagnoses of the kernels, limits of the run, utilization of
//! the measured kernels, and kinds of work.

use super::panel::{Panel, draw_lines, split_top};
use super::text::{align_left, align_right, bar, wrap_text};
use super::widgets::gauges::{FIGURES, at_limit};
use super::widgets::{family_swatch, finding_glyph, gauge, severity_glyph};
use super::{Role, Theme};
use crate::analysis::hints::{Diagnosis, KernelLead, Severity};
use crate::analysis::labels::{cut_end, cut_middle, display_width};
use crate::analysis::metric::Lookup;
use crate::analysis::triage::{Finding, Triage};
use crate::analysis::{Family, GroupRow};
use crate::app::session::lead::Lead;
use crate::app::{ActionId, App, Report};
use crate::model::text::escape_unsafe;
use crate::model::{Nanos, units};
use crate::report::triage::judged_line;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Panel content: title, note to the right of the title, lines.
type Content = (&'static str, Vec<Span<'static>>, Vec<Line<'static>>);

/// Minimum height of a truncated panel.
const LEAST: u16 = 2;

/// Draws as many panels as fit.
pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, report: &Report, ascii: bool, theme: &Theme) {
    let mut rest = area;
    let columns = usize::from(area.width.saturating_sub(4));
    let mut shown: Vec<(u16, Content)> = Vec::new();
    let mut room = rest.height;
    for content in panel_contents(app, report, columns, ascii, theme) {
        let tall = u16::try_from(content.2.len()).unwrap_or(u16::MAX);
        if tall == 0 || room < 2 + tall.min(LEAST) {
            continue;
        }
        let tall = (tall + 2).min(room);
        room -= tall;
        shown.push((tall, content));
    }
    // If there is room left, show the findings as whole sentences instead of one truncated line each.
    if let (Some((tall, content)), Some(triage)) =
        (shown.iter_mut().find(|(_, content)| content.0 == LIMITS), report.triage.as_ref().and_then(Option::as_ref))
    {
        let whole = finding_lines(triage, app.session.lead(app.session.active).as_ref(), columns, true, theme);
        let more = u16::try_from(whole.len().saturating_sub(content.2.len())).unwrap_or(u16::MAX);
        if more <= room {
            room -= more;
            *tall += more;
            content.2 = whole;
        }
    }
    // The last panel extends to the bottom of the screen.
    if let Some(last) = shown.last_mut() {
        last.0 += room;
    }
    for (tall, (title, note, content)) in shown {
        let place = split_top(&mut rest, tall);
        let panel = Panel::new(vec![Span::styled(title, theme.style(Role::Title))]).note(note);
        let inner = panel.draw(frame, place, true, theme);
        draw_lines(frame, inner, cut_rows(content, inner.height.into(), theme));
    }
}

/// Truncates rows to a height; the last row then says how many are left out.
fn cut_rows(mut rows: Vec<Line<'static>>, height: usize, theme: &Theme) -> Vec<Line<'static>> {
    if rows.len() > height && height > 0 {
        let left_out = rows.len() - (height - 1);
        rows.truncate(height - 1);
        rows.push(Line::styled(format!("  … {left_out} more"), theme.style(Role::Dim)));
    }
    rows
}

const WHERE: &str = "Where the time went";
const LIMITS: &str = "What limits the run";
/// Maximum number of kernels whose utilization is listed.
const MEASURED: usize = 16;
/// Minimum and maximum width of their names.
const NAME: (usize, usize) = (20, 30);

fn panel_contents(app: &App, report: &Report, columns: usize, ascii: bool, theme: &Theme) -> Vec<Content> {
    let mut out = Vec::new();
    let triage = report.triage.as_ref().and_then(Option::as_ref);
    // All figures of a page must cover the same time span: if only the steady state was judged, its breakdown is on the
    // overview.
    if let Some(triage) = triage.filter(|_| !report.judges_less_than_shown()) {
        let key = app.session.key_label(ActionId::Overview);
        // The table above may cover the whole run, so always name the time span of the bar, in a word if there is no
        // room for more.
        let room = columns.saturating_sub(WHERE.len() + key.len() + 19);
        let base = Some(judged_line(triage)).filter(|line| display_width(line) <= room).unwrap_or_else(|| format!("of {}", triage.base));
        let note = vec![
            Span::styled(format!("{base}   "), theme.style(Role::Dim)),
            Span::styled(key, theme.style(Role::Key)),
            Span::styled(" overview", theme.style(Role::Dim)),
        ];
        out.push((WHERE, note, super::time_breakdown::lines(triage, columns, u16::MAX, ascii, theme)));
    }
    let note = vec![Span::styled("share of kernel time, by the first hint", theme.style(Role::Dim))];
    out.push(("Diagnoses", note, diagnosis_lines(report, columns, theme)));
    if let Some(triage) = triage {
        out.push((LIMITS, Vec::new(), finding_lines(triage, app.session.lead(app.session.active).as_ref(), columns, false, theme)));
    }
    let note = vec![Span::styled("% of peak, median profiled launch of each", theme.style(Role::Dim))];
    out.push(("Speed of light", note, utilization_lines(app, report, columns, theme)));
    let note = vec![Span::styled("share of kernel time, guessed from the names", theme.style(Role::Dim))];
    out.push(("Kinds of work", note, family_lines(report, columns, ascii, theme)));
    out
}

/// Utilization of the kernels that were measured, longest first.
fn utilization_lines(app: &App, report: &Report, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(grouping) = report.groups.grouping.as_ref().filter(|g| g.by.is_kernel()) else { return Vec::new() };
    let measured = grouping.rows.iter().enumerate().filter_map(|(at, row)| {
        let (from, result, _) = report.best_result(at)?;
        let metrics = app.session.metrics(from)?;
        let lookup = Lookup::new(metrics, metrics.results.get(result)?);
        let figures = FIGURES.map(|(word, names)| (word, lookup.first_finite(names)));
        figures.iter().any(|f| f.1.is_some()).then_some((row, figures))
    });
    let name = (columns / 4).clamp(NAME.0, NAME.1);
    let each = columns.saturating_sub(name) / FIGURES.len();
    let wide = each.saturating_sub(8);
    if wide < 4 {
        return Vec::new();
    }
    let line = |(row, figures): (&GroupRow, [(&'static str, Option<f64>); 4])| {
        let mut spans = vec![Span::styled(align_left(&cut_middle(&escape_unsafe(&row.name), name - 1), name), theme.style(Role::Text))];
        for (word, percent) in figures {
            let Some(percent) = percent else {
                spans.push(Span::raw(" ".repeat(each)));
                continue;
            };
            spans.extend(gauge(percent / 100.0, wide, at_limit(word), theme));
            spans.push(Span::styled(align_right(&units::format_whole_percent(percent), 5), theme.style(Role::Title)));
            spans.push(Span::raw(" ".repeat(each - wide - 5)));
        }
        Line::from(spans)
    };
    let mut out: Vec<Line<'static>> = measured.take(MEASURED).map(line).collect();
    if !out.is_empty() {
        let words = FIGURES.iter().map(|f| align_left(f.0, each)).collect::<String>();
        out.insert(0, Line::styled(format!("{}{words}", align_left("kernel", name)), theme.style(Role::Head)));
    }
    out
}

/// Shares of kernel time by family.
fn family_lines(report: &Report, columns: usize, ascii: bool, theme: &Theme) -> Vec<Line<'static>> {
    let Some(grouping) = report.groups.grouping.as_ref().filter(|g| g.by.is_kernel()) else { return Vec::new() };
    let mut sums: Vec<(Family, f64, i64, u64, usize)> = Vec::new();
    for row in &grouping.rows {
        match sums.iter_mut().find(|s| s.0 == row.family) {
            Some(sum) => {
                *sum = (sum.0, sum.1 + row.share_percent, sum.2.saturating_add(row.stats.total), sum.3 + row.stats.count, sum.4 + 1);
            }
            None => sums.push((row.family, row.share_percent, row.stats.total, row.stats.count, 1)),
        }
    }
    sums.sort_by(|a, b| b.1.total_cmp(&a.1));
    let amd = report.profile.as_ref().is_some_and(|p| p.is_amd());
    let wide = columns.saturating_sub(2 + 12 + 1 + 7 + 10 + 12 + 17).clamp(4, 60);
    let line = |(family, share, total, launches, kernels): (Family, f64, i64, u64, usize)| {
        let mut spans = vec![
            family_swatch(Some(family), ascii, theme),
            Span::raw(" "),
            Span::styled(align_left(family.vendor_name(amd), 12), theme.style(Role::Text)),
            Span::raw(" "),
        ];
        spans.extend(bar(share / 100.0, wide, theme.style(Role::Bar), theme));
        spans.push(Span::styled(align_right(&units::format_percent(share), 7), theme.style(Role::Title)));
        spans.push(Span::styled(align_right(&Nanos(total).to_string(), 10), theme.style(Role::Text)));
        spans.push(Span::styled(align_right(&units::format_count(kernels, "kernel"), 12), theme.style(Role::Dim)));
        spans.push(Span::styled(align_right(&units::format_count(launches, "launch"), 17), theme.style(Role::Dim)));
        Line::from(spans)
    };
    sums.into_iter().map(line).collect()
}

/// Shares of kernel time by diagnosis, for the measured kernels only.
fn diagnosis_lines(report: &Report, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(grouping) = report.groups.grouping.as_ref().filter(|g| g.by.is_kernel() && !report.diagnosed.is_empty()) else {
        return Vec::new();
    };
    let mut shares: Vec<(Diagnosis, Severity, f64, usize)> = Vec::new();
    for (row, hint) in &report.diagnosed {
        let Some(share) = grouping.rows.get(*row).map(|r| r.share_percent) else { continue };
        match shares.iter_mut().find(|s| s.0 == hint.id) {
            Some(sum) => (sum.1, sum.2, sum.3) = (sum.1.max(hint.severity), sum.2 + share, sum.3 + 1),
            None => shares.push((hint.id, hint.severity, share, 1)),
        }
    }
    shares.sort_by(|a, b| b.2.total_cmp(&a.2).then_with(|| a.0.id().cmp(b.0.id())));
    let name = shares.iter().map(|s| display_width(s.0.id())).max().unwrap_or(0);
    let wide = columns.saturating_sub(2 + name + 1 + 7 + 12).clamp(4, 60);
    let row = |(id, severity, share, kernels): &(Diagnosis, Severity, f64, usize)| {
        let (mark, role) = severity_glyph(*severity);
        let mut spans = vec![Span::styled(format!("{mark} {} ", align_left(id.id(), name)), theme.style(role))];
        spans.extend(bar(share / 100.0, wide, theme.style(Role::Bar), theme));
        spans.push(Span::styled(align_right(&units::format_percent(*share), 7), theme.style(Role::Title)));
        spans.push(Span::styled(align_right(&units::format_count(*kernels, "kernel"), 12), theme.style(Role::Dim)));
        Line::from(spans)
    };
    let mut out: Vec<Line<'static>> = shares.iter().map(row).collect();
    // Kernels that were measured without a diagnosis, and those that were not measured.
    let told = |row: usize| report.diagnosed.contains_key(&row);
    let undiagnosed = grouping.rows.iter().enumerate().filter(|(at, _)| !told(*at) && report.best_result(*at).is_some());
    let undiagnosed: f64 = undiagnosed.map(|(_, row)| row.share_percent).sum();
    let rest = 100.0 - undiagnosed - shares.iter().map(|s| s.2).sum::<f64>();
    // Without times, no kernel has a share.
    let timed = grouping.rows.iter().any(|row| row.share_percent > 0.0);
    for (word, share) in [("no diagnosis", undiagnosed), ("not profiled", rest)].into_iter().filter(|r| timed && r.1 >= 0.1) {
        let mut spans = vec![Span::styled(format!("· {} ", align_left(word, name)), theme.style(Role::Dim))];
        spans.extend(bar(share / 100.0, wide, theme.style(Role::BarEmpty), theme));
        spans.push(Span::styled(align_right(&units::format_percent(share), 7), theme.style(Role::Dim)));
        out.push(Line::from(spans));
    }
    out
}

/// A cause that limits a run, as a row of a list.
pub struct CauseRow {
    pub badge: (&'static str, Role),
    pub id: &'static str,
    pub share: String,
    pub sure: &'static str,
    pub headline: String,
}

/// Causes that limit a run: the one that comes before its own findings, then these.
pub fn cause_rows(triage: &Triage, lead: Option<&Lead<'_>>) -> Vec<CauseRow> {
    let own = |f: &Finding| CauseRow {
        badge: finding_glyph(f),
        id: f.id.id(),
        share: f.share_text(),
        sure: f.sure.as_str(),
        headline: f.headline.clone(),
    };
    let first = lead.map(|lead| match lead {
        Lead::Straggler(s) => CauseRow {
            badge: finding_glyph(s.finding),
            id: s.finding.id.id(),
            share: s.finding.share_text(),
            sure: s.finding.sure.as_str(),
            headline: s.finding.headline.clone(),
        },
        Lead::Kernel(KernelLead { kernel, hint, gain }) => CauseRow {
            badge: severity_glyph(hint.severity),
            id: hint.id.id(),
            share: units::format_whole_percent(gain * 100.0),
            sure: "measured",
            headline: format!("{kernel}: {}", hint.headline),
        },
    });
    first.into_iter().chain(triage.findings.iter().map(own)).collect()
}

/// Causes that limit a run, with whole sentences or one line each.
pub fn finding_lines(triage: &Triage, lead: Option<&Lead<'_>>, columns: usize, whole: bool, theme: &Theme) -> Vec<Line<'static>> {
    const LEAD: usize = 28;
    let room = columns.saturating_sub(LEAD);
    let rows = |cause: &CauseRow| {
        let (mark, role) = cause.badge;
        let text = escape_unsafe(&cause.headline);
        let text = if whole { wrap_text(&text, room) } else { vec![cut_end(&text, room)] };
        let lead = vec![
            Span::styled(format!("{mark} {} ", align_left(cause.id, 18)), theme.style(role)),
            Span::styled(align_right(&cause.share, 5), theme.style(Role::Title)),
        ];
        let lines = text.into_iter().enumerate().map(move |(at, text)| {
            let mut spans = if at == 0 { lead.clone() } else { vec![Span::raw(" ".repeat(LEAD - 2))] };
            spans.push(Span::styled(format!("  {text}"), theme.style(Role::Text)));
            Line::from(spans)
        });
        lines.collect::<Vec<_>>()
    };
    cause_rows(triage, lead).iter().flat_map(rows).collect()
}
