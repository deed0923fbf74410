// warpscope's tracer: a shared object that the CUDA driver loads into a program (CUDA_INJECTION64_PATH), NVTX too
// (NVTX_INJECTION64_PATH). It asks CUPTI for records of what runs on the GPU and writes them to a file of the process, packed.
//
// It never fails the program: where something cannot be had it records less, says so in the file, and returns.
#include "base.h"
#include "cupti.h"
#include "file.c"
#include "names.c"
#include "symbol.c"
#include "rows.c"
#include "gate.c"
#include "events.c"
#include "nvtx.c"
#include "measure.h"
#include "plan.c"
#include "windows.c"
#include "stalls.c"
#include "measure.c"
#include "session.c"
#include "states.c"
#include "start.c"
