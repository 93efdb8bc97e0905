/* png_filter.c - PNG's five row filters, backwards.
 *
 * With a the pixel to the left, b the one above and c the one above a, a byte is stored less
 *
 *     0 none: 0   1 sub: a   2 up: b   3 average: (a + b) / 2   4 Paeth: whichever of a, b, c is
 *                                                               nearest to a + b - c
 *
 * All but `up` need the pixel before, so nothing runs across pixels; what SSE2 gives is the bytes
 * of one pixel at once.  Four bytes are moved even for three: the fourth is overwritten by the next
 * pixel, or falls into the slack. */
#include "png_filter.h"

#include <string.h>

#if defined(__SSE2__)
#include <emmintrin.h>

static __m128i load4(const uint8_t *p)
{
    int v;
    memcpy(&v, p, 4);
    return _mm_cvtsi32_si128(v);
}

static void store4(uint8_t *p, __m128i x)
{
    int v = _mm_cvtsi128_si32(x);
    memcpy(p, &v, 4);
}

static void undo_sub(unsigned step, const uint8_t *in, uint8_t *out, size_t n)
{
    __m128i a = _mm_setzero_si128();
    for (size_t i = 0; i < n; i += step) {
        a = _mm_add_epi8(a, load4(in + i));
        store4(out + i, a);
    }
}

/* pavgb rounds up; take back the half where a and b differ in the last bit. */
static void undo_average(unsigned step, const uint8_t *in, const uint8_t *above, uint8_t *out,
                         size_t n)
{
    __m128i a = _mm_setzero_si128(), one = _mm_set1_epi8(1);
    for (size_t i = 0; i < n; i += step) {
        __m128i b = load4(above + i);
        __m128i half = _mm_and_si128(_mm_xor_si128(a, b), one);
        a = _mm_add_epi8(load4(in + i), _mm_sub_epi8(_mm_avg_epu8(a, b), half));
        store4(out + i, a);
    }
}

static __m128i absolute(__m128i v)
{
    return _mm_max_epi16(v, _mm_sub_epi16(_mm_setzero_si128(), v));
}

static __m128i choose(__m128i mask, __m128i yes, __m128i no)
{
    return _mm_or_si128(_mm_and_si128(mask, yes), _mm_andnot_si128(mask, no));
}

/* In 16 bits.  With p = a + b - c: p - a = b - c, p - b = a - c, p - c is their sum. */
static void undo_paeth(unsigned step, const uint8_t *in, const uint8_t *above, uint8_t *out,
                       size_t n)
{
    const __m128i zero = _mm_setzero_si128();
    __m128i a = zero, c = zero;
    for (size_t i = 0; i < n; i += step) {
        __m128i b = _mm_unpacklo_epi8(load4(above + i), zero);
        __m128i pa = _mm_sub_epi16(b, c), pb = _mm_sub_epi16(a, c);
        __m128i pc = absolute(_mm_add_epi16(pa, pb));
        pa = absolute(pa);
        pb = absolute(pb);
        __m128i least = _mm_min_epi16(pc, _mm_min_epi16(pa, pb));
        __m128i nearest =
            choose(_mm_cmpeq_epi16(least, pa), a, choose(_mm_cmpeq_epi16(least, pb), b, c));
        __m128i x = _mm_unpacklo_epi8(load4(in + i), zero);
        c = b;
        a = _mm_add_epi8(x, nearest); /* within bytes: the upper halves stay 0 */
        store4(out + i, _mm_packus_epi16(a, a));
    }
}

#else

static void undo_sub(unsigned step, const uint8_t *in, uint8_t *out, size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(in[i] + (i < step ? 0 : out[i - step]));
}

static void undo_average(unsigned step, const uint8_t *in, const uint8_t *above, uint8_t *out,
                         size_t n)
{
    for (size_t i = 0; i < n; i++)
        out[i] = (uint8_t)(in[i] + ((i < step ? 0 : out[i - step]) + above[i]) / 2);
}

static int magnitude(int v)
{
    return v < 0 ? -v : v;
}

static void undo_paeth(unsigned step, const uint8_t *in, const uint8_t *above, uint8_t *out,
                       size_t n)
{
    for (size_t i = 0; i < n; i++) {
        int a = i < step ? 0 : out[i - step], b = above[i], c = i < step ? 0 : above[i - step];
        int pa = magnitude(b - c), pb = magnitude(a - c), pc = magnitude(a + b - 2 * c);
        out[i] = (uint8_t)(in[i] + (pa <= pb && pa <= pc ? a : pb <= pc ? b : c));
    }
}

#endif

int mr_png_unfilter(unsigned filter, unsigned step, const uint8_t *in, const uint8_t *above,
                    uint8_t *out, size_t n)
{
    switch (filter) {
    case 0:
        memcpy(out, in, n);
        return 0;
    case 1:
        undo_sub(step, in, out, n);
        return 0;
    case 2:
        for (size_t i = 0; i < n; i++)
            out[i] = (uint8_t)(in[i] + above[i]);
        return 0;
    case 3:
        undo_average(step, in, above, out, n);
        return 0;
    case 4:
        undo_paeth(step, in, above, out, n);
        return 0;
    default:
        return -1;
    }
}
