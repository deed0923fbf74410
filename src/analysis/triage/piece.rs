//! Part of an idle gap.

use super::time_category::Cause;

/// A part of a gap with one cause.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// ns.
    pub start: i64,
    /// ns.
    pub end: i64,
    pub cause: Cause,
    /// Time of the host activity, ns; inside the host call behind the piece, if any.
    pub at: i64,
    /// Index of the thread in `Host::lanes`.
    pub lane: Option<usize>,
    /// Index into [`HostCalls::names`](crate::model::HostCalls::names) of the call behind it, which waited for the
    /// GPU or allocated.
    pub name: Option<u32>,
}
