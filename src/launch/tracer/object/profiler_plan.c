// The measurement plan: the profiler's library, and the metrics that this chip supports.

static int measure_library(void) {
  static char path[600];
  void* library = dlopen(session.library, RTLD_NOW | RTLD_NOLOAD);
  if (!library) library = dlopen(session.library, RTLD_NOW);
  // CUPTI looks up this library by its name alone.
  int n = snprintf(path, sizeof path, "%s", session.library);
  while (n > 0 && path[n - 1] != '/') n--;
  snprintf(path + n, sizeof path - (u64)n, "libnvperf_host.so");
  if (!dlopen(path, RTLD_NOW | 0x100 /* RTLD_GLOBAL */) && !dlopen("libnvperf_host.so", RTLD_NOW | 0x100)) {
    measure.why_not = "libnvperf_host.so is not beside libcupti";
    return 0;
  }
#define X(name) *(void**)&name = library ? lookup(library, #name) : NULL;
  PROFILER_FUNCTIONS X(cuptiProfilerInitialize) X(cuptiGetDeviceId)
#undef X
  int all = cuptiProfilerInitialize && cuptiGetDeviceId;
#define X(name) all = all && name;
  PROFILER_FUNCTIONS
#undef X
  if (!all) measure.why_not = "libcupti is older than 12.6 and has no range profiler";
  return all;
}

static int measure_failed(const char* what, Result r) {
  static char text[200];
  if (r == OK) return 0;
  snprintf(text, sizeof text,
    r == ERROR_INSUFFICIENT_PRIVILEGES ? "this user has no permission to access GPU performance counters (%s)"
      : r == ERROR_HARDWARE_BUSY
      ? "another profiler, such as DCGM, or another process that is measured holds the GPU's counters (%s)"
      : "%s: %s",
    what, result_text(r));
  measure.why_not = text;
  return 1;
}

// Step at which planning last failed, and its result.
static const char* plan_step;
static Result plan_result;
static int planned_(const char* step, Result r) {
  plan_step = step, plan_result = r;
  return r == OK;
}

// Plans the metrics of a set for the chip. Returns the number of passes, or 0 if one of the metrics is unknown.
static u32 set_plan(Set* g, const char* chip) {
  cuptiProfilerHostInitialize_P host;
  g->passes = 0;
  if (!planned_("cuptiProfilerHostInitialize", ASK(cuptiProfilerHostInitialize, host, .chip = chip))) return 0;
  g->host = host.host;
  cuptiProfilerHostConfigAddMetrics_P add;
  cuptiProfilerHostGetConfigImageSize_P size;
  cuptiProfilerHostGetConfigImage_P image;
  cuptiProfilerHostGetNumOfPasses_P passes;
  // Add all metrics in one call; otherwise, each metric gets its own pass.
  if (planned_("cuptiProfilerHostConfigAddMetrics",
        ASK(cuptiProfilerHostConfigAddMetrics, add, .host = g->host, .metrics = g->metrics, .count = g->count)) &&
    planned_("cuptiProfilerHostGetConfigImageSize", ASK(cuptiProfilerHostGetConfigImageSize, size, .host = g->host)) &&
    (g->config = pages(size.bytes, 0)) &&
    planned_("cuptiProfilerHostGetConfigImage",
      ASK(cuptiProfilerHostGetConfigImage, image, .host = g->host, .bytes = size.bytes, .image = g->config)) &&
    planned_("cuptiProfilerHostGetNumOfPasses",
      ASK(cuptiProfilerHostGetNumOfPasses, passes, .bytes = size.bytes, .image = g->config)))
    g->config_bytes = size.bytes, g->passes = (u32)passes.passes;
  return g->passes;
}

static int has_metric(const Set* g, const char* metric) {
  for (u32 i = 0; i < g->count; i++)
    if (!strcmp(g->metrics[i], metric)) return 1;
  return 0;
}

