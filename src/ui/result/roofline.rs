//! The roofline: work over intensity, both on logarithmic scales; the roofs of this clock, this kernel's points and those of the others.

use super::super::chart::Canvas;
use super::super::table::{self, Rows};
use super::super::text::{left, right, wrap};
use super::super::view::View;
use super::super::{Role, Theme};
use crate::analysis::labels::{cut_end, cut_middle, width};
use crate::analysis::metric::{count, human_number};
use crate::analysis::roofline::{Level, Plot, Point};
use crate::app::ResultScreen;
use crate::model::text::clean;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span, Text};

/// Columns from which the list stands beside the plot.
const WIDE: u16 = 150;
/// Columns of the numbers on the left.
const SCALE: usize = 13;

pub fn draw(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, view: &mut View, theme: &Theme) {
    let Some(plot) = &screen.roofline.plot else { return };
    let columns = usize::from(area.width);
    if plot.points.is_empty() {
        // What would fill the screen, and not an empty chart.
        frame.render_widget(
            Text::from(remarks(plot, columns.min(100), theme)),
            Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area },
        );
        return;
    }
    let notes = remarks(plot, if area.width >= WIDE { columns * 2 / 5 } else { columns }, theme);
    if area.width >= WIDE {
        let [main, gap, side] =
            Layout::horizontal([Constraint::Min(60), Constraint::Length(2), Constraint::Length(area.width * 2 / 5)]).areas(area);
        let _ = gap;
        picture(frame, main, screen, plot, theme);
        let n = u16::try_from(notes.len()).unwrap_or(0).min(side.height / 2);
        let [rows, text] = Layout::vertical([Constraint::Min(3), Constraint::Length(n)]).areas(side);
        table(frame, rows, screen, plot, view, theme);
        frame.render_widget(Text::from(notes), text);
    } else {
        let n = u16::try_from(notes.len()).unwrap_or(0).min(3);
        let rows = u16::try_from(plot.points.len() + 1).unwrap_or(u16::MAX).clamp(2, (area.height / 3).max(4));
        let [main, list, text] = Layout::vertical([Constraint::Min(6), Constraint::Length(rows), Constraint::Length(n)]).areas(area);
        picture(frame, main, screen, plot, theme);
        table(frame, list, screen, plot, view, theme);
        let mut notes = notes;
        if notes.len() > usize::from(n) {
            notes.truncate(usize::from(n));
            if let Some(last) = notes.last_mut() {
                *last = Line::styled(cut_end(&format!("{last} …"), columns), last.style);
            }
        }
        frame.render_widget(Text::from(notes), text);
    }
}

/// What is missing and what to know, and the clock.
fn remarks(plot: &Plot, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let mut say = |text: &str, role: Role| {
        out.extend(wrap(text, columns.max(20)).into_iter().map(|l| Line::styled(l, theme.style(role))));
    };
    if plot.points.is_empty() {
        say("nothing to plot: no work or no memory traffic was counted for this result", Role::Warn);
    } else if !plot.points.iter().any(|p| p.own) {
        say("this result is not on the chart: no floating-point work was counted for it; the points are other results", Role::Warn);
    }
    if !plot.placed.missing.is_empty() {
        say(&format!("to collect: {}", plot.placed.missing.join("; ")), Role::Next);
    }
    for remark in &plot.placed.remarks {
        say(remark, Role::Dim);
    }
    out
}

fn color(level: Level) -> Role {
    match level {
        Level::Dram => Role::Next,
        Level::L2 => Role::Bar,
        Level::L1 => Role::Dim,
    }
}

fn mark(level: Level) -> &'static str {
    match level {
        Level::Dram => "●",
        Level::L2 => "◆",
        Level::L1 => "▲",
    }
}

/// The ends of both axes, as powers of ten.
struct Axes {
    x: (f64, f64),
    y: (f64, f64),
}

/// Powers of ten that an axis has at most.
const MOST_DECADES: f64 = 10.0;

