//! Allocations on one device over time.

use crate::model::api_call::NONE;
use crate::model::{BlockState, MemoryKind, MemoryLevel, Nanos, Profile, units};
use rustc_hash::FxHashMap;

/// A block of memory, from allocation to free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Life {
    /// Allocation event, as an index into [`Ledger::times`]; [`NONE`] if it was allocated before the report began.
    pub start: u32,
    /// Free event, as an index into [`Ledger::times`]; [`NONE`] if the memory is still held at the end.
    pub end: u32,
    pub bytes: u64,
    /// Index of the stack; [`NONE`] if unknown.
    pub stack: u32,
}

impl Life {
    /// Returns true if the memory is still held after the event with index `at`.
    pub fn is_held_at(&self, at: u32) -> bool {
        (self.start == NONE || self.start <= at) && (self.end == NONE || self.end > at)
    }

    /// Returns true if the memory was allocated before the report began.
    pub fn is_older(&self) -> bool {
        self.start == NONE
    }

    /// Returns true if the memory is still held at the end of the report.
    pub fn is_kept(&self) -> bool {
        self.end == NONE
    }
}

/// A request to the driver: an allocation or a free.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Asked {
    /// Nanoseconds since the session began.
    pub time: i64,
    pub address: u64,
    /// Negative for a free.
    pub bytes: i64,
    /// Number of events in the ledger before this request.
    pub after: u32,
    /// Bytes in blocks that were allocated, or freed but still waiting for a stream, at the time of the request.
    pub active: i64,
}

/// A time, ns, and the number of bytes from then on.
pub type Point = (i64, u64);

/// Allocations and frees on one device.
#[derive(Clone, Debug, Default)]
pub struct Ledger {
    /// Index into [`Profile::devices`].
    pub device: Option<u32>,
    /// Source of the events: a framework's allocator if there is one, otherwise the driver.
    pub level: MemoryLevel,
    /// True if the report has times; otherwise, event numbers take their place.
    pub timed: bool,
    /// Time of each event, ns.
    pub times: Vec<i64>,
    /// Bytes allocated after each event.
    pub bytes: Vec<u64>,
    /// Bytes allocated before the first event.
    pub before: u64,
    /// Allocations in order of start; allocations from before the report come first.
    pub lives: Vec<Life>,
    /// Bytes that a framework's allocator has reserved from the driver; empty if unknown.
    pub reserved: Vec<Point>,
    /// Allocations and frees requested from the driver.
    pub asked: Vec<Asked>,
    /// Maximum number of bytes that were allocated, or freed but still waiting for a stream, at the same time.
    pub active_peak: u64,
}

impl Ledger {
    /// Builds the ledger of each device with memory data, ordered by device.
    pub fn all_devices(profile: &Profile, stack_of: &[u32]) -> Vec<Self> {
        let memory = &profile.memory;
        let of_events = memory.events.iter().filter(|e| of_gpu(e.kind)).filter_map(|e| e.device);
        let mut devices: Vec<u32> = Vec::new();
        for device in of_events.chain(memory.state.iter().flat_map(|s| &s.segments).filter_map(|s| s.device)) {
            // Most events are on the same device as the previous one.
            if devices.last() != Some(&device) && !devices.contains(&device) {
                devices.push(device);
            }
        }
        devices.sort_unstable();
        devices.into_iter().map(|d| Self::for_device(profile, d, stack_of)).collect()
    }

