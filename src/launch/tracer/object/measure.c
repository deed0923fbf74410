// Counters of chosen launches, in the run that goes on, by CUPTI's range profiler: a window is opened before a launch, every launch inside of it is
// measured by itself, and the window is closed after some. Each window collects one pass, so that nothing is replayed: a sweep is a window for each
// pass, of the same kernels in the same order, found again when the program comes round to them. On an H100 the first window of all takes
// 0.9 s, the first of another set of metrics 0.5 s, each other one 35 ms, and a launch inside about one. Only a launch that somebody asks for by its number is replayed, by CUPTI.
//
// Launches inside a window wait for everything before them. A kernel that waits for one launched later would then wait for ever: what was seen
// beside another kernel, NCCL, cooperative launches and graphs are not measured, and a launch that was never seen before closes the window.

enum { LAUNCH_PLAIN = 1, LAUNCH_EXTENDED = 2, LAUNCH_OTHER = 3, LAUNCH_CAPTURE = 4, LAUNCH_CAPTURED = 5 };
static u8 launch_kind[FUNCTIONS];
static u8 launch_heard[FUNCTIONS];

// By the name of a driver function; 0 where it launches nothing.
static u8 kind_of_launch(const char* function) {
  if (!strcmp(function, "cuLaunchKernel") || !strcmp(function, "cuLaunchKernel_ptsz")) return LAUNCH_PLAIN;
  if (!strcmp(function, "cuLaunchKernelEx") || !strcmp(function, "cuLaunchKernelEx_ptsz")) return LAUNCH_EXTENDED;
  if (!strncmp(function, "cuStreamBeginCapture", 20)) return LAUNCH_CAPTURE;
  if (!strncmp(function, "cuStreamEndCapture", 18)) return LAUNCH_CAPTURED;
  return !strncmp(function, "cuLaunch", 8) || !strncmp(function, "cuGraphLaunch", 13) ? LAUNCH_OTHER : 0;
}

static int same_shape(const Shape* a, const Shape* b) { return !memcmp(a, b, sizeof *a); }
static Wanted* wanted_known(const Shape* s) {
  for (u32 i = 0; i < measure.wanted; i++)
    if (same_shape(&wanted_launches[i].shape, s)) return &wanted_launches[i];
  return NULL;
}
static Wanted* wanted_of(const Shape* s) {
  Wanted* known = wanted_known(s);
  if (known || measure.wanted >= SHAPES) return known;
  Wanted* w = &wanted_launches[measure.wanted];
  *w = (Wanted){ .shape = *s };
  __atomic_store_n(&measure.wanted, measure.wanted + 1, __ATOMIC_RELEASE);
  return w;
}

// ---- What kernels take their time, from their records (rows.lock is held).

static void measure_saw(u32 id, const Config* c, const char* text, u64 start, u64 end) {
  // CUPTI gives out records without times.
  if (LIKELY(!seen) || !id || !start || end < start) return;
  Seen* it = &seen[id];
  if (!it->launches) it->collective = strstr(text, "nccl") != NULL;
  it->time += end - start, it->launches++;
  // What waits in collectives waits for other ranks, and everything may run beside it. Nodes of a graph start together.
  if (it->collective || c->graph) return;
  u32 at = c->device & 15;
  if (last_on[at].config && start + 2000 < last_on[at].end && c->stream != last_on[at].stream) it->overlaps = seen[last_on[at].config].overlaps = 1;
  if (end > last_on[at].end) last_on[at].end = end, last_on[at].config = id, last_on[at].stream = c->stream;
}

// CUPTI waits on the GPU after each launch that it measures, by a kernel of its own with the launch's number.
static int measure_own(u32 correlation, const char* text) {
  if (LIKELY(!measure.windows) || !text || strcmp(text, "WaitNs")) return 0;
  return measure.recent[correlation % COUNT(measure.recent)] == correlation;
}

