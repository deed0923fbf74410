//! GPU utilization during a run, from `nvidia-smi` or `rocm-smi`; absent if there is neither.

use super::super::doctor::smi::{self, Busy};
use super::super::{locate_tools, run_query};
use std::process::Command;
use std::time::{Duration, Instant};

/// Sampling interval: one second is enough to see whether a program is waiting, and costs it nothing.
const EVERY: Duration = Duration::from_secs(1);
/// `rocm-smi` is a Python program that is started again for each sample.
const ROCM_EVERY: Duration = Duration::from_secs(3);
/// Time that `rocm-smi` has to answer.
const PATIENCE: Duration = Duration::from_secs(10);

/// Passes samples of each GPU's utilization to `hear` until `enough` returns true.
pub fn sample_utilization(mut hear: impl FnMut(Busy), enough: impl Fn() -> bool) {
    if let Some(tool) = locate_tools::find_on_path("nvidia-smi") {
        let every = format!("--loop={}", EVERY.as_secs());
        let mut command = Command::new(tool);
        command.args(smi::BUSY).arg(every);
        // Without a driver, `nvidia-smi` exits on its own.
        let _ = run_query(&mut command, |line| smi::parse_utilization(line).into_iter().for_each(&mut hear), &enough);
        return;
    }
    let Some(tool) = locate_tools::find_on_path("rocm-smi") else { return };
    while !enough() {
        let began = Instant::now();
        let mut answer = String::new();
        let late = || enough() || began.elapsed() > PATIENCE;
        let ended = run_query(Command::new(&tool).args(smi::ROCM_BUSY), |line| answer.extend([line, "\n"]), late);
        let all = smi::parse_rocm_utilization(&answer);
        if ended.is_err() || all.is_empty() {
            return;
        }
        all.into_iter().for_each(&mut hear);
        while !enough() && began.elapsed() < ROCM_EVERY {
            std::thread::park_timeout(Duration::from_millis(100));
        }
    }
}
