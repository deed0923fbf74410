//! Running totals for a program while it is traced: utilization of its GPUs and time of its kernels, per second and
//! since the start. Memory use does not grow with the length of the run.

use crate::analysis::live_results::Results;
use crate::analysis::triage::Triage;
use crate::model::ServerSummary;
use crate::model::live::{Fresh, NO_KERNEL, Ran, Recorder};
use rustc_hash::FxHashMap;
use std::collections::VecDeque;
use std::sync::Arc;

/// Number of seconds shown.
pub const SECONDS: usize = 120;
const KEPT: i64 = 120;
/// Length of the period that the kernel table labels "now", seconds.
pub const NOW: usize = 10;
/// Maximum number of kernels listed.
const KERNELS: usize = 400;
/// Age from which data is considered complete, ns. An operation reaches us only after it has ended and CUPTI's buffers
/// have been read, which happens once a second.
const SETTLES: i64 = 1_500_000_000;

const SECOND: i64 = 1_000_000_000;

#[derive(Clone, Debug, Default)]
struct Second {
    /// True if a process reported in this second that recording was on (`open`) or off (`closed`).
    open: bool,
    closed: bool,
    /// Recorded time in this second of processes that record only short moments (sampling), ns.
    moments: i64,
    launches: u64,
    /// Busy time by GPU, ns.
    busy: Vec<i64>,
    /// Count and time, ns, by kernel.
    kernels: FxHashMap<u32, (u64, i64)>,
}

/// Returns, for each second, whether its activity is known: something ran, or a process reported that recording was on.
/// Reports arrive about once a second, so reports in adjacent seconds also count.
fn known_seconds(seconds: &[&Second]) -> Vec<bool> {
    let open = |i: usize| seconds.get(i).is_some_and(|s| s.open);
    let near = |i: usize| open(i) || open(i + 1) || i.checked_sub(1).is_some_and(open);
    if seconds.iter().any(|s| s.moments > 0) {
        return seconds.iter().map(|s| s.moments > 0).collect();
    }
    seconds.iter().enumerate().map(|(i, s)| s.launches > 0 || (s.open || !s.closed) && near(i)).collect()
}

/// Activity of a GPU: intervals not yet added up (`waiting`), and the time up to which it has been.
#[derive(Clone, Debug, Default)]
struct Device {
    waiting: Vec<(i64, i64)>,
    /// Time up to which activity has been added up.
    settled: i64,
    /// Latest end of the activity added up so far; later than `settled` if an operation was still running then.
    covered: i64,
}

/// Accumulates data from a trace that is still being written.
#[derive(Debug, Default)]
pub struct Meter {
    names: Vec<Arc<str>>,
    device_names: Vec<Arc<str>>,
    devices: Vec<Device>,
    /// Consecutive seconds, oldest first.
    seconds: VecDeque<Second>,
    /// First of these seconds, in seconds since 1970.
    first: i64,
    /// Count and time, ns, by kernel since the start.
    all: Vec<(u64, i64)>,
    recorders: Vec<Recorder>,
    /// Start of the moment that is currently recorded, by process.
    moments: FxHashMap<u32, i64>,
    /// Totals over all recorders at recent polls: time of the poll, ns since 1970; bytes written; time spent in the
    /// tracer, ns.
    costs: VecDeque<(i64, u64, i64)>,
    behind: u64,
    /// Time of the last poll, ns since 1970.
    now: i64,
}

/// Count and time of a kernel.
#[derive(Clone, Debug, PartialEq)]
pub struct KernelNow {
    pub name: Arc<str>,
    /// Count and time, ns, over the most recent seconds.
    pub recent: (u64, i64),
    /// Count and time, ns, since the start.
    pub all: (u64, i64),
}

/// Utilization of a GPU.
#[derive(Clone, Debug, PartialEq)]
pub struct DeviceNow {
    pub name: Arc<str>,
    /// Busy share of each second, oldest first; `None` while recording was off.
    pub busy: Vec<Option<f64>>,
}

