//! Timeline screen: map of the run, axis, rows, and details at the cursor.

mod lanes;
mod map;
mod pane;
mod unrecorded;

use super::panel::{BORDERED, draw_lines, draw_message, draw_panel, split_top};
use super::view::View;
use super::{Role, Theme};
use crate::analysis::labels::{cut_end, display_width};
use crate::analysis::overview::recorded_time;
use crate::analysis::timeline::{Content, Event, Group, GroupKey, Spot, Window, link};
use crate::analysis::triage::TimeCategory;
use crate::app::overlay::FilterInput;
use crate::app::screens::timeline::inspect::{CursorContent, Look};
use crate::app::screens::timeline::{MAP, label_columns, lane_columns};
use crate::app::timeline_view::RowRef as Row;
use crate::app::timeline_view::rows::find_device;
use crate::app::{ActionId, App, Mouse, Report, TimelineScreen};
use crate::model::text::escape_unsafe;
use crate::model::{Nanos, units};
use crate::report::timeline::{idle_shades, paint, ruler};
use crate::ui::screens::{Place, ScreenView};
use lanes::Lit;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};
use unrecorded::{hatch, unrecorded_columns};

/// Minimum width to show the window's figures next to the details.
const BESIDE: u16 = 120;

/// Number of rows of the pane below: the rows that the timeline does not need, within bounds.
fn pane_rows(height: u16, lines: usize) -> u16 {
    let (least, most) = match height {
        0..=21 => (5, 7),
        22..=27 => (7, 9),
        28..=44 => (11, 17),
        _ => (15, 24),
    };
    height.saturating_sub(u16::try_from(lines).unwrap_or(u16::MAX)).clamp(least, most)
}

/// Number of rows of the pane that hold its usual text.
const SHORT_PANE: u16 = 13;

/// Number of blank rows between devices and threads; 0 unless all of them fit.
fn blank_rows(screen: &TimelineScreen, height: u16) -> usize {
    let groups = screen.lines.iter().skip(1).filter(|l| matches!(l, Row::Group(_))).count();
    let room = usize::from(height.saturating_sub(pane_rows(height, usize::MAX)));
    if screen.lines.len() + groups <= room { groups } else { 0 }
}

/// Maximum number of rows per lane.
const TALLEST: u16 = 3;

/// Heights in the list of rows.
#[derive(Clone, Copy)]
struct Spacing {
    /// True if a blank row precedes each device and thread.
    blank: bool,
    /// Number of rows per lane.
    lane: u16,
}

/// Number of rows per lane: more than one if there are so few lanes that they would not fill the height.
fn lane_height(room: u16, lines: usize, blank: usize) -> u16 {
    let each = usize::from(room).saturating_sub(blank) / lines.max(1);
    u16::try_from(each).unwrap_or(TALLEST).clamp(1, TALLEST)
}

impl ScreenView for TimelineScreen {
    fn draw(&self, frame: &mut Frame<'_>, at: Place, app: &App, view: &mut View, theme: &Theme) {
        draw(frame, at.area, app, self, view, theme);
    }

    fn next_step(&self, app: &App) -> Option<String> {
        next(app, self)
    }

    fn filter(&self) -> Option<&FilterInput> {
        Some(&self.finder)
    }
}

fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &TimelineScreen, view: &mut View, theme: &Theme) {
    let Some(report) = app.report() else { return };
    let Some(look) = Look::from_report(report).filter(|l| !l.timeline.groups.is_empty() && screen.place.is_some()) else {
        draw_waiting(frame, area, app, report, theme);
        return;
    };
    let Some(place) = screen.place else { return };
    let window = place.window(lane_columns(app.session.size));
    let bordered = area.height >= BORDERED;
    let edge = if bordered { 2 } else { 1 };
    let mut rest = area;
    let label = label_columns(app.session.size.0);
    let body = |area: Rect| Rect {
        x: area.x + 1 + label,
        width: u16::try_from(window.columns).unwrap_or(0).min(area.width.saturating_sub(1 + label)),
        ..area
    };
    // Draw the map, aligned with the lanes.
    let inner =
        draw_panel(frame, split_top(&mut rest, 2 + edge), title_spans(app, report, screen, (window, view.ascii), theme), bordered, theme);
    let lane_area = body(Rect { y: inner.y, height: 2.min(inner.height), ..area });
    let lane_area = if bordered { Rect { width: lane_area.width.saturating_sub(2), ..lane_area } } else { lane_area };
    draw_lines(
        frame,
        Rect { x: area.x + 2, width: label, y: inner.y, height: inner.height },
        map_labels(&look, &map::label(report, &look, window.columns), usize::from(label) - 2, theme),
    );
    view.hits.push((lane_area, Mouse::Spot(MAP, 0)));
    map::draw(frame.buffer_mut(), lane_area, report, &look, window, view.ascii, theme);
    let axis = split_top(&mut rest, 1);
    draw_axis(frame, axis, body(axis), (report, screen, window), theme);
    let blank = blank_rows(screen, rest.height);
    let pane = pane_rows(rest.height, screen.lines.len() + blank).min(rest.height / 2 + 1);
    // Without colored blocks, a lane is a single row of text.
    let plain = view.ascii || theme.style(Role::Part(TimeCategory::Kernels)).fg.is_none();
    // Taller lanes are worth a few rows of the pane.
    let lanes = |pane: u16| lane_height(rest.height.saturating_sub(pane), screen.lines.len(), blank);
    let pane = if pane > SHORT_PANE && !plain && lanes(SHORT_PANE) > lanes(pane) { SHORT_PANE } else { pane };
    let room = rest.height.saturating_sub(pane);
    let rows = split_top(&mut rest, room);
    let spacing = Spacing { blank: blank > 0, lane: if plain { 1 } else { lane_height(room, screen.lines.len(), blank) } };
    draw_rows(frame, rows, body(rows), (&look, screen, window), spacing, view, theme);
    draw_pane(frame, rest, (app, report), (&look, screen, window), bordered, theme);
}

/// Draws a message until the timeline is available.
fn draw_waiting(frame: &mut Frame<'_>, area: Rect, app: &App, report: &Report, theme: &Theme) {
    let table = app.session.key_label(ActionId::Kernels);
    let text = if report.is_reading() {
        format!("The report is being read; {table} goes to the table of kernels, which is there already.")
    } else if report.lanes.is_complete() {
        format!("Nothing in this report has a time. {table} goes to the table of kernels.")
    } else {
        "Putting events in order …".to_owned()
    };
    draw_message(frame, area, &text, theme);
}

