// Mock of libcuda: the driver calls that the tracer makes, reporting two GPUs that do not exist.
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
void cuCall(uint32_t function, int returned);
int cuDriverGetVersion(int* version) {
  cuCall(2, 0);
  *version = 13000;
  return 0;
}
// MOCK_INIT=N: the driver cannot be initialized, with error N.
int cuInit(unsigned flags) { (void)flags; return getenv("MOCK_INIT") ? atoi(getenv("MOCK_INIT")) : 0; }
int cuDeviceGetCount(int* n) { *n = 2; return cuInit(0) ? 3 : 0; }
int cuDeviceGet(int* device, int ordinal) { *device = ordinal; return 0; }
int cuDeviceGetName(char* name, int size, int device) { snprintf(name, (size_t)size, "NVIDIA Mock %d", device); return 0; }
int cuDeviceGetPCIBusId(char* bus, int size, int device) { snprintf(bus, (size_t)size, "0000:0%d:00.0", device); return 0; }
int cuDeviceTotalMem_v2(uint64_t* bytes, int device) { (void)device; *bytes = 80ull << 30; return 0; }
int cuDeviceGetAttribute(int* value, uint32_t attribute, int device) {
  (void)device;
  switch (attribute) {
  case 10: *value = 32; return 0;
  case 16: *value = 132; return 0;
  case 36: *value = 2619000; return 0;
  case 37: *value = 5120; return 0;
  case 39: *value = 2048; return 0;
  case 75: *value = 9; return 0;
  case 76: *value = 0; return 0;
  case 82: *value = 65536; return 0;
  default: return 1;
  }
}
int cuCtxSynchronize(void) { return 0; }
int cuStreamIsCapturing(void* stream, int* status) { (void)stream; *status = 0; return 0; }
// Pretends to instantiate a graph for this many milliseconds, computing and waiting in turn, as the driver does; the mock
// of cuptiSubscribe aborts if it runs meanwhile.
volatile int mock_instantiating;
__attribute__((noinline)) static void instantiate_for(unsigned long long ms) {
  struct timespec end, t;
  clock_gettime(CLOCK_MONOTONIC, &end);
  end.tv_sec += (time_t)(ms / 1000), end.tv_nsec += (long)(ms % 1000) * 1000000;
  const struct timespec wait = { 0, 300000 };
  for (int i = 0;; i++) {
    clock_gettime(CLOCK_MONOTONIC, &t);
    if (t.tv_sec > end.tv_sec || (t.tv_sec == end.tv_sec && t.tv_nsec >= end.tv_nsec)) return;
    if (i % 4000 == 0) clock_nanosleep(CLOCK_MONOTONIC, 0, &wait, NULL);
  }
}
int cuGraphInstantiateWithFlags(void** exec, void* graph, unsigned long long ms) {
  (void)exec, (void)graph;
  mock_instantiating = 1, instantiate_for(ms), mock_instantiating = 0;
  return 0;
}
// Not reported to CUPTI, unlike the driver's.
int cuProfilerStart(void) { return 0; }
int cuProfilerStop(void) { return 0; }