/// Bottleneck verdict on the most recent seconds.
#[derive(Clone, Debug, PartialEq)]
pub struct Judged {
    /// `None` if nothing ran.
    pub triage: Option<Arc<Triage>>,
    /// Time of the verdict, ns since 1970.
    pub at: i64,
}

/// Current state of a program.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Live {
    pub devices: Vec<DeviceNow>,
    /// Launches in each second, oldest first; `None` while recording was off.
    pub launches: Vec<Option<u64>>,
    /// Kernels by time in the most recent seconds, longest first.
    pub kernels: Vec<KernelNow>,
    /// Kernel time in the most recent seconds, and since the start, ns.
    pub recent_ns: i64,
    pub all_ns: i64,
    /// Number of kernel launches since the start.
    pub count: u64,
    /// Number of distinct kernels that ran in the most recent seconds.
    pub different: usize,
    /// Number of recorded seconds among the most recent ones; smaller at the beginning of a run.
    pub seconds: usize,
    /// Start of the first process (`began`) and start of the period that the totals cover (`since`), ns since 1970.
    pub began: i64,
    pub since: i64,
    pub recorders: Vec<Recorder>,
    /// Trace bytes per second, and tracer time as a share of one core, over the most recent seconds. `None` after only
    /// one poll.
    pub bytes: Option<f64>,
    pub cost: Option<f64>,
    /// Bytes of the trace that have not been read yet.
    pub behind: u64,
    /// Time of the last poll, ns since 1970.
    pub now: i64,
    pub judged: Option<Judged>,
    /// Results measured live since the start.
    pub measured: Option<Arc<Results>>,
    /// For a server, its metrics over the most recent seconds; `None` if they are not sampled.
    pub server: Option<ServerSummary>,
}

impl Live {
    /// Time since the program started or, if it has ended, its total running time, ns.
    pub fn running_time(&self) -> i64 {
        let last = self.recorders.iter().map(|r| r.time).max().filter(|_| self.has_ended());
        last.unwrap_or(self.now) - self.began
    }

    /// Returns true if the program had processes, and all have ended.
    pub fn has_ended(&self) -> bool {
        !self.recorders.is_empty() && self.recorders.iter().all(|r| r.ended)
    }

    /// Number of kernels recorded since the start, including kernels that we did not read.
    pub fn recorded_kernels(&self) -> u64 {
        self.recorders.iter().map(|r| r.kernels).sum::<u64>().max(self.count)
    }

    /// Returns true if the display lags behind the program.
    pub fn catching_up(&self) -> bool {
        self.behind > 0
    }

    /// Returns true if any process is being recorded; `None` if none is running.
    pub fn is_recording(&self) -> Option<bool> {
        let there: Vec<&Recorder> = self.recorders.iter().filter(|r| !r.ended).collect();
        (!there.is_empty()).then(|| there.iter().any(|r| r.open || r.sampled))
    }

    /// Returns true if only short moments are recorded, so that the figures are estimates.
    pub fn is_sampled(&self) -> bool {
        self.recorders.iter().any(|r| r.sampled && !r.ended)
    }

    /// Busy share over the most recent seconds, averaged over the GPUs in use.
    pub fn busy_share(&self) -> Option<f64> {
        let used: Vec<f64> = self.devices.iter().map(|d| self.recent_busy_share(d)).collect();
        (!used.is_empty() && self.seconds > 0).then(|| used.iter().sum::<f64>() / used.len() as f64)
    }

    /// Busy share of one GPU over the most recent seconds.
    pub fn recent_busy_share(&self, device: &DeviceNow) -> f64 {
        device.busy.iter().rev().take(NOW).flatten().fold(0.0, |sum, busy| sum + busy) / self.seconds.max(1) as f64
    }

    /// Launches per second over the most recent seconds.
    pub fn launch_rate(&self) -> f64 {
        self.launches.iter().rev().take(NOW).flatten().sum::<u64>() as f64 / self.seconds.max(1) as f64
    }
}

