/* jpeg_header.c - the markers of a baseline JPEG file.
 *
 *     FFD8                                           SOI
 *     FFxx  length(2)  length - 2 bytes              a segment; length counts itself
 *       FFDB  DQT  { precision:4 id:4, 64 values of 1 or 2 bytes, in zigzag order } ...
 *       FFC4  DHT  { class:4 id:4, 16 counts, their sum of symbols } ...
 *       FFC0  SOF0 (FFC1 SOF1)  bits(1) height(2) width(2) n(1) { id, h:4 v:4, quantiser } * n
 *       FFDD  DRI  MCUs between restart markers(2)
 *       FFE0  APP0 "JFIF\0" ...     FFEE  APP14 "Adobe" version(2) flags(2) flags(2) transform(1)
 *       FFDA  SOS  n(1) { id, dc:4 ac:4 } * n  0 63 0  and then the entropy-coded data
 *
 * The rule of the whole decoder begins here: a file that is in any way odd is not refused but left
 * to libjpeg-turbo, which says what becomes of it.  So every check below means "not plain", never
 * "corrupt", and it may be stricter than the standard but never laxer than libjpeg.  Among what is
 * left: progressive, lossless, arithmetic and 12-bit files, four components, RGB, several scans, a
 * table that is sent twice or not at all, quantisers of zero, and all markers not named above.
 *
 * Every read lies behind a comparison with the end of its segment, and a segment's end behind one
 * with the end of the file.  Each byte is looked at once, so a header costs no more than its
 * length.
 */
#include "jpeg_header.h"

#include <string.h>

#define MAX_SIDE 65500 /* libjpeg's */

const uint8_t mr_jpeg_zigzag[64] = {0,  1,  8,  16, 9,  2,  3,  10, 17, 24, 32, 25, 18, 11, 4,  5,
                                    12, 19, 26, 33, 40, 48, 41, 34, 27, 20, 13, 6,  7,  14, 21, 28,
                                    35, 42, 49, 56, 57, 50, 43, 36, 29, 22, 15, 23, 30, 37, 44, 51,
                                    58, 59, 52, 45, 38, 31, 39, 46, 53, 60, 61, 54, 47, 55, 62, 63};

enum marker {
    SOF0 = 0xc0,
    SOF1 = 0xc1,
    DHT = 0xc4,
    SOI = 0xd8,
    SOS = 0xda,
    DQT = 0xdb,
    DRI = 0xdd,
    APP0 = 0xe0,
    APP14 = 0xee,
    APP15 = 0xef,
    COM = 0xfe,
};

struct segment {
    const uint8_t *at, *end;
};

/* What is needed only until the header is complete. */
struct parser {
    struct mr_jpeg_header *h;
    int saw_frame, saw_restart, saw_jfif;
    int saw_adobe, transform; /* as Adobe's marker has it */
};

static unsigned be16(const uint8_t *p)
{
    return (unsigned)p[0] << 8 | p[1];
}

static size_t left(const struct segment *s)
{
    return (size_t)(s->end - s->at);
}

static int parse_quantisers(struct parser *p, struct segment s)
{
    struct mr_jpeg_header *h = p->h;
    while (left(&s)) {
        unsigned wide = *s.at >> 4, id = *s.at & 15;
        s.at++;
        if (wide > 1 || id >= MR_JPEG_TABLES || h->has_quantiser[id] || left(&s) < 64u << wide)
            return 0;
        for (int i = 0; i < 64; i++, s.at += 1 + wide) {
            unsigned q = wide ? be16(s.at) : *s.at;
            if (q == 0 || q > INT16_MAX)
                return 0;
            h->quantiser[id][mr_jpeg_zigzag[i]] = (int16_t)q;
        }
        h->has_quantiser[id] = 1;
    }
    return 1;
}

static int parse_huffman(struct parser *p, struct segment s)
{
    while (left(&s)) {
        unsigned kind = *s.at >> 4, id = *s.at & 15, n = 0;
        if (kind > 1 || id >= MR_JPEG_TABLES || left(&s) < 17)
            return 0;
        struct mr_jpeg_huffman *t = kind ? &p->h->ac[id] : &p->h->dc[id];
        for (int i = 1; i <= 16; i++)
            n += s.at[i];
        if (t->counts || n > 256 || left(&s) < 17 + n)
            return 0;
        *t = (struct mr_jpeg_huffman){.counts = s.at + 1, .symbols = s.at + 17, .n_symbols = n};
        s.at += 17 + n;
    }
    return 1;
}

static int parse_restart(struct parser *p, struct segment s)
{
    if (p->saw_restart || left(&s) != 2)
        return 0;
    p->saw_restart = 1;
    p->h->restart_interval = be16(s.at);
    return 1;
}

/* What a scan of one component is: a block is an MCU, whatever the sampling factors. */
static void forget_sampling(struct mr_jpeg_header *h)
{
    h->component[0].h = h->component[0].v = 1;
    h->max_h = h->max_v = 1;
}

