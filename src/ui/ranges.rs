//! Tree of ranges with device times.

use super::panel::{draw_message, split_top};
use super::range_panel;
use super::screens::{Place, ScreenView};
use super::table::{self, Head, Rows};
use super::text::{align_left, align_right, bar, fit_parts, part};
use super::view::View;
use super::widgets::filter_part;
use super::{Role, Theme};
use crate::analysis::flops::peak_of_all;
use crate::analysis::labels::{cut_end, cut_middle};
use crate::analysis::readable::readable_name;
use crate::analysis::table::ranges::{self, GPU_IDLE, NAME as NAME_ORDER, RangeRow, node_label, origin_word};
use crate::analysis::table::{Column, Outputs, columns_of};
use crate::analysis::triage::TimeCategory;
use crate::app::overlay::FilterInput;
use crate::app::{ActionId, App, RangesScreen};
use crate::model::Nanos;
use crate::model::text::escape_unsafe;
use crate::model::units;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

const GAP: usize = 1;
const BAR: usize = 8;
const NAME: usize = 30;
/// Minimum number of rows of the tree if there are panels below it.
const LEAST_TREE: u16 = 7;
/// Part of the screen for the unfolded part of a large tree.
const TREE_PART: (u16, u16) = (1, 2);

impl ScreenView for RangesScreen {
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

fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &RangesScreen, view: &mut View, theme: &Theme) {
    let (whole, mut rest) = (area, area);
    // A short tree leaves room for the selected range. Folding and filtering must not move the table.
    let listed = screen.tree.as_ref().map_or(0, |t| t.nodes.len());
    let rows = |n: usize| u16::try_from(n).unwrap_or(u16::MAX).saturating_add(3).max(LEAST_TREE);
    // Only a part of a large tree is unfolded at first: the table keeps its place until that part outgrows it.
    let part = area.height * TREE_PART.0 / TREE_PART.1;
    let fits = |wanted: u16| wanted.saturating_add(range_panel::LEAST) <= area.height;
    let wanted = if !fits(rows(listed)) && rows(screen.shown.len()) <= part { part } else { rows(listed) };
    let area = if wanted.saturating_add(range_panel::LEAST) <= area.height {
        split_top(&mut rest, wanted)
    } else {
        split_top(&mut rest, area.height)
    };
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let columns = usize::from(inner.width);
    let Some(tree) = screen.tree.as_ref().filter(|t| !t.nodes.is_empty()) else {
        draw_empty(frame, whole, app, screen, theme);
        return;
    };
    let line = |row: u16| Rect { y: inner.y + row, height: 1, ..inner };
    frame.render_widget(control_line(app, screen, theme, columns), line(0));
    let peak = app.report().and_then(|r| peak_of_all(r.profile.as_ref()?));
    let counted = tree.roots.iter().any(|&r| tree.nodes.get(r as usize).is_some_and(|n| n.flops > 0.0));
    let wanted = |c: &Column<RangeRow<'_>>| match c.id {
        "flops_per_second" => counted,
        "mfu_percent" => counted && peak.is_some(),
        "helpers_percent" => tree.roots.iter().any(|&r| tree.nodes.get(r as usize).is_some_and(|n| n.helped > 0)),
        "collectives" => tree.roots.iter().any(|&r| tree.nodes.get(r as usize).is_some_and(|n| n.collectives > 0)),
        _ => true,
    };
    let all = columns_of(ranges::columns(counted), Outputs::SCREEN).into_iter().filter(wanted).collect();
    let shown = table::fit_columns(all, columns.saturating_sub(NAME + GAP + BAR), GAP);
    let name = columns.saturating_sub(GAP + BAR + table::total_width(&shown, GAP));
    let named = Head { text: align_left("range", name), sort: Some(NAME_ORDER), sorted: screen.sort == NAME_ORDER };
    let mut heads = vec![named, Head::label_only(" ".repeat(GAP + BAR))];
    heads.extend(shown.iter().map(|c| Head::of_column(c, align_right(c.title, c.width + GAP), screen.sort)));
    table::draw_heads(frame, line(1), heads, view, theme);
    // GPU time inside a range is shown relative to all GPU work.
    let most = tree.outside.1.max(1) as f64;
    let by_idle = screen.sort == GPU_IDLE;
    let most_idle = tree.nodes.iter().map(|n| n.idle).max().unwrap_or(0).max(1) as f64;
    let rows = Rect { y: inner.y + 2, height: inner.height.saturating_sub(2), ..inner };
    let of = Rows { list: "ranges", count: screen.shown.len(), selected: screen.selected };
    let filtered = !screen.finder.is_empty();
    if screen.shown.is_empty() {
        let text = format!(
            "No range matches “{}”; {} clears the filter",
            escape_unsafe(screen.finder.text()),
            app.session.key_label(ActionId::Back)
        );
        frame.render_widget(Line::styled(text, theme.style(Role::Warn)), Rect { height: rows.height.min(1), ..rows });
        return;
    }
    if rest.height >= range_panel::LEAST
        && let Some(row) = screen.selected_node().and_then(|(id, _)| RangeRow::new(tree, id, peak))
    {
        range_panel::draw(frame, rest, (app, view.ascii), screen, &row, theme);
    }
    table::draw_rows(frame, rows, of, view, theme, |at, _| {
        let Some((id, node)) = screen.shown.get(at).and_then(|&id| Some((id, tree.nodes.get(id as usize)?))) else { return Vec::new() };
        let depth = if filtered { 0 } else { (node.depth as usize * 2).min(name / 2) };
        let fold = match (node.children.is_empty(), screen.is_unfolded(id)) {
            (true, _) => "  ",
            (false, true) => "▾ ",
            (false, false) => "▸ ",
        };
        let room = name.saturating_sub(depth + 2);
        let mut spans = vec![
            Span::styled(format!("{}{fold}", " ".repeat(depth)), theme.style(Role::Faint)),
            Span::styled(align_left(&cut_middle(&escape_unsafe(&node_label(node)), room), room), theme.style(Role::Text)),
            Span::raw(" ".repeat(GAP)),
        ];
        spans.extend(if by_idle {
            bar(node.idle as f64 / most_idle, BAR, theme.style(Role::Part(TimeCategory::Other)), theme)
        } else {
            bar(node.busy as f64 / most, BAR, theme.style(Role::Good), theme)
        });
        let row = RangeRow { tree, id, node, peak };
        for column in &shown {
            let style = if column.sort == Some(screen.sort) { Role::Title } else { Role::Text };
            spans.push(Span::styled(align_right(&column.shown(&row), column.width + GAP), theme.style(style)));
        }
        spans
    });
}

