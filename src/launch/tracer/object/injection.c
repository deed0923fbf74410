// Initialization, the ticker (a thread for periodic work), requests to the ticker, and shutdown.

static const char* host_name(void) {
  // struct utsname: system name first, host name second.
  static char names_[6][65];
  return SYSTEM(SYS_UNAME, names_) ? NULL : names_[1];
}

// The command line, read when the object is loaded, because programs may overwrite it later (setproctitle). A child of
// fork keeps its parent's.
static char first_words[4096];
static long first_length;
__attribute__((constructor)) static void words_keep(void) {
  int file = file_open("/proc/self/cmdline", O_RDONLY | O_CLOEXEC);
  if (file < 0) return;
  first_length = file_read(file, first_words, sizeof first_words - 1);
  file_close(file);
}

static void facts_of_process(Facts* f) {
  static char text[4096];
  fact_number(f, "format", 1);
  fact_number(f, "pid", (u64)out.pid);
  fact_number(f, "parent", (u64)SYSTEM(SYS_GETPPID));
  // Load time of the first injection (CUDA or NVTX): ranges may begin before CUDA is used.
  fact_number(f, "started", session.started);
  if (rolling.keep_ns) fact_number(f, "kept_ms", rolling.keep_ns / 1000000);
  long n = SYSTEM(SYS_READLINKAT, AT_FDCWD, "/proc/self/exe", text, sizeof text - 1);
  if (n > 0) text[n] = 0, fact(f, "executable", text);
  // A directory outside the process's root begins with "(unreachable)".
  if (SYSTEM(SYS_GETCWD, text, sizeof text) > 0 && *text == '/') fact(f, "directory", text);
  if (host_name()) fact(f, "host", host_name());
  for (long at = 0; at < first_length; at += (long)strlen(first_words + at) + 1) fact(f, "argument", first_words + at);
  static const char* const RANKS[] = {
    "RANK", "WORLD_SIZE", "LOCAL_RANK", "LOCAL_WORLD_SIZE", "SLURM_PROCID", "SLURM_NTASKS", "SLURM_LOCALID",
    "OMPI_COMM_WORLD_RANK", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_LOCAL_RANK", "PMI_RANK", "PMI_SIZE",
    "CUDA_VISIBLE_DEVICES",
  };
  for (u32 i = 0; i < COUNT(RANKS); i++) {
    const char* value = getenv(RANKS[i]);
    if (!value || !*value) continue;
    snprintf(text, sizeof text, "environment.%s", RANKS[i]);
    fact(f, text, value);
  }
  // The command that the user started, which may be an ancestor of this process; words are separated by the unit
  // separator.
  const char* launched = setting("WARPSCOPE_TRACE_COMMAND");
  while (launched && *launched) {
    u64 length = 0;
    while (launched[length] && launched[length] != 31) length++;
    snprintf(text, sizeof text, "%.*s", length < sizeof text ? (int)length : (int)sizeof text - 1, launched);
    fact(f, "launched", text);
    launched += length + (launched[length] == 31);
  }
}

// Facts that identify this process and this part of its trace.
static void facts_of_part(Facts* f, u32 number) {
  fact_number(f, "pid", (u64)out.pid);
  fact_number(f, "started", session.started);
  if (host_name()) fact(f, "host", host_name());
  fact_number(f, "continues", number);
  fact_number(f, "time", now());
}

static Facts first_facts;
static void file_begin(void) {
  if (!prefix[0] || !open_file(prefix)) return;
  first_facts.n = first_facts.count = 0;
  facts_of_process(&first_facts);
  put_locked(BLOCK_FACTS, 0, 0, first_facts.count, first_facts.data, first_facts.n);
}

// ---- Device attributes. Queried once the driver is ready, which it is not while it loads this object.

