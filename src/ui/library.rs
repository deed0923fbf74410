//! Library screen: recorded runs, newest first.

use super::panel::{Panel, draw_lines, draw_notice, fits_borders, split_top};
use super::run::state_role;
use super::screens::{Place, ScreenView};
use super::table::{self, Head, Rows};
use super::text::{align_left, align_right, fit_parts, part, wrap_text};
use super::view::View;
use super::{Role, Theme};
use crate::analysis::labels::cut_end;
use crate::analysis::table::{Column, Outputs, Unit, columns_of};
use crate::app::overlay::FilterInput;
use crate::app::{ActionId, App, LibraryScreen};
use crate::library::Run;
use crate::model::Bytes;
use crate::model::text::{escape_unsafe, one_line};
use crate::model::units::format_count;
use crate::report::runs::{self, RunRow, run_facts};
use crate::rerun::shell;
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

const NUMBER: usize = 5;
const STATE: usize = 9;
const GAP: usize = 2;
/// Minimum width of the program column.
const PROGRAM: usize = 24;

impl ScreenView for LibraryScreen {
    fn draw(&self, frame: &mut Frame<'_>, at: Place, app: &App, view: &mut View, theme: &Theme) {
        draw(frame, at.area, app, self, view, theme);
    }

    fn next_step(&self, app: &App) -> Option<String> {
        next(app, self)
    }

    fn header(&self, _app: &App, theme: &Theme, columns: usize) -> Option<[Line<'static>; 2]> {
        Some(header_lines(self, theme, columns))
    }

    fn filter(&self) -> Option<&FilterInput> {
        Some(&self.finder)
    }
}

/// The two header lines.
fn header_lines(screen: &LibraryScreen, theme: &Theme, columns: usize) -> [Line<'static>; 2] {
    let dim = theme.style(Role::Dim);
    let runs = screen.runs.as_deref().unwrap_or_default();
    let live = runs.iter().filter(|r| r.state.is_live()).count();
    let bytes: u64 = runs.iter().map(Run::total_bytes).sum();
    let mut parts = vec![
        part(0, vec![Span::styled("warpscope", theme.style(Role::Brand))]),
        part(0, vec![Span::styled("run library", theme.style(Role::Title))]),
        part(1, vec![Span::styled(format_count(runs.len(), "run"), theme.style(Role::Text))]),
    ];
    if bytes > 0 {
        parts.push(part(2, vec![Span::styled(format!("{} of reports", Bytes(bytes)), dim)]));
    }
    if live > 0 {
        parts.push(part(1, vec![Span::styled(format!("{live} running"), theme.style(Role::Next))]));
    }
    let mut second = Vec::new();
    if screen.finder.typing || !screen.finder.is_empty() {
        second.push(part(
            0,
            vec![
                Span::styled("find ", dim),
                Span::styled(escape_unsafe(screen.finder.text()).into_owned(), theme.style(Role::Title)),
                Span::styled(if screen.finder.typing { "▏" } else { "" }, theme.style(Role::Key)),
            ],
        ));
        second.push(part(1, vec![Span::styled(format!("{} of {} runs", screen.shown.len(), runs.len()), dim)]));
    }
    if let Some(id) = screen.marked {
        second.push(part(0, vec![Span::styled(format!("● run {id} is the baseline"), theme.style(Role::Mark))]));
    }
    [fit_parts(parts, &Span::styled(" · ", theme.style(Role::Faint)), columns), fit_parts(second, &Span::raw("   "), columns)]
}

/// Maximum number of list rows above the facts of the selected run, and minimum width to show the facts next to the
/// list.
const LIST: u16 = 10;
const BESIDE: u16 = 170;
/// Width of the facts next to the list.
const SIDE: u16 = 76;

fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &LibraryScreen, view: &mut View, theme: &Theme) {
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    if screen.shown.is_empty() {
        draw_empty(frame, inner, app, screen, theme);
        return;
    }
    if !fits_borders(area) {
        draw_list(frame, inner, screen, view, theme);
        return;
    }
    let (main, side) = if area.width >= BESIDE {
        let [main, side] = Layout::horizontal([Constraint::Min(90), Constraint::Length(SIDE)]).areas(area);
        (main, side)
    } else {
        let rows = u16::try_from(screen.shown.len().saturating_add(3)).unwrap_or(u16::MAX);
        let tall = rows.clamp(LIST, (area.height / 2).max(LIST));
        let [main, side] = Layout::vertical([Constraint::Length(tall), Constraint::Min(4)]).areas(area);
        (main, side)
    };
    let title = vec![Span::styled("Runs", theme.style(Role::Title)), Span::styled("  the newest first", theme.style(Role::Dim))];
    let inner = Panel::new(title).focused().draw(frame, main, true, theme);
    draw_list(frame, inner, screen, view, theme);
    let Some(run) = screen.selected_run() else { return };
    let known = run_facts(run, &shell::command_line(&run.argv), screen.now_ms);
    // The title already contains the run's number and state.
    let known = known.into_iter().filter(|f| !matches!(f.0, "run" | "state"));
    // List outcomes of earlier predictions first and current predictions last.
    let (came, promised): (Vec<_>, Vec<_>) = screen.outcomes_of(run).iter().cloned().partition(|k| k.0 == "outcome");
    let mut known: Vec<_> = came.into_iter().take(OUTCOMES).chain(known).chain(promised).collect();
    let titles: Vec<&str> = known.iter().map(|k| k.0).collect();
    for (fact, before) in known.iter_mut().skip(1).zip(&titles) {
        if fact.0 == *before && matches!(fact.0, "outcome" | "promise") {
            fact.0 = "";
        }
    }
    let mut all = super::run::fact_lines(&known, side.width.saturating_sub(4).into(), theme);
    all.truncate(usize::from(side.height.saturating_sub(2)));
    let mut side = side;
    let place = match &screen.printed {
        Some((id, _)) if *id == run.id && usize::from(side.height) >= all.len() + 5 => {
            split_top(&mut side, u16::try_from(all.len() + 2).unwrap_or(u16::MAX))
        }
        _ => std::mem::take(&mut side),
    };
    draw_facts(frame, place, app, (run, all), theme);
    if let Some((_, printed)) = screen.printed.as_ref().filter(|_| side.height > 0) {
        draw_output(frame, side, app, printed.as_deref(), theme);
    }
}

/// Maximum number of outcomes above the other facts of a run.
const OUTCOMES: usize = 3;

/// Draws the last output lines of the selected run; `printed` is `None` while they are being read.
fn draw_output(frame: &mut Frame<'_>, area: Rect, app: &App, printed: Option<&[String]>, theme: &Theme) {
    let key = app.session.key_label(ActionId::RunLog);
    let title = vec![Span::styled("Output", theme.style(Role::Title)), Span::styled("  its last lines", theme.style(Role::Dim))];
    let note = vec![Span::styled(key, theme.style(Role::Key)), Span::styled(" all", theme.style(Role::Dim))];
    let inner = Panel::new(title).note(note).draw(frame, area, true, theme);
    let Some(printed) = printed else {
        draw_lines(frame, inner, vec![Line::styled("reading …", theme.style(Role::Faint))]);
        return;
    };
    if printed.is_empty() {
        draw_lines(frame, inner, vec![Line::styled("it printed nothing", theme.style(Role::Faint))]);
        return;
    }
    let from = printed.len().saturating_sub(inner.height.into());
    draw_lines(frame, inner, printed[from..].iter().map(|l| super::run::output_line(Some(l.clone()), inner.width.into(), theme)).collect());
}

