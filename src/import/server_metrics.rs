//! Metrics of an inference server: its Prometheus text, and the CSV file next to a trace.

use crate::launch::open;
use crate::model::{Histogram, ServerSample};
use std::io::{Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

/// Suffix of the CSV file that goes with the traces `NAME.PID.wstrace`: `NAME.metrics.csv`.
pub const SUFFIX: &str = ".metrics.csv";
/// Columns of the CSV file. Times are in ns since 1970; a cell is empty if the server does not export the metric.
const COLUMNS: [&str; 9] = [
    "time_ns",
    "requests_running",
    "requests_waiting",
    "kv_cache_used",
    "generated_tokens",
    "first_token_seconds_sum",
    "first_token_count",
    "per_token_seconds_sum",
    "per_token_count",
];
/// Maximum number of bytes to read from the end of the file, which is enough for more than a day at one sample per
/// second.
const MOST: u64 = 16 << 20;
/// Range of valid times (ns since 1970, in this century) and values (below 1e15) in a sample.
const TIMES: std::ops::Range<i64> = 1_000_000_000_000_000_000..4_000_000_000_000_000_000;
const VALUES: std::ops::Range<f64> = 0.0..1e15;

/// Names of a metric without the server's prefix, from the documentation of vLLM 0.5 to 0.26 and `SGLang` 0.4 to 0.5.
const RUNNING: &[&str] = &["num_requests_running", "num_running_reqs"];
const WAITING: &[&str] = &["num_requests_waiting", "num_queue_reqs"];
const KV_CACHE: &[&str] = &["kv_cache_usage_perc", "gpu_cache_usage_perc", "token_usage"];
const TOKENS: &[&str] = &["generation_tokens_total"];
const FIRST_TOKEN: &[&str] = &["time_to_first_token_seconds"];
const PER_TOKEN: &[&str] = &["inter_token_latency_seconds", "time_per_output_token_seconds"];

/// Metric name prefixes of the supported servers.
const PREFIXES: [&str; 2] = ["vllm:", "sglang:"];

/// Labels for ranks: if a model is split across GPUs, a server exports the same requests once per rank.
const RANK_LABELS: [&str; 3] = ["tp_rank", "pp_rank", "moe_ep_rank"];

/// Returns the labels without those in [`RANK_LABELS`].
fn labels_without_ranks(labels: &str) -> String {
    let mut out = labels.to_owned();
    for label in RANK_LABELS {
        let begin = format!("{label}=\"");
        while let Some(at) = out.find(&begin) {
            let end = out[at + begin.len()..].find('"').map_or(out.len(), |n| at + begin.len() + n + 1);
            out.replace_range(at..end, "");
        }
    }
    out
}

/// Adds a series; for series that differ only in rank, keeps the largest value.
fn add_series<'t>(series: &mut Vec<(&'t str, String, f64)>, name: &'t str, labels: String, value: f64) {
    match series.iter_mut().rev().find(|s| s.0 == name && s.1 == labels) {
        Some(known) => known.2 = known.2.max(value),
        None => series.push((name, labels, value)),
    }
}

/// Parses Prometheus text. Series of a metric with different labels (engines, models) are summed; for KV cache usage,
/// the maximum is taken. `None` if there is no metric of a supported server.
pub fn parse_prometheus(text: &str, time: i64) -> Option<ServerSample> {
    let mut series: Vec<(&str, String, f64)> = Vec::new();
    for line in text.lines().filter(|l| !l.starts_with('#')) {
        let Some(name) = PREFIXES.iter().find_map(|p| line.strip_prefix(p)) else { continue };
        let end = name.find(['{', ' ']).unwrap_or(name.len());
        let (name, rest) = name.split_at(end);
        // Label values may contain braces and spaces; the value follows the last brace.
        let (labels, value) = rest.rsplit_once('}').unwrap_or(("", rest));
        let Some(value) = value.split_whitespace().next().and_then(|v| v.parse::<f64>().ok()).filter(|v| VALUES.contains(v)) else {
            continue;
        };
        add_series(&mut series, name, labels_without_ranks(labels), value);
    }
    // Use the first name that is exported, because servers export the old and new names of a metric side by side.
    let values = |names: &[&str], suffix: &str| {
        let of = |name: &&str| {
            let found: Vec<f64> = series.iter().filter(|s| s.0.strip_suffix(suffix) == Some(name)).map(|s| s.2).collect();
            (!found.is_empty()).then_some(found)
        };
        names.iter().find_map(of)
    };
    let sum = |names: &[&str], suffix: &str| values(names, suffix).map(|v| v.iter().sum::<f64>());
    let histogram = |names: &[&str]| Some(Histogram { sum: sum(names, "_sum")?, count: sum(names, "_count")? });
    let sample = ServerSample {
        time,
        requests_running: sum(RUNNING, ""),
        requests_waiting: sum(WAITING, ""),
        kv_cache_used: values(KV_CACHE, "").map(|v| v.into_iter().fold(0.0, f64::max)),
        generated_tokens: sum(TOKENS, ""),
        first_token: histogram(FIRST_TOKEN),
        per_token: histogram(PER_TOKEN),
    };
    (sample.requests_running.is_some() || sample.generated_tokens.is_some()).then_some(sample)
}

