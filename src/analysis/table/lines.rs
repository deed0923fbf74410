//! Columns for the lines of a program, by idle time of the devices.

use super::column::{Column, Outputs};
use super::value::{Unit, Value};
use crate::analysis::host_frames::{frame_label, function_name};
use crate::analysis::triage::{HostTime, LineTime};
use crate::model::StackFrame;
use std::collections::BTreeMap;

/// A function, with the data for its cells.
#[derive(Clone, Copy)]
pub struct LineRow<'t> {
    pub line: &'t LineTime,
    /// Level in the call tree, from 0.
    pub depth: u32,
    /// Idle time summed over all sampled threads, ns; the denominator of shares.
    pub all: i64,
    /// Name of the thread that held the interpreter lock.
    pub holder: Option<&'t str>,
}

impl LineRow<'_> {
    fn share_percent(&self) -> f64 {
        self.line.ns as f64 / self.all.max(1) as f64 * 100.0
    }
}

type LineColumn<'t> = Column<LineRow<'t>>;

/// Maximum number of levels by which the tree is indented.
const DEEPEST: u32 = 40;

pub fn columns<'t>() -> Vec<LineColumn<'t>> {
    const MACHINE: Outputs = Outputs::CSV.with(Outputs::JSON);
    vec![
        LineColumn::new("function", "function", Unit::Text, "function, with its file and the line where most of the time is", |r| {
            let indent = "  ".repeat(r.depth.min(DEEPEST) as usize);
            Value::Labelled((&*r.line.frame.function).into(), format!("{indent}{}", frame_label(&r.line.frame)).into())
        }),
        LineColumn::new("file", "file", Unit::Text, "source file", |r| r.line.frame.file.as_deref().map_or(Value::Absent, Value::text))
            .only(MACHINE),
        LineColumn::new(
            "line",
            "line",
            Unit::Id,
            "line where most of the time is; the first line of the function in traces of torch.profiler, which records no other",
            |r| Value::maybe_int(r.line.frame.line),
        )
        .only(MACHINE),
        LineColumn::new("depth", "depth", Unit::Id, "level in the tree of calls, from 0", |r| Value::int(r.depth)).only(MACHINE),
        LineColumn::new("idle_ns", "GPU idle", Unit::Ns, "time that the GPU was idle while a launching thread was in the function", |r| {
            Value::Int(r.line.ns)
        }),
        LineColumn::new("share_percent", "share", Unit::Percent, "of the idle time of the host whose lines are known", |r| {
            Value::Real(r.share_percent())
        }),
        LineColumn::new("line_ns", "at the line", Unit::Ns, "part of it at the line, if lines were recorded", |r| {
            if r.line.frame.first_line { Value::Absent } else { Value::Int(r.line.line_ns) }
        })
        .priority(8),
        LineColumn::new(
            "samples",
            "samples",
            Unit::Count,
            "samples behind it: below ten, little is known; none where each call was recorded",
            |r| {
                if r.line.samples > 0 { Value::int(r.line.samples) } else { Value::Absent }
            },
        )
        .priority(7),
        LineColumn::new(
            "launches",
            "launches",
            Unit::Count,
            "launches from the function, estimated from at least ten samples unless each call was recorded",
            |r| Value::maybe_int(r.line.launching.launches()),
        )
        .priority(5),
        LineColumn::new("host_ns", "host", Unit::Ns, "time of the launching threads in the function, without waits", |r| {
            Value::maybe_int(r.line.launching.host_ns())
        })
        .priority(5),
        LineColumn::new("cause", "cause", Unit::Text, "main cause of the idle time", |r| match r.line {
            line if line.ns == 0 => Value::Absent,
            line if line.held_by.is_some() => Value::text("interpreter lock"),
            line => Value::text(line.cause.part().short_label()),
        })
        .priority(3),
        LineColumn::new(
            "activity",
            "thread",
            Unit::Text,
            "what the thread did: running, lock, gil, read, write, poll, sleep, child, blocked",
            |r| Value::text(r.line.activity.id()),
        )
        .priority(2),
        LineColumn::new("inside", "inside", Unit::Text, "function of a library in which it spends most of the time", |r| {
            r.line.inside.as_ref().map_or(Value::Absent, |f| Value::Text(frame_label(f).into()))
        })
        .priority(6),
        LineColumn::new("gil_holder", "GIL held by", Unit::Text, "thread that held the interpreter lock meanwhile", |r| {
            r.holder.map_or(Value::Absent, Value::text)
        })
        .priority(4),
        LineColumn::new(
            "longest_ns",
            "longest",
            Unit::Ns,
            "the longest idle time while the host was in the function, at most the function's own",
            |r| Value::Int((r.line.longest.1 - r.line.longest.0).min(r.line.ns)),
        )
        .priority(9),
        LineColumn::new("longest_start_ns", "at", Unit::Time, "its start", |r| Value::Int(r.line.longest.0)).only(MACHINE),
    ]
}

