//! Reader for rocprof-compute workloads: `pmc_perf.csv` has one row per dispatch and one column per counter, merged
//! from several runs; `sysinfo.csv` in the same directory describes the GPU.

use super::columns::is_counter;
use super::rows::{Agent, Counter, Dispatch, Rows, Symbol, Texts, strip_kd_suffix};
use crate::import::{ImportError, Job};
use crate::launch::open;
use crate::model::{Device, Vendor};
use csv::ByteRecord;
use rustc_hash::{FxHashMap, FxHashSet};
use std::io::Read;
use std::path::Path;
use std::sync::Arc;

/// Maximum number of bytes to read from other tables in the directory; real ones are a few kilobytes.
const MOST_BESIDE: u64 = 1 << 20;

/// Returns true if a file starts like a counter table.
pub fn is_counter_table(head: &[u8]) -> bool {
    let line = head.split(|&b| b == b'\n').next().unwrap_or_default();
    let has = |name: &str| memchr::memmem::find(line, name.as_bytes()).is_some();
    has("Dispatch_ID") && has("LDS_Per_Workgroup") && has("Arch_VGPR")
}

/// Returns the name of the counter in a column. For one instance of a counter, returns the name of the sum over its
/// instances, or `None` if the sum has its own column.
fn counter_name(column: &str, columns: &FxHashMap<&str, usize>) -> Option<String> {
    // Skip the accumulator: it counts a different event in each of the runs that were merged.
    let other = ["Kernel_ID", "Correlation_ID", "SQ_ACCUM_PREV"].iter().any(|start| column.starts_with(start));
    if other || !is_counter(column) {
        return None;
    }
    let Some((name, _)) = column.split_once('[') else { return Some(column.to_owned()) };
    let sum = format!("{name}_sum");
    (!columns.contains_key(sum.as_str())).then_some(sum)
}

/// Opens another table in the directory. Must be a regular file, since the user did not name it.
fn open_table(folder: &Path, name: &str) -> Option<csv::Reader<std::io::Take<std::fs::File>>> {
    Some(csv::Reader::from_reader(open::open_regular(&folder.join(name)).ok()?.take(MOST_BESIDE)))
}

/// Reads the GPU and its number of dies from `sysinfo.csv`.
pub fn read_device(folder: &Path) -> Option<(Device, u32)> {
    let mut reader = open_table(folder, "sysinfo.csv")?;
    let names = reader.headers().ok()?.clone();
    let row = reader.records().next()?.ok()?;
    let text = |name: &str| names.iter().position(|n| n == name).and_then(|i| row.get(i)).filter(|t| !t.is_empty());
    let some = |name: &str| text(name).and_then(|t| t.parse::<f64>().ok()).filter(|n| *n > 0.0).map(|n| n as u32);
    let device = Device {
        maker: Vendor::Amd,
        name: text("gpu_model").map(str::to_owned),
        arch: text("gpu_arch").map(str::to_owned),
        chip: text("gpu_arch").map(str::to_owned),
        sm_count: some("cu_per_gpu"),
        warp_size: some("wave_size"),
        max_warps_per_sm: some("max_waves_per_cu"),
        clock_hz: some("max_sclk").map(|mhz| u64::from(mhz) * 1_000_000),
        // In GB/s.
        memory_bandwidth: text("hbm_bw")
            .and_then(|t| t.parse::<f64>().ok())
            .filter(|gb| (1.0..1e6).contains(gb))
            .map(|gb| (gb * 1e9) as u64),
        ..Device::default()
    };
    Some((device, some("num_xcd").unwrap_or(0)))
}

/// Reads the command line of the program from `sysinfo.csv`.
fn read_command(folder: &Path) -> Option<String> {
    let mut reader = open_table(folder, "sysinfo.csv")?;
    let at = reader.headers().ok()?.iter().position(|name| name == "command")?;
    let row = reader.records().next()?.ok()?;
    row.get(at).map(str::trim).filter(|command| !command.is_empty()).map(str::to_owned)
}

