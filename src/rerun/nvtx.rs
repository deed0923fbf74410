//! NVTX ranges as ncu's filters interpret them: ranges around a launch, launches inside a range, and filter
//! expressions.
//!
//! ncu checks the ranges when the launching API call is made. A push/pop range (`NAME/`) encloses the calls of its own
//! thread, and a start/end range (`NAME`) encloses all calls in its process. Nesting does not matter: `NAME/` matches
//! the range at any depth of the thread's stack.

use super::shell;
use crate::model::range::UNNAMED;
use crate::model::{Profile, Range, RangeKind};
use rustc_hash::FxHashMap;

/// A range name as used in a filter: it covers all ranges with this domain, text and kind.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct RangeName {
    /// Index into [`Ranges::names`](crate::model::Ranges::names).
    pub name: u32,
    pub kind: RangeKind,
}

/// A range that encloses a launch.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Enclosing {
    pub range: RangeName,
    /// Number of ranges with this name that began earlier in the same process.
    pub instance: u32,
    /// Number of ranges with this name in the process, according to the report.
    pub of: u32,
    /// All ranges with this name are on one thread, so they have the same numbers in every run.
    pub one_thread: bool,
    /// Start and end in nanoseconds since the session began.
    pub start: i64,
    pub end: i64,
    /// Index into [`Ranges::threads`](crate::model::Ranges::threads).
    thread: u32,
}

/// Escapes the special characters in ncu's NVTX expressions: `@ , [ ] / * +` and the backslash.
pub(super) fn escape(text: &str) -> String {
    let mut out = String::with_capacity(text.len() + 4);
    for c in text.chars() {
        if "@,[]/*+\\".contains(c) {
            out.push('\\');
        }
        out.push(c);
    }
    out
}

/// Returns the `--nvtx-include` expression for a range; `None` if the range cannot be expressed, because its name is
/// empty, or would be parsed as a regular expression and cannot be escaped.
pub fn filter_expression(profile: &Profile, range: RangeName) -> Option<String> {
    let (domain, text) = profile.ranges.names.get(range.name as usize)?;
    let element = |text: &str| {
        // `regex:` starts a regular expression. A literal name with that prefix can be written as a regular expression
        // unless it needs both kinds of escapes.
        if text.starts_with("regex:") {
            let plain = !text.contains(['@', ',', '[', ']', '/', '*', '+', '\\']);
            return plain.then(|| format!("regex:^{}$", shell::escape_regex(text)));
        }
        (!text.trim().is_empty()).then(|| escape(text))
    };
    // Placeholder names that the importer made up are not real names.
    let made_up =
        |domain: &str| domain.strip_prefix("domain ").is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit() || b == b'-'));
    if &**text == UNNAMED || domain.as_deref().is_some_and(|d| made_up(d) || d.starts_with("regex:") || text.starts_with("regex:")) {
        return None;
    }
    let text = element(text)?;
    let domain = match domain {
        Some(domain) => format!("{}@", element(domain)?),
        None => String::new(),
    };
    Some(format!("{domain}{text}{}", if range.kind == RangeKind::PushPop { "/" } else { "" }))
}

/// Returns the process, the launching thread and the start of the API call of a launch.
fn caller(profile: &Profile, row: usize) -> Option<(u32, Option<u32>, i64)> {
    let place = profile.launches.place(row).and_then(|p| profile.places.get(p.0 as usize))?;
    let (call, _) = profile.launches.call(row)?;
    Some((place.pid.unwrap_or_default(), place.thread, call))
}

/// Returns the ranges around a launch, innermost (latest started) first.
pub fn enclosing_ranges(profile: &Profile, row: usize) -> Vec<Enclosing> {
    let Some((pid, thread, call)) = caller(profile, row) else {
        return Vec::new();
    };
    let mut found: Vec<Enclosing> = Vec::new();
    for range in profile.ranges.iter() {
        let Some(&(p, t)) = profile.ranges.threads.get(range.thread as usize) else {
            continue;
        };
        let mine = p == pid
            && match range.kind {
                RangeKind::StartEnd => true,
                RangeKind::PushPop => Some(t) == thread,
                RangeKind::Annotation => false,
            };
        if mine && range.start <= call && call <= range.end {
            let range_name = RangeName { name: range.name, kind: range.kind };
            found.push(Enclosing {
                range: range_name,
                instance: 0,
                of: 0,
                one_thread: true,
                start: range.start,
                end: range.end,
                thread: range.thread,
            });
        }
    }
    found.sort_by_key(|e| (std::cmp::Reverse(e.start), e.end));
    for range in profile.ranges.iter() {
        if profile.ranges.threads.get(range.thread as usize).is_none_or(|&(p, _)| p != pid) {
            continue;
        }
        for e in found.iter_mut().filter(|e| e.range == RangeName { name: range.name, kind: range.kind }) {
            e.of += 1;
            e.instance += u32::from(range.start < e.start);
            e.one_thread &= range.thread == e.thread;
        }
    }
    found
}

impl Enclosing {
    /// Returns the range's number for `--range-filter`, 1-based, if a number is required and is the same in every run.
    pub fn filter_number(&self) -> Option<u32> {
        (self.of > 1 && self.one_thread).then_some(self.instance + 1)
    }
}

/// Owner of ranges: a process and, for push/pop ranges, a thread.
type Owner = (u32, Option<u32>);

