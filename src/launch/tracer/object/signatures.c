// Launch signatures (kernel, grid, block, dynamic shared memory), and the choice of the most expensive ones for a
// survey.

static int same_shape(const Shape* a, const Shape* b) { return !memcmp(a, b, sizeof *a); }

// A shape is evicted if it was not launched for this long and its entry is needed.
static const u64 FORGOTTEN_NS = 60000000000ul;
// Hash index of the shapes in the table; entries are 1-based. Protected by measure.lock, like the table.
static u16 wanted_at[2 * SHAPES];
static u32 wanted_slot(const Shape* s) {
  u32 at = (u32)hash_bytes((const char*)s, sizeof *s) & (COUNT(wanted_at) - 1);
  while (wanted_at[at] && !same_shape(&wanted_launches[wanted_at[at] - 1].shape, s))
    at = (at + 1) & (COUNT(wanted_at) - 1);
  return at;
}
static Wanted* wanted_known(const Shape* s) {
  u32 at = wanted_at[wanted_slot(s)];
  return at ? &wanted_launches[at - 1] : NULL;
}
static Wanted* wanted_put(u32 at, const Shape* s) {
  wanted_launches[at] = (Wanted){ .shape = *s };
  wanted_at[wanted_slot(s)] = (u16)(at + 1);
  return &wanted_launches[at];
}
static void wanted_forget(u32 at) {
  u32 slot = wanted_slot(&wanted_launches[at].shape);
  wanted_at[slot] = 0;
  // Reinserts the entries after the removed one, which it may have displaced.
  for (slot = (slot + 1) & (COUNT(wanted_at) - 1); wanted_at[slot]; slot = (slot + 1) & (COUNT(wanted_at) - 1)) {
    u16 other = wanted_at[slot];
    wanted_at[slot] = 0;
    wanted_at[wanted_slot(&wanted_launches[other - 1].shape)] = other;
  }
}
// Programs with ever-changing shapes (for example, one per sequence length) have more shapes than the table has
// entries: the entry of a shape without recent launches is reused; if the shape was measured, only after a while.
static int wanted_idle(const Wanted* w) {
  int tried = w->sampled || w->follows;
  for (u32 set = 0; set < SETS; set++) tried |= w->attempts[set];
  int forgotten = w->grew && measure.chosen_at - w->grew > FORGOTTEN_NS;
  return !w->asked && !w->active && (!tried || forgotten) && !same_shape(&w->shape, &measure.start);
}
static Wanted* wanted_of(const Shape* s) {
  Wanted* known = wanted_known(s);
  if (known) return known;
  if (measure.wanted < SHAPES) {
    known = wanted_put(measure.wanted, s);
    __atomic_store_n(&measure.wanted, measure.wanted + 1, __ATOMIC_RELEASE);
    return known;
  }
  // Called for each launch and configuration: after a failed search, the next search waits for the ticker's next check.
  static u32 hand;
  static u64 none_at;
  for (u32 tries = 0; tries < SHAPES && none_at != measure.chosen_at; tries++) {
    hand = (hand + 1) % SHAPES;
    if (!wanted_idle(&wanted_launches[hand])) continue;
    wanted_forget(hand);
    return wanted_put(hand, s);
  }
  none_at = measure.chosen_at;
  return NULL;
}

// ---- Kernel times, from the activity records. The caller holds rows.lock.

static void measure_saw(u32 id, const Config* c, const char* text, u64 start, u64 end) {
  // Some of CUPTI's records have no times.
  if (LIKELY(!seen) || !id || !start || end < start) return;
  Seen* it = &seen[id];
  if (!it->launches) it->collective = strstr(text, "nccl") != NULL;
  it->time += end - start, it->launches++;
  // A kernel that waits in a collective waits for other ranks, and anything may run at the same time. Nodes of a graph
  // start together.
  if (it->collective || c->graph) return;
  u32 at = c->device & 15;
  if (last_on[at].config && start + 2000 < last_on[at].end && c->stream != last_on[at].stream)
    it->overlaps = seen[last_on[at].config].overlaps = 1;
  if (end > last_on[at].end) last_on[at].end = end, last_on[at].config = id, last_on[at].stream = c->stream;
}

