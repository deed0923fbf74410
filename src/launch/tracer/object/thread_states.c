// On-CPU and off-CPU states of launching threads, sampled every few milliseconds. Each thread's CPU time has its own
// clock, so a sample is one system call and opens no file. If the thread was on the CPU for between one fifth and four
// fifths of the interval, the state is PARTLY.

enum { STATES_EVERY_MS = 10, WATCHED = 32, OFF = 0, ON = 1, PARTLY = 2, UNKNOWN = 3 };
typedef struct { u32 thread, state; u64 used; } Watched;
static struct {
  Watched list[WATCHED];
  u32 count, rows;
  // Time of the previous sample, on both clocks.
  u64 at, at_monotonic, last_written;
  u8 data[4096], *end;
} states;

static void states_flush(void) {
  if (states.rows) put_block(BLOCK_STATES, 0, 0, states.rows, states.data, (u32)(states.end - states.data));
  states.rows = 0, states.end = NULL;
}

static void states_put(u32 thread, u64 time, u32 state) {
  if (!states.end) states.end = states.data, states.last_written = 0;
  states.end = put_number(states.end, thread);
  states.end = put_signed(states.end, (i64)(time - states.last_written));
  *states.end++ = (u8)state;
  states.last_written = time, states.rows++;
  if (states.end > states.data + sizeof states.data - 32) states_flush();
}

static void state_judge(Watched* w, u64 used, u64 passed) {
  u64 took = used - w->used;
  u32 state = took * 5 <= passed ? OFF : took * 5 >= passed * 4 ? ON : PARTLY;
  if (state != w->state) states_put(w->thread, states.at, state), w->state = state;
}

// Runs only on the ticker. Stacks may be sampled more often than states are evaluated.
static void states_look(void) {
  static const u64 JUDGED_NS = STATES_EVERY_MS * 900000ul;
  u64 t = now(), monotonic = clock_now(CLOCK_MONOTONIC);
  u64 passed = states.at ? monotonic - states.at_monotonic : 0;
  int judged = !states.at || passed >= JUDGED_NS;
  for (u32 i = states.count; i < WATCHED && i < GET(threads.count); i++)
    states.list[i] = (Watched){ threads.seen[i], UNKNOWN, 0 }, states.count = i + 1;
  int due = stacks_begin(monotonic);
  const u8* gil = NULL;
  stacks.count = due ? states.count : stacks.count;
  for (u32 i = 0; i < states.count && (judged || due); i++) {
    Watched* w = &states.list[i];
    struct timespec time;
    // A thread that has ended is off the CPU and has no stack.
    int ended = clock_gettime(clock_of(w->thread), &time) != 0;
    u64 used = ended ? w->used : (u64)time.seconds * 1000000000ul + (u64)time.nanoseconds;
    if (judged && w->used && passed) state_judge(w, used, passed);
    if (judged) w->used = used;
    if (due && ended) call_forget(i), ring_close(&native.rings[i]);
    else if (due && sample_thread(i, w->thread, used, t, monotonic)) gil = stacks.threads[i].gil;
  }
  if (gil) sample_holder(gil, t, monotonic);
  if (due) stacks.spent_ns += clock_now(CLOCK_MONOTONIC) - monotonic, unlock(&stacks.lock);
  if (judged) states.at = t, states.at_monotonic = monotonic;
}

// Writes all states again, for readers that start here.
static void states_restate(void) {
  for (u32 i = 0; states.at && i < states.count; i++)
    if (states.list[i].state != UNKNOWN) states_put(states.list[i].thread, states.at, states.list[i].state);
  states_flush();
}

// Stops sampling while nothing is recorded; later states are written from scratch, and the CPU time used in the
// meantime does not count.
static void states_pause(void) {
  if (!states.at) return;
  for (u32 i = 0; i < states.count; i++) states.list[i].state = UNKNOWN, states.list[i].used = 0;
  states.at = 0;
  native_rings_close();
  states_flush();
  stacks_write();
}
