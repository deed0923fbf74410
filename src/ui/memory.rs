//! Memory screen: use over time with the allocator's reserve above it, the owners at a chosen time, the stack of the
//! selected owner, and the allocator's segments.

use super::panel::{Panel, draw_message, draw_panel, fits_borders, split_top};
use super::screens::{Place, ScreenView};
use super::table::{self, Head, Rows};
use super::text::{align_left, align_right, bar, wrap_text};
use super::view::View;
use super::widgets::finding_glyph;
use super::{Role, Theme, chart};
use crate::analysis::labels::{cut_end, cut_middle, display_width};
use crate::analysis::memory::{Category, DeviceUsage, MemoryVerdict, StepBasis, device_segments, sites};
use crate::app::jobs::{Curve, MemoryView};
use crate::app::screens::memory::BESIDE;
use crate::app::{ActionId, App, MemoryScreen};
use crate::model::api_call::NONE;
use crate::model::text::escape_unsafe;
use crate::model::{Block, BlockState, Bytes, Nanos, Profile, Segment, units};
use crate::report::memory::{Memory, device_name, site_name, stack_frames, verdict_text};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::style::Style;
use ratatui::text::{Line, Span};

/// Width of the scale to the left of the curve.
const SCALE: usize = 9;
/// Minimum and maximum number of rows of the curve.
const CURVE: (u16, u16) = (5, 14);
/// Widths of a size, of the bar that shows a share, and of a category.
const SIZE: usize = 9;
const BAR: usize = 8;
/// Width of the bar in a panel with room for it, and that panel's width.
const LONG_BAR: (usize, usize) = (24, 100);
const FOR: usize = 16;
/// Minimum width to show the segments next to the table.
pub const WIDE: u16 = 100;

fn format_size(bytes: u64) -> String {
    Bytes(bytes).to_string()
}

/// Color of a category.
fn category_role(category: Category) -> Role {
    match category {
        Category::Parameters | Category::Earlier => Role::Family(crate::analysis::Family::Gemm),
        Category::Gradients => Role::Family(crate::analysis::Family::Reduce),
        Category::OptimizerState => Role::Family(crate::analysis::Family::Attention),
        Category::Activations => Role::Family(crate::analysis::Family::Elementwise),
        Category::Temporary => Role::Family(crate::analysis::Family::Copy),
        Category::Other => Role::Dim,
    }
}

impl ScreenView for MemoryScreen {
    fn draw(&self, frame: &mut Frame<'_>, at: Place, app: &App, view: &mut View, theme: &Theme) {
        draw(frame, at.area, app, self, view, theme);
    }

    fn next_step(&self, app: &App) -> Option<String> {
        next(app, self)
    }
}

fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &MemoryScreen, view: &mut View, theme: &Theme) {
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let profile = app.report().and_then(|r| r.profile.as_deref());
    let (Some(known), Some(device), Some(curve), Some(profile)) =
        (screen.memory_view(), screen.device_usage(), screen.visible_curve(), profile)
    else {
        let text = match &screen.view {
            Some(None) => format!(
                "This report has nothing of memory. Snapshots of torch.cuda.memory have the allocations with their stacks; `warpscope trace --memory` records those of the driver, nsys with --cuda-memory-usage=true. {} goes back.",
                app.session.key_label(ActionId::Back)
            ),
            _ => "looking at the memory of this report …".to_owned(),
        };
        draw_message(frame, area, &text, theme);
        return;
    };
    let framed = fits_borders(area);
    let mut rest = area;
    // A title without a border takes up one row.
    let border = if framed { 2 } else { 1 };
    let rows = (area.height / 3).clamp(CURVE.0, CURVE.1);
    // In a small area, the findings take the rows that the table does not need.
    let table = u16::try_from(screen.owner_rows().len().max(3) + 2).unwrap_or(u16::MAX);
    let free = area.height.saturating_sub(rows + 2 * border).saturating_sub(table);
    let most = if area.height >= 30 { 6 } else { free.clamp(2, 6) };
    let found = finding_lines(device, usize::from(inner.width.saturating_sub(2)), most.into(), theme);
    let top = split_top(&mut rest, u16::try_from(found.len()).unwrap_or(2) + border);
    let title = vec![
        Span::styled("Memory", theme.style(Role::Title)),
        Span::styled(format!("  {}", escape_unsafe(&device_name(profile, device.ledger.device))), theme.style(Role::Dim)),
        Span::styled(other_devices(known, app), theme.style(Role::Dim)),
    ];
    let at = draw_panel(frame, top, title, framed, theme);
    super::panel::draw_lines(frame, if framed { at } else { Rect { x: at.x + 1, width: at.width.saturating_sub(2), ..at } }, found);
    let plot = split_top(&mut rest, rows + border);
    let title = over_time(screen, known, device, usize::from(inner.width.saturating_sub(6)), view.ascii, theme);
    let plot = draw_panel(frame, plot, title, framed, theme);
    let plot = if framed { plot } else { Rect { x: plot.x + 1, width: plot.width.saturating_sub(2), ..plot } };
    draw_curve(frame, plot, screen, device, curve, view.ascii, theme);
    let of = Memory { profile, usage: &known.usage };
    let beside = framed && area.width >= WIDE;
    if beside {
        let [main, side] = Layout::horizontal([Constraint::Percentage(62), Constraint::Percentage(38)]).areas(rest);
        draw_holders(frame, main, screen, &of, framed, view, theme);
        let here: Vec<&Segment> = device_segments(profile, device.ledger.device).collect();
        let [upper, lower] = Layout::vertical(if here.is_empty() {
            [Constraint::Percentage(100), Constraint::Length(0)]
        } else {
            [Constraint::Percentage(50), Constraint::Percentage(50)]
        })
        .areas(side);
        stack_panel(frame, upper, screen, &of, theme);
        if !here.is_empty() {
            draw_segments(frame, lower, &here, (profile, device), framed, view.ascii, theme);
        }
    } else if screen.segments && device_segments(profile, device.ledger.device).next().is_some() {
        let here: Vec<&Segment> = device_segments(profile, device.ledger.device).collect();
        draw_segments(frame, rest, &here, (profile, device), framed, view.ascii, theme);
    } else {
        draw_holders(frame, rest, screen, &of, framed, view, theme);
    }
}

fn other_devices(known: &MemoryView, app: &App) -> String {
    let n = known.usage.devices.len();
    if n < 2 {
        String::new()
    } else {
        format!("  ({} of them: {} shows the next)", units::format_count(n, "device"), app.session.key_label(ActionId::MemoryDevice))
    }
}

/// Findings as sentences, with advice for the first one.
fn finding_lines(device: &DeviceUsage, columns: usize, most: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    let (mark, role) = match (device.findings.first(), device.ledger.times.is_empty()) {
        (Some(finding), _) => finding_glyph(finding),
        (None, false) => ("✓", Role::Good),
        (None, true) => ("·", Role::Dim),
    };
    for (at, line) in wrap_text(&escape_unsafe(&verdict_text(device)), columns.saturating_sub(2)).into_iter().enumerate() {
        out.push(Line::styled(format!("{} {line}", if at == 0 { mark } else { " " }), theme.style(role)));
    }
    for finding in device.findings.iter().skip(1) {
        let (mark, role) = finding_glyph(finding);
        let text = format!("{mark} {}: {}", finding.id.id(), escape_unsafe(&finding.headline));
        out.push(Line::styled(cut_end(&text, columns), theme.style(role)));
    }
    for action in device.findings.first().iter().flat_map(|f| &f.actions) {
        for (at, line) in wrap_text(action, columns.saturating_sub(2)).into_iter().enumerate() {
            out.push(Line::styled(format!("{}{line}", if at == 0 { "→ " } else { "  " }), theme.style(Role::Text)));
        }
    }
    if out.len() > most.max(1) {
        out.truncate(most.max(1));
        // Mark the truncation.
        if let Some(last) = out.pop() {
            let text: String = last.spans.iter().map(|s| s.content.as_ref()).collect();
            out.push(Line::styled(cut_end(&format!("{text} …"), columns), last.style));
        }
    }
    out
}

