//! Parts of a run's time that can be analyzed.

use super::intervals::Intervals;
use crate::model::Profile;
use crate::model::os_runtime::MEASURING;

/// Returns the times in which counters were collected while the program ran.
pub fn measuring_times(profile: &Profile) -> Intervals {
    let mut out = Intervals::default();
    for o in profile.overhead.iter().filter(|o| &*o.name == MEASURING) {
        out.push(o.start, o.start.saturating_add(o.duration));
    }
    out
}

fn to_intervals(windows: &[(i64, i64)]) -> Intervals {
    let mut set = Intervals::default();
    for w in windows {
        set.push(w.0, w.1);
    }
    set
}

/// Restricts windows to recorded time in which no counters were collected. Outside the recorded time, GPU activity is
/// unknown; while counters are collected, everything waits for the profiler. If nothing is left, returns the windows
/// unchanged.
pub fn recorded_windows(profile: &Profile, windows: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    let measuring = measuring_times(profile);
    if profile.recorded.is_empty() && measuring.is_empty() {
        return windows;
    }
    let all = to_intervals(&windows);
    let kept = if profile.recorded.is_empty() { all } else { all.intersect(&to_intervals(&profile.recorded)) };
    let both = kept.subtract(&measuring).as_slice().to_vec();
    if both.is_empty() { windows } else { both }
}

/// Share of the kernel time, or of the launches if that is larger, that falls into periods of counter collection.
/// Launches are counted as well because measured ones may have no times. An empty `windows` means the whole report, no
/// `device` all devices.
pub fn measured_share(profile: &Profile, windows: &[(i64, i64)], device: Option<u32>) -> f64 {
    let measuring = measuring_times(profile);
    if measuring.is_empty() {
        return 0.0;
    }
    let launches = &profile.launches;
    let number = |row: usize| {
        let place = profile.places.get(launches.place(row)?.0 as usize)?;
        place.device.and_then(|d| profile.devices.get(d as usize)).map(|d| d.id).or(place.ordinal)
    };
    let asked = to_intervals(windows);
    let inside = |row: usize| windows.is_empty() || asked.covered_length(launches.start(row), launches.start(row).saturating_add(1)) > 0;
    let (mut all, mut time, mut measured) = (0, 0, 0);
    let rows = (0..launches.len()).filter(|&row| inside(row) && (device.is_none() || number(row) == device));
    let count = rows.fold(0, |count, row| {
        let duration = launches.duration(row);
        let covered = measuring.covered_length(launches.start(row), launches.end(row));
        all += duration;
        time += covered;
        measured += i64::from(2 * covered > duration || duration == 0);
        count + 1
    });
    let share = |part: i64, whole: i64| part as f64 / whole.max(1) as f64;
    share(time, all).max(share(measured, count))
}
