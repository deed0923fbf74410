// Windows of the range profiler. All functions run on a thread of the program, with measure.lock held.

// Notes the time that a window or another step of the profiler took, ns; the ticker writes it as overhead.
static void window_took(u32 thread, u64 took) {
  u32 at = measure.closed_count % COUNT(measure.closed);
  measure.closed[at].start = measure.opened, measure.closed[at].took = took, measure.closed[at].thread = thread;
  // The ticker reads the entry without the lock.
  SET(measure.closed_count, measure.closed_count + 1);
  measure.spent += took;
}

// Releases the counters for another configuration or for another profiler.
static void range_profiler_leave(void) {
  cuptiRangeProfilerDisable_P off;
  measure.passing = PASS_NOW;
  if (measure.object) ASK(cuptiRangeProfilerDisable, off, .object = measure.object);
  measure.passing = PASS_NOT;
  measure.object = NULL, measure.configured = 0;
}

static void stalls_leave(void);
// Disables profilers that are not needed for a while. Done on a launching thread: CUPTI seems to wait until launches in
// progress on other threads have returned (a program hung with 13.0 on an H200), and most programs launch on one
// thread.
enum { LEAVE_RANGES = 1, LEAVE_STALLS = 2 };
static void give_back(void) {
  u64 began = clock_now(CLOCK_MONOTONIC);
  measure.opened = now();
  if (measure.leaving & LEAVE_STALLS) stalls_leave();
  if (measure.leaving & LEAVE_RANGES) range_profiler_leave();
  measure.leaving = 0;
  window_took(tid(), clock_now(CLOCK_MONOTONIC) - began);
}

static int window_open(u32 replay) {
  Set* g = &sets[measure.set];
  measure.opened_at = measure.left_at = clock_now(CLOCK_MONOTONIC), measure.opened = now();
  Result r = OK;
  if (!measure.pass) {
    cuptiRangeProfilerEnable_P on;
    cuptiRangeProfilerSetConfig_P config;
    // A profiler keeps the first configuration that it was given (seen with 13.0).
    u32 configured = 1 + measure.set;
    if (measure.configured && measure.configured != configured) range_profiler_leave();
    if (!measure.object) {
      stalls_leave();
      measure.passing = PASS_NOW;
      r = ASK(cuptiRangeProfilerEnable, on, .context = measure.context);
      measure.passing = PASS_NOT;
      if (r == OK) measure.object = on.object;
    }
    measure.configured = configured;
    memcpy(g->data, g->clean, g->data_bytes);
    if (r == OK)
      r = ASK(cuptiRangeProfilerSetConfig, config, .object = measure.object, .config_bytes = g->config_bytes,
        .config = g->config, .data_bytes = g->data_bytes, .data = g->data, .range = RANGE_PER_KERNEL, .replay = replay,
        .ranges = WINDOW, .levels = 1, .first_level = 1);
  }
  // In the meantime, other launches may have passed, for example to begin a capture, or may have waited for too long.
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (r == OK && measure.capturing && !measure.numbered) return 0;
  __atomic_store_n(&measure.replaying, replay == REPLAY_BY_CUPTI, __ATOMIC_SEQ_CST);
  if (__atomic_load_n(&measure.stuck, __ATOMIC_SEQ_CST)) return measure.replaying = 0;
  cuptiRangeProfilerStart_P start;
  if (r == OK) r = ASK(cuptiRangeProfilerStart, start, .object = measure.object);
  if (measure_failed("cuptiRangeProfilerStart", r)) {
    measure.state = MEASURE_OFF, measure.replaying = 0;
    return 0;
  }
  measure.replayed = replay == REPLAY_BY_CUPTI, measure.count = measure.useless = 0;
  measure.state = MEASURE_OPEN;
  return 1;
}

static void window_close(void) {
  cuptiRangeProfilerStop_P stop;
  cuptiRangeProfilerDecodeData_P decode;
  u64 began = clock_now(CLOCK_MONOTONIC);
  measure.replaying = 0, measure.numbered = asked_numbered();
  // A launch that passes may get its own range, which invalidates the window, so let launches pass only if Stop turns
  // out to wait for one.
  measure.turns++;
  measure.passing = PASS_LATER;
  Result r = ASK(cuptiRangeProfilerStop, stop, .object = measure.object);
  measure.passing = PASS_NOT;
  if (r == OK) r = ASK(cuptiRangeProfilerDecodeData, decode, .object = measure.object);
  // Excludes the time from the return of the last launch to the closing, during which nothing was launched.
  u64 took = measure.left_at - measure.opened_at + clock_now(CLOCK_MONOTONIC) - began;
  window_took(inside[0].thread, took);
  measure.windows++;
  // The first window of a set includes the configuration.
  if (measure.pass) measure.estimate = took;
  if (!measure.pass) measure.length = measure.count;
  for (u32 i = measure.count; i < measure.length; i++) inside[i].good = 0;
  measure.pass++, measure.waited = 0;
  int whole = measure.replayed || measure.pass >= sets[measure.set].passes;
  measure.state = measure_failed("cuptiRangeProfilerStop", r) ? MEASURE_OFF : whole ? MEASURE_CLOSED : MEASURE_IDLE;
}
