//! Reader for rocpd, the SQLite database of rocprofv3 (schema 3.0.x), for one process or several (`rocpd merge`). It
//! avoids the database's views, which omit dispatches without a queue or thread.

use super::by_id::ById;
use super::rocpd_durations::{Known, read_durations};
use super::rows::{Agent, Allocation, Call, Copy, Counter, Dispatch, Process, Rows, Symbol, Texts, strip_kd_suffix};
use crate::import::sqlite::db::Db;
use crate::import::sqlite::scan::{NULL, find_layout, gather_pieces, gather_rows, scan_integers};
use crate::import::{ImportError, Job, Parts};
use crate::model::{Bytes, Device, Vendor};
use rustc_hash::{FxHashMap, FxHashSet};
use serde_json::Value;
use std::collections::BTreeMap;
use std::sync::Arc;

/// Name of the dispatch table without its suffix. All tables of a process share a suffix.
const DISPATCHES: &str = "rocpd_kernel_dispatch";

/// Returns the table name suffixes; there is one per merged database.
pub fn table_suffixes(db: &Db) -> Vec<String> {
    let mut out: Vec<String> = db.table_names().filter_map(|n| n.strip_prefix("rocpd_metadata")).map(str::to_owned).collect();
    out.sort();
    out
}

/// Reads the metadata value with this tag.
pub fn read_metadata(db: &Db, tag: &str) -> Result<Option<String>, ImportError> {
    for suffix in table_suffixes(db) {
        for row in db.read_rows(&format!("rocpd_metadata{suffix}"), &["tag", "value"])? {
            if row.first().and_then(Option::as_deref) == Some(tag) {
                return Ok(row.into_iter().nth(1).flatten());
            }
        }
    }
    Ok(None)
}

/// Reads all requested parts. If `whole`, this database is the entire report, and a table of kernels needs only
/// [`Rows::durations`].
pub fn read_database(db: &Db, job: &Job<'_>, whole: bool) -> Result<Rows, ImportError> {
    let read = |durations_only| {
        let mut rows = Rows::default();
        for suffix in table_suffixes(db) {
            One { db, job, suffix: &suffix, durations_only, ids: Ids::default() }.read_all(&mut rows)?;
        }
        Ok(rows)
    };
    let mut rows: Rows = read(whole && job.wants.parts.is_empty())?;
    // Counters or replayed kernels require individual dispatches.
    if rows.durations.is_some() && !rows.dispatches.is_empty() {
        rows = read(false)?;
    }
    rows.choose_counted();
    rows.broken += rows.durations.as_ref().map_or(0, |d| d.broken);
    Ok(rows)
}

/// Maps ids of one database to indices in [`Rows`].
#[derive(Default)]
struct Ids {
    texts: FxHashMap<i64, u32>,
    processes: FxHashMap<i64, u32>,
    /// OS thread ids by row id.
    threads: FxHashMap<i64, u32>,
    agents: FxHashMap<i64, u32>,
    symbols: FxHashMap<i64, u32>,
    /// Correlation id and category string id of each event.
    events: ById<(u64, i64)>,
    /// Process and dispatch id of each event with counters; `None` until the dispatch has been read.
    counted: FxHashMap<i64, Option<(u32, u64)>>,
    /// String ids of the `ROCTx` categories, and of the kernel driver's categories.
    markers: FxHashSet<i64>,
    driver: FxHashSet<i64>,
}

/// One thread's result of reading the dispatches.
#[derive(Default)]
struct Found {
    /// Dispatches, by chunk of the table.
    pieces: Vec<(usize, Vec<Dispatch>)>,
    /// Process and dispatch id of events with counters.
    counted: Vec<(i64, (u32, u64))>,
    graph_nodes: Vec<((u32, u64), u64)>,
    broken: u64,
}

struct One<'a> {
    db: &'a Db,
    job: &'a Job<'a>,
    suffix: &'a str,
    /// True if only the durations of kernels are needed.
    durations_only: bool,
    ids: Ids,
}

