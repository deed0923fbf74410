//! Panels below a short tree of ranges: the work launched inside the selected range with their kinds, its figures, and
//! its time on the host.

use super::panel::{Panel, draw_lines, split_top};
use super::step_chart;
use super::text::{align_left, align_right, bar, wrap_text};
use super::widgets::stacked_bar::{Share, share_legend, stacked_bar};
use super::widgets::{family_swatch, kernel_label};
use super::{Role, Theme};
use crate::analysis::Family;
use crate::analysis::labels::{cut_end, cut_middle};
use crate::analysis::range_tree::KernelTime;
use crate::analysis::table::ranges::{self, RangeRow, node_label};
use crate::analysis::table::{Outputs, columns_of};
use crate::analysis::triage::TimeCategory;
use crate::app::{App, RangesScreen};
use crate::model::text::escape_unsafe;
use crate::model::{Bytes, Nanos, Profile, units};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

/// Minimum number of rows of the panels.
pub const LEAST: u16 = 8;
/// Minimum width to show both panels.
const BOTH: u16 = 120;
/// Width of the range's figures without explanations, and maximum width with them.
const FIGURES: (u16, u16) = (28, 76);
/// Minimum total width of both panels to explain the figures.
const EXPLAINED: u16 = 150;
/// Widths of the figures of a kernel.
const TOTAL: usize = 9;
const COUNT: usize = 8;
const MEAN: usize = 9;
const BAR: usize = 9;
/// Widths of a kind of work, and of a count with its noun.
const KIND: usize = 14;
const COUNTED: usize = 15;
/// Minimum height of the panel with the time on the host.
const HOST: u16 = 5;

pub fn draw(frame: &mut Frame<'_>, area: Rect, on: (&App, bool), screen: &RangesScreen, row: &RangeRow<'_>, theme: &Theme) {
    let [left, right] = if area.width >= BOTH {
        let figures = if area.width >= EXPLAINED { (area.width * 36 / 100).min(FIGURES.1) } else { FIGURES.0 };
        Layout::horizontal([Constraint::Min(10), Constraint::Length(figures)]).areas(area)
    } else {
        [area, Rect::default()]
    };
    // With room for explanations, the time on the host is on the right side.
    let host_left = right.width <= FIGURES.0;
    draw_left(frame, left, on, screen, (row, host_left), theme);
    if right.width > 0 {
        let lines = figure_lines(right, row, theme);
        let wanted = panel_rows(lines.len());
        let mut rest = right;
        let place = if wanted + HOST <= rest.height && !host_left { split_top(&mut rest, wanted) } else { std::mem::take(&mut rest) };
        let inner = Panel::new(vec![Span::styled("Figures", theme.style(Role::Title))]).draw(frame, place, true, theme);
        draw_lines(frame, inner, lines);
        if rest.height > 0 {
            draw_host_time(frame, rest, row, theme);
        }
    }
}

/// Height of a panel with this many lines.
fn panel_rows(lines: usize) -> u16 {
    u16::try_from(lines + 2).unwrap_or(u16::MAX)
}

