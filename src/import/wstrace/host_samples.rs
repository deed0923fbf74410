//! Samples of launching threads, and the functions and stacks that they refer to.

use super::host_sample_rows::FunctionRow;
use super::names::Names;
use super::python_lines::find_line;
use super::rows::Rows;
use crate::model::{Activity, CallStack, Sample, Samples, StackFrame, Threads};
use rustc_hash::FxHashMap;

fn activity_of(number: u8) -> Activity {
    // The tracer's numbers are those of the model.
    Activity::ALL.get(usize::from(number)).copied().unwrap_or_default()
}

/// Adds the samples of a process; returns the model's numbers of its stacks.
pub fn add_samples(names: &Names, rows: &Rows, threads: &mut Threads, out: &mut Samples) -> FxHashMap<u32, u32> {
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
    stacks
}
