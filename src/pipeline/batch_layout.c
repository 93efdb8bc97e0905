/* batch_layout.c - see batch_layout.h. */
#include "batch_layout.h"

#include "errtext.h"

#include <errno.h>
#include <stdio.h>
#include <string.h>

/* Bytes of one sample's field; 0: it is no field, or too large. */
static size_t bytes_of(const struct mr_field *f)
{
    size_t bytes = f->dtype ? mr_dtype_size(f->dtype) : 0;
    if (f->n_dims > MR_MAX_DIMS)
        return 0;
    for (unsigned i = 0; i < f->n_dims; i++)
        if (__builtin_mul_overflow(bytes, f->shape[i], &bytes))
            return 0;
    return bytes;
}

static int is_there(const struct mr_batch_layout *l, const char *name)
{
    for (unsigned i = 0; i < l->n; i++)
        if (!strcmp(l->name[i], name))
            return 1;
    return 0;
}

/* Append a field and its array for `batch` samples. */
static int add(struct mr_batch_layout *l, const struct mr_field *f, unsigned batch,
               struct mr_error *err)
{
    const char *name = f->name ? f->name : "";
    size_t bytes = bytes_of(f), all;
    if (!name[0] || strlen(name) >= MR_FIELD_NAME || is_there(l, name))
        return mr_fail(err, -EINVAL, "field %u: a name of its own, of 1 to %d bytes, is needed",
                       l->n, MR_FIELD_NAME - 1);
    if (!bytes || __builtin_mul_overflow(bytes, (size_t)batch, &all) ||
        __builtin_add_overflow(all, MR_FIELD_ALIGN - 1, &all) ||
        __builtin_add_overflow(l->slab_bytes, all & ~(MR_FIELD_ALIGN - 1), &all))
        return mr_fail(err, -EINVAL, "field %s: its type or shape is out of range", name);
    unsigned i = l->n++;
    snprintf(l->name[i], MR_FIELD_NAME, "%s", name);
    l->field[i] = *f;
    l->bytes[i] = bytes;
    l->at[i] = l->slab_bytes;
    l->slab_bytes = all;
    return 0;
}

static int add_image(struct mr_batch_layout *l, const struct mr_pipeline_opts *o,
                     struct mr_error *err)
{
    const struct mr_decoder_opts *d = o->decode;
    uint64_t h = d->height ? d->height : 224, w = d->width ? d->width : 224;
    struct mr_field image = {
        .name = "image", .dtype = d->dtype ? d->dtype : MR_DT_F32, .n_dims = 3};
    int planes = d->layout == MR_IMAGE_NCHW;
    image.shape[0] = planes ? 3 : h;
    image.shape[1] = planes ? h : w;
    image.shape[2] = planes ? w : 3;
    return add(l, &image, o->batch, err);
}

/* What a callback makes: the fields that it declares, or map_bytes bytes. */
static int add_mapped(struct mr_batch_layout *l, const struct mr_pipeline_opts *o,
                      struct mr_error *err)
{
    struct mr_field bytes = {
        .name = "data", .dtype = MR_DT_U8, .n_dims = 1, .shape = {o->map_bytes}};
    int r = 0;
    if (!o->n_fields)
        return add(l, &bytes, o->batch, err);
    if (o->n_fields >= MR_MAX_FIELDS)
        return mr_fail(err, -EINVAL, "%u fields are more than %d", o->n_fields, MR_MAX_FIELDS - 1);
    for (unsigned i = 0; !r && i < o->n_fields; i++)
        r = add(l, &o->fields[i], o->batch, err);
    if (!r && o->map_bytes && o->map_bytes != l->bytes[0])
        r = mr_fail(err, -EINVAL, "map_bytes is %zu, and the first field has %zu bytes",
                    o->map_bytes, l->bytes[0]);
    return r;
}

int mr_batch_layout_init(struct mr_batch_layout *l, const struct mr_pipeline_opts *o,
                         struct mr_error *err)
{
    static const struct mr_field label = {.name = "label", .dtype = MR_DT_I64};
    *l = (struct mr_batch_layout){0};
    int r = o->decode ? add_image(l, o, err) : o->map ? add_mapped(l, o, err) : 0;
    l->sample_bytes = r || !l->n ? 0 : l->bytes[0];
    return r ? r : add(l, &label, o->batch, err);
}

void mr_batch_layout_set(const struct mr_batch_layout *l, uint8_t *slab, struct mr_field *out)
{
    for (unsigned i = 0; i < l->n; i++) {
        out[i] = l->field[i];
        out[i].name = l->name[i];
        out[i].data = slab + l->at[i];
    }
}
