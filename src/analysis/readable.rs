//! Readable kernel names: wrappers such as `vectorized_elementwise_kernel` or `device_kernel` are named after their
//! template arguments, and the parts of generated names are reordered. For display only: re-runs select kernels by
//! their exact names.
//!
//! Follows the naming conventions of PyTorch (`aten/src/ATen/native/cuda`), CUTLASS (`device_kernel.h`), CUB and
//! Thrust, rocPRIM, Composable Kernel, Inductor (`torch/_inductor/codegen/triton.py`), NCCL (`generate.py`) and Tensile
//! (`KernelWriterBase`). cuBLAS and cuDNN do not publish theirs: only the product, the tile and the layout are taken
//! from their names, verbatim.

use super::labels::{Parts, split_arguments, split_name};
use crate::model::Kernel;
use std::borrow::Cow;

/// Function templates that run the operation given by their template arguments.
const WRAPPERS: &[&str] = &[
    "device_kernel",
    "Kernel",
    "Kernel2",
    "kentry",
    "vectorized_elementwise_kernel",
    "vectorized_templated_elementwise_kernel",
    "elementwise_kernel",
    "elementwise_kernel_manual_unroll",
    "elementwise_kernel_with_index",
    "legacy_elementwise_kernel",
    "unrolled_elementwise_kernel",
    "unrolled_elementwise_kernel_for_multi_outputs",
    "index_elementwise_kernel",
    "_scatter_gather_elementwise_kernel",
    "distribution_elementwise_grid_stride_kernel",
    "distribution_nullary_kernel",
    "reduce_kernel",
    "multi_tensor_apply_kernel",
    "_kernel_agent",
    "static_kernel",
    "transform_kernel",
    "trampoline_kernel",
];

/// Templates that get their readable names from their arguments.
const TRANSPARENT: &[&str] = &[
    "enable_sm80_to_sm89",
    "enable_sm90",
    "enable_sm90_or_later",
    "enable_sm100",
    "enable_sm100_or_later",
    "gpu_kernel_impl",
    "gpu_kernel_impl_nocast",
    "gpu_kernel_with_index",
    "gpu_index_kernel",
    "AUnaryFunctor",
    "BUnaryFunctor",
    "BinaryFunctor",
    "ReduceOp",
    "func_wrapper_t",
    "ParallelForAgent",
    "op_wrapper_t",
    "__nv_dl_wrapper_t",
    "__nv_hdl_wrapper_t",
    "__nv_dl_tag",
    "__nv_hdl_tag",
    "BinaryOpScalarFunctor",
    "BinaryOpScalarFunctor_",
    "BinaryOpScalarListFunctor",
    "BinaryOpScalarTensorFunctor",
    "BinaryOpListAlphaFunctor",
    "UnaryOpFunctor",
    "UnaryOpFunctor_",
    "PointwiseOpScalarFunctor",
    "PointwiseOpScalarFunctor_",
    "PointwiseOpScalarListFunctor",
    "PointwiseOpListFunctor",
    "TernaryOpListFunctor",
    "TernaryOpScalarFunctor",
    "ZeroFunctor_",
];

/// Arguments that do not describe the operation: element types, containers, offsets, tuning.
const PLAIN: &[&str] = &[
    "bool",
    "char",
    "short",
    "int",
    "long",
    "float",
    "double",
    "half",
    "unsigned",
    "signed",
    "void",
    "size_t",
    "BFloat16",
    "Half",
    "complex",
    "bfloat16_t",
    "half_t",
    "__half",
    "__half2",
    "__nv_bfloat16",
    "hip_bfloat16",
    "true",
    "false",
    "array",
    "Array",
    "tuple",
    "pair",
    "C",
    "OpaqueType",
    "TensorInfo",
    "integral_constant",
    "constant",
    "identity",
    "NullType",
    "LoadWithoutCast",
    "StoreWithoutCast",
    "LoadWithCast",
    "StoreWithCast",
];
/// Suffixes of the names of plain arguments.
const PLAIN_ENDS: &[&str] = &["Metadata", "OffsetCalculator", "_config", "iterator", "Iterator", "_t", "Policy", "policy_hub", "Array"];

