//! `hints`: problems and good results of each kernel, with causes and advice, as JSON, and as documents: a table, or
//! the chain of reasoning.

use super::Format;
use super::document::{Block, Document, Rows};
use super::envelope::{Envelope, JsonDocument, NextJson};
use super::finding_text::{EvidenceText, FindingText};
use super::table;
use crate::analysis::hints::speedup_model::whole_percent;
use crate::analysis::hints::{Depth, Evidence, Hint, Severity, Subject};
use crate::analysis::metric::{format_rounded, human_number};
use crate::analysis::readable::readable_name;
use crate::analysis::table::{Column, Outputs, Unit, Value};
use crate::analysis::what_if_replay::{self, Run};
use crate::analysis::worth::Worth;
use crate::model::Profile;
use crate::rerun::confirm::{self, Counted};
use crate::rerun::{Rerun, shell};
use schemars::JsonSchema;
use serde::Serialize;
use serde::ser::{SerializeSeq, Serializer};
use std::cell::RefCell;
use std::collections::HashMap;
use std::io::{self, Write};
use std::rc::Rc;

#[derive(Serialize, JsonSchema)]
struct ThresholdJson {
    op: &'static str,
    value: f64,
    source: &'static str,
}

#[derive(Serialize, JsonSchema)]
struct EvidenceJson<'a> {
    metric: Option<&'a str>,
    concept: Option<&'static str>,
    label: &'a str,
    value: f64,
    unit: &'a str,
    threshold: Option<ThresholdJson>,
    section: Option<&'static str>,
}

#[derive(Serialize, JsonSchema)]
struct ConfirmJson {
    argv: Vec<String>,
    shell: String,
    why: String,
    exact: bool,
}

#[derive(Serialize, JsonSchema)]
struct EffectJson<'a> {
    id: &'static str,
    headline: &'a str,
}

/// Range of the expected gain, in percent of the kernel's time.
#[derive(Serialize, JsonSchema)]
struct ExpectedJson {
    least_percent: f64,
    most_percent: f64,
}

/// Converts a share to percent, rounded to two digits.
fn rounded_percent(share: f64) -> f64 {
    (share * 10_000.0).round() / 100.0
}

#[derive(Serialize, JsonSchema)]
struct HintJson<'a> {
    id: &'static str,
    severity: &'static str,
    /// As `sure` of a finding: `certain`, `likely` or `possible`.
    confidence: &'static str,
    headline: &'a str,
    evidence: Vec<EvidenceJson<'a>>,
    /// Upper bound of what the change saves, in percent of the kernel's time: what the next limit leaves. Null if nothing
    /// is known of it.
    gain_percent: Option<f64>,
    /// Estimate of what the change saves; quote this where it is not null.
    gain_expected: Option<ExpectedJson>,
    /// Next limit, which sets `gain_percent`.
    gain_bound: &'a str,
    /// Time that the problem costs, in percent of the kernel's time; hints are in this order.
    at_stake_percent: f64,
    /// Measured quantity that `at_stake_percent` follows from.
    at_stake_bound: &'a str,
    actions: &'a [String],
    effects: Vec<EffectJson<'a>>,
    confirm: Option<ConfirmJson>,
}

#[derive(Serialize, JsonSchema)]
struct RowJson<'a> {
    result: Option<usize>,
    launch: u32,
    kernel: &'a str,
    /// Amount of data collected: from `timeline` (only the launch and its duration) to `full`.
    depth: &'static str,
    failed: bool,
    hints: Vec<HintJson<'a>>,
    reasoning: Vec<String>,
    /// Effect on the recorded run; null if it is not known.
    run: Option<RunJson>,
    /// Sections of ncu that would tell more.
    collect: Option<Vec<&'static str>>,
}

/// Effect of the first hint's gain on the recorded run, in percent of its length.
#[derive(Serialize, JsonSchema)]
struct RunJson {
    /// Summed time of the kernel, in percent of the run's length.
    share_percent: f64,
    /// Its time during which nothing else ran.
    critical_percent: f64,
    /// Effect of the first hint's gain on the run's length.
    saves: Option<ExpectedJson>,
}

