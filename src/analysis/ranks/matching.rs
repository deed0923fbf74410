//! Matching of collectives across ranks: finds the calls on different ranks that belong to the same collective.

use super::nccl;
use super::shift::{Pair, Side, to_signed};
use crate::analysis::triage::device_ops::clamp_time;
use crate::model::digest::{Collective, CollectiveKind, Digest};
use std::collections::BTreeMap;

/// One rank's part in a collective, on the rank's own clock. Times are in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Index of the rank's digest.
    pub rank: u32,
    pub start: i64,
    pub duration: i64,
}

impl Arrival {
    pub fn end(&self) -> i64 {
        self.start.saturating_add(self.duration)
    }
}

/// A collective with all participating ranks.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Together {
    /// Index into [`Matches::groups`].
    pub group: u32,
    pub kind: &'static str,
    pub bytes: u64,
    pub arrivals: Vec<Arrival>,
}

impl Together {
    /// Last rank to arrive. All ranks leave at about the same time, so it has the shortest duration.
    pub fn last_arrival(&self) -> Option<&Arrival> {
        self.arrivals.iter().min_by_key(|a| a.duration)
    }
}

/// A group of ranks that communicate with each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    /// Indices of digests.
    pub ranks: Vec<u32>,
    /// Number of ranks, including those without a report.
    pub size: usize,
    /// True if the reports number the group's collectives; otherwise, they are matched by order.
    pub numbered: bool,
    /// NCCL's algorithm and protocol, if kernel names contain them.
    pub algorithm: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    pub groups: Vec<Group>,
    pub list: Vec<Together>,
    /// Number of collectives that each entry of `list` represents: large digests keep only every n-th collective.
    pub each: i64,
    pub remarks: Vec<String>,
}

/// Maximum number of collectives to search for a group's algorithm.
const LOOKED_AT: usize = 200;

impl Matches {
    /// Remark on sends and receives that could not be matched; `None` if they are few.
    pub fn unmatched_messages(&self, all: &[Digest]) -> Option<String> {
        let (mut there, mut without_peer) = (0_i64, false);
        for digest in all {
            let is_message: Vec<bool> = digest.kinds.iter().map(|k| nccl::point_to_point(nccl::collective_kind(&k.name))).collect();
            let each = digest.collectives.as_ref().map_or(1, |c| i64::from(c.each.max(1)));
            let own = || digest.collectives().filter(|c| is_message[c.kind]);
            there += each.saturating_mul(to_signed(own().count()));
            without_peer |= own().any(|c| digest.kinds[c.kind].peer.is_none());
        }
        let sides = self.list.iter().filter(|c| nccl::point_to_point(c.kind)).map(|c| c.arrivals.len()).sum::<usize>();
        let lost = there - to_signed(sides).saturating_mul(self.each);
        // A few messages are always unmatched, because captures begin and end in the middle of messages.
        (all.len() > 1 && lost > there / 20).then(|| {
            let why = if without_peer {
                "their kernels do not name the other rank"
            } else {
                "the other side is in no report, or has another number of them"
            };
            format!("{lost} of {there} sends and receives could not be matched ({why}): who waits for whom in them is not known")
        })
    }
}

/// A group's job, its name, and its ranks as listed in the report.
type Key = (u32, String, Vec<u32>);
/// A rank's collectives in one group, by number.
type Own = Vec<Collective>;

/// Returns the collectives of a rank in a group, by number, excluding sends and receives.
fn of_group(digest: &Digest, key: &Key, each: i64) -> Own {
    let ours: Vec<bool> = digest
        .kinds
        .iter()
        .map(|k| (&k.group, &k.ranks) == (&key.1, &key.2) && !nccl::point_to_point(nccl::collective_kind(&k.name)))
        .collect();
    let all = digest.collectives().filter(|c| ours[c.kind] && c.sequence % each == 0);
    let own: Own = all.map(|c| Collective { start: clamp_time(c.start), duration: clamp_time(c.duration), ..c }).collect();
    in_order_of_numbers(own)
}

fn in_order_of_numbers(mut own: Own) -> Own {
    own.sort_by_key(|c| c.sequence);
    own.dedup_by_key(|c| c.sequence);
    own
}

