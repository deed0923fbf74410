// Hardware counters of chosen launches in the live run, obtained with CUPTI's range profiler: a window is opened before
// a launch, every launch inside is measured as a separate range, and the window is closed after a few launches. Each
// window collects one pass, so nothing is replayed: a sweep is one window per pass, over the same kernels in the same
// order, which are recognized when the program repeats them. On an H100, the very first window takes 0.9 s, the first
// of another set of metrics 0.5 s, each other window 35 ms, and a launch inside a window about 1 ms. Only a launch
// requested by its index is replayed, by CUPTI.
//
// Launches inside a window wait for everything before them. A kernel that waits for one launched later would then never
// finish: kernels that were seen overlapping another one, NCCL, cooperative launches and graphs are not measured, and a
// launch that was not seen before closes the window.

enum { LAUNCH_PLAIN = 1, LAUNCH_EXTENDED = 2, LAUNCH_OTHER = 3, LAUNCH_CAPTURE = 4, LAUNCH_CAPTURED = 5 };
static u8 launch_kind[FUNCTIONS];
static u8 launch_heard[FUNCTIONS];

// Kind of a driver function, by its name; 0 if it does not launch anything.
static u8 kind_of_launch(const char* function) {
  if (!strcmp(function, "cuLaunchKernel") || !strcmp(function, "cuLaunchKernel_ptsz")) return LAUNCH_PLAIN;
  if (!strcmp(function, "cuLaunchKernelEx") || !strcmp(function, "cuLaunchKernelEx_ptsz")) return LAUNCH_EXTENDED;
  if (!strncmp(function, "cuStreamBeginCapture", 20)) return LAUNCH_CAPTURE;
  if (!strncmp(function, "cuStreamEndCapture", 18)) return LAUNCH_CAPTURED;
  return !strncmp(function, "cuLaunch", 8) || !strncmp(function, "cuGraphLaunch", 13) ? LAUNCH_OTHER : 0;
}

// Duration of the very first window, of the first one of another set of metrics, and of any other (seen on an H100),
// ns.
static const u64 FIRST_NS = 900000000, SWITCH_NS = 500000000, PASS_NS = 60000000;

static void measure_write(void);

enum { MOST_OTHERS = 50 };
// Loads the profiler's library, and plans and configures the metrics; the outcome is in `measure.state`.
static void measure_ready(void) {
  // The time spent with an earlier context also counts.
  if (!measure.started) measure.started = clock_now(CLOCK_MONOTONIC), measure.estimate = PASS_NS;
  // A later context on the same GPU reuses the plan; a context on another GPU is not measured.
  u32 device = 0;
  if (measure.planned && cuptiGetDeviceId(measure.context, &device) == OK) {
    measure.state = device == measure.device ? MEASURE_IDLE
      : ++measure.others < MOST_OTHERS       ? MEASURE_LOOKING
                                             : MEASURE_OFF;
    if (measure.state == MEASURE_LOOKING) measure.context = NULL;
    if (measure.state == MEASURE_OFF)
      measure.why_not = "the program goes on with another GPU than the one that was measured";
    return;
  }
  measure.state = measure_prepare() ? MEASURE_IDLE : MEASURE_OFF;
}

// ---- The current launch. Runs on a thread of the program, with measure.lock held.

