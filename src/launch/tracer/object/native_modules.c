// Modules of this process: its executable and libraries, by the addresses of their code. They are taken from the memory
// map instead of the dynamic loader, whose lock may be held for any length of time. A module may be unloaded at any
// moment, so its headers are read like all other memory of the program: by a system call that fails if it is gone.

#if defined(__x86_64__)
enum { SYS_NEWFSTATAT = 262 };
#else
enum { SYS_NEWFSTATAT = 79 };
#endif
enum { NATIVE_MODULES = 2048, BUILD_ID = 32, ELF_HEADER = 64, PROGRAM_HEADER = 56, PROGRAM_HEADERS = 32 };
typedef struct {
  // Addresses of the code, and of the ELF header.
  u64 start, end, header;
  // Device and inode, which distinguish it from another file at the same address, and the string id of its path.
  u64 device, node;
  u32 path;
  // Number of the module in the trace; 0 until a stack refers to it.
  u32 number;
  // Set once the headers were read; the fields below are zero until then.
  int is_read;
  // Address minus virtual address in the file; binary search table of .eh_frame_hdr, the address that it is relative
  // to, and its length.
  u64 bias, table, table_base;
  u32 entries;
  // Size and modification time (s) of the file, by which it is recognized if it has no build id.
  u64 file_bytes, file_time;
  u32 build_id_bytes;
  u8 build_id[BUILD_ID];
  // Hash of the ELF header: once it changes, another module has taken this one's place.
  u64 hash;
  int is_used;
  // Set for this object.
  int is_own;
} NativeModule;

static struct {
  NativeModule *list, *other;
  u32 count;
  // Incremented when the list changes: what was derived from it is then outdated.
  u32 turn;
  // Monotonic time from which the list may be read again, current interval between readings, and time of the last
  // native_modules_check; all in ns.
  u64 next, after, checked;
  int is_changed;
} native_modules;
static const u64 MODULES_SOON_NS = 20000000, MODULES_RARELY_NS = 10000000000ul, MODULES_CHECK_NS = 100000000;

static int native_modules_prepare(void) {
  if (!native_modules.list) native_modules.list = pages(NATIVE_MODULES * sizeof(NativeModule), 0);
  if (!native_modules.other) native_modules.other = pages(NATIVE_MODULES * sizeof(NativeModule), 0);
  return native_modules.list && native_modules.other;
}

static u64 hex_word(const char** text) {
  u64 v = 0;
  for (const char* p = *text;; p++) {
    if (*p >= '0' && *p <= '9') v = v << 4 | (u64)(*p - '0');
    else if (*p >= 'a' && *p <= 'f') v = v << 4 | (u64)(*p - 'a' + 10);
    else return *text = p, v;
  }
}

static NativeModule* native_module_at(u64 address) {
  // Frames that follow each other are often of one module.
  static u32 last;
  if (last < native_modules.count && address - native_modules.list[last].start <
    native_modules.list[last].end - native_modules.list[last].start)
    return &native_modules.list[last];
  u32 low = 0, high = native_modules.count;
  while (low < high) {
    u32 middle = (low + high) / 2;
    if (native_modules.list[middle].end <= address) low = middle + 1;
    else high = middle;
  }
  if (low >= native_modules.count || native_modules.list[low].start > address) return NULL;
  return &native_modules.list[last = low];
}

// The last mapping of the beginning of a file, which has the ELF header of the mappings that follow.
typedef struct { u64 start, device, node; } FileStart;

