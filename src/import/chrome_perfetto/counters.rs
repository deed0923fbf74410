//! Counter tracks: values over time.

use super::tracks::{Named, find_device};
use crate::import::torch::event::MOST_NS;
use crate::model::{CounterTrack, Device};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Maximum length of a unit in parentheses, bytes.
const UNIT: usize = 12;

struct Series {
    track: u32,
    name: Arc<str>,
    unit: Arc<str>,
    values: Vec<(i64, f64)>,
}

/// Counters, in order of first appearance.
#[derive(Default)]
pub struct Counters {
    list: Vec<Series>,
    ids: FxHashMap<(u32, String), usize>,
}

/// Splits a counter label into name and unit: `clock [MHz]`, `clock (MHz)`.
fn split_unit(name: &str) -> (&str, &str) {
    // An index in brackets is not a unit.
    let unit = |unit: &str| unit.contains(|c: char| c.is_alphabetic() || c == '%');
    let of = |open: &str, close: char| name.strip_suffix(close)?.rsplit_once(open).filter(|(name, u)| !name.is_empty() && unit(u));
    // Parentheses may contain arbitrary text, so accept only a short word.
    let short = |unit: &str| unit.len() <= UNIT && !unit.contains(['(', ' ']);
    of(" [", ']').or_else(|| of(" (", ')').filter(|(_, unit)| short(unit))).unwrap_or((name, ""))
}

impl Counters {
    /// Adds a value; returns false if the value or the time is invalid. `track` is the reader's track id. If `unit`
    /// is empty, the name may contain the unit.
    pub fn add_value(&mut self, track: u32, (name, unit): (&str, &str), time: i64, value: f64) -> bool {
        if !value.is_finite() || time.unsigned_abs() >= MOST_NS.unsigned_abs() {
            return false;
        }
        let at = self.ids.get(&(track, name.to_owned())).copied().unwrap_or_else(|| {
            let (short, unit) = if unit.is_empty() { split_unit(name) } else { (name, unit) };
            self.list.push(Series { track, name: Arc::from(short), unit: Arc::from(unit), values: Vec::new() });
            self.ids.insert((track, name.to_owned()), self.list.len() - 1);
            self.list.len() - 1
        });
        self.list[at].values.push((time, value));
        true
    }

    /// Converts to the profile's counter tracks, with times relative to `begin`. If several values have the same
    /// time, the last one wins.
    pub fn into_tracks(self, named: &dyn Fn(u32) -> Named, devices: &[Device], begin: i64) -> Vec<CounterTrack> {
        let index: FxHashMap<u32, u32> = devices.iter().map(|d| d.id).zip(0..).collect();
        let of = |mut s: Series| {
            s.values.sort_by_key(|v| v.0);
            let (mut times, mut values): (Vec<i64>, Vec<f64>) = (Vec::new(), Vec::new());
            for (time, value) in s.values {
                let time = time.saturating_sub(begin);
                if times.last() == Some(&time) {
                    values.pop();
                } else {
                    times.push(time);
                }
                values.push(value);
            }
            let mut id = find_device(&named(s.track));
            // Name written by `warpscope export` for counters without a track: `GPU 0 · NVIDIA H200 · clock`.
            if let Some((gpu, name)) = s.name.clone().rsplit_once(" · ").filter(|(gpu, _)| gpu.starts_with("GPU ")) {
                id = find_device(&Named { track: gpu.to_owned(), ..Named::default() });
                s.name = Arc::from(name);
            }
            let device = id.and_then(|id| index.get(&id)).copied();
            CounterTrack { device, name: s.name, unit: s.unit, times, values }
        };
        self.list.into_iter().map(of).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_unit_behind_a_name() {
        for (name, wanted) in [
            ("SM clock (MHz)", ("SM clock", "MHz")),
            ("Active warps", ("Active warps", "")),
            ("f(x)", ("f(x)", "")),
            ("util [1]", ("util [1]", "")),
            ("warps [Avg Warps per Cycle]", ("warps", "Avg Warps per Cycle")),
            ("power (of the board)", ("power (of the board)", "")),
            (" (W)", (" (W)", "")),
        ] {
            assert_eq!(split_unit(name), wanted, "{name}");
        }
    }

    #[test]
    fn values_come_in_any_order() {
        let mut all = Counters::default();
        for (time, value) in [(30, 3.0), (10, 1.0), (30, 4.0), (20, f64::NAN)] {
            assert_eq!(all.add_value(1, ("a (%)", ""), time, value), value.is_finite());
        }
        let gpu = |_: u32| Named { process: "GPU 2".into(), ..Named::default() };
        let devices = [Device { id: 0, ..Device::default() }, Device { id: 2, ..Device::default() }];
        let tracks = all.into_tracks(&gpu, &devices, 10);
        let wanted = CounterTrack { device: Some(1), name: "a".into(), unit: "%".into(), times: vec![0, 20], values: vec![1.0, 4.0] };
        assert_eq!(tracks, [wanted]);
    }
}
