//! Classification by name: finds the GPU streams among the tracks, and the type of each slice.
//!
//! Recognized names: `TensorFlow` and JAX (`/device:GPU:0`, `Stream #14(Compute)`; other lanes of that process are
//! derived from the streams), converters of nsys reports (`Device 0` or `GPU 0`, `Stream 7` or `CUDA API 7`; categories
//! `gpu_kernel`), rocprofiler-systems (`GPU Kernel Dispatch [0]`, `HIP Activity Stream 1`), rocmProfileData (`GPU2`,
//! with queues as lanes), Triton's Proton (`GPU Stream 7`), and `warpscope export`.

use crate::import::torch::event::EventKind;

/// Names and ids of a track.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Named {
    /// Name of the process or parent track that the track belongs to.
    pub process: String,
    pub track: String,
    pub pid: u32,
    pub tid: u32,
}

/// A GPU stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stream {
    pub device: u32,
    pub number: Option<u32>,
}

/// Returns the number that follows shortly after a word: `GPU:0`, `Device 1`, `Stream #14`, `Dispatch [0]`.
fn number_after(text: &str, word: &str) -> Option<u32> {
    let lower = text.to_ascii_lowercase();
    let mut from = 0;
    while let Some(at) = lower[from..].find(word) {
        let rest = &lower[from + at + word.len()..];
        let digits: String = rest.chars().skip_while(|c| " #:[(_".contains(*c)).take_while(char::is_ascii_digit).collect();
        let skipped = rest.chars().take_while(|c| " #:[(_".contains(*c)).count();
        if !digits.is_empty() && skipped <= 3 {
            return digits.parse().ok();
        }
        from += at + word.len();
    }
    None
}

fn has_word(text: &str, words: &[&str]) -> bool {
    let lower = text.to_ascii_lowercase();
    words.iter().any(|w| lower.contains(w))
}

/// Returns the GPU index contained in a track's names.
pub fn find_device(named: &Named) -> Option<u32> {
    let words = ["gpu", "device", "cuda hw"];
    [&named.process, &named.track].into_iter().find_map(|text| words.iter().find_map(|w| number_after(text, w)))
}

/// Returns the GPU and queue of a rocmProfileData lane, where the process is named `GPU2` and the lane is named by
/// its number.
fn queue_of_rpd(named: &Named) -> Option<(u32, u32)> {
    let number = |text: &str| text.parse::<u32>().ok().filter(|_| text.bytes().all(|b| b.is_ascii_digit()));
    Some((named.process.strip_prefix("GPU").and_then(number)?, number(&named.track)?))
}

/// Returns true if the process stands for a device of an nsys report: `Device 0`.
fn is_device(named: &Named) -> bool {
    named.process.strip_prefix("Device ").is_some_and(|number| !number.is_empty() && number.bytes().all(|b| b.is_ascii_digit()))
}

/// Parses a rocmProfileData operation type (`args.desc`).
pub fn of_rpd(description: &str) -> Option<EventKind> {
    match description.to_ascii_lowercase().as_str() {
        "kernelexecution" | "task" => Some(EventKind::Kernel),
        "copyhosttodevice" | "copydevicetohost" | "copydevicetodevice" | "copyhosttohost" => Some(EventKind::Copy),
        "fillbuffer" => Some(EventKind::Set),
        _ => None,
    }
}

/// Returns the stream that a track represents.
pub fn find_stream(named: &Named) -> Option<Stream> {
    if let Some((device, queue)) = queue_of_rpd(named) {
        return Some(Stream { device, number: Some(queue) });
    }
    // nsightful names a device's streams like its threads: `Device 0`, `CUDA API 7`.
    if is_device(named) && named.track.starts_with("CUDA API ") {
        return Some(Stream { device: find_device(named).unwrap_or(0), number: number_after(&named.track, "api") });
    }
    let gpu =
        has_word(&named.process, &["gpu", "device", "cuda", "ascend hardware", "xpu"]) || has_word(&named.track, &["gpu", "hip activity"]);
    let of_stream = has_word(&named.track, &["stream"]);
    let dispatches = has_word(&named.track, &["gpu kernel dispatch", "kernel dispatch ["]);
    (gpu && of_stream || dispatches).then(|| Stream {
        device: find_device(named).or_else(|| number_after(&named.track, "dispatch")).unwrap_or(0),
        number: number_after(&named.track, "stream").or_else(|| number_after(&named.track, "queue")),
    })
}

