//! Errors that occur when opening a file. Each message is one sentence that states the file, the location and the
//! next step.

use std::path::{Path, PathBuf};

/// An error that prevented a file from being opened.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ImportError {
    /// An error from the operating system.
    #[error("{}: {source}", path.display())]
    Io { path: PathBuf, source: std::io::Error },
    /// The file was recognized, but cannot be read.
    #[error("{}: {what}; {next}", path.display())]
    Refused { path: PathBuf, what: String, next: String },
    /// The end of the file is missing.
    #[error("{}: truncated: {what}; {next}", path.display())]
    Truncated { path: PathBuf, what: String, next: String },
    /// No importer recognizes the contents.
    #[error("{}: not a profile that warpscope knows: it starts with {head}; `warpscope help formats` lists what it opens", path.display())]
    Unknown {
        path: PathBuf,
        /// First bytes of the file, as text or in hexadecimal.
        head: String,
    },
    /// The file is damaged.
    #[error("{}: damaged in {place} ({reason}); {next}", path.display())]
    Damaged {
        path: PathBuf,
        place: String,
        /// Error message of the parser.
        reason: String,
        next: String,
    },
    /// An external tool that is needed to read the file failed.
    #[error("{}: {what}; {next}", path.display())]
    Tool { path: PathBuf, what: String, next: String },
    /// The user canceled the job.
    #[error("{}: cancelled", path.display())]
    Cancelled { path: PathBuf },
}

impl ImportError {
    /// Wraps an operating system error that concerns a file.
    pub fn io(path: &Path, source: std::io::Error) -> Self {
        Self::Io { path: path.to_owned(), source }
    }

    /// Returns the error for a file that was recognized but cannot be read.
    pub fn refused(path: &Path, what: impl Into<String>, next: impl Into<String>) -> Self {
        Self::Refused { path: path.to_owned(), what: what.into(), next: next.into() }
    }

    /// Returns the error for a damaged part of a file.
    pub fn damaged(path: &Path, place: &str, reason: impl std::fmt::Display) -> Self {
        Self::Damaged {
            path: path.to_owned(),
            place: place.to_owned(),
            reason: format!("{reason}"),
            next: "copy it again from where it was recorded, or record or export it again".to_owned(),
        }
    }
}
