//! Importer for rocprofv3's decoded thread traces: a directory `ui_output_agent_…_dispatch_…` that contains a
//! kernel's instructions with the cycles that the waves of one compute unit spent on each (`code.json`), and one file
//! per wave. PC samples come in the same format.

use super::att_files::{CodeRow, WaveFile, parse_rows, read_clock, read_json, read_rows, read_small_file, read_waves};
use super::rows::strip_kd_suffix;
use super::wave_timeline::{self, Cycles};
use crate::import::input::Bytes;
use crate::import::{ImportError, Input, Job};
use crate::model::code::{Code, Function, SourceFile};
use crate::model::kernel::function_of;
use crate::model::launches::NO_NODE;
use crate::model::sections::InstanceKey;
use crate::model::{
    Cancel, Details, Device, Kernel, LaunchColumns, LaunchConfig, LaunchOrder, LaunchSite, Launches, Metrics, Note, NoteKind, Profile,
    ResultMetrics, Severity, Source, Value, Vendor,
};
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::path::{Path, PathBuf};
use std::sync::Arc;

/// Name of the tool in the source of these reports.
pub const TOOL: &str = "rocprofv3 thread trace";
/// Metrics per instruction: executions, cycles spent, cycles stalled (included in the cycles spent), and idle cycles
/// before the instruction.
const COLUMNS: [&str; 4] = ["Hitcount", "Latency", "Stall", "Idle"];
/// Metrics per instruction from PC samples: samples in which the instruction was issued, and in which it was stalled.
const SAMPLES: [&str; 2] = ["PC_Issued", "PC_Stalled"];
/// Sum of both.
const ALL_SAMPLES: &str = "PC_Samples";
/// Returns true if a file starts like `code.json`.
pub fn is_code_json(head: &[u8]) -> bool {
    let mut rest = head.trim_ascii_start();
    for part in [&b"{"[..], b"\"code\"", b":", b"[", b"[", b"\""] {
        let Some(after) = rest.strip_prefix(part) else { return false };
        rest = after.trim_ascii_start();
    }
    // The first row is a function name or, for code without symbols, a scalar or vector instruction.
    rest.starts_with(b"; ") || memchr::memmem::find(head, b"\"s_").is_some() || memchr::memmem::find(head, b"\"v_").is_some()
}

/// Returns the path of `code.json` if the directory contains exactly one thread trace.
pub fn code_file(input: &Input) -> Option<PathBuf> {
    if input.members.is_empty() {
        return is_code_json(&input.head).then(|| input.path.clone());
    }
    let mut found = input.members.iter().filter(|m| m.path.file_name().is_some_and(|n| n == "code.json") && is_code_json(&m.head));
    let one = found.next()?;
    // Several traces are imported as separate reports.
    found.next().is_none().then(|| one.path.clone())
}

/// Sums without overflow, which corrupt counts could cause.
fn saturating_sum(values: impl Iterator<Item = u64>) -> u64 {
    values.fold(0, u64::saturating_add)
}

/// Returns what an instruction waits for (AMD's counters of outstanding operations), or else its type.
pub(super) fn instruction_kind(text: &str) -> &'static str {
    let name = text.split_whitespace().next().unwrap_or_default();
    if name == "s_waitcnt" {
        return match (text.contains("vmcnt"), text.contains("lgkmcnt")) {
            (true, true) => "s_waitcnt vmcnt, lgkmcnt",
            (true, false) => "s_waitcnt vmcnt",
            (false, true) => "s_waitcnt lgkmcnt",
            (false, false) => "s_waitcnt",
        };
    }
    // RDNA 4 has a separate instruction for each counter.
    match name {
        "s_wait_loadcnt" | "s_wait_samplecnt" | "s_wait_bvhcnt" | "s_waitcnt_vmcnt" => return "s_waitcnt vmcnt",
        "s_wait_storecnt" | "s_waitcnt_vscnt" => return "s_waitcnt vscnt",
        "s_wait_dscnt" | "s_wait_kmcnt" | "s_waitcnt_lgkmcnt" => return "s_waitcnt lgkmcnt",
        "s_wait_loadcnt_dscnt" => return "s_waitcnt vmcnt, lgkmcnt",
        _ => {}
    }
    let begins = |starts: &[&str]| starts.iter().any(|s| name.starts_with(s));
    if begins(&["s_barrier"]) {
        "s_barrier"
    } else if begins(&["s_wait"]) {
        "s_waitcnt"
    } else if begins(&["v_mfma", "v_smfmac", "v_wmma", "v_swmmac"]) {
        "MFMA"
    } else if begins(&["ds_"]) {
        "LDS"
    } else if begins(&["global_", "flat_", "buffer_", "tbuffer_", "scratch_", "image_"]) {
        "VMEM"
    } else if begins(&["s_load", "s_buffer", "s_store", "s_atomic", "s_scratch"]) {
        "SMEM"
    } else if begins(&["v_"]) {
        "VALU"
    } else {
        "SALU"
    }
}

