//! A file of a trace that is followed: how far it was read, and from where its last rows can be read again.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;

/// How far back rows can be read again, ns.
const BACK: i64 = 120_000_000_000;

/// A place in a file from which on rows can be read.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// Rows behind it were written later, ns since 1970.
    time: i64,
    at: u64,
    /// Kernels before it.
    kernels: u64,
}

/// A file that is followed.
pub struct Tail {
    pub name: OsString,
    pub file: File,
    /// Whether its process began with it.
    pub first: bool,
    /// Index of its process.
    pub process: usize,
    /// Bytes that were read, and that were there when this look began.
    pub at: u64,
    pub there: u64,
    pub kernels: u64,
    marks: VecDeque<Mark>,
}

impl Tail {
    pub fn new(name: OsString, file: File, first: bool, process: usize) -> Self {
        Self { name, file, first, process, at: 0, there: 0, kernels: 0, marks: VecDeque::new() }
    }

    /// Notes how far the file is.
    pub fn look(&mut self) {
        self.there = self.file.metadata().map_or(self.at, |m| m.len());
    }

    /// Remembers a place, and forgets those that are too old.
    pub fn mark(&mut self, time: i64, at: u64) {
        self.marks.push_back(Mark { time, at, kernels: self.kernels });
        while self.marks.get(1).is_some_and(|m| m.time < time - BACK) {
            self.marks.pop_front();
        }
    }

    /// Where rows begin that were written since then, of which there are no more than so many kernels.
    pub fn since(&self, time: i64, most: u64) -> u64 {
        let wanted = |m: &&Mark| m.time >= time && self.kernels - m.kernels <= most;
        // Before the first mark nothing was read, or nothing is remembered.
        self.marks.iter().find(wanted).map_or(self.at, |m| m.at)
    }
}
