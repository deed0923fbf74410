// CUPTI functions that another client in the program calls by name, as PyTorch does, since the object is loaded before
// libcupti (LD_PRELOAD), or looks up in the library, as JAX and Triton do (lookup.c). In a program that was attached
// to, clients bypass this file, and CUPTI refuses their subscription.

// ---- Clocks. If a client gives CUPTI its own clock (kineto: the processor's time stamp counter), only the client's
// records use it; the tracer's records stay on CUPTI's clock.

// Offsets of the times in each kind of record, at most three. The first is the start of the activity.
static const struct { u8 kind, times[3]; } TIMES[] = {
  { KIND_MEMCPY, { COPY_START, COPY_END } }, { KIND_MEMSET, { SET_START, SET_END } },
  { KIND_MEMCPY_PEER, { COPY_START, COPY_END } },
  { KIND_KERNEL_SERIAL, { KERNEL_START, KERNEL_END, KERNEL_COMPLETED } },
  { KIND_KERNEL, { KERNEL_START, KERNEL_END, KERNEL_COMPLETED } }, { KIND_DRIVER, { API_START, API_END } },
  { KIND_RUNTIME, { API_START, API_END } }, { KIND_INTERNAL_LAUNCH, { API_START, API_END } },
  { KIND_MARKER, { MARKER_TIME } }, { KIND_OVERHEAD, { OVERHEAD_START, OVERHEAD_END } },
  { KIND_CUDA_EVENT, { EVENT_TIME } }, { KIND_SYNCHRONIZATION, { SYNCHRONIZATION_START, SYNCHRONIZATION_END } },
  { KIND_MEMORY, { MEMORY_TIME } }, { KIND_GRAPH, { GRAPH_START, GRAPH_END } },
};
static const u8* times_of(u32 kind) {
  for (u32 i = 0; i < COUNT(TIMES); i++)
    if (TIMES[i].kind == kind) return TIMES[i].times;
  return NULL;
}

// Reads one point in time on both clocks: of three readings, uses the one that took the least time.
static void clocks_read(u64* cupti, u64* own) {
  u64 best = ~0ul;
  for (int i = 0; i < 3; i++) {
    u64 before = 0, after = 0;
    cuptiGetTimestamp(&before);
    u64 middle = other.clock();
    cuptiGetTimestamp(&after);
    if (after - before < best) best = after - before, *cupti = before + best / 2, *own = middle;
  }
}
// Converts times from CUPTI's clock, along the line through the anchor and a current point in time.
static u64 own_time(u64 t, u64 cupti, u64 own) {
  if (!t || cupti == other.anchor_cupti) return t;
  double per_ns = (double)(i64)(own - other.anchor) / (double)(i64)(cupti - other.anchor_cupti);
  return own - (u64)(i64)(per_ns * (double)(i64)(cupti - t));
}

// ---- Records. The tracer always has one of the client's buffers: kineto flushes only if CUPTI holds one.

// Returns the buffer to the client, and gets another one if there is more to come. The caller holds other.lock.
static void other_turn(void* context, u32 stream) {
  u8 *next = NULL, *full = other.buffer;
  u64 size = 0, most = 0, was = other.size;
  if (other.ask) other.ask(&next, &size, &most);
  if (full && other.done) other.done(context, stream, full, was, other.used);
  other.buffer = next, other.size = next ? size : 0, other.used = 0;
}
// Does the same on a thread of the client. The thread may hold locks of its own or of CUPTI, so the client's callbacks
// are called without our locks.
static void other_exchange(int more, int only_first) {
  u8 *next = NULL, *full = NULL;
  u64 size = 0, most = 0, was = 0, used = 0;
  if (only_first && other.buffer) return;
  if (more && other.ask) other.ask(&next, &size, &most);
  if (lock(&other.lock)) {
    if (only_first && other.buffer) full = next, was = size;
    else {
      full = other.buffer, was = other.size, used = other.used;
      other.buffer = next, other.size = next ? size : 0, other.used = 0;
    }
    unlock(&other.lock);
  } else full = next, was = size;
  if (full && other.done) other.done(NULL, 0, full, was, used);
}

