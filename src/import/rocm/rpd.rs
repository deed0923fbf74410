//! Reader for rocmProfileData (`.rpd`): the SQLite database of `rpd_tracer`, used with `vLLM` and `SGLang` on AMD GPUs.
//!
//! There are two variants (ROCm/rocmProfileData @e943e7a). With rocprofiler-sdk (`RocprofDataSource.cpp`), an
//! operation has a dispatch id (`sequenceId`), and grids are in work-items. With roctracer
//! (`RoctracerDataSource.cpp`), operations have no ids, grids are in blocks except for calls whose grid argument is in
//! work-items, and kernels of a HIP graph have the type `Task`.

use super::rocpd::{next, to_u32};
use super::rows::{Agent, Call, Copy, Dispatch, Process, Rows, Symbol};
use crate::import::sqlite::db::Db;
use crate::import::sqlite::scan::{NULL, gather_rows};
use crate::import::{ImportError, Job, Parts};
use crate::model::{Device, Vendor};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Calls whose grid argument is in work-items.
const IN_ITEMS: [&str; 2] = ["hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"];
/// Call name of `ROCTx` ranges and marks.
const MARKER: &str = "UserMarker";

/// Launch parameters of a call, which apply to its operations.
#[derive(Clone, Copy)]
struct Launch {
    grid: [u32; 3],
    workgroup: [u32; 3],
    lds: Option<u32>,
    scratch: Option<u32>,
    name: i64,
}

/// Returns true if a file begins like such a database.
pub fn is_rpd_database(head: &[u8]) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(head, word).is_some();
    head.starts_with(super::MAGIC) && (has(b"rocpd_kernelapi") || has(b"rocpd_barrierop")) && !has(b"rocpd_info_")
}

fn to_dims(values: [i64; 3]) -> [u32; 3] {
    values.map(|v| to_u32(v).unwrap_or(0))
}