/// Prefixes (`BEFORE`) and suffixes (`BEHIND`) that surround the operation in the names of PyTorch's functors and of
/// functions with lambdas.
const BEFORE: &[&str] = &["CUDAFunctorOnSelf_", "CUDAFunctorOnOther_", "CUDAFunctor_"];
const BEHIND: &[&str] = &[
    "CUDAKernelImpl",
    "KernelImpl",
    "CUDAKernel",
    "MathFunctor",
    "Functor",
    "Kernel",
    "Impl",
    "Ops",
    "_kernel_cuda_impl",
    "_kernel_cuda",
    "_kernel_impl",
    "_cuda_kernel",
    "_internal_kernel",
    "_kernel",
    "_impl",
    "_cuda",
    "_functor",
];

type Rule = fn(&str) -> Option<String>;
/// Prefixes of generated names, with the parser for the rest.
const GENERATED: &[(&str, Rule)] = &[
    ("nvjet_", parse_nvjet),
    ("triton_", parse_triton),
    ("cudnn_generated_fort_native_", parse_cudnn),
    ("ncclDevKernel_", parse_nccl),
    ("ncclKernel_", parse_nccl),
    ("Cijk_", parse_tensile),
    ("kernel_cutlass_", parse_cute),
];

/// Ending by which a parser reports that the name omits something; replaced by a hash that keeps names distinct.
const LOSSY: &str = "\u{0})";

/// Maximum nesting depth of arguments to search.
const DEEPEST: usize = 8;

/// Returns the name to show, such as `gelu (vectorized_elementwise_kernel)` or `gemm 64x8 TNT (nvjet_sm90_tst …)`, or
/// the function name if no rule applies.
pub fn readable_name(kernel: &Kernel) -> Cow<'_, str> {
    let function = kernel.function();
    apply_rules(function, kernel.demangled()).map_or(Cow::Borrowed(function), Cow::Owned)
}

/// Like [`readable_name`], for the name of a function whose template arguments are not known.
pub fn readable_function(function: &str) -> Cow<'_, str> {
    apply_rules(function, function).map_or(Cow::Borrowed(function), Cow::Owned)
}

fn apply_rules(function: &str, demangled: &str) -> Option<String> {
    if WRAPPERS.contains(&function) {
        let Parts { template, .. } = split_name(demangled, function);
        return find_operation(&template, 0).map(|what| format!("{what} ({function})"));
    }
    let named = GENERATED.iter().find_map(|(prefix, rule)| function.strip_prefix(prefix).and_then(rule));
    let named = named.or_else(|| function.split_once("_xmma_").and_then(|(arch, rest)| parse_xmma(arch, rest)))?;
    Some(append_hash(named, function))
}

/// Adds a four-digit hash (FNV-1a, folded to 16 bits) to a name that omits something. We parse only part of a generated
/// name, but different functions must have different names, both within a report and across reports.
fn append_hash(name: String, function: &str) -> String {
    let Some(told) = name.strip_suffix(LOSSY) else { return name };
    let hash = function.bytes().fold(0xcbf2_9ce4_8422_2325_u64, |h, b| (h ^ u64::from(b)).wrapping_mul(0x100_0000_01b3));
    let folded = (hash >> 48) ^ (hash >> 32) ^ (hash >> 16) ^ hash;
    format!("{told} {:04x})", folded & 0xffff)
}

/// Finds the operation among template arguments.
fn find_operation(arguments: &[&str], depth: usize) -> Option<String> {
    if depth > DEEPEST {
        return None;
    }
    let found: Vec<Meaning> = arguments.iter().filter_map(|a| parse_argument(a, depth)).collect();
    found.iter().find(|m| !m.weak).or(found.first()).map(|m| m.text.clone())
}

/// Returns true if one operand of the operation is a scalar, which the operation's own name does not tell.
fn has_scalar(template: &str, operation: &str) -> bool {
    matches!(template, "AUnaryFunctor" | "BUnaryFunctor") && !operation.contains("scalar")
}

