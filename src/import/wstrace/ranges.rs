//! Builds NVTX ranges from events: matches push and pop by thread and domain, and start and end by id.

use super::names::Names;
use super::nvtx_marks::{Event, Marked, Payload as Given, What};
use crate::model::range::{Payload, UNNAMED};
use crate::model::{NcclCall, Range, RangeKind, RangeOrigin, Ranges};
use rustc_hash::FxHashMap;
use std::sync::Arc;

#[derive(Clone, Copy)]
struct Open {
    start: i64,
    thread: u32,
    marked: Marked,
}

/// Builds the ranges of all processes, sorted by start; a range that did not end has no end time.
pub fn build_ranges(processes: &[(Names, Vec<Event>)], details: bool) -> Ranges {
    let mut done: Vec<(usize, Open, i64, RangeKind)> = Vec::new();
    for (process, (_, events)) in processes.iter().enumerate() {
        let ended = match_ranges(events);
        done.extend(ended.into_iter().map(|(open, end, kind)| (process, open, end, kind)));
    }
    // If two ranges have the same start, the longer one encloses the other.
    done.sort_by_key(|(process, r, end, _)| (r.start, std::cmp::Reverse(*end), *process, r.thread));
    let mut out = Ranges::default();
    out.reserve(done.len());
    let mut names: FxHashMap<(usize, u32, u32), u32> = FxHashMap::default();
    let mut texts: FxHashMap<(Option<Arc<str>>, Arc<str>), u32> = FxHashMap::default();
    let mut threads: FxHashMap<(usize, u32), u32> = FxHashMap::default();
    let mut categories: FxHashMap<(usize, u32, u32), u16> = FxHashMap::default();
    let mut words: FxHashMap<Arc<str>, u16> = FxHashMap::default();
    for (process, range, end, kind) in done {
        let Some((of, _)) = processes.get(process) else { continue };
        let name = *names.entry((process, range.marked.domain, range.marked.text)).or_insert_with(|| {
            let text = (of.get(range.marked.domain), of.get(range.marked.text).unwrap_or_else(|| UNNAMED.into()));
            *texts.entry(text.clone()).or_insert_with(|| {
                out.names.push(text);
                u32::try_from(out.names.len() - 1).unwrap_or(u32::MAX)
            })
        });
        let thread = *threads.entry((process, range.thread)).or_insert_with(|| {
            out.threads.push((of.pid, range.thread));
            u32::try_from(out.threads.len() - 1).unwrap_or(u32::MAX)
        });
        let row = u32::try_from(out.len()).unwrap_or(u32::MAX);
        if let Some(Given::Message(bytes, n)) = range.marked.payload {
            let call = out.names.get(name as usize).and_then(|of| NcclCall::from_payload(&of.1, bytes.get(..usize::from(n))?));
            out.payloads.extend(call.map(|c| (row, Payload::Nccl(c))));
        }
        let end = if end == i64::MAX { end } else { of.session_time(end) };
        out.push(Range { start: of.session_time(range.start), end, name, thread, kind, origin: RangeOrigin::Nvtx });
        if !details {
            continue;
        }
        if let Some(color) = range.marked.color {
            out.set_color(color);
        }
        if let Some(category) = range.marked.category {
            let key = (process, range.marked.domain, category);
            let known = categories.get(&key).copied().or_else(|| {
                let word = of.category_name(range.marked.domain, category).unwrap_or_else(|| category.to_string().into());
                let next = words.get(&word).copied().or_else(|| {
                    let next = u16::try_from(out.categories.len()).ok()?;
                    out.categories.push(word.clone());
                    words.insert(word, next);
                    Some(next)
                })?;
                categories.insert(key, next);
                Some(next)
            });
            if let Some(known) = known {
                out.set_category(known);
            }
        }
        let payload = range.marked.payload.and_then(|p| match p {
            Given::Signed(v) => Some(Payload::Integer(v)),
            Given::Unsigned(v) => Some(Payload::Unsigned(v)),
            Given::Real(v) => Some(Payload::Real(v)),
            Given::Message(..) => None,
        });
        out.payloads.extend(payload.map(|p| (row, p)));
    }
    out
}

/// Matches each range of a process with its end.
fn match_ranges(events: &[Event]) -> Vec<(Open, i64, RangeKind)> {
    let mut stacks: FxHashMap<(u32, u32), Vec<Open>> = FxHashMap::default();
    let mut started: FxHashMap<u64, Open> = FxHashMap::default();
    let mut done = Vec::new();
    for event in events {
        let open = |marked| Open { start: event.time, thread: event.thread, marked };
        match event.what {
            What::Push(marked) => stacks.entry((event.thread, marked.domain)).or_default().push(open(marked)),
            // A range that was pushed before the recording began is missing from the stack.
            What::Pop { domain, message } => {
                let mut range = stacks.get_mut(&(event.thread, domain)).and_then(Vec::pop);
                if let Some(range) = range.as_mut().filter(|_| message.is_some()) {
                    range.marked.payload = message;
                }
                done.extend(range.map(|r| (r, event.time, RangeKind::PushPop)));
            }
            What::Start { id, marked } => drop(started.insert(id, open(marked))),
            What::End { id } => done.extend(started.remove(&id).map(|r| (r, event.time, RangeKind::StartEnd))),
            What::Mark | What::Gate { .. } => {}
        }
    }
    done.extend(stacks.into_values().flatten().map(|r| (r, i64::MAX, RangeKind::PushPop)));
    done.extend(started.into_values().map(|r| (r, i64::MAX, RangeKind::StartEnd)));
    done
}

#[cfg(test)]
mod tests {
    use super::super::key_values::Facts;
    use super::super::rows::Rows;
    use super::*;

    #[test]
    fn ranges_nest_by_thread_and_domain() {
        let marked = |domain, text| Marked { domain, text, ..Marked::default() };
        let at = |time, thread, what| Event { time, thread, what };
        let events = [
            at(8, 1, What::Pop { domain: 0, message: None }),
            at(10, 1, What::Push(marked(0, 1))),
            at(11, 1, What::Push(marked(3, 2))),
            at(12, 2, What::Push(marked(0, 2))),
            at(13, 1, What::Start { id: 7, marked: marked(0, 1) }),
            at(14, 1, What::Pop { domain: 0, message: None }),
            at(15, 1, What::Pop { domain: 3, message: None }),
            at(16, 2, What::End { id: 7 }),
        ];
        let strings = (1..).zip(["a", "b", "d"].map(|t| t.as_bytes().to_vec())).collect();
        let mut rows = Rows { strings, ..Rows::default() };
        let ranges = build_ranges(&[(Names::new(&mut rows, &Facts::default(), 10), events.to_vec())], true);
        let rows: Vec<_> =
            ranges.iter().map(|r| (ranges.label(r.name), r.start, r.end, ranges.threads[r.thread as usize].1, r.kind)).collect();
        assert_eq!(
            rows,
            [
                ("a".to_owned(), 0, 4, 1, RangeKind::PushPop),
                ("d:b".to_owned(), 1, 5, 1, RangeKind::PushPop),
                ("b".to_owned(), 2, i64::MAX, 2, RangeKind::PushPop),
                ("a".to_owned(), 3, 6, 1, RangeKind::StartEnd),
            ]
        );
    }
}
