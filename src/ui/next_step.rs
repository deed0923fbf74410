//! The `next:` line, and the message about a report that could not be read.

use super::text::wrap_text;
use super::{Role, Theme};
use crate::analysis::compare::Change;
use crate::analysis::roofline;
use crate::app::actions::keymap::LINK;
use crate::app::screens::result::hints::Line;
use crate::app::{
    ActionId, App, KernelsScreen, LaunchesScreen, Open, Report, RerunScreen, ResultScreen, ResultView as View, Stage, Status,
};
use crate::model::text::escape_unsafe;
use crate::model::{Nanos, Profile, Severity, units};
use crate::report::hints::{format_threshold, format_value};
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line as Drawn, Span, Text};

fn next_step_text(app: &App) -> Option<String> {
    if let Some(tour) = crate::app::tour::current_text(app) {
        return Some(tour);
    }
    let open = &app.top_entry()?.open;
    let report = app.report();
    // The report is incomplete, for this reason.
    if let (true, Some((Stage::Failed(why), true))) = (app.on_report(), report.map(|r| (&r.stage, r.profile.is_some()))) {
        return Some(why.clone());
    }
    match open {
        Open::Run(_) => app.running.watched.as_ref().map(|w| super::run::next(app, w)),
        Open::Library(screen) => super::library::next(app, screen),
        Open::Ranks(screen) => super::ranks::next(app, screen),
        Open::Memory(screen) => super::memory::next(app, screen),
        Open::Diff(screen) => super::diff::next(app, screen),
        Open::Overview(screen) => super::overview::next(app, screen),
        Open::Ranges(screen) => super::ranges::next(app, screen),
        Open::Timeline(screen) => super::timeline::next(app, screen),
        Open::Rerun(screen) => Some(of_rerun(app, screen)),
        Open::Result(screen) => Some(of_result(app, screen)),
        Open::Launches(screen) => of_launches(app, report?.profile.as_deref()?, screen),
        Open::Kernels(screen) => of_kernels(app, report?, screen),
    }
}

/// Kernels table: an action for the selected row, then the limit of the run.
fn of_kernels(app: &App, report: &Report, screen: &KernelsScreen) -> Option<String> {
    // An empty table contains its own message.
    let grouping = report.groups.grouping.as_ref().filter(|g| !g.rows.is_empty());
    let run = grouping.and(report.next.as_deref()).map(|next| app.session.settings.keymap.spell_links(next));
    let kernel = grouping.is_some_and(|g| g.by.is_kernel());
    let own = screen.selected_row().filter(|_| kernel && !report.is_reading()).and_then(|row| {
        let key = |id| app.session.key_link(id);
        // For a kernel without measurements, the advice for the run is enough.
        report.diagnosed.get(&row).map(|hint| format!("{} shows what limits this kernel: {}", key(ActionId::Hints), hint.id.id()))
    });
    match (own, run) {
        (Some(own), Some(run)) if report.is_timeline() => Some(format!("{own}. The run: {run}")),
        (own, run) => own.or(run),
    }
}

/// Re-run screen: the most severe warning, a better command, or the keys for this command.
fn of_rerun(app: &App, screen: &RerunScreen) -> String {
    let key = |id| app.session.key_link(id);
    let Some(rerun) = screen.current_rerun() else {
        return format!("{} edits a field, {} undoes the last change", key(ActionId::Open), key(ActionId::Undo));
    };
    if let Some((text, good)) = &screen.verdict {
        return if *good { "the result matches this launch's kernel, grid and block".to_owned() } else { text.clone() };
    }
    // A wide screen contains the full warnings: repeat them only if they prevent the run.
    let wide = app.session.size.0 >= super::rerun::WIDE;
    let least = if wide { Severity::Error } else { Severity::Warning };
    if let Some(w) = rerun.warnings.iter().filter(|w| w.severity >= least).max_by_key(|w| w.severity) {
        return w.to_sentence();
    }
    format!(
        "{} runs it here and shows the result; or {} copies the command, {} saves it as a script, and {} later checks its result",
        key(ActionId::RunHere),
        key(ActionId::Copy),
        key(ActionId::Save),
        key(ActionId::Verify)
    )
}

