//! State of the library screen: what was recorded, and what can be done with it. Home when no report is open.

use super::pick::{Choice, Item, Pick};
use super::run::{RunScreen, Start, add};
use super::{App, Effect, LineOf, Overlay, Status};
use crate::launch::runs::options;
use crate::library::Run;
use crate::rerun::shell;
use std::path::PathBuf;
use tui_input::Input;

/// The screen.
#[derive(Clone, Debug, Default)]
pub struct LibraryScreen {
    /// All runs, the newest first; `None` until they are read.
    pub runs: Option<Vec<Run>>,
    /// Why they could not be read.
    pub trouble: Option<String>,
    /// Indices of the runs that match the filter.
    pub shown: Vec<usize>,
    /// Typed filter.
    pub filter: Input,
    /// Whether keys go to the filter.
    pub typing: bool,
    /// Index of the selected one in `shown`.
    pub selected: usize,
    /// The run that others are compared with.
    pub marked: Option<i64>,
    /// Now, milliseconds since 1970.
    pub now_ms: i64,
}

impl LibraryScreen {
    /// The selected run.
    #[must_use]
    pub fn run(&self) -> Option<&Run> {
        self.runs.as_ref()?.get(*self.shown.get(self.selected)?)
    }

    /// Lists what matches the filter.
    pub fn arrange(&mut self) {
        let words = self.filter.value();
        let runs = self.runs.as_deref().unwrap_or_default();
        self.shown = runs.iter().enumerate().filter(|(_, r)| r.matches(words)).map(|(i, _)| i).collect();
        self.selected = self.selected.min(self.shown.len().saturating_sub(1));
    }
}

fn say(app: &mut App, text: impl Into<String>, error: bool) -> Vec<Effect> {
    app.status = Some(Status { text: text.into(), error });
    Vec::new()
}

/// Opens the screen.
pub fn open(app: &mut App) -> Vec<Effect> {
    if app.library.is_none() {
        app.library = Some(LibraryScreen::default());
    }
    if let Some(run) = &mut app.run {
        run.shown = false;
    }
    app.diff = None;
    vec![Effect::Library]
}

/// Takes the list.
pub fn take(app: &mut App, outcome: Result<(Vec<Run>, i64), String>) -> Vec<Effect> {
    let Some(screen) = &mut app.library else { return Vec::new() };
    match outcome {
        Ok((runs, now)) => {
            let before = screen.run().map(|r| r.id);
            screen.runs = Some(runs);
            screen.trouble = None;
            screen.now_ms = now;
            screen.arrange();
            // New runs come in above: the selection stays on its run.
            let at = screen.shown.iter().position(|&i| screen.runs.as_ref().and_then(|r| r.get(i)).map(|r| r.id) == before);
            screen.selected = at.unwrap_or(screen.selected);
        }
        Err(text) => screen.trouble = Some(text),
    }
    Vec::new()
}

fn selected(app: &App) -> Option<&Run> {
    app.library.as_ref()?.run()
}

/// Opens the selected run: its reports, or where there are none, what it printed.
pub fn enter(app: &mut App) -> Vec<Effect> {
    let Some(run) = selected(app).cloned() else { return say(app, "no run is selected", true) };
    if run.state.live() {
        return log(app);
    }
    let files: Vec<PathBuf> = run.openable().map(|r| r.path.clone()).filter(|p| p.exists()).collect();
    if files.is_empty() {
        let gone = if run.reports.is_empty() { "it left no report" } else { "its reports are not there any more" };
        let effects = log(app);
        say(app, format!("{gone}: this is what it printed"), false);
        return effects;
    }
    show(app, &files)
}

/// Shows reports, opening those that are not open yet.
fn show(app: &mut App, files: &[PathBuf]) -> Vec<Effect> {
    let new: Vec<PathBuf> = files.iter().filter(|f| app.reports.iter().all(|r| r.file != **f)).cloned().collect();
    let effects = if new.is_empty() { Vec::new() } else { add(app, new) };
    if let Some(at) = files.first().and_then(|f| app.reports.iter().position(|r| r.file == *f)) {
        app.active = at;
    }
    app.library = None;
    effects
}

/// What the selected run printed; of a live one, as it comes.
pub fn log(app: &mut App) -> Vec<Effect> {
    if app.run.as_ref().is_some_and(|r| r.live() && r.mine) {
        let mine = app.run.as_ref().and_then(|r| r.run.as_ref()).map(|r| r.id);
        if mine.is_some() && mine == selected(app).map(|r| r.id) {
            return super::run::watch(app);
        }
        return say(app, "a run of this session is under way; it must end first", true);
    }
    let Some(run) = selected(app).cloned() else { return say(app, "no run is selected", true) };
    let mut screen = RunScreen::new(shell::line(&run.argv), Some(Box::new(run.clone())), false);
    screen.opens = run.state.live();
    app.run = Some(screen);
    vec![Effect::Follow(run.id)]
}

/// Runs the selected run's command once more.
pub fn again(app: &mut App) -> Vec<Effect> {
    let Some(run) = selected(app).cloned() else { return say(app, "no run is selected", true) };
    if app.run.as_ref().is_some_and(RunScreen::live) {
        return say(app, "a run is under way; it must end first", true);
    }
    // The report's name is in the command: it goes to the new run's folder.
    if options::report_at(&run.argv, run.program.len(), &run.tool).is_none() {
        return say(app, "it is not known how this command names its report; start it again with `warpscope run`", true);
    }
    let start = Start {
        argv: run.argv.clone(),
        program: run.program.clone(),
        tool: run.tool.clone(),
        recipe: run.recipe.clone(),
        directory: Some(run.directory.clone()),
        own: true,
        env: run.env.clone(),
        named: String::new(),
        from: run.reports.first().map(|r| r.path.clone()),
        selects: Vec::new(),
    };
    if let Some(gone) = run.support.iter().find(|p| !p.exists()) {
        let text = format!("{} is not there any more, and the command needs it; start it again with `warpscope run`", gone.display());
        return say(app, text, true);
    }
    app.queue = super::run_queue::Queue::default();
    app.starting = Some((start.clone(), None));
    say(app, "looking at what may stand in the way …", false);
    vec![Effect::Preflight(Box::new(start))]
}

