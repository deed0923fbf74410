//! Collective operations between ranks.

use std::sync::Arc;

/// One rank's part of a collective, as reported by its framework or NCCL.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collective {
    /// Operation as spelled in the report, such as `all_reduce`, `all_gather` or `send`.
    pub kind: Arc<str>,
    /// Number of elements that this rank sends.
    pub elements_in: Option<u64>,
    /// Number of elements that this rank receives.
    pub elements_out: Option<u64>,
    /// Element type as spelled in the report, such as `BFloat16`.
    pub dtype: Arc<str>,
    /// Size of the message in bytes, if in the report.
    pub bytes: Option<u64>,
    /// Rank of the peer within the group, for a send or receive.
    pub peer: Option<u32>,
    /// Rank of this process within the group, if in the report.
    pub member: Option<u32>,
    /// Name of the process group or communicator.
    pub group: Arc<str>,
    pub group_size: Option<u32>,
    /// Ranks of the group as text, in the report's own format.
    pub ranks: Arc<str>,
    /// Sequence number within the group; identifies the same collective on all ranks.
    pub sequence: Option<u64>,
    /// Start, ns: on the device if the report has that, otherwise on the host.
    pub start: i64,
    /// Duration in nanoseconds.
    pub duration: i64,
    /// Index of the launch that executed the collective.
    pub launch: Option<u32>,
}

/// Arguments of an NCCL call, from the payload of its NVTX range. A communicator is identified by a hash that is the
/// same on all of its ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcclCall {
    /// A rank joins a communicator.
    Init { communicator: u64, ranks: u32, rank: u32 },
    /// A collective or point-to-point transfer. `bytes` is the number of bytes this rank sends, or receives for
    /// `ncclRecv`.
    Message { communicator: Option<u64>, bytes: u64, peer: Option<u32> },
}

impl NcclCall {
    /// Parses the payload of a range in NCCL's domain; `function` determines the format.
    ///
    /// Based on the structures in NCCL's `nvtx_payload_schemas.h`:
    /// `{u64 communicator, size_t bytes, int operation | root | peer}`; functions without an operation, root or peer
    /// omit the last 4 bytes. NCCL before 2.26 omits the communicator.
    /// `ncclCommInitRank`: `{u64 communicator, int ranks, int rank, …}`.
    pub fn from_payload(function: &str, payload: &[u8]) -> Option<Self> {
        let long = |at: usize| Some(u64::from_le_bytes(payload.get(at..at + 8)?.try_into().ok()?));
        let short = |at: usize| Some(u32::from_le_bytes(payload.get(at..at + 4)?.try_into().ok()?));
        let name = function.strip_prefix("nccl")?;
        let third = match name.trim_end_matches("Config") {
            "CommInitRank" | "CommInitRankScalable" => {
                return Some(Self::Init { communicator: long(0)?, ranks: short(8)?, rank: short(12)? });
            }
            "AllGather" | "AllToAll" | "AlltoAll" => false,
            "AllReduce" | "ReduceScatter" | "Reduce" | "Broadcast" | "Gather" | "Scatter" | "Send" | "Recv" => true,
            _ => return None,
        };
        let with_communicator = payload.len() >= if third { 24 } else { 16 };
        let at = if with_communicator { 8 } else { 0 };
        let communicator = if with_communicator { long(0) } else { None };
        let peer = if matches!(name, "Send" | "Recv") { short(at + 8) } else { None };
        Some(Self::Message { communicator, bytes: long(at)?, peer })
    }
}

/// Element size in bytes, by PyTorch's name of the type.
pub fn element_bytes(dtype: &str) -> Option<u64> {
    let dtype = dtype.rsplit("::").next().unwrap_or(dtype);
    match dtype {
        "Byte" | "Char" | "Bool" | "Float8_e4m3fn" | "Float8_e5m2" | "Float8_e4m3fnuz" | "Float8_e5m2fnuz" | "UInt8" | "Int8" => Some(1),
        "Half" | "BFloat16" | "Short" | "Int16" | "UInt16" => Some(2),
        "Float" | "Int" | "UInt32" | "ComplexHalf" => Some(4),
        "Double" | "Long" | "UInt64" | "ComplexFloat" => Some(8),
        "ComplexDouble" => Some(16),
        _ => None,
    }
}
