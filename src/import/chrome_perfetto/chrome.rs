//! Chrome trace JSON from any tool: complete events, begin/end pairs, counters, flows, and names of processes and
//! threads.

use super::sizes::{kernel_details, our_config, parse_dims_text, parse_size};
use super::slice::End;
use super::tracks::{Named, of_rpd};
use super::{Details, Slices, shorten_name};
use crate::import::input::{Bytes, Input};
use crate::import::torch::event::{parse_dims, parse_integer, parse_nanoseconds, parse_u32, pick_keys, unquote_text};
use crate::import::torch::tokenizer::Splitter;
use crate::import::{ImportError, Job};
use crate::launch::open;
use crate::model::{Bytes as Size, LaunchConfig, Profile, Source};
use rustc_hash::{FxHashMap, FxHasher};
use serde_json::Value;
use serde_json::value::RawValue;
use std::collections::BTreeMap;
use std::hash::{Hash, Hasher};
use std::io::{ErrorKind, Read};

/// Maximum size of a counter event's values, bytes.
const LONGEST_SERIES: usize = 1 << 16;

/// Events of a trace, and the names of its processes and threads.
#[derive(Default)]
struct Reader {
    slices: Slices,
    tracks: FxHashMap<(String, String), u32>,
    list: Vec<(String, String)>,
    processes: FxHashMap<String, String>,
    threads: FxHashMap<(String, String), String>,
}

/// Reads a trace; `None` if it contains no GPU work.
pub fn read_trace(input: &Input, job: &Job<'_>) -> Result<Option<Profile>, ImportError> {
    let reader: Box<dyn Read> = match &input.bytes {
        Bytes::File(path) => Box::new(open::open_regular(path).map_err(|e| ImportError::io(path, e))?),
        Bytes::BuiltIn(bytes) => Box::new(*bytes),
    };
    let mut splitter = Splitter::new(reader);
    let mut all = Reader::default();
    let (budget, pace) = (input.memory_budget(), job.cancel.pace());
    loop {
        budget.charge_bytes(all.slices.take_memory())?;
        let batch = match splitter.next_batch() {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            // Damage that stopped the first pass also stops this pass; use the rows before it.
            Err(e) if e.kind() == ErrorKind::InvalidData => break,
            Err(e) => return Err(ImportError::io(&input.path, e)),
        };
        job.report_progress("events", splitter.read, input.size);
        for &(from, to) in &batch.events {
            let text = batch.text.get(from..to).unwrap_or_default();
            if !pace.count_steps(text.len() + 1) {
                return Err(ImportError::Cancelled { path: input.path.clone() });
            }
            if all.read_event(text).is_none() {
                all.slices.broken += 1;
            }
        }
    }
    let source = Source { tool: "Chrome trace".to_owned(), version: None, schema: None, file: input.path.clone() };
    let Reader { slices, list, processes, threads, .. } = all;
    let named = |track: u32| {
        let Some((pid, tid)) = list.get(track as usize) else { return Named::default() };
        let number = |word: &str| word.parse::<i64>().map_or(0, |n| n as u32);
        Named {
            process: processes.get(pid).cloned().unwrap_or_else(|| pid.clone()),
            track: threads.get(&(pid.clone(), tid.clone())).cloned().unwrap_or_else(|| tid.clone()),
            pid: number(pid),
            // If the thread id is not a number, use the track id.
            tid: tid.parse::<i64>().map_or(track, |n| n as u32),
        }
    };
    let profile = slices.into_profile(&named, source, job);
    if job.cancel.is_cancelled() { Err(ImportError::Cancelled { path: input.path.clone() }) } else { Ok(profile) }
}

/// Names of copies in traces of rocprof 1.
const ROCPROF_COPIES: [&str; 4] = ["CopyHostToDevice", "CopyDeviceToHost", "CopyDeviceToDevice", "CopyHostToHost"];

impl Reader {
    fn track_id(&mut self, pid: String, tid: String) -> u32 {
        let key = (pid, tid);
        if let Some(&known) = self.tracks.get(&key) {
            return known;
        }
        let number = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(key.clone());
        self.tracks.insert(key, number);
        number
    }

    /// Track and category of an operation in a trace of rocprof 1 (`results.json`): kernels belong to processes named
    /// `GPU4`, copies of all GPUs to a process named `COPY`. They have no category, and their GPU and queue in `args`.
    fn find_rocprof_operation(
        &mut self,
        pid: &str,
        tid: &str,
        name: Option<&RawValue>,
        args: Option<&RawValue>,
    ) -> Option<(u32, &'static str)> {
        let process = self.processes.get(pid)?;
        let copies = process == "COPY";
        if !copies && process.strip_prefix("GPU").is_none_or(|n| n.parse::<u32>().is_err()) {
            return None;
        }
        let [begins, device, queue] = pick_keys(args?.get(), ["BeginNs", "dev-id", "queue-id"])?;
        begins?;
        if !copies {
            return Some((self.track_id(pid.to_owned(), tid.to_owned()), "KernelExecution"));
        }
        let direction = unquote_text(name?);
        let category = ROCPROF_COPIES.into_iter().find(|c| *c == direction)?;
        let gpu = format!("GPU{}", unquote_text(device?));
        self.processes.insert(gpu.clone(), gpu.clone());
        let queue = queue.map_or_else(|| tid.to_owned(), |q| unquote_text(q).into_owned());
        Some((self.track_id(gpu, queue), category))
    }

