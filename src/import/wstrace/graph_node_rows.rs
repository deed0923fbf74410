//! Rows about graph nodes: when and where they were captured, and which nodes are clones of others.

use super::varint::Cursor;

/// A node, as reported by a CUPTI callback.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NodeRow {
    pub node: u64,
    /// The node that this node is a clone of; 0 if it was captured or added.
    pub original: u64,
    pub thread: u32,
    /// Time in nanoseconds since 1970.
    pub time: i64,
    /// Stack id; 0 if there is none.
    pub stack: u32,
}

impl NodeRow {
    /// Values that precede the first row of a block.
    pub const START: Self = Self { node: 0, original: 0, thread: 0, time: 0, stack: 0 };
}

/// Reads a row, which is relative to the previous row of its block.
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
