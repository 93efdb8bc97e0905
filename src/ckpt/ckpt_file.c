/* ckpt_file.c - open a checkpoint of any format and read its tensors.
 *
 * Every format ends up as a table of tensors with shard and offset, and data files that are kept
 * open.  Tensors in slices (partitioned variables) are put together from several ranges.
 *
 * Nothing is allocated on the word of a file alone: a tensor's range is compared with the size of
 * its data file when the checkpoint is opened, and one that is made of slices, which may all name
 * the same range, with the sizes of all its data files.  So whatever is allocated later is no
 * larger than what is on the disk. */
#include "ckpt_file.h"

#include "ckpt_format.h"
#include "ckpt_open.h"
#include "ckpt_slice.h"
#include "crc32c.h"
#include "errtext.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

static int open_shard(struct mr_ckpt_file *c, uint32_t s, struct mr_error *err)
{
    char path[MR_CKPT_MAX_PATH];
    if (c->data[s].fd >= 0)
        return 0;
    mr_ckpt_view_file(&c->view, s, path);
    int r = mr_in_open(c->view.dir_fd, mr_ckpt_view_name(&c->view, path), NULL, &c->data[s]);
    return r ? mr_fail(err, r, "%s: %s", path, mr_errno_text(r)) : 0;
}

/* Data files that the tensors need: others of a bundle may be missing. */
static int open_shards(struct mr_ckpt_file *c, struct mr_error *err)
{
    const struct mr_bundle *b = &c->view.bundle;
    int r = c->view.row->data_name ? 0 : open_shard(c, 0, err);
    for (size_t i = 0; !r && i < b->tensors.n + b->n_parts; i++) {
        const struct mr_bundle_part *parts = b->parts;
        if (i < b->tensors.n && mr_bundle_parts_of(b, i, &parts))
            continue;
        r = open_shard(
            c, i < b->tensors.n ? b->tensors.tensors[i].shard : parts[i - b->tensors.n].shard, err);
    }
    return r;
}

static int fits(const struct mr_ckpt_file *c, uint32_t shard, uint64_t offset, uint64_t bytes,
                const char *name, struct mr_error *err)
{
    uint64_t have = c->data[shard].bytes;
    if (offset <= have && bytes <= have - offset)
        return 0;
    return mr_fail(err, -ENODATA, "%s: '%.200s' lies behind the end of its data file", c->view.path,
                   name);
}

static int check_places(const struct mr_ckpt_file *c, struct mr_error *err)
{
    const struct mr_tensor_table *t = &c->view.bundle.tensors;
    const struct mr_bundle_part *parts;
    int r = 0;
    uint64_t all = mr_ckpt_file_bytes(c) - c->view.index_bytes;
    for (size_t i = 0; !r && i < c->view.bundle.n_parts; i++) {
        const struct mr_bundle_part *p = &c->view.bundle.parts[i];
        r = fits(c, p->shard, p->offset, p->bytes, t->tensors[p->tensor].name, err);
    }
    for (size_t i = 0; !r && i < t->n; i++)
        if (!mr_bundle_parts_of(&c->view.bundle, i, &parts))
            r = fits(c, t->tensors[i].shard, t->tensors[i].offset, t->tensors[i].bytes,
                     t->tensors[i].name, err);
        else if (t->tensors[i].bytes > all)
            r = mr_fail(err, -EBADMSG, "%s: '%.200s': its slices share bytes of the data files",
                        c->view.path, t->tensors[i].name);
    return r;
}

static int alloc_data(struct mr_ckpt_file *c, uint32_t n, struct mr_error *err)
{
    c->data = calloc(n, sizeof *c->data);
    if (!c->data || mr_buffer_reserve(&c->buf, MR_IN_PIECE))
        return mr_fail(err, -ENOMEM, "%s: no memory", c->view.path);
    c->n_data = n;
    for (uint32_t i = 0; i < n; i++)
        c->data[i].fd = -1;
    return 0;
}

static int append(void *ctx, const uint8_t *bytes, size_t n)
{
    struct mr_bytes *b = ctx;
    mr_bytes_add(b, bytes, n);
    return b->error;
}

/* Which format a path means, and how long its stem is.  Without a known ending it is a stem: of the
 * first format whose head is there. */
static enum mr_checkpoint_format format_of(const char *path, size_t *stem_len)
{
    char head[MR_CKPT_MAX_PATH];
    const struct mr_ckpt_format *row;
    int format = mr_ckpt_format_of(path, stem_len);
    if (format >= 0)
        return (enum mr_checkpoint_format)format;
    *stem_len = strlen(path);
    for (unsigned i = 0; (row = mr_ckpt_format_row(i)); i++) {
        snprintf(head, sizeof head, "%s%s", path, row->ending);
        if (!access(head, F_OK))
            return (enum mr_checkpoint_format)i;
    }
    return 0;
}

int mr_ckpt_file_open(const char *path, struct mr_ckpt_file **out, struct mr_error *err)
{
    char stem[PATH_MAX];
    size_t len;
    struct mr_ckpt_file *c = calloc(1, sizeof *c);
    if (!c)
        return mr_fail(err, -ENOMEM, "%s: no memory", path);
    enum mr_checkpoint_format format = format_of(path, &len);
    mr_bundle_init(&c->view.bundle);
    snprintf(stem, sizeof stem, "%.*s", (int)(len < sizeof stem ? len : sizeof stem), path);
    int r = len >= sizeof stem
                ? mr_fail(err, -ENAMETOOLONG, "%.100s...: the path is too long", path)
                : mr_ckpt_view_open(AT_FDCWD, stem, format, NULL, &c->view, err);
    if (!r)
        r = alloc_data(c, c->view.bundle.n_shards, err);
    if (!r)
        r = open_shards(c, err);
    if (!r)
        r = check_places(c, err);
    if (r)
        mr_ckpt_file_close(c);
    else
        *out = c;
    return r;
}

