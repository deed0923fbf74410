//! Collectives, derived from the payloads of NCCL's NVTX ranges (communicator, bytes, peer) and from NCCL kernels.

use crate::model::{Collective, NcclCall, Payload, Profile, RangeOrigin};
use rustc_hash::FxHashMap;
use std::collections::BTreeSet;
use std::sync::Arc;

/// NVTX domain of NCCL.
const DOMAIN: &str = "NCCL";

/// An event on a thread, for sorting by time.
#[derive(Clone, Copy, Debug, PartialEq)]
enum What {
    Init {
        communicator: u64,
        ranks: u32,
        rank: u32,
    },
    /// A call and its end time, ns.
    Call(Call, i64),
    GroupStart,
    /// `ncclGroupEnd` and its end time, ns.
    GroupEnd(i64),
    Launch(u32),
}

/// A single call of a collective, send or receive.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Call {
    /// Index into the names of ranges.
    name: u32,
    communicator: Option<u64>,
    bytes: u64,
    peer: Option<u32>,
}

/// A process's membership in a communicator whose initialization was recorded.
#[derive(Clone, Copy, Debug)]
struct Member {
    ranks: u32,
    rank: u32,
}

/// Adds the collectives found in NCCL's ranges, unless the report already has collectives.
pub fn add_collectives(profile: &mut Profile) {
    let said = profile.ranges.payloads.values().any(|p| matches!(p, Payload::Nccl(_)));
    if !said || !profile.collectives.is_empty() {
        return;
    }
    let threads = group_by_thread(profile);
    let mut members: FxHashMap<(u32, u64), Member> = FxHashMap::default();
    let mut found: Vec<(i64, u32, Vec<Call>)> = Vec::new();
    for (&(pid, _), events) in &threads {
        let inits = events.iter().filter_map(|(_, what)| match *what {
            What::Init { communicator, ranks, rank } => Some(((pid, communicator), Member { ranks, rank })),
            _ => None,
        });
        members.extend(inits);
        found.extend(match_launches(events));
    }
    found.sort_by_key(|(called, launch, _)| (*called, *launch));
    let whole = profile.capture.gate.is_none();
    let mut counts: FxHashMap<(u32, u64), u64> = FxHashMap::default();
    for (_, launch, calls) in found {
        let pid = profile.launches.place(launch as usize).and_then(|p| profile.places.get(p.0 as usize)?.pid).unwrap_or_default();
        let list = build_collectives(profile, launch, &calls, |communicator| members.get(&(pid, communicator)).copied());
        for (communicator, mut collective) in list {
            if collective.peer.is_none()
                && let Some(communicator) = communicator
            {
                let count = counts.entry((pid, communicator)).or_default();
                // The sequence number is valid only if the initialization of the communicator was recorded and the
                // recording was not paused.
                collective.sequence = (whole && members.contains_key(&(pid, communicator))).then_some(*count);
                *count += 1;
            }
            profile.collectives.push(collective);
        }
    }
    profile.collectives.sort_by_key(|c| (c.start, c.launch));
}