// Before 12.9, records of events are enabled together with those of synchronization.
enum { EVENTS_APART = 28 };
static int other_wants(const u8* r, u64 size, const u8* times) {
  u32 kind = AT32(r, RECORD_KIND);
  // The tracer's own calls: those of its thread, and that of correlation_now, which programs rarely make.
  if (kind == KIND_DRIVER &&
    (AT32(r, API_THREAD) == GET(ticker) || (session.attached && AT32(r, API_ID) == marker_function)))
    return 0;
  u32 by = kind;
  if (kind == KIND_CUDA_EVENT && cupti_version < EVENTS_APART && !GET(other.kinds[kind].until))
    by = KIND_SYNCHRONIZATION;
  // Kernels are recorded by one of two kinds, which have the same records.
  if (kind == KIND_KERNEL && !GET(other.kinds[kind].until)) by = KIND_KERNEL_SERIAL;
  u64 until = by < KINDS ? GET(other.kinds[by].until) : 0;
  if (!until) return 0;
  // Records of old versions are shorter.
  u64 began = times && times[0] + 8u <= size ? AT64(r, times[0]) : 0;
  return !began || (began >= other.kinds[by].from && began < until);
}

// Time after the client disabled its last kind during which the tracer's flushes may still bring the client's records.
static const u64 OTHER_GRACE_NS = 10000000000;
static void other_give(void* context, u32 stream, u8* bytes, u64 valid) {
  u64 ended = GET(other.ended), cupti = 0, own = 0;
  if (LIKELY(!ended) || !GET(other.records)) return;
  if (ended != ~0ul && !GET(other.alone) && clock_now(CLOCK_MONOTONIC) > ended + OTHER_GRACE_NS) return;
  // When the ticker flushes at the end of the process, the client may be gone, so its callbacks are not called. If one
  // of the client's threads flushes, it still exists.
  int quiet = GET(ending) && tid() == GET(ticker);
  if (other.clock) clocks_read(&cupti, &own);
  if (!lock(&other.lock)) return;
  u8 *r = NULL, *next = NULL, *end = bytes + valid;
  for (int left = cuptiActivityGetNextRecord(bytes, valid, &r) == OK; left; r = next) {
    next = r;
    left = cuptiActivityGetNextRecord(bytes, valid, &next) == OK;
    u64 size = (u64)((left ? next : end) - r);
    const u8* times = times_of(AT32(r, RECORD_KIND));
    if (!other_wants(r, size, times)) continue;
    if ((!other.buffer || other.used + size > other.size) && !quiet) other_turn(context, stream);
    if (!other.buffer || other.used + size > other.size) {
      other.lost++;
      continue;
    }
    u8* to = other.buffer + other.used;
    memcpy(to, r, size);
    for (int i = 0; other.clock && cupti && times && i < 3 && times[i] && times[i] + 8u <= size; i++) {
      u64 t = own_time(AT64(to, times[i]), cupti, own);
      memcpy(to + times[i], &t, 8);
    }
    other.used += size, other.given++;
  }
  unlock(&other.lock);
}

// ---- Callbacks.

// Each subscriber may store a word from the beginning of a call to its end: these words belong to the other client.
static __thread u64 other_carried[32];
static void other_heard(u32 domain, u32 id, const Call* call) {
  OnCall f = other.on_call;
  if (!f || domain >= DOMAINS || !other.heard[domain][id < FUNCTIONS ? id : 0]) return;
  if (domain > DOMAIN_RUNTIME) {
    f(other.user, domain, id, call);
    return;
  }
  Call own = *call;
  if (own.carried) own.carried = &other_carried[(2 * own.correlation + domain) % COUNT(other_carried)];
  if (!own.leaving && own.carried) *own.carried = 0;
  f(other.user, domain, id, &own);
}

// ---- Functions that the client calls.

static int other_may_share(void) {
  begin();
  return writing && !gone && !session.ended;
}

// Looks up CUPTI's functions in the library that the client calls. Returns 0 if it is not the library that the tracer
// uses.
static int other_resolve(void* next) {
  Where here = { NULL, NULL, NULL, NULL };
  if (!next || !dladdr(next, &here) || !here.file) return 0;
  if (session.attached || other.alone || other.records) return here.base == session.base;
  void* library = dlopen(here.file, RTLD_NOW | RTLD_NOLOAD);
  if (!library || !resolve(library)) return 0;
  session.base = here.base;
  snprintf(session.library, sizeof session.library, "%s", here.file);
  return 1;
}

