//! Importer for rocprofv3's PC samples in CSV (`_pc_sampling_host_trap.csv`, `_pc_sampling_stochastic.csv`): one
//! result per kernel, with the samples of its instructions. Kernel names come from the kernel trace in the same
//! directory.

use super::att_files::{CodeRow, PC_SAMPLES};
use super::csv_set::Head;
use super::rows::strip_kd_suffix;
use super::thread_trace::{instruction_kind, listed_code};
use crate::import::budget::Budget;
use crate::import::input::Bytes;
use crate::import::{ImportError, Input, Job};
use crate::launch::open;
use crate::model::code::Code;
use crate::model::kernel::function_of;
use crate::model::launches::NO_NODE;
use crate::model::sections::InstanceKey;
use crate::model::{
    Cancel, Details, Device, Kernel, LaunchColumns, LaunchConfig, LaunchOrder, LaunchSite, Launches, Metrics, Note, NoteKind, Profile,
    ResultMetrics, Severity, Source, Value, Vendor,
};
use csv::ByteRecord;
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// File name suffixes.
pub const SUFFIXES: [&str; 2] = ["_pc_sampling_host_trap.csv", "_pc_sampling_stochastic.csv"];
/// Common prefix of AMD's stall reasons.
const REASON: &str = "ROCPROFILER_PC_SAMPLING_INSTRUCTION_NOT_ISSUED_REASON_";
/// Estimated memory for an instruction, bytes.
const INSTRUCTION: u64 = 256;
/// Estimated memory overhead of a string, or of an instruction's stall reason, bytes.
const TEXT: u64 = 96;
/// Shown for instructions that AMD's tool could not decode, such as those of the runtime's copies or of
/// self-modifying code.
const NOT_DECODED: &str = "(not decoded)";
/// Kernel name for samples whose dispatch is not in the trace.
const UNKNOWN: &str = crate::model::kernel::UNNAMED;

/// Samples of one instruction.
#[derive(Default)]
struct Counts {
    all: u64,
    issued: u64,
    /// Number of samples by stall reason.
    stalled: BTreeMap<Arc<str>, u64>,
}

/// Samples of one kernel, by source line and instruction. The table has no addresses.
#[derive(Default)]
struct Sampled {
    instructions: BTreeMap<(Place, Arc<str>), Counts>,
}

/// File and line of an instruction; empty if AMD's tool made a remark instead.
#[derive(Clone, PartialEq, Eq, PartialOrd, Ord)]
struct Place {
    file: Arc<str>,
    line: u32,
}

/// Samples by kernel, in order of first appearance.
#[derive(Default)]
struct Samples {
    kernels: Vec<(String, Sampled)>,
    /// True if stall reasons were collected.
    stochastic: bool,
    broken: u64,
    unknown: u64,
}

/// Returns true if a file starts like a table of PC samples.
pub fn is_samples(head: &[u8]) -> bool {
    let line = head.split(|b| *b == b'\n').next().unwrap_or_default().to_ascii_lowercase();
    ["sample_timestamp", "exec_mask", "dispatch_id", "instruction"].iter().all(|c| memchr::memmem::find(&line, c.as_bytes()).is_some())
}

/// Calls `each` for every row of a table with a header.
fn each_row(
    from: impl Read,
    path: &Path,
    cancel: &Cancel,
    mut each: impl FnMut(&Head, &ByteRecord) -> Result<(), ImportError>,
) -> Result<(), ImportError> {
    let damaged = |e: csv::Error| ImportError::damaged(path, "its rows", &e);
    let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(from);
    let mut record = ByteRecord::new();
    if !reader.read_byte_record(&mut record).map_err(damaged)? {
        return Ok(());
    }
    let head = Head::from_header(&record);
    let pace = cancel.pace();
    while reader.read_byte_record(&mut record).map_err(damaged)? {
        if !pace.count_steps(record.as_slice().len() + 1) {
            return Err(ImportError::Cancelled { path: path.to_owned() });
        }
        each(&head, &record)?;
    }
    Ok(())
}

