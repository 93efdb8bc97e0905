/* test_jpeg_twin.c - our own JPEG decoder gives what libjpeg-turbo gives: coefficients, samples,
 * pixels, refusals.
 *
 * MILLRACE_JPEG_ENCODES=N tries N re-encoded images instead of 1,000; MILLRACE_TEST_DATA=DIR
 * every file below DIR as well. */
#include "jpeg_twin.h"
#include "unit.h"

#include "jpeg_kernels.h"
#include "plane_resizer.h"

#include <millrace/store.h>

#include <ftw.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#define N_ENCODES 1000
#define MAX_FILE  ((size_t)64 << 20)

static const enum mr_image_simd simds[] = {MR_SIMD_SCALAR, MR_SIMD_AVX2, MR_SIMD_AVX512};

static void require(int ok, const char *what, const char *which)
{
    if (!ok)
        fail_msg("%s: %s", which, what);
}

/* ---- stages ---- */

/* Nonzero when our stages take the file; then every instruction set must agree with the twin. */
static int compare_stages(const uint8_t *bytes, size_t len, const char *which)
{
    struct twin turbo = {0}, own;
    int taken = 0;
    for (size_t i = 0; i < ARRAY_LEN(simds); i++) {
        if (!mr_kernels_pick(simds[i]))
            continue;
        int now = twin_own(bytes, len, simds[i], &own);
        require(i == 0 || now == taken, "instruction sets disagree", which);
        taken = now;
        if (taken && i == 0)
            require(twin_turbo(bytes, len, &turbo), "libjpeg-turbo refuses it", which);
        const char *difference = taken ? twin_difference(&own, &turbo) : NULL;
        require(!difference, difference, which);
        twin_free(&own);
    }
    twin_free(&turbo);
    return taken;
}

static void re_encoded_images_are_equal_bit_for_bit(void **state)
{
    const char *wanted = getenv("MILLRACE_JPEG_ENCODES");
    unsigned n = wanted ? (unsigned)atoi(wanted) : N_ENCODES;
    char text[160];
    for (unsigned i = 0; i < n; i++) {
        struct twin_kind k = twin_kind(i, 4096);
        struct sample s = twin_encode(&k);
        require(compare_stages(s.bytes, s.len, twin_text(&k, text, sizeof text)),
                "our decoder does not take it", text);
        free(s.bytes);
    }
    assert_true(n > 0);
}

/* Blocks that end with their 63rd coefficient, in so few bits that a lookup takes the next block's
 * first symbol, too, and must be undone.  Grey, codes of their own:
 *     DC   0: nothing
 *     AC   00: 16 zeros   01: 11 zeros, 1 bit   10: 2 zeros, 1 bit   110: 1 bit   1110: end */
static const uint8_t short_codes[] = {
    0xff, 0xd8, 0xff, 0xc4, 0, 20, 0x00, 1,    0,    0, 0,  0,    0,    0,    0, 0, 0,
    0,    0,    0,    0,    0, 0,  0,    0xff, 0xc4, 0, 24, 0x10, 0,    3,    1, 1, 0,
    0,    0,    0,    0,    0, 0,  0,    0,    0,    0, 0,  0xf0, 0xb1, 0x21, 1, 0};

struct bit_writer {
    uint8_t *at;
    uint32_t bits;
    unsigned n;
};

static void put_bits(struct bit_writer *w, uint32_t bits, unsigned n)
{
    w->bits = w->bits << n | bits;
    for (w->n += n; w->n >= 8; w->n -= 8) {
        *w->at++ = (uint8_t)(w->bits >> (w->n - 8));
        if (w->at[-1] == 0xff)
            *w->at++ = 0;
    }
}

/* Most blocks have coefficients 60 and 63, the others all 63 or a few. */
static void put_block(struct bit_writer *w, uint64_t *random)
{
    unsigned kind = sample_random(random) % 64, n = kind == 0 ? 63 : sample_random(random) % 9;
    put_bits(w, 0, 1);
    if (kind > 1) {
        put_bits(w, 0, 6);
        put_bits(w, 2 | (sample_random(random) & 1), 3);
        put_bits(w, 4 | (sample_random(random) & 1), 3);
        return;
    }
    for (unsigned i = 0; i < n; i++)
        put_bits(w, 12 | (sample_random(random) & 1), 4);
    if (n < 63)
        put_bits(w, 14, 4);
}

