//! Perfetto's protobuf. Field numbers and meanings are those of the published `perfetto_trace.proto`.

use super::sink::{Arg, Event, Flow, Sink, Under};
use crate::model::text::clean;
use std::collections::HashMap;
use std::io::{self, Write};

/// Kinds of interned texts (`InternedData`), each with its own ids.
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
/// Bytes that are buffered before they are written.
const CHUNK: usize = 1 << 18;
/// Sequence id of all packets.
const SEQUENCE: u64 = 1;

#[inline]
fn varint(out: &mut Vec<u8>, mut n: u64) {
    while n > 0x7f {
        out.push((n as u8) | 0x80);
        n >>= 7;
    }
    out.push(n as u8);
}

fn number(out: &mut Vec<u8>, field: u32, n: u64) {
    varint(out, u64::from(field) << 3);
    varint(out, n);
}

fn fixed(out: &mut Vec<u8>, field: u32, bits: u64) {
    varint(out, u64::from(field) << 3 | 1);
    out.extend_from_slice(&bits.to_le_bytes());
}

fn bytes(out: &mut Vec<u8>, field: u32, of: &[u8]) {
    varint(out, u64::from(field) << 3 | 2);
    varint(out, of.len() as u64);
    out.extend_from_slice(of);
}

#[derive(Default)]
struct Text {
    text: String,
    /// Bit set of the kinds that it has been interned as.
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
    /// Packets that are not written to `out` yet.
    written: Vec<u8>,
    /// True if the first packet has been written.
    begun: bool,
}

/// Uuid of a process's track.
fn process_uuid(pid: u32) -> u64 {
    1 << 40 | u64::from(pid)
}

fn uuid(track: u32) -> u64 {
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

    /// Finishes the packet whose fields are in `packet`.
    fn flush(&mut self) -> io::Result<()> {
        number(&mut self.packet, 10, SEQUENCE);
        let flags = if self.begun { NEEDS } else { NEEDS | CLEARED };
        self.begun = true;
        number(&mut self.packet, 13, flags);
        varint(&mut self.written, 1 << 3 | 2);
        varint(&mut self.written, self.packet.len() as u64);
        self.written.extend_from_slice(&self.packet);
        self.packet.clear();
        if self.written.len() >= CHUNK {
            self.out.write_all(&self.written)?;
            self.written.clear();
        }
        Ok(())
    }

    /// Interns a text before its first use as that kind, and returns its id.
    fn told(&mut self, text: u32, kind: u32) -> io::Result<u64> {
        let Some(known) = self.texts.get_mut(text as usize) else { return Ok(0) };
        let iid = u64::from(text) + 1;
        if known.told >> kind & 1 == 0 {
            known.told |= 1 << kind;
            let (mut entry, mut data) = (Vec::new(), Vec::new());
            number(&mut entry, 1, iid);
            bytes(&mut entry, 2, known.text.as_bytes());
            bytes(&mut data, kind, &entry);
            let rest = std::mem::take(&mut self.packet);
            bytes(&mut self.packet, 12, &data);
            self.flush()?;
            self.packet = rest;
        }
        Ok(iid)
    }

    /// Writes an event of that type, with its body from `event`.
    fn write(&mut self, track: u32, time: i64, kind: u64) -> io::Result<()> {
        number(&mut self.event, 9, kind);
        number(&mut self.event, 11, uuid(track));
        number(&mut self.packet, 8, time.max(0).cast_unsigned());
        bytes(&mut self.packet, 11, &self.event);
        self.event.clear();
        self.flush()
    }

    /// Ends the open slices of a track that end at or before `until`.
    fn end(&mut self, track: u32, until: i64) -> io::Result<()> {
        while let Some(end) = self.open.get_mut(track as usize).and_then(|o| o.pop_if(|end| *end <= until)) {
            self.write(track, end, END)?;
        }
        Ok(())
    }

    /// Adds name, category, flow and values of an event.
    fn body(&mut self, event: &Event<'_>) -> io::Result<()> {
        let (category, name) = (self.told(event.category, CATEGORY)?, self.told(event.name, NAME)?);
        number(&mut self.event, 3, category);
        number(&mut self.event, 10, name);
        for arg in event.args {
            let mut part = std::mem::take(&mut self.part);
            part.clear();
            match *arg {
                Arg::Int(key, n) => {
                    number(&mut part, 1, self.told(key, KEY)?);
                    number(&mut part, 4, n.cast_unsigned());
                }
                Arg::Real(key, x) => {
                    number(&mut part, 1, self.told(key, KEY)?);
                    fixed(&mut part, 5, x.to_bits());
                }
                Arg::Text(key, text) => {
                    number(&mut part, 1, self.told(key, KEY)?);
                    number(&mut part, 17, self.told(text, VALUE)?);
                }
            }
            bytes(&mut self.event, 4, &part);
            self.part = part;
        }
        match event.flow {
            Some(Flow::From(id)) => fixed(&mut self.event, 47, id),
            Some(Flow::To(id)) => fixed(&mut self.event, 48, id),
            None => {}
        }
        Ok(())
    }

    fn descriptor(&mut self, pid: u32, under: Under, name: &str, counter: Option<&str>) -> io::Result<u32> {
        let track = u32::try_from(self.open.len()).unwrap_or(u32::MAX);
        self.open.push(Vec::new());
        let name = clean(name);
        let mut of = Vec::new();
        number(&mut of, 1, uuid(track));
        match under {
            Under::Thread(tid) if counter.is_none() => {
                let mut thread = Vec::new();
                number(&mut thread, 1, pid.into());
                number(&mut thread, 2, tid.into());
                bytes(&mut thread, 5, name.as_bytes());
                bytes(&mut of, 4, &thread);
            }
            Under::Track(parent) => {
                bytes(&mut of, 2, name.as_bytes());
                number(&mut of, 5, uuid(parent));
            }
            _ => {
                bytes(&mut of, 2, name.as_bytes());
                number(&mut of, 5, process_uuid(pid));
            }
        }
        if let Some(unit) = counter {
            let mut data = Vec::new();
            // UNIT_SIZE_BYTES
            if unit == "B" {
                number(&mut data, 3, 3);
            } else {
                bytes(&mut data, 6, clean(unit).as_bytes());
            }
            bytes(&mut of, 8, &data);
        }
        bytes(&mut self.packet, 60, &of);
        self.flush()?;
        Ok(track)
    }
}

