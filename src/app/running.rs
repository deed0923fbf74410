//! Runs of profilers as the session sees them: the one that is watched, what is about to start, what follows, and whose result is awaited.

use super::msg::Effect;
use super::orders::{News, Origin, Start};
use crate::analysis::live::{KernelNow, Live};
use crate::analysis::live_results::MeasuredNow;
use crate::analysis::roofline::Plot;
use crate::launch::doctor::smi::Busy;
use crate::launch::runs::{Progress, Stage, progress};
use crate::library::{Run, Step};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

/// Lines that are kept for scrolling back; the log in the run's folder has more.
pub const MOST_LINES: usize = 5_000;

/// A program that is traced, as it is shown.
#[derive(Clone, Debug, Default)]
pub struct Traced {
    pub live: Option<Box<Live>>,
    /// The selected kernel: it stays selected wherever its time puts it. `None` is the one with the most time.
    pub kernel: Option<Arc<str>>,
    /// The roofline of its result among the others.
    pub plot: Option<Arc<Plot>>,
    /// Whether the picture stands still.
    pub paused: bool,
    /// Whether its output is shown instead.
    pub printing: bool,
}

impl Traced {
    /// Which kernel is selected.
    #[must_use]
    pub fn at(&self) -> usize {
        let Some((live, name)) = self.live.as_ref().zip(self.kernel.as_ref()) else { return 0 };
        live.kernels.iter().position(|k| k.name == *name).unwrap_or(0)
    }

    /// The selected kernel.
    #[must_use]
    pub fn selected(&self) -> Option<&KernelNow> {
        self.live.as_ref()?.kernels.get(self.at())
    }

    /// What was measured of it.
    #[must_use]
    pub fn result(&self) -> Option<&MeasuredNow> {
        self.live.as_ref()?.measured.as_ref()?.of_kernel(&self.selected()?.name)
    }

    /// Selects one further down or up.
    fn go(&mut self, by: isize) {
        let last = self.live.as_ref().map_or(0, |l| l.kernels.len().saturating_sub(1));
        let at = self.at().saturating_add_signed(by).min(last);
        self.kernel = self.live.as_ref().and_then(|l| l.kernels.get(at)).map(|k| k.name.clone());
        self.place();
    }

    /// Places the selected kernel's result on the roofline.
    fn place(&mut self) {
        let metrics = self.live.as_ref().and_then(|l| l.measured.as_ref()).map(|m| &m.metrics);
        self.plot = metrics.zip(self.result()).map(|(metrics, of)| Arc::new(Plot::of(metrics, of.result, &[])));
    }
}

/// A run with what it printed.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The run, once it has begun.
    pub run: Option<Box<Run>>,
    /// The command, on one line.
    pub command: String,
    pub lines: VecDeque<Option<String>>,
    /// Lines that were dropped from the beginning.
    pub dropped: u64,
    /// The line that is not whole yet.
    pub open: String,
    /// How far it is.
    pub progress: Option<Progress>,
    /// Lines below the last one that is shown; 0 follows the output.
    pub back: usize,
    /// Whether this program holds it.
    pub mine: bool,
    /// Whether nothing more will come.
    pub ended: bool,
    /// What its result belongs to.
    pub origin: Option<Origin>,
    /// Whether its reports are opened when it ends.
    pub opens: bool,
    /// Now, milliseconds since 1970.
    pub now_ms: i64,
    /// Steps that are done, as far as this program knows.
    pub step: usize,
    /// When the step that is under way began.
    pub doing: Option<i64>,
    /// How busy each GPU was, the latest last.
    pub gpus: BTreeMap<u32, VecDeque<Busy>>,
    /// The program, where it is traced by this program.
    pub traced: Traced,
    /// Nobody here started it: the path of its traces without process id and suffix.
    pub outside: Option<PathBuf>,
}

/// Samples of a GPU that are kept: ten minutes, one a second.
const MOST_SAMPLES: usize = 600;

impl Watched {
    /// Of a run that is about to start, or is there already.
    #[must_use]
    pub fn new(command: String, run: Option<Box<Run>>, mine: bool) -> Self {
        Self {
            run,
            command,
            lines: VecDeque::new(),
            dropped: 0,
            open: String::new(),
            progress: None,
            back: 0,
            mine,
            ended: false,
            origin: None,
            opens: true,
            now_ms: 0,
            step: 0,
            doing: None,
            gpus: BTreeMap::new(),
            traced: Traced::default(),
            outside: None,
        }
    }

