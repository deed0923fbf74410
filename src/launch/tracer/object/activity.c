// CUPTI's activity and callback APIs: loading the library, subscribing, and receiving records.

// ---- Activity buffers. The header that precedes a buffer's bytes contains the thread that requested the buffer.

// `asked` is the number of the subscription in which CUPTI requested the buffer; 0 while the buffer is not in use.
typedef struct Buffer {
  struct Buffer *next, *made;
  u64 size;
  u32 thread;
  volatile u32 asked;
  u8 unused[32];
  u8 bytes[];
} Buffer;
// Each launching thread has a buffer of its own, so only the first 16 are large. Two buffers are allocated in advance.
enum { LARGE = 8 << 20, SMALL = 256 << 10, LARGE_ONES = 16, AHEAD = 2 };
static const u64 MOST_BYTES = 512ul << 20;
static struct { Lock lock; Buffer *spare, *made; u32 count; u64 bytes; } buffers;

static Buffer* buffer_make(void) {
  u64 size = ADD(buffers.count, 1) < LARGE_ONES ? LARGE : SMALL;
  // Limits memory use. CUPTI before 12.9 crashes if a buffer is refused, so there is no limit for those versions.
  int most = ADD(buffers.bytes, size) + size > MOST_BYTES && cupti_version >= MAY_REFUSE;
  Buffer* b = most ? NULL : pages(sizeof(Buffer) + size, MAP_POPULATE);
  if (b) {
    b->size = size;
    do b->made = __atomic_load_n(&buffers.made, __ATOMIC_ACQUIRE);
    while (!__atomic_compare_exchange_n(&buffers.made, &b->made, b, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED));
  } else ADD(buffers.count, (u32)-1), ADD(buffers.bytes, -size), ADD(counted.refused, 1);
  return b;
}

// CUPTI calls this on the launching thread.
static void buffer_asked(u8** bytes, u64* size, u64* most) {
  *most = 0, *bytes = NULL, *size = 0;
  Buffer* b = NULL;
  if (lock(&buffers.lock)) {
    b = buffers.spare;
    if (b) buffers.spare = b->next;
    unlock(&buffers.lock);
  }
  if (!b && !(b = buffer_make())) return;
  b->thread = tid();
  SET(b->asked, GET(detach.count) + 1);
  *bytes = b->bytes, *size = b->size;
}

static u8 launches_graph[FUNCTIONS];
static void graph_launched_by(u32 thread) {
  u32 none = 0;
  if (!GET(session.recording)) SET(detach.missed, 1);
  if (GET(detach.graph_thread) != thread &&
    !__atomic_compare_exchange_n(&detach.graph_thread, &none, thread, 0, __ATOMIC_ACQ_REL, __ATOMIC_RELAXED))
    SET(detach.several, 1);
}

static void pack(u8* r) {
  u32 at, kind = AT32(r, RECORD_KIND);
  if (session.lean && (kind == KIND_MEMCPY || kind == KIND_MEMSET || kind == KIND_MEMCPY_PEER)) return;
  switch (kind) {
  case KIND_KERNEL: at = KERNEL_CORRELATION; break;
  case KIND_MEMCPY: at = COPY_CORRELATION; break;
  case KIND_MEMSET: at = SET_CORRELATION; break;
  case KIND_MEMCPY_PEER: at = PEER_CORRELATION; break;
  case KIND_DRIVER:
    // If calls are recorded through callbacks, these records are for another client only, except late ones of calls
    // from before the switch.
    if (session.by_callbacks &&
      (!session.records_until || (i32)(AT32(r, API_CORRELATION) - session.records_until) >= 0))
      return;
    if (AT32(r, API_ID) < FUNCTIONS && launches_graph[AT32(r, API_ID)]) graph_launched_by(AT32(r, API_THREAD));
    at = API_CORRELATION;
    break;
  case KIND_GRAPH: at = GRAPH_CORRELATION; break;
  case KIND_MEMORY: pack_memory(r); return;
  case KIND_OVERHEAD: pack_overhead(r); return;
  default: return;
  }
  u32 correlation = *(u32*)(r + at) += session.id_base;
  const Window* window = gate.gated ? window_of(correlation) : NULL;
  if (gate.gated && !window) {
    counted.outside++;
    return;
  }
  u64 closed = window ? __atomic_load_n(&window->closed, __ATOMIC_ACQUIRE) : 0;
  rows.opened = window ? window->opened : 0, rows.closed = closed ? closed : ~0ul;
  switch (kind) {
  case KIND_KERNEL: pack_kernel(r); break;
  case KIND_MEMCPY: pack_memop(r, MEMOP_COPY); break;
  case KIND_MEMSET: pack_memop(r, MEMOP_SET); break;
  case KIND_MEMCPY_PEER: pack_memop(r, MEMOP_PEER); break;
  case KIND_GRAPH: pack_graph(r); break;
  default:
    put_call(&rows.calls, function_name(AT32(r, API_ID)), correlation, AT64(r, API_START), AT64(r, API_END),
      AT32(r, API_THREAD), AT32(r, API_RETURNED));
    thread_seen(AT32(r, API_THREAD));
  }
}

