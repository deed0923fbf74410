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
#include <sys/wait.h>
#include <unistd.h>

void cuLaunch(uint32_t, uint32_t);
static int (*push_a)(const char*), (*pop)(void);
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
  int (*begin)(const void* (*)(uint32_t)) = NULL;
  *(void**)&begin = dlsym(dlopen(getenv("NVTX_INJECTION64_PATH"), RTLD_NOW), "InitializeInjectionNvtx2");
  begin(table);
}
static void cuda(void) {
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

int main(int c, char** v) {
  const char* what = c > 1 ? v[1] : "";
  last = c > 2 ? strtoull(v[2], NULL, 10) : 0;
  nvtx();
  if (!strcmp(what, "early")) return early();
  cuda();
  if (!strcmp(what, "cancel")) return cancel(0);
  if (!strcmp(what, "cancel-anywhere")) return cancel(1);
  if (!strcmp(what, "forks")) return forks();
  quick = strstr(what, "quick") != NULL;
  alarms_begin(strstr(what, "gate") ? on_gate_alarm : last ? on_last_alarm : on_alarm, 150);
  return handler(strstr(what, "masked") != NULL);
}