/// The work, and below a short list the kinds of its kernels, the steps of the run, or the range's time on the host.
fn draw_left(
    frame: &mut Frame<'_>,
    area: Rect,
    (app, ascii): (&App, bool),
    screen: &RangesScreen,
    (row, with_host): (&RangeRow<'_>, bool),
    theme: &Theme,
) {
    let mut rest = area;
    let profile = app.report().and_then(|r| r.profile.as_ref());
    let work = screen.inside.as_ref().filter(|i| i.0 == row.id).map(|i| &i.1);
    let Some((work, profile)) = work.zip(profile) else {
        return draw_work(frame, rest, (app, ascii), screen, row, theme);
    };
    let kinds = kind_lines(&work.kernels, profile, usize::from(area.width.saturating_sub(4)), ascii, theme);
    let tall = if kinds.is_empty() { 0 } else { panel_rows(kinds.len()) };
    let steps = app.report().and_then(|r| r.whole_triage()).filter(|t| !kinds.is_empty() && step_chart::is_useful(t));
    let wanted = panel_rows((work.kernels.len() + work.copies.len()).max(1) + usize::from(!work.is_empty()));
    // Without anything to draw below, a short list keeps the whole panel.
    let least = if tall > 0 { tall } else { HOST };
    if wanted.saturating_add(least) > rest.height || tall == 0 && !with_host {
        return draw_work(frame, rest, (app, ascii), screen, row, theme);
    }
    let place = split_top(&mut rest, wanted);
    draw_work(frame, place, (app, ascii), screen, row, theme);
    let room = rest.height - tall;
    let (with_steps, with_host) = (steps.filter(|_| step_chart::LEAST <= room), with_host && HOST <= room);
    if tall > 0 {
        let place = if with_steps.is_some() || with_host { split_top(&mut rest, tall) } else { std::mem::take(&mut rest) };
        let note = vec![Span::styled("share of kernel time, guessed from the names", theme.style(Role::Dim))];
        let panel = Panel::new(vec![Span::styled("Kinds of work", theme.style(Role::Title))]).note(note);
        let inner = panel.draw(frame, place, true, theme);
        draw_lines(frame, inner, kinds);
    }
    if let Some(triage) = with_steps {
        step_chart::draw(frame, &mut rest, triage, " of the run", theme);
    } else if with_host {
        draw_host_time(frame, rest, row, theme);
    }
}

/// Kernel time by family, longest first.
fn kind_lines(kernels: &[KernelTime], profile: &Profile, columns: usize, ascii: bool, theme: &Theme) -> Vec<Line<'static>> {
    let mut kinds: Vec<(Family, i64, usize, u64)> = Vec::new();
    for &(kernel, ns, count) in kernels {
        let family = profile.kernels.get(kernel.0 as usize).map_or(Family::Other, |k| Family::guess(k.function(), k.demangled()));
        match kinds.iter_mut().find(|k| k.0 == family) {
            Some(kind) => *kind = (family, kind.1.saturating_add(ns), kind.2 + 1, kind.3 + count),
            None => kinds.push((family, ns, 1, count)),
        }
    }
    kinds.sort_by_key(|k| std::cmp::Reverse(k.1));
    let all = kinds.iter().map(|k| k.1).sum::<i64>().max(1) as f64;
    let most = kinds.first().map_or(1, |k| k.1).max(1) as f64;
    let wide = columns.saturating_sub(KIND + 7 + TOTAL + 1 + 2 * COUNTED).clamp(BAR, 60);
    let amd = profile.is_amd();
    let line = |(family, ns, kernels, launches): (Family, i64, usize, u64)| {
        let name = align_left(family.vendor_name(amd), KIND - 2);
        let mut spans = vec![family_swatch(Some(family), ascii, theme), Span::styled(format!(" {name}"), theme.style(Role::Text))];
        spans.extend(bar(ns as f64 / most, wide, theme.style(Role::Bar), theme));
        spans.push(Span::styled(align_right(&units::format_percent(ns as f64 / all * 100.0), 7), theme.style(Role::Title)));
        spans.push(Span::styled(align_right(&Nanos(ns).to_string(), TOTAL + 1), theme.style(Role::Text)));
        let counts = [units::format_count(kernels, "kernel"), units::format_count(launches, "launch")];
        spans.extend(counts.map(|c| Span::styled(align_right(&c, COUNTED), theme.style(Role::Dim))));
        Line::from(spans)
    };
    kinds.into_iter().map(line).collect()
}

