/* jpeg_scan.c - Huffman decoding of a baseline scan: where most of the time goes.
 *
 * Bits.  `buffer` holds the next bits left-aligned.  A refill ors the next eight bytes in below the
 * bits that are left and advances `next` by the whole bytes among those that fit, so that at least
 * 56 bits are there and no branch was taken.  Bits below the counted ones are of bytes that the
 * next refill brings again, in the same place: the or changes nothing.  That holds only while the
 * bytes stay what they are, so the buffer is cut to its counted bits when the window moves.
 *
 * Symbols.  One lookup yields up to two coefficients (jpeg_huffman.h), both are stored, and only
 * then is looked whether the block is over: the end of block is an advance so large that the one
 * comparison with 63 finds it too.  Stores behind the block's end go to its DC place, which is
 * written last.  k, the place in the zigzag of the last coefficient, is kept as a pointer into
 * places[].
 *
 * A lookup that went past the 63rd coefficient is undone and its first symbol taken alone: that may
 * be the block's last, and the second symbol the next block's.
 *
 * Each lookup waits for the shift that the one before asked for, and a refill would lengthen that
 * chain; so it is done between a lookup and its shift, when there is nothing to do but wait for the
 * table.  The lookup then must do with bits from before.  Of 56 bits the lookup that refills takes
 * 11, three plain ones 33, and 11 are there for the next that refills; or a DC value takes 12,
 * three plain ones 33, and 11 are left.  Whatever ends a block leaves 11 at least: a DC lookup
 * needs 9.  A symbol that no lookup holds refills first and takes 31; the lookup that refills comes
 * next and finds 25.
 *
 * Coefficients are stored where the inverse transform wants them: row by row, four blocks side by
 * side, 32 values from row to row.
 *
 * Bounds, all of them:
 *   out    places[] maps every k to one of the block's 64 places.  k is at most 62 before a lookup
 *          and grows by at most 32: two symbols of 16.  An end adds 128, and one more if it is alone:
 *          k stays below 256.  Without an end it stays below 128, so that the two are told apart.
 *          Value 1 goes 1 to 4 places beyond k, which is less.
 *   in     A code has up to 16 bits and a value up to 15, and a block has 64 symbols at the most:
 *          at most 64 * 31 bits are 248 bytes.  A group is begun with its blocks' 256 bytes each in
 *          the window, or with the end of the segment in it.  In either case the group ends below
 *          `end` + 40 * 256 + 8, within MR_JPEG_BEYOND.  Undoing a lookup reads the eight bytes in
 *          front of `next`.  `next` is never in front of the window, and MR_JPEG_LEAD = 8 bytes lie
 *          there: those of the scan, or, when the window begins a segment, bytes that are shifted
 *          out, since the bits to read again are of the segment.
 *   time   each lookup takes at least one bit or gives the block up.
 * Bits behind the end of a segment may be anything.  A block that used them was given up or is
 * found by comparing the position with the end after each run of MCUs; one that did not cannot
 * depend on them, since a code does not depend on what follows it.
 *
 * What libjpeg would warn of or repair, and what would make its own variants differ, is left to it:
 * coefficients beyond the 63rd, codes that do not exist, a DC value beyond 16 bits, restart markers
 * out of turn, bytes left over in front of one. */
#include "jpeg_scan.h"

#include "jpeg_kernels.h"

#include <string.h>

#define BLOCK_BYTES 256 /* more than a block can take */
#define BITS        56  /* that are there after a refill */
#define PLAIN       3   /* lookups between two that refill */
#define LAST        63
#define MOST_SLOW   31 /* bits of a code and its value */
#define MOST_DC     12 /* bits of a DC value that leave enough for these and the next */

_Static_assert(MR_JPEG_GROUP *MR_JPEG_MCU_BLOCKS *BLOCK_BYTES + 64 <= MR_JPEG_BEYOND, "bounds");
_Static_assert((1 + PLAIN + 1) * MR_AC_BITS <= BITS, "refill");
_Static_assert(MOST_DC + (PLAIN + 1) * MR_AC_BITS <= BITS, "refill");
_Static_assert(MR_DC_BITS <= MR_AC_BITS, "refill");
_Static_assert(MOST_SLOW + MR_AC_BITS <= BITS, "refill");
_Static_assert(MR_JPEG_LEAD * 8 >= 64, "a lookup can be undone");

