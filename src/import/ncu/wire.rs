//! Field-by-field Protocol Buffers reader for files. It skips unwanted fields without reading them, and checks every
//! length against the enclosing message before allocating memory.

use crate::import::input::Bytes;
use crate::import::{Budget, ImportError};
use crate::launch::open;
use std::io::{BufRead, BufReader, Cursor, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Byte source of a report: a file or memory.
pub trait ReadSeek: Read + Seek + Send {}
impl<T: Read + Seek + Send> ReadSeek for T {}

/// Maximum size of a message, string or binary that is read at once, bytes; results in real reports are a few
/// megabytes.
const MOST_BYTES: u64 = 256 << 20;

/// Maximum number of fields in a message that is decoded as a whole, including nested messages. Sections and rules in
/// real reports have several hundred fields; an encoded field of two bytes may take a hundred bytes of memory or more.
const MOST_FIELDS: usize = 100_000;
/// Average memory of a decoded field, bytes.
const FIELD: usize = 64;
/// Maximum nesting depth at which fields are counted.
const DEEPEST: usize = 24;

/// Wire type of a field.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Form {
    /// Variable-length integer.
    Varint,
    /// Eight bytes.
    Fixed64,
    /// Length-prefixed bytes.
    Bytes,
    /// Four bytes.
    Fixed32,
}

/// A reader with a position in a report.
pub struct Wire {
    path: PathBuf,
    reader: BufReader<Box<dyn ReadSeek>>,
    /// Position of the next byte.
    pub at: u64,
    /// Size of the report, bytes.
    pub size: u64,
    /// Memory budget; a metric instance takes three times its encoded size.
    budget: Budget,
}

impl Wire {
    /// Opens the bytes; `path` is used in errors.
    pub fn open(path: &Path, bytes: &Bytes, size: u64) -> Result<Self, ImportError> {
        let inner: Box<dyn ReadSeek> = match bytes {
            Bytes::File(file) => Box::new(open::open_regular(file).map_err(|e| ImportError::io(path, e))?),
            Bytes::BuiltIn(bytes) => Box::new(Cursor::new(*bytes)),
        };
        Ok(Self {
            path: path.to_owned(),
            reader: BufReader::with_capacity(1 << 16, inner),
            at: 0,
            size,
            budget: Budget::from_plain_size(path, size, size),
        })
    }

    /// Returns the error for damage at the current position.
    pub fn damage_error(&self, place: &str, reason: &str) -> ImportError {
        let next = "copy it again from where it was recorded, or profile again".to_owned();
        ImportError::Damaged { path: self.path.clone(), place: format!("{place} at byte {}", self.at), reason: reason.to_owned(), next }
    }

    /// Charges memory to the budget; returns an error if the total exceeds what any real report of this size needs.
    pub fn charge_memory(&mut self, bytes: usize) -> Result<(), ImportError> {
        self.budget.charge_bytes(bytes as u64)
    }

    /// Decodes a whole message; returns an error if it has too many fields.
    pub fn decode_message<M: prost::Message + Default>(&mut self, bytes: &[u8], place: &str) -> Result<M, ImportError> {
        let mut left = MOST_FIELDS;
        count_fields(bytes, &mut left, DEEPEST);
        if left == 0 {
            return Err(self.damage_error(place, "it has more fields than one that ncu writes"));
        }
        self.charge_memory((MOST_FIELDS - left) * FIELD)?;
        M::decode(bytes).map_err(|_| self.damage_error(place, "it cannot be read"))
    }

    fn io_error(&self, e: std::io::Error) -> ImportError {
        ImportError::io(&self.path, e)
    }

    pub fn seek_to(&mut self, to: u64) -> Result<(), ImportError> {
        if to > self.size {
            return Err(self.damage_error("report", "it ends before that"));
        }
        self.reader.seek(SeekFrom::Start(to)).map_err(|e| ImportError::io(&self.path, e))?;
        self.at = to;
        Ok(())
    }

    /// Skips bytes without discarding the rest of the buffer.
    pub fn skip_bytes(&mut self, bytes: u64, place: &str) -> Result<(), ImportError> {
        let Some(to) = self.at.checked_add(bytes).filter(|&to| to <= self.size) else {
            return Err(self.damage_error(place, "it is longer than the file"));
        };
        let by = i64::try_from(bytes).unwrap_or(i64::MAX);
        self.reader.seek_relative(by).map_err(|e| ImportError::io(&self.path, e))?;
        self.at = to;
        Ok(())
    }

