//! Rules: the launching thread does something else, or waits for something other than the GPU.

use crate::analysis::triage::finding::{COMPARE_RANKS, Finding, Place, PlaceKind, Severity, Sure};
use crate::analysis::triage::host::waits_for_ranks;
use crate::analysis::triage::intervals::Intervals;
use crate::analysis::triage::os::{is_file_call, os_calls_in};
use crate::analysis::triage::places;
use crate::analysis::triage::run_context::RunContext;
use crate::analysis::triage::steps::StepSource;
use crate::analysis::triage::text::{Record, format_ns, recording_command};
use crate::analysis::triage::time_category::Cause;
use crate::analysis::triage::verdict::Verdict;
use crate::model::units::format_share;
use crate::model::{Activity, ServerSample, summarize_samples, times_without_requests};

/// Reason why it is uncertain if the host waits or computes, in words.
fn missing_reason(case: &RunContext<'_>) -> String {
    if case.host.known.python {
        "no function of that thread was recorded there: waiting and computing cannot be told apart".to_owned()
    } else if case.host.known.operators {
        "recorded without Python functions: waiting and computing cannot be told apart outside operators".to_owned()
    } else if case.host.known.states {
        "it was on a processor for part of the time: waiting and computing cannot be told apart there".to_owned()
    } else {
        format!("{}: waiting and computing cannot be told apart", case.terms.no_waiting)
    }
}

fn name_thread(case: &RunContext<'_>, thread: u32) -> String {
    match case.profile.threads.get(thread as usize) {
        Some(t) => t.name.as_ref().map_or_else(|| format!("thread {}", t.tid), |name| format!("thread {} ({name})", t.tid)),
        None => "another thread".to_owned(),
    }
}

fn longest_piece(case: &RunContext<'_>, cause: Cause) -> (Option<f64>, usize) {
    let pieces = case.pieces_again(cause);
    (pieces.first().map(|p| (p.end - p.start) as f64), pieces.len())
}

/// Prefixes of calls in which a thread reads, from a file or from another process.
const READS: &[&str] = &["read", "fread", "fgets", "getc", "io_", "aio_", "lockf"];
/// Prefixes of calls in which a thread waits for other threads.
const THREADS: &[&str] = &["futex", "pthread_", "sem_", "mq_", "msgrcv"];
/// Prefixes of calls in which a thread sleeps.
const SLEEPS: &[&str] = &["nanosleep", "clock_nanosleep", "usleep", "sleep"];

/// Advice on a loop that may be waiting for work.
pub const SERVER_WAITS: &str = "A server waits like this for its next request, and then nothing needs fixing: recorded with `--metrics` (vLLM, SGLang), it shows how many requests it had.";

