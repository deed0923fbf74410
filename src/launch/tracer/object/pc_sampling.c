// Warp stall reasons during one launch, per instruction, obtained with CUPTI's PC sampling (Volta and later) around
// that launch, without replay. Like the range profiler, it occupies the GPU's counters, so one is disabled before the
// other is enabled. Samples are located in the code by the CRC of their module: modules are kept when they are loaded,
// because CUPTI provides them only at that time.
//
// These are our own declarations, with the sizes of 12.4, which all later versions accept.

typedef struct { u32 reason, samples; } Reason;
typedef struct {
  u64 size, crc, offset;
  u32 function, unused;
  char* name;
  u64 count;
  Reason* reasons;
  u32 correlation;
} Sampled;
typedef struct {
  u64 size, room, total, dropped, count, left, range;
  Sampled* list;
  u64 foreign;
  u8 full;
} Samples;
typedef struct {
  u32 type;
  Result status;
  union { u64 words[3]; struct { u64 count; u32* list; } reasons; u32 number; u64 bytes; void* data; } value;
} Setting;
typedef struct { u64 size; void *reserved, *context; } Sampling;
typedef struct { u64 size; void *reserved, *context; u64 count; Setting* list; } Configuration;
typedef struct { u64 size; void *reserved, *context; Samples* data; } Taking;
typedef struct { u64 size; void *reserved, *context; u64* count; } CountReasons;
typedef struct { u64 size; void *reserved, *context; u64 count; u32* numbers; char** names; } NameReasons;
typedef struct { u64 size, bytes; const void* module; u64 crc; } Checksum;
typedef struct { u32 id; u64 bytes; const char* code; } Loaded;
typedef struct { void *context, *handle; const Loaded* module; } Resource;

#define SAMPLING_FUNCTIONS                                                                                             \
  X(cuptiPCSamplingEnable, Sampling)                                                                                   \
  X(cuptiPCSamplingDisable, Sampling) X(cuptiPCSamplingStart, Sampling) X(cuptiPCSamplingStop, Sampling)               \
    X(cuptiPCSamplingSetConfigurationAttribute, Configuration) X(cuptiPCSamplingGetData, Taking)                       \
      X(cuptiPCSamplingGetNumStallReasons, CountReasons) X(cuptiPCSamplingGetStallReasons, NameReasons)                \
        X(cuptiGetCubinCrc, Checksum)
#define X(name, parameter) static Result (*name)(parameter*);
SAMPLING_FUNCTIONS
#undef X

enum { ATTRIBUTE_PERIOD = 1, ATTRIBUTE_REASONS = 2, ATTRIBUTE_SCRATCH = 3, ATTRIBUTE_HARDWARE = 4, ATTRIBUTE_MODE = 5,
  ATTRIBUTE_START_STOP = 6, ATTRIBUTE_DATA = 8 };
enum { MODE_SERIALIZED = 2, DOMAIN_RESOURCE = 3, CONTEXT_DESTROYED = 2, MODULE_LOADED = 6, ERROR_NO_MEMORY = 8 };
// Samples are taken every 2^5 to 2^31 cycles. PER_SM samples per SM are enough to resolve lines that account for one
// percent. A launch of unknown duration gets a shorter period (UNSEEN) than most, so that a short launch has enough
// samples.
enum { SHORTEST = 5, UNSEEN = 9, LONGEST_PERIOD = 20, PER_SM = 128 };
enum { REASONS = 96, INSTRUCTIONS = 16384, NAME = 128, MODULES = 8192, CODES = 256 };
// Fewer modules are kept until samples are requested, which may happen while the program is running.
static const u64 MOST_KEPT = 512ul << 20, MOST_KEPT_ASIDE = 128ul << 20, LARGEST_WRITTEN = 32ul << 20,
                 MOST_WRITTEN = 128ul << 20;

static struct {
  u32 count, numbers[REASONS];
  char texts[REASONS][NAME];
  Samples given, taken;
  // A sampled launch that has not been written yet.
  Shape shape;
  u64 time;
  u32 thread, correlation, period, launches, missed;
  Result result;
  int ready, waiting, enabled, full;
  u64 estimate;
  const char* why_not;
} stalls;

// Duration of the first sampled launch (seen on an H100: 0.1 to 0.3 s), ns.
static const u64 FIRST_SAMPLING_NS = 300000000;

// ---- Modules, which are kept if launches are to be sampled.

typedef struct { const u8* code; u64 bytes, crc; u8 hashed, written; } Module;
static struct { Lock lock; Module list[MODULES]; u32 count; u64 bytes, most, written; } modules;

