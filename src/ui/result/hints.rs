//! Hints screen: problems and good results with the values that support them, line by line; below them, NVIDIA's own
//! rules for comparison.

use super::super::panel::Panel;
use super::super::text::{align_left, align_right, wrap_text};
use super::super::view::View;
use super::super::widgets::range_bar;
use super::super::{Role, Theme};
use super::diagnosis_charts;
use crate::analysis::hints::{Evidence, Hint, Severity};
use crate::analysis::labels::{cut_end, display_width};
use crate::analysis::path::{self, PathStep};
use crate::analysis::triage::text::capitalize;
use crate::app::screens::result::hints::Line as Row;
use crate::app::{ActionId, App, Mouse, ResultScreen};
use crate::model::sections::Scope;
use crate::model::text::escape_unsafe;
use crate::model::units;
use crate::report::hints::no_hints_reason;
use crate::report::hints::{format_threshold, format_value};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span, Text};

/// Width of the label in front of a sentence of the reasoning.
const REASON: usize = 12;

/// Workflow steps from a hot kernel to a comparison; completed steps are ticked off.
pub fn step_line(app: &App, screen: &ResultScreen, columns: usize, theme: &Theme) -> Line<'static> {
    // A comparison with another report implies that something changed between the two.
    let compared = screen.compare.other.as_ref().is_some_and(|o| o.0 != screen.report);
    let steps = path::workflow_steps(&screen.subject, compared, app.session.reports.len() > 1);
    let mut spans = Vec::new();
    let mut used = 0;
    for PathStep { word, done, skipped, now } in steps {
        let (mark, role) = if done {
            ("✓", Role::Good)
        } else if now {
            ("▸", Role::Next)
        } else if skipped {
            ("–", Role::Faint)
        } else {
            ("○", Role::Faint)
        };
        let text = format!("{mark} {word}");
        let gap = if spans.is_empty() { "" } else { "  " };
        if used + gap.len() + display_width(&text) > columns {
            break;
        }
        used += gap.len() + display_width(&text);
        spans.push(Span::raw(gap));
        spans.push(Span::styled(text, theme.style(role)));
    }
    Line::from(spans)
}

pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &ResultScreen, view: &mut View, theme: &Theme) {
    let [path, mut body] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    frame.render_widget(step_line(app, screen, area.width.into(), theme), path);
    let pictures = area.height >= diagnosis_charts::ABOVE && area.width >= 100 && screen.subject.result.is_some() && !screen.subject.failed;
    if pictures {
        body = diagnosis_charts::draw(frame, body, app, screen, theme);
        let title =
            vec![Span::styled("Hints", theme.style(Role::Title)), Span::styled("  why, and what to change", theme.style(Role::Dim))];
        body = Panel::new(title).focused().draw(frame, body, true, theme);
    } else {
        body = Rect { y: body.y + 1, height: body.height.saturating_sub(1), ..body };
    }
    // Limit the width, because long lines are hard to read.
    let body = Rect { width: body.width.min(150), ..body };
    let draw = Draw {
        app,
        screen,
        theme,
        columns: body.width.into(),
        rerun: app.session.key_label(ActionId::Rerun),
        source: app.session.key_label(ActionId::Source),
    };
    let blocks: Vec<Vec<Line<'static>>> = screen.hints.lines.iter().enumerate().map(|(i, r)| draw.row_lines(i, r)).collect();
    draw_scrolled(frame, body, &blocks, screen.hints.selected, view, theme);
}

/// Draws blocks of lines, highlighting the selected block and keeping it visible.
fn draw_scrolled(frame: &mut Frame<'_>, area: Rect, blocks: &[Vec<Line<'static>>], selected: usize, view: &mut View, theme: &Theme) {
    let top = view.scroll_offset("hints");
    let height = usize::from(area.height);
    let first: usize = blocks.iter().take(selected).map(Vec::len).sum();
    let tall = blocks.get(selected).map_or(1, Vec::len);
    let total: usize = blocks.iter().map(Vec::len).sum();
    if first < *top {
        *top = first;
    } else if first + tall > *top + height {
        *top = (first + tall).saturating_sub(height).min(first);
    }
    *top = (*top).min(total.saturating_sub(height));
    // For the first block, always scroll to the top.
    if selected == 0 {
        *top = 0;
    }
    let top = *top;
    let all = blocks.iter().enumerate().flat_map(|(i, lines)| lines.iter().map(move |l| (i, l)));
    for (y, (at, line)) in (0..area.height).zip(all.skip(top)) {
        let rect = Rect { y: area.y + y, height: 1, ..area };
        frame.render_widget(line.clone(), rect);
        if at == selected {
            crate::ui::widgets::highlight_row(frame.buffer_mut(), rect, theme);
        }
        view.hits.push((rect, Mouse::Row(at)));
    }
}

