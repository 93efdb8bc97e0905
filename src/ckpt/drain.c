/* drain.c - see drain.h.
 *
 * Chunk by chunk: read around the page cache, compute the checksums, write around the page cache,
 * and wait if that was faster than the limit.  The checksums are compared before the copy is
 * published, so damage on the fast tier does not spread.  The copy is published like any checkpoint
 * (tier.c).
 *
 * No lock: one thread uses a drain. */
#include "drain.h"

#include "buffer.h"
#include "ckpt_format.h"
#include "clock.h"
#include "crc32c.h"
#include "device.h"
#include "errtext.h"
#include "file_image.h"
#include "in_file.h"
#include "whole_file.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <unistd.h>

struct mr_drain {
    uint64_t bytes_per_s;
    struct mr_buffer buffer; /* one chunk */
};

/* One copy under way. */
struct copy {
    struct mr_drain *drain;
    struct mr_device *device; /* of the tier that is read */
    struct mr_ckpt_view view;
    struct mr_file_image im;
    struct mr_in_file file;
    uint32_t *crcs;
};

int mr_drain_open(uint64_t bytes_per_s, struct mr_drain **out)
{
    struct mr_drain *d = calloc(1, sizeof *d);
    if (!d)
        return -ENOMEM;
    d->bytes_per_s = bytes_per_s;
    int r = mr_buffer_reserve(&d->buffer, MR_CHUNK_BYTES);
    if (r) {
        mr_drain_close(d);
        return r;
    }
    mr_buffer_prefault(&d->buffer);
    *out = d;
    return 0;
}

void mr_drain_close(struct mr_drain *d)
{
    if (!d)
        return;
    mr_buffer_fini(&d->buffer);
    free(d);
}

void mr_drain_be_modest(void)
{
    /* glibc has no wrapper: IOPRIO_WHO_PROCESS, this thread, best effort, lowest level. */
    syscall(SYS_ioprio_set, 1, 0, 2 << 13 | 7);
    setpriority(PRIO_PROCESS, (id_t)syscall(SYS_gettid), 10);
}

static int differs(const struct copy *c, const char *what, struct mr_error *err)
{
    return mr_fail(err, -EBADMSG, "%s: %s is damaged on the fast tier; it is not drained",
                   c->view.path, what);
}

/* Read chunk k; checksum the header, if it is there, and the pieces. */
static int take_chunk(struct copy *c, size_t k, uint32_t *head_crc)
{
    uint8_t *buf = c->drain->buffer.data;
    size_t len = mr_file_image_chunk_len(&c->im, k), at = k * MR_CHUNK_BYTES;
    int r = mr_in_read(&c->file, buf, len, at);
    if (r)
        return r;
    if (at < c->im.head_bytes) {
        size_t n = c->im.head_bytes - at;
        *head_crc = mr_crc32c(*head_crc, buf, n < len ? n : len);
    }
    for (size_t i = c->im.chunk_first[k]; i < c->im.chunk_first[k + 1]; i++) {
        const struct mr_piece *p = &c->im.pieces[i];
        c->crcs[i] = mr_crc32c(0, buf + (p->at - at), p->len);
    }
    memset(buf + len, 0, mr_direct_round(len) - len);
    return 0;
}

static int copy_data(void *ctx, struct mr_out_file *f, struct mr_error *err)
{
    struct copy *c = ctx;
    uint64_t rate = c->drain->bytes_per_s, begin = mr_clock_ns();
    uint32_t head_crc = 0;
    for (size_t k = 0; k < c->im.n_chunks; k++) {
        uint64_t at = (uint64_t)k * MR_CHUNK_BYTES;
        size_t len = mr_file_image_chunk_len(&c->im, k);
        int r = take_chunk(c, k, &head_crc);
        if (!r)
            r = mr_out_write(f, c->drain->buffer.data, mr_direct_round(len), at);
        if (r)
            return r;
        if (rate)
            mr_device_wait_until(begin + (uint64_t)((double)(at + len) / (double)rate * 1e9));
    }
    if (c->im.head_bytes && head_crc != c->view.head_crc)
        return differs(c, "the header", err);
    for (size_t i = 0; i < c->view.bundle.tensors.n; i++) {
        const struct mr_tensor *t = &c->view.bundle.tensors.tensors[i];
        if (t->has_crc && t->crc != mr_file_image_crc(&c->im, i, c->crcs))
            return differs(c, t->name, err);
    }
    return 0;
}