    /// Reads an event; `None` if it is invalid.
    fn read_event(&mut self, text: &[u8]) -> Option<()> {
        let text = std::str::from_utf8(text).ok()?;
        let [phase, category, name, pid, tid, start, duration, args, id, point] =
            pick_keys(text, ["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "bp"])?;
        let text = |raw: Option<&RawValue>| raw.map(|r| unquote_text(r).into_owned()).unwrap_or_default();
        let (phase, pid, tid) = (text(phase), text(pid), text(tid));
        let time = |raw: Option<&RawValue>| raw.and_then(|r| parse_nanoseconds(&unquote_text(r)));
        match &*phase {
            "M" => {
                let given = args
                    .and_then(|a| pick_keys(a.get(), ["name"]))
                    .and_then(|[n]| n)
                    .map(|n| shorten_name(&unquote_text(n)).to_owned())
                    .unwrap_or_default();
                match &*text(name) {
                    "process_name" => drop(self.processes.insert(pid, given)),
                    "thread_name" => drop(self.threads.insert((pid, tid), given)),
                    _ => {}
                }
            }
            "X" => {
                let (start, duration) = (time(start)?, time(duration).unwrap_or(0));
                if let Some(operation) = self.find_rocprof_operation(&pid, &tid, name, args) {
                    let (track, category) = operation;
                    // The times of `ts` and `dur` have lost their nanoseconds.
                    let exact = |key: &'static str| {
                        let [time] = pick_keys(args?.get(), [key])?;
                        unquote_text(time?).parse::<i64>().ok()
                    };
                    let (start, duration) = match (exact("BeginNs"), exact("EndNs")) {
                        (Some(begin), Some(end)) if begin <= end => (begin, end - begin),
                        _ => (start, duration),
                    };
                    let names = (self.slices.intern_text(&whole_name(name, args)), self.slices.intern_text(category));
                    self.slices.add_slice(track, names, start, duration, parse_details(args));
                    return Some(());
                }
                let track = self.track_id(pid, tid);
                let described =
                    || args.and_then(|a| pick_keys(a.get(), ["desc"])).and_then(|[d]| d).filter(|d| of_rpd(&unquote_text(d)).is_some());
                let names = (self.slices.intern_text(&whole_name(name, args)), self.slices.intern_text(&text(category.or_else(described))));
                self.slices.add_slice(track, names, start, duration, parse_details(args));
            }
            "B" => {
                let start = time(start)?;
                let track = self.track_id(pid, tid);
                let names = (self.slices.intern_text(&whole_name(name, args)), self.slices.intern_text(&text(category)));
                self.slices.begin_slice(track, names, start, parse_details(args));
            }
            "E" => {
                let end = time(start)?;
                let track = self.track_id(pid, tid);
                self.slices.end_slice(track, end);
            }
            "C" => {
                let time = time(start)?;
                // The id distinguishes counters of the same name.
                let name = id.map_or_else(|| text(name), |id| format!("{} {}", text(name), unquote_text(id)));
                // Counters do not belong to a thread.
                let track = self.track_id(pid, String::new());
                // Use only top-level numbers; skip nested values.
                let args = args?.get();
                let series: BTreeMap<String, Value> = serde_json::from_str(Some(args).filter(|a| a.len() <= LONGEST_SERIES)?).ok()?;
                let mut taken = false;
                for (key, value) in series {
                    let Some(value) = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()) else { continue };
                    let name = if key == "value" || key == name { name.clone() } else { format!("{name} {key}") };
                    taken |= self.slices.counters.add_value(track, (&name, ""), time, value);
                }
                taken.then_some(())?;
            }
            "s" | "t" | "f" => {
                let time = time(start)?;
                let track = self.track_id(pid, tid);
                let mut hasher = FxHasher::default();
                // Ids in other forms are ignored.
                let Some(id) = id else { return Some(()) };
                (text(category), unquote_text(id)).hash(&mut hasher);
                let encloses = &*phase != "f" || point.is_some_and(|p| unquote_text(p) == "e");
                self.slices.flows.push(End { id: hasher.finish(), track, time, encloses });
            }
            _ => {}
        }
        Some(())
    }
}

/// Returns the kernel's full signature from the arguments if present, otherwise the name of the event.
fn whole_name(name: Option<&RawValue>, args: Option<&RawValue>) -> String {
    let demangled = args.and_then(|a| pick_keys(a.get(), ["demangled"])).and_then(|[d]| d);
    demangled.or(name).map(|r| unquote_text(r).into_owned()).unwrap_or_default()
}

fn parse_details(args: Option<&RawValue>) -> Details {
    let keys = [
        "kernel_details",
        "memcpy_details",
        "memset_details",
        "grid",
        "block",
        "registers per thread",
        "shared memory",
        "correlation",
        "correlation_id",
        "bytes",
        "device",
        "stream",
        "config",
    ];
    let Some([kernel, copy, set, grid, block, registers, shared, correlation, correlation_id, bytes, device, stream, ours]) =
        args.and_then(|a| pick_keys(a.get(), keys))
    else {
        return Details::default();
    };
    let size = |raw: Option<&RawValue>| parse_dims(raw).or_else(|| parse_dims_text(&unquote_text(raw?)));
    let mut config = LaunchConfig {
        grid: size(grid),
        block: size(block),
        registers: parse_u32(registers),
        dynamic_shared: shared.and_then(parse_integer).and_then(|n| u64::try_from(n).ok()).map(Size),
        ..LaunchConfig::default()
    };
    if let Some(text) = kernel {
        kernel_details(&unquote_text(text), &mut config);
    }
    if let Some(text) = ours {
        our_config(&unquote_text(text), &mut config);
    }
    Details {
        config,
        correlation: correlation.or(correlation_id).and_then(parse_integer),
        bytes: bytes.and_then(parse_integer).and_then(|n| u64::try_from(n).ok()).or_else(|| parse_size(&unquote_text(copy.or(set)?))),
        device: parse_u32(device),
        stream: parse_u32(stream),
        flow: None,
    }
}
