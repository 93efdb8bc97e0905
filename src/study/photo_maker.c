/* photo_maker.c - paint, then find the gain of the detail that gives the file its size.
 *
 * A file's size grows with the gain, steeply where little detail shows and slowly later.  Trials
 * encode a mosaic of an eighth of the picture and scale its size up:
 *
 *     size |          above                  first a guess from the bits per pixel; then by the
 *      aim |- - - -*-'                       rule of thumb that size grows like the root of the
 *          |   .-'                           gain, until there are trials on both sides of the
 *          | below                           aim; then on the line between them
 *          +--------------- gain
 *
 * until one is near enough.  Then the whole picture is encoded.  Where that misses the target, the
 * mosaic was not quite typical: the aim moves by the ratio, and the line gives another gain.  The
 * size at gain 0 cannot be undercut; such a photo stays too large. */
#include "photo_maker.h"

#include "draw.h"
#include "errtext.h"
#include "painter.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

#define N_TRIALS      4
#define N_WHOLE       3
#define SAMPLE_PART   8
#define TRIAL_PERCENT 3
#define WHOLE_PERCENT 6
#define HEADER_OWN    390 /* markers with Huffman tables made for the image */
#define HEADER_STD    623 /* with the standard's, three components */
#define HEADER_GREY   330

#define SMALLEST_CODED 256
#define PLAIN_BELOW    125

struct mr_photo_maker {
    struct mr_painter *painter;
    struct mr_jpeg_encoder *encoder;
    char *comment;
    size_t comment_cap;
};

/* Size of the coded pixels at a gain. */
struct trial {
    int64_t gain, size;
};

/* The last trials on both sides of the aim; size 0 = none yet. */
struct bracket {
    struct trial below, above;
};

int mr_photo_maker_new(struct mr_photo_maker **out)
{
    struct mr_photo_maker *m = calloc(1, sizeof *m);
    if (!m || mr_painter_new(&m->painter) || mr_jpeg_encoder_new(&m->encoder)) {
        mr_photo_maker_free(m);
        return -ENOMEM;
    }
    *out = m;
    return 0;
}

void mr_photo_maker_free(struct mr_photo_maker *m)
{
    if (!m)
        return;
    mr_painter_free(m->painter);
    mr_jpeg_encoder_free(m->encoder);
    free(m->comment);
    free(m);
}

/* Stands for the metadata of real photos: a line of text, then spaces. */
static int make_comment(struct mr_photo_maker *m, size_t n)
{
    static const char line[] = "made by millrace generate";
    if (n <= m->comment_cap)
        return 0;
    char *text = realloc(m->comment, n);
    if (!text)
        return -ENOMEM;
    memset(text, ' ', n);
    memcpy(text, line, n < sizeof line - 1 ? n : sizeof line - 1);
    m->comment = text;
    m->comment_cap = n;
    return 0;
}

static void add_trial(struct bracket *k, struct trial t, int64_t aim)
{
    *(t.size < aim ? &k->below : &k->above) = t;
}

static int64_t clamp(int64_t v, int64_t low, int64_t high)
{
    return v < low ? low : v > high ? high : v;
}

static int64_t next_gain(const struct bracket *k, int64_t aim)
{
    struct trial low = k->below, high = k->above;
    int64_t gain;
    if (low.size && high.size && low.size < high.size && low.gain < high.gain) {
        gain = low.gain + (aim - low.size) * (high.gain - low.gain) / (high.size - low.size);
    } else {
        struct trial t = low.size ? low : high;
        int64_t ratio = aim * 256 / t.size;
        gain = clamp(t.gain * ratio / 256 * ratio / 256, t.gain / 8, t.gain * 4 + 8);
    }
    return clamp(gain, 0, MR_GAIN_MOST);
}

static int near(int64_t size, int64_t target, int percent)
{
    return llabs(size - target) * 100 <= target * percent;
}

static size_t header_bytes(const struct mr_photo_plan *plan)
{
    return plan->optimize ? HEADER_OWN : plan->chroma == MR_CHROMA_GREY ? HEADER_GREY : HEADER_STD;
}

/* How much detail a photo of that many bits has: quality 75 spends about a quarter of the
 * bits of quality 96 on the same picture. */
