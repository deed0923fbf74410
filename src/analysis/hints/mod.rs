//! What is wrong, or right, with a kernel: rules over facts, put in order by the time at stake. Pure.

pub mod bottleneck;
pub mod case;
pub mod demand;
pub mod diagnosis;
pub mod facts;
pub mod hint;
pub mod limits;
pub mod rank;
pub mod reasoning;
pub mod rules;
pub mod stalls;
pub mod subject;

pub use diagnosis::{DIAGNOSES, Diagnosis};
pub use facts::{Depth, Facts};
pub use subject::Subject;
pub use hint::{Confirm, Evidence, Hint, Severity, Sure};

use case::Case;

/// Everything that the rules say about a kernel, best first. Empty where they do not know.
#[must_use]
pub fn diagnose(facts: &Facts) -> Vec<Hint> {
    let case = Case::new(facts);
    let mut hints = rank::rank(rules::RULES.iter().filter_map(|rule| rule(&case)).collect());
    if case.short() && facts.depth() > Depth::Timeline {
        // Percentages of a kernel below 20 µs are not steady.
        for hint in &mut hints {
            if hint.id != Diagnosis::LaunchOverhead {
                hint.sure = hint.sure.max(Sure::Likely);
            }
        }
    }
    hints
}
