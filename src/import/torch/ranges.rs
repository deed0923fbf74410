//! Operators, program ranges and Python functions, merged from all parts.

use super::shard::{Numbers, ShardEvents};
use crate::model::range::{NONE, Operator};
use crate::model::{Range, RangeKind, Ranges};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Merges all ranges in trace order, with times relative to `begin`.
pub fn join_ranges(parts: &mut [ShardEvents], begin: i64) -> Ranges {
    let mut spans = Vec::with_capacity(parts.iter().map(|p| p.spans.len()).sum());
    let (mut names, mut texts): (Numbers<Arc<str>>, Numbers<Arc<str>>) = (Numbers::default(), Numbers::default());
    let mut threads: Numbers<(u32, u32)> = Numbers::default();
    for part in parts {
        let mut ids: FxHashMap<u32, u32> = FxHashMap::default();
        let mut shapes: FxHashMap<u32, u32> = FxHashMap::default();
        let text_of = |id: u32| part.names.list.get(id as usize).cloned().unwrap_or_else(|| Arc::from(""));
        for span in std::mem::take(&mut part.spans) {
            let start = span.start - begin;
            let range = Range {
                start,
                end: start.saturating_add(span.duration),
                name: *ids.entry(span.name).or_insert_with(|| names.value_id(&text_of(span.name))),
                thread: threads.value_id(&span.thread),
                kind: RangeKind::Annotation,
                origin: span.origin,
            };
            let operator = span.operator.map(|o| match o.shapes {
                NONE => o,
                text => Operator { shapes: *shapes.entry(text).or_insert_with(|| texts.value_id(&text_of(text))), ..o },
            });
            spans.push((span.at, range, operator));
        }
    }
    spans.sort_unstable_by_key(|s| s.0);
    let mut out = Ranges::default();
    out.reserve(spans.len());
    for (_, range, operator) in spans {
        out.push(range);
        if let Some(operator) = operator {
            out.set_operator(operator);
        }
    }
    out.names = names.list.into_iter().map(|n| (None, n)).collect();
    out.threads = threads.list;
    out.texts = texts.list;
    out
}
