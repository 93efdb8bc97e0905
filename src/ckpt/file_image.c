/* file_image.c - see file_image.h.  Computed once, at registration; constant from then on, so
 * that threads share it without a lock. */
#include "file_image.h"

#include "crc32c.h"
#include "whole_file.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>

/* Where a piece that begins at `at` and has `left` bytes to go must end. */
static size_t piece_len(uint64_t at, uint64_t left)
{
    uint64_t len = MR_CHUNK_BYTES - at % MR_CHUNK_BYTES;
    if (len > MR_PIECE_BYTES)
        len = MR_PIECE_BYTES;
    return (size_t)(len < left ? len : left);
}

static size_t count_pieces(const struct mr_tensor *t)
{
    size_t n = 0;
    for (uint64_t from = 0; from < t->bytes; n++)
        from += piece_len(t->offset + from, t->bytes - from);
    return n;
}

struct place {
    uint64_t offset;
    uint32_t tensor;
};

static int by_offset(const void *a, const void *b)
{
    const struct place *x = a, *y = b;
    return x->offset < y->offset ? -1 : x->offset > y->offset;
}

static int cut(struct mr_file_image *im, const struct place *order)
{
    size_t n = 0;
    uint64_t end = im->head_bytes;
    for (size_t i = 0; i < im->table->n; i++) {
        const struct mr_tensor *t = &im->table->tensors[order[i].tensor];
        if (t->bytes && t->offset < end)
            return -EBADMSG;
        end = t->bytes ? t->offset + t->bytes : end;
        im->tensor_first[order[i].tensor] = n;
        for (uint64_t from = 0; from < t->bytes;) {
            size_t len = piece_len(t->offset + from, t->bytes - from);
            im->pieces[n++] =
                (struct mr_piece){t->offset + from, from, (uint32_t)len, order[i].tensor};
            from += len;
        }
        im->tensor_end[order[i].tensor] = n;
    }
    size_t p = 0;
    for (size_t c = 0; c < im->n_chunks; c++) {
        im->chunk_first[c] = p;
        while (p < im->n_pieces && mr_piece_chunk(&im->pieces[p]) == c)
            p++;
    }
    im->chunk_first[im->n_chunks] = p;
    return 0;
}

int mr_file_image_init(struct mr_file_image *im, const struct mr_tensor_table *table,
                       uint64_t bytes, size_t head_bytes)
{
    memset(im, 0, sizeof *im);
    im->table = table;
    im->bytes = bytes;
    im->head_bytes = head_bytes;
    im->n_chunks = (size_t)((bytes + MR_CHUNK_BYTES - 1) / MR_CHUNK_BYTES);
    uint64_t room = bytes;
    for (size_t i = 0; i < table->n; i++) {
        const struct mr_tensor *t = &table->tensors[i];
        /* More than there is room for: some overlap, and there is no need to list their pieces. */
        if (t->bytes > room || (t->bytes && t->offset > bytes - t->bytes))
            return -EBADMSG;
        room -= t->bytes;
        im->n_pieces += count_pieces(t);
    }
    size_t n = table->n ? table->n : 1;
    struct place *order = calloc(n, sizeof *order);
    im->pieces = calloc(im->n_pieces + 1, sizeof *im->pieces);
    im->chunk_first = calloc(im->n_chunks + 1, sizeof *im->chunk_first);
    im->tensor_first = calloc(n, sizeof *im->tensor_first);
    im->tensor_end = calloc(n, sizeof *im->tensor_end);
    int r =
        order && im->pieces && im->chunk_first && im->tensor_first && im->tensor_end ? 0 : -ENOMEM;
    if (!r) {
        for (size_t i = 0; i < table->n; i++)
            order[i] = (struct place){table->tensors[i].offset, (uint32_t)i};
        qsort(order, table->n, sizeof *order, by_offset);
        r = cut(im, order);
    }
    if (r)
        mr_file_image_fini(im);
    free(order);
    return r;
}

void mr_file_image_fini(struct mr_file_image *im)
{
    free(im->pieces);
    free(im->chunk_first);
    free(im->tensor_first);
    free(im->tensor_end);
    memset(im, 0, sizeof *im);
}

size_t mr_file_image_chunk_len(const struct mr_file_image *im, size_t c)
{
    uint64_t left = im->bytes - (uint64_t)c * MR_CHUNK_BYTES;
    return left < MR_CHUNK_BYTES ? (size_t)left : MR_CHUNK_BYTES;
}

uint32_t mr_file_image_copy(const struct mr_file_image *im, size_t piece, uint8_t *chunk)
{
    const struct mr_piece *p = &im->pieces[piece];
    const uint8_t *src = im->table->tensors[p->tensor].data;
    return mr_crc32c_copy(0, chunk + p->at % MR_CHUNK_BYTES, src + p->from, p->len);
}

void mr_file_image_fill(const struct mr_file_image *im, size_t c, uint8_t *dst, uint32_t *crcs)
{
    size_t at = 0;
    for (size_t i = im->chunk_first[c]; i < im->chunk_first[c + 1]; i++) {
        size_t begin = im->pieces[i].at % MR_CHUNK_BYTES;
        memset(dst + at, 0, begin - at);
        crcs[i] = mr_file_image_copy(im, i, dst);
        at = begin + im->pieces[i].len;
    }
    /* Direct writes are rounded up; what lies behind the end is cut off later. */
    memset(dst + at, 0, mr_direct_round(mr_file_image_chunk_len(im, c)) - at);
}

uint32_t mr_file_image_crc(const struct mr_file_image *im, size_t t, const uint32_t *crcs)
{
    uint32_t crc = 0;
    for (size_t i = im->tensor_first[t]; i < im->tensor_end[t]; i++)
        crc = mr_crc32c_combine(crc, crcs[i], im->pieces[i].len);
    return crc;
}