impl<W: Write> Sink for Perfetto<W> {
    fn text(&mut self, text: &str) -> u32 {
        if let Some(&known) = self.known.get(text) {
            return known;
        }
        let index = u32::try_from(self.texts.len()).unwrap_or(u32::MAX);
        self.texts.push(Text { text: clean(text).into_owned(), told: 0 });
        self.known.insert(text.to_owned(), index);
        index
    }

    fn process(&mut self, pid: u32, name: &str) -> io::Result<()> {
        let (mut of, mut process) = (Vec::new(), Vec::new());
        number(&mut process, 1, pid.into());
        bytes(&mut process, 6, clean(name).as_bytes());
        number(&mut of, 1, process_uuid(pid));
        bytes(&mut of, 3, &process);
        bytes(&mut self.packet, 60, &of);
        self.flush()
    }

    fn track(&mut self, pid: u32, under: Under, name: &str) -> io::Result<u32> {
        self.descriptor(pid, under, name, None)
    }

    fn counter(&mut self, pid: u32, under: Under, name: &str, unit: &str) -> io::Result<u32> {
        self.descriptor(pid, under, name, Some(unit))
    }

    fn slice(&mut self, event: &Event<'_>, end: i64) -> io::Result<()> {
        self.end(event.track, event.start)?;
        self.body(event)?;
        self.write(event.track, event.start, BEGIN)?;
        if let Some(open) = self.open.get_mut(event.track as usize) {
            open.push(end.max(event.start));
        }
        Ok(())
    }

    fn instant(&mut self, event: &Event<'_>) -> io::Result<()> {
        self.body(event)?;
        self.write(event.track, event.start, INSTANT)
    }

    fn value(&mut self, track: u32, time: i64, value: f64) -> io::Result<()> {
        fixed(&mut self.event, 44, value.to_bits());
        self.write(track, time, COUNTER)
    }

    fn close(&mut self, track: u32) -> io::Result<()> {
        self.end(track, i64::MAX)
    }

    fn finish(&mut self) -> io::Result<()> {
        self.out.write_all(&self.written)?;
        self.written.clear();
        self.out.flush()
    }
}
