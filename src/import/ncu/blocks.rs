//! Container format of Nsight Compute reports: a sequence of blocks, each consisting of a header and messages. All
//! have length prefixes; there is no index or end mark. Lengths are checked against the remaining bytes before memory
//! is allocated, and messages that were not requested are skipped without being read.

use super::wire::{Form, Wire};
use crate::import::{ImportError, Input};
use std::sync::Arc;

/// Message types in a block, in file order.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockKind {
    /// Binary and sources of a kernel.
    Source,
    Kernel,
    Range,
    /// A profiled command list.
    CommandList,
    Graph,
}

#[derive(Debug, Default)]
pub struct Header {
    /// Metric names; results refer to them by index.
    pub names: Vec<Arc<str>>,
    /// Encoded session message.
    pub session: Option<Vec<u8>>,
    /// Encoded message that describes the profiled process.
    pub process: Option<Vec<u8>>,
    /// Number of messages of each kind that follow.
    counts: [u64; 5],
    /// Total size of those messages, bytes.
    payload: u64,
}

/// An item of a report.
pub enum Item {
    Header(Header),
    /// A message, given by its kind and end position.
    Message(BlockKind, u64),
}

/// Reads the items of a report in file order.
pub struct Blocks {
    /// Byte reader, positioned at the contents of the last item.
    pub wire: Wire,
    /// Number of messages of each kind that remain in the current block; `end` is the block's end position.
    left: Vec<(BlockKind, u64)>,
    end: u64,
    /// End position of the current message; [`Blocks::next_item`] skips any unread rest.
    message_end: u64,
}

impl Blocks {
    pub fn open(input: &Input) -> Result<Self, ImportError> {
        let mut wire = Wire::open(&input.path, &input.bytes, input.size)?;
        wire.skip_bytes(4, "file header")?;
        let Some(header) = wire.read_length("file header")? else {
            return Err(wire.damage_error("file header", "it ends there"));
        };
        wire.skip_bytes(header, "file header")?;
        let at = wire.at;
        Ok(Self { wire, left: Vec::new(), end: at, message_end: at })
    }

    /// Returns the next header or message; `None` at the end of the report.
    pub fn next_item(&mut self) -> Result<Option<Item>, ImportError> {
        let rest = self.message_end.saturating_sub(self.wire.at);
        self.wire.skip_bytes(rest, "result")?;
        while let Some((kind, count)) = self.left.first_mut() {
            if *count == 0 {
                self.left.remove(0);
                continue;
            }
            *count -= 1;
            let kind = *kind;
            let place = if kind == BlockKind::Source { "source" } else { "result" };
            let Some(length) = self.wire.read_length(place)? else {
                return Err(self.wire.damage_error(place, "it is missing"));
            };
            if self.wire.at + length > self.end {
                return Err(self.wire.damage_error(place, "it is longer than its block"));
            }
            if self.wire.at + length > self.wire.size {
                return Err(self.wire.damage_error(place, "it is longer than the rest of the file"));
            }
            // Sources may be empty, but results may not; otherwise every four zero bytes would become a row.
            if length == 0 && kind != BlockKind::Source {
                return Err(self.wire.damage_error(place, "it is empty"));
            }
            self.message_end = self.wire.at + length;
            return Ok(Some(Item::Message(kind, self.message_end)));
        }
        // Skip unknown data after the messages, which newer versions may write.
        let rest = self.end.saturating_sub(self.wire.at);
        self.wire.skip_bytes(rest, "block")?;
        let Some(length) = self.wire.read_length("block")? else {
            return Ok(None);
        };
        let end = self.wire.at.saturating_add(length);
        if end > self.wire.size {
            return Err(self.wire.damage_error("block header", "it is longer than the rest of the file"));
        }
        let header = read_header(&mut self.wire, end)?;
        self.end = self.wire.at.saturating_add(header.payload);
        self.message_end = self.wire.at;
        let kinds = [BlockKind::Source, BlockKind::Kernel, BlockKind::Range, BlockKind::CommandList, BlockKind::Graph];
        self.left = kinds.into_iter().zip(header.counts).collect();
        Ok(Some(Item::Header(header)))
    }
}

/// Memory overhead of a name, bytes: pointer, reference counts and allocator overhead.
const NAME: usize = 64;

/// Reads a header up to `end` field by field, because decoding the whole message could take a hundred times its size
/// in memory.
fn read_header(wire: &mut Wire, end: u64) -> Result<Header, ImportError> {
    let mut out = Header::default();
    while let Some((number, form)) = wire.next_field(end)? {
        match (number, form) {
            (1, Form::Varint) => out.counts[0] = wire.read_varint(end)?,
            (2, Form::Varint) => out.counts[1] = wire.read_varint(end)?,
            (7..=9, Form::Varint) => out.counts[usize::try_from(number - 5).unwrap_or_default()] = wire.read_varint(end)?,
            (5, Form::Varint) => out.payload = wire.read_varint(end)?,
            (3, Form::Bytes) => out.session = Some(wire.read_field_bytes(end)?),
            (6, Form::Bytes) => out.process = Some(wire.read_field_bytes(end)?),
            (4, Form::Bytes) => {
                let to = wire.bytes_end(end)?;
                while let Some((number, form)) = wire.next_field(to)? {
                    if (number, form) == (1, Form::Bytes) {
                        let name = wire.read_text(to)?;
                        wire.charge_memory(NAME + name.len())?;
                        out.names.push(Arc::from(name));
                    } else {
                        wire.skip_value(form, to)?;
                    }
                }
            }
            _ => wire.skip_value(form, end)?,
        }
    }
    Ok(out)
}
