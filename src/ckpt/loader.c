/* loader.c - see loader.h.
 *
 * A data file is cut as for writing (file_image.h).  Members of a team take the next chunk, read it
 * into a buffer of their own and copy its pieces to where they belong, with their checksums; the
 * tensors' are combined and compared at the end.  Reading around the page cache needs aligned
 * buffers, and arrays are not aligned: hence the copy, which the checksum makes necessary anyway.
 *
 * Strings have a checksum of another kind that needs them whole: they are read into memory of their
 * own.  Sizes are known to fit in the file before anything is allocated for them.
 *
 * Lock: none; chunks are handed out by a counter, and crcs[] entries belong to the member that has
 * the chunk.
 */
#include "loader.h"

#include "buffer.h"
#include "crc32c.h"
#include "errtext.h"
#include "file_image.h"
#include "in_file.h"
#include "thread_team.h"
#include "whole_file.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

struct mr_loader {
    struct mr_team *team;
    struct mr_buffer buffers; /* one chunk a member */
};

/* One data file being read. */
struct load {
    struct mr_loader *loader;
    struct mr_file_image im;
    struct mr_in_file file;
    uint32_t *crcs;
    atomic_size_t next;
    atomic_int code; /* the first error */
};

int mr_loader_open(unsigned depth, struct mr_loader **out)
{
    struct mr_loader *l = calloc(1, sizeof *l);
    if (!l)
        return -ENOMEM;
    int r = mr_buffer_reserve(&l->buffers, depth * MR_CHUNK_BYTES);
    if (!r)
        r = mr_team_open(depth, &l->team);
    if (r) {
        mr_loader_close(l);
        return r;
    }
    *out = l;
    return 0;
}

void mr_loader_close(struct mr_loader *l)
{
    if (!l)
        return;
    mr_team_close(l->team);
    mr_buffer_fini(&l->buffers);
    free(l);
}

/* Read what lies between the chunk's first and last piece. */
static int load_chunk(struct load *ld, size_t c, uint8_t *buf)
{
    const struct mr_piece *p = ld->im.pieces;
    size_t first = ld->im.chunk_first[c], end = ld->im.chunk_first[c + 1];
    if (first == end)
        return 0;
    uint64_t from = p[first].at & ~(uint64_t)(MR_DIRECT_ALIGN - 1);
    int r = mr_in_read(&ld->file, buf, (size_t)(p[end - 1].at + p[end - 1].len - from), from);
    for (size_t i = first; !r && i < end; i++) {
        const uint8_t *src = buf + (p[i].at - from);
        uint8_t *dst = ld->im.table->tensors[p[i].tensor].data;
        ld->crcs[i] =
            dst ? mr_crc32c_copy(0, dst + p[i].from, src, p[i].len) : mr_crc32c(0, src, p[i].len);
    }
    return r;
}

static void load_chunks(void *ctx, unsigned rank, unsigned n)
{
    struct load *ld = ctx;
    (void)n;
    uint8_t *buf = ld->loader->buffers.data + rank * MR_CHUNK_BYTES;
    size_t c;
    while (!atomic_load(&ld->code) && (c = atomic_fetch_add(&ld->next, 1)) < ld->im.n_chunks) {
        int none = 0, r = load_chunk(ld, c, buf);
        if (r)
            atomic_compare_exchange_strong(&ld->code, &none, r);
    }
}

static int compare(const struct load *ld, const char *file, struct mr_error *err)
{
    for (size_t i = 0; i < ld->im.table->n; i++) {
        const struct mr_tensor *t = &ld->im.table->tensors[i];
        uint32_t crc = mr_file_image_crc(&ld->im, i, ld->crcs);
        uint64_t n;
        if (t->dtype == MR_DT_STRING && (mr_tensor_elements(t->n_dims, t->dims, &n) ||
                                         mr_bundle_strings_crc(t->data, (size_t)t->bytes, n, &crc)))
            return mr_fail(err, -EBADMSG, "%s: tensor %s: its strings are damaged", file, t->name);
        if (t->has_crc && crc != t->crc)
            return mr_fail(err, -EBADMSG, "%s: tensor %s: checksum %08x, should be %08x", file,
                           t->name, crc, t->crc);
    }
    return 0;
}

