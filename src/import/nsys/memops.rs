//! Reads memcpys, memsets, and graphs traced as a whole.

use super::calls::{RUNTIME, pid_of};
use super::kernels::NO_CORRELATION;
use super::places::Places;
use super::strings::Strings;
use crate::import::sqlite::db::Db;
use crate::import::sqlite::scan::{self, NULL, gather_rows};
use crate::import::{ImportError, Job, Parts};
use crate::model::api_call::NONE;
use crate::model::{Bytes, CopyKind, GraphLaunch, HostCalls, LaunchSite, Launches, MemOp, MemOpKind, MemOps, MemoryKind, Nanos};
use rustc_hash::FxHashMap;
use std::collections::HashMap;
use std::sync::{Mutex, PoisonError};

/// Table of memcpys.
pub const MEMCPY: &str = "CUPTI_ACTIVITY_KIND_MEMCPY";
/// Table of memsets.
pub const MEMSET: &str = "CUPTI_ACTIVITY_KIND_MEMSET";
/// Table of graphs traced as a whole.
pub const GRAPH: &str = "CUPTI_ACTIVITY_KIND_GRAPH_TRACE";

/// Converts a `CUpti_ActivityMemcpyKind`, including the values that nsys adds for unified memory.
pub fn copy_kind(kind: i64) -> CopyKind {
    match kind {
        1 => CopyKind::HostToDevice,
        2 => CopyKind::DeviceToHost,
        3..=7 => CopyKind::Array,
        8 => CopyKind::DeviceToDevice,
        9 => CopyKind::HostToHost,
        10 => CopyKind::PeerToPeer,
        11..=13 => CopyKind::Unified,
        _ => CopyKind::Other,
    }
}

/// Converts nsys' memory kinds (`ENUM_CUDA_MEM_KIND`).
pub(super) fn memory_kind(kind: i64) -> Option<MemoryKind> {
    match kind {
        0 => Some(MemoryKind::Pageable),
        1 => Some(MemoryKind::Pinned),
        2 | 5 => Some(MemoryKind::Device),
        3 => Some(MemoryKind::Array),
        4 | 6 => Some(MemoryKind::Managed),
        _ => None,
    }
}

fn row_span(row: &[i64]) -> (Nanos, Nanos) {
    let start = if row[0] == NULL { 0 } else { row[0] };
    let end = if row[1] == NULL { start } else { row[1] };
    (Nanos(start), Nanos(end.saturating_sub(start).max(0)))
}

/// Returns the calls that may have started a memcpy or memset, by process and correlation id. If two calls share an
/// id, the outer one is used.
fn by_correlation(calls: &HostCalls) -> FxHashMap<(u32, u32), u32> {
    let mut out: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    for (row, &correlation) in (0..).zip(&calls.correlation) {
        let at = row as usize;
        if correlation == NONE || !calls.kind(at).may_start_work() {
            continue;
        }
        let outer = out.entry((calls.thread_of(at).0, correlation)).or_insert(row);
        if calls.start.get(at) < calls.start.get(*outer as usize) {
            *outer = row;
        }
    }
    out
}

/// Start times of graph launch calls whose nodes were traced, by process and correlation id.
#[derive(Default)]
pub struct GraphCalls(FxHashMap<(u32, u32), i64>);

impl GraphCalls {
    /// Collects the calls of launches that are in file order.
    pub fn from_launches(launches: &Launches, correlation: &[u32], places: &[LaunchSite]) -> Self {
        let mut out = FxHashMap::default();
        let rows = if launches.has_graph_nodes() { launches.len() } else { 0 };
        for (row, &id) in (0..rows).zip(correlation).filter(|&(row, &id)| id != NO_CORRELATION && launches.graph_node(row).is_some()) {
            let pid = launches.place(row).and_then(|p| places.get(p.0 as usize)).and_then(|p| p.pid);
            if let Some((pid, (start, _))) = pid.zip(launches.call(row)) {
                out.insert((pid, id), start);
            }
        }
        Self(out)
    }

    /// Returns the first launch made by each graph launch call. Launches must be in their final order.
    pub fn first_launches(self, launches: &Launches, places: &[LaunchSite]) -> FxHashMap<(u32, u32), u32> {
        if self.0.is_empty() {
            return FxHashMap::default();
        }
        let known = launches.by_call(places, |row| launches.graph_node(row).is_some());
        self.0.into_iter().filter_map(|((pid, id), start)| Some(((pid, id), *known.get(&(pid, start))?))).collect()
    }
}

