//! The real program in a pseudo-terminal: flows, resize, signals, and the state of the terminal
//! afterwards. Tests wait for their expected output.

use super::support::{packed, root, scratch};
use portable_pty::{Child, CommandBuilder, MasterPty, PtySize, native_pty_system};
use std::io::{Read, Write};
use std::num::NonZeroU16;
use std::path::Path;
use std::sync::mpsc::{Receiver, channel};
use std::time::{Duration, Instant};

const LIMIT: Duration = Duration::from_secs(30);

fn cells(n: u16) -> NonZeroU16 {
    NonZeroU16::new(n).unwrap()
}

pub struct Session {
    child: Box<dyn Child + Send + Sync>,
    master: Box<dyn MasterPty + Send>,
    writer: Box<dyn Write + Send>,
    output: Receiver<Vec<u8>>,
    parser: vt100::Parser,
    pub raw: Vec<u8>,
    ended: bool,
}

impl Session {
    pub fn start(args: &[&str], size: (u16, u16), env: &[(&str, &str)]) -> Self {
        Self::start_program(assert_cmd::cargo::cargo_bin!("warpscope").as_ref(), args, size, env)
    }

    fn start_program(program: &Path, args: &[&str], size: (u16, u16), env: &[(&str, &str)]) -> Self {
        let pty = native_pty_system().openpty(PtySize { cols: size.0, rows: size.1, pixel_width: 0, pixel_height: 0 }).unwrap();
        let mut command = CommandBuilder::new(program);
        command.args(args);
        command.cwd(root());
        command.env_clear();
        let home = scratch().to_string_lossy().into_owned();
        // Most flows begin at the kernel table. The file is written only once, because a program that another test
        // starts could read half of it.
        static WRITTEN: std::sync::Once = std::sync::Once::new();
        let config = scratch();
        WRITTEN.call_once(|| {
            std::fs::create_dir_all(config.join("warpscope")).unwrap();
            std::fs::write(config.join("warpscope/config.toml"), "first = \"kernels\"\n").unwrap();
        });
        let config = config.to_string_lossy().into_owned();
        for (name, value) in [
            ("HOME", home.as_str()),
            ("XDG_CONFIG_HOME", config.as_str()),
            ("TERM", "xterm-256color"),
            ("COLORTERM", "truecolor"),
            ("LANG", "C.UTF-8"),
            ("PATH", "/usr/bin:/bin"),
        ] {
            command.env(name, value);
        }
        for (name, value) in env {
            command.env(name, value);
        }
        let child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let mut reader = pty.master.try_clone_reader().unwrap();
        let (send, output) = channel();
        std::thread::spawn(move || {
            let mut buffer = [0; 65536];
            while let Ok(n) = reader.read(&mut buffer) {
                if n == 0 || send.send(buffer[..n].to_vec()).is_err() {
                    break;
                }
            }
        });
        let writer = pty.master.take_writer().unwrap();
        Self {
            child,
            master: pty.master,
            writer,
            output,
            // A terminal may report no size.
            parser: vt100::Parser::new(cells(size.1.max(1)), cells(size.0.max(1)), 0),
            raw: Vec::new(),
            ended: false,
        }
    }

    fn take(&mut self, wait: Duration) -> usize {
        match self.output.recv_timeout(wait) {
            Ok(bytes) => {
                self.parser.process(&bytes);
                self.raw.extend(&bytes);
                bytes.len()
            }
            Err(std::sync::mpsc::RecvTimeoutError::Disconnected) => {
                self.ended = true;
                0
            }
            Err(_) => 0,
        }
    }

    pub fn text(&self) -> String {
        self.parser.screen().contents()
    }

    pub fn wait(&mut self, text: &str) {
        self.wait_until(text, |screen| screen.contains(text));
    }

    pub fn wait_until(&mut self, what: &str, ok: impl Fn(&str) -> bool) {
        let until = Instant::now() + LIMIT;
        while !ok(&self.text()) {
            assert!(Instant::now() < until && !self.ended, "waited for {what:?}, got:\n{}", self.text());
            self.take(Duration::from_millis(100));
        }
    }

