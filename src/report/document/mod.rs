//! Documents: what a command prints for people, declared once as blocks and rendered as text, Markdown or HTML
//! ([`Renderer`]).
//!
//! The shareable report is the largest of them: verdict, time breakdown, kernels, evidence and commands. Its sections
//! are functions that return blocks; a new section needs a file here and a call in `put.rs`.

mod block;
mod html;
mod kernels;
mod markdown;
mod memory;
mod paths;
mod put;
mod render;
mod run;
mod svg;
mod text;

pub use block::{Bar, BarSeries, Block, CheckText, Document, KeyValue, Rows, ShareLine, Table};
pub use html::write_html;
pub use markdown::write_markdown;
pub use put::{Given, build_handout};
pub use render::{PageFormat, Renderer};
pub use text::write_text;
