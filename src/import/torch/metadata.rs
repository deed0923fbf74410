//! Metadata of a trace: GPUs, versions, rank, profiler messages, and the settings of warpscope's own recording script.

use super::tokenizer::Fact;
use crate::model::{Bytes, CaptureRange, Device, Note, NoteKind, Profile, Rank, Severity, Vendor};
use serde::Deserialize;
use serde_json::Value;

/// Metadata key written by the recipe's script.
pub const OURS: &str = "warpscope";

/// Settings of the recording script.
#[derive(Debug, Deserialize)]
struct Ours {
    /// The program and its arguments, without the script; empty for one rank of several, which cannot be run alone.
    #[serde(default)]
    argv: Vec<String>,
    directory: Option<String>,
    /// True if the trace began before the program was able to launch anything.
    #[serde(default)]
    whole: bool,
}

/// Program that wrote a trace.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Writer {
    #[default]
    Unknown,
    /// PyTorch's profiler.
    Kineto,
    /// A tool other than PyTorch.
    Other,
}

#[derive(Debug, Default)]
pub struct Facts {
    /// Visible GPUs, used or not.
    pub devices: Vec<Device>,
    /// True for AMD GPUs, which ncu does not support.
    pub amd: bool,
    /// True for a vendor other than NVIDIA and AMD.
    pub other: bool,
    pub writer: Writer,
    rank: Option<(u64, Option<u64>)>,
    host: Option<String>,
    /// Base that event times are relative to, ns since 1970; if there is none, event times are absolute.
    base: Option<i64>,
    versions: Vec<(&'static str, String)>,
    messages: Vec<(Severity, String)>,
    ours: Option<Ours>,
}

/// Minimum absolute time, ns since 1970 (in 2001); times since boot are smaller.
const EPOCH_NS: i64 = 1_000_000_000_000_000_000;

/// Maximum number of profiler messages shown.
const MOST_MESSAGES: usize = 8;
const LONGEST_MESSAGE: usize = 400;

impl Facts {
    /// Parses the top-level values, ignoring invalid ones.
    pub fn new(facts: &[Fact]) -> Self {
        let mut out = Self::default();
        for (key, text) in facts {
            let Ok(value) = serde_json::from_slice::<Value>(text) else { continue };
            match &**key {
                "deviceProperties" => out.devices = value.as_array().map(|l| l.iter().map(parse_device).collect()).unwrap_or_default(),
                "schemaVersion" => out.writer = Writer::Kineto,
                "cuda_runtime_version" => out.add_version("CUDA", &value),
                "hip_runtime_version" | "roctracer_version" => out.amd = true,
                "vllm_version" => out.add_version("vLLM", &value),
                "distributedInfo" => {
                    out.rank = value.get("rank").and_then(Value::as_u64).map(|r| (r, value.get("world_size").and_then(Value::as_u64)));
                }
                "baseTimeNanoseconds" => out.base = value.as_i64(),
                "host_name" => out.host = value.as_str().map(str::to_owned),
                "ERROR" => out.add_messages(Severity::Error, &value),
                "WARNING" => out.add_messages(Severity::Warning, &value),
                OURS => {
                    // Kineto stores metadata as JSON, or in older versions as a string that contains JSON.
                    out.ours = match value {
                        Value::String(inner) => serde_json::from_str(&inner).ok(),
                        other => serde_json::from_value(other).ok(),
                    };
                }
                _ => {}
            }
        }
        let wavefronts = out.devices.iter().any(|d| d.warp_size == Some(64));
        out.amd |= wavefronts;
        out.other = out.devices.iter().any(|d| d.name.as_deref().is_some_and(is_other_vendor));
        let maker = out.maker();
        for device in &mut out.devices {
            device.maker = maker;
        }
        out
    }

    pub fn maker(&self) -> Vendor {
        match (self.other, self.amd) {
            (true, _) => Vendor::Other,
            (_, true) => Vendor::Amd,
            _ => Vendor::Nvidia,
        }
    }

    fn add_version(&mut self, of: &'static str, value: &Value) {
        let text = match (of, value.as_u64()) {
            ("CUDA", Some(v)) => format!("{}.{}", v / 1000, v % 1000 / 10),
            _ => value.as_str().map_or_else(|| value.to_string(), str::to_owned),
        };
        self.versions.push((of, text));
    }