/// Role and glyph of the memory that is never freed by the code of the finding "growth", in the curve and its legend.
fn growth_mark(device: &DeviceUsage, ascii: bool, theme: &Theme) -> (Role, char) {
    let role = device.findings.iter().find(|f| f.id == MemoryVerdict::Growth).map_or(Role::Warn, |f| finding_glyph(f).1);
    // Without colors, another shade tells it from the rest of the curve.
    let colored = theme.style(role).fg != theme.style(Role::Bar).fg;
    let glyph = match (ascii, colored) {
        (true, _) => '%',
        (false, true) => chart::FULL,
        (false, false) => '▒',
    };
    (role, glyph)
}

fn over_time(
    screen: &MemoryScreen,
    known: &MemoryView,
    device: &DeviceUsage,
    columns: usize,
    ascii: bool,
    theme: &Theme,
) -> Vec<Span<'static>> {
    let dim = |text: String| Span::styled(text, theme.style(Role::Dim));
    let mut out = vec![Span::styled("Over time", theme.style(Role::Title))];
    if let Some((_, part)) = &screen.zoom {
        let (from, to) = (device.ledger.format_time(part.span.0), device.ledger.format_time(part.span.1));
        out.push(Span::styled(format!("  only {from} to {to}"), theme.style(Role::Warn)));
    }
    out.push(dim(format!("  peak {}  end {}", format_size(device.peak.1), format_size(device.ledger.bytes_at_end()))));
    if let Some(peak) = device.reserved_peak {
        out.push(dim(format!("  held by the allocator at most {}", format_size(peak))));
    }
    if let Some(step) = screen.cursor_position().1.and_then(|t| device.steps.step_text(t)) {
        out.push(dim(format!("  {step}")));
    }
    let growth =
        device.findings.iter().find(|f| f.id == MemoryVerdict::Growth && screen.whole_curve().is_some_and(|c| !c.growth.is_empty()));
    if let Some(site) = growth.and_then(|f| f.details.sites.iter().find_map(|s| known.usage.sites.get(s.0))) {
        let (role, glyph) = growth_mark(device, ascii, theme);
        let used: usize = out.iter().map(|s| display_width(&s.content)).sum();
        let text = format!(" never freed: {}", escape_unsafe(&site.summary_line()));
        if used + 3 + display_width(&text) <= columns {
            out.extend([Span::styled(format!("  {glyph}"), theme.style(role)), dim(text)]);
        }
    }
    // The header's time span covers operations on a GPU, so give the span of the allocations here.
    if let Some((begin, end)) = screen.whole_curve().map(|c| c.span).filter(|_| device.ledger.timed) {
        let text = format!("  {} of allocations", Nanos(end - begin));
        let used: usize = out.iter().map(|s| display_width(&s.content)).sum();
        if used + display_width(&text) <= columns {
            out.push(dim(text));
        }
    }
    out
}

