// Measuring counters of single launches: what is kept of it.
#include "profiler.h"

enum { GROUPS = 96, GROUP_METRICS = 160, SHAPES = 256, WINDOW = 64, PLAN_BYTES = 512 << 10, ASKED = 128, USELESS = 16, FIRST_ROUNDS = 3 };

// Metrics that one pass collects; `everything` needs several, and replays its launch.
typedef struct {
  const char* metrics[GROUP_METRICS];
  u32 count, question, passes;
  void* host;
  u8 *config, *data, *clean;
  u64 config_bytes, data_bytes, ranges;
} Group;

// Launches that are alike: what is measured of one is taken for all of them.
typedef struct { u32 name, grid[3], block[3], dynamic_shared; } Shape;
typedef struct { Shape shape; u64 time, launches, before, grew; u8 chosen, asked, active, apart, collective, done[GROUPS]; } Wanted;

// A launch that was measured, until its values are written.
typedef struct { Shape shape; u32 correlation, thread; u64 time; } Inside;

// What somebody asked for by name: the next launches, or one by its number from 0.
typedef struct { char exact[512], inside[520]; i64 nth; u64 seen; volatile int state; } Asked;

enum { MEASURE_OFF = 0, MEASURE_LOOKING, MEASURE_IDLE, MEASURE_ARMED, MEASURE_OPEN, MEASURE_CLOSED };
static struct {
  Lock lock;
  volatile int state;
  void *context, *object;
  u64 budget, share, started, spent, estimate, armed_at, opened_at, opened, last_launch, chosen_at;
  u32 groups, wanted, current, count, useless, windows, launches, question, only_asked;
  volatile u32 capturing;
  u32 recent[256], recent_count;
  const char* why_not;
  char plan[4096];
  volatile u32 asked;
} measure;
static Group groups[GROUPS + 1];
static Wanted wanted_launches[SHAPES];
static Inside inside[WINDOW];
static Asked asked_kernels[ASKED];
// Of configurations: time and number of launches, and whether one ran beside a kernel of another stream.
typedef struct { u64 time; u32 launches; u8 overlaps, collective; } Seen;
static Seen* seen;
static struct { u64 end; u32 config, stream; } last_on[16];

