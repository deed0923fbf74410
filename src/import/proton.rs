//! Profiles of Triton's Proton (`.hatchet`): a tree of scopes or Python frames in JSON, whose nodes have the kernels'
//! counts and times (triton-lang/triton, `third_party/proton/csrc/lib/Data/Dump/TreeDataHatchetDump.cpp`).

use super::input::Bytes;
use super::{ImportError, Importer, Input, Job};
use crate::launch::open;
use crate::model::{Device, Kernel, KernelId, KernelTotal, Nanos, Note, NoteKind, Profile, Severity, Source, Vendor, kernel};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use serde_json::Value;
use serde_json::value::RawValue;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Memory of a kernel's name and sums, bytes.
const KERNEL: u64 = 256;
/// Deepest level of the tree that is read. Each level is scanned once more, since it is parsed without recursion.
const DEEPEST: u32 = 256;
/// Maximum number of scopes named in a note.
const SCOPES: usize = 5;
/// Largest sum of durations: a century, ns.
const MOST_NS: f64 = 3.2e18;

#[derive(Deserialize)]
struct Node<'a> {
    #[serde(borrow, default)]
    frame: Frame<'a>,
    #[serde(borrow, default)]
    metrics: BTreeMap<Cow<'a, str>, Value>,
    /// Parsed later: trees of Python frames are deeper than a recursive parser goes.
    #[serde(borrow, default)]
    children: Vec<&'a RawValue>,
}

#[derive(Default, Deserialize)]
#[serde(default)]
struct Frame<'a> {
    #[serde(borrow)]
    name: Cow<'a, str>,
}

/// Properties of a GPU.
#[derive(Default, Deserialize)]
#[serde(default)]
struct Properties {
    arch: String,
    /// Bits.
    bus_width: u64,
    /// kHz.
    clock_rate: u64,
    memory_clock_rate: u64,
    num_sms: u32,
}

/// A metric by either of its names: the first releases wrote them in capitals.
fn find_metric<'n>(node: &'n Node<'_>, names: [&str; 2]) -> Option<&'n Value> {
    names.into_iter().find_map(|name| node.metrics.get(name))
}

fn parse_count(value: Option<&Value>) -> Option<f64> {
    let value = value?;
    value.as_f64().or_else(|| value.as_str()?.parse().ok()).filter(|n| n.is_finite() && *n >= 0.0)
}