// Adds metrics to a set, except for those that the chip, or this version of CUPTI, does not support.
static void set_take(Set* to, const char** metrics, u32 count, const char* chip) {
  static Set trial;
  if (!count) return;
  trial.count = count;
  memcpy(trial.metrics, metrics, count * sizeof *metrics);
  int known = set_plan(&trial, chip) != 0;
  cuptiProfilerHostDeinitialize_P end;
  if (trial.host) ASK(cuptiProfilerHostDeinitialize, end, .host = trial.host);
  trial.host = NULL;
  for (u32 i = 0; known && i < count && to->count < SET_METRICS; i++)
    if (!has_metric(to, metrics[i])) to->metrics[to->count++] = metrics[i];
  if (known || count == 1) return;
  set_take(to, metrics, count / 2, chip);
  set_take(to, metrics + count / 2, count - count / 2, chip);
}

static int set_images(Set* g) {
  cuptiRangeProfilerGetCounterDataSize_P size;
  cuptiRangeProfilerCounterDataImageInitialize_P begin_;
  if (measure_failed("cuptiRangeProfilerGetCounterDataSize",
        ASK(cuptiRangeProfilerGetCounterDataSize, size, .object = measure.object, .metrics = g->metrics,
          .count = g->count, .ranges = WINDOW, .nodes = WINDOW)))
    return 0;
  g->data_bytes = size.bytes, g->data = pages(size.bytes, 0), g->clean = pages(size.bytes, 0);
  if (!g->data || !g->clean) return 0;
  // An image can be initialized only right after its size was requested, so a pristine copy is kept.
  return !measure_failed("cuptiRangeProfilerCounterDataImageInitialize",
    ASK(cuptiRangeProfilerCounterDataImageInitialize, begin_, .object = measure.object, .bytes = size.bytes,
      .data = g->clean));
}

// Writes the metrics and the number of passes of each set, which must precede the first values.
static void sets_write(void) {
  static u8 data[64 << 10];
  for (u32 i = 0; i < SETS; i++) {
    u8* p = put_number(data, i);
    p = put_number(p, sets[i].passes), p = put_number(p, sets[i].count);
    for (u32 k = 0; k < sets[i].count; k++) p = put_number(p, name(sets[i].metrics[k]));
    names_flush();
    put_block(BLOCK_SETS, 0, 0, 1, data, (u32)(p - data));
  }
}

static char plan_text[PLAN_BYTES];
static const char* plan_groups;

static void plan_size(const char* p, u32* size) {
  for (u32 i = 0; i < 3; i++) {
    size[i] = (u32)number_of(p);
    while (*p && *p != ' ') p++;
    p += *p == ' ';
  }
}

// Parses a range: its index (0 for every instance), its domain (without colons) and its text.
static void plan_range(const char* p) {
  asked_range.only = (u32)number_of(p);
  while (*p && *p != ' ') p++;
  const char* domain = *p ? p + 1 : p;
  for (p = domain; *p && *p != ':';) p++;
  asked_range.domain = p > domain ? name_of(domain, (u64)(p - domain)) : 0;
  if (*p) asked_range.text = name(p + 1);
}

// Reads the lines before the groups; the sections of each chip are read once the chip is known.
static void plan_read(void) {
  int file = file_open(measure.plan, O_RDONLY | O_CLOEXEC);
  u64 n = 0;
  for (long k; file >= 0 && n < PLAN_BYTES - 1 && (k = file_read(file, plan_text + n, PLAN_BYTES - 1 - n)) > 0;)
    n += (u64)k;
  if (file >= 0) file_close(file);
  measure.share = 90;
  for (char* line = plan_text; *line;) {
    char* end = line;
    while (*end && *end != '\n') end++;
    if (!strncmp(line, "chip ", 5)) {
      plan_groups = line;
      break;
    }
    int last = !*end;
    *end = 0;
    if (!strncmp(line, "survey ", 7)) measure.budget = number_of(line + 7);
    if (!strncmp(line, "share ", 6)) measure.share = number_of(line + 6);
    if (!strncmp(line, "grid ", 5)) plan_size(line + 5, asked_grid);
    if (!strncmp(line, "block ", 6)) plan_size(line + 6, asked_block);
    if (!strncmp(line, "range ", 6)) plan_range(line + 6);
    int read = 1;
    if (!strncmp(line, "next ", 5)) read = asked_add(line + 5, -1, 0);
    int only_stalls = !strncmp(line, "stalls ", 7);
    if (only_stalls || !strncmp(line, "launch ", 7)) {
      char* text = line + 7;
      while (*text && *text != ' ') text++;
      if (*text) read = asked_add(text + 1, (i64)number_of(line + 7), (u32)only_stalls);
    }
    if (!read) measure.why_not = "an expression for kernels could not be read, or too many kernels were asked for";
    line = end + !last;
  }
}

