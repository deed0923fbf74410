//! Launches of one group: distribution of durations, durations over time, and one row per launch.

use super::neighbours;
use super::panel::{Panel, split_top};
use super::screens::{Place, ScreenView};
use super::table::{self, Head, Rows};
use super::text::{align_left, align_right, fit_parts, part};
use super::view::View;
use super::widgets::kernel_label;
use super::{Role, Theme, chart};
use crate::analysis::launch_list::LaunchList;
use crate::analysis::table::launches::{self, LAUNCH, LaunchRow};
use crate::analysis::table::{Column, Outputs, columns_of};
use crate::analysis::{GroupBy, labels};
use crate::app::{ActionId, App, LaunchesScreen, Report};
use crate::model::text::escape_unsafe;
use crate::model::{LaunchOrder, Nanos, Profile, units};
use crate::report::timeline::describe;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

/// Minimum width of a kernel name if the list contains several kernels.
const KERNEL_LEAST: usize = 24;
/// Minimum width of the NVTX path column.
const PATH_LEAST: usize = 14;

impl ScreenView for LaunchesScreen {
    fn draw(&self, frame: &mut Frame<'_>, at: Place, app: &App, view: &mut View, theme: &Theme) {
        draw(frame, at.area, at.bordered, app, self, view, theme);
    }

    fn next_step(&self, app: &App) -> Option<String> {
        next(app, self)
    }

    fn rows_beside_details(&self) -> Option<usize> {
        Some(usize::MAX)
    }
}

/// Ratio of the slowest launch to the median from which it is worth looking at.
const NOTEWORTHY: f64 = 1.05;

/// Launches screen: the key that selects the slowest launch, and the ratio of that launch to the median.
fn next(app: &App, screen: &LaunchesScreen) -> Option<String> {
    let profile = app.report()?.profile.as_deref()?;
    let list = screen.list.as_ref()?;
    if let Some(measured) = screen.selected_launch().and_then(|l| app.report()?.measured_outside(l)) {
        let whole = app.session.key_link(ActionId::Narrow);
        let name = units::format_grouped(i64::from(measured));
        return Some(format!("{whole} shows the whole run, in which launch {name} of this kernel was measured"));
    }
    let (slowest, stats) = (list.slowest?, list.stats.as_ref()?);
    let duration = profile.launches.duration(slowest as usize);
    let key = app.session.key_link(ActionId::Jump);
    let name = units::format_grouped(i64::from(slowest));
    let compared = match stats.median {
        Some(median) if median > 0.0 && screen.grouped_by().is_kernel() => {
            let factor = duration as f64 / median;
            if factor < NOTEWORTHY {
                let rerun = app.session.key_link(ActionId::Rerun);
                let one = list.rows.len() == 1;
                let others = if one { String::new() } else { format!("; {key} jumps to another: all take about as long") };
                return Some(format!("{rerun} profiles this launch again{others}"));
            }
            let by = if factor < 2.0 { format!("{:.0}% over", (factor - 1.0) * 100.0) } else { format!("{factor:.1} times") };
            format!(", {by} the median")
        }
        _ => String::new(),
    };
    let slowest_is = format!("{name}: {}{compared}", Nanos(duration));
    if screen.selected_launch() == Some(slowest) {
        let rerun = app.session.key_link(ActionId::Rerun);
        return Some(format!("{rerun} profiles this launch again, the slowest, {slowest_is}"));
    }
    Some(format!("{key} s goes to the slowest launch, {slowest_is}"))
}

/// Rows that the panel needs above and below the list: borders, figures, charts, heads.
const ABOVE_ROWS: u16 = 13;

