//! Splits a trace into events and other top-level values, looking only at brackets and strings.
//!
//! Traces may be gigabytes in size and are not always valid JSON (quotes and line breaks in names, `nan`, a missing
//! end), so the splitter does no more than find the ends of values. A quote ends a string only if the text that
//! follows it may come after a string, because kineto does not escape quotes in Python names.

use std::io::{Error, ErrorKind, Read};

/// Default number of bytes to read at a time.
const READ: usize = 1 << 18;
/// Size of the events in a batch, bytes.
const BATCH: usize = 1 << 20;
/// Maximum size of an event or value, bytes; anything larger means that an end was missed.
const LARGEST: usize = 64 << 20;
/// Maximum size of a top-level value that is kept as metadata, bytes.
const LARGEST_FACT: usize = 4 << 20;

/// Consecutive events.
#[derive(Debug, Default)]
pub struct Batch {
    /// Sequence number within the trace; batches are emitted in this order.
    pub number: u64,
    pub text: Vec<u8>,
    /// Start and end of each event within the text.
    pub events: Vec<(usize, usize)>,
}

/// Key and raw value of a top-level entry other than the list of events.
pub type Fact = (String, Vec<u8>);

/// Position of the splitter in the trace's structure.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum State {
    Begin,
    /// Between the keys of the outermost object.
    Keys,
    /// In the list of events; true if the list is the outermost value.
    Events(bool),
    End,
}

/// Splits the text of a reader.
pub struct Splitter<R> {
    reader: R,
    /// Number of bytes to read at a time.
    chunk: usize,
    text: Vec<u8>,
    at: usize,
    ended: bool,
    state: State,
    number: u64,
    /// Number of bytes of the current value that were discarded.
    dropped: usize,
    /// Top-level entries other than the list of events.
    pub facts: Vec<Fact>,
    /// True once a list of events has been found.
    pub seen_events: bool,
    /// True if the text ends within an event or value.
    pub cut: bool,
    /// Number of bytes read.
    pub read: u64,
}

impl<R: Read> Splitter<R> {
    /// Creates a splitter at the start of the text.
    pub fn new(reader: R) -> Self {
        Self {
            reader,
            chunk: READ,
            text: Vec::new(),
            at: 0,
            ended: false,
            state: State::Begin,
            number: 0,
            dropped: 0,
            facts: Vec::new(),
            seen_events: false,
            cut: false,
            read: 0,
        }
    }

    /// Reads more text; returns false at the end.
    fn fill_buffer(&mut self) -> std::io::Result<bool> {
        if self.ended {
            return Ok(false);
        }
        let old = self.text.len();
        let got = (&mut self.reader).take(self.chunk as u64).read_to_end(&mut self.text);
        let got = match got {
            Ok(n) => n,
            // If a compressed file is truncated, keep its contents up to that point.
            Err(e) if e.kind() == ErrorKind::UnexpectedEof => {
                self.cut = true;
                self.ended = true;
                self.text.len() - old
            }
            Err(e) => return Err(e),
        };
        self.read += got as u64;
        self.ended |= got == 0;
        Ok(got > 0)
    }

    fn byte_at(&mut self, at: usize) -> std::io::Result<Option<u8>> {
        while at >= self.text.len() {
            if !self.fill_buffer()? {
                return Ok(None);
            }
        }
        Ok(Some(self.text[at]))
    }

    /// Skips whitespace, commas and colons, and returns the next byte.
    fn next(&mut self) -> std::io::Result<Option<u8>> {
        let from = self.at;
        loop {
            // Discard long runs of whitespace.
            if self.at - from > READ {
                self.text.drain(from..self.at);
                self.at = from;
            }
            match self.byte_at(self.at)? {
                Some(b' ' | b'\n' | b'\r' | b'\t' | b',' | b':') => self.at += 1,
                other => return Ok(other),
            }
        }
    }

    /// Returns the position just after the string that starts at `from`.
    fn string_end(&mut self, from: usize) -> std::io::Result<Option<usize>> {
        let mut at = from + 1;
        loop {
            let Some(found) = memchr::memchr2(b'"', b'\\', self.text.get(at..).unwrap_or_default()) else {
                at = at.max(self.text.len());
                if at - from > LARGEST || !self.fill_buffer()? {
                    return Ok(None);
                }
                continue;
            };
            at += found;
            if self.text[at] == b'\\' {
                at += 2;
                continue;
            }
            at += 1;
            let mut after = at;
            loop {
                match self.byte_at(after)? {
                    Some(b' ' | b'\n' | b'\r' | b'\t') => after += 1,
                    Some(b',' | b':' | b'}' | b']') | None => return Ok(Some(at)),
                    Some(_) => break,
                }
            }
        }
    }

