//! Sets of times as sorted intervals that neither touch nor overlap: union, intersection, difference.

/// A set of times, ns: half-open intervals in order, none of them empty, with a space between any two.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Intervals(Vec<(i64, i64)>);

impl Intervals {
    /// Appends an interval that starts no earlier than the last one.
    pub fn push(&mut self, start: i64, end: i64) {
        if end <= start {
            return;
        }
        match self.0.last_mut() {
            Some(last) if start <= last.1 => last.1 = last.1.max(end),
            _ => self.0.push((start, end)),
        }
    }

    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Total length, ns.
    pub fn total_length(&self) -> i64 {
        self.0.iter().map(|(a, b)| b - a).sum()
    }

    pub fn as_slice(&self) -> &[(i64, i64)] {
        &self.0
    }

    /// Times in either set.
    pub fn union(&self, other: &Self) -> Self {
        let mut out = Self::default();
        let (mut a, mut b) = (self.0.iter().peekable(), other.0.iter().peekable());
        loop {
            let next = match (a.peek(), b.peek()) {
                (Some(x), Some(y)) if x <= y => a.next(),
                (Some(_), None) => a.next(),
                (_, Some(_)) => b.next(),
                (None, None) => return out,
            };
            if let Some(&(start, end)) = next {
                out.push(start, end);
            }
        }
    }

    /// Times in both sets.
    pub fn intersect(&self, other: &Self) -> Self {
        let mut out = Self::default();
        let (mut a, mut b) = (0, 0);
        while let (Some(x), Some(y)) = (self.0.get(a), other.0.get(b)) {
            out.push(x.0.max(y.0), x.1.min(y.1));
            if x.1 < y.1 { a += 1 } else { b += 1 }
        }
        out
    }

    /// Times in this set but not in the other.
    pub fn subtract(&self, other: &Self) -> Self {
        let mut out = Self::default();
        let mut at = 0;
        for &(start, end) in &self.0 {
            let mut from = start;
            while other.0.get(at).is_some_and(|o| o.1 <= from) {
                at += 1;
            }
            let mut next = at;
            while let Some(&(a, b)) = other.0.get(next).filter(|o| o.0 < end) {
                out.push(from, a);
                from = from.max(b);
                next += 1;
            }
            out.push(from, end);
        }
        out
    }

    /// The intervals, clipped to `start..end`.
    pub fn clipped_to(&self, start: i64, end: i64) -> impl Iterator<Item = (i64, i64)> + '_ {
        let first = self.0.partition_point(|i| i.1 <= start);
        self.0[first..].iter().take_while(move |i| i.0 < end).map(move |i| (i.0.max(start), i.1.min(end))).filter(|i| i.0 < i.1)
    }

    /// Covered length between two times, ns.
    pub fn covered_length(&self, start: i64, end: i64) -> i64 {
        self.clipped_to(start, end).map(|(a, b)| b - a).sum()
    }
}

/// Prefix sums over a set, used to find the covered length between any two times by binary search.
#[derive(Clone, Debug, Default)]
pub struct Covered {
    /// Start and end of each interval, and the total length of the intervals before it.
    sums: Vec<(i64, i64, i64)>,
}

impl Covered {
    pub fn from_intervals(set: &Intervals) -> Self {
        let mut sum = 0_i64;
        let mut sums = Vec::with_capacity(set.0.len());
        for &(start, end) in &set.0 {
            sums.push((start, end, sum));
            sum = sum.saturating_add(end - start);
        }
        Self { sums }
    }

    /// Start of the first and end of the last interval.
    pub fn span(&self) -> Option<(i64, i64)> {
        Some((self.sums.first()?.0, self.sums.last()?.1))
    }

    fn length_until(&self, time: i64) -> i64 {
        let at = self.sums.partition_point(|s| s.0 < time);
        at.checked_sub(1).map_or(0, |i| self.sums[i].2 + time.min(self.sums[i].1) - self.sums[i].0)
    }

    /// Covered length between two times, ns.
    pub fn length_within(&self, start: i64, end: i64) -> i64 {
        (self.length_until(end) - self.length_until(start)).max(0)
    }
}

impl FromIterator<(i64, i64)> for Intervals {
    fn from_iter<I: IntoIterator<Item = (i64, i64)>>(intervals: I) -> Self {
        let mut all: Vec<(i64, i64)> = intervals.into_iter().collect();
        if !all.is_sorted() {
            all.sort_unstable();
        }
        let mut out = Self::default();
        for (start, end) in all {
            out.push(start, end);
        }
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const LENGTH: i64 = 64;

    fn at(n: i64) -> usize {
        usize::try_from(n).unwrap()
    }

    fn bits(set: &Intervals) -> Vec<bool> {
        let mut out = vec![false; at(LENGTH)];
        for &(a, b) in &set.0 {
            out[at(a)..at(b)].fill(true);
        }
        out
    }

    fn bitmap(raw: &[(i64, i64)]) -> Vec<bool> {
        let mut out = vec![false; at(LENGTH)];
        for &(a, b) in raw.iter().filter(|r| r.1 > r.0) {
            out[at(a)..at(b)].fill(true);
        }
        out
    }

    fn raw() -> impl Strategy<Value = Vec<(i64, i64)>> {
        prop::collection::vec((0..LENGTH, 0..=LENGTH), 0..12)
    }

    proptest! {
        #[test]
        fn sets_are_what_bitmaps_are(a in raw(), b in raw(), from in 0..LENGTH, to in 0..=LENGTH) {
            let (x, y) = (bitmap(&a), bitmap(&b));
            let (a, b): (Intervals, Intervals) = (a.into_iter().collect(), b.into_iter().collect());
            let each = |f: fn(bool, bool) -> bool| x.iter().zip(&y).map(|(&x, &y)| f(x, y)).collect::<Vec<_>>();
            prop_assert_eq!(bits(&a), x.clone());
            prop_assert_eq!(bits(&a.union(&b)), each(|x, y| x || y));
            prop_assert_eq!(bits(&a.intersect(&b)), each(|x, y| x && y));
            prop_assert_eq!(bits(&a.subtract(&b)), each(|x, y| x && !y));
            let inside = x.iter().skip(at(from)).take(at((to - from).max(0))).filter(|&&b| b).count();
            prop_assert_eq!(a.covered_length(from, to), i64::try_from(inside).unwrap());
            prop_assert_eq!(Covered::from_intervals(&a).length_within(from, to), i64::try_from(inside).unwrap());
            for set in [a.union(&b), a.intersect(&b), a.subtract(&b)] {
                prop_assert!(set.0.windows(2).all(|w| w[0].1 < w[1].0) && set.0.iter().all(|i| i.0 < i.1));
            }
        }
    }
}
