//! `metrics --source` and `metrics --sass`: the hottest lines and instructions.

use super::Format;
use super::table::{self, Cell, Column};
use crate::analysis::code::{Counts, Listing};
use crate::model::units::format_grouped;
use serde::Serialize;
use std::io::{self, Write};

/// A line or an instruction with its counters; `None` if a counter was not collected.
#[derive(Clone, Debug, Serialize)]
pub struct Hot {
    pub result: usize,
    /// File name without folders; for an instruction, the file of its line.
    pub file: Option<String>,
    /// Line number, from 1.
    pub line: Option<u32>,
    /// Address at profiling time; not for lines.
    pub address: Option<String>,
    /// Function and offset, as `NAME+0x10`; not for lines.
    pub place: Option<String>,
    pub samples: f64,
    /// Share of all samples in percent.
    pub share_percent: f64,
    /// Executions by warps.
    pub executed: Option<f64>,
    /// Executions by threads.
    pub threads: Option<f64>,
    /// The most frequent stall reason.
    pub stall: Option<String>,
    /// Share of that stall reason in the samples of this line or instruction, in percent.
    pub stall_percent: Option<f64>,
    /// L2 sectors beyond what coalesced accesses need.
    pub excess_l2_sectors: Option<f64>,
    /// Wavefronts beyond what accesses without bank conflicts need.
    pub excess_shared_wavefronts: Option<f64>,
    /// Text of the line or of the instruction.
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

/// Rows of a result: lines, or instructions.
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

pub fn print_rows(out: &mut dyn Write, rows: &[Hot], format: Format, width: Option<usize>) -> io::Result<()> {
    if format == Format::Json {
        return writeln!(out, "{{\"rows\":{}}}", super::json_text(&rows)?);
    }
    let column = |field, title, right, machine_only, rank| Column { field, title, right, machine_only, rank };
    let columns = [
        column("result", "result", true, false, 5),
        column("share_percent", "share", true, false, 0),
        column("samples", "samples", true, false, 2),
        column("stall", "top stall", false, false, 1),
        column("stall_percent", "of it", true, false, 3),
        column("executed", "executed", true, false, 1),
        column("threads", "threads", true, true, 0),
        column("excess_l2_sectors", "excess L2", true, false, 4),
        column("excess_shared_wavefronts", "excess shared", true, false, 4),
        column("file", "file", false, false, 0),
        column("line", "line", true, false, 0),
        column("address", "address", false, true, 0),
        column("place", "place", false, false, 2),
        column("text", "text", false, false, 0),
    ];
    let cells = rows.iter().map(|r| {
        let count = |n: f64| Cell::with_raw(n, if n > 0.0 { format_grouped(n.round() as i64) } else { String::new() });
        let collected = |n: Option<f64>| n.map_or_else(Cell::default, count);
        let percent = |p: f64| Cell::with_raw(p, format!("{p:.1}%"));
        let text = |t: &Option<String>| Cell::text(t.clone().unwrap_or_default());
        vec![
            Cell::text(r.result.to_string()),
            percent(r.share_percent),
            count(r.samples),
            text(&r.stall),
            r.stall_percent.map_or_else(Cell::default, percent),
            collected(r.executed),
            collected(r.threads),
            collected(r.excess_l2_sectors),
            collected(r.excess_shared_wavefronts),
            text(&r.file),
            r.line.map_or_else(Cell::default, |l| Cell::text(l.to_string())),
            text(&r.address),
            text(&r.place),
            Cell::text(r.text.as_deref().unwrap_or_default().trim().to_owned()),
        ]
    });
    table::print_rows(&columns, cells, out, format, width)
}
