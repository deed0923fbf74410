//! The tree in a Proton profile: scopes or Python frames, with kernels as leaves.

use crate::import::ImportError;
use crate::import::budget::Budget;
use crate::model::{Device, Vendor};
use rustc_hash::FxHashMap;
use serde::Deserialize;
use std::borrow::Cow;
use std::collections::{BTreeMap, BTreeSet};

/// Memory for a node, bytes.
const NODE: u64 = 160;

/// A scope, Python frame or kernel.
#[derive(Debug, Default)]
pub struct Node<'a> {
    /// Index of the parent, which precedes its children; `None` for the root.
    pub parent: Option<u32>,
    pub name: Cow<'a, str>,
    /// Total duration, ns.
    pub time: Option<f64>,
    pub count: Option<f64>,
    /// True if the profile counts cycles within kernels.
    pub has_cycles: bool,
    /// Metrics supplied by the program.
    pub given: Vec<(Cow<'a, str>, f64)>,
}

impl<'a> Node<'a> {
    /// Sets a metric. The first releases capitalized their own names.
    pub fn set_metric(&mut self, name: Cow<'a, str>, value: Option<f64>) {
        let value = value.filter(|v| v.is_finite());
        match &*name {
            "time (ns)" | "Time (ns)" => self.time = value.filter(|v| *v >= 0.0),
            "count" | "Count" => self.count = value.filter(|v| *v >= 0.0),
            "cycles" => self.has_cycles = true,
            "device_id" | "device_type" | "DeviceId" | "DeviceType" => {}
            _ => self.given.extend(value.map(|v| (name, v))),
        }
    }
}

/// All nodes, with parents before their children.
#[derive(Debug, Default)]
pub struct Tree<'a> {
    pub nodes: Vec<Node<'a>>,
    pub devices: Devices,
    /// Number of nodes that were not understood.
    pub broken: u64,
}

/// Properties of the GPUs, by kind and id.
pub type Devices = BTreeMap<String, BTreeMap<String, Properties>>;

/// Properties of a GPU.
#[derive(Debug, Default, Deserialize)]
#[serde(default)]
pub struct Properties {
    pub arch: String,
    /// In bits.
    pub bus_width: u64,
    /// In kHz.
    pub clock_rate: u64,
    pub memory_clock_rate: u64,
    pub num_sms: u32,
}

/// Count and time of a kernel.
#[derive(Debug, PartialEq)]
pub struct KernelSum<'a> {
    pub name: &'a str,
    pub count: f64,
    /// Time in nanoseconds.
    pub time: f64,
}

/// Sums of the program's metrics for a scope or kernel, over all of its nodes.
#[derive(Debug, PartialEq)]
pub struct Work<'a> {
    pub name: &'a str,
    /// Kernel time within this scope or kernel, ns.
    pub time: f64,
    /// Sums of the metrics, by name.
    pub sums: BTreeMap<&'a str, f64>,
}

