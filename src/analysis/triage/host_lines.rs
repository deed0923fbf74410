//! Idle time of the devices by the line of the program that the launching threads were executing.
//!
//! Idle time with one cause on one thread is divided among that thread's samples in proportion to their number; this
//! works because samples are taken at regular intervals, whatever the thread does. Idle time after a wait for the GPU
//! counts toward the line of the wait.

use super::host::{CLOSE_NS, Host};
use super::host_samples::{ENOUGH, LockHolders};
use super::idle_causes::Piece;
use super::launch_lines::{LaunchStack, LaunchSum};
use super::time_category::Cause;
use crate::analysis::code_origin::CodeOrigin;
use crate::analysis::host_frames::{attributed_index, frame_label, is_nested};
use crate::model::{Activity, CallStack, Profile, Samples, StackFrame};
use rustc_hash::FxHashMap;
use std::sync::Arc;

/// Idle time at one stack of a launching thread.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StackTime {
    /// Index into [`HostTime::stacks`]; `None` if the thread had no stack, e.g. outside Python code.
    pub stack: Option<u32>,
    pub cause: Cause,
    /// Most common activity of the thread.
    pub activity: Activity,
    /// If the launching thread waited for the interpreter lock, the thread that held it; `stack` is then that thread's.
    pub held_by: Option<u32>,
    /// Idle time, ns.
    pub ns: f64,
    /// Number of samples of this stack.
    pub samples: u64,
    /// Longest idle interval at this stack, ns.
    pub longest: (i64, i64),
    /// Frame to which the time is attributed, and the innermost frame if it is a different one; set by
    /// [`HostTime::attribute`].
    pub at: Option<(u32, Option<u32>)>,
}

/// Idle time of the devices by stack.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct HostTime {
    /// Longest first.
    pub times: Vec<StackTime>,
    /// Launches and host time by stack.
    pub launching: Vec<LaunchStack>,
    pub frames: Vec<StackFrame>,
    /// Stacks of `times` and `launching`, and of their callers.
    pub stacks: Vec<CallStack>,
    /// Functions by idle time of any cause, the longest first; then those without, by host time.
    pub functions: Vec<LineTime>,
    /// Idle time during which the threads were not sampled, ns.
    pub unknown: i64,
    /// Time classified as computing or waiting only by a nearby sample, because no sample falls into it, ns.
    pub guessed: i64,
    /// True if calls were recorded rather than sampled.
    pub exact: bool,
}

/// Returns true if idle time with this cause follows a call: the thread waited, copied or allocated on the line of that
/// call, so the sample in the call counts.
fn is_after_call(cause: Cause) -> bool {
    matches!(cause, Cause::Sync | Cause::CopyCall | Cause::Alloc | Cause::OtherCall)
}

/// Stack, activity, and thread that held the interpreter lock.
type Key = (Option<u32>, Activity, Option<u32>);
/// Cause, stack, and thread that held the interpreter lock.
type TimeKey = (Cause, Option<u32>, Option<u32>);

#[derive(Debug, Default)]
struct Sum {
    /// Idle time with this cause on this thread, ns.
    idle: i64,
    of: FxHashMap<Key, Votes>,
    weight: f64,
}

/// Samples of one stack.
#[derive(Clone, Copy, Debug)]
struct Votes {
    weight: f64,
    samples: u64,
    /// Longest piece, ns.
    longest: (i64, i64),
    /// Last sample counted, so that pieces which share a sample (on several devices, or after one call) count it only
    /// once.
    last: Option<u32>,
}

/// Adds up idle time by stack during a sweep.
#[derive(Debug, Default)]
pub struct LineGather {
    sums: FxHashMap<(Cause, usize), Sum>,
    guessed: i64,
    holders: LockHolders,
}

impl LineGather {
    pub fn from_profile(profile: &Profile) -> Self {
        Self { sums: FxHashMap::default(), guessed: 0, holders: LockHolders::from_profile(profile) }
    }