fn parse_number(text: Option<&Option<String>>) -> Option<i64> {
    text?.as_ref()?.parse().ok()
}

pub(super) fn to_u32(value: i64) -> Option<u32> {
    u32::try_from(value).ok()
}

pub(super) fn next(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

impl One<'_> {
    fn table_name(&self, name: &str) -> String {
        format!("rocpd_{name}{}", self.suffix)
    }

    fn read_all(mut self, rows: &mut Rows) -> Result<(), ImportError> {
        self.read_texts(rows)?;
        self.read_processes(rows)?;
        self.read_agents(rows)?;
        self.read_symbols(rows)?;
        let wants = |part| self.job.wants.has_parts(part);
        let (details, calls) = (wants(Parts::DETAILS), wants(Parts::CALLS) || wants(Parts::RANGES));
        let counted = gather_rows(self.db, self.job, &self.table_name("pmc_event"), ["event_id"], "counters")?;
        self.ids.counted = counted.into_iter().map(|[event]| (event, None)).collect();
        // Runs of a replayed kernel, which exist only when counters are collected, are distinguished by their events.
        if details || calls || !self.ids.counted.is_empty() {
            let table = self.table_name("event");
            self.ids.events = {
                let pieces = gather_pieces(self.db, self.job, &table, ["id", "stack_id", "category_id"], "events")?;
                let rows = pieces.iter().map(Vec::len).sum();
                let event = |[id, stack, category]: [i64; 3]| (id, (u64::try_from(stack).unwrap_or(0), category));
                ById::from_rows(rows, pieces.into_iter().flatten().map(event))
            };
        }
        self.read_dispatches(rows)?;
        if calls || details {
            self.read_calls(rows)?;
        }
        self.read_counters(rows)?;
        if wants(Parts::MEMOPS) {
            self.read_copies(rows)?;
        }
        if wants(Parts::MEMORY) {
            self.read_allocations(rows)?;
        }
        Ok(())
    }

    fn read_texts(&mut self, rows: &mut Rows) -> Result<(), ImportError> {
        for row in self.db.read_rows(&self.table_name("string"), &["id", "string"])? {
            let (Some(id), Some(Some(text))) = (parse_number(row.first()), row.get(1)) else { continue };
            if text.starts_with("MARKER") {
                self.ids.markers.insert(id);
            } else if text.starts_with("KFD_") {
                self.ids.driver.insert(id);
            }
            self.ids.texts.insert(id, next(rows.texts.len()));
            rows.texts.push(Arc::from(text.as_str()));
        }
        Ok(())
    }

    fn read_processes(&mut self, rows: &mut Rows) -> Result<(), ImportError> {
        let hosts = self.db.read_rows(&self.table_name("info_node"), &["hostname"])?;
        let host = hosts.into_iter().next().and_then(|r| r.into_iter().next().flatten());
        for row in self.db.read_rows(&self.table_name("info_process"), &["id", "pid", "command"])? {
            let Some(id) = parse_number(row.first()) else { continue };
            self.ids.processes.insert(id, next(rows.processes.len()));
            rows.processes.push(Process {
                pid: parse_number(row.get(1)).and_then(to_u32).unwrap_or(0),
                command: row.into_iter().nth(2).flatten(),
                host: host.clone(),
                ..Process::default()
            });
        }
        if self.ids.processes.is_empty() {
            // A run that crashed may not have written a process.
            rows.processes.push(Process { host, ..Process::default() });
        }
        for row in self.db.read_rows(&self.table_name("info_thread"), &["id", "tid", "name", "pid"])? {
            let (Some(id), Some(tid)) = (parse_number(row.first()), parse_number(row.get(1)).and_then(to_u32)) else { continue };
            self.ids.threads.insert(id, tid);
            let process = parse_number(row.get(3)).map_or(0, |p| self.process_index(p, rows));
            if let Some(Some(name)) = row.get(2).filter(|n| n.as_ref().is_some_and(|n| !n.is_empty())) {
                rows.threads.push((process, tid, Arc::from(name.as_str())));
            }
        }
        Ok(())
    }

    fn process_index(&self, id: i64, rows: &Rows) -> u32 {
        self.ids.processes.get(&id).copied().unwrap_or_else(|| next(rows.processes.len()).saturating_sub(1))
    }

    fn read_agents(&mut self, rows: &mut Rows) -> Result<(), ImportError> {
        let columns = ["id", "type", "type_index", "name", "product_name", "extdata"];
        for row in self.db.read_rows(&self.table_name("info_agent"), &columns)? {
            let Some(id) = parse_number(row.first()) else { continue };
            let text = |i: usize| row.get(i).and_then(Option::as_deref);
            let extdata: Value = text(5).and_then(|t| serde_json::from_str(t).ok()).unwrap_or_default();
            let gpu = text(1) == Some("GPU");
            let dies = extdata.get("num_xcc").and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok()).unwrap_or(0);
            let device = gpu.then(|| {
                let mut device = build_device(&|key| extdata.get(key).and_then(Value::as_u64));
                device.id = text(2).and_then(|t| t.parse().ok()).unwrap_or(0);
                device.chip = text(3).map(str::to_owned);
                device.arch.clone_from(&device.chip);
                device.name = text(4).filter(|n| !n.is_empty()).map(str::to_owned);
                name_partition(&mut device, dies);
                device
            });
            self.ids.agents.insert(id, next(rows.agents.len()));
            rows.agents.push(Agent { device, dies, reached: Vec::new() });
        }
        Ok(())
    }

    fn read_symbols(&mut self, rows: &mut Rows) -> Result<(), ImportError> {
        let columns = ["id", "pid", "kernel_name", "display_name", "arch_vgpr_count", "accum_vgpr_count", "extdata"];
        for row in self.db.read_rows(&self.table_name("info_kernel_symbol"), &columns)? {
            let Some(id) = parse_number(row.first()) else { continue };
            let text = |i: usize| row.get(i).and_then(Option::as_deref);
            let extdata: Value = text(6).and_then(|t| serde_json::from_str(t).ok()).unwrap_or_default();
            let known = |key: &str| extdata.get(key).and_then(Value::as_str).filter(|t| !t.is_empty());
            // The displayed and the formatted name depend on the options of the run. By default, rocprofv3 filters by
            // demangled name.
            let formatted = known("demangled_kernel_name").or(known("formatted_kernel_name")).or(text(3)).or(text(2)).unwrap_or_default();
            let registers =
                parse_number(row.get(4)).zip(parse_number(row.get(5)).or(Some(0))).and_then(|(a, b)| to_u32(a.saturating_add(b)));
            self.ids.symbols.insert(id, next(rows.symbols.len()));
            rows.symbols.push(Symbol {
                process: parse_number(row.get(1)).map_or(0, |p| self.process_index(p, rows)),
                kernel_id: extdata.get("kernel_id").and_then(Value::as_u64).unwrap_or(u64::try_from(id).unwrap_or(0)),
                formatted: Arc::from(strip_kd_suffix(formatted)),
                mangled: text(2).map(Arc::from),
                registers,
            });
        }
        Ok(())
    }

    /// Returns the correlation id of an event, which is shared with its call.
    fn correlation_id(&self, event: i64) -> u64 {
        self.ids.events.get(event).map_or(0, |e| e.0)
    }

    fn thread_id(&self, id: i64) -> u32 {
        self.ids.threads.get(&id).copied().or_else(|| to_u32(id)).unwrap_or(0)
    }

    fn read_dispatches(&mut self, rows: &mut Rows) -> Result<(), ImportError> {
        let table = format!("{DISPATCHES}{}", self.suffix);
        if self.durations_only && self.ids.counted.is_empty() {
            let out = rows.durations.get_or_insert_default();
            let last = next(rows.processes.len()).saturating_sub(1);
            let known = Known { symbols: &self.ids.symbols, processes: &self.ids.processes, last };
            if read_durations(self.db, &table, known, self.job, out)? {
                return Ok(());
            }
        }
        if !self.db.has_table(&table) {
            return Ok(());
        }
        let first = ["pid", "kernel_id", "dispatch_id", "start", "end", "event_id"];
        if !self.job.wants.has_parts(Parts::DETAILS) && self.ids.counted.is_empty() {
            // The kernel table needs no other columns, and reading them takes long for large reports.
            let all = gather_pieces(self.db, self.job, &table, first, "kernels")?;
            rows.dispatches.reserve_exact(all.iter().map(Vec::len).sum());
            for piece in all {
                for row in piece {
                    self.add_dispatch(rows, row);
                }
            }
            return Ok(());
        }
        let columns = [
            "pid",
            "kernel_id",
            "dispatch_id",
            "start",
            "end",
            "event_id",
            "tid",
            "agent_id",
            "queue_id",
            "stream_id",
            "private_segment_size",
            "group_segment_size",
            "workgroup_size_x",
            "workgroup_size_y",
            "workgroup_size_z",
            "grid_size_x",
            "grid_size_y",
            "grid_size_z",
            "graph_node_id",
        ];
        // Each thread converts the rows that it reads into dispatches right away, because rows are larger.
        let (layout, memory) = (find_layout(self.db, &table)?, self.db.memory_budget());
        let (this, known) = (&*self, &*rows);
        let states = scan_integers(self.db, &table, columns, ("kernels", layout), self.job, Found::default, |found, chunk, all| {
            memory.charge_bytes((all.len() * size_of::<Dispatch>()) as u64)?;
            let mut piece = Vec::with_capacity(all.len());
            for &[process, kernel, id, start, end, event, ref rest @ .., node] in all {
                let Ok(&rest) = <&[i64; 12]>::try_from(&rest[..]) else { continue };
                let Some(dispatch) = this.build_dispatch(known, [process, kernel, id, start, end, event], rest) else {
                    found.broken += 1;
                    continue;
                };
                if this.ids.counted.contains_key(&event) {
                    found.counted.push((event, (dispatch.process, dispatch.id)));
                }
                // The node is 0 outside of graphs.
                if let Some(node) = u64::try_from(node).ok().filter(|n| *n > 0) {
                    found.graph_nodes.push(((dispatch.process, dispatch.id), node));
                }
                piece.push(dispatch);
            }
            found.pieces.push((chunk, piece));
            Ok(())
        })?;
        let mut pieces = Vec::new();
        for found in states {
            rows.broken += found.broken;
            rows.graph_nodes.extend(found.graph_nodes);
            self.ids.counted.extend(found.counted.into_iter().map(|(event, of)| (event, Some(of))));
            pieces.extend(found.pieces);
        }
        pieces.sort_by_key(|&(chunk, _)| chunk);
        rows.dispatches.reserve_exact(pieces.iter().map(|(_, piece)| piece.len()).sum());
        for (_, piece) in pieces {
            rows.dispatches.extend(piece);
        }
        Ok(())
    }

    /// Adds a dispatch for which only ids and times are known.
    fn add_dispatch(&mut self, rows: &mut Rows, row: [i64; 6]) {
        let Some(dispatch) = self.build_dispatch(rows, row, [NULL; 12]) else {
            rows.broken += 1;
            return;
        };
        if let Some(counted) = self.ids.counted.get_mut(&row[5]) {
            *counted = Some((dispatch.process, dispatch.id));
        }
        rows.dispatches.push(dispatch);
    }

    /// Builds a dispatch. `rest` consists of thread, agent, queue, stream, scratch, LDS, workgroup size and grid
    /// size. `None` if the kernel or the start is unknown.
    fn build_dispatch(&self, rows: &Rows, [process, kernel, id, start, end, event]: [i64; 6], rest: [i64; 12]) -> Option<Dispatch> {
        let [thread, agent, queue, stream, scratch, lds, wx, wy, wz, gx, gy, gz] = rest;
        let &symbol = self.ids.symbols.get(&kernel).filter(|_| start != NULL)?;
        let three = |a: [i64; 3]| a.map(|n| to_u32(n).unwrap_or(0));
        Some(Dispatch {
            process: self.process_index(process, rows),
            thread: self.thread_id(thread),
            agent: self.ids.agents.get(&agent).copied().unwrap_or(u32::MAX),
            symbol,
            id: u64::try_from(id).unwrap_or(0),
            queue: to_u32(queue).unwrap_or(0),
            stream: to_u32(stream),
            correlation: self.correlation_id(event),
            start,
            end: if end == NULL { start } else { end },
            workgroup: three([wx, wy, wz]),
            grid: three([gx, gy, gz]),
            lds: to_u32(lds),
            scratch: to_u32(scratch),
            registers: None,
        })
    }

    /// Messages of `ROCTx` ranges by event; the region itself is named after the call that began the range.
    fn read_messages(&self, rows: &mut Rows) -> Result<FxHashMap<i64, u32>, ImportError> {
        let (mut out, mut texts) = (FxHashMap::default(), Texts::default());
        let categories = self.ids.markers.iter().copied();
        for row in self.db.read_rows_with(&self.table_name("event"), &["id", "extdata"], "category_id", categories)? {
            let (Some(id), Some(Some(extdata))) = (parse_number(row.first()), row.get(1)) else { continue };
            let extdata: Value = serde_json::from_str(extdata).unwrap_or_default();
            if let Some(message) = extdata.get("message").and_then(Value::as_str).filter(|m| !m.is_empty()) {
                out.insert(id, texts.text_number(message.as_bytes(), &mut rows.texts));
            }
        }
        Ok(out)
    }

    fn read_calls(&self, rows: &mut Rows) -> Result<(), ImportError> {
        let messages = self.read_messages(rows)?;
        let columns = ["pid", "tid", "start", "end", "name_id", "event_id"];
        for [process, thread, start, end, name, event] in gather_rows(self.db, self.job, &self.table_name("region"), columns, "calls")? {
            let Some(&name) = self.ids.texts.get(&name).filter(|_| start != NULL) else {
                rows.broken += 1;
                continue;
            };
            let (correlation, category) = self.ids.events.get(event).unwrap_or_default();
            if self.ids.driver.contains(&category) {
                rows.driver_records += 1;
                continue;
            }
            let function = rows.texts.get(name as usize).map_or("", |t| &**t);
            let of_process = is_process_range(function);
            let name = messages.get(&event).copied().filter(|_| function.starts_with("roctx")).unwrap_or(name);
            rows.calls.push(Call {
                process: self.process_index(process, rows),
                thread: self.thread_id(thread),
                name,
                marker: self.ids.markers.contains(&category),
                of_process,
                correlation,
                start,
                end: if end == NULL { start } else { end },
            });
        }
        Ok(())
    }

    /// Reads the counters of dispatches. Sums the instances of a counter, as AMD's own tables do.
    fn read_counters(&self, rows: &mut Rows) -> Result<(), ImportError> {
        if self.ids.counted.is_empty() {
            return Ok(());
        }
        let mut names: FxHashMap<String, u32> = FxHashMap::default();
        for row in self.db.read_rows(&self.table_name("info_pmc"), &["id", "name"])? {
            if let (Some(Some(id)), Some(Some(name))) = (row.first(), row.get(1)) {
                names.insert(id.clone(), next(rows.texts.len()));
                rows.texts.push(Arc::from(name.as_str()));
            }
        }
        // Keyed by event, since each run of a replayed dispatch has its own.
        let mut sums: BTreeMap<(i64, Arc<str>), (u32, f64)> = BTreeMap::new();
        // Skip samples over time, which do not belong to a dispatch. Schemas before 3.0.3 do not have this column.
        for row in self.db.read_rows(&self.table_name("pmc_event"), &["event_id", "pmc_id", "value", "sample_id"])? {
            let text = |i: usize| row.get(i).and_then(Option::as_deref);
            let (Some(event), Some(name), Some(value)) =
                (parse_number(row.first()), text(1).and_then(|p| names.get(p)), text(2).and_then(|v| v.parse::<f64>().ok()))
            else {
                continue;
            };
            if text(3).is_some() || !matches!(self.ids.counted.get(&event), Some(Some(_))) {
                continue;
            }
            let text = rows.texts.get(*name as usize).cloned().unwrap_or_default();
            sums.entry((event, text)).or_insert((*name, 0.0)).1 += value;
        }
        let mut first: FxHashMap<(u32, u64, Arc<str>), (u32, f64)> = FxHashMap::default();
        for ((event, text), sum) in sums {
            if let Some(&Some((process, dispatch))) = self.ids.counted.get(&event) {
                first.entry((process, dispatch, text)).or_insert(sum);
            }
        }
        let mut all: Vec<Counter> =
            first.into_iter().map(|((process, dispatch, _), (name, value))| Counter { process, dispatch, name, value }).collect();
        all.sort_by_key(|c| (c.process, c.dispatch, c.name));
        rows.counters.extend(all);
        Ok(())
    }

    fn read_copies(&self, rows: &mut Rows) -> Result<(), ImportError> {
        let columns = ["pid", "tid", "start", "end", "name_id", "src_agent_id", "dst_agent_id", "size", "stream_id", "event_id"];
        for [process, thread, start, end, name, from, to, size, stream, event] in
            gather_rows(self.db, self.job, &self.table_name("memory_copy"), columns, "copies")?
        {
            if start == NULL {
                rows.broken += 1;
                continue;
            }
            let agent = |id: i64| self.ids.agents.get(&id).copied();
            rows.copies.push(Copy {
                process: self.process_index(process, rows),
                thread: self.thread_id(thread),
                from: agent(from),
                to: agent(to),
                name: self.ids.texts.get(&name).copied().unwrap_or(u32::MAX),
                bytes: u64::try_from(size).ok(),
                stream: to_u32(stream),
                correlation: self.correlation_id(event),
                start,
                end: if end == NULL { start } else { end },
            });
        }
        Ok(())
    }

    fn read_allocations(&self, rows: &mut Rows) -> Result<(), ImportError> {
        let table = self.table_name("memory_allocate");
        // This table cannot be read as integers, because `type` is a text column.
        let mut blocks: FxHashMap<(u32, u64), (i64, Option<u32>)> = FxHashMap::default();
        for row in self.db.read_rows(&table, &["pid", "agent_id", "type", "start", "address", "size"])? {
            let (Some(time), Some(word)) = (parse_number(row.get(3)), row.get(2).and_then(Option::as_deref)) else { continue };
            let address = parse_number(row.get(4)).map_or(0, i64::cast_unsigned);
            let process = parse_number(row.first()).map_or(0, |p| self.process_index(p, rows));
            let (bytes, agent) = match word {
                "ALLOC" | "REALLOC" => {
                    let bytes = parse_number(row.get(5)).unwrap_or(0);
                    let agent = parse_number(row.get(1)).and_then(|a| self.ids.agents.get(&a).copied());
                    blocks.insert((process, address), (bytes, agent));
                    (bytes, agent)
                }
                // Frees have neither size nor agent: use those of the allocation.
                "FREE" => match blocks.remove(&(process, address)) {
                    Some((bytes, agent)) => (bytes.saturating_neg(), agent),
                    None => continue,
                },
                _ => continue,
            };
            rows.allocations.push(Allocation { process, agent, time, address, bytes });
        }
        Ok(())
    }
}

