//! Where a result lies on a roofline: its work and its traffic.

use crate::model::Maker;

/// Rates that a chip can have, per second: beyond them a figure is damaged. Two figures within it give a ratio that can be written.
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

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Dram => "DRAM",
            Self::L2 => "L2",
            Self::L1 => "L1",
        }
    }
}

/// What the work is done in: each has a roof of its own.
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

    /// The word for it.
    #[must_use]
    pub fn word(self) -> &'static str {
        match self {
            Self::Double => "FP64",
            Self::Single => "FP32",
            Self::Half => "FP16",
            Self::Tensor => "tensor",
        }
    }
}

/// What is known of an amount of work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Amount {
    Counted,
    /// An upper bound.
    AtMost,
}

impl Amount {
    /// A name of work, marked where it is an upper bound.
    #[must_use]
    pub fn marked(self, name: &str) -> String {
        if self == Self::AtMost { format!("{name} (≤)") } else { name.to_owned() }
    }
}

/// Work of one kind.
#[derive(Clone, Debug, PartialEq)]
pub struct Work {
    /// `FP32`, `BF16 tensor`.
    pub name: String,
    pub precision: Precision,
    /// Operations per second; `None` when they were not counted.
    pub achieved: Option<f64>,
    /// Where the instructions of its pipe were counted, and not its operations, it is an upper bound.
    pub amount: Amount,
    /// The most that the chip can do at the clock it had.
    pub peak: Option<f64>,
    /// How both were reckoned.
    pub formula: String,
}

/// Traffic at one level.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Traffic {
    pub level: Level,
    /// How both were reckoned.
    pub formula: &'static str,
    /// Bytes per second; `None` when they were not counted.
    pub achieved: Option<f64>,
    /// The most at the clock it had.
    pub peak: Option<f64>,
}

/// Work and traffic of one result.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Placed {
    /// Kinds of work that the report knows.
    pub work: Vec<Work>,
    /// Levels that the report knows.
    pub traffic: Vec<Traffic>,
    /// The SM clock during the kernel, Hz.
    pub clock: Option<f64>,
    /// What to collect for what is missing.
    pub missing: Vec<String>,
    /// What to know about these figures.
    pub remarks: Vec<String>,
    pub maker: Maker,
}

impl Placed {
    /// What the GPU's maker calls a level.
    #[must_use]
    pub fn word(&self, level: Level) -> &'static str {
        if self.maker == Maker::Amd && level == Level::Dram { "HBM" } else { level.word() }
    }

    /// What the GPU's maker calls the units of a kind of work.
    #[must_use]
    pub fn units(&self, precision: Precision) -> &'static str {
        if self.maker == Maker::Amd && precision == Precision::Tensor { "MFMA" } else { precision.word() }
    }
}
