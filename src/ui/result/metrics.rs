//! Metrics screen: sections with metrics, bars, tables, charts and rules; on a wide screen, also a list of sections.

use super::super::panel::Panel;
use super::super::text::{align_left, align_right, bar, shade_track, wrap_text};
use super::super::view::View;
use super::super::{Role, Theme, chart};
use super::{diagnosis_charts, level_role, memory_chart};
use crate::analysis::hints::Hint;
use crate::analysis::labels::{cut_end, display_width};
use crate::analysis::metrics_page::{Cell, Chart, MetricsRow};
use crate::app::screens::result::Asked;
use crate::app::{ActionId, App, Mouse, ResultScreen};
use crate::model::sections::{Message, Piece, Scope, Verdict};
use crate::model::text::escape_unsafe;
use crate::model::units;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

/// Minimum width to show the list of sections next to the rows.
const WIDE: u16 = 116;
/// Width of the list of sections.
const RAIL: u16 = 34;
/// Minimum width to also show the hints next to the rows.
const WIDEST: u16 = 160;
/// Width of the hints.
const PANE: u16 = 46;
/// Number of rows of a curve.
const CURVE: usize = 4;

pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &ResultScreen, view: &mut View, theme: &Theme) {
    let mut body = area;
    if screen.sections.finder.typing || !screen.sections.finder.text().is_empty() {
        let [line, rest] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
        frame.render_widget(search_line(screen, theme), line);
        body = rest;
    }
    if let Some(text) = status_text(app, screen) {
        let [line, rest] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(body);
        let role = if matches!(screen.details, Asked::Failed(_)) { Role::Bad } else { Role::Dim };
        frame.render_widget(Line::styled(cut_end(&escape_unsafe(&text), body.width.into()), theme.style(role)), line);
        body = rest;
    }
    let alone = !screen.sections.finder.text().is_empty();
    let bordered = area.width >= WIDE && area.height >= diagnosis_charts::ABOVE && !alone;
    if bordered && screen.subject.result.is_some() && !screen.subject.failed && !screen.subject.is_amd() {
        body = diagnosis_charts::above_metrics(frame, body, app, screen, theme);
    }
    if area.width >= WIDE && !alone {
        let [list, main] = Layout::horizontal([Constraint::Length(RAIL), Constraint::Min(40)]).areas(body);
        let list = Panel::new(vec![Span::styled("Sections", theme.style(Role::Title))]).draw(frame, list, bordered, theme);
        draw_section_list(frame, list, screen, view, theme);
        body = main;
    }
    if area.width >= WIDEST && !alone {
        let [main, side] = Layout::horizontal([Constraint::Min(60), Constraint::Length(PANE)]).areas(body);
        let title = vec![
            Span::styled("Hints", theme.style(Role::Title)),
            Span::styled(format!("  {} shows why", app.session.key_label(ActionId::Hints)), theme.style(Role::Dim)),
        ];
        let side = Panel::new(title).draw(frame, side, bordered, theme);
        super::hints::draw_pane(frame, side, app, screen, theme);
        body = main;
    }
    if bordered {
        body = Panel::new(vec![Span::styled("Metrics", theme.style(Role::Title))]).focused().draw(frame, body, true, theme);
    }
    draw_rows(frame, body, app, screen, view, theme);
}

fn status_text(app: &App, screen: &ResultScreen) -> Option<String> {
    if let Asked::Failed(why) = &screen.details {
        return Some(why.clone());
    }
    if matches!(screen.details, Asked::Waiting) {
        return Some("reading sections and rules …".to_owned());
    }
    if screen.sections.rows.is_empty() && !screen.sections.finder.text().is_empty() {
        return Some(format!("no metric matches; {} clears", app.session.key_label(ActionId::Back)));
    }
    let nvtx = screen.details.get().filter(|d| !d.nvtx.is_empty()).map(|d| d.nvtx.join(" › "));
    nvtx.map(|n| format!("NVTX {n}"))
}

fn search_line(screen: &ResultScreen, theme: &Theme) -> Line<'static> {
    let mut spans = vec![
        Span::styled("find ", theme.style(Role::Dim)),
        Span::styled(escape_unsafe(screen.sections.finder.text()).into_owned(), theme.style(Role::Match)),
    ];
    if screen.sections.finder.typing {
        spans.push(Span::styled("▏", theme.style(Role::Key)));
    }
    let found = screen.sections.rows.len();
    spans.push(Span::styled(format!("  {}", units::format_count(found, "metric")), theme.style(Role::Dim)));
    Line::from(spans)
}

