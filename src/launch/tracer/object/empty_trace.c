// Prints a message when the program that `warpscope trace` has executed ends and nothing was recorded, neither of it
// nor of its children: the user would otherwise notice only when opening the trace.

static int is_first_process(void) {
  const char* first = getenv("WARPSCOPE_TRACE_ROOT");
  return first && *first && number_of(first) == (u64)process();
}

// Identity of standard error when the object was loaded: programs close that descriptor, too, and reuse its number.
static Identity errors;
__attribute__((constructor)) static void loaded(void) { errors = identity(2); }

// WARPSCOPE_TRACE_ROOT is PID:SECONDS, the process and its start time; older traces are from an earlier run. The
// variable is inherited across exec, so the process may have become another program since.
static u64 started_at(void) {
  const char* root = getenv("WARPSCOPE_TRACE_ROOT");
  while (root && *root && *root != ':') root++;
  return root && *root ? number_of(root + 1) : 0;
}
static int is_older(int folder, const char* name_) {
  u64 status[32] = { 0 };
  int fd = (int)SYSTEM(SYS_OPENAT, folder, name_, O_RDONLY | O_CLOEXEC | O_NONBLOCK, 0);
  if (fd < 0) return 0;
  int known = !SYSTEM(SYS_FSTAT, fd, status);
  file_close(fd);
  // Seconds of the last change (struct stat).
  return known && status[11] < started_at();
}

enum { TRACES_NONE = 0, TRACES_OWN = 1, TRACES_OTHERS = 2, TRACES_NOWHERE = 3 };
// Looks for traces of this program in their folder.
static int traces_beside(const char* path) {
  static char folder[4096];
  static u8 entries[4096];
  static const char END[] = ".wstrace";
  const char* slash = path;
  for (const char* p = path; *p; p++)
    if (*p == '/') slash = p;
  memcpy(folder, path, (u64)(slash - path)), folder[slash - path] = 0;
  u64 stem = strlen(slash + 1);
  int fd = file_open(*folder ? folder : "/", O_RDONLY | O_DIRECTORY | O_CLOEXEC), found = TRACES_NONE;
  if (fd < 0) return fd == -ENOENT ? TRACES_NOWHERE : TRACES_OTHERS;
  for (i64 n; (n = SYSTEM(SYS_GETDENTS64, fd, entries, sizeof entries)) > 0;)
    // struct linux_dirent64: inode, offset, length of the entry, type, name.
    for (i64 at = 0; at < n; at += AT16(entries + at, 16)) {
      const char* entry = (const char*)entries + at + 19;
      u64 length = strlen(entry);
      if (length < stem + sizeof END || strncmp(entry, slash + 1, stem) || entry[stem] != '.') continue;
      if (strcmp(entry + length - (sizeof END - 1), END)) continue;
      if (is_older(fd, entry)) continue;
      if (number_of(entry + stem + 1) != (u64)process()) found = TRACES_OTHERS;
      else if (found == TRACES_NONE) found = TRACES_OWN;
    }
  file_close(fd);
  return found;
}

static void errors_say(const char* text, int n, u64 room) {
  // A pipe that nobody reads would raise SIGPIPE, and a full one would block.
  struct pollfd p = { 2, POLLOUT, 0 };
  int ready = wait_for_input(&p, 0) == 1 && p.revents == POLLOUT;
  if (n > 0 && ready && is_same(2, errors)) SYSTEM(SYS_WRITE, 2, text, (u64)n < room ? (u64)n : room - 1);
}

static int is_removed(File* f) {
  u64 status[32] = { 0 };
  if (!is_there(f) || SYSTEM(SYS_FSTAT, f->fd, status)) return 0;
  // The count of links (struct stat).
#if defined(__x86_64__)
  return !status[2];
#else
  return !(status[2] >> 32);
#endif
}
// Reports that this process's own file could not be created, or was removed meanwhile: only this process knows.
static int own_file_is_lost(const char* to, char* text, u64 room) {
  i32 error = out.not_created ? out.not_created : out.file.bytes ? 0 : out.trouble;
  const char* why = error == EACCES ? "permission denied"
    : error == ENOENT               ? "its folder does not exist"
    : error == EROFS                ? "read-only file system"
    : error == ENOSPC               ? "the disk is full"
    : error == EFBIG                ? "the limit of the size of files (ulimit -f) is too low"
                                    : "it could not be written";
  if (error)
    return snprintf(text, room,
      "warpscope: nothing was recorded: %s.%d.wstrace: %s; %s\n", to, process(), why,
      error == EFBIG ? "raise it: `ulimit -f unlimited`" : "name another place with -o");
  if (out.file.fd < 0 || !is_removed(&out.file)) return 0;
  return snprintf(text, room,
    "warpscope: the recording is lost: %s was removed while it was written; name another place with -o\n",
    out.file.path);
}

// Runs once, on the thread that ends the process or on the ticker.
static void empty_trace_say(void) {
  static int said;
  static char text[8700];
  const char* to = getenv("WARPSCOPE_TRACE_OUT");
  const char* why = getenv("WARPSCOPE_TRACE_WHY");
  if (gone || !to || *to != '/' || strlen(to) >= sizeof prefix || !started_at()) return;
  if (!rank_is_wanted(getenv("WARPSCOPE_TRACE_RANKS")) || GET(said)) return;
  int n = out.opened ? own_file_is_lost(to, text, sizeof text) : 0;
  if (!n && (!is_first_process() || counted.kernels || counted.graphs)) return;
  if (__atomic_exchange_n(&said, 1, __ATOMIC_ACQ_REL)) return;
  int traces = n ? TRACES_OWN : traces_beside(to);
  if (traces == TRACES_OTHERS) return;
  // A loaded driver does not mean that CUDA was used: programs for the CPU may load it, too.
  int driver = traces == TRACES_NONE && dlopen("libcuda.so.1", RTLD_NOW | RTLD_NOLOAD);
  if (driver && !getenv("CUDA_INJECTION64_PATH"))
    why = "leave CUDA_INJECTION64_PATH, by which the driver loads the tracer, in its environment";
  if (traces == TRACES_NOWHERE)
    n = snprintf(text, sizeof text,
      "warpscope: nothing was recorded: the folder of %s was removed meanwhile; name another place with -o\n", to);
  else if (traces == TRACES_NONE)
    n = snprintf(text, sizeof text, "warpscope: nothing was recorded so far: %s; %s\n",
      driver
        ? "this program loaded the CUDA driver, but cuInit was not called, failed, or did not load the tracer"
        : "no process of this program made a CUDA call that the tracer could hear",
      why && *why ? why
        : "`warpscope doctor` says whether it works here, `warpscope help trace` what keeps it out of a program");
  else if (!n)
    n = snprintf(text, sizeof text, "warpscope: no kernel was recorded: `warpscope triage %s.%d.wstrace` says why\n",
      to, process());
  errors_say(text, n, sizeof text);
}
// For a process that was not recorded at all. Other processes print the message when their trace ends (`finish`).
__attribute__((destructor)) static void empty_trace_at_exit(void) {
  if (!session.ready) empty_trace_say();
}