    fn for_device(profile: &Profile, device: u32, stack_of: &[u32]) -> Self {
        let memory = &profile.memory;
        let own = || memory.events.iter().enumerate().filter(move |(_, e)| e.device == Some(device) && of_gpu(e.kind));
        let framework = memory.state.is_some() || own().any(|(_, e)| e.level == MemoryLevel::Allocator);
        let level = if framework { MemoryLevel::Allocator } else { MemoryLevel::Driver };
        let mut ledger = Self { device: Some(device), level, timed: !memory.untimed, ..Self::default() };
        let mut open: FxHashMap<u64, usize> = FxHashMap::default();
        // Freed blocks become inactive at once, unless the report has `Reusable` events: then only when their streams
        // have finished with them.
        let waits = own().any(|(_, e)| e.level == MemoryLevel::Reusable);
        let (mut active, mut active_peak) = (0_i64, 0_i64);
        let mut changes: Vec<i64> = Vec::new();
        for (row, event) in own() {
            let at = u32::try_from(ledger.times.len()).unwrap_or(NONE);
            if event.level == MemoryLevel::Driver {
                ledger.asked.push(Asked { time: event.time, address: event.address, bytes: event.bytes, after: at, active });
            }
            if event.level == MemoryLevel::Reusable || event.level == level && (event.bytes > 0 || !waits) {
                active = active.saturating_add(event.bytes);
                active_peak = active_peak.max(active);
            }
            match event.level {
                MemoryLevel::Driver if framework => {}
                MemoryLevel::Reusable => {}
                _ => {
                    let bytes = event.bytes.unsigned_abs();
                    let mut change = event.bytes;
                    if event.bytes >= 0 {
                        let stack = stack_of.get(row).copied().unwrap_or(NONE);
                        if let Some(before) = open.insert(event.address, ledger.lives.len())
                            && let Some(life) = ledger.lives.get_mut(before)
                        {
                            // The previous block's free was not recorded. It must have been earlier, since two blocks
                            // cannot share an address.
                            life.end = at;
                            change = change.saturating_sub_unsigned(life.bytes);
                        }
                        ledger.lives.push(Life { start: at, end: NONE, bytes, stack });
                    } else if let Some(life) = open.remove(&event.address).and_then(|l| ledger.lives.get_mut(l)) {
                        life.end = at;
                        change = 0_i64.saturating_sub_unsigned(life.bytes);
                    } else {
                        ledger.lives.push(Life { start: NONE, end: at, bytes, stack: NONE });
                    }
                    ledger.times.push(event.time);
                    changes.push(change);
                }
            }
        }
        ledger.at_the_end(profile, device, &open);
        // Allocations from before the report come first; the rest are in order.
        if ledger.lives.iter().skip_while(|l| l.is_older()).any(Life::is_older) {
            let (mut first, later): (Vec<Life>, Vec<Life>) = std::mem::take(&mut ledger.lives).into_iter().partition(Life::is_older);
            first.extend(later);
            ledger.lives = first;
        }
        ledger.before = ledger.level_before(profile, device, &changes);
        let mut sum = i64::try_from(ledger.before).unwrap_or(i64::MAX);
        for change in changes {
            sum = sum.saturating_add(change);
            ledger.bytes.push(u64::try_from(sum).unwrap_or(0));
        }
        let base = ledger.active_before(profile, device, active);
        ledger.active_peak = u64::try_from(active_peak.saturating_add(base)).unwrap_or(0);
        for asked in &mut ledger.asked {
            asked.active = asked.active.saturating_add(base);
        }
        ledger.add_reserved(profile, device);
        ledger
    }

    /// Adds blocks that the allocator held at the end without a recorded allocation.
    fn at_the_end(&mut self, profile: &Profile, device: u32, open: &FxHashMap<u64, usize>) {
        let Some(state) = &profile.memory.state else { return };
        for segment in state.segments.iter().filter(|s| s.device == Some(device)) {
            let blocks = state.blocks.get(segment.blocks.0..segment.blocks.1).unwrap_or_default();
            let older = blocks.iter().filter(|b| b.state == BlockState::Allocated && !open.contains_key(&b.address));
            self.lives.extend(older.map(|b| Life { start: NONE, end: NONE, bytes: b.size, stack: b.stack }));
        }
    }

    /// Bytes allocated before the first event.
    fn level_before(&self, profile: &Profile, device: u32, changes: &[i64]) -> u64 {
        let memory = &profile.memory;
        let said = memory.totals.iter().find(|t| memory.events.get(t.0 as usize).is_some_and(|e| e.device == Some(device)));
        if let Some(&(row, allocated, _)) = said
            && let Some(first) = memory.events.get(row as usize)
        {
            return u64::try_from(i64::try_from(allocated).unwrap_or(0).saturating_sub(first.bytes)).unwrap_or(0);
        }
        let known = self.lives.iter().filter(|l| l.is_older()).fold(0_u64, |sum, l| sum.saturating_add(l.bytes));
        // If frees exceed allocations, the excess must have been allocated before the first event.
        let (mut sum, mut least) = (0_i64, 0_i64);
        for change in changes {
            sum = sum.saturating_add(*change);
            least = least.min(sum);
        }
        known.max(least.unsigned_abs())
    }

