//! Locates idle time and copies in the program: the range, operator, function or line that was open on the thread.

use super::copy_class::CopyClass;
use super::finding::{Place, PlaceKind};
use super::host_samples::ENOUGH;
use super::idle_causes::Piece;
use super::run_context::{LONGEST, RunContext};
use super::time_category::Cause;
use crate::analysis::host_frames::frame_label;
use crate::analysis::name_pattern::normalize_label;
use crate::model::{RangeOrigin, units};
use rustc_hash::{FxHashMap, FxHashSet};

/// Maximum number of places per finding.
const MOST: usize = 5;
/// Maximum number of Python functions among a finding's places, if the first place is one.
const MOST_PYTHON: usize = 3;
/// Maximum number of sampled lines among a finding's places.
const MOST_LINES: usize = 3;

/// A piece is an exception if it is more than this many times as long as the pieces in which half of the time lies.
const FAR_LONGER: i64 = 3;

/// Number of pieces about as long as the longest, and their minimum length relative to it, that make it recur.
const RECURS: usize = 3;
const ABOUT_AS_LONG: f64 = 0.8;

/// Minimum share of the idle time for a place to be listed.
const LEAST_OF_PLACE: f64 = 0.05;

/// Part of an idle interval inside one innermost range.
#[derive(Clone, Copy)]
struct Part {
    start: i64,
    end: i64,
    name: u32,
    origin: RangeOrigin,
    /// Length of the gap that it is part of, ns.
    gap: i64,
}

impl Part {
    /// Order of parts by how long the GPU was idle.
    fn length(&self) -> (i64, i64) {
        (self.gap, self.end - self.start)
    }
}

/// A time on a thread that is to be attributed to a range.
#[derive(Clone, Copy)]
struct Query {
    start: i64,
    end: i64,
    /// Piece that the query stands for. If `point` is true, the query is a moment that counts with the piece's length;
    /// otherwise, it counts with its own length.
    piece: Piece,
    point: bool,
}

/// Location of idle time in the program.
#[derive(Clone, Debug, Default)]
pub struct Where {
    /// Places, most idle time first; ties go to the longest single interval.
    pub places: Vec<Place>,
    /// Innermost place that, including its callees, accounts for more than half of the idle time, if there is one.
    most: Option<String>,
    /// Total idle time, ns.
    ns: i64,
    /// Idle time inside ranges, ns.
    inside: i64,
    /// Number of places with idle time.
    count: usize,
    /// True if the report has ranges on these threads.
    ranges: bool,
    operators: bool,
    /// True if the places are sampled lines.
    pub lines: bool,
}

impl Where {
    /// Returns the place that accounts for more than half of the idle time.
    pub fn main_place(&self) -> Option<&str> {
        self.most.as_deref()
    }

    /// Suffix for a headline, ` (name)`: the place that accounts for more than half of the idle time, or a remark if
    /// that time is outside of ranges or spread out. Empty if the report has no ranges.
    pub fn main_place_text(&self) -> String {
        match &self.most {
            // A line's label ends with its file in parentheses, so no further parentheses are added.
            Some(name) if self.lines => format!(", in {name},"),
            Some(name) => format!(" ({name})"),
            None if !self.ranges || self.ns == 0 => String::new(),
            None if self.inside <= self.ns / 2 => format!(" (outside any {})", if self.operators { "operator" } else { "range" }),
            None => format!(" (spread over {})", units::format_count(self.count, "place")),
        }
    }
}

/// Locates the longest idle times with these causes. Ranges with similar names are merged; the places with the most
/// time come first, then those with the longest single interval.
pub fn locate_places(case: &RunContext<'_>, causes: &[Cause]) -> Vec<Place> {
    locate_idle(case, causes).places
}