static struct sample full_blocks(unsigned width, unsigned height, uint64_t random)
{
    const uint8_t frame[] = {0xff,
                             0xc0,
                             0,
                             11,
                             8,
                             (uint8_t)(height >> 8),
                             (uint8_t)height,
                             (uint8_t)(width >> 8),
                             (uint8_t)width,
                             1,
                             1,
                             0x11,
                             0};
    static const uint8_t quantiser[] = {0xff, 0xdb, 0, 67, 0},
                         scan[] = {0xff, 0xda, 0, 8, 1, 1, 0, 0, 63, 0};
    size_t n_blocks = (size_t)(width / 8) * (height / 8);
    struct sample s = {.bytes = malloc(1024 + n_blocks * 64)};
    struct bit_writer w = {.at = s.bytes};
    w.at = mempcpy(w.at, short_codes, sizeof short_codes);
    w.at = mempcpy(w.at, quantiser, sizeof quantiser);
    memset(w.at, 9, 64);
    w.at = mempcpy(w.at + 64, frame, sizeof frame);
    w.at = mempcpy(w.at, scan, sizeof scan);
    for (size_t i = 0; i < n_blocks; i++)
        put_block(&w, &random);
    put_bits(&w, 127, 7);
    *w.at++ = 0xff;
    *w.at++ = 0xd9;
    s.len = (size_t)(w.at - s.bytes);
    return s;
}

/* The first bytes of a window matter most: some are read again from in front of it. */
static void blocks_without_an_end_are_equal_bit_for_bit(void **state)
{
    for (unsigned i = 0; i < 8; i++) {
        struct sample s = full_blocks(2400, 2000, i + 1);
        assert_true(s.len > 2 * MR_JPEG_WINDOW);
        require(compare_stages(s.bytes, s.len, "full blocks"), "not taken", "full blocks");
        free(s.bytes);
    }
}

/* nftw has no context to pass. */
static struct {
    uint8_t *bytes;
    unsigned n_files, n_taken;
} walk;

static int visit(const char *path, const struct stat *st, int type, struct FTW *where)
{
    size_t len;
    if (type != FTW_F || path[where->base] == '.' || st->st_size == 0)
        return 0;
    require(!mr_file_read(path, walk.bytes, MAX_FILE, &len, NULL), "cannot be read", path);
    walk.n_files++;
    walk.n_taken += (unsigned)compare_stages(walk.bytes, len, path);
    return 0;
}

static void files_are_equal_bit_for_bit(void **state)
{
    const char *root = getenv("MILLRACE_TEST_DATA");
    if (!root || !*root)
        skip();
    walk.bytes = malloc(MAX_FILE);
    assert_non_null(walk.bytes);
    nftw(root, visit, 16, FTW_PHYS);
    free(walk.bytes);
    print_message("%u files, %u taken by our decoder\n", walk.n_files, walk.n_taken);
    assert_true(walk.n_taken > 0); /* a data set that tries nothing proves nothing */
}

/* ---- whole decoders ---- */

struct pair {
    struct mr_decoder *own, *turbo;
    size_t slot_bytes;
};

static struct pair new_pair(struct mr_decoder_opts o)
{
    struct pair p = {.slot_bytes = mr_decoder_bytes(&o)};
    assert_int_equal(mr_decoder_new(&o, &p.own, NULL), 0);
    o.decoder = MR_DECODER_TURBO;
    assert_int_equal(mr_decoder_new(&o, &p.turbo, NULL), 0);
    return p;
}

static void free_pair(struct pair *p)
{
    mr_decoder_free(p->own);
    mr_decoder_free(p->turbo);
}

static enum mr_decoder_path path_of(const struct mr_decoder *d)
{
    struct mr_decoder_stats stats;
    mr_decoder_get_stats(d, &stats);
    return (enum mr_decoder_path)stats.path;
}

