//! Profiles from Triton's Proton (`.hatchet`, `.hatchet_msgpack`): a tree of scopes or Python frames, whose nodes
//! carry the counts and times of kernels, and metrics supplied by the program.

mod json;
mod msgpack;
mod tree;

use super::input::Bytes;
use super::{ImportError, Importer, Input, Job};
use crate::launch::open;
use crate::model::units::format_scaled;
use crate::model::{Kernel, KernelId, KernelTotal, Nanos, Note, NoteKind, Profile, Severity, Source, kernel};
use std::borrow::Cow;
use std::collections::BTreeSet;
use tree::{KernelSum, Tree, Work, build_devices};

/// Memory for the name and sums of a kernel, bytes.
const KERNEL: u64 = 256;
/// Maximum number of scopes named in a note.
const SCOPES: usize = 5;
/// Maximum total duration, ns: a century.
const MOST_NS: f64 = 3.2e18;

/// Describes the outermost scopes by their share of the total; `None` if there are no scopes.
fn describe_scopes(tree: &Tree<'_>, total: f64) -> Option<String> {
    let list = tree.outermost_scopes();
    let words: Vec<String> = list.iter().take(SCOPES).map(|(name, time)| format!("{name} {:.0}%", 100.0 * time / total)).collect();
    (!words.is_empty()).then(|| format!("Kernel time by outermost scope: {}{}.", words.join(", "), count_more(list.len())))
}

fn count_more(of: usize) -> String {
    if of > SCOPES { format!(" and {} more", of - SCOPES) } else { String::new() }
}

/// Number format that the name of an operation metric contains, such as `flops16` as reported by Triton's own
/// kernels; `None` for other metrics.
fn find_precision(metric: &str) -> Option<&'static str> {
    Some(match metric {
        "flops" => "",
        "flops8" => " in 8 bits",
        "flops16" => " in 16 bits",
        "flops32" => " in 32 bits",
        "flops64" => " in 64 bits",
        _ => return None,
    })
}

fn format_rate(value: f64, unit: &str) -> String {
    let (number, unit) = format_scaled(value, unit);
    format!("{number} {unit}")
}

/// Describes the rates of a scope or kernel: operations and bytes per second of kernel time.
fn describe_work(work: &Work<'_>, peak: Option<u64>) -> Option<String> {
    let rate = |sum: f64| sum / (work.time / 1e9);
    let operations =
        work.sums.iter().filter_map(|(name, &sum)| Some(format!("{}{}", format_rate(rate(sum), "FLOP/s"), find_precision(name)?)));
    let bytes = work.sums.get("bytes").map(|&sum| {
        let share = peak.map(|p| format!(" ({:.0}% of the memory's peak)", 100.0 * rate(sum) / p as f64));
        format!("{}{}", format_rate(rate(sum), "B/s"), share.unwrap_or_default())
    });
    let words: Vec<String> = operations.chain(bytes).collect();
    (!words.is_empty()).then(|| format!("{} {}", work.name, words.join(", ")))
}

/// Notes about the metrics supplied by the program: rates, and the names of other metrics.
fn describe_given(tree: &Tree<'_>, peak: Option<u64>) -> Vec<String> {
    let work = tree.given_work();
    let rates: Vec<String> = work.iter().filter_map(|w| describe_work(w, peak)).collect();
    let mut out = Vec::new();
    if !rates.is_empty() {
        let shown = rates.iter().take(SCOPES).map(String::as_str).collect::<Vec<_>>().join("; ");
        out.push(format!("Rates by the program's own metrics: {shown}{}.", count_more(rates.len())));
    }
    let others: BTreeSet<&str> =
        work.iter().flat_map(|w| w.sums.keys().copied()).filter(|m| *m != "bytes" && find_precision(m).is_none()).collect();
    if !others.is_empty() {
        out.push(format!("Metrics that the program gave are not shown: {}.", others.into_iter().collect::<Vec<_>>().join(", ")));
    }
    out
}

