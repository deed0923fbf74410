//! Events read by one thread; names are numbered separately in each shard until all shards are merged.

use super::event::{self, Args, At, Event, EventKind, Read};
use super::other_events::OtherEvents;
use super::repair;
use super::tokenizer::Batch;
use crate::import::{Parts, Wants};
use crate::model::range::{NONE, Operator};
use crate::model::{Bytes, LaunchConfig, Pace, RangeOrigin};
use rustc_hash::FxHashMap;
use serde_json::value::RawValue;
use std::sync::Arc;

/// A kernel, memcpy or memset on a GPU.
#[derive(Clone, Debug)]
pub struct OnGpu {
    pub at: At,
    pub kind: EventKind,
    /// Id of the name, local to this shard.
    pub name: u32,
    /// Start, in ns on the trace's clock.
    pub start: i64,
    /// Duration in nanoseconds.
    pub duration: i64,
    /// Id of the configuration, local to this shard.
    pub config: u32,
    pub device: Option<u32>,
    pub context: Option<u32>,
    pub stream: Option<u32>,
    /// Rank and correlation id.
    pub correlation: Option<(u32, i64)>,
    /// Number of bytes moved.
    pub bytes: Option<u64>,
    pub node: Option<u64>,
}

/// A runtime or driver call.
#[derive(Clone, Copy, Debug)]
pub struct Call {
    pub at: At,
    /// Id of the name, local to this shard.
    pub name: u32,
    /// Start, in ns on the trace's clock.
    pub start: i64,
    /// Duration in nanoseconds.
    pub duration: i64,
    pub thread: (u32, u32),
    /// Rank and correlation id.
    pub correlation: Option<(u32, i64)>,
}

/// An operator, a range marked by the program, or a Python function.
#[derive(Clone, Copy, Debug)]
pub struct Span {
    pub at: At,
    /// Id of the name, local to this shard.
    pub name: u32,
    /// Start, in ns on the trace's clock.
    pub start: i64,
    /// Duration in nanoseconds.
    pub duration: i64,
    pub thread: (u32, u32),
    pub origin: RangeOrigin,
    /// Operator attributes; `shapes` is a name id local to this shard.
    pub operator: Option<Operator>,
}

/// Assigns ids to distinct values, in order of first appearance.
#[derive(Debug)]
pub struct Numbers<T> {
    ids: FxHashMap<T, u32>,
    pub list: Vec<T>,
}

impl<T> Default for Numbers<T> {
    fn default() -> Self {
        Self { ids: FxHashMap::default(), list: Vec::new() }
    }
}

impl<T: Clone + Eq + std::hash::Hash> Numbers<T> {
    /// Returns the id of a value, adding it if needed.
    pub fn value_id(&mut self, value: &T) -> u32 {
        if let Some(&id) = self.ids.get(value) {
            return id;
        }
        self.add_value(value.clone())
    }

    fn add_value(&mut self, value: T) -> u32 {
        let id = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.ids.insert(value.clone(), id);
        self.list.push(value);
        id
    }
}

impl Numbers<Arc<str>> {
    fn name_id(&mut self, name: &str) -> u32 {
        match self.ids.get(name) {
            Some(&id) => id,
            None => self.add_value(Arc::from(name)),
        }
    }
}

/// Events read by one thread.
#[derive(Debug, Default)]
pub struct ShardEvents {
    pub names: Numbers<Arc<str>>,
    /// Distinct configurations.
    pub configs: Numbers<LaunchConfig>,
    /// Work on the GPUs.
    pub on_gpu: Vec<OnGpu>,
    pub calls: Vec<Call>,
    /// Ranges that launched kernels, in traces without calls.
    pub launch_ranges: Vec<Call>,
    pub spans: Vec<Span>,
    pub processes: Vec<(u32, String)>,
    /// True if some calls are from a vendor other than NVIDIA and AMD.
    pub other: bool,
    /// Other events that were requested.
    pub aside: OtherEvents,
    /// True if some GPU work specifies a device or stream, as in PyTorch's own traces.
    pub placed: bool,
    /// Number of events whose JSON was repaired.
    pub mended: u64,
    /// Number of events that could not be read.
    pub broken: u64,
}

/// Truncates thread and process ids that exceed 32 bits, which some systems use. Ids only need to be distinct.
fn truncate_id(value: Option<i64>) -> u32 {
    value.unwrap_or_default() as u32
}

