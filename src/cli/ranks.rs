//! `warpscope ranks` and `warpscope digest`: compares the reports of a job's ranks.

use super::failure::{Failure, UNREADABLE};
use super::values::word_parser;
use super::{interrupt, print};
use crate::analysis::ranks::{self, Job, OF_JOBS, build_digests, build_job};
use crate::analysis::triage::{self, Scope, Verdict};
use crate::import::open::rank_report;
use crate::import::{Parts, Wants};
use crate::launch::open;
use crate::launch::runs::host_identity;
use crate::model::clock::LAUNCHERS;
use crate::model::digest::Digest;
use crate::model::units::{format_count, format_grouped};
use crate::model::{Cancel, Profile, Severity};
use crate::report::ranks::Together;
use crate::report::{self, PageFormat};
use clap::builder::PossibleValuesParser;
use std::collections::{HashMap, HashSet};
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

/// `warpscope ranks`.
#[derive(Debug, clap::Args)]
pub struct RanksArgs {
    /// Reports or digests of the ranks, or folders of them.
    #[arg(required = true, value_name = "FILE|FOLDER")]
    pub files: Vec<PathBuf>,
    /// Exit with code 1 if one of these is found; several with commas.
    #[arg(long, value_name = "ID", value_delimiter = ',', value_parser = PossibleValuesParser::new(OF_JOBS.map(Verdict::id)))]
    pub fail_on: Vec<String>,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<PageFormat>())]
    pub format: Option<PageFormat>,
}

/// `warpscope digest`.
#[derive(Debug, clap::Args)]
pub struct DigestArgs {
    /// A rank's report, or one of several ranks.
    #[arg(value_name = "REPORT")]
    pub file: PathBuf,
    /// The digest's name; {rank} stands for the rank [default: the report's name with .wsd].
    #[arg(short, long, value_name = "FILE")]
    pub output: Option<PathBuf>,
    /// The rank, where neither the report nor the launcher's environment says it.
    #[arg(long, value_name = "N")]
    pub rank: Option<u32>,
    /// Replace a file that exists.
    #[arg(long)]
    pub force: bool,
}

/// Maximum depth of folders: one level per rank, or one per host and one per process.
const DEEPEST: usize = 3;

/// Maximum size of a digest file, bytes.
const MOST: u64 = 64 << 20;

/// Collects the reports in a folder and its subfolders. Follows links and visits each folder once, because links may
/// form cycles.
fn gather_reports(folder: &Path, left: usize, seen: &mut HashSet<(u64, u64)>, into: &mut Vec<PathBuf>) -> std::io::Result<()> {
    let meta = std::fs::metadata(folder)?;
    if !seen.insert((meta.dev(), meta.ino())) {
        return Ok(());
    }
    let mut entries: Vec<PathBuf> = std::fs::read_dir(folder)?.flatten().map(|e| e.path()).collect();
    entries.sort();
    // Traces of all processes in a run form one report.
    if entries.iter().any(|e| e.extension().is_some_and(|x| x == "wstrace")) {
        into.push(folder.to_owned());
        return Ok(());
    }
    for path in entries {
        if path.is_dir() && left > 0 {
            gather_reports(&path, left - 1, seen, into)?;
        } else if path.is_file() && rank_report(&path).is_some() {
            into.push(path);
        }
    }
    Ok(())
}

/// Returns the named reports and those in named folders, choosing one if the same report exists in several forms.
fn expand_files(named: &[PathBuf]) -> Result<Vec<PathBuf>, Failure> {
    let mut out = Vec::new();
    for path in named {
        if !path.is_dir() {
            out.push(path.clone());
            continue;
        }
        let mut found = Vec::new();
        gather_reports(path, DEEPEST, &mut HashSet::new(), &mut found).map_err(|e| Failure::wrong(format!("{}: {e}", path.display())))?;
        let digests = found.iter().any(|f| is_digest(f));
        if digests {
            found.retain(|f| is_digest(f));
        }
        let mut best: HashMap<String, usize> = HashMap::new();
        for (stem, kind) in found.iter().filter_map(|f| rank_report(f)) {
            best.entry(stem).and_modify(|k| *k = kind.min(*k)).or_insert(kind);
        }
        let is_best = |f: &PathBuf| rank_report(f).is_none_or(|(stem, kind)| best.get(&stem).is_none_or(|b| kind <= *b));
        let kept: Vec<PathBuf> = found.into_iter().filter(is_best).collect();
        if kept.is_empty() {
            return Err(Failure::wrong(format!("{}: there are no reports of ranks in this folder", path.display())));
        }
        out.extend(kept);
    }
    Ok(out)
}

