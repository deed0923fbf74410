//! Keeps a program from instantiating a CUDA graph while CUPTI is subscribed to.
//!
//! With its first call, CUPTI begins to listen to the driver, and then takes 20 to 40 ms or longer to fill the tables
//! that it uses when it hears something. A program that creates a graph's node or instantiates a graph meanwhile
//! crashes (13.0.85 on an H200: 15 of 637, 7 of 405 and 8 of 388 programs that were attached to while they started,
//! fifteen at a time; the table of devices is published before it is filled). Therefore, this waits for a pause in which
//! no graph is instantiated, no context created and no code loaded, since a program that does one of these usually goes
//! on with the others. It then stops the threads until CUPTI has been subscribed to, each of them while it is outside of
//! the driver, the loader and the allocator, whose locks CUPTI needs. A thread that stays inside of them keeps running,
//! and so does one whose system call would fail. While a program starts, all of this begins again if a thread is inside
//! of a function of the driver that is neither a wait nor a launch.

use super::memory_map::Mapping;
use super::refusal::Refusal;
use super::registers::{keep_waiting, stack_and_code};
use super::seize::{Stopped, is_in_state, mapped_file, stop_thread};
use super::target::Target;
use super::wait_calls::{is_write, may_fail};
use nix::sys::wait::{WaitPidFlag, waitpid};
use nix::unistd::Pid;
use object::{Object, ObjectSymbol};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::sync::mpsc::{Receiver, RecvTimeoutError, Sender, channel};
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

/// Bytes of each thread's stack that are searched: the driver's function is only a few frames from the innermost one.
const DEPTH: usize = 1 << 15;
/// Time for which no graph may have been instantiated.
const QUIET: Duration = Duration::from_millis(200);
/// The same for a program that has only just started, and the age until which that is so.
const QUIET_AT_FIRST: Duration = Duration::from_secs(1);
const YOUNG: Duration = Duration::from_mins(1);
/// Times that the threads are looked at in this time. Each look stops those that run, so there are no more in the longer
/// one.
const QUIET_LOOKS: u32 = 40;
const PAUSE: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(10);
/// Attempts to find a thread blocked before it is stopped, and the pause between them: a thread that writes to a pipe
/// is woken again and again, and would write only a part of its data if it were stopped then.
const LOOKS: usize = 5;
const LOOK_PAUSE: Duration = Duration::from_micros(100);
/// Time limit for finding all threads outside of the driver: after that, the rest keeps running.
const GATHER: Duration = Duration::from_millis(400);
/// First and longest pause between attempts: each stops the threads that run.
const GATHER_PAUSES: (Duration, Duration) = (Duration::from_micros(100), Duration::from_millis(3));
/// Longest time for which threads are stopped.
const HOLD: Duration = Duration::from_secs(3);
/// Time after which threads go on if the tracer waits for a lock, which one of them may hold, or has not begun.
const STUCK: Duration = Duration::from_millis(300);
/// Pause between two looks at the tracer's thread while threads are stopped.
const HOLD_PAUSE: Duration = Duration::from_millis(20);

/// Beginnings of the names of the driver's functions that create contexts or load code.
const STARTING: [&str; 5] = ["cuInit", "cuCtxCreate", "cuDevicePrimaryCtxRetain", "cuModuleLoad", "cuLibraryLoad"];
const INSTANTIATING: [&str; 1] = ["cuGraphInstantiate"];
/// Beginnings of the names of those in which a thread may stay for long, because they wait for the GPU.
const WAITING: [&str; 11] = [
    "cuStreamSynchronize",
    "cuEventSynchronize",
    "cuCtxSynchronize",
    "cuStreamWaitEvent",
    "cuEventQuery",
    "cuStreamQuery",
    "cuLaunch",
    "cuGraphLaunch",
    "cuMemcpy",
    "cuMemset",
    "cuMemFree",
];

