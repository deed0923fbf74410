//! Properties of collectives: their kind, their algorithm, the bytes that they move, and the resulting bandwidth.

/// Substrings of names and the corresponding kinds. The first match wins, so longer substrings come before the shorter
/// ones that they contain.
const KINDS: [(&str, &str); 14] = [
    ("allreduce", "all_reduce"),
    ("allgather", "all_gather"),
    ("reducescatter", "reduce_scatter"),
    ("alltoall", "all_to_all"),
    ("broadcast", "broadcast"),
    ("barrier", "barrier"),
    ("sendrecv", "send_recv"),
    ("send", "send"),
    ("recv", "recv"),
    ("gather", "gather"),
    ("scatter", "scatter"),
    ("reduce", "reduce"),
    ("coalesced", "coalesced"),
    ("generic", "several in one"),
];

/// Maps a collective's name in the report to its kind, named like PyTorch's functions.
pub fn collective_kind(name: &str) -> &'static str {
    let plain: String = name.chars().filter(char::is_ascii_alphanumeric).map(|c| c.to_ascii_lowercase()).collect();
    KINDS.iter().find(|k| plain.contains(k.0)).map_or("other", |k| k.1)
}

/// Returns the kind, and the algorithm with the protocol, from the name of an NCCL or RCCL kernel:
/// `ncclDevKernel_AllReduce_Sum_bf16_RING_LL`.
pub fn of_kernel(name: &str) -> (&'static str, String) {
    let rest =
        ["ncclDevKernel_", "ncclKernel_", "ncclDevFunc_"].iter().find_map(|p| name.find(p).map(|at| &name[at + p.len()..])).unwrap_or(name);
    let words: Vec<&str> = rest.split(|c: char| !c.is_ascii_alphanumeric()).collect();
    let is = |w: &&&str| {
        matches!(**w, "RING" | "TREE" | "NVLS" | "PAT" | "COLLNET" | "LL" | "LL128" | "SIMPLE")
            || w.starts_with("COLLNET")
            || w.starts_with("NVLS")
    };
    let algorithm: Vec<&str> = words.iter().filter(is).copied().collect();
    (collective_kind(words.first().copied().unwrap_or_default()), algorithm.join("_"))
}

/// Returns true if all ranks leave the collective at nearly the same time, because each needs data from all others.
pub fn leaves_together(kind: &str) -> bool {
    matches!(kind, "all_reduce" | "all_gather" | "reduce_scatter" | "all_to_all" | "barrier")
}

/// Returns true for operations between two ranks.
pub fn point_to_point(kind: &str) -> bool {
    matches!(kind, "send" | "recv" | "send_recv")
}

/// Kind for matching, which is the same on all ranks: a send and its receive are both `send_recv`.
pub fn common_kind(name: &str) -> &'static str {
    let kind = collective_kind(name);
    if point_to_point(kind) { "send_recv" } else { kind }
}

/// Ratio of bus bandwidth to algorithm bandwidth for `n` ranks: bytes that a link carries per byte of the message
/// (nccl-tests, `PERFORMANCE.md`).
pub fn bus_factor(kind: &str, n: usize) -> Option<f64> {
    let n = n.max(1) as f64;
    match kind {
        "all_reduce" => Some(2.0 * (n - 1.0) / n),
        "all_gather" | "reduce_scatter" | "all_to_all" => Some((n - 1.0) / n),
        "broadcast" | "reduce" | "send" | "recv" | "send_recv" => Some(1.0),
        _ => None,
    }
}

/// GPU name, link bandwidth in bytes per second, and link name.
const LINKS: [(&str, f64, &str); 14] = [
    ("GB200", 900e9, "NVLink"),
    ("GB300", 900e9, "NVLink"),
    ("B200", 900e9, "NVLink"),
    ("B300", 900e9, "NVLink"),
    ("H200", 450e9, "NVLink"),
    ("H100", 450e9, "NVLink"),
    ("H800", 200e9, "NVLink"),
    ("A100", 300e9, "NVLink"),
    ("A800", 200e9, "NVLink"),
    ("V100", 150e9, "NVLink"),
    ("MI300X", 448e9, "Infinity Fabric"),
    ("MI325X", 448e9, "Infinity Fabric"),
    ("MI350X", 537.6e9, "Infinity Fabric"),
    ("MI355X", 537.6e9, "Infinity Fabric"),
];

/// Bandwidth of a GPU's links to its neighbors in one direction, bytes per second, and the name of the links.
///
/// Sources are NVIDIA's and AMD's product pages: NVLink 3 of the A100 12 × 25 GB/s, NVLink 4 of the H100 and H200 (SXM)
/// 18 × 25 GB/s, NVLink 5 of the B200 and B300 18 × 50 GB/s, NVLink 2 of the V100 6 × 25 GB/s; Infinity Fabric of the
/// MI300X and MI325X 7 × 64 GB/s, of the MI350X and MI355X 7 × 76.8 GB/s. Cards with `PCIe` in their name, and all
/// other cards, have no entry.
pub fn link_bandwidth(device: &str) -> Option<(f64, &'static str)> {
    if device.to_ascii_uppercase().contains("PCIE") {
        return None;
    }
    let of = |name: &str| device.split(|c: char| !c.is_ascii_alphanumeric()).any(|word| word == name);
    LINKS.iter().find(|l| of(l.0)).map(|l| (l.1, l.2))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn kinds_and_algorithms_by_name() {
        let cases = [
            ("ncclDevKernel_AllReduce_Sum_bf16_RING_LL", "all_reduce", "RING_LL"),
            ("ncclKernel_AllReduce_RING_LL128_Sum_float(ncclWorkElem)", "all_reduce", "RING_LL128"),
            ("ncclDevKernel_ReduceScatter_Sum_f32_NVLS_SIMPLE", "reduce_scatter", "NVLS_SIMPLE"),
            ("ncclDevKernel_SendRecv(ncclDevComm*)", "send_recv", ""),
            ("ncclDevKernel_Generic_4(ncclDevKernelArgsStorage<4096ul>)", "several in one", ""),
        ];
        for (name, kind, algorithm) in cases {
            assert_eq!(of_kernel(name), (kind, algorithm.to_owned()), "{name}");
        }
        assert_eq!(
            ["_allgather_base", "allreduce", "all_to_allv", "broadcast", "recv", "barrier"].map(collective_kind),
            ["all_gather", "all_reduce", "all_to_all", "broadcast", "recv", "barrier"]
        );
    }

    #[test]
    fn the_bus_carries_what_nccl_tests_say() {
        assert_eq!(bus_factor("all_reduce", 2), Some(1.0));
        assert_eq!(bus_factor("all_reduce", 8), Some(1.75));
        assert_eq!(bus_factor("all_gather", 8), Some(0.875));
        assert_eq!(link_bandwidth("NVIDIA H200").map(|l| l.0), Some(450e9));
        assert_eq!((link_bandwidth("NVIDIA H100 PCIe"), link_bandwidth("Tesla T4")), (None, None));
    }
}
