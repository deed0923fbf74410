//! Reader for rocprofv3's JSON, with one object per process. Keeps only the requested parts.

use super::many::{Many, with_counting};
use super::rocpd::{build_device, is_process_range, name_partition};
use super::rows::{Agent, Allocation, Call, Copy, Counter, Dispatch, Process, Rows, Symbol, Texts, strip_kd_suffix};
use crate::import::{ImportError, Input, Job, budget};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;
use std::collections::BTreeMap;
use std::rc::Rc;
use std::sync::Arc;

/// Name of the only top-level key.
pub const KEY: &str = "rocprofiler-sdk-tool";

#[derive(Deserialize)]
struct File {
    #[serde(rename = "rocprofiler-sdk-tool", default)]
    processes: Vec<One>,
}

#[derive(Deserialize)]
struct One {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    agents: Vec<Value>,
    #[serde(default)]
    strings: Strings,
    #[serde(default)]
    kernel_symbols: Many<KernelSymbol>,
    #[serde(default)]
    counters: Vec<CounterName>,
    #[serde(default)]
    callback_records: CallbackRecords,
    #[serde(default)]
    buffer_records: Records,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CounterName {
    id: Handle,
    name: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CallbackRecords {
    counter_collection: Many<CounterCollection>,
}

/// Counters of a dispatch, with one record per counter instance.
#[derive(Default, Deserialize)]
#[serde(default)]
struct CounterCollection {
    thread_id: u32,
    dispatch_data: KernelDispatch,
    records: Vec<CounterRecord>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct CounterRecord {
    counter_id: Handle,
    value: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MemoryAllocation {
    kind: Value,
    operation: Value,
    start_timestamp: i64,
    agent_id: Handle,
    address: Value,
    allocation_size: Value,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Metadata {
    node: Node,
    pid: u32,
    command: Vec<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Node {
    hostname: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Strings {
    buffer_records: Vec<Kind>,
    marker_api: Many<Marked>,
}

/// Names of the operations of one kind of record, by operation number.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Kind {
    operations: Vec<String>,
}

/// A `ROCTx` message, identified by the correlation id of its call.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Marked {
    key: u64,
    value: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KernelSymbol {
    kernel_id: u64,
    kernel_name: String,
    arch_vgpr_count: u32,
    accum_vgpr_count: u32,
    formatted_kernel_name: String,
    demangled_kernel_name: String,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Handle {
    handle: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Correlation {
    internal: u64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Three {
    x: u32,
    y: u32,
    z: u32,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Records {
    kernel_dispatch: Many<KernelDispatch>,
    hip_api: Many<Api>,
    hsa_api: Many<Api>,
    marker_api: Many<Api>,
    rccl_api: Many<Api>,
    memory_copy: Many<MemoryCopy>,
    memory_allocation: Many<MemoryAllocation>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct KernelDispatch {
    thread_id: u32,
    correlation_id: Correlation,
    start_timestamp: i64,
    end_timestamp: i64,
    dispatch_info: Info,
    stream_id: Option<Handle>,
}

impl KernelDispatch {
    /// The dispatch; `None` if its kernel is unknown.
    fn dispatch(&self, process: u32, thread: u32, agents: &FxHashMap<u64, u32>, symbols: &FxHashMap<u64, u32>) -> Option<Dispatch> {
        let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
        let info = &self.dispatch_info;
        Some(Dispatch {
            process,
            agent: agents.get(&info.agent_id.handle).copied().unwrap_or(u32::MAX),
            symbol: *symbols.get(&info.kernel_id)?,
            thread,
            id: info.dispatch_id,
            queue: small(info.queue_id.handle),
            stream: self.stream_id.as_ref().map(|s| small(s.handle)),
            correlation: self.correlation_id.internal,
            start: self.start_timestamp,
            end: self.end_timestamp,
            workgroup: [info.workgroup_size.x, info.workgroup_size.y, info.workgroup_size.z],
            grid: [info.grid_size.x, info.grid_size.y, info.grid_size.z],
            lds: Some(info.group_segment_size),
            scratch: Some(info.private_segment_size),
            registers: None,
        })
    }
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Info {
    agent_id: Handle,
    queue_id: Handle,
    kernel_id: u64,
    dispatch_id: u64,
    private_segment_size: u32,
    group_segment_size: u32,
    workgroup_size: Three,
    grid_size: Three,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Api {
    kind: usize,
    operation: usize,
    thread_id: u32,
    correlation_id: Correlation,
    start_timestamp: i64,
    end_timestamp: i64,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct MemoryCopy {
    kind: usize,
    operation: usize,
    thread_id: u32,
    correlation_id: Correlation,
    start_timestamp: i64,
    end_timestamp: i64,
    src_agent_id: Handle,
    dst_agent_id: Handle,
    bytes: u64,
    stream_id: Option<Handle>,
}

fn next(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

pub fn read_file(bytes: &[u8], job: &Job<'_>, input: &Input) -> Result<Rows, ImportError> {
    let path = &input.path;
    input.memory_budget().charge_bytes(budget::estimate_json(bytes))?;
    let pace = Rc::new(job.cancel.pace());
    let stopped = || ImportError::Cancelled { path: path.clone() };
    let file: Result<File, _> = with_counting(&pace, || serde_json::from_slice(bytes));
    let file = file.map_err(|e| if job.cancel.is_cancelled() { stopped() } else { ImportError::damaged(path, "its JSON", &e) })?;
    let (mut rows, mut texts) = (Rows::default(), Texts::default());
    for one in file.processes {
        if job.cancel.is_cancelled() {
            return Err(stopped());
        }
        read_process(one, &mut rows, &mut texts);
    }
    rows.choose_counted();
    Ok(rows)
}

fn read_process(one: One, rows: &mut Rows, texts: &mut Texts) {
    let process = next(rows.processes.len());
    let command = (!one.metadata.command.is_empty()).then(|| one.metadata.command.join(" "));
    rows.processes.push(Process { pid: one.metadata.pid, command, host: one.metadata.node.hostname, ..Process::default() });
    let mut agents: FxHashMap<u64, u32> = FxHashMap::default();
    let mut gpus = 0;
    for agent in &one.agents {
        let number = |key: &str| agent.get(key).and_then(Value::as_u64);
        let text = |key: &str| agent.get(key).and_then(Value::as_str).filter(|t| !t.is_empty()).map(str::to_owned);
        let Some(handle) = agent.get("id").and_then(|i| i.get("handle")).and_then(Value::as_u64) else { continue };
        let dies = number("num_xcc").map_or(0, |n| u32::try_from(n).unwrap_or(0));
        // HSA's agent type 2 is a GPU.
        let gpu = (number("type") == Some(2)).then(|| {
            let mut device = build_device(&number);
            device.id = gpus;
            device.chip = text("name");
            device.arch.clone_from(&device.chip);
            device.name = text("product_name");
            name_partition(&mut device, dies);
            device
        });
        gpus += u32::from(gpu.is_some());
        agents.insert(handle, next(rows.agents.len()));
        rows.agents.push(Agent { device: gpu, dies, reached: Vec::new() });
    }
    let mut symbols: FxHashMap<u64, u32> = FxHashMap::default();
    for s in &one.kernel_symbols.0 {
        symbols.insert(s.kernel_id, next(rows.symbols.len()));
        rows.symbols.push(Symbol {
            process,
            kernel_id: s.kernel_id,
            // By default, rocprofv3 filters by demangled name: prefer that name, regardless of the options of this
            // recording.
            formatted: Arc::from(strip_kd_suffix(if s.demangled_kernel_name.is_empty() {
                &s.formatted_kernel_name
            } else {
                &s.demangled_kernel_name
            })),
            mangled: Some(Arc::from(s.kernel_name.as_str())),
            registers: Some(s.arch_vgpr_count.saturating_add(s.accum_vgpr_count)),
        });
    }
    let small = |n: u64| u32::try_from(n).unwrap_or(u32::MAX);
    let traced = !one.buffer_records.kernel_dispatch.0.is_empty();
    for d in &one.buffer_records.kernel_dispatch.0 {
        match d.dispatch(process, d.thread_id, &agents, &symbols) {
            Some(dispatch) => rows.dispatches.push(dispatch),
            None => rows.broken += 1,
        }
    }
    read_counters(&one.counters, &one.callback_records.counter_collection.0, traced, rows, texts, (process, &agents, &symbols));
    let marked: FxHashMap<u64, &str> = one.strings.marker_api.0.iter().map(|m| (m.key, m.value.as_str())).collect();
    let operation = |kind: usize, operation: usize| {
        one.strings.buffer_records.get(kind).and_then(|k| k.operations.get(operation)).map_or("(unnamed call)", String::as_str)
    };
    let records = &one.buffer_records;
    for (marker, list) in [(false, &records.hip_api), (false, &records.hsa_api), (false, &records.rccl_api), (true, &records.marker_api)] {
        for call in &list.0 {
            let text = if marker { marked.get(&call.correlation_id.internal).copied() } else { None };
            let name = texts.text_number(text.unwrap_or_else(|| operation(call.kind, call.operation)).as_bytes(), &mut rows.texts);
            rows.calls.push(Call {
                process,
                thread: call.thread_id,
                name,
                marker,
                of_process: marker && is_process_range(operation(call.kind, call.operation)),
                correlation: call.correlation_id.internal,
                start: call.start_timestamp,
                end: call.end_timestamp,
            });
        }
    }
    for c in &records.memory_copy.0 {
        let name = texts.text_number(operation(c.kind, c.operation).as_bytes(), &mut rows.texts);
        rows.copies.push(Copy {
            process,
            thread: c.thread_id,
            from: agents.get(&c.src_agent_id.handle).copied(),
            to: agents.get(&c.dst_agent_id.handle).copied(),
            name,
            bytes: Some(c.bytes),
            stream: c.stream_id.as_ref().map(|s| small(s.handle)),
            correlation: c.correlation_id.internal,
            start: c.start_timestamp,
            end: c.end_timestamp,
        });
    }
    let mut blocks: FxHashMap<u64, (i64, Option<u32>)> = FxHashMap::default();
    for a in &records.memory_allocation.0 {
        let address = match &a.address {
            Value::String(text) => u64::from_str_radix(text.trim_start_matches("0x"), 16).unwrap_or(0),
            value => value.get("handle").unwrap_or(value).as_u64().unwrap_or(0),
        };
        let index = |value: &Value| value.as_u64().and_then(|n| usize::try_from(n).ok());
        let Some((kind, number)) = index(&a.kind).zip(index(&a.operation)) else { continue };
        let (bytes, agent) = if operation(kind, number).contains("FREE") {
            // Frees have neither size nor agent.
            let Some((bytes, agent)) = blocks.remove(&address) else { continue };
            (bytes.saturating_neg(), agent)
        } else {
            let Some(size) = a.allocation_size.as_u64() else { continue };
            let block = (i64::try_from(size).unwrap_or(i64::MAX), agents.get(&a.agent_id.handle).copied());
            blocks.insert(address, block);
            block
        };
        rows.allocations.push(Allocation { process, agent, time: a.start_timestamp, address, bytes });
    }
}

/// Process, agents by handle, symbols by id.
type Known<'a> = (u32, &'a FxHashMap<u64, u32>, &'a FxHashMap<u64, u32>);

/// Reads the counters of dispatches, and the dispatches themselves if kernels were not traced.
fn read_counters(
    named: &[CounterName],
    collected: &[CounterCollection],
    traced: bool,
    rows: &mut Rows,
    texts: &mut Texts,
    known: Known<'_>,
) {
    let (process, agents, symbols) = known;
    let names: FxHashMap<u64, &str> = named.iter().filter_map(|c| Some((c.id.handle, c.name.as_str()?))).collect();
    for c in collected {
        let id = c.dispatch_data.dispatch_info.dispatch_id;
        if !traced {
            match c.dispatch_data.dispatch(process, c.thread_id, agents, symbols) {
                Some(dispatch) => rows.dispatches.push(dispatch),
                None => rows.broken += 1,
            }
        }
        // If a kernel was replayed, use the value from the first run that has the counter.
        let mut sums: BTreeMap<&str, f64> = BTreeMap::new();
        for record in &c.records {
            if let Some((name, value)) = names.get(&record.counter_id.handle).zip(record.value.as_f64()) {
                *sums.entry(name).or_default() += value;
            }
        }
        for (name, value) in sums {
            let name = texts.text_number(name.as_bytes(), &mut rows.texts);
            rows.counters.push(Counter { process, dispatch: id, name, value });
        }
    }
}
