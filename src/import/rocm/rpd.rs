//! Reader for rocmProfileData (`.rpd`), the SQLite database written by `rpd_tracer`, which is used with `vLLM` and
//! `SGLang` on AMD GPUs.
//!
//! There are two variants (ROCm/rocmProfileData @e943e7a). With rocprofiler-sdk (`RocprofDataSource.cpp`), operations
//! have a dispatch id (`sequenceId`), and grids are in work-items. With roctracer (`RoctracerDataSource.cpp`),
//! operations have no ids, grids are in blocks except for calls whose grid argument is in work-items, and kernels of
//! a HIP graph have the type `Task`.

use super::by_id::ById;
use super::rocpd::{next, to_u32};
use super::rocpd_durations::Durations;
use super::rows::{Agent, Call, Copy, Dispatch, Process, Rows, Symbol};
use crate::import::sqlite::db::Db;
use crate::import::sqlite::scan::{NULL, find_layout, gather_pieces, gather_rows, scan_integers};
use crate::import::{ImportError, Job, Parts};
use crate::model::launches::TimesBuilder;
use crate::model::{Device, Vendor};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::BTreeSet;
use std::sync::Arc;

/// Calls whose grid argument is in work-items.
const IN_ITEMS: [&str; 2] = ["hipExtModuleLaunchKernel", "hipHccModuleLaunchKernel"];
/// Name of the call for `ROCTx` ranges and marks.
const MARKER: &str = "UserMarker";

/// Launch parameters of a call, which apply to the operations it starts.
#[derive(Clone, Copy)]
struct Launch {
    grid: [u32; 3],
    workgroup: [u32; 3],
    lds: Option<u32>,
    scratch: Option<u32>,
    name: i64,
}

/// Returns true if a file starts like a rocmProfileData database.
pub fn is_rpd_database(head: &[u8]) -> bool {
    let has = |word: &[u8]| memchr::memmem::find(head, word).is_some();
    head.starts_with(super::MAGIC) && (has(b"rocpd_kernelapi") || has(b"rocpd_barrierop")) && !has(b"rocpd_info_")
}

fn to_dims(values: [i64; 3]) -> [u32; 3] {
    values.map(|v| to_u32(v).unwrap_or(0))
}

fn is_cuda_call(name: &str) -> bool {
    name.starts_with("cuda") || name.starts_with("cu") && name[2..].starts_with(|c: char| c.is_ascii_uppercase())
}

/// Returns true if operations of this type are kernels.
fn is_kernel(kind: &str) -> bool {
    matches!(kind, "KernelExecution" | "Task")
}

fn symbol_of(process: u32, text: Arc<str>) -> Symbol {
    let mangled = text.starts_with("_Z").then(|| text.clone());
    Symbol { process, formatted: if mangled.is_some() { Arc::from("") } else { text }, mangled, ..Symbol::default() }
}

/// One thread's result: names and durations of kernels, by chunk of the table.
#[derive(Default)]
struct Found {
    pieces: Vec<(usize, Vec<u32>, TimesBuilder)>,
    gpus: BTreeSet<i64>,
    broken: u64,
    unnamed: bool,
}

