//! Workflow from a hot kernel to a successful change, and the user's progress in it.

use super::hints::{Depth, Subject};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// Label of the step.
    pub word: &'static str,
    pub done: bool,
    /// True for the step to do next.
    pub now: bool,
}

/// Returns the steps for a kernel. Progress follows from the collected data. `compared` is true if another result is
/// shown next to this one, `others` if one is available.
pub fn workflow_steps(subject: &Subject, compared: bool, others: bool) -> [PathStep; 6] {
    let measured = subject.depth >= Depth::Basic && subject.roofs;
    let traced = subject.is_amd() && subject.depth == Depth::Full;
    let decided = if subject.is_amd() { traced } else { measured && subject.is_decided() };
    let done = [
        ("hot kernel", true),
        (if subject.is_amd() { "counters" } else { "speed of light" }, measured),
        ("verdict", (measured || traced) && !subject.hints.is_empty()),
        (if subject.is_amd() { "waits" } else { "deciding section" }, decided && !subject.hints.is_empty()),
        ("change", compared),
        ("compare", compared && others),
    ];
    let next = done.iter().position(|d| !d.1);
    let mut at = 0..;
    done.map(|(word, done)| PathStep { word, done, now: at.next() == next })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_step_that_is_not_done_is_next() {
        let now = |s: &[PathStep; 6]| s.iter().find(|s| s.now).map(|s| s.word);
        let mut subject = Subject::default();
        assert_eq!(now(&workflow_steps(&subject, false, false)), Some("speed of light"));
        (subject.depth, subject.roofs) = (Depth::Basic, true);
        assert_eq!(now(&workflow_steps(&subject, false, false)), Some("verdict"), "nothing was said");
        subject.depth = Depth::Full;
        subject.hints = super::super::hints::diagnose(&super::super::hints::Facts::from_pairs(&[("duration", 2_000.0)]));
        assert_eq!(now(&workflow_steps(&subject, false, false)), Some("change"));
        assert_eq!(now(&workflow_steps(&subject, true, true)), None);
    }
}
