//! What a change gives, and what it lets go.

use super::demand::Unit;

/// Share of a kernel's time that a change saves.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Gain {
    /// No more than this, 0 to 1.
    pub at_most: f64,
    /// The two ends of what is to be expected, where counters give an estimate; `None` where how much goes is a matter of the change.
    pub expected: Option<(f64, f64)>,
    /// What is left after the change, in words.
    pub left: String,
}

impl Gain {
    /// The middle of what is to be expected: the geometric mean of both times after the change; the bound's half where nothing was estimated.
    #[must_use]
    pub fn middle(&self) -> f64 {
        self.expected.map_or(self.at_most / 2.0, |(least, most)| 1.0 - ((1.0 - least) * (1.0 - most)).sqrt())
    }

    /// As people read it: `40–59%`, or `at most 90%`.
    #[must_use]
    pub fn words(&self) -> String {
        match self.expected {
            Some((least, most)) if percent(most) - percent(least) < 1.0 => format!("about {:.0}%", percent(most)),
            Some((least, most)) => format!("{:.0}–{:.0}%", percent(least), percent(most)),
            None => format!("at most {:.0}%", percent(self.at_most)),
        }
    }
}

/// A share in whole percent; never all of the time, since something is left of every kernel.
#[must_use]
pub fn percent(share: f64) -> f64 {
    (share * 100.0).round().min(99.0)
}

/// What a rule's change does to the demand of the units and to the time.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Relief {
    /// Part of a unit's work that is left, 0 to 1; all of it for units that are not here.
    left: Vec<(Unit, f64)>,
    /// Time after the change over the time before it, at best and at worst.
    pub time: Option<(f64, f64)>,
    /// The kernel may become part of another: then it need not start and end.
    pub fused: bool,
}

impl Relief {
    /// A change of which only a bound is known.
    #[must_use]
    pub fn bound() -> Self {
        Self::default()
    }

    /// A part of a unit's work is left.
    #[must_use]
    pub fn left(mut self, unit: Unit, part: f64) -> Self {
        self.left.push((unit, part.clamp(0.0, 1.0)));
        self
    }

    /// Nothing of some units' work need be left.
    #[must_use]
    pub fn without(self, units: &[Unit]) -> Self {
        units.iter().fold(self, |relief, unit| relief.left(*unit, 0.0))
    }

    /// The time after the change over the time before it, from the best to so many times that.
    #[must_use]
    pub fn time(self, best: f64, spread: f64) -> Self {
        self.between(best, best * spread)
    }

    /// The time after the change over the time before it, at best and at worst.
    #[must_use]
    pub fn between(mut self, best: f64, worst: f64) -> Self {
        self.time = Some((best, worst));
        self
    }

    /// The kernel may become part of another.
    #[must_use]
    pub fn fused(mut self) -> Self {
        self.fused = true;
        self
    }

    /// Part of a unit's work that is left.
    #[must_use]
    pub fn part(&self, unit: Unit) -> f64 {
        self.left.iter().filter(|l| l.0 == unit).map(|l| l.1).fold(1.0, f64::min)
    }
}
