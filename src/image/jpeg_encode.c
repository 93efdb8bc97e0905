/* jpeg_encode.c - libjpeg-turbo behind a call that returns errors instead of exiting.
 *
 * libjpeg reports errors by a call that must not return, so a longjmp leads from there to the
 * setjmp in write_checked; nothing between the two owns memory.  Output goes to a buffer that
 * is kept for the next image and doubles when it is full.  Planar pixels are woven into one row
 * of Y Cb Cr triples at a time: the library subsamples them itself, and no colour conversion is
 * paid for.
 *
 * The library keeps the Huffman tables of the last image where it has optimized them, and would
 * use them again for the next one; the standard's tables are therefore put back every time.
 *
 * The integer DCT gives the same coefficients with and without SIMD, which the promise of equal
 * bytes rests on. */
#include "jpeg_encode.h"

#include "buffer.h"
#include "errtext.h"

#include <errno.h>
#include <setjmp.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include <jpeglib.h>
#include <jerror.h>

#define FIRST_ROOM  ((size_t)64 << 10)
#define LONGEST_COM 65533

struct mr_jpeg_encoder {
    struct jpeg_compress_struct c;
    struct jpeg_error_mgr lib_error;
    struct jpeg_destination_mgr dest;
    struct mr_buffer out;
    struct mr_buffer row;     /* one row of triples */
    JHUFF_TBL standard[2][2]; /* [luma, chroma][dc, ac] */
    jmp_buf on_error;
    int made; /* c was created */
};

static void lib_failed(j_common_ptr c)
{
    struct mr_jpeg_encoder *e = c->client_data;
    longjmp(e->on_error, 1);
}

static void lib_says_nothing(j_common_ptr c)
{
    (void)c;
}

static void start_output(j_compress_ptr c)
{
    struct mr_jpeg_encoder *e = c->client_data;
    c->dest->next_output_byte = e->out.data;
    c->dest->free_in_buffer = e->out.cap;
}

static boolean grow_output(j_compress_ptr c)
{
    struct mr_jpeg_encoder *e = c->client_data;
    size_t used = e->out.cap; /* the library asks when the room is used up */
    if (mr_buffer_reserve(&e->out, used * 2))
        ERREXIT1(c, JERR_OUT_OF_MEMORY, 0);
    c->dest->next_output_byte = e->out.data + used;
    c->dest->free_in_buffer = e->out.cap - used;
    return TRUE;
}

static void end_output(j_compress_ptr c)
{
    (void)c;
}

/* Copy the standard's tables out of the library (keep) or back into it. */
static void standard_tables(struct mr_jpeg_encoder *e, int keep)
{
    for (int i = 0; i < 2; i++) {
        JHUFF_TBL *lib[2] = {e->c.dc_huff_tbl_ptrs[i], e->c.ac_huff_tbl_ptrs[i]};
        for (int k = 0; k < 2; k++)
            *(keep ? &e->standard[i][k] : lib[k]) = keep ? *lib[k] : e->standard[i][k];
    }
}

int mr_jpeg_encoder_new(struct mr_jpeg_encoder **out)
{
    struct mr_jpeg_encoder *e = calloc(1, sizeof *e);
    if (!e)
        return -ENOMEM;
    e->c.err = jpeg_std_error(&e->lib_error);
    e->lib_error.error_exit = lib_failed;
    e->lib_error.output_message = lib_says_nothing;
    e->c.client_data = e;
    if (setjmp(e->on_error) || mr_buffer_reserve(&e->out, FIRST_ROOM)) {
        mr_jpeg_encoder_free(e);
        return -ENOMEM;
    }
    jpeg_create_compress(&e->c);
    e->made = 1;
    e->c.input_components = 3;
    e->c.in_color_space = JCS_YCbCr;
    jpeg_set_defaults(&e->c);
    standard_tables(e, 1);
    e->dest.init_destination = start_output;
    e->dest.empty_output_buffer = grow_output;
    e->dest.term_destination = end_output;
    e->c.dest = &e->dest;
    *out = e;
    return 0;
}

void mr_jpeg_encoder_free(struct mr_jpeg_encoder *e)
{
    if (!e)
        return;
    if (e->made)
        jpeg_destroy_compress(&e->c);
    mr_buffer_fini(&e->out);
    mr_buffer_fini(&e->row);
    free(e);
}

