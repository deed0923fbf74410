//! Waits for a moment in which no thread of a process instantiates a CUDA graph.
//!
//! CUPTI crashes a program if it is subscribed to while another thread is inside of `cuGraphInstantiate` (13.0 on an
//! H200: 10 of 377 programs that were attached to while they started). Afterwards, older graphs may be instantiated.

use super::memory_map::Mapping;
use super::refusal::Refusal;
use super::registers::stack_pointer;
use super::seize::{mapped_file, stop_thread};
use super::target::Target;
use object::{Object, ObjectSymbol};
use std::fs::File;
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::time::{Duration, Instant};

/// Stack that is searched in each thread, bytes: below the driver's function there are a few frames.
const DEPTH: usize = 1 << 15;
/// Time for which no graph may have been instantiated: a program that captures many pauses between them.
const QUIET: Duration = Duration::from_millis(200);
const PAUSE: Duration = Duration::from_millis(5);
const PATIENCE: Duration = Duration::from_secs(10);

/// Addresses of the driver's functions that instantiate graphs.
fn find_functions(target: &Target, map: &[Mapping]) -> Vec<Range<u64>> {
    let Some(driver) = map.iter().find(|m| m.offset == 0 && m.name().starts_with("libcuda.so")) else { return Vec::new() };
    let Some(bytes) = mapped_file(target, driver) else { return Vec::new() };
    let Ok(file) = object::File::parse(&*bytes) else { return Vec::new() };
    let symbols = file.dynamic_symbols().filter(|s| s.is_definition() && s.name().is_ok_and(|n| n.starts_with("cuGraphInstantiate")));
    symbols.map(|s| driver.start + s.address()..driver.start + s.address() + s.size().max(1)).collect()
}

/// Returns the stack pointer of a thread; a thread that runs is stopped for a moment.
fn find_stack(target: &Target, tid: i32) -> Result<Option<u64>, Refusal> {
    let text = std::fs::read_to_string(format!("/proc/{}/task/{tid}/syscall", target.pid)).unwrap_or_default();
    // Number, six arguments, stack pointer and program counter of a blocked thread.
    let blocked = text.split_whitespace().rev().nth(1).and_then(|word| u64::from_str_radix(word.strip_prefix("0x")?, 16).ok());
    if let Some(pointer) = blocked {
        return Ok(Some(pointer));
    }
    let Some(stopped) = stop_thread(target, tid)? else { return Ok(None) };
    target.check_alive()?;
    Ok(stack_pointer(stopped.thread))
}

/// Returns true if a return address of one of the functions lies on the stack of a thread.
fn is_inside(target: &Target, memory: &File, map: &[Mapping], functions: &[Range<u64>]) -> Result<bool, Refusal> {
    let tasks = std::fs::read_dir(format!("/proc/{}/task", target.pid)).into_iter().flatten().flatten();
    for tid in tasks.filter_map(|e| e.file_name().to_str()?.parse::<i32>().ok()) {
        let Some(pointer) = find_stack(target, tid)? else { continue };
        let end = map.iter().find(|m| (m.start..m.end).contains(&pointer)).map_or(pointer + 4096, |m| m.end);
        let length = usize::try_from(end - pointer).unwrap_or(DEPTH).min(DEPTH);
        let mut stack = vec![0_u8; length];
        if memory.read_exact_at(&mut stack, pointer).is_err() {
            continue;
        }
        let inside = |word: &[u8; 8]| functions.iter().any(|f| f.contains(&u64::from_ne_bytes(*word)));
        if stack.as_chunks::<8>().0.iter().any(inside) {
            return Ok(true);
        }
    }
    Ok(false)
}

/// Waits until no thread has instantiated a graph for a while; fails if that takes too long.
pub fn await_no_instantiation(target: &Target) -> Result<(), Refusal> {
    let functions = find_functions(target, &target.map()?);
    if functions.is_empty() {
        return Ok(());
    }
    let memory = File::open(format!("/proc/{}/mem", target.pid)).map_err(|_| Refusal::Gone(target.pid))?;
    let began = Instant::now();
    let mut seen = began;
    while seen.elapsed() < QUIET {
        target.check_alive()?;
        if is_inside(target, &memory, &target.map()?, &functions)? {
            seen = Instant::now();
        }
        if began.elapsed() > PATIENCE {
            return Err(Refusal::Instantiating(target.pid));
        }
        std::thread::park_timeout(PAUSE);
    }
    Ok(())
}
