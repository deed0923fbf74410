//! Commands that make a first report of a program: timelines with nsys, and scans with ncu where there is no nsys.

use super::program::PLACEHOLDER;
use super::{Part, PartId, shell};

/// A way to record a program. One row in [`RECIPES`].
#[derive(Debug)]
pub struct Recipe {
    /// Its word.
    pub id: &'static str,
    /// The profiler.
    pub tool: &'static str,
    /// What it records, in a few words.
    pub about: &'static str,
    /// When it is the right one.
    pub when: &'static str,
    /// What it costs.
    pub cost: &'static str,
    /// Whether it needs the name of an NVTX range.
    pub needs_range: bool,
    /// Variable of the launcher that goes into the report's name.
    rank: Option<&'static str>,
    /// Words between the profiler and `-o`, in groups with what they do. `{RANGE}` stands for the range.
    groups: &'static [(&'static [&'static str], &'static str)],
}

type Group = (&'static [&'static str], &'static str);

const CUDA: Group = (&["--trace=cuda,nvtx"], "CUDA calls, kernels, copies and NVTX ranges; nothing else is traced.");
const NO_CPU: Group = (&["--sample=none", "--cpuctxsw=none"], "No CPU samples and no thread switches: both need rights, and cost time.");
const NODES: Group =
    (&["--cuda-graph-trace=node"], "Kernels inside CUDA graphs are recorded one by one, which a re-run needs to count them.");

const fn nsys(id: &'static str, about: &'static str, when: &'static str, cost: &'static str, groups: &'static [Group]) -> Recipe {
    Recipe { id, tool: "nsys", about, when, cost, needs_range: false, rank: None, groups }
}

const fn ncu(id: &'static str, about: &'static str, when: &'static str, cost: &'static str, groups: &'static [Group]) -> Recipe {
    Recipe { id, tool: "ncu", about, when, cost, needs_range: false, rank: None, groups }
}

/// Figures: an H200 with nsys 2025.3 and ncu 2025.3.1, where a number is given.
pub static RECIPES: &[Recipe] = &[
    nsys(
        "exact",
        "timeline that a re-run can count in",
        "the first report of any program",
        "little: about 110 bytes of report a kernel; kernels of CUDA graphs cost more than with `light`",
        &[CUDA, NO_CPU, NODES],
    ),
    nsys(
        "light",
        "timeline with CUDA graphs as a whole",
        "graphs of thousands of short kernels, where `exact` costs too much",
        "the least; kernels inside graphs are not recorded",
        &[CUDA, NO_CPU, (&["--cuda-graph-trace=graph"], "A CUDA graph is one record; the kernels inside are not listed.")],
    ),
    nsys(
        "full",
        "timeline with library calls, OS calls and CPU samples",
        "the GPU waits for the host, and you want to know what the host does",
        "more: samples and OS calls; needs perf_event_paranoid of 2 or less",
        &[
            (&["--trace=cuda,nvtx,osrt,cublas,cudnn"], "CUDA, NVTX, calls that block in the operating system, cuBLAS and cuDNN."),
            (&["--sample=process-tree"], "CPU samples of the program and its children."),
            NODES,
        ],
    ),
    nsys(
        "python",
        "timeline with Python call stacks",
        "a Python program, and you want to know which line launched a kernel",
        "more: a stack for every launch, and samples",
        &[
            (&["--trace=cuda,nvtx,osrt,python-gil"], "CUDA, NVTX, blocking OS calls, and who holds Python's lock."),
            (
                &["--sample=process-tree", "--python-backtrace=cuda", "--python-sampling=true"],
                "Python stacks of CUDA calls, and Python samples.",
            ),
            NODES,
        ],
    ),
    Recipe {
        id: "nvtx",
        tool: "nsys",
        about: "timeline of one NVTX range",
        when: "a long program with ranges: record the first time that a range is entered",
        cost: "little; nothing is recorded outside the range",
        needs_range: true,
        rank: None,
        groups: &[
            CUDA,
            NO_CPU,
            NODES,
            (
                &["--capture-range=nvtx", "--nvtx-capture={RANGE}", "--capture-range-end=stop"],
                "Recording begins when the range is first entered and ends with it; the program runs on. RANGE or RANGE@DOMAIN, exact.",
            ),
            (
                &["--env-var=NSYS_NVTX_PROFILER_REGISTER_ONLY=0"],
                "Ranges whose names are not registered strings count, too: Python's, for one.",
            ),
        ],
    },
    nsys(
        "profiler-api",
        "timeline between cudaProfilerStart and cudaProfilerStop",
        "the program calls them (torch.cuda.profiler.start and stop)",
        "little; nothing is recorded outside",
        &[
            CUDA,
            NO_CPU,
            NODES,
            (
                &["--capture-range=cudaProfilerApi", "--capture-range-end=stop"],
                "Recording begins with cudaProfilerStart and ends with cudaProfilerStop; the program runs on.",
            ),
        ],
    ),
    nsys(
        "profiler-api-each",
        "one timeline for each cudaProfilerStart … Stop",
        "a server or a training loop that opens the range again and again",
        "little; reports are numbered: NAME.1, NAME.2 …",
        &[
            CUDA,
            NO_CPU,
            NODES,
            (
                &["--capture-range=cudaProfilerApi", "--capture-range-end=repeat"],
                "One report for each range. A re-run must say which: --opened-by profiler:2.",
            ),
        ],
    ),
    Recipe {
        id: "rank",
        tool: "nsys",
        about: "timeline of each rank, in a report of its own",
        when: "mpirun, srun or torchrun start the program: put this between the launcher and the program (torchrun needs --no-python, and python before the script)",
        cost: "as `exact`, for each rank",
        needs_range: false,
        rank: Some("RANK"),
        groups: &[CUDA, NO_CPU, NODES],
    },
    nsys(
        "gpu-metrics",
        "timeline with the GPU's own counters sampled",
        "how busy SMs, memory and links are over time",
        "reports many times as large (they grow with time and frequency); no ncu, DCGM or other nsys beside it; needs the right to read counters",
        &[
            CUDA,
            NO_CPU,
            NODES,
            (&["--gpu-metrics-device=all", "--gpu-metrics-frequency=10000"], "Counters of all GPUs, 10,000 times a second."),
        ],
    ),
    nsys(
        "memory",
        "timeline with allocations",
        "device memory runs out, or allocation takes time",
        "much: every allocation is recorded",
        &[CUDA, NO_CPU, NODES, (&["--cuda-memory-usage=true"], "Device memory in use, with every allocation.")],
    ),
    nsys(
        "forks",
        "timeline that follows forks",
        "children that fork without exec (Python's multiprocessing with the start method fork); better, let it spawn",
        "risky: tracing a forked process that shares its parent's CUDA state can break it",
        &[CUDA, NO_CPU, NODES, (&["--trace-fork-before-exec=true"], "Children are traced from the fork on, not only after exec.")],
    ),
    ncu(
        "scan",
        "duration, grid and block of the first 2,000 launches",
        "there is no nsys on this machine",
        "one pass a launch; kernels run one at a time; `warpscope metrics` reads the report, the explorer does not yet",
        &[
            (&["--metrics", "gpu__time_duration.sum"], "One metric, in one pass."),
            (&["--launch-count", "2000"], "So many launches; the program runs on afterwards."),
            (&["--clock-control", "none"], "Clocks are left as they are, as in production."),
        ],
    ),
    ncu(
        "scan-light",
        "speed of light of the first 50 launches",
        "a small program, no nsys",
        "about 0.3 s a launch; `warpscope metrics` reads the report, the explorer does not yet",
        &[(&["--set", "basic"], "Speed of light, launch, occupancy: ten passes."), (&["--launch-count", "50"], "So many launches.")],
    ),
];

