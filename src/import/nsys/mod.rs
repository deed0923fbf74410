//! Importer for Nsight Systems' SQLite export, for all schemas since 2.9 (2022). It reads names and times first,
//! followed by launch details, host calls and launch order, copies, and ranges.

mod calls;
mod device_activity;
mod graph_nodes;
mod intern;
mod kernels;
mod memops;
mod names;
mod notes;
mod places;
mod python_samples;
mod ranges;
mod strings;
mod target;
mod threads;

pub use memops::copy_kind;

use super::{ImportError, Importer, Input, Job, Parts, Progress, launch_order};
use crate::import::sqlite::db::Db;
use crate::import::sqlite::scan;
use crate::model::{CaptureRange, Launches, Note, NoteKind, Profile, Severity, Source, Threads};
use std::collections::BTreeSet;
use std::sync::Arc;

pub struct NsysSqlite;

impl Importer for NsysSqlite {
    fn name(&self) -> &'static str {
        "Nsight Systems SQLite export"
    }

    fn files(&self) -> &'static [&'static str] {
        &[".sqlite"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".sqlite"]
    }

    fn knows(&self, input: &Input) -> bool {
        // Accept any database without tables from other tools, so that this importer can explain damaged and empty
        // ones.
        let others: [&[u8]; 3] = [b"rocpd_", b"compute_kernel_metric", b"CREATE TABLE KERN "];
        input.head.starts_with(b"SQLite format 3\0") && others.iter().all(|t| memchr::memmem::find(&input.head, t).is_none())
    }

    fn is_of_rank(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let db = Db::open(input, &job.cancel)?;
        if !MARKS.iter().any(|t| db.has_table(t)) {
            let what = if db.table_count() == 0 {
                "an SQLite database without tables"
            } else {
                "an SQLite database, but not an Nsight Systems export"
            };
            return Err(ImportError::refused(&input.path, what, "export a report with `nsys export --type sqlite REPORT.nsys-rep`"));
        }
        read_export(&db, job)
    }
}

/// Tables that are found only in Nsight Systems exports; every real export has at least one of them.
const MARKS: [&str; 6] = ["META_DATA_EXPORT", "EXPORT_META_DATA", "StringIds", "TARGET_INFO_GPU", kernels::KERNEL, calls::RUNTIME];

