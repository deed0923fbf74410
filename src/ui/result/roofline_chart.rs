//! Roofline chart: roofs by precision, memory levels as slopes, and points; labels are drawn only over blank cells.

use super::super::chart::Canvas;
use super::super::text::align_right;
use super::super::{Role, Theme};
use crate::analysis::labels::{cut_end, display_width};
use crate::analysis::metric::human_number;
use crate::analysis::roofline::{Level, Plot, Point, Precision, Roof};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

/// Width of the numbers to the left of the chart.
const SCALE: usize = 13;
/// Maximum distance between a slope and its name, in columns.
const FAR: usize = 16;
/// Columns that a slope covers in one row, with the gap to a name.
const STEEP: usize = 8;
/// Spacing of the dots in roofs for work that this result does not contain.
const DOTTED: usize = 6;

/// Color of a memory level's slope: the farther from the SM, the brighter.
fn slope_role(level: Level) -> Role {
    match level {
        Level::Dram => Role::Text,
        Level::L2 => Role::Dim,
        Level::L1 => Role::Faint,
    }
}

/// Glyph for a memory level's points.
pub fn level_mark(level: Level) -> &'static str {
    match level {
        Level::Dram => "●",
        Level::L2 => "◆",
        Level::L1 => "▲",
    }
}

/// Glyph of a point: the level for those of this result, else a size by its duration; `longest` is the longest one.
pub fn point_glyph(point: &Point, longest: f64) -> &'static str {
    match point.duration / longest {
        _ if point.own => level_mark(point.level),
        size if size > 0.3 => "○",
        size if size > 0.03 => "•",
        _ => "·",
    }
}

/// Longest duration of the points, at least 1 ns.
pub fn longest_duration(plot: &Plot) -> f64 {
    plot.points.iter().map(|p| p.duration).fold(1.0, f64::max)
}

/// Ranges of both axes, in powers of ten.
struct Axes {
    x: (f64, f64),
    y: (f64, f64),
}

/// Factor by which the axis of intensities may be extended for other results.
const FARTHEST: f64 = 30.0;
/// Maximum length of an axis, in powers of ten.
const MOST_DECADES: f64 = 10.0;

fn fit_axes(plot: &Plot) -> Option<Axes> {
    let roofs = plot.known_roofs();
    let top = roofs.iter().map(|r| r.peak).chain(plot.points.iter().map(|p| p.achieved)).fold(0.0, f64::max);
    let slopes: Vec<f64> = plot.placed.traffic.iter().filter_map(|t| t.peak).filter(|p| *p > 0.0).collect();
    if top <= 0.0 || slopes.is_empty() {
        return None;
    }
    // Include the ridge points of all used roofs and slopes, and part of the slopes to the left of them.
    let used: Vec<f64> = roofs.iter().filter(|r| r.used).map(|r| r.peak).collect();
    let peaks = if used.is_empty() { vec![top] } else { used };
    let ridges = || peaks.iter().chain([&top]).flat_map(|p| slopes.iter().map(move |s| p / s));
    let own = || plot.points.iter().filter(|p| p.own && p.achieved > 0.0);
    let intensities = || own().map(|p| p.intensity).filter(|i| i.is_finite() && *i > 0.0);
    let low_x = ridges().chain(intensities()).fold(f64::MAX, f64::min) / 10.0;
    let high_x = ridges().chain(intensities()).fold(0.0, f64::max) * 4.0;
    // Other results lie inside, too, if that leaves most of the width to the roofs.
    let others = plot.points.iter().map(|p| p.intensity).filter(|i| i.is_finite()).fold(0.0, f64::max) * 1.5;
    let high_x = high_x.max(others.min(high_x * FARTHEST));
    let low_y = own().map(|p| p.achieved).fold(peaks.iter().copied().fold(top, f64::min) / 300.0, f64::min);
    let (x, y) = ((low_x.log10(), high_x.log10()), ((low_y / 3.0).log10(), (top * 2.5).log10()));
    // Own points are always inside, unless they are extremely far away, in which case an arrow at the edge marks them.
    Some(Axes { x: (x.0.max(x.1 - MOST_DECADES), x.1), y: (y.0.max(y.1 - MOST_DECADES), y.1) })
}

