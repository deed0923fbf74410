// Call stacks of native code, unwound from the registers of a thread with the call frame information of its modules
// (.eh_frame, DWARF 5, section 6.4). Memory is read by a system call, or from a copy of the stack.

#if defined(__x86_64__)
enum { REGISTERS = 17, STACK_POINTER = 7, FRAME_POINTER = 6, RETURN_ADDRESS = 16 };
// Registers that a function leaves as it found them: rbx, rbp, r12 to r15.
static const u64 KEPT_REGISTERS = 1ul << 3 | 1ul << 6 | 0xful << 12;
#else
enum { REGISTERS = 32, STACK_POINTER = 31, FRAME_POINTER = 29, RETURN_ADDRESS = 30 };
// x19 to x29.
static const u64 KEPT_REGISTERS = 0x7fful << 19;
#endif

// Registers by their DWARF numbers, those that are known, and the program counter.
typedef struct { u64 value[REGISTERS], known, pc; } Registers;

static int register_known(const Registers* r, u32 number) { return number < REGISTERS && r->known >> number & 1; }
static void register_set(Registers* r, u32 number, u64 value) {
  if (number < REGISTERS) r->value[number] = value, r->known |= 1ul << number;
}

// Callee-saved registers, stack pointer and program counter of this thread, in the function into which this is inlined.
static inline __attribute__((always_inline)) Registers registers_here(void) {
  Registers r = { .known = KEPT_REGISTERS | 1ul << STACK_POINTER };
#if defined(__x86_64__)
  __asm__ volatile("mov %%rbx, 24(%0)\nmov %%rbp, 48(%0)\nmov %%rsp, 56(%0)\nmov %%r12, 96(%0)\nmov %%r13, 104(%0)\n"
                   "mov %%r14, 112(%0)\nmov %%r15, 120(%0)\nlea 1f(%%rip), %%rcx\nmov %%rcx, %1\n1:"
                   :
                   : "r"(r.value), "m"(r.pc)
                   : "rcx", "memory");
#else
  __asm__ volatile("stp x19, x20, [%0, 152]\nstp x21, x22, [%0, 168]\nstp x23, x24, [%0, 184]\n"
                   "stp x25, x26, [%0, 200]\nstp x27, x28, [%0, 216]\nstr x29, [%0, 232]\nmov x9, sp\n"
                   "str x9, [%0, 248]\nadr x9, 1f\nstr x9, %1\n1:"
                   :
                   : "r"(r.value), "m"(r.pc)
                   : "x9", "memory");
#endif
  return r;
}

// ---- Memory of the stack.

enum { PAGE = 4096, STACK_WINDOW = 2 * PAGE };
static struct {
  // Copy of the stack from the time when the registers were taken; NULL if the thread has not run since.
  const u8* copy;
  u64 copy_at, copy_bytes;
  // The part of the stack that was read last.
  u64 at, bytes;
  u8 data[STACK_WINDOW];
} stack_memory;

// Returns 1 if the word at an address is in a part of memory.
static int is_word_in(u64 at, u64 start, u64 bytes) { return bytes >= 8 && at >= start && at - start <= bytes - 8; }

static int stack_word(u64 at, u64* word) {
  if (is_word_in(at, stack_memory.copy_at, stack_memory.copy_bytes)) {
    memcpy(word, stack_memory.copy + (at - stack_memory.copy_at), 8);
    return 1;
  }
  if (!is_word_in(at, stack_memory.at, stack_memory.bytes)) {
    if (at < PAGE || at > ~0ul - 2 * STACK_WINDOW) return 0;
    u64 end = (at | (PAGE - 1)) + 1;
    // The second page may not exist.
    struct iovec from[2] = { { (const void*)at, end - at }, { (const void*)end, PAGE } };
    i64 n = peek_all(from, 2, stack_memory.data, end - at + PAGE);
    stack_memory.at = at, stack_memory.bytes = n > 0 ? (u64)n : 0;
    if (stack_memory.bytes < 8) return 0;
  }
  memcpy(word, stack_memory.data + (at - stack_memory.at), 8);
  return 1;
}

// ---- Call frame information.

// Cursor over bytes that were read from the program's memory; `address` is the program's address of `at`.
typedef struct { const u8 *at, *end; u64 address; int is_bad; } Bytes;

