// cudaProfilerStart and cudaProfilerStop in programs that call them by name, as PyTorch does, since the object is
// loaded before the libraries that define them (LD_PRELOAD), or look them up, as Numba does (lookup.c). Calls to
// statically linked functions bypass this object; CUPTI reports all calls.

// The function that the caller would have called without this object: the one in its own library or dependencies, or in
// a loaded library.
static void* function_behind(const char* symbol, void* caller, const void* own) {
  static const char* const LIBRARIES[] = { "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so",
    "libcuda.so.1", "libcupti.so.13", "libcupti.so.12", "libcupti.so" };
  struct { const char* file; void* base; const char* name; void* address; } where = { NULL, NULL, NULL, NULL };
  void* library = dladdr(caller, &where) && where.file ? dlopen(where.file, RTLD_NOW | RTLD_NOLOAD) : NULL;
  void* next = library ? lookup(library, symbol) : NULL;
  if (!next || next == own) next = lookup((void*)-1l, symbol);
  for (u32 i = 0; i < COUNT(LIBRARIES) && (!next || next == own); i++) {
    library = dlopen(LIBRARIES[i], RTLD_NOW | RTLD_NOLOAD);
    if (library) next = lookup(library, symbol);
  }
  return next == own ? NULL : next;
}

static void profiler_gate(int on) {
  if (!writing || gone || gate.gated != GATED_BY_PROFILER) return;
  thread_seen(tid());
  gate_set(on, "cudaProfilerStart and cudaProfilerStop", 0);
}
static int switch_by_name(const char* symbol, int on, void* caller, int (*own)(void)) {
  int (*next)(void) = NULL;
  *(void**)&next = function_behind(symbol, caller, (const void*)own);
  if (on) profiler_gate(1);
  int result = next ? next() : 0;
  // The first CUDA call starts the tracer. If CUPTI has reported the call, the gate is already in the right state.
  profiler_gate(on);
  return result;
}
EXPORT int cudaProfilerStart(void) {
  return switch_by_name("cudaProfilerStart", 1, __builtin_return_address(0), cudaProfilerStart);
}
EXPORT int cudaProfilerStop(void) {
  return switch_by_name("cudaProfilerStop", 0, __builtin_return_address(0), cudaProfilerStop);
}
EXPORT int cuProfilerStart(void) {
  return switch_by_name("cuProfilerStart", 1, __builtin_return_address(0), cuProfilerStart);
}
EXPORT int cuProfilerStop(void) {
  return switch_by_name("cuProfilerStop", 0, __builtin_return_address(0), cuProfilerStop);
}

// This object's function for a lookup of one of these names; NULL for other names.
static void* looked_up_profiler(void* library, const char* symbol) {
  static const struct { const char* symbol; int (*own)(void); } OWN[] = {
    { "cudaProfilerStart", cudaProfilerStart }, { "cudaProfilerStop", cudaProfilerStop },
    { "cuProfilerStart", cuProfilerStart }, { "cuProfilerStop", cuProfilerStop },
  };
  for (u32 i = 0; i < COUNT(OWN); i++)
    if (!strcmp(symbol, OWN[i].symbol) && lookup(library, symbol)) return (void*)OWN[i].own;
  return NULL;
}

// True for PyTorch programs, which call the functions by name, if this object precedes the library. Other programs may
// be statically linked with them.
static int profiler_is_heard(void) {
  return lookup(NULL, "cudaProfilerStart") == (void*)cudaProfilerStart &&
    dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
}
