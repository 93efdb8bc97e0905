/* plane_resizer.c - resize planes as their rows arrive, convert colour at the output size.
 *
 * Chroma planes stay at their own, often smaller, size until the end: blending is linear, so it
 * commutes with the colour conversion but for rounding, and there are fewer output pixels than
 * input pixels.
 *
 *     stripe of rows -> ring of each plane            8 bits, arrives from the decoder
 *     rows of the ring -> one row, all columns        blend_rows     \
 *     that row -> one row of output columns           blend_columns   | for each output row,
 *     three such rows -> red, green, blue             ycc_to_rgb      | while all is in L1 and L2
 *     -> slot                                         store_*        /
 *
 * A ring holds no more rows than the axis needs between the arrival of a row and its last use.  All
 * planes advance together, by one stripe each; an output row is made as soon as all its rows are
 * there.  Invariant: rows start[next] .. n_stripes * stripe_rows - 1 of each plane are in its ring.
 *
 * Each output row costs the width of the picture that way.  That is in proportion to the picture
 * unless it is much wider and much lower than the output: a picture of 65,535 x 1 would be blended
 * 224 times.  Where that exceeds MR_RESIZER_MOST_WORK, columns are blended first, once for each
 * row that arrives, and then rows at the output's width, which is in proportion to the output.
 * Only rounding differs.
 *
 * Memory past the samples of a row is read by the kernels (with weight 0), never undefined: it
 * comes from the system as zeros. */
#include "plane_resizer.h"

#include "clock.h"

#include <errno.h>
#include <string.h>

void mr_resizer_init(struct mr_resizer *r, const struct mr_decoder_opts *opts,
                     const struct mr_kernels *kernels)
{
    *r = (struct mr_resizer){.opts = *opts, .kernels = kernels};
    int nchw = opts->layout == MR_IMAGE_NCHW;
    if (opts->dtype == MR_DT_F32)
        r->store = nchw ? kernels->store_f32_nchw : kernels->store_f32_nhwc;
    else
        r->store = nchw ? kernels->store_u8_nchw : kernels->store_u8_nhwc;
    r->out.n = opts->width;
    for (int c = 0; c < 3; c++) {
        double std = opts->std[c] != 0 ? opts->std[c] : 1;
        r->out.scale[c] = (float)(1.0 / MR_VALUE_MAX / std);
        r->out.bias[c] = (float)(-opts->mean[c] / std);
    }
}

void mr_resizer_fini(struct mr_resizer *r)
{
    for (int i = 0; i < 3; i++) {
        mr_axis_fini(&r->planes[i].own_across);
        mr_axis_fini(&r->planes[i].own_down);
        mr_buffer_fini(&r->planes[i].ring);
        mr_buffer_fini(&r->planes[i].narrow_ring);
    }
    mr_buffer_fini(&r->due);
    mr_buffer_fini(&r->blended);
    mr_buffer_fini(&r->narrow);
    mr_buffer_fini(&r->tap_rows);
}

static uint32_t upsampling_of(uint32_t wanted, uint32_t num, uint32_t den)
{
    return 2 * num == den ? wanted : MR_UPSAMPLE_REPEAT;
}

static int build_axes(struct mr_resizer *r, struct mr_resizer_plane *p,
                      const struct mr_picture *pic)
{
    const struct mr_plane_shape *s = &p->shape;
    struct mr_axis_spec across = {.n_out = r->opts.width,
                                  .begin = pic->region.x,
                                  .length = pic->region.width,
                                  .shrink = pic->shrink,
                                  .n_pixels = pic->width,
                                  .n_samples = s->cols,
                                  .num = s->h_num,
                                  .den = s->h_den,
                                  .upsampling = upsampling_of(s->upsampling, s->h_num, s->h_den),
                                  .resize = r->opts.resize,
                                  .flip = (uint32_t)pic->region.flip,
                                  .lanes = MR_AXIS_LANES};
    struct mr_axis_spec down = {.n_out = r->opts.height,
                                .begin = pic->region.y,
                                .length = pic->region.height,
                                .shrink = pic->shrink,
                                .n_pixels = pic->height,
                                .n_samples = s->rows,
                                .num = s->v_num,
                                .den = s->v_den,
                                .upsampling = upsampling_of(s->upsampling, s->v_num, s->v_den),
                                .resize = r->opts.resize,
                                .lanes = 1};
    p->across = &p->own_across;
    p->down = &p->own_down;
    int ret = mr_axis_build(p->across, &across);
    return ret ? ret : mr_axis_build(p->down, &down);
}

/* Give every plane its axes; planes of one shape share them. */
static int prepare_axes(struct mr_resizer *r, const struct mr_picture *pic)
{
    for (unsigned i = 0; i < r->n_planes; i++) {
        struct mr_resizer_plane *p = &r->planes[i], *before = NULL;
        p->shape = pic->planes[i];
        for (unsigned k = 0; k < i && !before; k++)
            if (!memcmp(&r->planes[k].shape, &p->shape, sizeof p->shape))
                before = &r->planes[k];
        if (before) {
            p->across = before->across;
            p->down = before->down;
            continue;
        }
        int ret = build_axes(r, p, pic);
        if (ret)
            return ret;
    }
    return 0;
}

