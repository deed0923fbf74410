//! Reader for rocprofv3's Perfetto traces (`.pftrace`). Slices carry times, queue, stream and sizes as annotations,
//! but no dispatch ids. Field numbers are from Perfetto's published `perfetto_trace.proto`.

use super::protobuf::{Fields, Text, Value};
use super::rows::{Agent, Call, Copy, Dispatch, Process, Rows, Symbol, strip_kd_suffix};
use crate::import::{ImportError, Input, Job};
use crate::model::{Device, Pace, Vendor};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Slice categories by which a rocprofv3 trace is recognized.
const CATEGORIES: [&[u8]; 4] = [b"kernel_dispatch", b"hip_api", b"hsa_api", b"memory_copy"];

/// Returns true if a file starts like a Perfetto trace from rocprofv3.
pub fn is_rocm_trace(head: &[u8]) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(head, word).is_some();
    // The first field must be a packet. Traces of rocprofiler-systems, which use `rocm_` names, are rejected.
    head.first() == Some(&0x0a) && CATEGORIES.iter().any(|c| has(c)) && !has(b"rocm_")
}

/// Interned strings of a packet sequence by id, valid until the sequence's state is cleared.
#[derive(Default)]
struct Interned<'a> {
    categories: FxHashMap<u64, &'a [u8]>,
    names: FxHashMap<u64, Text<'a>>,
    keys: FxHashMap<u64, &'a [u8]>,
    texts: FxHashMap<u64, &'a [u8]>,
}

impl<'a> Interned<'a> {
    /// Adds interned strings; returns the number of strings read.
    fn read_interned(&mut self, data: &'a [u8], pace: &Pace) -> u64 {
        let mut taken = 0;
        for (field, value) in Fields::new(data) {
            if !matches!(field, 1..=3 | 29) {
                continue;
            }
            // A single packet may contain millions of strings.
            if !pace.count_steps(1) {
                break;
            }
            let (mut id, mut text) = (None, &b""[..]);
            for (field, value) in Fields::new(value.bytes().unwrap_or_default()) {
                match (field, value) {
                    (1, Value::Number(n)) => id = Some(n),
                    (2, Value::Bytes(b)) => text = b,
                    _ => {}
                }
            }
            let Some(id) = id else { continue };
            taken += 1;
            match field {
                1 => self.categories.insert(id, text),
                2 => self.names.insert(id, Text::new(text)).map(|t| t.bytes),
                3 => self.keys.insert(id, text),
                _ => self.texts.insert(id, text),
            };
        }
        taken
    }
}

/// A name that is either stored in the event or interned.
enum Name<'a, 'r> {
    Here(&'a [u8]),
    There(&'r Text<'a>),
}

impl Default for Name<'_, '_> {
    fn default() -> Self {
        Self::Here(&[])
    }
}

/// Maximum length of a key, an agent name or a number in text form, bytes. Longer strings are invalid and would be
/// slow, since every event may refer to one.
const LONGEST: usize = 256;

#[derive(Default)]
struct Slice<'a, 'r> {
    category: &'a [u8],
    name: Name<'a, 'r>,
    numbers: FxHashMap<&'a [u8], i64>,
    texts: FxHashMap<&'a [u8], &'a [u8]>,
}

impl<'a, 'r> Slice<'a, 'r> {
    /// Parses the slice that an event begins; `None` for other kinds of events.
    fn from_event(event: &'a [u8], interned: &'r Interned<'a>) -> Option<Self> {
        let (mut out, mut begins) = (Self::default(), false);
        for (field, value) in Fields::new(event) {
            match (field, value) {
                (9, Value::Number(kind)) => begins = kind == 1,
                (3, Value::Number(id)) => out.category = interned.categories.get(&id).copied().unwrap_or_default(),
                // The numbers of a repeated field may be packed.
                (3, Value::Bytes([id, ..])) => out.category = interned.categories.get(&u64::from(*id)).copied().unwrap_or_default(),
                (22, Value::Bytes(text)) => out.category = text,
                (10, Value::Number(id)) => out.name = interned.names.get(&id).map(Name::There).unwrap_or_default(),
                (23, Value::Bytes(text)) => out.name = Name::Here(text),
                (4, Value::Bytes(annotation)) => out.read_annotation(annotation, interned),
                _ => {}
            }
        }
        begins.then_some(out)
    }

