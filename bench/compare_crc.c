/* compare_crc.c - copying fused with crc32c against plain copying, on one and on two threads.
 *
 *     compare_crc [MEGABYTES [ROUNDS]]       default 704, 9
 *
 * Source and destination are touched before.  A round copies all bytes once by each side; the rate
 * is bytes per second, on two threads of both halves together.  Then the checksum alone, against
 * the portable way. */
#include "alternate.h"
#include "buffer.h"
#include "clock.h"
#include "crc32c.h"

#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct work {
    uint8_t *src, *dst;
    size_t len;
    unsigned n_threads;
    uint32_t crc; /* kept, so that nothing is left out */
};

struct part {
    uint8_t *dst;
    const uint8_t *src;
    size_t len;
    uint32_t crc;
};

static void *fused(void *arg)
{
    struct part *p = arg;
    p->crc = mr_crc32c_copy(0, p->dst, p->src, p->len);
    return NULL;
}

static void *plain(void *arg)
{
    struct part *p = arg;
    memcpy(p->dst, p->src, p->len);
    return NULL;
}

static void *sum(void *arg)
{
    struct part *p = arg;
    p->crc = mr_crc32c(0, p->src, p->len);
    return NULL;
}

static void *scalar_sum(void *arg)
{
    struct part *p = arg;
    p->crc = mr_crc32c_by(MR_CRC32C_SCALAR, 0, NULL, p->src, p->len);
    return NULL;
}

/* Bytes per second. */
static double run(struct work *w, void *(*side)(void *))
{
    struct part parts[2];
    pthread_t other;
    size_t half = w->len / w->n_threads;
    for (unsigned i = 0; i < w->n_threads; i++)
        parts[i] = (struct part){w->dst + i * half, w->src + i * half, half, 0};
    uint64_t begin = mr_clock_ns();
    if (w->n_threads > 1 && pthread_create(&other, NULL, side, &parts[1]))
        return -1;
    side(&parts[0]);
    if (w->n_threads > 1)
        pthread_join(other, NULL);
    double seconds = (double)(mr_clock_ns() - begin) * 1e-9;
    w->crc ^= parts[0].crc;
    return (double)w->len / seconds;
}

static double run_fused(void *ctx)
{
    return run(ctx, fused);
}

static double run_plain(void *ctx)
{
    return run(ctx, plain);
}

static double run_sum(void *ctx)
{
    return run(ctx, sum);
}

static double run_scalar(void *ctx)
{
    return run(ctx, scalar_sum);
}

static int compare(const char *what, struct contender ours, struct contender peer, unsigned rounds,
                   double target)
{
    struct comparison c;
    if (alternate(&ours, &peer, rounds, &c))
        return 1;
    alternate_print(what, &ours, &peer, &c, target);
    return 0;
}

int main(int argc, char **argv)
{
    size_t len = (argc > 1 ? strtoul(argv[1], NULL, 10) : 704) * 1000000;
    unsigned rounds = argc > 2 ? (unsigned)strtoul(argv[2], NULL, 10) : 9;
    struct mr_buffer a = {0}, b = {0};
    if (!len || mr_buffer_reserve(&a, len) || mr_buffer_reserve(&b, len))
        return 1;
    mr_buffer_prefault(&a);
    mr_buffer_prefault(&b);
    for (size_t i = 0; i < len; i++)
        a.data[i] = (uint8_t)(i * 2654435761u >> 13);
    struct work w = {a.data, b.data, len, 1, 0};
    int r = compare("copy + crc32c, 1 thread", (struct contender){"fused", run_fused, &w},
                    (struct contender){"memcpy", run_plain, &w}, rounds, 0.75);
    w.n_threads = 2;
    r |= compare("copy + crc32c, 2 threads", (struct contender){"fused", run_fused, &w},
                 (struct contender){"memcpy", run_plain, &w}, rounds, 0.5);
    w.n_threads = 1;
    r |= compare("crc32c alone, 1 thread", (struct contender){"best", run_sum, &w},
                 (struct contender){"portable", run_scalar, &w}, rounds, 0);
    mr_buffer_fini(&a);
    mr_buffer_fini(&b);
    return r;
}
