//! Movement through time: by columns, windows, events, matches, idle times, and links between events

use super::{TimelineScreen, lane_columns};
use crate::analysis::timeline::{Event, Spot, Timeline, link};
use crate::analysis::triage::Phase;
use crate::app::actions::ActionId;
use crate::app::msg::Pointer;
use crate::app::screen::{At, Response, ScreenContext};
use crate::app::timeline_view::rows::find_device;
use crate::app::timeline_view::{LineKey, RowRef, Viewport};
use crate::model::Nanos;
use std::sync::Arc;

/// Row index of the map of the whole run.
pub const MAP: usize = usize::MAX;
/// Zoom factor of a key press.
const ZOOM: (i64, i64) = (1, 2);
/// Zoom factor of a wheel step.
const WHEEL: (i64, i64) = (3, 4);
/// Distance of a pan, in eighths of the window.
const PAN: i64 = 4;
/// After a jump to an event that was too small to see, the window is roughly this many times as long as the event.
const AROUND: i64 = 8;

fn zoom_ratio((by, of): (i64, i64), inwards: bool) -> (i64, i64) {
    if inwards { (by, of) } else { (of, by) }
}

impl TimelineScreen {
    /// Moves through time; returns `None` for other actions.
    pub(super) fn move_in_time(&mut self, id: ActionId, cx: &ScreenContext<'_>) -> Option<Response> {
        let (Some(place), Some(report)) = (self.place, cx.report()) else { return None };
        let timeline = Arc::clone(&report.lanes);
        let (span, columns) = (timeline.reach, lane_columns(cx.session.size));
        // A move by the user cancels the pending destination.
        let wanted = self.wanted.take();
        let jump = |screen: &mut Self, to: Viewport| {
            screen.push_history(&timeline);
            Some(to)
        };
        let moved = match id {
            ActionId::TimeLeft => Some(place.step_cursor(-1, columns, span)),
            ActionId::TimeRight => Some(place.step_cursor(1, columns, span)),
            ActionId::PanLeft => Some(place.pan_by_eighths(-PAN, span, columns)),
            ActionId::PanRight => Some(place.pan_by_eighths(PAN, span, columns)),
            ActionId::ZoomIn => Some(place.zoom_at(place.cursor, zoom_ratio(ZOOM, true), span, columns)),
            ActionId::ZoomOut => Some(place.zoom_at(place.cursor, zoom_ratio(ZOOM, false), span, columns)),
            ActionId::ZoomAll => {
                // On the second press, include thread activity before and after the run.
                let shown = (place.start, place.end) == timeline.span;
                let all = Viewport::whole_span(if shown { timeline.reach } else { timeline.span });
                jump(self, Viewport { cursor: place.cursor, ..all }.clamp_to_span(timeline.reach, columns))
            }
            ActionId::TimeStart => jump(self, Viewport { cursor: timeline.span.0, ..place }.scroll_to_cursor(span, columns)),
            ActionId::TimeEnd => jump(self, Viewport { cursor: timeline.span.1 - 1, ..place }.scroll_to_cursor(span, columns)),
            ActionId::ZoomTo => return Some(self.zoom_to(cx, columns)),
            ActionId::NextEvent => return Some(self.next(cx, true)),
            ActionId::PreviousEvent => return Some(self.next(cx, false)),
            ActionId::NextGap => return Some(self.go_to_gap(cx, true)),
            ActionId::PreviousGap => return Some(self.go_to_gap(cx, false)),
            ActionId::LongestGap => return Some(self.go_to_longest_gap(cx)),
            ActionId::Follow => return Some(self.follow_link(cx, columns)),
            ActionId::Earlier => return Some(self.go_through_history(&timeline, true)),
            ActionId::Later => return Some(self.go_through_history(&timeline, false)),
            _ => {
                self.wanted = wanted;
                return None;
            }
        };
        // A move by the user ends the chain of followed links.
        self.origin = None;
        self.place = moved;
        Some(Response::none())
    }

