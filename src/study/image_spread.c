/* image_spread.c - see image_spread.h.
 *
 * The clock is the thread's CPU time, so that others on the machine do not look like large images;
 * the quicker of two runs counts, which leaves out the faults of first use. */
#include "image_spread.h"

#include "buffer.h"
#include "clock.h"
#include "sample_set.h"

#include <errno.h>
#include <limits.h>
#include <math.h>

#define FEWEST    4
#define MAX_BYTES ((uint64_t)64 << 20)

/* CPU time of one image, or NAN when it is none. */
static double cost_of(struct mr_decoder *d, const struct mr_buffer *file, size_t len, void *slot)
{
    double least = NAN;
    for (unsigned i = 0; i < 2; i++) {
        uint64_t start = mr_clock_thread_cpu_ns();
        if (mr_decoder_run(d, file->data, len, 0, slot))
            return NAN;
        least = fmin(least, (double)(mr_clock_thread_cpu_ns() - start) / 1e9);
    }
    return least;
}

static void to_shares(struct mr_spread *s)
{
    double sum = 0;
    for (unsigned i = 0; i < s->n; i++)
        sum += s->share[i];
    if (sum <= 0)
        s->n = 0;
    for (unsigned i = 0; i < s->n; i++)
        s->share[i] *= s->n / sum;
}

int mr_image_spread(const struct mr_dataset *data, const struct mr_decoder_opts *decode,
                    double box_s, struct mr_spread *out)
{
    uint64_t n = mr_dataset_size(data), tries = n < MR_SPREAD ? n : MR_SPREAD;
    uint64_t start = mr_clock_ns();
    struct mr_decoder *d = NULL;
    struct mr_buffer file = {0}, slot = {0};
    struct mr_spread s = {0};
    int r = mr_decoder_new(decode, &d, NULL);
    if (!r)
        r = mr_buffer_reserve(&slot, mr_decoder_bytes(decode));
    for (uint64_t i = 0; !r && i < tries; i++) {
        enum mr_stage stage;
        size_t len;
        if (i >= FEWEST && (double)(mr_clock_ns() - start) / 1e9 > box_s)
            break;
        int code = mr_dataset_load(data, i * n / tries, MAX_BYTES, &file, &len, &stage);
        if (code == -ENOMEM)
            r = code;
        double cost = code ? NAN : cost_of(d, &file, len, slot.data);
        if (!isnan(cost))
            s.share[s.n++] = cost;
    }
    mr_decoder_free(d);
    mr_buffer_fini(&file);
    mr_buffer_fini(&slot);
    if (r)
        return r;
    to_shares(&s);
    *out = s;
    return 0;
}

double mr_spread_deviation(const struct mr_spread *s)
{
    double sum = 0;
    for (unsigned i = 0; i < s->n; i++)
        sum += (s->share[i] - 1) * (s->share[i] - 1);
    return s->n ? sqrt(sum / s->n) : 0;
}
