//! Everything that a key can do: the footer, the help, the palette, the configuration file and the README's table are made from [`ACTIONS`].

use crate::analysis::fuzzy::nearest;
use crate::config::keys::Key;
use std::collections::{BTreeMap, HashMap};

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
    /// Last row.
    Last,
    /// Into the selected row.
    Open,
    /// Out of where you are.
    Back,
    /// Choose the slowest, median, first or nth launch.
    Jump,
    /// Filter as you type.
    Filter,
    /// Choose a stream, device, process or range.
    Facet,
    /// Choose the grouping.
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
    /// Mark the row.
    Mark,
    /// Remove all marks.
    Unmark,
    /// Choose what to copy.
    Copy,
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
    /// The next section.
    NextSection,
    /// The previous section.
    PreviousSection,
    /// Pin the metric.
    Pin,
    /// What is wrong, or right.
    Hints,
    /// What of an analysis is done.
    Checklist,
    /// The roofline.
    Roofline,
    /// Beside another result.
    Compare,
    /// Another result beside this one.
    CompareWith,
    /// Source lines and instructions.
    Source,
    /// Lines or instructions.
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
    /// Show the run that is under way.
    Watch,
    /// Let the run go on by itself.
    Detach,
    /// What was recorded.
    Library,
    /// Find a run.
    FindRun,
    /// What a run printed.
    RunLog,
    /// Do the next step of a guided run.
    Step,
    /// Leave it out.
    SkipStep,
    /// To the run that it is a re-run of.
    RunOrigin,
    /// Run it once more.
    RunAgain,
    /// Compare two runs.
    RunCompare,
    /// All there is to know of a run.
    RunFacts,
    /// Tag a run.
    RunTags,
    /// Write a note about a run.
    RunNote,
    /// Delete a run.
    RunDelete,
    /// What changed between two reports.
    Diff,
    /// Before and after the other way round.
    Swap,
    /// The report's notes.
    Notes,
    /// The next report of the session.
    NextReport,
    /// The previous report of the session.
    PreviousReport,
    /// Choose a theme.
    Theme,
    /// All actions, by typing.
    Palette,
    /// The keys.
    Help,
    /// Draw everything again.
    Redraw,
    /// Hand the terminal back to the shell.
    Suspend,
    /// End.
    Quit,
}

/// One action.
#[derive(Debug)]
pub struct Action {
    /// What it does.
    pub id: ActionId,
    /// Its name in the configuration file and the palette.
    pub name: &'static str,
    /// Its keys unless the configuration says otherwise.
    pub keys: &'static [&'static str],
    /// Where it works.
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

pub use super::places::Where;
use Where::{Browse, Everywhere, Kernels, Launches, Metrics, Rerun, Results, Runs, Source, Tables};