    /// Reads a four-byte length; `None` at the end of the file.
    pub fn read_length(&mut self, place: &str) -> Result<Option<u64>, ImportError> {
        let mut bytes = [0; 4];
        if self.reader.fill_buf().map_err(|e| ImportError::io(&self.path, e))?.is_empty() {
            return Ok(None);
        }
        match self.reader.read_exact(&mut bytes) {
            Ok(()) => {
                self.at += 4;
                Ok(Some(u64::from(u32::from_le_bytes(bytes))))
            }
            Err(e) if e.kind() == std::io::ErrorKind::UnexpectedEof => Err(self.damage_error(place, "it ends within a length")),
            Err(e) => Err(self.io_error(e)),
        }
    }

    pub fn read_bytes(&mut self, bytes: u64, place: &str) -> Result<Vec<u8>, ImportError> {
        if bytes > MOST_BYTES || self.at.checked_add(bytes).is_none_or(|to| to > self.size) {
            return Err(self.damage_error(place, "it is longer than the rest of the file"));
        }
        let mut out = vec![0; usize::try_from(bytes).unwrap_or(usize::MAX)];
        self.reader.read_exact(&mut out).map_err(|e| ImportError::io(&self.path, e))?;
        self.at += bytes;
        Ok(out)
    }

    fn broken_error(&self) -> ImportError {
        self.damage_error("result", "it cannot be read")
    }

    /// Reads a varint, which must end at or before `end`.
    pub fn read_varint(&mut self, end: u64) -> Result<u64, ImportError> {
        let mut value = 0_u64;
        let mut used = 0_usize;
        let mut done = false;
        {
            // Fast path: the buffer nearly always contains the complete number.
            let buffer = self.reader.fill_buf().map_err(|e| ImportError::io(&self.path, e))?;
            for (&byte, shift) in buffer.iter().take(10).zip((0..).step_by(7)) {
                value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or_default();
                used += 1;
                if byte < 0x80 {
                    done = true;
                    break;
                }
            }
        }
        if done {
            self.reader.consume(used);
            self.at += used as u64;
        } else {
            value = 0;
            for shift in (0..70).step_by(7) {
                let mut byte = [0];
                if self.reader.read_exact(&mut byte).is_err() {
                    return Err(self.broken_error());
                }
                self.at += 1;
                value |= u64::from(byte[0] & 0x7f).checked_shl(shift).unwrap_or_default();
                done = byte[0] < 0x80;
                if done {
                    break;
                }
            }
        }
        if done && self.at <= end { Ok(value) } else { Err(self.broken_error()) }
    }

    /// Reads the number and wire type of the next field; `None` at the end of the message.
    pub fn next_field(&mut self, end: u64) -> Result<Option<(u64, Form)>, ImportError> {
        if self.at >= end {
            return Ok(None);
        }
        let key = self.read_varint(end)?;
        let form = match key & 7 {
            0 => Form::Varint,
            1 => Form::Fixed64,
            2 => Form::Bytes,
            5 => Form::Fixed32,
            _ => return Err(self.broken_error()),
        };
        Ok(Some((key >> 3, form)))
    }

    /// Reads the length of a field; returns the position at which the field's bytes end.
    pub fn bytes_end(&mut self, end: u64) -> Result<u64, ImportError> {
        let length = self.read_varint(end)?;
        self.at.checked_add(length).filter(|&to| to <= end).ok_or_else(|| self.broken_error())
    }

    pub fn skip_value(&mut self, form: Form, end: u64) -> Result<(), ImportError> {
        let bytes = match form {
            Form::Varint => return self.read_varint(end).map(drop),
            Form::Fixed64 => 8,
            Form::Fixed32 => 4,
            Form::Bytes => {
                let to = self.bytes_end(end)?;
                to - self.at
            }
        };
        if self.at + bytes > end {
            return Err(self.broken_error());
        }
        self.skip_bytes(bytes, "result")
    }

    /// Reads the length and bytes of a field.
    pub fn read_field_bytes(&mut self, end: u64) -> Result<Vec<u8>, ImportError> {
        let to = self.bytes_end(end)?;
        self.read_bytes(to - self.at, "result")
    }

