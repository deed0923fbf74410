//! `warpscope run`, `attach` and `runs`: records programs, and manages recorded runs.

pub mod attach;
pub mod begin;
pub mod files;
pub mod follow;
pub mod list;
pub mod look;
pub mod plain;
pub mod promises;
pub mod share;
pub mod start;
pub mod supervisor;
pub mod temporary;
pub mod traced;
pub mod tty;
pub mod watch;
