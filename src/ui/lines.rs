//! Tree of the program's calls, by the idle time of the devices.

use super::panel::{Panel, draw_lines, draw_message, split_top};
use super::screens::{Place, ScreenView};
use super::table::{self, Head, Rows};
use super::text::{align_left, align_right, bar, fit_parts, part, wrap_text};
use super::view::View;
use super::widgets::filter_part;
use super::{Role, Theme};
use crate::analysis::call_tree::CallNode;
use crate::analysis::code_origin::short_path;
use crate::analysis::host_frames::{frame_label, function_name};
use crate::analysis::labels::{cut_end, cut_middle, display_width};
use crate::analysis::triage::ENOUGH;
use crate::app::overlay::FilterInput;
use crate::app::screens::overview::available_triage;
use crate::app::{ActionId, App, LinesScreen};
use crate::model::text::escape_unsafe;
use crate::model::{Activity, Nanos, units};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

const GAP: usize = 1;
const BAR: usize = 16;
/// Minimum width of the function column.
const NAME: usize = 34;
/// Number of rows of the panels below the tree, and minimum number of rows of the tree above them.
const PANEL: u16 = 10;
const LEAST_TREE: u16 = 8;
/// Number of rows for the facts about the selected call.
const FACTS: u16 = 9;
/// Minimum width to show both panels.
const BOTH: u16 = 110;

impl ScreenView for LinesScreen {
    fn draw(&self, frame: &mut Frame<'_>, at: Place, app: &App, view: &mut View, theme: &Theme) {
        draw(frame, at.area, app, self, view, theme);
    }

    fn next_step(&self, app: &App) -> Option<String> {
        let Some(node) = self.selected_node() else {
            let key = |id| app.session.key_link(id);
            return Some(format!(
                "{} shows what limits the run, {} when the GPU is idle",
                key(ActionId::Overview),
                key(ActionId::Timeline)
            ));
        };
        let open = app.session.key_link(ActionId::Open);
        let line = node.frame.line.map_or_else(String::new, |l| format!(" at line {l}"));
        Some(format!(
            "{open} shows the longest idle time in {}{line} on the timeline: {}",
            cut_end(&escape_unsafe(function_name(&node.frame.function)), 40),
            Nanos(node.longest.1 - node.longest.0)
        ))
    }

    fn filter(&self) -> Option<&FilterInput> {
        Some(&self.finder)
    }
}

