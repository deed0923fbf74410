//! Findings about a program's memory usage.

use crate::analysis::finding::{Finding, FindingId};

/// Kind of a memory finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum MemoryVerdict {
    OutOfMemory,
    Growth,
    Fragmentation,
    Peak,
    Churn,
}

impl MemoryVerdict {
    pub const ALL: [Self; 5] = [Self::OutOfMemory, Self::Growth, Self::Fragmentation, Self::Peak, Self::Churn];

    /// Stable identifier for scripts.
    pub fn id(self) -> &'static str {
        match self {
            Self::OutOfMemory => "out-of-memory",
            Self::Growth => "growth",
            Self::Fragmentation => "fragmentation",
            Self::Peak => "peak",
            Self::Churn => "churn",
        }
    }

    pub fn from_id(id: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|v| v.id() == id)
    }
}

/// A problem in a program's memory usage. Its stake is a share of the memory concerned, not of time.
pub type MemoryFinding = Finding<MemoryVerdict>;

/// Sites and time to which a memory finding refers.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Holders {
    /// Subtype of the finding for scripts, if there are several.
    pub kind: Option<&'static str>,
    /// Sites with their bytes, largest first.
    pub sites: Vec<(u32, u64)>,
    /// Time at which the finding is visible, ns.
    pub time: Option<i64>,
}

impl FindingId for MemoryVerdict {
    type Confirm = ();
    type Details = Holders;

    fn id(self) -> &'static str {
        Self::id(self)
    }

    fn sort_position(self) -> usize {
        self as usize
    }

    fn new_details(_stake: f64) -> Holders {
        Holders::default()
    }
}

impl MemoryFinding {
    pub fn with_kind(mut self, kind: &'static str) -> Self {
        self.details.kind = Some(kind);
        self
    }

    pub fn with_sites(mut self, sites: Vec<(u32, u64)>, time: Option<i64>) -> Self {
        (self.details.sites, self.details.time) = (sites, time);
        self
    }
}
