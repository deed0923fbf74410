// Scheduling of measurements on the ticker: sweeps of a survey, requests by name, and writing of results.

static int ticker_lock(u64 ms) {
  if (!lock_within(&measure.lock, ms)) return 0;
  measure.turns++;
  return measure.on_ticker = 1;
}
static void ticker_unlock(void) {
  measure.on_ticker = 0;
  unlock(&measure.lock);
}

// Enables or disables the callbacks of launches. The caller holds measure.lock, or is session_attach.
static void measure_hear(int on) {
  for (u32 id = 1; id < FUNCTIONS; id++) {
    // Callbacks for the beginning and end of a capture stay enabled.
    int keeps = !on && launch_kind[id] >= LAUNCH_CAPTURE && measure.state != MEASURE_OFF;
    if (!launch_kind[id] || launch_heard[id] == on || keeps) continue;
    launch_heard[id] = (u8)on;
    // A thread may be inside such a call: CUPTI reports the end of the call only if it also records these calls (see
    // `calls_hear`).
    int ends_seen = session.heard && !session.by_callbacks;
    if (on || ends_seen) cuptiEnableCallback((u32)on, subscription, DOMAIN_DRIVER, id);
  }
}

// Writes the values of a complete sweep.
static void measure_write(void) {
  static u8 data[96 << 10];
  static double values[SET_METRICS];
  const Set* g = &sets[measure.set];
  cuptiRangeProfilerGetCounterDataInfo_P info;
  if (ASK(cuptiRangeProfilerGetCounterDataInfo, info, .data = g->data, .bytes = g->data_bytes) != OK) info.ranges = 0;
  names_flush();
  // If the numbers of ranges and launches differ, they cannot be matched.
  for (u32 i = 0; i < measure.length; i++) {
    const Inside* in = &inside[i];
    Wanted* w = wanted_known(&in->shape);
    // A launch that was not repeated in the same order is tried again; from the third attempt on, it counts as done.
    if (w && (in->good || w->attempts[measure.set] > 2)) w->done[measure.set]++;
    if (!in->good || info.ranges != measure.length) continue;
    cuptiProfilerHostEvaluateToGpuValues_P value;
    if (ASK(cuptiProfilerHostEvaluateToGpuValues, value, .host = g->host, .data = g->data, .bytes = g->data_bytes,
          .range = i, .metrics = (const char**)g->metrics, .count = g->count, .values = values) != OK)
      continue;
    u8* p = data;
    const u32* words = &in->shape.name;
    u32 launches_ = measure.replayed ? 1 : measure.pass;
    p = put_number(p, measure.set), p = put_number(p, measure.replayed), p = put_number(p, in->thread),
    p = put_number(p, in->time);
    for (u32 k = 0; k < sizeof in->shape / 4; k++) p = put_number(p, words[k]);
    p = put_number(p, launches_);
    for (u32 k = 0; k < launches_; k++) p = put_number(p, in->correlations[k]);
    p = put_number(p, g->count);
    memcpy(p, values, g->count * 8), p += g->count * 8;
    put_block(BLOCK_MEASURED, 0, 0, 1, data, (u32)(p - data));
    measure.written++;
  }
  Wanted* first = wanted_known(&inside[0].shape);
  // After a replayed launch, stalls are sampled in the next launch like it.
  if (first && measure.replayed && !first->sampled) first->follows = 1;
  if (first && info.ranges != measure.length) first->missed++;
  measure.sweeping = 0, measure.pass = 0;
  measure.state = MEASURE_IDLE;
}

// Writes the time that windows took, as overhead of the profiler.
static void windows_write(void) {
  if (!lock(&rows.lock)) return;
  u32 count = GET(measure.closed_count);
  if (count - measure.closed_written > COUNT(measure.closed)) measure.closed_written = count - COUNT(measure.closed);
  for (; measure.closed_written != count; measure.closed_written++) {
    u32 at = measure.closed_written % COUNT(measure.closed);
    put_overhead(OVERHEAD_MEASURING, measure.closed[at].thread, measure.closed[at].start,
      measure.closed[at].start + measure.closed[at].took);
  }
  rows_flush(&rows.overhead);
  unlock(&rows.lock);
}