/* Both into slots of their own; the path that the first took. */
static enum mr_decoder_path compare_pair(struct pair *p, const uint8_t *bytes, size_t len,
                                         uint8_t *slots[2], const char *which)
{
    memset(slots[0], 1, p->slot_bytes);
    memset(slots[1], 2, p->slot_bytes);
    int a = mr_decoder_run(p->own, bytes, len, len, slots[0]);
    int b = mr_decoder_run(p->turbo, bytes, len, len, slots[1]);
    require(a == b, "one decoder takes what the other refuses", which);
    require(!strcmp(mr_decoder_error(p->own), mr_decoder_error(p->turbo)), "words differ", which);
    require(a || !memcmp(slots[0], slots[1], p->slot_bytes), "pixels differ", which);
    require(b || path_of(p->turbo) != MR_PATH_OWN, "the wrong decoder", which);
    return path_of(p->own);
}

static const struct mr_decoder_opts ways[] = {
    {.width = 50, .height = 40},
    {.width = 224, .height = 224, .layout = MR_IMAGE_NCHW},
    {.width = 33, .height = 21, .augment = MR_AUGMENT_CROP_FLIP},
    {.width = 64, .height = 64, .augment = MR_AUGMENT_CROP_FLIP, .dtype = MR_DT_U8},
    {.width = 10, .height = 10, .resize = MR_RESIZE_AREA},
    {.width = 150, .height = 150, .resize = MR_RESIZE_AREA},
    {.width = 40, .height = 40, .exact = 1},
    {.width = 40, .height = 40, .accept_truncated = 1, .simd = MR_SIMD_SCALAR},
};

static void pixels_do_not_depend_on_the_decoder(void **state)
{
    char text[160];
    for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
        struct pair p = new_pair(ways[w]);
        uint8_t *slots[2] = {malloc(p.slot_bytes), malloc(p.slot_bytes)};
        for (unsigned i = 0; i < 60; i++) {
            struct twin_kind k = twin_kind(12 + i, 700);
            struct sample s = twin_encode(&k);
            compare_pair(&p, s.bytes, s.len, slots, twin_text(&k, text, sizeof text));
            free(s.bytes);
        }
        free_pair(&p);
        free(slots[0]);
        free(slots[1]);
    }
}

static void only_plain_files_are_decoded_by_us(void **state)
{
    struct photo photo = sample_photo(90, 70, 3);
    struct pair p = new_pair((struct mr_decoder_opts){.width = 40, .height = 40});
    uint8_t *slots[2] = {malloc(p.slot_bytes), malloc(p.slot_bytes)};
    for (const struct jpeg_kind *k = sample_jpeg_kinds; k->name; k++) {
        int plain = (k->colour == SAMPLE_YCC || k->colour == SAMPLE_GREY) && !k->progressive &&
                    !k->arithmetic;
        struct sample s = sample_jpeg(&photo, k);
        enum mr_decoder_path path = compare_pair(&p, s.bytes, s.len, slots, k->name);
        require(path == (plain ? MR_PATH_OWN : MR_PATH_TURBO), "the wrong decoder", k->name);
        s.bytes[s.len - 1] = 0; /* no end marker */
        path = compare_pair(&p, s.bytes, s.len, slots, k->name);
        require(path != MR_PATH_OWN, "taken without an end", k->name);
        free(s.bytes);
    }
    free_pair(&p);
    free(slots[0]);
    free(slots[1]);
    free(photo.rgb);
}

/* ---- what is not plain ---- */

static size_t segment_bytes(const struct sample *s, size_t at)
{
    return 2 + ((size_t)s->bytes[at + 2] << 8 | s->bytes[at + 3]);
}

/* Where the first segment with this marker begins; 0: there is none. */
static size_t segment_at(const struct sample *s, unsigned marker)
{
    size_t at = 2;
    while (s->bytes[at + 1] != marker && s->bytes[at + 1] != 0xda)
        at += segment_bytes(s, at);
    return s->bytes[at + 1] == marker ? at : 0;
}

static void insert_bytes(struct sample *s, size_t at, const uint8_t *bytes, size_t n)
{
    uint8_t *longer = malloc(s->len + n);
    memcpy(longer, s->bytes, at);
    memcpy(longer + at, bytes, n);
    memcpy(longer + at + n, s->bytes + at, s->len - at);
    free(s->bytes);
    *s = (struct sample){longer, s->len + n};
}

static void change_nothing(struct sample *s, unsigned arg)
{
}

