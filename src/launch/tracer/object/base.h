// Types, the few functions of the C library that are used, and small helpers.
//
// No header of the system is included: the object then builds without CUDA and for any C library, and linked against stubs it
// asks for no version of glibc's symbols (build.rs).

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef int i32;
typedef long i64;

#define NULL ((void*)0)
#define EXPORT __attribute__((visibility("default")))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define COUNT(a) (sizeof(a) / sizeof *(a))

struct timespec { long seconds, nanoseconds; };
struct iovec { const void* base; u64 length; };
struct pollfd { int fd; short events, revents; };
struct sockaddr_un { u16 family; char path[108]; };

extern int access(const char*, int), ftruncate(int, long), unlink(const char*);
extern long read(int, void*, u64), write(int, const void*, u64), readlink(const char*, char*, u64);
extern int snprintf(char*, u64, const char*, ...), strcmp(const char*, const char*), strncmp(const char*, const char*, u64), memcmp(const void*, const void*, u64);
extern char *getenv(const char*), *strstr(const char*, const char*), *getcwd(char*, u64);
extern u64 strlen(const char*);
extern int munmap(void*, u64);
extern void *memcpy(void*, const void*, u64), *memmove(void*, const void*, u64), *memset(void*, int, u64);
extern int regcomp(void*, const char*, int), regexec(const void*, const char*, u64, void*, int);
extern void *mmap(void*, u64, int, int, int, long), *dlopen(const char*, int), *dlsym(void*, const char*);
extern int dladdr(const void*, void*);
extern int clock_gettime(int, struct timespec*), getpid(void), getppid(void), gethostname(char*, u64), sched_yield(void);
extern int poll(struct pollfd*, u64, int), socket(int, int, int), bind(int, const void*, u32), listen(int, int), accept4(int, void*, void*, int), chmod(const char*, u32);
extern long syscall(long, ...);
extern int pthread_create(u64*, const void*, void* (*)(void*), void*), __cxa_atexit(void (*)(void*), void*, void*);
extern int *__errno_location(void);

#if defined(__x86_64__)
enum {
  SYS_GETTID = 186, SYS_EXIT_GROUP = 231, SYS_SIGPROCMASK = 14, SYS_PRCTL = 157, SYS_PRLIMIT = 302, SYS_READ = 0, SYS_CLOSE = 3, SYS_FSTAT = 5,
  SYS_WRITEV = 20, SYS_OPENAT = 257, SYS_FCNTL = 72, SYS_TGKILL = 234, SYS_FUTEX = 202, SYS_EXECVE = 59, O_DIRECTORY = 0200000,
};
#elif defined(__aarch64__)
enum {
  SYS_GETTID = 178, SYS_EXIT_GROUP = 94, SYS_SIGPROCMASK = 135, SYS_PRCTL = 167, SYS_PRLIMIT = 261, SYS_READ = 63, SYS_CLOSE = 57, SYS_FSTAT = 80,
  SYS_WRITEV = 66, SYS_OPENAT = 56, SYS_FCNTL = 25, SYS_TGKILL = 131, SYS_FUTEX = 98, SYS_EXECVE = 221, O_DIRECTORY = 040000,
};
#else
#error "the tracer is for x86-64 and aarch64"
#endif
enum { O_RDONLY = 0, O_WRONLY = 1, O_CREAT = 0100, O_EXCL = 0200, O_APPEND = 02000, O_CLOEXEC = 02000000, O_PATH = 010000000 };
enum { RTLD_NOW = 2, RTLD_NOLOAD = 4 };
enum { CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 1 };
enum { NO_SUCH = 3 /* ESRCH */, EINTR = 4, AGAIN = 11, EXISTS = 17, TOO_LARGE = 27, NO_SPACE = 28, RLIMIT_FSIZE = 1, AF_UNIX = 1, SOCK_STREAM = 1, SOCK_NONBLOCK = 04000, SOCK_CLOEXEC = 02000000, POLLIN = 1 };

static u64 clock_now(int clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (u64)t.seconds * 1000000000ul + (u64)t.nanoseconds;
}

// Nanoseconds since 1970: the clock of CUPTI's timestamps, too.
static inline u64 now(void) { return clock_now(CLOCK_REALTIME); }

// On threads of the program the C library's own open, read, writev and close are not called: pthread_cancel ends a thread inside of them, with
// our locks held.
static int file_open(const char* path, int flags) { return (int)syscall(SYS_OPENAT, -100l /* AT_FDCWD */, path, (long)flags, 0600l); }
static void file_close(int fd) { syscall(SYS_CLOSE, (long)fd); }
static long file_read(int fd, void* to, u64 most) { return syscall(SYS_READ, (long)fd, to, most); }