static void buffer_pack(void) {
  Result next;
  if (!++rows.buffer) rows.buffer = 1;
  if (rows.thread) thread_seen(rows.thread);
  while ((next = cuptiActivityGetNextRecord(rows.bytes, rows.valid, &rows.record)) == OK) pack(rows.record);
  if (next != NO_MORE_RECORDS) counted.invalid++;
  rows_flush_all();
  counted.buffers++;
  rows.bytes = NULL;
}
// Packs the rest of a buffer whose thread ended, or ended the process from a signal handler, while packing it; the
// current record is lost.
static void buffer_resume(void) {
  if (LIKELY(!rows.bytes)) return;
  ADD(lost.unwritten, 1);
  buffer_pack();
}
static void buffer_take(Buffer* b, u64 valid) {
  buffer_resume();
  rows.thread = session.per_thread ? b->thread : 0;
  rows.record = NULL, rows.valid = valid, rows.bytes = b->bytes;
  buffer_pack();
}

static void buffer_spare(Buffer* b) {
  if (!lock(&buffers.lock)) return;
  b->next = buffers.spare, buffers.spare = b;
  unlock(&buffers.lock);
}
// Time that CUPTI has to return its buffers after a subscription has ended, ns.
static const u64 RECLAIM_NS = 2000000000;
// Reclaims buffers that CUPTI did not return before or after cuptiFinalize (seen with all versions).
static void buffers_reclaim(u64 t) {
  // Subscriptions may end at shorter intervals than RECLAIM_NS: those that end meanwhile have their turn afterwards.
  static u32 done, due;
  static u64 since;
  u32 ended = due;
  if (done == due && due != GET(detach.count)) due = detach.count, since = t;
  if (done == due || t < since + RECLAIM_NS || ended != due) return;
  done = due;
  for (Buffer* b = __atomic_load_n(&buffers.made, __ATOMIC_ACQUIRE); b; b = b->made) {
    u32 asked_in = GET(b->asked);
    if (!asked_in || asked_in > ended || !__atomic_exchange_n(&b->asked, 0, __ATOMIC_ACQ_REL)) continue;
    memset(b->bytes, 0, b->size);
    buffer_spare(b);
  }
}

