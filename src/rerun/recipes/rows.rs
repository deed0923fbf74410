//! All built-in recipes, one row each.

use super::amd::Job;
use super::ncu::{Counters, What};
use super::nsys::{API_EACH, CUDA, Group, NO_CPU, NODES, Timeline};
use super::servers::Server;
use super::{How, Recipe};

type Row = Recipe<'static>;

const fn row(id: &'static str, tool: &'static str, how: How<'static>, [about, when, cost]: [&'static str; 3]) -> Row {
    Recipe { id, tool, about, when, cost, needs_range: false, how }
}

const fn nsys(id: &'static str, words: [&'static str; 3], groups: &'static [Group]) -> Row {
    row(id, "nsys", How::Nsys(Timeline { groups, ranks: false, each: false }), words)
}

/// `count`: launches that are profiled when nobody says which; `of_kernel`: when only a kernel is named.
const fn ncu(id: &'static str, words: [&'static str; 3], what: What, count: u64, of_kernel: u64) -> Row {
    row(id, "ncu", How::Ncu(Counters { what, count, of_kernel }), words)
}

/// Figures: an H200 with nsys 2025.3 and ncu 2025.3.1, where a number is given; for ncu of kernels of a microsecond, as in
/// [`collect`](crate::rerun::collect).
pub static RECIPES: &[Row] = &[
    nsys(
        "exact",
        [
            "timeline that a re-run can count in",
            "the first report of any program",
            "little: about 110 bytes of report a kernel; kernels of CUDA graphs cost more than with `light`",
        ],
        &[CUDA, NO_CPU, NODES],
    ),
    nsys(
        "light",
        [
            "timeline with CUDA graphs as a whole",
            "graphs of thousands of short kernels, where `exact` costs too much",
            "the least; kernels inside graphs are not recorded",
        ],
        &[CUDA, NO_CPU, (&["--cuda-graph-trace=graph"], "A CUDA graph is one record; the kernels inside are not listed.")],
    ),
    nsys(
        "full",
        [
            "timeline with library calls, OS calls and CPU samples",
            "the GPU waits for the host, and you want to know what the host does",
            "more: samples and OS calls; needs perf_event_paranoid of 2 or less",
        ],
        &[
            (&["--trace=cuda,nvtx,osrt,cublas,cudnn"], "CUDA, NVTX, calls that block in the operating system, cuBLAS and cuDNN."),
            (&["--sample=process-tree"], "CPU samples of the program and its children."),
            NODES,
        ],
    ),
    nsys(
        "python",
        [
            "timeline with Python call stacks",
            "a Python program, and you want to know which line launched a kernel",
            "more: a stack for every launch, and samples",
        ],
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
        needs_range: true,
        ..nsys(
            "nvtx",
            [
                "timeline of one NVTX range",
                "a long program with ranges: record the first time that a range is entered",
                "little; nothing is recorded outside the range",
            ],
            &[
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
        )
    },
    nsys(
        "profiler-api",
        [
            "timeline between cudaProfilerStart and cudaProfilerStop",
            "the program calls them (torch.cuda.profiler.start and stop)",
            "little; nothing is recorded outside",
        ],
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
    row(
        "profiler-api-each",
        "nsys",
        How::Nsys(Timeline { groups: &[CUDA, NO_CPU, NODES, API_EACH], ranks: false, each: true }),
        [
            "one timeline for each cudaProfilerStart … Stop",
            "a server or a training loop that opens the range again and again",
            "little; reports are numbered: NAME.1, NAME.2 …",
        ],
    ),
    row(
        "rank",
        "nsys",
        How::Nsys(Timeline { groups: &[CUDA, NO_CPU, NODES], ranks: true, each: false }),
        [
            "timeline of each rank, in a report of its own",
            "torchrun, mpirun, mpiexec or srun start the program: give the whole command, and nsys goes between launcher and program",
            "as `exact`, for each rank",
        ],
    ),
    nsys(
        "gpu-metrics",
        [
            "timeline with the GPU's own counters sampled",
            "how busy SMs, memory and links are over time",
            "reports many times as large (they grow with time and frequency); no ncu, DCGM or other nsys beside it; needs the right to read counters",
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
        ["timeline with allocations", "device memory runs out, or allocation takes time", "much: every allocation is recorded"],
        &[CUDA, NO_CPU, NODES, (&["--cuda-memory-usage=true"], "Device memory in use, with every allocation.")],
    ),
    nsys(
        "forks",
        [
            "timeline that follows forks",
            "children that fork without exec (Python's multiprocessing with the start method fork); better, let it spawn",
            "risky: tracing a forked process that shares its parent's CUDA state can break it",
        ],
        &[CUDA, NO_CPU, NODES, (&["--trace-fork-before-exec=true"], "Children are traced from the fork on, not only after exec.")],
    ),
    ncu(
        "scan",
        [
            "duration, grid and block of the first 2,000 launches",
            "there is no nsys on this machine",
            "one pass a launch; kernels run one at a time, so gaps and overlap are not what they were",
        ],
        What::Duration,
        2000,
        2000,
    ),
    ncu(
        "scan-light",
        ["speed of light of the first 50 launches", "a small program, no nsys", "10 passes, about 0.3 s a launch"],
        What::Set("basic"),
        50,
        50,
    ),
    ncu(
        "ncu-sol",
        [
            "speed of light, launch and occupancy of chosen launches",
            "is a kernel bound by compute, memory or latency?",
            "10 passes, about 0.3 s and 52 kB a launch",
        ],
        What::Question("bound"),
        20,
        1,
    ),
    ncu(
        "ncu-roofline",
        [
            "rooflines of chosen launches: half, single, double, tensor",
            "how far is a kernel from what this GPU can do?",
            "17 passes, about 0.4 s and 620 kB a launch",
        ],
        What::Set("roofline"),
        10,
        1,
    ),
    ncu(
        "ncu-memory",
        [
            "traffic between all memory units of chosen launches",
            "a kernel is bound by memory: why is it slow?",
            "35 passes, about 1.1 s and 86 kB a launch",
        ],
        What::Question("memory"),
        5,
        1,
    ),
    ncu(
        "ncu-stalls",
        [
            "what the warps of chosen launches wait for",
            "a kernel is bound by latency: no unit is near its peak",
            "17 passes, about 0.3 s and 41 kB a launch",
        ],
        What::Question("stalls"),
        10,
        1,
    ),
    ncu(
        "ncu-source",
        [
            "stalls by source line and instruction of chosen launches",
            "which line of a kernel is it?",
            "13 passes, about 0.3 s and 40 kB a launch, and the sources; build with -lineinfo",
        ],
        What::Question("source"),
        5,
        1,
    ),
    ncu(
        "ncu-full",
        [
            "everything that ncu has, with sources, of chosen launches",
            "the last word on one kernel",
            "38 passes, about 1.7 s and 930 kB a launch: name the kernel",
        ],
        What::SetWithSource("full"),
        3,
        1,
    ),
    row(
        "torch",
        "torch",
        How::Torch,
        [
            "PyTorch's own trace (CPU and GPU) of a Python program, which stays as it is",
            "which operator launched a kernel; or there is neither nsys nor ncu",
            "for 60 s (--seconds) from `import torch` on; small kernels make 110,000 events a second, which is 1.7 MB compressed and 2.4 s of writing for each; not inside nsys or ncu, and not for a program that runs torch.profiler itself: each wants CUPTI for itself. A program that ends by os._exit or SIGKILL leaves none",
        ],
    ),
    row(
        "rocprof",
        "rocprofv3",
        How::Rocprof(Job::Kernels),
        ["kernels and copies of an AMD GPU", "the first report of a ROCm program", "little: about 300 bytes of table a kernel"],
    ),
    row(
        "rocprof-system",
        "rocprofv3",
        How::Rocprof(Job::System),
        ["timeline of a ROCm program for Perfetto", "the GPU waits for the host", "more: every call of HIP and HSA"],
    ),
    row(
        "rocprof-counters",
        "rocprofv3",
        How::Rocprof(Job::Counters),
        [
            "hardware counters of an AMD GPU, for each launch",
            "waves and memory traffic of a kernel; edit the list for others",
            "kernels run one at a time; counters that do not fit one pass need a run each",
        ],
    ),
    row(
        "rocprof-att",
        "rocprofv3",
        How::Rocprof(Job::Threads),
        [
            "every instruction of one compute unit of an AMD GPU, in time",
            "the last word on one kernel: name it, for without a name it is the first launch of each",
            "100 MB of buffer for each shader engine, and large files; needs the trace decoder and ROCm 7",
        ],
    ),
    row(
        "rocprof-jobs",
        "rocprofv3",
        How::Rocprof(Job::File),
        [
            "trace, counters and thread trace of a ROCm program, as a job file",
            "a program that does the same in each run; edit the YAML for more",
            "the program runs three times",
        ],
    ),
    row(
        "vllm",
        "nsys",
        How::Server(Server::VllmNsys),
        [
            "timeline of a vLLM server while you say so, step by step",
            "vllm serve, from 0.13 on: kernels and gaps under real load",
            "little outside the recording; the server starts slower, for its workers spawn",
        ],
    ),
    row(
        "vllm-torch",
        "torch",
        How::Server(Server::VllmTorch),
        [
            "PyTorch's trace of a vLLM server while you say so, step by step",
            "vllm serve, from 0.13 on: which operator launched a kernel",
            "much: a few requests fill a trace, and writing it takes minutes",
        ],
    ),
    row(
        "vllm-torch-old",
        "torch",
        How::Server(Server::VllmTorchOld),
        [
            "PyTorch's trace of a vLLM server before 0.13, by VLLM_TORCH_PROFILER_DIR",
            "vllm serve that does not know --profiler-config",
            "as `vllm-torch`",
        ],
    ),
    row(
        "trtllm",
        "nsys",
        How::Server(Server::TrtllmNsys),
        [
            "timeline of some iterations of TensorRT-LLM",
            "trtllm-serve or trtllm-bench; choose iterations by --launch-skip and --launch-count",
            "little outside the iterations; extra NVTX ranges and forks are traced, too",
        ],
    ),
    row(
        "trtllm-torch",
        "torch",
        How::Server(Server::TrtllmTorch),
        [
            "PyTorch's trace of some iterations of TensorRT-LLM",
            "its PyTorch workflow: which operator launched a kernel",
            "much while it traces; not under nsys at the same time",
        ],
    ),
];
