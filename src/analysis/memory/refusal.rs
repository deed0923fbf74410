//! Reasons for refused memory requests, to the extent that the record proves them.

use super::ledger::Ledger;
use super::space::{Piece, free_pieces};
use crate::model::api_call::NONE;
use crate::model::{Profile, Refused};
use std::collections::BTreeMap;

/// Reason for a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Why {
    /// The free pieces in the request's own pool and stream suffice in total, but none is large enough.
    Fragmented,
    /// The free memory belongs to private pools.
    PrivatePools,
    /// The free memory belongs to other streams.
    OtherStreams,
    /// The request exceeds all free memory.
    TooMuch,
    /// The device had room, but the process reached a limit.
    Limit,
    /// The device had room, and no limit of the process is known.
    Driver,
    /// The record contains a free block that is large enough, or is incomplete.
    Unknown,
}

impl Why {
    /// Stable identifier for scripts.
    pub fn id(self) -> &'static str {
        match self {
            Self::Fragmented => "fragmented",
            Self::PrivatePools => "private-pools",
            Self::OtherStreams => "other-streams",
            Self::TooMuch => "too-much",
            Self::Limit => "process-limit",
            Self::Driver => "driver-refused",
            Self::Unknown => "unknown",
        }
    }
}

/// A private pool, used by CUDA graphs or created by the program as a `MemPool`.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Private {
    pub pool: (u64, u64),
    /// Free bytes in the pool.
    pub free: u64,
    /// First event of the pool, as an index into all events of the report; its stack identifies the creator.
    pub first: Option<usize>,
}

/// State of memory at the time when a request was refused, in bytes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Room {
    pub asked: u64,
    /// Free memory on the device.
    pub free: Option<u64>,
    pub allocated: u64,
    /// Memory reserved by the allocator but not allocated.
    pub cached: u64,
    /// Free pieces that could serve the request if they were large enough: total bytes, number, and largest.
    pub own: u64,
    pub pieces: u64,
    pub largest: u64,
    /// Bytes in free pieces of other streams.
    pub streams: u64,
    /// Private pools with free memory, largest first.
    pub private: Vec<Private>,
    pub why: Why,
}

/// Margin by which the device's free memory must exceed a request, as a divisor of the request (`MARGIN`) and in bytes
/// (`MARGIN_BYTES`): the driver needs some for itself.
const MARGIN: u64 = 10;
const MARGIN_BYTES: u64 = 64 << 20;
/// Sizes that the allocator requests from the driver: segments of 2 MiB for small blocks, of 20 MiB for blocks below 10
/// MiB, otherwise multiples of 2 MiB (`get_allocation_size` in `c10/cuda/CUDACachingAllocator.cpp`).
const SMALL: u64 = 1 << 20;
const UNIT: u64 = 2 << 20;
const MIDDLE: u64 = 10 << 20;
const LARGE: u64 = 20 << 20;
/// A cause must account for at least the request divided by this, i.e. half of it.
const PART: u64 = 2;
/// Maximum number of private pools whose creators are looked up.
pub const NAMED: usize = 3;
/// Minimum number of refusals, at different amounts of memory held, from which a limit is inferred.
const SHOW_LIMIT: usize = 2;

/// Bytes that an allocation requests from the driver.
fn segment_size(asked: u64) -> u64 {
    match asked {
        0..=SMALL => UNIT,
        a if a < MIDDLE => LARGE,
        a => a.div_ceil(UNIT).saturating_mul(UNIT),
    }
}

/// Bytes that the allocator had reserved from the driver at a time.
fn reserved_at(ledger: &Ledger, time: i64) -> u64 {
    ledger.reserved.partition_point(|r| r.0 <= time).checked_sub(1).map_or(0, |i| ledger.reserved[i].1)
}

