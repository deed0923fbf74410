//! The program's stdout: the contract that scripts rely on.

use super::support::{edited, packed, root, scratch};
use assert_cmd::Command;
use serde_json::Value;
use std::process::Stdio;

fn warpscope() -> Command {
    let mut command = Command::cargo_bin("warpscope").unwrap();
    command
        .env_clear()
        .env("HOME", scratch())
        .env("PATH", "/usr/bin:/bin")
        .env("LANG", "C.UTF-8")
        .timeout(std::time::Duration::from_secs(60));
    command
}

fn stdout(args: &[&str]) -> String {
    let output = warpscope().args(args).output().unwrap();
    assert!(output.status.success(), "{args:?}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap()
}

fn failure(args: &[&str]) -> (i32, String) {
    let output = warpscope().args(args).output().unwrap();
    assert!(output.stdout.is_empty(), "nothing on stdout");
    (output.status.code().unwrap(), String::from_utf8(output.stderr).unwrap())
}

fn path(name: &str) -> String {
    packed(name).to_string_lossy().into_owned()
}

#[test]
fn top_as_json_has_the_fields_of_the_contract() {
    let text = stdout(&["top", &path("llm"), "--format", "json"]);
    let json: Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["source"][0]["tool"], "nsys");
    assert_eq!(json["source"][0]["tool_version"], "2025.3.2.0");
    assert_eq!(json["device"][0]["name"], "NVIDIA H200");
    assert_eq!((json["launches"].as_u64(), json["rows"].as_array().unwrap().len()), (Some(10_278), 21));
    let row = &json["rows"][0];
    assert_eq!(
        (row["name"].as_str(), row["count"].as_u64(), row["total_ns"].as_i64()),
        (Some("CatArrayBatchedCopy"), Some(1176), Some(18_489_668))
    );
    assert_eq!((row["min_ns"].as_i64(), row["max_ns"].as_i64(), row["median_ns"].as_f64()), (Some(14_912), Some(16_736), Some(15_744.0)));
    assert!(row["demangled"].as_str().unwrap().starts_with("void at::native::"));
    for field in ["share_percent", "avg_ns", "stddev_ns", "p99_ns"] {
        assert!(row[field].is_number(), "{field}");
    }
    let sum: i64 = json["rows"].as_array().unwrap().iter().map(|r| r["total_ns"].as_i64().unwrap()).sum();
    assert_eq!(Some(sum), json["total_kernel_ns"].as_i64());
}

#[test]
fn launches_as_json_have_the_fields_of_the_contract() {
    let json: Value = serde_json::from_str(&stdout(&["launches", &path("procs"), "--kernel", "c_kernel", "--format", "json"])).unwrap();
    let rows = json["rows"].as_array().unwrap();
    let row = &rows[0];
    assert_eq!((row["launch"].as_u64(), row["nth"].as_u64(), row["kernel"].as_str()), (Some(0), Some(0), Some("c_kernel")));
    assert_eq!(
        (row["grid"].to_string(), row["block"].to_string(), row["registers"].as_u64()),
        ("[1,1,1]".into(), "[64,1,1]".into(), Some(16))
    );
    assert_eq!((row["device"].as_u64(), row["stream"].as_u64(), row["pid"].as_u64()), (Some(0), Some(13), Some(609)));
    assert_eq!(row["nvtx"][0], "step0");
    assert!(
        row["graph_node"].is_null()
            && row["static_shared_bytes"].is_number()
            && row["dynamic_shared_bytes"].is_number()
            && row["context"].is_number()
    );
    for pid in [rows[0]["pid"].clone(), rows[rows.len() - 1]["pid"].clone()] {
        let nth: Vec<u64> = rows.iter().filter(|r| r["pid"] == pid).map(|r| r["nth"].as_u64().unwrap()).collect();
        assert_eq!(nth, (0..nth.len() as u64).collect::<Vec<_>>(), "nth counts in each process");
    }
}

