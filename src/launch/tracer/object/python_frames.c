// Python call stacks of other threads, read from the process's own memory while the threads are running: without the
// GIL, without stopping anything, and without calling into the interpreter. Every read is a system call: if the memory
// is gone, the call fails, but the program does not. The result may be torn: code objects are recognized by their type,
// and a stack is dropped if one of its frames has none, or if it does not end where the thread's stack begins.
//
// CPython 3.13 and later describe their structures (_Py_DebugOffsets, Include/internal/pycore_debug_offsets.h). The
// offsets for 3.8 to 3.12 were taken from the headers of each release, for 64-bit builds.

enum { FRAMES = 256, FRAME_BYTES = 112, CODE_BYTES = 240, STATE_BYTES = 256 };

typedef struct {
  // _PyRuntimeState and PyInterpreterState. The GIL belongs to the runtime before 3.12, and since then to the
  // interpreter, which points to it.
  u32 interpreters, interpreter_next, threads, runtime_gil, interpreter_gil;
  // PyThreadState. `thread_frame` points to the innermost frame; in 3.11 and 3.12, to a structure that points to that
  // frame at `inner_frame`.
  u32 thread_next, thread_id, native_id, thread_frame, inner_frame;
  // PyFrameObject, later _PyInterpreterFrame.
  u32 frame_code, frame_instruction, frame_previous, frame_owner;
  // PyCodeObject.
  u32 code_name, code_file, code_first_line, code_lines, code_bytes;
  // Sizes of PyASCIIObject and PyCompactUnicodeObject.
  u32 ascii, compact;
} PythonLayout;

#define OLD_CODE 112, 104, 40, 120, 48, 48, 72
static const PythonLayout PYTHON_LAYOUTS[] = { // 3.8 to 3.12
  { 32, 0, 8, 1152, 0, 8, 176, 0, 24, 0, 32, 104, 24, 0, OLD_CODE },
  { 32, 0, 8, 352, 0, 8, 176, 0, 24, 0, 32, 104, 24, 0, OLD_CODE },
  { 32, 0, 8, 352, 0, 8, 176, 0, 24, 0, 32, 96, 24, 0, OLD_CODE },
  { 40, 0, 16, 360, 0, 8, 152, 160, 56, 8, 32, 56, 48, 69, 128, 112, 72, 136, 184, 48, 72 },
  { 40, 0, 72, 0, 384, 8, 136, 144, 56, 0, 0, 56, 8, 70, 128, 112, 68, 136, 192, 40, 56 },
};
#undef OLD_CODE
// struct _gil_runtime_state, which is the same in all of them.
enum { GIL_HOLDER = 8, GIL_LOCKED = 16, GIL_BYTES = 208 };
// Offsets in PyObject, PyVarObject, PyBytesObject and PyASCIIObject, which are the same in all of them.
enum { OBJECT_TYPE = 8, OBJECT_SIZE = 16, BYTES_DATA = 32, TEXT_STATE = 32 };
// enum _frameowner: frames with this or a greater value are the interpreter's own and have no function.
enum { OWNED_BY_INTERPRETER = 3 };

static struct {
  // `minor` is 0 until the interpreter is found, and stays 0 if its frames cannot be read (`why_not`).
  u32 minor;
  PythonLayout at;
  const u8* runtime;
  const void* code_type;
  // Offset of the kernel's thread id in the C library's thread structure; 0 if unknown.
  u32 pthread_tid;
  const char* why_not;
} python;

// Reads memory of this process. Returns the number of bytes read, or a negated error number.
static i64 peek_all(struct iovec* from, u32 count, void* to, u64 bytes) {
  struct iovec own = { to, bytes };
  return SYSTEM(SYS_PROCESS_VM_READV, own_pid, &own, 1, from, count, 0);
}
static int peek(const void* from, void* to, u64 bytes) {
  struct iovec one = { from, bytes };
  return peek_all(&one, 1, to, bytes) == (i64)bytes;
}
static u64 peek_word(const void* from) {
  u64 word;
  return from && peek(from, &word, 8) ? word : 0;
}
static inline u64 word_at(const u8* bytes, u32 offset) {
  u64 word;
  memcpy(&word, bytes + offset, 8);
  return word;
}