fn draw(frame: &mut Frame<'_>, area: Rect, bordered: bool, app: &App, screen: &LaunchesScreen, view: &mut View, theme: &Theme) {
    let Some((report, profile)) = app.report().and_then(|r| Some((r, r.profile.as_deref()?))) else { return };
    let title = heading_line(report, screen, &app.session.key_label(ActionId::Back), theme, usize::from(area.width.saturating_sub(6)));
    let mut area = area;
    if bordered
        && let Some(list) = screen.list.as_ref().filter(|l| !l.rows.is_empty())
        && let Some(launch) = screen.selected_launch()
    {
        // A short list leaves room for what ran before and after the selected launch.
        let tall = u16::try_from(list.rows.len()).unwrap_or(u16::MAX).saturating_add(ABOVE_ROWS);
        if tall.saturating_add(neighbours::LEAST) <= area.height {
            let mut rest = area;
            area = split_top(&mut rest, tall);
            neighbours::draw(frame, rest, report, launch as usize, view.ascii, theme);
        }
    }
    let mut inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    if bordered {
        inner = Panel::new(title.spans.clone()).with_focus(app.session.reading.is_none()).draw(frame, area, true, theme);
    }
    let chart_rows = match inner.height {
        _ if !profile.launches.has_start_times() || screen.list.as_ref().is_some_and(|l| !varies(l)) => 0,
        0..=17 => 0,
        18..=27 => 4,
        _ => 6,
    };
    let [top, figures, charts, head, rows] = Layout::vertical([
        Constraint::Length(u16::from(!bordered)),
        Constraint::Length(1),
        Constraint::Length(if chart_rows > 0 { chart_rows + 2 } else { 0 }),
        Constraint::Length(1),
        Constraint::Min(1),
    ])
    .areas(inner);
    frame.render_widget(title, top);
    let Some(list) = &screen.list else {
        frame.render_widget(Line::styled("finding the launches …", theme.style(Role::Dim)), figures);
        return;
    };
    frame.render_widget(summary_line(profile, screen, list, theme, inner.width.into()), figures);
    if chart_rows > 0 && !list.rows.is_empty() && profile.launches.has_start_times() {
        let chosen = screen.selected_launch().map(|l| l as usize).map(|l| (profile.launches.start(l), profile.launches.duration(l)));
        draw_plots(frame, charts, list, chosen, theme);
    }
    rows_of(frame, (head, rows), &Shown { report, screen, profile, list }, view, theme);
}

fn heading_line(report: &Report, screen: &LaunchesScreen, back: &str, theme: &Theme, columns: usize) -> Line<'static> {
    let dim = theme.style(Role::Dim);
    let label = if screen.grouped_by() == report.groups.by { report.groups.labels.get(screen.row).cloned() } else { None };
    let name = escape_unsafe(label.as_deref().unwrap_or(screen.group_name())).into_owned();
    let mut tail = Vec::new();
    let f = &screen.facets;
    let value = |v: Option<u32>| v.map_or_else(|| "?".to_owned(), |v| v.to_string());
    let conditions = [
        f.stream.map(|v| format!("stream {}", value(v))),
        f.device.map(|v| format!("device {}", value(v))),
        f.pid.map(|v| format!("pid {}", value(v))),
        f.path.map(|v| match (v, &report.paths, &report.profile) {
            (Some(p), Some(paths), Some(profile)) => escape_unsafe(&paths.path_label(profile, p)).into_owned(),
            _ => "no range".to_owned(),
        }),
    ];
    let conditions: Vec<String> = conditions.into_iter().flatten().collect();
    if !conditions.is_empty() {
        tail.push(part(
            0,
            vec![
                Span::styled(format!("only {}", conditions.join(", ")), theme.style(Role::Warn)),
                Span::styled(format!(" ({back} clears)"), dim),
            ],
        ));
    }
    // A list keeps its initial time filter even if the report's filter is cleared.
    if let Some(window) = screen.grouping.window.filter(|w| report.window != Some(*w)) {
        tail.push(part(0, vec![Span::styled(format!("only {}", describe::format_window(window)), theme.style(Role::Mark))]));
    } else if screen.grouping.window.is_none() && report.window.is_some() {
        tail.push(part(0, vec![Span::styled("whole run", theme.style(Role::Mark))]));
    }
    if screen.is_pending() {
        tail.push(part(0, vec![Span::styled("…", theme.style(Role::Warn))]));
    }
    let arrow = if screen.ascending { "▲" } else { "▼" };
    tail.push(part(1, vec![Span::styled("sort ", dim), Span::styled(format!("{} {arrow}", screen.sort.word), theme.style(Role::Text))]));
    let tail = fit_parts(tail, &Span::raw("   "), columns * 2 / 3);
    let room = columns.saturating_sub(tail.width() + 5);
    let mut spans = vec![
        Span::styled("‹ ", theme.style(Role::Key)),
        Span::styled(labels::cut_middle(&name, room), theme.style(Role::Title)),
        Span::raw("   "),
    ];
    spans.extend(tail.spans);
    Line::from(spans)
}