// What a descriptor stands for. Programs close descriptors that they do not know, and get their numbers for files of their own.
typedef struct { u64 device, node; } Identity;
static Identity identity(int fd) {
  u64 status[32] = { 0 };
  if (fd < 0 || syscall(SYS_FSTAT, (long)fd, status)) return (Identity){ 0, 0 };
  return (Identity){ status[0], status[1] };
}
static int is_same(int fd, Identity was) {
  Identity now_ = identity(fd);
  return was.node && now_.device == was.device && now_.node == was.node;
}
// The same file under a high number: low ones are a program's standard streams, and what it expects next.
static int high(int fd) {
  static const long FROM[] = { 700, 200, 30, 3 };
  for (u32 i = 0; fd >= 0 && i < COUNT(FROM); i++) {
    int other = (int)syscall(SYS_FCNTL, (long)fd, 1030l /* F_DUPFD_CLOEXEC */, FROM[i]);
    if (other >= 0) return file_close(fd), other;
  }
  return fd;
}

static __thread u32 own_tid;
static u32 tid(void) {
  if (UNLIKELY(!own_tid)) own_tid = (u32)syscall(SYS_GETTID);
  return own_tid;
}

// No more of this process: a child of fork has the parent's memory, but its records are its own.
static volatile int gone;
static int own_pid;
static void child_of_fork(void) { gone = 1; }

// Held for moments only, and by few threads. In a child of fork the holder may not exist: nobody waits there.
typedef struct { u32 held; } Lock;
static void lock(Lock* l) {
  for (int tries = 0; __atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE) && !gone; tries++) {
    if (tries < 100) {
      sched_yield();
    } else {
      // A child that no handler of fork was called in.
      if (own_pid && own_pid != getpid()) gone = 1;
      poll(NULL, 0, 1);
    }
  }
}
// The same for a while; 0 where it was not had.
static int lock_within(Lock* l, u64 ms) {
  for (u64 tries = 0; __atomic_exchange_n(&l->held, 1, __ATOMIC_ACQUIRE); tries++) {
    if (tries >= ms || gone) return 0;
    poll(NULL, 0, 1);
  }
  return 1;
}
static void unlock(Lock* l) { __atomic_store_n(&l->held, 0, __ATOMIC_RELEASE); }

#define ADD(x, n) __atomic_fetch_add(&(x), (n), __ATOMIC_RELAXED)

enum { MAP_POPULATE = 0x8000 };
// Memory from the system, zeroed; NULL where it has none.
static void* pages(u64 bytes, int flags) {
  void* p = mmap(NULL, bytes, 3, 0x22 | flags, -1, 0);
  return p == (void*)-1 ? NULL : p;
}

// A number in decimal digits.
static u64 number_of(const char* text) {
  u64 v = 0;
  while (text && *text >= '0' && *text <= '9') v = v * 10 + (u64)(*text++ - '0');
  return v;
}

// The process's rank in its job, as its launcher says it; NULL where nobody does.
static const char* own_rank(void) {
  static const char* const RANKS[] = { "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK" };
  for (u32 i = 0; i < COUNT(RANKS); i++) {
    const char* rank = getenv(RANKS[i]);
    if (rank && *rank) return rank;
  }
  return NULL;
}

// A mixing of 64 bits (the finalizer of SplitMix64).
static inline u64 mix(u64 x) {
  x ^= x >> 30, x *= 0xbf58476d1ce4e5b9ul;
  x ^= x >> 27, x *= 0x94d049bb133111ebul;
  return x ^ x >> 31;
}

// A hash of bytes, eight at a time.
static u64 hash_bytes(const char* s, u64 n) {
  u64 h = n * 0x9e3779b97f4a7c15ul, w = 0;
  for (; n >= 8; s += 8, n -= 8) {
    memcpy(&w, s, 8);
    h = (h ^ w) * 0xff51afd7ed558ccdul, h ^= h >> 32;
  }
  w = 0;
  memcpy(&w, s, n);
  return mix(h ^ w);
}

// Numbers of variable length: seven bits a byte, the lowest first; signed ones zigzag.
static inline u8* put_number(u8* p, u64 v) {
  while (v >= 128) *p++ = (u8)(v | 128), v >>= 7;
  *p++ = (u8)v;
  return p;
}
static inline u8* put_signed(u8* p, i64 v) { return put_number(p, ((u64)v << 1) ^ (u64)(v >> 63)); }