static void remove_segments(struct sample *s, unsigned marker)
{
    for (size_t at; (at = segment_at(s, marker)) > 0;) {
        size_t n = segment_bytes(s, at);
        memmove(s->bytes + at, s->bytes + at + n, s->len - at - n);
        s->len -= n;
    }
}

static void repeat_segment(struct sample *s, unsigned marker)
{
    uint8_t copy[512];
    size_t at = segment_at(s, marker), n = segment_bytes(s, at);
    assert_true(n <= sizeof copy);
    memcpy(copy, s->bytes + at, n);
    insert_bytes(s, at, copy, n);
}

static void add_adobe(struct sample *s, unsigned transform)
{
    uint8_t segment[16] = {0xff, 0xee, 0, 14, 'A', 'd', 'o', 'b', 'e', 0, 100};
    segment[15] = (uint8_t)transform;
    insert_bytes(s, 2, segment, sizeof segment);
}

static void have_only_adobe(struct sample *s, unsigned transform)
{
    remove_segments(s, 0xe0);
    add_adobe(s, transform);
}

static void insert_marker(struct sample *s, unsigned marker)
{
    insert_bytes(s, segment_at(s, 0xc0), (const uint8_t[]){0xff, (uint8_t)marker, 0, 2}, 4);
}

static void insert_byte(struct sample *s, unsigned byte)
{
    insert_bytes(s, segment_at(s, 0xc0), &(uint8_t){(uint8_t)byte}, 1);
}

static void rename_frame(struct sample *s, unsigned marker)
{
    s->bytes[segment_at(s, 0xc0) + 1] = (uint8_t)marker;
}

static void set_precision(struct sample *s, unsigned bits)
{
    s->bytes[segment_at(s, 0xc0) + 4] = (uint8_t)bits;
}

static void set_scan_component(struct sample *s, unsigned id)
{
    s->bytes[segment_at(s, 0xda) + 5] = (uint8_t)id;
}

static void set_spectral_end(struct sample *s, unsigned k)
{
    s->bytes[segment_at(s, 0xda) + 12] = (uint8_t)k;
}

static void change_restart(struct sample *s, unsigned marker)
{
    size_t at = segment_at(s, 0xda);
    for (; s->bytes[at] != 0xff || s->bytes[at + 1] != 0xd1; at++)
        assert_true(at + 2 < s->len);
    s->bytes[at + 1] = (uint8_t)marker;
}

static void append_bytes(struct sample *s, unsigned n)
{
    uint8_t bytes[256] = "garbage";
    insert_bytes(s, s->len, bytes, n);
}

static void cut_bytes(struct sample *s, unsigned n)
{
    s->len -= n;
}

/* What is done to a plain file, and who decodes it then; MR_PATH_NONE: it is refused. */
static const struct anomaly {
    const char *name;
    void (*edit)(struct sample *s, unsigned arg);
    unsigned arg;
    enum mr_decoder_path path;
    int several_scans;
} anomalies[] = {
    {"none", change_nothing, 0, MR_PATH_OWN},
    {"an extended frame", rename_frame, 0xc1, MR_PATH_OWN},
    {"a progressive frame", rename_frame, 0xc2, MR_PATH_NONE},
    {"a lossless frame", rename_frame, 0xc3, MR_PATH_NONE},
    {"12 bits", set_precision, 12, MR_PATH_NONE},
    {"several scans", change_nothing, 0, MR_PATH_TURBO, 1},
    {"several scans, cut", cut_bytes, 300, MR_PATH_NONE, 1},
    {"no quantisers", remove_segments, 0xdb, MR_PATH_NONE},
    {"quantisers twice", repeat_segment, 0xdb, MR_PATH_TURBO},
    {"no Huffman tables", remove_segments, 0xc4, MR_PATH_TURBO},
    {"a Huffman table twice", repeat_segment, 0xc4, MR_PATH_TURBO},
    {"a frame twice", repeat_segment, 0xc0, MR_PATH_NONE},
    {"Adobe: no transform", have_only_adobe, 0, MR_PATH_TURBO},
    {"Adobe: YCbCr", have_only_adobe, 1, MR_PATH_OWN},
    {"Adobe: YCCK", have_only_adobe, 2, MR_PATH_TURBO},
    {"Adobe beside JFIF", add_adobe, 0, MR_PATH_OWN},
    {"a reserved marker", insert_marker, 0x02, MR_PATH_NONE},
    {"a marker of JPEG 2000", insert_marker, 0x4f, MR_PATH_NONE},
    {"an unknown application", insert_marker, 0xe9, MR_PATH_OWN},
    {"a fill byte", insert_byte, 0xff, MR_PATH_TURBO},
    {"a byte between segments", insert_byte, 0, MR_PATH_TURBO},
    {"a scan of a missing component", set_scan_component, 77, MR_PATH_NONE},
    {"a part of the spectrum", set_spectral_end, 62, MR_PATH_NONE},
    {"a restart out of turn", change_restart, 0xd5, MR_PATH_NONE},
    {"no end but a restart", change_restart, 0xd9, MR_PATH_NONE},
    {"garbage after the end", append_bytes, 100, MR_PATH_OWN},
    {"no end", cut_bytes, 2, MR_PATH_NONE},
    {"truncated", cut_bytes, 500, MR_PATH_NONE},
};

