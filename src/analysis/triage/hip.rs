//! Rewords the rules' CUDA terms for AMD GPUs: HIP's functions and variables, `ROCTx`, RCCL. PyTorch's own names
//! (`torch.cuda`) are the same on AMD and stay.

/// CUDA phrases and their replacements; longer ones first.
const PHRASES: [(&str, &str); 35] = [
    (
        "recorded without osrt: waiting and computing cannot be told apart; `warpscope run --recipe full` records it",
        "rocprofv3 does not record what threads wait for: waiting and computing cannot be told apart",
    ),
    (
        "recorded without osrt: waiting and computing cannot be told apart",
        "rocprofv3 does not record what threads wait for: waiting and computing cannot be told apart",
    ),
    (" (`warpscope run` without a recipe for kernels only, `nsys --trace=cuda`)", " (`rocprofv3 --runtime-trace`)"),
    ("; `warpscope run --recipe exact` records them", ""),
    (
        "Load ahead of time: CUDA_MODULE_LOADING=EAGER, or compile for this GPU's architecture instead of PTX.",
        "Compile for this GPU's architecture ahead of time (--offload-arch, PYTORCH_ROCM_ARCH).",
    ),
    ("TORCHINDUCTOR_CACHE_DIR, CUDA_CACHE_PATH", "TORCHINDUCTOR_CACHE_DIR, MIOPEN_USER_DB_PATH"),
    ("CUDA_LAUNCH_BLOCKING=1", "HIP_LAUNCH_BLOCKING=1, AMD_SERIALIZE_KERNEL=3"),
    ("PYTORCH_CUDA_ALLOC_CONF", "PYTORCH_HIP_ALLOC_CONF"),
    ("(NCCL_DEBUG=INFO, nccl-tests)", "(NCCL_DEBUG=INFO, rccl-tests)"),
    ("--default-stream per-thread or cudaStreamNonBlocking", "-fgpu-default-stream=per-thread or hipStreamNonBlocking"),
    ("cudaMallocAsync, RMM, cupy.cuda.MemoryPool", "hipMallocAsync, cupy.cuda.MemoryPool"),
    ("cudaStreamBeginCapture", "hipStreamBeginCapture"),
    ("cudaGraphExecUpdate", "hipGraphExecUpdate"),
    ("cudaGraphExecKernelNodeSetParams", "hipGraphExecKernelNodeSetParams"),
    ("cudaStreamWaitEvent", "hipStreamWaitEvent"),
    ("cudaMemPrefetchAsync", "hipMemPrefetchAsync"),
    ("cudaMemAdvise", "hipMemAdvise"),
    ("cudaMallocHost", "hipHostMalloc"),
    ("cudaHostRegister", "hipHostRegister"),
    ("cudaMemcpyAsync", "hipMemcpyAsync"),
    ("cudaMalloc", "hipMalloc"),
    ("a Triton or CUDA kernel", "a Triton or HIP kernel"),
    ("A CUDA graph", "A HIP graph"),
    ("a CUDA graph", "a HIP graph"),
    ("the CUDA graph", "the HIP graph"),
    ("CUDA graphs", "HIP graphs"),
    ("the host's CUDA calls", "the host's HIP calls"),
    ("in other CUDA calls", "in other HIP calls"),
    ("outside of CUDA", "outside of HIP"),
    ("outside CUDA", "outside HIP"),
    ("in CUDA nor", "in HIP nor"),
    ("NVTX", "ROCTx"),
    ("NVLink", "Infinity Fabric"),
    ("cuBLAS", "hipBLASLt"),
    ("SMs", "CUs"),
];

/// Returns a text with HIP's terms in place of CUDA's.
pub fn to_hip_terms(text: &str) -> String {
    PHRASES.iter().fold(text.to_owned(), |text, (cuda, hip)| if text.contains(cuda) { text.replace(cuda, hip) } else { text })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Every CUDA phrase in a rule text has a replacement. `torch.cuda` and `device="cuda"` are PyTorch's names on both
    /// platforms, as are its variables.
    #[test]
    fn no_rule_speaks_of_cuda_to_whoever_has_an_amd_gpu() {
        let rules = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("triage/rules");
        let mut texts = vec![std::fs::read_to_string(rules.with_file_name("mod.rs")).unwrap()];
        texts.extend(std::fs::read_dir(rules).unwrap().map(|e| std::fs::read_to_string(e.unwrap().path()).unwrap()));
        let mut seen = 0;
        for line in texts.iter().flat_map(|t| t.lines()).map(str::trim).filter(|l| !l.starts_with("//") && l.contains('"')) {
            let hip = to_hip_terms(line);
            seen += usize::from(hip != line);
            let own = ["torch.cuda", "cupy.cuda", "\"cuda", "PYTORCH_NO_CUDA_MEMORY_CACHING", "NCCL_DEBUG"]
                .iter()
                .fold(hip.clone(), |t, w| t.replace(w, ""));
            let of_words = own.contains("[\"ROCTx\"");
            for word in ["CUDA", "cuda", "nsys", "NVTX", "PTX", "cuBLAS", "NCCL"] {
                assert!(!own.contains(word) || of_words, "{word}: {hip}");
            }
        }
        assert!(seen > 20, "{seen}");
    }
}
