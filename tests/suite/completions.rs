//! Shell completions: the words that are offered, and the syntax of the script for bash.

use super::support::{root, run, scratch};

/// Completions that bash gets for a command line from its completion script.
fn completed(words: &[&str]) -> Vec<String> {
    let mut command = assert_cmd::Command::cargo_bin("warpscope").unwrap();
    command.env_clear().env("HOME", scratch()).env("PATH", "/usr/bin:/bin").env("LANG", "C.UTF-8").current_dir(root());
    command.env("WARPSCOPE_COMPLETE", "bash").env("_CLAP_IFS", "\n").env("_CLAP_COMPLETE_INDEX", (words.len()).to_string());
    let out = command.args(["--", "warpscope"]).args(words).output().unwrap();
    String::from_utf8(out.stdout).unwrap().lines().map(str::to_owned).collect()
}

#[test]
fn shells_complete_commands_kernels_recipes_themes_and_topics() {
    let has = |words: &[&str], value: &str| {
        let all = completed(words);
        assert!(all.iter().any(|c| c == value), "{words:?}: {all:?}");
    };
    has(&["tri"], "triage");
    has(&["rerun", "fixtures/demo/llm.sqlite.zst", "--kernel", "Cat"], "CatArrayBatchedCopy");
    has(&["hints", "fixtures/demo/zoo.ncu-rep.zst", "--kernel", ""], "copy_coalesced");
    has(&["--theme", "high"], "high-contrast");
    has(&["run", "--recipe", "trace-l"], "trace-light");
    has(&["help", "tri"], "triage");
    has(&["top", "x", "--format", ""], "csv");
    assert!(completed(&["__"]).is_empty(), "internal commands are not offered");
    // The script needs a real bash.
    let (code, script, _) = run(&["completions", "bash"]);
    let mut bash = std::process::Command::new("bash");
    let checked = bash.args(["-n", "-c", &script]).status();
    assert!(code == 0 && checked.is_ok_and(|s| s.success()), "{script}");
}
