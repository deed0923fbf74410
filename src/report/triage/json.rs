//! JSON form of a triage.

use super::text::{Judged, round_percent, steps_by};
use crate::analysis::estimate::Estimate;
use crate::analysis::flops::Counted;
use crate::analysis::run_estimate::RunEstimate;
use crate::analysis::triage::{Finding, JudgedDevice, LineTime, Severity, StepKind, Triage, Verdict};
use crate::report::envelope::{Envelope, JsonDocument, NextJson};
use crate::report::finding::{FindingJson, finding_json};
use crate::report::ranks::{RankJson, StragglerJson, Together, first_straggler, rank_list};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

#[derive(Serialize, JsonSchema)]
struct WindowJson<'a> {
    start_ns: i64,
    end_ns: i64,
    steps: Option<usize>,
    /// Mark by which steps were found.
    steps_by: Option<String>,
    step_median_ns: Option<i64>,
    /// Kinds of steps, if they run different kernels.
    step_kinds: Option<Vec<KindJson>>,
    /// Percent of the run that was judged; null if the whole run or a chosen window was.
    judged_percent: Option<f64>,
    /// Percent of the rest of the run during which the GPU was idle; null as `judged_percent`.
    idle_outside_percent: Option<f64>,
    /// Phases that were not judged, such as the start-up.
    left_out: Vec<LeftOutJson<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct KindJson {
    steps: usize,
    median_ns: i64,
    share_percent: f64,
    /// Medians of a step: launches of graphs, the kernels in them, kernels launched one by one.
    graph_launches: u32,
    graph_kernels: u32,
    single_kernels: u32,
    gpu_busy_percent: f64,
    /// The largest part of the idle time, and its share of the steps' time; null without idle time.
    idle_mostly: Option<&'static str>,
    idle_mostly_percent: Option<f64>,
}

impl From<&StepKind> for KindJson {
    fn from(kind: &StepKind) -> Self {
        Self {
            steps: kind.count,
            median_ns: kind.median,
            share_percent: round_percent(kind.share * 100.0),
            graph_launches: kind.launched.graphs,
            graph_kernels: kind.launched.graph_kernels,
            single_kernels: kind.launched.single_kernels,
            gpu_busy_percent: round_percent(kind.busy * 100.0),
            idle_mostly: kind.idle.map(|(part, _)| part.id()),
            idle_mostly_percent: kind.idle.map(|(_, share)| round_percent(share * 100.0)),
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct LeftOutJson<'a> {
    phase: &'static str,
    what: &'a str,
    start_ns: i64,
    end_ns: i64,
}

#[derive(Serialize, JsonSchema)]
struct ShareJson {
    part: &'static str,
    ns: i64,
    share_percent: f64,
}

#[derive(Serialize, JsonSchema)]
struct CauseJson {
    cause: &'static str,
    part: &'static str,
    ns: i64,
}

#[derive(Serialize, JsonSchema)]
struct DeviceJson<'a> {
    device: Option<u32>,
    name: Option<&'a str>,
    pid: Option<u32>,
    busy_ns: i64,
    collectives_ns: i64,
    copies_ns: i64,
    /// Parts of the judged time, which add up to it.
    attribution: Vec<ShareJson>,
    /// Idle time by cause.
    idle: Vec<CauseJson>,
}

#[derive(Serialize, JsonSchema)]
struct FamilyJson {
    family: &'static str,
    ns: i64,
    share_percent: f64,
}

#[derive(Serialize, JsonSchema)]
struct MemoryJson<'a> {
    id: &'static str,
    headline: &'a str,
}

#[derive(Serialize, JsonSchema)]
struct FlopsJson {
    per_second: f64,
    peak_per_second: Option<f64>,
    /// Null if the peak is not known, or if kernels with unknown operations take more than 20% of kernel time.
    mfu_percent: Option<f64>,
    operators: Option<u64>,
    /// Kernel time in kernels that may multiply matrices, too, but whose operations are not counted.
    unknown_percent: Option<f64>,
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct TriageJson<'a> {
    window: WindowJson<'a>,
    devices: Vec<DeviceJson<'a>>,
    /// Kernel time by family of kernels.
    families: Vec<FamilyJson>,
    flops: Option<FlopsJson>,
    findings: Vec<FindingJson<'a>>,
    /// A measured kernel with more to gain than the first finding promises: the verdict; else null.
    kernel_lead: Option<KernelLeadJson<'a>>,
    /// Functions of the program by idle time of the devices; null if the launching threads were not sampled.
    host_lines: Option<Vec<HostLineJson>>,
    memory: Option<Vec<MemoryJson<'a>>>,
    /// Data that was not recorded: do not conclude anything from its absence.
    missing: Vec<&'a str>,
    /// Totals of the whole run, if only short moments of it were recorded (`--overhead`); else null.
    whole_run: Option<WholeRunJson>,
    ranks: Option<Vec<RankJson<'a>>>,
    straggler: Option<StragglerJson>,
}

