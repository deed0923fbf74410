//! Comparison of a kernel's launches in two runs. Launches with the same grid and block count as the same work.

use super::mann_whitney::mann_whitney;
use crate::model::units;
use crate::model::{ConfigId, LaunchConfig, Profile};
use std::collections::{BTreeMap, HashMap};

/// Grid, block and dynamic shared memory of launches; `None` if the report does not record them.
type Shape = Option<([u32; 3], [u32; 3], u64)>;
/// Durations of launches, in ns.
pub type Durations = BTreeMap<Shape, Vec<i64>>;

/// Launches that are compared between two runs.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub enum Work {
    /// All launches: both runs have the same grids and blocks in the same proportions, or these are unknown.
    #[default]
    Same,
    /// Launches whose grid and block occur in both runs, with their share of all launches of both runs.
    Part(f64),
    /// Both runs have the same number of launches and each uses a single grid and block, but not the same one. The work
    /// is the same if only the launch configuration was changed.
    Reshaped,
    /// No launches: the runs have no grid and block in common.
    Other,
    /// The kernel's launch count did not change in proportion to the run's: with a fixed grid, each launch then gets a
    /// different share of the work.
    Uneven,
}

impl Work {
    /// Describes the comparison; `None` if all launches are compared.
    pub fn describe_work(self) -> Option<String> {
        match self {
            Self::Same => None,
            Self::Part(share) => Some(format!(
                "only of the launches whose grid and block both runs have, {} of them",
                units::format_whole_percent(share * 100.0)
            )),
            Self::Reshaped => Some("of launches with another grid or block".to_owned()),
            Self::Other => Some("not compared: the two runs have no grid and block in common".to_owned()),
            Self::Uneven => {
                Some("of launches that changed in number unlike those of other kernels, so that each may do other work".to_owned())
            }
        }
    }
}

/// Result of a comparison.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct WorkChange {
    pub work: Work,
    /// Probability that durations differ this much by chance (Mann–Whitney); with several configurations, the smallest
    /// probability times their number (Bonferroni).
    pub p: Option<f64>,
    /// Change in the median duration in percent; with several configurations, the mean weighted by their time before.
    pub each: Option<f64>,
}

/// Launches of a group.
#[derive(Clone, Debug, Default)]
pub struct GroupLaunches {
    pub durations: Durations,
    /// Time by launch configuration, ns.
    configs: BTreeMap<ConfigId, i64>,
}

impl GroupLaunches {
    /// Returns the configuration that takes the most time.
    pub fn main_config(&self) -> Option<ConfigId> {
        self.configs.iter().max_by_key(|(id, ns)| (**ns, std::cmp::Reverse(**id))).map(|(id, _)| *id)
    }
}

/// Individual launches by group index, with durations by grid and block. If groups are not kernels, grids and blocks
/// are ignored.
pub fn grouped_launches(profile: &Profile, kernels: bool, mut row_of: impl FnMut(usize) -> Option<usize>) -> HashMap<usize, GroupLaunches> {
    let shape = |c: &LaunchConfig| Some((c.grid?, c.block?, c.dynamic_shared.map_or(0, |b| b.0)));
    let shapes: Vec<Shape> = profile.configs.iter().map(shape).collect();
    let of = |id: Option<ConfigId>| id.and_then(|c| shapes.get(c.0 as usize).copied()).flatten().filter(|_| kernels);
    let mut out: HashMap<usize, GroupLaunches> = HashMap::new();
    for launch in 0..profile.launches.len() {
        if let Some(row) = row_of(launch) {
            let (config, ns) = (profile.launches.config(launch), profile.launches.duration(launch));
            let group = out.entry(row).or_default();
            group.durations.entry(of(config)).or_default().push(ns);
            if let Some(config) = config.filter(|_| kernels) {
                let time = group.configs.entry(config).or_default();
                *time = time.saturating_add(ns);
            }
        }
    }
    out
}

fn count_launches(all: &Durations) -> usize {
    all.values().map(Vec::len).sum()
}

/// Change in the median in percent.
fn median_change(a: &[i64], b: &[i64]) -> Option<f64> {
    let median = |list: &[i64]| {
        let mut list = list.to_vec();
        list.sort_unstable();
        let (low, high) = (list.get(list.len().checked_sub(1)? / 2)?, list.get(list.len() / 2)?);
        Some(f64::midpoint(*low as f64, *high as f64))
    };
    let (a, b) = (median(a).filter(|m| *m > 0.0)?, median(b)?);
    Some((b - a) / a * 100.0)
}

