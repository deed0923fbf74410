// Types, the few C library functions that are used, and small helpers.
//
// No system header is included, so the object builds without CUDA and for any C library. Linked against stubs, it
// requires no particular glibc symbol versions (build.rs).

typedef unsigned char u8;
typedef unsigned short u16;
typedef unsigned int u32;
typedef unsigned long u64;
typedef int i32;
typedef long i64;

#define NULL ((void*)0)
#define EXPORT __attribute__((visibility("default")))
// Keeps the object small, because every program loads it.
#define NOINLINE __attribute__((noinline))
#define LIKELY(x) __builtin_expect(!!(x), 1)
#define UNLIKELY(x) __builtin_expect(!!(x), 0)
#define COUNT(a) (sizeof(a) / sizeof *(a))

struct timespec { long seconds, nanoseconds; };
struct iovec { const void* base; u64 length; };
struct pollfd { int fd; short events, revents; };
struct sockaddr_un { u16 family; char path[108]; };

extern int snprintf(char*, u64, const char*, ...), strcmp(const char*, const char*),
  strncmp(const char*, const char*, u64), memcmp(const void*, const void*, u64);
extern char *getenv(const char*), *strstr(const char*, const char*);
extern u64 strlen(const char*);
extern void *memcpy(void*, const void*, u64), *memmove(void*, const void*, u64), *memset(void*, int, u64);
extern int regcomp(void*, const char*, int), regexec(const void*, const char*, u64, void*, int);
extern void *dlopen(const char*, int), *dlvsym(void*, const char*, const char*);
extern int dladdr(const void*, void*), dlclose(void*), dl_iterate_phdr(int (*)(void*, u64, void*), void*);
extern const char* dlerror(void);
extern int clock_gettime(int, struct timespec*);
extern int pthread_create(u64*, const void*, void*(*)(void*), void*), pthread_setcancelstate(int, int*),
  pthread_setcanceltype(int, int*), __cxa_atexit(void (*)(void*), void*, void*);
extern u64 pthread_self(void);
extern int *__errno_location(void);

#if defined(__x86_64__)
enum {
  SYS_READ = 0, SYS_WRITE = 1, SYS_CLOSE = 3, SYS_FSTAT = 5, SYS_MMAP = 9, SYS_MUNMAP = 11, SYS_SIGPROCMASK = 14,
  SYS_PREAD64 = 17,
  SYS_WRITEV = 20, SYS_SCHED_YIELD = 24, SYS_GETPID = 39, SYS_SOCKET = 41, SYS_SENDTO = 44, SYS_BIND = 49,
  SYS_LISTEN = 50, SYS_EXECVE = 59, SYS_UNAME = 63, SYS_FCNTL = 72, SYS_FTRUNCATE = 77, SYS_GETCWD = 79,
  SYS_GETPPID = 110, SYS_PRCTL = 157, SYS_GETTID = 186, SYS_FUTEX = 202, SYS_GETDENTS64 = 217, SYS_EXIT_GROUP = 231,
  SYS_TGKILL = 234,
  SYS_OPENAT = 257, SYS_UNLINKAT = 263, SYS_READLINKAT = 267, SYS_FCHMOD = 91, SYS_FACCESSAT = 269, SYS_PPOLL = 271,
  SYS_ACCEPT4 = 288, SYS_PRLIMIT = 302, SYS_PROCESS_VM_READV = 310, O_DIRECTORY = 0200000, O_NOFOLLOW = 0400000,
};
static inline i64 system_call(i64 number, i64 a, i64 b, i64 c, i64 d, i64 e, i64 f) {
  i64 result;
  register i64 fourth __asm__("r10") = d, fifth __asm__("r8") = e, sixth __asm__("r9") = f;
  __asm__ volatile("syscall"
                   : "=a"(result)
                   : "a"(number), "D"(a), "S"(b), "d"(c), "r"(fourth), "r"(fifth), "r"(sixth)
                   : "rcx", "r11", "memory");
  return result;
}
#elif defined(__aarch64__)
enum {
  SYS_READ = 63, SYS_WRITE = 64, SYS_GETDENTS64 = 61, SYS_CLOSE = 57, SYS_FSTAT = 80, SYS_MMAP = 222,
  SYS_MUNMAP = 215, SYS_SIGPROCMASK = 135,
  SYS_WRITEV = 66, SYS_PREAD64 = 67, SYS_SCHED_YIELD = 124, SYS_GETPID = 172, SYS_SOCKET = 198, SYS_SENDTO = 206,
  SYS_BIND = 200,
  SYS_LISTEN = 201, SYS_EXECVE = 221, SYS_UNAME = 160, SYS_FCNTL = 25, SYS_FTRUNCATE = 46, SYS_GETCWD = 17,
  SYS_GETPPID = 173, SYS_PRCTL = 167, SYS_GETTID = 178, SYS_FUTEX = 98, SYS_EXIT_GROUP = 94, SYS_TGKILL = 131,
  SYS_OPENAT = 56, SYS_UNLINKAT = 35, SYS_READLINKAT = 78, SYS_FCHMOD = 52, SYS_FACCESSAT = 48, SYS_PPOLL = 73,
  SYS_ACCEPT4 = 242, SYS_PRLIMIT = 261, SYS_PROCESS_VM_READV = 270, O_DIRECTORY = 040000, O_NOFOLLOW = 0100000,
};
static inline i64 system_call(i64 number, i64 a, i64 b, i64 c, i64 d, i64 e, i64 f) {
  register i64 which __asm__("x8") = number, first __asm__("x0") = a, second __asm__("x1") = b, third __asm__("x2") = c;
  register i64 fourth __asm__("x3") = d, fifth __asm__("x4") = e, sixth __asm__("x5") = f;
  __asm__ volatile("svc 0"
    : "+r"(first)
    : "r"(which), "r"(second), "r"(third), "r"(fourth), "r"(fifth), "r"(sixth)
    : "memory");
  return first;
}
#else
#error "the tracer is for x86-64 and aarch64"
#endif