static u64 take_bytes(Bytes* b, u32 bytes) {
  u64 v = 0;
  if ((u64)(b->end - b->at) < bytes) return b->is_bad = 1, b->at = b->end, 0;
  memcpy(&v, b->at, bytes);
  b->at += bytes, b->address += bytes;
  return v;
}
static u64 take_number(Bytes* b) {
  u64 v = 0, byte = 128;
  for (u32 shift = 0; byte & 128 && !b->is_bad; shift += 7) {
    byte = take_bytes(b, 1);
    if (shift < 64) v |= (byte & 127) << shift;
  }
  return v;
}
static i64 take_signed(Bytes* b) {
  u64 v = 0, byte = 128;
  u32 shift = 0;
  for (; byte & 128 && !b->is_bad; shift += 7) {
    byte = take_bytes(b, 1);
    if (shift < 64) v |= (byte & 127) << shift;
  }
  return (i64)(shift < 64 && byte & 64 ? v | ~0ul << shift : v);
}
static void take_over(Bytes* b, u64 bytes) {
  if ((u64)(b->end - b->at) < bytes) b->is_bad = 1, bytes = (u64)(b->end - b->at);
  b->at += bytes, b->address += bytes;
}

// Reads a pointer in one of DWARF's encodings (DW_EH_PE_…).
static u64 take_pointer(Bytes* b, u32 encoding) {
  u64 at = b->address, v = 0;
  switch (encoding & 0xf) {
  case 0: case 4: case 0xc: v = take_bytes(b, 8); break;
  case 1: v = take_number(b); break;
  case 2: v = take_bytes(b, 2); break;
  case 3: v = take_bytes(b, 4); break;
  case 9: v = (u64)take_signed(b); break;
  case 0xa: v = (u64)(i64)(short)take_bytes(b, 2); break;
  case 0xb: v = (u64)(i64)(i32)take_bytes(b, 4); break;
  default: b->is_bad = 1;
  }
  u32 relative = encoding & 0x70;
  if (relative == 0x10) v += at;
  else if (relative) b->is_bad = 1;
  return v;
}

// Rule by which a register of the caller is found.
enum { SAME = 0, UNDEFINED, AT_OFFSET, IS_OFFSET, IN_REGISTER, AT_EXPRESSION, IS_EXPRESSION };
// The rules at one address: for the CFA (the stack pointer of the caller), an offset from a register or an expression;
// for each register, an offset, the number of a register, or the address of an expression.
typedef struct {
  u64 pc, start;
  int is_known, is_signal;
  u8 cfa_how, how[REGISTERS];
  u32 cfa_register;
  i64 cfa, at[REGISTERS];
} UnwindRow;

enum { ROWS_KEPT = 2048, ROWS_NESTED = 8, LONGEST_ENTRY = 4096 };
static struct {
  UnwindRow* rows;
  // `native_modules.turn` for which the rows are valid.
  u32 turn;
} unwinding;

typedef struct { u64 code_align; i64 data_align; u32 encoding, is_signal, has_data; } UnwindCommon;

static void row_rule(UnwindRow* row, u64 number, u8 how, i64 at) {
  if (number < REGISTERS) row->how[number] = how, row->at[number] = at;
}

