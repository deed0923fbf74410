//! Turns files into a [`Profile`]. A file is known by its bytes, never by its name.
//!
//! Adding a format is one file with an [`Importer`] and one row in [`IMPORTERS`].

pub mod cache;
pub mod error;
pub mod input;
pub mod job;
pub mod known;
pub mod ncu;
pub mod nsys;
pub mod nsys_report;
pub mod order;
pub mod stats_csv;
pub mod torch;

pub use crate::model::Cancel;
pub use error::ImportError;
pub use input::Input;
pub use job::{Job, Names, Preview, Progress, Wants};

use crate::model::Profile;
use std::path::Path;

/// Reads one kind of file.
pub trait Importer: Sync {
    /// What it reads, for people.
    fn name(&self) -> &'static str;
    /// Whether these bytes are of its kind.
    fn knows(&self, input: &Input) -> bool;
    /// Whether what is there of a packed file whose end is missing can be read.
    fn salvages(&self) -> bool {
        false
    }
    /// Reads the file.
    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError>;
}

/// Every format that can be opened, in the order in which they are asked.
pub static IMPORTERS: &[&dyn Importer] =
    &[&nsys::NsysSqlite, &nsys_report::NsysReport, &stats_csv::NsysStatsCsv, &ncu::Ncu, &torch::TorchTrace];

/// Opens a file of any known format.
pub fn open(path: &Path, job: &Job<'_>) -> Result<Profile, ImportError> {
    let input = Input::open(path, job)?;
    read(&input, job)
}

/// The SQLite export of a timeline: the file itself, unpacked, or what nsys makes of its report.
pub fn exported(path: &Path, job: &Job<'_>) -> Result<std::path::PathBuf, ImportError> {
    let input = Input::open(path, job)?;
    if nsys_report::NsysReport.knows(&input) {
        return nsys_report::exported(&input, job);
    }
    match &input.bytes {
        input::Bytes::File(file) if nsys::NsysSqlite.knows(&input) => Ok(file.clone()),
        _ => Err(ImportError::refused(path, "not an Nsight Systems timeline", "name a .nsys-rep or its SQLite export")),
    }
}

/// Reads an input that was opened before, or that is built into the program.
pub fn read(input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
    for importer in IMPORTERS {
        if importer.knows(input) {
            let profile = importer.read(input, job)?;
            input.check_unchanged()?;
            return Ok(profile);
        }
    }
    Err(known::refusal(input))
}
