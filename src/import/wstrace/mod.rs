//! Importer for traces from the built-in tracer: one file per process, which can be read while it grows. `FORMAT.md`
//! in this directory specifies the format.

mod blocks;
mod build;
mod counters;
mod derived_metrics;
mod empty_trace;
mod file_name;
mod folder;
mod follow;
mod graph_node_rows;
mod graph_nodes;
mod host_sample_rows;
mod host_samples;
mod kernels;
mod key_values;
mod live_counters;
mod names;
mod native_frames;
mod native_lines;
mod native_names;
mod native_symbols;
mod notes;
mod nvtx_marks;
mod pc_sample_rows;
mod pc_sampling;
mod process;
mod python_lines;
mod range_profiler_results;
mod ranges;
mod ring_snapshot;
mod rotation;
mod rows;
mod sections;
mod server;
mod tail;
mod varint;

use super::importer::KernelData;
use super::input::Bytes;
use super::ncu::source;
use super::{Cancel, ImportError, Importer, Input, Job};
use crate::launch::open;
use crate::model::{Code, Details, Metrics, Profile, Source};
pub use file_name::{is_trace_of, prefix_of_trace};
use folder::{FORMAT, Selected, TraceFile, later_format};
pub use follow::Follow;
use notes::Said;
pub use rotation::SUFFIX;
pub use server::{add_samples, metrics_prefix};
use std::borrow::Cow;
use std::collections::BTreeMap;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};

pub struct WarpscopeTrace;

impl Importer for WarpscopeTrace {
    fn name(&self) -> &'static str {
        "warpscope trace"
    }

    fn files(&self) -> &'static [&'static str] {
        &[".wstrace"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".wstrace"]
    }

    fn knows(&self, input: &Input) -> bool {
        // Traces of several processes in one directory are opened as a single report.
        input.head.starts_with(&blocks::MAGIC) || input.members.iter().any(|m| m.head.starts_with(&blocks::MAGIC))
    }

    fn salvages(&self) -> bool {
        true
    }

    fn grows(&self) -> bool {
        true
    }

    fn is_of_rank(&self) -> bool {
        true
    }

    fn kernel_data(&self, _input: &Input) -> KernelData {
        KernelData::Code
    }

    fn read_details(&self, _input: &Input, metrics: &Metrics, result: usize) -> Result<Details, ImportError> {
        let sampled = metrics.results.get(result).and_then(|r| r.sampled.as_ref());
        Ok(sampled.map(|s| s.details.clone()).unwrap_or_default())
    }

    fn read_code(
        &self,
        input: &Input,
        metrics: &Metrics,
        result: usize,
        _details: Option<&Details>,
        disassemblers: &[PathBuf],
        cancel: &Cancel,
    ) -> Result<Code, ImportError> {
        let Some(sampled) = metrics.results.get(result).and_then(|r| r.sampled.as_ref()) else {
            let remark =
                "no stall reasons were sampled of this kernel: `warpscope run --stalls KERNEL#N` samples a launch of it".to_owned();
            return Ok(Code { remarks: vec![remark], ..Code::default() });
        };
        let modules = read_modules(input, &sampled.details.sources)?;
        Ok(source::of_modules(input, metrics, sampled, &modules, disassemblers, cancel))
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let Selected { files, mut notes } = folder::select_files(&input.path, read_contents(input)?)?;
        let mut profile = build_profile(&files, input, job)?;
        profile.notes.append(&mut notes);
        server::add_metrics(&mut profile, input);
        Ok(profile)
    }
}

/// Reads the code of modules that have sampled launches, by the module id in the samples. Modules that the tracer did
/// not store are missing from the result.
pub fn read_modules(input: &Input, wanted: &[u64]) -> Result<BTreeMap<u64, Vec<u8>>, ImportError> {
    let mut found = BTreeMap::new();
    for file in read_contents(input)? {
        pc_sampling::find_modules(&file.bytes, wanted, &mut found);
    }
    Ok(found)
}

/// Reads all files of the trace, with their paths.
fn read_contents(input: &Input) -> Result<Vec<TraceFile<'_>>, ImportError> {
    // If only the most recent data is kept, the tracer may have deleted a file in the meantime.
    let there = |read: Result<_, ImportError>| match read {
        Err(ImportError::Io { source, .. }) if source.kind() == ErrorKind::NotFound => None,
        other => Some(other),
    };
    let file = |path: &Path| match open::read_regular(path) {
        Ok(bytes) => Ok(TraceFile { path: path.to_owned(), bytes: Cow::Owned(bytes) }),
        Err(e) => Err(ImportError::io(path, e)),
    };
    let members = input.members.iter().filter(|m| m.head.starts_with(&blocks::MAGIC));
    match &input.bytes {
        _ if !input.members.is_empty() => members.filter_map(|m| there(file(&m.path))).collect(),
        Bytes::File(path) => {
            let named = file(path)?;
            let others = rotation::read_siblings(path, &named.bytes);
            Ok([named].into_iter().chain(others.into_iter().map(|(path, bytes)| TraceFile { path, bytes: Cow::Owned(bytes) })).collect())
        }
        Bytes::BuiltIn(bytes) => Ok(vec![TraceFile { path: input.path.clone(), bytes: Cow::Borrowed(bytes) }]),
    }
}

/// Builds a single profile of all processes in the files.
fn build_profile(files: &[Cow<'_, [u8]>], input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
    let (sections, missing) = sections::read_sections(files, input, job)?;
    let newest = sections.iter().filter_map(|s| s.facts.number::<u32>("format")).max().unwrap_or(FORMAT);
    if newest > FORMAT {
        return Err(later_format(&input.path, newest));
    }
    let source = Source {
        tool: "trace".to_owned(),
        version: sections.iter().find_map(|s| s.facts.get("cupti_version")).map(|v| format!("CUPTI {v}")),
        schema: Some(newest.to_string()),
        file: input.path.clone(),
    };
    let said = Said::from_sections(&sections, missing);
    let mut profile = build::build_profile(sections, job, Profile::new(source));
    profile.notes = notes::build_notes(&profile, &said);
    Ok(profile)
}