#[test]
fn the_four_formats_and_the_eight_groupings() {
    for by in ["name", "demangled", "mangled", "config", "stream", "device", "process", "nvtx"] {
        let csv = stdout(&["top", &path("zoo"), "--by", by]);
        assert!(
            csv.starts_with("rank,name,share_percent,total_ns,count,avg_ns,median_ns,p99_ns,min_ns,max_ns,stddev_ns"),
            "csv when piped: {csv}"
        );
        assert!(csv.lines().count() > 1, "{by}");
        let table = stdout(&["top", &path("zoo"), "--by", by, "--format", "table"]);
        assert_eq!(table.lines().count(), csv.lines().count(), "{by}");
        let md = stdout(&["top", &path("zoo"), "--by", by, "--format", "md", "--limit", "2"]);
        assert!((3..=4).contains(&md.lines().count()) && md.lines().nth(1).unwrap().starts_with("| ---: |"), "{md}");
    }
    let table = stdout(&["launches", &path("single"), "--format", "table", "--limit", "3"]);
    assert_eq!(table.lines().count(), 4, "{table}");
}

#[test]
fn sort_limit_and_filter() {
    let names = |args: &[&str]| {
        let text = stdout(&[&["top", &path("zoo"), "--format", "csv"], args].concat());
        csv::Reader::from_reader(text.as_bytes()).records().map(|r| r.unwrap()[1].to_owned()).collect::<Vec<_>>()
    };
    assert_eq!(names(&["--sort", "count", "--limit", "1"]), ["tiny"]);
    assert_eq!(names(&["--sort", "name", "--limit", "2"]), ["atomic_hot", "barrier_heavy"]);
    assert_eq!(names(&["--filter", "MATMUL", "--sort", "max"]), ["matmul_naive", "matmul_tiled", "matmul_wmma"]);
    assert_eq!(names(&["--filter", "nothing"]), Vec::<String>::new());
}

#[test]
fn a_selector_takes_words_before_letters_and_no_strewn_letters_at_all() {
    let kernel = |selector: &str| {
        let text = stdout(&["launches", &path("llm"), "--kernel", selector, "--limit", "1"]);
        csv::Reader::from_reader(text.as_bytes()).records().next().unwrap().unwrap()[1].to_owned()
    };
    assert_eq!(kernel("norm"), "vectorized_layer_norm_kernel");
    assert_eq!(kernel("vecnorm"), "vectorized_layer_norm_kernel");
    let (code, text) = failure(&["launches", &path("llm"), "--kernel", "softmax"]);
    assert!(code == 2 && text.contains("no kernel matches"), "{text}");
}

#[test]
fn launches_by_duration_begin_with_the_slowest() {
    let text = stdout(&["launches", &path("llm"), "--kernel", "CatArrayBatchedCopy", "--sort", "duration", "--limit", "2"]);
    let rows: Vec<_> = csv::Reader::from_reader(text.as_bytes()).records().map(Result::unwrap).collect();
    assert_eq!((&rows[0][0], &rows[0][2], &rows[0][4]), ("6285", "711", "16736"), "launch, nth, duration");
}

#[test]
fn errors_are_one_sentence_on_stderr_with_the_right_code() {
    let (code, text) = failure(&["top", "/no/such/file.sqlite"]);
    assert_eq!((code, text.as_str()), (3, "warpscope: /no/such/file.sqlite: No such file or directory (os error 2)\n"));
    let (code, text) = failure(&["launches", &path("single"), "--kernel", "s"]);
    assert!(code == 2 && text.contains("matches") && text.contains("saxpy"), "{text}");
    let (code, text) = failure(&["launches", &path("single"), "--kernel", "zzzz"]);
    assert!(code == 2 && text.contains("no kernel matches"), "{text}");
    let (code, text) = failure(&["top", &path("single"), "--by", "colour"]);
    assert!(code == 2 && text.contains("possible values"), "{text}");
    let (code, text) = failure(&["tpo", "run.sqlite"]);
    assert!(code == 2 && text.contains("did you mean the command `top`?"), "{text}");
    let (code, text) = failure(&[]);
    assert!(code == 2 && text.contains("warpscope demo"), "{text}");
    let (code, text) = failure(&["demo"]);
    assert!(code == 2 && text.contains("needs a terminal"), "{text}");
    let summary = root().join("fixtures/stats/zoo_cuda_gpu_kern_sum.csv").to_string_lossy().into_owned();
    let (code, text) = failure(&["launches", &summary]);
    assert!(code == 2 && text.contains("per-kernel totals only"), "{text}");
    let (code, text) = failure(&["top", &summary, "--by", "stream"]);
    assert!(code == 2 && text.contains("cannot group by stream"), "{text}");
}