    /// Active bytes before the first event, given the change until the end.
    fn active_before(&self, profile: &Profile, device: u32, change: i64) -> i64 {
        let Some(state) = &profile.memory.state else { return i64::try_from(self.before).unwrap_or(i64::MAX) };
        let own = state.segments.iter().filter(|s| s.device == Some(device));
        let blocks = own.flat_map(|s| state.blocks.get(s.blocks.0..s.blocks.1).unwrap_or_default());
        let end = blocks.filter(|b| b.state != BlockState::Free).fold(0_u64, |sum, b| sum.saturating_add(b.size));
        i64::try_from(end).unwrap_or(i64::MAX).saturating_sub(change)
    }

    fn add_reserved(&mut self, profile: &Profile, device: u32) {
        let memory = &profile.memory;
        if self.level == MemoryLevel::Driver {
            return;
        }
        if let Some(state) = &memory.state {
            if state.segments.is_empty() {
                return;
            }
            let end: u64 = state.segments.iter().filter(|s| s.device == Some(device)).fold(0, |sum: u64, s| sum.saturating_add(s.size));
            let change = self.asked.iter().fold(0_i64, |sum, a| sum.saturating_add(a.bytes));
            let mut sum = i64::try_from(end).unwrap_or(i64::MAX).saturating_sub(change);
            let first = self.times.first().copied().into_iter().chain(self.asked.first().map(|a| a.time)).min().unwrap_or(0);
            self.reserved.push((first, u64::try_from(sum).unwrap_or(0)));
            for asked in &self.asked {
                sum = sum.saturating_add(asked.bytes);
                self.reserved.push((asked.time, u64::try_from(sum).unwrap_or(0)));
            }
            return;
        }
        let said = memory.totals.iter().filter_map(|&(row, _, reserved)| Some((memory.events.get(row as usize)?, reserved)));
        for (event, reserved) in said.filter(|(e, _)| e.device == Some(device)) {
            if self.reserved.last().is_none_or(|last| last.1 != reserved) {
                self.reserved.push((event.time, reserved));
            }
        }
    }

    /// Returns the event after which the most bytes are allocated, and the number of bytes; `None` if that was before
    /// the first event.
    pub fn peak(&self) -> (Option<u32>, u64) {
        let mut best = (None, self.before);
        for (at, &bytes) in (0_u32..).zip(&self.bytes) {
            if bytes > best.1 {
                best = (Some(at), bytes);
            }
        }
        best
    }

    /// Bytes allocated at the end.
    pub fn bytes_at_end(&self) -> u64 {
        self.bytes.last().copied().unwrap_or(self.before)
    }

    /// Bytes allocated before the event with index `at`.
    pub fn bytes_before(&self, at: usize) -> u64 {
        at.checked_sub(1).and_then(|i| self.bytes.get(i)).copied().unwrap_or(self.before)
    }

    /// Returns the last event at or before a time.
    pub fn event_at(&self, time: i64) -> Option<u32> {
        self.times.partition_point(|&t| t <= time).checked_sub(1).and_then(|i| u32::try_from(i).ok())
    }

    /// Memory held after an event, or before the first one.
    pub fn held_at(&self, at: Option<u32>) -> impl Iterator<Item = &Life> {
        self.lives.iter().filter(move |l| at.map_or(l.is_older(), |at| l.is_held_at(at)))
    }

    /// Time of the first and of the last event, ns.
    pub fn span(&self) -> Option<(i64, i64)> {
        Some((*self.times.first()?, *self.times.last()?))
    }

    /// Formats a time, or the event number in a report without times.
    pub fn format_time(&self, time: i64) -> String {
        if self.timed { Nanos(time).to_string() } else { format!("event {}", units::format_grouped(time)) }
    }

    pub fn event_time(&self, at: u32) -> i64 {
        self.times.get(at as usize).copied().unwrap_or_default()
    }
}

/// Returns true for device memory; an unknown kind also counts.
fn of_gpu(kind: Option<MemoryKind>) -> bool {
    !matches!(kind, Some(MemoryKind::Pageable | MemoryKind::Pinned))
}
