//! Panels around the kernel table of a comparison: time breakdown of both runs, the selected kernel in both, and the kinds
//! of work.

use super::finding_details::{detail_lines, put_advice};
use super::panel::{Panel, draw_lines, split_top};
use super::preview::paired_histograms;
use super::text::{align_left, align_right, wrap_text};
use super::widgets::gauges::FIGURES as MEASURED;
use super::widgets::{change_bar, family_swatch, finding_glyph, severity_glyph};
use super::{Role, Theme, time_breakdown};
use crate::analysis::diff::{DiffRow, Fate, Side};
use crate::analysis::hint_outcome::Outcome;
use crate::analysis::hints::FirstHint;
use crate::analysis::labels::{cut_end, cut_middle, display_width};
use crate::analysis::metric::Lookup;
use crate::analysis::triage::{StepTimes, TimeCategory, Triage, step_parts};
use crate::analysis::{Family, GroupRow};
use crate::app::{App, DiffScreen};
use crate::model::text::escape_unsafe;
use crate::model::{Metrics, Nanos, ResultMetrics, units};
use crate::report;
use crate::report::finding_text::EvidenceText;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

/// Width of the labels in front of the bars.
const WORD: usize = 9;
/// Width of a time category, with its shares in both runs.
const PART: usize = 40;
/// Minimum share of a time category for it to be listed, in percent of the window.
const LEAST: f64 = 0.5;

/// Formats a figure.
type Figure = fn(&Side) -> String;

/// Width of the figures, and minimum panel width to show charts next to them.
const FIGURES: usize = 44;
const BESIDE: usize = 96;

/// Minimum number of rows of the panel with the kinds of work.
pub const KINDS: u16 = 5;
/// Column widths of that panel.
const KIND: usize = 14;
const TIME: usize = 11;
/// Width of the names beside the utilization.
const UTILIZED: usize = 30;

/// Width of the time after a bar.
const LENGTH: usize = 9;

/// Labels of the first and second run.
type Words = (&'static str, &'static str);

pub fn both_triages<'a>(app: &'a App, screen: &DiffScreen) -> Option<(&'a Triage, &'a Triage)> {
    let of = |i: usize| app.session.reports.get(i)?.triage.as_ref()?.as_ref().map(|t| &**t);
    Some((of(screen.before)?, of(screen.after)?))
}

/// Step times of both runs; `None` if a run has no steps, or if the steps are not of the same kind.
pub fn step_times(app: &App, screen: &DiffScreen) -> Option<StepTimes> {
    let (was, is) = both_triages(app, screen)?;
    StepTimes::of_runs(was, is)
}

/// The categories that matter in either run, the largest change first, each with its time in a step, or its share of
/// the runs, in words.
fn changed_parts(was: &Triage, is: &Triage) -> Vec<(TimeCategory, String)> {
    let matters = |part: TimeCategory| was.part_percent(part).max(is.part_percent(part)) >= LEAST;
    if let Some(parts) = step_parts(was, is) {
        let text = |a: f64, b: f64| format!("{} to {}", Nanos::format_ns(a), Nanos::format_ns(b));
        return parts.into_iter().filter(|p| matters(p.0)).map(|(part, a, b)| (part, text(a, b))).collect();
    }
    let mut all: Vec<_> =
        TimeCategory::ALL.into_iter().filter(|p| matters(*p)).map(|p| (p, was.part_percent(p), is.part_percent(p))).collect();
    all.sort_by(|x, y| (y.2 - y.1).abs().total_cmp(&(x.2 - x.1).abs()));
    all.into_iter().map(|(p, a, b)| (p, format!("{} to {}", units::format_percent(a), units::format_percent(b)))).collect()
}

fn parts_per_row(columns: usize) -> usize {
    (columns / PART).max(1)
}

/// Number of rows of the time breakdown; 0 if one of the runs has not been analyzed.
pub fn times_height(app: &App, screen: &DiffScreen, columns: u16) -> u16 {
    both_triages(app, screen).map_or(0, |(was, is)| {
        u16::try_from(changed_parts(was, is).len().div_ceil(parts_per_row(usize::from(columns.saturating_sub(4))))).unwrap_or(0) + 6
    })
}

