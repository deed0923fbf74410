// A program that logs its own behaviour, to be compared with its trace. Arguments KEY=VALUE:
//   launches=N in total   threads=N   one=1 one thread at a time, so that the host order is certain   chat=N cheap
//   calls before each launch, as in PyTorch   numbered=1 each launch carries its number (dynamic shared memory: its low
//   15 bits, grid.x - 1: the rest; block.x / 32 - 1: the thread)   graphs=N launches of a graph of 20 nodes
//   window=1 cudaProfilerStart and Stop around the middle third   nvtx=1 a range around every 100   fork=early|late
//   exec=1   exit=_exit|abort|kill|term   special=1 cooperative and cluster launches, a memcpy and a memset
#include <cooperative_groups.h>
#include <cuda_runtime.h>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <mutex>
#include <string>
#include <sys/wait.h>
#include <thread>
#include <unistd.h>
#include <vector>
#if __has_include(<nvtx3/nvToolsExt.h>)
#include <nvtx3/nvToolsExt.h>
#else
static void nvtxRangePushA(const char*) {}
static void nvtxRangePop() {}
#endif
extern "C" cudaError_t CUDARTAPI cudaProfilerStart(void);
extern "C" cudaError_t CUDARTAPI cudaProfilerStop(void);

#define CHECK(call) \
  do { \
    cudaError_t error = (call); \
    if (error != cudaSuccess) { \
      fprintf(stderr, "%s:%d %s\n", __FILE__, __LINE__, cudaGetErrorString(error)); \
      exit(1); \
    } \
  } while (0)

template <int I>
__global__ void tiny(float* p) {
  if (p) p[threadIdx.x] = I;
}
__global__ void together(float* p) {
  cooperative_groups::this_grid().sync();
  if (p) p[0] = 1;
}
__global__ void clustered(float* p) {
  if (p) p[0] = 1;
}

static int words;
static char** word_list;
static std::string word(const char* key, const char* otherwise) {
  size_t n = strlen(key);
  for (int i = 1; i < words; i++)
    if (!strncmp(word_list[i], key, n) && word_list[i][n] == '=') return word_list[i] + n + 1;
  return otherwise;
}
static long number(const char* key, long otherwise) { return atol(word(key, std::to_string(otherwise).c_str()).c_str()); }
static double now() {
  timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (double)t.tv_sec * 1e9 + (double)t.tv_nsec;
}

static long launches, threads, chat;
static bool numbered, one;
static std::mutex turn;
static unsigned next;

static void launch(unsigned n, unsigned thread, cudaStream_t s) {
  dim3 grid(numbered ? 1 + (n >> 15) : 1 + n % 3), block(numbered ? 32 * (1 + thread) : 64);
  size_t shared = numbered ? n & 0x7fff : 0;
  int device;
  cudaStreamCaptureStatus status;
  for (long i = 0; i < chat; i++) switch (i & 3) {
      case 0: cudaGetDevice(&device); break;
      case 1: cudaStreamIsCapturing(s, &status); break;
      case 2: cudaPeekAtLastError(); break;
      default: cudaGetLastError();
    }
  switch (n & 3) {
    case 0: tiny<0><<<grid, block, shared, s>>>(nullptr); break;
    case 1: tiny<1><<<grid, block, shared, s>>>(nullptr); break;
    case 2: tiny<2><<<grid, block, shared, s>>>(nullptr); break;
    default: tiny<3><<<grid, block, shared, s>>>(nullptr);
  }
}
static void body(unsigned thread, long n) {
  cudaStream_t s;
  CHECK(cudaStreamCreateWithFlags(&s, cudaStreamNonBlocking));
  bool window = number("window", 0), nvtx = number("nvtx", 0);
  for (long i = 0; i < n; i++) {
    if (window && i == n / 3) CHECK(cudaProfilerStart());
    if (window && i == 2 * n / 3) CHECK(cudaProfilerStop());
    if (nvtx && i % 100 == 0) nvtxRangePushA(("step " + std::to_string(i / 100)).c_str());
    if (one) {
      std::lock_guard<std::mutex> mine(turn);
      launch(next++, thread, s);
    } else {
      launch(__atomic_fetch_add(&next, 1, __ATOMIC_SEQ_CST), thread, s);
    }
    if (nvtx && i % 100 == 99) nvtxRangePop();
    if (i % 512 == 511) CHECK(cudaStreamSynchronize(s));
  }
  CHECK(cudaStreamSynchronize(s));
}
static void all(long n) {
  std::vector<std::thread> others;
  for (long t = 1; t < threads; t++) others.emplace_back(body, t, n / threads);
  body(0, n / threads);
  for (auto& t : others) t.join();
}

