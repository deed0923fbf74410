//! Source of a report.

use std::path::PathBuf;

/// Tool that made a report, and file that it was read from.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Name of the tool, e.g. `nsys`.
    pub tool: String,
    /// Version of the tool, if in the report.
    pub version: Option<String>,
    /// Version of the file's schema, if it has one.
    pub schema: Option<String>,
    /// Path as given by the user.
    pub file: PathBuf,
}
