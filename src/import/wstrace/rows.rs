//! Decoder for the rows in blocks. Rows keep the tracer's encoding: ids for names and configurations, times since
//! 1970, wrapping ids.

use super::blocks::{Block, BlockKind};
use super::counters::{self, Measured, Set};
use super::graph_node_rows::{self, NodeRow};
use super::host_sample_rows::{self, FunctionRow, ModuleRow, NativeFunctionRow, SampleRow, StackRow};
use super::key_values::Facts;
pub use super::nvtx_marks::{Event, What};
use super::nvtx_marks::{read_marked, read_message};
use super::pc_sample_rows::{self, Stalls};
use super::varint::Cursor;
use crate::import::{Parts, Wants};

/// A launch configuration with the kernel's name, device, context and stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Config {
    pub name: u32,
    pub grid: [u32; 3],
    pub block: [u32; 3],
    /// Blocks per cluster; 0 if there are no clusters.
    pub cluster: [u32; 3],
    pub static_shared: u32,
    pub dynamic_shared: u32,
    pub registers: u32,
    pub local: u32,
    /// Shared memory reserved on the SM, bytes.
    pub executed: u32,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub graph: u32,
    /// `CUpti_ActivityLaunchType`: 1 is cooperative, 2 is cooperative on several devices; 256 is added for launches
    /// from kernels.
    pub kind: u32,
}

/// Configuration id of kernels whose configuration is missing.
pub const NO_CONFIG: u32 = u32::MAX;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    pub correlation: u32,
    /// Configuration id; values from [`INLINE`] upward are indices into [`Rows::inline`].
    pub config: u32,
    /// Start, ns since 1970; 0 if CUPTI did not report it.
    pub start: i64,
    pub duration: i64,
    /// Graph node id; 0 outside of graphs.
    pub node: u64,
    /// Thread whose buffer contained the record; 0 if unknown.
    pub thread: u32,
}