/// Column other than the function: title, width, and value of a node.
type Figure = (&'static str, usize, fn(&CallNode, f64) -> String);
/// Most important first: if there is no room, the last ones are dropped.
const FIGURES: [Figure; 8] = [
    ("share", 7, |n, all| units::format_percent(n.ns as f64 / all * 100.0)),
    ("GPU idle", 9, |n, _| Nanos(n.ns).to_string()),
    ("self", 9, |n, _| if n.own_ns > 0 { Nanos(n.own_ns).to_string() } else { String::new() }),
    ("thread", 9, |n, _| n.activity.id().to_owned()),
    ("launches", 9, |n, _| n.launching.launches().filter(|&l| l > 0).map_or_else(String::new, units::format_grouped)),
    ("host", 9, |n, _| n.launching.host_ns().filter(|&ns| ns > 0).map_or_else(String::new, |ns| Nanos(ns).to_string())),
    ("samples", 8, |n, _| if n.samples > 0 { units::format_grouped(n.samples) } else { String::new() }),
    ("longest", 9, |n, _| Nanos(n.longest_ns()).to_string()),
];

fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &LinesScreen, view: &mut View, theme: &Theme) {
    if screen.tree.nodes.is_empty() {
        draw_empty(frame, area, app, theme);
        return;
    }
    let mut rest = area;
    let listed = u16::try_from(screen.tree.nodes.len()).unwrap_or(u16::MAX).saturating_add(3).max(LEAST_TREE);
    let above = if area.height >= LEAST_TREE + PANEL { listed.min(area.height - PANEL) } else { area.height };
    let area = split_top(&mut rest, above);
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let columns = usize::from(inner.width);
    let line = |row: u16| Rect { y: inner.y + row, height: 1, ..inner };
    let base = app.report().and_then(available_triage).map_or("the run", |t| t.base);
    frame.render_widget(control_line(screen, base, theme, columns), line(0));
    // The function column gets the width that the figures leave; if that is too little, the last figures are dropped.
    let any = |known: fn(&CallNode) -> bool| screen.tree.nodes.iter().any(known);
    let has = |title: &str| match title {
        "launches" | "host" => any(|n| n.launching.launches().is_some_and(|l| l > 0)),
        "thread" => any(|n| n.activity != Activity::Unknown),
        "samples" => any(|n| n.samples > 0),
        _ => true,
    };
    let figures: Vec<&Figure> = FIGURES.iter().filter(|f| has(f.0)).collect();
    let width = |n: usize| figures[..n].iter().map(|f| f.1 + GAP).sum::<usize>();
    let shown = (1..=figures.len()).rev().find(|&n| columns >= NAME + GAP + BAR + width(n)).unwrap_or(1);
    let name = columns.saturating_sub(GAP + BAR + width(shown));
    let mut heads = vec![Head::label_only(align_left("function", name)), Head::label_only(" ".repeat(GAP + BAR))];
    heads.extend(figures[..shown].iter().map(|f| Head::label_only(align_right(f.0, f.1 + GAP))));
    table::draw_heads(frame, line(1), heads, view, theme);
    let rows = Rect { y: inner.y + 2, height: inner.height.saturating_sub(2), ..inner };
    if screen.shown.is_empty() {
        let text = format!(
            "No function matches “{}”; {} clears the filter",
            escape_unsafe(screen.finder.text()),
            app.session.key_label(ActionId::Back)
        );
        frame.render_widget(Line::styled(text, theme.style(Role::Warn)), Rect { height: rows.height.min(1), ..rows });
        return;
    }
    let all = screen.tree.known.max(1) as f64;
    let of = Rows { list: "lines", count: screen.shown.len(), selected: screen.selected };
    table::draw_rows(frame, rows, of, view, theme, |at, _| {
        let Some((id, node)) = screen.shown.get(at).and_then(|&id| Some((id, screen.tree.nodes.get(id as usize)?))) else {
            return Vec::new();
        };
        let depth = screen.depths.get(at).map_or(0, |d| *d as usize).min(name / 2);
        let fold = match (node.children.is_empty(), screen.is_unfolded(id)) {
            (true, _) => "  ",
            (false, true) => "▾ ",
            (false, false) => "▸ ",
        };
        let room = name.saturating_sub(depth + 2);
        let mut spans = vec![Span::styled(format!("{}{fold}", " ".repeat(depth)), theme.style(Role::Faint))];
        spans.extend(function_spans(node, room, theme));
        spans.push(Span::raw(" ".repeat(GAP)));
        spans.extend(bar(node.ns as f64 / all, BAR, theme.style(Role::Part(node.category())), theme));
        for (at, figure) in figures[..shown].iter().enumerate() {
            let style = theme.style(if at == 0 { Role::Title } else { Role::Text });
            spans.push(Span::styled(align_right(&figure.2(node, all), figure.1 + GAP), style));
        }
        spans
    });
    if rest.height >= 4
        && let Some(node) = screen.selected_node()
    {
        draw_panels(frame, rest, app, screen, node, theme);
    }
}

/// Function, followed by file and line, padded to a width; a long file name is cut at the beginning.
fn function_spans(node: &CallNode, room: usize, theme: &Theme) -> Vec<Span<'static>> {
    let function = cut_end(&escape_unsafe(function_name(&node.frame.function)), room);
    let used = display_width(&function);
    let line = node.frame.line.map_or_else(String::new, |l| format!(":{l}"));
    let file = node.frame.file.as_deref().map(|f| format!("{}{line}", escape_unsafe(short_path(f)))).unwrap_or_default();
    // Reserve room for a space and two parentheses.
    let left = room.saturating_sub(used + 3);
    let place = if file.is_empty() || left < 4 { String::new() } else { format!(" ({})", cut_start(&file, left)) };
    vec![
        Span::styled(function, theme.style(Role::Text)),
        Span::styled(align_left(&place, room.saturating_sub(used)), theme.style(Role::Dim)),
    ]
}