/// Time covered by ranges with one name, by process and, for push/pop ranges, thread.
#[derive(Debug, Default)]
pub struct Cover {
    spans: FxHashMap<Owner, Vec<(i64, i64)>>,
    per_thread: bool,
}

impl Cover {
    /// Covers all ranges with a name, or only the range in this process with this start.
    pub fn for_range(profile: &Profile, range: RangeName, only: Option<(u32, i64)>) -> Self {
        let per_thread = range.kind == RangeKind::PushPop;
        let mut spans: FxHashMap<Owner, Vec<(i64, i64)>> = FxHashMap::default();
        for r in profile.ranges.iter().filter(|r| r.name == range.name && r.kind == range.kind) {
            let Some(&(pid, tid)) = profile.ranges.threads.get(r.thread as usize) else {
                continue;
            };
            if only.is_none_or(|o| o == (pid, r.start)) {
                spans.entry((pid, per_thread.then_some(tid))).or_default().push((r.start, r.end));
            }
        }
        for list in spans.values_mut() {
            list.sort_unstable();
            // Merge overlapping ranges.
            let mut merged: Vec<(i64, i64)> = Vec::with_capacity(list.len());
            for &(start, end) in list.iter() {
                match merged.last_mut() {
                    Some(last) if start <= last.1 => last.1 = last.1.max(end),
                    _ => merged.push((start, end)),
                }
            }
            *list = merged;
        }
        Self { spans, per_thread }
    }

    /// Returns true if the launch is inside a range.
    pub fn contains_launch(&self, profile: &Profile, row: usize) -> bool {
        let Some((pid, thread, call)) = caller(profile, row) else {
            return false;
        };
        let Some(list) = self.spans.get(&(pid, if self.per_thread { thread } else { None })) else {
            return false;
        };
        let at = list.partition_point(|&(start, _)| start <= call);
        at > 0 && call <= list[at - 1].1
    }
}

/// Returns the start of the nth range with a name in a process, 1-based.
pub fn start_of(profile: &Profile, range: RangeName, pid: u32, n: u32) -> Option<i64> {
    let ranges = &profile.ranges;
    let mine =
        |r: &Range| r.name == range.name && r.kind == range.kind && ranges.threads.get(r.thread as usize).is_some_and(|&(p, _)| p == pid);
    let mut starts: Vec<i64> = ranges.iter().filter(mine).map(|r| r.start).collect();
    starts.sort_unstable();
    starts.get(n.checked_sub(1)? as usize).copied()
}

/// Returns ranges with this label (`domain:text`, or `text` in the default domain); push/pop ranges precede start/end
/// ranges.
pub fn ranges_by_label(profile: &Profile, label: &str) -> Vec<RangeName> {
    let ids: Vec<u32> = (0..).zip(&profile.ranges.names).map(|(i, _)| i).filter(|&i| profile.ranges.label(i) == label).collect();
    let mut out: Vec<RangeName> = Vec::new();
    for r in profile.ranges.iter().filter(|r| ids.contains(&r.name) && r.kind != RangeKind::Annotation) {
        let range = RangeName { name: r.name, kind: r.kind };
        if !out.contains(&range) {
            out.push(range);
        }
    }
    out.sort_by_key(|r| r.kind);
    out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::RangeOrigin;
    use crate::model::Source;
    use RangeKind::{PushPop, StartEnd};

    #[test]
    fn expressions_escape_what_ncu_reads() {
        let mut p = Profile::new(Source::default());
        p.ranges.names = vec![
            (Some("LLM".into()), "LLM@decode_all".into()),
            (None, "step[3]".into()),
            (None, "A/x".into()),
            (None, "S".into()),
            (None, "A range".into()),
            (None, "regex:x.y".into()),
            (None, " ".into()),
            (None, "regex:a/b".into()),
        ];
        let of = |name, kind| filter_expression(&p, RangeName { name, kind });
        assert_eq!(of(0, PushPop).as_deref(), Some(r"LLM@LLM\@decode_all/"));
        assert_eq!(of(1, PushPop).as_deref(), Some(r"step\[3\]/"));
        assert_eq!(of(2, PushPop).as_deref(), Some(r"A\/x/"));
        assert_eq!(of(3, StartEnd).as_deref(), Some("S"));
        assert_eq!(of(4, PushPop).as_deref(), Some("A range/"));
        assert_eq!(of(5, PushPop).as_deref(), Some(r"regex:^regex:x\.y$/"));
        assert_eq!(of(6, PushPop), None, "a lone / ends the program under ncu");
        assert_eq!(of(7, PushPop), None);
    }

    #[test]
    fn ranges_of_one_name_are_merged() {
        let mut p = Profile::new(Source::default());
        p.ranges.names = vec![(None, "A".into())];
        p.ranges.threads = vec![(1, 7)];
        let range = |start, end| Range { start, end, name: 0, thread: 0, kind: RangeKind::PushPop, origin: RangeOrigin::Nvtx };
        for (start, end) in [(50, 60), (0, 20), (5, 10)] {
            p.ranges.push(range(start, end));
        }
        let cover = Cover::for_range(&p, RangeName { name: 0, kind: RangeKind::PushPop }, None);
        assert_eq!(cover.spans[&(1, Some(7))], [(0, 20), (50, 60)]);
    }
}
