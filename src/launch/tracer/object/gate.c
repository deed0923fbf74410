// What is recorded: the whole run, or windows of it. A window is bounded by correlation ids, which every call of the process gets in order:
// whatever was launched inside is recorded, whenever its record comes.

enum { WINDOWS = 256 };
typedef struct { u32 open, close, closed; u64 opened_at; } Window;

enum { UNGATED = 0, GATED = 1, GATED_BY_PROFILER = 2, GATED_BY_EACH_RANGE = 3 };
static struct {
  Lock lock;
  // Without a gate all is recorded.
  int gated;
  volatile int is_open;
  Window list[WINDOWS];
  volatile u32 count;
} gate;

static void* subscription;
static Result (*cuDriverGetVersion)(int*);
static u32 marker_function;
static __thread u32 marker;

// The id that the next call of this process is given, by making a call that programs hardly ever make.
static u32 correlation_now(void) {
  int version;
  if (!subscription || !cuDriverGetVersion || !marker_function) return 0;
  marker = 0;
  cuptiEnableCallback(1, subscription, DOMAIN_DRIVER, marker_function);
  cuDriverGetVersion(&version);
  cuptiEnableCallback(0, subscription, DOMAIN_DRIVER, marker_function);
  return marker;
}

static void recording(int on);
static void event(u8 kind, u32 domain, u32 text, u64 id);
enum { EVENT_GATE_OPEN = 6, EVENT_GATE_CLOSE = 7 };

// `correlation` is that of the call that opens or closes; 0 where no call does.
static void gate_set(int on, const char* why, u32 correlation) {
  if (!gate.gated || gone) return;
  lock(&gate.lock);
  int changed = gate.is_open != on;
  // While the gate is closed CUPTI records nothing, and costs nothing. What comes again and again stays enabled: enabling takes its time.
  if (changed && on) recording(1);
  if (changed && !correlation) correlation = correlation_now();
  if (changed && on) {
    Window* w = &gate.list[gate.count % WINDOWS];
    *w = (Window){ correlation, 0, 0, now() };
    __atomic_store_n(&gate.count, gate.count + 1, __ATOMIC_RELEASE);
  } else if (changed && gate.count) {
    Window* w = &gate.list[(gate.count - 1) % WINDOWS];
    w->close = correlation, w->closed = 1;
    if (gate.gated != GATED_BY_EACH_RANGE) recording(0);
  }
  gate.is_open = on;
  unlock(&gate.lock);
  if (changed) event(on ? EVENT_GATE_OPEN : EVENT_GATE_CLOSE, 0, name(why), correlation);
}

// Whether a record of that id lies in a window. Ids wrap: they are compared by difference.
static int wanted(u32 correlation) {
  if (LIKELY(!gate.gated)) return 1;
  u32 count = __atomic_load_n(&gate.count, __ATOMIC_ACQUIRE);
  for (u32 i = count; i > 0 && count - i < WINDOWS; i--) {
    const Window* w = &gate.list[(i - 1) % WINDOWS];
    // The call that opened it belongs to it.
    if ((i32)(correlation - w->open) < 0) continue;
    return !w->closed || (i32)(correlation - w->close) <= 0;
  }
  return 0;
}

// A gate that follows an NVTX range: `NAME` or `NAME@DOMAIN`, each or only the n-th that is entered.
static struct { u32 text, domain, any, only; volatile u32 entered; u64 range; } gate_range;
// The open range of this thread: its domain, and how many of that domain are open from it on.
static __thread u32 gate_domain, gate_nested;

static int gate_matches(u32 domain, u32 text) {
  if (!gate_range.text || text != gate_range.text || domain != gate_range.domain) return 0;
  u32 nth = ADD(gate_range.entered, 1) + 1;
  return !gate_range.only || nth == gate_range.only;
}
static void gate_entered(u32 domain, u32 text) {
  if (gate_nested) {
    gate_nested += domain == gate_domain;
  } else if (gate_matches(domain, text)) {
    gate_domain = domain, gate_nested = 1;
    gate_set(1, "NVTX range", 0);
  }
}
static void gate_left(u32 domain) {
  if (gate_nested && domain == gate_domain && !--gate_nested) gate_set(0, "NVTX range", 0);
}
static void gate_started(u32 domain, u32 text, u64 id) {
  if (gate_matches(domain, text)) gate_range.range = id, gate_set(1, "NVTX range", 0);
}
static void gate_ended(u64 id) {
  if (gate_range.range == id) gate_range.range = 0, gate_set(0, "NVTX range", 0);
}
