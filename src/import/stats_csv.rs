//! Output of `nsys stats`, CSV or text (`stats_text.rs`): `cuda_gpu_trace` (one row per launch), `cuda_gpu_kern_sum` (one
//! row per kernel) and `cuda_gpu_kern_gb_sum` (one row per kernel, grid and block).
//!
//! Columns are identified by header text, because their order and units differ between versions.

use super::input::Bytes as Where;
use super::{ImportError, Importer, Input, Job, stats_text};
use crate::launch::open;
use crate::model::units::format_count;
use crate::model::{
    Bytes, CopyKind, Device, Kernel, KernelId, KernelTotal, LaunchColumns, LaunchConfig, LaunchOrder, LaunchSite, Launches, MemOp,
    MemOpKind, Nanos, Note, NoteKind, PlaceId, Profile, Severity, Source, kernel,
};
use std::collections::HashMap;
use std::io::{BufRead, BufReader, Read};
use std::sync::Arc;

pub struct NsysStatsCsv;

/// Type of report in the CSV.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    Trace,
    Summary,
}

/// Finds the header line, the type of report, and the delimiter of CSV or TSV. Other lines (`Processing […]`) may precede
/// the header.
fn find_header(text: &str) -> Option<(usize, Kind, u8)> {
    text.lines().take(20).enumerate().find_map(|(at, line)| {
        let delimiter = if line.contains('\t') { b'\t' } else { b',' };
        let line = line.trim_start_matches('\u{feff}').trim_end().replace('"', "").replace('\t', ",");
        if line.contains("GrdX") && line.contains("Duration") {
            Some((at, Kind::Trace, delimiter))
        } else if (line.starts_with("Time (%)") || line.starts_with("Time(%)")) && line.contains("Instances") && line.ends_with(",Name") {
            Some((at, Kind::Summary, delimiter))
        } else {
            None
        }
    })
}

impl Importer for NsysStatsCsv {
    fn name(&self) -> &'static str {
        "nsys stats CSV and text"
    }

    fn files(&self) -> &'static [&'static str] {
        &["`nsys stats`"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".csv"]
    }

    fn knows(&self, input: &Input) -> bool {
        let head = String::from_utf8_lossy(&input.head);
        find_header(&head).is_some() || (!input.head.contains(&0) && stats_text::has_tables(&head))
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        let reader: Box<dyn Read> = match &input.bytes {
            Where::File(path) => Box::new(open::open_regular(path).map_err(|e| ImportError::io(path, e))?),
            Where::BuiltIn(bytes) => Box::new(*bytes),
        };
        let mut reader = BufReader::with_capacity(1 << 18, reader);
        let header = find_header(&String::from_utf8_lossy(&input.head));
        let (skip, kind, delimiter) = match header {
            Some(found) => found,
            None => {
                let table = read_text(input, reader)?;
                let found = find_header(&String::from_utf8_lossy(&table[..table.len().min(1 << 16)]));
                let (_, kind, delimiter) = found.ok_or_else(|| ImportError::damaged(&input.path, "its header", "no header line"))?;
                reader = BufReader::new(Box::new(std::io::Cursor::new(table)));
                (0, kind, delimiter)
            }
        };
        for _ in 0..skip {
            let mut line = Vec::new();
            reader.read_until(b'\n', &mut line).map_err(|e| ImportError::io(&input.path, e))?;
        }
        let mut table = Table::new(reader, input, (skip, delimiter), job)?;
        let mut profile = Profile::new(Source { tool: "nsys stats".to_owned(), version: None, schema: None, file: input.path.clone() });
        match kind {
            Kind::Trace => read_trace(&mut table, &mut profile)?,
            Kind::Summary => read_summary(&mut table, &mut profile)?,
        }
        if header.is_none() {
            note_cut_names(&mut profile);
        }
        if table.bad > 0 {
            let text = format!("{} rows could not be read (the first is line {}); they are missing here.", table.bad, table.first_bad);
            profile.notes.insert(0, Note::new(Severity::Error, NoteKind::Damaged, text));
        }
        Ok(profile)
    }
}

