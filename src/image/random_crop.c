/* random_crop.c - torchvision's RandomResizedCrop and RandomHorizontalFlip, drawn from a key.
 *
 * Up to ten times an area (uniform) and an aspect ratio (uniform in its logarithm) are drawn; the
 * first rectangle that fits is placed at random.  If none fits, the largest centred one with an
 * allowed ratio is taken.  No draw depends on how many came before it, only on its number.
 *
 * The exponential is a series of our own: the C library's differs in the last bit between
 * processors, and once in a long while that bit would move a crop by a pixel. */
#include "random_crop.h"

#include "draw.h"

#include <math.h>

#define TRIES     10
#define MIN_SHARE 0.08
#define MIN_RATIO (3.0 / 4.0)
#define MAX_RATIO (4.0 / 3.0)
#define LOG_RATIO 0.28768207245178090 /* of 4/3 */

enum draw_of { DRAW_AREA, DRAW_RATIO, DRAW_X, DRAW_Y, DRAW_FLIP };

static uint64_t draw(uint64_t key, unsigned try, enum draw_of what)
{
    return mr_draw(key, MR_DRAW_CROP, try, what, 0);
}

static double unit(uint64_t bits)
{
    return (double)(bits >> 11) * 0x1p-53;
}

/* e^x for |x| < 0.3 */
static double small_exp(double x)
{
    double sum = 1, term = 1;
    for (int k = 1; k < 16; k++) {
        term = term * x / k;
        sum = sum + term;
    }
    return sum;
}

static void centre(uint32_t width, uint32_t height, struct mr_region *out)
{
    double ratio = (double)width / height;
    uint32_t w = width, h = height;
    if (ratio < MIN_RATIO)
        h = (uint32_t)floor(w / MIN_RATIO + 0.5);
    else if (ratio > MAX_RATIO)
        w = (uint32_t)floor(h * MAX_RATIO + 0.5);
    w = w < width ? w : width;
    h = h < height ? h : height;
    *out = (struct mr_region){.x = (width - w) / 2, .y = (height - h) / 2, .width = w, .height = h};
}

void mr_random_crop(uint64_t key, uint32_t width, uint32_t height, struct mr_region *out)
{
    int flip = (int)(draw(key, 0, DRAW_FLIP) >> 63);
    centre(width, height, out);
    for (unsigned t = 0; t < TRIES; t++) {
        double share = MIN_SHARE + (1 - MIN_SHARE) * unit(draw(key, t, DRAW_AREA));
        double ratio = small_exp(LOG_RATIO * (2 * unit(draw(key, t, DRAW_RATIO)) - 1));
        double area = share * width * height;
        double w = floor(sqrt(area * ratio) + 0.5), h = floor(sqrt(area / ratio) + 0.5);
        if (w < 1 || h < 1 || w > width || h > height)
            continue;
        *out = (struct mr_region){.width = (uint32_t)w, .height = (uint32_t)h};
        out->x = (uint32_t)mr_below(draw(key, t, DRAW_X), width - out->width + 1);
        out->y = (uint32_t)mr_below(draw(key, t, DRAW_Y), height - out->height + 1);
        break;
    }
    out->flip = flip;
}
