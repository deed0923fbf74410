//! Kernels that cannot be replayed alone, because they wait for another rank or kernel that ncu does not run during
//! replay.

use crate::analysis::Family;
use crate::analysis::triage::device_ops::uses_several_gpus;
use crate::model::{Kernel, LaunchConfig, Profile};

/// Returns the reason why a kernel cannot be replayed alone, if any: collectives and one-sided communication wait for
/// their peers.
///
/// Device functions of NCCL, RCCL, NVSHMEM and `DeepEP` are recognized by name. A serving framework's custom all-reduce
/// (`…all_reduce…`, `…allreduce…`) counts only if several GPUs are used.
pub fn waits_for_others(profile: &Profile, kernel: &Kernel) -> Option<&'static str> {
    let name = kernel.demangled().to_lowercase();
    if ["nccl", "rccl", "nvshmem", "deep_ep"].iter().any(|w| name.contains(w)) {
        return Some("it is a collective: it waits for the same kernel on other GPUs, which replaying it alone never lets run");
    }
    if Family::guess(kernel.function(), kernel.demangled()) == Family::Nccl && uses_several_gpus(profile) {
        return Some("its name says that it exchanges data between GPUs: replayed alone it would wait for its peers forever");
    }
    None
}

/// Returns true if a cooperative launch may wait for more than its own blocks, in which case replay may hang.
pub fn may_wait_for_gpus(profile: &Profile, config: Option<&LaunchConfig>) -> bool {
    config.is_some_and(|c| c.cooperative) && several_gpus(profile)
}

/// Returns true if the program exchanges data with processes that are not in the report: collectives on a single GPU.
pub fn has_peers(profile: &Profile) -> bool {
    !several_gpus(profile) && profile.kernels.iter().any(|k| waits_for_others(profile, k).is_some())
}

/// Returns true if the report itself has work on several GPUs; see [`uses_several_gpus`] for those of other ranks.
fn several_gpus(profile: &Profile) -> bool {
    let mut used: Vec<u32> = profile.places.iter().filter_map(|p| p.device).collect();
    used.sort_unstable();
    used.dedup();
    used.len() > 1
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::Source;

    #[test]
    fn an_all_reduce_waits_for_ranks_that_are_not_in_the_report() {
        let kernel = Kernel { demangled: Some("multimem_all_reduce_kernel".into()), ..Kernel::default() };
        let mut profile = Profile::new(Source::default());
        profile.kernels.push(kernel.clone());
        assert_eq!(waits_for_others(&profile, &kernel), None, "it may reduce within one GPU");
        profile.rank.world = Some(8);
        assert!(waits_for_others(&profile, &kernel).is_some());
    }
}
