//! Waits in collectives, attributed to the ranks that cause them, directly or through other ranks.

use super::clocks::Offset;
use super::matching::{Arrival, Matches, Together};
use super::nccl;
use super::recurring::{Recurring, Wait, find_recurring};
use std::collections::BTreeMap;

/// Share of the collectives to skip at the beginning, because captures start at different times, which makes the first
/// collectives wait.
const START: f64 = 0.1;
/// Share of the waits to exclude as accidents, starting with the longest.
const LONGEST: f64 = 0.02;
/// Minimum multiple of the longest evaluated wait for a wait to be reported as a single delay.
const OUTLIER: i64 = 4;
/// Minimum share of a wait for a rank to be blamed for it.
const LITTLE: f64 = 0.02;
/// Ranks that caused a collective's wait, with their shares of the wait.
type Blame = Vec<(u32, f64)>;
/// Ranks that delayed another rank, with the delay, ns.
type Delays = Vec<(u32, f64)>;

/// Waits in a job. Times are in ns; ranks are indices of digests.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Waits {
    /// Average time that the other ranks waited for each rank, in collectives with that rank or with ranks that had
    /// been delayed by it.
    pub late: Vec<i64>,
    /// Total time that each rank waited.
    pub waited: Vec<i64>,
    /// Waiting time by waiting rank and causing rank.
    pub pairs: BTreeMap<(u32, u32), i64>,
    /// End of a collective on the common clock, causing rank, and waiting time; in order of the ends.
    pub when: Vec<(i64, u32, i64)>,
    /// The same for the few longest waits, which are excluded from the evaluation but belong to their steps.
    pub longest: Vec<(i64, u32, i64)>,
    /// True for each collective that was evaluated.
    pub judged: Vec<bool>,
    /// Time that each rank spent in the few longest waits, which are excluded from the evaluation.
    pub in_longest: Vec<i64>,
    /// A rank that is late repeatedly, at regular intervals, while most waits are short.
    pub recurring: Option<Recurring>,
    /// Waits that are many times as long as any evaluated one: end on the common clock, causing rank, and average wait
    /// of the other ranks.
    pub outliers: Vec<(i64, u32, i64)>,
}

impl Waits {
    pub fn total_wait(&self) -> i64 {
        self.late.iter().sum()
    }
}

/// Average time that the other ranks wait for the last one in a collective, ns.
fn mean_wait(c: &Together) -> i64 {
    let Some(last) = c.last_arrival() else { return 0 };
    let waited: i64 = c.arrivals.iter().map(|a| a.duration.saturating_sub(last.duration)).fold(0, i64::saturating_add);
    waited / i64::try_from(c.arrivals.len().saturating_sub(1).max(1)).unwrap_or(1)
}

/// Collectives in order of their ends, with the selection of those that count.
struct InOrder {
    /// Ends and indices, sorted by end.
    order: Vec<(i64, usize)>,
    /// True for collectives that count: all except those at the beginning of each group and the few with the longest
    /// waits.
    judged: Vec<bool>,
    /// Indices of the collectives excluded for their long waits.
    longest: Vec<usize>,
    recurring: Option<Recurring>,
}

