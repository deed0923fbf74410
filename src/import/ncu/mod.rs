//! Nsight Compute reports (`.ncu-rep`, `.nsight-cuprof-report`), read natively: every metric value of every result; and what
//! `ncu --csv` prints. Sections, rules, sources and instance values are skipped over.

pub mod blocks;
mod csv;
mod numbers;
mod proto;
pub mod units;

use super::input::Bytes;
use super::{ImportError, Input, Job};
use crate::model::{Kernel, Metrics, Note, NoteKind, ResultKind, ResultMetrics, Severity, Source, Value};
pub use numbers::Decimal;

use blocks::{Blocks, Item, Kind};
use prost::Message;
use proto::{KernelResult, MetricResult, MetricValue, OtherResult};
use std::fs::File;
use std::io::BufReader;
use std::path::Path;
use std::sync::Arc;

/// Whether these are the bytes of a report.
#[must_use]
pub fn is_report(input: &Input) -> bool {
    input.head.starts_with(b"NVR\0")
}

/// Reads all metrics, of a report or a CSV; `decimal` settles numbers in a CSV that nothing else does (`117.344`). A report that is damaged gives the results before the damage and a note, or the error if there are none.
pub fn read(path: &Path, job: &Job<'_>, decimal: Option<Decimal>) -> Result<Metrics, ImportError> {
    // What is neither a report nor text is not unpacked.
    let is_text = |i: &Input| !i.head.contains(&0);
    let input = Input::open_if(path, job, &|i| is_report(i) || is_text(i))?;
    let Bytes::File(file) = &input.bytes else {
        return Err(refused(path));
    };
    let mut out = Metrics { source: Source { tool: "ncu".to_owned(), file: path.to_owned(), ..Source::default() }, ..Metrics::default() };
    if !is_report(&input) {
        if !is_text(&input) {
            return Err(refused(path));
        }
        let file = File::open(file).map_err(|e| ImportError::io(path, e))?;
        let out = csv::read(path, BufReader::with_capacity(1 << 16, file), job, out, decimal)?;
        input.check_unchanged()?;
        return Ok(out);
    }
    let whole = read_blocks(path, file, input.size, job, &mut out);
    describe(&mut out);
    match whole {
        Ok(()) => {
            input.check_unchanged()?;
            Ok(out)
        }
        Err(ImportError::Damaged { place, reason, next, .. }) if !out.results.is_empty() => {
            let text = format!("The report is damaged after result {} ({place}: {reason})", out.results.len() - 1);
            out.notes.push(Note { fix: Some(next), ..Note::new(Severity::Error, NoteKind::Damaged, text) });
            Ok(out)
        }
        Err(e) => Err(e),
    }
}

fn refused(path: &Path) -> ImportError {
    ImportError::refused(path, "not an Nsight Compute report", "name a .ncu-rep, or the CSV that `ncu --csv` prints")
}

/// What follows from the metrics: their units, and the device of each result.
fn describe(out: &mut Metrics) {
    out.units = out.names.iter().map(|n| Arc::from(units::unit(n))).collect();
    let device: Vec<_> = out
        .results
        .iter()
        .map(|r| {
            let of = |name: &str| out.integer(r, &format!("device__attribute_{name}"));
            (of("device_index"), of("compute_capability_major").zip(of("compute_capability_minor")))
        })
        .collect();
    for (result, (index, compute_capability)) in out.results.iter_mut().zip(device) {
        (result.device, result.compute_capability) = (index, compute_capability);
    }
}

fn read_blocks(path: &Path, file: &Path, size: u64, job: &Job<'_>, out: &mut Metrics) -> Result<(), ImportError> {
    let mut blocks = Blocks::open(path, file, size, |kind| kind != Kind::Source)?;
    let mut pid = None;
    while let Some(item) = blocks.step()? {
        if job.cancel.is_cancelled() {
            return Err(ImportError::Cancelled { path: path.to_owned() });
        }
        match item {
            Item::Header(header) => {
                let names = header.strings.map(|s| s.strings).unwrap_or_default();
                if !names.is_empty() && !out.names.is_empty() {
                    // No known report has two; that the second goes on from the first is a guess.
                    let text = "The report has a second list of metric names; results after it may have wrong names";
                    out.notes.push(Note::new(Severity::Warning, NoteKind::Guess, text));
                }
                out.names.extend(names.into_iter().map(Arc::from));
                let versions = header.session.into_iter().flat_map(|s| s.versions);
                // "2025.3.1.0 (build 36398880) (public-release)"
                let ncu = versions.into_iter().find(|v| v.provider.as_deref() == Some("Nsight Compute Target")).and_then(|v| v.version);
                out.source.version = out.source.version.take().or(ncu.and_then(|v| v.split(' ').next().map(str::to_owned)));
                pid = header.process.map_or(pid, |p| p.pid);
            }
            Item::Message(Kind::Kernel, bytes) => match KernelResult::decode(&*bytes) {
                Ok(result) => out.results.push(kernel(result, pid)),
                Err(_) => return Err(blocks.damaged("result", "it cannot be read")),
            },
            Item::Message(kind, bytes) => match OtherResult::decode(&*bytes) {
                Ok(result) => out.results.push(other(kind, result, pid)),
                Err(_) => return Err(blocks.damaged("result", "it cannot be read")),
            },
        }
    }
    Ok(())
}

fn kernel(r: KernelResult, pid: Option<u32>) -> ResultMetrics {
    let (grid, block) = (r.grid.map(|d| d.get()), r.block.map(|d| d.get()));
    // A launch that could not be profiled has no grid and no block.
    let failed = grid == Some([0; 3]);
    // A kernel with C linkage has an empty full name.
    let [function, demangled, mangled] = [r.function, r.demangled, r.mangled].map(|n| n.filter(|n| !n.is_empty()).map(Arc::<str>::from));
    ResultMetrics {
        kind: ResultKind::Kernel,
        kernel: Kernel { function, demangled, mangled },
        grid: grid.filter(|_| !failed),
        block: block.filter(|_| !failed),
        pid,
        device: None,
        compute_capability: None,
        context: r.context,
        stream: r.stream,
        failed,
        values: values(r.metrics),
    }
}

fn other(kind: Kind, r: OtherResult, pid: Option<u32>) -> ResultMetrics {
    let (kind, name) = match kind {
        Kind::Graph => (ResultKind::Graph, "graph"),
        Kind::CommandList => (ResultKind::CommandList, "cmdlist"),
        _ => (ResultKind::Range, "range"),
    };
    ResultMetrics {
        kind,
        kernel: Kernel { function: Some(Arc::from(name)), ..Kernel::default() },
        grid: None,
        block: None,
        pid,
        device: None,
        compute_capability: None,
        context: r.context,
        stream: None,
        failed: false,
        values: values(r.metrics),
    }
}

/// Metrics with a value of their own; some have only instances.
fn values(metrics: Vec<MetricResult>) -> Vec<(u32, Value)> {
    let value = |v: MetricValue| match v {
        // An empty text says nothing, and ncu prints nothing for it.
        MetricValue { text: Some(t), .. } => (!t.is_empty()).then(|| Value::Text(t.into())),
        MetricValue { double: Some(d), .. } => Some(Value::Float(d)),
        MetricValue { float: Some(f), .. } => Some(Value::Float(f.into())),
        MetricValue { large: Some(n), .. } => Some(Value::Integer(n)),
        MetricValue { small: Some(n), .. } => Some(Value::Integer(n.into())),
        _ => None,
    };
    metrics.into_iter().filter_map(|m| Some((m.name?, value(m.value?)?))).collect()
}
