//! Copies text through the terminal (OSC 52), which works over ssh; inside tmux and screen, the sequence is wrapped so
//! that they pass it through. If the terminal has no clipboard access, the text is saved to a file, and the user gets
//! its path.

use crossterm::Command;
use crossterm::clipboard::CopyToClipboard;

/// Maximum sequence length in bytes; some terminals silently drop longer ones.
const MOST: usize = 74_000;
/// Maximum number of bytes that screen passes through at once.
const SCREEN_CHUNK: usize = 512;

/// Multiplexer between this program and the terminal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Between {
    Nothing,
    Tmux,
    Screen,
}

/// Detects the multiplexer from environment variables.
pub fn detect_multiplexer(variable: impl Fn(&str) -> Option<String>) -> Between {
    let set = |name: &str| variable(name).is_some_and(|v| !v.is_empty());
    if set("TMUX") {
        Between::Tmux
    } else if set("STY") || variable("TERM").is_some_and(|t| t.starts_with("screen")) {
        Between::Screen
    } else {
        Between::Nothing
    }
}

/// Returns true for terminals known to have no clipboard access.
fn without_clipboard(term: &str) -> bool {
    term.is_empty() || term == "dumb" || term == "linux" || term.starts_with("vt1") || term.starts_with("vt2")
}

/// Method of copying text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Plan {
    /// Send these bytes to the terminal.
    Send(Vec<u8>),
    /// Save the text to a file, for this reason.
    Save(&'static str),
}

/// Decides whether text can be sent to the terminal or must be saved to a file.
pub fn plan_copy(text: &str, term: &str, between: Between) -> Plan {
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
            // tmux passes the wrapped sequence through to the outer terminal if allowed, and handles the plain sequence
            // itself if `set-clipboard` is on.
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
        match plan_copy("hello", "xterm-256color", between) {
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
        assert!(matches!(plan_copy("x", "linux", Between::Nothing), Plan::Save(_)));
        assert!(matches!(plan_copy(&"x".repeat(100_000), "xterm", Between::Nothing), Plan::Save(_)));
    }
}
