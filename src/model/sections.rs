//! What a metrics tool shows of a result: sections with their tables and charts, its own rules, and values per instance.
//!
//! All of it lies in the report beside the values and is read when somebody looks at it.

use super::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// A metric in a section, under a name for people.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// The metric; may also be `breakdown:…`, `group:…` or `regex:…`, whose value lists the members.
    pub metric: Arc<str>,
    /// What people call it; empty for the metric's own name.
    pub label: Arc<str>,
    /// Unit that the section asks for instead of the metric's own; empty for that.
    pub unit: Arc<str>,
}

/// A work or traffic value of a roofline.
#[derive(Clone, Debug, PartialEq)]
pub enum RoofValue {
    Constant(f64),
    /// A metric, per second.
    Metric(Entry),
    /// Sum of metrics per cycle, times cycles per second.
    PerCycle(Vec<Entry>, Option<Entry>),
}

/// A piece of a section's body.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Table {
        label: Arc<str>,
        /// Metrics, in order.
        entries: Vec<Entry>,
    },
    /// Metrics as bars; `largest_first` when they are ranked.
    Bars {
        label: Arc<str>,
        entries: Vec<Entry>,
        /// Whether the largest comes first.
        largest_first: bool,
    },
    /// Values of one metric's instances.
    Histogram { label: Arc<str>, entry: Entry },
    /// Metrics over something else: the curves of the occupancy calculator.
    Curves {
        label: Arc<str>,
        /// What goes to the right.
        axis: Arc<str>,
        /// The curves: each metric's instances are (x, y).
        entries: Vec<Entry>,
        /// Metric that says where this launch stands on the axis.
        here: Option<Entry>,
    },
    /// Rooflines with achieved values.
    Roofline {
        label: Arc<str>,
        /// Name, peak work, peak traffic.
        roofs: Vec<(Arc<str>, RoofValue, RoofValue)>,
        /// Name, achieved work, achieved traffic.
        achieved: Vec<(Arc<str>, RoofValue, RoofValue)>,
    },
    /// Lines of the source with the most of a metric.
    Lines { label: Arc<str>, entries: Vec<Entry> },
    /// Values over time within the kernel.
    Timeline {
        /// Rows, each with its metrics.
        rows: Vec<(Arc<str>, Vec<Entry>)>,
    },
    /// One metric with many suffixes: (suffix, label) and base metrics.
    Suffixes {
        label: Arc<str>,
        /// Suffix and what people call it.
        suffixes: Vec<(Arc<str>, Arc<str>)>,
        bases: Vec<Entry>,
    },
    /// The chart of the memory system.
    MemoryChart,
    /// A table of the memory system whose metrics the layout does not list.
    Memory(MemoryTable),
}

/// Tables of the memory system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryTable {
    Shared,
    /// L1/TEX cache.
    L1,
    /// L2 cache.
    L2,
    Dram,
}

/// A section: what belongs together on the screen.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Identifier, as `--section` takes it.
    pub id: Arc<str>,
    pub name: Arc<str>,
    /// What it is about.
    pub description: Arc<str>,
    /// Place among the sections; the smallest is first.
    pub order: u32,
    /// The section that it belongs under.
    pub extends: Option<Arc<str>>,
    /// Metrics at its top.
    pub header: Vec<Entry>,
    pub items: Vec<Item>,
}

/// A piece of a rule's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// Leads to a section of this result.
    Section {
        id: String,
        label: String,
    },
    /// Leads to a page of the documentation.
    Link {
        label: String,
        url: String,
    },
}

/// How a rule means a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    None,
    /// All is well, or for information.
    Info,
    /// Something can be made faster.
    Optimization,
    Warning,
    Error,
}

/// What an estimated speed-up is about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// The part of the kernel that the rule looks at.
    Local,
    Global,
}

/// A message of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    /// How it is meant.
    pub verdict: Verdict,
    pub title: String,
    pub text: Vec<Piece>,
    /// Estimated speed-up in percent: an upper bound, by the tool's own formula.
    pub speedup: Option<(Scope, f64)>,
    /// Metrics that led to it, with their values.
    pub because: Vec<(String, f64)>,
}

/// What a rule of the tool says about a result.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleResult {
    /// Identifier of the rule.
    pub id: String,
    pub name: String,
    /// Section that it belongs to.
    pub section: String,
    pub messages: Vec<Message>,
    /// Places in the code that it points at.
    pub markers: Vec<Marker>,
}

/// A place in the code that a rule points at.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    /// Line of a source file, or the address of an instruction.
    pub place: MarkerPlace,
    /// What it says there.
    pub text: String,
}

/// Where a marker points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkerPlace {
    /// Address of an instruction.
    Address(u64),
    Line(Option<String>, u32),
}

/// What the instances of a metric are told apart by.
#[derive(Clone, Debug, PartialEq)]
pub enum InstanceKey {
    /// None: they are just numbered.
    None,
    /// An address, a time, a number.
    Number(u64),
    Float(f64),
    Text(Arc<str>),
}

/// Instances of a metric, in the order of the report.
pub type Instances = Vec<(InstanceKey, Value)>;

/// What the report holds about a result beside its values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Sections in the order of the report.
    pub sections: Vec<Section>,
    pub rules: Vec<RuleResult>,
    /// Values per instance, by index into [`Metrics::names`](super::Metrics::names).
    pub instances: HashMap<u32, Instances>,
    /// NVTX ranges around the launch, outermost first, as `domain:range`.
    pub nvtx: Vec<String>,
    /// What its binary and sources are referred to by.
    pub sources: Vec<u64>,
}