void mr_ckpt_file_close(struct mr_ckpt_file *c)
{
    if (!c)
        return;
    for (uint32_t i = 0; i < c->n_data; i++)
        mr_in_close(&c->data[i]);
    free(c->data);
    mr_buffer_fini(&c->buf);
    mr_ckpt_view_fini(&c->view);
    free(c);
}

enum mr_checkpoint_format mr_ckpt_file_format(const struct mr_ckpt_file *c)
{
    return c->view.format;
}

const char *mr_ckpt_file_prefix(const struct mr_ckpt_file *c)
{
    return c->view.path;
}

uint64_t mr_ckpt_file_bytes(const struct mr_ckpt_file *c)
{
    uint64_t sum = c->view.index_bytes;
    for (uint32_t i = 0; i < c->n_data; i++)
        sum += c->data[i].fd >= 0 ? c->data[i].bytes : 0;
    return sum;
}

const struct mr_tensor_table *mr_ckpt_file_tensors(const struct mr_ckpt_file *c)
{
    return &c->view.bundle.tensors;
}

int mr_ckpt_file_has_checksums(const struct mr_ckpt_file *c)
{
    return c->view.has_checksums;
}

struct pour {
    mr_ckpt_sink *sink;
    void *ctx;
    uint32_t crc;
    int from_sink; /* what it returned */
};

static int pour_piece(void *ctx, const uint8_t *bytes, size_t n)
{
    struct pour *p = ctx;
    p->crc = mr_crc32c(p->crc, bytes, n);
    p->from_sink = p->sink(p->ctx, bytes, n);
    return p->from_sink;
}

int mr_ckpt_file_wrong(const struct mr_ckpt_file *c, const struct mr_tensor *t, int r,
                       struct mr_error *err)
{
    return mr_fail(err, r, "%s: '%.200s': %s", c->view.path, t->name,
                   r == -EBADMSG   ? "its bytes do not match its checksum"
                   : r == -ENODATA ? "its data file ends too early"
                                   : mr_errno_text(r));
}

/* A range of a data file to the sink, compared with its crc. */
static int pour_range(struct mr_ckpt_file *c, const struct mr_tensor *t, uint32_t shard,
                      uint64_t offset, uint64_t bytes, const uint32_t *crc, struct pour *p,
                      struct mr_error *err)
{
    p->crc = 0;
    int r = mr_in_each(&c->data[shard], &c->buf, offset, bytes, pour_piece, p);
    if (p->from_sink)
        return p->from_sink;
    if (!r && crc && *crc != p->crc)
        r = -EBADMSG;
    return r ? mr_ckpt_file_wrong(c, t, r, err) : 0;
}

/* Strings are hashed by their own rule, so all of them are needed at once. */
static int stream_strings(struct mr_ckpt_file *c, const struct mr_tensor *t, mr_ckpt_sink *sink,
                          void *ctx, struct mr_error *err)
{
    struct mr_bytes all;
    uint64_t n = 0;
    uint32_t crc;
    mr_bytes_init(&all);
    int r = mr_tensor_elements(t->n_dims, t->dims, &n);
    if (!r)
        r = mr_in_each(&c->data[t->shard], &c->buf, t->offset, t->bytes, append, &all);
    if (!r && (n || all.len) &&
        !(mr_bundle_strings_crc(all.data, all.len, n, &crc) == 0 && (!t->has_crc || crc == t->crc)))
        r = -EBADMSG;
    if (r)
        r = mr_ckpt_file_wrong(c, t, r, err);
    else if (all.len)
        r = sink(ctx, all.data, all.len);
    mr_bytes_fini(&all);
    return r;
}

static int stream_parts(struct mr_ckpt_file *c, size_t i, mr_ckpt_sink *sink, void *ctx,
                        struct mr_error *err)
{
    const struct mr_tensor *t = &c->view.bundle.tensors.tensors[i];
    uint8_t *whole = malloc(t->bytes ? t->bytes : 1); /* its parts are on the disk */
    if (!whole)
        return mr_fail(err, -ENOMEM, "%s: '%.200s': no memory", c->view.path, t->name);
    int r = mr_ckpt_read_parts(c, i, whole, err);
    if (!r && t->bytes)
        r = sink(ctx, whole, t->bytes);
    free(whole);
    return r;
}

int mr_ckpt_file_stream(struct mr_ckpt_file *c, size_t i, mr_ckpt_sink *sink, void *ctx,
                        struct mr_error *err)
{
    const struct mr_tensor *t = &c->view.bundle.tensors.tensors[i];
    const struct mr_bundle_part *parts;
    if (mr_bundle_parts_of(&c->view.bundle, i, &parts))
        return stream_parts(c, i, sink, ctx, err);
    if (t->dtype == MR_DT_STRING)
        return stream_strings(c, t, sink, ctx, err);
    struct pour p = {.sink = sink, .ctx = ctx};
    return pour_range(c, t, t->shard, t->offset, t->bytes, t->has_crc ? &t->crc : NULL, &p, err);
}

static int to_memory(void *ctx, const void *bytes, size_t len)
{
    uint8_t **at = ctx;
    memcpy(*at, bytes, len);
    *at += len;
    return 0;
}

int mr_ckpt_file_read(struct mr_ckpt_file *c, size_t i, void *buf, struct mr_error *err)
{
    const struct mr_bundle_part *parts;
    uint8_t *at = buf;
    if (mr_bundle_parts_of(&c->view.bundle, i, &parts))
        return mr_ckpt_read_parts(c, i, buf, err);
    return mr_ckpt_file_stream(c, i, to_memory, &at, err);
}
