//! Reads details of a result on demand for the explorer.

use crate::import::input::Input;
use crate::import::rocm::RocmThreadTrace;
use crate::import::wstrace::WarpscopeTrace;
use crate::import::{Cancel, ImportError, Job, ncu};
use crate::model::metrics::{IN_PLACE, Sampled};
use crate::model::{Code, Details, Metrics};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Arc;

/// Opens the report of the metrics, and fails if the file has changed since the metrics were read.
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
    if RocmThreadTrace::is_thread_trace(metrics) {
        return catch_panic(|| RocmThreadTrace::read_details(&open_unchanged(open, metrics)?, metrics));
    }
    if let Some(sampled) = &of.sampled {
        return Ok(Arc::new(sampled.details.clone()));
    }
    if of.place.is_none() {
        // Text reports contain no further details.
        return Ok(Arc::default());
    }
    catch_panic(|| ncu::details::read_details(&open_unchanged(open, metrics)?, of))
}

/// Reads the code of a launch that was sampled while its program ran.
pub fn sampled_code(
    input: &Input,
    metrics: &Metrics,
    sampled: &Sampled,
    tools: &[std::path::PathBuf],
    cancel: &Cancel,
) -> Result<Code, ImportError> {
    let modules = WarpscopeTrace::read_modules(input, &sampled.details.sources)?;
    let code = ncu::source::of_modules(input, metrics, sampled, &modules, tools, cancel);
    // Output of a cancelled disassembler is incomplete: discard it.
    if cancel.is_cancelled() { Err(ImportError::Cancelled { path: input.path.clone() }) } else { Ok(code) }
}

/// Reads binary, sources and instructions of a result.
pub fn read_code(
    open: impl FnOnce() -> Result<Input, ImportError>,
    metrics: &Metrics,
    result: usize,
    tools: &[std::path::PathBuf],
    cancel: &Cancel,
) -> Result<Arc<Code>, String> {
    let Some(of) = metrics.results.get(result) else { return Err("there is no such result".to_owned()) };
    if RocmThreadTrace::is_thread_trace(metrics) {
        return catch_panic(|| RocmThreadTrace::read_code(&open_unchanged(open, metrics)?));
    }
    if let Some(sampled) = &of.sampled {
        return catch_panic(|| sampled_code(&open_unchanged(open, metrics)?, metrics, sampled, tools, cancel));
    }
    if of.place.is_none() && metrics.source.tool == IN_PLACE {
        let remark = "no stall reasons were sampled of this kernel: `warpscope run --stalls KERNEL#N` samples a launch of it".to_owned();
        return Ok(Arc::new(Code { remarks: vec![remark], ..Code::default() }));
    }
    if of.place.is_none() {
        let remark = "this result was read from text, which has no code: open the .ncu-rep".to_owned();
        return Ok(Arc::new(Code { remarks: vec![remark], ..Code::default() }));
    }
    catch_panic(|| {
        let input = open_unchanged(open, metrics)?;
        let details = ncu::details::read_details(&input, of)?;
        let code = ncu::source::read_code(&input, metrics, result, &details, tools, cancel);
        // Output of a cancelled disassembler is incomplete: discard it.
        if cancel.is_cancelled() { Err(ImportError::Cancelled { path: input.path.clone() }) } else { code }
    })
}

/// Returns a job without progress reports for opening an input again; unpacked files are found in the cache.
pub fn quiet_job() -> Job<'static> {
    Job::new(crate::import::Wants::ALL, &|_| {})
}
