//! Thresholds of the rules, each with its source. They are also printed beside the values.

use super::hint::Threshold;

const fn at_least(value: f64, source: &'static str) -> Threshold {
    Threshold { op: "≥", value, source }
}

const fn below(value: f64, source: &'static str) -> Threshold {
    Threshold { op: "<", value, source }
}

/// A unit at its limit, in percent of its peak. NVIDIA's rules SpeedOfLight.py and HighPipeUtilization.py.
pub const AT_LIMIT: Threshold = at_least(80.0, "NVIDIA's SpeedOfLight rule");

/// Limit of device memory for kernels with a quarter to three quarters of writes: switching between reads and writes
/// costs time. Copies, transposes and row softmaxes on an H200 end at 75 to 82 %, kernels that mostly read at 88 to 91
/// %.
pub const MIXED: Threshold = at_least(75.0, "mixed reads and writes top out at 75 to 82%");

/// Share of device memory's peak that the best streams reach: 89 to 92 % in reports of H200, RTX 4090 and T4.
pub const ATTAINABLE: f64 = 0.92;

/// Same share for traffic with a quarter to three quarters of writes: copies on an H200 reach at most 82 and 83 %.
pub const MIXED_ATTAINABLE: f64 = 0.83;

/// Percent of a unit's peak from which it may be the limit: NVIDIA's `SpeedOfLight.py` reports latency below.
pub const MAY_LIMIT: Threshold = at_least(60.0, "NVIDIA's SpeedOfLight rule");

/// A kernel with all units below this is bound by latency.
pub const LATENCY: Threshold = below(60.0, "NVIDIA's SpeedOfLight rule");

/// Share of warp cycles from which one stall reason matters. NVIDIA's `CPIStall.py`.
pub const STALL: Threshold = at_least(30.0, "NVIDIA's CPIStall rule");

/// Used issue slots per scheduler and cycle, in percent, below which the schedulers count as idle. NVIDIA's
/// `IssueSlotUtilization.py`: 0.6.
pub const ISSUE: Threshold = below(60.0, "NVIDIA's IssueSlotUtilization rule");

/// Share of wavefronts that are conflicts. NVIDIA's SharedMemoryConflicts.py.
pub const CONFLICTS: Threshold = at_least(10.0, "NVIDIA's SharedMemoryConflicts rule");

/// Share of sectors that no access needs. NVIDIA's `UncoalescedAccess.py` warns at any share; the 10 % of the
/// corresponding rule for shared memory exclude the one extra sector of a misaligned but dense access (1 of 9 for
/// 32-bit words).
pub const EXCESS: Threshold = at_least(12.0, "above one sector in nine, which mere misalignment explains");

/// Active threads of a warp's 32 in an instruction. NVIDIA's `ThreadDivergence.py`.
pub const THREADS: Threshold = below(24.0, "NVIDIA's ThreadDivergence rule");

/// Theoretical occupancy. NVIDIA's TheoreticalOccupancy.py.
pub const OCCUPANCY: Threshold = below(80.0, "NVIDIA's TheoreticalOccupancy rule");

/// Percentage points between theoretical and achieved occupancy. NVIDIA's `AchievedOccupancy.py`.
pub const OCCUPANCY_GAP: Threshold = Threshold { op: ">", value: 10.0, source: "NVIDIA's AchievedOccupancy rule" };

/// Number of waves up to which the GPU could hold far more blocks. `SpeedOfLight.py` calls fewer than 1 a small grid;
/// half of that is "well below".
pub const WAVES: Threshold = Threshold { op: "≤", value: 0.5, source: "half of what NVIDIA's SpeedOfLight rule calls a small grid" };

/// Maximum number of full waves after which a partial one matters: 1/(whole + 1) ≥ 0.2. NVIDIA's `LaunchStatistics.py`.
pub const TAIL_WAVES: f64 = 4.0;

/// Duration from which percentages are steady, in ns: 20 µs. Nsight Compute's Profiling Guide.
pub const STEADY_NS: f64 = 20_000.0;

/// Duration below which the cost of a launch matters, in ns. A launch takes 3 to 8 µs on the host and, for an empty
/// kernel, about 2 µs on the device, which is a tenth of 20 µs.
pub const SHORT: Threshold = below(STEADY_NS, "a launch costs the host 3 to 8 µs, the device 2");

/// Cost of a launch on the device for an empty kernel, in ns, about the same on other chips: one block took 2.05 µs on
/// an H200 under ncu with locked clocks (`fixtures/causes`, `nothing_much`).
pub const EMPTY_KERNEL_NS: f64 = 2_000.0;

/// Same cost without a profiler that locks the clocks, in ns: the shortest kernels in a timeline of an
/// H200 took 0.96 µs.
pub const EMPTY_IN_TIMELINE_NS: f64 = 1_000.0;

/// Share of local accesses among all L1 accesses from which they matter: 10 %, as for bank conflicts.
pub const LOCAL: Threshold = at_least(10.0, "a tenth of the accesses, as for bank conflicts");

/// Share of atomics among the accesses to memory from which they can be the cause. A sum with one atomic per warp has a
/// far lower share.
pub const ATOMICS: Threshold = at_least(10.0, "a tenth of the accesses, as for bank conflicts");

/// Ratio of the busiest L2 slice to the mean from which most accesses go to few addresses: random addresses spread over
/// the slices within a few percent, one address alone gives the number of slices (48 to 160).
pub const HOT_SLICE: Threshold = at_least(4.0, "random addresses spread evenly over slices");

/// Margin by which L2 must be busier than device memory to be the limit itself. Up to 5 points count as the same level,
/// and L2's figure counts both directions, which adds up to ten more in plain copies (H200, A100).
pub const L2_ABOVE_DRAM: f64 = 0.15;