/// Reads only kernels and durations, storing names in `Durations::symbols`. `None` if a kernel takes its name from
/// its launch, which is in another table.
fn read_durations(
    db: &Db,
    job: &Job<'_>,
    ids: &FxHashMap<i64, u32>,
    texts: &[Arc<str>],
) -> Result<Option<(Durations, BTreeSet<i64>)>, ImportError> {
    let table = "rocpd_op";
    if !db.has_table(table) {
        return Ok(None);
    }
    let (layout, memory) = (find_layout(db, table)?, db.memory_budget());
    let text = |id: i64| ids.get(&id).and_then(|&at| texts.get(at as usize));
    let kernels: FxHashSet<i64> = ids.keys().copied().filter(|&id| text(id).is_some_and(|t| is_kernel(t))).collect();
    let columns = ["gpuId", "start", "end", "description_id", "opType_id"];
    let states = scan_integers(db, table, columns, ("operations", layout), job, Found::default, |found, chunk, rows| {
        memory.charge_bytes(8 * rows.len() as u64)?;
        let (mut names, mut times) = (Vec::new(), TimesBuilder::with_capacity(rows.len()));
        let (mut last, mut on) = ((NULL, None), NULL);
        for &[gpu, start, end, description, kind] in rows {
            if gpu != on {
                on = gpu;
                found.gpus.insert(gpu);
            }
            if start == NULL {
                found.broken += 1;
                continue;
            }
            if !kernels.contains(&kind) {
                continue;
            }
            if last.0 != description {
                last = (description, ids.get(&description).copied().filter(|_| text(description).is_some_and(|t| !t.is_empty())));
            }
            let Some(name) = last.1 else {
                found.unnamed = true;
                continue;
            };
            let end = if end == NULL { start } else { end };
            names.push(name);
            times.push((start > 0 && end >= start).then(|| end - start));
        }
        found.pieces.push((chunk, names, times));
        Ok(())
    })?;
    if states.iter().any(|s| s.unnamed) {
        return Ok(None);
    }
    let mut out = Durations { broken: states.iter().map(|s| s.broken).sum(), ..Durations::default() };
    let gpus = states.iter().flat_map(|s| s.gpus.iter().copied()).collect();
    let mut pieces: Vec<_> = states.into_iter().flat_map(|s| s.pieces).collect();
    pieces.sort_by_key(|p| p.0);
    for (_, names, times) in pieces {
        out.symbols.extend(names);
        out.times.append(times);
    }
    Ok(Some((out, gpus)))
}

/// Turns the names in the durations into symbols, and adds the GPUs.
fn with_durations((mut durations, gpus): (Durations, BTreeSet<i64>), mut rows: Rows) -> Rows {
    let names: FxHashSet<u32> = durations.symbols.iter().copied().collect();
    let mut calls = (0..).zip(&rows.texts).filter(|(at, _)| !names.contains(at)).map(|(_, text)| text);
    let maker = if calls.any(|t| is_cuda_call(t)) { Vendor::Nvidia } else { Vendor::Amd };
    for gpu in gpus {
        rows.agents.push(Agent { device: Some(Device { maker, id: to_u32(gpu).unwrap_or(0), ..Device::default() }), ..Agent::default() });
    }
    rows.processes.push(Process::default());
    let mut symbols: FxHashMap<u32, u32> = FxHashMap::default();
    for name in &mut durations.symbols {
        *name = *symbols.entry(*name).or_insert_with_key(|name| {
            rows.symbols.push(symbol_of(0, rows.texts.get(*name as usize).cloned().unwrap_or_default()));
            next(rows.symbols.len() - 1)
        });
    }
    rows.broken += durations.broken;
    rows.durations = Some(durations);
    rows
}

/// Reads all requested parts.
pub fn read_database(db: &Db, job: &Job<'_>) -> Result<Rows, ImportError> {
    let mut reader = Reader::default();
    reader.read_texts(db)?;
    if job.wants.parts.is_empty()
        && let Some(durations) = read_durations(db, job, &reader.texts, &reader.rows.texts)?
    {
        return Ok(with_durations(durations, reader.rows));
    }
    let calls = reader.read_calls(db, job)?;
    let calls = ById::from_rows(calls.len(), calls.into_iter());
    let launches = read_launches(db, job)?;
    let sizes: FxHashMap<i64, i64> = if job.wants.has_parts(Parts::MEMOPS) {
        gather_rows(db, job, "rocpd_copyapi", ["api_ptr_id", "size"], "copies")?.into_iter().map(|[api, size]| (api, size)).collect()
    } else {
        FxHashMap::default()
    };
    let pairs = gather_pieces(db, job, "rocpd_api_ops", ["op_id", "api_id"], "operations")?;
    let call_of = ById::from_rows(pairs.iter().map(Vec::len).sum(), pairs.into_iter().flatten().map(|[op, api]| (op, api)));
    let columns = ["id", "gpuId", "queueId", "sequenceId", "start", "end", "description_id", "opType_id"];
    for [id, gpu, queue, sequence, start, end, description, kind] in
        gather_pieces(db, job, "rocpd_op", columns, "operations")?.into_iter().flatten()
    {
        let agent = reader.find_agent(gpu);
        let api = call_of.get(id).unwrap_or(NULL);
        if start == NULL {
            reader.rows.broken += 1;
            continue;
        }
        let end = if end == NULL { start } else { end };
        let op = Operation { agent, queue, sequence, api, start, end, description, kind, caller: calls.get(api).unwrap_or_default() };
        if is_kernel(&reader.text(kind)) {
            reader.add_kernel(&op, launches.get(&api));
        } else {
            reader.add_copy(&op, sizes.get(&api));
        }
    }
    Ok(reader.rows)
}

