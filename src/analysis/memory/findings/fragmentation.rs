//! Memory that the allocator holds but cannot hand out.

use super::refused::{largest_refusals, refusal_room};
use super::{Case, LEAST};
use crate::analysis::finding::Sure;
use crate::analysis::memory::finding::{MemoryFinding, MemoryVerdict};
use crate::analysis::memory::usage::{Free, device_segments};
use crate::model::Bytes;
use crate::model::units::format_share;
use rustc_hash::FxHashSet;

/// Minimum share of the allocator's memory that is free in segments that also contain blocks in use.
const SPLIT: f64 = 0.25;
/// Minimum number of free pieces; a few are merely what is left over in the last segments.
const PIECES: u64 = 4;
/// Minimum number (`GAPS`) and total bytes (`LEAST_BETWEEN`) of gaps between blocks in use. They apply if the free
/// pieces add up to less than [`LEAST`].
const GAPS: u64 = 8;
const LEAST_BETWEEN: u64 = 16 << 20;
/// Minimum avoidable share of the allocator's peak: memory that it requested although as much was free, and that the
/// program never needed at the same time.
const WASTE: f64 = 0.28;

/// Minimum share of the allocator's peak that was unused even when the most was in use. Below it, the pieces were
/// filled when it mattered and may be again; that they are free at the end of the report proves nothing.
const NEVER_USED: f64 = 0.1;

/// Returns true if the free memory in segments in use is split into many pieces. One large block is a reserve, and
/// every program has leftovers in a few segments. If there is little free memory, only gaps with blocks in use on both
/// sides count.
fn is_scattered(free: &Free, reserved: u64) -> bool {
    let many = free.pieces >= PIECES && free.largest_piece <= free.split / 2;
    let gaps = free.gaps >= GAPS && free.between >= LEAST_BETWEEN && free.between as f64 >= SPLIT * reserved as f64;
    many && (free.split >= LEAST || gaps)
}

/// Detects fragmented free memory.
pub fn find_fragmentation(case: &Case<'_>) -> Option<MemoryFinding> {
    let ledger = &case.of.ledger;
    let (peak, free) = (case.of.reserved_peak?, case.of.free);
    let reserved = case.of.reserved.unwrap_or(peak);
    // Bytes requested from the driver although the allocator held enough free memory.
    let (mut held, mut forced) = (i64::try_from(ledger.reserved.first().map_or(0, |r| r.1)).unwrap_or(i64::MAX), 0_i64);
    let pooled: FxHashSet<u64> = device_segments(case.profile, ledger.device).filter(|s| s.pool != (0, 0)).map(|s| s.address).collect();
    // Free memory in private pools cannot serve other requests.
    let closed: u64 = case.of.private.iter().map(|p| p.1).sum();
    let closed = i64::try_from(closed).unwrap_or(i64::MAX);
    for asked in &ledger.asked {
        let pooled = pooled.contains(&asked.address);
        if asked.bytes > 0 && !pooled && held.saturating_sub(asked.active).saturating_sub(closed) >= asked.bytes {
            forced = forced.saturating_add(asked.bytes);
        }
        held = held.saturating_add(asked.bytes);
    }
    let never = peak.saturating_sub(ledger.active_peak).saturating_sub(closed.unsigned_abs());
    let waste = u64::try_from(forced).unwrap_or(0).min(never);
    let split = free.map_or(0, |f| f.split);
    let (split_share, waste_share) = (split as f64 / reserved.max(1) as f64, waste as f64 / peak.max(1) as f64);
    let in_pieces = split_share >= SPLIT && free.is_some_and(|f| is_scattered(&f, reserved));
    // If the device itself had room, the pieces are to blame only if they are a large share of the memory held.
    let stopped =
        largest_refusals(case).into_iter().map(|r| refusal_room(case, r)).find(|r| r.in_pieces() && (in_pieces || !r.on_device()));
    let wasted = waste_share >= WASTE && waste >= LEAST;
    if !in_pieces && !wasted && stopped.is_none() {
        return None;
    }
    let stake = if stopped.is_some() { 1.0 } else { split_share.max(waste_share) };
    let piece = free.map_or_else(String::new, |f| format!(", the largest piece {}", Bytes(f.largest_piece)));
    let headline = if let Some(room) = &stopped {
        format!(
            "memory is fragmented: {} could not be had although the allocator held {} that was free, in pieces of at most {}",
            Bytes(room.asked),
            Bytes(room.own),
            Bytes(room.largest)
        )
    } else if in_pieces {
        format!(
            "memory is fragmented: {} of the {} that the allocator holds ({}) lies free between blocks in use{piece}",
            Bytes(split),
            Bytes(reserved),
            format_share(split_share)
        )
    } else {
        format!(
            "memory is fragmented: the allocator came to hold {} where {} was the most that was in use; {} of it was asked for although as much was free, in pieces that did not fit",
            Bytes(peak),
            Bytes(ledger.active_peak),
            Bytes(waste)
        )
    };
    let filled = stopped.is_none() && !wasted && (never as f64) < NEVER_USED * peak as f64;
    let headline = if filled { format!("{headline}; at the peak, all but {} of it was in use", Bytes(never)) } else { headline };
    let mut finding = MemoryFinding::new(MemoryVerdict::Fragmentation, stake, headline)
        .with_confidence(if filled { Sure::Possible } else { Sure::Certain })
        .with_number("held by the allocator at the end", reserved as f64, "byte")
        .with_number("allocated at the end", ledger.bytes_at_end() as f64, "byte");
    // Show a threshold only if it was reached.
    let (between, forced) = ("free between blocks in use, of what is held", "asked for although as much was free, of the most held");
    finding = if in_pieces {
        finding.with_judged_number(between, split_share * 100.0, "%", ("≥", SPLIT * 100.0))
    } else {
        finding.with_number(between, split_share * 100.0, "%")
    };
    finding = if wasted {
        finding.with_judged_number(forced, waste_share * 100.0, "%", ("≥", WASTE * 100.0))
    } else {
        finding.with_number(forced, waste_share * 100.0, "%")
    };
    if let Some(free) = free {
        finding = finding
            .with_number("free in segments that could go back", free.whole as f64, "byte")
            .with_number("largest free block", free.largest as f64, "byte")
            .with_number("free pieces between blocks in use", free.pieces as f64, "");
    }
    let expandable = device_segments(case.profile, ledger.device).any(|s| s.expandable);
    let actions: &[&str] = if expandable {
        &["Keep blocks that live long apart from those that live briefly: allocate what stays first, and reuse buffers of a fixed size."]
    } else {
        &[
            "PYTORCH_CUDA_ALLOC_CONF=expandable_segments:True lets segments grow, so that what is free stays in one piece.",
            "Use few sizes: fixed shapes, padding to a multiple, or roundup_power2_divisions.",
            "Allocate what stays first, and reuse buffers.",
        ]
    };
    // Sites that hold the blocks between the free pieces.
    let holders = case.by_site(ledger.lives.iter().filter(|l| l.is_kept()));
    Some(finding.with_sites(holders, ledger.span().map(|s| s.1)).with_actions(actions))
}
