//! Which collectives of different ranks belong together.

use super::nccl;
use crate::analysis::triage::ops::sane;
use crate::model::digest::{Collective, Digest};
use rustc_hash::FxHashMap;
use std::collections::BTreeMap;

/// One rank's part in a collective, on the rank's own clock. Times in ns.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Arrival {
    /// Index of the rank's digest.
    pub rank: u32,
    pub start: i64,
    pub duration: i64,
}

impl Arrival {
    #[must_use]
    pub fn end(&self) -> i64 {
        self.start.saturating_add(self.duration)
    }
}

/// A collective with all ranks that took part in it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Together {
    /// Index into [`Matches::groups`].
    pub group: u32,
    pub kind: &'static str,
    pub bytes: u64,
    pub arrivals: Vec<Arrival>,
}

impl Together {
    /// Who came last: all leave at about the same time, so that it has the shortest duration.
    #[must_use]
    pub fn last(&self) -> Option<&Arrival> {
        self.arrivals.iter().min_by_key(|a| a.duration)
    }
}

/// Ranks that communicate with each other.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Group {
    pub name: String,
    /// Indices of digests.
    pub ranks: Vec<u32>,
    /// How many ranks it has, also those that are not there.
    pub size: usize,
    /// Whether the reports number its collectives; else they were matched by their order.
    pub numbered: bool,
    /// NCCL's algorithm and protocol, where the kernels say it.
    pub algorithm: String,
}

#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Matches {
    pub groups: Vec<Group>,
    pub list: Vec<Together>,
    /// Each collective stands for so many.
    pub each: i64,
    pub remarks: Vec<String>,
}

/// Shifts of order that are tried where one rank has more collectives than another.
const MOST_SHIFT: usize = 2000;
/// Collectives that a shift is judged by.
const LOOKED_AT: usize = 200;
/// Share of the collectives that must be of the same kind for an order to be the same.
const ALIKE: f64 = 0.98;

type Key = (String, Vec<u32>);
/// A rank's collectives of one group by number.
type Own = BTreeMap<i64, Collective>;

/// Matches by group and number, as far as the reports have them, else by order.
#[must_use]
pub fn matches(all: &[Digest]) -> Matches {
    let mut groups: BTreeMap<Key, Vec<(u32, Own)>> = BTreeMap::new();
    let each = all.iter().filter_map(|d| d.collectives.as_ref()).map(|c| i64::from(c.each.max(1))).max().unwrap_or(1);
    for (rank, digest) in (0..).zip(all) {
        let mut own: FxHashMap<usize, Own> = FxHashMap::default();
        let keys: Vec<Key> = digest.kinds.iter().map(|k| (k.group.clone(), k.ranks.clone())).collect();
        let first: Vec<usize> = keys.iter().map(|k| keys.iter().position(|o| o == k).unwrap_or(0)).collect();
        for c in digest.collectives() {
            let c = Collective { start: sane(c.start), duration: sane(c.duration), ..c };
            if nccl::point_to_point(nccl::kind(&digest.kinds[c.kind].name)) || c.sequence % each != 0 {
                continue;
            }
            own.entry(first[c.kind]).or_default().insert(c.sequence, c);
        }
        let mut own: Vec<(usize, Own)> = own.into_iter().collect();
        own.sort_by_key(|o| o.0);
        for (kind, list) in own {
            groups.entry(keys[kind].clone()).or_default().push((rank, list));
        }
    }
    let mut out = Matches { each, ..Matches::default() };
    for ((name, listed), mut parts) in groups {
        let numbered = parts.iter().all(|(rank, own)| own.values().all(|c| all[*rank as usize].kinds[c.kind].numbered));
        if parts.len() < 2 {
            continue;
        }
        if !numbered {
            in_order(all, &mut parts, &mut out.remarks);
        }
        let said = |rank: u32, own: &Own| own.values().next().and_then(|c| all[rank as usize].kinds[c.kind].size);
        let size = parts.iter().filter_map(|(rank, own)| said(*rank, own)).max().map_or(0, |n| n as usize).max(listed.len());
        let ranks: Vec<u32> = parts.iter().map(|p| p.0).collect();
        let number = u32::try_from(out.groups.len()).unwrap_or(u32::MAX);
        let before = out.list.len();
        gather(all, number, &parts, &mut out.list);
        if out.list.len() == before {
            continue;
        }
        let algorithm = parts.iter().flat_map(|(rank, own)| own.values().map(|c| &all[*rank as usize].kinds[c.kind].algorithm));
        let algorithm = algorithm.take(LOOKED_AT).find(|a| !a.is_empty()).cloned().unwrap_or_default();
        out.groups.push(Group { name, size: size.max(ranks.len()), ranks, numbered, algorithm });
    }
    out
}

