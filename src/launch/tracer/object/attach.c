// Attaching to a program that is already running: the entry point that one of the program's threads calls after it has
// loaded this object, and the code that makes the thread do both.

// Starts the recording on a separate thread, because CUPTI may have to wait for the thread that was redirected, which
// may be one of the driver's.
static void* attach_begin(void* unused) {
  (void)unused;
  InitializeInjection();
  return NULL;
}

enum { ATTACH_STARTED, ATTACH_TRACED_ALREADY, ATTACH_NO_SETTINGS, ATTACH_NO_THREAD };

// `path` is a file that contains the settings: NAME=VALUE strings, each terminated by a zero byte.
EXPORT int WarpscopeAttach(const char* path) {
  if (GET(session.ready) || settings.n) return ATTACH_TRACED_ALREADY;
  int file = file_open(path, O_RDONLY | O_CLOEXEC);
  long n = file < 0 ? -1 : file_read(file, settings.text, sizeof settings.text - 1);
  if (file >= 0) file_close(file);
  if (n <= 0) return ATTACH_NO_SETTINGS;
  settings.n = (u64)n;
  // The new thread must not handle the program's signals.
  u64 all = ~(7ul << 31), before = 0, thread;
  SYSTEM(SYS_SIGPROCMASK, 0 /* SIG_BLOCK */, &all, &before, sizeof all);
  int failed = pthread_create(&thread, NULL, attach_begin, NULL);
  SYSTEM(SYS_SIGPROCMASK, 2 /* SIG_SETMASK */, &before, NULL, sizeof all);
  if (failed) settings.n = 0;
  return failed ? ATTACH_NO_THREAD : ATTACH_STARTED;
}