/// Process and thread of a call, and true if its grid is in work-items.
type Caller = (u32, u32, bool);

/// An operation of a GPU, by the database's ids.
struct Operation {
    /// Index of the agent.
    agent: u32,
    queue: i64,
    sequence: i64,
    /// Call that started the operation.
    api: i64,
    start: i64,
    end: i64,
    description: i64,
    kind: i64,
    caller: Caller,
}

/// Rows read so far, and the indices of the database's ids in them.
#[derive(Default)]
struct Reader {
    rows: Rows,
    texts: FxHashMap<i64, u32>,
    agents: FxHashMap<i64, u32>,
    /// Symbols by process and name.
    symbols: FxHashMap<(u32, u32), u32>,
    /// True if the program called CUDA, so that the GPUs are NVIDIA's.
    nvidia: bool,
}

impl Reader {
    fn read_texts(&mut self, db: &Db) -> Result<(), ImportError> {
        for row in db.read_rows("rocpd_string", &["id", "string"])? {
            let id = row.first().and_then(|id| id.as_ref()?.parse::<i64>().ok());
            let (Some(id), Some(Some(text))) = (id, row.get(1)) else { continue };
            self.texts.insert(id, next(self.rows.texts.len()));
            self.rows.texts.push(Arc::from(text.as_str()));
        }
        Ok(())
    }

    /// The string with an id; empty if there is none.
    fn text(&self, id: i64) -> Arc<str> {
        self.texts.get(&id).and_then(|&at| self.rows.texts.get(at as usize)).cloned().unwrap_or_default()
    }

    /// Reads the calls and the processes that made them; returns the caller of each call.
    fn read_calls(&mut self, db: &Db, job: &Job<'_>) -> Result<Vec<(i64, Caller)>, ImportError> {
        let mut processes: FxHashMap<i64, u32> = FxHashMap::default();
        let mut callers: Vec<(i64, Caller)> = Vec::new();
        let columns = ["id", "pid", "tid", "start", "end", "apiName_id", "args_id"];
        for [id, pid, tid, start, end, name, args] in gather_pieces(db, job, "rocpd_api", columns, "calls")?.into_iter().flatten() {
            let process = *processes.entry(pid).or_insert_with(|| {
                self.rows.processes.push(Process { pid: to_u32(pid).unwrap_or(0), ..Process::default() });
                next(self.rows.processes.len() - 1)
            });
            let thread = to_u32(tid).unwrap_or(0);
            let called = self.text(name);
            self.nvidia |= is_cuda_call(&called);
            callers.push((id, (process, thread, IN_ITEMS.contains(&&*called))));
            let marker = &*called == MARKER;
            let Some(&name) = self.texts.get(if marker { &args } else { &name }).filter(|_| start != NULL) else {
                self.rows.broken += 1;
                continue;
            };
            let end = if end == NULL { start } else { end };
            let correlation = u64::try_from(id).unwrap_or(0);
            self.rows.calls.push(Call { process, thread, name, marker, of_process: false, correlation, start, end });
        }
        if self.rows.processes.is_empty() {
            self.rows.processes.push(Process::default());
        }
        Ok(callers)
    }

