//! Source files of host code: the program's own, a package's, or the language's.

use crate::model::StackFrame;

const FRAMEWORKS: [&str; 9] = ["torch", "triton", "numpy", "cupy", "jax", "jaxlib", "flax", "tensorflow", "numba"];
/// Folders in which Python installs packages, the second on Debian.
const PACKAGES: [&str; 2] = ["/site-packages/", "/dist-packages/"];
/// Folders of the code that torch.compile generates.
const GENERATED: [&str; 3] = ["/torchinductor_", "/torch_compile_cache/", "/inductor_cache/"];

/// Libraries of the system, the compilers and Python, without version.
const SYSTEM: [&str; 13] =
    ["libc", "libm", "libdl", "librt", "libpthread", "libstdc++", "libgcc", "libgomp", "libgfortran", "ld", "linux", "vdso", "libpython3"];
/// Libraries of NVIDIA's driver, runtime and profilers.
const SYSTEM_PREFIXES: [&str; 8] =
    ["libcuda.", "libcudart", "libcupti", "libnvidia-", "libToolsInjection", "libnvToolsExt", "libaccinj", "libpython"];

/// Origin of a function, the program's own code first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum CodeOrigin {
    Own,
    /// An installed package.
    Package,
    /// A package that nearly all programs call, or code that it generated: its lines say little about the program.
    Framework,
    /// The standard library, or code without a file; also the system's and the driver's libraries.
    Standard,
}

impl CodeOrigin {
    pub fn of_frame(frame: &StackFrame) -> Self {
        match &frame.file {
            Some(file) if frame.python => Self::of_file(file),
            Some(module) => Self::of_module(module),
            None => Self::Standard,
        }
    }

    /// Origin of native code by its module: a library, or else the program itself.
    pub fn of_module(module: &str) -> Self {
        let name = module.rsplit('/').next().unwrap_or(module);
        let is_library = name.split('.').skip(1).any(|part| part == "so");
        // Libraries of the system have their version in their name.
        let stem = name.split(['.', '-', '_']).next().unwrap_or(name);
        if SYSTEM.contains(&stem) || SYSTEM_PREFIXES.iter().any(|lib| name.starts_with(lib)) {
            Self::Standard
        } else if is_library {
            Self::Package
        } else if name.is_empty() || name.starts_with(['[', '<']) || name.starts_with("python") {
            Self::Standard
        } else {
            Self::Own
        }
    }

    pub fn of_file(file: &str) -> Self {
        if PACKAGES.iter().any(|folder| file.contains(folder)) {
            let package = short_path(file).split(['/', '.']).next().unwrap_or_default();
            if FRAMEWORKS.contains(&package) { Self::Framework } else { Self::Package }
        } else if !file.starts_with('/') && file.split_once('/').is_some_and(|(first, _)| FRAMEWORKS.contains(&first)) {
            // PyTorch's traces name files from the package on.
            Self::Framework
        } else if GENERATED.iter().any(|folder| file.contains(folder)) {
            Self::Framework
        } else if file.is_empty() || file.starts_with('<') || in_python_library(file) {
            Self::Standard
        } else {
            Self::Own
        }
    }
}

/// True for a file below `lib/python3.12` or the like.
fn in_python_library(file: &str) -> bool {
    file.match_indices("/python").any(|(at, _)| {
        let rest = &file[at + "/python".len()..];
        let version = rest.split('/').next().unwrap_or_default();
        rest.contains('/')
            && version.starts_with(|c: char| c.is_ascii_digit())
            && version.bytes().all(|b| b.is_ascii_digit() || b == b'.' || b == b't')
    })
}

/// Path of a source file for display: from the package on, or its last two parts.
pub fn short_path(file: &str) -> &str {
    for folder in PACKAGES {
        if let Some(at) = file.rfind(folder) {
            return &file[at + folder.len()..];
        }
    }
    let mut parts = file.rmatch_indices('/');
    let folder = if CodeOrigin::of_file(file) == CodeOrigin::Own { parts.next().and(parts.next()) } else { parts.next() };
    folder.map_or(file, |(at, _)| &file[at + 1..])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn origins_by_folder() {
        let of = CodeOrigin::of_file;
        assert_eq!(of("/home/me/train/dataset.py"), CodeOrigin::Own);
        assert_eq!(of("/home/python/dataset.py"), CodeOrigin::Own);
        assert_eq!(of("train.py"), CodeOrigin::Own);
        assert_eq!(of("torch/nn/functional.py"), CodeOrigin::Framework);
        assert_eq!(of("/opt/venv/lib/python3.12/site-packages/torch/_tensor.py"), CodeOrigin::Framework);
        assert_eq!(of("/usr/lib/python3/dist-packages/vllm/v1/core.py"), CodeOrigin::Package);
        assert_eq!(of("/root/.pyenv/versions/3.10.13/lib/python3.10/threading.py"), CodeOrigin::Standard);
        assert_eq!(of("/usr/lib/python3.13t/json/decoder.py"), CodeOrigin::Standard);
        assert_eq!(of("<frozen importlib._bootstrap>"), CodeOrigin::Standard);
    }

    #[test]
    fn origins_by_module() {
        let of = CodeOrigin::of_module;
        for own in ["openacc", "/opt/app/train", "a.out", "app.exe"] {
            assert_eq!(of(own), CodeOrigin::Own, "{own}");
        }
        for package in ["loader.so", "libucs.so.0.0.0", "libtorch_cpu.so", "_C.cpython-312-x86_64-linux-gnu.so", "libcudnn.so.9"] {
            assert_eq!(of(package), CodeOrigin::Package, "{package}");
        }
        let standard = [
            "libc-2.17.so",
            "libc.so.6",
            "libpthread-2.17.so",
            "libcuda.so.510.47.03",
            "libToolsInjection64.so",
            "libpython3.11.so.1.0",
            "python3.11",
            "[kernel.kallsyms]",
            "[Max depth]",
            "ld-linux-x86-64.so.2",
            "",
        ];
        for standard in standard {
            assert_eq!(of(standard), CodeOrigin::Standard, "{standard}");
        }
    }

    #[test]
    fn paths_are_short() {
        assert_eq!(short_path("/home/me/train/dataset.py"), "train/dataset.py");
        assert_eq!(short_path("dataset.py"), "dataset.py");
        assert_eq!(short_path("/opt/venv/lib/python3.12/site-packages/vllm/v1/engine/core.py"), "vllm/v1/engine/core.py");
        assert_eq!(short_path("/usr/lib/python3.11/threading.py"), "threading.py");
    }
}