// The code to which a thread of the program is redirected (launch/attach). It saves all registers, calls dlopen, dlsym
// and WarpscopeAttach on a separate stack, and returns to where the thread was, so that no other process has to wait
// for it: if the helper is killed, the program keeps running. The code is copied, with the words at its end filled in,
// and must be position-independent.
//
// On x86-64, the thread's own stack gets 264 bytes only, since those of fibers and of signal handlers are small.
// Signals are blocked meanwhile, because a handler that jumps out of the code would leave the loader locked. If one
// arrives that would have interrupted the thread's wait, such as pause(), the wait fails with EINTR.
#if defined(__x86_64__)
__asm__(
  ".section .rodata\n"
  ".balign 16\n"
  ".globl warpscope_attach_code\n"
  ".type warpscope_attach_code, @object\n"
  "warpscope_attach_code:\n"
  // Skip the red zone.
  "  leaq -128(%rsp), %rsp\n"
  "  pushfq\n"
  "  pushq %rax\n  pushq %rbx\n  pushq %rcx\n  pushq %rdx\n  pushq %rsi\n  pushq %rdi\n  pushq %rbp\n"
  "  pushq %r8\n  pushq %r9\n  pushq %r10\n  pushq %r11\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
  "  cld\n"
  "  movq %rsp, %rbx\n"
  "  xorl %r14d, %r14d\n"
  // mmap(stack, 1 MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)
  "  movl $9, %eax\n"
  "  movq 4f(%rip), %rdi\n"
  "  movl $0x100000, %esi\n"
  "  movl $3, %edx\n"
  "  movl $0x100022, %r10d\n"
  "  movq $-1, %r8\n"
  "  xorl %r9d, %r9d\n"
  "  syscall\n"
  "  cmpq 4f(%rip), %rax\n"
  "  jne 10f\n"
  // The first word records how far the code got.
  "  movq %rax, %r13\n"
  "  leaq 0x100000(%rax), %rsp\n"
  "  movq $1, (%r13)\n"
  // Save the vector registers: their area takes at most 11,008 bytes (with AMX), and its header must be zeroed.
  "  subq $12288, %rsp\n"
  "  xorl %eax, %eax\n"
  "  leaq 512(%rsp), %rdi\n"
  "  movl $8, %ecx\n"
  "  rep stosq\n"
  "  movl $-1, %eax\n"
  "  movl $-1, %edx\n"
  "  xsave64 (%rsp)\n"
  "  movq %rsp, %r12\n"
  // rt_sigprocmask(SIG_BLOCK, all but ILL, TRAP, BUS, FPE, SEGV and SYS)
  "  subq $16, %rsp\n"
  "  movabsq $0xffffffffbffffb27, %rax\n"
  "  movq %rax, (%rsp)\n"
  "  movl $14, %eax\n"
  "  xorl %edi, %edi\n"
  "  movq %rsp, %rsi\n"
  "  leaq 8(%rsp), %rdx\n"
  "  movl $8, %r10d\n"
  "  syscall\n"
  "  movq 5f(%rip), %rdi\n"
  "  movl $2, %esi\n"
  "  callq *2f(%rip)\n"
  "  testq %rax, %rax\n"
  "  movq $2, (%r13)\n"
  "  je 9f\n"
  "  movq %rax, %rdi\n"
  "  leaq 7f(%rip), %rsi\n"
  "  callq *3f(%rip)\n"
  "  testq %rax, %rax\n"
  "  movq $3, (%r13)\n"
  "  je 9f\n"
  "  movq 6f(%rip), %rdi\n"
  "  callq *%rax\n"
  "  movl %eax, %eax\n"
  "  addq $16, %rax\n"
  "  movq %rax, (%r13)\n"
  "9:\n"
  // rt_sigpending: signals that the program does not block. Those that are ignored by default interrupt no wait unless
  // they have a handler, which is not known here.
  "  leaq -16(%r12), %rsp\n"
  "  movl $127, %eax\n"
  "  movq %rsp, %rdi\n"
  "  movl $8, %esi\n"
  "  syscall\n"
  "  movq 8(%rsp), %r14\n"
  "  notq %r14\n"
  "  andq (%rsp), %r14\n"
  "  andq $~0x8430000, %r14\n"
  // rt_sigprocmask(SIG_SETMASK, as before): handlers run here.
  "  movl $14, %eax\n"
  "  movl $2, %edi\n"
  "  leaq 8(%rsp), %rsi\n"
  "  xorl %edx, %edx\n"
  "  movl $8, %r10d\n"
  "  syscall\n"
  "  movq %r12, %rsp\n"
  "  movl $-1, %eax\n"
  "  movl $-1, %edx\n"
  "  xrstor64 (%rsp)\n"
  "10:\n"
  "  movq %rbx, %rsp\n"
  "  testq %r14, %r14\n"
  "  jz 11f\n"
  "  cmpq $0, 12f(%rip)\n"
  "  je 11f\n"
  // Make the interrupted wait fail with EINTR: its result is in the saved rax.
  "  movq $-4, 112(%rsp)\n"
  "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %r11\n  popq %r10\n  popq %r9\n  popq %r8\n"
  "  popq %rbp\n  popq %rdi\n  popq %rsi\n  popq %rdx\n  popq %rcx\n  popq %rbx\n  popq %rax\n"
  "  popfq\n"
  "  leaq 128(%rsp), %rsp\n"
  "  jmpq *12f(%rip)\n"
  "11:\n"
  "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %r11\n  popq %r10\n  popq %r9\n  popq %r8\n"
  "  popq %rbp\n  popq %rdi\n  popq %rsi\n  popq %rdx\n  popq %rcx\n  popq %rbx\n  popq %rax\n"
  "  popfq\n"
  "  leaq 128(%rsp), %rsp\n"
  "  jmpq *1f(%rip)\n"
  "7: .asciz \"WarpscopeAttach\"\n"
  ".balign 8\n"
  // The return address, dlopen, dlsym, the stack, the paths of the object and of the settings, and the return address
  // of a wait that was interrupted, or 0.
  "1: .quad 0\n2: .quad 0\n3: .quad 0\n4: .quad 0\n5: .quad 0\n6: .quad 0\n12: .quad 0\n"
  ".size warpscope_attach_code, .-warpscope_attach_code\n"
  ".text\n");
