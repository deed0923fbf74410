//! Tables: each column is declared once, next to its row type.
//!
//! Text, CSV, Markdown, JSON, Parquet and the explorer's tables, with their sort orders and `warpscope help columns`,
//! are derived from the declarations. A row is a small value that borrows from the report, and a column's value is a
//! plain function of it, so that millions of rows can be written without allocations.

pub mod changes;
mod column;
pub mod kernels;
pub mod launches;
pub mod lines;
pub mod ranges;
mod sort;
mod value;

pub use column::{Column, Outputs, RowJson, columns_of, sort_orders};
pub use sort::Sort;
pub use value::{Field, Unit, Value};
