/* try_progressive.c - what a progressive decoder of our own would gain: a prototype's figure.
 *
 *     try_progressive DIR [FILES [ROUNDS]]
 *
 * Takes the first 60 or FILES JPEG files of DIR by name.  Baseline files are made progressive in
 * memory without loss (jpegtran's way, libjpeg's usual ten scans).  For each file runs alternate as
 * alternate.h says, in the thread's CPU time; what is printed of the ratios is the median over the
 * files.  Rates are files a second.
 *
 *   entropy   the prototype against jpeg_read_coefficients: all scans into coefficients
 *   share     jpeg_read_coefficients in libjpeg's decoding to RGB, and in ours to 224 x 224 f32
 *
 * The prototype decodes the scans only, from the file's first byte to the coefficients of all
 * blocks.  These must be libjpeg's, or the program stops.  The idea:
 *
 *   bits        A scan's bytes are unstuffed in one go and read eight at a time, as jpeg_scan.c has
 *               it.
 *   AC, first   The lookups are the baseline decoder's (jpeg_huffman.h), up to two coefficients
 *               each.  That table knows one end of block, so runs of ends, n << 4 in the file, are
 *               handed to it as values of 15 bits, which it leaves to slow code.
 *   AC, refine  A mask of 64 bits per block has the places that are not zero, the first on top.
 *               The place behind a run of zeros and the coefficients that take a correction bit on
 *               the way come from the mask by PDEP, not from a walk; the coefficients to
 *               correct are gathered in a second mask and corrected when the block is over.
 *
 * Bounds: a block takes at most 63 * 31 bits plus 63 corrections, which is less than BEYOND bytes.
 * BEYOND zeros follow a scan's bytes, and after each block the position is compared with the end.
 * A place beyond the band is refused before it is used. */
#include "alternate.h"

#include <millrace/image.h>

#include "buffer.h"
#include "clock.h"
#include "jpeg_huffman.h"

#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>

#define MAX_FILES 500
#define BEYOND    512 /* bytes behind a scan that may be read */
#define INLINE    static inline __attribute__((always_inline))

struct file {
    char name[256];
    uint8_t *bytes;
    size_t len;
};

/* ---- the prototype: what it keeps ---- */

struct plane {
    uint8_t id, h, v;
    uint32_t width, height; /* blocks that a scan of this component alone has */
    uint32_t stride, rows;  /* blocks in memory: whole MCUs */
    int16_t (*blocks)[64];
    uint64_t *masks; /* AC coefficients that are not 0: FIRST >> place in the zigzag */
};

struct huffman {
    uint8_t counts[16], symbols[256];
    unsigned n_symbols; /* 0: not sent */
};

struct prototype {
    struct plane planes[MR_JPEG_COMPONENTS];
    unsigned n_planes;
    uint32_t n_mcus, n_mcu_rows; /* across and down */
    struct huffman huffman[2][MR_JPEG_TABLES];
    struct mr_jpeg_dc_table dc[MR_JPEG_TABLES];
    struct mr_jpeg_ac_table single, pairs;
    struct mr_buffer coefficients, unstuffed; /* kept from file to file */
};

struct scan {
    struct plane *planes[MR_JPEG_COMPONENTS];
    const struct mr_jpeg_dc_table *dc[MR_JPEG_COMPONENTS];
    unsigned n_planes, from, to, high, low;
};

/* ---- bits ---- */

/* The scans' loops: with the instructions that masks want, where a processor has them. */
#ifdef __x86_64__
#define FAST    __attribute__((target("bmi,bmi2,lzcnt,popcnt")))
#define deposit __builtin_ia32_pdep_di
#else
#define FAST
/* The low bits of v to the places of the mask's bits. */
static uint64_t deposit(uint64_t v, uint64_t mask)
{
    uint64_t out = 0;
    for (; mask; mask &= mask - 1, v >>= 1)
        out |= v & 1 ? mask & -mask : 0;
    return out;
}
#endif

struct bits {
    uint64_t buffer, left;
    const uint8_t *next, *end;
};