fn draw_curve(frame: &mut Frame<'_>, area: Rect, screen: &MemoryScreen, device: &DeviceUsage, curve: &Curve, ascii: bool, theme: &Theme) {
    if area.height < 2 || area.width < BESIDE {
        return;
    }
    let columns = (usize::from(area.width) - SCALE - 1).max(2);
    let rows = usize::from(area.height) - 1;
    let (begin, end) = curve.span;
    if curve.allocated.is_empty() || end <= begin {
        let text = if device.ledger.times.is_empty() {
            "the report has no history of allocations: only what was held when it was written"
        } else {
            "all of it happened at once"
        };
        frame.render_widget(Line::styled(text, theme.style(Role::Dim)), Rect { height: 1, ..area });
        return;
    }
    // Each column shows the maximum within its time; the last column shows the state at the end, as in the title.
    let fit = |values: &[u64], last: Option<u64>| {
        let mut out = Curve::fit_to_columns(values, columns - 1);
        out.extend(last.or(values.last().copied()));
        out
    };
    let at_end = device.ledger.event_at(end).and_then(|at| device.ledger.bytes.get(at as usize)).copied();
    let allocated = fit(&curve.allocated, at_end);
    let reserved = if curve.reserved.is_empty() { Vec::new() } else { fit(&curve.reserved, None) };
    let most = allocated.iter().chain(&reserved).copied().max().unwrap_or(1).max(1) as f64;
    // With colors, the reserve is drawn as a background that meets the curve without gaps; without colors, it is
    // shaded.
    let ground = theme.style(Role::BarEmpty).fg.filter(|_| !ascii);
    let drawn = |values: &[u64]| chart::step_lines(&values.iter().map(|&v| v as f64).collect::<Vec<_>>(), most, rows);
    let (area_rows, line_rows) = (drawn(&allocated), drawn(&reserved));
    let growth = if curve.growth.is_empty() { Vec::new() } else { drawn(&fit(&curve.growth, None)) };
    let (growth_role, growth_full) = growth_mark(device, ascii, theme);
    let colored = growth_full == chart::FULL;
    let column = |time: i64| if time >= end { columns - 1 } else { curve.column_of(time, columns - 1) };
    let drawn_at = |time: i64| (begin..=end).contains(&time).then(|| column(time));
    let cursor = screen.cursor_position().1.and_then(drawn_at);
    let steps: Vec<usize> = device.steps.list.iter().filter_map(|s| drawn_at(s.start)).collect();
    let mut lines = Vec::new();
    for (row, line) in area_rows.iter().enumerate() {
        let label = if row == 0 {
            format_size(most as u64)
        } else if row == rows / 2 && rows >= 5 {
            format_size((most / 2.0) as u64)
        } else {
            String::new()
        };
        let mut spans = vec![Span::styled(format!("{} ", align_right(&label, SCALE)), theme.style(Role::Dim))];
        let own: Vec<char> = line.chars().collect();
        let above: Vec<char> = line_rows.get(row).map(|r| r.chars().collect()).unwrap_or_default();
        let grown: Vec<char> = growth.get(row).map(|r| r.chars().collect()).unwrap_or_default();
        for at in 0..columns {
            let here = own.get(at).copied().unwrap_or(' ');
            let over = above.get(at).copied().unwrap_or(' ');
            let kept = grown.get(at).copied().filter(|&g| g != ' ' && here != ' ');
            let (glyph, style) = if let Some(kept) = kept.filter(|&g| g == here || g == chart::FULL || colored) {
                // Below the top of the curve, the rest of the cell has the color of the curve.
                let rest = theme.style(Role::Bar).fg.filter(|_| kept != here && here == chart::FULL);
                let style = theme.style(growth_role);
                (if colored { kept } else { growth_full }, rest.map_or(style, |color| style.bg(color)))
            } else if here != ' ' {
                let style = theme.style(Role::Bar);
                let full = over == chart::FULL;
                (if ascii { '#' } else { here }, ground.filter(|_| full).map_or(style, |color| style.bg(color)))
            } else if let Some(color) = ground.filter(|_| over != ' ') {
                // A blank on that background looks like a full block and takes fewer bytes to send.
                if over == chart::FULL { (' ', Style::default().bg(color)) } else { (over, Style::default().fg(color)) }
            } else if over != ' ' {
                (if ascii { '.' } else { '░' }, theme.style(Role::Faint))
            } else if cursor == Some(at) {
                (if ascii { '|' } else { '│' }, theme.style(Role::Text))
            } else {
                (' ', Style::default())
            };
            let style = if cursor == Some(at) { style.patch(theme.style(Role::Warn)) } else { style };
            let glyph = if cursor == Some(at) && glyph == ' ' { '│' } else { glyph };
            spans.push(Span::styled(glyph.to_string(), style));
        }
        lines.push(Line::from(spans));
    }
    lines.push(axis_line(screen, device, (columns, &steps), cursor, &drawn_at, ascii, theme));
    super::panel::draw_lines(frame, area, lines);
}

