// The trace file consists of whole blocks, each written in one call, so that a crash of the program truncates at most
// the last block. src/import/wstrace/FORMAT.md specifies the contents.

enum {
  BLOCK_FACTS = 1, BLOCK_STRINGS = 2, BLOCK_CONFIGS = 3, BLOCK_KERNELS = 4, BLOCK_MEMOPS = 5, BLOCK_CALLS = 6,
  BLOCK_EVENTS = 7, BLOCK_GRAPHS = 8, BLOCK_MEMORY = 9, BLOCK_OVERHEAD = 10, BLOCK_THREADS = 11, BLOCK_DEVICE = 12,
  BLOCK_STATE = 13, BLOCK_STOPPED = 14, BLOCK_END = 15, BLOCK_STATES = 16, BLOCK_CATEGORIES = 17,
  BLOCK_SETS = 18, BLOCK_MEASURED = 19, BLOCK_STALLS = 20, BLOCK_CODE = 21,
  BLOCK_FUNCTIONS = 22, BLOCK_STACKS = 23, BLOCK_SAMPLES = 24, BLOCK_GRAPH_NODES = 25, BLOCK_MODULES = 26,
  BLOCK_NATIVE = 27,
};

typedef struct { u32 magic; u16 type, flags; u32 length, count, thread, sequence, crc; } Block;
enum { MAGIC = 0x31545357 /* WST1 */, HEAD = 28, CHECKED = 24, LAST_WORD = HEAD + 16 };

enum { CONTINUES = 1 /* flag of the first block of a file that continues another */ };

typedef struct { int fd; Identity is; u64 bytes; char path[4096]; } File;

static struct {
  Lock lock;
  int pid, opened;
  u32 sequence;
  // Rows in the block that is being written.
  u32 rows;
  // Bytes written so far, including to files that have since been removed.
  u64 bytes;
  // `trouble`: errno that ended writing, 0 so far. `not_created`: errno if the file could not be created, else 0.
  i32 trouble, not_created;
  // The end block has been written.
  int closed;
  File file;
} out = { .file = { .fd = -1 } };

// Ring-buffer mode, which keeps only the last seconds: rows go to numbered files, each for `keep_ns`. The current file
// and the previous one are kept; older ones are removed.
static struct { u64 keep_ns, began; u32 number; File file; } rolling = { .file = { .fd = -1 } };

// CRC-32 (IEEE 802.3), eight bytes per step.
static u32 crc_table[8][256];
static void crc_prepare(void) {
  for (u32 i = 0; i < 256; i++) {
    u32 c = i;
    for (int k = 0; k < 8; k++) c = c & 1 ? c >> 1 ^ 0xedb88320u : c >> 1;
    crc_table[0][i] = c;
  }
  for (u32 i = 0; i < 256; i++)
    for (int k = 1; k < 8; k++) crc_table[k][i] = crc_table[k - 1][i] >> 8 ^ crc_table[0][crc_table[k - 1][i] & 255];
}
static u32 crc_add(u32 crc, const void* bytes, u64 n) {
  const u8* p = bytes;
  crc = ~crc;
  for (; n >= 8; p += 8, n -= 8) {
    u64 w;
    memcpy(&w, p, 8);
    w ^= crc;
    crc = 0;
    for (int k = 0; k < 8; k++) crc ^= crc_table[7 - k][w >> 8 * k & 255];
  }
  for (; n; n--) crc = crc >> 8 ^ crc_table[0][(crc ^ *p++) & 255];
  return ~crc;
}

// Writes all parts. On failure, returns the number of bytes written and sets `why` to the errno.
static u64 write_all(int fd, struct iovec* parts, int count, i32* why) {
  u64 done = 0;
  while (count) {
    long n = SYSTEM(SYS_WRITEV, fd, parts, count);
    if (n == -EINTR) continue;
    *why = n < 0 ? (i32)-n : ENOSPC;
    if (n <= 0) return done;
    done += (u64)n;
    while (count && (u64)n >= parts->length) n -= (long)parts->length, parts++, count--;
    if (count) parts->base = (const u8*)parts->base + n, parts->length -= (u64)n;
  }
  return done;
}