/// Reads the table of launches or kernels from text.
fn read_text(input: &Input, reader: BufReader<Box<dyn Read>>) -> Result<Vec<u8>, ImportError> {
    let budget = input.memory_budget();
    let mut full = false;
    let found = stats_text::read_table(reader, |bytes| {
        full |= !budget.try_spend(bytes);
        !full
    });
    if full {
        return Err(budget.exceeded_error());
    }
    found.map_err(|e| ImportError::io(&input.path, e))?.ok_or_else(|| {
        ImportError::refused(
            &input.path,
            "text of `nsys stats` without a table of kernels",
            "the report has none, or it was not asked for: `nsys stats -r cuda_gpu_kern_sum REPORT`; better, open the .nsys-rep itself",
        )
    })
}

/// In text, nsys cuts long names: kernels that differ only behind the cut are one here.
fn note_cut_names(profile: &mut Profile) {
    let cut = profile.kernels.iter().filter(|k| k.demangled().ends_with('…')).count();
    if cut > 0 {
        let text = format!("nsys cut the names of {} in its text.", format_count(cut, "kernel"));
        profile
            .notes
            .push(Note::new(Severity::Warning, NoteKind::Guess, text).with_fix("open the .nsys-rep, or print it with --format csv"));
    }
}

/// A CSV file with named columns, and a count of unusable rows.
struct Table<'a> {
    csv: csv::Reader<Box<dyn Read>>,
    headers: Vec<String>,
    input: &'a Input,
    job: &'a Job<'a>,
    skipped: usize,
    rows: u64,
    bad: u64,
    first_bad: u64,
}

impl<'a> Table<'a> {
    fn new(
        reader: BufReader<Box<dyn Read>>,
        input: &'a Input,
        (skipped, delimiter): (usize, u8),
        job: &'a Job<'a>,
    ) -> Result<Self, ImportError> {
        let boxed: Box<dyn Read> = Box::new(reader);
        let mut csv = csv::ReaderBuilder::new().delimiter(delimiter).flexible(true).from_reader(boxed);
        let headers = csv.byte_headers().map_err(|e| ImportError::damaged(&input.path, "its header", e))?;
        let headers = headers.iter().map(|h| String::from_utf8_lossy(h).trim().to_owned()).collect();
        Ok(Self { csv, headers, input, job, skipped, rows: 0, bad: 0, first_bad: 0 })
    }

    /// Finds the column whose header is `name`, ignoring the unit; returns its index and unit.
    fn find_column(&self, name: &str) -> Option<(usize, String)> {
        self.headers.iter().enumerate().find_map(|(i, h)| {
            let (word, unit) = h.split_once(" (").unwrap_or((h, ""));
            (word == name).then(|| (i, unit.trim_end_matches(')').to_owned()))
        })
    }

    fn require_column(&self, name: &str) -> Result<(usize, String), ImportError> {
        self.find_column(name).ok_or_else(|| ImportError::damaged(&self.input.path, "its header", format!("no column `{name}`")))
    }

    /// Reads the next row, or `None` at the end.
    fn next(&mut self) -> Result<Option<csv::ByteRecord>, ImportError> {
        if self.rows.is_multiple_of(4096) {
            if self.job.cancel.is_cancelled() {
                return Err(ImportError::Cancelled { path: self.input.path.clone() });
            }
            self.job.report_progress("rows", self.csv.position().byte(), self.input.size);
        }
        self.rows += 1;
        let mut record = csv::ByteRecord::new();
        match self.csv.read_byte_record(&mut record) {
            Ok(true) => Ok(Some(record)),
            Ok(false) => Ok(None),
            Err(e) => Err(ImportError::damaged(&self.input.path, &format!("row {}", self.rows), e)),
        }
    }

    fn reject_row(&mut self, row: &csv::ByteRecord) {
        if self.bad == 0 {
            self.first_bad = row.position().map_or(0, csv::Position::line) + self.skipped as u64;
        }
        self.bad += 1;
    }
}

/// Returns the length in ns of a unit from `nsys stats --timeunit`.
fn unit_ns(unit: &str) -> Option<f64> {
    match unit {
        "ns" | "nsec" | "" => Some(1.0),
        "us" | "usec" | "µs" | "μs" => Some(1e3),
        "ms" | "msec" => Some(1e6),
        "s" | "sec" => Some(1e9),
        _ => None,
    }
}

