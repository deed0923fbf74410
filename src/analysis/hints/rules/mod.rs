//! Rules of the hints. A new one needs a file and a row in [`RULES`].

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

use super::case::Case;
use super::hint::Hint;

/// A rule: evaluates one kernel and returns a hint, or nothing. A metric that was not collected must never trigger it.
pub type Rule = fn(&Case<'_>) -> Option<Hint>;

pub static RULES: &[Rule] = &[
    launch::overhead,
    shape::small_grid,
    shape::tail,
    shape::imbalance,
    lanes::partial,
    divergence::divergence,
    local::local,
    atomics::contention,
    coalescing::uncoalesced,
    l1::conflicts,
    l1::bandwidth,
    memory::bandwidth,
    occupancy::occupancy,
    barriers::barriers,
    fetch::instructions,
    latency::memory,
    latency::dependencies,
    pipes::busy,
    tensor::unused,
];
