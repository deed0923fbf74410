#!/usr/bin/env python3
"""Packs the metrics that the tracer measures into single-pass groups per chip, written to src/launch/tracer/groups.txt,
and lists the metrics of each selectable question in src/launch/tracer/questions.txt.

Needs no GPU, only CUPTI's host library. By hand, from the repository's root:

    pip download --no-deps nvidia-cuda-cupti==13.0.85 && unzip nvidia_cuda_cupti-*.whl -d cupti
    tests/compare/groups.py cupti/nvidia/cu13/lib
"""
import ctypes, os, sys

E, A = ".avg.pct_of_peak_sustained_elapsed", ".avg.pct_of_peak_sustained_active"
STALLS = """long_scoreboard short_scoreboard math_pipe_throttle mio_throttle lg_throttle tex_throttle barrier membar branch_resolving dispatch_stall
drain imc_miss no_instruction not_selected selected sleeping wait misc gmma""".split()
SMSP = "smsp__sass_thread_inst_executed_op_"
THREADS, PIPES = "smsp__thread_inst_executed_pipe_", ("fma", "fmalite", "fma_type_fp16", "fp16", "fp64")
STALLED = "smsp__average_warps_issue_stalled_{}_per_issue_active.ratio"
# Metrics by question, most important question first; a metric belongs to the first question that lists it. Metrics that
# a chip lacks, or needs several passes for, are left out. The first question has the metrics the hints need most: of 69
# kernels with known causes, measured live on an H100, the first hint is right for 57 with these alone, as with all
# metrics (found by removing metrics one by one while that number stayed), and a third of all passes is enough.
QUESTIONS = {
    "cause": [
        "gpu__time_duration.sum", "gpc__cycles_elapsed.max", "sm__cycles_active.avg", "dram__throughput" + E, "dram__bytes_read.sum",
        "dram__bytes_write.sum", "dram__bytes_op_read.sum", "dram__bytes_op_write.sum", "dram__bytes.sum.per_second", "dram__bytes.sum.peak_sustained", "dram__cycles_elapsed.avg.per_second",
        "lts__t_bytes.sum", "l1tex__t_bytes.sum", "sm__warps_active" + A, "smsp__issue_active.avg.per_cycle_active", "sm__inst_issued" + E,
        "sm__cycles_elapsed.avg.per_second", "smsp__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.max",
        "sm__pipe_tensor_cycles_active" + E, "sm__pipe_tensor_type_hmma_hgmma_qgmma_imma_igmma_bmma_bgmma_cycles_active" + E,
        "sm__pipe_tensor_op_hmma_type_hmma_hgmma_qgmma_cycles_active" + E, "sm__pipe_tensor_op_hmma_cycles_active" + E,
        "sm__pipe_tensor_subpipe_hmma_cycles_active" + E, "sm__pipe_tc_cycles_active" + E, "smsp__inst_executed.sum",
        "l1tex__data_pipe_lsu_wavefronts" + E, "sm__warps_active.avg.per_cycle_active",
        "lts__t_sectors" + E, "lts__t_tag_requests" + E, "lts__t_tag_requests.max.pct_of_peak_sustained_elapsed", "lts__lts2xbar_cycles_active" + E,
        "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum",
        "smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum", "smsp__inst_executed_op_shared_atom.sum",
        "smsp__inst_executed_op_global_red.sum", "smsp__inst_executed_op_generic_atom_dot_alu.sum", "smsp__thread_inst_executed_per_inst_executed.ratio",
        *[STALLED.format(s) for s in "long_scoreboard short_scoreboard selected math_pipe_throttle mio_throttle wait barrier no_instruction not_selected".split()],
        "sm__inst_executed_pipe_xu" + E, "sm__pipe_fp64_cycles_active" + E, "sm__pipe_alu_cycles_active" + E, "sm__pipe_fma_cycles_active" + E,
        "sm__inst_executed_pipe_lsu" + E, *[STALLED.format(s) for s in "lg_throttle imc_miss branch_resolving gmma".split()],
        "sm__inst_executed_pipe_fma_type_fp16" + E, "sm__pipe_fmaheavy_cycles_active" + E,
    ],
    "memory": [
        "lts__t_sectors" + E, "lts__t_tag_requests" + E, "lts__t_tag_requests.max.pct_of_peak_sustained_elapsed", "lts__d_sectors" + E,
        "lts__d_sectors_fill_device" + E, "lts__d_sectors_fill_sysmem" + E, "lts__lts2xbar_cycles_active" + E, "lts__xbar2lts_cycles_active" + E,
        "lts__lts2xbar_cycles_active.sum.per_second", "lts__lts2xbar_cycles_active.sum.peak_sustained", "lts__lts2xbar_cycles_active.sum", "lts__cycles_elapsed.avg.per_second",
        "lts__d_atomic_input_cycles_active" + E, "lts__d_atomic_input_cycles_active.max.pct_of_peak_sustained_elapsed",
        "lts__t_sectors_srcunit_tex.sum", "lts__t_sectors_lookup_hit.sum", "lts__t_sectors_lookup_miss.sum", "lts__t_sectors.sum",
        "l1tex__data_bank_reads" + E, "l1tex__data_bank_writes" + E, "l1tex__f_wavefronts" + E, "l1tex__lsuin_requests" + E,
        "l1tex__m_l1tex2xbar_req_cycles_active" + E, "l1tex__m_xbar2l1tex_read_sectors" + E, "l1tex__lsu_writeback_active_mem_lgds" + E, "l1tex__lsu_writeback_active_mem_lg" + E,
        "l1tex__lsu_writeback_active_mem_lgds.sum", "l1tex__lsu_writeback_active_mem_lg.sum", "l1tex__lsu_writeback_active_mem_lgds.sum.per_second",
        "l1tex__lsu_writeback_active_mem_lg.sum.per_second", "l1tex__lsu_writeback_active_mem_lgds.sum.peak_sustained", "l1tex__lsu_writeback_active_mem_lg.sum.peak_sustained", "l1tex__cycles_elapsed.avg.per_second",
        "l1tex__t_sector_hit_rate.pct", "fbpa__dram_sectors" + E, "dram__cycles_active" + E,
    ],
    "accesses": [
        "l1tex__t_requests_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_sectors_pipe_lsu_mem_global_op_ld.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_st.sum",
        "l1tex__t_sectors_pipe_lsu_mem_global_op_st.sum", "smsp__inst_executed_op_global_ld.sum", "smsp__inst_executed_op_global_st.sum",
        "smsp__inst_executed_op_local_ld.sum", "smsp__inst_executed_op_local_st.sum", "l1tex__t_requests_pipe_lsu_mem_local_op_ld.sum",
        "l1tex__t_requests_pipe_lsu_mem_local_op_st.sum", "smsp__inst_executed_op_shared_ld.sum", "smsp__inst_executed_op_shared_st.sum",
        "smsp__inst_executed_op_shared_atom.sum", "smsp__inst_executed_op_global_red.sum", "smsp__inst_executed_op_generic_atom_dot_alu.sum",
        "smsp__inst_executed_op_generic_atom_dot_cas.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_atom.sum", "l1tex__t_requests_pipe_lsu_mem_global_op_red.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum", "l1tex__data_pipe_lsu_wavefronts_mem_shared.sum.pct_of_peak_sustained_elapsed",
        "l1tex__data_bank_conflicts_pipe_lsu_mem_shared.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_ld.sum", "l1tex__data_bank_conflicts_pipe_lsu_mem_shared_op_st.sum",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_ld.sum.pct_of_peak_sustained_elapsed", "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_st.sum.pct_of_peak_sustained_elapsed",
        "l1tex__data_pipe_lsu_wavefronts_mem_shared_op_atom.sum.pct_of_peak_sustained_elapsed", "smsp__sass_average_data_bytes_per_sector_mem_global_op_ld.pct",
        "smsp__sass_average_data_bytes_per_sector_mem_global_op_st.pct", "smsp__thread_inst_executed_per_inst_executed.ratio",
        "smsp__sass_branch_targets_threads_divergent.sum", "smsp__sass_average_branch_targets_threads_uniform.pct",
    ],
    "stalls": [STALLED.format(s) for s in STALLS] + [
        "smsp__warps_eligible.avg.per_cycle_active", "smsp__warps_active.avg.per_cycle_active", "sm__cycles_active.max", "sm__cycles_active.min",
    ],
    "pipes": [
        "sm__pipe_fma_cycles_active" + E, "sm__pipe_alu_cycles_active" + E, "sm__pipe_fmaheavy_cycles_active" + E, "sm__inst_executed_pipe_lsu" + E,
        "sm__inst_executed_pipe_xu" + E, "sm__inst_executed_pipe_adu" + E, "sm__pipe_fp64_cycles_active" + E, "sm__inst_executed_pipe_fp64" + E, "sm__inst_executed_pipe_fma_type_fp16" + E,
        "sm__inst_executed_pipe_fp16" + E, "sm__pipe_shared_cycles_active" + E, "sm__inst_executed_pipe_uniform" + E, "sm__inst_executed_pipe_tex" + E,
        "sm__inst_executed_pipe_cbu_pred_on_any" + E, "sm__pipe_tma_cycles_active" + E, "idc__request_cycles_active" + E, "sm__mio2rf_writeback_active" + E,
        "sm__mio_pq_read_cycles_active" + E, "sm__mio_pq_write_cycles_active" + E, "sm__inst_executed" + E, "sm__issue_active" + E,
        "sm__inst_executed_pipe_tensor_op_gmma.sum", "sm__inst_executed_pipe_tensor.sum", "sm__inst_executed_pipe_tma" + A,
    ],
    "operations": [f"{THREADS}{p}_pred_on.sum" for p in PIPES] + [f"{SMSP}{t}{o}_pred_on.sum" for t in "fdh" for o in ("add", "mul", "fma")] + [f"{SMSP}ffma2_pred_on.sum"]
    + [f"sm__sass_thread_inst_executed_op_{t}fma_pred_on.sum.peak_sustained" for t in "fdh"]
    + [f"sm__ops_path_tensor_src_{s}.{f}" for s in ("bf16_dst_fp32", "fp16_bf16_tf32_dst_fp32", "fp16", "fp16_dst_fp32", "fp16_dst_fp16", "tf32_dst_fp32", "fp8", "fp8_dst_fp32", "fp4_fp6_fp8_dst_fp32", "fp64", "int8") for f in ("sum", "sum.peak_sustained")],
}
# A kernel's position below its rooflines, in one pass on most chips; not packed, as the questions above contain it all.
ROOFLINE = ["gpu__time_duration.sum", "gpc__cycles_elapsed.max", "sm__cycles_active.avg", "dram__throughput" + E, "dram__bytes_read.sum", "dram__bytes_write.sum",
    "dram__bytes.sum.per_second", "dram__bytes.sum.peak_sustained", "dram__cycles_elapsed.avg.per_second", "lts__t_bytes.sum", "l1tex__t_bytes.sum", "sm__warps_active" + A,
    "smsp__issue_active.avg.per_cycle_active", "sm__inst_issued" + E, "sm__cycles_elapsed.avg.per_second", "smsp__cycles_elapsed.avg.per_second", "sm__cycles_elapsed.max",
    "sm__pipe_tensor_cycles_active" + E, "sm__pipe_tc_cycles_active" + E, "sm__warps_active.avg.per_cycle_active"]
