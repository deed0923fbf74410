//! Traces from other tools: slices on named tracks, in Chrome JSON or Perfetto protobuf. GPU work is recognized by
//! category or track name.

pub mod chrome;
mod counters;
mod flows;
mod packets;
pub mod perfetto;
mod sizes;
mod slice;
mod tracks;
pub mod xspace;

use super::torch::event::{EventKind, LONGEST_NS, MOST_NS};
use super::torch::metadata::{Facts, Writer, is_other_vendor};
use super::torch::shard::{Call, OnGpu, ShardEvents, Span};
use super::torch::{build, event};
use super::{ImportError, Importer, Input, Job, Parts};
use crate::model::{LaunchConfig, Profile, RangeOrigin, Source};
use counters::Counters;
use rustc_hash::FxHashMap;
use slice::{End, Slice};
use std::sync::Arc;
use tracks::{Named, kind_of};

/// Memory overhead of a string, bytes.
const TEXT: usize = 96;

/// Arguments of a slice.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Details {
    pub config: LaunchConfig,
    pub correlation: Option<i64>,
    pub bytes: Option<u64>,
    pub device: Option<u32>,
    pub stream: Option<u32>,
    /// Id of a flow that begins or ends in the slice.
    pub flow: Option<u64>,
}

/// Interned strings.
#[derive(Default)]
struct Texts {
    ids: FxHashMap<Arc<str>, u32>,
    list: Vec<Arc<str>>,
}

impl Texts {
    fn text_id(&mut self, text: &str) -> u32 {
        if let Some(&id) = self.ids.get(text) {
            return id;
        }
        let (id, text) = (u32::try_from(self.list.len()).unwrap_or(u32::MAX), Arc::<str>::from(text));
        self.ids.insert(text.clone(), id);
        self.list.push(text);
        id
    }

    fn get(&self, id: u32) -> &str {
        self.list.get(id as usize).map_or("", |t| t)
    }

    /// Returns the start of a string, which suffices to classify a slice. A string may be a megabyte long and be used
    /// by a million slices.
    fn text_start(&self, id: u32) -> &str {
        shorten_name(self.get(id))
    }
}

/// Maximum length of track and process names, and of slice names used for classification, bytes; longer names are
/// truncated.
const LONGEST: usize = 256;

