//! Something whose busy time is known at any time: from two of them follows that of any window.

use super::event::{Category, Events};

/// Busy time before some time by category, ns, and how many events began before it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Before {
    pub busy: [i64; Category::ALL.len()],
    pub events: usize,
}

/// Something whose busy time before any time is known.
pub trait Track {
    fn before(&self, of: &Events<'_>, time: i64) -> Before;

    /// Bytes that it takes.
    fn bytes(&self) -> usize;
}
