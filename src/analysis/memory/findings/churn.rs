//! Memory that is repeatedly requested from the driver.

use super::Case;
use crate::analysis::memory::finding::{MemoryFinding, MemoryVerdict};
use crate::model::{Bytes, MemoryLevel, units};

/// Minimum number of frees, and of allocations that follow them; a program may free and allocate a few times during
/// setup and shutdown.
const OFTEN: usize = 8;
/// Minimum total size of the repeated requests, as a share of the maximum held.
const AGAIN: f64 = 0.1;

const CUDA_POOL: &str = "Allocate once and reuse, or allocate from a pool (cudaMallocAsync, RMM): cudaFree waits for the GPU.";
const HIP_POOL: &str = "Allocate once and reuse, or allocate from a pool (hipMallocAsync): hipFree waits for the GPU.";

/// Detects memory that is returned to the driver and requested again.
pub fn find_churn(case: &Case<'_>) -> Option<MemoryFinding> {
    let ledger = &case.of.ledger;
    let asked = &ledger.asked;
    // Before it refuses a request, the allocator returns all free segments, which is not churn.
    let mut refusals: Vec<i64> = super::refused::refused_requests(case).map(|r| r.time).collect();
    refusals.sort_unstable();
    let mut until = i64::MAX;
    let mut free = vec![false; asked.len()];
    for (at, a) in asked.iter().enumerate().rev() {
        if a.bytes >= 0 {
            until = a.time;
        } else {
            let next = refusals.partition_point(|&r| r < a.time);
            free[at] = refusals.get(next).is_none_or(|&r| r > until);
        }
    }
    let first = free.iter().position(|f| *f)?;
    let frees = free.iter().filter(|f| **f).count();
    let again: Vec<u64> = asked[first..].iter().filter_map(|a| u64::try_from(a.bytes).ok()).filter(|&b| b > 0).collect();
    let bytes: u64 = again.iter().sum();
    let most = case.of.reserved_peak.unwrap_or(case.of.peak.1);
    let share = bytes as f64 / most.max(1) as f64;
    if frees < OFTEN || again.len() < OFTEN || share < AGAIN {
        return None;
    }
    let seconds = (asked[asked.len() - 1].time - asked[0].time) as f64 / 1e9;
    let steps = case.of.steps.list.len();
    let step = if steps > 0 { format!(", {} a step", (frees + again.len()).div_ceil(steps)) } else { String::new() };
    let framework = ledger.level == MemoryLevel::Allocator;
    let (who, actions): (&str, &[&str]) = if framework {
        (
            "the allocator gives memory back to the driver and asks for it again",
            &[
                "Do not call torch.cuda.empty_cache() in the loop.",
                "If memory is nearly full, every such round waits for the GPU: hold less at the peak, or let segments grow (expandable_segments:True).",
            ],
        )
    } else {
        ("the program frees memory and allocates it again", if case.profile.is_amd() { &[HIP_POOL] } else { &[CUDA_POOL] })
    };
    let rate = (seconds > 0.0 && ledger.timed).then(|| asked.len() as f64 / seconds);
    let finding = MemoryFinding::new(
        MemoryVerdict::Churn,
        // Converts to a share of the total: requesting all memory a second time costs as much as wasting half of it.
        share / (share + 1.0),
        format!(
            "{who}: {} after {}{step}, {} in all",
            units::format_count(again.len() as u64, "allocation"),
            units::format_count(frees as u64, "free"),
            Bytes(bytes)
        ),
    )
    .with_judged_number("frees", frees as f64, "", ("≥", OFTEN as f64))
    .with_judged_number("allocations after the first free", again.len() as f64, "", ("≥", OFTEN as f64))
    .with_judged_number("bytes asked for again, of the most held", share * 100.0, "%", ("≥", AGAIN * 100.0))
    .with_sites(Vec::new(), Some(asked[first].time))
    .with_actions(actions);
    Some(match rate {
        Some(rate) => finding.with_number("allocations and frees in a second", rate, "1/s"),
        None => finding,
    })
}
