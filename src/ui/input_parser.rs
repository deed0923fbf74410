//! Parser that turns terminal input bytes into events.
//!
//! crossterm's own reader waits indefinitely for the rest of an incomplete sequence (`ESC [ ?`, a truncated mouse
//! report, a paste without its end) and swallows every key until then. This parser drops a broken sequence, and ends
//! an unfinished one if nothing follows for a while ([`Input::idle`]).

use crossterm::event::{Event, KeyCode, KeyEvent, KeyModifiers, MouseButton, MouseEvent, MouseEventKind};
use std::time::Duration;

/// Timeout for the rest of a key sequence: terminals send a sequence at once, and networks split it into two packets at
/// most.
const KEY: Duration = Duration::from_millis(50);
/// Timeout after a lone Escape, which is also a key: less than a frame.
const ESCAPE: Duration = Duration::from_millis(10);
/// Timeout within a paste: over a poor connection, a paste arrives in pieces.
const PASTE: Duration = Duration::from_secs(3);
/// Maximum length of a sequence, in bytes.
const LONGEST: usize = 64;
/// Maximum length of a terminal response, in bytes.
const LONGEST_ANSWER: usize = 4096;
/// Minimum length, in bytes, for input to be treated as the rest of an abandoned paste: more than any user types at
/// once.
const BURST: usize = 12;

const CTRL_C: &[u8] = b"\x03";
const PASTE_BEGIN: &[u8] = b"\x1b[200~";
const PASTE_END: &[u8] = b"\x1b[201~";

/// Buffered bytes that do not form an event yet.
#[derive(Debug, Default)]
pub struct Input {
    bytes: Vec<u8>,
    /// Text of an unfinished paste.
    paste: Option<Vec<u8>>,
    /// True if a paste was ended by a timeout.
    given_up: bool,
}

/// Result of parsing the start of the buffer.
enum Next {
    /// An event (`None` if it is ignored), and its length in bytes.
    Event(Option<Event>, usize),
    Paste,
    /// More bytes are needed.
    Unfinished,
}

fn key_event(code: KeyCode, modifiers: KeyModifiers) -> Event {
    Event::Key(KeyEvent::new(code, modifiers))
}

impl Input {
    /// Adds bytes and returns the events that they complete.
    pub fn feed(&mut self, bytes: &[u8]) -> Vec<Event> {
        // Users press Ctrl-C if the keyboard seems dead; terminals never send it within a paste.
        if self.paste.is_some() && bytes == CTRL_C {
            return self.idle();
        }
        // If a paste was abandoned after the first byte of the end marker, skip the rest of the marker.
        let bytes = bytes.strip_prefix(&PASTE_END[1..]).filter(|_| self.given_up).unwrap_or(bytes);
        if self.given_up && self.bytes.is_empty() {
            // A single sequence, such as a mouse report, is not part of a paste.
            let text = !bytes.starts_with(b"\x1b") || bytes.windows(PASTE_END.len()).any(|w| w == PASTE_END);
            if bytes.len() >= BURST && text && !bytes.starts_with(PASTE_BEGIN) {
                self.paste = Some(Vec::new());
            }
            self.given_up = self.paste.is_some();
        }
        self.bytes.extend_from_slice(bytes);
        let mut out = Vec::new();
        loop {
            if let Some(text) = &mut self.paste {
                let Some(at) = self.bytes.windows(PASTE_END.len()).position(|w| w == PASTE_END) else {
                    // Only part of the end marker may have arrived.
                    let keep = (1..PASTE_END.len()).rev().find(|&n| self.bytes.ends_with(&PASTE_END[..n])).unwrap_or(0);
                    text.extend(self.bytes.drain(..self.bytes.len() - keep));
                    return out;
                };
                text.extend(self.bytes.drain(..at));
                self.bytes.drain(..PASTE_END.len());
                let text = self.paste.take().unwrap_or_default();
                // Discard the rest of an abandoned paste.
                if !std::mem::take(&mut self.given_up) {
                    out.push(Event::Paste(String::from_utf8_lossy(&text).into_owned()));
                }
                continue;
            }
            if self.bytes.is_empty() {
                return out;
            }
            match next(&self.bytes) {
                Next::Event(event, taken) => {
                    self.bytes.drain(..taken);
                    out.extend(event);
                }
                Next::Paste => {
                    self.bytes.drain(..PASTE_BEGIN.len());
                    (self.paste, self.given_up) = (Some(Vec::new()), false);
                }
                Next::Unfinished => return out,
            }
        }
    }