/// Compares the launches that do the same work.
pub fn compare_durations(a: &Durations, b: &Durations) -> WorkChange {
    let (all_a, all_b) = (count_launches(a), count_launches(b));
    let alike = a.len() == b.len() && a.iter().all(|(k, v)| b.get(k).is_some_and(|w| v.len() * all_b == w.len() * all_a));
    let reshaped = !alike && a.len() == 1 && b.len() == 1 && all_a == all_b;
    if alike || reshaped {
        let flat = |m: &Durations| m.values().flatten().copied().collect::<Vec<i64>>();
        let (a, b) = (flat(a), flat(b));
        let work = if alike { Work::Same } else { Work::Reshaped };
        return WorkChange { work, p: mann_whitney(&a, &b), each: median_change(&a, &b) };
    }
    let shared: Vec<(&Vec<i64>, &Vec<i64>)> = a.iter().filter_map(|(k, v)| Some((v, b.get(k)?))).collect();
    if shared.is_empty() {
        return WorkChange { work: Work::Other, ..WorkChange::default() };
    }
    let of: usize = shared.iter().map(|(v, w)| v.len() + w.len()).sum();
    let tests: Vec<f64> = shared.iter().filter_map(|(v, w)| mann_whitney(v, w)).collect();
    let p = tests.iter().copied().reduce(f64::min).map(|p| (p * tests.len() as f64).min(1.0));
    let (mut sum, mut time) = (0.0, 0.0);
    for (v, w) in &shared {
        let weight = v.iter().sum::<i64>() as f64;
        if let Some(change) = median_change(v, w) {
            sum += change * weight;
            time += weight;
        }
    }
    WorkChange { work: Work::Part(of as f64 / (all_a + all_b) as f64), p, each: (time > 0.0).then(|| sum / time) }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn runs(of: &[(u32, i64, usize)]) -> Durations {
        of.iter()
            .map(|&(blocks, ns, n)| (Some(([blocks, 1, 1], [256, 1, 1], 0)), (0..n).map(|i| ns + i64::try_from(i % 7).unwrap()).collect()))
            .collect()
    }

    #[test]
    fn other_work_is_not_slower() {
        // Four times as many blocks, and a different number of launches: not comparable.
        assert_eq!(
            compare_durations(&runs(&[(1, 1_000, 100)]), &runs(&[(4, 1_200, 150)])),
            WorkChange { work: Work::Other, ..WorkChange::default() }
        );
        // The same number of launches with different blocks: the kernel was changed.
        let found = compare_durations(&runs(&[(64, 2_000, 100)]), &runs(&[(32, 1_000, 100)]));
        assert!(found.work == Work::Reshaped && found.p.unwrap() < 1e-9 && (-51.0..-49.0).contains(&found.each.unwrap()), "{found:?}");
    }

    #[test]
    fn what_both_runs_have_is_compared() {
        // More of the large launches, each taking as long as before, is not a change.
        let (a, b) = (runs(&[(1, 1_000, 100), (8, 8_000, 100)]), runs(&[(1, 1_000, 100), (8, 8_000, 300)]));
        let found = compare_durations(&a, &b);
        assert!(found.work == Work::Part(1.0) && found.p.unwrap() > 0.01 && found.each.unwrap().abs() < 0.2, "{found:?}");
        // One of three configurations is slower, and one is gone.
        let (a, b) = (runs(&[(1, 1_000, 50), (2, 2_000, 50), (3, 9_000, 50)]), runs(&[(1, 1_000, 50), (2, 2_600, 50)]));
        let found = compare_durations(&a, &b);
        assert!(found.work == Work::Part(0.8) && found.p.unwrap() < 1e-9 && (19.0..21.0).contains(&found.each.unwrap()), "{found:?}");
        // The same mix, twice as often.
        assert_eq!(
            compare_durations(&runs(&[(1, 1_000, 50), (2, 2_000, 100)]), &runs(&[(1, 1_000, 100), (2, 2_000, 200)])).work,
            Work::Same
        );
    }

    #[test]
    fn without_grids_all_launches_are_compared() {
        let of = |ns: i64| Durations::from([(None, vec![ns; 20])]);
        assert_eq!(compare_durations(&of(100), &of(100)).work, Work::Same);
        assert_eq!(compare_durations(&of(100), &Durations::new()).work, Work::Other);
    }
}
