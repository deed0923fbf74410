//! Predicted effect of faster kernels on a run, for the functions with the most time: we replay the recorded run with
//! each function shortened.

use super::Family;
use super::readable::readable_name;
use super::what_if_replay::Run;
use super::worth::Worth;
use crate::model::{Cancel, Profile};
use std::collections::HashMap;

/// Maximum number of functions to evaluate: a table on a screen does not have more rows.
const MOST: usize = 30;
/// Simulated savings, as shares of a function's time; values in between are interpolated.
const STEPS: [f64; 4] = [0.25, 0.5, 0.75, 1.0];

/// Savings from speeding up one function.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Curve {
    /// Total duration, as a share of the run's length.
    pub share: f64,
    /// Part of `share` during which other operations ran on the device.
    overlapped: f64,
    /// Share of the run saved if a quarter, a half, three quarters or all of the function's time is saved.
    saved: [f64; 4],
    /// Lower and upper bound on the share of the run saved if all of the function's time is saved.
    pub bounds: (f64, f64),
}

impl Curve {
    /// Share of the run saved if the share `gain` of the function's time is saved, by linear interpolation.
    pub fn saved_share(&self, gain: f64) -> f64 {
        let at = gain.clamp(0.0, 1.0) * STEPS.len() as f64;
        let step = (at as usize).min(STEPS.len() - 1);
        let before = step.checked_sub(1).map_or(0.0, |s| self.saved[s]);
        before + (self.saved[step] - before) * (at - step as f64)
    }

    /// Effect of a gain, given as a lower and an upper bound.
    pub fn evaluate_gain(&self, gain: Option<(f64, f64)>) -> Worth {
        let saves = gain.map(|(least, most)| (self.saved_share(least), self.saved_share(most)));
        Worth { share: self.share, critical: self.saved_share(1.0), overlapped: self.overlapped, saves, launches: None }
    }
}

/// Curves by kernel name.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Worths(HashMap<String, Curve>);

impl Worths {
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Replays the run for as many functions as its length allows. Empty if launches have no times or calls, or if
    /// there are too many.
    pub fn from_profile(profile: &Profile, cancel: &Cancel) -> Self {
        // Names as shown in the table.
        let names: Vec<_> = profile.kernels.iter().map(readable_name).collect();
        let names: Vec<&str> = names.iter().map(AsRef::as_ref).collect();
        Self::for_names(profile, &names, MOST, cancel).unwrap_or_default()
    }

    /// Replays the run with other names for the kernels, for up to `most` of them; `None` if the run cannot be
    /// replayed.
    pub fn for_names(profile: &Profile, names: &[&str], most: usize, cancel: &Cancel) -> Option<Self> {
        if profile.coverage.is_inconclusive() || profile.recorded.len() > 1 {
            return None;
        }
        let mut run = Run::from_profile(profile)?;
        let mut first: HashMap<&str, u32> = HashMap::new();
        let functions: Vec<u32> = (0_u32..).zip(names).map(|(at, name)| *first.entry(name).or_insert(at)).collect();
        let mut time: HashMap<u32, i64> = HashMap::new();
        for launch in 0..profile.launches.len() {
            let function = functions.get(profile.launches.kernel(launch).0 as usize);
            *time.entry(function.copied().unwrap_or(u32::MAX)).or_default() += profile.launches.duration(launch);
        }
        run.merge_kernels(&functions);
        let (start, end) = run.span();
        let length = (end - start) as f64;
        let mut longest: Vec<(i64, u32)> = time.into_iter().map(|(function, ns)| (ns, function)).collect();
        longest.sort_unstable_by(|a, b| b.cmp(a));
        let mut out = HashMap::new();
        for (at, (ns, function)) in longest.into_iter().take(most).enumerate() {
            // Each function takes seven replays, whereas `can_afford` assumes three.
            if cancel.is_cancelled() || !run.can_afford(3 * at) {
                break;
            }
            let Some(name) = names.get(function as usize).filter(|_| length > 0.0) else { continue };
            let share = |ns: i64| (ns as f64 / length).clamp(0.0, 1.0);
            let (gains, (least, most)) = run.savings_curve(function, &STEPS);
            let mut saved = [0.0; STEPS.len()];
            saved.iter_mut().zip(gains).for_each(|(saved, ns)| *saved = share(ns));
            let overlapped = share(run.overlapped_time(function));
            out.insert((*name).to_owned(), Curve { share: ns as f64 / length, overlapped, saved, bounds: (share(least), share(most)) });
        }
        Some(Self(out))
    }

    /// Returns the curve of a function, if it was evaluated. Collectives have none: they wait for other ranks, which
    /// the replay does not include.
    pub fn get(&self, function: &str) -> Option<&Curve> {
        self.0.get(function).filter(|_| Family::guess(function, function) != Family::Nccl)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn between_the_steps_is_interpolated() {
        let curve = Curve { share: 0.5, overlapped: 0.0, saved: [0.1, 0.2, 0.25, 0.25], bounds: (0.2, 0.5) };
        let near = |gain: f64, saved: f64| (curve.saved_share(gain) - saved).abs() < 1e-9;
        assert!(near(0.0, 0.0) && near(0.125, 0.05) && near(0.25, 0.1) && near(0.6, 0.22) && near(1.0, 0.25) && near(7.0, 0.25));
        let worth = curve.evaluate_gain(Some((0.25, 0.5)));
        assert!((worth.critical - 0.25).abs() < 1e-9 && worth.saves == Some((0.1, 0.2)), "{worth:?}");
    }
}