/// Reads the directory as a profile with one launch and one result.
pub fn read_trace(path: &Path, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
    let folder = path.parent().unwrap_or(Path::new("."));
    let rows = match &input.bytes {
        Bytes::BuiltIn(bytes) if input.members.is_empty() => parse_rows(bytes, path, &job.cancel)?,
        _ => read_rows(path, &job.cancel)?,
    };
    let waves = read_waves(folder, &job.cancel);
    if job.cancel.is_cancelled() {
        return Err(ImportError::Cancelled { path: path.to_owned() });
    }
    let sampled = rows.iter().all(|r| r.cycles[1] == 0) && rows.iter().any(|r| r.samples != [0, 0]);
    let tool = if sampled { super::att_files::PC_SAMPLES } else { TOOL };
    let mut profile = Profile::new(Source { tool: tool.to_owned(), version: None, schema: None, file: input.path.clone() });
    let facts: Json = read_json(&folder.join("filenames.json")).unwrap_or_default();
    let cycles = waves.iter().map(|w| w.wave.end).max().unwrap_or(0).saturating_sub(waves.iter().map(|w| w.wave.begin).min().unwrap_or(0));
    let hz = read_clock(folder);
    let clock = Cycles::from(&waves, hz);
    let ns = hz.map_or(0, |_| clock.to_duration(cycles));
    let name = rows.iter().find_map(|r| r.symbol().map(|s| (s, r.source.as_str())));
    let (mangled, demangled) =
        name.map_or(("(no kernel)", ""), |(s, d)| (strip_kd_suffix(s), if d.is_empty() { strip_kd_suffix(s) } else { d }));
    let kernel = Kernel {
        function: Some(Arc::from(function_of(demangled))),
        demangled: Some(Arc::from(demangled)).filter(|d: &Arc<str>| !d.is_empty()),
        mangled: Some(Arc::from(mangled)),
        spelled: None,
    };
    profile.devices = vec![Device {
        maker: Vendor::Amd,
        name: facts["gfxv"].as_str().zip(facts["gfxip"].as_u64()).map(|(family, ip)| format!("gfx{ip} ({family})")),
        ..Device::default()
    }];
    let mut columns = LaunchColumns { start: vec![0], kernel: vec![0], ..LaunchColumns::default() };
    columns.duration.push(Some(ns));
    profile.launches = Launches::new(columns);
    profile.places = vec![LaunchSite { device: Some(0), ordinal: Some(0), ..LaunchSite::default() }];
    profile.configs = vec![LaunchConfig::default()];
    profile.launches.set_details(vec![0], vec![0], vec![NO_NODE], Vec::new());
    profile.order = LaunchOrder::Chosen;
    profile.kernels = vec![kernel.clone()];
    profile.metrics = Some(Arc::new(build_metrics(&rows, &waves, sampled, ns, &profile.source, kernel)));
    if ns > 0 {
        let text = "The duration is that of the waves on the CU that was traced, from the first to the last: the kernel takes longer.";
        profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
    }
    wave_timeline::add_waves(folder, &waves, &rows, clock, job, &mut profile);
    if hz.is_none() && !profile.ranges.is_empty() {
        let text = "The trace does not say how fast its clock was: each cycle is shown as 1 ns.";
        profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
    }
    if !sampled && rows.iter().all(|r| r.cycles == [0; 4]) {
        let text = "No wave of this dispatch ran on the compute unit that was traced, or nothing was decoded.";
        profile.notes.push(
            Note::new(Severity::Warning, NoteKind::Empty, text)
                .with_fix("trace another CU (`--att-target-cu`) or more shader engines (`--att-shader-engine-mask`)"),
        );
    }
    Ok(profile)
}

