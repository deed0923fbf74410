// Reaches functions of CUDA's libraries in the various ways that programs do, and prints what they return:
// caller ask | caller look NAME LIBRARY ... | caller call NAME LIBRARY ... | caller swap NAME LIBRARY ...
// `look` opens libraries and looks a name up in the last one, `call` calls a function of the last one, `ask` asks for
// names that nothing defines, `swap` calls a function of each library in turn and closes it. A `+` before a library
// opens it with RTLD_GLOBAL.
#define _GNU_SOURCE
#include <dlfcn.h>
#include <stdio.h>
#include <string.h>

int main(int c, char** v) {
  if (c < 2) return 2;
  if (!strcmp(v[1], "ask")) {
    void* all = dlopen(NULL, RTLD_NOW);
    const char* names[] = { "cudaGraphInstantiate", "cuGraphInstantiateWithFlags", "cudaProfilerStart", "cuProfilerStop" };
    for (int i = 0; i < 4; i++)
      printf("%s %d %d\n", names[i], dlsym(RTLD_DEFAULT, names[i]) != NULL, dlsym(all, names[i]) != NULL);
    dlerror();
    dlsym(all, names[0]);
    printf("%d\n", dlerror() != NULL);
    return 0;
  }
  if (!strcmp(v[1], "swap")) {
    for (int i = 3; i < c; i++) {
      void* library = dlopen(v[i], RTLD_NOW | RTLD_LOCAL);
      if (!library) return puts(dlerror()), 3;
      printf("%ld\n", ((long (*)(void))dlsym(library, v[2]))());
      dlclose(library);
    }
    return 0;
  }
  void* last = NULL;
  for (int i = 3; i < c; i++) {
    int global = *v[i] == '+';
    last = dlopen(v[i] + global, RTLD_NOW | (global ? RTLD_GLOBAL : RTLD_LOCAL));
    if (!last) return puts(dlerror()), 3;
  }
  long (*function)(long, long, long, long, long) = (long (*)(long, long, long, long, long))dlsym(last, v[2]);
  if (!function) return puts("not found"), 0;
  long first = function(1, 2, 3, 4, 5), second = function(1, 2, 3, 4, 5);
  printf("%ld %ld\n", first, second);
  // A library that was closed is no longer loaded.
  const char* path = v[c - 1] + (*v[c - 1] == '+');
  dlclose(last);
  printf("%d\n", dlopen(path, RTLD_NOW | RTLD_NOLOAD) != NULL);
  return 0;
}