/// A recipe by its word.
#[must_use]
pub fn recipe(id: &str) -> Option<&'static Recipe> {
    RECIPES.iter().find(|r| r.id == id)
}

impl Recipe {
    /// The command in pieces. `output` is the report without its suffix; an empty program becomes a placeholder that cannot be run.
    pub fn parts(&self, program: &[String], output: &str, range: Option<&str>) -> Result<Vec<Part>, String> {
        if self.needs_range && range.is_none() {
            return Err(format!("recipe {} needs the name of an NVTX range", self.id));
        }
        let mut parts = vec![if self.tool == "nsys" {
            Part { id: PartId::Tool, words: vec!["nsys".into(), "profile".into()], why: "NVIDIA's timeline profiler.".into() }
        } else {
            super::parts::tool()
        }];
        for (words, why) in self.groups {
            let words = words.iter().map(|w| w.replace("{RANGE}", range.unwrap_or_default())).collect();
            parts.push(Part { id: PartId::Collect, words, why: (*why).to_owned() });
        }
        let (option, suffix) = if self.tool == "nsys" { ("--output", "nsys-rep") } else { ("--export", "ncu-rep") };
        // The macro is for the profiler, which runs inside the rank: only the name before it is literal.
        let (name, why) = match self.rank {
            None => (shell::output_path(output), format!("The report: {output}.{suffix}.")),
            Some(variable) => (
                format!("{}.%q{{{variable}}}", shell::output_path(output)),
                format!(
                    "One report for each rank: {output}.0.{suffix} … {variable} is torchrun's variable; Open MPI has OMPI_COMM_WORLD_RANK, MPICH PMI_RANK, Slurm SLURM_PROCID."
                ),
            ),
        };
        parts.push(Part { id: PartId::Output, words: vec![option.to_owned(), name], why });
        let words = if program.is_empty() { vec![PLACEHOLDER.to_owned()] } else { program.to_vec() };
        parts.push(Part { id: PartId::Program, words, why: "The program and its arguments.".to_owned() });
        Ok(parts)
    }

    /// The command.
    pub fn argv(&self, program: &[String], output: &str, range: Option<&str>) -> Result<Vec<String>, String> {
        Ok(self.parts(program, output, range)?.into_iter().flat_map(|p| p.words).collect())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn recipes_are_whole_and_never_part_the_program_with_dashes() {
        let program = ["python3".to_owned(), "a b.py".to_owned()];
        let mut seen = std::collections::BTreeSet::new();
        for recipe in RECIPES {
            assert!(seen.insert(recipe.id), "{} twice", recipe.id);
            let argv = recipe.argv(&program, "out_100%", Some("step")).unwrap();
            assert_eq!(argv[argv.len() - 2..], program, "{}", recipe.id);
            assert!(argv.iter().any(|w| w.starts_with("out_100%%")) && !argv.contains(&"--".to_owned()), "{argv:?}");
            assert!(!argv.iter().any(|w| w.contains("{RANGE}")), "{argv:?}");
            assert_eq!(recipe.argv(&program, "o", None).is_err(), recipe.needs_range);
        }
        let open = recipe("exact").unwrap().argv(&[], "o", None).unwrap();
        assert_eq!(open.last().unwrap(), PLACEHOLDER);
    }
}
