//! Refused requests for memory.

use super::{Case, LEAST};
use crate::analysis::memory::finding::{MemoryFinding, MemoryVerdict};
use crate::analysis::memory::refusal::{self, Private, Room, Why};
use crate::model::api_call::NONE;
use crate::model::{Bytes, Refused, units};

/// Maximum number of refused requests to analyze.
const LOOKED_AT: usize = 8;

/// Refused requests on the device.
pub fn refused_requests<'a>(case: &Case<'a>) -> impl Iterator<Item = &'a Refused> {
    let device = case.of.ledger.device;
    case.profile.memory.refused.iter().filter(move |r| r.device == device)
}

/// Largest refused requests; limited in number because there may be very many.
pub fn largest_refusals<'a>(case: &Case<'a>) -> Vec<&'a Refused> {
    let mut all: Vec<&Refused> = refused_requests(case).collect();
    all.sort_by_key(|r| (std::cmp::Reverse(r.asked), r.time));
    all.truncate(LOOKED_AT);
    all
}

/// State of memory at the time when a request was refused.
pub fn refusal_room(case: &Case<'_>, refused: &Refused) -> Room {
    refusal::room_at_refusal(case.profile, &case.of.ledger, refused)
}

/// Name of a private pool with its creator, for use in a sentence.
fn pool_name(case: &Case<'_>, pool: &Private) -> String {
    let by = site_of(case, pool).map_or_else(String::new, |s| format!(", made by {}", case.site_name(s)));
    format!("private pool ({}, {}){by}", pool.pool.0, pool.pool.1)
}

fn site_of(case: &Case<'_>, pool: &Private) -> Option<u32> {
    let stack = pool.first.and_then(|row| case.sites.stack_of.get(row)).copied()?;
    Some(case.sites.site_of_stack(stack)).filter(|&s| s != NONE)
}

/// Explains in a sentence why a request was refused.
fn explain_refusal(case: &Case<'_>, room: &Room, by: &str) -> String {
    let asked = Bytes(room.asked);
    let free = room.free.map_or_else(String::new, |f| format!("{} was free on the device, ", Bytes(f)));
    let in_use = format!("{free}{} was held{by}", Bytes(room.allocated));
    match room.why {
        Why::Limit => format!(
            "although {} was free on the device: this process may not have more than the {} that its allocator held",
            Bytes(room.free.unwrap_or(0)),
            Bytes(room.allocated.saturating_add(room.cached))
        ),
        Why::Driver => format!(
            "although {} was free on the device and this process held {}: neither the size of the device nor what is held explains it; a limit of the process or an error of the driver does",
            Bytes(room.free.unwrap_or(0)),
            Bytes(room.allocated.saturating_add(room.cached))
        ),
        Why::PrivatePools => {
            let pools: Vec<String> =
                room.private.iter().take(refusal::NAMED).map(|p| format!("{} in {}", Bytes(p.free), pool_name(case, p))).collect();
            format!(
                "{in_use}; {} more is free in private pools and serves no request outside of them: {}",
                Bytes(room.in_private()),
                pools.join("; ")
            )
        }
        Why::OtherStreams => {
            format!("{in_use}; {} more is free in segments of other streams and serves no request of this one", Bytes(room.streams))
        }
        Why::Fragmented => format!("{in_use}; {} more is free, in pieces below {asked}", Bytes(room.own)),
        Why::Unknown if room.largest >= room.asked => {
            format!(
                "{in_use}; a free block of {} is recorded that was large enough: why it did not serve is not recorded",
                Bytes(room.largest)
            )
        }
        Why::TooMuch | Why::Unknown => in_use,
    }
}

