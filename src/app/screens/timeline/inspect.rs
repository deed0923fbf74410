//! Inspection of the timeline at the cursor

use crate::analysis::timeline::{Content, Event, Events, Gap, Gaps, Group, Lane, Plot, Spot, Timeline, TimelineRow, Window};
use crate::analysis::triage::Idle;
use crate::app::session::Report;
use crate::app::timeline_view::rows::{RowRef, find_device, is_queue};
use crate::model::Profile;

/// A report's timeline, with the data needed to interpret it.
pub struct Look<'a> {
    pub profile: &'a Profile,
    pub timeline: &'a Timeline,
    pub events: Events<'a>,
    pub gaps: Option<&'a Gaps>,
}

/// Content of a line at a given time.
pub enum CursorContent<'a> {
    Event(Spot, Event),
    /// Idle time of the device, and its cause.
    Idle(Gap, Idle),
    Value(&'a Plot, f64),
    Nothing,
}

impl<'a> Look<'a> {
    pub fn from_report(report: &'a Report) -> Option<Self> {
        let profile = report.profile.as_deref()?;
        let timeline = report.lanes.as_ref();
        Some(Self { profile, timeline, events: timeline.event_reader(profile), gaps: report.gaps.as_deref() })
    }

    pub fn group(&self, line: RowRef) -> Option<&'a Group> {
        self.timeline.groups.get(line.group())
    }

    pub fn row(&self, line: RowRef) -> Option<&'a TimelineRow> {
        self.group(line)?.rows.get(line.row()?).map(AsRef::as_ref)
    }

    /// Lanes of a line: the lane itself, all queues of a device, or the most informative lane of a thread.
    pub fn lanes(&self, line: RowRef) -> Vec<(Spot, &'a Lane)> {
        let spot = |row, lane| Spot { group: line.group(), row, lane, at: 0 };
        let Some(group) = self.group(line) else { return Vec::new() };
        match line {
            RowRef::Lane(_, row, lane) => {
                group.rows.get(row).and_then(|r| r.lanes().get(lane)).map(|l| (spot(row, lane), l)).into_iter().collect()
            }
            RowRef::Group(_) if group.union.is_some() => {
                let rows = group.rows.iter().enumerate().filter(|(_, r)| is_queue(r));
                rows.flat_map(|(at, r)| r.lanes().iter().enumerate().map(move |(n, l)| (spot(at, n), l))).collect()
            }
            RowRef::Group(_) => group.main_lane().map(|(row, lane)| (spot(row, 0), lane)).into_iter().collect(),
            RowRef::Plot(..) => Vec::new(),
        }
    }

    /// Event of a line at a given time: the event in progress, or otherwise the first one that begins in the column.
    pub fn event_at(&self, line: RowRef, time: i64, window: Window) -> Option<(Spot, Event)> {
        let lanes = self.lanes(line);
        let running = |(spot, lane): &(Spot, &Lane)| lane.running_at(&self.events, time).map(|at| Spot { at, ..*spot });
        let begins = |(spot, lane): &(Spot, &Lane)| {
            let end = window.column_start(window.column_at(time) + 1);
            let at = lane.count_before(&self.events, time);
            lane.get(at).filter(|id| self.events.span(id.to_event()).0 < end).map(|_| Spot { at, ..*spot })
        };
        let spot = lanes.iter().find_map(running).or_else(|| if window.contains(time) { lanes.iter().find_map(begins) } else { None })?;
        Some((spot, self.timeline.event_at(spot)?.to_event()))
    }

    pub fn content_at(&self, line: RowRef, time: i64, window: Window) -> CursorContent<'a> {
        if let Some((spot, event)) = self.event_at(line, time, window) {
            return CursorContent::Event(spot, event);
        }
        if let Some(Content::Plot(plot)) = self.row(line).map(|r| &r.content) {
            return plot.value_at(self.profile, time).map_or(CursorContent::Nothing, |v| CursorContent::Value(plot, v));
        }
        let idle = || {
            let gaps = self.gaps?;
            let number = find_device(self.timeline, Some(line))?;
            let of_device = self.row(line).map_or(matches!(line, RowRef::Group(_)), is_queue);
            of_device.then_some(())?;
            // Only lines that belong to devices have idle times.
            matches!(self.group(line)?.key, crate::analysis::timeline::GroupKey::Device(_)).then_some(())?;
            Some(CursorContent::Idle(gaps.gap_at(number, time)?, gaps.piece_at(number, time)?))
        };
        idle().unwrap_or(CursorContent::Nothing)
    }
}
