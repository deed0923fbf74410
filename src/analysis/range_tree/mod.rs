//! Tree of ranges: NVTX ranges, annotations and operators of a framework, with the device work launched inside.
//!
//! Ranges with the same parent whose names differ only in numbers form one node. An operator of autograd's backward
//! pass is placed under its forward operator, matched by sequence number, unless the program marked a range around only one of the
//! two. Work that a thread launches while another one waits belongs to the ranges of the thread that waits.

mod build;
mod inside;
mod node;

pub use inside::{CopyTime, KernelTime, WorkInside};
pub use node::{Node, RangeTree};
