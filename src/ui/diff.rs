//! Comparison of two runs: time breakdown of both, and the kernel table with the differences, largest change first.
//! Colors mark better or worse only if the durations of individual launches differ by more than chance.

use super::diff_sides;
use super::panel::{Panel, draw_lines, draw_message, fits_borders, split_top};
use super::screens::{Place, ScreenView};
use super::table::{self, Head, Rows};
use super::text::{align_left, align_right, fit_parts, part};
use super::view::View;
use super::widgets::change_bar;
use super::{Role, Theme};
use crate::analysis::diff::{Diff, DiffRow, Fate};
use crate::analysis::labels::{cut_middle, display_width};
use crate::analysis::table::{Column, Outputs, changes, columns_of};
use crate::analysis::triage::StepTimes;
use crate::analysis::workload_match::Work;
use crate::app::session::Report;
use crate::app::{ActionId, App, DiffScreen};
use crate::model::text::escape_unsafe;
use crate::model::{Nanos, units};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

fn format_percent(p: Option<f64>) -> String {
    p.map_or_else(String::new, units::format_percent_change)
}

/// Width of the change bar: maximum, and divisor of the table's width.
const BAR: (usize, usize) = (25, 7);
/// Width of the selected kernel's panel, and minimum screen width to show it next to the table.
const SIDE: u16 = 58;
const WIDE: u16 = 160;
/// Minimum number of rows for the selected kernel's panel below a short table.
const SELECTED: u16 = 9;
/// Minimum number of rows for what limits the runs, below the table and the selected kernel.
const LIMITS: u16 = 8;
/// Minimum number of rows for the table below the time breakdown.
const TABLE: u16 = 16;
const GAP: usize = 2;
const FATE: usize = 8;
/// Width reserved for names, in a wide table and in a narrow one, where the two times matter more.
const NAME: usize = 24;
const NARROW: usize = 19;
/// Threshold in percent below which an insignificant change is dimmed: the usual variation between runs.
const QUIET: f64 = 1.0;
/// Maximum difference in launch counts, in percent, between two runs of the same work.
const AS_MANY: f64 = 1.0;

fn report_file_name(app: &App, report: usize) -> String {
    app.session
        .reports
        .get(report)
        .and_then(|r| r.file.file_name())
        .map_or_else(String::new, |n| escape_unsafe(&n.to_string_lossy()).into_owned())
}

impl ScreenView for DiffScreen {
    fn draw(&self, frame: &mut Frame<'_>, at: Place, app: &App, view: &mut View, theme: &Theme) {
        draw(frame, at.area, app, self, view, theme);
    }

    fn next_step(&self, app: &App) -> Option<String> {
        next(app, self)
    }

    fn header(&self, app: &App, theme: &Theme, columns: usize) -> Option<[Line<'static>; 2]> {
        Some(header_lines(app, self, theme, columns))
    }
}

