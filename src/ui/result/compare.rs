//! Comparison of two results: durations, unit utilization, warp stall reasons, and all metrics. Colors mark better or
//! worse only if enough launches were measured to rule out chance.

use super::super::panel::{Panel, draw_lines, draw_panel, fits_borders, split_top};
use super::super::table::{self, Rows};
use super::super::text::{align_left, align_right, bar, wrap_text};
use super::super::view::View;
use super::super::widgets::{change_bar, mirror_bar, severity_glyph};
use super::super::{Role, Theme};
use crate::analysis::compare::{Change, ComparedMetric};
use crate::analysis::diff::MATTERS;
use crate::analysis::fuzzy::name_similarity;
use crate::analysis::hint_outcome::{Outcome, Promise, faults_of};
use crate::analysis::hints::limits::AT_LIMIT;
use crate::analysis::hints::rule_context::Case;
use crate::analysis::hints::stalls::Stalls;
use crate::analysis::hints::unit_throughput::Busy;
use crate::analysis::hints::{Hint, Severity, Subject};
use crate::analysis::labels::{cut_end, cut_pair, display_width};
use crate::analysis::readable::readable_name;
use crate::app::{ActionId, App, ResultScreen};
use crate::model::config::format_dim3;
use crate::model::text::escape_unsafe;
use crate::model::units;
use crate::model::units::format_count;
use crate::model::{Metrics, Nanos, ResultMetrics};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

/// Minimum width to show the charts next to the table.
const BESIDE: u16 = 160;
/// Minimum number of rows to show the charts above the table.
const ABOVE: u16 = 30;
/// Maximum numbers of units and of stall reasons to draw.
const LISTED: usize = 10;
/// Widths of unit names and of stall reasons.
const UNIT: usize = 12;
const REASON: usize = 20;
/// Width of the words for the two results.
const WORD: usize = 7;
/// Width of a formatted change.
const CHANGE: usize = 12;
/// Width of a value: minimum, and maximum in a narrow table and in a wide one.
const VALUE: (usize, usize, usize) = (10, 15, 18);
/// Minimum number of columns for a wide table.
const WIDE: usize = 100;
/// Minimum width of a label.
const LABEL: usize = 18;
/// Width of a label for which bars are shortened, and the minimum width of bars.
const WHOLE_LABEL: usize = 42;
const LEAST_BARS: usize = 9;
/// Width of the change bar: maximum, which is odd, and divisor of the table's width.
const BAR: (usize, usize) = (21, 7);
/// Changes that fill one half of the bar: in points for percentages, as a factor for other values.
const FULL_POINTS: f64 = 100.0;
const FULL_FACTOR: f64 = 8.0;

/// Minimum similarity between the names of two versions of the same kernel.
const RELATED: f64 = 0.5;

/// One of the two results, for the header.
struct Side<'a> {
    word: &'static str,
    metrics: &'a Metrics,
    result: &'a ResultMetrics,
    at: usize,
    subject: &'a Subject,
    /// File name if the result is from another report, otherwise empty.
    file: String,
    /// Number of launches with the same kernel, grid and block.
    launches: usize,
}

impl Side<'_> {
    fn duration_ns(&self) -> Option<f64> {
        self.metrics.duration(self.result).map(|d| d.0 as f64)
    }

    fn kernel_name(&self) -> String {
        escape_unsafe(&readable_name(&self.result.kernel)).into_owned()
    }

    fn first_hint(&self) -> Option<&Hint> {
        self.subject.hints.first()
    }

    /// Launch configuration, position in the report, and file, in forms of decreasing length.
    fn place_forms(&self) -> [String; 3] {
        let dims = |d: Option<[u32; 3]>| d.map(format_dim3).unwrap_or_default();
        let file = if self.file.is_empty() { String::new() } else { format!(" in {}", self.file) };
        let (grid, block) = (dims(self.result.grid), dims(self.result.block));
        let (launch, at) = (format!("({grid}) × ({block})"), format!("{} of {}{file}", self.at + 1, self.metrics.results.len()));
        [format!("{launch}  {at}"), if self.file.is_empty() { launch } else { at.clone() }, at]
    }
}