/// Result screens: the reason for matching this launch, and the available actions.
fn of_result(app: &App, screen: &ResultScreen) -> String {
    let key = |id| app.session.key_link(id);
    let joined = screen
        .sure
        .filter(|_| screen.view == View::Metrics)
        .map(|s| format!("{}. ncu's durations differ from the timeline's. ", s.describe()));
    let here = match screen.view {
        View::Metrics => {
            let result = screen.metrics.results.get(screen.result);
            if let Some(hint) = screen.subject.hints.first() {
                return format!("{}{} shows why and what to change: {}", joined.unwrap_or_default(), key(ActionId::Hints), hint.headline);
            }
            if let Some(collect) = screen.subject.sections_to_collect() {
                let sections = collect.sections.join(", ");
                return format!(
                    "{}not enough was collected to name a cause: {} and {} collect {sections}",
                    joined.unwrap_or_default(),
                    key(ActionId::Hints),
                    key(ActionId::Rerun)
                );
            }
            let mut text = format!(
                "{}{}: next section, {}: search {} metrics, {}: explain a row",
                if screen.subject.is_amd() { "" } else { "nothing stands out; " },
                key(ActionId::NextSection),
                key(ActionId::FindMetric),
                result.map_or(0, |r| r.values.len()),
                key(ActionId::Open)
            );
            // Do not offer empty screens.
            if result.is_some_and(|r| roofline::place_result(&screen.metrics, r).work.iter().any(|w| w.achieved.is_some_and(|a| a > 0.0))) {
                text = format!("{text}, {}: roofline", key(ActionId::Roofline));
            }
            if screen.details.get().is_some_and(|d| !d.sources.is_empty()) {
                text = format!("{text}, {}: hottest code", key(ActionId::Source));
            }
            text
        }
        View::Hints => of_hints(app, screen),
        View::Roofline => match screen.roofline.plot.as_ref().and_then(|p| p.points.get(screen.roofline.selected).map(|at| (p, at))) {
            Some((plot, p)) if p.own => of_point(plot, p, screen, &key(ActionId::Open)),
            Some((_, p)) => format!("{} opens the metrics of {}", key(ActionId::Open), p.kernel),
            None if screen.roofline.plot.as_ref().is_some_and(|p| !p.placed.missing.is_empty()) => {
                format!("{} profiles the launch again: in the field collect, choose set roofline", key(ActionId::Rerun))
            }
            None => format!("no result of this report has a point here; {} leads back", key(ActionId::Back)),
        },
        View::Compare => {
            let count = |c: Change| screen.compare.rows.iter().filter(|r| r.change == c).count();
            let open = key(ActionId::Open);
            if screen.compare.rows.iter().any(|r| r.p.is_some()) {
                let (better, worse) = (count(Change::Better), count(Change::Worse));
                format!(
                    "by more than chance, {better} metrics are better in the other result and {worse} worse; {open} explains the selected one"
                )
            } else {
                let rerun = key(ActionId::Rerun);
                format!("{rerun} profiles more launches: from five of each on, significance can be tested; {open} explains a metric")
            }
        }
        View::Source => format!(
            "{}: between a line and its hottest instruction, {}: lines or instructions, {}: by samples or in code order",
            key(ActionId::Open),
            key(ActionId::Instructions),
            key(ActionId::CodeOrder)
        ),
    };
    format!("{}{here}", joined.unwrap_or_default())
}

