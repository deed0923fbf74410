//! Aligns unnumbered collectives of two ranks whose captures begin at different steps. Uses step numbers, the machines'
//! clocks, and the ends of collectives, which are simultaneous on all ranks.

use crate::model::digest::Collective;
use std::collections::HashMap;

/// Maximum shift to try.
const MOST: i64 = 2000;
/// Maximum number of collectives to use when evaluating a shift.
const LOOKED_AT: usize = 200;
/// Minimum share of positions at which both ranks have the same kind of collective for a shift to be possible.
const ALIKE: f64 = 0.98;
/// Share of the collectives in commonly numbered steps that must agree on a shift.
const SAME_SHIFT: f64 = 0.9;
/// Minimum number of overlapping collectives for ranks to be aligned by the ends alone.
const FOR_ENDS: usize = 8;
/// Factor by which the ends must fit better at a shift with partial overlap than at full overlap for the former to be
/// preferred.
const BETTER: i64 = 10;

/// Converts an index to `i64`, saturating.
pub fn to_signed(place: usize) -> i64 {
    i64::try_from(place).unwrap_or(i64::MAX)
}

/// A rank's collectives in one group, in host call order.
pub struct Side<'a> {
    pub list: &'a [Collective],
    /// Kind of each collective.
    pub words: Vec<&'static str>,
    /// Step number of each call, if the report contains it.
    pub steps: Vec<Option<u32>>,
}

/// The two ranks to align; `other` has at least as many collectives as `mine`.
pub struct Pair<'a> {
    pub mine: Side<'a>,
    pub other: Side<'a>,
    /// Wall-clock time of both clocks' zero points, ns; only as accurate as the machines' clocks agree.
    pub epochs: Option<(i64, i64)>,
    /// True if both ranks ran on the same machine.
    pub one_clock: bool,
}

/// Quality of a shift, in ns. `spread` is the variation of the differences between the two ranks' ends (median absolute
/// deviation); `apart` is the offset between the ranks that would remain by the machines' clocks.
#[derive(Clone, Copy)]
struct Fit {
    spread: i64,
    apart: i64,
}

impl Pair<'_> {
    /// Returns the number of positions by which this rank's collectives come later in the other rank's list; negative
    /// if the other rank's capture started later. `None` if no alignment fits.
    pub fn find_shift(&self) -> Option<i64> {
        let (n, most) = (self.mine.list.len(), self.other.list.len());
        let whole = self.best_shift(0, to_signed(most.saturating_sub(n)).min(MOST));
        let numbered = self.by_steps().filter(|&s| self.is_alike(s));
        if let Some(shift) = numbered
            && whole.is_none_or(|w| w.1 != shift)
        {
            let fit = self.fit_shift(shift)?;
            let clock = self.epochs.is_some() && fit.apart <= self.median_gap() / 2;
            let fits = whole.is_none_or(|w| fit.spread <= tolerated_spread(w.0.spread));
            // Numbers that restart in each capture are meaningless, so trust the step numbers only if the clocks or the
            // ends of the collectives confirm them.
            if clock || fits && !(self.one_clock && self.epochs.is_some()) {
                return Some(shift);
            }
        }
        if numbered.is_none() && whole.is_none_or(|w| w.0.spread > self.median_gap() / BETTER) {
            let least = to_signed(n.max(FOR_ENDS)) / 2;
            let overlapping = self.best_shift(-(to_signed(n) - least).min(MOST), (to_signed(most) - least).min(MOST));
            let enough = |s: i64| self.overlap(s).0.len() >= FOR_ENDS;
            if let Some((fit, shift)) = overlapping.filter(|o| enough(o.1))
                && whole.is_none_or(|w| fit.spread <= w.0.spread / BETTER)
            {
                return Some(shift);
            }
        }
        whole.map(|w| w.1)
    }

    /// Returns the shift on which collectives agree that have the same position in steps with the same number.
    fn by_steps(&self) -> Option<i64> {
        let places = |steps: &[Option<u32>]| {
            let mut next: HashMap<u32, u32> = HashMap::new();
            let mut out = Vec::with_capacity(steps.len());
            for (at, step) in steps.iter().enumerate() {
                if let Some(step) = *step {
                    let place = next.entry(step).or_default();
                    out.push(((step, *place), at));
                    *place += 1;
                }
            }
            out
        };
        let there: HashMap<(u32, u32), usize> = places(&self.other.steps).into_iter().collect();
        let mut counts: HashMap<i64, usize> = HashMap::new();
        let mut pairs = 0;
        for (place, at) in places(&self.mine.steps) {
            if let Some(&other) = there.get(&place) {
                *counts.entry(to_signed(other) - to_signed(at)).or_default() += 1;
                pairs += 1;
            }
        }
        let (shift, count) = counts.into_iter().max_by_key(|c| (c.1, -c.0.abs(), c.0))?;
        (count >= 2 && count as f64 >= SAME_SHIFT * f64::from(pairs)).then_some(shift)
    }

    /// Overlap of the two lists under a shift: a range in `mine`, and the start of the overlap in `other`.
    fn overlap(&self, shift: i64) -> (std::ops::Range<usize>, usize) {
        let from = usize::try_from(-shift).unwrap_or(0);
        let to = usize::try_from(shift).unwrap_or(0);
        let n = self.mine.list.len().saturating_sub(from).min(self.other.list.len().saturating_sub(to));
        (from..from + n, to)
    }

    fn is_alike(&self, shift: i64) -> bool {
        let (mine, to) = self.overlap(shift);
        let n = mine.len();
        // Stop early: most shifts fail after a few collectives.
        let mut other = ((1.0 - ALIKE) * n as f64) as usize;
        n > 0
            && mine.enumerate().all(|(i, at)| {
                let same = self.mine.words.get(at) == self.other.words.get(to + i);
                other = if same { other } else { other.wrapping_sub(1) };
                other != usize::MAX
            })
    }

    fn fit_shift(&self, shift: i64) -> Option<Fit> {
        let (mine, to) = self.overlap(shift);
        let step = mine.len().div_ceil(LOOKED_AT).max(1);
        let first = mine.start;
        let ends = mine.step_by(step).map(|at| self.mine.list[at].end().saturating_sub(self.other.list[to + at - first].end()));
        let mut differences: Vec<i64> = ends.collect();
        differences.sort_unstable();
        let middle = *differences.get(differences.len() / 2)?;
        let mut off: Vec<i64> = differences.iter().map(|d| d.saturating_sub(middle).saturating_abs()).collect();
        off.sort_unstable();
        let apart = self.epochs.map_or(0, |(a, b)| middle.saturating_add(a.saturating_sub(b)).saturating_abs());
        Some(Fit { spread: off[off.len() / 2], apart })
    }

    /// Returns the best shift in a range. Steps resemble each other, so several shifts may fit about equally well; the
    /// machines' clocks then decide.
    fn best_shift(&self, from: i64, to: i64) -> Option<(Fit, i64)> {
        let tried: Vec<(Fit, i64)> = (from..=to).filter(|&s| self.is_alike(s)).filter_map(|s| Some((self.fit_shift(s)?, s))).collect();
        let least = tried.iter().map(|t| t.0.spread).min()?;
        tried
            .into_iter()
            .filter(|t| t.0.spread <= tolerated_spread(least))
            .min_by_key(|(fit, shift)| (fit.apart, fit.spread, shift.abs(), *shift))
    }

    /// Median time from one collective to the next, ns.
    fn median_gap(&self) -> i64 {
        let mut all: Vec<i64> = self.other.list.windows(2).map(|w| w[1].end().saturating_sub(w[0].end())).filter(|g| *g > 0).collect();
        all.sort_unstable();
        all.get(all.len() / 2).copied().unwrap_or(0)
    }
}

