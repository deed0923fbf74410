// Probes the driver and libcupti for `warpscope doctor`: runs when this object is loaded into a process made for it,
// prints a key and a value per line, and ends that process.

static void probe_say(const char* key, u64 value, const char* text) {
  char line[700];
  int n = text ? snprintf(line, sizeof line, "%s %s\n", key, text)
               : snprintf(line, sizeof line, "%s %lu\n", key, value);
  if (n > 0) SYSTEM(SYS_WRITE, 1, line, (u64)n < sizeof line ? (u64)n : sizeof line - 1);
}
static void probe_cuda(void) {
  int (*init)(u32) = NULL, (*version)(int*) = NULL, number = 0;
  void* driver = dlopen("libcuda.so.1", RTLD_NOW);
  if (driver) *(void**)&init = lookup(driver, "cuInit");
  if (driver) *(void**)&version = lookup(driver, "cuDriverGetVersion");
  if (!init) {
    probe_say("no_driver", 0, dlerror());
    return;
  }
  int error = init(0);
  probe_say("cuda", (u64)error, NULL);
  if (version && !version(&number)) probe_say("driver", (u64)number, NULL);
  if (error) return;
  int taken = find_library() > 0;
  if (session.refusal || taken) probe_say("subscribe", session.refusal, NULL);
  if (taken) probe_say("kernels", (u64)cuptiActivityEnable(KIND_KERNEL), NULL);
  if (session.library[0]) probe_say("libcupti", 0, session.library);
  if (taken) probe_say("cupti_version", cupti_version, NULL);
  if (session.unusable) probe_say("unusable", 0, session.unusable);
  if (!taken) probe_say("reason", 0, session.reason);
}
__attribute__((constructor)) static void probe(void) {
  const char* wanted_ = getenv("WARPSCOPE_TRACE_PROBE");
  if (!wanted_ || !*wanted_) return;
  probe_cuda();
  SYSTEM(SYS_EXIT_GROUP, 0);
}