/// The end of a string, cut to fit a width.
fn cut_start(text: &str, columns: usize) -> String {
    let width = display_width(text);
    if width <= columns {
        return text.to_owned();
    }
    let mut rest = text;
    while display_width(rest) + 1 > columns {
        let Some(first) = rest.chars().next() else { break };
        rest = &rest[first.len_utf8()..];
    }
    format!("…{rest}")
}

fn control_line(screen: &LinesScreen, base: &str, theme: &Theme, columns: usize) -> Line<'static> {
    let (dim, text) = (theme.style(Role::Dim), theme.style(Role::Text));
    let mut parts: Vec<_> = filter_part(&screen.finder, theme).into_iter().collect();
    let tree = &screen.tree;
    parts.push(part(
        0,
        vec![
            Span::styled("GPU idle ", dim),
            Span::styled(Nanos(tree.known).to_string(), text),
            Span::styled(format!(" of {base}, by call of the host"), dim),
        ],
    ));
    if tree.unknown > 0 && tree.unknown * 100 >= tree.known {
        parts.push(part(1, vec![Span::styled(format!("{} more without samples", Nanos(tree.unknown)), dim)]));
    }
    parts.push(part(2, vec![Span::styled(format!("{} of {}", screen.shown.len(), units::format_count(tree.nodes.len(), "call")), dim)]));
    fit_parts(parts, &Span::raw("   "), columns)
}

/// Panels with facts about the selected call, and the functions with the most idle time.
fn draw_panels(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &LinesScreen, node: &CallNode, theme: &Theme) {
    let [left, right] =
        if area.width >= BOTH { Layout::horizontal([Constraint::Percentage(50); 2]).areas(area) } else { [area, Rect::default()] };
    let source = screen.source().and_then(|s| s.as_ref().ok()).filter(|_| node.frame.line.is_some() && right.width > 0);
    let mut left = left;
    let mut functions = right;
    if source.is_some() {
        functions = Rect::default();
        // The source takes the right panel, so list the other functions below the facts, if there is room.
        if left.height >= FACTS + 4 {
            let facts = split_top(&mut left, FACTS);
            functions = std::mem::replace(&mut left, facts);
        }
    }
    let inner = Panel::new(vec![Span::styled(cut_end(&escape_unsafe(function_name(&node.frame.function)), 40), theme.style(Role::Title))])
        .draw(frame, left, true, theme);
    let columns = usize::from(inner.width);
    let (dim, text) = (theme.style(Role::Dim), theme.style(Role::Text));
    let all = screen.tree.known.max(1) as f64;
    let mut lines = Vec::new();
    if let Some(file) = &node.frame.file {
        let line = node.frame.line.map_or_else(String::new, |l| format!(":{l}"));
        lines.push(Line::styled(cut_middle(&format!("{}{line}", escape_unsafe(file)), columns), text));
    }
    let mut say = |sentence: String, style| lines.extend(wrap_text(&sentence, columns).into_iter().map(|l| Line::styled(l, style)));
    // A function may occur on several paths of the tree; the list of functions adds them up.
    let same = |n: &&CallNode| n.frame.function == node.frame.function && n.frame.file == node.frame.file;
    let by_path = if screen.tree.nodes.iter().filter(same).nth(1).is_some() { ", called in this way" } else { "" };
    // torch.profiler records at which line a function begins, not where it is.
    let executing = node.frame.line.is_some() && !node.frame.first_line;
    let at_line = if executing { format!(", {} of it at this line", Nanos(node.line_ns)) } else { String::new() };
    say(
        format!(
            "The GPU is idle for {} ({} of what is known) while the host is in this function{by_path}{at_line}, at most {} at a time.",
            Nanos(node.ns),
            units::format_percent(node.ns as f64 / all * 100.0),
            Nanos(node.longest_ns())
        ),
        text,
    );
    if node.ns > 0 && node.activity != Activity::Unknown {
        say(format!("Most of this time, the thread {}.", node.activity.as_str()), text);
    }
    if let Some(launches) = node.launching.launches().filter(|&n| n > 0) {
        let host = node.launching.host_ns().map_or_else(String::new, |ns| format!(", in {} of the host's time", Nanos(ns)));
        say(format!("It makes {}{host}, with what it calls.", units::format_count(launches, "launch")), text);
    }
    // If `samples` is 0, calls were recorded rather than sampled, so their times are exact.
    if node.samples > 0 && node.samples < ENOUGH {
        say(
            format!("Only {}: too few to say how the time is divided.", units::format_count(node.samples, "sample")),
            theme.style(Role::Warn),
        );
    } else if node.samples > 0 {
        say(format!("{}.", units::format_count(node.samples, "sample")), dim);
    }
    draw_lines(frame, inner, lines);
    if let Some(text) = source {
        draw_source(frame, right, node, text, theme);
    }
    if functions.width > 0 {
        draw_functions(frame, functions, app, theme);
    }
}

