//! Footer line with the most useful keys of the current screen.

use super::screens::view_of;
use super::text::{fit_placed, part};
use super::view::View;
use super::{Role, Theme};
use crate::app::screens::{Kind, overview};
use crate::app::{
    ACTIONS, ActionId, App, KeyScope, Mouse, Open, OverlayKind, OverviewScreen, Report, RerunScreen, ResultScreen, ResultView,
};
use crate::rerun::Rerun;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

pub fn draw(frame: &mut Frame<'_>, area: Rect, app: &App, view: &mut View, theme: &Theme) {
    let columns = usize::from(area.width.saturating_sub(2));
    let area = Rect { x: area.x + 1, width: area.width.saturating_sub(2), ..area };
    let (line, places) = key_line(app, theme, columns, view.ascii);
    frame.render_widget(line, area);
    for (action, at, wide) in places {
        let (Some(action), Ok(at), Ok(width)) = (action, u16::try_from(at), u16::try_from(wide)) else { continue };
        view.hits.push((Rect { x: area.x + at, width, ..area }, Mouse::Action(action)));
    }
}

/// An action with its first column and width.
type Placed = (Option<ActionId>, usize, usize);

/// Builds the footer line, with the position of each action.
/// Returns true if a result has the view that the action opens. A comparison needs another result.
fn offers_view(app: &App, screen: &ResultScreen, id: ActionId) -> bool {
    let results =
        || app.session.reports.iter().filter_map(|r| r.profile.as_ref()?.metrics.as_ref()).map(|m| m.results.len()).sum::<usize>();
    match id {
        ActionId::Roofline => screen.has_view(ResultView::Roofline),
        ActionId::Source => screen.has_view(ResultView::Source),
        ActionId::Compare => results() > 1,
        _ => true,
    }
}

