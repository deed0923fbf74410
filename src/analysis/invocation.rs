//! The *nth* of a launch: the number of earlier launches of the same function in the same process. It is always counted
//! here, over all launches of the profile, so that it does not depend on the launches being displayed.

use crate::model::Profile;
use rustc_hash::FxHashMap;
use std::collections::HashMap;

/// Counts launches in launch order.
pub struct Nth<'a> {
    profile: &'a Profile,
    /// Function index of each kernel; kernels with the same function name share one.
    functions: Vec<u32>,
    /// Number of launches by process and function.
    counts: FxHashMap<(Option<u32>, u32), u32>,
}

impl<'a> Nth<'a> {
    /// Starts counting before the first launch.
    pub fn new(profile: &'a Profile) -> Self {
        let mut ids: HashMap<&str, u32> = HashMap::new();
        let functions = profile.kernels.iter().map(|k| {
            let next = u32::try_from(ids.len()).unwrap_or(u32::MAX);
            *ids.entry(k.function()).or_insert(next)
        });
        let functions = functions.collect();
        Self { profile, functions, counts: FxHashMap::default() }
    }

    /// Returns the *nth* of the next launch. Call it for every launch, starting at 0.
    pub fn next(&mut self, launch: usize) -> u32 {
        let launches = &self.profile.launches;
        let pid = launches.place(launch).and_then(|p| self.profile.places.get(p.0 as usize)).and_then(|p| p.pid);
        let function = self.functions.get(launches.kernel(launch).0 as usize).copied().unwrap_or(u32::MAX);
        let count = self.counts.entry((pid, function)).or_default();
        *count += 1;
        *count - 1
    }
}

/// All launches in launch order, each with its *nth*.
pub fn all_launches(profile: &Profile) -> impl Iterator<Item = (u32, u32)> + use<'_> {
    let mut nth = Nth::new(profile);
    (0..u32::try_from(profile.launches.len()).unwrap_or(u32::MAX)).map(move |launch| (launch, nth.next(launch as usize)))
}
