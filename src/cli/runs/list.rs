//! `warpscope runs`: lists, edits and deletes recorded runs.

use super::super::failure::Failure;
use super::super::print;
use super::super::values::word_parser;
use super::find_run::{find_named_run, find_run};
use super::share;
use crate::library::{Library, Run, gc, store};
use crate::model::Bytes;
use crate::model::units::format_count;
use crate::report::{self, Format};
use crate::rerun::shell;
use clap::Subcommand;
use std::io::{IsTerminal, Write};
use std::path::Path;
use std::path::PathBuf;

/// `warpscope runs`.
#[derive(Clone, Debug, clap::Args)]
pub struct RunsArgs {
    /// Action [default: list].
    #[command(subcommand)]
    pub command: Option<RunsCommand>,
}

/// Actions on recorded runs.
#[derive(Clone, Debug, Subcommand)]
pub enum RunsCommand {
    /// List runs, the newest first.
    List {
        /// Only runs that contain all these words, in program, folder, profiler, recipe, state, tags, notes.
        search: Vec<String>,
        /// Output format [default: table on a terminal, else csv].
        #[arg(long, value_parser = word_parser::<Format>())]
        format: Option<Format>,
    },
    /// Show the details of a run.
    Show {
        /// Number, process while it runs, report, or folder of the run [default: the newest].
        run: Option<PathBuf>,
        /// Output format [default: lines for people].
        #[arg(long, value_parser = word_parser::<Format>())]
        format: Option<Format>,
    },
    /// Free space: delete old runs, compress old reports (they still open). Asks first; runs in progress and those tagged `keep` stay.
    Gc(GcArgs),
    /// Copy a run's reports into a folder, to share them. They contain the environment of every process; --clean removes it from timelines.
    Export {
        /// The run's number.
        run: i64,
        /// Folder for the copies.
        folder: PathBuf,
        /// For timelines, copy an SQLite export without environment variables, verified byte by byte.
        #[arg(long)]
        clean: bool,
    },
    /// Set a run's note.
    Note {
        /// The run's number.
        run: i64,
        /// The note.
        text: String,
    },
    /// Add tags to a run.
    Tag {
        /// The run's number.
        run: i64,
        /// The tags.
        #[arg(required = true)]
        tags: Vec<String>,
        /// Remove them instead.
        #[arg(long)]
        remove: bool,
    },
    /// Delete a run with its reports.
    Delete {
        /// The run's number.
        run: i64,
        /// Do not ask.
        #[arg(long)]
        yes: bool,
    },
}

/// `warpscope runs gc`.
#[derive(Clone, Debug, clap::Args)]
pub struct GcArgs {
    /// Keep the newest N runs.
    #[arg(long, value_name = "N")]
    pub keep: Option<usize>,
    /// Keep the newest runs up to this size of reports: 500M, 10G.
    #[arg(long, value_name = "SIZE", value_parser = parse_size)]
    pub keep_size: Option<u64>,
    /// Compress reports of runs older than DAYS with zstd.
    #[arg(long, value_name = "DAYS")]
    pub pack_after: Option<u32>,
    /// Only show what would be done.
    #[arg(long)]
    pub dry_run: bool,
    /// Do not ask.
    #[arg(long)]
    pub yes: bool,
}

/// Parses a size in bytes, with K, M, G or T (powers of 1024).
fn parse_size(text: &str) -> Result<u64, String> {
    let text = text.trim().trim_end_matches(['B', 'b', 'i']);
    let (digits, unit) = match text.chars().last() {
        Some(c) if c.is_ascii_alphabetic() => (&text[..text.len() - 1], Some(c.to_ascii_uppercase())),
        _ => (text, None),
    };
    let factor = match unit {
        None => 1.0,
        Some('K') => 1024.0,
        Some('M') => 1_048_576.0,
        Some('G') => 1_073_741_824.0,
        Some('T') => 1_099_511_627_776.0,
        Some(c) => return Err(format!("unknown size suffix {c}; write 500M or 10G")),
    };
    match digits.trim().parse::<f64>() {
        Ok(n) if n.is_finite() && n >= 0.0 => Ok((n * factor) as u64),
        _ => Err("write a size as 500M or 10G".to_owned()),
    }
}

/// `warpscope runs …`: executes the subcommand; without one, lists the runs.
pub fn manage_runs(args: &RunsArgs, nsys: Option<&Path>) -> Result<(), Failure> {
    let library = Library::open()?;
    match &args.command {
        None => list_runs(&library, "", None),
        Some(RunsCommand::List { search, format }) => list_runs(&library, &search.join(" "), *format),
        Some(RunsCommand::Show { run, format }) => show_run(&library, run.as_deref(), *format),
        Some(RunsCommand::Gc(gc)) => free_space(&library, gc),
        Some(RunsCommand::Export { run, folder, clean }) => share::export_run(&library, *run, folder, *clean, nsys),
        Some(RunsCommand::Note { run, text }) => Ok(library.set_note(*run, text)?),
        Some(RunsCommand::Tag { run, tags, remove }) => {
            for tag in tags {
                library.set_tag(*run, tag, !remove)?;
            }
            Ok(())
        }
        Some(RunsCommand::Delete { run, yes }) => {
            let run = library.run(*run)?;
            let what = format!("delete run {} ({}) with {}", run.id, shell::command_line(&run.program), Bytes(owned_bytes(&run)));
            if !confirm_action(&what, *yes)? {
                return Ok(());
            }
            delete_run(&library, &run).map(drop)
        }
    }
}

