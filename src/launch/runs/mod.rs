//! A profiler's run: its own process beside the explorer, its log, how far it is, and why it ended as it did.

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

pub use exits::{Exit, Finding, Watch, explain};
pub use log::{LogWriter, News, Tail};
pub use progress::Progress;
pub use stage::Stage;
pub use supervise::{Event, Order, Outcome, supervise};