INLINE void refill(struct bits *b)
{
    uint64_t v;
    memcpy(&v, b->next, sizeof v);
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    v = __builtin_bswap64(v);
#endif
    b->buffer |= v >> b->left;
    b->next += (63 - b->left) >> 3;
    b->left |= 56;
}

INLINE void drop(struct bits *b, unsigned n)
{
    b->buffer <<= n;
    b->left -= n;
}

/* The next n bits, at most 63. */
INLINE uint64_t get(struct bits *b, unsigned n)
{
    uint64_t v = b->buffer >> 1 >> (63 - n);
    drop(b, n);
    return v;
}

/* As JPEG codes a value of n bits: without its leading 1 it is negative. */
INLINE int get_value(struct bits *b, unsigned n)
{
    int is_negative = ~(int)((int64_t)b->buffer >> 63);
    return (int)get(b, n) + (is_negative & (1 - (1 << n)));
}

/* Nonzero when more bits were used than the scan has. */
INLINE int is_past_end(const struct bits *b)
{
    return b->next > b->end && (size_t)(b->next - b->end) * 8 > b->left;
}

/* ---- AC scans ---- */

#define FIRST ((uint64_t)1 << 63) /* the mask's bit of place 0 */

/* Where the coefficient lies whose bit this is. */
INLINE unsigned zigzag_of(uint64_t bit)
{
    return mr_jpeg_zigzag[__builtin_clzll(bit)];
}

enum { END_OF_BLOCKS = 256 };

struct symbol {
    unsigned advance; /* END_OF_BLOCKS: a run of `value` blocks ends here, this one included */
    int value;        /* 0: only zeros */
};

/* One symbol with its value.  -1: no such code. */
INLINE int get_symbol(struct bits *b, const struct mr_jpeg_ac_table *t, struct symbol *out)
{
    refill(b);
    uint32_t e = t->lookup[b->buffer >> (64 - MR_AC_BITS)];
    unsigned n_bits = e >> MR_AC_VALUE_1_AT & 255;
    int symbol = (int)(e >> MR_AC_ADVANCE_AT & 255);
    if (!(e & MR_AC_SLOW)) {
        drop(b, e & 31);
        *out = symbol > MR_AC_END ? (struct symbol){END_OF_BLOCKS, 1}
                                  : (struct symbol){(unsigned)symbol, (int32_t)e >> 24};
        return 0;
    }
    if (!n_bits)
        symbol = mr_jpeg_long_code(&t->codes, (uint32_t)(b->buffer >> 48), 0, &n_bits);
    if (symbol < 0)
        return -1;
    unsigned run = (unsigned)symbol >> 4, size = (unsigned)symbol & 15;
    drop(b, n_bits);
    if (size == 15 || (!size && run < 15))
        *out = (struct symbol){END_OF_BLOCKS, (1 << run) + (int)get(b, run)};
    else
        *out = (struct symbol){run + 1, get_value(b, size)};
    return 0;
}

/* A block of a first scan.  The blocks of the run of ends that begins in it, or -1. */
INLINE int first_block(struct bits *b, const struct prototype *p, const struct scan *s,
                       int16_t *block, uint64_t *mask)
{
    unsigned k = s->from - 1;
    uint64_t places = 0;
    struct symbol symbol;
    /* In short bands two symbols too often belong to two blocks. */
    const uint32_t *lookup = s->to == 63 ? p->pairs.lookup : p->single.lookup;
    do {
        refill(b);
        uint32_t e = lookup[b->buffer >> (64 - MR_AC_BITS)];
        unsigned k1 = k + 1 + (e >> MR_AC_FIRST_AT & 3);
        unsigned k2 = k + (e >> MR_AC_ADVANCE_AT & 255);
        /* At the band's end the second symbol may be the next block's: one at a time there. */
        if (!(e & MR_AC_SLOW) && (k2 & (MR_AC_END - 1)) < s->to) {
            int v1 = (int8_t)(e >> MR_AC_VALUE_1_AT), v2 = (int32_t)e >> MR_AC_VALUE_2_AT;
            k = k2 & (MR_AC_END - 1);
            drop(b, e & 31);
            block[mr_jpeg_zigzag[k1]] = (int16_t)(v1 * (1 << s->low));
            block[mr_jpeg_zigzag[k]] = (int16_t)(v2 * (1 << s->low));
            places |= (uint64_t)(v1 != 0) << (63 - k1) | (uint64_t)(v2 != 0) << (63 - k);
            if (k2 & MR_AC_END) {
                *mask |= places;
                return 1;
            }
            continue;
        }
        if (get_symbol(b, &p->single, &symbol))
            return -1;
        if (symbol.advance == END_OF_BLOCKS) {
            *mask |= places;
            return symbol.value;
        }
        k += symbol.advance;
        if (k > s->to)
            return -1;
        if (symbol.value) {
            block[mr_jpeg_zigzag[k]] = (int16_t)(symbol.value * (1 << s->low));
            places |= FIRST >> k;
        }
    } while (k < s->to);
    *mask |= places;
    return 0;
}