    fn read_annotation(&mut self, annotation: &'a [u8], interned: &Interned<'a>) {
        let (mut key, mut number, mut text) = (&b""[..], None, None);
        for (field, value) in Fields::new(annotation) {
            match (field, value) {
                (1, Value::Number(id)) => key = interned.keys.get(&id).copied().unwrap_or_default(),
                (10, Value::Bytes(b)) => key = b,
                (2..=4, Value::Number(n)) => number = Some(n.cast_signed()),
                (6, Value::Bytes(b)) => text = Some(b),
                (17, Value::Number(id)) => text = interned.texts.get(&id).copied(),
                _ => {}
            }
        }
        if key.len() <= LONGEST {
            self.numbers.extend(number.map(|n| (key, n)));
            self.texts.extend(text.filter(|t| t.len() <= LONGEST).map(|t| (key, t)));
        }
    }

    fn annotated_number<N: TryFrom<i64>>(&self, key: &str) -> Option<N> {
        let told = self.numbers.get(key.as_bytes()).copied();
        let told = told.or_else(|| std::str::from_utf8(self.texts.get(key.as_bytes())?).ok()?.parse().ok());
        told.and_then(|n| N::try_from(n).ok())
    }
}

/// Parts missing from a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Lost {
    /// Number of chunks that did not fit into the buffer, or were overwritten.
    pub chunks: u64,
    /// True if the file ends within a packet.
    pub torn: bool,
}

#[derive(Default)]
struct Reader {
    rows: Rows,
    /// Ids of names, followed by the text index and the symbol name for each id.
    names: FxHashMap<Vec<u8>, u32>,
    named: FxHashMap<u32, u32>,
    formatted: FxHashMap<u32, Arc<str>>,
    agents: FxHashMap<Vec<u8>, u32>,
    /// Number of GPUs among the agents.
    gpus: u32,
    symbols: FxHashMap<(u64, u32), u32>,
}

