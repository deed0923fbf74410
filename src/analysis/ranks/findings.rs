//! Findings about the ranks of a job.

use super::exposed_communication;
use super::job_result::{Job, Late, Straggler};
use super::nccl;
use super::rank_identity::format_ranges;
use crate::analysis::labels::cut_label;
use crate::analysis::readable::readable_function;
use crate::analysis::triage::finding::{LEAST_SHARE, OUTRANKS_HEALTHY};
use crate::analysis::triage::text::format_ns;
use crate::analysis::triage::{Finding, Place, PlaceKind, Sure, Verdict};
use crate::model::digest::Digest;
use crate::model::units::{format_grouped, format_share};
use std::collections::BTreeMap;

/// Verdicts that concern the ranks of a job as a whole.
pub const OF_JOBS: [Verdict; 5] =
    [Verdict::Straggler, Verdict::RankImbalance, Verdict::SlowLink, Verdict::PipelineBubble, Verdict::CommExposed];
/// Minimum share of all waiting that the stragglers must cause.
const MOSTLY: f64 = 0.7;
/// At most one in this many ranks can be a straggler; if more ranks are late, lateness is not the exception.
const ONE_OF: usize = 8;
/// Number of time slices over which waits are summed.
const SLICES: i64 = 40;
/// Minimum share of the slices in which each of several stragglers must be late.
const AGAIN: f64 = 0.25;
/// Cap on the wait counted per slice, as a multiple of the usual wait in a slice. It limits the effect of a single long
/// pause, after which a rank stays late for several steps.
const FEW: i64 = 4;
/// Fraction of the lateness that a rank's additional kernel time must reach for computing to be the cause. Less than 1,
/// because one delay can cause several waits, which add up to more than the delay itself.
const BY_KERNELS: f64 = 0.25;
const SAME_WORK: &str =
    "Give each rank the same work: equal batches and sequence lengths (bucketing, padding), balanced pipeline stages and experts.";
/// Maximum width of a kernel's name in a finding.
const KERNEL: usize = 48;
/// Fraction of the lateness that additional idle time in one function must reach for the function to be named. Less
/// than 1, because one delay can cause several waits, and work queued earlier may partly hide it.
const BY_LINE: f64 = 0.25;
/// Minimum mean lateness of a straggler, as a share of the window (5 % of a step in triage practice).
const LATE: f64 = 0.05;
/// Minimum ratio of a collective's duration in one group to that in other groups for the group's link to count as slow.
/// Our own choice: links of one kind differ by no more than a few percent.
const SLOWER: f64 = 1.5;
/// Maximum ratio of the sizes of two messages whose durations are compared.
const ALIKE: f64 = 1.25;
/// Minimum number of collectives to evaluate a link.
const FOR_LINK: usize = 20;
/// Minimum share of the time that ranks must spend, on average, doing nothing but waiting for data from other ranks.
/// Our own choice, for comparison: a pipeline of p stages and m batches idles for (p−1)/(m+p−1) of the time.
const BUBBLE: f64 = 0.10;

/// Distance between the ends of matched arrivals, as a fraction of the collective's duration, beyond which they cannot
/// belong to one collective.
const APART: f64 = 0.5;

