// Events of program threads: NVTX ranges, gates, and calls that CUPTI does not record. Each thread writes into its own
// ring without waiting; the ring is emptied by the ticker, or by the thread itself when it is full.

enum { EVENT_PUSH = 1, EVENT_POP = 2, EVENT_START = 3, EVENT_END = 4, EVENT_MARK = 5, EVENT_POP_MESSAGE = 8,
  EVENT_CALL = 16 };
enum { COLOR = 1, CATEGORY = 2, PAYLOAD_SIGNED = 4, PAYLOAD_UNSIGNED = 8, PAYLOAD_REAL = 12, PAYLOAD = 12, MESSAGE = 16,
  MESSAGE_BYTES = 24 };

typedef struct { u64 time, id, payload; u32 domain, text, color, category; u8 kind, has, message; } Event;
enum { EVENTS = 2048, EVENT_BLOCK = 32 << 10 };

typedef struct Ring {
  struct Ring* next;
  u32 thread;
  // `head` belongs to the writing thread, `tail` to the thread that empties the ring.
  volatile u32 head, tail;
  Lock emptying;
  // Number of events in the block that is being written; they are no longer in the ring.
  volatile u32 writing;
  // Set while the ring's thread writes an event: a signal handler that interrupts the write drops its own event.
  volatile int busy;
  // 1 once the ring's thread has ended, 2 while another thread adopts the ring.
  volatile int ended;
  Event events[EVENTS];
  // Encoding buffer, because the thread's stack may be too small.
  u8 block[EVENT_BLOCK + 256];
} Ring;

static Ring* rings;
static __thread Ring* own_ring;

static Ring* ring(void) {
  Ring* r = own_ring;
  if (LIKELY(r != NULL)) return r;
  // Adopts the ring of a thread that has ended, or allocates one.
  for (r = __atomic_load_n(&rings, __ATOMIC_ACQUIRE); r; r = r->next) {
    int ended = 1;
    if (GET(r->ended) == 1 &&
      __atomic_compare_exchange_n(&r->ended, &ended, 2, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED)) {
      // The previous thread may have been cancelled while it was writing.
      SET(r->thread, tid()), r->busy = 0;
      __atomic_store_n(&r->ended, 0, __ATOMIC_RELEASE);
      return own_ring = r;
    }
  }
  r = pages(sizeof *r, 0);
  if (!r) return NULL;
  r->thread = tid();
  r->next = __atomic_load_n(&rings, __ATOMIC_RELAXED);
  while (!__atomic_compare_exchange_n(&rings, &r->next, r, 1, __ATOMIC_RELEASE, __ATOMIC_RELAXED));
  return own_ring = r;
}

// NCCL's payload: length and bytes, stored in the number fields of the event.
static u8* put_message_bytes(u8* p, const Event* e) {
  u8 bytes[MESSAGE_BYTES];
  memcpy(bytes, &e->id, 8), memcpy(bytes + 8, &e->payload, 8), memcpy(bytes + 16, &e->color, 8);
  *p++ = e->message, memcpy(p, bytes, e->message);
  return p + e->message;
}

// Writes the events in a ring.
static NOINLINE void ring_empty(Ring* r) {
  if (!lock(&r->emptying)) return;
  // A thread that ended the process from a signal handler did not finish this block.
  if (UNLIKELY(r->writing)) ADD(lost.unwritten, r->writing), r->writing = 0;
  u8* data = r->block;
  u32 head = __atomic_load_n(&r->head, __ATOMIC_ACQUIRE), tail = r->tail;
  names_flush();
  while (tail != head) {
    u8* p = data;
    u32 count = 0;
    u64 before = 0;
    for (; tail != head && p - data < EVENT_BLOCK; tail++, count++) {
      const Event* e = &r->events[tail % EVENTS];
      *p++ = e->kind;
      p = put_signed(p, step(e->time, &before));
      switch (e->kind) {
      case EVENT_PUSH: case EVENT_START: case EVENT_MARK:
        *p++ = e->has;
        p = put_number(p, e->domain), p = put_number(p, e->text);
        if (e->kind == EVENT_START) p = put_number(p, e->id);
        if (e->has & COLOR) p = put_number(p, e->color);
        if (e->has & CATEGORY) p = put_number(p, e->category);
        if (e->has & PAYLOAD) memcpy(p, &e->payload, 8), p += 8;
        if (e->has & MESSAGE) p = put_message_bytes(p, e);
        break;
      case EVENT_POP: p = put_number(p, e->domain); break;
      case EVENT_POP_MESSAGE: p = put_message_bytes(put_number(p, e->domain), e); break;
      case EVENT_END: p = put_number(p, e->id); break;
      case EVENT_CALL:
        p = put_number(p, e->text), p = put_number(p, e->id), p = put_number(p, e->payload),
        p = put_number(p, e->color);
        break;
      default: p = put_number(p, e->text), p = put_number(p, e->id);
      }
    }
    // Free the slots before the block is written: if this thread ends in the meantime, the events are not written
    // twice.
    r->writing = count;
    __atomic_store_n(&r->tail, tail, __ATOMIC_RELEASE);
    put_block(BLOCK_EVENTS, 0, GET(r->thread), count, data, (u32)(p - data));
    r->writing = 0;
  }
  unlock(&r->emptying);
}