// Runs on the thread that loads the module.
static void module_loaded(const Resource* r) {
  const Loaded* m = r->module;
  if (!m || !m->code || !m->bytes) return;
  if (!lock(&modules.lock)) return;
  // A context that is created after another one loads the same modules again.
  int known = 0;
  for (u32 i = 0; i < modules.count && !known; i++)
    known = modules.list[i].bytes == m->bytes && !memcmp(modules.list[i].code, m->code, m->bytes);
  if (!known && modules.count < MODULES && modules.bytes + m->bytes <= modules.most) {
    u8* kept = pages(m->bytes, 0);
    if (kept) {
      memcpy(kept, m->code, m->bytes);
      modules.list[modules.count] = (Module){ kept, m->bytes };
      modules.bytes += m->bytes;
      __atomic_store_n(&modules.count, modules.count + 1, __ATOMIC_RELEASE);
    }
  }
  unlock(&modules.lock);
}

static void modules_hear(u64 most) {
  modules.most = most;
  cuptiEnableCallback(1, subscription, DOMAIN_RESOURCE, MODULE_LOADED);
}

// CRCs of sampled modules whose code has not been written yet. Protected by measure.lock.
static u64 codes_due[CODES];
static u32 codes_count;
static void code_due(u64 crc) {
  for (u32 i = 0; i < codes_count; i++)
    if (codes_due[i] == crc) return;
  if (codes_count < CODES) codes_due[codes_count++] = crc;
}

// Writes the code of a module once. Runs on the ticker, without measure.lock, because the search may take a while.
static void module_write(u64 crc) {
  u32 count = __atomic_load_n(&modules.count, __ATOMIC_ACQUIRE);
  for (u32 i = 0; i < count; i++) {
    Module* m = &modules.list[i];
    Checksum c = { sizeof c, m->bytes, m->code, 0 };
    if (!m->hashed) m->hashed = 1, m->crc = cuptiGetCubinCrc(&c) == OK ? c.crc : 0;
    if (m->crc != crc) continue;
    u64 n = m->bytes;
    if (m->written || n > LARGEST_WRITTEN || modules.written + n > MOST_WRITTEN) return;
    u8* data = pages(n + 32, 0);
    if (!data) return;
    u8* p = put_number(data, crc);
    p = put_number(p, n);
    memcpy(p, m->code, n);
    put_block(BLOCK_CODE, 0, 0, 1, data, (u32)(p + n - data));
    pages_free(data, n + 32);
    m->written = 1, modules.written += n;
    return;
  }
}

// ---- Sampling one launch.

// Returns 1 if the launch took too long, for example because its kernel waits for another one. The first launch in a
// window also waits for earlier GPU work.
static int took_too_long(u64 ns, const Shape* s) {
  const Wanted* w = wanted_known(s);
  return ns > LONG_NS && ns > LONGER * (w ? w->mean : 0);
}

static int stalls_failed(const char* what, Result r) {
  static char text[200];
  if (r == OK) return 0;
  snprintf(text, sizeof text,
    r == ERROR_INSUFFICIENT_PRIVILEGES ? "this user has no permission to access GPU performance counters (%s)"
      : r == ERROR_HARDWARE_BUSY       ? "another profiler holds the GPU's counters (%s)"
                                       : "%s: %s",
    what, result_text(r));
  stalls.why_not = text;
  return 1;
}

static int samples_make(Samples* s) {
  *s = (Samples){ .size = sizeof *s, .room = INSTRUCTIONS, .list = pages(INSTRUCTIONS * sizeof(Sampled), 0) };
  Reason* reasons = pages((u64)INSTRUCTIONS * stalls.count * sizeof(Reason), 0);
  if (!s->list || !reasons) return 0;
  for (u32 i = 0; i < INSTRUCTIONS; i++)
    s->list[i].size = sizeof(Sampled), s->list[i].reasons = reasons + (u64)i * stalls.count;
  return 1;
}

// Queries CUPTI once, while PC sampling is enabled.
static int stalls_prepare(void) {
  u64 count = 0;
  static char* texts[REASONS];
  CountReasons all = { sizeof all, NULL, measure.context, &count };
  if (stalls_failed("cuptiPCSamplingGetNumStallReasons", cuptiPCSamplingGetNumStallReasons(&all))) return 0;
  if (!count || count > REASONS) {
    stalls.why_not = "CUPTI knows no stall reasons of this GPU, or too many";
    return 0;
  }
  for (u32 i = 0; i < count; i++) texts[i] = stalls.texts[i];
  NameReasons names_ = { sizeof names_, NULL, measure.context, count, stalls.numbers, texts };
  if (stalls_failed("cuptiPCSamplingGetStallReasons", cuptiPCSamplingGetStallReasons(&names_))) return 0;
  stalls.count = (u32)count;
  if (!samples_make(&stalls.given) || !samples_make(&stalls.taken)) {
    stalls.why_not = "no memory";
    return 0;
  }
  return stalls.ready = 1;
}

