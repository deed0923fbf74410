//! Recipes that collect counters of individual kernels: ncu on selected launches, or on the first ones.

use super::pattern::Pattern;
use super::prepared::{Accepts, Place, Prepared, Wanted, part};
use super::ranks::{self, Ranks};
use super::recipe::{CommandBuilder, Recipe};
use crate::rerun::collect::{self, Collect};
use crate::rerun::{CommandPart, PartId, nvtx, parts};

/// Metrics to collect and number of launches.
#[derive(Clone, Copy, Debug)]
pub(super) struct NcuJob {
    pub what: NcuMetrics,
    /// Default number of launches if no kernel is named.
    pub count: u64,
    /// Default number of launches if a kernel is named.
    pub of_kernel: u64,
}

#[derive(Clone, Copy, Debug)]
pub(super) enum NcuMetrics {
    /// A single metric in one pass, without clock control.
    Duration,
    Set(&'static str),
    /// An ncu section set plus `--import-source`.
    SetWithSource(&'static str),
    /// Sections that answer one of the questions in [`collect::QUESTIONS`].
    Question(&'static str),
}

impl NcuMetrics {
    /// Returns the collection to look up in the cost tables; `None` if the tables do not have it.
    pub(super) fn collect(self) -> Option<Collect> {
        match self {
            Self::Duration => None,
            Self::Set(word) | Self::SetWithSource(word) => Some(Collect::Set(word.to_owned())),
            Self::Question(word) => collect::find_question(word).map(|q| Collect::Question(q.word)),
        }
    }

    fn to_parts(self) -> Vec<CommandPart> {
        let mut out = Vec::new();
        match self.collect() {
            None => {
                out.push(part(PartId::Collect, &["--metrics", "gpu__time_duration.sum"], "One metric, in one pass."));
                out.push(part(PartId::Clocks, &["--clock-control", "none"], "Clocks are not locked, as in production."));
            }
            Some(collect) => {
                let source = matches!(self, Self::SetWithSource(_)) || collect.wants_source();
                out.push(CommandPart {
                    id: PartId::Collect,
                    words: collect.to_args(),
                    why: format!("What is measured: {}.", collect.describe()),
                });
                if source {
                    let why = "CUDA source is imported into the report; the program must be built with -lineinfo.";
                    out.push(part(PartId::Source, &["--import-source", "yes"], why));
                }
            }
        }
        out
    }
}

/// Converts nsys' notation for a push/pop range (NAME, NAME@DOMAIN or NAME@*, with `\@` for an `@` in the name) to
/// ncu's expression.
pub(super) fn include_expression(range: &str) -> Result<String, String> {
    let (mut name, mut domain, mut escaped) = (String::new(), None::<String>, false);
    for c in range.chars() {
        match c {
            '\\' if !escaped => {
                escaped = true;
                continue;
            }
            '@' if !escaped && domain.is_none() => domain = Some(String::new()),
            c => domain.as_mut().unwrap_or(&mut name).push(c),
        }
        escaped = false;
    }
    if name.trim().is_empty() || name.starts_with("regex:") {
        return Err(format!("{range:?} is not an NVTX range that ncu can filter by"));
    }
    let name = nvtx::escape(&name);
    Ok(match domain.as_deref() {
        None | Some("") => format!("{name}/"),
        // The domain must be a name or a regular expression.
        Some("*") => {
            return Err(format!("{range:?}: ncu cannot match a range in any domain; name the domain, or none for the default one"));
        }
        Some(domain) => format!("{}@{name}/", nvtx::escape(domain)),
    })
}

/// Returns the options that select launches by kernel name and number.
fn selection_parts(counters: &NcuJob, wanted: &Wanted, ranks: bool) -> Vec<CommandPart> {
    let mut out = Vec::new();
    match &wanted.kernel {
        Some(kernel) => {
            out.push(part(PartId::Name, &["--kernel-name", kernel], "Only launches of this function; the name must match exactly."));
        }
        // Exclude collectives: they wait for other ranks, which are not being replayed at the same time.
        None if ranks => out.push(part(
            PartId::Name,
            &["--kernel-name", "regex:^(?!nccl)"],
            "All kernels except NCCL's, which wait for other ranks and hang when replayed.",
        )),
        None => {}
    }
    let of = if wanted.kernel.is_some() { "of this kernel" } else { "of the program" };
    if let Some(skip) = wanted.skip.filter(|s| *s > 0) {
        out.push(part(PartId::Which, &["--launch-skip", &skip.to_string()], format!("Launches {of} to skip first, in host call order.")));
    }
    let default = if wanted.kernel.is_some() { counters.of_kernel } else { counters.count };
    let count = wanted.count.unwrap_or(default);
    let s = if count == 1 { "launch is" } else { "launches are" };
    let why = if wanted.count.is_some() || wanted.kernel.is_some() {
        format!("Then {count} {s} profiled; the program then keeps running.")
    } else {
        format!("The first {count} {s} profiled, to limit the cost: choose others with --kernel, --launch-skip and --launch-count.")
    };
    out.push(part(PartId::Which, &["--launch-count", &count.to_string()], why));
    out
}

impl CommandBuilder for NcuJob {
    fn prepare(&self, _id: &str, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
        prepare(self, wanted, place)
    }

    fn accepts(&self) -> &'static [Accepts] {
        &[Accepts::Range, Accepts::Launches, Accepts::Kernel, Accepts::Ranks]
    }

    #[cfg(test)]
    fn collect(&self) -> Option<Collect> {
        self.what.collect()
    }
}

fn prepare(counters: &NcuJob, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
    let mut gate = Vec::new();
    if let Some(range) = &wanted.range {
        let why = "Only launches inside this push/pop range are counted, on the thread that opened it.";
        gate.push(part(PartId::Gate, &["--nvtx", "--nvtx-include", &include_expression(range)?], why));
    }
    let profiler = |ranks: &Ranks| {
        let mut out = vec![parts::tool()];
        out.extend(gate.iter().cloned());
        out.extend(selection_parts(counters, wanted, ranks.rank_variable().is_some()));
        out.extend(counters.what.to_parts());
        match ranks {
            Ranks::Together => out.push(parts::output(place.output, false)),
            each => {
                let why = format!("{} ncu refuses to start if it already exists.", each.describe_report(place, "ncu-rep"));
                out.push(CommandPart { id: PartId::Output, words: vec!["--export".to_owned(), each.report_name(place)], why });
            }
        }
        out
    };
    // ncu counts across all processes that it follows, which is racy with several ranks: run one ncu per rank.
    let apart = wanted.ranks || ranks::launcher_name(&wanted.program).is_some();
    let ranks = ranks::resolve_ranks(wanted, apart, profiler)?;
    let stem = place.stem;
    let reports = match ranks {
        Ranks::Together => Pattern::exact(format!("{stem}.ncu-rep")),
        _ => Pattern::with_wildcard(format!("{stem}."), ".ncu-rep"),
    };
    Ok(Prepared { parts: ranks.wrap_profiler(profiler(&ranks), wanted), reports: vec![reports], ..Prepared::default() })
}

const fn row(id: &'static str, words: [&'static str; 3], job: &'static NcuJob) -> Recipe<'static> {
    Recipe::built_in(id, "ncu", job, words)
}

/// Costs were measured on an H200 with ncu 2025.3.1, for one-microsecond kernels, as in
/// [`collect`].
pub(super) const RECIPES: &[Recipe<'static>] = &[
    row(
        "scan",
        [
            "duration, grid and block of the first 2,000 launches",
            "nsys is not installed on this machine",
            "one pass per launch; kernels are serialized, so gaps and overlap are not as in the program",
        ],
        &NcuJob { what: NcuMetrics::Duration, count: 2000, of_kernel: 2000 },
    ),
    row(
        "scan-light",
        ["speed of light of the first 50 launches", "a small program, no nsys", "10 passes, about 0.3 s per launch"],
        &NcuJob { what: NcuMetrics::Set("basic"), count: 50, of_kernel: 50 },
    ),
    row(
        "ncu-sol",
        [
            "speed of light, launch and occupancy of chosen launches",
            "is a kernel bound by compute, memory or latency?",
            "10 passes, about 0.3 s and 52 kB per launch",
        ],
        &NcuJob { what: NcuMetrics::Question("bound"), count: 20, of_kernel: 1 },
    ),
    row(
        "ncu-roofline",
        [
            "rooflines of chosen launches: half, single, double, tensor",
            "how far is a kernel from what this GPU can do?",
            "17 passes, about 0.4 s and 620 kB per launch",
        ],
        &NcuJob { what: NcuMetrics::Set("roofline"), count: 10, of_kernel: 1 },
    ),
    row(
        "ncu-memory",
        [
            "traffic between all memory units of chosen launches",
            "a kernel is bound by memory: why is it slow?",
            "35 passes, about 1.1 s and 86 kB per launch",
        ],
        &NcuJob { what: NcuMetrics::Question("memory"), count: 5, of_kernel: 1 },
    ),
    row(
        "ncu-stalls",
        [
            "what the warps of chosen launches wait for",
            "a kernel is bound by latency: no unit is near its peak",
            "17 passes, about 0.3 s and 41 kB per launch",
        ],
        &NcuJob { what: NcuMetrics::Question("stalls"), count: 10, of_kernel: 1 },
    ),
    row(
        "ncu-source",
        [
            "stalls by source line and instruction of chosen launches",
            "which line of a kernel is it?",
            "13 passes, about 0.3 s and 40 kB per launch, plus the sources; build with -lineinfo",
        ],
        &NcuJob { what: NcuMetrics::Question("source"), count: 5, of_kernel: 1 },
    ),
    row(
        "ncu-full",
        [
            "all sections of ncu, with sources, of chosen launches",
            "the full analysis of one kernel",
            "38 passes, about 1.7 s and 930 kB per launch: name the kernel",
        ],
        &NcuJob { what: NcuMetrics::SetWithSource("full"), count: 3, of_kernel: 1 },
    ),
];

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ranges_are_written_as_ncu_reads_them() {
        assert_eq!(include_expression("step").unwrap(), "step/");
        assert_eq!(include_expression("step[3]@LLM").unwrap(), r"LLM@step\[3\]/");
        assert_eq!(include_expression(r"LLM\@decode_all@LLM").unwrap(), r"LLM@LLM\@decode_all/");
        assert!(include_expression("step@*").is_err() && include_expression("").is_err() && include_expression("@LLM").is_err());
    }
}
