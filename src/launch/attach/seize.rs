//! Redirects a waiting thread of a process to the code that loads the object.

use super::memory_map::{Mapping, find_gap};
use super::refusal::{Refusal, ptrace_refusal};
use super::registers::{REACH, Wait, write_return};
use super::target::{Target, tracer_of};
use super::wait_calls::wait_rank;
use crate::launch::tracer::OBJECT;
use nix::errno::Errno;
use nix::sys::ptrace;
use nix::sys::signal::Signal;
use nix::sys::wait::{Id, WaitPidFlag, WaitStatus, waitid, waitpid};
use nix::unistd::Pid;
use object::{Object, ObjectSymbol};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::Path;
use std::time::{Duration, Instant};

/// Time limits for finding a waiting thread and for loading the object, for stopping a thread, and for another tracer
/// to detach from it.
const PATIENCE: Duration = Duration::from_secs(10);
const STOP: Duration = Duration::from_secs(1);
const LETTING_GO: Duration = Duration::from_millis(100);
const PAUSE: Duration = Duration::from_millis(5);
const STOP_PAUSE: Duration = Duration::from_micros(50);
/// Time limit for the code to finish once dlopen has returned.
const SOON: Duration = Duration::from_millis(500);
/// Size of the stack on which the object is loaded (attach.c), bytes.
const STACK: u64 = 1 << 20;

fn nap() {
    std::thread::park_timeout(PAUSE);
}

/// Addresses of C library functions in the process.
struct Loader {
    dlopen: u64,
    dlsym: u64,
}

/// Opens the file of a mapping if it is still the file that was mapped.
pub fn mapped_file(target: &Target, mapping: &Mapping) -> Option<Vec<u8>> {
    let path = format!("/proc/{}/root{}", target.pid, mapping.path);
    let same = std::fs::metadata(&path).is_ok_and(|m| m.ino() == mapping.inode);
    if same { std::fs::read(path).ok() } else { None }
}

fn function_address(target: &Target, map: &[Mapping], names: &[&str], function: &str) -> Option<u64> {
    let first = map.iter().find(|m| m.offset == 0 && m.inode != 0 && names.contains(&m.name()))?;
    let bytes = mapped_file(target, first)?;
    let file = object::File::parse(&*bytes).ok()?;
    let symbol = file.dynamic_symbols().find(|s| s.is_definition() && s.name().is_ok_and(|n| n == function))?;
    // Shared libraries are linked at address 0.
    Some(first.start + symbol.address())
}

/// Finds dlopen and dlsym: in the C library since glibc 2.34, in libdl before that.
fn find_loader(target: &Target, map: &[Mapping]) -> Result<Loader, Refusal> {
    let pid = target.pid;
    if map.iter().any(|m| m.name().starts_with("ld-musl")) {
        return Err(Refusal::Loader { pid, what: "it is linked with musl" });
    }
    if !map.iter().any(|m| m.name() == "libc.so.6") {
        return Err(Refusal::Loader { pid, what: "it is linked statically" });
    }
    let address = |name| {
        let found = function_address(target, map, &["libc.so.6"], name);
        found.or_else(|| function_address(target, map, &["libdl.so.2"], name))
    };
    let missing = || Refusal::Loader { pid, what: "libc.so.6 was replaced since the program started" };
    Ok(Loader { dlopen: address("dlopen").ok_or_else(missing)?, dlsym: address("dlsym").ok_or_else(missing)? })
}