// System calls are made directly, not through the C library: many of its functions are cancellation points, at which
// pthread_cancel could end a program thread while it holds our locks, and they overwrite errno, which a signal handler
// must preserve. A negative result is the negated error number.
#define SYSTEM_6(number, a, b, c, d, e, f, ...) \
  system_call(number, (i64)(a), (i64)(b), (i64)(c), (i64)(d), (i64)(e), (i64)(f))
#define SYSTEM(...) SYSTEM_6(__VA_ARGS__, 0, 0, 0, 0, 0, 0, 0)
enum { O_RDONLY = 0, O_WRONLY = 1, O_CREAT = 0100, O_EXCL = 0200, O_APPEND = 02000, O_CLOEXEC = 02000000,
  O_NONBLOCK = 04000, O_NOCTTY = 0400, O_PATH = 010000000 };
enum { RTLD_NOW = 2, RTLD_NOLOAD = 4 };
enum { CLOCK_REALTIME = 0, CLOCK_MONOTONIC = 1 };
enum { EPERM = 1, ENOENT = 2, ESRCH = 3, EINTR = 4, EBADF = 9, EAGAIN = 11, EACCES = 13, EEXIST = 17, EINVAL = 22,
  EFBIG = 27, ENOSPC = 28, EROFS = 30, ENOSYS = 38, ENOTSOCK = 88 };
enum { RLIMIT_FSIZE = 1, AF_UNIX = 1, SOCK_STREAM = 1, SOCK_NONBLOCK = 04000, SOCK_CLOEXEC = 02000000,
  MSG_NOSIGNAL = 0x4000, POLLIN = 1, POLLOUT = 4, POLLHUP = 16 };
static const long AT_FDCWD = -100;

static NOINLINE u64 clock_now(int clock) {
  struct timespec t;
  clock_gettime(clock, &t);
  return (u64)t.seconds * 1000000000ul + (u64)t.nanoseconds;
}

// Nanoseconds since 1970, on the clock of CUPTI's timestamps.
static inline u64 now(void) { return clock_now(CLOCK_REALTIME); }

static int file_open(const char* path, int flags) { return (int)SYSTEM(SYS_OPENAT, AT_FDCWD, path, flags, 0600); }
static void file_close(int fd) { SYSTEM(SYS_CLOSE, fd); }
static long file_read(int fd, void* to, u64 most) { return SYSTEM(SYS_READ, fd, to, most); }
static void file_remove(const char* path) { SYSTEM(SYS_UNLINKAT, AT_FDCWD, path, 0); }
static int process(void) { return (int)SYSTEM(SYS_GETPID); }

