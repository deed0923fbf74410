//! Panels of a large ranks screen: the selected rank's kernels beside those of the other ranks, and the steps with the
//! most waiting.

use super::panel::{draw_lines, draw_panel};
use super::text::{align_left, align_right};
use super::{Role, Theme};
use crate::analysis::labels::{cut_end, cut_middle};
use crate::analysis::ranks::StepCell;
use crate::analysis::readable::readable_name;
use crate::app::jobs::Ranks;
use crate::app::{App, RanksScreen};
use crate::model::digest::Kernel;
use crate::model::text::escape_unsafe;
use crate::model::{Nanos, units};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};
use std::borrow::Cow;

/// Minimum number of rows of the panels.
pub const LEAST: u16 = 8;
/// Width of a number, and minimum width of a kernel's name.
const NUMBER: usize = 10;
const NAME: usize = 20;
/// Difference from the other ranks, in percent, above which a kernel's average is highlighted.
const APART: f64 = 5.0;

pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &RanksScreen, ranks: &Ranks, theme: &Theme) {
    let [left, right] = Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(area);
    let Some(member) = screen.selected_member() else { return };
    let title = |text: String| vec![Span::styled(text, theme.style(Role::Title))];
    let inner = draw_panel(frame, left, title(format!("Kernels of rank {}", member.rank)), true, theme);
    draw_lines(frame, inner, kernel_lines(app, screen, ranks, inner, theme));
    let waits = total_waiting(ranks) > 0;
    let word = if waits { "Steps with the most waiting" } else { "Longest steps" };
    let inner = draw_panel(frame, right, title(word.to_owned()), true, theme);
    draw_lines(frame, inner, step_lines(screen, ranks, waits, inner, theme));
}

fn total_waiting(ranks: &Ranks) -> i64 {
    ranks.steps.iter().flat_map(|s| s.1.iter().flatten()).map(|c| c.late.max(0)).fold(0, i64::saturating_add)
}

fn average(kernel: &Kernel) -> f64 {
    kernel.total as f64 / kernel.count.max(1) as f64
}

/// The rank's kernels, longest total first, with their average on the other ranks.
fn kernel_lines(app: &App, screen: &RanksScreen, ranks: &Ranks, area: Rect, theme: &Theme) -> Vec<Line<'static>> {
    let Some(member) = screen.selected_member() else { return Vec::new() };
    let several = ranks.job.ranks.len() > 1;
    // The comparison with the other ranks matters more than total and count.
    let fits = |columns: usize| usize::from(area.width) >= NAME + NUMBER * columns;
    let (totals, counts) = if several { (fits(4), fits(5)) } else { (true, fits(3)) };
    let columns = usize::from(totals) + usize::from(counts) + if several { 3 } else { 1 };
    let name = usize::from(area.width).saturating_sub(NUMBER * columns).max(NAME);
    // A digest has only the full names.
    let profile = ranks.reports.get(member.digest).and_then(|&r| app.session.reports.get(r)?.profile.as_deref());
    let readable = |full: &str| {
        let known = profile.and_then(|p| p.kernels.iter().find(|k| k.demangled() == full));
        escape_unsafe(&known.map_or(Cow::Borrowed(full), readable_name)).into_owned()
    };
    let mut own: Vec<&Kernel> = ranks.digests[member.digest].kernels.iter().collect();
    own.sort_by_key(|k| std::cmp::Reverse(k.total));
    if own.is_empty() {
        return vec![Line::styled("no kernel of this rank is listed", theme.style(Role::Dim))];
    }
    let mut head = align_left("kernel", name);
    let shown = [("total", totals), ("count", counts), ("avg", true), ("others", several), ("differs", several)];
    head.extend(shown.iter().filter(|c| c.1).map(|c| align_right(c.0, NUMBER)));
    let mut out = vec![Line::styled(head, theme.style(Role::Head))];
    for kernel in own.into_iter().take(usize::from(area.height).saturating_sub(1)) {
        let count = units::format_grouped(kernel.count);
        let text = format!(
            "{}{}{}{}",
            align_left(&cut_middle(&readable(&kernel.name), name - 1), name),
            align_right(&Nanos(kernel.total).to_string(), if totals { NUMBER } else { 0 }),
            align_right(&count, if counts { NUMBER } else { 0 }),
            align_right(&Nanos::format_ns(average(kernel)), NUMBER)
        );
        let mut spans = vec![Span::styled(text, theme.style(Role::Text))];
        let others: Vec<f64> = ranks
            .job
            .ranks
            .iter()
            .filter(|m| m.digest != member.digest)
            .filter_map(|m| ranks.digests[m.digest].kernels.iter().find(|k| k.name == kernel.name))
            .map(average)
            .collect();
        if !others.is_empty() {
            let mean = others.iter().sum::<f64>() / others.len() as f64;
            let apart = (average(kernel) - mean) / mean.max(1.0) * 100.0;
            // The time of a collective is that of the last rank to arrive.
            let role = if apart >= APART && !kernel.collective { Role::Warn } else { Role::Dim };
            spans.push(Span::styled(align_right(&Nanos::format_ns(mean), NUMBER), theme.style(Role::Dim)));
            spans.push(Span::styled(align_right(&units::format_percent_change(apart), NUMBER), theme.style(role)));
        }
        out.push(Line::from(spans));
    }
    out
}