pub fn add_findings(all: &[Digest], job: &mut Job) {
    let span = shared_time(all, job).max(1) as f64;
    let total = job.waits.total_wait();
    let mut findings = Vec::new();
    if !job.matches.list.is_empty() {
        judge_stragglers(all, job, span, total, &mut findings);
        if let Some((mut slow, ranks)) = slow_link(job, span) {
            // A slow link makes its ranks arrive late in all other collectives, so they are not stragglers.
            if job.stragglers.iter().all(|s| s.why != Late::Compute && ranks.contains(&s.rank)) {
                let late = findings.iter().map(|f| f.stake).fold(0.0, f64::max);
                slow.stake = slow.stake.max(late);
                findings.clear();
                job.stragglers.clear();
            }
            findings.push(slow);
        }
    }
    findings.extend(find_bubbles(all, job));
    // If matched arrivals do not end together, the match is wrong: discard it.
    let unsure = (!job.matches.list.is_empty()).then(|| mismatch_remark(job)).flatten();
    if unsure.is_some() {
        findings.retain(|f| f.id == Verdict::PipelineBubble);
        job.stragglers.clear();
        discard_waits(job);
    }
    for finding in &mut findings {
        finding.sure = finding.sure.max(match_confidence(job));
    }
    job.remarks.extend(unsure.clone());
    job.remarks.extend(single_delays(job, span).filter(|_| unsure.is_none()));
    job.findings = findings;
    // Causes before effects: exposed communication is evaluated after the waits between ranks, and only for the time
    // that these do not explain.
    if unsure.is_none() {
        let mut finding = exposed_communication::find_exposed(all, job);
        if let Some(finding) = &mut finding {
            finding.sure = finding.sure.max(match_confidence(job));
        }
        job.findings.extend(finding);
    }
}

/// Discards all results derived from the waits, because a wrong match makes them meaningless.
fn discard_waits(job: &mut Job) {
    job.unsure = true;
    job.waits.pairs.clear();
    job.waits.when.clear();
    job.waits.longest.clear();
    job.waits.outliers.clear();
    for member in &mut job.ranks {
        (member.late, member.waited, member.waited_longest) = (0, 0, 0);
    }
    job.links.iter_mut().for_each(|l| l.waited = 0);
}

/// Time during which the ranks worked together, ns: from the first evaluated collective to the last. A report also
/// covers the time before, such as library imports and NCCL setup, in which ranks do not wait for each other.
fn shared_time(all: &[Digest], job: &Job) -> i64 {
    let whole = all.iter().map(|d| d.end.saturating_sub(d.start)).max().unwrap_or(1);
    let when = &job.waits.when;
    match (when.first(), when.last()) {
        (Some(first), Some(last)) if last.0 > first.0 => {
            // Include the interval that precedes the first collective, because its wait is counted: n ends have only n
            // − 1 intervals between them.
            let ends = 1 + when.windows(2).filter(|w| w[0].0 != w[1].0).count();
            let between = last.0.saturating_sub(first.0) as f64;
            ((between * ends as f64 / (ends - 1) as f64) as i64).min(whole)
        }
        _ => whole,
    }
}

/// Confidence in the match of collectives: certain only if the reports number them, otherwise they are matched by
/// order.
fn match_confidence(job: &Job) -> Sure {
    if job.matches.groups.iter().all(|g| g.numbered) { Sure::Certain } else { Sure::Likely }
}

/// Remark on individual waits that are far longer than the others and are not held against a rank.
fn single_delays(job: &Job, span: f64) -> Option<String> {
    let outliers = &job.waits.outliers;
    let sum = outliers.iter().map(|w| w.2).fold(0, i64::saturating_add);
    let worst = outliers.iter().max_by_key(|w| w.2)?;
    (sum as f64 >= LEAST_SHARE * span).then(|| {
        let (most, rank) = (format_ns(worst.2 as f64), job.rank_number(worst.1));
        let why = "such as a checkpoint or a compilation, are not held against a rank";
        match outliers.len() {
            1 => format!("one wait of {most} for rank {rank} is far longer than all others: single delays, {why}"),
            n => format!(
                "{n} waits are far longer than all others ({} in all, the longest {most} for rank {rank}): single delays, {why}",
                format_ns(sum as f64)
            ),
        }
    })
}

/// Remark on matched collectives that do not end together.
fn mismatch_remark(job: &Job) -> Option<String> {
    let mut uncertain: Vec<i64> = job.ranks.iter().filter(|m| m.clock.by > 0).map(|m| m.clock.uncertainty).collect();
    uncertain.sort_unstable();
    let typical = *uncertain.get(uncertain.len() / 2)?;
    let mut longest: Vec<i64> = job.matches.list.iter().filter_map(|c| c.arrivals.iter().map(|a| a.duration).max()).collect();
    longest.sort_unstable();
    let duration = *longest.get(longest.len() / 2)?;
    (typical as f64 > APART * duration as f64 && typical > 100_000).then(|| {
        format!(
            "the ranks do not leave collectives together (their ends are {} apart, a collective takes {}): they are of different runs, or of several groups, which these reports do not tell apart; so nothing is said of who waits for whom",
            format_ns(typical as f64),
            format_ns(duration as f64)
        )
    })
}

