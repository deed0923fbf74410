//! Rows of the timeline and their order: folding, hiding, pinning, moving

use crate::analysis::timeline::{Content, Group, GroupKey, RowKey, RowKind, Timeline, TimelineRow};
use std::collections::HashSet;

/// Reference to a line of the screen.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum RowRef {
    /// A device or thread as a whole: index of the group.
    Group(usize),
    /// A lane: indices of the group, the row and the lane.
    Lane(usize, usize, usize),
    /// A value over time: indices of the group and the row.
    Plot(usize, usize),
}

impl RowRef {
    pub fn group(self) -> usize {
        match self {
            Self::Group(g) | Self::Lane(g, ..) | Self::Plot(g, _) => g,
        }
    }

    pub fn row(self) -> Option<usize> {
        match self {
            Self::Group(_) => None,
            Self::Lane(_, row, _) | Self::Plot(_, row) => Some(row),
        }
    }
}

/// Identity of a line, which stays the same as rows are added and removed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LineKey {
    Group(GroupKey),
    Row(RowKey, usize),
}

/// Number of threads whose rows are listed initially: the threads with the most CUDA calls.
const UNFOLDED: usize = 2;
/// Number of lanes listed for a folded row.
const FOLDED_LANES: usize = 3;
/// Maximum number of metrics per device that are listed initially.
const FEW_METRICS: usize = 6;

/// The user's arrangement of rows.
#[derive(Clone, Debug, Default)]
pub struct Arrangement {
    /// Groups that the user folded or unfolded.
    folded: Vec<(GroupKey, bool)>,
    /// Rows whose lanes are all listed.
    deep: HashSet<RowKey>,
    hidden_rows: HashSet<RowKey>,
    hidden_groups: HashSet<GroupKey>,
    /// Pinned rows, in the order of pinning.
    pub pinned: Vec<RowKey>,
    /// Groups in the user's order; all others follow.
    order: Vec<GroupKey>,
}

impl Arrangement {
    pub fn is_folded(&self, timeline: &Timeline, group: usize) -> bool {
        let Some(g) = timeline.groups.get(group) else { return false };
        if let Some((_, folded)) = self.folded.iter().find(|f| f.0 == g.key) {
            return *folded;
        }
        match g.key {
            GroupKey::Device(_) | GroupKey::Machine => false,
            GroupKey::Metrics(_) => g.rows.len() > FEW_METRICS,
            GroupKey::Thread(..) => {
                let before = timeline.groups[..group].iter().filter(|o| matches!(o.key, GroupKey::Thread(..)) && o.is_relevant()).count();
                before >= UNFOLDED
            }
        }
    }

    /// Returns true if some lanes of a row are not listed.
    pub fn is_truncated(&self, row: &TimelineRow) -> bool {
        row.lanes().len() > FOLDED_LANES && !self.deep.contains(&row.key)
    }

    pub fn is_pinned(&self, key: RowKey) -> bool {
        self.pinned.contains(&key)
    }

    /// Number of hidden rows and groups.
    pub fn hidden_count(&self) -> usize {
        self.hidden_rows.len() + self.hidden_groups.len()
    }

    fn ordered_groups(&self, timeline: &Timeline) -> Vec<usize> {
        let mut groups: Vec<usize> = (0..timeline.groups.len()).collect();
        groups.sort_by_key(|&g| self.order.iter().position(|k| *k == timeline.groups[g].key).unwrap_or(usize::MAX));
        groups
    }

    /// The lines: pinned rows first, then the groups.
    pub fn visible_lines(&self, timeline: &Timeline) -> Vec<RowRef> {
        let mut out = Vec::new();
        let place = |key: RowKey| {
            let group = timeline.groups.iter().position(|g| g.key == key.group)?;
            Some((group, timeline.groups[group].rows.iter().position(|r| r.key == key)?))
        };
        for (group, row) in self.pinned.iter().filter_map(|&key| place(key)) {
            self.push_row(&mut out, group, row, &timeline.groups[group].rows[row]);
        }
        let lonely = timeline.groups.iter().all(|g| !g.is_relevant());
        for group in self.ordered_groups(timeline) {
            let g = &timeline.groups[group];
            if self.hidden_groups.contains(&g.key) || !(g.is_relevant() || lonely) {
                continue;
            }
            out.push(RowRef::Group(group));
            if self.is_folded(timeline, group) {
                continue;
            }
            for (row, r) in g.rows.iter().enumerate() {
                if !self.hidden_rows.contains(&r.key) && !self.pinned.contains(&r.key) {
                    self.push_row(&mut out, group, row, r);
                }
            }
        }
        out
    }

    fn push_row(&self, out: &mut Vec<RowRef>, group: usize, row: usize, r: &TimelineRow) {
        match &r.content {
            Content::Plot(_) => out.push(RowRef::Plot(group, row)),
            Content::Lanes(lanes) => {
                let shown = if self.is_truncated(r) { FOLDED_LANES } else { lanes.len() };
                out.extend((0..shown).map(|lane| RowRef::Lane(group, row, lane)));
            }
        }
    }

