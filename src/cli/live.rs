//! Follows a traced program: reads new trace data, aggregates it, and repeatedly analyzes the last seconds.

use crate::analysis::live::{Judged, Live, Meter};
use crate::analysis::live_results::Results;
use crate::analysis::triage::{Scope, Verdict, triage_profile};
use crate::import::server_metrics::read_recent_samples;
use crate::import::wstrace::{Follow, add_samples};
use crate::import::{Cancel, Job, Wants};
use crate::launch::tracer;
use crate::library::Run;
use crate::model::summarize_samples;
use crossbeam_channel::{Receiver, RecvTimeoutError};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

/// Poll interval: the tracer writes once a second.
const EVERY: Duration = Duration::from_secs(1);
/// Poll interval until the first data arrives.
const FIRST: Duration = Duration::from_millis(200);
/// Length of the analyzed window, ns.
const WINDOW: i64 = 10_000_000_000;
/// Period covered by the summary of a server's metrics, ns.
const SERVER: i64 = 10_000_000_000;
/// Maximum number of kernels in the analyzed window.
const MOST: u64 = 200_000;
/// After each analysis, the pause is at least this many times as long as the analysis.
const RARELY: u32 = 80;
/// Length of a snapshot, ns.
pub const SNAPSHOT: i64 = 30_000_000_000;

/// Requests to a watched program.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Ask {
    /// Open or close the recording.
    Gate(bool),
    /// Measure counters of the next launches of a kernel.
    Measure(String),
    /// Save the last seconds, or everything.
    Snapshot { whole: bool },
}

/// Messages about a watched program.
#[derive(Debug)]
pub enum Told {
    Live(Box<Live>),
    /// Response of the traced processes to a request.
    Said(Result<String, String>),
    /// Path of a snapshot; true if the file was newly created.
    Saved(Result<(PathBuf, bool), String>),
}

/// Returns the path of a run's traces without process id and suffix.
pub fn trace_prefix(run: &Run) -> Option<PathBuf> {
    let suffix = format!(".{}", crate::import::wstrace::SUFFIX);
    run.patterns.first().and_then(|p| p.strip_suffix(&suffix)).filter(|_| run.tool == "trace").map(PathBuf::from)
}

fn now_ns() -> i64 {
    SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |d| i64::try_from(d.as_nanos()).unwrap_or(i64::MAX))
}

/// Returns an error about the first process that failed to answer.
fn check_answers(answers: &[(u32, tracer::Answer)]) -> Result<(), String> {
    let none = answers.iter().find_map(|(pid, answer)| answer.as_ref().err().map(|why| (pid, why)));
    none.map_or(Ok(()), |(pid, why)| Err(format!("process {pid}: {why}")))
}

/// Opens or closes the recording; returns a message.
pub fn set_recording(output: &Path, open: bool) -> Result<String, String> {
    let answers = tracer::send_command(output, if open { "open" } else { "close" }).map_err(|e| e.to_string())?;
    check_answers(&answers)?;
    let done = answers.iter().filter(|(_, a)| a.as_deref() == Ok(if open { "open" } else { "closed" })).count();
    match (answers.len(), done) {
        (0, _) => Err("no process is being traced: none has used CUDA yet, or all have ended".to_owned()),
        (all, done) if done < all => Ok("this recording has no gate".to_owned()),
        _ if open => Ok("the recording is open".to_owned()),
        _ => Ok("the recording is closed".to_owned()),
    }
}

/// Requests counters of the next launches of a kernel; returns a message.
fn request_counters(output: &Path, kernel: &str) -> Result<String, String> {
    let answers = tracer::send_command(output, &format!("measure {kernel}")).map_err(|e| e.to_string())?;
    check_answers(&answers)?;
    let refused = answers.iter().find_map(|(pid, a)| a.as_ref().ok().filter(|a| *a != "measuring").map(|why| (pid, why)));
    match (answers.len(), refused) {
        (0, _) => Err("no process is being traced: none has used CUDA yet, or all have ended".to_owned()),
        (_, Some((pid, why))) => Err(format!("process {pid}: {why}")),
        _ => Ok(format!("measuring the next launches of {kernel}; the report has the counters")),
    }
}

/// Returns an unused file name next to the traces that is not itself a trace name.
pub fn snapshot_path(output: &Path) -> PathBuf {
    let name = output.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let path = |n: u32| output.with_file_name(format!("{name}-snapshot-{n}.{}", crate::import::wstrace::SUFFIX));
    (1..u32::MAX).map(path).find(|p| p.symlink_metadata().is_err()).unwrap_or_else(|| path(0))
}