/// Share of GPU time outside of ranges, in percent, from which the figures of ranges are far from the whole.
const MUCH_OUTSIDE: f64 = 20.0;

fn control_line(app: &App, screen: &RangesScreen, theme: &Theme, columns: usize) -> Line<'static> {
    let (dim, text) = (theme.style(Role::Dim), theme.style(Role::Text));
    let mut parts: Vec<_> = filter_part(&screen.finder, theme).into_iter().collect();
    let arrow = if screen.ascending { "▲" } else { "▼" };
    parts.push(part(0, vec![Span::styled("sort ", dim), Span::styled(format!("{} {arrow}", screen.sort.word), text)]));
    if let Some(tree) = &screen.tree {
        let all = tree.nodes.len();
        parts.push(part(2, vec![Span::styled(format!("{} of {}", screen.shown.len(), units::format_count(all, "row")), dim)]));
        if let Some(text) = tree.outside_text() {
            let role = if tree.outside_percent() >= MUCH_OUTSIDE { Role::Warn } else { Role::Dim };
            parts.push(part(1, vec![Span::styled(text, theme.style(role))]));
        }
    }
    if let (Some((id, _)), Some((of, work))) = (screen.selected_node(), &screen.inside)
        && *of == id
        && let Some(first) = work.kernels.first()
        && let Some(k) = app.report().and_then(|r| r.profile.as_ref()).and_then(|p| p.kernels.get(first.0.0 as usize))
    {
        let text = format!(
            "inside: {}, most of it {}",
            units::format_count(work.kernels.len(), "kernel"),
            cut_end(&escape_unsafe(&readable_name(k)), (columns / 3).max(40))
        );
        parts.push(part(4, vec![Span::styled(text, dim)]));
    }
    fit_parts(parts, &Span::raw("   "), columns)
}

