//! Roofline screen: work against intensity on logarithmic scales, with the roofs at this clock, and the points of
//! this kernel and others.

pub use super::roofline_chart::draw_mini_chart;

use super::super::panel::{Panel, draw_lines, draw_panel, fits_borders};
use super::super::table::{self, Rows};
use super::super::text::{align_left, align_right, wrap_text};
use super::super::view::View;
use super::super::widgets::gauge;
use super::super::{Role, Theme};
use super::roofline_chart::{draw_full_chart, legend_spans, longest_duration, point_glyph};
use crate::analysis::labels::{cut_end, cut_middle};
use crate::analysis::metric::{format_count, human_number};
use crate::analysis::roofline::Plot;
use crate::app::ResultScreen;
use crate::model::text::escape_unsafe;
use crate::model::units;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

/// Minimum width to show the list next to the plot.
const WIDE: u16 = 150;
/// Minimum width of the list including its border.
const SIDE: u16 = 76;
/// Minimum number of rows for panels to have borders.
const FRAMED: u16 = 26;
/// Legend for the sizes of other results' points.
const POINTS: &str = "  ○ • · other results, by duration";

pub fn draw(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, view: &mut View, theme: &Theme) {
    let Some(plot) = &screen.roofline.plot else { return };
    let columns = usize::from(area.width);
    if plot.points.is_empty() {
        // If there is nothing to plot, show remarks and rates instead of an empty chart.
        let columns = columns.saturating_sub(4).min(100);
        let mut said = remark_lines(plot, screen.subject.is_amd(), columns, theme);
        said.extend(rate_lines(plot, columns, theme));
        let place = Rect { height: u16::try_from(said.len() + 2).unwrap_or(u16::MAX).min(area.height), ..area };
        let framed = area.width >= 100;
        let inner = draw_panel(frame, place, vec![Span::styled("Roofline", theme.style(Role::Title))], framed, theme);
        draw_lines(frame, inner, said);
        return;
    }
    let framed = fits_borders(area) || area.height >= FRAMED && area.width >= 100;
    if !framed {
        draw_narrow(frame, area, screen, plot, view, theme);
        return;
    }
    let title = vec![Span::styled("Roofline", theme.style(Role::Title)), Span::styled(clock_note(plot), theme.style(Role::Dim))];
    let (main, side) = if area.width >= WIDE {
        let [main, side] = Layout::horizontal([Constraint::Min(60), Constraint::Length((area.width * 2 / 5).max(SIDE))]).areas(area);
        (main, side)
    } else {
        let rows = u16::try_from(plot.points.len() + 3).unwrap_or(u16::MAX).clamp(4, (area.height / 4).max(5));
        let notes = u16::try_from(remark_lines(plot, screen.subject.is_amd(), columns.saturating_sub(4), theme).len()).unwrap_or(0).min(4);
        let [main, side] = Layout::vertical([Constraint::Min(8), Constraint::Length(rows + notes)]).areas(area);
        (main, side)
    };
    let taken: usize = title.iter().map(Span::width).sum();
    let legend = legend_spans(plot, usize::from(main.width).saturating_sub(taken + 8), theme);
    let inner = Panel::new(title).note(legend).draw(frame, main, true, theme);
    draw_full_chart(frame, inner, screen.roofline.selected, plot, theme);
    let notes = remark_lines(plot, screen.subject.is_amd(), usize::from(side.width.saturating_sub(4)), theme);
    let inside = if area.width < WIDE { side.height } else { panel_height(plot, side) };
    let [list, text] = Layout::vertical([Constraint::Length(inside), Constraint::Min(0)]).areas(side);
    let title = vec![
        Span::styled(format!("Points ({})", plot.points.len()), theme.style(Role::Title)),
        Span::styled(POINTS, theme.style(Role::Dim)),
    ];
    let mut inner = Panel::new(title).focused().draw(frame, list, true, theme);
    if area.width < WIDE {
        // Put both into one panel, since there is no room for another border.
        let tall = u16::try_from(notes.len()).unwrap_or(0).min(inner.height.saturating_sub(3));
        let text = Rect { y: inner.bottom().saturating_sub(tall), height: tall, ..inner };
        inner.height -= tall;
        draw_lines(frame, text, truncate_lines(notes, tall.into(), usize::from(inner.width)));
    } else if text.height >= 3 {
        let inside = draw_panel(frame, text, vec![Span::styled("About the selected point", theme.style(Role::Title))], true, theme);
        let (tall, columns) = (usize::from(inside.height), usize::from(inside.width));
        let mut all = super::explain::lines(screen, columns, theme);
        if !notes.is_empty() {
            all.push(Line::default());
            all.extend(notes);
        }
        draw_lines(frame, inside, truncate_lines(all, tall, columns));
    }
    draw_table(frame, inner, screen, plot, view, theme);
}

