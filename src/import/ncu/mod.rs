//! Importer for Nsight Compute reports (`.ncu-rep`, `.nsight-cuprof-report`), which does not need ncu, and for the
//! output of `ncu`, as text or CSV. Metric values are all read when a report is opened; sections, rules, sources and instance
//! values are read on demand.

pub mod blocks;
mod csv;
mod cubin;
pub mod details;
mod grid;
mod layout;
mod markup;
mod numbers;
mod once;
mod profile;
mod proto;
mod proto_sections;
mod results;
pub mod session;
pub mod source;
mod text_page;
pub mod units;
mod wire;

use super::error::ImportError;
use super::input::{Bytes, Input, Kinds};
use super::job::Job;
use super::unsupported;
use crate::launch::open;
use crate::model::{Extent, Metrics, Note, NoteKind, Severity, Source, SourceAt};
pub use numbers::Decimal;
pub use profile::{Ncu, build_profile as profile_of};

use blocks::{BlockKind, Blocks, Item};
use std::io::{BufReader, Read};
use std::path::Path;
use std::sync::Arc;

/// Returns true if the input is an Nsight Compute report rather than CSV.
pub fn is_report(input: &Input) -> bool {
    input.head.starts_with(b"NVR\0")
}

/// Reads all metrics of a report or CSV. `decimal` is the decimal separator for ambiguous numbers in a CSV
/// (`117.344`). If a report is damaged, returns the results before the damage and a note, or an error if there are no
/// such results.
pub fn read_metrics(path: &Path, job: &Job<'_>, decimal: Option<Decimal>) -> Result<Metrics, ImportError> {
    // Decompress only reports and text.
    let is_text = |i: &Input| !i.head.contains(&0);
    let knows = |i: &Input| is_report(i) || is_text(i);
    let refusal = |i: &Input| unsupported::unsupported_error(i, "Nsight Compute reports (.ncu-rep, the output of `ncu`)");
    let input = Input::open(path, job, Kinds { knows: &knows, salvages: &|_| false, refusal: &refusal, openable: &|_| false })?;
    // Truncated reports can look like text.
    if input.head == b"NVR" {
        return Err(refusal(&input));
    }
    if !is_report(&input) && !is_text(&input) {
        return Err(ImportError::refused(
            path,
            "not an Nsight Compute report",
            "name a .ncu-rep, or what ncu prints, with or without --csv",
        ));
    }
    read_input(&input, job, decimal)
}

/// Like [`read_metrics`], for an input that is already open.
pub fn read_input(input: &Input, job: &Job<'_>, decimal: Option<Decimal>) -> Result<Metrics, ImportError> {
    let path = &input.path;
    let mut out = Metrics { source: Source { tool: "ncu".to_owned(), file: path.clone(), ..Source::default() }, ..Metrics::default() };
    if !is_report(input) {
        let text: Box<dyn Read> = match &input.bytes {
            Bytes::File(file) => Box::new(open::open_regular(file).map_err(|e| ImportError::io(path, e))?),
            Bytes::BuiltIn(bytes) => Box::new(*bytes),
        };
        let mut out = csv::read_csv(input, BufReader::with_capacity(1 << 16, text), job, out, decimal)?;
        grid::in_blocks(&mut out);
        input.check_unchanged()?;
        return Ok(out);
    }
    out.size = input.size;
    let whole = read_blocks(input, job, &mut out);
    once::last_of_each(&out.names, &mut out.results);
    add_units_and_devices(&mut out);
    grid::in_blocks(&mut out);
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

/// Adds the units of the metrics and the device of each result; both are derived from metrics.
fn add_units_and_devices(out: &mut Metrics) {
    out.units = out.names.iter().map(|n| Arc::from(units::metric_unit(n))).collect();
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

fn read_blocks(input: &Input, job: &Job<'_>, out: &mut Metrics) -> Result<(), ImportError> {
    let mut blocks = Blocks::open(input)?;
    let (mut pid, pace, mut read) = (None, job.cancel.pace(), 0);
    while let Some(item) = blocks.next_item()? {
        let bytes = blocks.wire.at.saturating_sub(std::mem::replace(&mut read, blocks.wire.at));
        if !pace.count_steps(usize::try_from(bytes).unwrap_or(usize::MAX).saturating_add(1)) {
            return Err(ImportError::Cancelled { path: input.path.clone() });
        }
        match item {
            Item::Header(header) => {
                job.report_progress("results", blocks.wire.at, blocks.wire.size);
                let names = header.names;
                if !names.is_empty() && !out.names.is_empty() {
                    // No report with two lists is known. Assume that the second list continues the first.
                    let text = "The report has a second list of metric names; results after it may have wrong names";
                    out.notes.push(Note::new(Severity::Warning, NoteKind::Guess, text));
                }
                out.names.extend(names);
                if let Some(session) = header.session {
                    let session: proto::Session = blocks.wire.decode_message(&session, "block header")?;
                    // "2025.3.1.0 (build 36398880) (public-release)"
                    let ncu = session.versions.into_iter().find(|v| v.provider.as_deref() == Some("Nsight Compute Target"));
                    let version = ncu.and_then(|v| v.version).and_then(|v| v.split(' ').next().map(str::to_owned));
                    out.source.version = out.source.version.take().or(version);
                    // ncu joins arguments with spaces and without quotes, so an argument that contains a space
                    // becomes two.
                    let words = |t: String| t.split_whitespace().map(str::to_owned).collect::<Vec<_>>();
                    // A command must be exact, so reject text that is not UTF-8.
                    let exact = |b: Option<Vec<u8>>| String::from_utf8(b.unwrap_or_default());
                    if let Some(p) = session.program.filter(|_| out.program.is_empty()) {
                        if let (Ok(directory), Ok(path), Ok(arguments)) = (exact(p.directory), exact(p.path), exact(p.arguments)) {
                            out.directory = Some(directory).filter(|d| !d.is_empty());
                            out.program = Some(path).into_iter().filter(|p| !p.is_empty()).chain(words(arguments)).collect();
                        } else {
                            let text = "The program's path or arguments are not UTF-8: a re-run cannot reproduce them";
                            out.notes.push(Note::new(Severity::Warning, NoteKind::Guess, text));
                        }
                    }
                    if let Some(argv) = exact(session.command_line).ok().map(words).filter(|_| out.tool_argv.is_empty()) {
                        out.tool_argv = argv;
                    }
                }
                if let Some(process) = header.process {
                    let process: proto::Process = blocks.wire.decode_message(&process, "block header")?;
                    pid = process.pid;
                    out.process = out.process.take().or(proto::decode_lossy(process.name).filter(|n| !n.is_empty()));
                }
            }
            Item::Message(BlockKind::Source, end) => {
                let at = blocks.wire.at;
                if let Some(reference) = results::read_reference(&mut blocks.wire, end)? {
                    blocks.wire.charge_memory(size_of::<SourceAt>())?;
                    out.sources.push(SourceAt { reference, place: Extent { at, length: end - at } });
                }
            }
            Item::Message(kind, end) => out.results.push(results::read_result(&mut blocks.wire, kind, end, pid)?),
        }
    }
    Ok(())
}