/// Hints screen: advice for the selected hint.
fn of_hints(app: &App, screen: &ResultScreen) -> String {
    let key = |id| app.session.key_link(id);
    let rerun = key(ActionId::Rerun);
    let Some(hint) = screen.hints.selected_hint().or(Some(0)).and_then(|i| screen.subject.hints.get(i)) else {
        return format!("{rerun} collects what is missing; open the result alongside this report");
    };
    // Repeat the threshold and metric of the selected number here: a narrow screen has no room for them in the list.
    if let Some(Line::Evidence(i, e)) = screen.hints.lines.get(screen.hints.selected)
        && let Some(e) = screen.subject.hints.get(*i).and_then(|h| h.evidence.get(*e))
    {
        let than = e.threshold.map_or_else(String::new, |t| format!(", {}: {}", format_threshold(e).unwrap_or_default(), t.source));
        let open = key(ActionId::Open);
        let place = if e.metric.is_empty() {
            "computed from several metrics, or from the launch".to_owned()
        } else {
            format!("{open} goes to {}", e.metric)
        };
        return format!("{} = {}{than}; {place}", e.label, format_value(e));
    }
    let action = hint.actions.first().map_or("", |a| a);
    let after = if app.session.reports.len() > 1 {
        format!("then {} compares", key(ActionId::Compare))
    } else {
        "then profile it again and open both reports".to_owned()
    };
    if hint.confirm.sections == ["SourceCounters"] && screen.has_code() {
        format!("{action}; {} shows the lines; {after}", key(ActionId::Source))
    } else if hint.confirm.sections.is_empty() {
        format!("{action}; {after}")
    } else if screen.subject.is_decided() {
        format!("{action}; {rerun} collects what confirms it; {after}")
    } else {
        format!("{rerun} collects {}; so far, {}: {action}", hint.confirm.why, hint.id.id())
    }
}

/// Percent of every roof below which no roof limits a kernel: NVIDIA's speed-of-light rule calls such a kernel
/// latency-bound.
const UNDER_ALL: f64 = 60.0;

/// Distance of a point from its roof, and the nearest roof for the same work.
fn of_point(plot: &roofline::Plot, p: &roofline::Point, screen: &ResultScreen, open: &str) -> String {
    let share = |p: &roofline::Point| p.achieved / p.attainable * 100.0;
    let roof = |p: &roofline::Point| if p.memory_bound { plot.placed.level_name(p.level) } else { "the compute peak" };
    let nearest = plot.points.iter().filter(|o| o.own && o.work == p.work).max_by(|a, b| share(a).total_cmp(&share(b))).unwrap_or(p);
    // The chart's two roofs do not cover all units, but the diagnosis does: the two must agree.
    let more = if share(nearest) < UNDER_ALL {
        match screen.subject.hints.first() {
            Some(hint) => format!("no roof of this chart is the limit; {}: {}", hint.id.id(), hint.headline),
            None => "far below every roof: latency or another unit is the limit, see the warp states".to_owned(),
        }
    } else if roof(nearest) == roof(p) {
        format!("{open} shows how it is computed")
    } else {
        format!("the nearest roof is {}: {:.0}%", roof(nearest), share(nearest))
    };
    format!("{:.0}% of what {} allows at this intensity; {more}", share(p), roof(p))
}

/// Launches screen: ratio of the slowest launch to the median, and the key that selects the slowest one.
fn of_launches(app: &App, profile: &Profile, screen: &LaunchesScreen) -> Option<String> {
    let list = screen.list.as_ref()?;
    let (slowest, stats) = (list.slowest?, list.stats.as_ref()?);
    let duration = profile.launches.duration(slowest as usize);
    let key = app.session.key_link(ActionId::Jump);
    let there = if screen.selected_launch() == Some(slowest) { "selected now".to_owned() } else { format!("{key} s goes there") };
    let name = units::format_grouped(i64::from(slowest));
    let compared = match stats.median {
        Some(median) if median > 0.0 && screen.grouped_by().is_kernel() => {
            let factor = duration as f64 / median;
            let by = if factor < 2.0 { format!("{:.0}% over", (factor - 1.0) * 100.0) } else { format!("{factor:.1} times") };
            format!(", {by} the median")
        }
        _ => String::new(),
    };
    Some(format!("the slowest is launch {name}: {}{compared} ({there})", Nanos(duration)))
}

/// Number of lines of the next step: one, or two if there is room.
pub fn next_height(app: &App, width: u16) -> u16 {
    let columns = usize::from(width.saturating_sub(8)).max(20);
    // A message must not change the height, so that the screen does not move.
    let lines = next_step_text(app).map_or(1, |s| wrap_text(&s, columns).len());
    if app.session.size.1 >= 22 { u16::try_from(lines.clamp(1, 2)).unwrap_or(1) } else { 1 }
}

