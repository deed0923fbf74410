// Steps of two kernels, `heavy` and `light`, and host work, combined as in real programs: the gain from a faster
// `heavy` differs in each mode. Usage: faster MODE HEAVY_US LIGHT_US HOST_US STEPS
#include <cuda_runtime.h>

#include <chrono>
#include <cstdio>
#include <cstdlib>
#include <cstring>

#define CK(x)                                                             \
  do {                                                                    \
    cudaError_t e = (x);                                                  \
    if (e != cudaSuccess) {                                               \
      fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(e)); \
      exit(1);                                                            \
    }                                                                     \
  } while (0)

__device__ void spin(long long cycles) {
  long long from = clock64();
  while (clock64() - from < cycles);
}
__global__ void heavy(long long cycles) { spin(cycles); }
__global__ void light(long long cycles) { spin(cycles); }

static void host(double us) {
  auto from = std::chrono::steady_clock::now();
  while (std::chrono::duration<double, std::micro>(std::chrono::steady_clock::now() - from).count() < us);
}

int main(int argc, char** argv) {
  if (argc < 6) return 1;
  const char* mode = argv[1];
  auto is = [&](const char* word) { return !strcmp(mode, word); };
  long long a = atof(argv[2]) * 1900, b = atof(argv[3]) * 1900;
  double us = atof(argv[4]);
  int steps = atoi(argv[5]);
  float *device, pageable[256];
  CK(cudaMalloc(&device, sizeof pageable));
  cudaStream_t s1, s2;
  cudaEvent_t ready, done;
  CK(cudaStreamCreateWithFlags(&s1, cudaStreamNonBlocking));
  CK(cudaStreamCreateWithFlags(&s2, cudaStreamNonBlocking));
  CK(cudaEventCreateWithFlags(&ready, cudaEventDisableTiming));
  CK(cudaEventCreateWithFlags(&done, cudaEventDisableTiming));
  for (int i = 0; i < steps; i++) {
    if (is("streams")) {  // light runs beside heavy on another stream; each step waits for both
      CK(cudaEventRecord(ready, s1));
      CK(cudaStreamWaitEvent(s2, ready, 0));
      light<<<1, 32, 0, s2>>>(b);
      CK(cudaEventRecord(done, s2));
      heavy<<<1, 32, 0, s1>>>(a);
      CK(cudaStreamWaitEvent(s1, done, 0));
      light<<<1, 32, 0, s1>>>(b);
    } else {
      heavy<<<1, 32, 0, s1>>>(a);
      light<<<1, 32, 0, s1>>>(b);
    }
    host(us);
    if (is("sync") || (is("steps") && i % 10 == 9)) CK(cudaStreamSynchronize(s1));
    if (is("copy")) CK(cudaMemcpyAsync(pageable, device, sizeof pageable, cudaMemcpyDeviceToHost, s1));
  }
  CK(cudaDeviceSynchronize());
  puts("faster done");
}
