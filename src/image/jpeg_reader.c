/* jpeg_reader.c - JPEG files to planes (or RGB rows) through libjpeg-turbo.
 *
 * Two ways through the library:
 *
 * planes   Grey, YCbCr and RGB files: libjpeg hands out the planes as they come from the inverse
 *          transform ("raw data"), one row of MCUs at a time, written straight into the resizer's
 *          rings.  It neither upsamples chroma nor converts colour.
 * rows     `exact`, and CMYK: libjpeg makes full-size rows.
 *
 * libjpeg refuses to skip or crop raw data, but it asks before each inverse transform whether the
 * component is needed.  Clearing component_needed for the rows that the output does not use skips
 * their transforms; they are entropy-decoded, to the last, so that whether a file is damaged does
 * not depend on the part of it that is shown.  For random crops this is
 * faster than jpeg_skip_scanlines and jpeg_crop_scanline, which would also skip the transforms left
 * and right of the crop but make us take interleaved, upsampled, converted rows (docs/image.md).
 *
 * Errors leave libjpeg by longjmp to the one setjmp in guarded(); nothing between holds memory of
 * its own.  Warnings that mean lost pixels are errors, unless accept_truncated.
 *
 * A decompress object is used again for the next image, with whatever quantisation and Huffman
 * tables the last one left.  A file without tables of its own must not see those: reset_tables()
 * puts back the standard Huffman tables, which libjpeg assumes when there are none, and zeros as
 * quantisers, which check_quantisers() refuses.  So an image decodes the same whatever came before.
 *
 * Bounds: pixels by max_pixels; scans of a progressive file by MAX_SCANS and by the work that they
 * would mean; memory by pixels (two bytes a sample when there is more than one scan). */
#include "jpeg_reader.h"

#include "errtext.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#define MAX_SCANS     100 /* encoders write about ten */
#define MAX_SCAN_WORK 32  /* times max_pixels */
#define MAX_STRIPE    (MAX_SAMP_FACTOR * DCTSIZE)
#define N_STD_TABLES  2

struct mr_jpeg {
    struct jpeg_decompress_struct lib;
    struct jpeg_error_mgr errors;
    struct jpeg_source_mgr source;
    struct jpeg_progress_mgr progress;
    jmp_buf escape;
    int code; /* of the last escape */

    const struct mr_frame *frame;
    int tolerant; /* of missing and damaged data */
    struct mr_image_info *info;
    struct jpeg_compress_struct *compressor; /* while the standard tables are copied from it */
    JHUFF_TBL std_dc[N_STD_TABLES], std_ac[N_STD_TABLES];
    struct mr_buffer rows; /* a row of CMYK, and of RGB */
};

/* ---- what libjpeg calls ---- */

static struct mr_jpeg *self_of(j_common_ptr lib)
{
    return lib->client_data;
}

/* Leave libjpeg with `code`. */
static void escape(struct mr_jpeg *j, int code)
{
    j->code = code;
    longjmp(j->escape, 1);
}

static int code_of(int message)
{
    switch (message) {
    case JERR_OUT_OF_MEMORY:
    case JERR_NO_BACKING_STORE:
        return -ENOMEM;
    case JERR_IMAGE_TOO_BIG:
    case JERR_WIDTH_OVERFLOW:
        return -EFBIG;
    case JERR_INPUT_EMPTY:
    case JERR_INPUT_EOF:
    case JWRN_JPEG_EOF:
        return -ENODATA;
    case JERR_ARITH_NOTIMPL:
    case JERR_BAD_PRECISION:
    case JERR_CCIR601_NOTIMPL:
    case JERR_COMPONENT_COUNT:
    case JERR_CONVERSION_NOTIMPL:
    case JERR_FRACT_SAMPLE_NOTIMPL:
    case JERR_NOTIMPL:
    case JERR_NOT_COMPILED:
    case JERR_SOF_UNSUPPORTED:
        return -ENOTSUP;
    default:
        return -EBADMSG;
    }
}

static void fail_with_message(j_common_ptr lib)
{
    struct mr_jpeg *j = self_of(lib);
    char text[JMSG_LENGTH_MAX];
    j->errors.format_message(lib, text);
    escape(j, mr_fail(j->frame->error, code_of(j->errors.msg_code), "JPEG: %s", text));
}