    /// Returns the position just after the value at the current position; `None` if the text ends first.
    fn value_end(&mut self) -> std::io::Result<Option<usize>> {
        let (from, mut at, mut depth) = (self.at, self.at, 0_usize);
        loop {
            if at >= self.text.len() {
                // Too large for metadata: find the end, without keeping the text.
                if self.state == State::Keys && at - from > LARGEST_FACT {
                    self.dropped += at - from;
                    self.text.drain(from..at);
                    at = from;
                }
                if at - from > LARGEST || !self.fill_buffer()? {
                    // A number may be the last thing in the text.
                    return Ok((depth == 0 && at > from && at - from <= LARGEST).then_some(at));
                }
                continue;
            }
            match self.text[at] {
                b'"' => {
                    let Some(end) = self.string_end(at)? else { return Ok(None) };
                    at = end;
                    if depth == 0 {
                        return Ok(Some(at));
                    }
                    continue;
                }
                b'{' | b'[' => depth += 1,
                b'}' | b']' | b',' | b' ' | b'\n' | b'\r' | b'\t' if depth == 0 => return Ok(Some(at)),
                b'}' | b']' => {
                    depth -= 1;
                    if depth == 0 {
                        return Ok(Some(at + 1));
                    }
                }
                _ => {}
            }
            at += 1;
        }
    }

    /// Returns the next events, or `None` at the end. Top-level entries read so far are in [`Self::facts`].
    pub fn next_batch(&mut self) -> std::io::Result<Option<Batch>> {
        let mut events = Vec::new();
        loop {
            let next = self.next()?;
            match (self.state, next) {
                (State::End, _) => break,
                (_, None) => {
                    // In Chrome's trace format, the closing bracket of a bare list is optional.
                    self.cut |= self.state != State::Events(true);
                    self.state = State::End;
                }
                (State::Begin, Some(b'{')) => {
                    self.at += 1;
                    self.state = State::Keys;
                }
                (State::Begin, Some(b'[')) => {
                    self.at += 1;
                    self.seen_events = true;
                    self.state = State::Events(true);
                }
                // Byte order mark.
                (State::Begin, Some(0xef | 0xbb | 0xbf)) => self.at += 1,
                (State::Begin, Some(_)) => return Err(Error::new(ErrorKind::InvalidData, "it begins with neither { nor [")),
                (State::Keys, Some(b'"')) => self.read_fact()?,
                (State::Keys, Some(_)) => self.state = State::End,
                (State::Events(bare), Some(b']')) => {
                    self.at += 1;
                    self.state = if bare { State::End } else { State::Keys };
                }
                (State::Events(_), Some(_)) => {
                    let from = self.at;
                    match self.value_end()? {
                        // Skip stray brackets.
                        Some(end) if end == from => self.at += 1,
                        Some(end) => {
                            events.push((from, end));
                            self.at = end;
                        }
                        None => {
                            self.cut = true;
                            self.state = State::End;
                        }
                    }
                }
            }
            if self.at >= BATCH {
                break;
            }
        }
        let rest = self.text.split_off(self.at.min(self.text.len()));
        let text = std::mem::replace(&mut self.text, rest);
        self.at = 0;
        if events.is_empty() && self.state == State::End {
            return Ok(None);
        }
        self.number += 1;
        Ok(Some(Batch { number: self.number - 1, text, events }))
    }