    /// Adds a piece of idle time.
    pub fn add_piece(&mut self, profile: &Profile, host: &Host<'_>, piece: &Piece) {
        let Some((lane_id, lane)) = piece.lane.and_then(|l| Some((l, host.samples.get(l)?))).filter(|(_, l)| !l.is_empty()) else {
            return;
        };
        // If the tool samples only running threads, it takes no samples of a thread that waits.
        if profile.samples.running_only && piece.cause == Cause::Wait {
            return;
        }
        let ns = piece.end - piece.start;
        if matches!(piece.cause, Cause::Compute | Cause::Wait) && lane.rows_within(piece.start, piece.end).is_empty() {
            let known = host.lanes.get(lane_id).map_or(0, |l| l.works.union(&l.waits).covered_length(piece.start, piece.end));
            self.guessed += (ns - known).max(0);
        }
        let sum = self.sums.entry((piece.cause, lane_id)).or_default();
        sum.idle += ns;
        let mut add = |row: u32, weight: f64| {
            let Some(sample) = profile.samples.samples.get(row as usize) else { return };
            let holder = self.holders.holder_of(profile, sample).and_then(|row| profile.samples.samples.get(row as usize));
            let stack = holder.unwrap_or(sample).stack;
            let none = Votes { weight: 0.0, samples: 0, longest: (piece.start, piece.end), last: None };
            let votes = sum.of.entry((stack, sample.activity, holder.map(|h| h.thread))).or_insert(none);
            votes.weight += weight;
            votes.samples += u64::from(votes.last.replace(row) != Some(row));
            if ns > votes.longest.1 - votes.longest.0 {
                votes.longest = (piece.start, piece.end);
            }
            sum.weight += weight;
        };
        if is_after_call(piece.cause) {
            // One vote per pause, weighted by its length. If calls are shorter than the sampling interval, only some of
            // them contain a sample, so its weight is scaled up to represent the others.
            if let Some(call) = lane.call_before(piece.start, CLOSE_NS) {
                let rarely = lane.interval() as f64 / (call.end - call.start).max(1) as f64;
                add(call.sample, ns as f64 * rarely.max(1.0));
            }
        } else {
            lane.rows_within(piece.start, piece.end).iter().for_each(|&(_, row)| add(row, 1.0));
        }
    }

    /// Divides the idle time among the stacks. `host_idle` is the total idle time attributed to a thread, ns;
    /// `launching` contains the launches by stack.
    pub fn into_time(self, samples: &Samples, host_idle: i64, launching: Vec<LaunchStack>) -> HostTime {
        let mut by_key: FxHashMap<TimeKey, (StackTime, f64)> = FxHashMap::default();
        let mut known = 0;
        for ((cause, _), sum) in self.sums {
            if sum.weight <= 0.0 {
                continue;
            }
            known += sum.idle;
            for ((stack, activity, held_by), Votes { weight, samples, longest, .. }) in sum.of {
                let ns = sum.idle as f64 * weight / sum.weight;
                let new = StackTime { stack, cause, activity, held_by, ns: 0.0, samples: 0, longest, at: None };
                let entry = by_key.entry((cause, stack, held_by)).or_insert((new, 0.0));
                entry.0.ns += ns;
                entry.0.samples += samples;
                if ns > entry.1 {
                    (entry.0.activity, entry.1) = (activity, ns);
                }
                if longest.1 - longest.0 > entry.0.longest.1 - entry.0.longest.0 {
                    entry.0.longest = longest;
                }
            }
        }
        let mut times: Vec<StackTime> = by_key.into_values().map(|e| e.0).collect();
        times.sort_by(|a, b| b.ns.total_cmp(&a.ns).then((a.cause, a.stack, a.held_by).cmp(&(b.cause, b.stack, b.held_by))));
        let mut out = HostTime { unknown: (host_idle - known).max(0), guessed: self.guessed, ..HostTime::default() };
        let mut kept = Kept { samples, frames: FxHashMap::default(), stacks: FxHashMap::default() };
        for time in &mut times {
            time.stack = time.stack.and_then(|stack| kept.keep_stack(stack, &mut out));
        }
        out.times = times;
        out.launching = launching;
        for at in 0..out.launching.len() {
            let stack = out.launching[at].stack.and_then(|stack| kept.keep_stack(stack, &mut out));
            out.launching[at].stack = stack;
        }
        out.attribute();
        out
    }
}