/// Reads memcpys and memsets, sorted by start, and joins them to their calls. `graphs` contains the first launch made
/// by each graph launch call, by process and correlation id.
pub fn read_memops(
    db: &Db,
    job: &Job<'_>,
    places: &mut Places<'_>,
    calls: &HostCalls,
    graphs: &FxHashMap<(u32, u32), u32>,
) -> Result<MemOps, ImportError> {
    let mut ops = MemOps::default();
    if !db.has_table(MEMCPY) && !db.has_table(MEMSET) {
        return Ok(ops);
    }
    let joined = by_correlation(calls);
    let key = |pid: i64, correlation: i64| Some((pid_of(pid)?, u32::try_from(correlation).ok()?));
    let call_of = |pid: i64, correlation: i64| joined.get(&key(pid, correlation)?).copied();
    // Calls that launched kernels are not in `joined`.
    let launch_of = |pid: i64, correlation: i64| {
        let key = key(pid, correlation)?;
        graphs.get(&key).filter(|_| !joined.contains_key(&key)).copied()
    };
    let node = |node: i64| (node != NULL).then_some(node.cast_unsigned());
    let columns = [
        "start",
        "end",
        "globalPid",
        "deviceId",
        "contextId",
        "streamId",
        "bytes",
        "copyKind",
        "srcKind",
        "dstKind",
        "correlationId",
        "graphNodeId",
    ];
    for row in gather_rows(db, job, MEMCPY, columns, "copies")? {
        let (start, duration) = row_span(&row);
        let kind = MemOpKind::Copy { kind: copy_kind(row[7]), from: memory_kind(row[8]), to: memory_kind(row[9]) };
        ops.push(MemOp {
            start,
            duration,
            kind,
            bytes: u64::try_from(row[6]).ok().map(Bytes),
            place: places.place_id([row[2], row[3], row[4], row[5]], None),
            call: call_of(row[2], row[10]),
            launch: launch_of(row[2], row[10]),
            graph_node: node(row[11]),
        });
    }
    let columns = ["start", "end", "globalPid", "deviceId", "contextId", "streamId", "bytes", "correlationId", "graphNodeId"];
    for row in gather_rows(db, job, MEMSET, columns, "memsets")? {
        let (start, duration) = row_span(&row);
        ops.push(MemOp {
            start,
            duration,
            kind: MemOpKind::Set,
            bytes: u64::try_from(row[6]).ok().map(Bytes),
            place: places.place_id([row[2], row[3], row[4], row[5]], None),
            call: call_of(row[2], row[7]),
            launch: launch_of(row[2], row[7]),
            graph_node: node(row[8]),
        });
    }
    ops.sort_by_start();
    Ok(ops)
}

type Calls = HashMap<(Option<u32>, i64), i64>;

/// Reads the start times of graph launch calls, by process and correlation id.
fn graph_calls(db: &Db, job: &Job<'_>, strings: &mut Strings<'_>) -> Result<Calls, ImportError> {
    if !db.has_table(RUNTIME) {
        return Ok(Calls::new());
    }
    let shared = Mutex::new(strings);
    let launches_graphs = |name: i64| {
        let name = shared.lock().unwrap_or_else(PoisonError::into_inner).get(name);
        name.is_some_and(|n| ["cudaGraphLaunch", "cuGraphLaunch"].iter().any(|g| n.starts_with(g)))
    };
    let layout = scan::find_layout(db, RUNTIME)?;
    let columns = ["globalTid", "correlationId", "start", "nameId"];
    let init = || (HashMap::<i64, bool>::new(), Calls::new());
    let parts = scan::scan_integers(db, RUNTIME, columns, ("graph launches", layout), job, init, |(known, calls), _, rows| {
        for &[thread, id, start, name] in rows {
            if start != NULL && id != NULL && *known.entry(name).or_insert_with(|| launches_graphs(name)) {
                let first = calls.entry((pid_of(thread), id)).or_insert(start);
                *first = start.min(*first);
            }
        }
        Ok(())
    })?;
    let mut out = Calls::new();
    for (key, start) in parts.into_iter().flat_map(|(_, calls)| calls) {
        let first = out.entry(key).or_insert(start);
        *first = start.min(*first);
    }
    Ok(out)
}

/// Reads graphs traced as a whole, sorted by launching call.
pub fn read_graphs(db: &Db, job: &Job<'_>, strings: &mut Strings<'_>, places: &mut Places<'_>) -> Result<Vec<GraphLaunch>, ImportError> {
    let columns = ["start", "end", "globalPid", "deviceId", "contextId", "streamId", "graphId", "correlationId"];
    let rows = gather_rows(db, job, GRAPH, columns, "graphs")?;
    let calls = if rows.is_empty() || !job.wants.has_parts(Parts::CALLS) { Calls::new() } else { graph_calls(db, job, strings)? };
    let mut out: Vec<GraphLaunch> = rows
        .iter()
        .map(|row| {
            let (start, duration) = row_span(row);
            let place = places.place_id([row[2], row[3], row[4], row[5]], None).0;
            let call = calls.get(&(pid_of(row[2]), row[7])).copied();
            GraphLaunch { start, duration, graph: row[6].cast_unsigned(), place, call }
        })
        .collect();
    out.sort_by_key(|g| (g.call.unwrap_or(g.start.0), g.start));
    Ok(out)
}
