// A library that is unloaded while stacks are read.
void library_spin(void (*work)(void)) {
  work();
  for (volatile int k = 0; k < 3000000; k++);
}
void library_call(void (*work)(void)) {
  library_spin(work);
  for (volatile int k = 0; k < 100; k++);
}