/// Source around the line that accounts for most of the time, as currently in the file.
fn draw_source(frame: &mut Frame<'_>, area: Rect, node: &CallNode, text: &[String], theme: &Theme) {
    let title = vec![Span::styled("Source", theme.style(Role::Title)), Span::styled("  as the file is now", theme.style(Role::Dim))];
    let inner = Panel::new(title).draw(frame, area, true, theme);
    let line = node.frame.line.map_or(1, |l| l as usize);
    let rows = usize::from(inner.height);
    let first = line.saturating_sub(rows / 2).min(text.len().saturating_sub(rows - 1)).max(1);
    let width = (first + rows).to_string().len();
    let lines = (first..).zip(text.iter().skip(first - 1)).take(rows).map(|(number, text)| {
        let here = number == line;
        let text = cut_end(&escape_unsafe(&text.replace('\t', "    ")), usize::from(inner.width).saturating_sub(width + 3));
        Line::from(vec![
            Span::styled(if here { "▸ " } else { "  " }, theme.style(Role::Part(node.category()))),
            Span::styled(align_right(&number.to_string(), width), theme.style(Role::Faint)),
            Span::styled(format!(" {text}"), theme.style(if here { Role::Title } else { Role::Dim })),
        ])
    });
    draw_lines(frame, inner, lines.collect());
}

fn draw_functions(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    let inner = Panel::new(vec![Span::styled("Lines with the most idle time", theme.style(Role::Title))]).draw(frame, area, true, theme);
    let Some(triage) = app.report().and_then(available_triage) else { return };
    let all = triage.host_time.known().max(1) as f64;
    let columns = usize::from(inner.width);
    let rows = triage.host_time.list_lines();
    let lines = rows.iter().take(inner.height.into()).map(|l| {
        let inside = l.inside.as_ref().map_or_else(String::new, |f| format!("  inside {}", frame_label(f)));
        Line::from(vec![
            Span::styled(align_right(&units::format_percent(l.ns as f64 / all * 100.0), 6), theme.style(Role::Title)),
            Span::styled(align_right(&Nanos(l.ns).to_string(), 10), theme.style(Role::Text)),
            Span::styled(
                format!("  {}", cut_end(&format!("{}{inside}", frame_label(&l.frame)), columns.saturating_sub(18))),
                theme.style(Role::Text),
            ),
        ])
    });
    draw_lines(frame, inner, lines.collect());
}

/// Draws a message if there is no tree.
fn draw_empty(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    let sampled = app.report().and_then(|r| r.profile.as_ref()).is_some_and(|p| p.has_host_stacks());
    let back = app.session.key_label(ActionId::Back);
    let text = if app.report().is_some_and(crate::app::Report::is_reading) || app.report().is_some_and(|r| r.triage.is_none()) {
        "computing the lines …".to_owned()
    } else if sampled {
        format!("No sample of the threads that launch falls into the GPU's idle time here. {back} goes back.")
    } else {
        let tool = app.report().and_then(|r| r.profile.as_ref()).map_or_else(String::new, |p| p.source.tool.clone());
        let how = match tool.as_str() {
            "trace" => {
                "The tracer took none here: it was told not to (`--stacks off`), recorded only a part of the run, or could not (the notes then say why). `warpscope run -- PROGRAM` samples those of Python and of native code."
            }
            "torch" => {
                "torch.profiler records functions with `with_stack=True`; `warpscope run -- PROGRAM` samples the stacks of Python and of native code."
            }
            _ => {
                "`warpscope run --recipe python -- PROGRAM` records them with nsys, `warpscope run -- PROGRAM` with the built-in tracer, Python and native code."
            }
        };
        format!("This report has no stacks of the threads that launch. {how} {back} goes back.")
    };
    draw_message(frame, area, &text, theme);
}
