//! All built-in recipes, one row each.

use super::amd::Job;
use super::ncu::{NcuJob, NcuMetrics};
use super::nsys::{API_EACH, CUDA, Group, NO_CPU, NODES, Timeline};
use super::recipe::{Recipe, RecipeKind};
use super::servers::Server;
use super::torch;
use super::trace::Options;

type Row = Recipe<'static>;

const fn row(id: &'static str, tool: &'static str, how: RecipeKind<'static>, [about, when, cost]: [&'static str; 3]) -> Row {
    Recipe { id, tool, about, when, cost, needs_range: false, how }
}

const fn nsys(id: &'static str, words: [&'static str; 3], groups: &'static [Group]) -> Row {
    row(id, "nsys", RecipeKind::Nsys(Timeline { groups, ranks: false, each: false }), words)
}

const fn trace(id: &'static str, words: [&'static str; 3], options: &'static [Group]) -> Row {
    row(id, "trace", RecipeKind::Trace(Options { words: options }), words)
}

/// `count` and `of_kernel` are the default numbers of launches without and with a kernel name.
const fn ncu(id: &'static str, words: [&'static str; 3], what: NcuMetrics, count: u64, of_kernel: u64) -> Row {
    row(id, "ncu", RecipeKind::Ncu(NcuJob { what, count, of_kernel }), words)
}

