//! The files of a decoded thread trace: `code.json` with the kernel's instructions, one file for each wave, clocks.

use crate::import::{Budget, ImportError, budget};
use crate::launch::open;
use serde::Deserialize;
use serde_json::Value as Json;
use std::path::Path;
use std::sync::Arc;

/// Bytes that a file of a wave, or of a source, has at most.
const MOST: u64 = 1 << 30;
/// Bits of an address above those of the code object's own.
const OBJECT: u32 = 44;

/// An instruction, or a function's name.
pub struct Row {
    pub text: Arc<str>,
    /// `file:line`, of an instruction; of a function its demangled name.
    pub source: String,
    pub address: u64,
    /// Executions by waves; cycles at it, of which it was stalled; cycles before it in which the wave had none.
    pub cycles: [u64; 4],
    /// Samples in which it was issued, and in which it was not.
    pub samples: [u64; 2],
}

impl Row {
    /// The symbol of a function that begins here.
    pub fn symbol(&self) -> Option<&str> {
        self.text.strip_prefix("; ")
    }
}

#[derive(Deserialize)]
struct CodeFile {
    code: Vec<Vec<Json>>,
}

#[derive(Default, Deserialize)]
pub struct WaveFile {
    #[serde(default)]
    pub duration: u64,
    /// Its shader engine: `SE0`.
    #[serde(default)]
    pub name: String,
    pub wave: Wave,
}

/// A wave on a slot of a SIMD; times in cycles.
#[derive(Default, Deserialize)]
#[serde(default)]
pub struct Wave {
    pub begin: u64,
    pub end: u64,
    pub cu: u32,
    pub simd: u32,
    pub slot: u32,
    pub id: u32,
    /// States, one after the other, with their cycles.
    pub timeline: Vec<(u64, u64)>,
    pub instructions: Vec<Step>,
}

/// An instruction as a wave executed it: `[time, type, stall, duration, row of code.json]`.
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

pub fn rows(path: &Path) -> Result<Vec<Row>, ImportError> {
    parsed(&open::bytes(path).map_err(|e| ImportError::io(path, e))?, path)
}

pub fn parsed(bytes: &[u8], path: &Path) -> Result<Vec<Row>, ImportError> {
    Budget::plain(path, bytes.len() as u64, bytes.len() as u64).keep(budget::json(bytes))?;
    let file: CodeFile = serde_json::from_slice(bytes).map_err(|e| {
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
        Some(Row {
            text: Arc::from(fields.first()?.as_str()?),
            source: fields.get(3).and_then(Json::as_str).unwrap_or_default().to_owned(),
            address: (object << OBJECT) | (address & ((1 << OBJECT) - 1)),
            cycles: [number(6), number(7), number(8), number(9)],
            samples: [number(10), number(11)],
        })
    };
    Ok(file.code.iter().filter_map(row).collect())
}

/// The bytes of a file beside the trace: one that is a file, not a pipe or a link elsewhere, and no larger than these are.
pub fn beside(path: &Path) -> Option<Vec<u8>> {
    let meta = path.symlink_metadata().ok()?;
    if !meta.is_file() || meta.len() > MOST {
        return None;
    }
    open::bytes(path).ok()
}

pub fn json<T: for<'a> Deserialize<'a>>(path: &Path) -> Option<T> {
    let bytes = beside(path)?;
    let size = bytes.len() as u64;
    Budget::plain(path, size, size).spend(budget::json(&bytes)).then(|| serde_json::from_slice(&bytes).ok())?
}

/// The waves that `filenames.json` lists.
pub fn waves(folder: &Path) -> Vec<WaveFile> {
    let names: Json = json(&folder.join("filenames.json")).unwrap_or_default();
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
    // A name is a file's in the folder, not a way out of it.
    files.iter().filter(|n| !n.contains(['/', '\\'])).filter_map(|n| json(&folder.join(n))).collect()
}

/// Clock of the GPU's cycles in Hz, from two readings beside a clock of known frequency.
pub fn clock(folder: &Path) -> Option<f64> {
    let all: Json = json(&folder.join("realtime.json"))?;
    let frequency = all["metadata"]["frequency"].as_f64()?;
    let pairs = all.as_object()?.iter().find(|(name, _)| name.starts_with("SE"))?.1.as_array()?;
    let read = |pair: &Json| Some((pair.get(0)?.as_f64()?, pair.get(1)?.as_f64()?));
    let ((c0, t0), (c1, t1)) = (read(pairs.first()?)?, read(pairs.last()?)?);
    Some((c1 - c0) / (t1 - t0) * frequency).filter(|hz| hz.is_finite() && (1e6..1e11).contains(hz))
}
