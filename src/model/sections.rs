//! Presentation of a result by the metrics tool: sections with tables and charts, the tool's rules, and values per
//! instance.
//!
//! This data is stored in the report alongside the values and read on demand.

use super::Value;
use std::collections::HashMap;
use std::sync::Arc;

/// A labeled metric in a section.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Entry {
    /// Name of the metric; or `breakdown:…`, `group:…` or `regex:…`, whose value lists the member metrics.
    pub metric: Arc<str>,
    /// Label for display; if empty, the metric name is shown.
    pub label: Arc<str>,
    /// Unit requested by the section; if empty, the metric's own unit is used.
    pub unit: Arc<str>,
}

/// Work or memory traffic in a roofline chart.
#[derive(Clone, Debug, PartialEq)]
pub enum RoofValue {
    Constant(f64),
    /// A metric per second.
    Metric(Entry),
    /// Sum of metrics per cycle, times cycles per second.
    PerCycle(Vec<Entry>, Option<Entry>),
}

/// An element of a section's body.
#[derive(Clone, Debug, PartialEq)]
pub enum Item {
    Table {
        label: Arc<str>,
        /// Metrics, in order.
        entries: Vec<Entry>,
    },
    /// Metrics shown as bars.
    Bars {
        label: Arc<str>,
        entries: Vec<Entry>,
        /// True if bars are sorted with the largest value first.
        largest_first: bool,
    },
    /// Distribution of a metric over its instances.
    Histogram { label: Arc<str>, entry: Entry },
    /// Line chart of metrics as a function of a variable, as in the occupancy calculator.
    Curves {
        label: Arc<str>,
        /// Label of the horizontal axis.
        axis: Arc<str>,
        /// Curves; each instance of a metric is an (x, y) point.
        entries: Vec<Entry>,
        /// Metric that marks the position of this launch on the axis.
        here: Option<Entry>,
    },
    /// Rooflines with achieved values.
    Roofline {
        label: Arc<str>,
        /// Label, peak work and peak traffic of each roofline.
        roofs: Vec<(Arc<str>, RoofValue, RoofValue)>,
        /// Label, achieved work and achieved traffic of each point.
        achieved: Vec<(Arc<str>, RoofValue, RoofValue)>,
    },
    /// Source lines with the highest values of a metric.
    Lines { label: Arc<str>, entries: Vec<Entry> },
    /// Values over time during the kernel.
    Timeline {
        /// Row labels, each with the metrics shown in that row.
        rows: Vec<(Arc<str>, Vec<Entry>)>,
    },
    /// Base metrics that exist with many suffixes, given as (suffix, label) pairs.
    Suffixes { label: Arc<str>, suffixes: Vec<(Arc<str>, Arc<str>)>, bases: Vec<Entry> },
    /// Chart of the memory system.
    MemoryChart,
    /// A table of the memory system. The report does not list its metrics.
    Memory(MemoryTable),
}

/// Tables of the memory system.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum MemoryTable {
    Shared,
    /// L1/TEX cache.
    L1,
    L2,
    Dram,
}

/// A section on the report page.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Section {
    /// Identifier, as passed to `--section`.
    pub id: Arc<str>,
    pub name: Arc<str>,
    pub description: Arc<str>,
    /// Sort key among sections, ascending.
    pub order: u32,
    pub extends: Option<Arc<str>>,
    /// Metrics in the section's header.
    pub header: Vec<Entry>,
    pub items: Vec<Item>,
}

/// A piece of a rule's message.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Piece {
    Text(String),
    /// Link to a section of this result.
    Section {
        id: String,
        label: String,
    },
    /// Link to a page in the documentation.
    Link {
        label: String,
        url: String,
    },
}

/// Category of a message.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Verdict {
    None,
    /// Informational, or no problem found.
    Info,
    /// Opportunity for optimization.
    Optimization,
    Warning,
    Error,
}

/// Scope of an estimated speedup.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Scope {
    /// Only the part of the kernel that the rule examined.
    Local,
    Global,
}

/// A message of a rule.
#[derive(Clone, Debug, PartialEq)]
pub struct Message {
    pub verdict: Verdict,
    pub title: String,
    pub text: Vec<Piece>,
    /// Estimated speedup in percent, by the tool's own formula: an upper bound.
    pub speedup: Option<(Scope, f64)>,
    /// Metrics that triggered the message, with their values.
    pub because: Vec<(String, f64)>,
}

/// Messages of a rule about a result.
#[derive(Clone, Debug, PartialEq)]
pub struct RuleResult {
    pub id: String,
    pub name: String,
    /// Section that the rule belongs to.
    pub section: String,
    pub messages: Vec<Message>,
    /// Locations in the code that the rule refers to.
    pub markers: Vec<Marker>,
}

/// A location in the code that a rule refers to.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Marker {
    pub place: MarkerPlace,
    /// Message shown at this location.
    pub text: String,
}

/// Location of a marker: a source line, or the address of an instruction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MarkerPlace {
    Address(u64),
    Line(Option<String>, u32),
}

/// Key that distinguishes instances of a metric.
#[derive(Clone, Debug, PartialEq)]
pub enum InstanceKey {
    /// Instances are identified by position only.
    None,
    /// An address, time or other number.
    Number(u64),
    Float(f64),
    Text(Arc<str>),
}

/// Instances of a metric, in report order.
pub type Instances = Vec<(InstanceKey, Value)>;

/// Data about a result beyond its metric values.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Details {
    /// Sections, in report order.
    pub sections: Vec<Section>,
    pub rules: Vec<RuleResult>,
    /// Values per instance, by index into [`Metrics::names`](super::Metrics::names).
    pub instances: HashMap<u32, Instances>,
    /// NVTX ranges around the launch, outermost first, as `domain:range`.
    pub nvtx: Vec<String>,
    /// References to the kernel's binary and sources.
    pub sources: Vec<u64>,
}
