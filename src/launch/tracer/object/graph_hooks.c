// The functions that instantiate CUDA graphs, in programs that call them by name, as PyTorch does, or look them up.
// CUPTI crashes a program that enters one of them while it is being subscribed to (13.0 on an H200), so each waits for
// the other. Before the subscription, only LD_PRELOAD can observe them; statically linked functions, and those that
// cuGetProcAddress returns, bypass this object (`attach --pid` stops the threads instead).

static struct { volatile u32 inside, subscribing; } instantiations;
// Longest waits, ms: a subscription waits for instantiations in progress, and a new instantiation waits for a
// subscription in progress, which itself may wait for a measured launch.
enum { INSTANTIATING_MS = 500, SUBSCRIBING_MS = 3000 };
static __thread u32 instantiates;

static void instantiation_begin(void) {
  __atomic_add_fetch(&instantiations.inside, 1, __ATOMIC_SEQ_CST);
  // The runtime's function may call the driver's by name.
  if (instantiates++) return;
  u64 since = 0;
  while (UNLIKELY(__atomic_load_n(&instantiations.subscribing, __ATOMIC_SEQ_CST))) {
    u64 t = clock_now(CLOCK_MONOTONIC);
    if (!since) since = t;
    if (t - since > SUBSCRIBING_MS * 1000000ul) break;
    __atomic_sub_fetch(&instantiations.inside, 1, __ATOMIC_SEQ_CST);
    nap();
    __atomic_add_fetch(&instantiations.inside, 1, __ATOMIC_SEQ_CST);
  }
}
static void instantiation_end(void) {
  instantiates--;
  __atomic_sub_fetch(&instantiations.inside, 1, __ATOMIC_SEQ_CST);
}

// Keeps other threads from instantiating graphs until `instantiations_release`. Returns 0 if one is still doing so.
static int instantiations_hold(void) {
  __atomic_store_n(&instantiations.subscribing, 1, __ATOMIC_SEQ_CST);
  u64 since = clock_now(CLOCK_MONOTONIC);
  while (__atomic_load_n(&instantiations.inside, __ATOMIC_SEQ_CST) > instantiates) {
    if (clock_now(CLOCK_MONOTONIC) - since > INSTANTIATING_MS * 1000000ul) return 0;
    nap();
  }
  return 1;
}
static void instantiations_release(void) {
  __atomic_store_n(&instantiations.subscribing, 0, __ATOMIC_SEQ_CST);
}

enum { ERROR_UNKNOWN = 999 };
typedef int (*Instantiate)(u64, u64, u64, u64, u64);
// Versions of these functions have three to five arguments, all in registers.
static int instantiate(void* function, u64 a, u64 b, u64 c, u64 d, u64 e) {
  Instantiate next = NULL;
  *(void**)&next = function;
  if (!next) return ERROR_UNKNOWN;
  instantiation_begin();
  int result = next(a, b, c, d, e);
  instantiation_end();
  return result;
}
#define INSTANTIATING(name) \
  EXPORT int name(u64 a, u64 b, u64 c, u64 d, u64 e) { \
    return instantiate(function_behind(#name, __builtin_return_address(0)), a, b, c, d, e); \
  }
INSTANTIATING(cudaGraphInstantiate)
INSTANTIATING(cudaGraphInstantiateWithFlags)
INSTANTIATING(cudaGraphInstantiateWithParams)
INSTANTIATING(cudaGraphInstantiateWithParams_ptsz)
INSTANTIATING(cuGraphInstantiate)
INSTANTIATING(cuGraphInstantiate_v2)
INSTANTIATING(cuGraphInstantiateWithFlags)
INSTANTIATING(cuGraphInstantiateWithParams)
INSTANTIATING(cuGraphInstantiateWithParams_ptsz)

static Entries instantiating;
#define X(i) \
  static int instantiate_##i(u64 a, u64 b, u64 c, u64 d, u64 e) { \
    return instantiate(instantiating.behind[i], a, b, c, d, e); \
  }
EACH_ENTRY(X)
#undef X
// This object's function for a lookup of one of these names; NULL for other names.
static void* looked_up_instantiation(void* library, const char* symbol) {
  static const char* const NAMES[] = { "cudaGraphInstantiate", "cudaGraphInstantiateWithFlags",
    "cudaGraphInstantiateWithParams", "cudaGraphInstantiateWithParams_ptsz", "cuGraphInstantiate",
    "cuGraphInstantiate_v2", "cuGraphInstantiateWithFlags", "cuGraphInstantiateWithParams",
    "cuGraphInstantiateWithParams_ptsz" };
#define X(i) (void*)instantiate_##i,
  static void* const FUNCTIONS_OF[] = { EACH_ENTRY(X) };
#undef X
  for (u32 i = 0; i < COUNT(NAMES); i++)
    if (!strcmp(symbol, NAMES[i])) return looked_up(library, symbol, &instantiating, FUNCTIONS_OF);
  return NULL;
}