/// Finds unused memory at the ends of libraries' code: from the last byte of code to the end of the page, the kernel
/// maps memory that nothing executes.
fn find_rooms(target: &Target, map: &[Mapping], bytes: u64) -> Vec<u64> {
    const ALIGNMENT: u64 = 16;
    let Ok(memory) = std::fs::File::open(format!("/proc/{}/mem", target.pid)) else { return Vec::new() };
    // Up to 64 KiB on aarch64.
    let page_size = nix::unistd::sysconf(nix::unistd::SysconfVar::PAGE_SIZE).ok().flatten();
    let page_size = page_size.and_then(|n| usize::try_from(n).ok()).unwrap_or(4096);
    let room = |m: &Mapping| {
        let mut page = vec![0xff_u8; page_size];
        let page_start = m.end - page.len() as u64;
        memory.read_exact_at(&mut page, page_start).ok()?;
        let used = page.iter().rposition(|&b| b != 0).map_or(0, |at| at as u64 + 1);
        // A zero byte may still belong to the last instruction.
        let start = (page_start + used + 8).next_multiple_of(ALIGNMENT);
        (used > 0 && start + bytes <= m.end).then_some(start)
    };
    map.iter().filter(|m| m.is_code() && m.end - m.start >= bytes).filter_map(room).collect()
}

/// Addresses at which the thread continues after the code: normally, and if a signal handler has run in between.
type WaysBack = (u64, Option<u64>);

/// Returns the object's code for attaching (attach.c) with the words at its end filled in for this process.
fn write_code(room: u64, loader: &Loader, stack: u64, ways: WaysBack, object: &Path, settings: &Path) -> Option<Vec<u8>> {
    use std::os::unix::ffi::OsStrExt;
    const WORDS: usize = 7 * 8;
    let own = object::File::parse(OBJECT).ok()?;
    let symbol = own.dynamic_symbols().find(|s| s.name() == Ok("warpscope_attach_code"))?;
    let section = own.section_by_index(symbol.section_index()?).ok()?;
    let code = object::ObjectSection::data_range(&section, symbol.address(), symbol.size()).ok()??;
    let mut out = code.to_vec();
    let (at_object, words) = (room + out.len() as u64, out.len() - WORDS);
    let at_settings = at_object + object.as_os_str().len() as u64 + 1;
    for (n, word) in [loader.dlopen, loader.dlsym, stack, at_object, at_settings].into_iter().enumerate() {
        out[words + (n + 1) * 8..words + (n + 2) * 8].copy_from_slice(&word.to_le_bytes());
    }
    write_return(&mut out, words, room, ways);
    for path in [object, settings] {
        out.extend_from_slice(path.as_os_str().as_bytes());
        out.push(0);
    }
    // ptrace writes whole words.
    out.resize(out.len().next_multiple_of(8), 0);
    Some(out)
}

/// Threads that are waiting in one of the listed system calls, best first.
fn waiting_threads(pid: i32) -> Vec<i32> {
    let tasks = std::fs::read_dir(format!("/proc/{pid}/task")).into_iter().flatten().flatten();
    let rank = |tid: i32| {
        let text = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/syscall")).ok()?;
        let number: i64 = text.split(' ').next()?.parse().ok()?;
        wait_rank(number)
    };
    let mut found: Vec<(usize, i32)> =
        tasks.filter_map(|e| e.file_name().to_str()?.parse().ok()).filter_map(|tid| Some((rank(tid)?, tid))).collect();
    found.sort_unstable();
    found.into_iter().map(|f| f.1).collect()
}

/// A thread stopped by this process; it continues when this value is dropped or this process ends.
pub struct Stopped {
    pub thread: Pid,
    /// Signal that arrived while the thread was stopped.
    signal: Option<Signal>,
}

impl Drop for Stopped {
    fn drop(&mut self) {
        // The thread may have been killed.
        let _ = ptrace::detach(self.thread, self.signal);
    }
}

/// Returns true if a thread is in one of these states (`/proc/PID/task/TID/stat`), or is gone.
pub fn is_in_state(pid: i32, tid: i32, states: &[char]) -> bool {
    let stat = std::fs::read_to_string(format!("/proc/{pid}/task/{tid}/stat")).unwrap_or_default();
    stat.rsplit_once(") ").is_none_or(|(_, rest)| rest.starts_with(states))
}

