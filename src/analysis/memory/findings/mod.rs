//! Rules for memory findings. A new rule needs a file here and a row below. Thresholds are our own, chosen so that a
//! training step, a forward pass and a snapshot between steps produce no findings; each threshold is included in the
//! evidence.

mod churn;
mod fragmentation;
mod growth;
mod peak;
mod refused;

use crate::analysis::memory::finding::MemoryFinding;
use crate::analysis::memory::ledger::Life;
use crate::analysis::memory::sites::{Site, Sites};
use crate::analysis::memory::usage::DeviceUsage;
use crate::model::Profile;
use crate::model::api_call::NONE;
use rustc_hash::FxHashMap;

/// Input of a rule.
#[derive(Clone, Copy)]
pub struct Case<'a> {
    pub profile: &'a Profile,
    pub sites: &'a Sites,
    pub of: &'a DeviceUsage,
}

type Rule = fn(&Case<'_>) -> Option<MemoryFinding>;

static RULES: &[Rule] =
    &[refused::out_of_memory, fragmentation::find_fragmentation, growth::find_growth, peak::find_peak, churn::find_churn];

/// Minimum size for findings about fragments and peaks, well above the allocator's own segments of 2 and 20 MiB.
const LEAST: u64 = 64 << 20;

/// Runs all rules; the most important findings come first.
pub fn find_all(case: &Case<'_>) -> Vec<MemoryFinding> {
    let mut out: Vec<MemoryFinding> = RULES.iter().filter_map(|rule| rule(case)).collect();
    out.sort_by(|a, b| b.stake.total_cmp(&a.stake).then(a.id.cmp(&b.id)));
    out
}

impl Case<'_> {
    /// Sums allocations by site, as (site, bytes), largest first.
    fn by_site<'l>(&self, lives: impl Iterator<Item = &'l Life>) -> Vec<(u32, u64)> {
        let mut found: FxHashMap<u32, u64> = FxHashMap::default();
        for life in lives {
            let sum = found.entry(self.sites.site_of_stack(life.stack)).or_default();
            *sum = sum.saturating_add(life.bytes);
        }
        let mut out: Vec<(u32, u64)> = found.into_iter().collect();
        out.sort_by_key(|s| (std::cmp::Reverse(s.1), s.0));
        out
    }

    /// Name of a site for use in a sentence.
    fn site_name(&self, site: u32) -> String {
        if site == NONE {
            return "code without a stack".to_owned();
        }
        self.sites.get(site).map_or_else(String::new, Site::summary_line)
    }

    /// Phrase that names the first known site.
    fn main_site_phrase(&self, sites: &[(u32, u64)]) -> String {
        sites.iter().find(|s| s.0 != NONE).map_or_else(String::new, |s| format!(", mostly by {}", self.site_name(s.0)))
    }
}