    /// Presses a key until the program has exited.
    pub fn press_to_the_end(&mut self, key: &str, after: &str) {
        let until = Instant::now() + LIMIT;
        while !self.ended {
            assert!(Instant::now() < until, "still running after {after:?}:\n{}", self.text());
            // The program may be exiting at this moment.
            let _ = self.writer.write_all(key.as_bytes());
            self.take(Duration::from_millis(100));
        }
    }

    /// Reads output until no more arrives.
    pub fn look(&mut self) {
        while self.take(Duration::from_millis(100)) > 0 {}
    }

    pub fn keys(&mut self, keys: &str) {
        self.writer.write_all(keys.as_bytes()).unwrap();
        self.writer.flush().unwrap();
    }

    /// Waits for the program to exit; returns the exit code.
    pub fn end(&mut self) -> u32 {
        let until = Instant::now() + LIMIT;
        while !self.ended {
            assert!(Instant::now() < until, "still running:\n{}", self.text());
            self.take(Duration::from_millis(100));
        }
        self.child.wait().unwrap().exit_code()
    }

    pub fn assert_restored(&self) {
        let raw = String::from_utf8_lossy(&self.raw);
        let last = |sequence: &str| raw.rfind(sequence).unwrap_or_else(|| panic!("{sequence:?} was never sent"));
        assert!(last("\x1b[?1049l") > last("\x1b[?1049h"), "the alternate screen is left");
        assert!(last("\x1b[?25h") > last("\x1b[?25l"), "the cursor is shown");
        assert!(last("\x1b[?1006l") > last("\x1b[?1006h"), "the mouse is released");
        assert!(last("\x1b[?2004l") > last("\x1b[?2004h"), "pasting is as before");
        assert!(!self.parser.screen().alternate_screen());
    }

    /// Process id of the program.
    pub fn pid(&self) -> i32 {
        i32::try_from(self.child.process_id().unwrap()).unwrap()
    }

    /// Terminal modes, as another program on the terminal sees them.
    pub fn modes(&self) -> nix::sys::termios::Termios {
        nix::sys::termios::tcgetattr(self.tty()).unwrap()
    }

    /// Opens the terminal a second time.
    pub fn tty(&self) -> std::fs::File {
        let flags = nix::fcntl::OFlag::O_NOCTTY.bits();
        std::os::unix::fs::OpenOptionsExt::custom_flags(std::fs::File::options().read(true).write(true), flags)
            .open(self.master.tty_name().unwrap())
            .unwrap()
    }

    pub fn signal(&self, signal: nix::sys::signal::Signal) {
        let pid = i32::try_from(self.child.process_id().unwrap()).unwrap();
        nix::sys::signal::kill(nix::unistd::Pid::from_raw(pid), signal).unwrap();
    }
}

#[test]
fn the_demo_from_what_limits_the_run_to_the_place_and_out() {
    let mut s = Session::start(&["demo", "--first", "overview"], (120, 40), &[]);
    s.wait("Where the time went");
    s.wait("What to do");
    s.keys("i");
    s.wait("Consequences");
    s.keys("\x1b");
    s.wait_until("the page is gone", |t| !t.contains("Consequences"));
    s.keys("\r");
    s.wait("Timeline");
    s.wait("goes to the launch after this idle time");
    s.keys("\r");
    s.wait("duration over time");
    s.keys("K");
    s.wait("group kernel");
    s.keys("O");
    s.wait("Where the time went");
    s.keys("q");
    assert_eq!(s.end(), 0);
    s.assert_restored();
}

/// In runs with different causes, a few keys lead from the verdict to its longest occurrence, to the launch after it,
/// to its command, and back.
#[test]
fn the_path_from_the_verdict_to_the_command_in_six_runs() {
    for run in ["host_compute", "input_wait", "item_loop", "jit_variants", "eval_stall", "late_host_rank0"] {
        let file = root().join(format!("fixtures/triage/{run}.sqlite.zst"));
        let mut s = Session::start(&[&file.display().to_string(), "--first", "overview"], (120, 40), &[]);
        s.wait("Where the time went");
        s.wait("shows it on the timeline");
        s.keys("\r");
        s.wait("In view");
        // A finding about a whole step leads to the step: its idle time is one key away.
        s.wait_until("the place in time", |screen| ["next: ⏎", "next: i"].iter().any(|next| screen.contains(next)));
        if !s.text().contains("goes to the launch after this idle time") {
            s.keys("i");
        }
        s.wait("goes to the launch after this idle time");
        s.keys("\r");
        s.wait("duration over time");
        s.keys("r");
        s.wait("--launch-skip");
        s.keys("\x1b");
        s.wait("duration over time");
        s.keys("\x1b");
        s.wait("In view");
        s.keys("\x1b");
        s.wait("Where the time went");
        s.keys("q");
        assert_eq!(s.end(), 0, "{run}");
        s.assert_restored();
    }
}

