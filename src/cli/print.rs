//! The `top` and `launches` commands, and output to stdout and stderr.

use super::failure::Failure;
use super::interrupt;
use super::scope_args::phase_parts;
use super::time_window::Between;
use super::values::kernel_sort_parser;
use super::values::launch_sort_parser;
use super::values::word_parser;
use crate::analysis::readable::readable_name;
use crate::analysis::run_estimate::RunEstimate;
use crate::analysis::select::{self, Selected};
use crate::analysis::table::Sort;
use crate::analysis::table::kernels::sort_groups;
use crate::analysis::table::launches::{LAUNCH, LaunchRow, sort_launches};
use crate::analysis::triage::Phase;
use crate::analysis::what_if_curves::Worths;
use crate::analysis::{GroupBy, Grouping, Paths, kernel_groups, labels};
use crate::import::{Names, Parts, Wants};
use crate::model::text::escape_unsafe;
use crate::model::units::format_count;
use crate::model::{Cancel, Kernel, KernelId, Profile};
use crate::report::document::Renderer;
use crate::report::output::{BOLD, Cut, has_bold, output, take_cut};
use crate::report::{self, Format, PageFormat};
use clap::builder::PossibleValuesParser;
use std::collections::BTreeSet;
use std::ffi::OsStr;
use std::io::{BufWriter, IsTerminal, Write};
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};

