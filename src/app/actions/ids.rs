//! Identifiers of actions

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum ActionId {
    /// Move the selection up one row.
    Up,
    /// Move the selection down one row.
    Down,
    /// Move the selection up one page.
    PageUp,
    /// Move the selection down one page.
    PageDown,
    /// Select the first row.
    First,
    Last,
    /// Open the selected row.
    Open,
    /// Toggle the overview of the run's limits.
    Overview,
    /// Toggle the timeline of the run.
    Timeline,
    /// Toggle the tree of ranges.
    Ranges,
    /// Go to the table of kernels.
    Kernels,
    /// Fold or unfold a row.
    Fold,
    /// Fold or unfold the whole tree.
    FoldAll,
    /// Move the cursor one column to the left.
    TimeLeft,
    TimeRight,
    /// Pan the window left by half of its length.
    PanLeft,
    PanRight,
    ZoomIn,
    ZoomOut,
    /// Show the whole run.
    ZoomAll,
    /// Zoom to the marked span, or to the event at the cursor.
    ZoomTo,
    /// Go to the beginning of the run.
    TimeStart,
    TimeEnd,
    /// Go to the next event of the row, or to the next search match.
    NextEvent,
    PreviousEvent,
    /// Go to the next idle time of the device.
    NextGap,
    PreviousGap,
    /// Set the mark, from which time spans are measured.
    SetMark,
    MarkPhase,
    /// Narrow all screens to a window, or show the whole run again.
    Narrow,
    FindEvent,
    /// Jump between related events: kernel, call, range.
    Follow,
    /// Go back to the previously visited place; `Later` goes forward again.
    Earlier,
    Later,
    PinRow,
    HideRow,
    ShowRows,
    RowUp,
    RowDown,
    /// Leave the screen, or clear the filter.
    Back,
    /// Choose the slowest, median, first or nth launch.
    Jump,
    /// Filter as you type.
    Filter,
    /// Choose a stream, device, process or range.
    Facet,
    Group,
    /// Choose the sort order.
    Sort,
    /// Reverse the order.
    Reverse,
    /// Switch between function, demangled and mangled names.
    Form,
    /// Show the selected row's full name.
    FullName,
    /// Show or hide the details.
    Details,
    /// Switch the focus between the table and the details beside it.
    Focus,
    FocusTable,
    FocusDetails,
    Mark,
    Unmark,
    /// Choose what to copy.
    Copy,
    /// Copy the command that reopens this place.
    CopyPlace,
    /// Show the command that profiles the launch again.
    Rerun,
    /// Save the commands as a script.
    Save,
    /// Check that a result belongs to the selected launches.
    Verify,
    /// Undo the last change.
    Undo,
    /// Show the next of several commands.
    NextCommand,
    /// Show the metrics of a launch.
    Metrics,
    /// Jump between a result and its launch.
    Pair,
    /// Filter metrics as you type.
    FindMetric,
    NextSection,
    PreviousSection,
    Pin,
    /// Toggle the hints of a result.
    Hints,
    /// Show the analysis steps that this session covers, and the missing ones.
    Checklist,
    Roofline,
    Compare,
    /// Choose the result to compare with.
    CompareWith,
    /// Toggle the source lines and instructions.
    Source,
    Instructions,
    /// Switch between order by samples and code order.
    CodeOrder,
    /// Go to the next result of the report.
    NextResult,
    /// Go to the previous result of the report.
    PreviousResult,
    /// Run the command on this machine.
    RunHere,
    /// Profile the launch again without showing the command first.
    RunNow,
    MeasureNow,
    /// Show the current run.
    Watch,
    /// Stop the run.
    StopRun,
    /// Freeze or resume the view of a traced program.
    Pause,
    /// Turn the recording of a traced program on or off.
    Gate,
    /// Measure counters of the selected kernel.
    Measure,
    /// Save the last seconds of a traced program as a report.
    Snapshot,
    /// Switch between the output of a traced program and its GPU work.
    Output,
    /// Detach the run from this program.
    Detach,
    Library,
    FindRun,
    /// Show the output of a run.
    RunLog,
    /// Do the next step of a guided run.
    Step,
    SkipStep,
    /// Go to the original run of a re-run.
    RunOrigin,
    /// Run the same command again.
    RunAgain,
    RunCompare,
    /// Show all details of a run.
    RunFacts,
    RunTags,
    /// Edit the note of a run.
    RunNote,
    RunDelete,
    /// Show the changes between two reports.
    Diff,
    /// Swap before and after.
    Swap,
    /// Show the ranks of a job.
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
    /// Compare with the memory of another report.
    MemoryBeside,
    StepLeft,
    StepRight,
    /// Go to the step and rank with the most waiting.
    WorstStep,
    Notes,
    /// Go to the next report of the session.
    NextReport,
    /// Go to the previous report of the session.
    PreviousReport,
    Theme,
    /// Search all actions by typing.
    Palette,
    Help,
    Redraw,
    /// Suspend to the shell.
    Suspend,
    Quit,
}