// CUPTI calls this on its own thread, or on the flushing thread.
static void buffer_done(void* context, u32 stream, u8* bytes, u64 size, u64 valid) {
  if (!bytes) return;
  Buffer* b = (Buffer*)(bytes - sizeof(Buffer));
  u32 asked_in = __atomic_exchange_n(&b->asked, 0, __ATOMIC_ACQ_REL);
  if (!asked_in) return;
  u64 began = clock_now(CLOCK_MONOTONIC);
  inside_tracer++;
  if (!gone && asked_in == GET(detach.count) + 1) other_give(context, stream, bytes, valid);
  if (GET(other.alone)) {
    // None of these records are for the tracer.
  } else if (lock(&rows.lock)) {
    // The ids of an ended subscription have no meaning in the current one.
    if (!gone && asked_in == GET(detach.count) + 1) buffer_take(b, valid);
    counted.packing_ns += clock_now(CLOCK_MONOTONIC) - began;
    unlock(&rows.lock);
  } else {
    u8* r = NULL;
    while (!gone && cuptiActivityGetNextRecord(bytes, valid, &r) == OK) ADD(lost.unwritten, 1);
  }
  u64 dropped = 0;
  // CUPTI drops records during a detach (seen with 13.0: one record, more with several threads), and may say so later.
  // They belong to calls after the capture range, unless buffers were refused.
  u32 state = GET(detach.state);
  int leaves = (state > DETACH_WATCHING || asked_in != GET(detach.count) + 1) && !counted.refused;
  if (cuptiActivityGetNumDroppedRecords(context, stream, &dropped) == OK && !leaves) ADD(counted.dropped, dropped);
  // We told CUPTI that buffers are zeroed; otherwise, CUPTI would zero them on the launching thread.
  memset(bytes, 0, valid < size ? valid : size);
  buffer_spare(b);
  ADD(progress, 1);
  inside_tracer--;
}

// ---- Recorded calls, chosen by name: callback ids differ between versions, and new functions appear.

static const char* const LAUNCHING[] = { "cuLaunchKernel", "cuLaunchCooperativeKernel", "cuLaunchGrid",
  "cuGraphLaunch" };
static const char* const RECORDED_CALLS[] = {
  "cuCtxSynchronize", "cuStreamSynchronize", "cuEventSynchronize", "cuStreamWaitEvent", "cuMemcpy", "cuMemset",
  "cuMemAlloc", "cuMemFree", "cuMemHostAlloc", "cuMemHostRegister", "cuMemHostUnregister", "cuMemCreate", "cuMemMap",
  "cuMemUnmap", "cuMemRelease", "cuMemAddress", "cuMemPrefetch", "cuModuleLoad", "cuModuleUnload", "cuLibraryLoad",
  "cuLibraryUnload", "cuLink", "cuGraphInstantiate", "cuGraphExecUpdate", "cuGraphExecDestroy", "cuStreamBeginCapture",
  "cuStreamEndCapture", "cuLaunchHostFunc", "cuProfilerStart", "cuProfilerStop",
};
static const char* const WAITING[] = { "cuStreamSynchronize", "cuCtxSynchronize" };
enum { WAITS_FOR_STREAM = 1, WAITS_FOR_EVENT = 2 };
static const char* const ALLOCATING[] = { "cuMemAlloc", "cuMemHostAlloc", "cuMemHostRegister" };
static int begins(const char* text, const char* const* list, u32 count) {
  for (u32 i = 0; i < count; i++)
    if (!strncmp(text, list[i], strlen(list[i]))) return 1;
  return 0;
}
static int profiler_start, profiler_stop;

static void on_call(void* user, u32 domain, u32 id, const Call* call);

// Callback ids of the chosen functions.
static u16 chosen[FUNCTIONS];
static u32 chosen_count;
// Functions whose calls CUPTI omits while it records allocations (seen with 12.8 and 13.0): they are recorded through
// callbacks instead.
static u8 left_out[FUNCTIONS];
static u8 is_chosen[FUNCTIONS], waits_for_gpu[FUNCTIONS], records_event[FUNCTIONS];