// Executes the instructions up to the address `pc`. Returns 0 if one of them is unknown.
static int rows_execute(Bytes b, const UnwindCommon* c, UnwindRow* row, const UnwindRow* first, u64 at, u64 pc) {
  static UnwindRow kept[ROWS_NESTED];
  u32 depth = 0;
  while (b.at < b.end && !b.is_bad) {
    u32 op = (u32)take_bytes(&b, 1), low = op & 63;
    u64 n, step = 0;
    switch (op >> 6 ? op & 0xc0 : op) {
    case 0x40: step = low; break;
    case 0x80: n = take_number(&b), row_rule(row, low, AT_OFFSET, (i64)n * c->data_align); break;
    case 0xc0:
      if (first && low < REGISTERS) row_rule(row, low, first->how[low], first->at[low]);
      break;
    case 0x00: break;
    case 0x01:
      n = take_pointer(&b, c->encoding);
      if (n > pc) return 1;
      at = n;
      break;
    case 0x02: step = take_bytes(&b, 1); break;
    case 0x03: step = take_bytes(&b, 2); break;
    case 0x04: step = take_bytes(&b, 4); break;
    case 0x05: n = take_number(&b), row_rule(row, n, AT_OFFSET, (i64)take_number(&b) * c->data_align); break;
    case 0x06:
      n = take_number(&b);
      if (first && n < REGISTERS) row_rule(row, n, first->how[n], first->at[n]);
      break;
    case 0x07: row_rule(row, take_number(&b), UNDEFINED, 0); break;
    case 0x08: row_rule(row, take_number(&b), SAME, 0); break;
    case 0x09: n = take_number(&b), row_rule(row, n, IN_REGISTER, (i64)take_number(&b)); break;
    case 0x0a:
      if (depth == ROWS_NESTED) return 0;
      kept[depth++] = *row;
      break;
    case 0x0b:
      if (!depth) return 0;
      *row = kept[--depth];
      break;
    case 0x0c:
      row->cfa_how = IS_OFFSET, row->cfa_register = (u32)take_number(&b), row->cfa = (i64)take_number(&b);
      break;
    case 0x0d: row->cfa_register = (u32)take_number(&b); break;
    case 0x0e: row->cfa = (i64)take_number(&b); break;
    case 0x0f: row->cfa_how = IS_EXPRESSION, row->cfa = (i64)b.address, n = take_number(&b), take_over(&b, n); break;
    case 0x10: case 0x16:
      n = take_number(&b), row_rule(row, n, op == 0x10 ? AT_EXPRESSION : IS_EXPRESSION, (i64)b.address);
      n = take_number(&b), take_over(&b, n);
      break;
    case 0x11: n = take_number(&b), row_rule(row, n, AT_OFFSET, take_signed(&b) * c->data_align); break;
    case 0x12:
      row->cfa_how = IS_OFFSET, row->cfa_register = (u32)take_number(&b), row->cfa = take_signed(&b) * c->data_align;
      break;
    case 0x13: row->cfa = take_signed(&b) * c->data_align; break;
    case 0x14: n = take_number(&b), row_rule(row, n, IS_OFFSET, (i64)take_number(&b) * c->data_align); break;
    case 0x15: n = take_number(&b), row_rule(row, n, IS_OFFSET, take_signed(&b) * c->data_align); break;
    case 0x2d: break; // DW_CFA_AARCH64_negate_ra_state: addresses are stripped of their signature anyway.
    case 0x2e: take_number(&b); break;
    default: return 0;
    }
    at += step * c->code_align;
    if (at > pc) return 1;
  }
  return !b.is_bad;
}

// Reads a CIE or an FDE (Linux Standard Base Core, section 10.6.1). Returns its contents after the length.
static int entry_read(u64 at, u8* to, Bytes* b) {
  u32 length;
  if (!peek((const void*)at, &length, 4) || length < 8 || length > LONGEST_ENTRY) return 0;
  *b = (Bytes){ to, to + length, at + 4, 0 };
  return peek((const void*)(at + 4), to, length);
}

static int common_read(Bytes* b, UnwindCommon* c) {
  char augmentation[8];
  u32 n = 0;
  u64 zero = take_bytes(b, 4), version = take_bytes(b, 1);
  for (u8 letter; (letter = (u8)take_bytes(b, 1)) && n < sizeof augmentation - 1;) augmentation[n++] = (char)letter;
  augmentation[n] = 0;
  *c = (UnwindCommon){ take_number(b), 0, 0, 0, *augmentation == 'z' };
  c->data_align = take_signed(b);
  u64 column = version == 1 ? take_bytes(b, 1) : take_number(b);
  if (zero || b->is_bad || column != RETURN_ADDRESS || (*augmentation && !c->has_data)) return 0;
  if (!c->has_data) return 1;
  u64 bytes = take_number(b);
  Bytes data = *b;
  take_over(b, bytes);
  for (const char* p = augmentation + 1; *p; p++) {
    if (*p == 'R') c->encoding = (u32)take_bytes(&data, 1);
    else if (*p == 'S') c->is_signal = 1;
    else if (*p == 'P') { // The personality routine.
      u32 encoding = (u32)take_bytes(&data, 1);
      take_pointer(&data, encoding & 0x7f);
    } else if (*p == 'L') take_bytes(&data, 1);
    else if (*p != 'B') return 0;
  }
  return !b->is_bad && !data.is_bad;
}