#[test]
fn from_a_finding_to_its_place_in_time_to_a_launch_to_its_re_run_and_back() {
    let mut s = Session::start(&["demo", "--first", "overview"], (80, 24), &[]);
    s.wait("Where the time went");
    s.wait("launch-bound");
    s.keys("j");
    s.keys("T");
    s.wait("Timeline");
    s.wait("stream 7");
    s.wait("CUDA calls");
    // Moves down to the stream, and on to a kernel.
    s.keys("j");
    s.keys("+.");
    s.wait("ran on");
    s.wait("called by");
    s.keys("\r");
    s.wait("duration over time");
    s.keys("r");
    s.wait("--launch-skip");
    s.keys("\x1b");
    s.wait("duration over time");
    s.keys("\x1b");
    s.wait("called by");
    // The mouse: zoom at the pointer, and select a row.
    s.keys("\x1b[<64;50;9M");
    s.wait("Timeline");
    s.keys("\x1b[<0;50;9M\x1b[<0;50;9m");
    s.keys("\x1b");
    s.wait("Where the time went");
    s.keys("q");
    assert_eq!(s.end(), 0);
    s.assert_restored();
}

#[test]
fn the_demo_from_table_to_launch_and_out() {
    let mut s = Session::start(&["demo"], (100, 30), &[]);
    // The demo opens on the overview, which also names kernels, and switches to the kernel table once it is read.
    s.wait("group kernel");
    s.wait("CatArrayBatchedCopy");
    s.wait("next:");
    s.keys("\r");
    s.wait("duration over time");
    s.keys("Js");
    s.wait("+6%");
    s.keys("\x1b");
    s.wait("group kernel");
    s.keys("/soft");
    s.wait("filter soft");
    s.keys("\x1b");
    s.wait_until("no filter", |t| !t.contains("filter soft"));
    s.keys("?");
    s.wait("Here: kernels");
    s.keys("\x1b");
    s.wait_until("the table", |t| !t.contains("Here: kernels"));
    s.keys("q");
    assert_eq!(s.end(), 0);
    s.assert_restored();
}

#[test]
fn resizing_at_any_moment() {
    let mut s = Session::start(&["demo"], (120, 40), &[]);
    for (cols, rows) in [(80, 24), (40, 10), (200, 50), (61, 17)] {
        s.master.resize(PtySize { cols, rows, pixel_width: 0, pixel_height: 0 }).unwrap();
        s.parser.screen_mut().set_size(cells(rows), cells(cols));
        let text = if cols < 60 { "warpscope needs 60×16" } else { "GPU busy" };
        s.wait(text);
    }
    s.keys("q");
    assert_eq!(s.end(), 0);
}

#[test]
fn signals_give_the_terminal_back() {
    use nix::sys::signal::Signal;
    for signal in [Signal::SIGTERM, Signal::SIGHUP, Signal::SIGINT] {
        let mut s = Session::start(&["demo"], (80, 24), &[]);
        s.wait("next:");
        s.signal(signal);
        assert_eq!(s.end(), 128 + signal as u32, "{signal}");
        s.assert_restored();
    }
}

#[test]
fn a_panic_gives_the_terminal_back_before_it_is_reported() {
    // Cargo builds the probe with the tests: target/PROFILE/deps/suite-… and target/PROFILE/examples/panic_probe.
    let here = std::env::current_exe().unwrap();
    let probe = here.parent().unwrap().parent().unwrap().join("examples/panic_probe");
    let mut s = Session::start_program(&probe, &[], (80, 24), &[]);
    assert_eq!(s.end(), 101);
    s.assert_restored();
    let raw = String::from_utf8_lossy(&s.raw).into_owned();
    assert!(raw.rfind("on purpose").unwrap() > raw.rfind("\x1b[?1049l").unwrap(), "the message is printed to the screen that stays");
}