# Chips of one string have the same counters; the first one is queried.
CHIPS = ["GH100", "GA100", "GB100 GB102 GB110", "AD102 AD103 AD104 AD106 AD107", "GA102 GA103 GA104 GA106 GA107", "GB202 GB203 GB205 GB206 GB207", "TU102 TU104 TU106"]

folder = sys.argv[1]
ctypes.CDLL(os.path.join(folder, "libnvperf_host.so"), mode=ctypes.RTLD_GLOBAL)
cupti = ctypes.CDLL(next(os.path.join(folder, f) for f in sorted(os.listdir(folder)) if f.startswith("libcupti.so")))
WORD, P = ctypes.c_uint64, ctypes.c_void_p


def call(function, *fields):
    """Calls a function with a struct of 64-bit words: size, NULL and the fields. Returns the result and the updated
    fields."""
    words = (WORD * (2 + len(fields)))(8 * (2 + len(fields)), 0, *[f or 0 for f in fields])
    return getattr(cupti, function)(words), list(words)[2:]


def passes(chip, metrics):
    """Number of passes these metrics need together; 0 if the chip lacks one of them."""
    name = ctypes.create_string_buffer(chip.encode())
    error, f = call("cuptiProfilerHostInitialize", 0, ctypes.addressof(name), 0, 0)
    host = f[3]
    assert not error
    texts = [ctypes.create_string_buffer(m.encode()) for m in metrics]
    pointers = (P * len(texts))(*[ctypes.addressof(t) for t in texts])
    error, _ = call("cuptiProfilerHostConfigAddMetrics", host, ctypes.addressof(pointers), len(texts))
    n = 0
    if not error:
        error, f = call("cuptiProfilerHostGetConfigImageSize", host, 0)
        image = ctypes.create_string_buffer(f[1])
        call("cuptiProfilerHostGetConfigImage", host, f[1], ctypes.addressof(image))
        error, f = call("cuptiProfilerHostGetNumOfPasses", f[1], ctypes.addressof(image), 0)
        n = f[2]
    call("cuptiProfilerHostDeinitialize", host)
    return n