/// The two header lines.
fn header_lines(app: &App, screen: &DiffScreen, theme: &Theme, columns: usize) -> [Line<'static>; 2] {
    let dim = theme.style(Role::Dim);
    let (before, after) = (report_file_name(app, screen.before), report_file_name(app, screen.after));
    // Library reports share a file name: add their folders.
    let apart = |i: usize, name: String| {
        let path = app.session.reports.get(i).map(|r| r.file.display().to_string()).unwrap_or_default();
        match path.split_once("/warpscope/runs/").and_then(|(_, rest)| rest.split_once('/')) {
            _ if before != after => name,
            Some((run, _)) if run.bytes().all(|b| b.is_ascii_digit()) => format!("run {run}"),
            _ => cut_middle(&escape_unsafe(&path), (columns / 2).saturating_sub(14)),
        }
    };
    let first = vec![
        part(0, vec![Span::styled("warpscope", theme.style(Role::Brand))]),
        part(
            0,
            vec![
                Span::styled(apart(screen.before, before.clone()), theme.style(Role::Text)),
                Span::styled(" to ", dim),
                Span::styled(apart(screen.after, after.clone()), theme.style(Role::Title)),
            ],
        ),
    ];
    let mut second = Vec::new();
    if let Some(diff) = &screen.diff {
        // The main result of a comparison is the step time.
        let common = diff.has_common_kernel();
        if !common {
            second.push(part(0, vec![Span::styled("no kernel is in both runs", theme.style(Role::Warn))]));
        }
        if let Some(StepTimes { name: what, before: was, after: is }) = diff_sides::step_times(app, screen) {
            second.push(part(
                0,
                vec![
                    Span::styled(format!("{what} "), dim),
                    Span::styled(Nanos(was).to_string(), theme.style(Role::Text)),
                    Span::styled(" to ", dim),
                    Span::styled(format!("{}  ", Nanos(is)), theme.style(Role::Title)),
                    if common { step_change(was, is, theme) } else { Span::raw("") },
                ],
            ));
        }
        let times = diff.kernel_times();
        // Work that both runs do equally often would make the steps of the shorter one look slower.
        let apart = if diff.once_a_run > 0 { " (once-a-run work apart)" } else { "" };
        second.push(part(
            0,
            vec![
                Span::styled(format!("{}{apart} ", times.name), dim),
                Span::styled(Nanos::format_ns(times.before), theme.style(Role::Text)),
                Span::styled(" to ", dim),
                Span::styled(Nanos::format_ns(times.after), theme.style(Role::Title)),
            ],
        ));
        if !diff.one_isolated && !diff.differ_in_length {
            second.push(part(0, vec![Span::styled(format_percent(times.change_percent()), theme.style(Role::Title))]));
        }
        if let Some((before, after)) = diff.steps {
            second.push(part(1, vec![Span::styled(format!("{before} against {after} steps"), theme.style(Role::Warn))]));
        }
        let count = |fate: Fate| diff.rows.iter().filter(|r| r.fate == fate).count();
        for (fate, rank) in [(Fate::New, 1), (Fate::Gone, 1), (Fate::Renamed, 2)] {
            if count(fate) > 0 {
                second.push(part(rank, vec![Span::styled(format!("{} {}", count(fate), fate.display_name()), theme.style(Role::Warn))]));
            }
        }
        let sure = diff.rows.iter().filter(|r| r.is_significant()).count();
        // If no kernel had enough launches for a test, "0 changed" would not be a finding.
        if diff.rows.iter().any(|r| r.p.is_some()) {
            second.push(part(
                3,
                vec![Span::styled(
                    format!("{sure} of {} changed by more than chance", units::format_count(diff.rows.len(), "kernel")),
                    dim,
                )],
            ));
        }
    }
    [fit_parts(first, &Span::styled(" · ", theme.style(Role::Faint)), columns), fit_parts(second, &Span::raw("   "), columns)]
}

/// Ratio of step times from which the time between kernels comes before any kernel.
const LONGER_STEP: f64 = 1.1;
/// Ratio of step times from which a change is shown as a ratio rather than as a percentage, and relative change from
/// which it is colored.
const RATIO: f64 = 1.2;
const NOTED: f64 = 0.05;

/// The main result: `8.6× faster`, or a percentage if it is small.
fn step_change(was: i64, is: i64, theme: &Theme) -> Span<'static> {
    let (was, is) = (was.max(1) as f64, is.max(1) as f64);
    let ratio = (was / is).max(is / was);
    let word = if is < was { "faster" } else { "slower" };
    let role = match (is - was) / was {
        change if change <= -NOTED => Role::Good,
        change if change >= NOTED => Role::Bad,
        _ => Role::Title,
    };
    let text = if ratio >= RATIO { format!("{ratio:.1}× {word}") } else { format_percent(Some((is - was) / was * 100.0)) };
    Span::styled(text, theme.style(role))
}

/// Columns that fit and have a value in at least one row. The times before and after are shown together or not at all.
fn shown_columns(diff: &Diff, room: usize) -> Vec<Column<DiffRow>> {
    let mut all = columns_of(changes::readable_columns(diff.steps.is_some()), Outputs::SCREEN);
    all.retain(|c| diff.rows.is_empty() || diff.rows.iter().any(|row| !c.shown(row).is_empty()));
    let mut shown = table::fit_columns(all, room, GAP);
    let either = |c: &Column<DiffRow>| matches!(c.id, "before_ns" | "step_before_ns" | "after_ns" | "step_after_ns");
    if shown.iter().filter(|c| either(c)).count() == 1 {
        shown.retain(|c| !either(c));
    }
    shown
}

/// Color of a change: better or worse only if the launches prove the change. A change in the total also requires equal
/// launch counts, because less work is not an improvement.
fn change_role(row: &DiffRow, whole: bool) -> Role {
    let (a, b) = row.shown_launches();
    let as_many = (a - b).abs() * 100.0 <= a.max(b) * AS_MANY;
    match row.each_percent() {
        Some(p) if row.is_significant() && row.work != Work::Uneven && (as_many || !whole) => {
            if p > 0.0 {
                Role::Bad
            } else {
                Role::Good
            }
        }
        _ => Role::Text,
    }
}