/// Does work with ptrace on a thread of its own, because a tracer is a single thread: when it ends, the kernel detaches
/// it from threads that stopped too late to be noticed, and delivers the signals that they had just been sent. Repeats
/// the work if such a signal interfered.
pub fn on_tracer_thread<T: Send>(work: impl Fn() -> Result<T, Refusal> + Sync) -> Result<T, Refusal> {
    let until = Instant::now() + PATIENCE;
    loop {
        match std::thread::scope(|scope| scope.spawn(&work).join()) {
            Ok(Err(Refusal::Signalled(_))) if Instant::now() < until => nap(),
            Ok(result) => return result,
            Err(panic) => std::panic::resume_unwind(panic),
        }
    }
}

fn is_own_thread(tid: i32) -> bool {
    Path::new(&format!("/proc/self/task/{tid}")).exists()
}

/// Makes this thread the tracer of another one; false if that has ended.
fn seize(target: &Target, tid: i32) -> Result<bool, Refusal> {
    let since = Instant::now();
    loop {
        match ptrace::seize(Pid::from_raw(tid), ptrace::Options::empty()) {
            Ok(()) => return Ok(true),
            Err(Errno::ESRCH) => return Ok(false),
            // The kernel also returns EPERM for threads that are ending (ptrace_attach in kernel/ptrace.c).
            Err(Errno::EPERM) if is_in_state(target.pid, tid, &['Z', 'X', 'x']) => return Ok(false),
            Err(Errno::EPERM) if since.elapsed() < LETTING_GO => nap(),
            // Its tracer may be an earlier thread of this process: the kernel detaches that some time after its join.
            Err(Errno::EPERM) if since.elapsed() < PATIENCE && tracer_of(target.pid, tid).is_some_and(is_own_thread) => nap(),
            // The thread may have ended, or its tracer may have detached, in the meantime.
            Err(Errno::EPERM) if since.elapsed() < STOP && tracer_of(target.pid, tid).is_none() => nap(),
            Err(Errno::EPERM) if let Some(tracer) = tracer_of(target.pid, tid) => {
                return Err(Refusal::Debugged { pid: target.pid, tracer });
            }
            Err(Errno::EPERM | Errno::ENOSYS | Errno::EACCES) => return Err(ptrace_refusal(target.pid)),
            Err(e) => return Err(Refusal::System { pid: target.pid, source: e.into() }),
        }
    }
}

/// Stops a thread; `None` if it has ended or does not stop.
pub fn stop_thread(target: &Target, tid: i32) -> Result<Option<Stopped>, Refusal> {
    let thread = Pid::from_raw(tid);
    if !seize(target, tid)? {
        return Ok(None);
    }
    let mut stopped = Stopped { thread, signal: None };
    if ptrace::interrupt(thread).is_err() {
        return Ok(None);
    }
    let all = WaitPidFlag::__WALL | WaitPidFlag::WNOHANG;
    let until = Instant::now() + STOP;
    while Instant::now() < until {
        // A real-time signal, such as that of pthread_cancel, has no `Signal` with which the thread could be continued.
        // Its stop is left pending, so that the kernel delivers the signal when this tracing thread ends.
        if let Err(Errno::EINVAL) = waitid(Id::Pid(thread), all | WaitPidFlag::WSTOPPED | WaitPidFlag::WEXITED | WaitPidFlag::WNOWAIT) {
            std::mem::forget(stopped);
            return Err(Refusal::Signalled(target.pid));
        }
        match waitpid(thread, Some(all)) {
            Ok(WaitStatus::PtraceEvent(..)) => return Ok(Some(stopped)),
            // A signal for the program: it is delivered when the thread continues, and the requested stop follows.
            Ok(WaitStatus::Stopped(_, signal)) if ptrace::cont(thread, signal).is_ok() => {}
            Ok(WaitStatus::StillAlive) => std::thread::park_timeout(STOP_PAUSE),
            _ => break,
        }
    }
    stopped.signal = None;
    Ok(None)
}

