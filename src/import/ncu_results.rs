//! The first fields of each result in an Nsight Compute report or CSV: what was profiled, not what was measured.

use super::{ImportError, Job, ncu};
use crate::model::ResultMetrics;
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

/// Reads them in order. A file that is damaged gives the results before the damage, if there are any.
pub fn read(path: &Path, job: &Job<'_>) -> Result<Vec<NcuResult>, ImportError> {
    Ok(ncu::read(path, job, None)?.results.into_iter().take(MOST).map(Into::into).collect())
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
