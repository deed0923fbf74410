//! Idle time by stack for reports that record every call of a Python function, such as PyTorch's with
//! `with_stack=True`. The result is exact, because no samples are involved.

use super::host::Host;
use super::host_lines::{HostTime, StackTime};
use super::idle_causes::Piece;
use super::intervals::Intervals;
use super::launch_lines::{LaunchStack, LaunchSum, working_times};
use super::time_category::Cause;
use crate::analysis::name_pattern::normalize_label;
use crate::model::{Activity, CallStack, Profile, RangeOrigin, StackFrame};
use rustc_hash::FxHashMap;

/// Splits a name as written by PyTorch, `dataset.py(88): collate`, into the function and the file and line of its
/// definition.
fn parse_function(name: &str) -> StackFrame {
    let split = name.split_once("): ").and_then(|(place, function)| {
        let (file, line) = place.rsplit_once('(')?;
        Some((file, line.parse().ok()?, function))
    });
    match split {
        Some((file, line, function)) => {
            let (file, line) = (Some(file.into()), Some(line));
            StackFrame { function: function.into(), file, line, first_line: true, python: true, ..StackFrame::default() }
        }
        None => StackFrame { function: normalize_label(name).into(), python: true, ..StackFrame::default() },
    }
}

/// Attributes idle time, and the launches and host time in `windows`, to the Python functions that were open on the
/// launching threads.
pub fn time_of_functions(profile: &Profile, host: &Host<'_>, pieces: &FxHashMap<Cause, Vec<Piece>>, windows: &[(i64, i64)]) -> HostTime {
    let ranges = &profile.ranges;
    let mut by_thread: FxHashMap<(u32, u32), Vec<Piece>> = FxHashMap::default();
    for piece in pieces.values().flatten().filter(|p| p.cause.is_of_host()) {
        if let Some(lane) = piece.lane.and_then(|l| host.lanes.get(l)) {
            by_thread.entry((lane.pid, lane.tid)).or_default().push(*piece);
        }
    }
    let mut rows: FxHashMap<u32, Vec<u32>> = FxHashMap::default();
    for (row, range) in (0..).zip(ranges.iter()).filter(|(_, r)| r.origin == RangeOrigin::Python) {
        if ranges.threads.get(range.thread as usize).is_some_and(|t| by_thread.contains_key(t)) {
            rows.entry(range.thread).or_default().push(row);
        }
    }
    let mut out = Building::default();
    let mut threads: Vec<(u32, Vec<u32>)> = rows.into_iter().collect();
    threads.sort_unstable();
    for (thread, mut rows) in threads {
        let Some(mut pieces) = ranges.threads.get(thread as usize).and_then(|t| by_thread.remove(t)) else { continue };
        pieces.sort_unstable_by_key(|p| (p.start, p.end));
        let lane = ranges.threads.get(thread as usize).and_then(|t| host.lane_index(t.0, t.1));
        rows.sort_by_key(|&row| {
            let r = ranges.get(row as usize);
            (r.start, std::cmp::Reverse(r.end))
        });
        out.add_idle(profile, &rows, &pieces);
        if let Some(lane) = lane {
            out.add_launching(profile, &rows, &working_times(host, lane, windows));
        }
    }
    out.into_time(by_thread.into_values().flatten().map(|p| p.end - p.start).sum())
}

#[derive(Default)]
struct Building {
    time: HostTime,
    frames: FxHashMap<u32, u32>,
    stacks: FxHashMap<CallStack, u32>,
    sums: FxHashMap<(Cause, u32), (i64, (i64, i64))>,
    /// Number of launches, host time in ns, and one moment at which the stack was open, by stack.
    launching: FxHashMap<u32, (u64, i64, i64)>,
    outside: i64,
}

impl Building {
    fn stack_of(&mut self, profile: &Profile, caller: Option<u32>, name: u32) -> u32 {
        let frame = *self.frames.entry(name).or_insert_with(|| {
            self.time.frames.push(profile.ranges.names.get(name as usize).map_or_else(StackFrame::default, |n| parse_function(&n.1)));
            u32::try_from(self.time.frames.len() - 1).unwrap_or(u32::MAX)
        });
        *self.stacks.entry(CallStack { caller, frame }).or_insert_with_key(|stack| {
            self.time.stacks.push(*stack);
            u32::try_from(self.time.stacks.len() - 1).unwrap_or(u32::MAX)
        })
    }

