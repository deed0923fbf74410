//! Idle times of all devices over the whole report with their causes, shown as shading in a timeline.

use super::attribution::{Gap, SweepListener, sweep_windows};
use super::device_ops::{DeviceOp, DeviceOps};
use super::eligible_windows::recorded_windows;
use super::host::Host;
use super::idle_causes::{Gaps, Piece};
use super::marked::by_ranges;
use super::time_category::Cause;
use crate::model::{Cancel, Profile};

/// An idle interval of a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Idle {
    /// Device number shown to the user.
    pub device: u32,
    /// Start and end in nanoseconds since the session began.
    pub start: i64,
    pub end: i64,
    pub cause: Cause,
}

/// Maximum number of pieces; the longest are kept.
const MOST: usize = 1 << 17;

struct Listen<'a, 'g> {
    gaps: Gaps<'g>,
    /// Device number of each unit.
    numbers: &'a [u32],
    buffer: Vec<Piece>,
    out: Vec<Idle>,
    cancel: &'a Cancel,
}

impl SweepListener for Listen<'_, '_> {
    fn gap(&mut self, gap: &Gap) {
        if self.cancel.is_cancelled() {
            return;
        }
        let mut buffer = std::mem::take(&mut self.buffer);
        self.gaps.explain_gap(gap, &mut buffer);
        let device = self.numbers.get(gap.unit).copied().unwrap_or_default();
        self.out.extend(buffer.iter().map(|p| Idle { device, start: p.start, end: p.end, cause: p.cause }));
        self.buffer = buffer;
        if self.out.len() >= 2 * MOST {
            keep_longest(&mut self.out);
        }
    }

    fn copy(&mut self, _: &DeviceOp, _: i64, _: i64) {}

    fn op(&mut self, op: &DeviceOp) {
        self.gaps.record_op(op);
    }
}

fn keep_longest(pieces: &mut Vec<Idle>) {
    if pieces.len() > MOST {
        pieces.select_nth_unstable_by_key(MOST, |p| (std::cmp::Reverse(p.end - p.start), p.start));
        pieces.truncate(MOST);
    }
}

/// Returns the idle times of all devices from the first to the last operation, or from the first to the last step where
/// ranges that mark steps begin earlier or end later, limited to the longest `MOST`. Returns `None` if cancelled. A device shared by several processes is idle while none of them uses it; the cause is derived
/// from the thread that launches the next operation.
pub fn find_idle_times(profile: &Profile, cancel: &Cancel) -> Option<Vec<Idle>> {
    let ops = DeviceOps::from_profile(profile);
    let host = Host::from_profile(profile);
    let (first, last) = ops.iter().fold((i64::MAX, i64::MIN), |(first, last), op| (first.min(op.start), last.max(op.end)));
    if first >= last {
        return Some(Vec::new());
    }
    let (first, last) = by_ranges(profile, &ops)
        .and_then(|(_, starts, end)| Some((*starts.first()?, end)))
        .map_or((first, last), |steps| (first.min(steps.0), last.max(steps.1)));
    let of_unit: Vec<u32> = ops.units.iter().map(|u| ops.device_number(u).unwrap_or_default()).collect();
    let mut numbers = of_unit.clone();
    numbers.sort_unstable();
    numbers.dedup();
    let device =
        |op: DeviceOp| DeviceOp { unit: of_unit.get(op.unit).and_then(|n| numbers.binary_search(n).ok()).unwrap_or_default(), ..op };
    let mut listen = Listen { gaps: Gaps::new(&ops, &host), numbers: &numbers, buffer: Vec::new(), out: Vec::new(), cancel };
    sweep_windows(
        ops.iter().map(device).take_while(|_| !cancel.is_cancelled()),
        numbers.len(),
        &recorded_windows(profile, vec![(first, last)]),
        &mut listen,
    );
    let mut out = listen.out;
    keep_longest(&mut out);
    (!cancel.is_cancelled()).then_some(out)
}
