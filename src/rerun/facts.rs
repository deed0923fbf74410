//! Input of the checks that produce a command's warnings.

use super::capture_range::Gate;
use super::launch_skip::Count;
use super::nvtx::Enclosing;
use super::options::Options;
use super::processes::Scope;
use super::program::Program;
use crate::model::{Device, Kernel, NameForm, Profile};
use std::collections::BTreeSet;

#[derive(Debug)]
pub struct Facts<'a> {
    pub profile: &'a Profile,
    /// Options set by the user.
    pub options: &'a Options,
    /// Rows of the selected launches, in launch order.
    pub rows: &'a [usize],
    /// Kernel of the first launch.
    pub kernel: &'a Kernel,
    /// Process of the first launch.
    pub pid: u32,
    /// Name form that is compared.
    pub base: NameForm,
    /// Capture range and NVTX range of the command.
    pub gate: &'a Gate,
    /// Processes included in the count.
    pub scope: &'a Scope,
    pub count: &'a Count,
    /// Ranges around the first launch.
    pub around: &'a [Enclosing],
    pub program: &'a Program,
    /// Graphs were traced as a whole, so they are profiled as a whole.
    pub whole_graphs: bool,
    /// The command profiles a range instead of single kernels.
    pub as_range: bool,
}

/// Returns the GPU of a launch, if known.
pub(super) fn launch_device(profile: &Profile, row: usize) -> Option<&Device> {
    profile.device_of(profile.places.get(profile.launches.place(row)?.0 as usize)?)
}

impl Facts<'_> {
    /// Returns the processes whose launches are counted.
    pub(super) fn counted_processes(&self) -> BTreeSet<u32> {
        if matches!(self.scope, Scope::InTurn(_)) { self.count.by_process.keys().copied().collect() } else { BTreeSet::from([self.pid]) }
    }
}