fn build_metrics(rows: &[CodeRow], waves: &[WaveFile], sampled: bool, ns: i64, source: &Source, kernel: Kernel) -> Metrics {
    let mut out = Metrics { source: source.clone(), ..Metrics::default() };
    let mut values: Vec<(u32, Value)> = Vec::new();
    let mut put = |name: &str, unit: &str, value: Option<Value>| {
        let number = u32::try_from(out.names.len()).unwrap_or(u32::MAX);
        out.names.push(Arc::from(name));
        out.units.push(Arc::from(unit));
        values.extend(value.map(|v| (number, v)));
    };
    if sampled {
        put(ALL_SAMPLES, "", Some(Value::Integer(saturating_sum(rows.iter().map(CodeRow::all_samples)))));
        for (i, name) in SAMPLES.iter().enumerate() {
            put(name, "", Some(Value::Integer(saturating_sum(rows.iter().map(|r| r.samples[i])))));
        }
        for (kind, n) in sum_by_kind(rows, CodeRow::all_samples) {
            put(&format!("PC samples at {kind}"), "", Some(Value::Integer(n)));
        }
    } else {
        for (i, name) in COLUMNS.iter().enumerate() {
            put(name, if i == 0 { "" } else { "cycle" }, Some(Value::Integer(saturating_sum(rows.iter().map(|r| r.cycles[i])))));
        }
        for (name, cycles) in sum_by_kind(rows, |row| row.cycles[1]) {
            put(&format!("Latency of {name}"), "cycle", Some(Value::Integer(cycles)));
        }
        if let Some(hot) = rows.iter().filter(|r| r.symbol().is_none()).max_by_key(|r| r.cycles[1].saturating_add(r.cycles[3])) {
            put("Hottest instruction", "", Some(Value::Text(hot.text.clone())));
            put("Latency and idle of the hottest instruction", "cycle", Some(Value::Integer(hot.cycles[1].saturating_add(hot.cycles[3]))));
        }
        // Instructions are at most 64 bytes apart; larger gaps are between code objects.
        put(
            "Code size",
            "byte",
            Some(Value::Integer(saturating_sum(rows.windows(2).map(|w| w[1].address.saturating_sub(w[0].address)).filter(|&n| n <= 64)))),
        );
        let (instructions, at_lines, idle) = idle_at_lines(rows);
        put("Executed instructions of the code", "", Some(Value::Integer(instructions)));
        put("Of them at the start of a cache line", "", Some(Value::Integer(at_lines)));
        put("Idle at the start of cache lines", "cycle", Some(Value::Integer(idle)));
        put("Waves", "", Some(Value::Integer(waves.len() as u64)));
        put("Wave cycles", "cycle", Some(Value::Integer(saturating_sum(waves.iter().map(|w| w.duration)))));
        for (state, name) in [(1, "Waves idle"), (2, "Waves executing"), (3, "Waves waiting"), (4, "Waves stalled")] {
            let cycles = saturating_sum(waves.iter().flat_map(|w| &w.wave.timeline.0).filter(|t| t.0 == state).map(|t| t.1));
            put(name, "cycle", Some(Value::Integer(cycles)));
        }
        put("Span of the traced waves", "nsecond", u64::try_from(ns).ok().filter(|&n| n > 0).map(Value::Integer));
    }
    out.results.push(ResultMetrics { kernel, ..ResultMetrics::from_values(values) });
    out
}

/// Size of a line of the instruction cache on GCN and CDNA GPUs, bytes (AMD's ISA guides); a longer line begins at one of
/// these, too.
const LINE: u64 = 64;

/// Counts the executed instructions, and those that begin or enter a line of the instruction cache, with the idle cycles
/// before the latter: a wave is idle there while the line is fetched.
fn idle_at_lines(rows: &[CodeRow]) -> (u64, u64, u64) {
    let executed = |r: &&[CodeRow]| r[0].symbol().is_none() && r[0].cycles[0] > 0;
    let enters = |r: &&[CodeRow]| {
        let length = r[1].address.saturating_sub(r[0].address);
        (1..=LINE).contains(&length) && (r[0].address.is_multiple_of(LINE) || (r[1].address - 1) / LINE != r[0].address / LINE)
    };
    let lines = || rows.windows(2).filter(executed).filter(enters);
    let count = |n: usize| u64::try_from(n).unwrap_or(u64::MAX);
    (count(rows.windows(2).filter(executed).count()), count(lines().count()), saturating_sum(lines().map(|r| r[0].cycles[3])))
}

/// Sums a number of the instructions by what they wait for, or by their type.
fn sum_by_kind(rows: &[CodeRow], of: impl Fn(&CodeRow) -> u64) -> BTreeMap<&'static str, u64> {
    let mut out: BTreeMap<&str, u64> = BTreeMap::new();
    for row in rows.iter().filter(|r| r.symbol().is_none()) {
        let sum = out.entry(instruction_kind(&row.text)).or_default();
        *sum = sum.saturating_add(of(row));
    }
    out
}