/// Maps the indices of the frames and stacks that are kept to their new ones.
struct Kept<'a> {
    samples: &'a Samples,
    frames: FxHashMap<u32, u32>,
    stacks: FxHashMap<u32, u32>,
}

impl Kept<'_> {
    fn keep_stack(&mut self, stack: u32, out: &mut HostTime) -> Option<u32> {
        // Insert callers first. A loop rather than recursion, because stacks can be arbitrarily deep.
        let mut path = Vec::new();
        let mut at = Some(stack);
        while let Some(node) = at.filter(|s| !self.stacks.contains_key(s)) {
            path.push(node);
            at = self.samples.stacks.get(node as usize)?.caller;
        }
        for node in path.into_iter().rev() {
            let CallStack { caller, frame } = *self.samples.stacks.get(node as usize)?;
            let frame = *self.frames.entry(frame).or_insert_with(|| {
                out.frames.push(self.samples.frames.get(frame as usize).cloned().unwrap_or_default());
                u32::try_from(out.frames.len() - 1).unwrap_or(u32::MAX)
            });
            let caller = caller.and_then(|c| self.stacks.get(&c).copied());
            out.stacks.push(CallStack { caller, frame });
            self.stacks.insert(node, u32::try_from(out.stacks.len() - 1).unwrap_or(u32::MAX));
        }
        self.stacks.get(&stack).copied()
    }
}

/// A function in the program, with the line that accounts for most of its time.
#[derive(Clone, Debug, PartialEq)]
pub struct LineTime {
    pub frame: StackFrame,
    /// Library function in which the line spends most of its time.
    pub inside: Option<StackFrame>,
    /// Most common activity of the thread.
    pub activity: Activity,
    /// Thread that held the interpreter lock while the launching thread waited for it: index into [`Profile::threads`].
    pub held_by: Option<u32>,
    /// Idle time in the function, and at the line, ns.
    pub ns: i64,
    pub line_ns: i64,
    pub samples: u64,
    /// Main cause of the idle time.
    pub cause: Cause,
    /// Longest idle interval in the function, ns; if there is none, a point in time in it.
    pub longest: (i64, i64),
    /// Launches made in the function, and time that the launching threads spent in it.
    pub launching: LaunchSum,
}

impl LineTime {
    /// Formats the function and line, e.g. `parse (loader.py:88), inside raw_decode (decoder.py:353)`.
    pub fn label(&self) -> String {
        let inside = self.inside.as_ref().map_or_else(String::new, |f| format!(", inside {}", frame_label(f)));
        format!("{}{inside}", frame_label(&self.frame))
    }
}

/// Returns the entry with the largest value. Ties go to the smallest key, so that the result does not depend on map
/// order.
fn most<K: Copy + Ord>(of: &FxHashMap<K, f64>) -> Option<(K, f64)> {
    of.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0))).map(|(&k, &ns)| (k, ns))
}

/// Identity of a function: its name, its file, and the line of its definition, if that is recorded.
pub type FunctionKey = (Arc<str>, Option<Arc<str>>, Option<u32>);

impl HostTime {
    fn frame(&self, frame: u32) -> Option<&StackFrame> {
        self.frames.get(frame as usize)
    }

    /// Identity of a frame's function. If calls were recorded, names lack the class, but the line is that of the
    /// definition and so distinguishes methods with the same name.
    pub fn function_key(&self, frame: &StackFrame) -> FunctionKey {
        (frame.function.clone(), frame.file.clone(), frame.line.filter(|_| self.exact))
    }

    fn node(&self, stack: Option<u32>) -> Option<CallStack> {
        self.stacks.get(stack? as usize).copied()
    }