/// Axis with the times of both ends, the steps, the peak, and the time of the cursor.
fn axis_line(
    screen: &MemoryScreen,
    device: &DeviceUsage,
    (columns, steps): (usize, &[usize]),
    cursor: Option<usize>,
    drawn_at: &impl Fn(i64) -> Option<usize>,
    ascii: bool,
    theme: &Theme,
) -> Line<'static> {
    let (begin, end) = screen.visible_curve().map_or((0, 0), |c| c.span);
    let mut marks = vec![(if ascii { '-' } else { '─' }, Role::Dim); columns];
    // Steps that are less than two columns apart on average are indistinguishable.
    for &step in steps.iter().filter(|_| steps.len() * 2 <= columns) {
        if let Some(mark) = marks.get_mut(step) {
            mark.0 = if ascii { '+' } else { '┴' };
        }
    }
    let mut put = |at: usize, text: &str, role: Role| {
        for (mark, letter) in marks.iter_mut().skip(at).zip(text.chars()) {
            *mark = (letter, role);
        }
    };
    // The time of the end is at the right edge of the axis; label the peak and the cursor if there is room.
    let last = format!(" {}", device.ledger.format_time(end));
    let peak = device.peak_time().and_then(drawn_at);
    let free = columns.saturating_sub(display_width(&last));
    // If the cursor is at the end, that time also labels the cursor.
    let at_end = cursor == Some(columns - 1);
    let has_room = free > columns / 2 && peak.is_none_or(|p| p < free) && (at_end || cursor.is_none_or(|c| c < free));
    if has_room {
        put(free, &last, if at_end { Role::Warn } else { Role::Dim });
    }
    let mut taken = if has_room { free..columns } else { columns..columns };
    let time = screen.cursor_position().1.map_or_else(String::new, |t| device.ledger.format_time(t));
    // Finds room to the right or left of a mark for its label, without covering the other mark or an earlier label.
    let place = |at: usize, text: &str, other: Option<usize>, taken: &std::ops::Range<usize>| {
        let wide = display_width(text);
        let free = |r: &std::ops::Range<usize>| {
            r.end <= columns && other.is_none_or(|o| !r.contains(&o)) && (r.end <= taken.start || r.start >= taken.end)
        };
        [(at + 1..at + 1 + wide), (at.saturating_sub(wide)..at)].into_iter().find(|r| r.len() == wide && free(r))
    };
    let other = cursor.filter(|c| peak != Some(*c) && !(at_end && has_room));
    if let Some(at) = other {
        put(at, if ascii { "|" } else { "┴" }, Role::Warn);
        let text = format!(" {time} ");
        if let Some(room) = place(at, &text, peak, &taken) {
            put(room.start, &text, Role::Warn);
            taken = room.start.min(taken.start)..if has_room { columns } else { room.end };
        }
    }
    if let Some(peak) = peak {
        put(peak, if ascii { "^" } else { "▲" }, Role::Dim);
        let text = if cursor == Some(peak) { format!(" peak {time} ") } else { " peak ".to_owned() };
        if let Some(room) = place(peak, &text, other, &taken) {
            put(room.start, &text, Role::Dim);
        }
    }
    // Below the scale, `0 B` labels its lower end; the axis may begin later than the report does.
    if begin > 0 {
        let start = format!("{} ", device.ledger.format_time(begin));
        if (0..display_width(&start)).all(|at| Some(at) != cursor && Some(at) != peak && at < taken.start) {
            for (mark, letter) in marks.iter_mut().zip(start.chars()) {
                *mark = (letter, Role::Dim);
            }
        }
    }
    let mut spans = vec![Span::styled(format!("{} ", align_right("0 B", SCALE)), theme.style(Role::Dim))];
    spans.extend(marks.into_iter().map(|(mark, role)| Span::styled(mark.to_string(), theme.style(role))));
    Line::from(spans)
}

/// Formats a difference with its sign.
fn format_signed(bytes: i64) -> String {
    match bytes {
        0 => "=".to_owned(),
        b => format!("{}{}", if b > 0 { "+" } else { "−" }, format_size(b.unsigned_abs())),
    }
}

/// Difference in allocated memory compared with the other report, as text.
fn comparison_text(screen: &MemoryScreen) -> String {
    let Some((_, Some(beside))) = &screen.beside else { return String::new() };
    let there = if screen.at_end() { beside.end.1 } else { beside.peak.1 };
    let more = i64::try_from(screen.allocated_bytes()).unwrap_or(i64::MAX).saturating_sub(i64::try_from(there).unwrap_or(i64::MAX));
    format!(", {} against {}", format_signed(more), escape_unsafe(&beside.name))
}

