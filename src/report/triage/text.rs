//! Triage in words.

use crate::analysis::flops::{Counted, Rate};
use crate::analysis::hints::KernelLead;
use crate::analysis::run_estimate::RunEstimate;
use crate::analysis::triage::{
    Cause, Evidence, Finding, JudgedDevice, Launched, Place, PlaceKind, Severity, StepKind, StepSource, TimeCategory, Triage, Verdict,
};
use crate::model::text::escape_unsafe;
use crate::model::units::format_percent;
use crate::model::units::format_scaled;
use crate::model::{Bytes, Nanos, Profile, units};
use crate::report::finding_text::{EvidenceText, FindingText};

/// A report and its triage.
pub type Judged<'a> = (&'a Profile, &'a Triage);

/// Rounds a percentage to four decimals, for JSON.
pub fn round_percent(percent: f64) -> f64 {
    (percent * 10_000.0).round() / 10_000.0
}

/// Describes how steps were detected.
pub fn steps_by(found: &StepSource) -> String {
    match found {
        StepSource::Ranges(name) => format!("ranges \"{name}\", from start to start"),
        StepSource::Graphs => "launches of graphs".to_owned(),
        StepSource::Period(n) => format!("what runs on the GPU repeats after {}", units::format_count(*n, "operation")),
        StepSource::Waits(call) => format!("each ends with a wait of the launching thread, in {}", escape_unsafe(call)),
    }
}

/// Formats an evidence value with its unit.
pub fn format_value(value: f64, unit: &str) -> String {
    match unit {
        "ns" => Nanos::format_ns(value),
        "byte" => Bytes(value.max(0.0) as u64).to_string(),
        "byte/s" => format!("{:.1} GB/s", value / 1e9),
        "%" => units::format_percent(value),
        "1/s" => format!("{}/s", units::format_grouped(value.round() as i64)),
        _ if value.fract() == 0.0 || value >= 1000.0 => units::format_grouped(value.round() as i64),
        _ => format!("{value:.2}"),
    }
}

/// Puts the evidence for findings about runs and memory into words.
pub fn evidence_text(e: &Evidence) -> EvidenceText {
    EvidenceText {
        name: e.name.clone(),
        value: format_value(e.value, &e.unit),
        threshold: e.threshold.map_or_else(String::new, |t| format!("{} {}", t.op, format_value(t.value, &e.unit))),
        metric: String::new(),
    }
}

/// Returns the identifier and the headline of what limits the run: a measured kernel that comes first, or the first
/// finding.
pub fn verdict_text(t: &Triage) -> Option<(&'static str, String)> {
    let kernel = t.kernel_lead.as_ref().map(|lead| {
        let gain = units::format_whole_percent(lead.gain * 100.0);
        (lead.hint.id.id(), format!("{} (up to {gain} of {})", lead_headline(lead), t.base))
    });
    kernel.or_else(|| t.verdict().map(|f| (f.id.id(), f.headline.clone())))
}

pub fn lead_headline(lead: &KernelLead) -> String {
    format!("{}: {}", lead.kernel, lead.hint.headline)
}

/// Puts a finding into words. `base` names the time span to which the finding's share refers, and `begin` is the start
/// of the window, ns, if places are to be given from there.
pub fn finding_text(f: &Finding, base: &str, begin: Option<i64>) -> FindingText {
    FindingText {
        id: f.id.id(),
        headline: f.headline.clone(),
        rating: format!("{}, {}{}", f.severity.as_str(), f.sure.as_str(), gain_text(f, base)),
        is_problem: f.severity > Severity::Healthy,
        costs: Vec::new(),
        evidence: f.evidence.iter().map(evidence_text).collect(),
        places: f.places.iter().map(|p| format_place(p, base, begin)).collect(),
        consequences: f.effects.iter().map(|(id, headline)| format!("{}: {headline}", id.id())).collect(),
        actions: f.actions.clone(),
        confirm: f.confirm.as_ref().map(|c| (c.why.clone(), c.argv.clone())).unwrap_or_default(),
    }
}