/// Steps by waiting time, or by length if no rank waits for another one.
fn step_lines(screen: &RanksScreen, ranks: &Ranks, waits: bool, area: Rect, theme: &Theme) -> Vec<Line<'static>> {
    let columns = usize::from(area.width);
    if ranks.steps.is_empty() {
        return vec![Line::styled("no steps were found", theme.style(Role::Dim))];
    }
    let late = |cells: &[Option<StepCell>]| cells.iter().flatten().map(|c| c.late.max(0)).fold(0, i64::saturating_add);
    let length = |cells: &[Option<StepCell>]| cells.iter().flatten().map(|c| c.length).max().unwrap_or(0);
    let mut order: Vec<usize> = (0..ranks.steps.len()).collect();
    order.sort_by_key(|&at| {
        let cells = &ranks.steps[at].1;
        std::cmp::Reverse(if waits { late(cells) } else { length(cells) })
    });
    let words: &[&str] = if waits { &["step", "length", "waiting", "for"] } else { &["step", "length"] };
    // Only whole columns.
    let own = &["kernels", "coll. alone", "idle"][..(columns / (NUMBER + 2)).saturating_sub(words.len()).min(3)];
    let head: String = words.iter().chain(own).map(|w| align_right(w, NUMBER + 2)).collect();
    let mut out = vec![Line::styled(cut_end(&head, columns), theme.style(Role::Head))];
    let text = |n: i64| align_right(&Nanos(n).to_string(), NUMBER + 2);
    for at in order.into_iter().take(usize::from(area.height).saturating_sub(1)) {
        let (number, cells) = &ranks.steps[at];
        let mut line = format!("{}{}", align_right(&number.to_string(), NUMBER + 2), text(length(cells)));
        if waits {
            let last = cells.iter().enumerate().filter_map(|(row, c)| Some((row, c.as_ref()?.late))).max_by_key(|c| c.1);
            let rank = last.and_then(|(row, _)| ranks.job.ranks.get(row)).map_or_else(String::new, |m| format!("rank {}", m.rank));
            line.push_str(&text(late(cells)));
            line.push_str(&align_right(&rank, NUMBER + 2));
        }
        if let Some(cell) = cells.get(screen.selected).and_then(Option::as_ref) {
            for ns in [cell.compute, cell.exposed, cell.idle].into_iter().take(own.len()) {
                line.push_str(&text(ns));
            }
        }
        let role = if screen.step == Some(at) { Role::Title } else { Role::Text };
        out.push(Line::styled(cut_end(&line, columns), theme.style(role)));
    }
    out
}
