//! Built-in captures.

use super::failure::Failure;

/// Reports of `warpscope demo`: a timeline, ncu results of some of its launches, and kernels with known bottlenecks,
/// including rooflines and code.
pub const DEMO: [(&str, &[u8]); 4] = [
    ("llm.sqlite (demo)", include_bytes!("../../fixtures/demo/llm.sqlite.zst")),
    ("llm_decode.ncu-rep (demo)", include_bytes!("../../fixtures/demo/llm_decode.ncu-rep.zst")),
    ("llm_gemm.ncu-rep (demo)", include_bytes!("../../fixtures/demo/llm_gemm.ncu-rep.zst")),
    ("zoo.ncu-rep (demo)", include_bytes!("../../fixtures/demo/zoo.ncu-rep.zst")),
];

/// Unpacks a demo capture and leaks it, so that it lives as long as the program.
pub fn unpack_capture(packed: &[u8]) -> Result<&'static [u8], Failure> {
    let bytes = zstd::stream::decode_all(packed).map_err(|e| Failure::unable(format!("the built-in capture: {e}")))?;
    Ok(Box::leak(bytes.into_boxed_slice()))
}
