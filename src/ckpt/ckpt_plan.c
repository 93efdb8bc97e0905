/* ckpt_plan.c - see ckpt_plan.h.
 *
 * A checkpoint that a run saves has one tensor of ours more, the mark (ckpt_mark.h).  The format
 * may add its own (ckpt_format.h). */
#include "ckpt_plan.h"

#include "ckpt_format.h"
#include "errtext.h"
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
    int r = p->row->lay_out(p, packed, err);
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

static void begin(struct mr_ckpt_plan *p, enum mr_checkpoint_format format)
{
    memset(p, 0, sizeof *p);
    p->row = mr_ckpt_format_row(format);
    mr_bundle_init(&p->bundle);
    mr_bytes_init(&p->side);
}

static int check_type(const struct mr_ckpt_plan *p, int code, const char *name, int dtype,
                      struct mr_error *err)
{
    if (!p->row->holds || p->row->holds(dtype))
        return 0;
    return mr_fail(err, code, "'%s': %s has no type %s; choose another format", name, p->row->title,
                   mr_dtype_name(dtype));
}

static int add_own(struct mr_ckpt_plan *p, struct mr_error *err)
{
    return p->row->prepare ? p->row->prepare(p, err) : 0;
}

int mr_ckpt_plan_init(struct mr_ckpt_plan *p, const struct mr_array *arrays, unsigned n,
                      enum mr_checkpoint_format format, int packed, struct mr_error *err)
{
    int r = 0;
    begin(p, format);
    for (unsigned i = 0; !r && i < n; i++) {
        r = add_array(&p->bundle.tensors, &arrays[i], i, err);
        if (!r)
            r = check_type(p, -EINVAL, arrays[i].name, arrays[i].dtype, err);
    }
    if (!r) {
        mr_tensor_table_sort(&p->bundle.tensors);
        r = check_names(&p->bundle.tensors, err);
    }
    if (!r)
        r = add_own(p, err);
    if (!r)
        r = add_mark(p, err);
    if (!r)
        r = lay_out(p, packed, err);
    if (!r && map_arrays(p, arrays, n))
        r = mr_fail(err, -ENOMEM, "checkpoint: no memory");
    if (r)
        mr_ckpt_plan_fini(p);
    return r;
}

int mr_ckpt_plan_copy(struct mr_ckpt_plan *p, const struct mr_tensor_table *from,
                      const struct mr_bytes *side, enum mr_checkpoint_format format, int packed,
                      struct mr_error *err)
{
    int r = 0;
    begin(p, format);
    for (size_t i = 0; !r && i < from->n; i++) {
        const struct mr_tensor *t = &from->tensors[i];
        if (!strcmp(t->name, MR_STATE_META) || !strcmp(t->name, MR_STATE_MARK))
            continue;
        r = check_type(p, -ENOTSUP, t->name, t->dtype, err);
        if (!r && (r = mr_tensor_table_add(&p->bundle.tensors, t)))
            mr_fail(err, r, "'%s': %s", t->name, mr_errno_text(r));
    }
    if (!r && side->len) {
        mr_bytes_add(&p->side, side->data, side->len);
        r = p->side.error ? mr_fail(err, p->side.error, "checkpoint: no memory") : 0;
    }
    if (!r)
        r = add_own(p, err);
    if (!r)
        r = lay_out(p, packed, err);
    if (r)
        mr_ckpt_plan_fini(p);
    return r;
}

void mr_ckpt_plan_fini(struct mr_ckpt_plan *p)
{
    free(p->of_array);
    mr_bytes_fini(&p->side);
    mr_bundle_fini(&p->bundle);
    p->of_array = NULL;
}
