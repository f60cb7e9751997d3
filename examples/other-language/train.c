/* A training in C that reports its epochs to trainmark: logistic regression on random points.
 *
 *     cc -O2 -o train-in-c train.c -lm
 *     trainmark measure --vary rate=0.1,0.01 -- ./train-in-c 10 {rate}
 *
 * All it needs is report(): one line of JSON, in one write, to the file that TRAINMARK_HOOK names. */

#include <fcntl.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { EXAMPLES = 50000, FEATURES = 64 };

static int hook = -1;

static double now(void) {
  struct timespec time;
  clock_gettime(CLOCK_MONOTONIC, &time); /* the clock of docs/protocol.md on Linux */
  return time.tv_sec + 1e-9 * time.tv_nsec;
}

static void report(const char *event, const char *more) {
  char line[512];
  int length = snprintf(line, sizeof line, "{\"trainmark\":1,\"event\":\"%s\",\"t\":%.9f%s}\n", event, now(), more);
  if (hook >= 0 && write(hook, line, length) != length) hook = -1; /* the reader has gone */
}

static void open_hook(void) {
  const char *place = getenv("TRAINMARK_HOOK");
  if (place == NULL || *place == 0) return;
  int is_number = strspn(place, "0123456789") == strlen(place);
  hook = is_number ? atoi(place) : open(place, O_WRONLY | O_APPEND | O_NONBLOCK); /* fails without a reader */
  if (hook >= 0) fcntl(hook, F_SETFL, O_APPEND);                                  /* writes may block again */
  report("hello", ",\"language\":\"C\"");
}

static double uniform(void) {
  static unsigned long long state = 88172645463325252ULL; /* xorshift64 */
  state ^= state << 13, state ^= state >> 7, state ^= state << 17;
  return (double)(state >> 11) / 9007199254740992.0;
}

int main(int count, char **words) {
  int epochs = count > 1 ? atoi(words[1]) : 5;
  double rate = count > 2 ? atof(words[2]) : 0.1;
  static float x[EXAMPLES][FEATURES], y[EXAMPLES];
  float truth[FEATURES], weight[FEATURES] = {0};
  open_hook();
  for (int j = 0; j < FEATURES; j++) truth[j] = uniform() - 0.5;
  for (int i = 0; i < EXAMPLES; i++) {
    double sum = 0;
    for (int j = 0; j < FEATURES; j++) sum += truth[j] * (x[i][j] = 2 * uniform() - 1);
    y[i] = sum > 0;
  }
  for (int epoch = 1; epoch <= epochs; epoch++) {
    double loss = 0;
    int right = 0;
    report("begin", "");
    for (int i = 0; i < EXAMPLES; i++) {
      double sum = 0;
      for (int j = 0; j < FEATURES; j++) sum += weight[j] * x[i][j];
      double p = 1 / (1 + exp(-sum));
      loss -= log((y[i] > 0.5 ? p : 1 - p) + 1e-12);
      right += (p > 0.5) == (y[i] > 0.5);
      for (int j = 0; j < FEATURES; j++) weight[j] += rate * (y[i] - p) * x[i][j];
    }
    char more[128], mean[32] = "\"nan\""; /* JSON has no NaN, so it is a string */
    if (isfinite(loss)) snprintf(mean, sizeof mean, "%.6f", loss / EXAMPLES);
    snprintf(more, sizeof more, ",\"loss\":%s,\"accuracy\":%.6f,\"examples\":%d", mean, (double)right / EXAMPLES, EXAMPLES);
    report("epoch", more);
    printf("epoch %d: loss %.4f, accuracy %.4f\n", epoch, loss / EXAMPLES, (double)right / EXAMPLES);
  }
  return 0;
}
