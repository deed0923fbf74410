//! An LLM inference server: vLLM 0.26 on an H100, recorded by the tracer (see `fixtures/README.md`).

use super::support::{read, root, run};
use serde_json::Value;
use warpscope::analysis::readable::readable_name;
use warpscope::analysis::triage::{self, Phase, Scope, StepSource, Triage};
use warpscope::model::{Cancel, Profile};

fn open(name: &str) -> Profile {
    read(&root().join(format!("fixtures/trace/{name}.wstrace.zst"))).unwrap()
}

fn judge(profile: &Profile) -> Triage {
    triage::triage_profile(profile, &Scope::default(), &Cancel::default()).unwrap()
}

/// With 64 concurrent requests some steps decode from a graph and some contain prefill: only the
/// wait for the token occurs in every step.
#[test]
fn steps_are_told_apart_by_the_wait_for_a_token() {
    let profile = open("server_steady");
    let found = judge(&profile);
    assert_eq!(found.found, Some(StepSource::Waits("cuEventSynchronize".to_owned())));
    // One step per host wait, except waits before the first recorded kernels.
    let waits = profile.calls.names.iter().find(|n| &*n.name == "cuEventSynchronize").unwrap().count;
    assert!(found.steps.len() > 100 && found.steps.len() as u64 <= waits, "{} of {waits}", found.steps.len());
    let kinds: Vec<_> = found.kinds.iter().map(|k| (k.launched.graphs, k.launched.graph_kernels, k.launched.single_kernels)).collect();
    assert_eq!(kinds, [(1, 193, 19), (1, 193, 18)], "{:?}", found.kinds);
    for kind in &found.kinds {
        let (part, share) = kind.idle.unwrap();
        assert!(part.id() == "idle: launching" && kind.busy + share < 1.0 && kind.busy > 0.4, "{kind:?}");
    }
}

#[test]
fn start_up_ends_with_the_last_graph_that_is_captured() {
    let profile = open("server_start");
    let found = judge(&profile);
    let phases: Vec<(Phase, f64)> = found.left_out.iter().map(|l| (l.phase, (l.end - l.start) as f64 / 1e9)).collect();
    let [(Phase::StartUp, start), (Phase::WarmUp, warm_up), ..] = phases[..] else { panic!("{phases:?}") };
    assert!((start - 8.0).abs() < 0.1 && (warm_up - 3.0).abs() < 0.1, "{phases:?}");
    assert_eq!(found.left_out[0].what, "start-up: until 918 graphs are captured");
    let file = root().join("fixtures/trace/server_start.wstrace.zst").display().to_string();
    let phase = |word: &str| -> (i32, Value) {
        let (code, out, _) = run(&["triage", &file, "--phase", word, "--format", "json"]);
        (code, serde_json::from_str(&out).unwrap_or_default())
    };
    let (code, start_up) = phase("start-up");
    assert_eq!((code, &start_up["findings"][0]["id"]), (0, &Value::from("compilation")), "{start_up}");
    assert_eq!(start_up["window"]["end_ns"].as_i64(), Some(found.left_out[0].end));
    let (_, steady) = phase("steady");
    assert_eq!(steady["window"]["start_ns"].as_i64(), Some(found.window.0));
    assert_eq!(steady["window"]["left_out"][0]["phase"], "start-up");
    let (code, _, err) = run(&["triage", &root().join("fixtures/trace/llm.wstrace.zst").display().to_string(), "--phase", "ending"]);
    assert!(code == 2 && err.contains("no ending was found"), "{code} {err}");
}

/// The engine renames its process (`VLLM::EngineCore ''`), and its kernels have generic names such as `device_kernel`.
#[test]
fn programs_and_kernels_have_names_that_say_something() {
    let profile = open("server_steady");
    let names: Vec<String> = profile.kernels.iter().map(|k| readable_name(k).into_owned()).collect();
    assert!(names.iter().any(|n| n.starts_with("FlashAttnFwdSm90")), "{names:?}");
    assert!(!names.iter().any(|n| n == "device_kernel"), "{names:?}");
    let file = root().join("fixtures/trace/server_steady.wstrace.zst").display().to_string();
    for args in [&["rerun", &file, "--kernel", "FlashAttn", "--launch", "3"][..], &["triage", &file, "--format", "md"], &["top", &file]] {
        let (_, out, _) = run(args);
        assert!(!out.contains("''"), "{args:?}: {out}");
    }
}

#[test]
fn a_part_of_a_rotating_trace_says_what_is_missing_beside_it() {
    let file = root().join("fixtures/trace/server_last.3523.2.wstrace.zst").display().to_string();
    let (code, _, err) = run(&["top", &file]);
    assert!(code == 0 && err.contains("which is not beside it") && !err.contains("damaged"), "{code} {err}");
}
