// Samples of launching threads: the Python stack, and what the thread is waiting for. stacks.lock is held while samples
// are taken or written. Functions and stacks are written once, before the first sample that refers to them; a stack
// consists of its caller's stack and a frame.

enum { STACK_FUNCTIONS = 1 << 15, STACK_NODES = 1 << 18, SAMPLED = 32 };
// Values of a sample's last byte.
enum { RUNS = 0, WAITS_LOCK = 1, WAITS_GIL = 2, WAITS_READ = 3, WAITS_WRITE = 4, WAITS_POLL = 5, WAITS_SLEEP = 6,
  WAITS_CHILD = 7, WAITS_OTHER = 8, WAITS_UNKNOWN = 9, HOLDS_GIL = 64 /* added */ };

typedef struct { const u8 *code, *file, *name, *lines; i32 first_line; u32 id; } PythonFunction;
typedef struct { u32 parent, function; i32 offset; u32 id; } StackNode;

static struct {
  Lock lock;
  // Microseconds between samples; 0 if none are taken.
  u32 every_us;
  // Time of the last sample on the monotonic clock, and the time since the sample before it.
  u64 at, passed;
  PythonFunction* functions;
  StackNode* nodes;
  // Entries in the tables, and the last ids, which are never reused.
  u32 functions_held, nodes_held, functions_count, nodes_count;
  PythonThread threads[SAMPLED];
  // CPU time, stack and wait of the last sample of each thread.
  struct { u64 used; u32 stack, wait; } last[SAMPLED];
  u32 count;
  // Encoded rows that have not been written yet.
  struct { u8 data[48 << 10], *end; u32 rows; } new_functions, new_stacks, rows;
  u64 last_us;
  u32 last_thread, last_stack;
  // Number of torn stacks, and number of samples taken.
  u64 torn, taken, spent_ns;
} stacks;
enum { STACKS_EVERY_US = 10000 };

static int stacks_prepare(void) {
  if (!stacks.functions) stacks.functions = pages(STACK_FUNCTIONS * sizeof(PythonFunction), 0);
  if (!stacks.nodes) stacks.nodes = pages(STACK_NODES * sizeof(StackNode), 0);
  return stacks.functions && stacks.nodes;
}

#define STACK_BLOCK(type, b) \
  do { \
    if ((b).rows) put_block(type, 0, 0, (b).rows, (b).data, (u32)((b).end - (b).data)); \
    (b).rows = 0, (b).end = NULL; \
  } while (0)
// Definitions come first: samples refer to stacks, stacks to functions, functions to strings.
static void stacks_flush(void) {
  if (!stacks.rows.rows && !stacks.new_stacks.rows && !stacks.new_functions.rows) return;
  names_flush();
  STACK_BLOCK(BLOCK_FUNCTIONS, stacks.new_functions);
  STACK_BLOCK(BLOCK_STACKS, stacks.new_stacks);
  STACK_BLOCK(BLOCK_SAMPLES, stacks.rows);
}
#undef STACK_BLOCK

enum { LINES_MOST = 16 << 10 };
static u32 function_new(const PythonFunction* f) {
  static u8 lines[LINES_MOST];
  u64 length = peek_word(f->lines + OBJECT_SIZE);
  if (length > LINES_MOST || !peek(f->lines + BYTES_DATA, lines, length)) length = 0;
  u32 file = name_of_python(f->file), name_ = name_of_python(f->name);
  if (!stacks.new_functions.end) stacks.new_functions.end = stacks.new_functions.data;
  if (stacks.new_functions.end + length + 64 > stacks.new_functions.data + sizeof stacks.new_functions.data)
    stacks_flush(), stacks.new_functions.end = stacks.new_functions.data;
  u8* p = stacks.new_functions.end;
  p = put_number(put_number(put_number(p, ++stacks.functions_count), file), name_);
  p = put_signed(p, f->first_line);
  // The encoding of the line table: 8 and 9 use lnotab, 10 that of PEP 626, 11 and later that of PEP 657.
  p = put_number(put_number(p, python.minor), length);
  memcpy(p, lines, length);
  stacks.new_functions.end = p + length, stacks.new_functions.rows++;
  return stacks.functions_count;
}