/// All actions, in the order of the help.
pub static ACTIONS: &[Action] = &[
    action(ActionId::Up, "up", &["up", "k"], Everywhere, "selection up", None),
    action(ActionId::Down, "down", &["down", "j"], Everywhere, "selection down", None),
    action(ActionId::PageUp, "page-up", &["pgup", "ctrl-u", "ctrl-b"], Everywhere, "a page up", None),
    action(ActionId::PageDown, "page-down", &["pgdn", "ctrl-d", "ctrl-f"], Everywhere, "a page down", None),
    action(ActionId::First, "first", &["home"], Everywhere, "first row", None),
    action(ActionId::Last, "last", &["end", "G"], Everywhere, "last row", None),
    action(
        ActionId::Open,
        "open",
        &["enter", "right", "l"],
        Everywhere,
        "into the selected row: a kernel's launches, a launch's metrics, what a metric means; on the re-run screen, change it",
        Some((1, "open")),
    ),
    action(ActionId::Back, "back", &["esc", "left", "h"], Everywhere, "back: out of a screen, or clear the filter", Some((2, "back"))),
    action(ActionId::Filter, "filter", &["/"], Kernels, "filter by name as you type", Some((3, "filter"))),
    action(ActionId::Group, "group", &["g"], Kernels, "group launches by name, configuration, stream, NVTX range …", Some((4, "group"))),
    action(ActionId::Jump, "jump", &["J"], Launches, "go to the slowest, median, first or nth launch", Some((3, "jump"))),
    action(ActionId::Facet, "only", &["f"], Launches, "only launches of one stream, device, process or NVTX range", Some((4, "only"))),
    action(ActionId::Sort, "sort", &["s"], Tables, "choose the order", Some((5, "sort"))),
    action(ActionId::Reverse, "reverse", &["S"], Tables, "turn the order round", None),
    action(ActionId::Form, "names", &["d"], Tables, "names: function, demangled, mangled", Some((8, "names"))),
    action(ActionId::FullName, "full-name", &["N"], Tables, "the full name in all forms", None),
    action(ActionId::Details, "details", &["i"], Tables, "show or hide the details", Some((9, "details"))),
    action(ActionId::Mark, "mark", &["m", "space"], Kernels, "mark or unmark the row, and go on to the next", Some((10, "mark"))),
    action(ActionId::Unmark, "unmark-all", &["M"], Kernels, "remove all marks", None),
    action(
        ActionId::Rerun,
        "rerun",
        &["r"],
        Browse,
        "the command that profiles this launch again (of marked kernels: one each)",
        Some((3, "re-run")),
    ),
    action(
        ActionId::Metrics,
        "metrics",
        &["p"],
        Tables,
        "what ncu measured of this launch (of a kernel, its longest profiled launch)",
        Some((4, "metrics")),
    ),
    action(ActionId::Pair, "pair", &["P"], Browse, "from a result to its launch in the timeline, and back", None),
    action(ActionId::FindMetric, "find-metric", &["/"], Metrics, "find a metric as you type, among all of them", Some((3, "find"))),
    action(ActionId::NextSection, "next-section", &["tab"], Metrics, "next section", Some((4, "section"))),
    action(ActionId::PreviousSection, "previous-section", &["shift-tab"], Metrics, "previous section", None),
    action(ActionId::Pin, "pin", &["m", "space"], Metrics, "pin the metric to the top of every result, or unpin it", Some((6, "pin"))),
    action(
        ActionId::Hints,
        "hints",
        &["a"],
        Browse,
        "what is wrong, or right, with this kernel, why, what to change, and what confirms it; and back",
        Some((2, "hints")),
    ),
    action(ActionId::Roofline, "roofline", &["o"], Browse, "the roofline of this result, and back", Some((4, "roofline"))),
    action(ActionId::Compare, "compare", &["c"], Results, "this result beside another, and back", Some((5, "compare"))),
    action(ActionId::CompareWith, "compare-with", &["C"], Results, "choose the other result", None),
    action(ActionId::Source, "source", &["e"], Browse, "the hottest source lines and instructions, and back", Some((5, "source"))),
    action(ActionId::Instructions, "instructions", &["tab"], Source, "source lines or instructions", Some((3, "lines/SASS"))),
    action(ActionId::CodeOrder, "code-order", &["s"], Source, "by samples, or by place in the code", Some((4, "order"))),
    action(ActionId::NextResult, "next-result", &[">", "."], Results, "next result of this report", Some((7, "next"))),
    action(ActionId::PreviousResult, "previous-result", &["<", ","], Results, "previous result of this report", None),
    action(
        ActionId::RunNow,
        "run-now",
        &["R"],
        Browse,
        "profile this launch again, here and now; its result comes beside it",
        Some((6, "run")),
    ),
    action(ActionId::RunHere, "run-here", &["R"], Rerun, "run the command here; its result comes beside its launch", Some((1, "run here"))),
    action(
        ActionId::Detach,
        "detach",
        &["d"],
        Where::Run,
        "let the run go on by itself, also when the ssh session ends",
        Some((2, "detach")),
    ),
    action(
        ActionId::Step,
        "step",
        &["s"],
        Where::Run,
        "do the next step of a guided run: wait for the server, warm it up, open, load, close, stop",
        Some((1, "next step")),
    ),
    action(
        ActionId::SkipStep,
        "skip-step",
        &["o"],
        Where::Run,
        "leave the next step of a guided run out: it was done elsewhere",
        Some((3, "omit it")),
    ),
    action(
        ActionId::FindRun,
        "find-run",
        &["/"],
        Where::Library,
        "find runs as you type: program, folder, recipe, state, tags, notes",
        Some((3, "find")),
    ),
    action(ActionId::RunAgain, "run-again", &["r"], Where::Library, "run the same command once more", Some((4, "run again"))),
    action(
        ActionId::RunCompare,
        "run-compare",
        &["c", "m"],
        Where::Library,
        "compare two runs: first on the one before, then on the one after",
        Some((5, "compare")),
    ),
    action(
        ActionId::RunOrigin,
        "run-origin",
        &["p"],
        Where::Library,
        "to the run that this one is a re-run of: the chain back, step by step",
        Some((8, "origin")),
    ),
    action(ActionId::RunLog, "run-log", &["e"], Where::Library, "what the run printed", Some((6, "output"))),
    action(
        ActionId::RunFacts,
        "run-facts",
        &["i"],
        Runs,
        "all there is to know of the run: command, folder, commit, machine, clocks",
        Some((7, "details")),
    ),
    action(ActionId::RunTags, "run-tags", &["T"], Where::Library, "tag the run; `keep` protects it from clearing", Some((8, "tags"))),
    action(ActionId::RunNote, "run-note", &["N"], Where::Library, "write a note about the run", Some((9, "note"))),
    action(ActionId::RunDelete, "run-delete", &["D"], Where::Library, "delete the run and its reports; asks first", Some((9, "delete"))),
    action(
        ActionId::Diff,
        "changes",
        &["D"],
        Tables,
        "what changed between this report and another, kernel by kernel",
        Some((11, "changes")),
    ),
    action(ActionId::Swap, "swap", &["S"], Where::Diff, "before and after the other way round", Some((3, "turn round"))),
    action(ActionId::Copy, "copy", &["y"], Everywhere, "copy a name, the row, the table or the command", Some((2, "copy"))),
    action(ActionId::Save, "save", &["w"], Rerun, "save the commands as a script", Some((3, "save script"))),
    action(ActionId::Verify, "verify", &["v"], Rerun, "compare a result with what was selected", Some((4, "verify"))),
    action(ActionId::Undo, "undo", &["u"], Rerun, "take the last change back", Some((5, "undo"))),
    action(ActionId::NextCommand, "next-command", &["tab"], Rerun, "the next of several commands", None),
    action(
        ActionId::Notes,
        "notes",
        &["n"],
        Everywhere,
        "what to know about this report: notes, GPUs, command, copies",
        Some((6, "notes")),
    ),
    action(ActionId::Checklist, "checklist", &["x"], Everywhere, "what of an analysis this session has, and what is still to do", None),
    action(ActionId::Watch, "watch", &["W"], Everywhere, "the run that was started here: what it prints and how far it is", None),
    action(
        ActionId::Library,
        "library",
        &["L"],
        Everywhere,
        "what was recorded before: open, compare, run again, tag, delete",
        Some((9, "library")),
    ),
    action(ActionId::NextReport, "next-report", &["]"], Everywhere, "next report of the session", None),
    action(ActionId::PreviousReport, "previous-report", &["["], Everywhere, "previous report of the session", None),
    action(ActionId::Theme, "theme", &["t"], Everywhere, "choose a theme", Some((12, "theme"))),
    action(ActionId::Palette, "palette", &[":"], Everywhere, "find an action by typing", Some((11, "actions"))),
    action(ActionId::Help, "help", &["?", "f1"], Everywhere, "the keys", Some((0, "help"))),
    action(ActionId::Redraw, "redraw", &["ctrl-l"], Everywhere, "draw the screen again", None),
    action(ActionId::Suspend, "suspend", &["ctrl-z"], Everywhere, "back to the shell; `fg` returns", None),
    action(ActionId::Quit, "quit", &["q", "ctrl-c"], Everywhere, "quit", Some((0, "quit"))),
];