static struct sample anomalous(const struct anomaly *a, unsigned side)
{
    struct twin_kind k = {.width = side,
                          .height = side * 3 / 4,
                          .seed = 5,
                          .n_components = 3,
                          .h = {2, 1, 1},
                          .v = {2, 1, 1},
                          .quality = 80,
                          .restart_interval = 2,
                          .several_scans = a->several_scans};
    struct sample s = twin_encode(&k);
    a->edit(&s, a->arg);
    return s;
}

static void every_anomaly_is_decided_by_libjpeg_turbo(void **state)
{
    for (size_t w = 0; w < ARRAY_LEN(ways); w++) {
        struct pair p = new_pair(ways[w]);
        uint8_t *slots[2] = {malloc(p.slot_bytes), malloc(p.slot_bytes)};
        for (size_t i = 0; i < ARRAY_LEN(anomalies); i++) {
            const struct anomaly *a = &anomalies[i];
            struct sample s = anomalous(a, 90);
            enum mr_decoder_path path = compare_pair(&p, s.bytes, s.len, slots, a->name);
            if (w == 0)
                require(path == a->path, "not decoded by whom it should be", a->name);
            require((path != MR_PATH_OWN) || a->path == MR_PATH_OWN, "taken by us", a->name);
            free(s.bytes);
        }
        free_pair(&p);
        free(slots[0]);
        free(slots[1]);
    }
}

/* ---- bounds ---- */

/* n bytes with pages that may not be touched on both sides; the bytes begin or end at one. */
struct guarded {
    uint8_t *map, *at;
    size_t map_bytes;
};

