// The dynamic linker's dlsym, which the object interposes: clients such as JAX and Triton look up CUPTI's functions in
// the library, and get those of other_client.c instead (profiler_hooks.c and graph_hooks.c have others). Every other
// lookup goes on to the next dlsym by a jump, so that it sees its own caller's return address, on which RTLD_NEXT
// depends.

// Both are used by the assembly below.
__attribute__((visibility("hidden"))) void* (*next_dlsym)(void*, const char*);
__attribute__((visibility("hidden"), used)) void* interposed_dlsym(void* library, const char* symbol);

static const u64 RTLD_NEXT = ~0ul;
// Makes dlsym return NULL.
static void* const NOT_FOUND = (void*)1;
// Other preloaded objects may interpose dlsym, too; theirs has no version, and any version matches it.
static void find_next_dlsym(void) {
  // The version that all releases have comes first: a failed lookup allocates memory, and an allocator may call dlsym.
#if defined(__aarch64__)
  static const char* const VERSIONS[] = { "GLIBC_2.17", "GLIBC_2.34" };
#else
  static const char* const VERSIONS[] = { "GLIBC_2.2.5", "GLIBC_2.34" };
#endif
  for (u32 i = 0; i < COUNT(VERSIONS) && !next_dlsym; i++)
    *(void**)&next_dlsym = dlvsym((void*)RTLD_NEXT, "dlsym", VERSIONS[i]);
}

// dlsym for this object's own lookups.
static void* lookup(void* library, const char* symbol) {
  if (UNLIKELY(!next_dlsym)) find_next_dlsym();
  return next_dlsym ? next_dlsym(library, symbol) : NULL;
}

static void* looked_up_client(void* library, const char* symbol);
static void* looked_up_profiler(void* library, const char* symbol);
static void* looked_up_instantiation(void* library, const char* symbol);
// Returns what a lookup by the program yields; NULL if the next dlsym decides.
void* interposed_dlsym(void* library, const char* symbol) {
  if (UNLIKELY(!next_dlsym)) find_next_dlsym();
  if ((u64)library == RTLD_NEXT || !symbol || *symbol != 'c' || symbol[1] != 'u') return NULL;
  // Lookups without a library (RTLD_DEFAULT) find this object's functions anyway.
  if (!strncmp(symbol, "cupti", 5)) return library ? looked_up_client(library, symbol) : NULL;
  if (strstr(symbol, "GraphInstantiate")) return looked_up_instantiation(library, symbol);
  return strstr(symbol, "Profiler") ? looked_up_profiler(library, symbol) : NULL;
}

#if defined(__x86_64__)
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, @function\n"
        "dlsym:\n"
        "  endbr64\n"
        "  push %rdi\n"
        "  push %rsi\n"
        "  sub $8, %rsp\n"
        "  call interposed_dlsym\n"
        "  add $8, %rsp\n"
        "  pop %rsi\n"
        "  pop %rdi\n"
        "  test %rax, %rax\n"
        "  jnz 1f\n"
        "  mov next_dlsym(%rip), %rax\n"
        "  test %rax, %rax\n"
        "  jz 1f\n"
        "  jmp *%rax\n"
        "1:\n"
        "  cmp $1, %rax\n"
        "  jne 2f\n"
        "  xor %eax, %eax\n"
        "2:\n"
        "  ret\n"
        ".size dlsym, . - dlsym\n");
#else
__asm__(".text\n"
        ".globl dlsym\n"
        ".type dlsym, %function\n"
        "dlsym:\n"
        "  hint #34\n"
        "  stp x29, x30, [sp, #-32]!\n"
        "  stp x0, x1, [sp, #16]\n"
        "  mov x29, sp\n"
        "  bl interposed_dlsym\n"
        "  mov x16, x0\n"
        "  ldp x0, x1, [sp, #16]\n"
        "  ldp x29, x30, [sp], #32\n"
        "  cbz x16, 1f\n"
        "  cmp x16, #1\n"
        "  csel x0, xzr, x16, eq\n"
        "  ret\n"
        "1:\n"
        "  adrp x16, next_dlsym\n"
        "  ldr x16, [x16, #:lo12:next_dlsym]\n"
        "  cbz x16, 2f\n"
        "  br x16\n"
        "2:\n"
        "  mov x0, #0\n"
        "  ret\n"
        ".size dlsym, . - dlsym\n");
#endif
