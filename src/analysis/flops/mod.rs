//! Floating-point operations of operators, ranges and kernels, and peak rates of tensor cores.

mod measured;
mod operators;

pub use measured::{Joined, of_results};
pub use operators::{OperatorWork, Operators, may_multiply, of_operator};

use super::tensor::PER_SM;
use crate::model::{Device, Profile};

/// Source of the number of floating-point operations.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Counted {
    /// Given by the user, per step.
    Given,
    /// Derived from the shapes of this many operators. `unknown` is the share (0 to 1) of all kernel time in kernels that
    /// may multiply matrices, too, but were launched by none of them.
    Operators { count: u64, unknown: f64 },
    /// From ncu results for kernels that account for this share (0 to 1) of all kernel time.
    Results(f64),
}

/// Floating-point work over a period.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Rate {
    /// Operations per second.
    pub per_second: f64,
    /// Dense FP16 or BF16 peak of the tensor cores, operations per second; `None` for an unknown GPU.
    pub peak: Option<f64>,
    pub counted: Counted,
}

impl Rate {
    /// Model FLOPs utilization (MFU): share of the peak. With ncu results, it is the hardware FLOPs utilization (HFU),
    /// which also counts recomputed work. `None` if too much of the work may be missing from it.
    pub fn utilization(&self) -> Option<f64> {
        if let Counted::Operators { unknown, .. } = self.counted
            && unknown > MOST_UNKNOWN
        {
            return None;
        }
        Some(self.per_second / self.peak.filter(|p| *p > 0.0)?)
    }
}

/// Maximum share of all kernel time in kernels whose operations are unknown, for a rate that is compared with the peak.
/// We choose a fifth: with more, the true rate may be a multiple of what was counted.
pub const MOST_UNKNOWN: f64 = 0.2;

/// GPUs with their number of SMs (or compute units) and their dense BF16 or FP16 tensor-core peak, TFLOP/s, from the
/// vendors' data sheets: all words must occur in the name, and the first match wins. An MI250X is two devices.
const DATA_SHEETS: &[(&[&str], u32, f64)] = &[
    (&["GB200"], 148, 2500.0),
    (&["B200"], 148, 2250.0),
    (&["H100", "PCIe"], 114, 756.0),
    (&["H100", "NVL"], 132, 835.5),
    (&["H200", "NVL"], 132, 835.5),
    (&["H100"], 132, 989.4),
    (&["H200"], 132, 989.4),
    (&["GH200"], 132, 989.4),
    (&["A100"], 108, 312.0),
    (&["A30"], 56, 165.0),
    (&["A10"], 72, 125.0),
    (&["L40S"], 142, 362.0),
    (&["L4"], 58, 121.0),
    (&["V100", "PCIE"], 80, 112.0),
    (&["V100"], 80, 125.0),
    (&["T4"], 40, 65.0),
    (&["MI355X"], 256, 2516.6),
    (&["MI325X"], 304, 1307.4),
    (&["MI300X"], 304, 1307.4),
    (&["MI250X"], 110, 191.5),
    (&["MI210"], 104, 181.0),
];

/// Dense FP16 or BF16 tensor-core peak of a GPU, operations per second: from its data sheet, scaled by the share of SMs
/// for a part of a GPU (MIG, a partition), or else from the number of SMs and the highest clock.
pub fn tensor_peak(device: &Device) -> Option<f64> {
    let words: Vec<&str> = device.name.as_deref().unwrap_or_default().split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let sheet = DATA_SHEETS.iter().find(|(all, ..)| all.iter().all(|w| words.iter().any(|word| word.eq_ignore_ascii_case(w))));
    if let Some((_, full, peak)) = sheet {
        let share = device.sm_count.map_or(1.0, |n| (f64::from(n) / f64::from(*full)).min(1.0));
        return Some(peak * 1e12 * share);
    }
    let (_, per_sm) = PER_SM.iter().find(|p| Some(p.0) == device.compute_capability)?;
    Some(per_sm * f64::from(device.sm_count?) * device.clock_hz? as f64)
}

/// Total peak of all devices in a report; `None` if any is unknown.
pub fn peak_of_all(profile: &Profile) -> Option<f64> {
    let peaks: Option<Vec<f64>> = profile.devices.iter().map(tensor_peak).collect();
    peaks.filter(|p| !p.is_empty()).map(|p| p.iter().sum())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_peak_is_that_of_the_data_sheet() {
        let peak = |name: &str, sms: u32| {
            let device = Device { name: Some(name.into()), sm_count: Some(sms), ..Device::default() };
            tensor_peak(&device).map(|p| p / 1e12)
        };
        assert_eq!(peak("NVIDIA H200", 132), Some(989.4));
        assert_eq!(peak("NVIDIA H100 80GB HBM3", 132), Some(989.4));
        assert_eq!((peak("NVIDIA H100 PCIe", 114), peak("NVIDIA A100-PG509-200", 108)), (Some(756.0), Some(312.0)));
        assert_eq!((peak("Tesla V100-SXM2-32GB", 80), peak("AMD Instinct MI300X", 304)), (Some(125.0), Some(1307.4)));
        // A seventh of the GPU has a seventh of its SMs or slightly fewer.
        assert!((peak("NVIDIA H100 80GB HBM3 MIG 1g.10gb", 16).unwrap() - 119.9).abs() < 0.1);
        // These GPUs are not on the list, although their names resemble some that are.
        assert_eq!((peak("NVIDIA A10G", 80), peak("NVIDIA H20", 78)), (None, None));
        let unnamed = Device { compute_capability: Some((9, 0)), sm_count: Some(132), clock_hz: Some(1_830_000_000), ..Device::default() };
        assert!((tensor_peak(&unnamed).unwrap() / 1e12 - 989.4).abs() < 0.1);
        assert_eq!(tensor_peak(&Device { clock_hz: None, ..unnamed }), None);
    }
}