/// Route of messages: group, and the numbers of the sender and the receiver within it.
type Way = (Key, u32, u32);

/// Messages on each route as seen by its two ranks, in host call order. A rank's number within the group comes from the
/// report, otherwise from its position among the group's ranks; failing that, the rank number itself is used.
fn message_routes(all: &[Digest], job_of: &[u32], each: i64) -> BTreeMap<Way, Vec<(u32, Own)>> {
    let mut out: BTreeMap<Way, Vec<(u32, Own)>> = BTreeMap::new();
    for (rank, digest) in (0..).zip(all) {
        let way = |k: &CollectiveKind| {
            let (peer, kind) = (k.peer?, nccl::collective_kind(&k.name));
            let place = |own: u32| k.ranks.iter().position(|&r| r == own).and_then(|p| u32::try_from(p).ok());
            let own = k.member.or_else(|| place(digest.rank?)).or(digest.rank)?;
            let key = (job_at(job_of, rank), k.group.clone(), k.ranks.clone());
            match kind {
                "send" => Some((key, own, peer)),
                "recv" => Some((key, peer, own)),
                _ => None,
            }
        };
        let of: Vec<Option<Way>> = digest.kinds.iter().map(way).collect();
        let mut own: BTreeMap<&Way, Own> = BTreeMap::new();
        for c in digest.collectives().filter(|c| c.sequence % each == 0) {
            if let Some(way) = &of[c.kind] {
                own.entry(way).or_default().push(Collective { start: clamp_time(c.start), duration: clamp_time(c.duration), ..c });
            }
        }
        for (way, list) in own {
            out.entry(way.clone()).or_default().push((rank, in_order_of_numbers(list)));
        }
    }
    // Keep routes with both sides, except those from a rank to itself.
    out.retain(|way, parts| parts.len() == 2 && way.1 != way.2);
    out
}

fn job_at(job_of: &[u32], rank: u32) -> u32 {
    job_of.get(rank as usize).copied().unwrap_or_default()
}

/// Matches collectives by group and number if the reports contain them, otherwise by order. `job_of` contains the job
/// of each digest; only ranks of the same job have collectives in common.
pub fn match_collectives(all: &[Digest], job_of: &[u32]) -> Matches {
    let mut groups: BTreeMap<Key, Vec<u32>> = BTreeMap::new();
    let each = all.iter().filter_map(|d| d.collectives.as_ref()).map(|c| i64::from(c.each.max(1))).max().unwrap_or(1);
    for (rank, digest) in (0..).zip(all) {
        for kind in &digest.kinds {
            let of = groups.entry((job_at(job_of, rank), kind.group.clone(), kind.ranks.clone())).or_default();
            if of.last() != Some(&rank) {
                of.push(rank);
            }
        }
    }
    let mut out = Matches { each, ..Matches::default() };
    // Process one group at a time, because all groups at once would take several times the memory.
    for (key, ranks) in groups {
        let mut parts: Vec<(u32, Own)> =
            ranks.into_iter().map(|r| (r, of_group(&all[r as usize], &key, each))).filter(|p| !p.1.is_empty()).collect();
        if parts.len() < 2 {
            continue;
        }
        let kinds = |rank: u32, c: &Collective| &all[rank as usize].kinds[c.kind];
        let numbered = parts.iter().all(|(rank, own)| own.iter().all(|c| kinds(*rank, c).numbered));
        if !numbered {
            in_order(all, &mut parts, &mut out.remarks);
        }
        let size = parts.iter().filter_map(|(rank, own)| kinds(*rank, own.first()?).size).max();
        let size = size.map_or(0, |n| n as usize).max(key.2.len()).max(parts.len());
        let number = u32::try_from(out.groups.len()).unwrap_or(u32::MAX);
        let before = out.list.len();
        gather_common(all, number, &parts, &mut out.list);
        if out.list.len() == before {
            continue;
        }
        let algorithms = parts.iter().flat_map(|(rank, own)| own.iter().map(|c| &kinds(*rank, c).algorithm));
        let algorithm = algorithms.take(LOOKED_AT).find(|a| !a.is_empty()).cloned().unwrap_or_default();
        out.groups.push(Group { name: key.1, size, ranks: parts.iter().map(|p| p.0).collect(), numbered, algorithm });
    }
    for ((key, from, to), mut parts) in message_routes(all, job_of, each) {
        in_order(all, &mut parts, &mut out.remarks);
        let number = u32::try_from(out.groups.len()).unwrap_or(u32::MAX);
        let before = out.list.len();
        gather_common(all, number, &parts, &mut out.list);
        if out.list.len() > before {
            let ranks = parts.iter().map(|p| p.0).collect();
            out.groups.push(Group { name: format!("{} {from} → {to}", key.1), ranks, size: 2, ..Group::default() });
        }
    }
    out.list.shrink_to_fit();
    out
}

