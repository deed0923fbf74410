// warpscope's tracer: a shared object that the CUDA driver (CUDA_INJECTION64_PATH) and NVTX (NVTX_INJECTION64_PATH)
// load into a program. It requests activity records of the GPU from CUPTI and writes them, packed, to one file per
// process.
//
// It never makes the program fail: if something is unavailable, it records less and reports that in the file.
#include "base.h"
#include "cupti.h"
#include "lookup.c"
#include "interposed.c"
#include "file.c"
#include "strings.c"
#include "symbol.c"
#include "record_encoder.c"
#include "capture_range.c"
#include "event_ring.c"
#include "nvtx.c"
#include "range_profiler.h"
#include "requests.c"
#include "profiler_plan.c"
#include "profiler_windows.c"
#include "signatures.c"
#include "pc_sampling.c"
#include "profiler_launch.c"
#include "profiler_sweep.c"
#include "profiler_hooks.c"
#include "graph_hooks.c"
#include "python_frames.c"
// Every program loads this object, but few need native stacks, so their code is optimized for size.
#pragma GCC push_options
#pragma GCC optimize("Os")
#include "native_modules.c"
#include "native_unwind.c"
#pragma GCC pop_options
#include "stack_samples.c"
#include "waits.c"
#pragma GCC push_options
#pragma GCC optimize("Os")
#include "native_samples.c"
#pragma GCC pop_options
#include "thread_samples.c"
#include "graph_nodes.c"
#include "other_client.h"
#include "activity.c"
#include "thread_states.c"
#include "detach.c"
#include "sample_windows.c"
#include "injection.c"
#include "empty_trace.c"
#include "attach.c"
#include "probe.c"
#include "exit_hooks.c"
#include "other_client.c"
