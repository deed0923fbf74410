//! A recording without kernels ends with one sentence that says why, and with what to do.

use super::tracer::built;
use std::io::Write;
use std::path::Path;
use std::process::{Command, Output, Stdio};

/// Options of `trace`, words of the program, variables, and texts of the end of the program and of `triage`.
type Case<'a> = (&'a [&'a str], &'a [&'a str], &'a [(&'a str, &'a str)], &'a str, &'a [&'a str]);

const SAYS_WHY: &str = "warpscope: no kernel was recorded: `warpscope triage ";
const NOTHING: &str = "warpscope: nothing was recorded so far: no process of this program made a CUDA call";

fn trace(folder: &Path, options: &[&str], words: &[&str], env: &[(&str, &str)]) -> Output {
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpscope"));
    command.arg("trace").arg("-o").arg(folder.join("t")).args(options).arg("--").args(words);
    command.env("HOME", folder).env("XDG_CACHE_HOME", folder.join("cache")).envs(env.iter().copied());
    command.output().unwrap()
}

/// The command that the program's last sentence names, run: the note and its advice.
fn follow_advice(folder: &Path, said: &str) -> String {
    let command = said.split('`').nth(1).unwrap();
    let file = command.strip_prefix("warpscope triage ").unwrap();
    let done = Command::new(env!("CARGO_BIN_EXE_warpscope"))
        .args(["triage", file, "--format", "json"])
        .env("HOME", folder)
        .env("XDG_CACHE_HOME", folder.join("cache"))
        .output()
        .unwrap();
    String::from_utf8_lossy(&done.stdout).into_owned() + &String::from_utf8_lossy(&done.stderr)
}

#[test]
fn each_reason_is_said_with_what_to_do() {
    let program = built().join("program").display().to_string();
    let cases: &[Case<'_>] = &[
        (&["--closed"], &["launches=10"], &[], SAYS_WHY, &["its recording was never opened", "--open` while the program runs"]),
        (&["--range", "step"], &["launches=10"], &[], SAYS_WHY, &["the program marked no NVTX range", "torch.cuda.nvtx.range_push"]),
        (
            &["--range", "nothing"],
            &["launches=10", "nvtx=1"],
            &[],
            SAYS_WHY,
            &["the range `nothing` was never entered, only 7 ranges of other names", "`warpscope ranges` shows their names"],
        ),
        (
            &["--range", "step 1", "--nth", "5"],
            &["launches=10", "nvtx=1"],
            &[],
            SAYS_WHY,
            &["the range `step 1` was entered 1 time, and `--nth 5` was asked for", "a smaller number"],
        ),
        (
            &["--kernel", "nothing"],
            &["launches=10"],
            &[],
            SAYS_WHY,
            &["the kernel `nothing` was never launched, among 10 launches", "`warpscope top` shows the names"],
        ),
        (
            &["--after-launches", "1000"],
            &["launches=10"],
            &[],
            SAYS_WHY,
            &["the program made 10 launches, and the recording was to begin after 1000", "--after-launches"],
        ),
        (&["--delay", "60"], &["launches=10"], &[], SAYS_WHY, &["the program ended before 60.0 s had passed", "a shorter `--delay`"]),
        (&["--profiler-api"], &["launches=10"], &[], SAYS_WHY, &["cudaProfilerStart was never called", "without `--profiler-api`"]),
        (&["--overhead", "1"], &["launches=10"], &[], SAYS_WHY, &["before its first moment", "short programs as a whole"]),
        (&[], &["launches=0"], &[], SAYS_WHY, &["it launched no kernel while it was recorded"]),
        (&[], &["launches=0", "exit=_exit"], &[], SAYS_WHY, &["it launched no kernel while it was recorded"]),
        (
            &[],
            &["launches=10"],
            &[("MOCK_SUBSCRIBE", "39")],
            SAYS_WHY,
            &["another profiler (nsys, ncu, torch.profiler) already uses CUPTI"],
        ),
        (&[], &["launches=10"], &[("MOCK_SUBSCRIBE", "1")], SAYS_WHY, &["does not work with this driver"]),
        // A recording that has kernels is not spoken of.
        (&[], &["launches=10"], &[], "", &[]),
        (&["--lean"], &["launches=10", "threads=2"], &[], "", &[]),
    ];
    for (options, words, env, end, reasons) in cases {
        let folder = tempfile::tempdir().unwrap();
        // The program loads the object itself, as the driver does.
        let done = trace(folder.path(), options, &[&[&*program], *words].concat(), env);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert_eq!(said.is_empty(), end.is_empty(), "{options:?} {words:?}: {said}");
        assert!(said.starts_with(end), "{options:?} {words:?}: {said}");
        assert!(said.lines().count() <= 1, "{said}");
        if !reasons.is_empty() {
            let why = follow_advice(folder.path(), &said);
            for reason in *reasons {
                assert!(why.contains(reason), "{options:?} {words:?} {env:?}: {reason}: {why}");
            }
        }
    }
}

#[test]
fn a_program_without_cuda_is_told_so_once() {
    let folder = tempfile::tempdir().unwrap();
    for words in [&["true"][..], &["sh", "-c", "sh -c true; true"], &["python3", "-c", "import os; os._exit(0)"]] {
        let done = trace(folder.path(), &[], words, &[]);
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(done.status.success() && said.starts_with(NOTHING) && said.lines().count() == 1, "{words:?}: {said}");
    }
    // The exit code is the program's.
    assert_eq!(trace(folder.path(), &[], &["sh", "-c", "exit 7"], &[]).status.code(), Some(7));
    // An earlier run's trace says nothing of this one.
    std::fs::write(folder.path().join("t.1.wstrace"), "").unwrap();
    let old = std::time::SystemTime::now() - std::time::Duration::from_secs(3600);
    std::fs::File::options().write(true).open(folder.path().join("t.1.wstrace")).unwrap().set_modified(old).unwrap();
    assert!(String::from_utf8_lossy(&trace(folder.path(), &[], &["true"], &[]).stderr).starts_with(NOTHING));
    // A child that was recorded speaks for the launcher, and a rank that was left out does not speak.
    let program = format!("{} launches=10; true", built().join("program").display());
    assert!(trace(folder.path(), &[], &["sh", "-c", &program], &[]).stderr.is_empty());
    let program = format!("{} launches=10; exec true", built().join("program").display());
    assert!(trace(folder.path(), &[], &["sh", "-c", &program], &[]).stderr.is_empty(), "the launcher became another program");
    let elsewhere = tempfile::tempdir().unwrap();
    assert!(trace(elsewhere.path(), &["--ranks", "3"], &["true"], &[("RANK", "0")]).stderr.is_empty());
}

#[test]
fn a_pipe_that_is_not_read_ends_no_program() {
    let folder = tempfile::tempdir().unwrap();
    let mut command = Command::new(env!("CARGO_BIN_EXE_warpscope"));
    command.arg("trace").arg("-o").arg(folder.path().join("t")).args(["--", "sh", "-c", "read line"]);
    command.env("HOME", folder.path()).env("XDG_CACHE_HOME", folder.path().join("cache"));
    let mut child = command.stdin(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    drop(child.stderr.take());
    child.stdin.take().unwrap().write_all(b"go on\n").unwrap();
    assert_eq!(child.wait().unwrap().code(), Some(0));
}