/* Where the coefficient at each place of the zigzag lies, in a unit, from its block's first. */
#define ROW(r, c) ((r)*32 + (c))
#define ZIGZAG                                                                                     \
    ROW(0, 0), ROW(0, 1), ROW(1, 0), ROW(2, 0), ROW(1, 1), ROW(0, 2), ROW(0, 3), ROW(1, 2),        \
        ROW(2, 1), ROW(3, 0), ROW(4, 0), ROW(3, 1), ROW(2, 2), ROW(1, 3), ROW(0, 4), ROW(0, 5),    \
        ROW(1, 4), ROW(2, 3), ROW(3, 2), ROW(4, 1), ROW(5, 0), ROW(6, 0), ROW(5, 1), ROW(4, 2),    \
        ROW(3, 3), ROW(2, 4), ROW(1, 5), ROW(0, 6), ROW(0, 7), ROW(1, 6), ROW(2, 5), ROW(3, 4),    \
        ROW(4, 3), ROW(5, 2), ROW(6, 1), ROW(7, 0), ROW(7, 1), ROW(6, 2), ROW(5, 3), ROW(4, 4),    \
        ROW(3, 5), ROW(2, 6), ROW(1, 7), ROW(2, 7), ROW(3, 6), ROW(4, 5), ROW(5, 4), ROW(6, 3),    \
        ROW(7, 2), ROW(7, 3), ROW(6, 4), ROW(5, 5), ROW(4, 6), ROW(3, 7), ROW(4, 7), ROW(5, 6),    \
        ROW(6, 5), ROW(7, 4), ROW(7, 5), ROW(6, 6), ROW(5, 7), ROW(6, 7), ROW(7, 6), ROW(7, 7)
/* Twice, since k may have MR_AC_END in it; the rest is 0, the DC place. */
static const uint8_t places[256] = {ZIGZAG, [MR_AC_END] = ZIGZAG};
_Static_assert(LAST - 1 + MR_AC_MOST < MR_AC_END, "an end is told from an advance");
_Static_assert(LAST - 1 + MR_AC_MOST + MR_AC_END + 1 < sizeof places, "bounds");

/* ---- bits ---- */

#define INLINE static inline __attribute__((always_inline))

INLINE uint64_t eight_bytes(const uint8_t *p)
{
    uint64_t v;
    memcpy(&v, p, sizeof v);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    return v;
}

INLINE void refill(struct mr_jpeg_bits *b)
{
    b->buffer |= eight_bytes(b->next) >> (b->left & 63);
    b->next += (~b->left & 63) >> 3;
    b->left = (b->left & 63) | 56;
}

INLINE void drop(struct mr_jpeg_bits *b, uint64_t n)
{
    b->buffer <<= n & 63;
    b->left -= n;
}

/* What is added to a value of each size whose first bit is 0: it is negative. */
static const int32_t negative[16] = {0,    -1,   -3,    -7,    -15,   -31,   -63,    -127,
                                     -255, -511, -1023, -2047, -4095, -8191, -16383, -32767};

/* The first `size` bits as JPEG codes a value: without its leading 1 it is negative. */
INLINE int value_of(uint64_t buffer, unsigned size)
{
    int v = (int)(buffer >> 1 >> (63 - size));
    return v + (~(int)((int64_t)buffer >> 63) & negative[size]);
}

/* ---- a block ---- */

/* The difference to the last block's DC value; -1 in *size: no such code. */
INLINE int dc_difference(struct mr_jpeg_bits *b, const struct mr_jpeg_dc_table *t, int *size)
{
    uint32_t e = t->lookup[b->buffer >> (64 - MR_DC_BITS)];
    refill(b);
    if (__builtin_expect(!e, 0)) {
        unsigned n_bits = 0;
        int symbol = mr_jpeg_long_code(&t->codes, (uint32_t)(b->buffer >> 48), MR_DC_BITS, &n_bits);
        *size = symbol;
        if (symbol < 0)
            return 0;
        e = (n_bits + (unsigned)symbol) | n_bits << 8 | (uint32_t)symbol << 16;
    }
    *size = (int)(e >> 16);
    int v = value_of(b->buffer << (e >> 8 & 63), e >> 16);
    drop(b, e & 255);
    if (__builtin_expect((e & 255) > MOST_DC, 0))
        refill(b);
    return v;
}

/* A walk through a block's AC symbols. */
struct walk {
    struct mr_jpeg_bits b;
    const uint8_t *k; /* in places[]: where the last coefficient goes */
    uint64_t e;       /* what the last lookup found */
};

enum step { MORE, OVER, SLOW, ODD };