// Chooses the kernels that take the stated share of the time. On the ticker.
static void measure_choose(u64 t) {
  static Wanted* by_time[SHAPES];
  measure.chosen_at = t;
  u64 total = 0, sum = 0;
  u32 n = 0;
  for (u32 i = 0; i < measure.wanted; i++) wanted_launches[i].before = wanted_launches[i].launches, wanted_launches[i].time = wanted_launches[i].launches = 0, wanted_launches[i].apart = 0;
  u32 count = __atomic_load_n(&configs.count, __ATOMIC_ACQUIRE);
  for (u32 id = 1; id <= count; id++) {
    const Config* c = &configs.list[id];
    total += seen[id].time;
    // Nodes of graphs are launched together, cooperative kernels wait for themselves, others were launched by kernels.
    if (c->graph || c->type || !c->name || !seen[id].launches) continue;
    Shape s = { c->name, { c->grid[0], c->grid[1], c->grid[2] }, { c->block[0], c->block[1], c->block[2] }, c->dynamic_shared };
    lock(&measure.lock);
    Wanted* w = wanted_of(&s);
    unlock(&measure.lock);
    if (w) w->time += seen[id].time, w->launches += seen[id].launches, w->apart |= seen[id].overlaps, w->collective |= seen[id].collective;
  }
  for (u32 i = 0; i < measure.wanted; i++) {
    Wanted* w = &wanted_launches[i];
    // Records come about once a second.
    if (w->launches > w->before) w->grew = t;
    w->active = w->grew && t - w->grew < 3000000000ul;
    u32 at = n++;
    for (; at && by_time[at - 1]->time < w->time; at--) by_time[at] = by_time[at - 1];
    by_time[at] = w;
  }
  for (u32 i = 0; i < n; i++) {
    by_time[i]->chosen = measure.budget && sum * 100 < total * measure.share && by_time[i]->time && !by_time[i]->apart && !by_time[i]->collective;
    sum += by_time[i]->time;
  }
}

// What the first window of all takes, the first one of another set of metrics, and any other (seen on an H100), ns.
static const u64 FIRST_NS = 900000000, SWITCH_NS = 500000000, PASS_NS = 60000000;

static void measure_write(void);

// The library, the plan and the metrics; the state says whether it worked.
static void measure_ready(void) {
  measure.started = clock_now(CLOCK_MONOTONIC);
  measure.estimate = PASS_NS;
  measure.state = measure_prepare() ? MEASURE_IDLE : MEASURE_OFF;
}

// ---- What a launch is. On a thread of the program, with measure.lock held.

// How often a survey measures the first set of each kernel, spread over the run, and how far apart at least.
enum { ROUNDS = 3, ROUND_MS = 3000 };
static int lacks(const Wanted* w, u32 set) {
  return (w->asked && !w->done[set]) || (w->chosen && !measure.only_asked && w->done[set] <= measure.round);
}

