//! Collectives of a job on the common clock: the selected collective and the time window around it

use crate::analysis::ranks::{Aligned, Moment};

#[derive(Clone, Debug, Default)]
pub struct Collectives {
    pub aligned: Aligned,
    /// Index of the selected collective.
    pub selected: usize,
    /// Minimum length of the visible time window, ns.
    window: i64,
}

impl Collectives {
    /// Selects the collective closest to a time, or, without a time, the one with the longest wait. Returns `None` if
    /// there are no matched collectives.
    pub fn from_aligned(aligned: Aligned, near: Option<i64>) -> Option<Self> {
        let selected = near.and_then(|time| aligned.nearest_index(time)).or_else(|| aligned.longest_waits(1).first().copied())?;
        let window = aligned.usual_window();
        Some(Self { aligned, selected, window })
    }

    /// Replaces the collectives and keeps the selection.
    pub fn replace_aligned(&mut self, aligned: Aligned) {
        self.aligned = aligned;
        self.move_selection(0);
    }

    pub fn selected_moment(&self) -> Option<&Moment> {
        self.aligned.list.get(self.selected)
    }

    /// Visible time window, ns: the entire selected collective and its surroundings.
    pub fn visible_span(&self) -> (i64, i64) {
        let Some(m) = self.selected_moment() else { return (0, 1) };
        let length = self.window.max(m.length().saturating_add(m.length() / 4)).max(10);
        let middle = m.first.saturating_add(m.length() / 2);
        (middle.saturating_sub(length / 2), middle.saturating_add(length / 2))
    }

    pub fn move_selection(&mut self, by: isize) {
        let last = self.aligned.list.len().saturating_sub(1);
        self.selected = self.selected.checked_add_signed(by).unwrap_or(0).min(last);
    }

    pub fn select_worst(&mut self) {
        self.selected = self.aligned.longest_waits(1).first().copied().unwrap_or(self.selected);
    }

    /// Halves or doubles the visible time window.
    pub fn zoom_window(&mut self, closer: bool) {
        let all = self.aligned.list.first().zip(self.aligned.list.last()).map_or(i64::MAX, |(a, b)| b.end.saturating_sub(a.first));
        // Below a microsecond, there is nothing more to see, and collectives narrower than a column cannot be told
        // apart.
        let most = self.aligned.usual_window().saturating_mul(16).min(all).max(1_000);
        self.window = if closer { self.window / 2 } else { self.window.saturating_mul(2) }.clamp(1_000, most);
    }
}
