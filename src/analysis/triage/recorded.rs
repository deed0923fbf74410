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