static struct guarded new_guarded(size_t n, int at_end)
{
    size_t page = (size_t)sysconf(_SC_PAGESIZE), inner = (n + page - 1) / page * page;
    struct guarded g = {.map_bytes = inner + 2 * page};
    g.map = mmap(NULL, g.map_bytes, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    assert_true(g.map != MAP_FAILED);
    assert_int_equal(mprotect(g.map + page, inner, PROT_READ | PROT_WRITE), 0);
    g.at = g.map + page + (at_end ? inner - n : 0);
    return g;
}

static void damage(uint8_t *bytes, size_t len, uint64_t *random)
{
    for (unsigned n = sample_random(random) % 4; n > 0; n--)
        bytes[sample_random(random) % len] = (uint8_t)sample_random(random);
}

/* The n-th file for the guards: plain JPEGs of many kinds, and what others decode. */
static struct sample file_to_guard(unsigned n)
{
    static const int jpegs[] = {10, 11, 12, 14, 16, 20}, pngs[] = {3, 5, 6, 11};
    if (n < 10) {
        struct twin_kind k = twin_kind(30 + n, 100);
        return twin_encode(&k);
    }
    struct photo p = sample_photo(37, 41, n);
    struct sample s = n - 10 < ARRAY_LEN(jpegs)
                          ? sample_jpeg(&p, &sample_jpeg_kinds[jpegs[n - 10]])
                          : sample_png(&p, &sample_png_kinds[pngs[n % ARRAY_LEN(pngs)]], NULL);
    free(p.rgb);
    return s;
}
#define N_GUARDED 20

/* Whole, cut and damaged files between pages that may not be read, into slots between pages that
 * may not be written, beginning at the first or ending at the second. */
static void run_between_guards(struct pair *p, const struct sample *s, uint64_t *random)
{
    for (unsigned n = 0; n < 8; n++) {
        size_t len = n < 4 ? s->len : 1 + sample_random(random) % s->len;
        struct guarded in = new_guarded(len, n % 2), a = new_guarded(p->slot_bytes, n % 2);
        struct guarded b = new_guarded(p->slot_bytes, n % 2);
        memcpy(in.at, s->bytes, len);
        if (n > 1)
            damage(in.at, len, random);
        compare_pair(p, in.at, len, (uint8_t *[]){a.at, b.at}, "a file between guards");
        munmap(in.map, in.map_bytes);
        munmap(a.map, a.map_bytes);
        munmap(b.map, b.map_bytes);
    }
}

static void nothing_outside_the_file_and_the_slot_is_touched(void **state)
{
    uint64_t random = 1;
    for (unsigned i = 0; i < N_GUARDED; i++) {
        struct sample s = file_to_guard(i);
        for (size_t w = 0; w < ARRAY_LEN(ways); w++)
            for (size_t k = 0; k < ARRAY_LEN(simds); k++) {
                struct mr_decoder_opts o = ways[w];
                o.simd = simds[k];
                if (!mr_kernels_pick(o.simd))
                    continue;
                struct pair p = new_pair(o);
                run_between_guards(&p, &s, &random);
                free_pair(&p);
            }
        free(s.bytes);
    }
}

static size_t axis_bytes(const struct mr_axis *a)
{
    return a->memory.cap;
}

/* What a decoder's thread holds beyond the file: the stages, the rings and the tables. */
static void memory_does_not_grow_with_the_file(void **state)
{
    static const int luma[][2] = {{1, 1}, {2, 1}, {2, 2}, {1, 2}, {4, 2}, {2, 4}, {1, 4}};
    for (size_t i = 0; i < ARRAY_LEN(luma); i++) {
        struct mr_decoder_opts o = {.width = 224, .height = 224, .max_pixels = 1 << 24};
        struct mr_picture pic = {
            .colour = MR_COLOUR_YCC, .width = 4096, .height = 3072, .shrink = 1};
        struct mr_resizer r;
        pic.region = (struct mr_region){.width = 4096, .height = 3072};
        for (int c = 0; c < 3; c++) {
            uint32_t h = c ? 1 : (uint32_t)luma[i][0], v = c ? 1 : (uint32_t)luma[i][1];
            uint32_t max_h = (uint32_t)luma[i][0], max_v = (uint32_t)luma[i][1];
            pic.planes[c] = (struct mr_plane_shape){.cols = 4096 * h / max_h,
                                                    .rows = 3072 * v / max_v,
                                                    .stored_cols = 4096 * h / max_h,
                                                    .stripe_rows = v * 8,
                                                    .h_num = h,
                                                    .h_den = max_h,
                                                    .v_num = v,
                                                    .v_den = max_v};
        }
        mr_resizer_init(&r, &o, mr_kernels_pick(MR_SIMD_SCALAR));
        assert_int_equal(mr_resizer_begin(&r, &pic), 0);
        size_t bytes = sizeof(struct mr_jpeg_scan) + sizeof(struct mr_jpeg_header) +
                       MR_JPEG_WINDOW + MR_JPEG_BEYOND + r.blended.cap + r.narrow.cap +
                       r.tap_rows.cap + r.due.cap;
        for (int c = 0; c < 3; c++)
            bytes += r.planes[c].ring.cap + axis_bytes(&r.planes[c].own_across) +
                     axis_bytes(&r.planes[c].own_down);
        mr_resizer_fini(&r);
        assert_true(bytes < 1000000);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(re_encoded_images_are_equal_bit_for_bit),
        cmocka_unit_test(blocks_without_an_end_are_equal_bit_for_bit),
        cmocka_unit_test(files_are_equal_bit_for_bit),
        cmocka_unit_test(pixels_do_not_depend_on_the_decoder),
        cmocka_unit_test(only_plain_files_are_decoded_by_us),
        cmocka_unit_test(every_anomaly_is_decided_by_libjpeg_turbo),
        cmocka_unit_test(nothing_outside_the_file_and_the_slot_is_touched),
        cmocka_unit_test(memory_does_not_grow_with_the_file),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