/// Draws the time breakdown and the limits of both runs in a panel.
pub fn draw_times(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &DiffScreen, words: Words, theme: &Theme) {
    let Some((was, is)) = both_triages(app, screen) else { return };
    let side = |t: &Triage| {
        let steps = t.step_stats().map_or_else(String::new, |s| format!(" ({})", units::format_count(s.count, "step")));
        let part = if t.outside.is_some() { format!(" of {}", Nanos(t.span.1 - t.span.0)) } else { String::new() };
        format!("{}{part}{steps}", Nanos(t.length()))
    };
    let note = format!("in {}, then {}", side(was), side(is));
    let of = if step_times(app, screen).is_some() { "Where the time of a step went" } else { "Where the time went" };
    let title = vec![Span::styled(of, theme.style(Role::Title))];
    let inner = Panel::new(title).note(vec![Span::styled(note, theme.style(Role::Dim))]).draw(frame, area, true, theme);
    draw_lines(frame, inner, times_lines(app, screen, words, usize::from(inner.width), theme));
}

/// The time breakdown and the limits of both runs; empty if one of the runs has not been analyzed.
pub fn times_lines(app: &App, screen: &DiffScreen, words: Words, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some((was, is)) = both_triages(app, screen) else { return Vec::new() };
    let dim = theme.style(Role::Dim);
    let mut out = Vec::new();
    // Draw both runs to one time scale: that of the step times, or of the analyzed times if a run has no steps.
    let times = step_times(app, screen).map_or((was.length(), is.length()), |t| (t.before, t.after));
    let longest = times.0.max(times.1).max(1) as f64;
    let room = columns.saturating_sub(WORD + LENGTH);
    for (word, triage, time) in [(words.0, was, times.0), (words.1, is, times.1)] {
        let wide = ((time as f64 / longest * room as f64).round() as usize).clamp(1.min(room), room);
        let mut spans = vec![Span::styled(align_left(word, WORD), dim)];
        spans.extend(time_breakdown::share_bar(triage, wide, theme));
        spans.push(Span::styled(format!(" {}", Nanos(time)), theme.style(Role::Title)));
        out.push(Line::from(spans));
    }
    let all = changed_parts(was, is);
    let across = parts_per_row(columns);
    let down = all.len().div_ceil(across);
    let wide = columns / across;
    for row in 0..down {
        let mut spans = Vec::new();
        for (part, text) in all.iter().skip(row).step_by(down) {
            let name = part.labelled();
            spans.push(Span::styled(format!("{} ", time_breakdown::part_glyph(*part, "■", false, theme)), theme.style(Role::Part(*part))));
            spans.push(Span::styled(align_left(&name, 20), theme.style(Role::Text)));
            spans.push(Span::styled(align_left(&align_right(text, 18), wide.saturating_sub(22)), theme.style(Role::Title)));
        }
        out.push(Line::from(spans));
    }
    for (word, triage) in [(words.0, was), (words.1, is)] {
        let mut spans = vec![Span::styled(align_left(word, WORD), dim)];
        let mut used = WORD;
        for finding in &triage.findings {
            let (mark, role) = finding_glyph(finding);
            let text = format!("{mark} {} {}  ", finding.id.id(), finding.share_text());
            used += display_width(&text);
            if used > columns {
                break;
            }
            spans.push(Span::styled(text, theme.style(role)));
        }
        if triage.findings.is_empty() {
            spans.push(Span::styled("nothing found", dim));
        }
        out.push(Line::from(spans));
    }
    out
}

/// The selected kernel in both runs: its figures, and the distribution of its durations, which is below the figures in a
/// narrow panel.
struct Selected {
    figures: Vec<Line<'static>>,
    beside: Vec<Line<'static>>,
}

/// Number of rows of the panel of the selected kernel.
pub fn selected_height(app: &App, screen: &DiffScreen, words: Words, columns: u16, theme: &Theme) -> u16 {
    let tall = selected_lines(app, screen, words, (usize::from(columns.saturating_sub(4)), usize::MAX), theme)
        .map_or(0, |s| s.figures.len().max(s.beside.len()));
    u16::try_from(tall + 2).unwrap_or(u16::MAX)
}

/// The selected kernel in both runs, with what limits it in each, if that was measured.
pub fn selected_text(app: &App, screen: &DiffScreen, words: Words, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    // Everything in one column.
    let columns = columns.min(BESIDE - 1);
    let Some(mut out) = selected_lines(app, screen, words, (columns, usize::MAX), theme).map(|s| s.figures) else { return Vec::new() };
    let row = screen.diff.as_ref().and_then(|d| d.rows.get(screen.selected));
    for measured in row.into_iter().flat_map(|row| measured_sides(app, screen, row, words)).flatten() {
        if let Some(hint) = measured.hint {
            let text = format!("{}: {}", measured.word, hint.headline);
            out.extend(wrap_text(&escape_unsafe(&text), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Text))));
        }
    }
    out
}

