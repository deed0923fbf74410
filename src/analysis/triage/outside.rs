//! The part of a run that is not analyzed.

use super::attribution::Busy;
use super::eligible_windows::recorded_windows;
use crate::model::Profile;

/// Result of comparing the analyzed part of a run with the rest.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Outside {
    /// Share of the run that was analyzed.
    pub judged: f64,
    /// Share of the rest during which the devices were idle.
    pub idle: f64,
}

/// Returns the analyzed share of the recording, and the idle share of the rest; `None` if all of it was analyzed.
pub fn outside_of(
    profile: &Profile,
    span: (i64, i64),
    windows: &[(i64, i64)],
    busy: &[Option<Busy>],
    ran: &[(i64, i64)],
) -> Option<Outside> {
    let length = |list: &[(i64, i64)]| list.iter().map(|w| w.1 - w.0).sum::<i64>();
    let whole = length(&recorded_windows(profile, vec![span]));
    let rest = whole - length(windows);
    if rest <= 0 {
        return None;
    }
    // Devices that are not used in the analyzed windows do not count.
    let used = || busy.iter().zip(ran).filter_map(|(busy, ran)| Some((busy.as_ref()?, ran.1)));
    let ran: i64 = used().map(|(busy, ran)| (ran - busy.busy_time()).clamp(0, rest)).sum();
    let devices = i64::try_from(used().count()).unwrap_or(1).max(1);
    Some(Outside { judged: length(windows) as f64 / whole as f64, idle: 1.0 - ran as f64 / (rest as f64 * devices as f64) })
}
