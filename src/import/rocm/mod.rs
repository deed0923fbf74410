//! Importers for AMD's profilers: rocprofv3 (database, CSV, JSON, Perfetto, thread traces), rocprof, rocprof-compute and
//! rocmProfileData.

mod att_files;
mod build;
mod by_id;
mod columns;
mod compute;
pub mod counters;
mod csv_set;
mod dataframes;
mod json;
mod legacy;
mod many;
mod missing_dispatches;
mod passes;
mod pc_samples;
mod pftrace;
pub(super) mod protobuf;
mod rocpd;
mod rocpd_durations;
mod rows;
mod rpd;
mod sequential_runs;
mod stats;
mod tables;
mod thread_trace;
mod wave_timeline;
mod workload;

use super::importer::KernelData;
use super::input::Bytes;
use super::sqlite::db::Db;
use super::{Cancel, ImportError, Importer, Input, Job, Parts};
use crate::launch::open;
use crate::model::units::format_count;
use crate::model::{CallKind, Code, Details, Metrics, Note, NoteKind, Profile, Severity, Source};
use missing_dispatches::MissingDispatches;
use rows::Rows;
use rustc_hash::FxHashSet;
use std::path::PathBuf;
use std::sync::Arc;

const MAGIC: &[u8] = b"SQLite format 3\0";

/// Returns true if a file begins with the schema of a rocprofv3 database.
fn is_rocpd_database(head: &[u8]) -> bool {
    head.starts_with(MAGIC) && memchr::memmem::find(head, b"rocpd_info_").is_some()
}

/// Importer for rocprofv3's database.
pub struct Rocpd;

impl Importer for Rocpd {
    fn name(&self) -> &'static str {
        "rocprofv3 database (rocpd)"
    }

    fn files(&self) -> &'static [&'static str] {
        &["_results.db"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".db"]
    }

    fn knows(&self, input: &Input) -> bool {
        // Each process and each pass writes its own database. If the directory contains a decoded thread trace,
        // import the trace.
        let traced = input.members.iter().any(|m| m.path.file_name().is_some_and(|n| n == "code.json"));
        let part =
            |m: &super::input::Member| m.head.starts_with(MAGIC) && Input::open_part(&m.path).is_ok_and(|i| is_rocpd_database(&i.head));
        is_rocpd_database(&input.head) || (!traced && input.members.iter().any(part))
    }

    fn is_of_rank(&self) -> bool {
        true
    }

    fn has_counters(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let mut rows: Option<(Rows, Option<String>)> = None;
        for member in &input.members {
            let part = Input::open_part(&member.path)?;
            if !is_rocpd_database(&part.head) {
                continue;
            }
            let (mut more, schema) = Self::read_rows(&part, job, false)?;
            let pass = passes::pass_number(&member.path);
            more.processes.iter_mut().for_each(|p| p.pass = pass);
            match &mut rows {
                Some((rows, _)) => rows.append(more),
                None => rows = Some((more, schema)),
            }
        }
        let (rows, schema) = rows.map_or_else(|| Self::read_rows(input, job, true), Ok)?;
        Ok(build_profile(rows, input, job, schema))
    }
}

impl Rocpd {
    /// Reads the rows and the schema version of one database.
    fn read_rows(input: &Input, job: &Job<'_>, whole: bool) -> Result<(Rows, Option<String>), ImportError> {
        let db = Db::open(input, &job.cancel)?;
        if rocpd::table_suffixes(&db).is_empty() {
            return Err(ImportError::refused(
                &input.path,
                "a database with some tables of rocpd, but no metadata",
                "record it again with rocprofv3",
            ));
        }
        let schema = rocpd::read_metadata(&db, "schema_version")?;
        if let Some(packing) = rocpd::read_metadata(&db, "compression")? {
            let what = format!("a rocpd database whose tables are packed ({packing})");
            return Err(ImportError::refused(&input.path, what, "record it without compression"));
        }
        Ok((rocpd::read_database(&db, job, whole)?, schema))
    }
}

/// Importer for rocprof v1's database.
pub struct RocprofDb;

impl Importer for RocprofDb {
    fn name(&self) -> &'static str {
        "rocprof database"
    }

    fn files(&self) -> &'static [&'static str] {
        &["results.db"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".db"]
    }

    fn knows(&self, input: &Input) -> bool {
        input.head.starts_with(b"SQLite format 3\0") && memchr::memmem::find(&input.head, b"CREATE TABLE KERN ").is_some()
    }

    fn is_of_rank(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let db = Db::open(input, &job.cancel)?;
        let mut rows = legacy::read_db(&db, &input.path, job)?;
        rows.chosen = !rows.counters.is_empty();
        Ok(build_profile(rows, input, job, None))
    }
}

