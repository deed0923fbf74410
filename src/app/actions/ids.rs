//! What can be done, by name.

/// What an action does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ActionId {
    /// Selection up one row.
    Up,
    /// Selection down one row.
    Down,
    /// Selection up one page.
    PageUp,
    /// Selection down one page.
    PageDown,
    /// First row.
    First,
    Last,
    /// Into the selected row.
    Open,
    /// What limits the run.
    Overview,
    /// The run in time.
    Timeline,
    /// The tree of ranges.
    Ranges,
    /// The table of kernels.
    Kernels,
    /// Show or hide what is below a row.
    Fold,
    /// The same for the whole tree.
    FoldAll,
    /// The cursor one column to the left.
    TimeLeft,
    TimeRight,
    /// The window a part of its length to the left.
    PanLeft,
    PanRight,
    ZoomIn,
    ZoomOut,
    /// The whole run.
    ZoomAll,
    /// What is marked, or what is at the cursor.
    ZoomTo,
    /// To the beginning of the run.
    TimeStart,
    TimeEnd,
    /// The next event of the row, or the next that matches.
    NextEvent,
    PreviousEvent,
    /// The next time in which the device had nothing to do.
    NextGap,
    PreviousGap,
    /// What is measured from.
    SetMark,
    /// All screens show a window only, or the whole run.
    Narrow,
    FindEvent,
    /// Between what belongs together: kernel, call, range.
    Follow,
    /// Back and forth through places that were visited.
    Earlier,
    Later,
    PinRow,
    HideRow,
    ShowRows,
    RowUp,
    RowDown,
    /// Out of where you are.
    Back,
    /// Choose the slowest, median, first or nth launch.
    Jump,
    /// Filter as you type.
    Filter,
    /// Choose a stream, device, process or range.
    Facet,
    Group,
    /// Choose the order.
    Sort,
    /// Turn the order round.
    Reverse,
    /// Function, demangled or mangled names.
    Form,
    /// The selected row's full name.
    FullName,
    /// Show or hide the details.
    Details,
    /// To the other of the table and the details beside it.
    Focus,
    FocusTable,
    FocusDetails,
    Mark,
    Unmark,
    /// Choose what to copy.
    Copy,
    /// The command that opens what is on the screen.
    CopyPlace,
    /// The command that profiles the launch again.
    Rerun,
    /// Save the commands as a script.
    Save,
    /// Compare a result with what was selected.
    Verify,
    /// Take the last change back.
    Undo,
    /// The next of several commands.
    NextCommand,
    /// The metrics of a launch.
    Metrics,
    /// From a result to its launch, and back.
    Pair,
    /// Filter metrics as you type.
    FindMetric,
    NextSection,
    PreviousSection,
    Pin,
    /// What is wrong, or right.
    Hints,
    /// What of an analysis is done.
    Checklist,
    Roofline,
    Compare,
    /// Another result beside this one.
    CompareWith,
    /// Source lines and instructions.
    Source,
    Instructions,
    /// By samples or by place.
    CodeOrder,
    /// The next result of the report.
    NextResult,
    /// The previous result of the report.
    PreviousResult,
    /// Run the command here.
    RunHere,
    /// Profile the launch again at once.
    RunNow,
    MeasureNow,
    /// Show the run that is under way.
    Watch,
    /// End the run.
    StopRun,
    /// The picture of the program stands still, or goes on.
    Pause,
    /// Open or close its recording.
    Gate,
    /// Measure counters of its first kernel.
    Measure,
    /// Save its last seconds as a report.
    Snapshot,
    /// Its output, or its picture.
    Output,
    /// Let the run go on by itself.
    Detach,
    Library,
    FindRun,
    /// What a run printed.
    RunLog,
    /// Do the next step of a guided run.
    Step,
    SkipStep,
    /// To the run that it is a re-run of.
    RunOrigin,
    /// Run it once more.
    RunAgain,
    RunCompare,
    /// All there is to know of a run.
    RunFacts,
    RunTags,
    /// Write a note about a run.
    RunNote,
    RunDelete,
    /// What changed between two reports.
    Diff,
    /// Before and after the other way round.
    Swap,
    /// The ranks of a job.
    Ranks,
    RankCollectives,
    /// Save the screen as a file.
    SaveView,
    RanksCloser,
    RanksWider,
    Memory,
    MemoryLeft,
    MemoryRight,
    MemoryPeak,
    MemoryIn,
    MemoryOut,
    MemoryAll,
    MemoryEnd,
    MemorySegments,
    MemoryDevice,
    /// Lay another report's memory beside.
    MemoryBeside,
    StepLeft,
    StepRight,
    /// To the step in which a rank is waited for the most.
    WorstStep,
    Notes,
    /// The next report of the session.
    NextReport,
    /// The previous report of the session.
    PreviousReport,
    Theme,
    /// All actions, by typing.
    Palette,
    Help,
    Redraw,
    /// Hand the terminal back to the shell.
    Suspend,
    Quit,
}
