// A program whose thread waits in system calls with known values in its registers and ends with code 1 if one of them
// has another value afterwards: registers SECONDS [spin]
//
// With `spin`, a second thread computes. The waiting code starts at a page boundary, so that the last page of code has
// room left for the code that loads the tracer.
#include <pthread.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

int cuInit(unsigned);

// General registers and vector registers, before and after.
enum { GENERAL = 32, VECTOR = 32 };
typedef struct { uint64_t general[GENERAL], vector[VECTOR][2], flags; } Registers;
Registers given, found;
// 2 ms
struct timespec pause = { 0, 2000000 };
void wait_once(void);

#if defined(__x86_64__)
// nanosleep(&pause, NULL). rcx, r11 and rax are the kernel's.
#define VECTORS 16
#define EACH(X) X(rbx, 0) X(rbp, 8) X(rdx, 16) X(r8, 24) X(r9, 32) X(r10, 40) X(r12, 48) X(r13, 56) X(r14, 64) X(r15, 72)
#define LOAD(register, at) "  movq given+" #at "(%rip), %" #register "\n"
#define STORE(register, at) "  movq %" #register ", found+" #at "(%rip)\n"
static const int COUNT = 10;
#define V(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15)
#define LOAD_V(n) "  movdqu given+256+16*" #n "(%rip), %xmm" #n "\n"
#define STORE_V(n) "  movdqu %xmm" #n ", found+256+16*" #n "(%rip)\n"
__asm__(".text\n.balign 4096\n.globl wait_once\nwait_once:\n"
  "  pushq %rbx\n  pushq %rbp\n  pushq %r12\n  pushq %r13\n  pushq %r14\n  pushq %r15\n"
  // The red zone belongs to the program.
  "  movabsq $0x1122334455667788, %rax\n  movq %rax, -8(%rsp)\n  movq %rax, -128(%rsp)\n"
  V(LOAD_V) "  leaq pause(%rip), %rdi\n  xorl %esi, %esi\n" EACH(LOAD)
  "  movl $35, %eax\n  stc\n  syscall\n"
  "  setc found+768(%rip)\n" EACH(STORE) V(STORE_V)
  "  movabsq $0x1122334455667788, %rax\n  cmpq %rax, -8(%rsp)\n  jne 1f\n  cmpq %rax, -128(%rsp)\n  je 2f\n"
  "1: movb $0, found+768(%rip)\n"
  "2: popq %r15\n  popq %r14\n  popq %r13\n  popq %r12\n  popq %rbp\n  popq %rbx\n  ret\n");
#else
// nanosleep(&pause, NULL). Only x0 is the kernel's.
#define VECTORS 32
static const int COUNT = 27;
#define EACH(X) X(2) X(3) X(4) X(5) X(6) X(7) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) X(21) \
  X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29)
#define LOAD(n) "  ldr x" #n ", [x30], #8\n"
#define STORE(n) "  str x" #n ", [x0], #8\n"
#define V(X) X(0) X(1) X(2) X(3) X(4) X(5) X(6) X(7) X(8) X(9) X(10) X(11) X(12) X(13) X(14) X(15) X(16) X(17) X(18) X(19) X(20) \
  X(21) X(22) X(23) X(24) X(25) X(26) X(27) X(28) X(29) X(30) X(31)
#define LOAD_V(n) "  ldr q" #n ", [x9], #16\n"
#define STORE_V(n) "  str q" #n ", [x0], #16\n"
__asm__(".text\n.balign 4096\n.globl wait_once\nwait_once:\n"
  "  stp x29, x30, [sp, #-160]!\n  stp x19, x20, [sp, #16]\n  stp x21, x22, [sp, #32]\n  stp x23, x24, [sp, #48]\n"
  "  stp x25, x26, [sp, #64]\n  stp x27, x28, [sp, #80]\n  stp d8, d9, [sp, #96]\n  stp d10, d11, [sp, #112]\n"
  "  stp d12, d13, [sp, #128]\n  stp d14, d15, [sp, #144]\n"
  "  adrp x30, given\n  add x30, x30, :lo12:given\n  add x9, x30, #256\n" V(LOAD_V) EACH(LOAD)
  "  mov x8, #101\n  adrp x0, pause\n  add x0, x0, :lo12:pause\n  mov x1, #0\n"
  // Sets the carry flag.
  "  cmp x8, x8\n  svc #0\n"
  "  adrp x0, found\n  add x0, x0, :lo12:found\n" EACH(STORE)
  "  cset w9, cs\n  adrp x0, found\n  add x0, x0, :lo12:found\n  str x9, [x0, #768]\n  add x0, x0, #256\n" V(STORE_V)
  "  ldp d14, d15, [sp, #144]\n  ldp d12, d13, [sp, #128]\n  ldp d10, d11, [sp, #112]\n  ldp d8, d9, [sp, #96]\n"
  "  ldp x27, x28, [sp, #80]\n  ldp x25, x26, [sp, #64]\n  ldp x23, x24, [sp, #48]\n  ldp x21, x22, [sp, #32]\n"
  "  ldp x19, x20, [sp, #16]\n  ldp x29, x30, [sp], #160\n  ret\n");
#endif

static volatile int going = 1;
static void* spin(void* unused) {
  for (volatile uint64_t i = 0; going; i++) {}
  return unused;
}

int main(int c, char** v) {
  if (cuInit(0)) return 2;
  pthread_t other;
  int spins = c > 2 && !strcmp(v[2], "spin");
  if (spins) pthread_create(&other, NULL, spin, NULL);
  time_t end = time(NULL) + atoi(v[1]);
  uint64_t seed = 1, waits = 0;
  int wrong = 0;
  for (; time(NULL) < end && !wrong; waits++) {
    uint64_t* all = (uint64_t*)&given;
    for (unsigned i = 0; i < sizeof given / sizeof *all; i++) all[i] = seed = seed * 6364136223846793005ull + 1442695040888963407ull;
    memset(&found, 0, sizeof found);
    wait_once();
    wrong |= memcmp(given.general, found.general, 8 * (size_t)COUNT) != 0;
    wrong |= memcmp(given.vector, found.vector, 16 * VECTORS) != 0;
    wrong |= (found.flags & 1) != 1;
  }
  printf("%llu waits, %s\n", (unsigned long long)waits, wrong ? "registers changed" : "unchanged");
  going = 0;
  if (spins) pthread_join(other, NULL);
  return wrong;
}
