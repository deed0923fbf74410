//! Functions of CUDA's libraries that the object interposes: however a program reaches them, it gets what it would get
//! without the object.

use super::tracer::{built, cc};
use std::path::Path;
use std::process::Command;

/// Arguments of the mock program (`tests/mock/caller.c`), another preloaded library, and what is printed.
const CALLS: &[(&[&str], &str, &str)] = &[
    // Nothing defines these names.
    (&["ask"], "", "cudaGraphInstantiate 0 0\ncuGraphInstantiateWithFlags 0 0\ncudaProfilerStart 0 0\ncuProfilerStop 0 0\n1\n"),
    // Lookups in one of several runtimes, also in one that a Python package has renamed.
    (&["look", "cudaGraphInstantiate", "libcudart.so.12"], "", "12 12\n0\n"),
    (&["look", "cudaGraphInstantiate", "libcudart.so.12", "libcudart.so.11.0"], "", "11 11\n0\n"),
    (&["look", "cudaGraphInstantiate", "+libcudart.so.13", "libcudart.so.12"], "", "12 12\n0\n"),
    (&["look", "cudaGraphInstantiate", "libcudart-e409450e.so.11.0"], "", "21 21\n0\n"),
    (&["look", "cudaProfilerStart", "libcudart.so.13", "libcudart.so.12"], "", "12 12\n0\n"),
    (&["look", "cuGraphInstantiateWithFlags", "libcuda.so.1"], "", "1 1\n0\n"),
    // By name, from a library that is linked with one of them.
    (&["call", "instantiate", "libuser12.so"], "", "12 12\n0\n"),
    (&["call", "instantiate", "libcudart.so.12", "libuser13.so"], "", "13 13\n0\n"),
    (&["call", "instantiate", "libuser21.so"], "", "21 21\n0\n"),
    (&["call", "profile", "libcudart.so.12", "libuser13.so"], "", "13 13\n0\n"),
    // A library at the address of one that was closed.
    (&["swap", "instantiate", "libuser12.so", "libuser13.so", "libuser12.so"], "", "12\n13\n12\n"),
    (&["swap", "profile", "libuser13.so", "libuser12.so"], "", "13\n12\n"),
    // Stub libraries that define the same functions, and forward to the real ones.
    (&["call", "instantiate", "libuserstub.so"], "", "1012 1012\n0\n"),
    (&["call", "instantiate_by_driver", "libuserstub.so"], "", "1012 1012\n0\n"),
    (&["call", "profile", "libuserstub.so"], "", "1012 1012\n0\n"),
    (&["call", "instantiate", "+libstub.so", "libuserstub.so"], "", "1012 1012\n0\n"),
    (&["look", "cudaGraphInstantiate", "libstub.so"], "", "1012 1012\n0\n"),
    // A tool that is preloaded as well, before or after the object.
    (&["call", "instantiate", "libuser12.so"], "libstub.so", "1012 1012\n0\n"),
    (&["call", "profile", "libuser12.so"], "libstub.so", "1012 1012\n0\n"),
];

fn build(folder: &Path) {
    let mock = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/mock");
    let (runtime, caller) = (mock.join("runtime.c").display().to_string(), mock.join("caller.c").display().to_string());
    let library = |name: &str, more: &[&str]| {
        let soname = format!("-Wl,-soname,{name}");
        cc(&[&["-fPIC", "-shared", "-o", name, &runtime, &soname][..], more, &["-Wl,-rpath,$ORIGIN", "-ldl"]].concat(), folder);
    };
    for (name, release) in [
        ("libcudart.so.11.0", "11"),
        ("libcudart.so.12", "12"),
        ("libcudart.so.13", "13"),
        ("libcudart-e409450e.so.11.0", "21"),
        ("libcuda.so.1", "1"),
    ] {
        // Build the mock runtimes with versioned symbols.
        std::fs::write(folder.join("versions"), format!("{} {{ global: *; }};", name.replace('-', "_"))).unwrap();
        library(name, &[&format!("-DRELEASE={release}"), "-Wl,--version-script,versions"]);
    }
    library("libstub.so", &["-DSTUB=\"libcudart.so.12\""]);
    for (name, linked) in [
        ("libuser12.so", "./libcudart.so.12"),
        ("libuser13.so", "./libcudart.so.13"),
        ("libuser21.so", "./libcudart-e409450e.so.11.0"),
        ("libuserstub.so", "./libstub.so"),
    ] {
        library(name, &["-DUSER", "-Wl,--no-as-needed", linked]);
    }
    cc(&["-O2", "-o", "caller", &caller, "-ldl"], folder);
}

#[test]
fn a_program_reaches_the_functions_that_it_would_reach_untraced() {
    let folder = tempfile::tempdir().unwrap();
    build(folder.path());
    let tracer = built().join("tracer.so").display().to_string();
    for (arguments, also, expected) in CALLS {
        let stub = folder.path().join(also).display().to_string();
        let preloads: &[String] = if also.is_empty() {
            &[String::new(), tracer.clone()]
        } else {
            &[stub.clone(), format!("{tracer} {stub}"), format!("{stub} {tracer}")]
        };
        for preload in preloads {
            let mut command = Command::new("timeout");
            command.args(["-s", "KILL", "60"]).arg(folder.path().join("caller")).args(*arguments).current_dir(folder.path());
            command.env_remove("CUDA_INJECTION64_PATH").env("LD_LIBRARY_PATH", folder.path());
            let out = if preload.is_empty() { command.env_remove("LD_PRELOAD") } else { command.env("LD_PRELOAD", preload) };
            let out = out.output().unwrap();
            let said = String::from_utf8_lossy(&out.stdout);
            assert_eq!(said, *expected, "{arguments:?}, preloaded: {preload:?}, {:?}", out.status);
        }
    }
}
