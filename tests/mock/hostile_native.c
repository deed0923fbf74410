// A program whose native stacks mislead whoever reads them: `hostile_native SECONDS`. Its main thread launches kernels on
// false stacks, in turn: with return addresses that are none, with a stack pointer far away, on other stacks, in frames
// of a megabyte, in deep recursions, from modules that are unloaded, in generated code, in signal handlers. Other
// threads launch and end.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <signal.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <ucontext.h>
#include <unistd.h>

void cuLaunch(uint32_t, uint32_t);
#define KEPT __attribute__((noinline, noclone))
static uint64_t seed = 88172645463325252ull;
static uint64_t any(void) { return seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17; }
static uint64_t now(void) {
  struct timespec t;
  clock_gettime(CLOCK_MONOTONIC, &t);
  return (uint64_t)t.tv_sec * 1000000000u + (uint64_t)t.tv_nsec;
}
static volatile uint64_t sink;
static void spin(void) {
  for (volatile int k = 0; k < 300000; k++);
}
static void launch(void) {
  static uint32_t i;
  cuLaunch(__atomic_fetch_add(&i, 1, __ATOMIC_RELAXED) % 8, 7);
}

// Runs on a stack filled with nonsense, with no caller's frames above it.
enum { STACK = 256 << 10 };
static char* other;
#if defined(__x86_64__)
#define ON_STACK(sp, fp)                                                                                               \
  __asm__ volatile(                                                                                                    \
    "mov %%rsp, %%r12; mov %%rbp, %%r13; mov %0, %%rsp; mov %1, %%rbp\n1: dec %2; jnz 1b\nmov %%r12, %%rsp; mov %%r13, %%rbp" \
    :                                                                                                                  \
    : "r"(sp), "r"(fp), "r"(3000000ul)                                                                                 \
    : "r12", "r13", "memory", "cc")
#define WAIT_ON_STACK(sp, fp, time)                                                                                    \
  __asm__ volatile(                                                                                                    \
    "mov %%rsp, %%r12; mov %%rbp, %%r13; mov %0, %%rsp; mov %1, %%rbp; mov $35, %%eax; mov %2, %%rdi; xor %%esi, %%esi\n" \
    "syscall\nmov %%r12, %%rsp; mov %%r13, %%rbp"                                                                      \
    :                                                                                                                  \
    : "r"(sp), "r"(fp), "r"(time)                                                                                      \
    : "r12", "r13", "rax", "rdi", "rsi", "rcx", "r11", "memory", "cc")
