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

/// Name of a column, and its time in a step, ns.
type StepColumn = (&'static str, fn(&StepCell) -> i64);

/// Minimum number of rows of the panels.
pub const LEAST: u16 = 8;
/// Width of a number, and minimum width of a kernel's name.
const NUMBER: usize = 10;
const NAME: usize = 26;
/// Width of the launches on this rank and on the others.
const LAUNCHES: usize = 18;
/// Difference from the other ranks, in percent, above which a kernel's time is highlighted.
const APART: f64 = 5.0;

pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &RanksScreen, ranks: &Ranks, theme: &Theme) {
    let [left, right] = Layout::horizontal([Constraint::Percentage(50), Constraint::Percentage(50)]).areas(area);
    let Some(member) = screen.selected_member() else { return };
    let title = |text: String| vec![Span::styled(text, theme.style(Role::Title))];
    let mut kernels = title(format!("Kernels of rank {}", member.rank));
    kernels.push(Span::styled("  whole report", theme.style(Role::Dim)));
    let inner = draw_panel(frame, left, kernels, true, theme);
    draw_lines(frame, inner, kernel_lines(app, screen, ranks, inner, theme));
    let waits = total_waiting(ranks) > 0;
    let word = if waits { "Steps with the most waiting" } else { "Longest steps" };
    let inner = draw_panel(frame, right, title(word.to_owned()), true, theme);
    draw_lines(frame, inner, step_lines(screen, ranks, waits, inner, theme));
}

fn total_waiting(ranks: &Ranks) -> i64 {
    ranks.steps.iter().flat_map(|s| s.1.iter().flatten()).map(|c| c.late.max(0)).fold(0, i64::saturating_add)
}

/// A kernel of the selected rank beside the same kernel on the other ranks.
struct Beside<'a> {
    kernel: &'a Kernel,
    /// Total time and count on the other ranks, on average; `None` if no other rank lists the kernel.
    others: Option<(f64, f64)>,
}

impl Beside<'_> {
    /// Extra time that the kernel takes on this rank compared with the mean of the other ranks, ns; negative if it
    /// takes less.
    fn more(&self) -> Option<f64> {
        self.others.map(|(total, _)| self.kernel.total as f64 - total)
    }
}

/// The kernels of the selected rank, those whose time differs most from the other ranks first. Collectives come last,
/// because their time depends on the last rank to arrive.
fn kernels_beside<'a>(ranks: &'a Ranks, digest: usize) -> Vec<Beside<'a>> {
    let others = || ranks.job.ranks.iter().filter(|m| m.digest != digest);
    let mut out: Vec<Beside<'a>> = ranks.digests[digest]
        .kernels
        .iter()
        .map(|kernel| {
            let same: Vec<&Kernel> =
                others().filter_map(|m| ranks.digests[m.digest].kernels.iter().find(|k| k.name == kernel.name)).collect();
            let number = same.len() as f64;
            let mean = |of: fn(&Kernel) -> f64| same.iter().map(|k| of(k)).sum::<f64>() / number;
            let others = (!same.is_empty()).then(|| (mean(|k| k.total as f64), mean(|k| k.count as f64)));
            Beside { kernel, others }
        })
        .collect();
    let apart = |b: &Beside<'_>| b.more().map_or(b.kernel.total as f64, f64::abs);
    out.sort_by(|a, b| a.kernel.collective.cmp(&b.kernel.collective).then_with(|| apart(b).total_cmp(&apart(a))));
    out
}

