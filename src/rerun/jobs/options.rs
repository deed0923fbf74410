//! Options of a job: rocprofv3's long options with `_` for `-`, and the type of their values. rocprofv3 checks
//! neither names nor types in a file. Taken from `rocprofv3.py` of `ROCm` 6.2 to 7.14 and its change log.

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Kind {
    /// A switch that enables the collection of data.
    Trace,
    Switch,
    Text,
    /// A list of texts.
    Texts,
    /// A list of lists of texts.
    Groups,
    Number,
    /// A text with a decimal or `0x…` number. A YAML number works, too, but 0 is read as not set.
    Mask,
}

use Kind::{Groups, Mask, Number, Switch, Text, Texts, Trace};

/// Name, type, and the first `ROCm` release that may have it, if known.
const OPTIONS: &[(&str, Kind, &str)] = &[
    ("pmc", Texts, ""),
    ("pmc_groups", Groups, "7.0"),
    ("pmc_group_interval", Number, "7.0"),
    ("kernel_include_regex", Text, "6.3"),
    ("kernel_exclude_regex", Text, "6.3"),
    ("kernel_iteration_range", Texts, "6.3"),
    ("mangled_kernels", Switch, ""),
    ("truncate_kernels", Switch, ""),
    ("kernel_rename", Switch, ""),
    ("output_file", Text, ""),
    ("output_directory", Text, ""),
    ("output_format", Texts, ""),
    ("output_config", Switch, ""),
    ("log_level", Text, ""),
    ("extra_counters", Text, ""),
    ("sys_trace", Trace, ""),
    ("runtime_trace", Trace, ""),
    ("hip_trace", Trace, ""),
    ("hip_runtime_trace", Trace, ""),
    ("hip_compiler_trace", Trace, ""),
    ("hip_graph_trace", Trace, "7.2.4"),
    ("hip_event_trace", Trace, ""),
    ("hsa_trace", Trace, ""),
    ("hsa_core_trace", Trace, ""),
    ("hsa_amd_trace", Trace, ""),
    ("hsa_image_trace", Trace, ""),
    ("hsa_finalizer_trace", Trace, ""),
    ("marker_trace", Trace, ""),
    ("kernel_trace", Trace, ""),
    ("memory_copy_trace", Trace, ""),
    ("memory_allocation_trace", Trace, "6.3"),
    ("scratch_memory_trace", Trace, ""),
    ("rccl_trace", Trace, ""),
    ("kokkos_trace", Trace, ""),
    ("rocdecode_trace", Trace, "6.4"),
    ("rocjpeg_trace", Trace, "7.0"),
    ("rocshmem_trace", Trace, "7.2.4"),
    ("ompt_trace", Trace, "7.14"),
    ("hipfile_trace", Trace, "7.14"),
    ("kfd_trace", Trace, "7.2.4"),
    ("kfd_page_migration_trace", Trace, "7.2.4"),
    ("kfd_page_mapping_trace", Trace, "7.2.4"),
    ("kfd_queue_trace", Trace, "7.2.4"),
    ("kfd_dropped_events_trace", Trace, "7.2.4"),
    ("stats", Switch, ""),
    ("summary", Switch, ""),
    ("summary_per_domain", Switch, ""),
    ("summary_groups", Texts, ""),
    ("summary_output_file", Text, ""),
    ("summary_units", Text, ""),
    ("group_by_queue", Switch, ""),
    ("agent_index", Text, "7.0"),
    ("list_avail", Switch, ""),
    ("list_metrics", Switch, ""),
    ("collection_period", Texts, "6.4"),
    ("collection_period_unit", Texts, "6.4"),
    ("selected_regions", Switch, ""),
    ("selected_regions_ref_count", Switch, ""),
    ("profile_mpi_ranks", Text, "7.2"),
    ("mpi_world_rank_variable", Text, ""),
    ("mpi_world_size_variable", Text, ""),
    ("perfetto_backend", Text, ""),
    ("perfetto_buffer_size", Number, ""),
    ("perfetto_buffer_fill_policy", Text, ""),
    ("perfetto_shmem_size_hint", Number, ""),
    ("pc_sampling_beta_enabled", Trace, "6.3"),
    ("pc_sampling_unit", Text, "6.3"),
    ("pc_sampling_method", Text, "6.3"),
    ("pc_sampling_interval", Number, "6.3"),
    ("spm_beta_enabled", Switch, "7.14"),
    ("spm", Texts, "7.14"),
    ("spm_sample_interval", Number, "7.14"),
    ("spm_sample_interval_unit", Text, "7.14"),
    ("advanced_thread_trace", Switch, "7.0"),
    ("att_library_path", Texts, "7.0"),
    ("att_target_cu", Mask, "7.0"),
    ("att_simd_select", Mask, "7.0"),
    ("att_shader_engine_mask", Mask, "7.0"),
    ("att_buffer_size", Mask, "7.0"),
    ("att_serialize_all", Switch, "7.0"),
    ("att_perfcounters", Text, "7.0"),
    ("att_perfcounter_ctrl", Number, "7.0"),
    ("att_perfcounter_target_only", Switch, "7.0"),
    ("att_activity", Number, "7.0"),
    ("att_gpu_index", Text, "7.0"),
    ("att_consecutive_kernels", Mask, "7.0"),
    ("att_no_intercept", Switch, "7.0"),
    ("att_no_detail", Switch, "7.0"),
    ("att_resource_mode", Text, "7.0"),
    ("preload", Texts, ""),
    ("minimum_output_data", Number, ""),
    ("disable_signal_handlers", Switch, ""),
    ("process_sync", Switch, ""),
    ("rocm_root", Text, ""),
    ("sdk_soversion", Number, ""),
    ("sdk_version", Text, ""),
    ("pid", Number, "7.1"),
    ("attach_duration_msec", Number, "7.1"),
    ("replay_mode", Text, ""),
    ("kernel_replay_beta_enabled", Switch, ""),
    ("suppress_marker_preload", Switch, ""),
    ("benchmark_mode", Text, ""),
    ("echo", Switch, ""),
];

/// Returns the type of an option and the first release that may have it (empty if unknown).
#[must_use]
pub fn find_option(name: &str) -> Option<(Kind, &'static str)> {
    OPTIONS.iter().find(|o| o.0 == name).map(|o| (o.1, o.2))
}

/// Returns the names of all options.
pub fn option_names() -> impl Iterator<Item = &'static str> {
    OPTIONS.iter().map(|o| o.0)
}
