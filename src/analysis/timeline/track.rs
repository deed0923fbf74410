//! Prefix sums of busy time: the difference between the sums at its end and at its start is a window's busy time.

use super::event::{Category, Events};

/// Busy time before a time by category, ns, and number of events that started before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    pub busy: [i64; Category::ALL.len()],
    pub events: usize,
}

/// A source of prefix sums of busy time.
pub trait Track {
    fn before(&self, of: &Events<'_>, time: i64) -> Before;

    /// Memory usage, bytes.
    fn bytes(&self) -> usize;
}