/* Warnings about what lies around the image data leave the pixels whole. */
static int is_harmless(int message)
{
    return message == JWRN_EXTRANEOUS_DATA || message == JWRN_ADOBE_XFORM ||
           message == JWRN_JFIF_MAJOR;
}

static void hear_message(j_common_ptr lib, int level)
{
    struct mr_jpeg *j = self_of(lib);
    if (level < 0 && !j->tolerant && !is_harmless(j->errors.msg_code))
        fail_with_message(lib);
}

static void print_nothing(j_common_ptr lib)
{
}

static void source_nothing(j_decompress_ptr lib)
{
}

/* The bytes are used up: an end marker, as often as libjpeg asks. */
static boolean source_refill(j_decompress_ptr lib)
{
    static const JOCTET end[] = {0xff, JPEG_EOI};
    struct mr_jpeg *j = lib->client_data;
    if (!j->tolerant) {
        lib->err->msg_code = JWRN_JPEG_EOF;
        fail_with_message((j_common_ptr)lib);
    }
    j->source.next_input_byte = end;
    j->source.bytes_in_buffer = sizeof end;
    return TRUE;
}

static void source_skip(j_decompress_ptr lib, long n)
{
    struct mr_jpeg *j = lib->client_data;
    if (n <= 0)
        return;
    if ((size_t)n > j->source.bytes_in_buffer) {
        source_refill(lib);
        return;
    }
    j->source.next_input_byte += n;
    j->source.bytes_in_buffer -= (size_t)n;
}

/* Called for every row of MCUs while the scans of a file are read. */
static void limit_scans(j_common_ptr common)
{
    struct mr_jpeg *j = self_of(common);
    uint64_t n = (uint64_t)j->lib.input_scan_number;
    uint64_t work = n * j->lib.image_width * j->lib.image_height;
    if (n > MAX_SCANS || work > j->frame->opts->max_pixels * MAX_SCAN_WORK)
        escape(j, mr_fail(j->frame->error, -EBADMSG, "JPEG: too many scans"));
}

/* ---- a clean state for every image ---- */

static void reset_tables(struct mr_jpeg *j)
{
    for (int i = 0; i < NUM_HUFF_TBLS; i++) {
        if (i < N_STD_TABLES) {
            *j->lib.dc_huff_tbl_ptrs[i] = j->std_dc[i];
            *j->lib.ac_huff_tbl_ptrs[i] = j->std_ac[i];
        } else {
            memset(j->lib.dc_huff_tbl_ptrs[i], 0, sizeof(JHUFF_TBL));
            memset(j->lib.ac_huff_tbl_ptrs[i], 0, sizeof(JHUFF_TBL));
        }
    }
    for (int i = 0; i < NUM_QUANT_TBLS; i++)
        memset(j->lib.quant_tbl_ptrs[i], 0, sizeof(JQUANT_TBL));
}

/* A quantiser of zero is not one: the table was never sent.  Without any, the component had no
 * scan.
 */
static void check_quantisers(struct mr_jpeg *j)
{
    for (int i = 0; i < j->lib.num_components; i++) {
        const jpeg_component_info *c = &j->lib.comp_info[i];
        if (!c->quant_table && !j->tolerant)
            escape(j, mr_fail(j->frame->error, -EBADMSG, "JPEG: no data for component %d", i));
        if (c->quant_table && !c->quant_table->quantval[0])
            escape(j, mr_fail(j->frame->error, -EBADMSG, "JPEG: no quantisation table %d",
                              c->quant_tbl_no));
    }
}

static void read_header(struct mr_jpeg *j)
{
    reset_tables(j);
    j->source.next_input_byte = j->frame->bytes;
    j->source.bytes_in_buffer = j->frame->len;
    jpeg_read_header(&j->lib, TRUE);
}

static void start(struct mr_jpeg *j)
{
    jpeg_start_decompress(&j->lib);
    check_quantisers(j);
}

/* ---- planes ---- */

static uint32_t dct_size(const jpeg_component_info *c)
{
#if JPEG_LIB_VERSION >= 70
    return (uint32_t)c->DCT_h_scaled_size;
#else
    return (uint32_t)c->DCT_scaled_size;
#endif
}

