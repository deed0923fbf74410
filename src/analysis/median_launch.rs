//! The launch that stands for several launches of a kernel.

use crate::model::{ConfigId, KernelId, Profile};
use rustc_hash::FxHashMap;

/// The part of the launches, and the largest number of them, that may belong to the warm-up.
const WARM_UP: (usize, usize) = (10, 100);

/// Returns the launch with the median duration; of two middle ones, the shorter. Only launches of the configuration that
/// takes the most time count, if that is a third of all or more: a median over tiny and large grids stands for neither.
/// If no configuration does, it is the launch in which half of the time is reached, from the shortest one on: thousands of
/// tiny launches may take a tenth of the time. Among launches that take equally long, it is the first one after what may
/// be the warm-up: a later one is reached later when it is profiled again. Launches without a recorded call do not count
/// if others have one: they were made before the recording began, so a re-run may not reach them.
pub fn median_launch(profile: &Profile, rows: &[u32]) -> Option<u32> {
    let called: Vec<u32> = rows.iter().copied().filter(|&row| profile.launches.call(row as usize).is_some()).collect();
    let rows = if called.is_empty() { rows } else { &called };
    let duration = |row: u32| profile.launches.duration(row as usize);
    let main = main_shape(profile, rows);
    let alike: Vec<u32> = rows.iter().copied().filter(|&row| main.is_none() || shape_of(profile, row) == main).collect();
    let rows = &alike[..];
    let mut durations: Vec<i64> = rows.iter().map(|&row| duration(row)).collect();
    let middle = durations.len().checked_sub(1)? / 2;
    let alike = main.is_some() || rows.iter().all(|&row| shape_of(profile, row).is_none());
    let median = if alike { *durations.select_nth_unstable(middle).1 } else { median_by_time(durations)? };
    let warm_up = (rows.len() / WARM_UP.0).min(WARM_UP.1);
    let (early, late) = rows.split_at(warm_up);
    let is_median = |row: &&u32| duration(**row) == median;
    late.iter().find(is_median).or_else(|| early.iter().rfind(is_median)).copied()
}

/// Returns the duration at which half of the total is reached.
fn median_by_time(mut durations: Vec<i64>) -> Option<i64> {
    durations.sort_unstable();
    let half = durations.iter().map(|&ns| i128::from(ns)).sum::<i128>() / 2;
    let mut sum = 0;
    durations.iter().copied().find(|&ns| {
        sum += i128::from(ns);
        sum >= half
    })
}

/// A kernel and its launch configuration. A row may group several kernels, such as the instances of a template.
type Shape = (KernelId, ConfigId);

fn shape_of(profile: &Profile, row: u32) -> Option<Shape> {
    Some((profile.launches.kernel(row as usize), profile.launches.config(row as usize)?))
}

/// Returns the shape of launches that take the most time; `None` if that is less than a third of all.
fn main_shape(profile: &Profile, rows: &[u32]) -> Option<Shape> {
    let mut times: FxHashMap<Shape, i64> = FxHashMap::default();
    let mut all = 0_i64;
    for &row in rows {
        let ns = profile.launches.duration(row as usize);
        all = all.saturating_add(ns);
        let time = times.entry(shape_of(profile, row)?).or_default();
        *time = time.saturating_add(ns);
    }
    let (shape, ns) = times.into_iter().max_by_key(|(shape, ns)| (*ns, std::cmp::Reverse((shape.0.0, shape.1.0))))?;
    (ns.saturating_mul(3) >= all).then_some(shape)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::{LaunchColumns, LaunchConfig, Launches, Source};

    /// Launches with these durations, each with a configuration of its own if `shapes` is true.
    fn of(durations: &[i64], shapes: bool) -> Profile {
        let mut columns = LaunchColumns::default();
        for (start, &ns) in (0..).step_by(1_000).zip(durations) {
            columns.start.push(start);
            columns.duration.push(Some(ns));
            columns.kernel.push(0);
        }
        let mut profile = Profile { launches: Launches::new(columns), ..Profile::new(Source::default()) };
        let count = u32::try_from(durations.len()).unwrap();
        let configs = if shapes { (0..count).collect() } else { vec![0; durations.len()] };
        profile.configs = (0..count).map(|n| LaunchConfig { grid: Some([n + 1, 1, 1]), ..LaunchConfig::default() }).collect();
        profile.launches.set_details(configs, Vec::new(), Vec::new(), Vec::new());
        profile
    }

    #[test]
    fn among_many_shapes_the_time_decides() {
        let mut durations = vec![3; 100];
        durations.extend([50, 60, 70, 80, 90, 100, 110]);
        let rows: Vec<u32> = (0..107).collect();
        let duration = |shapes| {
            let profile = of(&durations, shapes);
            profile.launches.duration(median_launch(&profile, &rows).unwrap() as usize)
        };
        assert_eq!(duration(false), 3, "the median of one shape");
        // 300 of 860 are in the short ones; half of the time is reached in the third of the long ones.
        assert_eq!(duration(true), 70);
    }
}