static int capturing(void* stream) {
  static int (*query)(void*, int*);
  if (!query) *(void**)&query = dlsym(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuStreamIsCapturing");
  int status = 0;
  return measure.capturing || !query || query(stream, &status) || status;
}

typedef struct { void* function; u32 grid[3], block[3], shared; void* stream; } Plain;
typedef struct { u32 grid[3], block[3], shared; void* stream; } Extended;

static int shape_of(u32 id, const Call* call, Shape* s, void** stream) {
  if (!call->symbol || !call->parameters) return 0;
  const Plain* p = call->parameters;
  const Extended* e = launch_kind[id] == LAUNCH_EXTENDED ? *(const Extended* const*)call->parameters : NULL;
  if (launch_kind[id] == LAUNCH_PLAIN) *s = (Shape){ name(call->symbol), { p->grid[0], p->grid[1], p->grid[2] }, { p->block[0], p->block[1], p->block[2] }, p->shared }, *stream = p->stream;
  else if (e) *s = (Shape){ name(call->symbol), { e->grid[0], e->grid[1], e->grid[2] }, { e->block[0], e->block[1], e->block[2] }, e->shared }, *stream = e->stream;
  return s->name != 0;
}

// Expressions are looked for in the function's name, as ncu does it.
static int pattern_fits(Pattern* p, const char* symbol) {
  static char text[512];
  u64 length, hash = hash_bytes(symbol, strlen(symbol));
  u32 at = (u32)(hash & (TOLD - 1));
  if (p->told[at].hash == hash) return p->told[at].fits;
  const char* function = function_of(symbol, &length);
  length = length < sizeof text ? length : sizeof text - 1;
  memcpy(text, function, length), text[length] = 0;
  p->told[at].hash = hash, p->told[at].fits = !regexec(p->compiled, text, 0, NULL, 0);
  return p->told[at].fits;
}

static int same_size(const u32* wanted, const u32* size) {
  for (u32 i = 0; i < 3; i++)
    if (wanted[i] && wanted[i] != size[i]) return 0;
  return 1;
}

// `s` is the launch's, with grid and block.
static int is_named(Asked* a, const char* symbol, const Shape* s) {
  if (a->state != ASKED_OPEN || !symbol || !same_size(a->grid, s->grid) || !same_size(a->block, s->block)) return 0;
  return a->pattern.given ? pattern_fits(&a->pattern, symbol) : is_symbol(a->exact, symbol);
}

// Whether somebody asked for this launch: 1 for the next ones of the kernel (`by` is who asked last), 2 for this one by its number, 4 for its
// stalls.
static int is_asked(const char* symbol, const Shape* s, u32* by) {
  int found = 0;
  for (u32 i = 0; i < ASKED && asked_inside(); i++) {
    Asked* a = &asked_kernels[i];
    if (!is_named(a, symbol, s)) continue;
    if (a->nth < 0) found |= 1, *by = a->number > *by ? a->number : *by;
    else if ((i64)a->seen++ == a->nth) a->state = ASKED_DONE, found |= a->stalls ? 4 : 2;
  }
  return found;
}

// Counts a launch for those who asked for the next ones.
static void asked_met(const char* symbol, const Shape* s, int may) {
  for (u32 i = 0; i < ASKED; i++) {
    Asked* a = &asked_kernels[i];
    if (a->nth < 0 && is_named(a, symbol, s)) a->seen++, a->refused += !may;
  }
}

// Whether this thread's launch is sampled.
static __thread int sampling;

static int asked_numbered(void);
// Opens a window or goes on with one; 0 where the launch is not measured.
static int measure_launch(u32 id, const Call* call) {
  Shape s = { 0 };
  void* stream = NULL;
  int plain = launch_kind[id] == LAUNCH_PLAIN || launch_kind[id] == LAUNCH_EXTENDED;
  if (plain && call->context && measure.state == MEASURE_LOOKING) {
    if (!measure.context) measure.context = call->context;
    // The launch may be the one: it cannot wait for the ticker.
    measure.numbered = asked_numbered();
    if (measure.numbered) measure_ready();
  }
  if (measure.state == MEASURE_OFF || measure.state == MEASURE_LOOKING) return 0;
  u32 by = 0;
  int shaped = plain && shape_of(id, call, &s, &stream);
  if (measure.state == MEASURE_ARMED && measure.leaving && shaped && call->context == measure.context && !capturing(stream)) {
    give_back();
    measure.state = MEASURE_IDLE;
  }
  int asked = shaped && measure.asked ? is_asked(call->symbol, &s, &by) : 0;
  if (measure.state != MEASURE_ARMED && measure.state != MEASURE_OPEN && asked < 2) return 0;
  int may = shaped && call->context == measure.context && !capturing(stream);
  Wanted* w = !may ? NULL : asked ? wanted_of(&s) : wanted_known(&s);
  if (asked & 1) asked_met(call->symbol, &s, may);
  if (w && (asked & 1) && w->asked != by) {
    // Who asks again wants it measured again.
    w->asked = by, w->missed = 0;
    memset(w->done, 0, sizeof w->done), memset(w->attempts, 0, sizeof w->attempts);
    w->sampled = 0;
    // The ticker begins a sweep with it.
    if (measure.state == MEASURE_ARMED && !measure.sweeping) measure.state = MEASURE_IDLE, measure.sampling = 0;
  }
  // One that is not known might wait for another; collectives do.
  may = w && (w->asked || asked >= 2 || ((w->launches || w->follows) && !w->apart && !w->collective));
  int sampled = measure.state == MEASURE_ARMED && measure.sampling && same_shape(&measure.start, &s);
  if (may && !(asked & 2) && ((asked & 4) || sampled)) {
    if (measure.state == MEASURE_OPEN) window_close();
    if (measure.state == MEASURE_CLOSED) measure_write();
    if (measure.state == MEASURE_OFF) return 0;
    measure.sweeping = measure.sampling = 0, measure.pass = 0, measure.state = MEASURE_IDLE;
    sampling = stalls_open(call, &s, w);
    // Where a capture came between, another launch is.
    w->sampled = sampling || stalls.why_not;
    return sampling;
  }
  if (may && (asked & 2)) {
    if (measure.state == MEASURE_OPEN) window_close();
    // Values of the sweep before it are not written yet.
    if (measure.state == MEASURE_CLOSED) measure_write();
    measure.sweeping = measure.sampling = 0, measure.set = SET_REPLAYED, measure.pass = 0;
    if (!window_open(REPLAY_BY_CUPTI)) return 0;
  } else if (measure.state == MEASURE_OPEN) {
    // In later passes what comes must be what came in the first.
    may = may && (!measure.pass || (measure.count < measure.length && same_shape(&inside[measure.count].shape, &s)));
    if (!may) window_close();
    if (!may) return 0;
  } else if (measure.state != MEASURE_ARMED || measure.sampling || !may || !same_shape(&measure.start, &s) || !window_open(REPLAY_NONE)) {
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

// The lock for a thread of the program; one that `passes` does without it where no window is open. CUPTI may wait for this very launch on behalf of
// who has the lock: it is not waited for for ever. Only beside a launch that is replayed nothing else may run: its memory is restored after each pass.
enum { TICKER_MS = 2000, LAUNCH_MS = 20000, PASS_MS = 50 };
static int measure_lock(int passes) {
  u64 began = clock_now(CLOCK_MONOTONIC);
  u32 turn = measure.turns;
  for (int tries = 0; __atomic_exchange_n(&measure.lock.held, 1, __ATOMIC_ACQUIRE) && !gone; tries++) {
    int passing = measure.passing, later = PASS_LATER;
    if (passes && passing == PASS_NOW && !measure.numbered) return 0;
    if (tries < 100) {
      sched_yield();
      continue;
    }
    // A child that no handler of fork was called in.
    if (own_pid && own_pid != getpid()) gone = 1;
    // Who has it now has had it for so long.
    if (measure.replaying || turn != measure.turns) began = clock_now(CLOCK_MONOTONIC), turn = measure.turns;
    u64 waited = clock_now(CLOCK_MONOTONIC) - began;
    // From now on nobody waits: of many threads one would always be waiting.
    if (passing == PASS_LATER && waited > PASS_MS * 1000000ul) __atomic_compare_exchange_n(&measure.passing, &later, PASS_NOW, 0, __ATOMIC_RELAXED, __ATOMIC_RELAXED);
    if (waited > (measure.on_ticker ? TICKER_MS : LAUNCH_MS) * 1000000ul) {
      measure.why_not = "a launch waited for the profiler for too long; nothing was measured after that";
      __atomic_store_n(&measure.stuck, 1, __ATOMIC_SEQ_CST);
    }
    if (measure.stuck && !__atomic_load_n(&measure.replaying, __ATOMIC_SEQ_CST)) return 0;
    poll(NULL, 0, 1);
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
  // Callbacks are switched off only by who holds the lock: a launch that began inside of a window is seen to end.
  if (!holds) unlock(&measure.lock);
}

static void measure_left(u32 id, const Call* call) {
  int failed = call->returned && *(const u32*)call->returned;
  // One that could not begin has no end.
  int ended = launch_kind[id] == LAUNCH_CAPTURED || (launch_kind[id] == LAUNCH_CAPTURE && failed);
  if (ended && measure.capturing) ADD(measure.capturing, (u32)-1);
  if (!holds) return;
  holds = 0;
  if (sampling) {
    sampling = 0;
    stalls_close();
    unlock(&measure.lock);
    return;
  }
  measure.left_at = clock_now(CLOCK_MONOTONIC);
  int late = 0;
  if (measure.left_at - measure.last_launch > 5000000000ul && !measure.replayed) {
    measure.why_not = "a measured launch took over five seconds: kernels of this program may wait for each other";
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
  unlock(&measure.lock);
}

// ---- On the ticker.

static int ticker_lock(u64 ms) {
  if (!lock_within(&measure.lock, ms)) return 0;
  measure.turns++;
  return measure.on_ticker = 1;
}
static void ticker_unlock(void) {
  measure.on_ticker = 0;
  unlock(&measure.lock);
}

// Callbacks of launches, with measure.lock held.
static void measure_hear(int on) {
  for (u32 id = 1; id < FUNCTIONS; id++) {
    // That a capture begins and ends is heard to the end.
    int keeps = !on && launch_kind[id] >= LAUNCH_CAPTURE && measure.state != MEASURE_OFF;
    if (!launch_kind[id] || launch_heard[id] == on || keeps) continue;
    launch_heard[id] = (u8)on;
    // Those that are recorded by callbacks stay.
    int others = (session.recording && session.by_callbacks && !session.lean) || (gate.gated == GATED_BY_LAUNCH && !gate_launch.done && launching[id]);
    if (on || !others) cuptiEnableCallback((u32)on, subscription, DOMAIN_DRIVER, id);
  }
}

// Values of a sweep that is whole.
static void measure_write(void) {
  static u8 data[96 << 10];
  static double values[SET_METRICS];
  const Set* g = &sets[measure.set];
  cuptiRangeProfilerGetCounterDataInfo_P info;
  if (ASK(cuptiRangeProfilerGetCounterDataInfo, info, .data = g->data, .bytes = g->data_bytes) != OK) info.ranges = 0;
  names_flush();
  // Fewer ranges than launches, or more: which is which is then not known.
  for (u32 i = 0; i < measure.length; i++) {
    const Inside* in = &inside[i];
    Wanted* w = wanted_known(&in->shape);
    // What did not come again in the same order is tried once more.
    if (w && (in->good || w->attempts[measure.set] > 2)) w->done[measure.set]++;
    if (!in->good || info.ranges != measure.length) continue;
    cuptiProfilerHostEvaluateToGpuValues_P value;
    if (ASK(cuptiProfilerHostEvaluateToGpuValues, value, .host = g->host, .data = g->data, .bytes = g->data_bytes, .range = i, .metrics = (const char**)g->metrics, .count = g->count, .values = values) != OK) continue;
    u8* p = data;
    const u32* words = &in->shape.name;
    u32 launches_ = measure.replayed ? 1 : measure.pass;
    p = put_number(p, measure.set), p = put_number(p, measure.replayed), p = put_number(p, in->thread), p = put_number(p, in->time);
    for (u32 k = 0; k < sizeof in->shape / 4; k++) p = put_number(p, words[k]);
    p = put_number(p, launches_);
    for (u32 k = 0; k < launches_; k++) p = put_number(p, in->correlations[k]);
    p = put_number(p, g->count);
    memcpy(p, values, g->count * 8), p += g->count * 8;
    put_block(BLOCK_MEASURED, 0, 0, 1, data, (u32)(p - data));
    measure.written++;
  }
  Wanted* first = wanted_known(&inside[0].shape);
  // Of a launch that was replayed the next one like it tells where its warps waited.
  if (first && measure.replayed && !first->sampled) first->follows = 1;
  if (first && info.ranges != measure.length) first->missed++;
  measure.sweeping = 0, measure.pass = 0;
  measure.state = MEASURE_IDLE;
}

// What windows took is the profiler's time, not the program's.
static void windows_write(void) {
  lock(&rows.lock);
  u32 count = measure.closed_count;
  if (count - measure.closed_written > COUNT(measure.closed)) measure.closed_written = count - COUNT(measure.closed);
  for (; measure.closed_written != count; measure.closed_written++) {
    u32 at = measure.closed_written % COUNT(measure.closed);
    put_overhead(OVERHEAD_MEASURING, measure.closed[at].thread, measure.closed[at].start, measure.closed[at].start + measure.closed[at].took);
  }
  rows_flush(&rows.overhead);
  unlock(&rows.lock);
}

// The launch that is sampled next: one of each kernel of which it is known where its time goes.
static int sampling_begin(u64 t) {
  const Wanted* first = NULL;
  int affordable = measure.budget && (measure.spent + (stalls.launches ? stalls.estimate : FIRST_SAMPLING_NS)) * 1000 <= (t - measure.started) * measure.budget;
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

// Begins a sweep of the set that is due with the rarest launch that lacks it: from there on the program does the same again soonest.
static int sweep_begin(int only_asked, u64 t) {
  measure.only_asked = (u32)only_asked;
  // Everything once, then the first set again: how far values of one kernel lie apart is seen over the run.
  for (u32 step = 0; step < SWEPT + ROUNDS - 1; step++) {
    u32 set = step < SWEPT ? step : SET_FIRST;
    const Wanted* first = NULL;
    measure.round = step < SWEPT ? 0 : step - SWEPT + 1;
    // Samples are cheaper than the rest.
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
    measure.set = set, measure.pass = measure.length = measure.count = 0, measure.sweeping = 1, measure.start = first->shape, measure.waited = 0;
    measure.swept_at = t;
    return 1;
  }
  return 0;
}

enum { MEASURE_EVERY_MS = 20, CHOOSE_EVERY_MS = 500, ARMED_MS = 500, OPEN_MS = 1000, MOST_WAITED = 8, MOST_REFUSED = 1000, LAST_MS = 200, LEAVE_MS = 2000 };

// Whether launches are counted, also those after the one that was asked for.
static int asked_numbered(void) {
  int numbered = 0;
  for (u32 i = 0; i < ASKED; i++) numbered |= asked_kernels[i].state == ASKED_OPEN && asked_kernels[i].nth >= 0;
  return numbered;
}

// What was asked for is done when all of it is there, or its launch was met.
static void asked_look(int due) {
  u32 open = 0;
  for (u32 i = 0; i < ASKED; i++) {
    Asked* a = &asked_kernels[i];
    // What is launched by graphs alone, say, is not listened for for ever.
    if (a->state == ASKED_OPEN && a->nth < 0 && a->refused == a->seen && a->seen >= MOST_REFUSED) a->state = ASKED_REFUSED;
    if (a->state == ASKED_OPEN && a->nth < 0 && a->seen && !due && measure.windows) a->state = ASKED_DONE;
    open += a->state == ASKED_OPEN;
  }
  measure.asked = open, measure.numbered = asked_numbered();
}

static void measure_idle(u64 t) {
  // Of programs with very many configurations rarely: all are gone through.
  u64 every = (configs.count > 4096 ? 10 : 1) * CHOOSE_EVERY_MS * 1000000ul;
  if (t - measure.chosen_at >= (measure.asked ? every / 5 : every)) measure_choose(t);
  u64 next = !measure.windows ? FIRST_NS : measure.sweeping && measure.pass ? measure.estimate : SWITCH_NS;
  int affordable = measure.budget && (measure.spent + next) * 1000 <= (t - measure.started) * measure.budget;
  if (!ticker_lock(0)) return;
  if (measure.state == MEASURE_IDLE) {
    int due = measure.sweeping || sweep_begin(!affordable, t);
    asked_look(due);
    // A sweep for somebody who asked waits for no budget; what is asked for by name is seen only by listening.
    int arm = (due && (affordable || measure.only_asked || measure.sampling)) || measure.asked;
    // While the profiler is configured, all launches take longer (a sixth on an H100), and nobody else can have the counters.
    u64 until = measure.budget ? measure.started + (measure.spent + next) / measure.budget * 1000 : ~0ul;
    measure.leaving = 0;
    if (!arm && measure.object && !measure.pass && (!due || until > t + LEAVE_MS * 1000000ul)) measure.leaving |= LEAVE_RANGES;
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

// Looks whether something is to be measured, or was.
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
  if (measure.closed_written != measure.closed_count) windows_write();
  if (stalls.waiting && measure.state == MEASURE_OFF && ticker_lock(LAST_MS)) {
    if (stalls.waiting) stalls_write();
    ticker_unlock();
  }
  codes_write();
  if (LIKELY(measure.state == MEASURE_OFF)) return;
  u64 t = clock_now(CLOCK_MONOTONIC);
  // A launch that does not end holds it: the rest of the recording goes on.
  if (!ticker_lock(last ? LAST_MS : 0)) return;
  // Nothing is launched any more, or not by who opened it.
  if (measure.state == MEASURE_OPEN && (last || t - measure.left_at > OPEN_MS * 1000000ul)) window_close();
  if (measure.state == MEASURE_CLOSED) measure_write();
  if (stalls.waiting) stalls_write();
  if (measure.state == MEASURE_ARMED && t - measure.armed_at >= ARMED_MS * 1000000ul) {
    measure.state = MEASURE_IDLE;
    int left = measure.leaving;
    // Nothing is launched that could.
    if (left) give_back();
    if (!left && measure.sampling && ++stalls.missed > MOST_WAITED) {
      // It comes no more; who asks again is heard again.
      Wanted* w = wanted_known(&measure.start);
      if (w) w->sampled = 1;
      stalls.missed = 0;
    }
    if (!left) measure.sampling = 0;
    // The launch that the sweep begins with comes no more: what it has is lost, and another one begins.
    if (!left && measure.sweeping && ++measure.waited > MOST_WAITED) {
      Wanted* w = wanted_known(&measure.start);
      if (w) w->missed++;
      measure.sweeping = 0, measure.pass = 0;
    }
  }
  // What is held while nothing is recorded nobody else can have. Launches by number are still counted.
  int closed = gate.gated && !gate.is_open && measure.state != MEASURE_OPEN && !measure.pass;
  if (last) stalls_leave();
  if (closed && !last && measure.state == MEASURE_IDLE) {
    measure.leaving = (measure.object ? LEAVE_RANGES : 0) | (stalls.enabled ? LEAVE_STALLS : 0);
    measure_hear(measure.leaving || measure.asked);
    if (measure.leaving) measure.armed_at = t, measure.state = MEASURE_ARMED;
  }
  int prepare = measure.state == MEASURE_LOOKING && measure.context && !last;
  if (prepare) measure_hear(0);
  ticker_unlock();
  if (last) codes_write();
  // Nobody listens meanwhile, and nobody waits.
  if (prepare) measure_ready();
  // What is launched while a gate is closed has no record that proves it.
  if (measure.state == MEASURE_IDLE && !last && (!gate.gated || gate.is_open)) measure_idle(t);
}

// At the end: why there is nothing, or not all that was asked for.
static void measure_ended(void) {
  static char text[700];
  if (measure.why_not) return;
  if (measure.state == MEASURE_LOOKING) {
    // A launch was seen, but the ticker had no time to get ready.
    if (measure.context && (measure.budget || measure.asked)) measure.why_not = "the program ended before anything could be measured";
    return;
  }
  if (measure.budget && !measure.windows && measure.started) {
    // The budget is in thousandths.
    u64 ran = (clock_now(CLOCK_MONOTONIC) - measure.started) / 1000000, first = FIRST_NS / 1000 / measure.budget;
    if (ran < first) {
      snprintf(text, sizeof text, "the first counters take about %lu.%lu s, which may be added only to a run of over %lu.%lu s; this one went on for %lu.%lu s (`--survey=PERCENT` allows more)",
        FIRST_NS / 1000000000, FIRST_NS / 100000000 % 10, first / 1000, first / 100 % 10, ran / 1000, ran / 100 % 10);
      measure.why_not = text;
      return;
    }
  }
  if (measure.windows && !measure.written && measure.sweeping) {
    // Beside another process on the GPU a window takes ten times as long (seen on an H100).
    snprintf(text, sizeof text, "the program ended after %u of the %u passes that the first values need, %lu ms each: it was too short, or another process used the GPU, too",
      measure.pass, sets[measure.set].passes, measure.estimate / 1000000);
    measure.why_not = text;
  }
  for (u32 i = 0; i < ASKED && !measure.why_not; i++) {
    const Asked* a = &asked_kernels[i];
    if ((a->state != ASKED_OPEN && a->state != ASKED_REFUSED) || (a->nth < 0 && a->seen > a->refused)) continue;
    if (asked_range.text && !asked_range.entered) snprintf(text, sizeof text, "no NVTX range of the name that was asked for was entered");
    else if (asked_range.only > asked_range.entered) snprintf(text, sizeof text, "the NVTX range that was asked for was entered only %u times", asked_range.entered);
    else if (a->nth >= 0) snprintf(text, sizeof text, "launch %ld of %s was not met, only %lu of them", a->nth + 1, a->exact, a->seen);
    else if (a->seen) snprintf(text, sizeof text, "no launch of %s could be measured: they are cooperative, captured, of another context, or like those of too many others", a->exact);
    else snprintf(text, sizeof text, "%s was not launched any more, or only by CUDA graphs", a->exact);
    measure.why_not = text;
  }
}

// Reads what is to be measured, from the file that the environment names.
static void measure_begin(const char* plan) {
  if (!plan || !*plan || strlen(plan) >= sizeof measure.plan) return;
  memcpy(measure.plan, plan, strlen(plan) + 1);
  plan_read();
  const char* rank = own_rank();
  if (measure.budget && rank && number_of(rank)) {
    // Ranks do the same; each that waits makes all wait.
    measure.budget = 0, measure.why_not = "rank 0 is measured";
  }
  if ((measure.budget || measure.asked) && (seen = pages(sizeof(Seen) * CONFIGS, 0))) measure.state = MEASURE_LOOKING;
}

// From outside, while the program runs: the next launches of a kernel. The answer is one line.
static const char* measure_ask(const char* kernel) {
  static char answer[300];
  if (!measure.plan[0] || (measure.state == MEASURE_OFF && measure.context)) {
    snprintf(answer, sizeof answer, "cannot measure: %s\n", measure.why_not ? measure.why_not : "the trace was started without a plan");
    return answer;
  }
  if (!seen && !(seen = pages(sizeof(Seen) * CONFIGS, 0))) return "cannot measure: no memory\n";
  if (!asked_add(kernel, -1, 0)) return "cannot measure: the name is too long, or too many kernels were asked for\n";
  lock(&measure.lock);
  if (measure.state == MEASURE_OFF) {
    measure.state = MEASURE_LOOKING;
    measure_hear(1);
  }
  unlock(&measure.lock);
  return "measuring\n";
}
