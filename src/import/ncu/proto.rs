//! The messages of an Nsight Compute report that are read; numbers of fields as in NVIDIA's `.proto` files, which ship with ncu. Fields that
//! are not named here (sections, rules, sources, instances) are skipped over.

use prost::Message;

/// Header of a block: how many messages of each kind follow it, and how long they are together.
#[derive(Clone, PartialEq, Message)]
pub struct BlockHeader {
    #[prost(uint32, optional, tag = "1")]
    pub sources: Option<u32>,
    #[prost(uint32, optional, tag = "2")]
    pub results: Option<u32>,
    #[prost(message, optional, tag = "3")]
    pub session: Option<Session>,
    #[prost(message, optional, tag = "4")]
    pub strings: Option<Strings>,
    #[prost(uint32, optional, tag = "5")]
    pub payload: Option<u32>,
    #[prost(message, optional, tag = "6")]
    pub process: Option<Process>,
    #[prost(uint32, optional, tag = "7")]
    pub ranges: Option<u32>,
    #[prost(uint32, optional, tag = "8")]
    pub command_lists: Option<u32>,
    #[prost(uint32, optional, tag = "9")]
    pub graphs: Option<u32>,
}

/// Facts of the session, of which only versions are read: the rest is private.
#[derive(Clone, PartialEq, Message)]
pub struct Session {
    #[prost(message, repeated, tag = "8")]
    pub versions: Vec<Version>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Version {
    #[prost(string, optional, tag = "1")]
    pub provider: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub version: Option<String>,
}

/// Metric names; results refer to them by number.
#[derive(Clone, PartialEq, Message)]
pub struct Strings {
    #[prost(string, repeated, tag = "1")]
    pub strings: Vec<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Process {
    #[prost(uint32, optional, tag = "1")]
    pub pid: Option<u32>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Dims {
    #[prost(uint64, optional, tag = "1")]
    pub x: Option<u64>,
    #[prost(uint64, optional, tag = "2")]
    pub y: Option<u64>,
    #[prost(uint64, optional, tag = "3")]
    pub z: Option<u64>,
}

impl Dims {
    /// The three sizes; a missing one is zero.
    pub fn get(&self) -> [u32; 3] {
        [self.x, self.y, self.z].map(|d| u32::try_from(d.unwrap_or_default()).unwrap_or(u32::MAX))
    }
}

/// A profiled launch.
#[derive(Clone, PartialEq, Message)]
pub struct KernelResult {
    #[prost(string, optional, tag = "5")]
    pub mangled: Option<String>,
    #[prost(string, optional, tag = "6")]
    pub function: Option<String>,
    #[prost(string, optional, tag = "7")]
    pub demangled: Option<String>,
    #[prost(message, optional, tag = "10")]
    pub grid: Option<Dims>,
    #[prost(message, optional, tag = "11")]
    pub block: Option<Dims>,
    #[prost(message, repeated, tag = "13")]
    pub metrics: Vec<MetricResult>,
    #[prost(uint64, optional, tag = "22")]
    pub context: Option<u64>,
    #[prost(uint64, optional, tag = "23")]
    pub stream: Option<u64>,
}

/// A profiled range, command list or graph.
#[derive(Clone, PartialEq, Message)]
pub struct OtherResult {
    #[prost(message, repeated, tag = "4")]
    pub metrics: Vec<MetricResult>,
    #[prost(uint64, optional, tag = "11")]
    pub context: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct MetricResult {
    #[prost(uint32, optional, tag = "1")]
    pub name: Option<u32>,
    #[prost(message, optional, tag = "2")]
    pub value: Option<MetricValue>,
}

/// One of these is set.
#[derive(Clone, PartialEq, Message)]
pub struct MetricValue {
    #[prost(string, optional, tag = "1")]
    pub text: Option<String>,
    #[prost(float, optional, tag = "2")]
    pub float: Option<f32>,
    #[prost(double, optional, tag = "3")]
    pub double: Option<f64>,
    #[prost(uint32, optional, tag = "4")]
    pub small: Option<u32>,
    #[prost(uint64, optional, tag = "5")]
    pub large: Option<u64>,
}