// Sampling period that gives a launch of the usual duration enough samples, and size of the hardware buffer: a larger
// buffer takes longer (20 ms for 64 MiB on an H100).
static u32 period_of(const Wanted* w, u64* buffer) {
  u64 ns = w ? w->mean : 0, cycles = ns + ns * 3 / 4;
  u32 period = SHORTEST;
  *buffer = ns ? 8 << 20 : 64 << 20;
  if (!ns) return UNSEEN;
  while (period < LONGEST_PERIOD && cycles >> (period + 1) >= PER_SM) period++;
  return period;
}

static int (*wait_for_gpu)(void);

// Releases the counters. The caller holds measure.lock.
static void stalls_leave(void) {
  Sampling on = { sizeof on, NULL, measure.context };
  if (!stalls.enabled) return;
  measure.passing = PASS_NOW;
  cuptiPCSamplingDisable(&on);
  measure.passing = PASS_NOT, stalls.enabled = 0;
}

// Enabling takes 0.1 s or more in a program with many modules, so sampling stays enabled until all requested launches
// have been sampled.
static int stalls_configure(const Wanted* w) {
  Sampling on = { sizeof on, NULL, measure.context };
  if (wait_for_gpu()) return 0;
  if (!stalls.enabled) {
    range_profiler_leave();
    measure.passing = PASS_NOW;
    int failed = stalls_failed("cuptiPCSamplingEnable", cuptiPCSamplingEnable(&on));
    measure.passing = PASS_NOT;
    if (failed) return 0;
    stalls.enabled = 1;
    // Other launches passed in the meantime: if one began a capture, waiting for the GPU is not allowed.
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (measure.capturing && !measure.numbered) return -1;
    if (wait_for_gpu()) return 0;
  }
  int good = stalls.ready || stalls_prepare();
  u64 buffer;
  stalls.period = period_of(w, &buffer);
  Setting list[] = {
    { ATTRIBUTE_REASONS, 0, { .reasons = { stalls.count, stalls.numbers } } },
    { ATTRIBUTE_PERIOD, 0, { .number = stalls.period } },
    { ATTRIBUTE_MODE, 0, { .number = MODE_SERIALIZED } },
    { ATTRIBUTE_START_STOP, 0, { .number = 1 } },
    { ATTRIBUTE_SCRATCH, 0, { .bytes = 1 << 20 } },
    { ATTRIBUTE_HARDWARE, 0, { .bytes = buffer } },
    { ATTRIBUTE_DATA, 0, { .data = &stalls.given } },
  };
  Configuration all = { sizeof all, NULL, measure.context, COUNT(list), list };
  if (good &&
    !stalls_failed("cuptiPCSamplingSetConfigurationAttribute", cuptiPCSamplingSetConfigurationAttribute(&all)) &&
    !stalls_failed("cuptiPCSamplingStart", cuptiPCSamplingStart(&on)))
    return 1;
  stalls_leave();
  return 0;
}

static void stalls_write(void), stalls_write_from(Samples* s);
enum { TAKES = 64 };