/// Locates idle time with these causes, with totals.
pub fn locate_idle(case: &RunContext<'_>, causes: &[Cause]) -> Where {
    let pieces: Vec<Piece> = causes.iter().filter_map(|c| case.pieces.get(c)).flatten().copied().collect();
    // The finding's text is about its first cause and about what recurs, so show the longest recurring piece of that
    // cause.
    let again = causes.first().map(|c| case.pieces_again(*c)).unwrap_or_default();
    let mut spots = locate_pieces(case, &pieces, longest_of(&again).or_else(|| longest_of(&pieces)));
    add_lines(case, causes, &mut spots);
    spots
}

/// Suffix for a headline, ` (name)`: the range or function in which more than half of these pieces lie; empty if there is
/// none.
pub fn locate_in_program(case: &RunContext<'_>, pieces: &[Piece]) -> String {
    let spots = locate_pieces(case, pieces, None);
    if spots.most.is_some() { spots.main_place_text() } else { String::new() }
}

/// Inserts the program's sampled lines before the ranges around them.
fn add_lines(case: &RunContext<'_>, causes: &[Cause], spots: &mut Where) {
    let time = &case.host_time;
    // If calls were recorded, functions are already among the ranges.
    if time.exact || time.samples_of(causes) < ENOUGH {
        return;
    }
    let lines = time.lines(causes);
    let idle: i64 = causes.iter().map(|c| case.idle.get(*c)).sum();
    let listed = lines.iter().filter(|l| l.ns as f64 >= LEAST_OF_PLACE * idle as f64).take(MOST_LINES).map(|line| Place {
        kind: PlaceKind::Line,
        name: line.label(),
        start: line.longest.0,
        end: line.longest.1,
        ns: Some(line.ns),
        rank: None,
    });
    let listed: Vec<Place> = listed.collect();
    if listed.is_empty() {
        return;
    }
    spots.places.splice(0..0, listed);
    spots.lines = true;
    if let Some(frame) = time.main_function(causes) {
        // The lines are those of the time in a function itself; most of it may be spent in what that function calls.
        let label = frame_label(&frame);
        let own = spots.places[0].name.starts_with(&label);
        spots.most = Some(if own { label } else { format!("{label} and what it calls") });
    }
}

/// Locates copies of these classes that run alone or for which the device waits.
pub fn of_copies(case: &RunContext<'_>, classes: &[CopyClass]) -> Vec<Place> {
    let pieces: Vec<Piece> = classes.iter().filter_map(|c| case.copy_pieces.get(c)).flatten().copied().collect();
    let mut out = locate_pieces(case, &pieces, longest_of(&pieces)).places;
    out.retain(|p| p.kind != PlaceKind::Window);
    out
}

/// Times on one thread in order, with running maxima of their ends for binary search.
struct Times {
    queries: Vec<Query>,
    /// Latest end of all queries up to this one.
    ends: Vec<i64>,
}

impl Times {
    fn from_queries(mut queries: Vec<Query>) -> Self {
        queries.sort_unstable_by_key(|q| (q.start, q.end));
        let mut latest = i64::MIN;
        let ends = queries
            .iter()
            .map(|q| {
                latest = latest.max(q.end);
                latest
            })
            .collect();
        Self { queries, ends }
    }

    /// Returns the queries that overlap `start..=end`.
    fn queries_within(&self, start: i64, end: i64) -> impl Iterator<Item = (usize, &Query)> {
        let from = self.ends.partition_point(|&e| e < start);
        self.queries.iter().enumerate().skip(from).take_while(move |(_, q)| q.start <= end).filter(move |(_, q)| q.end >= start)
    }
}

/// A long idle time that stands for the others.
#[derive(Clone, Copy, Debug)]
struct Longest {
    start: i64,
    end: i64,
    /// True if there are far longer ones, which are exceptions.
    exceptions: bool,
}