/// Reads all requested parts.
pub fn read_database(db: &Db, job: &Job<'_>) -> Result<Rows, ImportError> {
    let mut rows = Rows::default();
    let mut texts: FxHashMap<i64, u32> = FxHashMap::default();
    for row in db.read_rows("rocpd_string", &["id", "string"])? {
        let id = row.first().and_then(|id| id.as_ref()?.parse::<i64>().ok());
        let (Some(id), Some(Some(text))) = (id, row.get(1)) else { continue };
        texts.insert(id, next(rows.texts.len()));
        rows.texts.push(Arc::from(text.as_str()));
    }
    let text = |rows: &Rows, id: i64| texts.get(&id).and_then(|&at| rows.texts.get(at as usize)).cloned().unwrap_or_default();
    let mut processes: FxHashMap<i64, u32> = FxHashMap::default();
    // Process and thread of each call; true if its grid is in work-items.
    let mut of_api: FxHashMap<i64, (u32, u32, bool)> = FxHashMap::default();
    let mut nvidia = false;
    let columns = ["id", "pid", "tid", "start", "end", "apiName_id", "args_id"];
    for [id, pid, tid, start, end, name, args] in gather_rows(db, job, "rocpd_api", columns, "calls")? {
        let process = *processes.entry(pid).or_insert_with(|| {
            rows.processes.push(Process { pid: to_u32(pid).unwrap_or(0), ..Process::default() });
            next(rows.processes.len() - 1)
        });
        let thread = to_u32(tid).unwrap_or(0);
        let called = text(&rows, name);
        nvidia |= called.starts_with("cuda") || called.starts_with("cu") && called[2..].starts_with(|c: char| c.is_ascii_uppercase());
        of_api.insert(id, (process, thread, IN_ITEMS.contains(&&*called)));
        let marker = &*called == MARKER;
        let Some(&name) = texts.get(if marker { &args } else { &name }).filter(|_| start != NULL) else {
            rows.broken += 1;
            continue;
        };
        let end = if end == NULL { start } else { end };
        rows.calls.push(Call { process, thread, name, marker, of_process: false, correlation: u64::try_from(id).unwrap_or(0), start, end });
    }
    if rows.processes.is_empty() {
        rows.processes.push(Process::default());
    }
    let columns = [
        "api_ptr_id",
        "gridX",
        "gridY",
        "gridZ",
        "workgroupX",
        "workgroupY",
        "workgroupZ",
        "groupSegmentSize",
        "privateSegmentSize",
        "kernelName_id",
    ];
    let launched = gather_rows(db, job, "rocpd_kernelapi", columns, "launches")?;
    let launches: FxHashMap<i64, Launch> = launched
        .into_iter()
        .map(|[api, gx, gy, gz, wx, wy, wz, lds, scratch, name]| {
            (
                api,
                Launch { grid: to_dims([gx, gy, gz]), workgroup: to_dims([wx, wy, wz]), lds: to_u32(lds), scratch: to_u32(scratch), name },
            )
        })
        .collect();
    let sizes: FxHashMap<i64, i64> = if job.wants.has_parts(Parts::MEMOPS) {
        gather_rows(db, job, "rocpd_copyapi", ["api_ptr_id", "size"], "copies")?.into_iter().map(|[api, size]| (api, size)).collect()
    } else {
        FxHashMap::default()
    };
    let api_of: FxHashMap<i64, i64> =
        gather_rows(db, job, "rocpd_api_ops", ["op_id", "api_id"], "operations")?.into_iter().map(|[op, api]| (op, api)).collect();
    let mut agents: FxHashMap<i64, u32> = FxHashMap::default();
    let mut symbols: FxHashMap<(u32, u32), u32> = FxHashMap::default();
    let columns = ["id", "gpuId", "queueId", "sequenceId", "start", "end", "description_id", "opType_id"];
    for [id, gpu, queue, sequence, start, end, description, of_kind] in gather_rows(db, job, "rocpd_op", columns, "operations")? {
        let agent = *agents.entry(gpu).or_insert_with(|| {
            let maker = if nvidia { Vendor::Nvidia } else { Vendor::Amd };
            let device = Some(Device { maker, id: to_u32(gpu).unwrap_or(0), ..Device::default() });
            rows.agents.push(Agent { device, ..Agent::default() });
            next(rows.agents.len() - 1)
        });
        let api = api_of.get(&id).copied().unwrap_or(NULL);
        let (process, thread, in_items) = of_api.get(&api).copied().unwrap_or_default();
        let launch = launches.get(&api);
        let kind = text(&rows, of_kind);
        let end = if end == NULL { start } else { end };
        let correlation = u64::try_from(api).unwrap_or(0);
        if start == NULL {
            rows.broken += 1;
            continue;
        }
        let is_kernel = matches!(&*kind, "KernelExecution" | "Task");
        if !is_kernel {
            // Skip barriers and markers of a queue.
            let named = match &*kind {
                "Memcpy" => description,
                k if k == "FillBuffer" || k.contains("Copy") || k.contains("COPY") => of_kind,
                _ => continue,
            };
            let name = texts.get(&named).copied().unwrap_or(u32::MAX);
            let bytes = sizes.get(&api).and_then(|&n| u64::try_from(n).ok()).filter(|&n| n > 0);
            let to_host = text(&rows, named).to_ascii_lowercase().replace('_', "").contains("devicetohost");
            let (from, to) = if to_host { (Some(agent), None) } else { (None, Some(agent)) };
            let stream = to_u32(queue);
            rows.copies.push(Copy { process, thread, from, to, name, bytes, stream, correlation, start, end });
            continue;
        }
        let of_launch = launch.map_or(NULL, |l| l.name);
        let Some(&name) = texts
            .get(&description)
            .filter(|&&at| rows.texts.get(at as usize).is_some_and(|t| !t.is_empty()))
            .or_else(|| texts.get(&of_launch))
        else {
            rows.broken += 1;
            continue;
        };
        let symbol = *symbols.entry((process, name)).or_insert_with(|| {
            let text = rows.texts.get(name as usize).cloned().unwrap_or_default();
            let mangled = text.starts_with("_Z").then(|| text.clone());
            rows.symbols.push(Symbol {
                process,
                formatted: if mangled.is_some() { Arc::from("") } else { text },
                mangled,
                ..Symbol::default()
            });
            next(rows.symbols.len() - 1)
        });
        // Kernels of a graph have the graph's launch call, whose sizes are not those of the kernel.
        let sized = launch.filter(|_| &*kind == "KernelExecution");
        let (workgroup, mut grid) = sized.map_or(([0; 3], [0; 3]), |l| (l.workgroup, l.grid));
        if sequence <= 0 && !in_items {
            grid = [0, 1, 2].map(|i| grid[i].saturating_mul(workgroup[i]));
        }
        rows.dispatches.push(Dispatch {
            process,
            agent,
            symbol,
            thread,
            id: u64::try_from(sequence).unwrap_or(0),
            queue: to_u32(queue).unwrap_or(0),
            correlation,
            start,
            end,
            workgroup,
            grid,
            lds: sized.and_then(|l| l.lds),
            scratch: sized.and_then(|l| l.scratch),
            ..Dispatch::default()
        });
    }
    Ok(rows)
}
