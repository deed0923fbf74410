// NVTX 3: the library in the program looks up InitializeInjectionNvtx2 and calls the functions that it installs.

// nvtxEventAttributes_t, and the types of messages and payloads.
typedef struct {
  u16 version, size;
  u32 category;
  i32 color_type;
  u32 color;
  i32 payload_type, reserved;
  u64 payload;
  i32 message_type;
  const void* message;
} Attributes;
enum { MESSAGE_ASCII = 1, MESSAGE_WIDE = 2, MESSAGE_REGISTERED = 3 };
// An extended payload of a range (nvtxPayloadData_t); the `reserved` field of the attributes is the number of payloads.
typedef struct { u64 schema, size; const void* bytes; } Attached;
enum { NVTX_EXTENDED = (i32)0xDFBD0009 };
enum { NVTX_UNSIGNED_64 = 1, NVTX_SIGNED_64 = 2, NVTX_DOUBLE = 3, NVTX_UNSIGNED_32 = 4, NVTX_SIGNED_32 = 5,
  NVTX_FLOAT = 6 };

static volatile int writing;

// Programs also call these functions in signal handlers: a handler that interrupted the tracer on the same thread drops
// its event.
static int nvtx_enter(void) {
  if (UNLIKELY(!writing || gone)) return 0;
  if (UNLIKELY(inside_tracer)) {
    ADD(lost.interrupted, 1);
    return 0;
  }
  inside_tracer = 1;
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  return 1;
}
static u64 nvtx_leave(u64 result) {
  __atomic_signal_fence(__ATOMIC_SEQ_CST);
  inside_tracer = 0;
  return result;
}
#define INSIDE(call) (nvtx_enter() ? nvtx_leave((u64)(call)) : 0)
#define INSIDE_(call) do { if (nvtx_enter()) call, nvtx_leave(0); } while (0)

static u64 range_ids;
static __thread int depth;

// Converts a wide string to UTF-8. wchar_t has 32 bits here.
static u32 name_wide(const u32* text) {
  char out_[1024], *p = out_;
  for (; text && *text && p < out_ + sizeof out_ - 4; text++) p = put_utf8(p, *text);
  return name_of(out_, (u64)(p - out_));
}

// Per-thread cache of ids by string hash, in front of the shared table.
enum { RECENT = 64 };
static __thread struct { u64 hash; u32 id; } recent[RECENT];
static u32 name_recent(const char* text) {
  if (!text) return 0;
  u64 n = strlen(text), hash = hash_bytes(text, n);
  u32 at = (u32)(hash & (RECENT - 1));
  if (recent[at].hash == hash && recent[at].id) return recent[at].id;
  u32 id = name_of(text, n);
  recent[at].hash = hash, recent[at].id = id;
  return id;
}

static u32 message(const Attributes* a) {
  if (!a->message) return 0;
  if (a->message_type == MESSAGE_REGISTERED) return (u32)(u64)a->message;
  if (a->message_type == MESSAGE_ASCII) return name_recent(a->message);
  return a->message_type == MESSAGE_WIDE ? name_wide(a->message) : 0;
}

// Id of the name of NCCL's domain, once NCCL has created it.
static u32 nccl_domain;

// NCCL's payload of a call: communicator, bytes, and peer or root. Payloads with other schemas are dropped.
static void put_message(Event* e, u32 domain, const Attached* of, u64 count) {
  if (!domain || domain != nccl_domain || count != 1 || !of || !of->bytes || e->has) return;
  u8 bytes[MESSAGE_BYTES] = { 0 };
  u64 n = of->size < MESSAGE_BYTES ? of->size : MESSAGE_BYTES;
  memcpy(bytes, of->bytes, n);
  memcpy(&e->id, bytes, 8), memcpy(&e->payload, bytes + 8, 8), memcpy(&e->color, bytes + 16, 8);
  e->has = MESSAGE, e->message = (u8)n;
}

// Returns 1 if there was room for the event in the ring.
static int put_nvtx(u8 kind, u32 domain, u32 text, u64 id, const Attributes* a) {
  Ring* r = ring();
  Event* e = r ? event_begin(r) : NULL;
  if (!e) return 0;
  *e = (Event){ .time = now(), .id = id, .domain = domain, .text = text, .kind = kind };
  if (a) {
    if (a->color_type) e->has |= COLOR, e->color = a->color;
    if (a->category) e->has |= CATEGORY, e->category = a->category;
    union { double real; float small; u64 bits; } value = { .bits = a->payload };
    switch (a->payload_type) {
    case NVTX_UNSIGNED_64: e->has |= PAYLOAD_UNSIGNED, e->payload = a->payload; break;
    case NVTX_UNSIGNED_32: e->has |= PAYLOAD_UNSIGNED, e->payload = (u32)a->payload; break;
    case NVTX_SIGNED_64: e->has |= PAYLOAD_SIGNED, e->payload = a->payload; break;
    case NVTX_SIGNED_32: e->has |= PAYLOAD_SIGNED, e->payload = (u64)(i64)(i32)a->payload; break;
    case NVTX_DOUBLE: e->has |= PAYLOAD_REAL, e->payload = a->payload; break;
    case NVTX_FLOAT: value.real = (double)value.small, e->has |= PAYLOAD_REAL, e->payload = value.bits; break;
    case NVTX_EXTENDED:
      if (kind == EVENT_PUSH && a->reserved > 0) put_message(e, domain, (const Attached*)a->payload, (u64)a->reserved);
      break;
    default: break;
    }
  }
  event_end(r);
  return 1;
}

