//! Samples the metrics of a traced inference server in a separate process, without changing the traced program.

use super::failure::Failure;
use super::print;
use crate::import::server_metrics::{format_sample, header_line, metrics_path, parse_prometheus};
use crate::import::wstrace::metrics_prefix;
use crate::launch::http::{fetch_page, find_metrics_urls};
use crate::launch::private_files::open_locked_output;
use crate::launch::runs::process::{close_inherited_descriptors, is_running, read_process, start_own_session};
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
/// Interval between searches for a metrics page that the server has not opened yet.
const SEARCH: Duration = Duration::from_secs(2);
/// Number of consecutive failures after which the sampler searches for the page again.
const FAILURES: u32 = 5;
/// URL argument that requests an automatic search for the page.
pub const AUTO: &str = "auto";

/// Starts sampling for the program that this process is about to execute. If sampling fails, the program still runs.
pub fn start_sampling(url: &str, output: &Path) {
    let path = metrics_path(output);
    if let Err(why) = spawn_sampler(url, &path) {
        print::error(&format!("the server's metrics are not sampled: {}: {why}", path.display()));
    }
}

/// Starts the sampler with the file as its stdout. The sampler's parent exits immediately, so that the program does not
/// get an unexpected child. (If the program is the first process of a container, it does get one, because it adopts
/// orphans.)
fn spawn_sampler(url: &str, path: &Path) -> std::io::Result<()> {
    let mut file = open_locked_output(path)?;
    file.set_len(0)?;
    writeln!(file, "{}", header_line())?;
    let pid = std::process::id();
    let started = read_process(pid.cast_signed()).ok_or_else(|| std::io::Error::other("/proc cannot be read"))?.started;
    let mut command = Command::new(std::env::current_exe()?);
    command.args([SAMPLE, &pid.to_string(), url, "--started", &started.to_string()]);
    command.stdin(Stdio::null()).stdout(file.try_clone()?).stderr(Stdio::null()).current_dir("/");
    let ended = command.status()?;
    if ended.success() { Ok(()) } else { Err(std::io::Error::other(format!("the process that samples them ended with {ended}"))) }
}

/// `__sample-metrics PID URL --started TIME`: continues in a background process, whose parent exits.
pub fn sample_in_background(pid: u32, url: &str, started: u64) -> Result<(), Failure> {
    let mut command = Command::new(std::env::current_exe()?);
    command.args([SAMPLE, &pid.to_string(), url, "--started", &started.to_string(), "--detached"]);
    command.stdin(Stdio::null()).stderr(Stdio::null());
    command.spawn()?;
    Ok(())
}

/// Writes one sample per second to stdout until the program ends. If the page does not answer, the sample is skipped.
pub fn sample_until_end(pid: u32, url: &str, started: u64) -> Result<(), Failure> {
    // Succeeds because the sampler is not a group leader. Without a session of its own, the sampler could be ended
    // early by keys pressed in the terminal.
    let _ = start_own_session();
    close_inherited_descriptors();
    let mut file = std::io::stdout();
    let (mut known, mut failures) = ((url != AUTO).then(|| url.to_owned()), 0);
    while is_running(pid.cast_signed(), started) {
        let begun = Instant::now();
        let candidates: Vec<String> = known.clone().map_or_else(|| find_metrics_urls(pid), |url| vec![url]);
        let found = candidates.into_iter().find_map(|url| {
            let text = fetch_page(&url).ok()?;
            // Use the time of the answer, not of the request.
            Some((parse_prometheus(&text, now_ms().saturating_mul(1_000_000))?, url))
        });
        match found {
            Some((sample, url)) => {
                // Write each line as a whole, so that readers never get partial lines.
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

/// Copies the samples of a traced program next to a snapshot of it.
pub fn copy_samples(output: &Path, snapshot: &Path) {
    let to = metrics_path(&metrics_prefix(snapshot));
    if let Ok(bytes) = crate::launch::open::read_regular(&metrics_path(output))
        && let Ok(mut file) = OpenOptions::new().write(true).create_new(true).mode(0o600).open(to)
    {
        // Ignore errors: a snapshot is useful even without the server's metrics.
        let _ = file.write_all(&bytes);
    }
}
