//! State of the re-run screen: which launches, with which options, and the commands that come out.

pub use super::line::LineOf;
use super::report::Report;
use super::rerun_fields::{FIELDS, Field};
use super::work::{Ask, Picked, Work};
use super::{App, Effect, Overlay, Status};
use crate::analysis::Grouping;
use crate::model::LaunchId;
use crate::rerun::nvtx::RangeName;
use crate::rerun::{Alternative, Options, Plan, Rerun, script};
use std::path::PathBuf;
use std::sync::Arc;
use tui_input::Input;

/// Which launches of the groups are wanted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Choose {
    /// This one.
    One(LaunchId),
    /// The one nearest to the median, of each group.
    Median,
    /// The longest, of each group; so many.
    Slowest(usize),
    /// The longest and the one nearest to the median, of each group.
    SlowestAndMedian,
    /// The first, of each group.
    First,
    /// All inside ranges of this name.
    Inside(RangeName),
    /// A CUDA graph that was traced whole, by its index.
    Graph(u32),
}

/// A row of the screen.
#[derive(Clone, Copy, Debug)]
pub enum Row {
    /// A warning, by its index.
    Warning(usize),
    /// Another command, by its index.
    Alternative(usize),
    /// Something to change.
    Field(&'static Field),
}

/// What a plan was made from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Request {
    /// Which launches.
    pub choose: Choose,
    /// Options.
    pub options: Options,
}

/// The re-run screen.
#[derive(Clone, Debug)]
pub struct RerunScreen {
    /// The grouping that the launches are from.
    pub grouping: Arc<Grouping>,
    /// Rows of it.
    pub rows: Vec<usize>,
    /// Which launches the screen was opened for.
    pub origin: Choose,
    /// What is wanted now.
    pub request: Request,
    /// What was wanted before, for undo.
    before: Vec<Request>,
    /// The commands, or why there are none.
    pub plan: Option<Result<Arc<Plan>, String>>,
    /// What the plan was made from, and what is around its first launch.
    pub picked: Option<Arc<Picked>>,
    /// The request that `plan` answers.
    planned: Option<Request>,
    /// Which of several commands is shown.
    pub command: usize,
    /// Selected row.
    pub selected: usize,
    /// Whether it is to be run as soon as it is there.
    pub run_when_ready: bool,
    /// What the last comparison said, and whether all was as selected.
    pub verdict: Option<(String, bool)>,
    serial: u64,
}

/// Requests that undo goes back over.
const MOST_UNDO: usize = 100;

impl RerunScreen {
    /// A screen for launches of some groups.
    #[must_use]
    pub fn new(grouping: Arc<Grouping>, rows: Vec<usize>, choose: Choose, serial: u64) -> Self {
        Self {
            grouping,
            rows,
            origin: choose.clone(),
            request: Request { choose, options: Options::first_look() },
            before: Vec::new(),
            plan: None,
            picked: None,
            planned: None,
            command: 0,
            selected: 0,
            run_when_ready: false,
            verdict: None,
            serial,
        }
    }

    /// The plan, when there is one.
    #[must_use]
    pub fn plan(&self) -> Option<&Plan> {
        self.plan.as_ref()?.as_ref().ok().map(|p| &**p)
    }

    /// The command that is shown.
    #[must_use]
    pub fn rerun(&self) -> Option<&Rerun> {
        self.plan()?.commands.get(self.command)
    }

    /// Whether the plan is not yet what it should be.
    #[must_use]
    pub fn pending(&self) -> bool {
        self.planned.as_ref() != Some(&self.request)
    }

    /// Rows: what to take care of, a better command, what can be changed, other commands.
    #[must_use]
    pub fn rows(&self) -> Vec<Row> {
        let warnings = self.rerun().map_or(0, |r| r.warnings.len());
        let others = |better: bool| {
            self.alternatives().iter().enumerate().filter(move |(_, a)| a.better == better).map(|(i, _)| Row::Alternative(i))
        };
        let mut rows: Vec<Row> = (0..warnings).map(Row::Warning).collect();
        rows.extend(others(true));
        rows.extend(FIELDS.iter().filter(|f| (f.applies)(self)).map(Row::Field));
        rows.extend(others(false));
        rows
    }