/// Kernel names by dispatch id, from the kernel trace in the same directory; empty if there is none.
fn read_names(path: &Path, budget: &Budget, cancel: &Cancel) -> Result<FxHashMap<u64, Arc<str>>, ImportError> {
    let mut out: FxHashMap<u64, Arc<str>> = FxHashMap::default();
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let name = name.trim_end_matches(".gz").trim_end_matches(".zst");
    let Some(stem) = SUFFIXES.iter().find_map(|s| name.strip_suffix(s)) else { return Ok(out) };
    let trace = path.with_file_name(format!("{stem}_kernel_trace.csv"));
    let Ok(file) = open::open_regular(&trace) else { return Ok(out) };
    let mut known: FxHashMap<Vec<u8>, Arc<str>> = FxHashMap::default();
    each_row(file, &trace, cancel, |head, row| {
        let (Some(id), Some(name)) = (head.cell_number(row, &["dispatch_id"]), head.cell_text(row, &["kernel_name"])) else {
            return Ok(());
        };
        budget.charge_bytes(32)?;
        let name = known.entry(name.to_owned()).or_insert_with(|| Arc::from(strip_kd_suffix(&String::from_utf8_lossy(name))));
        out.insert(id, name.clone());
        Ok(())
    })?;
    Ok(out)
}

/// Splits `file:line`. AMD's remarks, for example on code that could not be decoded, have no line.
fn parse_place(comment: &str) -> Place {
    // Inlined code has several places, innermost first.
    let first = comment.split(" -> ").next().unwrap_or_default();
    match first.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse().ok()?))) {
        Some((file, line)) => Place { file: Arc::from(file), line },
        None => Place { file: Arc::from(""), line: 0 },
    }
}

fn read_samples(input: &Input, cancel: &Cancel) -> Result<Samples, ImportError> {
    let from: Box<dyn Read> = match &input.bytes {
        Bytes::File(path) => Box::new(open::open_regular(path).map_err(|e| ImportError::io(path, e))?),
        Bytes::BuiltIn(bytes) => Box::new(*bytes),
    };
    let budget = input.memory_budget();
    let names = read_names(&input.path, &budget, cancel)?;
    let mut out = Samples::default();
    let mut numbers: FxHashMap<Arc<str>, usize> = FxHashMap::default();
    let mut texts: FxHashMap<Vec<u8>, Arc<str>> = FxHashMap::default();
    let mut places: FxHashMap<Vec<u8>, Place> = FxHashMap::default();
    let unknown: Arc<str> = Arc::from(UNKNOWN);
    each_row(from, &input.path, cancel, |head, row| {
        let Some(dispatch) = head.cell_number(row, &["dispatch_id"]) else {
            out.broken += 1;
            return Ok(());
        };
        let (text, comment) = match head.cell_text(row, &["instruction"]) {
            Some(text) => (text, head.cell_text(row, &["instruction_comment"]).unwrap_or_default()),
            // The comment contains the address, which differs in every row.
            None => (NOT_DECODED.as_bytes(), &b""[..]),
        };
        let name = names.get(&dispatch).unwrap_or(&unknown);
        out.unknown += u64::from(!names.contains_key(&dispatch));
        let at = *numbers.entry(name.clone()).or_insert(out.kernels.len());
        if at == out.kernels.len() {
            out.kernels.push(((**name).to_owned(), Sampled::default()));
        }
        if !texts.contains_key(text) {
            budget.charge_bytes(TEXT + 2 * text.len() as u64)?;
            texts.insert(text.to_owned(), Arc::from(String::from_utf8_lossy(text)));
        }
        if !places.contains_key(comment) {
            budget.charge_bytes(TEXT + 2 * comment.len() as u64)?;
            places.insert(comment.to_owned(), parse_place(&String::from_utf8_lossy(comment)));
        }
        let (Some(text), Some(place)) = (texts.get(text).cloned(), places.get(comment).cloned()) else { return Ok(()) };
        let instructions = &mut out.kernels[at].1.instructions;
        let known = instructions.len();
        let counts = instructions.entry((place, text)).or_default();
        counts.all += 1;
        if let Some(issued) = head.cell_text(row, &["wave_issued_instruction"]) {
            out.stochastic = true;
            if matches!(issued, b"1" | b"true" | b"True") {
                counts.issued += 1;
            } else {
                let reason = String::from_utf8_lossy(head.cell_text(row, &["stall_reason"]).unwrap_or_default()).into_owned();
                let reason = reason.strip_prefix(REASON).unwrap_or(&reason).to_ascii_lowercase().replace('_', " ");
                let reason = if reason.is_empty() { "unknown" } else { &reason };
                if !counts.stalled.contains_key(reason) {
                    budget.charge_bytes(TEXT + reason.len() as u64)?;
                }
                *counts.stalled.entry(Arc::from(reason)).or_default() += 1;
            }
        }
        if instructions.len() > known {
            budget.charge_bytes(INSTRUCTION)?;
        }
        Ok(())
    })?;
    Ok(out)
}

