//! What an item of a list stands for.

use super::line::LineOf;
use crate::analysis::launch_list::{JumpTo, LaunchSort};
use crate::analysis::{GroupBy, SortBy};
use crate::app::actions::ActionId;
use crate::model::NameForm;
use crate::rerun::Request;

/// Which facet of launches.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Facet {
    Stream,
    Device,
    Process,
    Path,
}

/// What ranges are ordered by.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSort {
    /// Time of the devices inside.
    Busy,
    /// Time on the host.
    Wall,
    /// Time of the host in which no device worked.
    Idle,
    /// Time of the host outside of inner ranges.
    Own,
    Count,
    /// When the first began.
    Start,
    Name,
}

/// What can be copied.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyWhat {
    /// The name in a form.
    Name(NameForm),
    /// The selected row, with its column titles.
    Row,
    /// All listed rows as CSV.
    Table,
    /// A metric's exact value.
    MetricValue,
    MetricName,
    /// All rows of a section.
    Section,
    /// The command on one line.
    Command,
    /// The command over several lines.
    CommandLines,
    /// The command, after going to the program's directory.
    CommandThere,
    Script,
    /// The plan as JSON.
    Json,
}

/// What an item stands for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choice {
    Action(ActionId),
    Group(GroupBy),
    /// Order groups.
    Sort(SortBy),
    /// Order ranges.
    RangeSort(RangeSort),
    /// A kernel inside a range.
    Kernel(String),
    /// Order launches.
    LaunchSort(LaunchSort),
    Theme(String),
    Copy(CopyWhat),
    /// Go to a launch.
    Jump(JumpTo),
    /// Ask for a number and go to that launch.
    AskNth,
    /// Choose a value of a facet.
    Facet(Facet),
    /// Only launches with this value; `None` for all.
    FacetValue(Facet, Option<Option<u32>>),
    Request(Box<Request>),
    Line(LineOf),
    /// Compare with a result of a report.
    Other(usize, usize),
    Run(RunChoice),
    /// Delete a run of the library.
    Forget(i64),
    /// What changed between two reports, before and after.
    Changes(usize, usize),
}

/// What can be chosen about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunChoice {
    Start,
    /// Start the program that this report names: the user has seen it.
    Trust(usize),
    Stop,
    /// Do nothing.
    Nothing,
    /// Stop it and quit.
    StopAndQuit,
    /// Let it go on by itself and quit.
    DetachAndQuit,
}