#[derive(Serialize, JsonSchema)]
struct KernelLeadJson<'a> {
    kernel: &'a str,
    /// Diagnosis, as `warpscope hints` gives it.
    id: &'static str,
    severity: &'static str,
    headline: &'a str,
    /// Upper bound of what the change saves, in percent of the window.
    gain_percent: f64,
}

/// An estimate with its interval of 95% confidence.
#[derive(Serialize, JsonSchema)]
struct EstimateJson {
    value: f64,
    low: f64,
    high: f64,
}

impl From<Estimate> for EstimateJson {
    fn from(e: Estimate) -> Self {
        Self { value: e.value.round(), low: e.low.round(), high: e.high.round() }
    }
}

#[derive(Serialize, JsonSchema)]
struct WholeRunJson {
    /// Number of moments that were recorded, and their time.
    moments: usize,
    recorded_ns: i64,
    span_ns: i64,
    launches: EstimateJson,
    kernel_ns: EstimateJson,
    /// Percentiles of the step lengths; only those for which enough steps fit into the moments.
    steps: Vec<StepPercentileJson>,
}

#[derive(Serialize, JsonSchema)]
struct StepPercentileJson {
    percent: u8,
    length_ns: EstimateJson,
}

impl From<&RunEstimate> for WholeRunJson {
    fn from(e: &RunEstimate) -> Self {
        let (launches, kernel_ns) = (e.all.count.into(), e.all.total.into());
        let steps = e.steps.iter().map(|s| StepPercentileJson { percent: s.percent, length_ns: s.length.into() }).collect();
        Self { moments: e.moments, recorded_ns: e.recorded, span_ns: e.span, launches, kernel_ns, steps }
    }
}

impl JsonDocument for TriageJson<'_> {
    const NAME: &'static str = "triage";
}

#[derive(Serialize, JsonSchema)]
struct HostLineJson {
    function: String,
    file: Option<String>,
    line: Option<u32>,
    idle_ns: i64,
    share_percent: f64,
    /// Null where each call was recorded.
    samples: Option<u64>,
    /// Launches from the function, estimated from samples unless each call was recorded; null if too few samples tell.
    launches: Option<u64>,
    /// Time of the launching threads in it, without waits for the GPU, for input and for locks.
    host_ns: Option<i64>,
    /// Null without idle time.
    part: Option<&'static str>,
    activity: &'static str,
}

fn host_lines(t: &Triage) -> Vec<HostLineJson> {
    let all = t.host_time.known().max(1) as f64;
    let row = |l: LineTime| HostLineJson {
        function: l.frame.function.to_string(),
        file: l.frame.file.as_deref().map(str::to_owned),
        line: l.frame.line,
        idle_ns: l.ns,
        share_percent: round_percent(l.ns as f64 / all * 100.0),
        samples: (!t.host_time.exact).then_some(l.samples),
        launches: l.launching.launches(),
        host_ns: l.launching.host_ns(),
        part: (l.ns > 0).then(|| l.cause.part().id()),
        activity: l.activity.id(),
    };
    t.host_time.list_lines().into_iter().map(row).collect()
}

fn device_json(d: &JudgedDevice, length: i64) -> DeviceJson<'_> {
    DeviceJson {
        device: d.number,
        name: d.name.as_deref(),
        pid: d.pid,
        busy_ns: d.busy,
        collectives_ns: d.collectives,
        copies_ns: d.copies,
        attribution: d
            .parts
            .iter()
            .map(|(part, ns)| ShareJson { part: part.id(), ns: *ns, share_percent: round_percent(*ns as f64 / length as f64 * 100.0) })
            .collect(),
        idle: d.causes.iter().map(|(c, ns)| CauseJson { cause: c.as_text(), part: c.part().id(), ns: *ns }).collect(),
    }
}