/// Estimated speedup, in percent of the kernel's time, from which a rule's message is as severe as a hint of high severity.
const HIGH: f64 = 30.0;

fn verdict_glyph(verdict: Verdict) -> (&'static str, Role) {
    match verdict {
        Verdict::Error => ("✗", Role::Bad),
        Verdict::Warning | Verdict::Optimization => ("△", Role::Warn),
        Verdict::Info | Verdict::None => ("·", Role::Dim),
    }
}

/// Draws the list of sections, highlighting the selected one.
fn draw_section_list(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, view: &mut View, theme: &Theme) {
    let heads: Vec<(usize, &str, Option<Verdict>)> = screen
        .sections
        .rows
        .iter()
        .enumerate()
        .filter_map(|(at, r)| match r {
            MetricsRow::Section { name, verdict, .. } => Some((at, &**name, *verdict)),
            _ => None,
        })
        .collect();
    let here = heads.iter().rposition(|h| h.0 <= screen.sections.selected).unwrap_or(0);
    let height = usize::from(area.height);
    let top = (here + 1).saturating_sub(height);
    let columns = usize::from(area.width);
    for (y, (i, (at, name, verdict))) in (0..).zip(heads.iter().enumerate().skip(top).take(height)) {
        let rect = Rect { y: area.y + y, height: 1, ..area };
        let (mark, role) = verdict.map_or((" ", Role::Dim), verdict_glyph);
        let style = theme.style(if i == here { Role::Title } else { Role::Dim });
        let name = cut_end(&escape_unsafe(name), columns.saturating_sub(4));
        let line = vec![
            Span::styled(if i == here { "▸ " } else { "  " }, theme.style(Role::Key)),
            Span::styled(align_left(&name, columns.saturating_sub(4)), style),
            Span::styled(format!(" {mark}"), theme.style(role)),
        ];
        view.hits.push((rect, Mouse::Row(*at)));
        frame.render_widget(Line::from(line), rect);
    }
}

fn draw_rows(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &ResultScreen, view: &mut View, theme: &Theme) {
    let (columns, height) = (usize::from(area.width), usize::from(area.height));
    let draw = Draw { app, screen, theme, columns };
    let heights: Vec<usize> = screen.sections.rows.iter().enumerate().map(|(i, r)| draw.row_height(i, r)).collect();
    let start: Vec<usize> = heights
        .iter()
        .scan(0, |at, h| {
            let here = *at;
            *at += h;
            Some(here)
        })
        .collect();
    let total: usize = heights.iter().sum();
    let (first, rows) =
        (start.get(screen.sections.selected).copied().unwrap_or(0), heights.get(screen.sections.selected).copied().unwrap_or(1));
    let mut top = (*view.scroll_offset("sections")).min(total.saturating_sub(height));
    let is_section = matches!(screen.sections.rows.get(screen.sections.selected), Some(MetricsRow::Section { .. }));
    if first < top || first + rows > top + height {
        // Scroll to a section's title or to the beginning of a long rule.
        top = if first < top || is_section || rows > height { first } else { first + rows - height };
    } else if is_section && first > top + height * 2 / 3 {
        top = first;
    }
    // Selecting the first selectable row also reveals the rows above it.
    if screen.sections.rows.iter().position(MetricsRow::is_selectable) == Some(screen.sections.selected) && first < height {
        top = 0;
    }
    *view.scroll_offset("sections") = top.min(total.saturating_sub(height));
    let top = *view.scroll_offset("sections");
    let mut y = 0;
    for (at, row) in screen.sections.rows.iter().enumerate() {
        let (from, tall) = (start[at], heights[at]);
        if from + tall <= top {
            continue;
        }
        if y >= height {
            break;
        }
        let lines = draw.row_lines(at, row);
        let last = lines.len().saturating_sub(1);
        for (n, line) in lines.into_iter().enumerate().skip(top.saturating_sub(from)) {
            if y >= height {
                break;
            }
            let rect = Rect { y: area.y + u16::try_from(y).unwrap_or(0), height: 1, ..area };
            frame.render_widget(line, rect);
            // Do not highlight the blank line before a section's title.
            if at == screen.sections.selected && (n == last || !matches!(row, MetricsRow::Section { .. })) {
                crate::ui::widgets::highlight_row(frame.buffer_mut(), rect, theme);
            }
            view.hits.push((rect, Mouse::Row(at)));
            y += 1;
        }
    }
    // During a search, the line above the rows already shows the number of matches.
    if total > height && screen.sections.finder.text().is_empty() {
        // Show a range of lines: a percentage would look like a metric.
        let text = format!(" {}–{} of {total} ", top + 1, (top + height).min(total));
        let w = u16::try_from(display_width(&text)).unwrap_or(0);
        // Leave room for a section's mark at the end of the line.
        let place = Rect { x: (area.x + area.width).saturating_sub(w + 3), y: area.y, width: w.min(area.width), height: 1 };
        frame.render_widget(Line::styled(text, theme.style(Role::Faint)), place);
    }
}