/// Importer for rocmProfileData's database.
pub struct Rpd;

impl Importer for Rpd {
    fn name(&self) -> &'static str {
        "rocmProfileData (.rpd)"
    }

    fn files(&self) -> &'static [&'static str] {
        &[".rpd"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".rpd"]
    }

    fn knows(&self, input: &Input) -> bool {
        rpd::is_rpd_database(&input.head)
    }

    fn is_of_rank(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let rows = rpd::read_database(&Db::open(input, &job.cancel)?, job)?;
        let mut profile = build_profile(rows, input, job, None);
        "rpd".clone_into(&mut profile.source.tool);
        Ok(profile)
    }
}

/// Importer for rocprof-compute's analysis database.
pub struct RocprofCompute;

impl Importer for RocprofCompute {
    fn name(&self) -> &'static str {
        "rocprof-compute analysis database"
    }

    fn files(&self) -> &'static [&'static str] {
        &["`rocprof-compute` .db"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".db"]
    }

    fn knows(&self, input: &Input) -> bool {
        input.head.starts_with(b"SQLite format 3\0") && memchr::memmem::find(&input.head, compute::VALUES.as_bytes()).is_some()
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let db = Db::open(input, &job.cancel)?;
        let source = Source { tool: "rocprof-compute".to_owned(), version: None, schema: None, file: input.path.clone() };
        compute::read_database(&db, job, Profile::new(source))
    }
}

/// Importer for the counters of a rocprof-compute workload.
pub struct RocprofWorkload;

impl Importer for RocprofWorkload {
    fn name(&self) -> &'static str {
        "rocprof-compute workload"
    }

    fn files(&self) -> &'static [&'static str] {
        &["pmc_perf.csv"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".csv"]
    }

    fn knows(&self, input: &Input) -> bool {
        workload::is_counter_table(&input.head) || Self::counter_table(input).is_some()
    }

    fn has_counters(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let rows = match &input.bytes {
            _ if let Some(path) = Self::counter_table(input) => {
                let others = input
                    .members
                    .iter()
                    .filter(|m| m.path != *path && m.path.parent() == path.parent() && workload::is_counter_table(&m.head));
                let open = |path: &std::path::Path| open::open_regular(path).map_err(|e| ImportError::io(path, e));
                let mut rows = workload::read_table(open(path)?, path, job)?;
                for other in others {
                    workload::merge_counters(&mut rows, &workload::read_table(open(&other.path)?, &other.path, job)?);
                }
                Ok(rows)
            }
            Bytes::File(path) => workload::read_table(open::open_regular(path).map_err(|e| ImportError::io(path, e))?, &input.path, job),
            Bytes::BuiltIn(bytes) => workload::read_table(&bytes[..], &input.path, job),
        }?;
        let mut profile = build_profile(rows, input, job, None);
        "rocprof-compute".clone_into(&mut profile.source.tool);
        Ok(profile)
    }
}

impl RocprofWorkload {
    /// Returns the path of the counter table in a workload's directory, which also contains files for accumulator
    /// counters; `None` for a folder of several workloads.
    fn counter_table(input: &Input) -> Option<&std::path::Path> {
        let tables = || input.members.iter().filter(|m| workload::is_counter_table(&m.head)).map(|m| m.path.as_path());
        let merged: Vec<_> = tables().filter(|path| path.file_name().is_some_and(|n| n == "pmc_perf.csv")).collect();
        if merged.len() > 1 { None } else { merged.first().copied().or_else(|| tables().next()) }
    }
}

/// Importer for the tables of rocprof-compute's analysis.
pub struct RocprofTables;

impl Importer for RocprofTables {
    fn name(&self) -> &'static str {
        "rocprof-compute tables"
    }

    fn files(&self) -> &'static [&'static str] {
        &["`--save-dfs` folder"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".csv"]
    }

    fn knows(&self, input: &Input) -> bool {
        dataframes::is_analysis(input)
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let source = Source { tool: "rocprof-compute".to_owned(), version: None, schema: None, file: input.path.clone() };
        dataframes::read_folder(input, job, Profile::new(source))
    }
}

/// Importer for rocprofv3's decoded thread traces.
pub struct RocmThreadTrace;

