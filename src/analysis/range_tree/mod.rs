//! Ranges as a tree: NVTX, a framework's annotations and operators, with what the devices did for what was launched inside.
//!
//! Ranges of like names (numbers left out) under the same parent are one node. An operator of autograd's backward pass stands under the forward
//! operator that it belongs to, by its sequence number.

mod build;
mod node;

pub use node::{KernelTime, Node, RangeTree};