/// `warpscope top`.
#[derive(Debug, clap::Args)]
pub struct TopArgs {
    /// Report.
    pub file: PathBuf,
    /// Group launches by this criterion.
    #[arg(long, default_value = "kernel", value_parser = word_parser::<GroupBy>())]
    pub by: GroupBy,
    /// Rank groups by this column.
    #[arg(long, default_value = "total", value_parser = kernel_sort_parser())]
    pub sort: Sort,
    /// List at most N groups.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub limit: Option<usize>,
    /// Only groups whose name contains TEXT (in any case).
    #[arg(long, value_name = "TEXT", alias = "kernel")]
    pub filter: Option<String>,
    /// Only launches of this phase of the run [default: all of them]; the explorer shows the steady ones first.
    #[arg(long, value_name = "PHASE", value_parser = PossibleValuesParser::new(Phase::ALL.map(|p| p.1)), conflicts_with_all = ["from", "to"])]
    pub phase: Option<String>,
    /// Only launches that start on the GPU in this window.
    #[command(flatten)]
    pub between: Between,
    /// Output format [default: table on a terminal, else csv]. JSON has what the run would save without each kernel, too: `warpscope help formats`.
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// `warpscope launches`.
#[derive(Debug, clap::Args)]
pub struct LaunchesArgs {
    /// Report.
    pub file: PathBuf,
    /// Only launches of this kernel: an exact function or demangled name, otherwise a fuzzy match that must be unique.
    #[arg(long, value_name = "SEL")]
    pub kernel: Option<String>,
    /// Order [default: launch order on the host].
    #[arg(long, value_parser = launch_sort_parser())]
    pub sort: Option<Sort>,
    /// List at most N launches.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub limit: Option<usize>,
    /// Only launches that start on the GPU in this window.
    #[command(flatten)]
    pub between: Between,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// Prints a note or warning to stderr, unless the user has disabled them.
pub fn note(text: &str) {
    if !output().quiet {
        error(text);
    }
}

/// Prints one sentence to stderr, safe for a terminal. Write errors (full disk, closed pipe or terminal) are ignored.
pub fn error(text: &str) {
    let _ = writeln!(std::io::stderr(), "warpscope: {}", escape_unsafe(text));
}

/// Returns the parts of a report that a grouping needs.
fn wants_for_grouping(by: GroupBy) -> Wants {
    match by {
        GroupBy::Demangled => Wants { names: Names::Demangled, ..Wants::TABLE },
        GroupBy::Kernel | GroupBy::Name | GroupBy::Mangled => Wants::TABLE,
        GroupBy::Config | GroupBy::Stream | GroupBy::Device | GroupBy::Process => Wants::TABLE.with(Parts::STARTS | Parts::DETAILS),
        GroupBy::Nvtx => Wants::LAUNCHES,
        GroupBy::Line => Wants::LAUNCHES.with(Parts::THREADS),
    }
}

/// Returns the requested format, or by default a table on a terminal and CSV elsewhere.
pub fn format_or_default(format: Option<Format>) -> Format {
    format_or(format, Format::Csv)
}

/// Returns the requested format, or by default a table on a terminal and the given format elsewhere.
pub fn format_or(format: Option<Format>, elsewhere: Format) -> Format {
    format.unwrap_or(if std::io::stdout().is_terminal() { Format::Table } else { elsewhere })
}

/// Returns the width of the terminal if stdout is one.
pub fn terminal_width() -> Option<usize> {
    std::io::stdout().is_terminal().then(|| crossterm::terminal::size().ok()).flatten().map(|(w, _)| usize::from(w)).filter(|&w| w > 0)
}

/// Returns the requested format of a document, or by default text on a terminal and CSV elsewhere.
pub fn page_format(format: Option<PageFormat>) -> PageFormat {
    let text = std::io::stdout().is_terminal();
    format.unwrap_or(if text { PageFormat::Page(Renderer::Text) } else { PageFormat::Csv })
}

/// Returns the width for the explanation of a command: the terminal's, within readable limits; 100 without a terminal.
pub fn page_width() -> usize {
    terminal_width().unwrap_or(100).clamp(60, 140)
}

/// Returns the width for a page of findings: the terminal's, within readable limits; 110 without a terminal.
pub fn finding_width() -> usize {
    terminal_width().unwrap_or(110).clamp(60, 140)
}

/// The command that lists the kernels of a capture.
pub const LISTS_KERNELS: &str = "warpscope top";

/// Maximum number of kernels listed for an ambiguous selector.
const MOST_NAMED: usize = 8;

/// Restricts terminal output to ASCII; files and pipes get the text unchanged.
static ASCII: AtomicBool = AtomicBool::new(false);

/// Enables or disables ASCII-only output on a terminal.
pub fn set_ascii(only: bool) {
    ASCII.store(only, Ordering::Relaxed);
}

/// Line-buffered output. On a terminal, control sequences in the data are made visible; elsewhere, only bold headings
/// are converted.
struct Cleaned<W: Write> {
    to: W,
    line: Vec<u8>,
    terminal: bool,
}

impl<W: Write> Cleaned<W> {
    fn write_line(&mut self) -> std::io::Result<()> {
        let line = std::mem::take(&mut self.line);
        if !self.terminal && !has_bold() {
            return self.to.write_all(&line);
        }
        let text = String::from_utf8_lossy(&line);
        let mut text = if self.terminal { escape_unsafe(&text) } else { text };
        for (stand_in, sequence) in BOLD {
            if has_bold() && text.contains(stand_in) {
                text = text.replace(stand_in, sequence).into();
            }
        }
        if self.terminal && ASCII.load(Ordering::Relaxed) {
            return self.to.write_all(crate::ui::ascii::to_ascii(&text).as_bytes());
        }
        self.to.write_all(text.as_bytes())
    }
}

impl<W: Write> Write for Cleaned<W> {
    fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
        for part in bytes.split_inclusive(|&b| b == b'\n') {
            match part.strip_suffix(b"\n") {
                Some(rest) => {
                    self.line.extend_from_slice(rest);
                    self.write_line()?;
                    self.to.write_all(b"\n")?;
                }
                None => self.line.extend_from_slice(part),
            }
        }
        Ok(bytes.len())
    }

