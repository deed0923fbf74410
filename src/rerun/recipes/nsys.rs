//! Timelines: `nsys profile`. Boolean options are written with `=true`. The program follows the options without a
//! separator, because nsys would take `--` for the program's name.

use super::pattern::Pattern;
use super::prepared::{Place, Prepared, Wanted, part};
use super::ranks::{self, Ranks};
use crate::rerun::{CommandPart, PartId};

/// Options that belong together, and an explanation of them. `{RANGE}` is replaced with the range.
pub(super) type Group = (&'static [&'static str], &'static str);

#[derive(Clone, Copy, Debug)]
pub(super) struct Timeline {
    /// Options between the profiler and its output.
    pub groups: &'static [Group],
    /// Each rank writes its own report even if the user does not request this.
    pub ranks: bool,
    /// nsys writes a numbered report for each range.
    pub each: bool,
}

pub(super) const CUDA: Group = (&["--trace=cuda,nvtx"], "CUDA API calls, kernels, memory copies and NVTX ranges; nothing else is traced.");
pub(super) const NO_CPU: Group =
    (&["--sample=none", "--cpuctxsw=none"], "No CPU sampling and no context switches: both need privileges and add overhead.");
pub(super) const NODES: Group =
    (&["--cuda-graph-trace=node"], "Kernels inside CUDA graphs are recorded individually, which a re-run needs to count them.");
pub(super) const API_EACH: Group = (
    &["--capture-range=cudaProfilerApi", "--capture-range-end=repeat"],
    "One report per range. A re-run must say which: --opened-by profiler:2.",
);

/// Returns the profiler and its options, without the output and the program.
pub(super) fn option_parts(groups: &[Group], range: Option<&str>) -> Vec<CommandPart> {
    let mut parts = vec![part(PartId::Tool, &["nsys", "profile"], "NVIDIA's timeline profiler.")];
    for (words, why) in groups {
        let words = words.iter().map(|w| w.replace("{RANGE}", range.unwrap_or_default())).collect();
        parts.push(CommandPart { id: PartId::Collect, words, why: (*why).to_owned() });
    }
    parts
}

pub(super) fn output_part(ranks: &Ranks, place: &Place<'_>) -> CommandPart {
    let why =
        format!("{} nsys does not overwrite: if it already exists, the new one stays in TMPDIR.", ranks.describe_report(place, "nsys-rep"));
    CommandPart { id: PartId::Output, words: vec!["--output".to_owned(), ranks.report_name(place)], why }
}

/// Returns patterns for the reports of a timeline.
pub(super) fn report_patterns(place: &Place<'_>, ranks: bool, each: bool) -> Vec<Pattern> {
    let stem = place.stem;
    let numbered = (ranks || each).then(|| Pattern::with_wildcard(format!("{stem}."), ".nsys-rep"));
    // It depends on the version of nsys whether the report of a single repeated range is numbered.
    [Pattern::exact(format!("{stem}.nsys-rep"))].into_iter().filter(|_| !ranks).chain(numbered).collect()
}

pub(super) fn prepare(id: &str, timeline: &Timeline, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
    let profiler = |ranks: &Ranks| {
        let mut parts = option_parts(timeline.groups, wanted.range.as_deref());
        parts.push(output_part(ranks, place));
        parts
    };
    let ranks = ranks::resolve_ranks(wanted, timeline.ranks, profiler)?;
    let mut prepared = Prepared::default();
    match &ranks {
        Ranks::Together => match ranks::launcher_name(&wanted.program) {
            Some("srun") => {
                return Err(format!(
                    "srun's tasks are not its children, so recipe {id} would record none of them: use --ranks or the recipe `rank`, which start nsys in each task"
                ));
            }
            Some(name) => prepared.notes.push(format!(
                "All processes that {name} starts on this machine go into one report; --ranks or the recipe `rank` gives each rank its own."
            )),
            None => {}
        },
        Ranks::Inner if !wanted.program.is_empty() => {
            prepared.by_hand =
                Some("no launcher starts this program: put the launcher before the command, and its variable for RANK".to_owned());
        }
        _ => {}
    }
    prepared.parts = ranks.wrap_profiler(profiler(&ranks), wanted);
    prepared.reports = report_patterns(place, ranks.rank_variable().is_some(), timeline.each);
    Ok(prepared)
}
