//! A GPU vendor's terms, as in the documentation of NVIDIA and AMD. PyTorch's own names (`torch.cuda`) are the same
//! for both.

use super::device::{Vendor, Words};

/// Vendor-specific terms, for use in advice.
#[derive(Debug)]
pub struct Terms {
    /// Terms for the components of the GPU and the programming interface.
    pub gpu: &'static Words,
    /// Prefix of runtime functions.
    pub prefix: &'static str,
    /// Name of the API with which a program marks ranges.
    pub ranges: &'static str,
    /// Fast link between GPUs.
    pub link: &'static str,
    /// Function that allocates pinned host memory.
    pub malloc_host: &'static str,
    /// APIs for pools of device memory.
    pub pools: &'static str,
    /// Environment variable that configures PyTorch's allocator.
    pub allocator: &'static str,
    /// Environment variables that make launches synchronous.
    pub blocking: &'static str,
    /// Benchmark programs for collectives.
    pub collective_tests: &'static str,
    /// Compiler option that gives each thread its own default stream.
    pub thread_streams: &'static str,
    /// Name for recorded sequences of operations that are launched as one.
    pub graphs: &'static str,
    /// Environment variable for the directory of compiled kernels.
    pub compile_cache: &'static str,
    /// Advice to compile kernels before the program runs.
    pub compile_ahead: &'static str,
    /// Command that also records host calls.
    pub record_calls: &'static str,
    /// Clause that says why it is unknown if threads wait, and for what.
    pub no_waiting: &'static str,
    /// Advice that follows `no_waiting`, if the vendor's profiler can record what threads wait for.
    pub record_waiting: &'static str,
    /// Advice on recording the kernels inside graphs, if they are not recorded by default.
    pub record_graph_kernels: &'static str,
}

static CUDA: Terms = Terms {
    gpu: Vendor::Nvidia.vendor_terms(),
    prefix: "cuda",
    ranges: "NVTX",
    link: "NVLink",
    malloc_host: "cudaMallocHost",
    pools: "cudaMallocAsync, RMM, cupy.cuda.MemoryPool",
    allocator: "PYTORCH_CUDA_ALLOC_CONF",
    blocking: "CUDA_LAUNCH_BLOCKING=1",
    collective_tests: "nccl-tests",
    thread_streams: "--default-stream per-thread",
    graphs: "CUDA graphs",
    compile_cache: "CUDA_CACHE_PATH",
    compile_ahead: "Load ahead of time: CUDA_MODULE_LOADING=EAGER, or compile for this GPU's architecture instead of PTX.",
    record_calls: "`warpscope run` without a recipe for kernels only, `nsys --trace=cuda`",
    no_waiting: "OS calls were not recorded",
    record_waiting: "; `warpscope run --recipe full` records it",
    record_graph_kernels: "; `warpscope run --recipe exact` records them",
};

static HIP: Terms = Terms {
    gpu: Vendor::Amd.vendor_terms(),
    prefix: "hip",
    ranges: "ROCTx",
    link: "Infinity Fabric",
    malloc_host: "hipHostMalloc",
    pools: "hipMallocAsync, cupy.cuda.MemoryPool",
    allocator: "PYTORCH_HIP_ALLOC_CONF",
    blocking: "HIP_LAUNCH_BLOCKING=1, AMD_SERIALIZE_KERNEL=3",
    collective_tests: "rccl-tests",
    thread_streams: "-fgpu-default-stream=per-thread",
    graphs: "HIP graphs",
    compile_cache: "MIOPEN_USER_DB_PATH",
    compile_ahead: "Compile for this GPU's architecture ahead of time (--offload-arch, PYTORCH_ROCM_ARCH).",
    record_calls: "`rocprofv3 --runtime-trace`",
    no_waiting: "rocprofv3 does not record what threads wait for",
    record_waiting: "",
    record_graph_kernels: "",
};

impl Terms {
    /// Returns AMD's terms if `amd`, otherwise NVIDIA's.
    pub fn of(amd: bool) -> &'static Self {
        if amd { &HIP } else { &CUDA }
    }
}