typedef struct { u32 attribute; const char* key; } Attribute;
static const Attribute ATTRIBUTES[] = { // CUdevice_attribute
  { 1, "max_threads_per_block" }, { 8, "shared_per_block" }, { 10, "warp_size" }, { 12, "registers_per_block" },
  { 13, "clock_khz" }, { 16, "sm_count" }, { 36, "memory_clock_khz" }, { 37, "memory_bus_bits" }, { 38, "l2_bytes" },
  { 39, "threads_per_sm" }, { 75, "cc_major" }, { 76, "cc_minor" }, { 81, "shared_per_sm" }, { 82, "registers_per_sm" },
  { 97, "shared_per_block_optin" }, { 106, "blocks_per_sm" },
};
static int devices_done;
enum { CUDA_NOT_INITIALIZED = 3, CUDA_DEINITIALIZED = 4 };
static void devices_look(void) {
  void* driver = devices_done ? NULL : dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (!driver) return;
  int (*count)(int*) = NULL, (*get)(int*, int) = NULL, (*attribute)(int*, u32, int) = NULL,
      (*text)(char*, int, int) = NULL;
  int (*bus)(char*, int, int) = NULL, (*memory)(u64*, int) = NULL, (*version)(int*) = NULL;
  *(void**)&count = lookup(driver, "cuDeviceGetCount"), *(void**)&get = lookup(driver, "cuDeviceGet");
  *(void**)&attribute = lookup(driver, "cuDeviceGetAttribute"), *(void**)&text = lookup(driver, "cuDeviceGetName");
  *(void**)&bus = lookup(driver, "cuDeviceGetPCIBusId"), *(void**)&memory = lookup(driver, "cuDeviceTotalMem_v2");
  *(void**)&version = lookup(driver, "cuDriverGetVersion");
  int n = 0;
  if (!count || !get || !attribute) return;
  int error = count(&n);
  // The program's cuInit loaded this object. If it then failed, ask for its error by another call, at the very end.
  int (*init)(u32) = NULL;
  if (error == CUDA_NOT_INITIALIZED && session.ended) *(void**)&init = lookup(driver, "cuInit");
  if (session.ended) session.cuda_error = (u32)(init ? init(0) : error == CUDA_DEINITIALIZED ? 0 : error);
  if (error) return;
  static Facts f;
  for (int i = 0; i < n; i++) {
    int device, value;
    char word[256];
    u64 bytes;
    if (get(&device, i)) continue;
    fact_number(&f, "device", (u64)i);
    if (text && !text(word, sizeof word, device)) fact(&f, "name", word);
    if (bus && !bus(word, sizeof word, device)) fact(&f, "bus", word);
    if (memory && !memory(&bytes, device)) fact_number(&f, "memory", bytes);
    if (version && !version(&value)) fact_number(&f, "driver", (u64)value);
    for (u32 k = 0; k < COUNT(ATTRIBUTES); k++)
      if (!attribute(&value, ATTRIBUTES[k].attribute, device) && value >= 0)
        fact_number(&f, ATTRIBUTES[k].key, (u64)value);
    put_facts(BLOCK_DEVICE, &f);
  }
  devices_done = 1;
}

// ---- State of the recording.

// Set if no data is pending: the gate was already closed at the previous check, and no data has arrived since.
static int settled;
static void count_facts(Facts* f) {
  fact_number(f, "time", now());
  fact_number(f, "monotonic", clock_now(CLOCK_MONOTONIC));
  const struct { const char* key; u64 value; } all[] = {
    { "kernels", counted.kernels }, { "memops", counted.memops }, { "calls", counted.calls },
    { "other", counted.other }, { "invalid", counted.invalid }, { "outside", counted.outside },
    { "dropped", counted.dropped }, { "refused", counted.refused }, { "interrupted", lost.interrupted },
    { "unwritten", lost.unwritten }, { "inline_configs", counted.inline_configs }, { "buffers", counted.buffers },
    { "packing_ns", counted.packing_ns }, { "flushing_ns", session.flushing_ns }, { "bytes", out.bytes },
    { "chosen_error", session.chosen_error }, { "kernel_error", session.kernel_error },
    { "cuda_error", session.cuda_error }, { "forks", session.forks }, { "open", (u64)(!gate.gated || gate.is_open) },
    { "measured", measure.launches }, { "attached", (u64)session.attached }, { "settled", (u64)settled },
    { "measuring_ns", measure.spent }, { "sampled", stalls.launches }, { "stacks", stacks.taken },
    { "torn", stacks.torn },
    { "graph_nodes", graph_nodes.nodes }, { "left", detach.count }, { "leaving_ns", detach.took_in_all },
    { "stacks_ns", stacks.spent_ns }, { "python", python.minor }, { "native", (u64)samples_native() },
    { "shared", other.given }, { "not_shared", other.lost }, { "openings", gate.count },
  };
  for (u32 i = 0; i < COUNT(all); i++) fact_number(f, all[i].key, all[i].value);
}

