//! Run screen: progress, output and outcome.

use super::panel::{Panel, draw_lines, draw_panel, fits_borders};
use super::screens::{Place, ScreenView};
use super::text::{bar, fit_parts, part, wrap_text};
use super::view::View;
use super::widgets::key_value_lines;
use super::{Role, Theme, run_gpus};
use crate::analysis::labels::{cut_end, cut_middle, display_width};
use crate::analysis::live::Live;
use crate::app::{ActionId, App, RunScreen, Watched};
use crate::launch::runs::{Progress, Stage};
use crate::library::State;
use crate::model::text::{escape_unsafe, one_line};
use crate::model::units;
use crate::report::runs::{format_clock, format_length};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

/// Color of a state.
pub fn state_role(state: State) -> Role {
    match state {
        State::Done => Role::Good,
        State::Starting | State::Running => Role::Next,
        State::Stopped => Role::Warn,
        State::Failed | State::Lost => Role::Bad,
    }
}

/// Width of the labels of facts.
const WORD: usize = 13;

pub fn fact_lines(facts: &[(&'static str, String)], columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let line = |(title, text): &(&'static str, String)| {
        let role = match *title {
            "why" => Role::Warn,
            "state" | "run" => Role::Title,
            _ => Role::Text,
        };
        key_value_lines([(*title, text.as_str())], (WORD, columns), theme.style(Role::Dim), theme.style(role))
    };
    facts.iter().flat_map(line).collect()
}

impl ScreenView for RunScreen {
    fn draw(&self, frame: &mut Frame<'_>, at: Place, app: &App, _view: &mut View, theme: &Theme) {
        let Some(watched) = &app.running.watched else { return };
        match (watched.live_view(), &watched.outside) {
            (Some(live), _) => super::live::draw(frame, at.area, watched, live, theme),
            (None, Some(output)) => super::live::draw_waiting(frame, at.area, output, theme),
            (None, None) => draw(frame, at.area, watched, &app.session.key_label(ActionId::StopRun), theme),
        }
    }

    fn next_step(&self, app: &App) -> Option<String> {
        app.running.watched.as_ref().map(|w| next(app, w))
    }

    fn header(&self, app: &App, theme: &Theme, columns: usize) -> Option<[Line<'static>; 2]> {
        app.running.watched.as_ref().map(|w| header_lines(app, w, theme, columns))
    }
}

/// The two header lines.
fn header_lines(app: &App, screen: &Watched, theme: &Theme, columns: usize) -> [Line<'static>; 2] {
    let dim = theme.style(Role::Dim);
    let separator = Span::styled(" · ", theme.style(Role::Faint));
    if let Some(output) = &screen.outside {
        let name = output.display().to_string();
        let parts = vec![
            part(0, vec![Span::styled("warpscope", theme.style(Role::Brand))]),
            part(0, vec![Span::styled(if screen.ended { "ended" } else { "watching" }, theme.style(Role::Title))]),
            part(1, vec![Span::styled(cut_middle(&escape_unsafe(&name), columns / 2), theme.style(Role::Text))]),
            part(0, vec![Span::styled(screen.traced.live.as_ref().map_or_else(String::new, |l| run_time(l)), theme.style(Role::Text))]),
        ];
        return [fit_parts(parts, &separator, columns), progress_line(app, screen, theme, columns)];
    }
    let Some(run) = &screen.run else {
        return [
            fit_parts(
                vec![
                    part(0, vec![Span::styled("warpscope", theme.style(Role::Brand))]),
                    part(0, vec![Span::styled("starting a run", theme.style(Role::Title))]),
                ],
                &separator,
                columns,
            ),
            Line::default(),
        ];
    };
    let state = match screen.stop_stage() {
        Stage::Running => run.state.as_str().to_owned(),
        stage if run.state.is_live() => format!(
            "stopping ({})",
            match stage {
                Stage::Interrupted => "INT",
                Stage::Terminated => "TERM",
                _ => "KILL",
            }
        ),
        _ => run.state.as_str().to_owned(),
    };
    let mut parts = vec![
        part(0, vec![Span::styled("warpscope", theme.style(Role::Brand))]),
        part(0, vec![Span::styled(format!("run {}", run.id), theme.style(Role::Title))]),
        part(0, vec![Span::styled(state, theme.style(state_role(run.state)))]),
        part(
            0,
            vec![Span::styled(
                if screen.ended {
                    format_length(run.duration_ms(screen.now_ms))
                } else {
                    format_clock(run.duration_ms(screen.now_ms.max(run.started_ms)))
                },
                theme.style(Role::Text),
            )],
        ),
    ];
    let tool = format!("{} {}", run.tool, run.tool_version.as_deref().unwrap_or_default());
    parts.push(part(3, vec![Span::styled(tool.trim().to_owned(), dim)]));
    parts.extend(run.recipe.as_ref().map(|r| part(4, vec![Span::styled(format!("recipe {r}"), dim)])));
    if run.detached && run.state.is_live() {
        parts.push(part(1, vec![Span::styled("detached", theme.style(Role::Warn))]));
    }
    if let Some((at, total)) = app.running.queue.current_position().filter(|_| screen.mine && !screen.ended) {
        parts.push(part(1, vec![Span::styled(format!("{at} of {total}"), theme.style(Role::Next))]));
    }
    if let Some(parent) = run.parent {
        parts.push(part(5, vec![Span::styled(format!("re-run of run {parent}"), dim)]));
    }
    [fit_parts(parts, &separator, columns), progress_line(app, screen, theme, columns)]
}

/// Progress bar of the run.
fn progress_line(app: &App, screen: &Watched, theme: &Theme, columns: usize) -> Line<'static> {
    let dim = theme.style(Role::Dim);
    let track = |share: f64| {
        let mut spans = bar(share, 24.min(columns / 4), theme.style(Role::Good), theme);
        if let Some(rest) = spans.last_mut() {
            rest.content = rest.content.replace(' ', "░").into();
        }
        spans.push(Span::styled(format!(" {}  ", units::format_whole_percent(share * 100.0)), theme.style(Role::Title)));
        spans
    };
    if screen.outside.is_some() && screen.ended {
        return Line::styled("every process has ended", dim);
    }
    if screen.ended {
        let reports = screen.run.as_ref().map_or(0, |r| r.reports.len());
        let text = match reports {
            0 => "no report".to_owned(),
            1 => "one report".to_owned(),
            n => format!("{n} reports"),
        };
        return Line::styled(text, dim);
    }
    let mut spans = match &screen.progress {
        None if screen.traced.live.is_some() || screen.outside.is_some() => recording_spans(screen, theme),
        None => vec![Span::styled("running under the profiler  ", dim)],
        Some(Progress::Connected) => vec![Span::styled("the profiler is connected to the program  ", dim)],
        Some(Progress::Report(percent)) => {
            let mut spans = vec![Span::styled("writing the report ", dim)];
            spans.extend(track(f64::from(*percent) / 100.0));
            spans
        }
        Some(Progress::Kernel { name, result, of, percent, passes }) => {
            let done = f64::from(*percent) / 100.0;
            let (text, share) = match of {
                // `i` is the 1-based number of this result, `n` the expected number of ncu results.
                Some((i, n)) if *n > 0 => (format!("{i} of {n} "), (i.saturating_sub(1) as f64 + done) / *n as f64),
                _ => (format!("result {result} "), done),
            };
            let mut spans = vec![
                Span::styled("profiling ", dim),
                Span::styled(cut_middle(&escape_unsafe(name), columns / 3), theme.style(Role::Text)),
                Span::raw(" "),
                Span::styled(text, dim),
            ];
            spans.extend(track(share));
            spans.extend(passes.map(|p| Span::styled(format!("{p} passes  "), dim)));
            spans
        }
    };
    let (stop, key) = (app.session.key_label(ActionId::StopRun), app.session.key_label(ActionId::Detach));
    let keys = if screen.outside.is_some() {
        String::new()
    } else if screen.mine {
        format!("{stop} stops, {key} detaches")
    } else {
        format!("{stop} stops")
    };
    spans.push(Span::styled(keys, theme.style(Role::Faint)));
    fit_parts(spans.into_iter().map(|s| part(0, vec![s])).collect(), &Span::raw(""), columns)
}

