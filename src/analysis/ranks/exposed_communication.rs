//! Exposed collectives on all ranks: the time spent waiting for other ranks, the time spent in transfers, and the step
//! in which they matter most.

use super::job_result::{Job, Member};
use super::nccl;
use crate::analysis::metric::human_number;
use crate::analysis::triage::finding::LEAST_SHARE;
use crate::analysis::triage::{Finding, Place, PlaceKind, Verdict};
use crate::model::digest::Digest;
use crate::model::units::format_share;

/// A rank's exposed time in collectives, as shares of its analyzed time.
struct Open {
    rank: u32,
    /// Exposed time, excluding sends and receives.
    all: f64,
    /// Exposed time in sends and receives.
    messages: f64,
    /// Exposed time other than waiting for other ranks.
    transfer: f64,
}

/// Share of a rank's collective time that is spent in sends and receives. These count as pipeline bubbles rather than
/// as exposed collectives.
fn to_one(digest: &Digest) -> f64 {
    let point: Vec<bool> = digest.kinds.iter().map(|k| nccl::point_to_point(nccl::collective_kind(&k.name))).collect();
    let (mut one, mut any) = (0i64, 0i64);
    for c in digest.collectives() {
        any = any.saturating_add(c.duration);
        if point.get(c.kind) == Some(&true) {
            one = one.saturating_add(c.duration);
        }
    }
    one as f64 / any.max(1) as f64
}

fn exposed_shares(member: &Member, digest: &Digest) -> Option<Open> {
    (member.judged > 0).then(|| {
        let messages = member.exposed as f64 * to_one(digest);
        let exposed = member.exposed as f64 - messages;
        let judged = member.judged as f64;
        let waited = member.waited.saturating_add(member.waited_longest) as f64;
        Open { rank: member.rank, all: exposed / judged, messages: messages / judged, transfer: (exposed - waited).max(0.0) / judged }
    })
}

/// Returns the step with the largest share of exposed collectives: its number, that share, the median share over all
/// steps, and the place of the step on each rank.
fn worst_step(job: &Job, all: &[Digest]) -> Option<(u32, f64, f64, Vec<Place>)> {
    let steps = job.steps_by_number(all);
    let share = |cells: &[Option<super::job_result::StepCell>]| {
        let (exposed, length) = cells.iter().flatten().fold((0i64, 0i64), |sum, c| (sum.0 + c.exposed, sum.1 + c.length));
        (length > 0).then(|| exposed as f64 / length as f64)
    };
    let mut shares: Vec<(f64, u32)> = steps.iter().filter_map(|(number, cells)| Some((share(cells)?, *number))).collect();
    shares.sort_by(|a, b| a.0.total_cmp(&b.0));
    let (most, number) = *shares.last()?;
    let median = shares[shares.len() / 2].0;
    let cells = steps.get(&number)?;
    let of = |(row, cell): (usize, &Option<super::job_result::StepCell>)| {
        let (cell, rank) = (cell.as_ref()?, job.ranks[row].rank);
        Some(Place {
            kind: PlaceKind::Step,
            name: format!("step {number} of rank {rank}"),
            start: cell.start,
            end: cell.start.saturating_add(cell.length),
            ns: Some(cell.exposed),
            rank: Some(rank),
        })
    };
    let mut places: Vec<Place> = cells.iter().enumerate().filter_map(of).collect();
    places.sort_by_key(|p| std::cmp::Reverse(p.ns));
    places.truncate(PLACES);
    (shares.len() > 1).then_some((number, most, median, places))
}

/// Maximum number of places per finding.
const PLACES: usize = 4;

