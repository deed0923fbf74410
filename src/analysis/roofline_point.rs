//! Roofline placement of a result: its work and its traffic.

use crate::model::Vendor;

/// Plausible rates for a chip, per second; anything else is corrupt. The limits also keep the ratio of any two rates
/// printable.
pub(super) const REAL: std::ops::Range<f64> = 1e-3..1e24;

/// A level of the memory system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Level {
    Dram,
    /// L2 cache.
    L2,
    /// L1 cache: data returned to registers.
    L1,
}

impl Level {
    pub const ALL: [Self; 3] = [Self::Dram, Self::L2, Self::L1];

    pub fn display_name(self) -> &'static str {
        match self {
            Self::Dram => "DRAM",
            Self::L2 => "L2",
            Self::L1 => "L1",
        }
    }
}

/// Unit and type of the work: each combination has its own roof.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Precision {
    /// FP64 on the CUDA cores.
    Double,
    /// FP32 on the CUDA cores.
    Single,
    /// FP16 on the CUDA cores.
    Half,
    /// Tensor cores, in any type.
    Tensor,
}

impl Precision {
    pub const ALL: [Self; 4] = [Self::Double, Self::Single, Self::Half, Self::Tensor];

    pub fn display_name(self) -> &'static str {
        match self {
            Self::Double => "FP64",
            Self::Single => "FP32",
            Self::Half => "FP16",
            Self::Tensor => "tensor",
        }
    }
}

/// Tells if an amount of work is exact or an upper bound.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Counted,
    /// An upper bound.
    AtMost,
}

impl Amount {
    /// Returns the name of the work, marked if it is an upper bound.
    pub fn mark_name(self, name: &str) -> String {
        if self == Self::AtMost { format!("{name} (≤)") } else { name.to_owned() }
    }
}

/// Work of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// Name, such as `FP32` or `BF16 tensor`.
    pub name: String,
    pub precision: Precision,
    /// Operations per second; `None` if they were not counted.
    pub achieved: Option<f64>,
    /// `AtMost` if only the instructions of the pipe were counted, not the operations.
    pub amount: Amount,
    /// Peak of the chip at the measured clock, operations per second.
    pub peak: Option<f64>,
    /// Formulas for `achieved` and `peak`.
    pub formula: String,
}

/// Traffic at one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traffic {
    pub level: Level,
    /// Formulas for `achieved` and `peak`.
    pub formula: &'static str,
    /// Bytes per second; `None` if they were not counted.
    pub achieved: Option<f64>,
    /// Peak at the measured clock, bytes per second.
    pub peak: Option<f64>,
}

/// Work and traffic of one result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placed {
    /// Kinds of work in the report.
    pub work: Vec<Work>,
    /// Memory levels in the report.
    pub traffic: Vec<Traffic>,
    /// The SM clock during the kernel, Hz.
    pub clock: Option<f64>,
    /// Instructions for collecting missing data.
    pub missing: Vec<String>,
    /// Notes on these figures.
    pub remarks: Vec<String>,
    pub maker: Vendor,
}

impl Placed {
    /// Name of a memory level in the GPU vendor's terms.
    pub fn level_name(&self, level: Level) -> &'static str {
        if self.maker == Vendor::Amd && level == Level::Dram { "HBM" } else { level.display_name() }
    }

    /// Name of the units that do a kind of work, in the GPU vendor's terms.
    pub fn precision_name(&self, precision: Precision) -> &'static str {
        if self.maker == Vendor::Amd && precision == Precision::Tensor { "MFMA" } else { precision.display_name() }
    }
}
