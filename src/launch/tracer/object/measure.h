// Measuring counters of single launches: what is kept of it.
#include "profiler.h"

enum { SHAPES = 1024, WINDOW = 64, PASSES = 64, PLAN_BYTES = 512 << 10, ASKED = 128, USELESS = 16, SET_METRICS = 320 };
// What hints need most; the rest that needs no change of the code; and for a launch that is replayed, everything.
enum { SET_FIRST = 0, SET_REST = 1, SET_REPLAYED = 2, SETS = 3, SWEPT = 2 };

// Metrics that are collected together, in as many passes as they need.
typedef struct {
  const char* metrics[SET_METRICS];
  u32 count, passes;
  void* host;
  u8 *config, *data, *clean;
  u64 config_bytes, data_bytes;
} Set;

// Launches that are alike: what is measured of one is taken for all of them.
typedef struct { u32 name, grid[3], block[3], dynamic_shared; } Shape;
typedef struct {
  Shape shape;
  // `mean`: of its launches, as far as their records came, ns.
  u64 time, launches, grew, mean;
  // The same while it is added up again, and what else is found on the way.
  struct { u64 time, launches; u8 apart, collective; } sum;
  // The number of who asked last, from 1.
  u32 asked;
  u8 chosen, active, apart, collective, missed, swept, sampled, follows, attempts[SETS], done[SETS];
} Wanted;

// A launch of a sweep, with those like it in later passes.
typedef struct { Shape shape; u64 time; u32 thread, good, correlations[PASSES]; } Inside;

// What somebody asked for by name: the next launches, or one by its number from 0; what was met of it, and what of that could not be measured.
enum { ASKED_FREE = 0, ASKED_OPEN, ASKED_DONE, ASKED_REFUSED };
// A regular expression as libc keeps it (64 bytes with glibc and musl), and what it said of names by their hashes.
enum { TOLD = 64 };
typedef struct { u64 compiled[32]; struct { u64 hash; int fits; } told[TOLD]; int given; } Pattern;
// Of grid and block only what is not 0 is compared.
typedef struct { char exact[512]; Pattern pattern; u32 grid[3], block[3]; i64 nth; u64 seen, refused; u32 number, stalls; volatile int state; } Asked;

enum { MEASURE_OFF = 0, MEASURE_LOOKING, MEASURE_IDLE, MEASURE_ARMED, MEASURE_OPEN, MEASURE_CLOSED };
static struct {
  Lock lock;
  volatile int state;
  void *context, *object;
  u64 budget, share, started, spent, estimate, armed_at, opened_at, opened, last_launch, left_at, chosen_at, swept_at;
  u32 wanted, windows, launches, only_asked, round, written;
  // A sweep: the same launches once for each pass. `configured` is the set that CUPTI was given last, counted from 1.
  u32 sweeping, sampling, set, pass, length, count, useless, replayed, configured, waited;
  Shape start;
  volatile u32 capturing;
  // Launches that were measured, by their numbers: records come up to a second later.
  u32 recent[8192], deaf;
  // Windows that were closed, until they are written: start, length, thread.
  struct { u64 start, took; u32 thread; } closed[64];
  volatile u32 closed_count, closed_written;
  const char* why_not;
  char plan[4096];
  // What is measured was planned, for the chip of this device; contexts of other ones that were met later.
  u32 planned, device, others;
  // The ticker gets ready in the context, without the lock.
  volatile int preparing;
  // Passes of a sweep that ended with its context.
  u32 cut;
  // A launch that is measured, until it returns: since when, and its kernel's name.
  volatile u64 within;
  volatile u32 within_name;
  volatile u32 asked;
  // What the next launch is to give back.
  int leaving;
  // The ticker holds the lock. A launch waited for it for too long: nothing is measured any more.
  volatile int on_ticker, stuck;
  // CUPTI may wait for launches that are under way: they pass without the lock, at once or after a while, unless some are counted.
  volatile int passing, numbered;
  // A launch is being replayed: its memory is restored after each pass, and nothing else may run.
  volatile int replaying;
  // How often the lock was had.
  volatile u32 turns;
} measure;
// How long whoever destroys a context waits for the ticker to be ready in it.
enum { PREPARING_MS = 2000 };
// A measured launch takes too long from so many ns on, where that is so many times as long as usual.
static const u64 LONG_NS = 5000000000ul, LONGER = 100;
static Set sets[SETS];
// Under measure.lock, as all that belongs to it (wanted.c).
static Wanted wanted_launches[SHAPES];
static Inside inside[WINDOW];
static Asked asked_kernels[ASKED];
// Of configurations: time and number of launches (`before`: when it was looked at last), and whether one ran beside a kernel of another stream.
typedef struct { u64 time; u32 launches, before; u8 overlaps, collective; } Seen;
static Seen* seen;
static struct { u64 end; u32 config, stream; } last_on[16];

enum { PASS_NOT, PASS_NOW, PASS_LATER };
// Whether this thread holds measure.lock until its launch returns.
static __thread int holds;

// Functions that launch, by their numbers.
static u8 launching[FUNCTIONS];
