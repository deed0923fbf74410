//! The run library: what was run, where, how it ended and what it left. One SQLite file and a folder for each run, under
//! `$XDG_DATA_HOME/warpscope`. Several programs may use it at once.

pub mod export;
pub mod gc;
pub mod kernels;
pub mod record;
pub mod schema;
pub mod store;

pub use kernels::{Hint, Measured};
pub use record::{NewRun, Report, Run, State, Step};
pub use store::Library;

/// What to do about a database that is none any more.
fn advice(source: &rusqlite::Error) -> &'static str {
    match source.sqlite_error_code() {
        Some(rusqlite::ErrorCode::NotADatabase | rusqlite::ErrorCode::DatabaseCorrupt) => {
            "; move it away to start a new one: the reports stay in the folder `runs` next to it"
        }
        Some(rusqlite::ErrorCode::DiskFull) => "; free space, or set XDG_DATA_HOME to another folder",
        _ => "",
    }
}

/// Why the library could not do something, one sentence.
#[derive(Debug, thiserror::Error)]
pub enum LibraryError {
    #[error("the run library {path}: {source}{}", advice(source))]
    Database { path: String, source: rusqlite::Error },
    /// A file or a folder.
    #[error("{path}: {source}")]
    File {
        path: String,
        /// What the system says.
        source: std::io::Error,
    },
    /// A newer warpscope wrote it.
    #[error(
        "the run library {path} was written by a newer warpscope (schema {found}, this one supports {known}); use that version, or set XDG_DATA_HOME to another folder"
    )]
    Newer {
        path: String,
        found: i64,
        /// The newest schema that is known here.
        known: usize,
    },
    /// There is no such run.
    #[error("there is no run {0}; `warpscope runs` lists them")]
    NoRun(i64),
    #[error("{0}")]
    Refused(String),
}
