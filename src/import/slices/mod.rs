//! Traces of other tools: slices on named tracks, as Chrome's JSON and Perfetto's protobuf have them. Which of them ran on a GPU is told by their
//! category, or by the names of their tracks.

pub mod chrome;
mod counters;
mod flows;
mod packets;
pub mod perfetto;
mod sizes;
mod slice;
mod tracks;

use super::torch::event::{Kind, LONGEST_NS, MOST_NS};
use super::torch::facts::{Facts, others};
use super::torch::part::{Call, OnGpu, Part, Span};
use super::torch::{build, event};
use super::{ImportError, Importer, Input, Job, Parts};
use crate::model::{LaunchConfig, Profile, RangeOrigin, Source};
use counters::Counters;
use rustc_hash::FxHashMap;
use slice::{End, Slice};
use std::sync::Arc;
use tracks::{Named, kind_of};

/// Bytes that a text takes beside its letters.
const TEXT: usize = 96;

/// What a slice's arguments say.
#[derive(Clone, Debug, Default, PartialEq, Eq, Hash)]
pub struct Details {
    pub config: LaunchConfig,
    pub correlation: Option<i64>,
    pub bytes: Option<u64>,
    pub device: Option<u32>,
    pub stream: Option<u32>,
    /// The arrow that begins or ends there.
    pub flow: Option<u64>,
}

/// Distinct texts by number.
#[derive(Default)]
struct Texts {
    ids: FxHashMap<Arc<str>, u32>,
    list: Vec<Arc<str>>,
}

impl Texts {
    fn id(&mut self, text: &str) -> u32 {
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

    /// As much of it as tells what a slice is: a text may be a megabyte long, and that of a million slices.
    fn start(&self, id: u32) -> &str {
        short(self.get(id))
    }
}

/// Bytes of what tracks and processes are called, and of a name in which it is looked for what the slice is.
const LONGEST: usize = 256;

/// The beginning of a text, where it is longer than a name is.
fn short(text: &str) -> &str {
    &text[..text.floor_char_boundary(LONGEST)]
}

/// A slice that is open on a track: name, category, start, details.
type Open = (u32, u32, i64, u32);

/// All slices of a trace.
#[derive(Default)]
pub struct Slices {
    texts: Texts,
    list: Vec<Slice>,
    details: Vec<Details>,
    open: FxHashMap<u32, Vec<Open>>,
    pub counters: Counters,
    /// Ends of arrows, where they are not in the slices.
    pub flows: Vec<End>,
    /// Events that could not be understood.
    pub broken: u64,
    /// Bytes of memory that were taken since somebody asked.
    taken: usize,
}

impl Slices {
    fn details(&mut self, details: Details) -> u32 {
        if details == Details::default() {
            return u32::MAX;
        }
        self.taken += size_of::<Details>();
        self.details.push(details);
        u32::try_from(self.details.len() - 1).unwrap_or(u32::MAX)
    }

    /// Bytes of memory that were taken since this was asked last.
    pub fn taken(&mut self) -> u64 {
        std::mem::take(&mut self.taken) as u64
    }

    /// The number of a text, which names and categories are given by.
    pub fn text(&mut self, text: &str) -> u32 {
        let known = self.texts.list.len();
        let id = self.texts.id(text);
        if self.texts.list.len() > known {
            self.taken += text.len() + TEXT;
        }
        id
    }

    /// A whole slice, with its name and category; tracks are numbered by the reader.
    pub fn whole(&mut self, track: u32, (name, category): (u32, u32), start: i64, duration: i64, details: Details) {
        let details = self.details(details);
        self.push(Slice { name, category, track, start, duration, details });
    }

    /// Keeps a slice whose times are such: sums of thousands of these still fit.
    fn push(&mut self, slice: Slice) {
        self.taken += size_of::<Slice>();
        if (0..LONGEST_NS).contains(&slice.duration) && slice.start.unsigned_abs() < MOST_NS.unsigned_abs() {
            self.list.push(slice);
        } else {
            self.broken += 1;
        }
    }

    /// The beginning of a slice, which the next end on its track closes.
    pub fn begin(&mut self, track: u32, (name, category): (u32, u32), start: i64, details: Details) {
        let open = (name, category, start, self.details(details));
        self.taken += size_of::<Open>();
        self.open.entry(track).or_default().push(open);
    }

    pub fn end(&mut self, track: u32, time: i64) {
        // An end without a beginning is of a slice that began before the trace.
        if let Some((name, category, start, details)) = self.open.get_mut(&track).and_then(Vec::pop) {
            self.push(Slice { name, category, track, start, duration: time.saturating_sub(start), details });
        }
    }

