//! `warpscope diff`: compares two runs.

use super::failure::Failure;
use super::values::word_parser;
use super::{interrupt, print};
use crate::analysis::GroupBy;
use crate::analysis::diff::{self, DiffRow};
use crate::analysis::diff_steps::compare_lengths;
use crate::analysis::readable::readable_name;
use crate::analysis::triage::{self, Scope, StepTimes};
use crate::import::Wants;
use crate::model::{Cancel, NoteKind, Severity};
use crate::report::{self, PageFormat};
use std::collections::HashSet;
use std::path::PathBuf;

/// `warpscope diff`.
#[derive(Debug, clap::Args)]
pub struct DiffArgs {
    /// The report before the change.
    pub before: PathBuf,
    /// The report after it.
    pub after: PathBuf,
    /// Group launches by this criterion.
    #[arg(long, default_value = "kernel", value_parser = word_parser::<GroupBy>())]
    pub by: GroupBy,
    /// List at most N groups.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub limit: Option<usize>,
    /// Only groups whose name contains TEXT (in any case).
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// Exit with code 1 if the time of the kernels without collectives, or of a step, grew by more than PCT percent. Both reports are
    /// timelines, or both of counters: another pair is refused.
    #[arg(long, value_name = "PCT", value_parser = parse_percent)]
    pub fail_above: Option<f64>,
    /// Times that `--fail-above` compares [default: both].
    #[arg(long, value_enum, value_name = "WHAT", default_value = "both", hide_default_value = true, requires = "fail_above")]
    pub gate: Gate,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<PageFormat>())]
    pub format: Option<PageFormat>,
}

/// Times that a gate compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq, clap::ValueEnum)]
pub enum Gate {
    Both,
    /// The mean time of a step: the kernels may take longer if the step is shorter.
    Step,
    /// The time of the kernels without collectives, of a step where there are steps.
    Kernels,
}

/// Parses a percentage, with or without `%`.
fn parse_percent(text: &str) -> Result<f64, String> {
    let number = text.trim().trim_end_matches('%').trim_end().parse::<f64>().unwrap_or(f64::NAN);
    if number.is_finite() { Ok(number) } else { Err("write a percentage, such as 5%".to_owned()) }
}

/// Prints the changes between two runs; fails if the run slowed down more than allowed.
pub fn print_diff(args: &DiffArgs, nsys: Option<PathBuf>) -> Result<(), Failure> {
    let wants = Wants::TRIAGE;
    let before = interrupt::open_report(&args.before, nsys.clone(), wants)?;
    let after = interrupt::open_report(&args.after, nsys, wants)?;
    let mut found = diff::diff_profiles(&before, &after, args.by);
    // Counters are measured with cold caches and locked clocks, one launch at a time: the total is not the time of any
    // run.
    if args.fail_above.is_some() && found.one_isolated {
        return Err(Failure::wrong(
            "--fail-above compares the kernel time of two runs, and one of these reports has launches that were measured one by one: give two timelines, or two reports of counters",
        ));
    }
    let judge = |p| triage::triage_profile(p, &Scope::default(), &Cancel::default());
    let (was, is) = (judge(&before), judge(&after));
    let judged = was.as_ref().zip(is.as_ref());
    compare_lengths(&mut found, (&before, was.as_ref()), (&after, is.as_ref()), args.by);
    if found.launches.0 == 0 || found.launches.1 == 0 {
        let empty = if found.launches.0 == 0 { &args.before } else { &args.after };
        return Err(Failure::wrong(format!("{}: no kernels to compare", empty.display())));
    }
    for (profile, file) in [(&before, &args.before), (&after, &args.after)] {
        print::warn(profile);
        let damaged = profile.notes.iter().any(|n| n.kind == NoteKind::Damaged && n.severity == Severity::Error);
        if damaged && args.fail_above.is_some() {
            return Err(Failure::unreadable(format!("{}: the report is damaged, so that nothing can be compared with it", file.display())));
        }
    }
    // Without steps in common, totals of runs of different length say nothing about either.
    if args.fail_above.is_some() && found.differ_in_length && found.step_totals.is_none() {
        return Err(Failure::wrong(
            "the runs differ in length and have no steps to compare: record as many steps of both, or mark them with NVTX ranges",
        ));
    }
    for caveat in &found.caveats {
        print::note(&format!("warning: {caveat}"));
    }
    let needle = args.filter.as_deref().unwrap_or_default().to_lowercase();
    // Also match exact names if rows show readable ones.
    let kernels = before
        .kernels
        .iter()
        .chain(&after.kernels)
        .filter(|k| args.by == GroupBy::Kernel && k.demangled().to_lowercase().contains(&needle));
    let exact: HashSet<String> = kernels.map(|k| readable_name(k).into_owned()).collect();
    let is_shown = |r: &&DiffRow| {
        let named = |s: &Option<diff::Side>| s.as_ref().is_some_and(|s| s.name.to_lowercase().contains(&needle) || exact.contains(&s.name));
        named(&r.before) || named(&r.after)
    };
    let rows: Vec<&DiffRow> = found.rows.iter().filter(is_shown).take(args.limit.unwrap_or(usize::MAX)).collect();
    let width = print::terminal_width();
    print::to_stdout(|out| match print::page_format(args.format) {
        PageFormat::Json => report::diff::write_json(out, &before, &after, (&found, judged), &rows),
        PageFormat::Csv => report::diff::print_csv(out, &rows, width),
        PageFormat::Page(renderer) => report::diff::document(&found, &rows, judged).write(out, renderer, width),
    })?;
    let Some(most) = args.fail_above else { return Ok(()) };
    let kernels = found.kernel_times();
    let kernel_time = kernels.change_percent().map(|percent| (kernels.name, percent));
    let steps = judged.and_then(|(was, is)| StepTimes::of_runs(was, is));
    let step =
        steps.filter(|t| t.before > 0).map(|t| ("the time of a step".to_owned(), (t.after - t.before) as f64 / t.before as f64 * 100.0));
    let step = step.filter(|_| args.gate != Gate::Kernels);
    let kernel_time = kernel_time.filter(|_| args.gate != Gate::Step);
    let compared: Vec<(String, f64)> = step.into_iter().chain(kernel_time).collect();
    if compared.is_empty() {
        let what = if args.gate == Gate::Step { "steps" } else { "kernel times" };
        return Err(Failure::wrong(format!("--fail-above compares nothing: the runs have no {what} in common")));
    }
    let changes: Vec<String> = compared.iter().map(|(what, percent)| format!("{what} changed by {percent:+.1}%")).collect();
    if let Some((what, percent)) = compared.iter().find(|(_, percent)| *percent > most) {
        return Err(Failure::found(format!("{what} grew by {percent:.1}%, more than {most}% ({})", changes.join(", "))));
    }
    print::note(&format!("{}, within the limit of {most}%", changes.join(", ")));
    Ok(())
}
