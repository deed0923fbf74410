//! Catalog of metrics by concept (`metrics.toml`): names on each chip, meaning, advice, thresholds with their sources,
//! and the direction in which the metric improves.

use serde::Deserialize;
use std::collections::{BTreeMap, HashMap};
use std::sync::OnceLock;

/// Direction in which a metric improves.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Better {
    High,
    Low,
}

/// Right-hand side of a threshold: a number, or an expression over other concepts.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(untagged)]
pub enum Bound {
    /// A number in the metric's unit.
    Number(f64),
    Text(String),
}

#[derive(Clone, Debug, PartialEq, Deserialize)]
pub struct Threshold {
    /// Comparison: `<`, `>`, `>=`, or one of the special operators described in the file.
    pub op: String,
    pub value: Bound,
    /// Level assigned to a value that satisfies the comparison.
    pub level: String,
    #[serde(default)]
    pub text: String,
    #[serde(default)]
    pub source: String,
}

#[derive(Clone, Debug, Deserialize)]
pub struct Concept {
    pub id: String,
    pub title: String,
    /// Group under which the concept is listed.
    pub group: String,
    /// Base unit in ncu's spelling.
    pub unit: String,
    /// Metric names in order of preference.
    pub names: Vec<String>,
    /// `first` takes the first name that is present; `sum` adds up all names, provided all are present; `any` adds up
    /// those present; `max` takes the largest.
    pub combine: String,
    /// Names that replace `names` on specific chips.
    #[serde(default)]
    pub alias: BTreeMap<String, Vec<String>>,
    /// Formula over `vars`, for values that no metric reports.
    #[serde(default)]
    pub expr: Option<String>,
    /// Metrics used in the formula.
    #[serde(default)]
    pub vars: BTreeMap<String, String>,
    /// The ncu section that contains the metric.
    #[serde(default)]
    pub section: Option<String>,
    #[serde(default)]
    pub label: Option<String>,
    #[serde(default)]
    pub meaning: Option<String>,
    /// Advice for users.
    #[serde(default)]
    pub hint: Option<String>,
    /// Data to look at next.
    #[serde(default)]
    pub next: Option<String>,
    /// Caveats on the interpretation.
    #[serde(default)]
    pub note: Option<String>,
    /// Direction of improvement; `None` if neither direction is better.
    #[serde(default)]
    pub better: Option<Better>,
    #[serde(default, rename = "threshold")]
    pub thresholds: Vec<Threshold>,
}

#[derive(Deserialize)]
struct File {
    metric: Vec<Concept>,
}

#[derive(Debug, Default)]
pub struct Catalog {
    /// Concepts in the order of the file.
    pub concepts: Vec<Concept>,
    by_name: HashMap<String, usize>,
    by_id: HashMap<String, usize>,
}

pub fn builtin_catalog() -> &'static Catalog {
    static CATALOG: OnceLock<Catalog> = OnceLock::new();
    CATALOG.get_or_init(|| {
        // A test checks that the file parses.
        let concepts = toml::from_str::<File>(include_str!("metrics.toml")).map(|f| f.metric).unwrap_or_default();
        let mut out = Catalog::default();
        for (at, c) in concepts.iter().enumerate() {
            for name in c.names.iter().chain(c.alias.values().flatten()) {
                out.by_name.entry(name.clone()).or_insert(at);
            }
            out.by_id.insert(c.id.clone(), at);
        }
        out.concepts = concepts;
        out
    })
}

impl Concept {
    /// Returns true if the value is the sum of several metrics.
    pub fn adds_up(&self) -> bool {
        let lists = std::iter::once(&self.names).chain(self.alias.values());
        matches!(self.combine.as_str(), "sum" | "any") && lists.map(Vec::len).max() > Some(1)
    }
}

impl Catalog {
    /// Returns the concept to which a metric belongs.
    pub fn of_metric(&self, name: &str) -> Option<&Concept> {
        self.by_name.get(name).and_then(|&at| self.concepts.get(at))
    }

    pub fn find_concept(&self, id: &str) -> Option<&Concept> {
        self.by_id.get(id).and_then(|&at| self.concepts.get(at))
    }
}

/// Returns the direction in which a metric improves: that of its concept, or else a guess from the name. `None` if
/// neither direction is an improvement.
pub fn better_direction(name: &str) -> Option<Better> {
    if let Some(concept) = builtin_catalog().of_metric(name) {
        return concept.better;
    }
    let has = |w: &str| name.contains(w);
    if has("issue_stalled_selected") {
        None
    } else if has("hit_rate") {
        Some(Better::High)
    } else if has("bank_conflicts") || has("excessive") || has("issue_stalled_") || has("spill") || has("_lookup_miss") {
        Some(Better::Low)
    } else {
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_file_is_readable_and_its_ids_differ() {
        let all = builtin_catalog();
        assert!(all.concepts.len() > 140, "{}", all.concepts.len());
        assert_eq!(all.by_id.len(), all.concepts.len());
        let sm = all.of_metric("sm__throughput.avg.pct_of_peak_sustained_elapsed").unwrap();
        assert_eq!((sm.id.as_str(), sm.better), ("sm_throughput", Some(Better::High)));
        assert!(sm.thresholds.len() == 4 && sm.thresholds.iter().all(|t| !t.source.is_empty()));
        assert_eq!(all.of_metric("dram__bytes_op_read.sum").unwrap().id, "dram_bytes_read", "a name of one chip");
    }

    #[test]
    fn directions() {
        assert_eq!(better_direction("gpu__time_duration.sum"), Some(Better::Low));
        assert_eq!(better_direction("lts__t_sector_op_read_hit_rate.pct"), Some(Better::High));
        assert_eq!(better_direction("launch__grid_size"), None);
        assert_eq!(better_direction("smsp__average_warps_issue_stalled_selected_per_issue_active.ratio"), None);
    }
}