/// The longest gap that these pieces make up for the most part, and that is not far longer than those that make up the
/// time. Without such a gap, the longest piece.
fn longest_of(pieces: &[Piece]) -> Option<Longest> {
    let mut gaps: FxHashMap<(i64, i64), i64> = FxHashMap::default();
    for piece in pieces {
        *gaps.entry(piece.gap).or_default() += piece.end - piece.start;
    }
    let mostly = gaps.into_iter().filter(|((start, end), ns)| ns * 2 >= end - start).map(|(gap, _)| gap);
    let mut windows: Vec<(i64, i64)> = mostly.collect();
    if windows.is_empty() {
        windows = pieces.iter().map(|p| (p.start, p.end)).collect();
    }
    let mut lengths: Vec<i64> = windows.iter().map(|(start, end)| end - start).collect();
    lengths.sort_unstable();
    let half = lengths.iter().sum::<i64>() / 2;
    let mut sum = 0;
    let usual = lengths.iter().copied().find(|length| {
        sum += length;
        sum >= half
    })?;
    // Long ones that come again, in each step say, are no exceptions.
    let longest = *lengths.last()?;
    let again = lengths.iter().rev().nth(RECURS - 1).is_some_and(|&length| length as f64 >= ABOUT_AS_LONG * longest as f64);
    let most = if again { longest } else { usual.saturating_mul(FAR_LONGER) };
    let usual = windows.into_iter().filter(|(start, end)| end - start <= most);
    let (start, end) = usual.max_by_key(|(start, end)| (end - start, std::cmp::Reverse(*start)))?;
    Some(Longest { start, end, exceptions: lengths.last().is_some_and(|longest| *longest > end - start) })
}

fn locate_pieces(case: &RunContext<'_>, pieces: &[Piece], longest: Option<Longest>) -> Where {
    let mut by_thread: FxHashMap<(u32, u32), Vec<Query>> = FxHashMap::default();
    let mut ns = 0;
    for piece in pieces {
        ns += piece.end - piece.start;
        let Some(lane) = piece.lane.and_then(|l| case.host.lanes.get(l)) else { continue };
        // Locate a wait by the range that waits rather than the one that launches next, and a copy by its call.
        let point = matches!(piece.cause, Cause::Sync | Cause::CopyCall);
        let (start, end) = if point { (piece.at, piece.at) } else { (piece.start, piece.end) };
        by_thread.entry((lane.pid, lane.tid)).or_default().push(Query { start, end, piece: *piece, point });
    }
    let ranges = &case.profile.ranges;
    let threads: Vec<Option<Times>> = ranges.threads.iter().map(|t| by_thread.remove(t).map(Times::from_queries)).collect();
    // Ranges that overlap idle time, by thread.
    let mut rows: Vec<Vec<u32>> = vec![Vec::new(); threads.len()];
    for (row, range) in (0..).zip(ranges.iter()) {
        let Some(Some(times)) = threads.get(range.thread as usize) else { continue };
        if !range.origin.is_hardware() && times.queries_within(range.start, range.end).next().is_some() {
            rows[range.thread as usize].push(row);
        }
    }
    let known = threads.iter().any(Option::is_some);
    // If the number of pieces reached the limit, only the longest were kept, and their sum is not the total.
    let whole = pieces.len() < LONGEST;
    let (mut best, mut around) = (Vec::new(), Vec::new());
    let (mut inclusive, mut unused) = (FxHashMap::default(), FxHashMap::default());
    for (times, rows) in threads.iter().zip(rows).filter_map(|(t, r)| Some((t.as_ref()?, r))) {
        attribute_innermost(case, times, rows.clone(), &mut best, &mut inclusive);
        if case.host.known.python {
            let origin = |row: &u32| ranges.get(*row as usize).origin;
            let others = rows.into_iter().filter(|r| origin(r) != RangeOrigin::Python).collect();
            attribute_innermost(case, times, others, &mut around, &mut unused);
        }
    }
    let inside = best.iter().map(|(_, ns)| *ns).sum();
    let sums = by_name(case, &best);
    let count = sums.len();
    let most = sums.first().filter(|p| p.1 > ns / 2).map(|p| p.0.name.clone()).or_else(|| around_most(case, &inclusive, ns / 2));
    let mut out: Vec<Place> = sums.into_iter().filter(|p| p.1 as f64 >= LEAST_OF_PLACE * ns as f64).take(MOST).map(|p| p.0).collect();
    // A Python function describes the program's activity best, but screens link to the range or operator around it.
    if out.first().is_some_and(|p| p.kind == PlaceKind::Python) {
        out.truncate(MOST_PYTHON);
        let mut around = by_name(case, &around);
        around.retain(|p| p.1 as f64 >= LEAST_OF_PLACE * ns as f64 && out.iter().all(|o| o.name != p.0.name));
        out.extend(around.into_iter().take(MOST - MOST_PYTHON).map(|p| p.0));
    }
    for place in out.iter_mut().filter(|_| !whole) {
        place.ns = None;
    }
    if let Some(Longest { start, end, exceptions }) = longest {
        out.push(Place {
            kind: PlaceKind::Window,
            name: if exceptions { "a long idle time" } else { "the longest idle time" }.to_owned(),
            start,
            end,
            ns: Some(end - start),
            rank: None,
        });
    }
    let operators = case.host.known.operators && !case.host.known.python;
    Where { places: out, most, ns, inside, count, ranges: known, operators, lines: false }
}

