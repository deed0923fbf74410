//! Origin of a report.

use std::path::PathBuf;

/// Tool that made a report, and the report's file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Tool name, e.g. `nsys`.
    pub tool: String,
    /// Version of the tool, if in the report.
    pub version: Option<String>,
    /// Version of the file's schema, if it has one.
    pub schema: Option<String>,
    /// Path as given by the user.
    pub file: PathBuf,
}
