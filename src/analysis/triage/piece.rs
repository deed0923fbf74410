//! A part of an idle time.

use super::part::Cause;

/// A part of a gap with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// ns.
    pub start: i64,
    /// ns.
    pub end: i64,
    pub cause: Cause,
    /// When the host was at it, ns: inside of the call behind it.
    pub at: i64,
    /// Index of the thread that it is about among `Host::lanes`.
    pub lane: Option<usize>,
    /// Index into [`HostCalls::names`](crate::model::HostCalls::names) of the call behind it: that waited for the GPU, that allocated.
    pub name: Option<u32>,
}