/* A bit for each of the places: those whose bit is 1.  At least 7 bits must be there. */
INLINE FAST uint64_t get_places(struct bits *b, uint64_t places)
{
    unsigned n = (unsigned)__builtin_popcountll(places), n_now = n;
    uint64_t v = 0;
    if (__builtin_expect(n > b->left, 0)) {
        n_now = n - (unsigned)b->left;
        v = get(b, (unsigned)b->left) << n_now;
        refill(b);
    }
    return deposit(v | get(b, n_now), places);
}

/* A block of a refining scan, `n_ended` of a run of ends to go; what is left of it, or -1. */
INLINE FAST int refine_block(struct bits *b, const struct prototype *p, const struct scan *s,
                             int16_t *block, uint64_t *mask, int n_ended)
{
    const uint64_t last = FIRST >> s->to, band = 2 * (FIRST >> s->from) - last;
    uint64_t filled = *mask & band, zeros = ~*mask & band, place = 0, corrected = 0;
    while (!n_ended && place != last) {
        struct symbol symbol;
        if (get_symbol(b, &p->single, &symbol))
            return -1;
        if (symbol.advance == END_OF_BLOCKS) {
            n_ended = symbol.value;
            break;
        }
        unsigned n_zeros = (unsigned)__builtin_popcountll(zeros);
        if (symbol.advance > n_zeros)
            return -1;
        place = deposit((uint64_t)1 << (n_zeros - symbol.advance), zeros);
        uint64_t passed = filled & -(2 * place);
        corrected |= get_places(b, passed);
        filled ^= passed;
        zeros &= place - 1;
        if (symbol.value) { /* not sixteen zeros */
            block[zigzag_of(place)] = (int16_t)(symbol.value * (1 << s->low));
            *mask |= place;
        }
    }
    if (n_ended) {
        refill(b);
        corrected |= get_places(b, filled);
        n_ended--;
    }
    for (; corrected; corrected &= corrected - 1) { /* one more, away from zero */
        int16_t *c = &block[zigzag_of(corrected & -corrected)];
        *c = (int16_t)(*c + (*c >> 15 | 1) * (1 << s->low));
    }
    return n_ended;
}

/* 0, or -1: damaged. */
FAST static int ac_first(const struct prototype *p, const struct scan *s, struct bits bits)
{
    const struct plane *pl = s->planes[0];
    struct bits b = bits;
    uint32_t n_ended = 0; /* blocks ahead that a run of ends leaves as they are */
    for (uint32_t y = 0; y < pl->height; y++) {
        size_t row = (size_t)y * pl->stride;
        for (uint32_t x = 0; x < pl->width; x++) {
            if (n_ended) {
                uint32_t n = n_ended < pl->width - x ? n_ended : pl->width - x;
                n_ended -= n;
                x += n - 1;
                continue;
            }
            int n = first_block(&b, p, s, pl->blocks[row + x], &pl->masks[row + x]);
            if (n < 0 || is_past_end(&b))
                return -1;
            n_ended = n ? (uint32_t)n - 1 : 0;
        }
    }
    return 0;
}

