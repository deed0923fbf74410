// Requests for kernels by name, from the plan or made while the program is running.

// Requested grid and block, if the plan specifies them.
static u32 asked_grid[3], asked_block[3];

// Adds a request for the next launches of a kernel (`nth` < 0), or for one launch by its 0-based index. Returns 0 if
// the table is full, the text is empty or too long, or the expression does not compile.
static int asked_add(const char* text, i64 nth, u32 stalls_) {
  enum { EXTENDED = 1, NO_PLACES = 8 };
  static u32 number;
  u64 n = strlen(text);
  for (u32 i = 0; i < ASKED && n && n < sizeof asked_kernels[0].exact; i++) {
    Asked* a = &asked_kernels[i];
    // A request by index keeps its entry after its launch, so that it does not match again.
    if (a->state == ASKED_OPEN || (a->state && a->nth >= 0)) continue;
    a->pattern.given = !strncmp(text, "regex:", 6);
    if (a->pattern.given && regcomp(a->pattern.compiled, text + 6, EXTENDED | NO_PLACES)) return 0;
    memset(a->pattern.told, 0, sizeof a->pattern.told);
    memcpy(a->exact, text, n + 1);
    memcpy(a->grid, asked_grid, sizeof asked_grid), memcpy(a->block, asked_block, sizeof asked_block);
    a->nth = nth, a->stalls = stalls_, a->seen = a->refused = 0, a->number = ADD(number, 1) + 1;
    __atomic_store_n(&a->state, ASKED_OPEN, __ATOMIC_RELEASE);
    ADD(measure.asked, 1);
    return 1;
  }
  return 0;
}

// Expressions match the function's name, as in ncu.
static int pattern_fits(Pattern* p, const char* symbol) {
  static char text[512];
  u64 length, hash = hash_bytes(symbol, strlen(symbol));
  u32 at = (u32)(hash & (TOLD - 1));
  if (p->told[at].hash == hash) return p->told[at].fits;
  const char* function = function_of(symbol, &length);
  length = length < sizeof text ? length : sizeof text - 1;
  memcpy(text, function, length), text[length] = 0;
  p->told[at].hash = hash, p->told[at].fits = !regexec(p->compiled, text, 0, NULL, 0);
  return p->told[at].fits;
}

static int same_size(const u32* wanted, const u32* size) {
  for (u32 i = 0; i < 3; i++)
    if (wanted[i] && wanted[i] != size[i]) return 0;
  return 1;
}

// Returns true if a request is open and this launch matches its name or expression, its grid and its block.
static int is_named(Asked* a, const char* symbol, const Shape* s) {
  if (a->state != ASKED_OPEN || !symbol || !same_size(a->grid, s->grid) || !same_size(a->block, s->block)) return 0;
  return a->pattern.given ? pattern_fits(&a->pattern, symbol) : is_symbol(a->exact, symbol);
}

// Determines whether this launch was requested. Bits: 1 for the next launches of the kernel (`by` is the latest
// request), 2 for this launch by index, 4 for its stalls.
static int is_asked(const char* symbol, const Shape* s, u32* by) {
  int found = 0;
  for (u32 i = 0; i < ASKED && asked_inside(); i++) {
    Asked* a = &asked_kernels[i];
    if (!is_named(a, symbol, s)) continue;
    if (a->nth < 0) found |= 1, *by = a->number > *by ? a->number : *by;
    else if ((i64)a->seen++ == a->nth) a->state = ASKED_DONE, found |= a->stalls ? 4 : 2;
  }
  return found;
}

// Counts a launch toward the requests for next launches.
static void asked_met(const char* symbol, const Shape* s, int may) {
  for (u32 i = 0; i < ASKED; i++) {
    Asked* a = &asked_kernels[i];
    if (a->nth < 0 && is_named(a, symbol, s)) a->seen++, a->refused += !may;
  }
}

// Returns true if any request requires launches to be counted.
static int asked_numbered(void) {
  int numbered = 0;
  for (u32 i = 0; i < ASKED; i++) numbered |= asked_kernels[i].state == ASKED_OPEN && asked_kernels[i].nth >= 0;
  return numbered;
}

enum { MOST_REFUSED = 1000 };
// Marks requests as done once all their values are available, or their launch has happened.
static void asked_look(int due) {
  u32 open = 0;
  for (u32 i = 0; i < ASKED; i++) {
    Asked* a = &asked_kernels[i];
    // Gives up if none of many launches could be measured, for example because all are captured into graphs.
    if (a->state == ASKED_OPEN && a->nth < 0 && a->refused == a->seen && a->seen >= MOST_REFUSED)
      a->state = ASKED_REFUSED;
    if (a->state == ASKED_OPEN && a->nth < 0 && a->seen && !due && measure.windows) a->state = ASKED_DONE;
    open += a->state == ASKED_OPEN;
  }
  measure.asked = open, measure.numbered = asked_numbered();
}