    fn flush(&mut self) -> std::io::Result<()> {
        self.write_line()?;
        self.to.flush()
    }
}

/// Set once a command has begun to write its output.
static BEGUN: AtomicBool = AtomicBool::new(false);

/// Returns true if a command has written output, complete or not.
pub fn has_begun() -> bool {
    BEGUN.load(Ordering::Relaxed)
}

/// Writes to stdout through a buffer; a closed pipe is not an error.
pub fn to_stdout(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Failure> {
    BEGUN.store(true, Ordering::Relaxed);
    if let Some(budget) = output().budget {
        let mut all = Vec::new();
        write(&mut all)?;
        let (kept, sentence) = match take_cut() {
            None => cut_lines(&all, budget),
            Some(Cut::Said) => (&all[..], None),
            Some(Cut::Unsaid(sentence)) => (&all[..], Some(sentence)),
        };
        write_stdout(|out| out.write_all(kept))?;
        if let Some(sentence) = sentence {
            note(&sentence);
        }
        return Ok(());
    }
    write_stdout(write)
}

/// Cuts text to the lines that fit. JSON documents have already been cut; other output starts with what matters most.
fn cut_lines(text: &[u8], budget: usize) -> (&[u8], Option<String>) {
    if text.len() <= budget || text.starts_with(b"{") || text.starts_with(b"[") {
        return (text, None);
    }
    let end = text[..budget].iter().rposition(|&b| b == b'\n').map_or(budget, |at| at + 1);
    let lines = text[end..].split_inclusive(|&b| b == b'\n').count() as u64;
    let whole = crate::rerun::shell::command_line(&output().whole);
    (&text[..end], Some(format!("{} left out for the budget; all of it: {whole}", format_count(lines, "line"))))
}

fn write_stdout(write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Failure> {
    let terminal = std::io::stdout().is_terminal();
    if terminal && let Some(pager) = std::env::var_os("WARPSCOPE_PAGER").filter(|p| !p.is_empty()) {
        return write_to_pager(&pager, write);
    }
    let mut out = BufWriter::with_capacity(1 << 16, std::io::stdout().lock());
    if terminal || output().bold {
        let mut out = Cleaned { to: out, line: Vec::new(), terminal };
        let result = write(&mut out).and_then(|()| out.flush());
        let (_, _) = out.to.into_parts();
        return Ok(report::tolerate_broken_pipe(result)?);
    }
    let result = write(&mut out).and_then(|()| out.flush());
    // Do not flush again: the rest of the buffer cannot be written either.
    let (_, _) = out.into_parts();
    Ok(report::tolerate_broken_pipe(result)?)
}

/// Writes to a pager, which is a shell command, and waits until the user quits it.
fn write_to_pager(pager: &OsStr, write: impl FnOnce(&mut dyn Write) -> std::io::Result<()>) -> Result<(), Failure> {
    let mut command = Command::new("/bin/sh");
    command.arg("-c").arg(pager).stdin(Stdio::piped());
    if std::env::var_os("LESS").is_none() {
        // Exit if the text fits on the screen, show bold text, and leave the text on the screen.
        command.env("LESS", "FRX");
    }
    interrupt::leave_interrupts_to_pager()?;
    let failed = |e: std::io::Error| Failure::unable(format!("WARPSCOPE_PAGER={}: {e}", pager.display()));
    let mut child = command.spawn().map_err(failed)?;
    let result = child.stdin.take().map_or(Ok(()), |to| {
        let mut out = Cleaned { to: BufWriter::with_capacity(1 << 16, to), line: Vec::new(), terminal: true };
        let result = write(&mut out).and_then(|()| out.flush());
        let (_, _) = out.to.into_parts();
        result
    });
    let status = child.wait().map_err(failed)?;
    report::tolerate_broken_pipe(result)?;
    // When Ctrl-C interrupts a pager, its shell ends with that signal.
    if status.success() || status.signal() == Some(signal_hook::consts::SIGINT) {
        Ok(())
    } else {
        Err(Failure::unable(format!("WARPSCOPE_PAGER={}: {status}", pager.display())))
    }
}

pub fn lines(lines: &[String]) -> Result<(), Failure> {
    to_stdout(|out| lines.iter().try_for_each(|l| writeln!(out, "{l}")))
}

/// Prints notes about incomplete figures to stderr, since CSV does not contain notes.
pub fn warn(profile: &crate::model::Profile) {
    use crate::model::{NoteKind, Severity};
    let matters = |n: &&crate::model::Note| {
        matches!(n.kind, NoteKind::Empty | NoteKind::Graphs | NoteKind::Damaged | NoteKind::Lost) || n.severity == Severity::Error
    };
    notes(&profile.file_name(), profile.notes.iter().filter(matters));
}

/// Returns the sentences of notes without duplicates, most severe first.
fn unique_sentences<'a>(notes: impl Iterator<Item = &'a crate::model::Note>) -> Vec<String> {
    let mut notes: Vec<_> = notes.collect();
    notes.sort_by_key(|n| std::cmp::Reverse(n.severity));
    let mut said = BTreeSet::new();
    notes.into_iter().map(crate::model::Note::to_sentence).filter(|s| said.insert(s.clone())).collect()
}

/// Prints notes to stderr without duplicates, most severe first.
pub fn notes<'a>(file: &str, notes: impl Iterator<Item = &'a crate::model::Note>) {
    for sentence in unique_sentences(notes) {
        note(&format!("{file}: {sentence}"));
    }
}

fn no_launch_between(file: &Path) -> Failure {
    Failure::wrong(format!("{}: no kernel was launched between these times", file.display()))
}

/// `warpscope top`: prints groups of launches.
pub fn top(args: &TopArgs, nsys: Option<PathBuf>) -> Result<(), Failure> {
    let between = args.between.to_window().map_err(Failure::usage)?;
    let parts = if between.is_some() { wants_for_grouping(args.by).with(Parts::STARTS) } else { wants_for_grouping(args.by) };
    // The prediction also needs the calls and copies that kernels wait for, and exists only for the whole run.
    let phase = args.phase.as_deref().and_then(Phase::of);
    let part = between.is_some() || phase.is_some();
    let predicts = format_or_default(args.format) == Format::Json && args.by.is_kernel() && !part;
    let parts = if phase.is_some() { Wants { names: parts.names, ..Wants::TRIAGE } } else { parts };
    let parts = if predicts { Wants { names: parts.names, ..Wants::LAUNCHES }.with(Parts::MEMOPS) } else { parts };
    let profile = interrupt::open_report(&args.file, nsys, parts)?;
    if part {
        require_times(&profile, &args.file)?;
    }
    let judged = phase.map(|p| phase_parts(&profile, &args.file.display().to_string(), p)).transpose()?;
    let window = judged.as_ref().map(|j| j.0).or(between);
    let paths = args.by.needs_paths().then(|| Paths::from_profile(&profile));
    let grouping = Grouping::from_parts(&profile, args.by, paths.as_ref(), window, judged.map(|j| j.1));
    if let Some(why) = grouping.unavailable {
        warn(&profile);
        return Err(Failure::wrong(format!("{}: cannot group by {}: {why}", args.file.display(), args.by.cli_name())));
    }
    if between.is_some() && grouping.rows.is_empty() {
        return Err(no_launch_between(&args.file));
    }
    let needle = args.filter.as_deref().unwrap_or_default().to_lowercase();
    let rows: Vec<u32> =
        (0..).zip(&grouping.rows).filter(|(_, r)| kernel_groups::is_named(&profile.kernels, r, &needle)).map(|(i, _)| i).collect();
    let mut rows = sort_groups(&grouping.rows, &rows, args.sort, args.sort.ascending);
    rows.truncate(args.limit.unwrap_or(usize::MAX));
    warn(&profile);
    let estimate = if part { None } else { RunEstimate::from_grouping(&profile, &grouping, paths.as_ref()) };
    if let Some(estimate) = &estimate {
        note(&format!("{}; `--format json` has both for each row (`whole_run`)", estimate.to_sentence()));
    }
    let worths = if predicts { predict_worths(&profile, args.by, rows.len()) } else { None };
    let beyond = report::top::Beyond { worths, estimate, ..report::top::Beyond::default() };
    to_stdout(|out| match format_or_default(args.format) {
        Format::Json => report::top::write_json(out, &profile, &grouping, &rows, &beyond),
        format => report::top::print_rows(out, &profile, &grouping, &rows, format, terminal_width(), &beyond),
    })
}

/// Predicts how much faster kernels would speed up the run, by the kernel names used in the rows.
fn predict_worths(profile: &Profile, by: GroupBy, rows: usize) -> Option<Worths> {
    let name = |k: &'_ Kernel| -> String {
        match by {
            GroupBy::Kernel => readable_name(k).into_owned(),
            GroupBy::Demangled => k.demangled().to_owned(),
            GroupBy::Mangled => k.mangled().to_owned(),
            _ => k.function().to_owned(),
        }
    };
    let names: Vec<String> = profile.kernels.iter().map(name).collect();
    Worths::for_names(profile, &names.iter().map(String::as_str).collect::<Vec<_>>(), rows, &Cancel::default())
}