/// Advice on a wait in the call or range `name`.
///
/// `steps` is false if the loop is not marked as steps: it may then simply be waiting for work.
fn wait_advice(name: &str, steps: bool) -> &'static [&'static str] {
    let is = |list: &[&str]| list.iter().any(|w| name.starts_with(w));
    if waits_for_ranks(name) {
        &[
            "Overlap communication with work: post receives and sends early (MPI_Irecv, MPI_Isend), launch what does not need them, and wait last.",
            COMPARE_RANKS,
            "Pass device buffers to a GPU-aware MPI, or use collectives on a stream: then the host need not wait.",
        ]
    } else if is_file_call(name) || is(READS) {
        &[
            "Take files, checkpoints and logs off the launching thread: read ahead, and write from another one.",
            "Store data ready to use (memory-mapped, packed records), on a disk that keeps up; read in larger pieces.",
            "Prepare input ahead of time: more DataLoader workers, a larger prefetch_factor, persistent_workers=True, pin_memory=True.",
        ]
    } else if is(SLEEPS) {
        &[
            "The program sleeps: wake it up by what it waits for (a condition variable, an event, a file descriptor) instead of polling.",
            "If it has to poll, do so on another thread than the launching one, or sleep for less.",
        ]
    } else if is(THREADS) && !steps {
        &[
            SERVER_WAITS,
            "Find the thread that it waits for and what that thread is doing: it holds the lock, or fills the queue.",
            "Keep the queue filled, hold locks shorter, or launch from the thread that has the work.",
        ]
    } else if is(THREADS) {
        &[
            "Find the thread that it waits for and what that thread is doing: it holds the lock, or fills the queue.",
            "Prepare input ahead of time: more DataLoader workers, a larger prefetch_factor, persistent_workers=True, pin_memory=True.",
            "Keep the queue filled, hold locks shorter, or launch from the thread that has the work.",
        ]
    } else if !steps {
        &[
            SERVER_WAITS,
            "In training, prepare input ahead of time: more DataLoader workers, a larger prefetch_factor, persistent_workers=True.",
            "Take files, checkpoints and logs off the launching thread: write them from another one.",
        ]
    } else {
        &[
            "Prepare input ahead of time: more DataLoader workers, a larger prefetch_factor, persistent_workers=True, pin_memory=True.",
            "Decode and augment on the GPU (DALI, torchvision on tensors), or store data ready to use (memory-mapped, packed records).",
            "Take files, checkpoints and logs off the launching thread: write them from another one.",
        ]
    }
}

/// Maps a sampled activity to a call for which `wait_advice` has advice; empty if there is none.
fn call_of_activity(activity: Activity) -> &'static str {
    match activity {
        Activity::Lock => "futex",
        Activity::Read => "read",
        Activity::Write => "write",
        Activity::Sleep => "sleep",
        _ => "",
    }
}

/// Returns true if most of the idle time with a computing or waiting host is classified only by nearby samples.
fn mostly_guessed(case: &RunContext<'_>) -> bool {
    case.host_time.guessed * 2 > case.idle.get(Cause::Compute) + case.idle.get(Cause::Wait)
}

/// Returns true if a mean idle time fits into a step; otherwise, it lies between steps.
fn lies_in_steps(case: &RunContext<'_>, mean: f64) -> bool {
    case.steps.median_length().is_none_or(|step| mean <= step as f64)
}

/// Suffix for a headline, for idle time that consists of only one or two gaps; otherwise empty.
fn once_suffix(times: u64, longest: Option<f64>) -> String {
    match (times, longest) {
        (1, Some(long)) => format!(", all of it at once ({})", format_ns(long)),
        (2, _) => ", in two gaps".to_owned(),
        _ => String::new(),
    }
}

/// The program is a server without requests.
pub fn no_requests(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let idle = case.idle.get(Cause::NoRequests);
    let share = case.share(idle);
    let inside = |s: &&ServerSample| s.time >= case.window.0 && s.time <= case.window.1;
    let samples: Vec<ServerSample> = case.profile.server.iter().filter(inside).copied().collect();
    let times: Intervals = times_without_requests(&case.profile.server).into_iter().collect();
    let without: i64 = case.windows.iter().map(|w| times.covered_length(w.0, w.1)).sum();
    if idle == 0 || without == 0 {
        return None;
    }
    let of_window = without as f64 / case.length().max(1) as f64;
    let summary = summarize_samples(&samples);
    let longest = case.pieces.get(&Cause::NoRequests).and_then(|pieces| pieces.first()).map(|p| Place {
        kind: PlaceKind::Window,
        name: "the longest idle time".to_owned(),
        start: p.start,
        end: p.end,
        ns: Some(p.end - p.start),
        rank: None,
    });
    let mut finding = Finding::new(
        Verdict::NoRequests,
        share,
        format!(
            "the server has no requests for {} of {base}: the GPU is idle for {} meanwhile",
            format_share(of_window),
            format_share(share)
        ),
    )
    .with_gain_basis("the idle time between samples of the server's metrics that show neither running nor waiting requests; nothing in the program shortens it")
    .with_number("time without requests", without as f64, "ns")
    .with_number("idle meanwhile", idle as f64, "ns")
    .with_number("samples of the server's metrics", samples.len() as f64, "")
    .with_number("requests running, on average", summary.requests_running, "")
    .with_number("tokens generated a second", summary.tokens_per_second, "1/s")
    .with_places(longest)
    .with_actions(&[
        "Nothing in the program needs a change for this: judge a window with requests (in the explorer: mark it in the timeline; `triage --from … --to …`).",
        "To know what the server can do, send it more requests at a time; to use the GPU better, serve more with it.",
    ]);
    // A server without requests is not a problem of the program.
    finding.severity = Severity::Healthy;
    // Without a token count, a request may have come and gone between two samples, which are a second apart.
    let counted = samples.len() >= 4 && samples.iter().all(|s| s.generated_tokens.is_some());
    Some(if counted { finding } else { finding.with_confidence(Sure::Likely) })
}