/// Returns the CSV file's header line.
pub fn header_line() -> String {
    COLUMNS.join(",")
}

/// Formats a sample as a line in the CSV file.
pub fn format_sample(s: &ServerSample) -> String {
    let fields = [
        s.requests_running,
        s.requests_waiting,
        s.kv_cache_used,
        s.generated_tokens,
        s.first_token.map(|h| h.sum),
        s.first_token.map(|h| h.count),
        s.per_token.map(|h| h.sum),
        s.per_token.map(|h| h.count),
    ];
    fields.iter().fold(s.time.to_string(), |line, v| line + "," + &v.map_or_else(String::new, |v| v.to_string()))
}

/// Parses the CSV file, skipping incomplete and invalid lines.
pub fn parse_samples(text: &[u8]) -> Vec<ServerSample> {
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(text);
    let Ok(header) = reader.headers().cloned() else { return Vec::new() };
    let places = COLUMNS.map(|c| header.iter().position(|h| h == c));
    let mut out: Vec<ServerSample> = Vec::new();
    for record in reader.records().flatten() {
        let field = |at: usize| record.get(places[at]?);
        let number = |at: usize| field(at)?.parse::<f64>().ok().filter(|v| VALUES.contains(v));
        let histogram = |at: usize| Some(Histogram { sum: number(at)?, count: number(at + 1)? });
        let Some(time) = field(0).and_then(|t| t.parse::<i64>().ok()).filter(|t| TIMES.contains(t)) else { continue };
        if record.len() != header.len() || out.last().is_some_and(|last| time <= last.time) {
            continue;
        }
        out.push(ServerSample {
            time,
            requests_running: number(1),
            requests_waiting: number(2),
            kv_cache_used: number(3),
            generated_tokens: number(4),
            first_token: histogram(5),
            per_token: histogram(7),
        });
    }
    out
}

/// Path of the CSV file for the traces with this prefix.
pub fn metrics_path(prefix: &Path) -> PathBuf {
    let mut path = prefix.as_os_str().to_owned();
    path.push(SUFFIX);
    PathBuf::from(path)
}

/// Reads the CSV file for the traces with this prefix; empty if there is no such file.
pub fn read_samples(prefix: &Path) -> Vec<ServerSample> {
    read_tail(prefix, MOST).map(|bytes| parse_samples(&bytes)).unwrap_or_default()
}

/// Reads the end of the CSV file for the traces with this prefix, adding a header in front if needed.
fn read_tail(prefix: &Path, most: u64) -> std::io::Result<Vec<u8>> {
    let mut file = open::open_regular(&metrics_path(prefix))?;
    let from = file.metadata()?.len().saturating_sub(most);
    file.seek(SeekFrom::Start(from))?;
    // The first line read may be incomplete; the newline separates it from the header.
    let mut bytes = if from > 0 { format!("{}\n", header_line()).into_bytes() } else { Vec::new() };
    file.take(most).read_to_end(&mut bytes)?;
    Ok(bytes)
}

/// Returns true if a CSV file exists for the traces with this prefix.
pub fn is_sampled(prefix: &Path) -> bool {
    open::open_regular(&metrics_path(prefix)).is_ok()
}

/// Number of bytes at the end of the file that are sure to cover the last few seconds.
const RECENT: u64 = 4096;

/// Reads the samples of the last `ns` nanoseconds before `now` (ns since 1970).
pub fn read_recent_samples(prefix: &Path, now: i64, ns: i64) -> Vec<ServerSample> {
    let mut samples = read_tail(prefix, RECENT).map(|bytes| parse_samples(&bytes)).unwrap_or_default();
    samples.retain(|s| s.time >= now.saturating_sub(ns));
    samples
}

