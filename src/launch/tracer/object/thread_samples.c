// Samples of launching threads: the stack, and what the thread is waiting for.

// CPU-time clock of a thread (CPUCLOCK_PERTHREAD_MASK | CPUCLOCK_SCHED in Linux's posix-timers.h).
static int clock_of(u32 thread) { return (int)(~thread << 3 | 6); }

static void sample_put(u32 thread, u64 time, u32 stack, u32 wait) {
  if (!stacks.rows.end) stacks.rows.end = stacks.rows.data, stacks.last_us = stacks.last_thread = stacks.last_stack = 0;
  u8* p = stacks.rows.end;
  p = put_signed(p, (i64)thread - (i64)stacks.last_thread);
  p = put_signed(p, (i64)(time / 1000 - stacks.last_us));
  p = put_signed(p, (i64)stack - (i64)stacks.last_stack);
  *p++ = (u8)wait;
  stacks.last_thread = thread, stacks.last_us = time / 1000, stacks.last_stack = stack;
  stacks.rows.end = p, stacks.rows.rows++, stacks.taken++;
  if (p + 48 > stacks.rows.data + sizeof stacks.rows.data) stacks_flush();
}

// Samples a thread; `used` is its CPU time since it started. Returns 1 if the thread is waiting for the GIL.
static int sample_thread(u32 i, u32 thread, u64 used, u64 time, u64 monotonic) {
  PythonThread* t = &stacks.threads[i];
  if (t->thread != thread) {
    *t = (PythonThread){ .thread = thread };
    stacks.last[i].used = 0, stacks.last[i].wait = WAITS_UNKNOWN, stacks.last[i].is_python = 0;
  }
  u64 took = stacks.last[i].used ? used - stacks.last[i].used : 0;
  int runs = stacks.passed && took * 10 >= stacks.passed * 9;
  int is_native = samples_native() && !stacks.last[i].is_python;
  int is_sampled = is_native && native_ring_samples(i, thread, took, time, monotonic);
  if (!is_native) ring_close(&native.rings[i]);
  // A thread that has not run since the last sample is still in the same place.
  if (!used || used != stacks.last[i].used || stacks.last[i].wait == RUNS || stacks.last[i].wait == WAITS_UNKNOWN) {
    WaitPlace place = { 0, 0 };
    u32 wait = runs ? RUNS : wait_of(i, thread, t->gil, &place), stack = 0;
    if (samples_python()) {
      if (!python_walk(t, monotonic)) {
        stacks.torn++;
        return 0;
      }
      stack = stack_of_walk();
    }
    stacks.last[i].is_python = stack != 0;
    if (!stack && samples_native() && place.pc) {
      native_unwind(registers_of_wait(place), monotonic);
      // If the thread has run in the meantime, its stack may have changed while it was being read.
      struct timespec now_;
      int same = !clock_gettime(clock_of(thread), &now_) &&
        (u64)now_.seconds * 1000000000ul + (u64)now_.nanoseconds == used;
      if (same) stack = stack_of_native();
      else stacks.torn++, wait = RUNS;
    }
    stacks.last[i].used = used, stacks.last[i].stack = stack, stacks.last[i].wait = wait;
  }
  // The thread was running, and the kernel's own samples already cover that time.
  if (is_sampled && stacks.last[i].wait == RUNS && !stacks.last[i].stack) return 0;
  sample_put(thread, time, stacks.last[i].stack, stacks.last[i].wait);
  return stacks.last[i].wait == WAITS_GIL;
}

// Samples the thread that holds the GIL. If that thread is sampled anyway, its sample is repeated with the holder's
// flag.
static void sample_holder(const u8* gil, u64 time, u64 monotonic) {
  static PythonThread holder;
  static u8 state[STATE_BYTES];
  u32 locked = 0;
  const u8* at = (const u8*)peek_word(gil + GIL_HOLDER);
  if (!at || !peek(gil + GIL_LOCKED, &locked, 4) || locked != 1 || !peek(at, state, STATE_BYTES)) return;
  u32 thread = thread_of_state(state);
  for (u32 i = 0; i < stacks.count; i++) {
    if (stacks.threads[i].thread != thread) continue;
    sample_put(thread, time, stacks.last[i].stack, stacks.last[i].wait | HOLDS_GIL);
    return;
  }
  if (!thread) return;
  if (holder.thread != thread) holder = (PythonThread){ .thread = thread };
  WaitPlace place;
  u32 wait = wait_of(SAMPLED, thread, NULL, &place) | HOLDS_GIL;
  if (python_walk(&holder, monotonic)) sample_put(thread, time, stack_of_walk(), wait);
  else stacks.torn++;
}

// Looks for the interpreter, which may be loaded later, at increasing intervals. Runs without stacks.lock.
static PythonSymbols python_look(u64 monotonic) {
  static u64 next, after = 500000000;
  static const u64 RARELY_NS = 30000000000ul;
  if (python.minor || python.why_not || monotonic < next) return (PythonSymbols){ NULL, NULL, 0, 0 };
  next = monotonic + after, after = after * 2 < RARELY_NS ? after * 2 : RARELY_NS;
  return python_symbols();
}

// Takes the lock if samples are due. Runs on the ticker.
static int stacks_begin(u64 monotonic) {
  if (!stacks.every_us || monotonic - stacks.at < stacks.every_us * 900ul) return 0;
  PythonSymbols found = python_look(monotonic);
  if (!lock(&stacks.lock)) return 0;
  if (!stacks_prepare()) return unlock(&stacks.lock), 0;
  python_take(&found);
  if (samples_native()) native_modules_check(monotonic);
  stacks.passed = stacks.at ? monotonic - stacks.at : 0, stacks.at = monotonic;
  return 1;
}
