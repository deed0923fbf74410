//! The two header lines: report name and key figures.

use super::screens::view_of;
use super::text::{LinePart, bar, fit_parts, part, shade_track};
use super::{Role, Theme};
use crate::analysis::labels::cut_middle;
use crate::app::{ActionId, App, Open, Report, Stage};
use crate::model::text::escape_unsafe;
use crate::model::{Device, MemoryLevel, Nanos, NoteKind, Profile, Severity, units};
use crate::report::timeline::describe;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    let columns = usize::from(area.width.saturating_sub(2));
    let at = |row: u16| Rect { x: area.x + 1, y: area.y + row, width: area.width.saturating_sub(2), height: 1 };
    let own = app.top_entry().and_then(|e| view_of(&e.open).header(app, theme, columns));
    if let Some([first, second]) = own {
        frame.render_widget(first, at(0));
        frame.render_widget(second, at(1));
        return;
    }
    let Some(report) = app.report() else { return };
    frame.render_widget(first_line(app, report, theme, columns), at(0));
    frame.render_widget(second_line(app, report, theme, columns), at(1));
}

/// Names and counts of the devices that did work, or of all devices if none did: `1× H200`, `2× A100, 1× L4`.
fn device_names(profile: &Profile) -> String {
    let used: Vec<&Device> =
        profile.devices.iter().zip(0..).filter(|(_, i)| profile.places.iter().any(|p| p.device == Some(*i))).map(|(d, _)| d).collect();
    let shown = if used.is_empty() { profile.devices.iter().collect() } else { used };
    let mut names: Vec<(String, u32)> = Vec::new();
    for device in shown {
        let name = device.name.as_ref().map_or_else(String::new, |_| device.short_name());
        match names.iter_mut().find(|(n, _)| *n == name) {
            Some((_, n)) => *n += 1,
            None => names.push((name, 1)),
        }
    }
    // Without a model, there is only a number of GPUs.
    let shown = names.iter().map(|(name, n)| match name.as_str() {
        "" => units::format_count(*n, "GPU"),
        name => format!("{n}× {}", escape_unsafe(name)),
    });
    shown.collect::<Vec<_>>().join(", ")
}

/// Minimum width of the file's name.
const LEAST_FILE: usize = 40;

fn first_line(app: &App, report: &Report, theme: &Theme, columns: usize) -> Line<'static> {
    let text = theme.style(Role::Text);
    let name = report.file.file_name().map_or_else(|| report.file.display().to_string(), |n| n.to_string_lossy().into_owned());
    // A long name leaves room for the tool, the GPU and the launches.
    let name = cut_middle(&escape_unsafe(&name), (columns / 2).max(LEAST_FILE));
    let mut parts = vec![
        part(0, vec![Span::styled("warpscope", theme.style(Role::Brand))]),
        part(0, vec![Span::styled(name, theme.style(Role::Title))]),
    ];
    if app.session.reports.len() > 1 {
        parts.push(part(
            1,
            vec![Span::styled(format!("{} of {}", app.session.active + 1, app.session.reports.len()), theme.style(Role::Text))],
        ));
    }
    // Every report shows the failures of the session's other reports.
    for (at, failed) in app.session.reports.iter().enumerate() {
        if at != app.session.active && matches!(failed.stage, Stage::Failed(_)) && failed.profile.is_none() {
            let name = failed.file.file_name().map_or_else(String::new, |n| n.to_string_lossy().into_owned());
            parts.push(part(1, vec![Span::styled(format!("{} could not be opened", escape_unsafe(&name)), theme.style(Role::Bad))]));
        }
    }
    if let Some(run) = app.running.watched.as_ref().filter(|r| r.is_live()).and_then(|r| r.run.as_ref()) {
        let key = app.session.key_label(ActionId::Watch);
        let style = theme.style(Role::Next);
        let running = Span::styled(format!("run {} running (", run.id), style);
        parts.push(part(1, vec![running, Span::styled(key, theme.style(Role::Key)), Span::styled(")", style)]));
    }
    if let Some(profile) = &report.profile {
        let source = &profile.source;
        let tool = source.version.as_ref().map_or_else(|| source.tool.clone(), |v| format!("{} {}", source.tool, short_version(v)));
        parts.push(part(4, vec![Span::styled(escape_unsafe(&tool).into_owned(), theme.style(Role::Dim))]));
        parts.push(part(2, vec![Span::styled(device_names(profile), text)]));
        let launches = report.groups.grouping.as_ref().map_or(profile.launches.len() as u64, |g| g.launches);
        if launches > 0 || !only_memory(report) {
            parts.push(part(3, vec![Span::styled(units::format_count(launches, "launch"), text)]));
        }
        if let Some((start, end)) = report.run_span() {
            let word = if report.window.is_some() { "shown" } else { "span" };
            // The steady state may consist of parts, with times between them that were not recorded or not judged.
            let judged = report.triage.as_ref().and_then(Option::as_ref).filter(|_| report.shows_steady_state());
            let length = judged.map_or(end.saturating_sub(start), |t| t.length());
            parts.push(part(5, vec![Span::styled(format!("{} {word}", Nanos(length)), theme.style(Role::Dim))]));
        }
    }
    fit_parts(parts, &Span::styled(" · ", theme.style(Role::Faint)), columns)
}

