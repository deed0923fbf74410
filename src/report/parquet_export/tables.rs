//! The Parquet tables with their columns.

use super::table::{Column, Get, Of, Table};
use crate::model::{Kernel, MemOp, MemOpKind, Profile};
use parquet::data_type::ByteArray;
use std::sync::Arc;

fn int_column<'a>(name: &'static str, unit: &'static str, about: &'static str, get: impl Fn(usize) -> Option<i64> + 'a) -> Column<'a> {
    Column { name, unit, about, get: Get::Int(Box::new(get)) }
}

fn text_column<'a>(name: &'static str, about: &'static str, get: impl Fn(usize) -> Option<ByteArray> + 'a) -> Column<'a> {
    Column { name, unit: "", about, get: Get::Text(Box::new(get)) }
}

/// Shared texts that rows refer to by index.
fn shared_texts(list: impl Iterator<Item = impl AsRef<str>>) -> Arc<[ByteArray]> {
    list.map(|t| ByteArray::from(t.as_ref())).collect()
}

fn to_i64(n: u64) -> i64 {
    i64::try_from(n).unwrap_or(i64::MAX)
}

/// Columns of a place, common to all tables of device work.
fn place_columns<'a>(profile: &'a Profile, at: impl Fn(usize) -> Option<u32> + Copy + 'a) -> Vec<Column<'a>> {
    let of = move |row: usize| profile.places.get(at(row)? as usize);
    let device = move |row: usize| {
        let place = of(row)?;
        profile.device_of(place).map(|d| d.id).or(place.ordinal)
    };
    vec![
        int_column("device", "", "number of the GPU", move |r| device(r).map(i64::from)),
        int_column("context", "", "CUDA context", move |r| of(r)?.context.map(i64::from)),
        int_column("stream", "", "stream or queue", move |r| of(r)?.stream.map(i64::from)),
        int_column("pid", "", "process", move |r| of(r)?.pid.map(i64::from)),
    ]
}