/// Describes a place, with its time both as accepted by `--from` and relative to the start of the window.
pub fn format_place(p: &Place, base: &str, begin: Option<i64>) -> String {
    let name = match p.kind {
        PlaceKind::Window | PlaceKind::Step | PlaceKind::Call | PlaceKind::Line => escape_unsafe(&p.name).into_owned(),
        kind => format!("{} {}", kind.as_str(), escape_unsafe(&p.name)),
    };
    // A place before the window has no position in it.
    let into = begin.filter(|begin| *begin <= p.start);
    let into = into.map_or_else(String::new, |begin| format!(" ({} into {base})", Nanos(p.start - begin)));
    let at = format!("{:.4} s{into}", p.start as f64 / 1e9);
    match (p.ns, p.kind) {
        // A total over the window has no single time.
        (Some(ns), PlaceKind::Kernel | PlaceKind::Call) => format!("{name}: {}", Nanos(ns)),
        (Some(ns), PlaceKind::Window | PlaceKind::Step) => format!("{name}: {} at {at}", Nanos(ns)),
        // Ranges and functions inside of it are places of their own.
        (Some(ns), PlaceKind::Range | PlaceKind::Python) => format!("{name}: {} in it alone, the longest at {at}", Nanos(ns)),
        (Some(ns), _) => format!("{name}: {} in all, the longest at {at}", Nanos(ns)),
        (None, _) => name,
    }
}

/// Word for the steps of a run. Steps found only by repetition in the sequence of kernels may be fractions of a training
/// or inference step.
pub fn step_noun(t: &Triage) -> &'static str {
    if matches!(t.found, Some(StepSource::Period(_))) { "repetition" } else { "step" }
}

/// Ratio of the mean length of a step to the median from which both are shown.
const UNEVEN: f64 = 1.5;

/// Describes the analyzed window in one line.
pub fn judged_line(t: &Triage) -> String {
    let steps = t.step_stats().map_or_else(String::new, |s| {
        // A median says little where some of the steps take far longer than the others.
        let uneven = s.mean as f64 > UNEVEN * s.median as f64;
        let mean = if uneven { format!(" (mean {})", Nanos(s.mean)) } else { String::new() };
        format!(", {}, median {}{mean}", units::format_count(s.count, step_noun(t)), Nanos(s.median))
    });
    let (judged, span) = (Nanos(t.length()), Nanos(t.span.1 - t.span.0));
    // Name the same base as the sentences of the findings, which give shares of it.
    let of = match (t.length() as f64 >= span.0 as f64 * 0.99, t.base) {
        (true, "the run") => format!("whole run: {judged}"),
        (false, "the run") => format!("parts of the run: {judged} of {span}"),
        (_, base) => format!("{}: {judged} of {span}", base.trim_start_matches("the ")),
    };
    let parts = if t.judged.count() > 1 { format!(", in {} parts", t.judged.count()) } else { String::new() };
    let devices = if t.devices.len() > 1 { format!(", mean of {}", units::format_count(t.devices.len(), "GPU")) } else { String::new() };
    let rate = t.flops.map_or_else(String::new, |r| format!(", {}{}", at_least(r.counted), format_flops(r.per_second)));
    format!("{of}{parts}{steps}{devices}{rate}")
}

/// `at least ` before a rate that leaves work out.
fn at_least(counted: Counted) -> &'static str {
    match counted {
        Counted::Given => "",
        Counted::Operators { unknown, .. } if unknown < LEAST_UNKNOWN => "",
        Counted::Operators { .. } | Counted::Results(_) => "at least ",
    }
}

pub(super) fn name_of(d: &JudgedDevice, several: bool) -> String {
    let name = d.name.as_deref().map_or_else(|| "GPU".to_owned(), |n| escape_unsafe(n).into_owned());
    let number = d.number.filter(|n| several && !name.ends_with(&n.to_string())).map_or_else(String::new, |n| format!(" {n}"));
    let pid = d.pid.filter(|_| several).map_or_else(String::new, |p| format!(", process {p}"));
    format!("{name}{number}{pid}")
}

/// Doubts about the triage, and memory findings.
pub fn warnings(t: &Triage) -> Vec<String> {
    let memory = t.memory.iter().flatten().map(|(id, headline)| format!("memory: {id}: {headline}"));
    t.doubt.iter().cloned().chain(memory).collect()
}

/// Warnings, detection of steps, omitted phases, and missing data.
pub fn remarks(t: &Triage) -> Vec<String> {
    let mut out = warnings(t);
    out.extend(t.whole_run.as_ref().map(RunEstimate::to_sentence));
    out.extend(t.found.iter().map(|f| format!("steps: {}", steps_by(f))));
    out.extend(step_kinds(t));
    out.extend(t.left_out.iter().map(|l| {
        let before = (t.span.0.min(l.end) - l.start).max(0);
        let idle = if before > 0 { format!(", {} of it before the first operation on the GPU", Nanos(before)) } else { String::new() };
        format!("left out: {} ({}{idle})", l.what, Nanos(l.end - l.start))
    }));
    if t.devices.len() > 1 {
        out.push(format!("times of findings are summed over {}", units::format_count(t.devices.len(), "device")));
    }
    out.extend(t.flops.as_ref().map(work_sentence));
    out.extend(t.missing.iter().cloned());
    out
}

