//! State of profiler runs: watched, starting, queued and awaited

use super::messages::{News, Origin, Start};
use super::msg::Effect;
use crate::analysis::live::{KernelNow, Live};
use crate::analysis::live_results::MeasuredNow;
use crate::analysis::roofline::Plot;
use crate::launch::doctor::smi::Busy;
use crate::launch::runs::{Progress, Stage, progress};
use crate::library::{GuidedStep, Run};
use std::collections::{BTreeMap, VecDeque};
use std::path::PathBuf;
use std::sync::Arc;

/// Maximum number of output lines kept for scrolling; the log in the run's folder has more.
pub const MOST_LINES: usize = 5_000;

/// View of a traced program.
#[derive(Clone, Debug, Default)]
pub struct Traced {
    pub live: Option<Box<Live>>,
    /// Selected kernel, kept when the order changes; `None` selects the kernel that accounts for most of the time.
    pub kernel: Option<Arc<str>>,
    /// Roofline with the selected kernel's result.
    pub plot: Option<Arc<Plot>>,
    /// True while the view is frozen.
    pub paused: bool,
    /// True if the program's output is shown instead of its GPU work.
    pub printing: bool,
}

impl Traced {
    /// Index of the selected kernel; 0 if none is selected or the kernel is no longer listed.
    pub fn selected_index(&self) -> usize {
        let Some((live, name)) = self.live.as_ref().zip(self.kernel.as_ref()) else { return 0 };
        live.kernels.iter().position(|k| k.name == *name).unwrap_or(0)
    }

    pub fn selected_kernel(&self) -> Option<&KernelNow> {
        self.live.as_ref()?.kernels.get(self.selected_index())
    }

    /// Measured result of the selected kernel.
    pub fn selected_result(&self) -> Option<&MeasuredNow> {
        self.live.as_ref()?.measured.as_ref()?.of_kernel(&self.selected_kernel()?.name)
    }

    /// Moves the selection down or up.
    fn move_selection(&mut self, by: isize) {
        let last = self.live.as_ref().map_or(0, |l| l.kernels.len().saturating_sub(1));
        let at = self.selected_index().saturating_add_signed(by).min(last);
        self.kernel = self.live.as_ref().and_then(|l| l.kernels.get(at)).map(|k| k.name.clone());
        self.update_plot();
    }

    /// Places the selected kernel's result on the roofline.
    fn update_plot(&mut self) {
        let metrics = self.live.as_ref().and_then(|l| l.measured.as_ref()).map(|m| &m.metrics);
        self.plot = metrics.zip(self.selected_result()).map(|(metrics, of)| Arc::new(Plot::from_result(metrics, of.result, &[])));
    }
}

/// Watched run with its output.
#[derive(Clone, Debug)]
pub struct Watched {
    /// The run, once it has started.
    pub run: Option<Box<Run>>,
    /// The command, on one line.
    pub command: String,
    pub lines: VecDeque<Option<String>>,
    /// Number of lines dropped from the beginning.
    pub dropped: u64,
    /// Incomplete last line.
    pub open: String,
    pub progress: Option<Progress>,
    /// Number of lines below the last visible one; 0 follows the output.
    pub back: usize,
    /// True if the run ends with this program.
    pub mine: bool,
    /// True if no more updates follow.
    pub ended: bool,
    /// Launches of a re-run, to which the result belongs.
    pub origin: Option<Origin>,
    /// True if the run's reports are to be opened when the run ends.
    pub opens: bool,
    /// Current time, milliseconds since 1970.
    pub now_ms: i64,
    /// Number of steps finished during this session; the run's record may include more.
    pub step: usize,
    /// Start of the current step, milliseconds since 1970.
    pub doing: Option<i64>,
    /// Utilization samples of each GPU, latest last.
    pub gpus: BTreeMap<u32, VecDeque<Busy>>,
    /// Live view of the program, if the built-in tracer records it.
    pub traced: Traced,
    /// Path, without process id and suffix, of traces that another process started.
    pub outside: Option<PathBuf>,
}

