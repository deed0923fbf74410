//! Python stacks that nsys samples (`--python-sampling=true`). They are marks in an NVTX domain, written by nsys's own
//! sampling thread, with an extended payload: the thread's state, the source, and the function, file and line of each
//! frame.
//!
//! Before nsys 2025, marks do not name the sampled thread. A stack of a process's main thread can be recognized,
//! because its outermost call is the module, so only these stacks are read. Newer marks belong to the sampled thread.

use super::strings::Strings;
use crate::model::{Activity, CallStack, Sample, Samples, StackFrame, Threads};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Domains of the marks, before nsys 2025 and since then.
pub const DOMAINS: [&str; 2] = ["Python Backtrace", "Python Periodic Sampling"];
/// Number of bytes before the frames, and per frame. Counts and lines have 4 bytes, followed by 4 bytes of padding. The
/// frames are preceded by state, source and count; since 2025, by the id of the interpreter's thread state (8 bytes),
/// the state and the count.
const HEAD: usize = 16;
const FRAME: usize = 24;
/// Source of regular samples; backtraces of CUDA calls have a different source.
const PERIODIC: u32 = 1;
/// State of a thread that waits for a lock or a condition. Running and sleeping threads share another state.
const BLOCKING_WAIT: u32 = 2;
/// Valid thread states: running, blocking wait, uninterruptible. They distinguish the newer payload from other data.
const STATES: std::ops::RangeInclusive<u32> = 1..=3;
/// Outermost functions of a main thread: for a script, and for a module that is run with `python -m`.
const MAIN: [&str; 2] = ["<module>", "_run_module_as_main"];

/// String ids of function and file, and the line.
type Frame = (i64, i64, u32);

/// A mark with a sampled stack as its payload.
#[derive(Debug)]
pub struct Mark {
    pub pid: u32,
    /// The sampled thread, if known.
    tid: Option<u32>,
    pub domain: i64,
    /// Nanoseconds since the session began.
    pub time: i64,
    blocked: bool,
    /// Innermost first.
    frames: Box<[Frame]>,
}

/// Marks in the domain.
#[derive(Debug, Default)]
pub struct Marks {
    pub list: Vec<Mark>,
    /// Number of marks whose payload was not exported.
    pub without_payload: u64,
}

impl Mark {
    /// Reads the payload of a thread's mark; `None` if it has a different format.
    pub fn from_payload(bytes: &[u8], (pid, tid): (u32, Option<u32>), domain: i64, time: i64) -> Option<Self> {
        let short = |at: usize| Some(u32::from_le_bytes(bytes.get(at..at + 4)?.try_into().ok()?));
        let long = |at: usize| Some(i64::from_le_bytes(bytes.get(at..at + 8)?.try_into().ok()?));
        let holds = |count: u32| HEAD.checked_add((count as usize).checked_mul(FRAME)?).filter(|n| *n == bytes.len());
        let (state, count, tid) = if short(4)? == PERIODIC && holds(short(8)?).is_some() {
            (short(0)?, short(8)?, None)
        } else if STATES.contains(&short(8)?) && holds(short(12)?).is_some() {
            (short(8)?, short(12)?, tid)
        } else {
            return None;
        };
        let frame = |i: usize| Some((long(HEAD + i * FRAME)?, long(HEAD + i * FRAME + 8)?, short(HEAD + i * FRAME + 16)?));
        let frames = (0..count as usize).map(frame).collect::<Option<_>>()?;
        Some(Self { pid, tid, domain, time, blocked: state == BLOCKING_WAIT, frames })
    }

    /// Returns the sampled thread; the main thread unless the mark names another one.
    fn thread(&self) -> u32 {
        self.tid.unwrap_or(self.pid)
    }

    /// Memory usage, bytes.
    pub fn size(&self) -> u64 {
        (size_of::<Self>() + size_of_val(&*self.frames)) as u64
    }
}

/// Returns a string without the HTML escapes that nsys puts into names.
fn without_escapes(text: &str) -> String {
    text.replace("&lt;", "<").replace("&gt;", ">").replace("&quot;", "\"").replace("&amp;", "&")
}

/// Builds the samples, sorted by time.
pub fn build_samples(mut marks: Vec<Mark>, strings: &mut Strings<'_>, threads: &mut Threads) -> Samples {
    marks.sort_by_key(|m| (m.time, m.pid));
    let mut texts: FxHashMap<i64, Option<Arc<str>>> = FxHashMap::default();
    let mut text = |id: i64| texts.entry(id).or_insert_with(|| strings.get(id).map(|t| without_escapes(&t).into())).clone();
    let mut is_main = |mark: &Mark| {
        let outermost = mark.frames.last().and_then(|f| text(f.0));
        mark.tid.is_some() && outermost.is_some() || outermost.is_some_and(|function| MAIN.contains(&&*function))
    };
    marks.retain(&mut is_main);
    // A thread has only one stack at a time: if there are two, neither is reliable.
    let mut times: FxHashMap<(i64, u32, u32), u32> = FxHashMap::default();
    for mark in &marks {
        *times.entry((mark.time, mark.pid, mark.thread())).or_default() += 1;
    }
    marks.retain(|m| times.get(&(m.time, m.pid, m.thread())) == Some(&1));
    let mut out = Samples::default();
    let mut frames: FxHashMap<Frame, u32> = FxHashMap::default();
    let mut distinct: FxHashMap<CallStack, u32> = FxHashMap::default();
    for mark in &marks {
        let mut stack = None;
        for &key in mark.frames.iter().rev() {
            let frame = *frames.entry(key).or_insert_with(|| {
                let (function, file, line) = key;
                let function = text(function).unwrap_or_else(|| Arc::from("(unknown)"));
                out.frames.push(StackFrame {
                    function,
                    file: text(file),
                    line: (line > 0).then_some(line),
                    first_line: false,
                    python: true,
                    ..StackFrame::default()
                });
                u32::try_from(out.frames.len() - 1).unwrap_or(u32::MAX)
            });
            stack = Some(*distinct.entry(CallStack { caller: stack, frame }).or_insert_with_key(|stack| {
                out.stacks.push(*stack);
                u32::try_from(out.stacks.len() - 1).unwrap_or(u32::MAX)
            }));
        }
        let activity = if mark.blocked { Activity::Lock } else { Activity::Unknown };
        let thread = threads.get_or_insert(mark.pid, mark.thread()).0;
        out.samples.push(Sample { time: mark.time, thread, stack, activity, holds: false });
    }
    out
}
