/* saver.c - write a data file at depth: members of a team take the next chunk and write it.
 *
 *   from a shot    a member waits for its chunk to be copied and writes it from where it is
 *   from arrays    a member copies the chunk, with its checksums, into a buffer of its own and
 *                  writes it from there
 *
 * So copying and writing overlap in both cases.  A header needs the checksums of all tensors: the
 * chunks that hold it come last.  The last of those may begin a tensor, so its pieces come first.
 *
 * Lock: none; chunks are handed out by a counter, and each belongs to one member. */
#include "saver.h"

#include "buffer.h"
#include "ckpt_format.h"
#include "errtext.h"
#include "thread_team.h"
#include "whole_file.h"

#include <errno.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <string.h>

struct mr_saver {
    struct mr_ckpt_plan *plan;
    const struct mr_file_image *im;
    struct mr_snapshot *snap; /* NULL: from the arrays */
    struct mr_team *team;
    struct mr_buffer buffers; /* from the arrays: one chunk a member */
    uint32_t *crcs;           /* from the arrays */

    /* One publish: */
    unsigned shot;
    struct mr_out_file *file;
    atomic_size_t next;
    atomic_int code;
};

int mr_saver_open(struct mr_ckpt_plan *plan, const struct mr_file_image *im,
                  struct mr_snapshot *snap, unsigned depth, struct mr_saver **out)
{
    struct mr_saver *s = calloc(1, sizeof *s);
    if (!s)
        return -ENOMEM;
    s->plan = plan;
    s->im = im;
    s->snap = snap;
    int r = 0;
    if (!snap) {
        s->crcs = calloc(im->n_pieces + 1, sizeof *s->crcs);
        r = s->crcs ? mr_buffer_reserve(&s->buffers, depth * MR_CHUNK_BYTES) : -ENOMEM;
        if (!r)
            mr_buffer_prefault(&s->buffers);
    }
    if (!r)
        r = mr_team_open(depth, &s->team);
    if (r) {
        mr_saver_close(s);
        return r;
    }
    *out = s;
    return 0;
}

void mr_saver_close(struct mr_saver *s)
{
    if (!s)
        return;
    mr_team_close(s->team);
    mr_buffer_fini(&s->buffers);
    free(s->crcs);
    free(s);
}

uint64_t mr_saver_memory(const struct mr_file_image *im, int snapshots, unsigned depth)
{
    return snapshots ? 0 : depth * MR_CHUNK_BYTES + im->n_pieces * sizeof(uint32_t);
}

static size_t n_head_chunks(const struct mr_file_image *im)
{
    return (im->head_bytes + MR_CHUNK_BYTES - 1) / MR_CHUNK_BYTES;
}

/* Chunk c with all its tensors' bytes. */
static uint8_t *get_chunk(struct mr_saver *s, size_t c, unsigned rank)
{
    if (s->snap)
        return mr_snapshot_chunk(s->snap, s->shot, c);
    uint8_t *buf = s->buffers.data + rank * MR_CHUNK_BYTES;
    mr_file_image_fill(s->im, c, buf, s->crcs);
    return buf;
}

static int put_chunk(struct mr_saver *s, size_t c, const uint8_t *bytes)
{
    return mr_out_write(s->file, bytes, mr_direct_round(mr_file_image_chunk_len(s->im, c)),
                        (uint64_t)c * MR_CHUNK_BYTES);
}

static void write_chunks(void *ctx, unsigned rank, unsigned n)
{
    struct mr_saver *s = ctx;
    size_t c;
    (void)n;
    while (!atomic_load(&s->code) && (c = atomic_fetch_add(&s->next, 1)) < s->im->n_chunks) {
        int none = 0, r = put_chunk(s, c, get_chunk(s, c, rank));
        if (r)
            atomic_compare_exchange_strong(&s->code, &none, r);
    }
}

static void set_crcs(struct mr_saver *s)
{
    const uint32_t *crcs = s->snap ? mr_snapshot_crcs(s->snap, s->shot) : s->crcs;
    struct mr_tensor_table *t = &s->plan->bundle.tensors;
    for (size_t i = 0; i < t->n; i++)
        t->tensors[i].crc = mr_file_image_crc(s->im, i, crcs);
}

/* The chunks with the header, last one first; everything else is written. */
static int write_head(struct mr_saver *s, struct mr_error *err)
{
    struct mr_bytes head;
    size_t c = n_head_chunks(s->im);
    uint8_t *bytes = get_chunk(s, c - 1, 0);
    mr_bytes_init(&head);
    set_crcs(s);
    int r = s->plan->row->write_head(s->plan, &head, err);
    if (!r)
        r = head.error;
    if (!r && head.len != s->im->head_bytes)
        r = mr_fail(err, -EINVAL, "the header has %zu bytes and not %zu", head.len,
                    s->im->head_bytes);
    while (!r && c-- > 0) {
        size_t at = c * MR_CHUNK_BYTES, n = head.len - at;
        if (s->snap)
            bytes = mr_snapshot_chunk(s->snap, s->shot, c);
        memcpy(bytes, head.data + at, n < MR_CHUNK_BYTES ? n : MR_CHUNK_BYTES);
        r = put_chunk(s, c, bytes);
    }
    mr_bytes_fini(&head);
    return r;
}

static int write_data(void *ctx, struct mr_out_file *f, struct mr_error *err)
{
    struct mr_saver *s = ctx;
    s->file = f;
    atomic_store(&s->next, n_head_chunks(s->im));
    atomic_store(&s->code, 0);
    mr_team_run(s->team, write_chunks, s);
    int r = atomic_load(&s->code);
    if (r)
        return r;
    if (s->im->head_bytes)
        return write_head(s, err);
    set_crcs(s);
    return 0;
}

static int write_small(void *ctx, struct mr_bytes *side, struct mr_bytes *head,
                       struct mr_error *err)
{
    struct mr_saver *s = ctx;
    mr_bytes_add(side, s->plan->side.data, s->plan->side.len);
    return s->plan->row->write_head(s->plan, head, err);
}

void mr_saver_source(struct mr_saver *s, unsigned i, struct mr_tier_source *out)
{
    s->shot = i;
    *out = (struct mr_tier_source){.data_bytes = s->plan->data_bytes,
                                   .n_shards = 1,
                                   .write_data = write_data,
                                   .write_small = write_small,
                                   .ctx = s};
}