fn judge_stragglers(all: &[Digest], job: &mut Job, span: f64, total: i64, findings: &mut Vec<Finding>) {
    let mut late: Vec<(i64, usize)> = job.ranks.iter().enumerate().map(|(row, m)| (m.late, row)).collect();
    late.sort_unstable_by_key(|l| std::cmp::Reverse(*l));
    let most = (job.ranks.len() / ONE_OF).max(1);
    let (mut sum, mut worst) = (0, Vec::new());
    for (ns, row) in late.into_iter().take(most) {
        if (sum as f64) >= MOSTLY * total as f64 {
            break;
        }
        sum += ns;
        worst.push((row, ns));
    }
    let share = (sum as f64 / span).min(1.0);
    // If there are several candidates, each must be late repeatedly, because accidents happen on any rank. A few long
    // waits among many are accidents, and waits hidden behind computing cost nothing.
    let recurring = |row: usize| job.waits.recurring.as_ref().filter(|r| r.rank as usize == job.ranks[row].digest);
    let steady: f64 =
        worst.iter().map(|&(row, late)| if recurring(row).is_some() { late as f64 } else { capped_wait(job, job.ranks[row].digest) }).sum();
    let times = worst.first().and_then(|&(row, _)| recurring(row)).map(|r| r.at.len());
    let open = worst.first().map_or(1.0, |&(row, _)| exposed_share(job, row)).min(share);
    let again = worst.len() < 2 || worst.iter().all(|&(row, _)| late_slice_share(job, job.ranks[row].digest) >= AGAIN);
    if !again || total <= 0 || share < LATE.max(LEAST_SHARE) || open < LATE || steady < LATE * span || (sum as f64) < MOSTLY * total as f64
    {
        findings.extend(find_imbalance(all, job, span, total));
        return;
    }
    let mut because = String::new();
    let steps = worst.first().map_or(0, |&(row, _)| all[job.ranks[row].digest].steps().len());
    for (row, late) in worst {
        let cause = late_cause(all, job, row, late);
        job.stragglers.push(Straggler { rank: job.ranks[row].rank, why: cause.why, late });
        if because.is_empty() {
            findings.push(straggler_finding(all, job, (row, late), &cause, share, total));
            because = cause.text;
        }
    }
    if let (Some(finding), Some(times), 1) = (findings.first_mut(), times, job.stragglers.len()) {
        let how_often = match (times, steps) {
            // The first or the last step may be cut.
            (times, steps) if times <= steps && times + 1 >= steps => "once in every step".to_owned(),
            (times, steps) if times < steps => format!("in {times} of {steps} steps, at even distances"),
            _ => format!("{times} times, at even distances, and hardly in between"),
        };
        finding.headline = format!("{}; it is late {how_often}", finding.headline);
        finding.sure = finding.sure.max(Sure::Likely);
    }
    if let Some(finding) = findings.first_mut().filter(|_| job.stragglers.len() > 1) {
        let list: Vec<u32> = job.stragglers.iter().map(|s| s.rank).collect();
        finding.headline = format!(
            "ranks {} arrive last at the collectives, and the others wait for them for {}; rank {} the most: {because}",
            format_ranges(&list),
            format_waited(share, finding.stake),
            list[0]
        );
    }
}