FAST static int ac_refine(const struct prototype *p, const struct scan *s, struct bits bits)
{
    const struct plane *pl = s->planes[0];
    struct bits b = bits;
    int n_ended = 0;
    for (uint32_t y = 0; y < pl->height; y++) {
        size_t row = (size_t)y * pl->stride;
        for (size_t i = row; i < row + pl->width; i++) {
            n_ended = refine_block(&b, p, s, pl->blocks[i], &pl->masks[i], n_ended);
            if (n_ended < 0 || is_past_end(&b))
                return -1;
        }
    }
    return 0;
}

/* ---- DC scans ---- */

INLINE int dc_block(struct bits *b, const struct mr_jpeg_dc_table *t, const struct scan *s,
                    int *last, int16_t *block)
{
    refill(b);
    if (s->high) {
        *block = (int16_t)(*block | (int)get(b, 1) << s->low);
        return 0;
    }
    uint32_t e = t->lookup[b->buffer >> (64 - MR_DC_BITS)];
    unsigned n_bits = e >> 8 & 255;
    int size = (int)(e >> 16);
    if (!e)
        size = mr_jpeg_long_code(&t->codes, (uint32_t)(b->buffer >> 48), MR_DC_BITS, &n_bits);
    if (size < 0)
        return -1;
    drop(b, n_bits);
    *last = (int16_t)(*last + get_value(b, (unsigned)size));
    *block = (int16_t)(*last * (1 << s->low));
    return 0;
}

/* One component: its own blocks, row by row.  Several: MCUs of h * v blocks of each. */
FAST static int dc_scan(const struct scan *s, struct bits bits, uint32_t n_mcus,
                        uint32_t n_mcu_rows)
{
    struct bits b = bits;
    int last[MR_JPEG_COMPONENTS] = {0}, alone = s->n_planes == 1;
    uint32_t width = alone ? s->planes[0]->width : n_mcus;
    uint32_t height = alone ? s->planes[0]->height : n_mcu_rows;
    for (uint32_t y = 0; y < height; y++)
        for (uint32_t x = 0; x < width; x++) {
            for (unsigned i = 0; i < s->n_planes; i++) {
                const struct plane *pl = s->planes[i];
                unsigned h = alone ? 1 : pl->h, v = alone ? 1 : pl->v;
                int16_t(*at)[64] = pl->blocks + (size_t)y * v * pl->stride + (size_t)x * h;
                for (unsigned k = 0; k < v; k++, at += pl->stride)
                    for (unsigned j = 0; j < h; j++)
                        if (dc_block(&b, s->dc[i], s, &last[i], at[j]) || is_past_end(&b))
                            return -1;
            }
        }
    return 0;
}

/* ---- markers ---- */

/* Each takes a segment's bytes without the length.  NULL, or what is wrong. */

static const char *take_tables(struct prototype *p, const uint8_t *at, const uint8_t *end)
{
    while (end - at >= 17) {
        unsigned kind = at[0] >> 4, id = at[0] & 15, n = 0;
        for (unsigned i = 0; i < 16; i++)
            n += at[1 + i];
        if (kind > 1 || id >= MR_JPEG_TABLES || n > 256 || (size_t)(end - at) < 17 + n)
            return "bad table";
        struct huffman *h = &p->huffman[kind][id];
        memcpy(h->counts, at + 1, 16);
        memcpy(h->symbols, at + 17, n);
        h->n_symbols = n;
        for (unsigned i = 0; kind && i < n; i++) {
            uint8_t *symbol = &h->symbols[i];
            if ((*symbol & 15) == 15)
                return "value of 15 bits";
            if (!(*symbol & 15) && *symbol && *symbol != 0xf0)
                *symbol |= 15; /* a run of ends */
        }
        at += 17 + n;
    }
    return at == end ? NULL : "bad table";
}

