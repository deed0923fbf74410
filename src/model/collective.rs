//! Collective operations between ranks.

use std::sync::Arc;

/// One rank's part of a collective, as its framework or NCCL says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collective {
    /// `all_reduce`, `all_gather`, `send`, as the report has it.
    pub kind: Arc<str>,
    /// Elements that this rank gives.
    pub elements_in: Option<u64>,
    /// Elements that this rank gets.
    pub elements_out: Option<u64>,
    /// Type of an element, as the report has it: `BFloat16`.
    pub dtype: Arc<str>,
    /// Name of the process group or communicator.
    pub group: Arc<str>,
    pub group_size: Option<u32>,
    /// Its ranks, as the report has them.
    pub ranks: Arc<str>,
    /// Number in its group; collectives of one number on all ranks belong together.
    pub sequence: Option<u64>,
    /// ns, on the device where the report says so.
    pub start: i64,
    /// ns.
    pub duration: i64,
    /// The launch that did it.
    pub launch: Option<u32>,
}
