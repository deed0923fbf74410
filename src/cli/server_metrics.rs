//! Samples the metrics of a traced inference server, in a process beside it: the traced program itself is untouched.

use super::Failure;
use crate::import::server_metrics::{format_sample, header_line, metrics_path, parse_prometheus};
use crate::launch::http::{fetch_page, find_metrics_urls};
use crate::library::store::now_ms;
use std::fs::OpenOptions;
use std::io::Write;
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Name of the hidden command.
pub const SAMPLE: &str = "__sample-metrics";
/// Interval between samples.
const EVERY: Duration = Duration::from_secs(1);
/// Interval between searches for the page of a server that has not opened it yet.
const SEARCH: Duration = Duration::from_secs(2);
/// Word for a page that is to be found by itself.
pub const AUTO: &str = "auto";

/// Starts the sampling of the program that this process is going to become. It is not a child of the program: the
/// program must not see a child that it did not start.
pub fn start_sampling(url: &str, output: &Path) -> Result<(), Failure> {
    let path = metrics_path(output);
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    command.arg(SAMPLE).arg(std::process::id().to_string()).arg(url).arg(&path);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
    let ended = command.status()?;
    if ended.success() { Ok(()) } else { Err(Failure::wrong(format!("{}: cannot write the server's metrics", path.display()))) }
}

/// `__sample-metrics PID URL FILE`: creates the file, and continues in a process of its own session.
pub fn sample_in_background(pid: u32, url: &str, path: &Path) -> Result<(), Failure> {
    let started = start_time(pid);
    let mut file = OpenOptions::new().write(true).create(true).truncate(true).mode(0o600).open(path)?;
    writeln!(file, "{}", header_line())?;
    let program = std::env::current_exe()?;
    let mut command = Command::new(program);
    command.arg(SAMPLE).arg(pid.to_string()).arg(url).arg(path).arg("--started").arg(started.unwrap_or_default().to_string());
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).current_dir("/");
    command.spawn()?;
    Ok(())
}

/// Start time of a process in clock ticks since boot: a process id may be reused.
fn start_time(pid: u32) -> Option<u64> {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
    stat.rsplit_once(')')?.1.split_whitespace().nth(19)?.parse().ok()
}

/// Appends a sample per second until the program ends. A page that does not answer costs nothing but its sample.
pub fn sample_until_end(pid: u32, url: &str, path: &Path, started: u64) -> Result<(), Failure> {
    // Keys pressed in the program's terminal are not for this process. It leads no group, so this succeeds.
    let _ = crate::launch::terminal::start_session();
    let mut file = OpenOptions::new().append(true).open(path)?;
    let mut known = (url != AUTO).then(|| url.to_owned());
    while start_time(pid) == Some(started) {
        let begun = Instant::now();
        let candidates: Vec<String> = known.clone().map_or_else(|| find_metrics_urls(pid), |url| vec![url]);
        let mut found = false;
        for url in candidates {
            let time = now_ms().saturating_mul(1_000_000);
            if let Some(sample) = fetch_page(&url).ok().and_then(|text| parse_prometheus(&text, time)) {
                // One write per line, so that readers see whole lines.
                file.write_all(format!("{}\n", format_sample(&sample)).as_bytes())?;
                known = Some(url);
                found = true;
                break;
            }
        }
        let pause = if found || known.is_some() { EVERY } else { SEARCH };
        std::thread::park_timeout(pause.saturating_sub(begun.elapsed()));
    }
    Ok(())
}

/// Copies the samples of a traced program beside a snapshot of it.
pub fn copy_samples(output: &Path, snapshot: &Path) {
    let to: PathBuf = metrics_path(&snapshot.with_extension(""));
    if let Ok(bytes) = crate::launch::open::read_regular(&metrics_path(output))
        && let Ok(mut file) = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)
    {
        // A snapshot without the server's metrics is a snapshot.
        let _ = file.write_all(&bytes);
    }
}