#[test]
fn suspending_gives_the_terminal_back_and_takes_it_again() {
    use nix::sys::signal::Signal;
    let mut s = Session::start(&["demo"], (80, 24), &[]);
    s.wait("next:");
    s.keys("\x1a");
    let until = Instant::now() + LIMIT;
    while s.parser.screen().alternate_screen() {
        assert!(Instant::now() < until);
        s.take(Duration::from_millis(50));
    }
    s.assert_restored();
    // A shell resumes a program only after it has stopped.
    let stat = format!("/proc/{}/stat", s.child.process_id().unwrap());
    while !std::fs::read_to_string(&stat).unwrap().contains(") T ") {
        assert!(Instant::now() < until, "it never stopped");
        s.take(Duration::from_millis(20));
    }
    s.signal(Signal::SIGCONT);
    s.wait_until("the screen again", |t| t.contains("next:"));
    s.keys("q");
    assert_eq!(s.end(), 0);
    s.assert_restored();
}

#[test]
fn a_cursor_step_sends_little_and_idling_nothing() {
    let mut s = Session::start(&["demo"], (120, 40), &[]);
    s.wait("over the run");
    while s.take(Duration::from_millis(300)) > 0 {}
    // The step is drawn at once; the details follow when the cursor has been still. On a busy machine, both may arrive
    // together.
    let steps: Vec<usize> = ["j", "k", "j", "k", "j"]
        .into_iter()
        .map(|key| {
            let before = s.raw.len();
            s.keys(key);
            while s.raw.len() == before {
                s.take(Duration::from_millis(50));
            }
            s.raw.len() - before
        })
        .collect();
    assert!(steps.iter().any(|sent| *sent < 1024), "cursor steps sent {steps:?} bytes");
    s.wait("GEMM, judging by");
    // On a busy machine the last details arrive late, after a silence that looks like the end of them. A screen that is
    // drawn again and again without a reason never has a second of silence.
    let mut silent = 0;
    for _ in 0..200 {
        silent = if s.take(Duration::from_millis(250)) > 0 { 0 } else { silent + 1 };
        if silent == 4 {
            break;
        }
    }
    assert_eq!(silent, 4, "an idle screen sends nothing");
    s.keys("q");
    s.end();
}

#[test]
fn copying_sends_osc_52_and_says_where_it_saved_when_it_cannot() {
    let mut s = Session::start(&["demo"], (100, 30), &[]);
    s.wait("21 rows");
    s.wait("shared-bandwidth-bound");
    s.keys("yf");
    s.wait("copied the function name");
    assert!(String::from_utf8_lossy(&s.raw).contains("\x1b]52;c;Q2F0QXJyYXlCYXRjaGVkQ29weQ=="), "CatArrayBatchedCopy in base64");
    s.keys("q");
    s.end();
    let mut s = Session::start(&["demo"], (100, 30), &[("TERM", "linux")]);
    s.wait("21 rows");
    s.wait("shared-bandwidth-bound");
    s.keys("yf");
    s.wait("saved the function name to");
    assert!(!String::from_utf8_lossy(&s.raw).contains("\x1b]52"));
    s.keys("q");
    s.end();
}

/// Saving a screen: in the format of the file's suffix, without overwriting an existing
/// file, and with a one-line error on failure.
#[test]
fn a_screen_is_saved_as_a_file() {
    let folder = tempfile::tempdir().unwrap();
    let mut tty = Session::start(&["demo"], (120, 40), &[]);
    tty.wait("compilation");
    for (name, begins) in [("view.svg", "<svg "), ("view.html", "<!doctype html>"), ("view.txt", " warpscope"), ("view.svg", "")] {
        tty.keys("F");
        tty.wait("save this screen as");
        // Clear the suggested name first.
        tty.keys("\u{15}");
        tty.keys(&format!("{}\r", folder.path().join(name).display()));
        tty.wait("saved");
        if !begins.is_empty() {
            let text = std::fs::read_to_string(folder.path().join(name)).unwrap();
            assert!(text.starts_with(begins) && text.contains("compilation") && !text.contains("save this screen"), "{name}: {text}");
        }
        tty.keys("j");
        tty.look();
    }
    assert!(folder.path().join("view-2.svg").is_file());
    tty.keys("F");
    tty.wait("save this screen as");
    tty.keys("\u{15}view.png\r");
    tty.wait("end the name in .svg, .html or .txt");
    tty.keys("q");
    tty.end();
}

