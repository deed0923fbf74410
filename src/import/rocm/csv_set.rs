//! Reader for CSV files of rocprofv3 (`ROCm` 6.0 to 7.x) and of rocprof (v1, v2). File names determine which tables
//! belong together, and the header of a table determines its type. Columns are looked up by name, because they differ
//! between releases.

use super::columns::is_counter;
use super::passes;
use super::rocpd::{build_device, is_process_range, name_partition};
use super::rows::{Agent, Allocation, Call, Copy, Counter, Dispatch, Process, Rows, Symbol, Texts, strip_kd_suffix};
use crate::import::{Budget, ImportError, Job};
use crate::launch::open;
use crate::model::{Device, Vendor};
use csv::ByteRecord;
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::{BufReader, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CsvTable {
    Agents,
    /// API calls of HIP, HSA and RCCL, and markers.
    Calls,
    Kernels,
    /// Counters of dispatches, with one row per counter.
    Counters,
    Copies,
    Allocations,
    /// Dispatches with counters as columns, from rocprof v1 and v2.
    Legacy,
}

/// Columns that identify each type of table, in lowercase; all columns of an entry must be present.
const HEADS: [(CsvTable, &[&str]); 9] = [
    (CsvTable::Agents, &["node_id", "agent_type"]),
    (CsvTable::Counters, &["dispatch_id", "kernel_name", "counter_name", "counter_value"]),
    (CsvTable::Kernels, &["dispatch_id", "kernel_name", "start_timestamp", "workgroup_size_x"]),
    (CsvTable::Calls, &["domain", "function", "start_timestamp"]),
    (CsvTable::Copies, &["direction", "source_agent_id", "start_timestamp"]),
    (CsvTable::Allocations, &["allocation_size", "operation", "start_timestamp"]),
    (CsvTable::Legacy, &["index", "kernelname", "beginns", "endns"]),
    (CsvTable::Legacy, &["index", "kernelname", "gpu_id", "grd"]),
    (CsvTable::Legacy, &["dispatch_id", "kernel_name", "gpu_id", "start_timestamp"]),
];

/// Maximum number of columns in rocprofv3's tables; the widest, which lists agents, has 54.
const MOST_COLUMNS: usize = 80;

/// Column positions of a table.
pub(super) struct Head {
    at: FxHashMap<String, usize>,
    /// Position and name of each counter column, for a table with one row per dispatch.
    pub counters: Vec<(usize, String)>,
}

impl Head {
    pub fn from_header(record: &ByteRecord) -> Self {
        let written = |b: &[u8]| String::from_utf8_lossy(b).trim().trim_start_matches('\u{feff}').to_owned();
        let name = |b: &[u8]| written(b).to_ascii_lowercase().replace('-', "_");
        let counters = record.iter().map(written).enumerate().filter(|(_, n)| is_counter(n)).collect();
        Self { at: record.iter().enumerate().map(|(i, b)| (name(b), i)).collect(), counters }
    }

    fn table_kind(&self) -> Option<CsvTable> {
        // Reject rocprof-compute's tables, which have columns for a few hundred counters.
        if self.at.len() > MOST_COLUMNS {
            return None;
        }
        // Counters sampled over time (SPM) do not belong to a dispatch.
        if self.at.contains_key("timestamp") {
            return None;
        }
        HEADS.iter().find(|(_, columns)| columns.iter().all(|c| self.at.contains_key(*c))).map(|(table, _)| *table)
    }

    pub fn cell_text<'r>(&self, row: &'r ByteRecord, names: &[&str]) -> Option<&'r [u8]> {
        let at = names.iter().find_map(|n| self.at.get(*n))?;
        row.get(*at).map(<[u8]>::trim_ascii).filter(|t| !t.is_empty())
    }

    pub fn cell_number<N: std::str::FromStr>(&self, row: &ByteRecord, names: &[&str]) -> Option<N> {
        std::str::from_utf8(self.cell_text(row, names)?).ok()?.parse().ok()
    }
}

/// Determines the table type from the first line of a file.
pub fn detect_table(head: &[u8]) -> Option<CsvTable> {
    let line = head.split(|b| *b == b'\n').next()?;
    let mut reader = csv::ReaderBuilder::new().has_headers(false).from_reader(line);
    let mut record = ByteRecord::new();
    (reader.read_byte_record(&mut record).ok()? && record.len() > 2).then(|| Head::from_header(&record).table_kind())?
}

