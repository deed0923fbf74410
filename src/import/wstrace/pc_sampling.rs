//! Stall reasons per instruction, sampled during the run, and the code of the modules that were sampled.

use super::blocks::{self, BlockKind};
use super::names::Names;
use super::pc_sample_rows::{Instruction, Stalls};
use super::varint::Cursor;
use crate::model::metrics::{Sampled, SampledFunction};
use crate::model::sections::InstanceKey;
use crate::model::{Details, Value};
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

/// Prefix of CUPTI's stall reasons; those that end in `_not_issued` count samples in which the scheduler issued no
/// warp.
const REASON: &str = "smsp__pcsamp_warps_issue_stalled_";
const COUNT: &str = "smsp__pcsamp_sample_count";
const INTERVAL: &str = "smsp__pcsamp_interval_cycles";
const FULL: &str = "smsp__pcsamp_sample_buffer_full";
const DROPPED: &str = "smsp__pcsamp_dropped_samples";

/// Returns true if more than 1 % of the samples of a launch are missing.
pub fn has_missing_samples(row: &Stalls, names: &Names) -> bool {
    // Skip the `_not_issued` reasons, because their samples are included in the reasons without this suffix.
    let counts = |reason: u32| names.get(reason).is_some_and(|r| r.starts_with(REASON) && !r.ends_with("_not_issued"));
    let reasons = row.instructions.iter().flat_map(|i| &i.reasons).filter(|r| counts(r.0));
    let there = reasons.fold(0_u64, |sum, r| sum.saturating_add(u64::from(r.1)));
    row.full || row.dropped.max(row.total.saturating_sub(there)) > there / 100
}

/// Number of address bits per function in the synthetic address space; no kernel reaches 2^32 bytes.
const FUNCTION_BITS: u32 = 32;

/// Builds the values of a result and of its instructions under ncu's metric names; `id` returns the id of a name.
pub fn build_values(rows: &[&Stalls], names: &Names, id: &mut dyn FnMut(&Arc<str>) -> u32) -> (Vec<(u32, Value)>, Sampled) {
    let mut functions: BTreeSet<(u64, Arc<str>)> = BTreeSet::new();
    let mut modules: BTreeSet<u64> = BTreeSet::new();
    for i in rows.iter().flat_map(|r| &r.instructions) {
        functions.extend(names.get(i.function).map(|name| (i.module, name)));
        modules.insert(i.module);
    }
    let functions: Vec<SampledFunction> = functions
        .into_iter()
        .zip(1_u64..)
        .map(|((module, name), n)| SampledFunction { module, name, address: n << FUNCTION_BITS })
        .collect();
    let address = |i: &Instruction| {
        let name = names.get(i.function)?;
        let at = functions.binary_search_by(|f| (f.module, &f.name).cmp(&(i.module, &name))).ok()?;
        Some(functions[at].address + i.offset.min((1 << FUNCTION_BITS) - 1))
    };
    // Weight launches by their sampling period.
    let shortest = rows.iter().map(|r| r.period).min().unwrap_or(0);
    let mut by_reason: BTreeMap<Arc<str>, BTreeMap<u64, u64>> = BTreeMap::new();
    let mut samples: BTreeMap<u64, u64> = BTreeMap::new();
    let add = |to: &mut BTreeMap<u64, u64>, address: u64, n: u64| {
        let sum = to.entry(address).or_default();
        *sum = sum.saturating_add(n);
    };
    for row in rows {
        let weight = 1_u64 << (row.period - shortest).min(26);
        for i in &row.instructions {
            let Some(address) = address(i) else { continue };
            for &(reason, n) in &i.reasons {
                let Some(reason) = names.get(reason).filter(|r| r.starts_with(REASON)) else { continue };
                let n = u64::from(n) * weight;
                if !reason.ends_with("_not_issued") {
                    add(&mut samples, address, n);
                }
                add(by_reason.entry(reason).or_default(), address, n);
            }
        }
    }
    by_reason.insert(Arc::from(COUNT), samples);
    let mut values = Vec::new();
    let mut details = Details { sources: modules.into_iter().collect(), ..Details::default() };
    for (name, by_address) in by_reason {
        let id = id(&name);
        values.push((id, Value::Integer(by_address.values().fold(0, |sum: u64, n| sum.saturating_add(*n)))));
        details.instances.insert(id, by_address.into_iter().map(|(a, n)| (InstanceKey::Number(a), Value::Integer(n))).collect());
    }
    if let Some(period) = rows.iter().map(|r| r.period).filter(|p| *p < 63).min() {
        values.push((id(&Arc::from(INTERVAL)), Value::Integer(1 << period)));
    }
    let dropped = rows.iter().fold(0_u64, |sum, r| sum.saturating_add(r.dropped));
    values.push((id(&Arc::from(FULL)), Value::Integer(u64::from(rows.iter().any(|r| r.full)))));
    if dropped > 0 {
        values.push((id(&Arc::from(DROPPED)), Value::Integer(dropped)));
    }
    (values, Sampled { details, functions })
}

/// Maximum size of a module, bytes; the tracer does not write larger ones.
const LARGEST: usize = 64 << 20;

/// Reads the code of the wanted modules from a trace, by CUPTI's CRC.
pub fn find_modules(bytes: &[u8], wanted: &[u64], found: &mut BTreeMap<u64, Vec<u8>>) {
    for block in blocks::find_blocks(bytes).0.iter().filter(|b| b.kind == BlockKind::Code && b.has_valid_checksum()) {
        let mut c = Cursor::new(block.data);
        if let (Some(crc), Some(code)) = (c.read_varint(), c.read_text())
            && wanted.contains(&crc)
            && code.len() <= LARGEST
        {
            found.entry(crc).or_insert_with(|| code.to_vec());
        }
    }
}