    /// Other commands that are offered.
    #[must_use]
    pub fn alternatives(&self) -> &[Alternative] {
        self.rerun().map_or(&[], |r| &r.alternatives)
    }

    /// The selected row.
    #[must_use]
    pub fn row(&self) -> Option<Row> {
        self.rows().get(self.selected).copied()
    }

    /// Number of rows.
    #[must_use]
    pub fn len(&self) -> usize {
        self.rows().len()
    }

    /// True without rows.
    #[must_use]
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Selects the field of a title, else the first field.
    fn select(&mut self, title: Option<&str>) {
        let rows = self.rows();
        let is = |row: &Row, title: Option<&str>| matches!(row, Row::Field(f) if title.is_none_or(|t| t == f.title));
        let at = rows.iter().position(|r| title.is_some() && is(r, title)).or_else(|| rows.iter().position(|r| is(r, None)));
        self.selected = at.unwrap_or(0);
    }

    /// Asks for something else.
    pub fn change(&mut self, request: Request) {
        if request == self.request {
            return;
        }
        self.before.push(std::mem::replace(&mut self.request, request));
        if self.before.len() > MOST_UNDO {
            self.before.remove(0);
        }
        self.verdict = None;
    }

    /// Goes back to what was asked before; false when there is nothing.
    pub fn undo(&mut self) -> bool {
        self.verdict = None;
        self.before.pop().map(|r| self.request = r).is_some()
    }

    /// Takes a plan, if it is the one that was asked for last.
    pub fn take(&mut self, serial: u64, request: Request, picked: Arc<Picked>, plan: Result<Arc<Plan>, String>) {
        if serial != self.serial || request != self.request {
            return;
        }
        // Rows come and go with the command: the field that was selected stays selected.
        let title = match self.row() {
            Some(Row::Field(field)) if self.plan.is_some() => Some(field.title),
            _ => None,
        };
        self.planned = Some(request);
        self.picked = Some(picked);
        self.plan = Some(plan);
        self.command = self.command.min(self.plan().map_or(0, |p| p.commands.len().saturating_sub(1)));
        self.select(title.or(Some("launches")));
    }

    fn ask(&self) -> Ask {
        Ask::Rerun { grouping: self.grouping.clone(), rows: self.rows.clone(), request: self.request.clone(), serial: self.serial }
    }
}

impl Report {
    /// Asks for the plan of the re-run screen.
    #[must_use]
    pub fn want_plan(&self, index: usize) -> Vec<Effect> {
        match (&self.rerun, &self.profile) {
            (Some(screen), Some(profile)) => vec![Effect::Work(Box::new(Work {
                report: index,
                generation: self.generation,
                profile: profile.clone(),
                paths: self.paths.clone(),
                ask: screen.ask(),
            }))],
            _ => Vec::new(),
        }
    }
}

fn say(app: &mut App, text: impl Into<String>, error: bool) -> Vec<Effect> {
    app.status = Some(Status { text: text.into(), error });
    Vec::new()
}

