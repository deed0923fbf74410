//! Memory held at a point in time, by allocation site.

use super::category::{Categories, Category};
use super::sites::Sites;
use super::usage::DeviceUsage;
use crate::model::api_call::NONE;
use rustc_hash::FxHashMap;

/// Memory held by a site.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HeldMemory {
    /// Index of the site; [`NONE`] if unknown.
    pub site: u32,
    pub category: Category,
    pub bytes: u64,
    pub blocks: u64,
    /// Bytes still held at the end.
    pub kept: u64,
    /// Stack of the site that holds the most of it; [`NONE`] if unknown.
    pub stack: u32,
}

/// Memory held after an event, or before the first one, largest first. Memory without known blocks gets a separate row.
pub fn held_rows(usage: &DeviceUsage, sites: &Sites, at: Option<u32>) -> Vec<HeldMemory> {
    let ledger = &usage.ledger;
    let categories = Categories::new(sites, ledger, &usage.steps);
    let mut found: FxHashMap<(u32, Category), HeldMemory> = FxHashMap::default();
    let mut by_stack: FxHashMap<(u32, Category, u32), u64> = FxHashMap::default();
    let mut known = 0_u64;
    for life in ledger.held_at(at) {
        let (site, category) = (sites.site_of_stack(life.stack), categories.classify_life(life));
        let row = found.entry((site, category)).or_insert(HeldMemory { site, category, bytes: 0, blocks: 0, kept: 0, stack: life.stack });
        row.bytes = row.bytes.saturating_add(life.bytes);
        row.blocks += 1;
        let of_stack = by_stack.entry((site, category, life.stack)).or_default();
        *of_stack = of_stack.saturating_add(life.bytes);
        row.kept = row.kept.saturating_add(if life.is_kept() { life.bytes } else { 0 });
        known = known.saturating_add(life.bytes);
    }
    let mut most: FxHashMap<(u32, Category), (u64, std::cmp::Reverse<u32>)> = FxHashMap::default();
    for ((site, category, stack), bytes) in by_stack {
        let best = most.entry((site, category)).or_insert((0, std::cmp::Reverse(stack)));
        *best = (*best).max((bytes, std::cmp::Reverse(stack)));
    }
    for (key, (_, stack)) in most {
        found.entry(key).and_modify(|row| row.stack = stack.0);
    }
    let total = at.map_or(ledger.before, |at| ledger.bytes.get(at as usize).copied().unwrap_or_default());
    let rest = total.saturating_sub(known);
    if rest > 0 {
        let row = found.entry((NONE, Category::Earlier)).or_insert(HeldMemory {
            site: NONE,
            category: Category::Earlier,
            bytes: 0,
            blocks: 0,
            kept: 0,
            stack: NONE,
        });
        row.bytes = row.bytes.saturating_add(rest);
        row.kept = row.kept.saturating_add(rest);
    }
    let mut out: Vec<HeldMemory> = found.into_values().collect();
    out.sort_by_key(|r| (std::cmp::Reverse(r.bytes), r.site, r.category));
    out
}
