// A program to trace. It stands in for the CUDA driver: loads the library named by CUDA_INJECTION64_PATH and
// calls InitializeInjection; likewise for NVTX.
// Arguments: launches=N threads=N graphs=N windows=N copies=N allocations=N other=N nvtx=1 gate=1
// open=MS fork=early|late exit=_exit|kill|exec wait=FILE rate=N seconds=N kinds=N bursts=1 spin=1
// every=MS times=N beside=N from=N resets=N waits=0 graphs_beside=1
// graphs_here=1 failed=N loads=N code=N instantiates=N
// late=1 remove=1 init=first
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <sys/prctl.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

int cuInit(unsigned), cuGraphInstantiateWithFlags(void**, void*, unsigned long long);
void cuLaunch(uint32_t, uint32_t), cuReset(void), cuGraph(uint32_t), cuCopy(uint64_t), cuCall(uint32_t, int), cuEvent(uint64_t, int), cuAllocation(uint64_t), mock_say_all(void), mock_forget(void);
static uint32_t launches, threads;
static int word(int c, char** v, const char* key, int otherwise) {
  size_t n = strlen(key);
  for (int i = 1; i < c; i++)
    if (!strncmp(v[i], key, n) && v[i][n] == '=') return atoi(v[i] + n + 1);
  return otherwise;
}
static int is(int c, char** v, const char* what) {
  for (int i = 1; i < c; i++)
    if (!strcmp(v[i], what)) return 1;
  return 0;
}

// Launches next to the main thread until `going` is cleared.
static volatile int going = 1;
static int graphs_beside;
static void* beside(void* kinds) {
  while (graphs_beside && going) cuGraph(3), cuCall(17, 0), usleep(500);
  for (uint32_t i = 0; going; i++) cuLaunch(i % (uint32_t)(uintptr_t)kinds, 7), usleep(20);
  return NULL;
}

static void* body(void* number) {
  uint32_t t = (uint32_t)(uintptr_t)number;
  for (uint32_t i = t; i < launches; i += threads) cuLaunch(i, 7 + t);
  return NULL;
}

// NVTX as its header-only library does it: function slots that a tool fills in.
typedef struct { uint16_t version, size; uint32_t category; int32_t color_type; uint32_t color; int32_t payload_type, reserved; int64_t payload; int32_t message_type; const void* message; } Attributes;
static int (*push_a)(const char*), (*push_ex)(const Attributes*), (*pop)(void), (*domain_push)(void*, const Attributes*), (*domain_pop)(void*);
static uint64_t (*start_a)(const char*);
static void (*end)(uint64_t);
static void (*category_a)(void*, uint32_t, const char*), (*thread_a)(uint32_t, const char*);
static void *(*domain_a)(const char*), *(*registered_a)(void*, const char*);
static void** core[16] = { [5] = (void**)&start_a, [7] = (void**)&end, [8] = (void**)&push_ex, [9] = (void**)&push_a, [11] = (void**)&pop, [14] = (void**)&thread_a };
static void** core2[16] = { [4] = (void**)&domain_push, [5] = (void**)&domain_pop, [8] = (void**)&category_a, [10] = (void**)&registered_a, [12] = (void**)&domain_a };
static int module(uint32_t which, void**** table, uint32_t* slots) {
  *table = which == 1 ? core : core2, *slots = 16;
  return which == 1 || which == 5;
}
static const struct { size_t size; int (*module)(uint32_t, void****, uint32_t*); } CALLBACKS = { 16, module };
static const void* table(uint32_t id) { return id == 1 ? &CALLBACKS : NULL; }
static void nvtx(void) {
  void* tool = dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_NOW);
  int (*begin)(const void* (*)(uint32_t)) = NULL;
  *(void**)&begin = dlsym(tool, "InitializeInjectionNvtx2");
  begin(table);
}

static void* instantiate_beside(void* unused) {
  for (;;) cuGraphInstantiateWithFlags(NULL, NULL, 5), usleep(1000);
  return unused;
}
static void spin(long ns) {
  struct timespec t, begun;
  clock_gettime(CLOCK_MONOTONIC, &begun);
  do clock_gettime(CLOCK_MONOTONIC, &t);
  while ((t.tv_sec - begun.tv_sec) * 1000000000 + t.tv_nsec - begun.tv_nsec < ns);
}

static void call_found(const char* symbol) {
  int (*f)(void) = NULL;
  *(void**)&f = dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), symbol);
  if (!f || f()) exit(8);
}