/// Number of rows of the list of points: at most half of the column.
fn panel_height(plot: &Plot, side: Rect) -> u16 {
    u16::try_from(plot.points.len() + 3).unwrap_or(u16::MAX).clamp(6, (side.height / 2).max(6))
}

/// Truncates lines; the last one marks the truncation.
fn truncate_lines(mut all: Vec<Line<'static>>, most: usize, columns: usize) -> Vec<Line<'static>> {
    if all.len() > most {
        all.truncate(most);
        if let Some(last) = all.last_mut() {
            *last = Line::styled(cut_end(&format!("{last} …"), columns), last.style);
        }
    }
    all
}

/// Draws the chart, the list and a few notes without borders.
fn draw_narrow(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, plot: &Plot, view: &mut View, theme: &Theme) {
    let notes = remark_lines(plot, screen.subject.is_amd(), area.width.into(), theme);
    let n = u16::try_from(notes.len()).unwrap_or(0).min(2);
    let rows = u16::try_from(plot.points.len() + 1).unwrap_or(u16::MAX).clamp(2, (area.height / 3).max(4));
    let [main, key, list, text] =
        Layout::vertical([Constraint::Min(6), Constraint::Length(1), Constraint::Length(rows), Constraint::Length(n)]).areas(area);
    draw_full_chart(frame, main, screen.roofline.selected, plot, theme);
    frame.render_widget(Line::from(legend_spans(plot, key.width.into(), theme)), key);
    draw_table(frame, list, screen, plot, view, theme);
    draw_lines(frame, text, truncate_lines(notes, n.into(), area.width.into()));
}

/// Returns true if work was counted and is zero in every known precision.
pub fn no_work(plot: &Plot) -> bool {
    !plot.placed.work.is_empty() && plot.placed.work.iter().all(|w| w.achieved == Some(0.0))
}

/// Measured rates, for use if nothing can be plotted: traffic of each level and work, relative to the peaks.
fn rate_lines(plot: &Plot, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let rate = |v: f64, unit: &str| {
        let (number, unit) = human_number(v, unit);
        format!("{number} {unit}")
    };
    let row = |name: &str, value: String, of: Option<(f64, String)>| {
        let mut spans = vec![Span::styled(format!("  {} {}  ", align_left(name, 13), align_right(&value, 13)), theme.style(Role::Text))];
        if let Some((share, peak)) = of {
            spans.extend(gauge(share, 20, None, theme));
            spans.push(Span::styled(format!("  {} of {peak}", units::format_whole_percent(share * 100.0)), theme.style(Role::Text)));
        }
        Line::from(spans)
    };
    for t in &plot.placed.traffic {
        let (Some(achieved), Some(peak)) = (t.achieved, t.peak) else { continue };
        out.push(row(plot.placed.level_name(t.level), rate(achieved, "byte/second"), Some((achieved / peak, rate(peak, "byte/second")))));
    }
    for w in &plot.placed.work {
        let (Some(achieved), Some(peak)) = (w.achieved, w.peak) else { continue };
        out.push(row(&w.amount.mark_name(&w.name), rate(achieved, "flop/second"), Some((achieved / peak, rate(peak, "flop/second")))));
    }
    if out.is_empty() {
        return out;
    }
    let mut all = vec![
        Line::default(),
        Line::styled(
            if plot.placed.clock.is_some() {
                "What was measured, of its peak at this launch's clocks"
            } else {
                "What was measured, of its peak"
            },
            theme.style(Role::Head),
        ),
    ];
    all.append(&mut out);
    if no_work(plot) && !plot.placed.traffic.is_empty() {
        all.push(Line::default());
        let text = "A roofline places floating-point work. For a kernel without any, the share of the memory's peak says how near it is to that limit.";
        all.extend(wrap_text(text, columns.max(20)).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
    }
    all
}

/// SM clock at which the roofs are drawn.
fn clock_note(plot: &Plot) -> String {
    plot.placed.clock.map_or_else(String::new, |c| {
        let (number, unit) = human_number(c, "cycle/second");
        format!("  at an SM clock of {number} {unit}")
    })
}

/// Missing metrics, remarks, and the clock.
fn remark_lines(plot: &Plot, amd: bool, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let mut say = |text: &str, role: Role| {
        out.extend(wrap_text(text, columns.max(20)).into_iter().map(|l| Line::styled(l, theme.style(role))));
    };
    if plot.points.is_empty() && no_work(plot) {
        say("nothing to plot: this launch did no floating-point work", Role::Warn);
    } else if plot.points.is_empty() {
        let (bytes, work) =
            (plot.placed.traffic.iter().any(|t| t.achieved.is_some()), plot.placed.work.iter().any(|w| w.achieved.is_some()));
        say(
            match (bytes, work) {
                (true, false) => "nothing to plot: the operations of this result were not counted, only its memory traffic",
                (false, true) => "nothing to plot: the memory traffic of this result was not counted, only its operations",
                (true, true) if !plot.placed.missing.is_empty() => "nothing to plot: not all of the operations of this result were counted",
                _ if !plot.placed.missing.is_empty() => {
                    "nothing to plot: neither operations nor memory traffic were collected for this result"
                }
                _ => "nothing to plot: no work or no memory traffic was counted for this result",
            },
            Role::Warn,
        );
    } else if !plot.points.iter().any(|p| p.own) {
        let text = "this result is not on the chart: no floating-point work was counted for it, so a roofline does not apply; the points are other results";
        say(text, Role::Warn);
    }
    if !plot.placed.missing.is_empty() {
        // Each entry names its own section; one ncu set contains them all.
        let what: Vec<&str> = plot.placed.missing.iter().map(|m| m.split_once(": ").map_or(m.as_str(), |p| p.0)).collect();
        let how = if amd { "`rocprof-compute profile` collects them" } else { "re-profile with --set roofline" };
        say(&format!("not collected: {}; {how}", what.join(", ")), Role::Next);
    }
    for remark in &plot.placed.remarks {
        say(remark, Role::Dim);
    }
    out
}

fn draw_table(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, plot: &Plot, view: &mut View, theme: &Theme) {
    let columns = usize::from(area.width);
    let name = columns.saturating_sub(60).clamp(10, 40);
    let wide = columns >= 96;
    let name = if wide { columns.saturating_sub(84).clamp(10, 40) } else { name };
    let head = format!(
        "  {} {} {} {} {} {} {}{}",
        align_left("kernel", name),
        align_left("work", 11),
        align_left("level", 5),
        align_right("FLOP/byte", 9),
        align_right("achieved", 12),
        align_right("of roof", 8),
        if wide { format!("{} {} ", align_right("attainable", 12), align_right("of peak", 8)) } else { String::new() },
        "roof"
    );
    frame.render_widget(Line::styled(cut_end(&head, columns), theme.style(Role::Head)), Rect { height: 1.min(area.height), ..area });
    let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let of = Rows { list: "roofline", count: plot.points.len(), selected: screen.roofline.selected };
    let longest = longest_duration(plot);
    table::draw_rows(frame, below, of, view, theme, |at, _| {
        let Some(p) = plot.points.get(at) else { return Vec::new() };
        let glyph = point_glyph(p, longest);
        let role = if p.own { Role::Title } else { Role::Text };
        let (number, unit) = human_number(p.achieved, "flop/second");
        let share = p.achieved / p.attainable * 100.0;
        let intensity = if p.intensity.is_finite() { format_count(p.intensity) } else { "∞".to_owned() };
        let bound = if p.memory_bound { plot.placed.level_name(p.level) } else { "compute" };
        vec![
            Span::styled(format!("{glyph} "), theme.style(if p.marked { Role::Mark } else { Role::Work(p.precision) })),
            Span::styled(format!("{} ", align_left(&cut_middle(&escape_unsafe(&p.kernel), name), name)), theme.style(role)),
            Span::styled(
                format!("{} {} ", align_left(&cut_end(&p.work_label(), 11), 11), align_left(plot.placed.level_name(p.level), 5)),
                theme.style(Role::Text),
            ),
            Span::styled(format!("{} ", align_right(&intensity, 9)), theme.style(Role::Text)),
            Span::styled(format!("{} ", align_right(&format!("{number} {unit}"), 12)), theme.style(role)),
            Span::styled(format!("{} ", align_right(&format!("{share:.1}%"), 8)), theme.style(Role::Title)),
            Span::styled(
                if wide {
                    let (number, unit) = human_number(p.attainable, "flop/second");
                    format!(
                        "{} {} ",
                        align_right(&format!("{number} {unit}"), 12),
                        align_right(&format!("{:.1}%", p.achieved / p.peak * 100.0), 8)
                    )
                } else {
                    String::new()
                },
                theme.style(Role::Text),
            ),
            Span::styled(bound.to_owned(), theme.style(Role::Dim)),
        ]
    });
}