static void head_of(Block* b, u16 type, u16 flags, u32 thread, u32 count, const void* data, u32 length) {
  *b = (Block){ MAGIC, type, flags, length, count, thread, out.sequence++, 0 };
  b->crc = crc_add(crc_add(0, b, CHECKED), data, length);
}

// Writes the first blocks of the file (injection.c).
static void file_begin(void);

static void put_locked(u16 type, u16 flags, u32 thread, u32 count, const void* data, u32 length);

// Counts the blocks written, so that a waiting thread can see progress.
static volatile u64 progress;

// Writes a block; the first one creates the file. `last` marks the final block; later blocks are dropped.
static void put_block_or_last(u16 type, u16 flags, u32 thread, u32 count, const void* data, u32 length, int last) {
  // A child in which no fork handler ran does not write anything.
  if (UNLIKELY(gone || out.pid != process())) return;
  if (UNLIKELY(!lock(&out.lock))) {
    ADD(lost.unwritten, count);
    return;
  }
  // The previous owner of the lock ended while it was writing.
  if (UNLIKELY(out.rows)) ADD(lost.unwritten, out.rows);
  out.rows = count;
  if (UNLIKELY(!out.opened)) out.opened = 1, file_begin();
  if (out.file.fd >= 0 && !GET(out.closed)) put_locked(type, flags, thread, count, data, length);
  if (last) SET(out.closed, 1);
  out.rows = 0;
  // Only the ticker's own blocks count as its progress.
  if (tid() == GET(ticker)) ADD(progress, 1);
  unlock(&out.lock);
}
static void put_block(u16 type, u16 flags, u32 thread, u32 count, const void* data, u32 length) {
  put_block_or_last(type, flags, thread, count, data, length, 0);
}

// Returns true if the file is writable, reopening it if the program closed or reused the descriptor.
static int is_there(File* f) {
  if (LIKELY(f->fd >= 0 && is_same(f->fd, f->is))) return 1;
  if (f->fd < 0) return 0;
  f->fd = high(file_open(f->path, O_WRONLY | O_APPEND | O_CLOEXEC | O_NONBLOCK | O_NOFOLLOW | O_NOCTTY));
  if (is_same(f->fd, f->is)) return 1;
  if (f->fd >= 0) file_close(f->fd);
  f->fd = -1;
  return 0;
}

// Appends a block. Returns 0, or an errno, in which case the file is truncated to its previous end.
static i32 append(File* f, u16 type, u16 flags, u32 thread, u32 count, const void* data, u32 length, u64 room) {
  // The kernel kills a program that writes beyond its file size limit.
  u64 limits[2] = { 0, 0 };
  u64 most = SYSTEM(SYS_PRLIMIT, 0, RLIMIT_FSIZE, NULL, limits) ? ~0ul : limits[0];
  Block b;
  head_of(&b, type, flags, thread, count, data, length);
  struct iovec parts[2] = { { &b, HEAD }, { data, length } };
  int fits = f->bytes + HEAD + length + room <= most;
  i32 failed = 0;
  u64 n = fits ? write_all(f->fd, parts, length ? 2 : 1, &failed) : 0;
  if (fits && n == HEAD + (u64)length) {
    f->bytes += n, out.bytes += n;
    return 0;
  }
  i32 why = !fits ? EFBIG : n ? ENOSPC : failed;
  // A block that failed does not use up a sequence number.
  out.sequence--;
  if (SYSTEM(SYS_FTRUNCATE, f->fd, f->bytes)) f->fd = -1;
  return why ? why : ENOSPC;
}

// Starts the next file of rows if it is due, and removes the file before the previous one.
static void roll(void);

