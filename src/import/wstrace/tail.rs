//! Read position in a trace file that is being followed, and earlier positions from which recent rows can be read
//! again.

use std::collections::VecDeque;
use std::ffi::OsString;
use std::fs::File;

/// Maximum age of rows that can be read again, ns.
const BACK: i64 = 120_000_000_000;
/// Approximate number of kernels between two seek points; a busy program launches several hundred thousand kernels
/// per second.
const FINE: u64 = 16_384;

/// A seek point in a file.
#[derive(Clone, Copy, Debug)]
struct Mark {
    /// All rows after this point were written after this time, ns since 1970.
    time: i64,
    at: u64,
    /// Number of kernels before this point.
    kernels: u64,
}

pub struct Tail {
    pub name: OsString,
    pub file: File,
    /// True for the first file of its process.
    pub first: bool,
    /// Index of the process that the file belongs to.
    pub process: usize,
    /// Number of bytes read so far; `there` is the size of the file at the start of the current poll.
    pub at: u64,
    pub there: u64,
    pub kernels: u64,
    marks: VecDeque<Mark>,
}

impl Tail {
    /// `began` is the start time of a file that continues another file, ns since 1970; `None` for a first file.
    pub fn new(name: OsString, file: File, process: usize, began: Option<i64>) -> Self {
        let mut out = Self { name, file, first: began.is_none(), process, at: 0, there: 0, kernels: 0, marks: VecDeque::new() };
        if let Some(time) = began {
            out.add_mark(time, 0);
        }
        out
    }

    pub fn update_size(&mut self) {
        self.there = self.file.metadata().map_or(self.at, |m| m.len());
    }

    /// Adds a seek point unless the last one is close enough, and drops old ones. All rows after `at` must have been
    /// written after `time`.
    pub fn add_mark(&mut self, time: i64, at: u64) {
        if self.marks.back().is_some_and(|m| m.time >= time && self.kernels - m.kernels < FINE) {
            return;
        }
        let time = self.marks.back().map_or(time, |m| m.time.max(time));
        self.marks.push_back(Mark { time, at, kernels: self.kernels });
        while self.marks.get(1).is_some_and(|m| m.time < time - BACK) {
            self.marks.pop_front();
        }
    }

    /// Returns the offset of the last seek point before `time`, or of a later one if more than `most` kernels would
    /// follow.
    pub fn seek_offset(&self, time: i64, most: u64) -> u64 {
        let later = self.marks.partition_point(|m| m.time <= time).saturating_sub(1);
        // If there is no suitable seek point, nothing is read again.
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
        // 100,000 kernels per second in blocks of 1,000, and one state report per second.
        for block in 0..1_000_u64 {
            tail.kernels = block * 1_000;
            tail.at = block * 40_000;
            tail.add_mark(100 + i64::try_from(block / 100).unwrap(), tail.at);
        }
        assert_eq!(tail.seek_offset(0, u64::MAX), 0);
        for (time, least, most) in [(105, 500, 600), (109, 900, 1000), (110, 900, 1000)] {
            let block = tail.seek_offset(time, u64::MAX) / 40_000;
            assert!(block >= least && block < most, "{time}: {block}");
        }
        let kernels = 999_000 - tail.seek_offset(0, 50_000) / 40;
        assert!((25_000..=50_000).contains(&kernels), "{kernels}");
    }
}
