//! Screens about one result: common header, and drawing of the current view.

mod compare;
pub mod diagnosis_charts;
pub mod explain;
pub mod hints;
pub mod memory_chart;
pub mod metrics;
pub mod next_step;
pub mod roofline;
pub mod roofline_chart;
pub mod source;

use super::text::{fit_parts, part};
use super::view::View;
use super::widgets::gauges::FIGURES;
use super::widgets::{gauge, severity_glyph};
use super::{Role, Theme};
use crate::analysis::hints::Hint;
use crate::analysis::hints::limits::AT_LIMIT;
use crate::analysis::labels::cut_middle;
use crate::analysis::metric::Lookup;
use crate::analysis::readable::readable_name;
use crate::analysis::worth::Worth;
use crate::app::overlay::FilterInput;
use crate::app::{App, LaunchesScreen, ResultScreen, ResultView};
use crate::model::config::format_dim3;
use crate::model::metrics::IN_PLACE;
use crate::model::text::escape_unsafe;
use crate::model::units;
use crate::rerun::match_results::Sure;
use crate::ui::screens::{Place, ScreenView};
use ratatui::Frame;
use ratatui::layout::{Constraint, Layout, Rect};
use ratatui::text::{Line, Span};

impl ScreenView for ResultScreen {
    fn draw(&self, frame: &mut Frame<'_>, at: Place, app: &App, view: &mut View, theme: &Theme) {
        draw(frame, at.area, app, self, view, theme);
    }

    fn next_step(&self, app: &App) -> Option<String> {
        Some(next_step::next(app, self))
    }

    fn filter(&self) -> Option<&FilterInput> {
        Some(&self.sections.finder)
    }
}

/// Effect of a hint on the run in which the result's launch is.
fn worth_in_run(app: &App, screen: &ResultScreen, hint: &Hint) -> Option<Worth> {
    screen.worth_in_run(&app.session, app.session.active, hint)
}

/// Glyph and color of a hint on the result. Takes the effect on the run into account, as the list of kernels does.
fn hint_mark(app: &App, screen: &ResultScreen, hint: &Hint) -> (&'static str, Role) {
    severity_glyph(hint.severity_in_run(worth_in_run(app, screen, hint).as_ref()))
}

/// Draws the current view.
fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, screen: &ResultScreen, view: &mut View, theme: &Theme) {
    let inner = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let [title, figures, body] = Layout::vertical([Constraint::Length(1), Constraint::Length(1), Constraint::Min(4)]).areas(inner);
    frame.render_widget(heading_line(app, screen, theme, inner.width.into()), title);
    frame.render_widget(summary_line(screen, theme, inner.width.into()), figures);
    match screen.view {
        ResultView::Metrics => metrics::draw(frame, body, app, screen, view, theme),
        ResultView::Hints => hints::draw(frame, body, app, screen, view, theme),
        ResultView::Roofline => roofline::draw(frame, body, screen, view, theme),
        ResultView::Compare => compare::draw(frame, body, app, screen, view, theme),
        ResultView::Source => source::draw(frame, body, screen, view, theme),
    }
}