static void choose_calls(void) {
  int missed = 0;
  chosen_count = 0, session.records_until = 0;
  for (u32 id = 1; id < FUNCTIONS && missed < 64; id++) {
    const char* text = NULL;
    if (cuptiGetCallbackName(DOMAIN_DRIVER, id, &text) != OK || !text) {
      missed++;
      continue;
    }
    missed = 0;
    if (!strcmp(text, "cuDriverGetVersion")) marker_function = id;
    if (!strcmp(text, "cuProfilerStart")) profiler_start = (int)id;
    if (!strcmp(text, "cuProfilerStop")) profiler_stop = (int)id;
    launching[id] = (u8)begins(text, LAUNCHING, COUNT(LAUNCHING));
    launch_kind[id] = kind_of_launch(text);
    waits_for_gpu[id] = !strncmp(text, "cuEventSynchronize", 18) ? WAITS_FOR_EVENT
      : begins(text, WAITING, COUNT(WAITING))                   ? WAITS_FOR_STREAM
                                                                : 0;
    records_event[id] = !strncmp(text, "cuEventRecord", 13);
    launches_graph[id] = !strncmp(text, "cuGraphLaunch", 13);
    if (session.lean || id == marker_function) continue;
    // Even when all calls are recorded, they are enabled individually: with the driver kind enabled, CUPTI leaves out
    // calls made inside the runtime (seen with 13.0).
    int listed = begins(text, LAUNCHING, COUNT(LAUNCHING)) || begins(text, RECORDED_CALLS, COUNT(RECORDED_CALLS));
    if (!session.all_calls && !listed)
      continue;
    chosen[chosen_count++] = (u16)id, is_chosen[id] = 1;
    left_out[id] = (u8)(session.memory && begins(text, ALLOCATING, COUNT(ALLOCATING)));
  }
  // Before 12.5, individual functions cannot be enabled, and enabling them while the program is running yields no
  // records (seen with 13.0 on an H100). In these cases callbacks are used, at about the same cost.
  session.by_callbacks = gate.gated || other_has_kind(KIND_DRIVER) || other_has_kind(KIND_RUNTIME) ||
    !chosen_count || !cuptiActivityEnableDriverApi || cuptiActivityEnableDriverApi(chosen[0], 1) != OK;
  if (!session.by_callbacks) cuptiActivityEnableDriverApi(chosen[0], 0);
}

// Maximum wait for a measured launch to return, because a client that opens the gate is waiting for an answer.
enum { MEASURED_MS = 1000 };
// Callbacks of chosen calls stay enabled permanently: if one is disabled while a thread is inside the call, all later
// calls of that thread carry the id of that call, as if nested in it (seen with 13.0 on an H100). This costs about 0.2
// us per call. If calls are recorded as activity records, kernel records also stay enabled: a thread that was inside a
// call when they were disabled lost the launches of its later kernels (5 of 120 programs on an H100 and an H200).
static void calls_hear(void) {
  // A measured launch must be observed until it returns. This thread may be inside a measured launch, and a launch that
  // never returns must not block others forever.
  int locked = !holds && lock_within(&measure.lock, MEASURED_MS);
  for (u32 i = 0; i < chosen_count; i++) {
    if (session.by_callbacks || left_out[chosen[i]]) cuptiEnableCallback(1, subscription, DOMAIN_DRIVER, chosen[i]);
    else {
      Result r = cuptiActivityEnableDriverApi(chosen[i], 1);
      if (r != OK) session.chosen_error = (u32)r;
    }
  }
  if (locked) unlock(&measure.lock);
}
static int is_recorded(u32 kind) {
  if (kind == KIND_GRAPH) return session.whole_graphs;
  if (!GET(session.recording)) return 0;
  switch (kind) {
  case KIND_KERNEL: return 1;
  case KIND_MEMORY: return session.memory && !session.lean;
  case KIND_MEMCPY: case KIND_MEMSET: case KIND_MEMCPY_PEER: return 1;
  case KIND_OVERHEAD: return !session.lean;
  default: return 0;
  }
}
// Keeps CUPTI's error if it refuses to record kernels: the trace would otherwise lack them without an explanation.
static void kind_enable(u32 kind) {
  Result r = cuptiActivityEnable(kind);
  if (kind == KIND_KERNEL) session.kernel_error = (u32)r;
}
static void kind_set(int on, u32 kind) {
  if (on) kind_enable(kind);
  else if (!other_has_kind(kind)) cuptiActivityDisable(kind);
}
// Starts or stops CUPTI's recording. The caller holds `switching`, or the session is not published yet.
static void recording(int on) {
  if (__atomic_exchange_n(&session.recording, on, __ATOMIC_ACQ_REL) == on) return;
  kind_set(on, KIND_KERNEL);
  // A lean recording drops these records (`pack`). Without them, CUPTI keeps 80 to 128 bytes for each node of a graph
  // once a graph with a copy or a memset has been replayed (seen with 13.0 on an H200, not with 13.5).
  kind_set(on, KIND_MEMCPY), kind_set(on, KIND_MEMSET), kind_set(on, KIND_MEMCPY_PEER);
  if (!on && (session.lean || GET(detach.graph_thread))) SET(detach.missed, 1);
  if (session.lean) return;
  kind_set(on, KIND_OVERHEAD);
  if (session.memory && cupti_version >= HAS_MEMORY) kind_set(on, KIND_MEMORY);
  if (!session.heard) session.heard = 1, calls_hear();
}

