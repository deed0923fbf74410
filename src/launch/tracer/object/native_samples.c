// Samples of native code. The kernel samples running threads (perf_event_open): each time a thread has used one
// sampling period of processor time, it copies the thread's registers and the top of its stack to a ring, which the
// ticker empties. A thread that waits in a system call needs no such copy: its stack does not change, and the kernel
// reports its program counter and stack pointer.

#if defined(__x86_64__)
enum { SYS_PERF_EVENT_OPEN = 298 };
// DWARF numbers of the registers in the order of the kernel's samples (enum perf_event_x86_regs); the flags and segment
// registers in between are not requested.
static const u8 SAMPLED_REGISTERS[] = { 0, 3, 2, 1, 4, 5, 6, 7, 16, 8, 9, 10, 11, 12, 13, 14, 15 };
static const u64 SAMPLED_MASK = 0x1fful | 0xfful << 16;
enum { SAMPLED_COUNTER = 16 };
#else
enum { SYS_PERF_EVENT_OPEN = 241 };
static const u8 SAMPLED_REGISTERS[] = { 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 17, 18, 19, 20, 21,
  22, 23, 24, 25, 26, 27, 28, 29, 30, 31, 32 };
static const u64 SAMPLED_MASK = 0x1fffffffful;
enum { SAMPLED_COUNTER = 32 };
#endif

// By default (STACKS_THAT_SUIT), native stacks are sampled only in programs without Python.
static int samples_python(void) { return python.minor && stacks.which != STACKS_OF_NATIVE; }
static int samples_native(void) {
  return stacks.which >= STACKS_OF_NATIVE || (stacks.which == STACKS_THAT_SUIT && !python.minor);
}

typedef struct {
  u32 type, size;
  u64 config, period, fields, format, flags;
  u32 wakeup, breakpoint;
  u64 address, length, branches, registers;
  u32 stack;
  i32 clock;
} PerfEvent; // struct perf_event_attr, PERF_ATTR_SIZE_VER3

enum { PERF_SOFTWARE = 1, PERF_TASK_CLOCK = 1, PERF_SAMPLE = 9, PERF_LOST = 2, PERF_HEAD = 8 };
enum { SAMPLE_TIME = 1 << 2, SAMPLE_REGISTERS = 1 << 12, SAMPLE_STACK = 1 << 13 };
// Bits of perf_event_attr.
static const u64 EXCLUDES_KERNEL = 1ul << 5, EXCLUDES_HYPERVISOR = 1ul << 6, USES_CLOCK = 1ul << 25;
// The first words of the ring's control page that are used (struct perf_event_mmap_page).
enum { RING_HEAD = 1024 / 8, RING_TAIL };
// Bytes of the stack that are copied: outer frames are read from the stack itself.
enum { STACK_COPIED = 8192, RECORD_LARGEST = STACK_COPIED + 512 };

typedef struct {
  u32 thread;
  u64* ring;
  u64 bytes;
  // Processor time that no sample accounts for yet, ns.
  u64 owed;
} NativeRing;

static struct {
  NativeRing rings[SAMPLED];
  // Errno of the first perf_event_open that failed (later threads are not tried), and of mapping a ring; 0 if none.
  i32 refused, no_memory;
  // Set if time in the kernel is sampled, too.
  int sees_kernel;
  u64 lost;
} native;

static void ring_close(NativeRing* r) {
  if (r->ring) SYSTEM(SYS_MUNMAP, r->ring, r->bytes);
  *r = (NativeRing){ 0 };
}
static void native_rings_close(void) {
  for (u32 i = 0; i < SAMPLED; i++) ring_close(&native.rings[i]);
}

// Begins to sample a thread. The event lives as long as its ring is mapped, so its descriptor is closed at once and
// does not count against the program's limit.
static void ring_open(NativeRing* r, u32 thread, u64 period) {
  static const u32 SIZES[] = { 16, 4 };
  PerfEvent e = { .type = PERF_SOFTWARE, .size = sizeof e, .config = PERF_TASK_CLOCK, .period = period,
    .fields = SAMPLE_TIME | SAMPLE_REGISTERS | SAMPLE_STACK, .flags = EXCLUDES_HYPERVISOR | USES_CLOCK,
    .registers = SAMPLED_MASK, .stack = STACK_COPIED, .clock = CLOCK_MONOTONIC };
  *r = (NativeRing){ .thread = thread };
  if (native.refused) return;
  i64 file = -EACCES;
  // Users may not sample time inside the kernel unless the administrator allows it: try again without it.
  for (int tries = 0; tries < 2 && (file == -EACCES || file == -EPERM); tries++) {
    if (tries) e.flags |= EXCLUDES_KERNEL;
    file = SYSTEM(SYS_PERF_EVENT_OPEN, &e, thread, -1, -1, PERF_HEAD);
    native.sees_kernel = !tries;
  }
  if (file < 0) {
    // The thread may have ended.
    if (file != -ESRCH) native.refused = (i32)-file;
    return;
  }
  i64 at = -EPERM;
  for (u32 i = 0; i < COUNT(SIZES) && at < 0 && at > -PAGE; i++) {
    r->bytes = (SIZES[i] + 1) * (u64)PAGE;
    at = SYSTEM(SYS_MMAP, NULL, r->bytes, 3 /* read, write */, 1 /* MAP_SHARED */, file, 0);
  }
  file_close((int)file);
  if (at < 0 && at > -PAGE) native.no_memory = (i32)-at;
  else r->ring = (u64*)at;
}