/// The recorded run, if there is one.
pub type Timeline<'a> = Option<(&'a Profile, &'a Run)>;

/// Effect on the run if the gain predicted by the first hint above "healthy" were realized.
fn run_worth(timeline: Timeline<'_>, at: usize, s: &Subject) -> Option<Worth> {
    let (profile, run) = timeline.filter(|(_, run)| run.can_afford(at))?;
    let hint = s.hints.first().filter(|h| h.severity > Severity::Healthy)?;
    // Only counters allow the gain to be estimated.
    let gain = (s.depth > Depth::Timeline).then(|| hint.gain_range());
    // Kernels of one name may have several entries: a launch of the run itself has its own.
    let own = s.depth == Depth::Timeline && profile.metrics.is_none() && (s.launch as usize) < profile.launches.len();
    let kernel = if own { profile.launches.kernel(s.launch as usize).0 } else { what_if_replay::kernel_of(profile, &s.kernel)? };
    run.evaluate_gain(kernel, gain)
}

/// Commands by launch and sections, since the hints for a kernel often share a command.
type Planned = HashMap<(u32, Vec<&'static str>, bool, bool), Option<Rerun>>;

fn planned_command<'p>(plans: &'p mut Planned, counted: &Counted<'_>, subject: &Subject, hint: &Hint) -> Option<&'p Rerun> {
    let key = (subject.launch, hint.confirm.sections.clone(), hint.confirm.source, hint.confirm.trace);
    plans.entry(key).or_insert_with(|| counted.confirm_command(subject, &hint.confirm).ok()).as_ref()
}

fn hint_json<'a>(plans: &mut Planned, counted: &Counted<'_>, subject: &Subject, hint: &'a Hint) -> HintJson<'a> {
    let command = planned_command(plans, counted, subject, hint);
    HintJson {
        id: hint.id.id(),
        severity: hint.severity.as_str(),
        confidence: hint.sure.as_str(),
        headline: &hint.headline,
        evidence: hint
            .evidence
            .iter()
            .map(|e| EvidenceJson {
                metric: (!e.metric.is_empty()).then_some(&e.metric),
                concept: (!e.concept.is_empty()).then_some(e.concept),
                label: &e.name,
                value: e.value,
                unit: &e.unit,
                threshold: e.threshold.map(|t| ThresholdJson { op: t.op, value: t.value, source: t.source }),
                section: e.section,
            })
            .collect(),
        gain_percent: (!hint.details.gain.unknown).then(|| rounded_percent(hint.details.gain.at_most)),
        gain_expected: hint
            .details
            .gain
            .expected
            .map(|(least, most)| ExpectedJson { least_percent: rounded_percent(least), most_percent: rounded_percent(most) }),
        at_stake_percent: rounded_percent(hint.stake),
        gain_bound: hint.limit_text(),
        at_stake_bound: &hint.bound,
        actions: &hint.actions,
        effects: hint.effects.iter().map(|(id, headline)| EffectJson { id: id.id(), headline }).collect(),
        confirm: command
            .map(|c| ConfirmJson { argv: c.argv(), shell: c.shell_line(), why: hint.confirm.why.clone(), exact: c.is_exact() })
            .filter(|c| !c.argv.is_empty()),
    }
}

/// Kernels that are diagnosed one at a time while they are written.
struct Judged<'a> {
    counted: Counted<'a>,
    timeline: Timeline<'a>,
    subjects: RefCell<Box<dyn Iterator<Item = Subject> + 'a>>,
}

impl Serialize for Judged<'_> {
    fn serialize<S: Serializer>(&self, to: S) -> Result<S::Ok, S::Error> {
        let mut rows = to.serialize_seq(None)?;
        for (at, s) in self.subjects.borrow_mut().by_ref().enumerate() {
            let mut plans = Planned::new();
            rows.serialize_element(&RowJson {
                run: run_worth(self.timeline, at, &s).map(|w| RunJson {
                    share_percent: rounded_percent(w.share),
                    critical_percent: rounded_percent(w.critical),
                    saves: w
                        .saves
                        .map(|(least, most)| ExpectedJson { least_percent: rounded_percent(least), most_percent: rounded_percent(most) }),
                }),
                result: s.result,
                launch: s.launch,
                kernel: s.kernel.function(),
                depth: s.depth.as_str(),
                failed: s.failed,
                hints: s.hints.iter().map(|h| hint_json(&mut plans, &self.counted, &s, h)).collect(),
                reasoning: s.reasoning.clone(),
                collect: s.sections_to_collect().map(|c| c.sections),
            })?;
        }
        rows.end()
    }
}

