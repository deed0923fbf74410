//! Messages in an Nsight Compute report that are decoded as a whole, with field numbers from the `.proto` files
//! distributed with ncu. Fields not declared here are skipped.

pub use super::proto_sections::*;
use prost::Message;

/// Decodes text for display; invalid UTF-8 becomes replacement characters. Paths, arguments, names and sources may be
/// arbitrary bytes; if they were declared as strings, invalid UTF-8 in one of them would invalidate the whole message.
pub fn decode_lossy(bytes: Option<Vec<u8>>) -> Option<String> {
    bytes.map(|b| String::from_utf8(b).unwrap_or_else(|e| String::from_utf8_lossy(e.as_bytes()).into_owned()))
}

/// Session data without private fields: only versions, the program and ncu's own command line.
#[derive(Clone, PartialEq, Message)]
pub struct Session {
    #[prost(message, optional, tag = "9")]
    pub program: Option<Program>,
    #[prost(bytes = "vec", optional, tag = "11")]
    pub command_line: Option<Vec<u8>>,
    #[prost(message, repeated, tag = "8")]
    pub versions: Vec<Version>,
}

/// The profiled program, without its environment (which is private).
#[derive(Clone, PartialEq, Message)]
pub struct Program {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub path: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub directory: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub arguments: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Version {
    #[prost(string, optional, tag = "1")]
    pub provider: Option<String>,
    #[prost(string, optional, tag = "2")]
    pub version: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Process {
    #[prost(uint32, optional, tag = "1")]
    pub pid: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub name: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SourceReference {
    #[prost(uint64, optional, tag = "1")]
    pub reference: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Instance {
    #[prost(message, optional, tag = "1")]
    pub key: Option<MetricValue>,
    #[prost(message, optional, tag = "2")]
    pub value: Option<MetricValue>,
}

/// Exactly one field is set.
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

/// Address of a function during profiling.
#[derive(Clone, PartialEq, Message)]
pub struct Symbol {
    #[prost(string, optional, tag = "1")]
    pub name: Option<String>,
    #[prost(uint64, optional, tag = "2")]
    pub address: Option<u64>,
}

#[derive(Clone, PartialEq, Message)]
pub struct SourceFile {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub name: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub content: Option<Vec<u8>>,
}

/// All session data; read only on explicit request.
#[derive(Clone, PartialEq, Message)]
pub struct FullSession {
    #[prost(uint64, optional, tag = "2")]
    pub created: Option<u64>,
    #[prost(message, optional, tag = "3")]
    pub host: Option<System>,
    #[prost(message, optional, tag = "4")]
    pub target: Option<System>,
    #[prost(message, repeated, tag = "6")]
    pub devices: Vec<DeviceAttributes>,
    #[prost(message, repeated, tag = "8")]
    pub versions: Vec<Version>,
    #[prost(message, optional, tag = "9")]
    pub program: Option<Executable>,
    #[prost(bytes = "vec", optional, tag = "11")]
    pub command_line: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct System {
    #[prost(string, optional, tag = "1")]
    pub os: Option<String>,
    #[prost(string, optional, tag = "3")]
    pub processor: Option<String>,
    #[prost(bytes = "vec", optional, tag = "5")]
    pub computer: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct DeviceAttributes {
    #[prost(uint32, optional, tag = "1")]
    pub id: Option<u32>,
    #[prost(string, optional, tag = "2")]
    pub name: Option<String>,
}

#[derive(Clone, PartialEq, Message)]
pub struct Executable {
    #[prost(bytes = "vec", optional, tag = "1")]
    pub path: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub directory: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub arguments: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "4")]
    pub environment: Option<Vec<u8>>,
}

#[derive(Clone, PartialEq, Message)]
pub struct FullProcess {
    #[prost(uint32, optional, tag = "1")]
    pub pid: Option<u32>,
    #[prost(bytes = "vec", optional, tag = "2")]
    pub host: Option<Vec<u8>>,
    #[prost(bytes = "vec", optional, tag = "3")]
    pub name: Option<Vec<u8>>,
}
