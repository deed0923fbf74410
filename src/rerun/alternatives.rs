//! Alternative commands for the same launches, each with the reason to prefer it.

use super::capture_range;
use super::collect::Collect;
use super::ncu_builder::Draft;
use super::options::{OpenedBy, Options, Profiler, Replay, Within};
use super::{Alternative, Base, Rerun, nvtx, tracer_measure};
use crate::model::NameForm;

impl Draft<'_> {
    /// Returns commands that the user may prefer to `mine`.
    pub(super) fn find_alternatives(&self, mine: &Rerun) -> Vec<Alternative> {
        let mut out = Vec::new();
        let mut offer = |options: Options, why: &dyn Fn(&Draft<'_>) -> Option<(String, bool)>| {
            if let Ok(draft) = Draft::new(self.profile, self.rows, &options)
                && let Some((why, better)) = why(&draft)
                && let other = draft.build_rerun()
                && other.wrapper.is_none()
                && other.argv() != mine.argv()
            {
                out.push(Alternative { why, argv: other.argv(), options: options.clone(), better });
            }
        };
        let o = self.options;
        let skip = self.skips.first().copied().unwrap_or(0);
        if self.as_range {
            if o.replay.is_none() {
                let options = Options { replay: Some(Replay::Kernel), ..o.clone() };
                offer(options, &|_| {
                    Some(("The kernel alone: only if a single GPU runs it without peers; otherwise it hangs.".to_owned(), false))
                });
            }
            return out;
        }
        if self.base == NameForm::Function && self.count.kernels > 1 && self.kernel.mangled.is_some() && !o.whole_graph {
            let kernels = self.count.kernels;
            offer(Options { base: Base(NameForm::Mangled), ..o.clone() }, &|d| {
                let left = d.skips.first().copied().unwrap_or(0);
                let why = format!(
                    "With the mangled name only this kernel is counted: {left} before it instead of {skip} ({kernels} kernels share the function name)."
                );
                (left < skip).then_some((why, true))
            });
        }
        if capture_range::opened_by(self.profile, o) == OpenedBy::Late {
            for e in self.around.iter().take(3) {
                let name = self.profile.ranges.label(e.range.name);
                offer(Options { opened_by: Some(OpenedBy::Range(e.range)), within: Within::Everything, ..o.clone() }, &|_| {
                    Some((format!("Exact if the NVTX range {name:?} opened the capture (`nsys profile -c nvtx`)."), false))
                });
            }
            offer(Options { opened_by: Some(OpenedBy::ProfilerApi(1)), within: Within::Everything, ..o.clone() }, &|_| {
                Some(("Exact if cudaProfilerStart opened the capture.".to_owned(), false))
            });
        } else if self.gate.range.is_none()
            && let Some(e) = self.around.iter().find(|e| nvtx::filter_expression(self.profile, e.range).is_some())
        {
            let instance = e.filter_number().filter(|_| self.gate.api.is_none());
            let name = self.profile.ranges.label(e.range.name);
            offer(Options { within: Within::Range(e.range, instance), ..o.clone() }, &|d| {
                let inside = d.skips.first().copied().unwrap_or(0);
                let which = instance.map_or_else(String::new, |n| format!(" number {n}"));
                (inside < skip).then(|| (format!("Inside the NVTX range {name:?}{which}: {inside} launches before it instead of {skip}, so anything that runs outside it does not matter."), false))
            });
        }
        if !o.whole_graph && self.rows.len() == 1 && self.rows.first().is_some_and(|&r| self.profile.launches.graph_node(r).is_some()) {
            offer(Options { whole_graph: true, ..o.clone() }, &|_| {
                Some(("The whole CUDA graph it belongs to, as a single result.".to_owned(), false))
            });
        }
        out.extend(self.in_place(mine));
        out
    }

    /// Returns the command that measures the same launches with the built-in tracer while the program runs; `None` if
    /// the tracer cannot measure them.
    fn in_place(&self, mine: &Rerun) -> Option<Alternative> {
        if mine.wrapper.is_some() || self.options.whole_graph || self.as_range {
            return None;
        }
        let options = Options { profiler: Profiler::InPlace, ..self.options.clone() };
        let other = tracer_measure::build_command(self.profile, self.rows, &options).ok().filter(Rerun::is_exact)?;
        let why = if matches!(self.options.collect, Collect::Question("source" | "stalls")) {
            "Without ncu, while the program runs: the built-in tracer samples where this launch's warps wait, line by line (CUPTI 12.6 or newer)."
        } else {
            "Without ncu, while the program runs: the built-in tracer measures this launch where it is (CUPTI 12.6 or newer)."
        };
        Some(Alternative { why: why.to_owned(), argv: other.argv(), options, better: false })
    }
}
