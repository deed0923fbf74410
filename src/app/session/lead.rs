//! A cause that comes before the first finding about a run: a rank that delays the others, or a kernel whose diagnosis
//! promises more.

use super::report::Report;
use super::{Session, Straggler};
use crate::analysis::hints::Severity;
use crate::analysis::hints::first::FirstHint;

/// Minimum distance to the first finding, as a share of the judged time.
const BY: f64 = 0.01;
/// Share of the judged time from which a rank that delays the others comes first, whatever else limits this one.
const UNLIKE: f64 = 0.05;

/// A kernel with more to gain than the time between kernels.
#[derive(Clone, Debug)]
pub struct KernelLead {
    pub kernel: String,
    pub hint: FirstHint,
    /// Upper bound of what the change saves, as a share of the judged time.
    pub gain: f64,
}

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
        let judged = triage.length().max(1) as f64 * triage.devices.len().max(1) as f64;
        let leads = self.diagnosed.iter().filter(|(_, hint)| hint.severity >= Severity::Medium).filter_map(|(row, hint)| {
            let group = grouping.rows.get(*row)?;
            let (kernel, ns, _) = triage.kernels.iter().find(|k| group.kernel.is_some_and(|own| own.0 == k.0))?;
            // The part of the kernel's time by which the run would be shorter.
            let worth = self.hint_worth(*kernel, hint.id, hint.gain)?;
            let part = worth.saves?.1 / worth.share.max(f64::MIN_POSITIVE);
            Some(KernelLead { kernel: group.name.clone(), hint: hint.clone(), gain: *ns as f64 / judged * part.min(1.0) })
        });
        let first = leads.max_by(|a, b| a.gain.total_cmp(&b.gain).then_with(|| b.kernel.cmp(&a.kernel)))?;
        (first.gain > triage.verdict().map_or(0.0, |f| f.stake) + BY).then_some(first)
    }
}
