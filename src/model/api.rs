//! CUDA runtime and driver calls on the host.
//!
//! A call that launched kernels lives with its launches ([`Launches::call`](super::Launches::call)). Of the others, cheap queries such
//! as `cuKernelGetName` are only counted: a report may hold one for every launch, and they say nothing one by one.

use super::Nanos;
use std::sync::Arc;

/// Calls of one name.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct ApiTotal {
    /// Name without its version suffix (`cudaMalloc`, not `cudaMalloc_v3020`).
    pub name: Arc<str>,
    /// Number of calls.
    pub count: u64,
    /// Summed host time.
    pub total: Nanos,
}

/// Host calls: totals per name for all, and one by one those that matter on a timeline.
#[derive(Clone, Debug, Default)]
pub struct ApiCalls {
    /// Totals per name, longest first.
    pub totals: Vec<ApiTotal>,
    /// Start of each call that is kept, ns.
    pub start: Vec<i64>,
    /// Duration of each call that is kept, ns.
    pub duration: Vec<i64>,
    /// Index into `totals` of each call that is kept.
    pub name: Vec<u32>,
    /// Process and thread id of each call that is kept.
    pub thread: Vec<(u32, u32)>,
}

impl ApiCalls {
    /// Whether a call of this name is kept one by one: not when it only asks the driver something.
    #[must_use]
    pub fn matters(name: &str) -> bool {
        const QUERIES: [&str; 10] = [
            "cuKernelGet",
            "cuKernelSet",
            "cuFuncGet",
            "cuGetProcAddress",
            "cudaGetFuncBySymbol",
            "cuDeviceGet",
            "cudaGet",
            "cuLibraryGet",
            "cuModuleGet",
            "cudaStreamIsCapturing",
        ];
        !QUERIES.iter().any(|q| name.starts_with(q))
    }
}

/// A call's name without the version suffix that CUPTI adds (`_v3020`, `_v2`), as `nsys stats` prints it.
#[must_use]
pub fn plain_name(name: &str) -> &str {
    match name.rfind("_v") {
        Some(at) if at + 2 < name.len() && name[at + 2..].bytes().all(|b| b.is_ascii_digit()) => &name[..at],
        _ => name,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn version_suffixes_go_and_nothing_else_does() {
        assert_eq!(plain_name("cudaLaunchKernel_v7000"), "cudaLaunchKernel");
        assert_eq!(plain_name("cuGetProcAddress_v2"), "cuGetProcAddress");
        assert_eq!(plain_name("my_value"), "my_value");
        assert_eq!(plain_name("odd_v"), "odd_v");
    }

    #[test]
    fn queries_are_only_counted() {
        assert!(!ApiCalls::matters("cuKernelGetName"));
        assert!(ApiCalls::matters("cudaStreamSynchronize"));
    }
}
