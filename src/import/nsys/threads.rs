//! Reads thread activity outside of CUDA: thread names, OS runtime calls, scheduling, sampled call stacks, and
//! profiler overhead.

use super::calls::{pid_of, tid_of};
use super::strings::Strings;
use crate::import::sqlite::db::Db;
use crate::import::sqlite::scan::{NULL, gather_rows};
use crate::import::{ImportError, Job};
use crate::model::{Activity, CallStack, OsCalls, Overhead, Sample, Samples, StackFrame, StateChange, ThreadState, Threads};
use rustc_hash::FxHashMap;
use std::sync::Arc;

const NAMES: &str = "ThreadNames";
const OSRT: &str = "OSRT_API";
const SCHED: &str = "SCHED_EVENTS";
const SAMPLES: &str = "COMPOSITE_EVENTS";
const CHAINS: &str = "SAMPLING_CALLCHAINS";
/// Symbols that nsys writes where it stops following a stack.
const ENDS: [&str; 2] = ["[Max depth]", "[Broken backtraces]"];
/// Tables with the overhead of nsys and, in newer exports, of CUPTI.
const OVERHEADS: [&str; 2] = ["PROFILER_OVERHEAD", "CUPTI_ACTIVITY_KIND_OVERHEAD"];

fn thread_id(threads: &mut Threads, global: i64) -> u32 {
    threads.get_or_insert(pid_of(global).unwrap_or_default(), tid_of(global).unwrap_or_default()).0
}

/// Reads the names of the threads in the report; exports contain the names of all threads on the machine.
pub fn read_names(
    db: &Db,
    job: &Job<'_>,
    strings: &mut Strings<'_>,
    threads: &mut Threads,
    used: &[(u32, u32)],
) -> Result<(), ImportError> {
    let rows = gather_rows(db, job, NAMES, ["nameId", "globalTid"], "thread names")?;
    for &(pid, tid) in used {
        threads.get_or_insert(pid, tid);
    }
    for [name, global] in rows {
        if let (Some(pid), Some(tid)) = (pid_of(global), tid_of(global))
            && threads.is_known(pid, tid)
            && let Some(name) = strings.get(name)
        {
            threads.set_name(pid, tid, name);
        }
    }
    Ok(())
}

/// Reads OS runtime calls, sorted by start.
pub fn os_calls(db: &Db, job: &Job<'_>, strings: &mut Strings<'_>, threads: &mut Threads) -> Result<OsCalls, ImportError> {
    let mut rows = gather_rows(db, job, OSRT, ["start", "end", "globalTid", "nameId"], "OS runtime calls")?;
    rows.retain(|row| row[0] != NULL);
    rows.sort_by_key(|row| row[0]);
    let mut out = OsCalls::default();
    let mut known: FxHashMap<i64, u32> = FxHashMap::default();
    for [start, end, global, name] in rows {
        out.start.push(start);
        out.duration.push(if end == NULL { 0 } else { end.saturating_sub(start).max(0) });
        out.thread.push(thread_id(threads, global));
        out.name.push(*known.entry(name).or_insert_with(|| {
            out.names.push(strings.get(name).unwrap_or_else(|| Arc::from("(unnamed call)")));
            u32::try_from(out.names.len() - 1).unwrap_or(u32::MAX)
        }));
    }
    Ok(out)
}

/// Reads the times at which threads were scheduled onto and off a CPU, sorted by time.
pub fn read_states(db: &Db, job: &Job<'_>, threads: &mut Threads) -> Result<Vec<StateChange>, ImportError> {
    let rows = gather_rows(db, job, SCHED, ["start", "cpu", "isSchedIn", "globalTid"], "scheduling")?;
    let mut out: Vec<StateChange> = rows
        .into_iter()
        .filter(|row| row[0] != NULL)
        .map(|[time, cpu, on, global]| StateChange {
            time,
            thread: thread_id(threads, global),
            state: if on == 1 { ThreadState::Running } else { ThreadState::Off },
            cpu: u16::try_from(cpu).ok(),
        })
        .collect();
    out.sort_by_key(|change| change.time);
    Ok(out)
}

/// Reads sampled call stacks of the host, sorted by time. Frames are symbols, with the names of their modules.
pub fn read_samples(db: &Db, job: &Job<'_>, strings: &mut Strings<'_>, threads: &mut Threads) -> Result<Samples, ImportError> {
    let mut out = Samples { running_only: true, ..Samples::default() };
    let mut rows = gather_rows(db, job, SAMPLES, ["id", "start", "globalTid"], "CPU samples")?;
    if rows.is_empty() {
        return Ok(out);
    }
    rows.sort_by_key(|row| row[1]);
    let mut frames: FxHashMap<(i64, i64), u32> = FxHashMap::default();
    // Depth and frame index, by sample.
    let mut found: FxHashMap<i64, Vec<(i64, u32)>> = FxHashMap::default();
    for [id, symbol, module, depth] in gather_rows(db, job, CHAINS, ["id", "symbol", "module", "stackDepth"], "CPU stacks")? {
        let frame = *frames.entry((symbol, module)).or_insert_with(|| {
            let function = strings.get(symbol).unwrap_or_else(|| Arc::from("(unknown)"));
            if ENDS.contains(&&*function) {
                return u32::MAX;
            }
            let module = strings.get(module);
            let file = module.as_deref().and_then(|m| m.rsplit(['/', '\\']).next()).filter(|f| !f.is_empty()).map(Arc::from);
            out.frames.push(StackFrame { function, file, ..StackFrame::default() });
            u32::try_from(out.frames.len() - 1).unwrap_or(u32::MAX)
        });
        if frame != u32::MAX {
            found.entry(id).or_default().push((depth, frame));
        }
    }
    let mut distinct: FxHashMap<CallStack, u32> = FxHashMap::default();
    for [id, time, global] in rows.into_iter().filter(|row| row[1] != NULL) {
        let mut frames = found.remove(&id).unwrap_or_default();
        frames.sort_unstable();
        // Depth 0 is the innermost frame, but a stack is built from the outermost frame.
        let mut stack = None;
        for (_, frame) in frames.into_iter().rev() {
            stack = Some(*distinct.entry(CallStack { caller: stack, frame }).or_insert_with_key(|stack| {
                out.stacks.push(*stack);
                u32::try_from(out.stacks.len() - 1).unwrap_or(u32::MAX)
            }));
        }
        // nsys only samples running threads.
        out.samples.push(Sample { time, thread: thread_id(threads, global), stack, activity: Activity::Running, holds: false });
    }
    Ok(out)
}

/// Reads the overhead of nsys and CUPTI, sorted by start.
pub fn read_overhead(db: &Db, job: &Job<'_>, strings: &mut Strings<'_>, threads: &mut Threads) -> Result<Vec<Overhead>, ImportError> {
    let mut out = Vec::new();
    for table in OVERHEADS {
        for [start, end, global, name] in gather_rows(db, job, table, ["start", "end", "globalTid", "nameId"], "overhead")? {
            if start != NULL {
                out.push(Overhead {
                    start,
                    duration: if end == NULL { 0 } else { end.saturating_sub(start).max(0) },
                    thread: thread_id(threads, global),
                    name: strings.get(name).unwrap_or_else(|| Arc::from("(unnamed overhead)")),
                });
            }
        }
    }
    out.sort_by_key(|o| o.start);
    Ok(out)
}
