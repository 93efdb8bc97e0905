/* uring_source.c - extents of files by io_uring, many at once: uring_reader.h as a source.
 *
 * A whole blob whose size is unknown is opened ahead if its name is in memory; else the ring opens
 * it, and the caller gives it what room most blobs fit in.  Parts of a blob share a descriptor that
 * stays open (open_blobs.h). */
#include "source.h"

#include "clock.h"
#include "errtext.h"
#include "open_blobs.h"
#include "posix_store.h"
#include "uring_reader.h"
#include "whole_file.h"

#include <errno.h>
#include <limits.h>
#include <stdlib.h>
#include <unistd.h>

struct slot {
    struct mr_uring_op op; /* first, so that an op is its slot */
    struct mr_read *read;
    struct mr_open_blob *part;
    size_t skip; /* bytes before the extent in its first block */
    char path[PATH_MAX];
};

struct uring_source {
    struct mr_source base;
    struct mr_uring_reader *reader;
    struct mr_open_blobs open;
    struct slot *slot;         /* [depth] */
    struct mr_uring_op **done; /* [depth] */
};

static void give_part_back(struct slot *at)
{
    if (at->part)
        at->part->n_users--;
    at->part = NULL;
}

static int prepare_part(struct uring_source *s, struct slot *at, struct mr_read *r)
{
    const struct mr_source_opts *o = &s->base.o;
    const struct mr_extent *e = &r->extent;
    struct mr_open_blob *part;
    if (e->length > o->max_bytes)
        return -EFBIG;
    int code = mr_open_blobs_take(&s->open, e->blob, at->op.dir, at->path, o->direct, &part);
    if (code)
        return code;
    at->part = part;
    if (e->offset > part->bytes || e->length > part->bytes - e->offset) {
        give_part_back(at);
        r->stage = MR_STAGE_READ;
        return -ENODATA;
    }
    at->skip = o->direct ? e->offset % MR_DIRECT_ALIGN : 0;
    r->inode = part->inode;
    r->size = e->length;
    r->room = o->direct ? mr_direct_span(e->offset, e->length) : e->length;
    mr_uring_op_part(s->reader, &at->op, part->fd, e->offset - at->skip, at->skip + e->length);
    return 0;
}

static int prepare(struct mr_source *base, struct mr_read *r)
{
    struct uring_source *s = (struct uring_source *)base;
    const struct mr_source_opts *o = &base->o;
    struct slot *at = &s->slot[r->slot];
    r->stage = MR_STAGE_OPEN;
    r->have = 0;
    r->fd = -1;
    r->inode = 0;
    at->part = NULL;
    at->skip = 0;
    int code = mr_blob_table_name(o->blobs, r->extent.blob, at->path, sizeof at->path);
    if (code < 0)
        return code;
    at->op = (struct mr_uring_op){
        .dir = mr_posix_store_folder(base->store), .path = at->path, .max = o->max_bytes};
    if (r->extent.length)
        return prepare_part(s, at, r);
    size_t known = o->ask_sizes || o->direct ? 0 : mr_blob_table_known(o->blobs, r->extent.blob);
    if (known && known <= o->max_bytes) {
        at->op.known = known;
        r->room = known + 1;
        return 0;
    }
    int found = mr_uring_reader_find(s->reader, &at->op);
    if (found < 0)
        return found;
    r->size = at->op.size;
    r->inode = at->op.inode;
    r->room = !found ? 0 : at->op.direct ? mr_direct_round(at->op.size) : at->op.size;
    return 0;
}

static void drop(struct mr_source *base, struct mr_read *r)
{
    struct slot *at = &((struct uring_source *)base)->slot[r->slot];
    mr_uring_op_drop(&at->op);
    give_part_back(at);
}

static void start(struct mr_source *base, struct mr_read *r)
{
    struct uring_source *s = (struct uring_source *)base;
    struct slot *at = &s->slot[r->slot];
    at->read = r;
    at->op.buf = r->buf;
    at->op.cap = r->cap;
    mr_uring_reader_start(s->reader, &at->op);
}

static void submit(struct mr_source *base)
{
    mr_uring_reader_submit(((struct uring_source *)base)->reader);
}

static struct mr_read *complete(struct uring_source *s, struct slot *at)
{
    struct mr_read *r = at->read;
    const struct mr_uring_op *op = &at->op;
    r->result = op->result;
    r->stage = op->stage;
    r->have = op->have;
    r->room = op->size;
    if (!r->extent.length)
        r->size = op->size; /* what a device is charged for, if it is to be read once more */
    r->inode = at->part ? r->inode : op->inode;
    r->data = r->buf + at->skip;
    r->len = op->size - at->skip;
    r->end_ns = op->done_ns;
    r->took_ns = op->done_ns - r->asked_ns;
    r->overdue = 0;
    give_part_back(at);
    if (!r->result && !r->extent.length && r->len != op->known)
        mr_blob_table_know(s->base.o.blobs, r->extent.blob, r->len);
    return r;
}

static int wait(struct mr_source *base, uint64_t until_ns, struct mr_read **done, unsigned max)
{
    struct uring_source *s = (struct uring_source *)base;
    max = max < base->o.depth ? max : base->o.depth;
    int n = until_ns == UINT64_MAX ? mr_uring_reader_wait(s->reader, s->done, max)
                                   : mr_uring_reader_wait_until(s->reader, s->done, max, until_ns);
    for (int i = 0; i < n; i++)
        done[i] = complete(s, (struct slot *)s->done[i]);
    return n;
}

static void close_source(struct mr_source *base)
{
    struct uring_source *s = (struct uring_source *)base;
    mr_uring_reader_close(s->reader);
    for (unsigned i = 0; s->slot && s->reader && i < base->o.depth; i++)
        mr_uring_op_drop(&s->slot[i].op); /* still there only if the ring failed */
    mr_open_blobs_fini(&s->open);
    free(s->slot);
    free(s->done);
    free(s);
}

int mr_uring_source_open(struct mr_store *store, const struct mr_source_opts *o,
                         struct mr_source **out, struct mr_error *err)
{
    static const struct mr_source_ops ops = {prepare, drop, start, submit, wait, close_source};
    struct uring_source *s = calloc(1, sizeof *s);
    (void)store;
    if (!s)
        return mr_fail(err, -ENOMEM, "no memory for a worker");
    s->base.ops = &ops;
    s->base.o = *o;
    s->slot = calloc(o->depth, sizeof *s->slot);
    s->done = calloc(o->depth, sizeof *s->done);
    int no_memory = mr_open_blobs_init(&s->open, o->depth) || !s->slot || !s->done;
    int r = !no_memory ? mr_uring_reader_open(o->depth, o->direct, &s->reader, err)
                       : mr_fail(err, -ENOMEM, "no memory for a worker");
    if (r) {
        close_source(&s->base);
        return r;
    }
    mr_uring_reader_let_block(s->reader, o->depth);
    *out = &s->base;
    return 0;
}
