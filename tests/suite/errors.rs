//! Errors for scripts: an error code on stdout if JSON was requested, the sentence on stderr, and the exit code.

use super::support::{packed, root, run, scratch};
use warpscope::cli::reason::REASONS;

/// Arguments, exit code, and the code of the error.
fn cases() -> Vec<(Vec<String>, i32, &'static str)> {
    let file = |name: &str, bytes: &[u8]| {
        let path = scratch().join(name);
        std::fs::write(&path, bytes).unwrap();
        path.display().to_string()
    };
    let llm = packed("llm").display().to_string();
    let packed_bytes = std::fs::read(packed("zoo")).unwrap();
    let plain = zstd::stream::decode_all(&packed_bytes[..]).unwrap();
    let words = |text: &str| text.split(' ').map(str::to_owned).collect::<Vec<_>>();
    let of = |command: &str, file: &str| [words(command), vec![file.to_owned(), "--format".to_owned(), "json".to_owned()]].concat();
    vec![
        (of("top --no-such-option", &llm), 2, "usage"),
        (of("top --by nothing", &llm), 2, "usage"),
        (of("lines", &llm), 2, "request"),
        (of("triage --range nothing", &llm), 2, "request"),
        (of("top", "/nonexistent/x.sqlite"), 3, "no-such-file"),
        (of("top", &file("words.sqlite", b"hello, world")), 3, "unknown-format"),
        (of("top", &file("cut.sqlite", &plain[..plain.len() / 3])), 3, "damaged"),
        (of("top --config /nonexistent/config.toml", &llm), 2, "config"),
        (of("top --from 2s --to 1s", &llm), 2, "usage"),
        (of("top --limit -1", &llm), 2, "usage"),
        (of("top --theme no-theme", &llm), 2, "usage"),
        (of("top", &file("cut.sqlite.zst", &packed_bytes[..packed_bytes.len() / 2])), 3, "damaged"),
        (of("memory", &root().join("fixtures/nsys/single.sqlite.zst").display().to_string()), 2, "request"),
    ]
}

#[test]
fn scripts_get_a_code_and_people_a_sentence() {
    for (args, exit, code) in cases() {
        let words: Vec<&str> = args.iter().map(String::as_str).collect();
        let (got, stdout, stderr) = run(&words);
        assert_eq!(got, exit, "{args:?}: {stderr}");
        let lines: Vec<&str> = stdout.lines().collect();
        assert_eq!(lines.len(), 1, "{args:?}: {stdout}");
        let error: serde_json::Value = serde_json::from_str(lines[0]).unwrap();
        assert_eq!(error["error"]["code"], code, "{args:?}: {stdout}");
        assert_eq!(error["error"]["exit"], exit);
        let fix = error["error"]["fix"].as_str().unwrap();
        assert!(!fix.is_empty() && !fix.starts_with("it starts with"), "{args:?}: {fix}");
        // The message contains words that help the user.
        let verbs = [
            "copy",
            "list",
            "check",
            "name",
            "record",
            "judge",
            "is ",
            "did you mean",
            "fetch",
            "write",
            "there are",
            "install",
            "samples",
        ];
        assert!(verbs.iter().any(|v| fix.contains(v)), "{args:?}: {fix}");
        let message = error["error"]["message"].as_str().unwrap();
        // Lines wrapped by clap are joined.
        let said = stderr.split_whitespace().collect::<Vec<_>>().join(" ");
        assert!(!message.is_empty() && said.contains(message), "{args:?}: {message:?} in {stderr:?}");
        // Without JSON, stdout stays empty.
        let plain: Vec<&str> = words.iter().copied().filter(|w| !["--format", "json"].contains(w)).collect();
        assert_eq!(run(&plain).1, "", "{plain:?}");
    }
}

/// If a recording will be empty, a message before the start of the program says so and suggests a remedy.
#[test]
fn what_keeps_the_tracer_out_is_said_before() {
    let folder = tempfile::tempdir().unwrap();
    let output = folder.path().join("run").display().to_string();
    let (code, _, err) = run(&["trace", "-o", &output, "env", "-i", "true"]);
    assert!(code == 0 && err.contains("put warpscope behind it: `env -i warpscope trace"), "{err}");
    let (code, _, err) = run(&["trace", "-o", &output, "--", "env", "A=1", "true"]);
    // Nothing is printed at the start; at the end, a message says that the program did not use CUDA.
    assert!(code == 0 && err.starts_with("warpscope: nothing was recorded") && err.lines().count() == 1, "{err}");
    let (code, out, err) = run(&["trace", "-o", "/proc/run", "echo", "started"]);
    assert!(
        code == 4 && out.is_empty() && err.contains("nothing can be written there") && err.contains("name another place with -o"),
        "{err}"
    );
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 0);
}