/// Returns a finding if the transfers alone take enough time; waiting for other ranks is covered by other findings.
pub fn find_exposed(all: &[Digest], job: &Job) -> Option<Finding> {
    let ranks: Vec<Open> = job.ranks.iter().filter_map(|m| exposed_shares(m, &all[m.digest])).collect();
    if ranks.len() < 2 || job.matches.list.is_empty() {
        return None;
    }
    let mean = |of: fn(&Open) -> f64| ranks.iter().map(of).sum::<f64>() / ranks.len() as f64;
    let (exposed, transfer) = (mean(|r| r.all), mean(|r| r.transfer));
    if transfer < LEAST_SHARE {
        return None;
    }
    let most = ranks.iter().max_by(|a, b| a.all.total_cmp(&b.all))?;
    let least = ranks.iter().map(|r| r.all).fold(f64::MAX, f64::min);
    let spread = if most.all - least > 0.01 {
        format!(" ({} to {}, the most on rank {})", format_share(least), format_share(most.all), most.rank)
    } else {
        String::new()
    };
    // The screen's collective time of a rank includes sends and receives, so mention them.
    let messages = mean(|r| r.messages);
    let more = if messages > 0.01 { format!("; sends and receives take another {}", format_share(messages)) } else { String::new() };
    let waiting = exposed - transfer;
    let of = if waiting > 0.01 {
        format!(": {} is waiting for other ranks, {} the transfer", format_share(waiting), format_share(transfer))
    } else {
        String::new()
    };
    // Report the link bandwidth for the kind of collective that accounts for most of the time.
    let link = job.links.iter().find(|l| !nccl::point_to_point(l.kind) && l.bus.is_some());
    let mut finding = Finding::new(
        Verdict::CommExposed,
        transfer,
        format!("collectives that are not overlapped with compute take {} of a mean rank's time{spread}{of}{more}", format_share(exposed)),
    )
    .with_gain_basis("what a mean rank spends in collectives while nothing else runs, less what it waits there for others; with perfect overlap all of it would be gained")
    .with_number("collectives alone, mean of the ranks", exposed * 100.0, "%")
    .with_number("the least of a rank", least * 100.0, "%")
    .with_number("the most of a rank", most.all * 100.0, "%")
    .with_number("waiting for other ranks", waiting * 100.0, "%");
    if messages > 0.0 {
        finding = finding.with_number("sends and receives alone, mean of the ranks", messages * 100.0, "%");
    }
    if let Some(link) = link {
        let bus = link.bus.unwrap_or(0.0);
        finding = finding.with_number(&format!("bus bandwidth of {}", link.kind), bus, "byte/s");
        if let Some((peak, name)) = link.peak.filter(|p| p.0 > 0.0) {
            let (number, unit) = human_number(peak, "byte/second");
            finding = finding.with_number(&format!("share of what {name} carries ({number} {unit})"), bus / peak * 100.0, "%");
        }
    }
    if let Some((number, share, median, places)) = worst_step(job, all) {
        let with = if messages > 0.0 { ", with sends and receives" } else { "" };
        finding = finding
            .with_number(&format!("median share of a step{with}"), median * 100.0, "%")
            .with_number(&format!("share of the worst step, {number}{with}"), share * 100.0, "%")
            .with_places(places);
    }
    let longest = job.links.iter().find(|l| !nccl::point_to_point(l.kind));
    if let Some(link) = longest {
        finding = finding.with_number(&format!("median {}, once all ranks are there", link.kind), link.time as f64, "ns");
    }
    let computing = job.ranks.iter().filter(|m| m.judged > 0).map(|m| m.compute as f64 / m.judged as f64).sum::<f64>() / ranks.len() as f64;
    let mut actions = [
        "Overlap: start each collective as soon as its data are there, on a stream of its own (DDP: smaller buckets, bucket_cap_mb; FSDP: forward_prefetch, limit_all_gathers).",
        "Move less: gradient accumulation, lower precision on the wire, tensor parallelism only within NVLink.",
        "Where the bus bandwidth is far below what the link carries, compare with nccl-tests and look for a link that fell back (nvidia-smi nvlink -s).",
    ];
    // Compute can hide at most as much as it takes itself.
    if computing < exposed {
        actions.swap(0, 1);
    }
    Some(finding.with_actions(&actions))
}