impl ShardEvents {
    /// Reads the events of a batch.
    pub fn read_batch(&mut self, batch: &Batch, wants: Wants, pace: &Pace) {
        for (number, &(from, to)) in (0..).zip(&batch.events) {
            // The caller reports the cancellation.
            if !pace.count_steps(to.saturating_sub(from) + 1) {
                return;
            }
            let at = (batch.number, number);
            let text = batch.text.get(from..to).unwrap_or_default();
            match event::read_event(text, wants) {
                Read::Event(event) => self.add_event(at, &event, wants),
                Read::Other => {}
                Read::Broken => {
                    let mended = repair::repair_json(text);
                    match event::read_event(mended.as_bytes(), wants) {
                        Read::Event(event) => {
                            self.add_event(at, &event, wants);
                            self.mended += 1;
                        }
                        Read::Other => {}
                        Read::Broken => self.broken += 1,
                    }
                }
            }
        }
    }

    fn add_event(&mut self, at: At, event: &Event<'_>, wants: Wants) {
        let thread = (truncate_id(event.pid), truncate_id(event.tid));
        match event.kind {
            EventKind::Process => {
                if let (Some(pid), Some(name)) = (event.pid.and_then(|p| u32::try_from(p).ok()), event.given_name()) {
                    self.processes.push((pid, name));
                }
            }
            EventKind::Range | EventKind::Python => {
                let name = self.names.name_id(&event.name);
                let operator = (event.kind == EventKind::Range && wants.has_parts(Parts::RANGE_DETAILS)).then(|| self.read_operator(event));
                let origin = if event.kind == EventKind::Python { RangeOrigin::Python } else { event.origin };
                self.spans.push(Span { at, name, start: event.start, duration: event.duration, thread, origin, operator });
            }
            EventKind::Memory | EventKind::Wait | EventKind::Overhead | EventKind::Thread => self.aside.add_event(at, event, thread),
            EventKind::Call => {
                let args = event.parse_args();
                self.other |= event.other;
                let name = self.names.name_id(&event.name);
                let correlation = args.correlation.map(|c| (args.rank.unwrap_or_default(), c));
                self.calls.push(Call { at, name, start: event.start, duration: event.duration, thread, correlation });
            }
            EventKind::Kernel | EventKind::Copy | EventKind::Set => {
                let args = event.parse_args();
                if wants.has_parts(Parts::COLLECTIVES) && event.kind == EventKind::Kernel {
                    self.aside.add_collective(at, event);
                }
                let name = self.names.name_id(&event.name);
                let config = self.configs.value_id(&launch_config(&args));
                self.placed |= args.device.is_some() || args.stream.is_some();
                let ordinal = |v: Option<i64>| v.and_then(|v| u32::try_from(v).ok());
                self.on_gpu.push(OnGpu {
                    at,
                    kind: event.kind,
                    name,
                    start: event.start,
                    duration: event.duration,
                    config,
                    device: args.device.or_else(|| ordinal(event.pid)),
                    context: args.context,
                    stream: args.stream.or_else(|| ordinal(event.tid)),
                    correlation: args.correlation.map(|c| (args.rank.unwrap_or_default(), c)),
                    bytes: args.bytes,
                    node: args.node,
                });
            }
        }
    }
}

impl ShardEvents {
    fn read_operator(&mut self, event: &Event<'_>) -> Operator {
        let [external, sequence, dims, types, values] =
            event.pick_args(["External id", "Sequence number", "Input Dims", "Input type", "Concrete Inputs"]);
        // Only convolutions need values, which include stride and padding; otherwise, they would merely add distinct
        // strings.
        let values = nonempty_list(values).filter(|_| event.name.starts_with("aten::convolution"));
        let shapes = match (nonempty_list(dims), nonempty_list(types), values) {
            (None, None, _) => NONE,
            (Some(dims), types, Some(values)) => self.names.name_id(&format!("{dims} {} {values}", types.unwrap_or("[]"))),
            (dims, types, _) => self.names.name_id([dims, types].into_iter().flatten().collect::<Vec<_>>().join(" ").as_str()),
        };
        Operator { external: event::parse_u32(external).unwrap_or(NONE), sequence: event::parse_u32(sequence).unwrap_or(NONE), shapes }
    }
}

/// Raw text of a list, if it is not empty.
fn nonempty_list(raw: Option<&RawValue>) -> Option<&str> {
    raw.map(|r| r.get().trim()).filter(|t| !t.is_empty() && *t != "[]")
}

fn launch_config(args: &Args) -> LaunchConfig {
    LaunchConfig {
        // ROCm's kineto writes zeros where nothing was recorded.
        grid: args.grid.filter(|g| !g.contains(&0)),
        block: args.block.filter(|b| !b.contains(&0)),
        registers: args.registers,
        // The trace only has the sum of static and dynamic shared memory; [`super::build`] adds a note about this.
        dynamic_shared: args.shared.map(Bytes),
        ..LaunchConfig::default()
    }
}
