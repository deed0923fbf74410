//! Summary panels below a short kernel table: time breakdown, diagnoses of the kernels, and limits of the run.

use super::overview::severity_mark;
use super::panel::{Panel, draw_lines, split_top};
use super::text::{align_left, align_right, bar};
use super::widgets::severity_glyph;
use super::{Role, Theme};
use crate::analysis::hints::{Diagnosis, Severity};
use crate::analysis::labels::{cut_end, display_width};
use crate::analysis::triage::Triage;
use crate::app::{ActionId, App, Report};
use crate::model::text::escape_unsafe;
use crate::model::units;
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
    // The last panel extends to the bottom of the screen.
    if let Some(last) = shown.last_mut() {
        last.0 += room;
    }
    for (tall, (title, note, content)) in shown {
        let place = split_top(&mut rest, tall);
        let panel = Panel::new(vec![Span::styled(title, theme.style(Role::Title))]).note(note);
        let inner = panel.draw(frame, place, true, theme);
        draw_lines(frame, inner, content);
    }
}

const WHERE: &str = "Where the time went";

fn panel_contents(app: &App, report: &Report, columns: usize, ascii: bool, theme: &Theme) -> Vec<Content> {
    let mut out = Vec::new();
    let triage = report.triage.as_ref().and_then(Option::as_ref);
    if let Some(triage) = triage {
        let key = app.session.key_label(ActionId::Overview);
        // The table next to it may cover the whole run, so always name the time span, if only in a word.
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
        out.push(("What limits the run", Vec::new(), finding_lines(triage, columns, theme)));
    }
    out
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
    let rest = 100.0 - shares.iter().map(|s| s.2).sum::<f64>();
    if rest >= 0.1 {
        let mut spans = vec![Span::styled(format!("· {} ", align_left("not profiled", name)), theme.style(Role::Dim))];
        spans.extend(bar(rest / 100.0, wide, theme.style(Role::BarEmpty), theme));
        spans.push(Span::styled(align_right(&units::format_percent(rest), 7), theme.style(Role::Dim)));
        out.push(Line::from(spans));
    }
    out
}

fn finding_lines(triage: &Triage, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let row = |f: &crate::analysis::triage::Finding| {
        let (mark, role) = severity_mark(f.severity);
        Line::from(vec![
            Span::styled(format!("{mark} {} ", align_left(f.id.id(), 18)), theme.style(role)),
            Span::styled(align_right(&f.share_text(), 4), theme.style(Role::Title)),
            Span::styled(format!("  {}", cut_end(&escape_unsafe(&f.headline), columns.saturating_sub(27))), theme.style(Role::Text)),
        ])
    };
    triage.findings.iter().map(row).collect()
}
