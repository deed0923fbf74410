//! The explorer's state and how it changes: `update(&mut App, Msg) -> Vec<Effect>`, without any I/O.

pub mod actions;
pub mod choose;
pub mod diff;
pub mod hints;
pub mod kernels;
pub mod launches;
pub mod library;
pub mod line;
pub mod mouse;
pub mod pick;
pub mod places;
pub mod planning;
pub mod report;
pub mod rerun;
pub mod rerun_fields;
pub mod result;
pub mod result_views;
pub mod run;
pub mod run_ask;
pub mod run_queue;
pub mod steps;
pub mod typing;
pub mod update;
pub mod work;

pub use actions::{ACTIONS, ActionId, Keymap, Where};
pub use diff::DiffScreen;
pub use kernels::KernelsScreen;
pub use launches::LaunchesScreen;
pub use library::LibraryScreen;
pub use pick::Pick;
pub use report::{Report, Stage};
pub use rerun::{LineOf, RerunScreen};
pub use result::{ResultScreen, View as ResultView};
pub use run::RunScreen;
pub use update::update;
pub use work::{Done, Work};

use crate::analysis::{GroupBy, SortBy};
use crate::import::Progress;
use crate::model::{Code, Details, Profile};
use crate::rerun::{Found, Selects};
use crossterm::event::KeyEvent;
use std::path::PathBuf;
use std::sync::Arc;
use tui_input::Input;

/// What happened.
#[derive(Clone, Debug)]
pub enum Msg {
    /// A key was pressed.
    Key(KeyEvent),
    /// Text was pasted.
    Paste(String),
    /// The mouse did something to something on the screen.
    Mouse(Mouse),
    /// The terminal's size in columns and rows.
    Resize(u16, u16),
    /// A report is being read.
    Progress(usize, Progress),
    /// A report was read.
    Loaded(usize, Result<Arc<Profile>, String>),
    /// An analysis is done.
    Done {
        /// Report.
        report: usize,
        /// The state of the report that it is about.
        generation: u64,
        /// What came out.
        done: Done,
    },
    /// Something failed: what to tell.
    Trouble(String),
    /// Something was copied or saved: what to tell.
    Copied(Result<String, String>),
    /// A result was compared with what was selected.
    Verified {
        /// Report.
        report: usize,
        /// What was selected.
        selects: Vec<Selects>,
        /// What is in the result, or why it could not be read.
        found: Result<Vec<Found>, String>,
    },
    /// What a report holds about a result was read.
    Details {
        /// The report whose screen asked.
        report: usize,
        /// The report that the result is in.
        from: usize,
        /// The result.
        result: usize,
        /// What was read, or why it could not be.
        outcome: Result<Arc<Details>, String>,
    },
    /// The code of a result was read.
    Code {
        /// The report whose screen asked.
        report: usize,
        /// The report that the result is in.
        from: usize,
        /// The result.
        result: usize,
        /// What was read, or why it could not be.
        outcome: Result<Arc<Code>, String>,
    },
    /// What may stand in a run's way: sentences, and whether each blocks.
    Preflight(Vec<(String, bool)>),
    /// A run has started, or could not.
    Started(Result<Box<crate::library::Run>, String>),
    /// Something is new of the run that is watched.
    Run(Box<run::News>),
    /// Something is new of the step that is done beside this run.
    Step(i64, steps::StepNews),
    /// The library's runs, and now in milliseconds since 1970.
    Library(Result<(Vec<crate::library::Run>, i64), String>),
    /// The program was asked to end from outside.
    Terminate,
}

/// What the mouse did.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mouse {
    /// Pressed on a row of the table: its index in the list.
    Row(usize),
    /// Pressed on a column's head: its index on this screen.
    Head(usize),
    /// Pressed on an item of the list on top.
    Item(usize),
    /// Pressed elsewhere.
    Elsewhere,
    /// Turned the wheel, down is positive.
    Wheel(isize),
}