/// Average share of their time that the other ranks spend in exposed collectives, not counting their few longest waits;
/// 1 if exposed time is unknown.
fn exposed_share(job: &Job, row: usize) -> f64 {
    let others = job.ranks.iter().enumerate().filter(|(r, m)| *r != row && m.judged > 0);
    let open: Vec<f64> = others.map(|(_, m)| m.exposed.saturating_sub(m.waited_longest).max(0) as f64 / m.judged as f64).collect();
    let known = job.ranks.iter().any(|m| m.exposed > 0);
    if known { open.iter().sum::<f64>() / open.len().max(1) as f64 } else { 1.0 }
}

/// Formats the share of time for which other ranks wait for a rank (`share`), and the part of it in which nothing else
/// runs (`alone`).
fn format_waited(share: f64, alone: f64) -> String {
    let of = format!("{} of the time", format_share(share));
    if share - alone > 0.01 { format!("{of} (in {} nothing else runs)", format_share(alone)) } else { of }
}

/// Waiting time by time slice, ns: caused by any rank, and caused by this rank.
fn waits_by_slice(job: &Job, digest: usize) -> (Vec<i64>, Vec<i64>) {
    let when = &job.waits.when;
    let (mut all, mut own) = (vec![0i64; SLICES as usize], vec![0i64; SLICES as usize]);
    let (Some(first), Some(last)) = (when.first(), when.last()) else { return (all, own) };
    let length = (last.0.saturating_sub(first.0) / SLICES).max(1);
    let slice = |time: i64| (time.saturating_sub(first.0) / length).clamp(0, SLICES - 1) as usize;
    for &(time, rank, ns) in when {
        all[slice(time)] += ns;
        if rank as usize == digest {
            own[slice(time)] += ns;
        }
    }
    (all, own)
}

/// Time that others waited for a rank, ns, with each slice capped at `FEW` times the usual wait.
fn capped_wait(job: &Job, digest: usize) -> f64 {
    let (all, own) = waits_by_slice(job, digest);
    // Use only slices in which some rank waited, because in a short capture, many slices have no collectives.
    let mut own: Vec<i64> = own.into_iter().zip(all).filter(|(_, all)| *all > 0).map(|(own, _)| own).collect();
    own.sort_unstable();
    // The usual wait is reached in a share of `AGAIN` of the slices.
    let usual = own.get(((1.0 - AGAIN) * own.len() as f64) as usize).copied().unwrap_or(0);
    own.iter().map(|&ns| ns.min(usual.saturating_mul(FEW)) as f64).sum()
}

/// Share of the time slices in which others wait for a rank.
fn late_slice_share(job: &Job, digest: usize) -> f64 {
    let (all, own) = waits_by_slice(job, digest);
    let mean = own.iter().sum::<i64>() as f64 / SLICES as f64;
    let waited = all.iter().filter(|&&a| a > 0).count();
    own.iter().filter(|&&o| o as f64 >= mean * 0.25 && o > 0).count() as f64 / waited.max(1) as f64
}

/// The reason why a rank is late.
struct LateCause {
    why: Late,
    /// Additional kernel time compared with its peers, ns.
    more: i64,
    text: String,
    /// True if the rank launches a kernel more often than its peers: its work differs.
    does_more: bool,
}

