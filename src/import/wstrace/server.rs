//! Metrics of an inference server, stored next to its trace.

use super::prefix_of_trace;
use crate::import::Input;
use crate::import::server_metrics::{is_sampled, read_samples};
use crate::model::{CounterTrack, Histogram, Note, NoteKind, Profile, ServerSample, Severity};
use std::collections::BTreeSet;
use std::path::{Path, PathBuf};

/// Adds the samples stored next to the files of the trace, and a timeline track for each metric.
pub fn add_metrics(profile: &mut Profile, input: &Input) {
    let files = std::iter::once(&input.path).chain(input.members.iter().map(|m| &m.path));
    let prefixes: BTreeSet<PathBuf> = files.map(|file| metrics_prefix(file)).collect();
    // If the directory contains several runs, it is unclear which server belongs to this report.
    let sampled: Vec<&PathBuf> = prefixes.iter().filter(|p| is_sampled(p)).take(2).collect();
    let [prefix] = sampled[..] else { return };
    let samples = read_samples(prefix);
    if samples.is_empty() {
        let text =
            "the server's metrics were to be sampled, but no page of a vLLM or SGLang server answered (SGLang needs --enable-metrics)";
        profile.notes.push(Note::new(Severity::Info, NoteKind::Lost, text));
    }
    add_samples(profile, samples);
}

/// Returns the prefix of the metrics files next to a trace. The name of a snapshot contains no process id.
pub fn metrics_prefix(file: &Path) -> PathBuf {
    let plain = match file.extension().and_then(|e| e.to_str()) {
        Some("zst" | "gz") => file.with_extension(""),
        _ => file.to_owned(),
    };
    prefix_of_trace(&plain).unwrap_or_else(|| plain.with_extension(""))
}

/// Adds samples whose times are since 1970.
pub fn add_samples(profile: &mut Profile, mut samples: Vec<ServerSample>) {
    let Some(zero) = profile.clock.epoch_ns.filter(|_| !samples.is_empty()) else { return };
    for sample in &mut samples {
        sample.time = sample.time.saturating_sub(zero);
    }
    let gauge = |name: &str, unit: &str, value: fn(&ServerSample) -> Option<f64>| {
        track(name, unit, samples.iter().filter_map(|s| Some((s.time, value(s)?))).collect())
    };
    let tracks = [
        gauge("requests running", "", |s| s.requests_running),
        gauge("requests waiting", "", |s| s.requests_waiting),
        gauge("KV cache used", "%", |s| Some(s.kv_cache_used? * 100.0)),
        track("tokens generated", "1/s", rates(&samples)),
        track("time to first token", "ms", means(&samples, |s| s.first_token)),
        track("time per token", "ms", means(&samples, |s| s.per_token)),
    ];
    profile.counters.extend(tracks.into_iter().filter(|t| !t.times.is_empty()));
    profile.server = samples;
}

fn track(name: &str, unit: &str, values: Vec<(i64, f64)>) -> CounterTrack {
    let (times, values) = values.into_iter().unzip();
    CounterTrack { device: None, name: name.into(), unit: unit.into(), times, values }
}

/// Tokens per second since the previous sample.
fn rates(samples: &[ServerSample]) -> Vec<(i64, f64)> {
    let rate = |pair: &[ServerSample]| {
        let tokens = pair[1].generated_tokens? - pair[0].generated_tokens?;
        let seconds = (pair[1].time - pair[0].time) as f64 / 1e9;
        (tokens >= 0.0 && seconds > 0.0).then(|| (pair[0].time, tokens / seconds))
    };
    samples.windows(2).filter_map(rate).collect()
}

/// Mean of the observations since the previous sample, ms.
fn means(samples: &[ServerSample], of: fn(&ServerSample) -> Option<Histogram>) -> Vec<(i64, f64)> {
    let mean = |pair: &[ServerSample]| {
        let (before, after) = (of(&pair[0])?, of(&pair[1])?);
        let (sum, count) = (after.sum - before.sum, after.count - before.count);
        (count > 0.0 && sum >= 0.0).then(|| (pair[0].time, sum / count * 1000.0))
    };
    samples.windows(2).filter_map(mean).collect()
}