/// Bits of an address of the program; aarch64 may sign return addresses with the others.
const ADDRESS: u64 = (1 << 48) - 1;

/// Memory of the process, and the code in it that matters.
pub struct Code<'a> {
    target: &'a Target,
    memory: File,
    map: Vec<Mapping>,
}

/// A thread: its stack pointer and program counter, and what stopped it if it was running.
struct Seen {
    at: (u64, u64),
    /// Number and first argument of the system call in which it is blocked; a negative number outside of one.
    blocked: Option<(i64, u64)>,
    stopped: Option<Stopped>,
}

impl<'a> Code<'a> {
    pub fn read(target: &'a Target) -> Result<Self, Refusal> {
        let memory = File::open(format!("/proc/{}/mem", target.pid)).map_err(|_| Refusal::Gone(target.pid))?;
        Ok(Self { target, memory, map: target.map()? })
    }

    /// Addresses of the driver's functions whose names begin with one of these.
    fn driver_functions(&self, beginnings: &[&str]) -> Vec<Range<u64>> {
        let Some(driver) = self.map.iter().find(|m| m.offset == 0 && m.name().starts_with("libcuda.so")) else { return Vec::new() };
        let Some(bytes) = mapped_file(self.target, driver) else { return Vec::new() };
        let Ok(file) = object::File::parse(&*bytes) else { return Vec::new() };
        let named = |n: &str| beginnings.iter().any(|b| n.starts_with(b));
        let symbols = file.dynamic_symbols().filter(|s| s.is_definition() && s.name().is_ok_and(named));
        symbols.map(|s| driver.start + s.address()..driver.start + s.address() + s.size().max(1)).collect()
    }

    /// Code of the libraries whose names satisfy a condition.
    fn library_code(&self, named: impl Fn(&str) -> bool) -> Vec<Range<u64>> {
        self.map.iter().filter(|m| m.permissions.contains('x') && named(m.name())).map(|m| m.start..m.end).collect()
    }

    /// Code of the dynamic loader.
    pub fn loader_code(&self) -> Vec<Range<u64>> {
        self.library_code(|name| name.starts_with("ld-linux") || name.starts_with("ld-2."))
    }

    /// The program's threads, without those that the driver started, which instantiate no graphs.
    pub fn threads(&self) -> Vec<i32> {
        let tasks = std::fs::read_dir(format!("/proc/{}/task", self.target.pid)).into_iter().flatten().flatten();
        let driver = |task: &std::fs::DirEntry| std::fs::read_to_string(task.path().join("comm")).is_ok_and(|c| is_of_driver(c.trim_end()));
        tasks.filter(|task| !driver(task)).filter_map(|e| e.file_name().to_str()?.parse().ok()).collect()
    }

    /// Stack pointer and program counter of a blocked thread, and the number and the first argument of its system call.
    pub fn blocked_thread(&self, tid: i32) -> Option<((u64, u64), (i64, u64))> {
        let text = std::fs::read_to_string(format!("/proc/{}/task/{tid}/syscall", self.target.pid)).unwrap_or_default();
        let words: Vec<&str> = text.split_whitespace().collect();
        // Number, six arguments, stack pointer and program counter of a blocked thread.
        let hex = |word: &str| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok();
        if let [number, .., pointer, counter] = words.as_slice()
            && let Some(at) = hex(pointer).zip(hex(counter))
        {
            let first = words.get(1).and_then(|w| hex(w)).unwrap_or(0);
            return Some((at, (number.parse().unwrap_or(-1), first)));
        }
        None
    }