/// By name: time in ranges with that name, including nested ranges, and their maximum depth.
type Inclusive = FxHashMap<u32, (i64, usize)>;

/// Returns the most specific place that accounts for more than `than`: of all names with more time, the one with the
/// least time; ties go to the innermost one.
fn around_most(case: &RunContext<'_>, inclusive: &Inclusive, than: i64) -> Option<String> {
    let labels = merged_labels(case, inclusive.keys().copied());
    let mut sums: FxHashMap<&str, (i64, usize)> = FxHashMap::default();
    for (name, (ns, depth)) in inclusive {
        let sum = sums.entry(labels.get(name).map_or("", String::as_str)).or_default();
        *sum = (sum.0 + ns, sum.1.max(*depth));
    }
    let (name, _) =
        sums.into_iter().filter(|s| s.1.0 > than).min_by(|a, b| a.1.0.cmp(&b.1.0).then(b.1.1.cmp(&a.1.1)).then(a.0.cmp(b.0)))?;
    Some(name.to_owned())
}

/// Labels under which ranges with these names are merged: `step #` for `step 1` and `step 2`, but `conv2d` if all names
/// like it are the same.
fn merged_labels(case: &RunContext<'_>, names: impl Iterator<Item = u32>) -> FxHashMap<u32, String> {
    let names: FxHashSet<u32> = names.collect();
    let labels: FxHashMap<u32, String> = names.into_iter().map(|name| (name, case.profile.ranges.label(name))).collect();
    let mut like: FxHashMap<String, Option<&str>> = FxHashMap::default();
    for label in labels.values() {
        let same = like.entry(normalize_label(label)).or_insert(Some(label));
        // The address in the name of a Python object is different in each run.
        if *same != Some(label) || label.contains(" object at 0x") {
            *same = None;
        }
    }
    let shown = |label: &str| {
        let pattern = normalize_label(label);
        like.get(&pattern).copied().flatten().map_or_else(|| pattern.clone(), str::to_owned)
    };
    labels.iter().map(|(name, label)| (*name, shown(label))).collect()
}