/// What is to be done outside.
#[derive(Clone, Debug)]
pub enum Effect {
    /// Read a report.
    Load(usize),
    /// Stop reading it.
    Cancel(usize),
    /// Analyse.
    Work(Box<Work>),
    /// Analyse when the cursor has come to rest: a newer one takes its place. A held key then sends little, which a slow line needs.
    Rest(Box<Work>),
    /// Copy a text; the second says what it is.
    Copy(String, String),
    /// Save a text as an executable file that is not there yet.
    Save(PathBuf, String),
    /// Read a profiler's result, to compare it with what was selected.
    Verify {
        /// Report.
        report: usize,
        /// The file.
        path: PathBuf,
        /// What was selected.
        selects: Vec<Selects>,
    },
    /// Read what a report holds about a result.
    Details {
        /// The report whose screen asks.
        report: usize,
        /// The report that the result is in.
        from: usize,
        /// The result.
        result: usize,
    },
    /// Read the code of a result.
    Code {
        /// The report whose screen asks.
        report: usize,
        /// The report that the result is in.
        from: usize,
        /// The result.
        result: usize,
    },
    /// Read reports that were added to the session.
    Open(Vec<PathBuf>),
    /// Look at what may stand in the way of this run.
    Preflight(Box<run::Start>),
    /// Start a run and watch it.
    Start(Box<run::Start>),
    /// Watch a run of the library.
    Follow(i64),
    /// Ask the run of this program to stop, or to go a step further.
    StopRun,
    /// Let it go on by itself.
    DetachRun,
    /// Run a step of a guided run.
    Step {
        /// The run.
        run: i64,
        /// The command.
        argv: Vec<String>,
        /// Working directory.
        directory: PathBuf,
    },
    /// End the step that is under way.
    EndStep,
    /// So many steps of a run are done.
    Stepped {
        /// The run.
        run: i64,
        /// How many steps are behind it.
        done: usize,
        /// Whether the last of them was left out.
        left_out: bool,
    },
    /// Read the library.
    Library,
    /// Delete a run.
    Forget(i64),
    /// Set a run's tags.
    Tags(i64, Vec<String>),
    /// Set a run's note.
    Note(i64, String),
    /// Draw everything again.
    Redraw,
    /// Hand the terminal back to the shell for a while.
    Suspend,
    /// End.
    Quit,
}

