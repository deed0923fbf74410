//! The container of an Nsight Compute report: blocks one after another, each a header and its messages, every one with its length before it.
//! There is no index and no end mark. Lengths are checked against the bytes that are there before anything is allocated; what is not asked
//! for is skipped over without being read.

use super::proto::BlockHeader;
use crate::import::ImportError;
use prost::Message;
use std::fs::File;
use std::io::{BufReader, ErrorKind, Read};
use std::path::{Path, PathBuf};

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
    /// A message that is wanted.
    Message(Kind, Vec<u8>),
}

/// Bytes of one message that are read at most: results of real reports have about a megabyte.
const MOST_BYTES: u64 = 256 << 20;

/// Reads a report from its beginning.
pub struct Blocks {
    path: PathBuf,
    reader: BufReader<File>,
    at: u64,
    size: u64,
    /// Messages of the current block that are still to come, and where the block ends.
    left: Vec<(Kind, u64)>,
    end: u64,
    wants: fn(Kind) -> bool,
}

impl Blocks {
    /// Opens a report; `wants` says which messages are read, the others are skipped over.
    pub fn open(path: &Path, file: &Path, size: u64, wants: fn(Kind) -> bool) -> Result<Self, ImportError> {
        let reader = BufReader::with_capacity(1 << 16, File::open(file).map_err(|e| ImportError::io(path, e))?);
        let mut blocks = Self { path: path.to_owned(), reader, at: 0, size, left: Vec::new(), end: 0, wants };
        blocks.skip(4, "file header")?;
        let Some(header) = blocks.length()? else {
            return Err(blocks.damaged("file header", "it ends there"));
        };
        blocks.skip(header, "file header")?;
        blocks.end = blocks.at;
        Ok(blocks)
    }

    /// An error about this file.
    #[must_use]
    pub fn damaged(&self, place: &str, reason: &str) -> ImportError {
        let next = "copy it again from where it was recorded, or profile again".to_owned();
        ImportError::Damaged { path: self.path.clone(), place: format!("{place} at byte {}", self.at), reason: reason.to_owned(), next }
    }

    fn skip(&mut self, bytes: u64, place: &str) -> Result<(), ImportError> {
        let to = self.at.checked_add(bytes).filter(|&to| to <= self.size);
        let Some(to) = to else {
            return Err(self.damaged(place, "it is longer than the file"));
        };
        // Within the buffer this reads nothing.
        let by = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.reader.seek_relative(by).map_err(|e| ImportError::io(&self.path, e))?;
        self.at = to;
        Ok(())
    }

    /// A length; `None` at the end of the file.
    fn length(&mut self) -> Result<Option<u64>, ImportError> {
        let mut bytes = [0; 4];
        match self.reader.read_exact(&mut bytes) {
            Ok(()) => {
                self.at += 4;
                Ok(Some(u64::from(u32::from_le_bytes(bytes))))
            }
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(None),
            Err(e) => Err(ImportError::io(&self.path, e)),
        }
    }

    fn take(&mut self, bytes: u64, place: &str) -> Result<Vec<u8>, ImportError> {
        if bytes > MOST_BYTES || self.at.checked_add(bytes).is_none_or(|to| to > self.size) {
            return Err(self.damaged(place, "it is longer than what is left of the file"));
        }
        let mut out = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        self.reader.read_exact(&mut out).map_err(|e| ImportError::io(&self.path, e))?;
        self.at += bytes;
        Ok(out)
    }

    /// The next header or wanted message; `None` at the end of the report.
    pub fn step(&mut self) -> Result<Option<Item>, ImportError> {
        while let Some((kind, count)) = self.left.first_mut() {
            if *count == 0 {
                self.left.remove(0);
                continue;
            }
            *count -= 1;
            let (kind, wanted) = (*kind, (self.wants)(*kind));
            let place = if kind == Kind::Source { "source" } else { "result" };
            let Some(length) = self.length()? else {
                return Err(self.damaged(place, "it is not there"));
            };
            if self.at + length > self.end {
                return Err(self.damaged(place, "it is longer than its block"));
            }
            if wanted {
                return Ok(Some(Item::Message(kind, self.take(length, place)?)));
            }
            self.skip(length, place)?;
        }
        // What a newer version may have put after the messages is not known.
        let rest = self.end.saturating_sub(self.at);
        self.skip(rest, "block")?;
        let Some(length) = self.length()? else {
            return Ok(None);
        };
        let bytes = self.take(length, "block header")?;
        let Ok(header) = BlockHeader::decode(&*bytes) else {
            return Err(self.damaged("block header", "it is none"));
        };
        self.end = self.at + u64::from(header.payload.unwrap_or_default());
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