// Adds the module of a line of the memory map, if it is one.
static void native_module_add(const char* line, FileStart* begin, NativeModule* list, u32* count) {
  const char* p = line;
  NativeModule m = { 0 };
  m.start = hex_word(&p), p += *p == '-';
  m.end = hex_word(&p), p += *p == ' ';
  int is_code = strlen(p) > 4 && p[2] == 'x';
  p += is_code || strlen(p) > 4 ? 5 : 0;
  u64 offset = hex_word(&p);
  p += *p == ' ';
  m.device = hex_word(&p) << 32, p += *p == ':';
  m.device |= hex_word(&p), p += *p == ' ';
  m.node = number_of(p);
  while (*p && *p != ' ') p++;
  while (*p == ' ') p++;
  int is_vdso = !strcmp(p, "[vdso]");
  if (!offset && m.node) *begin = (FileStart){ m.start, m.device, m.node };
  if (!is_code || (!m.node && !is_vdso) || *count >= NATIVE_MODULES) return;
  int same = begin->node == m.node && begin->device == m.device;
  if (!is_vdso && !same) return;
  m.header = is_vdso ? m.start : begin->start;
  static const char GONE[] = " (deleted)";
  u64 length = strlen(p), gone_length = sizeof GONE - 1;
  if (length > gone_length && !strcmp(p + length - gone_length, GONE)) length -= gone_length;
  m.path = name_of(p, length);
  NativeModule* was = native_module_at(m.start);
  int is_known = was && was->start == m.start && was->end == m.end && was->header == m.header && was->path == m.path &&
    was->node == m.node && was->device == m.device;
  if (is_known) {
    m = *was;
  } else {
    u64 status[32];
    // The layout is the same for both architectures.
    if (m.node && !SYSTEM(SYS_NEWFSTATAT, AT_FDCWD, p, status, 0)) m.file_bytes = status[6], m.file_time = status[11];
    m.is_own = (u64)native_module_add >= m.start && (u64)native_module_add < m.end;
    native_modules.is_changed = 1;
  }
  list[(*count)++] = m;
}

// Reads the memory map. Returns 1 if the modules are not the same as before.
static int native_modules_read(void) {
  static char text[16 << 10];
  int file = file_open("/proc/self/maps", O_RDONLY | O_CLOEXEC);
  if (file < 0) return 0;
  NativeModule* list = native_modules.other;
  u32 count = 0, held = 0;
  native_modules.is_changed = 0;
  FileStart begin = { 0, 0, 0 };
  for (long n; (n = file_read(file, text + held, sizeof text - 1 - held)) > 0;) {
    held += (u32)n, text[held] = 0;
    char* line = text;
    for (char* p = text; p < text + held; p++)
      if (*p == '\n') *p = 0, native_module_add(line, &begin, list, &count), line = p + 1;
    held -= (u32)(line - text);
    memmove(text, line, held);
    // No line is that long, so this is not a memory map.
    if (held == sizeof text - 1) break;
  }
  file_close(file);
  if (count != native_modules.count) native_modules.is_changed = 1;
  native_modules.other = native_modules.list, native_modules.list = list, native_modules.count = count;
  native_modules.turn += (u32)native_modules.is_changed;
  return native_modules.is_changed;
}

// The memory map is read again when an address is in no module, but ever more rarely while that finds nothing: the code
// may have been generated.
static void native_modules_look(u64 monotonic) {
  if (monotonic < native_modules.next) return;
  u64 after = native_modules.after;
  if (native_modules_read() || !after) after = MODULES_SOON_NS;
  else after = after * 2 < MODULES_RARELY_NS ? after * 2 : MODULES_RARELY_NS;
  native_modules.after = after, native_modules.next = monotonic + after;
}

static u64 header_hash(const u8* header) { return hash_bytes((const char*)header, ELF_HEADER); }

// Takes the build id from a segment of notes.
static void build_id_read(NativeModule* m, u64 at, u64 bytes) {
  static u8 notes[1024];
  if (bytes > sizeof notes) bytes = sizeof notes;
  if (!peek((const void*)at, notes, bytes)) return;
  for (u64 i = 0; i + 12 <= bytes;) {
    u32 name_bytes, data_bytes, type;
    memcpy(&name_bytes, notes + i, 4), memcpy(&data_bytes, notes + i + 4, 4), memcpy(&type, notes + i + 8, 4);
    if (name_bytes > bytes || data_bytes > bytes) return;
    u64 data = i + 12 + ((name_bytes + 3) & ~3u), next = data + ((data_bytes + 3) & ~3u);
    if (next > bytes) return;
    if (type == 3 /* NT_GNU_BUILD_ID */ && name_bytes == 4 && !memcmp(notes + i + 12, "GNU", 4)) {
      m->build_id_bytes = data_bytes < BUILD_ID ? data_bytes : BUILD_ID;
      memcpy(m->build_id, notes + data, m->build_id_bytes);
      return;
    }
    i = next;
  }
}

