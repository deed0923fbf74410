//! A profiler's run: its own process next to the explorer, its log, its progress, and the explanation of its end.

pub mod busy;
pub mod exits;
pub mod facts;
pub mod log;
pub mod options;
pub mod place;
pub mod process;
pub mod progress;
pub mod spawn;
pub mod stage;
pub mod steps;
pub mod supervise;

pub use exits::{Exit, Finding, Watch, explain_exit};
pub use log::{LogWriter, News, Tail};
pub use progress::Progress;
pub use stage::Stage;
pub use supervise::{Event, Order, Outcome, supervise_run};