/// Meaning of a template argument; `weak` if it describes only the form of an operation, not the operation itself.
struct Meaning {
    text: String,
    weak: bool,
}

fn parse_argument(argument: &str, depth: usize) -> Option<Meaning> {
    let argument = argument.trim_start_matches("void ").trim_start_matches(['&', ' ']);
    let is_value = argument.starts_with(|c: char| c == '(' && !argument.starts_with("(anonymous") || c.is_ascii_digit() || c == '-');
    if argument.is_empty() || is_value {
        return None;
    }
    // A lambda is named after its enclosing function.
    let lambda = argument.contains("lambda");
    let path = strip_parameters(argument);
    if !lambda && (argument.ends_with(['*', '&']) || argument[path.len()..].trim_start().starts_with('(')) {
        return None;
    }
    let path = path.trim_end_matches("::operator").trim_end_matches("::operator ");
    let segments = split_segments(path);
    let (mut name, template) = parse_segment(segments.last()?);
    // Thrust gives all of its functors this name.
    if name == "functor" && segments.len() > 1 {
        name = parse_segment(segments[segments.len() - 2]).0.trim_start_matches('_');
    }
    if TRANSPARENT.contains(&name) {
        let inner = find_operation(&template, depth + 1).map(|op| if has_scalar(name, &op) { format!("{op}_scalar") } else { op });
        return Some(Meaning { weak: inner.is_none(), text: inner.unwrap_or_else(|| operation_name(name)) });
    }
    let plain = name.is_empty()
        || name.ends_with([')', '>', '}'])
        || name.strip_prefix('T').is_some_and(|rest| rest.starts_with(|c: char| c.is_ascii_digit()));
    if plain
        || PLAIN.contains(&name)
        || PLAIN_ENDS.iter().any(|end| name.ends_with(end))
        || segments.iter().any(|s| s.starts_with("policy_hub"))
    {
        return None;
    }
    let of_torch = segments.first().is_some_and(|s| *s == "at");
    let text = if of_torch || lambda { operation_name(name) } else { name.to_owned() };
    Some(Meaning { text, weak: false })
}

/// Strips the parameters from a type or function.
fn strip_parameters(text: &str) -> &str {
    let mut depth = 0_i32;
    let mut at = 0;
    while at < text.len() {
        let rest = &text[at..];
        if let Some(skipped) = ["(anonymous namespace)", "<unnamed>", "{anonymous}"].iter().find(|a| rest.starts_with(**a)) {
            at += skipped.len();
            continue;
        }
        let Some(c) = rest.chars().next() else { break };
        match c {
            '(' | '{' | '[' if depth == 0 => return text[..at].trim_end(),
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth -= 1,
            _ => {}
        }
        at += c.len_utf8();
    }
    text
}

/// Splits a path at each `::` outside of brackets.
fn split_segments(path: &str) -> Vec<&str> {
    let (mut out, mut from, mut depth) = (Vec::new(), 0, 0_i32);
    for (at, c) in path.char_indices() {
        match c {
            '<' | '(' | '[' | '{' => depth += 1,
            '>' | ')' | ']' | '}' => depth -= 1,
            ':' if depth == 0 && at >= from && path[at..].starts_with("::") => {
                out.push(&path[from..at]);
                from = at + 2;
            }
            _ => {}
        }
    }
    out.push(path.get(from..).unwrap_or_default());
    out
}

/// Returns the identifier of a path segment, and its template arguments.
fn parse_segment(segment: &str) -> (&str, Vec<&str>) {
    match segment.split_once('<') {
        Some((name, inner)) => {
            (name.rsplit(' ').next().unwrap_or(name), split_arguments(inner.strip_suffix('>').unwrap_or(inner).trim_end()))
        }
        None => (segment.trim().rsplit(' ').next().unwrap_or(segment), Vec::new()),
    }
}

