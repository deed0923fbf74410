//! Workflow from a hot kernel to a successful change, and the user's progress in it.

use super::hints::{Depth, Subject, Sure};

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PathStep {
    /// Label of the step.
    pub word: &'static str,
    pub done: bool,
    /// True if the verdict is known without this step, so that it need not be done.
    pub skipped: bool,
    /// True for the step to do next.
    pub now: bool,
}

/// Returns the steps for a kernel. Progress follows from the collected data. `compared` is true if another result is
/// shown next to this one, `others` if one is available.
pub fn workflow_steps(subject: &Subject, compared: bool, others: bool) -> [PathStep; 6] {
    let measured = subject.depth >= Depth::Basic && subject.roofs;
    let traced = subject.is_amd() && subject.depth == Depth::Full;
    let decided = if subject.is_amd() { traced } else { measured && subject.is_decided() };
    // The collected data can settle the cause without the sections that come before it as a rule.
    let told = subject.depth >= Depth::Basic && subject.hints.first().is_some_and(|h| h.sure == Sure::Certain);
    let done = [
        ("hot kernel", true),
        (if subject.is_amd() { "counters" } else { "speed of light" }, measured),
        ("verdict", (measured || traced || told) && !subject.hints.is_empty()),
        (if subject.is_amd() { "waits" } else { "deciding section" }, decided && !subject.hints.is_empty()),
        ("change", compared),
        ("compare", compared && others),
    ];
    let is_skipped = |at: usize| told && !done[at].1 && done[at..].iter().any(|d| d.0 == "change") && done[at].0 != "change";
    let next = (0..done.len()).find(|&at| !done[at].1 && !is_skipped(at));
    std::array::from_fn(|at| PathStep { word: done[at].0, done: done[at].1, skipped: is_skipped(at), now: Some(at) == next })
}

#[cfg(test)]
mod tests {
    use super::super::hints::{Diagnosis, Hint};
    use super::*;

    #[test]
    fn the_first_step_that_is_not_done_is_next() {
        let now = |s: &[PathStep; 6]| s.iter().find(|s| s.now).map(|s| s.word);
        let mut subject = Subject::default();
        assert_eq!(now(&workflow_steps(&subject, false, false)), Some("speed of light"));
        (subject.depth, subject.roofs) = (Depth::Basic, true);
        assert_eq!(now(&workflow_steps(&subject, false, false)), Some("verdict"), "nothing was said");
        // A certain cause needs no speed of light.
        let hint = Hint { sure: Sure::Certain, ..Hint::new(Diagnosis::DramBandwidth, 0.1, "at 88% of its peak".to_owned()) };
        let told = Subject { depth: Depth::Basic, hints: vec![hint], ..Subject::default() };
        let steps = workflow_steps(&told, false, false);
        assert!(steps[1].skipped && !steps[1].done && steps[2].done);
        assert_eq!(now(&steps), Some("change"));
        subject.depth = Depth::Full;
        subject.hints = super::super::hints::diagnose(&super::super::hints::Facts::from_pairs(&[("duration", 2_000.0)]));
        assert_eq!(now(&workflow_steps(&subject, false, false)), Some("change"));
        assert_eq!(now(&workflow_steps(&subject, true, true)), None);
    }
}