// Positions in _Py_DebugOffsets of the words that are used, by version.
typedef struct {
  u32 next, threads, gil, gil_state, gil_locked, gil_holder, thread, frame, code, object, text;
} Described;
static const Described DESCRIBED[] = {
  // 3.13, 3.14 and later
  { 8, 9, 14, 15, 17, 18, 19, 28, 34, 44, 67 },
  { 8, 9, 15, 16, 18, 19, 22, 31, 39, 50, 77 },
};
static int fits(const u64* offsets, u32 at, u64 bytes) { return offsets[at] + 8 <= bytes; }
static int python_described(u32 minor) {
  u64 d[96];
  if (!peek(python.runtime, d, sizeof d)) return 0;
  if (memcmp(d, "xdebugpy", 8) || (d[1] >> 16 & 0xff) != minor) return 0;
  if (d[2]) return python.why_not = "its threads run without the GIL, whose frames are not read", 0;
  const Described* w = &DESCRIBED[minor > 13];
  const u64 *t = d + w->thread, *f = d + w->frame, *c = d + w->code, *o = d + w->object, *u = d + w->text;
  python.at = (PythonLayout){ (u32)d[5], (u32)d[w->next], (u32)d[w->threads], 0, (u32)d[w->gil], (u32)t[2], (u32)t[5],
    (u32)t[6], (u32)t[4], 0, (u32)f[2], (u32)f[3], (u32)f[1], (u32)f[5], (u32)c[3], (u32)c[1], (u32)c[5], (u32)c[4],
    (u32)c[9], (u32)u[3], (u32)u[3] + 16 };
  const PythonLayout* at = &python.at;
  return o[1] == OBJECT_TYPE && d[w->gil_locked] - d[w->gil_state] == GIL_LOCKED &&
    d[w->gil_holder] - d[w->gil_state] == GIL_HOLDER && at->ascii >= 40 && at->ascii < 64 &&
    fits(t, 2, STATE_BYTES) && fits(t, 4, STATE_BYTES) && fits(t, 5, STATE_BYTES) && fits(t, 6, STATE_BYTES) &&
    fits(f, 1, FRAME_BYTES) && fits(f, 2, FRAME_BYTES) && fits(f, 3, FRAME_BYTES) && fits(f, 5, FRAME_BYTES) &&
    fits(c, 1, CODE_BYTES) && fits(c, 3, CODE_BYTES) && fits(c, 4, CODE_BYTES) && fits(c, 5, CODE_BYTES);
}

// The interpreter's symbols, from the dynamic loader. They are looked up without a lock, because the loader may be
// running a constructor for any length of time.
typedef struct { const u8* runtime; const void* code_type; u32 major, minor; } PythonSymbols;
static PythonSymbols python_symbols(void) {
  // 3.11 and later have a version number; in earlier versions, the text is constant once it was requested.
  const u32* number = lookup(NULL, "Py_Version");
  const char* (*text)(void) = NULL;
  *(void**)&text = lookup(NULL, "Py_GetVersion");
  PythonSymbols found = { lookup(NULL, "_PyRuntime"), lookup(NULL, "PyCode_Type"), 0, 0 };
  if (!found.runtime || !found.code_type || (!number && !text)) return (PythonSymbols){ NULL, NULL, 0, 0 };
  const char* version = number ? NULL : text();
  found.major = number ? *number >> 24 : (u32)number_of(version);
  if (number) found.minor = *number >> 16 & 0xff;
  else if (version[1] == '.') found.minor = (u32)number_of(version + 2);
  return found;
}
// The caller holds stacks.lock.
static void python_take(const PythonSymbols* found) {
  if (!found->runtime || python.minor || python.why_not) return;
  u32 major = found->major, minor = found->minor;
  python.runtime = found->runtime, python.code_type = found->code_type;
  u64 word;
  struct iovec own = { found->runtime, 8 };
  i64 n = peek_all(&own, 1, &word, 8);
  if (n != 8) {
    int forbidden = n == -ENOSYS || n == -EPERM;
    python.why_not = forbidden ? "the sandbox forbids process_vm_readv" : "its memory cannot be read";
  } else if (major == 3 && minor >= 8 && minor < 8 + COUNT(PYTHON_LAYOUTS)) {
    python.at = PYTHON_LAYOUTS[minor - 8], python.minor = minor;
  } else if (major == 3 && minor >= 13 && python_described(minor)) {
    python.minor = minor;
  } else if (!python.why_not) {
    python.why_not = "frames of this version of Python are not known";
  }
}

