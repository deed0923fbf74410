//! What an importer is.

use super::error::ImportError;
use super::input::Input;
use super::job::Job;
use crate::model::Profile;

/// Reads one kind of file.
pub trait Importer: Sync {
    /// What it reads, for people.
    fn name(&self) -> &'static str;

    /// How the names of such files end, or the commands that print them, as `--help` lists them.
    fn files(&self) -> &'static [&'static str];

    /// Whether these bytes, or the files of a folder, are of its kind: by what is in them (tables, producers), not by their container alone.
    fn knows(&self, input: &Input) -> bool;

    /// Whether what is there of a packed file whose end is missing can be read.
    fn salvages(&self) -> bool {
        false
    }

    /// Whether a file that is still being written can be read as far as it is.
    fn grows(&self) -> bool {
        false
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError>;
}
