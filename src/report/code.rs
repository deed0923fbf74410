//! `metrics --source` and `metrics --sass`: the hottest lines and instructions.

use super::Format;
use super::envelope::{Envelope, JsonDocument};
use super::rows::{Rows, TableRow};
use super::table;
use crate::analysis::code::{Counts, Listing};
use crate::analysis::table::{Column, Outputs, Unit, Value};
use crate::model::Source;
use schemars::JsonSchema;
use serde::Serialize;
use std::io::{self, Write};

/// A line or an instruction with its counters; `None` if a counter was not collected.
#[derive(Clone, Debug)]
pub struct Hot {
    pub result: usize,
    /// File name without folders; for an instruction, the file of its source line.
    pub file: Option<String>,
    /// Line number, from 1.
    pub line: Option<u32>,
    /// Address at profiling time; instructions only.
    pub address: Option<String>,
    /// Function and offset, as `NAME+0x10`; instructions only.
    pub place: Option<String>,
    pub samples: f64,
    /// Share of all samples in percent.
    pub share_percent: f64,
    /// Number of executions by warps.
    pub executed: Option<f64>,
    /// Number of executions by threads.
    pub threads: Option<f64>,
    /// The most frequent stall reason.
    pub stall: Option<String>,
    /// Share of that stall reason in the samples of this line or instruction, in percent.
    pub stall_percent: Option<f64>,
    /// L2 sectors beyond what coalesced accesses need.
    pub excess_l2_sectors: Option<f64>,
    /// Wavefronts beyond what accesses without bank conflicts need.
    pub excess_shared_wavefronts: Option<f64>,
    /// Text of the line or instruction.
    pub text: Option<String>,
}

fn hot_row(result: usize, counts: &Counts, all: f64) -> Hot {
    let stall = counts.top_stall().filter(|s| s.1 > 0.0);
    Hot {
        result,
        file: None,
        line: None,
        address: None,
        place: None,
        samples: counts.samples,
        share_percent: if all > 0.0 { counts.samples / all * 100.0 } else { 0.0 },
        executed: counts.executed,
        threads: counts.threads,
        stall: stall.map(|s| s.0.to_string()),
        stall_percent: stall.map(|s| s.1),
        excess_l2_sectors: counts.excess_l2,
        excess_shared_wavefronts: counts.excess_shared,
        text: None,
    }
}

/// One row per source line of a result or, if `instructions` is set, one per instruction.
pub fn hot_rows(result: usize, listing: &Listing, instructions: bool) -> Vec<Hot> {
    if instructions {
        let names: std::collections::HashMap<u32, &str> = listing.lines.iter().map(|l| (l.file, l.name.as_str())).collect();
        let one = |i: &crate::analysis::code::Instruction| Hot {
            file: i.line.and_then(|l| names.get(&l.0)).map(|n| (*n).to_owned()),
            line: i.line.map(|l| l.1),
            address: Some(format!("{:#x}", i.address)),
            place: i.place.as_ref().map(|(f, o)| format!("{f}+{o:#x}")),
            text: i.text.as_ref().map(ToString::to_string),
            ..hot_row(result, &i.counts, listing.samples)
        };
        return listing.instructions.iter().map(one).collect();
    }
    let one = |l: &crate::analysis::code::Line| Hot {
        file: Some(l.name.clone()),
        line: Some(l.line),
        text: l.text.clone(),
        ..hot_row(result, &l.counts, listing.samples)
    };
    listing.lines.iter().map(one).collect()
}

type HotColumn = Column<Hot>;

fn maybe_text(text: Option<&str>) -> Value<'_> {
    text.map_or(Value::Absent, Value::text)
}

/// The columns, in order.
pub fn columns() -> Vec<HotColumn> {
    vec![
        HotColumn::new("result", "result", Unit::Id, "number of the result", |r| Value::int(r.result)).priority(5),
        HotColumn::new("share_percent", "share", Unit::Percent, "of all samples", |r| Value::Real(r.share_percent)),
        HotColumn::new("samples", "samples", Unit::Counter, "samples of the program counter", |r| Value::Real(r.samples))
            .weighing()
            .priority(2),
        HotColumn::new("stall", "top stall", Unit::Text, "most frequent stall reason", |r| maybe_text(r.stall.as_deref())).priority(1),
        HotColumn::new("stall_percent", "of it", Unit::Percent, "share of that reason in the samples", |r| {
            Value::maybe_real(r.stall_percent)
        })
        .priority(3),
        HotColumn::new("executed", "executed", Unit::Counter, "executions by warps", |r| Value::maybe_real(r.executed)).priority(1),
        HotColumn::new("threads", "threads", Unit::Counter, "executions by threads", |r| Value::maybe_real(r.threads))
            .only(Outputs::CSV.with(Outputs::JSON)),
        HotColumn::new("excess_l2_sectors", "excess L2", Unit::Counter, "L2 sectors beyond what coalesced accesses need", |r| {
            Value::maybe_real(r.excess_l2_sectors)
        })
        .priority(4),
        HotColumn::new(
            "excess_shared_wavefronts",
            "excess shared",
            Unit::Counter,
            "wavefronts beyond what accesses without bank conflicts need",
            |r| Value::maybe_real(r.excess_shared_wavefronts),
        )
        .priority(4),
        HotColumn::new("file", "file", Unit::Text, "file of the line, without folders", |r| maybe_text(r.file.as_deref())),
        HotColumn::new("line", "line", Unit::Id, "line, from 1", |r| Value::maybe_int(r.line)),
        HotColumn::new("address", "address", Unit::Text, "address at profiling time; not for lines", |r| maybe_text(r.address.as_deref()))
            .only(Outputs::CSV.with(Outputs::JSON)),
        HotColumn::new("place", "place", Unit::Text, "function and offset; not for lines", |r| maybe_text(r.place.as_deref())).priority(2),
        HotColumn::new("text", "text", Unit::Text, "line or instruction", |r| maybe_text(r.text.as_deref().map(str::trim)))
            .only(Outputs::TEXT.with(Outputs::CSV)),
        HotColumn::new("text", "text", Unit::Text, "line or instruction, with its indentation", |r| maybe_text(r.text.as_deref()))
            .only(Outputs::JSON),
    ]
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct CodeJson<'a> {
    rows: Rows<'a, Hot, &'a Hot>,
}

impl JsonDocument for CodeJson<'_> {
    const NAME: &'static str = "metrics-code";
}

impl TableRow for Hot {
    fn columns() -> Vec<Column<Self>> {
        columns()
    }
}

pub fn print_rows(out: &mut dyn Write, source: &Source, rows: &[Hot], format: Format, width: Option<usize>) -> io::Result<()> {
    if format == Format::Json {
        return Envelope::of_source(source, &[]).write(out, &CodeJson { rows: Rows::new(rows.iter()) });
    }
    table::print_rows(columns(), rows.iter(), out, format, width)
}