/// The launching thread waits for a batch, a queue or a file.
pub fn input_wait(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let idle = case.recurring_idle(Cause::Wait);
    let share = case.share(idle);
    if idle == 0 {
        return None;
    }
    let (long, _) = longest_piece(case, Cause::Wait);
    let waits = os_calls_in(case, Cause::Wait, |_| true);
    let spots = places::locate_idle(case, &[Cause::Wait]);
    // Name the call that accounts for most of the waiting.
    let call = waits.first().filter(|w| w.1.ns.is_some_and(|ns| ns * 2 > idle)).map(|w| w.0.clone());
    let place = spots.main_place().map(str::to_owned);
    let what = call.as_ref().or(place.as_ref()).map_or_else(String::new, |name| format!(", mostly in {name}"));
    let (times, longest_gap) = case.spreads.gap_stats(Cause::Wait);
    // If samples tell what the thread waits for, say so.
    let activity = case.host_time.main_activity(&[Cause::Wait]).filter(|a| a.waits() == Some(true));
    let awaited = activity.map_or("waits for something other than the GPU", Activity::as_str);
    let marked = matches!(case.steps.found, Some(StepSource::Ranges(_)));
    let finding = Finding::new(
        Verdict::InputWait,
        share,
        format!(
            "the launching thread {awaited}{what}: the GPU is idle for {} of {base}{}",
            format_share(share),
            once_suffix(times, Some(longest_gap as f64))
        ),
    )
    .with_gain_basis(format!(
        "the idle time in which the launching thread was blocked outside of {}; none of it remains if the work is there in time",
        case.terms.gpu.api
    ))
    .with_number("idle while the host waits", idle as f64, "ns")
    .with_number("mean of it in a step", case.per_step(idle.unsigned_abs()).filter(|mean| lies_in_steps(case, *mean)), "ns")
    .with_number("the longest wait", long, "ns")
    .with_places(waits.into_iter().take(3).map(|(_, place)| place))
    .with_actions(wait_advice(
        place.as_deref().filter(|p| waits_for_ranks(p)).or(call.as_deref()).or(activity.map(call_of_activity)).unwrap_or_default(),
        marked,
    ))
    .with_places(spots.places);
    // Without OS calls or samples, it is unknown what a thread waits for while it is off the CPU or in the data loader.
    // In an unmarked loop, it may be waiting for work, such as a server's next request.
    Some(if (case.host.known.os || activity.is_some()) && marked && !mostly_guessed(case) {
        finding
    } else {
        finding.with_confidence(Sure::Likely)
    })
}

