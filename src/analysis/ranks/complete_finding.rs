//! Completes a rank's own findings on collectives by what the other ranks show. A single report cannot tell
//! communication from waiting for another rank.

use super::job_result::{Job, Member};
use super::nccl;
use crate::analysis::triage::finding::COMPARE_RANKS;
use crate::analysis::triage::{Finding, Severity, Verdict};
use crate::model::Nanos;
use crate::model::units::format_share;

/// Label of the evidence that this module adds.
const WAITING: &str = "waiting for other ranks";

/// Share of the time in which only collectives ran from which waiting for other ranks is most of it.
const MOSTLY: f64 = 0.5;

/// Adds the time that the ranks of a report waited for others and the bandwidth of the link to a finding, and removes the
/// advice to record or open the other ranks. Does nothing for other findings, and if the collectives could not be
/// matched.
pub fn complete_finding(finding: &mut Finding, job: &Job, members: &[&Member]) {
    let of_collectives = matches!(finding.id, Verdict::CommBound | Verdict::CommExposed);
    let done = finding.evidence.iter().any(|e| e.name == WAITING);
    let judged: i64 = members.iter().map(|m| m.judged).sum();
    if !of_collectives || done || job.unsure || job.matches.list.is_empty() || judged <= 0 {
        return;
    }
    // Without the few longest waits, as everywhere about the ranks.
    let waited: i64 = members.iter().map(|m| m.waited).sum();
    let exposed: i64 = members.iter().map(|m| m.exposed).sum();
    let whose = if members.len() == 1 { "this rank" } else { "these ranks" };
    finding.bound = format!(
        "the time in which only collectives ran, on {whose}; waiting for other ranks is {} of it ({} of the run)",
        Nanos(waited),
        format_share(waited as f64 / judged as f64)
    );
    let mut completed = finding.clone().with_number(WAITING, waited as f64, "ns");
    if let Some(link) = job.links.iter().find(|l| !nccl::point_to_point(l.kind)) {
        completed = completed.with_number(&format!("bus bandwidth of {}", link.kind), link.bus, "byte/s");
    }
    completed.actions.retain(|action| action != COMPARE_RANKS);
    completed.confirm = None;
    if waited as f64 >= MOSTLY * exposed as f64 {
        completed.headline = format!(
            "{}; {} of the exposed time is waiting for other ranks",
            completed.headline,
            format_share(waited as f64 / exposed.max(1) as f64)
        );
        completed
            .actions
            .insert(0, "Find out what keeps the rank that comes last: faster or fewer collectives save only the rest.".to_owned());
        completed.severity = completed.severity.min(Severity::Medium);
    }
    *finding = completed;
}

/// Completes the findings on each report by what the ranks show that are in it. `reports` has the index of each digest's
/// report.
pub fn complete_reports<'a>(findings: impl IntoIterator<Item = &'a mut Vec<Finding>>, job: &Job, reports: &[usize]) {
    for (at, findings) in findings.into_iter().enumerate() {
        let members: Vec<&Member> = job.ranks.iter().filter(|m| reports.get(m.digest) == Some(&at)).collect();
        if job.ranks.len() > 1 && !members.is_empty() {
            for finding in findings {
                complete_finding(finding, job, &members);
            }
        }
    }
}
