//! `warpscope memory`: memory usage of a program.

use super::failure::Failure;
use super::values::word_parser;
use super::{interrupt, print};
use crate::analysis::memory::{MemoryVerdict, Usage, analyze_usage as memory_usage};
use crate::import::{Names, Parts, Wants};
use crate::model::units::format_count;
use crate::model::{Cancel, Nanos, Profile};
use crate::report::PageFormat;
use crate::report::memory::{self, Memory, Wanted, When};
use clap::builder::PossibleValuesParser;
use std::path::Path;
use std::path::PathBuf;

/// Time at which `warpscope memory` lists the holders.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoryWhen {
    Peak,
    End,
    /// Time, ns.
    At(i64),
}

fn memory_when(text: &str) -> Result<MemoryWhen, String> {
    match text {
        "peak" => Ok(MemoryWhen::Peak),
        "end" => Ok(MemoryWhen::End),
        time => super::time_window::parse_time(time).map(MemoryWhen::At).map_err(|e| format!("write peak, end, or a time: {e}")),
    }
}

/// `warpscope memory`.
#[derive(Debug, clap::Args)]
pub struct MemoryArgs {
    /// Memory snapshot (.pickle), or a timeline with memory (nsys, torch.profiler, our own trace).
    pub file: PathBuf,
    /// Compare with this report: what holds more than before, and what less.
    #[arg(long, value_name = "FILE")]
    pub before: Option<PathBuf>,
    /// List who holds memory at this time: peak, end, or a time in the report such as 1.25s or 340ms.
    #[arg(long, value_name = "WHEN", default_value = "peak", value_parser = memory_when)]
    pub at: MemoryWhen,
    /// Rows at most.
    #[arg(long, value_name = "N")]
    pub top: Option<usize>,
    /// Exit with code 1 if one of these is found; several with commas.
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = PossibleValuesParser::new(MemoryVerdict::ALL.map(MemoryVerdict::id)))]
    pub fail_on: Vec<String>,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<PageFormat>())]
    pub format: Option<PageFormat>,
}

fn read_usage(file: &Path, nsys: Option<&Path>) -> Result<(Profile, Usage), Failure> {
    let wants = Wants { names: Names::All, parts: Parts::MEMORY | Parts::RANGES | Parts::PYTHON };
    let profile = interrupt::open_report(file, nsys.map(Path::to_owned), wants)?;
    print::warn(&profile);
    let Some(usage) = memory_usage(&profile, &Cancel::default()) else {
        return Err(Failure::wrong(format!(
            "{}: nothing is recorded of memory; record it with torch.cuda.memory._record_memory_history() and _dump_snapshot(), with profile_memory=True, with `nsys profile --cuda-memory-usage=true`, with `warpscope trace --memory` or, on AMD GPUs, with `rocprofv3 --memory-allocation-trace`",
            file.display()
        )));
    };
    Ok((profile, usage))
}

/// Prints memory usage and problems with it.
pub fn print_memory(args: &MemoryArgs, nsys: Option<&Path>) -> Result<(), Failure> {
    let (profile, usage) = read_usage(&args.file, nsys)?;
    let before = args.before.as_deref().map(|file| read_usage(file, nsys)).transpose()?;
    let of = Memory { profile: &profile, usage: &usage };
    let before = before.as_ref().map(|(profile, usage)| Memory { profile, usage });
    let when = match args.at {
        MemoryWhen::Peak => When::Peak,
        MemoryWhen::End => When::End,
        MemoryWhen::At(time) => When::At(time),
    };
    let span = usage.devices.iter().filter_map(|d| d.ledger.span()).reduce(|a, b| (a.0.min(b.0), a.1.max(b.1)));
    if let (When::At(_), true) = (when, profile.memory.untimed) {
        return Err(Failure::wrong(format!("{}: this snapshot has no times; write --at peak or --at end", args.file.display())));
    }
    if let (When::At(time), Some((begin, end))) = (when, span)
        && !(begin..=end).contains(&time)
    {
        let file = args.file.display();
        return Err(Failure::wrong(format!(
            "{file}: nothing is known of {}: the report has {} to {}",
            Nanos(time),
            Nanos(begin),
            Nanos(end)
        )));
    }
    let wanted = Wanted { when, top: args.top };
    let format = print::page_format(args.format);
    print::to_stdout(|out| memory::print_memory(out, &of, wanted, before.as_ref(), format, print::terminal_width()))?;
    let findings: usize = usage.devices.iter().map(|d| d.findings.len()).sum();
    if format == PageFormat::Csv && findings > 0 {
        print::note(&format!("the CSV lists blocks only: {} in --format json", format_count(findings, "finding")));
    }
    let found = |id: &MemoryVerdict| usage.devices.iter().any(|d| d.findings.iter().any(|f| f.id == *id));
    let failed: Vec<&str> = args.fail_on.iter().filter_map(|id| MemoryVerdict::from_id(id)).filter(found).map(MemoryVerdict::id).collect();
    if failed.is_empty() { Ok(()) } else { Err(Failure::found(format!("found: {}", failed.join(", ")))) }
}
