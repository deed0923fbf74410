//! Kernels that cannot be replayed alone: they wait for another rank or another kernel, which ncu holds back while it replays them.

use crate::analysis::Family;
use crate::model::{Kernel, LaunchConfig, Profile};

/// Why a kernel cannot be replayed alone, if it cannot: collectives and one-sided communication wait for their peers.
///
/// NCCL's, RCCL's, NVSHMEM's and `DeepEP`'s device functions are known by name; a custom all-reduce of a serving framework (`…all_reduce…`,
/// `…allreduce…`) only counts where several GPUs are at work.
#[must_use]
pub fn waits_for_others(profile: &Profile, kernel: &Kernel) -> Option<&'static str> {
    let name = kernel.demangled().to_lowercase();
    if ["nccl", "rccl", "nvshmem", "deep_ep"].iter().any(|w| name.contains(w)) {
        return Some("it is a collective: it waits for the same kernel on other GPUs, which replaying it alone never lets run");
    }
    if Family::guess(kernel.function(), kernel.demangled()) == Family::Nccl && several_gpus(profile) {
        return Some("its name says that it exchanges data between GPUs: replayed alone it would wait for its peers forever");
    }
    None
}

/// Whether a cooperative launch may wait for more than its own blocks: then replay can hang.
#[must_use]
pub fn cooperates(profile: &Profile, config: Option<&LaunchConfig>) -> bool {
    config.is_some_and(|c| c.cooperative) && several_gpus(profile)
}

fn several_gpus(profile: &Profile) -> bool {
    let mut used: Vec<u32> = profile.places.iter().filter_map(|p| p.device).collect();
    used.sort_unstable();
    used.dedup();
    used.len() > 1
}
