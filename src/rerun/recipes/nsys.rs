//! Timelines: `nsys profile`. Boolean options are written with `=true`. The program follows the options without a
//! separator, because nsys would take `--` for the program's name.

use super::pattern::Pattern;
use super::prepared::{Accepts, Place, Prepared, Wanted, part};
use super::ranks::{self, Ranks};
use super::recipe::{CommandBuilder, Recipe};
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
    // For a single repeated range, some versions of nsys number the report and others do not, so accept both.
    [Pattern::exact(format!("{stem}.nsys-rep"))].into_iter().filter(|_| !ranks).chain(numbered).collect()
}

impl CommandBuilder for Timeline {
    fn prepare(&self, id: &str, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
        prepare(id, self, wanted, place)
    }

    fn accepts(&self) -> &'static [Accepts] {
        &[Accepts::Ranks]
    }
}

fn prepare(id: &str, timeline: &Timeline, wanted: &Wanted, place: &Place<'_>) -> Result<Prepared, String> {
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

const fn row(id: &'static str, words: [&'static str; 3], timeline: &'static Timeline) -> Recipe<'static> {
    Recipe::built_in(id, "nsys", timeline, words)
}

/// Costs were measured on an H200 with nsys 2025.3.
pub(super) const RECIPES: &[Recipe<'static>] = &[
    row(
        "exact",
        [
            "timeline with exact launch counts for re-runs",
            "the first report of any program",
            "low: about 110 bytes of report per kernel; kernels in CUDA graphs cost more than with `light`",
        ],
        &Timeline { groups: &[CUDA, NO_CPU, NODES], ranks: false, each: false },
    ),
    row(
        "light",
        [
            "timeline with CUDA graphs as a whole",
            "graphs of thousands of short kernels, where `exact` costs too much",
            "lowest; kernels inside graphs are not recorded",
        ],
        &Timeline {
            groups: &[CUDA, NO_CPU, (&["--cuda-graph-trace=graph"], "A CUDA graph is one record; the kernels inside are not listed.")],
            ranks: false,
            each: false,
        },
    ),
    row(
        "full",
        [
            "timeline with library calls, OS calls and CPU samples",
            "the GPU waits for the host, and you want to know what the host does",
            "higher: samples and OS calls; needs perf_event_paranoid of 2 or less",
        ],
        &Timeline {
            groups: &[
                (&["--trace=cuda,nvtx,osrt,cublas,cudnn"], "CUDA, NVTX, blocking OS calls, cuBLAS and cuDNN."),
                (&["--sample=process-tree"], "CPU samples of the program and its children."),
                NODES,
            ],
            ranks: false,
            each: false,
        },
    ),
    row(
        "python",
        [
            "timeline with Python call stacks",
            "a Python program, and you want to know which line launched a kernel",
            "higher: a stack for every launch, and samples",
        ],
        &Timeline {
            groups: &[
                (&["--trace=cuda,nvtx,osrt,python-gil"], "CUDA, NVTX, blocking OS calls, and who holds Python's GIL."),
                (
                    &["--sample=process-tree", "--python-backtrace=cuda", "--python-sampling=true"],
                    "Python backtraces of CUDA calls, and Python sampling.",
                ),
                NODES,
            ],
            ranks: false,
            each: false,
        },
    ),
    Recipe {
        needs_range: true,
        ..row(
            "nvtx",
            [
                "timeline of one NVTX range",
                "a long program with ranges: record the first time that a range is entered",
                "low; nothing is recorded outside the range",
            ],
            &Timeline {
                groups: &[
                    CUDA,
                    NO_CPU,
                    NODES,
                    (
                        &["--capture-range=nvtx", "--nvtx-capture={RANGE}", "--capture-range-end=stop"],
                        "Recording begins when the range is first entered and ends with it; the program keeps running. RANGE or RANGE@DOMAIN, exact.",
                    ),
                    (
                        &["--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0"],
                        "Also triggers on ranges whose names are not registered strings, such as Python's.",
                    ),
                ],
                ranks: false,
                each: false,
            },
        )
    },
    row(
        "profiler-api",
        [
            "timeline between cudaProfilerStart and cudaProfilerStop",
            "the program calls them (torch.cuda.profiler.start and stop)",
            "low; nothing is recorded outside",
        ],
        &Timeline {
            groups: &[
                CUDA,
                NO_CPU,
                NODES,
                (
                    &["--capture-range=cudaProfilerApi", "--capture-range-end=stop"],
                    "Recording begins with cudaProfilerStart and ends with cudaProfilerStop; the program keeps running.",
                ),
            ],
            ranks: false,
            each: false,
        },
    ),
    Recipe::built_in(
        "profiler-api-each",
        "nsys",
        &Timeline { groups: &[CUDA, NO_CPU, NODES, API_EACH], ranks: false, each: true },
        [
            "one timeline for each cudaProfilerStart … Stop",
            "a server or a training loop that opens the range again and again",
            "low; reports are numbered: NAME.1, NAME.2 …",
        ],
    ),
    Recipe::built_in(
        "rank",
        "nsys",
        &Timeline { groups: &[CUDA, NO_CPU, NODES], ranks: true, each: false },
        [
            "timeline of each rank, in a report of its own",
            "torchrun, mpirun, mpiexec or srun start the program: give the whole command, and nsys goes between launcher and program",
            "as `exact`, per rank",
        ],
    ),
    row(
        "gpu-metrics",
        [
            "timeline with the GPU's own counters sampled",
            "how busy SMs, memory and links are over time",
            "reports many times larger (they grow with time and frequency); no ncu, DCGM or other nsys at the same time; needs permission to read GPU counters",
        ],
        &Timeline {
            groups: &[
                CUDA,
                NO_CPU,
                NODES,
                (&["--gpu-metrics-device=all", "--gpu-metrics-frequency=10000"], "Counters of all GPUs, 10,000 times a second."),
            ],
            ranks: false,
            each: false,
        },
    ),
    row(
        "memory",
        ["timeline with allocations", "device memory runs out, or allocation takes time", "high: every allocation is recorded"],
        &Timeline {
            groups: &[CUDA, NO_CPU, NODES, (&["--cuda-memory-usage=true"], "Device memory usage, with every allocation.")],
            ranks: false,
            each: false,
        },
    ),
    row(
        "forks",
        [
            "timeline that follows forks",
            "children that fork without exec (Python's multiprocessing with the start method fork); better, let it spawn",
            "risky: tracing a forked process that shares its parent's CUDA state can break it",
        ],
        &Timeline {
            groups: &[
                CUDA,
                NO_CPU,
                NODES,
                (&["--trace-fork-before-exec=true"], "Child processes are traced from the fork on, not only after exec."),
            ],
            ranks: false,
            each: false,
        },
    ),
];
