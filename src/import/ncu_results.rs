//! The first fields of each result in an Nsight Compute report or CSV: what was profiled, not what was measured.

use super::input::Bytes;
use super::{ImportError, Input, Job};
use prost::Message;
use std::fs::File;
use std::io::{BufRead, BufReader, ErrorKind, Read, Seek, SeekFrom};
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

/// Bytes of one result, and of a CSV, that are read at most. Results of real reports have about a megabyte.
const MOST_BYTES: u64 = 256 << 20;
/// Bytes of a line before the CSV begins.
const MOST_LINE: u64 = 1 << 20;

/// Reads them in order. A report that is cut gives the results before the cut, if there are any.
pub fn read(path: &Path, job: &Job<'_>) -> Result<Vec<NcuResult>, ImportError> {
    // What is neither a report nor text is not unpacked.
    let input = Input::open_if(path, job, &|i| is_report(i) || !i.head.contains(&0))?;
    let Bytes::File(file) = &input.bytes else {
        return Ok(Vec::new());
    };
    let open = || File::open(file).map_err(|e| ImportError::io(path, e));
    if is_report(&input) {
        return report(path, BufReader::new(open()?), input.size);
    }
    if input.head.contains(&0) {
        return Err(ImportError::refused(path, "not an Nsight Compute report", "name a .ncu-rep, or the CSV that `ncu --csv` prints"));
    }
    csv(path, BufReader::new(open()?))
}

fn is_report(input: &Input) -> bool {
    input.head.starts_with(b"NVR\0")
}

/// Header of a block; field numbers as in NVIDIA's `ProfilerReport.proto`.
#[derive(Clone, PartialEq, Message)]
struct BlockHeader {
    #[prost(uint32, optional, tag = "1")]
    sources: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    results: Option<u32>,
    #[prost(uint32, optional, tag = "5")]
    payload: Option<u32>,
    #[prost(uint32, optional, tag = "7")]
    ranges: Option<u32>,
    #[prost(uint32, optional, tag = "8")]
    cmdlists: Option<u32>,
    #[prost(uint32, optional, tag = "9")]
    graphs: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
struct Dims {
    #[prost(uint64, optional, tag = "1")]
    x: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    y: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    z: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
struct KernelResult {
    #[prost(string, optional, tag = "5")]
    mangled: Option<String>,
    #[prost(string, optional, tag = "6")]
    function: Option<String>,
    #[prost(string, optional, tag = "7")]
    demangled: Option<String>,
    #[prost(message, optional, tag = "10")]
    grid: Option<Dims>,
    #[prost(message, optional, tag = "11")]
    block: Option<Dims>,
}

impl Dims {
    fn get(&self) -> [u32; 3] {
        [self.x, self.y, self.z].map(|d| u32::try_from(d.unwrap_or_default()).unwrap_or(u32::MAX))
    }
}

impl From<KernelResult> for NcuResult {
    fn from(r: KernelResult) -> Self {
        let (grid, block) = (r.grid.map(|d| d.get()), r.block.map(|d| d.get()));
        // A launch that could not be profiled has no grid and no block.
        let failed = grid == Some([0; 3]);
        // A kernel with C linkage has an empty full name.
        let [function, demangled, mangled] = [r.function, r.demangled, r.mangled].map(|n| n.filter(|n| !n.is_empty()));
        let name = function.or_else(|| demangled.clone()).or_else(|| mangled.clone()).unwrap_or_default();
        Self { name, demangled, mangled, grid: grid.filter(|_| !failed), block: block.filter(|_| !failed), failed }
    }
}

fn damaged(path: &Path, place: &str, reason: &str) -> ImportError {
    let next = "copy it again from where it was recorded, or profile again".to_owned();
    ImportError::Damaged { path: path.to_owned(), place: place.to_owned(), reason: reason.to_owned(), next }
}

/// A little-endian length; `None` at the end of the file.
fn length(reader: &mut impl Read) -> std::io::Result<Option<u64>> {
    let mut bytes = [0; 4];
    match reader.read_exact(&mut bytes) {
        Ok(()) => Ok(Some(u64::from(u32::from_le_bytes(bytes)))),
        Err(e) if e.kind() == ErrorKind::UnexpectedEof => Ok(None),
        Err(e) => Err(e),
    }
}

/// Blocks one after another: a header, then its messages, each with its length before it.
fn report(path: &Path, mut reader: impl Read + Seek, size: u64) -> Result<Vec<NcuResult>, ImportError> {
    let io = |e| ImportError::io(path, e);
    let mut out = Vec::new();
    let mut at = 4;
    reader.seek(SeekFrom::Start(at)).map_err(io)?;
    let cut = |out: Vec<NcuResult>, place: &str| {
        if out.is_empty() { Err(damaged(path, place, "it ends in the middle")) } else { Ok(out) }
    };
    let Some(header) = length(&mut reader).map_err(io)? else {
        return cut(out, "file header");
    };
    at += 4 + header;
    if at > size {
        return cut(out, "file header");
    }
    reader.seek(SeekFrom::Start(at)).map_err(io)?;
    while let Some(length_of_header) = length(&mut reader).map_err(io)? {
        at += 4 + length_of_header;
        // A length may claim 4 GiB: it is checked against what is there before anything is allocated.
        if at > size || length_of_header > MOST_BYTES {
            return cut(out, "block header");
        }
        let mut bytes = vec![0; usize::try_from(length_of_header).unwrap_or(usize::MAX)];
        reader.read_exact(&mut bytes).map_err(io)?;
        let Ok(header) = BlockHeader::decode(&*bytes) else {
            return if out.is_empty() { Err(damaged(path, "block header", "it is no block header")) } else { Ok(out) };
        };
        let end = at + u64::from(header.payload.unwrap_or_default());
        let n = |n: Option<u32>| u64::from(n.unwrap_or_default());
        for _ in 0..n(header.sources) {
            let Some(message) = length(&mut reader).map_err(io)? else { break };
            at += 4 + message;
            if at > end.min(size) {
                return cut(out, "source");
            }
            reader.seek(SeekFrom::Start(at)).map_err(io)?;
        }
        for _ in 0..n(header.results) {
            let Some(message) = length(&mut reader).map_err(io)? else { return cut(out, "result") };
            at += 4 + message;
            if at > end.min(size) {
                return cut(out, "result");
            }
            if message > MOST_BYTES {
                return cut(out, "result");
            }
            let mut bytes = vec![0; usize::try_from(message).unwrap_or(usize::MAX)];
            reader.read_exact(&mut bytes).map_err(io)?;
            match KernelResult::decode(&*bytes) {
                Ok(result) => out.push(result.into()),
                Err(_) => return cut(out, "result"),
            }
            if out.len() >= MOST {
                return Ok(out);
            }
        }
        for (count, name) in [(header.ranges, "range"), (header.cmdlists, "cmdlist"), (header.graphs, "graph")] {
            let room = MOST.saturating_sub(out.len());
            let count = usize::try_from(n(count)).unwrap_or(usize::MAX).min(room);
            out.extend(std::iter::repeat_n(NcuResult { name: name.to_owned(), ..NcuResult::default() }, count));
        }
        at = end;
        if at > size {
            return cut(out, "block");
        }
        reader.seek(SeekFrom::Start(at)).map_err(io)?;
    }
    Ok(out)
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