impl Importer for RocmThreadTrace {
    fn name(&self) -> &'static str {
        "rocprofv3 thread trace"
    }

    fn files(&self) -> &'static [&'static str] {
        &["ui_output_…/code.json"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".json"]
    }

    fn knows(&self, input: &Input) -> bool {
        thread_trace::code_file(input).is_some()
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        match thread_trace::code_file(input) {
            Some(path) => thread_trace::read_trace(&path, input, job),
            None => Err(ImportError::refused(&input.path, "no thread trace", "name the folder ui_output_… of one dispatch")),
        }
    }

    fn kernel_data(&self, _input: &Input) -> KernelData {
        KernelData::Code
    }

    fn read_details(&self, input: &Input, metrics: &Metrics, _result: usize) -> Result<Details, ImportError> {
        thread_trace::code_file(input).map_or_else(|| Ok(Details::default()), |path| thread_trace::read_details(&path, metrics))
    }

    fn read_code(
        &self,
        input: &Input,
        _: &Metrics,
        _: usize,
        _: Option<&Details>,
        _: &[PathBuf],
        cancel: &Cancel,
    ) -> Result<Code, ImportError> {
        thread_trace::code_file(input).map_or_else(|| Ok(Code::default()), |path| thread_trace::read_code(&path, cancel))
    }
}

/// Importer for rocprofv3's PC samples.
pub struct RocmPcSamples;

impl Importer for RocmPcSamples {
    fn name(&self) -> &'static str {
        "rocprofv3 PC samples"
    }

    fn files(&self) -> &'static [&'static str] {
        &["_pc_sampling_….csv"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &pc_samples::SUFFIXES
    }

    fn knows(&self, input: &Input) -> bool {
        pc_samples::is_samples(&input.head)
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        pc_samples::read_profile(input, job)
    }

    fn kernel_data(&self, _input: &Input) -> KernelData {
        KernelData::Code
    }

    fn read_details(&self, input: &Input, metrics: &Metrics, result: usize) -> Result<Details, ImportError> {
        pc_samples::read_details(input, metrics, result)
    }

    fn read_code(
        &self,
        input: &Input,
        _: &Metrics,
        result: usize,
        _: Option<&Details>,
        _: &[PathBuf],
        cancel: &Cancel,
    ) -> Result<Code, ImportError> {
        pc_samples::read_code(input, result, cancel)
    }
}

/// Importer for CSV files of rocprofv3 and rocprof.
pub struct RocmCsv;

impl Importer for RocmCsv {
    fn name(&self) -> &'static str {
        "rocprofv3 or rocprof CSV files"
    }

    fn files(&self) -> &'static [&'static str] {
        &["_kernel_trace.csv", "results.csv"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".csv"]
    }

    fn knows(&self, input: &Input) -> bool {
        csv_set::detect_table(&input.head).is_some()
            || input
                .members
                .iter()
                .any(|m| matches!(csv_set::detect_table(&m.head), Some(csv_set::CsvTable::Kernels | csv_set::CsvTable::Counters)))
    }

    fn has_counters(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let rows = match &input.bytes {
            _ if !input.members.is_empty() => {
                let files: Vec<_> = input.members.iter().map(|m| m.path.clone()).collect();
                csv_set::read_files(&files, job)
            }
            Bytes::File(path) if *path == input.path => csv_set::read_files(&csv_set::find_siblings(path), job),
            // A decompressed file is temporary and has no siblings.
            Bytes::File(path) => csv_set::read_files(std::slice::from_ref(path), job),
            Bytes::BuiltIn(bytes) => csv_set::read_one(bytes, &input.path, job),
        }?;
        Ok(build_profile(rows, input, job, None))
    }
}

/// Importer for kernel totals from rocprofv3 or rocprof.
pub struct RocmStats;

impl Importer for RocmStats {
    fn name(&self) -> &'static str {
        "rocprofv3 or rocprof totals"
    }

    fn files(&self) -> &'static [&'static str] {
        &["_kernel_stats.csv", "results.stats.csv"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".csv"]
    }

    fn knows(&self, input: &Input) -> bool {
        stats::is_stats_table(&input.head)
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let profile = Profile::new(Source { tool: "rocprof".to_owned(), version: None, schema: None, file: input.path.clone() });
        match &input.bytes {
            Bytes::File(path) => {
                stats::read_table(open::open_regular(path).map_err(|e| ImportError::io(path, e))?, &input.path, job, profile)
            }
            Bytes::BuiltIn(bytes) => stats::read_table(&bytes[..], &input.path, job, profile),
        }
    }
}

/// Importer for rocprofv3's JSON.
pub struct RocmJson;