#[test]
fn a_report_without_kernels_is_listed_empty_and_says_why() {
    let output = warpscope().args(["top", &path("nogpu")]).output().unwrap();
    assert!(output.status.success());
    assert_eq!(String::from_utf8_lossy(&output.stdout).lines().count(), 1);
    assert!(String::from_utf8_lossy(&output.stderr).contains("--trace=cuda"));
    let hidden = edited("single", "DELETE FROM CUPTI_ACTIVITY_KIND_KERNEL");
    let output = warpscope().args(["top", &hidden.to_string_lossy()]).output().unwrap();
    assert!(String::from_utf8_lossy(&output.stderr).contains("launched 200 kernels, but nsys got no GPU records"));
}

#[test]
fn names_with_escape_sequences_reach_no_terminal() {
    let evil = edited(
        "single",
        "UPDATE StringIds SET value = 'k' || char(27) || ']0;owned' || char(7) || char(10) || 'x' WHERE value = 'c_kernel'",
    );
    for args in [["top", "--format", "table"], ["top", "--format", "md"], ["launches", "--format", "table"]] {
        let text = stdout(&[args[0], &evil.to_string_lossy(), args[1], args[2]]);
        assert!(!text.chars().any(|c| c.is_control() && c != '\n'), "{args:?}");
        // Markdown escapes brackets.
        let shown = if args[2] == "md" { r"k^\[\]0;owned^G^Jx" } else { "k^[]0;owned^G^Jx" };
        assert!(text.contains(shown), "{args:?}: {text}");
    }
}

#[test]
fn a_reader_that_goes_away_is_no_error() {
    let mut child = std::process::Command::new(assert_cmd::cargo::cargo_bin!("warpscope"))
        .args(["launches", &path("llm"), "--format", "json"])
        .env("HOME", scratch())
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    drop(child.stdout.take());
    let output = child.wait_with_output().unwrap();
    assert!(output.status.success(), "{output:?}");
    assert!(output.stderr.is_empty(), "{}", String::from_utf8_lossy(&output.stderr));
}

#[test]
fn the_configuration_file_is_checked() {
    let folder = tempfile::tempdir_in(scratch()).unwrap();
    let config = folder.path().join("c.toml");
    let with = |text: &str| {
        std::fs::write(&config, text).unwrap();
        warpscope().args(["top", &path("single"), "--config"]).arg(&config).output().unwrap()
    };
    assert!(with("theme = \"nord\"\nsort = \"max\"\n").status.success());
    let output = with("thme = \"nord\"\n");
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("did you mean `theme`?"));
    let output = warpscope().args(["top", &path("single"), "--config", "/no/such.toml"]).output().unwrap();
    assert_eq!(output.status.code(), Some(2), "a file that the user named must be there");
}

#[test]
fn nothing_is_written_beside_a_report() {
    let folder = tempfile::tempdir_in(scratch()).unwrap();
    let report = folder.path().join("r.sqlite.zst");
    std::fs::copy(packed("single"), &report).unwrap();
    let before = std::fs::metadata(&report).unwrap().modified().unwrap();
    stdout(&["top", &report.to_string_lossy()]);
    assert_eq!(std::fs::read_dir(folder.path()).unwrap().count(), 1);
    assert_eq!(std::fs::metadata(&report).unwrap().modified().unwrap(), before);
}

/// The other commands choose a kernel with `--kernel`; `top` takes it, too.
#[test]
fn top_takes_the_kernel_of_other_commands() {
    let file = packed("zoo").display().to_string();
    let listed = |option: &str| stdout(&["top", &file, option, "matmul", "--format", "csv"]);
    assert_eq!(listed("--kernel"), listed("--filter"));
    assert!(listed("--kernel").lines().count() > 1);
}
