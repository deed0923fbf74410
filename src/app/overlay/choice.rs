//! Choices behind the items of a list

use super::line::LineOf;
use crate::analysis::launch_list::{JumpTo, LaunchSort};
use crate::analysis::{GroupBy, SortBy};
use crate::app::actions::ActionId;
use crate::model::NameForm;
use crate::rerun::Request;

/// Property by which launches are filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Facet {
    Stream,
    Device,
    Process,
    Path,
}

/// Sort key of ranges.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RangeSort {
    /// Busy time of the devices inside.
    Busy,
    /// Time on the host.
    Wall,
    /// Host time during which no device was busy.
    Idle,
    /// Host time outside of inner ranges.
    Own,
    Count,
    /// Start of the first range.
    Start,
    Name,
}

/// Item of a copy menu.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum CopyWhat {
    /// Name in this form.
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
    /// The command with a `cd` to the program's directory before it.
    CommandThere,
    Script,
    /// The plan as JSON.
    Json,
}

/// Choice behind an item of a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PickAction {
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
    /// Changes between two reports, before and after.
    Changes(usize, usize),
}

/// Choice about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunChoice {
    Start,
    /// Start the program that this report names, now that the user has seen it.
    Trust(usize),
    Stop,
    /// Do nothing.
    Nothing,
    /// Stop it and quit.
    StopAndQuit,
    /// Detach it and quit.
    DetachAndQuit,
}