/// Attributes each moment of the queries to the innermost open range, or to the operator around it that the program called
/// (`out`), and adds its time to all open ranges
/// (`inclusive`).
fn attribute_innermost(case: &RunContext<'_>, times: &Times, mut rows: Vec<u32>, out: &mut Vec<(Part, i64)>, inclusive: &mut Inclusive) {
    let ranges = &case.profile.ranges;
    let key = |&row: &u32| {
        let r = ranges.get(row as usize);
        (r.start, std::cmp::Reverse(r.end))
    };
    if !rows.is_sorted_by_key(key) {
        rows.sort_by_key(key);
    }
    let mut give = |open: &[(i64, u32, RangeOrigin)], from: i64, to: i64| {
        // If operators call each other, the outermost is the one that the program called.
        let operators = open.iter().rev().take_while(|o| o.2 == RangeOrigin::Operator).count();
        let Some(&(_, name, origin)) = open.get(open.len() - operators.max(1).min(open.len())) else { return };
        let before = out.len();
        for (_, q) in times.queries_within(from, to) {
            let piece = (q.piece.start, q.piece.end);
            let gap = q.piece.gap.1 - q.piece.gap.0;
            if q.point {
                // A moment belongs to one range only: on a boundary, to the range that starts.
                if from <= q.start && q.start < to {
                    out.push((Part { start: piece.0, end: piece.1, name, origin, gap }, piece.1 - piece.0));
                }
            } else if q.start.max(from) < q.end.min(to) {
                let part = Part { start: q.start.max(from), end: q.end.min(to), name, origin, gap };
                let ns = part.end - part.start;
                // The time of an operator is divided by what it calls.
                match out.last_mut().filter(|(last, _)| (last.end, last.name, last.gap) == (part.start, part.name, part.gap)) {
                    Some((last, sum)) => (last.end, *sum) = (part.end, *sum + ns),
                    None => out.push((part, ns)),
                }
            }
        }
        let ns: i64 = out.get(before..).into_iter().flatten().map(|p| p.1).sum();
        let mut seen: FxHashSet<u32> = FxHashSet::default();
        for (depth, (_, name, _)) in open.iter().enumerate().filter(|_| ns > 0) {
            // Count the time of a recursive function only once.
            if seen.insert(*name) {
                let sum = inclusive.entry(*name).or_default();
                *sum = (sum.0 + ns, sum.1.max(depth));
            }
        }
    };
    let mut open: Vec<(i64, u32, RangeOrigin)> = Vec::new();
    let mut at = i64::MIN;
    let next = rows.into_iter().map(|row| Some(ranges.get(row as usize))).chain([None]);
    for range in next {
        let until = range.map_or(i64::MAX, |r| r.start);
        while let Some(&(end, ..)) = open.last() {
            if end > at {
                give(&open, at, end.min(until));
                at = at.max(end.min(until));
            }
            if end > until {
                break;
            }
            open.pop();
        }
        if let Some(r) = range {
            at = r.start;
            open.push((r.end, r.name, r.origin));
        }
    }
}

/// Merges parts in ranges with similar names into one place each, with its time in ns, longest first.
fn by_name(case: &RunContext<'_>, parts: &[(Part, i64)]) -> Vec<(Place, i64)> {
    let labels = merged_labels(case, parts.iter().map(|(part, _)| part.name));
    let mut sums: FxHashMap<&str, (i64, Part)> = FxHashMap::default();
    for (part, ns) in parts {
        let sum = sums.entry(labels.get(&part.name).map_or("", String::as_str)).or_insert((0, *part));
        sum.0 += ns;
        if part.length() > sum.1.length() {
            sum.1 = *part;
        }
    }
    let mut named: Vec<(&str, (i64, Part))> = sums.into_iter().collect();
    named.sort_by(|a, b| b.1.0.cmp(&a.1.0).then_with(|| a.0.cmp(b.0)));
    let place = |(name, (ns, part)): (&str, (i64, Part))| {
        let kind = match part.origin {
            RangeOrigin::Operator => PlaceKind::Operator,
            RangeOrigin::Python => PlaceKind::Python,
            _ => PlaceKind::Range,
        };
        (Place { kind, name: name.to_owned(), start: part.start, end: part.end, ns: Some(ns), rank: None }, ns)
    };
    named.into_iter().map(place).collect()
}
