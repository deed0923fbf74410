// Encodes CUPTI's activity records as rows: differences from the previous row, as variable-length integers.

enum { ROWS = 256 << 10, WIDEST = 400 };

typedef struct {
  u8* data;
  u32 n, count;
  u16 type, flags;
  // Values of the previous row, relative to which the next one is encoded.
  u64 correlation, start, node, thread;
} Rows;

static struct {
  Lock lock;
  Rows kernels, memops, calls, graphs, memory, overhead, configs;
  // Thread and number of the buffer that is being packed, its bytes, and the current record.
  u32 thread, buffer;
  u8 *bytes, *record;
  u64 valid;
  // Time when the current record's window opened (0 without a gate), and time when CUPTI stopped recording after it (~0
  // until then).
  u64 opened, closed;
} rows;

static struct {
  u64 kernels, memops, graphs, calls, other, invalid, inline_configs, outside, dropped, refused, buffers, packing_ns;
} counted;

// A launch configuration and its stream; rows refer to it by id.
typedef struct {
  u32 name, grid[3], block[3], cluster[3], static_shared, dynamic_shared, registers, local, executed, device, context,
    stream, graph, type;
} Config;
enum { CONFIGS = 1 << 16 };
static struct { Config* list; u32 *index, count; } configs;

static int rows_prepare(void) {
  Rows* all[] = { &rows.kernels, &rows.memops, &rows.calls, &rows.graphs, &rows.memory, &rows.overhead, &rows.configs };
  const u16 types[] = { BLOCK_KERNELS, BLOCK_MEMOPS, BLOCK_CALLS, BLOCK_GRAPHS, BLOCK_MEMORY, BLOCK_OVERHEAD,
    BLOCK_CONFIGS };
  for (u32 i = 0; i < COUNT(all); i++) {
    all[i]->type = types[i];
    if (!(all[i]->data = pages(ROWS + WIDEST, 0))) return 0;
  }
  configs.list = pages(sizeof(Config) * CONFIGS, 0);
  configs.index = pages(sizeof(u32) * CONFIGS * 2, 0);
  return configs.list && configs.index;
}

static void rows_put(Rows* r, u32 thread) {
  u32 count = r->count, n = r->n;
  *r = (Rows){ .data = r->data, .type = r->type };
  if (n) put_block(r->type, r->flags, thread, count, r->data, n);
}
// Writes strings and configurations before the rows that refer to them.
static void configs_flush(void) {
  names_flush();
  rows_put(&rows.configs, 0);
}
static void rows_flush(Rows* r) {
  if (!r->n) return;
  configs_flush();
  rows_put(r, rows.thread);
}
static void rows_flush_all(void) {
  Rows* all[] = { &rows.calls, &rows.kernels, &rows.memops, &rows.graphs, &rows.memory, &rows.overhead };
  for (u32 i = 0; i < COUNT(all); i++) rows_flush(all[i]);
}
// Write position of the next row, with room for WIDEST bytes.
static inline u8* row(Rows* r) {
  if (UNLIKELY(r->n > ROWS)) rows_flush(r);
  return r->data + r->n;
}
static inline void row_end(Rows* r, u8* end) { r->n = (u32)(end - r->data), r->count++; }

static u8* put_config(u8* p, const Config* c) {
  const u32* w = (const u32*)c;
  for (u32 i = 0; i < sizeof *c / 4; i++) p = put_number(p, w[i]);
  return p;
}

// Id of a configuration; 0 if the table is full, in which case the row itself contains the configuration.
static u32 config(const Config* c) {
  u64 h = 0, w;
  for (u32 i = 0; i < sizeof *c; i += 8) {
    memcpy(&w, (const u8*)c + i, 8);
    h = (h ^ w) * 0xff51afd7ed558ccdul, h ^= h >> 32;
  }
  u32 at = (u32)(mix(h) & (CONFIGS * 2 - 1));
  for (;; at = (at + 1) & (CONFIGS * 2 - 1)) {
    u32 id = configs.index[at];
    if (!id) break;
    if (!memcmp(&configs.list[id], c, sizeof *c)) return id;
  }
  if (configs.count + 1 >= CONFIGS) {
    counted.inline_configs++;
    return 0;
  }
  u32 id = configs.count + 1;
  configs.list[id] = *c;
  __atomic_store_n(&configs.count, id, __ATOMIC_RELEASE);
  configs.index[at] = id;
  if (rows.configs.n > ROWS) configs_flush();
  u8* p = put_number(row(&rows.configs), id);
  row_end(&rows.configs, put_config(p, c));
  return id;
}

enum { ROW_NODE = 1, ROW_WIDE = 2 };