int main(int count, char** list) {
  words = count, word_list = list;
  launches = number("launches", 0), threads = number("threads", 1), chat = number("chat", 0), numbered = number("numbered", 0), one = number("one", 0);
  std::string fork_when = word("fork", ""), leave = word("exit", "");
  pid_t child = fork_when == "early" ? fork() : 1;
  CHECK(cudaFree(nullptr));
  if (!numbered) {
    // Load modules and allocate buffers before the time is measured.
    long kept = chat;
    chat = 0;
    for (unsigned i = 0; i < 64; i++) launch(i, 0, nullptr);
    chat = kept;
    CHECK(cudaDeviceSynchronize());
  }
  double begin = now();
  all(launches);
  double wall = now() - begin;
  if (long n = number("graphs", 0)) {
    cudaStream_t s;
    cudaGraph_t graph;
    cudaGraphExec_t ready;
    CHECK(cudaStreamCreate(&s));
    CHECK(cudaStreamBeginCapture(s, cudaStreamCaptureModeThreadLocal));
    bool kept = numbered;
    numbered = false;
    for (unsigned i = 0; i < 20; i++) launch(i, 0, s);
    numbered = kept;
    CHECK(cudaStreamEndCapture(s, &graph));
    CHECK(cudaGraphInstantiate(&ready, graph, 0));
    for (long i = 0; i < n; i++) {
      CHECK(cudaGraphLaunch(ready, s));
      if (i % 16 == 15) CHECK(cudaStreamSynchronize(s));
    }
    CHECK(cudaStreamSynchronize(s));
  }
  if (number("special", 0)) {
    float* p = nullptr;
    void* arguments[] = { &p };
    CHECK(cudaLaunchCooperativeKernel((const void*)together, dim3(4), dim3(32), arguments, 0, nullptr));
    cudaLaunchConfig_t config = {};
    config.gridDim = 8, config.blockDim = 64;
    cudaLaunchAttribute attribute[1];
    attribute[0].id = cudaLaunchAttributeClusterDimension;
    attribute[0].val.clusterDim.x = 2, attribute[0].val.clusterDim.y = 1, attribute[0].val.clusterDim.z = 1;
    config.attrs = attribute, config.numAttrs = 1;
    CHECK(cudaLaunchKernelEx(&config, clustered, p));
    char *q, host[4096];
    CHECK(cudaMalloc(&q, 1 << 20));
    CHECK(cudaMemset(q, 1, 1 << 20));
    CHECK(cudaMemcpy(host, q, sizeof host, cudaMemcpyDeviceToHost));
    CHECK(cudaDeviceSynchronize());
  }
  if (launches) printf("%.1f ns a launch\n", wall / (double)launches);
  fflush(stdout);
  if (child > 1) waitpid(child, nullptr, 0);
  if (fork_when == "late") {
    pid_t late = fork();
    if (!late) exit(7);
    int status = 0;
    waitpid(late, &status, 0);
    printf("the child left with %d\n", WEXITSTATUS(status));
  }
  if (number("exec", 0)) execl("/proc/self/exe", list[0], "launches=1000", "numbered=1", nullptr);
  if (leave == "_exit") _exit(0);
  if (leave == "abort") abort();
  if (leave == "kill") kill(getpid(), SIGKILL);
  if (leave == "term") kill(getpid(), SIGTERM);
  return 0;
}
