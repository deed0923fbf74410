//! Messages for sections, rules and NVTX state in an Nsight Compute report, with field numbers from NVIDIA's `.proto`
//! files.

use prost::Message;

#[derive(Clone, PartialEq, Message)]
pub struct Section {
    #[prost(string, optional, tag = "1")]
    pub id: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(uint32, optional, tag = "3")]
    pub order: Option<u32>,
    #[prost(message, optional, tag = "4")]
    pub header: Option<Header>,
    #[prost(message, repeated, tag = "5")]
    pub bodies: Vec<Body>,
    #[prost(string, optional, tag = "7")]
    pub description: Option<String>,
    #[prost(string, optional, tag = "9")]
    pub extends: Option<String>,
    #[prost(message, optional, tag = "11")]
    pub filter: Option<Filter>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Header {
    #[prost(message, repeated, tag = "2")]
    pub metrics: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Body {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<BodyItem>,
}

/// A metric in a section.
#[derive(Clone, PartialEq, Message)]
pub struct Entry {
    #[prost(string, optional, tag = "1")]
    pub metric: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub label: Option<String>,
    #[prost(string, optional, tag = "5")]
    pub unit: Option<String>,
    #[prost(message, optional, tag = "6")]
    pub filter: Option<Filter>,
    #[prost(message, repeated, tag = "7")]
    pub options: Vec<EntryOption>,
}

/// An alternative metric for other chips.
#[derive(Clone, PartialEq, Message)]
pub struct EntryOption {
    #[prost(string, optional, tag = "1")]
    pub metric: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub label: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub filter: Option<Filter>,
}

/// The chips that an item applies to, by compute capability times ten.
#[derive(Clone, PartialEq, Message)]
pub struct Filter {
    #[prost(uint32, optional, tag = "1")]
    pub least: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub most: Option<u32>,
    #[prost(message, repeated, tag = "3")]
    pub items: Vec<FilterItem>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FilterItem {
    #[prost(uint32, optional, tag = "1")]
    pub least: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub most: Option<u32>,
}

/// Exactly one field is set.
#[derive(Clone, PartialEq, Message)]
pub struct BodyItem {
    #[prost(message, optional, tag = "1")]
    pub table: Option<Table>,
    #[prost(message, optional, tag = "2")]
    pub bars: Option<Table>,
    #[prost(message, optional, tag = "3")]
    pub histogram: Option<Histogram>,
    #[prost(message, optional, tag = "4")]
    pub lines: Option<LineChart>,
    #[prost(message, optional, tag = "5")]
    pub container: Option<Container>,
    #[prost(message, optional, tag = "6")]
    pub roofline: Option<Roofline>,
    #[prost(message, optional, tag = "7")]
    pub source: Option<SourceTable>,
    #[prost(message, optional, tag = "8")]
    pub suffixes: Option<SuffixTable>,
    #[prost(message, optional, tag = "101")]
    pub shared: Option<Empty>,
    #[prost(message, optional, tag = "102")]
    pub l1_old: Option<Empty>,
    #[prost(message, optional, tag = "103")]
    pub l2_old: Option<Empty>,
    #[prost(message, optional, tag = "104")]
    pub dram: Option<Empty>,
    #[prost(message, optional, tag = "105")]
    pub chart: Option<Empty>,
    #[prost(message, optional, tag = "106")]
    pub l1: Option<Empty>,
    #[prost(message, optional, tag = "107")]
    pub l2: Option<Empty>,
    #[prost(message, optional, tag = "113")]
    pub timeline: Option<Timeline>,
    #[prost(message, optional, tag = "200")]
    pub filter: Option<Filter>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Empty {}

#[derive(Clone, PartialEq, Message)]
pub struct Container {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<BodyItem>,
}

/// A table; bar charts use the same fields.
#[derive(Clone, PartialEq, Message)]
pub struct Table {
    #[prost(string, optional, tag = "1")]
    pub label: Option<String>,
    #[prost(message, repeated, tag = "5")]
    pub metrics: Vec<Entry>,
    #[prost(uint32, optional, tag = "6")]
    pub sort: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Histogram {
    #[prost(string, optional, tag = "1")]
    pub label: Option<String>,
    #[prost(message, optional, tag = "4")]
    pub metric: Option<Entry>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Axis {
    #[prost(string, optional, tag = "1")]
    pub label: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct LineChart {
    #[prost(string, optional, tag = "1")]
    pub label: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub axis: Option<Axis>,
    #[prost(message, repeated, tag = "4")]
    pub metrics: Vec<Entry>,
    #[prost(message, optional, tag = "5")]
    pub here: Option<Highlight>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Highlight {
    #[prost(message, repeated, tag = "1")]
    pub metrics: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Roofline {
    #[prost(string, optional, tag = "1")]
    pub label: Option<String>,
    #[prost(message, repeated, tag = "4")]
    pub roofs: Vec<Roof>,
    #[prost(message, repeated, tag = "5")]
    pub achieved: Vec<Roof>,
}

/// A roof of a roofline chart: work, traffic and options.
#[derive(Clone, PartialEq, Message)]
pub struct Roof {
    #[prost(message, optional, tag = "1")]
    pub work: Option<RoofValue>,
    #[prost(message, optional, tag = "2")]
    pub traffic: Option<RoofValue>,
    #[prost(message, optional, tag = "3")]
    pub options: Option<Axis>,
}

/// Exactly one field is set.
#[derive(Clone, PartialEq, Message)]
pub struct RoofValue {
    #[prost(double, optional, tag = "1")]
    pub constant: Option<f64>,
    #[prost(message, optional, tag = "2")]
    pub metric: Option<Entry>,
    #[prost(message, optional, tag = "3")]
    pub per_cycle: Option<PerCycle>,
}

#[derive(Clone, PartialEq, Message)]
pub struct PerCycle {
    #[prost(message, repeated, tag = "1")]
    pub metrics: Vec<Entry>,
    #[prost(message, optional, tag = "2")]
    pub clock: Option<Entry>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SourceTable {
    #[prost(string, optional, tag = "1")]
    pub label: Option<String>,
    #[prost(message, repeated, tag = "3")]
    pub metrics: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SuffixTable {
    #[prost(string, optional, tag = "1")]
    pub label: Option<String>,
    #[prost(message, optional, tag = "2")]
    pub suffixes: Option<Suffixes>,
    #[prost(message, optional, tag = "3")]
    pub bases: Option<BaseNames>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Suffixes {
    #[prost(message, repeated, tag = "1")]
    pub suffixes: Vec<Suffix>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Suffix {
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub label: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct BaseNames {
    #[prost(message, repeated, tag = "1")]
    pub names: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Timeline {
    #[prost(message, repeated, tag = "2")]
    pub groups: Vec<TimelineGroup>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TimelineGroup {
    #[prost(message, repeated, tag = "4")]
    pub rows: Vec<TimelineRow>,
}

#[derive(Clone, PartialEq, Message)]
pub struct TimelineRow {
    #[prost(string, optional, tag = "1")]
    pub label: Option<String>,
    #[prost(message, repeated, tag = "4")]
    pub metrics: Vec<Entry>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RuleResult {
    #[prost(string, optional, tag = "1")]
    pub id: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
    #[prost(message, optional, tag = "3")]
    pub body: Option<RuleBody>,
    #[prost(string, optional, tag = "4")]
    pub section: Option<String>,
    #[prost(message, repeated, tag = "5")]
    pub markers: Vec<Marker>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RuleBody {
    #[prost(message, repeated, tag = "1")]
    pub items: Vec<RuleItem>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RuleItem {
    #[prost(message, optional, tag = "1")]
    pub message: Option<RuleMessage>,
    #[prost(message, repeated, tag = "8")]
    pub focus: Vec<Focus>,
    #[prost(message, optional, tag = "10")]
    pub speedup: Option<Speedup>,
}

#[derive(Clone, PartialEq, Message)]
pub struct RuleMessage {
    #[prost(string, optional, tag = "1")]
    pub text: Option<String>,
    #[prost(uint32, optional, tag = "2")]
    pub kind: Option<u32>,
    #[prost(string, optional, tag = "4")]
    pub name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Focus {
    #[prost(string, optional, tag = "2")]
    pub metric: Option<String>,
    #[prost(double, optional, tag = "3")]
    pub value: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Speedup {
    #[prost(uint32, optional, tag = "1")]
    pub kind: Option<u32>,
    #[prost(double, optional, tag = "2")]
    pub percent: Option<f64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Marker {
    #[prost(uint32, optional, tag = "2")]
    pub line: Option<u32>,
    #[prost(uint64, optional, tag = "3")]
    pub address: Option<u64>,
    #[prost(string, optional, tag = "4")]
    pub text: Option<String>,
    #[prost(string, optional, tag = "6")]
    pub file: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct NvtxState {
    #[prost(message, repeated, tag = "1")]
    pub domains: Vec<NvtxDomain>,
    #[prost(message, repeated, tag = "2")]
    pub threads: Vec<NvtxThread>,
    #[prost(message, repeated, tag = "3")]
    pub start_end: Vec<NvtxStartEnd>,
}

#[derive(Clone, PartialEq, Message)]
pub struct NvtxDomain {
    #[prost(uint64, optional, tag = "1")]
    pub id: Option<u64>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct NvtxThread {
    #[prost(uint32, optional, tag = "1")]
    pub thread: Option<u32>,
    #[prost(message, repeated, tag = "2")]
    pub domains: Vec<NvtxStack>,
}

#[derive(Clone, PartialEq, Message)]
pub struct NvtxStack {
    #[prost(uint64, optional, tag = "1")]
    pub domain: Option<u64>,
    #[prost(message, repeated, tag = "3")]
    pub ranges: Vec<NvtxRange>,
}

#[derive(Clone, PartialEq, Message)]
pub struct NvtxRange {
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct NvtxStartEnd {
    #[prost(uint64, optional, tag = "1")]
    pub domain: Option<u64>,
    #[prost(message, repeated, tag = "3")]
    pub ranges: Vec<NvtxStarted>,
}

#[derive(Clone, PartialEq, Message)]
pub struct NvtxStarted {
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}
