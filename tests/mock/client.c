// Program that launches kernels and profiles some of them itself, in the way of torch.profiler (kineto): it calls CUPTI
// by name, gives it a clock of its own, flushes only if CUPTI holds one of its buffers, and keeps its subscription.
// Prints each record that it receives; `tries` and the words that follow say how its calls went.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
typedef struct { uint32_t leaving; const char* function; const void* parameters; void* returned; const char* symbol; void* context; uint32_t context_id; uint64_t* carried; uint32_t correlation; } Call;
int cuptiSubscribe(void**, void (*)(void*, uint32_t, uint32_t, const Call*), void*), cuptiUnsubscribe(void*), cuptiFinalize(void);
int cuptiEnableDomain(uint32_t, void*, uint32_t), cuptiEnableCallback(uint32_t, void*, uint32_t, uint32_t);
int cuptiActivityRegisterCallbacks(void (*)(uint8_t**, size_t*, size_t*), void (*)(void*, uint32_t, uint8_t*, size_t, size_t));
int cuptiActivityEnable(uint32_t), cuptiActivityDisable(uint32_t), cuptiActivityFlushAll(uint32_t), cuptiActivityGetNextRecord(uint8_t*, size_t, uint8_t**);
int cuptiActivityRegisterTimestampCallback(uint64_t (*)(void)), cuptiActivitySetAttribute(uint32_t, size_t*, void*);
// CUPTI's functions, called by name or, with `looked`, as found in a library.
#define FUNCTIONS X(cuptiSubscribe) X(cuptiUnsubscribe) X(cuptiFinalize) X(cuptiEnableDomain) X(cuptiEnableCallback) X(cuptiActivityRegisterCallbacks) X(cuptiActivityEnable) \
  X(cuptiActivityDisable) X(cuptiActivityFlushAll) X(cuptiActivityGetNextRecord) X(cuptiActivityRegisterTimestampCallback) X(cuptiActivitySetAttribute)
#define X(name) static __typeof__(name)* call_##name = name;
FUNCTIONS
#undef X
static void look_up(const char* file) {
  void* library = dlopen(file, RTLD_NOW);
#define X(name) *(void**)&call_##name = dlsym(library, #name);
  FUNCTIONS
#undef X
  // Other lookups still see their own caller: RTLD_NEXT finds the object after this program, and unknown names fail.
  Dl_info next;
  if (dladdr(dlsym(RTLD_NEXT, "_exit"), &next)) printf("lookup next %s\n", strrchr(next.dli_fname, '/') + 1);
  dlerror();
  int found = dlsym(library, "cuptiNothing") != NULL;
  printf("lookup of nothing %d %d\n", found, dlerror() != NULL);
}
void cuLaunch(uint32_t ordinal, uint32_t stream), cuCall(uint32_t function, int returned), mock_say_all(void);

