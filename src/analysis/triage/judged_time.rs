//! The judged parts of a run as one time, without the holes between them, in which nothing was recorded.

/// Judged parts of a run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct JudgedTime {
    /// Start and end of each part in nanoseconds since the session began, in order, and the judged time before it.
    parts: Vec<(i64, i64, i64)>,
    length: i64,
}

impl JudgedTime {
    /// Creates it from windows in order that do not overlap, ns.
    pub fn from_windows(windows: &[(i64, i64)]) -> Self {
        let mut length = 0;
        let mut parts = Vec::with_capacity(windows.len());
        for &(start, end) in windows {
            parts.push((start, end, length));
            length += end - start;
        }
        Self { parts, length }
    }

    /// Judged time, ns.
    pub fn length(&self) -> i64 {
        self.length
    }

    /// Number of parts.
    pub fn count(&self) -> usize {
        self.parts.len()
    }

    /// Returns true if a time is in one of the parts.
    pub fn contains(&self, time: i64) -> bool {
        let after = self.parts.partition_point(|p| p.0 <= time);
        after.checked_sub(1).is_some_and(|at| time < self.parts[at].1)
    }

    /// Judged time before a time, ns.
    pub fn position(&self, time: i64) -> i64 {
        let after = self.parts.partition_point(|p| p.0 <= time);
        after.checked_sub(1).map_or(0, |at| {
            let (start, end, before) = self.parts[at];
            before + time.min(end) - start
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn holes_take_no_judged_time() {
        let time = JudgedTime::from_windows(&[(100, 110), (500, 530)]);
        assert_eq!((time.length(), time.count()), (40, 2));
        let at = [90, 100, 105, 300, 500, 520, 999].map(|t| time.position(t));
        assert_eq!(at, [0, 0, 5, 10, 10, 30, 40]);
        let inside = [99, 100, 109, 110, 300, 529, 530].map(|t| time.contains(t));
        assert_eq!(inside, [false, true, true, false, false, true, false]);
    }
}
