//! Counters and samples recorded so far in a followed process, and the records of the launches that were measured.

use super::counters::{Measured, Set};
use super::pc_sample_rows::Stalls;
use super::rows::{Config, INLINE, Kernel, Rows};
use rustc_hash::{FxHashMap, FxHashSet};
use std::collections::{BTreeMap, VecDeque};

/// Maximum number of launches to keep. The record of a launch may arrive before or after its measurement.
const REMEMBERED: usize = 1 << 17;
/// Maximum number of rows to keep per metric set and launch shape; the final report contains all of them.
const ALIKE: usize = 32;
/// Maximum number of launches per shape whose samples are kept, because samples are much larger than counters.
const SAMPLED: usize = 4;

type Shape = (u32, [u32; 3], [u32; 3], u32);

/// Kernel row of a launch, and its configuration if that is stored inline.
type Ran = (Kernel, Option<Box<Config>>);

#[derive(Default)]
pub struct Counting {
    ran: VecDeque<Ran>,
    sets: BTreeMap<u32, Set>,
    /// Rows by metric set, replay flag and shape.
    measured: BTreeMap<(u32, bool, Shape), VecDeque<Measured>>,
    stalls: BTreeMap<Shape, VecDeque<Stalls>>,
    /// Measured launches that have no record yet, and those that do.
    wanted: FxHashSet<u32>,
    launches: FxHashMap<u32, Ran>,
    /// Number of updates so far.
    news: u64,
}

impl Counting {
    /// Moves counters, samples and launches out of newly read rows.
    pub fn add_rows(&mut self, rows: &mut Rows) {
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
            // The samples of a launch arrive in pieces.
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

    /// A counter that is incremented by every update.
    pub fn update_count(&self) -> u64 {
        self.news
    }

    /// Appends the measurements and their launches to `rows`, which must contain the strings and configurations that
    /// they refer to.
    pub fn append_to(&self, rows: &mut Rows) {
        rows.sets.extend(self.sets.values().cloned());
        // Values measured in several passes come from one launch per pass. Records of the earliest launches may have
        // been dropped, but the remaining launches suffice to identify the kernel.
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
        counting.add_rows(&mut Rows { kernels: vec![kernel(1)], ..Rows::default() });
        let many = u32::try_from(REMEMBERED).unwrap();
        counting.add_rows(&mut Rows { kernels: (2..many + 10).map(kernel).collect(), ..Rows::default() });
        counting.add_rows(&mut Rows { measured: vec![Measured { correlations: vec![1, many], ..row(1) }], ..Rows::default() });
        let mut rows = Rows::default();
        counting.append_to(&mut rows);
        assert_eq!((rows.measured[0].correlations.clone(), known(&counting)), (vec![many], vec![many]));
    }

    fn known(counting: &Counting) -> Vec<u32> {
        let mut rows = Rows::default();
        counting.append_to(&mut rows);
        rows.kernels.iter().map(|k| k.correlation).collect()
    }

    #[test]
    fn launches_are_found_whether_their_record_comes_before_or_after() {
        let mut counting = Counting::default();
        counting.add_rows(&mut Rows { kernels: vec![kernel(1), kernel(2)], ..Rows::default() });
        assert_eq!(counting.update_count(), 0);
        counting.add_rows(&mut Rows { measured: vec![row(2), row(4)], ..Rows::default() });
        assert_eq!((counting.update_count(), known(&counting)), (1, vec![2]));
        counting.add_rows(&mut Rows { kernels: vec![kernel(3), kernel(4)], ..Rows::default() });
        assert_eq!((counting.update_count(), known(&counting)), (2, vec![2, 4]));
    }

    #[test]
    fn a_configuration_in_its_row_stays_with_its_launch() {
        let mut counting = Counting::default();
        let config = |name| Config { name, ..Config::default() };
        let inline = Kernel { config: INLINE + 1, ..kernel(7) };
        counting.add_rows(&mut Rows {
            kernels: vec![inline],
            inline: vec![config(8), config(9)],
            measured: vec![row(7)],
            ..Rows::default()
        });
        let mut rows = Rows { inline: vec![config(5)], ..Rows::default() };
        counting.append_to(&mut rows);
        assert_eq!((rows.kernels[0].config, rows.inline[1].name), (INLINE + 1, 9));
    }

    #[test]
    fn what_is_kept_does_not_grow_with_the_run() {
        let mut counting = Counting::default();
        // Add a few rows at a time, as a reader would.
        for i in (0..300_000_u32).step_by(2_000) {
            counting.add_rows(&mut Rows { kernels: (i..i + 2_000).map(kernel).collect(), measured: vec![row(i)], ..Rows::default() });
        }
        assert_eq!((counting.ran.len(), counting.launches.len(), counting.wanted.len()), (REMEMBERED, ALIKE, 0));
        assert_eq!(known(&counting).last(), Some(&298_000));
    }
}