static void unwind_table_read(NativeModule* m, u64 at) {
  // DW_EH_PE_udata4, and DW_EH_PE_datarel | DW_EH_PE_sdata4: all linkers write these.
  enum { COUNT_ENCODING = 3, TABLE_ENCODING = 0x3b, ANY_OF_4_BYTES = 3, ANY_SIGNED_OF_4_BYTES = 0xb };
  u8 head[12];
  if (!peek((const void*)at, head, sizeof head) || head[0] != 1) return;
  int is_usual = head[2] == COUNT_ENCODING && head[3] == TABLE_ENCODING &&
    ((head[1] & 0xf) == ANY_OF_4_BYTES || (head[1] & 0xf) == ANY_SIGNED_OF_4_BYTES);
  if (!is_usual) return;
  memcpy(&m->entries, head + 8, 4);
  m->table_base = at, m->table = at + sizeof head;
}

// Reads the headers of a module when a stack first needs them.
static void native_module_read(NativeModule* m) {
  enum { LOADED = 1, NOTES = 4, UNWIND_TABLE = 0x6474e550 };
  static u8 headers[PROGRAM_HEADERS * PROGRAM_HEADER];
  u8 head[ELF_HEADER];
  m->is_read = 1;
  if (!peek((const void*)m->header, head, sizeof head)) return;
  // ELF of 64 bits, little-endian.
  if (memcmp(head, "\177ELF\2\1", 6)) return;
  m->hash = header_hash(head);
  u64 at = word_at(head, 32);
  u32 each = head[54] | (u32)head[55] << 8, count = head[56] | (u32)head[57] << 8;
  if (each != PROGRAM_HEADER || !count || at > 1 << 20) return;
  if (count > PROGRAM_HEADERS) count = PROGRAM_HEADERS;
  if (!peek((const u8*)m->header + at, headers, count * PROGRAM_HEADER)) return;
  int loaded = 0;
  for (u32 i = 0; i < count && !loaded; i++) {
    const u8* h = headers + i * PROGRAM_HEADER;
    u64 offset = word_at(h, 8), address = word_at(h, 16);
    if ((u32)word_at(h, 0) == LOADED && offset < 4096) m->bias = m->header - (address - offset), loaded = 1;
  }
  for (u32 i = 0; i < count && loaded; i++) {
    const u8* h = headers + i * PROGRAM_HEADER;
    u64 address = word_at(h, 16) + m->bias, bytes = word_at(h, 40);
    u32 type = (u32)word_at(h, 0);
    if (type == NOTES && !m->build_id_bytes) build_id_read(m, address, bytes);
    if (type == UNWIND_TABLE) unwind_table_read(m, address);
  }
}

static NativeModule* native_module_of(u64 address) {
  NativeModule* m = native_module_at(address);
  if (m && !m->is_read) native_module_read(m);
  if (m) m->is_used = 1;
  return m;
}

// A module may have been replaced by another at the same address.
static void native_modules_check(u64 monotonic) {
  if (monotonic - native_modules.checked < MODULES_CHECK_NS) return;
  native_modules.checked = monotonic;
  int changed = 0;
  for (u32 i = 0; i < native_modules.count; i++) {
    NativeModule* m = &native_modules.list[i];
    u8 head[ELF_HEADER];
    if (!m->is_used || !m->hash) continue;
    m->is_used = 0;
    if (peek((const void*)m->header, head, sizeof head) && header_hash(head) == m->hash) continue;
    m->path = 0, changed = 1;
  }
  if (changed) native_modules_read();
}
