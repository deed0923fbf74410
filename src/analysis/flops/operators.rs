//! Floating-point operations of a framework's operators, from the shapes of their inputs.
//!
//! Formulas follow PyTorch's `torch/utils/flop_counter.py`: a multiplication and an addition count as two operations,
//! and a causal mask is not subtracted. One difference: for the weight gradient of a grouped convolution, we account
//! for the groups; PyTorch's counter does not.

use crate::analysis::Family;
use crate::model::{Kernel, Profile, Ranges};
use rustc_hash::FxHashMap;
use serde_json::Value;

/// Inputs of an operator as recorded in a trace.
#[derive(Default)]
struct Inputs {
    shapes: Vec<Vec<f64>>,
    /// Numbers and lists as strings, if the trace records them.
    values: Vec<String>,
}

type Formula = fn(&Inputs) -> Option<f64>;

/// Operators that do the work themselves; counting their callers (`aten::linear`, `aten::matmul`, `aten::conv2d`) too
/// would count it twice.
const OPERATORS: &[(&str, Formula)] = &[
    ("aten::mm", |i| product_flops(i.shape_at(0)?, i.shape_at(1)?)),
    ("aten::_scaled_mm", |i| product_flops(i.shape_at(0)?, i.shape_at(1)?)),
    ("aten::addmm", |i| product_flops(i.shape_at(1)?, i.shape_at(2)?)),
    ("aten::bmm", |i| batched_flops(i.shape_at(0)?, i.shape_at(1)?)),
    ("aten::baddbmm", |i| batched_flops(i.shape_at(1)?, i.shape_at(2)?)),
    ("aten::_scaled_dot_product_flash_attention", attention_flops),
    ("aten::_scaled_dot_product_efficient_attention", attention_flops),
    ("aten::_scaled_dot_product_cudnn_attention", attention_flops),
    ("aten::_scaled_dot_product_flash_attention_backward", attention_backward),
    ("aten::_scaled_dot_product_efficient_attention_backward", attention_backward),
    ("aten::_scaled_dot_product_cudnn_attention_backward", attention_backward),
    ("aten::convolution", convolution_flops),
    ("aten::convolution_backward", convolution_backward),
];

/// Matrix product `[m, k] × [k, n]`.
fn product_flops(left: &[f64], right: &[f64]) -> Option<f64> {
    let (&[rows, inner], &[_, columns]) = (left, right) else { return None };
    Some(2.0 * rows * inner * columns)
}

/// Batched matrix product `[b, m, k] × [b, k, n]`.
fn batched_flops(left: &[f64], right: &[f64]) -> Option<f64> {
    let (&[batch, rows, inner], &[_, _, columns]) = (left, right) else { return None };
    Some(2.0 * batch * rows * inner * columns)
}

/// Returns twice the number of query–key pairs over all heads, and the widths of a key and of a value.
fn count_pairs(query: &[f64], key: &[f64], value: &[f64]) -> Option<(f64, f64, f64)> {
    let (&[batch, heads, queries, depth], &[_, _, keys, _], &[_, _, _, width]) = (query, key, value) else { return None };
    Some((2.0 * batch * heads * queries * keys, depth, width))
}

/// Attention with query `[b, h, q, d]`, key `[b, h, k, d]` and value `[b, h, k, e]`: two products.
fn attention_flops(i: &Inputs) -> Option<f64> {
    let (pairs, depth, width) = count_pairs(i.shape_at(0)?, i.shape_at(1)?, i.shape_at(2)?)?;
    Some(pairs * (depth + width))
}

/// Backward attention, five products: recomputing the scores, and the gradients of scores, query, key and value. The
/// first input is the output's gradient.
fn attention_backward(i: &Inputs) -> Option<f64> {
    let (pairs, depth, width) = count_pairs(i.shape_at(1)?, i.shape_at(2)?, i.shape_at(3)?)?;
    Some(pairs * (3.0 * depth + 2.0 * width))
}

/// Convolution: each element of `spatial` `[n, c, …]` is multiplied by all weights of one filter `[c, c / groups, …]`.
fn filter_flops(spatial: &[f64], weight: &[f64]) -> Option<f64> {
    let (&[batch, _, ref size @ ..], &[out, inner, ref filter @ ..]) = (spatial, weight) else { return None };
    let all = |sizes: &[f64]| sizes.iter().product::<f64>();
    (size.len() == filter.len() && !size.is_empty()).then(|| 2.0 * batch * all(size) * out * inner * all(filter))
}