fn both_sides<'a>(app: &App, screen: &'a ResultScreen) -> Option<[Side<'a>; 2]> {
    let (report, metrics, other) = screen.compare.other.as_ref()?;
    let file = app.session.reports.get(*report).filter(|_| *report != screen.report).and_then(|r| r.file.file_name());
    Some([
        Side {
            word: "first",
            metrics: &screen.metrics,
            result: screen.metrics.results.get(screen.result)?,
            at: screen.result,
            subject: &screen.subject,
            file: String::new(),
            launches: screen.compare.launches.0,
        },
        Side {
            word: "second",
            metrics,
            result: metrics.results.get(*other)?,
            at: *other,
            subject: &screen.compare.subject,
            file: file.map(|f| escape_unsafe(&f.to_string_lossy()).into_owned()).unwrap_or_default(),
            launches: screen.compare.launches.1,
        },
    ])
}

pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &ResultScreen, view: &mut View, theme: &Theme) {
    let Some(sides) = both_sides(app, screen) else { return };
    let framed = fits_borders(area) && area.height >= ABOVE;
    if !framed {
        let mut rest = area;
        let head = header_lines(screen, &sides, area.width.into(), theme);
        let tall = u16::try_from(head.len()).unwrap_or(3);
        draw_lines(frame, split_top(&mut rest, tall), head);
        draw_metrics(frame, rest, screen, view, theme);
        return;
    }
    let (mut pictures, rest) = if area.width >= BESIDE {
        let [pictures, rest] = Layout::horizontal([Constraint::Percentage(46), Constraint::Min(70)]).areas(area);
        (pictures, rest)
    } else {
        let [pictures, rest] = Layout::vertical([Constraint::Length(14), Constraint::Min(8)]).areas(area);
        (pictures, rest)
    };
    let key = app.session.key_label(ActionId::CompareWith);
    let inside = usize::from(pictures.width.saturating_sub(4));
    let head = header_lines(screen, &sides, inside, theme);
    let place = split_top(&mut pictures, u16::try_from(head.len() + 2).unwrap_or(5));
    let note = vec![Span::styled(key, theme.style(Role::Key)), Span::styled(" another", theme.style(Role::Dim))];
    let inner = Panel::new(vec![Span::styled("Side by side", theme.style(Role::Title))]).note(note).draw(frame, place, true, theme);
    draw_lines(frame, inner, head);
    let cases = sides.each_ref().map(|s| Case::new(&s.subject.facts));
    let (units, stalls) = (ranked_units(&cases), ranked_stalls(&cases));
    if area.width >= BESIDE {
        let tall = |listed: usize| u16::try_from(listed.clamp(1, LISTED)).unwrap_or(1) + 2;
        draw_units(frame, split_top(&mut pictures, tall(units.len())), &units, &cases, theme);
        draw_stalls(frame, split_top(&mut pictures, tall(stalls.len())), &stalls, &cases, theme);
        if pictures.height >= 4 {
            draw_hints(frame, pictures, &sides, theme);
        }
    } else {
        let [one, two] = Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(pictures);
        draw_units(frame, one, &units, &cases, theme);
        draw_stalls(frame, two, &stalls, &cases, theme);
    }
    let rows = format!("  {} of {}", (screen.compare.selected + 1).min(screen.compare.rows.len()), screen.compare.rows.len());
    let title = vec![Span::styled("Metrics", theme.style(Role::Title)), Span::styled(rows, theme.style(Role::Dim))];
    let note = vec![Span::styled(table_legend(screen, theme), theme.style(Role::Dim))];
    let inner = Panel::new(title).note(note).focused().draw(frame, rest, true, theme);
    draw_metrics(frame, inner, screen, view, theme);
}

/// Legend of the table's colors and bars.
fn table_legend(screen: &ResultScreen, theme: &Theme) -> String {
    let scale = format!("bars: up to {FULL_FACTOR}×, log scale");
    if screen.compare.rows.iter().any(|r| r.p.is_some()) { format!("{}: more than chance  {scale}", theme.accent()) } else { scale }
}