/// NCCL calls and launches of NCCL kernels by thread, sorted by time.
fn group_by_thread(profile: &Profile) -> FxHashMap<(u32, u32), Vec<(i64, What)>> {
    let mut out: FxHashMap<(u32, u32), Vec<(i64, What)>> = FxHashMap::default();
    let ranges = &profile.ranges;
    let group = |name: u32| match ranges.names.get(name as usize) {
        Some((Some(domain), text)) if &**domain == DOMAIN => match &**text {
            "ncclGroupStart" => Some(true),
            "ncclGroupEnd" => Some(false),
            _ => None,
        },
        _ => None,
    };
    let groups: Vec<Option<bool>> = (0..ranges.names.len()).map(|n| group(u32::try_from(n).unwrap_or(u32::MAX))).collect();
    for (row, range) in (0..).zip(ranges.iter()).filter(|(_, r)| r.origin == RangeOrigin::Nvtx) {
        let what = match (ranges.payloads.get(&row), groups.get(range.name as usize).copied().flatten()) {
            (Some(&Payload::Nccl(NcclCall::Init { communicator, ranks, rank })), _) => What::Init { communicator, ranks, rank },
            (Some(&Payload::Nccl(NcclCall::Message { communicator, bytes, peer })), _) => {
                What::Call(Call { name: range.name, communicator, bytes, peer }, range.end)
            }
            (_, Some(true)) => What::GroupStart,
            (_, Some(false)) => What::GroupEnd(range.end),
            _ => continue,
        };
        if let Some(&thread) = ranges.threads.get(range.thread as usize) {
            out.entry(thread).or_default().push((range.start, what));
        }
    }
    let nccl: Vec<bool> = profile.kernels.iter().map(|k| k.function().contains("nccl")).collect();
    for row in 0..profile.launches.len() {
        if !nccl.get(profile.launches.kernel(row).0 as usize).is_some_and(|n| *n) {
            continue;
        }
        let place = profile.launches.place(row).and_then(|p| profile.places.get(p.0 as usize));
        let thread = place.and_then(|p| p.pid.zip(p.thread));
        if let (Some(thread), Some((called, _)), Ok(row)) = (thread, profile.launches.call(row), u32::try_from(row)) {
            out.entry(thread).or_default().push((called, What::Launch(row)));
        }
    }
    for events in out.values_mut() {
        // A range that starts at the same time as a launch contains it, so sort the range first.
        events.sort_by_key(|(at, what)| (*at, matches!(what, What::Launch(_))));
    }
    out
}

/// Matches the launches of a thread with its NCCL calls. Returns the start of the calls, the launch, and the calls.
fn match_launches(events: &[(i64, What)]) -> Vec<(i64, u32, Vec<Call>)> {
    let mut out: Vec<(i64, u32, Vec<Call>)> = Vec::new();
    // Calls in groups that have not ended yet.
    let mut grouped: Vec<Call> = Vec::new();
    let mut depth = 0u32;
    let mut at = 0;
    while let Some(&(_, what)) = events.get(at) {
        at += 1;
        let (calls, until) = match what {
            What::Init { .. } | What::Launch(_) => continue,
            What::GroupStart => {
                depth = depth.saturating_add(1);
                continue;
            }
            What::Call(call, _) if depth > 0 => {
                grouped.push(call);
                continue;
            }
            What::Call(call, end) => (vec![call], end),
            What::GroupEnd(end) => {
                depth = depth.saturating_sub(1);
                if depth > 0 {
                    continue;
                }
                (std::mem::take(&mut grouped), end)
            }
        };
        let inside = events[at..].iter().take_while(|(start, what)| *start <= until && matches!(what, What::Launch(_)));
        let launches: Vec<(i64, u32)> =
            inside.filter_map(|(start, what)| if let What::Launch(row) = what { Some((*start, *row)) } else { None }).collect();
        at += launches.len();
        out.extend(shared_out(calls, &launches));
    }
    out
}

/// Assigns the calls of a group to its launches: one communicator per launch if their numbers match, otherwise all
/// calls to the first launch.
fn shared_out(calls: Vec<Call>, launches: &[(i64, u32)]) -> Vec<(i64, u32, Vec<Call>)> {
    // Calls by communicator, in the order of their first calls.
    let mut communicators: Vec<Vec<Call>> = Vec::new();
    let mut place: FxHashMap<Option<u64>, usize> = FxHashMap::default();
    for call in &calls {
        let at = *place.entry(call.communicator).or_insert(communicators.len());
        match communicators.get_mut(at) {
            Some(list) => list.push(*call),
            None => communicators.push(vec![*call]),
        }
    }
    match launches {
        [] => Vec::new(),
        [first, ..] if communicators.len() != launches.len() => vec![(first.0, first.1, calls)],
        _ => launches.iter().zip(communicators).map(|(&(called, row), calls)| (called, row, calls)).collect(),
    }
}