fn axes(plot: &Plot) -> Option<Axes> {
    let roofs = plot.roofs();
    let top = roofs.iter().map(|r| r.1).chain(plot.points.iter().map(|p| p.achieved)).fold(0.0, f64::max);
    let slopes: Vec<f64> = plot.placed.traffic.iter().filter_map(|t| t.peak).filter(|p| *p > 0.0).collect();
    if top <= 0.0 || slopes.is_empty() {
        return None;
    }
    let ridges = slopes.iter().map(|s| top / s);
    let own = || plot.points.iter().filter(|p| p.own && p.achieved > 0.0);
    let intensities = || own().map(|p| p.intensity).filter(|i| i.is_finite() && *i > 0.0);
    let low_x = ridges.clone().fold(f64::MAX, f64::min).min(intensities().fold(f64::MAX, f64::min)) / 10.0;
    let high_x = ridges.fold(0.0, f64::max).max(intensities().fold(0.0, f64::max)) * 4.0;
    let low_y = own().map(|p| p.achieved).fold(top / 1e3, f64::min);
    let (x, y) = ((low_x.log10().floor(), high_x.log10().ceil()), ((low_y / 2.0).log10().floor(), top.log10().ceil()));
    // Its own points are always within, unless one is absurdly far: then it stands at the edge with an arrow.
    Some(Axes { x: (x.0.max(x.1 - MOST_DECADES), x.1), y: (y.0.max(y.1 - MOST_DECADES), y.1) })
}

/// The roofs and the points, without numbers and names: there is room for a shape only.
pub fn mini(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, plot: &Plot, theme: &Theme) {
    if let Some(axes) = axes(plot) {
        chart(frame, area, (screen, plot, &axes), 0, theme);
    }
}

fn picture(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, plot: &Plot, theme: &Theme) {
    let Some(axes) = axes(plot) else {
        let text = "no chart: no roof is known; what to collect is listed below";
        frame.render_widget(
            Line::styled(cut_end(text, area.width.into()), theme.style(Role::Dim)),
            Rect { height: 1.min(area.height), ..area },
        );
        return;
    };
    chart(frame, area, (screen, plot, &axes), SCALE, theme);
}

/// Draws roofs and points; with columns for a scale also numbers and names.
fn chart(frame: &mut Frame<'_>, area: Rect, (screen, plot, axes): (&ResultScreen, &Plot, &Axes), scale: usize, theme: &Theme) {
    let below = if scale > 0 { 2 } else { 0 };
    let (columns, rows) = (usize::from(area.width).saturating_sub(scale), usize::from(area.height).saturating_sub(below));
    if columns < 12 || rows < 3 {
        return;
    }
    let mut canvas: Canvas<Role> = Canvas::new(columns, rows);
    let (wide, tall) = canvas.size();
    let to_x = |v: f64| (v.log10() - axes.x.0) / (axes.x.1 - axes.x.0) * (wide - 1) as f64;
    let to_y = |v: f64| (1.0 - (v.log10() - axes.y.0) / (axes.y.1 - axes.y.0)) * (tall - 1) as f64;
    let top = plot.roofs().iter().map(|r| r.1).fold(0.0, f64::max);
    for x in 0..wide {
        let intensity = 10_f64.powf(axes.x.0 + (axes.x.1 - axes.x.0) * x as f64 / (wide - 1) as f64);
        for t in &plot.placed.traffic {
            let Some(slope) = t.peak else { continue };
            let y = intensity * slope;
            if y <= top {
                put(&mut canvas, x, to_y(y), color(t.level));
            }
        }
        // A roof begins where the fastest memory reaches it.
        let fastest = plot.placed.traffic.iter().filter_map(|t| t.peak).fold(0.0, f64::max);
        for (_, peak) in plot.roofs() {
            if intensity * fastest >= peak {
                put(&mut canvas, x, to_y(peak), Role::Peak);
            }
        }
    }
    for row in 0..rows {
        let spans: Vec<Span<'static>> =
            canvas.row(row).map(|(c, role)| Span::styled(c.to_string(), role.map_or_else(Default::default, |r| theme.style(r)))).collect();
        let y = area.y + u16::try_from(row).unwrap_or(0);
        frame.render_widget(Line::from(spans), Rect { x: area.x + scale as u16, y, width: area.width - scale as u16, height: 1 });
    }
    if scale > 0 {
        scales(frame, area, (columns, rows), axes, theme);
        labels(frame, area, plot, (columns, rows), (&to_x, &to_y), theme);
    }
    // Others first, own points over them, the selected one last.
    let selected = plot.points.get(screen.roofline.selected);
    let mut points: Vec<&Point> = plot.points.iter().collect();
    points.sort_by_key(|p| (p.own, p.marked, selected.is_some_and(|s| std::ptr::eq(s, *p))));
    let longest = plot.points.iter().map(|p| p.duration).fold(1.0, f64::max);
    for point in points {
        let is_selected = selected.is_some_and(|s| std::ptr::eq(s, point));
        let (glyph, role) = if point.own {
            (mark(point.level), if is_selected { Role::Key } else { Role::Title })
        } else {
            let size = point.duration / longest;
            let glyph = if size > 0.3 {
                "●"
            } else if size > 0.03 {
                "•"
            } else {
                "·"
            };
            (
                glyph,
                if is_selected {
                    Role::Key
                } else if point.marked {
                    Role::Mark
                } else {
                    Role::Faint
                },
            )
        };
        // Without traffic the intensity has no bound: beyond the right edge.
        let x = if point.intensity.is_finite() { (to_x(point.intensity) / 2.0).round() } else { f64::INFINITY };
        let y = (to_y(point.achieved) / 4.0).floor();
        let arrow = if x < 0.0 {
            Some("◂")
        } else if x >= columns as f64 {
            Some("▸")
        } else if y >= rows as f64 {
            Some("▾")
        } else {
            None
        };
        // What is outside is never drawn as if it were at the edge.
        let Some(glyph) = arrow.map_or(Some(glyph), |a| (point.own || is_selected).then_some(a)) else { continue };
        let (x, y) = (x.clamp(0.0, (columns - 1) as f64) as u16, y.clamp(0.0, (rows - 1) as f64) as u16);
        let rect = Rect { x: area.x + scale as u16 + x, y: area.y + y, width: 1, height: 1 };
        frame.render_widget(Line::styled(glyph, theme.style(role)), rect);
    }
}