    /// Folds or unfolds a line's row if it has many lanes, otherwise its group.
    pub fn toggle_fold(&mut self, timeline: &Timeline, line: RowRef) {
        let Some(g) = timeline.groups.get(line.group()) else { return };
        if let Some(row) = line.row().and_then(|r| g.rows.get(r)).filter(|r| r.lanes().len() > FOLDED_LANES) {
            if !self.deep.remove(&row.key) {
                self.deep.insert(row.key);
            }
            return;
        }
        let folded = self.is_folded(timeline, line.group());
        self.folded.retain(|f| f.0 != g.key);
        self.folded.push((g.key, !folded));
    }

    /// Ensures that a lane is listed: shows and unfolds its group and row.
    pub fn reveal_lane(&mut self, timeline: &Timeline, group: usize, row: usize, lane: usize) {
        let Some(g) = timeline.groups.get(group) else { return };
        let Some(r) = g.rows.get(row) else { return };
        self.hidden_groups.remove(&g.key);
        self.hidden_rows.remove(&r.key);
        if self.is_folded(timeline, group) && !self.pinned.contains(&r.key) {
            self.folded.retain(|f| f.0 != g.key);
            self.folded.push((g.key, false));
        }
        if lane >= FOLDED_LANES {
            self.deep.insert(r.key);
        }
    }

    /// Hides the row or group of a line; [`Self::show_all`] lists everything again.
    pub fn hide_line(&mut self, timeline: &Timeline, line: RowRef) {
        let Some(g) = timeline.groups.get(line.group()) else { return };
        match line.row().and_then(|r| g.rows.get(r)) {
            Some(row) => {
                self.pinned.retain(|p| *p != row.key);
                self.hidden_rows.insert(row.key);
            }
            None => {
                self.hidden_groups.insert(g.key);
            }
        }
    }

    pub fn show_all(&mut self) {
        self.hidden_rows.clear();
        self.hidden_groups.clear();
    }

    /// Pins a line's row to the top, or unpins it; for a group, pins its most informative row.
    pub fn toggle_pin(&mut self, timeline: &Timeline, line: RowRef) {
        let Some(g) = timeline.groups.get(line.group()) else { return };
        let Some(row) = g.rows.get(line.row().or_else(|| g.main_lane().map(|t| t.0)).unwrap_or(0)) else { return };
        if self.pinned.contains(&row.key) {
            self.pinned.retain(|p| *p != row.key);
        } else {
            self.pinned.push(row.key);
        }
    }

    /// Moves a line's pinned row, or otherwise its group, one place up or down.
    pub fn move_line(&mut self, timeline: &Timeline, line: RowRef, up: bool) {
        let Some(g) = timeline.groups.get(line.group()) else { return };
        let pinned = line.row().and_then(|r| g.rows.get(r)).and_then(|r| self.pinned.iter().position(|p| *p == r.key));
        if let Some(at) = pinned {
            swap_adjacent(&mut self.pinned, at, up);
            return;
        }
        let listed: Vec<GroupKey> = self.ordered_groups(timeline).into_iter().map(|g| timeline.groups[g].key).collect();
        let hidden = |key: &GroupKey| self.hidden_groups.contains(key) || timeline.groups.iter().any(|g| g.key == *key && !g.is_relevant());
        let (mut shown, rest): (Vec<GroupKey>, Vec<GroupKey>) = listed.into_iter().partition(|k| !hidden(k));
        let Some(at) = shown.iter().position(|k| *k == g.key) else { return };
        swap_adjacent(&mut shown, at, up);
        shown.extend(rest);
        self.order = shown;
    }
}

fn swap_adjacent<T>(list: &mut [T], at: usize, up: bool) {
    let other = if up { at.checked_sub(1) } else { Some(at + 1) };
    if let Some(other) = other.filter(|&o| o < list.len()) {
        list.swap(at, other);
    }
}

pub fn line_key(timeline: &Timeline, line: RowRef) -> Option<LineKey> {
    let group = timeline.groups.get(line.group())?;
    Some(match line {
        RowRef::Group(_) => LineKey::Group(group.key),
        RowRef::Lane(_, row, lane) => LineKey::Row(group.rows.get(row)?.key, lane),
        RowRef::Plot(_, row) => LineKey::Row(group.rows.get(row)?.key, 0),
    })
}

/// Device whose idle times belong to a line: the line's own device, or otherwise the first one.
pub fn find_device(timeline: &Timeline, line: Option<RowRef>) -> Option<u32> {
    let of = |g: &Group| match g.key {
        GroupKey::Device(d) | GroupKey::Metrics(d) => Some(d),
        _ => None,
    };
    line.and_then(|l| of(timeline.groups.get(l.group())?)).or_else(|| timeline.groups.iter().find_map(of))
}

/// Returns true if a row contains work on a device.
pub fn is_queue(row: &TimelineRow) -> bool {
    row.key.kind == RowKind::Queue
}
