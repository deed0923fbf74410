//! `warpscope timeline` and `warpscope events`: a time window as text or as a list of events.

use super::failure::Failure;
use super::time_window::Between;
use super::values::word_parser;
use super::{interrupt, print};
use crate::analysis::timeline::RowKind;
use crate::analysis::timeline::{Gaps, Pattern, Timeline, TimelinePart, Window, build_part};
use crate::analysis::triage;
use crate::import::Wants;
use crate::model::{Cancel, Profile};
use crate::report::timeline::{LABEL, Shown, events};
use crate::report::{self, Format};
use crate::rerun::match_results::join_results;
use clap::builder::PossibleValuesParser;
use clap::builder::TypedValueParser;
use std::path::{Path, PathBuf};

fn row_kind_parser() -> impl TypedValueParser<Value = RowKind> {
    PossibleValuesParser::new(RowKind::ALL.map(RowKind::cli_name))
        .map(|word| RowKind::ALL.into_iter().find(|k| k.cli_name() == word).unwrap_or(RowKind::Queue))
}

/// `warpscope timeline`.
#[derive(Debug, clap::Args)]
pub struct TimelineArgs {
    /// Report with a timeline: nsys, torch.profiler, rocprofv3, a trace of ours.
    pub file: PathBuf,
    #[command(flatten)]
    pub between: Between,
    /// Columns of the timeline, labels not counted [default: as many as the terminal has, else 120].
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u16).range(8..=2000))]
    pub width: Option<u16>,
    /// Only rows of these kinds; several with commas.
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = row_kind_parser())]
    pub rows: Vec<RowKind>,
}

/// `warpscope events`.
#[derive(Debug, clap::Args)]
pub struct EventsArgs {
    /// Report with a timeline: nsys, torch.profiler, rocprofv3, a trace of ours.
    pub file: PathBuf,
    /// Nsight Compute reports of its launches, whose throughputs are listed, too.
    pub results: Vec<PathBuf>,
    #[command(flatten)]
    pub between: Between,
    /// Only rows of these kinds; several with commas.
    #[arg(long, value_name = "KIND", value_delimiter = ',', value_parser = row_kind_parser())]
    pub rows: Vec<RowKind>,
    /// Only events whose name contains TEXT (in any case); several words must all be there.
    #[arg(long, value_name = "TEXT")]
    pub filter: Option<String>,
    /// List at most N events.
    #[arg(long, value_name = "N", allow_negative_numbers = true)]
    pub limit: Option<usize>,
    /// Output format [default: table on a terminal, else csv].
    #[arg(long, value_parser = word_parser::<Format>())]
    pub format: Option<Format>,
}

/// Default number of columns.
const COLUMNS: usize = 120;

fn read_timeline(file: &Path, nsys: Option<PathBuf>) -> Result<(Profile, Timeline), Failure> {
    let profile = interrupt::open_report(file, nsys, Wants::EXPLORER)?;
    let shown = file.display();
    if profile.metrics.is_some() && !profile.ranges.is_hardware() {
        let tool = &profile.source.tool;
        return Err(Failure::wrong(format!("{shown}: this is a report of {tool} on single kernels, which has no timeline")));
    }
    let mut timeline = Timeline::default();
    for part in TimelinePart::ALL {
        if let Some(built) = build_part(&profile, part, &Cancel::default()) {
            timeline.add_part(built);
        }
    }
    print::warn(&profile);
    if timeline.groups.is_empty() {
        return Err(Failure::wrong(format!("{shown}: nothing in it has a time")));
    }
    Ok((profile, timeline))
}