/// Collectives that all ranks of the group have, with the same number and of the same kind.
fn gather(all: &[Digest], group: u32, parts: &[(u32, Own)], into: &mut Vec<Together>) {
    let Some(((first, own), others)) = parts.split_first() else { return };
    let kind_of = |rank: u32, c: &Collective| nccl::kind(&all[rank as usize].kinds[c.kind].name);
    for (number, c) in own {
        let kind = kind_of(*first, c);
        let mut arrivals = Vec::with_capacity(parts.len());
        arrivals.push(Arrival { rank: *first, start: c.start, duration: c.duration });
        arrivals.extend(others.iter().filter_map(|(rank, own)| {
            let c = own.get(number).filter(|c| kind_of(*rank, c) == kind)?;
            Some(Arrival { rank: *rank, start: c.start, duration: c.duration })
        }));
        if arrivals.len() == parts.len() {
            into.push(Together { group, kind, bytes: c.bytes, arrivals });
        }
    }
}

/// Gives the collectives of a group that nobody numbered the numbers of the rank that has the most: captures begin at different times.
fn in_order(all: &[Digest], parts: &mut Vec<(u32, Own)>, remarks: &mut Vec<String>) {
    let Some(reference) = (0..parts.len()).max_by_key(|&i| (parts[i].1.len(), std::cmp::Reverse(i))) else { return };
    let n = parts[reference].1.len();
    let list = |own: &Own| own.values().copied().collect::<Vec<_>>();
    let (rank, longest) = (parts[reference].0, list(&parts[reference].1));
    let word = |rank: u32, c: &Collective| nccl::kind(&all[rank as usize].kinds[c.kind].name);
    let mut lost = Vec::new();
    parts.retain_mut(|(own_rank, own)| {
        if *own_rank == rank {
            return true;
        }
        let mine = list(own);
        let same = |shift: usize| {
            let pairs = mine.iter().zip(longest.iter().skip(shift));
            let alike = pairs.clone().filter(|(a, b)| word(*own_rank, a) == word(rank, b)).count();
            let n = pairs.len();
            n > 0 && alike as f64 >= ALIKE * n as f64
        };
        let epochs = all[*own_rank as usize].epoch.zip(all[rank as usize].epoch);
        let fitting = (0..=(n - mine.len()).min(MOST_SHIFT)).filter(|&s| same(s));
        let tried: Vec<((i64, i64), usize)> = fitting.map(|s| (spread(&mine, &longest[s..], epochs), s)).collect();
        let Some(least) = tried.iter().map(|t| t.0.0).min() else {
            lost.push(*own_rank);
            return false;
        };
        // Steps are alike: of orders that fit about as well the clocks of the machines decide.
        let close = least.saturating_mul(2).saturating_add(1000);
        let best = tried.into_iter().filter(|t| t.0.0 <= close).min_by_key(|((spread, apart), shift)| (*apart, *spread, *shift));
        let shift = best.map_or(0, |t| t.1);
        let numbers: Vec<i64> = longest.iter().skip(shift).map(|c| c.sequence).collect();
        *own = numbers.into_iter().zip(mine).collect();
        true
    });
    if !lost.is_empty() {
        remarks.push(format!(
            "the collectives of {} could not be matched: they are of other kinds than those of the other ranks, or in another order",
            super::identify::runs(&lost)
        ));
    }
}

/// How much the ends of collectives differ from a constant distance, and that distance by the clocks of the machines, ns.
fn spread(mine: &[Collective], other: &[Collective], epochs: Option<(i64, i64)>) -> (i64, i64) {
    let n = mine.len().min(other.len());
    let step = n.div_ceil(LOOKED_AT).max(1);
    let mut differences: Vec<i64> = (0..n).step_by(step).map(|i| mine[i].end().saturating_sub(other[i].end())).collect();
    differences.sort_unstable();
    let middle = differences[differences.len() / 2];
    let mut off: Vec<i64> = differences.iter().map(|d| d.saturating_sub(middle).saturating_abs()).collect();
    off.sort_unstable();
    let apart = epochs.map_or(0, |(a, b)| middle.saturating_add(a.saturating_sub(b)).saturating_abs());
    (off[off.len() / 2], apart)
}
