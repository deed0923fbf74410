// A program that exports the symbols of a Python 3.12 interpreter, whose structures are false and change all the time:
// frames in circles, without end, torn, unmapped; code objects with names of any length and bytes.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <time.h>
#include <unistd.h>

void cuLaunch(uint32_t, uint32_t);
typedef unsigned char u8;
uint32_t Py_Version = 0x030c0100;
const char* Py_GetVersion(void) { return "3.12.1"; }
u8 PyCode_Type[512];
u8 _PyRuntime[4096];

enum { FRAMES = 4096, FRAME = 80, CODE = 256, TEXT = 128 };
static u8 interpreter[1024], state[512], cframe[16], gil[256];
// Frames point into `ghosts`, which come and go.
enum { GHOSTS = 1 << 20 };
static u8 *frames, *codes, *texts, *lines, *ghosts;
static void put(u8* at, int offset, const void* pointer) { memcpy(at + offset, &pointer, 8); }
static void put_number(u8* at, int offset, uint64_t n) { memcpy(at + offset, &n, 8); }
static uint64_t seed = 88172645463325252ull;
static uint64_t any(void) { return seed ^= seed << 13, seed ^= seed >> 7, seed ^= seed << 17; }

static void build(void) {
  put(_PyRuntime, 40, interpreter);
  put(interpreter, 72, state), put(interpreter, 384, gil);
  put_number(state, 136, pthread_self()), put_number(state, 144, (uint64_t)syscall(SYS_gettid));
  put(state, 56, cframe), put(cframe, 0, frames);
  // The lists of threads and of interpreters are circular.
  put(state, 8, state), put(interpreter, 0, interpreter);
  put(gil, 8, state), put_number(gil, 16, 1);
  for (int i = 0; i < FRAMES; i++) {
    u8* c = codes + i * CODE;
    put(frames + i * FRAME, 0, c), put(frames + i * FRAME, 8, i + 1 < 300 ? frames + (i + 1) * FRAME : NULL);
    put(frames + i * FRAME, 56, c + 192 + 4 * (i % 8));
    put(c, 8, PyCode_Type), put(c, 112, texts + i * TEXT), put(c, 128, texts + i * TEXT), put(c, 136, lines);
    put_number(c, 68, (uint64_t)i);
    put_number(texts + i * TEXT, 16, 40), put_number(texts + i * TEXT, 32, 1 << 2 | 1 << 5 | 1 << 6);
    for (int k = 0; k < 40; k++) texts[i * TEXT + 40 + k] = (u8)any();
  }
  put_number(lines, 16, 200);
  for (int k = 0; k < 200; k++) lines[32 + k] = (u8)any();
}

static volatile int going = 1;
static void* change(void* unused) {
  (void)unused;
  while (going) {
    int i = (int)(any() % FRAMES);
    switch (any() % 12) {
    case 0: put(frames + i * FRAME, 8, frames + any() % FRAMES * FRAME); break;
    case 1: put(frames + i * FRAME, 8, (void*)any()); break;
    case 2: put(frames + i * FRAME, 0, (void*)(any() % 3 ? (uint64_t)codes + any() % FRAMES * CODE : any())); break;
    case 3: put(cframe, 0, frames + any() % FRAMES * FRAME); break;
    case 4: put_number(texts + i * TEXT, 16, any()); break;
    case 5: put_number(texts + i * TEXT, 32, any()); break;
    case 6: put_number(lines, 16, any() % 2 ? any() : 16000); break;
    case 7: put(codes + i * CODE, 112, (void*)any()); break;
    case 8: put(state, 56, any() % 4 ? (void*)cframe : (void*)any()); break;
    case 9: munmap(ghosts, GHOSTS), put(frames + i * FRAME, 8, ghosts + any() % GHOSTS); break;
    case 10: frames[i * FRAME + 70] = (u8)(any() % 5); break;
    default:
      mmap(ghosts, GHOSTS, 3, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED, -1, 0);
      build();
    }
    for (volatile int k = 0; k < 2000; k++);
  }
  return NULL;
}

int main(int c, char** v) {
  u8** const all[] = { &frames, &codes, &texts };
  for (int i = 0; i < 3; i++) *all[i] = mmap(NULL, FRAMES * CODE, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  lines = calloc(1, 1 << 15);
  ghosts = mmap(NULL, GHOSTS, 3, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
  build();
  int (*begin)(void);
  *(void**)&begin = dlsym(dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW), "InitializeInjection");
  begin();
  pthread_t thread;
  // `still` leaves the structures as they are.
  int still = c > 2 && !strcmp(v[2], "still");
  if (!still) pthread_create(&thread, NULL, change, NULL);
  struct timespec now, end;
  clock_gettime(CLOCK_MONOTONIC, &end), end.tv_sec += atoi(v[1]);
  for (uint32_t i = 0;; i++) {
    clock_gettime(CLOCK_MONOTONIC, &now);
    if (now.tv_sec > end.tv_sec || (now.tv_sec == end.tv_sec && now.tv_nsec > end.tv_nsec)) break;
    cuLaunch(i % 8, 7);
    for (volatile int k = 0; k < 100000; k++);
  }
  going = 0;
  if (!still) pthread_join(thread, NULL);
  puts("done");
  return 0;
}