/* Take what a lookup found.  Nonzero: the block is over. */
INLINE int take(struct walk *w, int16_t *out)
{
    uint64_t e = w->e;
    w->b.buffer <<= e & 63;
    w->b.left -= e; /* what is above the low six bits vanishes modulo 64 */
    out[w->k[1 + (e >> MR_AC_FIRST_AT & 3)]] = (int8_t)(e >> MR_AC_VALUE_1_AT);
    w->k += e >> MR_AC_ADVANCE_AT & 255;
    out[*w->k] = (int16_t)((int32_t)e >> MR_AC_VALUE_2_AT);
    return w->k >= places + LAST;
}

/* What the instructions below need in registers: fields of an entry as BEXTR wants them. */
struct constants {
    uint64_t first, advance;
    const uint8_t *last;
};

#ifdef __x86_64__
/* The same, line by line.  Compilers need five instructions more, and Huffman decoding then takes 4
 * to 6% longer: they do not sign-extend a register's second byte, and reload the constants. */
INLINE int take_by_bmi2(struct walk *w, int16_t *out, const struct constants *c)
{
    uint64_t place, value;
    int is_over;
    __asm__("shlx %[e], %[buffer], %[buffer]\n\t"
            "sub %[e], %[left]\n\t"
            "bextr %[first], %[e], %[place]\n\t"
            "movsbl %h[e], %k[value]\n\t"
            "movzbl 1(%[k], %[place]), %k[place]\n\t"
            "movw %w[value], (%[out], %[place], 2)\n\t"
            "bextr %[advance], %[e], %[place]\n\t"
            "add %[place], %[k]\n\t"
            "mov %k[e], %k[value]\n\t"
            "movzbl (%[k]), %k[place]\n\t"
            "sar $24, %k[value]\n\t"
            "movw %w[value], (%[out], %[place], 2)\n\t"
            "cmp %[last], %[k]\n\t"
            : [buffer] "+r"(w->b.buffer), [left] "+r"(w->b.left), [k] "+r"(w->k),
              [place] "=&r"(place), [value] "=&R"(value), "=@ccae"(is_over)
            : [e] "Q"(w->e), [out] "r"(out), [first] "r"(c->first), [advance] "r"(c->advance),
              [last] "r"(c->last)
            : "memory");
    return is_over;
}
_Static_assert(MR_AC_VALUE_1_AT == 8 && MR_AC_VALUE_2_AT == 24, "as the instructions have it");
#else
INLINE int take_by_bmi2(struct walk *w, int16_t *out, const struct constants *c)
{
    return take(w, out);
}
#endif

/* One lookup, if its bits are all there is to it.  A refill costs nothing while the table is being
 * read.  Without `c` in C. */
INLINE enum step look_up(struct walk *w, const uint32_t *lookup, int16_t *out, int refills,
                         const struct constants *c)
{
    w->e = lookup[w->b.buffer >> (64 - MR_AC_BITS)];
    if (refills)
        refill(&w->b);
    if (__builtin_expect(w->e & MR_AC_SLOW, 0))
        return SLOW;
    return (c ? take_by_bmi2(w, out, c) : take(w, out)) ? OVER : MORE;
}

/* PLAIN lookups that do not refill. */
INLINE enum step look_up_plainly(struct walk *w, const uint32_t *lookup, int16_t *out,
                                 const struct constants *c)
{
    enum step step = look_up(w, lookup, out, 0, c);
    if (step == MORE)
        step = look_up(w, lookup, out, 0, c);
    if (step == MORE)
        step = look_up(w, lookup, out, 0, c);
    return step;
}

/* Undo the last lookup, for a slow symbol.  Before it there were 11 to 63 bits, the last of the
 * eight bytes in front of `next`, which jpeg_bytes.h keeps. */
INLINE void step_back(struct walk *w)
{
    w->k -= w->e >> MR_AC_ADVANCE_AT & 255;
    w->b.left = (w->b.left + (w->e & 31)) & 63;
    w->b.buffer = eight_bytes(w->b.next - MR_JPEG_LEAD) << (64 - w->b.left);
    w->e = 0;
}

/* One symbol, alone, with its value.  OVER: it ended the block. */
INLINE enum step slow_symbol(struct walk *w, const struct mr_jpeg_ac_table *t, int16_t *out)
{
    unsigned n_bits = w->e >> MR_AC_VALUE_1_AT & 255;
    int symbol = (int)(w->e >> MR_AC_ADVANCE_AT & 255);
    refill(&w->b);
    if (!n_bits)
        symbol = mr_jpeg_long_code(&t->codes, (uint32_t)(w->b.buffer >> 48), 0, &n_bits);
    if (symbol < 0)
        return ODD;
    unsigned run = (unsigned)symbol >> 4, size = (unsigned)symbol & 15;
    drop(&w->b, n_bits);
    if (!size && run != 15)
        return OVER;
    w->k += run + 1;
    if (w->k > places + LAST)
        return ODD;
    if (size)
        out[*w->k] = (int16_t)value_of(w->b.buffer, size);
    drop(&w->b, size);
    return w->k == places + LAST ? OVER : MORE;
}

