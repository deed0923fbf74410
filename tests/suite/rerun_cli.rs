//! `warpscope rerun` and `warpscope recipes`: the contract that scripts rely on.

use super::support::{packed, root, run};
use serde_json::Value;

fn ok(args: &[&str]) -> String {
    let (code, out, err) = run(args);
    assert_eq!(code, 0, "{args:?}: {err}");
    out
}

fn json(args: &[&str]) -> Value {
    serde_json::from_str(&ok(&[args, &["--format", "json"]].concat())).unwrap()
}

fn path(name: &str) -> String {
    packed(name).to_string_lossy().into_owned()
}

/// In a capture that the program opened itself, the tracer cannot count from the start, but inside a range.
#[test]
fn the_tracer_counts_inside_a_range_of_an_opened_capture() {
    let file = root().join("fixtures/triage/tiny_ops.sqlite.zst").display().to_string();
    let args = ["rerun", &file, "--launch", "371", "--in-place"];
    let (code, _, err) = run(&args);
    assert!(code == 2 && err.contains("count inside an NVTX range"), "{code} {err}");
    let within = |more: &[&str]| ok(&[&args[..4], more, &["--within", "step 4"]].concat());
    // By ncu's command for the same launch, eleven of its name come before it in the range.
    let ncu = within(&[]);
    assert!(ncu.contains("--nvtx-include 'step 4/'") && ncu.contains("--launch-skip 11"), "{ncu}");
    let command = within(&["--in-place"]);
    assert!(command.contains("--only-range 'step 4' --measure 'vectorized_elementwise_kernel#12'"), "{command}");
}

#[test]
fn json_has_the_fields_of_the_contract() {
    let json = json(&["rerun", &path("single"), "--launch", "22"]);
    assert_eq!(json["tool"], "ncu");
    let argv: Vec<&str> = json["argv"].as_array().unwrap().iter().map(|w| w.as_str().unwrap()).collect();
    let want =
        "ncu --config-file off --kernel-name saxpy --launch-skip 5 --launch-count 1 --set detailed --export saxpy-22 ./launches single";
    assert_eq!((argv.join(" "), json["shell"].as_str().unwrap()), (want.to_owned(), want));
    let s = &json["selects"];
    assert_eq!((s["kernel"].as_str(), s["launch"].as_u64(), s["nth"].as_u64()), (Some("saxpy"), Some(22), Some(5)));
    assert_eq!((s["grid"].to_string(), s["block"].to_string()), ("[23,1,1]".to_owned(), "[64,1,1]".to_owned()));
    assert!(json["warnings"].as_array().unwrap().is_empty());
    let other = &json["alternatives"][0];
    assert!(other["why"].as_str().unwrap().contains("mangled name") && other["argv"].as_array().unwrap().contains(&"_Z5saxpyPd".into()));
    assert_eq!((json["exact"].as_bool(), json["runnable"].as_bool(), json["directory"].as_str()), (Some(true), Some(true), Some("/tmp/w")));
    assert_eq!((json["cost"]["passes"].as_u64(), json["output"].as_str()), (Some(20), Some("saxpy-22.ncu-rep")));
    let parts: Vec<&str> =
        json["parts"].as_array().unwrap().iter().flat_map(|p| p["words"].as_array().unwrap()).map(|w| w.as_str().unwrap()).collect();
    assert_eq!(parts, argv, "the pieces are the command");
}

#[test]
fn options_become_long_options_and_the_program_stands_bare() {
    let out = ok(&[
        "rerun",
        &path("single"),
        "--kernel",
        "saxpy",
        "--nth",
        "5",
        "--base",
        "mangled",
        "--section",
        "SpeedOfLight",
        "--section",
        "Occupancy",
        "--clock-control",
        "none",
        "--cache-control",
        "none",
        "--replay-mode",
        "application",
        "--import-source",
        "--kill",
        "-f",
        "-o",
        "out 100%.ncu-rep",
        "--",
        "python3",
        "-c",
        "print('it')",
        "--set",
    ]);
    let want = "ncu --config-file off --kernel-name-base mangled --kernel-name _Z5saxpyPd --launch-skip 1 --launch-count 1 --section SpeedOfLight --section Occupancy \
                --clock-control none --cache-control none --replay-mode application --import-source yes --kill yes --export 'out 100%%' --force-overwrite \
                python3 -c 'print('\\''it'\\'')' --set\n";
    assert_eq!(out, want);
    let source = ok(&["rerun", &path("single"), "--launch", "3", "--question", "source"]);
    assert!(source.contains("--section SourceCounters") && source.contains("--import-source yes"), "{source}");
}

