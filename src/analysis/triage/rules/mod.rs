//! Rules of the triage. A new rule needs a file and a row in [`RULES`].

mod capture;
mod comm;
mod copies;
mod devices;
mod host;
mod kernels;
mod launching;
mod memory;
mod single;
mod stalls;
mod sync;

use super::finding::Finding;
use super::run_context::RunContext;

/// A rule: evaluates one run and may return a finding. Missing data must never trigger a rule.
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
