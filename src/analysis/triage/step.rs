//! A step, and how it was found.

/// Number of a device's operations.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Kernels, collectives, graphs.
    pub kernels: usize,
    /// Copies between host and device.
    pub copies: usize,
}

/// The way in which steps were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Found {
    /// Ranges of this name, their numbers left out: `step #`.
    Ranges(String),
    /// Each launch of a CUDA graph is one.
    Graphs,
    /// The sequence of operations repeats after so many.
    Period(usize),
    /// The launching thread waits for a result once a step, in the call of this name.
    Waits(String),
}

/// One step on the devices: from its first operation to the first of the next step, or to its own last. A step that a range marks begins with the
/// range, as soon as the devices are done with what came before.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// ns.
    pub start: i64,
    /// ns.
    pub end: i64,
    /// Its place among all steps of the run, from 0.
    pub number: u32,
}

impl Step {
    #[must_use]
    pub fn length(&self) -> i64 {
        self.end - self.start
    }
}

/// Steps below which nothing repeats.
pub const LEAST: usize = 3;
/// Share of all operations that a period must explain: else it is one loop among others.
pub const EXPLAINS: f64 = 0.5;

/// The middle value, the lower of two.
#[must_use]
pub fn median(mut values: Vec<i64>) -> Option<i64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

/// When steps begin, and when the last of them ends, ns.
pub type Starts = (Found, Vec<i64>, i64);