/// Kernel, launch configuration, duration measured by ncu, and position among the results.
fn heading_line(app: &App, screen: &ResultScreen, theme: &Theme, columns: usize) -> Line<'static> {
    let (dim, text) = (theme.style(Role::Dim), theme.style(Role::Text));
    let Some(result) = screen.metrics.results.get(screen.result) else { return Line::default() };
    let mut tail = Vec::new();
    if result.failed {
        tail.push(part(0, vec![Span::styled("not profiled", theme.style(Role::Bad))]));
    }
    if let Some(d) = screen.metrics.duration(result) {
        let clocks = match result.clocks_locked {
            _ if screen.metrics.source.tool == IN_PLACE => "in place",
            // AMD results show the tool that wrote the report, with its version.
            _ if screen.subject.is_amd() => &screen.metrics.source.tool,
            Some(true) => "ncu, locked clocks",
            _ => "ncu",
        };
        tail.push(part(1, vec![Span::styled(d.to_string(), text), Span::styled(format!(" ({clocks})"), dim)]));
    }
    if let (Some(grid), Some(block)) = (result.grid, result.block) {
        tail.push(part(2, vec![Span::styled(format!("({}) × ({})", format_dim3(grid), format_dim3(block)), text)]));
    }
    tail.push(part(
        3,
        vec![Span::styled(format!("result {} ({} of {})", screen.result, screen.result + 1, screen.metrics.results.len()), dim)],
    ));
    if let Some(sure) = screen.sure {
        let behind = app.launches_screen(app.session.active).and_then(LaunchesScreen::selected_launch);
        let pair = app.report().and_then(|r| r.launch_of(screen.report, screen.result));
        let other = behind.zip(pair).is_some_and(|(b, p)| b != p.launch);
        let (word, role) = if other {
            ("of another launch", Role::Warn)
        } else if sure == Sure::Measured {
            ("◆ in this run", Role::Good)
        } else if sure.is_exact() {
            ("◆ this launch", Role::Good)
        } else {
            ("◇ similar launch", Role::Warn)
        };
        tail.push(part(1, vec![Span::styled(word, theme.style(role))]));
    } else if app.report().is_some_and(|r| r.profile.as_ref().is_some_and(|p| p.metrics.is_none())) {
        tail.push(part(4, vec![Span::styled("of another launch", theme.style(Role::Warn))]));
    }
    let tail = fit_parts(tail, &Span::raw("   "), columns * 2 / 3);
    let name = escape_unsafe(&readable_name(&result.kernel)).into_owned();
    let room = columns.saturating_sub(tail.width() + 5);
    let mut spans =
        vec![Span::styled("‹ ", theme.style(Role::Key)), Span::styled(cut_middle(&name, room), theme.style(Role::Title)), Span::raw("   ")];
    spans.extend(tail.spans);
    Line::from(spans)
}

fn summary_line(screen: &ResultScreen, theme: &Theme, columns: usize) -> Line<'static> {
    let Some(result) = screen.metrics.results.get(screen.result) else { return Line::default() };
    let lookup = Lookup::new(&screen.metrics, result);
    let bars = if columns >= 110 { 12 } else { 6 };
    let mut parts = Vec::new();
    for ((word, names), rank) in FIGURES.into_iter().zip(0..) {
        if let Some(percent) = lookup.first_finite(names) {
            let mut spans = vec![Span::styled(format!("{word} "), theme.style(Role::Dim))];
            spans.push(Span::styled(format!("{} ", units::format_whole_percent(percent)), theme.style(Role::Title)));
            let limit = (word != "occupancy").then_some(AT_LIMIT.value / 100.0);
            spans.extend(gauge(percent / 100.0, bars, limit, theme));
            parts.push(part(rank, spans));
        }
    }
    if screen.subject.is_amd() {
        for ((unit, share), rank) in screen.subject.units.iter().zip(0..) {
            let mut spans = vec![Span::styled(format!("{unit} "), theme.style(Role::Dim))];
            spans.push(Span::styled(format!("{} ", units::format_whole_percent(share * 100.0)), theme.style(Role::Title)));
            spans.extend(gauge(*share, bars, Some(AT_LIMIT.value / 100.0), theme));
            parts.push(part(rank, spans));
        }
    }
    if parts.is_empty() && screen.subject.is_amd() {
        let text = if crate::analysis::code::has_thread_trace(&screen.metrics) {
            if screen.metrics.names.iter().any(|n| matches!(&**n, "PC_Issued" | "PC_Samples")) {
                "PC samples of waves, instruction by instruction"
            } else {
                "cycles of the waves of one CU, instruction by instruction"
            }
        } else {
            "counters of rocprofv3, collected while one kernel ran at a time"
        };
        return Line::styled(text, theme.style(Role::Dim));
    }
    if parts.is_empty() {
        let how = if screen.subject.failed {
            "no counters: ncu could not profile this launch"
        } else if screen.metrics.source.tool == IN_PLACE {
            "speed of light was not measured: warpscope run --measure KERNEL#N"
        } else {
            "speed of light was not collected: --section SpeedOfLight"
        };
        return Line::styled(how, theme.style(Role::Dim));
    }
    fit_parts(parts, &Span::raw("  "), columns)
}

/// Brightness of a percentage of a peak: at 80 and above, the unit is at its limit, according to NVIDIA's
/// speed-of-light rule. This is not a problem in itself, so it has no warning color.
fn level_role(percent: f64) -> Role {
    if percent >= AT_LIMIT.value { Role::Peak } else { Role::Bar }
}
