//! The `Screen` trait, the context of screens, and their responses

use super::actions::{ActionId, KeyScope};
use super::found_files::FileList;
use super::jobs::JobResult;
use super::messages::{Origin, Start};
use super::msg::{Effect, Pointer};
use super::overlay::{CopyWhat, FilterInput, LineOf, OverlayKind, PickAction};
use super::run_state::Running;
use super::session::{Report, Session, measured_group::Best};
use crate::analysis::Grouping;
use crate::analysis::table::Sort;
use crate::analysis::timeline::Event;
use crate::library::Run;
use crate::model::{Code, Details};
use crate::rerun::{Options, ProfiledResult, RangeName, Selects};
use std::path::PathBuf;
use std::sync::Arc;

/// Status line for the user.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Status {
    pub text: String,
    /// True if something went wrong.
    pub error: bool,
}

/// State that a screen can access.
pub struct ScreenContext<'a> {
    pub session: &'a mut Session,
    pub running: &'a mut Running,
    /// Index of the screen's report; the active report if the screen has none.
    pub report: usize,
    /// Id of the screen.
    pub screen: u64,
}

impl ScreenContext<'_> {
    pub fn report(&self) -> Option<&Report> {
        self.session.reports.get(self.report)
    }

    pub fn report_mut(&mut self) -> Option<&mut Report> {
        self.session.reports.get_mut(self.report)
    }
}

/// A position in a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct At {
    /// Start, ns.
    pub start: i64,
    /// End, ns.
    pub end: i64,
    /// Event at this position.
    pub event: Option<Event>,
}

/// Selection of a screen, for the common actions.
#[derive(Clone, Debug, Default)]
pub struct Selection {
    /// Grouping of the screen's report, and the selected row.
    pub group: Option<(Arc<Grouping>, usize)>,
    /// Launch of the screen's report.
    pub launch: Option<u32>,
    pub result: Option<Best>,
    /// Re-run options for this selection, if not the defaults.
    pub collect: Option<Options>,
    /// Range to which a re-run is limited.
    pub inside: Option<RangeName>,
    /// Position in time.
    pub at: Option<At>,
}

/// View of a result.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ResultView {
    Metrics,
    Hints,
    Roofline,
    Compare,
    Source,
}

/// Navigation request of a screen.
#[derive(Clone, Debug)]
pub enum Navigate {
    Back,
    /// Open the launches of a group of this screen's report.
    Launches {
        grouping: Arc<Grouping>,
        row: usize,
    },
    /// Open the result of the selection.
    Result(ResultView),
    /// Open the command that profiles the selection again; `run` starts it as soon as it is ready. `in_place` uses the
    /// built-in tracer while the program runs, instead of ncu.
    Rerun {
        run: bool,
        in_place: bool,
    },
    /// Toggle a screen about the whole report.
    Toggle(KeyScope),
    /// Toggle the timeline at the position of the selection.
    Timeline,
    /// Narrow all screens of the report to a window, ns, or widen them to the whole run.
    Window(Option<(i64, i64)>),
    /// Go to a launch in the list of launches.
    Launch(u32),
    /// Toggle the tree of ranges at the range with this name.
    RangesAt(String),
    /// Go to the table of kernels, and select one of them.
    Kernels(Option<String>),
    /// Go to a kernel of a report, by name.
    Kernel {
        report: usize,
        name: String,
    },
    /// Go to a kernel of a comparison: to its results side by side if both reports have one, otherwise to its launches.
    Changed {
        report: usize,
        name: String,
        beside: Option<(Best, Best)>,
    },
    /// Go to a position in a report's timeline.
    TimelineOf {
        report: usize,
        at: At,
    },
    /// Toggle the ranks screen.
    Ranks,
    /// Show reports, opening them if necessary.
    Reports(Vec<PathBuf>),
    /// Show the changes between two reports.
    Changes {
        before: usize,
        after: usize,
    },
    /// Like `Changes`, with files instead of indices.
    ChangesOf {
        before: PathBuf,
        after: PathBuf,
    },
    /// Start these runs one after another; preflight checks the first one.
    Record(Vec<(Start, Option<Origin>)>),
    /// Run the command of this re-run screen, if it is still on top.
    RunHere,
    /// Show the watched run.
    Watch,
    /// Show the output of a run of the library.
    Follow(Box<Run>),
    Library,
    /// Open the built-in captures.
    Demo,
    Quit,
}

/// Response of a screen to user input or an event.
#[derive(Clone, Debug, Default)]
pub struct Response {
    pub effects: Vec<Effect>,
    pub say: Option<Status>,
    pub over: Option<OverlayKind>,
    pub go: Option<Navigate>,
}

impl Response {
    /// Response that does nothing.
    pub fn none() -> Self {
        Self::default()
    }

    pub fn say(text: impl Into<String>) -> Self {
        Self::default().and_say(text, false)
    }

    /// Reports an error to the user.
    pub fn error_message(text: impl Into<String>) -> Self {
        Self::default().and_say(text, true)
    }

