//! Exports launches, calls, memcpys, ranges, collectives and findings of a report as Parquet, for engines
//! that query many reports at once.
//!
//! A new table needs a function in `tables.rs` and a row in [`TABLES`].

mod table;
mod tables;
mod write;

pub use table::{Of, Table};

/// Builder of a table.
type Make = for<'a> fn(Of<'a>) -> Table<'a>;

/// All tables: name, description of a row, and builder.
pub static TABLES: &[(&str, &str, Make)] = &[
    ("launches", "a kernel launch", tables::launches),
    ("calls", "a call of CUDA or HIP that launched no kernel", tables::calls),
    ("memcpys", "a memory copy or set on the device", tables::memcpys),
    ("ranges", "a range that the program or its framework marked", tables::ranges),
    ("collectives", "one rank's part in a collective", tables::collectives),
    ("findings", "what limits the run, the verdict first", tables::findings),
];
