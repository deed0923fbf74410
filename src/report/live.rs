//! State of a traced program, as a human-readable line or as an object for scripts.

use super::envelope::{Envelope, JsonDocument};
use crate::analysis::live::Live;
use crate::analysis::triage::{TimeCategory, Triage};
use crate::model::live::Recorder;
use crate::model::text::escape_unsafe;
use crate::model::{Nanos, units};
use schemars::JsonSchema;
use serde::Serialize;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use std::io;

/// Maximum number of kernels listed.
const KERNELS: usize = 10;

/// One line: GPU time, launches, verdict, and the kernel that accounts for most of the time.
pub fn status_line(live: &Live) -> String {
    let mut out = String::new();
    // Writing to a `String` cannot fail.
    let _ = match (live.is_recording(), live.busy_share()) {
        (None, _) => {
            write!(
                out,
                "every process has ended after {}: {} recorded",
                Nanos(live.running_time()),
                units::format_count(live.recorded_kernels(), "kernel")
            )
        }
        (Some(false), _) => match live.recorders.iter().find_map(|r| r.stopped.as_ref()) {
            Some(why) => write!(out, "the recording has ended: {why}"),
            None => write!(out, "the recording is closed"),
        },
        (_, _) if live.seconds == 0 && live.is_sampled() => write!(out, "no moment was recorded in the last seconds"),
        (_, _) if live.seconds == 0 => write!(out, "the first second is not over yet"),
        (_, None) => write!(out, "no kernel has ended yet"),
        (_, Some(busy)) => {
            let moments = if live.is_sampled() { " (in its moments)" } else { "" };
            write!(out, "GPU busy {:>3.0}%  {:>9.0} launches/s{moments}", busy * 100.0, live.launch_rate())
        }
    };
    if let Some(finding) = live.judged.as_ref().filter(|_| live.is_recording() == Some(true)).and_then(|j| j.triage.as_ref()?.verdict()) {
        let _ = write!(out, "  {} ({})", finding.id.id(), units::format_whole_percent(finding.gain_percent()));
    }
    if let Some(kernel) = live.kernels.first().filter(|k| k.recent.0 > 0 && live.is_recording() == Some(true)) {
        let share = kernel.recent.1 as f64 / live.recent_ns.max(1) as f64 * 100.0;
        let _ = write!(out, "  {} of kernel time: {}", units::format_percent(share), escape_unsafe(&kernel.name));
    }
    if let Some(measured) = live.measured.as_ref().filter(|_| live.is_recording() == Some(true)) {
        let _ = write!(out, "  {} measured", units::format_count(measured.kernels.len() as u64, "kernel"));
    }
    if let Some(server) = &live.server {
        let _ = write!(out, "  {}", server.to_text());
    }
    let lost: u64 = live.recorders.iter().map(|r| r.lost).sum();
    if lost > 0 {
        let _ = write!(out, "  {} lost", units::format_count(lost, "record"));
    }
    out
}

#[derive(Serialize, JsonSchema)]
struct GpuJson<'a> {
    name: &'a str,
    /// Share of the time with work, 0 to 1.
    busy: f64,
}

#[derive(Serialize, JsonSchema)]
struct KernelJson<'a> {
    name: &'a str,
    /// Share of the kernels' time, 0 to 1.
    share: Option<f64>,
    launches_per_second: f64,
    mean_ns: Option<f64>,
    share_since_start: Option<f64>,
    launches: u64,
    total_ns: i64,
}

#[derive(Serialize, JsonSchema)]
struct HintJson<'a> {
    id: &'static str,
    severity: &'static str,
    headline: &'a str,
}

#[derive(Serialize, JsonSchema)]
struct MeasuredJson<'a> {
    kernel: &'a str,
    launches: usize,
    launch_configurations: usize,
    compute_percent: Option<f64>,
    memory_percent: Option<f64>,
    hint: Option<HintJson<'a>>,
}

#[derive(Serialize, JsonSchema)]
struct VerdictJson<'a> {
    id: &'static str,
    severity: &'static str,
    headline: &'a str,
    /// Share of the judged time that it costs, 0 to 1.
    stake: f64,
    /// Length of the judged time.
    of_ns: Option<i64>,
    /// Time of the verdict, ns since 1970.
    at: Option<i64>,
}

#[derive(Serialize, JsonSchema)]
struct ServerJson {
    requests_running: Option<f64>,
    requests_waiting: Option<f64>,
    /// Share of the KV cache in use, 0 to 1.
    kv_cache_used: Option<f64>,
    tokens_per_second: Option<f64>,
    first_token_seconds: Option<f64>,
    per_token_seconds: Option<f64>,
}

/// Measurement that is in progress.
#[derive(Serialize, JsonSchema)]
struct MeasuringJson<'a> {
    kernel: &'a str,
    for_ms: i64,
    passes: Option<u64>,
}

