//! A process whose trace is being followed: its dictionary, and the state of its recorder.

use super::empty_trace::why_stopped;
use super::kernels::function_name;
use super::key_values::Facts;
use super::live_counters::Counting;
use super::nvtx_marks::{Event, What};
use super::range_profiler_results::WAITS;
use super::rows::{Config, INLINE, Kernel, Rows};
use crate::model::live::{Fresh, Measuring, NO_KERNEL, Ran, Recorder};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::VecDeque;
use std::path::Path;
use std::sync::Arc;

/// Time without a state report after which to check that the process still exists, ns; state is reported every second.
const SILENT: i64 = 3_000_000_000;
/// Maximum number of state reports to keep; a process reports once per second and on request.
const STOOD: usize = 1024;

/// Names by id, in order of first appearance.
#[derive(Default)]
pub struct Interned {
    of: FxHashMap<Arc<str>, u32>,
    fresh: Vec<Arc<str>>,
}

impl Interned {
    fn intern_name(&mut self, name: Arc<str>) -> u32 {
        let next = u32::try_from(self.of.len()).unwrap_or(NO_KERNEL);
        *self.of.entry(name).or_insert_with_key(|name| {
            self.fresh.push(name.clone());
            next
        })
    }

    /// Returns the names added since the last call.
    pub fn take_fresh(&mut self) -> Vec<Arc<str>> {
        std::mem::take(&mut self.fresh)
    }
}

/// Kernels and GPUs of all processes.
#[derive(Default)]
pub struct Numbers {
    pub kernels: Interned,
    pub devices: Interned,
}

#[derive(Default)]
pub struct Process {
    pub facts: Facts,
    /// Encoded blocks that rows refer to: facts, strings, configurations, threads and GPUs.
    pub dictionary: Vec<Vec<u8>>,
    texts: FxHashMap<u32, Arc<str>>,
    /// Name and device of each configuration.
    configs: FxHashMap<u32, (u32, u32)>,
    /// Kernel id by name, and device id by ordinal.
    kernels: FxHashMap<u32, u32>,
    devices: FxHashMap<u32, u32>,
    labels: FxHashMap<u32, Arc<str>>,
    pub counting: Counting,
    pub recorder: Recorder,
    /// Time and block number of each state report. Blocks are numbered across all files of a process.
    stood: VecDeque<(i64, u32)>,
}

impl Process {
    pub fn new(facts: Facts) -> Self {
        let program = facts.get("executable").and_then(|e| Path::new(e).file_name()).map(|n| n.to_string_lossy().into_owned());
        let recorder = Recorder {
            pid: facts.number("pid").unwrap_or(0),
            program: program.unwrap_or_default(),
            rank: facts.rank().rank,
            started: facts.number("started").unwrap_or(0),
            kept_ms: facts.number("kept_ms").filter(|&ms| ms > 0),
            ..Recorder::default()
        };
        Self { facts, recorder, ..Self::default() }
    }

    /// Takes newly read rows, and appends the launched kernels to `out` with ids that are common to all processes.
    pub fn take_rows(&mut self, mut rows: Rows, numbers: &mut Numbers, out: &mut Fresh) {
        self.counting.add_rows(&mut rows);
        self.texts.extend(rows.strings.drain(..).map(|(n, text)| (n, Arc::from(String::from_utf8_lossy(&text)))));
        self.configs.extend(rows.configs.iter().map(|(n, c)| (*n, (c.name, c.device))));
        self.labels.extend(rows.devices.iter().filter_map(gpu_label));
        self.update_state(&rows);
        self.recorder.sampled |= rows.facts.iter().any(|f| f.get("gate").is_some_and(|g| g.starts_with("overhead:")));
        let of = |config: u32, inline: &[Config], configs: &FxHashMap<u32, (u32, u32)>| match config.checked_sub(INLINE) {
            Some(i) => inline.get(i as usize).map(|c| (c.name, c.device)),
            None => configs.get(&config).copied(),
        };
        // CUPTI's wait kernel has the same correlation id as a measured launch.
        let wait = self.texts.iter().find(|(_, text)| &***text == WAITS).map(|(n, _)| *n);
        let waits = |row: &Kernel| wait.is_some() && of(row.config, &rows.inline, &self.configs).map(|c| c.0) == wait;
        let launched: FxHashSet<u32> =
            if wait.is_some() { rows.kernels.iter().filter(|k| !waits(k)).map(|k| k.correlation).collect() } else { FxHashSet::default() };
        for row in rows.kernels.iter().filter(|row| !(waits(row) && launched.contains(&row.correlation))) {
            let (name, device) = of(row.config, &rows.inline, &self.configs).unwrap_or((NO_KERNEL, 0));
            let kernel = *self.kernels.entry(name).or_insert_with(|| {
                let name = self.texts.get(&name).cloned().unwrap_or_else(|| "(unnamed kernel)".into());
                numbers.kernels.intern_name(function_name(name))
            });
            let device = device_of(device, &mut self.devices, &self.labels, numbers);
            out.ran.push(Ran { start: row.start, duration: row.duration.max(0), device, kernel });
        }
        for row in &rows.memops {
            let device = device_of(row.device, &mut self.devices, &self.labels, numbers);
            out.ran.push(Ran { start: row.start, duration: row.duration.max(0), device, kernel: NO_KERNEL });
        }
        if self.recorder.sampled {
            let turn = |e: &Event| if let What::Gate { open, .. } = e.what { Some((self.recorder.pid, e.time, open)) } else { None };
            out.turns.extend(rows.events.iter().filter_map(turn));
        }
        // Drop records without a time, which cannot be shown on the timeline.
        out.ran.retain(|r| r.start > 0);
    }

