//! `warpscope recipes check` for rocprofv3 input files: the launches they select in a trace are compared
//! with counts according to rocprofv3's rules.

use super::rocm::{dispatches, rocpd};
use super::support::{run, scratch};
use proptest::prelude::*;
use serde_json::Value;
use std::path::PathBuf;
use warpscope::model::Severity;
use warpscope::rerun::jobs::{check_file, regex::Engines};
use warpscope::rerun::recipes::{Wanted, built_in_recipe};
use warpscope::rerun::shell;

fn written(name: &str, text: &str) -> PathBuf {
    let path = scratch().join(name);
    std::fs::write(&path, text).unwrap();
    path
}

/// Example from the ROCm documentation.
const DOCUMENTED: &str = r#"jobs:
    -
        kernel_include_regex: (.*gemm.*)|(.*fill.*)
        kernel_iteration_range: "[1, [3-4]]"
        output_file: out
        output_format: [json, csv, otf2, pftrace]
        truncate_kernels: true
        sys_trace: true
        advanced_thread_trace: true
        att_simd_select: "0xf"
        att_buffer_size: "0x6000000"
    -
        pmc: [SQ_WAVES, FETCH_SIZE]
        kernel_include_regex: '^void gemm<float>\('
        kernel_iteration_range: '[2]'
"#;

/// Two symbols with the same name on one GPU, from two processes: distinguished by process, grid and first launch.
#[test]
fn symbols_of_one_name_are_told_apart() {
    let trace = scratch().join("names_results.db");
    let mut other = dispatches();
    other.iter_mut().for_each(|d| d.4 = [2560, 1, 1]);
    rocpd(&trace, &[("0000aaaa-1", 900, dispatches()), ("0000bbbb-1", 901, other)]);
    let file =
        written("names.yaml", "jobs:\n  - pmc: [SQ_WAVES]\n    kernel_include_regex: '^__amd_rocclr'\n    kernel_iteration_range: '[1]'\n");
    let (_, json, _) = run(&["recipes", "check", file.to_str().unwrap(), "--report", trace.to_str().unwrap(), "--format", "json"]);
    let json: Value = serde_json::from_str(&json).unwrap();
    let taken = json["files"][0]["jobs"][0]["in_report"]["taken"].as_array().unwrap().clone();
    let found: Vec<_> = taken.iter().map(|t| (t["process"].as_u64(), t["grid"].to_string(), t["first_launch"].as_u64())).collect();
    assert_eq!(found, [(Some(900), "[4,2,1]".to_owned(), Some(0)), (Some(901), "[10,1,1]".to_owned(), Some(1))]);
    let (_, text, _) = run(&["recipes", "check", file.to_str().unwrap(), "--report", trace.to_str().unwrap(), "--format", "table"]);
    let text = text.split_whitespace().collect::<Vec<_>>().join(" ");
    assert!(text.contains("on GPU 0, process 901, grid 10×1×1, first as launch 1 of the report: 1 (of 1 launch)"), "{text}");
}

#[test]
fn a_documented_file_is_checked_against_a_trace() {
    let trace = scratch().join("jobs_results.db");
    rocpd(&trace, &[("0000aaaa-1", 900, dispatches())]);
    let file = written("jobs.yaml", DOCUMENTED);
    let (file, trace) = (file.to_str().unwrap(), trace.to_str().unwrap());
    let (code, text, err) = run(&["recipes", "check", file, "--report", trace]);
    assert_eq!((code, err.as_str()), (1, ""));
    let text = text.replace(&format!("{}/", scratch().display()), "");
    insta::assert_snapshot!("recipes_check", text);
    let (_, csv, _) = run(&["recipes", "check", file, "--format", "csv"]);
    let rows = csv.lines().count() - 1;
    let (_, json, _) = run(&["recipes", "check", file, "--report", trace, "--format", "json"]);
    let findings = |v: &Value| v["findings"].as_array().unwrap().len();
    let of_json: Value = serde_json::from_str(&json).unwrap();
    let of_file = &of_json["files"][0];
    assert_eq!(rows, findings(of_file) + of_file["jobs"].as_array().unwrap().iter().map(findings).sum::<usize>(), "{csv}");
    let json: Value = serde_json::from_str(&json).unwrap();
    let taken = |job: usize| {
        let rows = json["files"][0]["jobs"][job]["in_report"]["taken"].as_array().unwrap();
        rows.iter().map(|t| (t["kernel"].as_str().unwrap().to_owned(), t["gpu"].as_u64(), t["numbers"].to_string())).collect::<Vec<_>>()
    };
    // The fill; gemm<float> on GPU 0, the only symbol that has a third launch; gemm<int>; and gemm<float> on GPU 1,
    // which is another symbol.
    let named = |k: &str, gpu, n: &str| (k.to_owned(), Some(gpu), n.to_owned());
    assert_eq!(
        taken(0),
        [named("__amd_rocclr_fillBufferAligned", 0, "[1]"), named("gemm", 0, "[1,3]"), named("gemm", 0, "[1]"), named("gemm", 1, "[1]"),]
    );
    assert_eq!(taken(1), [named("void gemm<float>(float const*, float*, int)", 0, "[2]")]);
}

#[test]
fn files_that_rocprofv3_does_not_read_are_refused() {
    for (name, text, want) in [
        ("old.yaml", "metrics:\n  - pmc: [A]\n", "no list `jobs`"),
        ("bad.yaml", "jobs:\n  - [1\n", "not YAML"),
        ("bad.json", "{", "not JSON"),
        ("x.toml", "", "takes files that end in"),
    ] {
        let (code, _, err) = run(&["recipes", "check", written(name, text).to_str().unwrap()]);
        assert!(code == 2 && err.contains(want), "{err}");
    }
    let (code, _, err) = run(&["recipes", "check", "nowhere.yaml"]);
    assert!(code == 2 && err.contains("nowhere.yaml"), "{err}");
}

#[test]
fn our_own_job_files_have_nothing_to_say_against() {
    let wanted = Wanted {
        program: vec!["./app".into()],
        output: "out/r".into(),
        kernel: Some("void k<float>(int)".into()),
        skip: Some(2),
        count: Some(2),
        ..Wanted::default()
    };
    let prepared = built_in_recipe("rocprof-jobs").unwrap().prepare(&wanted).unwrap();
    assert_eq!(prepared.files.len(), 3);
    for (name, text) in &prepared.files {
        let file = check_file(name, text).unwrap();
        assert!(file.max_severity().is_none_or(|w| w == Severity::Info), "{name}: {file:?}");
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 192, failure_persistence: None, ..ProptestConfig::default() })]

    /// The pattern of a re-run selects its kernel but no other kernel whose name contains that name, in both of
    /// rocprofv3's regex engines.
    #[test]
    fn a_name_selects_exactly_itself(name in r"[ -~]{1,60}", more in r"[ -~]{1,3}") {
        let engines = Engines::new(&format!("^{}$", shell::escape_regex(&name)));
        prop_assert_eq!(engines.errors(), [None, None]);
        prop_assert_eq!(engines.find_matches(&name), [Some(true); 2]);
        for other in [format!("{name}{more}"), format!("{more}{name}")] {
            prop_assert_eq!(engines.find_matches(&other), [Some(false); 2]);
        }
    }
}