/// Draws the selected kernel in both runs: name, figures, and distribution of durations.
pub fn draw_selected(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &DiffScreen, words: Words, theme: &Theme) {
    let Some(row) = screen.diff.as_ref().and_then(|d| d.rows.get(screen.selected)) else { return };
    let columns = usize::from(area.width.saturating_sub(4));
    let rows = usize::from(area.height.saturating_sub(2));
    let Some(Selected { mut figures, beside }) = selected_lines(app, screen, words, (columns, rows), theme) else { return };
    let title = vec![Span::styled(cut_end(&escape_unsafe(row.name()), columns.saturating_sub(4)), theme.style(Role::Title))];
    // The table has the time in a step; the launches here are those of the whole runs.
    let by_step = screen.diff.as_ref().is_some_and(|d| d.step_totals.is_some());
    let panel = Panel::new(title);
    let panel = if by_step { panel.note(vec![Span::styled("whole runs", theme.style(Role::Dim))]) } else { panel };
    let inner = panel.draw(frame, area, true, theme);
    // A line's style covers the whole width of its area.
    let left = if beside.is_empty() { inner.width } else { (FIGURES as u16).min(inner.width) };
    if !beside.is_empty() {
        let right_of = Rect { x: inner.x + left, width: inner.width - left, ..inner };
        draw_lines(frame, right_of, beside.into_iter().take(inner.height.into()).collect());
    }
    figures.truncate(inner.height.into());
    draw_lines(frame, Rect { width: left, ..inner }, figures);
}

fn selected_lines(app: &App, screen: &DiffScreen, words: Words, (columns, rows): (usize, usize), theme: &Theme) -> Option<Selected> {
    let row = screen.diff.as_ref().and_then(|d| d.rows.get(screen.selected))?;
    let mut out = Vec::new();
    if row.fate == Fate::Renamed
        && let Some(before) = &row.before
    {
        out.extend(
            wrap_text(&format!("probably the new name of {}", escape_unsafe(&before.name)), columns)
                .into_iter()
                .map(|l| Line::styled(l, theme.style(Role::Warn))),
        );
        out.push(Line::default());
    }
    let mut pair = |word: &str, a: String, b: String| {
        let line = format!("{}{}{}", align_left(word, 12), align_right(&a, 14), align_right(&b, 14));
        out.push(Line::styled(line, theme.style(Role::Text)));
    };
    let of = |side: &Option<Side>, text: Figure| side.as_ref().map_or_else(|| "–".to_owned(), text);
    let both = |text: Figure| (of(&row.before, text), of(&row.after, text));
    pair("", words.0.to_owned(), words.1.to_owned());
    let figures: [(&str, Figure); 4] = [
        ("launches", |s| units::format_grouped(s.count)),
        ("total", |s| Nanos(s.total).to_string()),
        ("average", |s| Nanos::format_ns(s.avg)),
        ("median", |s| s.median.map_or_else(String::new, Nanos::format_ns)),
    ];
    for (word, text) in figures {
        let (a, b) = both(text);
        pair(word, a, b);
    }
    for change in &row.config_changes {
        pair(change.name, cut_end(&change.before, 13), cut_end(&change.after, 13));
    }
    // Draw distributions below the figures, or to the right of them in a wide panel.
    let beside = columns >= BESIDE;
    let mut more = Vec::new();
    if let Some((promise, got)) = row.hint_outcome() {
        let role = if promise.classify_outcome(got) == Outcome::Kept { Role::Good } else { Role::Warn };
        let figures = if beside { FIGURES } else { columns };
        more.extend(wrap_text(&promise.describe_outcome(got), figures).into_iter().map(|l| Line::styled(l, theme.style(role))));
    }
    let limits = measured_lines(app, screen, row, words, theme);
    if !more.is_empty() && !limits.is_empty() {
        more.push(Line::default());
    }
    more.extend(limits);
    let wide = if beside { columns - FIGURES } else { columns };
    let sides = [(screen.before, &row.before, words.0), (screen.after, &row.after, words.1)];
    let found = |(index, side, word): (usize, &Option<Side>, &'static str)| Some((word, find_group_row(app, index, &side.as_ref()?.name)?));
    let pair: Vec<_> = sides.into_iter().filter_map(found).collect();
    let below = out.len() + usize::from(!more.is_empty()) + more.len() + 1;
    let picture = paired_histograms(&pair, wide, if beside { rows } else { rows.saturating_sub(below) }, theme);
    if beside && picture.is_empty() {
        return Some(Selected { figures: out, beside: more });
    }
    if !more.is_empty() {
        out.push(Line::default());
        out.extend(more);
    }
    if beside {
        return Some(Selected { figures: out, beside: picture });
    }
    if !picture.is_empty() {
        out.push(Line::default());
        out.extend(picture);
    }
    Some(Selected { figures: out, beside: Vec::new() })
}

/// Result of a kernel in one of the runs.
struct Measured<'a> {
    word: &'static str,
    hint: Option<&'a FirstHint>,
    metrics: &'a Metrics,
    result: &'a ResultMetrics,
}

