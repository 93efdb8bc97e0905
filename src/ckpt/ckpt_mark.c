/* ckpt_mark.c - see ckpt_mark.h.  A small tensor is read by itself, with its checksum; nothing else
 * of the data file is touched. */
#include "ckpt_mark.h"

#include "bytes.h"
#include "crc32c.h"
#include "errtext.h"
#include "in_file.h"
#include "train_state.h"
#include "whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Bytes of a tensor that lie within two aligned blocks. */
static int read_range(const struct mr_ckpt_view *v, const struct mr_tensor *t,
                      struct mr_device *device, uint8_t *out, struct mr_error *err)
{
    char file[MR_CKPT_MAX_PATH];
    struct mr_in_file f;
    uint64_t from = t->offset & ~(uint64_t)(MR_DIRECT_ALIGN - 1);
    size_t skip = (size_t)(t->offset - from);
    mr_ckpt_view_file(v, t->shard, file);
    int r = mr_in_open(v->dir_fd, mr_ckpt_view_name(v, file), device, &f);
    if (r)
        return mr_fail(err, r, "%s: %s", file, mr_errno_text(r));
    uint8_t *buf = aligned_alloc(MR_DIRECT_ALIGN, 2 * MR_DIRECT_ALIGN);
    r = buf ? mr_in_read(&f, buf, skip + (size_t)t->bytes, from) : -ENOMEM;
    if (!r)
        memcpy(out, buf + skip, (size_t)t->bytes);
    free(buf);
    mr_in_close(&f);
    if (!r && t->has_crc && mr_crc32c(0, out, (size_t)t->bytes) != t->crc)
        r = -EBADMSG;
    return r ? mr_fail(err, r, "%s: tensor %s: %s", file, t->name, mr_errno_text(r)) : 0;
}

/* A tensor of n 64-bit numbers: 1, 0 when there is none of that shape, or -errno. */
static int read_words(const struct mr_ckpt_view *v, const char *name, int dtype, unsigned n,
                      struct mr_device *device, uint64_t *out, struct mr_error *err)
{
    const struct mr_tensor *t = mr_tensor_table_find(&v->bundle.tensors, name);
    uint8_t bytes[8 * MR_MARK_WORDS];
    if (!t || t->dtype != dtype || t->n_dims != 1 || t->dims[0] != n || t->bytes != 8 * n)
        return 0;
    int r = read_range(v, t, device, bytes, err);
    for (unsigned i = 0; !r && i < n; i++)
        out[i] = mr_get_u64(bytes + 8 * i);
    return r ? r : 1;
}

/* Runs write one data file, and no strings or parts.  Earlier ones saved a bundle's step again as
 * shard 1 of 2, of which shard 0 does not exist. */
static int has_our_shape(const struct mr_ckpt_view *v)
{
    for (size_t i = 0; i < v->bundle.tensors.n; i++)
        if (v->bundle.tensors.tensors[i].shard != v->bundle.n_shards - 1 ||
            v->bundle.tensors.tensors[i].dtype == MR_DT_STRING)
            return 0;
    return v->bundle.n_shards <= 2 && !v->bundle.n_parts;
}

int mr_ckpt_mark_of(const struct mr_ckpt_view *v, uint64_t step, struct mr_device *device,
                    struct mr_ckpt_mark *out, struct mr_error *err)
{
    uint64_t word[MR_MARK_WORDS];
    if (!v->has_checksums || !has_our_shape(v))
        return 0;
    int r = read_words(v, MR_STATE_MARK, MR_DT_U64, MR_MARK_WORDS, device, word, err);
    if (r <= 0 || word[0] != MR_MARK_MAGIC || word[1] != step)
        return r < 0 ? r : 0;
    if (out)
        *out = (struct mr_ckpt_mark){.generation = word[2], .run = word[3]};
    return 1;
}

int mr_ckpt_mark_read(const struct mr_ckpt_dir *dir, const struct mr_ckpt_item *item,
                      struct mr_device *device, struct mr_ckpt_mark *out, struct mr_error *err)
{
    struct mr_ckpt_view v;
    int r = mr_ckpt_view_open_flat(dir, item, device, &v, err);
    if (r)
        return r;
    r = mr_ckpt_mark_of(&v, item->step, device, out, err);
    mr_ckpt_view_fini(&v);
    return r;
}

int mr_ckpt_meta_seal(const struct mr_ckpt_view *v, struct mr_device *device, uint64_t seal[2],
                      struct mr_error *err)
{
    return read_words(v, MR_STATE_META, MR_DT_I64, 2, device, seal, err);
}