/* The tensors of shard s, with memory for strings; tensors and their names stay the view's. */
static int pick(const struct mr_ckpt_view *v, uint32_t s, struct mr_tensor_table *out)
{
    out->tensors = calloc(v->bundle.tensors.n + 1, sizeof *out->tensors);
    if (!out->tensors)
        return -ENOMEM;
    for (size_t i = 0; i < v->bundle.tensors.n; i++)
        if (v->bundle.tensors.tensors[i].shard == s)
            out->tensors[out->n++] = v->bundle.tensors.tensors[i];
    return 0;
}

static int make_string_room(struct mr_tensor_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->tensors[i].dtype == MR_DT_STRING) {
            t->tensors[i].data = malloc((size_t)t->tensors[i].bytes + 1);
            if (!t->tensors[i].data)
                return -ENOMEM;
        }
    return 0;
}

static void drop(struct mr_tensor_table *t)
{
    for (size_t i = 0; i < t->n; i++)
        if (t->tensors[i].dtype == MR_DT_STRING)
            free(t->tensors[i].data);
    free(t->tensors);
}

static int load_file(struct mr_loader *l, const struct mr_ckpt_view *v, uint32_t s,
                     struct mr_device *device, uint64_t *bytes, struct mr_error *err)
{
    struct load ld = {.loader = l, .file.fd = -1};
    struct mr_tensor_table table = {0};
    char file[MR_CKPT_MAX_PATH];
    mr_ckpt_view_file(v, s, file);
    int r = pick(v, s, &table);
    if (r)
        goto done;
    r = mr_in_open(v->dir_fd, mr_ckpt_view_name(v, file), device, &ld.file);
    if (r) {
        mr_fail(err, r, "%s: %s", file, mr_errno_text(r));
        goto done;
    }
    *bytes += ld.file.bytes;
    r = mr_file_image_init(&ld.im, &table, ld.file.bytes, v->head_bytes);
    if (r == -EBADMSG) {
        mr_fail(err, r, "%s: %llu bytes do not hold its tensors: cut off, or not its data", file,
                (unsigned long long)ld.file.bytes);
        goto done;
    }
    r = r ? r : make_string_room(&table);
    ld.crcs = calloc(ld.im.n_pieces + 1, sizeof *ld.crcs);
    if (r || !ld.crcs) {
        r = -ENOMEM;
        goto done;
    }
    mr_team_run(l->team, load_chunks, &ld);
    r = atomic_load(&ld.code);
    if (r)
        mr_fail(err, r, "%s: %s", file, mr_errno_text(r));
    else
        r = compare(&ld, file, err);
done:
    if (r == -ENOMEM)
        mr_fail(err, r, "%s: no memory", file);
    free(ld.crcs);
    mr_file_image_fini(&ld.im);
    mr_in_close(&ld.file);
    drop(&table);
    return r;
}

/* The first shard from `s` on that a tensor is in; n_shards when there is none. */
static uint64_t next_shard(const struct mr_ckpt_view *v, uint64_t s)
{
    uint64_t next = v->bundle.n_shards;
    for (size_t i = 0; i < v->bundle.tensors.n; i++)
        if (v->bundle.tensors.tensors[i].shard >= s && v->bundle.tensors.tensors[i].shard < next)
            next = v->bundle.tensors.tensors[i].shard;
    return next;
}

int mr_loader_run(struct mr_loader *l, struct mr_ckpt_view *v, struct mr_device *device,
                  uint64_t *bytes, struct mr_error *err)
{
    uint64_t total = v->index_bytes;
    int r = 0;
    for (uint64_t s = next_shard(v, 0); !r && s < v->bundle.n_shards; s = next_shard(v, s + 1))
        r = load_file(l, v, (uint32_t)s, device, &total, err);
    if (!r)
        *bytes = total;
    return r;
}