    /// Looks at a thread; one that runs is stopped. `None` if it has ended.
    fn look_at(&self, tid: i32) -> Result<Option<Seen>, Refusal> {
        for attempt in 0..LOOKS {
            if let Some((at, call)) = self.blocked_thread(tid) {
                return Ok(Some(Seen { at, blocked: Some(call), stopped: None }));
            }
            if attempt + 1 < LOOKS {
                std::thread::park_timeout(LOOK_PAUSE);
            }
        }
        let Some(stopped) = stop_thread(self.target, tid)? else { return Ok(None) };
        self.target.check_alive()?;
        keep_waiting(stopped.thread);
        Ok(stack_and_code(stopped.thread).map(|at| Seen { at, blocked: None, stopped: Some(stopped) }))
    }

    /// Returns true if stopping a thread may make this system call fail.
    fn is_delicate(&self, (number, first): (i64, u64)) -> bool {
        let path = format!("/proc/{}/fd/{first}", self.target.pid);
        let file = || std::fs::read_link(&path).unwrap_or_default();
        let is_pipe = || std::fs::metadata(&path).is_ok_and(|m| m.file_type().is_fifo() || m.file_type().is_char_device());
        is_write(number) && is_pipe()
            || may_fail(number, || file().to_str().is_some_and(|name| name.starts_with("socket:") || name.contains("inotify")))
    }

    /// Returns true if a thread at this stack pointer and program counter is in this code, or was called from it. `depth`
    /// is the part of its stack to search, bytes.
    pub fn is_inside(&self, (pointer, counter): (u64, u64), code: &[Range<u64>], depth: usize) -> bool {
        let end = self.map.iter().find(|m| (m.start..m.end).contains(&pointer)).map_or(pointer + 4096, |m| m.end);
        let mut stack = vec![0_u8; usize::try_from(end - pointer).unwrap_or(depth).min(depth)];
        let read = self.memory.read_exact_at(&mut stack, pointer).is_ok();
        let inside = |address: u64| code.iter().any(|c| c.contains(&address));
        inside(counter) || read && stack.as_chunks::<8>().0.iter().any(|word| inside(u64::from_ne_bytes(*word) & ADDRESS))
    }
}

/// Threads that the driver starts are named `cuda-EvtHandlr` or `cuda00001400006`.
fn is_of_driver(name: &str) -> bool {
    let numbered = |rest: &str| rest.len() == 11 && rest.bytes().all(|b| b.is_ascii_hexdigit());
    name.strip_prefix("cuda").is_some_and(|rest| rest.starts_with("-Evt") || numbered(rest))
}

/// Waits until no thread has instantiated a graph, created a context or loaded code for a while. Fails if graphs are
/// still instantiated when time is up.
fn await_pause(target: &Target, until: Instant) -> Result<(), Refusal> {
    let mut code = Code::read(target)?;
    let instantiating = code.driver_functions(&INSTANTIATING);
    let starting = code.driver_functions(&STARTING);
    let quiet = if is_young(target) { QUIET_AT_FIRST } else { QUIET };
    let (mut seen, mut instantiated) = (Instant::now(), Instant::now());
    while seen.elapsed() < quiet && !instantiating.is_empty() {
        target.check_alive()?;
        code.map = target.map()?;
        for tid in code.threads() {
            let Some(thread) = code.look_at(tid)? else { continue };
            if code.is_inside(thread.at, &instantiating, DEPTH) {
                (seen, instantiated) = (Instant::now(), Instant::now());
                break;
            }
            if code.is_inside(thread.at, &starting, DEPTH) {
                seen = Instant::now();
            }
        }
        if Instant::now() > until {
            return if instantiated.elapsed() < quiet { Err(Refusal::Instantiating(target.pid)) } else { Ok(()) };
        }
        std::thread::park_timeout(quiet / QUIET_LOOKS);
    }
    Ok(())
}

