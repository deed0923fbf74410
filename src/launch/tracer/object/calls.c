// cudaProfilerStart and cudaProfilerStop where the program calls them by name, as PyTorch does: the object is loaded before the libraries that define
// them (LD_PRELOAD). Those that are linked statically, or are looked up in a library, pass by; CUPTI hears them all.

static int switch_by_name(const char* symbol, int on) {
  static const char* const LIBRARIES[] = { "libcudart.so.13", "libcudart.so.12", "libcudart.so.11.0", "libcudart.so" };
  enum { ERROR_NOT_SUPPORTED = 801 };
  int (*next)(void) = NULL;
  if (!strncmp(symbol, "cuda", 4))
    for (u32 i = 0; i < COUNT(LIBRARIES) && !next; i++) {
      void* library = dlopen(LIBRARIES[i], RTLD_NOW | RTLD_NOLOAD);
      if (library) *(void**)&next = dlsym(library, symbol);
    }
  else {
    void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
    if (driver) *(void**)&next = dlsym(driver, symbol);
  }
  int listens = writing && !gone && gate.gated == GATED_BY_PROFILER;
  if (listens) thread_seen(tid());
  if (listens && on) gate_set(1, "cudaProfilerStart and cudaProfilerStop", 0);
  int result = next ? next() : ERROR_NOT_SUPPORTED;
  // Where CUPTI has heard it, the gate is closed already.
  if (listens && !on) gate_set(0, "cudaProfilerStart and cudaProfilerStop", 0);
  return result;
}
EXPORT int cudaProfilerStart(void) { return switch_by_name("cudaProfilerStart", 1); }
EXPORT int cudaProfilerStop(void) { return switch_by_name("cudaProfilerStop", 0); }
EXPORT int cuProfilerStart(void) { return switch_by_name("cuProfilerStart", 1); }
EXPORT int cuProfilerStop(void) { return switch_by_name("cuProfilerStop", 0); }

// PyTorch's programs call them by name, if this object stands before the library: others may have linked them statically.
static int profiler_is_heard(void) {
  return dlsym(NULL, "cudaProfilerStart") == (void*)cudaProfilerStart && dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_NOLOAD);
}
