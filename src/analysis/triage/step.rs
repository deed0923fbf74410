//! Steps, and the methods for finding them.

/// Operation counts for a device, from which the device to search for a period is chosen.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Counts {
    /// Kernels, collectives and graphs.
    pub kernels: usize,
    /// Copies between host and device.
    pub copies: usize,
}

/// Method by which steps were found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum StepSource {
    /// Ranges with this name, in which `#` replaces numbers: `step #`.
    Ranges(String),
    /// Each launch of a CUDA graph is a step.
    Graphs,
    /// The sequence of operations repeats after this many operations.
    Period(usize),
    /// The launching thread waits for a result once per step, in the call with this name.
    Waits(String),
}

/// A step on the devices. It lasts from its first operation to the first operation of the next step, or, for the last
/// step, to its own last operation. A step marked by a range starts with the range, or when the devices have finished
/// the preceding work if that is later.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Step {
    /// Start and end in nanoseconds since the session began.
    pub start: i64,
    pub end: i64,
    /// Index among all steps of the run, from 0.
    pub number: u32,
}

impl Step {
    pub fn length(&self) -> i64 {
        self.end - self.start
    }
}

/// Minimum number of repetitions for them to count as steps.
pub const LEAST_STEPS: usize = 3;
/// Minimum share of all operations that a period must explain; with less, the period is just one loop among others.
pub const EXPLAINS: f64 = 0.5;

/// Returns the median; for an even number of values, the lower of the two middle ones.
pub fn lower_median(mut values: Vec<i64>) -> Option<i64> {
    let middle = values.len().checked_sub(1)? / 2;
    Some(*values.select_nth_unstable(middle).1)
}

/// Method, start of each step, and end of the last, ns.
pub type Starts = (StepSource, Vec<i64>, i64);
