//! Chrome trace JSON of any tool: complete events, begin/end pairs, counters and flows, with process and thread
//! names.

use super::sizes::{kernel_details, moved, our_config, three};
use super::slice::End;
use super::tracks::{Named, of_rpd};
use super::{Details, Slices, short};
use crate::import::input::{Bytes, Input};
use crate::import::torch::event::{dims, integer, nanoseconds, pick, small, word};
use crate::import::torch::split::Splitter;
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

/// Reads the trace; `None` if nothing in it ran on a GPU.
pub fn read(input: &Input, job: &Job<'_>) -> Result<Option<Profile>, ImportError> {
    let reader: Box<dyn Read> = match &input.bytes {
        Bytes::File(path) => Box::new(open::regular(path).map_err(|e| ImportError::io(path, e))?),
        Bytes::BuiltIn(bytes) => Box::new(*bytes),
    };
    let mut splitter = Splitter::new(reader);
    let mut all = Reader::default();
    let (budget, pace) = (input.budget(), job.cancel.pace());
    loop {
        budget.keep(all.slices.taken())?;
        let batch = match splitter.batch() {
            Ok(Some(batch)) => batch,
            Ok(None) => break,
            // Damage that stopped the first pass stops this one as well; use the rows before it.
            Err(e) if e.kind() == ErrorKind::InvalidData => break,
            Err(e) => return Err(ImportError::io(&input.path, e)),
        };
        job.progress("events", splitter.read, input.size);
        for &(from, to) in &batch.events {
            let text = batch.text.get(from..to).unwrap_or_default();
            if !pace.step(text.len() + 1) {
                return Err(ImportError::Cancelled { path: input.path.clone() });
            }
            if all.event(text).is_none() {
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
            // A thread with a non-numeric id gets its track's number.
            tid: tid.parse::<i64>().map_or(track, |n| n as u32),
        }
    };
    let profile = slices.profile(&named, source, job);
    if job.cancel.is_cancelled() { Err(ImportError::Cancelled { path: input.path.clone() }) } else { Ok(profile) }
}

impl Reader {
    fn track(&mut self, pid: String, tid: String) -> u32 {
        let key = (pid, tid);
        if let Some(&known) = self.tracks.get(&key) {
            return known;
        }
        let number = u32::try_from(self.list.len()).unwrap_or(u32::MAX);
        self.list.push(key.clone());
        self.tracks.insert(key, number);
        number
    }

    /// Reads an event; `None` if it is invalid.
    fn event(&mut self, text: &[u8]) -> Option<()> {
        let text = std::str::from_utf8(text).ok()?;
        let [phase, category, name, pid, tid, start, duration, args, id, point] =
            pick(text, ["ph", "cat", "name", "pid", "tid", "ts", "dur", "args", "id", "bp"])?;
        let text = |raw: Option<&RawValue>| raw.map(|r| word(r).into_owned()).unwrap_or_default();
        let (phase, pid, tid) = (text(phase), text(pid), text(tid));
        let time = |raw: Option<&RawValue>| raw.and_then(|r| nanoseconds(&word(r)));
        match &*phase {
            "M" => {
                let given =
                    args.and_then(|a| pick(a.get(), ["name"])).and_then(|[n]| n).map(|n| short(&word(n)).to_owned()).unwrap_or_default();
                match &*text(name) {
                    "process_name" => drop(self.processes.insert(pid, given)),
                    "thread_name" => drop(self.threads.insert((pid, tid), given)),
                    _ => {}
                }
            }
            "X" => {
                let (start, duration) = (time(start)?, time(duration).unwrap_or(0));
                let track = self.track(pid, tid);
                let described = || args.and_then(|a| pick(a.get(), ["desc"])).and_then(|[d]| d).filter(|d| of_rpd(&word(d)).is_some());
                let names = (self.slices.text(&whole_name(name, args)), self.slices.text(&text(category.or_else(described))));
                self.slices.whole(track, names, start, duration, details(args));
            }
            "B" => {
                let start = time(start)?;
                let track = self.track(pid, tid);
                let names = (self.slices.text(&whole_name(name, args)), self.slices.text(&text(category)));
                self.slices.begin(track, names, start, details(args));
            }
            "E" => {
                let end = time(start)?;
                let track = self.track(pid, tid);
                self.slices.end(track, end);
            }
            "C" => {
                let time = time(start)?;
                // The id distinguishes counters with the same name.
                let name = id.map_or_else(|| text(name), |id| format!("{} {}", text(name), word(id)));
                // Counters have no thread.
                let track = self.track(pid, String::new());
                // Flat numbers only, no nested values.
                let args = args?.get();
                let series: BTreeMap<String, Value> = serde_json::from_str(Some(args).filter(|a| a.len() <= LONGEST_SERIES)?).ok()?;
                let mut taken = false;
                for (key, value) in series {
                    let Some(value) = value.as_f64().or_else(|| value.as_str()?.trim().parse().ok()) else { continue };
                    let name = if key == "value" || key == name { name.clone() } else { format!("{name} {key}") };
                    taken |= self.slices.counters.take(track, (&name, ""), time, value);
                }
                taken.then_some(())?;
            }
            "s" | "t" | "f" => {
                let time = time(start)?;
                let track = self.track(pid, tid);
                let mut hasher = FxHasher::default();
                // Ids in other forms are ignored.
                let Some(id) = id else { return Some(()) };
                (text(category), word(id)).hash(&mut hasher);
                let encloses = &*phase != "f" || point.is_some_and(|p| word(p) == "e");
                self.slices.flows.push(End { id: hasher.finish(), track, time, encloses });
            }
            _ => {}
        }
        Some(())
    }
}

/// The name with its parameters, if the arguments contain it.
fn whole_name(name: Option<&RawValue>, args: Option<&RawValue>) -> String {
    let demangled = args.and_then(|a| pick(a.get(), ["demangled"])).and_then(|[d]| d);
    demangled.or(name).map(|r| word(r).into_owned()).unwrap_or_default()
}

fn details(args: Option<&RawValue>) -> Details {
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
        args.and_then(|a| pick(a.get(), keys))
    else {
        return Details::default();
    };
    let size = |raw: Option<&RawValue>| dims(raw).or_else(|| three(&word(raw?)));
    let mut config = LaunchConfig {
        grid: size(grid),
        block: size(block),
        registers: small(registers),
        dynamic_shared: shared.and_then(integer).and_then(|n| u64::try_from(n).ok()).map(Size),
        ..LaunchConfig::default()
    };
    if let Some(text) = kernel {
        kernel_details(&word(text), &mut config);
    }
    if let Some(text) = ours {
        our_config(&word(text), &mut config);
    }
    Details {
        config,
        correlation: correlation.or(correlation_id).and_then(integer),
        bytes: bytes.and_then(integer).and_then(|n| u64::try_from(n).ok()).or_else(|| moved(&word(copy.or(set)?))),
        device: small(device),
        stream: small(stream),
        flow: None,
    }
}
