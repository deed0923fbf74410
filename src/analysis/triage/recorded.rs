//! Of the run's time what can be judged.

use super::intervals::Intervals;
use crate::model::Profile;
use crate::model::os::MEASURING;

/// When counters were measured while the program ran.
#[must_use]
pub fn measuring(profile: &Profile) -> Intervals {
    let mut out = Intervals::default();
    for o in profile.overhead.iter().filter(|o| &*o.name == MEASURING) {
        out.push(o.start, o.start.saturating_add(o.duration));
    }
    out
}

/// Of some windows what was recorded, and was the program's own: in which a GPU did nothing that is known, it may have done anything, and while counters
/// are measured everything waits for them.
#[must_use]
pub fn recorded(profile: &Profile, windows: Vec<(i64, i64)>) -> Vec<(i64, i64)> {
    let measuring = measuring(profile);
    if profile.recorded.is_empty() && measuring.is_empty() {
        return windows;
    }
    let set = |list: &[(i64, i64)]| {
        let mut set = Intervals::default();
        for w in list {
            set.push(w.0, w.1);
        }
        set
    };
    let all = set(&windows);
    let kept = if profile.recorded.is_empty() { all } else { all.intersect(&set(&profile.recorded)) };
    let both = kept.subtract(&measuring).as_slice().to_vec();
    if both.is_empty() { windows } else { both }
}

/// Share of the kernels' time, or of the launches where that is more, that lies in windows in which counters were measured, and is therefore not
/// judged. Launches that were measured may have no times.
#[must_use]
pub fn measured_share(profile: &Profile) -> f64 {
    let measuring = measuring(profile);
    if measuring.is_empty() {
        return 0.0;
    }
    let launches = &profile.launches;
    let (mut all, mut inside, mut count) = (0, 0, 0);
    for row in 0..launches.len() {
        let covered = measuring.covered(launches.start(row), launches.end(row));
        all += launches.duration(row);
        inside += covered;
        count += usize::from(covered > 0 || launches.duration(row) == 0);
    }
    let share = |part: f64, whole: f64| part / whole.max(1.0);
    share(inside as f64, all as f64).max(share(count as f64, launches.len() as f64))
}
