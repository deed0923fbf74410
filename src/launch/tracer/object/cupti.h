// Our own declarations of the parts of CUPTI that the tracer uses. New versions only append fields to records, so one
// set of offsets fits all versions; a field that was added later is read only in versions that have it. The layouts are
// the same on x86-64 and aarch64.

typedef int Result;
enum { OK = 0, NO_MORE_RECORDS = 12, ERROR_NOT_INITIALIZED = 15, ERROR_NOT_SUPPORTED = 27,
  ERROR_OTHER_CLIENT = 39 };
enum { DOMAIN_DRIVER = 1, DOMAIN_RUNTIME = 2 };
enum {
  KIND_MEMCPY = 1, KIND_MEMSET = 2, KIND_KERNEL_SERIAL = 3, KIND_DRIVER = 4, KIND_RUNTIME = 5, KIND_KERNEL = 10,
  KIND_MARKER = 12, KIND_OVERHEAD = 17, KIND_MEMCPY_PEER = 22, KIND_CUDA_EVENT = 36, KIND_SYNCHRONIZATION = 38,
  KIND_INTERNAL_LAUNCH = 48, KIND_MEMORY = 49, KIND_GRAPH = 51,
};
enum { ATTRIBUTE_ZEROED = 5, ATTRIBUTE_PER_THREAD = 9 };

// Argument of a callback (CUpti_CallbackData).
typedef struct {
  u32 leaving;
  const char* function;
  const void* parameters;
  void* returned;
  const char* symbol;
  void* context;
  u32 context_id;
  u64* carried;
  u32 correlation;
} Call;
typedef void (*OnCall)(void*, u32 domain, u32 id, const Call*);

#define NEEDED \
  X(cuptiGetVersion, (u32*)) \
  X(cuptiSubscribe, (void**, OnCall, void*)) \
  X(cuptiEnableCallback, (u32 on, void*, u32 domain, u32 id)) \
  X(cuptiGetCallbackName, (u32 domain, u32 id, const char**)) \
  X(cuptiActivityRegisterCallbacks, (void (*)(u8**, u64*, u64*), void (*)(void*, u32, u8*, u64, u64))) \
  X(cuptiActivityEnable, (u32)) \
  X(cuptiActivityDisable, (u32)) \
  X(cuptiActivityGetNextRecord, (u8*, u64, u8**)) \
  X(cuptiActivityGetNumDroppedRecords, (void*, u32, u64*)) \
  X(cuptiActivityFlushAll, (u32)) \
  X(cuptiActivitySetAttribute, (u32, u64*, void*)) \
  X(cuptiGetTimestamp, (u64*)) \
  X(cuptiSetThreadIdType, (u32))
#define WANTED \
  X(cuptiActivityEnableDriverApi, (u32 id, u8 on)) \
  X(cuptiFinalize, (void)) \
  X(cuptiEnableDomain, (u32 on, void*, u32 domain)) \
  X(cuptiGetResultString, (Result, const char**)) \
  X(cuptiGetGraphNodeId, (const void* node, u64* id))
// The symbols with CUPTI's names belong to the functions in other_client.c.
#define X(name, parameters) static Result(*name) parameters __asm__("resolved_" #name);
NEEDED WANTED
#undef X

static const char* result_text(Result r) {
  const char* text = NULL;
  if (!cuptiGetResultString || cuptiGetResultString(r, &text) != OK || !text) return "an error without a name";
  return text;
}

static u32 cupti_version;

#define AT16(r, o) (*(const u16*)((r) + (o)))
#define AT32(r, o) (*(const u32*)((r) + (o)))
#define AT64(r, o) (*(const u64*)((r) + (o)))
#define AT_TEXT(r, o) (*(const char* const*)((r) + (o)))

// Offsets of the fields that are used, by record.
enum {
  RECORD_KIND = 0,
  KERNEL_REGISTERS = 6, KERNEL_START = 16, KERNEL_END = 24, KERNEL_COMPLETED = 32, KERNEL_DEVICE = 40,
  KERNEL_CONTEXT = 44, KERNEL_STREAM = 48,
  KERNEL_GRID = 52, KERNEL_BLOCK = 64, KERNEL_STATIC_SHARED = 76, KERNEL_DYNAMIC_SHARED = 80, KERNEL_LOCAL = 84,
  KERNEL_CORRELATION = 92, KERNEL_NAME = 104, KERNEL_LAUNCH_TYPE = 136, KERNEL_SHARED_EXECUTED = 140,
  KERNEL_GRAPH_NODE = 144, KERNEL_GRAPH = 156, KERNEL_CLUSTER = 176,
  KERNEL_DEVICE_LAUNCHED = 208,
  COPY_KIND = 4, COPY_FROM = 5, COPY_TO = 6, COPY_BYTES = 8, COPY_START = 16, COPY_END = 24, COPY_DEVICE = 32,
  COPY_CONTEXT = 36, COPY_STREAM = 40, COPY_CORRELATION = 44, COPY_GRAPH_NODE = 64, COPY_GRAPH = 72,
  PEER_FROM_DEVICE = 44, PEER_TO_DEVICE = 52, PEER_CORRELATION = 60, PEER_GRAPH_NODE = 72, PEER_GRAPH = 80,
  SET_BYTES = 8, SET_START = 16, SET_END = 24, SET_DEVICE = 32, SET_CONTEXT = 36, SET_STREAM = 40, SET_CORRELATION = 44,
  SET_MEMORY = 50, SET_GRAPH_NODE = 64, SET_GRAPH = 72, API_ID = 4, API_START = 8, API_END = 16, API_THREAD = 28,
  API_CORRELATION = 32, API_RETURNED = 36, GRAPH_CORRELATION = 4, GRAPH_START = 8, GRAPH_END = 16, GRAPH_DEVICE = 24,
  GRAPH_GRAPH = 28, GRAPH_CONTEXT = 32, GRAPH_STREAM = 36, OVERHEAD_KIND = 4, OVERHEAD_THREAD = 16, OVERHEAD_START = 24,
  OVERHEAD_END = 32, MEMORY_OPERATION = 4, MEMORY_KIND = 8, MEMORY_ADDRESS = 16, MEMORY_BYTES = 24, MEMORY_TIME = 32,
  MEMORY_DEVICE = 52, MARKER_TIME = 8, EVENT_TIME = 40, SYNCHRONIZATION_START = 8, SYNCHRONIZATION_END = 16,
};
// First versions of CUPTI in which a record has a field, and in which a buffer may be refused (MAY_REFUSE: 12.9).
enum { HAS_GRAPH_NODE = 13, HAS_GRAPH = 15, HAS_CLUSTER = 18, HAS_DEVICE_LAUNCHED = 130001, HAS_MEMORY = 13,
  MAY_REFUSE = 28 };