// Before 3.11, a thread's state contains only its pthread_t. The C library keeps the kernel's id in the structure that
// it points to: its offset is the one that fits this thread and all others.
static u32 tid_of_pthread(u64 pthread) {
  u32 thread = 0;
  return python.pthread_tid && peek((const void*)(pthread + python.pthread_tid), &thread, 4) ? thread : 0;
}
static void pthread_tid_find(const u64* others, u32 count) {
  enum { SEARCHED = 2048 };
  u32 own[SEARCHED / 4];
  const u8* self = (const u8*)pthread_self();
  if (!peek(self, own, sizeof own)) return;
  for (u32 i = 1; i < SEARCHED / 4; i++) {
    if (own[i] != tid()) continue;
    python.pthread_tid = i * 4;
    u32 right = 0;
    for (u32 k = 0; k < count; k++) {
      u32 thread = tid_of_pthread(others[k]);
      right += thread && !SYSTEM(SYS_TGKILL, own_pid, thread, 0);
    }
    if (right == count) return;
  }
  python.pthread_tid = 0;
}

// A thread whose stack is sampled, with the addresses of its last stack: most of them recur in the next one.
typedef struct {
  u32 thread;
  // The thread's PyThreadState, and the interpreter's GIL; NULL if unknown. `indirect` is the last pointer to the
  // pointer to the innermost frame.
  const u8 *state, *gil, *indirect;
  // Time of the last search for the thread's state.
  u64 looked;
  // The outermost frame.
  const u8* root;
  u32 depth;
  const u8 *frames[FRAMES], *codes[FRAMES];
} PythonThread;

static u32 thread_of_state(const u8* state) {
  if (python.at.native_id) return (u32)word_at(state, python.at.native_id);
  return tid_of_pthread(word_at(state, python.at.thread_id));
}

// Searches all interpreters for the state of a thread.
static void python_thread_find(PythonThread* t) {
  enum { INTERPRETERS = 64, STATES = 4096 };
  static u8 state[STATE_BYTES];
  t->state = NULL;
  if (!python.at.native_id && !python.pthread_tid) {
    static u64 others[64];
    u32 count = 0;
    const u8* first = (const u8*)peek_word(python.runtime + python.at.interpreters);
    const u8* at = first ? (const u8*)peek_word(first + python.at.threads) : NULL;
    while (at && count < COUNT(others) && peek(at, state, STATE_BYTES)) {
      others[count++] = word_at(state, python.at.thread_id);
      at = (const u8*)word_at(state, python.at.thread_next);
    }
    if (count) pthread_tid_find(others, count);
  }
  const u8* interpreter = (const u8*)peek_word(python.runtime + python.at.interpreters);
  for (u32 i = 0; interpreter && i < INTERPRETERS; i++) {
    const u8* at = (const u8*)peek_word(interpreter + python.at.threads);
    for (u32 k = 0; at && k < STATES && peek(at, state, STATE_BYTES); k++) {
      if (thread_of_state(state) == t->thread) {
        t->state = at;
        t->gil = python.at.runtime_gil ? python.runtime + python.at.runtime_gil
                                       : (const u8*)peek_word(interpreter + python.at.interpreter_gil);
        return;
      }
      at = (const u8*)word_at(state, python.at.thread_next);
    }
    interpreter = (const u8*)peek_word(interpreter + python.at.interpreter_next);
  }
}

// One frame of a stack: its code object, and the offset of the instruction in the code, in bytes. `head` is the
// beginning of the code object; NULL if the last stack had this frame with the same code.
typedef struct { const u8 *address, *code, *head; i32 offset; } PythonFrame;

// Memory that is read again in one call: the thread's state, the pointer to its innermost frame, and the frames of its
// last stack. Frames that are close to each other form one piece, such as those of 3.11 and later, which are adjacent
// in blocks of 16 kB.
enum { CLOSE = 4096, ABOVE = 1024, AGAIN_BYTES = 64 << 10, PIECES = FRAMES + 2 };
static struct {
  PythonFrame frames[FRAMES];
  u32 depth;
  // Number of the walk, which determines the code objects that are read again.
  u32 turn;
  // Set if there are more frames than there is room for.
  int cut;
  u8 frame_bytes[FRAMES][FRAME_BYTES], code_bytes[FRAMES][CODE_BYTES];
  struct iovec pieces[PIECES];
  u32 pieces_count;
  u8 again[AGAIN_BYTES];
  u64 read;
} walk;

