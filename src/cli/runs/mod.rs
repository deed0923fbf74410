//! `warpscope run`, `attach` and `runs`: records programs and manages recorded runs.

pub mod attach;
pub mod attach_pid;
pub mod files;
pub mod find_run;
pub mod headless;
pub mod list;
pub mod nsys_tmpdir;
pub mod preflight;
pub mod promises;
pub mod run;
pub mod share;
pub mod start;
pub mod supervisor;
pub mod tail;
pub mod traced;
pub mod tty;
pub mod watch;