/// Redirects a waiting thread to the code; returns false if it is no longer waiting.
fn send_thread(target: &Target, tid: i32, rooms: &[u64], code: &dyn Fn(u64, WaysBack) -> Option<Vec<u8>>) -> Result<bool, Refusal> {
    let Some(stopped) = stop_thread(target, tid)? else { return Ok(false) };
    // The id may have been reused by another process since it was looked up.
    target.check_alive()?;
    let system = |e: Errno| Refusal::System { pid: target.pid, source: e.into() };
    let Some(wait) = Wait::read(stopped.thread) else { return Ok(false) };
    let back = wait.back();
    let Some(&room) = rooms.iter().find(|room| room.abs_diff(back) < REACH) else { return Ok(false) };
    let Some(code) = code(room, (back, wait.interrupted())) else { return Err(Refusal::Machine) };
    for (at, word) in code.as_chunks::<8>().0.iter().enumerate() {
        let address = std::ptr::with_exposed_provenance_mut((room + at as u64 * 8) as usize);
        ptrace::write(stopped.thread, address, i64::from_le_bytes(*word)).map_err(system)?;
    }
    wait.redirect(stopped.thread, room).map_err(system)?;
    Ok(true)
}

/// Interprets the progress that the code records at the start of its stack (attach.c).
fn describe_failure(word: u64) -> Option<&'static str> {
    match word {
        0 | 1 | 16 => None,
        2 => Some("dlopen failed; the folder may be mounted noexec, or a security module forbids it"),
        3 => Some("it is not the tracer's object"),
        17 => Some("it is traced already"),
        18 => Some("its settings cannot be read by the program"),
        _ => Some("no thread could be started"),
    }
}

/// Waits until the code has run.
fn await_load(target: &Target, stack: u64, object: &Path) -> Result<(), Refusal> {
    let memory = std::fs::File::open(format!("/proc/{}/mem", target.pid)).map_err(|_| Refusal::Gone(target.pid))?;
    let mut until = Instant::now() + PATIENCE;
    let mut word = 0_u64;
    while word < 16 && Instant::now() < until {
        target.check_alive()?;
        let mut bytes = [0; 8];
        // Reading fails until the code has mapped the stack.
        let before = word;
        if memory.read_exact_at(&mut bytes, stack).is_ok() {
            word = u64::from_le_bytes(bytes);
        }
        // After dlopen, the code takes only microseconds: it either finishes or returns because something failed.
        if before < 2 && word >= 2 {
            until = until.min(Instant::now() + SOON);
        }
        nap();
    }
    let why = describe_failure(word).or((word < 16).then_some("the program did not load it within 10 s"));
    match why {
        None => Ok(()),
        Some(why) => Err(Refusal::NotLoaded { pid: target.pid, object: object.display().to_string(), why }),
    }
}

/// Loads the object into a process; see the module documentation.
pub fn load_object(target: &Target, object: &Path, settings: &Path) -> Result<(), Refusal> {
    on_tracer_thread(|| send_and_await(target, object, settings))
}

fn send_and_await(target: &Target, object: &Path, settings: &Path) -> Result<(), Refusal> {
    let map = target.map()?;
    let loader = find_loader(target, &map)?;
    let stack = find_gap(&map, STACK).ok_or(Refusal::Busy(target.pid))?;
    let length = write_code(0, &loader, stack, (0, None), object, settings).ok_or(Refusal::Machine)?.len() as u64;
    let rooms = find_rooms(target, &map, length);
    if rooms.is_empty() {
        return Err(Refusal::Busy(target.pid));
    }
    let code = |room, ways| write_code(room, &loader, stack, ways, object, settings);
    let until = Instant::now() + PATIENCE;
    loop {
        for tid in waiting_threads(target.pid) {
            if send_thread(target, tid, &rooms, &code)? {
                return await_load(target, stack, object);
            }
        }
        target.check_alive()?;
        if Instant::now() >= until {
            return Err(Refusal::Busy(target.pid));
        }
        nap();
    }
}