fn summary_line(profile: &Profile, screen: &LaunchesScreen, list: &LaunchList, theme: &Theme, columns: usize) -> Line<'static> {
    let (dim, text) = (theme.style(Role::Dim), theme.style(Role::Text));
    let Some(stats) = &list.stats else {
        return Line::styled("no launch matches these filters", theme.style(Role::Warn));
    };
    let pair = |rank: u8, word: &str, value: String| part(rank, vec![Span::styled(format!("{word} "), dim), Span::styled(value, text)]);
    let mut parts = vec![
        part(0, vec![Span::styled(units::format_count(stats.count, "launch"), text)]),
        pair(1, "total", Nanos(stats.total).to_string()),
        pair(2, "avg", Nanos::format_ns(stats.avg)),
        pair(3, "median", stats.median.map(Nanos::format_ns).unwrap_or_default()),
        pair(4, "p99", stats.p99.map(|p| Nanos(p).to_string()).unwrap_or_default()),
        pair(5, "min", Nanos(stats.min).to_string()),
        pair(5, "max", Nanos(stats.max).to_string()),
    ];
    if let Some(spread) = stats.spread_percent() {
        parts.push(pair(6, "spread", format!("{spread:.0}%")));
    }
    if !matches!(profile.order, LaunchOrder::Host) && screen.sort == LAUNCH {
        parts.push(part(3, vec![Span::styled("order approximate", theme.style(Role::Warn))]));
    }
    fit_parts(parts, &Span::raw("  "), columns)
}

/// Ratio of the longest launch to the shortest up to which all take the same time: charts would only show the clock.
const SAME: f64 = 1.005;

fn varies(list: &LaunchList) -> bool {
    list.histogram.2 as f64 > list.histogram.1 as f64 * SAME
}

/// Draws a histogram on the left and durations over time on the right, with axes below them. Marks the selected launch
/// (start and duration, ns) in both.
fn draw_plots(frame: &mut Frame<'_>, area: Rect, list: &LaunchList, chosen: Option<(i64, i64)>, theme: &Theme) {
    let [bars, _, points] = Layout::horizontal([Constraint::Ratio(1, 3), Constraint::Length(3), Constraint::Min(10)]).areas(area);
    let (bins, least, greatest) = &list.histogram;
    let rows = usize::from(area.height.saturating_sub(2));
    let (head, axis) = (theme.style(Role::Head), theme.style(Role::Faint));
    let put = |frame: &mut Frame<'_>, area: Rect, title: &str, drawn: Vec<String>, style, (low, high): (String, String)| {
        let line = |row: usize| Rect { y: area.y + u16::try_from(row).unwrap_or(0), height: 1, ..area };
        frame.render_widget(Line::styled(title.to_owned(), head), line(0));
        for (i, text) in drawn.into_iter().enumerate() {
            frame.render_widget(Line::styled(text, style), line(i + 1));
        }
        let width = usize::from(area.width);
        let gap = width.saturating_sub(labels::display_width(&low) + labels::display_width(&high));
        frame.render_widget(Line::styled(format!("{low}{}{high}", " ".repeat(gap)), axis), line(rows + 1));
    };
    let drawn = chart::histogram_lines(bins, bars.width.into(), rows);
    put(frame, bars, "durations (log scale)", drawn, theme.style(Role::Bar), (Nanos(*least).to_string(), Nanos(*greatest).to_string()));
    let drawn = chart::extent_lines(&list.over_time, points.width.into(), rows, (*least, *greatest));
    let time = list.time.map_or_else(Default::default, |(a, b)| (format!("{:.3} s", a as f64 / 1e9), format!("{:.3} s", b as f64 / 1e9)));
    let title = format!("duration over time ({} to {}, log scale)", Nanos(*least), Nanos(*greatest));
    put(frame, points, &labels::cut_end(&title, points.width.into()), drawn, theme.style(Role::Bar), time);
    let Some((start, duration)) = chosen else { return };
    let column =
        |share: f64, area: Rect| area.x + ((share.clamp(0.0, 1.0) * f64::from(area.width)) as u16).min(area.width.saturating_sub(1));
    let ln = |v: i64| (v.max(1) as f64).ln();
    let share = (ln(duration) - ln(*least)) / (ln(*greatest) - ln(*least)).max(f64::MIN_POSITIVE);
    let over = list.time.map_or(0.0, |(a, b)| (start - a) as f64 / (b - a).max(1) as f64);
    for x in [column(share, bars), column(over, points)] {
        for y in area.y + 1..=area.y + u16::try_from(rows).unwrap_or(0) {
            if let Some(cell) = frame.buffer_mut().cell_mut((x, y)) {
                if cell.symbol() == " " {
                    cell.set_symbol("┊");
                }
                cell.set_style(theme.style(Role::Key));
            }
        }
    }
}

