// The capture range: the whole run, or windows of it. A window is bounded by correlation ids, which CUPTI assigns to
// the calls of the process in increasing order: all work launched inside is recorded, no matter when its record
// arrives.

enum { WINDOWS = 1 << 20 };
// `open` and `close` are the correlation ids at the bounds. `opened` and `closed` are times on the clock of records:
// when the window opened, and when CUPTI stopped recording after it; 0 if unknown or still in the future.
typedef struct { u64 open, close, opened, closed; } Window;

enum { UNGATED = 0, GATED = 1, GATED_BY_PROFILER = 2, GATED_BY_EACH_RANGE = 3, GATED_BY_LAUNCH = 4 };
static struct {
  Lock lock;
  // Without a gate, everything is recorded.
  volatile int gated, is_open;
  // Sorted by id; an open window closes at the greatest id.
  Window list[WINDOWS];
  volatile u32 count;
  // Times on the monotonic clock.
  u64 opened_at;
  volatile u64 closed_at;
  // Number of threads that are opening the gate.
  volatile u32 opening;
} gate;

static struct {
  u64 started, flushing_ns;
  int lean, all_calls, whole_graphs, memory, by_callbacks, per_thread, recording, heard, profiler_heard;
  // Added to CUPTI's correlation ids, which start over with each subscription.
  u32 id_base;
  // With `by_callbacks`, the first correlation id from which calls no longer have records (other_client.c).
  u32 records_until;
  // CUPTI's errors when records of chosen calls and of kernels were enabled, and when it refused the subscription.
  u32 chosen_error, kernel_error, refusal;
  // Error of cuInit, if the driver could not be initialized.
  u32 cuda_error;
  // Number of forks since the tracer was initialized (`begin`).
  volatile u32 forks;
  // Why the library cannot be used, as a keyword of FORMAT.md (fact `unusable`); NULL if it can.
  const char* unusable;
  // `ready`: the process uses CUDA, its file can be written, the ticker runs. `attached`: subscribed to CUPTI.
  volatile int ready, attached, ended;
  // The latest attempt to subscribe met a thread that was instantiating a graph.
  int instantiating;
  // CUPTI is only being loaded (session_prepare).
  int prepares;
  char library[512], reason[256];
  // Base address of `library`.
  void* base;
} session;
// A copy, because programs overwrite their environment.
static char prefix[4000];

enum { DETACH_NO, DETACH_WATCHING, DETACH_WANTED, DETACH_TAKEN, DETACH_DONE };
// State of the detach from CUPTI (detach.c). `count` is the number of subscriptions that have ended.
static struct {
  volatile u32 state, graph_thread, several, missed, waiting, users, count;
  volatile u64 first_call, last_call;
  u64 since, stopped, retry_at, pause;
  // Time for which the latest detach held up its thread, and all of them did, ns. Time during which the program made
  // calls while CUPTI was to be detached, ns.
  u64 took, took_in_all;
  volatile u64 active_ns;
  // Set if the gate opens at intervals (an overhead limit): CUPTI is then detached soon after each closing.
  int soon;
  Result result;
  const char* why_not;
} detach;

// Returns true if the gate can open again after a detach, that is, without CUPTI's callbacks.
static int detach_opens_again(void) {
  return gate.gated == GATED || (gate.gated == GATED_BY_PROFILER && session.profiler_heard);
}

// Correlation ids have 32 bits and wrap around: they are extended relative to the newest one seen.
static u64 newest_id;
static u64 long_id(u32 id) {
  u64 newest = __atomic_load_n(&newest_id, __ATOMIC_RELAXED), v = newest + (u64)(i64)(i32)(id - (u32)newest);
  if (v > newest) __atomic_store_n(&newest_id, v, __ATOMIC_RELAXED);
  return v;
}

static void* subscription;
static Result (*cuDriverGetVersion)(int*);
static u32 marker_function;
static __thread u32 marker;

// Correlation id of the process's next call, obtained through a call that programs rarely make; 0 on failure.
static u32 correlation_now(void) {
  int version;
  if (!subscription || !cuDriverGetVersion || !marker_function) return 0;
  marker = 0;
  cuDriverGetVersion(&version);
  return marker;
}

static void recording(int on);
static int session_attach(void);
static void flush(u32 forced);
static void event(u8 kind, u32 domain, u32 text, u64 id);
enum { EVENT_GATE_OPEN = 6, EVENT_GATE_CLOSE = 7 };