fn read_export(db: &Db, job: &Job<'_>) -> Result<Profile, ImportError> {
    let mut early_notes = Vec::new();
    let target = target::Target::read(db, &mut early_notes)?;
    let diagnostics = note_damage(&mut early_notes, notes::Diagnostics::read(db, target.clock.epoch_ns))?;
    let mut strings = strings::Strings::open(db)?;
    let mut profile = Profile::new(Source {
        tool: "nsys".to_owned(),
        version: target.exporter.clone(),
        schema: target.schema.clone(),
        file: db.path().to_owned(),
    });
    profile.notes = early_notes;
    profile.devices.clone_from(&target.devices);
    profile.capture = target.capture.clone();
    // A delay is among the options; for other triggers, see if nsys's diagnostics mention one.
    profile.capture.gate = match (profile.capture.gate.take(), diagnostics.capture_gate()) {
        (Some(CaptureRange::Delay(delay)), _) => Some(CaptureRange::Delay(delay)),
        (option, written) => written.or(option),
    };

    let mut layout = None;
    if db.has_table(kernels::KERNEL) {
        let pass = kernels::first_pass(db, job, &mut strings)?;
        profile.launches = pass.launches;
        profile.kernels = pass.kernels;
        strings.check_damage()?;
        let nameless = profile.kernels.iter().filter(|k| **k == crate::model::Kernel::default()).count();
        if nameless > 0 {
            let text = "Some kernels have no name in the report; they are listed together as (unnamed kernel).";
            profile.notes.push(Note::new(Severity::Warning, NoteKind::Damaged, text));
        }
        layout = Some(pass.layout);
    }
    if job.staged && job.wants.has_parts(Parts::DETAILS) {
        let mut early = profile.clone();
        early.complete = false;
        early.count_from_session();
        (job.hear)(Progress::Snapshot(Arc::new(early)));
    }
    let mut places = places::Places::new(&target);
    let mut joined = Joined::NotRead;
    let mut graphs = memops::GraphCalls::default();
    if let Some(layout) = layout.filter(|_| job.wants.has_parts(Parts::DETAILS)) {
        joined = read_details(db, job, &mut strings, &mut profile, (&mut places, &mut graphs), layout)?;
    } else if job.wants.has_parts(Parts::CALLS) || profile.launches.is_empty() {
        // If there are no launches, read the calls, which may explain why.
        let none = calls::Unjoined {
            launches: &Launches::default(),
            correlation: &[],
            place: &mut [],
            place_pid: Vec::new(),
            with_thread: &mut |p, _| p,
        };
        let read = calls::read_calls(db, job, &mut strings, none).map(|(_, calls)| calls);
        profile.calls = note_damage(&mut profile.notes, read)?;
    }
    let missing = match joined {
        Joined::NotRead => None,
        Joined::None => Some(None),
        Joined::Missing(n) => Some(Some(n)),
    };
    if let Some(missing) = missing {
        let (launches, order) = launch_order::sort_launches(std::mem::take(&mut profile.launches), missing);
        profile.launches = launches;
        profile.order = order;
    }
    if job.wants.has_parts(Parts::MEMOPS) {
        let graphs = graphs.first_launches(&profile.launches, &places.list);
        let read = memops::read_memops(db, job, &mut places, &profile.calls, &graphs);
        profile.memops = note_damage(&mut profile.notes, read)?;
    }
    let graphs = memops::read_graphs(db, job, &mut strings, &mut places);
    profile.graphs = note_damage(&mut profile.notes, graphs)?;
    let mut marks = python_samples::Marks::default();
    if job.wants.has_parts(Parts::RANGES) {
        let read = ranges::read_ranges(db, job, &mut strings);
        (profile.ranges, marks) = note_damage(&mut profile.notes, read)?;
        // Nodes are looked up in ranges only.
        if profile.launches.has_graph_nodes() {
            profile.graph_nodes = note_damage(&mut profile.notes, graph_nodes::read_origins(db, job))?;
        }
    }
    read_other_parts(db, job, &mut strings, &mut places, (&target, marks), &mut profile)?;
    profile.places = places.list;
    let pids: BTreeSet<u32> = profile.places.iter().filter_map(|p| p.pid).collect();
    profile.processes = pids.into_iter().map(|pid| target.process_info(pid)).collect();
    let shortened = names::find_shortened(db, &profile.kernels);
    profile.shortened = note_damage(&mut profile.notes, shortened)?;
    notes::add_notes(&mut profile, db, &target, diagnostics);
    // Subtract the session start from times since 1970, as written by `nsys export --ts-normalize=true`.
    profile.count_from_session();
    Ok(profile)
}

/// Reads the requested parts, except for launches and calls.
fn read_other_parts(
    db: &Db,
    job: &Job<'_>,
    strings: &mut strings::Strings<'_>,
    places: &mut places::Places<'_>,
    (target, marks): (&target::Target, python_samples::Marks),
    profile: &mut Profile,
) -> Result<(), ImportError> {
    let wants = |part| job.wants.has_parts(part);
    profile.clock = target.clock;
    profile.rank.host.clone_from(&target.host);
    if wants(Parts::WAITS) {
        profile.waits = note_damage(&mut profile.notes, device_activity::read_waits(db, job, places))?;
    }
    if wants(Parts::COUNTERS) {
        profile.counters = note_damage(&mut profile.notes, device_activity::read_counters(db, job, target))?;
    }
    if wants(Parts::MEMORY) {
        profile.memory = note_damage(&mut profile.notes, device_activity::read_memory(db, job, target))?;
    }
    let mut known = Threads::default();
    if wants(Parts::OVERHEAD) {
        profile.overhead = note_damage(&mut profile.notes, threads::read_overhead(db, job, strings, &mut known))?;
    }
    if wants(Parts::SAMPLES) {
        if marks.without_payload > 0 && marks.list.is_empty() {
            let text = "nsys sampled Python stacks, but this export leaves them out.";
            let note = Note::new(Severity::Warning, NoteKind::Lost, text);
            profile.notes.push(note.with_fix("export with `nsys export --type sqlite --include-blobs true` of a newer nsys"));
        }
        profile.samples = python_samples::build_samples(marks.list, strings, &mut known);
        // Python stacks have line numbers, so they are more informative than the interpreter's symbols.
        if profile.samples.samples.is_empty() {
            profile.samples = note_damage(&mut profile.notes, threads::read_samples(db, job, strings, &mut known))?;
        }
    }
    if wants(Parts::THREADS) {
        profile.os_calls = note_damage(&mut profile.notes, threads::os_calls(db, job, strings, &mut known))?;
        profile.states = note_damage(&mut profile.notes, threads::read_states(db, job, &mut known))?;
        let used: BTreeSet<(u32, u32)> = profile.calls.threads.iter().chain(&profile.ranges.threads).copied().collect();
        let launching = places.list.iter().filter_map(|p| p.pid.zip(p.thread));
        let used: Vec<(u32, u32)> = used.into_iter().chain(launching).collect();
        note_damage(&mut profile.notes, threads::read_names(db, job, strings, &mut known, &used))?;
    }
    profile.threads = known.into_threads();
    Ok(())
}