/// Marks the selected run, or compares it with the marked one.
pub fn compare(app: &mut App) -> Vec<Effect> {
    let Some(run) = selected(app).cloned() else { return say(app, "no run is selected", true) };
    let Some(screen) = &mut app.library else { return Vec::new() };
    match screen.marked {
        Some(id) if id != run.id => {
            let file = |r: &Run| r.openable().next().map(|r| r.path.clone());
            let other = screen.runs.iter().flatten().find(|r| r.id == id).and_then(file);
            let (Some(before), Some(after)) = (other, file(&run)) else { return say(app, "one of them left no report", true) };
            screen.marked = None;
            let effects = show(app, &[before.clone(), after.clone()]);
            let at = |f: &PathBuf| app.reports.iter().position(|r| r.file == *f);
            let (Some(a), Some(b)) = (at(&before), at(&after)) else { return effects };
            let mut effects = effects;
            effects.extend(super::diff::open_on(app, a, b));
            effects
        }
        Some(_) => {
            screen.marked = None;
            say(app, "not marked any more", false)
        }
        None => {
            screen.marked = Some(run.id);
            say(app, format!("run {} is the one before; choose the one after it and press the same key", run.id), false)
        }
    }
}

/// Goes to the run that the selected one is a re-run of; at the first of a chain says what came of it.
pub fn origin(app: &mut App) -> Vec<Effect> {
    let Some((id, parent)) = selected(app).map(|r| (r.id, r.parent)) else { return say(app, "no run is selected", true) };
    let Some(screen) = app.library.as_mut() else { return Vec::new() };
    let runs = screen.runs.as_deref().unwrap_or_default();
    let Some(parent) = parent else {
        let mut again: Vec<String> = runs.iter().filter(|r| r.parent == Some(id)).map(|r| r.id.to_string()).collect();
        again.reverse();
        let text = if again.is_empty() {
            format!("run {id} is no re-run, and has none")
        } else {
            format!("run {id} is where it began; its re-runs: {}", again.join(", "))
        };
        return say(app, text, false);
    };
    let Some(index) = runs.iter().position(|r| r.id == parent) else {
        return say(app, format!("run {parent} is not in the library any more"), true);
    };
    if !screen.shown.contains(&index) {
        screen.filter.reset();
        screen.arrange();
    }
    screen.selected = screen.shown.iter().position(|&i| i == index).unwrap_or(screen.selected);
    say(app, format!("run {id} is a re-run of run {parent}"), false)
}

/// Asks before a run is deleted.
pub fn ask_delete(app: &mut App) -> Vec<Effect> {
    let Some(run) = selected(app).cloned() else { return say(app, "no run is selected", true) };
    if run.state.live() {
        return say(app, "it is under way: stop it first", true);
    }
    let item = |label: String, hint: &str, letter, choice| Item { label, hint: hint.to_owned(), letter, choice };
    let items = vec![
        item("keep it".to_owned(), "", Some('b'), Choice::Run(super::run_ask::RunChoice::Nothing)),
        item(
            format!("delete run {}", run.id),
            "its row and the reports in its folder; this cannot be undone",
            Some('d'),
            Choice::Forget(run.id),
        ),
    ];
    app.overlay = Some(Overlay::Pick(Pick::by_letter("delete", items, None)));
    Vec::new()
}

/// Asks for tags or for a note.
pub fn ask_line(app: &mut App, what: LineOf) -> Vec<Effect> {
    let Some(run) = selected(app) else { return say(app, "no run is selected", true) };
    let text = if what == LineOf::Note { run.notes.clone() } else { run.tags.join(" ") };
    app.overlay = Some(Overlay::Line(what, Input::new(text)));
    Vec::new()
}

/// Takes them.
pub fn take_line(app: &mut App, what: LineOf, text: &str) -> Vec<Effect> {
    let Some(run) = selected(app) else { return Vec::new() };
    let id = run.id;
    if what == LineOf::Note {
        return vec![Effect::Note(id, text.trim().to_owned())];
    }
    vec![Effect::Tags(id, text.split_whitespace().map(str::to_owned).collect())]
}

/// Off the screen: its filter first, then back to the reports, where there are any.
pub fn leave(app: &mut App, quit: &str) -> Vec<Effect> {
    let Some(screen) = &mut app.library else { return Vec::new() };
    if !screen.filter.value().is_empty() {
        screen.filter.reset();
        screen.arrange();
        return Vec::new();
    }
    if app.reports.is_empty() {
        return say(app, format!("{quit} quits"), false);
    }
    app.library = None;
    Vec::new()
}

/// All there is to know of the run that is shown or selected.
pub fn facts(app: &mut App) -> Vec<Effect> {
    let now = app.library.as_ref().map_or(0, |l| l.now_ms);
    let watched = app.run.as_ref().filter(|r| r.shown).and_then(|r| Some((r.run.as_deref()?, r.now_ms)));
    let Some((run, now)) = watched.or_else(|| selected(app).map(|r| (r, now))) else { return say(app, "no run is selected", true) };
    let lines = crate::report::runs::facts(run, &shell::line(&run.argv), now);
    app.overlay = Some(Overlay::RunFacts(0, lines.into()));
    Vec::new()
}