    /// Timeout before [`Input::idle`] is due; `None` if there is no unfinished input.
    pub fn idle_timeout(&self) -> Option<Duration> {
        match self.paste {
            // A lone ESC is the Escape key, which also ends a paste.
            Some(_) if self.bytes == b"\x1b" => Some(KEY),
            Some(_) => Some(PASTE),
            // This is nearly always a real key press: respond quickly.
            None if self.bytes == b"\x1b" => Some(ESCAPE),
            None => (!self.bytes.is_empty()).then_some(KEY),
        }
    }

    /// Handles a timeout: unfinished input becomes the Escape key or a paste, or is dropped.
    pub fn idle(&mut self) -> Vec<Event> {
        if let Some(mut text) = self.paste.take() {
            text.append(&mut self.bytes);
            if text.last() == Some(&0x1b) {
                text.pop();
            }
            let first = !std::mem::replace(&mut self.given_up, true);
            return if first { vec![Event::Paste(String::from_utf8_lossy(&text).into_owned())] } else { Vec::new() };
        }
        let bytes = std::mem::take(&mut self.bytes);
        match bytes[..] {
            [0x1b] => vec![key_event(KeyCode::Esc, KeyModifiers::NONE)],
            // Alt plus a key that can also begin a sequence.
            [0x1b, c @ (b'[' | b'O' | b']' | b'P' | b'_' | b'^' | b'X')] => {
                vec![key_event(KeyCode::Char(char::from(c)), KeyModifiers::ALT)]
            }
            _ => Vec::new(),
        }
    }
}

fn next(bytes: &[u8]) -> Next {
    match bytes {
        [0x1b] | [0x1b, b'O'] => Next::Unfinished,
        [0x1b, b'[', rest @ ..] => parse_csi(bytes, rest),
        [0x1b, b'O', b'M', ..] => Next::Event(Some(key_event(KeyCode::Enter, KeyModifiers::NONE)), 3),
        [0x1b, b'O', last, ..] => Next::Event(function_key(*last).map(|code| key_event(code, KeyModifiers::NONE)), 3),
        // The Escape key, followed by another sequence.
        [0x1b, 0x1b, ..] => Next::Event(Some(key_event(KeyCode::Esc, KeyModifiers::NONE)), 1),
        // Late responses of the terminal, such as colors or its name, which the user did not type.
        [0x1b, b']' | b'P' | b'_' | b'^' | b'X', rest @ ..] => match response_length(rest) {
            Some(length) => Next::Event(None, 2 + length),
            None if rest.len() > LONGEST_ANSWER => Next::Event(None, bytes.len()),
            None => Next::Unfinished,
        },
        [0x1b, rest @ ..] => match parse_character(rest) {
            Next::Event(Some(Event::Key(k)), n) => Next::Event(Some(key_event(k.code, k.modifiers | KeyModifiers::ALT)), n + 1),
            Next::Event(other, n) => Next::Event(other, n + 1),
            unfinished => unfinished,
        },
        _ => parse_character(bytes),
    }
}

/// Length of a terminal response including its terminator (BEL, or `ESC \`).
fn response_length(rest: &[u8]) -> Option<usize> {
    let bell = rest.iter().position(|&b| b == 7).map(|at| at + 1);
    let string = rest.windows(2).position(|w| w == b"\x1b\\").map(|at| at + 2);
    bell.into_iter().chain(string).min()
}

/// Parses a character or a control key.
fn parse_character(bytes: &[u8]) -> Next {
    let Some(&first) = bytes.first() else { return Next::Unfinished };
    let control = |c: u8| key_event(KeyCode::Char(char::from(c)), KeyModifiers::CONTROL);
    let event = match first {
        b'\r' => key_event(KeyCode::Enter, KeyModifiers::NONE),
        b'\t' => key_event(KeyCode::Tab, KeyModifiers::NONE),
        0x7f => key_event(KeyCode::Backspace, KeyModifiers::NONE),
        0 => control(b' '),
        0x01..=0x1a => control(first - 1 + b'a'),
        0x1b => key_event(KeyCode::Esc, KeyModifiers::NONE),
        0x1c..=0x1f => control(first - 0x1c + b'4'),
        0x20..=0x7e => character_event(char::from(first)),
        _ => return parse_utf8(bytes, first),
    };
    Next::Event(Some(event), 1)
}

fn character_event(c: char) -> Event {
    key_event(KeyCode::Char(c), if c.is_uppercase() { KeyModifiers::SHIFT } else { KeyModifiers::NONE })
}

