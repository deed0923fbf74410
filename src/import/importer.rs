//! The importer trait.

use super::error::ImportError;
use super::input::Input;
use super::job::Job;
use crate::model::Profile;

/// Reads one file format.
pub trait Importer: Sync {
    /// Name of the format, as shown to users.
    fn name(&self) -> &'static str;

    /// File name suffixes, or the commands that print such files, as `--help` lists them.
    fn files(&self) -> &'static [&'static str];

    /// Returns true for bytes, or files of a folder, of this format: judged by contents (tables, producers),
    /// not by the container alone.
    fn knows(&self, input: &Input) -> bool;

    /// Returns true if a truncated compressed file can be read up to its end.
    fn salvages(&self) -> bool {
        false
    }

    /// Returns true if a file that is still being written can be read.
    fn grows(&self) -> bool {
        false
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError>;
}