// Address of the FDE for an address, from the sorted table of its module; 0 if there is none.
static u64 entry_find(const NativeModule* m, u64 pc) {
  enum { PIECE = 64 };
  static i32 pairs[PIECE][2];
  i64 target = (i64)(pc - m->table_base);
  u32 low = 0, high = m->entries;
  if (!high) return 0;
  while (high - low > PIECE) {
    u32 middle = low + (high - low) / 2;
    i32 start;
    if (!peek((const void*)(m->table + middle * 8ul), &start, 4)) return 0;
    if (start <= target) low = middle;
    else high = middle;
  }
  if (!peek((const void*)(m->table + low * 8ul), pairs, (high - low) * 8ul)) return 0;
  u32 found = high - low;
  for (u32 i = 0; i < high - low && pairs[i][0] <= target; i++) found = i;
  return found < high - low ? m->table_base + (u64)(i64)pairs[found][1] : 0;
}

static int row_find(const NativeModule* m, u64 pc, UnwindRow* row) {
  static u8 entry[LONGEST_ENTRY], common[LONGEST_ENTRY];
  Bytes b, cie;
  UnwindCommon c;
  u64 at = entry_find(m, pc);
  if (!at || !entry_read(at, entry, &b)) return 0;
  u64 back_from = b.address;
  u64 back = take_bytes(&b, 4);
  if (!back || !entry_read(back_from - back, common, &cie) || !common_read(&cie, &c)) return 0;
  u64 start = take_pointer(&b, c.encoding), length = take_pointer(&b, c.encoding & 0xf);
  if (b.is_bad || pc < start || pc - start >= length) return 0;
  if (c.has_data) {
    u64 bytes = take_number(&b);
    take_over(&b, bytes);
  }
  row->start = start, row->is_signal = (int)c.is_signal;
  if (!rows_execute(cie, &c, row, NULL, start, pc)) return 0;
  UnwindRow first = *row;
  return rows_execute(b, &c, row, &first, start, pc);
}

// The rules at an address in a module. They are kept: threads return to the same places.
static const UnwindRow* row_of(const NativeModule* m, u64 pc) {
  if (unwinding.turn != native_modules.turn) {
    memset(unwinding.rows, 0, ROWS_KEPT * sizeof(UnwindRow));
    unwinding.turn = native_modules.turn;
  }
  UnwindRow* row = &unwinding.rows[mix(pc) & (ROWS_KEPT - 1)];
  if (row->pc != pc) {
    *row = (UnwindRow){ .pc = pc };
    row->is_known = row_find(m, pc, row);
  }
  return row->is_known ? row : NULL;
}

// Evaluates an expression: those operations that compilers and the C library use in call frame information.
static int expression_value(const Registers* r, u64 at, u64 start, int has_start, u64* result) {
  static u8 bytes[256];
  u64 stack[8];
  u32 n = 0;
  u64 to_end = PAGE - (at & (PAGE - 1)), most = sizeof bytes;
  // The section may end with the page.
  if (!peek((const void*)at, bytes, most)) {
    most = to_end < most ? to_end : most;
    if (!peek((const void*)at, bytes, most)) return 0;
  }
  Bytes b = { bytes, bytes + most, at, 0 };
  u64 length = take_number(&b);
  if ((u64)(b.end - b.at) < length) return 0;
  b.end = b.at + length;
  if (has_start) stack[n++] = start;
  while (b.at < b.end && !b.is_bad) {
    u32 op = (u32)take_bytes(&b, 1);
    u64 v = 0;
    if (op >= 0x70 && op < 0x90) {
      u32 number = op - 0x70;
      i64 offset = take_signed(&b);
#if defined(__x86_64__)
      if (number == RETURN_ADDRESS) v = r->pc;
      else
#endif
      if (register_known(r, number)) v = r->value[number];
      else return 0;
      v += (u64)offset;
    } else if (op >= 0x30 && op < 0x50) {
      v = op - 0x30;
    } else if (op == 0x06 || op == 0x23) {
      if (!n) return 0;
      if (op == 0x06 && !stack_word(stack[--n], &v)) return 0;
      if (op == 0x23) v = stack[--n] + take_number(&b);
    } else if (op == 0x1a || op == 0x1c || op == 0x22 || op == 0x24 || op == 0x2a) {
      if (n < 2) return 0;
      u64 second = stack[--n], first = stack[--n];
      v = op == 0x1a ? first & second : op == 0x1c ? first - second : op == 0x22 ? first + second
        : op == 0x24 ? (second < 64 ? first << second : 0) : (u64)((i64)first >= (i64)second);
    } else if (op == 0x08) v = take_bytes(&b, 1);
    else if (op == 0x09) v = (u64)(i64)(signed char)take_bytes(&b, 1);
    else if (op == 0x0a) v = take_bytes(&b, 2);
    else if (op == 0x0b) v = (u64)(i64)(short)take_bytes(&b, 2);
    else if (op == 0x10) v = take_number(&b);
    else if (op == 0x11) v = (u64)take_signed(&b);
    else return 0;
    if (n == COUNT(stack)) return 0;
    stack[n++] = v;
  }
  if (!n || b.is_bad) return 0;
  *result = stack[n - 1];
  return 1;
}