/// The rank's kernels with their time and launches, beside those of the other ranks.
fn kernel_lines(app: &App, screen: &RanksScreen, ranks: &Ranks, area: Rect, theme: &Theme) -> Vec<Line<'static>> {
    let Some(member) = screen.selected_member() else { return Vec::new() };
    let several = ranks.job.ranks.len() > 1;
    let columns = usize::from(area.width);
    // Columns in table order: title, width, and true if the panel is wide enough to show the column.
    let shown = [
        ("total", NUMBER, !several || columns >= NAME + 2 * NUMBER + LAUNCHES),
        ("others", NUMBER, several && columns >= NAME + 3 * NUMBER + LAUNCHES),
        ("differs", NUMBER, several),
        (if several { "launches / others" } else { "launches" }, LAUNCHES, columns >= NAME + NUMBER + LAUNCHES),
    ];
    let name = columns.saturating_sub(shown.iter().filter(|c| c.2).map(|c| c.1).sum()).max(NAME);
    // Digests contain only full kernel names; look up the readable name in the rank's profile, if there is one.
    let profile = ranks.reports.get(member.digest).and_then(|&r| app.session.reports.get(r)?.profile.as_deref());
    let readable = |full: &str| {
        let known = profile.and_then(|p| p.kernels.iter().find(|k| k.demangled() == full));
        escape_unsafe(&known.map_or(Cow::Borrowed(full), readable_name)).into_owned()
    };
    let own = kernels_beside(ranks, member.digest);
    if own.is_empty() {
        return vec![Line::styled("no kernel of this rank is listed", theme.style(Role::Dim))];
    }
    let mut head = align_left("kernel", name);
    head.extend(shown.iter().filter(|c| c.2).map(|c| align_right(c.0, c.1)));
    let mut out = vec![Line::styled(head, theme.style(Role::Head))];
    let grouped = |n: f64| units::format_grouped(n.round() as i64);
    for beside in own.into_iter().take(usize::from(area.height).saturating_sub(1)) {
        let kernel = beside.kernel;
        let differs =
            beside.more().map_or_else(String::new, |ns| format!("{}{}", if ns < 0.0 { "-" } else { "+" }, Nanos::format_ns(ns.abs())));
        let share = beside.more().zip(beside.others).map_or(0.0, |(more, (total, _))| more / total.max(1.0) * 100.0);
        // Do not highlight a collective: its time depends on the last rank to arrive.
        let more = if share >= APART && !kernel.collective { Role::Warn } else { Role::Dim };
        let launches = grouped(kernel.count as f64);
        let launches = match beside.others {
            Some((_, count)) => format!("{launches} / {}", grouped(count)),
            None => launches,
        };
        let others = beside.others.map_or_else(String::new, |(total, _)| Nanos::format_ns(total));
        let values = [(Nanos(kernel.total).to_string(), Role::Text), (others, Role::Dim), (differs, more), (launches, Role::Text)];
        let mut spans = vec![Span::styled(align_left(&cut_middle(&readable(&kernel.name), name - 1), name), theme.style(Role::Text))];
        let values = shown.iter().zip(values).filter(|(c, _)| c.2);
        spans.extend(values.map(|(c, (text, role))| Span::styled(align_right(&text, c.1), theme.style(role))));
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
    // Show only as many of these columns as fit completely.
    let matched = !ranks.job.matches.list.is_empty();
    let own: Vec<StepColumn> = vec![("kernels", |c| c.compute), ("coll. alone", |c| c.exposed), ("idle", |c| c.idle)];
    let room = (columns / (NUMBER + 2)).saturating_sub(words.len());
    let own: Vec<_> = own.into_iter().filter(|c| matched || c.0 != "coll. alone").take(room).collect();
    let head: String = words.iter().chain(own.iter().map(|c| &c.0)).map(|w| align_right(w, NUMBER + 2)).collect();
    let mut out = vec![Line::styled(cut_end(&head, columns), theme.style(Role::Head))];
    let text = |n: i64| align_right(&Nanos(n).to_string(), NUMBER + 2);
    for at in order.into_iter().take(usize::from(area.height).saturating_sub(1)) {
        let (number, cells) = &ranks.steps[at];
        let mut line = format!("{}{}", align_right(&number.to_string(), NUMBER + 2), text(length(cells)));
        if waits {
            let last = cells.iter().enumerate().filter_map(|(row, c)| Some((row, c.as_ref()?.late))).max_by_key(|c| c.1);
            let last = last.filter(|(_, late)| *late > 0).and_then(|(row, _)| ranks.job.ranks.get(row));
            let rank = last.map_or_else(|| "–".to_owned(), |m| format!("rank {}", m.rank));
            line.push_str(&text(late(cells)));
            line.push_str(&align_right(&rank, NUMBER + 2));
        }
        if let Some(cell) = cells.get(screen.selected).and_then(Option::as_ref) {
            for (_, ns) in &own {
                line.push_str(&text(ns(cell)));
            }
        }
        let role = if screen.step == Some(at) { Role::Title } else { Role::Text };
        out.push(Line::styled(cut_end(&line, columns), theme.style(role)));
    }
    out
}