// Chooses the launch to sample next: one of each kernel whose counters are known.
static int sampling_begin(u64 t) {
  const Wanted* first = NULL;
  int affordable = measure.budget &&
    (measure.spent + (stalls.launches ? stalls.estimate : FIRST_SAMPLING_NS)) * 1000 <=
      (t - measure.started) * measure.budget;
  if (stalls.why_not) return 0;
  for (u32 i = 0; i < measure.wanted; i++) {
    const Wanted* w = &wanted_launches[i];
    int due = w->follows || (w->done[SET_FIRST] && (w->asked || (affordable && w->chosen && w->active)));
    if (due && !w->sampled && (!first || w->time > first->time)) first = w;
  }
  if (!first) return 0;
  measure.start = first->shape, measure.sampling = 1;
  return 1;
}

// Starts a sweep of the set that is due, with the least frequent launch that has no values of that set: the program
// repeats the sequence soonest from such a launch.
static int sweep_begin(int only_asked, u64 t) {
  measure.only_asked = (u32)only_asked;
  // Measure everything once, then the first set again, to determine the variation of each kernel over the run.
  for (u32 step = 0; step < SWEPT + ROUNDS - 1; step++) {
    u32 set = step < SWEPT ? step : SET_FIRST;
    const Wanted* first = NULL;
    measure.round = step < SWEPT ? 0 : step - SWEPT + 1;
    // Stall samples are cheaper than the remaining metrics, so they are taken first.
    if (step == SET_REST && sampling_begin(t)) return 1;
    if (!sets[set].count) continue;
    if (measure.round && t - measure.swept_at < ROUND_MS * 1000000ul) break;
    for (u32 i = 0; i < measure.wanted; i++) {
      Wanted* w = &wanted_launches[i];
      if (!(w->active || w->asked) || !lacks(w, set) || w->missed > 1) continue;
      if (!first || w->launches < first->launches) first = w;
    }
    if (!first) continue;
    for (u32 i = 0; i < measure.wanted; i++) wanted_launches[i].swept = 0;
    measure.set = set, measure.pass = measure.length = measure.count = 0, measure.sweeping = 1,
    measure.start = first->shape, measure.waited = 0;
    measure.swept_at = t;
    return 1;
  }
  return 0;
}

enum { MEASURE_EVERY_MS = 20, CHOOSE_EVERY_MS = 500, ARMED_MS = 500, OPEN_MS = 1000, MOST_WAITED = 8, LAST_MS = 200,
  LEAVE_MS = 2000 };

static void measure_idle(u64 t) {
  // Less often for programs with very many configurations, because all of them are visited.
  u64 every = (GET(configs.count) > 4096 ? 10 : 1) * CHOOSE_EVERY_MS * 1000000ul;
  if (t - measure.chosen_at >= (measure.asked ? every / 5 : every)) measure_choose(t);
  u64 next = !measure.windows ? FIRST_NS : measure.sweeping && measure.pass ? measure.estimate : SWITCH_NS;
  int affordable = measure.budget && (measure.spent + next) * 1000 <= (t - measure.started) * measure.budget;
  if (!ticker_lock(0)) return;
  if (measure.state == MEASURE_IDLE) {
    int due = measure.sweeping || sweep_begin(!affordable, t);
    asked_look(due);
    // A requested sweep ignores the budget; a request by name is noticed only through callbacks.
    int arm = (due && (affordable || measure.only_asked || measure.sampling)) || measure.asked;
    // While the profiler is configured, all launches take longer (by a sixth on an H100), and no other process can use
    // the counters.
    u64 until = measure.budget ? measure.started + (measure.spent + next) / measure.budget * 1000 : ~0ul;
    measure.leaving = 0;
    if (!arm && measure.object && !measure.pass && (!due || until > t + LEAVE_MS * 1000000ul))
      measure.leaving |= LEAVE_RANGES;
    if ((!arm || !due) && stalls.enabled && !measure.sampling) measure.leaving |= LEAVE_STALLS;
    measure_hear(arm || measure.leaving);
    if (arm && !due) measure.start = (Shape){ 0 };
    if (arm || measure.leaving) measure.armed_at = t, measure.state = MEASURE_ARMED;
  }
  ticker_unlock();
}

static void codes_write(void) {
  u64 due[CODES];
  u32 n = 0;
  if (!codes_count || !lock_within(&measure.lock, 0)) return;
  n = codes_count, codes_count = 0;
  memcpy(due, codes_due, n * sizeof *due);
  unlock(&measure.lock);
  for (u32 i = 0; i < n; i++) module_write(due[i]);
}