/// Kinds of steps, one line per kind.
fn step_kinds(t: &Triage) -> Vec<String> {
    let each = |k: &StepKind| {
        let idle = k
            .idle
            .filter(|(_, share)| *share >= SHOWN_IDLE)
            .map_or_else(String::new, |(part, share)| format!(", {} {}", part.id(), format_percent(share * 100.0)));
        format!(
            "{}, median {} ({} of all steps' time): {}; GPU busy {} of it{idle}",
            units::format_count(k.count, "step"),
            Nanos(k.median),
            format_percent(k.share * 100.0),
            launched(k.launched),
            format_percent(k.busy * 100.0)
        )
    };
    let mut out: Vec<String> = t.kinds.iter().map(each).collect();
    let rest = t.steps.len().saturating_sub(t.kinds.iter().map(|k| k.count).sum());
    if rest > 0 && !out.is_empty() {
        let share = (1.0 - t.kinds.iter().map(|k| k.share).sum::<f64>()).max(0.0);
        out.push(format!("{} of other kinds ({} of all steps' time)", units::format_count(rest, "step"), format_percent(share * 100.0)));
    }
    out
}

/// Minimum share of idle time for it to be printed.
const SHOWN_IDLE: f64 = 0.01;

/// Number of launches in a step: `a graph of 193 kernels + 12 kernels`.
fn launched(l: Launched) -> String {
    let single = units::format_count(l.single_kernels as usize, "kernel");
    let graphs = match l.graphs {
        0 => return single,
        1 => format!("a graph of {}", units::format_count(l.graph_kernels as usize, "kernel")),
        n => format!("{n} graphs of {} in all", units::format_count(l.graph_kernels as usize, "kernel")),
    };
    if l.single_kernels == 0 { graphs } else { format!("{graphs} + {single}") }
}

/// Formats floating-point operations per second: `680 TFLOP/s`.
pub fn format_flops(per_second: f64) -> String {
    let (value, unit) = format_scaled(per_second, "FLOP/s");
    format!("{value} {unit}")
}

/// Minimum share of kernel time in kernels with unknown operations that is worth a remark.
const LEAST_UNKNOWN: f64 = 0.01;

/// Describes the floating-point work in the window in a sentence.
pub fn work_sentence(r: &Rate) -> String {
    let least = at_least(r.counted);
    let from = match r.counted {
        Counted::Given => "as given".to_owned(),
        Counted::Operators { count, unknown } => {
            let of = format!("matrix products, convolutions and attention of {} by their shapes", units::format_count(count, "operator"));
            if unknown < LEAST_UNKNOWN {
                of
            } else {
                let part = units::format_whole_percent(unknown * 100.0);
                format!("{of}; kernels with {part} of kernel time may do more, which is not recorded")
            }
        }
        Counted::Results(share) => {
            format!("by ncu's results for kernels that take {} of the time of all kernels", units::format_whole_percent(share * 100.0))
        }
    };
    let share = match (r.utilization(), r.peak) {
        (Some(u), Some(peak)) => {
            // Hardware counters include recomputation.
            let word = if matches!(r.counted, Counted::Results(_)) { "HFU" } else { "MFU" };
            format!("; {word} {} of {}, the dense BF16 peak", format_percent(u * 100.0), format_flops(peak))
        }
        (None, Some(_)) => "; too little for a utilization (MFU)".to_owned(),
        _ => "; the peak of this GPU is not known".to_owned(),
    };
    format!("FLOPs: {least}{} over the window ({from}){share}", format_flops(r.per_second))
}

/// `, up to 12% of the steady state`: the possible gain from fixing a finding; empty if there is nothing to gain.
fn gain_text(f: &Finding, base: &str) -> String {
    let healthy = f.severity == Severity::Healthy || f.stake == 0.0 || f.id == Verdict::GpuBound;
    if healthy { String::new() } else { format!(", up to {} of {base}", units::format_whole_percent(f.gain_percent())) }
}

/// Name of a time category, plus the main cause if the name alone is vague.
pub(super) fn part_name(d: &JudgedDevice, part: TimeCategory) -> String {
    let of = d.causes.iter().filter(|c| c.0.part() == part).max_by_key(|c| c.1);
    match (part, of) {
        (TimeCategory::Other, Some((cause, _))) => match cause {
            Cause::Queued => "idle: other (next operation queued)".to_owned(),
            Cause::Ended => "idle: other (nothing more launched)".to_owned(),
            Cause::Absent => "idle: other (between two processes)".to_owned(),
            Cause::Paging => "idle: other (managed memory)".to_owned(),
            Cause::Unknown => "idle: other (not recorded)".to_owned(),
            Cause::NoCall => "idle: other (calls not recorded)".to_owned(),
            _ => part.id().to_owned(),
        },
        _ => part.id().to_owned(),
    }
}