impl Meter {
    /// Adds the data of a poll at time `now`, ns since 1970.
    pub fn add_poll(&mut self, fresh: Fresh, now: i64) {
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
        self.advance_to(now / SECOND);
        for (time, open) in fresh.states {
            if let Some(second) = self.second_mut(time / SECOND) {
                second.open |= open;
                second.closed |= !open;
            }
        }
        for &(pid, time, open) in &fresh.turns {
            if open {
                self.moments.insert(pid, time);
            } else if let Some(from) = self.moments.remove(&pid) {
                self.add_moment(from, time);
            }
        }
        for ran in &fresh.ran {
            self.add_operation(ran);
        }
        // If we lag behind in reading, data is complete only up to the newest operation read, not up to the current
        // time.
        let newest = fresh.ran.iter().map(|r| r.start).max().unwrap_or(0);
        let until = if self.behind > 0 { newest } else { now } - SETTLES;
        for device in 0..self.devices.len() {
            self.settle_device(device, until);
        }
    }

    fn add_operation(&mut self, ran: &Ran) {
        if ran.kernel != NO_KERNEL
            && let Some(all) = self.all.get_mut(ran.kernel as usize)
        {
            all.0 += 1;
            all.1 = all.1.saturating_add(ran.duration);
            if let Some(second) = self.second_mut(ran.start / SECOND) {
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
            // An operation that is long or reported late also covers earlier seconds; the busy time of each is capped
            // at one second.
            self.add_busy_time(ran.device as usize, ran.start, end, true);
        }
    }

    /// Sorts the activity that began before `until`, and adds up its union.
    fn settle_device(&mut self, index: usize, until: i64) {
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
                self.add_busy_time(index, start, stop, false);
                end = stop;
            }
        }
        if let Some(device) = self.devices.get_mut(index) {
            device.covered = end;
        }
    }

    /// Adds busy time to the seconds that it covers.
    fn add_busy_time(&mut self, device: usize, start: i64, end: i64, late: bool) {
        let mut at = start.max(self.first * SECOND);
        while at < end {
            let (number, stop) = (at / SECOND, (at / SECOND + 1).saturating_mul(SECOND).min(end));
            let Some(second) = self.second_mut(number) else { return };
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

    fn add_moment(&mut self, from: i64, until: i64) {
        let mut at = from.max(self.first * SECOND);
        while at < until {
            let (number, stop) = (at / SECOND, ((at / SECOND + 1) * SECOND).min(until));
            let Some(second) = self.second_mut(number) else { return };
            second.moments += stop - at;
            at = stop;
        }
    }

    /// Appends seconds up to `number` and drops old ones.
    fn advance_to(&mut self, number: i64) {
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

    fn second_mut(&mut self, number: i64) -> Option<&mut Second> {
        self.seconds.get_mut(usize::try_from(number - self.first).ok()?)
    }

    /// Returns the state of the program as of the last settled second.
    pub fn current_state(&self) -> Live {
        let done = usize::try_from((self.now - SETTLES) / SECOND - self.first).unwrap_or(0).min(self.seconds.len());
        let seconds: Vec<&Second> = self.seconds.range(done.saturating_sub(SECONDS)..done).collect();
        let began = self.recorders.iter().map(|r| r.started).filter(|&s| s > 0).min().unwrap_or(self.now);
        // Exclude the second in which recording began, since it is incomplete.
        let from = self.recorders.iter().filter(|r| !r.ended).map(|r| r.since).max().unwrap_or(0).max(began);
        let whole = usize::try_from(self.first + i64::try_from(done).unwrap_or(0) - (from / SECOND + 1)).unwrap_or(0);
        let seconds = &seconds[seconds.len().saturating_sub(whole)..];
        let known = known_seconds(seconds);
        let recent: Vec<&Second> = seconds.iter().zip(&known).rev().take(NOW).filter(|(_, known)| **known).map(|(s, _)| *s).collect();
        let mut sums: FxHashMap<u32, (u64, i64)> = FxHashMap::default();
        for (kernel, (count, ns)) in recent.iter().flat_map(|s| &s.kernels) {
            let sum = sums.entry(*kernel).or_default();
            sum.0 += count;
            sum.1 = sum.1.saturating_add(*ns);
        }
        // When sampling, the recorded part of a second stands for the whole second. Each process has its own moments.
        let sampled = self.recorders.iter().filter(|r| r.sampled).count();
        let length = move |s: &Second| if s.moments > 0 { s.moments as f64 / sampled.max(1) as f64 } else { SECOND as f64 };
        let share = |device: usize| {
            move |(s, known): (&&Second, &bool)| known.then(|| s.busy.get(device).map_or(0.0, |&ns| (ns as f64 / length(s)).min(1.0)))
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
            launches: seconds
                .iter()
                .zip(&known)
                .map(|(s, known)| known.then(|| (s.launches as f64 * SECOND as f64 / length(s)).round() as u64))
                .collect(),
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
            server: None,
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

    /// State after one poll per second; the trace contains an operation once it has ended.
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
            meter.add_poll(fresh, now);
        }
        meter.current_state()
    }

    proptest! {
        /// Kernels of up to a second on several streams: the busy time of each second is their union, and every launch
        /// is counted once.
        #[test]
        fn seconds_are_as_busy_as_a_bitmap_says(all in prop::collection::vec((0_i64..20_000, 1_i64..1000, 0_u32..2), 0..200)) {
            const MS: i64 = 1_000_000;
            let rows: Vec<Ran> = all.iter().map(|&(start, ms, kernel)| ran(BEGAN + start * MS, ms * MS, kernel)).collect();
            let live = metered(&rows, 26);
            let mut bits = vec![false; 26_000];
            for &(start, ms, _) in &all {
                bits[start as usize..(start + ms) as usize].fill(true);
            }
            // The last second shown is the last settled one.
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
        // Ran for five seconds alongside another one: both are reported at the end.
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
            meter.add_poll(Fresh { ran, kernels: new("a"), devices: new("GPU"), states, recorders, ..Fresh::default() }, now);
        }
        let live = meter.current_state();
        let unknown = live.devices[0].busy.iter().filter(|b| b.is_none()).count();
        // In the first of these seconds, something ran before recording was turned off.
        assert!((3..=4).contains(&unknown), "{:?}", live.devices[0].busy);
        assert!(live.busy_share().unwrap() > 0.2, "{:?}", live.busy_share());
    }

    #[test]
    fn moments_stand_for_their_seconds() {
        // Moments of 0.1 s every three seconds, in which the GPU is busy half of the time and ten kernels run; the last
        // moment spans two seconds.
        let mut meter = Meter::default();
        for look in 1..20 {
            let now = BEGAN + look * SECOND + 1;
            let from = if look == 18 { now - SECOND - SECOND / 20 } else { now - SECOND / 2 };
            let until = from + SECOND / 10;
            let there = look % 3 == 0;
            let recorders = vec![Recorder { started: BEGAN - SECOND, sampled: true, pid: 7, ..Recorder::default() }];
            let turns = if there { vec![(7, from, true), (7, until, false)] } else { Vec::new() };
            let kernels = (0..10).map(|i| ran(from + i * SECOND / 100, SECOND / 200, 0));
            let new = |names: &str| if look == 1 { vec![Arc::from(names)] } else { Vec::new() };
            let ran = if there { kernels.collect() } else { Vec::new() };
            let states = vec![(now, false)];
            meter.add_poll(Fresh { ran, kernels: new("a"), devices: new("GPU"), states, recorders, turns, ..Fresh::default() }, now);
        }
        let live = meter.current_state();
        assert_eq!((live.is_recording(), live.is_sampled()), (Some(true), true));
        let busy: Vec<f64> = live.devices[0].busy.iter().flatten().copied().collect();
        assert!((6..=7).contains(&busy.len()) && busy.iter().all(|b| (0.45..=0.55).contains(b)), "{:?}", live.devices[0].busy);
        let launches: Vec<u64> = live.launches.iter().flatten().copied().collect();
        assert!(launches.iter().all(|n| (90..=110).contains(n)), "{launches:?}");
        assert!((live.launch_rate() - 100.0).abs() < 10.0, "{}", live.launch_rate());
    }
}