#[test]
fn no_colour_and_no_utf_8_are_obeyed() {
    let mut s = Session::start(&["demo"], (80, 24), &[("NO_COLOR", "1"), ("LANG", "C")]);
    s.wait("next:");
    let raw = String::from_utf8_lossy(&s.raw).into_owned();
    assert!(raw.is_ascii(), "only ASCII is sent");
    let colours: Vec<&str> = raw
        .split("\x1b[")
        .skip(1)
        .filter_map(|s| s.split_once('m').map(|p| p.0))
        .filter(|s| s.bytes().all(|b| b.is_ascii_digit() || b == b';'))
        .flat_map(|s| s.split(';'))
        .filter(|n| n.parse::<u32>().is_ok_and(|n| matches!(n, 30..=38 | 40..=48 | 90..=107)))
        .collect();
    assert!(colours.is_empty(), "no colours are sent: {colours:?}");
    s.keys("q");
    s.end();
}

#[test]
fn what_commands_print_obeys_the_locale_too() {
    let said = |env: &[(&str, &str)], args: &[&str]| {
        let mut s = Session::start(args, (100, 40), env);
        s.end();
        String::from_utf8_lossy(&s.raw).into_owned()
    };
    let plain = said(&[("LANG", "C")], &["help", "words"]);
    assert!(plain.is_ascii() && plain.contains("idle gaps") && plain.contains("10 us"), "{plain}");
    assert!(said(&[("LANG", "C")], &["--ascii=false", "help", "words"]).contains("10 µs"));
    assert!(said(&[], &["help", "words"]).contains("10 µs"));
}

#[test]
fn themes_are_previewed_and_taken_back() {
    let mut s = Session::start(&["demo", "--theme", "dark"], (100, 30), &[]);
    s.wait("next:");
    s.keys("t");
    s.wait("high-contrast");
    s.keys("jj");
    let until = Instant::now() + LIMIT;
    while !String::from_utf8_lossy(&s.raw).contains("48;2;255;255;0m") {
        assert!(Instant::now() < until, "the theme under the selection is shown");
        s.take(Duration::from_millis(50));
    }
    s.keys("\x1b");
    s.wait_until("the list closed", |t| !t.contains("high-contrast"));
    s.keys("q");
    assert_eq!(s.end(), 0);
}

#[test]
fn files_that_cannot_be_opened_are_explained_on_the_screen() {
    // If the only file cannot be read, the explorer exits and prints the reason; with other files, it has its own
    // screen.
    let mut s = Session::start(&["Cargo.toml"], (80, 24), &[]);
    assert_eq!(s.end(), 3);
    let raw = String::from_utf8_lossy(&s.raw).into_owned();
    let after = raw.rsplit_once("\x1b[?1049l").map_or("", |(_, after)| after);
    assert!(after.contains("Cargo.toml: "), "{raw}");
    let mut s = Session::start(&["Cargo.toml", &packed("nogpu").to_string_lossy()], (80, 24), &[]);
    s.wait("This report could not be opened.");
    s.wait_until("only what can be done is offered", |t| t.contains("L library") && t.contains("q quit") && !t.contains("timeline"));
    s.keys("q");
    assert_eq!(s.end(), 0);
    let mut s = Session::start(&[&packed("nogpu").to_string_lossy()], (80, 24), &[]);
    s.wait("No kernels in this report.");
    s.keys("q");
    s.end();
}

