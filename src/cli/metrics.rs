//! `warpscope metrics`: metrics of measured kernels.

use super::failure::Failure;
use super::values::word_parser;
use super::{interrupt, print};
use crate::analysis::code;
use crate::import::importer::KernelData;
use crate::import::input::Input;
use crate::import::ncu::{self, Decimal};
use crate::import::open::find_importer;
use crate::import::wstrace::WarpscopeTrace;
use crate::import::{self, Cancel, ImportError, Importer, Job, Wants};
use crate::model::metrics::IN_PLACE;
use crate::model::{self, Kernel, KernelId};
use crate::report::metrics::Shown;
use crate::report::{self, Format};
use std::path::PathBuf;

/// `warpscope metrics`.
#[derive(Debug, clap::Args)]
#[expect(clippy::struct_excessive_bools, reason = "one for each switch of the command line")]
pub struct MetricsArgs {
    /// Report: .ncu-rep, the output of `ncu`, or a trace with measured kernels; also compressed as .gz or .zst.
    pub file: PathBuf,
    /// Only results of this kernel: an exact name, otherwise a fuzzy match that must be unique.
    #[arg(long, value_name = "SEL")]
    pub kernel: Option<String>,
    /// Only this result, by its number from 0.
    #[arg(long, value_name = "ID", allow_negative_numbers = true)]
    pub launch: Option<usize>,
    /// Only metrics whose name contains TEXT (in any case).
    #[arg(long, value_name = "TEXT")]
    pub metric: Option<String>,
    /// The decimal separator, for a CSV in which it is ambiguous (117.344).
    #[arg(long)]
    pub decimal: Option<DecimalSign>,
    /// Instead of all metrics, the report's own sections with their labels, as in `ncu --page details`.
    #[arg(long, conflicts_with_all = ["metric", "rules", "session"])]
    pub sections: bool,
    /// Instead of metrics, what NVIDIA's rules say, with their estimated speedups.
    #[arg(long, conflicts_with_all = ["metric", "session"])]
    pub rules: bool,
    /// Instead of metrics, the hottest source lines, with stall reasons and excess traffic.
    #[arg(long, conflicts_with_all = ["metric", "session", "sections", "rules"])]
    pub source: bool,
    /// Instead of metrics, the hottest instructions; their text needs nvdisasm, cuobjdump or ncu.
    #[arg(long, conflicts_with_all = ["metric", "session", "sections", "rules", "source"])]
    pub sass: bool,
    /// Instead of metrics, the session information: machines, versions, the program with its directory and environment. Private: check it before you share it.
    #[arg(long, conflicts_with_all = ["kernel", "launch", "metric"])]
    pub session: bool,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// `metrics --decimal`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum DecimalSign {
    /// 27,199.72
    Point,
    /// 27.199,72
    Comma,
}

/// Prints the metrics of a report.
pub fn print_metrics(args: &MetricsArgs) -> Result<(), Failure> {
    if args.session {
        return print_session(args);
    }
    let decimal = args.decimal.map(|d| match d {
        DecimalSign::Point => Decimal::Point,
        DecimalSign::Comma => Decimal::Comma,
    });
    let found = interrupt::read_cancellable(&args.file, |cancel| read_metrics(args, cancel, decimal))?;
    let metrics = found.map_err(|none| Failure::wrong(format!("{}: {none}", args.file.display())))?;
    let file = args.file.display();
    print::notes(&file.to_string(), metrics.notes.iter());
    if let Some(launch) = args.launch.filter(|&l| l >= metrics.results.len()) {
        return Err(Failure::wrong(match metrics.results.len() {
            0 => format!("{file}: it has no results"),
            n => format!("{file}: there is no result {launch}: results are numbered 0 to {}", n - 1),
        }));
    }
    // Treat results as kernels, each with its names.
    let names: Vec<Kernel> = metrics.results.iter().map(|r| r.kernel.clone()).collect();
    let kernel = args.kernel.as_deref().map(|s| print::select_kernels(&names, &args.file, s, "warpscope metrics")).transpose()?;
    let of_kernel = |at: usize| kernel.as_ref().is_none_or(|k| u32::try_from(at).is_ok_and(|at| k.contains(&KernelId(at))));
    if let Some(launch) = args.launch.filter(|&l| !of_kernel(l)) {
        let name = names.get(launch).map_or("", |k| k.demangled());
        return Err(Failure::wrong(format!("{file}: result {launch} belongs to another kernel: {name}")));
    }
    let filter = args.metric.as_deref().unwrap_or_default();
    let shown = Shown { metrics: &metrics, filter: filter.to_lowercase() };
    let results = || metrics.results.iter().enumerate().filter(|(at, _)| args.launch.is_none_or(|l| l == *at) && of_kernel(*at));
    if !filter.is_empty() && !results().any(|(_, r)| shown.matching_metrics(r).next().is_some()) {
        return Err(Failure::wrong(format!("{file}: no metric whose name contains {filter:?}; without --metric all are listed")));
    }
    if args.sections || args.rules || args.source || args.sass {
        return print_details(args, &metrics, &results().collect::<Vec<_>>());
    }
    print::to_stdout(|out| match print::format_or_default(args.format) {
        Format::Json => report::metrics::write_json(out, &shown, results()),
        format => report::metrics::print_rows(out, &shown, results(), format, print::terminal_width()),
    })
}

