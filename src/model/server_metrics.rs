//! Metrics of an inference server, sampled about once per second from its Prometheus endpoint while tracing.

use crate::model::units;
/// Sum and count of the observations in a Prometheus histogram.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Histogram {
    /// Sum of the observations in seconds.
    pub sum: f64,
    pub count: f64,
}

/// One sample. A field is `None` if the server does not export the metric.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerSample {
    /// In nanoseconds, on the clock of the profile.
    pub time: i64,
    pub requests_running: Option<f64>,
    pub requests_waiting: Option<f64>,
    /// Fraction of the KV cache in use, 0 to 1.
    pub kv_cache_used: Option<f64>,
    /// Tokens generated since the server started.
    pub generated_tokens: Option<f64>,
    /// Time to first token.
    pub first_token: Option<Histogram>,
    /// Time per output token, excluding the first.
    pub per_token: Option<Histogram>,
}

impl ServerSample {
    /// Returns true if no requests were running or waiting; false if the number of running requests is unknown.
    pub fn is_without_requests(&self) -> bool {
        self.requests_running == Some(0.0) && self.requests_waiting.unwrap_or(0.0) == 0.0
    }
}

/// Maximum gap between two samples for the state between them to be considered known, ns: three sampling intervals.
const LONGEST_INTERVAL: i64 = 3_000_000_000;

/// Returns the periods without requests, ns, in order. Such a period lies between two samples that have no requests
/// and the same token count.
pub fn times_without_requests(samples: &[ServerSample]) -> Vec<(i64, i64)> {
    let mut out: Vec<(i64, i64)> = Vec::new();
    for pair in samples.windows(2) {
        let (before, after) = (&pair[0], &pair[1]);
        let idle = before.is_without_requests()
            && after.is_without_requests()
            && before.generated_tokens == after.generated_tokens
            && (0..=LONGEST_INTERVAL).contains(&after.time.saturating_sub(before.time));
        match out.last_mut() {
            Some(last) if idle && last.1 == before.time => last.1 = after.time,
            _ if idle => out.push((before.time, after.time)),
            _ => {}
        }
    }
    out
}

/// Averages over a range of samples.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ServerSummary {
    pub requests_running: Option<f64>,
    pub requests_waiting: Option<f64>,
    /// Maximum fraction of the KV cache in use, 0 to 1.
    pub kv_cache_used: Option<f64>,
    pub tokens_per_second: Option<f64>,
    /// Mean time to first token, in seconds.
    pub first_token: Option<f64>,
    /// Mean time per output token after the first, in seconds.
    pub per_token: Option<f64>,
}

impl ServerSummary {
    /// Formats the summary, for example `12 running, 3 waiting, KV cache 43%`; empty if all values are missing.
    pub fn to_text(&self) -> String {
        let count = |n: f64| if n < 10.0 && n.fract() > 0.05 { format!("{n:.1}") } else { format!("{n:.0}") };
        let ms = |s: f64| super::Nanos::format_ns(s * 1e9);
        let parts = [
            self.requests_running.map(|n| format!("{} running", count(n))),
            self.requests_waiting.map(|n| format!("{} waiting", count(n))),
            self.kv_cache_used.map(|n| format!("KV cache {}", units::format_whole_percent(n * 100.0))),
            self.tokens_per_second.map(|n| format!("{n:.0} tokens/s")),
            self.first_token.map(|s| format!("first token {}", ms(s))),
            self.per_token.map(|s| format!("per token {}", ms(s))),
        ];
        parts.into_iter().flatten().collect::<Vec<_>>().join(", ")
    }
}

/// Summarizes consecutive samples.
pub fn summarize_samples(samples: &[ServerSample]) -> ServerSummary {
    let mean = |of: fn(&ServerSample) -> Option<f64>| {
        let values: Vec<f64> = samples.iter().filter_map(of).collect();
        (!values.is_empty()).then(|| values.iter().sum::<f64>() / values.len() as f64)
    };
    let (Some(first), Some(last)) = (samples.first(), samples.last()) else { return ServerSummary::default() };
    let seconds = last.time.saturating_sub(first.time) as f64 / 1e9;
    // If the counter decreased, the server was restarted in between.
    let rate = first.generated_tokens.zip(last.generated_tokens).filter(|(a, b)| b >= a && seconds > 0.0).map(|(a, b)| (b - a) / seconds);
    let between = |of: fn(&ServerSample) -> Option<Histogram>| {
        let (a, b) = (of(first)?, of(last)?);
        let (sum, count) = (b.sum - a.sum, b.count - a.count);
        (count > 0.0 && sum >= 0.0).then(|| sum / count)
    };
    ServerSummary {
        requests_running: mean(|s| s.requests_running),
        requests_waiting: mean(|s| s.requests_waiting),
        kv_cache_used: samples.iter().filter_map(|s| s.kv_cache_used).fold(None, |most: Option<f64>, v| Some(most.map_or(v, |m| m.max(v)))),
        tokens_per_second: rate,
        first_token: between(|s| s.first_token),
        per_token: between(|s| s.per_token),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sample(second: i64, running: f64, tokens: f64) -> ServerSample {
        ServerSample {
            time: second * 1_000_000_000,
            requests_running: Some(running),
            requests_waiting: Some(0.0),
            generated_tokens: Some(tokens),
            first_token: Some(Histogram { sum: tokens / 100.0, count: tokens / 10.0 }),
            ..ServerSample::default()
        }
    }

    #[test]
    fn a_request_between_two_samples_is_seen_by_its_tokens() {
        let samples = [
            sample(0, 0.0, 10.0),
            sample(1, 0.0, 10.0),
            sample(2, 0.0, 10.0),
            sample(3, 0.0, 40.0),
            sample(4, 2.0, 50.0),
            sample(9, 0.0, 50.0),
            sample(20, 0.0, 50.0),
        ];
        assert_eq!(times_without_requests(&samples), [(0, 2_000_000_000)]);
    }

    #[test]
    fn summaries_are_of_the_time_between_the_samples() {
        let summary = summarize_samples(&[sample(0, 2.0, 100.0), sample(1, 4.0, 150.0), sample(2, 0.0, 300.0)]);
        assert_eq!((summary.requests_running, summary.tokens_per_second), (Some(2.0), Some(100.0)));
        assert!((summary.first_token.unwrap() - 0.1).abs() < 1e-9);
        assert_eq!(summary.to_text(), "2 running, 0 waiting, 100 tokens/s, first token 100 ms");
        assert_eq!(summarize_samples(&[sample(0, 2.0, 100.0), sample(1, 2.0, 5.0)]).tokens_per_second, None, "restarted");
        assert_eq!(summarize_samples(&[]), ServerSummary::default());
    }
}