/// Builds the collectives of a launch: a single collective, or one send or receive per call, with communicators.
fn build_collectives(
    profile: &Profile,
    launch: u32,
    calls: &[Call],
    member: impl Fn(u64) -> Option<Member>,
) -> Vec<(Option<u64>, Collective)> {
    let Some(first) = calls.first() else { return Vec::new() };
    let row = launch as usize;
    let word = |call: &Call| profile.ranges.names.get(call.name as usize).map_or("", |n| n.1.trim_start_matches("nccl"));
    let of = first.communicator.and_then(&member);
    let make = |kind: &str, bytes: Option<u64>, peer: Option<u32>| Collective {
        kind: Arc::from(kind),
        bytes,
        peer,
        member: of.map(|m| m.rank),
        group: first.communicator.map_or_else(|| Arc::from(""), |c| Arc::from(format!("{c:016x}"))),
        group_size: of.map(|m| m.ranks),
        start: profile.launches.start(row),
        duration: profile.launches.duration(row),
        launch: Some(launch),
        ..Collective::default()
    };
    let total = calls.iter().map(|c| c.bytes).fold(0, u64::saturating_add);
    if calls.iter().all(|c| c.peer.is_some()) {
        let to =
            |receive: bool| -> BTreeSet<u32> { calls.iter().filter(|c| (word(c) == "Recv") == receive).filter_map(|c| c.peer).collect() };
        let (sent, received) = (to(false), to(true));
        // Sends to and receives from all other ranks form an all-to-all, as implemented by PyTorch and others. The
        // total of all payloads includes both directions.
        let all = of.map_or(3, |m| m.ranks.saturating_sub(1).max(2)) as usize;
        if sent == received && sent.len() >= all {
            return vec![(first.communicator, make("all_to_all", Some(total / 2), None))];
        }
        return calls.iter().map(|c| (c.communicator, make(word(c), Some(c.bytes), c.peer))).collect();
    }
    let same = calls.iter().all(|c| c.name == first.name);
    let kind = if same { word(first) } else { "coalesced" };
    // Message size as defined by nccl-tests: if each rank contributes or receives a part, the total over all ranks.
    let parts = match kind {
        "AllGather" | "ReduceScatter" | "Gather" | "Scatter" => of.map(|m| u64::from(m.ranks)),
        _ => Some(1),
    };
    vec![(first.communicator, make(kind, parts.and_then(|n| total.checked_mul(n)), None))]
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(communicator: u64, name: u32) -> Call {
        Call { name, communicator: Some(communicator), bytes: 8, peer: None }
    }

    #[test]
    fn a_launch_does_what_was_asked_for_since_the_group_began() {
        let events = [
            (0, What::Call(call(1, 0), 10)),
            (5, What::Launch(0)),
            (20, What::GroupStart),
            (21, What::Call(call(1, 1), 22)),
            (23, What::GroupStart),
            (24, What::Call(call(2, 2), 25)),
            (26, What::GroupEnd(27)),
            (28, What::GroupEnd(40)),
            (30, What::Launch(1)),
            (32, What::Launch(2)),
            // A launch outside of any NCCL call: its operation is unknown.
            (50, What::Launch(3)),
            (60, What::Call(call(1, 0), 61)),
        ];
        let got = match_launches(&events);
        assert_eq!(got, [(5, 0, vec![call(1, 0)]), (30, 1, vec![call(1, 1)]), (32, 2, vec![call(2, 2)])]);
    }

    #[test]
    fn payloads_of_several_releases() {
        let long = |n: u64| n.to_le_bytes();
        let bytes = |parts: &[&[u8]]| parts.concat();
        let message = |communicator, bytes, peer| Some(NcclCall::Message { communicator, bytes, peer });
        let cases: [(&str, Vec<u8>, Option<NcclCall>); 7] = [
            ("ncclAllReduce", bytes(&[&long(7), &long(4096), &long(0)]), message(Some(7), 4096, None)),
            ("ncclAllReduce", bytes(&[&long(4096), &long(0)]), message(None, 4096, None)),
            ("ncclAllGather", bytes(&[&long(7), &long(64)]), message(Some(7), 64, None)),
            ("ncclAllGather", bytes(&[&long(64)]), message(None, 64, None)),
            ("ncclSend", bytes(&[&long(7), &long(64), &long(3)]), message(Some(7), 64, Some(3))),
            (
                "ncclCommInitRank",
                bytes(&[&long(7), &long(2 | 1 << 32), &long(0)]),
                Some(NcclCall::Init { communicator: 7, ranks: 2, rank: 1 }),
            ),
            ("ncclSend", vec![1, 2], None),
        ];
        for (function, payload, wanted) in cases {
            assert_eq!(NcclCall::from_payload(function, &payload), wanted, "{function}");
        }
    }
}