static uint32_t min_dct_size(const struct mr_jpeg *j)
{
#if JPEG_LIB_VERSION >= 70
    return (uint32_t)j->lib.min_DCT_h_scaled_size;
#else
    return (uint32_t)j->lib.min_DCT_scaled_size;
#endif
}

static void describe_planes(const struct mr_jpeg *j, struct mr_picture *pic)
{
    uint32_t max_h = (uint32_t)j->lib.max_h_samp_factor, max_v = (uint32_t)j->lib.max_v_samp_factor;
    uint32_t n_mcus = (j->lib.image_width + max_h * DCTSIZE - 1) / (max_h * DCTSIZE);
    for (int i = 0; i < j->lib.num_components; i++) {
        const jpeg_component_info *c = &j->lib.comp_info[i];
        struct mr_plane_shape *s = &pic->planes[i];
        *s = (struct mr_plane_shape){
            .cols = c->downsampled_width,
            .rows = c->downsampled_height,
            .h_num = (uint32_t)c->h_samp_factor * dct_size(c),
            .h_den = max_h * min_dct_size(j),
            .v_num = (uint32_t)c->v_samp_factor * dct_size(c),
            .v_den = max_v * min_dct_size(j),
        };
        s->stored_cols = n_mcus * s->h_num;
        s->stripe_rows = s->v_num;
        s->upsampling = min_dct_size(j) > 1 ? mr_jpeg_upsampling(s) : MR_UPSAMPLE_REPEAT;
    }
    pic->width = j->lib.output_width;
    pic->height = j->lib.output_height;
    pic->shrink = j->lib.scale_denom;
}

/* Whether every plane would still be fine enough. */
static int is_enough(struct mr_jpeg *j, const struct mr_region *g)
{
    const uint32_t pixels[2] = {j->lib.image_width, j->lib.image_height};
    jpeg_calc_output_dimensions(&j->lib);
    for (int i = 0; i < j->lib.num_components; i++) {
        const jpeg_component_info *c = &j->lib.comp_info[i];
        const uint32_t samples[2] = {c->downsampled_width, c->downsampled_height};
        if (!mr_frame_has_twice(j->frame, g, samples, pixels))
            return 0;
    }
    return 1;
}

/* Have the inverse transform shrink the image as far as that loses little.  Where chroma is halved
 * in both directions libjpeg shrinks it one step less, so it does not stand in the way. */
static void choose_scale(struct mr_jpeg *j, const struct mr_region *g)
{
    const struct mr_decoder_opts *o = j->frame->opts;
    j->lib.scale_num = 1;
    j->lib.scale_denom = 1;
    if (o->resize != MR_RESIZE_AREA || o->exact)
        return;
    for (j->lib.scale_denom = 8; j->lib.scale_denom > 1; j->lib.scale_denom /= 2)
        if (is_enough(j, g))
            return;
}

static void need_components(struct mr_jpeg *j, int needed)
{
    for (int i = 0; i < j->lib.num_components; i++)
        j->lib.comp_info[i].component_needed = needed ? TRUE : FALSE;
}

/* Whether there are more rows to read: for the output, or to see that they are sound.  A file of
 * several scans was read to its end before its first row came out. */
static int is_wanted(struct mr_jpeg *j)
{
    return j->lib.output_scanline < j->lib.output_height &&
           (!mr_resizer_done(j->frame->resizer) || !jpeg_has_multiple_scans(&j->lib));
}

static void read_stripe(struct mr_jpeg *j, uint32_t stripe)
{
    JSAMPROW rows[3][MAX_STRIPE];
    JSAMPARRAY planes[3] = {rows[0], rows[1], rows[2]};
    struct mr_resizer *r = j->frame->resizer;
    for (unsigned i = 0; i < r->n_planes; i++) {
        uint32_t n = r->planes[i].shape.stripe_rows;
        for (uint32_t k = 0; k < n; k++)
            rows[i][k] = mr_resizer_row(r, i, stripe * n + k);
    }
    need_components(j, mr_resizer_wants_stripe(r));
    if (!jpeg_read_raw_data(&j->lib, planes, MAX_STRIPE))
        escape(j, mr_fail(j->frame->error, -EBADMSG, "JPEG: no data"));
}

