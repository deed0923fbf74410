//! What was measured so far of a process that is followed: rows of counters and samples with the records of the launches that they are of.

use super::counters::{Measured, Set};
use super::rows::{Config, INLINE, Kernel, Rows};
use super::samples::Stalls;
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};

/// Launches that are remembered: the record of one may come before the row of what was measured of it, and after.
const REMEMBERED: usize = 1 << 17;
/// Rows that are kept of launches that are alike, of each set of metrics; the report has all.
const ALIKE: usize = 32;
/// Launches whose samples are kept, which are many times as long.
const SAMPLED: usize = 4;

type Shape = (u32, [u32; 3], [u32; 3], u32);

/// A launch, with its configuration where that stands in its row.
type Ran = (Kernel, Option<Box<Config>>);

#[derive(Default)]
pub struct Counting {
    ran: VecDeque<Ran>,
    sets: BTreeMap<u32, Set>,
    /// By set, whether it was replayed, and shape.
    measured: BTreeMap<(u32, bool, Shape), VecDeque<Measured>>,
    stalls: BTreeMap<Shape, VecDeque<Stalls>>,
    /// Launches that were measured and whose record has not come yet, and those whose record has.
    wanted: FxHashSet<u32>,
    launches: FxHashMap<u32, Ran>,
    /// How often something was learnt.
    news: u64,
}

impl Counting {
    /// Takes in what was read.
    pub fn take(&mut self, rows: &mut Rows) {
        self.sets.extend(rows.sets.drain(..).map(|s| (s.number, s)));
        let (mut fresh, mut old) = (Vec::new(), Vec::new());
        for row in rows.measured.drain(..) {
            fresh.extend(&row.correlations);
            let alike = self.measured.entry((row.set, row.replayed, row.shape)).or_default();
            alike.push_back(row);
            if alike.len() > ALIKE {
                old.extend(alike.pop_front().map(|m| m.correlations).unwrap_or_default());
            }
        }
        for row in rows.stalls.drain(..) {
            fresh.push(row.correlation);
            let alike = self.stalls.entry(row.shape).or_default();
            alike.push_back(row);
            // Samples of one launch come in pieces.
            let mut launches: Vec<u32> = alike.iter().map(|s| s.correlation).collect();
            launches.dedup();
            if launches.len() > SAMPLED {
                let gone = launches[0];
                alike.retain(|s| s.correlation != gone);
                old.push(gone);
            }
        }
        if !fresh.is_empty() {
            self.wanted.extend(fresh);
            let (wanted, launches) = (&mut self.wanted, &mut self.launches);
            for ran in self.ran.iter().rev() {
                if wanted.is_empty() {
                    break;
                }
                if wanted.remove(&ran.0.correlation) {
                    launches.insert(ran.0.correlation, ran.clone());
                    self.news += 1;
                }
            }
        }
        for kernel in &rows.kernels {
            let inline = kernel.config.checked_sub(INLINE).and_then(|i| rows.inline.get(i as usize));
            let ran = (*kernel, inline.map(|c| Box::new(*c)));
            if self.wanted.remove(&kernel.correlation) {
                self.launches.insert(kernel.correlation, ran.clone());
                self.news += 1;
            }
            self.ran.push_back(ran);
        }
        for correlation in old {
            self.wanted.remove(&correlation);
            self.launches.remove(&correlation);
        }
        let over = self.ran.len().saturating_sub(REMEMBERED);
        self.ran.drain(..over);
    }

    /// A number that grows with what is known.
    pub fn news(&self) -> u64 {
        self.news
    }

    /// Adds what was measured, with its launches, to rows of what they refer to.
    pub fn add(&self, rows: &mut Rows) {
        rows.sets.extend(self.sets.values().cloned());
        // Values of many passes are of as many launches, of which the first may have been long ago: those that are known prove what it was.
        let known = |mut m: Measured| {
            m.correlations.retain(|c| self.launches.contains_key(c));
            m
        };
        rows.measured.extend(self.measured.values().flatten().cloned().map(known));
        rows.stalls.extend(self.stalls.values().flatten().cloned());
        for (kernel, config) in self.launches.values() {
            let mut kernel = *kernel;
            if let Some(config) = config {
                kernel.config = INLINE.saturating_add(u32::try_from(rows.inline.len()).unwrap_or(0));
                rows.inline.push(**config);
            }
            rows.kernels.push(kernel);
        }
        rows.kernels.sort_by_key(|k| k.start);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const SHAPE: Shape = (1, [2, 1, 1], [32, 1, 1], 0);

    fn kernel(correlation: u32) -> Kernel {
        Kernel { correlation, config: 3, start: i64::from(correlation) * 10, duration: 5, node: 0, thread: 0 }
    }

    fn row(correlation: u32) -> Measured {
        Measured { set: 1, replayed: false, time: 1, shape: SHAPE, correlations: vec![correlation], values: vec![1.0] }
    }

    #[test]
    fn values_of_many_passes_are_known_by_the_last() {
        let mut counting = Counting::default();
        counting.take(&mut Rows { kernels: vec![kernel(1)], ..Rows::default() });
        let many = u32::try_from(REMEMBERED).unwrap();
        counting.take(&mut Rows { kernels: (2..many + 10).map(kernel).collect(), ..Rows::default() });
        counting.take(&mut Rows { measured: vec![Measured { correlations: vec![1, many], ..row(1) }], ..Rows::default() });
        let mut rows = Rows::default();
        counting.add(&mut rows);
        assert_eq!((rows.measured[0].correlations.clone(), known(&counting)), (vec![many], vec![many]));
    }

    fn known(counting: &Counting) -> Vec<u32> {
        let mut rows = Rows::default();
        counting.add(&mut rows);
        rows.kernels.iter().map(|k| k.correlation).collect()
    }

    #[test]
    fn launches_are_found_whether_their_record_comes_before_or_after() {
        let mut counting = Counting::default();
        counting.take(&mut Rows { kernels: vec![kernel(1), kernel(2)], ..Rows::default() });
        assert_eq!(counting.news(), 0);
        counting.take(&mut Rows { measured: vec![row(2), row(4)], ..Rows::default() });
        assert_eq!((counting.news(), known(&counting)), (1, vec![2]));
        counting.take(&mut Rows { kernels: vec![kernel(3), kernel(4)], ..Rows::default() });
        assert_eq!((counting.news(), known(&counting)), (2, vec![2, 4]));
    }

    #[test]
    fn a_configuration_in_its_row_stays_with_its_launch() {
        let mut counting = Counting::default();
        let config = |name| Config { name, ..Config::default() };
        let inline = Kernel { config: INLINE + 1, ..kernel(7) };
        counting.take(&mut Rows { kernels: vec![inline], inline: vec![config(8), config(9)], measured: vec![row(7)], ..Rows::default() });
        let mut rows = Rows { inline: vec![config(5)], ..Rows::default() };
        counting.add(&mut rows);
        assert_eq!((rows.kernels[0].config, rows.inline[1].name), (INLINE + 1, 9));
    }

    #[test]
    fn what_is_kept_does_not_grow_with_the_run() {
        let mut counting = Counting::default();
        // As they are read: some rows at a time.
        for i in (0..300_000_u32).step_by(2_000) {
            counting.take(&mut Rows { kernels: (i..i + 2_000).map(kernel).collect(), measured: vec![row(i)], ..Rows::default() });
        }
        assert_eq!((counting.ran.len(), counting.launches.len(), counting.wanted.len()), (REMEMBERED, ALIKE, 0));
        assert_eq!(known(&counting).last(), Some(&298_000));
    }
}
