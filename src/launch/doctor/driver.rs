//! Queries the CUDA driver and libcupti directly: the tracer's object calls them in a separate process, because their
//! state cannot be determined from outside.

use super::super::tracer::Library;
use std::ffi::OsString;
use std::path::Path;
use std::process::Command;
use std::time::{Duration, Instant};

/// Time limit: the driver takes seconds to start on a machine with many GPUs and without persistence mode.
const PATIENCE: Duration = Duration::from_secs(30);

/// Results of the calls; 0 means success.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DriverAnswer {
    /// Error message of the loader if there is no usable `libcuda.so.1`.
    pub no_driver: Option<String>,
    /// Result of cuInit.
    pub cuda: Option<u32>,
    /// CUDA version of the driver, such as 13000.
    pub version: Option<u32>,
    /// Result of cuptiSubscribe.
    pub subscribe: Option<u32>,
    /// Result of cuptiActivityEnable for kernels.
    pub kernels: Option<u32>,
    pub libcupti: String,
    /// Result of cuptiGetVersion, such as 130001 for CUDA 13.0.
    pub cupti_version: Option<u32>,
    /// Problem with libcupti's file, and a sentence that describes it.
    pub unusable: Option<String>,
    pub reason: String,
}

impl DriverAnswer {
    fn add_line(&mut self, line: &str) {
        let Some((key, value)) = line.split_once(' ') else { return };
        let code = value.parse().ok();
        match key {
            "no_driver" => self.no_driver = Some(value.to_owned()),
            "cuda" => self.cuda = code,
            "driver" => self.version = code,
            "subscribe" => self.subscribe = code,
            "kernels" => self.kernels = code,
            "cupti_version" => self.cupti_version = code,
            "libcupti" => value.clone_into(&mut self.libcupti),
            "unusable" => self.unusable = Some(value.to_owned()),
            "reason" => value.clone_into(&mut self.reason),
            _ => {}
        }
    }
}

/// Calls the driver and libcupti. `None` if there is no result, because the process hung or crashed in the driver.
pub fn ask_driver(object: &Path, libraries: &[Library], cancelled: &dyn Fn() -> bool) -> Option<DriverAnswer> {
    let until = Instant::now() + PATIENCE;
    let list: Vec<OsString> = libraries.iter().map(|l| l.path.clone().into_os_string()).collect();
    let mut command = Command::new("sh");
    // The process is a shell, because this program may be linked statically, and would then not load the object.
    command.args(["-c", "LD_PRELOAD=$0 WARPSCOPE_TRACE_PROBE=1 exec sh -c :"]).arg(object);
    command.env("WARPSCOPE_TRACE_CUPTI", list.join(std::ffi::OsStr::new(":")));
    for variable in ["CUDA_INJECTION64_PATH", "NVTX_INJECTION64_PATH", "LD_PRELOAD", "WARPSCOPE_TRACE_OUT"] {
        command.env_remove(variable);
    }
    let mut answer = DriverAnswer::default();
    let ended = super::super::run_query(&mut command, |line| answer.add_line(line), || cancelled() || Instant::now() > until).ok()?;
    (ended.status.success() && (answer.cuda.is_some() || answer.no_driver.is_some())).then_some(answer)
}
