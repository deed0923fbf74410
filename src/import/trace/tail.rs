//! A file of a trace that is followed: how far it was read, and from where its last rows can be read again.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;

/// How far back rows can be read again, ns.
const BACK: i64 = 120_000_000_000;
/// Kernels between places that are remembered, at most about: a busy program launches several hundred thousand in a second.
const FINE: u64 = 16_384;

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
    /// `began`: when a file that continues another was begun, ns since 1970.
    pub fn new(name: OsString, file: File, process: usize, began: Option<i64>) -> Self {
        let mut out = Self { name, file, first: began.is_none(), process, at: 0, there: 0, kernels: 0, marks: VecDeque::new() };
        if let Some(time) = began {
            out.mark(time, 0);
        }
        out
    }

    /// Notes how far the file is.
    pub fn look(&mut self) {
        self.there = self.file.metadata().map_or(self.at, |m| m.len());
    }

    /// Remembers a place behind which everything was written after `time`, if that is news, and forgets those that are too old.
    pub fn mark(&mut self, time: i64, at: u64) {
        if self.marks.back().is_some_and(|m| m.time >= time && self.kernels - m.kernels < FINE) {
            return;
        }
        let time = self.marks.back().map_or(time, |m| m.time.max(time));
        self.marks.push_back(Mark { time, at, kernels: self.kernels });
        while self.marks.get(1).is_some_and(|m| m.time < time - BACK) {
            self.marks.pop_front();
        }
    }

    /// From where on there is everything that was written since then, and a little more; of it no more than the last so many kernels.
    pub fn since(&self, time: i64, most: u64) -> u64 {
        let later = self.marks.partition_point(|m| m.time <= time).saturating_sub(1);
        // Before the first mark nothing was read, or nothing is remembered.
        self.marks.iter().skip(later).find(|m| self.kernels - m.kernels <= most).map_or(self.at, |m| m.at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn places_are_as_close_as_what_is_asked_for_needs() {
        let file = File::open("/dev/null").unwrap();
        let mut tail = Tail::new("trace.1.2.wstrace".into(), file, 0, Some(100));
        // 100,000 kernels a second, in blocks of 1,000: how it stands is said once a second.
        for block in 0..1_000_u64 {
            tail.kernels = block * 1_000;
            tail.at = block * 40_000;
            tail.mark(100 + i64::try_from(block / 100).unwrap(), tail.at);
        }
        assert_eq!(tail.since(0, u64::MAX), 0);
        for (time, least, most) in [(105, 500, 600), (109, 900, 1000), (110, 900, 1000)] {
            let block = tail.since(time, u64::MAX) / 40_000;
            assert!(block >= least && block < most, "{time}: {block}");
        }
        let kernels = 999_000 - tail.since(0, 50_000) / 40;
        assert!((25_000..=50_000).contains(&kernels), "{kernels}");
    }
}