/// Inputs: `input, weight, bias, stride, padding, dilation, transposed, output_padding, groups`. The values are
/// required because stride and padding are not part of the shapes.
fn convolution_flops(i: &Inputs) -> Option<f64> {
    let (input, weight) = (i.shape_at(0)?, i.shape_at(1)?);
    if i.flag_at(6)? {
        return filter_flops(input, weight);
    }
    let (stride, padding, dilation) = (i.list_at(3)?, i.list_at(4)?, i.list_at(5)?);
    let of = |list: &[f64], axis: usize| list.get(axis).or(list.first()).copied();
    let mut out = input.get(..2)?.to_vec();
    for (axis, (size, filter)) in input.get(2..)?.iter().zip(weight.get(2..)?).enumerate() {
        let reach = of(&dilation, axis)? * (filter - 1.0);
        let stride = of(&stride, axis).filter(|s| *s >= 1.0)?;
        out.push(((size + 2.0 * of(&padding, axis)? - reach - 1.0) / stride).floor() + 1.0);
    }
    filter_flops(&out, weight).filter(|_| out.len() == input.len())
}

/// Inputs: `grad_output, input, weight, bias_sizes, stride, padding, dilation, transposed, output_padding, groups,
/// output_mask`. One product for each requested gradient, of the input and of the weights.
fn convolution_backward(i: &Inputs) -> Option<f64> {
    let (gradient, input, weight) = (i.shape_at(0)?, i.shape_at(1)?, i.shape_at(2)?);
    let once = filter_flops(if i.flag_at(7)? { input } else { gradient }, weight)?;
    let wanted = i.value_at(10)?.trim_matches(['[', ']']).split(',').take(2).filter(|w| w.trim() == "True").count();
    Some(once * wanted as f64)
}

impl Inputs {
    /// Parses the trace's representation: `[[2048, 1024], [1024, 3072]] ["c10::BFloat16", …]`, for some operators with
    /// a third list of values. Anything but a list of numbers becomes an empty shape.
    fn from_text(text: &str) -> Option<Self> {
        let mut lists = serde_json::Deserializer::from_str(text).into_iter::<Value>();
        let first = lists.next()?.ok()?;
        let values = lists.nth(1).and_then(Result::ok).unwrap_or_default();
        let shape = |v: &Value| v.as_array().map(|a| a.iter().filter_map(Value::as_f64).collect()).unwrap_or_default();
        let text = |v: &Value| v.as_str().unwrap_or_default().to_owned();
        Some(Self {
            shapes: first.as_array()?.iter().map(shape).collect(),
            values: values.as_array().into_iter().flatten().map(text).collect(),
        })
    }

    fn shape_at(&self, input: usize) -> Option<&[f64]> {
        self.shapes.get(input).map(Vec::as_slice)
    }

    fn value_at(&self, input: usize) -> Option<&str> {
        self.values.get(input).map(String::as_str)
    }

    fn flag_at(&self, input: usize) -> Option<bool> {
        match self.value_at(input)? {
            "True" => Some(true),
            "False" => Some(false),
            _ => None,
        }
    }

    fn list_at(&self, input: usize) -> Option<Vec<f64>> {
        self.value_at(input)?.strip_prefix('[')?.strip_suffix(']')?.split(',').map(|n| n.trim().parse().ok()).collect()
    }
}

/// Floating-point operations of one operator; `None` if it is not counted or the trace does not record its shapes.
pub fn of_operator(name: &str, text: &str) -> Option<f64> {
    let (_, formula) = OPERATORS.iter().find(|(n, _)| *n == name)?;
    formula(&Inputs::from_text(text)?).filter(|f| f.is_finite() && *f > 0.0)
}

/// Operators of a profile. Results are cached, since shapes repeat.
pub struct Operators<'a> {
    ranges: &'a Ranges,
    /// True for the names of operators that are counted, by name index.
    counted: Vec<bool>,
    known: FxHashMap<(u32, u32), Option<f64>>,
}

impl<'a> Operators<'a> {
    pub fn from_profile(profile: &'a Profile) -> Self {
        let ranges = &profile.ranges;
        let counted = ranges.names.iter().map(|(_, n)| OPERATORS.iter().any(|o| o.0 == &**n)).collect();
        Self { ranges, counted, known: FxHashMap::default() }
    }

