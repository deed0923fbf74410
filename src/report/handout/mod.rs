//! A report to hand on: one file with the verdict, where the time went, the kernels, the evidence and the commands, as HTML or Markdown.
//!
//! A part is a function that makes blocks; a new one is a file here and a row where a report is put together.

mod block;
mod html;
mod kernels;
mod markdown;
mod memory;
mod paths;
mod put;
mod run;
mod svg;

pub use html::html;
pub use markdown::markdown;
pub use put::{Given, handout};
