//! Builds the command that profiles exactly the selected launches of a report again. Pure: no I/O, no terminal.
//!
//! The same [`Rerun`] value is displayed, copied, saved and run. ncu's launch selection was measured on an H200 with
//! ncu 2025.3; its rules are in [`launch_skip`] and [`nvtx`], its limits in [`warnings`].

mod alternatives;
pub mod capture_range;
pub mod collect;
pub mod command;
pub mod confirm;
mod facts;
pub mod graph;
pub mod jobs;
pub mod launch_skip;
pub mod launchers;
pub mod match_results;
pub mod ncu;
pub mod ncu_builder;
pub mod ncu_report_selection;
pub mod nvtx;
pub mod options;
pub mod parts;
pub mod plan;
pub mod processes;
pub mod program;
pub mod ranges;
pub mod recipes;
pub mod request;
pub mod rocprof;
pub mod script;
pub mod select_launches;
pub mod shell;
pub mod tracer_measure;
mod tuning_trials;
pub mod verify;
pub mod warning;
pub mod warnings;

pub use collect::{Collect, Cost};
pub use command::{Alternative, CommandPart, PartId, Rerun, Selects};
pub use nvtx::{Enclosing, RangeName};
pub use options::{Base, CacheControl, ClockControl, OpenedBy, Options, Profiler, Replay, Within};
pub use plan::{Plan, Target, plan};
pub use request::{Choose, Picked, Request};
pub use verify::{ProfiledResult, Verdict, verify};
pub use warning::Warning;
