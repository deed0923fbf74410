//! Opens files of any known format. To add a format, write an [`Importer`] and add a row to [`IMPORTERS`].

use super::error::ImportError;
use super::importer::Importer;
use super::input::{Bytes, Input, Kinds};
use super::job::{Job, Parts, Wants};
use super::{
    chrome_perfetto, collectives, digest, ncu, nsys, nsys_report, proton, rocm, stats_csv, times, torch, torch_memory_snapshot, unrecorded,
    unsupported, wstrace,
};
use crate::launch::open::open_regular;
use crate::model::{Metrics, NoteKind, Profile};
use std::io::Read;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// All supported formats, in detection order.
pub static IMPORTERS: &[&dyn Importer] = &[
    &nsys::NsysSqlite,
    &nsys_report::NsysReport,
    &stats_csv::NsysStatsCsv,
    &ncu::Ncu,
    &proton::ProtonTree,
    &torch::TorchTrace,
    &torch_memory_snapshot::TorchSnapshot,
    &wstrace::WarpscopeTrace,
    &digest::WarpscopeDigest,
    &rocm::Rocpd,
    &rocm::RocprofDb,
    &rocm::Rpd,
    &rocm::RocprofCompute,
    &rocm::RocmThreadTrace,
    &rocm::RocmPcSamples,
    &rocm::RocprofWorkload,
    &rocm::RocprofTables,
    &rocm::RocmCsv,
    &rocm::RocmStats,
    &rocm::RocmJson,
    &rocm::RocmPerfetto,
    &chrome_perfetto::xspace::XlaProfile,
    &chrome_perfetto::PerfettoTrace,
];

/// Maximum number of GPUs in a report, limited because some analyses compare each GPU to all others.
const MOST_DEVICES: usize = 4_096;

fn refuse_input(input: &Input) -> ImportError {
    unsupported::unsupported_error(input, &supported_formats())
}

/// Lists the supported formats in one string: `Nsight Systems SQLite export (.sqlite), …`.
pub fn supported_formats() -> String {
    IMPORTERS.iter().map(|i| format!("{} ({})", i.name(), i.files().join(", "))).collect::<Vec<_>>().join(", ")
}

/// File name suffixes of the supported formats, or commands whose output can be read.
pub fn supported_files() -> Vec<&'static str> {
    IMPORTERS.iter().flat_map(|i| i.files()).copied().collect()
}

/// Inspects a file or directory, decompressing it if an importer supports it.
pub fn open_input(path: &Path, job: &Job<'_>) -> Result<Input, ImportError> {
    input_if(path, job, &|input| IMPORTERS.iter().any(|i| i.knows(input)))
}

/// Like [`open_input`], but only for formats accepted by `knows`.
pub fn input_if(path: &Path, job: &Job<'_>, knows: &dyn Fn(&Input) -> bool) -> Result<Input, ImportError> {
    let salvages = |input: &Input| IMPORTERS.iter().any(|i| i.salvages() && i.knows(input));
    Input::open(path, job, Kinds { knows, salvages: &salvages, refusal: &refuse_input, openable: &may_be_report })
}

/// Returns the importer for an input.
pub fn find_importer(input: &Input) -> Result<&'static dyn Importer, ImportError> {
    IMPORTERS.iter().copied().find(|i| i.knows(input)).ok_or_else(|| refuse_input(input))
}

/// Splits a file name into the name and its compression suffix.
fn split_compression(name: &str) -> (&str, &str) {
    let ending = [".zst", ".gz"].into_iter().find(|e| name.len() > e.len() && name.to_ascii_lowercase().ends_with(e));
    name.split_at(name.len() - ending.map_or(0, str::len))
}

/// Returns true if, judging by the name, the explorer may be able to open a file.
pub fn is_openable(path: &Path) -> bool {
    let name = path.file_name().map(|n| n.to_string_lossy().to_ascii_lowercase()).unwrap_or_default();
    let (bare, _) = split_compression(&name);
    IMPORTERS.iter().flat_map(|i| i.suffixes()).any(|s| bare.ends_with(s))
}