/// Labels of the two runs: `before` and `after` only if their timestamps confirm the order.
pub fn run_labels(app: &App, screen: &DiffScreen) -> (&'static str, &'static str) {
    let began = |i: usize| app.session.reports.get(i).and_then(Report::clock_start);
    match (began(screen.before), began(screen.after)) {
        (Some(a), Some(b)) if a < b => ("before", "after"),
        _ => ("first", "second"),
    }
}

fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &DiffScreen, view: &mut View, theme: &Theme) {
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let Some(diff) = &screen.diff else {
        let why = [screen.before, screen.after].into_iter().find_map(|i| match app.session.reports.get(i).map(|r| &r.stage) {
            Some(crate::app::Stage::Failed(why)) => Some(format!("{}: {why}", report_file_name(app, i))),
            _ => None,
        });
        let text = why.map_or_else(|| "comparing …".to_owned(), |why| format!("There is nothing to compare. {why}"));
        draw_message(frame, area, &text, theme);
        return;
    };
    let words = run_labels(app, screen);
    let framed = fits_borders(area);
    let mut rest = if framed { area } else { inner };
    if framed {
        let tall = diff_sides::times_height(app, screen, area.width);
        let least = TABLE.min(u16::try_from(diff.rows.len() + 3).unwrap_or(u16::MAX));
        if tall > 0 && rest.height >= tall + least {
            diff_sides::draw_times(frame, split_top(&mut rest, tall), app, screen, words, theme);
        }
        let rows = u16::try_from(diff.rows.len() + 3).unwrap_or(u16::MAX);
        if rest.width < WIDE && rest.height >= rows.saturating_add(SELECTED) {
            // A short table leaves room for the panel of the selected kernel, and for those of the whole runs.
            let main = split_top(&mut rest, rows.max(6));
            let selected = diff_sides::selected_height(app, screen, words, rest.width, theme);
            if selected.saturating_add(diff_sides::KINDS) <= rest.height {
                diff_sides::draw_selected(frame, split_top(&mut rest, selected), app, screen, words, theme);
                diff_sides::draw_limits(frame, rest, app, screen, words, theme);
            } else {
                diff_sides::draw_selected(frame, rest, app, screen, words, theme);
            }
            rest = main;
        } else if rest.width >= WIDE {
            // If the table and the selected kernel are short, what limits the runs gets the whole width below them.
            let upper = rows
                .saturating_add(diff_sides::kinds_height(app, screen))
                .max(diff_sides::selected_height(app, screen, words, SIDE, theme));
            if upper.saturating_add(LIMITS) <= rest.height {
                let above = split_top(&mut rest, upper);
                diff_sides::draw_limits(frame, rest, app, screen, words, theme);
                rest = above;
            }
            let [main, side] = Layout::horizontal([Constraint::Min(80), Constraint::Length(SIDE)]).areas(rest);
            diff_sides::draw_selected(frame, side, app, screen, words, theme);
            rest = main;
            if rows.saturating_add(diff_sides::KINDS) <= rest.height {
                let table = split_top(&mut rest, rows);
                diff_sides::draw_kinds(frame, &mut rest, app, screen, words, view.ascii, theme);
                rest = table;
            }
        }
        let title = vec![
            Span::styled("Kernels", theme.style(Role::Title)),
            Span::styled(
                format!(
                    "  {} {}",
                    units::format_count(diff.rows.len(), "row"),
                    if diff.steps.is_some() { "by time in a step" } else { "of the whole runs" }
                ),
                theme.style(Role::Dim),
            ),
            Span::styled(
                match diff.once_a_run {
                    0 => String::new(),
                    n => format!("  {n} launched once a run"),
                },
                theme.style(Role::Warn),
            ),
        ];
        let note = vec![Span::styled(format!("{}: p < 0.001 and 1% or more", theme.accent()), theme.style(Role::Dim))];
        rest = Panel::new(title).note(note).focused().draw(frame, rest, true, theme);
    } else {
        // A short table leaves room for the time breakdown; otherwise, there is a line for the limits.
        let times = diff_sides::times_lines(app, screen, words, usize::from(rest.width), theme);
        let tall = u16::try_from(times.len() + 1).unwrap_or(u16::MAX);
        let table = u16::try_from(diff.rows.len() + 1).unwrap_or(u16::MAX);
        if !times.is_empty() && tall.saturating_add(table) <= rest.height {
            draw_lines(frame, split_top(&mut rest, tall), times);
        } else if let Some(line) = limits_line(app, screen, words, theme, usize::from(rest.width)) {
            frame.render_widget(line, split_top(&mut rest, 1));
        }
        if table.saturating_add(SELECTED) <= rest.height {
            let main = split_top(&mut rest, table);
            split_top(&mut rest, 1);
            let lines = diff_sides::selected_text(app, screen, words, usize::from(rest.width), theme);
            draw_lines(frame, rest, lines.into_iter().take(rest.height.into()).collect());
            rest = main;
        }
    }
    draw_kernels(frame, rest, diff, (screen.selected, words), view, theme);
}