static u32 function_of_code(const u8* code, const u8* head) {
  u64 at = mix((u64)code) & (STACK_FUNCTIONS - 1);
  // Known from the last stack, unless the table was cleared since.
  for (; !head && stacks.functions[at].code; at = (at + 1) & (STACK_FUNCTIONS - 1))
    if (stacks.functions[at].code == code) return stacks.functions[at].id;
  u8 bytes[CODE_BYTES];
  if (!head && !peek(code, bytes, CODE_BYTES)) return 0;
  if (!head) head = bytes;
  const PythonLayout* l = &python.at;
  PythonFunction f = { code, (const u8*)word_at(head, l->code_file), (const u8*)word_at(head, l->code_name),
    (const u8*)word_at(head, l->code_lines), (i32)word_at(head, l->code_first_line), 0 };
  if (stacks.functions_held >= STACK_FUNCTIONS * 3 / 4)
    memset(stacks.functions, 0, STACK_FUNCTIONS * sizeof f), stacks.functions_held = 0;
  for (at = mix((u64)code) & (STACK_FUNCTIONS - 1);; at = (at + 1) & (STACK_FUNCTIONS - 1)) {
    PythonFunction* e = &stacks.functions[at];
    // The address of a function that is gone may have been reused, so an entry that differs is replaced.
    int same = e->file == f.file && e->name == f.name && e->lines == f.lines && e->first_line == f.first_line;
    if (e->code == code && same) return e->id;
    if (e->code && e->code != code) continue;
    stacks.functions_held += !e->code;
    *e = f;
    return e->id = function_new(&f);
  }
}

static u32 stack_node(u32 parent, u32 function, i32 offset) {
  if (stacks.nodes_held >= STACK_NODES * 3 / 4)
    memset(stacks.nodes, 0, STACK_NODES * sizeof(StackNode)), stacks.nodes_held = 0;
  u64 at = mix((u64)parent << 32 ^ (u64)function << 16 ^ (u64)(u32)offset) & (STACK_NODES - 1);
  for (StackNode* e;; at = (at + 1) & (STACK_NODES - 1)) {
    e = &stacks.nodes[at];
    if (e->id && (e->parent != parent || e->function != function || e->offset != offset)) continue;
    if (e->id) return e->id;
    *e = (StackNode){ parent, function, offset, ++stacks.nodes_count };
    stacks.nodes_held++;
    if (!stacks.new_stacks.end) stacks.new_stacks.end = stacks.new_stacks.data;
    u8* p = stacks.new_stacks.end;
    p = put_number(put_number(put_number(p, e->id), parent), function);
    stacks.new_stacks.end = put_signed(p, offset), stacks.new_stacks.rows++;
    if (stacks.new_stacks.end + 32 > stacks.new_stacks.data + sizeof stacks.new_stacks.data) stacks_flush();
    return e->id;
  }
}

// Id of the stack in `walk`; 0 for an empty stack.
static u32 stack_of_walk(void) {
  u32 stack = 0;
  // Frames for which there was no room become one frame without a function.
  if (walk.cut) stack = stack_node(0, 0, 0);
  for (u32 i = walk.depth; i-- > 0;)
    stack = stack_node(stack, function_of_code(walk.frames[i].code, walk.frames[i].head), walk.frames[i].offset);
  return stack;
}

// The file that contains the system call a thread is in; it stays open for the first threads, because opening it takes
// longer than everything else that a sample needs.
enum { CALLS_OPEN = 8 };
typedef struct { int file; u32 thread; Identity is; } CallFile;
static CallFile call_files[CALLS_OPEN];
static long call_read(u32 i, u32 thread, char* text, u64 most) {
  char path[48];
  snprintf(path, sizeof path, "/proc/self/task/%u/syscall", thread);
  if (i >= CALLS_OPEN) {
    int file = file_open(path, O_RDONLY | O_CLOEXEC);
    long n = file < 0 ? -1 : file_read(file, text, most);
    if (file >= 0) file_close(file);
    return n;
  }
  CallFile* f = &call_files[i];
  int there = f->thread && is_same(f->file, f->is);
  if (there && f->thread != thread) file_close(f->file), there = 0;
  if (!there) {
    *f = (CallFile){ high(file_open(path, O_RDONLY | O_CLOEXEC)), thread, { 0, 0 } };
    f->is = identity(f->file);
  }
  return f->file < 0 ? -1 : SYSTEM(SYS_PREAD64, f->file, text, most, 0);
}