/// Returns the type of a slice; `None` for slices to ignore, such as those on other lanes of a GPU's process.
pub fn kind_of(name: &str, category: &str, named: &Named, stream: Option<Stream>) -> Option<EventKind> {
    let category = category.to_ascii_lowercase();
    if let Some(kind) = of_rpd(&category) {
        return Some(kind);
    }
    // Other operations on rocmProfileData queues are barriers and markers rather than work.
    if queue_of_rpd(named).is_some() {
        return None;
    }
    let kernel = ["kernel", "gpu_kernel", "cuda_kernel", "kernel_dispatch", "rocm_kernel_dispatch", "hip_kernel"].contains(&&*category);
    let memory = ["gpu_memcpy", "gpu_memset", "memcpy", "memset", "memory_copy", "gpu_mem", "rocm_memory_copy"].contains(&&*category);
    if stream.is_some() || kernel || memory {
        let lower = name.to_ascii_lowercase();
        let starts = |words: &[&str]| words.iter().any(|w| lower.trim_start_matches(['[', ' ']).trim_start_matches("cuda ").starts_with(w));
        return Some(if starts(&["memset", "fill"]) && !kernel {
            EventKind::Set
        } else if (starts(&["memcpy", "copy"]) || memory) && !kernel {
            EventKind::Copy
        } else {
            EventKind::Kernel
        });
    }
    // JAX's lanes for steps, modules and operators are not GPU work, and neither are the ranges that converters of nsys
    // reports project onto a device.
    if has_word(&named.process, &["/device:gpu", "/device:tpu"]) || is_device(named) {
        return None;
    }
    let runtime = ["cuda_runtime", "cuda_driver", "cuda_api", "hip_api", "hip_runtime", "rocm_hip_api", "runtime_api", "driver_api"];
    // Name that `warpscope export` gives to a launch call whose function is unknown.
    let ours = category == "api" && name == "launch call";
    let call = |start: &str| name.strip_prefix(start).and_then(|rest| rest.chars().next()).is_some_and(|c| c.is_ascii_uppercase());
    Some(if ours || runtime.contains(&&*category) || ["cu", "cuda", "hip"].into_iter().any(call) {
        EventKind::Call
    } else {
        EventKind::Range
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn named(process: &str, track: &str) -> Named {
        Named { process: process.to_owned(), track: track.to_owned(), pid: 1, tid: 2 }
    }

    #[test]
    fn streams_of_several_tools() {
        for (process, track, wanted) in [
            ("/device:GPU:1 (NVIDIA H100)", "Stream #14(Compute)", Some((1, Some(14)))),
            ("Device 0", "Stream 7", Some((0, Some(7)))),
            ("GPU 3 · NVIDIA H200", "stream 21", Some((3, Some(21)))),
            ("Device 1", "CUDA API 7", Some((1, Some(7)))),
            ("Host 1", "CUDA API 7", None),
            ("Device 1", "NVTX 9946", None),
            ("app", "GPU Kernel Dispatch [2] Queue 4", Some((2, Some(4)))),
            ("app", "HIP Activity Stream 3", Some((0, Some(3)))),
            ("GPU2", "5", Some((2, Some(5)))),
            ("Trace", "GPU Stream 7", Some((0, Some(7)))),
            ("Trace", "Graph: Stream 7", None),
            ("GPU2", "worker", None),
            ("GPU", "5", None),
            ("/device:GPU:0", "XLA Ops", None),
            ("python", "stream_worker", None),
            ("python", "main thread", None),
        ] {
            let found = find_stream(&named(process, track)).map(|s| (s.device, s.number));
            assert_eq!(found, wanted, "{process} / {track}");
        }
    }

    #[test]
    fn slices_are_what_their_track_and_name_say() {
        let gpu = named("/device:GPU:0", "Stream #14(Compute)");
        let host = named("python", "main");
        let of = |name: &str, category: &str, n: &Named| kind_of(name, category, n, find_stream(n));
        assert_eq!(of("loop_multiply_fusion", "", &gpu), Some(EventKind::Kernel));
        assert_eq!(of("MemcpyH2D", "", &gpu), Some(EventKind::Copy));
        assert_eq!(of("[CUDA memset]", "", &gpu), Some(EventKind::Set));
        assert_eq!(of("copy_kernel<float>", "gpu_kernel", &host), Some(EventKind::Kernel));
        assert_eq!(of("copy_kernel", "KernelExecution", &named("GPU2", "0")), Some(EventKind::Kernel));
        assert_eq!(of("Barrier", "", &named("GPU2", "0")), None);
        assert_eq!(of("FillBuffer", "FillBuffer", &named("GPU2", "0")), Some(EventKind::Set));
        assert_eq!(of("cuLaunchKernel", "", &host), Some(EventKind::Call));
        assert_eq!(of("customer", "", &host), Some(EventKind::Range));
        assert_eq!(of("launch call", "api", &host), Some(EventKind::Call));
        assert_eq!(of("api", "api", &host), Some(EventKind::Range));
        assert_eq!(of("roctxMark", "hip_runtime", &host), Some(EventKind::Call));
        assert_eq!(of("train_step", "", &named("/device:GPU:0", "Steps")), None);
    }
}
