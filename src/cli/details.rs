//! Reads details of a result on demand for the explorer.

use crate::import::input::Input;
use crate::import::open::find_importer;
use crate::import::{Cancel, ImportError, Job};
use crate::model::{Code, Details, Metrics};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::path::PathBuf;
use std::sync::Arc;

/// Opens the report that contains the metrics; fails if the file has changed since the metrics were read.
fn open_unchanged(open: impl FnOnce() -> Result<Input, ImportError>, metrics: &Metrics) -> Result<Input, ImportError> {
    let input = open()?;
    if metrics.size > 0 && input.size != metrics.size {
        return Err(ImportError::refused(&input.path, "the file changed since it was opened", "open it again"));
    }
    Ok(input)
}

fn catch_panic<T>(read: impl FnOnce() -> Result<T, ImportError>) -> Result<Arc<T>, String> {
    match catch_unwind(AssertUnwindSafe(read)) {
        Ok(outcome) => outcome.map(Arc::new).map_err(|e| e.to_string()),
        Err(_) => Err("warpscope failed while reading this result; please report it as a bug".to_owned()),
    }
}

/// Reads sections, rules and instances of a result.
pub fn read_details(open: impl FnOnce() -> Result<Input, ImportError>, metrics: &Metrics, result: usize) -> Result<Arc<Details>, String> {
    let Some(of) = metrics.results.get(result) else { return Err("there is no such result".to_owned()) };
    // Samples taken while the program ran are available without the file.
    if let Some(sampled) = &of.sampled {
        return Ok(Arc::new(sampled.details.clone()));
    }
    catch_panic(|| {
        let input = open_unchanged(open, metrics)?;
        find_importer(&input)?.read_details(&input, metrics, result)
    })
}

/// Reads the binary, sources and instructions of a result.
pub fn read_code(
    open: impl FnOnce() -> Result<Input, ImportError>,
    metrics: &Metrics,
    result: usize,
    disassemblers: &[PathBuf],
    cancel: &Cancel,
) -> Result<Arc<Code>, String> {
    catch_panic(|| {
        let input = open_unchanged(open, metrics)?;
        let code = find_importer(&input)?.read_code(&input, metrics, result, None, disassemblers, cancel);
        // Output of a canceled disassembler is incomplete: discard it.
        if cancel.is_cancelled() { Err(ImportError::Cancelled { path: input.path.clone() }) } else { code }
    })
}

/// Returns a job without progress reports for reopening an input; unpacked files are found in the cache.
pub fn quiet_job() -> Job<'static> {
    Job::new(crate::import::Wants::ALL, &|_| {})
}
