// Tables of the stacks of launching threads. stacks.lock is held while samples are taken or written. Functions, modules
// and stacks are written once, before the first sample that refers to them; a stack consists of its caller's stack and
// a frame, which is a function with an offset in it, or a module if the function is unknown.

enum { STACK_FUNCTIONS = 1 << 15, STACK_NODES = 1 << 18, SAMPLED = 32 };
// Stacks that are sampled: of Python code if an interpreter is found, and else of native code; only of Python code;
// only of native code; of native code for threads that run no Python code.
enum { STACKS_THAT_SUIT = 0, STACKS_OF_PYTHON, STACKS_OF_NATIVE, STACKS_OF_BOTH };
// State of the sampled thread: the last byte of a sample.
enum { RUNS = 0, WAITS_LOCK = 1, WAITS_GIL = 2, WAITS_READ = 3, WAITS_WRITE = 4, WAITS_POLL = 5, WAITS_SLEEP = 6,
  WAITS_CHILD = 7, WAITS_OTHER = 8, WAITS_UNKNOWN = 9, HOLDS_GIL = 64 /* added */ };

typedef struct { const u8 *code, *file, *name, *lines; i32 first_line; u32 id; } PythonFunction;
typedef struct { i64 offset; u32 parent, function, id; } StackNode;

static struct {
  Lock lock;
  // Microseconds between samples; 0 if none are taken.
  u32 every_us;
  // One of STACKS_THAT_SUIT to STACKS_OF_BOTH.
  u32 which;
  // Time of the last sample on the monotonic clock, and the time since the sample before it.
  u64 at, passed;
  PythonFunction* functions;
  StackNode* nodes;
  // Entries in the tables, and the last ids, which are never reused.
  u32 functions_held, nodes_held, functions_count, nodes_count;
  PythonThread threads[SAMPLED];
  // CPU time (ns), stack and wait of the last sample of each thread; `is_python` is set if its stack is a Python stack.
  struct { u64 used; u32 stack, wait; int is_python; } last[SAMPLED];
  u32 count;
  // Encoded rows that have not been written yet.
  struct { u8 data[48 << 10], *end; u32 rows; } new_functions, new_stacks, rows;
  struct { u8 data[8 << 10], *end; u32 rows; } new_modules, new_native;
  u64 last_us;
  u32 last_thread, last_stack;
  // Number of torn stacks, number of samples taken, and time spent on sampling.
  u64 torn, taken, spent_ns;
} stacks;
enum { STACKS_EVERY_US = 10000 };

static int stacks_prepare(void) {
  if (!stacks.functions) stacks.functions = pages(STACK_FUNCTIONS * sizeof(PythonFunction), 0);
  if (!stacks.nodes) stacks.nodes = pages(STACK_NODES * sizeof(StackNode), 0);
  if (!unwinding.rows) unwinding.rows = pages(ROWS_KEPT * sizeof(UnwindRow), 0);
  return stacks.functions && stacks.nodes && unwinding.rows && native_modules_prepare();
}

#define STACK_BLOCK(type, b) \
  do { \
    if ((b).rows) put_block(type, 0, 0, (b).rows, (b).data, (u32)((b).end - (b).data)); \
    (b).rows = 0, (b).end = NULL; \
  } while (0)
// Definitions come first: samples refer to stacks, stacks to functions, functions to strings.
static void stacks_flush(void) {
  if (!stacks.rows.rows && !stacks.new_stacks.rows && !stacks.new_functions.rows && !stacks.new_modules.rows &&
    !stacks.new_native.rows)
    return;
  names_flush();
  STACK_BLOCK(BLOCK_FUNCTIONS, stacks.new_functions);
  STACK_BLOCK(BLOCK_MODULES, stacks.new_modules);
  STACK_BLOCK(BLOCK_NATIVE, stacks.new_native);
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

static u32 stack_node(u32 parent, u32 function, i64 offset) {
  if (stacks.nodes_held >= STACK_NODES * 3 / 4)
    memset(stacks.nodes, 0, STACK_NODES * sizeof(StackNode)), stacks.nodes_held = 0;
  u64 at = mix((u64)parent << 32 ^ (u64)function << 16 ^ (u64)offset) & (STACK_NODES - 1);
  for (StackNode* e;; at = (at + 1) & (STACK_NODES - 1)) {
    e = &stacks.nodes[at];
    if (e->id && (e->parent != parent || e->function != function || e->offset != offset)) continue;
    if (e->id) return e->id;
    *e = (StackNode){ offset, parent, function, ++stacks.nodes_count };
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

// Id of a module, which takes the place of a function's id in frames whose function is unknown.
static u32 function_of_module(NativeModule* m) {
  if (m->number) return m->number;
  m->number = ++stacks.functions_count;
  if (!stacks.new_modules.end) stacks.new_modules.end = stacks.new_modules.data;
  u8* p = put_number(put_number(put_number(stacks.new_modules.end, m->number), m->path), m->build_id_bytes);
  memcpy(p, m->build_id, m->build_id_bytes);
  p = put_number(put_number(p + m->build_id_bytes, m->file_bytes), m->file_time);
  stacks.new_modules.end = p, stacks.new_modules.rows++;
  if (p + 128 > stacks.new_modules.data + sizeof stacks.new_modules.data) stacks_flush();
  return m->number;
}

// Id of the function that starts at an address in a module.
static u32 function_of_native(NativeModule* m, u64 start) {
  // Shares the table of Python functions: the address stands for the code object, and the module's id for the file.
  PythonFunction f = { (const u8*)start, (const u8*)(u64)function_of_module(m), NULL, NULL, 0, 0 };
  if (stacks.functions_held >= STACK_FUNCTIONS * 3 / 4)
    memset(stacks.functions, 0, STACK_FUNCTIONS * sizeof f), stacks.functions_held = 0;
  u64 at = mix(start) & (STACK_FUNCTIONS - 1);
  while (stacks.functions[at].code && stacks.functions[at].code != f.code) at = (at + 1) & (STACK_FUNCTIONS - 1);
  PythonFunction* e = &stacks.functions[at];
  if (e->code && e->file == f.file && !e->name) return e->id;
  stacks.functions_held += !e->code;
  *e = f, e->id = ++stacks.functions_count;
  if (!stacks.new_native.end) stacks.new_native.end = stacks.new_native.data;
  u8* p = put_number(put_number(stacks.new_native.end, e->id), m->number);
  stacks.new_native.end = put_number(p, start - m->bias), stacks.new_native.rows++;
  u32 id = e->id;
  if (stacks.new_native.end + 32 > stacks.new_native.data + sizeof stacks.new_native.data) stacks_flush();
  return id;
}

// Id of the stack in `native_walk`; 0 if none of it is in a module. Frames of the tracer itself are left out.
static u32 stack_of_native(void) {
  u32 stack = 0;
  for (u32 i = native_walk.depth; i-- > 0;) {
    u64 pc = native_walk.pcs[i];
    NativeModule* m = native_module_of(pc);
    if (m && m->is_own) continue;
    // Frames that are missing further out become one frame without a function, and so does generated code.
    if (!m || (!stack && !native_walk.is_whole)) stack = stack_node(stack, 0, 0);
    u64 start = native_walk.starts[i];
    if (m && start) stack = stack_node(stack, function_of_native(m, start), (i64)(pc - start));
    else if (m) stack = stack_node(stack, function_of_module(m), (i64)(pc - m->bias));
  }
  return stack;
}