/// Powers of ten within a range.
fn decades((low, high): (f64, f64)) -> impl DoubleEndedIterator<Item = i32> {
    low.ceil() as i32..=high.floor() as i32
}

/// Draws roofs and points without numbers and names, for small areas.
pub fn draw_mini_chart(frame: &mut Frame<'_>, area: Rect, selected: usize, plot: &Plot, theme: &Theme) {
    if let Some(axes) = fit_axes(plot) {
        draw_chart(frame, area, (selected, plot, &axes), 0, theme);
    }
}

pub fn draw_full_chart(frame: &mut Frame<'_>, area: Rect, selected: usize, plot: &Plot, theme: &Theme) {
    let Some(axes) = fit_axes(plot) else {
        let text = "no chart: no roof is known; what to collect is listed below";
        frame.render_widget(
            Line::styled(cut_end(text, area.width.into()), theme.style(Role::Dim)),
            Rect { height: 1.min(area.height), ..area },
        );
        return;
    };
    draw_chart(frame, area, (selected, plot, &axes), SCALE, theme);
}

/// Occupied cells.
struct Taken {
    columns: usize,
    cells: Vec<bool>,
}

impl Taken {
    fn from_canvas(canvas: &Canvas<Role>, columns: usize, rows: usize) -> Self {
        let cells = (0..rows).flat_map(|r| canvas.row_cells(r).map(|(c, _)| c != ' ').collect::<Vec<_>>()).collect();
        Self { columns, cells }
    }

    fn mark_taken(&mut self, x: usize, y: usize, wide: usize) {
        let from = y * self.columns + x;
        if let Some(cells) = self.cells.get_mut(from..from + wide) {
            cells.fill(true);
        }
    }

    /// Returns true if these cells and their direct neighbors in the row are free.
    fn is_free(&self, x: usize, y: usize, wide: usize) -> bool {
        let (from, to) = (x.saturating_sub(1), (x + wide + 1).min(self.columns));
        x + wide <= self.columns && self.cells.get(y * self.columns + from..y * self.columns + to).is_some_and(|c| !c.contains(&true))
    }
}