/// Lines with both results, their durations as bars, and the conclusion.
fn header_lines(screen: &ResultScreen, sides: &[Side<'_>; 2], columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let most = sides.iter().filter_map(Side::duration_ns).fold(0.0, f64::max);
    let narrow = columns < 84;
    let bars = if narrow { 12 } else { (columns / 4).min(30) };
    let badge = |s: &Side<'_>| {
        s.first_hint().map_or_else(Vec::new, |h| {
            let (mark, role) = severity_glyph(h.severity);
            vec![Span::styled(format!("  {mark} {}", h.id.id()), theme.style(role))]
        })
    };
    let tails = sides.each_ref().map(|s| {
        let mut tail = s.duration_ns().map_or_else(Vec::new, |ns| {
            let mut bar = bar(if most > 0.0 { ns / most } else { 0.0 }, bars, theme.style(Role::Bar), theme);
            bar.push(Span::styled(align_right(&Nanos::format_ns(ns), 9), theme.style(Role::Title)));
            bar
        });
        tail.extend(badge(s));
        tail
    });
    let taken = tails.iter().map(|t| t.iter().map(|s| display_width(&s.content)).sum::<usize>()).max().unwrap_or(0);
    let room = columns.saturating_sub(WORD + taken + 2);
    // Put the names first, so that the difference between them stays visible.
    let names = cut_pair(&sides[0].kernel_name(), &sides[1].kernel_name(), room);
    let longest = display_width(&names.0).max(display_width(&names.1));
    let mut out: Vec<Line<'static>> = Vec::new();
    for ((side, tail), name) in sides.iter().zip(tails).zip([names.0, names.1]) {
        // Use the longest form of the place that fits.
        let fits = |p: &String| longest + 2 + display_width(p) <= room;
        let place = side.place_forms().into_iter().find(fits).map_or_else(String::new, |p| format!("  {p}"));
        let mut spans = vec![
            Span::styled(align_left(side.word, WORD), theme.style(Role::Dim)),
            Span::styled(align_left(&name, longest), theme.style(Role::Title)),
            Span::styled(align_left(&place, room.saturating_sub(longest)), theme.style(Role::Dim)),
            Span::raw("  "),
        ];
        spans.extend(tail);
        out.push(Line::from(spans));
    }
    let mut verdict = verdict_lines(screen, sides, columns, theme);
    let most = if narrow { 1 } else { 2 };
    let cut = verdict.len() > most;
    verdict.truncate(most);
    // A narrow terminal shows one line, which is a complete sentence and needs no mark of truncation.
    if let Some(last) = verdict.last_mut().filter(|_| cut && !narrow) {
        let style = last.spans.last().map_or(last.style, |s| last.style.patch(s.style));
        let text: String = last.spans.iter().map(|s| s.content.as_ref()).collect();
        // Without room for the mark, it replaces the end of the line.
        if display_width(&text) + 2 <= columns {
            last.push_span(Span::styled(" …", style));
        } else {
            *last = Line::styled(cut_end(&format!("{text} …"), columns), style);
        }
    }
    out.extend(verdict);
    out
}

