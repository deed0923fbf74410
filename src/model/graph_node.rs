//! Origins of graph nodes: where they were captured or added.

use rustc_hash::FxHashMap;
use std::sync::Arc;

/// The place where a node was captured or added to its graph.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeOrigin {
    pub pid: u32,
    /// Operating system thread.
    pub thread: u32,
    /// Nanoseconds since the session began.
    pub time: i64,
    /// Index into [`Samples::stacks`](super::Samples::stacks): the thread's stack at that time.
    pub stack: Option<u32>,
}

/// Origins by (process id, node id). A cloned node has the origin of the node from which it was cloned.
#[derive(Clone, Debug, Default)]
pub struct GraphNodes(Arc<FxHashMap<(u32, u64), NodeOrigin>>);

impl GraphNodes {
    pub fn insert(&mut self, pid: u32, node: u64, origin: NodeOrigin) {
        Arc::make_mut(&mut self.0).insert((pid, node), origin);
    }

    pub fn origin(&self, pid: u32, node: u64) -> Option<NodeOrigin> {
        self.0.get(&(pid, node)).copied()
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Returns true if the call stack is known for any node.
    pub fn have_stacks(&self) -> bool {
        self.0.values().any(|o| o.stack.is_some())
    }

    pub fn origins_mut(&mut self) -> impl Iterator<Item = &mut NodeOrigin> {
        Arc::make_mut(&mut self.0).values_mut()
    }
}
