//! What changed between two runs: the kernels table with its differences, the largest change first.

use super::table::{self, Column, Head, Rows};
use super::text::{fit_parts, left, part, right};
use super::view::View;
use super::{Role, Theme};
use crate::analysis::diff::{Diff, Fate, Row};
use crate::analysis::labels::cut_middle;
use crate::app::{ActionId, App, DiffScreen};
use crate::model::text::clean;
use crate::model::{Nanos, units};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

fn percent(p: Option<f64>) -> String {
    p.map_or_else(String::new, |p| if p.abs() < 0.05 { "0.0%".to_owned() } else { format!("{p:+.1}%") })
}

fn signed(ns: i64) -> String {
    format!("{}{}", if ns > 0 { "+" } else { "" }, Nanos(ns))
}

/// Makes the text of a cell.
type Cell = fn(&Row) -> String;

/// Columns right of the name.
const COLUMNS: [Column<Cell>; 7] = [
    Column { title: "before", width: 9, rank: 3, cell: |r| r.before.as_ref().map_or_else(String::new, |s| Nanos(s.total).to_string()) },
    Column { title: "after", width: 9, rank: 2, cell: |r| r.after.as_ref().map_or_else(String::new, |s| Nanos(s.total).to_string()) },
    Column { title: "change", width: 10, rank: 0, cell: |r| signed(r.delta()) },
    Column { title: "in %", width: 8, rank: 0, cell: |r| percent(r.percent()) },
    Column { title: "launches", width: 17, rank: 5, cell: launches },
    Column { title: "each", width: 8, rank: 1, cell: |r| percent(r.each_percent()) },
    Column {
        title: "test",
        width: 7,
        rank: 4,

        cell: |r| {
            if r.significant() {
                "signif.".to_owned()
            } else if r.p.is_some() {
                "noise?".to_owned()
            } else {
                String::new()
            }
        },
    },
];
const GAP: usize = 2;
const FATE: usize = 8;
const NAME: usize = 24;
/// Percent below which a change that the launches do not prove is drawn quietly: as much as durations vary from run to run.
const QUIET: f64 = 1.0;

fn launches(r: &Row) -> String {
    let n = |s: &Option<crate::analysis::diff::Side>| s.as_ref().map_or(0, |s| s.count);
    let text = |n: u64| units::grouped(i64::try_from(n).unwrap_or(i64::MAX));
    let (a, b) = (n(&r.before), n(&r.after));
    if a == b { text(a) } else { format!("{} → {}", text(a), text(b)) }
}

fn file(app: &App, report: usize) -> String {
    app.session.reports.get(report).and_then(|r| r.file.file_name()).map_or_else(String::new, |n| clean(&n.to_string_lossy()).into_owned())
}

/// The two lines at the top.
#[must_use]
pub fn head(app: &App, screen: &DiffScreen, theme: &Theme, columns: usize) -> [Line<'static>; 2] {
    let dim = theme.style(Role::Dim);
    let (before, after) = (file(app, screen.before), file(app, screen.after));
    // Reports of the library have the same name: their folders tell them apart.
    let apart = |i: usize, name: String| {
        let path = app.session.reports.get(i).map(|r| r.file.display().to_string()).unwrap_or_default();
        match path.split_once("/warpscope/runs/").and_then(|(_, rest)| rest.split_once('/')) {
            _ if before != after => name,
            Some((run, _)) if run.bytes().all(|b| b.is_ascii_digit()) => format!("run {run}"),
            _ => cut_middle(&clean(&path), (columns / 2).saturating_sub(14)),
        }
    };
    let first = vec![
        part(0, vec![Span::styled("warpscope", theme.style(Role::Brand))]),
        part(
            0,
            vec![
                Span::styled(apart(screen.before, before.clone()), theme.style(Role::Text)),
                Span::styled(" → ", dim),
                Span::styled(apart(screen.after, after.clone()), theme.style(Role::Title)),
            ],
        ),
    ];
    let mut second = Vec::new();
    if let Some(diff) = &screen.diff {
        let role = change_role(diff.totals.1 - diff.totals.0);
        second.push(part(
            0,
            vec![
                Span::styled("kernel time ", dim),
                Span::styled(Nanos(diff.totals.0).to_string(), theme.style(Role::Text)),
                Span::styled(" → ", dim),
                Span::styled(Nanos(diff.totals.1).to_string(), theme.style(Role::Title)),
            ],
        ));
        second.push(part(0, vec![Span::styled(percent(diff.percent()), theme.style(role))]));
        let count = |fate: Fate| diff.rows.iter().filter(|r| r.fate == fate).count();
        for (fate, rank) in [(Fate::New, 1), (Fate::Gone, 1), (Fate::Renamed, 2)] {
            if count(fate) > 0 {
                second.push(part(rank, vec![Span::styled(format!("{} {}", count(fate), fate.word()), theme.style(Role::Warn))]));
            }
        }
        let sure = diff.rows.iter().filter(|r| r.significant()).count();
        second.push(part(3, vec![Span::styled(format!("{sure} significant"), dim)]));
    }
    [fit_parts(first, &Span::styled(" · ", theme.style(Role::Faint)), columns), fit_parts(second, &Span::raw("   "), columns)]
}

