//! Sweeps over the operations of all devices in order of start and attributes every nanosecond of a window to one
//! category. Time in which nothing runs becomes gaps.

use super::device_ops::{Class, DeviceOp};
use super::time_category::TimeCategory;

/// Activity of one device in the window. Times are in ns.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Busy {
    /// Time during which a kernel ran.
    pub kernels: i64,
    /// Time during which collectives ran, but no kernel.
    pub collectives_exposed: i64,
    /// Time during which only copies or memsets ran.
    pub copies_exposed: i64,
    /// Time during which collectives ran, overlapped or not.
    pub collectives: i64,
    /// Time during which copies or memsets ran, overlapped or not.
    pub copies: i64,
    /// Time during which nothing ran: the total length of the gaps.
    pub idle: i64,
    pub operations: u64,
}

impl Busy {
    /// Time during which anything ran.
    pub fn busy_time(&self) -> i64 {
        self.kernels + self.collectives_exposed + self.copies_exposed
    }
}

/// An idle interval of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Gap {
    pub unit: usize,
    /// Start and end in nanoseconds since the session began.
    pub start: i64,
    pub end: i64,
    /// Operation that ends the gap, if any.
    pub next: Option<DeviceOp>,
    /// Start and end of the gap before it was clipped to the window, ns. The cause is derived from this whole gap.
    pub whole: (i64, i64),
}

/// Receives the results of a sweep.
pub trait SweepListener {
    /// Called for each gap, in order of end.
    fn gap(&mut self, gap: &Gap);
    /// Called for each interval in which only copies or memsets ran, with the running one that has the latest end.
    fn copy(&mut self, op: &DeviceOp, start: i64, end: i64);
    /// Called for each non-idle interval of a device, with its category.
    fn busy(&mut self, _category: TimeCategory, _start: i64, _end: i64) {}
    /// Called for each operation in the window, in order of start.
    fn op(&mut self, op: &DeviceOp);
}

/// State of the sweep for one device.
#[derive(Clone, Debug)]
struct Line {
    /// Time up to which everything has been accounted for, ns.
    at: i64,
    /// Latest end of the operations seen so far, one field per class, ns.
    kernels: i64,
    collectives: i64,
    copies: i64,
    /// Copy or memset whose end is `copies`.
    copy: Option<DeviceOp>,
    seen: bool,
    /// Windows that ended before the device's first operation. They become idle time once it is known that the device
    /// is used.
    missed: Vec<(i64, i64)>,
    /// Index of the current window.
    window: usize,
    /// Latest end of all operations started so far, in a window or not.
    latest: i64,
    busy: Busy,
}

impl Line {
    fn new(begin: i64) -> Self {
        Self {
            at: begin,
            kernels: begin,
            collectives: begin,
            copies: begin,
            copy: None,
            seen: false,
            missed: Vec::new(),
            window: 0,
            latest: i64::MIN,
            busy: Busy::default(),
        }
    }

    /// Accounts for the time up to `to`, in which no operation starts.
    fn advance_to(&mut self, to: i64, unit: usize, next: Option<&DeviceOp>, hear: &mut impl SweepListener) {
        let mut part = |at: &mut i64, end: i64, category: TimeCategory| {
            let end = end.min(to);
            let length = (end - *at).max(0);
            if length > 0 {
                hear.busy(category, *at, end);
            }
            *at = (*at).max(end);
            length
        };
        self.busy.collectives += (self.collectives.min(to) - self.at).max(0);
        self.busy.copies += (self.copies.min(to) - self.at).max(0);
        let mut at = self.at;
        self.busy.kernels += part(&mut at, self.kernels, TimeCategory::Kernels);
        self.busy.collectives_exposed += part(&mut at, self.collectives, TimeCategory::Collectives);
        let from = at;
        let copies = part(&mut at, self.copies, TimeCategory::Copies);
        if copies > 0 {
            self.busy.copies_exposed += copies;
            if let Some(op) = &self.copy {
                hear.copy(op, from, at);
            }
        }
        if at < to {
            self.busy.idle += to - at;
            let since = if self.latest == i64::MIN { at } else { self.latest.min(at) };
            let whole = (since, next.map_or(to, |n| n.start.max(to)));
            hear.gap(&Gap { unit, start: at, end: to, next: next.copied(), whole });
        }
        self.at = self.at.max(to);
    }

    /// Closes the current window: time not yet accounted for becomes idle time, or a missed window if the device has
    /// not run anything yet. `next` is the operation that ends a gap extending beyond the window.
    fn close_window(&mut self, windows: &[(i64, i64)], unit: usize, next: Option<&DeviceOp>, hear: &mut impl SweepListener) {
        let Some(&(begin, end)) = windows.get(self.window) else { return };
        self.at = self.at.max(begin);
        if self.seen {
            self.advance_to(end, unit, next, hear);
        } else {
            self.missed.push((begin, end));
            self.at = self.at.max(end);
        }
        self.window += 1;
        if let Some(&(begin, _)) = windows.get(self.window) {
            self.at = self.at.max(begin);
        }
    }

    fn begin_op(&mut self, op: &DeviceOp, hear: &mut impl SweepListener) {
        self.seen = true;
        for (start, end) in std::mem::take(&mut self.missed) {
            self.busy.idle += end - start;
            hear.gap(&Gap { unit: op.unit, start, end, next: None, whole: (start, end) });
        }
        self.latest = self.latest.max(op.end);
        match op.class {
            Class::Kernel => self.kernels = self.kernels.max(op.end),
            Class::Collective => self.collectives = self.collectives.max(op.end),
            Class::Copy => {
                if op.end >= self.copies {
                    self.copy = Some(*op);
                }
                self.copies = self.copies.max(op.end);
            }
        }
    }
}