// Runs before the launch, on its thread, with measure.lock held. The GPU must be idle when sampling starts.
static int stalls_open(const Call* call, const Shape* s, const Wanted* w) {
  if (stalls.why_not) return 0;
  if (!wait_for_gpu) {
    *(void**)&wait_for_gpu = lookup(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuCtxSynchronize");
    void* library = dlopen(session.library, RTLD_NOW | RTLD_NOLOAD);
    int all = wait_for_gpu && library;
#define X(name, parameter) all = all && (*(void**)&name = lookup(library, #name));
    SAMPLING_FUNCTIONS
#undef X
    if (!all) {
      stalls.why_not = "libcupti is older than 12.4 and has no PC sampling";
      return 0;
    }
  }
  // Writes the remaining samples of the previous launch.
  if (stalls.waiting) stalls_write();
  measure.opened_at = measure.left_at = clock_now(CLOCK_MONOTONIC), measure.opened = now();
  int configured = stalls_configure(w);
  if (configured < 0) return 0;
  if (!configured) {
    if (!stalls.why_not) stalls.why_not = "the program's CUDA context is in an error state";
    return 0;
  }
  stalls.given.count = stalls.taken.count = 0, stalls.missed = 0, stalls.full = 0;
  stalls.shape = *s, stalls.time = now(), stalls.thread = tid(), stalls.correlation = call->correlation;
  measure.last_launch = clock_now(CLOCK_MONOTONIC);
  return 1;
}

// Runs after the launch, on the same thread.
static void stalls_close(void) {
  Sampling on = { sizeof on, NULL, measure.context };
  Taking take = { sizeof take, NULL, measure.context, &stalls.taken };
  wait_for_gpu();
  Result r = cuptiPCSamplingStop(&on);
  // Each call returns the data available so far: write it and request more, until there is none left.
  for (int tries = 0; r == OK && tries < TAKES; tries++) {
    if (tries) stalls_write_from(&stalls.taken);
    r = cuptiPCSamplingGetData(&take);
    if (!stalls.taken.left) break;
  }
  // The buffer on the GPU was full; the samples taken before that are valid.
  if (r == ERROR_NO_MEMORY) stalls.full = 1, r = OK;
  stalls.result = r, stalls.launches++, stalls.waiting = 1;
  u64 t = clock_now(CLOCK_MONOTONIC), took = t - measure.opened_at;
  stalls.estimate = took;
  window_took(stalls.thread, took);
  if (took_too_long(t - measure.last_launch, &stalls.shape))
    stalls.why_not = "a sampled launch took far longer than usual";
}

// Writes a row of samples. The caller holds measure.lock.
static void stalls_write_from(Samples* s) {
  enum { ROW = 16, STALL_BLOCK = 8 << 20 };
  static u8* data;
  if ((!s->count && !stalls.full) || (!data && !(data = pages(STALL_BLOCK, 0)))) return;
  u64 count = s->count < s->room ? s->count : s->room, rows_ = 0;
  u32 names_of[REASONS], shape[8];
  memcpy(shape, &stalls.shape, sizeof shape);
  for (u32 i = 0; i < stalls.count; i++) names_of[i] = name(stalls.texts[i]);
  u8* p = put_number(data, stalls.thread);
  p = put_number(p, stalls.time);
  for (u32 k = 0; k < COUNT(shape); k++) p = put_number(p, shape[k]);
  p = put_number(p, stalls.correlation), p = put_number(p, stalls.period),
  p = put_number(p, s->total > s->foreign ? s->total - s->foreign : 0), p = put_number(p, s->dropped),
  p = put_number(p, (u64)(s->full || stalls.full));
  u8* at = p;
  for (u64 i = 0; i < count && p + 5 * 10 + stalls.count * 2 * ROW < data + STALL_BLOCK - 16; i++) {
    const Sampled* one = &s->list[i];
    u64 taken = 0, reasons = one->count < stalls.count ? one->count : stalls.count;
    for (u64 k = 0; k < reasons; k++) taken += one->reasons[k].samples > 0;
    p = put_number(p, one->crc), p = put_number(p, name(one->name)), p = put_number(p, one->offset),
    p = put_number(p, taken);
    for (u64 k = 0; k < reasons; k++) {
      u32 which = 0;
      if (!one->reasons[k].samples) continue;
      while (which < stalls.count && stalls.numbers[which] != one->reasons[k].reason) which++;
      p = put_number(p, which < stalls.count ? names_of[which] : 0), p = put_number(p, one->reasons[k].samples);
    }
    rows_++;
    code_due(one->crc);
  }
  // The count precedes the instructions.
  u8 head[10];
  u64 n = (u64)(put_number(head, rows_) - head);
  memmove(at + n, at, (u64)(p - at));
  memcpy(at, head, n);
  names_flush();
  put_block(BLOCK_STALLS, 0, 0, 1, data, (u32)(p + n - data));
  // Records share their names, also with kernel records (seen with 13.0), so the names are not freed.
  s->count = 0, stalls.full = 0;
}

// Writes the pending samples. The caller holds measure.lock.
static void stalls_write(void) {
  stalls.waiting = 0;
  if (stalls_failed("cuptiPCSamplingGetData", stalls.result)) return;
  stalls_write_from(&stalls.taken), stalls_write_from(&stalls.given);
}

// Called on the destroying thread when the measured context, and with it CUPTI's data, is about to be destroyed.
static void measure_write(void);
static int measure_lock(int passes);
static void measure_hear(int on);
static void context_destroyed(const Resource* r) {
  // The ticker may be preparing the profiler in this context.
  for (int tries = 0;
    measure.preparing && measure.context == r->context && tries < PREPARING_MS && !gone && !session.ended; tries++)
    nap();
  // This thread cannot have a launch in progress, because it is inside another call. At the end of the process, the
  // counters do not have to be released.
  if (r->context != measure.context || holds || session.ended || !measure_lock(0)) return;
  if (measure.state == MEASURE_OPEN) window_close();
  if (measure.state == MEASURE_CLOSED) measure_write();
  if (stalls.waiting) stalls_write();
  stalls_leave();
  range_profiler_leave();
  if (measure.sweeping && measure.pass) measure.cut = measure.pass;
  measure.sampling = measure.sweeping = 0, measure.pass = 0, measure.leaving = 0;
  // The program may create another context.
  if (measure.state != MEASURE_OFF) {
    measure.state = MEASURE_LOOKING, measure.context = NULL;
    measure_hear(1);
  }
  unlock(&measure.lock);
}
