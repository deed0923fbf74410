//! A cause that comes before the first finding about a run: a rank that delays the others, or a kernel whose diagnosis
//! promises more.

use super::report::Report;
use super::{Session, Straggler};
use crate::analysis::hints::{KernelLead, Severity};
use crate::analysis::kernel_lead::{first_lead, lead_gain};

/// Share of the judged time from which a rank that delays the others comes first, whatever else limits this one.
const UNLIKE: f64 = 0.05;

/// A cause that comes before the findings of a report itself.
#[derive(Clone, Debug)]
pub enum Lead<'a> {
    Straggler(Straggler<'a>),
    Kernel(KernelLead),
}

impl Session {
    /// The cause that limits a report's run more than its own findings, if there is one.
    pub fn lead(&self, report: usize) -> Option<Lead<'_>> {
        let known = self.reports.get(report)?;
        let own = known.triage.as_ref()?.as_ref()?.verdict().map_or(0.0, |f| f.stake);
        let straggler = self.straggler_of(report).filter(|s| s.finding.stake >= own.min(UNLIKE));
        straggler.map(Lead::Straggler).or_else(|| known.kernel_lead().map(Lead::Kernel))
    }
}

impl Report {
    /// The kernel with the most to gain, if that is more than what the first finding promises.
    pub fn kernel_lead(&self) -> Option<KernelLead> {
        let triage = self.triage.as_ref()?.as_ref()?;
        let grouping = self.groups.grouping.as_ref().filter(|g| g.by.is_kernel())?;
        let leads = self.diagnosed.iter().filter(|(_, hint)| hint.severity >= Severity::Medium).filter_map(|(row, hint)| {
            let group = grouping.rows.get(*row)?;
            let kernel = group.kernel?.0;
            let gain = lead_gain(triage, kernel, &self.hint_worth(kernel, hint.id, hint.gain)?)?;
            Some(KernelLead { kernel: group.name.clone(), hint: hint.clone(), gain })
        });
        first_lead(triage, leads)
    }
}
