//! Launches in a report that a job selects.

use super::filter::{Filter, Spelled};
use crate::model::{Kernel, LaunchOrder, Profile, Vendor};
use std::collections::BTreeMap;

/// Selected launches of one kernel symbol on one GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Taken {
    pub kernel: String,
    pub process: Option<u32>,
    /// GPU id, if known.
    pub gpu: Option<u32>,
    /// Index of the first launch, and its grid.
    pub first: u32,
    pub grid: Option<[u32; 3]>,
    /// Number of launches of the symbol.
    pub launches: u64,
    /// Selected launch numbers, 1-based, at most [`SHOWN`].
    pub numbers: Vec<u64>,
    /// Number of selected launches.
    pub selected: u64,
}

/// Launches in a report that a job selects.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selected {
    /// One entry per symbol, in order of first launch.
    pub taken: Vec<Taken>,
    /// Kernels that are selected only up to `ROCm` 7.0, or only since 7.1.
    pub differ: Vec<String>,
    /// Kernels whose name matches, but that have too few launches.
    pub too_few: Vec<String>,
    /// Number of names on which a pattern took too long.
    pub unknown: u64,
}

impl Selected {
    /// Key that distinguishes a symbol from others with the same name on the same GPU, which were loaded by other code
    /// objects or processes.
    pub fn distinguish(&self, taken: &Taken) -> Option<String> {
        let mut others = self.taken.iter().filter(|t| *t != taken && t.kernel == taken.kernel && t.gpu == taken.gpu).peekable();
        others.peek()?;
        let process = taken.process.filter(|_| others.any(|t| t.process != taken.process)).map(|pid| format!("process {pid}"));
        let grid = taken.grid.map(|grid| format!("grid {}×{}×{}", grid[0], grid[1], grid[2]));
        let first = format!("first as launch {} of the report", taken.first);
        Some([process, grid, Some(first)].into_iter().flatten().collect::<Vec<_>>().join(", "))
    }
}

/// Maximum number of launch numbers listed per symbol.
pub const SHOWN: usize = 20;

/// Returns a name in the form that the job's patterns are matched against, if the report has it.
fn spell_name(kernel: &Kernel, spelled: Spelled) -> Option<String> {
    match spelled {
        Spelled::Demangled => Some(kernel.demangled().to_owned()).filter(|n| !n.starts_with("_Z")),
        Spelled::Truncated => Some(kernel.function().to_owned()),
        Spelled::Mangled => {
            kernel.mangled.as_deref().or_else(|| kernel.demangled.as_deref().filter(|d| !d.contains('('))).map(|m| format!("{m}.kd"))
        }
    }
}

/// Returns the launches in a report of AMD GPUs that a job selects.
///
/// # Errors
/// Fails if the report does not contain the required data; the error is one sentence.
pub fn select_launches(profile: &Profile, filter: &Filter) -> Result<Selected, String> {
    if profile.devices.iter().any(|d| d.maker != Vendor::Amd) {
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
    if let [Some(old), Some(_)] = filter.pattern_errors() {
        return Err(format!("nothing: a pattern is no regular expression ({old})"));
    }
    let names: Vec<Option<String>> = profile.kernels.iter().map(|k| spell_name(k, filter.spelled)).collect();
    if names.iter().all(Option::is_none) {
        return Err("the report does not have the names that this job's patterns are searched in".to_owned());
    }
    let mut out = Selected::default();
    let mut by_name = vec![None; names.len()];
    for (at, name) in names.iter().enumerate() {
        let Some(name) = name else { continue };
        let [old, new] = filter.matches_name(name);
        match (old, new) {
            (Some(old), Some(new)) if old != new => out.differ.push(name.clone()),
            _ => {}
        }
        out.unknown += u64::from(old.is_none() && new.is_none());
        // Prefer the result of the newer engine, which most machines have.
        by_name[at] = new.or(old);
    }
    // By process, symbol and GPU, in launch order.
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
            let grid = launches.config(row).and_then(|c| profile.configs.get(c.0 as usize)).and_then(|c| c.grid);
            let first = u32::try_from(row).unwrap_or(u32::MAX);
            out.taken.push(Taken { kernel, process, gpu, first, grid, launches: 0, numbers: Vec::new(), selected: 0 });
            out.taken.len() - 1
        });
        let Some(taken) = out.taken.get_mut(index) else { continue };
        taken.launches += 1;
        if filter.numbers.contains_number(taken.launches) {
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