// One bit per open range of this thread: set if the beginning of the range was recorded, which a closed gate or a full
// ring prevents. The end of a range is recorded only if the bit is set.
static __thread u64 recorded;
static int shut(void) { return UNLIKELY(gate.gated && !gate.is_open); }

static int push(u32 domain, u32 text, const Attributes* a) {
  if (UNLIKELY(gate.gated)) gate_entered(domain, text);
  if (UNLIKELY(asked_range.text)) asked_pushed = asked_pushed << 1 | (u64)asked_matches(domain, text);
  recorded = recorded << 1 | (u64)(!shut() && put_nvtx(EVENT_PUSH, domain, text, 0, a));
  return depth++;
}
static void put_pop(u32 domain, const Attached* of, u64 count) {
  Ring* r = ring();
  Event* e = r ? event_begin(r) : NULL;
  if (!e) return;
  *e = (Event){ .time = now(), .domain = domain, .kind = EVENT_POP };
  put_message(e, domain, of, count);
  if (e->has) e->kind = EVENT_POP_MESSAGE;
  event_end(r);
}
static int pop(u32 domain, const Attached* of, u64 count) {
  if (depth > 0) depth--;
  if (recorded & 1) put_pop(domain, of, count);
  recorded >>= 1, asked_pushed >>= 1;
  if (UNLIKELY(gate.gated)) gate_left(domain);
  return depth;
}
static int nvtx_push_ascii(const char* text) { return (int)INSIDE(push(0, name_recent(text), NULL)); }
static int nvtx_push_wide(const u32* text) { return (int)INSIDE(push(0, name_wide(text), NULL)); }
static int nvtx_push(const Attributes* a) { return a ? (int)INSIDE(push(0, message(a), a)) : 0; }
static int nvtx_pop(void) { return (int)INSIDE(pop(0, NULL, 0)); }
static int nvtx_domain_push(void* domain, const Attributes* a) {
  return a ? (int)INSIDE(push((u32)(u64)domain, message(a), a)) : 0;
}
static int nvtx_domain_pop(void* domain) { return (int)INSIDE(pop((u32)(u64)domain, NULL, 0)); }

static u64 start(u32 domain, u32 text, const Attributes* a) {
  u64 id = ADD(range_ids, 1) + 1;
  if (UNLIKELY(gate.gated)) gate_started(domain, text, id);
  if (UNLIKELY(asked_range.text)) asked_started(domain, text, id);
  if (!shut()) put_nvtx(EVENT_START, domain, text, id, a);
  return id;
}
static u64 nvtx_start_ascii(const char* text) { return INSIDE(start(0, name_recent(text), NULL)); }
static u64 nvtx_start_wide(const u32* text) { return INSIDE(start(0, name_wide(text), NULL)); }
static u64 nvtx_start(const Attributes* a) { return a ? INSIDE(start(0, message(a), a)) : 0; }
static u64 nvtx_domain_start(void* domain, const Attributes* a) {
  return a ? INSIDE(start((u32)(u64)domain, message(a), a)) : 0;
}
static void end_(u64 id) {
  put_nvtx(EVENT_END, 0, 0, id, NULL);
  if (UNLIKELY(gate.gated)) gate_ended(id);
  if (UNLIKELY(asked_range.text)) asked_ended(id);
}
static void nvtx_end(u64 id) { if (id) INSIDE_(end_(id)); }
static void nvtx_domain_end(void* domain, u64 id) { (void)domain, nvtx_end(id); }

static void nvtx_mark_ascii(const char* text) {
  if (!shut()) INSIDE_(put_nvtx(EVENT_MARK, 0, name_recent(text), 0, NULL));
}
static void nvtx_mark_wide(const u32* text) { if (!shut()) INSIDE_(put_nvtx(EVENT_MARK, 0, name_wide(text), 0, NULL)); }
static void nvtx_mark(const Attributes* a) { if (a && !shut()) INSIDE_(put_nvtx(EVENT_MARK, 0, message(a), 0, a)); }
static void nvtx_domain_mark(void* domain, const Attributes* a) {
  if (a && !shut()) INSIDE_(put_nvtx(EVENT_MARK, (u32)(u64)domain, message(a), 0, a));
}