    /// Index of the agent of a GPU, which is added on first use.
    fn find_agent(&mut self, gpu: i64) -> u32 {
        let (rows, maker) = (&mut self.rows, if self.nvidia { Vendor::Nvidia } else { Vendor::Amd });
        *self.agents.entry(gpu).or_insert_with(|| {
            let device = Some(Device { maker, id: to_u32(gpu).unwrap_or(0), ..Device::default() });
            rows.agents.push(Agent { device, ..Agent::default() });
            next(rows.agents.len() - 1)
        })
    }

    /// Adds a copy or a fill; skips a queue's barriers and markers.
    fn add_copy(&mut self, op: &Operation, size: Option<&i64>) {
        let kind = self.text(op.kind);
        let named = match &*kind {
            "Memcpy" => op.description,
            k if k == "FillBuffer" || k.contains("Copy") || k.contains("COPY") => op.kind,
            _ => return,
        };
        let to_host = self.text(named).to_ascii_lowercase().replace('_', "").contains("devicetohost");
        let (from, to) = if to_host { (Some(op.agent), None) } else { (None, Some(op.agent)) };
        let (process, thread, _) = op.caller;
        self.rows.copies.push(Copy {
            process,
            thread,
            from,
            to,
            name: self.texts.get(&named).copied().unwrap_or(u32::MAX),
            bytes: size.and_then(|&n| u64::try_from(n).ok()).filter(|&n| n > 0),
            stream: to_u32(op.queue),
            correlation: u64::try_from(op.api).unwrap_or(0),
            start: op.start,
            end: op.end,
        });
    }

    fn add_kernel(&mut self, op: &Operation, launch: Option<&Launch>) {
        let (process, thread, in_items) = op.caller;
        let described = self.texts.get(&op.description);
        let described = described.filter(|&&at| self.rows.texts.get(at as usize).is_some_and(|t| !t.is_empty()));
        let Some(&name) = described.or_else(|| self.texts.get(&launch.map_or(NULL, |l| l.name))) else {
            self.rows.broken += 1;
            return;
        };
        let rows = &mut self.rows;
        let symbol = *self.symbols.entry((process, name)).or_insert_with(|| {
            rows.symbols.push(symbol_of(process, rows.texts.get(name as usize).cloned().unwrap_or_default()));
            next(rows.symbols.len() - 1)
        });
        // Kernels in a graph share the call that launched the graph, but not its sizes.
        let sized = launch.filter(|_| &*self.text(op.kind) == "KernelExecution");
        let (workgroup, mut grid) = sized.map_or(([0; 3], [0; 3]), |l| (l.workgroup, l.grid));
        if op.sequence <= 0 && !in_items {
            grid = [0, 1, 2].map(|i| grid[i].saturating_mul(workgroup[i]));
        }
        self.rows.dispatches.push(Dispatch {
            process,
            agent: op.agent,
            symbol,
            thread,
            id: u64::try_from(op.sequence).unwrap_or(0),
            queue: to_u32(op.queue).unwrap_or(0),
            correlation: u64::try_from(op.api).unwrap_or(0),
            start: op.start,
            end: op.end,
            workgroup,
            grid,
            lds: sized.and_then(|l| l.lds),
            scratch: sized.and_then(|l| l.scratch),
            ..Dispatch::default()
        });
    }
}

/// Reads the launch parameters of calls, by call.
fn read_launches(db: &Db, job: &Job<'_>) -> Result<FxHashMap<i64, Launch>, ImportError> {
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
    let launch = |[api, gx, gy, gz, wx, wy, wz, lds, scratch, name]: [i64; 10]| {
        let launch =
            Launch { grid: to_dims([gx, gy, gz]), workgroup: to_dims([wx, wy, wz]), lds: to_u32(lds), scratch: to_u32(scratch), name };
        (api, launch)
    };
    Ok(launched.into_iter().map(launch).collect())
}