static void piece_add(const u8* from, u64 bytes, u64* total) {
  if (walk.pieces_count >= PIECES || *total + bytes > AGAIN_BYTES) return;
  walk.pieces[walk.pieces_count++] = (struct iovec){ from, bytes };
  *total += bytes;
}
// The piece with the innermost frames comes last, because it may extend into memory that does not exist, which ends the
// call.
static void stack_read_again(const PythonThread* t) {
  u64 total = 0;
  walk.pieces_count = 0;
  piece_add(t->state, STATE_BYTES, &total);
  if (t->indirect) piece_add(t->indirect, 16, &total);
  for (u32 end = t->depth; end > 0;) {
    u32 at = end - 1;
    const u8 *low = t->frames[at], *high = low;
    while (at > 0 && t->frames[at - 1] > high && (u64)(t->frames[at - 1] - high) < CLOSE) high = t->frames[--at];
    piece_add(low, (u64)(high - low) + FRAME_BYTES + (at ? 0 : ABOVE), &total);
    end = at;
  }
  i64 n = walk.pieces_count ? peek_all(walk.pieces, walk.pieces_count, walk.again, total) : 0;
  walk.read = n > 0 ? (u64)n : 0;
}
// Copy of memory that was read again; NULL if it was not read.
static const u8* again(const u8* address, u64 bytes) {
  u64 offset = 0;
  for (u32 i = 0; i < walk.pieces_count; i++) {
    const u8* base = walk.pieces[i].base;
    u64 length = walk.pieces[i].length;
    if (address >= base && address + bytes <= base + length) {
      u64 at = offset + (u64)(address - base);
      return at + bytes <= walk.read ? walk.again + at : NULL;
    }
    offset += length;
  }
  return NULL;
}

// Address of the innermost frame of a thread.
static const u8* python_frame(PythonThread* t, const u8* state) {
  const u8* frame = (const u8*)word_at(state, python.at.thread_frame);
  if (python.minor != 11 && python.minor != 12) return frame;
  t->indirect = frame;
  const u8* seen = frame ? again(frame, 16) : NULL;
  return seen ? (const u8*)word_at(seen, python.at.inner_frame) : (const u8*)peek_word(frame + python.at.inner_frame);
}

// Returns true if the last stack had this frame with this code. The code's address may since have been reused by
// another code object: the code objects of the innermost frames are read every time, those of the others every eighth
// time.
static int is_again(const PythonThread* t, const u8* frame, const u8* code, u32* from) {
  enum { INNERMOST = 4, TURNS = 8 };
  for (u32 i = *from; i < t->depth; i++) {
    if (t->frames[i] != frame) continue;
    *from = i + 1;
    return t->codes[i] == code && walk.depth >= INNERMOST && (t->depth - i + walk.turn) % TURNS;
  }
  return 0;
}

// Reads the code objects that are not known from the last stack. Returns 0 if one of them is not a code object.
static int codes_read(void) {
  static struct iovec from[FRAMES];
  static u32 of[FRAMES];
  u32 count = 0;
  for (u32 i = 0; i < walk.depth; i++)
    if (walk.frames[i].head) from[count] = (struct iovec){ walk.frames[i].code, CODE_BYTES }, of[count++] = i;
  if (!count) return 1;
  if (peek_all(from, count, walk.code_bytes, count * (u64)CODE_BYTES) != (i64)(count * (u64)CODE_BYTES)) return 0;
  for (u32 i = 0; i < count; i++) {
    walk.frames[of[i]].head = walk.code_bytes[i];
    if ((const void*)word_at(walk.code_bytes[i], OBJECT_TYPE) != python.code_type) return 0;
  }
  return 1;
}