// Recognizes CUPTI's own kernel, with which it waits for the GPU after a measured launch: it has the launch's id.
static int measure_own(u32 correlation, const char* text) {
  if (LIKELY(!measure.windows) || !text || strcmp(text, "WaitNs")) return 0;
  return measure.recent[correlation % COUNT(measure.recent)] == correlation;
}

// Adopts the new sums, and chooses the kernels that make up the configured share of the time. The caller holds
// measure.lock.
static void choose_by_time(u64 t, u64 total) {
  static Wanted* by_time[SHAPES];
  u64 sum = 0;
  u32 n = 0;
  for (u32 i = 0; i < measure.wanted; i++) {
    Wanted* w = &wanted_launches[i];
    // Records arrive about once a second.
    if (w->sum.launches > w->launches) w->grew = t;
    w->time = w->sum.time, w->launches = w->sum.launches, w->apart = w->sum.apart, w->collective |= w->sum.collective;
    w->active = w->grew && t - w->grew < 3000000000ul;
    w->mean = w->launches ? w->time / w->launches : 0;
    u32 at = n++;
    for (; at && by_time[at - 1]->time < w->time; at--) by_time[at] = by_time[at - 1];
    by_time[at] = w;
  }
  for (u32 i = 0; i < n; i++) {
    by_time[i]->chosen = measure.budget && sum * 100 < total * measure.share && by_time[i]->time &&
      !by_time[i]->apart && !by_time[i]->collective;
    sum += by_time[i]->time;
  }
}

// Sums the kernel times and chooses the kernels to measure. Runs on the ticker, and takes measure.lock for each step.
// Launches see the previous result until the new one is complete: a kernel that overlaps others must never appear as
// one that does not.
static void measure_choose(u64 t) {
  u64 total = 0;
  if (!lock_soon(&measure.lock)) return;
  measure.chosen_at = t;
  for (u32 i = 0; i < measure.wanted; i++) memset(&wanted_launches[i].sum, 0, sizeof wanted_launches[i].sum);
  unlock(&measure.lock);
  u32 count = __atomic_load_n(&configs.count, __ATOMIC_ACQUIRE);
  for (u32 id = 1; id <= count; id++) {
    const Config* c = &configs.list[id];
    total += seen[id].time;
    // Skips nodes of graphs, which are launched together, and launches of a special type: the blocks of cooperative
    // kernels wait for each other, and some kernels were launched by other kernels.
    if (c->graph || c->type || !c->name || !seen[id].launches) continue;
    Shape s = { c->name, { c->grid[0], c->grid[1], c->grid[2] }, { c->block[0], c->block[1], c->block[2] },
      c->dynamic_shared };
    // Kernels that were not launched since the last check get no entry.
    int grew = seen[id].launches != seen[id].before;
    seen[id].before = seen[id].launches;
    if (!lock_soon(&measure.lock)) return;
    Wanted* w = grew ? wanted_of(&s) : wanted_known(&s);
    if (w) {
      // An active shape keeps its entry while the others are summed.
      w->active |= (u8)grew;
      w->sum.time += seen[id].time, w->sum.launches += seen[id].launches;
      w->sum.apart |= seen[id].overlaps, w->sum.collective |= seen[id].collective;
    }
    unlock(&measure.lock);
  }
  if (!lock_soon(&measure.lock)) return;
  choose_by_time(t, total);
  unlock(&measure.lock);
}

// A survey measures the first set of each kernel ROUNDS times, spread over the run and at least ROUND_MS apart.
enum { ROUNDS = 3, ROUND_MS = 3000 };
static int lacks(const Wanted* w, u32 set) {
  return (w->asked && !w->done[set]) || (w->chosen && !measure.only_asked && w->done[set] <= measure.round);
}
