//! State of a run that is watched: what the profiler prints, how far it is, how it ended, and what comes of it.

use super::actions::ActionId;
use super::pick::{Choice, Item, Pick};
use super::result::{ResultScreen, View};
use super::run_ask::{RunChoice, ask_trust};
use super::run_queue::{Queue, go_on};
use super::{App, Effect, Overlay, Report, Status};
use crate::launch::runs::{Progress, Stage, progress};
use crate::library::{Run, State};
use crate::rerun::{Found, Rerun, Selects, Verdict, shell, verify};
use std::collections::VecDeque;
use std::path::PathBuf;
use std::sync::Arc;

/// Lines that are kept for scrolling back; the log in the run's folder has more.
pub const MOST_LINES: usize = 5_000;

/// What is to be started.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Start {
    /// The profiler with its options, the program and its arguments.
    pub argv: Vec<String>,
    /// The program and its arguments.
    pub program: Vec<String>,
    /// The profiler's word.
    pub tool: String,
    /// The recipe's word, or what stands for one.
    pub recipe: Option<String>,
    /// Working directory; of a re-run the one that was recorded.
    pub directory: Option<PathBuf>,
    /// Whether the report is to go into the run's own folder.
    pub own: bool,
    /// Variables that are set for it.
    pub env: Vec<(String, String)>,
    /// The report's name as the command has it, without suffix.
    pub named: String,
    /// The report whose launches are profiled again.
    pub from: Option<PathBuf>,
    /// The launches, as `rerun` gives them.
    pub selects: Vec<Selects>,
}

/// What is new of a run.
#[derive(Clone, Debug)]
pub struct News {
    /// What it printed; `None` where lines were left out.
    pub lines: Vec<Option<String>>,
    /// The line that is not whole yet.
    pub open: String,
    /// How it is.
    pub run: Box<Run>,
    /// Whether nothing more will come.
    pub ended: bool,
    /// Now, milliseconds since 1970.
    pub now_ms: i64,
}

/// What a re-run's result belongs to.
#[derive(Clone, Debug)]
pub struct Origin {
    /// Index of the report whose launches are profiled again.
    pub report: usize,
    /// The launches.
    pub selects: Vec<Selects>,
}

/// The screen.
#[derive(Clone, Debug)]
#[expect(clippy::struct_excessive_bools, reason = "facts that do not depend on each other")]
pub struct RunScreen {
    /// The run, once it has begun.
    pub run: Option<Box<Run>>,
    /// The command, on one line.
    pub command: String,
    /// What it printed.
    pub lines: VecDeque<Option<String>>,
    /// Lines that were dropped from the beginning.
    pub dropped: u64,
    /// The line that is not whole yet.
    pub open: String,
    /// How far it is.
    pub progress: Option<Progress>,
    /// Lines below the last one that is shown; 0 follows the output.
    pub back: usize,
    /// Whether this program holds it.
    pub mine: bool,
    /// Whether nothing more will come.
    pub ended: bool,
    /// Whether the screen is on.
    pub shown: bool,
    /// What its result belongs to.
    pub origin: Option<Origin>,
    /// Whether its reports are opened when it ends.
    pub opens: bool,
    /// Now, milliseconds since 1970.
    pub now_ms: i64,
    /// Steps that are done, as far as this program knows.
    pub step: usize,
    /// When the step that is under way began.
    pub doing: Option<i64>,
}

impl RunScreen {
    /// A screen for a run that is about to start, or is there already.
    #[must_use]
    pub fn new(command: String, run: Option<Box<Run>>, mine: bool) -> Self {
        Self {
            run,
            command,
            lines: VecDeque::new(),
            dropped: 0,
            open: String::new(),
            progress: None,
            back: 0,
            mine,
            ended: false,
            shown: true,
            origin: None,
            opens: true,
            now_ms: 0,
            step: 0,
            doing: None,
        }
    }

    /// Whether it is under way.
    #[must_use]
    pub fn live(&self) -> bool {
        !self.ended
    }

