//! Advice for a kernel's family, guessed from its name. The family never determines a diagnosis.

use super::diagnosis::Diagnosis as D;
use super::hint::Hint;
use crate::analysis::Family;
use crate::model::Kernel;

/// Families, diagnoses, and advice.
const ADVICE: &[(&[Family], &[D], &str)] = &[
    (
        &[Family::Elementwise, Family::Copy],
        &[D::DramBandwidth, D::LaunchOverhead, D::SmallGrid, D::MemoryLatency],
        "judging by its name, an elementwise or copy kernel: fuse it with its neighbours (one kernel, an epilogue of the GEMM; in PyTorch: torch.compile)",
    ),
    (
        &[Family::Norm, Family::Reduce],
        &[D::DramBandwidth, D::LaunchOverhead, D::SmallGrid],
        "judging by its name, a norm or reduction: fuse it with the kernel that produces or consumes its values (in PyTorch: torch.compile, a fused norm)",
    ),
    (
        &[Family::Gemm],
        &[D::SmallGrid, D::Tail],
        "judging by its name, a matrix product: a different tile size, split-K or stream-K, or a larger batch gives more or fuller waves",
    ),
    (
        &[Family::Attention],
        &[D::SmallGrid, D::Tail],
        "judging by its name, attention: split the keys and values across blocks (flash decoding), or batch more sequences",
    ),
    (
        &[Family::Nccl],
        &[D::MemoryLatency, D::SmallGrid, D::Dependencies, D::Barriers],
        "judging by its name, a collective: it waits for other GPUs, which a profiler of single kernels does not show; look at the timeline instead",
    ),
];

/// Adds the advice for the kernel's family to the matching hints.
pub fn add_family_advice(kernel: &Kernel, hints: &mut [Hint]) {
    let family = Family::guess(kernel.function(), kernel.demangled.as_deref().unwrap_or_default());
    for (families, ids, text) in ADVICE {
        if families.contains(&family) {
            for hint in hints.iter_mut().filter(|h| ids.contains(&h.id)) {
                hint.actions.push((*text).to_owned());
            }
        }
    }
}