/// Less time is better.
fn change_role(delta: i64) -> Role {
    match delta {
        d if d > 0 => Role::Bad,
        d if d < 0 => Role::Good,
        _ => Role::Faint,
    }
}

pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &DiffScreen, view: &mut View, theme: &Theme) {
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let columns = usize::from(inner.width);
    let Some(diff) = &screen.diff else {
        let why = [screen.before, screen.after].into_iter().find_map(|i| match app.session.reports.get(i).map(|r| &r.stage) {
            Some(crate::app::Stage::Failed(why)) => Some(format!("{}: {why}", file(app, i))),
            _ => None,
        });
        let (text, role) = why.map_or(("comparing …".to_owned(), Role::Dim), |w| (w, Role::Bad));
        frame.render_widget(Line::styled(clean(&text).into_owned(), theme.style(role)), inner);
        return;
    };
    let [heads, rows] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(inner);
    let fate_width = if diff.rows.iter().any(|r| r.fate != Fate::Both) { FATE } else { 0 };
    let shown = table::fit(&COLUMNS, columns.saturating_sub(fate_width + NAME), GAP, |_| true);
    let name = columns.saturating_sub(fate_width + table::taken(&COLUMNS, &shown, GAP));
    let cell = |i: usize, text: &str| format!("{}{}", " ".repeat(GAP), right(text, COLUMNS[i].width));
    let first = format!("{}{}", left("", fate_width), left("kernel", name));
    let all = std::iter::once(first).chain(shown.iter().map(|&i| cell(i, COLUMNS[i].title)));
    table::heads(frame, heads, all.map(Head::plain).collect(), view, theme);
    let of = Rows { list: "diff", count: diff.rows.len(), selected: screen.selected };
    table::rows(frame, rows, of, view, theme, |at, _| {
        let Some(row) = diff.rows.get(at) else { return Vec::new() };
        let fate = if row.fate == Fate::Both { "" } else { row.fate.word() };
        // What is neither significant nor much is not shouted.
        let quiet = row.fate == Fate::Both && !row.significant() && row.percent().is_some_and(|p| p.abs() < QUIET);
        let text = theme.style(if quiet { Role::Dim } else { Role::Text });
        let mut spans = vec![
            Span::styled(left(fate, fate_width), theme.style(Role::Warn)),
            Span::styled(left(&cut_middle(&clean(row.name()), name), name), text),
        ];
        spans.extend(shown.iter().map(|&i| {
            // These two say better or worse.
            let telling = matches!(COLUMNS[i].title, "change" | "in %");
            let style = if telling && !quiet { theme.style(change_role(row.delta())) } else { text };
            Span::styled(cell(i, &(COLUMNS[i].cell)(row)), style)
        }));
        spans
    });
}

/// What to do next.
#[must_use]
pub fn next(app: &App, screen: &DiffScreen) -> Option<String> {
    let diff: &Diff = screen.diff.as_deref()?;
    let key = |id| app.session.key(id);
    if let Some(caveat) = diff.caveats.first() {
        return Some(caveat.clone());
    }
    let row = diff.rows.get(screen.selected)?;
    let open = key(ActionId::Open);
    if row.fate == Fate::Renamed
        && let Some(before) = &row.before
    {
        return Some(format!("probably a new name for {}; {open} goes to the kernel", before.name));
    }
    Some(match row.p {
        Some(p) if row.significant() => format!("the change is statistically significant (p {}); {open} goes to the kernel", tiny(p)),
        Some(p) => format!("the difference may be noise (p {}); {open} goes to the kernel", tiny(p)),
        None => format!("{open} goes to the kernel; too few launches for a significance test"),
    })
}

fn tiny(p: f64) -> String {
    if p < 0.001 { "< 0.001".to_owned() } else { format!("{p:.3}") }
}