impl Importer for RocmJson {
    fn name(&self) -> &'static str {
        "rocprofv3 JSON"
    }

    fn files(&self) -> &'static [&'static str] {
        &["_results.json"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".json"]
    }

    fn knows(&self, input: &Input) -> bool {
        input.head.trim_ascii_start().starts_with(b"{") && memchr::memmem::find(&input.head, json::KEY.as_bytes()).is_some()
    }

    fn is_of_rank(&self) -> bool {
        true
    }

    fn has_counters(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let rows = match &input.bytes {
            Bytes::File(path) => json::read_file(&open::read_regular(path).map_err(|e| ImportError::io(path, e))?, job, input),
            Bytes::BuiltIn(bytes) => json::read_file(bytes, job, input),
        }?;
        Ok(build_profile(rows, input, job, None))
    }
}

/// Importer for rocprofv3's Perfetto traces.
pub struct RocmPerfetto;

impl Importer for RocmPerfetto {
    fn name(&self) -> &'static str {
        "rocprofv3 Perfetto trace"
    }

    fn files(&self) -> &'static [&'static str] {
        &["_results.pftrace"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".pftrace"]
    }

    fn knows(&self, input: &Input) -> bool {
        pftrace::is_rocm_trace(&input.head)
    }

    fn is_of_rank(&self) -> bool {
        true
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let (rows, lost) = match &input.bytes {
            Bytes::File(path) => pftrace::read_trace(&open::read_regular(path).map_err(|e| ImportError::io(path, e))?, job, input),
            Bytes::BuiltIn(bytes) => pftrace::read_trace(bytes, job, input),
        }?;
        let mut profile = build_profile(rows, input, job, None);
        if lost.chunks > 0 {
            let text = format!(
                "The trace lost {} of records for want of room: what ran after its buffer was full is not in it.",
                format_count(usize::try_from(lost.chunks).unwrap_or(usize::MAX), "chunk")
            );
            profile.notes.push(
                Note::new(Severity::Error, NoteKind::Lost, text).with_fix("record with a larger `--perfetto-buffer-size`, or to rocpd"),
            );
        }
        if lost.torn {
            let text = "The file ends in the middle of a record: what came later is missing.";
            profile.notes.push(Note::new(Severity::Error, NoteKind::Lost, text));
        }
        Ok(profile)
    }
}

/// Returns those dispatches of a trace that have counters, together with the counters. `None` if no dispatch has any,
/// or if the report contains no other dispatches.
fn counted_dispatches(rows: &Rows) -> Option<Rows> {
    if rows.chosen || rows.counters.is_empty() {
        return None;
    }
    let of: FxHashSet<(u32, u64)> = rows.counters.iter().map(|c| (c.process, c.dispatch)).collect();
    let dispatches: Vec<_> = rows.dispatches.iter().filter(|d| of.contains(&(d.process, d.id))).copied().collect();
    (!dispatches.is_empty()).then(|| Rows {
        processes: rows.processes.clone(),
        agents: rows.agents.clone(),
        symbols: rows.symbols.clone(),
        dispatches,
        counters: rows.counters.clone(),
        texts: rows.texts.clone(),
        chosen: true,
        ..Rows::default()
    })
}

/// Returns why a report has no kernels, and the remedy.
fn reason_for_no_kernels(profile: &Profile) -> (String, &'static str) {
    let names = || profile.calls.names.iter();
    let launches: u64 = names().filter(|n| matches!(n.kind, CallKind::Launch | CallKind::GraphLaunch)).map(|n| n.count).sum();
    if launches > 0 {
        (
            format!(
                "There are no kernels in this report, though {} launched some: kernels were not traced.",
                format_count(launches, "call")
            ),
            "record with `rocprofv3 --kernel-trace`",
        )
    } else if names().any(|n| n.name.starts_with("hip")) {
        ("The program made HIP calls while it was recorded and launched no kernel.".to_owned(), "record the part that computes")
    } else if names().any(|n| n.name.starts_with("hsa_")) {
        (
            "The program made no HIP call while it was recorded, only calls of the HSA runtime, and no kernel was traced.".to_owned(),
            "record with `rocprofv3 --kernel-trace`, which also has the kernels of OpenCL, OpenMP and HSA programs",
        )
    } else {
        (
            "There are no kernels in this report: they were not traced, or the program launched none.".to_owned(),
            "record the part that launches some, with `rocprofv3 --kernel-trace`",
        )
    }
}

