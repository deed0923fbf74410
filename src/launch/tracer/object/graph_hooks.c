// The functions that instantiate CUDA graphs, in programs that call them by name, as PyTorch does, or look them up.
// CUPTI crashes a program that enters one of them while it is being subscribed to (13.0 on an H200), so each waits for
// the other. Before the subscription, only LD_PRELOAD can observe them; statically linked functions bypass this object
// (`attach --pid` stops the threads instead).

static struct { volatile u32 inside, subscribing; } instantiations;
// Longest wait for each other, ms.
enum { INSTANTIATING_MS = 500 };
static __thread u32 instantiates;

static void instantiation_begin(void) {
  __atomic_add_fetch(&instantiations.inside, 1, __ATOMIC_SEQ_CST);
  instantiates++;
  for (int i = 0; i < INSTANTIATING_MS && __atomic_load_n(&instantiations.subscribing, __ATOMIC_SEQ_CST); i++) {
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
  for (int i = 0; i < INSTANTIATING_MS; i++) {
    if (__atomic_load_n(&instantiations.inside, __ATOMIC_SEQ_CST) <= instantiates) return 1;
    nap();
  }
  return 0;
}
static void instantiations_release(void) {
  __atomic_store_n(&instantiations.subscribing, 0, __ATOMIC_SEQ_CST);
}

enum { ERROR_UNKNOWN = 999 };
typedef int (*Instantiate)(u64, u64, u64, u64, u64);
// Versions of these functions have three to five arguments.
static int instantiate(const char* symbol, void* caller, Instantiate own, u64 a, u64 b, u64 c, u64 d, u64 e) {
  Instantiate next = NULL;
  *(void**)&next = function_behind(symbol, caller, (const void*)own);
  if (!next) return ERROR_UNKNOWN;
  instantiation_begin();
  int result = next(a, b, c, d, e);
  instantiation_end();
  return result;
}
#define INSTANTIATING(name) \
  EXPORT int name(u64 a, u64 b, u64 c, u64 d, u64 e) { \
    return instantiate(#name, __builtin_return_address(0), name, a, b, c, d, e); \
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

// This object's function for a lookup of one of these names; NULL for other names.
static void* looked_up_instantiation(void* library, const char* symbol) {
  static const struct { const char* symbol; Instantiate own; } OWN[] = {
    { "cudaGraphInstantiate", cudaGraphInstantiate },
    { "cudaGraphInstantiateWithFlags", cudaGraphInstantiateWithFlags },
    { "cudaGraphInstantiateWithParams", cudaGraphInstantiateWithParams },
    { "cudaGraphInstantiateWithParams_ptsz", cudaGraphInstantiateWithParams_ptsz },
    { "cuGraphInstantiate", cuGraphInstantiate }, { "cuGraphInstantiate_v2", cuGraphInstantiate_v2 },
    { "cuGraphInstantiateWithFlags", cuGraphInstantiateWithFlags },
    { "cuGraphInstantiateWithParams", cuGraphInstantiateWithParams },
    { "cuGraphInstantiateWithParams_ptsz", cuGraphInstantiateWithParams_ptsz },
  };
  for (u32 i = 0; i < COUNT(OWN); i++)
    if (!strcmp(symbol, OWN[i].symbol) && lookup(library, symbol)) return (void*)OWN[i].own;
  return NULL;
}