/// Maximum number of samples per GPU: ten minutes at one per second.
const MOST_SAMPLES: usize = 600;

impl Watched {
    /// Creates the state of a run that is about to start or already exists.
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

    /// Creates the state for traces written by another process.
    pub fn from_traces(output: PathBuf) -> Self {
        let command = format!("traces {}.*", output.display());
        Self { outside: Some(output), ..Self::new(command, None, false) }
    }

    /// Live view of the program, unless its output is shown instead.
    pub fn live_view(&self) -> Option<&Live> {
        self.traced.live.as_deref().filter(|_| !self.traced.printing && (!self.ended || self.outside.is_some()))
    }

    /// Moves the selection among the program's kernels.
    pub fn move_selection(&mut self, by: isize) {
        self.traced.move_selection(by);
    }

    /// Updates the state of the traced program.
    fn update_live(&mut self, live: Box<Live>) {
        // Traces without a run end when their processes do.
        if self.outside.is_some() && live.has_ended() {
            self.ended = true;
        }
        self.now_ms = live.now / 1_000_000;
        if !self.traced.paused {
            self.traced.live = Some(live);
            self.traced.update_plot();
        }
    }

    /// Returns true while the run is in progress.
    pub fn is_live(&self) -> bool {
        !self.ended
    }

    /// Current stage of stopping the run.
    pub fn stop_stage(&self) -> Stage {
        self.run.as_ref().and_then(|r| Stage::from_name(&r.stage)).unwrap_or(Stage::Running)
    }

    /// Appends a line to the output.
    pub fn push_line(&mut self, line: Option<String>) {
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

    /// Stores a utilization sample of a GPU.
    pub fn push_sample(&mut self, busy: Busy) {
        let samples = self.gpus.entry(busy.index).or_default();
        samples.push_back(busy);
        if samples.len() > MOST_SAMPLES {
            samples.pop_front();
        }
    }

    pub fn apply_news(&mut self, news: &News) {
        for line in &news.lines {
            if let Some(found) = line.as_deref().and_then(progress::parse_progress) {
                self.progress = Some(found);
                // A redrawn progress bar replaces its previous line.
                let again = |l: &Option<String>| {
                    l.as_deref().is_some_and(|l| l.starts_with('[')) && line.as_deref().is_some_and(|l| l.starts_with('['))
                };
                if self.lines.back().is_some_and(again) {
                    self.lines.pop_back();
                }
            }
            self.push_line(line.clone());
        }
        if let Some(found) = progress::parse_progress(&news.open) {
            self.progress = Some(found);
        }
        self.open.clone_from(&news.open);
        self.run = Some(news.run.clone());
        self.now_ms = news.now_ms;
    }

    /// Steps of the run, and the index of the next one.
    pub fn steps(&self) -> (&[GuidedStep], usize) {
        self.run.as_ref().map_or((&[], 0), |r| (&r.steps, self.step.max(r.step)))
    }

    pub fn next_step(&self) -> Option<&GuidedStep> {
        let (steps, next) = self.steps();
        steps.get(next).filter(|_| self.is_live())
    }
}

impl Watched {
    /// Status text for the next stage of a stop.
    pub fn stop_message(&self, key: &str) -> String {
        match self.stop_stage() {
            Stage::Running => format!("asked the profiler to stop (INT); it is writing its report; {key} again sends TERM"),
            Stage::Interrupted => format!("told the profiler to terminate (TERM); {key} again sends KILL"),
            Stage::Terminated => "killed the profiler (KILL)".to_owned(),
            Stage::Killed => "the profiler was killed; waiting for it to exit".to_owned(),
        }
    }