// Handles of domains and of registered strings are the ids of their strings.
static void* nvtx_domain_ascii(const char* text) {
  u32 id = (u32)INSIDE(name(text));
  if (id && strlen(text) == 4 && !memcmp(text, "NCCL", 4)) nccl_domain = id;
  return (void*)(u64)id;
}
static void* nvtx_domain_wide(const u32* text) { return (void*)INSIDE(name_wide(text)); }
static void* nvtx_register_ascii(void* domain, const char* text) { (void)domain; return (void*)INSIDE(name(text)); }
static void* nvtx_register_wide(void* domain, const u32* text) { (void)domain; return (void*)INSIDE(name_wide(text)); }

static void nvtx_category_ascii(u32 category, const char* text) {
  if (category && text) INSIDE_(name_given(0, category, name(text)));
}
static void nvtx_category_wide(u32 category, const u32* text) {
  if (category && text) INSIDE_(name_given(0, category, name_wide(text)));
}
static void nvtx_domain_category_ascii(void* domain, u32 category, const char* text) {
  if (category && text) INSIDE_(name_given((u32)(u64)domain, category, name(text)));
}
static void nvtx_domain_category_wide(void* domain, u32 category, const u32* text) {
  if (category && text) INSIDE_(name_given((u32)(u64)domain, category, name_wide(text)));
}
static void nvtx_thread_ascii(u32 thread, const char* text) {
  if (thread && text) INSIDE_(name_given(thread, 0, name(text)));
}
static void nvtx_thread_wide(u32 thread, const u32* text) {
  if (thread && text) INSIDE_(name_given(thread, 0, name_wide(text)));
}

// NvtxExportTableID, NvtxCallbackModule, and the slots of each (nvtxTypes.h).
enum { TABLE_CALLBACKS = 1, MODULE_CORE = 1, MODULE_CORE2 = 5 };
typedef struct { u64 size; int (*module)(u32, void****, u32*); } Callbacks;
static void take(void*** slots, u32 count, u32 slot, void* function) {
  if (slot < count && slots[slot]) *slots[slot] = function;
}
static void nvtx_functions(const Callbacks* callbacks) {
  void*** t;
  u32 n;
  if (callbacks->module(MODULE_CORE, &t, &n)) {
    take(t, n, 1, nvtx_mark), take(t, n, 2, nvtx_mark_ascii), take(t, n, 3, nvtx_mark_wide);
    take(t, n, 4, nvtx_start), take(t, n, 5, nvtx_start_ascii), take(t, n, 6, nvtx_start_wide), take(t, n, 7, nvtx_end);
    take(t, n, 8, nvtx_push), take(t, n, 9, nvtx_push_ascii), take(t, n, 10, nvtx_push_wide), take(t, n, 11, nvtx_pop);
    take(t, n, 12, nvtx_category_ascii), take(t, n, 13, nvtx_category_wide), take(t, n, 14, nvtx_thread_ascii),
      take(t, n, 15, nvtx_thread_wide);
  }
  if (callbacks->module(MODULE_CORE2, &t, &n)) {
    take(t, n, 1, nvtx_domain_mark), take(t, n, 2, nvtx_domain_start), take(t, n, 3, nvtx_domain_end);
    take(t, n, 4, nvtx_domain_push), take(t, n, 5, nvtx_domain_pop);
    take(t, n, 8, nvtx_domain_category_ascii), take(t, n, 9, nvtx_domain_category_wide);
    take(t, n, 10, nvtx_register_ascii), take(t, n, 11, nvtx_register_wide);
    take(t, n, 12, nvtx_domain_ascii), take(t, n, 13, nvtx_domain_wide);
  }
}

// The payload extension (nvToolsExtPayload.h): NCCL ends ranges through it, and without these functions NCCL's ranges
// would never end.
enum { MODULE_PAYLOAD = 2 };
typedef struct { u64 segment, count; void** slots; } Segment;
typedef struct { u16 version, size, module, compatible; u64 count; Segment* segments; } Extension;
static int nvtx_push_payload(void* domain, const Attached* of, u64 count) {
  (void)of, (void)count;
  return (int)INSIDE(push((u32)(u64)domain, 0, NULL));
}
static int nvtx_pop_payload(void* domain, const Attached* of, u64 count) {
  return (int)INSIDE(pop((u32)(u64)domain, of, count));
}
static u64 nvtx_start_payload(void* domain, const Attached* of, u64 count) {
  (void)of, (void)count;
  return INSIDE(start((u32)(u64)domain, 0, NULL));
}
static void nvtx_end_payload(void* domain, u64 id, const Attached* of, u64 count) {
  (void)domain, (void)of, (void)count, nvtx_end(id);
}
static u8 nvtx_domain_enabled(void* domain) { (void)domain; return 1; }
static void nvtx_extension(const Extension* e) {
  if (e->module != MODULE_PAYLOAD || !e->count || !e->segments) return;
  const Segment* s = e->segments;
  void* functions[] = { NULL, NULL, NULL, nvtx_push_payload, nvtx_pop_payload, nvtx_start_payload, nvtx_end_payload,
    nvtx_domain_enabled };
  for (u64 i = 0; i < sizeof functions / sizeof *functions && i < s->count; i++) {
    if (functions[i]) s->slots[i] = functions[i];
  }
}