/// A point on the chart: column, row, glyph, color.
type Placed = (usize, usize, &'static str, Role);

/// Draws roofs and points; if the width of the scale is not 0, also numbers and names.
fn draw_chart(frame: &mut Frame<'_>, area: Rect, (selected, plot, axes): (usize, &Plot, &Axes), scale: usize, theme: &Theme) {
    let below = if scale > 0 { 2 } else { 0 };
    let (columns, rows) = (usize::from(area.width).saturating_sub(scale), usize::from(area.height).saturating_sub(below));
    if columns < 12 || rows < 3 {
        return;
    }
    let mut canvas: Canvas<Role> = Canvas::new(columns, rows);
    let (wide, tall) = canvas.size();
    let to_x = |v: f64| (v.log10() - axes.x.0) / (axes.x.1 - axes.x.0) * (wide - 1) as f64;
    let to_y = |v: f64| (1.0 - (v.log10() - axes.y.0) / (axes.y.1 - axes.y.0)) * (tall - 1) as f64;
    let roofs = plot.known_roofs();
    let top = roofs.iter().map(|r| r.peak).fold(0.0, f64::max);
    let fastest = plot.placed.traffic.iter().filter_map(|t| t.peak).fold(0.0, f64::max);
    for x in 0..wide {
        let intensity = 10_f64.powf(axes.x.0 + (axes.x.1 - axes.x.0) * x as f64 / (wide - 1) as f64);
        for t in &plot.placed.traffic {
            let Some(peak) = t.peak else { continue };
            let y = intensity * peak;
            if y <= top {
                plot_dot(&mut canvas, x, to_y(y), slope_role(t.level));
            }
        }
        // A roof begins at the slope of the fastest memory. Roofs for work that this result does not contain are
        // dotted.
        for roof in &roofs {
            if intensity * fastest >= roof.peak && (roof.used || x % DOTTED == 0) {
                plot_dot(&mut canvas, x, to_y(roof.peak), Role::Work(roof.work.precision));
            }
        }
    }
    for row in 0..rows {
        let spans: Vec<Span<'static>> = canvas
            .row_cells(row)
            .map(|(c, role)| Span::styled(c.to_string(), role.map_or_else(Default::default, |r| theme.style(r))))
            .collect();
        let y = area.y + u16::try_from(row).unwrap_or(0);
        frame.render_widget(Line::from(spans), Rect { x: area.x + scale as u16, y, width: area.width - scale as u16, height: 1 });
    }
    let points = place_points(selected, plot, (columns, rows), (&to_x, &to_y));
    if scale > 0 {
        draw_scales(frame, area, (columns, rows), axes, theme);
        let mut taken = Taken::from_canvas(&canvas, columns, rows);
        for (x, y, ..) in &points {
            taken.mark_taken(*x, *y, 1);
        }
        draw_labels(frame, area, (plot, axes, &points), (columns, rows), (&to_x, &to_y), &mut taken, theme);
    }
    for (x, y, glyph, role) in points {
        let rect = Rect { x: area.x + (scale + x) as u16, y: area.y + y as u16, width: 1, height: 1 };
        frame.render_widget(Line::styled(glyph, theme.style(role)), rect);
    }
}

/// Places other points first, own points over them, and the selected point last. Points outside the chart become
/// arrows at its edge.
fn place_points(selected: usize, plot: &Plot, (columns, rows): (usize, usize), (to_x, to_y): To<'_>) -> Vec<Placed> {
    let selected = plot.points.get(selected);
    let chosen = |p: &Point| selected.is_some_and(|s| std::ptr::eq(s, p));
    let mut points: Vec<&Point> = plot.points.iter().collect();
    points.sort_by_key(|p| (chosen(p), p.own, p.marked));
    let longest = longest_duration(plot);
    let of = |point: &&Point| {
        let glyph = point_glyph(point, longest);
        let role = match point {
            p if chosen(p) => Role::Title,
            p if p.own => Role::Work(p.precision),
            p if p.marked => Role::Mark,
            _ => Role::Faint,
        };
        // Without traffic, the intensity is infinite, so the point is beyond the right edge.
        let x = if point.intensity.is_finite() { (to_x(point.intensity) / 2.0).round() } else { f64::INFINITY };
        let y = (to_y(point.achieved) / 4.0).floor();
        let glyph = match (x, y) {
            (x, _) if x < 0.0 => "◂",
            (x, _) if x >= columns as f64 => "▸",
            (_, y) if y >= rows as f64 => "▾",
            _ => glyph,
        };
        (x.clamp(0.0, (columns - 1) as f64) as usize, y.clamp(0.0, (rows - 1) as f64) as usize, glyph, role)
    };
    points.iter().map(of).collect()
}

fn plot_dot(canvas: &mut Canvas<Role>, x: usize, y: f64, role: Role) {
    if y >= 0.0 && y.is_finite() {
        canvas.set_dot(x, y.round() as usize, role);
    }
}

/// Draws numbers along both axes.
fn draw_scales(frame: &mut Frame<'_>, area: Rect, (columns, rows): (usize, usize), axes: &Axes, theme: &Theme) {
    let faint = theme.style(Role::Faint);
    let mut free = 0;
    for power in decades(axes.y).rev() {
        let (number, unit) = human_number(10_f64.powi(power), "flop/second");
        let number = if number.contains('.') { number.trim_end_matches('0').trim_end_matches('.') } else { &number };
        // From 1,000 TFLOP/s, use PFLOP/s to save room.
        let text = if power < 16 { format!("{number} {unit}") } else { format!("{:.0} PFLOP/s", 10_f64.powi(power - 15)) };
        let y = ((axes.y.1 - f64::from(power)) / (axes.y.1 - axes.y.0) * (rows - 1) as f64).round() as u16;
        // With many powers of ten in few rows, some remain unlabeled.
        if y >= free {
            let text = align_right(&text, SCALE - 1);
            frame.render_widget(Line::styled(text, faint), Rect { x: area.x, y: area.y + y, width: SCALE as u16, height: 1 });
            free = y + 2;
        }
    }
    let axis_y = area.y + u16::try_from(rows).unwrap_or(0);
    let line = format!("{}└{}", " ".repeat(SCALE - 1), "─".repeat(columns));
    frame.render_widget(Line::styled(line, theme.style(Role::Border)), Rect { y: axis_y, height: 1, ..area });
    let mut free = 0;
    for power in decades(axes.x) {
        let value = 10_f64.powi(power);
        let text = match power {
            5.. => format!("1e{power}"),
            0..5 => format!("{value:.0}"),
            _ => format!("{value}"),
        };
        let w = u16::try_from(text.len()).unwrap_or(1);
        let at = ((f64::from(power) - axes.x.0) / (axes.x.1 - axes.x.0) * (columns - 1) as f64) as u16;
        let at = at.min((columns as u16).saturating_sub(w));
        if at >= free {
            frame.render_widget(Line::styled(text, faint), Rect { x: area.x + SCALE as u16 + at, y: axis_y + 1, width: w, height: 1 });
            free = at + w + 2;
        }
    }
    frame.render_widget(Line::styled("FLOP/byte", faint), Rect { x: area.x, y: axis_y + 1, width: SCALE as u16 - 1, height: 1 });
}

type To<'a> = (&'a dyn Fn(f64) -> f64, &'a dyn Fn(f64) -> f64);

/// Columns between a point and the name of a roof in the same row, which would be taken for the point's name.
const APART: usize = 6;
/// Columns between a point and the name of a slope in the same row.
const BESIDE: usize = 5;

/// Returns the names of roofs that are in one row of the chart, from the longest to the shortest text.
fn roof_texts(group: &[&Roof]) -> Vec<String> {
    let names = || group.iter().map(|r| r.work.name.as_str()).collect::<Vec<_>>().join(", ");
    let rates: Vec<(String, String)> = group.iter().map(|r| human_number(r.peak, "flop/second")).collect();
    let [roof] = group else {
        let unit = rates.first().map_or("", |r| r.1.as_str());
        let alike = rates.iter().all(|r| r.1 == unit);
        let one = |(roof, (number, own)): (&&Roof, &(String, String))| {
            if alike { format!("{} {number}", roof.work.name) } else { format!("{} {number} {own}", roof.work.name) }
        };
        let all = group.iter().zip(&rates).map(one).collect::<Vec<_>>().join(", ");
        return vec![if alike { format!("{all} {unit}") } else { all }, names()];
    };
    let text = rates.first().map_or_else(names, |(number, unit)| format!("{} {number} {unit}", roof.work.name));
    match (roof.used, roof.counted) {
        (true, _) => vec![text, names()],
        (false, true) => vec![format!("{text}, not used"), text, names()],
        (false, false) => vec![format!("{text}, not counted"), text, names()],
    }
}

/// Draws the names of roofs and slopes over blank cells; names that do not fit are only in the legend.
fn draw_labels(
    frame: &mut Frame<'_>,
    area: Rect,
    (plot, axes, points): (&Plot, &Axes, &[Placed]),
    (columns, rows): (usize, usize),
    (to_x, to_y): To<'_>,
    taken: &mut Taken,
    theme: &Theme,
) {
    let is_far =
        |x: usize, y: usize, wide: usize, apart: usize| points.iter().all(|p| p.1 != y || p.0 + apart < x || p.0 >= x + wide + apart);
    let place = |frame: &mut Frame<'_>, taken: &mut Taken, text: &str, spots: &[(usize, usize)], role: Role, apart: usize| {
        let wide = display_width(text);
        let is_free = |(x, y): &&(usize, usize)| taken.is_free(*x, *y, wide) && is_far(*x, *y, wide, apart);
        let Some(&(x, y)) = spots.iter().find(is_free) else { return false };
        taken.mark_taken(x, y, wide);
        let rect = Rect { x: area.x + (SCALE + x) as u16, y: area.y + y as u16, width: wide as u16, height: 1 };
        frame.render_widget(Line::styled(text.to_owned(), theme.style(role)), rect);
        true
    };
    let fastest = plot.placed.traffic.iter().filter_map(|t| t.peak).fold(0.0, f64::max);
    let slowest = plot.placed.traffic.iter().filter_map(|t| t.peak).filter(|p| *p > 0.0).fold(f64::INFINITY, f64::min);
    let top = plot.known_roofs().iter().map(|r| r.peak).fold(0.0, f64::max);
    let row_of = |y: f64| (y / 4.0).floor().clamp(0.0, (rows - 1) as f64) as usize;
    let roofs = plot.known_roofs();
    let mut groups: Vec<Vec<&Roof>> = Vec::new();
    for roof in &roofs {
        let row = row_of(to_y(roof.peak));
        match groups.iter_mut().find(|g| g.iter().any(|r| row_of(to_y(r.peak)) == row)) {
            Some(group) => group.push(roof),
            None => groups.push(vec![roof]),
        }
    }
    for group in groups {
        let Some(roof) = group.iter().find(|r| r.used).or(group.first()) else { continue };
        let texts = roof_texts(&group);
        let text = texts.first().map_or("", String::as_str);
        let row = row_of(to_y(roof.peak));
        // Put the name above or below the line, preferably at the right end.
        // A name that is closer to another roof would be taken for that one's.
        let own = to_y(roof.peak);
        let is_closest = |row: &usize| {
            let distance = |y: f64| (*row as f64 * 4.0 + 2.0 - y).abs();
            roofs.iter().map(|r| to_y(r.peak)).filter(|y| row_of(*y) != row_of(own)).all(|y| distance(own) <= distance(y))
        };
        let beside = [row.checked_sub(1), Some(row + 1).filter(|r| *r < rows)].map(|r| r.filter(is_closest));
        let last = columns.saturating_sub(display_width(text.trim_end_matches(", not used").trim_end_matches(", not counted")) + 1);
        // Avoid places to the left of the roof's start.
        let from = (to_x(roof.peak / fastest.max(1.0)) / 2.0).clamp(0.0, last as f64) as usize;
        let spots: Vec<(usize, usize)> =
            (from..=last).rev().step_by(3).flat_map(|x| beside.into_iter().flatten().map(move |y| (x, y))).collect();
        if texts.iter().any(|text| place(frame, taken, text, &spots, Role::Work(roof.work.precision), APART)) {
            continue;
        }
        // Without room beside it, the name interrupts the line.
        let is_line = |c: char| c == ' ' || ('\u{2800}'..='\u{28ff}').contains(&c) || "─━-=".contains(c);
        let y = area.y + row as u16;
        for text in texts.iter().skip(texts.len().saturating_sub(2)) {
            let wide = display_width(text);
            let is_over_line = |x: &usize| {
                let from = area.x + (SCALE + x) as u16;
                let mut cells = (from..=from + wide as u16).filter_map(|x| frame.buffer_mut().cell((x, y)).cloned());
                is_far(*x, row, wide, APART) && cells.all(|cell| cell.symbol().chars().all(is_line))
            };
            let last = columns.saturating_sub(wide + 1);
            if let Some(x) = (from.min(last)..=last).rev().find(is_over_line) {
                let style = theme.style(Role::Work(roof.work.precision));
                let rect = Rect { x: area.x + (SCALE + x) as u16, y, width: wide as u16 + 1, height: 1 };
                frame.render_widget(Line::styled(format!("{text} "), style), rect);
                taken.mark_taken(x, row, wide);
                break;
            }
        }
    }
    for t in &plot.placed.traffic {
        let Some(peak) = t.peak.filter(|p| *p > 0.0) else { continue };
        let (number, unit) = human_number(peak, "byte/second");
        let text = format!("{} {number} {unit}", plot.placed.level_name(t.level));
        // Put the name at the left end of its slope, directly before it; never above the highest roof, where the slope
        // ends.
        let first = row_of(to_y(top));
        let at = |y: usize| {
            let value = 10_f64.powf(axes.y.1 - (y as f64 * 4.0 + 2.0) / (rows as f64 * 4.0) * (axes.y.1 - axes.y.0));
            (to_x(value / peak) / 2.0).round()
        };
        // Drop the rate if only the name fits; the legend also lists the rates.
        for text in [text, plot.placed.level_name(t.level).to_owned()] {
            let wide = display_width(&text);
            let slope =
                || (first..rows).rev().map(|y| (at(y), y)).filter(|s| s.0 >= 0.0 && s.0 < columns as f64).map(|(x, y)| (x as usize, y));
            let before = |from: usize, to: usize| {
                slope().flat_map(move |(x, y)| (from..to).filter_map(move |d| Some((x.checked_sub(wide + d)?, y))))
            };
            let after = slope().flat_map(|(x, y)| (2..FAR).map(move |d| (x + d, y)));
            // Only the names of the outermost slopes may be farther away: between two slopes, a name could be mistaken
            // for the other one's.
            let spots: Vec<(usize, usize)> = if peak <= slowest {
                after.collect()
            } else if peak >= fastest {
                before(1, FAR).collect()
            } else {
                before(1, STEEP).collect()
            };
            if place(frame, taken, &text, &spots, slope_role(t.level), BESIDE) {
                break;
            }
        }
    }
}