/// Draws the next step, or the current message.
pub fn next(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme, ascii: bool) {
    if let Some(status) = &app.status {
        draw_message(frame, area, status, theme, ascii);
        return;
    }
    let Some(text) = next_step_text(app) else { return };
    let columns = usize::from(area.width.saturating_sub(8)).max(20);
    let shown = |piece: &str| if ascii { super::ascii::spell_out_keys(&escape_unsafe(piece)) } else { escape_unsafe(piece).into_owned() };
    let text = text.split(LINK).map(shown).collect::<Vec<_>>().join(&LINK.to_string());
    let mut lines = wrap_text(&text, columns);
    let height = usize::from(area.height.max(1));
    if lines.len() > height {
        let rest = lines[height - 1..].join(" ");
        lines.truncate(height - 1);
        lines.push(crate::analysis::labels::cut_end(&rest, columns));
    }
    let lines = lines.into_iter().enumerate().map(|(i, line)| {
        let mut spans = vec![Span::styled(if i == 0 { "next: " } else { "      " }, theme.style(Role::Dim))];
        // Keys are enclosed in `LINK` characters.
        let pieces = line.split(LINK).enumerate();
        spans.extend(pieces.map(|(i, piece)| Span::styled(piece.to_owned(), theme.style(if i % 2 == 1 { Role::Key } else { Role::Next }))));
        Drawn::from(spans)
    });
    frame.render_widget(lines.collect::<Text<'_>>(), Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area });
}

/// Draws a message in place of the next step for a few seconds.
fn draw_message(frame: &mut Frame<'_>, area: Rect, status: &Status, theme: &Theme, ascii: bool) {
    let columns = usize::from(area.width.saturating_sub(4)).max(20);
    let text = if ascii { super::ascii::spell_out_keys(&status.text) } else { status.text.clone() };
    let (mark, role) = if status.error { ("▲ ", Role::Bad) } else { ("• ", Role::Title) };
    let height = usize::from(area.height.max(1));
    let mut lines = wrap_text(&escape_unsafe(&text), columns);
    if lines.len() > height {
        let rest = lines[height - 1..].join(" ");
        lines.truncate(height - 1);
        lines.push(crate::analysis::labels::cut_end(&rest, columns));
    }
    let lines = lines.into_iter().enumerate().map(|(i, line)| {
        let head = if i == 0 { mark } else { "  " };
        Drawn::from(vec![Span::styled(head, theme.style(role)), Span::styled(line, theme.style(role))])
    });
    frame.render_widget(lines.collect::<Text<'_>>(), Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area });
}

/// Draws the reason why a report could not be read.
pub fn draw_failure(frame: &mut Frame<'_>, area: Rect, app: &App, theme: &Theme) {
    let Some(Stage::Failed(why)) = app.report().map(|r| &r.stage) else {
        return;
    };
    let columns = usize::from(area.width.saturating_sub(8)).clamp(20, 100);
    let mut lines = vec![Drawn::styled("This report could not be opened.", theme.style(Role::Bad)), Drawn::default()];
    // The sentence ends with the next step: put it on its own line.
    let why = escape_unsafe(why);
    let (what, next) = why.rsplit_once("; ").unwrap_or((&why, ""));
    lines.extend(wrap_text(what, columns).into_iter().map(|l| Drawn::styled(l, theme.style(Role::Text))));
    if !next.is_empty() {
        lines.push(Drawn::default());
        lines.extend(wrap_text(next, columns).into_iter().map(|l| Drawn::styled(l, theme.style(Role::Next))));
    }
    let top = area.height.saturating_sub(u16::try_from(lines.len()).unwrap_or(area.height)) / 3;
    frame.render_widget(
        Text::from(lines),
        Rect { x: area.x + 4, y: area.y + top, width: area.width.saturating_sub(8), height: area.height - top },
    );
}
