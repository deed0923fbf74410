// Attaching to a program that is already running: the entry point that one of the program's threads calls after it has
// loaded this object, and the code that makes the thread do both.

// Starts the recording on a separate thread: CUPTI may have to wait for the calling thread, which may be the driver's.
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
  // Save the vector registers: their area takes at most 11,008 bytes (with AMX), and its header must be zeroed.
  "  andq $-64, %rsp\n"
  "  subq $12288, %rsp\n"
  "  xorl %eax, %eax\n"
  "  leaq 512(%rsp), %rdi\n"
  "  movl $8, %ecx\n"
  "  rep stosq\n"
  "  movl $-1, %eax\n"
  "  movl $-1, %edx\n"
  "  xsave64 (%rsp)\n"
  "  movq %rsp, %r12\n"
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
  "  jne 9f\n"
  // The first word records how far the code got.
  "  movq %rax, %r13\n"
  "  leaq 0x100000(%rax), %rsp\n"
  "  movq $1, (%r13)\n"
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
  "  movq %r12, %rsp\n"
  "  movl $-1, %eax\n"
  "  movl $-1, %edx\n"
  "  xrstor64 (%rsp)\n"
  "  movq %rbx, %rsp\n"
  "  popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %r11\n  popq %r10\n  popq %r9\n  popq %r8\n"
  "  popq %rbp\n  popq %rdi\n  popq %rsi\n  popq %rdx\n  popq %rcx\n  popq %rbx\n  popq %rax\n"
  "  popfq\n"
  "  leaq 128(%rsp), %rsp\n"
  "  jmpq *1f(%rip)\n"
  "7: .asciz \"WarpscopeAttach\"\n"
  ".balign 8\n"
  // The return address, dlopen, dlsym, the stack, and the paths of the object and of the settings.
  "1: .quad 0\n2: .quad 0\n3: .quad 0\n4: .quad 0\n5: .quad 0\n6: .quad 0\n"
  ".size warpscope_attach_code, .-warpscope_attach_code\n"
  ".text\n");
#endif