// Periodic step: starts measurements that are due, and closes and writes finished ones.
static void measure_look(int last) {
  if (measure.stuck && measure.state != MEASURE_OFF && ticker_lock(last ? LAST_MS : 0)) {
    if (measure.state == MEASURE_OPEN) window_close();
    if (measure.state == MEASURE_CLOSED) measure_write();
    if (stalls.waiting) stalls_write();
    measure.state = MEASURE_OFF, measure.sweeping = measure.sampling = 0, measure.leaving = 0;
    stalls_leave(), range_profiler_leave();
    ticker_unlock();
  }
  if (measure.state == MEASURE_OFF && measure.context && !measure.deaf && ticker_lock(0)) {
    measure_hear(0);
    measure.deaf = 1;
    ticker_unlock();
  }
  if (measure.closed_written != GET(measure.closed_count)) windows_write();
  if (stalls.waiting && measure.state == MEASURE_OFF && ticker_lock(LAST_MS)) {
    if (stalls.waiting) stalls_write();
    ticker_unlock();
  }
  codes_write();
  if (LIKELY(measure.state == MEASURE_OFF)) return;
  u64 t = clock_now(CLOCK_MONOTONIC);
  // A launch that does not return holds the lock: continue with the rest of the recording.
  if (!ticker_lock(last ? LAST_MS : 0)) return;
  // There are no more launches, or none on the thread that opened the window.
  if (measure.state == MEASURE_OPEN && (last || t - measure.left_at > OPEN_MS * 1000000ul)) window_close();
  if (measure.state == MEASURE_CLOSED) measure_write();
  if (stalls.waiting) stalls_write();
  if (measure.state == MEASURE_ARMED && t - measure.armed_at >= ARMED_MS * 1000000ul) {
    measure.state = MEASURE_IDLE;
    int left = measure.leaving;
    // No launch came that could have disabled the profilers, so the ticker does it.
    if (left) give_back();
    if (!left && measure.sampling && ++stalls.missed > MOST_WAITED) {
      // The launch is not repeated; a repeated request is still noticed.
      Wanted* w = wanted_known(&measure.start);
      if (w) w->sampled = 1;
      stalls.missed = 0;
    }
    if (!left) measure.sampling = 0;
    // The launch with which the sweep begins is not repeated: its passes are dropped, and another sweep begins.
    if (!left && measure.sweeping && ++measure.waited > MOST_WAITED) {
      Wanted* w = wanted_known(&measure.start);
      if (w) w->missed++;
      measure.sweeping = 0, measure.pass = 0;
    }
  }
  // Releases the counters for other processes while nothing is recorded. Launches by index are still counted.
  int closed = gate.gated && !gate.is_open && measure.state != MEASURE_OPEN && !measure.pass;
  if (last) stalls_leave();
  if (closed && !last && measure.state == MEASURE_IDLE) {
    measure.leaving = (measure.object ? LEAVE_RANGES : 0) | (stalls.enabled ? LEAVE_STALLS : 0);
    measure_hear(measure.leaving || measure.asked);
    if (measure.leaving) measure.armed_at = t, measure.state = MEASURE_ARMED;
  }
  int prepare = measure.state == MEASURE_LOOKING && measure.context && !last;
  if (prepare) measure_hear(0), measure.preparing = 1;
  ticker_unlock();
  if (last) codes_write();
  if (prepare) {
    // The callbacks are disabled during this time, so no launch waits.
    measure_ready();
    if (ticker_lock(LAST_MS)) {
      // In the meantime, the context was destroyed by a thread that could not wait any longer.
      if (!measure.context && measure.state == MEASURE_IDLE) range_profiler_leave(), measure.state = MEASURE_LOOKING;
      if (measure.state == MEASURE_LOOKING) measure_hear(1);
      ticker_unlock();
    }
    measure.preparing = 0;
  }
  // While the gate is closed, launches have no records to match.
  if (measure.state == MEASURE_IDLE && !last && (!gate.gated || gate.is_open)) measure_idle(t);
}