/// Reads the peaks that AMD's benchmark measured on the best GPU of the machine from `roofline.csv` (in units of 10⁹
/// per second). Skips the columns that hold confidence interval bounds.
fn read_peaks(folder: &Path) -> Vec<(Arc<str>, f64)> {
    let Some(mut reader) = open_table(folder, "roofline.csv") else { return Vec::new() };
    let Ok(head) = reader.headers().cloned() else { return Vec::new() };
    let rows: Vec<_> = reader.records().flatten().collect();
    let kept = |name: &str| ["Bw", "Flops", "Ops"].iter().any(|end| name.ends_with(end));
    let best = |at: usize| {
        let all = rows.iter().filter_map(|r| r.get(at)?.trim().parse::<f64>().ok());
        all.filter(|n| (1.0..1e9).contains(n)).reduce(f64::max).map(|n| n * 1e9)
    };
    head.iter().enumerate().filter(|(_, name)| kept(name)).filter_map(|(at, name)| Some((Arc::from(name), best(at)?))).collect()
}

/// Adds missing counters from another run, if that run has the same dispatches in the same order.
pub fn merge_counters(rows: &mut Rows, other: &Rows) {
    let name = |rows: &Rows, d: &Dispatch| rows.symbols.get(d.symbol as usize).map(|s| s.formatted.clone());
    let same = rows.dispatches.len() == other.dispatches.len()
        && rows
            .dispatches
            .iter()
            .zip(&other.dispatches)
            .all(|(a, b)| (a.id, a.grid, a.workgroup) == (b.id, b.grid, b.workgroup) && name(rows, a) == name(other, b));
    if !same {
        return;
    }
    let mut numbers: FxHashMap<Arc<str>, u32> = (0..).zip(&rows.texts).map(|(i, t)| (t.clone(), i)).collect();
    let known: FxHashSet<(u64, u32)> = rows.counters.iter().map(|c| (c.dispatch, c.name)).collect();
    for counter in &other.counters {
        let Some(text) = other.texts.get(counter.name as usize) else { continue };
        let next = u32::try_from(rows.texts.len()).unwrap_or(u32::MAX);
        let name = *numbers.entry(text.clone()).or_insert_with(|| {
            rows.texts.push(text.clone());
            next
        });
        if !known.contains(&(counter.dispatch, name)) {
            rows.counters.push(Counter { name, ..*counter });
        }
    }
}

