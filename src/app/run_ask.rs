//! What is asked about a run before it starts and before the program ends, and what the answers do.

use super::pick::{Choice, Item, Pick};
use super::run::{run_here, start, stop_now};
use super::{App, Effect, Overlay};
use crate::launch::runs::Stage;
use crate::model::text::clean;
use crate::rerun::shell;

/// A report may be somebody else's, and names the program that would be run: it is shown first, once for each report.
pub(super) fn ask_trust(app: &mut App, program: &[String]) -> Vec<Effect> {
    let item = |label: &str, hint: String, letter, choice| Item { label: label.to_owned(), hint, letter, choice };
    let items = vec![
        item("run it", clean(&shell::line(program)).into_owned(), Some('r'), Choice::Run(RunChoice::Trust)),
        item("back", "run nothing".to_owned(), Some('b'), Choice::Run(RunChoice::Nothing)),
    ];
    app.overlay = Some(Overlay::Pick(Pick::by_letter("the report names this program", items, None)));
    Vec::new()
}

/// What can be chosen about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunChoice {
    /// Start it.
    Start,
    /// Start the program that a report names: the user has seen it.
    Trust,
    /// Stop it.
    Stop,
    /// Do nothing.
    Nothing,
    /// Stop it and quit.
    StopAndQuit,
    /// Let it go on by itself and quit.
    DetachAndQuit,
}

/// Does what was chosen.
pub fn choose(app: &mut App, choice: RunChoice) -> Vec<Effect> {
    match choice {
        RunChoice::Start => start(app),
        RunChoice::Stop => stop_now(app),
        RunChoice::Trust => {
            if let Some(report) = app.reports.get_mut(app.active) {
                report.trusted = true;
            }
            run_here(app)
        }
        RunChoice::Nothing => {
            app.starting = None;
            Vec::new()
        }
        RunChoice::StopAndQuit => {
            // A stop that is under way goes on by itself: to ask again would cut the writing of the report short.
            let running = app.run.as_ref().is_some_and(|s| s.stage() == Stage::Running);
            let mut effects: Vec<Effect> = running.then_some(Effect::StopRun).into_iter().collect();
            effects.extend(super::update::quit_now(app));
            effects
        }
        RunChoice::DetachAndQuit => {
            let mut effects = vec![Effect::DetachRun];
            effects.extend(super::update::quit_now(app));
            effects
        }
    }
}

/// Whether it is asked what becomes of the run.
#[must_use]
pub fn asked_before_quit(app: &App) -> bool {
    matches!(&app.overlay, Some(Overlay::Pick(pick)) if pick.items.iter().any(|i| i.choice == Choice::Run(RunChoice::StopAndQuit)))
}

/// Asks what becomes of the run before the program ends.
pub fn ask_before_quit(app: &mut App) -> Vec<Effect> {
    let item = |label: &str, hint: &str, letter, choice| Item { label: label.to_owned(), hint: hint.to_owned(), letter, choice };
    let begun = app.run.as_ref().is_some_and(|s| s.run.is_some());
    let mut items = vec![
        item("stop it and quit", "the profiler is asked to stop, and writes what it has", Some('s'), Choice::Run(RunChoice::StopAndQuit)),
        item("detach it and quit", "it goes on; `warpscope attach` shows it again", Some('d'), Choice::Run(RunChoice::DetachAndQuit)),
        item("stay", "", Some('b'), Choice::Run(RunChoice::Nothing)),
    ];
    // What is not there yet cannot be let go of.
    items.retain(|i| begun || i.choice != Choice::Run(RunChoice::DetachAndQuit));
    app.overlay = Some(Overlay::Pick(Pick::by_letter("a run is under way", items, None)));
    Vec::new()
}

/// Asks before a guided run is stopped in the middle of its steps.
pub(super) fn ask_before_stop(app: &mut App) -> Vec<Effect> {
    let item = |label: &str, hint: &str, letter, choice| Item { label: label.to_owned(), hint: hint.to_owned(), letter, choice };
    let items = vec![
        item("go on", "", Some('b'), Choice::Run(RunChoice::Nothing)),
        item("stop the server", "and the profiler, which writes what it has", Some('s'), Choice::Run(RunChoice::Stop)),
    ];
    app.overlay = Some(Overlay::Pick(Pick::by_letter("steps are left", items, None)));
    Vec::new()
}
