//! Predicted gains against measured ones: pairs of kernels where the second is the first with one problem
//! fixed, recorded on an H200. `pairs.cu` was written together with the gain model, `held.cu` by an author who
//! had seen neither the model nor the rules.

use super::support::{read, root};
use insta::assert_snapshot;
use serde_json::Value as Json;
use std::collections::BTreeMap;
use std::fmt::Write as _;
use warpscope::analysis::hints::diagnosed_kernel::diagnose_all;
use warpscope::analysis::hints::{Gain, Severity};

/// Reports, name suffixes of the two kernels of a pair, and number of pairs.
const SETS: [(&str, &str, &str, usize); 2] = [("pairs_detailed", "_before", "_after", 39), ("held_detailed", "_a", "_b", 55)];

/// An estimate is near if it is within this factor of the measured time after the change.
const NEAR: f64 = 1.3;

struct Pair {
    name: String,
    id: &'static str,
    gain: Gain,
    healthy: bool,
    /// Share of the first kernel's time that the second one saves.
    got: f64,
}

fn pairs(report: &str, before: &str, after: &str) -> Vec<Pair> {
    let profile = read(&root().join(format!("fixtures/hints/{report}.ncu-rep.zst"))).unwrap();
    // A kernel that runs several times counts with its total time.
    let mut time: BTreeMap<String, f64> = BTreeMap::new();
    let subjects = diagnose_all(&profile);
    for s in &subjects {
        *time.entry(s.kernel.function().to_owned()).or_default() += s.facts.duration_ns().unwrap();
    }
    let mut out: Vec<Pair> = Vec::new();
    for s in &subjects {
        let Some(name) = s.kernel.function().strip_suffix(before).filter(|n| out.iter().all(|p| p.name != *n)) else { continue };
        let hint = &s.hints[0];
        let got = 1.0 - time[&format!("{name}{after}")] / time[s.kernel.function()];
        let healthy = hint.severity == Severity::Healthy;
        out.push(Pair { name: name.to_owned(), id: hint.id.id(), gain: hint.details.gain.clone(), healthy, got });
    }
    out
}

/// Ratio of the measured to the predicted time after the change; `None` without an estimate.
fn apart(pair: &Pair) -> Option<f64> {
    pair.gain.expected.map(|_| (1.0 - pair.got) / (1.0 - pair.gain.expected_middle()))
}

fn near(pair: &Pair) -> bool {
    apart(pair).is_some_and(|f| (1.0 / NEAR..=NEAR).contains(&f))
}

#[test]
fn promises_hold() {
    let mut text = String::new();
    for (report, before, after, many) in SETS {
        let all = pairs(report, before, after);
        assert_eq!(all.len(), many, "{report}");
        let count = |is: &dyn Fn(&Pair) -> bool| all.iter().filter(|p| is(p)).count();
        // One percentage point of tolerance for clocks and replay passes.
        let held = count(&|p| p.got <= p.gain.at_most + 0.01);
        let estimated = count(&|p| apart(p).is_some());
        let good = count(&near);
        assert!(held * 100 >= all.len() * 95, "{report}: {held} of {} bounds hold", all.len());
        assert!(good * 3 >= estimated * 2, "{report}: {good} of {estimated} estimates are near");
        assert!(estimated * 2 >= all.len(), "{report}: {estimated} of {} are estimated", all.len());
        let _ = writeln!(text, "{report}: {held} of {} bounds hold, {good} of {estimated} estimates within a factor {NEAR}", all.len());
        for p in &all {
            let words = if p.healthy { format!("healthy; less work: at most {:.0}%", p.gain.at_most * 100.0) } else { p.gain.to_text() };
            let apart = apart(p).map_or_else(String::new, |f| format!("{f:.2}"));
            let _ = writeln!(text, "  {:14} {:24} {words:32} got {:3.0}% {apart:>5}", p.name, p.id, p.got * 100.0);
        }
    }
    assert_snapshot!(text);
}

#[test]
fn a_range_lies_within_its_bound() {
    for report in ["pairs_detailed", "held_detailed", "causes_full", "third_full", "zoo_full", "causes_basic"] {
        let profile = read(&root().join(format!("fixtures/hints/{report}.ncu-rep.zst"))).unwrap();
        for s in diagnose_all(&profile) {
            for h in &s.hints {
                let Gain { at_most, expected, left, .. } = &h.details.gain;
                assert!((0.0..=1.0).contains(at_most) && !left.is_empty(), "{}: {:?}", s.kernel.function(), h.details.gain);
                if let Some((least, most)) = expected {
                    assert!(0.0 <= *least && least <= most && most <= at_most, "{}: {:?}", s.kernel.function(), h.details.gain);
                }
            }
        }
    }
}

/// The `run` object of `warpscope hints` for a kernel of a report.
fn run_of(report: &str, kernel: &str) -> Json {
    let out = super::support::run(&["hints", report, "--kernel", kernel, "--format", "json"]);
    let all: Json = serde_json::from_str(&out.1).unwrap();
    all["rows"][0]["run"].clone()
}

#[test]
fn a_faster_kernel_helps_where_the_gpu_is_waited_for() {
    let critical = |report: &str, kernel: &str| {
        let run = run_of(&root().join(format!("fixtures/triage/{report}.sqlite.zst")).display().to_string(), kernel);
        (run["share_percent"].as_f64().unwrap(), run["critical_percent"].as_f64().unwrap())
    };
    // Back-to-back matrix products: all of their time is critical. With host work in between, almost none is.
    let (share, path) = critical("gemm_healthy", "nvjet_sm90_tst_320x128_64x3_1x2_h_bz_coopB_NNT");
    assert!(share > 99.0 && path > 95.0, "{share} {path}");
    let (share, path) = critical("host_compute", "nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_NNT");
    assert!(share > 10.0 && path < 1.0, "{share} {path}");
    // A trace with counters has the gain as well.
    let run = run_of(&root().join("fixtures/trace/zoo_survey.wstrace.zst").display().to_string(), "transpose_conflict");
    let saves = |end: &str| run["saves"][end].as_f64().unwrap();
    assert!(0.0 < saves("least_percent") && saves("least_percent") < saves("most_percent"));
    assert!(saves("most_percent") < run["critical_percent"].as_f64().unwrap());
}