fn triage_json<'a>(&(_, t): &Judged<'a>) -> TriageJson<'a> {
    let kernel_ns: i64 = t.families.iter().map(|f| f.1).sum();
    TriageJson {
        window: WindowJson {
            start_ns: t.window.0,
            end_ns: t.window.1,
            steps: (!t.steps.is_empty()).then_some(t.steps.len()),
            steps_by: t.found.as_ref().map(steps_by),
            step_median_ns: t.step_stats().map(|s| s.median),
            step_kinds: (!t.kinds.is_empty()).then(|| t.kinds.iter().map(KindJson::from).collect()),
            judged_percent: t.outside.map(|o| round_percent(o.judged * 100.0)),
            idle_outside_percent: t.outside.map(|o| round_percent(o.idle * 100.0)),
            left_out: t
                .left_out
                .iter()
                .map(|l| LeftOutJson { phase: l.phase.word(), what: &l.what, start_ns: l.start, end_ns: l.end })
                .collect(),
        },
        devices: t.devices.iter().map(|d| device_json(d, t.length())).collect(),
        families: t
            .families
            .iter()
            .map(|(f, ns)| FamilyJson {
                family: f.display_name(),
                ns: *ns,
                share_percent: round_percent(*ns as f64 / kernel_ns.max(1) as f64 * 100.0),
            })
            .collect(),
        flops: t.flops.map(|r| FlopsJson {
            per_second: r.per_second,
            peak_per_second: r.peak,
            mfu_percent: r.utilization().map(|u| round_percent(u * 100.0)),
            operators: if let Counted::Operators { count, .. } = r.counted { Some(count) } else { None },
            unknown_percent: if let Counted::Operators { unknown, .. } = r.counted { Some(round_percent(unknown * 100.0)) } else { None },
        }),
        findings: t.findings.iter().map(finding_json).collect(),
        kernel_lead: t.kernel_lead.as_ref().map(|lead| KernelLeadJson {
            kernel: &lead.kernel,
            id: lead.hint.id.id(),
            severity: lead.hint.severity.as_str(),
            headline: &lead.hint.headline,
            gain_percent: round_percent(lead.gain * 100.0),
        }),
        host_lines: (!t.host_time.times.is_empty()).then(|| host_lines(t)),
        memory: t.memory.as_ref().map(|m| m.iter().map(|(id, headline)| MemoryJson { id, headline }).collect()),
        missing: t.doubt.iter().chain(&t.missing).map(String::as_str).collect(),
        whole_run: t.whole_run.as_ref().map(WholeRunJson::from),
        ranks: None,
        straggler: None,
    }
}

/// Commands to run after a triage: those that confirm its findings, and those that show the subject of the verdict.
fn next_steps(&(profile, t): &Judged<'_>) -> Vec<NextJson> {
    let of = |command, rest: &[&str], why| NextJson::on_report(command, &profile.source, rest.iter().copied(), why);
    let mut next = Vec::new();
    if !t.host_time.times.is_empty() {
        next.push(of("lines", &["--format", "json"], "lists the lines of the program during which the GPU was idle"));
    }
    next.extend(t.findings.iter().map(finding_json).filter_map(|f| f.next_step()));
    next.push(of("top", &["--limit", "10", "--format", "json"], "ranks the kernels by time"));
    next
}

/// Writes triages as JSON: one object for a single report or for the ranks of a job, otherwise one line per report.
pub fn write_triage_json(out: &mut dyn Write, judged: &[Judged<'_>], ranks: Option<&Together<'_>>) -> io::Result<()> {
    let (Some(ranks), Some(first)) = (ranks, judged.first()) else {
        return judged.iter().try_for_each(|j| Envelope::of_profile(j.0).then(next_steps(j)).write_line(out, &triage_json(j)));
    };
    let mut all = triage_json(first);
    all.devices = judged.iter().flat_map(|(_, t)| t.devices.iter().map(|d| device_json(d, t.length()))).collect();
    let merged = merged_findings(judged, ranks);
    all.findings = merged
        .iter()
        .map(|(f, rank)| {
            let mut json = finding_json(f);
            for place in &mut json.places {
                place.rank = place.rank.or(*rank);
            }
            json
        })
        .collect();
    all.ranks = Some(rank_list(ranks.job, ranks.digests));
    all.straggler = first_straggler(ranks.job);
    let confirmed = all.findings.iter().filter_map(FindingJson::next_step);
    Envelope::of_profiles(judged.iter().map(|j| j.0)).then(confirmed).write(out, &all)
}

/// Findings of all ranks without duplicates, each from the rank that loses the most time; findings about the whole job
/// come first.
fn merged_findings<'a>(judged: &[Judged<'a>], ranks: &Together<'a>) -> Vec<(&'a Finding, Option<u32>)> {
    let mut out: Vec<(&Finding, Option<u32>)> = Vec::new();
    for (at, (_, t)) in judged.iter().enumerate() {
        let rank = ranks.rank_of(at);
        for f in &t.findings {
            match out.iter_mut().find(|o| o.0.id == f.id) {
                Some(known) if known.0.stake >= f.stake => {}
                Some(known) => *known = (f, rank),
                None => out.push((f, rank)),
            }
        }
    }
    out.sort_by(|a, b| b.0.stake.total_cmp(&a.0.stake).then(a.0.id.cmp(&b.0.id)));
    // The kernels are the limit of a job only if no rank has another limit.
    if out.iter().any(|(f, _)| f.id != Verdict::GpuBound && f.severity >= Severity::Medium) || !ranks.job.findings.is_empty() {
        out.retain(|(f, _)| f.id != Verdict::GpuBound);
    }
    ranks.job.findings.iter().map(|f| (f, None)).chain(out).collect()
}
