// Function name in a kernel's symbol (Itanium C++ ABI, "Mangling"): the part before template arguments and parameters,
// without namespaces.

static int is_digit(char c) { return c >= '0' && c <= '9'; }

// Returns the position after `length name`; NULL if the string is too short.
static const char* source_name(const char* p, const char** name, u64* length) {
  u64 n = 0;
  while (is_digit(*p) && n < 4096) n = n * 10 + (u64)(*p++ - '0');
  for (u64 i = 0; i < n; i++)
    if (!p[i]) return NULL;
  if (name) *name = p, *length = n;
  return p + n;
}

static const char* after(const char* p, char c) {
  while (*p && *p != c) p++;
  return *p ? p + 1 : NULL;
}

// Skips a substitution, template parameter or array length including its underscore, or a standard-library
// abbreviation such as `St`.
static const char* reference(const char* p) {
  return *p == 'S' && p[1] >= 'a' && p[1] <= 'z' ? p + 2 : after(p, '_');
}

// Maximum recursion depth: literals and lambdas may nest, kernel names are arbitrary, and threads may have small
// stacks.
enum { MOST_NESTED = 32 };
// Returns the position after the `E` that closes template arguments, a nested name, or a function's type; NULL if there
// is none, or if the nesting is too deep.
static const char* closed_within(const char* p, u32 levels) {
  u32 open = 1;
  if (!levels) return NULL;
  while (p && *p) {
    char c = *p;
    if (is_digit(c)) {
      p = source_name(p, NULL, NULL);
    } else if (c == 'E') {
      p++;
      if (!--open) return p;
    } else if (c == 'S' || c == 'T' || c == 'A') {
      p = reference(p);
    } else if (c == 'L' && !(p[1] == '_' && p[2] == 'Z')) {
      // A literal: its type, and a number that is not a length.
      p++;
      if (*p == 'N') p = closed_within(p + 1, levels - 1);
      else if (is_digit(*p)) p = source_name(p, NULL, NULL);
      p = p ? after(p, 'E') : NULL;
    } else if (c == 'L') {
      open++, p += 3;
    } else if (c == 'U' && (p[1] == 'l' || p[1] == 't')) {
      // A lambda with its parameters, or an unnamed type, and its number.
      if (p[1] == 'l') p = closed_within(p + 2, levels - 1);
      p = p ? after(p, '_') : NULL;
    } else if (c == 'D' && p[1]) {
      open += p[1] == 'T' || p[1] == 't', p += 2;
    } else {
      open += c == 'N' || c == 'I' || c == 'J' || c == 'X' || c == 'F' || c == 'Z', p++;
    }
  }
  return NULL;
}

static const char* closed(const char* p) { return closed_within(p, MOST_NESTED); }

// Finds the name and its length; the whole symbol if it is not a C++ symbol, or does not contain a function name.
static const char* function_of(const char* symbol, u64* length) {
  const char *p = symbol + 2, *name = NULL;
  *length = strlen(symbol);
  if (strncmp(symbol, "_Z", 2)) return symbol;
  int nested = *p == 'N';
  p += nested;
  while (p && *p && !(nested && *p == 'E')) {
    if (is_digit(*p)) {
      p = source_name(p, &name, length);
      if (!nested) return p && name ? name : symbol;
    } else if (*p == 'I' && nested) {
      p = closed(p + 1);
    } else if (*p == 'S' || *p == 'T') {
      p = reference(p);
    } else if (*p == 'B') {
      // A tag such as `[abi:cxx11]`.
      p = source_name(p + 1, NULL, NULL);
    } else if (*p == 'L' || (nested && (*p == 'K' || *p == 'V' || *p == 'r' || *p == 'R' || *p == 'O'))) {
      p++;
    } else {
      // A lambda or an operator.
      p = NULL;
    }
  }
  if (p && *p && name) return name;
  *length = strlen(symbol);
  return symbol;
}

// Returns true if a name equals the symbol or the name of its function.
static int is_symbol(const char* name, const char* symbol) {
  u64 length;
  const char* function = function_of(symbol, &length);
  return !strcmp(name, symbol) || (strlen(name) == length && !memcmp(name, function, length));
}