/// Opens the screen: on the selected launch, or on a typical launch of the selected or marked groups.
pub fn open(app: &mut App) -> Vec<Effect> {
    let index = app.active;
    let Some(report) = app.reports.get_mut(index) else {
        return Vec::new();
    };
    let Some(profile) = report.profile.clone() else {
        return say(app, "nothing is read yet", false);
    };
    if profile.launches.is_empty() {
        let text = if profile.totals.is_empty() {
            "there is no launch to profile again"
        } else {
            "this report holds sums per kernel, no single launches"
        };
        return say(app, text, true);
    }
    if report.reading() {
        return say(app, "the launches are still being read", false);
    }
    // From a result of this very report: its own launch.
    let own = match &report.result {
        Some(s) if s.report == index && profile.metrics.is_some() => Some(s.result),
        // Of a result that was joined: the launch that it is of, or one of its like.
        Some(s) => {
            let Some(pair) = report.launch_of(s.report, s.result) else {
                return say(app, "this result is of no launch of the timeline: choose a launch there", true);
            };
            Some(pair.launch as usize)
        }
        None => None,
    };
    let (grouping, rows, choose) = if let (Some(launch), Some(grouping)) = (own, report.kernels.grouping.clone()) {
        let Some(row) = grouping.row_of(&profile, report.paths.as_deref(), launch) else {
            return say(app, "no launch is selected", true);
        };
        (grouping, vec![row], Choose::One(LaunchId(u32::try_from(launch).unwrap_or(u32::MAX))))
    } else if let Some(screen) = &report.launches {
        let Some(launch) = screen.launch() else {
            return say(app, "no launch is selected", true);
        };
        (screen.grouping.clone(), vec![screen.row], Choose::One(LaunchId(launch)))
    } else {
        let (Some(grouping), Some(row)) = (report.kernels.grouping.clone(), report.kernels.row()) else {
            return say(app, "no kernel is selected", true);
        };
        let marked: Vec<usize> =
            grouping.rows.iter().enumerate().filter(|(_, r)| report.kernels.marked.contains(&r.name)).map(|(i, _)| i).collect();
        (grouping, if marked.is_empty() { vec![row] } else { marked }, Choose::Median)
    };
    let serial = report.next_serial();
    let mut screen = RerunScreen::new(grouping, rows, choose, serial);
    // A hint's own sections.
    if let Some(result) = &report.result {
        screen.request.options = super::hints::options(result);
    }
    report.rerun = Some(screen);
    report.want_plan(index)
}

/// Changes what is asked, and asks.
pub fn change(app: &mut App, request: Request) -> Vec<Effect> {
    let index = app.active;
    let Some(report) = app.reports.get_mut(index) else {
        return Vec::new();
    };
    if let Some(screen) = &mut report.rerun {
        screen.change(request);
    }
    report.want_plan(index)
}

/// Acts on the selected row: opens a field's choices, or takes an alternative over.
pub fn edit(app: &mut App) -> Vec<Effect> {
    let Some(screen) = app.report().and_then(|r| r.rerun.as_ref()) else {
        return Vec::new();
    };
    match screen.row() {
        Some(Row::Alternative(i)) => {
            let Some(other) = screen.alternatives().get(i) else {
                return Vec::new();
            };
            let request = Request { options: other.options.clone(), ..screen.request.clone() };
            change(app, request)
        }
        Some(Row::Field(field)) => (field.edit)(app),
        Some(Row::Warning(_)) => say(app, "a warning: there is nothing to change on this line", false),
        None => Vec::new(),
    }
}

/// Goes back to what was asked before.
pub fn undo(app: &mut App) -> Vec<Effect> {
    let index = app.active;
    let undone = app.reports.get_mut(index).and_then(|r| r.rerun.as_mut()).is_some_and(RerunScreen::undo);
    if !undone {
        return say(app, "nothing to undo", false);
    }
    app.status = Some(Status { text: "the last change is taken back".to_owned(), error: false });
    app.reports.get(index).map(|r| r.want_plan(index)).unwrap_or_default()
}

/// Shows the next of several commands.
pub fn next_command(app: &mut App) -> Vec<Effect> {
    let index = app.active;
    let Some(screen) = app.reports.get_mut(index).and_then(|r| r.rerun.as_mut()) else {
        return Vec::new();
    };
    let n = screen.plan().map_or(0, |p| p.commands.len());
    if n < 2 {
        return say(app, "there is one command", false);
    }
    let title = match screen.row() {
        Some(Row::Field(field)) => Some(field.title),
        _ => None,
    };
    screen.command = (screen.command + 1) % n;
    screen.verdict = None;
    screen.select(title);
    Vec::new()
}

/// Whether the command that is shown is not yet the one that was asked for; says so.
pub fn not_ready(app: &mut App) -> bool {
    let pending = app.report().and_then(|r| r.rerun.as_ref()).is_some_and(RerunScreen::pending);
    if pending {
        say(app, "the command is being made anew; once more, please", true);
    }
    pending
}