static void* subscriber;
static pthread_t caller;
static int heard, wrong, finalizing;
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
enum { SIZE = 4096, MOST = 512 };
static struct { uint8_t* bytes; size_t valid; } ready[MOST];
static int ready_count, held;
static uint64_t ns(int clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (uint64_t)t.tv_sec * 1000000000ull + (uint64_t)t.tv_nsec;
}
// The client's own clock: three ticks per nanosecond, from another origin.
static uint64_t ticks(void) { return 3 * ns(CLOCK_MONOTONIC) + 12345; }
// Difference of the two system clocks, determined once: of up to 100 readings, uses the one that took the least time.
static uint64_t clocks_apart(void) {
  static uint64_t apart, best = ~0ull;
  for (int i = 0; best == ~0ull || (i && i < 100); i++) {
    uint64_t before = ns(CLOCK_MONOTONIC), real = ns(CLOCK_REALTIME), took = ns(CLOCK_MONOTONIC) - before;
    if (took < best) best = took, apart = real - before - took / 2;
  }
  return apart;
}
static uint64_t wall(uint64_t t) { return (t - 12345) / 3 + clocks_apart(); }
static void on_call(void* user, uint32_t domain, uint32_t id, const Call* call) {
  if (user != &subscriber) wrong++;
  // The tracer's thread asks the driver about the GPUs, which a profiler hears if it listens to all calls.
  if (!pthread_equal(pthread_self(), caller)) return;
  if (finalizing) {
    if (domain != 1 || !call->leaving) return;
    finalizing = 0;
    printf("unsubscribe %d\n", call_cuptiUnsubscribe(subscriber));
    printf("finalize %d\n", call_cuptiFinalize());
    return;
  }
  if (domain != 1 || id != 17) wrong++;
  // No other subscriber may change the word that this one stores from the beginning of a call to its end.
  if (!call->leaving) *call->carried = 4711 + call->correlation;
  else if (*call->carried != 4711 + call->correlation) wrong++;
  heard++;
}
static void ask(uint8_t** bytes, size_t* size, size_t* most) {
  pthread_mutex_lock(&lock);
  *bytes = malloc(SIZE), *size = SIZE, *most = 0, held++;
  pthread_mutex_unlock(&lock);
}
static void done(void* context, uint32_t stream, uint8_t* bytes, size_t size, size_t valid) {
  (void)context, (void)stream, (void)size;
  pthread_mutex_lock(&lock);
  if (ready_count < MOST) ready[ready_count].bytes = bytes, ready[ready_count++].valid = valid;
  held--;
  pthread_mutex_unlock(&lock);
}
static const uint32_t KINDS[] = { 1, 2, 10, 4, 5, 17 };
// `early`: kinds are enabled before the buffers are registered. `serial`: the serial kind of kernel records is used.
static int early, serial;
static uint32_t kinds(int i) { return serial && KINDS[i] == 10 ? 3 : KINDS[i]; }
static void profile_begin(void) {
  uint8_t zero = 0;
  size_t one = 1;
  if (!subscriber) {
    call_cuptiActivityRegisterTimestampCallback(ticks);
    printf("subscribe %d\n", call_cuptiSubscribe(&subscriber, on_call, &subscriber));
  }
  call_cuptiEnableCallback(1, subscriber, 1, 17);
  call_cuptiActivitySetAttribute(9, &one, &zero);
  for (int i = 0; early && i < 6; i++) call_cuptiActivityEnable(kinds(i));
  call_cuptiActivityRegisterCallbacks(ask, done);
  for (int i = 0; !early && i < 6; i++) call_cuptiActivityEnable(kinds(i));
}
static void profile_end(int number) {
  for (int i = 0; i < 6; i++) call_cuptiActivityDisable(kinds(i));
  call_cuptiEnableCallback(0, subscriber, 1, 17);
  if (held) call_cuptiActivityFlushAll(1);
  if (held) wrong++;
  for (int i = 0; i < ready_count; i++) {
    uint8_t* r = NULL;
    while (!call_cuptiActivityGetNextRecord(ready[i].bytes, ready[i].valid, &r)) {
      uint32_t kind = *(uint32_t*)r, kernel = kind == 10;
      uint64_t start = wall(*(uint64_t*)(r + (kernel ? 16 : 8))), end = wall(*(uint64_t*)(r + (kernel ? 24 : 16)));
      if (kernel || kind == 4 || kind == 5) printf("record %d %u %u %llu %llu\n", number, kind, *(uint32_t*)(r + (kernel ? 92 : 32)), (unsigned long long)start, (unsigned long long)end);
    }
    free(ready[i].bytes);
  }
  ready_count = 0;
}
static const char* text(int c, char** v, const char* key) {
  for (int i = 1; i < c; i++)
    if (!strncmp(v[i], key, strlen(key)) && v[i][strlen(key)] == '=') return v[i] + strlen(key) + 1;
  return NULL;
}
static int word(int c, char** v, const char* key, int otherwise) {
  const char* value = text(c, v, key);
  return value ? atoi(value) : otherwise;
}
// first=1: the profiler is used before CUDA. profiles=N: N profiles. wait=1: a byte on standard input ends each pause.
// looked=FILE: its functions are those of this library; early=1: looked up before CUDA is used.
// order=1: it enables kinds before it registers buffers. serial=1: it asks for the serial kind of kernel records.
// finalize=1: it calls cuptiFinalize at the end of a call, and profiles once more.
int main(int c, char** v) {
  int profiles = word(c, v, "profiles", 1), ordinal = 0, pauses = word(c, v, "wait", 0);
  setvbuf(stdout, NULL, _IOLBF, 0);
  caller = pthread_self();
  const char* library = text(c, v, "looked");
  early = word(c, v, "order", 0), serial = word(c, v, "serial", 0);
  if (library && word(c, v, "early", 0)) look_up(library);
  if (word(c, v, "first", 0)) profile_begin();
  void* tool = dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
  int (*begin)(void) = NULL;
  if (tool) *(void**)&begin = dlsym(tool, "InitializeInjection");
  if (begin) begin();
  if (library && !word(c, v, "early", 0)) look_up(library);
  char byte;
  for (int p = 0; p < profiles; p++) {
    if (pauses) puts("pause"), byte = (char)getchar();
    for (int i = 0; i < 30; i++) cuLaunch((uint32_t)ordinal++, 7);
    // Lets the kernels launched so far begin before the profile does.
    usleep(2000);
    if (p || !word(c, v, "first", 0)) profile_begin();
    printf("from %d\n", p);
    for (int i = 0; i < 100; i++) cuLaunch((uint32_t)ordinal++, 7), cuCall(17, 0);
    usleep(20000);
    profile_end(p);
    for (int i = 0; i < 30; i++) cuLaunch((uint32_t)ordinal++, 7);
    if (word(c, v, "finalize", 0) && p + 1 < profiles) {
      call_cuptiEnableDomain(1, subscriber, 1);
      finalizing = 1;
      cuCall(17, 0);
      subscriber = NULL;
    }
  }
  if (pauses) puts("pause"), byte = (char)getchar();
  (void)byte;
  mock_say_all();
  printf("heard %d wrong %d\n", heard, wrong);
  return 0;
}