    /// How far a stop has gone.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.run.as_ref().and_then(|r| Stage::parse(&r.stage)).unwrap_or(Stage::Running)
    }

    /// Adds a line to the output.
    pub(super) fn print(&mut self, line: Option<String>) {
        self.lines.push_back(line);
        if self.back > 0 {
            self.back += 1;
        }
        while self.lines.len() > MOST_LINES {
            self.lines.pop_front();
            self.dropped += 1;
        }
        self.back = self.back.min(self.lines.len());
    }

    fn take(&mut self, news: &News) {
        for line in &news.lines {
            if let Some(found) = line.as_deref().and_then(progress::parse) {
                self.progress = Some(found);
                // A bar that is drawn again and again is one line.
                let again = |l: &Option<String>| {
                    l.as_deref().is_some_and(|l| l.starts_with('[')) && line.as_deref().is_some_and(|l| l.starts_with('['))
                };
                if self.lines.back().is_some_and(again) {
                    self.lines.pop_back();
                }
            }
            self.print(line.clone());
        }
        if let Some(found) = progress::parse(&news.open) {
            self.progress = Some(found);
        }
        self.open.clone_from(&news.open);
        self.run = Some(news.run.clone());
        self.now_ms = news.now_ms;
    }
}

fn say(app: &mut App, text: impl Into<String>, error: bool) -> Vec<Effect> {
    app.status = Some(Status { text: text.into(), error });
    Vec::new()
}

/// Whether a run of this program is under way that would end with it.
#[must_use]
pub fn held(app: &App) -> bool {
    app.run.as_ref().is_some_and(|r| r.live() && r.mine)
}

/// Profiles the launch on the re-run screen here and now.
pub fn run_here(app: &mut App) -> Vec<Effect> {
    if super::rerun::not_ready(app) {
        return Vec::new();
    }
    if app.run.as_ref().is_some_and(RunScreen::live) {
        return say(app, "a run is under way; it must end first", true);
    }
    let index = app.active;
    let Some((report, screen)) = app.report().and_then(|r| Some((r, r.rerun.as_ref()?))) else { return Vec::new() };
    if report.built_in && screen.request.options.program.is_none() {
        let text = "the demo was recorded elsewhere, and its program is not here: record one of yours with `warpscope run -- PROGRAM`";
        return say(app, text, false);
    }
    let Some(plan) = screen.plan().filter(|p| !p.commands.is_empty()) else { return say(app, "there is no command to run", true) };
    if plan.commands.iter().any(|c| c.wrapper.is_some()) {
        let save = app.settings.keymap.label(ActionId::Save);
        return say(app, format!("a launcher must start this script in the program's place: {save} saves it"), true);
    }
    let words = |c: &Rerun| -> Vec<String> {
        c.parts.iter().filter(|p| p.id == crate::rerun::PartId::Program).flat_map(|p| p.words.iter().cloned()).collect()
    };
    let unknown = |c: &Rerun| words(c).is_empty() || c.argv().iter().any(|w| w == crate::rerun::program::PLACEHOLDER);
    if plan.commands.iter().any(unknown) {
        return say(app, "the report does not say which program it was: set it in the field `program` first", true);
    }
    if !report.trusted && screen.request.options.program.is_none() {
        let program = plan.commands.first().map(words).unwrap_or_default();
        return ask_trust(app, &program);
    }
    let mut all: Vec<(Start, Option<Origin>)> = plan
        .commands
        .iter()
        .map(|c| {
            let start = Start {
                argv: c.argv(),
                program: words(c),
                tool: c.tool.to_owned(),
                recipe: Some("re-run".to_owned()),
                directory: c.directory.as_ref().map(PathBuf::from),
                // A name that the user chose is his.
                own: screen.request.options.output.is_none(),
                env: Vec::new(),
                named: c.output.clone(),
                from: Some(report.file.clone()),
                selects: c.selects.clone(),
            };
            (start, Some(Origin { report: index, selects: c.selects.clone() }))
        })
        .collect();
    let rest = all.split_off(1);
    let first = all.remove(0);
    app.queue = Queue::after_first(rest.len() + 1, rest);
    app.status = Some(Status { text: "looking at what may stand in the way …".to_owned(), error: false });
    let start = first.0.clone();
    app.starting = Some(first);
    vec![Effect::Preflight(Box::new(start))]
}

/// What stands in the way is known: starts, or asks.
pub fn preflight(app: &mut App, found: &[(String, bool)]) -> Vec<Effect> {
    if app.starting.is_none() {
        return Vec::new();
    }
    if !found.iter().any(|(_, blocks)| *blocks) {
        let effects = start(app);
        if let Some((first, _)) = found.first() {
            say(app, format!("take care: {first}"), false);
        }
        return effects;
    }
    let item = |label: &str, hint: &str, letter, choice| Item { label: label.to_owned(), hint: hint.to_owned(), letter, choice };
    let mut items = vec![
        item("back", "run nothing", Some('b'), Choice::Run(RunChoice::Nothing)),
        item("run all the same", "", Some('r'), Choice::Run(RunChoice::Start)),
    ];
    items.extend(
        found
            .iter()
            .map(|(text, blocks)| item(if *blocks { "in the way" } else { "take care" }, text, None, Choice::Run(RunChoice::Nothing))),
    );
    app.status = None;
    app.overlay = Some(Overlay::Pick(Pick::by_letter("this will probably fail", items, None)));
    Vec::new()
}

