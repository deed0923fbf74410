// Locks, their order, and who may wait for whom.
//
// A thread that holds a lock takes only locks that stand after it here:
//
//   beginning      the first call of CUDA or NVTX in the process: options are read, the first names are given (start.c)
//   attaching      CUPTI is found and subscribed to, at the start or when a gate opens first (session.c)
//   switching      CUPTI begins to record, or stops (gate.c)
//   measure.lock   what is measured, and the profiler; also while a measured launch is under way, from its call to its return (measure.c)
//   rows.lock      CUPTI's records become rows (session.c)
//   emptying       one for each ring: its events become blocks (events.c)
//   names.lock     the table of texts (names.c)
//   out.lock       the file (file.c)
//
// and these, under which no other lock is taken: gate.lock, given.lock, threads.lock, buffers.lock, modules.lock.
//
// CUPTI has locks of its own, and calls back while it holds them. Apart from attaching, switching and measure.lock none of ours is held while CUPTI is called, but for
// functions that only read a record or a name.
//
// Threads of the program wait for each other, for CUPTI's worker and for the ticker, but only as long as a block is written or some rows are packed;
// for measure.lock they wait by measure_lock's rules, for attaching half a second at most, and for switching a tenth. The ticker, and the thread that hears what is asked from outside, wait for measure.lock only for
// a stated time, since a measured launch may take long; for all others they wait as threads of the program do. No thread waits for a lock
//   - that its own thread holds: then this is a signal handler, which has interrupted the holder. It goes on without, and counts what it leaves out;
//   - in a child of fork, where the holder may not exist;
//   - whose holder has ended, or is ending the process from a signal handler and never returns to what it held: the lock is taken over;
//   - for longer than LOCK_MS: a handler that jumps out of the tracer never releases its locks;
//   - at the process's end, on the thread that writes it, for longer than END_NS altogether.
// A gate that opens with a launch asks for switching while its thread may hold measure.lock, against the order: both waits are bounded.
// So data under a lock stays usable after every single store: a place is filled before it is counted.
//
// While a thread holds a lock it cannot be cancelled, not even asynchronously.

// The holder, as the system numbers threads; and one that held it for too long, until it lets go.
typedef struct { u32 owner, given_up; } Lock;

enum { SPINS = 100, LOCK_MS = 10000 };
// The part of an exit's 100 ms (start.c) that the ticker may wait for locks.
static const u64 END_NS = 50000000;
static volatile int ending;
// The ticker; and the thread that writes the end where the ticker does not come to it.
static volatile u32 ticker, ender;
static u64 end_waited;
static int is_bounded(void) { return GET(ending) && (own_tid == GET(ticker) || own_tid == GET(ender)); }

// The thread that ends the process, while it waits for the ticker.
static volatile u32 leaver;

// The type is changed, too: glibc (seen with 2.36) ends a thread that has become uncancellable by the time the signal of an asynchronous
// cancellation arrives, but not one whose type is deferred by then.
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
// Takes it from a thread that will never let go of it.
static int lock_take_over(Lock* l, u32 owner) {
  if (!owner || (owner != GET(leaver) && SYSTEM(SYS_TGKILL, process(), owner, 0) != -ESRCH)) return 0;
  return __atomic_compare_exchange_n(&l->owner, &owner, tid(), 0, __ATOMIC_ACQUIRE, __ATOMIC_RELAXED);
}
// A child that no handler of fork was called in, or one of vfork, which has its parent's memory for a moment.
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
    if (is_other_process() || (had = lock_take_over(l, owner)) || owner == __atomic_load_n(&l->given_up, __ATOMIC_RELAXED)) break;
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
// 1 once it is held; 0 if it cannot be taken: then the data that it guards must not be touched.
static int lock(Lock* l) { return lock_patiently(l, SPINS, LOCK_MS); }
static int lock_within(Lock* l, u64 ms) { return lock_patiently(l, 0, ms); }
static int lock_soon(Lock* l) { return lock_patiently(l, SPINS, 20); }

// Lets go of what a signal handler has interrupted on its own thread, and does not return to.
static void lock_abandon(Lock* l) {
  u32 owner = tid();
  __atomic_compare_exchange_n(&l->owner, &owner, 0, 0, __ATOMIC_RELEASE, __ATOMIC_RELAXED);
}

static NOINLINE void unlock(Lock* l) {
  if (UNLIKELY(l->given_up)) __atomic_store_n(&l->given_up, 0, __ATOMIC_RELAXED);
  __atomic_store_n(&l->owner, 0, __ATOMIC_RELEASE);
  cancel_release();
}

// The number of calls from the program and from CUPTI that this thread is in. A signal handler that arrives during one must leave its data alone.
static __thread volatile int inside_tracer;

// Losses of the tracer itself.
static struct {
  // NVTX events of signal handlers whose thread was in the tracer.
  u64 interrupted;
  // Rows and texts that needed a lock that could not be taken.
  u64 unwritten;
} lost;