    /// Frames of a stack, innermost first.
    pub fn frames_of(&self, stack: Option<u32>) -> impl Iterator<Item = u32> + '_ {
        std::iter::successors(self.node(stack), |s| self.node(s.caller)).map(|s| s.frame)
    }

    /// Finds the frame to which the time of each stack is attributed: the innermost frame of the program's own code, or
    /// else of a package, or else the innermost of all.
    pub fn attribute(&mut self) {
        let origins: Vec<CodeOrigin> = self.frames.iter().map(CodeOrigin::of_frame).collect();
        for at in 0..self.times.len() {
            let numbers: Vec<u32> = self.frames_of(self.times[at].stack).collect();
            let frames: Vec<(&StackFrame, CodeOrigin)> =
                numbers.iter().filter_map(|&f| Some((self.frame(f)?, *origins.get(f as usize)?))).collect();
            let best = attributed_index(&frames).and_then(|i| numbers.get(i).copied());
            let first = numbers.first().copied();
            self.times[at].at = best.map(|best| (best, first.filter(|&f| f != best)));
        }
        for at in 0..self.launching.len() {
            let numbers: Vec<u32> = self.frames_of(self.launching[at].stack).collect();
            let frames: Vec<(&StackFrame, CodeOrigin)> =
                numbers.iter().filter_map(|&f| Some((self.frame(f)?, *origins.get(f as usize)?))).collect();
            self.launching[at].at = attributed_index(&frames).and_then(|i| numbers.get(i).copied());
        }
        self.functions = self.sum_functions(&[]);
    }

    /// Idle time with a known stack, ns.
    pub fn known(&self) -> i64 {
        self.times.iter().map(|t| t.ns).sum::<f64>().round() as i64
    }

    /// Number of samples with a stack in idle time with these causes, or with any cause if `causes` is empty.
    pub fn samples_of(&self, causes: &[Cause]) -> u64 {
        self.of_causes(causes).filter(|s| s.stack.is_some()).map(|s| s.samples).sum()
    }

    fn of_causes<'a>(&'a self, causes: &'a [Cause]) -> impl Iterator<Item = &'a StackTime> {
        self.times.iter().filter(move |s| causes.is_empty() || causes.contains(&s.cause))
    }

    /// Functions in the program by idle time with these causes (any if empty), longest first.
    pub fn lines(&self, causes: &[Cause]) -> Vec<LineTime> {
        if causes.is_empty() { self.functions.clone() } else { self.sum_functions(causes) }
    }

    /// All rows of a list of lines: the functions, plus the idle time of threads that had no stack. They add up to
    /// [`HostTime::known`].
    pub fn list_lines(&self) -> Vec<LineTime> {
        let mut out = self.functions.clone();
        if let Some(rest) = self.time_without_code() {
            out.insert(out.partition_point(|l| l.ns >= rest.ns), rest);
        }
        out
    }

    /// Label for time without a stack: the thread executed no sampled kind of code, or its stack could not be read.
    pub fn label_without_stack(&self) -> &'static str {
        if self.frames.iter().any(|f| f.python) { "(no Python code)" } else { "(no stack)" }
    }

    fn time_without_code(&self) -> Option<LineTime> {
        let times: Vec<&StackTime> = self.times.iter().filter(|t| t.at.is_none()).collect();
        let ns = times.iter().map(|t| t.ns).sum::<f64>().round() as i64;
        // Times are in descending order.
        let longest = times.iter().map(|t| t.longest).max_by_key(|l| l.1 - l.0)?;
        let first = times.first().filter(|_| ns > 0)?;
        Some(LineTime {
            frame: StackFrame { function: self.label_without_stack().into(), ..StackFrame::default() },
            inside: None,
            activity: first.activity,
            held_by: None,
            ns,
            line_ns: ns,
            samples: times.iter().map(|t| t.samples).sum(),
            cause: first.cause,
            longest,
            launching: LaunchSum::default(),
        })
    }

    fn sum_functions(&self, causes: &[Cause]) -> Vec<LineTime> {
        struct Sum {
            ns: f64,
            samples: u64,
            longest: (i64, i64),
            lines: FxHashMap<u32, f64>,
            /// For each library function called from here: idle time by frame, ns.
            inside: FxHashMap<FunctionKey, FxHashMap<u32, f64>>,
            causes: FxHashMap<Cause, f64>,
            activities: FxHashMap<Activity, f64>,
            launching: LaunchSum,
            /// Host time plus number of launches ([`LaunchSum::weight`]), by frame; selects the main line of a function
            /// without idle time.
            host_lines: FxHashMap<u32, f64>,
        }
        let new = |longest| Sum {
            ns: 0.0,
            samples: 0,
            longest,
            lines: FxHashMap::default(),
            inside: FxHashMap::default(),
            causes: FxHashMap::default(),
            activities: FxHashMap::default(),
            launching: LaunchSum::default(),
            host_lines: FxHashMap::default(),
        };
        let key = |f: &StackFrame, held_by: Option<u32>| (self.function_key(f), held_by);
        let mut sums: FxHashMap<(FunctionKey, Option<u32>), Sum> = FxHashMap::default();
        for time in self.of_causes(causes) {
            let Some((frame, inner)) = time.at else { continue };
            let Some(function) = self.frame(frame) else { continue };
            let sum = sums.entry(key(function, time.held_by)).or_insert_with(|| new(time.longest));
            sum.ns += time.ns;
            sum.samples += time.samples;
            *sum.lines.entry(frame).or_default() += time.ns;
            *sum.causes.entry(time.cause).or_default() += time.ns;
            *sum.activities.entry(time.activity).or_default() += time.ns;
            if let Some((inner, called)) = inner.and_then(|i| Some((i, self.frame(i)?))) {
                *sum.inside.entry(self.function_key(called)).or_default().entry(inner).or_default() += time.ns;
            }
            if time.longest.1 - time.longest.0 > sum.longest.1 - sum.longest.0 {
                sum.longest = time.longest;
            }
        }
        // Launches have no cause, so they count only if all causes are requested.
        for launching in self.launching.iter().filter(|_| causes.is_empty()) {
            let Some((frame, function)) = launching.at.and_then(|f| Some((f, self.frame(f)?))) else { continue };
            let sum = sums.entry(key(function, None)).or_insert_with(|| new((launching.time, launching.time)));
            sum.launching.add(&launching.sum);
            *sum.host_lines.entry(frame).or_default() += launching.sum.weight();
        }
        // A function without idle time is listed only if it launches something or takes more than 1 % of the host time.
        let least = self.all_launching().host_ns().unwrap_or(0) / 100;
        let matters = |of: &LaunchSum| of.launches().is_some_and(|n| n > 0) || of.host_ns().is_some_and(|ns| ns > least);
        let mut out: Vec<LineTime> = sums
            .into_iter()
            .filter(|(_, sum)| sum.samples > 0 || sum.ns > 0.0 || matters(&sum.launching))
            .filter_map(|((_, held_by), sum)| {
                let (line, line_ns) = most(&sum.lines).or_else(|| Some((most(&sum.host_lines)?.0, 0.0)))?;
                let called = sum.inside.values().find(|lines| lines.values().sum::<f64>() * 2.0 > sum.ns);
                Some(LineTime {
                    frame: self.frame(line)?.clone(),
                    inside: called.and_then(|lines| self.frame(most(lines)?.0)).cloned(),
                    activity: most(&sum.activities).map_or(Activity::Unknown, |a| a.0),
                    held_by,
                    ns: sum.ns.round() as i64,
                    line_ns: line_ns.round() as i64,
                    samples: sum.samples,
                    cause: most(&sum.causes).map_or(Cause::Launch, |c| c.0),
                    longest: sum.longest,
                    launching: sum.launching,
                })
            })
            .collect();
        out.sort_by(|a, b| {
            let host = |l: &LineTime| l.launching.host_ns().unwrap_or(0);
            (b.ns, host(b)).cmp(&(a.ns, host(a))).then_with(|| {
                (&a.frame.function, &a.frame.file, a.frame.line, a.held_by).cmp(&(
                    &b.frame.function,
                    &b.frame.file,
                    b.frame.line,
                    b.held_by,
                ))
            })
        });
        out
    }

    /// Activity of the thread during more than half of the idle time with these causes; `None` if there is none.
    pub fn main_activity(&self, causes: &[Cause]) -> Option<Activity> {
        let mut sums: FxHashMap<Activity, f64> = FxHashMap::default();
        self.of_causes(causes).for_each(|s| *sums.entry(s.activity).or_default() += s.ns);
        let all: f64 = sums.values().sum();
        sums.into_iter().find(|s| s.1 * 2.0 > all).map(|s| s.0)
    }

    /// Share of the idle time with these causes during which the thread waited for the interpreter lock, and the thread
    /// that held it most of that time.
    pub fn interpreter_lock(&self, causes: &[Cause]) -> Option<(f64, u32)> {
        let all: f64 = self.of_causes(causes).map(|s| s.ns).sum();
        let mut holders: Vec<(f64, u32)> = Vec::new();
        for time in self.of_causes(causes) {
            let Some(holder) = time.held_by else { continue };
            match holders.iter_mut().find(|h| h.1 == holder) {
                Some(known) => known.0 += time.ns,
                None => holders.push((time.ns, holder)),
            }
        }
        let waited: f64 = holders.iter().map(|h| h.0).sum();
        let most = holders.into_iter().max_by(|a, b| a.0.total_cmp(&b.0).then(b.1.cmp(&a.1)))?;
        (all > 0.0).then_some((waited / all, most.1))
    }

    /// The functions with the most idle time (any cause), at most `most`, omitting those with too few samples to be
    /// reliable.
    pub fn main_lines(&self, most: usize) -> Vec<LineTime> {
        self.functions.iter().filter(|l| l.ns > 0 && (self.exact || l.samples >= ENOUGH)).take(most).cloned().collect()
    }

    /// All launches and host time of the launching threads.
    pub fn all_launching(&self) -> LaunchSum {
        let mut all = LaunchSum::default();
        for launching in &self.launching {
            all.add(&launching.sum);
        }
        all
    }

    /// The function that launches clearly more than any other; `None` if the samples cannot tell.
    pub fn main_launcher(&self) -> Option<&LineTime> {
        let all = self.all_launching();
        let count = |l: &LineTime| l.launching.launches().unwrap_or(0);
        let first = self.functions.iter().filter(|l| count(l) > 0).max_by_key(|l| count(l))?;
        let ahead = |l: &LineTime| std::ptr::eq(l, first) || first.launching.clearly_more(&l.launching, &all);
        self.functions.iter().all(ahead).then_some(first)
    }

    /// Innermost function that, including its callees, accounts for most of the idle time with these causes; preferably
    /// in the program's own code, otherwise in a package.
    pub fn main_function(&self, causes: &[Cause]) -> Option<StackFrame> {
        /// Time, depth of the innermost call, and time by line.
        type Inclusive = (f64, usize, FxHashMap<u32, f64>);
        let mut inclusive: FxHashMap<usize, Inclusive> = FxHashMap::default();
        let (mut all, mut count) = (0.0, 0);
        // Number of each function, and (in `seen_in`) the stack in which it was last seen.
        let mut numbers: FxHashMap<FunctionKey, usize> = FxHashMap::default();
        let functions: Vec<usize> = self
            .frames
            .iter()
            .map(|f| {
                let next = numbers.len();
                *numbers.entry(self.function_key(f)).or_insert(next)
            })
            .collect();
        let mut seen_in = vec![usize::MAX; numbers.len()];
        for (number, time) in self.of_causes(causes).filter(|t| t.stack.is_some()).enumerate() {
            all += time.ns;
            count += time.samples;
            let stack: Vec<u32> = self.frames_of(time.stack).collect();
            for (height, &frame) in stack.iter().enumerate() {
                let Some(&function) = functions.get(frame as usize) else { continue };
                let entry = inclusive.entry(function).or_default();
                entry.1 = entry.1.max(stack.len() - height);
                // A recursive function counts once, with its innermost line.
                if std::mem::replace(&mut seen_in[function], number) != number {
                    entry.0 += time.ns;
                    *entry.2.entry(frame).or_default() += time.ns;
                }
            }
        }
        if count < ENOUGH {
            return None;
        }
        let origin = |frame: u32| self.frame(frame).map_or(CodeOrigin::Standard, CodeOrigin::of_frame);
        let candidates = inclusive.into_values().filter(|e| e.0 * 2.0 > all).filter_map(|(_, depth, lines)| {
            let line = lines.iter().max_by(|a, b| a.1.total_cmp(b.1).then(b.0.cmp(a.0)))?;
            (!self.frame(*line.0).is_some_and(is_nested)).then_some((origin(*line.0), std::cmp::Reverse(depth), *line.0))
        });
        self.frame(candidates.min()?.2).cloned()
    }
}
