//! `warpscope hints`: hints on the kernels of a report.

use super::failure::Failure;
use super::values::word_parser;
use super::{interrupt, print};
use crate::analysis::hints::diagnosed_kernel::{self, Place};
use crate::analysis::select::{self, Selected};
use crate::analysis::what_if_replay::Run;
use crate::import::{Parts, Wants};
use crate::model::{Kernel, KernelId, Severity};
use crate::report::PageFormat;
use crate::report::document::Renderer;
use crate::report::hints::{document, explanation, print_csv, write_json};
use std::path::PathBuf;

/// `warpscope hints`.
#[derive(Debug, clap::Args)]
pub struct HintsArgs {
    /// Report: from Nsight Compute, or a timeline (from which only the launch itself can be judged).
    pub file: PathBuf,
    /// Only this kernel: an exact name, otherwise a fuzzy match that must be unique.
    #[arg(long, value_name = "SEL")]
    pub kernel: Option<String>,
    /// Only this launch, by its number in `warpscope launches` (for an Nsight Compute report, the result's number).
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub launch: Option<u32>,
    /// Print the chain of reasoning with its numbers, what to change, and the command that confirms it, as text, or as --format says (md, html).
    #[arg(long)]
    pub explain: bool,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<PageFormat>())]
    pub format: Option<PageFormat>,
}

/// Prints hints about the kernels of a report.
pub fn print_hints(args: &HintsArgs, nsys: Option<PathBuf>) -> Result<(), Failure> {
    if args.explain && matches!(args.format, Some(PageFormat::Csv | PageFormat::Json)) {
        return Err(Failure::usage("--explain is for people: --format table, md or html; JSON has the reasoning without it"));
    }
    let profile = interrupt::open_report(&args.file, nsys, Wants::LAUNCHES.with(Parts::MEMOPS))?;
    // Counters are more precise than the timeline in which they were measured; the timeline is used to estimate the
    // run's gain.
    let measured = profile.measured.clone().filter(|_| args.launch.is_none());
    let run = Run::from_profile(&profile);
    let timeline = run.as_ref().map(|run| (&profile, run));
    let whole = &profile;
    let profile = measured.as_deref().unwrap_or(&profile);
    let file = args.file.display();
    let mut places = diagnosed_kernel::list_places(profile);
    if places.is_empty() {
        return Err(Failure::wrong(if profile.totals.is_empty() {
            format!("{file}: it has no kernels")
        } else {
            format!("{file}: it has per-kernel totals only; open the report that it was made from")
        }));
    }
    if let Some(selector) = &args.kernel {
        let names: Vec<Kernel> = places.iter().map(|p| p.kernel(profile).cloned().unwrap_or_default()).collect();
        let chosen = print::select_kernels(&names, &args.file, selector, print::LISTS_KERNELS).map_err(|e| {
            let known = measured.is_some() && matches!(select::select_kernels(&whole.kernels, selector), Selected::Kernels(_));
            let text = "was not measured in this run; `warpscope run --measure` measures it, `--launch N` judges it by the timeline alone";
            if known { Failure::wrong(format!("{file}: {selector:?} {text}")) } else { e }
        })?;
        let mut at = 0..;
        places.retain(|_| at.next().is_some_and(|i| chosen.contains(&KernelId(i))));
    }
    if let Some(launch) = args.launch {
        places.retain(|p| p.launch_row() == launch);
        // Any launch of a timeline can be selected, not only the median ones.
        if places.is_empty() && args.kernel.is_none() && profile.metrics.is_none() && (launch as usize) < profile.launches.len() {
            places.push(Place::Launch(launch));
        }
        if places.is_empty() {
            return Err(Failure::wrong(format!(
                "{file}: there is no launch {launch}, or it belongs to another kernel; `warpscope launches` lists them"
            )));
        }
    }
    // Omit notes that apply to every ncu report: they do not affect hints, and the explorer displays them.
    print::notes(&file.to_string(), profile.notes.iter().filter(|n| n.severity > Severity::Info));
    let width = print::terminal_width();
    let subjects = places.into_iter().filter_map(|p| p.diagnose_kernel(profile));
    let format = if args.explain { args.format.unwrap_or(PageFormat::Page(Renderer::Text)) } else { print::page_format(args.format) };
    print::to_stdout(|out| match format {
        PageFormat::Json => write_json(out, profile, timeline, subjects),
        PageFormat::Csv => print_csv(out, subjects, width),
        PageFormat::Page(renderer) if args.explain => {
            explanation(profile, timeline, subjects).write(out, renderer, Some(width.unwrap_or(100)))
        }
        PageFormat::Page(renderer) => document(subjects).write(out, renderer, width),
    })
}