static int parse_components(struct mr_jpeg_header *h, const uint8_t *at)
{
    unsigned n_blocks = 0;
    for (unsigned i = 0; i < h->n_components; i++, at += 3) {
        struct mr_jpeg_component *c = &h->component[i];
        *c = (struct mr_jpeg_component){
            .id = at[0], .h = at[1] >> 4, .v = at[1] & 15, .quantiser = at[2]};
        if (c->h < 1 || c->h > 4 || c->v < 1 || c->v > 4 || c->quantiser >= MR_JPEG_TABLES)
            return 0;
        for (unsigned k = 0; k < i; k++)
            if (h->component[k].id == c->id)
                return 0;
        h->max_h = c->h > h->max_h ? c->h : h->max_h;
        h->max_v = c->v > h->max_v ? c->v : h->max_v;
        n_blocks += c->h * c->v;
    }
    if (h->n_components == 1)
        forget_sampling(h);
    else if (n_blocks > MR_JPEG_MCU_BLOCKS)
        return 0;
    return 1;
}

static int parse_frame(struct parser *p, struct segment s)
{
    struct mr_jpeg_header *h = p->h;
    if (p->saw_frame || left(&s) < 6 || s.at[0] != 8)
        return 0;
    p->saw_frame = 1;
    h->height = be16(s.at + 1);
    h->width = be16(s.at + 3);
    h->n_components = s.at[5];
    if (!h->width || !h->height || h->width > MAX_SIDE || h->height > MAX_SIDE ||
        (h->n_components != 1 && h->n_components != MR_JPEG_COMPONENTS) ||
        left(&s) != 6 + 3 * h->n_components || !parse_components(h, s.at + 6))
        return 0;
    h->n_mcus = (h->width + 8 * h->max_h - 1) / (8 * h->max_h);
    h->n_mcu_rows = (h->height + 8 * h->max_v - 1) / (8 * h->max_v);
    return 1;
}

static int parse_application(struct parser *p, unsigned marker, struct segment s)
{
    if (marker == APP0 && left(&s) >= 14 && !memcmp(s.at, "JFIF", 5)) {
        p->saw_jfif = 1;
    } else if (marker == APP14 && left(&s) >= 12 && !memcmp(s.at, "Adobe", 5)) {
        p->saw_adobe = 1;
        p->transform = s.at[11];
    }
    return 1;
}

static int parse_scan(struct parser *p, struct segment s)
{
    struct mr_jpeg_header *h = p->h;
    if (!p->saw_frame || left(&s) != 4 + 2 * h->n_components || s.at[0] != h->n_components)
        return 0;
    s.at++;
    for (unsigned i = 0; i < h->n_components; i++, s.at += 2) {
        struct mr_jpeg_component *c = &h->component[i];
        c->dc_table = s.at[1] >> 4;
        c->ac_table = s.at[1] & 15;
        if (s.at[0] != c->id || c->dc_table >= MR_JPEG_TABLES || c->ac_table >= MR_JPEG_TABLES ||
            !h->dc[c->dc_table].counts || !h->ac[c->ac_table].counts ||
            !h->has_quantiser[c->quantiser])
            return 0;
    }
    return s.at[0] == 0 && s.at[1] == 63 && s.at[2] == 0;
}

/* Three components are YCbCr, unless something says otherwise. */
static int is_ycc(const struct parser *p)
{
    const struct mr_jpeg_component *c = p->h->component;
    if (p->h->n_components == 1 || p->saw_jfif)
        return 1;
    if (p->saw_adobe)
        return p->transform == 1;
    return c[0].id != 'R' || c[1].id != 'G' || c[2].id != 'B';
}

static int parse_segment(struct parser *p, unsigned marker, struct segment s)
{
    switch (marker) {
    case DQT:
        return parse_quantisers(p, s);
    case DHT:
        return parse_huffman(p, s);
    case DRI:
        return parse_restart(p, s);
    case SOF0:
    case SOF1:
        return parse_frame(p, s);
    case SOS:
        return parse_scan(p, s);
    case COM:
        return 1;
    default:
        return marker >= APP0 && marker <= APP15 ? parse_application(p, marker, s) : 0;
    }
}

int mr_jpeg_header_parse(const uint8_t *bytes, size_t len, struct mr_jpeg_header *out)
{
    struct parser p = {.h = out};
    const uint8_t *at = bytes, *end = bytes + len;
    memset(out, 0, sizeof *out);
    if (len < 2 || at[0] != 0xff || at[1] != SOI)
        return 0;
    at += 2;
    for (;;) {
        if (end - at < 4 || at[0] != 0xff)
            return 0;
        unsigned marker = at[1];
        size_t length = be16(at + 2);
        at += 2;
        if (length < 2 || (size_t)(end - at) < length)
            return 0;
        if (!parse_segment(&p, marker, (struct segment){at + 2, at + length}))
            return 0;
        at += length;
        if (marker == SOS)
            break;
    }
    out->scan_at = (size_t)(at - bytes);
    return is_ycc(&p);
}
