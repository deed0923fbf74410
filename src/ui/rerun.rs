//! Re-run screen: the selected launches, the command with the arguments of the selected field highlighted, an
//! explanation of the field, and all fields.

use super::neighbours;
use super::panel::{self, Panel};
use super::screens::{Place, ScreenView};
use super::table::{self, Rows};
use super::text::{align_left, fit_parts, part, wrap_text};
use super::view::View;
use super::{Role, Theme};
use crate::analysis::labels::{cut_end, cut_middle, display_width};
use crate::app::screens::rerun::{RerunRow, WIDE};
use crate::app::{ActionId, App, RerunScreen};
use crate::model::text::escape_unsafe;
use crate::model::{Profile, Severity};
use crate::report::rerun::{cost_text, describe_launch};
use crate::rerun::{CommandPart, PartId, Rerun, shell};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span, Text};

impl ScreenView for RerunScreen {
    fn draw(&self, frame: &mut Frame<'_>, at: Place, app: &App, view: &mut View, theme: &Theme) {
        draw(frame, at.area, app, self, view, theme);
    }

    fn next_step(&self, app: &App) -> Option<String> {
        Some(next(app, self))
    }
}

/// Minimum number of lines of a script or command above its warnings.
const LEAST_SCRIPT: usize = 6;

/// Re-run screen: the most severe warning, a better command, or the keys for this command.
fn next(app: &App, screen: &RerunScreen) -> String {
    let key = |id| app.session.key_link(id);
    let Some(rerun) = screen.current_rerun() else {
        return format!("{} edits a field, {} undoes the last change", key(ActionId::Open), key(ActionId::Undo));
    };
    if let Some((text, good)) = &screen.verdict {
        let back = key(ActionId::Back);
        return if *good {
            format!("{back} goes back: the result matches this launch's kernel, grid and block")
        } else {
            format!("{} checks another result: {text}", key(ActionId::Verify))
        };
    }
    // A wide screen already shows the warnings in full and in color; an error has to be dealt with first.
    let wide = app.session.size.0 >= WIDE;
    let matters = |w: &&crate::rerun::warning::Warning| w.severity >= Severity::Error || !wide && w.severity >= Severity::Warning;
    if let Some(w) = rerun.warnings.iter().filter(matters).max_by_key(|w| w.severity) {
        return format!("{} edits a field: {}", key(ActionId::Open), w.fix.clone().unwrap_or_else(|| w.to_sentence()));
    }
    if !rerun.is_runnable() {
        return format!(
            "{} on the field program types the program and its arguments; {} copies the command, {} saves it as a script",
            key(ActionId::Open),
            key(ActionId::Copy),
            key(ActionId::Save)
        );
    }
    format!(
        "{} runs it here and shows the result; or {} copies the command, {} saves it as a script, and {} later checks its result",
        key(ActionId::RunHere),
        key(ActionId::Copy),
        key(ActionId::Save),
        key(ActionId::Verify)
    )
}

fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &RerunScreen, view: &mut View, theme: &Theme) {
    let Some(profile) = app.report().and_then(|r| r.profile.as_deref()) else { return };
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let columns = usize::from(inner.width);
    let head = heading_lines(screen, theme, columns);
    let [top, body] = Layout::vertical([Constraint::Length(u16::try_from(head.len()).unwrap_or(3)), Constraint::Min(6)]).areas(inner);
    frame.render_widget(Text::from(head), top);
    if area.width >= WIDE {
        let side = (inner.width / 2).clamp(46, 90);
        let bordered = panel::fits_borders(Rect { height: body.height + 4, ..area });
        let [main, fields_area] = Layout::horizontal([Constraint::Min(40), Constraint::Length(side)]).areas(body);
        let [fields_area, below] = if bordered {
            let tall = u16::try_from(screen.rows().len() + 2).unwrap_or(u16::MAX);
            Layout::vertical([Constraint::Length(tall), Constraint::Min(0)]).areas(fields_area)
        } else {
            [fields_area, Rect { height: 0, ..fields_area }]
        };
        let title = |text: &'static str| Panel::new(vec![Span::styled(text, theme.style(Role::Title))]);
        let room = usize::from(main.width.saturating_sub(if bordered { 4 } else { 0 }));
        let mut lines: Vec<Line<'static>> = Vec::new();
        lines.extend(command_lines(screen, theme, room));
        lines.push(Line::default());
        lines.extend(explanation_lines(screen, theme, room));
        let warnings = warning_lines(screen.current_rerun(), theme, room);
        // A long script must not hide what is wrong with it.
        let inside = usize::from(main.height.saturating_sub(if bordered { 2 } else { 0 }));
        let kept = inside.saturating_sub(warnings.len()).max(LEAST_SCRIPT);
        if !warnings.is_empty() && lines.len() > kept {
            let rest = format!("… {} copies all of it", app.session.key_label(ActionId::Copy));
            lines.truncate(kept.saturating_sub(1));
            lines.push(Line::styled(rest, theme.style(Role::Dim)));
        }
        lines.extend(warnings);
        lines.extend(result_lines(screen.current_rerun(), theme, room));
        let tall = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX);
        let launch = screen.picked.as_ref().and_then(|p| p.launches.first()).map(|l| l.0 as usize);
        let around = launch.zip(app.report()).filter(|_| bordered && tall.saturating_add(neighbours::LEAST) <= main.height);
        let mut rest = main;
        let main = panel::split_top(&mut rest, if around.is_some() { tall } else { main.height });
        let main = title("Command").draw(frame, main, bordered, theme);
        let fields_area = title("Fields").focused().draw(frame, fields_area, bordered, theme);
        let mut below = below;
        if below.height > LEAST_PICTURE {
            draw_distribution(frame, &mut below, screen, profile, theme);
        }
        draw_alternatives(frame, below, screen, theme);
        frame.render_widget(Text::from(lines), main);
        if let Some((launch, report)) = around {
            neighbours::draw(frame, rest, report, launch, view.ascii, theme);
        }
        draw_fields(frame, fields_area, app, (screen, profile), view, theme);
    } else {
        let lines = command_lines(screen, theme, columns);
        let why = explanation_lines(screen, theme, columns);
        let rows = screen.rows().len().max(1);
        let height = usize::from(body.height);
        // Reserve at least five lines for the rows and three for the explanation of the selected row; the text of a
        // warning or an alternative command may take up to eight.
        let whole = !matches!(screen.selected_row(), Some(RerunRow::Field(_)));
        let why_rows = if whole { why.len().clamp(3, 8) } else { 3 }.min(height.saturating_sub(8).max(1));
        let command_rows = lines.len().min(height.saturating_sub(why_rows + 1 + rows.min(5)).max(3));
        let [a, rule, b, c] = Layout::vertical([
            Constraint::Length(u16::try_from(command_rows).unwrap_or(3)),
            Constraint::Length(1),
            Constraint::Length(u16::try_from(rows.min(height.saturating_sub(command_rows + 1 + why_rows))).unwrap_or(5)),
            Constraint::Length(u16::try_from(why_rows).unwrap_or(2)),
        ])
        .areas(body);
        frame.render_widget(Text::from(truncate_lines(skip_to_lit(lines, command_rows, theme), command_rows, theme)), a);
        let shown = usize::from(b.height);
        let more = if rows > shown { format!(" {} of {rows} ", screen.selected + 1) } else { String::new() };
        let line = "─".repeat(columns.saturating_sub(display_width(&more) + 2));
        let (border, dim) = (theme.style(Role::Border), theme.style(Role::Dim));
        let end = if more.is_empty() { "──" } else { "─" };
        let line = vec![Span::styled(line, border), Span::styled(more, dim), Span::styled(end, border)];
        frame.render_widget(Line::from(line), rule);
        draw_fields(frame, b, app, (screen, profile), view, theme);
        frame.render_widget(Text::from(truncate_lines(why, why_rows, theme)), c);
    }
}

/// Minimum number of rows for a useful chart.
const LEAST_PICTURE: u16 = 7;

/// Draws the position of the selected launch in the distribution of its kernel's durations.
fn draw_distribution(frame: &mut Frame<'_>, area: &mut Rect, screen: &RerunScreen, profile: &Profile, theme: &Theme) {
    let Some(launch) = screen.picked.as_ref().and_then(|p| p.launches.first()).map(|l| l.0 as usize) else { return };
    if launch >= profile.launches.len() || !profile.launches.has_start_times() {
        return;
    }
    let row = screen.groups.first().and_then(|&r| screen.grouping.rows.get(r));
    let Some(group) = row.filter(|g| g.stats.count > 1) else { return };
    let title = vec![Span::styled("Duration vs. other launches", theme.style(Role::Title))];
    let inner = Panel::new(title).draw(frame, panel::split_top(area, 8), true, theme);
    let duration = profile.launches.duration(launch);
    let mut all = super::preview::duration_histogram(group, usize::from(inner.width), theme);
    if let Some(picture) = super::preview::duration_marker(group, duration, usize::from(inner.width), theme) {
        all.push(picture);
    }
    frame.render_widget(Text::from(all), inner);
}