/// Costs were measured on an H200 with nsys 2025.3 and ncu 2025.3.1; those of ncu are for one-microsecond kernels, as
/// in [`collect`](crate::rerun::collect).
pub static RECIPES: &[Row] = &[
    trace(
        "trace",
        [
            "timeline of the built-in tracer, with exact launch counts for re-runs",
            "the first report of any program that uses CUDA; needs no nsys, only the libcupti that PyTorch and CUDA bring",
            "low: below nsys; about 15 bytes of trace per kernel with its call",
        ],
        &[],
    ),
    trace(
        "trace-light",
        [
            "kernels only, CUDA graphs as a whole",
            "a server or a job that must not be slowed down; memcpys, calls and kernels inside graphs are not wanted",
            "lowest: about 8 bytes of trace per kernel",
        ],
        &[
            (&["--lean"], "Kernels only, in launch order: no calls, memcpys and memsets."),
            (&["--graphs", "whole"], "A CUDA graph is one record; the kernels inside are not listed."),
        ],
    ),
    Recipe {
        needs_range: true,
        ..trace(
            "trace-range",
            [
                "trace of an NVTX range, each time that it is entered",
                "a long program with ranges",
                "low; nothing is written outside the range",
            ],
            &[(&["--range", "{RANGE}"], "What is launched inside is recorded; the program keeps running. RANGE or RANGE@DOMAIN, exact.")],
        )
    },
    trace(
        "trace-profiler-api",
        [
            "trace between cudaProfilerStart and cudaProfilerStop, each time",
            "the program calls them (torch.cuda.profiler.start and stop)",
            "low; nothing is written outside",
        ],
        &[(&["--profiler-api"], "Recording begins with cudaProfilerStart and ends with cudaProfilerStop, each time.")],
    ),
    trace(
        "trace-closed",
        [
            "trace that is opened and closed by hand: `warpscope attach --open`, `--close`",
            "a server that runs for days",
            "next to nothing while it is closed",
        ],
        &[(&["--closed"], "Nothing is recorded until it is opened.")],
    ),
    trace(
        "trace-last",
        [
            "trace of the last 30 s, for as long as the program runs",
            "a server that is watched for hours (`warpscope watch`), or a crash that comes at some time",
            "low; the files on disk hold the last 30 to 60 s and do not grow",
        ],
        &[(&["--keep-last", "30"], "Only the last 30 s or a little more are kept; older rows are deleted while the program runs.")],
    ),
    trace(
        "trace-survey",
        [
            "trace with counters of the kernels that take the most time, measured while the program runs",
            "why its kernels are slow, without a second run under ncu",
            "measuring adds up to 3% of the run's time; kernels in CUDA graphs, collectives and kernels that run side by side are not measured",
        ],
        &[(
            &["--survey"],
            "Counters of the kernels that take 90% of the time, three launches of each configuration; may add 3% of the time.",
        )],
    ),
    nsys(
        "exact",
        [
            "timeline with exact launch counts for re-runs",
            "the first report of any program",
            "low: about 110 bytes of report per kernel; kernels in CUDA graphs cost more than with `light`",
        ],
        &[CUDA, NO_CPU, NODES],
    ),
    nsys(
        "light",
        [
            "timeline with CUDA graphs as a whole",
            "graphs of thousands of short kernels, where `exact` costs too much",
            "lowest; kernels inside graphs are not recorded",
        ],
        &[CUDA, NO_CPU, (&["--cuda-graph-trace=graph"], "A CUDA graph is one record; the kernels inside are not listed.")],
    ),
    nsys(
        "full",
        [
            "timeline with library calls, OS calls and CPU samples",
            "the GPU waits for the host, and you want to know what the host does",
            "higher: samples and OS calls; needs perf_event_paranoid of 2 or less",
        ],
        &[
            (&["--trace=cuda,nvtx,osrt,cublas,cudnn"], "CUDA, NVTX, blocking OS calls, cuBLAS and cuDNN."),
            (&["--sample=process-tree"], "CPU samples of the program and its children."),
            NODES,
        ],
    ),
    nsys(
        "python",
        [
            "timeline with Python call stacks",
            "a Python program, and you want to know which line launched a kernel",
            "higher: a stack for every launch, and samples",
        ],
        &[
            (&["--trace=cuda,nvtx,osrt,python-gil"], "CUDA, NVTX, blocking OS calls, and who holds Python's GIL."),
            (
                &["--sample=process-tree", "--python-backtrace=cuda", "--python-sampling=true"],
                "Python backtraces of CUDA calls, and Python sampling.",
            ),
            NODES,
        ],
    ),
    Recipe {
        needs_range: true,
        ..nsys(
            "nvtx",
            [
                "timeline of one NVTX range",
                "a long program with ranges: record the first time that a range is entered",
                "low; nothing is recorded outside the range",
            ],
            &[
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
        )
    },
    nsys(
        "profiler-api",
        [
            "timeline between cudaProfilerStart and cudaProfilerStop",
            "the program calls them (torch.cuda.profiler.start and stop)",
            "low; nothing is recorded outside",
        ],
        &[
            CUDA,
            NO_CPU,
            NODES,
            (
                &["--capture-range=cudaProfilerApi", "--capture-range-end=stop"],
                "Recording begins with cudaProfilerStart and ends with cudaProfilerStop; the program keeps running.",
            ),
        ],
    ),
    row(
        "profiler-api-each",
        "nsys",
        RecipeKind::Nsys(Timeline { groups: &[CUDA, NO_CPU, NODES, API_EACH], ranks: false, each: true }),
        [
            "one timeline for each cudaProfilerStart … Stop",
            "a server or a training loop that opens the range again and again",
            "low; reports are numbered: NAME.1, NAME.2 …",
        ],
    ),
    row(
        "rank",
        "nsys",
        RecipeKind::Nsys(Timeline { groups: &[CUDA, NO_CPU, NODES], ranks: true, each: false }),
        [
            "timeline of each rank, in a report of its own",
            "torchrun, mpirun, mpiexec or srun start the program: give the whole command, and nsys goes between launcher and program",
            "as `exact`, per rank",
        ],
    ),
    nsys(
        "gpu-metrics",
        [
            "timeline with the GPU's own counters sampled",
            "how busy SMs, memory and links are over time",
            "reports many times larger (they grow with time and frequency); no ncu, DCGM or other nsys at the same time; needs permission to read GPU counters",
        ],
        &[
            CUDA,
            NO_CPU,
            NODES,
            (&["--gpu-metrics-device=all", "--gpu-metrics-frequency=10000"], "Counters of all GPUs, 10,000 times a second."),
        ],
    ),
    nsys(
        "memory",
        ["timeline with allocations", "device memory runs out, or allocation takes time", "high: every allocation is recorded"],
        &[CUDA, NO_CPU, NODES, (&["--cuda-memory-usage=true"], "Device memory usage, with every allocation.")],
    ),
    nsys(
        "forks",
        [
            "timeline that follows forks",
            "children that fork without exec (Python's multiprocessing with the start method fork); better, let it spawn",
            "risky: tracing a forked process that shares its parent's CUDA state can break it",
        ],
        &[CUDA, NO_CPU, NODES, (&["--trace-fork-before-exec=true"], "Child processes are traced from the fork on, not only after exec.")],
    ),
    ncu(
        "scan",
        [
            "duration, grid and block of the first 2,000 launches",
            "nsys is not installed on this machine",
            "one pass per launch; kernels are serialized, so gaps and overlap are not as in the program",
        ],
        NcuMetrics::Duration,
        2000,
        2000,
    ),
    ncu(
        "scan-light",
        ["speed of light of the first 50 launches", "a small program, no nsys", "10 passes, about 0.3 s per launch"],
        NcuMetrics::Set("basic"),
        50,
        50,
    ),
    ncu(
        "ncu-sol",
        [
            "speed of light, launch and occupancy of chosen launches",
            "is a kernel bound by compute, memory or latency?",
            "10 passes, about 0.3 s and 52 kB per launch",
        ],
        NcuMetrics::Question("bound"),
        20,
        1,
    ),
    ncu(
        "ncu-roofline",
        [
            "rooflines of chosen launches: half, single, double, tensor",
            "how far is a kernel from what this GPU can do?",
            "17 passes, about 0.4 s and 620 kB per launch",
        ],
        NcuMetrics::Set("roofline"),
        10,
        1,
    ),
    ncu(
        "ncu-memory",
        [
            "traffic between all memory units of chosen launches",
            "a kernel is bound by memory: why is it slow?",
            "35 passes, about 1.1 s and 86 kB per launch",
        ],
        NcuMetrics::Question("memory"),
        5,
        1,
    ),
    ncu(
        "ncu-stalls",
        [
            "what the warps of chosen launches wait for",
            "a kernel is bound by latency: no unit is near its peak",
            "17 passes, about 0.3 s and 41 kB per launch",
        ],
        NcuMetrics::Question("stalls"),
        10,
        1,
    ),
    ncu(
        "ncu-source",
        [
            "stalls by source line and instruction of chosen launches",
            "which line of a kernel is it?",
            "13 passes, about 0.3 s and 40 kB per launch, plus the sources; build with -lineinfo",
        ],
        NcuMetrics::Question("source"),
        5,
        1,
    ),
    ncu(
        "ncu-full",
        [
            "all sections of ncu, with sources, of chosen launches",
            "the full analysis of one kernel",
            "38 passes, about 1.7 s and 930 kB per launch: name the kernel",
        ],
        NcuMetrics::SetWithSource("full"),
        3,
        1,
    ),
    row(
        "torch",
        "torch",
        RecipeKind::Plain(torch::PLAIN),
        [
            "PyTorch's own trace (CPU and GPU) of an unmodified Python program",
            "which operator launched a kernel; or neither nsys nor ncu is installed",
            "for 60 s (--seconds) from `import torch` on; small kernels make 110,000 events a second, each second taking 1.7 MB compressed and 2.4 s to write; not under nsys or ncu, and not for a program that runs torch.profiler itself: only one of them can use CUPTI. A program that ends by os._exit or SIGKILL leaves no trace",
        ],
    ),
    row(
        "rocprof",
        "rocprofv3",
        RecipeKind::Rocprof(Job::Kernels),
        [
            "kernels, copies, HIP calls and roctx ranges of an AMD GPU",
            "the first report of a ROCm program",
            "low: about 1 KB of JSON per kernel with its call",
        ],
    ),
    row(
        "rocprof-system",
        "rocprofv3",
        RecipeKind::Rocprof(Job::System),
        ["timeline of a ROCm program for Perfetto", "the GPU waits for the host", "higher: every HIP and HSA call"],
    ),
    row(
        "rocprof-counters",
        "rocprofv3",
        RecipeKind::Rocprof(Job::Counters),
        [
            "hardware counters of an AMD GPU, per launch",
            "waves and memory traffic of a kernel; edit the list for others",
            "kernels are serialized; counters that do not fit in one pass need another run",
        ],
    ),
    row(
        "rocprof-att",
        "rocprofv3",
        RecipeKind::Rocprof(Job::Threads),
        [
            "thread trace: every instruction of one compute unit of an AMD GPU",
            "the full analysis of one kernel: name it; without a name it is the first launch of each",
            "100 MB of buffer per shader engine, and large files; needs the trace decoder and ROCm 7",
        ],
    ),
    row(
        "rocprof-jobs",
        "rocprofv3",
        RecipeKind::Rocprof(Job::File),
        [
            "trace of a ROCm program by a job file; files for counters and a thread trace are written beside it",
            "a deterministic program; edit the YAML for more",
            "the program runs once for each file",
        ],
    ),
    row(
        "vllm",
        "nsys",
        RecipeKind::Server(Server::VllmNsys),
        [
            "timeline of a vLLM server on demand, step by step",
            "vllm serve, from 0.13 on: kernels and gaps under real load",
            "low outside the recording; the server starts more slowly, because its workers are spawned",
        ],
    ),
    row(
        "vllm-torch",
        "torch",
        RecipeKind::Server(Server::VllmTorch),
        [
            "PyTorch's trace of a vLLM server on demand, step by step",
            "vllm serve, from 0.13 on: which operator launched a kernel",
            "high: a few requests fill a trace, and writing it takes minutes",
        ],
    ),
    row(
        "vllm-torch-old",
        "torch",
        RecipeKind::Server(Server::VllmTorchOld),
        [
            "PyTorch's trace of a vLLM server before 0.13, by VLLM_TORCH_PROFILER_DIR",
            "a vllm serve without --profiler-config",
            "as `vllm-torch`",
        ],
    ),
    row(
        "trtllm",
        "nsys",
        RecipeKind::Server(Server::TrtllmNsys),
        [
            "timeline of some iterations of TensorRT-LLM",
            "trtllm-serve or trtllm-bench; choose iterations by --launch-skip and --launch-count",
            "low outside the iterations; extra NVTX ranges and forks are traced, too",
        ],
    ),
    row(
        "trtllm-torch",
        "torch",
        RecipeKind::Server(Server::TrtllmTorch),
        [
            "PyTorch's trace of some iterations of TensorRT-LLM",
            "its PyTorch workflow: which operator launched a kernel",
            "high while it traces; not under nsys at the same time",
        ],
    ),
];
