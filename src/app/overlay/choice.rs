//! Actions triggered by list items

use super::line::LineOf;
use crate::analysis::GroupBy;
use crate::analysis::launch_list::JumpTo;
use crate::analysis::table::Sort;
use crate::app::actions::ActionId;
use crate::model::NameForm;
use crate::rerun::Request;
use std::path::PathBuf;

/// Property by which launches are filtered.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Facet {
    Stream,
    Device,
    Process,
    Path,
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
    /// The command, preceded by a `cd` to the program's directory.
    CommandThere,
    Script,
    /// The plan as JSON.
    Json,
}

/// Action of a list item.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum PickAction {
    Action(ActionId),
    Group(GroupBy),
    /// Sort order of the table.
    Sort(Sort),
    /// Go to a kernel inside a range.
    Kernel(String),
    /// Go to the longest copy of its kind, by row.
    Copies(u32),
    Theme(String),
    Copy(CopyWhat),
    /// Go to a launch.
    Jump(JumpTo),
    /// Ask for a launch number and go to that launch.
    AskNth,
    /// Choose a value of a facet.
    Facet(Facet),
    /// Show only launches with this value; `None` shows all.
    FacetValue(Facet, Option<Option<u32>>),
    Request(Box<Request>),
    Line(LineOf),
    /// Compare with a result: index of the report, index of the result.
    Other(usize, usize),
    Run(RunChoice),
    /// Open a report.
    OpenFile(PathBuf),
    /// List the reports of a folder, or open a file.
    ListFiles(PathBuf),
    /// Delete a run of the library.
    Forget(i64),
    /// Show the changes from the first report to the second.
    Changes(usize, usize),
}

/// Answer to a question about a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RunChoice {
    Start,
    /// Run the program named in this report, which the user has now confirmed.
    Trust(usize),
    Stop,
    Nothing,
    StopAndQuit,
    DetachAndQuit,
}
