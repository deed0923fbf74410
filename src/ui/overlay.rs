//! Overlays: help, notes, names, details, and pick lists.

use super::text::{align_left, highlight_chars, wrap_text};
use super::view::{View, scrolled_top};
use super::widgets::theme_sample;
use super::{Role, Theme, detail};
use crate::analysis::fuzzy::Fuzzy;
use crate::analysis::labels::{cut_end, cut_middle, display_width};
use crate::app::actions::ActionId;
use crate::app::overlay::PickAction;
use crate::app::screens::Kind;
use crate::app::{App, LineOf, Mouse, Overlay, OverlayKind, Page, PickList, Report, ResultScreen};
use crate::model::text::escape_unsafe;
use crate::model::{Bytes, MemOpKind, MemoryKind, Nanos, Profile, Severity, units};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span, Text};
use ratatui::widgets::{Block, BorderType, Clear};
use std::collections::BTreeMap;
use tui_input::Input;

/// Draws the open overlay.
pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, view: &mut View, theme: &Theme) {
    let columns = usize::from(area.width.saturating_sub(8)).min(100);
    let Some(over) = &app.over else { return };
    match &over.what {
        OverlayKind::Page(what, at) => {
            let (title, lines) = page_lines(app, over, what, (columns, view.ascii), theme);
            view.most_scroll = draw_page(frame, area, title, &lines, *at, theme);
        }
        OverlayKind::Pick(pick) => draw_list(frame, area, pick, view, theme),
        OverlayKind::Line(what, input) => draw_input(frame, area, *what, input, theme),
        OverlayKind::Number(input) => {
            let line = Line::from(vec![
                Span::styled("number ", theme.style(Role::Dim)),
                Span::styled(input.value().to_owned(), theme.style(Role::Title)),
                Span::styled("▏", theme.style(Role::Key)),
            ]);
            draw_page(frame, area, "jump to the nth launch, from 0", &[line], 0, theme);
        }
    }
}

/// Title and lines of a page, for the screen and report on which it was opened.
fn page_lines(
    app: &App,
    over: &Overlay,
    what: &Page,
    (columns, ascii): (usize, bool),
    theme: &Theme,
) -> (&'static str, Vec<Line<'static>>) {
    let report = app.session.reports.get(over.report);
    match what {
        Page::Help => ("help", super::help::page(app, columns, ascii, theme)),
        Page::Notes => ("about this report", note_lines(report, columns, theme)),
        Page::Names => ("names", report.map(|r| detail::name_lines(app, r, over.screen, columns, theme)).unwrap_or_default()),
        Page::Details => ("details", report.map(|r| detail::lines(app, r, over.screen, columns, theme)).unwrap_or_default()),
        Page::Advice(advice) => ("hints from the launch alone", {
            let mut lines = super::advice::lines(advice, columns, theme);
            let key = app.session.key_label(ActionId::Rerun);
            lines.extend([Line::default(), Line::styled(format!("{key} shows the command that profiles it"), theme.style(Role::Next))]);
            lines
        }),
        Page::Finding(finding, begin, base) => {
            (finding.id.id(), super::finding_details::detail_lines(finding, (*begin, base), app.session.straggler(), columns, theme))
        }
        Page::RunFacts(facts) => ("about this run", super::run::fact_lines(facts, columns, theme)),
        Page::Checklist(items) => ("checklist", super::checklist::lines(items, &app.session.settings.keymap, columns, theme)),
        Page::Explain => {
            let screen = app.entry(over.screen).and_then(|e| ResultScreen::of(&e.open));
            ("about this", screen.map(|s| super::result::explain::lines(s, columns, theme)).unwrap_or_default())
        }
    }
}

