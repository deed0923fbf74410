//! Reasons for errors, for scripts: the meaning of an identifier never changes.

use crate::import::ImportError;
use crate::report::envelope::{Envelope, JsonDocument, NextJson};
use schemars::JsonSchema;
use serde::Serialize;
use std::io::Write;

/// Reason why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Usage,
    Config,
    Request,
    NoSuchFile,
    Unreadable,
    UnknownFormat,
    Refused,
    Damaged,
    Tool,
    Cancelled,
    Found,
    Failed,
}

/// All reasons: identifier, meaning, and advice.
pub const REASONS: [(Reason, &str, &str, &str); 12] = [
    (
        Reason::Usage,
        "usage",
        "an option or a value is not one that the command has",
        "`warpscope COMMAND --help` lists the options of a command",
    ),
    (
        Reason::Config,
        "config",
        "the configuration file is missing or wrong",
        "name another file with --config, or correct this one: `warpscope help config` lists its keys",
    ),
    (
        Reason::Request,
        "request",
        "what was asked for does not go together, or is not in this report",
        "`warpscope triage FILE` and `warpscope top FILE` list what is in the report; `warpscope COMMAND --help` lists the options",
    ),
    (Reason::NoSuchFile, "no-such-file", "there is no file of this name", "check the path; a relative one begins in the current folder"),
    (
        Reason::Unreadable,
        "unreadable",
        "the operating system does not let the file be read",
        "check the path, and the permissions of the file and of the folders above it",
    ),
    (
        Reason::UnknownFormat,
        "unknown-format",
        "the file is not of a format that warpscope knows",
        "`warpscope help formats` lists the formats, and how to record or export them",
    ),
    (
        Reason::Refused,
        "refused",
        "the format is known, but this file of it cannot be read; the message says what to do",
        "record or export the report as the message says",
    ),
    (Reason::Damaged, "damaged", "the file is cut or damaged", "record or copy the report again: its end, or a part of it, is missing"),
    (
        Reason::Tool,
        "tool",
        "a tool that is needed to read the file is missing or failed",
        "install the tool that the message names, or export the report where it is installed; `warpscope doctor` says what is missing",
    ),
    (Reason::Cancelled, "cancelled", "the command was interrupted", "run the command again"),
    (
        Reason::Found,
        "found",
        "what the command was asked to fail on was found (--fail-on, --fail-above, --verify)",
        "the document or the message says what was found",
    ),
    (
        Reason::Failed,
        "failed",
        "something else failed; the message says what",
        "`warpscope doctor` checks this machine; `warpscope help limits` says what is not possible",
    ),
];

impl Reason {
    pub fn id(self) -> &'static str {
        REASONS.iter().find(|r| r.0 == self).map_or("failed", |r| r.1)
    }

    /// Advice for errors whose message contains none.
    fn fix(self) -> &'static str {
        REASONS.iter().find(|r| r.0 == self).map_or("", |r| r.3)
    }
}

impl From<&ImportError> for Reason {
    fn from(e: &ImportError) -> Self {
        match e {
            ImportError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Self::NoSuchFile,
            ImportError::Io { .. } => Self::Unreadable,
            ImportError::Refused { .. } => Self::Refused,
            ImportError::Unknown { .. } => Self::UnknownFormat,
            ImportError::Damaged { .. } | ImportError::Truncated { .. } => Self::Damaged,
            ImportError::Tool { .. } => Self::Tool,
            ImportError::Cancelled { .. } => Self::Cancelled,
            _ => Self::Failed,
        }
    }
}

#[derive(Serialize, JsonSchema)]
struct ProblemJson<'a> {
    /// Identifies the reason; it never changes its meaning. `warpscope help errors` lists all of them.
    code: &'static str,
    message: &'a str,
    /// A change that avoids the error.
    fix: &'a str,
    /// Exit code of the command.
    exit: u8,
}

/// An error as JSON, on stdout instead of the document.
#[derive(Serialize, JsonSchema)]
pub(super) struct ErrorJson<'a> {
    error: ProblemJson<'a>,
}

impl JsonDocument for ErrorJson<'_> {
    const NAME: &'static str = "error";
}

/// Command that a message proposes for the same file: "FILE: …; `warpscope memory` says …".
fn proposed_command(message: &str) -> Option<NextJson> {
    let (file, text) = message.split_once(": ").filter(|(file, _)| std::path::Path::new(file).exists())?;
    let (command, about) = text.split_once("`warpscope ")?.1.split_once('`')?;
    let is_plain = command.bytes().all(|b| b.is_ascii_lowercase());
    is_plain.then(|| NextJson::new(["warpscope", command, file, "--format", "json"], about.trim()))
}

/// Writes an error as JSON. In warpscope's own messages, the advice follows the last semicolon; other errors use the
/// advice for their reason.
pub fn write_error(out: &mut dyn Write, reason: Reason, message: &str, exit: u8) -> std::io::Result<()> {
    // Errors about files contain no advice, and the file name may contain a semicolon.
    let advises = !matches!(reason, Reason::NoSuchFile | Reason::Unreadable | Reason::UnknownFormat);
    let advice = message.rsplit_once("; ").filter(|_| advises).map_or_else(|| reason.fix(), |m| m.1);
    let error = ProblemJson { code: reason.id(), message, fix: advice, exit };
    Envelope::default().then(proposed_command(message)).write_whole_line(out, &ErrorJson { error })
}

/// Returns true if a command line requests JSON by `--format json` or `--format=json`.
pub fn asks_for_json(words: impl Iterator<Item = std::ffi::OsString>) -> bool {
    // Arguments after `--` belong to another program.
    let words: Vec<String> = words.map(|w| w.to_string_lossy().into_owned()).take_while(|w| w != "--").collect();
    words.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json") || words.iter().any(|w| w == "--format=json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_one_row() {
        for (at, (reason, id, ..)) in REASONS.iter().enumerate() {
            assert_eq!((*reason as usize, reason.id()), (at, *id));
        }
    }

    #[test]
    fn json_is_asked_for_by_the_own_options_only() {
        let asks = |text: &str| asks_for_json(text.split(' ').map(Into::into));
        assert!(asks("warpscope top x --format json") && asks("warpscope top x --format=json"));
        assert!(!asks("warpscope run -- app --format json") && !asks("warpscope top json"));
    }
}