// A measured launch that has not returned after this time is reported.
static const u64 WAITS_NS = 3000000000ul;
static void state_facts(Facts* f) {
  u64 cupti = 0;
  if (session.attached && !session.ended) cuptiGetTimestamp(&cupti);
  count_facts(f);
  if (cupti) fact_number(f, "cupti_time", cupti);
  u64 within = measure.within, t = clock_now(CLOCK_MONOTONIC);
  if (within && t > within + WAITS_NS)
    fact_number(f, "measuring_kernel", measure.within_name), fact_number(f, "measuring_for_ms", (t - within) / 1000000);
  if (within && measure.replaying) fact_number(f, "measuring_replays", sets[measure.set].passes);
  // These facts explain why a gate is still closed.
  if (gate_range.text) fact_number(f, "range_entered", gate_range.entered), fact_number(f, "ranges", gate_range.others);
  if (gate.gated == GATED_BY_LAUNCH) fact_number(f, "launches_heard", gate_launch.seen);
  if (measure.why_not) fact(f, "not_measured", measure.why_not);
  if (detach.why_not) fact(f, "not_left", detach.why_not);
  if (stalls.why_not) fact(f, "not_sampled", stalls.why_not);
  if (stacks.every_us) fact_number(f, "stacks_every_us", stacks.every_us);
  if (stacks.every_us && python.why_not) fact(f, "no_python_stacks", python.why_not);
  if (stacks.every_us && samples_native() && native_why_not()) fact(f, "no_native_stacks", native_why_not());
}

static void flush(u32 forced) {
  if (!session.attached) return;
  u64 began = clock_now(CLOCK_MONOTONIC);
  // Unless forced, CUPTI returns only finished records. We hold no lock while CUPTI calls back.
  cuptiActivityFlushAll(forced);
  session.flushing_ns += clock_now(CLOCK_MONOTONIC) - began;
}

// Runs several times a second while something is recorded: a killed program loses only the data since the last check.
static void look_briefly(void) {
  static u64 told;
  flush(0);
  rings_look(0);
  stacks_write();
  // State blocks go to the first file of a process, which is kept as a whole: it must not grow fast if only the last
  // seconds of rows are kept.
  if (told == out.bytes || rolling.keep_ns) return;
  settled = 0;
  static Facts f;
  state_facts(&f);
  put_facts(BLOCK_STATE, &f);
  told = out.bytes;
}

static void look(void) {
  static int was_shut;
  static u64 buffers_before;
  int shut = gate.gated && !gate.is_open;
  states_flush();
  stacks_write();
  flush(0);
  rings_look(0);
  devices_look();
  threads_name(0);
  given_write();
  settled = shut && gate.gated && !gate.is_open && GET(detach.state) < DETACH_WANTED &&
    (!session.attached ||
      (was_shut && (recording_due() || !GET(session.recording)) && buffers_before == counted.buffers));
  was_shut = shut, buffers_before = counted.buffers;
  static Facts f;
  state_facts(&f);
  names_flush();
  put_facts(BLOCK_STATE, &f);
  states_restate();
}

// ---- Requests to the ticker. Only the ticker flushes and ends the trace, so no program thread waits for locks that it
// may itself hold.

enum { ASK_LOOK = 1, ASK_FLUSH = 2, ASK_END = 4, ASK_END_BY_EXIT = 8, ASK_GATE = 16 };
static volatile u32 asked, answered, asked_what;
static volatile int ticking;
// An exiting process waits while its trace is being written (up to EXIT_WORK_MS), but only for a total of EXIT_MS while
// the ticker makes no progress: the ticker may be waiting for something that a program thread holds, including CUPTI's
// locks, and that thread may be the requesting one.
enum { EXIT_MS = 300, EXIT_WORK_MS = 5000, STARVED_MS = 1500, SLICE_MS = 10 };

static void futex_wait(volatile u32* word, u32 while_it_is, u64 ms) {
  struct timespec time = { (long)(ms / 1000), (long)(ms % 1000 * 1000000) };
  SYSTEM(SYS_FUTEX, word, 128 /* FUTEX_WAIT_PRIVATE */, while_it_is, &time);
}
static void futex_wake(volatile u32* word) { SYSTEM(SYS_FUTEX, word, 129 /* FUTEX_WAKE_PRIVATE */, 1000); }
// Wake-up counter of the ticker, incremented for each reason to check, even while the ticker is about to sleep.
static volatile u32 poked;
static void poke(void) {
  __atomic_add_fetch(&poked, 1, __ATOMIC_ACQ_REL);
  futex_wake(&poked);
}
// The ticker sleeps for up to a second while nothing is recorded; opening a gate wakes it, so that threads are sampled
// even in short windows.
static void states_wanted(void) {
  if (!GET(states.at)) poke();
}

