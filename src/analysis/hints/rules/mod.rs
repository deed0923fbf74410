//! Rules for the hints. A new rule needs a file and a row in [`RULES`].

mod atomics;
mod barriers;
mod coalescing;
mod divergence;
mod fetch;
mod l1;
pub mod lanes;
mod latency;
mod launch;
mod local;
mod memory;
mod occupancy;
mod pipes;
mod shape;
mod tensor;

use super::hint::Hint;
use super::rule_context::Case;

/// A rule: evaluates one kernel and may return a hint. A metric that was not collected must never trigger it.
pub type Rule = fn(&Case<'_>) -> Option<Hint>;

pub static RULES: &[Rule] = &[
    launch::launch_overhead,
    shape::small_grid,
    shape::tail_effect,
    shape::workload_imbalance,
    lanes::partial_warps,
    divergence::warp_divergence,
    local::local_memory,
    atomics::atomic_contention,
    coalescing::uncoalesced_access,
    l1::bank_conflicts,
    l1::l1_bandwidth,
    memory::memory_bandwidth,
    occupancy::limited_occupancy,
    barriers::barrier_stalls,
    fetch::instruction_fetch,
    latency::memory_latency,
    latency::dependency_latency,
    pipes::busy_pipe,
    tensor::unused_tensor_cores,
];
