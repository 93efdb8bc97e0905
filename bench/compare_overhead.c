/* compare_overhead.c - what the pipeline itself costs: a map that does nothing, no I/O.
 *
 *     compare_overhead [ROUNDS]
 *
 * Prints CPU time per sample (all threads, user and system) for runs of 10^4 to 10^7 samples, what
 * one of 10^7 takes of one of 10^4, and the rate of the keyed permutation.  A round has all sizes,
 * so that a slow minute does not look like a slope, and of the shorter runs as many as make 10^6
 * samples: one of 10^4 is over in a millisecond. */
#include "clock.h"
#include "permutation.h"

#include <millrace/pipeline.h>

#include <stdio.h>
#include <stdlib.h>

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

#define AT_LEAST 1000000 /* samples of a size in a round */

static int do_nothing(void *ctx, const struct mr_map_input *in, void *slot)
{
    (void)ctx;
    (void)in;
    (void)slot;
    return 0;
}

/* CPU nanoseconds of a run of n samples, or UINT64_MAX. */
static uint64_t cpu_of_run(uint64_t n, unsigned threads)
{
    struct mr_dataset *d;
    struct mr_pipeline *p;
    struct mr_batch *b;
    struct mr_pipeline_opts o = {.threads = threads,
                                 .map = do_nothing,
                                 .map_bytes = 64,
                                 .map_without_bytes = 1,
                                 .keep_last = 1,
                                 .start_on_next = 1};
    if (mr_dataset_range(n, &d, NULL) || mr_pipeline_open(d, &o, &p, NULL))
        return UINT64_MAX;
    uint64_t cpu = mr_clock_process_cpu_ns();
    while (mr_pipeline_next(p, &b) == 1)
        mr_batch_unref(b);
    cpu = mr_clock_process_cpu_ns() - cpu;
    mr_pipeline_close(p);
    mr_dataset_unref(d);
    return cpu;
}

static double cpu_per_sample(uint64_t n, unsigned threads)
{
    uint64_t done = 0, cpu = 0;
    for (; done < AT_LEAST; done += n) {
        uint64_t ns = cpu_of_run(n, threads);
        if (ns == UINT64_MAX) {
            fprintf(stderr, "a pipeline cannot be opened\n");
            exit(1);
        }
        cpu += ns;
    }
    return (double)cpu / (double)done;
}

static const uint64_t n_samples[] = {10000, 100000, 1000000, 10000000};
#define N_SIZES (sizeof n_samples / sizeof *n_samples)

static void report_overhead(unsigned rounds, unsigned threads)
{
    static double v[N_SIZES][99], slope[99];
    const char *s = threads > 1 ? "s" : " ";
    for (unsigned k = 0; k < rounds; k++) {
        for (unsigned i = 0; i < N_SIZES; i++)
            v[i][k] = cpu_per_sample(n_samples[i], threads);
        slope[k] = v[N_SIZES - 1][k] / v[0][k];
    }
    for (unsigned i = 0; i < N_SIZES; i++) {
        qsort(v[i], rounds, sizeof *v[i], by_value);
        printf("%u thread%s, %8llu samples: %.0f ns of CPU per sample (%.0f..%.0f), %u rounds\n",
               threads, s, (unsigned long long)n_samples[i], v[i][rounds / 2], v[i][rounds / 4],
               v[i][rounds - 1 - rounds / 4], rounds);
    }
    qsort(slope, rounds, sizeof *slope, by_value);
    printf("%u thread%s, 10^7 / 10^4 samples: %.2f (%.2f..%.2f)\n", threads, s, slope[rounds / 2],
           slope[rounds / 4], slope[rounds - 1 - rounds / 4]);
}

static void report_permutation(unsigned rounds)
{
    enum { N = 4000000 };
    static const uint64_t sizes[] = {1000, 1281167, 1000000000};
    for (unsigned i = 0; i < 3; i++) {
        struct mr_permutation perm;
        double v[99];
        uint64_t sum = 0;
        mr_permutation_init(&perm, sizes[i], 1);
        for (unsigned k = 0; k < rounds; k++) {
            uint64_t start = mr_clock_ns();
            for (uint64_t j = 0; j < N; j++)
                sum += mr_permutation_at(&perm, j % sizes[i]);
            v[k] = N / ((double)(mr_clock_ns() - start) / 1e9);
        }
        qsort(v, rounds, sizeof *v, by_value);
        printf("permutation of %10llu: %.1f million indices/s (%.1f..%.1f), checksum %llx\n",
               (unsigned long long)sizes[i], v[rounds / 2] / 1e6, v[rounds / 4] / 1e6,
               v[rounds - 1 - rounds / 4] / 1e6, (unsigned long long)sum);
    }
}

int main(int argc, char **argv)
{
    unsigned rounds = argc > 1 ? (unsigned)atoi(argv[1]) : 9;
    rounds = rounds < 1 ? 1 : rounds > 99 ? 99 : rounds;
    for (unsigned threads = 1; threads <= 2; threads++)
        report_overhead(rounds, threads);
    report_permutation(rounds);
    return 0;
}