static NOINLINE i64 wait_for_input(struct pollfd* fd, u64 ms) {
  struct timespec time = { (long)(ms / 1000), (long)(ms % 1000 * 1000000) };
  return SYSTEM(SYS_PPOLL, fd, fd ? 1 : 0, &time, NULL, 8);
}
static void nap(void) { wait_for_input(NULL, 1); }

// Device and inode of a descriptor. Programs close descriptors that they did not open, and reuse the numbers.
typedef struct { u64 device, node; } Identity;
static Identity identity(int fd) {
  u64 status[32] = { 0 };
  if (fd < 0 || SYSTEM(SYS_FSTAT, fd, status)) return (Identity){ 0, 0 };
  return (Identity){ status[0], status[1] };
}
static int is_same(int fd, Identity was) {
  Identity now_ = identity(fd);
  return was.node && now_.device == was.device && now_.node == was.node;
}
// Moves a file to a high descriptor: the low ones are for the standard streams and the numbers that a program expects
// to get next.
static int high(int fd) {
  static const long FROM[] = { 700, 200, 30, 3 };
  for (u32 i = 0; fd >= 0 && i < COUNT(FROM); i++) {
    int other = (int)SYSTEM(SYS_FCNTL, fd, 1030 /* F_DUPFD_CLOEXEC */, FROM[i]);
    if (other >= 0) return file_close(fd), other;
  }
  return fd;
}

static __thread u32 own_tid;
static u32 tid(void) {
  if (UNLIKELY(!own_tid)) own_tid = (u32)SYSTEM(SYS_GETTID);
  return own_tid;
}

// Set in a child of fork: the child inherits the parent's memory, but records nothing (injection.c).
static volatile int gone;
static int own_pid;

#define ADD(x, n) __atomic_fetch_add(&(x), (n), __ATOMIC_RELAXED)
// Acquire load and release store: a reader of the word also sees everything that was written before it.
#define GET(x) __atomic_load_n(&(x), __ATOMIC_ACQUIRE)
#define SET(x, value) __atomic_store_n(&(x), (value), __ATOMIC_RELEASE)

#include "lock.h"

enum { MAP_POPULATE = 0x8000 };
// Allocates zeroed pages from the kernel; NULL on failure.
static void* pages(u64 bytes, int flags) {
  i64 p = SYSTEM(SYS_MMAP, NULL, bytes, 3, 0x22 | flags, -1, 0);
  return p < 0 && p > -4096 ? NULL : (void*)p;
}
static void pages_free(void* p, u64 bytes) { SYSTEM(SYS_MUNMAP, p, bytes); }

// Parses the leading decimal digits.
static u64 number_of(const char* text) {
  u64 v = 0;
  while (text && *text >= '0' && *text <= '9') v = v * 10 + (u64)(*text++ - '0');
  return v;
}

// Settings of a tracer that was attached to a running program: NAME=VALUE strings, each terminated by a zero byte. A
// program that was started with the tracer has them in its environment.
static struct { char text[16384]; u64 n; } settings;
static const char* setting(const char* name_) {
  u64 length = strlen(name_);
  for (u64 at = 0; at < settings.n; at += strlen(settings.text + at) + 1)
    if (!strncmp(settings.text + at, name_, length) && settings.text[at + length] == '=')
      return settings.text + at + length + 1;
  return settings.n ? NULL : getenv(name_);
}

// Rank of the process in its job, as set by its launcher; NULL if unset.
static const char* own_rank(void) {
  static const char* const RANKS[] = { "RANK", "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PMI_RANK" };
  for (u32 i = 0; i < COUNT(RANKS); i++) {
    const char* rank = getenv(RANKS[i]);
    if (rank && *rank) return rank;
  }
  return NULL;
}

// 64-bit mixing function (the finalizer of SplitMix64).
static inline u64 mix(u64 x) {
  x ^= x >> 30, x *= 0xbf58476d1ce4e5b9ul;
  x ^= x >> 27, x *= 0x94d049bb133111ebul;
  return x ^ x >> 31;
}

// Hashes bytes, eight at a time.
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

// LEB128 integers: seven bits per byte, lowest first; signed ones are zigzag-encoded.
static inline u8* put_number(u8* p, u64 v) {
  while (v >= 128) *p++ = (u8)(v | 128), v >>= 7;
  *p++ = (u8)v;
  return p;
}
static inline u8* put_signed(u8* p, i64 v) { return put_number(p, ((u64)v << 1) ^ (u64)(v >> 63)); }