    /// Zooms to the marked window, or to the event or idle time at the cursor.
    fn zoom_to(&mut self, cx: &ScreenContext<'_>, columns: usize) -> Response {
        let Some(look) = Self::look(cx) else { return Response::none() };
        let event = || self.event_at_cursor(&look, columns).map(|e| look.events.span(e));
        let gap = || {
            let number = find_device(look.timeline, self.current_line())?;
            look.gaps?.gap_at(number, self.place?.cursor).map(|g| (g.start, g.end))
        };
        let Some((start, end)) = self.marked_window().or_else(event).or_else(gap) else {
            return Response::say(format!(
                "nothing is at the cursor; {} marks a time to zoom from",
                cx.session.key_label(ActionId::SetMark)
            ));
        };
        let span = look.timeline.reach;
        let to = self.place.unwrap_or_default().zoom_to_range(start, end, span, columns);
        self.push_history(look.timeline);
        self.place = Some(Viewport { cursor: if self.mark.is_some() { self.place.map_or(start, |p| p.cursor) } else { start }, ..to });
        Response::none()
    }

    /// Sets the mark at the cursor, or removes it.
    pub(super) fn set_mark(&mut self, cx: &ScreenContext<'_>) -> Response {
        let Some(place) = self.place else { return Response::none() };
        if self.mark == Some(place.cursor) {
            self.mark = None;
            return Response::say("mark removed");
        }
        self.mark = Some(place.cursor);
        let (zoom, narrow) = (cx.session.key_label(ActionId::ZoomTo), cx.session.key_label(ActionId::Narrow));
        Response::say(format!("marked; move the cursor to measure, {zoom} zooms to what is between, {narrow} narrows all screens to it"))
    }

    /// Marks the next phase of the run after the current mark, or otherwise the phase at the cursor, and shows it.
    pub(super) fn mark_phase(&mut self, cx: &ScreenContext<'_>) -> Response {
        let (Some(look), Some(place)) = (Self::look(cx), self.place) else { return Response::none() };
        let Some(triage) = cx.report().and_then(|r| r.whole_triage()) else {
            return Response::say("the phases of the run are not known yet");
        };
        let left_out = triage.left_out.iter().map(|l| (l.start, l.end, l.phase));
        let mut phases: Vec<(i64, i64, Phase)> = left_out.chain([(triage.window.0, triage.window.1, Phase::Steady)]).collect();
        phases.sort_unstable_by_key(|p| p.0);
        if phases.len() < 2 {
            return Response::say("the run has one phase: nothing is left out of its verdict");
        }
        let now = self.marked_window().and_then(|w| phases.iter().position(|p| (p.0, p.1) == w));
        let at_cursor = || phases.iter().position(|p| p.0 <= place.cursor && place.cursor < p.1).unwrap_or(0);
        let (start, end, phase) = phases[now.map_or_else(at_cursor, |at| (at + 1) % phases.len())];
        self.push_history(look.timeline);
        let to = place.zoom_to_range(start, end, look.timeline.reach, lane_columns(cx.session.size));
        (self.mark, self.place, self.origin) = (Some(start), Some(Viewport { cursor: end, ..to }), None);
        let narrow = cx.session.key_label(ActionId::Narrow);
        Response::say(format!("{}, {}: {narrow} narrows all screens to it", phase.word(), Nanos(end - start)))
    }

    /// Goes to the next or previous event of the row; during a search, to the next or previous match.
    fn next(&mut self, cx: &ScreenContext<'_>, forward: bool) -> Response {
        if self.search.as_ref().is_some_and(|s| s.matches.total > 0) {
            return self.next_match(cx, forward);
        }
        let (Some(look), Some(line), Some(place)) = (Self::look(cx), self.current_line(), self.place) else { return Response::none() };
        let start = |(_, lane): &(Spot, &crate::analysis::timeline::Lane)| {
            let at = if forward {
                lane.count_before(&look.events, place.cursor.saturating_add(1))
            } else {
                lane.count_before(&look.events, place.cursor).checked_sub(1)?
            };
            lane.get(at).map(|id| look.events.span(id.to_event()).0)
        };
        let starts = look.lanes(line).iter().filter_map(start).collect::<Vec<_>>();
        let found = if forward { starts.into_iter().min() } else { starts.into_iter().max() };
        let Some(cursor) = found else {
            return Response::say(if forward { "no later event in this row" } else { "no earlier event in this row" });
        };
        let (span, columns) = (look.timeline.reach, lane_columns(cx.session.size));
        self.origin = None;
        self.place = Some(Viewport { cursor, ..place }.scroll_to_cursor(span, columns));
        Response::none()
    }