    fn add_idle(&mut self, profile: &Profile, rows: &[u32], pieces: &[Piece]) {
        let spans: Vec<(i64, i64)> = pieces.iter().map(|p| (p.start, p.end)).collect();
        self.walk_functions(profile, rows, &spans, |out, at, stack, ns| {
            let Some(piece) = pieces.get(at) else { return };
            let Some(stack) = stack else {
                out.outside += ns;
                return;
            };
            let sum = out.sums.entry((piece.cause, stack)).or_insert((0, (piece.start, piece.end)));
            sum.0 += ns;
            if piece.end - piece.start > sum.1.1 - sum.1.0 {
                sum.1 = (piece.start, piece.end);
            }
        });
    }

    fn add_launching(&mut self, profile: &Profile, rows: &[u32], (works, launches): &(Intervals, Vec<i64>)) {
        self.walk_functions(profile, rows, works.as_slice(), |out, at, stack, ns| {
            let time = works.as_slice().get(at).map_or(0, |w| w.0);
            if let Some(stack) = stack {
                out.launching.entry(stack).or_insert((0, 0, time)).1 += ns;
            }
        });
        let moments: Vec<(i64, i64)> = launches.iter().map(|&t| (t, t.saturating_add(1))).collect();
        self.walk_functions(profile, rows, &moments, |out, at, stack, _| {
            if let (Some(stack), Some(&time)) = (stack, launches.get(at)) {
                let sum = out.launching.entry(stack).or_insert((0, 0, time));
                (sum.0, sum.2) = (sum.0 + 1, time);
            }
        });
    }

    /// Walks through a thread's functions and a list of times together; both must be in order. For each part of a time,
    /// calls `add` with the index of the time, the stack that was open, and the length of the part in ns.
    fn walk_functions(
        &mut self,
        profile: &Profile,
        rows: &[u32],
        times: &[(i64, i64)],
        mut add: impl FnMut(&mut Self, usize, Option<u32>, i64),
    ) {
        let mut open: Vec<(i64, u32)> = Vec::new();
        let mut next = rows.iter().map(|&row| profile.ranges.get(row as usize)).peekable();
        for (index, &(start, last)) in times.iter().enumerate() {
            let mut at = start;
            while at < last {
                while let Some(range) = next.next_if(|r| r.start <= at) {
                    while open.last().is_some_and(|o| o.0 <= range.start) {
                        open.pop();
                    }
                    let stack = self.stack_of(profile, open.last().map(|o| o.1), range.name);
                    open.push((range.end, stack));
                }
                while open.last().is_some_and(|o| o.0 <= at) {
                    open.pop();
                }
                let end = open.last().map_or(i64::MAX, |o| o.0);
                let until = end.min(next.peek().map_or(i64::MAX, |r| r.start)).clamp(at + 1, last);
                add(self, index, open.last().map(|o| o.1), until - at);
                at = until;
            }
        }
    }

    fn into_time(self, without_functions: i64) -> HostTime {
        let mut times: Vec<StackTime> = self
            .sums
            .into_iter()
            .map(|((cause, stack), (ns, longest))| StackTime {
                stack: Some(stack),
                cause,
                activity: Activity::Unknown,
                held_by: None,
                ns: ns as f64,
                samples: 0,
                longest,
                at: None,
            })
            .collect();
        times.sort_by(|a, b| b.ns.total_cmp(&a.ns).then((a.cause, a.stack).cmp(&(b.cause, b.stack))));
        let mut launching: Vec<LaunchStack> = self
            .launching
            .into_iter()
            .map(|(stack, (launches, host, time))| LaunchStack {
                stack: Some(stack),
                sum: LaunchSum::recorded(launches, host),
                time,
                at: None,
            })
            .collect();
        launching.sort_by_key(|l| l.stack);
        let mut out = HostTime { times, launching, exact: true, unknown: self.outside + without_functions, ..self.time };
        out.attribute();
        out
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn functions_as_pytorch_names_them() {
        let f = parse_function("/home/me/dataset.py(88): collate");
        assert_eq!((&*f.function, f.file.as_deref(), f.line), ("collate", Some("/home/me/dataset.py"), Some(88)));
        let f = parse_function("<built-in method item of Tensor object at 0x7fdc681f2030>");
        assert_eq!((&*f.function, f.file.as_deref(), f.line), ("<built-in method item of Tensor>", None, None));
        assert_eq!(&*parse_function("nn.Module: Linear_3").function, "nn.Module: Linear_#");
    }
}
