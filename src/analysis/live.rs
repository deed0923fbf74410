//! Sums over a program that is being traced: how busy its GPUs are, which kernels take the time, second by second and since the start. The memory
//! that this takes does not grow with the run.

use crate::analysis::live_results::Results;
use crate::analysis::triage::Triage;
use crate::model::live::{Fresh, NO_KERNEL, Ran, Recorder};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Seconds that are shown.
pub const SECONDS: usize = 120;
const KEPT: i64 = 120;
/// Seconds that the table of kernels calls "now".
pub const NOW: usize = 10;
/// Kernels that are named.
const KERNELS: usize = 400;
/// What runs is told when it has ended and CUPTI's buffers were looked through, once a second: what is younger is not settled, ns.
const SETTLES: i64 = 1_500_000_000;

const SECOND: i64 = 1_000_000_000;

#[derive(Clone, Debug, Default)]
struct Second {
    /// Whether a process said in it that it is recorded, or that it is not.
    open: bool,
    closed: bool,
    launches: u64,
    /// Of each GPU, ns.
    busy: Vec<i64>,
    /// Of each kernel that ran: how often, ns.
    kernels: FxHashMap<u32, (u64, i64)>,
}

/// Of each second whether what ran in it is known: something did, or a process said that it was recorded. Words come once a second, and not on
/// the dot.
fn known(seconds: &[&Second]) -> Vec<bool> {
    let open = |i: usize| seconds.get(i).is_some_and(|s| s.open);
    let near = |i: usize| open(i) || open(i + 1) || i.checked_sub(1).is_some_and(open);
    seconds.iter().enumerate().map(|(i, s)| s.launches > 0 || (s.open || !s.closed) && near(i)).collect()
}

/// What a GPU did that is not put in order yet.
#[derive(Clone, Debug, Default)]
struct Device {
    waiting: Vec<(i64, i64)>,
    /// Up to when it is.
    settled: i64,
    /// The end of what was added up: it may be later.
    covered: i64,
}

/// Adds up what is learnt.
#[derive(Debug, Default)]
pub struct Meter {
    names: Vec<Arc<str>>,
    device_names: Vec<Arc<str>>,
    devices: Vec<Device>,
    /// The latest last; each follows the one before.
    seconds: VecDeque<Second>,
    /// Number of the first of them, from 1970 on.
    first: i64,
    /// Of each kernel since the start: how often, ns.
    all: Vec<(u64, i64)>,
    recorders: Vec<Recorder>,
    /// Of all recorders at the last looks: when, ns since 1970; bytes; their time, ns.
    costs: VecDeque<(i64, u64, i64)>,
    behind: u64,
    /// When the last look was, ns since 1970.
    now: i64,
}

/// A kernel's part.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelNow {
    pub name: Arc<str>,
    /// In the last seconds: how often, ns.
    pub recent: (u64, i64),
    /// Since the start.
    pub all: (u64, i64),
}

/// A GPU's part.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceNow {
    pub name: Arc<str>,
    /// Shares of seconds, the latest last; `None` while the recording was closed.
    pub busy: Vec<Option<f64>>,
}

/// A verdict on the last seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// `None` where nothing ran.
    pub triage: Option<Arc<Triage>>,
    /// When, ns since 1970.
    pub at: i64,
}

/// How a program stands.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    pub devices: Vec<DeviceNow>,
    /// Launches in each second, the latest last; `None` while the recording was closed.
    pub launches: Vec<Option<u64>>,
    /// Those with the most time in the last seconds first.
    pub kernels: Vec<KernelNow>,
    /// Kernel time of the last seconds, and since the start, ns.
    pub recent_ns: i64,
    pub all_ns: i64,
    /// Kernels since the start.
    pub count: u64,
    /// Kernels that ran in the last seconds.
    pub different: usize,
    /// How many of the last seconds were recorded: fewer at the beginning.
    pub seconds: usize,
    /// When the first process began, ns since 1970; and since when what ran is added up.
    pub began: i64,
    pub since: i64,
    pub recorders: Vec<Recorder>,
    /// Of the last seconds: bytes of trace per second, and the tracer's time as a share of one core. `None` after the first look.
    pub bytes: Option<f64>,
    pub cost: Option<f64>,
    /// Bytes of the trace that are still to be read.
    pub behind: u64,
    /// ns since 1970.
    pub now: i64,
    pub judged: Option<Judged>,
    /// What was measured in place since the start.
    pub measured: Option<Arc<Results>>,
}