#[derive(Serialize, JsonSchema)]
pub(in crate::report) struct HintsJson<'a> {
    #[schemars(with = "Vec<RowJson<'static>>")]
    rows: Judged<'a>,
}

impl JsonDocument for HintsJson<'_> {
    const NAME: &'static str = "hints";
}

/// Writes hints as JSON.
pub fn write_json<'a>(
    out: &mut dyn Write,
    profile: &'a Profile,
    timeline: Timeline<'a>,
    subjects: impl Iterator<Item = Subject> + 'a,
) -> io::Result<()> {
    let counted = Counted::new(profile, timeline.map(|t| t.0));
    let mut subjects = subjects.peekable();
    // Kernels are diagnosed while they are written: so far only the first one, which takes the most time, is known.
    let next = subjects.peek().and_then(|s| {
        let hint = s.hints.first()?;
        let command = counted.confirm_command(s, &hint.confirm).ok().filter(|c| !c.argv().is_empty())?;
        Some(NextJson::new(command.argv(), &format!("{}: {}", hint.id.id(), hint.confirm.why)))
    });
    let document = HintsJson { rows: Judged { counted, timeline, subjects: RefCell::new(Box::new(subjects)) } };
    Envelope::of_profile(profile).then(next).write(out, &document)
}

/// A hint on a kernel, or a kernel without hints.
pub struct HintRow {
    subject: Rc<Subject>,
    /// Index among the kernel's hints.
    at: Option<usize>,
}

impl HintRow {
    fn hint(&self) -> Option<&Hint> {
        self.subject.hints.get(self.at?)
    }
}

type HintColumn = Column<HintRow>;