#elif defined(__aarch64__)
// The code restores every register before it returns, so it cannot return through one: it ends in a direct branch,
// which launch/attach fills in.
__asm__(
  ".section .rodata\n"
  ".balign 16\n"
  ".globl warpscope_attach_code\n"
  ".type warpscope_attach_code, %object\n"
  "warpscope_attach_code:\n"
  "  sub sp, sp, #800\n"
  "  stp x0, x1, [sp]\n  stp x2, x3, [sp, #16]\n  stp x4, x5, [sp, #32]\n  stp x6, x7, [sp, #48]\n"
  "  stp x8, x9, [sp, #64]\n  stp x10, x11, [sp, #80]\n  stp x12, x13, [sp, #96]\n  stp x14, x15, [sp, #112]\n"
  "  stp x16, x17, [sp, #128]\n  stp x18, x19, [sp, #144]\n  stp x20, x21, [sp, #160]\n  stp x22, x23, [sp, #176]\n"
  "  stp x24, x25, [sp, #192]\n  stp x26, x27, [sp, #208]\n  stp x28, x29, [sp, #224]\n"
  "  mrs x0, nzcv\n  stp x30, x0, [sp, #240]\n"
  "  stp q0, q1, [sp, #256]\n  stp q2, q3, [sp, #288]\n  stp q4, q5, [sp, #320]\n  stp q6, q7, [sp, #352]\n"
  "  stp q8, q9, [sp, #384]\n  stp q10, q11, [sp, #416]\n  stp q12, q13, [sp, #448]\n  stp q14, q15, [sp, #480]\n"
  "  stp q16, q17, [sp, #512]\n  stp q18, q19, [sp, #544]\n  stp q20, q21, [sp, #576]\n  stp q22, q23, [sp, #608]\n"
  "  stp q24, q25, [sp, #640]\n  stp q26, q27, [sp, #672]\n  stp q28, q29, [sp, #704]\n  stp q30, q31, [sp, #736]\n"
  "  mrs x0, fpsr\n  mrs x1, fpcr\n  add x2, sp, #768\n  stp x0, x1, [x2]\n"
  "  mov x19, sp\n"
  // mmap(stack, 1 MiB, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED_NOREPLACE, -1, 0)
  "  mov x8, #222\n"
  "  ldr x0, 4f\n"
  "  mov x1, #0x100000\n"
  "  mov x2, #3\n"
  "  mov x3, #0x22\n"
  "  movk x3, #0x10, lsl #16\n"
  "  mov x4, #-1\n"
  "  mov x5, #0\n"
  "  svc #0\n"
  "  ldr x1, 4f\n"
  "  cmp x0, x1\n"
  "  b.ne 9f\n"
  // The first word records how far the code got.
  "  mov x20, x0\n"
  "  add sp, x0, #0x100, lsl #12\n"
  "  mov x1, #1\n"
  "  str x1, [x20]\n"
  "  ldr x0, 5f\n"
  "  mov w1, #2\n"
  "  ldr x16, 2f\n"
  "  blr x16\n"
  "  mov x1, #2\n"
  "  str x1, [x20]\n"
  "  cbz x0, 9f\n"
  "  adr x1, 7f\n"
  "  ldr x16, 3f\n"
  "  blr x16\n"
  "  mov x1, #3\n"
  "  str x1, [x20]\n"
  "  cbz x0, 9f\n"
  "  mov x16, x0\n"
  "  ldr x0, 6f\n"
  "  blr x16\n"
  "  mov w0, w0\n"
  "  add x0, x0, #16\n"
  "  str x0, [x20]\n"
  "9:\n"
  "  mov sp, x19\n"
  "  add x2, sp, #768\n  ldp x0, x1, [x2]\n  msr fpsr, x0\n  msr fpcr, x1\n"
  "  ldp q0, q1, [sp, #256]\n  ldp q2, q3, [sp, #288]\n  ldp q4, q5, [sp, #320]\n  ldp q6, q7, [sp, #352]\n"
  "  ldp q8, q9, [sp, #384]\n  ldp q10, q11, [sp, #416]\n  ldp q12, q13, [sp, #448]\n  ldp q14, q15, [sp, #480]\n"
  "  ldp q16, q17, [sp, #512]\n  ldp q18, q19, [sp, #544]\n  ldp q20, q21, [sp, #576]\n  ldp q22, q23, [sp, #608]\n"
  "  ldp q24, q25, [sp, #640]\n  ldp q26, q27, [sp, #672]\n  ldp q28, q29, [sp, #704]\n  ldp q30, q31, [sp, #736]\n"
  "  ldp x30, x0, [sp, #240]\n  msr nzcv, x0\n"
  "  ldp x2, x3, [sp, #16]\n  ldp x4, x5, [sp, #32]\n  ldp x6, x7, [sp, #48]\n"
  "  ldp x8, x9, [sp, #64]\n  ldp x10, x11, [sp, #80]\n  ldp x12, x13, [sp, #96]\n  ldp x14, x15, [sp, #112]\n"
  "  ldp x16, x17, [sp, #128]\n  ldp x18, x19, [sp, #144]\n  ldp x20, x21, [sp, #160]\n  ldp x22, x23, [sp, #176]\n"
  "  ldp x24, x25, [sp, #192]\n  ldp x26, x27, [sp, #208]\n  ldp x28, x29, [sp, #224]\n"
  "  ldp x0, x1, [sp]\n"
  "  add sp, sp, #800\n"
  "  b 8f\n"
  "7: .asciz \"WarpscopeAttach\"\n"
  ".balign 8\n"
  // The branch back.
  "8: .word 0x14000000, 0\n"
  // Not used here, dlopen, dlsym, the stack, the paths of the object and of the settings, and not used here.
  "1: .quad 0\n2: .quad 0\n3: .quad 0\n4: .quad 0\n5: .quad 0\n6: .quad 0\n12: .quad 0\n"
  ".size warpscope_attach_code, .-warpscope_attach_code\n"
  ".text\n");
#endif
