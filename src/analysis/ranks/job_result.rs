//! Result of analyzing ranks together.

use super::clocks::Offset;
use super::matching::Matches;
use super::rank_identity::Told;
use super::waits::Waits;
use crate::analysis::triage::Finding;
use crate::model::digest::Digest;
use crate::model::units::format_count;
use crate::model::units::format_share;
use std::collections::BTreeMap;

/// Minimum share of its time that a rank must wait for others to be mentioned.
const NOTICED: f64 = 0.01;

/// Reason why a rank is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// The rank's GPU computes more, or more slowly.
    Compute,
    /// The rank's host launches late.
    Host,
    /// The rank's own work was not recorded.
    Unknown,
}

impl Late {
    pub fn as_str(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Host => "host",
            Self::Unknown => "unknown",
        }
    }
}

/// A rank that makes the others wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Straggler {
    pub rank: u32,
    pub why: Late,
    /// Average time that the other ranks waited for this rank, ns.
    pub late: i64,
}

/// One rank. Times are in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct Member {
    /// Index of the rank's digest.
    pub digest: usize,
    pub rank: u32,
    /// Median step length.
    pub step: Option<i64>,
    /// Time in the analyzed window during which kernels other than collectives ran.
    pub compute: i64,
    /// Time during which collectives ran.
    pub comm: i64,
    /// Time during which only collectives ran.
    pub exposed: i64,
    /// Time during which nothing ran.
    pub idle: i64,
    /// Analyzed time of the report.
    pub judged: i64,
    /// Average time that the other ranks waited for this rank in collectives.
    pub late: i64,
    /// Time that this rank waited for others.
    pub waited: i64,
    /// Time that this rank spent in the few longest waits, which are excluded from the evaluation.
    pub waited_longest: i64,
    pub clock: Offset,
}

/// Collectives of one kind with the same number of ranks.
#[derive(Clone, Debug, PartialEq)]
pub struct Link {
    pub kind: &'static str,
    /// Number of ranks that take part.
    pub size: usize,
    pub count: u64,
    /// True if all messages have about the same size. If not, size, time and bandwidth are those of the size that takes
    /// the most time.
    pub uniform: bool,
    /// Median message size, bytes; `None` if the reports do not record it.
    pub bytes: Option<u64>,
    /// Median duration on the last rank to arrive, which does not wait for others, ns.
    pub time: i64,
    /// Median bus bandwidth, bytes per second.
    pub bus: Option<f64>,
    /// Bandwidth of the links between the GPUs, bytes per second, and the name of the links; `None` if unknown or if
    /// the ranks are on several machines.
    pub peak: Option<(f64, &'static str)>,
    pub algorithm: String,
    /// Total waiting time in these collectives, averaged over the ranks, ns.
    pub waited: i64,
}

/// One step on one rank. Times are in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StepCell {
    pub start: i64,
    pub length: i64,
    pub compute: i64,
    pub exposed: i64,
    pub idle: i64,
    /// Time that the other ranks waited for this rank in the step.
    pub late: i64,
}

#[derive(Clone, Debug, PartialEq)]
pub struct Job {
    /// Sorted by rank.
    pub ranks: Vec<Member>,
    pub told: Told,
    /// Number of jobs to which the ranks belong.
    pub jobs: usize,
    pub matches: Matches,
    pub waits: Waits,
    pub links: Vec<Link>,
    /// Ranks that make the others wait, worst first; may be empty.
    pub stragglers: Vec<Straggler>,
    /// Findings about the ranks as a whole; findings about individual ranks are in their digests.
    pub findings: Vec<Finding>,
    /// Missing data and other problems in the reports.
    pub remarks: Vec<String>,
    /// True if the match turned out to be wrong, in which case the waits between ranks are unknown.
    pub unsure: bool,
}

impl Job {
    pub fn find_member(&self, digest: u32) -> Option<&Member> {
        self.ranks.iter().find(|m| m.digest == digest as usize)
    }

    /// Returns the reason why it is not known which rank waits for which, if it is not.
    pub fn unknown_because(&self) -> Option<String> {
        if self.jobs > 1 {
            return Some(format!(
                "the ranks are of {} jobs: only those of one job are compared with each other; name the reports of one job to have it judged",
                self.jobs
            ));
        }
        let because = match self.ranks.len() {
            0 | 1 => "this is one rank: name the reports of the others, too",
            _ if self.matches.list.is_empty() => "no collectives to compare: which rank waits for which is not known",
            _ if self.unsure => "the collectives do not match in time: which rank waits for which is not known",
            _ => return None,
        };
        Some(because.to_owned())
    }

    /// Sentence to show if the job has no findings.
    pub fn nothing_found(&self) -> String {
        if let Some(because) = self.unknown_because() {
            return because;
        }
        let most = self.ranks.iter().filter(|m| m.judged > 0).map(|m| m.waited as f64 / m.judged as f64).fold(0.0, f64::max);
        if most < NOTICED {
            return "no rank makes the others wait".to_owned();
        }
        format!(
            "no rank makes the others wait more than the rest do: a rank waits for others at most {} of its time",
            format_share(most.min(1.0))
        )
    }

    /// Number of ranks, and of jobs if there are several: `12 ranks of 6 jobs`.
    pub fn size_text(&self) -> String {
        let ranks = format_count(self.ranks.len(), "rank");
        if self.jobs > 1 { format!("{ranks} of {}", format_count(self.jobs, "job")) } else { ranks }
    }

    /// Number of matched collectives, including those that the digests dropped to limit their size.
    pub fn matched_count(&self) -> u64 {
        self.matches.list.len() as u64 * self.matches.each.unsigned_abs()
    }

    /// Rank number of a digest.
    pub fn rank_number(&self, digest: u32) -> u32 {
        self.find_member(digest).map_or(digest, |m| m.rank)
    }

    /// Steps of all ranks by step number, with the time that others waited for each rank.
    pub fn steps_by_number(&self, digests: &[Digest]) -> BTreeMap<u32, Vec<Option<StepCell>>> {
        let mut out: BTreeMap<u32, Vec<Option<StepCell>>> = BTreeMap::new();
        for (row, member) in self.ranks.iter().enumerate() {
            let Some(digest) = digests.get(member.digest) else { continue };
            let steps = digest.steps();
            let mut cells: Vec<StepCell> = steps
                .iter()
                .map(|s| StepCell { start: s.start, length: s.length, compute: s.compute, exposed: s.exposed, idle: s.idle, late: 0 })
                .collect();
            for &(end, rank, ns) in self.waits.when.iter().chain(&self.waits.longest).filter(|w| w.1 as usize == member.digest) {
                let own = member.clock.own_time(end);
                debug_assert_eq!(rank as usize, member.digest);
                // A collective counts toward the step in which it ends; one that ends just when a step starts belongs
                // to the step before.
                let at = steps.partition_point(|s| s.start <= own.saturating_sub(1));
                if let Some(cell) = at.checked_sub(1).and_then(|i| cells.get_mut(i)) {
                    cell.late += ns;
                }
            }
            for (step, cell) in steps.iter().zip(cells) {
                out.entry(step.number).or_insert_with(|| vec![None; self.ranks.len()])[row] = Some(cell);
            }
        }
        out
    }
}