/// Collects the collectives that have the same number and kind on all ranks of the group.
fn gather_common(all: &[Digest], group: u32, parts: &[(u32, Own)], into: &mut Vec<Together>) {
    let Some(((first, own), others)) = parts.split_first() else { return };
    let words: Vec<Vec<&'static str>> =
        parts.iter().map(|(r, _)| all[*r as usize].kinds.iter().map(|k| nccl::common_kind(&k.name)).collect()).collect();
    let mut at = vec![0usize; others.len()];
    for c in own {
        let kind = words[0][c.kind];
        let mut arrivals = Vec::with_capacity(parts.len());
        arrivals.push(Arrival { rank: *first, start: c.start, duration: c.duration });
        for (i, (rank, theirs)) in others.iter().enumerate() {
            while theirs.get(at[i]).is_some_and(|o| o.sequence < c.sequence) {
                at[i] += 1;
            }
            let same = theirs.get(at[i]).filter(|o| o.sequence == c.sequence && words[i + 1][o.kind] == kind);
            arrivals.extend(same.map(|o| Arrival { rank: *rank, start: o.start, duration: o.duration }));
        }
        if arrivals.len() == parts.len() {
            into.push(Together { group, kind, bytes: c.bytes, arrivals });
        }
    }
}

/// Numbers the collectives of an unnumbered group by aligning each rank with the rank that has the most, because
/// captures begin at different times.
fn in_order(all: &[Digest], parts: &mut Vec<(u32, Own)>, remarks: &mut Vec<String>) {
    let Some(reference) = (0..parts.len()).max_by_key(|&i| (parts[i].1.len(), std::cmp::Reverse(i))) else { return };
    let (rank, longest) = parts[reference].clone();
    let each = longest.windows(2).map(|w| w[1].sequence.saturating_sub(w[0].sequence)).find(|d| *d > 0).unwrap_or(1);
    let mut lost = Vec::new();
    parts.retain_mut(|(own_rank, own)| {
        if *own_rank == rank {
            return true;
        }
        let (mine, theirs) = (&all[*own_rank as usize], &all[rank as usize]);
        let one_clock = mine.host.is_some() && mine.host == theirs.host;
        let epochs = mine.epoch.zip(theirs.epoch);
        let Some(shift) = (Pair { mine: make_side(mine, own), other: make_side(theirs, &longest), epochs, one_clock }).find_shift() else {
            lost.push(*own_rank);
            return false;
        };
        // Before the reference rank's first collective and after its last, extrapolate the numbers.
        let number = |at: i64| match usize::try_from(at).ok().and_then(|at| longest.get(at)) {
            Some(of) => of.sequence,
            None if at < 0 => longest[0].sequence.saturating_add(at.saturating_mul(each)),
            None => longest[longest.len() - 1].sequence.saturating_add((at - to_signed(longest.len()) + 1).saturating_mul(each)),
        };
        for (at, c) in (0_i64..).zip(own.iter_mut()) {
            c.sequence = number(at.saturating_add(shift));
        }
        true
    });
    if !lost.is_empty() {
        remarks.push(format!(
            "the collectives of {} could not be matched: they are of other kinds than those of the other ranks, or in another order",
            super::rank_identity::format_ranges(&lost)
        ));
    }
}

fn make_side<'a>(digest: &Digest, own: &'a Own) -> Side<'a> {
    let named = digest.steps_of_collectives();
    Side {
        list: own,
        words: own.iter().map(|c| nccl::common_kind(&digest.kinds[c.kind].name)).collect(),
        steps: own.iter().map(|c| named.get(&(c.kind, c.sequence)).copied()).collect(),
    }
}