    /// Of traces that something else writes.
    #[must_use]
    pub fn outside(output: PathBuf) -> Self {
        let command = format!("traces {}.*", output.display());
        Self { outside: Some(output), ..Self::new(command, None, false) }
    }

    /// What is shown of the program itself.
    #[must_use]
    pub fn live_view(&self) -> Option<&Live> {
        self.traced.live.as_deref().filter(|_| !self.traced.printing && (!self.ended || self.outside.is_some()))
    }

    /// Selects another kernel of the program.
    pub fn go(&mut self, by: isize) {
        self.traced.go(by);
    }

    /// Takes in how the program stands.
    fn stands(&mut self, live: Box<Live>) {
        // What is not a run ends with its processes.
        if self.outside.is_some() && live.ended() {
            self.ended = true;
        }
        self.now_ms = live.now / 1_000_000;
        if !self.traced.paused {
            self.traced.live = Some(live);
            self.traced.place();
        }
    }

    /// Whether it is under way.
    #[must_use]
    pub fn live(&self) -> bool {
        !self.ended
    }

    /// How far a stop has gone.
    #[must_use]
    pub fn stage(&self) -> Stage {
        self.run.as_ref().and_then(|r| Stage::parse(&r.stage)).unwrap_or(Stage::Running)
    }

    /// Adds a line to the output.
    pub fn print(&mut self, line: Option<String>) {
        self.lines.push_back(line);
        if self.back > 0 {
            self.back += 1;
        }
        while self.lines.len() > MOST_LINES {
            self.lines.pop_front();
            self.dropped += 1;
        }
        self.back = self.back.min(self.lines.len());
    }

    /// Keeps how busy a GPU is.
    pub fn sample(&mut self, busy: Busy) {
        let samples = self.gpus.entry(busy.index).or_default();
        samples.push_back(busy);
        if samples.len() > MOST_SAMPLES {
            samples.pop_front();
        }
    }

    pub fn take(&mut self, news: &News) {
        for line in &news.lines {
            if let Some(found) = line.as_deref().and_then(progress::parse) {
                self.progress = Some(found);
                // A bar that is drawn again and again is one line.
                let again = |l: &Option<String>| {
                    l.as_deref().is_some_and(|l| l.starts_with('[')) && line.as_deref().is_some_and(|l| l.starts_with('['))
                };
                if self.lines.back().is_some_and(again) {
                    self.lines.pop_back();
                }
            }
            self.print(line.clone());
        }
        if let Some(found) = progress::parse(&news.open) {
            self.progress = Some(found);
        }
        self.open.clone_from(&news.open);
        self.run = Some(news.run.clone());
        self.now_ms = news.now_ms;
    }

    /// The steps of the run, and which is next.
    #[must_use]
    pub fn steps(&self) -> (&[Step], usize) {
        self.run.as_ref().map_or((&[], 0), |r| (&r.steps, self.step.max(r.step)))
    }

    #[must_use]
    pub fn next_step(&self) -> Option<&Step> {
        let (steps, next) = self.steps();
        steps.get(next).filter(|_| self.live())
    }
}

impl Watched {
    /// What is said when a stop goes one step further.
    #[must_use]
    pub fn stop_said(&self, key: &str) -> String {
        match self.stage() {
            Stage::Running => format!("asked the profiler to stop (INT); it is writing its report; {key} again sends TERM"),
            Stage::Interrupted => format!("told the profiler to terminate (TERM); {key} again sends KILL"),
            Stage::Terminated => "killed the profiler (KILL)".to_owned(),
            Stage::Killed => "the profiler was killed; waiting for it to exit".to_owned(),
        }
    }

    /// The next step is behind the run.
    pub fn advance(&mut self, left_out: bool) -> Vec<Effect> {
        let (steps, next) = self.steps();
        self.step = (next + 1).min(steps.len());
        let Some(run) = &mut self.run else { return Vec::new() };
        if let Some(step) = run.steps.get_mut(next) {
            step.left_out = left_out;
        }
        vec![Effect::Stepped { run: run.id, done: self.step, left_out }]
    }
}

