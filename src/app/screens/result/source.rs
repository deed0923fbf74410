//! Hottest source lines and instructions of one result

use super::lazy_details::Asked;
use crate::analysis::code::{self, Counts, Instruction, Listing};
use crate::analysis::hints::Diagnosis;
use crate::model::{Code, Details, Metrics};
use std::sync::Arc;

/// Count by which the hottest row is found.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Heat {
    #[default]
    Samples,
    /// L2 sectors beyond what coalesced accesses need.
    ExcessSectors,
    /// Wavefronts of shared memory beyond what accesses without bank conflicts need.
    ExcessWavefronts,
}

impl Heat {
    /// Count that locates what a hint names.
    pub fn of_diagnosis(id: Option<Diagnosis>) -> Self {
        match id {
            Some(Diagnosis::Uncoalesced) => Self::ExcessSectors,
            Some(Diagnosis::BankConflicts) => Self::ExcessWavefronts,
            _ => Self::Samples,
        }
    }

    fn count(self, counts: &Counts) -> f64 {
        match self {
            Self::Samples => counts.samples,
            Self::ExcessSectors => counts.excess_l2.unwrap_or(0.0),
            Self::ExcessWavefronts => counts.excess_shared.unwrap_or(0.0),
        }
    }
}

#[derive(Clone, Debug)]
pub struct SourceView {
    pub code: Asked<Code>,
    pub listing: Option<Arc<Listing>>,
    /// True if instructions are shown instead of lines.
    pub instructions: bool,
    /// True if rows are sorted by address or line instead of by samples.
    pub in_order: bool,
    /// Index of the selected row.
    pub selected: usize,
    pub heat: Heat,
}

impl Default for SourceView {
    fn default() -> Self {
        Self { code: Asked::No, listing: None, instructions: false, in_order: false, selected: 0, heat: Heat::default() }
    }
}

impl SourceView {
    /// Number of rows in the visible listing.
    pub fn row_count(&self) -> usize {
        self.listing.as_ref().map_or(0, |l| if self.instructions { l.instructions.len() } else { l.lines.len() })
    }

    pub fn rebuild_listing(&mut self, metrics: &Metrics, result: usize, details: Option<&Details>) {
        let (Some(code), Some(details)) = (self.code.get(), details) else { return };
        let first = self.listing.is_none();
        let mut listing = code::build_listing(metrics, result, details, code, self.in_order);
        // If the source text is available, list the code in order and select the hottest line.
        let read = first && !self.in_order && listing.lines.iter().any(|l| l.text.is_some());
        if read {
            self.in_order = true;
            listing = code::build_listing(metrics, result, details, code, true);
        }
        self.listing = Some(Arc::new(listing));
        if read {
            self.selected = self.hottest_row();
        }
    }

    /// Index of the row with the highest count, or with the most samples if the count is not there.
    pub fn hottest_row(&self) -> usize {
        let Some(listing) = &self.listing else { return 0 };
        let of = |heat: Heat| -> Vec<f64> {
            if self.instructions {
                listing.instructions.iter().map(|i| heat.count(&i.counts)).collect()
            } else {
                listing.lines.iter().map(|l| heat.count(&l.counts)).collect()
            }
        };
        let mut counts = of(self.heat);
        if counts.iter().all(|c| *c <= 0.0) {
            counts = of(Heat::Samples);
        }
        // On a tie, select the first row.
        counts.iter().enumerate().rev().max_by(|a, b| a.1.total_cmp(b.1)).map_or(0, |m| m.0)
    }

    /// Selects the row that has most of what a hint names.
    pub fn show_heat(&mut self, heat: Heat) {
        if self.heat != heat {
            self.heat = heat;
            self.selected = self.hottest_row();
        }
    }

    /// Stores the code; without line information, switches to instructions.
    pub fn set_code(&mut self, outcome: &Result<Arc<Code>, String>, metrics: &Metrics, result: usize, details: Option<&Details>) {
        self.code = Asked::from_outcome(outcome);
        self.rebuild_listing(metrics, result, details);
        if self.listing.as_ref().is_some_and(|l| l.lines.is_empty()) {
            self.instructions = true;
        }
        self.selected = self.hottest_row();
    }

    /// Returns true if the report has lines of the source for these instructions.
    pub fn has_lines(&self) -> bool {
        self.listing.as_ref().is_some_and(|l| !l.lines.is_empty())
    }

    /// Unit of the counts in the list.
    pub fn unit(&self) -> &'static str {
        self.listing.as_ref().map_or("samples", |l| l.unit)
    }

    /// Jumps from a line to its hottest instruction, or from an instruction to its line.
    pub fn jump_to_counterpart(&mut self) {
        let Some(listing) = self.listing.clone() else { return };
        if self.instructions {
            let line = listing.instructions.get(self.selected).and_then(|i| i.line);
            if let Some(at) = line.and_then(|l| listing.lines.iter().position(|x| (x.file, x.line) == l)) {
                (self.instructions, self.selected) = (false, at);
            }
        } else if let Some(line) = listing.lines.get(self.selected) {
            let own = |i: &&Instruction| i.line == Some((line.file, line.line));
            let hottest = listing.instructions.iter().filter(own).max_by(|a, b| a.counts.samples.total_cmp(&b.counts.samples));
            if let Some(at) = hottest.and_then(|h| listing.instructions.iter().position(|i| i.address == h.address)) {
                (self.instructions, self.selected) = (true, at);
            }
        }
    }
}
