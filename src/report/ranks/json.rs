//! JSON form of a job.

use crate::analysis::ranks::Job;
use crate::model::digest::Digest;
use crate::report::envelope::{Envelope, JsonDocument};
use crate::report::finding::{FindingJson, finding_json};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// A job and the digests of its ranks.
#[derive(Clone, Copy)]
pub struct Together<'a> {
    pub job: &'a Job,
    pub digests: &'a [Digest],
    /// Index of each digest's report among the opened reports.
    pub reports: &'a [usize],
}

impl Together<'_> {
    /// Rank of a report, if it has only one.
    pub fn rank_of(&self, report: usize) -> Option<u32> {
        let mut of = self.job.ranks.iter().filter(|m| self.reports.get(m.digest) == Some(&report));
        let first = of.next()?;
        of.next().is_none().then_some(first.rank)
    }
}

#[derive(Serialize, JsonSchema)]
pub struct RankJson<'a> {
    rank: u32,
    device: Option<u32>,
    step_ns: Option<i64>,
    compute_ns: i64,
    comm_ns: i64,
    exposed_ns: i64,
    late_ns: i64,
    waited_ns: i64,
    idle_ns: i64,
    judged_ns: i64,
    host: Option<&'a str>,
    pid: Option<u32>,
    device_name: Option<&'a str>,
    file: &'a str,
    clock: Option<ClockJson>,
}

/// Mapping of the rank's clock to the common one.
#[derive(Serialize, JsonSchema)]
struct ClockJson {
    offset_ns: i64,
    drift_ppm: f64,
    uncertainty_ns: i64,
    collectives: usize,
}

#[derive(Serialize, JsonSchema)]
pub struct StragglerJson {
    rank: u32,
    cause: &'static str,
    late_ns: i64,
}

#[derive(Serialize, JsonSchema)]
struct LinkJson<'a> {
    kind: &'static str,
    ranks: usize,
    count: u64,
    bytes: Option<u64>,
    time_ns: i64,
    bus_bytes_per_second: Option<f64>,
    link_bytes_per_second: Option<f64>,
    link: Option<&'static str>,
    algorithm: Option<&'a str>,
    waited_ns: i64,
}

#[derive(Serialize, JsonSchema)]
struct WaitJson {
    rank: u32,
    waits_for: u32,
    ns: i64,
}

#[derive(Serialize, JsonSchema)]
struct GroupJson<'a> {
    name: &'a str,
    ranks: Vec<u32>,
    size: usize,
    numbered: bool,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct JobJson<'a> {
    ranks: Vec<RankJson<'a>>,
    straggler: Option<StragglerJson>,
    stragglers: Vec<StragglerJson>,
    findings: Vec<FindingJson<'a>>,
    groups: Vec<GroupJson<'a>>,
    matched_collectives: u64,
    collectives: Vec<LinkJson<'a>>,
    waits: Vec<WaitJson>,
    remarks: Vec<&'a str>,
}

impl JsonDocument for JobJson<'_> {
    const NAME: &'static str = "ranks";
}

/// The ranks in order.
pub fn rank_list<'a>(job: &Job, digests: &'a [Digest]) -> Vec<RankJson<'a>> {
    let of = |m: &crate::analysis::ranks::Member| {
        let d = digests.get(m.digest)?;
        Some(RankJson {
            rank: m.rank,
            device: d.device,
            step_ns: m.step,
            compute_ns: m.compute,
            comm_ns: m.comm,
            exposed_ns: m.exposed,
            late_ns: m.late,
            waited_ns: m.waited,
            idle_ns: m.idle,
            judged_ns: m.judged,
            host: d.host.as_deref(),
            pid: d.pid,
            device_name: d.device_name.as_deref(),
            file: &d.file,
            clock: (m.clock.by > 0).then_some(ClockJson {
                offset_ns: m.clock.offset,
                drift_ppm: m.clock.drift * 1e6,
                uncertainty_ns: m.clock.uncertainty,
                collectives: m.clock.by,
            }),
        })
    };
    job.ranks.iter().filter_map(of).collect()
}

/// First straggler of the job, if any.
pub fn first_straggler(job: &Job) -> Option<StragglerJson> {
    straggler_list(job).into_iter().next()
}

fn straggler_list(job: &Job) -> Vec<StragglerJson> {
    job.stragglers.iter().map(|s| StragglerJson { rank: s.rank, cause: s.why.as_str(), late_ns: s.late }).collect()
}

/// Writes the job as one JSON object.
pub fn write_job_json(out: &mut dyn Write, of: &Together<'_>) -> io::Result<()> {
    let job = of.job;
    let mut waits: Vec<WaitJson> = job
        .waits
        .pairs
        .iter()
        .filter(|w| *w.1 > 0)
        .map(|(&(rank, other), &ns)| WaitJson { rank: job.rank_number(rank), waits_for: job.rank_number(other), ns })
        .collect();
    waits.sort_by_key(|w| (std::cmp::Reverse(w.ns), w.rank, w.waits_for));
    // Hundreds of ranks have many pairs: keep only the longest waits.
    waits.truncate(1000);
    let links = job.links.iter().map(|l| LinkJson {
        kind: l.kind,
        ranks: l.size,
        count: l.count,
        bytes: l.bytes,
        time_ns: l.time,
        bus_bytes_per_second: l.bus,
        link_bytes_per_second: l.peak.map(|p| p.0),
        link: l.peak.map(|p| p.1),
        algorithm: Some(&*l.algorithm).filter(|a| !a.is_empty()),
        waited_ns: l.waited,
    });
    let groups = job.matches.groups.iter().map(|g| GroupJson {
        name: &g.name,
        ranks: g.ranks.iter().map(|&r| job.rank_number(r)).collect(),
        size: g.size,
        numbered: g.numbered,
    });
    // A report with several ranks has several digests.
    let mut files: Vec<(&str, String)> = of.digests.iter().map(|d| (d.tool.as_str(), d.file.clone())).collect();
    files.dedup();
    Envelope::of_files(files).write(
        out,
        &JobJson {
            ranks: rank_list(job, of.digests),
            straggler: first_straggler(job),
            stragglers: straggler_list(job),
            findings: job.findings.iter().map(finding_json).collect(),
            groups: groups.collect(),
            matched_collectives: job.matched_count(),
            collectives: links.collect(),
            waits,
            remarks: job.remarks.iter().map(String::as_str).collect(),
        },
    )
}