// ---- Frame pointers.

static u64 plain_address(u64 address) {
#if defined(__aarch64__)
  // Return addresses may be signed in their upper bits.
  address &= (1ul << 48) - 1;
#endif
  return address;
}

enum { CALL_UNKNOWN = 0, CALL_DIRECT, CALL_INDIRECT };
// Determines the function that the call before a return address calls. Follows a jump of the procedure linkage table.
static int call_before(u64 address, u64* target) {
#if defined(__x86_64__)
  u8 b[8];
  u64 at;
  i32 offset;
  if (!peek((const void*)(address - 8), b, 8)) return CALL_UNKNOWN;
  memcpy(&offset, b + 4, 4);
  if (b[2] == 0xff && b[3] == 0x15) { // call *offset(%rip)
    if (!peek((const void*)(address + (u64)(i64)offset), target, 8)) return CALL_UNKNOWN;
    return CALL_DIRECT;
  }
  if (b[3] != 0xe8) {
    for (u32 i = 2; i < 8; i++)
      if (b[8 - i] == 0xff && (b[8 - i + 1] >> 3 & 7) == 2) return CALL_INDIRECT;
    return CALL_UNKNOWN;
  }
  at = address + (u64)(i64)offset;
  u8 code[16];
  static const u8 LANDING[] = { 0xf3, 0x0f, 0x1e, 0xfa }; // endbr64
  *target = at;
  if (!peek((const void*)at, code, sizeof code)) return CALL_DIRECT;
  u32 k = memcmp(code, LANDING, 4) ? 0 : 4;
  k += code[k] == 0xf2;
  if (code[k] != 0xff || code[k + 1] != 0x25) return CALL_DIRECT;
  memcpy(&offset, code + k + 2, 4);
  return peek((const void*)(at + k + 6 + (u64)(i64)offset), target, 8) ? CALL_DIRECT : CALL_UNKNOWN;
#else
  u32 word;
  if (!peek((const void*)(address - 4), &word, 4)) return CALL_UNKNOWN;
  *target = address - 4 + (u64)((i64)(i32)(word << 6) >> 4); // bl
  if (word >> 26 == 0x25) return CALL_DIRECT;
  return (word & 0xfffffc1f) == 0xd63f0000 /* blr */ ? CALL_INDIRECT : CALL_UNKNOWN;
#endif
}

