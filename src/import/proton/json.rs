//! Trees in JSON (triton-lang/triton, `third_party/proton/csrc/lib/Data/Dump/TreeDataHatchetDump.cpp`).

use super::tree::Tree;
use crate::import::{ImportError, Input, Job};
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::BTreeMap;

/// Maximum depth of a tree that is read. Each level is scanned once more, because parsing is not recursive.
const DEEPEST: u32 = 256;

#[derive(Deserialize)]
struct Node<'a> {
    #[serde(borrow, default)]
    frame: Frame<'a>,
    #[serde(borrow, default)]
    metrics: BTreeMap<Cow<'a, str>, Value>,
    /// Nodes still to be parsed: trees of Python frames are too deep for a recursive parser.
    #[serde(borrow, default)]
    children: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Frame<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// Returns true if a file starts like a tree in JSON.
pub fn is_tree(head: &[u8]) -> bool {
    let text: Vec<u8> = head.iter().copied().filter(|b| !b.is_ascii_whitespace()).take(32).collect();
    ["[{\"children\":[", "[{\"frame\":{\"name\":"].iter().any(|start| text.starts_with(start.as_bytes()))
}

/// Reads a list of trees; its last item holds the properties of the GPUs.
pub fn read_tree<'a>(text: &'a str, input: &Input, job: &Job<'_>) -> Result<Tree<'a>, ImportError> {
    let damaged = |e: serde_json::Error| ImportError::damaged(&input.path, "its tree", &e);
    let list: Vec<&RawValue> = serde_json::from_str(text).map_err(damaged)?;
    let mut out = Tree::default();
    let Some((last, trees)) = list.split_last() else {
        return Err(ImportError::damaged(&input.path, "its tree", "an empty list"));
    };
    let (budget, pace) = (input.memory_budget(), job.cancel.pace());
    for root in trees {
        let mut rest: Vec<(&RawValue, u32, Option<u32>)> = vec![(root, 0, None)];
        while let Some((text, depth, parent)) = rest.pop() {
            // Most of the text is merely scanned to find where the children end.
            if !pace.count_steps(text.get().len() / 8 + 1) {
                return Err(ImportError::Cancelled { path: input.path.clone() });
            }
            let Ok(Node { frame, metrics, children }) = serde_json::from_str::<Node<'a>>(text.get()) else {
                out.broken += 1;
                continue;
            };
            let index = out.add_node(parent, &budget)?;
            let node = &mut out.nodes[index as usize];
            node.name = frame.name;
            for (name, value) in metrics {
                node.set_metric(name, value.as_f64().or_else(|| value.as_str()?.parse().ok()));
            }
            if depth == DEEPEST {
                out.broken += children.len() as u64;
                continue;
            }
            budget.charge_bytes(32 * children.len() as u64)?;
            rest.extend(children.into_iter().rev().map(|child| (child, depth + 1, Some(index))));
        }
    }
    out.devices = serde_json::from_str(last.get()).unwrap_or_default();
    Ok(out)
}