/// Reads results of ncu or AMD's profilers; for a report without any, returns why.
fn read_metrics(args: &MetricsArgs, cancel: Cancel, decimal: Option<Decimal>) -> Result<Result<model::Metrics, String>, ImportError> {
    let job = Job { cancel, ..Job::new(Wants::LAUNCHES, &|_| {}) };
    let all = import::open::open_input(&args.file, &job);
    if let Ok(input) = &all
        && !import::ncu::Ncu.knows(input)
        && let Ok(profile) = import::read_profile(input, &job)
    {
        if let Some(metrics) = profile.measured.as_ref().and_then(|m| m.metrics.as_ref()).or(profile.metrics.as_ref()) {
            return Ok(Ok(model::Metrics::clone(metrics)));
        }
        if WarpscopeTrace.knows(input) {
            let why =
                profile.notes.iter().find(|n| n.text.starts_with("Nothing was measured") || n.text.starts_with("Stall reasons were not"));
            let what = why.map_or("nothing was measured while the program ran".to_owned(), |n| n.text.trim_end_matches('.').to_owned());
            return Ok(Err(format!("{what}; `warpscope help measure` says how counters and stall reasons are recorded")));
        }
        if !profile.launches.is_empty() || !profile.totals.is_empty() {
            let profiler = if profile.is_amd() { "rocprofv3" } else { "ncu" };
            return Ok(Err(format!(
                "a report of {} without metrics of its kernels; `warpscope rerun` gives the {profiler} command that collects them",
                profile.source.tool
            )));
        }
    }
    ncu::read_metrics(&args.file, &Job { wants: Wants::ALL, ..job }, decimal).map(Ok)
}

/// Prints sections, rules or code from the report.
fn print_details(args: &MetricsArgs, metrics: &model::Metrics, results: &[(usize, &model::ResultMetrics)]) -> Result<(), Failure> {
    let file = args.file.display();
    let has_data = |i: &Input| find_importer(i).is_ok_and(|importer| importer.kernel_data(i) != KernelData::Metrics);
    let input = import::input_if(&args.file, &Job::new(Wants::ALL, &|_| {}), &has_data)?;
    let importer = find_importer(&input)?;
    match importer.kernel_data(&input) {
        KernelData::Metrics => return Err(Failure::wrong(format!("{file}: only a .ncu-rep has sections, rules and code"))),
        KernelData::Code if args.sections || args.rules => {
            return Err(Failure::wrong(format!("{file}: this {} has code, but no sections and rules", importer.name())));
        }
        KernelData::Code | KernelData::Sections => {}
    }
    let in_place = metrics.source.tool == IN_PLACE;
    if in_place && results.iter().all(|(_, r)| r.sampled.is_none()) {
        let how = "`--stalls KERNEL#N` of `warpscope run` samples a launch";
        return Err(Failure::wrong(format!("{file}: no stall reasons were sampled of these kernels: {how}")));
    }
    let (mut sections, mut rules, mut hot) = (Vec::new(), Vec::new(), Vec::new());
    let mut remarks: Vec<String> = Vec::new();
    for &(at, result) in results {
        if in_place && result.sampled.is_none() {
            continue;
        }
        let details = importer.read_details(&input, metrics, at)?;
        if args.sections {
            sections.extend(report::sections::section_metrics(metrics, at, &details));
        } else if args.rules {
            rules.extend(report::sections::rule_messages(at, &details));
        } else {
            let tools = if args.sass { ncu::source::find_disassemblers() } else { Vec::new() };
            let found = importer.read_code(&input, metrics, at, Some(&details), &tools, &Cancel::default())?;
            let listing = code::build_listing(metrics, at, &details, &found, false);
            hot.extend(report::code::hot_rows(at, &listing, args.sass));
            remarks.extend(listing.remarks.iter().filter(|r| args.sass || !r.contains("SASS")).cloned());
        }
    }
    remarks.sort();
    remarks.dedup();
    for remark in remarks {
        print::error(&format!("{file}: {remark}"));
    }
    let (format, width) = (print::format_or_default(args.format), print::terminal_width());
    print::to_stdout(|out| {
        if args.rules {
            report::sections::print_rules(out, &metrics.source, &rules, format, width)
        } else if args.sections {
            report::sections::print_rows(out, &metrics.source, &sections, format, width)
        } else {
            report::code::print_rows(out, &metrics.source, &hot, format, width)
        }
    })
}

/// Prints session information, which is private and only printed on request.
fn print_session(args: &MetricsArgs) -> Result<(), Failure> {
    let job = Job::new(Wants::ALL, &|_| {});
    let input = import::open::open_input(&args.file, &job)?;
    let importer = find_importer(&input)?;
    let facts = importer.read_session(&input)?;
    let source = model::Source { tool: importer.name().to_owned(), file: args.file.clone(), ..model::Source::default() };
    print::to_stdout(|out| {
        report::metrics::print_session(out, &source, &facts, print::format_or_default(args.format), print::terminal_width())
    })
}