static const char *take_frame(struct prototype *p, const uint8_t *at, const uint8_t *end)
{
    unsigned max_h = 1, max_v = 1;
    if (end - at < 6 || at[0] != 8 || (at[5] != 1 && at[5] != 3) || end - at < 6 + 3 * at[5])
        return "not a frame of 8 bits and 1 or 3 components";
    uint32_t height = (uint32_t)at[1] << 8 | at[2], width = (uint32_t)at[3] << 8 | at[4];
    p->n_planes = at[5];
    for (unsigned i = 0; i < p->n_planes; i++) {
        struct plane *pl = &p->planes[i];
        const uint8_t *c = at + 6 + 3 * i;
        *pl = (struct plane){.id = c[0], .h = c[1] >> 4, .v = c[1] & 15};
        if (!pl->h || pl->h > 4 || !pl->v || pl->v > 4 || !width || !height)
            return "bad frame";
        max_h = pl->h > max_h ? pl->h : max_h;
        max_v = pl->v > max_v ? pl->v : max_v;
    }
    p->n_mcus = (width + 8 * max_h - 1) / (8 * max_h);
    p->n_mcu_rows = (height + 8 * max_v - 1) / (8 * max_v);
    size_t n = 0, at_block = 0;
    for (unsigned i = 0; i < p->n_planes; i++) {
        struct plane *pl = &p->planes[i];
        pl->width = (width * pl->h + 8 * max_h - 1) / (8 * max_h);
        pl->height = (height * pl->v + 8 * max_v - 1) / (8 * max_v);
        pl->stride = p->n_mcus * pl->h;
        pl->rows = p->n_mcu_rows * pl->v;
        n += (size_t)pl->stride * pl->rows;
    }
    size_t bytes = n * (64 * sizeof(int16_t) + sizeof(uint64_t));
    if (mr_buffer_reserve(&p->coefficients, bytes))
        return "no memory";
    uint8_t *memory = memset(p->coefficients.data, 0, bytes);
    for (unsigned i = 0; i < p->n_planes; i++) {
        struct plane *pl = &p->planes[i];
        pl->blocks = (int16_t(*)[64])(void *)memory + at_block;
        pl->masks = (uint64_t *)(void *)(memory + n * sizeof *pl->blocks) + at_block;
        at_block += (size_t)pl->stride * pl->rows;
    }
    return NULL;
}

static struct mr_jpeg_huffman sent(const struct huffman *h)
{
    return (struct mr_jpeg_huffman){h->counts, h->symbols, h->n_symbols};
}

/* The scan's header and its tables. */
static const char *take_scan(struct prototype *p, const uint8_t *at, const uint8_t *end,
                             struct scan *s)
{
    if (at == end || !at[0] || at[0] > p->n_planes || end - at != 4 + 2 * at[0])
        return "bad scan";
    *s = (struct scan){.n_planes = at[0]};
    s->from = end[-3], s->to = end[-2], s->high = end[-1] >> 4, s->low = end[-1] & 15;
    if (s->from > s->to || s->to > 63 || s->low > 13 || (!s->from && s->to) ||
        (s->from && s->n_planes > 1))
        return "bad band";
    for (unsigned i = 0; i < s->n_planes; i++) {
        unsigned dc = at[2 + 2 * i] >> 4, ac = at[2 + 2 * i] & 15;
        for (unsigned k = 0; k < p->n_planes; k++)
            if (p->planes[k].id == at[1 + 2 * i])
                s->planes[i] = &p->planes[k];
        if (!s->planes[i] || dc >= MR_JPEG_TABLES || ac >= MR_JPEG_TABLES)
            return "bad scan";
        struct mr_jpeg_huffman h = sent(&p->huffman[s->from > 0][s->from ? ac : dc]);
        s->dc[i] = &p->dc[dc];
        if (!s->from && !s->high && (!h.n_symbols || !mr_jpeg_dc_build(&p->dc[dc], &h)))
            return "no DC table";
        if (s->from && (!h.n_symbols || !mr_jpeg_ac_build(&p->single, &h, 0)))
            return "no AC table";
        if (s->from && !s->high && s->to == 63 && !mr_jpeg_ac_build(&p->pairs, &h, 1))
            return "no AC table";
    }
    return NULL;
}