// A full disk ends the recording, not the program: an incomplete block is cut off, and its space is used for a block
// that reports the error.
static void put_locked(u16 type, u16 flags, u32 thread, u32 count, const void* data, u32 length) {
  if (out.trouble) return;
  int rows_ = (type >= BLOCK_KERNELS && type <= BLOCK_OVERHEAD) || type == BLOCK_STATES ||
    type == BLOCK_SAMPLES;
  File* f = &out.file;
  if (rolling.keep_ns && rows_) roll(), f = &rolling.file;
  if (out.trouble || !is_there(f)) return;
  out.trouble = append(f, type, flags, thread, count, data, length, LAST_WORD);
  if (LIKELY(!out.trouble) || !is_there(&out.file)) return;
  u8 word[16], *end = put_number(word, (u64)out.trouble);
  append(&out.file, BLOCK_STOPPED, 0, 0, 1, word, (u32)(end - word), 0);
}

// Facts: pairs of key and value strings, each preceded by its length.
typedef struct { u8 data[24 << 10]; u32 n, count; } Facts;
static void fact(Facts* f, const char* key, const char* value) {
  u64 k = strlen(key), v = strlen(value);
  if (f->n + k + v + 20 > sizeof f->data) return;
  u8* p = put_number(f->data + f->n, k);
  memcpy(p, key, k);
  p = put_number(p + k, v);
  memcpy(p, value, v);
  f->n = (u32)(p + v - f->data), f->count++;
}
static void fact_number(Facts* f, const char* key, u64 value) {
  char text[24];
  snprintf(text, sizeof text, "%lu", value);
  fact(f, key, text);
}
static void put_facts(u16 type, Facts* f) {
  put_block(type, 0, 0, f->count, f->data, f->n);
  f->n = f->count = 0;
}

// Returns 0 or an errno.
static i32 open_new(File* f) {
  int fd = file_open(f->path, O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC);
  f->fd = high(fd);
  f->is = identity(f->fd), f->bytes = 0;
  return fd < 0 ? -fd : 0;
}

// Opens PREFIX.PID.wstrace; after an exec in the same process, PREFIX.PID-1.wstrace, and so on.
static int open_file(const char* prefix) {
  out.pid = process();
  for (int i = 0; i < 1000; i++) {
    char suffix[16] = "";
    if (i) snprintf(suffix, sizeof suffix, "-%d", i);
    int n = snprintf(out.file.path, sizeof out.file.path, "%s.%d%s.wstrace", prefix, out.pid, suffix);
    if (n < 0 || n >= (int)sizeof out.file.path) return 0;
    i32 why = out.not_created = open_new(&out.file);
    if (why != EEXIST) return !why;
  }
  return 0;
}

// PREFIX.PID.N.wstrace.
static int part_path(char* path, u32 number) {
  int whole = (int)strlen(out.file.path) - (int)strlen(".wstrace");
  int n = snprintf(path, sizeof out.file.path, "%.*s.%u.wstrace", whole, out.file.path, number);
  return n > 0 && n < (int)sizeof out.file.path;
}

static void facts_of_part(Facts* f, u32 number);
static void roll(void) {
  static Facts f;
  static char old[4096];
  u64 t = clock_now(CLOCK_MONOTONIC);
  if (rolling.number && t - rolling.began < rolling.keep_ns && rolling.file.fd >= 0) return;
  if (rolling.file.fd >= 0 && is_same(rolling.file.fd, rolling.file.is)) file_close(rolling.file.fd);
  rolling.file.fd = -1, rolling.began = t;
  if (rolling.number > 1 && part_path(old, rolling.number - 1)) file_remove(old);
  out.trouble = part_path(rolling.file.path, ++rolling.number) ? open_new(&rolling.file) : ENOSPC;
  if (out.trouble) return;
  f.n = f.count = 0;
  facts_of_part(&f, rolling.number);
  append(&rolling.file, BLOCK_FACTS, CONTINUES, 0, f.count, f.data, f.n, 0);
}