// Returns 1 if the ticker is running, is runnable, or is waiting for a disk.
static int ticker_works(void) {
  char path[48], text[128];
  snprintf(path, sizeof path, "/proc/self/task/%u/stat", GET(ticker));
  int file = file_open(path, O_RDONLY | O_CLOEXEC);
  long n = file < 0 ? 0 : file_read(file, text, sizeof text - 1);
  if (file >= 0) file_close(file);
  // The state follows the name, which is in parentheses.
  while (n > 2 && text[n - 1] != ')') n--;
  return n > 2 && (text[n + 1] == 'R' || text[n + 1] == 'D');
}

// Sends a request and returns 1 once it is done. Waits for at most `work_ms` while the ticker is working, and for at
// most `still_ms` while it is not.
static int ask(u32 what, u64 still_ms, u64 work_ms) {
  if (!GET(ticking) || gone || out.pid != process()) return 0;
  __atomic_fetch_or(&asked_what, what, __ATOMIC_ACQ_REL);
  u32 number = __atomic_add_fetch(&asked, 1, __ATOMIC_ACQ_REL);
  poke();
  u64 still = 0, work = 0, starved = 0, seen_progress = GET(progress), t = clock_now(CLOCK_MONOTONIC);
  for (u32 seen; (i32)((seen = __atomic_load_n(&answered, __ATOMIC_ACQUIRE)) - number) < 0 && GET(ticking);) {
    if (gone || still >= still_ms * 1000000 || work >= work_ms * 1000000) return 0;
    futex_wait(&answered, seen, SLICE_MS);
    // Time during which the process was stopped does not count.
    u64 before = t, most = 2 * SLICE_MS * 1000000ul;
    t = clock_now(CLOCK_MONOTONIC);
    u64 took = t - before < most ? t - before : most;
    if (GET(progress) != seen_progress) seen_progress = GET(progress), work += took, starved = 0;
    // The ticker may be runnable without having a processor, or may be spinning on one of CUPTI's locks.
    else if (starved < STARVED_MS * 1000000ul && ticker_works()) work += took, starved += took;
    else still += took;
  }
  return 1;
}

static void gate_by_ticker(void) { ask(ASK_GATE, 0, 0); }

static void end_without_ticker(const char* why);
// Runs on the thread that ends the process, possibly in a signal handler: the handler does not return to the
// interrupted code, so that code's locks may be taken over.
static void end_process(u32 what) {
  if (!session.ready || gone || out.pid != process()) return;
  int entry = leave_begin();
  int done = ask(what, EXIT_MS, EXIT_WORK_MS);
  leave_end(entry);
  if (!done) end_without_ticker(what == ASK_END ? "exit" : "_exit");
}

// ---- Control socket: one command per connection, on a separate thread.