// Takes `attaching` for a client. `detach.waiting` makes the ticker cancel a detach that has not begun.
static int other_hold(void) {
  ADD(detach.waiting, 1);
  poke();
  int locked = lock_within(&attaching, ATTACHING_MS);
  ADD(detach.waiting, (u32)-1);
  return locked;
}
// Called at the start of a client's call. Returns SHARED with `attaching` held; DIRECT if the call must be passed to
// CUPTI; REFUSED if it must not, because another thread is changing the subscription.
enum { DIRECT = 0, SHARED = 1, REFUSED = 2 };
static int other_begin(void* next) {
  if (!other_may_share()) return DIRECT;
  if (!other_hold()) return REFUSED;
  if (other_resolve(next)) return SHARED;
  unlock(&attaching);
  return DIRECT;
}

// The interposed functions.
#define INTERPOSED \
  X(other_subscribe, "cuptiSubscribe") \
  X(other_subscribe_v2, "cuptiSubscribe_v2") \
  X(other_unsubscribe, "cuptiUnsubscribe") \
  X(other_enable_callback, "cuptiEnableCallback") \
  X(other_enable_domain, "cuptiEnableDomain") \
  X(other_enable_all, "cuptiEnableAllDomains") \
  X(other_register, "cuptiActivityRegisterCallbacks") \
  X(other_enable, "cuptiActivityEnable") \
  X(other_disable, "cuptiActivityDisable") \
  X(other_enable_context, "cuptiActivityEnableContext") \
  X(other_disable_context, "cuptiActivityDisableContext") \
  X(other_flush, "cuptiActivityFlushAll") \
  X(other_attribute, "cuptiActivitySetAttribute") \
  X(other_clock, "cuptiActivityRegisterTimestampCallback") \
  X(other_timestamp, "cuptiGetTimestamp") \
  X(other_finalize, "cuptiFinalize")
#define X(own, symbol) ID_##own,
enum { INTERPOSED INTERPOSED_COUNT };
#undef X
#define X(own, symbol) symbol,
static const char* const INTERPOSED_SYMBOLS[] = { INTERPOSED };
#undef X

typedef struct { void *volatile function, *volatile base, *volatile instead; } Behind;
// The client's function behind each interposed one, the base address of its library, and the tracer's function if that
// is called instead.
static Behind behind[INTERPOSED_COUNT];

// CUPTI accepts one subscriber per process, also from a second copy of the library, such as the one that Triton brings.
// A client that uses such a copy gets the functions of the tracer's library, unless that is older: new versions only
// append to records. Returns NULL if it is older, or is the client's own.
static void* in_tracer_library(const void* function, const char* symbol) {
  static void* volatile known;
  static volatile int usable;
  Where where = { NULL, NULL, NULL, NULL };
  if (!dladdr(function, &where) || !where.file || where.base == session.base) return NULL;
  if (GET(known) != where.base) {
    Result (*version)(u32*) = NULL;
    u32 number = 0;
    *(void**)&version = lookup(dlopen(where.file, RTLD_NOW | RTLD_NOLOAD), "cuptiGetVersion");
    SET(usable, version && version(&number) == OK && number <= cupti_version);
    SET(known, where.base);
  }
  return GET(usable) ? lookup(dlopen(session.library, RTLD_NOW | RTLD_NOLOAD), symbol) : NULL;
}

static NOINLINE void* client_function(u32 id, void* caller) {
  Behind* b = &behind[id];
  if (UNLIKELY(!GET(b->function))) {
    void* found = function_behind(INTERPOSED_SYMBOLS[id], caller);
    SET(b->base, base_of(found));
    SET(b->function, found);
  }
  if (LIKELY(!session.attached || GET(b->base) == session.base)) return b->function;
  if (!GET(b->instead)) SET(b->instead, in_tracer_library(b->function, INTERPOSED_SYMBOLS[id]));
  return b->instead ? b->instead : b->function;
}

#define NAMED(symbol) __asm__(symbol)
#define NEXT(own) client_function(ID_##own, __builtin_return_address(0))
#define CALL_NEXT(next, types, ...) ((next) ? ((Result(*) types)(next))(__VA_ARGS__) : ERROR_NOT_INITIALIZED)