fn cell_text(record: &csv::ByteRecord, at: usize) -> Option<String> {
    let field = record.get(at)?;
    if field.is_empty() { None } else { Some(String::from_utf8_lossy(field).into_owned()) }
}

/// Parses a number with a decimal point; `,` is allowed only between groups of three digits.
fn parse_number(record: &csv::ByteRecord, at: usize) -> Option<f64> {
    let text = cell_text(record, at)?;
    let (whole, _) = text.trim().split_once('.').unwrap_or((text.trim(), ""));
    let mut groups = whole.split(',');
    let first_ok = groups.next().is_some_and(|g| !whole.contains(',') || (1..=4).contains(&g.len()));
    if !first_ok || !groups.all(|g| g.len() == 3) {
        return None;
    }
    text.trim().replace(',', "").parse().ok().filter(|n: &f64| n.is_finite())
}

fn parse_integer(record: &csv::ByteRecord, at: usize) -> Option<u32> {
    cell_text(record, at)?.trim().parse().ok()
}

/// Upper limit of valid times, ns: about a century.
const MOST_NS: f64 = 3.2e18;

/// Parses a time into ns; integers stay exact.
fn parse_time(record: &csv::ByteRecord, (at, scale): (usize, f64)) -> Option<i64> {
    let text = cell_text(record, at)?;
    if (scale - 1.0).abs() < f64::EPSILON
        && let Ok(exact) = text.trim().parse()
    {
        return Some(exact).filter(|v: &i64| (*v as f64).abs() < MOST_NS);
    }
    let value = parse_number(record, at)? * scale;
    (value.abs() < MOST_NS).then_some(value.round() as i64)
}

/// Interns kernels by name, because these reports have names in one form only.
#[derive(Default)]
struct Kernels {
    ids: HashMap<String, u32>,
    kernels: Vec<Kernel>,
}

impl Kernels {
    fn intern_kernel(&mut self, name: String) -> u32 {
        if let Some(&id) = self.ids.get(&name) {
            return id;
        }
        let id = u32::try_from(self.kernels.len()).unwrap_or(u32::MAX);
        let demangled: Arc<str> = Arc::from(name.as_str());
        self.kernels.push(Kernel {
            function: Some(Arc::from(kernel::function_of(&name))),
            demangled: Some(demangled),
            ..Kernel::default()
        });
        self.ids.insert(name, id);
        id
    }
}

const MEGA: f64 = 1e6;