// Walks outwards from a frame. Returns 0 if it finds something that is not a frame.
static int frames_walk(PythonThread* t, const u8* frame) {
  const PythonLayout* at = &python.at;
  u32 from = 0, skipped = 0;
  walk.depth = 0, walk.cut = 0;
  while (frame && !walk.cut) {
    const u8* bytes = again(frame, FRAME_BYTES);
    if (!bytes) {
      u8* to = walk.frame_bytes[walk.depth];
      if (!peek(frame, to, FRAME_BYTES)) return 0;
      bytes = to;
    }
    const u8* code = (const u8*)(word_at(bytes, at->frame_code) & ~3ul);
    const u8* previous = (const u8*)word_at(bytes, at->frame_previous);
    if (at->frame_owner && bytes[at->frame_owner] >= OWNED_BY_INTERPRETER) {
      if (++skipped > FRAMES) return 0;
      frame = previous;
      continue;
    }
    i32 offset = (i32)word_at(bytes, at->frame_instruction);
    if (python.minor == 10) offset *= 2;
    if (python.minor > 10) offset = (i32)(word_at(bytes, at->frame_instruction) - (u64)code - at->code_bytes);
    // Any address is accepted here; codes_read rejects what is not a code object.
    const u8* head = is_again(t, frame, code, &from) ? NULL : code;
    if (!code) return 0;
    walk.frames[walk.depth++] = (PythonFrame){ frame, code, head, offset };
    walk.cut = walk.depth == FRAMES && previous;
    frame = previous;
  }
  return codes_read();
}

// Reads the stack of a thread into `walk`, innermost frame first. Returns 0 if the stack is torn. A thread without
// Python code has no frames.
static int python_walk(PythonThread* t, u64 time) {
  enum { AGAIN_NS = 200000000, TRIES = 12, ALIKE = 4 };
  walk.depth = 0, walk.cut = 0, walk.turn++;
  if (!t->state) {
    if (t->looked && time - t->looked < AGAIN_NS) return 1;
    t->looked = time;
    python_thread_find(t);
    if (!t->state) return 1;
  }
  // If a frame returns, or a generator yields, while it is being read, it no longer has a caller. Therefore, a stack is
  // accepted only if it ends where that of the last sample ended, or ends in the same frame when it is read several
  // more times.
  const u8* root = NULL;
  u32 alike = 0;
  for (u32 i = 0; i < TRIES && alike < ALIKE; i++) {
    stack_read_again(t);
    const u8* state = again(t->state, STATE_BYTES);
    // The thread has ended, and its state may belong to another thread.
    if (!state || thread_of_state(state) != t->thread) return t->state = NULL, t->depth = 0, 0;
    if (!frames_walk(t, python_frame(t, state))) continue;
    const u8* found = walk.depth ? walk.frames[walk.depth - 1].address : NULL;
    // The outermost frame of a stack that was cut off at FRAMES is not known, so it is not compared.
    alike = found == t->root || walk.cut ? ALIKE : found == root ? alike + 1 : 1;
    root = found;
  }
  if (alike < ALIKE) return 0;
  for (u32 k = 0; k < walk.depth; k++) t->frames[k] = walk.frames[k].address, t->codes[k] = walk.frames[k].code;
  t->depth = walk.depth, t->root = root;
  return 1;
}

// Id of the contents of a Python string; 0 if it cannot be read.
static u32 name_of_python(const u8* object) {
  enum { LONGEST_TEXT = 1000 };
  static u8 raw[LONGEST_TEXT * 4];
  static char text[LONGEST_TEXT * 4];
  u8 head[48];
  if (!object || !peek(object, head, sizeof head)) return 0;
  u64 length = word_at(head, OBJECT_SIZE);
  u32 state = (u32)word_at(head, TEXT_STATE), kind = state >> 2 & 7;
  if (!(state >> 5 & 1) || (kind != 1 && kind != 2 && kind != 4)) return 0;
  if (length > LONGEST_TEXT) length = LONGEST_TEXT;
  int is_ascii = state >> 6 & 1;
  if (!peek(object + (is_ascii ? python.at.ascii : python.at.compact), raw, length * kind)) return 0;
  if (is_ascii) return name_of((const char*)raw, length);
  char* p = text;
  for (u64 i = 0; i < length; i++) {
    u32 c = 0;
    memcpy(&c, raw + i * kind, kind);
    p = put_utf8(p, c);
  }
  return name_of(text, (u64)(p - text));
}
