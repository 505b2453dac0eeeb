// The shared code of the contenders in C: SCENARIO URL [NAME=VALUE ...], and the clocks.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <time.h>

static int wordCount;
static char **words;

static void fail(const char *what) {
    printf("%s: %s\n", words[0], what);
    exit(1);
}

static const char *text(const char *name) {
    size_t length = strlen(name);
    for (int index = 3; index < wordCount; index++)
        if (strncmp(words[index], name, length) == 0 && words[index][length] == '=') return words[index] + length + 1;
    return NULL;
}

static double number(const char *name, double preset) {
    const char *value = text(name);
    return value ? atof(value) : preset;
}

static double now(void) {
    struct timespec time;
    clock_gettime(CLOCK_MONOTONIC, &time);
    return time.tv_sec + time.tv_nsec * 1e-9;
}

static double processorTime(void) {
    struct rusage used;
    getrusage(RUSAGE_SELF, &used);
    return used.ru_utime.tv_sec + used.ru_stime.tv_sec + (used.ru_utime.tv_usec + used.ru_stime.tv_usec) * 1e-6;
}

// The time in which requests are counted: `seconds` after a warm-up of `warm`.
struct period {
    double warm, seconds, begin, start, used;
};

static inline struct period beginPeriod(void) {
    return (struct period){.warm = number("warm", 0), .seconds = number("seconds", 1), .begin = now()};
}

// Returns whether the period goes on. Sets whether counting starts now.
static inline int goesOn(struct period *period, int *isStart) {
    double time = now();
    *isStart = !period->start && time - period->begin >= period->warm;
    if (*isStart) {
        period->start = time;
        period->used = processorTime();
    }
    return !period->start || time - period->start < period->seconds;
}

static void report(long count, long resumed, long long bytes, double seconds, double used) {
    printf("{\"count\":%ld,\"resumed\":%ld,\"total\":%ld,\"bytes\":%lld,\"seconds\":%f,\"cpu\":%f}\n", count, resumed,
           count, bytes, seconds, used);
}
