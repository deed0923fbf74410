// Finds the function behind an interposed one, that is, the one that the program would have called without this object.
// Programs reach the interposed ones by name, because LD_PRELOAD puts this object before CUDA's libraries, or by dlsym.

// Dl_info: a module's file and address, and the symbol at an address.
typedef struct { const char* file; void* base; const char* symbol; void* address; } Where;
static void* base_of(const void* function) {
  Where where = { NULL, NULL, NULL, NULL };
  return function && dladdr(function, &where) ? where.base : NULL;
}
static int is_own(const void* function) { return base_of(function) == base_of((const void*)is_own); }

// True for the files of CUDA's libraries, also those that a Python package has renamed (libcudart-e409450e.so.11.0).
static int is_cuda_file(const char* file) {
  const char* name = file;
  for (; file && *file; file++)
    if (*file == '/') name = file + 1;
  return name &&
    (!strncmp(name, "libcudart", 9) || !strncmp(name, "libcuda.so", 10) || !strncmp(name, "libcupti", 8));
}
static int is_of_cuda(const void* function) {
  Where where = { NULL, NULL, NULL, NULL };
  return dladdr(function, &where) && is_cuda_file(where.file);
}

// Looks a symbol up in a loaded library without keeping it loaded.
static void* lookup_in(const char* file, const char* symbol) {
  void* library = dlopen(file, RTLD_NOW | RTLD_NOLOAD);
  void* found = library ? lookup(library, symbol) : NULL;
  if (library) dlclose(library);
  return found && !is_own(found) ? found : NULL;
}

// dl_phdr_info.
typedef struct {
  u64 base;
  const char* file;
  const void* headers;
  u16 count;
  u64 loaded, unloaded;
} LoadedModule;
enum { CUDA_FILES = 8 };
typedef struct { u32 count; char files[CUDA_FILES][512]; } CudaFiles;
// Must not call dlopen or dlsym, which take the loader's lock: other threads take it before that of dl_iterate_phdr.
static int cuda_file_add(const LoadedModule* module, u64 size, CudaFiles* all) {
  (void)size;
  u64 length = module->file ? strlen(module->file) : 0;
  if (all->count < CUDA_FILES && length && length < sizeof all->files[0] && is_cuda_file(module->file))
    memcpy(all->files[all->count++], module->file, length + 1);
  return 0;
}
// Looks a symbol up in CUDA's libraries that are loaded, which the scopes of other libraries may not contain.
static NOINLINE void* lookup_in_cuda(const char* symbol) {
  CudaFiles all = { 0, { { 0 } } };
  void* found = NULL;
  dl_iterate_phdr((int (*)(void*, u64, void*))cuda_file_add, &all);
  for (u32 i = 0; i < all.count && !found; i++) found = lookup_in(all.files[i], symbol);
  return found;
}

static NOINLINE void* find_behind(const char* symbol, const void* caller) {
  Where where = { NULL, NULL, NULL, NULL };
  void* own = dladdr(caller, &where) && where.file ? lookup_in(where.file, symbol) : NULL;
  void* next = lookup((void*)RTLD_NEXT, symbol);
  if (next && is_own(next)) next = NULL;
  // The loader would choose the next one, unless that belongs to another release of the runtime, whose symbols have
  // other versions: then it is the caller's own. If the next one is not CUDA's, another preloaded object interposes it.
  if (own && (!next || is_of_cuda(next))) return own;
  return next ? next : lookup_in_cuda(symbol);
}

static int unloaded_of(const LoadedModule* module, u64 size, u64* unloaded) {
  if (size >= sizeof *module) *unloaded = module->unloaded;
  return 1;
}
// Number of libraries unloaded so far. Once it changes, the address of a caller or function may be in another library.
static u64 unloaded_libraries(void) {
  u64 unloaded = 0;
  dl_iterate_phdr((int (*)(void*, u64, void*))unloaded_of, &unloaded);
  return unloaded;
}

// A search takes the loader's lock, so the results are kept until a library is unloaded.
enum { KEPT_BEHIND = 64 };
typedef struct { const char* symbol; const void* caller; u64 unloaded; void* volatile found; } KeptBehind;
static KeptBehind kept_behind[KEPT_BEHIND];
static u32 kept_count;
static void* function_behind(const char* symbol, const void* caller) {
  u32 count = GET(kept_count);
  u64 unloaded = unloaded_libraries();
  for (u32 i = 0; i < count && i < KEPT_BEHIND; i++) {
    const KeptBehind* kept = &kept_behind[i];
    void* found = __atomic_load_n(&kept->found, __ATOMIC_ACQUIRE);
    if (found && kept->symbol == symbol && kept->caller == caller && kept->unloaded == unloaded) return found;
  }
  void* found = find_behind(symbol, caller);
  u32 at = found && count < KEPT_BEHIND ? ADD(kept_count, 1) : KEPT_BEHIND;
  if (at < KEPT_BEHIND) {
    kept_behind[at].symbol = symbol, kept_behind[at].caller = caller, kept_behind[at].unloaded = unloaded;
    __atomic_store_n(&kept_behind[at].found, found, __ATOMIC_RELEASE);
  }
  return found;
}

// Returns the entry through which a function that was looked up is called: the same name may be looked up in several
// libraries, so each function found has an entry of its own. Returns NULL if all entries are in use.
enum { ENTRIES = 8 };
typedef struct { void* volatile behind[ENTRIES]; } Entries;
static void* entry_for(Entries* entries, void* const* functions, void* found) {
  for (u32 i = 0; i < ENTRIES; i++) {
    void* there = NULL;
    if (__atomic_compare_exchange_n(&entries->behind[i], &there, found, 0, __ATOMIC_ACQ_REL, __ATOMIC_ACQUIRE) ||
      there == found)
      return functions[i];
  }
  return NULL;
}
#define EACH_ENTRY(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7)

// Finds the result that a lookup of one of the interposed names would have without this object: programs test for CUDA
// this way, and must not find these names if it is not loaded. Returns NULL if the next dlsym decides.
static void* looked_up(void* library, const char* symbol, Entries* entries, void* const* functions) {
  void* found = lookup(library, symbol);
  if (!found) return NULL;
  if (!is_own(found)) return library ? entry_for(entries, functions, found) : NULL;
  found = lookup((void*)RTLD_NEXT, symbol);
  // A lookup without a library (RTLD_DEFAULT) does not find libraries that were loaded with a local scope.
  if (library && (!found || is_own(found))) found = lookup_in_cuda(symbol);
  if (found && !is_own(found)) return NULL;
  // Fails, so that dlerror reports an error.
  lookup(NULL, "a function of CUDA, which is not loaded");
  return NOT_FOUND;
}