impl Live {
    /// How long the program has been running, or ran, ns.
    #[must_use]
    pub fn age(&self) -> i64 {
        let last = self.recorders.iter().map(|r| r.time).max().filter(|_| self.ended());
        last.unwrap_or(self.now) - self.began
    }

    /// Whether there were processes, and none is left.
    #[must_use]
    pub fn ended(&self) -> bool {
        !self.recorders.is_empty() && self.recorders.iter().all(|r| r.ended)
    }

    /// Kernels that were recorded since the start, also those that nobody here has seen.
    #[must_use]
    pub fn recorded(&self) -> u64 {
        self.recorders.iter().map(|r| r.kernels).sum::<u64>().max(self.count)
    }

    /// Whether what is shown is behind the program.
    #[must_use]
    pub fn catching_up(&self) -> bool {
        self.behind > 0
    }

    /// Whether a process is recorded at present; `None` before there is one.
    #[must_use]
    pub fn open(&self) -> Option<bool> {
        let there: Vec<&Recorder> = self.recorders.iter().filter(|r| !r.ended).collect();
        (!there.is_empty()).then(|| there.iter().any(|r| r.open))
    }

    /// The share of the last seconds in which a GPU was busy, over those that did anything.
    #[must_use]
    pub fn busy(&self) -> Option<f64> {
        let used: Vec<f64> = self.devices.iter().map(|d| self.recent(d)).collect();
        (!used.is_empty() && self.seconds > 0).then(|| used.iter().sum::<f64>() / used.len() as f64)
    }

    /// The same of one GPU.
    #[must_use]
    pub fn recent(&self, device: &DeviceNow) -> f64 {
        device.busy.iter().rev().take(NOW).flatten().fold(0.0, |sum, busy| sum + busy) / self.seconds.max(1) as f64
    }

    /// Launches per second over the last seconds.
    #[must_use]
    pub fn rate(&self) -> f64 {
        self.launches.iter().rev().take(NOW).flatten().sum::<u64>() as f64 / self.seconds.max(1) as f64
    }
}

impl Meter {
    /// Takes in what a look found; `now` is when it was, ns since 1970.
    pub fn take(&mut self, fresh: Fresh, now: i64) {
        self.now = now;
        self.names.extend(fresh.kernels);
        self.all.resize(self.names.len(), (0, 0));
        self.device_names.extend(fresh.devices);
        self.devices.resize(self.device_names.len(), Device::default());
        self.recorders = fresh.recorders;
        self.behind = fresh.behind;
        let (bytes, cost) = self.recorders.iter().fold((0, 0), |(b, c), r| (b + r.bytes, c + r.cost));
        self.costs.push_back((now, bytes, cost));
        while self.costs.len() > NOW + 1 {
            self.costs.pop_front();
        }
        self.forward(now / SECOND);
        for (time, open) in fresh.states {
            if let Some(second) = self.second(time / SECOND) {
                second.open |= open;
                second.closed |= !open;
            }
        }
        for ran in &fresh.ran {
            self.ran(ran);
        }
        // A trace that is caught up with is settled as it is read.
        let newest = fresh.ran.iter().map(|r| r.start).max().unwrap_or(0);
        let until = if self.behind > 0 { newest } else { now } - SETTLES;
        for device in 0..self.devices.len() {
            self.settle(device, until);
        }
    }

    fn ran(&mut self, ran: &Ran) {
        if ran.kernel != NO_KERNEL
            && let Some(all) = self.all.get_mut(ran.kernel as usize)
        {
            all.0 += 1;
            all.1 = all.1.saturating_add(ran.duration);
            if let Some(second) = self.second(ran.start / SECOND) {
                second.launches += 1;
                let kernel = second.kernels.entry(ran.kernel).or_default();
                kernel.0 += 1;
                kernel.1 = kernel.1.saturating_add(ran.duration);
            }
        }
        let end = ran.start.saturating_add(ran.duration);
        let Some(device) = self.devices.get_mut(ran.device as usize) else { return };
        if ran.start >= device.settled {
            device.waiting.push((ran.start, end));
        } else {
            // It ran for long, or was told late: what it adds to seconds that are done is not more than they have.
            self.busy(ran.device as usize, ran.start, end, true);
        }
    }

    /// Puts in order what began before then, and adds up when anything ran.
    fn settle(&mut self, index: usize, until: i64) {
        let Some(device) = self.devices.get_mut(index).filter(|d| d.settled < until) else { return };
        device.waiting.sort_unstable();
        let later = device.waiting.partition_point(|w| w.0 < until);
        let rest = device.waiting.split_off(later);
        let done = std::mem::replace(&mut device.waiting, rest);
        let mut end = device.covered;
        device.settled = until;
        for (start, stop) in done {
            let start = start.max(end);
            if stop > start {
                self.busy(index, start, stop, false);
                end = stop;
            }
        }
        if let Some(device) = self.devices.get_mut(index) {
            device.covered = end;
        }
    }

