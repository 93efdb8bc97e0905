/* make_dataset.c - run mr_generate from a shell.
 *
 *     make_dataset [-p imagenet|caltech101] [-n COUNT] [-c CLASSES] [-s SEED] [-t THREADS] DIR */
#include "clock.h"
#include "generate.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

static int usage(void)
{
    fputs("make_dataset [-p imagenet|caltech101] [-n COUNT] [-c CLASSES] [-s SEED] "
          "[-t THREADS] DIR\n",
          stderr);
    return 2;
}

/* A whole number from `least` on, or 0 with a complaint. */
static int number(const char *text, uint64_t least, uint64_t most, uint64_t *out)
{
    char *end;
    errno = 0;
    uint64_t v = strtoull(text, &end, 10);
    if (errno || end == text || *end || *text == '-' || v < least || v > most) {
        fprintf(stderr, "make_dataset: %s is not a number from %" PRIu64 "\n", text, least);
        return 0;
    }
    *out = v;
    return 1;
}

static int show(void *arg, uint64_t n_done, uint64_t n_all)
{
    (void)arg;
    if (isatty(2))
        fprintf(stderr, "\r%" PRIu64 " of %" PRIu64 "%s", n_done, n_all,
                n_done == n_all ? "\n" : "");
    return 0;
}

int main(int argc, char **argv)
{
    struct mr_generate_opts o = {.seed = 1, .progress = show};
    struct mr_generate_result made;
    struct mr_error err = {0};
    uint64_t v = 0;
    int c, preset = 0, good = 1;
    while (good && (c = getopt(argc, argv, "p:n:c:s:t:")) != -1) {
        if (c == 'p')
            good = (preset = mr_preset_by_name(optarg)) >= 0;
        else if (c == 'n')
            good = number(optarg, 1, UINT32_MAX, &o.count);
        else if (c == 's')
            good = number(optarg, 0, UINT64_MAX, &o.seed);
        else if (c == 'c' && (good = number(optarg, 1, UINT32_MAX, &v)))
            o.classes = (uint32_t)v;
        else if (c == 't' && (good = number(optarg, 1, 1024, &v)))
            o.threads = (unsigned)v;
        else
            good = 0;
    }
    if (!good || optind != argc - 1)
        return usage();
    o.preset = (enum mr_preset)preset;
    uint64_t start = mr_clock_ns();
    if (mr_generate(argv[optind], &o, &made, &err)) {
        fprintf(stderr, "make_dataset: %s\n", err.text);
        return 1;
    }
    double seconds = (double)(mr_clock_ns() - start) / 1e9;
    printf("%" PRIu64 " images, %.1f MB, %.1f s, %.0f images/s\n", made.n_images,
           (double)made.n_bytes / 1e6, seconds, (double)made.n_images / seconds);
    return 0;
}