/* Stripes that must have arrived before output row y can be made. */
static uint32_t stripes_for(const struct mr_resizer *r, uint32_t y)
{
    uint32_t most = 0;
    for (unsigned i = 0; i < r->n_planes; i++) {
        const struct mr_resizer_plane *p = &r->planes[i];
        uint32_t rows = p->down->start[y] + p->down->n_taps[y];
        uint32_t n = (rows + p->shape.stripe_rows - 1) / p->shape.stripe_rows;
        most = n > most ? n : most;
    }
    return most;
}

/* When each output row is due, and how many rows the rings must hold until then. */
static void schedule(struct mr_resizer *r)
{
    uint32_t *due = (uint32_t *)r->due.data;
    for (unsigned i = 0; i < r->n_planes; i++)
        r->planes[i].n_ring = r->planes[i].shape.stripe_rows;
    for (uint32_t y = 0; y < r->opts.height; y++) {
        uint32_t stripes = due[y] = stripes_for(r, y);
        for (unsigned i = 0; i < r->n_planes; i++) {
            struct mr_resizer_plane *p = &r->planes[i];
            uint32_t held = stripes * p->shape.stripe_rows - p->down->start[y];
            p->n_ring = held > p->n_ring ? held : p->n_ring;
        }
    }
    /* Whole stripes, so that the rows of one lie side by side. */
    for (unsigned i = 0; i < r->n_planes; i++) {
        uint32_t n = r->planes[i].shape.stripe_rows;
        r->planes[i].n_ring = (r->planes[i].n_ring + n - 1) / n * n;
    }
}

/* From one row of values to the next. */
static size_t values_stride(const struct mr_resizer *r)
{
    return ((size_t)r->opts.width / MR_ROW_ALIGN + 1) * MR_ROW_ALIGN;
}

/* Decide in which order a plane is blended, by counting the multiplications of the usual one. */
static void choose_order(const struct mr_resizer *r, struct mr_resizer_plane *p)
{
    const struct mr_axis *down = p->down, *across = p->across;
    uint64_t cols = across->end - across->first, rows = down->end - down->first, n_taps = 0;
    uint64_t width = (r->opts.width + MR_AXIS_LANES - 1) / MR_AXIS_LANES * MR_AXIS_LANES;
    for (uint32_t y = 0; y < r->opts.height; y++)
        n_taps += (down->n_taps[y] + 1) / 2 * 2;
    uint64_t work = n_taps * cols + r->opts.height * width * across->n_pairs * 2;
    p->columns_first = work > MR_RESIZER_MOST_WORK * (rows * cols + r->opts.height * width);
}

static int reserve_memory(struct mr_resizer *r)
{
    size_t widest = 0, most_taps = 0;
    int ret = 0;
    for (unsigned i = 0; i < r->n_planes && !ret; i++) {
        struct mr_resizer_plane *p = &r->planes[i];
        p->stride = ((size_t)p->shape.stored_cols / MR_ROW_ALIGN + 2) * MR_ROW_ALIGN;
        widest = p->stride > widest ? p->stride : widest;
        most_taps = 2 * p->down->n_pairs > most_taps ? 2 * p->down->n_pairs : most_taps;
        ret = mr_buffer_reserve(&p->ring, p->n_ring * p->stride);
        choose_order(r, p);
        if (!ret && p->columns_first)
            ret =
                mr_buffer_reserve(&p->narrow_ring, p->n_ring * values_stride(r) * sizeof(int16_t));
    }
    if (!ret)
        ret = mr_buffer_reserve(&r->blended, (widest + 2 * MR_ROW_ALIGN) * sizeof(int16_t));
    if (!ret)
        ret = mr_buffer_reserve(&r->narrow, 3 * values_stride(r) * sizeof(int16_t));
    if (!ret)
        ret = mr_buffer_reserve(&r->tap_rows, most_taps * sizeof(uint8_t *));
    return ret;
}

int mr_resizer_begin(struct mr_resizer *r, const struct mr_picture *pic)
{
    r->colour = pic->colour;
    r->n_planes = pic->colour == MR_COLOUR_GREY ? 1 : 3;
    r->slot = pic->slot;
    r->n_stripes = 0;
    r->next = 0;
    r->spent_ns = 0;
    int ret = prepare_axes(r, pic);
    if (ret)
        return ret;
    ret = mr_buffer_reserve(&r->due, r->opts.height * sizeof(uint32_t));
    if (ret)
        return ret;
    schedule(r);
    size_t row_bytes = (size_t)r->opts.width * 4 * (r->opts.layout == MR_IMAGE_NCHW ? 1 : 3);
    r->out.stream = (uintptr_t)pic->slot % 64 == 0 && row_bytes % 64 == 0;
    return reserve_memory(r);
}

uint8_t *mr_resizer_row(struct mr_resizer *r, unsigned plane, uint32_t row)
{
    struct mr_resizer_plane *p = &r->planes[plane];
    return p->ring.data + row % p->n_ring * p->stride;
}

