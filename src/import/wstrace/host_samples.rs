//! Samples of launching threads, and the functions and stacks that they refer to.

use super::names::Names;
use super::python_lines::find_line;
use super::rows::Rows;
use super::varint::Cursor;
use crate::model::{Activity, CallStack, Sample, Samples, StackFrame, Threads};
use rustc_hash::FxHashMap;

/// A Python function.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct FunctionRow {
    number: u32,
    /// String numbers.
    file: u32,
    name: u32,
    first_line: i64,
    /// Minor version of Python 3, which determines the encoding of `lines`.
    minor: u32,
    lines: Vec<u8>,
}

/// A frame on top of another stack.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StackRow {
    number: u32,
    /// Stack of the caller; 0 for the outermost frame.
    caller: u32,
    /// 0 if frames are missing here: the stack was too deep.
    function: u32,
    /// Offset of the instruction in the function's code, bytes.
    offset: i64,
}

/// A sample of a thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct SampleRow {
    thread: u32,
    /// ns since 1970.
    time: i64,
    /// 0 for none.
    stack: u32,
    activity: u8,
}

impl FunctionRow {
    pub fn size(&self) -> usize {
        self.lines.len()
    }
}

pub fn read_function(c: &mut Cursor<'_>) -> Option<FunctionRow> {
    Some(FunctionRow {
        number: c.read_u32()?,
        file: c.read_u32()?,
        name: c.read_u32()?,
        first_line: c.read_signed()?,
        minor: c.read_u32()?,
        lines: c.read_text()?.to_vec(),
    })
}

pub fn read_stack(c: &mut Cursor<'_>) -> Option<StackRow> {
    Some(StackRow { number: c.read_u32()?, caller: c.read_u32()?, function: c.read_u32()?, offset: c.read_signed()? })
}

/// Reads a row relative to the previous one of its block.
pub fn read_sample(c: &mut Cursor<'_>, before: &mut SampleRow) -> Option<SampleRow> {
    const MICROSECOND: i64 = 1000;
    let moved = |from: u32, by: i64| u32::try_from(i64::from(from).checked_add(by)?).ok();
    *before = SampleRow {
        thread: moved(before.thread, c.read_signed()?)?,
        time: before.time.checked_add(c.read_signed()?.checked_mul(MICROSECOND)?)?,
        stack: moved(before.stack, c.read_signed()?)?,
        activity: c.read_byte()?,
    };
    Some(*before)
}

impl SampleRow {
    /// What comes before the first row of a block.
    pub const START: Self = Self { thread: 0, time: 0, stack: 0, activity: 0 };
}

fn activity_of(number: u8) -> Activity {
    // The tracer's numbers are those of the model.
    Activity::ALL.get(usize::from(number)).copied().unwrap_or_default()
}

/// Adds the samples of a process.
pub fn add_samples(names: &Names, rows: &Rows, threads: &mut Threads, out: &mut Samples) {
    let functions: FxHashMap<u32, &FunctionRow> = rows.functions.iter().map(|f| (f.number, f)).collect();
    let mut frames: FxHashMap<(u32, i64), u32> = FxHashMap::default();
    let mut stacks: FxHashMap<u32, u32> = FxHashMap::default();
    for row in &rows.stacks {
        let caller = match row.caller {
            0 => None,
            // The tracer writes callers first. Without one, the stack is not known.
            number => match stacks.get(&number) {
                Some(&caller) => Some(caller),
                None => continue,
            },
        };
        let frame = *frames.entry((row.function, row.offset)).or_insert_with(|| {
            out.frames.push(functions.get(&row.function).map_or_else(
                || StackFrame { function: "(more frames)".into(), ..StackFrame::default() },
                |f| StackFrame {
                    function: names.get(f.name).unwrap_or_else(|| "(unnamed function)".into()),
                    file: names.get(f.file),
                    line: find_line(&f.lines, f.minor, f.first_line, row.offset),
                    python: true,
                },
            ));
            u32::try_from(out.frames.len() - 1).unwrap_or(u32::MAX)
        });
        let number = u32::try_from(out.stacks.len()).unwrap_or(u32::MAX);
        out.stacks.push(CallStack { caller, frame });
        stacks.insert(row.number, number);
    }
    out.samples.extend(rows.samples.iter().filter(|s| s.time > 0).map(|s| Sample {
        time: names.session_time(s.time),
        thread: threads.get_or_insert(names.pid, s.thread).0,
        stack: stacks.get(&s.stack).copied(),
        activity: activity_of(s.activity),
    }));
}
