//! Samples the metrics of a traced inference server, in a process of its own: the traced program is not touched.

use super::{Failure, print};
use crate::import::server_metrics::{format_sample, header_line, metrics_path, parse_prometheus};
use crate::import::wstrace::metrics_prefix;
use crate::launch::http::{fetch_page, find_metrics_urls};
use crate::launch::private_files::open_locked_output;
use crate::launch::terminal::start_session;
use crate::library::store::now_ms;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Name of the hidden command.
pub const SAMPLE: &str = "__sample-metrics";
/// Interval between samples.
const EVERY: Duration = Duration::from_secs(1);
/// Interval between searches for the page of a server that has not opened it yet.
const SEARCH: Duration = Duration::from_secs(2);
/// Failures in a row after which the page is searched for again.
const FAILURES: u32 = 5;
/// Word for a page that is to be found by itself.
pub const AUTO: &str = "auto";

/// Starts sampling for the program that this process is about to become. Without it, the program runs all the same.
pub fn start_sampling(url: &str, output: &Path) {
    let path = metrics_path(output);
    if let Err(why) = spawn_sampler(url, &path) {
        print::error(&format!("the server's metrics are not sampled: {}: {why}", path.display()));
    }
}

/// The sampler's parent ends at once, so that the program does not see a child that it did not start (in a container whose
/// first process is the program, it does: orphans are its children there). The file is the sampler's stdout.
fn spawn_sampler(url: &str, path: &Path) -> std::io::Result<()> {
    let mut file = open_locked_output(path)?;
    file.set_len(0)?;
    writeln!(file, "{}", header_line())?;
    let pid = std::process::id();
    let mut command = Command::new(std::env::current_exe()?);
    command.args([SAMPLE, &pid.to_string(), url, "--started", &start_time(pid).unwrap_or_default().to_string()]);
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(Stdio::null()).current_dir("/");
    let ended = command.status()?;
    if ended.success() { Ok(()) } else { Err(std::io::Error::other(format!("the process that samples them ended with {ended}"))) }
}

/// `__sample-metrics PID URL --started TIME`: continues in a process without a parent.
pub fn sample_in_background(pid: u32, url: &str, started: u64) -> Result<(), Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([SAMPLE, &pid.to_string(), url, "--started", &started.to_string(), "--detached"]);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command.spawn()?;
    Ok(())
}

/// Start time of a process in clock ticks since boot: a process id may be reused. `None` if it has ended, also if its parent
/// has not waited for it.
fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    let mut fields = stat.rsplit_once(')')?.1.split_whitespace();
    let state = fields.next()?;
    fields.nth(18)?.parse().ok().filter(|_| !matches!(state, "Z" | "X"))
}

/// Writes a sample per second to stdout until the program ends. A page that does not answer costs its sample.
pub fn sample_until_end(pid: u32, url: &str, started: u64) -> Result<(), Failure> {
    // Leads no group yet, so this succeeds; else keys pressed in the terminal end it early.
    let _ = start_session();
    let mut file = std::io::stdout();
    let (mut known, mut failures) = ((url != AUTO).then(|| url.to_owned()), 0);
    while start_time(pid) == Some(started) {
        let begun = Instant::now();
        let candidates: Vec<String> = known.clone().map_or_else(|| find_metrics_urls(pid), |url| vec![url]);
        let found = candidates.into_iter().find_map(|url| {
            let text = fetch_page(&url).ok()?;
            // The state is that of the answer, not of the question.
            Some((parse_prometheus(&text, now_ms().saturating_mul(1_000_000))?, url))
        });
        match found {
            Some((sample, url)) => {
                // One write per line, so that readers see whole lines.
                file.write_all(format!("{}\n", format_sample(&sample)).as_bytes())?;
                file.flush()?;
                (known, failures) = (Some(url), 0);
            }
            None => failures += 1,
        }
        if failures >= FAILURES && url == AUTO {
            known = None;
        }
        let pause = if known.is_some() { EVERY } else { SEARCH };
        std::thread::park_timeout(pause.saturating_sub(begun.elapsed()));
    }
    Ok(())
}

/// Copies the samples of a traced program beside a snapshot of it.
pub fn copy_samples(output: &Path, snapshot: &Path) {
    let to = metrics_path(&metrics_prefix(snapshot));
    if let Ok(bytes) = crate::launch::open::read_regular(&metrics_path(output))
        && let Ok(mut file) = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)
    {
        // A snapshot without the server's metrics is a snapshot.
        let _ = file.write_all(&bytes);
    }
}