/// Bytes at the start of a JSON file that show whether it may be a trace.
const JSON_HEAD: u64 = 4096;
/// Keys that traces have at their start: the trace event format's, PyTorch's, and `rocprofv3`'s.
const JSON_KEYS: [&str; 3] = ["\"traceEvents\"", "\"schemaVersion\"", "\"rocprofiler-sdk-tool\""];

/// Returns true for a file whose name does not tell if it is a report, so that its beginning has to be read.
pub fn is_told_by_content(path: &Path) -> bool {
    path.extension().is_some_and(|e| e.eq_ignore_ascii_case("json") || e.eq_ignore_ascii_case("csv"))
}

/// Like [`is_openable`], but without tables and JSON files of other kinds, judging by their beginning.
pub fn may_be_report(path: &Path) -> bool {
    is_openable(path) && !is_other_json(path) && !is_other_table(path)
}

/// Returns true for a JSON file that is no trace: many programs keep their settings in such files.
fn is_other_json(path: &Path) -> bool {
    if path.extension().is_none_or(|e| !e.eq_ignore_ascii_case("json")) {
        return false;
    }
    let mut head = Vec::new();
    let read = open_regular(path).and_then(|f| f.take(JSON_HEAD).read_to_end(&mut head));
    let text = String::from_utf8_lossy(&head);
    // A trace without keys is a list of events.
    read.is_err() || !(JSON_KEYS.iter().any(|k| text.contains(k)) || text.trim_start().starts_with('[') && text.contains("\"ph\""))
}

/// Returns true for a table that is no report: profilers write tables about the machine and about the run beside those
/// of the kernels, and most tables come from other programs.
fn is_other_table(path: &Path) -> bool {
    let is_table = path.extension().is_some_and(|e| e.eq_ignore_ascii_case("csv"));
    is_table && Input::open_part(path).is_ok_and(|input| find_importer(&input).is_err())
}

/// For a file that, judging by its name, may be the report of a rank: the path without its suffix, and a number that
/// is lower for the better of several forms of the same report. A digest is better than the report that it
/// summarizes, and an uncompressed file is better than a compressed one.
pub fn rank_report(path: &Path) -> Option<(String, usize)> {
    let name = path.file_name()?.to_string_lossy();
    let (bare, compression) = split_compression(&name);
    // Converting ASCII letters to lowercase does not change lengths.
    let lower = bare.to_ascii_lowercase();
    let is_digest = |i: &&&dyn Importer| i.name() == digest::WarpscopeDigest.name();
    let of_ranks = || IMPORTERS.iter().filter(|i| i.is_of_rank());
    let ordered = of_ranks().filter(is_digest).chain(of_ranks().filter(|i| !is_digest(i)));
    let endings = ordered.flat_map(|i| i.suffixes().iter().map(move |s| (is_digest(&i), s))).enumerate();
    // Digests are never compressed.
    let possible = endings.filter(|(_, (digest, _))| !digest || compression.is_empty()).map(|(at, (_, s))| (at, s));
    // If several formats have the same suffix, the first one counts.
    let (at, ending) = possible.filter(|(_, s)| lower.ends_with(**s)).max_by_key(|(at, s)| (s.len(), std::cmp::Reverse(*at)))?;
    let stem = &bare[..bare.len() - ending.len()];
    Some((path.with_file_name(stem).display().to_string(), at * 2 + usize::from(!compression.is_empty())))
}

/// Reads the metrics of individual kernels, as measured by ncu or rocprofv3.
pub fn read_results(path: &Path, job: &Job<'_>) -> Result<Metrics, ImportError> {
    let measures = |input: &Input| IMPORTERS.iter().copied().find(|i| i.has_counters() && i.knows(input));
    let found = input_if(path, job, &|input| measures(input).is_some());
    let Some((input, importer)) = found.ok().and_then(|input| measures(&input).map(|i| (input, i))) else {
        return ncu::read_metrics(path, job, None);
    };
    let profile = importer.read(&input, job)?;
    let refused = || ImportError::refused(path, "a report of rocprofv3 without counters", "name the counter_collection.csv of the re-run");
    profile.metrics.map(Arc::unwrap_or_clone).ok_or_else(refused)
}

