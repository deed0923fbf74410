// Locks, their nesting order, the data they protect, and the limits on waiting.
//
// Lock nesting order, outermost first:
//
//   beginning, attaching, switching, measure.lock, rows.lock, Ring.emptying, stacks.lock, names.lock, out.lock
//
// A thread that holds one of these locks may only acquire locks further to the right. gate.lock, given.lock,
// threads.lock, buffers.lock and modules.lock are leaves: they may be acquired under any of the others, and nothing is
// acquired under them.
//
// beginning (injection.c) protects `begun` and the setup at the first CUDA or NVTX call of the process: `prefix`, the
// options that are read from the environment, `session.started`, `own_pid`. The first names are registered under it.
//
// attaching (activity.c) protects the search for CUPTI and the subscription, at the start or when a gate first opens:
// CUPTI's function pointers, `subscription`, `cupti_version`, `session.library`, `session.reason`,
// `session.per_thread`, `session.by_callbacks`, and the tables of chosen functions. `session.attached` publishes them
// to readers without the lock. The ticker holds it while it waits for a thread of the program to call cuptiFinalize
// (detach.c); afterwards, the ticker resets `session.recording`, `session.heard` and `launch_heard`, which no thread
// uses during that time.
//
// switching (capture_range.c) serializes starting and stopping CUPTI's recording: `session.recording`, `session.heard`,
// `Window.closed`. session_attach starts the first recording under attaching instead.
//
// measure.lock (profiler_launch.c) protects the range profiler and PC sampling: `measure`, `sets`, `wanted_launches`,
// `wanted_at`, `inside`, `asked_kernels`, `launch_heard`, `stalls`, `codes_due`. It is also held while a measured
// launch is in progress, from call to return. Without it, measure_ready prepares the profiler on the ticker
// (`measure.preparing`), asked_add fills free entries of `asked_kernels` and publishes them by their state, the ticker
// reads `measure.closed` up to `measure.closed_count`, and session_attach enables the first callbacks. Single words of
// `measure` and `stalls` are also read without it, by the ticker and under rows.lock (measure_own).
//
// rows.lock (activity.c) protects the encoding of CUPTI's records: `rows`, `configs`, `pointers`, `seen`, `last_on`,
// and the fields of `counted` that are not updated atomically. Entries of `configs.list` up to `configs.count` are read
// without it, and so are the sums in `seen` (measure_choose).
//
// Ring.emptying (event_ring.c), one per ring, protects the consumer's side: `tail` and `block`. Only the ring's own
// thread writes `head` and `events`; before the session is ready it also advances `tail`, by compare-and-exchange.
//
// stacks.lock (stack_samples.c) protects the samples of threads and the origins of graph nodes, and everything that
// reads Python stacks: `stacks` (apart from `every_us`), `graph_nodes`, `python`, `walk`. Their counters are also read
// without it.
//
// names.lock (strings.c) protects the string table `names`.
//
// out.lock (file.c) protects the output: `out`, `rolling`, `first_facts`. `out.pid`, `out.bytes` and `out.closed` are
// also read without it.
//
// gate.lock (capture_range.c) protects `gate.list` (apart from `closed`), `gate.count`, `gate.is_open`,
// `gate.opened_at` and `gate.closed_at`, and `gate.gated` once the program runs; all of them are read without it.
//
// given.lock (strings.c) protects `given`; entries below the count are read without it.
//
// threads.lock (event_ring.c) protects `threads.seen` and `threads.count`; `threads.named` belongs to the ticker.
//
// other.lock (other_client.h) protects the data that is passed to another client of CUPTI in the program:
// `other.buffer`, `other.size`, `other.used`, `other.kinds`, `other.anchor`. The client runs its own buffer callbacks
// under it. It is taken under attaching, or alone. `other.subscribed`, `other.records` and `other.alone` change under
// attaching, or on the client's thread when it leaves.
//
// buffers.lock (activity.c) protects `buffers.spare`; `buffers.count` and `buffers.bytes` are atomic counters.
//
// modules.lock (pc_sampling.c) protects `modules.list`, `modules.count` and `modules.bytes`; the fields `hashed`, `crc`
// and `written` belong to the ticker.
//
// CUPTI has its own locks, and invokes callbacks while it holds them. Only attaching, switching and measure.lock are
// held across calls to CUPTI, apart from functions that merely read a record or a name.
//
// Threads of the program wait for each other, for CUPTI's worker and for the ticker, but only while a block is written
// or some rows are packed. Exceptions: measure.lock has its own rules (measure_lock; calls_hear waits for up to
// MEASURED_MS), and waits for attaching and switching are limited to ATTACHING_MS and SWITCHING_MS. The ticker and the
// control thread wait for measure.lock only up to a timeout, because a measured launch may take long; for all other
// locks, they wait like program threads. A thread does not wait for a lock
//   - that it holds itself: it is then in a signal handler that interrupted the holder. It continues without the lock,
//     and counts the data that it leaves out;
//   - in a child of fork, where the owner may not exist;
//   - whose owner has ended, or is ending the process from a signal handler and never returns to its critical
//     section: the lock is taken over;
//   - for longer than LOCK_MS: a handler that jumps out of the tracer never releases its locks;
//   - at the process's end, on the thread that writes the end, for longer than END_NS in total.
// A gate that opens with a launch acquires switching while its thread may hold measure.lock, which violates the order:
// there is no deadlock, because both waits are bounded. Data under a lock stays usable after every single store, even
// if the lock is taken over: an entry is filled before it is counted.
//
// A thread that holds a lock cannot be cancelled, not even asynchronously.