/// Sums over the tree.
#[derive(Default)]
struct Sums<'a> {
    /// Count and time of each kernel, in the order of the tree.
    kernels: Vec<(Cow<'a, str>, f64, f64)>,
    numbers: FxHashMap<Cow<'a, str>, usize>,
    /// Time under each child of the root.
    scopes: Vec<(Cow<'a, str>, f64)>,
    /// Metrics that the program gave.
    given: BTreeSet<String>,
    cycles: bool,
    broken: u64,
}

impl<'a> Sums<'a> {
    fn add_node(&mut self, node: &Node<'a>, scope: Option<usize>) {
        self.cycles |= node.metrics.contains_key("cycles");
        let time = parse_count(find_metric(node, ["time (ns)", "Time (ns)"]));
        let count = parse_count(find_metric(node, ["count", "Count"]));
        let (Some(time), Some(count)) = (time, count) else { return };
        if count < 1.0 {
            return;
        }
        let at = *self.numbers.entry(node.frame.name.clone()).or_insert(self.kernels.len());
        if at == self.kernels.len() {
            self.kernels.push((node.frame.name.clone(), 0.0, 0.0));
        }
        if let Some(kernel) = self.kernels.get_mut(at) {
            (kernel.1, kernel.2) = (kernel.1 + count, (kernel.2 + time).min(MOST_NS));
        }
        if let Some(scope) = scope.and_then(|s| self.scopes.get_mut(s)) {
            scope.1 += time;
        }
        let own = ["time (ns)", "count", "device_id", "device_type"];
        let given = node.metrics.iter().filter(|(key, value)| !own.contains(&&*key.to_lowercase()) && value.is_number());
        self.given.extend(given.map(|(key, _)| key.clone().into_owned()));
    }

    /// Adds a tree, without recursion.
    fn add_tree(&mut self, root: &'a RawValue, input: &Input, job: &Job<'_>) -> Result<(), ImportError> {
        let (budget, pace) = (input.memory_budget(), job.cancel.pace());
        let mut rest: Vec<(&'a RawValue, u32, Option<usize>)> = vec![(root, 0, None)];
        while let Some((text, depth, scope)) = rest.pop() {
            // Most of the text is only scanned for the ends of the children.
            if !pace.count_steps(text.get().len() / 8 + 1) {
                return Err(ImportError::Cancelled { path: input.path.clone() });
            }
            let Ok(node) = serde_json::from_str::<Node<'a>>(text.get()) else {
                self.broken += 1;
                continue;
            };
            let known = self.kernels.len();
            self.add_node(&node, scope);
            budget.charge_bytes((self.kernels.len() - known) as u64 * KERNEL + 16 * node.children.len() as u64)?;
            if depth == DEEPEST {
                self.broken += node.children.len() as u64;
                continue;
            }
            for child in node.children.iter().rev() {
                // The root's children are the outermost scopes, unless they are kernels.
                let scope = if depth == 0 {
                    let name = serde_json::from_str::<Node<'a>>(child.get()).ok().filter(|n| !n.children.is_empty()).map(|n| n.frame.name);
                    name.map(|name| {
                        self.scopes.push((name, 0.0));
                        self.scopes.len() - 1
                    })
                } else {
                    scope
                };
                rest.push((child, depth + 1, scope));
            }
        }
        Ok(())
    }

    /// Shares of the outermost scopes; `None` without scopes.
    fn describe_scopes(&self) -> Option<String> {
        let total: f64 = self.kernels.iter().map(|k| k.2).sum();
        let mut of: BTreeMap<&str, f64> = BTreeMap::new();
        for (name, time) in &self.scopes {
            *of.entry(name).or_default() += time;
        }
        let mut list: Vec<_> = of.into_iter().filter(|(_, time)| *time > 0.0 && total > 0.0).collect();
        list.sort_by(|a, b| b.1.total_cmp(&a.1));
        let more = if list.len() > SCOPES { format!(" and {} more", list.len() - SCOPES) } else { String::new() };
        let words: Vec<String> = list.iter().take(SCOPES).map(|(name, time)| format!("{name} {:.0}%", 100.0 * time / total)).collect();
        (!words.is_empty()).then(|| format!("Kernel time by outermost scope: {}{more}.", words.join(", ")))
    }
}

fn read_devices(text: &RawValue) -> Vec<Device> {
    let kinds: BTreeMap<String, BTreeMap<String, Properties>> = serde_json::from_str(text.get()).unwrap_or_default();
    let mut out = Vec::new();
    for (kind, devices) in kinds {
        let amd = kind == "HIP";
        for (id, p) in devices {
            let capability = p.arch.parse::<u32>().ok().filter(|_| !amd).map(|n| (n / 10, n % 10));
            // Two transfers per clock, on a bus of so many bits.
            let bandwidth = p.memory_clock_rate.checked_mul(2_000).and_then(|n| n.checked_mul(p.bus_width / 8));
            out.push(Device {
                id: id.parse().unwrap_or(0),
                maker: if amd { Vendor::Amd } else { Vendor::Nvidia },
                arch: Some(p.arch).filter(|a| amd && !a.is_empty()),
                compute_capability: capability,
                sm_count: Some(p.num_sms).filter(|n| *n > 0),
                clock_hz: p.clock_rate.checked_mul(1_000).filter(|n| *n > 0),
                memory_bandwidth: bandwidth.filter(|n| *n > 0),
                ..Device::default()
            });
        }
    }
    out
}

/// Returns true if a text begins like such a tree.
fn is_tree(head: &[u8]) -> bool {
    let text: Vec<u8> = head.iter().copied().filter(|b| !b.is_ascii_whitespace()).take(32).collect();
    ["[{\"children\":[", "[{\"frame\":{\"name\":"].iter().any(|start| text.starts_with(start.as_bytes()))
}

fn read_tree(input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
    let bytes: Cow<'_, [u8]> = match &input.bytes {
        Bytes::File(path) => Cow::Owned(open::read_regular(path).map_err(|e| ImportError::io(path, e))?),
        Bytes::BuiltIn(bytes) => Cow::Borrowed(*bytes),
    };
    let text = String::from_utf8_lossy(&bytes);
    let damaged = |e: serde_json::Error| ImportError::damaged(&input.path, "its tree", &e);
    let list: Vec<&RawValue> = serde_json::from_str(&text).map_err(damaged)?;
    let mut sums = Sums::default();
    let Some((last, trees)) = list.split_last() else {
        return Err(ImportError::damaged(&input.path, "its tree", "an empty list"));
    };
    for tree in trees {
        sums.add_tree(tree, input, job)?;
    }
    if sums.kernels.is_empty() {
        let what = if sums.cycles { "a profile of Proton with cycles inside kernels" } else { "a profile of Proton without kernels" };
        return Err(ImportError::refused(&input.path, what, "record with `proton.start(…, backend=\"cupti\")`, or with data=\"trace\""));
    }
    let mut profile = Profile::new(Source { tool: "Proton".to_owned(), version: None, schema: None, file: input.path.clone() });
    profile.devices = read_devices(last);
    for (name, count, time) in &sums.kernels {
        let average = Nanos((time / count) as i64);
        profile.totals.push(KernelTotal {
            kernel: KernelId(u32::try_from(profile.kernels.len()).unwrap_or(u32::MAX)),
            count: *count as u64,
            total: Nanos(*time as i64),
            min: average,
            max: average,
            median_ns: None,
            stddev_ns: None,
        });
        let function = kernel::function_of(name).into();
        profile.kernels.push(Kernel { function: Some(function), demangled: Some((&**name).into()), ..Kernel::default() });
    }
    let text = "This profile has totals of kernels only: no single launches, configurations, streams or memory copies. The average launch \
                stands for the shortest and the longest.";
    let fix = "record a timeline, with `proton.start(…, data=\"trace\")` or `warpscope trace`";
    profile.notes.push(Note::new(Severity::Warning, NoteKind::Guess, text).with_fix(fix));
    if let Some(text) = sums.describe_scopes() {
        profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
    }
    if !sums.given.is_empty() {
        let names: Vec<&str> = sums.given.iter().map(String::as_str).collect();
        let text = format!("Metrics that the program gave are not shown: {}.", names.join(", "));
        profile.notes.push(Note::new(Severity::Info, NoteKind::Guess, text));
    }
    if sums.broken > 0 {
        let text = format!("{} nodes of the tree could not be understood; the rest is shown.", sums.broken);
        profile.notes.push(Note::new(Severity::Warning, NoteKind::Damaged, text));
    }
    Ok(profile)
}