enum { FRAME_SEARCH = 32 << 10, FRAME_LARGEST = 8 << 20 };
// Size of a function's frame between its stack pointer and its frame pointer, according to its prologue.
static u64 frame_size(const UnwindRow* row) {
  u64 bytes = 0;
#if defined(__x86_64__)
  u8 b[64];
  for (u32 i = 0; i < REGISTERS; i++)
    if (row->how[i] == AT_OFFSET && i != FRAME_POINTER && i != RETURN_ADDRESS) bytes += 8;
  if (!peek((const void*)row->start, b, sizeof b)) return bytes;
  u32 at = 0;
  while (at < 40 && (b[at] != 0x48 || b[at + 1] != 0x89 || b[at + 2] != 0xe5)) at++; // mov %rsp, %rbp
  for (; at < 57; at++) {
    i32 by;
    memcpy(&by, b + at + 3, 4);
    if (b[at] != 0x48) continue;
    if (b[at + 1] == 0x81 && b[at + 2] == 0xec) return bytes + (u64)(i64)by; // sub $by, %rsp
    if (b[at + 1] == 0x83 && b[at + 2] == 0xec) return bytes + (u64)(i64)(signed char)b[at + 3];
    if (b[at + 1] == 0x83 && b[at + 2] == 0xc4) return bytes - (u64)(i64)(signed char)b[at + 3]; // add
  }
#else
  (void)row;
#endif
  return bytes;
}
// Returns 1 if `at` may be the frame pointer of a signal handler: the kernel called it, so its return address is in the
// function that ends signal handling (sigreturn).
static int is_handler_pointer(u64 at, u64* back) {
  static UnwindRow row;
  if (at & 7 || !stack_word(at + 8, back)) return 0;
  NativeModule* m = native_module_of(*back);
  row = (UnwindRow){ .pc = *back };
  return m && row_find(m, *back, &row) && row.is_signal;
}
// Returns 1 if `at` may be the frame pointer of the function of `row`, because the word above it is a return address;
// `sure` is set if that address follows a direct call of this very function.
static int is_frame_pointer(const UnwindRow* row, u64 at, u64* back, int* sure) {
  u64 target = 0;
  if (at & 7 || !stack_word(at + 8, back)) return 0;
  *back = plain_address(*back);
  if (!native_module_at(*back)) return 0;
  int call = call_before(*back, &target);
  *sure = call == CALL_DIRECT && target == row->start;
  return call != CALL_UNKNOWN;
}
// Finds the frame pointer of a function for which only the stack pointer is known, as in a thread that waits in a
// system call. The function has stored its caller's frame pointer and return address in its frame. Functions that it
// called earlier may have left such pairs, too, but not with a return address after a call of this very function.
static int frame_pointer_find(const Registers* r, const UnwindRow* row, u64* result) {
  // Frame pointers found before, with the return address beside them.
  static struct { u64 sp, pc, frame, back; } found[64];
  u64 sp = r->value[STACK_POINTER], back;
  u32 entry = mix(sp ^ row->pc) % COUNT(found);
  if (found[entry].sp == sp && found[entry].pc == row->pc && stack_word(found[entry].frame + 8, &back) &&
    back == found[entry].back)
    return *result = found[entry].frame, 1;
  int sure = 0;
  u64 guess = sp + frame_size(row), at = guess, guess_back = 0;
  int is_near = guess >= sp && guess - sp < FRAME_LARGEST;
  int is_likely = is_near && is_frame_pointer(row, guess, &guess_back, &sure);
  if (is_near && !is_likely) is_likely = sure = is_handler_pointer(guess, &guess_back);
  back = guess_back;
  for (u64 slot = sp & ~7ul; !sure && slot < sp + FRAME_SEARCH; slot += 8) {
    if (!is_frame_pointer(row, slot, &back, &sure) && !stack_word(slot + 8, &back)) break;
    at = slot;
  }
  // The function may also have been called by its address, or entered by a jump at the end of another.
  if (!sure && !is_likely) return 0;
  if (!sure) at = guess, back = guess_back;
  found[entry].sp = sp, found[entry].pc = row->pc, found[entry].frame = at, found[entry].back = back;
  return *result = at, 1;
}

// Moves to the caller by the frame pointer, where there is no call frame information, as in generated code.
static int frame_pointer_step(Registers* r) {
  u64 sp = r->value[STACK_POINTER], frame = r->value[FRAME_POINTER], caller, back;
  if (!register_known(r, FRAME_POINTER) || frame & 7 || frame < sp || frame - sp > FRAME_LARGEST) return 0;
  if (!stack_word(frame, &caller) || !stack_word(frame + 8, &back)) return 0;
  back = plain_address(back);
  u64 target;
  if (!native_module_at(back) || call_before(back, &target) == CALL_UNKNOWN) return 0;
  r->known = 0;
  register_set(r, STACK_POINTER, frame + 16), register_set(r, FRAME_POINTER, caller);
  r->pc = back;
  return 1;
}

// ---- Stacks.

