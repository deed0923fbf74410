// A program whose threads are sent real-time signals all the time, and are cancelled: signals SECONDS
//
// Ends with code 0 if each signal that was sent has arrived, and each thread that was cancelled has ended.
#define _GNU_SOURCE
#include <pthread.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

int cuInit(unsigned);

static volatile long arrived;
static void on_signal(int number, siginfo_t* info, void* context) {
  __atomic_add_fetch(&arrived, number == SIGRTMIN + 2 && info->si_value.sival_int == 7, __ATOMIC_RELAXED);
}
static volatile int going = 1;
static void* wait_for_signals(void* unused) {
  struct timespec pause = { 0, 3000000 };
  while (going) nanosleep(&pause, NULL);
  return NULL;
}
static void* compute(void* unused) {
  pthread_setcanceltype(PTHREAD_CANCEL_ASYNCHRONOUS, NULL);
  for (volatile long i = 0;; i++) {}
}
static void* cancel(void* unused) {
  struct timespec pause = { 0, 1000000 };
  while (going) {
    pthread_t thread;
    if (pthread_create(&thread, NULL, compute, NULL)) exit(3);
    nanosleep(&pause, NULL);
    pthread_cancel(thread);
    // It hangs here if the signal of pthread_cancel is lost.
    pthread_join(thread, NULL);
  }
  return NULL;
}

int main(int c, char** v) {
  cuInit(0);
  struct sigaction action = { .sa_sigaction = on_signal, .sa_flags = SA_SIGINFO | SA_RESTART };
  sigaction(SIGRTMIN + 2, &action, NULL);
  pthread_t waiting[2], cancelling;
  for (int i = 0; i < 2; i++) pthread_create(&waiting[i], NULL, wait_for_signals, NULL);
  pthread_create(&cancelling, NULL, cancel, NULL);
  long sent = 0;
  struct timespec now, pause = { 0, 100000 };
  clock_gettime(CLOCK_MONOTONIC, &now);
  for (long end = now.tv_sec + atoi(v[1]); now.tv_sec < end; clock_gettime(CLOCK_MONOTONIC, &now)) {
    // The queue may be full.
    for (int i = 0; i < 2; i++) sent += !pthread_sigqueue(waiting[i], SIGRTMIN + 2, (union sigval){ .sival_int = 7 });
    nanosleep(&pause, NULL);
  }
  struct timespec last = { 0, 500000000 };
  nanosleep(&last, NULL);
  going = 0;
  for (int i = 0; i < 2; i++) pthread_join(waiting[i], NULL);
  pthread_join(cancelling, NULL);
  printf("%ld of %ld\n", (long)arrived, sent);
  return arrived != sent;
}