    /// Adds a message for the user.
    pub fn and_say(self, text: impl Into<String>, error: bool) -> Self {
        Self { say: Some(Status { text: text.into(), error }), ..self }
    }

    /// Opens an overlay over the screen.
    pub fn open_overlay(what: impl Into<OverlayKind>) -> Self {
        Self { over: Some(what.into()), ..Self::default() }
    }

    pub fn effect(effect: Effect) -> Self {
        vec![effect].into()
    }
}

impl From<Vec<Effect>> for Response {
    fn from(effects: Vec<Effect>) -> Self {
        Self { effects, ..Self::default() }
    }
}

impl From<Navigate> for Response {
    fn from(go: Navigate) -> Self {
        Self { go: Some(go), ..Self::default() }
    }
}

/// Event that is broadcast to screens.
#[derive(Clone, Copy, Debug)]
pub enum ScreenEvent<'a> {
    /// An analysis of the screen's report has finished.
    Done(&'a JobResult),
    /// A report was read, or reading it failed.
    Loaded,
    /// The report's time filter changed.
    Window,
    /// The terminal's width changed, in columns.
    Resized(u16),
    /// The form of kernel names changed.
    Names,
    /// The pinned metrics changed.
    Pins,
    /// Details of a result.
    Details { from: usize, result: usize, outcome: &'a Result<Arc<Details>, String> },
    /// The code of a result.
    Code { from: usize, result: usize, outcome: &'a Result<Arc<Code>, String> },
    /// Lines of a source file.
    SourceText { file: &'a Arc<str>, outcome: &'a Result<Arc<[String]>, String> },
    /// Contents of a profiler's result, to compare with the selected launches.
    Verified { selects: &'a [Selects], found: &'a Result<Vec<ProfiledResult>, String> },
    /// Reports of the current folder, which nobody asked to be shown.
    Files(&'a FileList),
    /// Runs of the library, and the current time in milliseconds since 1970.
    Library(&'a Result<(Vec<Run>, i64), String>),
    /// Last lines printed by a run of the library, and the gains that its hints predicted, as titles and descriptions.
    Printed(i64, &'a [String], &'a [(&'static str, String)]),
}

/// A screen: a list or chart of one subject, with its actions.
pub trait Screen {
    /// Scope in which actions are looked up while the screen is on top.
    fn place(&self) -> KeyScope;

    /// Reason why this screen has nothing to show for a report.
    fn refusal(&self, _report: &Report) -> Option<&'static str> {
        None
    }

    /// Requests data once the screen has been opened.
    fn opened(&mut self, _cx: &mut ScreenContext<'_>) -> Response {
        Response::none()
    }

    fn selection(&self, _session: &Session, _report: usize) -> Selection {
        Selection::default()
    }

    /// Performs an action; returns `None` to leave it to the caller.
    fn act(&mut self, id: ActionId, cx: &mut ScreenContext<'_>) -> Option<Response>;

    /// Moves the selection by a number of rows.
    fn scroll(&mut self, by: isize, cx: &mut ScreenContext<'_>) -> Response;

    /// Handles a press on a row: selects the row, or opens it if it is already selected.
    fn press(&mut self, row: usize, cx: &mut ScreenContext<'_>) -> Response;

    /// Handles a pointer event on a chart.
    fn point(&mut self, _pointer: Pointer, _cx: &mut ScreenContext<'_>) -> Response {
        Response::none()
    }

    /// Handles a press on a column header.
    fn head(&mut self, _sort: Sort, _cx: &mut ScreenContext<'_>) -> Response {
        Response::none()
    }

    /// Filter of the list, if there is one.
    fn finder(&mut self) -> Option<&mut FilterInput> {
        None
    }

    /// Handles a change in the filter text; selects the first row if `first` is true.
    fn found(&mut self, _first: bool, _cx: &mut ScreenContext<'_>) -> Response {
        Response::none()
    }

    /// Handles the choice of an item from a list that this screen opened.
    fn choose(&mut self, _choice: PickAction, _cx: &mut ScreenContext<'_>) -> Response {
        Response::none()
    }

    /// Handles text typed into a line that this screen opened.
    fn line(&mut self, _what: LineOf, _text: &str, _cx: &mut ScreenContext<'_>) -> Response {
        Response::none()
    }

    /// Handles an event that was broadcast to screens.
    fn take(&mut self, _news: ScreenEvent<'_>, _cx: &mut ScreenContext<'_>) -> Response {
        Response::none()
    }

    /// Returns the text to copy and its description.
    fn copy(&self, _what: CopyWhat, _cx: &ScreenContext<'_>) -> Option<(String, String)> {
        None
    }

    /// Handles the escape key, which goes one step back on most screens.
    fn escape(&mut self, cx: &mut ScreenContext<'_>) -> Response {
        self.back(cx)
    }

    fn back(&mut self, _cx: &mut ScreenContext<'_>) -> Response {
        Navigate::Back.into()
    }
}

/// Moves a selection, clamped to the number of rows.
pub fn move_selection(at: usize, by: isize, rows: usize) -> usize {
    at.saturating_add_signed(by).min(rows.saturating_sub(1))
}