/// An action's row.
#[must_use]
pub fn of(id: ActionId) -> Option<&'static Action> {
    ACTIONS.iter().find(|a| a.id == id)
}

/// Which keys do what.
#[derive(Clone, Debug)]
pub struct Keymap {
    keys: BTreeMap<ActionId, Vec<Key>>,
    actions: HashMap<Key, Vec<ActionId>>,
}

impl Default for Keymap {
    fn default() -> Self {
        // The table's own keys are all readable: a test holds that.
        Self::with(&BTreeMap::new()).unwrap_or_else(|_| Self { keys: BTreeMap::new(), actions: HashMap::new() })
    }
}

impl Keymap {
    /// The default keys, with the user's in place of those of the actions that he names. Two actions may share a key only where never
    /// both work.
    pub fn with(user: &BTreeMap<String, Vec<String>>) -> Result<Self, String> {
        for name in user.keys() {
            if !ACTIONS.iter().any(|a| a.name == name) {
                let near = nearest(name, ACTIONS.iter().map(|a| a.name));
                return Err(match near {
                    Some(near) => format!("[keys]: no action `{name}`; did you mean `{near}`?"),
                    None => format!("[keys]: no action `{name}`; `warpscope` shows them with `?`"),
                });
            }
        }
        let mut map = Self { keys: BTreeMap::new(), actions: HashMap::new() };
        for action in ACTIONS {
            let names: Vec<&str> = user.get(action.name).map_or_else(|| action.keys.to_vec(), |k| k.iter().map(String::as_str).collect());
            for name in names {
                let key = Key::parse(name)
                    .ok_or_else(|| format!("[keys] {}: no key `{name}`; write `q`, `ctrl-c`, `f1`, `enter`, `pgdn` …", action.name))?;
                let taken = map.actions.entry(key).or_default();
                let rival = taken.iter().filter_map(|&id| of(id)).find(|other| other.on.meets(action.on));
                if let Some(rival) = rival {
                    // A default gives way to a key that the user chose.
                    let (mine, theirs) = (user.contains_key(action.name), user.contains_key(rival.name));
                    if mine == theirs {
                        return Err(format!("[keys]: `{name}` is the key of both `{}` and `{}`", rival.name, action.name));
                    }
                    if theirs {
                        continue;
                    }
                    let rival = rival.id;
                    taken.retain(|&id| id != rival);
                    if let Some(keys) = map.keys.get_mut(&rival) {
                        keys.retain(|&k| k != key);
                    }
                }
                taken.push(action.id);
                map.keys.entry(action.id).or_default().push(key);
            }
        }
        Ok(map)
    }

