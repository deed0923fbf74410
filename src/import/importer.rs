//! Interface of all importers.

use super::error::ImportError;
use super::input::Input;
use super::job::Job;
use crate::model::{Cancel, Code, Details, Metrics, Profile};
use std::path::PathBuf;

/// Depth of the data on single kernels in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelData {
    /// None, or metrics only.
    Metrics,
    /// Metrics, and values for each instruction.
    Code,
    /// Also sections, and messages of rules.
    Sections,
}

/// A name and its value.
pub type Fact = (&'static str, String);

/// Importer of one file format.
pub trait Importer: Sync {
    /// Name of the format, for display.
    fn name(&self) -> &'static str;

    /// File name suffixes, or commands that print such files, for `--help`.
    fn files(&self) -> &'static [&'static str];

    /// Endings of the names of such files, in lower case. Files of other formats may have the same.
    fn suffixes(&self) -> &'static [&'static str];

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

    /// Returns true if each rank of a job writes such a report.
    fn is_of_rank(&self) -> bool {
        false
    }

    /// Returns true if the format can contain counters of the launches of a re-run.
    fn has_counters(&self) -> bool {
        false
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError>;

    /// Depth of [`Self::read_details`] and [`Self::read_code`] for these metrics.
    fn kernel_data(&self, _input: &Input) -> KernelData {
        KernelData::Metrics
    }

    /// Reads sections, rules and instances of a result, on demand.
    fn read_details(&self, _input: &Input, _metrics: &Metrics, _result: usize) -> Result<Details, ImportError> {
        Ok(Details::default())
    }

    /// Reads binary, sources and instructions of a result, on demand. `details` are those of the result, if they were
    /// read; `disassemblers` are the paths of nvdisasm and of programs that can replace it.
    fn read_code(
        &self,
        _input: &Input,
        _metrics: &Metrics,
        _result: usize,
        _details: Option<&Details>,
        _disassemblers: &[PathBuf],
        _cancel: &Cancel,
    ) -> Result<Code, ImportError> {
        Ok(Code::default())
    }

    /// Reads facts about the session, which are private.
    fn read_session(&self, input: &Input) -> Result<Vec<Fact>, ImportError> {
        Err(ImportError::refused(&input.path, "it has no session information", "name a .ncu-rep"))
    }
}