    /// Marks the next step as finished or skipped.
    pub fn advance_step(&mut self, left_out: bool) -> Vec<Effect> {
        let (steps, next) = self.steps();
        self.step = (next + 1).min(steps.len());
        let Some(run) = &mut self.run else { return Vec::new() };
        if let Some(step) = run.steps.get_mut(next) {
            step.left_out = left_out;
        }
        vec![Effect::Stepped { run: run.id, done: self.step, left_out }]
    }
}

/// Runs that are waiting to start.
#[derive(Clone, Debug, Default)]
pub struct Queue {
    waiting: VecDeque<(Start, Option<Origin>)>,
    /// Total number of runs, including started ones.
    total: usize,
    /// Id of the current run of the queue.
    current: Option<i64>,
    /// Pending message that some runs were not started.
    given_up: Option<String>,
}

impl Queue {
    /// Creates a queue of `all` runs, the first of which is about to start.
    pub fn after_first(all: usize, rest: Vec<(Start, Option<Origin>)>) -> Self {
        Self { waiting: rest.into(), total: all, ..Self::default() }
    }

    /// Records that this run of the queue has started.
    pub fn set_current(&mut self, run: i64) {
        self.current = Some(run);
    }

    /// Position of the current run and the total, if there is more than one run.
    pub fn current_position(&self) -> Option<(usize, usize)> {
        (self.total > 1).then(|| (self.total - self.waiting.len(), self.total))
    }

    /// Records the end of a run; returns its position and the total if it was the queue's current run.
    pub fn finish_run(&mut self, run: i64) -> Option<(usize, usize)> {
        // Runs outside the queue may end, too, and a declined run never started.
        let at = self.current_position().filter(|_| self.current == Some(run))?;
        self.current = None;
        Some(at)
    }

    pub fn pop(&mut self) -> Option<(Start, Option<Origin>)> {
        self.waiting.pop_front()
    }

    /// Drops the remaining runs and returns their number.
    pub fn give_up(&mut self) -> usize {
        std::mem::take(self).waiting.len()
    }

    /// Stores a message about dropped runs.
    pub fn keep_message(&mut self, text: String) {
        self.given_up = Some(text);
    }

    /// Takes the pending message, to show it together with the message about the last result.
    pub fn take_message(&mut self) -> Option<String> {
        self.given_up.take()
    }
}

#[derive(Clone, Debug, Default)]
pub struct Running {
    pub watched: Option<Watched>,
    /// Run that is about to start, with the launches of a re-run.
    pub starting: Option<(Start, Option<Origin>)>,
    /// Preflight findings that are held back while an overlay is open.
    pub checked: Option<Vec<(String, bool)>>,
    /// Run with preflight problems, waiting for the user's confirmation.
    pub doubted: Option<(Start, Option<Origin>)>,
    /// Runs that start after the watched run.
    pub queue: Queue,
    /// Re-run whose result is being read: its launches, and the index of the new report.
    pub awaited: Option<(Origin, usize)>,
}

impl Running {
    /// Returns true if a run is in progress.
    pub fn is_live(&self) -> bool {
        self.watched.as_ref().is_some_and(Watched::is_live)
    }

    /// Returns true if a run is in progress that would end with this program.
    pub fn has_attached_run(&self) -> bool {
        self.watched.as_ref().is_some_and(|r| r.is_live() && r.mine)
    }

    /// Stores a utilization sample of a GPU during a run.
    pub fn record_gpu_sample(&mut self, run: Option<i64>, busy: Option<Busy>) {
        let Some(watched) = self.watched.as_mut().filter(|w| w.is_live() && w.run.as_ref().map(|r| r.id) == run) else { return };
        match busy {
            Some(busy) => watched.push_sample(busy),
            // Stale samples would look current.
            None => watched.gpus.clear(),
        }
    }

    /// Updates the state of the watched program.
    pub fn update_live(&mut self, run: Option<i64>, live: Box<Live>) {
        if let Some(watched) = self.watched.as_mut().filter(|w| w.is_live() && w.run.as_ref().map(|r| r.id) == run) {
            watched.update_live(live);
        }
    }

    /// Queues runs and returns the preflight check of the first one.
    pub fn enqueue_runs(&mut self, mut all: Vec<(Start, Option<Origin>)>) -> Option<Effect> {
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

    /// Current stage of stopping the watched run.
    pub fn stop_stage(&self) -> Option<Stage> {
        self.watched.as_ref().map(Watched::stop_stage)
    }
}