static void call_forget(u32 i) {
  if (i >= CALLS_OPEN || !call_files[i].thread) return;
  if (is_same(call_files[i].file, call_files[i].is)) file_close(call_files[i].file);
  call_files[i] = (CallFile){ -1, 0, { 0, 0 } };
}

// Determines the call that blocks a thread from the number of its system call and the first argument. `i` is the
// thread's index among those that are sampled.
static u32 wait_of(u32 i, u32 thread, const u8* gil) {
  static const struct { u16 number; u8 wait; } WAITS[] = {
#if defined(__x86_64__)
    { 202, WAITS_LOCK }, { 449, WAITS_LOCK }, { 0, WAITS_READ }, { 17, WAITS_READ }, { 19, WAITS_READ },
    { 295, WAITS_READ }, { 327, WAITS_READ }, { 45, WAITS_READ }, { 47, WAITS_READ }, { 299, WAITS_READ },
    { 43, WAITS_READ }, { 288, WAITS_READ }, { 1, WAITS_WRITE }, { 18, WAITS_WRITE }, { 20, WAITS_WRITE },
    { 40, WAITS_WRITE }, { 44, WAITS_WRITE }, { 46, WAITS_WRITE }, { 74, WAITS_WRITE }, { 75, WAITS_WRITE },
    { 7, WAITS_POLL }, { 271, WAITS_POLL }, { 23, WAITS_POLL }, { 270, WAITS_POLL }, { 232, WAITS_POLL },
    { 281, WAITS_POLL }, { 441, WAITS_POLL }, { 35, WAITS_SLEEP }, { 230, WAITS_SLEEP }, { 61, WAITS_CHILD },
    { 247, WAITS_CHILD }, { 24, RUNS },
#else
    { 98, WAITS_LOCK }, { 449, WAITS_LOCK }, { 63, WAITS_READ }, { 65, WAITS_READ }, { 67, WAITS_READ },
    { 69, WAITS_READ }, { 207, WAITS_READ }, { 212, WAITS_READ }, { 243, WAITS_READ }, { 202, WAITS_READ },
    { 242, WAITS_READ }, { 64, WAITS_WRITE }, { 66, WAITS_WRITE }, { 68, WAITS_WRITE }, { 71, WAITS_WRITE },
    { 206, WAITS_WRITE }, { 211, WAITS_WRITE }, { 82, WAITS_WRITE }, { 83, WAITS_WRITE }, { 73, WAITS_POLL },
    { 72, WAITS_POLL }, { 22, WAITS_POLL }, { 441, WAITS_POLL }, { 101, WAITS_SLEEP }, { 115, WAITS_SLEEP },
    { 260, WAITS_CHILD }, { 95, WAITS_CHILD }, { 124, RUNS },
#endif
  };
  char text[128];
  long n = call_read(i, thread, text, sizeof text - 1);
  if (n <= 0) return WAITS_UNKNOWN;
  text[n] = 0;
  // `running`, or -1 outside a system call, for example while a page is read from a file.
  if (*text == 'r') return RUNS;
  if (*text < '0' || *text > '9') return WAITS_OTHER;
  u64 number = number_of(text), first = 0;
  const char* p = strstr(text, " 0x");
  for (p = p ? p + 3 : ""; (*p >= '0' && *p <= '9') || (*p >= 'a' && *p <= 'f'); p++)
    first = first << 4 | (u64)(*p <= '9' ? *p - '0' : *p - 'a' + 10);
  for (u32 k = 0; k < COUNT(WAITS); k++) {
    if (WAITS[k].number != number) continue;
    // Threads that wait for the GIL block on a condition variable inside the GIL structure.
    if (WAITS[k].wait == WAITS_LOCK && gil && first >= (u64)gil && first < (u64)gil + GIL_BYTES) return WAITS_GIL;
    return WAITS[k].wait;
  }
  return WAITS_OTHER;
}