/// Prints a time window as text.
pub fn print_timeline(args: &TimelineArgs, ascii: bool, nsys: Option<PathBuf>) -> Result<(), Failure> {
    let between = args.between.to_window().map_err(Failure::usage)?;
    let (profile, timeline) = read_timeline(&args.file, nsys)?;
    let (from, to) = clamp_window(between, &timeline, &args.file)?;
    let columns = args.width.map(usize::from).or_else(|| print::terminal_width().map(|w| w.saturating_sub(LABEL).max(8)));
    // A column is at least one nanosecond.
    let most = usize::try_from(to.saturating_sub(from).max(1)).unwrap_or(usize::MAX);
    let window = Window::new(from, to, columns.unwrap_or(COLUMNS).min(most));
    if !args.rows.is_empty() && !timeline.groups.iter().flat_map(|g| &g.rows).any(|r| args.rows.contains(&r.key.kind)) {
        return Err(Failure::wrong(format!("{}: it has no rows of this kind", args.file.display())));
    }
    let gaps = triage::find_idle_times(&profile, &Cancel::default()).map(Gaps::new);
    let shown = Shown { timeline: &timeline, gaps: gaps.as_ref(), kinds: &args.rows };
    if !ascii {
        return print::to_stdout(|out| report::timeline::print_page(out, &profile, &shown, window));
    }
    let mut text = Vec::new();
    report::timeline::print_page(&mut text, &profile, &shown, window)?;
    print::lines(&[crate::ui::ascii::to_ascii(String::from_utf8_lossy(&text).trim_end())])
}

/// Returns the requested window with open ends replaced by the report's bounds; an error if nothing is recorded in it.
fn clamp_window(between: Option<(i64, i64)>, timeline: &Timeline, file: &Path) -> Result<(i64, i64), Failure> {
    let Some((from, to)) = between else { return Ok(timeline.span) };
    let span = timeline.reach;
    if from >= span.1 || to <= span.0 {
        let ends = [span.0, span.1].map(|t| report::timeline::describe::format_time(t, 1_000_000));
        return Err(Failure::wrong(format!("{}: nothing is recorded then; it covers {} to {}", file.display(), ends[0], ends[1])));
    }
    // An explicit end may lie beyond the recorded time.
    Ok((if from == i64::MIN { span.0 } else { from }, if to == i64::MAX { span.1 } else { to }))
}

/// Lists the events of a time window.
pub fn print_events(args: &EventsArgs, nsys: Option<PathBuf>) -> Result<(), Failure> {
    let between = args.between.to_window().map_err(Failure::usage)?;
    let (profile, timeline) = read_timeline(&args.file, nsys)?;
    let (from, to) = clamp_window(between, &timeline, &args.file)?;
    let has = |r: &&std::sync::Arc<crate::analysis::timeline::TimelineRow>| args.rows.contains(&r.key.kind) && !r.lanes().is_empty();
    if !args.rows.is_empty() && timeline.groups.iter().flat_map(|g| &g.rows).find(has).is_none() {
        return Err(Failure::wrong(format!("{}: it has no events in rows of this kind", args.file.display())));
    }
    let mut joined = Vec::new();
    for file in &args.results {
        let results = interrupt::open_report(file, None, Wants::LAUNCHES)?;
        let Some(metrics) = results.metrics else {
            return Err(Failure::wrong(format!("{}: this is no report of ncu", file.display())));
        };
        let found = join_results(&profile, &metrics);
        if found.pairs.is_empty() {
            print::note(&format!("warning: {}: none of its results is of a launch in {}", file.display(), args.file.display()));
        }
        joined.push((metrics, found));
    }
    let of = timeline.event_reader(&profile);
    let chosen = events::Chosen {
        from,
        to: to.max(from.saturating_add(1)).saturating_add(i64::from(between.is_none())),
        kinds: &args.rows,
        pattern: args.filter.as_deref().map(|text| Pattern::new(&profile, text)),
        limit: args.limit.unwrap_or(usize::MAX),
        joined: &joined,
    };
    let rows = events::event_rows(&profile, &timeline, &of, &chosen);
    print::to_stdout(|out| match print::format_or_default(args.format) {
        Format::Json => events::write_json(out, &profile, rows),
        format => events::print_rows(out, rows, !joined.is_empty(), format, print::terminal_width()),
    })
}
