//! `warpscope export`: writes reports in formats that other programs can query.

use super::failure::Failure;
use super::{interrupt, print, save};
use crate::analysis::ranks::{build_digests, in_name};
use crate::analysis::triage::{self, Scope};
use crate::import::{Parts, Wants};
use crate::model::units::format_grouped;
use crate::model::{Cancel, Nanos, Profile};
use crate::report::parquet_export::{Of, TABLES};
use crate::report::trace_event::{self, Chrome, ExportedReport, Perfetto, Sink};
use std::path::{Path, PathBuf};

/// Formats of `warpscope export`.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum ExportFormat {
    #[allow(clippy::doc_markdown, reason = "this is the text of --help")]
    /// A file for each table and report, in folders by run and rank: for DuckDB, Spark, pandas.
    Parquet,
    /// One file of protobuf for Perfetto (ui.perfetto.dev, `trace_processor`): tracks, flows from calls to kernels, counters, findings.
    Perfetto,
    /// The same as JSON, for viewers that read Chrome's traces.
    Chrome,
}

/// `warpscope export`.
#[derive(Debug, clap::Args)]
pub struct ExportArgs {
    /// Timelines: of one run, or of the ranks of a job.
    #[arg(required = true, value_name = "REPORT")]
    pub files: Vec<PathBuf>,
    /// Output format.
    #[arg(long, default_value = "parquet")]
    pub format: ExportFormat,
    /// The folder to write to (created if missing); for a trace, the file.
    #[arg(short, long, value_name = "FOLDER|FILE")]
    pub output: PathBuf,
    /// Only what happened in this window; of traces.
    #[command(flatten)]
    pub between: super::time_window::Between,
    /// Export only these tables, separated by commas: launches, calls, memcpys, ranges, collectives, findings.
    #[arg(long, value_name = "TABLE", value_delimiter = ',')]
    pub tables: Vec<String>,
    /// Name of the run in the partitions [default: the common part of the reports' names].
    #[arg(long, value_name = "NAME")]
    pub run: Option<String>,
    /// Replace files that exist.
    #[arg(long)]
    pub force: bool,
}

/// Escapes the value of a path partition as Hive does: characters that are special to file systems or readers.
fn escape_partition(text: &str) -> String {
    let plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.' | ' ');
    let mut out = String::new();
    for c in text.chars() {
        if plain(c) {
            out.push(c);
        } else {
            let mut bytes = [0; 4];
            out.extend(c.encode_utf8(&mut bytes).bytes().map(|b| format!("%{b:02X}")));
        }
    }
    if out.chars().all(|c| c == '.') { "report".to_owned() } else { out }
}

/// Returns the name of a report: its file name without extensions.
fn report_name(file: &Path) -> String {
    let name = file.file_name().map_or_else(|| "report".to_owned(), |n| n.to_string_lossy().into_owned());
    name.split_once('.').map_or(name.clone(), |(stem, _)| stem.to_owned())
}

/// Returns a run name for several reports: the common prefix of their names, without the word before a rank number.
fn common_name(files: &[PathBuf]) -> String {
    let names: Vec<String> = files.iter().map(|f| report_name(f)).collect();
    let first = names.first().cloned().unwrap_or_default();
    let same = |n: usize| names.iter().all(|o| o.chars().take(n).eq(first.chars().take(n)));
    let n = (0..=first.chars().count()).rev().find(|&n| same(n)).unwrap_or(0);
    let text: String = first.chars().take(n).collect();
    if names.len() < 2 {
        return text;
    }
    let end = |c: char| !c.is_alphanumeric();
    let text = text.trim_end_matches(|c: char| c.is_ascii_digit()).trim_end_matches(end);
    let text = text.strip_suffix("rank").unwrap_or(text).trim_end_matches(end);
    if text.is_empty() { "job".to_owned() } else { text.to_owned() }
}