fn in_order(matches: &Matches, clocks: &[Offset]) -> InOrder {
    let end = |c: &Together| c.last_arrival().map_or(0, |a| clocks.get(a.rank as usize).copied().unwrap_or_default().common_time(a.end()));
    let mut order: Vec<(i64, usize)> = matches.list.iter().enumerate().map(|(i, c)| (end(c), i)).collect();
    order.sort_unstable();
    let mut left: Vec<usize> = vec![0; matches.groups.len()];
    for &(_, i) in &order {
        left[matches.list[i].group as usize] += 1;
    }
    for n in &mut left {
        *n = ((*n as f64 * START).ceil() as usize).min(n.saturating_sub(1));
    }
    // A wait for a message is not evaluated, because it does not mean that the sender is late; but it passes delays on.
    let mut judged: Vec<bool> = matches.list.iter().map(|c| !nccl::point_to_point(c.kind)).collect();
    for &(_, i) in &order {
        let left = &mut left[matches.list[i].group as usize];
        if *left > 0 {
            *left -= 1;
            judged[i] = false;
        }
    }
    // Per group: in groups with few collectives, each wait is longer, and would look like an accident.
    let mut by_wait: Vec<Vec<(i64, usize)>> = vec![Vec::new(); matches.groups.len()];
    for i in (0..judged.len()).filter(|&i| judged[i]) {
        by_wait[matches.list[i].group as usize].push((mean_wait(&matches.list[i]), i));
    }
    let mut accidents = Vec::new();
    for mut list in by_wait {
        list.sort_unstable_by_key(|w| std::cmp::Reverse(w.0));
        let longest = ((list.len() as f64 * LONGEST).ceil() as usize).max(1);
        // One or two waits are too few to identify outliers.
        accidents.extend(list.iter().take(if list.len() > 2 { longest } else { 0 }).map(|w| w.1));
    }
    let counted: Vec<(i64, usize)> = order.iter().copied().filter(|o| !nccl::point_to_point(matches.list[o.1].kind)).collect();
    let wait = |&(end, i): &(i64, usize)| {
        let c = &matches.list[i];
        Wait { end, rank: c.last_arrival().map_or(0, |a| a.rank), ns: mean_wait(c), start: !judged[i] }
    };
    let recurring = find_recurring(&counted.iter().map(wait).collect::<Vec<_>>());
    // A recurring delay is not an accident.
    if let Some(of) = &recurring {
        accidents.retain(|i| !of.at.iter().any(|&at| counted[at].1 == *i));
    }
    for &i in &accidents {
        judged[i] = false;
    }
    InOrder { order, judged, longest: accidents, recurring }
}

/// Attributes waits to ranks, in order of the collectives. If the last rank to arrive had itself waited for another
/// rank in a different group, the blame is passed on to that rank.
pub fn attribute_waits(matches: &Matches, clocks: &[Offset], ranks: usize) -> Waits {
    let mut out = Waits { late: vec![0; ranks], waited: vec![0; ranks], in_longest: vec![0; ranks], ..Waits::default() };
    let mut groups_of: Vec<Vec<u32>> = vec![Vec::new(); ranks];
    for (number, group) in (0..).zip(&matches.groups) {
        for &rank in &group.ranks {
            groups_of[rank as usize].push(number);
        }
    }
    // Per rank and group: delays of the rank in its other groups since its last collective in this one, with the ranks
    // that caused them.
    let mut delayed: Vec<Vec<Delays>> = groups_of.iter().map(|groups| vec![Delays::new(); groups.len()]).collect();
    let place = |rank: u32, group: u32| groups_of[rank as usize].iter().position(|&g| g == group).unwrap_or(0);
    let InOrder { order, judged, longest, recurring } = in_order(matches, clocks);
    let usual = (0..judged.len()).filter(|&i| judged[i]).map(|i| mean_wait(&matches.list[i])).max().unwrap_or(0);
    for &i in &longest {
        let c = &matches.list[i];
        let Some(last) = c.last_arrival() else { continue };
        for a in &c.arrivals {
            // Each of these waits counts once, even if a collective in a thinned digest represents several.
            out.in_longest[a.rank as usize] += a.duration.saturating_sub(last.duration);
        }
        let wait = mean_wait(c);
        if wait > usual.saturating_mul(OUTLIER) {
            let end = clocks.get(last.rank as usize).copied().unwrap_or_default().common_time(last.end());
            out.outliers.push((end, last.rank, wait));
        }
    }
    let mut is_longest = vec![false; judged.len()];
    for &i in &longest {
        is_longest[i] = true;
    }
    let others = ranks.saturating_sub(1).max(1) as f64;
    for (end, i) in order {
        let c = &matches.list[i];
        let Some(last) = c.last_arrival().copied() else { continue };
        let wait = mean_wait(c);
        let blame = share_blame(wait as f64, last.rank, &delayed[last.rank as usize][place(last.rank, c.group)]);
        for a in &c.arrivals {
            delayed[a.rank as usize][place(a.rank, c.group)].clear();
        }
        let waited: i64 = c.arrivals.iter().map(|a| a.duration.saturating_sub(last.duration)).fold(0, i64::saturating_add);
        for &(rank, share) in blame.iter().filter(|_| judged[i] || is_longest[i]) {
            // Average over all other ranks, including ranks outside this group.
            let part = (waited as f64 * share / others).round() as i64;
            if judged[i] {
                out.when.push((end, rank, part.saturating_mul(matches.each)));
            } else {
                out.longest.push((end, rank, part));
            }
        }
        for a in c.arrivals.iter().filter(|a| a.rank != last.rank) {
            if judged[i] {
                add_wait(a, &last, &blame, matches.each, &mut out);
            }
            let own = a.duration.saturating_sub(last.duration) as f64;
            let here = place(a.rank, c.group);
            for (_, of) in delayed[a.rank as usize].iter_mut().enumerate().filter(|(at, _)| *at != here) {
                for &(rank, share) in &blame {
                    match of.iter_mut().find(|d| d.0 == rank) {
                        Some(known) => known.1 += own * share,
                        None => of.push((rank, own * share)),
                    }
                }
            }
        }
    }
    (out.judged, out.recurring) = (judged, recurring);
    for (&(_, rank), &ns) in &out.pairs {
        out.late[rank as usize] += ns;
    }
    out.late.iter_mut().for_each(|ns| *ns = (*ns as f64 / others).round() as i64);
    out
}

