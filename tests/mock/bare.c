// Program that initializes CUDA as the driver does, with no libcupti of its own.
#include <dlfcn.h>
#include <stdlib.h>
int main(void) {
  void* tool = dlopen(getenv("CUDA_INJECTION64_PATH"), RTLD_NOW);
  int (*begin)(void) = NULL;
  if (tool) *(void**)&begin = dlsym(tool, "InitializeInjection");
  return !begin || !begin();
}
