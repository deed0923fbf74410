// Waits of threads: the system call that a thread is blocked in, and the place from which it was made.

// The `syscall` file of a thread in /proc, which contains its current system call. It stays open for the first threads,
// because opening it takes longer than everything else that a sample needs.
enum { CALLS_OPEN = 8 };
typedef struct { int file; u32 thread; Identity is; } CallFile;
static CallFile call_files[CALLS_OPEN];
static long call_read(u32 i, u32 thread, char* text, u64 most) {
  char path[48];
  snprintf(path, sizeof path, "/proc/self/task/%u/syscall", thread);
  if (i >= CALLS_OPEN) {
    int file = file_open(path, O_RDONLY | O_CLOEXEC);
    long n = file < 0 ? -1 : file_read(file, text, most);
    if (file >= 0) file_close(file);
    return n;
  }
  CallFile* f = &call_files[i];
  int there = f->thread && is_same(f->file, f->is);
  if (there && f->thread != thread) file_close(f->file), there = 0;
  if (!there) {
    *f = (CallFile){ high(file_open(path, O_RDONLY | O_CLOEXEC)), thread, { 0, 0 } };
    f->is = identity(f->file);
  }
  return f->file < 0 ? -1 : SYSTEM(SYS_PREAD64, f->file, text, most, 0);
}

static void call_forget(u32 i) {
  if (i >= CALLS_OPEN || !call_files[i].thread) return;
  if (is_same(call_files[i].file, call_files[i].is)) file_close(call_files[i].file);
  call_files[i] = (CallFile){ -1, 0, { 0, 0 } };
}

// Place at which a thread entered the system call that blocks it: stack pointer and program counter, 0 if unknown.
typedef struct { u64 sp, pc; } WaitPlace;

static WaitPlace wait_place(const char* text, long n) {
  u64 words[2] = { 0, 0 };
  // Stack pointer and program counter are the last two fields of the line.
  for (u32 i = 2; i-- > 0;) {
    while (n > 0 && text[n - 1] != 'x') n--;
    const char* p = text + n;
    if (n < 2) return (WaitPlace){ 0, 0 };
    words[i] = hex_word(&p), n -= 2;
  }
  return (WaitPlace){ words[0], words[1] };
}

// Determines the call that blocks a thread from the number of its system call and the first argument. `i` is the
// thread's index among those that are sampled.
static u32 wait_of(u32 i, u32 thread, const u8* gil, WaitPlace* place) {
  static const struct { u16 number; u8 wait; } WAITS[] = {
#if defined(__x86_64__)
    { 202, WAITS_LOCK }, { 449, WAITS_LOCK }, { 0, WAITS_READ }, { 17, WAITS_READ }, { 19, WAITS_READ },
    { 295, WAITS_READ }, { 327, WAITS_READ }, { 45, WAITS_READ }, { 47, WAITS_READ }, { 299, WAITS_READ },
    { 43, WAITS_READ }, { 288, WAITS_READ }, { 1, WAITS_WRITE }, { 18, WAITS_WRITE }, { 20, WAITS_WRITE },
    { 40, WAITS_WRITE }, { 44, WAITS_WRITE }, { 46, WAITS_WRITE }, { 74, WAITS_WRITE }, { 75, WAITS_WRITE },
    { 7, WAITS_POLL }, { 271, WAITS_POLL }, { 23, WAITS_POLL }, { 270, WAITS_POLL }, { 232, WAITS_POLL },
    { 281, WAITS_POLL }, { 441, WAITS_POLL }, { 35, WAITS_SLEEP }, { 230, WAITS_SLEEP }, { 61, WAITS_CHILD },
    { 247, WAITS_CHILD }, { 24, RUNS },
#else
    { 98, WAITS_LOCK }, { 449, WAITS_LOCK }, { 63, WAITS_READ }, { 65, WAITS_READ }, { 67, WAITS_READ },
    { 69, WAITS_READ }, { 207, WAITS_READ }, { 212, WAITS_READ }, { 243, WAITS_READ }, { 202, WAITS_READ },
    { 242, WAITS_READ }, { 64, WAITS_WRITE }, { 66, WAITS_WRITE }, { 68, WAITS_WRITE }, { 71, WAITS_WRITE },
    { 206, WAITS_WRITE }, { 211, WAITS_WRITE }, { 82, WAITS_WRITE }, { 83, WAITS_WRITE }, { 73, WAITS_POLL },
    { 72, WAITS_POLL }, { 22, WAITS_POLL }, { 441, WAITS_POLL }, { 101, WAITS_SLEEP }, { 115, WAITS_SLEEP },
    { 260, WAITS_CHILD }, { 95, WAITS_CHILD }, { 124, RUNS },
#endif
  };
  char text[192];
  *place = (WaitPlace){ 0, 0 };
  long n = call_read(i, thread, text, sizeof text - 1);
  if (n <= 0) return WAITS_UNKNOWN;
  text[n] = 0;
  // `running`, or -1 outside a system call, for example while a page is read from a file.
  if (*text == 'r') return RUNS;
  *place = wait_place(text, n);
  if (*text < '0' || *text > '9') return WAITS_OTHER;
  u64 number = number_of(text), first = 0;
  const char* p = strstr(text, " 0x");
  if (p) p += 3, first = hex_word(&p);
  for (u32 k = 0; k < COUNT(WAITS); k++) {
    if (WAITS[k].number != number) continue;
    // Threads that wait for the GIL block on a condition variable inside the GIL structure.
    if (WAITS[k].wait == WAITS_LOCK && gil && first >= (u64)gil && first < (u64)gil + GIL_BYTES) return WAITS_GIL;
    return WAITS[k].wait;
  }
  return WAITS_OTHER;
}