/// Writes reports as Parquet tables, or as one trace for Perfetto or Chrome.
pub fn export_reports(args: &ExportArgs, nsys: Option<&Path>) -> Result<(), Failure> {
    let trace = args.format != ExportFormat::Parquet;
    if trace {
        return export_trace(args, nsys);
    }
    if args.between.to_window().map_err(Failure::usage)?.is_some() {
        return Err(Failure::usage("--from and --to are for traces: --format perfetto or chrome"));
    }
    let unknown = args.tables.iter().find(|t| !TABLES.iter().any(|known| known.0 == **t));
    if let Some(unknown) = unknown {
        let all: Vec<&str> = TABLES.iter().map(|t| t.0).collect();
        return Err(Failure::usage(format!("unknown table `{unknown}`: the tables are {}", all.join(", "))));
    }
    for file in &args.files {
        export_tables(args, file, &open_timeline(file, nsys, Wants::TRIAGE.with(Parts::COLLECTIVES))?)?;
    }
    Ok(())
}

/// Opens a timeline report.
fn open_timeline(file: &Path, nsys: Option<&Path>, wants: Wants) -> Result<Profile, Failure> {
    let profile = interrupt::open_report(file, nsys.map(Path::to_owned), wants)?;
    if profile.metrics.is_some() {
        let tool = &profile.source.tool;
        return Err(Failure::wrong(format!(
            "{}: this is a report of {tool} on single kernels; `warpscope metrics` lists them",
            file.display()
        )));
    }
    print::warn(&profile);
    Ok(profile)
}

/// Offset between the process ids of a job's reports; larger than any process id on Linux.
const APART: u32 = 1 << 23;

/// Writes one trace of all reports.
fn export_trace(args: &ExportArgs, nsys: Option<&Path>) -> Result<(), Failure> {
    if !args.tables.is_empty() || args.run.is_some() {
        return Err(Failure::usage("--tables and --run are for --format parquet"));
    }
    let window = args.between.to_window().map_err(Failure::usage)?.unwrap_or((i64::MIN, i64::MAX));
    let mut all = Vec::new();
    for file in &args.files {
        let profile = open_timeline(file, nsys, Wants::EXPLORER)?;
        let found = triage::triage_profile(&profile, &Scope::default(), &Cancel::default());
        let rank = profile.rank.rank.or_else(|| in_name(&file.display().to_string()).filter(|_| args.files.len() > 1));
        let name = match rank {
            Some(rank) => format!("rank {rank}"),
            None if args.files.len() > 1 => self::report_name(file),
            None => String::new(),
        };
        all.push((profile, found, name));
    }
    // Use a common clock if all reports record theirs; shift the earliest time to 0 or later.
    let epochs: Option<Vec<i64>> = all.iter().map(|a| a.0.clock.epoch_ns).collect();
    let epochs = epochs.filter(|_| all.len() > 1);
    if all.len() > 1 && epochs.is_none() {
        print::error("not all reports say when their clock began: each begins at its own 0");
    }
    let zero = epochs.as_ref().and_then(|e| e.iter().min()).copied().unwrap_or(0);
    let shift = |at: usize| epochs.as_ref().map_or(0, |e| e[at] - zero);
    let first = (0..all.len()).map(|at| first_time(&all[at].0).saturating_add(shift(at))).min().unwrap_or(0).min(0);
    let parts: Vec<ExportedReport<'_>> = (0_u32..)
        .zip(&all)
        .map(|(at, (profile, found, name))| ExportedReport {
            profile,
            triage: found.as_ref(),
            shift: shift(at as usize) - first,
            name,
            pids: at * APART,
            flows: u64::from(at) << 40,
        })
        .collect();
    save::refuse_overwrite(&args.output, &args.files)?;
    save::write_atomically(&args.output, args.force, |out| match args.format {
        ExportFormat::Chrome => write_parts(&mut Chrome::new(out), &parts, window),
        ExportFormat::Perfetto | ExportFormat::Parquet => write_parts(&mut Perfetto::new(out), &parts, window),
    })?;
    let size = std::fs::metadata(&args.output).map_or(0, |m| m.len());
    print::to_stdout(|out| writeln!(out, "{}: {}", args.output.display(), crate::model::Bytes(size)))
}