/// Time on the host: with and without a GPU at work, and in the ranges inside.
fn draw_host_time(frame: &mut Frame<'_>, area: Rect, row: &RangeRow<'_>, theme: &Theme) {
    let node = row.node;
    let panel = Panel::new(vec![Span::styled("Time on the host", theme.style(Role::Title))]);
    if node.count == 0 {
        let inner = panel.draw(frame, area, true, theme);
        let text = "Not in the shown time: the host left these ranges before the GPU ran what was launched in them.";
        let lines = wrap_text(text, usize::from(inner.width)).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim)));
        return draw_lines(frame, inner, lines.collect());
    }
    let note = vec![Span::styled(Nanos(node.wall).to_string(), theme.style(Role::Dim))];
    let inner = panel.note(note).draw(frame, area, true, theme);
    let columns = usize::from(inner.width);
    let wall = node.wall.max(1) as f64;
    let share = |ns: i64| (ns as f64 / wall).clamp(0.0, 1.0);
    let part = |name: &str, ns: i64, role: Role| Share { name: name.to_owned(), share: share(ns), style: theme.style(role), letter: None };
    let parts = [
        part("a GPU works", node.wall - node.idle - node.beyond, Role::Part(TimeCategory::Kernels)),
        part("no GPU works", node.idle, Role::Part(TimeCategory::Other)),
        part("before the first or after the last operation", node.beyond, Role::BarEmpty),
    ];
    let parts = &parts[..if node.beyond > 0 { 3 } else { 2 }];
    let mut lines = vec![stacked_bar(parts, columns)];
    lines.extend(share_legend(parts, columns, parts.len() - 1, theme.style(Role::Text), theme));
    let mut inside: Vec<(String, i64)> = node
        .children
        .iter()
        .filter_map(|&id| row.tree.nodes.get(id as usize))
        .filter(|child| !child.elsewhere)
        .map(|child| (escape_unsafe(&node_label(child)).into_owned(), child.wall))
        .collect();
    if !inside.is_empty() {
        inside.push(("outside of inner ranges".to_owned(), node.own));
        inside.sort_by_key(|i| std::cmp::Reverse(i.1));
        lines.push(Line::default());
        let name = columns.saturating_sub(BAR + 7 + TOTAL + 2).max(12);
        for (label, ns) in inside {
            let mut spans = vec![Span::styled(align_left(&cut_middle(&label, name), name + 1), theme.style(Role::Text))];
            spans.extend(bar(share(ns), BAR, theme.style(Role::Bar), theme));
            spans.push(Span::styled(align_right(&units::format_percent(ns as f64 / wall * 100.0), 7), theme.style(Role::Title)));
            spans.push(Span::styled(align_right(&Nanos(ns).to_string(), TOTAL + 1), theme.style(Role::Text)));
            lines.push(Line::from(spans));
        }
    }
    draw_lines(frame, inner, lines);
}