impl Tree<'_> {
    /// Adds a node and returns its index.
    pub fn add_node(&mut self, parent: Option<u32>, budget: &Budget) -> Result<u32, ImportError> {
        budget.charge_bytes(NODE)?;
        let index = u32::try_from(self.nodes.len()).unwrap_or(u32::MAX);
        self.nodes.push(Node { parent, ..Node::default() });
        Ok(index)
    }

    /// Sums for each kernel, in tree order.
    pub fn sum_kernels(&self) -> Vec<KernelSum<'_>> {
        let mut numbers: FxHashMap<&str, usize> = FxHashMap::default();
        let mut out: Vec<KernelSum<'_>> = Vec::new();
        for node in &self.nodes {
            let (Some(time), Some(count)) = (node.time, node.count.filter(|c| *c >= 1.0)) else { continue };
            let at = *numbers.entry(&node.name).or_insert(out.len());
            if at == out.len() {
                out.push(KernelSum { name: &node.name, count: 0.0, time: 0.0 });
            }
            out[at].count += count;
            out[at].time += time;
        }
        out
    }

    /// Kernel time in each node and its descendants, ns.
    fn inclusive_times(&self) -> Vec<f64> {
        let mut out: Vec<f64> = self.nodes.iter().map(|n| n.time.filter(|_| n.count.is_some_and(|c| c >= 1.0)).unwrap_or(0.0)).collect();
        for at in (0..self.nodes.len()).rev() {
            if let Some(parent) = self.nodes[at].parent {
                out[parent as usize] += out[at];
            }
        }
        out
    }

    /// Kernel time of each outermost scope that contains nodes, longest first.
    pub fn outermost_scopes(&self) -> Vec<(&str, f64)> {
        let times = self.inclusive_times();
        let parents: BTreeSet<u32> = self.nodes.iter().filter_map(|n| n.parent).collect();
        let is_root = |at: u32| self.nodes.get(at as usize).is_some_and(|n| n.parent.is_none());
        let mut of: BTreeMap<&str, f64> = BTreeMap::new();
        for (at, node) in (0..).zip(&self.nodes) {
            if node.parent.is_some_and(is_root) && parents.contains(&at) {
                *of.entry(&node.name).or_default() += times[at as usize];
            }
        }
        let mut out: Vec<_> = of.into_iter().filter(|(_, time)| *time > 0.0).collect();
        out.sort_by(|a, b| b.1.total_cmp(&a.1));
        out
    }

    /// Sums of the program's metrics for each scope or kernel, longest first.
    pub fn given_work(&self) -> Vec<Work<'_>> {
        let times = self.inclusive_times();
        let mut of: BTreeMap<&str, Work<'_>> = BTreeMap::new();
        for (node, time) in self.nodes.iter().zip(times).filter(|(n, time)| !n.given.is_empty() && *time > 0.0) {
            let work = of.entry(&node.name).or_insert_with(|| Work { name: &node.name, time: 0.0, sums: BTreeMap::new() });
            work.time += time;
            for (name, value) in &node.given {
                *work.sums.entry(name).or_default() += value;
            }
        }
        let mut out: Vec<_> = of.into_values().collect();
        out.sort_by(|a, b| b.time.total_cmp(&a.time));
        out
    }
}

/// Highest clock that HIP reports for HBM3 and HBM3E, kHz; other tools report the data clock, which is twice as high.
const HBM3_CLOCK_KHZ: u64 = 2_100_000;

pub fn build_devices(kinds: Devices) -> Vec<Device> {
    let mut out = Vec::new();
    for (kind, devices) in kinds {
        let amd = kind == "HIP";
        for (id, p) in devices {
            let capability = p.arch.parse::<u32>().ok().filter(|_| !amd).map(|n| (n / 10, n % 10));
            // There are two transfers per clock cycle, on a bus of this many bits; HBM3 has four per cycle of the clock
            // that HIP reports: 1.3 GHz for the 5.2 GT/s of an MI300X (AMD's data sheet: 5.3 TB/s).
            let hbm3 = amd && ["gfx94", "gfx95"].iter().any(|arch| p.arch.starts_with(arch)) && p.memory_clock_rate <= HBM3_CLOCK_KHZ;
            let transfers = if hbm3 { 4_000 } else { 2_000 };
            let bandwidth = p.memory_clock_rate.checked_mul(transfers).and_then(|n| n.checked_mul(p.bus_width / 8));
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

#[cfg(test)]
mod tests {
    use super::*;

    fn node(parent: Option<u32>, name: &'static str, metrics: &[(&'static str, f64)]) -> Node<'static> {
        let mut node = Node { parent, name: name.into(), ..Node::default() };
        for &(name, value) in metrics {
            node.set_metric(name.into(), Some(value));
        }
        node
    }

    #[test]
    fn work_is_that_of_a_scope_and_all_below_it() {
        let kernel = [("count", 2.0), ("time (ns)", 30.0), ("device_id", 0.0)];
        let nodes = vec![
            node(None, "ROOT", &[("count", 0.0), ("time (ns)", 0.0)]),
            node(Some(0), "step", &[]),
            node(Some(1), "matmul", &[("flops16", 500.0), ("bytes", 8.0)]),
            node(Some(2), "k", &kernel),
            node(Some(0), "matmul", &[("flops16", 100.0)]),
            node(Some(4), "k", &kernel),
            node(Some(0), "never run", &[("flops16", 100.0)]),
            node(Some(0), "infinite", &[("flops16", f64::INFINITY)]),
        ];
        let tree = Tree { nodes, ..Tree::default() };
        assert_eq!(tree.sum_kernels(), [KernelSum { name: "k", count: 4.0, time: 60.0 }]);
        assert_eq!(tree.outermost_scopes(), [("matmul", 30.0), ("step", 30.0)]);
        let sums = BTreeMap::from([("bytes", 8.0), ("flops16", 600.0)]);
        assert_eq!(tree.given_work(), [Work { name: "matmul", time: 60.0, sums }]);
    }
}