    /// Reads the text in a field; invalid UTF-8 becomes replacement characters.
    pub fn read_text(&mut self, end: u64) -> Result<String, ImportError> {
        Ok(String::from_utf8(self.read_field_bytes(end)?).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
    }

    pub fn read_fixed64(&mut self, end: u64) -> Result<[u8; 8], ImportError> {
        self.read_fixed(end)
    }

    pub fn read_fixed32(&mut self, end: u64) -> Result<[u8; 4], ImportError> {
        self.read_fixed(end)
    }

    fn read_fixed<const N: usize>(&mut self, end: u64) -> Result<[u8; N], ImportError> {
        let mut out = [0; N];
        if self.at + N as u64 > end || self.reader.read_exact(&mut out).is_err() {
            return Err(self.broken_error());
        }
        self.at += N as u64;
        Ok(out)
    }
}

/// Subtracts the number of fields in a message from `left`, including those in nested messages; a string that is also
/// a valid message counts as a message. Returns false if the bytes are not a message.
fn count_fields(mut bytes: &[u8], left: &mut usize, depth: usize) -> bool {
    while !bytes.is_empty() && *left > 0 {
        let Some(key) = take_varint(&mut bytes) else { return false };
        let length = match key & 7 {
            0 if take_varint(&mut bytes).is_some() => 0,
            1 => 8,
            2 => match take_varint(&mut bytes).map(usize::try_from) {
                Some(Ok(length)) => length,
                _ => return false,
            },
            5 => 4,
            _ => return false,
        };
        let Some((value, rest)) = bytes.split_at_checked(length) else { return false };
        *left -= 1;
        if key & 7 == 2 && depth > 0 {
            let before = *left;
            if !count_fields(value, left, depth - 1) {
                *left = before;
            }
        }
        bytes = rest;
    }
    true
}

/// Reads a varint from the front of `bytes`.
fn take_varint(bytes: &mut &[u8]) -> Option<u64> {
    let mut value = 0_u64;
    for shift in (0..70).step_by(7) {
        let (&byte, rest) = bytes.split_first()?;
        *bytes = rest;
        value |= u64::from(byte & 0x7f).checked_shl(shift).unwrap_or_default();
        if byte < 0x80 {
            return Some(value);
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_are_counted_at_every_depth_and_what_is_kept_is_bounded() {
        // A number, a message of two numbers, and a string that is not a message.
        let bytes = [0x08, 1, 0x12, 4, 0x08, 1, 0x10, 2, 0x1a, 2, b'?', b'?'];
        let mut left = 10;
        assert!(count_fields(&bytes, &mut left, 4));
        assert_eq!(left, 5);
        let mut left = 3;
        count_fields(&bytes, &mut left, 4);
        assert_eq!(left, 0);
        assert!(!count_fields(&[0x12, 5, 1], &mut 10, 4));
        let mut w = wire(&[0; 10]);
        w.charge_memory(64 << 20).unwrap();
        assert!(w.charge_memory(161).unwrap_err().to_string().contains("MB of memory"));
    }

    fn wire(bytes: &'static [u8]) -> Wire {
        Wire::open(Path::new("x"), &Bytes::BuiltIn(bytes), bytes.len() as u64).unwrap()
    }

    #[test]
    fn numbers_and_fields_are_read_and_nothing_beyond_the_message() {
        let mut w = wire(&[0x08, 0xac, 0x02, 0x12, 0x02, b'h', b'i', 0x1d, 1, 0, 0, 0]);
        assert_eq!(w.next_field(12).unwrap(), Some((1, Form::Varint)));
        assert_eq!(w.read_varint(12).unwrap(), 300);
        assert_eq!(w.next_field(12).unwrap(), Some((2, Form::Bytes)));
        assert_eq!(w.read_text(12).unwrap(), "hi");
        assert_eq!(w.next_field(12).unwrap(), Some((3, Form::Fixed32)));
        assert_eq!(w.read_fixed32(12).unwrap(), [1, 0, 0, 0]);
        assert_eq!(w.next_field(12).unwrap(), None);
        // A string longer than its message, an unterminated number, a group.
        assert!(wire(&[0x7f, b'a']).read_text(2).is_err());
        assert!(wire(&[0xff; 16]).read_varint(16).is_err());
        assert!(wire(&[0x0b]).next_field(1).is_err());
        assert!(wire(&[0x80]).read_varint(1).is_err());
        // End of file, a length, a truncated length.
        assert_eq!(wire(&[]).read_length("x").unwrap(), None);
        assert_eq!(wire(&[2, 1, 0, 0]).read_length("x").unwrap(), Some(258));
        assert!(wire(&[2, 1, 0]).read_length("x").is_err());
    }
}