/// Reads the counter table.
pub fn read_table(from: impl Read, path: &Path, job: &Job<'_>) -> Result<Rows, ImportError> {
    let damaged =
        |e: csv::Error| ImportError::refused(path, format!("not a table of counters: {e}"), "record it again with rocprof-compute profile");
    let mut reader = csv::ReaderBuilder::new().flexible(true).from_reader(from);
    let header: Vec<String> = reader.headers().map_err(damaged)?.iter().map(str::to_owned).collect();
    let columns: FxHashMap<&str, usize> = header.iter().enumerate().map(|(i, n)| (n.as_str(), i)).collect();
    let folder = path.parent().unwrap_or(Path::new("."));
    let process = super::rows::Process { command: read_command(folder), ..super::rows::Process::default() };
    let mut rows = Rows { chosen: true, processes: vec![process], ..Rows::default() };
    let mut texts = Texts::default();
    let first: FxHashMap<&str, usize> = header.iter().enumerate().rev().map(|(i, n)| (n.as_str(), i)).collect();
    let named = |(i, column): (usize, &String)| counter_name(column, &columns).filter(|_| first.get(column.as_str()) == Some(&i));
    let of: Vec<Option<u32>> =
        header.iter().enumerate().map(|c| named(c).map(|name| texts.text_number(name.as_bytes(), &mut rows.texts))).collect();
    // For each column, the index of the sum that it is added to; sums are in the order of their first columns.
    let mut names: Vec<u32> = Vec::new();
    let mut place: FxHashMap<u32, usize> = FxHashMap::default();
    let slot = |name: &Option<u32>| {
        let name = (*name)?;
        Some(*place.entry(name).or_insert_with(|| {
            names.push(name);
            names.len() - 1
        }))
    };
    let slots: Vec<Option<usize>> = of.iter().map(slot).collect();
    let pace = job.cancel.pace();
    let (known, reached) = (read_device(folder), read_peaks(folder));
    let (mut agents, mut symbols): (FxHashMap<u32, u32>, FxHashMap<Arc<str>, u32>) = (FxHashMap::default(), FxHashMap::default());
    let mut record = ByteRecord::new();
    let mut sums: Vec<Option<f64>> = Vec::new();
    while reader.read_byte_record(&mut record).map_err(damaged)? {
        if !pace.count_steps(record.len() + record.as_slice().len()) {
            return Err(ImportError::Cancelled { path: path.to_owned() });
        }
        let field = |i: usize| record.get(i).and_then(|f| std::str::from_utf8(f).ok()).map(str::trim);
        let text = |name: &str| columns.get(name).and_then(|&i| field(i));
        let number = |name: &str| text(name).and_then(|t| t.parse::<f64>().ok()).filter(|n| n.is_finite());
        let small = |name: &str| number(name).filter(|n| *n >= 0.0).map(|n| n as u32);
        // The row is truncated.
        if record.len() < header.len() {
            rows.broken += 1;
            continue;
        }
        let (Some(name), Some(grid), Some(group)) = (text("Kernel_Name"), small("Grid_Size"), small("Workgroup_Size")) else {
            rows.broken += 1;
            continue;
        };
        let gpu = small("GPU_ID").unwrap_or(0);
        let agent = *agents.entry(gpu).or_insert_with(|| {
            let (device, dies) = known.clone().unwrap_or_else(|| (Device { maker: Vendor::Amd, ..Device::default() }, 0));
            rows.agents.push(Agent { device: Some(Device { id: gpu, ..device }), dies, reached: reached.clone() });
            u32::try_from(rows.agents.len() - 1).unwrap_or(u32::MAX)
        });
        let name: Arc<str> = Arc::from(strip_kd_suffix(name));
        let symbol = *symbols.entry(name).or_insert_with_key(|name| {
            let mangled = name.starts_with("_Z").then(|| name.clone());
            rows.symbols.push(Symbol { kernel_id: rows.symbols.len() as u64, formatted: name.clone(), mangled, ..Symbol::default() });
            u32::try_from(rows.symbols.len() - 1).unwrap_or(u32::MAX)
        });
        // rocprof-compute numbers dispatches from 0, warpscope from 1.
        let id = rows.dispatches.len() as u64 + 1;
        let start = number("Start_Timestamp").unwrap_or(0.0) as i64;
        rows.dispatches.push(Dispatch {
            agent,
            symbol,
            id,
            start,
            end: number("End_Timestamp").map_or(start, |n| n as i64),
            workgroup: [group, 1, 1],
            grid: [grid, 1, 1],
            lds: small("LDS_Per_Workgroup"),
            scratch: small("Scratch_Per_Workitem"),
            registers: small("Arch_VGPR").map(|v| v.saturating_add(small("Accum_VGPR").unwrap_or(0))),
            ..Dispatch::default()
        });
        sums.clear();
        sums.resize(names.len(), None);
        for (i, slot) in slots.iter().enumerate() {
            let (Some(slot), Some(value)) = (*slot, field(i).and_then(|t| t.parse::<f64>().ok())) else { continue };
            sums[slot] = Some(sums[slot].unwrap_or(0.0) + value);
        }
        let counted = names.iter().zip(&sums).filter_map(|(name, sum)| Some((*name, (*sum)?)));
        rows.counters.extend(counted.map(|(name, value)| Counter { process: 0, dispatch: id, name, value }));
    }
    Ok(rows)
}
