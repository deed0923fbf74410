//! Byte stream of a pickle, and errors that occur while reading it.

use std::io::{self, Read};

/// Error of reading a pickle.
#[derive(Debug)]
pub enum Refusal {
    Io(io::Error),
    /// The pickle is truncated.
    Short,
    /// The pickle would create a Python object or call a function; holds the name of the opcode.
    Code(&'static str),
    Damaged(&'static str),
    /// The pickle needs more memory than any real snapshot of its size.
    Memory,
    Cancelled,
}

impl From<io::Error> for Refusal {
    fn from(e: io::Error) -> Self {
        if e.kind() == io::ErrorKind::UnexpectedEof { Self::Short } else { Self::Io(e) }
    }
}

/// Number of bytes to read at a time.
const BUFFER: usize = 1 << 18;

/// Buffered reader for a pickle.
pub struct Bytes<'a, R> {
    from: &'a mut R,
    buffer: Vec<u8>,
    at: usize,
    end: usize,
}

impl<'a, R: Read> Bytes<'a, R> {
    pub fn new(from: &'a mut R) -> Self {
        Self { from, buffer: vec![0; BUFFER], at: 0, end: 0 }
    }

    /// Reads until `bytes` bytes are buffered; `bytes` is at most [`BUFFER`].
    #[cold]
    fn fill_buffer(&mut self, bytes: usize) -> Result<(), Refusal> {
        self.buffer.copy_within(self.at..self.end, 0);
        (self.at, self.end) = (0, self.end - self.at);
        while self.end < bytes {
            match self.from.read(&mut self.buffer[self.end..]) {
                Ok(0) => return Err(Refusal::Short),
                Ok(n) => self.end += n,
                Err(e) if e.kind() == io::ErrorKind::Interrupted => {}
                Err(e) => return Err(e.into()),
            }
        }
        Ok(())
    }

    #[inline]
    pub fn next<const N: usize>(&mut self) -> Result<[u8; N], Refusal> {
        if let Some(&out) = self.buffer.get(self.at..self.end).and_then(<[u8]>::first_chunk) {
            self.at += N;
            return Ok(out);
        }
        self.fill_buffer(N)?;
        let out = *self.buffer[self.at..self.end].first_chunk().ok_or(Refusal::Short)?;
        self.at += N;
        Ok(out)
    }

    /// Appends the next bytes to `word`.
    pub fn read_many(&mut self, mut bytes: usize, word: &mut Vec<u8>) -> Result<(), Refusal> {
        while bytes > 0 {
            if self.at == self.end {
                self.fill_buffer(1)?;
            }
            let here = bytes.min(self.end - self.at);
            word.extend_from_slice(&self.buffer[self.at..self.at + here]);
            self.at += here;
            bytes -= here;
        }
        Ok(())
    }
}