static void set_up(struct mr_jpeg_encoder *e, const struct mr_pixels *px,
                   const struct mr_jpeg_opts *o)
{
    struct jpeg_compress_struct *c = &e->c;
    int grey = o->chroma == MR_CHROMA_GREY, ycc = px->layout == MR_PIXELS_YCC;
    c->image_width = px->width;
    c->image_height = px->height;
    c->input_components = grey && ycc ? 1 : 3;
    c->in_color_space = !ycc ? JCS_RGB : grey ? JCS_GRAYSCALE : JCS_YCbCr;
    jpeg_set_defaults(c);
    standard_tables(e, 0);
    jpeg_set_colorspace(c, grey ? JCS_GRAYSCALE : JCS_YCbCr);
    jpeg_set_quality(c, o->quality ? (int)o->quality : 75, TRUE);
    c->dct_method = JDCT_ISLOW;
    c->optimize_coding = o->optimize != 0;
    c->restart_interval = o->restart_interval;
    c->comp_info[0].h_samp_factor =
        o->chroma == MR_CHROMA_420 || o->chroma == MR_CHROMA_422 ? 2 : 1;
    c->comp_info[0].v_samp_factor = o->chroma == MR_CHROMA_420 ? 2 : 1;
    if (o->progressive)
        jpeg_simple_progression(c);
}

static void write_comment(j_compress_ptr c, const struct mr_jpeg_opts *o)
{
    const uint8_t *at = o->comment;
    for (size_t left = o->comment_bytes, n; left; left -= n, at += n) {
        n = left < LONGEST_COM ? left : LONGEST_COM;
        jpeg_write_marker(c, JPEG_COM, at, (unsigned)n);
    }
}

/* Row y as the library wants it: in place, or woven from three planes. */
static const uint8_t *input_row(struct mr_jpeg_encoder *e, const struct mr_pixels *px, size_t y)
{
    size_t at = y * px->stride_bytes;
    if (px->layout == MR_PIXELS_RGB || e->c.input_components == 1)
        return px->plane[0] + at;
    const uint8_t *y_row = px->plane[0] + at, *cb = px->plane[1] + at, *cr = px->plane[2] + at;
    uint8_t *row = e->row.data;
    for (unsigned x = 0; x < px->width; x++) {
        row[3 * x] = y_row[x];
        row[3 * x + 1] = cb[x];
        row[3 * x + 2] = cr[x];
    }
    return row;
}

static void write_all(struct mr_jpeg_encoder *e, const struct mr_pixels *px,
                      const struct mr_jpeg_opts *o)
{
    set_up(e, px, o);
    jpeg_start_compress(&e->c, TRUE);
    write_comment(&e->c, o);
    for (unsigned y = 0; y < px->height; y++) {
        JSAMPROW row = (JSAMPROW)input_row(e, px, y);
        jpeg_write_scanlines(&e->c, &row, 1);
    }
    jpeg_finish_compress(&e->c);
}

static int refuse(struct mr_jpeg_encoder *e, struct mr_error *err)
{
    char text[JMSG_LENGTH_MAX];
    int code = e->lib_error.msg_code == JERR_OUT_OF_MEMORY ? -ENOMEM : -EINVAL;
    e->lib_error.format_message((j_common_ptr)&e->c, text);
    jpeg_abort_compress(&e->c);
    return mr_fail(err, code, "JPEG encoder: %s", text);
}

/* Where the library's errors land.  Nothing here changes between setjmp and longjmp. */
static int write_checked(struct mr_jpeg_encoder *e, const struct mr_pixels *px,
                         const struct mr_jpeg_opts *o, struct mr_error *err)
{
    if (setjmp(e->on_error))
        return refuse(e, err);
    write_all(e, px, o);
    return 0;
}

int mr_jpeg_encode(struct mr_jpeg_encoder *e, const struct mr_pixels *pixels,
                   const struct mr_jpeg_opts *opts, const uint8_t **bytes, size_t *n_bytes,
                   struct mr_error *err)
{
    static const struct mr_jpeg_opts defaults;
    const struct mr_jpeg_opts *o = opts ? opts : &defaults;
    if (o->quality > 100 || (unsigned)o->chroma > MR_CHROMA_GREY || o->restart_interval > 65535)
        return mr_fail(err, -EINVAL, "JPEG encoder: quality, chroma or restart interval");
    if (mr_buffer_reserve(&e->row, 3 * (size_t)pixels->width))
        return mr_fail(err, -ENOMEM, "JPEG encoder: no memory");
    int r = write_checked(e, pixels, o, err);
    if (r)
        return r;
    *bytes = e->out.data;
    *n_bytes = e->out.cap - e->dest.free_in_buffer;
    return 0;
}
