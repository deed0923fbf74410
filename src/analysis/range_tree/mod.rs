//! Ranges as a tree: NVTX ranges, annotations and operators of a framework, with the device work launched inside.
//!
//! Ranges under the same parent whose names differ only in numbers are one node. An operator of autograd's backward
//! pass is placed under its forward operator, by sequence number.

mod build;
mod node;

pub use node::{KernelTime, Node, RangeTree};
