//! Copies through the terminal (OSC 52), which works over ssh; inside tmux and screen the sequence is wrapped so that they pass it on.
//! Where the terminal cannot, the text is saved to a file and the user is told where.

use crossterm::Command;
use crossterm::clipboard::CopyToClipboard;

/// Bytes that terminals take at least; more is dropped by some without a word.
const MOST: usize = 74_000;
/// screen passes on at most this many bytes at once.
const SCREEN_CHUNK: usize = 512;

/// Which program is between us and the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    /// None.
    Nothing,
    Tmux,
    Screen,
}

/// What the environment says.
#[must_use]
pub fn between(variable: impl Fn(&str) -> Option<String>) -> Between {
    let set = |name: &str| variable(name).is_some_and(|v| !v.is_empty());
    if set("TMUX") {
        Between::Tmux
    } else if set("STY") || variable("TERM").is_some_and(|t| t.starts_with("screen")) {
        Between::Screen
    } else {
        Between::Nothing
    }
}

/// Terminals that are known to have no clipboard.
fn without_clipboard(term: &str) -> bool {
    term.is_empty() || term == "dumb" || term == "linux" || term.starts_with("vt1") || term.starts_with("vt2")
}

/// What to do to copy a text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Send this to the terminal.
    Send(Vec<u8>),
    /// Save it to a file, for this reason.
    Save(&'static str),
}

/// Decides how to copy.
#[must_use]
pub fn plan(text: &str, term: &str, between: Between) -> Plan {
    if without_clipboard(term) {
        return Plan::Save("this terminal has no clipboard access");
    }
    let mut sequence = String::new();
    if CopyToClipboard::to_clipboard_from(text).write_ansi(&mut sequence).is_err() || sequence.len() > MOST {
        return Plan::Save("too long for a terminal's clipboard");
    }
    let mut out = Vec::new();
    match between {
        Between::Nothing => out.extend(sequence.bytes()),
        Between::Tmux => {
            // Passed on to the outer terminal where that is allowed, and taken by tmux itself where `set-clipboard` is on.
            out.extend(b"\x1bPtmux;");
            out.extend(sequence.replace('\x1b', "\x1b\x1b").bytes());
            out.extend(b"\x1b\\");
            out.extend(sequence.bytes());
        }
        Between::Screen => {
            for chunk in sequence.replace("\x1b\\", "\x07").as_bytes().chunks(SCREEN_CHUNK) {
                out.extend(b"\x1bP");
                out.extend(chunk);
                out.extend(b"\x1b\\");
            }
        }
    }
    Plan::Send(out)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn sent(between: Between) -> String {
        match plan("hello", "xterm-256color", between) {
            Plan::Send(bytes) => String::from_utf8(bytes).unwrap(),
            Plan::Save(why) => panic!("{why}"),
        }
    }

    #[test]
    fn the_sequence_reaches_the_terminal_through_multiplexers() {
        assert!(sent(Between::Nothing).starts_with("\x1b]52;c;aGVsbG8="));
        let tmux = sent(Between::Tmux);
        assert!(tmux.starts_with("\x1bPtmux;\x1b\x1b]52;c;aGVsbG8=") && tmux.contains("\x1b\\\x1b]52;c;"));
        assert!(sent(Between::Screen).starts_with("\x1bP\x1b]52;c;aGVsbG8="));
    }

    #[test]
    fn what_cannot_be_copied_is_saved() {
        assert!(matches!(plan("x", "linux", Between::Nothing), Plan::Save(_)));
        assert!(matches!(plan(&"x".repeat(100_000), "xterm", Between::Nothing), Plan::Save(_)));
    }
}