/// Adds the totals per kernel.
fn add_totals(kernels: &[KernelSum<'_>], profile: &mut Profile) {
    for KernelSum { name, count, time } in kernels {
        let average = Nanos((time.min(MOST_NS) / count) as i64);
        profile.totals.push(KernelTotal {
            kernel: KernelId(u32::try_from(profile.kernels.len()).unwrap_or(u32::MAX)),
            count: *count as u64,
            total: Nanos(time.min(MOST_NS) as i64),
            min: average,
            max: average,
            median_ns: None,
            stddev_ns: None,
        });
        let function = kernel::function_of(name).into();
        profile.kernels.push(Kernel { function: Some(function), demangled: Some((*name).into()), ..Kernel::default() });
    }
}

fn build_profile(mut tree: Tree<'_>, input: &Input) -> Result<Profile, ImportError> {
    let devices = build_devices(std::mem::take(&mut tree.devices));
    let kernels = tree.sum_kernels();
    input.memory_budget().charge_bytes(kernels.len() as u64 * KERNEL)?;
    if kernels.is_empty() {
        let cycles = tree.nodes.iter().any(|n| n.has_cycles);
        let what = if cycles { "a profile of Proton with cycles inside kernels" } else { "a profile of Proton without kernels" };
        return Err(ImportError::refused(&input.path, what, "record with `proton.start(…, backend=\"cupti\")`, or with data=\"trace\""));
    }
    let mut profile = Profile::new(Source { tool: "Proton".to_owned(), version: None, schema: None, file: input.path.clone() });
    add_totals(&kernels, &mut profile);
    let text = "This profile has totals of kernels only: no single launches, configurations, streams or memory copies. The average launch \
                stands for the shortest and the longest.";
    let fix = "record a timeline, with `proton.start(…, data=\"trace\")` or `warpscope trace`";
    profile.notes.push(Note::new(Severity::Warning, NoteKind::Guess, text).with_fix(fix));
    // With several GPUs, the kernels of a scope may have run on any of them.
    let peak = if let [device] = devices.as_slice() { device.memory_bandwidth } else { None };
    let said = describe_scopes(&tree, kernels.iter().map(|k| k.time).sum()).into_iter().chain(describe_given(&tree, peak));
    profile.notes.extend(said.map(|text| Note::new(Severity::Info, NoteKind::Guess, text)));
    if tree.broken > 0 {
        let text = format!("{} nodes of the tree could not be understood; the rest is shown.", tree.broken);
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Damaged, text));
    }
    profile.devices = devices;
    Ok(profile)
}

fn read_profile(input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
    let bytes: Cow<'_, [u8]> = match &input.bytes {
        Bytes::File(path) => Cow::Owned(open::read_regular(path).map_err(|e| ImportError::io(path, e))?),
        Bytes::BuiltIn(bytes) => Cow::Borrowed(*bytes),
    };
    if msgpack::is_tree(&bytes) {
        return build_profile(msgpack::read_tree(&bytes, input, job)?, input);
    }
    let text = String::from_utf8_lossy(&bytes);
    build_profile(json::read_tree(&text, input, job)?, input)
}

/// Importer for Proton's trees.
pub struct ProtonTree;

