//! Places in the program and on the time axis to which findings refer.

#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PlaceKind {
    Range,
    Operator,
    Python,
    /// A function in the host's code with its executed line, from samples.
    Line,
    Call,
    Kernel,
    Step,
    /// A time interval.
    Window,
}

impl PlaceKind {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Range => "range",
            Self::Operator => "operator",
            Self::Python => "python",
            Self::Line => "line",
            Self::Call => "call",
            Self::Kernel => "kernel",
            Self::Step => "step",
            Self::Window => "window",
        }
    }
}

/// Location of a finding in the program or on the time axis.
#[derive(Clone, Debug, PartialEq)]
pub struct Place {
    pub kind: PlaceKind,
    pub name: String,
    /// Start of the example shown, ns.
    pub start: i64,
    /// End of the example shown, ns.
    pub end: i64,
    /// Portion of the finding's time spent at this place, ns; `None` if unknown.
    pub ns: Option<i64>,
    pub rank: Option<u32>,
}
