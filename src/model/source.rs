//! Origin of a report.

use std::path::PathBuf;

/// The tool that created a report, and the report file.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Source {
    /// Tool name, such as `nsys`.
    pub tool: String,
    /// Version of the tool, if in the report.
    pub version: Option<String>,
    /// Schema version of the file, if it has one.
    pub schema: Option<String>,
    /// Path as given by the user.
    pub file: PathBuf,
}
