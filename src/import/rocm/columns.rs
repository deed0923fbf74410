//! Columns of tables with one row per dispatch: distinguishes counters from attributes of the dispatch.

/// Columns that are not counters, in lowercase and with `_` instead of `-`, for rocprof v1 and v2 and for the tables
/// that rocprof-compute derives from them.
const FACTS: [&str; 51] = [
    "index",
    "kernelname",
    "kernel_name",
    "gpu_id",
    "queue_id",
    "queue_index",
    "pid",
    "process_id",
    "tid",
    "thread_id",
    "grd",
    "grid_size",
    "wgr",
    "workgroup_size",
    "lds",
    "lds_per_workgroup",
    "lds_block_size",
    "scr",
    "scratch_per_workitem",
    "scratch_size",
    "vgpr",
    "vgpr_count",
    "arch_vgpr",
    "accum_vgpr",
    "accum_vgpr_count",
    "sgpr",
    "sgpr_count",
    "wave_size",
    "sig",
    "obj",
    "dispatchns",
    "beginns",
    "endns",
    "completens",
    "durationns",
    "dispatch_id",
    "correlation_id",
    "kernel_id",
    "agent_id",
    "start_timestamp",
    "end_timestamp",
    "xcc_id",
    "node_id",
    "stream_id",
    "dev_id",
    "guid",
    "kind",
    "__section",
    "__lane",
    "data",
    "name",
];

/// Returns true if a column holds a counter, or one instance of a counter.
pub fn is_counter(column: &str) -> bool {
    let name = column.trim().to_ascii_lowercase().replace('-', "_");
    !name.is_empty() && !FACTS.contains(&name.as_str())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn counters_are_what_is_no_fact() {
        assert!(!is_counter("queue-index") && !is_counter("Wave_Size") && is_counter("TCC_HIT[3]") && is_counter("SQ_WAVES"));
    }
}