/// Draws the facts of the selected run.
fn draw_facts(frame: &mut Frame<'_>, area: Rect, app: &App, (run, known): (&Run, Vec<Line<'static>>), theme: &Theme) {
    let title = vec![
        Span::styled(format!("Run {}", run.id), theme.style(Role::Title)),
        Span::styled(format!("  {}", run.state.as_str()), theme.style(state_role(run.state))),
    ];
    let key = app.session.key_label(ActionId::RunFacts);
    let note = vec![Span::styled(key, theme.style(Role::Key)), Span::styled(" all", theme.style(Role::Dim))];
    let inner = Panel::new(title).note(note).draw(frame, area, true, theme);
    draw_lines(frame, inner, known);
}

fn draw_list(frame: &mut Frame<'_>, inner: Rect, screen: &LibraryScreen, view: &mut View, theme: &Theme) {
    let columns = usize::from(inner.width);
    let [heads, rows] = Layout::vertical([Constraint::Length(1), Constraint::Min(1)]).areas(inner);
    let fixed = NUMBER + GAP + GAP + STATE;
    let shown = table::fit_columns(
        columns_of(runs::readable_columns(screen.runs.as_deref().unwrap_or_default()), Outputs::SCREEN),
        columns.saturating_sub(fixed + PROGRAM),
        GAP,
    );
    let program = columns.saturating_sub(fixed + table::total_width(&shown, GAP));
    let gap = " ".repeat(GAP);
    let cell = |column: &Column<RunRow<'_>>, text: &str| {
        let width = column.width;
        let number = column.unit != Unit::Text;
        format!("{gap}{}", if number { align_right(text, width) } else { align_left(&cut_end(text, width), width) })
    };
    let first = format!("{}{gap}{}{gap}{}", align_right("run", NUMBER), align_left("program", program), align_left("state", STATE));
    let all = std::iter::once(first).chain(shown.iter().map(|c| cell(c, c.title)));
    table::draw_heads(frame, heads, all.map(Head::label_only).collect(), view, theme);
    let all = screen.runs.as_deref().unwrap_or_default();
    let of = Rows { list: "library", count: screen.shown.len(), selected: screen.selected };
    table::draw_rows(frame, rows, of, view, theme, |at, _| {
        let Some(run) = screen.shown.get(at).and_then(|&i| all.get(i)) else { return Vec::new() };
        let mark = if screen.marked == Some(run.id) { "●" } else { " " };
        let mut spans = vec![
            Span::styled(align_right(&run.id.to_string(), NUMBER), theme.style(Role::Dim)),
            Span::styled(format!(" {mark}"), theme.style(Role::Mark)),
            Span::styled(align_left(&cut_end(&one_line(&run.program.join(" ")), program), program), theme.style(Role::Text)),
            Span::raw(gap.clone()),
            Span::styled(align_left(run.state.as_str(), STATE), theme.style(state_role(run.state))),
        ];
        let row = RunRow { run, now_ms: screen.now_ms };
        spans.extend(shown.iter().map(|column| {
            let role = if column.unit == Unit::Text { Role::Dim } else { Role::Text };
            Span::styled(cell(column, &escape_unsafe(&column.shown(&row))), theme.style(role))
        }));
        spans
    });
}

/// Minimum height for explanations of several lines on the start screen.
const TALL: u16 = 30;
/// Width of a command that is explained on the same line.
const COMMAND: usize = 33;