    /// Stores the time of a state report.
    pub fn record_state(&mut self, time: i64, sequence: u32) {
        self.stood.push_back((time, sequence));
        if self.stood.len() > STOOD {
            self.stood.pop_front();
        }
    }

    /// Time of the last state report that precedes a block.
    pub fn last_state_before(&self, sequence: u32) -> Option<i64> {
        // If the state report precedes the block, the wrapping difference is small even after an overflow.
        let before = self.stood.partition_point(|&(_, s)| sequence.wrapping_sub(s) < u32::MAX / 2);
        before.checked_sub(1).map(|i| self.stood[i].0)
    }

    /// Extends the available rows back to this time.
    pub fn extend_since(&mut self, time: i64) {
        let since = &mut self.recorder.since;
        *since = if *since == 0 { time } else { time.min(*since) };
    }

    /// Records that the trace was deleted, which ends the recording.
    pub fn mark_deleted(&mut self) {
        let r = &mut self.recorder;
        if !r.ended {
            r.open = false;
            r.stopped.get_or_insert_with(|| "its trace was deleted".to_owned());
        }
    }

    /// Records that a process has ended if it was killed before it could write an end record: it no longer reports
    /// its state, and its pid does not exist.
    pub fn check_alive(&mut self, now: i64) {
        let r = &mut self.recorder;
        let silent = now - r.time.max(r.started) > SILENT;
        if !r.ended && silent && !Path::new("/proc").join(r.pid.to_string()).exists() {
            r.ended = true;
            r.open = false;
        }
    }

    fn update_state(&mut self, rows: &Rows) {
        let r = &mut self.recorder;
        if let Some(state) = rows.end.as_ref().or(rows.state.as_ref()) {
            let number = |key| state.number::<u64>(key).unwrap_or(0);
            r.time = state.number("time").unwrap_or(r.time);
            r.open = number("open") > 0;
            r.kernels = number("kernels");
            r.bytes = number("bytes");
            r.cost = i64::try_from(number("packing_ns") + number("flushing_ns")).unwrap_or(i64::MAX);
            r.lost = number("dropped") + number("refused") + number("unwritten");
            r.not_recorded = state.get("not_recorded").map(str::to_owned);
            r.not_measured = state.get("not_measured").map(str::to_owned);
            r.measured = number("measured") + number("sampled");
            r.measuring_ns = i64::try_from(number("measuring_ns")).unwrap_or(i64::MAX);
            let kernel = state.number("measuring_kernel").and_then(|n| self.texts.get(&n)).cloned();
            r.measuring = kernel.map(function_name).zip(state.number("measuring_for_ms")).map(|(kernel, ms)| Measuring {
                kernel,
                ms,
                passes: state.number("measuring_replays"),
            });
        }
        r.ended |= rows.end.is_some();
        if let Some(error) = rows.stopped {
            r.stopped = Some(why_stopped(error));
        }
        r.open &= r.stopped.is_none();
    }
}

/// Returns the ordinal and label of a GPU. The label includes the PCI bus id, because ordinals differ between
/// processes.
fn gpu_label(facts: &Facts) -> Option<(u32, Arc<str>)> {
    let ordinal = facts.number("device")?;
    let bus = facts.get("bus").unwrap_or_default();
    Some((ordinal, Arc::from(format!("{bus} {}", facts.get("name").unwrap_or_default()).trim())))
}

fn device_of(ordinal: u32, known: &mut FxHashMap<u32, u32>, labels: &FxHashMap<u32, Arc<str>>, numbers: &mut Numbers) -> u32 {
    *known.entry(ordinal).or_insert_with(|| {
        let label = labels.get(&ordinal).cloned().unwrap_or_else(|| Arc::from(format!("GPU {ordinal}")));
        numbers.devices.intern_name(label)
    })
}