// `owner` is a kernel thread id. `given_up` is an owner that held the lock for too long: until it releases the lock,
// nobody waits for it any more.
typedef struct { u32 owner, given_up; } Lock;

enum { SPINS = 100, LOCK_MS = 10000 };
// Part of an exit's 100 ms (injection.c) that the ticker may spend waiting for locks.
static const u64 END_NS = 50000000;
static volatile int ending;
// The ticker, and the thread that writes the end if the ticker cannot.
static volatile u32 ticker, ender;
static u64 end_waited;
static int is_bounded(void) { return GET(ending) && (own_tid == GET(ticker) || own_tid == GET(ender)); }

// Threads that are ending the process, while they wait for the ticker: several may call exit or _exit at once. The
// locks of a thread that finds no free entry cannot be taken over, which costs the others END_NS.
static volatile u32 leavers[4];
static int leave_begin(void) {
  for (int i = 0; i < 4; i++) {
    u32 none = 0;
    if (__atomic_compare_exchange_n(&leavers[i], &none, tid(), 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) return i;
  }
  return -1;
}
static void leave_end(int entry) {
  if (entry >= 0) SET(leavers[entry], 0);
}
static int is_leaving(u32 thread) {
  for (int i = 0; i < 4; i++)
    if (GET(leavers[i]) == thread) return 1;
  return 0;
}

// Disabling cancellation is not enough: if an asynchronous cancellation is under way, glibc (seen with 2.36) ends the
// thread when its signal arrives, even though cancellation is disabled by then, unless the type is deferred.
enum { PTHREAD_CANCEL_DISABLE = 1, PTHREAD_CANCEL_DEFERRED = 0 };
static __thread int uncancelled, cancel_state, cancel_type;
static void cancel_hold(void) {
  if (uncancelled++) return;
  pthread_setcanceltype(PTHREAD_CANCEL_DEFERRED, &cancel_type);
  pthread_setcancelstate(PTHREAD_CANCEL_DISABLE, &cancel_state);
}
static void cancel_release(void) {
  int state = cancel_state, type = cancel_type;
  if (--uncancelled) return;
  pthread_setcanceltype(type, NULL);
  pthread_setcancelstate(state, NULL);
}

static int lock_take(Lock* l, u32* owner) {
  *owner = 0;
  return __atomic_compare_exchange_n(&l->owner, owner, tid(), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
// Takes over the lock from a thread that will never release it.
static int lock_take_over(Lock* l, u32 owner) {
  if (!owner || (!is_leaving(owner) && SYSTEM(SYS_TGKILL, process(), owner, 0) != -ESRCH)) return 0;
  return __atomic_compare_exchange_n(&l->owner, &owner, tid(), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
// Detects a child in which no fork handler ran, or a child of vfork, which shares the parent's memory for a moment.
static int is_other_process(void) { return own_pid && own_pid != process(); }

static NOINLINE int lock_patiently(Lock* l, u64 spins, u64 ms) {
  int had;
  cancel_hold();
  for (u64 tries = 0;; tries++) {
    u32 owner;
    had = lock_take(l, &owner);
    if (LIKELY(had) || owner == own_tid || gone) break;
    if (tries < spins) {
      SYSTEM(SYS_SCHED_YIELD);
      continue;
    }
    if (is_other_process() || (had = lock_take_over(l, owner)) ||
      owner == __atomic_load_n(&l->given_up, __ATOMIC_RELAXED))
      break;
    if (tries >= spins + ms || (is_bounded() && end_waited >= END_NS)) {
      if (ms == LOCK_MS && !GET(ending)) __atomic_store_n(&l->given_up, owner, __ATOMIC_RELAXED);
      break;
    }
    u64 began = clock_now(CLOCK_MONOTONIC);
    nap();
    if (is_bounded()) end_waited += clock_now(CLOCK_MONOTONIC) - began;
  }
  if (!had) cancel_release();
  return had;
}
// Returns 1 once the lock is held, 0 on failure; in that case, the caller must not touch the protected data.
static int lock(Lock* l) { return lock_patiently(l, SPINS, LOCK_MS); }
static int lock_within(Lock* l, u64 ms) { return lock_patiently(l, 0, ms); }
static int lock_soon(Lock* l) { return lock_patiently(l, SPINS, 20); }

// Releases a lock that this thread held when a signal interrupted it, for a handler that never returns to that code.
static void lock_abandon(Lock* l) {
  u32 owner = tid();
  __atomic_compare_exchange_n(&l->owner, &owner, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static NOINLINE void unlock(Lock* l) {
  if (UNLIKELY(l->given_up)) __atomic_store_n(&l->given_up, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&l->owner, 0, __ATOMIC_RELEASE);
  cancel_release();
}

// Nesting depth of calls into the tracer on this thread, from the program or from CUPTI. If it is not zero, a signal
// handler has interrupted the tracer and must not touch its data.
static __thread volatile int inside_tracer;

// Data that the tracer itself lost.
static struct {
  // NVTX events from signal handlers that interrupted the tracer on the same thread.
  u64 interrupted;
  // Rows and strings that were dropped because a lock could not be taken.
  u64 unwritten;
} lost;
