//! Columns of the lines of a program, by idle time of the devices.

use super::column::{Column, Outputs};
use super::value::{Unit, Value};
use crate::analysis::triage::{LineTime, frame_label};

/// A function with the data of its cells.
#[derive(Clone, Copy)]
pub struct LineRow<'t> {
    pub line: &'t LineTime,
    /// Level in the tree of calls, from 0.
    pub depth: u32,
    /// Idle time of all threads that were sampled, ns.
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

/// Maximum indentation of a tree.
const DEEPEST: u32 = 40;

/// The columns, in order.
pub fn columns<'t>() -> Vec<LineColumn<'t>> {
    const MACHINE: Outputs = Outputs::CSV.with(Outputs::JSON);
    vec![
        LineColumn::new("function", "function", Unit::Text, "function, with its file and the line where most of the time is", |r| {
            let indent = "  ".repeat(r.depth.min(DEEPEST) as usize);
            Value::Labelled((&*r.line.frame.function).into(), format!("{indent}{}", frame_label(&r.line.frame)).into())
        }),
        LineColumn::new("file", "file", Unit::Text, "source file", |r| r.line.frame.file.as_deref().map_or(Value::Absent, Value::text))
            .only(MACHINE),
        LineColumn::new("line", "line", Unit::Id, "line where most of the time is", |r| Value::maybe_int(r.line.frame.line)).only(MACHINE),
        LineColumn::new("depth", "depth", Unit::Id, "level in the tree of calls, from 0", |r| Value::int(r.depth)).only(MACHINE),
        LineColumn::new("idle_ns", "GPU idle", Unit::Ns, "time that the GPU was idle while a launching thread was in the function", |r| {
            Value::Int(r.line.ns)
        }),
        LineColumn::new("share_percent", "share", Unit::Percent, "of the idle time whose lines are known", |r| {
            Value::Real(r.share_percent())
        }),
        LineColumn::new("line_ns", "at the line", Unit::Ns, "part of it at the line", |r| Value::Int(r.line.line_ns)).priority(2),
        LineColumn::new("samples", "samples", Unit::Count, "samples behind it: below ten, little is known", |r| Value::int(r.line.samples))
            .priority(3),
        LineColumn::new("cause", "while the host", Unit::Text, "main cause of the idle time", |r| {
            Value::text(r.line.cause.part().short_label())
        })
        .priority(1),
        LineColumn::new(
            "activity",
            "thread",
            Unit::Text,
            "what the thread did: running, lock, gil, read, write, poll, sleep, child, blocked",
            |r| Value::text(r.line.activity.id()),
        )
        .priority(4),
        LineColumn::new("inside", "inside", Unit::Text, "function of a library in which it spends most of the time", |r| {
            r.line.inside.as_ref().map_or(Value::Absent, |f| Value::Text(frame_label(f).into()))
        })
        .priority(5),
        LineColumn::new("gil_holder", "GIL held by", Unit::Text, "thread that held the interpreter lock meanwhile", |r| {
            r.holder.map_or(Value::Absent, Value::text)
        })
        .priority(6),
        LineColumn::new("longest_ns", "longest", Unit::Ns, "the longest idle time in the function", |r| {
            Value::Int(r.line.longest.1 - r.line.longest.0)
        })
        .priority(7),
        LineColumn::new("longest_start_ns", "at", Unit::Time, "its start", |r| Value::Int(r.line.longest.0)).only(MACHINE),
    ]
}
