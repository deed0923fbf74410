//! Terminal state after careless or hostile events: unfinished escape sequences, stops, hangups, kills.

use super::support::{edited, root, scratch};
use super::tty::Session;
use nix::sys::signal::Signal;
use nix::sys::termios::{LocalFlags, SetArg, Termios, tcsetattr};
use portable_pty::{CommandBuilder, PtySize, native_pty_system};
use std::io::Read;

const FILE: &str = "fixtures/nsys/single.sqlite.zst";

fn explorer() -> Session {
    let mut s = Session::start(&[FILE], (100, 30), &[]);
    s.wait("next:");
    s
}

fn same(a: &Termios, b: &Termios) -> bool {
    (a.input_flags, a.output_flags, a.local_flags) == (b.input_flags, b.output_flags, b.local_flags)
}

#[test]
fn unfinished_sequences_leave_the_keyboard_alive() {
    // A key's sequence times out; a paste also ends with Escape.
    for begun in ["\x1b[?", "\x1b[<1;1", "\x1b[200~some text that is never ended", "\x1b[1;", "\x1bO"] {
        let mut s = explorer();
        s.keys(begun);
        s.look();
        s.keys("\x1b");
        s.look();
        // After the timeout, keys are read as keys again.
        s.press_to_the_end("q", begun);
        assert_eq!(s.end(), 0, "{begun:?}");
        s.assert_restored();
    }
}

#[test]
fn after_a_stop_that_gave_no_warning_the_terminal_is_the_explorers_again() {
    let mut s = explorer();
    let raw = s.modes();
    s.signal(Signal::SIGSTOP);
    // The shell restores cooked mode when a job stops.
    let mut cooked = raw.clone();
    cooked.local_flags |= LocalFlags::ICANON | LocalFlags::ECHO | LocalFlags::ISIG;
    tcsetattr(s.tty(), SetArg::TCSANOW, &cooked).unwrap();
    s.signal(Signal::SIGCONT);
    s.wait_until("raw modes", |_| true);
    super::runs::until("raw modes", || same(&s.modes(), &raw));
    s.keys("q");
    assert_eq!(s.end(), 0);
    s.assert_restored();
}

#[test]
fn whatever_ends_the_explorer_the_terminal_comes_back() {
    for signal in [Signal::SIGABRT, Signal::SIGKILL] {
        let mut s = explorer();
        let raw = s.modes();
        assert!(!raw.local_flags.contains(LocalFlags::ICANON));
        s.signal(signal);
        s.end();
        s.assert_restored();
    }
}

/// The window is closed: the terminal is gone, and with it stdout and stderr.
#[test]
fn a_closed_window_is_a_hangup() {
    for args in [&[FILE][..], &["demo"]] {
        let pty = native_pty_system().openpty(PtySize { cols: 100, rows: 30, pixel_width: 0, pixel_height: 0 }).unwrap();
        let mut command = CommandBuilder::new(assert_cmd::cargo::cargo_bin!("warpscope"));
        command.args(args);
        command.cwd(root());
        command.env_clear();
        for (name, value) in
            [("HOME", &*scratch().to_string_lossy()), ("TERM", "xterm-256color"), ("LANG", "C.UTF-8"), ("PATH", "/usr/bin:/bin")]
        {
            command.env(name, value);
        }
        let mut child = pty.slave.spawn_command(command).unwrap();
        drop(pty.slave);
        let mut reader = pty.master.try_clone_reader().unwrap();
        let (mut seen, mut buffer) = (Vec::new(), [0; 4096]);
        while !String::from_utf8_lossy(&seen).contains("\x1b[?1049h") {
            let n = reader.read(&mut buffer).unwrap();
            seen.extend_from_slice(&buffer[..n]);
        }
        drop((reader, pty.master));
        assert_eq!(child.wait().unwrap().exit_code(), 129);
    }
}

#[test]
fn a_terminal_without_a_size_gets_nothing_raw() {
    let evil = "UPDATE StringIds SET value = char(27) || ']52;c;UFdORUQ=' || char(7) || char(27) || '[2J' || char(155) || '31mk' WHERE id IN (SELECT demangledName FROM CUPTI_ACTIVITY_KIND_KERNEL UNION SELECT shortName FROM CUPTI_ACTIVITY_KIND_KERNEL)";
    let path = edited("single", evil);
    for format in ["csv", "table", "md", "json"] {
        for command in ["top", "launches"] {
            let mut s = Session::start(&[command, "--format", format, path.to_str().unwrap()], (0, 0), &[]);
            assert_eq!(s.end(), 0);
            let text = String::from_utf8_lossy(&s.raw).into_owned();
            // The only legitimate escape sequences are those around warpscope's own bold heading; remove them first.
            let bold = text.lines().next().and_then(|l| l.strip_prefix("\x1b[1m")?.trim_end().strip_suffix("\x1b[0m"));
            assert_eq!(bold.is_some(), format == "table", "{text:?}");
            let text = bold.map_or(text.clone(), |head| text.replacen(&format!("\x1b[1m{head}\x1b[0m"), "", 1));
            let raw = |c: char| c.is_control() && !matches!(c, '\n' | '\r');
            assert!(text.contains("31mk") && !text.contains(raw), "{command} {format}: {text:?}");
        }
    }
}
