/* load_list.c - how long a list of many samples takes to load, and how much memory it needs.
 *
 *     load_list DIR [ENTRIES [ROUNDS]]     10,000,000 entries and 5 rounds unless told
 *
 * Writes a CSV list in DIR with names as ImageNet has them, 1,000 folders, and opens it as a data
 * set; the first time is left out.  Nothing of what it names exists, nor is it looked for.  Prints
 * the median of the times with quartiles and the bytes of memory an entry takes; the list is
 * removed. */
#include "clock.h"

#include <millrace/dataset.h>

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#define MAX_ROUNDS 99

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

/* 0, or -1 when it cannot be written. */
static int write_list(const char *path, unsigned long n)
{
    FILE *f = fopen(path, "we");
    if (!f)
        return -1;
    for (unsigned long i = 0; i < n; i++)
        fprintf(f, "train/n%08lu/n%08lu_%lu.JPEG,%lu\n", i % 1000, i % 1000, i, i % 1000);
    int bad = ferror(f);
    return fclose(f) || bad ? -1 : 0;
}

/* Seconds, with the bytes an entry in *bytes; negative when it failed. */
static double load(const char *path, unsigned long n, double *bytes)
{
    struct mr_dataset *d;
    struct mr_error err = {0};
    uint64_t start = mr_clock_ns();
    if (mr_dataset_open(path, &d, &err)) {
        fprintf(stderr, "%s\n", err.text);
        return -1;
    }
    double seconds = (double)(mr_clock_ns() - start) / 1e9;
    int whole = mr_dataset_size(d) == n;
    *bytes = (double)mr_dataset_memory(d) / (double)n;
    mr_dataset_unref(d);
    return whole ? seconds : -1;
}

int main(int argc, char **argv)
{
    unsigned long n = argc > 2 ? strtoul(argv[2], NULL, 10) : 10000000;
    unsigned rounds = argc > 3 ? (unsigned)atoi(argv[3]) : 5;
    char path[PATH_MAX];
    double v[MAX_ROUNDS], bytes = 0;
    if (argc < 2 || argc > 4 || !n || !rounds || rounds > MAX_ROUNDS) {
        fprintf(stderr, "usage: load_list DIR [ENTRIES [ROUNDS]]\n");
        return 2;
    }
    snprintf(path, sizeof path, "%s/load-list.csv", argv[1]);
    int r = write_list(path, n);
    if (r)
        perror(path);
    for (unsigned i = 0; !r && i <= rounds; i++) {
        double seconds = load(path, n, &bytes);
        r = seconds < 0;
        if (i)
            v[i - 1] = seconds;
    }
    unlink(path);
    if (r)
        return 1;
    qsort(v, rounds, sizeof *v, by_value);
    printf("%lu entries: %.2f s (%.2f..%.2f), %.1f bytes each, %u rounds\n", n, v[rounds / 2],
           v[rounds / 4], v[rounds - 1 - rounds / 4], bytes, rounds);
    return 0;
}
