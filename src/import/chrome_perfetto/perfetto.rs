//! Perfetto protobuf traces from any tool: slices from track events, with their tracks. Field numbers are from
//! Perfetto's published `perfetto_trace.proto`.

use super::packets::{self, Packets};
use super::sizes::{our_config, parse_dims_text};
use super::tracks::Named;
use super::{Details, Slices, shorten_name};
use crate::import::input::{Bytes, Input};
use crate::import::rocm::protobuf::{Fields, Text, Value};
use crate::import::{Budget, ImportError, Job};
use crate::launch::open;
use crate::model::{Note, NoteKind, Pace, Profile, Severity, Source};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// Memory for a track and for a packet sequence, both excluding their strings, and for the table entry of a string,
/// bytes.
const TRACK: usize = 2 * size_of::<Track>();
const SEQUENCE: usize = 2 * size_of::<Interned<'_>>();
const ENTRY: usize = 64;
/// Maximum length of a string that is parsed as a number or as dimensions, bytes. Without a limit, every event might
/// refer to the same huge string.
const LONGEST_WORDS: usize = 1 << 10;
/// Maximum number of ancestors of a track.
const DEEPEST: usize = 8;

/// Returns true if the first bytes are packets with events, tracks or interned strings.
pub fn is_trace(head: &[u8]) -> bool {
    let first = Fields::new(head).take(8);
    let known = |field: u64| matches!(field, 11 | 12 | 50 | 60 | 8 | 10 | 13 | 41 | 59 | 33 | 36 | 6 | 79 | 58 | 1 | 3 | 45);
    let mut packets = 0;
    for (field, value) in first {
        let (1, Value::Bytes(packet)) = (field, value) else { return false };
        let mut fields = Fields::new(packet);
        if packet.is_empty() || !fields.by_ref().all(|(f, _)| known(f) || f > 13 && f < 200) || fields.torn {
            return packets > 0;
        }
        packets += 1;
    }
    packets > 1
}

#[derive(Default)]
struct Track {
    parent: Option<u64>,
    name: String,
    process: Option<(u32, String)>,
    thread: Option<(u32, u32, String)>,
    counter: Option<Counter>,
}

/// Describes the values of a counter track.
#[derive(Clone, Default)]
struct Counter {
    unit: String,
    /// Factor by which values are multiplied; 0 if not given.
    multiplier: i64,
    /// True if each value is the difference from the previous value.
    incremental: bool,
    sum: f64,
}

/// Interned strings of a packet sequence, by id.
#[derive(Default)]
struct Interned<'a> {
    kinds: [FxHashMap<u64, Text<'a>>; 4],
    /// Track of events that have no track id.
    track: u64,
}

const CATEGORY: usize = 0;
const NAME: usize = 1;
const KEY: usize = 2;
const TEXT: usize = 3;

#[derive(Default)]
struct Reader {
    slices: Slices,
    tracks: FxHashMap<u64, Track>,
    numbers: FxHashMap<u64, u32>,
    uuids: Vec<u64>,
    torn: bool,
}

impl Counter {
    /// Parses a `CounterDescriptor`.
    fn from_descriptor(message: &[u8]) -> Self {
        let mut out = Self::default();
        for (field, value) in Fields::new(message) {
            match (field, value) {
                // `UNIT_TIME_NS`, `UNIT_SIZE_BYTES`; an explicit unit name takes precedence.
                (3, Value::Number(1)) if out.unit.is_empty() => "ns".clone_into(&mut out.unit),
                (3, Value::Number(3)) if out.unit.is_empty() => "B".clone_into(&mut out.unit),
                (6, Value::Bytes(b)) => shorten_name(&decode_text(b)).clone_into(&mut out.unit),
                (4, Value::Number(n)) => out.multiplier = n.cast_signed(),
                (5, Value::Number(n)) => out.incremental = n == 1,
                _ => {}
            }
        }
        out
    }

    fn next_value(&mut self, value: f64) -> f64 {
        let value = if self.multiplier == 0 { value } else { value * self.multiplier as f64 };
        if self.incremental && value.is_finite() {
            self.sum += value;
            return self.sum;
        }
        value
    }
}

fn decode_text(bytes: &[u8]) -> Cow<'_, str> {
    String::from_utf8_lossy(bytes)
}