fn title_spans(app: &App, report: &Report, screen: &TimelineScreen, (window, ascii): (Window, bool), theme: &Theme) -> Vec<Span<'static>> {
    let span = report.lanes.span;
    let dim = theme.style(Role::Dim);
    let mut out = vec![Span::styled("Timeline", theme.style(Role::Title))];
    let all = window.length() >= span.1 - span.0;
    let recorded = report.profile.as_ref().map_or(span.1 - span.0, |p| recorded_time(p, span));
    let of = if all { "all".to_owned() } else { Nanos(window.length()).to_string() };
    // Holes make up a part that matters.
    if recorded as f64 <= (span.1 - span.0) as f64 * 0.995 {
        out.push(Span::styled(
            format!("  {of} of {}, {} of it recorded", Nanos(span.1 - span.0), Nanos(recorded)),
            theme.style(Role::Text),
        ));
        out.push(Span::styled(format!(" ({} was not)", if ascii { "." } else { "╱" }), dim));
    } else {
        out.push(Span::styled(format!("  {of} of {} recorded", Nanos(span.1 - span.0)), theme.style(Role::Text)));
    }
    out.push(Span::styled(format!(", {} a column", Nanos(window.column_width())), dim));
    if !report.lanes.is_complete() {
        out.push(Span::styled("  still reading …", dim));
    } else if report.gaps.is_none() && app.session.size.0 >= 100 {
        out.push(Span::styled("  idle causes are being worked out …", dim));
    }
    if screen.arrangement.hidden_count() > 0 {
        out.push(Span::styled(format!("  {} hidden", screen.arrangement.hidden_count()), dim));
    }
    if screen.finder.typing || !screen.finder.is_empty() {
        out.push(Span::styled("  / ", theme.style(Role::Key)));
        out.push(Span::styled(escape_unsafe(screen.finder.text()).into_owned(), theme.style(Role::Match)));
        if screen.finder.typing {
            out.push(Span::styled("▏", theme.style(Role::Key)));
        }
        let found = screen.search.as_ref().filter(|s| s.text == screen.finder.text());
        let said = match found {
            _ if screen.finder.is_empty() => String::new(),
            Some(s) if s.matches.total == 0 => "  no match".to_owned(),
            Some(s) => format!("  {}", units::format_count(s.matches.total, "match")),
            None => "  …".to_owned(),
        };
        out.push(Span::styled(said, dim));
    }
    out
}

fn map_labels(look: &Look<'_>, marks: &str, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let device = look.timeline.groups.first().map_or_else(String::new, |g| escape_unsafe(&g.name).into_owned());
    let dim = theme.style(Role::Dim);
    vec![Line::styled(cut_end(&format!("{device}, all"), columns), dim), Line::styled(cut_end(marks, columns), dim)]
}

/// Draws the axis with the cursor and the mark.
fn draw_axis(frame: &mut Frame<'_>, area: Rect, lanes: Rect, (report, screen, window): (&Report, &TimelineScreen, Window), theme: &Theme) {
    let cursor = screen.place.map_or(0, |p| p.cursor);
    let time = crate::report::timeline::describe::format_time(cursor, window.column_width().min(1_000));
    // The cursor's time is to its right, or to its left at the right edge.
    let beside = window.contains(cursor).then(|| {
        let (at, wide) = (window.column_at(cursor), display_width(&time) + 1);
        if at + 1 + wide <= window.columns { at + 2..at + 1 + wide } else { at.saturating_sub(wide)..at.saturating_sub(1) }
    });
    // Omit labels that the cursor, its time or the mark would overlap.
    let mut taken: Vec<usize> =
        [Some(cursor), screen.mark].into_iter().flatten().filter(|&t| window.contains(t)).map(|t| window.column_at(t)).collect();
    taken.extend(beside.iter().flat_map(|b| b.start.saturating_sub(1)..b.end));
    frame.render_widget(Line::styled(ruler::axis_line(window, &taken), theme.style(Role::Dim)), lanes);
    if let Some((from, to)) = screen.marked_window() {
        let x = |time: i64| lanes.x + u16::try_from(window.column_at(time)).unwrap_or(0);
        let span = Rect { x: x(from), width: x(to) - x(from) + 1, height: 1, ..lanes };
        frame.buffer_mut().set_style(span, theme.style(Role::Mark).add_modifier(Modifier::UNDERLINED));
    }
    let place = match &beside {
        Some(columns) => Rect {
            x: lanes.x + u16::try_from(columns.start).unwrap_or(0),
            width: u16::try_from(columns.len()).unwrap_or(0),
            height: 1,
            ..lanes
        },
        None => Rect { x: area.x + 2, width: lanes.x - area.x - 2, height: 1, ..area },
    };
    // Omit the steps if they would be closer than every third column.
    let all = report.whole_triage().map_or(&[][..], |t| &t.steps);
    let steps: Vec<i64> = all.iter().map(|s| s.start).filter(|&s| window.contains(s)).collect();
    for &start in steps.iter().filter(|_| steps.len() * 3 <= window.columns) {
        let (x, y) = (lanes.x + u16::try_from(window.column_at(start)).unwrap_or(0), area.y);
        let buffer = frame.buffer_mut();
        // A tick inside a time, or at its end, would be taken for a part of it.
        let is_text = |x: u16| buffer.cell((x, y)).is_some_and(|c| c.symbol().chars().all(char::is_alphanumeric));
        if is_text(x.saturating_sub(1)) || is_text(x + 1) {
            continue;
        }
        if let Some(cell) = buffer.cell_mut((x, y)).filter(|c| c.symbol() == " ") {
            cell.set_symbol("╷");
            cell.set_style(theme.style(Role::Key));
        }
    }
    frame.render_widget(Line::styled(time, theme.style(Role::Key)), place);
    let mut put = |time: i64, symbol: &str, role: Role| {
        if window.contains(time)
            && let Some(cell) = frame.buffer_mut().cell_mut((lanes.x + u16::try_from(window.column_at(time)).unwrap_or(0), area.y))
        {
            cell.set_symbol(symbol);
            cell.set_style(theme.style(role));
        }
    };
    if let Some(mark) = screen.mark {
        put(mark, "◆", Role::Mark);
    }
    put(cursor, "▼", Role::Key);
}

