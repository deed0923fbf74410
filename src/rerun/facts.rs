//! What is looked at to say what may go wrong with a command.

use super::count::Count;
use super::gate::Gate;
use super::nvtx::Enclosing;
use super::options::Options;
use super::processes::Scope;
use super::program::Program;
use crate::model::{Kernel, NameForm, Profile};
use std::collections::BTreeSet;

/// What the checks look at.
#[derive(Debug)]
pub struct Facts<'a> {
    pub profile: &'a Profile,
    /// What the user chose.
    pub options: &'a Options,
    /// Rows of the wanted launches, in launch order.
    pub rows: &'a [usize],
    /// Their kernel (of the first).
    pub kernel: &'a Kernel,
    /// Process of the first.
    pub pid: u32,
    /// Form of the name that is compared.
    pub base: NameForm,
    /// What must be open.
    pub gate: &'a Gate,
    /// Over which processes the count goes.
    pub scope: &'a Scope,
    pub count: &'a Count,
    /// Ranges around the first.
    pub around: &'a [Enclosing],
    pub program: &'a Program,
    /// Graphs were traced whole, so they are profiled whole.
    pub whole_graphs: bool,
    /// The command profiles a range, not single kernels.
    pub as_range: bool,
}

impl Facts<'_> {
    /// Processes whose launches count.
    pub(super) fn counted(&self) -> BTreeSet<u32> {
        if matches!(self.scope, Scope::InTurn(_)) { self.count.by_process.keys().copied().collect() } else { BTreeSet::from([self.pid]) }
    }
}
