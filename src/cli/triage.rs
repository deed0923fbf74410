//! `warpscope triage`: bottlenecks of a run.

use super::failure::Failure;
use super::scope_args::ScopeArgs;
use super::values::word_parser;
use super::{interrupt, print};
use crate::analysis::hints::DIAGNOSES;
use crate::analysis::kernel_lead::find_kernel_lead;
use crate::analysis::memory;
use crate::analysis::ranks::complete_reports;
use crate::analysis::triage::VERDICTS;
use crate::analysis::triage::{self, Scope, Verdict};
use crate::import::{Parts, Wants};
use crate::model::{Cancel, NoteKind, Profile, Severity};
use crate::report::ranks::Together;
use crate::report::{self, PageFormat};
use clap::builder::PossibleValuesParser;
use std::path::Path;
use std::path::PathBuf;

/// `warpscope triage`.
/// Identifiers of all causes that may come first: of runs, and of measured kernels.
fn fail_on_ids() -> Vec<&'static str> {
    let mut ids: Vec<&str> = VERDICTS.iter().map(|v| v.id).collect();
    let of_kernels = DIAGNOSES.iter().map(|d| d.id).filter(|id| Verdict::from_id(id).is_none());
    ids.extend(of_kernels);
    ids
}

#[derive(Debug, clap::Args)]
pub struct TriageArgs {
    /// Timelines of nsys, torch.profiler, rocprofv3 or the built-in tracer.
    #[arg(required = true, value_name = "FILE")]
    pub files: Vec<PathBuf>,
    #[command(flatten)]
    pub scope: ScopeArgs,
    /// Judge only this device, by its number.
    #[arg(long, value_name = "N")]
    pub device: Option<u32>,
    /// Floating-point operations of one step (6.2e15), to have TFLOP/s and MFU; PyTorch traces with shapes have them.
    #[arg(long, value_name = "N", value_parser = parse_operations)]
    pub flops: Option<f64>,
    /// Exit with code 1 if one of these is found; several with commas.
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = PossibleValuesParser::new(fail_on_ids()))]
    pub fail_on: Vec<String>,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<PageFormat>())]
    pub format: Option<PageFormat>,
}

/// Parses a positive number of operations, such as `6.2e15`.
fn parse_operations(text: &str) -> Result<f64, String> {
    match text.trim().parse::<f64>() {
        Ok(n) if n.is_finite() && n > 0.0 => Ok(n),
        _ => Err("write a number of operations, such as 6.2e15".to_owned()),
    }
}