/// Speedup or slowdown of the other result, and the outcome of the significance test.
fn verdict_lines(screen: &ResultScreen, sides: &[Side<'_>; 2], columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let (Some(this), Some(other)) = (sides[0].duration_ns(), sides[1].duration_ns()) else {
        return vec![Line::styled("no duration was collected: --section SpeedOfLight", theme.style(Role::Dim))];
    };
    let row = screen.compare.rows.iter().find(|r| &*r.name == "gpu__time_duration.sum");
    let (said, role) = match row.map(|r| r.change) {
        Some(Change::Same) => ("the same time within 1%".to_owned(), Role::Text),
        change => {
            let sign = if other < this { "−" } else { "+" };
            let factor = if other < this { this / other.max(1.0) } else { other / this.max(1.0) };
            let speed = if other < this { "faster" } else { "slower" };
            let text = format!("the second is {factor:.2}× {speed} ({sign}{})", Nanos::format_ns((other - this).abs()));
            let role = match change {
                Some(Change::Better) => Role::Good,
                Some(Change::Worse) => Role::Bad,
                _ => Role::Text,
            };
            (text, role)
        }
    };
    let launches = |s: &Side<'_>| format_count(s.launches, "launch");
    let tested = match row.and_then(|r| r.p) {
        Some(p) if p < 0.001 => " (p < 0.001)".to_owned(),
        Some(p) => format!(" (p {p:.3})"),
        None => String::new(),
    };
    let (a, b) = (launches(&sides[0]), launches(&sides[1]));
    let how = if tested.is_empty() {
        format!("{a} against {b}: too few to tell the duration from chance; profile five of each")
    } else {
        format!("{a} against {b}{tested}")
    };
    let mut spans = vec![Span::styled(format!("{said}  "), theme.style(role))];
    let room = columns.saturating_sub(display_width(&said) + 2);
    if room >= display_width(&how) {
        spans.push(Span::styled(how, theme.style(Role::Dim)));
        return vec![Line::from(spans)];
    }
    let mut out = vec![Line::from(spans)];
    out.extend(wrap_text(&how, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
    out
}

fn panel_title(word: &'static str, of: &'static str, theme: &Theme) -> Vec<Span<'static>> {
    vec![Span::styled(word, theme.style(Role::Title)), Span::styled(of, theme.style(Role::Dim))]
}

/// Legend of the two sides, for the edges of panels.
fn sides_legend(theme: &Theme) -> Vec<Span<'static>> {
    vec![
        Span::styled("first ", theme.style(Role::Dim)),
        Span::styled("│", theme.style(Role::Border)),
        Span::styled(" second", theme.style(Role::Dim)),
    ]
}

fn not_collected(frame: &mut Frame<'_>, area: Rect, word: &'static str, theme: &Theme) {
    let inner = draw_panel(frame, area, vec![Span::styled(word, theme.style(Role::Dim))], true, theme);
    draw_lines(frame, inner, vec![Line::styled("Not collected for either of them.", theme.style(Role::Dim))]);
}

/// Units of both results, busiest first.
fn ranked_units(cases: &[Case<'_>; 2]) -> Vec<Busy> {
    let mut all: Vec<Busy> = cases.iter().flat_map(|c| c.demand.shown_units()).collect();
    all.sort_by(|a, b| b.share.total_cmp(&a.share));
    let mut seen = Vec::new();
    all.retain(|u| {
        let new = !seen.contains(&u.unit);
        seen.push(u.unit);
        new
    });
    all
}

fn draw_units(frame: &mut Frame<'_>, area: Rect, units: &[Busy], cases: &[Case<'_>; 2], theme: &Theme) {
    if units.is_empty() {
        not_collected(frame, area, "Units", theme);
        return;
    }
    let inner = Panel::new(panel_title("Units", ", % of peak", theme)).note(sides_legend(theme)).draw(frame, area, true, theme);
    let line = |u: &Busy| {
        let values = (cases[0].demand.get(u.unit), cases[1].demand.get(u.unit));
        Line::from(mirror_bar(u.unit.label(), values, inner.width.into(), UNIT, AT_LIMIT.value / 100.0, theme))
    };
    draw_lines(frame, inner, units.iter().take(inner.height.into()).map(line).collect());
}

