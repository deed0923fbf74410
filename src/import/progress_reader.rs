//! Reports the progress of reading a compressed file.

use super::job::Job;
use std::cell::Cell;
use std::fs::File;
use std::io::Read;
use std::rc::Rc;

/// A reader that reports as progress the number of bytes read from a compressed file.
pub struct Counted<'a> {
    inner: File,
    done: Rc<Cell<u64>>,
    total: u64,
    job: &'a Job<'a>,
}

impl<'a> Counted<'a> {
    /// Creates a reader for `inner`, a file of `total` bytes.
    pub fn new(inner: File, total: u64, job: &'a Job<'a>) -> Self {
        Self { inner, done: Rc::default(), total, job }
    }

    /// Shared counter for the bytes read so far.
    pub fn bytes_read(&self) -> Rc<Cell<u64>> {
        Rc::clone(&self.done)
    }
}

impl Read for Counted<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> std::io::Result<usize> {
        let n = self.inner.read(buffer)?;
        self.done.set(self.done.get() + n as u64);
        self.job.report_progress("unpacking", self.done.get(), self.total);
        Ok(n)
    }
}
