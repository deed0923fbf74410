//! Ranks of one job: who arrives late at the collectives, so that the others wait.

use super::finding::{Finding, LEAST, Place, PlaceKind, Sure};
use super::ops::{Class, Ops};
use super::outcome::Triage;
use super::part::Part;
use super::text::{ns, pct};
use super::verdict::Verdict;
use crate::model::Profile;

/// Why a rank is late.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Late {
    /// Its GPU computes more, or slower.
    Compute,
    /// Its host launches late.
    Host,
}

impl Late {
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Compute => "compute",
            Self::Host => "host",
        }
    }
}

/// One rank. Times in ns.
#[derive(Clone, Debug, PartialEq)]
pub struct RankTime {
    pub rank: u32,
    pub device: Option<u32>,
    /// The median step.
    pub step: Option<i64>,
    /// Time in which kernels other than collectives ran.
    pub compute: i64,
    /// Time in which collectives ran, and in which nothing else did.
    pub comm: i64,
    pub exposed: i64,
    /// What the other ranks waited for it in collectives.
    pub late: i64,
}

/// Ranks whose collectives belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Ranks {
    pub list: Vec<RankTime>,
    pub straggler: Option<(u32, Late)>,
    pub finding: Option<Finding>,
}

/// Share of all waiting that must be for one rank.
const MOSTLY: f64 = 0.7;
/// Share of the collectives that are left out at the beginning: captures start at different times, and the first ones wait for that.
const START: f64 = 0.1;
/// Share of the waits that are left out, the longest: accidents.
const LONGEST: f64 = 0.02;
/// Part of the lateness that a rank's own kernels must explain for it to be computing. What a wait takes is spread over all that follows it,
/// so that the sum of the waits is more than what the kernels take longer.
const BY_KERNELS: f64 = 0.25;
/// Mean lateness of a straggler, as a share of the window (5 % of a step in triage practice).
const LATE: f64 = 0.05;

/// Durations of a rank's collectives, in the order of their calls.
fn collectives(profile: &Profile) -> Vec<i64> {
    let ops = Ops::of(profile);
    let mut out: Vec<(i64, i64)> =
        ops.iter().filter(|o| o.class == Class::Collective).map(|o| (ops.call(&o).map_or(o.start, |c| c.start), o.end - o.start)).collect();
    out.sort_by_key(|c| c.0);
    out.into_iter().map(|c| c.1).collect()
}