fn is_digest(file: &Path) -> bool {
    file.extension().is_some_and(|x| x.eq_ignore_ascii_case("wsd"))
}

fn decode_digest(file: &Path) -> Result<Digest, String> {
    let failed = |e: &dyn std::fmt::Display| format!("{}: {e}", file.display());
    let mut bytes = Vec::new();
    let opened = open::open_regular(file).map_err(|e| failed(&e))?;
    std::io::Read::read_to_end(&mut std::io::Read::take(opened, MOST), &mut bytes).map_err(|e| failed(&e))?;
    Digest::from_bytes(&bytes).map_err(|e| failed(&e))
}

/// Decodes digests in parallel; `None` for other reports.
fn decode_digests(files: &[PathBuf]) -> Vec<Option<Result<Vec<Digest>, Failure>>> {
    let threads = std::thread::available_parallelism().map_or(1, std::num::NonZero::get).clamp(1, 16);
    let piece = files.len().div_ceil(threads).max(1);
    std::thread::scope(|scope| {
        let one = |f: &PathBuf| is_digest(f).then(|| decode_digest(f).map(|d| vec![d]));
        let all: Vec<_> =
            files.chunks(piece).map(|part| (part.len(), scope.spawn(move || part.iter().map(one).collect::<Vec<_>>()))).collect();
        // If a thread panicked, its files are read later.
        let parts = all.into_iter().map(|(n, thread)| thread.join().unwrap_or_else(|_| (0..n).map(|_| None).collect()));
        parts.flatten().map(|d| d.map(|d| d.map_err(Failure::wrong))).collect()
    })
}

/// Returns the digests from a file: reads a digest file, or computes digests from a report.
fn read_digests(file: &Path, nsys: Option<&Path>) -> Result<Vec<Digest>, Failure> {
    let shown = file.display().to_string();
    if is_digest(file) {
        return Ok(vec![decode_digest(file).map_err(Failure::wrong)?]);
    }
    let profile = interrupt::open_report(file, nsys.map(Path::to_owned), Wants::TRIAGE.with(Parts::COLLECTIVES))?;
    of_profile(&profile, &shown)
}

/// Computes the digests of a profile; empty if nothing ran on a GPU, as in the launcher of a job's ranks.
fn of_profile(profile: &Profile, shown: &str) -> Result<Vec<Digest>, Failure> {
    if profile.metrics.is_some() {
        let tool = &profile.source.tool;
        return Err(Failure::wrong(format!("{shown}: this is a report of {tool} on single kernels, not of a rank's run")));
    }
    match triage::triage_profile(profile, &Scope::default(), &Cancel::default()) {
        Some(found) => Ok(build_digests(profile, &found, shown)),
        None if let Some(note) = profile.notes.iter().find(|n| n.severity == Severity::Error) => {
            Err(Failure::wrong(format!("{shown}: {}", note.text)))
        }
        None if profile.launches.is_empty() && profile.memops.is_empty() => Ok(Vec::new()),
        None => Err(Failure::wrong(format!("{shown}: the report has no times"))),
    }
}

fn nothing_ran(file: &Path) -> Failure {
    Failure::wrong(format!("{}: nothing ran on a GPU", file.display()))
}

