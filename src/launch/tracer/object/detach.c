// Detaches from CUPTI while nothing is recorded. A subscription slows down graph launches (see may_attach_later), and
// callbacks cost time at every launch; cuptiFinalize ends both, and a later recording subscribes again.
//
// cuptiFinalize is called as NVIDIA's documentation requires, from a callback at the end of a call, in this case a call
// that waited for the GPU. On an H200 (driver 580; CUPTI 12.4, 12.9, 13.0, 13.3, 13.5), it succeeded in all of about
// 800 attempts, with loops of PyTorch and C++ with and without graphs, unless
// - graphs were launched while CUPTI was subscribed but recorded no kernels: their next launch failed ("unspecified
//   launch failure", 7 of 7 programs). Therefore, recording continues until CUPTI is detached.
// - several threads launched graphs: their kernels failed (10 of 10 programs).
// - threads were held up in callbacks to prevent that (segmentation fault).
// Such programs stay subscribed. No other thread may be inside a CUPTI function, so the ticker and the control thread
// use CUPTI only while `session.attached` is set.

enum { MAY_FINALIZE = 22 };
// Delay after a gate has closed (the shorter one with `detach.soon`), and time within which a thread must then wait for
// the GPU. An event may be older than the last recorded work: until the longer delay is over, a wait for one counts
// only if the event was recorded after the gate had closed.
static const u64 DETACH_AFTER_NS = 500000000, DETACH_SOON_NS = 50000000, DETACH_WANT_NS = 3000000000;
// If a program does not wait for the GPU, another attempt is made later; the pause doubles each time. A program that
// has made no call for DETACH_QUIET_NS is idle instead: the next attempt is made at its next call.
static const u64 DETACH_PAUSE_NS = 10000000000, DETACH_QUIET_NS = 1000000000;
// Time after a call for which the subscription is assumed to slow the program down, at most.
static const u64 DETACH_ACTIVE_NS = 10000000;
enum { DETACH_LOOKS_MS = 10 };

static int detach_may(u64 t) {
  u64 after = detach.soon ? DETACH_SOON_NS : DETACH_AFTER_NS;
  // Another thread may have closed the gate after `t`.
  int closed = gate.gated && !GET(gate.is_open) && !GET(gate.opening) && t > GET(gate.closed_at) + after;
  return closed && !GET(detach.waiting) && !gone && !session.ended;
}
static const char* detach_refusal(void) {
  if (!cuptiFinalize || cupti_version < MAY_FINALIZE) return "this version of CUPTI cannot be left";
  if (!detach_opens_again()) return "the gate opens by CUPTI's callbacks";
  if (measure.state != MEASURE_OFF || measure.context) return "counters were asked for";
  if (session.whole_graphs) return "CUDA graphs are recorded as a whole";
  if (other_is_present()) return "another profiler in the program uses CUPTI, too";
  if (GET(detach.several)) return "several threads launch CUDA graphs";
  return GET(detach.missed) ? "CUDA graphs were launched while nothing was recorded" : NULL;
}

// The latest CUDA events (handles) that were recorded since the detach was first considered.
enum { RECORDED_EVENTS = 16 };
static struct { volatile u64 list[RECORDED_EVENTS]; volatile u32 count; } recorded_events;
static int event_is_new(u64 event) {
  for (u32 i = 0; i < RECORDED_EVENTS; i++)
    if (event && GET(recorded_events.list[i]) == event) return 1;
  return 0;
}
static void event_recorded(u64 event) {
  if (!event_is_new(event)) SET(recorded_events.list[ADD(recorded_events.count, 1) % RECORDED_EVENTS], event);
}
// The event is the first argument of all functions that record one or wait for one.
static u64 event_of(const Call* call) { return call->parameters ? *(const u64*)call->parameters : 0; }