/// A function in two runs.
#[derive(Clone, Debug)]
pub struct LineChange {
    /// The function, with its line in the second run, or else in the first.
    pub frame: StackFrame,
    /// Idle time in the function, ns; `None` if it has none.
    pub before: Option<i64>,
    pub after: Option<i64>,
    /// Number of steps in each run, if both have steps.
    pub steps: Option<(usize, usize)>,
}

impl LineChange {
    fn per_step(&self) -> (Option<f64>, Option<f64>) {
        let each = |ns: Option<i64>, steps: Option<usize>| Some(ns.unwrap_or(0) as f64 / steps? as f64);
        (each(self.before, self.steps.map(|s| s.0)), each(self.after, self.steps.map(|s| s.1)))
    }

    /// Change in idle time by which functions are sorted, ns; per step if both runs have steps.
    fn change(&self) -> f64 {
        match self.per_step() {
            (Some(before), Some(after)) => after - before,
            _ => (self.after.unwrap_or(0) - self.before.unwrap_or(0)) as f64,
        }
    }
}

/// Compares the functions of two runs, largest change first. Functions match if their names and the names of their
/// files are the same; the folder and the lines may differ.
pub fn compare_lines(before: &HostTime, after: &HostTime, steps: Option<(usize, usize)>) -> Vec<LineChange> {
    let key = |f: &StackFrame| {
        let file = f.file.as_deref().map(|p| p.rsplit('/').next().unwrap_or(p).to_owned());
        (function_name(&f.function).to_owned(), file)
    };
    let mut found: BTreeMap<(String, Option<String>), LineChange> = BTreeMap::new();
    for (is_after, line) in before.list_lines().into_iter().map(|l| (false, l)).chain(after.list_lines().into_iter().map(|l| (true, l))) {
        let change =
            found.entry(key(&line.frame)).or_insert_with(|| LineChange { frame: line.frame.clone(), before: None, after: None, steps });
        let side = if is_after { &mut change.after } else { &mut change.before };
        // Lines are in descending order of time, so the first one, which accounts for most of the function's time,
        // gives its frame.
        let is_longest = side.is_none();
        *side = Some(side.unwrap_or(0) + line.ns);
        if is_after && is_longest {
            change.frame = line.frame;
        }
    }
    let mut out: Vec<LineChange> = found.into_values().collect();
    out.sort_by(|a, b| b.change().abs().total_cmp(&a.change().abs()));
    out
}

type ChangeColumn<'t> = Column<&'t LineChange>;

/// Columns of a comparison, in order.
pub fn change_columns<'t>() -> Vec<ChangeColumn<'t>> {
    const MACHINE: Outputs = Outputs::CSV.with(Outputs::JSON);
    vec![
        ChangeColumn::new("function", "function", Unit::Text, "function, with its file and line", |c| {
            Value::Labelled((&*c.frame.function).into(), frame_label(&c.frame).into())
        }),
        ChangeColumn::new("file", "file", Unit::Text, "source file", |c| c.frame.file.as_deref().map_or(Value::Absent, Value::text))
            .only(MACHINE),
        ChangeColumn::new("line", "line", Unit::Id, "line where most of the time is", |c| Value::maybe_int(c.frame.line)).only(MACHINE),
        ChangeColumn::new("before_ns", "before", Unit::Ns, "time that the GPU was idle at it in the first run", |c| {
            Value::maybe_int(c.before)
        }),
        ChangeColumn::new("after_ns", "after", Unit::Ns, "the same in the second run", |c| Value::maybe_int(c.after)),
        ChangeColumn::new("change_ns", "change", Unit::NsChange, "difference", |c| {
            Value::Int(c.after.unwrap_or(0) - c.before.unwrap_or(0))
        })
        .priority(1),
        ChangeColumn::new(
            "before_step_ns",
            "before a step",
            Unit::Ns,
            "idle time of a step in the first run, if both runs have steps",
            |c| Value::maybe_real(c.per_step().0),
        )
        .priority(2),
        ChangeColumn::new("after_step_ns", "after a step", Unit::Ns, "the same in the second run", |c| Value::maybe_real(c.per_step().1))
            .priority(2),
    ]
}
