//! Messages to the explorer's state, and the effects that it requests

use super::actions::ActionId;
use super::found_files::FileList;
use super::jobs::{JobResult, Work};
use super::messages::{News, Start, StepNews};
use crate::analysis::live::Live;
use crate::analysis::table::Sort;
use crate::import::Progress;
use crate::launch::doctor::smi::Busy;
use crate::library::Run;
use crate::model::{Code, Details, Profile};
use crate::rerun::{ProfiledResult, Selects};
use crossterm::event::KeyEvent;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Msg {
    /// A key was pressed.
    Key(KeyEvent),
    Paste(String),
    /// Mouse event with its target on the screen.
    Mouse(Mouse),
    /// The terminal was resized to these columns and rows.
    Resize(u16, u16),
    /// Progress in reading a report.
    Progress(usize, Progress),
    /// A report was read.
    Loaded(usize, Result<Arc<Profile>, String>),
    /// An analysis has finished.
    Done {
        report: usize,
        /// Generation of the analyzed report.
        generation: u64,
        /// Time filter of the report when the analysis was requested, ns.
        window: Option<(i64, i64)>,
        done: JobResult,
    },
    /// Error message for the user.
    Trouble(String),
    /// Outcome of copying or saving, as a message for the user.
    Copied(Result<String, String>),
    /// A result was read, for comparison with the selected launches.
    Verified {
        report: usize,
        selects: Vec<Selects>,
        /// The results in the file, or why they could not be read.
        found: Result<Vec<ProfiledResult>, String>,
    },
    /// The details of a result were read.
    Details {
        /// Report whose screen requested the details.
        report: usize,
        /// Report that contains the result.
        from: usize,
        result: usize,
        /// The details, or why they could not be read.
        outcome: Result<Arc<Details>, String>,
    },
    /// The code of a result was read.
    Code {
        /// Report whose screen requested the code.
        report: usize,
        /// Report that contains the result.
        from: usize,
        result: usize,
        /// The code, or why it could not be read.
        outcome: Result<Arc<Code>, String>,
    },
    /// A source file was read.
    SourceText {
        /// Report whose screen requested the file.
        report: usize,
        file: Arc<str>,
        /// The lines of the file, or why they could not be read.
        outcome: Result<Arc<[String]>, String>,
    },
    /// Problems found by preflight: one sentence per problem, and true if it prevents the run.
    Preflight(Vec<(String, bool)>),
    /// A run has started or could not be started.
    Started(Result<Box<Run>, String>),
    /// Update about the watched run.
    Run(Box<News>),
    /// Utilization of a GPU during the run.
    Gpu(Option<i64>, Option<Busy>),
    /// State of a traced program, with the run's number if it has one.
    Live(Option<i64>, Box<Live>),
    /// Outcome of saving the last seconds of a trace: the file, and true if it is new.
    Snapshot(Result<(PathBuf, bool), String>),
    /// Update about a guided step of this run.
    Step(i64, StepNews),
    /// Runs of the library, and the current time in milliseconds since 1970.
    Library(Result<(Vec<Run>, i64), String>),
    /// Reports that were found in folders.
    Files(Box<FileList>),
    /// Last lines printed by a run of the library, and the gains that its hints predicted.
    Printed(i64, Vec<String>, Vec<(&'static str, String)>),
    /// A signal asked the program to terminate.
    Terminate,
}

/// Mouse event, with the target on the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Mouse {
    /// Press on a row of the table: its index in the list.
    Row(usize),
    /// Press on the header of a sortable column.
    Head(Sort),
    /// Press on an item of the overlay's list.
    Item(usize),
    /// Press on the name of an action.
    Action(ActionId),
    /// Hit area of a chart: row and column. It is translated into a [`Pointer`] event.
    Spot(usize, usize),
    /// Pointer event on a chart.
    Point(Pointer),
    /// Press outside all targets.
    Elsewhere,
    /// Wheel turned; down is positive.
    Wheel(isize),
}

/// Pointer event on a chart.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// Press: row, column, and true if it starts a selection.
    Press(usize, usize, bool),
    /// Drag: column, and true if it extends the selection.
    Drag(usize, bool),
    /// Wheel turned at a column; down is positive.
    Wheel(usize, isize),
}

/// Side effects that the event loop executes.
#[derive(Clone, Debug)]
pub enum Effect {
    Load(usize),
    /// Open the built-in report.
    Demo,
    Cancel(usize),
    Work(Box<Work>),
    /// Debounced analysis: starts once the cursor rests, and a newer request replaces an older one. This way, holding
    /// down a key causes little output on a slow connection.
    Rest(Box<Work>),
    /// Copy a string; the second string describes it.
    Copy(String, String),
    /// Save a string as an executable file, which must not exist yet.
    Save(PathBuf, String),
    /// Save the screen as a file; the extension selects the format.
    SaveView(PathBuf),
    /// Read a profiler's result for comparison with the selected launches.
    Verify {
        report: usize,
        path: PathBuf,
        selects: Vec<Selects>,
    },
    /// Read the details of a result.
    Details {
        /// Report whose screen requests the details.
        report: usize,
        /// Report that contains the result.
        from: usize,
        result: usize,
    },
    /// Read the code of a result.
    Code {
        /// Report whose screen requests the code.
        report: usize,
        /// Report that contains the result.
        from: usize,
        result: usize,
    },
    /// Read a source file of a traced program.
    SourceText {
        /// Report whose screen requests the file.
        report: usize,
        file: Arc<str>,
    },
    /// Let the most recently added report read from the file of this report, of which it is a part.
    Part(usize),
    /// Read reports that were added to the session.
    Open(Vec<PathBuf>),
    /// Run the preflight checks for this run.
    Preflight(Box<Start>),
    /// Start a run and watch it.
    Start(Box<Start>),
    /// Watch a run of the library.
    Follow(i64),
    /// Watch traces written by another process, given their path without process id and suffix.
    FollowTraces(PathBuf),
    /// Turn the recording of the watched program on or off.
    Gate(bool),
    /// Measure counters of a kernel's next launches in the watched program.
    Measure(String),
    /// Save the last seconds of the watched trace, or the whole trace.
    Snapshot {
        whole: bool,
    },
    /// Ask a run started by this program to stop, or escalate a stop in progress.
    StopRun,
    /// Detach the run from this program.
    DetachRun,
    /// Run a step of a guided run.
    Step {
        run: i64,
        argv: Vec<String>,
        directory: PathBuf,
    },
    /// End the current step.
    EndStep,
    /// Record how many steps of a run are finished.
    Stepped {
        run: i64,
        /// Number of finished steps.
        done: usize,
        /// True if the last finished step was skipped.
        left_out: bool,
    },
    Library,
    /// List the reports in these folders and below.
    Files {
        folders: Vec<PathBuf>,
        /// True if the user asked for the list.
        shown: bool,
    },
    /// Read the last lines printed by a run of the library.
    Printed(i64),
    Forget(i64),
    /// Set a run's tags.
    Tags(i64, Vec<String>),
    /// Set a run's note.
    Note(i64, String),
    Redraw,
    /// Return the terminal to the shell until this program is resumed.
    Suspend,
    Quit,
}