// A start may precede the clock reading taken before it by this much, because CUPTI converts the GPU's clock.
static const u64 CLOCKS_NS = 1000000;
typedef struct { u64 start, end; } Times;
// Returns zeros if CUPTI mixed up the times of two replays of a graph, only one of which was recorded (seen with 13.0
// on an H100): a node of the first replay after a gate reopened may have the start of the last replay before it, and a
// node of the last replay the end of one that came after CUPTI had stopped.
static Times times(u64 start, u64 end, u64 node) {
  // A forced flush returns unfinished records, which CUPTI never completes.
  if (UNLIKELY(!start || end < start)) counted.invalid++;
  int mixed = node && (start + CLOCKS_NS < rows.opened || end > rows.closed);
  return UNLIKELY(mixed) ? (Times){ 0, 0 } : (Times){ start, end };
}

// Difference between two ids that increase and wrap around.
static inline i64 id_step(u32 id, u64* before) {
  i64 step = (i32)(id - (u32)*before);
  *before = id;
  return step;
}
static inline i64 step(u64 value, u64* before) {
  i64 d = (i64)(value - *before);
  *before = value;
  return d;
}

// Counters of single launches (profiler_launch.c).
static void measure_saw(u32 id, const Config*, const char* text, u64 start, u64 end);
static int measure_own(u32 correlation, const char* text);

static void pack_kernel(const u8* r) {
  if (UNLIKELY(measure_own(AT32(r, KERNEL_CORRELATION), AT_TEXT(r, KERNEL_NAME)))) {
    counted.other++;
    return;
  }
  u32 v = cupti_version;
  u64 node = v >= HAS_GRAPH_NODE ? AT64(r, KERNEL_GRAPH_NODE) : 0;
  Times t = times(AT64(r, KERNEL_START), AT64(r, KERNEL_END), node);
  Config c = {
    .name = name_by_pointer(AT_TEXT(r, KERNEL_NAME), rows.buffer),
    .static_shared = AT32(r, KERNEL_STATIC_SHARED),
    .dynamic_shared = AT32(r, KERNEL_DYNAMIC_SHARED),
    .registers = AT16(r, KERNEL_REGISTERS),
    .local = AT32(r, KERNEL_LOCAL),
    .executed = AT32(r, KERNEL_SHARED_EXECUTED),
    .device = AT32(r, KERNEL_DEVICE),
    .context = AT32(r, KERNEL_CONTEXT),
    .stream = AT32(r, KERNEL_STREAM),
    .graph = v >= HAS_GRAPH ? AT32(r, KERNEL_GRAPH) : 0,
    .type = r[KERNEL_LAUNCH_TYPE] | (v >= HAS_DEVICE_LAUNCHED && r[KERNEL_DEVICE_LAUNCHED] ? 256u : 0),
  };
  memcpy(c.grid, r + KERNEL_GRID, 12);
  memcpy(c.block, r + KERNEL_BLOCK, 12);
  if (v >= HAS_CLUSTER) memcpy(c.cluster, r + KERNEL_CLUSTER, 12);
  u32 id = config(&c);
  Rows* to = &rows.kernels;
  u8* p = row(to);
  p = put_number(p, (u64)id << 2 | (node ? ROW_NODE : 0) | (id ? 0 : ROW_WIDE));
  if (!id) p = put_config(p, &c);
  p = put_signed(p, id_step(AT32(r, KERNEL_CORRELATION), &to->correlation));
  p = put_signed(p, step(t.start, &to->start));
  p = put_signed(p, (i64)(t.end - t.start));
  if (node) p = put_signed(p, step(node, &to->node));
  row_end(to, p);
  counted.kernels++;
  measure_saw(id, &c, AT_TEXT(r, KERNEL_NAME), t.start, t.end);
}

enum { MEMOP_COPY = 0, MEMOP_PEER = 1, MEMOP_SET = 2 };