    /// Gives slices the arrows whose ends they are.
    fn bind(&mut self) {
        for (at, id) in flows::bound(&std::mem::take(&mut self.flows), &self.list) {
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

    /// The profile; `None` where nothing ran on a GPU. `named` tells a track's process and its own name.
    fn profile(mut self, named: &dyn Fn(u32) -> Named, source: Source, job: &Job<'_>) -> Option<Profile> {
        self.bind();
        let mut part = Part::default();
        let mut tracks: FxHashMap<u32, (Named, Option<tracks::Stream>)> = FxHashMap::default();
        let mut processes: FxHashMap<u32, String> = FxHashMap::default();
        let none = Details::default();
        // Names by the numbers of their texts: to look one up takes as long as it is.
        let mut names = vec![u32::MAX; self.texts.list.len()];
        let pace = job.cancel.pace();
        for (at, slice) in self.list.iter().enumerate() {
            if !pace.step(1) {
                return None;
            }
            let (named, stream) = tracks.entry(slice.track).or_insert_with(|| {
                let named = named(slice.track);
                let stream = tracks::stream(&named);
                (named, stream)
            });
            let (name, category) = (self.texts.start(slice.name), self.texts.start(slice.category));
            let mut numbered = |part: &mut Part| {
                let Some(number) = names.get_mut(slice.name as usize) else { return u32::MAX };
                if *number == u32::MAX {
                    let text = &self.texts.list[slice.name as usize];
                    let _ = pace.step(text.len());
                    *number = part.names.id(text);
                }
                *number
            };
            let details = self.details.get(slice.details as usize).unwrap_or(&none);
            let at = (at as u64 >> 20, (at & 0xf_ffff) as u32);
            let on_host = || (named.pid, named.tid);
            // Numbers of calls, where there are none those of arrows: they are counted apart.
            let correlation = details.correlation.map(|c| (0, c)).or(details.flow.map(|f| (1, f.cast_signed())));
            match kind_of(name, category, named, *stream) {
                Some(kind @ (Kind::Kernel | Kind::Copy | Kind::Set)) => {
                    let device = details.device.or(stream.map(|s| s.device)).or_else(|| tracks::device(named)).unwrap_or(0);
                    let stream = details.stream.or(stream.and_then(|s| s.number)).unwrap_or(named.tid);
                    let name = numbered(&mut part);
                    part.on_gpu.push(OnGpu {
                        at,
                        kind,
                        name,
                        start: slice.start,
                        duration: slice.duration,
                        config: part.configs.id(&details.config),
                        device: Some(device),
                        context: None,
                        stream: Some(stream),
                        correlation,
                        bytes: details.bytes,
                        node: None,
                    });
                }
                Some(Kind::Call) => {
                    processes.entry(named.pid).or_insert_with(|| named.process.clone());
                    let name = numbered(&mut part);
                    part.calls.push(Call { at, name, start: slice.start, duration: slice.duration, thread: on_host(), correlation });
                }
                Some(_) => {
                    processes.entry(named.pid).or_insert_with(|| named.process.clone());
                    // JAX and TensorFlow write functions of Python so: `$module.py:12 function`.
                    let origin = if name.starts_with('$') { RangeOrigin::Python } else { RangeOrigin::Annotation };
                    let name = numbered(&mut part);
                    let (start, duration, thread) = (slice.start, slice.duration, on_host());
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
        facts.foreign = true;
        facts.other = tracks.values().any(|(named, _)| others(&named.process) || others(&named.track));
        let parts = vec![part];
        let begin = build::begin(&parts);
        let mut profile = build::build(parts, facts, event::with_calls(job.wants), Profile::new(source));
        if job.wants.has(Parts::COUNTERS) {
            profile.counters = self.counters.tracks(named, &profile.devices, begin);
        }
        if self.broken > 0 {
            let text = format!(
                "{} of this trace could not be understood; the rest is shown.",
                crate::model::units::count(usize::try_from(self.broken).unwrap_or(usize::MAX), "event")
            );
            profile.notes.push(crate::model::Note::new(crate::model::Severity::Warning, crate::model::NoteKind::Damaged, text));
        }
        Some(profile)
    }
}

/// Perfetto traces of any tool.
pub struct PerfettoTrace;

impl Importer for PerfettoTrace {
    fn name(&self) -> &'static str {
        "Perfetto trace"
    }

    fn files(&self) -> &'static [&'static str] {
        &[".pftrace"]
    }

    fn knows(&self, input: &Input) -> bool {
        perfetto::knows(&input.head)
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        perfetto::read(input, job)
    }
}
