// Programs with rare behaviour that a tracer must survive: cancelled threads, NVTX and exit in signal handlers, and
// fork while other threads are busy. The first argument selects the case; counts of what was done go to standard
// output. As in program.c, the driver and NVTX are emulated.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/time.h>
#include <time.h>
#include <sys/wait.h>
#include <unistd.h>

void cuLaunch(uint32_t, uint32_t);
static int no_push(const char* text) { return text ? 0 : 1; }
static int no_pop(void) { return 0; }
static int (*push_a)(const char*) = no_push, (*pop)(void) = no_pop;
static void (*category_a)(void*, uint32_t, const char*);
static void** core[16] = { [9] = (void**)&push_a, [11] = (void**)&pop };
static void** core2[16] = { [8] = (void**)&category_a };
static int module(uint32_t which, void**** table, uint32_t* slots) {
  *table = which == 1 ? core : core2, *slots = 16;
  return which == 1 || which == 5;
}
static const struct { size_t size; int (*module)(uint32_t, void****, uint32_t*); } CALLBACKS = { 16, module };
static const void* table(uint32_t id) { return id == 1 ? &CALLBACKS : NULL; }
static void nvtx(void) {
  if (!getenv("NVTX_INJECTION64_PATH")) return;
  int (*begin)(const void* (*)(uint32_t)) = NULL;
  *(void**)&begin = dlsym(dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_NOW), "InitializeInjectionNvtx2");
  begin(table);
}
static void cuda(void) {
  if (!getenv("CUDA_INJECTION64_PATH")) return;
  int (*begin)(void) = NULL;
  *(void**)&begin = dlsym(dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW), "InitializeInjection");
  begin();
}

// Pushes and pops a range with a new name, without the C library: it runs in signal handlers and where a
// thread may be cancelled at any instruction.
static void mark(char kind, uint64_t number) {
  char text[24] = { kind, '-' }, *p = text + 2;
  do *p++ = (char)('a' + number % 26);
  while (number /= 26);
  push_a(text), pop();
}
static volatile uint64_t marks, launches;
static uint64_t next(volatile uint64_t* of) { return __atomic_fetch_add(of, 1, __ATOMIC_RELAXED); }

static volatile int going = 1;
static void* launch(void* unused) {
  for (uint32_t i = 0; going; i++) cuLaunch(i % 100, 7), next(&launches);
  return NULL;
}

// ---- Threads cancelled between two ranges, or anywhere.

static volatile uint64_t numbers;
static void* marking(void* anywhere) {
  mark('c', next(&numbers)), next(&marks);
  if (anywhere) pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  for (;;) {
    mark('c', next(&numbers)), next(&marks);
    if (!anywhere) pthread_testcancel();
  }
  return NULL;
}
static int cancel(int anywhere) {
  enum { ROUNDS = 40, AT_ONCE = 8 };
  pthread_t all[AT_ONCE];
  for (int round = 0; round < ROUNDS; round++) {
    uint64_t enough = marks + 400;
    for (int i = 0; i < AT_ONCE; i++) pthread_create(&all[i], NULL, marking, (void*)(intptr_t)anywhere);
    while (marks < enough) sched_yield();
    for (int i = 0; i < AT_ONCE; i++) pthread_cancel(all[i]);
    for (int i = 0; i < AT_ONCE; i++) pthread_join(all[i], NULL);
    cuLaunch(1, 7);
  }
  printf("%lu\n", (unsigned long)marks);
  return 5;
}

// ---- Signal handlers.

static volatile uint64_t alarms, last;
static volatile int quick;
static void on_alarm(int signal) {
  (void)signal;
  mark('s', next(&alarms)), next(&marks);
}
static void on_last_alarm(int signal) {
  (void)signal;
  if (++alarms < last) return;
  char text[64];
  int n = snprintf(text, sizeof text, "%lu %lu\n", (unsigned long)marks, (unsigned long)launches);
  if (write(1, text, (size_t)n) < 0) _exit(1);
  if (quick) _exit(9);
  exit(9);
}
// Opens a capture range by NVTX name, in a handler that may interrupt the driver.
static void on_gate_alarm(int signal) {
  (void)signal;
  next(&alarms);
  push_a("gate"), pop();
}
static void alarms_begin(void (*handler)(int), int us) {
  struct sigaction action = { .sa_handler = handler };
  struct itimerval every = { { 0, us }, { 0, us } };
  sigaction(SIGALRM, &action, NULL);
  setitimer(ITIMER_REAL, &every, NULL);
}
static int handler(int masked) {
  sigset_t alarm;
  sigemptyset(&alarm), sigaddset(&alarm, SIGALRM);
  uint64_t most = last ? ~0ull : 400;
  for (uint64_t i = 0; alarms < most || i < 5000; i++) {
    mark('m', i), next(&marks);
    if (i % 4) continue;
    // A handler that runs during a launch has interrupted CUPTI, which holds its own locks.
    if (masked) pthread_sigmask(SIG_BLOCK, &alarm, NULL);
    cuLaunch(i % 100, 7), next(&launches);
    if (masked) pthread_sigmask(SIG_UNBLOCK, &alarm, NULL);
  }
  struct itimerval none = { 0 };
  setitimer(ITIMER_REAL, &none, NULL);
  printf("%lu %lu\n", (unsigned long)marks, (unsigned long)launches);
  return 5;
}

// ---- Forks.