static void pack_memop(const u8* r, u32 what) {
  u64 node = 0;
  u32 correlation, graph = 0, v = cupti_version;
  switch (what) {
  case MEMOP_PEER:
    correlation = AT32(r, PEER_CORRELATION);
    if (v >= HAS_GRAPH_NODE) node = AT64(r, PEER_GRAPH_NODE);
    if (v >= HAS_GRAPH) graph = AT32(r, PEER_GRAPH);
    break;
  case MEMOP_SET:
    correlation = AT32(r, SET_CORRELATION);
    if (v >= HAS_GRAPH_NODE) node = AT64(r, SET_GRAPH_NODE);
    if (v >= HAS_GRAPH) graph = AT32(r, SET_GRAPH);
    break;
  default:
    correlation = AT32(r, COPY_CORRELATION);
    if (v >= HAS_GRAPH_NODE) node = AT64(r, COPY_GRAPH_NODE);
    if (v >= HAS_GRAPH) graph = AT32(r, COPY_GRAPH);
  }
  Times t = times(AT64(r, COPY_START), AT64(r, COPY_END), node);
  Rows* to = &rows.memops;
  u8* p = row(to);
  p = put_number(p, what << 1 | (node != 0));
  if (what == MEMOP_SET) {
    p = put_number(p, AT16(r, SET_MEMORY));
  } else {
    p = put_number(p, r[COPY_KIND]), p = put_number(p, r[COPY_FROM]), p = put_number(p, r[COPY_TO]);
  }
  p = put_number(p, AT64(r, COPY_BYTES));
  p = put_signed(p, id_step(correlation, &to->correlation));
  p = put_signed(p, step(t.start, &to->start));
  p = put_signed(p, (i64)(t.end - t.start));
  p = put_number(p, AT32(r, COPY_DEVICE)), p = put_number(p, AT32(r, COPY_CONTEXT)),
  p = put_number(p, AT32(r, COPY_STREAM));
  if (what == MEMOP_PEER) p = put_number(p, AT32(r, PEER_FROM_DEVICE)), p = put_number(p, AT32(r, PEER_TO_DEVICE));
  if (node) p = put_signed(p, step(node, &to->node)), p = put_number(p, graph);
  row_end(to, p);
  counted.memops++;
}

enum { CALL_THREAD = 1, CALL_RETURNED = 2 };

static void put_call(Rows* to, u32 function, u32 correlation, u64 start, u64 end, u32 thread, u32 returned) {
  u8* p = row(to);
  int other = thread != to->thread;
  p = put_number(p, (u64)function << 2 | (other ? CALL_THREAD : 0) | (returned ? CALL_RETURNED : 0));
  p = put_signed(p, id_step(correlation, &to->correlation));
  p = put_signed(p, step(start, &to->start));
  p = put_number(p, end > start ? end - start : 0);
  if (other) p = put_number(p, thread), to->thread = thread;
  if (returned) p = put_number(p, returned);
  row_end(to, p);
  ADD(counted.calls, 1);
}

// Names of driver functions by callback id, filled on demand.
enum { FUNCTIONS = 2048 };
static u32 function_names[FUNCTIONS];
static u32 function_name(u32 id) {
  if (id >= FUNCTIONS) return 0;
  u32 known = function_names[id];
  if (LIKELY(known)) return known;
  const char* text = NULL;
  if (cuptiGetCallbackName(DOMAIN_DRIVER, id, &text) != OK || !text) return 0;
  return function_names[id] = name(text);
}

static void pack_graph(const u8* r) {
  Rows* to = &rows.graphs;
  u8* p = row(to);
  u64 start = AT64(r, GRAPH_START), end = AT64(r, GRAPH_END);
  if (UNLIKELY(!start || end < start)) counted.invalid++;
  p = put_signed(p, id_step(AT32(r, GRAPH_CORRELATION), &to->correlation));
  p = put_signed(p, step(start, &to->start));
  p = put_signed(p, (i64)(end - start));
  p = put_number(p, AT32(r, GRAPH_GRAPH));
  p = put_number(p, AT32(r, GRAPH_DEVICE)), p = put_number(p, AT32(r, GRAPH_CONTEXT)),
  p = put_number(p, AT32(r, GRAPH_STREAM));
  row_end(to, p);
  counted.other++;
  counted.graphs++;
}

static void pack_memory(const u8* r) {
  Rows* to = &rows.memory;
  u8* p = row(to);
  p = put_number(p, AT32(r, MEMORY_OPERATION)), p = put_number(p, AT32(r, MEMORY_KIND));
  p = put_signed(p, step(AT64(r, MEMORY_TIME), &to->start));
  p = put_number(p, AT64(r, MEMORY_ADDRESS)), p = put_number(p, AT64(r, MEMORY_BYTES)),
  p = put_number(p, AT32(r, MEMORY_DEVICE));
  row_end(to, p);
  counted.other++;
}

// An overhead kind in addition to CUPTI's own.
enum { OVERHEAD_MEASURING = 1 << 30 };

static void put_overhead(u32 kind, u32 thread, u64 start, u64 end) {
  Rows* to = &rows.overhead;
  u8* p = row(to);
  p = put_number(p, kind), p = put_number(p, thread);
  p = put_signed(p, step(start, &to->start));
  p = put_number(p, end > start ? end - start : 0);
  row_end(to, p);
  counted.other++;
}
static void pack_overhead(const u8* r) {
  put_overhead(AT32(r, OVERHEAD_KIND), AT32(r, OVERHEAD_THREAD), AT64(r, OVERHEAD_START), AT64(r, OVERHEAD_END));
}