/// Legend of glyphs and colors, with the rates of the levels if there is room.
pub fn legend_spans(plot: &Plot, room: usize, theme: &Theme) -> Vec<Span<'static>> {
    let fits = |legend: &Vec<Span<'static>>| legend.iter().map(Span::width).sum::<usize>() <= room;
    let with = |(levels, roofs)| legend_of(plot, levels, roofs, theme);
    [(true, true), (true, false)].map(with).into_iter().find(fits).unwrap_or_else(|| with((false, false)))
}

fn legend_of(plot: &Plot, level_rates: bool, roof_rates: bool, theme: &Theme) -> Vec<Span<'static>> {
    let mut out = Vec::new();
    for level in Level::ALL.into_iter().filter(|l| plot.points.iter().any(|p| p.level == *l)) {
        let peak = plot.placed.traffic.iter().find(|t| t.level == level).and_then(|t| t.peak).filter(|_| level_rates);
        let rate = peak.map(|p| human_number(p, "byte/second")).map_or_else(String::new, |(n, u)| format!(" {n} {u}"));
        out.push(Span::styled(format!("{} {}{rate}  ", level_mark(level), plot.placed.level_name(level)), theme.style(Role::Dim)));
    }
    let there = |p: Precision| plot.known_roofs().iter().any(|r| r.work.precision == p);
    // Without colors, all swatches would look the same.
    let coloured = |p: Precision| theme.style(Role::Work(p)).fg.is_some();
    for precision in Precision::ALL.into_iter().filter(|p| there(*p)) {
        let peak = plot.known_roofs().iter().find(|r| r.work.precision == precision).map(|r| r.peak).filter(|_| roof_rates);
        let rate = peak.map(|p| human_number(p, "flop/second")).map_or_else(String::new, |(n, u)| format!(" {n} {u}"));
        if coloured(precision) {
            out.push(Span::styled("━ ", theme.style(Role::Work(precision))));
        } else if roof_rates {
            out.push(Span::styled("roof ", theme.style(Role::Dim)));
        } else {
            continue;
        }
        out.push(Span::styled(format!("{}{rate}  ", plot.placed.precision_name(precision)), theme.style(Role::Dim)));
    }
    if let Some(last) = out.last_mut() {
        last.content = last.content.trim_end().to_owned().into();
    }
    out
}