/// Maximum time after the last window to search for the operation that ends each device's last gap, ns.
const LATER_NS: i64 = 10_000_000_000;

/// Sweeps over operations in order of start and accounts for the time in the windows, which must be sorted and must not
/// overlap. Returns `None` for devices without operations in the windows.
pub fn sweep_windows(
    ops: impl Iterator<Item = DeviceOp>,
    units: usize,
    windows: &[(i64, i64)],
    hear: &mut impl SweepListener,
) -> Vec<Option<Busy>> {
    let Some(&(first, _)) = windows.first() else { return vec![None; units] };
    let mut lines = vec![Line::new(first); units];
    let last = windows.last().map_or(first, |w| w.1);
    // Number of devices whose last gap already has the operation that ends it; once all have one, the sweep can stop.
    let mut over = 0;
    for op in ops {
        let Some(line) = lines.get_mut(op.unit) else { continue };
        // An operation that starts after a window closes the window.
        while windows.get(line.window).is_some_and(|w| op.start >= w.1) {
            line.close_window(windows, op.unit, Some(&op), hear);
            over += usize::from(line.window == windows.len());
        }
        let Some(&(begin, _)) = windows.get(line.window) else {
            if over == units || op.start > last.saturating_add(LATER_NS) {
                break;
            }
            continue;
        };
        if op.end <= begin && op.start < begin {
            line.latest = line.latest.max(op.end);
            continue;
        }
        line.advance_to(op.start.max(begin), op.unit, Some(&op), hear);
        line.begin_op(&op, hear);
        if op.start >= begin {
            line.busy.operations += 1;
            hear.op(&op);
        }
    }
    for (unit, line) in lines.iter_mut().enumerate() {
        while line.window < windows.len() {
            line.close_window(windows, unit, None, hear);
        }
    }
    lines.into_iter().map(|line| line.seen.then_some(line.busy)).collect()
}

#[cfg(test)]
mod tests {
    use super::super::device_ops::OperationRow;
    use super::*;
    use proptest::prelude::*;

    #[derive(Default)]
    struct Heard {
        gaps: Vec<(usize, i64, i64)>,
        copies: i64,
        ops: u64,
        busy: [i64; 3],
    }

    impl SweepListener for Heard {
        fn gap(&mut self, gap: &Gap) {
            self.gaps.push((gap.unit, gap.start, gap.end));
        }
        fn copy(&mut self, _: &DeviceOp, start: i64, end: i64) {
            self.copies += end - start;
        }
        fn busy(&mut self, category: TimeCategory, start: i64, end: i64) {
            self.busy[category as usize] += end - start;
        }
        fn op(&mut self, _: &DeviceOp) {
            self.ops += 1;
        }
    }

    const CLASSES: [Class; 3] = [Class::Kernel, Class::Collective, Class::Copy];

    proptest! {
        /// Checks every nanosecond of every device against a bitmap.
        #[test]
        fn parts_are_what_bitmaps_are(
            mut raw in prop::collection::vec((0..100_i64, 0..40_i64, 0..2_usize, 0..3_usize), 0..30),
            begin in 0..60_i64,
            length in 1..80_i64,
            // A pause in the middle: two windows.
            pause in 0..20_i64,
        ) {
            raw.sort_unstable();
            let ops: Vec<DeviceOp> = raw.iter().zip(0..).map(|(&(start, d, unit, class), i)| {
                DeviceOp { start, end: start + d, unit, class: CLASSES[class], row: OperationRow::Launch(i) }
            }).collect();
            let middle = begin + length / 2;
            let mut windows = vec![(begin, middle), (middle + pause, begin + length + pause)];
            windows.retain(|w| w.0 < w.1);
            let mut heard = Heard::default();
            let found = sweep_windows(ops.iter().copied(), 2, &windows, &mut heard);
            for (unit, got) in found.iter().enumerate() {
                let runs = |t: i64, class| ops.iter().any(|o| o.unit == unit && o.class == class && o.start <= t && t < o.end);
                let mut want = Busy::default();
                for t in windows.iter().flat_map(|w| w.0..w.1) {
                    let [k, c, m] = CLASSES.map(|class| runs(t, class));
                    want.kernels += i64::from(k);
                    want.collectives_exposed += i64::from(c && !k);
                    want.copies_exposed += i64::from(m && !k && !c);
                    want.collectives += i64::from(c);
                    want.copies += i64::from(m);
                    want.idle += i64::from(!k && !c && !m);
                }
                let Some(got) = got else {
                    prop_assert_eq!(want.busy_time(), 0);
                    continue;
                };
                prop_assert_eq!(got.busy_time() + got.idle, length);
                want.operations = got.operations;
                prop_assert_eq!(got, &want);
                let gaps: i64 = heard.gaps.iter().filter(|g| g.0 == unit).map(|g| g.2 - g.1).sum();
                prop_assert_eq!(gaps, got.idle);
            }
            prop_assert_eq!(heard.copies, found.iter().flatten().map(|b| b.copies_exposed).sum::<i64>());
            let sum = |of: fn(&Busy) -> i64| found.iter().flatten().map(of).sum::<i64>();
            prop_assert_eq!(heard.busy, [sum(|b| b.kernels), sum(|b| b.collectives_exposed), sum(|b| b.copies_exposed)]);
            prop_assert_eq!(heard.ops, found.iter().flatten().map(|b| b.operations).sum::<u64>());
        }
    }
}