fn add_wait(a: &Arrival, last: &Arrival, blame: &Blame, each: i64, out: &mut Waits) {
    let wait = a.duration.saturating_sub(last.duration);
    out.waited[a.rank as usize] += wait.saturating_mul(each);
    for &(rank, share) in blame.iter().filter(|b| b.0 != a.rank) {
        *out.pairs.entry((a.rank, rank)).or_default() += (wait as f64 * share).round() as i64 * each;
    }
}

/// Divides the blame for a wait on `last` among the ranks that delayed it, and `last` itself for the rest.
fn share_blame(wait: f64, last: u32, delayed: &Delays) -> Blame {
    let before: f64 = delayed.iter().map(|d| d.1).sum();
    if wait <= 0.0 || before <= 0.0 {
        return vec![(last, 1.0)];
    }
    // Earlier delays explain at most as much of the wait as their own length.
    let passed = (before / wait).min(1.0);
    let mut out: BTreeMap<u32, f64> = BTreeMap::new();
    for &(rank, ns) in delayed {
        *out.entry(rank).or_default() += ns / before * passed;
    }
    // Small shares are not passed on but stay with the last rank.
    out.retain(|_, share| *share >= LITTLE);
    let handed: f64 = out.values().sum();
    if handed < 1.0 {
        *out.entry(last).or_default() += 1.0 - handed;
    }
    out.into_iter().collect()
}

#[cfg(test)]
mod tests {
    use super::super::matching::Group;
    use super::*;

    /// Two pairs, and two more pairs across them: rank 0 computes longer, and rank 1 is late to rank 3 only because
    /// rank 1 waited for rank 0.
    #[test]
    fn blame_is_handed_on_from_group_to_group() {
        let group = |ranks: [u32; 2]| Group { ranks: ranks.to_vec(), size: 2, ..Group::default() };
        let together = |group: u32, at: i64, who: [(u32, i64); 2]| Together {
            group,
            kind: "all_reduce",
            bytes: 0,
            arrivals: who.map(|(rank, duration)| Arrival { rank, start: at - duration, duration }).to_vec(),
        };
        let mut list = Vec::new();
        for step in 0..50 {
            let t = step * 10_000;
            list.push(together(0, t + 2000, [(0, 100), (1, 1100)]));
            list.push(together(1, t + 1000, [(2, 100), (3, 100)]));
            list.push(together(2, t + 3000, [(0, 100), (2, 1100)]));
            list.push(together(3, t + 3001, [(1, 100), (3, 1100)]));
        }
        let matches =
            Matches { groups: vec![group([0, 1]), group([2, 3]), group([0, 2]), group([1, 3])], list, each: 1, ..Matches::default() };
        let found = attribute_waits(&matches, &[Offset::default(); 4], 4);
        assert!(found.late[0] > 40_000 && found.late[1..].iter().all(|&l| l <= found.late[0] / 40), "{:?}", found.late);
        assert!(found.pairs[&(3, 0)] > 30_000);
    }
}
