// Tests the tracer's symbol parser alone: builds symbols from the arguments and prints the function name found in each.
// Arguments come in fours, head, part, times, tail: the part is repeated `times` times between head and tail.
#include "base.h"
#include "symbol.c"

int printf(const char*, ...);

int main(int c, char** v) {
  static char text[1 << 20];
  for (int i = 1; i + 3 < c; i += 4) {
    char* end = text + snprintf(text, sizeof text, "%s", v[i]);
    for (u64 times = number_of(v[i + 2]); times; times--) end += snprintf(end, (u64)(text + sizeof text - end), "%s", v[i + 1]);
    snprintf(end, (u64)(text + sizeof text - end), "%s", v[i + 3]);
    u64 length;
    const char* found = function_of(text, &length);
    if (length == strlen(text)) printf("all\n");
    else printf("%.*s\n", (int)length, found);
  }
  return 0;
}
