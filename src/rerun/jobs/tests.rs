//! Valid and invalid input files.

use super::*;

fn ids(file: &File, job: usize) -> Vec<&'static str> {
    file.jobs[job].findings.iter().map(|f| f.id).collect()
}

fn one(keys: &str) -> File {
    let body = keys.lines().map(|l| format!("    {l}")).collect::<Vec<_>>().join("\n");
    check_file("a.yaml", &format!("jobs:\n  -\n{body}")).unwrap()
}

/// Example from the documentation: tracing and a thread trace in one job, counters in the next.
const DOCUMENTED: &str = r#"jobs:
    -
        kernel_include_regex: (.*name_patten1.*)|(.*name_patten2.*)
        kernel_iteration_range: "[1, [3-4]]"
        output_file: out
        output_directory: ck_test
        output_format: [json, csv, otf2, pftrace]
        truncate_kernels: true
        sys_trace: true # enable for pftrace and otf2
        advanced_thread_trace: true # enable for att and ui folder
        att_target_cu: 1
        att_shader_engine_mask: "0xf" # collect one CU from 4 SEs
        att_simd_select: "0xf" # collect 4 SIMDs on single CU
        att_buffer_size: "0x6000000"
    -
        pmc: [SQ_WAVES, FETCH_SIZE]
"#;

#[test]
fn a_documented_file_loses_its_first_job() {
    let file = check_file("trace.yaml", DOCUMENTED).unwrap();
    assert_eq!(file.max_severity(), Some(Severity::Error));
    assert_eq!(file.findings.iter().map(|f| f.id).collect::<Vec<_>>(), ["jobs-dropped"]);
    assert_eq!(ids(&file, 0), ["job-dropped", "simd-select", "newer-release", "trace-unfiltered", "one-process", "searched", "nested"]);
    assert_eq!(file.jobs[0].collects, ["a trace (sys)", "a thread trace"]);
    let words = file.jobs[0].filter.as_ref().unwrap().describe();
    assert_eq!(
        words,
        "launches 1, 3–4 of each kernel in whose base name (without template arguments and parameters) `(.*name_patten1.*)|(.*name_patten2.*)` is found"
    );
    assert_eq!(file.jobs[1].filter.as_ref().unwrap().describe(), "every launch of each kernel");
}

#[test]
fn what_breaks_is_said() {
    for (keys, id) in [
        ("pmc: SQ_WAVES FETCH_SIZE", "letter-by-letter"),
        ("pmc: [SQ_WAVES]\noutput_format: csv", "letter-by-letter"),
        ("pmc: [SQ_WAVES]\nkernel_iteration_range: 4", "wrong-type"),
        ("pmc: [SQ_WAVES]\nkernel_iteration_range: [4]", "wrong-type"),
        ("pmc: [SQ_WAVES]\nkernel_iteration_range: '[0]'", "nothing-selected"),
        ("pmc: [SQ_WAVES]\nkernel_iteration_range: '[5-3]'", "nothing-selected"),
        ("pmc: [SQ_WAVES]\nkernel_iteration_range: '3-'", "bad-range"),
        ("pmc: [SQ_WAVES]\nkernel_iteration_range: '1-100000000'", "long-range"),
        ("kernel_trace: true\nkernel_iteration_range: '[4]'", "filter-unused"),
        ("kernel_trace: 'false'", "text-means-on"),
        ("kernel_traces: true", "unknown-option"),
        ("kernel-trace: true", "unknown-option"),
        ("pmc: [SQ_WAVES]\nkernel_include_regex: '^(?!nccl)'", "other-engine"),
        ("pmc: [SQ_WAVES]\nkernel_include_regex: '^(foo|foobar)\\('", "no-way-back"),
        ("pmc: [SQ_WAVES]\nkernel_include_regex: '(foo'", "bad-pattern"),
        ("pmc: [SQ_WAVES]\nkernel_include_regex: [foo]", "wrong-type"),
        ("pmc: [SQ_WAVES]\nkernel_include_regex: 'k<float>'\ntruncate_kernels: true", "spelling"),
        ("pmc: [SQ_WAVES]\nkernel_include_regex: 'gemm'", "searched"),
        ("pmc: [SQ_WAVES]\nkernel_trace: true", "serialized"),
        ("pmc: [SQ_WAVES]\nadvanced_thread_trace: true\nkernel_include_regex: '^k$'", "first-only"),
        ("advanced_thread_trace: true", "all-kernels"),
        ("advanced_thread_trace: true\natt_simd_select: 0", "zero-is-default"),
        ("advanced_thread_trace: true\natt_simd_select: 'F'", "not-a-number"),
        ("advanced_thread_trace: true\natt_buffer_size: 96", "out-of-range"),
        ("pmc: [SQ_WAVES]\natt_target_cu: 1", "att-unused"),
        ("pmc: [A]\npmc_groups: [[A], [B]]", "two-ways"),
        ("pc_sampling_unit: cycles", "pc-sampling"),
        ("pmc: [SQ_WAVES]\nreplay_mode: kernel", "replay"),
        ("replay_mode: kernel\nkernel_replay_beta_enabled: true", "replay"),
        ("pmc: [SQ_WAVES]\nreplay_mode: kernel\nkernel_replay_beta_enabled: true\nspm: [SQ_WAVES]", "two-ways"),
        ("kernel_trace: true\ncollection_period: [5:1:0]", "wrong-type"),
        ("output_file: out", "collects-nothing"),
        ("pmc: [MemUnitBusy]", "counter-gone"),
        ("pmc: [SQ_WAVES]\noutput_format: [html]", "unknown-format"),
    ] {
        let file = one(keys);
        assert!(ids(&file, 0).contains(&id), "{keys}: {:?}", file.jobs[0].findings);
        for finding in &file.jobs[0].findings {
            assert!(!finding.text.ends_with('.') && finding.line.is_some_and(|l| l > 1), "{finding:?}");
        }
    }
}