/// Label of a row.
fn row_label(look: &Look<'_>, screen: &TimelineScreen, line: Row, at: usize, columns: usize, theme: &Theme) -> Vec<Span<'static>> {
    let Some(group) = look.group(line) else { return Vec::new() };
    let dim = theme.style(Role::Dim);
    match line {
        Row::Group(g) => {
            let sign = if screen.arrangement.is_folded(look.timeline, g) { "▸ " } else { "▾ " };
            let name = escape_unsafe(&group.name).into_owned();
            let room = columns.saturating_sub(2 + display_width(&name) + 1);
            let about = if room >= 4 && !group.about.is_empty() {
                format!(" {}", cut_end(&escape_unsafe(&group.about), room))
            } else {
                String::new()
            };
            vec![
                Span::styled(sign, theme.style(Role::Key)),
                Span::styled(cut_end(&name, columns.saturating_sub(2)), theme.style(Role::Title)),
                Span::styled(about, dim),
            ]
        }
        Row::Lane(_, row, lane) => {
            let Some(row) = group.rows.get(row) else { return Vec::new() };
            let last = screen.arrangement.is_truncated(row) && screen.lines.get(at + 1).and_then(|l| l.row()) != line.row();
            if lane == 0 {
                let pinned =
                    if screen.arrangement.is_pinned(row.key) { format!("• {} ", escape_unsafe(&group.name)) } else { "  ".to_owned() };
                vec![Span::styled(cut_end(&format!("{pinned}{}", escape_unsafe(&row.name)), columns), theme.style(Role::Text))]
            } else if last {
                let more = row.lanes().len() - lane - 1;
                vec![Span::styled(cut_end(&format!("    +{}", units::format_count(more, "lane")), columns), dim)]
            } else {
                Vec::new()
            }
        }
        Row::Plot(_, row) => {
            let Some(row) = group.rows.get(row) else { return Vec::new() };
            vec![Span::styled(cut_end(&format!("  {}", escape_unsafe(&row.name)), columns), theme.style(Role::Text))]
        }
    }
}

fn draw_rows(
    frame: &mut Frame<'_>,
    area: Rect,
    lanes: Rect,
    (look, screen, window): (&Look<'_>, &TimelineScreen, Window),
    spacing: Spacing,
    view: &mut View,
    theme: &Theme,
) {
    if screen.lines.is_empty() {
        let text = "all rows are hidden";
        frame.render_widget(Line::styled(text, theme.style(Role::Dim)), Rect { x: lanes.x, height: 1.min(area.height), ..lanes });
    }
    let top = view.scroll_to("timeline", screen.selected, screen.lines.len(), (area.height / spacing.lane).into());
    let cursor = screen.place.map(|p| p.cursor).filter(|&t| window.contains(t)).map(|t| window.column_at(t));
    let line = screen.current_line();
    let selected = screen.place.zip(line).and_then(|(p, l)| look.event_at(l, p.cursor, window));
    let other = selected.and_then(|(_, e)| link::other_end(look.timeline, &look.events, e));
    // Highlight the idle time at the cursor among its neighbors.
    let idle = screen.place.zip(line).and_then(|(p, l)| match look.content_at(l, p.cursor, window) {
        CursorContent::Idle(gap, _) => {
            let column = |time: i64| window.column_at(time.clamp(window.start, window.end - 1));
            Some((GroupKey::Device(gap.most.device), (column(gap.start), column(gap.end - 1))))
        }
        _ => None,
    });
    let unrecorded = unrecorded_columns(&look.profile.recorded, window);
    let mut shown: Vec<(Row, u16)> = Vec::new();
    let mut y = area.y;
    for (at, &row) in screen.lines.iter().enumerate().skip(top) {
        y += u16::from(spacing.blank && at > top && matches!(row, Row::Group(_)));
        if y >= area.bottom() {
            break;
        }
        let rect = Rect { y, height: spacing.lane.min(area.bottom() - y), ..lanes };
        let label = Rect { x: area.x + 1, y, width: lanes.x - area.x - 1, height: 1 };
        let room = usize::from(label.width.saturating_sub(1));
        frame.render_widget(Line::from(row_label(look, screen, row, at, room, theme)), label);
        if at == screen.selected {
            frame.buffer_mut().set_style(Rect { width: label.width.saturating_sub(1), ..label }, theme.style(Role::Selected));
        }
        view.hits.push((Rect { height: rect.height, ..label }, Mouse::Row(at)));
        view.hits.push((rect, Mouse::Spot(at, 0)));
        shown.push((row, y));
        let of = |spot: Option<Spot>| spot.filter(|s| row == Row::Lane(s.group, s.row, s.lane)).map(|s| s.at);
        let group = look.group(row);
        let helper = group.is_some_and(Group::is_helper);
        let idle = idle.filter(|i| group.is_some_and(|g| g.key == i.0)).map(|i| i.1);
        let lit = Lit { selected: of(selected.map(|s| s.0)), other: of(other), idle, helper };
        let (glyphs, matched) = row_glyphs(look, screen, row, window);
        lanes::draw(frame.buffer_mut(), rect, &glyphs, lit, &matched, view.ascii, theme);
        hatch(frame.buffer_mut(), rect, &glyphs, &unrecorded, view.ascii, theme);
        // The cursor line crosses blank cells and the selected row.
        let crossed = cursor.into_iter().flat_map(|column| rect.rows().map(move |line| (column, line.y)));
        for (column, y) in crossed {
            let Some(cell) = frame.buffer_mut().cell_mut((rect.x + u16::try_from(column).unwrap_or(0), y)) else { break };
            if glyphs.get(column).is_some_and(|g| g.fill == paint::Fill::Blank) {
                cell.set_symbol("│");
                cell.set_style(theme.style(if at == screen.selected { Role::Key } else { Role::Faint }));
            } else if idle.is_some() && matches!(row, Row::Group(_)) {
                // The selection's background would be darker than the highlighted idle time around it, so draw only the
                // cursor line.
                cell.set_symbol("│");
                cell.set_style(theme.style(Role::Key));
            } else if at == screen.selected {
                let own = Style::default().fg(cell.fg);
                cell.set_style(own.patch(theme.style(Role::Selected)));
            }
        }
        y += spacing.lane;
    }
    if let (Some((_, event)), Some(other)) = (selected, other) {
        draw_arrow(frame, lanes, (look, window), (event, other), &shown, theme);
    }
}

/// Glyphs of a row, and true for each column that contains a search match.
fn row_glyphs(look: &Look<'_>, screen: &TimelineScreen, row: Row, window: Window) -> (Vec<paint::Glyph>, Vec<bool>) {
    let Some(group) = look.group(row) else { return (Vec::new(), Vec::new()) };
    let search = screen.search.as_ref().filter(|s| s.matches.total > 0);
    match row {
        Row::Group(_) => {
            if let (None, None, Some(Content::Plot(plot))) = (&group.union, group.main_lane(), group.rows.first().map(|r| &r.content)) {
                return (paint::area_glyphs(plot, look.profile, window), Vec::new());
            }
            let cells = group.summary_cells(&look.events, window);
            (
                paint::summary_glyphs(&cells, &idle_shades(look.gaps, group, window), &look.events, group.main_lane().map(|t| t.1)),
                Vec::new(),
            )
        }
        Row::Lane(_, r, l) => {
            let Some((row, lane)) = group.rows.get(r).and_then(|row| Some((row, row.lanes().get(l)?))) else {
                return (Vec::new(), Vec::new());
            };
            let glyphs = paint::lane_glyphs(lane, &look.events, window);
            let Some(search) = search else { return (glyphs, Vec::new()) };
            let matched = glyphs
                .iter()
                .enumerate()
                .map(|(column, glyph)| {
                    let (from, to) = match glyph.event {
                        Some(at) => (at, at + 1),
                        None => (
                            lane.count_before(&look.events, window.column_start(column)),
                            lane.count_before(&look.events, window.column_start(column + 1)),
                        ),
                    };
                    search.matches.count_between(row.key, l, from, to) > 0
                })
                .collect();
            (glyphs, matched)
        }
        Row::Plot(_, r) => match group.rows.get(r).map(|r| &r.content) {
            Some(Content::Plot(plot)) => (paint::area_glyphs(plot, look.profile, window), Vec::new()),
            _ => (Vec::new(), Vec::new()),
        },
    }
}

/// Draws a line from a call to the operation that it started, over blank cells.
fn draw_arrow(
    frame: &mut Frame<'_>,
    lanes: Rect,
    (look, window): (&Look<'_>, Window),
    (event, other): (Event, Spot),
    shown: &[(Row, u16)],
    theme: &Theme,
) {
    let row_of = |spot: Spot| shown.iter().find(|(r, _)| *r == Row::Lane(spot.group, spot.row, spot.lane)).map(|s| s.1);
    let own = look.timeline.find_event(&look.events, event.into());
    let (Some(from), Some(to)) = (own.and_then(row_of), row_of(other)) else { return };
    let Some(partner) = look.timeline.event_at(other) else { return };
    let (call, device, call_y, device_y) = if link::started_operation(look.profile, event).is_some() {
        (event, partner.to_event(), from, to)
    } else {
        (partner.to_event(), event, to, from)
    };
    let (called, began) = (look.events.span(call).0, look.events.span(device).0);
    if !window.contains(called) {
        return;
    }
    let style = theme.style(Role::Key);
    let x = |time: i64| lanes.x + u16::try_from(window.column_at(time)).unwrap_or(0);
    let mut put = |x: u16, y: u16, symbol: &str| {
        if let Some(cell) = frame.buffer_mut().cell_mut((x, y)).filter(|c| matches!(c.symbol(), " " | "│" | "░")) {
            cell.set_symbol(symbol);
            cell.set_style(style);
        }
    };
    let (top, bottom) = (call_y.min(device_y), call_y.max(device_y));
    for y in top + 1..bottom {
        put(x(called), y, "┊");
    }
    let right = if window.contains(began) { x(began) } else { lanes.right() };
    put(x(called), device_y, if device_y < call_y { "╭" } else { "╰" });
    for column in x(called) + 1..right {
        put(column, device_y, if column + 1 == right { "▸" } else { "┈" });
    }
}

fn draw_pane(
    frame: &mut Frame<'_>,
    area: Rect,
    (app, report): (&App, &Report),
    (look, screen, window): (&Look<'_>, &TimelineScreen, Window),
    bordered: bool,
    theme: &Theme,
) {
    let beside = area.width >= BESIDE;
    let (one, two) = if beside {
        let width = area.width / 2;
        (Rect { width, ..area }, Some(Rect { x: area.x + width, width: area.width - width, ..area }))
    } else {
        (area, None)
    };
    let room = |area: Rect| usize::from(area.width.saturating_sub(4));
    let show = |frame: &mut Frame<'_>, area: Rect, pane: pane::Pane| {
        let inner = draw_panel(frame, area, pane.title, bordered, theme);
        let mut text = pane.lines;
        let height = usize::from(inner.height);
        if text.len() > height && height > 0 {
            text.truncate(height);
            if let Some(last) = text.last_mut() {
                last.spans.push(Span::styled(" …", theme.style(Role::Dim)));
            }
        }
        draw_lines(frame, inner, text);
    };
    let around = |area: Rect| pane::window_pane(report, look, screen, window, room(area), theme);
    match two {
        None if screen.marked_window().is_some() => show(frame, one, around(one)),
        _ => show(frame, one, pane::cursor_pane(app, report, look, screen, window, room(one), theme)),
    }
    if let Some(two) = two {
        show(frame, two, around(two));
    }
}

/// Suggested next step.
fn next(app: &App, screen: &TimelineScreen) -> Option<String> {
    let look = Look::from_report(app.report()?)?;
    let (place, line) = (screen.place?, screen.current_line()?);
    let key = |id| app.session.key_link(id);
    // Not every report says which call launched an operation.
    let linked = |event| link::follow_link(look.timeline, &look.events, event, None).is_some();
    Some(match look.content_at(line, place.cursor, place.window(lane_columns(app.session.size))) {
        CursorContent::Event(_, event @ Event::Launch(_)) => {
            let rest = format!("{} lists its launches, {} profiles this very launch again", key(ActionId::Open), key(ActionId::Rerun));
            if linked(event) { format!("{} follows it to its call, {rest}", key(ActionId::Follow)) } else { rest }
        }
        CursorContent::Event(_, Event::Range(_)) => {
            format!(
                "{} goes to what was launched in it, {} shows it in the tree, {} zooms to it",
                key(ActionId::Follow),
                key(ActionId::Open),
                key(ActionId::ZoomTo)
            )
        }
        CursorContent::Event(_, event) if !linked(event) => {
            format!("{} goes to the next event, {} zooms to this one", key(ActionId::NextEvent), key(ActionId::ZoomTo))
        }
        CursorContent::Event(..) => {
            format!("{} goes to the call, kernel or range that belongs to it, {} zooms to it", key(ActionId::Follow), key(ActionId::ZoomTo))
        }
        CursorContent::Idle(gap, _) => {
            let step = place.window(lane_columns(app.session.size)).column_width();
            let later = find_device(look.timeline, Some(line)).and_then(|d| look.gaps?.next(d, gap.start, step, true));
            let next = later.map_or_else(String::new, |_| format!(", {} goes to the next one", key(ActionId::NextGap)));
            let zoom = key(ActionId::ZoomTo);
            match screen.launch_after_gap(&look, lane_columns(app.session.size)) {
                Some(_) => format!("{} goes to the launch after this idle time, {zoom} zooms to it{next}", key(ActionId::Open)),
                None => format!("{zoom} zooms to this idle time{next}"),
            }
        }
        _ => format!(
            "{} goes to the next idle time, {} to the longest, {} to the next event, {} finds events, {}{} zoom",
            key(ActionId::NextGap),
            key(ActionId::LongestGap),
            key(ActionId::NextEvent),
            key(ActionId::FindEvent),
            key(ActionId::ZoomIn),
            key(ActionId::ZoomOut)
        ),
    })
}