fn measured_sides<'a>(app: &'a App, screen: &DiffScreen, row: &DiffRow, words: Words) -> [Option<Measured<'a>>; 2] {
    [(screen.before, &row.before, words.0), (screen.after, &row.after, words.1)].map(|(report, side, word)| {
        let report = app.session.reports.get(report)?;
        let grouping = report.groups.grouping.as_ref().filter(|g| g.by.is_kernel())?;
        let name = &side.as_ref()?.name;
        let at = grouping.rows.iter().position(|r| r.name == *name)?;
        let (from, result, _) = report.best_result(at)?;
        let metrics = app.session.metrics(from)?;
        Some(Measured { word, hint: report.diagnosed.get(&at), metrics, result: metrics.results.get(result)? })
    })
}

/// Diagnosis and utilization of a kernel in both runs, where it was measured.
fn measured_lines(app: &App, screen: &DiffScreen, row: &DiffRow, words: Words, theme: &Theme) -> Vec<Line<'static>> {
    let found = measured_sides(app, screen, row, words);
    let mut out = Vec::new();
    for Measured { word, hint, .. } in found.iter().flatten() {
        let (text, role) = hint.map_or(("no diagnosis".to_owned(), Role::Dim), |hint| {
            let (mark, role) = severity_glyph(hint.severity);
            (format!("{mark} {}", hint.id.id()), role)
        });
        out.push(Line::from(vec![Span::styled(align_left(word, 12), theme.style(Role::Dim)), Span::styled(text, theme.style(role))]));
    }
    for (word, names) in MEASURED {
        let values = found.each_ref().map(|f| {
            let percent = f.as_ref().and_then(|m| Lookup::new(m.metrics, m.result).first_finite(names));
            percent.map_or_else(|| "–".to_owned(), units::format_whole_percent)
        });
        if values.iter().any(|v| v != "–") {
            let line = format!("{}{}{}", align_left(word, 12), align_right(&values[0], 14), align_right(&values[1], 14));
            out.push(Line::styled(line, theme.style(Role::Text)));
        }
    }
    out
}

/// Share of the time from which a change fills its bar.
const NOTABLE: f64 = 0.05;

/// Kernel time by family in both runs, ns, and the number of kernels; the largest change first.
fn sums_by_family(app: &App, screen: &DiffScreen) -> Vec<(Family, f64, f64, usize)> {
    let Some(diff) = &screen.diff else { return Vec::new() };
    let family = |report: usize, side: &Option<Side>| Some(find_group_row(app, report, &side.as_ref()?.name)?.family);
    let mut sums: Vec<(Family, f64, f64, usize)> = Vec::new();
    for row in &diff.rows {
        let total = |side: &Option<Side>| side.as_ref().map_or(0.0, |s| s.total as f64);
        let (was, is) = row.step.map_or_else(|| (total(&row.before), total(&row.after)), |s| (s.before, s.after));
        let of = family(screen.after, &row.after).or_else(|| family(screen.before, &row.before));
        let of = of.unwrap_or_else(|| Family::guess(row.name(), ""));
        match sums.iter_mut().find(|s| s.0 == of) {
            Some(sum) => *sum = (of, sum.1 + was, sum.2 + is, sum.3 + 1),
            None => sums.push((of, was, is, 1)),
        }
    }
    sums.sort_by(|a, b| (b.2 - b.1).abs().total_cmp(&(a.2 - a.1).abs()));
    sums
}