fn put(canvas: &mut Canvas<Role>, x: usize, y: f64, role: Role) {
    if y >= 0.0 && y.is_finite() {
        canvas.dot(x, y.round() as usize, role);
    }
}

/// Numbers along both axes.
fn scales(frame: &mut Frame<'_>, area: Rect, (columns, rows): (usize, usize), axes: &Axes, theme: &Theme) {
    let faint = theme.style(Role::Faint);
    let decades = (axes.y.1 - axes.y.0).round() as usize;
    for d in 0..=decades {
        let value = 10_f64.powf(axes.y.1 - d as f64);
        let y = (d as f64 / decades.max(1) as f64 * (rows - 1) as f64).round() as u16;
        let (number, unit) = human_number(value, "flop/second");
        let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
        let text = right(&format!("{number} {unit}"), SCALE - 1);
        frame.render_widget(Line::styled(text, faint), Rect { x: area.x, y: area.y + y, width: SCALE as u16, height: 1 });
    }
    let axis_y = area.y + u16::try_from(rows).unwrap_or(0);
    let line = format!("{}└{}", " ".repeat(SCALE - 1), "─".repeat(columns));
    frame.render_widget(Line::styled(line, theme.style(Role::Border)), Rect { y: axis_y, height: 1, ..area });
    let decades = (axes.x.1 - axes.x.0).round().max(1.0);
    let (mut x, mut free) = (0, 0);
    while f64::from(x) <= decades {
        let power = axes.x.0 + f64::from(x);
        let value = 10_f64.powf(power);
        let text = if power > 4.0 {
            format!("1e{power:.0}")
        } else if value >= 1.0 {
            format!("{value:.0}")
        } else {
            format!("{value}")
        };
        let at = (f64::from(x) / decades * (columns - 1) as f64) as u16;
        let w = u16::try_from(text.len()).unwrap_or(1);
        let at = at.min((columns as u16).saturating_sub(w));
        x += 1;
        // Many powers of ten in few columns: some go without a number.
        if at < free {
            continue;
        }
        free = at + w + 2;
        frame.render_widget(Line::styled(text, faint), Rect { x: area.x + SCALE as u16 + at, y: axis_y + 1, width: w, height: 1 });
    }
    frame.render_widget(Line::styled("FLOP/byte", faint), Rect { x: area.x, y: axis_y + 1, width: SCALE as u16 - 1, height: 1 });
}

type To<'a> = (&'a dyn Fn(f64) -> f64, &'a dyn Fn(f64) -> f64);