static int wait_for(pid_t child) {
  int status = 0;
  waitpid(child, &status, 0);
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128;
}
static int forks(void) {
  pthread_t all[3];
  for (int i = 0; i < 3; i++) pthread_create(&all[i], NULL, launch, NULL);
  for (int i = 0; i < 80; i++) {
    mark('f', next(&numbers)), next(&marks);
    pid_t child = fork();
    if (!child) {
      if (i % 4 == 0) _exit(3);
      if (i % 4 == 1) execl("/bin/sh", "sh", "-c", "exit 3", NULL);
      for (int k = 0; i % 4 == 2 && k < 5000; k++) mark('x', (uint64_t)k);
      exit(3);
    }
    if (wait_for(child) != 3) return 6;
  }
  going = 0;
  for (int i = 0; i < 3; i++) pthread_join(all[i], NULL);
  printf("%lu %lu\n", (unsigned long)marks, (unsigned long)launches);
  return 5;
}
static void* naming(void* unused) {
  for (uint32_t i = 1; going; i++) mark('n', next(&numbers)), category_a(NULL, i, "a category");
  return NULL;
}
// CUDA is first initialised in the children, while threads of the parent name NVTX categories.
static int early(void) {
  pthread_t all[3];
  for (int i = 0; i < 3; i++) pthread_create(&all[i], NULL, naming, NULL);
  for (int i = 0; i < 40; i++) {
    pid_t child = fork();
    if (!child) {
      cuda();
      for (uint32_t k = 0; k < 5; k++) mark('e', k), cuLaunch(k, 7);
      exit(3);
    }
    if (wait_for(child) != 3) return 6;
  }
  going = 0;
  for (int i = 0; i < 3; i++) pthread_join(all[i], NULL);
  return 5;
}

// ---- All of it at once, in an order chosen by a seed. What is printed depends on the seed only, traced or not.

static uint32_t seed;
static uint32_t chosen(uint32_t of) {
  seed = seed * 1664525u + 1013904223u;
  return (seed >> 8) % of;
}
static void* some_launches(void* count) {
  for (intptr_t i = 0; i < (intptr_t)count; i++) mark('t', next(&numbers)), cuLaunch((uint32_t)i % 100, 7);
  return NULL;
}
static void* some_marks(void* count) {
  for (intptr_t i = 0; i < (intptr_t)count; i++) mark('u', next(&numbers));
  return NULL;
}
static void* leaving(void* code) {
  _exit((int)(intptr_t)code);
  return NULL;
}
// Ends the child in one of the ways that a process can end. Its exit code is `code` or that of a signal. It launches
// nothing: CUDA cannot be used in a child of fork.
static void child_ends(const char* self, uint32_t way, int code) {
  char text[16];
  snprintf(text, sizeof text, "%d", code);
  pthread_t all[3];
  some_marks((void*)20);
  switch (way) {
  case 0: exit(code);
  case 1: _exit(code);
  case 2: execl(self, self, "code", text, NULL); _exit(99);
  case 3: raise(SIGKILL);
  case 4: raise(SIGTERM);
  case 5:
    // Several threads end the process at the same time.
    for (int i = 0; i < 3; i++) pthread_create(&all[i], NULL, leaving, (void*)(intptr_t)code);
    for (;;) pause();
  case 6:
    execl("/nowhere", "nowhere", NULL);
    exit(code);
  default:
    pthread_create(&all[0], NULL, some_marks, (void*)200);
    exit(code);
  }
}
static int ended(pid_t child) {
  int status = 0;
  while (waitpid(child, &status, 0) < 0) continue;
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}
static void on_busy_alarm(int signal) {
  (void)signal;
  mark('h', next(&alarms));
}
static int stress(const char* self, uint32_t rounds) {
  alarms_begin(on_busy_alarm, 700);
  for (uint32_t round = 0; round < rounds; round++) {
    pthread_t all[8];
    uint32_t cancelled = chosen(3), working = 1 + chosen(4), way = chosen(8);
    int code = 1 + (int)chosen(90);
    for (uint32_t i = 0; i < cancelled; i++) pthread_create(&all[i], NULL, marking, (void*)(intptr_t)chosen(2));
    for (uint32_t i = 0; i < working; i++) pthread_create(&all[cancelled + i], NULL, some_launches, (void*)(intptr_t)(50 + chosen(200)));
    pid_t child = fork();
    if (!child) child_ends(self, way, code);
    for (uint32_t i = 0; i < cancelled; i++) pthread_cancel(all[i]);
    for (uint32_t i = 0; i < cancelled + working; i++) pthread_join(all[i], NULL);
    printf("%u %u %d\n", round, way, ended(child));
    fflush(stdout);
  }
  struct itimerval none = { 0 };
  setitimer(ITIMER_REAL, &none, NULL);
  // The time just before the exit, for tests that measure how long the exit takes.
  struct timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  fprintf(stderr, "%ld.%09ld\n", (long)now.tv_sec, now.tv_nsec);
  uint32_t way = chosen(2);
  if (way) return 5;
  _exit(7);
}

int main(int c, char** v) {
  const char* what = c > 1 ? v[1] : "";
  last = c > 2 ? strtoull(v[2], NULL, 10) : 0;
  nvtx();
  if (!strcmp(what, "early")) return early();
  cuda();
  if (!strcmp(what, "cancel")) return cancel(0);
  if (!strcmp(what, "cancel-anywhere")) return cancel(1);
  if (!strcmp(what, "forks")) return forks();
  if (!strcmp(what, "stress")) return seed = (uint32_t)last, stress(v[0], c > 3 ? (uint32_t)strtoul(v[3], NULL, 10) : 20);
  if (!strcmp(what, "code")) return mark('q', 1), cuLaunch(1, 7), (int)last;
  quick = strstr(what, "quick") != NULL;
  alarms_begin(strstr(what, "gate") ? on_gate_alarm : last ? on_last_alarm : on_alarm, 150);
  return handler(strstr(what, "masked") != NULL);
}