/// Stall reasons of both results, largest share first.
fn ranked_stalls(cases: &[Case<'_>; 2]) -> Vec<&'static str> {
    let mut all: Vec<(&'static str, f64)> = cases.iter().filter_map(|c| c.stalls.as_ref()).flat_map(Stalls::ranked_reasons).collect();
    all.retain(|r| r.1 >= 0.005);
    all.sort_by(|a, b| b.1.total_cmp(&a.1));
    let mut out: Vec<&'static str> = Vec::new();
    for (reason, _) in all {
        if !out.contains(&reason) {
            out.push(reason);
        }
    }
    out
}

fn draw_stalls(frame: &mut Frame<'_>, area: Rect, reasons: &[&'static str], cases: &[Case<'_>; 2], theme: &Theme) {
    if reasons.is_empty() {
        not_collected(frame, area, "Warps wait for", theme);
        return;
    }
    let inner =
        Panel::new(panel_title("Warps wait for", ", % of their cycles", theme)).note(sides_legend(theme)).draw(frame, area, true, theme);
    let share = |case: &Case<'_>, reason: &str| case.stalls.as_ref().map(|s| s.share(reason));
    let line = |reason: &&'static str| {
        let word = if *reason == "selected" { "issuing".to_owned() } else { reason.replace('_', " ") };
        let values = (share(&cases[0], reason), share(&cases[1], reason));
        // There is no peak for a share of stall time.
        Line::from(mirror_bar(&word, values, inner.width.into(), REASON, f64::INFINITY, theme))
    };
    draw_lines(frame, inner, reasons.iter().take(inner.height.into()).map(line).collect());
}

/// Gain predicted by the hint on the slower result, and gain measured in the faster one; `None` for unrelated
/// kernels.
fn predicted_gain(side: &Side<'_>, sides: &[Side<'_>; 2], hint: &Hint) -> Option<(String, Role)> {
    let other = sides.iter().find(|s| s.word != side.word)?;
    let saved = 1.0 - other.duration_ns()? / side.duration_ns().filter(|ns| *ns > 0.0)?;
    let related = name_similarity(&side.kernel_name(), &other.kernel_name()) >= RELATED;
    if !related || saved * 100.0 < MATTERS || hint.severity == Severity::Healthy {
        return None;
    }
    let promise = Promise::from_hint(hint).compare_with(&faults_of(&other.subject.hints));
    let role = match promise.classify_outcome(saved) {
        Outcome::Kept | Outcome::More => Role::Good,
        Outcome::Less => Role::Text,
        Outcome::Beyond | Outcome::Elsewhere => Role::Warn,
    };
    let elsewhere = if promise.classify_outcome(saved) == Outcome::Elsewhere { " by another change" } else { "" };
    Some((
        format!(
            "predicted {}, the {} result saves {}{elsewhere}",
            hint.details.gain.to_text(),
            other.word,
            units::format_whole_percent(saved * 100.0)
        ),
        role,
    ))
}

/// Draws the first hint of each result: headline and advice.
fn draw_hints(frame: &mut Frame<'_>, area: Rect, sides: &[Side<'_>; 2], theme: &Theme) {
    let inner = draw_panel(frame, area, vec![Span::styled("Diagnosis", theme.style(Role::Title))], true, theme);
    let columns = usize::from(inner.width);
    let mut out: Vec<Line<'static>> = Vec::new();
    for side in sides {
        let Some(hint) = side.first_hint() else { continue };
        if !out.is_empty() {
            out.push(Line::default());
        }
        let (mark, role) = severity_glyph(hint.severity);
        out.push(Line::from(vec![
            Span::styled(align_left(side.word, WORD), theme.style(Role::Dim)),
            Span::styled(format!("{mark} {}", hint.id.id()), theme.style(role)),
        ]));
        out.extend(wrap_text(&escape_unsafe(&hint.headline), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Text))));
        if let Some((text, role)) = predicted_gain(side, sides, hint) {
            out.extend(wrap_text(&text, columns).into_iter().map(|l| Line::styled(l, theme.style(role))));
        }
        for change in &hint.actions {
            let text = wrap_text(&escape_unsafe(change), columns.saturating_sub(2));
            out.extend(
                text.into_iter()
                    .enumerate()
                    .map(|(i, l)| Line::styled(format!("{}{l}", if i == 0 { "→ " } else { "  " }), theme.style(Role::Next))),
            );
        }
    }
    out.truncate(inner.height.into());
    draw_lines(frame, inner, out);
}