/// Draws the alternative commands with their reasons in full; their rows among the fields have room for only a few
/// words.
fn draw_alternatives(frame: &mut Frame<'_>, area: Rect, screen: &RerunScreen, theme: &Theme) {
    let columns = usize::from(area.width.saturating_sub(4));
    let mut lines: Vec<Line<'static>> = Vec::new();
    for other in screen.alternatives() {
        if !lines.is_empty() {
            lines.push(Line::default());
        }
        lines.extend(wrap_text(&escape_unsafe(&other.why), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Text))));
        let command = escape_unsafe(&shell::command_line(&other.argv)).into_owned();
        lines.extend(wrap_text(&command, columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Dim))));
    }
    if lines.is_empty() || area.height < 4 {
        return;
    }
    let tall = u16::try_from(lines.len() + 2).unwrap_or(u16::MAX).min(area.height);
    let title = vec![Span::styled("Alternatives", theme.style(Role::Title))];
    let inner = Panel::new(title).draw(frame, Rect { height: tall, ..area }, true, theme);
    frame.render_widget(Text::from(truncate_lines(lines, inner.height.into(), theme)), inner);
}

/// Drops lines after the first, so that the arguments of the selected field are among the first `rows`.
fn skip_to_lit(mut lines: Vec<Line<'static>>, rows: usize, theme: &Theme) -> Vec<Line<'static>> {
    let lit = theme.style(Role::Match);
    let last = lines.iter().rposition(|l| l.spans.iter().any(|s| s.style == lit && !s.content.is_empty())).unwrap_or(0);
    // Reserve one row for the mark of the dropped lines, and one that may be marked as truncated below.
    let most = rows.saturating_sub(2);
    if rows >= 4 && last >= rows {
        let dropped = last - most;
        lines.splice(1..=dropped, [Line::styled("    …", theme.style(Role::Dim))]);
    }
    lines
}

/// Truncates lines and marks the truncation.
fn truncate_lines(mut lines: Vec<Line<'static>>, rows: usize, theme: &Theme) -> Vec<Line<'static>> {
    if lines.len() > rows {
        lines.truncate(rows);
        if let Some(last) = lines.last_mut() {
            last.push_span(Span::styled(" …", theme.style(Role::Dim)));
        }
    }
    lines
}

fn heading_lines(screen: &RerunScreen, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
    let dim = theme.style(Role::Dim);
    let rerun = screen.current_rerun();
    let mut tail = Vec::new();
    let commands = screen.plan().map_or(0, |p| p.commands.len());
    if commands > 1 {
        tail.push(part(
            0,
            vec![
                Span::styled(format!("command {} of {commands}", screen.command + 1), theme.style(Role::Text)),
                Span::styled(" (tab)", dim),
            ],
        ));
    }
    let (word, role) = match (&screen.plan, rerun) {
        _ if screen.is_pending() => ("…", Role::Warn),
        (Some(Err(_)), _) => ("no command", Role::Bad),
        (_, Some(r)) if r.selects.is_empty() => ("a range, not a launch", Role::Warn),
        (_, Some(r)) if !r.is_exact() => ("not exact", Role::Warn),
        (_, Some(_)) => ("exact", Role::Good),
        _ => ("", Role::Dim),
    };
    tail.push(part(0, vec![Span::styled(word, theme.style(role))]));
    if word == "exact" {
        tail.push(part(1, vec![Span::styled("if the program does the same again", dim)]));
        tail.push(part(4, vec![Span::styled("nothing in the report contradicts it", dim)]));
    }
    let tail = fit_parts(tail, &Span::raw("   "), columns * 2 / 3);
    let name = rerun
        .and_then(|r| r.selects.first())
        .map(|s| escape_unsafe(&s.kernel).into_owned())
        .or_else(|| screen.groups.first().and_then(|&r| screen.grouping.rows.get(r)).map(|r| escape_unsafe(&r.name).into_owned()))
        .unwrap_or_default();
    let room = columns.saturating_sub(tail.width() + 16);
    let mut title = vec![
        Span::styled("‹ ", theme.style(Role::Key)),
        Span::styled("re-run  ", dim),
        Span::styled(cut_middle(&name, room), theme.style(Role::Title)),
        Span::raw("   "),
    ];
    title.extend(tail.spans);
    let mut out = vec![Line::from(title)];
    if let Some(rerun) = rerun {
        if let Some(first) = rerun.selects.first() {
            let more = rerun.selects.len().saturating_sub(1);
            let rest = if more > 0 { format!("  and {more} more") } else { String::new() };
            let text = cut_end(&describe_launch(first), columns.saturating_sub(9 + display_width(&rest)));
            out.push(Line::from(vec![
                Span::styled("selects  ", dim),
                Span::styled(text, theme.style(Role::Text)),
                Span::styled(rest, dim),
            ]));
        }
        if let Some(text) = cost_text(&rerun.cost) {
            out.push(Line::from(vec![
                Span::styled("costs    ", dim),
                Span::styled(cut_end(&text, columns.saturating_sub(9)), theme.style(Role::Text)),
            ]));
        }
    }
    if let Some((text, good)) = &screen.verdict {
        let role = if *good { Role::Good } else { Role::Bad };
        out.push(Line::styled(cut_end(&escape_unsafe(text), columns), theme.style(role)));
    }
    out
}

/// The command on several lines, with the arguments of the selected field highlighted.
fn command_lines(screen: &RerunScreen, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
    let rerun = match &screen.plan {
        None => return vec![Line::styled("counting launches …", theme.style(Role::Dim))],
        Some(Err(why)) => {
            return wrap_text(&escape_unsafe(why), columns).into_iter().map(|l| Line::styled(l, theme.style(Role::Bad))).collect();
        }
        Some(Ok(_)) => match screen.current_rerun() {
            Some(rerun) => rerun,
            None => return Vec::new(),
        },
    };
    if let Some(wrapper) = &rerun.wrapper {
        let lines = wrapper.lines().flat_map(|l| hard_wrap(&escape_unsafe(l), columns));
        return lines.map(|l| Line::styled(l, theme.style(Role::Text))).collect();
    }
    let lit: &[PartId] = match screen.selected_row() {
        Some(RerunRow::Field(field)) => field.parts,
        _ => &[],
    };
    let pieces: Vec<&CommandPart> = rerun.parts.iter().filter(|p| !p.words.is_empty()).collect();
    let last = pieces.len().saturating_sub(1);
    let mut out = Vec::new();
    for (n, piece) in pieces.into_iter().enumerate() {
        let role = if lit.contains(&piece.id) { Role::Match } else { Role::Text };
        let indent = if n == 0 { 0 } else { 4 };
        let pieces = wrap_words(&piece.words, columns.saturating_sub(indent + 2).max(10));
        let ends = pieces.len().saturating_sub(1);
        for (i, (text, whole)) in pieces.into_iter().enumerate() {
            let mut spans = vec![Span::raw(" ".repeat(indent)), Span::styled(text, theme.style(role))];
            // Join copied lines into one command with `\`; a word split only to fit the width cannot be joined.
            if whole && (i != ends || n != last) {
                spans.push(Span::styled(" \\", theme.style(Role::Faint)));
            }
            out.push(Line::from(spans));
        }
    }
    out
}

/// Wraps the words of a command; each line is returned with true if it ends with a whole word.
fn wrap_words(words: &[String], columns: usize) -> Vec<(String, bool)> {
    let mut out: Vec<(String, bool)> = Vec::new();
    for word in words {
        let word = escape_unsafe(&shell::join_words(std::slice::from_ref(word))).into_owned();
        match out.last_mut() {
            Some((line, true)) if display_width(line) + 1 + display_width(&word) <= columns => {
                line.push(' ');
                line.push_str(&word);
            }
            _ => {
                let pieces = hard_wrap(&word, columns);
                let ends = pieces.len().saturating_sub(1);
                out.extend(pieces.into_iter().enumerate().map(|(i, text)| (text, i == ends)));
            }
        }
    }
    out
}

/// Wraps code at spaces if possible; keeps leading spaces.
fn hard_wrap(text: &str, columns: usize) -> Vec<String> {
    let lead: String = text.chars().take_while(|c| *c == ' ').collect();
    if display_width(text) <= columns {
        return vec![text.to_owned()];
    }
    let mut lines = wrap_text(text.trim_start(), columns.saturating_sub(lead.len()).max(8));
    for line in &mut lines {
        line.insert_str(0, &lead);
    }
    lines
}

/// Full text about the selected row.
fn explanation_lines(screen: &RerunScreen, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
    let lines = |text: &str, role| {
        wrap_text(&escape_unsafe(text), columns).into_iter().map(move |l| Line::styled(l, theme.style(role))).collect::<Vec<_>>()
    };
    match screen.selected_row() {
        None => Vec::new(),
        Some(RerunRow::Warning(i)) => {
            let Some(w) = screen.current_rerun().and_then(|r| r.warnings.get(i)) else { return Vec::new() };
            let mut out = lines(&w.text, Role::Text);
            out.extend(w.fix.as_deref().map(|fix| lines(&format!("→ {fix}"), Role::Next)).unwrap_or_default());
            out
        }
        Some(RerunRow::Alternative(i)) => {
            let Some(other) = screen.alternatives().get(i) else { return Vec::new() };
            let mut out = lines(&other.why, Role::Next);
            out.extend(lines(&shell::command_line(&other.argv), Role::Dim));
            out
        }
        Some(RerunRow::Field(field)) => {
            let parts = screen.current_rerun().into_iter().flat_map(|r| &r.parts);
            let why: Vec<&str> = parts.filter(|p| field.parts.contains(&p.id)).map(|p| p.why.as_str()).collect();
            lines(&format!("{}: {}", field.title, if why.is_empty() { field.about.to_owned() } else { why.join(" ") }), Role::Next)
        }
    }
}

fn severity_role(severity: Severity) -> Role {
    match severity {
        Severity::Error => Role::Bad,
        Severity::Warning => Role::Warn,
        Severity::Info => Role::Dim,
    }
}

fn warning_lines(rerun: Option<&Rerun>, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
    let mut out = Vec::new();
    for w in rerun.into_iter().flat_map(|r| &r.warnings) {
        out.push(Line::default());
        let role = severity_role(w.severity);
        for (i, line) in wrap_text(&escape_unsafe(&w.text), columns.saturating_sub(9)).into_iter().enumerate() {
            let word = if i == 0 { w.severity.as_str() } else { "" };
            out.push(Line::from(vec![Span::styled(align_left(word, 9), theme.style(role)), Span::styled(line, theme.style(Role::Text))]));
        }
        if let Some(fix) = &w.fix {
            for (i, line) in wrap_text(&escape_unsafe(fix), columns.saturating_sub(11)).into_iter().enumerate() {
                let arrow = if i == 0 { "→ " } else { "  " };
                out.push(Line::from(vec![Span::raw(" ".repeat(9)), Span::styled(format!("{arrow}{line}"), theme.style(Role::Next))]));
            }
        }
    }
    out
}

/// List of the launches that a command selects, if there are several.
fn result_lines(rerun: Option<&Rerun>, theme: &Theme, columns: usize) -> Vec<Line<'static>> {
    let Some(rerun) = rerun.filter(|r| r.selects.len() > 1) else {
        return Vec::new();
    };
    let mut out = vec![Line::default(), Line::styled("results, in this order", theme.style(Role::Head))];
    for (i, s) in rerun.selects.iter().enumerate() {
        let name = cut_middle(&escape_unsafe(&s.kernel), columns / 3);
        out.push(Line::from(vec![
            Span::styled(format!("{i:>4}  "), theme.style(Role::Dim)),
            Span::styled(cut_end(&format!("{name}  {}", describe_launch(s)), columns.saturating_sub(6)), theme.style(Role::Text)),
        ]));
    }
    out
}

/// Width of a field's title.
const TITLE: usize = 12;

fn draw_fields(frame: &mut Frame<'_>, area: Rect, app: &App, (screen, profile): (&RerunScreen, &Profile), view: &mut View, theme: &Theme) {
    let columns = usize::from(area.width);
    let mut rows: Vec<Vec<Span<'static>>> = Vec::new();
    let room = columns.saturating_sub(TITLE + 1);
    for row in screen.rows() {
        let (title, role, text, text_role) = match row {
            RerunRow::Warning(i) => {
                let Some(w) = screen.current_rerun().and_then(|r| r.warnings.get(i)) else { continue };
                (w.severity.as_str(), severity_role(w.severity), escape_unsafe(&w.text).into_owned(), Role::Text)
            }
            RerunRow::Alternative(i) => {
                let Some(other) = screen.alternatives().get(i) else { continue };
                let (word, role) = if other.better { ("better", Role::Good) } else { ("or", Role::Dim) };
                (word, role, escape_unsafe(&other.why).into_owned(), Role::Next)
            }
            RerunRow::Field(field) => {
                (field.title, Role::Dim, app.session.settings.keymap.spell(&(field.value)(screen, profile)), Role::Text)
            }
        };
        let text = Span::styled(cut_end(&text, room), theme.style(text_role));
        rows.push(vec![Span::styled(align_left(title, TITLE), theme.style(role)), text]);
    }
    let of = Rows { list: "re-run", count: rows.len(), selected: screen.selected };
    table::draw_rows(frame, area, of, view, theme, |at, _| rows.get_mut(at).map(std::mem::take).unwrap_or_default());
}
