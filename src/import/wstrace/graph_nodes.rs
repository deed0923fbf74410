//! Origins of graph nodes: when and where they were captured.

use super::names::Names;
use super::rows::Rows;
use crate::model::{GraphNodes, NodeOrigin};
use rustc_hash::FxHashMap;

/// Adds the origins of a process's nodes. `stacks` maps the process's stack ids to those of the model.
pub fn add_nodes(names: &Names, rows: &Rows, stacks: &FxHashMap<u32, u32>, out: &mut GraphNodes) {
    for row in &rows.graph_nodes {
        let origin = if row.original == 0 {
            NodeOrigin { pid: names.pid, thread: row.thread, time: names.session_time(row.time), stack: stacks.get(&row.stack).copied() }
        } else {
            // A single lookup also resolves clones of clones, because the original was reported earlier.
            match out.origin(names.pid, row.original) {
                Some(origin) => origin,
                None => continue,
            }
        };
        out.insert(names.pid, row.node, origin);
    }
}