/// Formats how long a program has been running.
fn run_time(live: &Live) -> String {
    if live.has_ended() { format_length(live.running_time() / 1_000_000) } else { format_clock(live.running_time() / 1_000_000) }
}

/// Recording state of a traced program.
fn recording_spans(screen: &Watched, theme: &Theme) -> Vec<Span<'static>> {
    let stopped = screen.traced.live.as_ref().is_some_and(|l| l.recorders.iter().any(|r| !r.ended && r.stopped.is_some()));
    let (text, role) = match screen.traced.live.as_ref().and_then(|l| l.is_recording()) {
        Some(true) => ("recording  ", Role::Good),
        Some(false) if stopped => ("the recording has ended  ", Role::Bad),
        Some(false) => ("the recording is closed  ", Role::Warn),
        None if screen.traced.live.is_some() => ("every process has ended  ", Role::Dim),
        None => ("waiting for a process that uses CUDA  ", Role::Dim),
    };
    let mut out = vec![Span::styled(text, theme.style(role))];
    if screen.traced.paused {
        out.push(Span::styled("the view is paused  ", theme.style(Role::Warn)));
    }
    out
}

/// Width of the GPU panel, and minimum screen width to show it next to the command.
const GPUS: u16 = 58;
const BESIDE: u16 = 110;