static void detach_heard(u32 id, const Call* call);
static void detach_leave(void);
static int detach_may_leave(u32 id, const Call* call);
static void call_heard(u32 domain, u32 id, const Call* call) {
  if (domain == DOMAIN_RESOURCE && (id == GRAPHNODE_CREATED || id == GRAPHNODE_CLONED))
    graph_node_heard(id, (const void*)call);
  if (domain == DOMAIN_RESOURCE && id == MODULE_LOADED) module_loaded((const void*)call);
  if (domain == DOMAIN_RESOURCE && id == CONTEXT_DESTROYED) context_destroyed((const void*)call);
  if (domain != DOMAIN_DRIVER) return;
  if (id == marker_function) {
    if (!call->leaving) marker = call->correlation;
    return;
  }
  if (id < FUNCTIONS && launch_heard[id]) {
    if (call->leaving) measure_left(id, call);
    else measure_entered(id, call);
  }
  if (gate.gated == GATED_BY_PROFILER && call->leaving && ((int)id == profiler_start || (int)id == profiler_stop)) {
    // Register the thread now: it most likely launches kernels, but CUPTI reports them only later.
    thread_seen(tid());
    gate_set((int)id == profiler_start, "cudaProfilerStart and cudaProfilerStop", call->correlation);
  }
  if (gate.gated == GATED_BY_LAUNCH && !call->leaving && id < FUNCTIONS && launching[id])
    gate_launched(call->symbol, call->correlation);
  if (id >= FUNCTIONS) return;
  detach_heard(id, call);
  if (!(session.by_callbacks && is_chosen[id]) && !left_out[id]) return;
  if (!call->leaving) {
    if (call->carried) *call->carried = now();
    return;
  }
  if (!call->carried || !*call->carried || !wanted(call->correlation)) return;
  Ring* r = ring();
  u32 function = function_name(id);
  Event* e = r ? event_begin(r) : NULL;
  if (!e) return;
  u64 start = *call->carried, end = now();
  *e = (Event){ .time = start, .id = call->correlation, .payload = end > start ? end - start : 0, .text = function,
    .kind = EVENT_CALL };
  if (call->returned) e->color = *(const u32*)call->returned;
  event_end(r);
  ADD(counted.calls, 1);
}
// Runs on the calling thread. Takes short locks (Ring.emptying, stacks.lock, names.lock, out.lock, threads.lock,
// modules.lock), gate.lock and switching if the gate opens or closes, and measure.lock while something is being
// measured.
static void on_call(void* user, u32 domain, u32 id, const Call* call) {
  (void)user;
  if (gone) return;
  if (UNLIKELY(GET(other.subscribed))) {
    int alone = GET(other.alone);
    other_heard(domain, id, call);
    // The other client may have left CUPTI in the meantime.
    if (alone) return;
  }
  // No other thread may be inside a CUPTI function during cuptiFinalize, so threads inside callbacks are counted.
  int used = domain == DOMAIN_RESOURCE || UNLIKELY(GET(detach.state) != DETACH_NO);
  if (UNLIKELY(used)) {
    __atomic_fetch_add(&detach.users, 1, __ATOMIC_SEQ_CST);
    if (GET(detach.state) == DETACH_TAKEN) {
      ADD(detach.users, (u32)-1);
      return;
    }
  }
  inside_tracer++;
  Call continued;
  if (UNLIKELY(session.id_base) && domain == DOMAIN_DRIVER)
    continued = *call, continued.correlation += session.id_base, call = &continued;
  // This must be read first: the call's data belongs to CUPTI and is gone after cuptiFinalize.
  int leaves = UNLIKELY(used) && domain == DOMAIN_DRIVER && detach_may_leave(id, call);
  call_heard(domain, id, call);
  if (UNLIKELY(leaves)) detach_leave();
  if (UNLIKELY(used)) ADD(detach.users, (u32)-1);
  inside_tracer--;
}