static unsigned busyness(const struct mr_photo_plan *plan)
{
    uint64_t bits = (uint64_t)(plan->n_bytes - plan->comment_bytes) * 8 * 256 /
                    ((uint64_t)plan->width * plan->height); /* 256 = 1 bit a pixel */
    unsigned share = plan->quality >= 98   ? 12
                     : plan->quality >= 94 ? 16
                     : plan->quality >= 88 ? 28
                                           : 48;
    uint64_t busy = bits * share / 128;
    return busy > 255 ? 255 : (unsigned)busy;
}

/* Narrow the gain down on mosaics; returns the one to begin with, or -errno. */
static int64_t search(struct mr_photo_maker *m, const struct mr_photo_plan *plan, int64_t aim,
                      struct bracket *k, struct mr_error *err)
{
    struct mr_jpeg_opts o = {plan->quality, plan->chroma, .optimize = plan->optimize};
    int64_t whole = (int64_t)plan->width * plan->height, header = (int64_t)header_bytes(plan);
    int64_t busy = busyness(plan), gain = 16 + busy * busy / 40;
    for (int i = 0; i < N_TRIALS; i++) {
        struct mr_pixels px;
        const uint8_t *bytes;
        size_t n;
        mr_painter_mix_sample(m->painter, (unsigned)gain, SAMPLE_PART, &px);
        int r = mr_jpeg_encode(m->encoder, &px, &o, &bytes, &n, err);
        if (r)
            return r;
        int64_t coded = (int64_t)n > header ? (int64_t)n - header : 1;
        struct trial t = {gain, coded * whole / ((int64_t)px.width * px.height)};
        add_trial(k, t, aim);
        if (near(t.size, aim, TRIAL_PERCENT))
            break;
        gain = next_gain(k, aim);
    }
    return gain;
}

/* Much cannot be going on before an even wall. */
static int is_plain(const struct mr_photo_plan *plan, uint64_t key)
{
    return (mr_mix(key) % 100) < plan->plain_percent && busyness(plan) < PLAIN_BELOW;
}

/* Encode the whole picture, with corrected gains until it is near its size. */
static int encode_whole(struct mr_photo_maker *m, const struct mr_photo_plan *plan, int64_t target,
                        const uint8_t **bytes, size_t *n_bytes, struct mr_error *err)
{
    struct mr_jpeg_opts o = {plan->quality, plan->chroma, .optimize = plan->optimize,
                             .comment = m->comment, .comment_bytes = plan->comment_bytes};
    struct bracket k = {0};
    int64_t aim = target, gain = search(m, plan, aim, &k, err);
    int r = gain < 0 ? (int)gain : 0;
    for (int i = 0; !r && i < N_WHOLE; i++) {
        struct mr_pixels px;
        mr_painter_mix(m->painter, (unsigned)gain, &px);
        r = mr_jpeg_encode(m->encoder, &px, &o, bytes, n_bytes, err);
        if (r || near((int64_t)*n_bytes, plan->n_bytes, WHOLE_PERCENT))
            break;
        int64_t coded = target + (int64_t)*n_bytes - plan->n_bytes;
        aim = aim * target / (coded > SMALLEST_CODED ? coded : SMALLEST_CODED);
        gain = next_gain(&k, aim);
    }
    return r;
}

int mr_photo_make(struct mr_photo_maker *m, const struct mr_photo_plan *plan, uint64_t key,
                  uint32_t class_id, const uint8_t **bytes, size_t *n_bytes, struct mr_error *err)
{
    struct mr_scene scene = {.key = key,
                             .class_id = class_id,
                             .width = plan->width,
                             .height = plan->height,
                             .busy = busyness(plan),
                             .plain = is_plain(plan, key)};
    int64_t target = (int64_t)plan->n_bytes - (int64_t)header_bytes(plan) - plan->comment_bytes;
    int r = mr_painter_paint(m->painter, &scene);
    if (!r)
        r = make_comment(m, plan->comment_bytes);
    if (r)
        return mr_fail(err, r, "no memory for a photo of %u x %u", plan->width, plan->height);
    return encode_whole(m, plan, target > SMALLEST_CODED ? target : SMALLEST_CODED, bytes, n_bytes,
                        err);
}