/// Returns true if a report contains memory events but no GPU activity.
fn only_memory(report: &Report) -> bool {
    report.has_memory() && !report.has_device_work()
}

/// Numbers of allocations, frees and failed allocations.
fn memory_counts(profile: &Profile, theme: &Theme) -> Vec<Span<'static>> {
    let memory = &profile.memory;
    // The allocator's own requests to the driver are not the program's, unless there is nothing else.
    let level = [MemoryLevel::Allocator, MemoryLevel::Driver].into_iter().find(|l| memory.events.iter().any(|e| e.level == *l));
    let own = |more: bool| memory.events.iter().filter(|e| Some(e.level) == level && (e.bytes > 0) == more).count();
    let mut out = vec![Span::styled(
        format!("{}, {}", units::format_count(own(true), "allocation"), units::format_count(own(false), "free")),
        theme.style(Role::Dim),
    )];
    if !memory.refused.is_empty() {
        out.push(Span::styled(format!(", {} refused", units::format_count(memory.refused.len(), "request")), theme.style(Role::Bad)));
    }
    out
}

/// Shortens a version to three numbers.
fn short_version(version: &str) -> String {
    version.split('.').take(3).collect::<Vec<_>>().join(".")
}

/// Time span to which the figures of the page refer, and the key that changes it. The overview evaluates the steady
/// state from the start, the other pages only after the key.
fn base_chip(app: &App, report: &Report, on_overview: bool, theme: &Theme) -> Option<LinePart> {
    let dim = theme.style(Role::Dim);
    let key = || Span::styled(app.session.key_label(ActionId::Narrow), theme.style(Role::Key));
    let steady = report.steady_window();
    if let Some(window) = report.window {
        let name = if steady == Some(window) { "steady state".to_owned() } else { format!("only {}", describe::format_window(window)) };
        return Some(part(
            0,
            vec![Span::styled(name, theme.style(Role::Mark)), Span::styled(" (", dim), key(), Span::styled(" whole run)", dim)],
        ));
    }
    if on_overview && report.judges_less_than_shown() {
        let name = Span::styled("steady state", theme.style(Role::Mark));
        return Some(part(0, vec![name, Span::styled(" (", dim), key(), Span::styled(" on all screens)", dim)]));
    }
    let known = report.overview.as_ref().is_some_and(|o| o.span.is_some());
    match steady {
        Some(_) => Some(part(0, vec![Span::styled("whole run (", dim), key(), Span::styled(" steady state)", dim)])),
        None => (on_overview && known).then(|| part(3, vec![Span::styled("whole run", dim)])),
    }
}