#[derive(Serialize, JsonSchema)]
struct RecorderJson<'a> {
    pid: u32,
    program: &'a str,
    rank: Option<u32>,
    recording: bool,
    ended: bool,
    kernels: u64,
    bytes: u64,
    /// CPU time of the tracer.
    cost_ns: i64,
    /// Records that were lost.
    lost: u64,
    not_recorded: Option<&'a str>,
    stopped: Option<&'a str>,
    measured_launches: u64,
    measuring_ns: i64,
    not_measured: Option<&'a str>,
    measuring: Option<MeasuringJson<'a>>,
}

/// State of a traced program over the last `seconds`.
#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct LiveJson<'a> {
    seconds: usize,
    /// Null if no process is running.
    recording: Option<bool>,
    /// Only short moments are recorded: shares and rates are estimates from these.
    sampled: bool,
    /// Share of the time in which the GPUs had work, 0 to 1.
    busy: Option<f64>,
    launches_per_second: f64,
    launches: u64,
    /// Start of the recording, ns since 1970.
    since: i64,
    gpus: Vec<GpuJson<'a>>,
    kernels: Vec<KernelJson<'a>>,
    measured: Vec<MeasuredJson<'a>>,
    verdict: Option<VerdictJson<'a>>,
    /// Shares of the judged time, 0 to 1, by what the GPUs did.
    parts: Option<BTreeMap<&'static str, f64>>,
    server: Option<ServerJson>,
    recorders: Vec<RecorderJson<'a>>,
    bytes_per_second: Option<f64>,
    tracer_share_of_a_core: Option<f64>,
    /// Bytes of the trace that were not read yet.
    behind_bytes: u64,
}

impl JsonDocument for LiveJson<'_> {
    const NAME: &'static str = "watch";
}

fn kernels_json(live: &Live) -> impl Iterator<Item = KernelJson<'_>> {
    let share = |ns: i64, of: i64| (of > 0).then(|| ns as f64 / of as f64);
    live.kernels.iter().take(KERNELS).map(move |k| KernelJson {
        name: &k.name,
        share: share(k.recent.1, live.recent_ns),
        launches_per_second: k.recent.0 as f64 / live.seconds.max(1) as f64,
        mean_ns: (k.recent.0 > 0).then(|| k.recent.1 as f64 / k.recent.0 as f64),
        share_since_start: share(k.all.1, live.all_ns),
        launches: k.all.0,
        total_ns: k.all.1,
    })
}

fn recorder_json(r: &Recorder) -> RecorderJson<'_> {
    RecorderJson {
        pid: r.pid,
        program: &r.program,
        rank: r.rank,
        recording: r.open && !r.ended,
        ended: r.ended,
        kernels: r.kernels,
        bytes: r.bytes,
        cost_ns: r.cost,
        lost: r.lost,
        not_recorded: r.not_recorded.as_deref(),
        stopped: r.stopped.as_deref(),
        measured_launches: r.measured,
        measuring_ns: r.measuring_ns,
        not_measured: r.not_measured.as_deref(),
        measuring: r.measuring.as_ref().map(|m| MeasuringJson { kernel: &m.kernel, for_ms: m.ms, passes: m.passes }),
    }
}

/// Writes one object on one line.
pub fn write_json(out: &mut dyn io::Write, live: &Live) -> io::Result<()> {
    let triage = live.judged.as_ref().and_then(|j| j.triage.as_deref());
    let measured = live.measured.iter().flat_map(|m| &m.kernels).map(|k| MeasuredJson {
        kernel: &k.name,
        launches: k.launches,
        launch_configurations: k.configurations,
        compute_percent: k.compute,
        memory_percent: k.memory,
        hint: k.first.as_ref().map(|h| HintJson { id: h.id.id(), severity: h.severity.as_str(), headline: &h.headline }),
    });
    let document = LiveJson {
        seconds: live.seconds,
        recording: live.is_recording(),
        sampled: live.is_sampled(),
        busy: live.busy_share(),
        launches_per_second: live.launch_rate(),
        launches: live.count,
        since: live.since,
        gpus: live.devices.iter().map(|d| GpuJson { name: &d.name, busy: live.recent_busy_share(d) }).collect(),
        kernels: kernels_json(live).collect(),
        measured: measured.collect(),
        verdict: triage.and_then(Triage::verdict).map(|f| VerdictJson {
            id: f.id.id(),
            severity: f.severity.as_str(),
            headline: &f.headline,
            stake: f.gain_percent() / 100.0,
            of_ns: triage.map(Triage::length),
            at: live.judged.as_ref().map(|j| j.at),
        }),
        parts: triage.map(|t| TimeCategory::ALL.into_iter().map(|p| (p.id(), t.part_percent(p) / 100.0)).collect()),
        server: live.server.as_ref().map(|s| ServerJson {
            requests_running: s.requests_running,
            requests_waiting: s.requests_waiting,
            kv_cache_used: s.kv_cache_used,
            tokens_per_second: s.tokens_per_second,
            first_token_seconds: s.first_token,
            per_token_seconds: s.per_token,
        }),
        recorders: live.recorders.iter().map(recorder_json).collect(),
        bytes_per_second: live.bytes,
        tracer_share_of_a_core: live.cost,
        behind_bytes: live.behind,
    };
    Envelope::default().write_line(out, &document)
}