static int control = -1;
static Identity control_is;
static char control_path[4096];
static void control_open(void) {
  struct sockaddr_un address = { .family = AF_UNIX };
  // The path of a socket is limited to 107 bytes, so the folder is referred to by its descriptor.
  static char folder[4096];
  const char* slash = prefix;
  for (const char* p = prefix; *p; p++)
    if (*p == '/') slash = p;
  memcpy(folder, prefix, (u64)(slash - prefix)), folder[slash - prefix] = 0;
  int at = file_open(*folder ? folder : "/", O_PATH | O_DIRECTORY | O_CLOEXEC);
  if (at < 0) return;
  snprintf(control_path, sizeof control_path, "%s.%d.sock", prefix, out.pid);
  int n = snprintf(address.path, sizeof address.path, "/proc/self/fd/%d%s.%d.sock", at, slash, out.pid);
  int s = n > 0 && n < (int)sizeof address.path
    ? high((int)SYSTEM(SYS_SOCKET, AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0))
    : -1;
  // A previous program in this process (before exec) may have left its socket behind.
  if (s >= 0) file_remove(address.path);
  // The socket file inherits the mode of the socket; changing it later by path might affect another file.
  if (s >= 0 && !SYSTEM(SYS_FCHMOD, s, 0600) && !SYSTEM(SYS_BIND, s, &address, sizeof address) &&
    !SYSTEM(SYS_LISTEN, s, 4))
    control = s, control_is = identity(s);
  else if (s >= 0) file_close(s);
  file_close(at);
}
// Time limits for a client to send its command, and for the ticker to carry out a `flush`.
enum { WORD_MS = 500, HEAR_MS = 1000 };
static const char* obey(const char* word) {
  if (!strcmp(word, "open")) {
    if (!gate.gated) return "not gated\n";
    gate_set(1, "by hand", 0);
    if (!session.attached) {
      static char answer[300];
      snprintf(
        answer, sizeof answer, "not recorded: %s\n", session.reason[0] ? session.reason : "CUPTI is busy; try again");
      return answer;
    }
    return "open\n";
  }
  if (!strcmp(word, "prepare")) return session_prepare() ? "prepared\n" : "busy\n";
  if (!strcmp(word, "close")) {
    if (!lock(&gate.lock)) return "busy\n";
    if (!gate.gated) {
      // A recording of everything becomes a gated one, with the gate open until now.
      gate.list[0] = (Window){ 0, ~0ul };
      gate.count = 1, gate.is_open = 1;
      __atomic_store_n(&gate.gated, GATED, __ATOMIC_RELEASE);
    }
    unlock(&gate.lock);
    gate_set(0, "by hand", 0);
    return "closed\n";
  }
  if (!strcmp(word, "flush")) {
    // The client gives up after two seconds.
    return ask(ASK_LOOK, HEAR_MS, HEAR_MS) ? "flushed\n" : "not flushed yet\n";
  }
  if (!strncmp(word, "measure ", 8)) return measure_ask(word + 8);
  if (!strcmp(word, "left")) return detach_said();
  if (!strcmp(word, "state")) return !gate.gated || gate.is_open ? "open\n" : "closed\n";
  return "unknown\n";
}
static void* hear(void* unused) {
  (void)unused;
  SYSTEM(SYS_PRCTL, 15 /* PR_SET_NAME */, "warpscope");
  while (!GET(session.ended) && !gone && is_same(control, control_is)) {
    struct pollfd p = { control, POLLIN, 0 };
    if (wait_for_input(&p, 1000) < 1) continue;
    if (!(p.revents & POLLIN) || !is_same(control, control_is)) break;
    int c = (int)SYSTEM(SYS_ACCEPT4, control, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);
    if (c == -EINTR || c == -EAGAIN) continue;
    // The process may be out of descriptors, for example, and some may become free again.
    if (c < 0) {
      if (c == -EBADF || c == -EINVAL || c == -ENOTSOCK) break;
      nap();
      continue;
    }
    struct pollfd q = { c, POLLIN, 0 };
    char word[700] = "";
    long n = wait_for_input(&q, WORD_MS) == 1 ? file_read(c, word, sizeof word - 1) : 0;
    while (n > 0 && (word[n - 1] == '\n' || word[n - 1] == ' ')) word[--n] = 0;
    // A client that hung up, perhaps while the program was stopped, has already reported that there was no answer, so
    // drop its command.
    if (n > 0 && !(q.revents & POLLHUP)) {
      const char* answer = obey(word);
      SYSTEM(SYS_SENDTO, c, answer, strlen(answer), MSG_NOSIGNAL);
    }
    file_close(c);
  }
  return NULL;
}

// ---- The ticker's loop.

enum { FIRST_MS = 50, EVERY_MS = 1000, BRIEFLY_MS = 100 };
static u64 open_after_ns, open_for_ns;
static void finish(const char* why);
static void empty_trace_say(void);

