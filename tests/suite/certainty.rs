//! Calibration of "certain", "likely" and "possible" over everything with a known cause: runs, kernels
//! and jobs of many ranks. At least 98% of the certain findings and 90% of the likely ones must be
//! right; the tables in the help give the counts.

use super::jobs::job as made_up;
use super::support::{read, read_as, root};
use std::collections::BTreeMap;
use std::path::Path;
use warpscope::analysis::hints::diagnosed_kernel::diagnose_all;
use warpscope::analysis::ranks::build_job;
use warpscope::analysis::triage::Verdict;
use warpscope::import::Wants;

/// First finding of a case with a known cause.
struct Said {
    of: &'static str,
    case: String,
    word: String,
    id: String,
    right: bool,
}

/// Adds each labelled run, in each recorded format.
fn runs(out: &mut Vec<Said>) {
    let folder = root().join("fixtures/triage");
    let labels: toml::Table = std::fs::read_to_string(folder.join("labels.toml")).unwrap().parse().unwrap();
    for (name, label) in &labels {
        let accept: Vec<&str> = label["accept"].as_array().unwrap().iter().filter_map(|v| v.as_str()).collect();
        for form in ["sqlite.zst", "pt.trace.json.gz", "wstrace.zst"] {
            let file = folder.join(format!("{name}.{form}"));
            if !file.exists() {
                continue;
            }
            let triage = super::triage::judge(&read_as(&file, Wants::TRIAGE).unwrap());
            let first = triage.findings.first().unwrap_or_else(|| panic!("{name}.{form}: nothing is said"));
            let right = accept.contains(&first.id.id());
            // A capture too short for a verdict does not count.
            if first.id == Verdict::ShortCapture {
                continue;
            }
            out.push(Said {
                of: "runs",
                case: format!("{name}.{form}"),
                word: first.sure.as_str().to_owned(),
                id: first.id.id().to_owned(),
                right,
            });
        }
    }
}

/// Adds each kernel of the labelled sets, with each set of metrics collected for it.
fn kernels(out: &mut Vec<Said>) {
    let hints = ["zoo_full", "zoo_detailed", "causes_full", "causes_detailed", "causes_basic", "third_full", "third_detailed"];
    let of = |name: &str| format!("fixtures/hints/{name}.ncu-rep.zst");
    let traces = ["zoo_survey", "causes_in_place", "third_in_place"].map(|name| format!("fixtures/trace/{name}.wstrace.zst"));
    for file in hints.iter().map(|name| of(name)).chain(traces) {
        let set = Path::new(&file).file_name().unwrap().to_str().unwrap();
        let labels = super::hints::labels(set.split('_').next().unwrap());
        let profile = read(&root().join(&file)).unwrap();
        for subject in diagnose_all(&profile) {
            let (Some((accept, _)), Some(hint)) = (labels.get(subject.kernel.function()), subject.hints.first()) else { continue };
            let right = accept.iter().any(|a| a == hint.id.id());
            let case = format!("{set} {}", subject.kernel.function());
            out.push(Said { of: "kernels", case, word: hint.sure.as_str().to_owned(), id: hint.id.id().to_owned(), right });
        }
    }
}

/// Adds recorded jobs of two ranks and generated ones of eight.
fn ranks(out: &mut Vec<Said>) {
    for (case, right, first) in super::ranks::labelled() {
        if let Some((id, word)) = first {
            out.push(Said { of: "ranks", case, word, id, right });
        }
    }
    for plan in super::ranks::plans(8) {
        let found = build_job(&made_up(&plan));
        if let Some(first) = found.findings.first() {
            let right = super::ranks::right(&plan, &found);
            out.push(Said {
                of: "ranks",
                case: format!("{plan:?}"),
                word: first.sure.as_str().to_owned(),
                id: first.id.id().to_owned(),
                right,
            });
        }
    }
}

#[test]
fn certain_means_certain() {
    let mut said = Vec::new();
    runs(&mut said);
    kernels(&mut said);
    ranks(&mut said);
    let mut table: BTreeMap<(&str, &str), (usize, usize)> = BTreeMap::new();
    for s in &said {
        let cell = table.entry((s.of, &s.word)).or_default();
        *cell = (cell.0 + usize::from(s.right), cell.1 + 1);
        if !s.right {
            println!("{:8} {:8} {}: {}", s.of, s.word, s.case, s.id);
        }
    }
    if std::env::var_os("WARPSCOPE_SAID").is_some() {
        for s in &said {
            println!("{} {:8} {:8} {}: {}", if s.right { "right" } else { "wrong" }, s.of, s.word, s.case, s.id);
        }
    }
    let mut low = Vec::new();
    for (&(of, word), &(right, all)) in &table {
        println!("{of:8} {word:8} {right} of {all}: {:.1}%", right as f64 / all as f64 * 100.0);
        let least = match word {
            "certain" => 0.98,
            "likely" => 0.9,
            _ => 0.0,
        };
        if (right as f64) < least * all as f64 {
            low.push(format!("{of}: {word} {right} of {all}"));
        }
    }
    assert!(low.is_empty(), "{low:?}");
    // The help must give the same numbers.
    for (topic, of) in [("triage", &["runs", "ranks"][..]), ("hints", &["kernels"])] {
        let text = std::fs::read_to_string(root().join(format!("src/cli/help/{topic}.md"))).unwrap();
        for of in of {
            let cell = |word| table.get(&(*of, word)).map_or_else(|| "–".to_owned(), |(right, all)| format!("{right} of {all}"));
            let row = format!("| {of} | {} | {} | {} |", cell("certain"), cell("likely"), cell("possible"));
            assert!(text.contains(&row), "help {topic} lacks: {row}");
        }
    }
}
