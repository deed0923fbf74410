//! Collective operations between ranks.

use std::sync::Arc;

/// One rank's part of a collective, as its framework or NCCL says.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Collective {
    /// `all_reduce`, `all_gather`, `send`, as the report has it.
    pub kind: Arc<str>,
    /// Elements that this rank gives.
    pub elements_in: Option<u64>,
    /// Elements that this rank gets.
    pub elements_out: Option<u64>,
    /// Type of an element, as the report has it: `BFloat16`.
    pub dtype: Arc<str>,
    /// Bytes of the message, where the report says them.
    pub bytes: Option<u64>,
    /// Of a send or a receive the other one's rank in the group.
    pub peer: Option<u32>,
    /// This rank's own number in the group, where the report says it.
    pub member: Option<u32>,
    /// Name of the process group or communicator.
    pub group: Arc<str>,
    pub group_size: Option<u32>,
    /// Its ranks, as the report has them.
    pub ranks: Arc<str>,
    /// Number in its group; collectives of one number on all ranks belong together.
    pub sequence: Option<u64>,
    /// ns, on the device where the report says so.
    pub start: i64,
    /// ns.
    pub duration: i64,
    /// The launch that did it.
    pub launch: Option<u32>,
}

/// What a call of NCCL asks for, as the payload of its NVTX range says. Communicators are told apart by a hash that is the same on all their ranks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NcclCall {
    /// A rank joins a communicator.
    Init { communicator: u64, ranks: u32, rank: u32 },
    /// A collective, or what one rank sends another. Bytes are those that this rank gives, or of `ncclRecv` gets.
    Message { communicator: Option<u64>, bytes: u64, peer: Option<u32> },
}

impl NcclCall {
    /// Reads the payload of a range of NCCL's domain, by the name of the function.
    ///
    /// The structures of NCCL's `nvtx_payload_schemas.h`: `{u64 communicator, size_t bytes, int operation | root | peer}`, with 4 bytes less where a
    /// function has none of the last; before NCCL 2.26 the communicator was missing. `ncclCommInitRank`: `{u64 communicator, int ranks, int rank, …}`.
    #[must_use]
    pub fn read(function: &str, payload: &[u8]) -> Option<Self> {
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

/// Bytes of an element, by the name that PyTorch gives its type.
#[must_use]
pub fn element(dtype: &str) -> Option<u64> {
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
