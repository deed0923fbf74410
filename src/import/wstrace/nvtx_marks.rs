//! Parser for NVTX events, and types for all events on a thread.

use super::varint::Cursor;

/// Payload of an NVTX range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Payload {
    Signed(i64),
    Unsigned(u64),
    Real(f64),
    /// NCCL's extended payload for a call, and the number of bytes that are valid.
    Message([u8; 24], u8),
}

/// Type of an NVTX event or capture range event.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    Push(Marked),
    /// NCCL may supply the payload at the end of the range.
    Pop {
        domain: u32,
        message: Option<Payload>,
    },
    Start {
        id: u64,
        marked: Marked,
    },
    End {
        id: u64,
    },
    Mark,
    /// The capture range opened or closed, for the given reason.
    Gate {
        open: bool,
        why: u32,
    },
}

/// Attributes of a range.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Marked {
    pub domain: u32,
    pub text: u32,
    pub color: Option<u32>,
    pub category: Option<u32>,
    pub payload: Option<Payload>,
}

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Event {
    pub time: i64,
    pub thread: u32,
    pub what: What,
}

/// Reads the attributes of a range, and its id if there is one.
pub fn read_marked(c: &mut Cursor<'_>, id: Option<&mut u64>) -> Option<Marked> {
    let has = c.read_byte()?;
    let (domain, text) = (c.read_u32()?, c.read_u32()?);
    if let Some(id) = id {
        *id = c.read_varint()?;
    }
    let color = if has & 1 == 0 { None } else { Some(c.read_u32()?) };
    let category = if has & 2 == 0 { None } else { Some(c.read_u32()?) };
    let payload = match has & 0b1100 {
        0 if has & 16 != 0 => Some(read_message(c)?),
        0 => None,
        0b0100 => Some(Payload::Signed(c.read_u64()?.cast_signed())),
        0b1000 => Some(Payload::Unsigned(c.read_u64()?)),
        _ => Some(Payload::Real(f64::from_bits(c.read_u64()?))),
    };
    Some(Marked { domain, text, color, category, payload })
}

/// Reads NCCL's payload, which has a length prefix.
pub fn read_message(c: &mut Cursor<'_>) -> Option<Payload> {
    let n = c.read_byte()?;
    let given = c.read_bytes(usize::from(n))?;
    Some(Payload::Message(std::array::from_fn(|i| given.get(i).copied().unwrap_or(0)), n))
}