/// Memory of the other report that is not in the rows.
fn only_there(app: &App, screen: &MemoryScreen) -> Option<String> {
    let (Some((_, Some(beside))), Some((_, gone))) = (&screen.beside, &screen.changes) else { return None };
    let (bytes, when) = if screen.at_end() { (beside.end.1, "end") } else { (beside.peak.1, "peak") };
    let gone = if *gone > 0 {
        format!("{} of that by code that holds nothing here", format_size(*gone))
    } else {
        "all of it by code that is here, too".to_owned()
    };
    let key = app.session.key_link(ActionId::MemoryBeside);
    Some(format!("{} held {} at its {when}, {gone}; {key} takes the next report, or none", escape_unsafe(&beside.name), format_size(bytes)))
}

/// Draws the owners of memory at the selected time.
fn draw_holders(frame: &mut Frame<'_>, area: Rect, screen: &MemoryScreen, of: &Memory<'_>, framed: bool, view: &mut View, theme: &Theme) {
    let (_, time) = screen.cursor_position();
    let when = match (screen.cursor, time) {
        (None, _) => "at the peak".to_owned(),
        (Some(_), Some(t)) if screen.whole_curve().is_some_and(|c| c.span.1 == t) => "at the end".to_owned(),
        (_, Some(t)) => format!("at {}", screen.device_usage().map_or_else(String::new, |d| d.ledger.format_time(t))),
        (_, None) => String::new(),
    };
    let title = vec![
        Span::styled("Held ", theme.style(Role::Title)),
        Span::styled(format!("{when}  {}{}", format_size(screen.allocated_bytes()), comparison_text(screen)), theme.style(Role::Dim)),
    ];
    let area = if framed {
        Panel::new(title).focused().draw(frame, area, true, theme)
    } else {
        Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area }
    };
    if area.height < 2 {
        return;
    }
    let columns = usize::from(area.width);
    let [heads, list] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    // The change is more important than the memory that is still held at the end.
    let changes = screen.changes.as_ref().map(|c| &c.0);
    let kept = if columns >= 90 || changes.is_some() { SIZE + 2 } else { 0 };
    let heading = if changes.is_some() { "change" } else { "to the end" };
    let bars = if columns >= LONG_BAR.1 { LONG_BAR.0 } else { BAR };
    let name = columns.saturating_sub(2 + SIZE + 1 + bars + 1 + kept + FOR);
    let title = format!(
        "{}{} {}{}{}",
        align_right("bytes", SIZE + 2),
        align_left("", bars + 1),
        if kept > 0 { align_right(heading, kept) + "  " } else { String::new() },
        align_left("for", FOR - if kept > 0 { 2 } else { 0 }),
        "allocated by"
    );
    table::draw_heads(frame, heads, vec![Head::label_only(cut_end(&title, columns))], view, theme);
    let total = screen.allocated_bytes().max(1) as f64;
    let rows = Rows { list: "memory", count: screen.owner_rows().len(), selected: screen.selected };
    table::draw_rows(frame, list, rows, view, theme, |at, _| {
        let Some(row) = screen.owner_rows().get(at) else { return Vec::new() };
        let share = row.bytes as f64 / total;
        // The line that the first finding is about stands out, whatever its size. Where memory ran out, all of it was held
        // by someone: the largest holder is the one to look at.
        let named = screen.device_usage().and_then(|d| d.findings.first()).filter(|f| {
            let most = if f.id == MemoryVerdict::OutOfMemory { 1 } else { f.details.sites.len() };
            row.site != NONE && f.details.sites.iter().take(most).any(|s| s.0 == row.site)
        });
        let (mark, role) = named.map_or(("  ", Role::Text), finding_glyph);
        let mut spans = vec![
            Span::styled(align_left(mark, 2), theme.style(role)),
            Span::styled(format!("{} ", align_right(&format_size(row.bytes), SIZE)), theme.style(role)),
        ];
        spans.extend(bar(share, bars, theme.style(category_role(row.category)), theme));
        spans.push(Span::raw(" "));
        if let Some(change) = changes.and_then(|c| c.get(at)) {
            let role = match change {
                0 => Role::Faint,
                c if *c > 0 => Role::Warn,
                _ => Role::Good,
            };
            spans.push(Span::styled(format!("{}  ", align_right(&format_signed(*change), kept)), theme.style(role)));
        } else if kept > 0 {
            let text = if row.kept > 0 { format_size(row.kept) } else { String::new() };
            spans.push(Span::styled(format!("{}  ", align_right(&text, kept)), theme.style(Role::Dim)));
        }
        let wide = FOR - if kept > 0 { 2 } else { 0 };
        spans.push(Span::styled(align_left(row.category.display_name(), wide), theme.style(category_role(row.category))));
        spans.push(Span::styled(cut_middle(&escape_unsafe(&site_name(of, row)), name.max(8)), theme.style(Role::Text)));
        spans
    });
}