struct Draw<'a> {
    app: &'a App,
    screen: &'a ResultScreen,
    theme: &'a Theme,
    columns: usize,
    rerun: String,
    source: String,
}

impl Draw<'_> {
    fn find_hint(&self, at: usize) -> Option<&Hint> {
        self.screen.subject.hints.get(at)
    }

    /// Returns true if the command would collect only source lines, and the report already contains the code.
    fn lines_here(&self, sections: &[&str]) -> bool {
        sections == ["SourceCounters"] && self.screen.has_code()
    }

    /// Text after a label, both indented.
    fn labelled_lines(&self, word: &str, text: &str, role: Role) -> Vec<Line<'static>> {
        const WORD: usize = 10;
        let room = self.columns.saturating_sub(4 + WORD).max(20);
        let lines = wrap_text(&escape_unsafe(text), room).into_iter().enumerate();
        lines
            .map(|(i, line)| {
                Line::from(vec![
                    Span::raw("    "),
                    Span::styled(align_left(if i == 0 { word } else { "" }, WORD), self.theme.style(Role::Dim)),
                    Span::styled(line, self.theme.style(role)),
                ])
            })
            .collect()
    }

    fn row_lines(&self, at: usize, row: &Row) -> Vec<Line<'static>> {
        let theme = self.theme;
        match row {
            Row::Hint(i, open) => {
                let mut out = if at > 0 { vec![Line::default()] } else { Vec::new() };
                out.extend(self.find_hint(*i).map(|h| self.heading_lines(h, *open)).unwrap_or_default());
                out
            }
            Row::Bound(i) => {
                let Some(hint) = self.find_hint(*i) else { return Vec::new() };
                if hint.severity == Severity::Healthy || hint.limit_text() == hint.bound {
                    return if hint.bound.is_empty() { Vec::new() } else { self.labelled_lines("at best", &hint.bound, Role::Dim) };
                }
                // The gain in the heading is this bound, or an estimate that ends at it: add only the reason for it. Any
                // other bound, and the basis of the stake, would be a second figure for the same gain.
                let gain = &hint.details.gain;
                let since = if gain.ends_at_bound() { hint.limit_text() } else { gain.estimate.as_str() };
                if since.is_empty() { Vec::new() } else { self.labelled_lines("since", since, Role::Dim) }
            }
            Row::Evidence(i, e) => {
                self.find_hint(*i).and_then(|h| h.evidence.get(*e)).map(|e| vec![self.evidence_line(e)]).unwrap_or_default()
            }
            Row::Effect(i, e) => {
                let effect = self.find_hint(*i).and_then(|h| h.effects.get(*e));
                effect.map(|(id, text)| self.labelled_lines("explains", &format!("{}: {text}", id.id()), Role::Dim)).unwrap_or_default()
            }
            Row::Action(i, a) => {
                let actions = self.find_hint(*i).map_or(&[][..], |h| &h.actions);
                let action = actions.get(*a).cloned().unwrap_or_default();
                let word = if *a == 0 { "change" } else { "" };
                let word = if actions.len() > 1 { format!("{word:6} {}", a + 1) } else { word.to_owned() };
                self.labelled_lines(&word, &action, Role::Text)
            }
            Row::Confirm(i) => {
                let Some(confirm) = self.find_hint(*i).map(|h| &h.confirm) else { return Vec::new() };
                if self.lines_here(&confirm.sections) {
                    return self.labelled_lines("confirm", &format!("{} shows {}", self.source, confirm.why), Role::Next);
                }
                if confirm.trace {
                    let text = format!("{} takes {}", self.rerun, confirm.why);
                    return self.labelled_lines("confirm", &text, Role::Next);
                }
                if confirm.sections.is_empty() {
                    return self.labelled_lines("confirm", &confirm.why, Role::Next);
                }
                let source = if confirm.source { " with sources" } else { "" };
                let text = format!("{} collects {}{source}: {}", self.rerun, confirm.sections.join(", "), confirm.why);
                self.labelled_lines("confirm", &text, Role::Next)
            }
            Row::Title(text) => {
                let rest = self.columns.saturating_sub(display_width(text) + 4);
                vec![
                    Line::default(),
                    Line::from(vec![
                        Span::styled("── ", theme.style(Role::Border)),
                        Span::styled(*text, theme.style(Role::Title)),
                        Span::styled(format!(" {}", "─".repeat(rest)), theme.style(Role::Border)),
                    ]),
                ]
            }
            Row::Reason(text) => {
                let (word, rest) = text.split_once(": ").unwrap_or(("", text));
                let lines = wrap_text(&escape_unsafe(rest), self.columns.saturating_sub(REASON + 3).max(20)).into_iter().enumerate();
                lines
                    .map(|(i, line)| {
                        Line::from(vec![
                            Span::styled(format!("   {}", align_left(if i == 0 { word } else { "" }, REASON)), theme.style(Role::Dim)),
                            Span::styled(line, theme.style(Role::Text)),
                        ])
                    })
                    .collect()
            }
            Row::Theirs(r, m) => vec![self.ncu_rule_line(*r, *m)],
            Row::Nothing => self.empty_lines(),
        }
    }

    fn empty_lines(&self) -> Vec<Line<'static>> {
        let subject = &self.screen.subject;
        let mut out = Vec::new();
        if subject.failed {
            let text = "ncu could not profile this launch: it failed, or was never run. If it fails without ncu, too, its error code \
                        (cudaGetLastError after the launch) or compute-sanitizer says why: often, its configuration is not possible.";
            out.extend(wrap_text(text, self.columns).into_iter().map(|l| Line::styled(l, self.theme.style(Role::Warn))));
        } else if let Some(collect) = subject.sections_to_collect() {
            // The findings of ncu itself are better than none.
            if let Some((title, percent)) = self.first_ncu_rule() {
                let text = format!("ncu's rule: {} (est. speedup {})", escape_unsafe(title), units::format_whole_percent(percent));
                out.extend(wrap_text(&text, self.columns).into_iter().map(|l| Line::styled(l, self.theme.style(Role::Title))));
            }
            let text = format!(
                "Not enough was collected to name a cause. {} collects {}: {}.",
                self.rerun,
                collect.sections.join(", "),
                collect.why
            );
            out.extend(wrap_text(&text, self.columns).into_iter().map(|l| Line::styled(l, self.theme.style(Role::Next))));
        } else if subject.is_amd() && !subject.roofs {
            let text = format!("{}. {} collects them; what is known is below.", capitalize(&no_hints_reason(subject)), self.rerun);
            out.extend(wrap_text(&text, self.columns).into_iter().map(|l| Line::styled(l, self.theme.style(Role::Next))));
        } else {
            out.push(Line::styled("No rule found anything that stands out; the reasoning is below.", self.theme.style(Role::Text)));
        }
        out
    }

    /// Glyph, id and gain of a hint, with the headline below.
    fn heading_lines(&self, hint: &Hint, open: bool) -> Vec<Line<'static>> {
        let theme = self.theme;
        let worth = super::worth_in_run(self.app, self.screen, hint);
        let (mark, role) = super::hint_mark(self.app, self.screen, hint);
        let arrow = if open { "▾ " } else { "▸ " };
        let id = hint.id.id();
        let mut spans = vec![
            Span::styled(arrow, theme.style(Role::Key)),
            Span::styled(format!("{mark} "), theme.style(role)),
            Span::styled(id, theme.style(role)),
        ];
        let stake = hint.gain_text_in_run(worth.as_ref());
        let sure = hint.sure.as_str();
        let bars = if self.columns >= 100 { 14 } else { 8 };
        // If room is short, drop first the bar, then the confidence.
        let room = self.columns.saturating_sub(4 + id.len() + 2);
        let (least, most) = hint.gain_range();
        let tail: Vec<Span<'static>> = if display_width(&stake) + 2 + bars + 2 + sure.len() <= room {
            let mut tail = vec![Span::styled(stake, theme.style(Role::Title)), Span::raw("  ")];
            tail.extend(range_bar(least, most, bars, theme.style(role), theme));
            tail.push(Span::styled(format!("  {sure}"), theme.style(Role::Dim)));
            tail
        } else {
            vec![Span::styled(hint.short_gain_text(), theme.style(Role::Title)), Span::styled(format!("  {sure}"), theme.style(Role::Dim))]
        };
        let used: usize = tail.iter().map(|s| display_width(&s.content)).sum();
        spans.push(Span::raw(" ".repeat((room + 2).saturating_sub(used))));
        spans.extend(tail);
        let mut out = vec![Line::from(spans)];
        let text = wrap_text(&escape_unsafe(&hint.headline), self.columns.saturating_sub(4).max(20));
        if open {
            out.extend(text.into_iter().map(|l| Line::styled(format!("    {l}"), theme.style(Role::Title))));
        } else {
            let one = cut_end(&escape_unsafe(&hint.headline), self.columns.saturating_sub(4));
            out.push(Line::styled(format!("    {one}"), theme.style(Role::Text)));
        }
        out
    }

    /// Label, value, threshold with its source, and the metric's name if there is room.
    fn evidence_line(&self, e: &Evidence) -> Line<'static> {
        const VALUE: usize = 14;
        const THAN: usize = 10;
        let theme = self.theme;
        // In a narrow terminal, the label gets most of the width; for the selected value, the `next:` line shows the
        // threshold's source.
        let wide = self.columns >= 100;
        let label = if wide { (self.columns * 2 / 5).clamp(24, 52) } else { self.columns.saturating_sub(6 + VALUE + THAN + 1).max(20) };
        let mut spans = vec![
            Span::raw("      "),
            Span::styled(align_left(&cut_end(&escape_unsafe(&e.name), label - 1), label), theme.style(Role::Text)),
            Span::styled(align_right(&format_value(e), VALUE), theme.style(Role::Title)),
            Span::styled(align_right(&format_threshold(e).unwrap_or_default(), THAN), theme.style(Role::Warn)),
        ];
        if wide {
            let room = self.columns.saturating_sub(6 + label + VALUE + THAN + 2);
            let source = e.threshold.map_or(e.metric.as_str(), |t| t.source);
            spans.push(Span::styled(format!("  {}", cut_end(&escape_unsafe(source), room)), theme.style(Role::Faint)));
        }
        Line::from(spans)
    }

    /// One of NVIDIA's rules: its estimate and title.
    fn ncu_rule_line(&self, rule: usize, message: usize) -> Line<'static> {
        let theme = self.theme;
        let found = self.screen.details.get().and_then(|d| d.rules.get(rule));
        let Some((rule, message)) = found.and_then(|r| Some((r, r.messages.get(message)?))) else { return Line::default() };
        let (scope, percent) = message.speedup.unwrap_or((Scope::Local, 0.0));
        // Nsight Compute's own words.
        let of = if scope == Scope::Global { "est. speedup      " } else { "est. local speedup" };
        let title = if message.title.is_empty() { &rule.name } else { &message.title };
        Line::from(vec![
            Span::styled(align_right(&units::format_whole_percent(percent), 8), theme.style(Role::Text)),
            Span::styled(format!(" {of}  "), theme.style(Role::Dim)),
            Span::styled(cut_end(&escape_unsafe(title), self.columns.saturating_sub(30)), theme.style(Role::Text)),
        ])
    }

    /// The rule of ncu with the largest estimated speedup of the whole kernel: title and percentage.
    fn first_ncu_rule(&self) -> Option<(&str, f64)> {
        let rules = self.screen.details.get()?.rules.iter();
        let messages = rules.flat_map(|rule| rule.messages.iter().map(move |m| (rule, m)));
        let global = messages.filter_map(|(rule, m)| {
            let (scope, percent) = m.speedup?;
            let title = if m.title.is_empty() { rule.name.as_str() } else { m.title.as_str() };
            (scope == Scope::Global && percent >= 1.0).then_some((title, percent))
        });
        global.max_by(|a, b| a.1.total_cmp(&b.1))
    }
}