/// Draws a text input; a long line scrolls to the cursor.
fn draw_input(frame: &mut Frame<'_>, area: Rect, what: LineOf, input: &Input, theme: &Theme) {
    let room = usize::from(area.width.saturating_sub(8)).clamp(20, 100);
    let inner = draw_popup(frame, area, (room, 1), what.title(), theme);
    let columns = usize::from(inner.width).saturating_sub(1);
    let from = input.visual_scroll(columns);
    let shown: String = escape_unsafe(input.value()).chars().skip(from).take(columns).collect();
    let cursor = input.visual_cursor().saturating_sub(from);
    let (before, after): (String, String) = (shown.chars().take(cursor).collect(), shown.chars().skip(cursor).collect());
    let line = Line::from(vec![
        Span::styled(before, theme.style(Role::Title)),
        Span::styled("▏", theme.style(Role::Key)),
        Span::styled(after, theme.style(Role::Title)),
    ]);
    frame.render_widget(line, Rect { height: inner.height.min(1), ..inner });
}

/// Draws a centered frame and returns its inner area.
fn draw_popup(frame: &mut Frame<'_>, area: Rect, (columns, rows): (usize, usize), title: &str, theme: &Theme) -> Rect {
    let w = u16::try_from(columns + 4).unwrap_or(u16::MAX).min(area.width);
    let h = u16::try_from(rows + 2).unwrap_or(u16::MAX).min(area.height.saturating_sub(2));
    let outer = Rect { x: area.x + (area.width - w) / 2, y: area.y + (area.height - h) / 2, width: w, height: h };
    // Also clear margins that are too narrow to show anything useful of the screen below.
    let bare = if outer.width + 12 >= area.width { Rect { x: area.x, width: area.width, ..outer } } else { outer };
    frame.render_widget(Clear, bare);
    frame.buffer_mut().set_style(bare, theme.style(Role::Text));
    frame.buffer_mut().set_style(outer, theme.style(Role::Text));
    let block = Block::bordered()
        .border_type(BorderType::Rounded)
        .border_style(theme.style(Role::Border))
        .title(Line::styled(format!(" {title} "), theme.style(Role::Title)));
    let inner = block.inner(outer);
    frame.render_widget(block, outer);
    Rect { x: inner.x + 1, width: inner.width.saturating_sub(2), ..inner }
}

/// Draws lines in a centered frame and returns the maximum scroll offset.
fn draw_page(frame: &mut Frame<'_>, area: Rect, title: &str, lines: &[Line<'static>], at: usize, theme: &Theme) -> usize {
    let columns = lines.iter().map(Line::width).max().unwrap_or(0).max(display_width(title) + 2).max(24);
    let inner = draw_popup(frame, area, (columns, lines.len()), title, theme);
    let height = usize::from(inner.height);
    let top = at.min(lines.len().saturating_sub(height));
    frame.render_widget(Text::from(lines.iter().skip(top).take(height).cloned().collect::<Vec<_>>()), inner);
    draw_position(frame, inner, top, lines.len(), theme);
    lines.len().saturating_sub(height)
}

fn note_lines(report: Option<&Report>, columns: usize, theme: &Theme) -> Vec<Line<'static>> {
    let Some(profile) = report.and_then(|r| r.profile.as_ref()) else {
        return vec![Line::raw("nothing has been read yet")];
    };
    let mut out = Vec::new();
    for note in &profile.notes {
        let role = match note.severity {
            Severity::Error => Role::Bad,
            Severity::Warning => Role::Warn,
            Severity::Info => Role::Dim,
        };
        for (i, line) in wrap_text(&escape_unsafe(&note.text), columns.saturating_sub(10)).into_iter().enumerate() {
            let word = if i == 0 { note.severity.as_str() } else { "" };
            out.push(Line::from(vec![Span::styled(align_left(word, 10), theme.style(role)), Span::styled(line, theme.style(Role::Text))]));
        }
        if let Some(fix) = &note.fix {
            for line in wrap_text(&escape_unsafe(fix), columns.saturating_sub(12)) {
                out.push(Line::from(vec![Span::raw(" ".repeat(10)), Span::styled(format!("→ {line}"), theme.style(Role::Next))]));
            }
        }
        out.push(Line::default());
    }
    if profile.notes.is_empty() {
        out.extend([Line::styled("nothing to note", theme.style(Role::Good)), Line::default()]);
    }
    // The overview has room for the first of its remarks only.
    let triage = report.and_then(|r| r.triage.as_ref()).and_then(Option::as_ref);
    let remarks = triage.map(|t| crate::report::triage::remarks(t)).unwrap_or_default();
    let facts = recording_facts(profile).into_iter();
    for (word, text) in remarks.into_iter().enumerate().map(|(i, r)| (if i == 0 { "verdict" } else { "" }, r)).chain(facts) {
        for (i, line) in wrap_text(&escape_unsafe(&text), columns.saturating_sub(10)).into_iter().enumerate() {
            let word = if i == 0 { word } else { "" };
            out.push(Line::from(vec![
                Span::styled(align_left(word, 10), theme.style(Role::Dim)),
                Span::styled(line, theme.style(Role::Text)),
            ]));
        }
    }
    out
}