    /// Reads a key and its value, or enters the list of events.
    fn read_fact(&mut self) -> std::io::Result<()> {
        let from = self.at;
        let Some(end) = self.string_end(from)? else {
            self.cut = true;
            self.state = State::End;
            return Ok(());
        };
        let key = String::from_utf8_lossy(&self.text[from + 1..end - 1]).into_owned();
        self.at = end;
        let next = self.next()?;
        if key == "traceEvents" && next == Some(b'[') {
            self.at += 1;
            self.seen_events = true;
            self.state = State::Events(false);
            return Ok(());
        }
        let from = self.at;
        match self.value_end()? {
            Some(end) if end > from => {
                if end - from <= LARGEST_FACT && std::mem::take(&mut self.dropped) == 0 {
                    self.facts.push((key, self.text[from..end].to_vec()));
                }
                self.at = end;
            }
            _ => {
                self.cut = true;
                self.state = State::End;
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn cut(text: &str) -> (Vec<String>, Vec<String>, bool) {
        // Read one byte at a time, so that every value is split across reads.
        let mut splitter = Splitter { chunk: 1, ..Splitter::new(text.as_bytes()) };
        let mut events = Vec::new();
        while let Some(batch) = splitter.next_batch().unwrap() {
            events.extend(batch.events.iter().map(|&(a, b)| String::from_utf8_lossy(&batch.text[a..b]).into_owned()));
        }
        let facts = splitter.facts.iter().map(|(k, v)| format!("{k}={}", String::from_utf8_lossy(v))).collect();
        (events, facts, splitter.cut)
    }

    #[test]
    fn events_and_facts_in_any_order() {
        let (events, facts, cut_off) = cut(r#"{"a": 1, "traceEvents": [ {"x": {"y": [1]}}, {"s": "}\"]"} ], "b": {"c": 2}, "d": "e"}"#);
        assert_eq!(events, [r#"{"x": {"y": [1]}}"#, r#"{"s": "}\"]"}"#]);
        assert_eq!(facts, ["a=1", r#"b={"c": 2}"#, r#"d="e""#]);
        assert!(!cut_off);
    }

    #[test]
    fn a_bare_list_needs_no_end() {
        assert_eq!(cut("[{\"a\":1},\n{\"b\":2},"), (vec![r#"{"a":1}"#.into(), r#"{"b":2}"#.into()], vec![], false));
        assert_eq!(cut("\u{feff}[{\"a\":1}]").0.len(), 1);
    }

    #[test]
    fn a_cut_trace_gives_what_is_whole() {
        let (events, facts, cut_off) = cut(r#"{"k": 1, "traceEvents": [{"a": 1}, {"b": "half"#);
        assert_eq!((events.len(), facts.len(), cut_off), (1, 1, true));
        assert!(cut(r#"{"traceEvents": [{"a": 1}]"#).2);
        assert!(cut(r#"{"k": {"#).2);
    }

    #[test]
    fn a_huge_value_beside_the_events_is_gone_over() {
        let text = format!(r#"{{"stacks": [{}1], "traceEvents": [{{"a": 1}}], "k": 2}}"#, "\"x\", ".repeat(LARGEST_FACT / 4));
        let mut splitter = Splitter::new(text.as_bytes());
        let mut events = 0;
        while let Some(batch) = splitter.next_batch().unwrap() {
            events += batch.events.len();
        }
        assert_eq!((events, splitter.cut, splitter.facts), (1, false, vec![("k".to_owned(), b"2".to_vec())]));
    }

    #[test]
    fn blanks_are_not_kept() {
        let text = format!("{{\"traceEvents\": [{{\"a\": 1}},{}{{\"b\": 2}}]}}", " ".repeat(4 * READ));
        let mut splitter = Splitter::new(text.as_bytes());
        let batch = splitter.next_batch().unwrap().unwrap();
        assert!(batch.text.len() <= 3 * READ, "{}", batch.text.len());
        let events: Vec<&[u8]> = batch.events.iter().map(|&(a, b)| &batch.text[a..b]).collect();
        assert_eq!(events, [&b"{\"a\": 1}"[..], b"{\"b\": 2}"]);
    }

    #[test]
    fn quotes_in_names_end_nothing() {
        let (events, ..) = cut(r#"{"traceEvents": [{"name": "say "hi" {now", "ts": 1}, {"name": "next"}]}"#);
        assert_eq!(events, [r#"{"name": "say "hi" {now", "ts": 1}"#, r#"{"name": "next"}"#]);
    }

    #[test]
    fn what_is_no_trace_has_no_events() {
        let mut splitter = Splitter::new(&b"{\"nodes\": []}"[..]);
        assert!(splitter.next_batch().unwrap().is_none());
        assert!(!splitter.seen_events);
        assert!(Splitter::new(&b"hello"[..]).next_batch().is_err());
    }
}
