//! Findings on a program's use of memory.

use crate::analysis::triage::Evidence;

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

    /// Identifier for scripts.
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

/// A problem in a program's use of memory.
#[derive(Clone, Debug, PartialEq)]
pub struct MemoryFinding {
    pub id: MemoryVerdict,
    /// Share of the memory concerned, from 0 to 1: larger is more important.
    pub stake: f64,
    /// Subtype for scripts, if there are several.
    pub kind: Option<&'static str>,
    pub headline: String,
    pub evidence: Vec<Evidence>,
    /// Sites with their bytes, the largest first.
    pub sites: Vec<(u32, u64)>,
    /// Time at which the finding is visible, ns.
    pub time: Option<i64>,
    pub actions: Vec<String>,
}

impl MemoryFinding {
    pub fn new(id: MemoryVerdict, stake: f64, headline: String) -> Self {
        Self {
            id,
            stake: stake.clamp(0.0, 1.0),
            kind: None,
            headline,
            evidence: Vec::new(),
            sites: Vec::new(),
            time: None,
            actions: Vec::new(),
        }
    }

    pub fn with_kind(mut self, kind: &'static str) -> Self {
        self.kind = Some(kind);
        self
    }

    pub fn with_evidence(mut self, name: &str, value: f64, unit: &'static str) -> Self {
        self.evidence.push(Evidence { name: name.to_owned(), value, unit, threshold: None });
        self
    }

    /// Adds evidence with its threshold.
    pub fn with_threshold(mut self, name: &str, value: f64, unit: &'static str, than: (&'static str, f64)) -> Self {
        self.evidence.push(Evidence { name: name.to_owned(), value, unit, threshold: Some(than) });
        self
    }

    pub fn with_sites(mut self, sites: Vec<(u32, u64)>, time: Option<i64>) -> Self {
        (self.sites, self.time) = (sites, time);
        self
    }

    pub fn with_actions(mut self, actions: &[&str]) -> Self {
        self.actions = actions.iter().map(|a| (*a).to_owned()).collect();
        self
    }
}