/// Result of joining launches to their calls.
enum Joined {
    /// Calls were not requested.
    NotRead,
    /// The report has no calls.
    None,
    /// Number of launches without a call.
    Missing(u64),
}

/// Reads configurations, places and, if requested, launching calls.
fn read_details(
    db: &Db,
    job: &Job<'_>,
    strings: &mut strings::Strings<'_>,
    profile: &mut Profile,
    (places, graphs): (&mut places::Places<'_>, &mut memops::GraphCalls),
    layout: scan::Layout,
) -> Result<Joined, ImportError> {
    let pass = kernels::second_pass(db, job, layout)?;
    profile.configs = pass.configs;
    let place_pid: Vec<i64> = pass.places.iter().map(|p| p[0]).collect();
    let mut column = pass.place;
    let mut last = None;
    let mut with_thread = |place: u32, thread: Option<u32>| {
        // Consecutive launches nearly always share a place.
        if let Some((key, id)) = last
            && key == (place, thread)
        {
            return id;
        }
        let id = pass.places.get(place as usize).map_or(0, |&key| places.place_id(key, thread).0);
        last = Some(((place, thread), id));
        id
    };
    if !job.wants.has_parts(Parts::CALLS) {
        for place in &mut column {
            *place = with_thread(*place, None);
        }
        profile.launches.set_details(pass.config, column, pass.node, pass.nodes);
        return Ok(Joined::NotRead);
    }
    profile.launches.set_details(pass.config, Vec::new(), pass.node, pass.nodes);
    let unjoined = calls::Unjoined {
        launches: &profile.launches,
        correlation: &pass.correlation,
        place: &mut column,
        place_pid,
        with_thread: &mut with_thread,
    };
    let read = calls::read_calls(db, job, strings, unjoined);
    let damaged = read.is_err();
    let (joined, calls) = note_damage(&mut profile.notes, read)?;
    if damaged {
        for place in &mut column {
            *place = with_thread(*place, None);
        }
    }
    profile.calls = calls;
    profile.launches.set_places(column);
    let Some(joined) = joined else {
        return Ok(Joined::None);
    };
    profile.launches.set_calls(joined.since_call, joined.cost);
    *graphs = memops::GraphCalls::from_launches(&profile.launches, &pass.correlation, &places.list);
    Ok(Joined::Missing(joined.missing))
}

/// Turns the error for a damaged table into a note, for tables that the ranking does not need: the rest of the report
/// is still useful.
fn note_damage<T: Default>(notes: &mut Vec<Note>, read: Result<T, ImportError>) -> Result<T, ImportError> {
    match read {
        Err(ImportError::Damaged { place, reason, .. }) => {
            notes.push(Note::new(
                Severity::Error,
                NoteKind::Damaged,
                format!("{place} could not be read ({reason}); its contents are missing here."),
            ));
            Ok(T::default())
        }
        other => other,
    }
}