fn next(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

/// Memory overhead of an interned string, bytes.
const TEXT: u64 = 64;

/// Reads a trace, and determines which parts are missing.
pub fn read_trace(bytes: &[u8], job: &Job<'_>, input: &Input) -> Result<(Rows, Lost), ImportError> {
    let (budget, pace) = (input.memory_budget(), job.cancel.pace());
    let mut reader = Reader::default();
    reader.rows.processes.push(Process::default());
    let mut sequences: FxHashMap<u64, Interned<'_>> = FxHashMap::default();
    let mut lost = Lost::default();
    let mut packets = Fields::new(bytes);
    let (mut n, mut done) = (0_u64, 0_u64);
    for (field, value) in packets.by_ref() {
        let (1, Value::Bytes(packet)) = (field, value) else { continue };
        done += packet.len() as u64;
        n += 1;
        if !pace.count_steps(packet.len() + 1) {
            return Err(ImportError::Cancelled { path: input.path.clone() });
        }
        if n.is_multiple_of(1 << 14) {
            job.report_progress("packets", done, bytes.len() as u64);
        }
        budget.charge_bytes(reader.read_packet(packet, &mut sequences, &mut lost, &pace))?;
    }
    lost.torn = packets.torn;
    if job.cancel.is_cancelled() {
        return Err(ImportError::Cancelled { path: input.path.clone() });
    }
    Ok((reader.rows, lost))
}

impl Reader {
    /// Reads a packet and returns the amount of memory that it needs, bytes.
    fn read_packet<'a>(&mut self, packet: &'a [u8], sequences: &mut FxHashMap<u64, Interned<'a>>, lost: &mut Lost, pace: &Pace) -> u64 {
        let (mut sequence, mut flags, mut event, mut data) = (0, 0, None, None);
        for (field, value) in Fields::new(packet) {
            match (field, value) {
                (10, Value::Number(n)) => sequence = n,
                (13, Value::Number(n)) => flags = n,
                (41, Value::Number(1)) => flags |= 1,
                (11, Value::Bytes(b)) => event = Some(b),
                (12, Value::Bytes(b)) => data = Some(b),
                (35, Value::Bytes(b)) => lost.chunks = lost.chunks.max(count_dropped(b)),
                (60, Value::Bytes(b)) => self.read_track(b),
                _ => {}
            }
        }
        let sequenced = sequences.len();
        let interned = sequences.entry(sequence).or_default();
        // SEQ_INCREMENTAL_STATE_CLEARED
        if flags & 1 == 1 {
            *interned = Interned::default();
        }
        let texts = data.map_or(0, |data| interned.read_interned(data, pace));
        if let Some(slice) = event.and_then(|event| Slice::from_event(event, interned)) {
            let understood = match slice.category {
                b"kernel_dispatch" => self.read_kernel(&slice, pace),
                b"memory_copy" => self.read_copy(&slice, pace),
                b"hip_api" | b"hsa_api" | b"rccl_api" => self.read_call(&slice, false, pace),
                b"marker_api" => self.read_call(&slice, true, pace),
                _ => Some(()),
            };
            self.rows.broken += u64::from(understood.is_none());
        }
        let new = (sequences.len() - sequenced) * size_of::<Interned<'_>>() * 2;
        // Account for the new entries in lookup tables, plus a row.
        let row = if event.is_some() { size_of::<Dispatch>() } else { 0 };
        (new + row) as u64 + texts * TEXT
    }

    /// Reads process id and command line from a track descriptor.
    fn read_track(&mut self, track: &[u8]) {
        let process = Fields::new(track).find(|(field, _)| *field == 3).and_then(|(_, v)| v.bytes());
        let Some(process) = process else { return };
        let mut words = Vec::new();
        for (field, value) in Fields::new(process) {
            match (field, value) {
                (1, Value::Number(pid)) => self.rows.processes[0].pid = u32::try_from(pid).unwrap_or(0),
                (2, Value::Bytes(word)) => words.push(String::from_utf8_lossy(word).into_owned()),
                _ => {}
            }
        }
        if !words.is_empty() {
            self.rows.processes[0].command = Some(words.join(" "));
        }
    }

    /// Returns the id of a name, together with its bytes.
    fn name_number<'a>(&mut self, name: &Name<'a, '_>, pace: &Pace) -> (u32, &'a [u8]) {
        let names = &mut self.names;
        let mut look_up = |bytes: &[u8]| {
            // Cancellation is checked in the packet loop.
            let _ = pace.count_steps(bytes.len());
            names.get(bytes).copied().unwrap_or_else(|| {
                let new = next(names.len());
                names.insert(bytes.to_vec(), new);
                new
            })
        };
        match name {
            Name::Here(bytes) => (look_up(bytes), bytes),
            Name::There(text) => (text.cached_number(look_up), text.bytes),
        }
    }

    fn intern_text(&mut self, name: &Name<'_, '_>, pace: &Pace) -> u32 {
        let (number, bytes) = self.name_number(name, pace);
        let texts = &mut self.rows.texts;
        *self.named.entry(number).or_insert_with(|| {
            texts.push(Arc::from(String::from_utf8_lossy(bytes)));
            next(texts.len()) - 1
        })
    }

    /// Returns the agent with this name (`Agent-2` or `Agent 2`).
    fn agent_index(&mut self, named: &[u8], gpu: bool) -> u32 {
        if let Some(&known) = self.agents.get(named) {
            return known;
        }
        let number = next(self.rows.agents.len());
        let device = gpu.then(|| Device { id: self.gpus, maker: Vendor::Amd, ..Device::default() });
        self.gpus = self.gpus.saturating_add(u32::from(gpu));
        self.rows.agents.push(Agent { device, ..Agent::default() });
        self.agents.insert(named.to_vec(), number);
        number
    }

    fn read_kernel(&mut self, slice: &Slice<'_, '_>, pace: &Pace) -> Option<()> {
        let (start, end) = (slice.annotated_number("begin_ns")?, slice.annotated_number("end_ns")?);
        let id = slice.annotated_number("kernel_id").unwrap_or(0);
        let (number, bytes) = self.name_number(&slice.name, pace);
        // Kernels with the same name share the string.
        let formatted = self.formatted.entry(number).or_insert_with(|| {
            let _ = pace.count_steps(bytes.len());
            Arc::from(strip_kd_suffix(&String::from_utf8_lossy(bytes)))
        });
        let symbol = *self.symbols.entry((id, number)).or_insert_with(|| {
            let formatted = Arc::clone(formatted);
            let mangled = formatted.starts_with("_Z").then(|| formatted.clone());
            self.rows.symbols.push(Symbol { process: 0, kernel_id: id, formatted, mangled, registers: None });
            next(self.rows.symbols.len()) - 1
        });
        let agent = self.agent_index(slice.texts.get(&b"agent"[..]).copied().unwrap_or_default(), true);
        let line = |key| [slice.annotated_number(key).unwrap_or(0), 1, 1];
        let registers =
            slice.annotated_number::<u32>("VGPR_Count").map(|v| v + slice.annotated_number::<u32>("Accum_VGPR_Count").unwrap_or(0));
        self.rows.dispatches.push(Dispatch {
            agent,
            symbol,
            thread: slice.annotated_number("tid").unwrap_or(0),
            // rocprofv3 writes the queue number minus one.
            queue: slice.annotated_number::<u32>("queue").map_or(0, |q| q.saturating_add(1)),
            stream: slice.annotated_number("stream_ID"),
            correlation: slice.annotated_number("corr_id").unwrap_or(0),
            start,
            end,
            workgroup: line("workgroup_size"),
            grid: line("grid_size"),
            lds: slice.annotated_number("LDS_Block_Size"),
            scratch: slice.annotated_number("Scratch_Size"),
            registers,
            ..Dispatch::default()
        });
        Some(())
    }

    fn read_call(&mut self, slice: &Slice<'_, '_>, marker: bool, pace: &Pace) -> Option<()> {
        let (start, end) = (slice.annotated_number("begin_ns")?, slice.annotated_number("end_ns")?);
        let name = self.intern_text(&slice.name, pace);
        self.rows.calls.push(Call {
            of_process: false,
            process: 0,
            thread: slice.annotated_number("tid").unwrap_or(0),
            name,
            marker,
            correlation: slice.annotated_number("corr_id").unwrap_or(0),
            start,
            end,
        });
        Some(())
    }

    fn read_copy(&mut self, slice: &Slice<'_, '_>, pace: &Pace) -> Option<()> {
        let (start, end) = (slice.annotated_number("begin_ns")?, slice.annotated_number("end_ns")?);
        let name = self.intern_text(&slice.name, pace);
        let [from, to] = ["src_agent", "dst_agent"].map(|k| slice.texts.get(k.as_bytes()).map(|t| self.agent_index(t, false)));
        self.rows.copies.push(Copy {
            process: 0,
            thread: slice.annotated_number("tid").unwrap_or(0),
            from,
            to,
            name,
            bytes: slice.annotated_number("copy_bytes"),
            stream: slice.annotated_number("stream_ID"),
            correlation: slice.annotated_number("corr_id").unwrap_or(0),
            start,
            end,
        });
        Some(())
    }
}

/// Returns the number of chunks dropped because buffers were full; the events themselves do not show that data is
/// missing.
fn count_dropped(stats: &[u8]) -> u64 {
    let buffers = Fields::new(stats).filter(|(field, _)| *field == 1).filter_map(|(_, v)| v.bytes());
    let chunks = |buffer| Fields::new(buffer).filter(|(field, _)| matches!(field, 3 | 18)).filter_map(|(_, v)| v.number());
    buffers.flat_map(chunks).sum()
}