/// Keeps threads stopped until they are released, or until one of them may be what the tracer waits for.
fn hold_while_subscribing(target: &Target, released: &Receiver<()>) {
    let began = Instant::now();
    let mut went_on = began;
    while matches!(released.recv_timeout(HOLD_PAUSE), Err(RecvTimeoutError::Timeout)) && began.elapsed() < HOLD {
        let Ok(code) = Code::read(target) else { return };
        let tracer = code.library_code(|name| name.starts_with("tracer-"));
        let called = code.library_code(|name| name.starts_with("libcupti.so") || name.starts_with("libcuda.so"));
        // A thread that runs, or that is inside CUPTI or the driver and does not wait for a lock.
        let goes_on = |tid: &i32| match code.blocked_thread(*tid) {
            Some((at, (number, _))) => {
                number != nix::libc::SYS_futex && code.is_inside(at, &tracer, DEPTH) && code.is_inside(at, &called, DEPTH)
            }
            None => true,
        };
        if code.threads().iter().filter(|tid| is_of_tracer(target, **tid)).any(goes_on) {
            went_on = Instant::now();
        }
        if went_on.elapsed() > STUCK {
            return;
        }
    }
}

/// Threads that the tracer starts have its name (injection.c), as do those that CUPTI starts on them.
fn is_of_tracer(target: &Target, tid: i32) -> bool {
    std::fs::read_to_string(format!("/proc/{}/task/{tid}/comm", target.pid)).is_ok_and(|name| name.trim_end() == "warpscope")
}

fn is_young(target: &Target) -> bool {
    target.age().is_some_and(|age| age < YOUNG)
}

/// Stops all threads outside of the driver and the loader, except those of the tracer and those whose system call would
/// fail. Also returns true if a graph was being instantiated when time was up or, in a young program, if a thread was
/// inside of a function of the driver that does not wait for the GPU. `known` receives the stopped threads, so that
/// `reap_ended` can reap those that end meanwhile.
fn stop_threads(target: &Target, known: &Mutex<Vec<Pid>>) -> Result<(Vec<Stopped>, bool), Refusal> {
    let code = Code::read(target)?;
    let (instantiating, waiting) = (code.driver_functions(&INSTANTIATING), code.driver_functions(&WAITING));
    let young = is_young(target);
    let driver = code.library_code(|name| name.starts_with("libcuda.so"));
    let busy: Vec<Range<u64>> = driver.iter().cloned().chain(code.loader_code()).collect();
    let allocators = code.library_code(|name| name.starts_with("libc.so") || name.starts_with("libc-2.") || name.contains("malloc"));
    let tracer = code.library_code(|name| name.starts_with("tracer-"));
    let mut held: Vec<Stopped> = Vec::new();
    let (began, mut pause) = (Instant::now(), GATHER_PAUSES.0);
    loop {
        let (mut left, mut calling) = (false, false);
        for tid in code.threads() {
            if held.iter().any(|h| h.thread.as_raw() == tid) {
                continue;
            }
            // There may be thousands of threads, and those that are already stopped must not be held up for long.
            if began.elapsed() > GATHER {
                left = true;
                break;
            }
            let Some(mut seen) = code.look_at(tid)? else { continue };
            if code.is_inside(seen.at, &tracer, DEPTH) || seen.blocked.is_some_and(|call| code.is_delicate(call)) {
                continue;
            }
            let waits = seen.blocked.is_some_and(|(number, _)| number >= 0);
            // A thread in state D, which waits for a disk, stops only once the disk has answered.
            if waits && !code.is_inside(seen.at, &busy, DEPTH) && !is_in_state(target.pid, tid, &['D']) {
                // It may have left the system call in the meantime, so its registers are read again.
                let Some(stopped) = stop_thread(target, tid)? else { continue };
                keep_waiting(stopped.thread);
                seen = match stack_and_code(stopped.thread) {
                    Some(at) => Seen { at, blocked: None, stopped: Some(stopped) },
                    None => continue,
                };
            }
            let in_allocator = !waits && allocators.iter().any(|c| c.contains(&seen.at.1));
            match seen.stopped {
                Some(stopped) if !in_allocator && !code.is_inside(seen.at, &busy, DEPTH) => {
                    if let Ok(mut all) = known.lock() {
                        all.push(stopped.thread);
                    }
                    held.push(stopped);
                }
                _ => {
                    left = true;
                    let calls = || code.is_inside(seen.at, &driver, DEPTH) && !code.is_inside(seen.at, &waiting, DEPTH);
                    calling |= code.is_inside(seen.at, &instantiating, DEPTH) || young && calls();
                }
            }
        }
        if !left || began.elapsed() > GATHER {
            return Ok((held, calling));
        }
        std::thread::park_timeout(pause);
        pause = (pause * 2).min(GATHER_PAUSES.1);
    }
}