fn draw(frame: &mut Frame<'_>, area: Rect, screen: &Watched, stop: &str, theme: &Theme) {
    let framed = fits_borders(area);
    let gpus = framed && area.width >= BESIDE && !screen.gpus.is_empty();
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    // A border takes one column on each side, plus one space.
    let columns = usize::from(if framed { area.width.saturating_sub(4) } else { inner.width });
    let beside = if gpus { columns.saturating_sub(usize::from(GPUS)) } else { columns };
    let mut top = command_lines(screen, beside, usize::from(area.height / 5).max(1), theme);
    let mut steps = note_lines(screen, theme, beside);
    steps.extend(super::run_steps::lines(screen, stop, theme, beside));
    // Add a blank line if there is room.
    if !steps.is_empty() && area.height > 30 {
        steps.insert(0, Line::default());
    }
    top.extend(steps);
    if !gpus {
        top.extend(run_gpus::summary_line(screen, beside, theme));
    }
    let ended = outcome_lines(screen, theme, columns);
    let tall = |lines: usize| u16::try_from(lines).unwrap_or(u16::MAX);
    if !framed {
        let [head, rule, body, foot] = Layout::vertical([
            Constraint::Length(tall(top.len())),
            Constraint::Length(1),
            Constraint::Min(3),
            Constraint::Length(tall(ended.len()).min(area.height / 2)),
        ])
        .areas(inner);
        draw_lines(frame, head, top);
        let (title, note) = output_title(screen, usize::from(body.height));
        let title = format!("─ {title} ");
        let note = if note.is_empty() { String::new() } else { format!(" {note} ─") };
        let line = "─".repeat(columns.saturating_sub(display_width(&title) + display_width(&note)));
        let border = theme.style(Role::Border);
        frame.render_widget(
            Line::from(vec![
                Span::styled(title, theme.style(Role::Dim)),
                Span::styled(line, border),
                Span::styled(note, theme.style(Role::Faint)),
            ]),
            rule,
        );
        draw_output(frame, body, screen, theme);
        draw_lines(frame, foot, ended);
        return;
    }
    let least = if gpus { screen.gpus.len().min(4) * 2 } else { 0 };
    let foot = if ended.is_empty() { 0 } else { tall(ended.len() + 2).min(area.height / 2) };
    let [head, body, foot] =
        Layout::vertical([Constraint::Length(tall(top.len().max(least) + 2)), Constraint::Min(5), Constraint::Length(foot)]).areas(area);
    let [head, side] = Layout::horizontal([Constraint::Min(40), Constraint::Length(if gpus { GPUS } else { 0 })]).areas(head);
    let inner = draw_panel(frame, head, vec![Span::styled("Command", theme.style(Role::Title))], true, theme);
    draw_lines(frame, inner, top);
    if gpus {
        let title = vec![Span::styled("GPU busy", theme.style(Role::Title)), Span::styled(", % of each second", theme.style(Role::Dim))];
        let inner = draw_panel(frame, side, title, true, theme);
        draw_lines(frame, inner, run_gpus::lines(screen, inner.width.into(), inner.height.into(), theme));
    }
    let (title, note) = output_title(screen, usize::from(body.height.saturating_sub(2)));
    let title = vec![Span::styled(title, theme.style(Role::Title))];
    let inner = Panel::new(title).note(vec![Span::styled(note, theme.style(Role::Dim))]).focused().draw(frame, body, true, theme);
    draw_output(frame, inner, screen, theme);
    if !ended.is_empty() {
        let inner = draw_panel(frame, foot, vec![Span::styled("How it ended", theme.style(Role::Title))], true, theme);
        draw_lines(frame, inner, ended);
    }
}

/// The command, truncated to `most` lines.
fn command_lines(screen: &Watched, columns: usize, most: usize, theme: &Theme) -> Vec<Line<'static>> {
    let mut lines = wrap_text(&one_line(&screen.command), columns);
    if lines.len() > most {
        let rest = lines[most - 1..].join(" ");
        lines.truncate(most - 1);
        lines.push(cut_end(&rest, columns));
    }
    lines.into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))).collect()
}

/// Visible lines in `height` rows: first, last (exclusive), and total number.
fn visible_range(screen: &Watched, height: usize) -> (usize, usize, usize) {
    let total = screen.lines.len() + usize::from(!screen.open.is_empty());
    let end = total.saturating_sub(screen.back.min(total.saturating_sub(height)));
    (end.saturating_sub(height), end, total)
}

