//! What a program says through NVTX, as the tracer has it, and what a gate did.

use super::cursor::Cursor;

/// What a program attached to a range.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Payload {
    Signed(i64),
    Unsigned(u64),
    Real(f64),
    /// What NCCL says of a call, and how many of the bytes count.
    Message([u8; 24], u8),
}

/// What NVTX was told, or a gate did.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum What {
    Push(Marked),
    /// With what NCCL says of the call only at its end.
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
    /// A gate opened or closed: why.
    Gate {
        open: bool,
        why: u32,
    },
}

/// A range as it was marked.
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

/// A range as it was marked; of one that has a number of its own, that, too.
pub fn marked(c: &mut Cursor<'_>, id: Option<&mut u64>) -> Option<Marked> {
    let has = c.byte()?;
    let (domain, text) = (c.small()?, c.small()?);
    if let Some(id) = id {
        *id = c.number()?;
    }
    let color = if has & 1 == 0 { None } else { Some(c.small()?) };
    let category = if has & 2 == 0 { None } else { Some(c.small()?) };
    let payload = match has & 0b1100 {
        0 if has & 16 != 0 => Some(message(c)?),
        0 => None,
        0b0100 => Some(Payload::Signed(c.eight()?.cast_signed())),
        0b1000 => Some(Payload::Unsigned(c.eight()?)),
        _ => Some(Payload::Real(f64::from_bits(c.eight()?))),
    };
    Some(Marked { domain, text, color, category, payload })
}

/// The bytes of NCCL's payload with their number before them.
pub fn message(c: &mut Cursor<'_>) -> Option<Payload> {
    let n = c.byte()?;
    let given = c.bytes(usize::from(n))?;
    Some(Payload::Message(std::array::from_fn(|i| given.get(i).copied().unwrap_or(0)), n))
}
