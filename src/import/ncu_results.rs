//! The first fields of each result in an Nsight Compute report or CSV: what was profiled, not what was measured.

use super::input::Bytes;
use super::{ImportError, Input, Job, ncu};
use crate::model::ResultMetrics;
use std::fs::File;
use std::io::{BufRead, BufReader, Read};
use std::path::Path;

/// One result.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct NcuResult {
    /// Function name (`.ncu-rep`), or the name as the CSV prints it.
    pub name: String,
    /// Full name, when the report gives it.
    pub demangled: Option<String>,
    /// Linker symbol, when the report gives it.
    pub mangled: Option<String>,
    /// Grid in blocks; `None` for graphs and ranges, and when it is not given.
    pub grid: Option<[u32; 3]>,
    /// Block in threads.
    pub block: Option<[u32; 3]>,
    /// ncu could not measure it.
    pub failed: bool,
}

/// Results that are read at most: enough to compare a re-run with what was selected.
pub const MOST: usize = 10_000;

/// Bytes of a CSV that are read at most.
const MOST_BYTES: u64 = 256 << 20;
/// Bytes of a line before the CSV begins.
const MOST_LINE: u64 = 1 << 20;

/// Reads them in order. A report that is cut gives the results before the cut, if there are any.
pub fn read(path: &Path, job: &Job<'_>) -> Result<Vec<NcuResult>, ImportError> {
    // What is neither a report nor text is not unpacked.
    let input = Input::open_if(path, job, &|i| ncu::is_report(i) || !i.head.contains(&0))?;
    let Bytes::File(file) = &input.bytes else {
        return Ok(Vec::new());
    };
    let open = || File::open(file).map_err(|e| ImportError::io(path, e));
    if ncu::is_report(&input) {
        return Ok(ncu::read(path, job)?.results.into_iter().map(Into::into).collect());
    }
    if input.head.contains(&0) {
        return Err(ImportError::refused(path, "not an Nsight Compute report", "name a .ncu-rep, or the CSV that `ncu --csv` prints"));
    }
    csv(path, BufReader::new(open()?))
}

impl From<ResultMetrics> for NcuResult {
    fn from(r: ResultMetrics) -> Self {
        let text = |t: std::sync::Arc<str>| t.to_string();
        Self {
            name: r.kernel.function().to_owned(),
            demangled: r.kernel.demangled.map(text),
            mangled: r.kernel.mangled.map(text),
            grid: r.grid,
            block: r.block,
            failed: r.failed,
        }
    }
}

/// `(128, 1, 1)`, or `128,1,1`.
fn dims(text: &str) -> Option<[u32; 3]> {
    let numbers: Vec<u32> = text.trim_matches(['(', ')', ' ']).split(',').map(|n| n.trim().parse()).collect::<Result<_, _>>().ok()?;
    <[u32; 3]>::try_from(numbers).ok()
}

/// `ncu --csv`, raw or details page, also with the profiler's and the program's own lines between.
fn csv(path: &Path, mut reader: impl BufRead) -> Result<Vec<NcuResult>, ImportError> {
    let none = || ImportError::refused(path, "not an Nsight Compute report", "name a .ncu-rep, or the CSV that `ncu --csv` prints");
    let mut text = Vec::new();
    let mut error = None;
    let header = loop {
        text.clear();
        if reader.by_ref().take(MOST_LINE).read_until(b'\n', &mut text).map_err(|e| ImportError::io(path, e))? == 0 {
            return match error {
                Some(error) => Err(ImportError::refused(path, format!("ncu wrote no results: {error}"), "mend that and run it again")),
                None => Err(none()),
            };
        }
        let line = String::from_utf8_lossy(&text);
        if line.starts_with("==ERROR==") {
            error.get_or_insert_with(|| line.trim_start_matches("==ERROR==").trim().to_owned());
        }
        if line.starts_with("\"ID\"") {
            break line.into_owned();
        }
    };
    let fields = |line: &str| -> Vec<String> {
        let mut one = csv::ReaderBuilder::new().has_headers(false).from_reader(line.as_bytes());
        one.records().next().and_then(Result::ok).map(|r| r.iter().map(str::to_owned).collect()).unwrap_or_default()
    };
    let titles = fields(&header);
    let column = |name: &str| titles.iter().position(|t| t == name);
    let Some(kernel) = column("Kernel Name") else { return Err(none()) };
    let (grid, block) = (column("Grid Size"), column("Block Size"));
    let mut rows = csv::ReaderBuilder::new().has_headers(false).flexible(true).from_reader(reader.take(MOST_BYTES));
    let mut out: Vec<NcuResult> = Vec::new();
    let mut last = None;
    for row in rows.byte_records() {
        let Ok(row) = row else { break };
        let text = |i: usize| row.get(i).map(|b| String::from_utf8_lossy(b).into_owned());
        // The profiler's own lines and the units row have no number here; the details page has many rows for one result.
        let Some(id) = text(0).and_then(|t| t.trim().parse::<u64>().ok()) else { continue };
        let Some(name) = text(kernel).filter(|_| row.len() > kernel + 1) else { continue };
        if last.replace(id) == Some(id) {
            continue;
        }
        let (grid, block) = (grid.and_then(text).and_then(|t| dims(&t)), block.and_then(text).and_then(|t| dims(&t)));
        let failed = grid == Some([0; 3]);
        out.push(NcuResult { name, grid: grid.filter(|_| !failed), block: block.filter(|_| !failed), failed, ..NcuResult::default() });
        if out.len() >= MOST {
            break;
        }
    }
    Ok(out)
}
