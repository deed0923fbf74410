// Loops in native code whose guilty function is known: `native KIND SECONDS`. Each step launches a few kernels and then
// spends its time in one function, called through two others. MOCK_NO_PERF=ERROR: a filter refuses perf_event_open.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void cuLaunch(uint32_t, uint32_t), cuGraphCapture(uint32_t), cuGraphInstantiate(uint32_t), cuGraph(uint32_t);
#define KEPT __attribute__((noinline, noclone))

static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static const uint64_t STEP_NS = 20000000;
static volatile uint64_t sink;

// Another thread wakes the loop when a step is over.
static int ends[2];
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER, queue_lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t filled = PTHREAD_COND_INITIALIZER;
static int items;
static volatile int held;
static void pause_ns(uint64_t ns) { nanosleep(&(struct timespec){ 0, (long)ns }, NULL); }
static void* feed(void* kind) {
  for (;;) {
    if (!strcmp(kind, "lock")) {
      pthread_mutex_lock(&lock), held = 1, pause_ns(STEP_NS), held = 0, pthread_mutex_unlock(&lock);
      while (!held && pthread_mutex_trylock(&lock)) pause_ns(10000);
      if (!held) pthread_mutex_unlock(&lock);
      pause_ns(100000);
      continue;
    }
    pause_ns(STEP_NS);
    if (!strcmp(kind, "read") && write(ends[1], "x", 1) != 1) return NULL;
    if (!strcmp(kind, "queue")) pthread_mutex_lock(&queue_lock), items++, pthread_cond_signal(&filled), pthread_mutex_unlock(&queue_lock);
  }
}

KEPT void compute_batch(uint64_t end) {
  uint64_t x = 1;
  while (now() < end)
    for (int i = 0; i < 20000; i++) x = x * 6364136223846793005u + 1442695040888963407u;
  sink = x;
}
KEPT int compare_items(const void* a, const void* b) { return (*(const int*)a > *(const int*)b) - (*(const int*)a < *(const int*)b); }
KEPT void sort_batch(uint64_t end) {
  static int all[4096];
  while (now() < end) {
    for (int i = 0; i < 4096; i++) all[i] = (int)(i * 2654435761u >> 7);
    qsort(all, 4096, sizeof *all, compare_items);
  }
  sink += (uint64_t)all[7];
}
KEPT void read_batch(uint64_t end) {
  char byte;
  (void)end;
  if (read(ends[0], &byte, 1) != 1) exit(4);
  sink++;
}
KEPT void lock_batch(uint64_t end) {
  (void)end;
  while (!held) pause_ns(10000);
  pthread_mutex_lock(&lock);
  sink++;
  pthread_mutex_unlock(&lock);
}
KEPT void take_batch(uint64_t end) {
  (void)end;
  pthread_mutex_lock(&queue_lock);
  while (!items) pthread_cond_wait(&filled, &queue_lock);
  items--;
  pthread_mutex_unlock(&queue_lock);
}
KEPT void sleep_between(uint64_t end) {
  uint64_t t = now();
  if (t < end) pause_ns(end - t);
  sink++;
}
// New memory on each turn: most of the time passes in the kernel, in page faults.
KEPT void touch_pages(uint64_t end) {
  while (now() < end) {
    char* p = mmap(NULL, 8 << 20, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    for (int i = 0; i < 8 << 20; i += 4096) p[i] = 1;
    munmap(p, 8 << 20);
  }
}

// A graph with a node of each layer's attention and MLP.
KEPT void attention(uint32_t node) { cuGraphCapture(node), sink++; }
KEPT void mlp(uint32_t node) { cuGraphCapture(node), sink++; }
KEPT void replay(uint64_t end) {
  (void)end;
  cuGraph(4), pause_ns(1000000);
}

static const struct { const char* name; void (*work)(uint64_t); } KINDS[] = {
  { "compute", compute_batch }, { "sort", sort_batch }, { "read", read_batch }, { "lock", lock_batch },
  { "queue", take_batch }, { "sleep", sleep_between }, { "pages", touch_pages },
  { "graph", replay },
};

KEPT void prepare_step(void (*work)(uint64_t)) {
  work(now() + STEP_NS);
  sink++;
}
KEPT void run_step(void (*work)(uint64_t), uint32_t i) {
  for (uint32_t k = 0; k < 4 && work != replay; k++) cuLaunch(4 * i + k, 7);
  prepare_step(work);
  sink++;
}

static void refuse_perf(unsigned error) {
  struct sock_filter all[] = {
    BPF_STMT(BPF_LD | BPF_W | BPF_ABS, 0),
    BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_perf_event_open, 0, 1),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error),
    BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
  };
  struct sock_fprog filter = { sizeof all / sizeof *all, all };
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) || prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &filter)) exit(3);
}

int main(int c, char** v) {
  if (getenv("MOCK_NO_PERF")) refuse_perf((unsigned)atoi(getenv("MOCK_NO_PERF")));
  int (*begin)(void);
  *(void**)&begin = dlsym(dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW), "InitializeInjection");
  begin();
  if (c < 3 || pipe(ends)) return 2;
  if (!strcmp(v[1], "graph")) {
    for (uint32_t layer = 0; layer < 2; layer++) attention(2 * layer), mlp(2 * layer + 1);
    cuGraphInstantiate(4);
  }
  pthread_t thread;
  pthread_create(&thread, NULL, feed, v[1]);
  uint64_t end = now() + (uint64_t)(atof(v[2]) * 1e9);
  for (uint32_t k = 0; k < sizeof KINDS / sizeof *KINDS; k++)
    for (uint32_t i = 0; !strcmp(KINDS[k].name, v[1]) && now() < end; i++) run_step(KINDS[k].work, i);
  return 5;
}