EXPORT Result other_subscribe(void** handle, OnCall f, void* user) NAMED("cuptiSubscribe");
EXPORT Result other_subscribe(void** handle, OnCall f, void* user) {
  void* next = NEXT(other_subscribe);
  int how = other_begin(next);
  if (how == REFUSED) return ERROR_OTHER_CLIENT;
  if (how == DIRECT) return CALL_NEXT(next, (void**, OnCall, void*), handle, f, user);
  Result r = other.subscribed ? ERROR_OTHER_CLIENT : OK;
  if (r == OK && !subscription) {
    r = cuptiSubscribe(&subscription, on_call, NULL);
    if (r == OK) SET(other.alone, 1), cuptiGetVersion(&cupti_version);
    else subscription = NULL;
  }
  if (r == OK) {
    memset(other.heard, 0, sizeof other.heard);
    other.user = user, other.on_call = f, *handle = subscription;
    SET(other.subscribed, 1);
  }
  unlock(&attaching);
  return r;
}

// cuptiSubscribe_v2 yields other records, which the tracer's subscription does not provide, so it is refused; clients
// fall back to cuptiSubscribe.
EXPORT Result other_subscribe_v2(void** handle, OnCall f, void* user, void* options) NAMED("cuptiSubscribe_v2");
EXPORT Result other_subscribe_v2(void** handle, OnCall f, void* user, void* options) {
  void* next = NEXT(other_subscribe_v2);
  if (!next || (!gone && session.attached)) return ERROR_NOT_SUPPORTED;
  return CALL_NEXT(next, (void**, OnCall, void*, void*), handle, f, user, options);
}

// The tracer itself does not use callbacks for runtime calls.
static void other_domains_leave(void) {
  if (cuptiEnableDomain && subscription) cuptiEnableDomain(0, subscription, DOMAIN_RUNTIME);
}

EXPORT Result other_unsubscribe(void* handle) NAMED("cuptiUnsubscribe");
EXPORT Result other_unsubscribe(void* handle) {
  void* next = NEXT(other_unsubscribe);
  if (gone || !GET(other.subscribed) || handle != subscription) return CALL_NEXT(next, (void*), handle);
  SET(other.subscribed, 0);
  other.on_call = NULL;
  if (!other_hold()) return OK;
  Result r = OK;
  if (GET(other.alone)) {
    SET(other.alone, other.records);
    subscription = NULL;
    r = CALL_NEXT(next, (void*), handle);
  } else other_domains_leave();
  unlock(&attaching);
  return r;
}

// The tracer's own callbacks stay enabled. In the driver's domain, all callbacks do: if one is disabled while a thread
// is inside the call, later calls of that thread have wrong ids (see calls_hear).
static int other_may_disable(u32 domain) {
  return GET(other.alone) || (domain != DOMAIN_DRIVER && domain != DOMAIN_RESOURCE);
}
EXPORT Result other_enable_callback(u32 on, void* handle, u32 domain, u32 id) NAMED("cuptiEnableCallback");
EXPORT Result other_enable_callback(u32 on, void* handle, u32 domain, u32 id) {
  void* next = NEXT(other_enable_callback);
  int shared = !gone && GET(other.subscribed) && handle == subscription;
  if (shared && domain < DOMAINS && id && id < FUNCTIONS) other.heard[domain][id] = on != 0;
  if (shared && !on && !other_may_disable(domain)) return OK;
  return CALL_NEXT(next, (u32, void*, u32, u32), on, handle, domain, id);
}
EXPORT Result other_enable_domain(u32 on, void* handle, u32 domain) NAMED("cuptiEnableDomain");
EXPORT Result other_enable_domain(u32 on, void* handle, u32 domain) {
  void* next = NEXT(other_enable_domain);
  int shared = !gone && GET(other.subscribed) && handle == subscription;
  if (shared && domain && domain < DOMAINS) memset(other.heard[domain], on != 0, FUNCTIONS);
  if (shared && !on && !other_may_disable(domain)) return OK;
  return CALL_NEXT(next, (u32, void*, u32), on, handle, domain);
}
EXPORT Result other_enable_all(u32 on, void* handle) NAMED("cuptiEnableAllDomains");
EXPORT Result other_enable_all(u32 on, void* handle) {
  Result r = OK;
  for (u32 domain = DOMAIN_DRIVER; domain < DOMAINS; domain++) {
    Result one = other_enable_domain(on, handle, domain);
    if (one != OK) r = one;
  }
  return r;
}

EXPORT Result other_register(void (*ask)(u8**, u64*, u64*), void (*done)(void*, u32, u8*, u64, u64))
  NAMED("cuptiActivityRegisterCallbacks");