/* The scan's bytes up to a marker, without what is stuffed between them; where that marker is. */
static const uint8_t *unstuff(const uint8_t *at, const uint8_t *end, uint8_t *out,
                              struct bits *bits)
{
    *bits = (struct bits){.next = out};
    for (;;) {
        const uint8_t *ff = memchr(at, 0xff, (size_t)(end - at));
        size_t n = (size_t)((ff ? ff : end) - at);
        memcpy(out, at, n);
        out += n;
        if (!ff || end - ff < 2 || ff[1]) {
            memset(out, 0, BEYOND);
            bits->end = out;
            return ff ? ff : end;
        }
        *out++ = 0xff;
        at = ff + 2;
    }
}

/* All scans of a file into p->planes.  NULL, or what is wrong. */
static const char *prototype_run(struct prototype *p, const struct file *f)
{
    const uint8_t *at = f->bytes + 2, *end = f->bytes + f->len;
    if (mr_buffer_reserve(&p->unstuffed, f->len + BEYOND))
        return "no memory";
    p->n_planes = 0;
    while (end - at >= 4 && at[0] == 0xff) {
        unsigned marker = at[1], len = (unsigned)at[2] << 8 | at[3];
        const uint8_t *from = at + 4, *to = at + 2 + len;
        struct scan s;
        struct bits bits;
        const char *wrong = NULL;
        if (len < 2 || len > end - at - 2)
            return "a segment is cut off";
        at = to;
        if (marker == 0xc4)
            wrong = take_tables(p, from, to);
        else if (marker == 0xc2 && !p->n_planes)
            wrong = take_frame(p, from, to);
        else if (marker == 0xdd || (marker >= 0xc0 && marker <= 0xcf) || marker < 0xc0)
            wrong = "a marker of another kind of file";
        else if (marker == 0xda && !(wrong = take_scan(p, from, to, &s))) {
            at = unstuff(to, end, p->unstuffed.data, &bits);
            if (!s.from  ? dc_scan(&s, bits, p->n_mcus, p->n_mcu_rows)
                : s.high ? ac_refine(p, &s, bits)
                         : ac_first(p, &s, bits))
                wrong = "damaged scan";
        }
        if (wrong)
            return wrong;
    }
    return end - at >= 2 && at[0] == 0xff && at[1] == 0xd9 ? NULL : "no end of image";
}

/* ---- libjpeg-turbo ---- */

struct lib {
    struct jpeg_decompress_struct in;
    struct jpeg_error_mgr errors; /* errors exit, with libjpeg's words */
};

static void lib_begin(struct lib *l, const struct file *f)
{
    l->in = (struct jpeg_decompress_struct){.err = jpeg_std_error(&l->errors)};
    jpeg_create_decompress(&l->in);
    jpeg_mem_src(&l->in, f->bytes, f->len);
    jpeg_read_header(&l->in, TRUE);
}

/* NULL where the prototype has the same blocks, those that fill up MCUs included. */
static const char *check(struct prototype *p, const struct file *f)
{
    struct lib l;
    const char *wrong = prototype_run(p, f);
    lib_begin(&l, f);
    jvirt_barray_ptr *arrays = jpeg_read_coefficients(&l.in);
    for (unsigned i = 0; !wrong && i < p->n_planes; i++) {
        const struct plane *pl = &p->planes[i];
        const jpeg_component_info *c = &l.in.comp_info[i];
        if (c->width_in_blocks != pl->width || c->height_in_blocks != pl->height)
            wrong = "other sizes than libjpeg's";
        for (uint32_t y = 0; !wrong && y < pl->rows; y++) {
            JBLOCKARRAY row =
                l.in.mem->access_virt_barray((j_common_ptr)&l.in, arrays[i], y, 1, FALSE);
            if (memcmp(row[0], pl->blocks[(size_t)y * pl->stride], pl->stride * sizeof(JBLOCK)))
                wrong = "other coefficients than libjpeg's";
        }
    }
    if (!wrong && l.errors.num_warnings)
        wrong = "libjpeg warns";
    jpeg_destroy_decompress(&l.in);
    return wrong;
}

