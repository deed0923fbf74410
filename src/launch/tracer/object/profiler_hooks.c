// cudaProfilerStart and cudaProfilerStop in programs that call them by name, as PyTorch does, since the object is
// loaded before the libraries that define them (LD_PRELOAD), or look them up, as Numba does (interposed.c). Calls to
// statically linked functions bypass this object; CUPTI reports all calls.

static void profiler_gate(int on) {
  if (!writing || gone || gate.gated != GATED_BY_PROFILER) return;
  thread_seen(tid());
  gate_set(on, "cudaProfilerStart and cudaProfilerStop", 0);
}
static int switch_profiler(void* function, int on) {
  int (*next)(void) = NULL;
  *(void**)&next = function;
  if (on) profiler_gate(1);
  int result = next ? next() : 0;
  // Again, because the call may have been the first CUDA call, which starts the tracer. If CUPTI has reported the call,
  // the gate is already in the right state.
  profiler_gate(on);
  return result;
}
#define SWITCHING(name, on) \
  EXPORT int name(void) { return switch_profiler(function_behind(#name, __builtin_return_address(0)), on); }
SWITCHING(cudaProfilerStart, 1)
SWITCHING(cudaProfilerStop, 0)
SWITCHING(cuProfilerStart, 1)
SWITCHING(cuProfilerStop, 0)

static Entries starts, stops;
#define X(i) \
  static int start_##i(void) { return switch_profiler(starts.behind[i], 1); } \
  static int stop_##i(void) { return switch_profiler(stops.behind[i], 0); }
EACH_ENTRY(X)
#undef X
// This object's function for a lookup of one of these names; NULL for other names.
static void* looked_up_profiler(void* library, const char* symbol) {
#define X(i) (void*)start_##i,
  static void* const STARTS[] = { EACH_ENTRY(X) };
#undef X
#define X(i) (void*)stop_##i,
  static void* const STOPS[] = { EACH_ENTRY(X) };
#undef X
  if (!strcmp(symbol, "cudaProfilerStart") || !strcmp(symbol, "cuProfilerStart"))
    return looked_up(library, symbol, &starts, STARTS);
  if (!strcmp(symbol, "cudaProfilerStop") || !strcmp(symbol, "cuProfilerStop"))
    return looked_up(library, symbol, &stops, STOPS);
  return NULL;
}

// True for PyTorch programs, which call the functions by name, if this object precedes the library. Other programs may
// link the functions statically, which bypasses this object.
static int profiler_is_heard(void) {
  return lookup(NULL, "cudaProfilerStart") == (void*)cudaProfilerStart &&
    dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
}