// ---- Loading the library.

static int resolve(void* library) {
  int all = 1;
#define X(name, parameters) if (!(*(void**)&name = lookup(library, #name))) all = 0;
  NEEDED
#undef X
#define X(name, parameters) *(void**)&name = lookup(library, #name);
  WANTED
#undef X
  return all;
}

// Uses a library if it works with this driver; returns 0 if another one may work.
static int take_library(void* library, const char* named) {
  Where where = { NULL, NULL, NULL, NULL };
  if (!resolve(library)) {
    // If the driver refused another library, keep that reason: it tells the user more.
    if (session.refusal) return 0;
    session.unusable = "incomplete";
    snprintf(
      session.reason, sizeof session.reason, "%.120s lacks functions that are needed: it is older than CUDA 11", named);
    return 0;
  }
  session.unusable = NULL;
  if (session.prepares) return 1;
  const char* file = dladdr(*(void**)&cuptiSubscribe, &where) && where.file ? where.file : named;
  snprintf(session.library, sizeof session.library, "%s", file);
  session.base = where.base;
  // Until the session is ready, the driver is still being initialized, so there are no graphs to wait for.
  if (!subscription && GET(session.ready) && !instantiations_hold()) {
    session.instantiating = 1;
    return -1;
  }
  // Another client may have subscribed through this object.
  Result r = subscription ? OK : cuptiSubscribe(&subscription, on_call, NULL);
  session.refusal = (u32)r;
  if (r == ERROR_OTHER_CLIENT) {
    subscription = NULL;
    snprintf(session.reason, sizeof session.reason,
      "another profiler (nsys, ncu, torch.profiler) already uses CUPTI in this process");
    return -1;
  }
  if (r != OK) {
    subscription = NULL;
    snprintf(
      session.reason, sizeof session.reason, "%.160s does not work with this driver: %.60s", file, result_text(r));
    return 0;
  }
  // Called only after the driver is loaded: before that, CUPTI 13.2 crashes.
  if (cuptiGetVersion(&cupti_version) != OK) cupti_version = 0;
  return 1;
}

// Keeps the loader's error for a library that exists but cannot be loaded, unless there is a better reason already,
// such as the driver's refusal of another one.
static void library_lost(const char* path, const char* why) {
  if (session.reason[0] || !why) return;
  session.unusable = "unloadable";
  // The loader's message may already begin with the path.
  int named = !strncmp(why, path, strlen(path));
  snprintf(session.reason, sizeof session.reason, "libcupti cannot be loaded: %.80s%s%.140s", named ? "" : path,
    named ? "" : ": ", why);
}

#if defined(__x86_64__)
enum { OWN_MACHINE = 62 };
#else
enum { OWN_MACHINE = 183 };
#endif
// Describes a defect of a library's file that the loader does not report, or does not survive: reading past the end of
// a truncated file that is mapped raises SIGBUS. NULL if there is none.
static const char* file_trouble(const char* path) {
  // ELF header and struct stat.
  u64 head[8] = { 0 }, status[32] = { 0 };
  int file = file_open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return file == -ENOENT ? NULL : "this user may not read it";
  long n = file_read(file, head, sizeof head);
  int known = n == (long)sizeof head && !SYSTEM(SYS_FSTAT, file, status);
  file_close(file);
  if (!known) return "the file is cut off";
  // Not an ELF file: the loader reports that itself.
  if ((u32)head[0] != 0x464c457f) return NULL;
  if ((u16)(head[2] >> 16) != OWN_MACHINE) return "it is for another processor";
  // The section header table (e_shoff) is at the end of the file, so it must begin within the file's size.
  return head[5] > status[6] ? "the file is cut off" : NULL;
}