static int capturing(void* stream) {
  static int (*query)(void*, int*);
  if (!query) *(void**)&query = lookup(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuStreamIsCapturing");
  int status = 0;
  return measure.capturing || !query || query(stream, &status) || status;
}

typedef struct { void* function; u32 grid[3], block[3], shared; void* stream; } Plain;
typedef struct { u32 grid[3], block[3], shared; void* stream; } Extended;

static int shape_of(u32 id, const Call* call, Shape* s, void** stream) {
  if (!call->symbol || !call->parameters) return 0;
  const Plain* p = call->parameters;
  const Extended* e = launch_kind[id] == LAUNCH_EXTENDED ? *(const Extended* const*)call->parameters : NULL;
  if (launch_kind[id] == LAUNCH_PLAIN)
    *s = (Shape){ name(call->symbol), { p->grid[0], p->grid[1], p->grid[2] }, { p->block[0], p->block[1], p->block[2] },
      p->shared },
    *stream = p->stream;
  else if (e)
    *s = (Shape){ name(call->symbol), { e->grid[0], e->grid[1], e->grid[2] }, { e->block[0], e->block[1], e->block[2] },
      e->shared },
    *stream = e->stream;
  return s->name != 0;
}

// Set while this thread's launch is being sampled.
static __thread int sampling;

// Opens a window or continues one; returns 0 if the launch is not measured.
static int measure_launch(u32 id, const Call* call) {
  Shape s = { 0 };
  void* stream = NULL;
  int plain = launch_kind[id] == LAUNCH_PLAIN || launch_kind[id] == LAUNCH_EXTENDED;
  if (plain && call->context && measure.state == MEASURE_LOOKING) {
    if (!measure.context) measure.context = call->context;
    // This may be the requested launch, which cannot wait for the ticker.
    measure.numbered = asked_numbered();
    if (measure.numbered) measure_ready();
  }
  if (measure.state == MEASURE_OFF || measure.state == MEASURE_LOOKING) return 0;
  u32 by = 0;
  int shaped = plain && shape_of(id, call, &s, &stream);
  if (measure.state == MEASURE_ARMED && measure.leaving && shaped && call->context == measure.context &&
    !capturing(stream)) {
    give_back();
    measure.state = MEASURE_IDLE;
  }
  int asked = shaped && measure.asked ? is_asked(call->symbol, &s, &by) : 0;
  if (measure.state != MEASURE_ARMED && measure.state != MEASURE_OPEN && asked < 2) return 0;
  int may = shaped && call->context == measure.context && !capturing(stream);
  Wanted* w = !may ? NULL : asked ? wanted_of(&s) : wanted_known(&s);
  if (asked & 1) asked_met(call->symbol, &s, may);
  if (w && (asked & 1) && w->asked != by) {
    // A repeated request restarts the measurement.
    w->asked = by, w->missed = 0;
    memset(w->done, 0, sizeof w->done), memset(w->attempts, 0, sizeof w->attempts);
    w->sampled = 0;
    // The ticker starts a sweep with this launch.
    if (measure.state == MEASURE_ARMED && !measure.sweeping) measure.state = MEASURE_IDLE, measure.sampling = 0;
  }
  // An unknown kernel might wait for another one; collectives do.
  may = w && (w->asked || asked >= 2 || ((w->launches || w->follows) && !w->apart && !w->collective));
  int sampled = measure.state == MEASURE_ARMED && measure.sampling && same_shape(&measure.start, &s);
  if (may && !(asked & 2) && ((asked & 4) || sampled)) {
    if (measure.state == MEASURE_OPEN) window_close();
    if (measure.state == MEASURE_CLOSED) measure_write();
    if (measure.state == MEASURE_OFF) return 0;
    measure.sweeping = measure.sampling = 0, measure.pass = 0, measure.state = MEASURE_IDLE;
    sampling = stalls_open(call, &s, w);
    // If a capture began in the meantime, a later launch is sampled.
    w->sampled = sampling || stalls.why_not;
    return sampling;
  }
  if (may && (asked & 2)) {
    if (measure.state == MEASURE_OPEN) window_close();
    // The values of the previous sweep have not been written yet.
    if (measure.state == MEASURE_CLOSED) measure_write();
    measure.sweeping = measure.sampling = 0, measure.set = SET_REPLAYED, measure.pass = 0;
    if (!window_open(REPLAY_BY_CUPTI)) return 0;
  } else if (measure.state == MEASURE_OPEN) {
    // In later passes, each launch must match that of the first pass.
    may = may && (!measure.pass || (measure.count < measure.length && same_shape(&inside[measure.count].shape, &s)));
    if (!may) window_close();
    if (!may) return 0;
  } else if (measure.state != MEASURE_ARMED || measure.sampling || !may || !same_shape(&measure.start, &s) ||
    !window_open(REPLAY_NONE)) {
    return 0;
  }
  measure.useless = lacks(w, measure.set) ? 0 : measure.useless + 1;
  Inside* in = &inside[measure.count++];
  if (!measure.pass) *in = (Inside){ .shape = s, .time = now(), .thread = tid(), .good = 1 };
  if (!measure.pass && !w->swept) w->swept = 1, w->attempts[measure.set]++;
  in->correlations[measure.pass] = call->correlation;
  measure.recent[call->correlation % COUNT(measure.recent)] = call->correlation;
  measure.launches++;
  measure.last_launch = clock_now(CLOCK_MONOTONIC);
  return 1;
}

// Acquires measure.lock on a thread of the program; with `passes`, the launch proceeds without the lock while no window
// is open. CUPTI may be waiting for this very launch on behalf of the owner, so the wait is bounded. Nothing else may
// run concurrently with a replayed launch, because its memory is restored after each pass.
enum { TICKER_MS = 2000, LAUNCH_MS = 20000, PASS_MS = 50 };
static int measure_lock(int passes) {
  u64 began = clock_now(CLOCK_MONOTONIC);
  u32 turn = measure.turns, owner;
  cancel_hold();
  for (int tries = 0; !lock_take(&measure.lock, &owner); tries++) {
    int passing = measure.passing, later = PASS_LATER;
    // A signal handler launches a kernel on a thread whose own launch is being measured.
    if (owner == own_tid || gone || (passes && passing == PASS_NOW && !measure.numbered)) return cancel_release(), 0;
    if (tries < SPINS) {
      SYSTEM(SYS_SCHED_YIELD);
      continue;
    }
    if (is_other_process() || ending) return cancel_release(), 0;
    if (lock_take_over(&measure.lock, owner)) break;
    // Another owner has the lock now, or a launch is being replayed: restart the count.
    if (measure.replaying || turn != measure.turns) began = clock_now(CLOCK_MONOTONIC), turn = measure.turns;
    u64 waited = clock_now(CLOCK_MONOTONIC) - began;
    // From now on, launches pass without waiting: otherwise, with many threads, at least one would always be waiting.
    if (passing == PASS_LATER && waited > PASS_MS * 1000000ul)
      __atomic_compare_exchange_n(&measure.passing, &later, PASS_NOW, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    if (waited > (measure.on_ticker ? TICKER_MS : LAUNCH_MS) * 1000000ul) {
      measure.why_not = "a launch waited for the profiler for too long; nothing was measured after that";
      __atomic_store_n(&measure.stuck, 1, __ATOMIC_SEQ_CST);
    }
    if (measure.stuck && !__atomic_load_n(&measure.replaying, __ATOMIC_SEQ_CST)) return cancel_release(), 0;
    nap();
  }
  measure.turns++;
  return 1;
}

static void measure_entered(u32 id, const Call* call) {
  if (launch_kind[id] == LAUNCH_CAPTURE) ADD(measure.capturing, 1);
  if ((measure.stuck && !measure.replaying) || session.ended || !measure_lock(1)) return;
  if (measure.stuck) {
    unlock(&measure.lock);
    return;
  }
  holds = measure_launch(id, call);
  if (holds) measure.within_name = name(call->symbol), measure.within = clock_now(CLOCK_MONOTONIC);
  // Callbacks are disabled only by the owner of the lock, so the return of a launch that began inside a window is still
  // observed.
  if (!holds) unlock(&measure.lock);
}

static void measure_left(u32 id, const Call* call) {
  int failed = call->returned && *(const u32*)call->returned;
  // A capture that failed to begin has no end.
  int ended = launch_kind[id] == LAUNCH_CAPTURED || (launch_kind[id] == LAUNCH_CAPTURE && failed);
  if (ended && measure.capturing) ADD(measure.capturing, (u32)-1);
  if (!holds) return;
  holds = 0;
  if (sampling) {
    sampling = 0;
    stalls_close();
    measure.within = 0;
    unlock(&measure.lock);
    return;
  }
  measure.left_at = clock_now(CLOCK_MONOTONIC);
  int late = 0;
  if (!measure.replayed && took_too_long(measure.left_at - measure.last_launch, &inside[measure.count - 1].shape)) {
    measure.why_not = "a measured launch took over five seconds and a hundred times as long as usual: kernels of this "
                      "program may wait for each other";
    measure.budget = 0, late = 1;
  }
  int more = measure.pass && measure.count < measure.length;
  for (u32 i = 0; i < measure.wanted && !measure.pass && !more; i++) {
    const Wanted* w = &wanted_launches[i];
    more = (w->active || w->asked) && !w->swept && lacks(w, measure.set);
  }
  int full = measure.replayed || measure.count >= WINDOW || (!measure.pass && measure.useless >= USELESS);
  if (full || late || !more || (!measure.budget && !measure.asked && !measure.sweeping)) window_close();
  if (late && measure.state != MEASURE_CLOSED) measure.sweeping = 0, measure.pass = 0;
  measure.within = 0;
  unlock(&measure.lock);
}