int mr_resizer_wants_stripe(const struct mr_resizer *r)
{
    if (mr_resizer_done(r))
        return 0;
    for (unsigned i = 0; i < r->n_planes; i++) {
        const struct mr_resizer_plane *p = &r->planes[i];
        if (p->down->start[r->next] < (r->n_stripes + 1) * p->shape.stripe_rows)
            return 1;
    }
    return 0;
}

static int16_t *narrow_row(const struct mr_resizer *r, const struct mr_resizer_plane *p,
                           uint32_t row)
{
    return (int16_t *)p->narrow_ring.data + row % p->n_ring * values_stride(r);
}

/* Blend the columns of those rows of the stripe that has arrived which are still needed. */
static void narrow_stripe(struct mr_resizer *r, unsigned plane)
{
    static const int16_t copy[2] = {MR_WEIGHT_ONE, 0};
    uint64_t begin_ns = mr_clock_ns();
    struct mr_resizer_plane *p = &r->planes[plane];
    uint32_t first = r->n_stripes * p->shape.stripe_rows, end = first + p->shape.stripe_rows;
    first = first > p->down->start[r->next] ? first : p->down->start[r->next];
    end = end < p->down->end ? end : p->down->end;
    for (uint32_t row = first; row < end; row++) {
        const uint8_t *at = mr_resizer_row(r, plane, row), *rows[2] = {at, at};
        int16_t *blended = (int16_t *)r->blended.data;
        r->kernels->blend_rows(rows, copy, 1, p->across->first, p->across->end, blended);
        r->kernels->blend_columns(blended, p->across, narrow_row(r, p, row));
    }
    r->spent_ns += mr_clock_ns() - begin_ns;
}

/* One plane's share of output row y, of rows that are as wide as the output. */
static int16_t *blend_narrow(struct mr_resizer *r, unsigned plane, uint32_t y)
{
    struct mr_resizer_plane *p = &r->planes[plane];
    const struct mr_axis *down = p->down;
    const int16_t **rows = (const int16_t **)r->tap_rows.data;
    for (uint32_t t = 0; t < down->n_taps[y]; t++)
        rows[t] = narrow_row(r, p, down->start[y] + t);
    int16_t *out = (int16_t *)r->narrow.data + plane * values_stride(r);
    r->kernels->blend_values(rows, down->weights + (size_t)y * down->n_pairs * 2, down->n_taps[y],
                             r->opts.width, out);
    return out;
}

/* One plane's share of output row y, in r->narrow. */
static int16_t *blend_plane(struct mr_resizer *r, unsigned plane, uint32_t y)
{
    struct mr_resizer_plane *p = &r->planes[plane];
    if (p->columns_first)
        return blend_narrow(r, plane, y);
    const struct mr_axis *down = p->down, *across = p->across;
    const uint8_t **rows = (const uint8_t **)r->tap_rows.data;
    uint32_t n_pairs = (down->n_taps[y] + 1) / 2, last = down->start[y] + down->n_taps[y] - 1;
    for (uint32_t t = 0; t < 2 * n_pairs; t++) {
        uint32_t row = down->start[y] + t;
        rows[t] = mr_resizer_row(r, plane, row < last ? row : last);
    }
    int16_t *blended = (int16_t *)r->blended.data;
    const int16_t *weights = down->weights + (size_t)y * down->n_pairs * 2;
    r->kernels->blend_rows(rows, weights, n_pairs, across->first, across->end, blended);
    int16_t *out = (int16_t *)r->narrow.data + plane * values_stride(r);
    r->kernels->blend_columns(blended, across, out);
    return out;
}

static void make_row(struct mr_resizer *r, uint32_t y)
{
    int16_t *v[3];
    for (unsigned i = 0; i < r->n_planes; i++)
        v[i] = blend_plane(r, i, y);
    if (r->colour == MR_COLOUR_GREY)
        v[1] = v[2] = v[0];
    else if (r->colour == MR_COLOUR_YCC)
        r->kernels->ycc_to_rgb(v[0], v[1], v[2], r->opts.width);

    size_t value = mr_dtype_size(r->opts.dtype);
    size_t row = r->opts.width * value, plane = row * r->opts.height;
    if (r->opts.layout == MR_IMAGE_NCHW)
        for (unsigned c = 0; c < 3; c++)
            r->out.at[c] = r->slot + c * plane + y * row;
    else
        r->out.at[0] = r->slot + y * row * 3;
    r->store((const int16_t *const *)v, &r->out);
}

void mr_resizer_advance(struct mr_resizer *r)
{
    const uint32_t *due = (const uint32_t *)r->due.data;
    if (mr_resizer_done(r))
        return;
    for (unsigned i = 0; i < r->n_planes; i++)
        if (r->planes[i].columns_first)
            narrow_stripe(r, i);
    r->n_stripes++;
    if (due[r->next] > r->n_stripes)
        return;
    uint64_t begin_ns = mr_clock_ns();
    do {
        make_row(r, r->next++);
    } while (!mr_resizer_done(r) && due[r->next] <= r->n_stripes);
    if (mr_resizer_done(r))
        r->kernels->finish();
    r->spent_ns += mr_clock_ns() - begin_ns;
}