/// Prints the bottlenecks of a run.
pub fn print_triage(args: &TriageArgs, nsys: Option<&Path>) -> Result<(), Failure> {
    let mut judged = Vec::new();
    // Ranks can only be compared as a whole, also where the findings of one device are asked for.
    let mut whole = Vec::new();
    for file in &args.files {
        let profile = interrupt::open_report(file, nsys.map(Path::to_owned), Wants::TRIAGE.with(Parts::COLLECTIVES.union(Parts::MEMORY)))?;
        let shown = file.display();
        if profile.metrics.is_some() {
            let tool = &profile.source.tool;
            return Err(Failure::wrong(format!(
                "{shown}: this is a report of {tool} on single kernels, which has no timeline; `warpscope hints` judges its kernels"
            )));
        }
        let windows = args.scope.to_windows(&profile, &shown.to_string(), args.device)?;
        let scope = Scope { windows, device: args.device, flops: args.flops };
        let found = triage::triage_profile(&profile, &scope, &Cancel::default());
        // For an empty report, print only why it is empty.
        let reason = profile.notes.iter().find(|n| n.kind == NoteKind::Empty).filter(|_| profile.launches.is_empty());
        let damaged = profile.notes.iter().any(|n| n.kind == NoteKind::Damaged);
        if found.is_none()
            && !damaged
            && let Some(reason) = reason
            && profile.memory.is_empty()
            && profile.coverage.describe_losses().is_none()
        {
            return Err(Failure::wrong(format!("{shown}: {}", reason.to_sentence())));
        }
        print::warn(&profile);
        let Some(mut found) = found else {
            return Err(Failure::wrong(match args.device {
                _ if profile.launches.is_empty() && !profile.memory.is_empty() => {
                    format!("{shown}: this report is of memory only, and has no timeline; `warpscope memory` says how it is used")
                }
                Some(device) => format!("{shown}: nothing ran on device {device}"),
                None if damaged => return Err(Failure::unreadable(format!("{shown}: no operation of a GPU could be read"))),
                None if let Some(lost) = profile.coverage.describe_losses() => {
                    format!("{shown}: {lost}; {}", profile.advise_on_losses())
                }
                None if args.scope.has_window() => format!("{shown}: nothing ran on a GPU between these times"),
                None => format!("{shown}: nothing ran on a GPU, or the report has no times"),
            }));
        };
        if found.devices.is_empty() && args.scope.has_window() {
            return Err(Failure::wrong(format!(
                "{shown}: nothing ran on a GPU between these times: choose a window that begins and ends with work, for what the GPU waits for in between"
            )));
        }
        found.kernel_lead = find_kernel_lead(&profile, &found);
        if scope.windows.is_empty() {
            found.take_memory(memory::summarize_findings(&profile, args.device, &Cancel::default()));
        }
        // Without collectives, there are no ranks to compare.
        whole.push(if args.device.is_some() && triage::device_ops::find_collectives(&profile).contains(&true) {
            let windows = args.scope.to_windows(&profile, &shown.to_string(), None)?;
            triage::triage_profile(&profile, &Scope { windows, device: None, flops: args.flops }, &Cancel::default())
        } else {
            None
        });
        judged.push((profile, found));
    }
    let of_ranks: Vec<report::triage::Judged<'_>> =
        judged.iter().zip(&whole).map(|((p, t), whole)| (p, whole.as_ref().unwrap_or(t))).collect();
    let ranks = super::ranks::of_reports(&of_ranks);
    if let Some((_, reports, job)) = ranks.as_ref().filter(|_| !args.scope.has_window() && args.device.is_none()) {
        complete_reports(judged.iter_mut().map(|(_, t)| &mut t.findings), job, reports);
    }
    let shown: Vec<report::triage::Judged<'_>> = judged.iter().map(|(p, t)| (p, t)).collect();
    let ranks = ranks.as_ref().map(|(digests, reports, job)| Together { job, digests, reports });
    print::to_stdout(|out| match print::page_format(args.format) {
        PageFormat::Json => report::triage::write_triage_json(out, &shown, ranks.as_ref()),
        PageFormat::Csv => report::triage::print_csv(out, &shown, ranks.as_ref(), print::terminal_width()),
        PageFormat::Page(renderer) => report::triage::document(&shown, ranks.as_ref()).write(out, renderer, Some(print::finding_width())),
    })?;
    let found = |id: &Verdict| {
        ranks.is_some_and(|r| r.job.findings.iter().any(|f| f.id == *id))
            || judged.iter().any(|(_, t)| t.findings.iter().any(|f| f.id == *id || f.effects.iter().any(|e| e.0 == *id)))
    };
    let of_kernel = |id: &str| judged.iter().any(|(_, t)| t.kernel_lead.as_ref().is_some_and(|l| l.hint.id.id() == id));
    let asked = args.fail_on.iter().map(String::as_str);
    let failed: Vec<&str> = asked.filter(|id| of_kernel(id) || Verdict::from_id(id).is_some_and(|v| found(&v))).collect();
    if !failed.is_empty() {
        return Err(Failure::found(format!("found: {}", failed.join(", "))));
    }
    // The part that could not be read may hold a finding that was asked for.
    let damaged = |p: &Profile| p.notes.iter().any(|n| n.kind == NoteKind::Damaged && n.severity == Severity::Error);
    match judged.iter().find(|(profile, _)| !args.fail_on.is_empty() && damaged(profile)) {
        Some((profile, _)) => {
            Err(Failure::unreadable(format!("{}: the report is damaged: nothing is found or ruled out", profile.file_name())))
        }
        // A run without collectives has no other ranks to wait for.
        None if judged.iter().any(|(_, t)| t.devices.iter().any(|d| d.collectives > 0)) => {
            super::ranks::require_judged(&args.fail_on, ranks.map(|r| r.job))
        }
        None => Ok(()),
    }
}
