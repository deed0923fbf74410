//! Which launches of a report a job selects.

use super::filter::{Filter, Spelled};
use crate::model::{Kernel, LaunchOrder, Maker, Profile};
use std::collections::BTreeMap;

/// The launches of one kernel symbol on one GPU that are selected.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub kernel: String,
    /// The GPU's number, where known.
    pub gpu: Option<u32>,
    /// How often the symbol was launched.
    pub launches: u64,
    /// The numbers that are selected, from 1, at most [`SHOWN`] of them.
    pub numbers: Vec<u64>,
    /// How many are selected.
    pub selected: u64,
}

/// What a job selects in a report.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// By symbol, in order of their first launch.
    pub taken: Vec<Taken>,
    /// Kernels that are taken up to `ROCm` 7.0 and not later, or the other way.
    pub differ: Vec<String>,
    /// Kernels whose name is taken, but that were not launched so often.
    pub too_few: Vec<String>,
    /// Names for which a pattern took too long.
    pub unknown: u64,
}

/// Numbers that are listed for a symbol.
pub const SHOWN: usize = 20;

/// A name as the job's patterns see it, where the report has it.
fn spelled(kernel: &Kernel, spelled: Spelled) -> Option<String> {
    match spelled {
        Spelled::Demangled => Some(kernel.demangled().to_owned()).filter(|n| !n.starts_with("_Z")),
        Spelled::Truncated => Some(kernel.function().to_owned()),
        Spelled::Mangled => {
            kernel.mangled.as_deref().or_else(|| kernel.demangled.as_deref().filter(|d| !d.contains('('))).map(|m| format!("{m}.kd"))
        }
    }
}

/// What a job selects in a report of AMD GPUs.
///
/// # Errors
/// A sentence on a report that cannot tell.
pub fn select(profile: &Profile, filter: &Filter) -> Result<Selected, String> {
    if profile.devices.iter().any(|d| d.maker != Maker::Amd) {
        return Err("the report is not of AMD GPUs".to_owned());
    }
    if profile.order == LaunchOrder::Chosen {
        return Err("the report has only launches that were chosen: how many came before each is not known".to_owned());
    }
    if filter.regions {
        return Err(
            "a report does not say which launches lie between roctxProfilerResume and roctxProfilerPause (`selected_regions`)".to_owned()
        );
    }
    if let [Some(old), Some(_)] = filter.errors() {
        return Err(format!("nothing: a pattern is no regular expression ({old})"));
    }
    let names: Vec<Option<String>> = profile.kernels.iter().map(|k| spelled(k, filter.spelled)).collect();
    if names.iter().all(Option::is_none) {
        return Err("the report does not have the names that this job's patterns are searched in".to_owned());
    }
    let mut out = Selected::default();
    let mut by_name = vec![None; names.len()];
    for (at, name) in names.iter().enumerate() {
        let Some(name) = name else { continue };
        let [old, new] = filter.takes(name);
        match (old, new) {
            (Some(old), Some(new)) if old != new => out.differ.push(name.clone()),
            _ => {}
        }
        out.unknown += u64::from(old.is_none() && new.is_none());
        // The newer engine's answer: most machines have it.
        by_name[at] = new.or(old);
    }
    // By process, symbol and GPU, in the order of launches.
    let launches = &profile.launches;
    let mut at: BTreeMap<(Option<u32>, u32, Option<u32>), usize> = BTreeMap::new();
    for row in 0..launches.len() {
        let kernel = launches.kernel(row).0;
        if by_name.get(kernel as usize).copied().flatten() != Some(true) {
            continue;
        }
        let place = launches.place(row).and_then(|p| profile.places.get(p.0 as usize));
        let gpu = place.and_then(|p| profile.device_of(p)).map(|d| d.id);
        let process = place.and_then(|p| p.pid);
        let index = *at.entry((process, kernel, gpu)).or_insert_with(|| {
            let kernel = names.get(kernel as usize).cloned().flatten().unwrap_or_default();
            out.taken.push(Taken { kernel, gpu, launches: 0, numbers: Vec::new(), selected: 0 });
            out.taken.len() - 1
        });
        let Some(taken) = out.taken.get_mut(index) else { continue };
        taken.launches += 1;
        if filter.numbers.has(taken.launches) {
            taken.selected += 1;
            if taken.numbers.len() < SHOWN {
                taken.numbers.push(taken.launches);
            }
        }
    }
    let (taken, few): (Vec<Taken>, Vec<Taken>) = std::mem::take(&mut out.taken).into_iter().partition(|t| t.selected > 0);
    out.taken = taken;
    out.too_few = few.into_iter().map(|t| t.kernel).collect();
    out.too_few.dedup();
    Ok(out)
}