/// Fails if the launches have no times.
pub fn require_times(profile: &Profile, file: &Path) -> Result<(), Failure> {
    if profile.launches.has_start_times() { Ok(()) } else { Err(Failure::wrong(format!("{}: its launches have no times", file.display()))) }
}

/// Returns the kernels matched by a selector, or an error if none or too many match.
pub fn select_kernels(all: &[Kernel], file: &Path, selector: &str, lists: &str) -> Result<BTreeSet<KernelId>, Failure> {
    match select::select_kernels(all, selector) {
        Selected::Kernels(kernels) => Ok(kernels),
        Selected::Nothing => Err(Failure::wrong(format!("{}: no kernel matches {selector:?}; `{lists}` lists them", file.display()))),
        Selected::Ambiguous(names) => {
            let more = names.len().saturating_sub(MOST_NAMED);
            let rest = if more > 0 { format!(" and {more} more") } else { String::new() };
            let named = names.iter().take(MOST_NAMED).map(|n| labels::cut_middle(n, 100)).collect::<Vec<_>>().join(", ");
            Err(Failure::wrong(format!(
                "{}: {selector:?} matches {} kernels; name one of them: {named}{rest}",
                file.display(),
                names.len()
            )))
        }
    }
}

/// `warpscope launches`: prints individual launches.
pub fn launches(args: &LaunchesArgs, nsys: Option<PathBuf>) -> Result<(), Failure> {
    let profile = interrupt::open_report(&args.file, nsys, Wants::LAUNCHES)?;
    if !profile.totals.is_empty() {
        return Err(Failure::wrong(format!(
            "{}: it has per-kernel totals only; open the report or its SQLite export",
            args.file.display()
        )));
    }
    let kernels = args.kernel.as_deref().map(|s| select_kernels(&profile.kernels, &args.file, s, LISTS_KERNELS)).transpose()?;
    let paths = Paths::from_profile(&profile);
    let limit = args.limit.unwrap_or(usize::MAX);
    let between = args.between.to_window().map_err(Failure::usage)?;
    if between.is_some() {
        require_times(&profile, &args.file)?;
    }
    let inside = |row: u32| between.is_none_or(|(from, to)| (from..to).contains(&profile.launches.start(row as usize)));
    if between.is_some() && !(0..).take(profile.launches.len()).any(inside) {
        return Err(no_launch_between(&args.file));
    }
    let numbered = report::launches::numbered_launches(&profile, kernels.as_ref()).filter(|r| inside(r.0));
    let one = |(launch, nth): (u32, u32)| LaunchRow::new(&profile, Some(&paths), launch, nth);
    let rows: Box<dyn Iterator<Item = LaunchRow<'_>>> = match args.sort.filter(|&s| s != LAUNCH) {
        None => Box::new(numbered.take(limit).map(one)),
        Some(sort) => {
            let mut rows: Vec<(u32, u32)> = numbered.collect();
            sort_launches(&profile, sort, &mut rows, sort.ascending);
            Box::new(rows.into_iter().take(limit).map(one))
        }
    };
    warn(&profile);
    to_stdout(|out| match format_or_default(args.format) {
        Format::Json => report::launches::write_json(out, &profile, rows),
        format => report::launches::print_rows(out, rows, format, terminal_width()),
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{Note, NoteKind, Severity};

    #[test]
    fn notes_are_said_once_and_errors_come_first() {
        let note = |severity, text: &str| Note::new(severity, NoteKind::Tool, text);
        let notes = [note(Severity::Info, "c."), note(Severity::Warning, "b."), note(Severity::Info, "c."), note(Severity::Error, "a.")];
        assert_eq!(unique_sentences(notes.iter()), ["a.", "b.", "c."]);
    }
}