/// Draws the first hints in a narrow column next to the metrics.
pub fn draw_pane(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &ResultScreen, theme: &Theme) {
    let columns = usize::from(area.width);
    let mut out: Vec<Line<'static>> = Vec::new();
    for hint in &screen.subject.hints {
        let (mark, role) = super::hint_mark(app, screen, hint);
        if !out.is_empty() {
            out.push(Line::default());
        }
        out.push(Line::from(vec![
            Span::styled(format!("{mark} {}", hint.id.id()), theme.style(role)),
            Span::styled(format!("  {}", hint.short_gain_text()), theme.style(Role::Dim)),
        ]));
        out.extend(
            wrap_text(&escape_unsafe(&hint.headline), columns.saturating_sub(2))
                .into_iter()
                .map(|l| Line::styled(format!("  {l}"), theme.style(Role::Text))),
        );
        if let Some(action) = hint.actions.first() {
            out.extend(
                wrap_text(&escape_unsafe(action), columns.saturating_sub(4))
                    .into_iter()
                    .enumerate()
                    .map(|(i, l)| Line::styled(format!("  {}{l}", if i == 0 { "→ " } else { "  " }), theme.style(Role::Next))),
            );
        }
    }
    if screen.subject.hints.is_empty() {
        let text = no_hints_reason(&screen.subject);
        out.extend(wrap_text(&text, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
    }
    frame.render_widget(Text::from(out), area);
}