fn key_line(app: &App, theme: &Theme, columns: usize, ascii: bool) -> (Line<'static>, Vec<Placed>) {
    let pair = |action: Option<ActionId>, rank: u8, key: String, word: &str| {
        let key = if ascii { crate::config::keys::spell_out_keys(&key) } else { key };
        (action, part(rank, vec![Span::styled(key, theme.style(Role::Key)), Span::styled(format!(" {word}"), theme.style(Role::Dim))]))
    };
    let fixed = |pairs: &[(&str, &str)]| pairs.iter().zip(0..).map(|((k, w), i)| pair(None, i, (*k).to_owned(), w)).collect();
    let finder = app.top_entry().and_then(|e| view_of(&e.open).filter());
    let parts = match app.over.as_ref().map(|o| &o.what) {
        Some(OverlayKind::Pick(pick)) if pick.typed.is_some() => {
            fixed(&[("⏎", "choose"), ("esc", "close"), ("↑↓", "move"), ("type", "to narrow")])
        }
        Some(OverlayKind::Pick(pick)) if pick.items.iter().any(|i| i.letter.is_some()) => {
            fixed(&[("⏎", "choose"), ("esc", "close"), ("↑↓", "move"), ("letter", "choose at once")])
        }
        Some(OverlayKind::Pick(_)) => fixed(&[("⏎", "choose"), ("esc", "close"), ("↑↓", "move")]),
        Some(OverlayKind::Line(..)) => fixed(&[("⏎", "accept"), ("esc", "close")]),
        Some(OverlayKind::Number(_)) => fixed(&[("⏎", "go"), ("esc", "close")]),
        Some(OverlayKind::Page(page, _)) => {
            let mut parts: Vec<_> = fixed(&[("esc", "close"), ("↑↓", "scroll")]);
            if page.command(&app.session).is_some() {
                parts.push(pair(None, 2, app.session.key_label(ActionId::Copy), "copy command"));
            }
            parts
        }
        None if finder.is_some_and(|f| f.typing) => fixed(&[("⏎", "keep filter"), ("esc", "clear"), ("↑↓", "move")]),
        None => {
            let here = app.current_scope();
            let watched = app.running.watched.as_ref();
            let failed = app.shows_failure();
            let shows_collectives = matches!(app.top_entry().map(|e| &e.open), Some(Open::Ranks(s)) if s.collectives.is_some());
            let measured =
                matches!(here, KeyScope::Kernels | KeyScope::Launches | KeyScope::Timeline) && app.top_selection().result.is_some();
            let has_ranges = app.report().and_then(|r| r.profile.as_ref()).is_none_or(|p| !p.ranges.names.is_empty());
            let rerun = app.top_entry().and_then(|e| match &e.open {
                Open::Rerun(screen) => Some(screen),
                _ => None,
            });
            let mut parts: Vec<_> = ACTIONS
                .iter()
                .filter(|a| a.on.applies_to(here))
                // There is nothing to act on in a report that could not be opened.
                .filter(|a| !failed || matches!(a.id, ActionId::Library | ActionId::Help | ActionId::Quit | ActionId::Palette | ActionId::Notes))
                .filter(|a| match (a.id, here) {
                    // These actions require ncu results.
                    (ActionId::Metrics, KeyScope::Metrics)
                    | (ActionId::Hints, KeyScope::Hints)
                    | (ActionId::Roofline, KeyScope::Roofline)
                    | (ActionId::Source, KeyScope::Source)
                    | (ActionId::Compare, KeyScope::Compare) => false,
                    // Other keys matter more there.
                    (ActionId::Kernels, there) if KeyScope::Results.applies_to(there) => false,
                    (ActionId::Metrics, there) if KeyScope::Results.applies_to(there) => true,
                    (ActionId::Rerun, KeyScope::Timeline) => app.top_selection().launch.is_some(),
                    (ActionId::Open, KeyScope::Launches) | (ActionId::Metrics, _) => measured,
                    (ActionId::Hints | ActionId::Rerun, KeyScope::Overview) => {
                        let selected = app.top_entry().and_then(|e| OverviewScreen::of(&e.open)).map(|s| s.selected);
                        let triage = app.report().and_then(overview::available_triage);
                        triage.zip(selected).is_none_or(|(t, at)| overview::finding_between_kernels(&app.session, app.session.active, t, at).is_none())
                    }
                    // Several reports with collectives are probably ranks of one job.
                    (ActionId::Ranks, KeyScope::Overview | KeyScope::Kernels | KeyScope::Timeline) => {
                        let talking = |r: &Report| r.whole_triage().map_or(0, |t| t.talking_devices());
                        app.session.reports.iter().map(talking).sum::<usize>() > 1
                    }
                    (
                        ActionId::Open
                        | ActionId::Fold
                        | ActionId::FoldAll
                        | ActionId::Filter
                        | ActionId::Copy
                        | ActionId::Hints
                        | ActionId::Rerun
                        | ActionId::Sort,
                        KeyScope::Ranges,
                    ) => {
                        !matches!(app.top_entry().map(|e| &e.open), Some(Open::Ranges(s)) if s.tree.as_ref().is_none_or(|t| t.nodes.is_empty()))
                    }
                    (ActionId::MemoryBeside, KeyScope::Memory) => app.session.reports.iter().filter(|r| r.has_memory()).count() > 1,
                    (ActionId::Memory, KeyScope::Overview | KeyScope::Kernels | KeyScope::Timeline) => app.report().is_some_and(Report::has_memory),
                    (ActionId::Lines, there) => {
                        there != KeyScope::Lines && app.report().and_then(|r| r.profile.as_ref()).is_some_and(|p| p.has_host_stacks())
                    }
                    // Without calls, there is nothing to open, fold or find.
                    (ActionId::Open | ActionId::Fold | ActionId::FoldAll | ActionId::Filter | ActionId::Copy, KeyScope::Lines) => {
                        !matches!(app.top_entry().map(|e| &e.open), Some(Open::Lines(s)) if s.tree.nodes.is_empty())
                    }
                    (ActionId::Open | ActionId::Instructions, KeyScope::Source) => {
                        !matches!(app.top_entry().map(|e| &e.open), Some(Open::Result(s)) if !s.source.has_lines())
                    }
                    (ActionId::CodeOrder | ActionId::Copy, KeyScope::Source) => {
                        !matches!(app.top_entry().map(|e| &e.open), Some(Open::Result(s)) if s.source.row_count() == 0)
                    }
                    (
                        ActionId::Roofline | ActionId::Source | ActionId::Compare,
                        KeyScope::Hints | KeyScope::Source | KeyScope::Metrics | KeyScope::Roofline | KeyScope::Compare,
                    ) => !matches!(app.top_entry().map(|e| &e.open), Some(Open::Result(s)) if !offers_view(app, s, a.id)),
                    (ActionId::MeasureNow, _) => app.report().and_then(|r| r.profile.as_ref()).is_none_or(|p| !p.is_amd()),
                    (ActionId::Narrow, there) => there == KeyScope::Timeline || app.report().is_some_and(|r| r.chosen_window().is_some()),
                    (ActionId::MemorySegments, _) => app.session.size.0 < super::memory::WIDE,
                    (ActionId::Ranks | ActionId::Memory, _)
                    | (ActionId::Roofline | ActionId::Source, KeyScope::Kernels | KeyScope::Launches | KeyScope::Timeline)
                    | (ActionId::Open, KeyScope::Run)
                    | (ActionId::Library, KeyScope::Library)
                    // Hide actions that the screen itself already offers.
                    | (ActionId::Timeline | ActionId::Kernels | ActionId::Hints | ActionId::Copy | ActionId::Overview | ActionId::Ranges, KeyScope::Timeline)
                    | (ActionId::Overview, KeyScope::Overview) => false,
                    (ActionId::Back, KeyScope::Kernels) => app.session.changes_behind == Some(app.session.active),
                    (ActionId::Open | ActionId::Back, KeyScope::Memory) if app.report().is_some_and(|r| !r.has_device_work()) => false,
                    (ActionId::Back, KeyScope::Overview) => !app.top_entry().is_some_and(|e| app.is_home(e.id)),
                    (ActionId::Step | ActionId::SkipStep, _) => watched.is_some_and(|w| w.next_step().is_some()),
                    (ActionId::Ranges, KeyScope::Kernels | KeyScope::Launches) if !has_ranges => false,
                    (ActionId::Overview | ActionId::Timeline | ActionId::Ranges, KeyScope::Kernels | KeyScope::Launches) => {
                        app.report().is_none_or(|r| r.profile.is_none() || r.is_timeline())
                    }
                    (ActionId::Timeline, KeyScope::Hints | KeyScope::Source | KeyScope::Metrics | KeyScope::Roofline | KeyScope::Compare) => {
                        app.report().and_then(|r| r.profile.as_ref()).is_some_and(|p| p.ranges.is_hardware())
                    }
                    // In an empty library, only the demo can be opened.
                    (ActionId::Open | ActionId::RunAgain | ActionId::RunCompare | ActionId::RunOrigin | ActionId::RunLog | ActionId::RunFacts
                    | ActionId::RunTags | ActionId::RunNote | ActionId::RunDelete | ActionId::FindRun | ActionId::Copy, KeyScope::Library) => {
                        !matches!(app.top_entry().map(|e| &e.open), Some(Open::Library(s)) if s.runs.as_ref().is_none_or(Vec::is_empty))
                    }
                    (ActionId::Pause | ActionId::Gate | ActionId::Measure | ActionId::Snapshot, _) => watched.is_some_and(|w| w.is_live() && w.traced.live.is_some()),
                    // A single report has nothing to be compared with, and one without ranges has no tree.
                    (ActionId::Diff, KeyScope::Overview | KeyScope::Kernels) => !app.session.baselines().is_empty(),
                    (ActionId::Ranges, KeyScope::Overview) => has_ranges,
                    // Without a program there is nothing to run, without a command nothing to copy.
                    (ActionId::RunHere, KeyScope::Rerun) => {
                        rerun.is_none_or(|s| !s.has_no_command() && s.current_rerun().is_none_or(Rerun::is_runnable))
                    }
                    (ActionId::Copy | ActionId::Save | ActionId::Verify, KeyScope::Rerun) => rerun.is_none_or(|s| !s.has_no_command()),
                    (ActionId::Undo, KeyScope::Rerun) => rerun.is_some_and(RerunScreen::has_changes),
                    (ActionId::Output, _) => watched.is_some_and(|w| w.is_live() && w.traced.live.is_some() && w.outside.is_none()),
                    (ActionId::StopRun, _) => watched.is_some_and(|w| w.is_live() && w.outside.is_none()),
                    (ActionId::Detach, _) => watched.is_some_and(|w| w.is_live() && w.mine),
                    _ => true,
                })
                .filter_map(|a| {
                    let (rank, word) = a.footer?;
                    let word = match (a.id, here) {
                        (ActionId::Pause, _) if watched.is_some_and(|w| w.traced.paused) => "go on",
                        (ActionId::Gate, _) => match watched.and_then(|w| w.traced.live.as_ref()?.is_recording()) {
                            Some(false) => "open",
                            _ => "close",
                        },
                        (ActionId::Output, _) if watched.is_some_and(|w| w.traced.printing) => "GPU",
                        (ActionId::Open, KeyScope::Rerun) => "change",
                        (ActionId::Open, KeyScope::Metrics | KeyScope::Roofline | KeyScope::Compare) => "explain",
                        (ActionId::Open, KeyScope::Source) => "line/SASS",
                        (ActionId::Open, KeyScope::Launches) => "metrics",
                        (ActionId::Open, KeyScope::Overview) => "go there",
                        (ActionId::Open, KeyScope::Ranges) => "GPU work",
                        (ActionId::WorstStep, KeyScope::Ranks) if shows_collectives => "longest wait",
                        (ActionId::RankCollectives, KeyScope::Ranks) if shows_collectives => "steps",
                        _ => word,
                    };
                    let key = app.session.key_label(a.id);
                    (!key.is_empty()).then(|| pair(Some(a.id), rank, key, word))
                })
                .collect();
            if app.session.reports.len() > 1 {
                parts.insert(
                    0,
                    pair(
                        Some(ActionId::NextReport),
                        2,
                        format!("{}{}", app.session.key_label(ActionId::PreviousReport), app.session.key_label(ActionId::NextReport)),
                        "report",
                    ),
                );
            }
            parts
        }
    };
    fit_placed(parts, &Span::raw("  "), columns)
}