    fn add_messages(&mut self, severity: Severity, value: &Value) {
        let one = std::slice::from_ref(value);
        for text in value.as_array().map_or(one, Vec::as_slice).iter().filter_map(Value::as_str).take(MOST_MESSAGES) {
            self.messages.push((severity, text.chars().take(LONGEST_MESSAGE).collect()));
        }
    }

    /// Formats the versions as `CUDA 13.0, …`.
    pub fn version_line(&self) -> Option<String> {
        let words: Vec<String> = self.versions.iter().map(|(of, v)| format!("{of} {v}")).collect();
        (!words.is_empty()).then(|| words.join(", "))
    }

    /// Moves the metadata into the profile.
    pub fn apply_to(self, begin: i64, profile: &mut Profile) {
        profile.clock.epoch_ns = self.base.map_or((begin > EPOCH_NS).then_some(begin), |base| base.checked_add(begin));
        let number = |n: u64| u32::try_from(n).ok();
        profile.rank = Rank { rank: self.rank.and_then(|r| number(r.0)), world: self.rank.and_then(|r| number(r.1?)), host: self.host };
        for (severity, text) in self.messages {
            profile.notes.push(Note::new(severity, NoteKind::Tool, format!("The profiler says: {text}")));
        }
        if let Some((rank, world)) = self.rank
            && world != Some(1)
        {
            let of = world.map_or_else(String::new, |w| format!(" of {w}"));
            profile.notes.push(Note::new(Severity::Info, NoteKind::Tool, format!("This is rank {rank}{of}.")));
        }
        let whole = self.ours.as_ref().is_some_and(|o| o.whole);
        if let Some(ours) = self.ours {
            profile.capture.argv = ours.argv;
            profile.capture.directory = ours.directory;
        }
        if self.writer == Writer::Other {
            profile.capture.gate = Some(CaptureRange::Late);
            let text = "A trace of another tool: what ran on a GPU was told by categories and the names of tracks, and how many launches came before is not known.";
            profile.notes.push(Note::new(Severity::Warning, NoteKind::Guess, text));
        } else if !whole && !profile.launches.is_empty() {
            profile.capture.gate = Some(CaptureRange::Late);
            let fix = if self.other {
                "trace from the start of the program"
            } else {
                "trace from the start with `warpscope run --tool torch -- python SCRIPT`, or start ncu at the same place (torch.cuda.profiler.start())"
            };
            profile.notes.push(
                Note::new(
                    Severity::Warning,
                    NoteKind::Gate,
                    "A PyTorch trace begins where the program starts its profiler, and does not say how many launches came before: launch numbers count from there.",
                )
                .with_fix(fix),
            );
        }
    }
}

/// Returns true for the name of a GPU or accelerator from a vendor other than NVIDIA and AMD.
pub fn is_other_vendor(name: &str) -> bool {
    let name = name.to_ascii_lowercase();
    ["intel", "ascend", "apple", "moore threads", "iluvatar", "cambricon", "hygon", "metax", "gaudi"]
        .iter()
        .any(|maker| name.contains(maker))
}

fn parse_device(value: &Value) -> Device {
    let number = |key: &str| value.get(key).and_then(Value::as_u64).and_then(|n| u32::try_from(n).ok());
    let bytes = |key: &str| value.get(key).and_then(Value::as_u64).map(Bytes);
    let name = value.get("name").and_then(Value::as_str).filter(|n| !n.is_empty()).map(str::to_owned);
    let warp = number("warpSize");
    // Exclude AMD: its wavefronts have 64 lanes, and version 9.4 means gfx94x rather than a compute capability.
    let nvidia = warp == Some(32) && name.as_deref().is_none_or(|n| !n.contains("AMD"));
    Device {
        id: number("id").unwrap_or_default(),
        compute_capability: number("computeMajor").zip(number("computeMinor")).filter(|_| nvidia),
        sm_count: number("numSms"),
        memory: bytes("totalGlobalMem"),
        warp_size: warp,
        max_warps_per_sm: number("maxThreadsPerMultiprocessor").zip(warp).filter(|(_, w)| *w > 0).map(|(t, w)| t / w),
        registers_per_sm: number("regsPerMultiprocessor"),
        registers_per_block: number("regsPerBlock"),
        shared_per_sm: bytes("sharedMemPerMultiprocessor").or_else(|| bytes("maxSharedMemoryPerMultiProcessor")),
        shared_per_block: bytes("sharedMemPerBlockOptin"),
        max_threads_per_block: number("maxThreadsPerBlock"),
        max_blocks_per_sm: number("computeMajor").zip(number("computeMinor")).filter(|_| nvidia).and_then(most_blocks),
        arch: name.as_deref().and_then(cdna_architecture).map(str::to_owned),
        name,
        ..Device::default()
    }
}

/// Architecture of an AMD Instinct GPU by its product name, since traces do not contain it. Source: "Accelerator
/// and GPU hardware specifications" in AMD's documentation.
fn cdna_architecture(name: &str) -> Option<&'static str> {
    const PRODUCTS: [(&str, &[&str]); 4] = [
        ("gfx950", &["MI350", "MI355"]),
        ("gfx942", &["MI300", "MI308", "MI325"]),
        ("gfx90a", &["MI210", "MI250"]),
        ("gfx908", &["MI100"]),
    ];
    let name = name.strip_prefix("AMD Instinct ")?;
    PRODUCTS.iter().find(|p| p.1.iter().any(|product| name.starts_with(product))).map(|p| p.0)
}

