//! Groups copies by what makes them expensive: their small size, pageable memory, or the number of bytes.

use crate::model::{CopyKind, MemOp, MemOpKind, MemoryKind};

/// Copy size in bytes below which overhead dominates: at 25 GB/s, 64 KiB take 2.6 µs, as long as the host call alone.
/// Up to this size, CUDA also stages pageable copies without blocking.
pub const SMALL: u64 = 64 << 10;

#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum CopyClass {
    /// Between host and device, smaller than [`SMALL`].
    Small,
    /// From or to pageable host memory, unless known to be smaller than [`SMALL`].
    Pageable,
    /// Between pinned host memory and a device, or of an unknown kind.
    Host,
    /// Between devices.
    Peer,
    /// Within a device.
    Device,
    Unified,
    Set,
}

impl CopyClass {
    pub const ALL: [Self; 7] = [Self::Small, Self::Pageable, Self::Host, Self::Peer, Self::Device, Self::Unified, Self::Set];

    pub fn from_mem_op(op: &MemOp) -> Self {
        let MemOpKind::Copy { kind, from, to } = op.kind else { return Self::Set };
        match kind {
            CopyKind::Unified => Self::Unified,
            CopyKind::PeerToPeer => Self::Peer,
            CopyKind::DeviceToDevice => Self::Device,
            _ if op.bytes.is_some_and(|b| b.0 < SMALL) => Self::Small,
            _ if [from, to].contains(&Some(MemoryKind::Pageable)) => Self::Pageable,
            _ => Self::Host,
        }
    }

    /// Returns true if a host call issues the copy. The idle time before such a copy is part of its cost.
    pub fn of_host(self) -> bool {
        matches!(self, Self::Small | Self::Pageable | Self::Host | Self::Peer)
    }
}

/// Totals over the copies in a class. Times are in ns.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct Sum {
    pub count: u64,
    pub bytes: u64,
    pub ns: i64,
    /// Total duration of the copies whose size is recorded, and the number of copies whose size is not.
    pub sized_ns: i64,
    pub unsized_count: u64,
    /// Number of copies that AMD's runtime made with kernels, whose size and direction are not recorded.
    pub blits: u64,
    /// Number of copies to the device.
    pub to_device: u64,
    /// Bytes to the device.
    pub bytes_to_device: u64,
    /// Number of copies from or to pageable memory.
    pub pageable: u64,
    /// Time during which nothing else ran.
    pub exposed: i64,
    /// Time during which the device was idle because the host was still issuing the copies.
    pub idle: i64,
    /// Longest interval in which nothing else ran.
    pub longest: Option<(i64, i64)>,
}

impl Sum {
    /// Totals over the copies in both classes.
    pub fn combined_with(&self, other: &Self) -> Self {
        let length = |at: &Option<(i64, i64)>| at.map_or(0, |(a, b)| b - a);
        Self {
            count: self.count + other.count,
            bytes: self.bytes.saturating_add(other.bytes),
            ns: self.ns.saturating_add(other.ns),
            sized_ns: self.sized_ns.saturating_add(other.sized_ns),
            unsized_count: self.unsized_count + other.unsized_count,
            blits: self.blits + other.blits,
            to_device: self.to_device + other.to_device,
            bytes_to_device: self.bytes_to_device.saturating_add(other.bytes_to_device),
            pageable: self.pageable + other.pageable,
            exposed: self.exposed + other.exposed,
            idle: self.idle + other.idle,
            longest: if length(&self.longest) >= length(&other.longest) { self.longest } else { other.longest },
        }
    }

    /// Throughput of the copies whose size is recorded, bytes per second.
    pub fn bytes_per_second(&self) -> Option<f64> {
        (self.sized_ns > 0 && self.bytes > 0).then(|| self.bytes as f64 / self.sized_ns as f64 * 1e9)
    }

    /// Upper bound on the time that the copies cost in the window, ns.
    pub fn cost(&self) -> i64 {
        self.exposed + self.idle
    }
}

/// All copies in the window.
#[derive(Clone, Debug, Default)]
pub struct Copies([Sum; CopyClass::ALL.len()]);

impl Copies {
    pub fn get(&self, class: CopyClass) -> &Sum {
        &self.0[class as usize]
    }

    pub fn add_copy(&mut self, class: CopyClass, op: &MemOp) {
        let sum = &mut self.0[class as usize];
        sum.count += 1;
        let bytes = op.bytes.map_or(0, |b| b.0);
        sum.bytes = sum.bytes.saturating_add(bytes);
        sum.ns = sum.ns.saturating_add(op.duration.0);
        match op.bytes {
            Some(_) => sum.sized_ns = sum.sized_ns.saturating_add(op.duration.0),
            None => sum.unsized_count += 1,
        }
        if let MemOpKind::Copy { kind, from, to } = op.kind {
            if kind == CopyKind::HostToDevice {
                sum.to_device += 1;
                sum.bytes_to_device = sum.bytes_to_device.saturating_add(bytes);
            }
            sum.pageable += u64::from([from, to].contains(&Some(MemoryKind::Pageable)));
        }
    }

    pub fn add_blit(&mut self, class: CopyClass, ns: i64) {
        let sum = &mut self.0[class as usize];
        sum.count += 1;
        sum.blits += 1;
        sum.unsized_count += 1;
        sum.ns = sum.ns.saturating_add(ns);
    }

    pub fn add_exposed(&mut self, class: CopyClass, ns: i64, at: (i64, i64)) {
        let sum = &mut self.0[class as usize];
        sum.exposed += ns;
        if sum.longest.is_none_or(|(a, b)| at.1 - at.0 > b - a) {
            sum.longest = Some(at);
        }
    }

    pub fn add_idle(&mut self, class: CopyClass, ns: i64) {
        self.0[class as usize].idle += ns;
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_listed_in_the_order_of_their_numbers() {
        assert!(CopyClass::ALL.iter().enumerate().all(|(i, c)| *c as usize == i));
    }
}