/* The same coefficients in ten scans. */
static void make_progressive(struct file *f)
{
    struct lib l;
    struct jpeg_compress_struct out = {0};
    unsigned char *bytes = NULL;
    unsigned long len = 0;
    lib_begin(&l, f);
    jvirt_barray_ptr *coefficients = jpeg_read_coefficients(&l.in);
    out.err = &l.errors;
    jpeg_create_compress(&out);
    jpeg_copy_critical_parameters(&l.in, &out);
    jpeg_simple_progression(&out);
    jpeg_mem_dest(&out, &bytes, &len);
    jpeg_write_coefficients(&out, coefficients);
    jpeg_finish_compress(&out);
    jpeg_destroy_compress(&out);
    jpeg_destroy_decompress(&l.in);
    free(f->bytes);
    f->bytes = bytes;
    f->len = len;
}

/* ---- sides ---- */

struct work {
    struct file files[MAX_FILES];
    size_t n, at; /* the file that runs are of */
    struct prototype prototype;
    struct mr_decoder *decoder;
    uint8_t *slot;
};

static int run_prototype(struct work *w, const struct file *f)
{
    return prototype_run(&w->prototype, f) != NULL;
}

static int run_coefficients(struct work *w, const struct file *f)
{
    struct lib l;
    (void)w;
    lib_begin(&l, f);
    jpeg_read_coefficients(&l.in);
    jpeg_destroy_decompress(&l.in);
    return 0;
}

static int run_rgb(struct work *w, const struct file *f)
{
    static JSAMPLE row[JPEG_MAX_DIMENSION * 3];
    JSAMPROW rows[] = {row};
    struct lib l;
    (void)w;
    lib_begin(&l, f);
    l.in.out_color_space = JCS_RGB;
    jpeg_start_decompress(&l.in);
    while (l.in.output_scanline < l.in.output_height)
        jpeg_read_scanlines(&l.in, rows, 1);
    jpeg_destroy_decompress(&l.in);
    return 0;
}

static int run_decoder(struct work *w, const struct file *f)
{
    return mr_decoder_run(w->decoder, f->bytes, f->len, 0, w->slot);
}

struct side {
    struct work *w;
    int (*run)(struct work *w, const struct file *f);
};

static double run_once(void *ctx)
{
    const struct side *s = ctx;
    uint64_t begin_ns = mr_clock_thread_cpu_ns();
    if (s->run(s->w, &s->w->files[s->w->at]))
        return 0;
    return 1e9 / (double)(mr_clock_thread_cpu_ns() - begin_ns);
}

/* ---- comparisons ---- */