    /// Goes to the next or previous match in time, across all rows.
    fn next_match(&mut self, cx: &ScreenContext<'_>, forward: bool) -> Response {
        let (Some(look), Some(place), Some(search)) = (Self::look(cx), self.place, &self.search) else { return Response::none() };
        // Several matches may begin at the same time: order them by row.
        let here = (place.cursor, self.current_line().map_or((0, 0, 0), lane_order));
        let mut best: Option<(Key, Spot)> = None;
        for (g, group) in look.timeline.groups.iter().enumerate() {
            for (r, row) in group.rows.iter().enumerate() {
                for (l, lane) in row.lanes().iter().enumerate() {
                    let own = (g, r, l);
                    let first = lane.count_before(&look.events, place.cursor.saturating_add(i64::from(own <= here.1 && forward)));
                    let first =
                        if !forward && own < here.1 { lane.count_before(&look.events, place.cursor.saturating_add(1)) } else { first };
                    let Some(at) = search.matches.next(row.key, l, first, forward) else { continue };
                    let Some(id) = lane.get(at) else { continue };
                    let key = (look.events.span(id.to_event()).0, own);
                    if best.as_ref().is_none_or(|b| if forward { key < b.0 } else { key > b.0 }) {
                        best = Some((key, Spot { group: g, row: r, lane: l, at }));
                    }
                }
            }
        }
        let Some((_, spot)) = best else {
            return Response::say(if forward { "no later match" } else { "no earlier match" });
        };
        self.go_to_spot(cx, spot);
        Response::none()
    }

    /// Goes to the first match at or after the cursor, or, if there is none, to the first match of all.
    pub(super) fn seek_match(&mut self, cx: &ScreenContext<'_>) -> Response {
        let (Some(place), Some(search)) = (self.place, &self.search) else { return Response::none() };
        if search.matches.total == 0 {
            return Response::none();
        }
        self.place = Some(Viewport { cursor: place.cursor.saturating_sub(1), ..place });
        let answer = self.next_match(cx, true);
        if answer.say.is_some() {
            self.place = Some(Viewport { cursor: i64::MIN / 4, ..place });
            let _ = self.next_match(cx, true);
        }
        Response::none()
    }

    /// Goes to the next or previous idle time of the device that is at least one column wide.
    fn go_to_gap(&mut self, cx: &ScreenContext<'_>, forward: bool) -> Response {
        let (Some(look), Some(place)) = (Self::look(cx), self.place) else { return Response::none() };
        let Some(gaps) = look.gaps else { return Response::say("idle times are still being worked out") };
        let Some(number) = find_device(look.timeline, self.current_line()) else { return Response::say("no device is in this report") };
        let columns = lane_columns(cx.session.size);
        let window = place.window(columns);
        let Some(gap) = gaps.next(number, place.cursor, window.column_width(), forward) else {
            let step = Nanos(window.column_width());
            let way = if forward { "later" } else { "earlier" };
            return Response::say(format!("GPU {number} has no {way} idle time of {step} or more; zoom in for shorter ones"));
        };
        let timeline = Arc::clone(&cx.report().map(|r| Arc::clone(&r.lanes)).unwrap_or_default());
        self.place = Some(Viewport { cursor: gap.start, ..place }.scroll_to_cursor(timeline.reach, columns));
        self.select_device(&timeline, number);
        Response::none()
    }

    /// Goes to the longest idle time of the device, or to the next longest if the cursor is still where this key left
    /// it. Half of the idle time's length is visible on either side.
    fn go_to_longest_gap(&mut self, cx: &ScreenContext<'_>) -> Response {
        let (Some(look), Some(place), Some(report)) = (Self::look(cx), self.place, cx.report()) else { return Response::none() };
        let Some(gaps) = look.gaps else { return Response::say("idle times are still being worked out") };
        let Some(number) = find_device(look.timeline, self.current_line()) else { return Response::say("no device is in this report") };
        // The next longest is relative to the gap at which this key left the cursor; from anywhere else, start over.
        let after = self.longest_gap.filter(|&start| start == place.cursor).unwrap_or(i64::MIN);
        let Some(gap) = gaps.next_longest(number, after) else {
            return Response::say(format!("GPU {number} has no idle time"));
        };
        self.longest_gap = Some(gap.start);
        let timeline = Arc::clone(&report.lanes);
        let columns = lane_columns(cx.session.size);
        self.push_history(&timeline);
        let room = (gap.end - gap.start).max(1) / 2;
        let around = Viewport { start: gap.start.saturating_sub(room), end: gap.end.saturating_add(room), cursor: gap.start };
        self.place = Some(around.clamp_to_span(timeline.reach, columns));
        self.select_device(&timeline, number);
        Response::none()
    }