/// What is still to be run.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    waiting: VecDeque<(Start, Option<Origin>)>,
    /// How many there were in all.
    total: usize,
    /// The run of it that is under way.
    current: Option<i64>,
    /// That some were not begun, until it is said.
    given_up: Option<String>,
}

impl Queue {
    /// Of these, the first of which is about to start.
    #[must_use]
    pub fn after_first(all: usize, rest: Vec<(Start, Option<Origin>)>) -> Self {
        Self { waiting: rest.into(), total: all, ..Self::default() }
    }

    /// This run of it has begun.
    pub fn began(&mut self, run: i64) {
        self.current = Some(run);
    }

    /// Which of how many runs now, when there are several.
    #[must_use]
    pub fn at(&self) -> Option<(usize, usize)> {
        (self.total > 1).then(|| (self.total - self.waiting.len(), self.total))
    }

    /// The run of it that ends now: which of how many it was, and what is next if it ended well.
    pub fn ended(&mut self, run: i64) -> Option<(usize, usize)> {
        // Other runs may end as well, and what was asked about and declined was never begun.
        let at = self.at().filter(|_| self.current == Some(run))?;
        self.current = None;
        Some(at)
    }

    pub fn pop(&mut self) -> Option<(Start, Option<Origin>)> {
        self.waiting.pop_front()
    }

    /// Gives up the rest: how many that are.
    pub fn give_up(&mut self) -> usize {
        std::mem::take(self).waiting.len()
    }

    /// Remembers what is to be said of that.
    pub fn remember(&mut self, text: String) {
        self.given_up = Some(text);
    }

    /// What is to be said when the last result is here: its own message must not hide it.
    pub fn given_up(&mut self) -> Option<String> {
        self.given_up.take()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Running {
    /// The run that is watched.
    pub watched: Option<Watched>,
    /// What is about to be started, with what its result belongs to.
    pub starting: Option<(Start, Option<Origin>)>,
    /// What the checks found, until nothing lies on top.
    pub checked: Option<Vec<(String, bool)>>,
    /// What the checks would rather not start; the user is asked.
    pub doubted: Option<(Start, Option<Origin>)>,
    /// What is run after the run that is watched.
    pub queue: Queue,
    /// A re-run's result that is being read: what it belongs to, and its report.
    pub awaited: Option<(Origin, usize)>,
}

impl Running {
    /// Whether a run is in progress.
    #[must_use]
    pub fn live(&self) -> bool {
        self.watched.as_ref().is_some_and(Watched::live)
    }

    /// Whether a run of this program is in progress that would end with it.
    #[must_use]
    pub fn held(&self) -> bool {
        self.watched.as_ref().is_some_and(|r| r.live() && r.mine)
    }

    /// Keeps how busy a GPU is while a run goes on.
    pub fn gpu(&mut self, run: Option<i64>, busy: Option<Busy>) {
        let Some(watched) = self.watched.as_mut().filter(|w| w.live() && w.run.as_ref().map(|r| r.id) == run) else { return };
        match busy {
            Some(busy) => watched.sample(busy),
            // Old figures would look like what the GPU does now.
            None => watched.gpus.clear(),
        }
    }

    /// Keeps how a program stands that is traced.
    pub fn stands(&mut self, run: Option<i64>, live: Box<Live>) {
        if let Some(watched) = self.watched.as_mut().filter(|w| w.live() && w.run.as_ref().map(|r| r.id) == run) {
            watched.stands(live);
        }
    }

    /// Takes runs that are to follow each other; the first is checked before it starts.
    pub fn record(&mut self, mut all: Vec<(Start, Option<Origin>)>) -> Option<Effect> {
        if all.is_empty() {
            return None;
        }
        let rest = all.split_off(1);
        let first = all.pop()?;
        self.queue = Queue::after_first(rest.len() + 1, rest);
        let start = first.0.clone();
        self.starting = Some(first);
        Some(Effect::Preflight(Box::new(start)))
    }

    /// How far a stop of it has gone.
    #[must_use]
    pub fn stage(&self) -> Option<Stage> {
        self.watched.as_ref().map(Watched::stage)
    }
}