/// Returns the largest spread that still counts as an equally good fit.
fn tolerated_spread(spread: i64) -> i64 {
    spread.saturating_mul(2).saturating_add(1000)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Collectives in a range of steps with regular or irregular lengths: `each` per step, on a clock that is `ahead`
    /// ns ahead.
    fn rank(steps: std::ops::Range<u32>, each: u32, regular: bool, ahead: i64, numbers: i64) -> (Vec<Collective>, Vec<Option<u32>>) {
        let length = |step: u32| if regular { 10_000_000 } else { 8_000_000 + i64::from(step.wrapping_mul(2_654_435_761) % 6_000_000) };
        let (mut out, mut named, mut t) = (Vec::new(), Vec::new(), 1_000_000_000_i64);
        for step in 0..steps.end {
            for i in 0..each {
                if steps.contains(&step) {
                    let start = t + length(step) * i64::from(i + 1) / i64::from(each + 1) + ahead;
                    out.push(Collective { kind: 0, sequence: to_signed(out.len()), start, duration: 500_000, bytes: 0 });
                    named.push(u32::try_from(i64::from(step) + numbers).ok().filter(|_| numbers >= 0));
                }
            }
            t += length(step);
        }
        (out, named)
    }

    #[test]
    fn captures_that_begin_at_different_steps() {
        for (what, mine, other, each, regular, ahead, numbers, one_clock, want) in [
            ("the same steps", 0..10, 0..10, 1, true, 0, (1, 1), false, 0),
            ("later, and as long", 2..12, 0..10, 1, true, 0, (1, 1), false, 2),
            ("earlier, and as long", 0..10, 4..14, 1, true, 0, (1, 1), false, -4),
            ("several in a step", 3..9, 0..8, 4, true, 0, (1, 1), false, 12),
            ("clocks that differ by seconds, numbers and ends", 0..10, 4..14, 2, false, 7_000_000_000, (1, 1), false, -8),
            ("clocks that differ by seconds, regular steps", 2..12, 0..10, 1, true, 7_000_000_000, (1, 1), false, 2),
            ("numbers that begin anew, one clock", 2..9, 0..10, 1, true, 0, (1, -1), true, 2),
            ("inside of the other, no numbers, one clock", 3..8, 0..10, 1, true, 0, (-1, -1), true, 3),
            ("irregular steps without numbers", 0..20, 4..24, 1, false, 3_000_000_000, (-1, -1), false, -4),
            ("inside of the other, no numbers", 3..13, 0..20, 1, false, 9_000_000_000, (-1, -1), false, 3),
        ] {
            let (a, b) = (rank(mine, each, regular, ahead, numbers.0), rank(other, each, regular, 0, numbers.1));
            let side = |of: &'static [Collective], steps: Vec<Option<u32>>| Side { list: of, words: vec!["all_reduce"; of.len()], steps };
            let leak = |v: Vec<Collective>| -> &'static [Collective] { v.leak() };
            let pair = Pair { mine: side(leak(a.0), a.1), other: side(leak(b.0), b.1), epochs: Some((0, 0)), one_clock };
            assert_eq!(pair.find_shift(), Some(want), "{what}");
        }
    }
}