/// Returns the reason why a rank is late.
fn late_cause(all: &[Digest], job: &Job, row: usize, late: i64) -> LateCause {
    let member = &job.ranks[row];
    let own = &all[member.digest];
    // Peers are the ranks of the largest common group; other ranks, such as other pipeline stages or experts, do
    // different work.
    let peers: Vec<usize> = {
        let groups = job.matches.groups.iter().filter(|g| g.ranks.contains(&u32::try_from(member.digest).unwrap_or(u32::MAX)));
        let widest = groups.max_by_key(|g| g.ranks.len());
        let of_group = widest.map(|g| g.ranks.iter().map(|&r| r as usize).collect::<Vec<_>>());
        of_group.unwrap_or_else(|| (0..all.len()).collect())
    };
    // A capture with more steps has more kernel time; if the captures differ, scale the time to the matched
    // collectives.
    let counts: Vec<usize> = all.iter().map(|d| d.collectives().count()).collect();
    let alike = peers.iter().all(|&i| counts[i] == counts[member.digest]);
    let matched = job.matches.list.iter().filter(|c| c.arrivals.iter().any(|a| a.rank as usize == member.digest)).count();
    let kernels = |i: usize| match counts[i] {
        n if !alike && n > 0 => (all[i].kernel_time as f64 * matched as f64 / n as f64) as i64,
        _ => all[i].kernel_time,
    };
    let mut others: Vec<i64> = peers.iter().filter(|&&i| i != member.digest).map(|&i| kernels(i)).collect();
    others.sort_unstable();
    let more = kernels(member.digest) - others.get(others.len() / 2).copied().unwrap_or_else(|| kernels(member.digest));
    if more as f64 >= BY_KERNELS * late as f64 {
        let of = if alike { "in the whole report" } else { "in the steps that all reports hold" };
        let text = format!("its GPU computes {} longer than the others, {of}", format_ns(more as f64));
        let work = more_launches(all, member.digest, &peers, more).filter(|_| alike);
        let does_more = work.is_some();
        let text = if let Some(work) = work { format!("{text}: it launches {work}") } else { text };
        return LateCause { why: Late::Compute, more, text, does_more };
    }
    // Without kernels other than the collectives, or without the host's calls, both may be late.
    if all[member.digest].kernel_time == 0 || own.findings.iter().any(|f| f.id == Verdict::ShortCapture.id()) {
        let text = "what it does before was not recorded".to_owned();
        return LateCause { why: Late::Unknown, more, text, does_more: false };
    }
    let not = [Verdict::GpuBound.id(), Verdict::CommBound.id(), Verdict::CommExposed.id()];
    let text = match own.findings.iter().find(|f| !not.contains(&f.id.as_str())) {
        Some(f) => format!("its host launches late ({})", f.id),
        None => "its host launches late".to_owned(),
    };
    // Captures with different numbers of steps spend different amounts of time at each line.
    let text = match late_line(all, member.digest, &peers, late).filter(|_| alike) {
        Some((line, more)) => format!("{text}: its GPU is idle {} longer than the others' while it is in {line}", format_ns(more as f64)),
        None => text,
    };
    LateCause { why: Late::Host, more, text, does_more: false }
}

/// Names the kernel that explains most of the additional kernel time, if this rank launches it more often than a typical
/// peer.
fn more_launches(all: &[Digest], own: usize, peers: &[usize], more: i64) -> Option<String> {
    let usual = |name: &str| {
        let of = |i: &usize| all[*i].kernels.iter().find(|k| k.name == name).map_or((0, 0), |k| (k.count, k.total));
        let mut others: Vec<(u64, i64)> = peers.iter().filter(|&&i| i != own).map(of).collect();
        others.sort_unstable();
        others.get(others.len() / 2).copied().unwrap_or_default()
    };
    let computing = all[own].kernels.iter().filter(|k| !k.collective);
    let (kernel, (count, ns)) = computing.map(|k| (k, usual(&k.name))).max_by_key(|(k, usual)| k.total - usual.1)?;
    let explains = (kernel.total - ns) as f64 >= BY_KERNELS * more as f64;
    (explains && kernel.count > count).then(|| {
        format!(
            "{} {} times, the {} {} ({})",
            cut_label(&readable_function(&kernel.name), KERNEL),
            format_grouped(kernel.count),
            if peers.iter().filter(|&&i| i != own).count() == 1 { "other" } else { "others" },
            if count == 1 { "once".to_owned() } else { format_grouped(count) },
            format_ns((kernel.total - ns) as f64)
        )
    })
}

/// Strips the line number from a function label: `collate (data.py`.
fn function_name(label: &str) -> &str {
    let is_line = |text: &str| text.strip_suffix(')').is_some_and(|n| n.bytes().all(|b| b.is_ascii_digit()));
    label.rsplit_once(':').filter(|l| is_line(l.1)).map_or(label, |l| l.0)
}