/* The place of the last coefficient when a lookup was OVER; -1 when it went too far. */
INLINE int last_place(const struct walk *w)
{
    int k = (int)(w->k - places), is_alone = !(w->e >> MR_AC_VALUE_2_AT);
    if (__builtin_expect((unsigned)(k - MR_AC_END - is_alone) < LAST, 1))
        return k - MR_AC_END - is_alone;
    return k == LAST ? LAST : -1;
}

/* The 63 other coefficients; the place of the last one, or -1. */
INLINE int ac_values(struct mr_jpeg_bits *bits, const struct mr_jpeg_ac_table *t, int16_t *out,
                     const struct constants *c)
{
    struct walk w = {.b = *bits, .k = places};
    int last;
    for (;;) {
        enum step step = look_up_plainly(&w, t->lookup, out, c);
        if (step == MORE) {
        refilling:
            step = look_up(&w, t->lookup, out, 1, c);
        }
        if (step == MORE)
            continue;
        if (step == OVER) {
            last = last_place(&w);
            if (__builtin_expect(last >= 0, 1))
                break;
            step_back(&w); /* the first of two symbols may be the block's last */
        }
        step = slow_symbol(&w, t, out);
        last = step == ODD ? -1 : (int)(w.k - places);
        if (step != MORE)
            break;
        goto refilling;
    }
    *bits = w.b;
    return last;
}

INLINE int decode_blocks(struct mr_jpeg_bits *bits, const struct mr_jpeg_block *at, unsigned n,
                         const struct constants *c)
{
    struct mr_jpeg_bits b = *bits;
    refill(&b);
    for (const struct mr_jpeg_block *end = at + n; at < end; at++) {
        int size;
        int dc = *at->last_dc + dc_difference(&b, at->dc, &size);
        if (__builtin_expect(size < 0 || dc != (int16_t)dc, 0))
            return 0;
        int last = ac_values(&b, at->ac, at->out, c);
        if (__builtin_expect(last < 0, 0))
            return 0;
        *at->last_dc = dc;
        at->out[0] = (int16_t)dc;
        *at->last = (uint8_t)last;
    }
    *bits = b;
    return 1;
}

int mr_decode_blocks_plain(struct mr_jpeg_bits *bits, const struct mr_jpeg_block *blocks,
                           unsigned n)
{
    return decode_blocks(bits, blocks, n, NULL);
}

#ifdef __x86_64__
__attribute__((target("bmi,bmi2"))) int
mr_decode_blocks_bmi2(struct mr_jpeg_bits *bits, const struct mr_jpeg_block *blocks, unsigned n)
{
    struct constants c = {MR_AC_FIRST_AT | 2 << 8, MR_AC_ADVANCE_AT | 8 << 8, places + LAST};
    /* Values that a compiler does not know are not made anew for each lookup. */
    __asm__("" : "+r"(c.first), "+r"(c.advance), "+r"(c.last));
    return decode_blocks(bits, blocks, n, &c);
}
#endif

/* ---- the scan ---- */

/* The blocks of a group in the order of the file. */
static void plan_blocks(struct mr_jpeg_scan *s, const struct mr_jpeg_header *h)
{
    struct mr_jpeg_block *at = s->blocks;
    unsigned n_units = 0;
    for (unsigned i = 0; i < h->n_components; i++) {
        s->first_unit[i] = n_units;
        n_units += h->component[i].h * h->component[i].v;
    }
    s->n_blocks = n_units;
    for (unsigned mcu = 0; mcu < MR_JPEG_GROUP; mcu++)
        for (unsigned i = 0; i < h->n_components; i++) {
            const struct mr_jpeg_component *c = &h->component[i];
            for (unsigned k = 0; k < (unsigned)c->h * c->v; k++) {
                unsigned column = mcu * c->h + k % c->h;
                unsigned unit = s->first_unit[i] + k / c->h * c->h + column / 4;
                *at++ = (struct mr_jpeg_block){.dc = &s->dc[c->dc_table],
                                               .ac = &s->ac[c->ac_table],
                                               .out = s->units[unit] + column % 4 * 8,
                                               .last_dc = &s->last_dc[i],
                                               .last = &s->last[unit][column % 4]};
            }
        }
}

