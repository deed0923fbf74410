//! Calls that a host thread makes in a span of time, added up by name.

use super::event::{Category, Event, Events};
use super::group::{GroupKey, RowKind, Timeline};
use rustc_hash::FxHashMap;
use std::borrow::Cow;

/// All calls with the same name in a span of time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostCalls {
    pub name: String,
    pub category: Category,
    /// Time inside the span, ns.
    pub ns: i64,
    pub count: usize,
}

/// Maximum number of calls to add up per lane, because this is done for every frame.
const MOST: usize = 8_192;

/// Adds up the CUDA, HIP and OS calls of a thread (process and thread id) that overlap `start..end`, longest first.
/// A call counts only with its time inside of the span. Returns `None` if there are too many.
pub fn sum_calls(timeline: &Timeline, of: &Events<'_>, thread: (u32, u32), (start, end): (i64, i64)) -> Option<Vec<HostCalls>> {
    let Some(group) = timeline.groups.iter().find(|g| g.key == GroupKey::Thread(thread.0, thread.1)) else { return Some(Vec::new()) };
    let rows = group.rows.iter().filter(|r| matches!(r.key.kind, RowKind::Api | RowKind::Os));
    let mut sums: FxHashMap<(Category, Cow<'_, str>), (i64, usize)> = FxHashMap::default();
    for lane in rows.flat_map(|r| r.lanes()) {
        // The call in progress when the span begins counts, too.
        let from = lane.last_at(of, start).unwrap_or_default();
        let until = lane.count_before(of, end);
        if until.saturating_sub(from) > MOST {
            return None;
        }
        for id in (from..until).filter_map(|at| lane.get(at)) {
            let event = id.to_event();
            let (began, ended) = of.span(event);
            let ns = ended.min(end) - began.max(start);
            if ns < 0 || ended <= start {
                continue;
            }
            let category = of.category(event);
            // The profile keeps what a call launched rather than the call's name.
            let name = if matches!(event, Event::LaunchCall(_)) { Cow::Borrowed("kernel launches") } else { of.event_name(event) };
            let sum = sums.entry((category, name)).or_default();
            *sum = (sum.0 + ns, sum.1 + 1);
        }
    }
    let mut out: Vec<HostCalls> =
        sums.into_iter().map(|((category, name), (ns, count))| HostCalls { name: name.into_owned(), category, ns, count }).collect();
    out.sort_by(|a, b| b.ns.cmp(&a.ns).then_with(|| a.name.cmp(&b.name)));
    Some(out)
}