impl Importer for ProtonTree {
    fn name(&self) -> &'static str {
        "Proton profile (Triton)"
    }

    fn files(&self) -> &'static [&'static str] {
        &[".hatchet", ".hatchet_msgpack"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".hatchet", ".hatchet_msgpack"]
    }

    fn knows(&self, input: &Input) -> bool {
        json::is_tree(&input.head) || msgpack::is_tree(&input.head)
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        read_profile(input, job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::Wants;
    use crate::model::Vendor;

    /// Reads a tree that is followed by the properties of the GPUs.
    fn read(tree: &str, devices: &str) -> Result<Profile, ImportError> {
        let bytes: &'static [u8] = Box::leak(format!("[{tree},{devices}]").into_bytes().into_boxed_slice());
        let input = Input::built_in("x.hatchet", bytes);
        assert!(ProtonTree.knows(&input) || tree.is_empty(), "{tree}");
        ProtonTree.read(&input, &Job::new(Wants::ALL, &|_| {}))
    }

    fn node(name: &str, metrics: &str, children: &str) -> String {
        format!(r#"{{"children": [{children}], "frame": {{"name": "{name}", "type": "function"}}, "metrics": {{{metrics}}}}}"#)
    }

    fn kernel(name: &str, count: u32, ns: u32) -> String {
        node(name, &format!(r#""count": {count}, "device_id": "0", "device_type": "HIP", "time (ns)": {ns}, "flops16": 1e9"#), "")
    }

    fn totals(profile: &Profile) -> Vec<(String, u64, i64)> {
        let one = |t: &KernelTotal| (profile.kernels[t.kernel.0 as usize].demangled().to_owned(), t.count, t.total.0);
        profile.totals.iter().map(one).collect()
    }

    const MI300X: &str =
        r#"{"HIP": {"1": {"arch": "gfx942", "bus_width": 8192, "clock_rate": 2100000, "memory_clock_rate": 2600000, "num_sms": 304}}}"#;

    #[test]
    fn kernels_are_summed_over_scopes() {
        let forward = node("forward", "", &[kernel("gemm", 2, 3_000), node("norm", "", &kernel("softmax", 1, 500))].join(","));
        let backward = node("backward", "", &kernel("gemm", 3, 6_500));
        // The first releases capitalized the names of their metrics.
        let old = node("copy", r#""Count": 1, "Time (ns)": 10"#, "");
        let root = node("ROOT", r#""count": 0, "time (ns)": 0"#, &[forward, backward, old].join(","));
        let profile = read(&root, MI300X).unwrap();
        let wanted = [("gemm", 5, 9_500), ("softmax", 1, 500), ("copy", 1, 10)];
        assert_eq!(totals(&profile), wanted.map(|(n, c, t)| (n.to_owned(), c, t)));
        let device = &profile.devices[0];
        assert_eq!((device.id, device.maker, device.arch.as_deref()), (1, Vendor::Amd, Some("gfx942")));
        assert_eq!((device.sm_count, device.clock_hz, device.memory_bandwidth), (Some(304), Some(2_100_000_000), Some(5_324_800_000_000)));
        // The clock that HIP reports for an MI300X: HBM3 makes four transfers per cycle of this clock.
        let hip = read(&root, &MI300X.replace("2600000", "1300000")).unwrap();
        assert_eq!(hip.devices[0].memory_bandwidth, device.memory_bandwidth);
        let said: Vec<_> = profile.notes.iter().map(|n| n.text.as_str()).collect();
        assert!(said.contains(&"Kernel time by outermost scope: backward 65%, forward 35%."), "{said:?}");
        assert!(
            said.contains(&"Rates by the program's own metrics: gemm 211 TFLOP/s in 16 bits; softmax 2000 TFLOP/s in 16 bits."),
            "{said:?}"
        );
    }

    /// Encodes JSON as `MessagePack`, with a node's keys in the order in which Proton writes them.
    fn pack_value(value: &serde_json::Value, out: &mut Vec<u8>) {
        use rmp::encode;
        match value {
            serde_json::Value::Number(n) => match n.as_u64() {
                Some(n) => drop(encode::write_uint(out, n).unwrap()),
                None => encode::write_f64(out, n.as_f64().unwrap()).unwrap(),
            },
            serde_json::Value::String(text) => encode::write_str(out, text).unwrap(),
            serde_json::Value::Array(list) => {
                encode::write_array_len(out, u32::try_from(list.len()).unwrap()).unwrap();
                for v in list {
                    pack_value(v, out);
                }
            }
            serde_json::Value::Object(map) => {
                encode::write_map_len(out, u32::try_from(map.len()).unwrap()).unwrap();
                let mut pairs: Vec<_> = map.iter().collect();
                pairs.sort_by_key(|(key, _)| (*key == "children", key.to_owned()));
                for (key, value) in pairs {
                    encode::write_str(out, key).unwrap();
                    pack_value(value, out);
                }
            }
            other => panic!("{other}"),
        }
    }

    #[test]
    fn both_encodings_give_the_same() {
        let scope = node(
            "forward",
            r#""bytes": 2.5e6, "tokens": 7"#,
            &[kernel("gemm", 2, 3_000), node("norm", "", &kernel("softmax", 1, 500))].join(","),
        );
        let root = node("ROOT", r#""count": 0, "time (ns)": 0"#, &[scope, kernel("gemm", 300, 70_000)].join(","));
        let json = read(&root, MI300X).unwrap();
        let mut bytes = Vec::new();
        pack_value(&serde_json::from_str(&format!("[{root},{MI300X}]")).unwrap(), &mut bytes);
        let bytes: &'static [u8] = Box::leak(bytes.into_boxed_slice());
        let read_packed = |bytes| {
            let input = Input::built_in("x.hatchet_msgpack", bytes);
            assert!(ProtonTree.knows(&input));
            ProtonTree.read(&input, &Job::new(Wants::ALL, &|_| {}))
        };
        let packed = read_packed(bytes).unwrap();
        assert_eq!((totals(&packed), &packed.devices), (totals(&json), &json.devices));
        let said = |p: &Profile| p.notes.iter().map(|n| n.text.clone()).collect::<Vec<_>>();
        assert_eq!(said(&packed), said(&json));
        let rates = "Rates by the program's own metrics: gemm 27.4 TFLOP/s in 16 bits; forward 714 GB/s (13% of the memory's peak); softmax 2000 TFLOP/s in 16 bits.";
        assert!(said(&json).iter().any(|t| t == rates), "{:?}", said(&json));
        assert!(said(&json).iter().any(|t| t.ends_with("not shown: tokens.")));
        // A file truncated anywhere after its start is damaged, or has no GPU properties.
        for length in (12..bytes.len()).step_by(3) {
            match read_packed(&bytes[..length]) {
                Ok(profile) => assert_eq!(totals(&profile), totals(&json), "{length}"),
                Err(e) => assert!(e.to_string().contains("its tree"), "{length}: {e}"),
            }
        }
    }

    #[test]
    fn deep_trees_are_read_and_the_deepest_are_cut() {
        let frames = |n: usize| (0..n).fold(kernel("leaf", 1, 7), |inner, i| node(&format!("model.py:f@{i}"), "", &inner));
        let profile = read(&node("ROOT", "", &frames(200)), MI300X).unwrap();
        assert_eq!(totals(&profile), [("leaf".to_owned(), 1, 7)]);
        assert!(profile.notes.iter().all(|n| n.kind != NoteKind::Damaged));
        let both = [frames(400), kernel("other", 1, 3)].join(",");
        let profile = read(&node("ROOT", "", &both), MI300X).unwrap();
        assert_eq!(totals(&profile), [("other".to_owned(), 1, 3)]);
        assert!(profile.notes.iter().any(|n| n.kind == NoteKind::Damaged));
    }

    #[test]
    fn trees_without_kernels_are_refused() {
        let inside = node("ROOT", "", &node("k", r#""cycles": 100, "normalized_cycles": 1.5"#, ""));
        assert!(read(&inside, "{}").unwrap_err().to_string().contains("cycles inside kernels"));
        assert!(read(&node("ROOT", "", ""), "{}").unwrap_err().to_string().contains("without kernels"));
        for odd in ["1", "null", r#"{"children": 5}"#, r#"{"frame": {"name": 3}}"#] {
            assert!(read(&node("ROOT", "", odd), "{}").is_err(), "{odd}");
        }
        let cut = node("ROOT", "", &kernel("k", 1, 5));
        let bytes: &'static [u8] = Box::leak(format!("[{}", &cut[..cut.len() - 9]).into_bytes().into_boxed_slice());
        let input = Input::built_in("x.hatchet", bytes);
        assert!(ProtonTree.read(&input, &Job::new(Wants::ALL, &|_| {})).unwrap_err().to_string().contains("its tree"));
    }
}