/// Returns true for the `ROCTx` function that begins ranges which another thread may end.
pub fn is_process_range(function: &str) -> bool {
    function.starts_with("roctxProcessRange") || function.starts_with("roctxRangeStart")
}

/// Compute partitions by number of dies.
type Modes = &'static [(u32, &'static str)];

/// Products whose dies (XCDs) can be used as separate devices, and how many dies they have (from AMD's documentation
/// of partitioning on MI300 and MI350).
const PARTITIONED: [(&str, u32, Modes); 5] = [
    ("MI300X", 8, &[(4, "DPX"), (2, "QPX"), (1, "CPX")]),
    ("MI325X", 8, &[(4, "DPX"), (2, "QPX"), (1, "CPX")]),
    ("MI350X", 8, &[(4, "DPX"), (2, "QPX"), (1, "CPX")]),
    ("MI355X", 8, &[(4, "DPX"), (2, "QPX"), (1, "CPX")]),
    ("MI300A", 6, &[(2, "TPX"), (1, "CPX")]),
];

/// Names a device that is a partition of a GPU: `AMD Instinct MI300X (CPX, 1 of 8 XCDs)`.
pub fn name_partition(device: &mut Device, dies: u32) {
    let Some(name) = &mut device.name else { return };
    let Some((_, all, modes)) = PARTITIONED.iter().find(|(product, ..)| name.contains(product)) else { return };
    if let Some((_, mode)) = modes.iter().find(|(n, _)| *n == dies) {
        *name = format!("{name} ({mode}, {dies} of {all} XCDs)");
    }
}

