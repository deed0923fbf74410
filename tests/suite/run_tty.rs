//! Runs in the real explorer in a pseudo-terminal, with mock profilers: record,
//! inspect, select, re-run, compare; and quit.

use super::runs::{Home, pid_in, until};
use super::support::{edited, root};
use super::tty::Session;
use nix::sys::signal::Signal;
use warpscope::launch::runs::process;

fn start(home: &Home, args: &[&str], size: (u16, u16), more: &[(&str, &str)]) -> Session {
    let env = home.env();
    let env: Vec<(&str, &str)> = env.iter().map(|(k, v)| (k.as_str(), v.as_str())).chain(more.iter().copied()).collect();
    Session::start(args, size, &env)
}

#[test]
fn record_look_pick_run_again_and_find_both_in_the_library() {
    let home = Home::new();
    let result = root().join("fixtures/demo/llm_gemm.ncu-rep.zst");
    // Replace the program's folder named in the capture with a folder on this machine.
    let folder = home.folder.path().display();
    let timeline = edited("llm", &format!("UPDATE META_DATA_CAPTURE SET value = '{folder}' WHERE name = 'PROCESS_0:WORKING_DIR'"));
    let more = [("STANDIN_RESULT", &*result.to_string_lossy()), ("STANDIN_REPORT", &*timeline.to_string_lossy())];
    let mut s = start(&home, &["run", "--", "true"], (120, 40), &more);
    s.wait("CatArrayBatchedCopy");
    // The run is judged once the report is read: keys before that would go to a table that is not whole.
    s.wait("What limits the run");
    s.keys("K/192x128\r");
    s.wait("1 of 21");
    s.keys("r");
    s.wait("exact");
    s.keys("R");
    // The result is joined, compared with the selected launch (the mock's launch differs), and shown with its hints.
    s.wait("shared-bandwidth-bound");
    s.wait("differs: ");
    s.keys("L");
    s.wait("run library");
    s.wait("2 runs");
    s.wait("re-run of");
    s.keys("i");
    s.wait("about this run");
    s.keys("\u{1b}");
    s.wait_until("the facts closed", |t| !t.contains("about this run"));
    s.keys("q");
    assert_eq!(s.end(), 0);
    s.assert_restored();
}

#[test]
fn of_a_run_that_has_ended_no_process_stays() {
    let home = Home::new();
    let mut s = start(&home, &["run", "--", "true"], (100, 30), &[]);
    s.wait("CatArrayBatchedCopy");
    // The supervisor has exited and was reaped; the remaining process watches over the terminal.
    until("the supervisor to be gone", || {
        let left = process::descendants(s.pid());
        left.len() == 1 && left.iter().all(|p| p.state != 'Z')
    });
    s.keys("q");
    assert_eq!(s.end(), 0);
}

#[test]
fn quitting_asks_what_becomes_of_the_run() {
    let home = Home::new();
    let mut s = start(&home, &["run", "--", "sleep", "600"], (100, 30), &[]);
    let pid = pid_in(&home.file("profiler.pid"));
    let started = process::read_process(pid).unwrap().started;
    s.wait("running");
    s.keys("q");
    s.wait("a run is in progress");
    s.keys("s");
    assert_eq!(s.end(), 0);
    s.assert_restored();
    assert!(s.text().contains("is being stopped"), "{}", s.text());
    until("the profiler to end", || !process::is_running(pid, started));
}

#[test]
fn a_detached_run_survives_the_session_and_is_attached_again() {
    let home = Home::new();
    let mut s = start(&home, &["run", "--", "sleep", "600"], (100, 30), &[]);
    let pid = pid_in(&home.file("profiler.pid"));
    let started = process::read_process(pid).unwrap().started;
    s.wait("running");
    s.keys("d");
    s.wait("detached");
    // The ssh session ends.
    s.signal(Signal::SIGHUP);
    s.end();
    assert!(process::is_running(pid, started), "it goes on");
    let mut s = start(&home, &["attach"], (100, 30), &[]);
    s.wait("detached");
    s.keys("X");
    s.wait("stop the run?");
    s.keys("s");
    // The run's report is opened.
    s.wait("CatArrayBatchedCopy");
    s.keys("q");
    assert_eq!(s.end(), 0);
    assert!(!process::is_running(pid, started));
}

#[test]
fn a_hangup_ends_a_run_that_was_not_detached() {
    let home = Home::new();
    let mut s = start(&home, &["run", "--", "sleep", "600"], (100, 30), &[]);
    let pid = pid_in(&home.file("profiler.pid"));
    let started = process::read_process(pid).unwrap().started;
    s.wait("running");
    s.signal(Signal::SIGHUP);
    s.end();
    until("the profiler to end", || !process::is_running(pid, started));
}