/// Returns the function in which a rank's GPU is idle longer than a typical peer's, and the excess in ns, if that
/// explains the rank's lateness. `None` if no peer has functions, because the usual time is then unknown.
fn late_line(all: &[Digest], own: usize, peers: &[usize], late: i64) -> Option<(String, i64)> {
    let others: Vec<&Digest> = peers.iter().filter(|&&i| i != own).map(|&i| &all[i]).filter(|d| !d.host_lines.is_empty()).collect();
    if others.is_empty() {
        return None;
    }
    let usual = |label: &str| {
        let of = |d: &Digest| d.host_lines.iter().find(|l| function_name(&l.label) == function_name(label)).map_or(0, |l| l.ns);
        let mut times: Vec<i64> = others.iter().map(|d| of(d)).collect();
        times.sort_unstable();
        times[times.len() / 2]
    };
    let (line, more) = all[own].host_lines.iter().map(|l| (l, l.ns.saturating_sub(usual(&l.label)))).max_by_key(|l| l.1)?;
    (more as f64 >= BY_LINE * late as f64).then(|| (line.label.clone(), more))
}

fn straggler_finding(all: &[Digest], job: &Job, (row, late): (usize, i64), cause: &LateCause, share: f64, total: i64) -> Finding {
    let LateCause { why, more, text: because, does_more } = cause;
    let more = *more;
    let rank = job.ranks[row].rank;
    let own = &all[job.ranks[row].digest];
    // Time hidden behind computing is not lost, unless the rank computes longer: then all ranks' steps are longer by that.
    let exposed = exposed_share(job, row);
    let judged = job.ranks[row].judged;
    let longer = if matches!(why, Late::Compute) && judged > 0 { more as f64 / judged as f64 } else { 0.0 };
    let stake = share.min(exposed.max(longer));
    let finding = Finding::new(
        Verdict::Straggler,
        stake,
        format!("rank {rank} arrives last at the collectives, and the others wait for it for {}: {because}", format_waited(share, share.min(exposed))),
    )
    .with_gain_basis("what a mean rank waits in collectives for this rank, also by way of others, and no more than the exposed part of its collectives or what this rank computes longer; those at the start of the capture are left out")
    .with_number("collectives of the others that are not overlapped with compute, without their longest waits", (exposed < 1.0).then_some(exposed * 100.0), "%")
    .with_number("waiting for this rank", late as f64, "ns")
    .with_number("waiting for any rank", total as f64, "ns")
    .with_number("collectives that were matched", job.matches.list.len() as f64 * job.matches.each as f64, "")
    .with_judged_number("of the waiting is for this rank", late as f64 / total.max(1) as f64 * 100.0, "%", ("≥", MOSTLY * 100.0))
    .with_number("its kernels take longer than the others' by", (more > 0).then_some(more as f64), "ns")
    .with_places([Place {
        kind: PlaceKind::Window,
        name: format!("rank {rank}"),
        start: own.window_start,
        end: own.window_end,
        ns: Some(late),
        rank: Some(rank),
    }]);
    // A report of several ranks has no findings on this one alone.
    let shared = all.iter().filter(|d| d.file == own.file).count() > 1;
    match why {
        Late::Compute if *does_more => finding.with_actions(&[SAME_WORK]),
        Late::Compute => finding.with_actions(&[
            SAME_WORK,
            "If the work is the same, compare this GPU with the others: clocks, power limit, temperature, other processes (nvidia-smi -q -d PERFORMANCE,CLOCK).",
        ]),
        Late::Unknown => finding.with_actions(&[
            "Record kernels and the host's calls of all ranks: whether this rank's GPU computes longer or its host launches late cannot be told from collectives alone.",
        ]),
        Late::Host => finding.with_actions(&[
            if shared {
                "Look at this rank's threads in the timeline: what its host does before it comes late."
            } else {
                "Open this rank's report alone: its first finding says what its host does meanwhile."
            },
            "Look for what only this rank does (logging, checkpoints, evaluation on rank 0), and for a slower host: CPU binding, memory of another NUMA node, other processes.",
        ]),
    }
}