#[test]
fn launches_are_picked_as_asked() {
    let of = |args: &[&str]| -> Vec<u64> {
        let json = json(&[&["rerun", &path("single")], args].concat());
        let more = json["more"].as_array().unwrap().iter().flat_map(|c| c["all"].as_array().unwrap());
        json["all"].as_array().unwrap().iter().chain(more).map(|s| s["launch"].as_u64().unwrap()).collect()
    };
    // Ground truth by SQL over the report: saxpy launches by duration.
    let db = super::support::unpacked("single");
    let db = rusqlite::Connection::open(db).unwrap();
    let sql = "SELECT k.gridX - 1 FROM CUPTI_ACTIVITY_KIND_KERNEL k JOIN StringIds s ON s.id = k.shortName WHERE s.value = 'saxpy' ORDER BY k.end - k.start DESC, k.start";
    let slow: Vec<u64> =
        db.prepare(sql).unwrap().query_map([], |r| r.get::<_, i64>(0)).unwrap().map(|r| r.unwrap().cast_unsigned()).collect();
    let sorted = |mut v: Vec<u64>| {
        v.sort_unstable();
        v
    };
    assert_eq!(of(&["--kernel", "saxpy", "--slowest"]), slow[..1]);
    assert_eq!(of(&["--kernel", "saxpy", "--slowest=4"]), sorted(slow[..4].to_vec()));
    let median = of(&["--kernel", "saxpy"]);
    assert_eq!(median, of(&["--kernel", "saxpy", "--median"]), "the median unless said");
    assert_eq!(of(&["--kernel", "saxpy", "--slowest", "--median"]), sorted([slow[..1].to_vec(), median].concat()));
    assert_eq!(of(&["--launch", "9,3"]).len(), 2);
    assert_eq!(of(&["--top", "3"]).len(), 3);
    assert_eq!(of(&["--kernel", "saxpy", "--every"]), sorted(slow));
    assert!(of(&["--kernel", "saxpy", "--within", "inner", "--instance", "2", "--every"]).iter().all(|l| (60..71).contains(l)));
}

#[test]
fn scripts_say_what_they_select_and_stop_at_the_first_failure() {
    let out = ok(&["rerun", &path("single"), "--top", "3", "--format", "script", "-o", "reports"]);
    assert!(out.starts_with("#!/bin/sh\n# Made by warpscope from "), "{out}");
    assert!(out.contains("\nset -eu\ncd -- /tmp/w\nmkdir -p -- reports\n"), "{out}");
    assert_eq!(out.matches("\n# selects launch ").count(), 3);
    assert_eq!(out.matches("\nncu --config-file off \\\n").count(), 3);
    assert!(out.contains("--export reports/scale-"), "{out}");
    // In shell format: the directory, then one command per line.
    let lines = ok(&["rerun", &path("single"), "--top", "3", "-o", "reports"]);
    assert_eq!(lines.lines().count(), 4);
    assert!(lines.starts_with("mkdir -p -- reports\nncu "));
}

#[test]
fn doubts_are_on_stderr_and_mistakes_are_sentences() {
    let (code, out, err) = run(&["rerun", &path("procs"), "--launch", "70"]);
    assert!(code == 0 && out.starts_with("ncu ") && err.contains("one global counter"), "{err}");
    let wrong = |args: &[&str], says: &str| {
        let (code, out, err) = run(&[&["rerun"], args].concat());
        assert!(code == 2 && out.is_empty() && err.contains(says) && err.lines().count() <= 12, "{args:?}: {code} {err}");
    };
    wrong(&[&path("single")], "say which launch");
    wrong(&[&path("single"), "--launch", "200"], "launches are numbered 0 to 199");
    wrong(&[&path("single"), "--kernel", "nope"], "no kernel matches \"nope\"");
    wrong(&[&path("single"), "--kernel", "saxpy", "--nth", "999"], "counted from 0");
    wrong(&[&path("procs"), "--kernel", "saxpy", "--nth", "1"], "2 processes have such a launch");
    wrong(&[&path("single"), "--launch", "1", "--set", "ful"], "did you mean `full`?");
    wrong(&[&path("single"), "--launch", "1", "--question", "memroy"], "did you mean `memory`?");
    wrong(&[&path("single"), "--launch", "1", "--within", "step0x"], "did you mean \"step0\"?");
    wrong(&[&path("single"), "--launch", "1", "--within", "step2"], "is not in the NVTX range \"step2\"");
    wrong(&[&path("single"), "--launch", "1", "--opened-by", "magic"], "write start, profiler");
    wrong(&[&path("single"), "--graph", "0"], "no CUDA graphs");
    wrong(&[&path("single"), "--launch", "61", "--within", "inner", "--instance", "9"], "number 2, counted from 1, not in number 9");
    wrong(&[&path("threads"), "--launch", "80", "--within", "inner", "--instance", "2"], "2 threads enter the NVTX range");
    wrong(&["fixtures/probe/step.sqlite.zst", "--launch", "10", "--within", "inner"], "opened by the NVTX range \"step1\"");
    for args in [
        ["--launch", "1", "--nth", "3"],
        ["--kernel", "saxpy", "--slowest=0", "--median"],
        ["--launch", "1", "-o", ""],
        ["--launch", "61", "--instance", "0"],
    ] {
        let (code, out, err) = run(&[&["rerun", &path("single")], &args[..]].concat());
        assert!(code == 2 && out.is_empty() && err.starts_with("error: "), "{args:?}: {err}");
    }
    wrong(&["fixtures/stats/single_cuda_gpu_kern_sum.csv", "--launch", "0"], "per-kernel totals only");
    wrong(&[&path("nogpu"), "--launch", "0"], "no launches");
    // An unknown section may be the user's own.
    let (code, _, err) = run(&["rerun", &path("single"), "--launch", "1", "--section", "SpeedOfLigth"]);
    assert!(code == 0 && err.contains("did you mean `SpeedOfLight`?"), "{err}");
}

