//! Timeline of the waves in a thread trace: states, instructions, and the number of resident waves.

use super::att_files::{CodeRow, WaveFile, read_json};
use crate::import::{Job, Parts};
use crate::model::units::format_count;
use crate::model::{CounterTrack, Note, NoteKind, Profile, Range, RangeKind, RangeOrigin, Severity, Thread};
use rustc_hash::FxHashMap;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of instructions to add as ranges.
const MOST: usize = 4_000_000;
/// AMD's names for wave states 1 and up; state 0 is an empty slot.
const STATES: [&str; 4] = ["idle", "executing", "waiting", "stalled"];

/// Converts GPU clock cycles to profile times.
#[derive(Clone, Copy)]
pub struct Cycles {
    zero: i64,
    /// Duration of a cycle, ns; 1 if the clock is unknown.
    each: f64,
}

impl Cycles {
    /// Creates a converter in which the start of the first wave is time 0; `hz` is the clock frequency.
    pub fn from(waves: &[WaveFile], hz: Option<f64>) -> Self {
        let zero = waves.iter().map(|w| w.wave.begin).min().unwrap_or(0);
        Self { zero: i64::try_from(zero).unwrap_or(0), each: hz.map_or(1.0, |hz| 1e9 / hz) }
    }

    fn to_time(self, cycle: i64) -> i64 {
        (cycle.saturating_sub(self.zero) as f64 * self.each).round() as i64
    }

    pub fn to_duration(self, cycles: u64) -> i64 {
        (cycles as f64 * self.each).round() as i64
    }
}

/// Range names, numbered in order of first appearance.
#[derive(Default)]
struct Names(FxHashMap<Arc<str>, u32>);

impl Names {
    fn range_id(&mut self, name: &Arc<str>, list: &mut Vec<(Option<Arc<str>>, Arc<str>)>) -> u32 {
        *self.0.entry(name.clone()).or_insert_with(|| {
            list.push((None, name.clone()));
            u32::try_from(list.len() - 1).unwrap_or(u32::MAX)
        })
    }
}

/// Adds waves, their states and instructions, and the trace's counters to the profile. Each slot of a SIMD holds one
/// wave at a time, and becomes a thread.
pub fn add_waves(folder: &Path, waves: &[WaveFile], rows: &[CodeRow], clock: Cycles, job: &Job<'_>, profile: &mut Profile) {
    if job.wants.has_parts(Parts::COUNTERS) {
        profile.counters = occupancy_tracks(folder, clock);
        profile.counters.extend(state_tracks(folder, clock));
    }
    if !job.wants.has_parts(Parts::RANGES) {
        return;
    }
    let mut slots: BTreeMap<(&str, u32, u32, u32), Vec<&WaveFile>> = BTreeMap::new();
    for wave in waves {
        let w = &wave.wave;
        slots.entry((&wave.name, w.cu, w.simd, w.slot)).or_default().push(wave);
    }
    let mut names = Names::default();
    let mut left: usize = 0;
    let mut room = MOST;
    for (number, ((engine, cu, simd, slot), mut waves)) in (1..).zip(slots) {
        waves.sort_by_key(|w| w.wave.begin);
        let name = format!("{engine} CU{cu} SIMD{simd} slot {slot}");
        profile.threads.push(Thread { pid: 0, tid: number, name: Some(name.into()) });
        profile.ranges.threads.push((0, number));
        let mut put = |from: i64, to: i64, name: &Arc<str>, origin: RangeOrigin| {
            let name = names.range_id(name, &mut profile.ranges.names);
            let (start, end) = (clock.to_time(from), clock.to_time(to));
            if end >= start {
                profile.ranges.push(Range { start, end, name, thread: number - 1, kind: RangeKind::Annotation, origin });
            }
        };
        for wave in waves {
            let w = &wave.wave;
            let whole = |n: u64| i64::try_from(n).unwrap_or(i64::MAX);
            put(whole(w.begin), whole(w.end), &Arc::from(format!("wave {}", w.id)), RangeOrigin::Wave);
            let mut at = whole(w.begin);
            for &(state, cycles) in &w.timeline.0 {
                let end = at.saturating_add(whole(cycles)).min(whole(w.end));
                let name = usize::try_from(state).ok().and_then(|s| STATES.get(s.checked_sub(1)?));
                if let Some(name) = name {
                    put(at, end, &Arc::from(*name), RangeOrigin::Wave);
                }
                at = end;
            }
            let shown = w.instructions.0.len().min(room);
            room -= shown;
            left += w.instructions.0.len() - shown;
            for step in w.instructions.0.iter().take(shown) {
                let text =
                    usize::try_from(step.row).ok().and_then(|r| rows.get(r)).map_or_else(|| Arc::from("(unknown)"), |r| r.text.clone());
                put(step.time, step.time.saturating_add(step.duration.max(0)), &text, RangeOrigin::Instruction);
            }
        }
    }
    if left > 0 {
        let text = format!("{} of the traced waves are not shown one by one: there are too many.", format_count(left, "instruction"));
        profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
    }
}

fn counter_track(name: String, mut points: Vec<(i64, f64)>) -> Option<CounterTrack> {
    points.sort_by_key(|p| p.0);
    let mut out = CounterTrack { device: Some(0), name: name.into(), ..CounterTrack::default() };
    for (time, value) in points {
        if out.times.last() == Some(&time) {
            out.values.pop();
        } else {
            out.times.push(time);
        }
        out.values.push(value);
    }
    (!out.times.is_empty()).then_some(out)
}

/// Builds tracks with the number of waves on each shader engine, from the starts and ends of waves.
fn occupancy_tracks(folder: &Path, clock: Cycles) -> Vec<CounterTrack> {
    let all: Json = read_json(&folder.join("occupancy.json")).unwrap_or_default();
    let engines = all.as_object().into_iter().flatten().filter(|(name, _)| name.parse::<u32>().is_ok());
    let of = |(engine, events): (&String, &Json)| {
        let mut edges: Vec<(i64, i32)> =
            events.as_array()?.iter().filter_map(|e| Some((e.get(0)?.as_i64()?, if e.get(4)?.as_i64()? == 0 { -1 } else { 1 }))).collect();
        // At equal times, ends come before starts, since a new wave may reuse the slot.
        edges.sort_unstable();
        // A wave that started before the trace has only an end.
        let changes = edges.iter().scan(0, |sum, (_, change)| {
            *sum += change;
            Some(*sum)
        });
        let before = changes.clone().min().unwrap_or(0).min(0);
        let points = edges.iter().zip(changes).map(|((time, _), sum)| (clock.to_time(*time), f64::from(sum - before)));
        counter_track(format!("SE{engine} waves"), points.collect())
    };
    engines.filter_map(of).collect()
}

/// Builds tracks with the number of traced waves in each state.
fn state_tracks(folder: &Path, clock: Cycles) -> Vec<CounterTrack> {
    let of = |(number, state): (usize, &&str)| {
        let curve: Json = read_json(&folder.join(format!("wstates{number}.json")))?;
        let (times, values) = (curve["time"].as_array()?, curve["state"].as_array()?);
        let points = times.iter().zip(values).filter_map(|(t, v)| Some((clock.to_time(t.as_i64()?), v.as_f64()?)));
        counter_track(format!("{state} waves"), points.collect())
    };
    (1..).zip(&STATES).filter_map(of).collect()
}
