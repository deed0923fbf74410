//! Interface of all importers.

use super::error::ImportError;
use super::input::Input;
use super::job::Job;
use crate::model::Profile;

/// Importer of one file format.
pub trait Importer: Sync {
    /// Name of the format, for display.
    fn name(&self) -> &'static str;

    /// File name suffixes, or commands that print such files, for `--help`.
    fn files(&self) -> &'static [&'static str];

    /// Returns true if the bytes, or the files of a folder, have this format. Implementations check the contents
    /// (tables, producers), not only the container.
    fn knows(&self, input: &Input) -> bool;

    /// Returns true if a truncated compressed file can be read up to the truncation.
    fn salvages(&self) -> bool {
        false
    }

    /// Returns true if the importer can read a file that is still being written.
    fn grows(&self) -> bool {
        false
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError>;
}