/// Judges ranks together; `None` where they have no collectives, or not the same number of them.
#[must_use]
pub fn ranks(judged: &[(&Profile, &Triage)]) -> Option<Ranks> {
    let all: Vec<Vec<i64>> = judged.iter().map(|(p, _)| collectives(p)).collect();
    let n = all.first()?.len();
    if judged.len() < 2 || n == 0 || all.iter().any(|c| c.len() != n) {
        return None;
    }
    // A collective ends everywhere at about the same time: the rank that came last has the shortest.
    // The first ones wait for captures that start at different times.
    let start = (n as f64 * START).ceil() as usize;
    let mut waits: Vec<(i64, usize)> = (start.min(n - 1)..n)
        .filter_map(|i| {
            let last = (0..all.len()).min_by_key(|&r| all[r][i])?;
            let waited: i64 = all.iter().map(|c| c[i] - all[last][i]).sum();
            Some((waited / i64::try_from(all.len() - 1).unwrap_or(1), last))
        })
        .collect();
    waits.sort_unstable_by_key(|w| std::cmp::Reverse(w.0));
    waits.drain(..((n as f64 * LONGEST).ceil() as usize).max(1).min(waits.len()));
    let mut late = vec![0_i64; all.len()];
    for (waited, last) in &waits {
        late[*last] += waited;
    }
    let number = |i: usize| judged[i].0.rank.rank.unwrap_or(u32::try_from(i).unwrap_or(u32::MAX));
    let part = |t: &Triage, part: Part| t.devices.iter().map(|d| d.parts[part as usize].1).sum::<i64>();
    let list: Vec<RankTime> = judged
        .iter()
        .enumerate()
        .map(|(i, (_, t))| RankTime {
            rank: number(i),
            device: t.devices.first().and_then(|d| d.number),
            step: t.step_stats().map(|s| s.median),
            compute: part(t, Part::Kernels),
            comm: t.devices.iter().map(|d| d.collectives).sum(),
            exposed: part(t, Part::Collectives),
            late: late[i],
        })
        .collect();
    let (worst, lateness) = (0..late.len()).map(|i| (i, late[i])).max_by_key(|l| l.1)?;
    let total: i64 = late.iter().sum();
    // All of the report, for collectives of all of it were matched.
    let span = judged.iter().map(|(_, t)| t.span.1 - t.span.0).max().unwrap_or(1).max(1) as f64;
    let share = lateness as f64 / span;
    if share < LATE.max(LEAST) || (lateness as f64) < MOSTLY * total as f64 {
        return Some(Ranks { list, straggler: None, finding: None });
    }
    // Time in kernels of the whole report, in which the collectives lie that were matched.
    let computes: Vec<i64> = judged.iter().map(|(p, _)| compute(p)).collect();
    let mut others: Vec<i64> = (0..computes.len()).filter(|&i| i != worst).map(|i| computes[i]).collect();
    others.sort_unstable();
    let more = computes[worst] - others[others.len() / 2];
    let why = if more as f64 >= BY_KERNELS * lateness as f64 { Late::Compute } else { Late::Host };
    let (rank, own) = (number(worst), judged[worst].1);
    let because = match why {
        Late::Compute => format!("its GPU computes {} longer than the others", ns(more as f64)),
        Late::Host => {
            match own.findings.iter().find(|f| f.id != Verdict::GpuBound && f.id != Verdict::CommBound && f.id != Verdict::CommExposed) {
                Some(f) => format!("its host launches late ({})", f.id),
                None => "its host launches late".to_owned(),
            }
        }
    };
    let mut finding = Finding::new(
        Verdict::Straggler,
        share,
        format!("rank {rank} arrives last at the collectives, and the others wait for it for {} of the time: {because}", pct(share)),
    )
    .bound("what a mean rank waits in collectives that this rank enters last; those at the start of the capture are left out")
    .because("waiting for this rank", lateness as f64, "ns")
    .because("waiting for any rank", total as f64, "ns")
    .because("collectives that were matched", n as f64, "")
    .judged("of the waiting is for this rank", lateness as f64 / total.max(1) as f64 * 100.0, "%", ("≥", MOSTLY * 100.0))
    .because("its kernels take longer than the others' by", more as f64, "ns")
    .at([Place {
        kind: PlaceKind::Window,
        name: format!("rank {rank}"),
        start: own.window.0,
        end: own.window.1,
        ns: Some(lateness),
        rank: Some(rank),
    }]);
    finding = match why {
        Late::Compute => finding.change(&[
            "Give each rank the same work: equal batches and sequence lengths (bucketing, padding), balanced pipeline stages and experts.",
            "If the work is the same, compare this GPU with the others: clocks, power limit, temperature, other processes (nvidia-smi -q -d PERFORMANCE,CLOCK).",
        ]),
        Late::Host => finding.change(&[
            "Open this rank's report alone: its first finding says what its host does meanwhile.",
            "Look for what only this rank does (logging, checkpoints, evaluation on rank 0), and for a slower host: CPU binding, memory of another NUMA node, other processes.",
        ]),
    };
    // Collectives are matched by their order.
    finding.sure = Sure::Likely;
    Some(Ranks { list, straggler: Some((rank, why)), finding: Some(finding) })
}

/// Summed durations of a report's kernels, collectives apart, ns.
fn compute(profile: &Profile) -> i64 {
    Ops::of(profile).iter().filter(|o| o.class == Class::Kernel).fold(0, |sum: i64, o| sum.saturating_add(o.end - o.start))
}