/// Compares the ranks of a job.
pub fn compare_ranks(args: &RanksArgs, nsys: Option<&Path>) -> Result<(), Failure> {
    let (mut all, mut reports, mut failed, mut idle) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let files = expand_files(&args.files)?;
    for (number, (file, early)) in files.iter().zip(decode_digests(&files)).enumerate() {
        match early.unwrap_or_else(|| read_digests(file, nsys)) {
            Ok(found) if found.is_empty() => idle.push(file),
            Ok(found) => {
                reports.extend(found.iter().map(|_| number));
                all.extend(found);
            }
            Err(e) if e.code > 128 => return Err(e),
            // Continue after a damaged report.
            Err(e) => failed.push(e),
        }
    }
    if all.is_empty() {
        failed.extend(idle.iter().map(|f| nothing_ran(f)));
        let last = failed.pop().unwrap_or_else(|| Failure::wrong("no reports were named"));
        for e in &failed {
            print::error(&e.text);
        }
        return Err(last);
    }
    for e in &failed {
        print::error(&e.text);
    }
    let doubles = ranks::without_doubles(&mut all, &mut reports);
    let mut found = build_job(&all);
    found.remarks.extend(doubles);
    if !idle.is_empty() {
        found
            .remarks
            .push(format!("{} left out, in which nothing ran on a GPU (such as the launcher's)", format_count(idle.len(), "report")));
    }
    if !failed.is_empty() {
        found.remarks.push(format!("{} could not be read", format_count(failed.len(), "report")));
    }
    let of = Together { job: &found, digests: &all, reports: &reports };
    let format = print::page_format(args.format);
    print::to_stdout(|out| match format {
        PageFormat::Json => report::ranks::write_job_json(out, &of),
        PageFormat::Csv => report::ranks::print_csv(out, &of, print::terminal_width()),
        PageFormat::Page(renderer) => report::ranks::document(&of).write(out, renderer, Some(print::finding_width())),
    })?;
    if format == PageFormat::Csv && !found.findings.is_empty() {
        let findings = format_count(found.findings.len(), "finding");
        print::note(&format!("the CSV lists ranks only: {findings} and the collectives in --format json"));
    }
    let known = |id: &Verdict| found.findings.iter().any(|f| f.id == *id);
    let fail: Vec<&str> = args.fail_on.iter().filter_map(|id| Verdict::from_id(id)).filter(known).map(Verdict::id).collect();
    if !fail.is_empty() {
        return Err(Failure::found(format!("found: {}", fail.join(", "))));
    }
    // The other reports were printed, but the exit code must tell scripts about the failure.
    if failed.is_empty() {
        require_judged(&args.fail_on, Some(&found))
    } else {
        Err(Failure {
            text: format!("{} could not be read", format_count(failed.len(), "report")),
            code: UNREADABLE,
            reason: crate::cli::reason::Reason::Unreadable,
        })
    }
}

/// Returns an error if a finding to fail on needs several ranks, and could not be looked for.
pub(super) fn require_judged(fail_on: &[String], job: Option<&Job>) -> Result<(), Failure> {
    // Time in exposed collectives shows in each rank's own report.
    let of_several = |id: &&String| OF_JOBS.iter().any(|v| v.id() == **id && *v != Verdict::CommExposed);
    let Some(asked) = fail_on.iter().find(of_several) else { return Ok(()) };
    let because = match job {
        Some(job) => job.unknown_because(),
        None => Some("this is one rank: name the reports of the others, too".to_owned()),
    };
    because.map_or(Ok(()), |because| Err(Failure::wrong(format!("{asked} is neither found nor ruled out: {because}"))))
}

/// Returns the rank that the launcher assigned to this process, and the number of ranks.
fn launcher_rank() -> (Option<u32>, Option<u32>) {
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse().ok());
    LAUNCHERS.iter().find_map(|(rank, world)| Some((Some(number(rank)?), number(world)))).unwrap_or_default()
}