/// Asks where to save the script.
pub fn ask_save(app: &mut App) -> Vec<Effect> {
    if not_ready(app) {
        return Vec::new();
    }
    let Some(screen) = app.report().and_then(|r| r.rerun.as_ref()).filter(|s| s.plan().is_some()) else {
        return say(app, "there is no command to save", true);
    };
    let stem = screen
        .plan()
        .map_or_else(String::new, |p| p.folder.clone().or_else(|| p.commands.first().map(|c| c.output.clone())).unwrap_or_default());
    let stem = stem.rsplit('/').find(|s| !s.is_empty()).unwrap_or("rerun").to_owned();
    app.overlay = Some(Overlay::Line(LineOf::Save, Input::new(format!("./{stem}.sh"))));
    Vec::new()
}

/// Asks which result to compare.
pub fn ask_verify(app: &mut App) -> Vec<Effect> {
    if not_ready(app) {
        return Vec::new();
    }
    let Some(screen) = app.report().and_then(|r| r.rerun.as_ref()).filter(|s| s.rerun().is_some_and(|r| !r.selects.is_empty())) else {
        return say(app, "no single launch is selected, so there is nothing to compare", true);
    };
    let Some(rerun) = screen.rerun() else {
        return Vec::new();
    };
    // A relative name lies where the program ran.
    let file = format!("{}.ncu-rep", rerun.output);
    let path = match &rerun.directory {
        Some(directory) => PathBuf::from(directory).join(&file).display().to_string(),
        None => file,
    };
    app.overlay = Some(Overlay::Line(LineOf::Verify, Input::new(path)));
    Vec::new()
}

/// Takes a typed line.
pub fn take_line(app: &mut App, what: LineOf, text: &str) -> Vec<Effect> {
    if matches!(what, LineOf::Tags | LineOf::Note) {
        return super::library::take_line(app, what, text);
    }
    let text = text.trim();
    let Some(screen) = app.report().and_then(|r| r.rerun.as_ref()) else {
        return Vec::new();
    };
    let mut request = screen.request.clone();
    let o = &mut request.options;
    let given = (!text.is_empty()).then(|| text.to_owned());
    match what {
        LineOf::Output => o.output = given.map(|t| t.strip_suffix(".ncu-rep").map_or(t.clone(), str::to_owned)),
        LineOf::Directory => o.directory = given,
        LineOf::Program => match shlex::split(text) {
            Some(words) => o.program = (!words.is_empty()).then_some(words),
            None => return say(app, "a quote is not closed; nothing is changed", true),
        },
        LineOf::Sections => {
            let ids: Vec<String> = text.split_whitespace().map(str::to_owned).collect();
            if ids.is_empty() {
                return say(app, "no section is named; nothing is changed", true);
            }
            o.collect = crate::rerun::Collect::Sections(ids);
        }
        LineOf::Rank => match (text.is_empty(), text.parse()) {
            (true, _) => o.rank = None,
            (_, Ok(rank)) => o.rank = Some(rank),
            _ => return say(app, "a rank is a number from 0; nothing is changed", true),
        },
        LineOf::Graph => match text.parse() {
            Ok(n) => request.choose = Choose::Graph(n),
            Err(_) => return say(app, "a graph launch is a number from 0; nothing is changed", true),
        },
        LineOf::Tags | LineOf::Note => return Vec::new(),
        LineOf::Save => return save(app, text),
        LineOf::Verify => {
            let selects = screen.rerun().map(|r| r.selects.clone()).unwrap_or_default();
            let report = app.active;
            return if text.is_empty() { Vec::new() } else { vec![Effect::Verify { report, path: PathBuf::from(text), selects }] };
        }
    }
    change(app, request)
}

fn save(app: &mut App, path: &str) -> Vec<Effect> {
    if not_ready(app) {
        return Vec::new();
    }
    if path.is_empty() {
        return say(app, "no file is named; nothing is saved", true);
    }
    let Some((report, plan)) = app.report().and_then(|r| Some((r, r.rerun.as_ref()?.plan()?))) else {
        return Vec::new();
    };
    let text = script::script(plan, &report.file.display().to_string());
    vec![Effect::Save(PathBuf::from(path), text)]
}