/// Flushes completed records and saves the last `ns` nanoseconds, or everything.
pub fn save_snapshot(follow: &mut Follow, output: &Path, ns: Option<i64>, to: &Path) -> Result<(), String> {
    // A process that does not answer has ended or hangs, but the data it has written is still available.
    let _ = tracer::send_command(output, "flush");
    let failed = |e: std::io::Error| match e.kind() {
        std::io::ErrorKind::AlreadyExists => format!("{} already exists; name another file", to.display()),
        _ => format!("{}: {e}", to.display()),
    };
    while follow.poll_files().map_err(failed)?.behind > 0 {}
    follow.save_trace(ns, to).map_err(failed)?;
    super::server_metrics::copy_samples(output, to);
    Ok(())
}

/// Follows the traces until canceled, or until the receiver is gone.
pub fn follow_traces(output: &Path, asks: &Receiver<Ask>, mut tell: impl FnMut(Told) -> bool, enough: &Cancel) {
    let (mut follow, mut meter) = (Follow::new(output), Meter::default());
    let (mut judged, mut judge_at): (Option<Judged>, _) = (None, Instant::now());
    let (mut measured, mut news): (Option<Arc<Results>>, _) = (None, 0);
    let mut next = Instant::now();
    while !enough.is_cancelled() {
        match asks.recv_timeout(next.saturating_duration_since(Instant::now()).min(FIRST)) {
            Ok(Ask::Gate(open)) => {
                if !tell(Told::Said(set_recording(output, open))) {
                    return;
                }
                // Show the effect immediately.
                let _ = tracer::send_command(output, "flush");
                next = Instant::now();
            }
            Ok(Ask::Measure(kernel)) => {
                if !tell(Told::Said(request_counters(output, &kernel))) {
                    return;
                }
            }
            Ok(Ask::Snapshot { whole }) => {
                let saved = match follow.only_file().filter(|_| whole) {
                    Some(path) => Ok((path, false)),
                    None => {
                        let path = snapshot_path(output);
                        save_snapshot(&mut follow, output, (!whole).then_some(SNAPSHOT), &path).map(|()| (path, true))
                    }
                };
                if !tell(Told::Saved(saved)) {
                    return;
                }
            }
            Err(RecvTimeoutError::Disconnected) => return,
            Err(RecvTimeoutError::Timeout) => {}
        }
        if Instant::now() < next {
            continue;
        }
        let Ok(fresh) = follow.poll_files() else { return };
        let (behind, known) = (fresh.behind > 0, fresh.measured);
        next = Instant::now() + if behind { Duration::ZERO } else { EVERY };
        if fresh.recorders.is_empty() {
            next = Instant::now() + FIRST;
            continue;
        }
        meter.add_poll(fresh, now_ns());
        let mut live = meter.current_state();
        if !behind && Instant::now() >= judge_at {
            let began = Instant::now();
            judged = Some(judge_recent(&follow, output, live.now, enough));
            if enough.is_cancelled() {
                return;
            }
            judge_at = Instant::now() + (began.elapsed() * RARELY).max(EVERY * 2);
        }
        if !behind && known > news {
            news = known;
            measured = measured_results(&follow).map(Arc::new);
        }
        live.judged.clone_from(&judged);
        live.measured.clone_from(&measured);
        let recent = read_recent_samples(output, live.now, SERVER);
        live.server = (!recent.is_empty()).then(|| summarize_samples(&recent));
        if !tell(Told::Live(Box::new(live))) {
            return;
        }
    }
}

/// Returns the counters measured live so far, with the first hint for each kernel.
fn measured_results(follow: &Follow) -> Option<Results> {
    let mut job = Job::new(Wants::TABLE, &|_| {});
    job.threads = 1;
    Results::from_profile(&*follow.measured_profile(&job)?)
}

/// Analyzes the last seconds of the program.
fn judge_recent(follow: &Follow, output: &Path, at: i64, enough: &Cancel) -> Judged {
    let mut job = Job::new(Wants::TRIAGE, &|_| {});
    job.threads = 1;
    let mut profile = follow.recent_profile(WINDOW, MOST, &job).ok();
    if let Some(profile) = &mut profile {
        add_samples(profile, read_recent_samples(output, at, WINDOW * 2));
    }
    let triage = profile.and_then(|p| triage_profile(&p, &Scope::default(), enough));
    // A short capture is expected here, so that verdict is not useful.
    let triage = triage.filter(|t| t.verdict().is_none_or(|f| f.id != Verdict::ShortCapture));
    Judged { triage: triage.map(Arc::new), at }
}