static void* tick(void* unused) {
  (void)unused;
  SET(ticker, tid());
  SYSTEM(SYS_PRCTL, 15 /* PR_SET_NAME */, "warpscope");
  u64 began = clock_now(CLOCK_MONOTONIC), next = began + FIRST_MS * 1000000ul, briefly = next;
  while (!GET(session.ended) && !gone) {
    u32 pokes = __atomic_load_n(&poked, __ATOMIC_ACQUIRE), number = __atomic_load_n(&asked, __ATOMIC_ACQUIRE);
    if (number != answered) {
      u32 what = __atomic_exchange_n(&asked_what, 0, __ATOMIC_ACQ_REL);
      if (what & (ASK_FLUSH | ASK_GATE)) detach_cancel(NULL);
      if (what & (ASK_END | ASK_END_BY_EXIT)) finish(what & ASK_END ? "exit" : "_exit");
      else if (what == ASK_GATE) gate_follow();
      else if (what & ASK_FLUSH) gate_follow(), flush(1), look();
      else gate_follow(), look();
      __atomic_store_n(&answered, number, __ATOMIC_RELEASE);
      futex_wake(&answered);
      continue;
    }
    u64 t = clock_now(CLOCK_MONOTONIC);
    if (open_after_ns && t - began >= open_after_ns) {
      detach_cancel(NULL);
      gate_set(1, "after its seconds", 0);
      if (gate.is_open || session.reason[0]) open_after_ns = 0;
    }
    if (open_for_ns && gate.gated && gate.is_open && t > gate.opened_at + open_for_ns)
      gate_set(0, "its time is over", 0);
    if (t >= next) {
      look();
      t = clock_now(CLOCK_MONOTONIC), next = t + EVERY_MS * 1000000ul, briefly = t + BRIEFLY_MS * 1000000ul;
    }
    if (session.attached) recording_follow();
    int records = session.attached && GET(session.recording);
    int shut_long = gate.gated && !GET(gate.is_open) && t - GET(gate.closed_at) > 2 * GRACE_NS;
    if (records && !shut_long && t >= briefly)
      look_briefly(), t = clock_now(CLOCK_MONOTONIC), briefly = t + BRIEFLY_MS * 1000000ul;
    u64 wait = (next - t) / 1000000 + 1;
    if (records && wait > BRIEFLY_MS) wait = BRIEFLY_MS;
    int watches = records && !session.lean && (!gate.gated || GET(gate.is_open));
    if (watches) states_look();
    else states_pause();
    if (watches && wait > STATES_EVERY_MS) wait = STATES_EVERY_MS;
    u32 sampled_ms = stacks.every_us < 1000 ? 1 : stacks.every_us / 1000;
    if (watches && stacks.every_us && wait > sampled_ms) wait = sampled_ms;
    u64 sampling_ms = samples_look(t);
    if (wait > sampling_ms) wait = sampling_ms;
    u64 detaching_ms = detach_look(t);
    if (wait > detaching_ms) wait = detaching_ms;
    measure_look(0);
    if (measure.state != MEASURE_OFF && wait > MEASURE_EVERY_MS) wait = MEASURE_EVERY_MS;
    if ((open_after_ns || open_for_ns) && wait > 20) wait = 20;
    futex_wait(&poked, pokes, wait);
  }
  SET(ticking, 0);
  futex_wake(&answered);
  return NULL;
}

// ---- Shutdown.

static void refusal_facts(Facts* f) {
  fact(f, "not_recorded", session.reason);
  if (session.refusal) fact_number(f, "refusal", session.refusal);
  if (session.unusable) fact(f, "unusable", session.unusable);
  if (session.refusal && session.library[0]) fact(f, "libcupti", session.library);
}
static void put_end(Facts* f, const char* why) {
  if (session.reason[0] && !session.attached) refusal_facts(f);
  fact(f, "end", why);
  put_block_or_last(BLOCK_END, 0, 0, f->count, f->data, f->n, 1);
  if (control >= 0) file_remove(control_path);
}

// Runs on the ticker. Writes the tracer's own data first, because CUPTI may not return.
static void finish(const char* why) {
  if (gone || out.pid != process() || __atomic_exchange_n(&session.ended, 1, __ATOMIC_ACQ_REL)) return;
  SET(ending, 1);
  detach_end();
  states_pause();
  stacks_write();
  rings_look(1);
  names_flush();
  threads_name(1);
  given_write();
  devices_look();
  flush(1);
  measure_look(1);
  measure_ended();
  flush(1);
  if (lock(&rows.lock)) {
    buffer_resume();
    unlock(&rows.lock);
  }
  rings_look(1);
  stacks_write();
  names_flush();
  threads_name(0);
  given_write();
  static Facts f;
  state_facts(&f);
  put_end(&f, why);
  empty_trace_say();
}

// Called if the ticker did not finish, for example because CUPTI does not return: the exiting thread writes the
// tracer's own data and marks the trace as unfinished.
static void end_without_ticker(const char* why) {
  static Facts f;
  static u32 once;
  if (GET(out.closed)) return;
  if (__atomic_exchange_n(&once, 1, __ATOMIC_ACQ_REL)) {
    // Another thread that is ending the process writes the end: exiting now would truncate it.
    u64 until = clock_now(CLOCK_MONOTONIC) + END_NS;
    while (!GET(out.closed) && clock_now(CLOCK_MONOTONIC) < until) nap();
    return;
  }
  SET(ender, tid()), SET(ending, 1), SET(session.ended, 1);
  lock_abandon(&out.lock), lock_abandon(&names.lock), lock_abandon(&stacks.lock);
  for (Ring* r = __atomic_load_n(&rings, __ATOMIC_ACQUIRE); r; r = r->next) lock_abandon(&r->emptying), ring_empty(r);
  stacks_write();
  names_flush();
  count_facts(&f);
  fact_number(&f, "unfinished", 1);
  put_end(&f, why);
}

// The argument is not used, because some libraries do not pass it (ThreadSanitizer, for example).
static void at_exit(void* unused) {
  (void)unused;
  end_process(ASK_END);
}

