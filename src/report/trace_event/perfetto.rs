//! Perfetto's protobuf format. Field numbers and meanings come from the published `perfetto_trace.proto`.

use super::trace_writer::{Arg, Event, Flow, Sink, Under};
use crate::model::text::escape_unsafe;
use std::collections::HashMap;
use std::io::{self, Write};

/// Kinds of interned strings (`InternedData`), each with its own ids.
const CATEGORY: u32 = 1;
const NAME: u32 = 2;
const KEY: u32 = 3;
const VALUE: u32 = 29;

/// `TrackEvent.Type`.
const BEGIN: u64 = 1;
const END: u64 = 2;
const INSTANT: u64 = 3;
const COUNTER: u64 = 4;

/// `SEQ_INCREMENTAL_STATE_CLEARED` and `SEQ_NEEDS_INCREMENTAL_STATE`.
const CLEARED: u64 = 1;
const NEEDS: u64 = 2;
/// Number of bytes that are buffered before they are written.
const CHUNK: usize = 1 << 18;
/// Sequence id of all packets.
const SEQUENCE: u64 = 1;

#[inline]
fn push_varint(out: &mut Vec<u8>, mut n: u64) {
    while n > 0x7f {
        out.push((n as u8) | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn push_number(out: &mut Vec<u8>, field: u32, n: u64) {
    push_varint(out, u64::from(field) << 3);
    push_varint(out, n);
}

fn push_fixed64(out: &mut Vec<u8>, field: u32, bits: u64) {
    push_varint(out, u64::from(field) << 3 | 1);
    out.extend_from_slice(&bits.to_le_bytes());
}

fn push_bytes(out: &mut Vec<u8>, field: u32, of: &[u8]) {
    push_varint(out, u64::from(field) << 3 | 2);
    push_varint(out, of.len() as u64);
    out.extend_from_slice(of);
}

#[derive(Default)]
struct Text {
    text: String,
    /// Bit set of the kinds under which the string has been interned.
    told: u32,
}

/// Writes Perfetto's protobuf.
pub struct Perfetto<W> {
    out: W,
    texts: Vec<Text>,
    known: HashMap<String, u32>,
    /// End times of each track's open slices, ns.
    open: Vec<Vec<i64>>,
    packet: Vec<u8>,
    event: Vec<u8>,
    part: Vec<u8>,
    /// Complete packets, not yet written to `out`.
    written: Vec<u8>,
    /// True if the first packet has been written.
    begun: bool,
}

/// UUID of a process's track.
fn process_uuid(pid: u32) -> u64 {
    1 << 40 | u64::from(pid)
}

fn track_uuid(track: u32) -> u64 {
    u64::from(track) + 1
}

impl<W: Write> Perfetto<W> {
    pub fn new(out: W) -> Self {
        Self {
            out,
            texts: Vec::new(),
            known: HashMap::new(),
            open: Vec::new(),
            packet: Vec::new(),
            event: Vec::new(),
            part: Vec::new(),
            written: Vec::with_capacity(CHUNK * 2),
            begun: false,
        }
    }

    /// Completes the packet whose fields are in `packet`.
    fn flush_packet(&mut self) -> io::Result<()> {
        push_number(&mut self.packet, 10, SEQUENCE);
        let flags = if self.begun { NEEDS } else { NEEDS | CLEARED };
        self.begun = true;
        push_number(&mut self.packet, 13, flags);
        push_varint(&mut self.written, 1 << 3 | 2);
        push_varint(&mut self.written, self.packet.len() as u64);
        self.written.extend_from_slice(&self.packet);
        self.packet.clear();
        if self.written.len() >= CHUNK {
            self.out.write_all(&self.written)?;
            self.written.clear();
        }
        Ok(())
    }

    /// Interns a string before its first use as a given kind and returns its id.
    fn intern_text(&mut self, text: u32, kind: u32) -> io::Result<u64> {
        let Some(known) = self.texts.get_mut(text as usize) else { return Ok(0) };
        let iid = u64::from(text) + 1;
        if known.told >> kind & 1 == 0 {
            known.told |= 1 << kind;
            let (mut entry, mut data) = (Vec::new(), Vec::new());
            push_number(&mut entry, 1, iid);
            push_bytes(&mut entry, 2, known.text.as_bytes());
            push_bytes(&mut data, kind, &entry);
            let rest = std::mem::take(&mut self.packet);
            push_bytes(&mut self.packet, 12, &data);
            self.flush_packet()?;
            self.packet = rest;
        }
        Ok(iid)
    }

    /// Writes an event of type `kind`, whose body is in the buffer `event`.
    fn write_event(&mut self, track: u32, time: i64, kind: u64) -> io::Result<()> {
        push_number(&mut self.event, 9, kind);
        push_number(&mut self.event, 11, track_uuid(track));
        push_number(&mut self.packet, 8, time.max(0).cast_unsigned());
        push_bytes(&mut self.packet, 11, &self.event);
        self.event.clear();
        self.flush_packet()
    }

    /// Ends a track's open slices that end at or before `until`.
    fn end_slices(&mut self, track: u32, until: i64) -> io::Result<()> {
        while let Some(end) = self.open.get_mut(track as usize).and_then(|o| o.pop_if(|end| *end <= until)) {
            self.write_event(track, end, END)?;
        }
        Ok(())
    }

    /// Adds the name, category, flow and values of an event.
    fn push_body(&mut self, event: &Event<'_>) -> io::Result<()> {
        let (category, name) = (self.intern_text(event.category, CATEGORY)?, self.intern_text(event.name, NAME)?);
        push_number(&mut self.event, 3, category);
        push_number(&mut self.event, 10, name);
        for arg in event.args {
            let mut part = std::mem::take(&mut self.part);
            part.clear();
            match *arg {
                Arg::Int(key, n) => {
                    push_number(&mut part, 1, self.intern_text(key, KEY)?);
                    push_number(&mut part, 4, n.cast_unsigned());
                }
                Arg::Real(key, x) => {
                    push_number(&mut part, 1, self.intern_text(key, KEY)?);
                    push_fixed64(&mut part, 5, x.to_bits());
                }
                Arg::Text(key, text) => {
                    push_number(&mut part, 1, self.intern_text(key, KEY)?);
                    push_number(&mut part, 17, self.intern_text(text, VALUE)?);
                }
            }
            push_bytes(&mut self.event, 4, &part);
            self.part = part;
        }
        match event.flow {
            Some(Flow::From(id)) => push_fixed64(&mut self.event, 47, id),
            Some(Flow::To(id)) => push_fixed64(&mut self.event, 48, id),
            None => {}
        }
        Ok(())
    }

    fn write_descriptor(&mut self, pid: u32, under: Under, name: &str, counter: Option<&str>) -> io::Result<u32> {
        let track = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        self.open.push(Vec::new());
        let name = escape_unsafe(name);
        let mut of = Vec::new();
        push_number(&mut of, 1, track_uuid(track));
        match under {
            Under::Thread(tid) if counter.is_none() => {
                let mut thread = Vec::new();
                push_number(&mut thread, 1, pid.into());
                push_number(&mut thread, 2, tid.into());
                push_bytes(&mut thread, 5, name.as_bytes());
                push_bytes(&mut of, 4, &thread);
            }
            Under::Track(parent) => {
                push_bytes(&mut of, 2, name.as_bytes());
                push_number(&mut of, 5, track_uuid(parent));
            }
            _ => {
                push_bytes(&mut of, 2, name.as_bytes());
                push_number(&mut of, 5, process_uuid(pid));
            }
        }
        if let Some(unit) = counter {
            let mut data = Vec::new();
            // 3 is `UNIT_SIZE_BYTES`.
            if unit == "B" {
                push_number(&mut data, 3, 3);
            } else {
                push_bytes(&mut data, 6, escape_unsafe(unit).as_bytes());
            }
            push_bytes(&mut of, 8, &data);
        }
        push_bytes(&mut self.packet, 60, &of);
        self.flush_packet()?;
        Ok(track)
    }
}

impl<W: Write> Sink for Perfetto<W> {
    fn text(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        let index = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(Text { text: escape_unsafe(text).into_owned(), told: 0 });
        self.known.insert(text.to_owned(), index);
        index
    }

    fn process(&mut self, pid: u32, name: &str) -> io::Result<()> {
        let (mut of, mut process) = (Vec::new(), Vec::new());
        push_number(&mut process, 1, pid.into());
        push_bytes(&mut process, 6, escape_unsafe(name).as_bytes());
        push_number(&mut of, 1, process_uuid(pid));
        push_bytes(&mut of, 3, &process);
        push_bytes(&mut self.packet, 60, &of);
        self.flush_packet()
    }

    fn track(&mut self, pid: u32, under: Under, name: &str) -> io::Result<u32> {
        self.write_descriptor(pid, under, name, None)
    }

    fn counter(&mut self, pid: u32, under: Under, name: &str, unit: &str) -> io::Result<u32> {
        self.write_descriptor(pid, under, name, Some(unit))
    }

    fn slice(&mut self, event: &Event<'_>, end: i64) -> io::Result<()> {
        self.end_slices(event.track, event.start)?;
        self.push_body(event)?;
        self.write_event(event.track, event.start, BEGIN)?;
        if let Some(open) = self.open.get_mut(event.track as usize) {
            open.push(end.max(event.start));
        }
        Ok(())
    }

    fn instant(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.push_body(event)?;
        self.write_event(event.track, event.start, INSTANT)
    }

    fn value(&mut self, track: u32, time: i64, value: f64) -> io::Result<()> {
        push_fixed64(&mut self.event, 44, value.to_bits());
        self.write_event(track, time, COUNTER)
    }

    fn close(&mut self, track: u32) -> io::Result<()> {
        self.end_slices(track, i64::MAX)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.write_all(&self.written)?;
        self.written.clear();
        self.out.flush()
    }
}