fn panel_title(word: &str, row: &RangeRow<'_>, columns: usize, theme: &Theme) -> Vec<Span<'static>> {
    let name = cut_middle(&escape_unsafe(&node_label(row.node)), columns.saturating_sub(word.len() + 6));
    vec![Span::styled(format!("{word} "), theme.style(Role::Title)), Span::styled(name, theme.style(Role::Text))]
}

/// A row of the table of work: its label, time in ns, count, and color.
type WorkRow = (Vec<Span<'static>>, i64, u64, TimeCategory);

/// The kernels and copies, longest first.
fn draw_work(frame: &mut Frame<'_>, area: Rect, (app, ascii): (&App, bool), screen: &RangesScreen, row: &RangeRow<'_>, theme: &Theme) {
    let inner = Panel::new(panel_title("GPU work inside", row, area.width.into(), theme)).draw(frame, area, true, theme);
    let (dim, text) = (theme.style(Role::Dim), theme.style(Role::Text));
    let work = screen.inside.as_ref().filter(|i| i.0 == row.id).map(|i| &i.1);
    let profile = app.report().and_then(|r| r.profile.as_ref());
    let (Some(work), Some(profile)) = (work, profile) else {
        draw_lines(frame, inner, vec![Line::styled("…", dim)]);
        return;
    };
    if work.is_empty() {
        draw_lines(frame, inner, vec![Line::styled("nothing was launched in this range", dim)]);
        return;
    }
    let columns = usize::from(inner.width);
    let name = columns.saturating_sub(BAR + 7 + TOTAL + COUNT + MEAN + 5).max(12);
    let kernels = work.kernels.iter().map(|&(kernel, ns, count)| {
        let label = kernel_label(profile.kernels.get(kernel.0 as usize), name, ascii, theme).to_vec();
        (label, ns, count, TimeCategory::Kernels)
    });
    let copies = work.copies.iter().map(|c| {
        let bytes = c.bytes.filter(|b| *b > 0).map(|b| format!("  {}", Bytes(b))).unwrap_or_default();
        let label = vec![Span::styled(align_left(&cut_end(&format!(" {}{bytes}", c.label()), name), name), text)];
        (label, c.ns, c.count, TimeCategory::Copies)
    });
    let mut rows: Vec<WorkRow> = kernels.chain(copies).collect();
    rows.sort_by_key(|r| std::cmp::Reverse(r.1));
    let all: i64 = rows.iter().map(|r| r.1).fold(0, i64::saturating_add);
    let longest = rows.first().map_or(1, |r| r.1).max(1);
    let room = usize::from(inner.height).saturating_sub(1);
    let head = format!(
        "{} {} {} {} {}",
        align_left(if work.copies.is_empty() { "kernel" } else { "kernel or copy" }, name),
        align_right("share", BAR + 7),
        align_right("total", TOTAL),
        align_right("count", COUNT),
        align_right("avg", MEAN)
    );
    let mut lines = vec![Line::styled(head, theme.style(Role::Head))];
    // The last line shows how many are not listed.
    let listed = if rows.len() > room { room.saturating_sub(1) } else { rows.len() };
    let hidden = rows.len() - listed;
    for (label, ns, count, category) in rows.into_iter().take(listed) {
        let mut spans = label;
        spans.push(Span::raw(" "));
        spans.extend(bar(ns as f64 / longest as f64, BAR, theme.style(Role::Part(category)), theme));
        let share = units::format_percent(ns as f64 / all.max(1) as f64 * 100.0);
        let count_text = units::format_grouped(count);
        spans.push(Span::styled(align_right(&share, 7), theme.style(Role::Title)));
        spans.push(Span::styled(format!(" {}", align_right(&Nanos(ns).to_string(), TOTAL)), text));
        spans.push(Span::styled(format!(" {}", align_right(&count_text, COUNT)), text));
        spans.push(Span::styled(format!(" {}", align_right(&Nanos::format_ns(ns as f64 / count.max(1) as f64), MEAN)), text));
        lines.push(Line::from(spans));
    }
    if hidden > 0 {
        lines.push(Line::styled(format!("and {hidden} more"), dim));
    }
    draw_lines(frame, inner, lines);
}

/// All figures of the range with explanations, for a panel of this size.
fn figure_lines(area: Rect, row: &RangeRow<'_>, theme: &Theme) -> Vec<Line<'static>> {
    const TITLE: usize = 10;
    const VALUE: usize = 12;
    let inner = Rect { width: area.width.saturating_sub(4), height: area.height.saturating_sub(2), ..area };
    let (dim, text) = (theme.style(Role::Dim), theme.style(Role::Text));
    let room = usize::from(inner.width).saturating_sub(TITLE + VALUE + 2);
    let explained = room >= 20;
    let figures: Vec<(&str, String, &str)> = columns_of(ranges::columns(row.node.flops > 0.0), Outputs::SCREEN)
        .into_iter()
        .map(|c| (c.title, c.shown(row), c.meaning))
        .filter(|f| !f.1.is_empty())
        .collect();
    // Use whole sentences if there is room for all figures.
    let wrapped: Vec<Vec<String>> = figures.iter().map(|f| if explained { wrap_text(f.2, room) } else { vec![String::new()] }).collect();
    let fits = wrapped.iter().map(Vec::len).sum::<usize>() <= usize::from(inner.height);
    let mut lines = Vec::new();
    for ((title, value, meaning), wrapped) in figures.into_iter().zip(wrapped) {
        let meanings = if fits { wrapped } else { vec![cut_end(meaning, room)] };
        for (at, meaning) in meanings.into_iter().enumerate() {
            let (title, value) = if at == 0 { (title, value.as_str()) } else { ("", "") };
            lines.push(Line::from(vec![
                Span::styled(align_left(title, TITLE), theme.style(Role::Head)),
                Span::styled(align_right(value, VALUE), text),
                Span::styled(format!("  {meaning}"), dim),
            ]));
        }
    }
    lines
}