// ---- Initialization.

static Lock beginning;
static int begun;

static void options(void) {
  stacks.every_us = STACKS_EVERY_US;
  const char* o = setting("WARPSCOPE_TRACE_OPTIONS");
  if (o) {
    session.lean = strstr(o, "lean") != NULL, session.all_calls = strstr(o, "api=all") != NULL;
    session.whole_graphs = strstr(o, "graphs=whole") != NULL, session.memory = strstr(o, "memory") != NULL;
    const char* every = strstr(o, "stacks=");
    if (every) stacks.every_us = (u32)number_of(every + 7);
    static const char* const WHICH[] = { "frames=auto", "frames=python", "frames=native", "frames=both" };
    for (u32 i = 0; i < COUNT(WHICH); i++)
      if (strstr(o, WHICH[i])) stacks.which = i;
  }
  rolling.keep_ns = number_of(setting("WARPSCOPE_TRACE_KEEP_MS")) * 1000000;
  measure_begin(setting("WARPSCOPE_TRACE_MEASURE"));
  const char* g = setting("WARPSCOPE_TRACE_GATE");
  open_for_ns = number_of(setting("WARPSCOPE_TRACE_FOR_MS")) * 1000000;
  if (!g || !*g) {
    if (open_for_ns)
      gate.gated = GATED, gate.list[0] = (Window){ 0, ~0ul }, gate.count = 1, gate.is_open = 1,
      gate.opened_at = clock_now(CLOCK_MONOTONIC);
    return;
  }
  gate.gated = GATED;
  if (!strcmp(g, "profiler")) gate.gated = GATED_BY_PROFILER;
  if (!strncmp(g, "overhead:", 9)) samples.share = (u32)number_of(g + 9), detach.soon = samples.share != 0;
  if (!strncmp(g, "after-ms:", 9)) open_after_ns = number_of(g + 9) * 1000000;
  if (!strncmp(g, "launch:", 7) && strlen(g + 7) < sizeof gate_launch.exact) {
    gate.gated = GATED_BY_LAUNCH;
    memcpy(gate_launch.exact, g + 7, strlen(g + 7) + 1);
  }
  if (!strncmp(g, "launches:", 9)) gate.gated = GATED_BY_LAUNCH, gate_launch.after = number_of(g + 9);
  if (!strncmp(g, "nvtx:", 5) || !strncmp(g, "nvtx#", 5)) {
    g += 5;
    if (g[-1] == '#') {
      gate_range.only = (u32)number_of(g);
      while (*g && *g != ':') g++;
      g += *g == ':';
    }
    if (!gate_range.only) gate.gated = GATED_BY_EACH_RANGE;
    // The domain ends at the first colon; the name after it may contain more colons.
    const char* colon = g;
    while (*colon && *colon != ':') colon++;
    gate_range.domain = colon > g ? name_of(g, (u64)(colon - g)) : 0;
    if (*colon) gate_range.text = name(colon + 1);
  }
}

// Returns true if a list such as `0-0,8-15` contains this process's rank; a process without a rank is recorded.
static int rank_is_wanted(const char* list) {
  const char* rank = own_rank();
  if (!list || !*list || !rank) return 1;
  u64 own = number_of(rank);
  for (; *list; list++) {
    u64 first = number_of(list);
    while (*list && *list != '-') list++;
    if (!*list) return 0;
    u64 last = number_of(list + 1);
    if (own >= first && own <= last) return 1;
    while (*list && *list != ',') list++;
    if (!*list) return 0;
  }
  return 0;
}

static void before_fork(void) { ADD(session.forks, 1); }
// Runs in a child of fork, on its only thread: locks held by other threads of the parent have no owner here, and
// nothing is recorded.
static void child_of_fork(void) {
  gone = 1, own_tid = 0;
  beginning = (Lock){ 0 };
  // Connections must fail once the parent has ended.
  if (control >= 0 && is_same(control, control_is)) file_close(control);
  control = -1;
}