/// Opens and reads a file of any known format.
pub fn open_profile(path: &Path, job: &Job<'_>) -> Result<Profile, ImportError> {
    read_profile(&open_input(path, job)?, job)
}

/// Returns the path of a timeline's SQLite export: either the file itself (decompressed) or nsys's export of a report.
pub fn export_path(path: &Path, job: &Job<'_>) -> Result<PathBuf, ImportError> {
    let input = open_input(path, job)?;
    if nsys_report::NsysReport.knows(&input) {
        return nsys_report::cached_export(&input, job);
    }
    match &input.bytes {
        Bytes::File(file) if nsys::NsysSqlite.knows(&input) => Ok(file.clone()),
        _ => Err(ImportError::refused(path, "not an Nsight Systems timeline", "name a .nsys-rep or its SQLite export")),
    }
}

/// Maximum file size for reading API calls along with the kernel table, which detects launches without records at
/// negligible cost.
const SMALL: u64 = 128 << 20;

/// Adds parts that are cheap to read to those requested.
fn extend_wants(input: &Input, wants: Wants) -> Wants {
    let of_table = Parts::STARTS | Parts::DETAILS;
    if input.size <= SMALL && of_table.contains(wants.parts) { wants.with(of_table | Parts::CALLS) } else { wants }
}

/// Adds notes about coverage, before other notes of the same severity.
fn add_coverage_notes(profile: &mut Profile) {
    let mut notes = profile.coverage.notes(&profile.advise_on_losses());
    // If a report has no kernels, other notes are more helpful; PyTorch traces are the only ones that lack such notes.
    if profile.source.tool != "torch" && profile.launches.is_empty() {
        notes.retain(|n| n.kind != NoteKind::Lost);
    }
    if !notes.is_empty() {
        profile.notes.splice(0..0, notes);
        profile.notes.sort_by_key(|n| std::cmp::Reverse(n.severity));
    }
}

/// Reads an input that is open or built in.
pub fn read_profile(input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
    let importer = find_importer(input)?;
    let mut profile = importer.read(input, &Job { wants: extend_wants(input, job.wants), ..job.clone() })?;
    if profile.devices.len() > MOST_DEVICES {
        let what = format!("a report of {} GPUs", profile.devices.len());
        return Err(ImportError::refused(&input.path, what, "no job has as many: copy it again from where it was recorded"));
    }
    if !importer.grows() {
        input.check_unchanged()?;
    }
    times::fix_times(&mut profile);
    unrecorded::find_unrecorded(&mut profile, job.wants.has_parts(Parts::MEMOPS));
    add_coverage_notes(&mut profile);
    collectives::add_collectives(&mut profile);
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn forms_of_a_report_have_one_stem_and_an_order() {
        let of = |name: &str| rank_report(Path::new(name));
        let stem = |name: &str| of(name).map(|f| f.0);
        assert_eq!(stem("/j/rank0.sqlite.zst").as_deref(), Some("/j/rank0"));
        assert_eq!(stem("/j/R1.PT.TRACE.JSON.GZ").as_deref(), Some("/j/R1"));
        // The lowercase form of these letters has a different length.
        assert_eq!(stem("/j/\u{130}1.sqlite").as_deref(), Some("/j/\u{130}1"));
        assert_eq!(stem("/j/\u{212a}0.sqlite.zst").as_deref(), Some("/j/\u{212a}0"));
        let order = |names: &[&str]| names.iter().map(|n| of(n).unwrap().1).is_sorted_by(|a, b| a < b);
        assert!(order(&["a.wsd", "a.sqlite", "a.sqlite.zst", "a.nsys-rep", "a.qdrep"]));
        assert_eq!(of("a.wsd.zst"), None, "digests are not compressed");
        assert_eq!((of("a.ncu-rep"), of("a.pickle"), of(".gz")), (None, None, None));
        assert!(is_openable(Path::new("x.NCU-REP.gz")) && is_openable(Path::new("\u{130}.csv")) && !is_openable(Path::new("x.txt.gz")));
    }
}