/// Facts about the recording: tool, command and devices.
fn recording_facts(profile: &Profile) -> Vec<(&'static str, String)> {
    let mut out = vec![("file", profile.source.file.display().to_string())];
    let source = &profile.source;
    let version = match (&source.version, &source.schema) {
        (Some(version), Some(schema)) => format!(" {version}, schema {schema}"),
        (None, Some(schema)) => format!(", {schema}"),
        (Some(version), None) => format!(" {version}"),
        (None, None) => " of unknown version".to_owned(),
    };
    out.push(("tool", format!("{}{version}", source.tool)));
    // An ncu report's command line may be private, so only the re-run screen, which needs it, shows it.
    if !profile.capture.argv.is_empty() && profile.metrics.is_none() {
        out.push(("command", profile.capture.argv.join(" ")));
    }
    if let Some(directory) = profile.capture.directory.as_ref().filter(|_| profile.metrics.is_none()) {
        out.push(("in", directory.clone()));
    }
    for device in &profile.devices {
        let giga = |n: u64| n as f64 / 1e9;
        let parts = [
            device.name.clone(),
            device.compute_capability.map(|(a, b)| format!("compute {a}.{b}")),
            device.sm_count.map(|n| format!("{n} {}", device.maker.vendor_terms().units)),
            device.clock_hz.map(|hz| format!("{:.2} GHz", giga(hz))),
            device.memory.map(|m| m.to_string()),
            device.memory_bandwidth.map(|b| format!("{:.0} GB/s", giga(b))),
            device.l2.map(|l| format!("L2 {l}")),
        ];
        out.push(("GPU", format!("{}: {}", device.id, parts.into_iter().flatten().collect::<Vec<_>>().join(", "))));
    }
    let mut copies: BTreeMap<String, (u64, u64, i64)> = BTreeMap::new();
    for op in profile.memops.iter() {
        let what = match op.kind {
            MemOpKind::Set => "memset".to_owned(),
            MemOpKind::Copy { kind, from, to } => {
                let host = [from, to].into_iter().flatten().find(|m| matches!(m, MemoryKind::Pageable | MemoryKind::Pinned));
                let memory = host.map_or("", |m| if m == MemoryKind::Pageable { ", pageable" } else { ", pinned" });
                format!("{}{memory}", kind.as_str())
            }
        };
        let sum = copies.entry(what).or_default();
        *sum = (sum.0 + 1, sum.1 + op.bytes.unwrap_or_default().0, sum.2.saturating_add(op.duration.0));
    }
    for (what, (count, bytes, ns)) in copies {
        out.push(("copies", format!("{what}: {}, {} in {}", units::format_count(count, "operation"), Bytes(bytes), Nanos(ns))));
    }
    out
}

/// On the border below a list that is longer than its frame: the numbers of the lines that are shown.
fn draw_position(frame: &mut Frame<'_>, inner: Rect, top: usize, lines: usize, theme: &Theme) {
    let height = usize::from(inner.height);
    if lines <= height {
        return;
    }
    let text = format!(" {}–{} of {lines} ", top + 1, (top + height).min(lines));
    let w = u16::try_from(display_width(&text)).unwrap_or(0);
    let place = Rect { x: (inner.x + inner.width).saturating_sub(w), y: inner.y + inner.height, width: w, height: 1 };
    frame.render_widget(Line::styled(text, theme.style(Role::Dim)), place);
}