static void run_planes(struct mr_jpeg *j, const struct mr_region *region)
{
    struct mr_picture pic = {.region = *region, .slot = j->frame->slot};
    if (j->lib.num_components == 1)
        pic.colour = MR_COLOUR_GREY;
    else
        pic.colour = j->lib.jpeg_color_space == JCS_RGB ? MR_COLOUR_RGB : MR_COLOUR_YCC;
    choose_scale(j, region);
    j->lib.raw_data_out = TRUE;
    j->lib.out_color_space = j->lib.jpeg_color_space;
    start(j);
    describe_planes(j, &pic);
    int r = mr_resizer_begin(j->frame->resizer, &pic);
    if (r)
        escape(j, mr_fail(j->frame->error, r, "no memory for the planes"));
    for (uint32_t i = 0; is_wanted(j); i++) {
        read_stripe(j, i);
        mr_resizer_advance(j->frame->resizer);
    }
}

/* ---- rows ---- */

/* Adobe's programs store CMYK inverted, and nobody else stores it at all. */
static void cmyk_to_rgb(const struct mr_jpeg *j, const uint8_t *cmyk, uint8_t *rgb)
{
    int flip = j->lib.saw_Adobe_marker ? 0 : 255;
    for (uint32_t x = 0; x < j->lib.output_width; x++) {
        int k = cmyk[4 * x + 3] ^ flip;
        for (int c = 0; c < 3; c++)
            rgb[3 * x + c] = (uint8_t)((cmyk[4 * x + c] ^ flip) * k / 255);
    }
}

static void run_rows(struct mr_jpeg *j, const struct mr_region *region)
{
    const struct mr_frame *f = j->frame;
    int is_cmyk = j->lib.num_components == 4;
    j->lib.out_color_space = is_cmyk ? JCS_CMYK : JCS_RGB;
    start(j);
    uint32_t width = j->lib.output_width, height = j->lib.output_height;
    int r = mr_frame_begin_rows(f, width, height, region);
    if (!r && (r = mr_buffer_reserve(&j->rows, (size_t)width * 7)))
        mr_fail(f->error, r, "no memory for a row");
    if (r)
        escape(j, r);
    uint8_t *rgb = j->rows.data, *cmyk = rgb + (size_t)width * 3;
    for (uint32_t y = 0; is_wanted(j); y++) {
        JSAMPROW row = is_cmyk ? cmyk : rgb;
        if (!jpeg_read_scanlines(&j->lib, &row, 1))
            escape(j, mr_fail(f->error, -EBADMSG, "JPEG: no data"));
        if (is_cmyk)
            cmyk_to_rgb(j, cmyk, rgb);
        mr_frame_put_row(f, y, rgb);
    }
}

/* ---- outside ---- */

static void run_image(struct mr_jpeg *j)
{
    struct mr_region region;
    read_header(j);
    int r = mr_frame_region(j->frame, j->lib.image_width, j->lib.image_height, &region);
    if (r)
        escape(j, r);
    int n = j->lib.num_components;
    if (n == 4 || (n == 3 && j->frame->opts->exact))
        run_rows(j, &region);
    else if (n == 1 || n == 3)
        run_planes(j, &region);
    else
        escape(j, mr_fail(j->frame->error, -ENOTSUP, "JPEG: %d colour components", n));
}

/* Digital video's names for how chroma is halved. */
static void name_sampling(const struct mr_jpeg *j, char out[8])
{
    static const struct {
        int h, v;
        const char *name;
    } names[] = {{1, 1, "4:4:4"}, {2, 1, "4:2:2"}, {2, 2, "4:2:0"},
                 {1, 2, "4:4:0"}, {4, 1, "4:1:1"}, {4, 2, "4:1:0"}};
    const jpeg_component_info *c = j->lib.comp_info;
    int same = c[1].h_samp_factor == c[2].h_samp_factor && c[1].v_samp_factor == c[2].v_samp_factor;
    strcpy(out, "other");
    for (size_t i = 0; same && i < sizeof names / sizeof names[0]; i++)
        if (c[0].h_samp_factor == names[i].h * c[1].h_samp_factor &&
            c[0].v_samp_factor == names[i].v * c[1].v_samp_factor)
            strcpy(out, names[i].name);
}

