//! Shareable report: one HTML or Markdown file with the verdict, time breakdown, kernels, evidence and commands.
//!
//! A section is a function that returns blocks; a new section needs a file here and a call in `put.rs`.

mod block;
mod html;
mod kernels;
mod markdown;
mod memory;
mod paths;
mod put;
mod run;
mod svg;

pub use html::write_html;
pub use markdown::write_markdown;
pub use put::{Given, build_handout};
