//! Predicted gain from a change, and the demand that it removes.

use super::unit_throughput::Unit;

/// Share of a kernel's time that a change saves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gain {
    /// Upper bound, 0 to 1.
    pub at_most: f64,
    /// Expected minimum and maximum, if counters allow an estimate; `None` if the amount depends on the change.
    pub expected: Option<(f64, f64)>,
    /// Description of the limit that remains after the change.
    pub left: String,
    /// The unit that takes the expected time after the change, in words; empty if there is no estimate, or if no unit
    /// explains it.
    pub estimate: String,
    /// True if nothing is known of the amount, not even a bound.
    pub unknown: bool,
}

impl Gain {
    /// Middle of the expected gain: the gain at the geometric mean of the two expected times. Without an estimate, half
    /// of the bound.
    pub fn expected_middle(&self) -> f64 {
        self.expected.map_or(self.at_most / 2.0, |(least, most)| 1.0 - ((1.0 - least) * (1.0 - most)).sqrt())
    }

    /// Returns true if the upper bound is the maximum that is shown: there is no estimate, or it ends there.
    pub fn ends_at_bound(&self) -> bool {
        self.expected.is_none_or(|(_, most)| whole_percent(self.at_most) - whole_percent(most) < 1.0)
    }

    /// Formats the gain: `40–59%`, or `at most 90%`.
    pub fn to_text(&self) -> String {
        match self.expected {
            _ if self.unknown => "an unknown part".to_owned(),
            Some((least, most)) if whole_percent(most) - whole_percent(least) < 1.0 => format!("about {:.0}%", whole_percent(most)),
            Some((least, most)) => format!("{:.0}–{:.0}%", whole_percent(least), whole_percent(most)),
            None => format!("at most {:.0}%", whole_percent(self.at_most)),
        }
    }
}

/// Converts a share to a whole percentage; at most 99, because some of every kernel's time remains.
pub fn whole_percent(share: f64) -> f64 {
    (share * 100.0).round().min(99.0)
}

/// Effect of a recommended change on the units' demand and on the time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct DemandReduction {
    /// Remaining fraction of a unit's work, 0 to 1; units that are not listed keep all of it.
    left: Vec<(Unit, f64)>,
    /// Time after the change relative to the time before, at best and at worst.
    pub time: Option<(f64, f64)>,
    /// Time that remains after the change at least, relative to the time before, with the reason.
    pub floor: Option<(f64, String)>,
    /// True if the kernel can be fused with another, which removes its start and end.
    pub fused: bool,
    /// True if nothing is known of the effect on the time.
    pub unknown: bool,
}

impl DemandReduction {
    /// Creates a change for which only a bound is known.
    pub fn bound_only() -> Self {
        Self::default()
    }

    /// Creates a change of whose effect nothing is known.
    pub fn unknown() -> Self {
        Self { unknown: true, ..Self::default() }
    }

    /// Sets the remaining fraction of a unit's work.
    pub fn with_left(mut self, unit: Unit, part: f64) -> Self {
        self.left.push((unit, part.clamp(0.0, 1.0)));
        self
    }

    /// Removes all work of some units.
    pub fn without_units(self, units: &[Unit]) -> Self {
        units.iter().fold(self, |relief, unit| relief.with_left(*unit, 0.0))
    }

    /// Sets the time after the change relative to the time before, from `best` to `spread` times that.
    pub fn with_time(self, best: f64, spread: f64) -> Self {
        self.with_time_range(best, best * spread)
    }

    /// Sets the time after the change relative to the time before, at best and at worst.
    pub fn with_time_range(mut self, best: f64, worst: f64) -> Self {
        self.time = Some((best, worst));
        self
    }

    /// Sets the time that remains at least, relative to the time before, and why.
    pub fn with_floor(mut self, time: f64, why: String) -> Self {
        self.floor = Some((time.clamp(0.0, 1.0), why));
        self
    }

    /// Marks the kernel as one that can be fused with another.
    pub fn with_fusion(mut self) -> Self {
        self.fused = true;
        self
    }

    /// Remaining fraction of a unit's work.
    pub fn remaining_part(&self, unit: Unit) -> f64 {
        self.left.iter().filter(|l| l.0 == unit).map(|l| l.1).fold(1.0, f64::min)
    }
}
