//! Where a report is from.

use std::path::PathBuf;

/// Which tool made a report, and which file it was read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Tool, e.g. `nsys`.
    pub tool: String,
    /// The tool's version, when the report says it.
    pub version: Option<String>,
    /// Version of the file's schema, when it has one.
    pub schema: Option<String>,
    /// The file as the user named it.
    pub file: PathBuf,
}
