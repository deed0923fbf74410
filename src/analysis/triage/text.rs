//! Number formats for sentences, and commands that record or display more data.

use super::finding::{Confirm, Finding, PlaceKind};
use super::program;
use super::verdict::Verdict as V;
use crate::analysis::readable::readable_name;
use crate::model::{Nanos, Profile};

/// Formats a time in ns for display.
pub fn format_ns(value: f64) -> String {
    Nanos::format_ns(value)
}

/// Data that a recording lacks and that another recipe would record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Record {
    Host,
    Samples,
    Python,
}

/// Returns the command that records the missing data.
pub fn recording_command(profile: &Profile, what: Record) -> Confirm {
    let (recipe, why) = match what {
        Record::Host => ("full", "records calls of the operating system and CPU samples: whether the thread waits or computes, and where"),
        Record::Samples => ("full", "records CPU samples: which function computes"),
        Record::Python if program::may_be_python(profile) => ("python", "records Python stacks: which line does it"),
        Record::Python => ("full", "records CPU samples: which function does it"),
    };
    let program = if profile.capture.argv.is_empty() { vec!["PROGRAM".to_owned()] } else { profile.capture.argv.clone() };
    let mut argv: Vec<String> = ["warpscope", "run", "--recipe", recipe, "--"].map(str::to_owned).into();
    argv.extend(program);
    Confirm { argv, why: why.to_owned() }
}

/// Returns the command that shows the recorded functions during which the GPU was idle.
pub fn show_lines(profile: &Profile) -> Confirm {
    let argv = ["warpscope", "lines", &profile.source.file.display().to_string()].map(str::to_owned).into();
    Confirm { argv, why: "shows the functions and lines of the program while the GPU was idle".to_owned() }
}

/// Returns a command that confirms a finding or locates the line behind it, for rules without their own command.
pub fn confirm_command(profile: &Profile, finding: &Finding) -> Option<Confirm> {
    let own = |recipe: &str, why: &str| {
        let program = if profile.capture.argv.is_empty() { vec!["PROGRAM".to_owned()] } else { profile.capture.argv.clone() };
        let argv = ["warpscope", "run", "--recipe", recipe, "--"].map(str::to_owned).into_iter().chain(program).collect();
        Some(Confirm { argv, why: why.to_owned() })
    };
    // The `python` and `full` recipes locate the line behind a finding, which is pointless if samples have already
    // found it.
    let found = finding.places.iter().any(|p| p.kind == PlaceKind::Line);
    let recorded = !profile.os_calls.start.is_empty() && !profile.samples.samples.is_empty();
    let needless = |recipe: &str| (found && matches!(recipe, "python" | "full")) || (recorded && recipe == "full");
    // A line of Python cannot be behind the calls of a compiled program.
    let suited = |(recipe, why): (&'static str, &'static str)| match recipe {
        "python" if !program::may_be_python(profile) => ("full", "records CPU samples: which function makes these calls"),
        _ => (recipe, why),
    };
    if let Some((recipe, why)) = finding.id.recipe().map(suited).filter(|r| !needless(r.0)) {
        return own(recipe, why);
    }
    match finding.id {
        V::GpuBound | V::SmallKernels => {
            let kernel = finding.places.iter().find(|p| p.kind == PlaceKind::Kernel)?;
            let file = profile.source.file.display().to_string();
            // The kernel has already been measured.
            if profile.measured.as_deref().is_some_and(|m| m.kernels.iter().any(|k| readable_name(k) == kernel.name)) {
                let argv = ["warpscope", "hints", &file, "--kernel", &kernel.name].map(str::to_owned).into();
                return Some(Confirm {
                    argv,
                    why: "says what limits the first kernel, as it was measured while the program ran".to_owned(),
                });
            }
            let argv = ["warpscope", "rerun", &file, "--kernel", &kernel.name].map(str::to_owned).into();
            Some(Confirm {
                argv,
                why: "prints the command that profiles a launch of the first kernel again, with what limits it".to_owned(),
            })
        }
        _ => None,
    }
}

/// Returns the text with an upper-case first letter.
pub fn capitalize(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().map(|c| c.to_uppercase().collect::<String>() + letters.as_str()).unwrap_or_default()
}