/// First finding of both runs, for a terminal without enough room for the time breakdown.
fn limits_line(app: &App, screen: &DiffScreen, words: (&str, &str), theme: &Theme, columns: usize) -> Option<Line<'static>> {
    let limit = |at: usize| {
        let triage = app.session.reports.get(at)?.whole_triage()?;
        Some(triage.findings.first().map_or_else(|| "nothing stands out".to_owned(), |f| format!("{} {}", f.id.id(), f.share_text())))
    };
    let (dim, text) = (theme.style(Role::Dim), theme.style(Role::Title));
    let side = |word: &str, limit: String| vec![Span::styled(format!("{word} "), dim), Span::styled(limit, text)];
    let parts = vec![
        part(1, vec![Span::styled("limits", dim)]),
        part(0, side(words.0, limit(screen.before)?)),
        part(0, side(words.1, limit(screen.after)?)),
    ];
    Some(fit_parts(parts, &Span::raw("   "), columns))
}

fn draw_kernels(
    frame: &mut Frame<'_>,
    area: Rect,
    diff: &Diff,
    (selected, words): (usize, (&'static str, &'static str)),
    view: &mut View,
    theme: &Theme,
) {
    let columns = usize::from(area.width);
    let [heads, rows] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(area);
    let fate_width = if diff.rows.iter().any(|r| r.fate != Fate::Both) { FATE } else { 0 };
    let name = if columns >= 100 { NAME } else { NARROW };
    let shown = shown_columns(diff, columns.saturating_sub(fate_width + name));
    let rest = columns.saturating_sub(fate_width + table::total_width(&shown, GAP));
    // Show a bar only if the names leave room for it.
    let longest = diff.rows.iter().map(|r| display_width(r.name())).max().unwrap_or(0).min(NAME * 2);
    let bars = (columns / BAR.1).min(BAR.0) | 1;
    let bars = if rest >= longest.min(NAME) + bars + 2 * GAP { bars } else { 0 };
    let name = rest - if bars > 0 { bars + GAP } else { 0 };
    let most = diff.rows.iter().map(|r| r.shown_change().abs()).fold(1.0, f64::max);
    let cell = |c: &Column<DiffRow>, text: &str| format!("{}{}", " ".repeat(GAP), align_right(text, c.width));
    let title = |c: &Column<DiffRow>| match c.id {
        "before_ns" | "step_before_ns" => words.0,
        "after_ns" | "step_after_ns" => words.1,
        _ => c.title,
    };
    let bar_after = |c: &Column<DiffRow>| bars > 0 && matches!(c.id, "delta_ns" | "step_delta_ns");
    let mut all = vec![format!("{}{}", align_left("", fate_width), align_left("kernel", name))];
    for column in &shown {
        all.push(cell(column, title(column)));
        if bar_after(column) {
            all.push(format!("{}{}{}", " ".repeat(GAP), align_left("less", bars / 2 + 1), align_right("more", bars / 2)));
        }
    }
    table::draw_heads(frame, heads, all.into_iter().map(Head::label_only).collect(), view, theme);
    let of = Rows { list: "diff", count: diff.rows.len(), selected };
    table::draw_rows(frame, rows, of, view, theme, |at, _| {
        let Some(row) = diff.rows.get(at) else { return Vec::new() };
        let fate = if row.fate == Fate::Both { "" } else { row.fate.display_name() };
        // Small insignificant changes are dimmed.
        let quiet = row.fate == Fate::Both && !row.is_significant() && row.total_change_percent().is_some_and(|p| p.abs() < QUIET);
        let text = if quiet { Role::Dim } else { Role::Text };
        let mut spans = vec![
            Span::styled(align_left(fate, fate_width), theme.style(Role::Warn)),
            Span::styled(align_left(&cut_middle(&escape_unsafe(row.name()), name), name), theme.style(text)),
        ];
        for column in &shown {
            let role = match column.id {
                "delta_ns" | "delta_percent" | "step_delta_ns" | "step_delta_percent" => change_role(row, true),
                "median_percent" => change_role(row, false),
                "p" if !row.is_significant() => Role::Dim,
                _ => text,
            };
            let role = if role == Role::Text { text } else { role };
            spans.push(Span::styled(cell(column, &column.shown(row)), theme.style(role)));
            if bar_after(column) {
                spans.push(Span::raw(" ".repeat(GAP)));
                let role = match change_role(row, true) {
                    Role::Text => Role::Bar,
                    other => other,
                };
                // A change that may be due to chance gets an empty bar.
                let counts = row.is_significant() || row.fate != Fate::Both || row.p.is_none();
                spans.extend(change_bar(if counts { row.shown_change() / most } else { 0.0 }, bars, theme.style(role), theme));
            }
        }
        spans
    });
}

