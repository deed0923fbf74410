//! Where in the program something happened: the range, operator or function that was open on the thread.

use super::case::{Case, LONGEST};
use super::copies::CopyClass;
use super::finding::{Place, PlaceKind};
use super::gaps::Piece;
use super::part::Cause;
use crate::analysis::like::like;
use crate::model::RangeOrigin;
use rustc_hash::FxHashMap;

/// Places that a finding names.
const MOST: usize = 5;
/// Of these, functions of Python, where they are named first.
const MOST_PYTHON: usize = 3;

/// The innermost range around a time on a thread, as far as it is known by now.
#[derive(Clone, Copy)]
struct Query {
    time: i64,
    ns: i64,
    piece: Piece,
    best: Option<(i64, u32, RangeOrigin)>,
    /// The innermost that is no function of Python, where the innermost is one.
    around: Option<(i64, u32, RangeOrigin)>,
}

/// What ranges of a name have in common: without numbers, and of Python's objects without their addresses.
fn alike(label: &str) -> String {
    match label.split_once(" object at 0x") {
        Some((what, address)) => like(&format!("{what}{}", if address.ends_with('>') { ">" } else { "" })),
        None => like(label),
    }
}

/// Where the longest idle times of these causes lie: ranges of like names together, those with the most time first; and the longest of them.
#[must_use]
pub fn of(case: &Case<'_>, causes: &[Cause]) -> Vec<Place> {
    let pieces: Vec<Piece> = causes.iter().filter_map(|c| case.pieces.get(c)).flatten().copied().collect();
    named(case, &pieces)
}

/// Where copies of these classes are made that run alone, or that the device waits for.
#[must_use]
pub fn of_copies(case: &Case<'_>, classes: &[CopyClass]) -> Vec<Place> {
    let pieces: Vec<Piece> = classes.iter().filter_map(|c| case.copy_pieces.get(c)).flatten().copied().collect();
    let mut out = named(case, &pieces);
    out.retain(|p| p.kind != PlaceKind::Window);
    out
}

fn named(case: &Case<'_>, pieces: &[Piece]) -> Vec<Place> {
    let mut by_thread: FxHashMap<(u32, u32), Vec<Query>> = FxHashMap::default();
    for piece in pieces {
        let Some(lane) = piece.lane.and_then(|l| case.host.lanes.get(l)) else { continue };
        // Of a wait the range that waits, not the one that launches next; of a copy the one that calls for it.
        let time =
            if matches!(piece.cause, Cause::Sync | Cause::CopyCall) { piece.at } else { piece.start + (piece.end - piece.start) / 2 };
        let query = Query { time, ns: piece.end - piece.start, piece: *piece, best: None, around: None };
        by_thread.entry((lane.pid, lane.tid)).or_default().push(query);
    }
    let ranges = &case.profile.ranges;
    let mut threads: Vec<Option<Vec<Query>>> = ranges.threads.iter().map(|t| by_thread.remove(t)).collect();
    for list in threads.iter_mut().flatten() {
        list.sort_unstable_by_key(|q| q.time);
    }
    for range in ranges.iter() {
        let Some(list) = threads.get_mut(range.thread as usize).and_then(Option::as_mut) else { continue };
        let from = list.partition_point(|q| q.time < range.start);
        for query in list[from..].iter_mut().take_while(|q| q.time <= range.end) {
            let later = |of: Option<(i64, u32, RangeOrigin)>| of.is_none_or(|(start, ..)| range.start >= start);
            let found = Some((range.start, range.name, range.origin));
            if later(query.best) {
                query.best = found;
            }
            if range.origin != RangeOrigin::Python && later(query.around) {
                query.around = found;
            }
        }
    }
    let queries: Vec<Query> = threads.into_iter().flatten().flatten().collect();
    // Of more pieces only the longest were kept: their sum is not that of all.
    let whole = pieces.len() < LONGEST;
    let mut out = by_name(case, &queries, whole, |q| q.best);
    // A function of Python says what the program does; the range or operator around it is what the screens lead to.
    if out.first().is_some_and(|p| p.kind == PlaceKind::Python) {
        out.truncate(MOST_PYTHON);
        let mut around = by_name(case, &queries, whole, |q| q.around);
        around.retain(|p| out.iter().all(|o| o.name != p.name));
        out.extend(around.into_iter().take(MOST - MOST_PYTHON));
    }
    if let Some(longest) = pieces.iter().max_by_key(|p| (p.end - p.start, std::cmp::Reverse(p.start))) {
        out.push(Place {
            kind: PlaceKind::Window,
            name: "the longest".to_owned(),
            start: longest.start,
            end: longest.end,
            ns: Some(longest.end - longest.start),
            rank: None,
        });
    }
    out
}

/// Ranges of like names together, those with the most time first.
fn by_name(case: &Case<'_>, queries: &[Query], whole: bool, range: impl Fn(&Query) -> Option<(i64, u32, RangeOrigin)>) -> Vec<Place> {
    let mut labels: FxHashMap<u32, String> = FxHashMap::default();
    let mut sums: FxHashMap<String, (i64, Query)> = FxHashMap::default();
    for query in queries {
        let Some((_, name, _)) = range(query) else { continue };
        let label = labels.entry(name).or_insert_with(|| alike(&case.profile.ranges.label(name))).clone();
        let sum = sums.entry(label).or_insert((0, *query));
        sum.0 += query.ns;
        if query.ns > sum.1.ns {
            sum.1 = *query;
        }
    }
    let mut named: Vec<(String, (i64, Query))> = sums.into_iter().collect();
    named.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
    let place = |(name, (ns, query)): (String, (i64, Query))| Place {
        kind: match range(&query).map(|b| b.2) {
            Some(RangeOrigin::Operator) => PlaceKind::Operator,
            Some(RangeOrigin::Python) => PlaceKind::Python,
            _ => PlaceKind::Range,
        },
        name,
        start: query.piece.start,
        end: query.piece.end,
        ns: whole.then_some(ns),
        rank: None,
    };
    named.into_iter().take(MOST).map(place).collect()
}

#[cfg(test)]
mod tests {
    use super::alike;

    #[test]
    fn objects_of_python_are_alike_whatever_their_address() {
        assert_eq!(alike("<built-in method item of Tensor object at 0x7fdc681f2030>"), "<built-in method item of Tensor>");
        assert_eq!(alike("step 12"), "step #");
    }
}
