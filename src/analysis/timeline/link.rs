//! Links between events: a call and the operation that it started, and the ranges around them.

use super::event::{Event, EventId, Events};
use super::group::{GroupKey, RowKind, Spot, Timeline};
use crate::model::{CallKind, Profile};

/// Maximum number of copies to search for the one that a call started; it begins soon after the call.
const MOST_COPIES: usize = 1 << 20;

/// Process and thread of an event on the host, or of the call that started an event on a device.
pub fn event_thread(profile: &Profile, event: Event) -> Option<(u32, u32)> {
    let thread = |t: u32| profile.threads.get(t as usize).map(|t| (t.pid, t.tid));
    match event {
        Event::Launch(row) | Event::LaunchCall(row) => {
            let place = profile.places.get(profile.launches.place(row as usize)?.0 as usize)?;
            Some((place.pid.unwrap_or_default(), place.thread?))
        }
        Event::Mem(_) | Event::Graph(_) => thread_of_call(profile, originating_call(profile, event)?),
        Event::Call(_) => thread_of_call(profile, event),
        Event::Range(row) => profile.ranges.threads.get(profile.ranges.get(row as usize).thread as usize).copied(),
        Event::Os(row) => thread(*profile.os_calls.thread.get(row as usize)?),
        Event::Overhead(row) => thread(profile.overhead.get(row as usize)?.thread),
    }
}

fn thread_of_call(profile: &Profile, call: Event) -> Option<(u32, u32)> {
    match call {
        Event::Call(row) => Some(profile.calls.thread_of(row as usize)),
        Event::LaunchCall(_) => event_thread(profile, call),
        _ => None,
    }
}

/// Returns the call that started an event on a device.
pub fn originating_call(profile: &Profile, event: Event) -> Option<Event> {
    match event {
        Event::Launch(row) => profile.launches.call(row as usize).map(|_| Event::LaunchCall(row)),
        Event::Mem(row) => {
            let mem = profile.memops.get(row as usize)?;
            mem.call.map(Event::Call).or(mem.launch.map(Event::LaunchCall))
        }
        Event::Graph(row) => {
            let start = profile.graphs.get(row as usize)?.call?;
            let from = profile.calls.start.partition_point(|&s| s < start);
            let at = (from..profile.calls.len())
                .take_while(|&c| profile.calls.start[c] == start)
                .find(|&c| profile.calls.kind(c) == CallKind::GraphLaunch)?;
            u32::try_from(at).ok().map(Event::Call)
        }
        _ => None,
    }
}

/// Returns the first event that a call started on a device.
pub fn started_operation(profile: &Profile, event: Event) -> Option<Event> {
    match event {
        Event::LaunchCall(row) => profile.launches.has_start_times().then_some(Event::Launch(row)),
        Event::Call(row) => {
            let start = *profile.calls.start.get(row as usize)?;
            if profile.calls.kind(row as usize) == CallKind::GraphLaunch {
                let at = profile.graphs.iter().position(|g| g.call == Some(start))?;
                return u32::try_from(at).ok().map(Event::Graph);
            }
            let from = first_copy(profile, start);
            let found =
                (from..profile.memops.len()).take(MOST_COPIES).find(|&m| profile.memops.get(m).is_some_and(|m| m.call == Some(row)))?;
            u32::try_from(found).ok().map(Event::Mem)
        }
        _ => None,
    }
}

/// Returns the first copy that starts at or after a time.
fn first_copy(profile: &Profile, time: i64) -> usize {
    let (mut from, mut to) = (0, profile.memops.len());
    while from < to {
        let middle = from + (to - from) / 2;
        if profile.memops.get(middle).is_some_and(|m| m.start.0 < time) {
            from = middle + 1;
        } else {
            to = middle;
        }
    }
    from
}

/// Ranges, operators and functions open on a thread at the given time, outermost first.
pub fn open_ranges(timeline: &Timeline, of: &Events<'_>, thread: (u32, u32), time: i64) -> Vec<EventId> {
    let Some(group) = timeline.groups.iter().find(|g| g.key == GroupKey::Thread(thread.0, thread.1)) else { return Vec::new() };
    let rows = group.rows.iter().filter(|r| matches!(r.key.kind, RowKind::Ranges | RowKind::Operators | RowKind::Python));
    let mut out: Vec<EventId> = rows.flat_map(|r| r.lanes()).filter_map(|lane| lane.get(lane.running_at(of, time)?)).collect();
    out.sort_by_key(|id| {
        let (start, end) = of.span(id.to_event());
        (start, std::cmp::Reverse(end))
    });
    out
}

