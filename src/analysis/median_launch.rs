//! The launch that stands for several launches of a kernel.

use crate::model::{ConfigId, KernelId, Profile};
use rustc_hash::FxHashMap;

/// The part of the launches, and the largest number of them, that may belong to the warm-up.
const WARM_UP: (usize, usize) = (10, 100);

/// Returns the launch with the median duration; of two middle ones, the shorter. Only launches of the configuration that
/// takes the most time count, if that is a third of all or more: a median over tiny and large grids stands for neither,
/// but if every launch has a shape of its own, no shape stands for the others. Among launches that
/// take equally long, it is the first one after what may be the warm-up: a later one is reached later when it is
/// profiled again. Launches without a recorded call do not count if others have one: they were made before the recording began, so a
/// re-run may not reach them.
pub fn median_launch(profile: &Profile, rows: &[u32]) -> Option<u32> {
    let called: Vec<u32> = rows.iter().copied().filter(|&row| profile.launches.call(row as usize).is_some()).collect();
    let rows = if called.is_empty() { rows } else { &called };
    let duration = |row: u32| profile.launches.duration(row as usize);
    let main = main_shape(profile, rows);
    let alike: Vec<u32> = rows.iter().copied().filter(|&row| main.is_none() || shape_of(profile, row) == main).collect();
    let rows = &alike[..];
    let mut durations: Vec<i64> = rows.iter().map(|&row| duration(row)).collect();
    let middle = durations.len().checked_sub(1)? / 2;
    let median = *durations.select_nth_unstable(middle).1;
    let warm_up = (rows.len() / WARM_UP.0).min(WARM_UP.1);
    let (early, late) = rows.split_at(warm_up);
    let is_median = |row: &&u32| duration(**row) == median;
    late.iter().find(is_median).or_else(|| early.iter().rfind(is_median)).copied()
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