// The reason why running threads have no native stacks; NULL if they have.
static const char* native_why_not(void) {
  switch (native.refused) {
  case 0: break;
  case EACCES: case EPERM: return "the system does not let this user sample its own threads (perf_event_open)";
  case ENOSYS: return "this system has no perf_event_open";
  default: return "perf_event_open failed";
  }
  return native.no_memory ? "there is not enough locked memory for them (ulimit -l, kernel.perf_event_mlock_kb)" : NULL;
}


static void sample_put(u32 thread, u64 time, u32 stack, u32 wait);

static Registers registers_of_wait(WaitPlace place) {
  Registers r = { .pc = place.pc };
  register_set(&r, STACK_POINTER, place.sp);
  return r;
}

// Unwinds the stack in a record of the kernel. Returns 0 if there is none in it.
static int record_unwind(const u8* record, u64 bytes, u64* time, u64 monotonic) {
  enum { AT_TIME = 8, AT_ABI = 16, AT_REGISTERS = 24, AT_SIZE = AT_REGISTERS + sizeof SAMPLED_REGISTERS * 8,
    AT_STACK = AT_SIZE + 8, ABI_64 = 2 };
  Registers r = { .known = 0 };
  // A thread that is ending has no registers.
  if (bytes < AT_STACK || word_at(record, AT_ABI) != ABI_64) return 0;
  *time = word_at(record, AT_TIME);
  for (u32 i = 0; i < COUNT(SAMPLED_REGISTERS); i++) {
    u64 value = word_at(record, AT_REGISTERS + i * 8);
    if (SAMPLED_REGISTERS[i] == SAMPLED_COUNTER) r.pc = value;
    else register_set(&r, SAMPLED_REGISTERS[i], value);
  }
  u64 size = word_at(record, AT_SIZE), copied = 0;
  if (size <= STACK_COPIED && AT_STACK + size + 8 <= bytes) copied = word_at(record, (u32)(AT_STACK + size));
  stack_memory.copy = record + AT_STACK, stack_memory.copy_at = r.value[STACK_POINTER];
  stack_memory.copy_bytes = copied <= size ? copied : 0;
  native_unwind(r, monotonic);
  stack_memory.copy_bytes = 0;
  return 1;
}

// Takes the samples of a thread out of its ring; `took` is the processor time that it used since the last call, `time`
// and `monotonic` are the current time on both clocks. Returns 1 if the kernel samples the thread.
static int native_ring_samples(u32 i, u32 thread, u64 took, u64 time, u64 monotonic) {
  static u8 record[RECORD_LARGEST];
  u64 period = stacks.every_us * 1000ul;
  NativeRing* r = &native.rings[i];
  if (r->thread != thread) {
    ring_close(r);
    ring_open(r, thread, period);
  }
  if (!r->ring) return 0;
  u64 head = GET(r->ring[RING_HEAD]), tail = r->ring[RING_TAIL], size = r->bytes - PAGE;
  const u8* data = (const u8*)r->ring + PAGE;
  u32 samples_ = 0;
  // The program can write to the ring, so nothing in it is trusted.
  if (head - tail > size) tail = head;
  while (head - tail >= PERF_HEAD) {
    u8 start[PERF_HEAD];
    for (u32 k = 0; k < PERF_HEAD; k++) start[k] = data[(tail + k) % size];
    u32 type = (u32)word_at(start, 0);
    u64 bytes = (u64)start[6] | (u64)start[7] << 8, at;
    if (bytes < PERF_HEAD || bytes > head - tail) {
      tail = head;
      break;
    }
    if (type == PERF_LOST) native.lost++;
    if (type == PERF_SAMPLE && bytes <= sizeof record) {
      // The record is read in place, because most of its stack is not needed; it is copied only if it wraps around to
      // the ring's beginning.
      u64 from = tail % size, first = size - from < bytes ? size - from : bytes;
      if (first < bytes) memcpy(record, data + from, first), memcpy(record + first, data, bytes - first);
      if (record_unwind(first < bytes ? record : data + from, bytes, &at, monotonic))
        sample_put(thread, time - (monotonic - at), stack_of_native(), RUNS), samples_++;
    }
    tail += bytes;
  }
  SET(r->ring[RING_TAIL], tail);
  // Processor time without samples, because it was in the kernel or samples were lost, is recorded without a stack.
  r->owed += took;
  r->owed -= samples_ * period < r->owed ? samples_ * period : r->owed;
  for (; r->owed > 4 * period; r->owed -= period) sample_put(thread, time, 0, RUNS);
  return 1;
}