/// Returns the first call inside a range that started an operation on a device.
pub fn first_launch(timeline: &Timeline, of: &Events<'_>, range: Event) -> Option<Event> {
    let (pid, tid) = event_thread(of.profile, range)?;
    let (start, end) = of.span(range);
    let group = timeline.groups.iter().find(|g| g.key == GroupKey::Thread(pid, tid))?;
    let api = group.rows.iter().find(|r| r.key.kind == RowKind::Api)?;
    let first = |lane: &super::lane::Lane| {
        let mut at = lane.count_before(of, start);
        while let Some(id) = lane.get(at).filter(|id| of.span(id.to_event()).0 < end) {
            if started_operation(of.profile, id.to_event()).is_some() {
                return Some(id.to_event());
            }
            at += 1;
        }
        None
    };
    api.lanes().iter().filter_map(first).min_by_key(|e| of.span(*e).0)
}

/// Maximum number of events to search for the next kernel, per lane.
const BEFORE_KERNEL: usize = 1_024;

/// Returns the first kernel that starts on a device at or after a time; `None` if a graph without recorded kernels
/// comes first.
pub fn next_kernel(timeline: &Timeline, of: &Events<'_>, device: u32, time: i64) -> Option<u32> {
    match first_operation(timeline, of, device, time, |e| matches!(e, Event::Launch(_) | Event::Graph(_)))? {
        Event::Launch(launch) => Some(launch),
        _ => None,
    }
}

/// Returns the first operation that starts on a device at or after a time.
pub fn next_operation(timeline: &Timeline, of: &Events<'_>, device: u32, time: i64) -> Option<Event> {
    first_operation(timeline, of, device, time, |_| true)
}

fn first_operation(timeline: &Timeline, of: &Events<'_>, device: u32, time: i64, wanted: impl Fn(&Event) -> bool) -> Option<Event> {
    let group = timeline.groups.iter().find(|g| g.key == GroupKey::Device(device))?;
    let queues = group.rows.iter().filter(|r| r.key.kind == RowKind::Queue);
    let first = |lane: &super::lane::Lane| {
        let from = lane.count_before(of, time);
        let events = (from..from + BEFORE_KERNEL).map_while(|at| lane.get(at)).map(EventId::to_event);
        let found = events.into_iter().find(&wanted)?;
        Some((of.span(found).0, found))
    };
    Some(queues.flat_map(|r| r.lanes()).filter_map(first).min_by_key(|f| f.0)?.1)
}

/// Follows the link of an event: from an operation on a device to its call, from a call to the range around it (or else
/// to its operation), and from a range to the first operation launched in it (to `origin`, if that was launched there).
pub fn follow_link(timeline: &Timeline, of: &Events<'_>, event: Event, origin: Option<Event>) -> Option<Event> {
    let profile = of.profile;
    match event {
        Event::Launch(_) | Event::Mem(_) | Event::Graph(_) => originating_call(profile, event),
        Event::LaunchCall(_) | Event::Call(_) => {
            let around = event_thread(profile, event).and_then(|t| open_ranges(timeline, of, t, of.span(event).0).last().copied());
            around.map(EventId::to_event).or_else(|| started_operation(profile, event))
        }
        Event::Range(_) => {
            let (start, end) = of.span(event);
            let inside = |e: &Event| {
                originating_call(profile, *e)
                    .is_some_and(|c| (start..=end).contains(&of.span(c).0) && event_thread(profile, c) == event_thread(profile, event))
            };
            origin.filter(inside).or_else(|| started_operation(profile, first_launch(timeline, of, event)?))
        }
        Event::Os(_) | Event::Overhead(_) => {
            event_thread(profile, event).and_then(|t| open_ranges(timeline, of, t, of.span(event).0).last().copied()).map(EventId::to_event)
        }
    }
}

/// Returns the other end of the link between a call and the operation that it started.
pub fn other_end(timeline: &Timeline, of: &Events<'_>, event: Event) -> Option<Spot> {
    let other = originating_call(of.profile, event).or_else(|| started_operation(of.profile, event))?;
    timeline.find_event(of, other.into())
}
