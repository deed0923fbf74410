//! Errors of opening a file: one sentence each, with the file, the place and the next step.

use std::path::{Path, PathBuf};

/// Reason that a file could not be opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// The operating system refused.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// The file is recognised as one that cannot be read.
    #[error("{}: {what}; {next}", path.display())]
    Refused { path: PathBuf, what: String, next: String },
    /// None of the importers knows these bytes.
    #[error("{}: not a profile that warpscope knows (tried {tried}); it starts with {head}", path.display())]
    Unknown {
        path: PathBuf,
        /// Names of the formats that were tried.
        tried: String,
        /// First bytes.
        head: String,
    },
    /// The file is damaged.
    #[error("{}: damaged in {place} ({reason}); {next}", path.display())]
    Damaged {
        path: PathBuf,
        place: String,
        /// Message of the reader.
        reason: String,
        next: String,
    },
    /// An external tool that is needed to read the file failed.
    #[error("{}: {what}; {next}", path.display())]
    Tool { path: PathBuf, what: String, next: String },
    /// The user cancelled the job.
    #[error("{}: cancelled", path.display())]
    Cancelled { path: PathBuf },
}

impl ImportError {
    /// Returns the error for an operating-system error on a file.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// Returns the error for a file that is known to be unreadable.
    pub fn refused(path: &Path, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::Refused { path: path.to_owned(), what: what.into(), next: next.into() }
    }

    /// Returns the error for damage found in a part of a file.
    pub fn damaged(path: &Path, place: &str, reason: impl std::fmt::Display) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            place: place.to_owned(),
            reason: format!("{reason}"),
            next: "copy it again from where it was recorded, or record or export it again".to_owned(),
        }
    }
}