pub(super) fn start(app: &mut App) -> Vec<Effect> {
    let Some((start, origin)) = app.starting.take() else { return Vec::new() };
    let mut screen = RunScreen::new(shell::line(&start.argv), None, true);
    screen.origin = origin;
    app.run = Some(screen);
    app.status = None;
    vec![Effect::Start(Box::new(start))]
}

/// It has started, or could not.
pub fn started(app: &mut App, outcome: Result<Box<Run>, String>) -> Vec<Effect> {
    match outcome {
        Ok(run) => {
            app.queue.began(run.id);
            if let Some(screen) = &mut app.run {
                screen.command = shell::line(&run.argv);
                screen.run = Some(run);
            }
            Vec::new()
        }
        Err(text) => {
            app.run = None;
            app.queue = Queue::default();
            say(app, text, true)
        }
    }
}

/// Takes what is new; at the end opens what it left.
pub fn news(app: &mut App, news: &News) -> Vec<Effect> {
    let Some(screen) = app.run.as_mut().filter(|s| s.run.as_ref().is_none_or(|r| r.id == news.run.id)) else { return Vec::new() };
    screen.take(news);
    if !news.ended || screen.ended {
        return Vec::new();
    }
    screen.ended = true;
    let mut effects: Vec<Effect> = screen.doing.take().map(|_| Effect::EndStep).into_iter().collect();
    let run = news.run.clone();
    if !screen.opens {
        return effects;
    }
    let files: Vec<PathBuf> = run.openable().map(|r| r.path.clone()).collect();
    let why = run.findings.first().map(|f| f.what.clone());
    if files.is_empty() {
        screen.shown = true;
        effects.extend(say(app, why.unwrap_or_else(|| format!("run {}: {}", run.id, run.state.word())), true));
        effects.extend(go_on(app, &run));
        return effects;
    }
    let origin = screen.origin.take();
    screen.shown = false;
    let first = app.reports.len();
    effects.extend(add(app, files));
    match origin {
        // The launch's report stays on the screen until the result is joined.
        Some(origin) => app.awaited = Some((origin, first)),
        None => app.active = first,
    }
    app.library = None;
    let text = match (run.state, why) {
        (State::Done, _) | (_, None) => format!("run {} is done", run.id),
        (_, Some(why)) => why,
    };
    say(app, text, run.state == State::Failed);
    effects.extend(go_on(app, &run));
    effects
}

/// Adds reports of the user's own runs to the session and reads them.
pub fn add(app: &mut App, files: Vec<PathBuf>) -> Vec<Effect> {
    for file in &files {
        let mut report = Report::new(file.clone(), &app.settings);
        report.trusted = true;
        app.reports.push(report);
    }
    vec![Effect::Open(files)]
}

