//! A request that could not be met.

use super::Case;
use crate::analysis::memory::finding::{MemoryFinding, MemoryVerdict};
use crate::model::{Bytes, Refused, units};

/// What was asked, what was free, and what the allocator held then.
pub struct Room {
    pub asked: u64,
    /// Bytes that the device had free.
    pub free: Option<u64>,
    pub allocated: u64,
    /// Bytes that the allocator held and had not given out.
    pub cached: u64,
}

/// The requests of the device that were refused.
pub fn refused<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a Refused> {
    let device = case.of.ledger.device;
    case.profile.memory.refused.iter().filter(move |r| r.device == device)
}

/// What there was when a request was refused.
pub fn room(case: &Case<'_>, refused: &Refused) -> Room {
    let ledger = &case.of.ledger;
    let allocated = ledger.at(refused.time).map_or(ledger.before, |at| ledger.bytes[at as usize]);
    let reserved = ledger.reserved.partition_point(|r| r.0 <= refused.time).checked_sub(1).map(|i| ledger.reserved[i].1);
    Room { asked: refused.asked, free: refused.free, allocated, cached: reserved.unwrap_or(0).saturating_sub(allocated) }
}

/// Memory was asked for and there was none.
pub fn out_of_memory(case: &Case<'_>) -> Option<MemoryFinding> {
    let largest = refused(case).max_by_key(|r| (r.asked, std::cmp::Reverse(r.time)))?;
    let count = refused(case).count() as u64;
    let room = room(case, largest);
    let ledger = &case.of.ledger;
    let holders = case.by_site(ledger.held(ledger.at(largest.time)));
    let who = case.profile.memory.stacks.of(largest.stack).next().map(|_| case.name(case.sites.site(largest.stack)));
    let by = who.map_or_else(String::new, |w| format!(" by {w}"));
    let free = room.free.map_or_else(String::new, |f| format!("{} was free on the device, ", Bytes(f)));
    let times = if count == 1 {
        format!("a request of {}{by} was refused", Bytes(room.asked))
    } else {
        format!("{} were refused, the largest of {}{by}", units::count(count, "request"), Bytes(room.asked))
    };
    let share = |bytes: u64| bytes as f64;
    let total = room.free.map(|f| f.saturating_add(room.allocated).saturating_add(room.cached));
    // Where it would fit if what is free were in one piece, that is the cause.
    let scattered = room.cached > 0 && room.asked <= room.free.unwrap_or(0).saturating_add(room.cached);
    let mut finding = MemoryFinding::new(
        MemoryVerdict::OutOfMemory,
        if scattered { 0.99 } else { 1.0 },
        format!("out of memory: {times}; {free}{} was held{}", Bytes(room.allocated), case.mostly(&holders)),
    )
    .because("requests that were refused", count as f64, "")
    .because("bytes of the largest", share(room.asked), "byte")
    .because("allocated then", share(room.allocated), "byte")
    .because("held by the allocator and not allocated", share(room.cached), "byte");
    if let (Some(free), Some(total)) = (room.free, total) {
        finding =
            finding.because("free on the device", share(free), "byte").because("allocated, held and free together", share(total), "byte");
    }
    let actions: &[&str] = if scattered {
        &["Keep what is free in one piece: see fragmentation."]
    } else {
        &[
            "Hold less when it is asked for: free what is not needed, a smaller batch, activation checkpointing, a smaller type.",
            "Ask for less at once: in pieces, or with accumulation over smaller batches.",
        ]
    };
    Some(finding.at(holders, Some(largest.time)).change(actions))
}
