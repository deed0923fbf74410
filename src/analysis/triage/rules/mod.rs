//! Triage rules. A new rule needs a file and a row in [`RULES`].

mod capture;
mod comm;
mod copies;
mod devices;
mod host;
mod kernels;
mod launching;
mod memory;
mod single;
pub mod stalls;
mod streams;
mod sync;

use super::finding::Finding;
use super::run_context::RunContext;

/// A rule: evaluates one run and may return a finding. A rule must not draw conclusions from data that is missing.
pub type Rule = fn(&RunContext<'_>) -> Option<Finding>;

pub static RULES: &[Rule] = &[
    capture::short_capture,
    single::single_delay,
    host::no_requests,
    stalls::periodic_stall,
    memory::memory_allocation,
    memory::unified_memory,
    launching::graph_recapture,
    launching::code_compilation,
    launching::launch_bound,
    sync::host_sync,
    host::input_wait,
    host::host_compute,
    streams::waiting_streams,
    copies::pageable_copies,
    copies::small_copies,
    copies::copy_bound,
    comm::exposed_collectives,
    kernels::small_kernels,
    kernels::serialised_streams,
    kernels::throttled_kernels,
    devices::unbalanced_devices,
    kernels::gpu_bound,
];

#[cfg(test)]
mod tests {
    /// Rules must take vendor-specific terms from `Terms`. Exempt are `torch.cuda`, `cupy.cuda` and `NCCL_DEBUG`, which
    /// are the same on AMD, and strings that are compared with those that profilers write.
    #[test]
    fn no_rule_spells_a_vendors_term() {
        let rules = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("triage/rules");
        let mut files: Vec<_> = std::fs::read_dir(&rules).unwrap().map(|e| e.unwrap().path()).collect();
        files.push(rules.with_file_name("mod.rs"));
        let mut texts = 0;
        for file in files {
            let all = std::fs::read_to_string(&file).unwrap();
            let product = all.split("#[cfg(test)]").next().unwrap();
            for line in product.lines().map(str::trim).filter(|l| !l.starts_with("//") && l.contains('"')) {
                texts += 1;
                let same = ["torch.cuda", "cupy.cuda", "NCCL_DEBUG", "PYTORCH_NO_CUDA_MEMORY_CACHING", "[\"NVTX\", \"ROCTx\"", "\"cuda"];
                let own = same.iter().fold(line.to_owned(), |text, word| text.replace(word, ""));
                for word in ["CUDA", "cuda", "HIP", "nsys", "NVTX", "PTX", "cuBLAS", "NCCL", "NVLink", " SMs", " CUs", "osrt"] {
                    assert!(!own.contains(word), "{}: {word} in {line}", file.display());
                }
            }
        }
        assert!(texts > 200, "{texts}");
    }
}
