//! Numbers in sentences, and the commands that would tell more.

use super::finding::Confirm;
use crate::model::{Nanos, Profile};

/// A share as percent: `61%`, `7.3%`.
#[must_use]
pub fn pct(share: f64) -> String {
    let p = share * 100.0;
    if p != 0.0 && p.abs() < 9.95 { format!("{p:.1}%") } else { format!("{p:.0}%") }
}

/// A time in ns as people read it.
#[must_use]
pub fn ns(value: f64) -> String {
    Nanos::human(value)
}

/// What a recording lacks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    /// Calls of the operating system.
    Host,
    /// What the host computes.
    Samples,
    /// Functions of Python.
    Python,
}

/// The command that records what is missing.
#[must_use]
pub fn record(profile: &Profile, what: Record) -> Confirm {
    let (recipe, why) = match what {
        Record::Host => ("full", "records calls of the operating system and CPU samples: whether the thread waits or computes, and where"),
        Record::Samples => ("full", "records CPU samples: which function computes"),
        Record::Python => ("python", "records Python stacks: which line does it"),
    };
    let program = if profile.capture.argv.is_empty() { vec!["PROGRAM".to_owned()] } else { profile.capture.argv.clone() };
    let mut argv: Vec<String> = ["warpscope", "run", "--recipe", recipe, "--"].map(str::to_owned).into();
    argv.extend(program);
    Confirm { argv, why: why.to_owned() }
}