#[test]
fn an_answer_stays_one_document() {
    let args = [
        "triage",
        &root().join("fixtures/triage/host_compute.sqlite.zst").display().to_string(),
        "--format",
        "json",
        "--fail-on",
        "host-compute",
    ];
    let (code, stdout, stderr) = run(&args);
    assert_eq!(code, 1, "{stderr}");
    let _: serde_json::Value = serde_json::from_str(&stdout).unwrap();
}

/// A file name need not be valid UTF-8.
#[test]
fn a_name_of_other_bytes_is_an_error_like_others() {
    use std::os::unix::ffi::OsStrExt;
    let name = std::ffi::OsStr::from_bytes(b"no\xff.sqlite");
    let out = std::process::Command::new(assert_cmd::cargo::cargo_bin!("warpscope"))
        .arg("top")
        .arg(name)
        .args(["--format", "json"])
        .output()
        .unwrap();
    let error: serde_json::Value = serde_json::from_slice(&out.stdout).unwrap();
    assert_eq!((out.status.code(), error["error"]["code"].as_str()), (Some(3), Some("no-such-file")));
}

#[test]
fn codes_are_documented_and_told_apart() {
    let (_, help, _) = run(&["help", "errors"]);
    for (_, id, meaning, fix) in REASONS {
        assert!(help.contains(id) && !meaning.is_empty() && !fix.is_empty(), "{id}");
    }
    let mut ids: Vec<&str> = REASONS.iter().map(|r| r.1).collect();
    ids.sort_unstable();
    ids.dedup();
    assert_eq!(ids.len(), REASONS.len());
}

/// The commands on the page of `warpscope agent` work on real reports, and print JSON if they ask for it.
#[test]
fn commands_of_the_page_for_agents_work() {
    let (code, page, _) = run(&["agent"]);
    assert_eq!(code, 0);
    let fixture = |name: &str| root().join("fixtures").join(name).display().to_string();
    let (lines, other) = (fixture("trace/lines_collate.wstrace.zst"), fixture("trace/lines_socket.wstrace.zst"));
    let with = |word: &str, command: &str| match word {
        "RUN" if command.contains("--by line") => fixture("trace/torch_cuda_graph.wstrace.zst"),
        "RUN" if command.contains("ranges") => packed("llm").display().to_string(),
        "RUN" if command.contains("rerun") => packed("llm").display().to_string(),
        "RUN" | "AFTER" => lines.clone(),
        "BEFORE" => other.clone(),
        "RESULT" => fixture("demo/llm_gemm.ncu-rep.zst"),
        "SNAPSHOT" => fixture("torch/memory/leak.pickle.gz"),
        "RANK0" => fixture("triage/slow_rank_rank0.sqlite.zst"),
        "RANK1" => fixture("triage/slow_rank_rank1.sqlite.zst"),
        "NAME" if command.contains("hints") => "192x128".to_owned(),
        "NAME" => "CatArrayBatchedCopy".to_owned(),
        word => word.to_owned(),
    };
    let block = page.split("```").nth(1).unwrap();
    let mut tried = 0;
    for line in block.lines().filter(|l| l.starts_with("warpscope ")) {
        let command = line.split(" #").next().unwrap().split("  #").next().unwrap().trim();
        // Recording needs a GPU, and the result of `doctor` depends on the machine.
        if command.starts_with("warpscope run") || command.starts_with("warpscope attach") || command.starts_with("warpscope doctor") {
            continue;
        }
        let words: Vec<String> = command.split_whitespace().skip(1).map(|w| with(w, command)).collect();
        let words: Vec<&str> = words.iter().map(String::as_str).collect();
        let (code, stdout, stderr) = run(&words);
        if command.contains("--by line") {
            // This trace is from a tracer that did not yet record where graph nodes were captured.
            assert!(stdout.contains("\"error\":{\"code\":\"request\""), "{stdout}");
        } else {
            assert_eq!(code, 0, "{command}: {stderr}");
            if command.contains("--format json") {
                for document in serde_json::Deserializer::from_str(&stdout).into_iter::<serde_json::Value>() {
                    document.unwrap();
                }
            }
        }
        tried += 1;
    }
    assert_eq!(tried, 11);
    // The fields that the page names are there.
    let (_, json, _) = run(&["triage", &lines, "--format", "json"]);
    let json: serde_json::Value = serde_json::from_str(&json).unwrap();
    for field in ["sure", "share_percent", "actions", "where", "confirm"] {
        assert!(json["findings"][0].get(field).is_some(), "{field}");
    }
    assert!(json["window"].get("judged_percent").is_some() && json.get("missing").is_some() && json.get("coverage").is_some());
    assert!(json["findings"][0]["where"].as_array().unwrap().iter().any(|p| p["kind"] == "line"));
}
