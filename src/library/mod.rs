//! The run library: commands, environments, outcomes and reports of runs. It consists of one SQLite file and one folder
//! per run, under `$XDG_DATA_HOME/warpscope`. Several processes may use it at the same time.

pub mod export;
pub mod gc;
pub mod kernels;
pub mod record;
pub mod schema;
pub mod store;

pub use kernels::{Measured, PredictedGain};
pub use record::{GuidedStep, NewRun, Report, Run, State};
pub use store::Library;

/// Advice for when the database is unusable.
fn recovery_advice(source: &rusqlite::Error) -> &'static str {
    match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
            "; move it away to start a new one: the reports stay in the folder `runs` next to it"
        }
        Some(rusqlite::ErrorCode::DatabaseBusy | rusqlite::ErrorCode::DatabaseLocked) => {
            ": another process has been writing it for 10 s; try again when it has ended"
        }
        Some(rusqlite::ErrorCode::DiskFull) => "; free space, or set XDG_DATA_HOME to another folder",
        _ => "",
    }
}

/// Error of the library, formatted as one sentence.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error("the run library {path}: {source}{}", recovery_advice(source))]
    Database { path: String, source: rusqlite::Error },
    /// Access to a file or folder failed.
    #[error("{path}: {source}")]
    File {
        path: String,
        /// Error from the operating system.
        source: std::io::Error,
    },
    /// The database was written by a newer warpscope.
    #[error(
        "the run library {path} was written by a newer warpscope (schema {found}, this one supports {known}); use that version, or set XDG_DATA_HOME to another folder"
    )]
    Newer {
        path: String,
        found: i64,
        /// Newest schema that this version supports.
        known: usize,
    },
    /// The run does not exist.
    #[error("there is no run {0}; `warpscope runs` lists them")]
    NoRun(i64),
    #[error("{0}")]
    Refused(String),
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_library_that_another_process_writes_is_no_damage() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("x.db");
        let (first, second) = (rusqlite::Connection::open(&path).unwrap(), rusqlite::Connection::open(&path).unwrap());
        first.execute_batch("create table t(a); begin immediate").unwrap();
        let source = second.execute_batch("begin immediate").unwrap_err();
        let text = LibraryError::Database { path: "x.db".to_owned(), source }.to_string();
        assert!(text.contains("another process has been writing it"), "{text}");
    }
}