/// Builds the profile and adds its notes.
fn build_profile(mut rows: Rows, input: &Input, job: &Job<'_>, schema: Option<String>) -> Profile {
    let source =
        Source { tool: if rows.legacy { "rocprof" } else { "rocprofv3" }.to_owned(), version: None, schema, file: input.path.clone() };
    rows.drop_replays();
    let (broken, driver_records, replays) = (rows.broken, rows.driver_records, rows.replays);
    let passes = passes::merge_passes(&mut rows);
    let missing = MissingDispatches::from_rows(&rows);
    let sequential = passes.is_none().then(|| sequential_runs::note_on_sequential_runs(&rows)).flatten();
    let by_guid = rows.by_guid;
    let counted = job.wants.has_parts(Parts::DETAILS).then(|| counted_dispatches(&rows)).flatten();
    let rows_without_times = rows.durations.is_none() && rows.dispatches.iter().all(|d| d.start == 0);
    let memcpys =
        rows.copies.is_empty() && rows.calls.iter().any(|c| rows.texts.get(c.name as usize).is_some_and(|t| t.starts_with("hipMemcpy")));
    let all = rows.dispatches.len();
    let mut profile = build::build_profile(rows, job, Profile::new(source.clone()));
    if let Some(counted) = counted {
        let found = counted.dispatches.len();
        let of = if found == all { "all launches".to_owned() } else { format!("{found} of {}", format_count(all, "launch")) };
        let there: FxHashSet<(u32, u64)> = counted.dispatches.iter().map(|d| (d.process, d.id)).collect();
        let lost: FxHashSet<(u32, u64)> = counted.counters.iter().map(|c| (c.process, c.dispatch)).filter(|c| !there.contains(c)).collect();
        let rest = if lost.is_empty() {
            String::new()
        } else {
            format!(" Counters of {} that this trace does not have are left out.", format_count(lost.len(), "dispatch"))
        };
        let text = format!("Counters were collected for {of}; they are results of these. Kernels run one at a time meanwhile.{rest}");
        profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
        profile.measured = Some(Arc::new(build::build_profile(counted, job, Profile::new(source))));
    }
    if by_guid {
        let text =
            "The ids of processes are not in this table: processes are told apart by their Guid and go by their first launching thread.";
        profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
    }
    if broken > 0 {
        let text = format!(
            "{} of this report could not be understood; the rest is shown.",
            format_count(usize::try_from(broken).unwrap_or(usize::MAX), "row")
        );
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Damaged, text));
    }
    missing.add_to(&mut profile);
    profile.notes.extend(sequential);
    let count = |n: u64, noun: &str| format_count(usize::try_from(n).unwrap_or(usize::MAX), noun);
    if replays > 0 {
        let text = format!(
            "Kernels were replayed to collect more counters: the first run of each launch stands for it, without {} of them.",
            count(replays, "further run")
        );
        profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
    }
    if driver_records > 0 {
        let verb = if driver_records == 1 { "is" } else { "are" };
        let text = format!("{} of the kernel driver (KFD) {verb} not shown.", count(driver_records, "record"));
        profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
    }
    if profile.source.schema.as_deref().is_some_and(|s| s.starts_with('4')) {
        let text = "This database has a draft of rocpd's schema 4: threads, GPUs and ranges of its records are not read.";
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Guess, text).with_fix("record with a released rocprofv3"));
    }
    if let Some((passes, others)) = passes {
        let text = match others {
            0 => format!("The counters are of {passes} passes over the program, joined by the number, kernel and size of each dispatch."),
            _ => format!(
                "The counters are of {passes} passes over the program; {others} of them had other dispatches and stand for themselves."
            ),
        };
        profile.notes.push(Note::new(if others == 0 { Severity::Info } else { Severity::Warning }, NoteKind::Guess, text));
    }
    if !profile.launches.is_empty() && rows_without_times {
        let text = "This table has counters and no times: durations are not known.";
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Empty, text).with_fix("record with `--timestamp on`, or with rocprofv3"));
    }
    // The runtime's copy kernels are recorded as kernels.
    let blits = profile.kernels.iter().any(|k| k.function().starts_with("__amd_rocclr_"));
    if memcpys && !blits && job.wants.has_parts(Parts::MEMOPS) && job.wants.has_parts(Parts::CALLS) {
        let text = "Memory copies were not recorded: while they run the GPU counts as idle, in the calls that start them.";
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Empty, text).with_fix("record with `--memory-copy-trace`"));
    }
    if profile.launches.is_empty() {
        let (text, fix) = reason_for_no_kernels(&profile);
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Empty, text).with_fix(fix));
    }
    profile
}
