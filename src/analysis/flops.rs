//! Floating-point operations of a framework's operators, from the shapes of their inputs, and what a GPU's tensor cores could do.
//!
//! Formulas as PyTorch counts them (`torch/csrc/profiler/util.cpp`, `computeFlops`; attention as in `torch/utils/flop_counter.py`): a multiplication
//! and an addition are two. Convolutions are not counted: their stride and padding are not among the shapes.

use crate::model::{Device, Profile, Range, RangeOrigin};
use rustc_hash::FxHashMap;
use serde_json::Value;

/// Operators that do the work themselves; what calls them (`aten::linear`, `aten::matmul`) would count it twice.
type Formula = fn(&[Vec<f64>]) -> Option<f64>;

const OPERATORS: &[(&str, Formula)] = &[
    ("aten::mm", |d| product(d.first()?, d.get(1)?)),
    ("aten::_scaled_mm", |d| product(d.first()?, d.get(1)?)),
    ("aten::addmm", |d| product(d.get(1)?, d.get(2)?)),
    ("aten::bmm", |d| batched(d.first()?, d.get(1)?)),
    ("aten::baddbmm", |d| batched(d.get(1)?, d.get(2)?)),
    ("aten::_scaled_dot_product_flash_attention", attention),
    ("aten::_scaled_dot_product_efficient_attention", attention),
    ("aten::_scaled_dot_product_cudnn_attention", attention),
];

/// `[m, k] × [k, n]`.
fn product(left: &[f64], right: &[f64]) -> Option<f64> {
    let (&[rows, inner], &[_, columns]) = (left, right) else { return None };
    Some(2.0 * rows * inner * columns)
}

/// `[b, m, k] × [b, k, n]`.
fn batched(left: &[f64], right: &[f64]) -> Option<f64> {
    let (&[batch, rows, inner], &[_, _, columns]) = (left, right) else { return None };
    Some(2.0 * batch * rows * inner * columns)
}

/// Query `[b, h, q, d]`, key `[b, h, k, d]`, value `[b, h, k, e]`: two products; a causal mask is not taken off, as PyTorch does not.
fn attention(shapes: &[Vec<f64>]) -> Option<f64> {
    let (query, key, value) = (shapes.first()?, shapes.get(1)?, shapes.get(2)?);
    let (&[batch, heads, queries, depth], &[_, _, keys, _], &[_, _, _, width]) = (&query[..], &key[..], &value[..]) else { return None };
    Some(2.0 * batch * heads * queries * keys * (depth + width))
}

/// Shapes of an operator's inputs, as the trace has them: the first list of `[[2048, 1024], [1024, 3072]] ["c10::BFloat16", …]`. What is no list of
/// numbers is empty.
fn shapes(text: &str) -> Option<Vec<Vec<f64>>> {
    let first = serde_json::Deserializer::from_str(text).into_iter::<Value>().next()?.ok()?;
    let shape = |v: &Value| v.as_array().map(|a| a.iter().filter_map(Value::as_f64).collect()).unwrap_or_default();
    Some(first.as_array()?.iter().map(shape).collect())
}

/// Floating-point operations of one operator; `None` for those that are not counted, or whose shapes the trace does not say.
#[must_use]
pub fn of_operator(name: &str, text: &str) -> Option<f64> {
    let (_, formula) = OPERATORS.iter().find(|(n, _)| *n == name)?;
    formula(&shapes(text)?).filter(|f| f.is_finite() && *f > 0.0)
}

/// Floating-point operations of the operators of a time on the host, and how many operators were counted; `None` where no shapes were recorded.
#[must_use]
pub fn between(profile: &Profile, (start, end): (i64, i64)) -> Option<(f64, u64)> {
    let ranges = &profile.ranges;
    let counted: Vec<bool> = ranges.names.iter().map(|(_, n)| OPERATORS.iter().any(|o| o.0 == &**n)).collect();
    // Shapes come again and again.
    let mut known: FxHashMap<(u32, u32), Option<f64>> = FxHashMap::default();
    let (mut sum, mut n) = (0.0, 0);
    for (row, Range { start: from, end: to, name, origin, .. }) in ranges.iter().enumerate() {
        if origin != RangeOrigin::Operator || to < start || from > end || !counted.get(name as usize).copied().unwrap_or_default() {
            continue;
        }
        let Some(shapes) = ranges.operator(row).map(|o| o.shapes) else { continue };
        let flops = *known.entry((name, shapes)).or_insert_with(|| of_operator(&ranges.names.get(name as usize)?.1, ranges.shapes(row)?));
        if let Some(flops) = flops {
            sum += flops;
            n += 1;
        }
    }
    (n > 0).then_some((sum, n))
}

/// Dense FP16 or BF16 operations that the tensor cores of an SM do in a clock, by compute capability, from NVIDIA's architecture white papers:
/// V100 and T4 1024, A100 2048, Ada 1024, H100 4096, B200 8192.
const PER_SM: &[((u32, u32), f64)] =
    &[((7, 0), 1024.0), ((7, 5), 1024.0), ((8, 0), 2048.0), ((8, 9), 1024.0), ((9, 0), 4096.0), ((10, 0), 8192.0)];

/// What the tensor cores of a GPU do at most in FP16 or BF16 without sparsity, operations per second at its highest clock.
#[must_use]
pub fn tensor_peak(device: &Device) -> Option<f64> {
    let (_, per_sm) = PER_SM.iter().find(|p| Some(p.0) == device.compute_capability)?;
    Some(per_sm * f64::from(device.sm_count?) * device.clock_hz? as f64)
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
        let want = 2.0 * 4.0 * 16.0 * 512.0 * 256.0 * (64.0 + 32.0);
        assert_eq!(of("aten::_scaled_dot_product_flash_attention", qkv), Some(want));
        // What calls these, what has other shapes, and what is no list.
        for (name, shapes) in [
            ("aten::linear", "[[2, 3], [4, 3]]"),
            ("aten::mm", "[[2, 3]]"),
            ("aten::mm", "[[2], [3]]"),
            ("aten::mm", ""),
            ("aten::mm", "{}"),
        ] {
            assert_eq!(of(name, shapes), None, "{name} {shapes}");
        }
    }

    #[test]
    fn the_peak_is_that_of_the_data_sheet() {
        let h200 = Device { compute_capability: Some((9, 0)), sm_count: Some(132), clock_hz: Some(1_830_000_000), ..Device::default() };
        let peak = tensor_peak(&h200).unwrap() / 1e12;
        assert!((peak - 989.0).abs() < 2.0, "{peak}");
        assert_eq!(tensor_peak(&Device { clock_hz: None, ..h200 }), None);
    }
}
