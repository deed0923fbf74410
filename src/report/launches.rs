//! `launches`: kernel launches in launch order.

use super::Format;
use super::coverage::CoverageJson;
use super::table::{self, Cell, Column};
use super::top::{NoteJson, SourceJson};
use crate::analysis::{Paths, invocation};
use crate::model::{Bytes, KernelId, LaunchOrder, Nanos, Profile, config};
use serde::Serialize;
use std::collections::BTreeSet;
use std::io::{self, Write};

/// One launch with everything that the report contains about it.
#[derive(Serialize)]
pub struct LaunchJson<'a> {
    pub launch: u32,
    kernel: &'a str,
    demangled: &'a str,
    /// Index among the launches with this function name in this process, from 0.
    nth: u64,
    start_ns: i64,
    duration_ns: i64,
    device: Option<u32>,
    context: Option<u32>,
    stream: Option<u32>,
    pid: Option<u32>,
    tid: Option<u32>,
    grid: Option<[u32; 3]>,
    block: Option<[u32; 3]>,
    registers: Option<u32>,
    static_shared_bytes: Option<u64>,
    dynamic_shared_bytes: Option<u64>,
    graph_node: Option<u64>,
    nvtx: Vec<String>,
}

/// Launches of some kernels, or of all, each with its index among the launches of its function in its process.
pub fn numbered_launches<'a>(profile: &'a Profile, kernels: Option<&'a BTreeSet<KernelId>>) -> impl Iterator<Item = (u32, u32)> + use<'a> {
    invocation::all_launches(profile).filter(move |(row, _)| kernels.is_none_or(|k| k.contains(&profile.launches.kernel(*row as usize))))
}

/// Launches of some kernels, or of all, in launch order.
pub fn launch_rows<'a>(
    profile: &'a Profile,
    paths: &'a Paths,
    kernels: Option<&'a BTreeSet<KernelId>>,
) -> impl Iterator<Item = LaunchJson<'a>> {
    numbered_launches(profile, kernels).map(|(row, nth)| launch_json(profile, paths, row as usize, u64::from(nth)))
}

/// One launch; `nth` is the number of earlier launches of the same function in the process.
pub fn launch_json<'a>(profile: &'a Profile, paths: &Paths, row: usize, nth: u64) -> LaunchJson<'a> {
    let launches = &profile.launches;
    let (function, demangled) = profile.kernels.get(launches.kernel(row).0 as usize).map_or(("", ""), |k| (k.function(), k.demangled()));
    let place = launches.place(row).and_then(|p| profile.places.get(p.0 as usize)).cloned().unwrap_or_default();
    let launch_config = launches.config(row).and_then(|c| profile.configs.get(c.0 as usize));
    let bytes = |b: Option<Bytes>| b.map(|b| b.0);
    LaunchJson {
        launch: u32::try_from(row).unwrap_or(u32::MAX),
        kernel: function,
        demangled,
        nth,
        start_ns: launches.start(row),
        duration_ns: launches.duration(row),
        device: profile.device_of(&place).map(|d| d.id).or(place.ordinal),
        context: place.context,
        stream: place.stream,
        pid: place.pid,
        tid: place.thread,
        grid: launch_config.and_then(|c| c.grid),
        block: launch_config.and_then(|c| c.block),
        registers: launch_config.and_then(|c| c.registers),
        static_shared_bytes: launch_config.and_then(|c| bytes(c.static_shared)),
        dynamic_shared_bytes: launch_config.and_then(|c| bytes(c.dynamic_shared)),
        graph_node: launches.graph_node(row),
        nvtx: paths.launch_path(row).map_or_else(Vec::new, |p| paths.path_names(profile, p)),
    }
}

/// Describes the order in which launches are numbered.
fn order_word(order: LaunchOrder) -> &'static str {
    match order {
        LaunchOrder::Host => "host",
        LaunchOrder::Partly(_) => "host, partly device",
        LaunchOrder::Device => "device",
        LaunchOrder::Chosen => "as profiled",
        LaunchOrder::Unread => "unknown",
    }
}

