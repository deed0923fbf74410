//! Samples of launching threads, and the functions and stacks that they refer to.

use super::host_sample_rows::{FunctionRow, StackRow};
use super::names::Names;
use super::native_frames;
use super::python_lines::find_line;
use super::rows::Rows;
use crate::model::{Activity, CallStack, Sample, Samples, StackFrame, Threads};
use rustc_hash::FxHashMap;

fn activity_of(number: u8) -> Activity {
    // The tracer uses the same numbers as the model.
    Activity::ALL.get(usize::from(number)).copied().unwrap_or_default()
}

/// Maximum number of frames to keep per stack; the tracer writes at most 257.
const DEEPEST: u32 = 1024;
/// Maximum size of a line table to use, bytes; the tracer writes at most 16 kB.
const LONGEST_TABLE: usize = 64 << 10;
/// Flag in the activity: the thread holds the interpreter lock that others are waiting for.
const HOLDS: u8 = 64;

/// Adds the samples of a process; maps its stack ids to those of the model.
pub fn add_samples(names: &Names, rows: &Rows, threads: &mut Threads, out: &mut Samples) -> FxHashMap<u32, u32> {
    let functions: FxHashMap<u32, &FunctionRow> = rows.functions.iter().map(|f| (f.number, f)).collect();
    let build_frame = |row: &StackRow| match functions.get(&row.function) {
        None => StackFrame { function: "(more frames)".into(), ..StackFrame::default() },
        Some(f) => StackFrame {
            function: names.get(f.name).unwrap_or_else(|| "(unnamed function)".into()),
            file: names.get(f.file),
            line: Some(&f.lines).filter(|l| l.len() <= LONGEST_TABLE).and_then(|l| find_line(l, f.minor, f.first_line, row.offset)),
            first_line: false,
            python: true,
            ..StackFrame::default()
        },
    };
    let mut native = native_frames::build_frames(names, rows);
    // Several instructions on the same line are one frame.
    let mut frames: FxHashMap<StackFrame, u32> = FxHashMap::default();
    let mut of_instruction: FxHashMap<(u32, i64), Vec<u32>> = FxHashMap::default();
    let mut interned: FxHashMap<CallStack, u32> = FxHashMap::default();
    // Id and depth of each stack.
    let mut stacks: FxHashMap<u32, (u32, u32)> = FxHashMap::default();
    for row in &rows.stacks {
        let caller = match row.caller {
            0 => None,
            // The tracer writes callers first. If the caller is missing, the stack is unknown.
            number => match stacks.get(&number) {
                Some(&caller) => Some(caller),
                None => continue,
            },
        };
        let depth = caller.map_or(0, |c| c.1 + 1);
        if depth >= DEEPEST {
            continue;
        }
        let key = (row.function, row.offset);
        let inner = of_instruction.entry(key).or_insert_with(|| {
            let of_row = native.remove(&key).unwrap_or_else(|| vec![build_frame(row)]);
            let add = |frame| {
                *frames.entry(frame).or_insert_with_key(|frame| {
                    out.frames.push(frame.clone());
                    u32::try_from(out.frames.len() - 1).unwrap_or(u32::MAX)
                })
            };
            of_row.into_iter().map(add).collect()
        });
        let mut number = caller.map(|c| c.0);
        // A native instruction may be in several functions, of which the inner ones were inlined.
        for &frame in inner.iter().rev() {
            number = Some(*interned.entry(CallStack { caller: number, frame }).or_insert_with_key(|stack| {
                out.stacks.push(*stack);
                u32::try_from(out.stacks.len() - 1).unwrap_or(u32::MAX)
            }));
        }
        stacks.extend(number.map(|number| (row.number, (number, depth))));
    }
    let stacks: FxHashMap<u32, u32> = stacks.into_iter().map(|(row, (number, _))| (row, number)).collect();
    out.samples.extend(rows.samples.iter().filter(|s| s.time > 0).map(|s| Sample {
        time: names.session_time(s.time),
        thread: threads.get_or_insert(names.pid, s.thread).0,
        stack: stacks.get(&s.stack).copied(),
        activity: activity_of(s.activity & !HOLDS),
        holds: s.activity & HOLDS != 0,
    }));
    stacks
}
