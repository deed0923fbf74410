//! Errors that programs print if CUDA does not work for them.

use super::super::tracer::{Refusal, explain_cuda_error, explain_launch_error};

/// Messages of programs that found no usable GPU, from `cudaGetErrorString` and PyTorch. They count only if nothing was
/// recorded.
static MESSAGES: &[(&str, Cause)] = &[
    (
        "CUDA driver version is insufficient for CUDA runtime version",
        Cause::Said(
            "the driver is older than the CUDA that the program was built with",
            "update the driver, or use a build for the driver's CUDA release, which `nvidia-smi` shows",
        ),
    ),
    (
        "The NVIDIA driver on your system is too old",
        Cause::Said(
            "the driver is older than the CUDA that PyTorch was built with",
            "update the driver, or install PyTorch for the driver's CUDA release, which `nvidia-smi` shows",
        ),
    ),
    (
        "Found no NVIDIA driver on your system",
        Cause::Said("PyTorch found no NVIDIA driver", "`warpscope doctor` says what is missing; in a container start it with `--gpus all`"),
    ),
    (
        "Torch not compiled with CUDA enabled",
        Cause::Said(
            "this PyTorch is a build for the CPU",
            "install one with CUDA: `pip install torch --index-url https://download.pytorch.org/whl/cu130`",
        ),
    ),
    (
        "ASan runtime does not come first in initial library list",
        Cause::Said(
            "a program that is started here is built with AddressSanitizer, which refuses to run beside the preloaded tracer",
            "record it without preloading: `warpscope trace --no-preload -o run PROGRAM`",
        ),
    ),
    ("Cannot re-initialize CUDA in forked subprocess", Cause::Init(3)),
    ("CUDA driver is a stub library", Cause::Init(34)),
    ("busy or unavailable", Cause::Init(46)),
    ("no CUDA-capable device is detected", Cause::Init(100)),
    ("invalid device ordinal", Cause::Init(101)),
    ("system not yet initialized", Cause::Init(802)),
    ("system has unsupported display driver / cuda driver combination", Cause::Init(803)),
    ("forward compatibility was attempted on non supported HW", Cause::Init(804)),
    ("MPS client failed to connect", Cause::Init(805)),
    ("no kernel image is available for execution on the device", Cause::Launch(209)),
    ("the provided PTX was compiled with an unsupported toolchain", Cause::Launch(222)),
];

#[derive(Clone, Copy)]
enum Cause {
    /// Cause and fix.
    Said(&'static str, &'static str),
    /// Result of cuInit.
    Init(u32),
    /// Result of a launch.
    Launch(u32),
}

impl Cause {
    /// Cause and fix.
    fn explain(self) -> Option<(String, &'static str)> {
        let explained = |refusal: &'static Refusal| (refusal.to_clause(), refusal.fix);
        match self {
            Self::Said(what, fix) => Some((what.to_owned(), fix)),
            Self::Init(code) => explain_cuda_error(code).map(explained),
            Self::Launch(code) => explain_launch_error(code).map(explained),
        }
    }
}

/// Finds a known error in a line of output; returns its index.
pub(super) fn find_program_error(line: &str) -> Option<usize> {
    MESSAGES.iter().position(|(words, _)| line.contains(words))
}

/// Cause and fix of the error with this index.
pub(super) fn explain_program_error(index: usize) -> Option<(String, &'static str)> {
    MESSAGES.get(index)?.1.explain()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_error_is_explained() {
        for (i, (words, _)) in MESSAGES.iter().enumerate() {
            assert_eq!(find_program_error(&format!("RuntimeError: {words}.")), Some(i), "{words}");
            assert!(explain_program_error(i).is_some_and(|(why, fix)| !why.is_empty() && !fix.is_empty()), "{words}");
        }
    }
}
