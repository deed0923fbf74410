//! Errors for the user, and exit codes.

use super::reason::Reason;
use crate::analysis::fuzzy::nearest_match;
use std::path::Path;

/// Exit code if a condition to fail on was met, or if a recorded program failed.
pub const FOUND: u8 = 1;
/// Exit code for invalid arguments, or for something that is not in the report.
pub const WRONG: u8 = 2;
/// Exit code for an input file that cannot be read.
pub const UNREADABLE: u8 = 3;
/// Exit code if the command could not be carried out: a tool or permission is missing, a disk is full, a run has ended.
pub const UNABLE: u8 = 4;
/// Exit code after SIGINT, as reported by shells.
pub const INTERRUPTED: u8 = 130;

/// An error for the user: one sentence and an exit code.
#[derive(Debug)]
pub struct Failure {
    pub text: String,
    pub code: u8,
    pub reason: Reason,
}

impl Failure {
    /// Creates an error about invalid arguments or input.
    pub fn wrong(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: WRONG, reason: Reason::Request }
    }

    /// Creates an error about option values.
    pub fn usage(text: impl Into<String>) -> Self {
        Self { reason: Reason::Usage, ..Self::wrong(text) }
    }

    /// Creates an error about something that could not be done.
    pub fn unable(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: UNABLE, reason: Reason::Failed }
    }

    /// Creates an error about an input file that cannot be read as a whole.
    pub fn unreadable(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: UNREADABLE, reason: Reason::Unreadable }
    }

    /// Reports that a condition to fail on was met; the text is empty if the output already says so.
    pub fn found(text: impl Into<String>) -> Self {
        Self { text: text.into(), code: FOUND, reason: Reason::Found }
    }

    /// Creates an error about a missing file; suggests a command, because a mistyped command is parsed as a file name.
    pub fn no_such_file(file: &Path) -> Self {
        let name = file.to_string_lossy();
        let failure = |text| Self { text, code: UNREADABLE, reason: Reason::NoSuchFile };
        let commands = crate::report::REPORTS.iter().map(|r| r.0).chain(["demo", "themes", "recipes"]);
        match nearest_match(&name, commands).filter(|_| !name.contains(['/', '.'])) {
            Some(near) => {
                Self { reason: Reason::Usage, ..Self::wrong(format!("{name}: no such file; did you mean the command `{near}`?")) }
            }
            None => failure(format!("{name}: no such file")),
        }
    }
}

impl From<crate::import::ImportError> for Failure {
    fn from(e: crate::import::ImportError) -> Self {
        use crate::import::ImportError;
        let code = match &e {
            ImportError::Tool { .. } => UNABLE,
            ImportError::Cancelled { .. } => INTERRUPTED,
            _ => UNREADABLE,
        };
        Self { text: e.to_string(), code, reason: (&e).into() }
    }
}

impl From<std::io::Error> for Failure {
    fn from(e: std::io::Error) -> Self {
        Self { text: e.to_string(), code: UNABLE, reason: Reason::Failed }
    }
}
