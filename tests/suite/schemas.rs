//! JSON output conforms to `warpscope schema`: every document of every command on every fixture.

use super::support::{root, run};
use jsonschema::Validator;
use serde_json::Value;
use std::collections::{BTreeMap, BTreeSet};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

/// Forbids fields that the schema does not name: a later minor version may add fields, but this version has none.
fn close(schema: &mut Value) {
    match schema {
        Value::Object(map) => {
            if map.contains_key("properties") && !map.contains_key("additionalProperties") {
                map.insert("additionalProperties".to_owned(), false.into());
            }
            map.values_mut().for_each(close);
        }
        Value::Array(list) => list.iter_mut().for_each(close),
        _ => {}
    }
}

/// Schemas by name, as the program prints them.
pub fn validators() -> BTreeMap<String, Validator> {
    let (code, out, err) = run(&["schema", "--format", "json"]);
    assert_eq!((code, err.as_str()), (0, ""));
    let all: Vec<Value> = serde_json::from_str(&out).unwrap();
    let named = |mut schema: Value| {
        jsonschema::meta::validate(&schema).unwrap_or_else(|e| panic!("{e}"));
        close(&mut schema);
        let name = schema["$defs"]["SchemaJson"]["properties"]["name"]["const"].as_str().unwrap().to_owned();
        (name, jsonschema::validator_for(&schema).unwrap())
    };
    all.into_iter().map(named).collect()
}

/// Checks a document against the schema that it names, and returns that name.
pub fn check(validators: &BTreeMap<String, Validator>, args: &[&str], line: &str) -> String {
    let document: Value = serde_json::from_str(line).unwrap_or_else(|e| panic!("{args:?}: {e}: {line}"));
    let name = document["schema"]["name"].as_str().unwrap_or_else(|| panic!("{args:?}: {line}")).to_owned();
    let validator = validators.get(&name).unwrap_or_else(|| panic!("{args:?}: no schema {name}"));
    let wrong: Vec<String> = validator.iter_errors(&document).map(|e| format!("{}: {e}", e.instance_path())).take(5).collect();
    assert!(wrong.is_empty(), "{args:?}: {wrong:#?}");
    for next in document["next"].as_array().unwrap() {
        assert!(!next["argv"].as_array().unwrap().is_empty(), "{args:?}: {next}");
    }
    name
}

fn fixtures() -> Vec<PathBuf> {
    let mut out = Vec::new();
    let mut folders = vec![root().join("fixtures")];
    while let Some(folder) = folders.pop() {
        for entry in std::fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                folders.push(path);
            } else {
                out.push(path);
            }
        }
    }
    out.sort();
    out
}

/// Commands that print JSON on one report; `FILE` is the report.
const COMMANDS: &[&str] = &[
    "top FILE",
    "launches FILE --limit 20",
    "triage FILE",
    "hints FILE",
    "ranges FILE",
    "events FILE --limit 20",
    "lines FILE",
    "lines FILE --before FILE",
    "memory FILE",
    "ranks FILE FILE",
    "diff FILE FILE",
    "rerun FILE --top 1",
];

/// Commands on ncu results.
const RESULTS: &[&str] = &[
    "hints FILE",
    "top FILE",
    "rerun FILE --launch 0",
    "metrics FILE",
    "metrics FILE --sections --launch 0",
    "metrics FILE --rules --launch 0",
    "metrics FILE --source --launch 0",
    "metrics FILE --sass --launch 0",
    "metrics FILE --session",
];

fn commands(path: &Path) -> &'static [&'static str] {
    if path.to_string_lossy().contains(".ncu-rep") || path.starts_with(root().join("fixtures/ncu")) { RESULTS } else { COMMANDS }
}

/// Runs every `nth` command on fixtures and checks the output; returns the schemas of the documents.
fn check_fixtures(nth: usize) -> BTreeSet<String> {
    let validators = validators();
    let files = fixtures();
    let (at, seen) = (AtomicUsize::new(0), Mutex::new(BTreeSet::new()));
    let work = || {
        loop {
            let number = at.fetch_add(1, Ordering::Relaxed);
            let Some(path) = files.get(number) else { return };
            let file = path.strip_prefix(root()).unwrap().to_str().unwrap();
            for (_, command) in (number..).zip(commands(path)).filter(|(turn, _)| turn % nth == 0) {
                let args: Vec<&str> = command.split(' ').map(|w| if w == "FILE" { file } else { w }).chain(["--format", "json"]).collect();
                let (code, out, err) = run(&args);
                assert!((0..=4).contains(&code) && !out.is_empty(), "{args:?}: {code}: {err}");
                let name = check(&validators, &args, &out);
                assert_eq!(code >= 2, name == "error", "{args:?}: {code}: {err}");
                // The report does not open (exit code 3), so its other commands would fail in the same way.
                if code == 3 {
                    break;
                }
                seen.lock().unwrap().insert(name);
            }
        }
    };
    std::thread::scope(|scope| {
        let all: Vec<_> = (0..std::thread::available_parallelism().map_or(1, Into::into)).map(|_| scope.spawn(work)).collect();
        all.into_iter().for_each(|t| t.join().unwrap());
    });
    seen.into_inner().unwrap()
}

