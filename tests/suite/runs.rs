//! Runs of the real program under mock profilers (fixtures/bin), and under the real ones if installed: recorded data,
//! exit status, and no leftovers. Tests wait for their expected state.

use super::support::{packed, root, scratch};
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde_json::Value as Json;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use warpscope::launch::runs::{log, process};

const LIMIT: Duration = Duration::from_secs(40);

/// A private home folder, with the mock profilers on PATH.
pub struct Home {
    pub folder: TempDir,
    pub path: String,
}

impl Home {
    pub fn new() -> Self {
        let folder = tempfile::tempdir_in(scratch()).unwrap();
        Self { folder, path: format!("{}:/usr/bin:/bin", root().join("fixtures/bin").display()) }
    }

    pub fn file(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    pub fn env(&self) -> Vec<(String, String)> {
        let text = |p: &Path| p.to_string_lossy().into_owned();
        vec![
            ("HOME".into(), text(self.folder.path())),
            ("XDG_DATA_HOME".into(), text(&self.file("data"))),
            ("XDG_CACHE_HOME".into(), text(&scratch().join("cache"))),
            ("PATH".into(), self.path.clone()),
            ("LANG".into(), "C.UTF-8".into()),
            ("STANDIN_REPORT".into(), text(&packed("llm"))),
            ("STANDIN_PID".into(), text(&self.file("profiler.pid"))),
            ("STANDIN_LEFT".into(), text(&self.file("left.pid"))),
            ("SECRET_TOKEN".into(), "hunter2xyzzy".into()),
            ("NCCL_DEBUG".into(), "INFO".into()),
            // Ignore this machine's CUDA toolkit: the profilers here are mocks.
            ("WARPSCOPE_TRACER".into(), "off".into()),
        ]
    }

    fn command(&self, args: &[&str], standin: &str) -> Command {
        let mut c = Command::new(assert_cmd::cargo::cargo_bin!("warpscope"));
        c.env_clear().envs(self.env()).env("STANDIN", standin).env("STANDIN_LINES", "200000").current_dir(self.folder.path()).args(args);
        c
    }

    fn run(&self, args: &[&str], standin: &str) -> (i32, String, String) {
        let out = self.command(args, standin).stdin(Stdio::null()).output().unwrap();
        said(&out)
    }

    fn start(&self, args: &[&str], standin: &str) -> Child {
        self.command(args, standin).stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap()
    }

    fn show(&self, id: i64) -> Json {
        let (rc, out, err) = self.run(&["runs", "show", &id.to_string(), "--format", "json"], "");
        assert_eq!(rc, 0, "{err}");
        serde_json::from_str(&out).unwrap()
    }

    /// Log of a run so far, joined from its pieces.
    fn log(&self, id: i64) -> String {
        let folder = self.file("data/warpscope/runs").join(id.to_string());
        let mut pieces = log::piece_paths(&folder);
        pieces.sort();
        pieces.iter().map(|p| String::from_utf8_lossy(&fs::read(p).unwrap()).into_owned()).collect()
    }

    fn profiler(&self) -> (i32, u64) {
        let pid = pid_in(&self.file("profiler.pid"));
        (pid, process::read_process(pid).unwrap().started)
    }
}

fn said(out: &Output) -> (i32, String, String) {
    let text = |b: &[u8]| String::from_utf8(b.to_vec()).unwrap();
    (out.status.code().unwrap_or(-1), text(&out.stdout), text(&out.stderr))
}

pub fn until(what: &str, ok: impl Fn() -> bool) {
    let end = Instant::now() + LIMIT;
    while !ok() {
        assert!(Instant::now() < end, "waited for {what}");
        std::thread::park_timeout(Duration::from_millis(20));
    }
}

pub fn pid_in(file: &Path) -> i32 {
    until("a process id", || fs::read_to_string(file).is_ok_and(|t| t.ends_with('\n')));
    fs::read_to_string(file).unwrap().trim().parse().unwrap()
}

fn signal(child: &Child, signal: Signal) {
    kill(Pid::from_raw(i32::try_from(child.id()).unwrap()), signal).unwrap();
}

#[test]
fn a_run_is_recorded_with_what_it_was() {
    let home = Home::new();
    let (rc, out, err) = home.run(&["run", "--tag", "first", "--", "sh", "-c", "echo hello; printf '\\033[31mred\\033[0m\\n'"], "");
    assert_eq!(rc, 0, "{err}");
    let report = PathBuf::from(out.trim());
    assert!(report.is_file() && report.ends_with("runs/1/nsys/report.nsys-rep"), "{out}");
    assert!(err.contains("hello\n") && err.contains("\nred\n") && !err.contains('\u{1b}'), "{err}");
    let run = home.show(1);
    assert_eq!((run["state"].as_str(), run["exit_code"].as_i64(), run["tags"][0].as_str()), (Some("done"), Some(0), Some("first")));
    assert_eq!(
        (run["tool"].as_str(), run["recipe"].as_str(), run["tool_version"].as_str()),
        (Some("nsys"), Some("exact"), Some("2025.3.2"))
    );
    assert_eq!((run["devices"].as_str(), run["driver"].as_str()), (Some("1 × NVIDIA H200"), Some("580.95.05")));
    assert_eq!((run["clocks_start_mhz"].as_str(), run["clocks_end_mhz"].as_str()), (Some("1980"), Some("1980")));
    assert_eq!(run["program"].as_array().unwrap().len(), 3);
    // The record has the names of all environment variables, but values only of those without secrets.
    assert!(run["env_names"].as_array().unwrap().iter().any(|n| n == "SECRET_TOKEN"));
    assert!(run["env_values"].as_array().unwrap().iter().any(|p| p[0] == "NCCL_DEBUG" && p[1] == "INFO"));
    let database = home.file("data/warpscope");
    for file in fs::read_dir(&database).unwrap().map(|e| e.unwrap().path()).filter(|p| p.is_file()) {
        assert!(!String::from_utf8_lossy(&fs::read(&file).unwrap()).contains("hunter2"), "{}", file.display());
    }
    // A run can also be named by its report, by its folder, or by the reports' common name.
    let folder = report.parent().unwrap();
    for named in [report.clone(), folder.to_owned(), folder.join("report")] {
        let (rc, out, err) = home.run(&["runs", "show", &named.to_string_lossy(), "--format", "json"], "");
        assert_eq!(rc, 0, "{}: {err}", named.display());
        assert_eq!(serde_json::from_str::<Json>(&out).unwrap()["id"], 1);
    }
    let (rc, _, err) = home.run(&["runs", "show", "elsewhere/report"], "");
    assert!(rc == 2 && err.contains("no run has this report"), "{err}");
    // The report opens, and the list finds the run by its arguments.
    let (rc, out, err) = home.run(&["top", &report.to_string_lossy(), "--limit", "1"], "");
    assert!(rc == 0 && out.contains("CatArrayBatchedCopy"), "{err}");
    let (_, out, _) = home.run(&["runs", "list", "hello", "first", "--format", "csv"], "");
    assert_eq!(out.lines().count(), 2, "{out}");
    let (_, out, _) = home.run(&["runs", "list", "nothing-like-that", "--format", "csv"], "");
    assert_eq!(out.lines().count(), 1);
}

#[test]
fn each_bad_end_is_explained() {
    let home = Home::new();
    let (rc, out, err) = home.run(&["run", "--", "sh", "-c", "exit 3"], "");
    assert!(
        rc == 1 && out.contains("report.nsys-rep") && err.contains("the program exited with code 3: the report was written anyway"),
        "{err}"
    );
    let (rc, out, err) = home.run(&["run", "--", "true"], "nine");
    assert!(rc == 1 && out.is_empty() && err.contains("exited with code 9"), "{err}");
    let (rc, out, err) = home.run(&["run", "--", "true"], "dies");
    assert!(rc == 1 && out.contains("report.nsys-rep") && err.contains("nsys was killed (signal 9)"), "{err}");
    // A truncated report: a one-line error, not a crash.
    let (rc, _, err) = home.run(&["top", out.trim()], "");
    assert!(rc == 3 && err.lines().count() == 1, "{err}");
    let (rc, _, err) = home.run(&["run", "--tool", "ncu", "--", "true"], "");
    assert!(rc == 1 && err.contains("no kernel was profiled"), "{err}");
    let (rc, _, err) = home.run(&["run", "--recipe", "exakt", "--", "true"], "");
    assert!(rc == 2 && err.contains("did you mean `exact`?"), "{err}");
    for (program, says) in [
        (&[][..], "name the program"),
        (&["--help"], "--help would be taken as a profiler option"),
        (&["no-such-program"], "program no-such-program not found on PATH"),
        (&["./no-such-program"], "program ./no-such-program not found"),
    ] {
        let (rc, _, err) = home.run(&[&["run", "--"][..], program].concat(), "");
        assert!(rc == 2 && err.contains(says), "{err}");
    }
    let states: Vec<String> = (1..=4).map(|n| home.show(n)["state"].as_str().unwrap().to_owned()).collect();
    assert_eq!(states, ["failed"; 4]);
    let (rc, _, _) = home.run(&["runs", "show", "5"], "");
    assert_eq!(rc, 2, "a call that was wrong leaves no run");
    // A report of that name exists: nothing is overwritten or run.
    fs::write(home.file("mine.nsys-rep"), "mine").unwrap();
    let (rc, _, err) = home.run(&["run", "-o", "mine", "--", "true"], "");
    assert!(rc == 2 && err.contains("already exists"), "{err}");
    assert_eq!(fs::read_to_string(home.file("mine.nsys-rep")).unwrap(), "mine");
}

#[test]
fn options_that_the_profiler_does_not_know_are_left_out_or_refused() {
    let home = Home::new();
    let old = |what: &str, args: &[&str]| said(&home.command(args, "").env("STANDIN_OLD", what).stdin(Stdio::null()).output().unwrap());
    let (rc, _, err) = old("cuda-graph-trace", &["run", "--", "true"]);
    assert!(rc == 0 && err.contains("skipped --cuda-graph-trace, which this nsys does not support"), "{err}");
    let argv: Vec<String> = serde_json::from_value(home.show(1)["argv"].clone()).unwrap();
    assert!(!argv.iter().any(|w| w.contains("graph")) && argv.iter().any(|w| w.starts_with("--trace=")), "{argv:?}");
    let gated = ["run", "--recipe", "profiler-api", "--", "true"];
    let (rc, _, err) = old("capture-range", &gated);
    assert!(rc == 2 && err.contains("does not support --capture-range, without which this would record something else"), "{err}");
    let (_, out, _) = home.run(&["runs", "list", "--format", "csv"], "");
    assert_eq!(out.lines().count(), 2, "nothing was run");
    let (rc, _, err) = old("capture-range", &["run", "--force", "--recipe", "profiler-api", "--", "true"]);
    assert_eq!(rc, 0, "{err}");
    let (_, _, err) = home.run(&gated, "");
    assert!(!err.contains("skipped"), "{err}");
}

#[test]
fn without_nsys_ncu_scans_and_says_what_it_costs() {
    let mut home = Home::new();
    let bin = home.file("bin");
    fs::create_dir(&bin).unwrap();
    for tool in ["ncu", "nvidia-smi"] {
        std::os::unix::fs::symlink(root().join("fixtures/bin").join(tool), bin.join(tool)).unwrap();
    }
    home.path = format!("{}:/usr/bin:/bin", bin.display());
    let result = root().join("fixtures/demo/llm_gemm.ncu-rep.zst");
    let out = home.command(&["run", "--", "true"], "").env("STANDIN_RESULT", &result).stdin(Stdio::null()).output().unwrap();
    let (rc, out, err) = said(&out);
    assert_eq!(rc, 0, "{err}");
    assert!(err.contains("nsys is not installed, so ncu scans instead") && err.contains("cost:"), "{err}");
    assert!(home.show(1)["argv"].as_array().unwrap().iter().any(|w| w == "gpu__time_duration.sum"));
    // Kernels, launch order and the re-run also work with this report.
    let (rc, top, _) = home.run(&["top", out.trim()], "");
    assert!(rc == 0 && top.lines().count() > 1);
    let (rc, rerun, err) = home.run(&["rerun", out.trim(), "--launch", "0", "--format", "shell", "--", "./app"], "");
    assert!(rc == 0 && rerun.contains("--kernel-name"), "{err}");
}

#[test]
fn an_interrupt_stops_the_program_and_the_report_is_kept() {
    let home = Home::new();
    let child = home.start(&["run", "--", "sleep", "600"], "");
    let (pid, started) = home.profiler();
    signal(&child, Signal::SIGINT);
    let out = child.wait_with_output().unwrap();
    let (rc, out, err) = said(&out);
    assert_eq!(rc, 130, "{err}");
    assert!(out.contains("report.nsys-rep") && err.contains("what was recorded until then is kept"), "{err}");
    assert!(!process::is_running(pid, started));
    assert_eq!(home.show(1)["state"], "stopped");
}

#[test]
fn a_profiler_that_does_not_listen_is_ended_step_by_step() {
    let home = Home::new();
    let child = home.start(&["run", "--", "true"], "deaf");
    let (pid, started) = home.profiler();
    for (sign, said) in [("first", "(INT)"), ("second", "(TERM)"), ("third", "(KILL)")] {
        signal(&child, Signal::SIGINT);
        until(sign, || home.log(1).contains(said));
    }
    let (rc, _, err) = said(&child.wait_with_output().unwrap());
    assert!(rc == 130 && err.contains("the run was stopped; no report was written"), "{err}");
    assert!(!process::is_running(pid, started));
}

#[test]
fn what_a_program_leaves_behind_is_ended_and_does_not_hold_the_run() {
    let home = Home::new();
    let (rc, _, err) = home.run(&["run", "--", "true"], "left");
    assert!(rc == 0 && err.contains("terminated 1 leftover process"), "{err}");
    let left = pid_in(&home.file("left.pid"));
    assert!(process::read_process(left).is_none_or(|p| p.state == 'Z'));
}

#[test]
fn nothing_outlives_a_killed_explorer_and_the_row_is_readable() {
    let home = Home::new();
    let mut child = home.start(&["run", "--", "sleep", "600"], "");
    let (pid, started) = home.profiler();
    until("the run to be known", || home.show(1)["state"] == "running");
    child.kill().unwrap();
    child.wait().unwrap();
    until("the profiler to end", || !process::is_running(pid, started));
    until("the run to end", || home.show(1)["state"] == "stopped");
    let run = home.show(1);
    assert_eq!(run["reports"].as_array().unwrap().len(), 1, "the profiler wrote its report");
    assert!(home.log(1).contains("the process that started the run is gone"));
}

#[test]
fn a_killed_supervisor_takes_the_profiler_with_it_and_the_run_is_lost() {
    let home = Home::new();
    let own = home.file("program.pid");
    let program = format!("echo $$ > {}; trap '' TERM; while :; do sleep 600; done", own.display());
    let mut child = home.start(&["run", "--", "sh", "-c", &program], "");
    let (pid, started) = home.profiler();
    let program = pid_in(&own);
    let program = (program, process::read_process(program).unwrap().started);
    let supervisor = process::read_process(pid).unwrap().parent;
    kill(Pid::from_raw(supervisor), Signal::SIGKILL).unwrap();
    until("the profiler to end", || !process::is_running(pid, started));
    let (rc, _, err) = said(&{
        child.wait().unwrap();
        child.wait_with_output().unwrap()
    });
    assert!(rc == 1 && err.contains("run 1 is lost"), "{rc} {err}");
    assert!(!process::is_running(program.0, program.1), "what the profiler started is ended, too, even if it does not listen");
    assert_eq!(home.show(1)["state"], "lost");
    // The run can be deleted.
    let (rc, _, err) = home.run(&["runs", "delete", "1", "--yes"], "");
    assert_eq!(rc, 0, "{err}");
}

#[test]
fn a_detached_run_goes_on_is_found_again_and_stopped() {
    let home = Home::new();
    let (rc, out, err) = home.run(&["run", "--detach", "--", "sleep", "600"], "");
    assert_eq!((rc, out.trim()), (0, "1"), "{err}");
    let (pid, started) = home.profiler();
    until("the run to be known", || home.show(1)["state"] == "running");
    assert!(process::is_running(pid, started), "it outlives the command that started it");
    let (rc, _, err) = home.run(&["runs", "show", &pid.to_string()], "");
    assert_eq!(rc, 0, "{err}");
    let (rc, _, err) = home.run(&["runs", "delete", "1", "--yes"], "");
    assert!(rc == 2 && err.contains("is still running"), "{err}");
    let mut attached = home.start(&["attach", "--plain"], "");
    signal(&attached, Signal::SIGINT);
    attached.wait().unwrap();
    assert!(process::is_running(pid, started), "leaving it does not stop it");
    let (rc, _, err) = home.run(&["attach", "1", "--stop"], "");
    assert_eq!(rc, 0, "{err}");
    let (rc, out, err) = home.run(&["attach", "1", "--plain"], "");
    assert!(rc == 130 && out.contains("report.nsys-rep"), "{err}");
    let (rc, _, err) = home.run(&["attach"], "");
    assert!(rc == 2 && err.contains("no run is in progress"), "{err}");
}

/// As with `nohup warpscope run …` when the terminal closes: signals that the shell ignores stay ignored, and the
/// others end the run.
#[test]
fn a_signal_that_was_ignored_at_the_start_stays_ignored() {
    let home = Home::new();
    let mut command = std::process::Command::new("/bin/sh");
    command
        .args(["-c", "trap '' HUP; exec \"$@\"", "sh"])
        .arg(assert_cmd::cargo::cargo_bin!("warpscope"))
        .args(["run", "--", "sleep", "600"]);
    command.env_clear().envs(home.env()).current_dir(home.file(""));
    let mut child = command.stdin(Stdio::null()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    until("the run to be known", || home.run(&["runs", "show", "1"], "").0 == 0 && home.show(1)["state"] == "running");
    signal(&child, Signal::SIGHUP);
    // SIGTERM arrives after SIGHUP: had SIGHUP been handled, the run would end as a hangup.
    signal(&child, Signal::SIGTERM);
    let ended = child.wait().unwrap();
    assert_eq!(ended.code(), Some(130), "{ended:?}");
    assert!(home.show(1)["state"] != "running");
}

#[test]
fn several_at_once_do_not_get_in_each_other_s_way() {
    let home = Home::new();
    let children: Vec<Child> = (0..6).map(|_| home.start(&["run", "--", "true"], "")).collect();
    let mut reports: Vec<String> = children
        .into_iter()
        .map(|c| {
            let (rc, out, err) = said(&c.wait_with_output().unwrap());
            assert_eq!(rc, 0, "{err}");
            out.trim().to_owned()
        })
        .collect();
    reports.sort();
    reports.dedup();
    assert_eq!(reports.len(), 6);
    assert!((1..=6).all(|n| home.show(n)["state"] == "done"));
}

#[test]
fn a_flood_is_bounded_and_its_end_is_there() {
    let home = Home::new();
    let (rc, _, err) = home.run(&["run", "--", "true"], "flood");
    assert_eq!(rc, 0);
    let folder = home.file("data/warpscope/runs/1");
    let bytes: u64 = log::piece_paths(&folder).iter().map(|p| p.metadata().unwrap().len()).sum();
    // 200,000 lines are 12 MB.
    assert!(bytes < 8 << 20, "{bytes}");
    assert!(err.contains("Generated:"));
}

#[test]
fn room_is_made_only_of_what_is_ours() {
    let home = Home::new();
    for _ in 0..3 {
        assert_eq!(home.run(&["run", "--", "true"], "").0, 0);
    }
    let outside = home.file("outside");
    assert_eq!(home.run(&["run", "-o", &outside.to_string_lossy(), "--", "true"], "").0, 0);
    let runs = home.file("data/warpscope/runs");
    fs::write(runs.join("1/notes.txt"), "mine").unwrap();
    assert_eq!(home.run(&["runs", "tag", "2", "keep"], "").0, 0);
    // The command asks for confirmation, which fails without a terminal.
    let (rc, _, err) = home.run(&["runs", "gc", "--keep", "0"], "");
    assert!(rc == 2 && err.contains("--yes does it"), "{err}");
    let (rc, out, _) = home.run(&["runs", "gc", "--keep", "0", "--dry-run"], "");
    assert!(rc == 0 && out.lines().count() == 3 && runs.join("3").exists(), "{out}");
    let (rc, _, err) = home.run(&["runs", "gc", "--keep", "0", "--yes"], "");
    assert!(rc == 0 && err.contains("notes.txt stays") && err.contains("outside.nsys-rep stays"), "{err}");
    assert!(runs.join("1/notes.txt").exists() && !runs.join("1/nsys").exists() && !runs.join("3").exists());
    assert!(home.file("outside.nsys-rep").exists(), "what the user named is his");
    assert!(runs.join("2/nsys/report.nsys-rep").exists(), "it is tagged to be kept");
    // Compressed reports still open.
    let (rc, _, err) = home.run(&["runs", "gc", "--pack-after", "0", "--yes"], "");
    assert_eq!(rc, 0, "{err}");
    assert!(runs.join("2/nsys/report.nsys-rep").exists(), "kept is kept as it is");
    assert_eq!(home.run(&["runs", "tag", "2", "keep", "--remove"], "").0, 0);
    let (rc, _, err) = home.run(&["runs", "gc", "--pack-after", "0", "--yes"], "");
    assert_eq!(rc, 0, "{err}");
    let packed = runs.join("2/nsys/report.nsys-rep.zst");
    assert!(packed.exists() && !runs.join("2/nsys/report.nsys-rep").exists());
    assert_eq!(home.show(2)["reports"][0]["path"], packed.to_string_lossy().as_ref());
    assert_eq!(home.run(&["runs", "note", "2", "before the fix"], "").0, 0);
    assert_eq!(home.show(2)["note"], "before the fix");
}

#[test]
fn what_is_shared_has_no_environment_when_that_is_wanted() {
    let home = Home::new();
    // An nsys export with a secret in all three places.
    let timeline = super::support::edited(
        "single",
        "INSERT INTO META_DATA_CAPTURE (name, value) VALUES ('PROCESS_0:ENVIRONMENT_VARIABLE', 'TOKEN=\"hunter2xyzzy\"');
         INSERT INTO StringIds (id, value) VALUES (987654, CAST(X'544F4B454E3D68756E7465723278797A7A79004C414E473D43' AS TEXT));",
    );
    let out = home.command(&["run", "--", "true"], "").env("STANDIN_REPORT", &timeline).stdin(Stdio::null()).output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    let (rc, _, err) = home.run(&["runs", "export", "1", "shared"], "");
    assert!(rc == 0 && err.contains("contain the environment of every traced process"), "{err}");
    assert!(fs::read(home.file("shared/report.nsys-rep")).unwrap().windows(7).any(|w| w == b"hunter2"));
    let (rc, out, err) = home.run(&["runs", "export", "1", "clean", "--clean"], "");
    assert!(rc == 0 && err.contains("verified to be gone from every cell and byte by byte"), "{err}");
    let bytes = fs::read(home.file("clean/report.clean.sqlite")).unwrap();
    assert!(!bytes.windows(7).any(|w| w == b"hunter2"));
    let before = home.run(&["top", "shared/report.nsys-rep", "--format", "csv"], "").1;
    assert_eq!(home.run(&["top", out.trim(), "--format", "csv"], "").1, before, "the kernels are all there");
    // Data that cannot be redacted is left out, and the command fails.
    let result = root().join("fixtures/demo/llm_gemm.ncu-rep.zst");
    let out =
        home.command(&["run", "--tool", "ncu", "--", "true"], "").env("STANDIN_RESULT", &result).stdin(Stdio::null()).output().unwrap();
    assert_eq!(out.status.code(), Some(0));
    let (rc, out, err) = home.run(&["runs", "export", "2", "clean2", "--clean"], "");
    assert!(rc == 4 && out.is_empty() && err.contains("skipped") && err.contains("1 of 1 reports could not be cleaned"), "{err}");
    let (rc, out, err) = home.run(&["runs", "export", "2", "plain2"], "");
    assert!(rc == 0 && out.contains("plain2/report.ncu-rep") && err.contains("Nsight Compute reports contain"), "{err}");
}

#[test]
fn a_library_of_a_newer_program_is_left_alone() {
    let home = Home::new();
    assert_eq!(home.run(&["run", "--", "true"], "").0, 0);
    let db = rusqlite::Connection::open(home.file("data/warpscope/runs.db")).unwrap();
    db.pragma_update(None, "user_version", 99).unwrap();
    let (rc, _, err) = home.run(&["runs"], "");
    assert!(rc == 4 && err.contains("newer warpscope"), "{err}");
    fs::write(home.file("data/warpscope/runs.db"), "no database at all, but long enough to look like one …………………………………………………").unwrap();
    for extra in ["-wal", "-shm"] {
        let _ = fs::remove_file(home.file(&format!("data/warpscope/runs.db{extra}")));
    }
    let (rc, _, err) = home.run(&["runs"], "");
    assert!(rc == 4 && err.lines().count() == 1, "{err}");
}

/// With the real tools on PATH: a profile of a program without a GPU, exported
/// and read; and ncu's own error, explained.
#[test]
fn with_the_real_profilers() {
    let path = std::env::var("PATH").unwrap_or_default();
    let real = |tool: &str| std::env::split_paths(&path).map(|p| p.join(tool)).find(|p| p.is_file());
    let mut home = Home::new();
    home.path = path.clone();
    match real("nsys") {
        None => println!("with_the_real_profilers: skipped for nsys, it is not on PATH"),
        Some(_) => {
            let (rc, out, err) = home.run(&["run", "--", "sh", "-c", "exit 0"], "");
            assert_eq!(rc, 0, "{err}");
            let (rc, _, err) = home.run(&["launches", out.trim(), "--format", "json"], "");
            assert!(rc == 0 && err.contains("No work of a GPU was recorded"), "{rc} {err}");
            let (rc, out, err) = home.run(&["runs", "export", "1", "clean", "--clean"], "");
            assert!(rc == 0, "{err}");
            let bytes = fs::read(home.file(out.trim())).unwrap();
            assert!(!bytes.windows(7).any(|w| w == b"hunter2"), "the real export is clean, too");
            let (rc, _, err) = home.run(&["run", "--force", "--", "./no-such-program"], "");
            assert!(rc == 1 && err.contains("the program was not found"), "{err}");
        }
    }
    match real("ncu") {
        None => println!("with_the_real_profilers: skipped for ncu, it is not on PATH"),
        Some(_) if Path::new("/dev/nvidiactl").exists() => println!("with_the_real_profilers: skipped for ncu, there is a GPU here"),
        Some(_) => {
            let (rc, _, err) = home.run(&["run", "--tool", "ncu", "--force", "--", "true"], "");
            let told = err.contains("the program found no CUDA driver") || err.contains("no kernel was profiled");
            assert!(rc == 1 && told, "{err}");
        }
    }
}

#[test]
fn a_library_that_is_begun_anew_does_not_count_over_old_runs() {
    let home = Home::new();
    assert_eq!(home.run(&["run", "--", "true"], "").0, 0);
    let report = home.file("data/warpscope/runs/1/nsys/report.nsys-rep");
    let before = fs::read(&report).unwrap();
    for name in ["runs.db", "runs.db-wal", "runs.db-shm"] {
        let _ = fs::remove_file(home.file("data/warpscope").join(name));
    }
    let (rc, out, err) = home.run(&["run", "--", "true"], "");
    assert!(rc == 0 && out.contains("/runs/2/"), "{out} {err}");
    assert_eq!(fs::read(report).unwrap(), before);
    let (rc, _, err) = home.run(&["run", "--tag", "a,b", "--", "true"], "");
    assert!(rc == 2 && err.contains("is not a valid tag"), "{err}");
    let (_, out, _) = home.run(&["runs", "list", "--format", "csv"], "");
    assert_eq!(out.lines().count(), 2, "what was refused is not kept");
}

#[test]
fn words_are_passed_on_whatever_they_are() {
    let home = Home::new();
    let (rc, _, err) = home.run(&["run", "--", "sh", "-c", "echo $#:$1:$2", "x", "", "a b"], "");
    assert!(rc == 0 && err.contains("\n2::a b\n"), "{err}");
    // The complete output, which is long but still in the log.
    let (rc, _, err) = home.run(&["run", "--", "seq", "1", "200000"], "");
    assert!(rc == 0 && err.lines().filter(|l| l.parse::<u32>().is_ok()).count() == 200_000);
    // The suffix is not added twice.
    let (rc, out, err) = home.run(&["run", "-o", "mine.nsys-rep", "--", "true"], "");
    assert!(rc == 0 && out.trim().ends_with("/mine.nsys-rep") && !out.contains("nsys-rep.nsys-rep"), "{out} {err}");
}

#[test]
fn a_library_that_cannot_be_written_can_be_looked_at() {
    use std::os::unix::fs::PermissionsExt;
    let home = Home::new();
    assert_eq!(home.run(&["run", "--", "true"], "").0, 0);
    if nix::unistd::getuid().is_root() {
        println!("root may write everywhere: not checked");
        return;
    }
    let folder = home.file("data/warpscope");
    let set = |mode: u32| {
        for path in [folder.join("runs.db"), folder.join("runs.lock"), folder.clone()] {
            fs::set_permissions(path, fs::Permissions::from_mode(mode)).unwrap();
        }
    };
    set(0o500);
    let (rc, out, err) = home.run(&["runs", "list", "--format", "csv"], "");
    set(0o700);
    assert!(rc == 0 && out.lines().count() == 2, "{err}");
}

#[test]
fn an_nsys_that_is_not_there_is_not_silently_none() {
    let home = Home::new();
    let (rc, out, err) = home.run(&["--nsys", "/not/there/nsys", "run", "--", "true"], "");
    assert!(rc == 2 && out.is_empty() && err.contains("no nsys found at /not/there/nsys"), "{rc} {err}");
}

#[test]
fn what_has_a_session_of_its_own_ends_with_a_killed_supervisor_too() {
    let home = Home::new();
    let own = home.file("agent.pid");
    // Like nsys's agent: outside the profiler's session, and ignoring signals.
    let program = format!("setsid sh -c 'trap \"\" TERM HUP INT; echo $$ > {}; while :; do sleep 600; done' & wait", own.display());
    let mut child = home.start(&["run", "--", "sh", "-c", &program], "");
    let (pid, _) = home.profiler();
    let agent = pid_in(&own);
    let agent = (agent, process::read_process(agent).unwrap().started);
    let supervisor = process::read_process(pid).unwrap().parent;
    kill(Pid::from_raw(supervisor), Signal::SIGKILL).unwrap();
    until("the agent to end", || !process::is_running(agent.0, agent.1));
    child.wait().unwrap();
    let run = home.show(1);
    assert_eq!(run["state"], "lost");
    assert!(run["ended_ms"].is_number(), "{run}");
}

#[test]
fn only_a_runs_own_files_are_exported() {
    let home = Home::new();
    assert_eq!(home.run(&["run", "--", "true"], "").0, 0);
    let secret = home.file("secret.nsys-rep");
    fs::write(&secret, "secret").unwrap();
    let db = rusqlite::Connection::open(home.file("data/warpscope/runs.db")).unwrap();
    for path in [
        "data/warpscope/runs/1/../../../../secret.nsys-rep",
        "data/warpscope/runs/1/nsys/../../../../../secret.nsys-rep",
        "secret.nsys-rep",
    ] {
        db.execute("UPDATE reports SET path = ?1", [home.file(path).to_str().unwrap()]).unwrap();
        let (rc, _, err) = home.run(&["runs", "export", "1", "out"], "");
        assert!(rc == 2 && err.contains("is not where run 1 left its reports"), "{path}: {err}");
    }
}

#[test]
fn every_tool_of_a_recipe_can_be_started() {
    let profilers = warpscope::launch::profiler::PROFILERS.iter().map(|p| p.name).collect::<Vec<_>>();
    assert_eq!(profilers, warpscope::rerun::recipes::list_tools());
}

/// Every report type that an importer recognises by suffix can be opened from the library.
#[test]
fn what_importers_read_the_library_opens() {
    use warpscope::import::open::is_openable;
    let endings = warpscope::import::IMPORTERS.iter().flat_map(|i| i.files()).filter(|f| f.starts_with(['.', '_']));
    let closed: Vec<&&str> = endings.filter(|f| !is_openable(Path::new(&format!("/x/report{f}")))).collect();
    assert!(closed.is_empty(), "{closed:?}");
    assert!(is_openable(Path::new("/x/report.wstrace.zst")) && !is_openable(Path::new("/x/report.log")));
}

#[test]
fn what_a_hint_promised_stands_beside_what_came_of_it() {
    let home = Home::new();
    let unpacked = |name: &str| {
        let to = home.file(&format!("{name}.ncu-rep"));
        let packed = fs::File::open(root().join(format!("fixtures/hints/{name}.ncu-rep.zst"))).unwrap();
        fs::write(&to, zstd::decode_all(packed).unwrap()).unwrap();
        to.display().to_string()
    };
    for report in ["third_detailed", "third_full"] {
        let out = home
            .command(&["run", "--tool", "ncu", "--", "/bin/true", "7"], "ok")
            .env("STANDIN_RESULT", unpacked(report))
            .stdin(Stdio::null())
            .output()
            .unwrap();
        assert_eq!(said(&out).0, 0, "{out:?}");
    }
    // The supervisor stores predictions and outcomes only after the run.
    until("what was promised", || {
        home.show(2)["promises"].as_array().is_some_and(|p| !p.is_empty()) && !home.show(2)["outcomes"].as_array().unwrap().is_empty()
    });
    let (first, second) = (home.show(1), home.show(2));
    let promised = first["promises"].as_array().unwrap();
    assert!(promised.len() > 20 && first["outcomes"].as_array().unwrap().is_empty());
    let came = second["outcomes"].as_array().unwrap();
    assert!(came.len() > 20, "{}", came.len());
    for c in came {
        let of = promised.iter().find(|p| p["kernel"] == c["kernel"]).unwrap();
        assert_eq!((&c["run"], &c["hint"], &c["gain_percent"]), (&Json::from(1), &of["hint"], &of["gain_percent"]));
        // The same program on the same GPU model: nothing was changed.
        assert!(c["got_percent"].as_f64().unwrap().abs() < 25.0 && c["outcome"] != "beyond", "{c}");
    }
    let (_, text, _) = home.run(&["runs", "show", "2"], "");
    assert!(text.contains("outcome") && text.contains("(run 1: ") && text.contains(" predicted "), "{text}");
    // Another program has no history.
    let out = home
        .command(&["run", "--tool", "ncu", "--", "/bin/true", "8"], "ok")
        .env("STANDIN_RESULT", unpacked("third_full"))
        .output()
        .unwrap();
    assert_eq!(said(&out).0, 0);
    until("what was promised", || home.show(3)["promises"].as_array().is_some_and(|p| !p.is_empty()));
    assert!(home.show(3)["outcomes"].as_array().unwrap().is_empty());
}
