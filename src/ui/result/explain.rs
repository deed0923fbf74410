//! Explanation of the selected metric, rule or point: full name, exact value, meaning, computation, thresholds and
//! their sources, and advice.

use super::super::text::wrap_text;
use super::super::widgets::key_value_lines;
use super::super::{Role, Theme};
use crate::analysis::catalog::{Better, Bound, better_direction, builtin_catalog};
use crate::analysis::metric::{self, Lookup, format_count, human_number};
use crate::analysis::metrics_page::MetricsRow;
use crate::analysis::roofline::Amount;
use crate::app::{ResultScreen, ResultView};
use crate::model::Value;
use crate::model::sections::Piece;
use crate::model::text::escape_unsafe;
use ratatui::text::Line;

struct Out<'a> {
    lines: Vec<Line<'static>>,
    columns: usize,
    theme: &'a Theme,
}

impl Out<'_> {
    fn push_text(&mut self, text: &str, role: Role) {
        self.lines.extend(wrap_text(&escape_unsafe(text), self.columns).into_iter().map(|l| Line::styled(l, self.theme.style(role))));
    }

    fn push_heading(&mut self, text: &str) {
        self.lines.push(Line::default());
        self.lines.push(Line::styled(text.to_owned(), self.theme.style(Role::Head)));
    }

    fn push_pair(&mut self, word: &str, text: &str) {
        const WORD: usize = 9;
        self.lines.extend(key_value_lines([(word, text)], (WORD, self.columns), self.theme.style(Role::Dim), self.theme.style(Role::Text)));
    }
}

/// Explanation of the selected row.
pub fn lines(screen: &ResultScreen, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Out { lines: Vec::new(), columns, theme };
    match screen.view {
        ResultView::Metrics => match screen.sections.rows.get(screen.sections.selected) {
            Some(MetricsRow::Section { name, about, id, .. }) => {
                out.push_text(name, Role::Title);
                // ncu cannot collect warpscope's own sections, such as the hints.
                if screen.details.get().is_some_and(|d| d.sections.iter().any(|s| s.id == *id)) {
                    out.push_text(&format!("--section {id}"), Role::Dim);
                }
                out.lines.push(Line::default());
                out.push_text(if about.is_empty() { "The report has no description of this section." } else { about }, Role::Text);
            }
            Some(MetricsRow::Rule(rule, message)) => self::explain_rule(screen, (*rule, *message), &mut out),
            Some(MetricsRow::Cells { metrics, .. }) => {
                for name in metrics {
                    of_metric(screen, name, &mut out);
                    out.lines.push(Line::default());
                }
            }
            Some(row) => match row.metric() {
                Some(name) => of_metric(screen, name, &mut out),
                None => out.push_text("one instance of a metric; the section title names it", Role::Dim),
            },
            None => {}
        },
        ResultView::Compare => {
            if let Some(row) = screen.compare.rows.get(screen.compare.selected) {
                of_metric(screen, &row.name, &mut out);
            }
        }
        ResultView::Roofline => explain_point(screen, &mut out),
        ResultView::Source | ResultView::Hints => {}
    }
    out.lines
}

fn explain_rule(screen: &ResultScreen, (rule, message): (usize, usize), out: &mut Out<'_>) {
    let Some((r, m)) = screen.details.get().and_then(|d| d.rules.get(rule)).and_then(|r| Some((r, r.messages.get(message)?))) else {
        return;
    };
    let name = if r.name.is_empty() { &r.id } else { &r.name };
    let title = if m.title.is_empty() || m.title == *name { String::new() } else { format!("{}, ", m.title) };
    out.push_text(&format!("{title}by NVIDIA's rule {name}"), Role::Title);
    out.lines.push(Line::default());
    out.push_text(&crate::analysis::metrics_rows::plain_text(&m.text).replace('\n', " "), Role::Text);
    if let Some((_, percent)) = m.speedup {
        out.lines.push(Line::default());
        out.push_text(&format!("Estimated speedup: at most {percent:.1}%, an upper bound by the rule's own formula."), Role::Dim);
    }
    if !m.because.is_empty() {
        out.push_heading("based on");
        for (name, value) in &m.because {
            out.push_pair("", &format!("{name} = {}", format_count(*value)));
        }
    }
    let links: Vec<String> = m
        .text
        .iter()
        .filter_map(|p| match p {
            Piece::Section { id, label } => Some(format!("section {id} ({label})")),
            Piece::Link { label, url } => Some(format!("{label}: {url}")),
            Piece::Text(_) => None,
        })
        .collect();
    if !links.is_empty() {
        out.push_heading("see also");
        for link in links {
            out.push_text(&link, Role::Next);
        }
    }
    if !r.markers.is_empty() {
        out.lines.push(Line::default());
        out.push_text(&format!("marks {} places in the code (source screen)", r.markers.len()), Role::Dim);
    }
}

