//! Reasoning from the numbers to the hints, in sentences: duration, share of the GPU that had work, busiest unit, stall
//! reasons. The order is that in which a user would ask.

use super::bottleneck::find_bottleneck;
use super::limits::{AT_LIMIT, MAY_LIMIT};
use super::metric_values::Facts;
use super::rule_context::Case;
use super::unit_throughput::{Busy, Unit};
use crate::model::Nanos;
use crate::model::units::{format_count, format_share};

/// Explains why L2 does not count although its figure is higher than that of the busiest unit.
fn both_ways(case: &Case<'_>, busy: Busy) -> String {
    let l2 = case.facts.share("l2_throughput").filter(|l2| case.demand.get(Unit::L2).is_none() && *l2 > busy.share);
    l2.map_or_else(String::new, |l2| {
        format!("; L2's {} adds up what enters and leaves it, and each byte passes through it once", format_share(l2))
    })
}

/// Returns the sentences. If the numbers needed to answer a question are missing, the sentence names the section to
/// collect.
pub fn reasoning_sentences(facts: &Facts) -> Vec<String> {
    let case = Case::new(facts);
    let mut out = Vec::new();
    if let Some(ns) = facts.duration_ns() {
        let short =
            if case.is_short() { "shorter than 20 µs, so percentages are noisy" } else { "long enough for stable percentages (20 µs)" };
        out.push(format!("duration: {}, {short}", Nanos::format_ns(ns)));
    }
    if let (Some(blocks), Some(sms)) = (facts.positive_value("grid_size"), facts.positive_value("sm_count")) {
        let waves = facts.get("waves_per_sm").map_or_else(String::new, |w| format!(", {w:.2} waves"));
        let active = facts
            .active_share()
            .map_or_else(String::new, |a| format!("; on average an SM was active in {} of the cycles", format_share(a)));
        out.push(format!("shape: {} for {sms:.0} SMs{waves}{active}", format_count(blocks as i64, "block")));
    }
    match (case.demand.busiest_unit(), find_bottleneck(&case)) {
        (Some(busy), Some(b)) => {
            let means = if b.share() * 100.0 >= AT_LIMIT.value {
                "at the limit (80%): stalls are a consequence"
            } else {
                "between 60% and 80%: that may be the limit"
            };
            // Another unit may be busier, because everything passes through it on the way to this one.
            let way = if busy.share > b.share() + 0.005 {
                format!(" (on the path to it: {} at {})", busy.unit.display_name(), format_share(busy.share))
            } else {
                String::new()
            };
            out.push(format!(
                "throughput: {} at {} of its peak, {means}{way}",
                b.unit(&case.demand).display_name(),
                format_share(b.share())
            ));
        }
        (Some(busy), None) => {
            let less = if !case.roofs_known() {
                "of those collected; another may be at its limit"
            } else if busy.share * 100.0 < MAY_LIMIT.value {
                "below 60%: no unit is at its limit, warps are stalled"
            } else {
                "on the path to another unit"
            };
            let of = format!("{} at {} of its peak, {less}", busy.unit.display_name(), format_share(busy.share));
            out.push(match case.demand.find_unit(Unit::Adu).filter(|adu| adu.share > busy.share) {
                Some(adu) => format!(
                    "throughput: {} is at {} of its peak; of the units that do the work, the busiest is {of}",
                    adu.unit.display_name(),
                    format_share(adu.share)
                ),
                None => format!("throughput: the busiest unit is {of}{}", both_ways(&case, busy)),
            });
        }
        (None, _) => out.push("throughput: not collected (section SpeedOfLight)".to_owned()),
    }
    match &case.stalls {
        Some(stalls) => {
            let top: Vec<String> = stalls
                .ranked_reasons()
                .into_iter()
                .filter(|r| r.0 != "selected" && r.1 >= 0.05)
                .take(4)
                .map(|(reason, share)| format!("{} {}", reason.replace('_', " "), format_share(share)))
                .collect();
            out.push(format!(
                "stalls: of the cycles between two instructions of a warp, {}; issuing {}",
                top.join(", "),
                format_share(stalls.share("selected"))
            ));
        }
        None => out.push("stalls: not collected (section WarpStateStats, or SourceCounters for samples)".to_owned()),
    }
    if let Some(t) = facts.get("theoretical_occupancy") {
        let achieved = facts.get("achieved_occupancy").map_or_else(String::new, |a| format!(", {a:.0}% achieved"));
        out.push(format!("occupancy: {t:.0}% at most{achieved}"));
    }
    out
}
