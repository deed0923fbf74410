//! What a screen is, what it may touch, and what it answers.

use super::actions::{ActionId, Where};
use super::msg::{Effect, Pointer};
use super::orders::{Origin, Start};
use super::over::{Choice, CopyWhat, Finder, LineOf, What};
use super::running::Running;
use super::session::{Report, Session, report::Best};
use super::work::Done;
use crate::analysis::Grouping;
use crate::analysis::timeline::Event;
use crate::library::Run;
use crate::model::{Code, Details};
use crate::rerun::{Found, Options, RangeName, Selects};
use std::path::PathBuf;
use std::sync::Arc;

/// A line for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub text: String,
    /// Whether something went wrong.
    pub error: bool,
}

/// What a screen works on.
pub struct Cx<'a> {
    pub session: &'a mut Session,
    pub running: &'a mut Running,
    /// Index of the report that the screen belongs to; of a screen of no report the one that is shown.
    pub report: usize,
    /// Number of the screen.
    pub screen: u64,
}

impl Cx<'_> {
    #[must_use]
    pub fn report(&self) -> Option<&Report> {
        self.session.reports.get(self.report)
    }

    pub fn report_mut(&mut self) -> Option<&mut Report> {
        self.session.reports.get_mut(self.report)
    }
}

/// A place in a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// ns.
    pub start: i64,
    /// ns.
    pub end: i64,
    /// What is there.
    pub event: Option<Event>,
}

/// What is selected on a screen: what actions of every screen are about.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// A row of a grouping of the screen's report.
    pub group: Option<(Arc<Grouping>, usize)>,
    /// A launch of the screen's report.
    pub launch: Option<u32>,
    pub result: Option<Best>,
    /// What a re-run from here collects, unless it is the usual.
    pub collect: Option<Options>,
    /// The range whose launches are meant.
    pub inside: Option<RangeName>,
    /// Where it is in time.
    pub at: Option<At>,
}

/// Which of the screens about a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultView {
    Metrics,
    Hints,
    Roofline,
    Compare,
    Source,
}

/// Where a screen leads. Only `update` opens screens.
#[derive(Clone, Debug)]
pub enum Go {
    Back,
    /// To the launches of a group of this screen's report.
    Launches {
        grouping: Arc<Grouping>,
        row: usize,
    },
    /// To the result of what is selected.
    Result(ResultView),
    /// To the command that profiles what is selected again; and to run it as soon as it is there.
    /// In place: with the built-in tracer while the program runs, not with ncu.
    Rerun {
        run: bool,
        in_place: bool,
    },
    /// To what limits the run, or away from it.
    Overview,
    /// To the timeline at the place of what is selected, or away from it.
    Timeline,
    /// Narrows all screens of the report to a window, ns, or widens them to the whole run.
    Window(Option<(i64, i64)>),
    /// To a launch in the list of launches.
    Launch(u32),
    /// To the tree of ranges, or away from it; to the range of that name.
    Ranges(Option<String>),
    /// To the table of kernels; to one of them.
    Kernels(Option<String>),
    /// To a kernel of a report, by name.
    Kernel {
        report: usize,
        name: String,
    },
    /// To a place of a report's timeline.
    TimelineOf {
        report: usize,
        at: At,
    },
    /// To how the program uses memory, or away from it.
    Memory,
    /// To the ranks of the session's reports, or away from them.
    Ranks,
    /// To reports, which are opened unless they are open.
    Reports(Vec<PathBuf>),
    /// To what changed between two reports.
    Changes {
        before: usize,
        after: usize,
    },
    /// The same, of files.
    ChangesOf {
        before: PathBuf,
        after: PathBuf,
    },
    /// To these runs, one after the other, of which the first is checked first.
    Record(Vec<(Start, Option<Origin>)>),
    /// Runs what this re-run screen shows, if it still does.
    RunHere,
    /// To the run that is watched.
    Watch,
    /// To what a run of the library printed.
    Follow(Box<Run>),
    Library,
    /// To the captures that are built in.
    Demo,
    Quit,
}

/// What comes of what the user did.
#[derive(Clone, Debug, Default)]
pub struct Answer {
    pub effects: Vec<Effect>,
    pub say: Option<Status>,
    pub over: Option<What>,
    pub go: Option<Go>,
}

impl Answer {
    /// Nothing comes of it.
    #[must_use]
    pub fn none() -> Self {
        Self::default()
    }

    #[must_use]
    pub fn say(text: impl Into<String>) -> Self {
        Self::default().and_say(text, false)
    }

    /// Says that something went wrong.
    #[must_use]
    pub fn wrong(text: impl Into<String>) -> Self {
        Self::default().and_say(text, true)
    }