fn draw_metrics(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, view: &mut View, theme: &Theme) {
    let columns = usize::from(area.width);
    let rows = &screen.compare.rows;
    let widest = rows.iter().flat_map(|r| [display_width(&r.first), display_width(&r.second)]).max().unwrap_or(0);
    let most = if columns >= WIDE { VALUE.2 } else { VALUE.1 };
    let value = widest.clamp(VALUE.0, most).min(columns.saturating_sub(LABEL + CHANGE) / 2 - 2) + 2;
    let bars = (columns / BAR.1).min(BAR.0) | 1;
    // Whole names of metrics are worth more than long bars.
    let room = columns.saturating_sub(2 * value + CHANGE + 2);
    let bars = bars.min(room.saturating_sub(WHOLE_LABEL).max(LEAST_BARS)) | 1;
    let bars = if columns >= LABEL + 10 + 2 * value + CHANGE + bars + 2 { bars } else { 0 };
    let label = columns.saturating_sub(2 * value + CHANGE + if bars > 0 { bars + 2 } else { 0 });
    let full = label.saturating_sub(48);
    let label = label.min(if full >= 30 { 48 } else { usize::MAX });
    let [head, body] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    let ends = if bars > 0 { format!("  {}{}", align_left("less", bars / 2 + 1), align_right("more", bars / 2)) } else { String::new() };
    let titles = format!(
        "{}{}{}{}{ends}",
        align_left("metric", label),
        align_right("first", value),
        align_right("second", value),
        align_right("change", CHANGE)
    );
    frame.render_widget(Line::styled(cut_end(&titles, columns), theme.style(Role::Head)), head);
    let of = Rows { list: "compare", count: rows.len(), selected: screen.compare.selected };
    table::draw_rows(frame, body, of, view, theme, |at, _| {
        let Some(row) = rows.get(at) else { return Vec::new() };
        let role = match row.change {
            Change::Better => Role::Good,
            Change::Worse => Role::Bad,
            Change::Different => Role::Text,
            Change::Same | Change::Alone => Role::Faint,
        };
        let quiet = matches!(row.change, Change::Same | Change::Alone);
        let text = theme.style(if quiet { Role::Dim } else { Role::Text });
        let cell = |t: &str| align_right(&cut_end(&escape_unsafe(t), value - 2), value);
        let mut spans = vec![
            Span::styled(align_left(&cut_end(&escape_unsafe(&row.label), label.saturating_sub(1)), label), text),
            Span::styled(cell(&row.first), text),
            Span::styled(cell(&row.second), text),
            Span::styled(align_right(&format_change(row), CHANGE), theme.style(role)),
        ];
        if bars > 0 {
            spans.push(Span::raw("  "));
            let style = theme.style(if role == Role::Text { Role::Bar } else { role });
            spans.extend(change_bar(bar_fill(row), bars, style, theme));
        }
        if full >= 30 {
            spans.push(Span::styled(format!("  {}", cut_end(&escape_unsafe(&row.name), full.saturating_sub(2))), theme.style(Role::Faint)));
        }
        spans
    });
}

/// Signed fill of the change bar, -1 to 1; factors are on a logarithmic scale.
fn bar_fill(row: &ComparedMetric) -> f64 {
    match (row.delta, row.change) {
        (_, Change::Same | Change::Alone) | (None, _) => 0.0,
        // Leave the bar empty if the difference may be due to chance.
        (Some(_), Change::Different) if row.p.is_some() => 0.0,
        (Some(d), _) if row.points => d / FULL_POINTS,
        (Some(d), _) => (1.0 + d / 100.0).max(1e-9).ln() / FULL_FACTOR.ln(),
    }
}

/// Formats a change: `+12.3%`, `-4.5 pts`, `3.1×`, or a word.
fn format_change(row: &ComparedMetric) -> String {
    let mark = match row.change {
        Change::Better => "✓ ",
        Change::Worse => "▲ ",
        _ => "",
    };
    match (row.delta, row.change) {
        (_, Change::Alone) => "only one".to_owned(),
        (_, Change::Same) => "=".to_owned(),
        (Some(d), _) if row.points => format!("{mark}{d:+.1} pts"),
        (Some(d), _) if d >= 100_000.0 => format!("{mark}>1000×"),
        (Some(d), _) if d >= 200.0 => format!("{mark}{:.1}×", d / 100.0 + 1.0),
        (Some(d), _) => format!("{mark}{d:+.1}%"),
        (None, _) => format!("{mark}≠"),
    }
}