EXPORT Result other_register(void (*ask)(u8**, u64*, u64*), void (*done)(void*, u32, u8*, u64, u64)) {
  void* next = NEXT(other_register);
  int how = ask && done ? other_begin(next) : DIRECT;
  if (how == REFUSED) return ERROR_NOT_INITIALIZED;
  if (how == DIRECT)
    return CALL_NEXT(next, (void (*)(u8**, u64*, u64*), void (*)(void*, u32, u8*, u64, u64)), ask, done);
  Result r = session.attached ? OK : cuptiActivityRegisterCallbacks(buffer_asked, buffer_done);
  if (r == OK && lock(&other.lock)) {
    other.ask = ask, other.done = done;
    if (!session.attached) SET(other.alone, 1);
    SET(other.records, 1);
    unlock(&other.lock);
  }
  unlock(&attaching);
  if (r == OK && GET(other.ended) == ~0ul) other_exchange(1, 1);
  return r;
}

// Once the client requests records of calls, the tracer gets its own through callbacks: with the driver kind enabled,
// CUPTI leaves out the calls that the runtime makes.
static void calls_from_callbacks(void) {
  if (session.lean || session.by_callbacks || !session.attached || !lock_within(&switching, SWITCHING_MS)) return;
  if (!session.by_callbacks) {
    for (u32 i = 0; i < chosen_count && session.heard; i++)
      cuptiEnableCallback(1, subscription, DOMAIN_DRIVER, chosen[i]);
    SET(session.records_until, correlation_now());
    SET(session.by_callbacks, 1);
    for (u32 i = 0; i < chosen_count && session.heard; i++)
      if (!left_out[chosen[i]]) cuptiActivityEnableDriverApi(chosen[i], 0);
  }
  unlock(&switching);
}

// Clients may enable kinds before they register their buffers, as Proton does.
static int other_enables_early(void* next) {
  if (other_begin(next) != SHARED) return 0;
  unlock(&attaching);
  return 1;
}

static Result other_kind(void* next, void* context, u32 kind, int on) {
  int shared = !gone && kind < KINDS && (GET(other.records) || (on && other_enables_early(next))) && cuptiGetTimestamp;
  u64 t = 0;
  if (shared && (kind == KIND_DRIVER || kind == KIND_RUNTIME) && on) calls_from_callbacks();
  if (shared && cuptiGetTimestamp(&t) == OK && lock(&other.lock)) {
    if (on) {
      if (!other_has_kind(kind)) other.kinds[kind].from = t;
      SET(other.kinds[kind].until, ~0ul);
      SET(other.ended, ~0ul);
    } else if (other_has_kind(kind)) {
      int left = 0;
      SET(other.kinds[kind].until, t);
      for (u32 k = 0; k < KINDS; k++) left |= other_has_kind(k);
      if (!left) SET(other.ended, clock_now(CLOCK_MONOTONIC));
    }
    unlock(&other.lock);
  }
  if (shared && on && GET(other.records)) other_exchange(1, 1);
  // The tracer may begin to record the kind in the meantime.
  int locked = !gone && !on && lock_within(&switching, SWITCHING_MS);
  Result r = OK;
  // The other kind of kernel records would make kernels run one after the other.
  int other_kernels = shared && kind == KIND_KERNEL_SERIAL && is_recorded(KIND_KERNEL);
  if (!other_kernels && (gone || on || !is_recorded(kind)))
    r = context ? CALL_NEXT(next, (void*, u32), context, kind) : CALL_NEXT(next, (u32), kind);
  if (locked) unlock(&switching);
  return r;
}
EXPORT Result other_enable(u32 kind) NAMED("cuptiActivityEnable");
EXPORT Result other_enable(u32 kind) { return other_kind(NEXT(other_enable), NULL, kind, 1); }
EXPORT Result other_disable(u32 kind) NAMED("cuptiActivityDisable");
EXPORT Result other_disable(u32 kind) {
  return other_kind(NEXT(other_disable), NULL, kind, 0);
}
EXPORT Result other_enable_context(void* context, u32 kind) NAMED("cuptiActivityEnableContext");
EXPORT Result other_enable_context(void* context, u32 kind) {
  return other_kind(NEXT(other_enable_context), context, kind, 1);
}
EXPORT Result other_disable_context(void* context, u32 kind) NAMED("cuptiActivityDisableContext");
EXPORT Result other_disable_context(void* context, u32 kind) {
  return other_kind(NEXT(other_disable_context), context, kind, 0);
}