/// Detects waiting that is not caused by a single rank.
fn find_imbalance(all: &[Digest], job: &Job, span: f64, total: i64) -> Option<Finding> {
    let worst = job.ranks.iter().max_by_key(|m| m.late)?;
    // Most waiting is for one rank, but that rank was not found to be a straggler: the cause is a single delay, or
    // computing hides the waiting.
    if worst.late as f64 >= MOSTLY * total as f64 {
        return None;
    }
    let exposed = (0..job.ranks.len()).map(|row| exposed_share(job, row)).sum::<f64>() / job.ranks.len().max(1) as f64;
    let share = (total as f64 / span).min(exposed).min(1.0);
    if share < OUTRANKS_HEALTHY {
        return None;
    }
    let mut computes: Vec<i64> = all.iter().map(|d| d.kernel_time).collect();
    computes.sort_unstable();
    let (least, most) = (*computes.first()?, *computes.last()?);
    Some(
        Finding::new(
            Verdict::RankImbalance,
            share,
            format!(
                "the ranks wait for each other at collectives for {} of the time, and not for one of them: most of all for rank {}, {} of the waiting",
                format_share(share),
                worst.rank,
                format_share(worst.late as f64 / total.max(1) as f64)
            ),
        )
        .with_gain_basis("what a mean rank waits in collectives for others; those at the start of the capture are left out")
        .with_number("waiting for any rank", total as f64, "ns")
        .with_number("waiting for the worst rank", worst.late as f64, "ns")
        .with_number("kernels of the rank with the least", least as f64, "ns")
        .with_number("kernels of the rank with the most", most as f64, "ns")
        .with_actions(&[
            "Give the ranks the same work in each step: group samples of like length, pad or pack sequences, limit what an expert may take.",
            "Take what comes now and then off the steps of single ranks: logging, checkpoints, garbage collection (gc.disable and gc.collect every N steps on all ranks).",
            "Synchronise less often: larger buckets, gradient accumulation, collectives on a stream of their own behind computing.",
        ]),
    )
}

/// Durations of one kind of collective in one group.
struct Timed {
    group: u32,
    kind: &'static str,
    size: usize,
    /// Median duration, ns.
    time: i64,
    /// Median message size, bytes.
    bytes: u64,
    count: usize,
}