/// Draws the stack of the selected row, starting with the program's own frames.
fn stack_panel(frame: &mut Frame<'_>, area: Rect, screen: &MemoryScreen, of: &Memory<'_>, theme: &Theme) {
    let at = draw_panel(frame, area, vec![Span::styled("Stack", theme.style(Role::Title))], true, theme);
    let columns = usize::from(at.width);
    let mut out = Vec::new();
    if let Some(row) = screen.owner_rows().get(screen.selected) {
        out.push(Line::styled(cut_end(&format!("{}{}", format_size(row.bytes), in_blocks(row.blocks)), columns), theme.style(Role::Dim)));
        for frame in stack_frames(of, row.stack) {
            let role = if sites::is_library(frame) || frame.line == 0 { Role::Dim } else { Role::Text };
            out.push(Line::styled(cut_middle(&escape_unsafe(&sites::frame_name(frame)), columns), theme.style(role)));
        }
        if out.len() == 1 {
            let text = if row.category == Category::Earlier { "allocated before the report begins" } else { "no stack was recorded" };
            out.push(Line::styled(text, theme.style(Role::Dim)));
        }
    }
    super::panel::draw_lines(frame, at, out);
}

/// Title of the panel of segments.
const SEGMENTS: &str = "Segments at the end";

/// Draws the allocator's segments, each as a strip of its blocks, starting with the segments that have the most free
/// bytes between blocks.
fn draw_segments(
    frame: &mut Frame<'_>,
    area: Rect,
    list: &[&Segment],
    (profile, device): (&Profile, &DeviceUsage),
    framed: bool,
    ascii: bool,
    theme: &Theme,
) {
    let free = device.free.unwrap_or_default();
    let title = vec![
        Span::styled(SEGMENTS, theme.style(Role::Title)),
        Span::styled(
            cut_end(
                &format!("  {}, {} free between blocks", units::format_count(list.len(), "segment"), format_size(free.split)),
                usize::from(area.width).saturating_sub(SEGMENTS.len() + 6),
            ),
            theme.style(Role::Dim),
        ),
    ];
    let at = draw_panel(frame, area, title, framed, theme);
    let at = if framed { at } else { Rect { x: at.x + 1, width: at.width.saturating_sub(2), ..at } };
    let columns = usize::from(at.width).saturating_sub(SIZE + 1);
    let mut sorted: Vec<&&Segment> = list.iter().collect();
    // Segments with free gaps are the most interesting.
    let holes = |s: &Segment| {
        let blocks = segment_blocks(profile, s);
        let used = blocks.iter().any(|b| b.state != BlockState::Free);
        if used { blocks.iter().filter(|b| b.state == BlockState::Free).map(|b| b.size).sum() } else { 0_u64 }
    };
    sorted.sort_by_cached_key(|s| (std::cmp::Reverse(holes(s)), std::cmp::Reverse(s.size), s.address));
    let room = usize::from(at.height);
    let mut lines: Vec<Line<'static>> = Vec::new();
    let shown = if sorted.len() > room { room.saturating_sub(1) } else { sorted.len() };
    for segment in &sorted[..shown] {
        let mut spans = vec![Span::styled(format!("{} ", align_right(&format_size(segment.size), SIZE)), theme.style(Role::Dim))];
        spans.extend(block_strip(segment_blocks(profile, segment), segment, columns, ascii, theme));
        lines.push(Line::from(spans));
    }
    if shown < sorted.len() {
        lines.push(Line::styled(format!("{} … {} more", " ".repeat(SIZE), sorted.len() - shown), theme.style(Role::Dim)));
    }
    super::panel::draw_lines(frame, at, lines);
}