    /// The same, and says something.
    #[must_use]
    pub fn and_say(self, text: impl Into<String>, error: bool) -> Self {
        Self { say: Some(Status { text: text.into(), error }), ..self }
    }

    /// Lays something over the screen.
    #[must_use]
    pub fn over(what: impl Into<What>) -> Self {
        Self { over: Some(what.into()), ..Self::default() }
    }

    #[must_use]
    pub fn effect(effect: Effect) -> Self {
        vec![effect].into()
    }
}

impl From<Vec<Effect>> for Answer {
    fn from(effects: Vec<Effect>) -> Self {
        Self { effects, ..Self::default() }
    }
}

impl From<Go> for Answer {
    fn from(go: Go) -> Self {
        Self { go: Some(go), ..Self::default() }
    }
}

/// Something that was read or computed.
#[derive(Clone, Copy, Debug)]
pub enum News<'a> {
    /// An analysis of the screen's report is done.
    Done(&'a Done),
    /// A report was read, or could not be.
    Loaded,
    /// The report was narrowed to a window, or widened.
    Window,
    /// Names are shown in another form.
    Names,
    /// Other metrics are pinned.
    Pins,
    /// What a report holds about a result.
    Details { from: usize, result: usize, outcome: &'a Result<Arc<Details>, String> },
    /// The code of a result.
    Code { from: usize, result: usize, outcome: &'a Result<Arc<Code>, String> },
    /// What is in a profiler's result, to compare with what was selected.
    Verified { selects: &'a [Selects], found: &'a Result<Vec<Found>, String> },
    /// The library's runs, and now in milliseconds since 1970.
    Library(&'a Result<(Vec<Run>, i64), String>),
    /// The last lines that a run of the library printed.
    /// And what hints promised, as title and text.
    Printed(i64, &'a [String], &'a [(&'static str, String)]),
}

/// A screen: a list or a picture of one thing, and what can be done with it. What is not its own it leaves to whoever asks: `None`.
pub trait Screen {
    /// Where actions are looked up while it is on top.
    fn place(&self) -> Where;

    /// Asks for what it needs: it has just been opened.
    fn opened(&mut self, _cx: &mut Cx<'_>) -> Answer {
        Answer::none()
    }

    fn selection(&self, _session: &Session, _report: usize) -> Selection {
        Selection::default()
    }

    /// Does an action, unless it is none of this screen's own.
    fn act(&mut self, id: ActionId, cx: &mut Cx<'_>) -> Option<Answer>;

    /// Moves the selection by so many rows.
    fn scroll(&mut self, by: isize, cx: &mut Cx<'_>) -> Answer;

    /// A press on a row: the first selects it, one on the selected row opens it.
    fn press(&mut self, row: usize, cx: &mut Cx<'_>) -> Answer;

    /// The pointer did something at a place on the screen that is more than a row.
    fn point(&mut self, _pointer: Pointer, _cx: &mut Cx<'_>) -> Answer {
        Answer::none()
    }

    /// A press on a column's head.
    fn head(&mut self, _column: usize, _cx: &mut Cx<'_>) -> Answer {
        Answer::none()
    }

    /// The text that narrows the list, where there is one.
    fn finder(&mut self) -> Option<&mut Finder> {
        None
    }

    /// The text is another; `first` selects the first row.
    fn found(&mut self, _first: bool, _cx: &mut Cx<'_>) -> Answer {
        Answer::none()
    }

    /// An item of a list that this screen opened was chosen.
    fn choose(&mut self, _choice: Choice, _cx: &mut Cx<'_>) -> Answer {
        Answer::none()
    }

    /// A line that this screen asked for was typed.
    fn line(&mut self, _what: LineOf, _text: &str, _cx: &mut Cx<'_>) -> Answer {
        Answer::none()
    }

    /// Takes what was read or computed.
    fn take(&mut self, _news: News<'_>, _cx: &mut Cx<'_>) -> Answer {
        Answer::none()
    }

    /// The text to copy, and what it is.
    fn copy(&self, _what: CopyWhat, _cx: &Cx<'_>) -> Option<(String, String)> {
        None
    }

    /// The escape key, which on most screens is one step out.
    fn escape(&mut self, cx: &mut Cx<'_>) -> Answer {
        self.back(cx)
    }

    fn back(&mut self, _cx: &mut Cx<'_>) -> Answer {
        Go::Back.into()
    }
}

/// Moves a selection among so many rows.
#[must_use]
pub fn shift(at: usize, by: isize, rows: usize) -> usize {
    at.saturating_add_signed(by).min(rows.saturating_sub(1))
}