fn suggest_actions(why: Why) -> &'static [&'static str] {
    match why {
        Why::Fragmented => &["Keep what is free in one piece: see fragmentation."],
        Why::PrivatePools => &[
            "Capture fewer graphs, or of fewer sizes, and let them share a pool (pool=graph.pool(), torch.cuda.graph_pool_handle()): each private pool keeps its peak.",
            "Delete graphs and MemPools that are done with: only then does their memory go back.",
        ],
        Why::OtherStreams => &[
            "Allocate on one stream and use record_stream(), or free what the other stream holds: free blocks serve only the stream that they were allocated on.",
            "Give back what other streams hold free before the large request: torch.cuda.empty_cache() between phases, not in a loop.",
        ],
        Why::Limit => &[
            "Raise or remove the limit of this process: torch.cuda.set_per_process_memory_fraction(), per_process_memory_fraction in PYTORCH_CUDA_ALLOC_CONF, the MIG slice or the scheduler's share.",
            "Or stay below it: a smaller batch, activation checkpointing, a smaller type.",
        ],
        Why::Driver => &[
            "Look for a limit of this process: torch.cuda.set_per_process_memory_fraction(), per_process_memory_fraction, a limit of the container or of the scheduler.",
            "Read the driver's own error (dmesg; CUDA_LAUNCH_BLOCKING=1, on AMD GPUs AMD_LOG_LEVEL=3): an earlier error of a kernel, or one of the driver, can come out as out of memory.",
            "Look at what other processes held at that moment: nvidia-smi, amd-smi.",
        ],
        Why::TooMuch | Why::Unknown => &[
            "Hold less when it is asked for: free what is not needed, a smaller batch, activation checkpointing, a smaller type.",
            "Ask for less at once: in pieces, or with accumulation over smaller batches.",
        ],
    }
}

/// Detects requests for memory that were refused.
pub fn out_of_memory(case: &Case<'_>) -> Option<MemoryFinding> {
    let largest = *largest_refusals(case).first()?;
    let count = refused_requests(case).count() as u64;
    let room = refusal_room(case, largest);
    let ledger = &case.of.ledger;
    let mut holders = case.by_site(ledger.held_at(ledger.event_at(largest.time)));
    let who = case.profile.memory.stacks.frames_of(largest.stack).next().map(|_| case.site_name(case.sites.site_of_stack(largest.stack)));
    let by = who.map_or_else(String::new, |w| format!(" by {w}"));
    let times = if count == 1 {
        format!("a request of {}{by} was refused", Bytes(room.asked))
    } else {
        format!("{} were refused, the largest of {}{by}", units::format_count(count, "request"), Bytes(room.asked))
    };
    let link = if matches!(room.why, Why::Limit | Why::Driver) { " " } else { "; " };
    let text = explain_refusal(case, &room, &case.main_site_phrase(&holders));
    if room.why == Why::PrivatePools {
        // Sites that hold the missing memory come first.
        let makers = room.private.iter().filter_map(|p| Some((site_of(case, p)?, p.free)));
        holders = makers.chain(holders.iter().copied()).collect();
    }
    let share = |bytes: u64| bytes as f64;
    let mut finding =
        MemoryFinding::new(MemoryVerdict::OutOfMemory, if room.in_pieces() { 0.99 } else { 1.0 }, format!("{times}{link}{text}"))
            .with_kind(room.why.id())
            .with_number("requests that were refused", count as f64, "")
            .with_number("bytes of the largest", share(room.asked), "byte")
            .with_number("allocated then", share(room.allocated), "byte")
            .with_number("held by the allocator and not allocated", share(room.cached), "byte");
    if room.own > 0 {
        finding = finding.with_number("of that free for such a request", share(room.own), "byte").with_number(
            "largest piece of it",
            share(room.largest),
            "byte",
        );
    }
    if room.in_private() >= LEAST {
        finding = finding.with_number("free in private pools", share(room.in_private()), "byte");
    }
    if room.streams >= LEAST {
        finding = finding.with_number("free in segments of other streams", share(room.streams), "byte");
    }
    if let Some(free) = room.free {
        let total = free.saturating_add(room.allocated).saturating_add(room.cached);
        finding = finding.with_number("free on the device", share(free), "byte").with_number(
            "allocated, held and free together",
            share(total),
            "byte",
        );
    }
    Some(finding.with_sites(holders, Some(largest.time)).with_actions(suggest_actions(room.why)))
}