/// Writes the report as JSON, launch by launch: there may be millions.
pub fn write_json<'a>(out: &mut dyn Write, profile: &Profile, rows: impl Iterator<Item = LaunchJson<'a>>) -> io::Result<()> {
    let source = super::json_text(&SourceJson::from(&profile.source))?;
    let notes: Vec<NoteJson<'_>> = profile.notes.iter().map(Into::into).collect();
    let notes = super::json_text(&notes)?;
    write!(out, "{{\"source\":{source},\"order\":\"{}\",\"launches\":{},\"rows\":[", order_word(profile.order), profile.launches.len())?;
    for (i, row) in rows.enumerate() {
        if i > 0 {
            out.write_all(b",\n")?;
        }
        out.write_all(super::json_text(&row)?.as_bytes())?;
    }
    let coverage = super::json_text(&CoverageJson::from(profile))?;
    writeln!(out, "],\"coverage\":{coverage},\"notes\":{notes}}}")
}

/// Field, title, alignment to the right, machine-only flag, and drop order in a narrow terminal.
const COLUMNS: &[(&str, &str, bool, bool, u8)] = &[
    ("launch", "launch", true, false, 0),
    ("kernel", "kernel", false, false, 0),
    ("nth", "nth", true, false, 1),
    ("start_ns", "start", true, false, 4),
    ("duration_ns", "duration", true, false, 0),
    ("grid", "grid", true, false, 2),
    ("block", "block", true, false, 3),
    ("registers", "regs", true, false, 6),
    ("static_shared_bytes", "static", true, false, 7),
    ("dynamic_shared_bytes", "dynamic", true, false, 7),
    ("device", "gpu", true, false, 8),
    ("context", "ctx", true, true, 0),
    ("stream", "stream", true, false, 5),
    ("pid", "pid", true, false, 8),
    ("tid", "tid", true, true, 0),
    ("graph_node", "graph node", true, true, 0),
    ("nvtx", "nvtx", false, false, 9),
    ("demangled", "demangled", false, true, 0),
];

/// Prints the report in a format other than JSON, launch by launch: there may be millions.
pub fn print_rows<'a>(
    out: &mut dyn Write,
    rows: impl Iterator<Item = LaunchJson<'a>>,
    format: Format,
    width: Option<usize>,
) -> io::Result<()> {
    let columns: Vec<Column> =
        COLUMNS.iter().map(|&(field, title, right, machine_only, rank)| Column { field, title, right, machine_only, rank }).collect();
    table::print_rows(&columns, rows.map(|l| row_cells(&l)), out, format, width)
}

fn row_cells(l: &LaunchJson<'_>) -> Vec<Cell> {
    let number = |n: Option<u64>| n.map_or_else(Cell::default, |n| Cell::text(n.to_string()));
    let small = |n: Option<u32>| number(n.map(u64::from));
    let dims = |d: Option<[u32; 3]>| {
        d.map_or_else(Cell::default, |d| Cell::with_raw(format!("{}x{}x{}", d[0], d[1], d[2]), config::format_dim3(d)))
    };
    let bytes = |b: Option<u64>| b.map_or_else(Cell::default, |b| Cell::with_raw(b, Bytes(b).to_string()));
    vec![
        Cell::text(l.launch.to_string()),
        Cell::text(l.kernel),
        Cell::text(l.nth.to_string()),
        Cell::with_raw(l.start_ns, format!("{:.6} s", l.start_ns as f64 / 1e9)),
        Cell::with_raw(l.duration_ns, Nanos(l.duration_ns).to_string()),
        dims(l.grid),
        dims(l.block),
        small(l.registers),
        bytes(l.static_shared_bytes),
        bytes(l.dynamic_shared_bytes),
        small(l.device),
        small(l.context),
        small(l.stream),
        small(l.pid),
        small(l.tid),
        number(l.graph_node),
        Cell::text(l.nvtx.join(" › ")),
        Cell::text(l.demangled),
    ]
}
