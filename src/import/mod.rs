//! Reads files into a [`Profile`](crate::model::Profile). Formats are detected by contents, never by file name.

pub mod budget;
pub mod cache;
mod collectives;
pub mod counted;
pub mod digest;
pub mod error;
pub mod importer;
pub mod input;
pub mod job;
pub mod known;
pub mod ncu;
pub mod nsys;
pub mod nsys_report;
pub mod open;
pub mod order;
pub mod rocm;
pub mod slices;
pub mod snapshot;
pub mod sqlite;
pub mod stats_csv;
mod times;
pub mod torch;
pub mod trace;
mod unrecorded;

pub use crate::model::{Cancel, Pace};
pub use budget::Budget;
pub use error::ImportError;
pub use importer::Importer;
pub use input::Input;
pub use job::{Job, Names, Parts, Preview, Progress, Wants};
pub use open::{IMPORTERS, export_path, input_if, open_profile, read_profile};