/// Number of rows of the panel with the kinds of work.
pub fn kinds_height(app: &App, screen: &DiffScreen) -> u16 {
    u16::try_from(sums_by_family(app, screen).len() + 3).unwrap_or(u16::MAX)
}

/// Draws the change of kernel time by family.
pub fn draw_kinds(frame: &mut Frame<'_>, area: &mut Rect, app: &App, screen: &DiffScreen, words: Words, ascii: bool, theme: &Theme) {
    let Some(diff) = &screen.diff else { return };
    let title = vec![Span::styled("Kinds of work", theme.style(Role::Title))];
    let base = if diff.steps.is_some() { "in a step" } else { "of the whole runs" };
    let note = vec![Span::styled(format!("kernel time {base}, guessed from the names"), theme.style(Role::Dim))];
    let sums = sums_by_family(app, screen);
    // A change that is small compared with all of the time has a short bar, even if it is the largest one.
    let all = sums.iter().map(|s| s.1.max(s.2)).sum::<f64>();
    let most = sums.iter().map(|s| (s.2 - s.1).abs()).fold((all * NOTABLE).max(1.0), f64::max);
    let columns = usize::from(area.width.saturating_sub(4));
    let bars = (columns.saturating_sub(KIND + 4 * TIME + 16) / 2 * 2 + 1).min(41);
    let head = format!(
        "{}{}{}{}  {}{}{}{}",
        align_left("", KIND),
        align_right(words.0, TIME),
        align_right(words.1, TIME),
        align_right("change", TIME),
        align_left("less", bars / 2 + 1),
        align_right("more", bars / 2),
        align_right("in %", TIME),
        align_right("", 14)
    );
    let amd = app.session.reports.get(screen.after).and_then(|r| r.profile.as_ref()).is_some_and(|p| p.is_amd());
    let mut out = vec![Line::styled(head, theme.style(Role::Head))];
    for (family, was, is, kernels) in sums {
        let signed = format!("{}{}", if is < was { "-" } else { "+" }, Nanos::format_ns((is - was).abs()));
        let percent = (was > 0.0).then(|| (is - was) / was * 100.0).map_or_else(String::new, units::format_percent_change);
        let mut spans = vec![
            family_swatch(Some(family), ascii, theme),
            Span::raw(" "),
            Span::styled(align_left(family.vendor_name(amd), KIND - 2), theme.style(Role::Text)),
            Span::styled(align_right(&Nanos::format_ns(was), TIME), theme.style(Role::Text)),
            Span::styled(align_right(&Nanos::format_ns(is), TIME), theme.style(Role::Text)),
            Span::styled(align_right(&signed, TIME), theme.style(Role::Title)),
            Span::raw("  "),
        ];
        spans.extend(change_bar((is - was) / most, bars, theme.style(Role::Bar), theme));
        spans.push(Span::styled(align_right(&percent, TIME), theme.style(Role::Text)));
        spans.push(Span::styled(align_right(&units::format_count(kernels, "kernel"), 14), theme.style(Role::Dim)));
        out.push(Line::from(spans));
    }
    // If the rows left over would be too few for the next panel, this panel takes them as well.
    let tall = u16::try_from(out.len() + 2).unwrap_or(u16::MAX);
    let place = if tall.saturating_add(KINDS) <= area.height { split_top(area, tall) } else { split_top(area, area.height) };
    let inner = Panel::new(title).note(note).draw(frame, place, true, theme);
    draw_lines(frame, inner, out);
}