static void detach_watch(u64 t) {
  detach.why_not = detach_refusal();
  if (detach.why_not) return;
  for (u32 i = 0; i < RECORDED_EVENTS; i++) SET(recorded_events.list[i], 0);
  for (u32 id = 1; id < FUNCTIONS; id++)
    if (waits_for_gpu[id] || records_event[id]) cuptiEnableCallback(1, subscription, DOMAIN_DRIVER, id);
  SET(detach.first_call, 0);
  detach.since = t;
  SET(detach.state, DETACH_WATCHING);
}

// From here on, only threads of the program call CUPTI; one of them is to detach it. `attaching` is held until that is
// done or cancelled.
static void detach_want(u64 t) {
  u32 id = correlation_now();
  if (id) long_id(id);
  flush(0);
  if (!lock_within(&attaching, 0)) return;
  SET(session.attached, 0);
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  detach.since = t;
  if (detach_may(t)) {
    SET(detach.state, DETACH_WANTED);
    return;
  }
  SET(session.attached, 1);
  SET(detach.state, DETACH_NO);
  unlock(&attaching);
}

static void detach_cancel(const char* why_not) {
  u32 wanted = DETACH_WANTED;
  if (!__atomic_compare_exchange_n(&detach.state, &wanted, DETACH_NO, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return;
  SET(session.attached, 1);
  if (why_not) detach.why_not = why_not;
  unlock(&attaching);
}

// CUPTI numbers calls from 1 again: the ids of the next recording continue after those of this one.
static void detach_finish(void) {
  if (detach.result == OK) {
    session.recording = 0, detach.pause = 0;
    subscription = NULL, session.heard = 0, session.id_base = (u32)newest_id;
    memset(launch_heard, 0, sizeof launch_heard);
    for (u32 i = gate.count; i-- && !gate.list[i].closed;)
      __atomic_store_n(&gate.list[i].closed, detach.stopped, __ATOMIC_RELEASE);
    detach.took_in_all += detach.took;
    SET(detach.graph_thread, 0), SET(detach.several, 0), SET(detach.missed, 0);
    ADD(detach.count, 1);
  } else {
    detach.why_not = "cuptiFinalize failed";
    SET(session.attached, 1);
  }
  SET(detach.state, DETACH_NO);
  unlock(&attaching);
}

// No thread waited for the GPU in time.
static void detach_give_up(u64 t) {
  // The program paused, or is waiting for something else: try again once it makes a call.
  if (t > GET(detach.last_call) + DETACH_QUIET_NS) {
    detach_cancel(NULL);
    return;
  }
  // Recording stops now, and graphs that are launched meanwhile rule out a detach, so there is no other attempt.
  detach.pause = detach.pause ? 2 * detach.pause : DETACH_PAUSE_NS;
  detach.retry_at = GET(detach.graph_thread) ? 0 : t + detach.pause;
  detach_cancel("no thread that launches waits for the GPU");
}

// Runs on the ticker. Returns the time until the next check, ms.
static u64 detach_look(u64 t) {
  buffers_reclaim(t);
  switch (GET(detach.state)) {
  case DETACH_NO:
    if (GET(gate.is_open) || (detach.retry_at && t > detach.retry_at)) detach.why_not = NULL, detach.retry_at = 0;
    if (!session.attached || !gate.gated || GET(gate.is_open) || detach.why_not) return 1000;
    if (!detach_may(t)) return detach.soon ? DETACH_LOOKS_MS : 100;
    detach_watch(t);
    break;
  case DETACH_WATCHING:
    if (!detach_may(t)) SET(detach.state, DETACH_NO);
    else if (detach_refusal()) detach.why_not = detach_refusal(), SET(detach.state, DETACH_NO);
    else if (GET(detach.first_call)) detach_want(t);
    // The subscription costs nothing while the program makes no calls, so there is no hurry.
    return GET(detach.first_call) ? DETACH_LOOKS_MS : 100;
  case DETACH_WANTED:
    if (detach_refusal()) detach_cancel(detach_refusal());
    else if (!detach_may(t)) detach_cancel(NULL);
    else if (t > detach.since + DETACH_WANT_NS) detach_give_up(t);
    break;
  case DETACH_DONE: detach_finish(); break;
  default: break;
  }
  return DETACH_LOOKS_MS;
}
// Before the process ends, waits up to 10 ms for a thread that is calling cuptiFinalize.
static void detach_end(void) {
  detach_cancel(NULL);
  for (int i = 0; i < DETACH_LOOKS_MS && GET(detach.state) == DETACH_TAKEN; i++) nap();
  if (GET(detach.state) == DETACH_DONE) detach_finish();
}

// Callback id of this thread's current wait for the GPU if it began after the detach was requested, else 0. When such a
// wait returns, its stream has finished all recorded work.
static __thread u32 wait_began;

// Runs on a thread of the program, in a callback.
static void detach_heard(u32 id, const Call* call) {
  if (launches_graph[id] && !call->leaving) graph_launched_by(tid());
  if (LIKELY(GET(detach.state) == DETACH_NO)) return;
  u64 t = clock_now(CLOCK_MONOTONIC);
  // The program was idle: each further call costs time.
  if (!GET(detach.first_call)) SET(detach.first_call, t), SET(detach.active_ns, 0), poke();
  u64 since = t - __atomic_exchange_n(&detach.last_call, t, __ATOMIC_ACQ_REL);
  ADD(detach.active_ns, since < DETACH_ACTIVE_NS ? since : DETACH_ACTIVE_NS);
  if (records_event[id] && call->leaving && call->returned && !*(const i32*)call->returned)
    event_recorded(event_of(call));
}
static int detach_may_leave(u32 id, const Call* call) {
  if (id >= FUNCTIONS || !waits_for_gpu[id]) return 0;
  int wanted = GET(detach.state) == DETACH_WANTED;
  if (!call->leaving) {
    int covers = waits_for_gpu[id] != WAITS_FOR_EVENT || event_is_new(event_of(call)) ||
      clock_now(CLOCK_MONOTONIC) > GET(gate.closed_at) + DETACH_AFTER_NS;
    wait_began = wanted && covers ? id : 0;
    return 0;
  }
  return wanted && wait_began == id && call->returned && !*(const i32*)call->returned;
}
static void detach_leave(void) {
  u32 wanted = DETACH_WANTED;
  if (GET(detach.several) || (GET(detach.graph_thread) && GET(detach.graph_thread) != tid())) return;
  if (session.ended || GET(ending) || may_be_handler()) return;
  cancel_hold();
  if (__atomic_compare_exchange_n(&detach.state, &wanted, DETACH_TAKEN, 0, __ATOMIC_SEQ_CST, __ATOMIC_RELAXED)) {
    // Other threads that are in a callback, or are waiting for CUPTI, have priority.
    if (__atomic_load_n(&detach.users, __ATOMIC_SEQ_CST) > 1 || GET(gate.opening) || GET(detach.waiting)) {
      SET(detach.state, DETACH_WANTED);
    } else {
      u64 began = clock_now(CLOCK_MONOTONIC);
      cuptiActivityFlushAll(1);
      cuptiGetTimestamp(&detach.stopped);
      detach.result = cuptiFinalize();
      detach.took = clock_now(CLOCK_MONOTONIC) - began;
      SET(detach.state, DETACH_DONE);
    }
    poke();
  }
  cancel_release();
}

// Answers a client's `left` command.
static const char* detach_said(void) {
  static char answer[200];
  u64 t = clock_now(CLOCK_MONOTONIC);
  if (!subscription && !GET(session.attached)) return "left\n";
  if (gate.gated && !GET(gate.is_open) && !detach.why_not) {
    int idle = GET(detach.state) == DETACH_WATCHING && !GET(detach.first_call) && t > detach.since + DETACH_QUIET_NS;
    return idle ? "idle\n" : "leaving\n";
  }
  snprintf(answer, sizeof answer, "subscribed: %s\n", detach.why_not ? detach.why_not : "it is recording");
  return answer;
}