static int copy_small(void *ctx, struct mr_bytes *side, struct mr_bytes *head, struct mr_error *err)
{
    struct copy *c = ctx;
    uint8_t *bytes;
    size_t len;
    char file[MR_CKPT_MAX_PATH];
    const struct mr_ckpt_format *row = c->view.row;
    struct mr_error why = {0};
    int r = row->side_ending ? row->read_side(&c->view, c->device, side, &why) : 0;
    if (r)
        return r == -EBADMSG ? differs(c, row->side_ending, err) : mr_fail(err, r, "%s", why.text);
    mr_ckpt_view_head(&c->view, file);
    r = mr_in_small_file(c->view.dir_fd, mr_ckpt_view_name(&c->view, file), MR_BUNDLE_MAX_INDEX,
                         c->device, &bytes, &len);
    if (r)
        return mr_fail(err, r, "%s: %s", file, mr_errno_text(r));
    if (mr_crc32c(0, bytes, len) != c->view.head_crc)
        r = mr_fail(err, -ESTALE, "%s: was replaced while it was being copied", file);
    mr_bytes_add(head, bytes, len);
    free(bytes);
    return r; /* side->error and head->error are the caller's to look at */
}

/* The data file of the view, cut into chunks. */
static int open_data(struct copy *c, struct mr_error *err)
{
    char file[MR_CKPT_MAX_PATH];
    mr_ckpt_view_file(&c->view, c->view.bundle.n_shards - 1, file);
    int r = mr_in_open(c->view.dir_fd, mr_ckpt_view_name(&c->view, file), c->device, &c->file);
    if (!r)
        r = mr_file_image_init(&c->im, &c->view.bundle.tensors, c->file.bytes, c->view.head_bytes);
    if (!r) {
        c->crcs = calloc(c->im.n_pieces + 1, sizeof *c->crcs);
        r = c->crcs ? 0 : -ENOMEM;
    }
    return r ? mr_fail(err, r, "%s: %s", file, mr_errno_text(r)) : 0;
}

static int open_view(struct copy *c, const struct mr_tier *from, const struct mr_ckpt_item *item,
                     struct mr_ckpt_mark *mark, struct mr_error *err)
{
    struct mr_ckpt_dir dir = mr_tier_dir(from);
    int r = mr_ckpt_view_open_flat(&dir, item, c->device, &c->view, err);
    if (r)
        return r;
    int ours = mr_ckpt_mark_of(&c->view, item->step, c->device, mark, err);
    if (ours > 0)
        return 0;
    if (!ours)
        ours = mr_fail(err, -ENOTSUP, "%s: not written by a run of millrace; copy it by hand",
                       c->view.path);
    mr_ckpt_view_fini(&c->view);
    return ours;
}

/* The checkpoint of `item`'s step that has `generation`, under either stem.  -ESTALE: there is
 * another one. */
static int open_copy(struct copy *c, const struct mr_tier *from, struct mr_ckpt_item *item,
                     uint64_t generation, struct mr_error *err)
{
    struct mr_error first = {0};
    c->device = from->o.device;
    for (item->resaved = 0; item->resaved < 2; item->resaved++) {
        struct mr_error why = {0};
        int e = open_view(c, from, item, &item->mark, &why);
        if (!e && item->mark.generation == generation)
            return open_data(c, err);
        if (!e) {
            mr_ckpt_view_fini(&c->view);
            e = mr_fail(&why, -ESTALE, "%s: was replaced", c->view.path);
        }
        if (!first.code || first.code == -ENOENT)
            first = e == -ENOENT && first.code ? first : why;
    }
    return mr_fail(err, first.code, "%s", first.text);
}

static void close_copy(struct copy *c)
{
    free(c->crcs);
    mr_file_image_fini(&c->im);
    mr_in_close(&c->file);
    mr_ckpt_view_fini(&c->view);
}

int mr_drain_run(struct mr_drain *d, const struct mr_tier *from, struct mr_tier *to, uint64_t step,
                 uint64_t generation, uint64_t *bytes, struct mr_error *err)
{
    struct mr_ckpt_item item = {.step = step, .format = from->o.format};
    struct copy c = {.drain = d, .file.fd = -1};
    mr_bundle_init(&c.view.bundle);
    snprintf(item.prefix, sizeof item.prefix, "%s", from->o.prefix);
    int r = open_copy(&c, from, &item, generation, err);
    if (!r) {
        struct mr_tier_source src = {.data_bytes = c.file.bytes,
                                     .shard = c.view.bundle.n_shards - 1,
                                     .n_shards = c.view.bundle.n_shards,
                                     .write_data = copy_data,
                                     .write_small = copy_small,
                                     .ctx = &c};
        r = mr_tier_publish(to, step, &item.mark, &src, bytes, err);
    }
    close_copy(&c);
    return r;
}
