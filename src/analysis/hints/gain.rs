//! Predicted gain of a change, and the demand that it removes.

use super::demand::Unit;

/// Share of a kernel's time that a change saves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gain {
    /// Upper bound, 0 to 1.
    pub at_most: f64,
    /// Expected minimum and maximum, if counters give an estimate; `None` if the amount depends on the change.
    pub expected: Option<(f64, f64)>,
    /// Limit that remains after the change, in words.
    pub left: String,
}

impl Gain {
    /// Middle of the expected gain, by the geometric mean of both times after the change; half of the bound
    /// without an estimate.
    #[must_use]
    pub fn middle(&self) -> f64 {
        self.expected.map_or(self.at_most / 2.0, |(least, most)| 1.0 - ((1.0 - least) * (1.0 - most)).sqrt())
    }

    /// Formats the gain: `40–59%`, or `at most 90%`.
    #[must_use]
    pub fn words(&self) -> String {
        match self.expected {
            Some((least, most)) if percent(most) - percent(least) < 1.0 => format!("about {:.0}%", percent(most)),
            Some((least, most)) => format!("{:.0}–{:.0}%", percent(least), percent(most)),
            None => format!("at most {:.0}%", percent(self.at_most)),
        }
    }
}

/// A share in whole percent; at most 99, because some time of every kernel remains.
#[must_use]
pub fn percent(share: f64) -> f64 {
    (share * 100.0).round().min(99.0)
}

/// Effect of a rule's change on the demand of units and on the time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Relief {
    /// Remaining part of a unit's work, 0 to 1; units that are not listed keep all of it.
    left: Vec<(Unit, f64)>,
    /// Time after the change relative to the time before it, at best and at worst.
    pub time: Option<(f64, f64)>,
    /// The kernel can be fused with another, which removes its start and end.
    pub fused: bool,
}

impl Relief {
    /// A change for which only a bound is known.
    #[must_use]
    pub fn bound() -> Self {
        Self::default()
    }

    /// Sets the remaining part of a unit's work.
    #[must_use]
    pub fn left(mut self, unit: Unit, part: f64) -> Self {
        self.left.push((unit, part.clamp(0.0, 1.0)));
        self
    }

    /// Removes all work of some units.
    #[must_use]
    pub fn without(self, units: &[Unit]) -> Self {
        units.iter().fold(self, |relief, unit| relief.left(*unit, 0.0))
    }

    /// Sets the time after the change relative to the time before it, from `best` to `spread` times that.
    #[must_use]
    pub fn time(self, best: f64, spread: f64) -> Self {
        self.between(best, best * spread)
    }

    /// Sets the time after the change relative to the time before it, at best and at worst.
    #[must_use]
    pub fn between(mut self, best: f64, worst: f64) -> Self {
        self.time = Some((best, worst));
        self
    }

    /// Marks the kernel as one that can be fused with another.
    #[must_use]
    pub fn fused(mut self) -> Self {
        self.fused = true;
        self
    }

    /// Remaining part of a unit's work.
    #[must_use]
    pub fn part(&self, unit: Unit) -> f64 {
        self.left.iter().filter(|l| l.0 == unit).map(|l| l.1).fold(1.0, f64::min)
    }
}