    /// Floating-point operations of the range at a row; `None` if it is not an operator that we count, or if its shapes
    /// were not recorded.
    pub fn operator_flops(&mut self, row: usize, name: u32) -> Option<f64> {
        if !self.counted.get(name as usize).copied().unwrap_or_default() {
            return None;
        }
        let shapes = self.ranges.operator(row)?.shapes;
        let ranges = self.ranges;
        *self.known.entry((name, shapes)).or_insert_with(|| of_operator(&ranges.names.get(name as usize)?.1, ranges.operator_shapes(row)?))
    }

    /// Floating-point work of the operators in a time range on the host; `None` if no shapes were recorded, or if
    /// operators launched too little of the kernels' time. Operators that launched no recorded kernel do not count: they
    /// were captured into a graph, or their kernels were not recorded.
    pub fn work_between(&mut self, profile: &Profile, (start, end): (i64, i64)) -> Option<OperatorWork> {
        let mut found: Vec<(f64, (u32, u32), i64, i64)> = Vec::new();
        for (row, range) in self.ranges.iter().enumerate() {
            if range.end < start || range.start > end {
                continue;
            }
            if let (Some(flops), Some(thread)) = (self.operator_flops(row, range.name), self.ranges.threads.get(range.thread as usize)) {
                found.push((flops, *thread, range.start, range.end));
            }
        }
        if found.is_empty() {
            return None;
        }
        let launched = Launched::between(profile, (start, end));
        if (launched.eager_ns as f64) < launched.all_ns as f64 * LEAST_EAGER {
            return None;
        }
        found.retain(|f| launched.has_between(f.1, f.2, f.3));
        if found.is_empty() {
            return None;
        }
        let mut inside: FxHashMap<(u32, u32), Vec<(i64, i64)>> = FxHashMap::default();
        for &(_, thread, start, end) in &found {
            inside.entry(thread).or_default().push((start, end));
        }
        for list in inside.values_mut() {
            list.sort_unstable();
        }
        let is_inside = |thread: (u32, u32), call: i64| {
            inside.get(&thread).is_some_and(|list| {
                let until = list.partition_point(|r| r.0 <= call);
                list[..until].last().is_some_and(|r| r.1 >= call)
            })
        };
        let unknown: i64 = launched.candidates.iter().filter(|c| !is_inside(c.0, c.1)).map(|c| c.2).sum();
        Some(OperatorWork {
            flops: found.iter().map(|f| f.0).sum(),
            operators: found.len() as u64,
            unknown: unknown as f64 / launched.all_ns.max(1) as f64,
        })
    }
}

/// Returns true if a kernel may multiply matrices. Only kinds of work that do little arithmetic are ruled out.
pub fn may_multiply(kernel: &Kernel) -> bool {
    matches!(
        Family::guess(kernel.function(), kernel.demangled()),
        Family::Gemm | Family::Attention | Family::Convolution | Family::Triton | Family::Other
    )
}

/// Floating-point work of operators.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OperatorWork {
    pub flops: f64,
    pub operators: u64,
    /// Share (0 to 1) of all kernel time in kernels that may multiply matrices, but were launched by none of them.
    pub unknown: f64,
}

/// Minimum share of the kernels' time that must be launched outside of CUDA graphs for a rate: replays repeat operators
/// that the trace does not show.
const LEAST_EAGER: f64 = 0.9;

/// Kernels whose launching call is in a time range.
#[derive(Default)]
struct Launched {
    /// Starts of the calls outside of graphs, by process and thread, in order.
    calls: FxHashMap<(u32, u32), Vec<i64>>,
    /// Kernel time, and the part of it that was launched outside of graphs, ns.
    all_ns: i64,
    eager_ns: i64,
    /// Kernels launched outside of graphs that may multiply matrices: process and thread, start of the call, and time in
    /// ns.
    candidates: Vec<((u32, u32), i64, i64)>,
}

impl Launched {
    fn between(profile: &Profile, (start, end): (i64, i64)) -> Self {
        let mut out = Self::default();
        let launches = &profile.launches;
        let candidate: Vec<bool> = profile.kernels.iter().map(may_multiply).collect();
        for row in 0..launches.len() {
            let call = launches.call(row).map(|c| c.0);
            if !(start..=end).contains(&call.unwrap_or(launches.start(row))) {
                continue;
            }
            out.all_ns = out.all_ns.saturating_add(launches.duration(row));
            let place = launches.place(row).and_then(|p| profile.places.get(p.0 as usize));
            if let (Some(call), Some(place), None) = (call, place, launches.graph_node(row))
                && let Some(thread) = place.thread
            {
                out.eager_ns = out.eager_ns.saturating_add(launches.duration(row));
                let thread = (place.pid.unwrap_or_default(), thread);
                out.calls.entry(thread).or_default().push(call);
                if candidate.get(launches.kernel(row).0 as usize).copied().unwrap_or_default() {
                    out.candidates.push((thread, call, launches.duration(row)));
                }
            }
        }
        for graph in profile.graphs.iter().filter(|g| (start..=end).contains(&g.start.0)) {
            out.all_ns = out.all_ns.saturating_add(graph.duration.0);
        }
        for calls in out.calls.values_mut() {
            calls.sort_unstable();
        }
        out
    }

