//! The container of an Nsight Compute report: blocks one after another, each a header and its messages, every one with its length before it.
//! There is no index and no end mark. Lengths are checked against the bytes that are there before anything is allocated; what is not asked
//! for is skipped over without being read.

use super::proto::BlockHeader;
use super::wire::Wire;
use crate::import::{ImportError, Input};
use crate::model::Extent;
use prost::Message;

/// Kinds of messages in a block, in the order in which they lie there.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A kernel's binary and sources.
    Source,
    /// A profiled launch.
    Kernel,
    /// A profiled range.
    Range,
    /// A profiled command list.
    CommandList,
    /// A profiled graph.
    Graph,
}

/// What comes next in the file.
pub enum Item {
    /// A block's header.
    Header(Box<BlockHeader>),
    /// A message begins: it ends before this place.
    Message(Kind, u64),
}

/// Reads a report from its beginning.
pub struct Blocks {
    /// The bytes, standing where the last item was found.
    pub wire: Wire,
    /// Messages of the current block that are still to come, and where the block ends.
    left: Vec<(Kind, u64)>,
    end: u64,
    /// Where the current message ends: what of it was not read is stepped over.
    message_end: u64,
    /// Where the last header lies.
    pub header: Extent,
}

impl Blocks {
    /// Opens a report.
    pub fn open(input: &Input) -> Result<Self, ImportError> {
        let mut wire = Wire::open(&input.path, &input.bytes, input.size)?;
        wire.skip(4, "file header")?;
        let Some(header) = wire.length("file header")? else {
            return Err(wire.damaged("file header", "it ends there"));
        };
        wire.skip(header, "file header")?;
        let at = wire.at;
        Ok(Self { wire, left: Vec::new(), end: at, message_end: at, header: Extent::default() })
    }

    /// The next header or message; `None` at the end of the report.
    pub fn step(&mut self) -> Result<Option<Item>, ImportError> {
        let rest = self.message_end.saturating_sub(self.wire.at);
        self.wire.skip(rest, "result")?;
        while let Some((kind, count)) = self.left.first_mut() {
            if *count == 0 {
                self.left.remove(0);
                continue;
            }
            *count -= 1;
            let kind = *kind;
            let place = if kind == Kind::Source { "source" } else { "result" };
            let Some(length) = self.wire.length(place)? else {
                return Err(self.wire.damaged(place, "it is not there"));
            };
            if self.wire.at + length > self.end {
                return Err(self.wire.damaged(place, "it is longer than its block"));
            }
            if self.wire.at + length > self.wire.size {
                return Err(self.wire.damaged(place, "it is longer than what is left of the file"));
            }
            // An empty source is possible; an empty result is none, and four bytes must not become a row.
            if length == 0 && kind != Kind::Source {
                return Err(self.wire.damaged(place, "it is empty"));
            }
            self.message_end = self.wire.at + length;
            return Ok(Some(Item::Message(kind, self.message_end)));
        }
        // What a newer version may have put after the messages is not known.
        let rest = self.end.saturating_sub(self.wire.at);
        self.wire.skip(rest, "block")?;
        let Some(length) = self.wire.length("block")? else {
            return Ok(None);
        };
        self.header = Extent { at: self.wire.at, length };
        let bytes = self.wire.take(length, "block header")?;
        let Ok(header) = BlockHeader::decode(&*bytes) else {
            return Err(self.wire.damaged("block header", "it is none"));
        };
        self.end = self.wire.at + u64::from(header.payload.unwrap_or_default());
        self.message_end = self.wire.at;
        let count = |n: Option<u32>| u64::from(n.unwrap_or_default());
        self.left = vec![
            (Kind::Source, count(header.sources)),
            (Kind::Kernel, count(header.results)),
            (Kind::Range, count(header.ranges)),
            (Kind::CommandList, count(header.command_lists)),
            (Kind::Graph, count(header.graphs)),
        ];
        Ok(Some(Item::Header(Box::new(header))))
    }
}
