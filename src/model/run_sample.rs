//! Short recordings at random moments, from which totals of a whole run are estimated.

/// Recorded moments of a process. Work counts to the moment in which it was launched, and is recorded to its end.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunSample {
    pub pid: u32,
    /// Time from which the moments were chosen, ns.
    pub span: (i64, i64),
    /// Begin and end of each moment, ordered, ns.
    pub moments: Vec<(i64, i64)>,
    /// Reason why no more moments were recorded, if the tracer stopped.
    pub stopped: Option<String>,
}

impl RunSample {
    /// Length of all moments, ns.
    pub fn recorded_ns(&self) -> i64 {
        self.moments.iter().map(|m| m.1 - m.0).sum()
    }
}
