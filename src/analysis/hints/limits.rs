//! Thresholds for the rules, each with its source. They are also printed next to the values.

use super::hint::Threshold;

const fn at_least(value: f64, source: &'static str) -> Threshold {
    Threshold { op: "≥", value, source }
}

const fn below(value: f64, source: &'static str) -> Threshold {
    Threshold { op: "<", value, source }
}

/// Percentage of its peak at which a unit is at its limit. NVIDIA's rules SpeedOfLight.py and HighPipeUtilization.py.
pub const AT_LIMIT: Threshold = at_least(80.0, "NVIDIA's SpeedOfLight rule");

/// Percentage of its peak at which device memory is at its limit if a quarter to three quarters of the traffic is
/// writes: switching between reads and writes costs time. On an H200, copies, transposes and row softmaxes reach 75 to
/// 82 %, kernels that mostly read 88 to 91 %.
pub const MIXED: Threshold = at_least(75.0, "mixed reads and writes top out at 75 to 82%");

/// Share of device memory's peak that the best streams achieve: 89 to 92 % in reports from H200, RTX 4090 and T4.
pub const ATTAINABLE: f64 = 0.92;

/// Attainable share of device memory's peak if a quarter to three quarters of the traffic is writes: copies on an H200
/// reach at most 82 to 83 %.
pub const MIXED_ATTAINABLE: f64 = 0.83;

/// Percentage of its peak at which a unit may be the limit: below it, NVIDIA's `SpeedOfLight.py` reports latency.
pub const MAY_LIMIT: Threshold = at_least(60.0, "NVIDIA's SpeedOfLight rule");

/// If no unit reaches this percentage of its peak, the kernel is latency-bound.
pub const LATENCY: Threshold = below(60.0, "NVIDIA's SpeedOfLight rule");

/// Share of the warps' cycles, in percent, from which a stall reason matters. NVIDIA's `CPIStall.py`.
pub const STALL: Threshold = at_least(30.0, "NVIDIA's CPIStall rule");

/// Issue slots used per scheduler and cycle, in percent, below which schedulers count as idle. NVIDIA's
/// `IssueSlotUtilization.py`: 0.6.
pub const ISSUE: Threshold = below(60.0, "NVIDIA's IssueSlotUtilization rule");

/// Share of wavefronts that are due to conflicts. NVIDIA's SharedMemoryConflicts.py.
pub const CONFLICTS: Threshold = at_least(10.0, "NVIDIA's SharedMemoryConflicts rule");

/// Share of the sectors, in percent, that no access needs. NVIDIA's `UncoalescedAccess.py` warns at any share; its rule
/// for shared memory starts at 10 %. Our bound lies just above the one extra sector of a misaligned but dense access with
/// 64-bit words, 1 of 9 (11 %); that of 32-bit words, 1 of 5, is told by the sectors per request.
pub const EXCESS: Threshold = at_least(12.0, "above one sector in nine, which misaligned 64-bit words need");

/// Active threads per instruction, of 32 in a warp. NVIDIA's `ThreadDivergence.py`.
pub const THREADS: Threshold = below(24.0, "NVIDIA's ThreadDivergence rule");

/// Theoretical occupancy. NVIDIA's TheoreticalOccupancy.py.
pub const OCCUPANCY: Threshold = below(80.0, "NVIDIA's TheoreticalOccupancy rule");

/// Percentage points between theoretical and achieved occupancy. NVIDIA's `AchievedOccupancy.py`.
pub const OCCUPANCY_GAP: Threshold = Threshold { op: ">", value: 10.0, source: "NVIDIA's AchievedOccupancy rule" };

/// Maximum number of waves for a grid to count as far too small for the GPU. `SpeedOfLight.py` calls fewer than 1 a
/// small grid; half of that is "well below".
pub const WAVES: Threshold = Threshold { op: "≤", value: 0.5, source: "half of what NVIDIA's SpeedOfLight rule calls a small grid" };

/// Maximum number of full waves for which a partial last wave matters: its share of the time, 1/(whole + 1), is then at
/// least 0.2. NVIDIA's `LaunchStatistics.py`.
pub const TAIL_WAVES: f64 = 4.0;

/// Minimum duration for percentages to be reliable, in ns: 20 µs. Nsight Compute's Profiling Guide.
pub const STEADY_NS: f64 = 20_000.0;

/// Duration below which the cost of a launch matters, in ns. A launch takes 3 to 8 µs on the host and, for an empty
/// kernel, about 2 µs on the device, which is a tenth of 20 µs.
pub const SHORT: Threshold = below(STEADY_NS, "a launch costs the host 3 to 8 µs, the device 2");

/// Cost of launching an empty kernel on the device, in ns: one block took 2.05 µs on an H200 under ncu with locked
/// clocks (`fixtures/causes`, `nothing_much`). It is about the same on other chips.
pub const EMPTY_KERNEL_NS: f64 = 2_000.0;

/// Cost of launching an empty kernel on the device, in ns, if no profiler locks the clocks: the shortest kernels in a
/// timeline from an H200 took 0.96 µs.
pub const EMPTY_IN_TIMELINE_NS: f64 = 1_000.0;

/// Share of local accesses among all L1 accesses at which they matter: 10 %, as for bank conflicts.
pub const LOCAL: Threshold = at_least(10.0, "a tenth of the accesses, as for bank conflicts");

/// Share of atomics among memory accesses at which they can be the cause. A reduction with one atomic per warp has a
/// far lower share.
pub const ATOMICS: Threshold = at_least(10.0, "a tenth of the accesses, as for bank conflicts");

/// Ratio of the busiest L2 slice to the mean at which most accesses go to few addresses: random addresses spread evenly
/// over the slices within a few percent, whereas a single address yields the number of slices (48 to 160).
pub const HOT_SLICE: Threshold = at_least(4.0, "random addresses spread evenly over slices");

/// Margin by which L2 must be busier than device memory to be the limit itself. Up to 5 points count as the same level,
/// and L2's figure counts both directions, which adds up to ten more for plain copies (H200, A100).
pub const L2_ABOVE_DRAM: f64 = 0.15;