/// Title of the output, and the note to the right of it.
fn output_title(screen: &Watched, height: usize) -> (String, String) {
    let (start, end, total) = visible_range(screen, height);
    let title = if screen.back > 0 { format!("Output, lines {}–{} of {total}", start + 1, end) } else { "Output".to_owned() };
    let dropped = if screen.dropped > 0 { format!("{} earlier lines are in the log", screen.dropped) } else { String::new() };
    (title, dropped)
}

fn draw_output(frame: &mut Frame<'_>, area: Rect, screen: &Watched, theme: &Theme) {
    let (start, end, _) = visible_range(screen, area.height.into());
    let open = (!screen.open.is_empty()).then(|| Some(screen.open.clone()));
    let all: Vec<Line<'static>> =
        screen.lines.iter().cloned().chain(open).skip(start).take(end - start).map(|l| output_line(l, area.width.into(), theme)).collect();
    if all.is_empty() {
        frame.render_widget(Line::styled("no output yet", theme.style(Role::Faint)), area);
    } else {
        draw_lines(frame, area, all);
    }
}

/// Maximum number of lines for notes.
const NOTES: usize = 3;

/// Notes about a run in progress.
fn note_lines(screen: &Watched, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
    let text = screen.run.as_ref().filter(|_| screen.is_live()).map_or("", |r| r.notes.as_str());
    let lines = text.lines().filter(|l| !l.trim().is_empty()).take(NOTES);
    lines.map(|l| Line::styled(cut_end(&escape_unsafe(l), columns), theme.style(Role::Warn))).collect()
}

/// Line of output; `None` marks dropped lines.
pub fn output_line(line: Option<String>, columns: usize, theme: &Theme) -> Line<'static> {
    let Some(line) = line else {
        return Line::styled("… lines dropped: the output is too fast to show in full", theme.style(Role::Warn));
    };
    let role = if line.starts_with("==ERROR==") {
        Role::Bad
    } else if line.starts_with("==WARNING==") {
        Role::Warn
    } else if line.starts_with("==PROF==") || line.starts_with("warpscope: ") {
        Role::Dim
    } else {
        Role::Text
    };
    Line::styled(cut_end(&escape_unsafe(&line), columns), theme.style(role))
}

/// Outcome of the run, with advice.
fn outcome_lines(screen: &Watched, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
    let Some(run) = screen.run.as_ref().filter(|_| screen.ended) else { return Vec::new() };
    let mut out = Vec::new();
    if run.findings.is_empty() {
        let text = match run.state {
            State::Done => "done",
            State::Lost => "lost: its supervisor was killed, the disk was full, or the machine went down; its output until then is above",
            _ => "the run ended",
        };
        out.push(Line::styled(text, theme.style(state_role(run.state))));
    }
    for f in &run.findings {
        out.extend(wrap_text(&one_line(&f.what), columns).into_iter().map(|l| Line::styled(l, theme.style(state_role(run.state)))));
        if !f.fix.is_empty() {
            let lines = wrap_text(&one_line(&f.fix), columns.saturating_sub(4)).into_iter().enumerate();
            out.extend(lines.map(|(i, l)| Line::styled(format!("  {}{l}", if i == 0 { "→ " } else { "  " }), theme.style(Role::Next))));
        }
    }
    out
}

/// Suggested next step.
fn next(app: &App, screen: &Watched) -> String {
    let key = |id| app.session.key_link(id);
    let back = key(ActionId::Back);
    if let Some(step) = super::run_steps::next(app, screen) {
        return step;
    }
    if screen.outside.is_some() {
        return if screen.ended {
            format!("{} opens what was recorded: the program has ended", key(ActionId::Open))
        } else if screen.traced.live.is_none() {
            format!("{} looks at other runs; this one begins when a process uses CUDA", key(ActionId::Library))
        } else {
            format!("{} saves the last 30 s as a report and opens it; the program keeps running", key(ActionId::Snapshot))
        };
    }
    if screen.live_view().is_some() {
        return format!("{} saves the last 30 s as a report and opens it; when the run ends, its report opens", key(ActionId::Snapshot));
    }
    if !screen.ended {
        let after = if screen.origin.is_some() { "its result joins its launch" } else { "its report opens" };
        return format!("{back} goes back to the reports while the run continues; when it ends, {after}");
    }
    let library = key(ActionId::Library);
    match screen.run.as_ref().and_then(|r| r.findings.first()) {
        Some(f) if !f.fix.is_empty() => f.fix.clone(),
        _ => format!("{back} leaves this screen; {library} lists all runs"),
    }
}