/// Importer of Proton's trees.
pub struct ProtonTree;

impl Importer for ProtonTree {
    fn name(&self) -> &'static str {
        "Proton profile (Triton)"
    }

    fn files(&self) -> &'static [&'static str] {
        &[".hatchet"]
    }

    fn suffixes(&self) -> &'static [&'static str] {
        &[".hatchet"]
    }

    fn knows(&self, input: &Input) -> bool {
        is_tree(&input.head)
    }

    fn read(&self, input: &Input, job: &Job<'_>) -> Result<Profile, ImportError> {
        read_tree(input, job)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::import::Wants;

    /// Reads a tree with one GPU.
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
        // The first releases wrote their metrics in capitals.
        let old = node("copy", r#""Count": 1, "Time (ns)": 10"#, "");
        let root = node("ROOT", r#""count": 0, "time (ns)": 0"#, &[forward, backward, old].join(","));
        let profile = read(&root, MI300X).unwrap();
        let wanted = [("gemm", 5, 9_500), ("softmax", 1, 500), ("copy", 1, 10)];
        assert_eq!(totals(&profile), wanted.map(|(n, c, t)| (n.to_owned(), c, t)));
        let device = &profile.devices[0];
        assert_eq!((device.id, device.maker, device.arch.as_deref()), (1, Vendor::Amd, Some("gfx942")));
        assert_eq!((device.sm_count, device.clock_hz, device.memory_bandwidth), (Some(304), Some(2_100_000_000), Some(5_324_800_000_000)));
        let said: Vec<_> = profile.notes.iter().map(|n| n.text.as_str()).collect();
        assert!(said.contains(&"Kernel time by outermost scope: backward 65%, forward 35%."), "{said:?}");
        assert!(said.iter().any(|t| t.ends_with("not shown: flops16.")), "{said:?}");
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
