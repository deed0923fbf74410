//! Short recordings at random times, from which the totals of a whole run are estimated.

/// Recorded periods of a process. Work belongs to the period in which it was launched, and is recorded until it ends.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSample {
    pub pid: u32,
    /// Time span from which the periods were chosen, ns.
    pub span: (i64, i64),
    /// Start and end of each period, in order, ns.
    pub moments: Vec<(i64, i64)>,
    /// Reason why no more periods were recorded, if the tracer stopped.
    pub stopped: Option<String>,
}

impl RunSample {
    /// Total length of all periods, ns.
    pub fn recorded_ns(&self) -> i64 {
        self.moments.iter().map(|m| m.1 - m.0).sum()
    }
}