/// Draws what limits each run, side by side: all findings, with remedies and values of the first. If a run was not
/// triaged, draws what limits the selected kernel in each, or the utilization of all kernels that both reports measured.
pub fn draw_limits(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &DiffScreen, words: Words, theme: &Theme) {
    if area.height < KINDS {
        return;
    }
    let mut draw = |area: Rect, title: &'static str, word: &str, out: Vec<Line<'static>>| {
        let title = vec![Span::styled(title, theme.style(Role::Title)), Span::styled(format!("  {word}"), theme.style(Role::Dim))];
        let inner = Panel::new(title).draw(frame, area, true, theme);
        draw_lines(frame, inner, cut_lines(out, usize::from(inner.height), theme));
    };
    let [left, right] = Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(area);
    let columns = usize::from(left.width.saturating_sub(4));
    if let Some((was, is)) = both_triages(app, screen) {
        draw(left, "What limits the run", words.0, limit_lines(was, columns, theme));
        draw(right, "What limits the run", words.1, limit_lines(is, columns, theme));
        return;
    }
    let row = screen.diff.as_ref().and_then(|d| d.rows.get(screen.selected));
    if let Some([Some(was), Some(is)]) = row.map(|row| measured_sides(app, screen, row, words)) {
        draw(left, "What limits the kernel", words.0, hint_lines(was.hint, columns, theme));
        draw(right, "What limits the kernel", words.1, hint_lines(is.hint, columns, theme));
        return;
    }
    let out = utilization_lines(app, screen, words, usize::from(area.width.saturating_sub(4)), theme);
    if !out.is_empty() {
        draw(area, "Speed of light", "% of peak", out);
    }
}

/// The first hint on a kernel.
fn hint_lines(hint: Option<&FirstHint>, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(hint) = hint else { return vec![Line::styled("no diagnosis", theme.style(Role::Dim))] };
    let (mark, role) = severity_glyph(hint.severity);
    let mut out = vec![Line::styled(format!("{mark} {}", hint.id.id()), theme.style(role))];
    let text = |what: &str| wrap_text(&escape_unsafe(what), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Text)));
    out.extend(text(&hint.headline));
    let evidence: Vec<EvidenceText> = hint.advice.evidence.iter().map(report::hints::evidence_text).collect();
    put_advice(&mut out, (&hint.advice.actions, &evidence), columns, theme);
    out
}

/// The findings of a run, with everything about the first of them.
fn limit_lines(triage: &Triage, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(first) = triage.findings.first() else { return vec![Line::styled("nothing found", theme.style(Role::Dim))] };
    let mut out = super::kernel_summary::finding_lines(triage, None, columns, true, theme);
    // The finding's sentence is already above.
    let sentence = wrap_text(&escape_unsafe(&first.headline), columns.max(20)).len();
    out.extend(detail_lines(first, (triage.origin(), triage.base), None, columns, theme).into_iter().skip(sentence));
    out
}

/// Cuts text to a number of rows and marks the cut.
fn cut_lines(mut lines: Vec<Line<'static>>, rows: usize, theme: &Theme) -> Vec<Line<'static>> {
    if lines.len() > rows {
        lines.truncate(rows.saturating_sub(1));
        // A heading alone, and the empty line above it, are useless.
        while lines.last().is_some_and(|l| l.width() == 0) || lines.len().checked_sub(2).is_some_and(|above| lines[above].width() == 0) {
            lines.pop();
        }
        lines.push(Line::styled("…", theme.style(Role::Dim)));
    }
    lines
}

/// Utilization of the kernels that were measured in both reports.
fn utilization_lines(app: &App, screen: &DiffScreen, words: Words, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(diff) = &screen.diff else { return Vec::new() };
    let each = columns.saturating_sub(UTILIZED) / MEASURED.len();
    let mut out = Vec::new();
    for row in &diff.rows {
        let [Some(was), Some(is)] = measured_sides(app, screen, row, words) else { continue };
        let mut spans =
            vec![Span::styled(align_left(&cut_middle(&escape_unsafe(row.name()), UTILIZED - 1), UTILIZED), theme.style(Role::Text))];
        for (_, names) in MEASURED {
            let of = |m: &Measured<'_>| {
                Lookup::new(m.metrics, m.result).first_finite(names).map_or_else(|| "–".to_owned(), units::format_whole_percent)
            };
            spans.push(Span::styled(align_left(&format!("{} to {}", of(&was), of(&is)), each), theme.style(Role::Text)));
        }
        out.push(Line::from(spans));
    }
    if !out.is_empty() {
        let heads = MEASURED.iter().map(|f| align_left(f.0, each)).collect::<String>();
        out.insert(0, Line::styled(format!("{}{heads}", align_left("kernel", UTILIZED)), theme.style(Role::Head)));
    }
    out
}

/// Row of a report's kernel table, by name.
fn find_group_row<'a>(app: &'a App, report: usize, name: &str) -> Option<&'a GroupRow> {
    // Changes are those of whole runs.
    let grouping = app.session.reports.get(report)?.whole_grouping()?;
    grouping.rows.iter().find(|r| grouping.by.is_kernel() && r.name == name)
}