/// Builds a GPU from the fields of AMD's agent record, whose names are the same in all file formats.
pub fn build_device(field: &dyn Fn(&str) -> Option<u64>) -> Device {
    let some = |key: &str| field(key).and_then(|n| u32::try_from(n).ok()).filter(|&n| n > 0);
    // Format the PCI address the way Linux does; `location_id` contains bus, device and function.
    let bus =
        field("location_id").map(|l| format!("{:04x}:{:02x}:{:02x}.{:x}", field("domain").unwrap_or(0), l >> 8 & 255, l >> 3 & 31, l & 7));
    Device {
        id: 0,
        maker: Vendor::Amd,
        bus,
        sm_count: some("cu_count"),
        clock_hz: field("max_engine_clk_fcompute").filter(|&mhz| mhz > 0).map(|mhz| mhz.saturating_mul(1_000_000)),
        warp_size: some("wave_front_size"),
        max_warps_per_sm: some("max_waves_per_cu").or_else(|| some("max_waves_per_simd")?.checked_mul(some("simd_per_cu")?)),
        shared_per_sm: field("lds_size_in_kb").filter(|&kb| kb > 0).map(|kb| Bytes(kb.saturating_mul(1 << 10))),
        shared_per_block: field("lds_size_in_kb").filter(|&kb| kb > 0).map(|kb| Bytes(kb.saturating_mul(1 << 10))),
        max_threads_per_block: some("workgroup_max_size"),
        ..Device::default()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn partitions_are_named() {
        let named = |name: &str, dies| {
            let mut device = Device { name: Some(name.to_owned()), ..Device::default() };
            name_partition(&mut device, dies);
            device.name.unwrap_or_default()
        };
        assert_eq!(named("AMD Instinct MI300X", 1), "AMD Instinct MI300X (CPX, 1 of 8 XCDs)");
        assert_eq!(named("AMD Instinct MI300A", 2), "AMD Instinct MI300A (TPX, 2 of 6 XCDs)");
        for (name, dies) in [("AMD Instinct MI300X", 8), ("AMD Instinct MI300X", 0), ("AMD Instinct MI300A", 6), ("AMD Instinct MI210", 1)]
        {
            assert_eq!(named(name, dies), name);
        }
    }
}