static int find_library(void) {
  session.reason[0] = 0;
  session.refusal = 0;
  session.unusable = NULL;
  // Another client already uses CUPTI: share its library.
  if (other_is_present()) return take_library(dlopen(session.library, RTLD_NOW | RTLD_NOLOAD), session.library);
  static const char* const NAMES[] = { "libcupti.so.13", "libcupti.so.12", "libcupti.so.11.8", "libcupti.so.11.7",
    "libcupti.so" };
  // Prefers the library that the program has loaded: two copies of CUPTI in one process do not work.
  for (u32 i = 0; i < COUNT(NAMES); i++) {
    void* library = dlopen(NAMES[i], RTLD_NOW | RTLD_NOLOAD);
    if (library) return take_library(library, NAMES[i]);
  }
  int taken = 0;
  for (const char* list = setting("WARPSCOPE_TRACE_CUPTI"); list && *list && !taken;) {
    char path[1024];
    u64 n = 0;
    while (list[n] && list[n] != ':') n++;
    if (n && n < sizeof path) {
      memcpy(path, list, n), path[n] = 0;
      const char* why = file_trouble(path);
      int there = !SYSTEM(SYS_FACCESSAT, AT_FDCWD, path, 0);
      void* library = why || !there ? NULL : dlopen(path, RTLD_NOW);
      if (library) taken = take_library(library, path);
      else if (there) library_lost(path, why ? why : dlerror());
    }
    list += n + (list[n] == ':');
  }
  for (u32 i = 0; i < COUNT(NAMES) && !taken; i++) {
    void* library = dlopen(NAMES[i], RTLD_NOW);
    if (library) taken = take_library(library, NAMES[i]);
  }
  if (!taken && !session.reason[0]) {
    session.unusable = "missing";
    snprintf(session.reason, sizeof session.reason, "no libcupti was found");
  }
  return taken;
}

static Lock attaching;
// Maximum wait for another thread that is subscribing: this thread may hold a lock of the driver or the loader that the
// other one needs.
enum { ATTACHING_MS = 500 };
// Loads CUPTI without calling it, so that subscribing takes less time: `attach --pid` stops the program's threads
// meanwhile. Any call may make CUPTI listen to the driver, before it has filled the tables that it then uses.
static int session_prepare(void) {
  if (GET(session.attached)) return 1;
  if (!lock_within(&attaching, ATTACHING_MS)) return 0;
  session.prepares = 1;
  if (!session.attached) find_library();
  session.prepares = 0;
  unlock(&attaching);
  return 1;
}

static void session_open(void) {
  u8 one = 1;
  u64 size = 1;
  SET(other.alone, 0);
  cuptiSetThreadIdType(1);
  cuptiActivitySetAttribute(ATTRIBUTE_ZEROED, &size, &one);
  size = 1;
  // Since 12.3, this makes each buffer belong to one launching thread.
  session.per_thread = cuptiActivitySetAttribute(ATTRIBUTE_PER_THREAD, &size, &one) == OK;
  for (int i = 0; i < AHEAD && !detach.count; i++) {
    Buffer* b = buffer_make();
    if (b) buffer_spare(b);
  }
  cuptiActivityRegisterCallbacks(buffer_asked, buffer_done);
  // Asking resets the number of records that were dropped during the last detach.
  u64 dropped;
  if (detach.count && !counted.refused) cuptiActivityGetNumDroppedRecords(NULL, 0, &dropped);
  // As early as possible, because graphs that are launched before this rule out a detach (detach.c).
  int opens = !gate.gated || gate.is_open || GET(gate.opening);
  if (opens) kind_enable(KIND_KERNEL);
  // Stays enabled: with 13.0.48, the next replay after it was disabled failed, and with 13.0.85 each replay took as
  // long as one with its nodes recorded (H200).
  if (session.whole_graphs) kind_enable(KIND_GRAPH);
  *(void**)&cuDriverGetVersion = lookup(dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD), "cuDriverGetVersion");
  choose_calls();
  memset(launch_heard, 0, sizeof launch_heard);
  if (marker_function) cuptiEnableCallback(1, subscription, DOMAIN_DRIVER, marker_function);
  if (gate.gated == GATED_BY_PROFILER) {
    if (profiler_start) cuptiEnableCallback(1, subscription, DOMAIN_DRIVER, (u32)profiler_start);
    if (profiler_stop) cuptiEnableCallback(1, subscription, DOMAIN_DRIVER, (u32)profiler_stop);
  }
  for (u32 id = 1; gate.gated == GATED_BY_LAUNCH && id < FUNCTIONS; id++)
    if (launching[id]) cuptiEnableCallback(1, subscription, DOMAIN_DRIVER, id);
  // A client may request a measurement while the program is running.
  if (measure.plan[0])
    cuptiEnableCallback(1, subscription, DOMAIN_RESOURCE, CONTEXT_DESTROYED),
      modules_hear(measure.state == MEASURE_LOOKING ? MOST_KEPT : MOST_KEPT_ASIDE);
  if (measure.state == MEASURE_LOOKING) measure_hear(1);
  graph_nodes_hear();
  if (opens) recording(1);
  // A detach is possible only if at most one thread launches graphs. These launches are observed from here on, since
  // kernels are recorded now.
  for (u32 id = 1; id < FUNCTIONS; id++)
    if (launches_graph[id]) cuptiEnableCallback(1, subscription, DOMAIN_DRIVER, id);
  SET(session.attached, 1);
}

