//! Reads files into a [`Profile`](crate::model::Profile). Formats are detected by content, never by file name.

pub mod budget;
pub mod cache;
pub mod chrome_perfetto;
mod collectives;
pub mod digest;
pub mod error;
pub mod importer;
pub mod input;
pub mod job;
pub mod launch_order;
pub mod ncu;
pub mod nsys;
pub mod nsys_report;
pub mod open;
pub mod progress_reader;
pub mod proton;
pub mod rocm;
pub mod server_metrics;
pub mod source_file;
pub mod sqlite;
pub mod stats_csv;
mod stats_text;
mod text_table;
mod times;
pub mod torch;
pub mod torch_memory_snapshot;
mod unrecorded;
pub mod unsupported;
pub mod wstrace;

pub use crate::model::{Cancel, Pace};
pub use budget::Budget;
pub use error::ImportError;
pub use importer::Importer;
pub use input::Input;
pub use job::{Job, Names, Parts, Preview, Progress, Wants};
pub use open::{IMPORTERS, export_path, input_if, open_profile, read_profile};
