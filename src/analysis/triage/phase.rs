//! Phases of a run: start-up with compilation and graph capture, warm-up, steady state, ending.

use crate::model::{CallKind, Profile, units};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    StartUp,
    WarmUp,
    /// Analyzed steps.
    Steady,
    Ending,
}

impl Phase {
    /// Phases with their command-line names, in chronological order.
    pub const ALL: [(Self, &'static str); 4] =
        [(Self::StartUp, "start-up"), (Self::WarmUp, "warm-up"), (Self::Steady, "steady"), (Self::Ending, "ending")];

    /// Returns the phase with this command-line name.
    pub fn of(word: &str) -> Option<Self> {
        Self::ALL.into_iter().find(|p| p.1 == word).map(|p| p.0)
    }

    pub fn word(self) -> &'static str {
        Self::ALL[self as usize].1
    }
}

/// Time that is not analyzed, and the reason.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LeftOut {
    pub phase: Phase,
    pub what: String,
    /// Start and end in nanoseconds since the session began.
    pub start: i64,
    pub end: i64,
    /// True if work may have run then that is not in the report.
    pub unrecorded: bool,
}

/// Minimum number of captured graphs for a start-up phase: a program may capture one or two at any time.
const CAPTURED: usize = 3;

/// Maximum pause between captures during start-up, ns. If all captures so far took longer than this, their duration is
/// the limit instead.
const PAUSE_NS: i64 = 10_000_000_000;

/// Returns the phases from `begin` to the first step, ns. If graphs are captured, as servers do for each batch size,
/// start-up ends with the last capture.
pub fn before_first_step(profile: &Profile, begin: i64, first_step: i64) -> Vec<LeftOut> {
    let calls = &profile.calls;
    let named = |word: &str| calls.names.iter().map(|n| n.kind == CallKind::Graph && n.name.contains(word)).collect::<Vec<_>>();
    let (begins, ends) = (named("StreamBeginCapture"), named("GraphInstantiate"));
    let (mut captured, mut until, mut inside) = (0, begin, i64::MIN);
    if begins.contains(&true) {
        let mut made: Vec<(i64, i64, bool)> = Vec::new();
        for (row, &name) in calls.name.iter().enumerate() {
            let (name, start) = (name as usize, calls.start[row]);
            let is = |list: &[bool]| list.get(name).copied().unwrap_or_default();
            if (begin..first_step).contains(&start) && (is(&begins) || is(&ends)) {
                made.push((start, start.saturating_add(calls.duration[row]).min(first_step), is(&begins)));
            }
        }
        made.sort_unstable();
        let first = made.first().map_or(begin, |m| m.0);
        for (start, end, begins) in made {
            // A much later capture happens during normal operation.
            if captured > 0 && start - until > (until - first).max(PAUSE_NS) {
                break;
            }
            // The driver call is nested in the runtime call: count the pair once.
            captured += usize::from(begins && start >= inside);
            inside = if begins { inside.max(end) } else { inside };
            until = until.max(end);
        }
    }
    let phases = if captured < CAPTURED {
        vec![(Phase::StartUp, "before the first step".to_owned(), begin, first_step)]
    } else {
        vec![
            (Phase::StartUp, format!("start-up: until {} are captured", units::format_count(captured, "graph")), begin, until),
            (Phase::WarmUp, "warm-up: from there to the first step".to_owned(), until, first_step),
        ]
    };
    let some = phases.into_iter().filter(|(_, _, start, end)| end > start);
    some.map(|(phase, what, start, end)| LeftOut { phase, what, start, end, unrecorded: false }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{CallName, Nanos, Source};

    #[test]
    fn start_up_ends_with_the_last_capture() {
        let mut profile = Profile::new(Source::default());
        profile.calls.names = ["cuStreamBeginCapture", "cuGraphInstantiateWithFlags", "cuLaunchKernel"]
            .map(|name| CallName::new(name.into(), 4, Nanos(20)))
            .to_vec();
        let mut call = |name: u32, start: i64| {
            profile.calls.start.push(start);
            profile.calls.duration.push(5);
            profile.calls.name.push(name);
            profile.calls.thread.push(0);
        };
        for n in 0..4 {
            call(0, 100 + n * 20);
            call(1, 110 + n * 20);
        }
        call(2, 190);
        // A capture soon after the others, and one during normal operation.
        call(0, 900);
        call(0, 20 * PAUSE_NS);
        let found = |first_step: i64| {
            before_first_step(&profile, 50, first_step).into_iter().map(|l| (l.phase, l.start, l.end)).collect::<Vec<_>>()
        };
        assert_eq!(found(500), [(Phase::StartUp, 50, 175), (Phase::WarmUp, 175, 500)]);
        assert_eq!(found(40 * PAUSE_NS), [(Phase::StartUp, 50, 905), (Phase::WarmUp, 905, 40 * PAUSE_NS)], "the last one is lazy");
        assert_eq!(found(130), [(Phase::StartUp, 50, 130)], "two graphs are no phase");
        assert_eq!(found(50), []);
    }
}
