//! JSON form of a finding.

use crate::analysis::triage::{Evidence, Finding};
use crate::report::envelope::NextJson;
use crate::report::triage::round_percent;
use schemars::JsonSchema;
use serde::Serialize;

#[derive(Serialize, JsonSchema)]
struct ThresholdJson {
    op: &'static str,
    value: f64,
}

#[derive(Serialize, JsonSchema)]
pub struct EvidenceJson<'a> {
    name: &'a str,
    value: f64,
    unit: &'a str,
    threshold: Option<ThresholdJson>,
}

#[derive(Serialize, JsonSchema)]
pub struct PlaceJson<'a> {
    kind: &'static str,
    name: &'a str,
    start_ns: i64,
    end_ns: i64,
    /// Time that it costs there.
    ns: Option<i64>,
    pub rank: Option<u32>,
}

#[derive(Serialize, JsonSchema)]
struct ConfirmJson<'a> {
    argv: &'a [String],
    why: &'a str,
}

#[derive(Serialize, JsonSchema)]
struct EffectJson<'a> {
    id: &'static str,
    headline: &'a str,
}

#[derive(Serialize, JsonSchema)]
pub struct FindingJson<'a> {
    id: &'static str,
    severity: &'static str,
    /// `certain` where what decides was recorded; at `likely` and `possible`, do what `confirm` says first.
    sure: &'static str,
    headline: &'a str,
    /// The most that a change could save, in percent of the judged time. Findings overlap: do not add them.
    share_percent: f64,
    /// Reason why it saves no more than that.
    bound: &'a str,
    evidence: Vec<EvidenceJson<'a>>,
    #[serde(rename = "where")]
    pub places: Vec<PlaceJson<'a>>,
    /// Changes to make, the most effective one first.
    actions: &'a [String],
    /// Other findings that follow from this one.
    effects: Vec<EffectJson<'a>>,
    confirm: Option<ConfirmJson<'a>>,
}

impl FindingJson<'_> {
    /// Command that confirms the finding.
    pub fn next_step(&self) -> Option<NextJson> {
        let confirm = self.confirm.as_ref()?;
        Some(NextJson::new(confirm.argv, &format!("{}: {}", self.id, confirm.why)))
    }
}

pub fn evidence_json(e: &Evidence) -> EvidenceJson<'_> {
    let threshold = e.threshold.map(|t| ThresholdJson { op: t.op, value: t.value });
    EvidenceJson { name: &e.name, value: e.value, unit: &e.unit, threshold }
}

pub fn finding_json(f: &Finding) -> FindingJson<'_> {
    FindingJson {
        id: f.id.id(),
        severity: f.severity.as_str(),
        sure: f.sure.as_str(),
        headline: &f.headline,
        share_percent: round_percent(f.gain_percent()),
        bound: &f.bound,
        evidence: f.evidence.iter().map(evidence_json).collect(),
        places: f
            .places
            .iter()
            .map(|p| PlaceJson { kind: p.kind.as_str(), name: &p.name, start_ns: p.start, end_ns: p.end, ns: p.ns, rank: p.rank })
            .collect(),
        actions: &f.actions,
        effects: f.effects.iter().map(|(id, headline)| EffectJson { id: id.id(), headline }).collect(),
        confirm: f.confirm.as_ref().map(|c| ConfirmJson { argv: &c.argv, why: &c.why }),
    }
}
