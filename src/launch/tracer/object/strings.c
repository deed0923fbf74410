// String table: each string is written once, before the first row that refers to its id.

enum { STRINGS = 1 << 20, LONGEST = 60000, STRING_BLOCK = 64 << 10 };
// Limits the total size of the strings kept: a program that gives each range a different name must not fill the memory.
enum { HEAP = 64 << 20 };
typedef struct { u64 hash; u32 id, length; const char* text; } String;

static struct {
  Lock lock;
  String* table;
  // `count` is the last id; ids are never reused. `held` is the number of strings in the table.
  u32 count, held;
  int writing;
  // Copies of the strings, for a file that begins later or begins again after a fork.
  char* heap;
  u64 heap_used;
  // Strings that have not been written yet.
  u8* data;
  u32 n, rows;
} names;

static int names_prepare(void) {
  names.table = pages(STRINGS * sizeof(String), 0);
  names.data = pages(STRING_BLOCK + LONGEST + 32, 0);
  names.heap = pages(HEAP, 0);
  return names.table && names.data && names.heap;
}

static void names_write(void) {
  if (names.n) put_block(BLOCK_STRINGS, 0, 0, names.rows, names.data, names.n), names.n = names.rows = 0;
}

static void name_put(const String* s) {
  // No file exists before CUDA is used.
  if (!names.writing) return;
  u8* p = put_number(names.data + names.n, s->id);
  p = put_number(p, s->length);
  memcpy(p, s->text, s->length);
  names.n = (u32)(p + s->length - names.data), names.rows++;
  if (names.n >= STRING_BLOCK) names_write();
}

// Writes the new strings, before rows that refer to them.
static void names_flush(void) {
  if (!lock(&names.lock)) return;
  names_write();
  unlock(&names.lock);
}

// Id of a string; 0 for no string.
static u32 name_of(const char* text, u64 length) {
  if (!text || !names.table || gone) return 0;
  if (length > LONGEST) length = LONGEST;
  u64 hash = hash_bytes(text, length) | 1;
  if (UNLIKELY(!lock(&names.lock))) {
    ADD(lost.unwritten, 1);
    return 0;
  }
  if (UNLIKELY(names.held >= STRINGS * 3 / 4 || names.heap_used + length > HEAP)) {
    // Clears the table: if a string recurs, it is written again under a new id.
    memset(names.table, 0, STRINGS * sizeof(String));
    names.held = 0, names.heap_used = 0;
  }
  u64 at = hash >> 20 & (STRINGS - 1);
  String* s = &names.table[at];
  while (s->hash && (s->hash != hash || s->length != length)) at = (at + 1) & (STRINGS - 1), s = &names.table[at];
  if (!s->hash) {
    char* kept = names.heap + names.heap_used;
    memcpy(kept, text, length);
    names.heap_used += length, names.held++;
    s->id = ++names.count, s->length = (u32)length, s->text = kept;
    __atomic_store_n(&s->hash, hash, __ATOMIC_RELEASE);
    name_put(s);
  }
  u32 id = s->id;
  unlock(&names.lock);
  return id;
}
static u32 name(const char* text) { return text ? name_of(text, strlen(text)) : 0; }

// Appends a character as UTF-8.
static char* put_utf8(char* p, u32 c) {
  if (c < 0x80) return *p = (char)c, p + 1;
  if (c < 0x800) {
    *p++ = (char)(0xc0 | c >> 6);
  } else if (c < 0x10000) {
    *p++ = (char)(0xe0 | c >> 12);
    *p++ = (char)(0x80 | (c >> 6 & 63));
  } else {
    *p++ = (char)(0xf0 | c >> 18);
    *p++ = (char)(0x80 | (c >> 12 & 63));
    *p++ = (char)(0x80 | (c >> 6 & 63));
  }
  *p++ = (char)(0x80 | (c & 63));
  return p;
}

// Names of NVTX categories and threads. Most programs set them when they start, before there is a file.
enum { GIVEN = 1024 };
typedef struct { u32 of, category, text; } Given;
static struct { Lock lock; Given list[GIVEN]; u32 count, written; } given;

// `of` is the domain of a category, or the thread if `category` is 0 (which is not a valid category).
static void name_given(u32 of, u32 category, u32 text) {
  if (!text || gone) return;
  if (!lock(&given.lock)) return;
  u32 i = 0;
  while (i < given.count && (given.list[i].of != of || given.list[i].category != category)) i++;
  if (i < GIVEN && i == given.count) {
    given.list[i] = (Given){ of, category, text };
    __atomic_store_n(&given.count, i + 1, __ATOMIC_RELEASE);
  }
  unlock(&given.lock);
}

// Writes the new names of categories and threads.
static void given_write(void) {
  static u8 data[32 << 10];
  if (!lock(&given.lock)) return;
  u32 from = given.written, count = given.written = given.count;
  unlock(&given.lock);
  if (from == count) return;
  names_flush();
  u8* p = data;
  for (u32 i = from; i < count; i++) {
    const Given* g = &given.list[i];
    p = put_number(put_number(put_number(p, g->of), g->category), g->text);
  }
  put_block(BLOCK_CATEGORIES, 0, 0, count - from, data, (u32)(p - data));
}

// Writes all earlier strings to a new file, because the program still uses their ids.
static void names_begin(void) {
  if (!lock(&names.lock)) return;
  names.n = names.rows = 0, names.writing = 1;
  for (u32 i = 0; names.count && i < STRINGS; i++)
    if (names.table[i].hash) name_put(&names.table[i]);
  unlock(&names.lock);
  if (!lock(&given.lock)) return;
  given.written = 0;
  unlock(&given.lock);
}

// Kernel names come as pointers, millions of times. A module loaded later may reuse the pointer for another name, so
// each pointer is looked up once per buffer of records.
enum { POINTERS = 1 << 14 };
static struct { const char* pointer; u32 id, buffer; } pointers[POINTERS];
static u32 name_by_pointer(const char* text, u32 buffer) {
  u64 at = mix((u64)text) & (POINTERS - 1);
  if (LIKELY(pointers[at].pointer == text && pointers[at].buffer == buffer)) return pointers[at].id;
  u32 id = name(text);
  pointers[at].pointer = text, pointers[at].id = id, pointers[at].buffer = buffer;
  return id;
}
