//! Reads device activity other than kernels and copies: synchronization, GPU metrics over time, allocations.

use super::calls::pid_of;
use super::memops::memory_kind;
use super::places::Places;
use super::target::Target;
use crate::import::sqlite::db::Db;
use crate::import::sqlite::scan::{NULL, gather_rows};
use crate::import::{ImportError, Job};
use crate::model::api_call::NONE;
use crate::model::{CounterTrack, MemoryEvent, MemoryEvents, MemoryKind, MemoryLevel, WaitKind, Waits};
use rustc_hash::FxHashMap;
use std::sync::Arc;

const SYNC: &str = "CUPTI_ACTIVITY_KIND_SYNCHRONIZATION";
const METRICS: &str = "GPU_METRICS";
const METRIC_NAMES: &str = "TARGET_INFO_GPU_METRICS";
const MEMORY: &str = "CUDA_GPU_MEMORY_USAGE_EVENTS";
/// Bits of `typeId` that hold the GPU number (nsys User Guide, "GPU Metrics", SQL example: `typeId & 0xFF`).
const GPU_OF_TYPE: i64 = 0xff;
/// Minimum value of a clock given in Hz; smaller values are in MHz. GPU clocks are above 0.1 MHz and below 100 GHz.
/// nsys labels clocks as MHz but stores Hz (measured on an H200 with 2025.3).
const HZ_FROM: f64 = 1e5;
const HZ_IN_MHZ: f64 = 1e6;
/// Value of `memoryOperationType` for a free (`ENUM_CUDA_DEV_MEM_EVENT_OPER`).
const FREE: i64 = 1;

fn to_number(value: i64) -> u32 {
    u32::try_from(value).unwrap_or(NONE)
}

/// Reads synchronization between streams, and between threads and devices, sorted by start.
pub fn read_waits(db: &Db, job: &Job<'_>, places: &mut Places<'_>) -> Result<Waits, ImportError> {
    let columns = ["start", "end", "globalPid", "deviceId", "contextId", "streamId", "correlationId", "syncType", "eventId"];
    let mut rows = gather_rows(db, job, SYNC, columns, "waits")?;
    rows.retain(|row| row[0] != NULL);
    rows.sort_by_key(|row| row[0]);
    let mut out = Waits::default();
    for [start, end, pid, device, context, stream, correlation, kind, event] in rows {
        out.start.push(start);
        out.duration.push(if end == NULL { 0 } else { end.saturating_sub(start).max(0) });
        // CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_*.
        out.kind.push(match kind {
            1 => WaitKind::Event,
            2 => WaitKind::StreamForEvent,
            3 => WaitKind::Stream,
            4 => WaitKind::Context,
            _ => WaitKind::Other,
        });
        // `u32::MAX` means that the wait is not for a specific stream.
        let stream = if stream == i64::from(NONE) { NULL } else { stream };
        out.place.push(places.place_id([pid, device, context, stream], None));
        out.correlation.push(to_number(correlation));
        out.event.push(to_number(event));
    }
    Ok(out)
}

/// Reads GPU metrics over time, with one track per metric, sorted by GPU and by nsys's metric number.
pub fn read_counters(db: &Db, job: &Job<'_>, target: &Target) -> Result<Vec<CounterTrack>, ImportError> {
    let mut rows = gather_rows(db, job, METRICS, ["timestamp", "typeId", "metricId", "value"], "GPU metrics")?;
    if rows.is_empty() {
        return Ok(Vec::new());
    }
    let mut names: FxHashMap<(i64, i64), String> = FxHashMap::default();
    for row in db.read_rows(METRIC_NAMES, &["typeId", "metricId", "metricName"])? {
        let number = |at: usize| row.get(at).and_then(Option::as_deref).and_then(|t| t.parse::<i64>().ok());
        if let (Some(kind), Some(metric), Some(Some(name))) = (number(0), number(1), row.get(2)) {
            names.entry((kind, metric)).or_insert_with(|| name.clone());
        }
    }
    rows.retain(|row| row[0] != NULL && row[3] != NULL);
    rows.sort_by_key(|row| (row[1], row[2], row[0]));
    let mut out = Vec::new();
    for group in rows.chunk_by(|a, b| a[1..3] == b[1..3]) {
        let Some(&[_, kind, metric, _]) = group.first() else { continue };
        let gpu = u32::try_from(kind & GPU_OF_TYPE).ok();
        let name = names.get(&(kind, metric)).map_or_else(|| format!("metric {metric}"), String::clone);
        // Metric name and unit: `SMs Active [Throughput %]`.
        let (name, unit) = match name.strip_suffix(']').and_then(|n| n.rsplit_once(" [")) {
            Some((name, unit)) => (name.to_owned(), unit.to_owned()),
            None => (name, String::new()),
        };
        let value = |v: i64| {
            let v = v as f64;
            if unit == "MHz" && v.abs() >= HZ_FROM { v / HZ_IN_MHZ } else { v }
        };
        out.push(CounterTrack {
            device: gpu.and_then(|id| target.devices.iter().position(|d| d.id == id)).and_then(|at| u32::try_from(at).ok()),
            times: group.iter().map(|row| row[0]).collect(),
            values: group.iter().map(|row| value(row[3])).collect(),
            name: Arc::from(name),
            unit: Arc::from(unit),
        });
    }
    Ok(out)
}

/// Reads allocations and frees made by the CUDA driver, sorted by time.
pub fn read_memory(db: &Db, job: &Job<'_>, target: &Target) -> Result<MemoryEvents, ImportError> {
    let columns = ["start", "globalPid", "deviceId", "address", "bytes", "memKind", "memoryOperationType"];
    let mut rows = gather_rows(db, job, MEMORY, columns, "memory usage")?;
    rows.retain(|row| row[0] != NULL);
    rows.sort_by_key(|row| row[0]);
    let event = |[time, global, device, address, bytes, kind, operation]: [i64; 7]| {
        let bytes = if bytes == NULL { 0 } else { bytes.max(0) };
        let kind = memory_kind(kind);
        // For host memory, the export contains the device of the context that made the request; ignore it.
        let host = matches!(kind, Some(MemoryKind::Pageable | MemoryKind::Pinned));
        let pid = pid_of(global);
        MemoryEvent {
            time,
            address: if address == NULL { 0 } else { address.cast_unsigned() },
            bytes: if operation == FREE { -bytes } else { bytes },
            device: u32::try_from(device).ok().filter(|_| !host).and_then(|ordinal| target.gpu_of(pid, Some(ordinal))),
            pid: pid.unwrap_or_default(),
            tid: 0,
            kind,
            level: MemoryLevel::Driver,
        }
    };
    Ok(MemoryEvents { events: rows.into_iter().map(event).collect(), ..MemoryEvents::default() })
}