/// Converts the name of a functor or function to PyTorch's name for the operation: `GeluBackwardCUDAKernelImpl` becomes
/// `gelu_backward`.
fn operation_name(name: &str) -> String {
    let mut bare = BEFORE.iter().find_map(|b| name.strip_prefix(b)).unwrap_or(name).trim_matches('_');
    while let Some(shorter) = BEHIND.iter().find_map(|b| bare.strip_suffix(b)).filter(|s| !s.is_empty()) {
        bare = shorter;
    }
    let mut out = String::new();
    for (at, c) in bare.char_indices() {
        let begins = c.is_ascii_uppercase() && bare[..at].ends_with(|b: char| b.is_ascii_lowercase() || b.is_ascii_digit());
        if begins {
            out.push('_');
        }
        out.push(c.to_ascii_lowercase());
    }
    out
}

fn is_tile(word: &str) -> bool {
    word.contains('x') && word.split('x').all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
}

/// cuBLAS: `nvjet_sm90_tst_256x128_64x4_1x2_h_bz_coopA_bias_TNT`.
fn parse_nvjet(rest: &str) -> Option<String> {
    let words: Vec<&str> = rest.split('_').collect();
    let tile = words.iter().position(|w| is_tile(w))?;
    let layout = *words.last().filter(|w| w.len() == 3 && w.bytes().all(|b| matches!(b, b'N' | b'T')))?;
    let (told, others): (Vec<&str>, Vec<&str>) = words[tile + 1..words.len() - 1].iter().partition(|w| matches!(**w, "bias" | "splitK"));
    let told = [&[layout], &told[..]].concat().join(" ");
    Some(format!("gemm {} {told} (nvjet_{} {})", words[tile], words[..tile].join("_"), others.join(" ")))
}

/// Inductor: `triton_KIND_fused_OPERATORS_NUMBER`.
fn parse_triton(rest: &str) -> Option<String> {
    const KINDS: &[(&str, &str)] = &[
        ("poi_fused_", "pointwise"),
        ("red_fused_", "reduction"),
        ("per_fused_", "persistent reduction"),
        ("tem_fused_", "template"),
        ("for_fused_", "foreach"),
        ("spl_fused_", "split scan"),
    ];
    let (of, kind) = KINDS.iter().find_map(|(prefix, kind)| Some((rest.strip_prefix(prefix)?, kind)))?;
    let (operators, number) = of.rsplit_once('_').unwrap_or(("", of));
    if number.is_empty() || !number.bytes().all(|b| b.is_ascii_digit()) {
        return None;
    }
    let operators = operators.trim_start_matches('_');
    Some(if operators.is_empty() { format!("{kind} (triton {number})") } else { format!("{operators} (triton {kind} {number})") })
}

/// cuDNN: `…_sdpa_sm90_flash_fprop_wgmma_f16_knob_7_64x128x64_4x1x1_cga1x1x1_kernel0_0`.
fn parse_cudnn(rest: &str) -> Option<String> {
    let words: Vec<&str> = rest.split('_').collect();
    let tile = words.iter().position(|w| is_tile(w))?;
    let arch = words.iter().position(|w| w.starts_with("sm"))?;
    let what: Vec<&str> =
        words[..tile].iter().enumerate().filter(|(i, _)| *i != arch).map(|(_, w)| *w).take_while(|w| *w != "knob").collect();
    Some(format!("{} {} (cudnn {}{LOSSY}", what.join(" "), words[tile], words[arch]))
}

/// NCCL: collective, reduction, type, algorithm and protocol.
fn parse_nccl(rest: &str) -> Option<String> {
    (!rest.is_empty()).then(|| format!("{} (NCCL)", rest.replace('_', " ").replace("int8 t", "int8_t")))
}

/// Tensile: `Cijk_Ailk_Bljk_BBS_BH_…_MT64x96x128_…`: index order of A and B, types, macro tile.
fn parse_tensile(rest: &str) -> Option<String> {
    let mut words = rest.split('_');
    let transposed = |word: &str| match word {
        "Ailk" | "Bljk" => Some('N'),
        "Alik" | "Bjlk" => Some('T'),
        _ => None,
    };
    let (a, b) = (transposed(words.next()?)?, transposed(words.next()?)?);
    let types = words.next()?;
    let element = match types.bytes().next()? {
        b'B' => "bf16",
        b'D' => "f64",
        b'H' => "f16",
        b'S' => "f32",
        _ => types,
    };
    let bias = if rest.contains("_Bias_") { " bias" } else { "" };
    let tile = rest.split('_').find_map(|w| w.strip_prefix("MT")).filter(|t| is_tile(t))?;
    Some(format!("gemm {a}{b} {element} {tile}{bias} (Tensile{LOSSY}"))
}