// Starts a separate trace in a child of fork that uses CUDA and whose parent only marked ranges. The rings of the
// parent's threads are dropped, and the locks that they held are reset.
static void begin_in_child(void) {
  Lock* const all[] = { &attaching, &measure.lock, &rows.lock, &names.lock, &out.lock, &gate.lock, &given.lock,
    &threads.lock, &buffers.lock, &modules.lock, &stacks.lock };
  for (u32 i = 0; i < COUNT(all); i++) *all[i] = (Lock){ 0 };
  for (u32 i = 0; i < COUNT(leavers); i++) SET(leavers[i], 0);
  own_pid = out.pid = process();
  rings = NULL, own_ring = NULL, own_tid = 0;
  // The ids continue: names that the child writes again keep their ids.
  if (stacks.functions) memset(stacks.functions, 0, STACK_FUNCTIONS * sizeof(PythonFunction));
  if (stacks.nodes) memset(stacks.nodes, 0, STACK_NODES * sizeof(StackNode));
  stacks.functions_held = stacks.nodes_held = stacks.count = 0, states.count = 0;
  stacks.rows.rows = stacks.new_stacks.rows = stacks.new_functions.rows = stacks.new_modules.rows = 0;
  stacks.new_native.rows = 0, stacks.new_native.end = NULL;
  stacks.rows.end = stacks.new_stacks.end = stacks.new_functions.end = stacks.new_modules.end = graph_nodes.end = NULL;
  graph_nodes.rows = 0;
  // The perf_event rings of the parent are not mapped in the child.
  memset(native.rings, 0, sizeof native.rings), native_modules.count = 0;
  instantiations.inside = instantiations.subscribing = 0, instantiates = 0;
  session.ended = 0, gone = 0;
}

// Prepares everything but CUPTI. The program may use NVTX long before it uses the driver, or without it; in that case,
// no file is created.
static void begin(void) {
  // A child in which no fork handler ran still has its parent's thread id.
  own_tid = 0;
  if (!lock(&beginning)) return;
  const char* to = setting("WARPSCOPE_TRACE_OUT");
  if (!begun) {
    if (to && *to == '/' && strlen(to) < sizeof prefix && rank_is_wanted(setting("WARPSCOPE_TRACE_RANKS")) &&
      names_prepare()) {
      memcpy(prefix, to, strlen(to) + 1);
      crc_prepare();
      session.started = now();
      int (*at_fork)(void (*)(void), void (*)(void), void (*)(void), void*) = NULL;
      *(void**)&at_fork = lookup(NULL, "__register_atfork");
      if (at_fork) at_fork(before_fork, NULL, child_of_fork, NULL);
      own_pid = out.pid = process();
      options();
      writing = 1;
    }
    begun = 1;
  } else if (gone && !session.ready && !out.opened) {
    begin_in_child();
  }
  unlock(&beginning);
}

EXPORT int InitializeInjection(void) {
  static int once;
  begin();
  if (!writing || (__atomic_exchange_n(&once, 1, __ATOMIC_ACQ_REL) && session.ready)) return 1;
  if (!rows.kernels.data && !rows_prepare()) return 1;
  names_begin();
  static Facts f;
  if (!may_attach_later() && !session_attach()) {
    gate.gated = UNGATED;
    if (!session.reason[0]) snprintf(session.reason, sizeof session.reason, "another thread was using CUPTI");
    refusal_facts(&f);
    put_facts(BLOCK_END, &f);
    return 1;
  }
  fact(&f, "graphs", session.whole_graphs ? "whole" : "nodes");
  if (gate.gated) fact(&f, "gate", setting("WARPSCOPE_TRACE_GATE") ? setting("WARPSCOPE_TRACE_GATE") : "for");
  put_facts(BLOCK_FACTS, &f);
  SET(session.ready, 1);
  // A thread that entered a range in the meantime did not find the session ready.
  __atomic_thread_fence(__ATOMIC_SEQ_CST);
  if (gate.gated && GET(gate.is_open)) session_attach();
  control_open();
  __cxa_atexit(at_exit, NULL, NULL);
  // Blocks the program's signals on these threads, but not those that the C library uses (32 to 34).
  u64 all = ~(7ul << 31), before = 0, thread;
  SYSTEM(SYS_SIGPROCMASK, 0 /* SIG_BLOCK */, &all, &before, sizeof all);
  ticking = 1;
  if (pthread_create(&thread, NULL, tick, NULL)) ticking = 0;
  if (control >= 0) pthread_create(&thread, NULL, hear, NULL);
  SYSTEM(SYS_SIGPROCMASK, 2 /* SIG_SETMASK */, &before, NULL, sizeof all);
  return 1;
}

EXPORT int InitializeInjectionNvtx2(const void* (*table)(u32)) {
  const Callbacks* callbacks = table(TABLE_CALLBACKS);
  if (!callbacks) return 0;
  begin();
  if (writing) nvtx_functions(callbacks);
  return 1;
}

EXPORT int InitializeInjectionNvtxExtension(const Extension* extension) {
  begin();
  if (writing) nvtx_extension(extension);
  return 1;
}