/// Reads the values per instruction.
pub fn read_details(path: &Path, metrics: &Metrics) -> Result<Details, ImportError> {
    let rows = read_rows(path, &Cancel::default())?;
    let mut out = Details { sources: vec![1], ..Details::default() };
    let mut take = |name: &str, value: &dyn Fn(&CodeRow) -> u64| {
        let Some(number) = metrics.names.iter().position(|n| **n == *name) else { return };
        let of = rows.iter().filter(|r| r.symbol().is_none());
        let all = of.map(|r| (InstanceKey::Number(r.address), Value::Integer(value(r)))).collect();
        out.instances.insert(u32::try_from(number).unwrap_or(u32::MAX), all);
    };
    for (i, name) in COLUMNS.iter().enumerate() {
        take(name, &|r| r.cycles[i]);
    }
    take(ALL_SAMPLES, &CodeRow::all_samples);
    for (i, name) in SAMPLES.iter().enumerate() {
        take(name, &|r| r.samples[i]);
    }
    Ok(out)
}

/// Reads `snapshots.json`, a tree of directories. Returns the copies of source files, by original path.
fn read_snapshots(folder: &Path) -> BTreeMap<String, String> {
    let tree: Json = read_json(&folder.join("snapshots.json")).unwrap_or_default();
    let mut out = BTreeMap::new();
    let mut open = vec![(String::new(), &tree)];
    while let Some((at, value)) = open.pop() {
        for (name, inner) in value.as_object().into_iter().flatten() {
            let path = if at.is_empty() || at.ends_with('/') { format!("{at}{name}") } else { format!("{at}/{name}") };
            match inner {
                Json::String(file) => drop(out.insert(path, file.clone())),
                inner => open.push((path, inner)),
            }
        }
    }
    out
}

/// Reads functions, instructions and source lines. For inlined code, the innermost line is used; it comes first.
pub fn read_code(path: &Path, cancel: &Cancel) -> Result<Code, ImportError> {
    let (rows, folder) = (read_rows(path, cancel)?, path.parent().unwrap_or(Path::new(".")));
    Ok(listed_code(&rows, &read_snapshots(folder), folder))
}

/// Builds the code from a listing; `copies` maps original paths to source files in `folder`.
pub(super) fn listed_code(rows: &[CodeRow], copies: &BTreeMap<String, String>, folder: &Path) -> Code {
    let mut out = Code::default();
    let mut files: BTreeMap<String, u32> = BTreeMap::new();
    for row in rows {
        if let Some(symbol) = row.symbol() {
            let name = if row.source.is_empty() { strip_kd_suffix(symbol) } else { &row.source };
            out.functions.push(Function { name: Arc::from(name), address: row.address, ..Function::default() });
            continue;
        }
        if out.functions.is_empty() {
            out.functions.push(Function { name: Arc::from("(no symbol)"), address: row.address, ..Function::default() });
        }
        let Some(function) = out.functions.last_mut() else { continue };
        let offset = row.address.saturating_sub(function.address);
        function.instructions.push((offset, row.text.clone()));
        let first = row.source.split(" -> ").next().unwrap_or_default();
        let line = first.rsplit_once(':').and_then(|(file, line)| Some((file, line.parse::<u32>().ok()?)));
        let (file, line) = line.map_or((0, 0), |(file, line)| {
            let next = u32::try_from(files.len() + 1).unwrap_or(u32::MAX);
            (*files.entry(file.to_owned()).or_insert(next), line)
        });
        if function.lines.last().is_none_or(|l| (l.1, l.2) != (file, line)) {
            function.lines.push((offset, file, line));
        }
    }
    let mut names: Vec<(&String, u32)> = files.iter().map(|(n, i)| (n, *i)).collect();
    names.sort_by_key(|n| n.1);
    for (name, _) in names {
        let copy = copies.get(name).filter(|f| !f.contains(['/', '\\']));
        let text = copy.and_then(|f| read_small_file(&folder.join(f))).map(|b| Arc::from(String::from_utf8_lossy(&b)));
        out.files.push(SourceFile { name: Arc::from(name.as_str()), text, from_disk: false });
    }
    for function in &mut out.functions {
        function.instructions.sort_by_key(|i| i.0);
        function.lines.sort_by_key(|l| l.0);
    }
    out.functions.sort_by_key(|f| f.address);
    if out.files.is_empty() {
        out.remarks.push("the kernel was built without line numbers: compile with -g or -gline-tables-only for source lines".to_owned());
    }
    out
}
