//! Summarizes each kind of step in a run: count, length, launches, and the main category of idle time.

use super::gather::StepTime;
use super::step::{Step, lower_median};
use super::step_sketch::{Sketch, group_steps};
use super::time_category::{ByCause, TimeCategory};

#[derive(Clone, Copy, Debug, PartialEq)]
pub struct StepKind {
    pub count: usize,
    /// Median length, ns.
    pub median: i64,
    /// Share of these steps in the total time of all steps.
    pub share: f64,
    /// Median launches per step.
    pub launched: Launched,
    /// Share of the steps' time during which the devices were busy.
    pub busy: f64,
    /// Largest category of idle time, with its share.
    pub idle: Option<(TimeCategory, f64)>,
}

/// Launches in a step, which distinguish a server's steps that replay a graph (decode) from steps with other batches
/// (prefill).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Launched {
    /// Graph launches, and kernels in graphs.
    pub graphs: u32,
    pub graph_kernels: u32,
    /// Kernels launched individually.
    pub single_kernels: u32,
}

/// Minimum share of the steps' time for a kind to be reported.
const NAMED: f64 = 0.03;
/// Minimum number of steps of a kind for it to be reported.
const REPEATS: usize = 3;

/// Returns the kinds of steps that recur and account for a relevant share of the time, most time first; empty if there
/// is only one kind.
pub fn find_kinds(times: &[StepTime], steps: &[Step], devices: usize) -> Vec<StepKind> {
    let all: i64 = steps.iter().map(Step::length).sum();
    let sketches: Vec<Sketch> = times.iter().map(|t| t.kernels).collect();
    let kind = |list: Vec<usize>| {
        let lengths: Vec<i64> = list.iter().filter_map(|&i| steps.get(i)).map(Step::length).collect();
        let length = lengths.iter().sum::<i64>();
        let mut idle = ByCause::default();
        list.iter().filter_map(|&i| times.get(i)).for_each(|t| idle.add_all(&t.idle));
        let of_devices = |ns: i64| (ns as f64 / (length.max(1) as f64 * devices.max(1) as f64)).clamp(0.0, 1.0);
        let middle = |of: fn(&StepTime) -> u32| {
            let values = list.iter().filter_map(|&i| times.get(i)).map(|t| i64::from(of(t))).collect();
            lower_median(values).and_then(|n| u32::try_from(n).ok()).unwrap_or_default()
        };
        let launched = Launched {
            graphs: middle(|t| t.graphs),
            graph_kernels: middle(|t| t.graph_kernels),
            single_kernels: middle(|t| t.single_kernels),
        };
        let share = length as f64 / all.max(1) as f64;
        let most = idle.largest_part().map(|part| (part, of_devices(idle.of_part(part))));
        let busy = 1.0 - of_devices(idle.total());
        Some(StepKind { count: lengths.len(), median: lower_median(lengths)?, share, launched, busy, idle: most })
            .filter(|k| k.count >= REPEATS && k.share >= NAMED)
    };
    let found: Vec<StepKind> = group_steps(&sketches, steps).into_iter().filter_map(kind).collect();
    if found.len() > 1 { found } else { Vec::new() }
}

#[cfg(test)]
mod tests {
    use super::super::step_sketch::tests::sketch;
    use super::super::time_category::Cause;
    use super::*;

    #[test]
    fn kinds_are_told_apart_by_what_they_run() {
        let mut steps = Vec::new();
        let mut sketches = Vec::new();
        let mut at = 0;
        for number in 0..40 {
            let long = number % 8 == 7;
            let length = if long { 55 } else { 2 };
            steps.push(Step { start: at, end: at + length, number });
            sketches.push(if long { sketch(&[(1, 9, 100), (2, 9, 100)]) } else { sketch(&[(1, 1, 64), (3, 1, 30)]) });
            at += length;
        }
        let times: Vec<StepTime> = sketches
            .into_iter()
            .map(|kernels| {
                let mut time = StepTime { kernels, ..StepTime::default() };
                let long = kernels.total_launches() == 200;
                if long {
                    time.single_kernels = 200;
                    time.idle.add(Cause::Compute, 11);
                } else {
                    (time.graphs, time.graph_kernels) = (1, 94);
                }
                time
            })
            .collect();
        let found = find_kinds(&times, &steps, 1);
        assert_eq!(found.iter().map(|k| (k.count, k.median)).collect::<Vec<_>>(), [(5, 55), (35, 2)]);
        assert_eq!(found[0].launched, Launched { single_kernels: 200, ..Launched::default() });
        assert_eq!(found[1].launched, Launched { graphs: 1, graph_kernels: 94, single_kernels: 0 });
        assert_eq!((found[0].busy, found[0].idle), (0.8, Some((TimeCategory::Computing, 0.2))));
        assert_eq!((found[1].busy, found[1].idle), (1.0, None));
        assert_eq!(find_kinds(&times[..7], &steps[..7], 1), [], "one kind needs no name");
    }
}
