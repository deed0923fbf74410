//! Reasons of errors, for scripts: an identifier never changes its meaning.

use crate::import::ImportError;

/// Why a command failed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Reason {
    Usage,
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

/// All reasons: identifier, and meaning.
pub const REASONS: [(Reason, &str, &str); 11] = [
    (Reason::Usage, "usage", "an option or a value is not one that the command has"),
    (Reason::Request, "request", "what was asked for does not go together, or is not in this report"),
    (Reason::NoSuchFile, "no-such-file", "there is no file of this name"),
    (Reason::Unreadable, "unreadable", "the operating system does not let the file be read"),
    (Reason::UnknownFormat, "unknown-format", "the file is not of a format that warpscope knows"),
    (Reason::Refused, "refused", "the format is known, but this file of it cannot be read; the message says what to do"),
    (Reason::Damaged, "damaged", "the file is cut or damaged"),
    (Reason::Tool, "tool", "a tool that is needed to read the file is missing or failed"),
    (Reason::Cancelled, "cancelled", "the command was interrupted"),
    (Reason::Found, "found", "what the command was asked to fail on was found (--fail-on, --fail-above, --verify)"),
    (Reason::Failed, "failed", "something else failed; the message says what"),
];

impl Reason {
    pub fn id(self) -> &'static str {
        REASONS.iter().find(|r| r.0 == self).map_or("failed", |r| r.1)
    }
}

impl From<&ImportError> for Reason {
    fn from(e: &ImportError) -> Self {
        match e {
            ImportError::Io { source, .. } if source.kind() == std::io::ErrorKind::NotFound => Self::NoSuchFile,
            ImportError::Io { .. } => Self::Unreadable,
            ImportError::Refused { .. } => Self::Refused,
            ImportError::Unknown { .. } => Self::UnknownFormat,
            ImportError::Damaged { .. } => Self::Damaged,
            ImportError::Tool { .. } => Self::Tool,
            ImportError::Cancelled { .. } => Self::Cancelled,
            _ => Self::Failed,
        }
    }
}

/// Returns true if a command line asks for JSON.
pub fn asks_for_json(words: impl Iterator<Item = std::ffi::OsString>) -> bool {
    // Arguments after `--` are another program's.
    let words: Vec<String> = words.map(|w| w.to_string_lossy().into_owned()).take_while(|w| w != "--").collect();
    words.windows(2).any(|pair| pair[0] == "--format" && pair[1] == "json") || words.iter().any(|w| w == "--format=json")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_reason_has_one_row() {
        for (at, (reason, id, _)) in REASONS.iter().enumerate() {
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
