//! Assembles a job: its ranks on a common clock, its collectives, the waits between ranks, and the findings.

use super::clocks::align_clocks;
use super::findings;
use super::job_result::{Job, Link, Member};
use super::matching::{Matches, match_collectives};
use super::nccl;
use super::rank_identity::{identify_ranks, split_jobs};
use super::waits::{Waits, attribute_waits};
use crate::analysis::triage::{Sure, TimeCategory};
use crate::model::digest::Digest;
use std::collections::BTreeMap;

fn median<T: Copy + Ord>(mut values: Vec<T>) -> Option<T> {
    if values.is_empty() {
        return None;
    }
    values.sort_unstable();
    // The lower one of two in the middle, as for the steps of one report.
    Some(values[(values.len() - 1) / 2])
}

/// Analyzes ranks together. If there is only one rank, or there are no common collectives, the job has no findings.
pub fn build_job(all: &[Digest]) -> Job {
    let (numbers, told, mut remarks) = identify_ranks(all);
    let (jobs, job_of) = split_jobs(all);
    let mut matches = match_collectives(all, &job_of);
    remarks.append(&mut matches.remarks);
    remarks.extend(matches.unmatched_messages(all));
    let epochs: Vec<Option<i64>> = all.iter().map(|d| d.epoch).collect();
    let clocks = align_clocks(all.len(), &matches.list, &epochs);
    let waits = attribute_waits(&matches, &clocks, all.len());
    let part = |d: &Digest, part: TimeCategory| d.parts.get(part as usize).copied().unwrap_or(0);
    let mut ranks: Vec<Member> = all
        .iter()
        .enumerate()
        .map(|(i, d)| Member {
            digest: i,
            rank: numbers[i],
            step: median(d.steps().iter().map(|s| s.length).collect()),
            compute: part(d, TimeCategory::Kernels),
            comm: d.collective_time,
            exposed: part(d, TimeCategory::Collectives),
            idle: d.parts.iter().skip(TimeCategory::Synchronising as usize).sum(),
            judged: d.judged,
            late: waits.late[i],
            waited: waits.waited[i],
            waited_longest: waits.in_longest[i],
            clock: clocks[i],
        })
        .collect();
    ranks.sort_by_key(|m| (m.rank, m.digest));
    let links = link_stats(all, &matches, &waits);
    let mut out = Job { ranks, told, jobs, matches, waits, links, stragglers: Vec::new(), findings: Vec::new(), remarks, unsure: false };
    if all.len() > 1 && out.matches.list.is_empty() {
        let some = all.iter().any(|d| !d.kinds.is_empty());
        out.remarks.push(
            if some {
                "no collective could be matched between the ranks: their reports have different numbers of them, or of different kinds"
            } else {
                "there are no collectives in these reports: the ranks do not wait for each other there"
            }
            .to_owned(),
        );
    }
    // If the ranks belong to several jobs, comparing all of them would be meaningless.
    if jobs == 1 {
        findings::add_findings(all, &mut out);
    }
    note_unrecorded(all, &mut out);
    out
}

/// If the GPU work of some ranks was not recorded, adds remarks and lowers all findings to possible.
fn note_unrecorded(all: &[Digest], job: &mut Job) {
    let said = job.ranks.iter().filter_map(|m| Some(format!("rank {}: {}", m.rank, all.get(m.digest)?.unrecorded.as_deref()?)));
    let said: Vec<String> = said.collect();
    if said.is_empty() {
        return;
    }
    job.findings.iter_mut().for_each(|f| f.sure = Sure::Possible);
    job.remarks.splice(0..0, said);
}

/// Statistics of collectives by kind and number of ranks.
fn link_stats(all: &[Digest], matches: &Matches, waits: &Waits) -> Vec<Link> {
    /// Collectives of about the same size: time, size and bus bandwidth of each.
    #[derive(Default)]
    struct OfSize {
        times: Vec<i64>,
        bytes: Vec<u64>,
        bus: Vec<f64>,
    }
    #[derive(Default)]
    struct Sum {
        /// By the binary logarithm of the message size.
        sizes: BTreeMap<u32, OfSize>,
        count: usize,
        waited: i64,
        algorithm: String,
    }
    let mut by: BTreeMap<(&'static str, usize), Sum> = BTreeMap::new();
    for (c, judged) in matches.list.iter().zip(&waits.judged) {
        let (Some(last), Some(group)) = (c.last_arrival(), matches.groups.get(c.group as usize)) else { continue };
        let sum = by.entry((c.kind, group.size)).or_default();
        sum.count += 1;
        let sized = sum.sizes.entry(c.bytes.checked_ilog2().unwrap_or(0)).or_default();
        sized.times.push(last.duration);
        let waited: i64 = c.arrivals.iter().map(|a| a.duration - last.duration).sum();
        if *judged {
            sum.waited += waited / i64::try_from(c.arrivals.len().saturating_sub(1).max(1)).unwrap_or(1) * matches.each;
        }
        if sum.algorithm.is_empty() {
            sum.algorithm.clone_from(&group.algorithm);
        }
        if c.bytes > 0 {
            sized.bytes.push(c.bytes);
            let factor = nccl::bus_factor(c.kind, group.size).filter(|_| last.duration > 0);
            sized.bus.extend(factor.map(|f| f * c.bytes as f64 / last.duration as f64 * 1e9));
        }
    }
    let mut hosts: Vec<Option<&str>> = all.iter().map(|d| d.host.as_deref()).collect();
    hosts.sort_unstable();
    hosts.dedup();
    let here = hosts.len() == 1 && hosts[0].is_some();
    let peak = all.first().and_then(|d| nccl::link_bandwidth(d.device_name.as_deref()?)).filter(|_| here);
    let mut out: Vec<Link> = by
        .into_iter()
        .map(|((kind, size), sum)| {
            // Medians over all sizes would be of different collectives: take the size that takes the most time.
            let uniform = sum.sizes.len() < 2;
            let mut main = sum.sizes.into_values().max_by_key(|s| s.times.iter().sum::<i64>()).unwrap_or_default();
            main.bus.sort_by(f64::total_cmp);
            Link {
                kind,
                size,
                count: sum.count as u64 * matches.each.unsigned_abs(),
                uniform,
                bytes: median(main.bytes),
                time: median(main.times).unwrap_or(0),
                bus: main.bus.get(main.bus.len() / 2).copied(),
                peak,
                algorithm: sum.algorithm,
                waited: sum.waited,
            }
        })
        .collect();
    out.sort_by_key(|l| std::cmp::Reverse((l.time.saturating_mul(i64::try_from(l.count).unwrap_or(i64::MAX)), l.kind)));
    out
}