/// Returns the state of memory when a request on the ledger's device was refused.
pub fn room_at_refusal(profile: &Profile, ledger: &Ledger, refused: &Refused) -> Room {
    let allocated = ledger.event_at(refused.time).map_or(ledger.before, |at| ledger.bytes[at as usize]);
    let list = free_pieces(profile, ledger.device, Some(refused.after)).filter(|_| !ledger.reserved.is_empty()).unwrap_or_default();
    let (stream, pool) = (refused.stream, refused.pool.unwrap_or_default());
    let own = |p: &&Piece| p.pool == pool && stream.is_none_or(|s| s == p.stream) && p.small == (refused.asked <= SMALL);
    let sum = |of: &mut dyn Iterator<Item = &Piece>| of.fold(0_u64, |sum, p| sum.saturating_add(p.size));
    let elsewhere = |p: &&Piece| p.pool == pool && stream.is_some_and(|s| s != p.stream);
    let mut private: BTreeMap<(u64, u64), u64> = BTreeMap::new();
    for piece in list.iter().filter(|p| p.pool != pool && p.pool != (0, 0)) {
        let free = private.entry(piece.pool).or_default();
        *free = free.saturating_add(piece.size);
    }
    let mut private: Vec<Private> = private.into_iter().map(|(pool, free)| Private { pool, free, first: None }).collect();
    private.sort_by_key(|p| (std::cmp::Reverse(p.free), p.pool));
    for of in private.iter_mut().take(NAMED) {
        of.first = first_of(profile, ledger.device, of.pool);
    }
    let mut room = Room {
        asked: refused.asked,
        free: refused.free,
        allocated,
        cached: reserved_at(ledger, refused.time).saturating_sub(allocated),
        own: sum(&mut list.iter().filter(own)),
        pieces: list.iter().filter(own).count() as u64,
        largest: list.iter().filter(own).map(|p| p.size).max().unwrap_or(0),
        streams: sum(&mut list.iter().filter(elsewhere)),
        private,
        why: Why::Unknown,
    };
    room.why = find_reason(&room, || is_limited(profile, ledger));
    room
}

impl Room {
    /// Returns true if the device itself had enough memory for the request.
    pub fn on_device(&self) -> bool {
        let need = segment_size(self.asked);
        self.free.is_some_and(|free| free >= need.saturating_add((need / MARGIN).max(MARGIN_BYTES)))
    }

    /// Free bytes in private pools.
    pub fn in_private(&self) -> u64 {
        self.private.iter().fold(0, |sum, p| sum.saturating_add(p.free))
    }

    /// Returns true if the free pieces and the device's free memory together would suffice for the request, but no
    /// single piece is large enough.
    pub fn in_pieces(&self) -> bool {
        let free = if self.on_device() { 0 } else { self.free.unwrap_or(0) };
        self.pieces > 1 && self.largest < self.asked && self.own >= self.asked / PART && self.asked <= self.own.saturating_add(free)
    }
}

fn find_reason(room: &Room, limited: impl FnOnce() -> bool) -> Why {
    if room.on_device() {
        return if limited() { Why::Limit } else { Why::Driver };
    }
    if room.in_pieces() {
        return Why::Fragmented;
    }
    if room.largest >= room.asked {
        return Why::Unknown;
    }
    let without = room.free.unwrap_or(0).saturating_add(room.own);
    let (private, streams) = (room.in_private(), room.streams);
    let most = private.max(streams);
    if room.asked > without && most >= room.asked / PART && room.asked <= without.saturating_add(private).saturating_add(streams) {
        return if private >= streams { Why::PrivatePools } else { Why::OtherStreams };
    }
    if room.asked > without.saturating_add(private).saturating_add(streams) { Why::TooMuch } else { Why::Unknown }
}

/// Returns true if the process has a memory limit, either set explicitly or inferred from refusals at different
/// amounts: each refused request would have exceeded the maximum ever held.
fn is_limited(profile: &Profile, ledger: &Ledger) -> bool {
    let settings = profile.memory.state.iter().flat_map(|s| &s.settings);
    let fraction = |text: &str| {
        text.split(',')
            .filter_map(|part| part.split_once(':'))
            .any(|(key, value)| key.trim() == "per_process_memory_fraction" && value.trim().parse::<f64>().is_ok_and(|share| share < 1.0))
    };
    let set = |(key, value): &(std::sync::Arc<str>, std::sync::Arc<str>)| {
        &**key == "per_process_memory_fraction" && value.parse::<f64>().is_ok_and(|share| share < 1.0) || fraction(value)
    };
    if settings.into_iter().any(set) {
        return true;
    }
    let most = ledger.reserved.iter().map(|r| r.1).max().unwrap_or(0);
    let mut with: Vec<u64> = profile
        .memory
        .refused
        .iter()
        .filter(|r| r.device == ledger.device)
        .map(|r| reserved_at(ledger, r.time).saturating_add(segment_size(r.asked)))
        .collect();
    with.sort_unstable();
    with.dedup();
    with.len() >= SHOW_LIMIT && with[0] > most && with[0] - most <= most / MARGIN
}

/// Returns the first event that has a stack and lies in a segment of a pool.
fn first_of(profile: &Profile, device: Option<u32>, pool: (u64, u64)) -> Option<usize> {
    let memory = &profile.memory;
    let state = memory.state.as_ref()?;
    let own: BTreeMap<u64, u64> =
        state.segments.iter().chain(&state.former).filter(|s| s.device == device && s.pool == pool).map(|s| (s.address, s.size)).collect();
    let inside = |address: u64| own.range(..=address).next_back().is_some_and(|(start, size)| address - start < *size);
    memory.events.iter().enumerate().position(|(row, e)| e.device == device && inside(e.address) && memory.event_stack(row) != NONE)
}