EXPORT Result other_flush(u32 forced) NAMED("cuptiActivityFlushAll");
EXPORT Result other_flush(u32 forced) {
  Result r = CALL_NEXT(NEXT(other_flush), (u32), forced);
  if (gone || !GET(other.records)) return r;
  // After this, the client has all records of the kinds that it disabled; later ones would end up in its next profile.
  if (forced && GET(other.ended) != ~0ul) SET(other.ended, 0);
  if (other.buffer && (forced || other.used)) other_exchange(!forced, 0);
  return r;
}

// The tracer decides how buffers are requested and zeroed.
EXPORT Result other_attribute(u32 attribute, u64* size, void* value) NAMED("cuptiActivitySetAttribute");
EXPORT Result other_attribute(u32 attribute, u64* size, void* value) {
  void* next = NEXT(other_attribute);
  int own = attribute == ATTRIBUTE_PER_THREAD || attribute == ATTRIBUTE_ZEROED;
  return own && other_may_share() ? OK : CALL_NEXT(next, (u32, u64*, void*), attribute, size, value);
}

EXPORT Result other_clock(u64 (*clock)(void)) NAMED("cuptiActivityRegisterTimestampCallback");
EXPORT Result other_clock(u64 (*clock)(void)) {
  void* next = NEXT(other_clock);
  int how = clock ? other_begin(next) : DIRECT;
  if (how == REFUSED) return ERROR_NOT_INITIALIZED;
  if (how == DIRECT) return CALL_NEXT(next, (u64(*)(void)), clock);
  if (lock(&other.lock)) {
    other.clock = clock;
    clocks_read(&other.anchor_cupti, &other.anchor);
    unlock(&other.lock);
  }
  unlock(&attaching);
  return OK;
}
EXPORT Result other_timestamp(u64* t) NAMED("cuptiGetTimestamp");
EXPORT Result other_timestamp(u64* t) {
  void* next = NEXT(other_timestamp);
  if (!t || gone || !other.clock) return CALL_NEXT(next, (u64*), t);
  *t = other.clock();
  return OK;
}

// Detaches the client; CUPTI itself is finalized only if the tracer is not attached to it.
EXPORT Result other_finalize(void) NAMED("cuptiFinalize");
EXPORT Result other_finalize(void) {
  void* next = NEXT(other_finalize);
  if (gone || !other_may_share()) return CALL_NEXT(next, (void));
  SET(other.subscribed, 0), other.on_call = NULL;
  for (u32 kind = 0; kind < KINDS; kind++) {
    if (session.attached && other_has_kind(kind) && !is_recorded(kind)) cuptiActivityDisable(kind);
    SET(other.kinds[kind].until, 0);
  }
  SET(other.ended, 0), SET(other.records, 0);
  other_exchange(0, 0);
  if (!other_hold()) return OK;
  Result r = OK;
  if (session.attached) other_domains_leave();
  else {
    SET(other.alone, 0), subscription = NULL;
    // CUPTI's correlation ids start over, as they do after the tracer's own detach.
    session.id_base = (u32)newest_id;
    ADD(detach.count, 1);
    r = CALL_NEXT(next, (void));
  }
  unlock(&attaching);
  return r;
}

// ---- Lookups in the library (lookup.c).

static void* looked_up_client(void* library, const char* symbol) {
#define X(own, symbol) (void*)own,
  static void* const OWN[] = { INTERPOSED };
#undef X
  void* found = next_dlsym ? next_dlsym(library, symbol) : NULL;
  if (!found || !other_may_share()) return NULL;
  for (u32 id = 0; id < INTERPOSED_COUNT; id++) {
    if (strcmp(symbol, INTERPOSED_SYMBOLS[id])) continue;
    if (found == OWN[id]) return NULL;
    Behind* b = &behind[id];
    if (!GET(b->function)) {
      SET(b->base, base_of(found));
      SET(b->function, found);
    }
    // An earlier client used another copy of the library: share only if the tracer's library can serve both.
    if (b->function != found && !(session.attached && in_tracer_library(found, symbol))) return NULL;
    return OWN[id];
  }
  return session.attached ? in_tracer_library(found, symbol) : NULL;
}