/// Draws a message that explains why the list is empty.
fn draw_empty(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &LibraryScreen, theme: &Theme) {
    let columns = usize::from(area.width).min(100);
    // On a low terminal, each fact and command has one line, so that all of them are there.
    let short = area.height < TALL;
    let mut lines: Vec<Line<'static>> = Vec::new();
    let mut say = |text: &str, role| {
        lines.extend(wrap_text(text, columns).into_iter().map(|l| Line::styled(l, theme.style(role))));
    };
    match (&screen.trouble, &screen.runs) {
        (Some(why), _) => say(&escape_unsafe(why), Role::Bad),
        (None, None) => say("reading the library …", Role::Dim),
        (None, Some(runs)) if runs.is_empty() => {
            let machine = &app.session.machine;
            if !machine.is_empty() {
                say("This machine", Role::Title);
                for fact in machine {
                    let (mark, role) = if fact.there { ("✓", Role::Text) } else { ("·", Role::Dim) };
                    let mut text = wrap_text(&fact.text, columns.saturating_sub(15));
                    if short && text.len() > 1 {
                        text = vec![cut_end(&fact.text, columns.saturating_sub(15))];
                    }
                    for (at, line) in text.into_iter().enumerate() {
                        let head = if at == 0 { format!("  {mark} {} ", align_left(fact.name, 10)) } else { " ".repeat(15) };
                        say(&format!("{head}{line}"), role);
                    }
                }
                if !short {
                    say("  warpscope doctor checks the rest: permissions, drivers, versions", Role::Dim);
                }
                say("", Role::Text);
            }
            if app.session.reports.is_empty() {
                let key = |id| app.session.key_label(id);
                say("Keys", Role::Title);
                if let Some((count, newest, age)) = &screen.files {
                    let newest =
                        if *count == 1 { escape_unsafe(newest).into_owned() } else { format!("the newest {}", escape_unsafe(newest)) };
                    let reports = format_count(*count, "report");
                    say(&format!("  {}  lists the {reports} of this folder: {newest}, {age}", key(ActionId::Open)), Role::Text);
                } else {
                    say(&format!("  {}  opens the demo: a small transformer on an H200", key(ActionId::Open)), Role::Text);
                }
                say(&format!("  {}  help; in the demo, t there begins a tour of five steps", key(ActionId::Help)), Role::Text);
                say(&format!("  {}  quits", key(ActionId::Quit)), Role::Text);
                say("", Role::Text);
            }
            say("Nothing has been recorded yet. In the shell:", Role::Title);
            for (command, what) in [
                ("warpscope run -- python3 train.py", "records a program and opens the report"),
                ("warpscope recipes", "ways to record: by range, rank or server"),
                ("warpscope doctor", "what prevents profiling, and the remedy"),
                ("warpscope FILE…", "opens existing reports"),
                ("warpscope demo", "shows the built-in demo capture"),
            ] {
                if short {
                    say(&cut_end(&format!("{}  {what}", align_left(command, COMMAND)), columns), Role::Text);
                    continue;
                }
                say(command, Role::Key);
                for line in wrap_text(what, columns.saturating_sub(4)) {
                    say(&format!("    {line}"), Role::Dim);
                }
            }
        }
        (None, Some(_)) => say(&format!("no run matches; {} clears the search", app.session.key_label(ActionId::Back)), Role::Warn),
    }
    draw_notice(frame, area, lines);
}

/// Suggested next step.
fn next(app: &App, screen: &LibraryScreen) -> Option<String> {
    let key = |id| app.session.key_link(id);
    if screen.runs.as_ref().is_some_and(Vec::is_empty) {
        let open = key(ActionId::Open);
        if let Some((count, ..)) = screen.files.as_ref().filter(|_| app.session.reports.is_empty()) {
            return Some(format!("{open} lists the {} of this folder", format_count(*count, "report")));
        }
        return app
            .session
            .reports
            .is_empty()
            .then(|| format!("{open} opens the demo; in the shell, warpscope run -- PROGRAM records yours"));
    }
    let run = screen.selected_run()?;
    if let Some(f) = run.findings.first() {
        let fix = if f.fix.is_empty() { String::new() } else { format!("; {}", f.fix) };
        return Some(format!("{}{fix}", f.what));
    }
    if run.state.is_live() {
        return Some(format!("{} shows its output", key(ActionId::Open)));
    }
    let commit = run.git_commit.as_ref().map(|c| {
        let dirty = if run.git_dirty == Some(true) { " plus uncommitted changes" } else { "" };
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
