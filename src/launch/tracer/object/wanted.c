// Launches that are alike (kernel, grid, block, dynamic shared memory), and which of them a survey measures: those that take most of the time.

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

// How often a survey measures the first set of each kernel, spread over the run, and how far apart at least.
enum { ROUNDS = 3, ROUND_MS = 3000 };
static int lacks(const Wanted* w, u32 set) {
  return (w->asked && !w->done[set]) || (w->chosen && !measure.only_asked && w->done[set] <= measure.round);
}