    /// Adds time to the seconds that it lies in.
    fn busy(&mut self, device: usize, start: i64, end: i64, late: bool) {
        let mut at = start.max(self.first * SECOND);
        while at < end {
            let (number, stop) = (at / SECOND, (at / SECOND + 1).saturating_mul(SECOND).min(end));
            let Some(second) = self.second(number) else { return };
            if second.busy.len() <= device {
                second.busy.resize(device + 1, 0);
            }
            second.busy[device] += stop - at;
            if late {
                second.busy[device] = second.busy[device].min(SECOND);
            }
            at = stop;
        }
    }

    /// The seconds up to this one, of which so many are kept.
    fn forward(&mut self, number: i64) {
        if self.seconds.is_empty() || number - self.first > 2 * KEPT {
            self.seconds = VecDeque::from(vec![Second::default(); SECONDS]);
            self.first = number - KEPT + 1;
        }
        while usize::try_from(number - self.first).is_ok_and(|n| self.seconds.len() <= n) {
            self.seconds.push_back(Second::default());
        }
        while self.seconds.len() > SECONDS + 2 {
            self.seconds.pop_front();
            self.first += 1;
        }
    }

    fn second(&mut self, number: i64) -> Option<&mut Second> {
        self.seconds.get_mut(usize::try_from(number - self.first).ok()?)
    }