    fn has_between(&self, thread: (u32, u32), start: i64, end: i64) -> bool {
        self.calls.get(&thread).is_some_and(|calls| calls.get(calls.partition_point(|&t| t < start)).is_some_and(|&t| t <= end))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn operators_count_as_pytorch_counts_them() {
        let of = |name: &str, shapes: &str| of_operator(name, shapes);
        let types = r#" ["c10::BFloat16", "c10::BFloat16"]"#;
        assert_eq!(of("aten::mm", &format!("[[2048, 1024], [1024, 3072]]{types}")), Some(2.0 * 2048.0 * 1024.0 * 3072.0));
        assert_eq!(of("aten::addmm", "[[4], [2, 3], [3, 4], [], []]"), Some(48.0));
        assert_eq!(of("aten::bmm", "[[5, 2, 3], [5, 3, 4]]"), Some(240.0));
        assert_eq!(of("aten::baddbmm", "[[5, 2, 4], [5, 2, 3], [5, 3, 4]]"), Some(240.0));
        let qkv = "[[4, 16, 512, 64], [4, 16, 256, 64], [4, 16, 256, 32], []]";
        let pairs = 2.0 * 4.0 * 16.0 * 512.0 * 256.0;
        assert_eq!(of("aten::_scaled_dot_product_flash_attention", qkv), Some(pairs * (64.0 + 32.0)));
        let gradient = "[[4, 16, 512, 32], [4, 16, 512, 64], [4, 16, 256, 64], [4, 16, 256, 32], []]";
        assert_eq!(of("aten::_scaled_dot_product_flash_attention_backward", gradient), Some(pairs * (3.0 * 64.0 + 2.0 * 32.0)));
        // Callers of counted operators, other shapes, and a string that is not a list.
        for (name, shapes) in [
            ("aten::linear", "[[2, 3], [4, 3]]"),
            ("aten::mm", "[[2, 3]]"),
            ("aten::mm", "[[2], [3]]"),
            ("aten::mm", ""),
            ("aten::mm", "{}"),
            // Without stride and padding, the size of the output is unknown.
            ("aten::convolution", "[[8, 32, 28, 28], [64, 32, 3, 3]] []"),
            ("aten::convolution", r#"[[8, 32, 28, 28], [64, 32, 3, 3]] [] ["", "", "", "[0]", "[1]", "[1]", "False", "[0]", "1"]"#),
        ] {
            assert_eq!(of(name, shapes), None, "{name} {shapes}");
        }
    }

    #[test]
    fn a_convolution_needs_its_stride() {
        let text = |transposed: &str| {
            format!(
                r#"[[8, 32, 28, 28], [64, 32, 3, 3], []] ["c10::Half"] ["", "", "", "[2, 2]", "[1]", "[1, 1]", "{transposed}", "[0, 0]", "1"]"#
            )
        };
        // 14 × 14 outputs; if transposed, the inputs are multiplied by the filters.
        assert_eq!(of_operator("aten::convolution", &text("False")), Some(2.0 * 8.0 * 14.0 * 14.0 * 64.0 * 32.0 * 9.0));
        assert_eq!(of_operator("aten::convolution", &text("True")), Some(2.0 * 8.0 * 28.0 * 28.0 * 64.0 * 32.0 * 9.0));
        let backward = |mask: &str| {
            let values = format!(r#"["", "", "", "[0]", "[1]", "[2]", "[1]", "False", "[0]", "1", "{mask}"]"#);
            of_operator("aten::convolution_backward", &format!("[[4, 24, 100], [4, 16, 100], [24, 16, 5]] [] {values}"))
        };
        let once = 2.0 * 4.0 * 100.0 * 24.0 * 16.0 * 5.0;
        assert_eq!(backward("[True, True, False]"), Some(2.0 * once));
        assert_eq!((backward("[False, True, True]"), backward("[False, False, True]")), (Some(once), None));
    }
}