    /// What a key does on a screen.
    #[must_use]
    pub fn action(&self, key: Key, on: Where) -> Option<ActionId> {
        self.actions.get(&key)?.iter().copied().find(|&id| of(id).is_some_and(|a| a.on.works(on)))
    }

    /// Keys of an action.
    #[must_use]
    pub fn keys(&self, id: ActionId) -> &[Key] {
        self.keys.get(&id).map_or(&[], Vec::as_slice)
    }

    /// The first key of an action, as it is shown; empty when it has none.
    #[must_use]
    pub fn label(&self, id: ActionId) -> String {
        self.keys(id).first().map(Key::label).unwrap_or_default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn user(pairs: &[(&str, &str)]) -> BTreeMap<String, Vec<String>> {
        pairs.iter().map(|(a, k)| ((*a).to_owned(), vec![(*k).to_owned()])).collect()
    }

    #[test]
    fn the_default_keys_are_readable_and_without_conflict() {
        let map = Keymap::with(&BTreeMap::new()).unwrap();
        for action in ACTIONS {
            assert_eq!(map.keys(action.id).len(), action.keys.len(), "{}", action.name);
        }
        assert_eq!(map.action(Key::parse("J").unwrap(), Launches), Some(ActionId::Jump));
        assert_eq!(map.action(Key::parse("J").unwrap(), Kernels), None);
    }

    #[test]
    fn the_user_s_key_takes_the_place_of_a_default() {
        let map = Keymap::with(&user(&[("quit", "s")])).unwrap();
        assert_eq!(map.action(Key::parse("s").unwrap(), Kernels), Some(ActionId::Quit));
        assert_eq!(map.action(Key::parse("q").unwrap(), Kernels), None);
        assert!(map.keys(ActionId::Sort).is_empty());
    }

    #[test]
    fn mistakes_are_named() {
        assert_eq!(Keymap::with(&user(&[("qiut", "x")])).unwrap_err(), "[keys]: no action `qiut`; did you mean `quit`?");
        assert!(Keymap::with(&user(&[("quit", "hyper-x")])).unwrap_err().contains("no key `hyper-x`"));
        assert!(Keymap::with(&user(&[("quit", "x"), ("help", "x")])).unwrap_err().contains("both"));
    }
}