pub fn launches(of: Of<'_>) -> Table<'_> {
    let p = of.profile;
    let (functions, demangled) =
        (shared_texts(p.kernels.iter().map(Kernel::function)), shared_texts(p.kernels.iter().map(Kernel::demangled)));
    let kernel = |r: usize| p.launches.kernel(r).0 as usize;
    let config = |r: usize| p.configs.get(p.launches.config(r)?.0 as usize);
    let timed = p.launches.has_start_times();
    let grid = move |r: usize, axis: usize| config(r)?.grid.map(|g| i64::from(g[axis]));
    let block = move |r: usize, axis: usize| config(r)?.block.map(|b| i64::from(b[axis]));
    let mut columns = vec![
        int_column("launch", "", "place in launch order, from 0", |r| i64::try_from(r).ok()),
        text_column("kernel", "function, without namespace and arguments", move |r| functions.get(kernel(r)).cloned()),
        text_column("demangled", "whole name", move |r| demangled.get(kernel(r)).cloned()),
        int_column("start_ns", "ns", "from the report's 0", move |r| timed.then(|| p.launches.start(r))),
        int_column("epoch_ns", "ns", "since 1970, by the machine's clock", move |r| {
            Some(p.clock.epoch_ns?.saturating_add(p.launches.start(r)))
        }),
        int_column("duration_ns", "ns", "on the device", |r| Some(p.launches.duration(r))),
        int_column("call_start_ns", "ns", "of the call that launched it, from the report's 0", |r| p.launches.call(r).map(|c| c.0)),
        int_column("call_duration_ns", "ns", "of the call that launched it", |r| p.launches.call(r).map(|c| c.1)),
        int_column("grid_x", "", "blocks", move |r| grid(r, 0)),
        int_column("grid_y", "", "blocks", move |r| grid(r, 1)),
        int_column("grid_z", "", "blocks", move |r| grid(r, 2)),
        int_column("block_x", "", "threads", move |r| block(r, 0)),
        int_column("block_y", "", "threads", move |r| block(r, 1)),
        int_column("block_z", "", "threads", move |r| block(r, 2)),
        int_column("registers", "", "per thread", move |r| config(r)?.registers.map(i64::from)),
        int_column("static_shared_bytes", "byte", "shared memory of a block, declared", move |r| {
            config(r)?.static_shared.map(|b| to_i64(b.0))
        }),
        int_column("dynamic_shared_bytes", "byte", "shared memory of a block, asked for by the launch", move |r| {
            config(r)?.dynamic_shared.map(|b| to_i64(b.0))
        }),
        int_column("graph_node", "", "node of the CUDA graph that launched it", |r| p.launches.graph_node(r).map(to_i64)),
        int_column("thread", "", "operating-system thread that launched it", |r| {
            p.places.get(p.launches.place(r)?.0 as usize)?.thread.map(i64::from)
        }),
    ];
    columns.extend(place_columns(p, |r| p.launches.place(r).map(|p| p.0)));
    Table { rows: p.launches.len(), columns }
}

pub fn calls(of: Of<'_>) -> Table<'_> {
    let p = of.profile;
    let names = shared_texts(p.calls.names.iter().map(|n| &n.name));
    let columns = vec![
        text_column("name", "function", move |r| names.get(*p.calls.name.get(r)? as usize).cloned()),
        int_column("start_ns", "ns", "from the report's 0", |r| p.calls.start.get(r).copied()),
        int_column("duration_ns", "ns", "", |r| p.calls.duration.get(r).copied()),
        int_column("pid", "", "process", |r| Some(i64::from(p.calls.thread_of(r).0))),
        int_column("thread", "", "operating-system thread", |r| Some(i64::from(p.calls.thread_of(r).1))),
    ];
    Table { rows: p.calls.len(), columns }
}

pub fn memcpys(of: Of<'_>) -> Table<'_> {
    let p = of.profile;
    let op = |r: usize| p.memops.get(r);
    let word = |op: &MemOp| match op.kind {
        MemOpKind::Copy { kind, .. } => kind.as_str(),
        MemOpKind::Set => "set",
    };
    let mut columns = vec![
        text_column("kind", "direction, or set", move |r| Some(ByteArray::from(word(&op(r)?)))),
        int_column("start_ns", "ns", "from the report's 0", move |r| Some(op(r)?.start.0)),
        int_column("duration_ns", "ns", "on the device", move |r| Some(op(r)?.duration.0)),
        int_column("bytes", "byte", "", move |r| op(r)?.bytes.map(|b| to_i64(b.0))),
    ];
    columns.extend(place_columns(p, move |r| Some(op(r)?.place.0)));
    Table { rows: p.memops.len(), columns }
}

pub fn ranges(of: Of<'_>) -> Table<'_> {
    let p = of.profile;
    let names = shared_texts(p.ranges.names.iter().map(|(_, n)| n));
    let domains: Arc<[Option<ByteArray>]> = p.ranges.names.iter().map(|(d, _)| d.as_deref().map(ByteArray::from)).collect();
    let range = |r: usize| p.ranges.get(r);
    let thread = move |r: usize| p.ranges.threads.get(range(r).thread as usize);
    let columns = vec![
        text_column("name", "", move |r| names.get(range(r).name as usize).cloned()),
        text_column("domain", "of NVTX", move |r| domains.get(range(r).name as usize).cloned().flatten()),
        text_column("origin", "nvtx, roctx, annotation, operator, python", move |r| {
            Some(ByteArray::from(crate::report::ranges::origin_word(range(r).origin)))
        }),
        int_column("start_ns", "ns", "from the report's 0", move |r| Some(range(r).start)),
        int_column("end_ns", "ns", "absent where it was still open at the end", move |r| Some(range(r).end).filter(|&e| e != i64::MAX)),
        int_column("pid", "", "process", move |r| thread(r).map(|t| i64::from(t.0))),
        int_column("thread", "", "operating-system thread", move |r| thread(r).map(|t| i64::from(t.1))),
    ];
    Table { rows: p.ranges.len(), columns }
}

pub fn collectives(of: Of<'_>) -> Table<'_> {
    let all: Arc<[_]> = of.digests.iter().flat_map(|d| d.collectives().map(move |c| (d, c))).collect();
    let rows = all.len();
    let share = || Arc::clone(&all);
    let (kinds, groups, algorithms, sequences, starts, durations, bytes, peers, devices, pids) =
        (share(), share(), share(), share(), share(), share(), share(), share(), share(), share());
    let columns = vec![
        text_column("kind", "all_reduce, all_gather and so on", move |r| {
            kinds.get(r).map(|(d, c)| ByteArray::from(d.kinds[c.kind].name.as_str()))
        }),
        text_column("group", "process group, NCCL's communicator, or the rank's stream", move |r| {
            groups.get(r).map(|(d, c)| ByteArray::from(d.kinds[c.kind].group.as_str()))
        }),
        text_column("algorithm", "NCCL's algorithm and protocol", move |r| {
            let name = algorithms.get(r).map(|(d, c)| d.kinds[c.kind].algorithm.as_str())?;
            Some(ByteArray::from(name)).filter(|_| !name.is_empty())
        }),
        int_column("sequence", "", "number in its group", move |r| Some(sequences.get(r)?.1.sequence)),
        int_column("start_ns", "ns", "from the report's 0", move |r| Some(starts.get(r)?.1.start)),
        int_column("duration_ns", "ns", "with what this rank waited for others", move |r| Some(durations.get(r)?.1.duration)),
        int_column("bytes", "byte", "message of a rank, where the framework or NCCL says it", move |r| {
            Some(bytes.get(r)?.1.bytes).filter(|&b| b > 0).map(to_i64)
        }),
        int_column("peer", "", "of a send or receive the other one's number in the group", move |r| {
            let (d, c) = peers.get(r)?;
            d.kinds[c.kind].peer.map(i64::from)
        }),
        int_column("device", "", "number of the GPU", move |r| devices.get(r)?.0.device.map(i64::from)),
        int_column("pid", "", "process", move |r| pids.get(r)?.0.pid.map(i64::from)),
    ];
    Table { rows, columns }
}

pub fn findings(of: Of<'_>) -> Table<'_> {
    let list = of.triage.map_or(&[][..], |t| &t.findings[..]);
    let columns = vec![
        int_column("rank_in_list", "", "1 is the verdict", |r| i64::try_from(r + 1).ok()),
        text_column("id", "never changes its meaning", |r| list.get(r).map(|f| ByteArray::from(f.id.id()))),
        text_column("severity", "", |r| list.get(r).map(|f| ByteArray::from(f.severity.as_str()))),
        text_column("sure", "certain, likely or possible", |r| list.get(r).map(|f| ByteArray::from(f.sure.as_str()))),
        Column {
            name: "share_percent",
            unit: "%",
            about: "of the window that would be gained at most",
            get: Get::Real(Box::new(|r| list.get(r).map(crate::analysis::triage::Finding::gain_percent))),
        },
        text_column("headline", "", |r| list.get(r).map(|f| ByteArray::from(f.headline.as_str()))),
    ];
    Table { rows: list.len(), columns }
}