/// File name suffixes of a set of tables, before `.csv`.
const PARTS: [&str; 15] = [
    "_kernel_trace",
    "_hip_api_trace",
    "_hip_runtime_trace",
    "_hip_compiler_trace",
    "_hsa_api_trace",
    "_marker_api_trace",
    "_rccl_api_trace",
    "_memory_copy_trace",
    "_memory_allocation_trace",
    "_counter_collection",
    "_agent_info",
    "_hip_trace",
    // Written by `rocpd convert` since ROCm 7.14.
    "_regions_trace",
    "_counter_collection_trace",
    "_spm_counter_collection_trace",
];

/// Returns the directory and file name prefix that all files of a process share.
fn set_stem(path: &Path) -> PathBuf {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let own = stem_of(&name).map(str::to_owned);
    path.with_file_name(own.unwrap_or(name))
}

/// Returns the part of a file name before the suffix of a set. The longest suffix wins, since some suffixes end with
/// another.
fn stem_of(name: &str) -> Option<&str> {
    PARTS.iter().filter_map(|p| name.strip_suffix(&format!("{p}.csv"))).min_by_key(|stem| stem.len())
}

/// Returns the files of the same set: those in the same directory with the same prefix.
pub fn find_siblings(path: &Path) -> Vec<PathBuf> {
    let name = path.file_name().map(|n| n.to_string_lossy().into_owned()).unwrap_or_default();
    let Some(stem) = stem_of(&name) else { return vec![path.to_owned()] };
    // Counters are a separate report, because kernels are serialized while counters are collected.
    let is_counters = |part: &str| part.contains("_counter_collection");
    let counters = is_counters(&name);
    let wanted = |part: &str| part == "_agent_info" || !counters || is_counters(part);
    let folder = path.parent().filter(|p| !p.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let ours = PARTS.iter().filter(|p| wanted(p)).map(|p| folder.join(format!("{stem}{p}.csv")));
    let mut out: Vec<PathBuf> = ours.filter(|p| p.is_file()).collect();
    if out.is_empty() {
        out.push(path.to_owned());
    }
    out
}

/// Reads the files of one set, which may cover several processes.
pub fn read_files(files: &[PathBuf], job: &Job<'_>) -> Result<Rows, ImportError> {
    let mut known: Vec<(CsvTable, &PathBuf)> = Vec::new();
    for file in files {
        let mut head = vec![0; 1 << 14];
        let n = open::open_regular(file).and_then(|mut f| f.read(&mut head)).map_err(|e| ImportError::io(file, e))?;
        known.extend(detect_table(&head[..n]).map(|t| (t, file)));
    }
    // A directory may contain the same records under the names used by rocprofv3 and by `rocpd convert`.
    let named = |path: &Path, part: &str| path.to_string_lossy().ends_with(&format!("{part}.csv"));
    let stems = |wanted: CsvTable, part: &str| -> FxHashSet<PathBuf> {
        known.iter().filter(|(table, path)| *table == wanted && !named(path, part)).map(|(_, path)| set_stem(path)).collect()
    };
    let (calls, counters) = (stems(CsvTable::Calls, "_regions_trace"), stems(CsvTable::Counters, "_counter_collection_trace"));
    known.retain(|(_, path)| {
        let twin = |part, others: &FxHashSet<PathBuf>| named(path, part) && others.contains(&set_stem(path));
        !twin("_regions_trace", &calls) && !twin("_counter_collection_trace", &counters)
    });
    // The files of a process share one stem. Within a process, read referenced tables first, and the trace before the
    // counters, because it contains more about dispatches.
    known.sort_by_key(|(table, path)| (set_stem(path), *table));
    let mut reader = Reader::default();
    let mut last = None;
    for (table, path) in known {
        let stem = set_stem(path);
        if last.as_ref() != Some(&stem) {
            reader.begin_process(&stem);
            last = Some(stem);
        }
        let file = open::open_regular(path).map_err(|e| ImportError::io(path, e))?;
        let total = file.metadata().map_or(0, |m| m.len());
        reader.read_table(table, BufReader::with_capacity(1 << 18, file), (path, total), job)?;
    }
    Ok(reader.finish())
}

pub fn read_one(bytes: &[u8], path: &Path, job: &Job<'_>) -> Result<Rows, ImportError> {
    let mut reader = Reader::default();
    reader.begin_process(path);
    if let Some(table) = detect_table(bytes) {
        reader.read_table(table, bytes, (path, bytes.len() as u64), job)?;
    }
    Ok(reader.finish())
}

#[derive(Default)]
pub(super) struct Reader {
    pub rows: Rows,
    /// Processes by id; rows without a process id belong to `own`.
    processes: FxHashMap<u32, u32>,
    /// Index of the process to which the current files belong.
    own: u32,
    /// Processes by `Guid`, for tables that have this column.
    guids: FxHashMap<Vec<u8>, u32>,
    /// First launching thread of each process without a process id.
    unnamed: FxHashMap<u32, u32>,
    /// True if kernel rows contain a process id or `Guid`.
    named: bool,
    agents: FxHashMap<String, u32>,
    /// Number of GPUs among the agents so far.
    gpus: u32,
    symbols: FxHashMap<(u32, u64, Arc<str>), u32>,
    texts: Texts,
    /// Sizes and agents of allocations, by process and address.
    blocks: FxHashMap<(u32, u64), Block>,
    /// True if the current process has a kernel trace.
    traced: bool,
    /// Profiling pass of the current files.
    pass: Option<u32>,
}

/// Size in bytes, agent and time of an allocation.
type Block = (i64, Option<u32>, i64);

fn next(len: usize) -> u32 {
    u32::try_from(len).unwrap_or(u32::MAX)
}

impl Reader {
    fn read_table(&mut self, table: CsvTable, from: impl Read, (path, total): (&Path, u64), job: &Job<'_>) -> Result<(), ImportError> {
        let mut reader = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(from);
        let mut record = ByteRecord::new();
        let damaged = |e: csv::Error| ImportError::damaged(path, "its rows", &e);
        if !reader.read_byte_record(&mut record).map_err(damaged)? {
            return Ok(());
        }
        let head = Head::from_header(&record);
        // Decoded rows may take more memory than their text in the file.
        let budget = Budget::from_plain_size(path, total, total);
        let mut rows = 0_u64;
        while reader.read_byte_record(&mut record).map_err(damaged)? {
            rows += 1;
            if rows.is_multiple_of(1 << 14) {
                if job.cancel.is_cancelled() {
                    return Err(ImportError::Cancelled { path: path.to_owned() });
                }
                job.report_progress("rows", reader.position().byte(), total);
            }
            budget.charge_bytes((size_of::<Dispatch>() + record.as_slice().len()) as u64)?;
            let understood = match table {
                CsvTable::Agents => self.agent_row(&head, &record),
                CsvTable::Calls => self.read_call(&head, &record),
                CsvTable::Kernels => self.read_kernel(&head, &record),
                CsvTable::Counters => self.read_counter(&head, &record),
                CsvTable::Copies => self.read_copy(&head, &record),
                CsvTable::Allocations => self.read_allocation(&head, &record),
                CsvTable::Legacy => self.read_legacy_row(&head, &record),
            };
            self.rows.broken += u64::from(understood.is_none());
        }
        self.traced |= table == CsvTable::Kernels;
        self.rows.legacy |= table == CsvTable::Legacy;
        // Without a trace, the table contains only those dispatches that have counters.
        self.rows.chosen |= (table == CsvTable::Counters && !self.traced) || (table == CsvTable::Legacy && !self.rows.counters.is_empty());
        Ok(())
    }

    /// Starts reading the files of another process, and clears the ids of the previous one. By default, the process
    /// id is the number in the file name.
    pub(super) fn begin_process(&mut self, stem: &Path) {
        self.processes.clear();
        self.guids.clear();
        self.named = false;
        self.agents.clear();
        self.blocks.clear();
        self.traced = false;
        self.own = next(self.rows.processes.len());
        let pid = stem.file_name().and_then(|n| n.to_str()?.parse().ok());
        self.pass = passes::pass_number(stem);
        self.rows.processes.push(Process { pid: pid.unwrap_or(0), pass: self.pass, ..Process::default() });
        self.processes.extend(pid.map(|pid| (pid, self.own)));
    }

    pub(super) fn process_index(&mut self, pid: Option<u32>) -> u32 {
        let Some(pid) = pid else { return self.own };
        // If the process that the files belong to has no id yet, use this id.
        if let Some(own) = self.rows.processes.get_mut(self.own as usize)
            && own.pid == 0
        {
            own.pid = pid;
            self.processes.insert(pid, self.own);
        }
        let next = next(self.rows.processes.len());
        *self.processes.entry(pid).or_insert_with(|| {
            self.rows.processes.push(Process { pid, pass: self.pass, ..Process::default() });
            next
        })
    }

    /// Returns the process of a row: by process id, or else by the `Guid` that `rocpd convert` assigns to each
    /// database, since its kernel tables have no process ids.
    fn process_of(&mut self, head: &Head, row: &ByteRecord) -> u32 {
        let pid = head.cell_number(row, &["process_id", "pid"]);
        let Some(guid) = head.cell_text(row, &["guid"]).filter(|g| !g.is_empty()) else { return self.process_index(pid) };
        let process = match self.guids.get(guid) {
            Some(&known) => known,
            None => {
                // The first `Guid` is that of the files' process.
                let new = if self.guids.is_empty() {
                    self.process_index(pid)
                } else {
                    // Processes from several containers or nodes may have the same id.
                    self.rows.processes.push(Process { pid: pid.unwrap_or(0), pass: self.pass, ..Process::default() });
                    next(self.rows.processes.len() - 1)
                };
                self.guids.insert(guid.to_owned(), new);
                new
            }
        };
        let thread = head.cell_number(row, &["thread_id", "tid"]).unwrap_or(0);
        match (self.rows.processes.get_mut(process as usize), pid) {
            (Some(of), Some(pid)) if of.pid == 0 => {
                of.pid = pid;
                self.processes.insert(pid, process);
            }
            (Some(of), None) if of.pid == 0 => drop(self.unnamed.entry(process).or_insert(thread)),
            _ => {}
        }
        process
    }

    pub(super) fn intern_text(&mut self, bytes: &[u8]) -> u32 {
        self.texts.text_number(bytes, &mut self.rows.texts)
    }

    /// Returns the agent that the tables call `Agent 2` or `2`.
    pub(super) fn agent_index(&mut self, named: &[u8], gpu: bool) -> u32 {
        let text = String::from_utf8_lossy(named);
        let key = text.rsplit(' ').next().unwrap_or_default().to_owned();
        if let Some(&known) = self.agents.get(&key) {
            return known;
        }
        // Without an agent table, an agent that runs kernels is a GPU about which nothing else is known.
        let device = gpu.then(|| Device { id: key.parse().unwrap_or(0), maker: Vendor::Amd, ..Device::default() });
        let number = next(self.rows.agents.len());
        self.rows.agents.push(Agent { device, ..Agent::default() });
        self.agents.insert(key, number);
        number
    }

    pub(super) fn symbol_index(&mut self, process: u32, id: u64, name: &[u8]) -> u32 {
        let text = String::from_utf8_lossy(name);
        let name: Arc<str> = Arc::from(strip_kd_suffix(&text));
        let number = next(self.rows.symbols.len());
        *self.symbols.entry((process, id, name)).or_insert_with_key(|(process, id, name)| {
            let mangled = name.starts_with("_Z").then(|| name.clone());
            self.rows.symbols.push(Symbol { process: *process, kernel_id: *id, formatted: name.clone(), mangled, registers: None });
            number
        })
    }

    fn agent_row(&mut self, head: &Head, row: &ByteRecord) -> Option<()> {
        let node: u64 = head.cell_number(row, &["node_id"])?;
        let gpu = head.cell_text(row, &["agent_type"])? == b"GPU";
        let text = |names: &[&str]| head.cell_text(row, names).map(|t| String::from_utf8_lossy(t).into_owned());
        let dies = head.cell_number(row, &["num_xcc"]).unwrap_or(0);
        let device = gpu.then(|| {
            let mut device = build_device(&|key| head.cell_number(row, &[key]));
            device.id = self.gpus;
            device.chip = text(&["name"]);
            device.arch.clone_from(&device.chip);
            device.name = text(&["product_name"]);
            name_partition(&mut device, dies);
            device
        });
        self.gpus = self.gpus.saturating_add(u32::from(gpu));
        let number = next(self.rows.agents.len());
        self.rows.agents.push(Agent { device, dies, reached: Vec::new() });
        self.agents.insert(node.to_string(), number);
        Some(())
    }

    fn read_call(&mut self, head: &Head, row: &ByteRecord) -> Option<()> {
        let domain = head.cell_text(row, &["domain"])?;
        if domain.starts_with(b"KFD_") {
            self.rows.driver_records += 1;
            return Some(());
        }
        let marker = domain.starts_with(b"MARKER");
        let start = head.cell_number(row, &["start_timestamp"])?;
        let function = head.cell_text(row, &["function"]).unwrap_or_default();
        let of_process = marker && is_process_range(&String::from_utf8_lossy(function));
        let name = self.intern_text(function);
        let process = self.process_of(head, row);
        self.rows.calls.push(Call {
            of_process,
            process,
            thread: head.cell_number(row, &["thread_id"]).unwrap_or(0),
            name,
            marker,
            correlation: head.cell_number(row, &["correlation_id"]).unwrap_or(0),
            start,
            end: head.cell_number(row, &["end_timestamp"]).unwrap_or(start),
        });
        Some(())
    }

    fn read_dims(head: &Head, row: &ByteRecord, names: [&[&str]; 3]) -> [u32; 3] {
        names.map(|n| head.cell_number(row, n).unwrap_or(0))
    }

    fn read_kernel(&mut self, head: &Head, row: &ByteRecord) -> Option<()> {
        let start = head.cell_number(row, &["start_timestamp"])?;
        let process = self.process_of(head, row);
        let id = head.cell_number(row, &["dispatch_id"]).unwrap_or(0);
        if let Some(node) = head.cell_number(row, &["graph_node_id"]).filter(|node| *node > 0) {
            self.rows.graph_nodes.insert((process, id), node);
        }
        self.named |= head.cell_number::<u32>(row, &["process_id", "pid"]).is_some() || head.cell_text(row, &["guid"]).is_some();
        let symbol = self.symbol_index(process, head.cell_number(row, &["kernel_id"]).unwrap_or(0), head.cell_text(row, &["kernel_name"])?);
        let agent = self.agent_index(head.cell_text(row, &["agent_id"]).unwrap_or(b"0"), true);
        self.rows.dispatches.push(Dispatch {
            process,
            agent,
            symbol,
            thread: head.cell_number(row, &["thread_id"]).unwrap_or(0),
            id,
            queue: head.cell_number(row, &["queue_id"]).unwrap_or(0),
            stream: head.cell_number(row, &["stream_id"]),
            correlation: head.cell_number(row, &["correlation_id"]).unwrap_or(0),
            start,
            end: head.cell_number(row, &["end_timestamp"]).unwrap_or(start),
            workgroup: Self::read_dims(head, row, [&["workgroup_size_x"], &["workgroup_size_y"], &["workgroup_size_z"]]),
            grid: Self::read_dims(head, row, [&["grid_size_x"], &["grid_size_y"], &["grid_size_z"]]),
            lds: head.cell_number(row, &["lds_block_size", "group_segment_size"]),
            scratch: head.cell_number(row, &["scratch_size", "private_segment_size"]),
            registers: vector_registers(head, row),
        });
        Some(())
    }

    /// Reads a row with one counter of a dispatch. Grid and workgroup sizes are products of the three dimensions.
    fn read_counter(&mut self, head: &Head, row: &ByteRecord) -> Option<()> {
        let id = head.cell_number(row, &["dispatch_id"])?;
        // If the trace's kernels have no process id, assign counters to the same process, regardless of file names.
        let process = if self.traced && !self.named { self.own } else { self.process_of(head, row) };
        let name = self.intern_text(head.cell_text(row, &["counter_name"])?);
        let value = head.cell_number(row, &["counter_value"])?;
        self.rows.counters.push(Counter { process, dispatch: id, name, value });
        // Do not add a dispatch twice: the trace contains more about it, or the previous row was for the same dispatch.
        if self.traced || self.rows.dispatches.last().is_some_and(|d| d.id == id && d.process == process) {
            return Some(());
        }
        let symbol = self.symbol_index(process, head.cell_number(row, &["kernel_id"]).unwrap_or(0), head.cell_text(row, &["kernel_name"])?);
        let agent = self.agent_index(head.cell_text(row, &["agent_id"]).unwrap_or(b"0"), true);
        let start = head.cell_number(row, &["start_timestamp"]).unwrap_or(0);
        let line = |names: &[&str]| [head.cell_number(row, names).unwrap_or(0), 1, 1];
        self.rows.dispatches.push(Dispatch {
            process,
            agent,
            symbol,
            thread: head.cell_number(row, &["thread_id"]).unwrap_or(0),
            id,
            queue: head.cell_number(row, &["queue_id"]).unwrap_or(0),
            correlation: head.cell_number(row, &["correlation_id"]).unwrap_or(0),
            start,
            end: head.cell_number(row, &["end_timestamp"]).unwrap_or(start),
            workgroup: line(&["workgroup_size"]),
            grid: line(&["grid_size"]),
            lds: head.cell_number(row, &["lds_block_size"]),
            scratch: head.cell_number(row, &["scratch_size"]),
            registers: vector_registers(head, row),
            ..Dispatch::default()
        });
        Some(())
    }

    fn read_copy(&mut self, head: &Head, row: &ByteRecord) -> Option<()> {
        let start = head.cell_number(row, &["start_timestamp"])?;
        let name = self.intern_text(head.cell_text(row, &["direction"]).unwrap_or_default());
        let [from, to] =
            [&["source_agent_id"], &["destination_agent_id"]].map(|n| head.cell_text(row, n).map(|t| self.agent_index(t, false)));
        let process = self.process_of(head, row);
        self.rows.copies.push(Copy {
            process,
            thread: head.cell_number(row, &["thread_id"]).unwrap_or(0),
            from,
            to,
            name,
            bytes: None,
            stream: head.cell_number(row, &["stream_id"]),
            correlation: head.cell_number(row, &["correlation_id"]).unwrap_or(0),
            start,
            end: head.cell_number(row, &["end_timestamp"]).unwrap_or(start),
        });
        Some(())
    }

    fn read_allocation(&mut self, head: &Head, row: &ByteRecord) -> Option<()> {
        let time = head.cell_number(row, &["start_timestamp"])?;
        let word = head.cell_text(row, &["operation"])?;
        let address = String::from_utf8_lossy(head.cell_text(row, &["address"]).unwrap_or(b"0")).into_owned();
        let address = u64::from_str_radix(address.trim_start_matches("0x"), if address.starts_with("0x") { 16 } else { 10 }).unwrap_or(0);
        let process = self.process_of(head, row);
        let (bytes, agent) = if memchr::memmem::find(word, b"FREE").is_some() {
            // Frees have neither size nor agent. Some are for allocations made before the recording began, and
            // `rocpd convert` repeats the rows when there are databases of several processes.
            let Some((bytes, agent, _)) = self.blocks.remove(&(process, address)) else { return Some(()) };
            (bytes.saturating_neg(), agent)
        } else {
            let bytes: i64 = head.cell_number(row, &["allocation_size"]).unwrap_or(0);
            let agent = head.cell_text(row, &["agent_id"]).map(|t| self.agent_index(t, false));
            if self.blocks.insert((process, address), (bytes, agent, time)) == Some((bytes, agent, time)) {
                return Some(());
            }
            (bytes, agent)
        };
        self.rows.allocations.push(Allocation { process, agent, time, address, bytes });
        Some(())
    }

    pub(super) fn finish(mut self) -> Rows {
        // If several processes have no id, use thread ids instead, so that their ids differ.
        let several = self.unnamed.len() > 1;
        for (process, thread) in self.unnamed.into_iter().filter(|_| several) {
            if let Some(of) = self.rows.processes.get_mut(process as usize).filter(|p| p.pid == 0) {
                of.pid = thread;
                self.rows.by_guid = true;
            }
        }
        self.rows
    }
}

/// Returns the vector registers per work-item, including accumulation registers: both kinds share one register file.
pub(super) fn vector_registers(head: &Head, row: &ByteRecord) -> Option<u32> {
    let vector: u32 = head.cell_number(row, &["vgpr_count", "arch_vgpr", "vgpr"])?;
    Some(vector + head.cell_number::<u32>(row, &["accum_vgpr_count", "accum_vgpr"]).unwrap_or(0))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tables_are_known_by_their_headers() {
        for (head, wanted) in [
            (
                "\"Kind\",\"Agent_Id\",\"Queue_Id\",\"Thread_Id\",\"Dispatch_Id\",\"Kernel_Id\",\"Kernel_Name\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\",\"Private_Segment_Size\",\"Group_Segment_Size\",\"Workgroup_Size_X\"",
                Some(CsvTable::Kernels),
            ),
            (
                "\"Domain\",\"Function\",\"Process_Id\",\"Thread_Id\",\"Correlation_Id\",\"Start_Timestamp\",\"End_Timestamp\"\n1",
                Some(CsvTable::Calls),
            ),
            (
                "Index,KernelName,gpu-id,queue-id,queue-index,pid,tid,grd,wgr,lds,scr,arch_vgpr,accum_vgpr,sgpr,wave_size,sig,obj,BeginNs,EndNs,DurationNs",
                Some(CsvTable::Legacy),
            ),
            ("\"Name\",\"Calls\",\"TotalDurationNs\"", None),
            ("", None),
        ] {
            assert_eq!(detect_table(head.as_bytes()), wanted, "{head}");
        }
    }
}