/// Truncates a string to [`LONGEST`] bytes.
fn shorten_name(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

/// An open slice on a track: name, category, start, details.
type Open = (u32, u32, i64, u32);

/// All slices of a trace.
#[derive(Default)]
pub struct Slices {
    texts: Texts,
    list: Vec<Slice>,
    details: Vec<Details>,
    open: FxHashMap<u32, Vec<Open>>,
    pub counters: Counters,
    /// Flow ends that are events of their own rather than part of a slice.
    pub flows: Vec<End>,
    /// Number of invalid events.
    pub broken: u64,
    /// Memory allocated since the last call to [`Slices::take_memory`], bytes.
    taken: usize,
}

impl Slices {
    fn add_details(&mut self, details: Details) -> u32 {
        if details == Details::default() {
            return u32::MAX;
        }
        self.taken += size_of::<Details>();
        self.details.push(details);
        u32::try_from(self.details.len() - 1).unwrap_or(u32::MAX)
    }

    /// Returns the number of bytes allocated since the last call.
    pub fn take_memory(&mut self) -> u64 {
        std::mem::take(&mut self.taken) as u64
    }

    /// Interns a string, such as a name or category, and returns its id.
    pub fn intern_text(&mut self, text: &str) -> u32 {
        let known = self.texts.list.len();
        let id = self.texts.text_id(text);
        if self.texts.list.len() > known {
            self.taken += text.len() + TEXT;
        }
        id
    }

    /// Adds a complete slice. `name` and `category` are interned, and `track` is the reader's track id.
    pub fn add_slice(&mut self, track: u32, (name, category): (u32, u32), start: i64, duration: i64, details: Details) {
        let details = self.add_details(details);
        self.push(Slice { name, category, track, start, duration, details });
    }

    /// Adds a slice if its times are valid, and small enough that sums of thousands of them do not overflow.
    fn push(&mut self, slice: Slice) {
        self.taken += size_of::<Slice>();
        if (0..LONGEST_NS).contains(&slice.duration) && slice.start.unsigned_abs() < MOST_NS.unsigned_abs() {
            self.list.push(slice);
        } else {
            self.broken += 1;
        }
    }

    /// Begins a slice; the next end on the track closes it.
    pub fn begin_slice(&mut self, track: u32, (name, category): (u32, u32), start: i64, details: Details) {
        let open = (name, category, start, self.add_details(details));
        self.taken += size_of::<Open>();
        self.open.entry(track).or_default().push(open);
    }

    pub fn end_slice(&mut self, track: u32, time: i64) {
        // Ignore an end without a beginning; such a slice began before the trace.
        if let Some((name, category, start, details)) = self.open.get_mut(&track).and_then(Vec::pop) {
            self.push(Slice { name, category, track, start, duration: time.saturating_sub(start), details });
        }
    }

    /// Stores the ids of flows in the slices that their ends bind to.
    fn bind_flows(&mut self) {
        for (at, id) in flows::bind_ends(&std::mem::take(&mut self.flows), &self.list) {
            let slice = &mut self.list[at];
            match self.details.get_mut(slice.details as usize) {
                Some(details) => details.flow = details.flow.or(Some(id)),
                None => {
                    slice.details = u32::try_from(self.details.len()).unwrap_or(u32::MAX);
                    self.details.push(Details { flow: Some(id), ..Details::default() });
                }
            }
        }
    }

    /// Builds the profile; `None` if there is no GPU work. `named` returns the names and ids of a track.
    fn into_profile(mut self, named: &dyn Fn(u32) -> Named, source: Source, job: &Job<'_>) -> Option<Profile> {
        self.bind_flows();
        let mut part = ShardEvents::default();
        let mut tracks: FxHashMap<u32, (Named, Option<tracks::Stream>)> = FxHashMap::default();
        let mut processes: FxHashMap<u32, String> = FxHashMap::default();
        let none = Details::default();
        // Cache name ids by string id, because looking up a name takes time proportional to its length.
        let mut names = vec![u32::MAX; self.texts.list.len()];
        let pace = job.cancel.pace();
        for (at, slice) in self.list.iter().enumerate() {
            if !pace.count_steps(1) {
                return None;
            }
            let (named, stream) = tracks.entry(slice.track).or_insert_with(|| {
                let named = named(slice.track);
                let stream = tracks::find_stream(&named);
                (named, stream)
            });
            let (name, category) = (self.texts.text_start(slice.name), self.texts.text_start(slice.category));
            let mut numbered = |part: &mut ShardEvents| {
                let Some(number) = names.get_mut(slice.name as usize) else { return u32::MAX };
                if *number == u32::MAX {
                    let text = &self.texts.list[slice.name as usize];
                    let _ = pace.count_steps(text.len());
                    *number = part.names.value_id(text);
                }
                *number
            };
            let details = self.details.get(slice.details as usize).unwrap_or(&none);
            let at = (at as u64 >> 20, (at & 0xf_ffff) as u32);
            let on_host = || (named.pid, named.tid);
            // Use the correlation id or, failing that, the flow id; the first number tells the two apart.
            let correlation = details.correlation.map(|c| (0, c)).or(details.flow.map(|f| (1, f.cast_signed())));
            match kind_of(name, category, named, *stream) {
                Some(kind @ (EventKind::Kernel | EventKind::Copy | EventKind::Set)) => {
                    let device = details.device.or(stream.map(|s| s.device)).or_else(|| tracks::find_device(named)).unwrap_or(0);
                    let stream = details.stream.or(stream.and_then(|s| s.number)).unwrap_or(named.tid);
                    let name = numbered(&mut part);
                    part.on_gpu.push(OnGpu {
                        at,
                        kind,
                        name,
                        start: slice.start,
                        duration: slice.duration,
                        config: part.configs.value_id(&details.config),
                        device: Some(device),
                        context: None,
                        stream: Some(stream),
                        correlation,
                        bytes: details.bytes,
                        node: None,
                    });
                }
                Some(EventKind::Call) => {
                    processes.entry(named.pid).or_insert_with(|| named.process.clone());
                    let name = numbered(&mut part);
                    part.calls.push(Call { at, name, start: slice.start, duration: slice.duration, thread: on_host(), correlation });
                }
                Some(_) => {
                    processes.entry(named.pid).or_insert_with(|| named.process.clone());
                    // Python functions as written by JAX and TensorFlow: `$module.py:12 function`.
                    let origin = if name.starts_with('$') { RangeOrigin::Python } else { RangeOrigin::Annotation };
                    let name = numbered(&mut part);
                    let (start, duration, thread) = (slice.start, slice.duration, on_host());
                    if correlation.is_some() {
                        part.launch_ranges.push(Call { at, name, start, duration, thread, correlation });
                    }
                    part.spans.push(Span { at, name, start, duration, thread, origin, operator: None });
                }
                None => {}
            }
        }
        if part.on_gpu.is_empty() {
            return None;
        }
        part.processes = processes.into_iter().filter(|(_, name)| !name.is_empty()).collect();
        part.processes.sort();
        let mut facts = Facts::default();
        facts.writer = Writer::Other;
        facts.other = tracks.values().any(|(named, _)| is_other_vendor(&named.process) || is_other_vendor(&named.track));
        let parts = vec![part];
        let begin = build::find_begin(&parts);
        let mut profile = build::build_profile(parts, facts, event::with_calls(job.wants), Profile::new(source));
        if job.wants.has_parts(Parts::COUNTERS) {
            profile.counters = self.counters.into_tracks(named, &profile.devices, begin);
        }
        if self.broken > 0 {
            let text = format!(
                "{} of this trace could not be understood; the rest is shown.",
                crate::model::units::format_count(usize::try_from(self.broken).unwrap_or(usize::MAX), "event")
            );
            profile.notes.push(crate::model::Note::new(crate::model::Severity::Warning, crate::model::NoteKind::Damaged, text));
        }
        Some(profile)
    }
}

/// Importer for Perfetto traces from any tool.
pub struct PerfettoTrace;

impl Importer for PerfettoTrace {
    fn name(&self) -> &'static str {
        "Perfetto trace"
    }

    fn files(&self) -> &'static [&'static str] {
        &[".pftrace"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".pftrace"]
    }

    fn knows(&self, input: &Input) -> bool {
        perfetto::is_trace(&input.head)
    }

    fn is_of_rank(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        perfetto::read_trace(input, job)
    }
}
