// Interposed `_exit` and exec functions, which only LD_PRELOAD can observe.

// With LD_PRELOAD, the object observes processes that exit without running exit handlers, such as children of Python's
// multiprocessing.
static void leave(int code) {
  end_process(ASK_END_BY_EXIT);
  empty_trace_at_exit();
  for (;;) SYSTEM(SYS_EXIT_GROUP, code);
}
EXPORT void _exit(int code) {
  leave(code);
  __builtin_unreachable();
}
EXPORT void _Exit(int code) {
  leave(code);
  __builtin_unreachable();
}

// Writes the recording before a process becomes another program; the process continues if exec fails. Ignores a child
// of vfork, which has the parent's memory but not its process id.
static int (*next_execve)(const char*, char* const*, char* const*), (*next_execv)(const char*, char* const*),
  (*next_execvp)(const char*, char* const*), (*next_execvpe)(const char*, char* const*, char* const*);
__attribute__((constructor)) static void find_next(void) {
  *(void**)&next_execve = lookup((void*)-1l, "execve"), *(void**)&next_execv = lookup((void*)-1l, "execv");
  *(void**)&next_execvp = lookup((void*)-1l, "execvp"), *(void**)&next_execvpe = lookup((void*)-1l, "execvpe");
}
// `path` is the program to run, if known. If it cannot be run, the process continues, so no flush is forced.
static void before_exec(const char* path) {
  // Another library's constructor may run before ours.
  if (!next_execve) find_next();
  if (session.ended) return;
  ask(path && !SYSTEM(SYS_FACCESSAT, AT_FDCWD, path, 1) ? ASK_FLUSH : ASK_LOOK, EXIT_MS, EXIT_WORK_MS);
}
static int failed(i64 error) {
  *__errno_location() = (int)error;
  return -1;
}
EXPORT int execve(const char* path, char* const* words, char* const* variables) {
  before_exec(path);
  return next_execve ? next_execve(path, words, variables) : failed(-SYSTEM(SYS_EXECVE, path, words, variables));
}
EXPORT int execv(const char* path, char* const* words) {
  before_exec(path);
  return next_execv ? next_execv(path, words) : failed(ENOSYS);
}
EXPORT int execvp(const char* file, char* const* words) {
  before_exec(NULL);
  return next_execvp ? next_execvp(file, words) : failed(ENOSYS);
}
EXPORT int execvpe(const char* file, char* const* words, char* const* variables) {
  before_exec(NULL);
  return next_execvpe ? next_execvpe(file, words, variables) : failed(ENOSYS);
}

// Variadic arguments of execl and its variants end with a null pointer.
#define GATHER(first, more) \
  u64 count = 0; \
  __builtin_va_list list, again; \
  __builtin_va_start(list, first); \
  __builtin_va_copy(again, list); \
  for (const char* w = first; w; w = __builtin_va_arg(again, const char*)) count++; \
  __builtin_va_end(again); \
  char* all[count + 1]; \
  all[0] = (char*)first; \
  for (u64 i = 1; i <= count; i++) all[i] = __builtin_va_arg(list, char*); \
  more \
  __builtin_va_end(list);
EXPORT int execl(const char* path, const char* first, ...) {
  GATHER(first, )
  return execv(path, all);
}
EXPORT int execlp(const char* file, const char* first, ...) {
  GATHER(first, )
  return execvp(file, all);
}
EXPORT int execle(const char* path, const char* first, ...) {
  GATHER(first, char* const* variables = __builtin_va_arg(list, char* const*);)
  return execve(path, all, variables);
}
