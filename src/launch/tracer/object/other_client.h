// Another client of CUPTI in the traced program, such as torch.profiler (kineto). CUPTI accepts one subscriber and one
// pair of buffer callbacks per process, so both share the tracer's, and the functions in other_client.c decide who
// receives what.

enum { DOMAINS = 7, KINDS = 64 };
static struct {
  // Protects the buffer and its position, the times in `kinds`, and the anchor of the clock. A leaf, except for the
  // client's own buffer callbacks.
  Lock lock;
  // `subscribed`: the client's callback is called. `records`: the client has registered buffer callbacks.
  volatile int subscribed, records;
  // Set while the client uses CUPTI and the tracer does not.
  volatile int alone;
  OnCall on_call;
  void* user;
  // Functions for which the client enabled callbacks; entry 0 stands for the whole domain.
  u8 heard[DOMAINS][FUNCTIONS];
  // The client's records: those that began while it had the kind enabled, on CUPTI's clock. `until` is 0 if it never
  // had.
  struct { u64 from, until; } kinds[KINDS];
  // When the client disabled its last kind, on the monotonic clock; ~0 while one is enabled, 0 once it has all its
  // records.
  volatile u64 ended;
  void (*ask)(u8**, u64*, u64*);
  void (*done)(void*, u32, u8*, u64, u64);
  u8* buffer;
  u64 size, used;
  // The client's own clock for timestamps, and one point in time on both clocks.
  u64 (*clock)(void);
  u64 anchor, anchor_cupti;
  u64 given, lost;
} other;

static int other_is_present(void) { return GET(other.subscribed) || GET(other.records); }
static int other_has_kind(u32 kind) { return kind < KINDS && GET(other.kinds[kind].until) == ~0ul; }
static void other_heard(u32 domain, u32 id, const Call* call);
static void other_give(void* context, u32 stream, u8* bytes, u64 valid);