/// Finds groups whose collectives take longer than the same collectives in other groups.
fn slow_link(job: &Job, span: f64) -> Option<(Finding, Vec<u32>)> {
    // The last rank to arrive does not wait, so its duration is that of the transfer.
    let mut times: BTreeMap<_, (Vec<i64>, Vec<u64>)> = BTreeMap::new();
    for c in &job.matches.list {
        let last = c.last_arrival()?;
        let of = times.entry((c.group, c.kind)).or_default();
        of.0.push(last.duration);
        of.1.push(c.bytes);
    }
    let mut groups: Vec<Timed> = Vec::new();
    for ((group, kind), (mut times, mut bytes)) in times {
        times.sort_unstable();
        bytes.sort_unstable();
        let size = job.matches.groups.get(group as usize)?.size;
        if times.len() >= FOR_LINK {
            groups.push(Timed { group, kind, size, time: times[times.len() / 2], bytes: bytes[bytes.len() / 2], count: times.len() });
        }
    }
    let alike = |a: u64, b: u64| a == b || (a > 0 && b > 0 && a.max(b) as f64 <= ALIKE * a.min(b) as f64);
    // Median duration of the same collective in other groups. At least two other groups are needed: with one, we could
    // not tell which of the two is normal.
    let usual = |of: &Timed| {
        let same = |g: &&Timed| g.group != of.group && (g.kind, g.size) == (of.kind, of.size) && alike(g.bytes, of.bytes);
        let mut others: Vec<i64> = groups.iter().filter(same).map(|g| g.time).collect();
        others.sort_unstable();
        others.get(others.len() / 2).copied().filter(|_| others.len() >= 2)
    };
    let lost = |g: &Timed, usual: i64| (g.time - usual) as f64 * g.count as f64 * job.matches.each as f64;
    let all = groups.iter().filter_map(|g| Some((g, usual(g)?)));
    let (worst, usual) = all.max_by(|a, b| lost(a.0, a.1).total_cmp(&lost(b.0, b.1)))?;
    let (slower, share) = (worst.time as f64 / usual.max(1) as f64, (lost(worst, usual) / span).min(1.0));
    if slower < SLOWER || share < LEAST_SHARE {
        return None;
    }
    let ranks: Vec<u32> = job.matches.groups.get(worst.group as usize)?.ranks.iter().map(|&r| job.rank_number(r)).collect();
    let finding = Finding::new(
            Verdict::SlowLink,
            share,
            format!(
                "{} between ranks {} takes {}, {slower:.1} times as long as between other ranks: {} of the time",
                worst.kind,
                format_ranges(&ranks),
                format_ns(worst.time as f64),
                format_share(share)
            ),
        )
        .with_gain_basis("the time that these collectives take longer than the same ones of the other groups, without waiting for ranks that are late")
        .with_number("median between these ranks, after all arrived", worst.time as f64, "ns")
        .with_number("median between other ranks", usual as f64, "ns")
        .with_judged_number("times as long", slower, "", ("≥", SLOWER))
        .with_number("message", (worst.bytes > 0).then_some(worst.bytes as f64), "byte")
        .with_actions(&[
            "Look at how these GPUs are connected (nvidia-smi topo -m, NCCL_DEBUG=INFO): another switch, PCIe in place of NVLink, a link that fell back (nvidia-smi nvlink -e).",
            "Between machines: the adapter's rate and errors (ibstat, ethtool -S), NCCL_IB_HCA, one adapter for each GPU.",
        ]);
    Some((finding, ranks))
}

/// Detects pipeline bubbles: ranks that do nothing but wait for data from other ranks.
fn find_bubbles(all: &[Digest], job: &Job) -> Option<Finding> {
    let mut shares: Vec<(f64, u32)> = Vec::new();
    for member in &job.ranks {
        let digest = &all[member.digest];
        // NCCL uses the same kernel for sends, receives and all-to-all; only data from the framework tells them apart.
        let point: Vec<bool> = digest
            .kinds
            .iter()
            .map(|k| (k.numbered || k.size.is_some() || k.peer.is_some()) && nccl::point_to_point(nccl::collective_kind(&k.name)))
            .collect();
        let (mut to_one, mut any) = (0i64, 0i64);
        for c in digest.collectives() {
            any = any.saturating_add(c.duration);
            if point[c.kind] {
                to_one = to_one.saturating_add(c.duration);
            }
        }
        if to_one > 0 && member.judged > 0 {
            // Exposed time in sends and receives, estimated from their share of the collective time.
            let exposed = member.exposed as f64 * to_one as f64 / any.max(1) as f64;
            shares.push((exposed / member.judged as f64, member.rank));
        }
    }
    if shares.is_empty() {
        return None;
    }
    let mean = shares.iter().map(|s| s.0).sum::<f64>() / shares.len() as f64;
    let worst = shares.iter().copied().max_by(|a, b| a.0.total_cmp(&b.0))?;
    (mean >= BUBBLE).then(|| {
        Finding::new(
            Verdict::PipelineBubble,
            mean,
            format!(
                "ranks do nothing but send and receive for {} of the time on average, rank {} for {}: stages of a pipeline wait for each other",
                format_share(mean),
                worst.1,
                format_share(worst.0)
            ),
        )
        .with_gain_basis("the time in which only sends and receives ran, mean of the ranks that have them")
        .with_number("mean share", mean * 100.0, "%")
        .with_number("the largest share", worst.0 * 100.0, "%")
        .with_actions(&[
            "More and smaller microbatches: with m of them and p stages, (p−1)/(m+p−1) of the time is bubble.",
            "An interleaved or zero-bubble schedule; stages of equal time (embedding and head count, too).",
        ])
    })
}
