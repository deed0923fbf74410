//! What happens to the state, and what it asks for.

use super::actions::ActionId;
use super::orders::{News, Start, StepNews};
use super::work::{Done, Work};
use crate::analysis::live::Live;
use crate::import::Progress;
use crate::launch::doctor::smi::Busy;
use crate::library::Run;
use crate::model::{Code, Details, Profile};
use crate::rerun::{Found, Selects};
use crossterm::event::KeyEvent;
use std::path::PathBuf;
use std::sync::Arc;

#[derive(Clone, Debug)]
pub enum Msg {
    /// A key was pressed.
    Key(KeyEvent),
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
        report: usize,
        /// The state of the report that it is about.
        generation: u64,
        /// The window that the report was narrowed to when it was asked for, ns.
        window: Option<(i64, i64)>,
        done: Done,
    },
    /// Something failed: what to tell.
    Trouble(String),
    /// Something was copied or saved: what to tell.
    Copied(Result<String, String>),
    /// A result was compared with what was selected.
    Verified {
        report: usize,
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
        result: usize,
        /// What was read, or why it could not be.
        outcome: Result<Arc<Code>, String>,
    },
    /// What may stand in a run's way: sentences, and whether each blocks.
    Preflight(Vec<(String, bool)>),
    /// A run has started, or could not.
    Started(Result<Box<Run>, String>),
    /// Something is new of the run that is watched.
    Run(Box<News>),
    /// How busy a GPU is while the run goes on.
    Gpu(Option<i64>, Option<Busy>),
    /// How a program stands that is being traced: the run's number, where it has one.
    Live(Option<i64>, Box<Live>),
    /// The last seconds of a trace were saved, or could not be: the file, and whether it is new.
    Snapshot(Result<(PathBuf, bool), String>),
    /// Something is new of the step that is done beside this run.
    Step(i64, StepNews),
    /// The library's runs, and now in milliseconds since 1970.
    Library(Result<(Vec<Run>, i64), String>),
    /// The last lines that a run of the library printed.
    Printed(i64, Vec<String>, Vec<(&'static str, String)>),
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
    /// Pressed on the name of an action.
    Action(ActionId),
    /// Over a row that is more than a row: the row, and the column in it.
    Spot(usize, usize),
    /// Did something there.
    Point(Pointer),
    /// Pressed elsewhere.
    Elsewhere,
    /// Turned the wheel, down is positive.
    Wheel(isize),
}

/// What the pointer did in a picture.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pointer {
    /// Pressed: the row, the column, and whether to select from there on.
    Press(usize, usize, bool),
    /// Moved while pressed: the column, and whether to select up to there.
    Drag(usize, bool),
    /// Turned the wheel at a column; down is positive.
    Wheel(usize, isize),
}

/// What is to be done outside.
#[derive(Clone, Debug)]
pub enum Effect {
    Load(usize),
    /// Open what is built in.
    Demo,
    Cancel(usize),
    Work(Box<Work>),
    /// Analyse when the cursor has come to rest: a newer one takes its place. A held key then sends little, which a slow line needs.
    Rest(Box<Work>),
    /// Copy a text; the second says what it is.
    Copy(String, String),
    /// Save a text as an executable file that is not there yet.
    Save(PathBuf, String),
    /// Save the screen as a file; its name's ending says in which form.
    SaveView(PathBuf),
    /// Read a profiler's result, to compare it with what was selected.
    Verify {
        report: usize,
        path: PathBuf,
        selects: Vec<Selects>,
    },
    /// Read what a report holds about a result.
    Details {
        /// The report whose screen asks.
        report: usize,
        /// The report that the result is in.
        from: usize,
        result: usize,
    },
    /// Read the code of a result.
    Code {
        /// The report whose screen asks.
        report: usize,
        /// The report that the result is in.
        from: usize,
        result: usize,
    },
    /// The report that was added last is part of that one's file.
    Part(usize),
    /// Read reports that were added to the session.
    Open(Vec<PathBuf>),
    /// Run the preflight checks for this run.
    Preflight(Box<Start>),
    /// Start a run and watch it.
    Start(Box<Start>),
    /// Watch a run of the library.
    Follow(i64),
    /// Watch traces that something else writes: their path without process id and suffix.
    FollowTraces(PathBuf),
    /// Open or close the recording of what is watched.
    Gate(bool),
    /// Measure counters of the next launches of a kernel of what is watched.
    Measure(String),
    /// Save the last seconds of what is watched as a trace, or all of it.
    Snapshot {
        whole: bool,
    },
    /// Ask the run of this program to stop, or to go a step further.
    StopRun,
    /// Let it go on by itself.
    DetachRun,
    /// Run a step of a guided run.
    Step {
        run: i64,
        argv: Vec<String>,
        directory: PathBuf,
    },
    /// End the step that is under way.
    EndStep,
    /// So many steps of a run are done.
    Stepped {
        run: i64,
        /// How many steps are behind it.
        done: usize,
        /// Whether the last of them was left out.
        left_out: bool,
    },
    Library,
    /// Read the last lines that a run of the library printed.
    Printed(i64),
    Forget(i64),
    /// Set a run's tags.
    Tags(i64, Vec<String>),
    /// Set a run's note.
    Note(i64, String),
    Redraw,
    /// Hand the terminal back to the shell for a while.
    Suspend,
    Quit,
}