/// Draws a message if there is no tree.
fn draw_empty(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &RangesScreen, theme: &Theme) {
    let reading = app.report().is_some_and(crate::app::Report::is_reading);
    let text = if reading || screen.tree.is_none() {
        "putting the ranges together …".to_owned()
    } else if let Some(report) = app.report().filter(|r| r.window.is_some() && r.profile.as_ref().is_some_and(|p| !p.ranges.is_empty())) {
        let of = if report.chosen_window().is_some() { "marked window" } else { "steady state" };
        format!("No range is in the {of}. {} shows the whole run.", app.session.key_label(ActionId::Narrow))
    } else {
        format!(
            "This report has no ranges. Mark steps and layers: {}.",
            crate::analysis::checklist::range_apis(app.report().and_then(|r| r.profile.as_ref()).is_some_and(|p| p.is_amd()))
        )
    };
    draw_message(frame, area, &text, theme);
}

/// Suggested next step.
fn next(app: &App, screen: &RangesScreen) -> Option<String> {
    let (_, node) = screen.selected_node()?;
    let key = |id| app.session.key_link(id);
    let (open, rerun) = (key(ActionId::Open), key(ActionId::Rerun));
    let who = origin_word(node.origin);
    if let Some(copies) = screen.only_copies() {
        let count: u64 = copies.iter().map(|c| c.count).sum();
        let what = format!("no kernel is launched in this range, but {}", units::format_count(count, "memory operation"));
        let opens = if copies.len() == 1 { "shows the longest on the timeline" } else { "lists them" };
        return Some(format!("{open} {opens}; {what}: the GPU works {} on them", Nanos(node.busy)));
    }
    if node.kernels + node.collectives + node.copies == 0 {
        let idle = if node.idle > 0 { format!(", and the GPU was idle for {} of it", Nanos(node.idle)) } else { String::new() };
        return Some(format!("{} folds and unfolds; nothing was launched in this range ({who}){idle}", key(ActionId::Fold)));
    }
    let share = |ns: i64| ns as f64 / (node.wall.max(1)) as f64;
    let idle = share(node.idle + node.beyond);
    let whole = |ns: i64| units::format_whole_percent(share(ns) * 100.0);
    let what = if node.beyond > node.idle && node.busy > 0 {
        format!(
            "for {} of this range, the first operation had not begun yet or the last one had ended; what is launched here runs for {}",
            whole(node.beyond),
            Nanos(node.busy)
        )
    } else if idle >= 0.3 {
        // The column counts what lies between the operations: before the first and after the last, there is no work yet, or none any more.
        let beyond = match share(node.beyond) {
            s if s >= 0.01 => format!(", and another {} lie before or after all of its work", whole(node.beyond)),
            _ => String::new(),
        };
        format!("the GPU is idle for {} of this range{beyond}", whole(node.idle))
    } else {
        let copies = if node.copies > 0 { format!(" and {}", units::format_count(node.copies, "copy")) } else { String::new() };
        let kernels = match (node.kernels, node.collectives) {
            (kernels, 0) => units::format_count(kernels, "kernel"),
            (0, collectives) => units::format_count(collectives, "collective"),
            (kernels, collectives) => {
                format!("{}, {}", units::format_count(kernels, "kernel"), units::format_count(collectives, "collective"))
            }
        };
        let helped = node.helped_percent().map_or_else(String::new, |p| {
            format!(", {} of it launched by other threads while this one waited", units::format_whole_percent(p))
        });
        format!("{kernels}{copies} launched here: the GPU works {} on them{helped}", Nanos(node.busy))
    };
    Some(format!("{open} lists its work, {rerun} profiles the longest of them again inside this range; {what}"))
}