fn second_line(app: &App, report: &Report, theme: &Theme, columns: usize) -> Line<'static> {
    let text = theme.style(Role::Text);
    let dim = theme.style(Role::Dim);
    let mut parts = Vec::new();
    if let Stage::Reading(name, done, total) = report.stage {
        let mut spans = vec![Span::styled(format!("reading {name} "), theme.style(Role::Warn))];
        if let Some(share) = (total > 0).then(|| done as f64 / total as f64) {
            spans.extend(shade_track(bar(share, 16, theme.style(Role::Warn), theme)));
            spans.push(Span::styled(format!(" {}", units::format_whole_percent(share * 100.0)), text));
        }
        spans.push(Span::raw("  "));
        spans.push(Span::styled(app.session.key_label(ActionId::Back), theme.style(Role::Key)));
        spans.push(Span::styled(" stops", dim));
        parts.push(part(0, spans));
    }
    if let Stage::Failed(_) = report.stage
        && report.profile.is_some()
    {
        parts.push(part(0, vec![Span::styled("reading stopped: the report is incomplete", theme.style(Role::Bad))]));
    }
    let on_overview = matches!(app.top_entry().map(|e| &e.open), Some(Open::Overview(_)));
    // On the overview, show the figures of the steady state: those of the whole run would seem to contradict the page.
    // The tables of the steady state have the same base.
    let has_own_base = report.shows_steady_state() || on_overview && report.judges_less_than_shown();
    let page_triage = report.triage.as_ref().and_then(Option::as_ref).filter(|_| has_own_base);
    parts.extend(base_chip(app, report, on_overview, theme));
    if let Some(overview) = &report.overview {
        // Busy means that any operation runs, including copies, as in the ranges and the time breakdown.
        let whole = overview.idle_percent.map(|idle| report.share_of_run(100.0 - idle));
        if let Some(busy) = page_triage.map_or(whole, |t| Some(t.busy_percent())) {
            let lost = report.profile.as_ref().is_some_and(|p| p.coverage.is_inconclusive());
            let word = if lost { "GPU busy at least " } else { "GPU busy " };
            let mut spans =
                vec![Span::styled(word, dim), Span::styled(format!("{} ", units::format_percent(busy)), theme.style(Role::Title))];
            spans.extend(shade_track(bar(busy / 100.0, 10, theme.style(Role::Good), theme)));
            parts.push(part(0, spans));
        }
        if only_memory(report) {
            parts.extend(report.profile.as_ref().map(|p| part(0, memory_counts(p, theme))));
        } else if let Some(grouping) =
            report.groups.grouping.as_ref().filter(|g| g.by.is_kernel() && (!on_overview || page_triage.is_none()))
        {
            parts.push(part(3, vec![Span::styled(units::format_count(grouping.rows.len(), "kernel"), text)]));
            if grouping.rows.len() > 3 {
                let top: f64 = grouping.rows.iter().take(3).map(|r| r.share_percent).sum();
                let top =
                    [Span::styled("top 3 ", dim), Span::styled(units::format_percent(top), text), Span::styled(" of kernel time", dim)];
                parts.push(part(2, top.to_vec()));
            }
        }
        if let Some(copies) = overview.copy_percent.map(|c| report.share_of_run(c)).filter(|&c| c > 0.0 && page_triage.is_none()) {
            parts.push(part(4, vec![Span::styled("copies ", dim), Span::styled(units::format_percent(copies), text)]));
        }
        match report.triage.as_ref().and_then(Option::as_ref) {
            // The overview contains the full time breakdown.
            Some(triage) if !on_overview && !report.judges_less_than_shown() => {
                parts.push(part(4, super::time_breakdown::small_strip(triage, theme)));
                parts.push(part(2, super::time_breakdown::idle_causes(triage, !report.shows_steady_state(), theme)));
            }
            None if overview.span.is_some() => {
                parts.push(part(2, vec![Span::styled("idle gaps >10 µs ", dim), Span::styled(units::format_grouped(overview.gaps), text)]));
            }
            _ => {}
        }
    }
    if let Some(profile) = &report.profile {
        let matters: Vec<Severity> = profile.notes.iter().map(|n| n.severity).collect();
        let worst = matters.iter().max().copied();
        if let Some(worst) = worst {
            // Most notes are informational: only those that matter are colored.
            let matter = matters.iter().filter(|&&s| s > Severity::Info).count();
            let dim = theme.style(Role::Dim);
            let mut spans = Vec::new();
            if matter > 0 {
                let role = if worst == Severity::Error { Role::Bad } else { Role::Warn };
                spans.push(Span::styled(
                    units::format_count(matter, if worst == Severity::Error { "problem" } else { "warning" }),
                    theme.style(role),
                ));
            }
            if matters.len() > matter {
                let and = if matter > 0 { ", " } else { "" };
                spans.push(Span::styled(format!("{and}{}", units::format_count(matters.len() - matter, "note")), dim));
            }
            let key = Span::styled(app.session.key_label(ActionId::Notes), theme.style(Role::Key));
            spans.extend([Span::styled(" (", dim), key, Span::styled(")", dim)]);
            parts.push(part(1, spans));
        }
        if profile.notes.iter().any(|n| n.kind == NoteKind::Lost && n.severity > Severity::Info) {
            parts.push(part(2, vec![Span::styled("events may be missing", theme.style(Role::Warn))]));
        }
        if profile.notes.iter().any(|n| n.kind == NoteKind::Graphs) {
            parts.push(part(2, vec![Span::styled("graphs hidden", theme.style(Role::Warn))]));
        }
    }
    fit_parts(parts, &Span::raw("   "), columns)
}