/// Number of items that determine the width of a list.
const MEASURED: usize = 200;

fn draw_list(frame: &mut Frame<'_>, area: Rect, pick: &PickList, view: &mut View, theme: &Theme) {
    const LETTER: usize = 3;
    let hint = pick.items.iter().take(MEASURED).map(|i| display_width(&i.hint)).max().unwrap_or(0);
    let letters = pick.items.iter().any(|i| i.letter.is_some());
    let lead = if letters { LETTER } else { 0 };
    let room = usize::from(area.width.saturating_sub(8));
    // Long labels are cut rather than the hints beside them, unless these are sentences.
    let most = room.saturating_sub(lead + 2 + hint).max(40);
    let label = pick.items.iter().take(MEASURED).map(|i| display_width(&i.label)).max().unwrap_or(0).min(most);
    // Below the list of themes, draw sample widgets in the selected theme.
    let themes = pick.items.first().is_some_and(|i| matches!(i.choice, PickAction::Theme(_)));
    let (below, wide) = if themes && usize::from(area.height) > pick.items.len() + usize::from(theme_sample::SIZE.0) + 4 {
        theme_sample::SIZE
    } else {
        (0, 28)
    };
    let columns = (lead + label + 2 + hint).max(display_width(pick.title) + 4).max(wide).min(room);
    let typed = usize::from(pick.typed.is_some());
    let mut inner = draw_popup(frame, area, (columns, pick.items.len().min(24) + typed + usize::from(below)), pick.title, theme);
    if below > 0 && inner.height > below {
        inner.height -= below;
        let place = Rect { y: inner.bottom() + 1, height: below - 1, ..inner };
        super::panel::draw_lines(frame, place, theme_sample::sample_lines(theme));
    }
    let mut rows = inner;
    if let Some(input) = &pick.typed {
        let line = Line::from(vec![
            Span::styled("› ", theme.style(Role::Key)),
            Span::styled(input.value().to_owned(), theme.style(Role::Title)),
            Span::styled("▏", theme.style(Role::Key)),
        ]);
        frame.render_widget(line, Rect { height: 1, ..inner });
        rows = Rect { y: inner.y + 1, height: inner.height.saturating_sub(1), ..inner };
    }
    let height = usize::from(rows.height);
    let top = scrolled_top(pick.selected.saturating_sub(height / 2), pick.selected, pick.shown.len(), height);
    if below == 0 {
        draw_position(frame, rows, top, pick.shown.len(), theme);
    }
    let fuzzy = pick.typed.as_ref().filter(|t| !t.value().trim().is_empty()).map(|t| Fuzzy::new(t.value()));
    if pick.shown.is_empty() {
        frame.render_widget(Line::styled("nothing matches", theme.style(Role::Dim)), Rect { height: rows.height.min(1), ..rows });
    }
    for (line, (at, &item)) in (0..).zip(pick.shown.iter().enumerate().skip(top).take(height)) {
        let item = &pick.items[item];
        let rect = Rect { y: rows.y + line, height: 1, ..rows };
        view.hits.push((rect, Mouse::Item(at)));
        let mut spans = Vec::new();
        if letters {
            spans.push(Span::styled(align_left(&item.letter.map(String::from).unwrap_or_default(), LETTER), theme.style(Role::Key)));
        }
        let name = align_left(&cut_middle(&item.label, label), label);
        let lit_at = fuzzy.as_ref().and_then(|f| f.match_positions(&name)).map(|p| p.1).unwrap_or_default();
        spans.extend(highlight_chars(&name, &lit_at, theme.style(Role::Text), theme.style(Role::Match)));
        spans.push(Span::styled(format!("  {}", cut_end(&item.hint, columns.saturating_sub(lead + label + 2))), theme.style(Role::Dim)));
        frame.render_widget(Line::from(spans), rect);
        if at == pick.selected {
            crate::ui::widgets::highlight_row(frame.buffer_mut(), rect, theme);
        }
    }
}
