// A CUDA runtime or driver (RELEASE), a library that forwards to another one (STUB names it), or a library that calls
// one by name (USER). Functions return the release of the library that is reached at last.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stddef.h>

typedef long (*Five)(long, long, long, long, long);
#if defined(USER)
long cudaGraphInstantiate(long, long, long, long, long), cuGraphInstantiateWithFlags(long, long, long);
int cudaProfilerStart(void);
// Not in tail position, so that the return address is here.
long instantiate(void) {
  volatile long result = cudaGraphInstantiate(1, 2, 3, 4, 5);
  return result;
}
long instantiate_by_driver(void) {
  volatile long result = cuGraphInstantiateWithFlags(1, 2, 3);
  return result;
}
long profile(void) {
  volatile long result = cudaProfilerStart();
  return result;
}
#elif defined(STUB)
// Such forwarding functions are part of TensorFlow, and are preloaded by tools for sharing a GPU.
static void* behind(const char* symbol) {
  void* library = dlopen(STUB, RTLD_NOW);
  return library ? dlsym(library, symbol) : NULL;
}
long cudaGraphInstantiate(long a, long b, long c, long d, long e) {
  Five next = (Five)behind("cudaGraphInstantiate");
  return next ? next(a, b, c, d, e) + 1000 : -1;
}
long cuGraphInstantiateWithFlags(long a, long b, long c) {
  Five next = (Five)behind("cuGraphInstantiateWithFlags");
  return next ? next(a, b, c, 0, 0) + 1000 : -1;
}
int cudaProfilerStart(void) {
  int (*next)(void) = (int (*)(void))behind("cudaProfilerStart");
  return next ? next() + 1000 : -1;
}
#else
long cudaGraphInstantiate(long a, long b, long c, long d, long e) {
  return a == 1 && b == 2 && c == 3 && d == 4 && e == 5 ? RELEASE : -2;
}
long cuGraphInstantiateWithFlags(long a, long b, long c) { return a == 1 && b == 2 && c == 3 ? RELEASE : -2; }
int cudaProfilerStart(void) { return RELEASE; }
#endif