/// Reads a trace into a profile.
pub fn read_trace(input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
    let bytes: Cow<'_, [u8]> = match &input.bytes {
        Bytes::File(path) => Cow::Owned(open::read_regular(path).map_err(|e| ImportError::io(path, e))?),
        Bytes::BuiltIn(bytes) => Cow::Borrowed(*bytes),
    };
    let (budget, pace) = (Budget::from_stored_size(&input.path, input.stored_size()), job.cancel.pace());
    let Packets { bytes, torn } = packets::unpack_packets(bytes, &input.path, &budget, &pace)?;
    budget.lower_limit(bytes.len() as u64);
    let mut reader = Reader { torn, ..Reader::default() };
    let mut sequences: FxHashMap<u64, Interned<'_>> = FxHashMap::default();
    let mut packets = Fields::new(&bytes);
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
        budget.charge_bytes(reader.read_packet(packet, &mut sequences, &pace))?;
    }
    reader.torn |= packets.torn;
    let torn = reader.torn;
    let source = Source { tool: "Perfetto trace".to_owned(), version: None, schema: None, file: input.path.clone() };
    let Reader { slices, tracks, uuids, .. } = reader;
    let named = |track: u32| uuids.get(track as usize).map(|uuid| track_names(&tracks, *uuid)).unwrap_or_default();
    let built = slices.into_profile(&named, source, job);
    if job.cancel.is_cancelled() {
        return Err(ImportError::Cancelled { path: input.path.clone() });
    }
    let Some(mut profile) = built else {
        let what = "a Perfetto trace without slices of a GPU: neither a category (kernel, gpu_kernel) nor a track's name (GPU 0, stream 7) tells them";
        return Err(ImportError::refused(
            &input.path,
            what,
            "open it in ui.perfetto.dev, or record with nsys, torch.profiler or rocprofv3",
        ));
    };
    if torn {
        let text = "The file ends in the middle of a record: what came later is missing.";
        profile.notes.push(Note::new(Severity::Error, NoteKind::Lost, text));
    }
    Ok(profile)
}

fn track_names(tracks: &FxHashMap<u64, Track>, uuid: u64) -> Named {
    let mut out = Named { tid: uuid as u32, ..Named::default() };
    let mut above = Vec::new();
    let mut at = tracks.get(&uuid);
    for depth in 0..DEEPEST {
        let Some(track) = at else { break };
        if let Some((pid, tid, name)) = &track.thread {
            (out.pid, out.tid) = (*pid, *tid);
            if depth == 0 {
                out.track.clone_from(name);
            }
        }
        if depth == 0 && out.track.is_empty() {
            out.track.clone_from(&track.name);
        } else if !track.name.is_empty() && depth > 0 {
            above.push(track.name.as_str());
        }
        if let Some((pid, name)) = &track.process {
            out.pid = *pid;
            above.push(name);
        }
        at = track.parent.and_then(|p| tracks.get(&p));
    }
    // The nearest ancestor is the most specific: the track of a GPU takes precedence over the process.
    out.process = above.first().map(|s| (*s).to_owned()).unwrap_or_default();
    out
}