// CUPTI keeps recording for a while after a gate has closed, because work in progress when it stops gets no record
// (seen with 13.0 on an H100). With a gate that opens for each range, CUPTI keeps recording, because switching takes
// time.
static const u64 GRACE_NS = 200000000;
static int recording_due(void) {
  // See calls_hear: a recording with activity records of calls continues, and records outside the windows are dropped.
  int by_records = GET(session.recording) && !session.by_callbacks;
  int stays = !gate.gated || by_records || GET(gate.is_open) || GET(gate.opening) ||
    (gate.gated == GATED_BY_EACH_RANGE && gate.count);
  // CUPTI must still be recording when it is detached, see detach.c.
  int leaves = GET(session.recording) && detach_opens_again() && !GET(detach.missed) && !detach.why_not;
  return stays || leaves || clock_now(CLOCK_MONOTONIC) - GET(gate.closed_at) < GRACE_NS;
}
enum { SWITCHING_MS = 100 };
static Lock switching;
static void recording_switch(void) {
  // From here on, another thread may open a new window.
  u32 windows = __atomic_load_n(&gate.count, __ATOMIC_ACQUIRE);
  u64 stopped = 0;
  if (!recording_due()) flush(0), cuptiGetTimestamp(&stopped);
  // The flush takes time, so the answer may have changed.
  int due = recording_due();
  if (due == session.recording) return;
  // Recording did not stop when these windows closed, so all of them end only now.
  for (u32 i = windows; !due && i-- && !gate.list[i].closed;)
    __atomic_store_n(&gate.list[i].closed, stopped, __ATOMIC_RELEASE);
  recording(due);
}
// Starts or stops CUPTI's recording as the gate requires. The desired state may change while a thread is switching, so
// that thread checks again, and the ticker checks periodically.
static void recording_follow(void) {
  for (int looks = 0; looks < 8; looks++) {
    __atomic_thread_fence(__ATOMIC_SEQ_CST);
    if (GET(session.recording) == recording_due() || !lock_within(&switching, SWITCHING_MS)) return;
    recording_switch();
    unlock(&switching);
  }
}

static void states_wanted(void);
static void thread_seen(u32 thread);
// `correlation` is the id of the call that opens or closes the gate, or 0 if there is no such call. CUPTI is called
// without gate.lock, because it may call back.
static void gate_turned(int on, const char* why, u32 correlation) {
  int attached = GET(session.attached);
  // On the clock of records. Other threads may launch kernels from now on.
  u64 opened = 0;
  if (on && attached) cuptiGetTimestamp(&opened), recording_follow();
  if (!correlation && attached) correlation = correlation_now();
  if (!lock(&gate.lock)) return;
  int changed = gate.is_open != on && !gone;
  if (changed && on && gate.count < WINDOWS) {
    // Without an id, everything from now on is recorded, because too much is better than too little.
    u64 id = correlation ? __atomic_load_n(&newest_id, __ATOMIC_RELAXED) + (u64)(i64)(i32)(correlation - (u32)newest_id)
                         : newest_id;
    __atomic_store_n(&newest_id, id, __ATOMIC_RELAXED);
    gate.list[gate.count] = (Window){ id, ~0ul, correlation ? opened : 0, 0 };
    gate.opened_at = clock_now(CLOCK_MONOTONIC);
    __atomic_store_n(&gate.count, gate.count + 1, __ATOMIC_RELEASE);
  } else if (changed && !on && gate.count && gate.count < WINDOWS && correlation) {
    __atomic_store_n(&gate.list[gate.count - 1].close, long_id(correlation), __ATOMIC_RELEASE);
  }
  if (changed && !on) SET(gate.closed_at, clock_now(CLOCK_MONOTONIC));
  if (changed) SET(gate.is_open, on);
  unlock(&gate.lock);
  if (!changed) return;
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (on && !attached && GET(session.ready)) attached = session_attach();
  if (on && attached) recording_follow();
  if (GET(session.ready)) event(on ? EVENT_GATE_OPEN : EVENT_GATE_CLOSE, 0, name(why), correlation);
  if (on && attached) states_wanted();
}
static void gate_set(int on, const char* why, u32 correlation) {
  if (!gate.gated || gone) return;
  if (gate.is_open == on) return;
  if (on) __atomic_fetch_add(&gate.opening, 1, __ATOMIC_SEQ_CST);
  if (!on || !GET(session.ready) || session_attach()) gate_turned(on, why, correlation);
  if (on) ADD(gate.opening, (u32)-1);
}

// Returns the window that contains a correlation id. A window includes the calls that opened and closed it.
static const Window* window_of(u32 correlation) {
  u64 id = long_id(correlation);
  u32 low = 0, above = __atomic_load_n(&gate.count, __ATOMIC_ACQUIRE);
  // Finds the last window that begins at or before the id.
  while (low < above) {
    u32 middle = low + (above - low) / 2;
    if (gate.list[middle].open <= id) low = middle + 1;
    else above = middle;
  }
  return low && id <= __atomic_load_n(&gate.list[low - 1].close, __ATOMIC_ACQUIRE) ? &gate.list[low - 1] : NULL;
}
static int wanted(u32 correlation) { return LIKELY(!gate.gated) || window_of(correlation); }

// A gate that opens at a launch: the first launch of a kernel, or the one after a given number of launches.
static struct { char exact[512]; u64 after; volatile u64 seen; volatile int done; } gate_launch;

