/* file_image.h - how tensors lie in a data file, cut to size for copying and for I/O.
 *
 *   file    |head|..tensor a.......|..b..|......c.......................|
 *   chunks  |0            |1             |2             |3              |   4 MiB: one write
 *   pieces  |    |        |       |  |   |              |        |      |   at most 1 MiB: one copy
 *
 * A piece belongs to one tensor and one chunk.  A chunk is ready to be written when its pieces are
 * copied; a tensor may change when its pieces are.  Pieces have crcs of their own, which combine to
 * the tensor's, so any thread may copy any piece. */
#ifndef MR_FILE_IMAGE_H
#define MR_FILE_IMAGE_H

#include "tensor_table.h"

#include <stddef.h>
#include <stdint.h>

#define MR_CHUNK_BYTES ((size_t)4 << 20)
#define MR_PIECE_BYTES ((size_t)1 << 20)

struct mr_piece {
    uint64_t at;   /* in the file */
    uint64_t from; /* in the tensor */
    uint32_t len;
    uint32_t tensor;
};

struct mr_file_image {
    const struct mr_tensor_table *table; /* borrowed */
    uint64_t bytes;                      /* of the file */
    size_t head_bytes;                   /* before the first tensor: a header that comes last */
    size_t n_chunks, n_pieces;
    struct mr_piece *pieces; /* by their place in the file */
    size_t *chunk_first;  /* [n_chunks + 1]: pieces of chunk c are first[c] .. first[c + 1] - 1 */
    size_t *tensor_first; /* [table->n]: and of tensor t, */
    size_t *tensor_end;   /* [table->n] */
};

/* Cut a file of `bytes` into chunks and pieces.  The tensors have their offsets in the file.  0,
 * -ENOMEM, or -EBADMSG when they overlap or are not between head and end. */
int mr_file_image_init(struct mr_file_image *im, const struct mr_tensor_table *table,
                       uint64_t bytes, size_t head_bytes);
void mr_file_image_fini(struct mr_file_image *im);

/* Length of chunk c in the file. */
size_t mr_file_image_chunk_len(const struct mr_file_image *im, size_t c);
/* The piece's chunk. */
static inline size_t mr_piece_chunk(const struct mr_piece *p)
{
    return p->at / MR_CHUNK_BYTES;
}
/* Copy one piece to its place in `chunk`, the chunk's memory: its crc. */
uint32_t mr_file_image_copy(const struct mr_file_image *im, size_t piece, uint8_t *chunk);
/* Chunk c as it is in the file, without the head, zeros between tensors included; `crcs`
 * [n_pieces] gets those of its pieces. `dst` has room for MR_CHUNK_BYTES. */
void mr_file_image_fill(const struct mr_file_image *im, size_t c, uint8_t *dst, uint32_t *crcs);
/* Tensor t's crc from those of its pieces. */
uint32_t mr_file_image_crc(const struct mr_file_image *im, size_t t, const uint32_t *crcs);

#endif