    /// How the program stands, as of the last second that is settled.
    #[must_use]
    pub fn live(&self) -> Live {
        let done = usize::try_from((self.now - SETTLES) / SECOND - self.first).unwrap_or(0).min(self.seconds.len());
        let seconds: Vec<&Second> = self.seconds.range(done.saturating_sub(SECONDS)..done).collect();
        let began = self.recorders.iter().map(|r| r.started).filter(|&s| s > 0).min().unwrap_or(self.now);
        // The second in which it began is none of its own.
        let from = self.recorders.iter().filter(|r| !r.ended).map(|r| r.since).max().unwrap_or(0).max(began);
        let whole = usize::try_from(self.first + i64::try_from(done).unwrap_or(0) - (from / SECOND + 1)).unwrap_or(0);
        let seconds = &seconds[seconds.len().saturating_sub(whole)..];
        let known = known(seconds);
        let recent: Vec<&Second> = seconds.iter().zip(&known).rev().take(NOW).filter(|(_, known)| **known).map(|(s, _)| *s).collect();
        let mut sums: FxHashMap<u32, (u64, i64)> = FxHashMap::default();
        for (kernel, (count, ns)) in recent.iter().flat_map(|s| &s.kernels) {
            let sum = sums.entry(*kernel).or_default();
            sum.0 += count;
            sum.1 = sum.1.saturating_add(*ns);
        }
        let share = |device: usize| {
            move |(s, known): (&&Second, &bool)| known.then(|| s.busy.get(device).map_or(0.0, |&ns| (ns as f64 / SECOND as f64).min(1.0)))
        };
        let mut kernels: Vec<KernelNow> = self
            .names
            .iter()
            .zip(0..)
            .zip(&self.all)
            .map(|((name, number), all)| KernelNow {
                name: name.clone(),
                recent: sums.get(&number).copied().unwrap_or_default(),
                all: *all,
            })
            .collect();
        kernels.sort_by(|a, b| (b.recent.1, b.all.1).cmp(&(a.recent.1, a.all.1)).then_with(|| a.name.cmp(&b.name)));
        kernels.truncate(KERNELS);
        let (bytes, cost) = match (self.costs.front(), self.costs.back()) {
            (Some(a), Some(b)) if b.0 > a.0 => {
                let seconds = (b.0 - a.0) as f64 / SECOND as f64;
                (Some(b.1.saturating_sub(a.1) as f64 / seconds), Some((b.2 - a.2).max(0) as f64 / SECOND as f64 / seconds))
            }
            _ => (None, None),
        };
        Live {
            devices: self
                .device_names
                .iter()
                .enumerate()
                .map(|(i, name)| DeviceNow { name: name.clone(), busy: seconds.iter().zip(&known).map(share(i)).collect() })
                .collect(),
            launches: seconds.iter().zip(&known).map(|(s, known)| known.then_some(s.launches)).collect(),
            different: sums.len(),
            began,
            since: self.recorders.iter().map(|r| r.since).filter(|&s| s > 0).min().unwrap_or(began),
            recent_ns: sums.values().map(|s| s.1).sum(),
            all_ns: self.all.iter().map(|a| a.1).sum(),
            count: self.all.iter().map(|a| a.0).sum(),
            seconds: recent.len(),
            kernels,
            recorders: self.recorders.clone(),
            bytes,
            cost,
            behind: self.behind,
            now: self.now,
            judged: None,
            measured: None,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    const BEGAN: i64 = 1_700_000_000 * SECOND;

    fn ran(start: i64, duration: i64, kernel: u32) -> Ran {
        Ran { start, duration, device: 0, kernel }
    }

    /// What is told when it has ended, a look each second.
    fn metered(all: &[Ran], looks: i64) -> Live {
        let mut meter = Meter::default();
        let recorders = vec![Recorder { started: BEGAN - SECOND, open: true, ..Recorder::default() }];
        for look in 1..=looks {
            let now = BEGAN + look * SECOND;
            let told = |r: &&Ran| (now - SECOND..now).contains(&(r.start + r.duration));
            let fresh = Fresh {
                ran: all.iter().filter(told).copied().collect(),
                kernels: if look == 1 { vec!["a".into(), "b".into()] } else { Vec::new() },
                devices: if look == 1 { vec!["GPU".into()] } else { Vec::new() },
                recorders: recorders.clone(),
                states: vec![(now - 1, true)],
                ..Fresh::default()
            };
            meter.take(fresh, now);
        }
        meter.live()
    }

    proptest! {
        /// Kernels of up to a second on several streams: each second is as busy as their union, and every launch is counted once.
        #[test]
        fn seconds_are_as_busy_as_a_bitmap_says(all in prop::collection::vec((0_i64..20_000, 1_i64..1000, 0_u32..2), 0..200)) {
            const MS: i64 = 1_000_000;
            let rows: Vec<Ran> = all.iter().map(|&(start, ms, kernel)| ran(BEGAN + start * MS, ms * MS, kernel)).collect();
            let live = metered(&rows, 26);
            let mut bits = vec![false; 26_000];
            for &(start, ms, _) in &all {
                bits[start as usize..(start + ms) as usize].fill(true);
            }
            // The seconds that are shown end where the last is settled.
            let end = 26 - 2;
            let shown = &live.devices[0].busy;
            for (i, busy) in shown.iter().rev().enumerate().take(20) {
                let second = end - 1 - i;
                let wanted = bits[second * 1000..(second + 1) * 1000].iter().filter(|b| **b).count() as f64 / 1000.0;
                prop_assert!((busy.unwrap() - wanted).abs() < 1e-9, "second {second}: {busy:?}, not {wanted}");
            }
            prop_assert_eq!(live.count, all.len() as u64);
            prop_assert_eq!(live.all_ns, all.iter().map(|a| a.1 * MS).sum::<i64>());
        }
    }

    #[test]
    fn what_is_told_late_counts_and_no_second_is_fuller_than_full() {
        // It ran for five seconds beside another: both are told at the end.
        let live = metered(&[ran(BEGAN, 5 * SECOND, 0), ran(BEGAN + SECOND, 4 * SECOND, 1)], 9);
        let busy: Vec<f64> = live.devices[0].busy.iter().map(|b| b.unwrap()).collect();
        assert!(busy.iter().all(|b| *b <= 1.0), "{busy:?}");
        assert_eq!((live.count, live.all_ns), (2, 9 * SECOND));
    }

    #[test]
    fn a_second_of_a_closed_recording_is_not_known() {
        let mut meter = Meter::default();
        for look in 1..20 {
            let now = BEGAN + look * SECOND + 1;
            let open = !(8..12).contains(&look);
            let recorders = vec![Recorder { started: BEGAN - SECOND, open, ..Recorder::default() }];
            let ran = if open { vec![ran(now - SECOND / 2, SECOND / 4, 0)] } else { Vec::new() };
            let new = |names: &str| if look == 1 { vec![Arc::from(names)] } else { Vec::new() };
            let states = vec![(now, open)];
            meter.take(Fresh { ran, kernels: new("a"), devices: new("GPU"), states, recorders, ..Fresh::default() }, now);
        }
        let live = meter.live();
        let unknown = live.devices[0].busy.iter().filter(|b| b.is_none()).count();
        // In the first of them something ran before it was closed.
        assert!((3..=4).contains(&unknown), "{:?}", live.devices[0].busy);
        assert!(live.busy().unwrap() > 0.2, "{:?}", live.busy());
    }
}
