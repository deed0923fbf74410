//! Reads when nodes of graphs were captured or added. A launched graph is a clone, and its nodes name their originals.

use super::calls::{pid_of, tid_of};
use crate::import::sqlite::db::Db;
use crate::import::sqlite::scan::{NULL, gather_rows};
use crate::import::{ImportError, Job};
use crate::model::{GraphNodes, NodeOrigin};
use rustc_hash::FxHashMap;

/// Tables with the creation of nodes: since 2024, and before.
const TABLES: [&str; 2] = ["CUDA_GRAPH_NODE_EVENTS", "CUDA_GRAPH_EVENTS"];

/// Maximum length of a chain of clones: a node in a clone of a nested graph is a clone of a clone.
const DEEPEST: usize = 16;

/// Events of one node.
#[derive(Clone, Copy, Debug, Default)]
struct Node {
    /// Time and thread of its creation.
    created: Option<(i64, u32)>,
    /// Original of a cloned node.
    original: Option<i64>,
    /// True if events contradict each other.
    unclear: bool,
}

/// Reads the origins of cloned nodes. A node without an original may have been created by an instantiation, in which
/// case its time does not show when it was captured.
pub fn read_origins(db: &Db, job: &Job<'_>) -> Result<GraphNodes, ImportError> {
    let mut out = GraphNodes::default();
    // In newer exports, a table of whole graphs has the same name.
    let Some(table) = TABLES.into_iter().find(|t| db.has_table(t) && db.has_column(t, "originalGraphNodeId")) else {
        return Ok(out);
    };
    let columns = ["start", "globalTid", "graphNodeId", "originalGraphNodeId"];
    let mut nodes: FxHashMap<(u32, i64), Node> = FxHashMap::default();
    for [time, global, node, original] in gather_rows(db, job, table, columns, "graph nodes")? {
        let (Some(pid), Some(tid), true) = (pid_of(global), tid_of(global), node != NULL && time != NULL) else { continue };
        let known = nodes.entry((pid, node)).or_default();
        if original == NULL {
            known.unclear |= known.created.replace((time, tid)).is_some_and(|before| before != (time, tid));
        } else {
            known.unclear |= known.original.replace(original).is_some_and(|before| before != original);
        }
    }
    for (&(pid, node), clone) in nodes.iter().filter(|(_, n)| n.original.is_some()) {
        let mut at = Some(*clone);
        for _ in 0..DEEPEST {
            match at.filter(|n| !n.unclear).and_then(|n| n.original) {
                Some(original) => at = nodes.get(&(pid, original)).copied(),
                None => break,
            }
        }
        if let Some((time, thread)) = at.filter(|n| !n.unclear && n.original.is_none()).and_then(|n| n.created) {
            out.insert(pid, node.cast_unsigned(), NodeOrigin { pid, thread, time, stack: None });
        }
    }
    Ok(out)
}