/// Metrics of one result, and the names and units of all metrics.
struct Table {
    metrics: Metrics,
    numbers: FxHashMap<String, u32>,
    values: Vec<(u32, Value)>,
}

impl Table {
    fn put(&mut self, name: &str, value: u64) {
        let next = u32::try_from(self.metrics.names.len()).unwrap_or(u32::MAX);
        let number = *self.numbers.entry(name.to_owned()).or_insert_with(|| {
            self.metrics.names.push(Arc::from(name));
            self.metrics.units.push(Arc::from(""));
            next
        });
        self.values.push((number, Value::Integer(value)));
    }
}

impl Sampled {
    fn sum(&self, of: impl Fn(&Counts) -> u64) -> u64 {
        self.instructions.values().map(of).sum()
    }

    /// Adds the totals of the kernel.
    fn put_sums(&self, stochastic: bool, table: &mut Table) {
        table.put("PC_Samples", self.sum(|c| c.all));
        if stochastic {
            table.put("PC_Issued", self.sum(|c| c.issued));
            table.put("PC_Stalled", self.sum(|c| c.all - c.issued));
        }
        let mut reasons: BTreeMap<&str, u64> = BTreeMap::new();
        let mut kinds: BTreeMap<&str, u64> = BTreeMap::new();
        for ((_, text), counts) in &self.instructions {
            *kinds.entry(instruction_kind(text)).or_default() += counts.all;
            for (reason, n) in &counts.stalled {
                *reasons.entry(reason).or_default() += n;
            }
        }
        for (reason, n) in reasons {
            table.put(&format!("PC_Stalled: {reason}"), n);
        }
        for (kind, n) in kinds {
            table.put(&format!("PC samples at {kind}"), n);
        }
    }

    /// The instructions as rows of a listing, numbered in line order.
    fn list_rows(&self, name: &str) -> Vec<CodeRow> {
        let symbol = CodeRow { text: Arc::from(format!("; {name}")), source: name.to_owned(), address: 0, cycles: [0; 4], samples: [0; 2] };
        let rows = (0..).zip(&self.instructions).map(|(address, ((place, text), counts))| CodeRow {
            text: text.clone(),
            source: if place.line > 0 { format!("{}:{}", place.file, place.line) } else { String::new() },
            address,
            cycles: [0; 4],
            samples: [counts.issued, counts.all - counts.issued],
        });
        std::iter::once(symbol).chain(rows).collect()
    }
}