fn segment_blocks<'a>(profile: &'a Profile, segment: &Segment) -> &'a [Block] {
    profile.memory.state.as_ref().and_then(|s| s.blocks.get(segment.blocks.0..segment.blocks.1)).unwrap_or_default()
}

/// Strip of the blocks in a segment; each cell shows the state that takes up most of it.
fn block_strip(blocks: &[Block], segment: &Segment, columns: usize, ascii: bool, theme: &Theme) -> Vec<Span<'static>> {
    let mut used = vec![0.0_f64; columns];
    let cell = segment.size.max(1) as f64 / columns.max(1) as f64;
    for block in blocks.iter().filter(|b| b.state != BlockState::Free) {
        let (from, to) = (
            block.address.saturating_sub(segment.address) as f64,
            block.address.saturating_sub(segment.address) as f64 + block.size as f64,
        );
        let first = (from / cell) as usize;
        let last = columns.min((to / cell).ceil() as usize);
        for (at, share) in used.iter_mut().enumerate().take(last).skip(first) {
            *share += (to.min((at + 1) as f64 * cell) - from.max(at as f64 * cell)).max(0.0) / cell;
        }
    }
    used.into_iter()
        .map(|share| {
            let (glyph, plain, role) = match share {
                s if s >= 0.95 => ("█", "#", Role::Bar),
                s if s >= 0.5 => ("▓", "+", Role::Bar),
                s if s > 0.02 => ("▒", ":", Role::Bar),
                _ => ("·", ".", Role::Faint),
            };
            Span::styled(if ascii { plain } else { glyph }, theme.style(role))
        })
        .collect()
}

/// Suggested next step.
fn next(app: &App, screen: &MemoryScreen) -> Option<String> {
    let device = screen.device_usage()?;
    let key = |id| app.session.key_link(id);
    if let Some(text) = only_there(app, screen) {
        return Some(text);
    }
    let growth = device.findings.first().filter(|f| f.id == MemoryVerdict::Growth && screen.cursor.is_none());
    if growth.is_some_and(|f| !f.details.sites.is_empty()) {
        return Some(format!(
            "{} copies the stack that holds more after every step, {} shows what it holds at the end",
            key(ActionId::Copy),
            key(ActionId::MemoryEnd),
        ));
    }
    if let Some(StepBasis::Ranges(name)) = &device.steps.found
        && screen.cursor.is_none()
    {
        return Some(format!(
            "{} and {} look at other times, {} at the end; steps are by ranges \"{}\"",
            key(ActionId::MemoryLeft),
            key(ActionId::MemoryRight),
            key(ActionId::MemoryEnd),
            escape_unsafe(name)
        ));
    }
    if app.session.reports.len() > 1 && screen.beside.is_none() {
        return Some(format!(
            "{} compares with another report's memory; {} and {} look at other times, {} at the end",
            key(ActionId::MemoryBeside),
            key(ActionId::MemoryLeft),
            key(ActionId::MemoryRight),
            key(ActionId::MemoryEnd)
        ));
    }
    Some(format!(
        "{} and {} look at other times, {} at the peak, {} at the end; {} copies the stack",
        key(ActionId::MemoryLeft),
        key(ActionId::MemoryRight),
        key(ActionId::MemoryPeak),
        key(ActionId::MemoryEnd),
        key(ActionId::Copy)
    ))
}

/// ` in 45 blocks`; empty for a report that does not record blocks.
fn in_blocks(count: u64) -> String {
    if count == 0 { String::new() } else { format!(" in {}", units::format_count(count, "block")) }
}