/// A result that was awaited is read or joined: is it of the launch that was meant? Then to its hints.
pub fn arrived(app: &mut App) -> Vec<Effect> {
    let Some((origin, new)) = app.awaited.clone() else { return Vec::new() };
    let Some(report) = app.reports.get(new) else { return Vec::new() };
    if report.reading() {
        return Vec::new();
    }
    let Some(metrics) = report.profile.as_ref().and_then(|p| p.metrics.clone()) else {
        app.awaited = None;
        app.active = new;
        return Vec::new();
    };
    let timeline = app.reports.get(origin.report).is_some_and(|r| r.profile.as_ref().is_some_and(|p| p.metrics.is_none() && p.complete));
    let joined = app.reports.get(origin.report).is_some_and(|r| r.joins.iter().any(|(o, _)| *o == new));
    if timeline && !joined {
        // The join is on its way.
        return Vec::new();
    }
    app.awaited = None;
    let found: Vec<Found> = metrics.results.iter().map(Into::into).collect();
    let verdict = (!origin.selects.is_empty()).then(|| verify(&origin.selects, &found));
    let pair = app.reports.get(origin.report).and_then(|r| r.launch_of(new, 0));
    let at = if timeline && pair.is_some() { origin.report } else { new };
    app.active = at;
    if let Some(report) = app.reports.get_mut(at) {
        report.rerun = None;
    }
    let text = match (&verdict, timeline && pair.is_none()) {
        (_, true) => "the result is of no launch of the timeline: look at it by itself".to_owned(),
        (Some(v), _) => v.sentence(),
        (None, _) => "the result is here".to_owned(),
    };
    let given_up = app.queue.given_up();
    let fell_short = given_up.is_some();
    let text = given_up.map_or_else(|| text.clone(), |g| format!("{g}; {text}"));
    say(app, text, !matches!(verdict, None | Some(Verdict::Verified(_))) || (timeline && pair.is_none()) || fell_short);
    let mut screen = ResultScreen::new(new, Arc::clone(&metrics), 0);
    screen.sure = pair.map(|p| p.sure);
    screen.details = super::result::Asked::Waiting;
    (screen.view, screen.opened) = (View::Hints, View::Metrics);
    screen.arrange(&app.pins);
    screen.arrange_hints();
    if let Some(report) = app.reports.get_mut(at) {
        report.result = Some(screen);
    }
    vec![Effect::Details { report: at, from: new, result: 0 }]
}

/// While the run has no number yet.
const STARTING: &str = "the run is being started: a moment";

/// Esc on the screen: stops the run, one step further each time; of a run that has ended, leaves the screen.
pub fn stop(app: &mut App) -> Vec<Effect> {
    if let Some(effects) = super::steps::end(app) {
        return effects;
    }
    let Some(screen) = &app.run else { return Vec::new() };
    if screen.ended {
        return leave(app);
    }
    if screen.run.is_none() {
        return say(app, STARTING, false);
    }
    if screen.stage() == Stage::Running && screen.next_step().is_some_and(|s| !s.argv.is_empty()) {
        // Esc may have been meant for a step that has just ended, and a server takes minutes to come back.
        return super::run_ask::ask_before_stop(app);
    }
    stop_now(app)
}

/// Goes one step further with a stop.
pub(super) fn stop_now(app: &mut App) -> Vec<Effect> {
    let Some(screen) = &app.run else { return Vec::new() };
    let text = match screen.stage() {
        Stage::Running => "asked the profiler to stop (INT); it writes its report now; esc again: TERM",
        Stage::Interrupted => "told it to end (TERM); esc again: KILL",
        Stage::Terminated => "killed it (KILL)",
        Stage::Killed => "it was killed; waiting for the system to end it",
    };
    say(app, text, false);
    vec![Effect::StopRun]
}

/// Off the screen; the run goes on.
pub fn leave(app: &mut App) -> Vec<Effect> {
    let Some(screen) = &mut app.run else { return Vec::new() };
    screen.shown = false;
    let ended = screen.ended;
    if ended {
        app.run = None;
        if app.reports.is_empty() && app.library.is_none() {
            return super::library::open(app);
        }
    } else {
        if app.reports.is_empty() && app.library.is_none() {
            let effects = super::library::open(app);
            let key = app.settings.keymap.label(ActionId::Watch);
            say(app, format!("the run goes on; {key} shows it"), false);
            return effects;
        }
        let key = app.settings.keymap.label(ActionId::Watch);
        say(app, format!("the run goes on; {key} shows it"), false);
    }
    Vec::new()
}

/// Shows the run.
pub fn watch(app: &mut App) -> Vec<Effect> {
    match &mut app.run {
        Some(screen) => {
            screen.shown = true;
            Vec::new()
        }
        None => say(app, "nothing was started here; the library has what ran before", false),
    }
}

/// Lets it go on by itself.
pub fn detach(app: &mut App) -> Vec<Effect> {
    let Some(screen) = app.run.as_mut().filter(|s| s.live()) else { return say(app, "no run is under way", true) };
    if !screen.mine {
        return say(app, "it goes on by itself already", false);
    }
    if screen.run.is_none() {
        return say(app, STARTING, false);
    }
    screen.mine = false;
    let id = screen.run.as_ref().map_or(0, |r| r.id);
    say(app, format!("detached: it goes on when this program or the ssh session ends; `warpscope attach {id}` shows it again"), false);
    vec![Effect::DetachRun]
}

/// Moves through the output.
pub fn scroll(screen: &mut RunScreen, by: isize) {
    screen.back = screen.back.saturating_add_signed(-by).min(screen.lines.len());
}