def pack(chip):
    groups = []
    for question, metrics in QUESTIONS.items():
        for metric in metrics:
            if any(metric in g[1] for g in groups) or passes(chip, [metric]) != 1:
                continue
            fits = next((g for g in groups if passes(chip, g[1] + [metric]) == 1), None)
            if fits:
                fits[1].append(metric)
            else:
                groups.append((question, [metric]))
    # FP16 on tensor cores needs two passes on Hopper, but many programs use it.
    for metric in QUESTIONS["operations"]:
        if metric.endswith(".sum") and "_tensor_src_" in metric and "int8" not in metric and passes(chip, [metric]) == 2:
            groups.append(("operations", [metric]))
    # Add upper bounds of FP32 and FP64 work to the first groups, if these need no further pass for them.
    first = [g for g in groups if g[0] == "cause"]
    swept = lambda: [m for g in first for m in g[1] if "__sass_" not in m or ".peak_sustained" in m]
    before = passes(chip, swept())
    for metric in (f"{THREADS}{p}_pred_on.sum" for p in PIPES):
        home = next((g for g in groups if metric in g[1] and g not in first), None)
        if home:
            first[-1][1].append(metric)
            if passes(chip, swept()) == before:
                home[1].remove(metric)
            else:
                first[-1][1].remove(metric)
    return [g for g in groups if g[1]]


# Each group also measures the duration if it fits: launches of one kernel are compared by it.
DURATION = "gpu__time_duration.sum"
with open("src/launch/tracer/groups.txt", "w") as out:
    for chips in CHIPS:
        chip = chips.split()[0]
        groups = pack(chip)
        for _, metrics in groups:
            if DURATION not in metrics and passes(chip, [DURATION] + metrics) == 1:
                metrics.insert(0, DURATION)
        print(chip, len(groups), "groups,", sum(len(m) for _, m in groups), "metrics,", [q[:3] + str(len(m)) for q, m in groups], file=sys.stderr)
        for name in chips.split() + (["*"] if chip == "GH100" else []):
            out.write(f"chip {name}\n")
            if name == chip:
                out.writelines(f"group {q} {' '.join(m)}\n" for q, m in groups)
            else:
                out.write(f"as {chip}\n")

with open("src/launch/tracer/questions.txt", "w") as out:
    for question, metrics in {"roofline": ROOFLINE, **QUESTIONS}.items():
        out.write(f"{question} {' '.join(dict.fromkeys([DURATION] + metrics))}\n")