#[test]
fn a_result_is_verified_with_an_exit_code() {
    let result = |name: &str| root().join("fixtures/ncu").join(name).to_string_lossy().into_owned();
    let (code, out, _) = run(&["rerun", &path("single"), "--launch", "34", "--verify", &result("one.ncu-rep.zst")]);
    assert_eq!((code, out.as_str()), (0, "verified: saxpy_v2 with grid 35 and block 64, as selected\n"));
    let (code, out, err) = run(&["rerun", &path("single"), "--launch", "33", "--verify", &result("one.ncu-rep.zst")]);
    assert!(code == 1 && out.starts_with("differs: kernel saxpy_v2(float *) instead of ") && err.is_empty(), "{out}{err}");
    let (code, _, err) = run(&["rerun", &path("single"), "--launch", "34", "--verify", "/nonexistent.ncu-rep"]);
    assert!(code == 3 && err.contains("/nonexistent.ncu-rep"), "{err}");
}

#[test]
fn recipes_are_listed_and_printed() {
    let list = ok(&["recipes"]);
    for recipe in warpscope::rerun::recipes::built_in_recipes() {
        assert!(list.contains(recipe.id) && list.contains(recipe.when), "{}", recipe.id);
    }
    assert_eq!(
        ok(&["recipes", "exact", "-o", "run", "--", "python3", "a b.py"]),
        "nsys profile --trace=cuda,nvtx --sample=none --cpuctxsw=none --cuda-graph-trace=node --output run python3 'a b.py'\n"
    );
    let (code, _, err) = run(&["recipes", "nvtx", "--", "x"]);
    assert!(code == 2 && err.contains("--range NAME"), "{err}");
    assert!(ok(&["recipes", "nvtx", "--range", "step1", "--", "x"]).contains("--nvtx-capture=step1"));
    let (code, _, err) = run(&["recipes", "exatc"]);
    assert!(code == 2 && err.contains("did you mean `exact`?"), "{err}");
    let json: Value = serde_json::from_str(&ok(&["recipes", "scan", "--format", "json", "--", "x"])).unwrap();
    assert_eq!((json["tool"].as_str(), json["argv"][0].as_str()), (Some("ncu"), Some("ncu")));
}

/// The installed ncu, if any, accepts every option that is ever written: it checks options before it looks for a GPU.
#[test]
fn the_real_ncu_knows_the_options_when_it_is_there() {
    let Some(ncu) = std::env::var_os("PATH").and_then(|p| std::env::split_paths(&p).map(|d| d.join("ncu")).find(|f| f.exists())) else {
        println!("no ncu on PATH: not checked");
        return;
    };
    let help = std::process::Command::new(&ncu).arg("--help").output().unwrap();
    let help = String::from_utf8_lossy(&help.stdout).into_owned();
    let mut seen = std::collections::BTreeSet::new();
    let one = "--kill --force-overwrite --import-source --clock-control none --cache-control none --replay-mode application --base mangled";
    let one: Vec<&str> = one.split(' ').collect();
    for (file, args) in [
        ("single", [&["--launch", "61", "--within", "inner", "--instance", "2"], &one[..]].concat()),
        ("graph_whole", vec!["--graph", "1"]),
        ("papi", vec!["--launch", "5"]),
        ("procs", vec!["--launch", "70"]),
        ("single", vec!["--kernel", "saxpy", "--slowest=3"]),
        ("ddp_rank0", vec!["--kernel", "ncclDev"]),
    ] {
        let json = json(&[&["rerun", &path(file)], &args[..]].concat());
        let words = json["argv"].as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_owned());
        seen.extend(words.take_while(|w| w != "./launches").filter(|w| w.starts_with("--")));
    }
    assert!(seen.len() >= 15, "{seen:?}");
    for option in seen {
        assert!(help.contains(&option), "{option} is not an option of {}", ncu.display());
    }
}

/// A script that asks for an exact command gets none that may select another launch.
#[test]
fn exact_prints_a_command_or_fails() {
    let exact = ok(&["rerun", &path("single"), "--launch", "22", "--exact"]);
    assert!(exact.starts_with("ncu ") && exact.contains("--launch-skip 5"), "{exact}");
    // This recording was opened while the program ran.
    let late = root().join("fixtures/trace/server_moments.wstrace.zst").to_string_lossy().into_owned();
    let (code, out, err) = run(&["rerun", &late, "--launch", "5", "--exact"]);
    assert_eq!((code, out.as_str()), (1, ""), "{err}");
    assert!(err.contains("not exact: ") && !err.contains("--launch-skip"), "{err}");
    let (code, out, _) = run(&["rerun", &late, "--launch", "5"]);
    assert!(code == 0 && out.contains("--launch-skip"), "{out}");
}
