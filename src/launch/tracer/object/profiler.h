// Our own declarations of the parts of CUPTI's profiler (12.6 and later) that the tracer uses: the host API plans
// counters for a chip and evaluates them, and the range profiler collects them around launches. Each function takes one
// structure, whose first two fields are its size and NULL. Fields were only ever added at the end; the sizes here are
// those of 12.6, which all later versions accept.

#define PROFILER(name, last, ...) \
  typedef struct { u64 size; void* reserved; __VA_ARGS__ } name##_P; \
  enum { name##_SIZE = __builtin_offsetof(name##_P, last) + sizeof(((name##_P*)0)->last) }; \
  static Result (*name)(name##_P*);

PROFILER(cuptiDeviceGetChipName, chip, u64 device; const char* chip;)
PROFILER(cuptiProfilerHostInitialize, host, u32 type; const char* chip; const u8* available; void* host;)
PROFILER(cuptiProfilerHostDeinitialize, host, void* host;)
PROFILER(cuptiProfilerHostConfigAddMetrics, count, void* host; const char** metrics; u64 count;)
PROFILER(cuptiProfilerHostGetConfigImageSize, bytes, void* host; u64 bytes;)
PROFILER(cuptiProfilerHostGetConfigImage, image, void* host; u64 bytes; u8* image;)
PROFILER(cuptiProfilerHostGetNumOfPasses, passes, u64 bytes; u8* image; u64 passes;)
PROFILER(cuptiProfilerHostEvaluateToGpuValues, values, void* host; const u8* data; u64 bytes; u64 range;
  const char** metrics; u64 count; double* values;)
PROFILER(cuptiRangeProfilerEnable, object, void* context; void* object;)
PROFILER(cuptiRangeProfilerDisable, object, void* object;)
PROFILER(cuptiRangeProfilerGetCounterDataSize, bytes, void* object; const char** metrics; u64 count; u64 ranges;
  u32 nodes; u64 bytes;)
PROFILER(cuptiRangeProfilerCounterDataImageInitialize, data, void* object; u64 bytes; u8* data;)
PROFILER(cuptiRangeProfilerSetConfig, target_level, void* object; u64 config_bytes; const u8* config; u64 data_bytes;
  u8 * data; u32 range; u32 replay; u64 ranges; u16 levels, first_level; u64 pass; u16 target_level;)
PROFILER(cuptiRangeProfilerStart, object, void* object;)
PROFILER(cuptiRangeProfilerStop, all_passes, void* object; u64 pass, level; u8 all_passes;)
PROFILER(cuptiRangeProfilerDecodeData, dropped, void* object; u64 dropped;)
PROFILER(cuptiRangeProfilerGetCounterDataInfo, ranges, const u8* data; u64 bytes; u64 ranges;)
#define PROFILER_FUNCTIONS                                                                                             \
  X(cuptiDeviceGetChipName)                                                                                            \
  X(cuptiProfilerHostInitialize) X(cuptiProfilerHostDeinitialize) X(cuptiProfilerHostConfigAddMetrics)                 \
    X(cuptiProfilerHostGetConfigImageSize) X(cuptiProfilerHostGetConfigImage) X(cuptiProfilerHostGetNumOfPasses)       \
      X(cuptiProfilerHostEvaluateToGpuValues) X(cuptiRangeProfilerEnable) X(cuptiRangeProfilerDisable)                 \
        X(cuptiRangeProfilerGetCounterDataSize) X(cuptiRangeProfilerCounterDataImageInitialize)                        \
          X(cuptiRangeProfilerSetConfig) X(cuptiRangeProfilerStart) X(cuptiRangeProfilerStop)                          \
            X(cuptiRangeProfilerDecodeData) X(cuptiRangeProfilerGetCounterDataInfo)

typedef struct { u64 size; void* reserved; } cuptiProfilerInitialize_P;
static Result (*cuptiProfilerInitialize)(cuptiProfilerInitialize_P*);
static Result (*cuptiGetDeviceId)(void* context, u32* device);

enum { RANGE_PER_KERNEL = 1, REPLAY_BY_CUPTI = 2,
  REPLAY_NONE = 3 /* by the user: who never replays measures each launch once */ };
enum { ERROR_HARDWARE_BUSY = 26, ERROR_INSUFFICIENT_PRIVILEGES = 35 };

// Fills a structure including its size; evaluates to CUPTI's result.
#define ASK(name, p, ...) ((p) = (name##_P){ .size = name##_SIZE, __VA_ARGS__ }, name(&(p)))