// Returns the line after `chip NAME`; NULL if there is none.
static char* groups_of(const char* chip) {
  u64 n = strlen(chip);
  for (char* line = (char*)plan_groups; line && *line;) {
    char* end = line;
    while (*end && *end != '\n') end++;
    if (!strncmp(line, "chip ", 5) && (u64)(end - line) == n + 5 && !strncmp(line + 5, chip, n))
      return *end ? end + 1 : NULL;
    line = *end ? end + 1 : end;
  }
  return NULL;
}

static void groups_read(const char* chip) {
  u32 first = 0;
  static const char* metrics[SET_METRICS];
  static char like[32];
  char* line = groups_of(chip);
  // For a chip without its own groups, use the generic ones, minus the metrics that the chip does not support.
  if (!line) line = groups_of("*");
  if (line && !strncmp(line, "as ", 3)) {
    u32 n = 0;
    for (const char* p = line + 3; *p && *p != '\n' && n < sizeof like - 1; p++) like[n++] = *p;
    like[n] = 0;
    line = groups_of(like);
  }
  for (; line && !strncmp(line, "group ", 6);) {
    char* end = line;
    while (*end && *end != '\n') end++;
    int last = !*end;
    *end = 0;
    u32 count = 0, question = 0;
    for (char* word = line + 6; *word;) {
      char* stop = word;
      while (*stop && *stop != ' ') stop++;
      int over = !*stop;
      *stop = 0;
      if (!question) question = name(word);
      else if (count < SET_METRICS) metrics[count++] = word;
      word = stop + !over;
    }
    // The metrics that hints need most come first, and are not measured again with the rest.
    if (!first) first = question;
    set_take(&sets[SET_REPLAYED], metrics, count, chip);
    // Counters of executed instructions patch the code: in a survey, they slow down the kernel a hundredfold and yield
    // nothing.
    u32 kept = 0;
    for (u32 i = 0; i < count; i++)
      if (!strstr(metrics[i], "__sass_") || strstr(metrics[i], ".peak_sustained")) metrics[kept++] = metrics[i];
    set_take(&sets[question == first ? SET_FIRST : SET_REST], metrics, kept, chip);
    line = last ? NULL : end + 1;
  }
}

static int measure_prepare(void) {
  u32 device = 0;
  cuptiProfilerInitialize_P first = { sizeof first, NULL };
  cuptiDeviceGetChipName_P chip;
  cuptiRangeProfilerEnable_P enable;
  if (!measure_library()) return 0;
  if (measure_failed("cuptiProfilerInitialize", cuptiProfilerInitialize(&first))) return 0;
  if (measure_failed("cuptiGetDeviceId", cuptiGetDeviceId(measure.context, &device))) return 0;
  if (measure_failed("cuptiDeviceGetChipName", ASK(cuptiDeviceGetChipName, chip, .device = device))) return 0;
  groups_read(chip.chip);
  int planned = 1;
  // On a chip with few known metrics, the second set may be empty.
  for (u32 i = 0; i < SETS; i++)
    if (sets[i].count || i != SET_REST)
      planned = planned && set_plan(&sets[i], chip.chip) && (i >= SWEPT || sets[i].passes <= PASSES);
  if (!planned) {
    static char text[200];
    snprintf(text, sizeof text, "the metrics of %s cannot be planned (%u of the first group are known; %s: %s)",
      chip.chip, sets[SET_FIRST].count, plan_step ? plan_step : "none", result_text(plan_result));
    measure.why_not = text;
    return 0;
  }
  if (measure_failed("cuptiRangeProfilerEnable", ASK(cuptiRangeProfilerEnable, enable, .context = measure.context)))
    return 0;
  measure.object = enable.object;
  for (u32 i = 0; i < SETS; i++)
    if (sets[i].count && !set_images(&sets[i])) return 0;
  sets_write();
  measure.planned = 1, measure.device = device;
  return 1;
}

