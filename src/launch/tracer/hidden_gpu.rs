//! Finds out why CUDA will find no GPU on this machine, without initializing CUDA.

use rustix::fs::{Access, access};
use std::path::{Path, PathBuf};

/// Device files of the drivers for graphics cards, WSL and Tegra.
const DEVICES: [&str; 5] = ["dev/nvidiactl", "dev/dxg", "dev/nvmap", "dev/nvhost-ctrl", "dev/nvgpu"];
const LIBRARIES: [&str; 4] = ["usr/lib/x86_64-linux-gnu", "usr/lib/aarch64-linux-gnu", "usr/lib64", "usr/lib"];

/// Describes a value of `CUDA_VISIBLE_DEVICES` that hides all GPUs: CUDA uses the entries before the first invalid one.
fn describe_visible_devices(value: &str) -> Option<String> {
    let first = value.split(',').next().unwrap_or_default().trim();
    let names_gpu = first.starts_with(|c: char| c.is_ascii_digit()) || first.starts_with("GPU-") || first.starts_with("MIG-");
    let what = if value.is_empty() { "is empty, which hides".to_owned() } else { format!("is `{value}`, which hides") };
    (!names_gpu).then(|| format!("CUDA_VISIBLE_DEVICES {what} every GPU: `unset CUDA_VISIBLE_DEVICES`, or name one, such as 0"))
}

/// First version number in a text, such as `580.95.05`.
fn find_version(text: &str) -> Option<&str> {
    let is_version = |w: &&str| w.contains('.') && w.split('.').all(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()));
    text.split_whitespace().find(is_version)
}

/// Compares the driver's libraries with the module in the kernel. `libnvidia-ml.so.1` has the driver's version even where
/// libcuda.so.1 is that of a compatibility package.
fn describe_mismatch(root: &Path) -> Option<String> {
    let module = std::fs::read_to_string(root.join("proc/driver/nvidia/version")).ok()?;
    let module = find_version(&module)?;
    let library = LIBRARIES.iter().find_map(|folder| std::fs::canonicalize(root.join(folder).join("libnvidia-ml.so.1")).ok())?;
    let library = find_version(library.file_name()?.to_str()?.strip_prefix("libnvidia-ml.so.")?)?.to_owned();
    (library != module).then(|| {
        format!(
            "the driver's libraries are of version {library} and its kernel module of {module}: reboot, or load the module again (`sudo rmmod \
             nvidia_uvm nvidia_drm nvidia_modeset nvidia && sudo modprobe nvidia`)"
        )
    })
}

/// Finds out why CUDA will see no GPU: a fact about this machine and what to do, in one clause. `variable` looks up the
/// environment; `root` is `/` except in tests.
pub fn find_hidden_gpu(root: &Path, variable: impl Fn(&str) -> Option<std::ffi::OsString>) -> Option<String> {
    if let Some(hidden) = variable("CUDA_VISIBLE_DEVICES").and_then(|v| describe_visible_devices(&v.to_string_lossy())) {
        return Some(hidden);
    }
    let named = variable("LD_LIBRARY_PATH").unwrap_or_default();
    let folders: Vec<PathBuf> = std::env::split_paths(&named).filter(|f| f.join("libcuda.so.1").exists()).collect();
    if let Some(stub) = folders.first().filter(|f| f.ends_with("stubs")) {
        return Some(format!(
            "{} in LD_LIBRARY_PATH has a stub of libcuda.so.1, without a driver in it: remove that folder from LD_LIBRARY_PATH",
            stub.display()
        ));
    }
    if let Some(mismatch) = describe_mismatch(root) {
        return Some(mismatch);
    }
    if DEVICES.iter().all(|device| !root.join(device).exists()) {
        if root.join("dev/kfd").exists() {
            return Some("the GPU of this machine is AMD's: `warpscope run --tool rocprofv3 -- PROGRAM`".to_owned());
        }
        let container = [".dockerenv", "run/.containerenv"].iter().any(|mark| root.join(mark).exists());
        let fix = if container {
            "start the container with `--gpus all`"
        } else {
            "run it on the GPU machine, or start its container with `--gpus all`"
        };
        return Some(format!("there is no NVIDIA GPU here (no /dev/nvidiactl): {fix}"));
    }
    let control = root.join("dev/nvidiactl");
    (control.exists() && access(&control, Access::READ_OK | Access::WRITE_OK).is_err())
        .then(|| "this user may not open /dev/nvidiactl: join the group that `ls -l /dev/nvidiactl` shows".to_owned())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_fact_that_hides_the_gpu_is_told_with_its_remedy() {
        let root = tempfile::tempdir().unwrap();
        let file = |name: &str, text: &str| {
            let path = root.path().join(name);
            std::fs::create_dir_all(path.parent().unwrap()).unwrap();
            std::fs::write(&path, text).unwrap();
            path
        };
        let of = |name: &str, value: &str| {
            let found = find_hidden_gpu(root.path(), |n| (n == name).then(|| value.to_owned().into()));
            found.unwrap_or_default()
        };
        assert!(of("", "").contains("no /dev/nvidiactl") && of("", "").contains("its container with `--gpus all`"));
        file(".dockerenv", "");
        assert!(of("", "").ends_with(": start the container with `--gpus all`"));
        file("dev/kfd", "");
        assert!(of("", "").contains("rocprofv3"));
        file("dev/nvidiactl", "");
        assert_eq!(of("", ""), "");
        for (value, hides) in
            [("", true), ("-1", true), ("NoDevFiles", true), ("0,-1", false), ("GPU-8f2", false), ("MIG-1", false), ("1", false)]
        {
            assert_eq!(of("CUDA_VISIBLE_DEVICES", value).contains("every GPU: `unset CUDA_VISIBLE_DEVICES`"), hides, "{value}");
        }
        let stub = file("cuda/lib64/stubs/libcuda.so.1", "");
        assert!(of("LD_LIBRARY_PATH", stub.parent().unwrap().to_str().unwrap()).contains("a stub of libcuda.so.1"));
        file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX Open Kernel Module for x86_64  580.95.05  Release Build\n");
        file("usr/lib64/libnvidia-ml.so.580.105.08", "");
        std::os::unix::fs::symlink("libnvidia-ml.so.580.105.08", root.path().join("usr/lib64/libnvidia-ml.so.1")).unwrap();
        assert!(of("", "").contains("580.105.08 and its kernel module of 580.95.05: reboot"), "{}", of("", ""));
        file("proc/driver/nvidia/version", "NVRM version: NVIDIA UNIX x86_64 Kernel Module  580.105.08  Tue Sep 23\n");
        assert_eq!(of("", ""), "");
    }
}