/// Returns the output path of a digest: the given name, or by default a name next to the report. `{rank}` is replaced
/// with the rank.
fn goes_to(args: &DigestArgs, digest: &Digest, at: usize, several: bool) -> Result<PathBuf, Failure> {
    let known = digest.rank.map(|r| r.to_string());
    let asked = args.output.as_ref().is_some_and(|o| o.to_string_lossy().contains("{rank}"));
    if known.is_none() && asked && !several {
        let text = format!("{}: nothing says which rank it is, so {{rank}} stands for nothing: give --rank N", args.file.display());
        return Err(Failure::wrong(text));
    }
    let rank = known.unwrap_or_else(|| at.to_string());
    let Some(output) = &args.output else {
        let (stem, _) = rank_report(&args.file).unwrap_or_else(|| (args.file.display().to_string(), 0));
        let stem = stem.trim_end_matches('/');
        return Ok(PathBuf::from(if several { format!("{stem}-rank{rank}.wsd") } else { format!("{stem}.wsd") }));
    };
    let text = output.to_str().unwrap_or_default();
    if several && !text.contains("{rank}") {
        let text = format!("{}: it holds several ranks; name their digests with {{rank}}: -o 'rank{{rank}}.wsd'", args.file.display());
        return Err(Failure::wrong(text));
    }
    Ok(PathBuf::from(text.replace("{rank}", &rank)))
}

/// Writes one digest for each rank in a report.
pub fn write_digests(args: &DigestArgs, nsys: Option<&Path>) -> Result<(), Failure> {
    if is_digest(&args.file) {
        return Err(Failure::wrong(format!("{}: it is a digest already; `warpscope ranks` reads it", args.file.display())));
    }
    let mut all = read_digests(&args.file, nsys)?;
    if all.is_empty() {
        return Err(nothing_ran(&args.file));
    }
    let several = all.len() > 1;
    if several && args.rank.is_some() {
        return Err(Failure::wrong(format!("{}: it holds several ranks, so --rank cannot say which one it is", args.file.display())));
    }
    if let [one] = &mut all[..] {
        let (rank, world) = launcher_rank();
        // If the launcher sets the rank, this process runs on the rank's own machine.
        if rank.is_some() {
            one.host = one.host.take().or_else(host_identity::hostname);
        }
        one.rank = args.rank.or(one.rank).or(rank).or_else(|| ranks::in_name(&one.file));
        one.world = one.world.or(world);
    }
    for (at, one) in all.iter_mut().enumerate() {
        // Drop the folder, which is private; the name identifies the original report.
        one.file = Path::new(&one.file).file_name().map_or_else(|| one.file.clone(), |n| n.to_string_lossy().into_owned());
        let path = goes_to(args, one, at, several)?;
        let bytes = one.to_bytes();
        super::save::write_atomically(&path, args.force, |out| std::io::Write::write_all(out, &bytes))?;
        let thinned = one.collectives.as_ref().map_or(1, |c| c.each);
        let rest = if thinned > 1 { format!(", one collective of {thinned}") } else { String::new() };
        let rank = one.rank.map_or_else(|| "rank not known".to_owned(), |r| format!("rank {r}"));
        let size = format_grouped(bytes.len());
        print::to_stdout(|out| writeln!(out, "{}: {rank}, {size} bytes{rest}", path.display()))?;
    }
    Ok(())
}

/// Returns the ranks of reports to be analyzed together; `None` if they have no collectives in common.
pub fn of_reports(judged: &[(&Profile, &triage::Triage)]) -> Option<(Vec<Digest>, Vec<usize>, ranks::Job)> {
    let (mut all, mut reports) = (Vec::new(), Vec::new());
    for (number, (profile, found)) in judged.iter().enumerate() {
        let talks = triage::device_ops::find_collectives(profile).into_iter().any(|c| c);
        let list = if talks { build_digests(profile, found, &profile.source.file.display().to_string()) } else { Vec::new() };
        reports.extend(list.iter().map(|_| number));
        all.extend(list);
    }
    if all.len() < 2 {
        return None;
    }
    let found = build_job(&all);
    (!found.matches.list.is_empty()).then_some((all, reports, found))
}