/// What the roofs are.
fn labels(frame: &mut Frame<'_>, area: Rect, plot: &Plot, (columns, rows): (usize, usize), (to_x, to_y): To<'_>, theme: &Theme) {
    let mut place = |text: String, x: usize, y: f64, role: Role| {
        let text = cut_end(&text, columns.saturating_sub(x));
        let w = u16::try_from(width(&text)).unwrap_or(0);
        let y = (y / 4.0).floor().clamp(0.0, (rows - 1) as f64) as u16;
        let rect = Rect { x: area.x + SCALE as u16 + u16::try_from(x).unwrap_or(0), y: area.y + y, width: w, height: 1 };
        frame.render_widget(Line::styled(text, theme.style(role)), rect);
    };
    let mut taken: Vec<usize> = Vec::new();
    for (work, peak) in plot.roofs() {
        let (number, unit) = human_number(peak, "flop/second");
        let text = format!("{} {number} {unit}", work.name);
        let row = (to_y(peak) / 4.0).floor().max(0.0) as usize;
        // One above the other where two roofs are close.
        let row = (row + 1..rows).find(|r| !taken.contains(r)).unwrap_or(row);
        taken.push(row);
        place(text.clone(), columns.saturating_sub(width(&text) + 1), row as f64 * 4.0, Role::Peak);
    }
    let top = plot.roofs().iter().map(|r| r.1).fold(0.0, f64::max);
    for (t, share) in plot.placed.traffic.iter().zip([0.42, 0.62, 0.82]) {
        let Some(slope) = t.peak.filter(|p| *p > 0.0) else { continue };
        // On its slope, at different heights so that they do not meet.
        let y = top / 10_f64.powf(share * 3.0);
        let (number, unit) = human_number(slope, "byte/second");
        let x = (to_x(y / slope) / 2.0).round().max(0.0) as usize;
        place(format!(" {} {number} {unit}", t.level.word()), x.saturating_add(1).min(columns.saturating_sub(8)), to_y(y), color(t.level));
    }
}

fn table(frame: &mut Frame<'_>, area: Rect, screen: &ResultScreen, plot: &Plot, view: &mut View, theme: &Theme) {
    let columns = usize::from(area.width);
    let name = columns.saturating_sub(60).clamp(10, 40);
    let wide = columns >= 96;
    let name = if wide { columns.saturating_sub(84).clamp(10, 40) } else { name };
    let head = format!(
        "  {} {} {} {} {} {} {}{}",
        left("kernel", name),
        left("work", 11),
        left("level", 5),
        right("FLOP/byte", 9),
        right("achieved", 12),
        right("of roof", 8),
        if wide { format!("{} {} ", right("attainable", 12), right("of peak", 8)) } else { String::new() },
        "roof"
    );
    frame.render_widget(Line::styled(cut_end(&head, columns), theme.style(Role::Head)), Rect { height: 1.min(area.height), ..area });
    let below = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
    let of = Rows { list: "roofline", count: plot.points.len(), selected: screen.roofline.selected };
    table::rows(frame, below, of, view, theme, |at, _| {
        let Some(p) = plot.points.get(at) else { return Vec::new() };
        let glyph = if p.own {
            mark(p.level)
        } else if p.marked {
            "●"
        } else {
            "•"
        };
        let role = if p.own { Role::Title } else { Role::Text };
        let (number, unit) = human_number(p.achieved, "flop/second");
        let share = p.achieved / p.attainable * 100.0;
        let intensity = if p.intensity.is_finite() { count(p.intensity) } else { "∞".to_owned() };
        let bound = if p.memory_bound { p.level.word() } else { "compute" };
        vec![
            Span::styled(format!("{glyph} "), theme.style(if p.marked { Role::Mark } else { color(p.level) })),
            Span::styled(format!("{} ", left(&cut_middle(&clean(&p.kernel), name), name)), theme.style(role)),
            Span::styled(format!("{} {} ", left(&cut_end(&p.work, 11), 11), left(p.level.word(), 5)), theme.style(Role::Text)),
            Span::styled(format!("{} ", right(&intensity, 9)), theme.style(Role::Text)),
            Span::styled(format!("{} ", right(&format!("{number} {unit}"), 12)), theme.style(role)),
            Span::styled(format!("{} ", right(&format!("{share:.1}%"), 8)), theme.style(Role::Title)),
            Span::styled(
                if wide {
                    let (number, unit) = human_number(p.attainable, "flop/second");
                    format!("{} {} ", right(&format!("{number} {unit}"), 12), right(&format!("{:.1}%", p.achieved / p.peak * 100.0), 8))
                } else {
                    String::new()
                },
                theme.style(Role::Text),
            ),
            Span::styled(bound.to_owned(), theme.style(Role::Dim)),
        ]
    });
}
