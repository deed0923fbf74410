//! Builds the analysis of a program's memory usage.

use super::findings;
use super::ledger::Ledger;
use super::sites::Sites;
use super::space;
use super::steps::Steps;
use super::usage::{DeviceUsage, Free, Usage};
use crate::model::{Cancel, Profile, units};
use std::collections::BTreeMap;

/// Analyzes how a program uses memory; `None` if the report has no memory data or if cancelled.
pub fn analyze_usage(profile: &Profile, cancel: &Cancel) -> Option<Usage> {
    if profile.memory.is_empty() {
        return None;
    }
    let sites = Sites::from_profile(profile);
    let mut devices = Vec::new();
    for ledger in Ledger::all_devices(profile, &sites.stack_of) {
        if cancel.is_cancelled() {
            return None;
        }
        let steps = Steps::from_ledger(profile, &sites, &ledger);
        let mut usage = DeviceUsage {
            peak: ledger.peak(),
            reserved_peak: ledger.reserved.iter().map(|r| r.1).max(),
            reserved: ledger.reserved.last().map(|r| r.1),
            free: free_memory(profile, ledger.device),
            private: private_pools(profile, ledger.device),
            findings: Vec::new(),
            ledger,
            steps,
        };
        usage.findings = findings::find_all(&findings::Case { profile, sites: &sites, of: &usage });
        devices.push(usage);
    }
    (!devices.is_empty()).then_some(Usage { sites, devices })
}

/// Maximum number of events to analyze as part of another command, so that it takes less than half a second.
const FEW: usize = 500_000;

/// Returns the memory findings, as id and headline, for device number `device` or all devices; an error message if the
/// analysis would take too long.
pub fn summarize_findings(profile: &Profile, device: Option<u32>, cancel: &Cancel) -> Result<Vec<(&'static str, String)>, String> {
    let events = profile.memory.events.len();
    if events > FEW {
        return Err(format!(
            "{} are not looked at here: `warpscope memory` and the memory screen say what is wrong",
            units::format_count(events, "memory event")
        ));
    }
    let devices = analyze_usage(profile, cancel).map(|u| u.devices).unwrap_or_default();
    let several = devices.len() > 1;
    let number = |d: &DeviceUsage| d.ledger.device.and_then(|i| profile.devices.get(i as usize)).map(|d| d.id);
    let mut out = Vec::new();
    for of in devices.iter().filter(|d| device.is_none() || number(d) == device) {
        let who = number(of).filter(|_| several).map_or_else(String::new, |n| format!("GPU {n}: "));
        out.extend(of.findings.iter().map(|f| (f.id.id(), format!("{who}{}", f.headline))));
    }
    Ok(out)
}

fn private_pools(profile: &Profile, device: Option<u32>) -> Vec<((u64, u64), u64)> {
    let mut out: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for piece in space::free_pieces(profile, device, None).unwrap_or_default().iter().filter(|p| p.pool != (0, 0)) {
        let sum = out.entry(piece.pool).or_default();
        *sum = sum.saturating_add(piece.size);
    }
    out.into_iter().collect()
}

fn free_memory(profile: &Profile, device: Option<u32>) -> Option<Free> {
    let mut out = Free::default();
    // Free memory in a private pool is reserved for its CUDA graph.
    for piece in space::free_pieces(profile, device, None)?.iter().filter(|p| p.pool == (0, 0)) {
        let sum = if piece.whole { &mut out.whole } else { &mut out.split };
        *sum = sum.saturating_add(piece.size);
        out.largest = out.largest.max(piece.size);
        if !piece.whole {
            out.pieces += 1;
            out.largest_piece = out.largest_piece.max(piece.size);
        }
        if piece.between {
            out.gaps += 1;
            out.between = out.between.saturating_add(piece.size);
        }
    }
    Some(out)
}