/// The launching thread computes.
pub fn host_compute(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    // In a marked step, the time after the last operation counts as host time: the host did something else before the
    // step ended.
    let marked = !case.chosen && matches!(case.steps.found, Some(StepSource::Ranges(_))) && case.devices.len() == 1;
    let rest = if marked { case.idle.get(Cause::Ended) } else { 0 };
    let (known, unknown) = (case.recurring_idle(Cause::Compute), case.recurring_idle(Cause::Unknown) + rest);
    let idle = known + unknown;
    if idle == 0 {
        return None;
    }
    let share = case.share(idle);
    let certain = known >= unknown;
    let cause = if certain { Cause::Compute } else { Cause::Unknown };
    let (long, _) = longest_piece(case, cause);
    let ended = longest_piece(case, Cause::Ended).0.filter(|_| !certain && rest > 0);
    let long = long.into_iter().chain(ended).reduce(f64::max);
    let causes: &[Cause] = match (certain, ended) {
        (true, _) => &[Cause::Compute, Cause::Unknown],
        (false, None) => &[Cause::Unknown, Cause::Compute],
        (false, Some(_)) => &[Cause::Unknown, Cause::Compute, Cause::Ended],
    };
    let spots = places::locate_idle(case, causes);
    let at = spots.main_place_text();
    let causes = [Cause::Compute, Cause::Unknown];
    let lock = case.host_time.interpreter_lock(&causes).filter(|l| l.0 > 0.5);
    let headline = if let (true, Some((_, holder))) = (certain, lock) {
        let at = at.replacen(", in", " in", 1);
        format!(
            "the launching thread waits for Python's interpreter lock (GIL), which {} holds{at} while the GPU has nothing to do: idle for {} of {base}, up to {} at a time",
            name_thread(case, holder),
            format_share(share),
            format_ns(long.unwrap_or_default())
        )
    } else if certain {
        format!(
            "the launching thread runs host code{at} while the GPU has nothing to do: idle for {} of {base}, up to {} at a time",
            format_share(share),
            format_ns(long.unwrap_or_default())
        )
    } else {
        format!(
            "the launching thread is outside {}{at} while the GPU has nothing to do: idle for {} of {base}, up to {} at a time; {}",
            case.terms.gpu.api,
            format_share(share),
            format_ns(long.unwrap_or_default()),
            missing_reason(case)
        )
    };
    let finding = Finding::new(Verdict::HostCompute, share, headline)
        .with_gain_basis(format!("the idle time in which the launching thread was neither in {} nor known to wait; on another thread, or overlapped, it costs nothing", case.terms.gpu.api))
        .with_number("idle while the host computes", (known > 0).then_some(known as f64), "ns")
        .with_number("idle while the host does what was not recorded", (unknown > 0).then_some(unknown as f64), "ns")
        .with_number("mean of it in a step", case.per_step(idle.unsigned_abs()), "ns")
        .with_number("the longest at a time", long, "ns")
        .with_number("samples of the thread meanwhile", Some(case.host_time.samples_of(&causes) as f64).filter(|n| *n > 0.0), "")
        .with_places(spots.places);
    let mut finding = if lock.is_some() {
        finding.with_actions(&[
            "Move what the other thread does to a process of its own (multiprocessing, DataLoader workers): threads of one interpreter take turns.",
            "Do it in code that releases the lock: NumPy and PyTorch operations on large arrays, or an extension.",
            "Do it less often, or while the GPU works: launch the next step first.",
        ])
    } else {
        finding.with_actions(&[
            "Do it while the GPU works: launch the next step first, prepare data in another thread (in PyTorch: DataLoader workers).",
            "Do it on the GPU: a kernel in place of a loop on the host (in Python: tensor operations in place of loops and NumPy).",
            "Do it less often: logging, metrics, scheduling and garbage collection every N steps.",
        ])
    };
    if !certain {
        finding = finding.with_confidence(Sure::Possible);
    } else if !case.host.known.os && !case.host.known.states || mostly_guessed(case) {
        // The open function or operator may be waiting rather than computing.
        finding = finding.with_confidence(Sure::Likely);
    }
    let record_what = if case.host.known.operators {
        Record::Python
    } else if certain {
        Record::Samples
    } else {
        Record::Host
    };
    // Once the line is known, there is nothing more to record.
    finding.confirm = (!spots.lines).then(|| recording_command(case.profile, record_what));
    Some(finding)
}