    /// Selects the line of a device, unless one of its lines is already selected; ends the chain of followed links.
    fn select_device(&mut self, timeline: &Timeline, number: u32) {
        let group = timeline.groups.iter().find(|g| g.key == crate::analysis::timeline::GroupKey::Device(number)).map(|g| g.key);
        self.origin = None;
        // The cause is visible on the device's own line and on its streams.
        let on_device = self.current_line().and_then(|l| timeline.groups.get(l.group())).map(|g| g.key) == group;
        if !on_device {
            self.select_key(timeline, group.map(LineKey::Group));
        }
    }

    /// Goes to the event linked to the event at the cursor; from idle time, to the operation that ends it.
    fn follow_link(&mut self, cx: &ScreenContext<'_>, columns: usize) -> Response {
        let Some(look) = Self::look(cx) else { return Response::none() };
        let event = self.event_at_cursor(&look, columns);
        let next = match event {
            Some(event) => link::follow_link(look.timeline, &look.events, event, self.origin),
            None => match self.operation_after_gap(&look, columns) {
                None => return Response::say("no event is at the cursor"),
                next => next,
            },
        };
        let Some(next) = next else { return Response::say("the report does not say what belongs to this") };
        let Some(spot) = look.timeline.find_event(&look.events, next.into()) else { return Response::say("it is not in the timeline") };
        if matches!(event, Some(Event::Launch(_) | Event::Mem(_) | Event::Graph(_))) {
            self.origin = event;
        }
        let origin = self.origin;
        self.go_to_spot(cx, spot);
        self.origin = origin;
        Response::none()
    }

    /// Goes to an event; keeps the window if the event is visible and large enough.
    fn go_to_spot(&mut self, cx: &ScreenContext<'_>, spot: Spot) {
        let Some(report) = cx.report() else { return };
        let (Some(profile), timeline) = (&report.profile, Arc::clone(&report.lanes)) else { return };
        let Some(id) = timeline.event_at(spot) else { return };
        let (start, end) = timeline.event_reader(profile).span(id.to_event());
        let (span, columns) = (timeline.reach, lane_columns(cx.session.size));
        let place = self.place.unwrap_or_else(|| Viewport::whole_span(span));
        let window = place.window(columns);
        self.push_history(&timeline);
        self.place = Some(if window.contains(start) && end - start >= window.column_width() && end - start <= window.length() {
            Viewport { cursor: start, ..place }
        } else if end - start >= window.column_width() && end - start <= window.length() / 2 {
            Viewport { cursor: start, start: start - place.length() / 3, end: start - place.length() / 3 + place.length() }
                .clamp_to_span(span, columns)
        } else {
            let room = (end - start).max(1).saturating_mul(AROUND / 2);
            let around = Viewport { start: start.saturating_sub(room), end: end.saturating_add(room), cursor: start };
            around.clamp_to_span(span, columns)
        });
        self.reveal_spot(&timeline, spot);
    }

    fn reveal_spot(&mut self, timeline: &Timeline, spot: Spot) {
        self.arrangement.reveal_lane(timeline, spot.group, spot.row, spot.lane);
        let row = timeline.groups.get(spot.group).and_then(|g| g.rows.get(spot.row));
        self.rebuild_lines(timeline, row.map(|r| LineKey::Row(r.key, spot.lane)));
    }

