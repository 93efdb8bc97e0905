/* tf_format.c - TensorFlow's bundle as a row of ckpt_format.h: data files, a graph, an index.
 *
 * The graph (.meta) has no checksum of its own, so the bundle holds one tensor more, MR_STATE_META:
 * the graph's length and crc32c.  So all files are under checksums that begin in .index. */
#include "ckpt_format.h"

#include "ckpt_mark.h"
#include "crc32c.h"
#include "errtext.h"
#include "in_file.h"
#include "tf_clean.h"
#include "tf_meta.h"
#include "tf_types.h"
#include "train_state.h"

#include <endian.h>
#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static int holds(int dtype)
{
    return mr_tf_type(dtype) != 0;
}

static void data_name(const char *stem, uint32_t shard, uint32_t n_shards, char *out, size_t cap)
{
    snprintf(out, cap, "%s.data-%05" PRIu32 "-of-%05" PRIu32, stem, shard, n_shards);
}

static int is_data(const char *rest)
{
    return !strncmp(rest, ".data-", 6);
}

/* ---- reading ---- */

static int read_head(struct mr_ckpt_view *v, const char *file, struct mr_device *device,
                     struct mr_error *err)
{
    uint8_t *index;
    size_t len;
    int r = mr_in_small_file(v->dir_fd, mr_ckpt_view_name(v, file), MR_BUNDLE_MAX_INDEX, device,
                             &index, &len);
    if (r)
        return mr_fail(err, r, "%s: %s", file, mr_errno_text(r));
    r = mr_bundle_parse(file, index, len, &v->bundle, err);
    v->head_crc = mr_crc32c(0, index, len);
    free(index);
    v->index_bytes = len;
    v->has_checksums = 1;
    return r;
}

/* Is the graph the one that the bundle was saved with?  `sealed`: the bundle says which. */
static int check_graph(const struct mr_ckpt_view *v, const char *file, const uint8_t *graph,
                       size_t len, int sealed, const uint64_t seal[2], struct mr_error *err)
{
    struct mr_tf_meta info;
    if (sealed && (seal[0] != len || seal[1] != mr_crc32c(0, graph, len)))
        return mr_fail(err, -EBADMSG, "%s: its bytes do not match its checksum", file);
    return mr_tf_meta_parse(file, graph, len, sealed ? &v->bundle.tensors : NULL, &info, err);
}

static int read_side(const struct mr_ckpt_view *v, struct mr_device *device, struct mr_bytes *out,
                     struct mr_error *err)
{
    char file[MR_CKPT_MAX_PATH];
    uint64_t seal[2];
    uint8_t *graph;
    size_t len;
    mr_ckpt_view_side(v, file);
    int sealed = mr_ckpt_meta_seal(v, device, seal, err);
    if (sealed < 0)
        return sealed;
    int r = mr_in_small_file(v->dir_fd, mr_ckpt_view_name(v, file), MR_CKPT_MAX_SIDE, device,
                             &graph, &len);
    if (r == -ENOENT && !mr_tensor_table_find(&v->bundle.tensors, MR_STATE_META))
        return 0;
    if (r)
        return mr_fail(err, r == -ENOMEM ? r : -EBADMSG, "%s: %s", file, mr_errno_text(r));
    if (!sealed && mr_tensor_table_find(&v->bundle.tensors, MR_STATE_META))
        r = mr_fail(err, -EBADMSG, "%s: '%s' is not what it should be", file, MR_STATE_META);
    if (!r)
        r = check_graph(v, file, graph, len, sealed, seal, err);
    if (!r && out)
        mr_bytes_add(out, graph, len);
    free(graph);
    return r;
}

/* ---- writing ---- */

static int prepare(struct mr_ckpt_plan *p, struct mr_error *err)
{
    struct mr_tensor seal = {.name = MR_STATE_META,
                             .dtype = MR_DT_I64,
                             .n_dims = 1,
                             .dims = {2},
                             .data = p->side_seal,
                             .bytes = sizeof p->side_seal,
                             .has_crc = 1};
    int r = p->side.len ? 0 : mr_tf_meta_write(&p->bundle.tensors, &p->side);
    if (!r)
        r = p->side.error;
    if (!r)
        r = mr_tensor_table_add(&p->bundle.tensors, &seal);
    if (r)
        return mr_fail(err, r, "checkpoint: %s", mr_errno_text(r));
    p->side_seal[0] = htole64(p->side.len);
    p->side_seal[1] = htole64(mr_crc32c(0, p->side.data, p->side.len));
    return 0;
}

/* In the order of names, as TensorFlow's Saver does it. */
static int lay_out(struct mr_ckpt_plan *p, int packed, struct mr_error *err)
{
    mr_tensor_table_sort(&p->bundle.tensors);
    int r = mr_bundle_layout(&p->bundle.tensors, packed ? 1 : MR_BUNDLE_ALIGN, &p->data_bytes);
    return r ? mr_fail(err, r, "checkpoint: the tensors are too large") : 0;
}

static int write_head(const struct mr_ckpt_plan *p, struct mr_bytes *out, struct mr_error *err)
{
    return mr_bundle_write_index(&p->bundle, out, err);
}

const struct mr_ckpt_format mr_tf_format = {
    .name = "tf",
    .title = "TensorFlow",
    .ending = ".index",
    .side_ending = ".meta",
    .in_state_file = 1,
    .holds = holds,
    .data_name = data_name,
    .is_data = is_data,
    .read_head = read_head,
    .read_side = read_side,
    .prepare = prepare,
    .lay_out = lay_out,
    .write_head = write_head,
    .clean = mr_tf_clean,
};