static int build_tables(struct mr_jpeg_scan *s, const struct mr_jpeg_header *h, size_t n_bytes)
{
    int pairs = n_bytes > 4096;
    for (unsigned i = 0; i < h->n_components; i++) {
        const struct mr_jpeg_component *c = &h->component[i];
        if (!mr_jpeg_dc_build(&s->dc[c->dc_table], &h->dc[c->dc_table]) ||
            !mr_jpeg_ac_build(&s->ac[c->ac_table], &h->ac[c->ac_table], pairs))
            return 0;
    }
    return 1;
}

static void begin_segment(struct mr_jpeg_scan *s)
{
    s->bits = (struct mr_jpeg_bits){.next = mr_jpeg_bytes_next_segment(&s->bytes)};
    memset(s->last_dc, 0, sizeof s->last_dc);
    s->restart_left = s->restart_interval ? s->restart_interval : UINT32_MAX;
}

int mr_jpeg_scan_begin(struct mr_jpeg_scan *s, const struct mr_jpeg_header *h, const uint8_t *bytes,
                       size_t len, const struct mr_jpeg_kernels *k)
{
    int r = mr_jpeg_bytes_begin(&s->bytes, bytes + h->scan_at, len - h->scan_at, k->copy_plain);
    if (r)
        return r;
    s->decode_blocks = k->decode_blocks;
    s->restart_interval = h->restart_interval;
    s->n_restarts = 0;
    memset(s->units, 0, sizeof s->units);
    memset(s->last, 0, sizeof s->last);
    plan_blocks(s, h);
    begin_segment(s);
    return build_tables(s, h, len - h->scan_at) ? MR_JPEG_GOOD : MR_JPEG_ODD;
}

void mr_jpeg_scan_fini(struct mr_jpeg_scan *s)
{
    mr_jpeg_bytes_fini(&s->bytes);
}

/* Bits of the window that were not used; below 0 when more were used than there are. */
static ptrdiff_t unused_bits(const struct mr_jpeg_scan *s)
{
    return 8 * (s->bytes.end - s->bits.next) + (ptrdiff_t)(s->bits.left & 63);
}

/* See to it that the window holds what n_mcus can take, or all that is left of the segment. */
static int make_ready(struct mr_jpeg_scan *s, unsigned n_mcus)
{
    ptrdiff_t need = (ptrdiff_t)(n_mcus * s->n_blocks * BLOCK_BYTES);
    if (s->bytes.marker || s->bytes.end - s->bits.next >= need)
        return 1;
    unsigned left = s->bits.left & 63;
    s->bits.buffer &= left ? ~(UINT64_MAX >> left) : 0;
    s->bits.next = mr_jpeg_bytes_more(&s->bytes, s->bits.next);
    return s->bits.next != NULL;
}

/* The interval is over: all but the padding of its bits was used, and the right marker follows. */
static int restart(struct mr_jpeg_scan *s)
{
    if (!make_ready(s, 1) || s->bytes.marker != 0xd0 + (s->n_restarts & 7))
        return 0;
    ptrdiff_t unused = unused_bits(s);
    if (unused < 0 || unused > 7)
        return 0;
    s->n_restarts++;
    begin_segment(s);
    return 1;
}

int mr_jpeg_scan_group(struct mr_jpeg_scan *s, unsigned n_mcus)
{
    for (unsigned done = 0, n; done < n_mcus; done += n) {
        if (s->restart_left == 0 && !restart(s))
            return MR_JPEG_ODD;
        n = n_mcus - done < s->restart_left ? n_mcus - done : s->restart_left;
        if (!make_ready(s, n) ||
            !s->decode_blocks(&s->bits, s->blocks + done * s->n_blocks, n * s->n_blocks) ||
            unused_bits(s) < 0)
            return MR_JPEG_ODD;
        if (s->restart_interval)
            s->restart_left -= n;
    }
    return MR_JPEG_GOOD;
}

void mr_jpeg_scan_drop(struct mr_jpeg_scan *s)
{
    memset(s->units, 0, s->n_blocks * sizeof s->units[0]);
    memset(s->last, 0, s->n_blocks * sizeof s->last[0]);
}

int mr_jpeg_scan_end(struct mr_jpeg_scan *s)
{
    return make_ready(s, MR_JPEG_GROUP) && s->bytes.marker == 0xd9 ? MR_JPEG_GOOD : MR_JPEG_ODD;
}