#[test]
fn what_is_right_is_left_alone() {
    for keys in [
        "kernel_trace: true\nhip_trace: true\noutput_format: [json]",
        "pmc: [SQ_WAVES, FETCH_SIZE]\nkernel_include_regex: '^void k<float>\\(int\\)$'\nkernel_iteration_range: '[3]'\noutput_file: 'a-%pid%'",
        "advanced_thread_trace: true\nkernel_include_regex: '^k$|^l$'\nkernel_iteration_range: ['[1]', '[3-4]']\natt_shader_engine_mask: '0x1'",
        "pmc: [SQ_WAVES]\nkernel_include_regex: '^.*(gemm|conv).*$'",
    ] {
        let file = one(keys);
        assert!(file.max_severity().is_none_or(|w| w == Severity::Info), "{keys}: {:?}", file.jobs[0].findings);
    }
}

#[test]
fn keys_beside_the_jobs_are_ignored_and_said() {
    for (name, text) in [
        ("a.yaml", "Other: {a: 1}\njobs:\n  - pmc: [SQ_WAVES]\npmc: [SQ_WAVES]\nkernel_trace: true\n"),
        ("a.json", r#"{"Other": {"a": 1}, "jobs": [{"pmc": ["SQ_WAVES"]}], "pmc": ["SQ_WAVES"], "kernel_trace": true}"#),
    ] {
        let file = check_file(name, text).unwrap();
        let mut said: Vec<_> = file.findings.iter().map(|f| (f.id, f.severity, f.text.split('`').nth(1).unwrap())).collect();
        said.sort_unstable_by_key(|f| f.2);
        let wanted = [("Other", Severity::Info), ("kernel_trace", Severity::Error), ("pmc", Severity::Error)];
        assert_eq!(said, wanted.map(|(name, severity)| ("beside-jobs", severity, name)), "{name}");
    }
    assert!(check_file("a.yaml", "jobs:\n  - pmc: [SQ_WAVES]\n").unwrap().findings.is_empty());
}

#[test]
fn launches_in_regions_cannot_be_told_from_a_report() {
    let file = one("pmc: [SQ_WAVES]\nkernel_iteration_range: '[2-3]'\nselected_regions: true");
    let found = file.jobs[0].findings.iter().find(|f| f.id == "regions").unwrap();
    assert_eq!((found.severity, found.text.contains("counted from the program's start")), (Severity::Warning, true));
    assert!(
        select::select_launches(&crate::model::Profile::new(crate::model::Source::default()), file.jobs[0].filter.as_ref().unwrap())
            .unwrap_err()
            .contains("roctxProfilerResume")
    );
    assert!(!ids(&one("pmc: [SQ_WAVES]\nselected_regions: false"), 0).contains(&"regions"));
    assert_eq!(one("pmc: [SQ_WAVES]\nselected_regions: true").max_severity(), Some(Severity::Info));
}