fn read_trace(table: &mut Table<'_>, profile: &mut Profile) -> Result<(), ImportError> {
    let scaled = |(at, unit): (usize, String)| {
        unit_ns(&unit).map(|s| (at, s)).ok_or_else(|| ImportError::damaged(&table.input.path, "its header", format!("unit `{unit}`")))
    };
    let (start_at, duration_at) = (scaled(table.require_column("Start")?)?, scaled(table.require_column("Duration")?)?);
    let name_at = table.require_column("Name")?.0;
    let at = |name: &str| table.find_column(name).map_or(usize::MAX, |c| c.0);
    let dims = |names: [&str; 3]| names.map(at);
    let (grid_at, block_at) = (dims(["GrdX", "GrdY", "GrdZ"]), dims(["BlkX", "BlkY", "BlkZ"]));
    let (registers_at, static_at, dynamic_at, bytes_at) = (at("Reg/Trd"), at("StcSMem"), at("DymSMem"), at("Bytes"));
    let (device_at, context_at, stream_at) = (at("Device"), at("Ctx"), at("Strm"));
    let mut kernels = Kernels::default();
    let (mut configs, mut places, mut devices) = (HashMap::new(), HashMap::new(), HashMap::new());
    let (mut config, mut place) = (Vec::new(), Vec::new());
    let mut columns = LaunchColumns::default();
    while let Some(row) = table.next()? {
        let (Some(start), Some(duration), Some(name)) =
            (parse_time(&row, start_at), parse_time(&row, duration_at), cell_text(&row, name_at))
        else {
            table.reject_row(&row);
            continue;
        };
        if duration < 0 {
            table.reject_row(&row);
            continue;
        }
        let device_name = cell_text(&row, device_at);
        let next = u32::try_from(devices.len()).unwrap_or(u32::MAX);
        let device = device_name.map(|d| {
            *devices.entry(d.clone()).or_insert_with(|| {
                profile.devices.push(device_of(&d, next));
                next
            })
        });
        let key = LaunchSite {
            device,
            context: parse_integer(&row, context_at),
            stream: parse_integer(&row, stream_at),
            ..LaunchSite::default()
        };
        let next = u32::try_from(places.len()).unwrap_or(u32::MAX);
        let here = *places.entry(key.clone()).or_insert_with(|| {
            profile.places.push(key);
            next
        });
        let megabytes = |at: usize| parse_number(&row, at).map(|mb| Bytes((mb * MEGA).max(0.0).round() as u64));
        if let Some(what) = name.strip_prefix("[CUDA mem") {
            profile.memops.push(MemOp {
                start: Nanos(start),
                duration: Nanos(duration),
                kind: memop_kind(what),
                bytes: megabytes(bytes_at),
                place: PlaceId(here),
                call: None,
                launch: None,
                graph_node: None,
            });
            continue;
        }
        let of = |names: [usize; 3]| Some([parse_integer(&row, names[0])?, parse_integer(&row, names[1])?, parse_integer(&row, names[2])?]);
        let key = LaunchConfig {
            grid: of(grid_at),
            block: of(block_at),
            registers: parse_integer(&row, registers_at),
            static_shared: megabytes(static_at),
            dynamic_shared: megabytes(dynamic_at),
            ..LaunchConfig::default()
        };
        let next = u32::try_from(configs.len()).unwrap_or(u32::MAX);
        config.push(*configs.entry(key.clone()).or_insert_with(|| {
            profile.configs.push(key);
            next
        }));
        place.push(here);
        columns.start.push(start);
        columns.duration.push(Some(duration));
        columns.kernel.push(kernels.intern_kernel(name));
    }
    profile.kernels = kernels.kernels;
    profile.launches = Launches::new(columns);
    profile.launches.set_details(config, place, Vec::new(), Vec::new());
    if !profile.launches.is_in_launch_order() {
        let mut rows: Vec<u32> = (0..u32::try_from(profile.launches.len()).unwrap_or(u32::MAX)).collect();
        rows.sort_by_key(|&r| profile.launches.start(r as usize));
        profile.launches = profile.launches.with_order(&rows);
    }
    profile.order = LaunchOrder::Device;
    add_trace_notes(profile);
    Ok(())
}

/// Adds notes on what a table of launches does not have.
fn add_trace_notes(profile: &mut Profile) {
    profile.notes.push(
        Note::new(
            Severity::Warning,
            NoteKind::Guess,
            "A cuda_gpu_trace CSV has no host calls, processes, NVTX ranges or mangled names: launches are in device order, and shared memory is rounded to 1 kB.",
        )
        .with_fix("for exact launch numbers open the .nsys-rep or its SQLite export"),
    );
    if profile.launches.is_empty() {
        profile.notes.push(
            Note::new(Severity::Error, NoteKind::Empty, "The CSV lists no kernels.").with_fix("open the .nsys-rep itself, which says why"),
        );
    }
}

/// Splits `NVIDIA H200 (0)` into name and ordinal.
fn device_of(text: &str, next: u32) -> Device {
    let (name, id) = match text.rsplit_once(" (") {
        Some((name, id)) => (name, id.trim_end_matches(')').parse().unwrap_or(next)),
        None => (text, next),
    };
    Device { id, name: Some(name.to_owned()), ..Device::default() }
}

fn memop_kind(what: &str) -> MemOpKind {
    if what.starts_with("set") {
        return MemOpKind::Set;
    }
    let has = |words: [&str; 2]| words.iter().any(|w| what.contains(w));
    let kind = if what.contains("nified") {
        CopyKind::Unified
    } else if has(["HtoD", "Host-to-Device"]) {
        CopyKind::HostToDevice
    } else if has(["DtoH", "Device-to-Host"]) {
        CopyKind::DeviceToHost
    } else if has(["DtoD", "Device-to-Device"]) {
        CopyKind::DeviceToDevice
    } else if has(["PtoP", "Peer-to-Peer"]) {
        CopyKind::PeerToPeer
    } else if has(["HtoH", "Host-to-Host"]) {
        CopyKind::HostToHost
    } else {
        CopyKind::Other
    };
    MemOpKind::Copy { kind, from: None, to: None }
}