fn of_metric(screen: &ResultScreen, name: &str, out: &mut Out<'_>) {
    let Some(result) = screen.metrics.results.get(screen.result) else { return };
    let lookup = Lookup::new(&screen.metrics, result);
    let concept = builtin_catalog().of_metric(name);
    out.push_text(&metric::display_title(name), Role::Title);
    out.push_pair("name", name);
    let unit = metric::unit_of(name, lookup.unit(name));
    match lookup.value(name) {
        Some(Value::Text(t)) => out.push_pair("value", t),
        Some(value) => {
            let exact = match value {
                Value::Integer(n) => n.to_string(),
                Value::Float(f) => f.to_string(),
                Value::Text(_) => String::new(),
            };
            let (number, shown) = metric::format_value(value, unit);
            out.push_pair("value", &format!("{exact} {unit}"));
            if format!("{number} {shown}") != format!("{exact} {unit}") {
                out.push_pair("", format!("= {number} {shown}").trim_end());
            }
        }
        None => out.push_pair("value", "not collected, which does not mean zero"),
    }
    if let Some(n) = lookup.id(name).and_then(|id| screen.details.get()?.instances.get(&id)) {
        out.push_pair("", &format!("{} instance values", n.len()));
    }
    if let Some(direction) = better_direction(name) {
        out.push_pair("better", if direction == Better::High { "higher" } else { "lower" });
    }
    if let Some(c) = concept {
        if let Some(meaning) = &c.meaning {
            out.push_heading("means");
            out.push_text(meaning, Role::Text);
        }
        if let Some(hint) = &c.hint {
            out.push_heading("what to do");
            out.push_text(hint, Role::Next);
        }
    }
    let how = metric::explain_computation(name);
    if !how.is_empty() {
        out.push_heading("how it is computed");
        for line in how {
            out.push_text(&line, Role::Text);
        }
    }
    let Some(c) = concept else { return };
    if !c.thresholds.is_empty() {
        out.push_heading("thresholds");
        for t in &c.thresholds {
            let bound = match &t.value {
                Bound::Number(n) => match human_number(*n, unit) {
                    (value, unit) if unit.is_empty() => value,
                    (value, unit) => format!("{value} {unit}"),
                },
                Bound::Text(t) => t.clone(),
            };
            out.push_text(&format!("{} {bound}  {}: {}  ({})", t.op, t.level, t.text, t.source), Role::Text);
        }
    }
    for (word, text) in [("next", &c.next), ("note", &c.note)] {
        if let Some(text) = text {
            out.lines.push(Line::default());
            out.push_pair(word, text);
        }
    }
}

fn explain_point(screen: &ResultScreen, out: &mut Out<'_>) {
    let Some(plot) = &screen.roofline.plot else { return };
    let Some(p) = plot.points.get(screen.roofline.selected) else {
        out.push_text("nothing to plot; what to collect is listed below the chart", Role::Dim);
        return;
    };
    let rate = |v: f64| {
        let (n, u) = human_number(v, "flop/second");
        format!("{n} {u}")
    };
    out.push_text(&format!("{}, {} over {}", p.kernel, p.work_label(), plot.placed.level_name(p.level)), Role::Title);
    let most = if p.amount == Amount::AtMost { "at most " } else { "" };
    out.push_pair("achieved", &format!("{most}{}", rate(p.achieved)));
    out.push_pair(
        "most",
        &format!("{} at this intensity: the lower of {} and intensity × peak bandwidth", rate(p.attainable), rate(p.peak)),
    );
    out.push_pair("of roof", &format!("{:.1}%", p.achieved / p.attainable * 100.0));
    let at = if plot.placed.clock.is_some() { " at the actual clock (MFU at that clock)" } else { "" };
    out.push_pair("of peak", &format!("{most}{:.1}% of the {} peak{at}", p.achieved / p.peak * 100.0, p.work));
    if let Some(clock) = plot.placed.clock {
        let (n, u) = human_number(clock, "cycle/second");
        out.push_pair("clock", &format!("{n} {u}, as measured; peaks are computed from it, not from the datasheet clock"));
    }
    if let Some(w) = plot.placed.work.iter().find(|w| w.name == p.work) {
        out.push_heading("how it is computed");
        out.push_text(&w.formula, Role::Text);
        out.push_text("intensity: work per second divided by bytes per second at this level", Role::Text);
        if let Some(t) = plot.placed.traffic.iter().find(|t| t.level == p.level) {
            out.push_text(t.formula, Role::Text);
        }
    }
}