static void gate_launched(const char* symbol, u32 correlation) {
  if (gate_launch.done) return;
  const char* exact = gate_launch.exact;
  u64 before = ADD(gate_launch.seen, 1);
  int now_ = *exact ? symbol && is_symbol(exact, symbol) : before == gate_launch.after;
  if (now_ && !__atomic_exchange_n(&gate_launch.done, 1, __ATOMIC_ACQ_REL)) gate_set(1, "launch", correlation);
}

// A gate that follows an NVTX range: every instance, or only the nth one entered. Several threads may be inside the
// range: the last one to leave closes the gate.
enum { OPEN_RANGES = 64 };
// `others` counts the ranges other than the requested one.
static struct {
  u32 text, domain, only;
  volatile u32 entered, inside, others;
  u64 ranges[OPEN_RANGES];
} gate_range;
// Domain of this thread's open range, and the nesting depth in that domain, counted from that range.
static __thread u32 gate_domain, gate_nested;

// NVTX ranges to which measurement is restricted, if requested: every instance, or only the nth one entered. Pushed
// ranges apply to their thread, started ranges to all threads.
static struct { u32 text, domain, only; volatile u32 entered, started; u64 ranges[OPEN_RANGES]; } asked_range;
// One bit per open range of this thread, innermost in the lowest bit: set if the range is one of the requested ones.
static __thread u64 asked_pushed;

static int asked_matches(u32 domain, u32 text) {
  if (text != asked_range.text || domain != asked_range.domain) return 0;
  u32 nth = ADD(asked_range.entered, 1) + 1;
  return !asked_range.only || nth == asked_range.only;
}
static int asked_inside(void) { return !asked_range.text || asked_pushed || asked_range.started; }
static void asked_started(u32 domain, u32 text, u64 id) {
  if (!asked_matches(domain, text)) return;
  for (u32 i = 0; i < OPEN_RANGES; i++) {
    u64 none = 0;
    if (!__atomic_compare_exchange_n(&asked_range.ranges[i], &none, id, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      continue;
    ADD(asked_range.started, 1);
    return;
  }
}
static void asked_ended(u64 id) {
  for (u32 i = 0; i < OPEN_RANGES; i++) {
    u64 it = id;
    if (!__atomic_compare_exchange_n(&asked_range.ranges[i], &it, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) continue;
    ADD(asked_range.started, (u32)-1);
    return;
  }
}

static int gate_matches(u32 domain, u32 text) {
  if (!gate_range.text) return 0;
  if (text != gate_range.text || domain != gate_range.domain) {
    ADD(gate_range.others, 1);
    return 0;
  }
  u32 nth = ADD(gate_range.entered, 1) + 1;
  return !gate_range.only || nth == gate_range.only;
}
// A signal handler may have interrupted its thread inside the driver, which may be holding locks. In that case, the
// ticker opens or closes the gate, and the handler does not wait, because the ticker may need a lock of the interrupted
// call. A handler is recognized by its signal, which is blocked meanwhile, unless it was installed with SA_NODEFER.
static void gate_by_ticker(void);
static volatile u32 gate_behind;
static int may_be_handler(void) {
  u64 blocked = 0;
  return SYSTEM(SYS_SIGPROCMASK, 0, NULL, &blocked, sizeof blocked) || blocked;
}
static void gate_turn(int on) {
  if (on) thread_seen(tid());
  if (!may_be_handler()) return gate_set(on, "NVTX range", 0);
  SET(gate_behind, 1);
  gate_by_ticker();
}
// Runs on the ticker: opens or closes the gate according to the current state of the ranges.
static void gate_follow(void) {
  if (!__atomic_exchange_n(&gate_behind, 0, __ATOMIC_ACQ_REL)) return;
  int on = GET(gate_range.inside) != 0;
  gate_set(on, "NVTX range", 0);
  if (gate.is_open != on) SET(gate_behind, 1);
}
static void gate_in(void) {
  if (!ADD(gate_range.inside, 1)) gate_turn(1);
}
static void gate_out(void) {
  if (ADD(gate_range.inside, (u32)-1) == 1) gate_turn(0);
}
static void gate_entered(u32 domain, u32 text) {
  if (gate_nested) gate_nested += domain == gate_domain;
  else if (gate_matches(domain, text)) gate_domain = domain, gate_nested = 1, gate_in();
}
static void gate_left(u32 domain) {
  if (gate_nested && domain == gate_domain && !--gate_nested) gate_out();
}
static void gate_started(u32 domain, u32 text, u64 id) {
  if (!gate_matches(domain, text)) return;
  for (u32 i = 0; i < OPEN_RANGES; i++) {
    u64 none = 0;
    if (__atomic_compare_exchange_n(&gate_range.ranges[i], &none, id, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return gate_in();
  }
}
static void gate_ended(u64 id) {
  for (u32 i = 0; i < OPEN_RANGES; i++) {
    u64 it = id;
    if (__atomic_compare_exchange_n(&gate_range.ranges[i], &it, 0, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
      return gate_out();
  }
}
