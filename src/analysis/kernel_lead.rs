//! The kernel whose measured counters promise more than the first finding about the run.

use super::hints::diagnosed_kernel::list_places;
use super::hints::{KernelLead, Severity};
use super::readable::readable_name;
use super::triage::Triage;
use super::what_if_replay::{Run, kernel_of};
use super::worth::Worth;
use crate::model::Profile;
use std::collections::HashMap;

/// Minimum distance to the first finding, as a share of the judged time.
const BY: f64 = 0.01;

/// Upper bound of what a change to a kernel saves, as a share of the judged time: the part of the kernel's time there by
/// which the run would be shorter. `kernel` is an index into the profile's kernels.
pub fn lead_gain(triage: &Triage, kernel: u32, worth: &Worth) -> Option<f64> {
    let (_, ns, _) = triage.kernels.iter().find(|k| k.0 == kernel)?;
    let judged = triage.length().max(1) as f64 * triage.devices.len().max(1) as f64;
    let part = worth.saves?.1 / worth.share.max(f64::MIN_POSITIVE);
    Some(*ns as f64 / judged * part.min(1.0))
}

/// Returns the lead with the most to gain, if that is more than what the first finding promises.
pub fn first_lead(triage: &Triage, leads: impl Iterator<Item = KernelLead>) -> Option<KernelLead> {
    let first = leads.max_by(|a, b| a.gain.total_cmp(&b.gain).then_with(|| b.kernel.cmp(&a.kernel)))?;
    (first.gain > triage.verdict().map_or(0.0, |f| f.stake) + BY).then_some(first)
}

/// Looks for a lead among the kernels that were measured in the report itself. `None` without counters.
pub fn find_kernel_lead(profile: &Profile, triage: &Triage) -> Option<KernelLead> {
    let measured = profile.measured.as_deref().unwrap_or(profile);
    let metrics = measured.metrics.as_ref()?;
    let run = Run::from_profile(profile)?;
    let mut longest: HashMap<u32, (f64, usize)> = HashMap::new();
    let places = list_places(measured);
    for (at, place) in places.iter().enumerate() {
        let Some(kernel) = place.kernel(measured).and_then(|k| kernel_of(profile, k)) else { continue };
        let ns = metrics.results.get(at).and_then(|r| metrics.duration(r)).map_or(0.0, |d| d.0 as f64);
        let known = longest.entry(kernel).or_insert((ns, at));
        if ns > known.0 {
            *known = (ns, at);
        }
    }
    let mut by_time: Vec<(u32, usize)> = longest.into_iter().map(|(kernel, (_, at))| (kernel, at)).collect();
    let time = |kernel: u32| triage.kernels.iter().position(|k| k.0 == kernel).unwrap_or(usize::MAX);
    by_time.sort_by_key(|&(kernel, _)| time(kernel));
    let leads = by_time.into_iter().enumerate().take_while(|(n, _)| run.can_afford(*n)).filter_map(|(_, (kernel, at))| {
        let subject = places.get(at)?.diagnose_kernel(measured)?;
        let hint = subject.hints.first().filter(|h| h.severity >= Severity::Medium)?;
        let gain = lead_gain(triage, kernel, &run.evaluate_gain(kernel, Some(hint.gain_range()))?)?;
        let kernel = readable_name(profile.kernels.get(kernel as usize)?).into_owned();
        Some(KernelLead { kernel, hint: hint.into(), gain })
    });
    first_lead(triage, leads)
}
