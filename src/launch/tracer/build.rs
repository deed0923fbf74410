//! Builds the tracer: a shared object in C that includes no system headers and is linked against stubs, so that it
//! requires no particular glibc symbol versions and loads on any Linux. Needs a C compiler, as does the bundled SQLite.

use std::path::{Path, PathBuf};
use std::process::Command;
use std::{env, fs, io};

/// Libraries whose functions are used, by soname.
const STUBS: [(&str, &str); 3] = [
    (
        "libc.so.6",
        "snprintf strcmp strncmp memcmp getenv strstr strlen memcpy memmove memset dladdr clock_gettime regcomp regexec __cxa_atexit \
         __errno_location __tls_get_addr \
         dl_iterate_phdr",
    ),
    ("libdl.so.2", "dlopen dlclose dlvsym dlerror"),
    ("libpthread.so.0", "pthread_create pthread_self pthread_setcancelstate pthread_setcanceltype"),
];

const FLAGS: [&str; 14] = [
    "-O2",
    "-Wall",
    "-Wextra",
    "-Wno-missing-field-initializers",
    "-fPIC",
    "-shared",
    "-fvisibility=hidden",
    "-ffreestanding",
    "-fno-stack-protector",
    "-fno-math-errno",
    "-U_FORTIFY_SOURCE",
    "-nostdinc",
    "-nostdlib",
    "-s",
];

fn main() -> io::Result<()> {
    let home = PathBuf::from(env::var_os("CARGO_MANIFEST_DIR").unwrap_or_default()).join("tracer");
    println!("cargo::rerun-if-changed={}", home.join("build.rs").display());
    println!("cargo::rerun-if-changed={}", home.join("object").display());
    let out = PathBuf::from(env::var_os("OUT_DIR").unwrap_or_default());
    let object = out.join("tracer.so");
    let variable = |name| env::var(name).unwrap_or_default();
    let (os, arch) = (variable("CARGO_CFG_TARGET_OS"), variable("CARGO_CFG_TARGET_ARCH"));
    if os != "linux" || !matches!(arch.as_str(), "x86_64" | "aarch64") {
        // If the object is empty, the program reports that it has no tracer.
        return fs::write(&object, []);
    }
    let mut stubs = Vec::new();
    for (library, functions) in STUBS {
        let source = out.join(format!("{library}.c"));
        fs::write(&source, functions.split_whitespace().flat_map(|f| ["void ", f, "(void){}\n"]).collect::<String>())?;
        let stub = out.join(library);
        let soname = format!("-Wl,-soname,{library}");
        compile(&["-w", "-fno-builtin", "-shared", "-nostdlib", "-fPIC", &soname], &[source], &stub)?;
        stubs.push(stub);
    }
    let mut flags = FLAGS.to_vec();
    flags.extend([
        "-Wl,--no-as-needed,-z,now,-z,relro,-z,noexecstack,-z,nodelete,-z,noseparate-code,--hash-style=both",
        "-Wl,--allow-shlib-undefined",
    ]);
    if arch == "aarch64" {
        // Inlines atomics, because the out-of-line helpers are in libgcc.
        flags.push("-mno-outline-atomics");
    }
    let inputs: Vec<PathBuf> = std::iter::once(home.join("object/tracer.c")).chain(stubs).collect();
    compile(&flags, &inputs, &object)
}

fn compile(flags: &[&str], inputs: &[PathBuf], output: &Path) -> io::Result<()> {
    let compiler = cc::Build::new().cargo_metadata(false).opt_level(2).get_compiler();
    let mut command = Command::new(compiler.path());
    command.envs(compiler.get_envs()).args(flags).arg("-o").arg(output).args(inputs);
    let done = command.output()?;
    if done.status.success() {
        return Ok(());
    }
    Err(io::Error::other(format!("{command:?}: {}", String::from_utf8_lossy(&done.stderr))))
}
