//! The built-in tracer: a shared object that the CUDA driver loads into a program, and the code that sets it up.

mod control;
mod failed_start;
mod hidden_gpu;
mod join;
mod libraries;
mod obstacle;
mod plan;
mod refusals;
mod start;

pub use control::{Answer, Silent, send_command};
pub use failed_start::{explain_failed_start, is_there};
pub use hidden_gpu::find_hidden_gpu;
pub use join::join_traces;
pub use libraries::{Library, find_libraries};
pub use obstacle::{Obstacle, find_obstacle, is_profiler, loads_address_sanitizer, try_to_write};
pub use plan::{Chosen, Measure, NvtxRange, Only, question_names};
pub use refusals::{NEW_CUPTI, OTHER_CUPTI, Refusal, explain_cuda_error, explain_cupti_error, explain_launch_error};
pub use start::{Attachable, Frames, Gate, Record, Unable, can_be_preloaded, traced_command, write_attachable, write_object};

/// The shared object; empty if there is none for this platform.
pub const OBJECT: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/tracer.so"));