/// Reaps stopped threads that have ended: a program that becomes another one (execve) waits for this, and the thread that
/// stops others waits for the program. Any thread of the tracing process may do so (wait(2), `__WNOTHREAD`).
fn reap_ended(stopped: &Mutex<Vec<Pid>>) {
    let all = stopped.lock().map(|all| all.clone()).unwrap_or_default();
    for thread in all {
        // In /proc, the id of a thread also works as that of a process.
        if is_in_state(thread.as_raw(), thread.as_raw(), &['Z']) {
            let _ = waitpid(thread, Some(WaitPidFlag::__WALL | WaitPidFlag::WNOHANG));
        }
    }
}

/// Threads that are stopped until this is dropped, or until the tracer waits for them, and for at most [`HOLD`].
#[derive(Debug)]
pub struct HeldThreads {
    _release: Sender<()>,
}

/// Result of an attempt to stop the threads in a pause.
enum Attempt {
    Held,
    /// A thread was calling the driver, or a signal interfered.
    Repeat,
}

/// Waits until the process instantiates no graphs, and stops its threads. Each attempt has a thread of its own, for the
/// reason given at `on_tracer_thread`.
pub fn hold_threads(target: &Target) -> Result<HeldThreads, Refusal> {
    let until = Instant::now() + PATIENCE;
    loop {
        let (release, released): (Sender<()>, Receiver<()>) = channel();
        let (tell, told) = channel();
        let target = target.clone();
        let known: Arc<Mutex<Vec<Pid>>> = Arc::default();
        let stopped = Arc::clone(&known);
        std::thread::spawn(move || {
            let held = await_pause(&target, until).map(|()| match stop_threads(&target, &known) {
                Err(Refusal::Signalled(_)) => (Vec::new(), Attempt::Repeat),
                Ok((_, true)) if Instant::now() < until => (Vec::new(), Attempt::Repeat),
                Ok((held, _)) => (held, Attempt::Held),
                // If a thread cannot be stopped, the pause alone has to suffice.
                Err(_) => (Vec::new(), Attempt::Held),
            });
            let (held, attempt) = match held {
                Ok((held, attempt)) => (held, Ok(attempt)),
                Err(Refusal::Signalled(_)) if Instant::now() < until => (Vec::new(), Ok(Attempt::Repeat)),
                Err(e) => (Vec::new(), Err(e)),
            };
            let holds = matches!(attempt, Ok(Attempt::Held));
            let _ = tell.send(attempt);
            if holds {
                hold_while_subscribing(&target, &released);
            }
            drop(held);
        });
        let attempt = loop {
            match told.recv_timeout(PAUSE) {
                Ok(attempt) => break attempt,
                Err(RecvTimeoutError::Timeout) => reap_ended(&stopped),
                Err(RecvTimeoutError::Disconnected) => break Ok(Attempt::Held),
            }
        };
        if let Attempt::Held = attempt? {
            return Ok(HeldThreads { _release: release });
        }
        std::thread::park_timeout(PAUSE);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn threads_of_the_driver_are_known_by_their_names() {
        for (name, driver) in
            [("cuda-EvtHandlr", true), ("cuda00001400006", true), ("cuda_bench", false), ("cudagraphs", false), ("python", false)]
        {
            assert_eq!(is_of_driver(name), driver, "{name}");
        }
    }
}