enum { NATIVE_FRAMES = 128 };
// A stack, innermost frame first: addresses of the instructions that were executed, or of the calls.
static struct {
  u64 pcs[NATIVE_FRAMES];
  // Addresses of the functions; 0 if unknown.
  u64 starts[NATIVE_FRAMES];
  u32 depth;
  // Set if the outermost frame is that of the thread's first function.
  int is_whole;
} native_walk;

enum { STEP_LOST = 0, STEP_DONE, STEP_LAST };
// Moves to the caller by the rules in `row`; STEP_LOST if they need a register or memory that is not known.
static int unwind_step(Registers* r, const UnwindRow* row) {
  Registers caller = { .known = 0 };
  u64 cfa, sp = r->value[STACK_POINTER];
  if (row->how[RETURN_ADDRESS] == UNDEFINED) return STEP_LAST;
  if (row->cfa_how == IS_EXPRESSION) {
    if (!expression_value(r, (u64)row->cfa, 0, 0, &cfa)) return STEP_LOST;
  } else {
    u64 frame;
    int is_usual = row->cfa_register == FRAME_POINTER && row->cfa == 16 && row->how[FRAME_POINTER] == AT_OFFSET &&
      row->at[FRAME_POINTER] == -16;
    if (!register_known(r, row->cfa_register)) {
      if (!is_usual || !frame_pointer_find(r, row, &frame)) return STEP_LOST;
      register_set(r, FRAME_POINTER, frame);
    }
    cfa = r->value[row->cfa_register] + (u64)row->cfa;
  }
  if (cfa < sp && !row->is_signal) return STEP_LOST;
  u64 back = 0;
  int has_back = 0;
  for (u32 i = 0; i < REGISTERS; i++) {
    u64 v = 0;
    int known = 0;
    switch (row->how[i]) {
    // A function keeps callee-saved registers that its rules do not mention.
    case SAME:
      known = register_known(r, i) && (i == RETURN_ADDRESS || KEPT_REGISTERS >> i & 1);
      v = r->value[i];
      break;
    case AT_OFFSET: known = stack_word(cfa + (u64)row->at[i], &v); break;
    case IS_OFFSET: known = 1, v = cfa + (u64)row->at[i]; break;
    case IN_REGISTER:
      known = row->at[i] < REGISTERS && register_known(r, (u32)row->at[i]);
      v = known ? r->value[row->at[i]] : 0;
      break;
    case AT_EXPRESSION: known = expression_value(r, (u64)row->at[i], cfa, 1, &v) && stack_word(v, &v); break;
    case IS_EXPRESSION: known = expression_value(r, (u64)row->at[i], cfa, 1, &v); break;
    default: break;
    }
    if (!known) continue;
    if (i == RETURN_ADDRESS) back = plain_address(v), has_back = 1;
    else register_set(&caller, i, v);
  }
  if (!has_back) return STEP_LOST;
  if (!back) return STEP_LAST;
  // A frame that leads to itself.
  if (back == r->pc && cfa == sp) return STEP_LOST;
  if (!register_known(&caller, STACK_POINTER)) register_set(&caller, STACK_POINTER, cfa);
  caller.pc = back;
  *r = caller;
  return STEP_DONE;
}

// Walks outwards from registers into `native_walk`.
static void native_unwind(Registers r, u64 monotonic) {
  native_walk.depth = 0, native_walk.is_whole = 0;
  stack_memory.bytes = 0;
  // Subtracted from a return address, which follows its call, to get an address inside the call instruction.
  u64 before = 0;
  while (native_walk.depth < NATIVE_FRAMES) {
    u64 pc = r.pc - before;
    NativeModule* m = native_module_of(pc);
    if (!m) native_modules_look(monotonic), m = native_module_of(pc);
    const UnwindRow* row = m ? row_of(m, pc) : NULL;
    native_walk.pcs[native_walk.depth] = pc, native_walk.starts[native_walk.depth++] = row ? row->start : 0;
    if (row) {
      int step = unwind_step(&r, row);
      native_walk.is_whole = step == STEP_LAST;
      if (step != STEP_DONE) return;
      // A signal interrupted the instruction at the address itself.
      before = row->is_signal ? 0 : 1;
    } else {
      if (!frame_pointer_step(&r)) return;
      before = 1;
    }
  }
}
