// Bytes of host memory that stay allocated for each launch outside of graphs, before and after a thread has instantiated
// a CUDA graph. Needs libcuda only:
//   cc -O1 -o growth growth.c -ldl -lpthread
//   ./growth; warpscope trace ./growth; warpscope trace --cupti LIBCUPTI ./growth
// On an H200 (driver 580) with a subscriber that asks for nothing: 0 without CUPTI, and with 12.4, 12.9, 13.4 and 13.5;
// 32 with 13.0 to 13.3 on the thread that has instantiated a graph.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <malloc.h>
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static const char PTX[] = ".version 7.8\n.target sm_90\n.address_size 64\n.visible .entry empty() { ret; }\n";
enum { WARM_UP = 500, LAUNCHES = 20000, IN_FLIGHT = 256 };
static void *cuda, *context, *function, *stream;
#define F(name, ...) ((int (*)(__VA_ARGS__))dlsym(cuda, name))
#define NEED(call)                  \
  do {                              \
    int r_ = (call);                \
    if (r_) {                       \
      printf("%s: %d\n", #call, r_); \
      exit(2);                      \
    }                               \
  } while (0)

static double size_after(const char* text, const char* tag) {
  const char* at = strstr(text, tag);
  const char* size = at ? strstr(at, " size=\"") : NULL;
  return size ? atof(size + 7) : 0;
}
// Bytes in blocks that are not free, of all arenas.
static double allocated(void) {
  char* text = NULL;
  size_t n = 0;
  FILE* to = open_memstream(&text, &n);
  malloc_info(0, to);
  fclose(to);
  const char* totals = text;
  for (const char* p = text; (p = strstr(p, "</heap>")); p++) totals = p;
  double bytes = size_after(totals, "<system type=\"current\"") + size_after(totals, "<total type=\"mmap\"") -
    size_after(totals, "<total type=\"fast\"") - size_after(totals, "<total type=\"rest\"");
  free(text);
  return bytes;
}
static void launch(void* on) {
  int (*go)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*, void**, void**) =
    (void*)dlsym(cuda, "cuLaunchKernel");
  NEED(go(function, 1, 1, 1, 32, 1, 1, 0, on, NULL, NULL));
}
static void launch_many(long n) {
  for (long i = 0; i < n; i++) {
    launch(stream);
    if (i % IN_FLIGHT == IN_FLIGHT - 1) NEED(F("cuStreamSynchronize", void*)(stream));
  }
  NEED(F("cuStreamSynchronize", void*)(stream));
  usleep(300000);  // the profiler's own thread takes the records
}
static void measure(const char* when) {
  launch_many(WARM_UP);
  double before = allocated();
  launch_many(LAUNCHES);
  printf("%-28s %7.2f bytes a launch\n", when, (allocated() - before) / LAUNCHES);
}
static void* elsewhere(void* when) {
  NEED(F("cuCtxSetCurrent", void*)(context));
  measure(when);
  return NULL;
}

int main(void) {
  int device;
  void *module, *graph, *ready;
  cuda = dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL);
  if (!cuda) return 3;
  NEED(F("cuInit", unsigned)(0));
  NEED(F("cuDeviceGet", int*, int)(&device, 0));
  NEED(F("cuDevicePrimaryCtxRetain", void**, int)(&context, device));
  NEED(F("cuCtxSetCurrent", void*)(context));
  NEED(F("cuModuleLoadData", void**, const void*)(&module, PTX));
  NEED(F("cuModuleGetFunction", void**, void*, const char*)(&function, module, "empty"));
  NEED(F("cuStreamCreate", void**, unsigned)(&stream, 1));
  measure("at first");
  NEED(F("cuStreamBeginCapture_v2", void*, int)(stream, 2));
  for (int i = 0; i < 5; i++) launch(stream);
  NEED(F("cuStreamEndCapture", void*, void**)(stream, &graph));
  measure("after a capture");
  NEED(F("cuGraphInstantiateWithFlags", void**, void*, unsigned long long)(&ready, graph, 0));
  measure("after its instantiation");
  pthread_t other;
  pthread_create(&other, NULL, elsewhere, "from another thread");
  pthread_join(other, NULL);
  return 0;
}
