//! Chrome's trace viewer JSON ("Trace Event Format"): complete events, flows, counters, instants and names.

use super::trace_writer::{Arg, Event, Flow, Sink, Under};
use crate::report::format::json_text;
use std::collections::HashMap;
use std::io::{self, Write};

/// First id for tracks that are not threads, above Linux's thread ids.
const OTHERS: u32 = 1 << 22;

/// Writes Chrome's JSON.
pub struct Chrome<W> {
    out: W,
    /// Strings, encoded as JSON.
    texts: Vec<String>,
    known: HashMap<String, u32>,
    /// Process and thread of each track; for a counter, also its name as JSON.
    tracks: Vec<(u32, u32, String)>,
    names: Vec<String>,
    begun: bool,
}

/// Formats a time in microseconds with nanosecond resolution.
fn format_us(ns: i64) -> String {
    format!("{}.{:03}", ns.max(0) / 1000, ns.max(0) % 1000)
}

impl<W: Write> Chrome<W> {
    pub fn new(out: W) -> Self {
        Self { out, texts: Vec::new(), known: HashMap::new(), tracks: Vec::new(), names: Vec::new(), begun: false }
    }

    fn write_line(&mut self, event: &str) -> io::Result<()> {
        self.out.write_all(if self.begun {
            b",\n"
        } else {
            b"{\"displayTimeUnit\":\"ns\",\"otherData\":{\"producer\":\"warpscope\"},\"traceEvents\":[\n"
        })?;
        self.begun = true;
        self.out.write_all(event.as_bytes())
    }

    fn args_json(&self, args: &[Arg]) -> String {
        let text = |n: u32| self.texts.get(n as usize).map_or("\"\"", String::as_str);
        let parts: Vec<String> = args
            .iter()
            .map(|a| match *a {
                Arg::Int(key, n) => format!("{}:{n}", text(key)),
                Arg::Real(key, x) if x.is_finite() => format!("{}:{x}", text(key)),
                Arg::Real(key, _) => format!("{}:null", text(key)),
                Arg::Text(key, value) => format!("{}:{}", text(key), text(value)),
            })
            .collect();
        format!("{{{}}}", parts.join(","))
    }

    /// Fields common to all events: name, category, process, thread and time.
    fn event_fields(&self, event: &Event<'_>) -> String {
        let text = |n: u32| self.texts.get(n as usize).map_or("\"\"", String::as_str);
        let name = text(event.name);
        let (pid, tid) = self.tracks.get(event.track as usize).map_or((0, 0), |t| (t.0, t.1));
        format!("\"name\":{name},\"cat\":{},\"pid\":{pid},\"tid\":{tid},\"ts\":{}", text(event.category), format_us(event.start))
    }
}

impl<W: Write> Sink for Chrome<W> {
    fn text(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        let index = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(json_text(&text).unwrap_or_else(|_| "\"\"".to_owned()));
        self.known.insert(text.to_owned(), index);
        index
    }

    fn process(&mut self, pid: u32, name: &str) -> io::Result<()> {
        let name = json_text(&name)?;
        self.write_line(&format!("{{\"ph\":\"M\",\"name\":\"process_name\",\"pid\":{pid},\"tid\":0,\"args\":{{\"name\":{name}}}}}"))
    }

    fn track(&mut self, pid: u32, under: Under, name: &str) -> io::Result<u32> {
        let track = u32::try_from(self.tracks.len()).unwrap_or(u32::MAX);
        let tid = if let Under::Thread(tid) = under { tid } else { OTHERS.saturating_add(track) };
        // Tracks cannot be nested in this format, so the name of a stream includes its GPU.
        let above = if let Under::Track(above) = under { self.names.get(above as usize) } else { None };
        let name = above.map_or_else(|| name.to_owned(), |a| format!("{a} · {name}"));
        self.tracks.push((pid, tid, String::new()));
        self.names.resize(self.tracks.len(), String::new());
        self.names[track as usize].clone_from(&name);
        let name = json_text(&name)?;
        self.write_line(&format!("{{\"ph\":\"M\",\"name\":\"thread_name\",\"pid\":{pid},\"tid\":{tid},\"args\":{{\"name\":{name}}}}}"))?;
        Ok(track)
    }

    fn counter(&mut self, pid: u32, under: Under, name: &str, unit: &str) -> io::Result<u32> {
        let track = u32::try_from(self.tracks.len()).unwrap_or(u32::MAX);
        let above = if let Under::Track(above) = under { self.names.get(above as usize) } else { None };
        // A machine-wide counter does not belong to a GPU.
        let name = above.filter(|a| a.starts_with("GPU ")).map_or_else(|| name.to_owned(), |a| format!("{a} · {name}"));
        let name = if unit.is_empty() { name } else { format!("{name} [{unit}]") };
        self.tracks.push((pid, 0, json_text(&name)?));
        Ok(track)
    }

    fn slice(&mut self, event: &Event<'_>, end: i64) -> io::Result<()> {
        let (head, args) = (self.event_fields(event), self.args_json(event.args));
        let long = end.saturating_sub(event.start).max(0);
        self.write_line(&format!("{{\"ph\":\"X\",{head},\"dur\":{},\"args\":{args}}}", format_us(long)))?;
        // Both ends of a flow have the same name and category.
        let Some(flow) = event.flow else { return Ok(()) };
        let (pid, tid) = self.tracks.get(event.track as usize).map_or((0, 0), |t| (t.0, t.1));
        let (kind, id) = match flow {
            Flow::From(id) => ("\"s\"", id),
            Flow::To(id) => ("\"f\",\"bp\":\"e\"", id),
        };
        let at = format_us(event.start);
        self.write_line(&format!(
            "{{\"ph\":{kind},\"id\":{id},\"name\":\"launch\",\"cat\":\"launch\",\"pid\":{pid},\"tid\":{tid},\"ts\":{at}}}"
        ))
    }

    fn instant(&mut self, event: &Event<'_>) -> io::Result<()> {
        let (head, args) = (self.event_fields(event), self.args_json(event.args));
        self.write_line(&format!("{{\"ph\":\"i\",\"s\":\"p\",{head},\"args\":{args}}}"))
    }

    fn value(&mut self, track: u32, time: i64, value: f64) -> io::Result<()> {
        let Some((pid, _, name)) = self.tracks.get(track as usize) else { return Ok(()) };
        let value = if value.is_finite() { value } else { 0.0 };
        let line = format!("{{\"ph\":\"C\",\"name\":{name},\"pid\":{pid},\"ts\":{},\"args\":{{\"value\":{value}}}}}", format_us(time));
        self.write_line(&line)
    }

    fn close(&mut self, _: u32) -> io::Result<()> {
        Ok(())
    }

    fn finish(&mut self) -> io::Result<()> {
        if !self.begun {
            self.out.write_all(b"{\"traceEvents\":[")?;
        }
        self.out.write_all(b"\n]}\n")?;
        self.out.flush()
    }
}