// A subscription has a cost even while nothing is recorded: the driver then launches CUDA graphs node by node (200
// empty nodes: 35 us instead of 2, with CUPTI 13.0 and 13.5 on an H100), which costs a vLLM server 11 to 15 % of its
// tokens per second. Therefore, if the gate can open without CUPTI, the tracer subscribes only when it first opens;
// detach.c ends the subscription after the gate has closed.
//
// CUPTI records graphs as a whole only if it was subscribed when they were instantiated. With earlier graphs, their
// next replay crashes (12.6 to 13.1) or has no record (12.4, 13.2 to 13.5; all on an H200, driver 580). So if graphs
// are recorded as a whole, the tracer subscribes at the start and stays.
static int may_attach_later(void) {
  int measures = measure.state != MEASURE_OFF;
  if (session.whole_graphs) return 0;
  session.profiler_heard = gate.gated == GATED_BY_PROFILER && profiler_is_heard();
  return gate.gated && gate.gated != GATED_BY_LAUNCH && !gate.is_open && !measures &&
    (gate.gated != GATED_BY_PROFILER || session.profiler_heard);
}

static const u64 ASK_AGAIN_NS = 2000000000;
static void poke(void);
static void at_exit(void* unused);
// Finds CUPTI and subscribes to it. Returns 0 on failure, with the reason in session.reason. CUPTI is called with the
// lock held: callbacks do not acquire the lock once attached; a callback that opens the gate before that waits for at
// most ATTACHING_MS.
static int session_attach(void) {
  static Facts f;
  // Ranges that would open the gate are frequent: after a refusal, the next attempt is delayed.
  static u64 refused_at;
  u64 t = clock_now(CLOCK_MONOTONIC);
  if (LIKELY(GET(session.attached))) return 1;
  if (session.ended) return 0;
  if (GET(refused_at) && t - GET(refused_at) < ASK_AGAIN_NS) return 0;
  ADD(detach.waiting, 1);
  poke();
  int locked = lock_within(&attaching, ATTACHING_MS);
  ADD(detach.waiting, (u32)-1);
  if (!locked) return 0;
  session.instantiating = 0;
  if (!session.attached && find_library() > 0) {
    session.reason[0] = 0;
    session_open();
    // Runs before the exit handlers that CUPTI has registered by now.
    __cxa_atexit(at_exit, NULL, NULL);
    fact(&f, "cupti", session.library);
    fact_number(&f, "cupti_version", cupti_version);
    fact(&f, "calls",
      session.lean             ? "none"
        : session.all_calls    ? "all"
        : session.by_callbacks ? "chosen, by callbacks"
                               : "chosen");
    put_facts(BLOCK_FACTS, &f);
  }
  instantiations_release();
  if (!session.attached && !session.instantiating) SET(refused_at, t);
  unlock(&attaching);
  return session.attached;
}