static void probe_image(struct mr_jpeg *j)
{
    read_header(j);
    *j->info = (struct mr_image_info){
        .format = MR_IMAGE_JPEG,
        .width = j->lib.image_width,
        .height = j->lib.image_height,
        .components = (unsigned)j->lib.num_components,
        .bits = (unsigned)j->lib.data_precision,
        .progressive = j->lib.progressive_mode ? 1 : 0,
    };
    if (j->lib.num_components == 3)
        name_sampling(j, j->info->sampling);
}

/* Run `body`, which may escape. */
static int guarded(struct mr_jpeg *j, void (*body)(struct mr_jpeg *))
{
    if (setjmp(j->escape))
        return j->code;
    body(j);
    return 0;
}

int mr_jpeg_run(struct mr_jpeg *j, const struct mr_frame *f)
{
    j->frame = f;
    j->tolerant = f->opts->accept_truncated;
    int r = guarded(j, run_image);
    jpeg_abort_decompress(&j->lib);
    j->frame = NULL;
    return r;
}

int mr_jpeg_probe(struct mr_jpeg *j, const struct mr_frame *f, struct mr_image_info *out)
{
    struct mr_image_info info;
    j->frame = f;
    j->info = &info;
    j->tolerant = f->opts->accept_truncated;
    int r = guarded(j, probe_image);
    jpeg_abort_decompress(&j->lib);
    j->frame = NULL;
    j->info = NULL;
    if (!r)
        *out = info;
    return r;
}

/* The standard tables are part of libjpeg, but only its compressor hands them out. */
static void copy_std_tables(struct mr_jpeg *j)
{
    struct jpeg_compress_struct *c = j->compressor;
    jpeg_create_compress(c);
    c->in_color_space = JCS_RGB;
    c->input_components = 3;
    jpeg_set_defaults(c);
    for (int i = 0; i < N_STD_TABLES; i++) {
        j->std_dc[i] = *c->dc_huff_tbl_ptrs[i];
        j->std_ac[i] = *c->ac_huff_tbl_ptrs[i];
    }
}

static void build(struct mr_jpeg *j)
{
    copy_std_tables(j);
    j->lib.client_data = j;
    jpeg_create_decompress(&j->lib);
    j->lib.src = &j->source;
    j->lib.progress = &j->progress;
    for (int i = 0; i < NUM_HUFF_TBLS; i++) {
        j->lib.dc_huff_tbl_ptrs[i] = jpeg_alloc_huff_table((j_common_ptr)&j->lib);
        j->lib.ac_huff_tbl_ptrs[i] = jpeg_alloc_huff_table((j_common_ptr)&j->lib);
    }
    for (int i = 0; i < NUM_QUANT_TBLS; i++)
        j->lib.quant_tbl_ptrs[i] = jpeg_alloc_quant_table((j_common_ptr)&j->lib);
}

int mr_jpeg_new(struct mr_jpeg **out)
{
    static const struct mr_frame nothing;
    struct mr_jpeg *j = calloc(1, sizeof *j);
    if (!j)
        return -ENOMEM;
    j->lib.err = jpeg_std_error(&j->errors);
    j->errors.error_exit = fail_with_message;
    j->errors.emit_message = hear_message;
    j->errors.output_message = print_nothing;
    j->progress.progress_monitor = limit_scans;
    j->source = (struct jpeg_source_mgr){.init_source = source_nothing,
                                         .fill_input_buffer = source_refill,
                                         .skip_input_data = source_skip,
                                         .resync_to_restart = jpeg_resync_to_restart,
                                         .term_source = source_nothing};
    struct jpeg_compress_struct c = {.err = &j->errors, .client_data = j};
    j->frame = &nothing;
    j->compressor = &c;
    int r = guarded(j, build);
    jpeg_destroy_compress(&c);
    j->compressor = NULL;
    if (r) {
        mr_jpeg_free(j);
        return r;
    }
    *out = j;
    return 0;
}

void mr_jpeg_free(struct mr_jpeg *j)
{
    if (!j)
        return;
    jpeg_destroy_decompress(&j->lib);
    mr_buffer_fini(&j->rows);
    free(j);
}