static int ring_full(const Ring* r) { return r->head - __atomic_load_n(&r->tail, __ATOMIC_ACQUIRE) >= EVENTS; }

// Slot for this thread's next event; NULL if the event must be dropped.
static Event* event_begin(Ring* r) {
  if (UNLIKELY(r->busy)) {
    ADD(lost.interrupted, 1);
    return NULL;
  }
  r->busy = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  if (UNLIKELY(ring_full(r))) {
    if (session.ready) ring_empty(r);
    // Before CUDA is used, the ticker does not empty the ring: drop the oldest event. The ticker may be starting at
    // this very moment.
    else {
      u32 tail = r->head - EVENTS;
      __atomic_compare_exchange_n(&r->tail, &tail, tail + 1, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED);
    }
  }
  if (LIKELY(!ring_full(r))) return &r->events[r->head % EVENTS];
  ADD(lost.unwritten, 1);
  r->busy = 0;
  return NULL;
}
static void event_end(Ring* r) {
  __atomic_store_n(&r->head, r->head + 1, __ATOMIC_RELEASE);
  r->busy = 0;
}

static void event(u8 kind, u32 domain, u32 text, u64 id) {
  Ring* r = ring();
  if (!r) return;
  Event* e = event_begin(r);
  if (!e) return;
  *e = (Event){ .time = now(), .id = id, .domain = domain, .text = text, .kind = kind };
  event_end(r);
}

// Empties all rings, and marks those of threads that have ended for reuse.
static void rings_look(int last) {
  for (Ring* r = __atomic_load_n(&rings, __ATOMIC_ACQUIRE); r; r = r->next) {
    ring_empty(r);
    if (last || GET(r->ended)) continue;
    if (SYSTEM(SYS_TGKILL, out.pid, GET(r->thread), 0) == -ESRCH) {
      ring_empty(r);
      __atomic_store_n(&r->ended, 1, __ATOMIC_RELEASE);
    }
  }
}

// Threads seen so far, and how many of them have been named.
enum { THREADS = 4096 };
static struct { Lock lock; u32 seen[THREADS], count, named; } threads;
static void thread_seen(u32 thread) {
  static __thread u32 last;
  if (LIKELY(last == thread) || !thread) return;
  if (!lock(&threads.lock)) return;
  last = thread;
  u32 i = threads.count;
  while (i > 0 && threads.seen[i - 1] != thread) i--;
  if (!i && threads.count < THREADS) {
    threads.seen[threads.count] = thread;
    __atomic_store_n(&threads.count, threads.count + 1, __ATOMIC_RELEASE);
  }
  unlock(&threads.lock);
}
static void threads_name(int again) {
  u8 data[4096], *p = data;
  u32 count = 0;
  for (u32 i = again ? 0 : threads.named; i < GET(threads.count) && p - data < 3900; i++) {
    char path[48], text[64];
    snprintf(path, sizeof path, "/proc/self/task/%u/comm", threads.seen[i]);
    int file = file_open(path, O_RDONLY | O_CLOEXEC);
    long n = file < 0 ? 0 : file_read(file, text, sizeof text);
    if (file >= 0) file_close(file);
    if (n > 0 && text[n - 1] == '\n') n--;
    if (n > 0) p = put_number(p, threads.seen[i]), p = put_number(p, (u64)n), memcpy(p, text, (u64)n), p += n, count++;
    if (!again) threads.named = i + 1;
  }
  if (count) put_block(BLOCK_THREADS, 0, 0, count, data, (u32)(p - data));
}