#[test]
fn quitting_while_an_export_runs_leaves_no_child() {
    let folder = tempfile::tempdir_in(scratch()).unwrap();
    let (tool, mark, report) = (folder.path().join("nsys"), folder.path().join("pid"), folder.path().join("r.nsys-rep"));
    let script = format!(
        "#!/bin/sh\n[ \"$1\" = --version ] && echo 'version 2025.3.2.1' && exit 0\ntrap '' INT\necho $$ > {}\necho '[ 7%]' >&2\nsleep 600 & wait\n",
        mark.display()
    );
    std::fs::write(&tool, script).unwrap();
    std::fs::set_permissions(&tool, std::os::unix::fs::PermissionsExt::from_mode(0o755)).unwrap();
    std::fs::write(&report, b"NVIDIA Tegra Profiler Report 2025@3@2@1-2v0.").unwrap();
    let mut s = Session::start(&["--nsys", &tool.to_string_lossy(), &report.to_string_lossy()], (100, 30), &[]);
    s.wait("7%");
    let pid = std::fs::read_to_string(&mark).unwrap().trim().to_owned();
    s.keys("q");
    assert_eq!(s.end(), 0);
    assert!(!Path::new("/proc").join(&pid).exists(), "the exporter is gone");
}

#[test]
fn a_command_is_copied_saved_and_its_result_compared() {
    let folder = tempfile::tempdir().unwrap();
    let script = folder.path().join("again.sh");
    let result = root().join("fixtures/ncu/one.ncu-rep.zst");
    let mut s = Session::start(&["fixtures/nsys/single.sqlite.zst"], (110, 34), &[]);
    s.wait("next:");
    s.keys("/saxpy_v2\r");
    s.wait("1 of 5");
    s.keys("\r");
    s.wait("vs p50");
    s.keys("Jf");
    s.keys("r");
    s.wait("--launch-skip 0 --launch-count 1");
    s.wait("exact");
    s.keys("yc");
    s.wait("copied the command");
    let copied = String::from_utf8_lossy(&s.raw).into_owned();
    assert!(copied.contains("\u{1b}]52;c;bmN1IC0tY29uZmlnLWZpbGUgb2Zm"), "OSC 52 with `ncu --config-file off …` in base 64");
    // Line editing works as in a shell: ctrl-u clears the line.
    s.keys("w");
    s.wait("save the script as");
    s.keys("\u{15}");
    s.keys(&script.to_string_lossy());
    s.keys("\r");
    s.wait("saved ");
    let text = std::fs::read_to_string(&script).unwrap();
    assert!(text.starts_with("#!/bin/sh\n") && text.contains("--kernel-name saxpy_v2 \\\n"), "{text}");
    let mode = std::os::unix::fs::PermissionsExt::mode(&std::fs::metadata(&script).unwrap().permissions());
    assert_eq!(mode & 0o100, 0o100, "it can be run");
    // An existing file is not overwritten.
    std::fs::write(&script, "mine").unwrap();
    s.keys("w\u{15}");
    s.keys(&script.to_string_lossy());
    s.keys("\r");
    s.wait("already exists");
    assert_eq!(std::fs::read_to_string(&script).unwrap(), "mine");
    s.keys("v\u{15}");
    s.keys(&result.to_string_lossy());
    s.keys("\r");
    s.wait("differs: grid 35 instead of 6");
    s.keys("\u{1b}");
    s.wait("vs p50");
    s.keys("q");
    assert_eq!(s.end(), 0);
    s.assert_restored();
}

#[test]
fn a_pager_gets_what_a_terminal_would_get() {
    let top = ["top", "fixtures/nsys/single.sqlite.zst"];
    // A pager that waits for the keyboard and handles Ctrl-C itself.
    let pager = "trap '' INT; sed 's/^/| /'; echo paged; read -r line < /dev/tty";
    let mut s = Session::start(&top, (120, 40), &[("WARPSCOPE_PAGER", pager)]);
    s.wait("paged");
    s.keys("\x03");
    s.keys("\n");
    assert_eq!(s.end(), 0);
    let text = String::from_utf8_lossy(&s.raw).into_owned();
    assert!(text.contains("| \x1b[1m#  kernel") && text.contains("stddev\x1b[0m"), "{text}");
    let mut s = Session::start(&top, (120, 40), &[("WARPSCOPE_PAGER", "no-such-pager")]);
    assert_eq!(s.end(), 4);
    assert!(String::from_utf8_lossy(&s.raw).contains("WARPSCOPE_PAGER=no-such-pager: "));
}