/// Reads the samples into a profile with one launch and one result per kernel.
pub fn read_profile(input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
    let samples = read_samples(input, &job.cancel)?;
    let mut profile = Profile::new(Source { tool: PC_SAMPLES.to_owned(), version: None, schema: None, file: input.path.clone() });
    profile.devices = vec![Device { maker: Vendor::Amd, ..Device::default() }];
    let mut table = Table {
        metrics: Metrics { source: profile.source.clone(), ..Metrics::default() },
        numbers: FxHashMap::default(),
        values: Vec::new(),
    };
    let mut columns = LaunchColumns::default();
    for (name, sampled) in &samples.kernels {
        let kernel =
            Kernel { function: Some(Arc::from(function_of(name))), demangled: Some(Arc::from(name.as_str())), ..Kernel::default() };
        sampled.put_sums(samples.stochastic, &mut table);
        let values = std::mem::take(&mut table.values);
        table.metrics.results.push(ResultMetrics { kernel: kernel.clone(), ..ResultMetrics::from_values(values) });
        columns.kernel.push(u32::try_from(profile.kernels.len()).unwrap_or(u32::MAX));
        columns.start.push(0);
        columns.duration.push(None);
        profile.kernels.push(kernel);
    }
    let n = columns.kernel.len();
    profile.launches = Launches::new(columns);
    profile.places = vec![LaunchSite { device: Some(0), ordinal: Some(0), ..LaunchSite::default() }];
    profile.configs = vec![LaunchConfig::default()];
    profile.launches.set_details(vec![0; n], vec![0; n], vec![NO_NODE; n], Vec::new());
    profile.order = LaunchOrder::Chosen;
    profile.metrics = Some(Arc::new(table.metrics));
    add_notes(&samples, &mut profile);
    Ok(profile)
}

fn add_notes(samples: &Samples, profile: &mut Profile) {
    if samples.kernels.is_empty() {
        profile.notes.push(
            Note::new(Severity::Warning, NoteKind::Empty, "There are no samples in this table.")
                .with_fix("record a longer part, or with a smaller `--pc-sampling-interval`"),
        );
        return;
    }
    let text = "Samples of each kernel are those of all its launches; durations are not in this table.";
    profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
    if samples.unknown > 0 {
        let text =
            format!("The kernels of {} samples are not known: their dispatches are in no kernel trace beside this table.", samples.unknown);
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Lost, text).with_fix("record with `--kernel-trace`, too"));
    }
    if !samples.stochastic {
        let text = "Host-trap samples tell where waves were, and not why they waited.";
        profile
            .notes
            .push(Note::new(Severity::Info, NoteKind::Guess, text).with_fix("`--pc-sampling-method stochastic` does (MI300 and newer)"));
    }
    if samples.broken > 0 {
        let text = format!("{} rows of this table could not be understood; the rest is shown.", samples.broken);
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Damaged, text));
    }
}

/// Reads the values per instruction of a result.
pub fn read_details(input: &Input, metrics: &Metrics, result: usize) -> Result<Details, ImportError> {
    let samples = read_samples(input, &Cancel::default())?;
    let Some((_, sampled)) = samples.kernels.get(result) else { return Ok(Details::default()) };
    let mut out = Details { sources: vec![1], ..Details::default() };
    for (number, name) in (0..).zip(&metrics.names) {
        let value: Box<dyn Fn(&Counts) -> u64> = match &**name {
            "PC_Samples" => Box::new(|c| c.all),
            "PC_Issued" => Box::new(|c| c.issued),
            "PC_Stalled" => Box::new(|c| c.all - c.issued),
            other => match other.strip_prefix("PC_Stalled: ") {
                Some(reason) => Box::new(move |c| c.stalled.get(reason).copied().unwrap_or(0)),
                None => continue,
            },
        };
        let all = (0..).zip(sampled.instructions.values()).map(|(at, counts)| (InstanceKey::Number(at), Value::Integer(value(counts))));
        out.instances.insert(number, all.collect());
    }
    Ok(out)
}

/// Reads the instructions of a result and their source lines.
pub fn read_code(input: &Input, result: usize, cancel: &Cancel) -> Result<Code, ImportError> {
    let samples = read_samples(input, cancel)?;
    let Some((name, sampled)) = samples.kernels.get(result) else { return Ok(Code::default()) };
    let mut out = listed_code(&sampled.list_rows(name), &BTreeMap::new(), input.path.parent().unwrap_or(Path::new(".")));
    out.remarks.push(
        "these samples have no addresses: instructions are in the order of their lines, and equal ones of one line are one row".to_owned(),
    );
    Ok(out)
}