impl Reader {
    /// Reads a packet; returns the amount of memory allocated, bytes.
    fn read_packet<'a>(&mut self, packet: &'a [u8], sequences: &mut FxHashMap<u64, Interned<'a>>, pace: &Pace) -> u64 {
        let (tracks, numbers, sequenced) = (self.tracks.len(), self.uuids.len(), sequences.len());
        let mut texts = 0;
        let (mut sequence, mut flags, mut time) = (0, 0, None);
        let (mut event, mut data, mut defaults) = (None, None, None);
        for (field, value) in Fields::new(packet) {
            match (field, value) {
                (8, Value::Number(n)) => time = i64::try_from(n).ok(),
                (10, Value::Number(n)) => sequence = n,
                (13, Value::Number(n)) => flags |= n,
                (41, Value::Number(1)) => flags |= 1,
                (11, Value::Bytes(b)) => event = Some(b),
                (12, Value::Bytes(b)) => data = Some(b),
                (59, Value::Bytes(b)) => defaults = Some(b),
                (60, Value::Bytes(b)) => self.read_track(b),
                _ => {}
            }
        }
        let interned = sequences.entry(sequence).or_default();
        // SEQ_INCREMENTAL_STATE_CLEARED
        if flags & 1 == 1 {
            *interned = Interned::default();
        }
        if let Some(data) = data {
            texts += interned.read_interned(data, pace);
        }
        if let Some(defaults) = defaults {
            let of_events = Fields::new(defaults).find(|(f, _)| *f == 11).and_then(|(_, v)| v.bytes()).unwrap_or_default();
            interned.track = Fields::new(of_events).find(|(f, _)| *f == 11).and_then(|(_, v)| v.number()).unwrap_or(0);
        }
        if let (Some(event), Some(time)) = (event, time) {
            self.read_event(event, time, interned, pace);
        }
        let new = (self.tracks.len() - tracks) * (TRACK + super::LONGEST)
            + (self.uuids.len() - numbers + texts) * ENTRY
            + (sequences.len() - sequenced) * SEQUENCE;
        new as u64 + self.slices.take_memory()
    }

    fn read_track(&mut self, descriptor: &[u8]) {
        let (mut uuid, mut track) = (0, Track::default());
        for (field, value) in Fields::new(descriptor) {
            match (field, value) {
                (1, Value::Number(n)) => uuid = n,
                // Names: there is one field per source of the name.
                (2 | 10 | 13, Value::Bytes(b)) => shorten_name(&decode_text(b)).clone_into(&mut track.name),
                (5, Value::Number(n)) => track.parent = Some(n),
                (3, Value::Bytes(b)) => {
                    let mut of = (0, String::new());
                    for (field, value) in Fields::new(b) {
                        match (field, value) {
                            (1, Value::Number(n)) => of.0 = n as u32,
                            (6, Value::Bytes(b)) => shorten_name(&decode_text(b)).clone_into(&mut of.1),
                            _ => {}
                        }
                    }
                    track.process = Some(of);
                }
                (4, Value::Bytes(b)) => {
                    let mut of = (0, 0, String::new());
                    for (field, value) in Fields::new(b) {
                        match (field, value) {
                            (1, Value::Number(n)) => of.0 = n as u32,
                            (2, Value::Number(n)) => of.1 = n as u32,
                            (5, Value::Bytes(b)) => shorten_name(&decode_text(b)).clone_into(&mut of.2),
                            _ => {}
                        }
                    }
                    track.thread = Some(of);
                }
                (8, Value::Bytes(b)) => track.counter = Some(Counter::from_descriptor(b)),
                _ => {}
            }
        }
        self.tracks.insert(uuid, track);
    }

    fn track_number(&mut self, uuid: u64) -> u32 {
        if let Some(&known) = self.numbers.get(&uuid) {
            return known;
        }
        let number = u32::try_from(self.uuids.len()).unwrap_or(u32::MAX);
        self.uuids.push(uuid);
        self.numbers.insert(uuid, number);
        number
    }

    /// Returns the id of a string, interning it if needed.
    fn text_number(&mut self, text: &Text<'_>, pace: &Pace) -> u32 {
        text.cached_number(|bytes| {
            // If the job was canceled, the next packet will not be read.
            let _ = pace.count_steps(bytes.len());
            self.slices.intern_text(&String::from_utf8_lossy(bytes))
        })
    }

    fn read_event<'a>(&mut self, event: &'a [u8], time: i64, interned: &Interned<'a>, pace: &Pace) {
        let (mut kind, mut uuid) = (0, interned.track);
        let (mut name, mut category): (Cow<'_, Text<'a>>, Cow<'_, Text<'a>>) = (Cow::default(), Cow::default());
        let (mut details, mut demangled, mut counted) = (Details::default(), None, None);
        for (field, value) in Fields::new(event) {
            match (field, value) {
                (9, Value::Number(n)) => kind = n,
                (11, Value::Number(n)) => uuid = n,
                (3, Value::Number(id)) => category = interned.get(CATEGORY, id),
                (3, Value::Bytes([id, ..])) => category = interned.get(CATEGORY, u64::from(*id)),
                (22, Value::Bytes(b)) => category = Cow::Owned(Text::new(b)),
                (10, Value::Number(id)) => name = interned.get(NAME, id),
                (23, Value::Bytes(b)) => name = Cow::Owned(Text::new(b)),
                // Ids of flows that begin, continue or end here, in old and new fields.
                (36 | 42 | 47 | 48, Value::Number(id)) => details.flow = details.flow.or(Some(id)),
                (30, Value::Number(n)) => counted = Some(n.cast_signed() as f64),
                (44, Value::Number(n)) => counted = Some(f64::from_bits(n)),
                (4, Value::Bytes(annotation)) => demangled = read_annotation(annotation, interned, &mut details).or(demangled),
                _ => {}
            }
        }
        let name = demangled.unwrap_or(name);
        let track = self.track_number(uuid);
        match kind {
            1 => {
                let names = (self.text_number(&name, pace), self.text_number(&category, pace));
                self.slices.begin_slice(track, names, time, details);
            }
            2 => self.slices.end_slice(track, time),
            4 => {
                let known = self.tracks.get_mut(&uuid);
                let Some((of, value)) = known.zip(counted) else {
                    self.slices.broken += 1;
                    return;
                };
                let name = if of.name.is_empty() { "counter".to_owned() } else { of.name.clone() };
                let mut plain = Counter::default();
                let counter = of.counter.as_mut().unwrap_or(&mut plain);
                let value = counter.next_value(value);
                if !self.slices.counters.add_value(track, (&name, &counter.unit), time, value) {
                    self.slices.broken += 1;
                }
            }
            _ => {}
        }
    }
}