struct Draw<'a> {
    app: &'a App,
    screen: &'a ResultScreen,
    theme: &'a Theme,
    columns: usize,
}

impl Draw<'_> {
    fn find_message(&self, rule: usize, message: usize) -> Option<&Message> {
        self.screen.details.get()?.rules.get(rule)?.messages.get(message)
    }

    fn row_height(&self, at: usize, row: &MetricsRow) -> usize {
        match row {
            MetricsRow::Section { .. } => 1 + usize::from(at > 0),
            MetricsRow::Rule(r, m) => self.find_message(*r, *m).map_or(1, |m| self.rule_lines(m).len()),
            MetricsRow::Chart(Chart::Memory(flow)) => memory_chart::lines(flow, self.columns, self.theme).len(),
            MetricsRow::Chart(Chart::Curve { .. }) => CURVE + 1,
            MetricsRow::Note(text) => wrap_text(text, self.columns.saturating_sub(2)).len().max(1),
            _ => 1,
        }
    }

    fn row_lines(&self, at: usize, row: &MetricsRow) -> Vec<Line<'static>> {
        let theme = self.theme;
        match row {
            MetricsRow::Section { name, verdict, .. } => {
                let mark = verdict.filter(|v| *v > Verdict::Info).map(verdict_glyph);
                let name = cut_end(&escape_unsafe(name), self.columns.saturating_sub(8));
                let rest = self.columns.saturating_sub(display_width(&name) + 6);
                let mut spans = vec![
                    Span::styled("── ", theme.style(Role::Border)),
                    Span::styled(name, theme.style(Role::Title)),
                    Span::styled(format!(" {}", "─".repeat(rest)), theme.style(Role::Border)),
                ];
                if let Some((mark, role)) = mark {
                    spans.push(Span::styled(format!(" {mark}"), theme.style(role)));
                }
                let mut out = Vec::new();
                if at > 0 {
                    out.push(Line::default());
                }
                out.push(Line::from(spans));
                out
            }
            MetricsRow::Fold { label, count, open, .. } => vec![Line::from(vec![
                Span::styled(if *open { " ▾ " } else { " ▸ " }, theme.style(Role::Key)),
                Span::styled(cut_end(&escape_unsafe(label), self.columns.saturating_sub(14)), theme.style(Role::Head)),
                Span::styled(format!("  {count}"), theme.style(Role::Dim)),
            ])],
            MetricsRow::Label(text) => {
                vec![Line::styled(format!("   {}", cut_end(&escape_unsafe(text), self.columns.saturating_sub(3))), theme.style(Role::Head))]
            }
            MetricsRow::Metric(cell) => vec![self.metric_line(cell, cell.percent.map(|p| (p / 100.0, theme.style(level_role(p)))))],
            MetricsRow::Bar { cell, share } => {
                let role = cell.percent.map_or(Role::Bar, level_role);
                vec![self.metric_line(cell, Some((*share, theme.style(role))))]
            }
            MetricsRow::Cells { label, cells, head, .. } => vec![self.cell_line(label, cells, *head)],
            MetricsRow::Rule(r, m) => self.find_message(*r, *m).map(|m| self.rule_lines(m)).unwrap_or_default(),
            MetricsRow::Hint(i) => self.screen.subject.hints.get(*i).map(|h| vec![self.hint_line(h)]).unwrap_or_default(),
            MetricsRow::Note(text) => wrap_text(text, self.columns.saturating_sub(2))
                .into_iter()
                .map(|l| Line::styled(format!("  {l}"), theme.style(Role::Dim)))
                .collect(),
            MetricsRow::Chart(chart) => self.chart_lines(chart),
        }
    }

    /// Label, number, unit and bar of a metric.
    fn metric_line(&self, cell: &Cell, share: Option<(f64, ratatui::style::Style)>) -> Line<'static> {
        const NUMBER: usize = 13;
        let theme = self.theme;
        let bars = (self.columns / 5).clamp(8, 28);
        // On a wide screen, show units as long as `register/thread` in full.
        let unit = if self.columns >= 100 { 16 } else { 9 };
        let label_room = self.columns.saturating_sub(3 + NUMBER + 1 + unit + 1 + bars).clamp(16, 58);
        let label = cut_end(&escape_unsafe(&cell.label), label_room);
        let mut spans = vec![Span::styled(format!("   {}", align_left(&label, label_room)), theme.style(Role::Text))];
        if cell.number.is_empty() {
            spans.push(Span::styled(align_right("not collected", NUMBER), theme.style(Role::Faint)));
            return Line::from(spans);
        }
        // A text value may also use the room for bar and unit.
        if cell.unit.is_empty() && cell.number.chars().any(char::is_alphabetic) && cell.number.len() > NUMBER {
            let room = self.columns.saturating_sub(label_room + 4);
            spans.push(Span::styled(format!(" {}", cut_end(&escape_unsafe(&cell.number), room)), theme.style(Role::Title)));
            return Line::from(spans);
        }
        spans.push(Span::styled(align_right(&escape_unsafe(&cell.number), NUMBER), theme.style(Role::Title)));
        spans.push(Span::styled(format!(" {}", align_left(&escape_unsafe(&cell.unit), unit)), theme.style(Role::Dim)));
        if let Some((share, style)) = share {
            spans.push(Span::raw(" "));
            spans.extend(shade_track(bar(share, bars, style, theme)));
        }
        Line::from(spans)
    }

    fn cell_line(&self, label: &str, cells: &[String], head: bool) -> Line<'static> {
        let theme = self.theme;
        let name = (self.columns / 4).clamp(14, 34);
        let each = (self.columns.saturating_sub(name + 3) / cells.len().max(1)).clamp(6, 15);
        let fits = self.columns.saturating_sub(name + 3) / each;
        let style = theme.style(if head { Role::Head } else { Role::Title });
        let mut spans =
            vec![Span::styled(format!("   {}", align_left(&cut_end(&escape_unsafe(label), name), name)), theme.style(Role::Text))];
        spans.extend(cells.iter().take(fits).map(|c| Span::styled(align_right(&escape_unsafe(c), each), style)));
        Line::from(spans)
    }

    /// A hint on one line: glyph, id, gain, headline.
    fn hint_line(&self, hint: &Hint) -> Line<'static> {
        const ID: usize = 24;
        let theme = self.theme;
        let (mark, role) = super::hint_mark(self.app, self.screen, hint);
        let room = self.columns.saturating_sub(3 + ID + 10);
        Line::from(vec![
            Span::styled(format!(" {mark} "), theme.style(role)),
            Span::styled(align_left(hint.id.id(), ID), theme.style(role)),
            Span::styled(align_right(&hint.short_gain_text(), 7), theme.style(Role::Title)),
            Span::styled(format!("   {}", cut_end(&escape_unsafe(&hint.headline), room)), theme.style(Role::Text)),
        ])
    }

    /// Mark, title and estimated speedup of a rule.
    fn rule_head(&self, message: &Message) -> Line<'static> {
        let theme = self.theme;
        // As for our own hints, the sign says how much is at stake.
        let (mark, role) = match message.speedup {
            Some((Scope::Global, percent)) if percent >= HIGH => ("▲", Role::Bad),
            _ => verdict_glyph(message.verdict),
        };
        let mut head = vec![Span::styled(format!(" {mark} "), theme.style(role))];
        if !message.title.is_empty() {
            head.push(Span::styled(escape_unsafe(&message.title).into_owned(), theme.style(role)));
        }
        if let Some((scope, percent)) = message.speedup {
            let scope = if scope == Scope::Global { "of the kernel" } else { "of this part" };
            head.push(Span::styled(format!("  up to {percent:.1}% {scope}, by NVIDIA's estimate"), theme.style(Role::Dim)));
        }
        Line::from(head)
    }

    /// Lines of a rule's message: heading, and text with highlighted links.
    fn rule_lines(&self, message: &Message) -> Vec<Line<'static>> {
        let theme = self.theme;
        let mut out = vec![self.rule_head(message)];
        let text: String = message
            .text
            .iter()
            .map(|p| match p {
                Piece::Text(t) => escape_unsafe(t).replace("^J", " "),
                Piece::Section { label, .. } => format!("‹{}›", escape_unsafe(label)),
                Piece::Link { label, .. } => escape_unsafe(label).into_owned(),
            })
            .collect();
        for line in wrap_text(&text, self.columns.saturating_sub(6).max(20)) {
            let mut spans = vec![Span::raw("   ")];
            // Links to sections are enclosed in `‹›`.
            let mut rest = line.as_str();
            while let Some(at) = rest.find('‹') {
                spans.push(Span::styled(rest[..at].to_owned(), theme.style(Role::Text)));
                let end = rest[at..].find('›').map_or(rest.len(), |e| at + e + '›'.len_utf8());
                spans.push(Span::styled(rest[at..end].to_owned(), theme.style(Role::Key)));
                rest = &rest[end..];
            }
            spans.push(Span::styled(rest.to_owned(), theme.style(Role::Text)));
            out.push(Line::from(spans));
        }
        out
    }

    fn chart_lines(&self, chart: &Chart) -> Vec<Line<'static>> {
        let theme = self.theme;
        match chart {
            Chart::Memory(flow) => memory_chart::lines(flow, self.columns, theme),
            Chart::Time { label, unit, values } => {
                let room = (self.columns / 3).clamp(18, 40);
                let most = values.iter().copied().fold(f64::MIN, f64::max);
                let columns = self.columns.saturating_sub(room + 26).max(10);
                let drawn = chart::spark_line(values, columns);
                let (most, unit) = crate::analysis::metric::human_number(most, unit);
                vec![Line::from(vec![
                    Span::styled(format!("   {}", align_left(&cut_end(&escape_unsafe(label), room), room)), theme.style(Role::Text)),
                    Span::styled(drawn, theme.style(Role::Next)),
                    Span::styled(format!("  max {most} {unit}"), theme.style(Role::Dim)),
                ])]
            }
            Chart::Curve { points, here, axis } => {
                let columns = self.columns.saturating_sub(14).clamp(20, 90);
                let (first, last) = (points.first().map_or(0.0, |p| p.0), points.last().map_or(1.0, |p| p.0));
                let most = points.iter().map(|p| p.1).fold(0.0, f64::max);
                let at = |x: f64| if last > first { ((x - first) / (last - first) * (columns - 1) as f64).round() as usize } else { 0 };
                let mut heights = vec![0.0_f64; columns];
                let mut next = 0;
                for (c, h) in heights.iter_mut().enumerate() {
                    // Find the step for this column: the last point at or before it.
                    while next + 1 < points.len() && at(points[next + 1].0) <= c {
                        next += 1;
                    }
                    *h = points.get(next).map_or(0.0, |p| p.1);
                }
                let own = here.map(at).filter(|c| *c < columns);
                let mut out = Vec::new();
                for row in chart::step_lines(&heights, most, CURVE).into_iter().zip(0..) {
                    let (text, i) = row;
                    let scale = if i == 0 { format_axis_number(most) } else { String::new() };
                    let mut spans = vec![Span::styled(format!("   {} ", align_right(&scale, 6)), theme.style(Role::Faint))];
                    for (c, ch) in text.chars().enumerate() {
                        let role = if own == Some(c) { Role::Peak } else { Role::Bar };
                        spans.push(Span::styled(ch.to_string(), theme.style(role)));
                    }
                    out.push(Line::from(spans));
                }
                let said = here.map_or_else(String::new, |h| format!("this launch: {}", format_axis_number(h)));
                let (low, high) = (format_axis_number(first), format_axis_number(last));
                let middle = format!("{} {said}", escape_unsafe(axis));
                let gap = columns.saturating_sub(display_width(&low) + display_width(&high) + display_width(&middle)) / 2;
                let line = format!("{low}{}{middle}{}{high}", " ".repeat(gap), " ".repeat(gap));
                out.push(Line::styled(format!("          {}", cut_end(&line, columns)), theme.style(Role::Faint)));
                out
            }
        }
    }
}

/// Formats a number on an axis; from 10,000, numbers are abbreviated with a unit prefix.
fn format_axis_number(value: f64) -> String {
    if value.abs() >= 10_000.0 {
        let (number, unit) = crate::analysis::metric::human_number(value, "byte");
        return format!("{number}{}", unit.trim_end_matches('B'));
    }
    if value.fract() == 0.0 { format!("{value:.0}") } else { format!("{value:.2}") }
}