struct Shown<'a> {
    report: &'a Report,
    screen: &'a LaunchesScreen,
    profile: &'a Profile,
    list: &'a LaunchList,
}

fn rows_of(frame: &mut Frame<'_>, (head, area): (Rect, Rect), shown: &Shown<'_>, view: &mut View, theme: &Theme) {
    let &Shown { report, screen, profile, list } = shown;
    let width = usize::from(area.width);
    // With several kernels, the name is more important than the launch configuration, and a common median is
    // meaningless.
    let group = screen.grouping.rows.get(screen.row);
    let mixed = !screen.grouped_by().is_kernel() || group.is_some_and(|g| g.kernels > 1);
    let applies = |c: &Column<LaunchRow<'_>>| match c.id {
        // Omit columns that have the same value for every launch.
        "device" => profile.devices.len() > 1,
        "pid" => profile.processes.len() > 1,
        "versus_median" => !mixed,
        "start_ns" => profile.launches.has_start_times(),
        "measured" => !report.joins.is_empty(),
        _ => true,
    };
    let room = if mixed { width.saturating_sub(KERNEL_LEAST + 1) } else { width };
    let columns = columns_of(launches::columns(), Outputs::SCREEN).into_iter().filter(applies).collect();
    let columns = table::fit_columns(columns, room, 1);
    let room = room.saturating_sub(table::total_width(&columns, 1));
    // The remaining room is used first for the kernel name, then for the path.
    let kernel = mixed.then(|| if room >= PATH_LEAST + 20 { KERNEL_LEAST + 20 } else { KERNEL_LEAST + room });
    let room = kernel.map_or(room, |k| (room + KERNEL_LEAST).saturating_sub(k));
    let with_path =
        room >= PATH_LEAST && screen.grouped_by() != GroupBy::Nvtx && report.paths.as_ref().is_some_and(|p| !p.of_launch.is_empty());
    let mut all: Vec<Head> =
        columns.iter().map(|c| Head::of_column(c, format!("{} ", align_right(c.title, c.width)), screen.sort)).collect();
    all.extend(kernel.map(|width| Head::label_only(align_left(" kernel", width + 1))));
    if with_path {
        all.push(Head::label_only(format!(" {}", profile.ranges.noun())));
    }
    table::draw_heads(frame, head, all, view, theme);
    let ascii = view.ascii;
    let rows = Rows { list: "launches", count: list.rows.len(), selected: screen.selected };
    table::draw_rows(frame, area, rows, view, theme, |at, _| {
        let Some(&(row, nth)) = list.rows.get(at) else { return Vec::new() };
        let measured =
            report.find_pair(row).map(|(other, pair)| (pair.sure.is_exact(), report.ncu_durations.get(&(other, pair.result)).copied()));
        let median = list.stats.as_ref().and_then(|s| s.median);
        let one = LaunchRow { median, measured, ..LaunchRow::new(profile, report.paths.as_deref(), row, nth) };
        let slow = list.stats.as_ref().and_then(|s| s.p99).is_some_and(|p| profile.launches.duration(one.launch) > p);
        row_cells(&one, (slow, ascii), &columns, (kernel, with_path.then_some(room)), theme)
    });
}

fn row_cells<'p>(
    one: &LaunchRow<'p>,
    (slow, ascii): (bool, bool),
    columns: &[Column<LaunchRow<'p>>],
    (kernel, path): (Option<usize>, Option<usize>),
    theme: &Theme,
) -> Vec<Span<'static>> {
    let mut spans: Vec<Span<'static>> = columns
        .iter()
        .map(|column| {
            let role = match column.id {
                "duration_ns" | "versus_median" if slow => Role::Warn,
                "duration_ns" => Role::Title,
                "launch" | "start_ns" | "measured" => Role::Dim,
                _ => Role::Text,
            };
            Span::styled(format!("{} ", align_right(&column.shown_on_screen(one), column.width)), theme.style(role))
        })
        .collect();
    if let Some(width) = kernel {
        spans.push(Span::raw(" "));
        spans.extend(kernel_label(one.kernel(), width, ascii, theme));
    }
    if let Some(room) = path {
        let text = one.paths.and_then(|p| p.launch_path(one.launch).map(|x| p.path_label(one.profile, x))).unwrap_or_default();
        spans.push(Span::styled(
            format!(" {}", align_left(&labels::cut_middle(&escape_unsafe(&text), room - 1), room - 1)),
            theme.style(Role::Dim),
        ));
    }
    spans
}