fn parse_utf8(bytes: &[u8], first: u8) -> Next {
    let length = match first {
        0xc2..=0xdf => 2,
        0xe0..=0xef => 3,
        0xf0..=0xf4 => 4,
        // Invalid first byte of a character: skip it.
        _ => return Next::Event(None, 1),
    };
    let there = bytes.len().min(length);
    match std::str::from_utf8(&bytes[..there]) {
        Ok(text) => Next::Event(text.chars().next().map(character_event), length),
        Err(e) if e.error_len().is_none() => Next::Unfinished,
        Err(_) => Next::Event(None, 1),
    }
}

/// Parses `ESC [`, parameters, and a final letter.
fn parse_csi(bytes: &[u8], rest: &[u8]) -> Next {
    // The Linux console sends its first function keys as `ESC [ [ A`.
    if let [b'[', more @ ..] = rest {
        return match more.first() {
            None => Next::Unfinished,
            Some(&c @ b'A'..=b'E') => Next::Event(Some(key_event(KeyCode::F(c - b'A' + 1), KeyModifiers::NONE)), 4),
            Some(_) => Next::Event(None, 3),
        };
    }
    let Some(at) = rest.iter().position(|b| !(0x20..=0x3f).contains(b)) else {
        return if rest.len() > LONGEST { Next::Event(None, bytes.len()) } else { Next::Unfinished };
    };
    let (parameters, last) = (&rest[..at], rest[at]);
    let taken = 2 + at + 1;
    if at > LONGEST || !(0x40..=0x7e).contains(&last) {
        // The sequence is incomplete: resume parsing with the unexpected byte.
        return Next::Event(None, 2 + at);
    }
    if bytes.starts_with(PASTE_BEGIN) {
        return Next::Paste;
    }
    // Legacy mouse reports have three bytes after the letter.
    if last == b'M' && parameters.is_empty() {
        let Some(&[button, column, row]) = rest.get(at + 1..at + 4).and_then(|b| <&[u8; 3]>::try_from(b).ok()) else {
            return Next::Unfinished;
        };
        let [button, column, row] = [button, column, row].map(|b| u16::from(b.saturating_sub(32)));
        return Next::Event(mouse_event(button, column, row, button & 3 == 3), taken + 3);
    }
    let private = parameters.first().is_some_and(|b| b"<=>?".contains(b));
    let text = std::str::from_utf8(if private { &parameters[1..] } else { parameters }).unwrap_or_default();
    // In `code:shifted:base`, the first number is the key.
    let number = |i: usize| text.split(';').nth(i).and_then(|n| n.split(':').next()).and_then(|n| n.parse::<u16>().ok());
    if private {
        let report = if parameters[0] == b'<' && matches!(last, b'M' | b'm') { number(0).zip(number(1)).zip(number(2)) } else { None };
        return Next::Event(report.and_then(|((b, x), y)| mouse_event(b, x, y, last == b'm')), taken);
    }
    // Some terminals write mouse reports in decimal but omit the `<` marker.
    if let (b'M', Some(button), Some(column), Some(row)) = (last, number(0), number(1), number(2)) {
        let button = button.saturating_sub(32);
        return Next::Event(mouse_event(button, column, row, button & 0b110_0011 == 3), taken);
    }
    let modifiers = number(1).map_or(KeyModifiers::NONE, decode_modifiers);
    let code = match last {
        b'~' => number(0).and_then(editing_key),
        b'Z' => Some(KeyCode::BackTab),
        // Some terminals report each key by its code.
        b'u' => number(0).and_then(|n| char::from_u32(n.into())).map(|c| match c {
            '\r' => KeyCode::Enter,
            '\t' => KeyCode::Tab,
            '\u{1b}' => KeyCode::Esc,
            '\u{7f}' => KeyCode::Backspace,
            c => KeyCode::Char(c),
        }),
        _ => function_key(last),
    };
    let modifiers = if code == Some(KeyCode::BackTab) { modifiers | KeyModifiers::SHIFT } else { modifiers };
    Next::Event(code.map(|code| key_event(code, modifiers)), taken)
}

/// Decodes modifiers: one more than the sum of 1 for Shift, 2 for Alt and 4 for Control.
fn decode_modifiers(n: u16) -> KeyModifiers {
    let bits = n.saturating_sub(1);
    [(1, KeyModifiers::SHIFT), (2, KeyModifiers::ALT), (4, KeyModifiers::CONTROL)]
        .into_iter()
        .filter(|(bit, _)| bits & bit != 0)
        .fold(KeyModifiers::NONE, |all, (_, m)| all | m)
}

