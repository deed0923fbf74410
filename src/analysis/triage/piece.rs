//! A piece of an idle gap.

use super::time_category::Cause;

/// A piece of a gap with a single cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// Start and end in nanoseconds since the session began.
    pub start: i64,
    pub end: i64,
    pub cause: Cause,
    /// Time at which to look up the host's activity, ns. If a host call is behind the piece, the time lies inside that
    /// call.
    pub at: i64,
    /// Index of the thread in `Host::lanes`.
    pub lane: Option<usize>,
    /// Index into [`HostCalls::names`](crate::model::HostCalls::names) of the call behind the piece, which waited for
    /// the GPU or allocated memory.
    pub name: Option<u32>,
    /// Part of the piece in which the thread was between calls, ns; known for [`Cause::Launch`] and [`Cause::Compile`].
    pub between: i64,
    /// Start and end of the gap that the piece is part of, ns; set once the whole gap is explained.
    pub gap: (i64, i64),
}