fn write_parts(sink: &mut impl Sink, parts: &[ExportedReport<'_>], window: (i64, i64)) -> std::io::Result<()> {
    let mut events = 0;
    for part in parts {
        events += trace_event::write_trace(sink, *part, window)?;
    }
    if events == 0 {
        let spans: Vec<String> =
            parts.iter().filter_map(|p| p.triage.map(|t| format!("{} to {}", Nanos(t.span.0), Nanos(t.span.1)))).collect();
        let where_to = if spans.is_empty() { String::new() } else { format!("; the GPU worked from {}", spans.join(", ")) };
        return Err(std::io::Error::other(format!("nothing happened in this window{where_to}")));
    }
    sink.finish()
}

/// Returns the earliest time of a report.
fn first_time(p: &Profile) -> i64 {
    let launches = (0..p.launches.len()).map(|r| p.launches.start(r).min(p.launches.call(r).map_or(i64::MAX, |c| c.0)));
    let others = p.calls.start.iter().chain(&p.os_calls.start).copied().chain(p.memops.iter().map(|m| m.start.0));
    let more = p.ranges.iter().map(|r| r.start).chain(p.memory.events.first().map(|e| e.time)).chain(p.graphs.iter().map(|g| g.start.0));
    launches.chain(others).chain(more).chain(p.counters.iter().filter_map(|c| c.times.first().copied())).min().unwrap_or(0)
}

fn export_tables(args: &ExportArgs, file: &Path, profile: &Profile) -> Result<(), Failure> {
    let wanted = |table: &str| args.tables.is_empty() || args.tables.iter().any(|t| t == table);
    // Only these two tables require the analysis.
    let judged = wanted("findings") || wanted("collectives");
    let found = judged.then(|| triage::triage_profile(profile, &Scope::default(), &Cancel::default())).flatten();
    let shown = file.display().to_string();
    let ranks = found.as_ref().map(|t| build_digests(profile, t, &shown)).unwrap_or_default();
    let of = Of { profile, triage: found.as_ref(), digests: &ranks };
    let run = args.run.clone().filter(|r| !r.is_empty()).unwrap_or_else(|| common_name(&args.files));
    let rank = profile.rank.rank.or_else(|| in_name(&shown)).map(|r| r.to_string());
    let report = report_name(file);
    for (table, about, make) in TABLES.iter().filter(|t| wanted(t.0)) {
        let made = make(of);
        if made.rows == 0 {
            continue;
        }
        // Hive's name for an unknown partition value.
        let rank = rank.as_deref().unwrap_or("__HIVE_DEFAULT_PARTITION__");
        let folder = args.output.join(table).join(format!("run={}", escape_partition(&run))).join(format!("rank={rank}"));
        let path = folder.join(format!("{}.parquet", escape_partition(&report)));
        let mut facts = vec![("table", format!("a row is {about}")), ("tool", profile.source.tool.clone())];
        facts.extend(profile.rank.host.clone().map(|h| ("host", h)));
        facts.extend(profile.clock.epoch_ns.map(|e| ("epoch_ns", e.to_string())));
        facts.extend(rank.parse::<u32>().ok().map(|r| ("rank", r.to_string())));
        save::write_atomically(&path, args.force, |out| made.write(out, &facts))?;
        let rows = format_grouped(made.rows);
        print::to_stdout(|out| writeln!(out, "{}: {rows} rows", path.display()))?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_names_of_folders() {
        assert_eq!(
            [escape_partition("step 1/2"), escape_partition("a=b%"), escape_partition(".."), escape_partition("é")],
            ["step 1%2F2", "a%3Db%25", "report", "%C3%A9"]
        );
        assert_eq!(report_name(Path::new("/x/llm.pt.trace.json.gz")), "llm");
        let run = |files: &[&str]| common_name(&files.iter().map(PathBuf::from).collect::<Vec<_>>());
        assert_eq!(
            [run(&["a/x.sqlite"]), run(&["train_rank0.json", "train_rank12.json"]), run(&["0.json", "1.json"])],
            ["x", "train", "job"]
        );
    }
}