/// Reads a summary, which contains no launches, into the profile's kernel totals. Anything that requires launches
/// remains absent.
fn read_summary(table: &mut Table<'_>, profile: &mut Profile) -> Result<(), ImportError> {
    let scaled = |(at, unit): (usize, String)| {
        unit_ns(&unit).map(|s| (at, s)).ok_or_else(|| ImportError::damaged(&table.input.path, "its header", format!("unit `{unit}`")))
    };
    let total_at = scaled(table.require_column("Total Time")?)?;
    // Versions before 2021.3 write the words in full, and no unit.
    let either = |short: &str, long: &str| table.find_column(short).or_else(|| table.find_column(long));
    let required = |short: &str, long: &str| match either(short, long) {
        Some(found) => scaled(found),
        None => scaled(table.require_column(short)?),
    };
    let (min_at, max_at) = (required("Min", "Minimum")?, required("Max", "Maximum")?);
    let (count_at, name_at) = (table.require_column("Instances")?.0, table.require_column("Name")?.0);
    let optional = |name: &str| table.find_column(name).and_then(|(at, unit)| Some((at, unit_ns(&unit)?)));
    let (median_at, stddev_at) = (optional("Med"), optional("StdDev"));
    let mut kernels = Kernels::default();
    while let Some(row) = table.next()? {
        let count = parse_number(&row, count_at).filter(|n| n.fract() == 0.0 && (1.0..1e18).contains(n)).map(|n| n as u64);
        let (Some(count), Some(total), Some(min), Some(max), Some(name)) =
            (count, parse_time(&row, total_at), parse_time(&row, min_at), parse_time(&row, max_at), cell_text(&row, name_at))
        else {
            table.reject_row(&row);
            continue;
        };
        let float = |at: Option<(usize, f64)>| at.and_then(|(at, scale)| Some(parse_number(&row, at)? * scale));
        let new = KernelTotal {
            kernel: KernelId(kernels.intern_kernel(name)),
            count,
            total: Nanos(total),
            min: Nanos(min),
            max: Nanos(max),
            median_ns: float(median_at),
            stddev_ns: float(stddev_at),
        };
        match profile.totals.get_mut(new.kernel.0 as usize) {
            Some(known) => *known = join_totals(known, &new),
            None => profile.totals.push(new),
        }
    }
    profile.kernels = kernels.kernels;
    profile.notes.push(
        Note::new(
            Severity::Warning,
            NoteKind::Guess,
            "A table of totals (cuda_gpu_kern_sum) has per-kernel totals only: no individual launches, percentiles, configurations, streams, memory copies or ranges.",
        )
        .with_fix("open the .nsys-rep or its SQLite export to see launches"),
    );
    if profile.totals.is_empty() {
        profile.notes.push(
            Note::new(Severity::Error, NoteKind::Empty, "The table lists no kernels.")
                .with_fix("open the .nsys-rep itself, which says why"),
        );
    }
    Ok(())
}

/// Joins the totals of a kernel with two grids or blocks. The median of both is not known.
fn join_totals(a: &KernelTotal, b: &KernelTotal) -> KernelTotal {
    let (n, m) = (a.count as f64, b.count as f64);
    let between = a.total.0 as f64 / n - b.total.0 as f64 / m;
    // Sums of squared differences from the mean (Chan et al., parallel variance).
    let squares = |t: &KernelTotal| if t.count > 1 { t.stddev_ns.map(|s| s * s * (t.count as f64 - 1.0)) } else { Some(0.0) };
    let sum = squares(a).zip(squares(b)).map(|(x, y)| x + y + between * between * n * m / (n + m));
    KernelTotal {
        kernel: a.kernel,
        count: a.count.saturating_add(b.count),
        total: Nanos(a.total.0.saturating_add(b.total.0)),
        min: a.min.min(b.min),
        max: a.max.max(b.max),
        median_ns: None,
        stddev_ns: sum.map(|s| (s / (n + m - 1.0)).sqrt()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn units_come_from_the_header() {
        assert_eq!(unit_ns("ms"), Some(1e6));
        assert_eq!(unit_ns("fortnights"), None);
        assert_eq!(find_header("Processing [x]\n\nStart (ns),Duration (ns),CorrId,GrdX,Name\n"), Some((2, Kind::Trace, b',')));
    }
}