/// Maximum number of resident blocks per SM, which traces do not contain. Source: CUDA C++ Programming Guide,
/// Technical Specifications per Compute Capability.
fn most_blocks(capability: (u32, u32)) -> Option<u32> {
    match capability {
        (6, _) | (7, 0 | 2) | (8..=10, 0) => Some(32),
        (7, 5) | (8, 6 | 7) => Some(16),
        (8, 9) | (12, 0) => Some(24),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn devices_of_two_makers() {
        let nvidia = serde_json::json!({"id": 1, "name": "NVIDIA H200", "computeMajor": 9, "computeMinor": 0, "warpSize": 32, "numSms": 132,
            "maxThreadsPerMultiprocessor": 2048, "sharedMemPerBlockOptin": 232_448});
        let d = parse_device(&nvidia);
        assert_eq!((d.id, d.compute_capability, d.max_warps_per_sm, d.max_blocks_per_sm), (1, Some((9, 0)), Some(64), Some(32)));
        let amd = serde_json::json!({"id": 0, "name": "", "computeMajor": 9, "computeMinor": 4, "warpSize": 64, "numSms": 304});
        let d = parse_device(&amd);
        assert_eq!((d.name, d.compute_capability, d.max_blocks_per_sm, d.sm_count), (None, None, None, Some(304)));
        let named = |name: &str| parse_device(&serde_json::json!({"id": 0, "name": name, "warpSize": 64})).arch;
        assert_eq!(named("AMD Instinct MI300X VF").as_deref(), Some("gfx942"));
        assert_eq!(
            (named("AMD Instinct MI250X").as_deref(), named("AMD Radeon RX 7900 XTX"), named("NVIDIA H200")),
            (Some("gfx90a"), None, None)
        );
    }

    #[test]
    fn the_scripts_own_words() {
        let fact = |key: &str, text: &str| (key.to_owned(), text.as_bytes().to_vec());
        for text in [
            r#"{"argv": ["python", "a.py"], "directory": "/w", "whole": true}"#,
            r#""{\"argv\": [\"python\", \"a.py\"], \"whole\": true}""#,
        ] {
            let mut profile = Profile::new(crate::model::Source::default());
            Facts::new(&[fact(OURS, text), fact("ERROR", r#"["no CUPTI"]"#), fact("cuda_runtime_version", "12040")])
                .apply_to(0, &mut profile);
            assert_eq!(profile.capture.argv, ["python", "a.py"]);
            assert_eq!(profile.capture.gate, None);
            assert_eq!(profile.notes.len(), 1);
        }
        assert_eq!(Facts::new(&[fact("cuda_runtime_version", "12040")]).version_line().as_deref(), Some("CUDA 12.4"));
        assert!(Facts::new(&[fact("distributedInfo", "null"), fact("x", "{broken")]).rank.is_none());
    }
}
