//! Reader for the files of a decoded thread trace: `code.json` with the kernel's instructions, one file per wave, and
//! clock readings.

use super::many::{Many, with_counting};
use crate::import::{Budget, ImportError, budget};
use crate::launch::open;
use crate::model::Cancel;
use serde::Deserialize;
use serde_json::Value as Json;
use std::path::{Path, PathBuf};
use std::rc::Rc;
use std::sync::Arc;

/// Name of the tool in the source of reports with PC samples, from tables and from listings.
pub const PC_SAMPLES: &str = "rocprofv3 PC samples";

/// Maximum size of a wave or source file, bytes.
const MOST: u64 = 1 << 30;
/// Bit position of the code object id within an address; the lower bits are the offset within the object.
const OBJECT: u32 = 44;

/// A row of `code.json`: an instruction, or a function name.
pub struct CodeRow {
    pub text: Arc<str>,
    /// `file:line` of an instruction, or a function's demangled name.
    pub source: String,
    pub address: u64,
    /// Number of executions, cycles spent, cycles stalled (included in the cycles spent), and idle cycles before the
    /// instruction, summed over all waves.
    pub cycles: [u64; 4],
    /// Number of PC samples in which the instruction was issued, and in which it was stalled.
    pub samples: [u64; 2],
}

impl CodeRow {
    /// Returns the symbol name if the row is a function name.
    pub fn symbol(&self) -> Option<&str> {
        self.text.strip_prefix("; ")
    }

    /// Number of PC samples.
    pub fn all_samples(&self) -> u64 {
        self.samples[0].saturating_add(self.samples[1])
    }
}

#[derive(Deserialize)]
struct CodeFile {
    code: Many<Vec<Json>>,
}

#[derive(Default, Deserialize)]
pub struct WaveFile {
    #[serde(default)]
    pub duration: u64,
    /// Shader engine, such as `SE0`.
    #[serde(default)]
    pub name: String,
    pub wave: Wave,
}

/// A wave that occupies a slot of a SIMD; times are in cycles.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Wave {
    pub begin: u64,
    pub end: u64,
    pub cu: u32,
    pub simd: u32,
    pub slot: u32,
    pub id: u32,
    /// Consecutive states, each with its duration in cycles.
    pub timeline: Many<(u64, u64)>,
    pub instructions: Many<Step>,
}

/// An instruction executed by a wave: `[time, type, stall, duration, row of code.json]`.
#[derive(Deserialize)]
#[serde(from = "(i64, i64, i64, i64, i64)")]
pub struct Step {
    pub time: i64,
    pub duration: i64,
    pub row: i64,
}

impl From<(i64, i64, i64, i64, i64)> for Step {
    fn from((time, _, _, duration, row): (i64, i64, i64, i64, i64)) -> Self {
        Self { time, duration, row }
    }
}

pub fn read_rows(path: &Path, cancel: &Cancel) -> Result<Vec<CodeRow>, ImportError> {
    parse_rows(&open::read_regular(path).map_err(|e| ImportError::io(path, e))?, path, cancel)
}

pub fn parse_rows(bytes: &[u8], path: &Path, cancel: &Cancel) -> Result<Vec<CodeRow>, ImportError> {
    Budget::from_plain_size(path, bytes.len() as u64, bytes.len() as u64).charge_bytes(budget::estimate_json(bytes))?;
    let file: Result<CodeFile, _> = with_counting(&Rc::new(cancel.pace()), || serde_json::from_slice(bytes));
    let file = file.map_err(|e| {
        if cancel.is_cancelled() {
            return ImportError::Cancelled { path: path.to_owned() };
        }
        ImportError::refused(
            path,
            format!("not a thread trace's code: {e}"),
            "decode the trace again: rocprofv3 --att with AMD's trace decoder",
        )
    })?;
    let row = |fields: &Vec<Json>| {
        let number = |i: usize| {
            fields.get(i).and_then(|v| v.as_u64().or_else(|| v.as_f64().filter(|n| (0.0..1e18).contains(n)).map(|n| n as u64))).unwrap_or(0)
        };
        let (object, address) = (number(4), number(5));
        Some(CodeRow {
            text: Arc::from(fields.first()?.as_str()?),
            source: fields.get(3).and_then(Json::as_str).unwrap_or_default().to_owned(),
            address: (object << OBJECT) | (address & ((1 << OBJECT) - 1)),
            cycles: [number(6), number(7), number(8), number(9)],
            samples: [number(10), number(11)],
        })
    };
    Ok(file.code.0.iter().filter_map(row).collect())
}

/// Reads a file in the trace's directory if it is a regular file (not a pipe or symlink) of at most `MOST` bytes.
pub fn read_small_file(path: &Path) -> Option<Vec<u8>> {
    let meta = path.symlink_metadata().ok()?;
    if !meta.is_file() || meta.len() > MOST {
        return None;
    }
    open::read_regular(path).ok()
}

pub fn read_json<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    let bytes = read_small_file(path)?;
    let size = bytes.len() as u64;
    parse_json(&bytes, &Budget::from_plain_size(path, size, size))
}

fn parse_json<T: for<'a> Deserialize<'a>>(bytes: &[u8], memory: &Budget) -> Option<T> {
    memory.try_spend(budget::estimate_json(bytes)).then(|| serde_json::from_slice(bytes).ok())?
}

/// Reads the waves listed in `filenames.json`, with one memory budget based on the total size of their files. Skips
/// files that cannot be read, and all remaining files once canceled.
pub fn read_waves(folder: &Path, cancel: &Cancel) -> Vec<WaveFile> {
    let names: Json = read_json(&folder.join("filenames.json")).unwrap_or_default();
    let mut files: Vec<String> = Vec::new();
    let mut open = vec![&names["wave_filenames"]];
    while let Some(value) = open.pop() {
        match value {
            Json::Object(inner) => open.extend(inner.values()),
            Json::Array(file) => files.extend(file.first().and_then(Json::as_str).map(str::to_owned)),
            _ => {}
        }
    }
    files.sort();
    files.dedup();
    // Accept only plain file names, because a path could lead out of the directory.
    let files: Vec<PathBuf> = files.iter().filter(|n| !n.contains(['/', '\\'])).map(|n| folder.join(n)).collect();
    let size = files.iter().filter_map(|f| f.symlink_metadata().ok()).fold(0, |sum: u64, m| sum.saturating_add(m.len()));
    let memory = Budget::from_plain_size(folder, size, size);
    let read = || {
        let all = files.iter().take_while(|_| !cancel.is_cancelled());
        all.filter_map(|f| parse_json(&read_small_file(f)?, &memory)).collect()
    };
    with_counting(&Rc::new(cancel.pace()), read)
}

/// Returns the frequency of the GPU's cycle counter in Hz, from two readings taken together with a clock of known
/// frequency.
pub fn read_clock(folder: &Path) -> Option<f64> {
    let all: Json = read_json(&folder.join("realtime.json"))?;
    let frequency = all["metadata"]["frequency"].as_f64()?;
    let pairs = all.as_object()?.iter().find(|(name, _)| name.starts_with("SE"))?.1.as_array()?;
    let read = |pair: &Json| Some((pair.get(0)?.as_f64()?, pair.get(1)?.as_f64()?));
    let ((c0, t0), (c1, t1)) = (read(pairs.first()?)?, read(pairs.last()?)?);
    Some((c1 - c0) / (t1 - t0) * frequency).filter(|hz| hz.is_finite() && (1e6..1e11).contains(hz))
}
