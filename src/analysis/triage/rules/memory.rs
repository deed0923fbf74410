//! Rules: memory is allocated in the steady state, or managed memory migrates.

use crate::analysis::triage::copy_class::CopyClass;
use crate::analysis::triage::finding::{Finding, Place, PlaceKind};
use crate::analysis::triage::places;
use crate::analysis::triage::run_context::RunContext;
use crate::analysis::triage::time_category::Cause;
use crate::analysis::triage::verdict::Verdict;
use crate::model::units::format_share;
use crate::model::{Bytes, CallKind, units};

/// The GPU is idle while memory is allocated or freed.
pub fn memory_allocation(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    // Exclude outlier gaps: one slow call belongs to the start or is a single delay.
    let idle = case.recurring_idle(Cause::Alloc);
    let share = case.share(idle);
    let ((allocs, alloc_ns), (frees, free_ns)) = (case.calls_of(CallKind::Alloc), case.calls_of(CallKind::Free));
    // One or two calls are part of setup.
    if allocs + frees < 3 {
        return None;
    }
    let behind = case.calls_behind(Cause::Alloc);
    let all: i64 = behind.iter().map(|b| b.1.ns).sum();
    let most = behind.first().filter(|b| b.1.ns * 2 > all).map_or_else(String::new, |b| format!(", mostly {}", b.0));
    let step = case.per_step(allocs + frees).map_or_else(String::new, |n| format!(", {n:.0} a step"));
    Some(
        Finding::new(
            Verdict::Allocation,
            share,
            format!(
                "memory is allocated and freed during the run{most} ({}{step}): the GPU is idle for {} of {base} while that happens",
                units::format_count(allocs + frees, "call"),
                format_share(share)
            ),
        )
        .with_gain_basis("the idle time in which memory was allocated or freed; an allocator that keeps memory takes none of it")
        .with_number("idle while allocating or freeing", idle as f64, "ns")
        .with_number("allocations", allocs as f64, "")
        .with_number("frees", frees as f64, "")
        .with_number("the host's time in them", (alloc_ns + free_ns) as f64, "ns")
        .with_number("the host's time for each", (alloc_ns + free_ns) as f64 / (allocs + frees) as f64, "ns")
        .with_places(behind.iter().take(3).map(|(name, after)| Place {
            kind: PlaceKind::Call,
            name: (*name).to_owned(),
            start: case.window.0,
            end: case.window.1,
            ns: Some(after.ns),
            rank: None,
        }))
        .with_places(places::locate_places(case, &[Cause::Alloc]))
        .with_actions(&[
            "Do not empty the cache in the loop (torch.cuda.empty_cache()), and do not disable it (PYTORCH_NO_CUDA_MEMORY_CACHING).",
            &format!("Allocate once and reuse, or from a pool: {}; pinned memory, too.", case.terms.pools),
            &format!(
                "If the framework allocates because memory is fragmented: {}=expandable_segments:True, or fixed shapes.",
                case.terms.allocator
            ),
        ]),
    )
}

/// Managed memory moves between host and device.
pub fn unified_memory(case: &RunContext<'_>) -> Option<Finding> {
    let base = case.base;
    let sum = case.copies.get(CopyClass::Unified);
    if sum.count == 0 {
        return None;
    }
    // Kernels stall on page faults while pages migrate, so the gain is bounded by the migrations' own time, overlapped
    // or not.
    let idle = case.idle.get(Cause::Paging);
    let share = case.share(sum.ns.saturating_add(idle)).min(1.0);
    Some(
        Finding::new(
            Verdict::UnifiedMemory,
            share,
            format!(
                "managed memory migrates: {} in {}; moving the pages, and waiting for that, takes {} of {base}",
                Bytes(sum.bytes),
                units::format_count(sum.count, "transfer"),
                format_share(share)
            ),
        )
        .with_gain_basis("the time in which pages were moved, while kernels stall on them, and the idle time that ends with a migration")
        .with_number("migrations", sum.count as f64, "")
        .with_number("bytes migrated", sum.bytes as f64, "byte")
        .with_number("time in migrations", sum.ns as f64, "ns")
        .with_number("idle before migrations", (idle > 0).then_some(idle as f64), "ns")
        .with_number("bandwidth of the migrations", sum.bytes_per_second(), "byte/s")
        .with_number("migrations in a step", case.per_step(sum.count), "")
        .with_actions(&[
            &format!("Move pages before they are touched: {}MemPrefetchAsync to the device that uses them next.", case.terms.prefix),
            &format!(
                "Say how they are used: {}MemAdvise (read-mostly, preferred location, accessed-by), so that they stay.",
                case.terms.prefix
            ),
            "Use device memory with explicit copies where the pattern is known.",
        ]),
    )
}