/// What lies over the screen.
#[derive(Clone, Debug)]
pub enum Overlay {
    /// The keys; scrolled by so many lines.
    Help(usize),
    /// The report's notes; scrolled by so many lines.
    Notes(usize),
    /// The selected row's names; scrolled by so many lines.
    Names(usize),
    /// The details, where the terminal has no room for them beside the table; scrolled by so many lines.
    Details(usize),
    /// What there is to know about the selected metric, rule or point; scrolled by so many lines.
    Explain(usize),
    /// What of an analysis is done in this session; scrolled by so many lines.
    Checklist(usize, Arc<[crate::analysis::checklist::Item]>),
    /// What a launch of a timeline tells by itself; scrolled by so many lines.
    Advice(usize, Arc<[String]>),
    /// What there is to know of a run; scrolled by so many lines.
    RunFacts(usize, Arc<[(&'static str, String)]>),
    /// A list to choose from.
    Pick(Pick),
    /// A number to type.
    Number(Input),
    /// A line to type on the re-run screen.
    Line(LineOf, Input),
}

/// Which screen is on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Screen {
    /// Groups of launches.
    Kernels,
    /// Launches of a group.
    Launches,
    /// The command that profiles launches again.
    Rerun,
    /// About one result.
    Result(ResultView),
    /// A run that is watched.
    Run,
    /// What was recorded.
    Library,
    /// What changed between two runs.
    Diff,
}

/// What the user set.
#[derive(Clone, Debug)]
pub struct Settings {
    /// Name of the theme.
    pub theme: String,
    /// Names of all themes.
    pub themes: Vec<String>,
    /// Keys.
    pub keymap: Keymap,
    /// Grouping that a report opens with.
    pub group: GroupBy,
    /// Order that a report opens with.
    pub sort: SortBy,
    /// Metrics that are pinned from the beginning.
    pub pins: Vec<String>,
}

impl Default for Settings {
    fn default() -> Self {
        Self {
            theme: "dark".to_owned(),
            themes: vec!["dark".to_owned()],
            keymap: Keymap::default(),
            group: GroupBy::Name,
            sort: SortBy::Total,
            pins: Vec::new(),
        }
    }
}

/// A line for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    /// What is said.
    pub text: String,
    /// Whether something went wrong.
    pub error: bool,
}

/// Everything.
#[derive(Clone, Debug)]
pub struct App {
    /// The session's reports.
    pub reports: Vec<Report>,
    /// Index of the one that is shown.
    pub active: usize,
    /// What lies over the screen.
    pub overlay: Option<Overlay>,
    /// Settings.
    pub settings: Settings,
    /// The last thing to tell.
    pub status: Option<Status>,
    /// Columns and rows of the terminal.
    pub size: (u16, u16),
    /// Whether the details are wanted.
    pub details: bool,
    /// Metrics that are shown first for every result.
    pub pins: Vec<Arc<str>>,
    /// The run that is watched.
    pub run: Option<RunScreen>,
    /// What is about to be started, with what its result belongs to.
    pub starting: Option<(run::Start, Option<run::Origin>)>,
    /// What is run after the run that is watched.
    pub queue: run_queue::Queue,
    /// A re-run's result that is being read: what it belongs to, and its report.
    pub awaited: Option<(run::Origin, usize)>,
    /// The library, when it is on.
    pub library: Option<LibraryScreen>,
    /// What changed between two runs, when it is on.
    pub diff: Option<DiffScreen>,
}

/// Size below which one line asks for a larger terminal.
pub const SMALLEST: (u16, u16) = (60, 16);

impl App {
    /// A session over reports that are not read yet; the effects read them.
    #[must_use]
    pub fn new(files: Vec<PathBuf>, settings: Settings, size: (u16, u16)) -> (Self, Vec<Effect>) {
        let reports: Vec<Report> = files.into_iter().map(|f| Report::new(f, &settings)).collect();
        let effects = (0..reports.len()).map(Effect::Load).collect();
        let pins = settings.pins.iter().map(|p| Arc::from(p.as_str())).collect();
        let app = Self {
            reports,
            active: 0,
            overlay: None,
            settings,
            status: None,
            size,
            details: true,
            pins,
            run: None,
            starting: None,
            queue: run_queue::Queue::default(),
            awaited: None,
            library: None,
            diff: None,
        };
        (app, effects)
    }

    /// The report that is shown.
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.reports.get(self.active)
    }

    /// The screen that is on.
    #[must_use]
    pub fn screen(&self) -> Screen {
        if self.run.as_ref().is_some_and(|r| r.shown) {
            return Screen::Run;
        }
        if self.library.is_some() {
            return Screen::Library;
        }
        if self.diff.is_some() {
            return Screen::Diff;
        }
        match self.report() {
            Some(r) if r.rerun.is_some() => Screen::Rerun,
            Some(Report { result: Some(screen), .. }) => Screen::Result(screen.view),
            Some(r) if r.launches.is_some() => Screen::Launches,
            _ => Screen::Kernels,
        }
    }

    /// Where actions are looked up now.
    #[must_use]
    pub fn here(&self) -> Where {
        match self.screen() {
            Screen::Kernels => Where::Kernels,
            Screen::Launches => Where::Launches,
            Screen::Rerun => Where::Rerun,
            Screen::Run => Where::Run,
            Screen::Library => Where::Library,
            Screen::Diff => Where::Diff,
            Screen::Result(ResultView::Metrics) => Where::Metrics,
            Screen::Result(ResultView::Hints) => Where::Hints,
            Screen::Result(ResultView::Roofline) => Where::Roofline,
            Screen::Result(ResultView::Compare) => Where::Compare,
            Screen::Result(ResultView::Source) => Where::Source,
        }
    }

    /// Where the details go at this size.
    #[must_use]
    pub fn details_room(&self) -> DetailsRoom {
        match self.size {
            (w, h) if w >= 150 && h >= 24 => DetailsRoom::Right,
            (w, h) if w >= 80 && h >= 34 => DetailsRoom::Below,
            _ => DetailsRoom::Over,
        }
    }
}

/// Where the details go.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetailsRoom {
    /// Right of the table.
    Right,
    /// Below the table.
    Below,
    /// Over the table, on request.
    Over,
}