static void sample_put(u32 thread, u64 time, u32 stack, u32 wait) {
  if (!stacks.rows.end) stacks.rows.end = stacks.rows.data, stacks.last_us = stacks.last_thread = stacks.last_stack = 0;
  u8* p = stacks.rows.end;
  p = put_signed(p, (i64)thread - (i64)stacks.last_thread);
  p = put_signed(p, (i64)(time / 1000 - stacks.last_us));
  p = put_signed(p, (i64)stack - (i64)stacks.last_stack);
  *p++ = (u8)wait;
  stacks.last_thread = thread, stacks.last_us = time / 1000, stacks.last_stack = stack;
  stacks.rows.end = p, stacks.rows.rows++, stacks.taken++;
  if (p + 48 > stacks.rows.data + sizeof stacks.rows.data) stacks_flush();
}

// Samples a thread; `used` is its CPU time since it started. Returns 1 if the thread is waiting for the GIL.
static int sample_thread(u32 i, u32 thread, u64 used, u64 time, u64 monotonic) {
  PythonThread* t = &stacks.threads[i];
  if (t->thread != thread) {
    *t = (PythonThread){ .thread = thread };
    stacks.last[i].used = 0, stacks.last[i].wait = WAITS_UNKNOWN;
  }
  u64 took = stacks.last[i].used ? used - stacks.last[i].used : 0;
  int runs = stacks.passed && took * 10 >= stacks.passed * 9;
  // A thread that has not run since the last sample is still in the same place.
  if (!used || used != stacks.last[i].used || stacks.last[i].wait == RUNS || stacks.last[i].wait == WAITS_UNKNOWN) {
    u32 wait = runs ? RUNS : wait_of(i, thread, t->gil), stack = 0;
    if (python.minor) {
      if (!python_walk(t, monotonic)) {
        stacks.torn++;
        return 0;
      }
      stack = stack_of_walk();
    }
    stacks.last[i].used = used, stacks.last[i].stack = stack, stacks.last[i].wait = wait;
  }
  sample_put(thread, time, stacks.last[i].stack, stacks.last[i].wait);
  return stacks.last[i].wait == WAITS_GIL;
}

// Samples the thread that holds the GIL. If that thread is sampled anyway, its sample is repeated with the holder's
// flag.
static void sample_holder(const u8* gil, u64 time, u64 monotonic) {
  static PythonThread holder;
  static u8 state[STATE_BYTES];
  u32 locked = 0;
  const u8* at = (const u8*)peek_word(gil + GIL_HOLDER);
  if (!at || !peek(gil + GIL_LOCKED, &locked, 4) || locked != 1 || !peek(at, state, STATE_BYTES)) return;
  u32 thread = thread_of_state(state);
  for (u32 i = 0; i < stacks.count; i++) {
    if (stacks.threads[i].thread != thread) continue;
    sample_put(thread, time, stacks.last[i].stack, stacks.last[i].wait | HOLDS_GIL);
    return;
  }
  if (!thread) return;
  if (holder.thread != thread) holder = (PythonThread){ .thread = thread };
  u32 wait = wait_of(SAMPLED, thread, NULL) | HOLDS_GIL;
  if (python_walk(&holder, monotonic)) sample_put(thread, time, stack_of_walk(), wait);
  else stacks.torn++;
}

// Looks for the interpreter, which may be loaded later, at increasing intervals. Runs without stacks.lock.
static PythonSymbols python_look(u64 monotonic) {
  static u64 next, after = 500000000;
  static const u64 RARELY_NS = 30000000000ul;
  if (python.minor || python.why_not || monotonic < next) return (PythonSymbols){ NULL, NULL, 0, 0 };
  next = monotonic + after, after = after * 2 < RARELY_NS ? after * 2 : RARELY_NS;
  return python_symbols();
}

// Takes the lock if samples are due. Runs on the ticker.
static int stacks_begin(u64 monotonic) {
  if (!stacks.every_us || monotonic - stacks.at < stacks.every_us * 900ul) return 0;
  PythonSymbols found = python_look(monotonic);
  if (!lock(&stacks.lock)) return 0;
  if (!stacks_prepare()) return unlock(&stacks.lock), 0;
  python_take(&found);
  stacks.passed = stacks.at ? monotonic - stacks.at : 0, stacks.at = monotonic;
  return 1;
}
