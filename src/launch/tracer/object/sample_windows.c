// Short recordings at random times (`trace --overhead`), from which totals of the whole run are estimated. Each
// recording subscribes to CUPTI, records for a moment and detaches again (detach.c), so the program is not slowed down
// in between. Their spacing follows from their measured cost and the share of time that they may take.

static const u64 SAMPLE_NS = 100000000;
// Maximum cost of a subscription, in percent of its duration: the tokens of vLLM 0.26 took 1.67 ms before and 2.2 ms
// within a recording (one request, every graph node recorded, H200).
enum { SAMPLE_COST_PERCENT = 35 };
// Cost of subscribing and of leaving until they are measured: they took 14 to 42 ms and 20 ms on an H200.
static const u64 SAMPLE_FIRST_NS = 60000000, SAMPLE_LEAVE_NS = 100000000;

static struct {
  // Share of the time that may be added, in hundredths of a percent; 0 for no recordings.
  u32 share;
  u64 began, next_at, attach_ns, leave_ns, random;
  u32 seen_left;
} samples;

static u64 sample_interval(void) {
  u64 subscribed = SAMPLE_NS + samples.leave_ns;
  return (samples.attach_ns + GET(detach.took) + subscribed / 100 * SAMPLE_COST_PERCENT) * 10000 / samples.share;
}
// Time from a point in one interval to a point in the next, so that all points in time are equally likely.
static u64 sample_pause(void) {
  u64 interval = sample_interval();
  return interval / 2 + (samples.random = mix(samples.random + 0x9e3779b97f4a7c15ul)) % (interval + 1);
}

static void sample_begin(u64 t) {
  gate_set(1, "a short recording", 0);
  u64 took = clock_now(CLOCK_MONOTONIC) - t;
  if (GET(gate.is_open)) samples.attach_ns = took;
  // In case the gate is closed by hand, or another tool is using CUPTI and may release it.
  samples.next_at = t + SAMPLE_NS + sample_pause();
}

// Runs on the ticker. Returns the time until the next check, ms.
static u64 samples_look(u64 t) {
  if (LIKELY(!samples.share)) return 1000;
  if (!samples.began) {
    static Facts f;
    fact_number(&f, "sampled_from", now());
    put_facts(BLOCK_FACTS, &f);
    samples.began = t, samples.attach_ns = SAMPLE_FIRST_NS, samples.leave_ns = SAMPLE_LEAVE_NS;
    samples.random = mix(session.started ^ (u64)out.pid);
    samples.next_at = t + mix(samples.random) % (sample_interval() + 1);
  }
  if (GET(gate.is_open)) {
    u64 open = t > gate.opened_at ? t - gate.opened_at : 0;
    if (open < SAMPLE_NS) return (SAMPLE_NS - open) / 1000000 + 1;
    gate_set(0, "its time is over", 0);
    samples.next_at = t + sample_pause();
  }
  // The time that the detach took is included in the cost of the next recordings. Recording costs nothing while the
  // program makes no calls.
  if (samples.seen_left != GET(detach.count)) {
    samples.seen_left = detach.count;
    samples.leave_ns = DETACH_SOON_NS + GET(detach.active_ns);
  }
  // If CUPTI cannot be detached, the program pays for the subscription until it ends, so no more cost is added.
  if (GET(session.attached) && detach.why_not && !detach.retry_at) return 1000;
  int leaves = GET(detach.state) == DETACH_WANTED || GET(detach.state) == DETACH_TAKEN;
  if (t < samples.next_at) return (samples.next_at - t) / 1000000 + 1;
  if (leaves || GET(detach.state) == DETACH_DONE) return DETACH_LOOKS_MS;
  sample_begin(t);
  return SAMPLE_NS / 1000000;
}