#[cfg(test)]
mod tests {
    use super::*;

    const VLLM: &str = r#"# HELP vllm:num_requests_running Number of requests in model execution batches.
# TYPE vllm:num_requests_running gauge
vllm:num_requests_running{engine="0",model_name="a } 7"} 3.0
vllm:num_requests_running{engine="1",model_name="a } 7"} 2.0
vllm:num_requests_waiting{engine="0"} 1.0
vllm:num_requests_waiting_by_reason{engine="0",reason="capacity"} 9.0
vllm:kv_cache_usage_perc{engine="0"} 0.25
vllm:kv_cache_usage_perc{engine="1"} 0.75
vllm:generation_tokens_total{engine="0"} 1.5e+06
vllm:time_to_first_token_seconds_bucket{engine="0",le="0.001"} 0.0
vllm:time_to_first_token_seconds_count{engine="0"} 4.0
vllm:time_to_first_token_seconds_sum{engine="0"} 0.5
vllm:inter_token_latency_seconds_count{engine="0"} 100.0
vllm:inter_token_latency_seconds_sum{engine="0"} 2.0
vllm:time_per_output_token_seconds_count{engine="0"} 100.0
vllm:time_per_output_token_seconds_sum{engine="0"} 2.5
python_info{implementation="CPython"} 1.0
"#;

    #[test]
    fn servers_are_read_by_their_names() {
        let found = parse_prometheus(VLLM, 5).unwrap();
        let want = ServerSample {
            time: 5,
            requests_running: Some(5.0),
            requests_waiting: Some(1.0),
            kv_cache_used: Some(0.75),
            generated_tokens: Some(1.5e6),
            first_token: Some(Histogram { sum: 0.5, count: 4.0 }),
            per_token: Some(Histogram { sum: 2.0, count: 100.0 }),
        };
        assert_eq!(found, want);
        let sglang = "sglang:num_running_reqs{tp_rank=\"0\"} 2\nsglang:num_queue_reqs 7.0\nsglang:token_usage 0.5 1732600000\n";
        let found = parse_prometheus(sglang, 1).unwrap();
        assert_eq!((found.requests_running, found.requests_waiting, found.kv_cache_used), (Some(2.0), Some(7.0), Some(0.5)));
        for text in
            ["", "python_info 1.0", "vllm:num_requests_running{} NaN", "vllm:", "sglang:x{", "<html>vllm:num_requests_running 1</html>"]
        {
            assert_eq!(parse_prometheus(text, 1), None, "{text}");
        }
    }

    #[test]
    fn the_file_is_read_as_it_was_written() {
        let zero = TIMES.start;
        let first = parse_prometheus(VLLM, zero + 5).unwrap();
        let second = ServerSample { time: zero + 9, requests_running: Some(0.0), ..ServerSample::default() };
        let text = format!("{}\n{}\n{}\n12,1,", header_line(), format_sample(&first), format_sample(&second));
        assert_eq!(parse_samples(text.as_bytes()), [first, second], "the last line is being written");
        assert_eq!(parse_samples(b""), []);
        let folder = tempfile::tempdir().unwrap();
        let prefix = folder.path().join("run");
        let many: Vec<ServerSample> = (1..500).map(|n| ServerSample { time: zero + n, ..second }).collect();
        let lines: Vec<String> = many.iter().map(format_sample).collect();
        std::fs::write(metrics_path(&prefix), format!("{}\n{}\n", header_line(), lines.join("\n"))).unwrap();
        assert_eq!(read_samples(&prefix), many);
        assert_eq!(read_recent_samples(&prefix, zero + 500, 10), many[489..]);
        assert_eq!(read_recent_samples(&folder.path().join("other"), zero + 500, 10), []);
        assert_eq!(parse_samples(b"\xff\xfe,time_ns\n\0,1\n"), [], "not this file's header");
        let odd =
            format!("other,time_ns\n,{z}1\n\u{fffd},2\n,x\n,{z}3,4\n,{z}3\n,{z}3\n,{}\n,{}\n,-5\n", i64::MAX, i64::MIN, z = zero / 10);
        let times: Vec<i64> = parse_samples(odd.as_bytes()).iter().map(|s| s.time - zero).collect();
        assert_eq!(times, [1, 3], "lines that are not samples, and a time that comes twice");
    }
}
