//! The library's screen: what was recorded, the newest first.

use super::run::role;
use super::text::{fit_parts, left, part, right, wrap};
use super::view::{View, scroll};
use super::{Role, Theme};
use crate::analysis::labels::cut_end;
use crate::app::{ActionId, App, LibraryScreen, Mouse};
use crate::library::Run;
use crate::model::Bytes;
use crate::model::text::clean;
use crate::report::runs::{length, moment};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span, Text};

/// A column right of the program: title, width, and how soon it goes when room is short.
struct Column {
    title: &'static str,
    width: usize,
    rank: u8,
    right: bool,
    cell: fn(&Run, i64) -> String,
}

const COLUMNS: [Column; 6] = [
    Column { title: "profiler", width: 9, rank: 2, right: false, cell: |r, _| r.tool.clone() },
    Column { title: "recipe", width: 12, rank: 4, right: false, cell: |r, _| r.recipe.clone().unwrap_or_default() },
    Column { title: "took", width: 11, rank: 1, right: true, cell: |r, now| length(r.millis(now)) },
    Column {
        title: "reports",
        width: 9,
        rank: 3,
        right: true,
        cell: |r, _| if r.reports.is_empty() { "–".to_owned() } else { Bytes(r.bytes()).to_string() },
    },
    Column {
        title: "started",
        width: 16,
        rank: 0,
        right: false,
        cell: |r, _| moment(r.started_ms).get(..16).unwrap_or_default().to_owned(),
    },
    Column { title: "tags", width: 14, rank: 5, right: false, cell: |r, _| r.tags.join(" ") },
];
const NUMBER: usize = 5;
const STATE: usize = 9;
const GAP: usize = 2;
/// Columns that the program keeps.
const PROGRAM: usize = 24;

/// The two lines at the top.
#[must_use]
pub fn head(screen: &LibraryScreen, theme: &Theme, columns: usize) -> [Line<'static>; 2] {
    let dim = theme.style(Role::Dim);
    let runs = screen.runs.as_deref().unwrap_or_default();
    let live = runs.iter().filter(|r| r.state.live()).count();
    let bytes: u64 = runs.iter().map(Run::bytes).sum();
    let mut parts = vec![
        part(0, vec![Span::styled("warpscope", theme.style(Role::Brand))]),
        part(0, vec![Span::styled("run library", theme.style(Role::Title))]),
        part(1, vec![Span::styled(format!("{} run{}", runs.len(), if runs.len() == 1 { "" } else { "s" }), theme.style(Role::Text))]),
    ];
    if bytes > 0 {
        parts.push(part(2, vec![Span::styled(format!("{} of reports", Bytes(bytes)), dim)]));
    }
    if live > 0 {
        parts.push(part(1, vec![Span::styled(format!("{live} under way"), theme.style(Role::Next))]));
    }
    let mut second = Vec::new();
    if screen.typing || !screen.filter.value().is_empty() {
        second.push(part(
            0,
            vec![
                Span::styled("find ", dim),
                Span::styled(clean(screen.filter.value()).into_owned(), theme.style(Role::Title)),
                Span::styled(if screen.typing { "▏" } else { "" }, theme.style(Role::Key)),
            ],
        ));
        second.push(part(1, vec![Span::styled(format!("{} of {} runs", screen.shown.len(), runs.len()), dim)]));
    }
    if let Some(id) = screen.marked {
        second.push(part(0, vec![Span::styled(format!("● run {id} is the one before"), theme.style(Role::Mark))]));
    }
    [fit_parts(parts, &Span::styled(" · ", theme.style(Role::Faint)), columns), fit_parts(second, &Span::raw("   "), columns)]
}