/// If a step takes longer for another reason than its kernels: what limits the second run.
fn new_limit(app: &App, screen: &DiffScreen) -> Option<String> {
    let (was, is) = diff_sides::both_triages(app, screen)?;
    let StepTimes { before, after, .. } = diff_sides::step_times(app, screen)?;
    let factor = after as f64 / before.max(1) as f64;
    let (old, new) = (was.verdict()?, is.verdict()?);
    let kernels = screen.diff.as_ref()?.step_totals.map_or(0.0, |(was, is)| is - was);
    // Kernels that take longer are in the table below.
    if factor < LONGER_STEP || old.id == new.id || new.id.is_of_kernels() || kernels > (after - before) as f64 / 2.0 {
        return None;
    }
    let reports = app.session.reports.len();
    let key = [(ActionId::NextReport, 1), (ActionId::PreviousReport, reports - 1)];
    let (key, _) = key.into_iter().find(|(_, by)| (app.session.active + by) % reports == screen.after)?;
    let which = run_labels(app, screen).1;
    let key = app.session.key_link(key);
    Some(format!("{key} goes to the {which} run, which is {}: its steps take {factor:.1} times as long", new.id.id()))
}

/// Suggested next step.
fn next(app: &App, screen: &DiffScreen) -> Option<String> {
    let diff: &Diff = screen.diff.as_deref()?;
    let key = |id| app.session.key_link(id);
    let row = diff.rows.get(screen.selected)?;
    let both = screen.selected_results(&app.session).is_some();
    let leads = format!("{} {}", key(ActionId::Open), if both { "shows its results side by side" } else { "lists its launches" });
    if let Some(caveat) = diff.caveats.first() {
        return Some(format!("{leads}; {caveat}"));
    }
    let words = run_labels(app, screen);
    if let Some(limit) = new_limit(app, screen).filter(|_| screen.selected == 0) {
        return Some(limit);
    }
    match row.fate {
        Fate::New => return Some(format!("{leads}; only in the run called {}", words.1)),
        Fate::Gone => return Some(format!("{leads} there; only in the run called {}", words.0)),
        Fate::Both | Fate::Renamed => {}
    }
    if row.fate == Fate::Renamed
        && let Some(before) = &row.before
    {
        return Some(format!("{leads}; probably a new name for {}", before.name));
    }
    let of = match row.work {
        Work::Same | Work::Other | Work::Uneven => String::new(),
        Work::Part(share) => format!(" of the {:.0}% with a grid and block that both runs have", share * 100.0),
        Work::Reshaped => " with another grid or block".to_owned(),
    };
    Some(match row.p {
        Some(_) if row.is_significant() => {
            let p = row.each_percent().unwrap_or(0.0);
            let word = if p > 0.0 { "longer" } else { "less" };
            let why = match row.work {
                Work::Uneven => "but its launches changed in number unlike the run's: each may do other work",
                _ => "which is more than chance",
            };
            format!("{leads}; the median launch{of} takes {:.1}% {word}, {why}", p.abs())
        }
        Some(p) => format!("{leads}; its launches{of} differ no more than by chance (p {})", format_p_value(p)),
        None if row.work == Work::Other => {
            format!("{leads}; the runs launch it with different grids and blocks, so that single launches cannot be compared")
        }
        None => format!("{leads}; too few launches to tell from chance"),
    })
}

fn format_p_value(p: f64) -> String {
    if p < 0.001 { "<0.001".to_owned() } else { format!("{p:.3}") }
}
