// State for measuring the counters of single launches.
#include "profiler.h"

enum { SHAPES = 1024, WINDOW = 64, PASSES = 64, PLAN_BYTES = 512 << 10, ASKED = 128, USELESS = 16, SET_METRICS = 320 };
// Sets of metrics: those that hints need most, the remaining ones that do not patch the code, and all metrics for a
// replayed launch.
enum { SET_FIRST = 0, SET_REST = 1, SET_REPLAYED = 2, SETS = 3, SWEPT = 2 };

// Metrics that are collected together, in as many passes as needed.
typedef struct {
  const char* metrics[SET_METRICS];
  u32 count, passes;
  void* host;
  u8 *config, *data, *clean;
  u64 config_bytes, data_bytes;
} Set;

// Launch signature: one measurement represents all launches with the same signature.
typedef struct { u32 name, grid[3], block[3], dynamic_shared; } Shape;
typedef struct {
  Shape shape;
  // `mean`: mean duration of the shape's launches that have records, ns.
  u64 time, launches, grew, mean;
  // The same values while they are being added up again, and the properties found while doing so.
  struct { u64 time, launches; u8 apart, collective; } sum;
  // Number of the latest request for this shape, 1-based.
  u32 asked;
  u8 chosen, active, apart, collective, missed, swept, sampled, follows, attempts[SETS], done[SETS];
} Wanted;

// A launch in a sweep, with the matching launches of later passes.
typedef struct { Shape shape; u64 time; u32 thread, good, correlations[PASSES]; } Inside;

// A request for a kernel by name: its next launches, or one launch by its 0-based index; `seen` counts the matching
// launches, `refused` those among them that could not be measured.
enum { ASKED_FREE = 0, ASKED_OPEN, ASKED_DONE, ASKED_REFUSED };
// A compiled regular expression (64 bytes in glibc and musl), and a cache of its results by the hash of the name.
enum { TOLD = 64 };
typedef struct { u64 compiled[32]; struct { u64 hash; int fits; } told[TOLD]; int given; } Pattern;
// Only the nonzero components of grid and block are compared.
typedef struct {
  char exact[512];
  Pattern pattern;
  u32 grid[3], block[3];
  i64 nth;
  u64 seen, refused;
  u32 number, stalls;
  volatile int state;
} Asked;

enum { MEASURE_OFF = 0, MEASURE_LOOKING, MEASURE_IDLE, MEASURE_ARMED, MEASURE_OPEN, MEASURE_CLOSED };
static struct {
  Lock lock;
  volatile int state;
  void *context, *object;
  u64 budget, share, started, spent, estimate, armed_at, opened_at, opened, last_launch, left_at, chosen_at, swept_at;
  u32 wanted, windows, launches, only_asked, round, written;
  // State of a sweep: the same launches once per pass. `configured` is the set that was last configured in CUPTI,
  // 1-based.
  u32 sweeping, sampling, set, pass, length, count, useless, replayed, configured, waited;
  Shape start;
  volatile u32 capturing;
  // `recent`: correlation ids of measured launches, because records arrive up to a second later. `deaf`: set once the
  // callbacks have been disabled because measuring has ended.
  u32 recent[8192], deaf;
  // Closed windows that have not been written yet.
  struct { u64 start, took; u32 thread; } closed[64];
  volatile u32 closed_count, closed_written;
  const char* why_not;
  char plan[4096];
  // Set once the metrics have been planned, for the chip of `device`; `others` counts later contexts on other devices.
  u32 planned, device, others;
  // The ticker is preparing the profiler in the context, without holding the lock.
  volatile int preparing;
  // Completed passes of a sweep whose context was destroyed.
  u32 cut;
  // Start of a measured launch that has not returned, and the name of its kernel.
  volatile u64 within;
  volatile u32 within_name;
  volatile u32 asked;
  // Profilers that the next launch will disable (LEAVE_RANGES, LEAVE_STALLS).
  int leaving;
  // `on_ticker`: the ticker holds the lock. `stuck`: a launch waited for the lock for too long, and measuring has
  // ended.
  volatile int on_ticker, stuck;
  // `passing`: CUPTI may be waiting for launches in progress, which therefore pass without the lock, immediately or
  // after a while (PASS_…), unless launches are being counted (`numbered`).
  volatile int passing, numbered;
  // A launch is being replayed: its memory is restored after each pass, and nothing else may run.
  volatile int replaying;
  // Number of times the lock was acquired.
  volatile u32 turns;
} measure;
// Maximum time for which a thread that destroys a context waits for the ticker to finish preparing in it.
enum { PREPARING_MS = 2000 };
// A measured launch takes too long after LONG_NS, if that is LONGER times its usual duration.
static const u64 LONG_NS = 5000000000ul, LONGER = 100;
static Set sets[SETS];
// Protected by measure.lock, as is their index (signatures.c); asked_add fills free entries of `asked_kernels` without
// the lock.
static Wanted wanted_launches[SHAPES];
static Inside inside[WINDOW];
static Asked asked_kernels[ASKED];
// Per configuration: time and number of launches (`before`: at the previous check), and a flag that is set if one of
// them overlapped a kernel of another stream.
typedef struct { u64 time; u32 launches, before; u8 overlaps, collective; } Seen;
static Seen* seen;
static struct { u64 end; u32 config, stream; } last_on[16];

enum { PASS_NOT, PASS_NOW, PASS_LATER };
// Set while this thread holds measure.lock until its launch returns.
static __thread int holds;

// Functions that launch kernels, by callback id.
static u8 launching[FUNCTIONS];
