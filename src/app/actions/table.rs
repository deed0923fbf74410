//! Everything that a key can do: the footer, the help, the palette, the configuration file and the README's table are made from [`ACTIONS`].

use super::ids::ActionId;
use super::places::Where;

#[derive(Debug)]
pub struct Action {
    pub id: ActionId,
    /// Its name in the configuration file and the palette.
    pub name: &'static str,
    /// Its keys unless the configuration says otherwise.
    pub keys: &'static [&'static str],
    pub on: Where,
    /// One sentence without a full stop.
    pub help: &'static str,
    /// Word in the footer; the smaller the number, the longer it stays when the terminal gets narrow.
    pub footer: Option<(u8, &'static str)>,
}

const fn action(
    id: ActionId,
    name: &'static str,
    keys: &'static [&'static str],
    on: Where,
    help: &'static str,
    footer: Option<(u8, &'static str)>,
) -> Action {
    Action { id, name, keys, on, help, footer }
}

use Where::{Browse, Everywhere, Kernels, Launches, Metrics, Rerun, Results, Runs, Source, Tables};

/// All actions, in the order of the help.
pub static ACTIONS: &[Action] = &[
    action(ActionId::Up, "up", &["up", "k"], Everywhere, "move the selection up", None),
    action(ActionId::Down, "down", &["down", "j"], Everywhere, "move the selection down", None),
    action(ActionId::PageUp, "page-up", &["pgup", "ctrl-u", "ctrl-b"], Everywhere, "page up", None),
    action(ActionId::PageDown, "page-down", &["pgdn", "ctrl-d", "ctrl-f"], Everywhere, "page down", None),
    action(ActionId::First, "first", &["home"], Everywhere, "first row", None),
    action(ActionId::Last, "last", &["end", "G"], Everywhere, "last row", None),
    action(
        ActionId::Open,
        "open",
        &["enter", "right", "l"],
        Everywhere,
        "open the selected row: a kernel's launches, a launch's metrics, a metric's description; on the re-run screen, edit the field",
        Some((1, "open")),
    ),
    action(ActionId::Back, "back", &["esc", "left", "h"], Everywhere, "back: leave the screen, or clear the filter", Some((2, "back"))),
    action(ActionId::Filter, "filter", &["/"], Kernels, "filter by name as you type", Some((3, "filter"))),
    action(ActionId::Group, "group", &["g"], Kernels, "group launches by name, configuration, stream, NVTX range …", Some((4, "group"))),
    action(ActionId::Jump, "jump", &["J"], Launches, "go to the slowest, median, first or nth launch", Some((3, "jump"))),
    action(ActionId::Facet, "only", &["f"], Launches, "filter launches by stream, device, process or NVTX range", Some((4, "only"))),
    action(ActionId::Sort, "sort", &["s"], Tables, "choose the sort order", Some((5, "sort"))),
    action(ActionId::Reverse, "reverse", &["S"], Tables, "reverse the sort", None),
    action(ActionId::Form, "names", &["d"], Tables, "kernel names: function, demangled, mangled", Some((8, "names"))),
    action(ActionId::FullName, "full-name", &["N"], Tables, "show the full name in all forms", None),
    action(ActionId::Details, "details", &["i"], Tables, "show or hide the details", Some((9, "details"))),
    action(ActionId::Mark, "mark", &["m", "space"], Kernels, "mark or unmark the row and move to the next", Some((10, "mark"))),
    action(ActionId::Unmark, "unmark-all", &["M"], Kernels, "clear all marks", None),
    action(
        ActionId::Rerun,
        "rerun",
        &["r"],
        Browse,
        "the command that profiles this launch again (marked kernels: one launch each)",
        Some((3, "re-run")),
    ),
    action(
        ActionId::Metrics,
        "metrics",
        &["p"],
        Tables,
        "ncu's metrics of this launch (of a kernel: its longest profiled launch)",
        Some((4, "metrics")),
    ),
    action(ActionId::Pair, "pair", &["P"], Browse, "jump between a result and its launch in the timeline", None),
    action(ActionId::FindMetric, "find-metric", &["/"], Metrics, "search all metrics as you type", Some((3, "find"))),
    action(ActionId::NextSection, "next-section", &["tab"], Metrics, "next section", Some((4, "section"))),
    action(ActionId::PreviousSection, "previous-section", &["shift-tab"], Metrics, "previous section", None),
    action(ActionId::Pin, "pin", &["m", "space"], Metrics, "pin the metric to the top of every result, or unpin it", Some((6, "pin"))),
    action(
        ActionId::Hints,
        "hints",
        &["a"],
        Browse,
        "toggle the hints: what limits this kernel, why, what to change, and how to confirm it",
        Some((2, "hints")),
    ),
    action(ActionId::Roofline, "roofline", &["o"], Browse, "toggle the roofline of this result", Some((4, "roofline"))),
    action(ActionId::Compare, "compare", &["c"], Results, "toggle the comparison with another result", Some((5, "compare"))),
    action(ActionId::CompareWith, "compare-with", &["C"], Results, "choose the result to compare with", None),
    action(ActionId::Source, "source", &["e"], Browse, "toggle the hottest source lines and instructions", Some((5, "source"))),
    action(
        ActionId::Instructions,
        "instructions",
        &["tab"],
        Source,
        "switch between source lines and instructions",
        Some((3, "lines/SASS")),
    ),
    action(ActionId::CodeOrder, "code-order", &["s"], Source, "sort by samples or in code order", Some((4, "order"))),
    action(ActionId::NextResult, "next-result", &[">", "."], Results, "next result of this report", Some((7, "next"))),
    action(ActionId::PreviousResult, "previous-result", &["<", ","], Results, "previous result of this report", None),
    action(
        ActionId::RunNow,
        "run-now",
        &["R"],
        Browse,
        "profile this launch again right now; the result joins the launch",
        Some((6, "run")),
    ),
    action(ActionId::RunHere, "run-here", &["R"], Rerun, "run the command here; the result joins its launch", Some((1, "run here"))),
    action(
        ActionId::Detach,
        "detach",
        &["d"],
        Where::Run,
        "detach the run: it continues after you quit or the ssh session ends",
        Some((2, "detach")),
    ),
    action(
        ActionId::Step,
        "step",
        &["s"],
        Where::Run,
        "do the next step of a guided run: wait, warm up, open, load, close, stop",
        Some((1, "next step")),
    ),
    action(
        ActionId::SkipStep,
        "skip-step",
        &["o"],
        Where::Run,
        "skip the next step of a guided run: already done elsewhere",
        Some((3, "skip")),
    ),
    action(
        ActionId::FindRun,
        "find-run",
        &["/"],
        Where::Library,
        "search runs as you type: program, folder, recipe, state, tags, notes",
        Some((3, "find")),
    ),
    action(ActionId::RunAgain, "run-again", &["r"], Where::Library, "run the same command again", Some((4, "run again"))),
    action(
        ActionId::RunCompare,
        "run-compare",
        &["c", "m"],
        Where::Library,
        "compare two runs: press on the baseline run, then on the other",
        Some((5, "compare")),
    ),
    action(
        ActionId::RunOrigin,
        "run-origin",
        &["p"],
        Where::Library,
        "go to the run that this one is a re-run of; again: follow the chain back",
        Some((8, "origin")),
    ),
    action(ActionId::RunLog, "run-log", &["e"], Where::Library, "show the output of the run", Some((6, "output"))),
    action(
        ActionId::RunFacts,
        "run-facts",
        &["i"],
        Runs,
        "show the details of the run: command, folder, commit, machine, clocks",
        Some((7, "details")),
    ),
    action(ActionId::RunTags, "run-tags", &["T"], Where::Library, "tag the run; `keep` protects it from cleanup", Some((8, "tags"))),
    action(ActionId::RunNote, "run-note", &["N"], Where::Library, "edit the note of the run", Some((9, "note"))),
    action(ActionId::RunDelete, "run-delete", &["D"], Where::Library, "delete the run and its reports; asks first", Some((9, "delete"))),
    action(
        ActionId::Diff,
        "changes",
        &["D"],
        Tables,
        "what changed between this report and another, kernel by kernel",
        Some((11, "changes")),
    ),
    action(ActionId::Swap, "swap", &["S"], Where::Diff, "swap before and after", Some((3, "swap"))),
    action(ActionId::Copy, "copy", &["y"], Everywhere, "copy a name, the row, the table or the command", Some((2, "copy"))),
    action(ActionId::Save, "save", &["w"], Rerun, "save the commands as a script", Some((3, "save script"))),
    action(ActionId::Verify, "verify", &["v"], Rerun, "check a result against the selected launches", Some((4, "verify"))),
    action(ActionId::Undo, "undo", &["u"], Rerun, "undo the last change", Some((5, "undo"))),
    action(ActionId::NextCommand, "next-command", &["tab"], Rerun, "show the next of several commands", None),
    action(ActionId::Notes, "notes", &["n"], Everywhere, "about this report: notes, GPUs, command, memory copies", Some((6, "notes"))),
    action(
        ActionId::Checklist,
        "checklist",
        &["x"],
        Everywhere,
        "analysis checklist: what this session covers, and what is still missing",
        None,
    ),
    action(ActionId::Watch, "watch", &["W"], Everywhere, "the run started here: its output and progress", None),
    action(
        ActionId::Library,
        "library",
        &["L"],
        Everywhere,
        "run library: open, compare, run again, tag or delete earlier runs",
        Some((9, "library")),
    ),
    action(ActionId::NextReport, "next-report", &["]"], Everywhere, "next report of the session", None),
    action(ActionId::PreviousReport, "previous-report", &["["], Everywhere, "previous report of the session", None),
    action(ActionId::Theme, "theme", &["t"], Everywhere, "choose a theme", Some((12, "theme"))),
    action(ActionId::Palette, "palette", &[":"], Everywhere, "search all actions as you type", Some((11, "actions"))),
    action(ActionId::Help, "help", &["?", "f1"], Everywhere, "list all keys", Some((0, "help"))),
    action(ActionId::Redraw, "redraw", &["ctrl-l"], Everywhere, "redraw the screen", None),
    action(ActionId::Suspend, "suspend", &["ctrl-z"], Everywhere, "suspend to the shell; `fg` returns", None),
    action(ActionId::Quit, "quit", &["q", "ctrl-c"], Everywhere, "quit", Some((0, "quit"))),
];

#[must_use]
pub fn of(id: ActionId) -> Option<&'static Action> {
    ACTIONS.iter().find(|a| a.id == id)
}
