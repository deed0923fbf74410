//! Completes a rank's own findings on collectives by what the other ranks show. A single report cannot tell
//! communication from waiting for another rank.

use super::job_result::{Job, Member};
use super::nccl;
use crate::analysis::triage::finding::COMPARE_RANKS;
use crate::analysis::triage::{Finding, Verdict};
use crate::model::Nanos;
use crate::model::units::format_share;

/// Label of the evidence that this module adds.
const WAITING: &str = "waiting for other ranks";

/// Adds the time that the rank waited for others and the bandwidth of the link to a finding, and removes the advice to
/// record or open the other ranks. Does nothing for other findings, and if the collectives could not be matched.
pub fn complete_finding(finding: &mut Finding, job: &Job, member: &Member) {
    let of_collectives = matches!(finding.id, Verdict::CommBound | Verdict::CommExposed);
    let done = finding.evidence.iter().any(|e| e.name == WAITING);
    if !of_collectives || done || job.unsure || job.matches.list.is_empty() || member.judged <= 0 {
        return;
    }
    // Without the few longest waits, as everywhere about the ranks.
    let waited = member.waited;
    let share = waited as f64 / member.judged as f64;
    finding.bound = format!(
        "the time in which only collectives ran, on this rank; waiting for other ranks is {} of it ({} of the run)",
        Nanos(waited),
        format_share(share)
    );
    let mut completed = finding.clone().with_number(WAITING, waited as f64, "ns");
    if let Some(link) = job.links.iter().find(|l| !nccl::point_to_point(l.kind)) {
        completed = completed.with_number(&format!("bus bandwidth of {}", link.kind), link.bus, "byte/s");
    }
    completed.actions.retain(|action| action != COMPARE_RANKS);
    completed.confirm = None;
    *finding = completed;
}
