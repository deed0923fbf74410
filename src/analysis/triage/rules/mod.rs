//! Rules of the triage. A new one needs a file and a row in [`RULES`].

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

use super::case::Case;
use super::finding::Finding;

/// A rule: evaluates one run and returns a finding, or nothing. Data that was not recorded must never trigger it.
pub type Rule = fn(&Case<'_>) -> Option<Finding>;

pub static RULES: &[Rule] = &[
    capture::short,
    single::delay,
    stalls::periodic,
    memory::allocation,
    memory::unified,
    launching::recapture,
    launching::compilation,
    launching::bound,
    sync::sync,
    host::input_wait,
    host::compute,
    copies::pageable,
    copies::small,
    copies::bound,
    comm::collectives,
    kernels::small,
    kernels::serialised,
    kernels::throttled,
    devices::unbalanced,
    kernels::bound,
];