static int by_value(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static struct ratio summarize(double *v, size_t n)
{
    qsort(v, n, sizeof *v, by_value);
    return (struct ratio){v[n / 2], v[n / 4], v[(n - 1) - n / 4]};
}

/* File by file; the median ratio over the files, and rates over all of them.  0: a run failed. */
static double compare(struct work *w, const char *title, const char *name,
                      int (*run)(struct work *w, const struct file *f), unsigned rounds)
{
    struct side ours = {w, run}, peer = {w, run_coefficients};
    const struct contender a = {name, run_once, &ours}, b = {"libjpeg entropy", run_once, &peer};
    double ratios[MAX_FILES], controls[MAX_FILES], ours_s = 0, peer_s = 0;
    struct comparison c = {0};
    for (w->at = 0; w->at < w->n; w->at++) {
        if (alternate(&a, &b, rounds, &c))
            return 0;
        ratios[w->at] = c.ratio.median;
        controls[w->at] = c.control.median;
        ours_s += 1 / c.ours;
        peer_s += 1 / c.peer;
    }
    c.ours = (double)w->n / ours_s;
    c.peer = (double)w->n / peer_s;
    c.ratio = summarize(ratios, w->n);
    c.control = summarize(controls, w->n);
    alternate_print(title, &a, &b, &c, 0);
    return c.ratio.median;
}

static void print_gain(const char *whole, double faster, double share)
{
    printf("%s: entropy decoding is %.1f%%; all would be %.2f times as fast\n", whole, 100 * share,
           1 / (1 - share + share / faster));
}

/* ---- files ---- */

static int load(const char *dir, const char *name, struct file *out)
{
    char path[4096];
    snprintf(path, sizeof path, "%s/%s", dir, name);
    snprintf(out->name, sizeof out->name, "%s", name);
    FILE *f = name[0] != '.' ? fopen(path, "rb") : NULL;
    long len = 0;
    if (!f)
        return -1;
    int r = -1;
    if (!fseek(f, 0, SEEK_END) && (len = ftell(f)) > 4) {
        rewind(f);
        out->len = (size_t)len;
        out->bytes = malloc(out->len);
        r = out->bytes && fread(out->bytes, 1, out->len, f) == out->len ? 0 : -1;
    }
    fclose(f);
    return r;
}

/* Nonzero when the file, progressive from then on, is one that the prototype should take. */
static int prepare(struct file *f)
{
    struct lib l;
    if (f->bytes[0] != 0xff || f->bytes[1] != 0xd8)
        return 0;
    lib_begin(&l, f);
    int n = l.in.num_components, is_progressive = l.in.progressive_mode;
    int fits = (n == 1 || n == 3) && !(is_progressive && l.in.restart_interval);
    fits = fits && !l.in.arith_code && !l.errors.num_warnings;
    jpeg_destroy_decompress(&l.in);
    if (fits && !is_progressive)
        make_progressive(f);
    return fits;
}

/* The first `most` files, checked.  -1: the prototype is wrong about one. */
static int load_all(struct work *w, const char *dir, size_t most)
{
    struct dirent **names = NULL;
    int n = scandir(dir, &names, NULL, alphasort), r = 0;
    size_t bytes = 0, n_left = 0;
    for (int i = 0; i < n; free(names[i++])) {
        struct file *f = &w->files[w->n];
        if (r || w->n >= most || load(dir, names[i]->d_name, f))
            continue;
        if (!prepare(f)) {
            free(f->bytes);
            n_left++;
            continue;
        }
        w->n++;
        bytes += f->len;
        const char *wrong = check(&w->prototype, f);
        if (wrong) {
            fprintf(stderr, "%s: %s\n", f->name, wrong);
            r = -1;
        }
    }
    free(names);
    printf("%zu files, %.1f KB each; %zu of other kinds left out\n", w->n,
           (double)bytes / 1e3 / (double)(w->n ? w->n : 1), n_left);
    return r;
}

int main(int argc, char **argv)
{
    static struct work w;
    struct mr_decoder_opts opts = {.layout = MR_IMAGE_NCHW};
    size_t most = argc > 2 ? strtoul(argv[2], NULL, 10) : 60;
    unsigned rounds = argc > 3 ? (unsigned)atoi(argv[3]) : 9;
#ifdef __x86_64__
    if (!__builtin_cpu_supports("bmi2")) {
        fprintf(stderr, "%s needs a processor with BMI2\n", argv[0]);
        return 2;
    }
#endif
    if (argc < 2 || most < 1 || most > MAX_FILES) {
        fprintf(stderr, "usage: %s DIR [FILES [ROUNDS]], %d files at most\n", argv[0], MAX_FILES);
        return 2;
    }
    w.slot = aligned_alloc(64, (mr_decoder_bytes(&opts) + 63) / 64 * 64);
    int bad = !w.slot || mr_decoder_new(&opts, &w.decoder, NULL) || load_all(&w, argv[1], most);
    if (!bad && w.n) {
        double faster = compare(&w, "entropy", "prototype", run_prototype, rounds);
        double rgb = compare(&w, "share in decoding to RGB", "all", run_rgb, rounds);
        double slot = compare(&w, "share in ours to 224 x 224", "all", run_decoder, rounds);
        bad = !(faster > 0 && rgb > 0 && slot > 0);
        if (!bad) {
            print_gain("libjpeg to RGB", faster, rgb);
            print_gain("ours to 224 x 224 by libjpeg", faster, slot);
        }
    }
    for (size_t i = 0; i < w.n; i++)
        free(w.files[i].bytes);
    mr_buffer_fini(&w.prototype.coefficients);
    mr_buffer_fini(&w.prototype.unstuffed);
    free(w.slot);
    mr_decoder_free(w.decoder);
    return bad || !w.n;
}