int main(int c, char** v) {
  launches = (uint32_t)word(c, v, "launches", 0), threads = (uint32_t)word(c, v, "threads", 1);
  if (word(c, v, "undumpable", 0)) prctl(PR_SET_DUMPABLE, 0);
  // Emulates setproctitle.
  if (word(c, v, "rename", 0)) {
    char* end = v[c - 1] + strlen(v[c - 1]);
    memset(v[0], 0, (size_t)(end - v[0])), memcpy(v[0], "A::B", 4);
  }
  int early = is(c, v, "fork=early") ? fork() : 1, marks = word(c, v, "nvtx", 0);
  if (marks) nvtx();
  if (is(c, v, "init=first") && cuInit(0)) return 6;
  // Without the variable, the program was started by itself, and the tracer is attached to it later.
  if (getenv("CUDA_INJECTION64_PATH")) {
    void* tool = dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
    if (!tool) return puts(dlerror()), 9;
    int (*begin)(void) = NULL;
    *(void**)&begin = dlsym(tool, "InitializeInjection");
    begin();
  }
  if (cuInit(0)) return fprintf(stderr, "CUDA error %d\n", cuInit(0)), 6;
  // Calls that load code or launch kernels and fail with `code`, and graphs that are never launched.
  for (int i = word(c, v, "loads", 0); i > 0; i--) cuCall(16, word(c, v, "code", 1));
  for (int i = word(c, v, "failed", 0); i > 0; i--) cuCall(307, word(c, v, "code", 1));
  for (int i = word(c, v, "instantiates", 0); i > 0; i--) cuCall(513, 0);
  // instantiating=MS: graphs are instantiated one after the other for this long. seldom=1: only now and then, with host
  // code in between, so that no thread waits.
  for (int ms = word(c, v, "instantiating", 0); ms > 0; ms -= 50) {
    if (word(c, v, "seldom", 0)) spin(250000000), cuGraphInstantiateWithFlags(NULL, NULL, 5), ms -= 200;
    else cuGraphInstantiateWithFlags(NULL, NULL, 50), usleep(5000);
  }
  // The recording has a time limit, and the launches come after it.
  while (word(c, v, "late", 0) && mock_records()) cuCall(17, 0), usleep(1000);
  if (word(c, v, "remove", 0) && system("rm -f \"$WARPSCOPE_TRACE_OUT\".*")) return 7;
  if (marks) {
    char step[32];
    void* domain = domain_a("a domain");
    category_a(domain, 5, "input"), thread_a((uint32_t)gettid(), "the main one");
    Attributes a = { 3, sizeof a, 5, 1, 0xff00ff00, 2, 0, -7, 3, registered_a(domain, "registered") };
    for (int i = 0; i < 3; i++) {
      snprintf(step, sizeof step, "step %d", i);
      push_a(step), domain_push(domain, &a), cuLaunch((uint32_t)i, 7), domain_pop(domain), pop();
    }
    end(start_a("from thread to thread"));
  }
  // The capture range is closed for twice `open` ms, then stays open for `open` ms.
  long open_ms = word(c, v, "open", 0);
  if (open_ms) cuLaunch(99, 7), usleep((useconds_t)(2000 * open_ms));
  // gate=2: the functions are looked up in the library instead of reported by CUPTI.
  int looked = word(c, v, "gate", 0) == 2;
  if (looked) cuLaunch(100, 7), call_found("cuProfilerStart");
  else if (word(c, v, "gate", 0)) cuLaunch(100, 7), cuCall(308, 0);
  pthread_t all[16];
  for (uintptr_t t = 0; t < threads; t++) pthread_create(&all[t], NULL, body, (void*)t);
  for (uintptr_t t = 0; t < threads; t++) pthread_join(all[t], NULL);
  if (open_ms) cuLaunch(98, 7), usleep((useconds_t)(1000 * open_ms));
  if (looked) call_found("cuProfilerStop"), cuLaunch(200, 7);
  else if (word(c, v, "gate", 0)) cuCall(309, 0), cuLaunch(200, 7);
  for (int i = word(c, v, "graphs", 0); i > 0; i--) cuGraph(20);
  // windows=N times: a graph of 20 nodes, launched twice while the capture range
  // is open and once after CUPTI has stopped.
  for (int i = word(c, v, "windows", 0); i > 0; i--) {
    cuCall(308, 0), cuGraph(20), cuGraph(20), cuCall(309, 0);
    while (mock_records()) usleep(1000);
    cuGraph(20);
  }
  for (int i = word(c, v, "copies", 0); i > 0; i--) cuCopy((uint64_t)i * 4096), cuCall(17, i == 1 ? 700 : 0);
  for (int i = word(c, v, "other", 0); i > 0; i--) cuCall(99, 0);
  for (int i = word(c, v, "allocations", 0); i > 0; i--) cuAllocation((uint64_t)i << 20);
  mock_say_all();
  if (is(c, v, "fork=late")) {
    pid_t child = fork();
    if (!child) mock_forget(), cuLaunch(1, 7), exit(0);
    waitpid(child, NULL, 0);
  }
  if (early > 1) waitpid(early, NULL, 0);
  if (is(c, v, "exit=exec")) {
    char* const again[] = { v[0], (char*)"launches=10", NULL };
    execv("/proc/self/exe", again);
  }
  uint32_t kinds = (uint32_t)word(c, v, "kinds", 5000), from = (uint32_t)word(c, v, "from", 0);
  // resets=N: create a new context N times, at equal intervals.
  uint32_t resets = (uint32_t)word(c, v, "resets", 0);
  // instantiating_beside=1: a thread instantiates graphs, most of the time.
  pthread_t others[16], instantiating;
  if (word(c, v, "instantiating_beside", 0)) pthread_create(&instantiating, NULL, instantiate_beside, NULL), pthread_detach(instantiating);
  int waits = word(c, v, "waits", 1), graphs_here = word(c, v, "graphs_here", 0);
  graphs_beside = word(c, v, "graphs_beside", 0);
  int besides = (int)word(c, v, "beside", 0);
  for (int i = 0; i < besides; i++) pthread_create(&others[i], NULL, beside, (void*)(uintptr_t)kinds);
  // rate=N seconds=N: N launches a second in bursts of one millisecond, as a server makes them.
  for (uint32_t ms = 0, rate = (uint32_t)word(c, v, "rate", 0), most = 1000 * (uint32_t)word(c, v, "seconds", 0); rate && ms < most; ms++) {
    // With nvtx=1 and bursts=1, in every ten bursts: ranges pushed around the 4th, and a range
    // started at the 7th and ended at the 9th.
    int ranges = marks && word(c, v, "bursts", 0), in_ten = (int)(ms % 10);
    static uint64_t started;
    if (ranges && in_ten == 3) push_a("outer"), push_a("burst");
    if (ranges && in_ten == 6) started = start_a("batch");
    if (resets && ms && ms % (most / (resets + 1)) == 0) cuReset();
    for (uint32_t i = ms * rate / 1000; i < (ms + 1) * rate / 1000; i++) cuLaunch(from + i % kinds, 7);
    if (ranges && in_ten == 3) pop(), pop();
    if (ranges && in_ten == 8) end(started);
    if (graphs_here) cuGraph(3);
    // waits=1: for the stream; waits=2: for an event that was recorded just now, and for an old one; waits=3: for an old one.
    if (waits == 1) cuCall(17, 0);
    if (waits > 1 && !ms) cuEvent(1, 1);
    if (waits == 2) cuEvent(2 + ms % 3, 1), cuEvent(2 + ms % 3, 0);
    if (waits > 1) cuEvent(1, 0);
    if (word(c, v, "spin", 0)) spin(900000);
    else usleep(900);
  }
  // times=N every=MS: one launch at a time, then a pause.
  for (uint32_t i = 0, times = (uint32_t)word(c, v, "times", 0); i < times; i++) cuLaunch(i % kinds, 7), cuCall(17, 0), usleep(1000 * (uint32_t)word(c, v, "every", 1));
  going = 0;
  for (int i = 0; i < besides; i++) pthread_join(others[i], NULL);
  if (word(c, v, "spin", 0)) {
    // Print the CPU time used: on a busy machine the program was also descheduled.
    struct timespec cpu;
    clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &cpu);
    printf("%ld\n", (long)(cpu.tv_sec * 1000 + cpu.tv_nsec / 1000000));
  }
  if (is(c, v, "wait=1")) {
    // Wait for a byte on standard input.
    char byte;
    puts("ready"), fflush(stdout);
    if (read(0, &byte, 1) < 0) return 8;
    for (uint32_t i = 0; i < 5; i++) cuLaunch(1000 + i, 7);
    mock_say_all();
    puts("more"), fflush(stdout);
    if (read(0, &byte, 1) < 0) return 8;
  }
  if (is(c, v, "exit=_exit")) _exit(3);
  if (is(c, v, "exit=kill")) kill(getpid(), SIGKILL);
  return 5;
}
