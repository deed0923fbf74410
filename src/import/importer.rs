//! The interface that all importers implement.

use super::error::ImportError;
use super::input::Input;
use super::job::Job;
use crate::model::{Cancel, Code, Details, Metrics, Profile};
use std::path::PathBuf;

/// Level of detail about individual kernels in a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelData {
    /// Metrics at most.
    Metrics,
    /// Metrics, and values per instruction.
    Code,
    /// Also sections and the messages of rules.
    Sections,
}

/// A name and its value.
pub type Fact = (&'static str, String);

/// Importer for one file format.
pub trait Importer: Sync {
    /// Name of the format, for display.
    fn name(&self) -> &'static str;

    /// File name suffixes, or commands whose output can be read, for `--help`.
    fn files(&self) -> &'static [&'static str];

    /// Suffixes of the names of such files, in lowercase. Other formats may have the same suffixes.
    fn suffixes(&self) -> &'static [&'static str];

    /// Returns true if the bytes, or the files in a directory, have this format. Implementations check the contents
    /// (tables, producers), not just the container.
    fn knows(&self, input: &Input) -> bool;

    /// Returns true if a truncated compressed file can be read up to the point of truncation.
    fn salvages(&self) -> bool {
        false
    }

    /// Returns true if the importer can read a file that is still being written.
    fn grows(&self) -> bool {
        false
    }

    /// Returns true if every rank of a job writes a report of this kind.
    fn is_of_rank(&self) -> bool {
        false
    }

    /// Returns true if the format can contain counters for the launches of a re-run.
    fn has_counters(&self) -> bool {
        false
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError>;

    /// Level of detail that [`Self::read_details`] and [`Self::read_code`] provide for these metrics.
    fn kernel_data(&self, _input: &Input) -> KernelData {
        KernelData::Metrics
    }

    /// Reads the sections, rules and instances of a result on demand.
    fn read_details(&self, _input: &Input, _metrics: &Metrics, _result: usize) -> Result<Details, ImportError> {
        Ok(Details::default())
    }

    /// Reads the binary, sources and instructions of a result on demand. `details` are the details of the result if
    /// they have been read; `disassemblers` are the paths of nvdisasm and of programs that can replace it.
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

    /// Reads facts about the profiling session, which may contain private data.
    fn read_session(&self, input: &Input) -> Result<Vec<Fact>, ImportError> {
        Err(ImportError::refused(&input.path, "it has no session information", "name a .ncu-rep"))
    }
}
