//! Collectives of a job on the common clock: first arrival, last arrival and end of each.

use super::job_result::Job;

/// A collective. Times are in ns on the common clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Moment {
    /// Index into the job's matched collectives.
    pub at: usize,
    /// Arrival of the first rank.
    pub first: i64,
    /// Arrival of the last rank, which ends the wait.
    pub ready: i64,
    /// Time at which the last rank left.
    pub end: i64,
    /// False if the collective is at the start of a capture or an accident, and therefore excluded from the ranks'
    /// waits.
    pub judged: bool,
}

impl Moment {
    /// Time that the first rank waited for the last, ns.
    pub fn wait_time(&self) -> i64 {
        self.ready.saturating_sub(self.first)
    }

    pub fn length(&self) -> i64 {
        self.end.saturating_sub(self.first)
    }
}

/// A rank's part in a collective. Times are in ns on the common clock.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bar {
    pub start: i64,
    pub end: i64,
    pub moment: usize,
}

/// All collectives of a job, sorted by the arrival of the last rank.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Aligned {
    pub list: Vec<Moment>,
    longest: i64,
}

impl Aligned {
    pub fn from_job(job: &Job) -> Self {
        let clock = |digest: u32| job.find_member(digest).map(|m| m.clock).unwrap_or_default();
        let clocks: Vec<_> =
            (0..job.ranks.iter().map(|m| m.digest + 1).max().unwrap_or(0)).map(|d| clock(u32::try_from(d).unwrap_or(0))).collect();
        let moment = |(at, c): (usize, &super::matching::Together)| {
            let of = |a: &super::matching::Arrival| clocks.get(a.rank as usize).copied().unwrap_or_default();
            let starts = || c.arrivals.iter().map(|a| of(a).common_time(a.start));
            let (first, ready) = (starts().min()?, starts().max()?);
            let end = c.arrivals.iter().map(|a| of(a).common_time(a.end())).max()?.max(ready);
            Some(Moment { at, first, ready, end, judged: job.waits.judged.get(at).copied().unwrap_or(false) })
        };
        let mut list: Vec<Moment> = job.matches.list.iter().enumerate().filter_map(moment).collect();
        list.sort_unstable_by_key(|m| (m.ready, m.at));
        let longest = list.iter().map(Moment::length).max().unwrap_or(0);
        Self { list, longest }
    }

    /// Returns a range of indices that includes all collectives overlapping `from..to`.
    pub fn indices_within(&self, from: i64, to: i64) -> std::ops::Range<usize> {
        let low = self.list.partition_point(|m| m.ready < from.saturating_sub(self.longest));
        let high = self.list.partition_point(|m| m.ready <= to.saturating_add(self.longest));
        low..high.max(low)
    }

    /// Returns the indices of the `most` collectives with the longest waits, longest first. Collectives that are
    /// excluded from the ranks' waits are returned only if there are no others.
    pub fn longest_waits(&self, most: usize) -> Vec<usize> {
        let any = self.list.iter().any(|m| m.judged);
        let mut all: Vec<usize> = (0..self.list.len()).filter(|&i| self.list[i].judged || !any).collect();
        all.sort_unstable_by_key(|&i| (std::cmp::Reverse(self.list[i].wait_time()), i));
        all.truncate(most);
        all
    }

    /// Returns the index of the collective whose last arrival is closest to a time.
    pub fn nearest_index(&self, time: i64) -> Option<usize> {
        let after = self.list.partition_point(|m| m.ready < time);
        let distance = |i: &usize| self.list[*i].ready.abs_diff(time);
        [after.checked_sub(1), Some(after).filter(|&a| a < self.list.len())].into_iter().flatten().min_by_key(distance)
    }

    /// Length of a window that contains a few collectives, ns: six times the median distance between collectives.
    pub fn usual_window(&self) -> i64 {
        let mut gaps: Vec<i64> = self.list.windows(2).map(|w| w[1].ready - w[0].ready).filter(|g| *g > 0).collect();
        gaps.sort_unstable();
        gaps.get(gaps.len() / 2).map_or(1_000_000, |g| g.saturating_mul(6)).max(1_000)
    }

    /// Returns a rank's intervals in the collectives between two times, in order.
    pub fn rank_bars(&self, job: &Job, row: usize, from: i64, to: i64) -> Vec<Bar> {
        let Some(member) = job.ranks.get(row) else { return Vec::new() };
        let one = |moment: usize| {
            let together = job.matches.list.get(self.list.get(moment)?.at)?;
            let a = together.arrivals.iter().find(|a| a.rank as usize == member.digest)?;
            let bar = Bar { start: member.clock.common_time(a.start), end: member.clock.common_time(a.end()), moment };
            (bar.end >= from && bar.start <= to).then_some(bar)
        };
        self.indices_within(from, to).filter_map(one).collect()
    }
}
