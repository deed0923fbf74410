// A program that notices if its threads were stopped or redirected: delicate KIND SECONDS
//
// Ends with code 0 if it did not notice.
#define _GNU_SOURCE
#include <pthread.h>
#include <limits.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

int cuInit(unsigned);

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time);
  return (double)time.tv_sec + (double)time.tv_nsec * 1e-9;
}
static double end;
static void* idle(void* unused) {
  for (;;) pause();
  return unused;
}
static void start(void* (*function)(void*)) {
  pthread_t thread;
  pthread_create(&thread, NULL, function, NULL);
}

// epoll: waits without a signal handler, so nothing may interrupt them.
static int events(void) {
  start(idle);
  int file = epoll_create1(0), failed = 0;
  struct epoll_event event;
  while (now() < end) failed += epoll_wait(file, &event, 1, 20) < 0;
  return failed;
}

// pipe: nearly all writes must be complete; a few may be cut short, because their thread was stopped just as it woke.
static int ends[2];
static volatile int shorts, written;
static void* write_blocks(void* unused) {
  static char block[1 << 20];
  for (;; written++) shorts += write(ends[1], block, sizeof block) != (long)sizeof block;
  return unused;
}
static void* read_slowly(void* unused) {
  static char block[4096];
  for (;;) {
    if (read(ends[0], block, sizeof block) < 0) return unused;
    for (double until = now() + 3e-4; now() < until;) {}
  }
}
static int writes(void) {
  if (pipe(ends)) return 1;
  start(write_blocks), start(read_slowly), start(idle);
  while (now() < end) poll(NULL, 0, 50);
  return shorts > 2 + written / 20 ? shorts : 0;
}

// stack: a handler waits on a small alternate stack, below which nothing may be written.
enum { ABOVE = 8192, BELOW = 1 << 19 };
static void wait_here(int signal) {
  (void)signal;
  while (now() < end) poll(NULL, 0, 300);
}
static void* on_small_stack(void* unused) {
  wait_here(0);
  return unused;
}
static int stacks(void) {
  char* area = mmap(NULL, BELOW + ABOVE, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  memset(area, 0x5a, BELOW + ABOVE);
  stack_t stack = { .ss_sp = area + BELOW, .ss_size = ABOVE };
  struct sigaction action = { .sa_handler = wait_here, .sa_flags = SA_ONSTACK };
  pthread_attr_t small;
  pthread_t thread;
  pthread_attr_init(&small), pthread_attr_setstacksize(&small, (size_t)sysconf(_SC_THREAD_STACK_MIN));
  pthread_create(&thread, &small, on_small_stack, NULL);
  sigaltstack(&stack, NULL), sigaction(SIGUSR1, &action, NULL), raise(SIGUSR1);
  int changed = 0;
  for (int i = 0; i < BELOW; i++) changed += area[i] != 0x5a;
  return changed;
}

int main(int c, char** v) {
  if (c < 3 || cuInit(0)) return 2;
  end = now() + atof(v[2]);
  int noticed = !strcmp(v[1], "epoll") ? events() : !strcmp(v[1], "pipe") ? writes() : stacks();
  if (noticed) printf("%s: %d\n", v[1], noticed);
  fflush(stdout);
  _exit(noticed ? 3 : 0);
}