/// Reads the key and value (number or string) of an annotation; returns the kernel's full name if the annotation has
/// it.
fn read_annotation<'r, 'a>(annotation: &'a [u8], interned: &'r Interned<'a>, details: &mut Details) -> Option<Cow<'r, Text<'a>>> {
    let (mut key, mut number, mut words): (_, _, Option<Cow<'r, Text<'a>>>) = (&b""[..], None, None);
    for (field, value) in Fields::new(annotation) {
        match (field, value) {
            (1, Value::Number(id)) => key = interned.get(KEY, id).bytes,
            (10, Value::Bytes(b)) => key = b,
            (2..=4, Value::Number(n)) => number = Some(n.cast_signed()),
            (6, Value::Bytes(b)) => words = Some(Cow::Owned(Text::new(b))),
            (17, Value::Number(id)) => words = Some(interned.get(TEXT, id)),
            _ => {}
        }
    }
    if key == b"demangled" {
        return words.filter(|w| !w.bytes.is_empty());
    }
    let words = words.filter(|w| w.bytes.len() <= LONGEST_WORDS).map(|w| decode_text(w.bytes));
    let number = number.or_else(|| words.as_ref().and_then(|w| w.trim().parse().ok()));
    let small = || number.and_then(|n| u32::try_from(n).ok());
    match key {
        b"config" => our_config(words.as_deref().unwrap_or_default(), &mut details.config),
        b"grid" | b"grid_size" => details.config.grid = words.as_deref().and_then(parse_dims_text),
        b"block" | b"workgroup_size" => details.config.block = words.as_deref().and_then(parse_dims_text),
        b"correlation" | b"correlation_id" | b"corr_id" => details.correlation = number,
        b"bytes" | b"size" => details.bytes = number.and_then(|n| u64::try_from(n).ok()),
        b"device" => details.device = small(),
        b"stream" => details.stream = small(),
        _ => {}
    }
    None
}

impl<'a> Interned<'a> {
    fn get(&self, kind: usize, id: u64) -> Cow<'_, Text<'a>> {
        self.kinds.get(kind).and_then(|k| k.get(&id)).map(Cow::Borrowed).unwrap_or_default()
    }

    /// Adds interned strings; returns how many there were.
    fn read_interned(&mut self, data: &'a [u8], pace: &Pace) -> usize {
        let mut taken = 0;
        for (field, value) in Fields::new(data) {
            let kind = match field {
                1 => CATEGORY,
                2 => NAME,
                3 => KEY,
                29 => TEXT,
                _ => continue,
            };
            // A single packet may contain millions of strings.
            if !pace.count_steps(1) {
                break;
            }
            let (mut id, mut of) = (None, &b""[..]);
            for (field, value) in Fields::new(value.bytes().unwrap_or_default()) {
                match (field, value) {
                    (1, Value::Number(n)) => id = Some(n),
                    (2, Value::Bytes(b)) => of = b,
                    _ => {}
                }
            }
            if let (Some(id), Some(texts)) = (id, self.kinds.get_mut(kind)) {
                texts.insert(id, Text::new(of));
                taken += 1;
            }
        }
        taken
    }
}