#else
#define ON_STACK(sp, fp) spin()
#define WAIT_ON_STACK(sp, fp, time) spin()
#endif
static const struct timespec SHORT = { 0, 8000000 };
static void* code_of(int i) {
  void* all[] = { (void*)spin, (void*)launch, (void*)getenv, (void*)qsort, (void*)any, (void*)&seed, NULL, (void*)1, (void*)~0ul };
  return all[i % 9];
}
KEPT void on_nonsense(void) {
  uint64_t* words = (uint64_t*)other;
  for (int i = 0; i < STACK / 8; i++) {
    // Pointers into this stack, near code, to the word itself, or random numbers.
    uint64_t kinds[] = { (uint64_t)&words[any() % (STACK / 8)], (uint64_t)code_of((int)(any() % 9)) + any() % 64, (uint64_t)&words[i], any() };
    words[i] = kinds[any() % 4];
  }
  char* sp = other + any() % (STACK - 64) / 16 * 16;
  if (any() % 2) ON_STACK(sp, any() % 2 ? (void*)sp : (void*)any());
  else WAIT_ON_STACK(sp, other + any() % STACK, &SHORT);
}
KEPT void far_away(void) {
  static const uint64_t FAR[] = { 0, 8, 4095, 1ul << 46, ~0ul - 7, 1ul << 63, 0x7ffffffff000, 0xffffffffff600000 };
  uint64_t sp = any() % 2 ? FAR[any() % 8] : any();
  if (any() % 2) ON_STACK(sp, any());
  else WAIT_ON_STACK(sp, any(), &SHORT);
  // The end of a mapping.
  WAIT_ON_STACK(other + STACK - 8, other + STACK - 8, &SHORT);
}
KEPT void large_frame(void) {
  volatile char all[1 << 20];
  all[any() % sizeof all] = 1;
  launch(), spin();
  nanosleep(&SHORT, NULL);
  sink += (uint64_t)all[5];
}
KEPT void deep(int levels) {
  volatile char frame[64];
  frame[levels % 64] = 1;
  if (levels) deep(levels - 1);
  else launch(), spin(), nanosleep(&SHORT, NULL);
  sink += (uint64_t)frame[0];
}
// A frame whose size is known only from its frame pointer, on top of what earlier calls left behind.
KEPT void variable(size_t bytes) {
  volatile char* all = __builtin_alloca(bytes);
  all[bytes / 2] = 1;
  launch(), spin(), nanosleep(&SHORT, NULL);
  sink += (uint64_t)all[0];
}
// The stack is overwritten while a sample is taken.
KEPT void torn(void) {
  uint64_t end = now() + 10000000;
  volatile uint64_t frame[512];
  while (now() < end)
    for (int i = 0; i < 512; i++) frame[i] = any() % 2 ? (uint64_t)code_of(i) : any();
  sink += frame[3];
}
static void unload(void) {
  void* library = dlopen(getenv("HOSTILE_LIBRARY"), RTLD_NOW);
  if (!library) exit(3);
  void (*work)(void (*)(void));
  *(void**)&work = dlsym(library, any() % 2 ? "library_spin" : "library_call");
  launch(), work(spin);
  dlclose(library);
}
// Generated code, which belongs to no module.
static void generated(void) {
#if defined(__x86_64__)
  // sub $8, %rsp; call *%rdi; add $8, %rsp; ret, and a copy with a frame pointer.
  static const unsigned char CODE[] = { 0x48, 0x83, 0xec, 8, 0xff, 0xd7, 0x48, 0x83, 0xc4, 8, 0xc3 };
  static const unsigned char FRAMED[] = { 0x55, 0x48, 0x89, 0xe5, 0xff, 0xd7, 0x5d, 0xc3 };
  char* page = mmap(NULL, 4096, PROT_READ | PROT_WRITE | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  if (page == MAP_FAILED) return;
  int framed = any() % 2;
  memcpy(page, framed ? FRAMED : CODE, framed ? sizeof FRAMED : sizeof CODE);
  void (*run)(void (*)(void));
  *(void**)&run = page;
  run(spin), run(launch);
  munmap(page, 4096);
#endif
}
static void handled(int signal) {
  (void)signal;
  launch(), spin();
  struct timespec wait = SHORT;
  nanosleep(&wait, NULL);
}
static ucontext_t here, there;
static void on_context(void) { launch(), spin(), nanosleep(&SHORT, NULL), setcontext(&here); }
static void contexts(void) {
  volatile int back = 0;
  getcontext(&here);
  if (back) return;
  back = 1;
  getcontext(&there);
  there.uc_stack.ss_sp = other, there.uc_stack.ss_size = STACK, there.uc_link = NULL;
  makecontext(&there, on_context, 0);
  setcontext(&there);
}
static void* short_lived(void* unused) {
  (void)unused;
  launch(), spin(), launch();
  return NULL;
}

int main(int c, char** v) {
  if (c < 2) return 2;
  int (*begin)(void);
  *(void**)&begin = dlsym(dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW), "InitializeInjection");
  begin();
  char* both = mmap(NULL, STACK + 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  mprotect(both + STACK, 4096, PROT_NONE), other = both;
  stack_t alternate = { .ss_sp = malloc(64 << 10), .ss_size = 64 << 10 };
  sigaltstack(&alternate, NULL);
  struct sigaction on_alternate = { .sa_handler = handled, .sa_flags = SA_ONSTACK };
  sigaction(SIGUSR1, &on_alternate, NULL);
  uint64_t end = now() + (uint64_t)(atof(v[1]) * 1e9);
  for (uint32_t i = 0; now() < end; i++) {
    launch();
    switch (i % 11) {
    case 0: on_nonsense(); break;
    case 1: far_away(); break;
    case 2: large_frame(); break;
    case 3: deep(20000); break;
    case 4: torn(); break;
    case 5: unload(); break;
    case 6: generated(); break;
    case 7: raise(SIGUSR1); break;
    case 8: contexts(); break;
    case 9: variable(1000 + any() % 9000); break;
    default: {
      pthread_t threads[4];
      for (int k = 0; k < 4; k++) pthread_create(&threads[k], NULL, short_lived, NULL);
      for (int k = 0; k < 4; k++) pthread_join(threads[k], NULL);
    }
    }
  }
  puts("done");
  return 5;
}
