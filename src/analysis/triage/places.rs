//! Where in the program something happened: the range, operator or function that was open on the thread.

use super::case::Case;
use super::copies::CopyClass;
use super::finding::{Place, PlaceKind};
use super::gaps::Piece;
use super::part::Cause;
use crate::analysis::like::like;
use crate::model::RangeOrigin;
use rustc_hash::FxHashMap;

/// Places that a finding names.
const MOST: usize = 5;

/// The innermost range around a time on a thread, as far as it is known by now.
#[derive(Clone, Copy)]
struct Query {
    time: i64,
    ns: i64,
    piece: Piece,
    best: Option<(i64, u32, RangeOrigin)>,
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
        let query = Query { time, ns: piece.end - piece.start, piece: *piece, best: None };
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
            if query.best.is_none_or(|(start, ..)| range.start >= start) {
                query.best = Some((range.start, range.name, range.origin));
            }
        }
    }
    let mut sums: FxHashMap<String, (i64, Query, u32)> = FxHashMap::default();
    for query in threads.iter().flatten().flatten() {
        let Some((_, name, _)) = query.best else { continue };
        let sum = sums.entry(like(&ranges.label(name))).or_insert((0, *query, name));
        sum.0 += query.ns;
        if query.ns > sum.1.ns {
            (sum.1, sum.2) = (*query, name);
        }
    }
    let mut named: Vec<(String, (i64, Query, u32))> = sums.into_iter().collect();
    named.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(&b.0)));
    let mut out: Vec<Place> = named
        .into_iter()
        .take(MOST)
        .map(|(name, (ns, query, _))| Place {
            kind: match query.best.map(|b| b.2) {
                Some(RangeOrigin::Operator) => PlaceKind::Operator,
                Some(RangeOrigin::Python) => PlaceKind::Python,
                _ => PlaceKind::Range,
            },
            name,
            start: query.piece.start,
            end: query.piece.end,
            ns: Some(ns),
            rank: None,
        })
        .collect();
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
