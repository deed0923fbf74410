//! Rows of graph nodes: when and where they were captured, and which nodes are clones of which.

use super::varint::Cursor;

/// A node, as a callback of CUPTI reported it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRow {
    pub node: u64,
    /// The node that it is a clone of; 0 for a node that was captured or added.
    pub original: u64,
    pub thread: u32,
    /// ns since 1970.
    pub time: i64,
    /// 0 for none.
    pub stack: u32,
}

impl NodeRow {
    /// Values that come before the first row of a block.
    pub const START: Self = Self { node: 0, original: 0, thread: 0, time: 0, stack: 0 };
}

/// Reads a row relative to the previous one of its block.
pub fn read_node(c: &mut Cursor<'_>, before: &mut NodeRow) -> Option<NodeRow> {
    const MICROSECOND: i64 = 1000;
    let moved = |from: u32, by: i64| u32::try_from(i64::from(from).checked_add(by)?).ok();
    before.node = before.node.wrapping_add_signed(c.read_signed()?);
    if c.read_byte()? & 1 == 1 {
        before.original = before.original.wrapping_add_signed(c.read_signed()?);
        return Some(*before);
    }
    before.thread = moved(before.thread, c.read_signed()?)?;
    before.time = before.time.checked_add(c.read_signed()?.checked_mul(MICROSECOND)?)?;
    before.stack = moved(before.stack, c.read_signed()?)?;
    Some(NodeRow { original: 0, ..*before })
}
