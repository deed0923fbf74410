//! A profiler's run: its own process next to the explorer, its log, its progress, and an explanation of how it ended.

pub mod environment;
pub mod exit_diagnosis;
pub mod gpu_utilization;
pub mod host_identity;
pub mod log;
pub mod options;
pub mod process;
mod program_errors;
pub mod progress;
pub mod spawn;
pub mod steps;
pub mod stop_sequence;
pub mod supervise;

pub use exit_diagnosis::{Exit, ExitProblem, Watch, explain_exit};
pub use log::{LogWriter, News, Tail};
pub use progress::Progress;
pub use stop_sequence::Stage;
pub use supervise::{Event, Order, Outcome, supervise_run};
