//! One kernel, prepared for the rules: metric values, demand per unit, stalls.

use super::hint::{Evidence, Threshold};
use super::metric_values::{Depth, Facts};
use super::stalls::Stalls;
use super::unit_throughput::{Busy, Demand, Unit};
use crate::analysis::catalog::builtin_catalog;
use crate::model::units::format_share;

#[derive(Debug)]
pub struct Case<'a> {
    pub facts: &'a Facts,
    /// Demand by unit.
    pub demand: Demand,
    /// Warp stall reasons, if collected.
    pub stalls: Option<Stalls>,
    /// Share of the cycles during which an average SM had work; 1 if unknown.
    pub active: f64,
}

/// Name of the metric; empty for values computed from the launch, which are named after their concept.
fn metric_name(metric: &str, concept: &str) -> String {
    if metric == concept { String::new() } else { metric.to_owned() }
}

/// Suffix for a bound that was discounted, with the discount; empty without one.
pub fn discount_note(part: f64) -> String {
    if part >= 0.995 {
        String::new()
    } else {
        format!("; weighted by {}, since a unit between 60 and 80% of its peak may or may not be the limit", format_share(part))
    }
}

impl<'a> Case<'a> {
    pub fn new(facts: &'a Facts) -> Self {
        Self { facts, demand: Demand::from_facts(facts), stalls: Stalls::from_facts(facts), active: facts.active_share().unwrap_or(1.0) }
    }

    /// Amount of data collected for the kernel.
    pub fn depth(&self) -> Depth {
        self.facts.depth()
    }

    /// Share of its peak that the busiest unit reaches while the SMs have work.
    pub fn peak(&self) -> f64 {
        self.demand.peak_active(self.active)
    }

    /// Weight of waiting (see [`Demand::waiting_counts`]).
    pub fn waiting_counts(&self) -> f64 {
        Demand::waiting_counts(self.peak())
    }

    /// Returns true if both roofs of a kernel are known, either per unit or as totals. Otherwise, any unit may be near
    /// its peak.
    pub fn roofs_known(&self) -> bool {
        let has = |units: &[Unit]| units.iter().any(|u| self.demand.get(*u).is_some());
        let sm = self.facts.get("sm_throughput").is_some() || has(&[Unit::Issue]);
        sm && (self.facts.get("memory_throughput").is_some() || has(&[Unit::Dram, Unit::Memory]))
    }

    /// Gain from eliminating waits that take `share` of the SMs' busy cycles: at most that share, and at most until the
    /// busiest unit is the limit. Waiting for a unit near its peak counts less (see [`Demand::waiting_counts`]).
    pub fn waiting_gain(&self, share: f64) -> f64 {
        self.active * share.min(1.0 - self.peak()).max(0.0) * self.waiting_counts()
    }

    /// Describes the bound on the gain from less waiting.
    pub fn waiting_bound(&self, share: f64) -> String {
        let most = match self.demand.busiest_unit() {
            Some(next) if 1.0 - self.peak() < share => {
                format!("the next limit: {} at {} of its peak", next.unit.display_name(), format_share(next.share))
            }
            _ => format!("the share of cycles that warps spend in these states: {}", format_share(share)),
        };
        let busy = if self.active < 0.98 {
            format!(", of the {} of the time in which SMs have work", format_share(self.active))
        } else {
            String::new()
        };
        format!("{most}{busy}{}", discount_note(self.waiting_counts()))
    }

    /// Weight of the gain from relieving a unit: 1 from 80 % of its peak on, 0 up to 60 %, linear in between; the
    /// complement of [`Demand::waiting_counts`].
    pub fn binding_weight(share: f64) -> f64 {
        ((share - 0.6) / 0.2).clamp(0.0, 1.0)
    }

    /// Gain if an SM unit ran at its peak while the SMs have work; cycles without work have causes of their own.
    pub fn headroom(&self, share: f64) -> f64 {
        (self.active - share).max(0.0) * Self::binding_weight(share)
    }

    /// Gain if some units had no work left, until the next unit is the limit.
    pub fn next_roof(&self, besides: &[Unit]) -> (f64, String) {
        match self.demand.busiest_except(besides) {
            Some(Busy { unit, share, .. }) => {
                (1.0 - share, format!("next bottleneck: {} at {} of its peak", unit.display_name(), format_share(share)))
            }
            None => (0.0, "no other unit was measured".to_owned()),
        }
    }

    /// Returns a measured value as evidence; `None` if it was not collected.
    pub fn metric_evidence(&self, id: &str, threshold: Option<Threshold>) -> Option<Evidence> {
        let measured = self.facts.measured_value(id)?;
        let concept = builtin_catalog().find_concept(id)?;
        let threshold = threshold.filter(|t| t.is_met(measured.value));
        // A zero is evidence only if there is a threshold to compare it with.
        if measured.value == 0.0 && threshold.is_none() {
            return None;
        }
        Some(Evidence {
            name: concept.title.clone(),
            concept: &concept.id,
            metric: metric_name(&measured.metric, &concept.id),
            value: measured.value,
            // Reports label counts of sectors and wavefronts with the unit byte.
            unit: if ["sector", "wavefront"].contains(&concept.unit.as_str()) {
                concept.unit.as_str().into()
            } else {
                measured.unit.clone().into()
            },
            threshold,
            section: concept.section.as_deref(),
        })
    }

    /// Returns a value computed from several metrics as evidence.
    pub fn computed_evidence(&self, label: &str, value: f64, unit: &'static str, threshold: Option<Threshold>) -> Option<Evidence> {
        Evidence::from_value(label, value, unit, threshold)
    }

    /// Returns a unit's demand as evidence.
    pub fn unit_evidence(&self, unit: Unit, threshold: Option<Threshold>) -> Option<Evidence> {
        self.metric_evidence(self.demand.find_unit(unit)?.concept, threshold)
    }

    /// Returns the share of a stall reason as evidence.
    pub fn stall_evidence(&self, reason: &str, threshold: Option<Threshold>) -> Option<Evidence> {
        let stalls = self.stalls.as_ref()?;
        let id = stalls.concept_id(reason);
        let measured = self.facts.measured_value(&id)?;
        let concept = builtin_catalog().find_concept(&id)?;
        let threshold = threshold.filter(|t| t.is_met(stalls.share(reason) * 100.0));
        if threshold.is_none() && stalls.share(reason) < 0.005 {
            return None;
        }
        Some(Evidence {
            name: format!("stalled: {}, of all warp cycles", reason.replace('_', " ")),
            concept: &concept.id,
            metric: measured.metric.to_string(),
            value: stalls.share(reason) * 100.0,
            unit: "%".into(),
            threshold,
            section: concept.section.as_deref(),
        })
    }

    /// Returns true if the launch is so short that percentages are not reliable.
    pub fn is_short(&self) -> bool {
        self.facts.duration_ns().is_some_and(|ns| ns < super::limits::STEADY_NS)
    }
}