/// A quarter of the commands on each fixture, in turn; the corpus test runs them all.
#[test]
fn documents_of_all_commands_are_as_their_schemas_say() {
    let seen = check_fixtures(4);
    let others = ["runs-list", "runs-show", "watch", "recipes", "recipes-list", "recipes-check", "doctor", "error"];
    let missing: Vec<String> = validators().into_keys().filter(|n| !seen.contains(n) && !others.contains(&n.as_str())).collect();
    assert!(missing.is_empty(), "never printed: {missing:?}");
}

/// All commands on all fixtures, only where the corpus is tested, because it takes a minute.
#[test]
fn corpus_of_fixtures_is_as_the_schemas_say() {
    if std::env::var_os("WARPSCOPE_CORPUS").is_some() {
        check_fixtures(1);
    }
}

/// Commands that a document suggests.
fn proposed(out: &str) -> Vec<Vec<String>> {
    let document: Value = serde_json::from_str(out).unwrap();
    let words = |next: &Value| next["argv"].as_array().unwrap().iter().map(|w| w.as_str().unwrap().to_owned()).collect();
    document["next"].as_array().unwrap().iter().map(words).collect()
}

/// The suggested commands succeed, too.
#[test]
fn proposed_commands_work() {
    let mut tried = BTreeSet::new();
    for file in [
        "demo/llm.sqlite.zst",
        "demo/zoo.ncu-rep.zst",
        "nsys/procs.sqlite.zst",
        "trace/torch_eager.wstrace.zst",
        "trace/torch_cuda_graph.wstrace.zst",
        "trace/zoo_survey.wstrace.zst",
        "triage/few_blocks.wstrace.zst",
        "trace/lines_collate.wstrace.zst",
        "triage/item_loop.sqlite.zst",
        "whatif/decode-graph.wstrace.zst",
    ] {
        let file = format!("fixtures/{file}");
        for command in commands(&root().join(&file)) {
            let args: Vec<&str> = command.split(' ').map(|w| if w == "FILE" { &file } else { w }).chain(["--format", "json"]).collect();
            let (code, out, _) = run(&args);
            if code != 0 {
                continue;
            }
            for argv in proposed(&out).into_iter().filter(|a| a[0] == "warpscope" && a[1] != "run") {
                let words: Vec<&str> = argv[1..].iter().map(String::as_str).collect();
                let (code, _, err) = run(&words);
                assert_eq!(code, 0, "{args:?} proposes {argv:?}: {err}");
                tried.insert(argv[1].clone());
            }
        }
    }
    assert_eq!(tried.iter().map(String::as_str).collect::<Vec<_>>(), ["hints", "lines", "rerun", "top", "triage"]);
}

#[test]
fn what_is_not_read_from_a_report_has_a_schema_too() {
    let validators = validators();
    for args in [
        ["doctor", "--format", "json"].as_slice(),
        &["recipes", "nsys-timeline", "--format", "json", "--", "./app"],
        &["recipes", "check", "fixtures/rocm/jobs.yaml", "--format", "json"],
        &["recipes", "--format", "json"],
        &["runs", "list", "--format", "json"],
        &["runs", "show", "--format", "json"],
        &["top", "no/such/file", "--format", "json"],
        &["top", "--nothing", "--format=json"],
    ] {
        let (_, out, err) = run(args);
        assert!(!out.is_empty(), "{args:?}: {err}");
        check(&validators, args, &out);
    }
}

#[test]
fn a_schema_is_found_by_the_words_of_its_command() {
    let (code, out, _) = run(&["schema", "metrics", "rules", "--format", "table"]);
    assert!(code == 0 && out.starts_with("metrics-rules 1.0") && out.contains("rows[].speedup_percent"), "{out}");
    let (code, _, err) = run(&["schema", "tirage"]);
    assert!(code == 2 && err.contains("did you mean `triage`?"), "{err}");
}