/// Columns of the hints table, in output order.
pub fn columns() -> Vec<HintColumn> {
    fn of(r: &HintRow, value: fn(&Hint) -> Value<'_>) -> Value<'_> {
        r.hint().map_or(Value::Absent, value)
    }
    vec![
        HintColumn::new("result", "result", Unit::Id, "number of the result", |r| Value::maybe_int(r.subject.result)).priority(3),
        HintColumn::new("launch", "launch", Unit::Id, "number of the launch", |r| Value::int(r.subject.launch)).only(Outputs::CSV),
        HintColumn::new("kernel", "kernel", Unit::Text, "function", |r| Value::text(r.subject.kernel.function())),
        HintColumn::new("rank", "#", Unit::Id, "place among the hints of the kernel", |r| Value::maybe_int(r.at.map(|at| at + 1)))
            .priority(4),
        HintColumn::new("id", "diagnosis", Unit::Text, "identifier, which never changes its meaning", |r| {
            of(r, |h| Value::text(h.id.id()))
        }),
        HintColumn::new("severity", "severity", Unit::Text, "high, medium, low or healthy", |r| {
            of(r, |h| Value::text(h.severity.as_str()))
        })
        .priority(2),
        HintColumn::new("confidence", "sure", Unit::Text, "certain, likely or possible", |r| of(r, |h| Value::text(h.sure.as_str())))
            .priority(5),
        HintColumn::new(
            "gain_percent",
            "saves",
            Unit::Percent,
            "estimate of what it saves, at most; for a healthy kernel, the distance from its roof",
            |r| of(r, |h| Value::Labelled(rounded_percent(h.gain_range().1).to_string().into(), h.short_gain_text().into())),
        )
        .priority(1),
        HintColumn::new("headline", "finding", Unit::Text, "the hint in a sentence", |r| match r.hint() {
            Some(h) => Value::text(&h.headline),
            None => Value::Text(no_hints_reason(&r.subject).into()),
        }),
        HintColumn::new(
            "gain_least_percent",
            "at least",
            Unit::Percent,
            "estimate of what it saves, at least, of the kernel's time",
            |r| of(r, |h| Value::Text(rounded_percent(h.gain_range().0).to_string().into())),
        )
        .only(Outputs::CSV),
    ]
}

/// Rows of a kernel: one per hint, up to `most`.
fn hint_rows(subject: Subject, most: usize) -> impl Iterator<Item = HintRow> {
    let subject = Rc::new(subject);
    let hints = subject.hints.len();
    let none = (hints == 0).then(|| HintRow { subject: Rc::clone(&subject), at: None });
    none.into_iter().chain((0..hints.min(most)).map(move |at| HintRow { subject: Rc::clone(&subject), at: Some(at) }))
}

/// Sentence for a kernel on an AMD GPU of which only the timeline is known.
const NO_COUNTERS: &str = "no counters were collected; rocprofv3 --pmc collects them";
/// Sentence for a kernel on an AMD GPU without any hints.
const TOO_LITTLE: &str = "nothing stands out by the counters that were collected";
/// Sentence for a kernel on an AMD GPU if neither its use of memory nor that of the units is known.
const NOT_JUDGED: &str = "not judged: the counters that tell whether memory or a unit limits it were not collected";

/// Gain from following a hint, and what limits it, in one or two sentences.
fn gain_text(h: &Hint) -> String {
    let most = format!("at most {:.0}%, since {}", whole_percent(h.details.gain.at_most), h.limit_text());
    match (h.severity, h.details.gain.expected) {
        (Severity::Low | Severity::Medium | Severity::High, _) if h.details.gain.unknown => format!("not known: {}", h.bound),
        (Severity::Healthy, _) => format!("{}. With less to do {most}", h.gain_text()),
        (_, Some(_)) if h.details.gain.ends_at_bound() => {
            format!("{} of the kernel's time, since {}", h.details.gain.to_text(), h.limit_text())
        }
        (_, Some(_)) => {
            let estimate = &h.details.gain.estimate;
            let since = if estimate.is_empty() { String::new() } else { format!(": {estimate}") };
            format!("{} of the kernel's time{since}", h.details.gain.to_text())
        }
        _ if h.details.gain.left.is_empty() => {
            format!("at most {:.0}% of the kernel's time. Upper bound: {}", whole_percent(h.details.gain.at_most), h.limit_text())
        }
        _ => format!("{most}; how much of it depends on the change"),
    }
}

/// Puts the evidence for a hint into words, with the source of its threshold.
fn evidence_with_source(e: &Evidence) -> EvidenceText {
    let source = e.threshold.map_or("", |t| t.source);
    let text = evidence_text(e);
    let with_source = !text.threshold.is_empty() && !source.is_empty();
    let threshold = if with_source { format!("{}: {source}", text.threshold) } else { text.threshold };
    EvidenceText { threshold, ..text }
}

/// Puts the evidence for a hint into words.
pub fn evidence_text(e: &Evidence) -> EvidenceText {
    EvidenceText {
        name: e.name.clone(),
        value: format_value(e),
        threshold: e.threshold.and_then(|_| format_threshold(e)).unwrap_or_default(),
        metric: e.metric.clone(),
    }
}

/// Puts a hint into words.
pub fn hint_text(h: &Hint) -> FindingText {
    FindingText {
        id: h.id.id(),
        headline: h.headline.clone(),
        rating: format!("{}, {}, {}", h.severity.as_str(), h.sure.as_str(), h.gain_text()),
        is_problem: h.severity > Severity::Healthy,
        evidence: h.evidence.iter().map(evidence_with_source).collect(),
        consequences: h.effects.iter().map(|(id, headline)| format!("{}: {headline}", id.id())).collect(),
        actions: h.actions.clone(),
        ..FindingText::default()
    }
}

/// Reason why a kernel has no hints.
pub fn no_hints_reason(s: &Subject) -> String {
    match s.sections_to_collect() {
        _ if s.is_amd() && s.depth == Depth::Timeline => NO_COUNTERS.to_owned(),
        _ if s.is_amd() => s.not_counted.clone().unwrap_or_else(|| if s.roofs { TOO_LITTLE } else { NOT_JUDGED }.to_owned()),
        _ if s.failed => "ncu could not profile this launch".to_owned(),
        Some(c) => format!("not enough was collected to name a cause; collect {}", c.sections.join(", ")),
        None => "nothing stands out by the rules".to_owned(),
    }
}

/// Formats an evidence value with its unit.
pub fn format_value(e: &Evidence) -> String {
    if matches!(&*e.unit, "sector" | "wavefront" | "request" | "inst" | "warp" | "cycle" | "thread" | "block") && e.value >= 1e6 {
        return format_rounded(e.value, &e.unit);
    }
    let (number, unit) = human_number(e.value, &e.unit);
    format!("{number} {unit}").trim_end().to_owned()
}

/// Formats a threshold: `≥ 80 %`.
pub fn format_threshold(e: &Evidence) -> Option<String> {
    let t = e.threshold?;
    let (number, unit) = human_number(t.value, &e.unit);
    let number = number.strip_suffix(".00").unwrap_or(&number);
    Some(format!("{} {number} {unit}", t.op).trim_end().to_owned())
}

/// Hints derived from a timeline launch alone.
#[derive(Clone, Debug)]
pub struct Advice {
    pub subject: Subject,
    /// The ncu command that confirms each hint, in the order of the hints; `None` if a hint needs no metrics.
    pub commands: Vec<Option<String>>,
    /// Reasoning behind the hints, as sentences.
    pub reasoning: Vec<String>,
}

impl Advice {
    pub fn for_launch(profile: &Profile, launch: u32) -> Option<Self> {
        let subject = Subject::of_launch(profile, launch)?;
        let command = |hint: &Hint| {
            let planned = confirm::confirm_command(profile, launch, &hint.confirm).ok()?;
            Some(shell::command_line(&planned.argv())).filter(|c| !c.is_empty())
        };
        Some(Self { commands: subject.hints.iter().map(command).collect(), reasoning: subject.reasoning.clone(), subject })
    }
}

/// The chain of reasoning of each kernel with its numbers, what to change, and the commands that confirm it.
pub fn explanation(profile: &Profile, timeline: Timeline<'_>, subjects: impl Iterator<Item = Subject>) -> Document<'static> {
    let counted = Counted::new(profile, timeline.map(|t| t.0));
    let mut blocks = Vec::new();
    for (at, s) in subjects.enumerate() {
        let (mut plans, s) = (Planned::new(), &s);
        let what = s.result.map_or_else(|| format!("launch {}", s.launch), |r| format!("result {r}"));
        blocks.push(Block::Heading(3, format!("{} · {what} · depth: {}", readable_name(&s.kernel), s.depth.as_str())));
        let nothing = s.hints.is_empty().then(|| no_hints_reason(s));
        blocks.push(Block::Reasoning(s.reasoning.iter().cloned().chain(nothing).collect()));
        for (rank, h) in s.hints.iter().enumerate() {
            let mut text = hint_text(h);
            text.costs.push(("gain", gain_text(h)));
            let worth = run_worth(timeline.filter(|_| rank == 0), at, s);
            text.costs.extend(worth.map(|w| ("in the run", w.describe_effect())));
            let command = planned_command(&mut plans, &counted, s, h);
            if command.is_some() || s.is_amd() {
                text.confirm = (h.confirm.why.clone(), command.map(Rerun::argv).unwrap_or_default());
            }
            blocks.push(Block::Finding(text));
        }
    }
    Document { blocks }
}

/// Maximum number of hints on a kernel in a table for people.
const SHOWN_HINTS: usize = 3;

/// The hints as a table.
pub fn document(subjects: impl Iterator<Item = Subject>) -> Document<'static> {
    let rows: Vec<HintRow> = subjects.flat_map(|s| hint_rows(s, SHOWN_HINTS)).collect();
    Document { blocks: vec![Block::Rows(Box::new(Rows { columns: columns(), rows }))] }
}

/// Prints one CSV row per hint.
pub fn print_csv(out: &mut dyn Write, subjects: impl Iterator<Item = Subject>, width: Option<usize>) -> io::Result<()> {
    table::print_rows(columns(), subjects.flat_map(|s| hint_rows(s, usize::MAX)), out, Format::Csv, width)
}