/// `CuTe` DSL: `kernel_cutlass_kernel_MODULECLASS_object_at__ARGUMENTS`.
fn parse_cute(rest: &str) -> Option<String> {
    let (names, _) = rest.split_once("_object_at_")?;
    let class = names.find(|c: char| c.is_ascii_uppercase())?;
    Some(format!("{} (kernel_cutlass{LOSSY}", &names[class..]))
}

/// cuBLAS and cuDNN before nvjet: `sm90_xmma_gemm_bf16bf16_bf16f32_f32_tn_n_tilesize128x128x64_…`.
fn parse_xmma(arch: &str, rest: &str) -> Option<String> {
    let (what, behind) = rest.split_once("_tilesize")?;
    let tile = behind.split('_').next().filter(|t| is_tile(t))?;
    Some(format!("{} {tile} (xmma {arch}{LOSSY}", what.replace('_', " ")))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::model::kernel::function_of;

    fn of(demangled: &str) -> String {
        readable_name(&Kernel { demangled: Some(demangled.into()), ..Kernel::default() }).into_owned()
    }

    /// `nsys stats` cuts names anywhere and puts `…` there.
    #[test]
    fn names_that_were_cut_have_some_readable_form() {
        let names = [
            "void at::native::vectorized_elementwise_kernel<(int)4, at::native::CUDAFunctor_add<float>, std::array<char *, 3>>(int, T2)",
            "void cutlass::device_kernel<flash::FlashAttnFwdSm90<T1>>(T1::Params)",
            "nvjet_sm90_tst_64x8_64x16_4x1_v_bz_TNT",
            "triton_red_fused__softmax_0",
        ];
        for name in names {
            for (at, _) in name.char_indices() {
                for cut in ["…", "é", "µ<"] {
                    let kernel = Kernel { demangled: Some(format!("{}{cut}", &name[..at]).into()), ..Kernel::default() };
                    assert!(!readable_name(&kernel).is_empty(), "{name} {at}");
                }
            }
        }
    }

    #[test]
    fn names_say_what_runs() {
        let names = include_str!("../../fixtures/names/readable.tsv");
        let mut wrong = Vec::new();
        for line in names.lines().filter(|l| !l.starts_with('#')) {
            let (want, demangled) = line.split_once('\t').unwrap();
            if of(demangled) != want {
                wrong.push(format!("{} instead of {want}: {demangled}", of(demangled)));
            }
        }
        assert!(wrong.is_empty(), "{}", wrong.join("\n"));
        // Equal readable names must belong to the same function.
        let mut functions: std::collections::HashMap<String, &str> = std::collections::HashMap::new();
        for (_, demangled) in names.lines().filter_map(|l| l.split_once('\t')) {
            let function = function_of(demangled);
            assert_eq!(*functions.entry(of(demangled)).or_insert(function), function, "{demangled}");
        }
    }

    #[test]
    fn names_without_a_rule_stay() {
        for name in [
            "saxpy(float *)",
            "void ops::scale<float, (int)4>(T1 *)",
            "",
            "nvjet_",
            "triton_poi_fused_",
            "Cijk_",
            "device_kernel",
            "void device_kernel<",
            "nvjet_sm90_é_64x8_é",
            "void Kernel<(anonymous namespace)",
        ] {
            assert_eq!(of(name), function_of(name), "{name}");
        }
    }

    #[test]
    fn different_functions_are_never_called_alike() {
        let tile = |end: &str| of(&format!("Cijk_Ailk_Bljk_BBS_BH_MT64x96x128_{end}"));
        assert_eq!(tile("SN"), "gemm NN bf16 64x96x128 (Tensile 13e5)");
        assert!(tile("SN") != tile("SB") && tile("SN") == tile("SN"));
    }
}