// At the end of the run, sets the reason if some or all of the requested measurements are missing.
static void measure_ended(void) {
  static char text[700];
  if (measure.why_not) return;
  if (measure.state == MEASURE_LOOKING && !measure.planned) {
    // There was a launch, but the ticker had no time to prepare.
    if (measure.context && (measure.budget || measure.asked))
      measure.why_not = "the program ended before anything could be measured";
    return;
  }
  if (measure.budget && !measure.windows && measure.started) {
    // The budget is in thousandths.
    u64 ran = (clock_now(CLOCK_MONOTONIC) - measure.started) / 1000000, first = FIRST_NS / 1000 / measure.budget;
    if (ran < first) {
      snprintf(text, sizeof text,
        "the first counters take about %lu.%lu s, which fits the budget only in a run of over %lu.%lu s; this one "
        "lasted %lu.%lu s (`--survey=PERCENT` allows more)",
        FIRST_NS / 1000000000, FIRST_NS / 100000000 % 10, first / 1000, first / 100 % 10, ran / 1000, ran / 100 % 10);
      measure.why_not = text;
      return;
    }
  }
  if (measure.windows && !measure.written && !measure.sweeping && measure.cut) {
    snprintf(text, sizeof text, "the CUDA context was destroyed after %u of the %u passes needed for the first metrics",
      measure.cut, sets[measure.set].passes);
    measure.why_not = text;
  }
  if (measure.windows && !measure.written && measure.sweeping) {
    // With another process on the GPU, a window takes ten times as long (seen on an H100).
    snprintf(text, sizeof text,
      "the program ended after %u of the %u passes needed for the first metrics (%lu ms each): it was too short, or "
      "another process was also using the GPU",
      measure.pass, sets[measure.set].passes, measure.estimate / 1000000);
    measure.why_not = text;
  }
  for (u32 i = 0; i < ASKED && !measure.why_not; i++) {
    const Asked* a = &asked_kernels[i];
    if ((a->state != ASKED_OPEN && a->state != ASKED_REFUSED) || (a->nth < 0 && a->seen > a->refused)) continue;
    if (asked_range.text && !asked_range.entered)
      snprintf(text, sizeof text, "the requested NVTX range was never entered");
    else if (asked_range.only > asked_range.entered)
      snprintf(text, sizeof text, "the NVTX range that was asked for was entered only %u times", asked_range.entered);
    else if (a->nth >= 0)
      snprintf(
        text, sizeof text, "launch %ld of %s was not reached: only %lu were seen", a->nth + 1, a->exact, a->seen);
    else if (a->seen)
      snprintf(text, sizeof text,
        "no launch of %s could be measured: they are cooperative, captured, in another context, or there were too many "
        "different ones",
        a->exact);
    else snprintf(text, sizeof text, "%s was not launched again, or only from CUDA graphs", a->exact);
    measure.why_not = text;
  }
}

// Reads the plan from the file that is named in the environment.
static void measure_begin(const char* plan) {
  if (!plan || !*plan || strlen(plan) >= sizeof measure.plan) return;
  memcpy(measure.plan, plan, strlen(plan) + 1);
  plan_read();
  const char* rank = own_rank();
  if (measure.budget && rank && number_of(rank)) {
    // All ranks do the same work, and each rank that waits makes all others wait.
    measure.budget = 0, measure.why_not = "only rank 0 is measured";
  }
  if ((measure.budget || measure.asked) && (seen = pages(sizeof(Seen) * CONFIGS, 0))) measure.state = MEASURE_LOOKING;
}

// Maximum wait for the lock, because the client waits for an answer.
enum { ASKED_MS = 500 };
static const char* measure_take(const char* kernel) {
  if (!seen && !(seen = pages(sizeof(Seen) * CONFIGS, 0))) return "cannot measure: no memory\n";
  if (!asked_add(kernel, -1, 0)) return "cannot measure: the name is too long, or too many kernels were asked for\n";
  modules.most = MOST_KEPT;
  // MEASURE_OFF here means that nothing was requested before.
  if (measure.state == MEASURE_OFF && lock_within(&measure.lock, ASKED_MS)) {
    if (measure.state == MEASURE_OFF) {
      measure.state = MEASURE_LOOKING;
      measure_hear(1);
    }
    unlock(&measure.lock);
  }
  return "measuring\n";
}
// Requests the next launches of a kernel, from the control socket. The answer is one line.
static const char* measure_ask(const char* kernel) {
  static char answer[300];
  if (!measure.plan[0] || (measure.state == MEASURE_OFF && measure.context)) {
    snprintf(answer, sizeof answer, "cannot measure: %s\n",
      measure.why_not ? measure.why_not : "the trace was started without a plan");
    return answer;
  }
  // Prevents a detach from CUPTI during this time.
  __atomic_fetch_add(&detach.waiting, 1, __ATOMIC_SEQ_CST);
  const char* said = session_attach() ? measure_take(kernel) : NULL;
  ADD(detach.waiting, (u32)-1);
  if (said) return said;
  snprintf(
    answer, sizeof answer, "cannot measure: %s\n", session.reason[0] ? session.reason : "CUPTI is busy; try again");
  return answer;
}
