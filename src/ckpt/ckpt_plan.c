/* ckpt_plan.c - see ckpt_plan.h.
 *
 * A checkpoint gets one tensor of ours more, the mark (ckpt_mark.h), and TensorFlow's bundle a
 * second one: length and checksum of .meta, so that all files of a checkpoint are under checksums
 * that begin in .index.  Tensors are filed in the order of their names, as TensorFlow's Saver does.
 */
#include "ckpt_plan.h"

#include "crc32c.h"
#include "errtext.h"
#include "safetensors.h"
#include "tf_meta.h"
#include "tf_types.h"
#include "train_state.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

static int add_array(struct mr_tensor_table *t, const struct mr_array *a, unsigned i,
                     struct mr_error *err)
{
    struct mr_tensor tensor = {
        .name = a->name, .dtype = a->dtype, .n_dims = a->n_dims, .data = a->data, .has_crc = 1};
    if (!a->name)
        return mr_fail(err, -EINVAL, "array %u has no name", i);
    if (a->n_dims > MR_TENSOR_MAX_DIMS)
        return mr_fail(err, -EINVAL, "array %s: %u dimensions, at most %d", a->name, a->n_dims,
                       MR_TENSOR_MAX_DIMS);
    memcpy(tensor.dims, a->dims, a->n_dims * sizeof *a->dims);
    int r = mr_tensor_size(a->dtype, a->n_dims, a->dims, &tensor.bytes);
    if (r || (tensor.bytes && !a->data))
        return mr_fail(err, r && r != -ENOTSUP ? r : -EINVAL,
                       "array %s: its type, dimensions or memory make no sense", a->name);
    if (!strcmp(a->name, MR_STATE_META) || !strcmp(a->name, MR_STATE_MARK))
        return mr_fail(err, -EINVAL, "array %s: the name is taken", a->name);
    r = mr_tensor_table_add(t, &tensor);
    return r ? mr_fail(err, r, "array %s: %s", a->name, mr_errno_text(r)) : 0;
}

static int add_seal(struct mr_ckpt_plan *p, struct mr_error *err)
{
    struct mr_tensor seal = {.name = MR_STATE_META,
                             .dtype = MR_DT_I64,
                             .n_dims = 1,
                             .dims = {2},
                             .data = p->meta_seal,
                             .bytes = sizeof p->meta_seal,
                             .has_crc = 1};
    int r = mr_tf_meta_write(&p->bundle.tensors, &p->meta);
    if (!r)
        r = p->meta.error;
    if (!r)
        r = mr_tensor_table_add(&p->bundle.tensors, &seal);
    if (r)
        return mr_fail(err, r, "checkpoint: %s", mr_errno_text(r));
    p->meta_seal[0] = (int64_t)p->meta.len;
    p->meta_seal[1] = mr_crc32c(0, p->meta.data, p->meta.len);
    return 0;
}

static int add_mark(struct mr_ckpt_plan *p, struct mr_error *err)
{
    struct mr_tensor mark = {.name = MR_STATE_MARK,
                             .dtype = MR_DT_U64,
                             .n_dims = 1,
                             .dims = {MR_MARK_WORDS},
                             .data = p->mark,
                             .bytes = sizeof p->mark,
                             .has_crc = 1};
    int r = mr_tensor_table_add(&p->bundle.tensors, &mark);
    return r ? mr_fail(err, r, "checkpoint: %s", mr_errno_text(r)) : 0;
}

/* After sorting: twins stand side by side in a table in the order of names. */
static int check_names(const struct mr_tensor_table *t, struct mr_error *err)
{
    for (size_t i = 1; i < t->n; i++)
        if (!strcmp(t->tensors[i - 1].name, t->tensors[i].name))
            return mr_fail(err, -EINVAL, "array %s: the name occurs twice", t->tensors[i].name);
    return 0;
}

static int lay_out(struct mr_ckpt_plan *p, int packed, struct mr_error *err)
{
    struct mr_tensor_table *t = &p->bundle.tensors;
    uint64_t head = 0;
    int r;
    if (p->format == MR_CHECKPOINT_TF)
        r = mr_bundle_layout(t, packed ? 1 : MR_BUNDLE_ALIGN, &p->data_bytes);
    else
        r = mr_safetensors_layout(t, &head, &p->data_bytes, err);
    p->head_bytes = (size_t)head;
    if (!r && p->data_bytes > INT64_MAX / 2)
        r = -EFBIG;
    return r ? mr_fail(err, r, "checkpoint: cannot lay out the arrays: %s", mr_errno_text(r)) : 0;
}

static int map_arrays(struct mr_ckpt_plan *p, const struct mr_array *arrays, unsigned n)
{
    p->of_array = calloc(n + 1, sizeof *p->of_array);
    if (!p->of_array)
        return -ENOMEM;
    p->mark_tensor = (size_t)(mr_tensor_table_find(&p->bundle.tensors, MR_STATE_MARK) -
                              p->bundle.tensors.tensors);
    for (unsigned i = 0; i < n; i++)
        p->of_array[i] = (size_t)(mr_tensor_table_find(&p->bundle.tensors, arrays[i].name) -
                                  p->bundle.tensors.tensors);
    return 0;
}

int mr_ckpt_plan_init(struct mr_ckpt_plan *p, const struct mr_array *arrays, unsigned n,
                      enum mr_checkpoint_format format, int packed, struct mr_error *err)
{
    memset(p, 0, sizeof *p);
    p->format = format;
    mr_bundle_init(&p->bundle);
    mr_bytes_init(&p->meta);
    int r = 0;
    for (unsigned i = 0; !r && i < n; i++) {
        r = add_array(&p->bundle.tensors, &arrays[i], i, err);
        if (!r && format == MR_CHECKPOINT_TF && !mr_tf_type(arrays[i].dtype))
            r = mr_fail(err, -EINVAL, "array %s: TensorFlow has no type %s; save as safetensors",
                        arrays[i].name, mr_dtype_name(arrays[i].dtype));
    }
    if (!r) {
        mr_tensor_table_sort(&p->bundle.tensors);
        r = check_names(&p->bundle.tensors, err);
    }
    if (!r && format == MR_CHECKPOINT_TF)
        r = add_seal(p, err);
    if (!r)
        r = add_mark(p, err);
    if (!r) {
        mr_tensor_table_sort(&p->bundle.tensors);
        r = lay_out(p, packed, err);
    }
    if (!r && map_arrays(p, arrays, n))
        r = mr_fail(err, -ENOMEM, "checkpoint: no memory");
    if (r)
        mr_ckpt_plan_fini(p);
    return r;
}

void mr_ckpt_plan_fini(struct mr_ckpt_plan *p)
{
    free(p->of_array);
    mr_bytes_fini(&p->meta);
    mr_bundle_fini(&p->bundle);
    p->of_array = NULL;
}

int mr_ckpt_plan_write(struct mr_ckpt_plan *p, uint32_t shard, uint32_t n_shards,
                       struct mr_bytes *out, struct mr_error *err)
{
    if (p->format == MR_CHECKPOINT_SAFETENSORS)
        return mr_safetensors_write_header(&p->bundle.tensors, out, err);
    p->bundle.n_shards = n_shards;
    for (size_t i = 0; i < p->bundle.tensors.n; i++)
        p->bundle.tensors.tensors[i].shard = shard;
    return mr_bundle_write_index(&p->bundle, out, err);
}