/// Draws the screen.
pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &LibraryScreen, view: &mut View, theme: &Theme) {
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let columns = usize::from(inner.width);
    if screen.shown.is_empty() {
        empty(frame, inner, app, screen, theme);
        return;
    }
    let [heads, rows] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(inner);
    let fixed = NUMBER + GAP + GAP + STATE;
    let mut shown: Vec<usize> = (0..COLUMNS.len()).collect();
    let room = |shown: &[usize]| columns.saturating_sub(fixed + shown.iter().map(|&i| COLUMNS[i].width + GAP).sum::<usize>());
    while room(&shown) < PROGRAM
        && let Some(worst) = shown.iter().copied().max_by_key(|&i| COLUMNS[i].rank)
    {
        shown.retain(|&i| i != worst);
    }
    let program = room(&shown);
    let gap = " ".repeat(GAP);
    let cell =
        |c: &Column, text: &str| format!("{gap}{}", if c.right { right(text, c.width) } else { left(&cut_end(text, c.width), c.width) });
    let mut titles = format!("{}{gap}{}{gap}{}", right("run", NUMBER), left("program", program), left("state", STATE));
    for &i in &shown {
        titles.push_str(&cell(&COLUMNS[i], COLUMNS[i].title));
    }
    frame.render_widget(Line::styled(titles, theme.style(Role::Head)), heads);
    let height = usize::from(rows.height);
    view.library_top = scroll(view.library_top, screen.selected, screen.shown.len(), height);
    let all = screen.runs.as_deref().unwrap_or_default();
    for (y, (at, &i)) in (0..).zip(screen.shown.iter().enumerate().skip(view.library_top).take(height)) {
        let Some(run) = all.get(i) else { continue };
        let rect = Rect { y: rows.y + y, height: 1, ..rows };
        view.hits.push((rect, Mouse::Row(at)));
        let mark = if screen.marked == Some(run.id) { "●" } else { " " };
        let text = theme.style(Role::Text);
        let mut spans = vec![
            Span::styled(right(&run.id.to_string(), NUMBER), theme.style(Role::Dim)),
            Span::styled(format!(" {mark}"), theme.style(Role::Mark)),
            Span::styled(left(&cut_end(&clean(&run.program.join(" ")), program), program), text),
            Span::raw(gap.clone()),
            Span::styled(left(run.state.word(), STATE), theme.style(role(run.state))),
        ];
        spans.extend(shown.iter().map(|&i| {
            let role = if COLUMNS[i].right { Role::Text } else { Role::Dim };
            Span::styled(cell(&COLUMNS[i], &clean(&(COLUMNS[i].cell)(run, screen.now_ms))), theme.style(role))
        }));
        frame.render_widget(Line::from(spans), rect);
        if at == screen.selected {
            frame.buffer_mut().set_style(rect, theme.style(Role::Selected));
        }
    }
}

/// Nothing to list, and why.
fn empty(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &LibraryScreen, theme: &Theme) {
    let columns = usize::from(area.width).min(90);
    let mut lines = vec![Line::default()];
    let mut say = |text: &str, role| {
        lines.extend(wrap(text, columns).into_iter().map(|l| Line::styled(l, theme.style(role))));
    };
    match (&screen.trouble, &screen.runs) {
        (Some(why), _) => say(&clean(why), Role::Bad),
        (None, None) => say("reading the library …", Role::Dim),
        (None, Some(runs)) if runs.is_empty() => {
            say("Nothing was recorded yet.", Role::Title);
            say("", Role::Text);
            for (command, what) in [
                ("warpscope run -- python3 train.py", "records a program with nsys (or ncu, where there is no nsys) and opens the report"),
                ("warpscope recipes", "ways to record: by range, by rank, with Python stacks, servers …"),
                ("warpscope doctor", "what stands between you and a profile on this machine"),
                ("warpscope FILE…", "opens reports that are there already"),
                ("warpscope demo", "shows a capture that is built in"),
            ] {
                say(command, Role::Key);
                say(&format!("    {what}"), Role::Dim);
            }
        }
        (None, Some(_)) => say(&format!("no run matches; {} clears the words", app.settings.keymap.label(ActionId::Back)), Role::Warn),
    }
    frame.render_widget(Text::from(lines), area);
}

/// What to do next.
#[must_use]
pub fn next(app: &App, screen: &LibraryScreen) -> Option<String> {
    let key = |id| app.settings.keymap.label(id);
    let run = screen.run()?;
    if let Some(f) = run.findings.first() {
        let fix = if f.fix.is_empty() { String::new() } else { format!("; {}", f.fix) };
        return Some(format!("{}{fix}", f.what));
    }
    if run.state.live() {
        return Some(format!("{} shows what it prints", key(ActionId::Open)));
    }
    let commit = run.git_commit.as_ref().map(|c| {
        let dirty = if run.git_dirty == Some(true) { " and changes" } else { "" };
        format!("commit {}{dirty}, ", c.get(..8).unwrap_or(c))
    });
    let notes = if run.notes.is_empty() { String::new() } else { format!("“{}” ", run.notes) };
    Some(format!(
        "{notes}{}{} opens it, {} compares two runs, {} runs it again",
        commit.unwrap_or_default(),
        key(ActionId::Open),
        key(ActionId::RunCompare),
        key(ActionId::RunAgain)
    ))
}