fn list_runs(library: &Library, search: &str, format: Option<Format>) -> Result<(), Failure> {
    let runs: Vec<Run> = library.runs()?.into_iter().filter(|r| r.matches_words(search)).collect();
    let width = print::terminal_width();
    let format = print::format_or_default(format);
    if runs.is_empty() && format == Format::Table {
        return print::lines(&[if search.is_empty() {
            "nothing has been recorded yet: warpscope run -- PROGRAM ARGS…".to_owned()
        } else {
            format!("no run matches {search:?}")
        }]);
    }
    print::to_stdout(|out| match format {
        Format::Json => report::runs::write_json(out, &runs),
        format => report::runs::print_rows(out, &runs, store::now_ms(), format, width),
    })
}

fn show_run(library: &Library, named: Option<&Path>, format: Option<Format>) -> Result<(), Failure> {
    let run = named.map_or_else(|| find_run(library, None, false), |named| find_named_run(library, named))?;
    let promises = super::promises::load_promises(library, &run)?;
    print::to_stdout(|out| match format {
        Some(Format::Json) => report::runs::one_json(out, &run, &promises),
        Some(format @ (Format::Csv | Format::Md)) => {
            report::runs::print_facts(out, &run, &promises, &shell::command_line(&run.argv), store::now_ms(), format)
        }
        _ => report::runs::print_run(out, &run, &promises, &shell::command_line(&run.argv), store::now_ms()),
    })
}

/// Asks for confirmation on the terminal; without a terminal, only `--yes` confirms.
fn confirm_action(what: &str, yes: bool) -> Result<bool, Failure> {
    if yes {
        return Ok(true);
    }
    if !std::io::stdin().is_terminal() || !std::io::stderr().is_terminal() {
        return Err(Failure::wrong(format!("would {what}; --yes does it")));
    }
    let mut err = std::io::stderr();
    write!(err, "{what}? [y/N] ")?;
    err.flush()?;
    let mut answer = String::new();
    std::io::stdin().read_line(&mut answer)?;
    Ok(matches!(answer.trim(), "y" | "Y" | "yes"))
}

fn owned_bytes(run: &Run) -> u64 {
    run.reports.iter().filter(|r| r.owned).map(|r| r.bytes).sum()
}

/// Deletes a run and prints the files that remain.
pub fn delete_run(library: &Library, run: &Run) -> Result<u64, Failure> {
    let (free, left) = gc::remove_run(library, run)?;
    for path in left {
        print::error(&format!("{} stays: warpscope did not write it", path.display()));
    }
    for report in run.reports.iter().filter(|r| !r.owned && r.path.exists()) {
        print::error(&format!("{} stays: it is outside the library", report.path.display()));
    }
    Ok(free)
}

/// Deletes a run without output to stderr, for the explorer.
pub fn remove_quietly(library: &Library, id: i64) -> Result<(), Failure> {
    let run = library.run(id)?;
    gc::remove_run(library, &run)?;
    Ok(())
}

fn free_space(library: &Library, args: &GcArgs) -> Result<(), Failure> {
    if args.keep.is_none() && args.keep_size.is_none() && args.pack_after.is_none() {
        return Err(Failure::wrong("say what to keep: --keep N runs, --keep-size 10G, or --pack-after DAYS"));
    }
    let runs = library.runs()?;
    let wish = gc::Wish { runs: args.keep, bytes: args.keep_size, pack_days: args.pack_after };
    let plan = gc::plan_cleanup(&runs, wish, store::now_ms());
    if plan.remove.is_empty() && plan.pack.is_empty() {
        return print::lines(&["nothing to do".to_owned()]);
    }
    let mut lines: Vec<String> = plan
        .remove
        .iter()
        .map(|r| {
            format!(
                "delete run {} of {}: {} ({})",
                r.id,
                report::runs::format_moment(r.started_ms),
                shell::command_line(&r.program),
                Bytes(owned_bytes(r))
            )
        })
        .collect();
    lines.extend(plan.pack.iter().map(|(_, r)| format!("compress {} ({})", r.path.display(), Bytes(r.bytes))));
    print::lines(&lines)?;
    let what = format!("delete {} and compress {}", format_count(plan.remove.len(), "run"), format_count(plan.pack.len(), "report"));
    if args.dry_run || !confirm_action(&what, args.yes)? {
        return Ok(());
    }
    let mut free = 0;
    for run in &plan.remove {
        free += delete_run(library, run)?;
    }
    for (id, report) in &plan.pack {
        free += gc::pack_report(library, *id, report)?;
    }
    print::lines(&[format!("{} freed", Bytes(free))])
}

#[cfg(test)]
mod tests {
    use super::parse_size;

    #[test]
    fn sizes_with_their_units() {
        assert_eq!((parse_size("10G"), parse_size("1.5 MiB"), parse_size("7")), (Ok(10 << 30), Ok(1_572_864), Ok(7)));
        assert!(parse_size("G").is_err() && parse_size("-1M").is_err() && parse_size("3x").is_err());
    }
}