/// Function or cursor key of a sequence, by the final letter.
fn function_key(last: u8) -> Option<KeyCode> {
    Some(match last {
        b'A' => KeyCode::Up,
        b'B' => KeyCode::Down,
        b'C' => KeyCode::Right,
        b'D' => KeyCode::Left,
        b'F' => KeyCode::End,
        b'H' => KeyCode::Home,
        c @ b'P'..=b'S' => KeyCode::F(c - b'P' + 1),
        _ => return None,
    })
}

/// Key of a sequence `ESC [ number ~`.
fn editing_key(number: u16) -> Option<KeyCode> {
    let f = |first: u16, at: u8| u8::try_from(number - first).ok().map(|n| KeyCode::F(at + n));
    match number {
        1 | 7 => Some(KeyCode::Home),
        2 => Some(KeyCode::Insert),
        3 => Some(KeyCode::Delete),
        4 | 8 => Some(KeyCode::End),
        5 => Some(KeyCode::PageUp),
        6 => Some(KeyCode::PageDown),
        11..=15 => f(11, 1),
        17..=21 => f(17, 6),
        23..=24 => f(23, 11),
        _ => None,
    }
}

/// Creates a mouse event. Columns and rows in the report are 1-based.
fn mouse_event(button: u16, column: u16, row: u16, released: bool) -> Option<Event> {
    let which = match button & 3 {
        0 => MouseButton::Left,
        1 => MouseButton::Middle,
        _ => MouseButton::Right,
    };
    let kind = match (button & 0b1100_0000, button & 0b10_0000 != 0) {
        (0, false) if released => MouseEventKind::Up(which),
        (0, false) => MouseEventKind::Down(which),
        (0, true) if button & 3 == 3 => MouseEventKind::Moved,
        (0, true) => MouseEventKind::Drag(which),
        (64, _) => match button & 3 {
            0 => MouseEventKind::ScrollUp,
            1 => MouseEventKind::ScrollDown,
            2 => MouseEventKind::ScrollLeft,
            _ => MouseEventKind::ScrollRight,
        },
        _ => return None,
    };
    let held = [(4, KeyModifiers::SHIFT), (8, KeyModifiers::ALT), (16, KeyModifiers::CONTROL)];
    let modifiers = held.into_iter().filter(|(bit, _)| button & bit != 0).fold(KeyModifiers::NONE, |all, (_, m)| all | m);
    Some(Event::Mouse(MouseEvent { kind, column: column.saturating_sub(1), row: row.saturating_sub(1), modifiers }))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    /// Formats keys as `ctrl-c`, and other events by kind.
    fn shown(events: Vec<Event>) -> Vec<String> {
        let one = |e: Event| match e {
            Event::Key(k) => {
                let code = match k.code {
                    KeyCode::Char(c) => c.to_string(),
                    other => format!("{other:?}").to_lowercase(),
                };
                let of =
                    |m, word| if k.modifiers.contains(m) && !matches!(k.code, KeyCode::Char(c) if c.is_uppercase()) { word } else { "" };
                format!(
                    "{}{}{}{code}",
                    of(KeyModifiers::CONTROL, "ctrl-"),
                    of(KeyModifiers::ALT, "alt-"),
                    of(KeyModifiers::SHIFT, "shift-")
                )
            }
            Event::Paste(text) => format!("paste {text}"),
            Event::Mouse(m) => format!("{:?} {},{}", m.kind, m.column, m.row),
            other => format!("{other:?}"),
        };
        events.into_iter().map(one).collect()
    }

    fn all(bytes: &[u8]) -> Vec<String> {
        let mut input = Input::default();
        let mut events = input.feed(bytes);
        events.extend(input.idle());
        shown(events)
    }

    #[test]
    fn keys_as_terminals_send_them() {
        assert_eq!(all(b"jG\r\t\x7f\x03\x00"), ["j", "G", "enter", "tab", "backspace", "ctrl-c", "ctrl- "]);
        assert_eq!(all("é→".as_bytes()), ["é", "→"]);
        assert_eq!(
            all(b"\x1b[A\x1bOB\x1b[1;5C\x1b[1;3D\x1b[H\x1b[4~\x1b[5~\x1b[6~\x1b[Z"),
            ["up", "down", "ctrl-right", "alt-left", "home", "end", "pageup", "pagedown", "shift-backtab"]
        );
        assert_eq!(all(b"\x1bOP\x1b[15~\x1b[24~\x1b[[B\x1b[3~\x1b[2~"), ["f(1)", "f(5)", "f(12)", "f(2)", "delete", "insert"]);
        assert_eq!(all(b"\x1bx\x1b\x1bq\x1b"), ["alt-x", "esc", "alt-q", "esc"]);
        assert_eq!(all(b"\x1b[97;5u\x1b[13u"), ["ctrl-a", "enter"]);
        assert_eq!(all(b"\x1b["), ["alt-["]);
        assert_eq!(all(b"\x1b]11;rgb:0000/0000/0000\x1b\\q\x1bP>|name\x1b\\\x1b]4;1;x\x07j"), ["q", "j"], "a terminal's late answers");
    }

    #[test]
    fn the_mouse_in_both_forms() {
        assert_eq!(
            all(b"\x1b[<0;3;4M\x1b[<0;3;4m\x1b[<64;1;1M\x1b[<35;2;2M"),
            ["Down(Left) 2,3", "Up(Left) 2,3", "ScrollUp 0,0", "Moved 1,1"]
        );
        assert_eq!(all(b"\x1b[M #$"), ["Down(Left) 2,3"]);
        assert_eq!(all(b"\x1b[32;3;4M\x1b[67;2;2M\x1b[35;3;4M"), ["Down(Left) 2,3", "Moved 1,1", "Up(Right) 2,3"]);
    }

    #[test]
    fn a_paste_is_one_event_however_it_is_cut() {
        let bytes = b"\x1b[200~a\nb \x1b[31m\x1b[201~q";
        for cut in 0..bytes.len() {
            let mut input = Input::default();
            let mut events = input.feed(&bytes[..cut]);
            events.extend(input.feed(&bytes[cut..]));
            assert_eq!(shown(events), ["paste a\nb \x1b[31m", "q"], "cut at {cut}");
        }
    }

    #[test]
    fn nothing_that_is_broken_off_swallows_the_keys_after_it() {
        // The next key ends a sequence that has no terminator.
        assert_eq!(all(b"\x1b[?jj"), ["j"]);
        assert_eq!(all(b"\x1b[<1;1jj"), ["j"]);
        assert_eq!(all(b"\x1b[1;\x1b[Aj"), ["up", "j"]);
        assert_eq!(all(&[b"\x1b[".as_slice(), &[b'1'; 200], b"q"].concat()).last().map(String::as_str), Some("q"));
        // Otherwise, the timeout ends it.
        for begun in [&b"\x1b[?"[..], b"\x1b[<1;1", b"\x1b[1;5", b"\xe2\x86", b"\x1b[M a"] {
            let mut input = Input::default();
            assert_eq!(shown(input.feed(begun)), [""; 0]);
            assert_eq!(input.idle_timeout(), Some(KEY));
            assert_eq!(shown(input.idle()), [""; 0]);
            assert_eq!(shown(input.feed(b"q")), ["q"], "after {begun:?}");
        }
    }

    #[test]
    fn a_paste_without_an_end_ends_and_its_late_rest_is_no_keys() {
        let mut input = Input::default();
        assert_eq!(shown(input.feed(b"\x1b[200~abc")), [""; 0]);
        assert_eq!(input.idle_timeout(), Some(PASTE));
        assert_eq!(shown(input.idle()), ["paste abc"]);
        // Much later, the rest of the paste must not be parsed as `R` and Enter.
        assert_eq!(shown(input.feed(b"R\rmore of the text\x1b[201~j")), ["j"]);
        let mut input = Input::default();
        input.feed(b"\x1b[200~abc");
        input.idle();
        assert_eq!(shown(input.feed(b"j")), ["j"], "somebody types");
        // Ctrl-C ends the wait.
        let mut input = Input::default();
        input.feed(b"\x1b[200~abc");
        assert_eq!(shown(input.feed(b"\x03")), ["paste abc"]);
        assert_eq!(shown(input.feed(b"q")), ["q"]);
        let mut input = Input::default();
        input.feed(b"\x1b[200~abc");
        assert_eq!(shown(input.feed(b"\x1b")), [""; 0]);
        assert_eq!(input.idle_timeout(), Some(KEY));
        assert_eq!(shown(input.idle()), ["paste abc"]);
        assert_eq!(shown(input.feed(b"[201~q")), ["q"], "it was the end, cut");
    }

    proptest! {
        #[test]
        fn any_bytes_in_any_pieces_leave_the_keyboard_alive(pieces in prop::collection::vec(prop::collection::vec(any::<u8>(), 0..12), 0..12)) {
            let mut input = Input::default();
            for piece in &pieces {
                input.feed(piece);
            }
            while input.idle_timeout().is_some() {
                input.idle();
            }
            prop_assert_eq!(shown(input.feed(b"q")), ["q"]);
        }
    }
}