    /// Goes to a place; returns false if its data is still incomplete.
    pub(super) fn go_to(&mut self, at: &At, cx: &ScreenContext<'_>, columns: usize) -> bool {
        let Some(report) = cx.report() else { return false };
        let (Some(profile), timeline) = (&report.profile, Arc::clone(&report.lanes)) else { return false };
        let of = timeline.event_reader(profile);
        let spot = at.event.and_then(|event| timeline.find_event(&of, event.into()));
        let length = (at.end - at.start).max(1);
        let of_event = at.event.map(|event| of.span(event)).filter(|&(start, end)| end - start < length);
        // Leave a margin, narrower if the caller's window is longer than the event and so already includes
        // surroundings.
        let room = match at.event {
            _ if self.exact => 0,
            _ if of_event.is_some() => length / 8,
            Some(_) => length.saturating_mul(AROUND / 2),
            None => length / 4,
        };
        let begin = match at.event {
            Some(Event::Launch(launch)) if self.exact => profile.launches.start(launch as usize),
            _ => of_event.map_or(at.start, |event| event.0),
        };
        let around = Viewport { start: at.start.saturating_sub(room), end: at.end.saturating_add(room), cursor: begin };
        self.place = Some(Viewport { cursor: begin, ..around.clamp_to_span(timeline.reach, columns) });
        match spot {
            Some(spot) => self.reveal_spot(&timeline, spot),
            None => {
                let group = find_device(&timeline, None).map(|d| LineKey::Group(crate::analysis::timeline::GroupKey::Device(d)));
                self.select_key(&timeline, group);
            }
        }
        // Thread data may still be loading and may extend the timeline in both directions.
        timeline.is_complete() || (spot.is_some() && timeline.span.0 <= at.start - room && at.end + room <= timeline.span.1)
    }

    /// Goes back or forward in the history of places.
    fn go_through_history(&mut self, timeline: &Timeline, back: bool) -> Response {
        let here = self.place.map(|p| (p, self.current_key(timeline)));
        let (from, to) = if back { (&mut self.earlier, &mut self.later) } else { (&mut self.later, &mut self.earlier) };
        let Some((place, key)) = from.pop() else {
            return Response::say(if back { "this is the first place" } else { "this is the last place" });
        };
        to.extend(here);
        self.place = Some(place);
        self.select_key(timeline, key);
        Response::none()
    }

    /// Handles a pointer event.
    pub(super) fn handle_pointer(&mut self, pointer: Pointer, cx: &ScreenContext<'_>) -> Response {
        let (Some(place), Some(report)) = (self.place, cx.report()) else { return Response::none() };
        let (span, columns) = (report.lanes.reach, lane_columns(cx.session.size));
        let window = place.window(columns);
        let time = |column: usize| window.column_start(column.min(columns - 1)) + window.column_width() / 2;
        match pointer {
            // A press on the map of the whole run moves the cursor to that time.
            Pointer::Press(MAP, column, _) => {
                let whole = report.lanes.span;
                let cursor = crate::analysis::timeline::Window::new(whole.0, whole.1, columns).column_start(column.min(columns - 1));
                self.push_history(&Arc::clone(&report.lanes));
                let half = place.length() / 2;
                self.place =
                    Some(Viewport { cursor, start: cursor - half, end: cursor - half + place.length() }.clamp_to_span(span, columns));
                self.grabbed = None;
            }
            Pointer::Press(row, column, select) => {
                self.selected = row.min(self.lines.len().saturating_sub(1));
                self.grabbed = Some(column);
                self.mark = if select { Some(time(column)) } else { self.mark };
                self.origin = None;
                self.place = Some(Viewport { cursor: time(column), ..place });
            }
            Pointer::Drag(column, true) => self.place = Some(Viewport { cursor: time(column), ..place }),
            Pointer::Drag(column, false) => {
                let Some(from) = self.grabbed.replace(column) else { return Response::none() };
                let by = window.column_start(from.min(columns)) - window.column_start(column.min(columns));
                self.place = Some(place.move_by(by, span, columns));
            }
            Pointer::Wheel(column, by) => {
                self.place = Some(place.zoom_at(time(column), zoom_ratio(WHEEL, by < 0), span, columns));
            }
        }
        Response::none()
    }
}

/// Start time and lane: group, row, lane.
type Key = (i64, (usize, usize, usize));

fn lane_order(line: RowRef) -> (usize, usize, usize) {
    match line {
        RowRef::Group(g) => (g, 0, 0),
        RowRef::Lane(g, r, l) => (g, r, l),
        RowRef::Plot(g, r) => (g, r, 0),
    }
}
