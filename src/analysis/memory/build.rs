//! Puts together how a program uses memory.

use super::findings;
use super::ledger::Ledger;
use super::sites::Sites;
use super::steps::Steps;
use super::usage::{DeviceUsage, Free, Usage, segments};
use crate::model::{BlockState, Cancel, Profile};

/// How a program uses memory; `None` where the report says nothing of it, or nobody wants it any more.
#[must_use]
pub fn usage(profile: &Profile, cancel: &Cancel) -> Option<Usage> {
    if profile.memory.is_empty() {
        return None;
    }
    let sites = Sites::of(profile);
    let mut devices = Vec::new();
    for ledger in Ledger::all(profile, &sites.stack_of) {
        if cancel.is_cancelled() {
            return None;
        }
        let steps = Steps::of(profile, &sites, &ledger);
        let mut usage = DeviceUsage {
            peak: ledger.peak(),
            reserved_peak: ledger.reserved.iter().map(|r| r.1).max(),
            reserved: ledger.reserved.last().map(|r| r.1),
            free: free(profile, ledger.device),
            findings: Vec::new(),
            ledger,
            steps,
        };
        usage.findings = findings::all(&findings::Case { profile, sites: &sites, of: &usage });
        devices.push(usage);
    }
    (!devices.is_empty()).then_some(Usage { sites, devices })
}

/// Events up to which memory is looked at beside something else: that takes less than half a second.
const FEW: usize = 500_000;

/// What is wrong with a program's use of memory, as id and headline, the devices in turn; empty where that would take long.
#[must_use]
pub fn wrong(profile: &Profile, cancel: &Cancel) -> Vec<(&'static str, String)> {
    let usage = if profile.memory.events.len() > FEW { None } else { usage(profile, cancel) };
    let devices = usage.map(|u| u.devices).unwrap_or_default();
    devices.into_iter().flat_map(|d| d.findings).map(|f| (f.id.id(), f.headline)).collect()
}

fn free(profile: &Profile, device: Option<u32>) -> Option<Free> {
    let state = profile.memory.state.as_ref()?;
    let mut out = Free::default();
    // What is free in a pool of its own is kept for its CUDA graph.
    for segment in segments(profile, device).filter(|s| s.pool == (0, 0)) {
        let blocks = state.blocks.get(segment.blocks.0..segment.blocks.1)?;
        let used = blocks.iter().any(|b| b.state != BlockState::Free);
        for block in blocks.iter().filter(|b| b.state == BlockState::Free) {
            let sum = if used { &mut out.split } else { &mut out.whole };
            *sum = sum.saturating_add(block.size);
            out.pieces += u64::from(used);
            out.largest = out.largest.max(block.size);
        }
    }
    Some(out)
}
