//! State of a traced program, as a line for people or an object for scripts.

use crate::analysis::live::Live;
use crate::analysis::triage::{TimeCategory, Triage};
use crate::model::text::escape_unsafe;
use crate::model::{Nanos, units};
use serde_json::{Value, json};
use std::fmt::Write;

/// Maximum number of kernels listed.
const KERNELS: usize = 10;

/// One line: GPU time, launches, verdict, and the kernel with the most time.
pub fn status_line(live: &Live) -> String {
    let mut out = String::new();
    // Writing into a String cannot fail.
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
        (_, _) if live.seconds == 0 => write!(out, "the first second is not over yet"),
        (_, None) => write!(out, "no kernel has ended yet"),
        (_, Some(busy)) => write!(out, "GPU busy {:>3.0}%  {:>9.0} launches/s", busy * 100.0, live.launch_rate()),
    };
    if let Some(finding) = live.judged.as_ref().filter(|_| live.is_recording() == Some(true)).and_then(|j| j.triage.as_ref()?.verdict()) {
        let _ = write!(out, "  {} ({:.0}%)", finding.id.id(), finding.gain_percent());
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

/// One object with times in ns and shares from 0 to 1, over the last `seconds`.
pub fn to_json(live: &Live) -> Value {
    let share = |ns: i64, of: i64| if of > 0 { json!(ns as f64 / of as f64) } else { Value::Null };
    let triage = live.judged.as_ref().and_then(|j| j.triage.as_deref());
    json!({
        "time": live.now,
        "seconds": live.seconds,
        "recording": live.is_recording(),
        "busy": live.busy_share(),
        "launches_per_second": live.launch_rate(),
        "launches": live.count,
        "since": live.since,
        "gpus": live.devices.iter().map(|d| json!({ "name": *d.name, "busy": live.recent_busy_share(d) })).collect::<Vec<_>>(),
        "kernels": live.kernels.iter().take(KERNELS).map(|k| json!({
            "name": *k.name,
            "share": share(k.recent.1, live.recent_ns),
            "launches_per_second": k.recent.0 as f64 / live.seconds.max(1) as f64,
            "mean_ns": (k.recent.0 > 0).then(|| k.recent.1 as f64 / k.recent.0 as f64),
            "share_since_start": share(k.all.1, live.all_ns),
            "launches": k.all.0,
            "total_ns": k.all.1,
        })).collect::<Vec<_>>(),
        "measured": live.measured.iter().flat_map(|m| &m.kernels).map(|k| json!({
            "kernel": *k.name,
            "launches": k.launches,
            "launch_configurations": k.configurations,
            "compute_percent": k.compute,
            "memory_percent": k.memory,
            "hint": k.first.as_ref().map(|h| json!({ "id": h.id.id(), "severity": h.severity.as_str(), "headline": h.headline })),
        })).collect::<Vec<_>>(),
        "verdict": triage.and_then(|t| t.verdict()).map(|f| json!({
            "id": f.id.id(),
            "severity": f.severity.as_str(),
            "headline": f.headline,
            "stake": f.gain_percent() / 100.0,
            "of_ns": triage.map(Triage::length),
            "at": live.judged.as_ref().map(|j| j.at),
        })),
        "parts": triage.map(|t| TimeCategory::ALL.into_iter().map(|p| (p.id().to_owned(), json!(t.part_percent(p) / 100.0)))
            .collect::<serde_json::Map<_, _>>()),
        "server": live.server.as_ref().map(|s| json!({
            "requests_running": s.requests_running,
            "requests_waiting": s.requests_waiting,
            "kv_cache_used": s.kv_cache_used,
            "tokens_per_second": s.tokens_per_second,
            "first_token_seconds": s.first_token,
            "per_token_seconds": s.per_token,
        })),
        "recorders": live.recorders.iter().map(|r| json!({
            "pid": r.pid,
            "program": r.program,
            "rank": r.rank,
            "recording": r.open && !r.ended,
            "ended": r.ended,
            "kernels": r.kernels,
            "bytes": r.bytes,
            "cost_ns": r.cost,
            "lost": r.lost,
            "not_recorded": r.not_recorded,
            "stopped": r.stopped,
            "measured_launches": r.measured,
            "measuring_ns": r.measuring_ns,
            "not_measured": r.not_measured,
            "measuring": r.measuring.as_ref().map(|m| json!({ "kernel": *m.kernel, "for_ms": m.ms, "passes": m.passes })),
        })).collect::<Vec<_>>(),
        "bytes_per_second": live.bytes,
        "tracer_share_of_a_core": live.cost,
        "behind_bytes": live.behind,
    })
}