/// First id of the configurations that are stored inline in a kernel row.
pub const INLINE: u32 = 1 << 24;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemOpKind {
    /// CUPTI's numbers for the direction, and for the memory kind at each end.
    Copy { kind: u32, from: u32, to: u32 },
    /// CUPTI's number for the memory kind.
    Set(u32),
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MemOp {
    pub kind: MemOpKind,
    pub bytes: u64,
    pub correlation: u32,
    pub start: i64,
    pub duration: i64,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
    pub node: u64,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Call {
    pub correlation: u32,
    pub name: u32,
    pub start: i64,
    pub duration: i64,
    pub thread: u32,
    /// Return code of the call; 0 means success.
    pub returned: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Graph {
    pub correlation: u32,
    pub start: i64,
    pub duration: i64,
    pub id: u32,
    pub device: u32,
    pub context: u32,
    pub stream: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Memory {
    /// `CUpti_ActivityMemoryOperationType`: 1 is an allocation, 2 a free.
    pub operation: u32,
    pub kind: u32,
    pub time: i64,
    pub address: u64,
    pub bytes: u64,
    pub device: u32,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Overhead {
    pub kind: u32,
    pub thread: u32,
    pub start: i64,
    pub duration: i64,
}

/// Rows from some blocks, in file order.
#[derive(Debug, Default)]
pub struct Rows {
    /// Number of files that continue the first one, if only the end of the run is kept.
    pub continuing: u32,
    pub facts: Vec<Facts>,
    pub devices: Vec<Facts>,
    /// The last state record, and the end record.
    pub state: Option<Facts>,
    pub end: Option<Facts>,
    /// OS error number, if the recording stopped before the program ended.
    pub stopped: Option<u32>,
    /// Strings and their ids.
    pub strings: Vec<(u32, Vec<u8>)>,
    pub configs: Vec<(u32, Config)>,
    pub inline: Vec<Config>,
    pub kernels: Vec<Kernel>,
    pub memops: Vec<MemOp>,
    pub calls: Vec<Call>,
    pub events: Vec<Event>,
    pub graphs: Vec<Graph>,
    pub memory: Vec<Memory>,
    pub overhead: Vec<Overhead>,
    pub threads: Vec<(u32, Vec<u8>)>,
    /// Categories named by the program, as domain, category and name; domain and name are string ids.
    pub categories: Vec<(u32, u32, u32)>,
    /// Threads named by the program, with the string id of the name.
    pub named_threads: Vec<(u32, u32)>,
    /// Changes of thread state, as thread, time in ns since 1970 and state number.
    pub states: Vec<(u32, i64, u8)>,
    pub functions: Vec<FunctionRow>,
    pub modules: Vec<ModuleRow>,
    pub native_functions: Vec<NativeFunctionRow>,
    pub stacks: Vec<StackRow>,
    pub samples: Vec<SampleRow>,
    pub graph_nodes: Vec<NodeRow>,
    pub sets: Vec<Set>,
    pub measured: Vec<Measured>,
    pub stalls: Vec<Stalls>,
    /// Number of damaged blocks.
    pub damaged: u64,
}

/// The previous row, for delta decoding.
#[derive(Default)]
struct Before {
    correlation: u32,
    start: i64,
    node: u64,
    thread: u32,
}

impl Before {
    /// Reads an id, encoded as a difference that may wrap.
    fn read_id(&mut self, c: &mut Cursor<'_>) -> Option<u32> {
        self.correlation = self.correlation.wrapping_add(c.read_signed()? as u32);
        Some(self.correlation)
    }

    fn read_time(&mut self, c: &mut Cursor<'_>) -> Option<i64> {
        self.start = self.start.wrapping_add(c.read_signed()?);
        Some(self.start)
    }

    fn read_node(&mut self, c: &mut Cursor<'_>) -> Option<u64> {
        self.node = self.node.wrapping_add(c.read_signed()?.cast_unsigned());
        Some(self.node)
    }
}

fn read_config(c: &mut Cursor<'_>) -> Option<Config> {
    let three = |c: &mut Cursor<'_>| Some([c.read_u32()?, c.read_u32()?, c.read_u32()?]);
    Some(Config {
        name: c.read_u32()?,
        grid: three(c)?,
        block: three(c)?,
        cluster: three(c)?,
        static_shared: c.read_u32()?,
        dynamic_shared: c.read_u32()?,
        registers: c.read_u32()?,
        local: c.read_u32()?,
        executed: c.read_u32()?,
        device: c.read_u32()?,
        context: c.read_u32()?,
        stream: c.read_u32()?,
        graph: c.read_u32()?,
        kind: c.read_u32()?,
    })
}

fn checked_span(start: i64, duration: Option<u64>) -> Option<(i64, i64)> {
    Some((start, i64::try_from(duration?).ok()?))
}

impl Rows {
    /// Decodes the rows of a block, if they are requested, up to the first invalid row.
    pub fn decode_block(&mut self, block: &Block<'_>, wants: Wants) {
        if block.kind == BlockKind::Code || !is_wanted(block.kind, wants) {
            return;
        }
        let whole = block.has_valid_checksum() && {
            let mut c = Cursor::new(block.data);
            self.decode_rows(block, &mut c).is_some()
        };
        self.damaged += u64::from(!whole);
    }

    fn decode_rows(&mut self, block: &Block<'_>, c: &mut Cursor<'_>) -> Option<()> {
        let mut before = Before::default();
        match block.kind {
            BlockKind::Facts => self.facts.push(Facts::read(c)?),
            BlockKind::Device => self.devices.push(Facts::read(c)?),
            BlockKind::State => self.state = Some(Facts::read(c)?),
            BlockKind::End => self.end = Some(Facts::read(c)?),
            BlockKind::Stopped => self.stopped = Some(c.read_u32()?),
            BlockKind::Strings => {
                while !c.is_empty() {
                    self.strings.push((c.read_u32()?, c.read_text()?.to_vec()));
                }
            }
            BlockKind::Threads => {
                while !c.is_empty() {
                    self.threads.push((c.read_u32()?, c.read_text()?.to_vec()));
                }
            }
            BlockKind::Given => {
                while !c.is_empty() {
                    match (c.read_u32()?, c.read_u32()?, c.read_u32()?) {
                        (thread, 0, text) => self.named_threads.push((thread, text)),
                        category => self.categories.push(category),
                    }
                }
            }
            BlockKind::Configs => {
                while !c.is_empty() {
                    self.configs.push((c.read_u32()?, read_config(c)?));
                }
            }
            BlockKind::Kernels => {
                self.kernels.reserve((block.count as usize).min(block.data.len() / 4));
                while !c.is_empty() {
                    let row = self.read_kernel(c, &mut before, block.thread)?;
                    self.kernels.push(row);
                }
            }
            BlockKind::MemOps => {
                while !c.is_empty() {
                    self.memops.push(read_memop(c, &mut before)?);
                }
            }
            BlockKind::Calls => {
                self.calls.reserve((block.count as usize).min(block.data.len() / 4));
                while !c.is_empty() {
                    self.calls.push(read_call(c, &mut before)?);
                }
            }
            BlockKind::Events => {
                while !c.is_empty() {
                    self.read_event(c, &mut before, block.thread)?;
                }
            }
            BlockKind::Graphs => {
                while !c.is_empty() {
                    let correlation = before.read_id(c)?;
                    let (start, duration) = (before.read_time(c)?, c.read_signed()?);
                    let (id, device, context, stream) = (c.read_u32()?, c.read_u32()?, c.read_u32()?, c.read_u32()?);
                    self.graphs.push(Graph { correlation, start, duration, id, device, context, stream });
                }
            }
            BlockKind::Memory => {
                while !c.is_empty() {
                    let (operation, kind, time) = (c.read_u32()?, c.read_u32()?, before.read_time(c)?);
                    self.memory.push(Memory {
                        operation,
                        kind,
                        time,
                        address: c.read_varint()?,
                        bytes: c.read_varint()?,
                        device: c.read_u32()?,
                    });
                }
            }
            BlockKind::Overhead => {
                while !c.is_empty() {
                    let (kind, thread) = (c.read_u32()?, c.read_u32()?);
                    let (start, duration) = checked_span(before.read_time(c)?, c.read_varint())?;
                    self.overhead.push(Overhead { kind, thread, start, duration });
                }
            }
            BlockKind::States => {
                while !c.is_empty() {
                    self.states.push((c.read_u32()?, before.read_time(c)?, c.read_byte()?));
                }
            }
            BlockKind::Functions => {
                while !c.is_empty() {
                    self.functions.push(host_sample_rows::read_function(c)?);
                }
            }
            BlockKind::Modules => {
                while !c.is_empty() {
                    self.modules.push(host_sample_rows::read_module(c)?);
                }
            }
            BlockKind::NativeFunctions => {
                while !c.is_empty() {
                    self.native_functions.push(host_sample_rows::read_native_function(c)?);
                }
            }
            BlockKind::Stacks => {
                while !c.is_empty() {
                    self.stacks.push(host_sample_rows::read_stack(c)?);
                }
            }
            BlockKind::Samples => {
                let mut before = SampleRow::START;
                while !c.is_empty() {
                    self.samples.push(host_sample_rows::read_sample(c, &mut before)?);
                }
            }
            BlockKind::GraphNodes => {
                let mut before = NodeRow::START;
                while !c.is_empty() {
                    self.graph_nodes.push(graph_node_rows::read_node(c, &mut before)?);
                }
            }
            BlockKind::Sets => {
                while !c.is_empty() {
                    self.sets.push(counters::read_set(c)?);
                }
            }
            BlockKind::Measured => {
                while !c.is_empty() {
                    self.measured.push(counters::read_measured(c)?);
                }
            }
            BlockKind::Stalls => {
                while !c.is_empty() {
                    self.stalls.push(pc_sample_rows::read_stalls(c)?);
                }
            }
            // Code is read on demand by `pc_sampling::find_modules`.
            BlockKind::Code | BlockKind::Unknown => {}
        }
        Some(())
    }

    fn read_kernel(&mut self, c: &mut Cursor<'_>, before: &mut Before, thread: u32) -> Option<Kernel> {
        let first = c.read_varint()?;
        let number = u32::try_from(first >> 2).ok().filter(|&n| n < INLINE)?;
        let config = if first & 2 == 0 {
            number
        } else {
            self.inline.push(read_config(c)?);
            INLINE.checked_add(u32::try_from(self.inline.len() - 1).ok()?)?
        };
        let correlation = before.read_id(c)?;
        let (start, duration) = (before.read_time(c)?, c.read_signed()?);
        let node = if first & 1 == 0 { 0 } else { before.read_node(c)? };
        Some(Kernel { correlation, config, start, duration, node, thread })
    }

    fn read_event(&mut self, c: &mut Cursor<'_>, before: &mut Before, thread: u32) -> Option<()> {
        let kind = c.read_byte()?;
        let time = before.read_time(c)?;
        let mut add = |what| self.events.push(Event { time, thread, what });
        match kind {
            1 => add(What::Push(read_marked(c, None)?)),
            2 => add(What::Pop { domain: c.read_u32()?, message: None }),
            8 => {
                let domain = c.read_u32()?;
                let message = Some(read_message(c)?);
                add(What::Pop { domain, message });
            }
            3 => {
                let mut id = 0;
                let marked = read_marked(c, Some(&mut id))?;
                add(What::Start { id, marked });
            }
            4 => add(What::End { id: c.read_varint()? }),
            5 => {
                read_marked(c, None)?;
                add(What::Mark);
            }
            6 | 7 => {
                let why = c.read_u32()?;
                c.read_varint()?;
                add(What::Gate { open: kind == 6, why });
            }
            16 => {
                let (name, correlation) = (c.read_u32()?, c.read_u32()?);
                let (start, duration) = checked_span(time, c.read_varint())?;
                let returned = c.read_u32()?;
                self.calls.push(Call { correlation, name, start, duration, thread, returned });
            }
            _ => return None,
        }
        Some(())
    }

    /// Memory used by the rows, bytes.
    pub fn memory_bytes(&self) -> u64 {
        fn rows_size<T>(rows: &[T]) -> usize {
            size_of_val(rows)
        }
        let all = self.facts.iter().chain(&self.devices).chain(&self.state).chain(&self.end);
        let facts = all.map(Facts::memory_bytes).sum::<usize>();
        let texts = facts + self.strings.iter().chain(&self.threads).map(|t| t.1.len()).sum::<usize>();
        let rows = [
            rows_size(&self.strings),
            rows_size(&self.threads),
            rows_size(&self.configs),
            rows_size(&self.inline),
            rows_size(&self.kernels),
            rows_size(&self.memops),
            rows_size(&self.calls),
            rows_size(&self.events),
            rows_size(&self.graphs),
            rows_size(&self.memory),
            rows_size(&self.overhead),
            rows_size(&self.categories),
            rows_size(&self.named_threads),
            rows_size(&self.states),
            rows_size(&self.functions) + self.functions.iter().map(FunctionRow::size).sum::<usize>(),
            rows_size(&self.modules) + self.modules.iter().map(ModuleRow::size).sum::<usize>(),
            rows_size(&self.native_functions),
            rows_size(&self.stacks),
            rows_size(&self.samples),
            rows_size(&self.graph_nodes),
            rows_size(&self.sets),
            rows_size(&self.measured),
            rows_size(&self.stalls),
        ];
        (texts + rows.iter().sum::<usize>()) as u64
    }

    /// Appends rows from later blocks.
    pub fn append(&mut self, mut later: Self) {
        let shift = u32::try_from(self.inline.len()).unwrap_or(0);
        if shift > 0 {
            for kernel in later.kernels.iter_mut().filter(|k| k.config >= INLINE) {
                kernel.config = kernel.config.saturating_add(shift);
            }
        }
        self.facts.append(&mut later.facts);
        self.devices.append(&mut later.devices);
        self.state = later.state.or_else(|| self.state.take());
        self.end = later.end.or_else(|| self.end.take());
        self.stopped = later.stopped.or(self.stopped);
        self.strings.append(&mut later.strings);
        self.configs.append(&mut later.configs);
        self.inline.append(&mut later.inline);
        self.kernels.append(&mut later.kernels);
        self.memops.append(&mut later.memops);
        self.calls.append(&mut later.calls);
        self.events.append(&mut later.events);
        self.graphs.append(&mut later.graphs);
        self.memory.append(&mut later.memory);
        self.overhead.append(&mut later.overhead);
        self.threads.append(&mut later.threads);
        self.states.append(&mut later.states);
        self.functions.append(&mut later.functions);
        self.modules.append(&mut later.modules);
        self.native_functions.append(&mut later.native_functions);
        self.stacks.append(&mut later.stacks);
        self.samples.append(&mut later.samples);
        self.graph_nodes.append(&mut later.graph_nodes);
        self.sets.append(&mut later.sets);
        self.measured.append(&mut later.measured);
        self.stalls.append(&mut later.stalls);
        self.categories.append(&mut later.categories);
        self.named_threads.append(&mut later.named_threads);
        self.damaged += later.damaged;
    }
}

/// Returns true if the rows of a block are requested.
fn is_wanted(kind: BlockKind, wants: Wants) -> bool {
    match kind {
        BlockKind::MemOps => wants.has_parts(Parts::MEMOPS),
        BlockKind::Calls => wants.has_parts(Parts::CALLS),
        BlockKind::Events => wants.has_parts(Parts::RANGES) || wants.has_parts(Parts::CALLS),
        BlockKind::Memory => wants.has_parts(Parts::MEMORY),
        // Overhead includes the measurement windows, by which calls made by the tracer are recognized.
        BlockKind::Overhead => wants.has_parts(Parts::OVERHEAD) || wants.has_parts(Parts::CALLS),
        BlockKind::Threads
        | BlockKind::States
        | BlockKind::Functions
        | BlockKind::Modules
        | BlockKind::NativeFunctions
        | BlockKind::Stacks
        | BlockKind::Samples => wants.has_parts(Parts::THREADS),
        _ => true,
    }
}

fn read_memop(c: &mut Cursor<'_>, before: &mut Before) -> Option<MemOp> {
    let first = c.read_varint()?;
    let kind = match first >> 1 {
        2 => MemOpKind::Set(c.read_u32()?),
        0 | 1 => MemOpKind::Copy { kind: c.read_u32()?, from: c.read_u32()?, to: c.read_u32()? },
        _ => return None,
    };
    let bytes = c.read_varint()?;
    let correlation = before.read_id(c)?;
    let (start, duration) = (before.read_time(c)?, c.read_signed()?);
    let (device, context, stream) = (c.read_u32()?, c.read_u32()?, c.read_u32()?);
    if first >> 1 == 1 {
        // Skip the source and destination devices: the model only has the device that performs the copy.
        c.read_u32()?;
        c.read_u32()?;
    }
    let mut node = 0;
    if first & 1 == 1 {
        node = before.read_node(c)?;
        c.read_u32()?;
    }
    Some(MemOp { kind, bytes, correlation, start, duration, device, context, stream, node })
}

fn read_call(c: &mut Cursor<'_>, before: &mut Before) -> Option<Call> {
    let first = c.read_varint()?;
    let name = u32::try_from(first >> 2).ok()?;
    let correlation = before.read_id(c)?;
    let (start, duration) = checked_span(before.read_time(c)?, c.read_varint())?;
    if first & 1 == 1 {
        before.thread = c.read_u32()?;
    }
    let returned = if first & 2 == 2 { c.read_u32()? } else { 0 };
    Some(Call { correlation, name, start, duration, thread: before.thread, returned })
}