#[test]
fn without_a_report_the_library_is_home() {
    let home = Home::new();
    let mut s = start(&home, &[], (80, 24), &[]);
    s.wait("Nothing has been recorded yet.");
    s.keys("q");
    assert_eq!(s.end(), 0);
    s.assert_restored();
}

#[test]
fn a_program_may_have_the_terminal_to_itself() {
    let home = Home::new();
    let mut s = start(&home, &["run", "--tty", "--", "sh", "-c", "printf 'name? '; read name; echo hello $name"], (100, 30), &[]);
    s.wait("name?");
    s.keys("ann\n");
    s.wait("CatArrayBatchedCopy");
    s.keys("q");
    assert_eq!(s.end(), 0);
}

#[test]
fn what_has_the_terminal_ends_with_the_explorer_and_leaves_nothing() {
    let home = Home::new();
    let own = home.file("program.pid");
    let program = format!("(trap '' INT HUP; exec sleep 600) & echo $! > {}; wait", own.display());
    let begin = || {
        let _ = std::fs::remove_file(&own);
        let mut s = start(&home, &["run", "--tty", "--", "sh", "-c", &program], (100, 30), &[]);
        let pid = pid_in(&own);
        s.wait_until("the program", |_| process::read_process(pid).is_some());
        (s, pid, process::read_process(pid).unwrap().started)
    };
    // If the program is killed, it cannot print anything.
    let (mut s, pid, started) = begin();
    s.signal(Signal::SIGKILL);
    s.end();
    until("the program to end", || !process::is_running(pid, started));
    // After Ctrl-C, a program that ignores the signal is killed.
    let (mut s, pid, started) = begin();
    s.keys("\u{3}");
    s.wait("CatArrayBatchedCopy");
    assert!(!process::is_running(pid, started), "what was left behind is ended before the report is opened");
    s.keys("q");
    assert_eq!(s.end(), 0);
}

/// Mock of vLLM's server: answers, and records the requests.
const SERVER: &str = r#"
import http.server, os, sys
port = int(sys.argv[sys.argv.index("--port") + 1])
class Handler(http.server.BaseHTTPRequestHandler):
    def answer(self):
        self.rfile.read(int(self.headers.get("Content-Length") or 0))
        with open(os.environ["ASKED"], "a") as f:
            f.write(self.command + " " + self.path + "\n")
        self.send_response(200)
        self.end_headers()
        self.wfile.write(b"here is an answer\n")
    do_GET = do_POST = answer
    def log_message(self, *_):
        pass
http.server.HTTPServer(("127.0.0.1", port), Handler).serve_forever()
"#;

#[test]
fn a_server_is_led_through_its_steps() {
    let tool = |name: &str| std::env::split_paths(&std::env::var_os("PATH").unwrap()).map(|p| p.join(name)).find(|p| p.is_file());
    let (Some(python), Some(curl)) = (tool("python3"), tool("curl")) else {
        println!("no python3 or no curl on PATH: not checked");
        return;
    };
    let mut home = Home::new();
    let bin = home.file("bin");
    std::fs::create_dir(&bin).unwrap();
    std::os::unix::fs::symlink(curl, bin.join("curl")).unwrap();
    let server = bin.join("vllm");
    std::fs::write(&server, format!("#!{}{SERVER}", python.display())).unwrap();
    std::fs::set_permissions(&server, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    home.path = format!("{}:{}", bin.display(), home.path);
    let port = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port().to_string();
    let asked = home.file("asked");
    let args = ["run", "--recipe", "vllm", "--", "vllm", "serve", "m", "--host", "127.0.0.1", "--port", &port];
    let mut s = start(&home, &args, (120, 40), &[("ASKED", &asked.to_string_lossy())]);
    s.wait("▸ wait");
    s.keys(".");
    s.wait("wait: done; then: warm-up");
    s.keys(".");
    s.wait("warm-up: done; then: open");
    s.wait("warpscope: warm-up: here is an answer");
    s.keys(".");
    s.wait("open: done; then: load");
    s.keys(">");
    s.wait("skipped: load");
    s.keys(".");
    s.wait("close: done");
    // The position is saved: another process continues from here.
    until("the steps to be kept", || {
        let db = rusqlite::Connection::open(home.file("data/warpscope/runs.db")).unwrap();
        db.query_row("SELECT step FROM runs", [], |r| r.get::<_, i64>(0)).is_ok_and(|n| n == 5)
    });
    s.keys("X");
    s.wait("stop the run?");
    s.keys("s");
    s.wait("CatArrayBatchedCopy");
    s.keys("q");
    assert_eq!(s.end(), 0);
    let asked = std::fs::read_to_string(asked).unwrap();
    assert_eq!(asked.lines().collect::<Vec<_>>(), ["GET /health", "POST /v1/completions", "POST /start_profile", "POST /stop_profile"]);
}
