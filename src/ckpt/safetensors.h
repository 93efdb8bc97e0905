/* safetensors.h - the header of a .safetensors file.
 *
 * This is about the header and the places of tensors; files are read and written elsewhere.
 * docs/checkpoint-format.md says what this library adds to `__metadata__`. */
#ifndef MR_SAFETENSORS_H
#define MR_SAFETENSORS_H

#include "bytes.h"
#include "tensor_table.h"

#define MR_SAFETENSORS_MAX_HEADER 100000000u
#define MR_SAFETENSORS_ALIGN      4096 /* where we let the data begin */

struct mr_safetensors {
    struct mr_tensor_table
        tensors;           /* in the order of the file; offset: from the file's beginning */
    uint64_t header_bytes; /* 8 + N: where the data begins */
    int sealed;            /* written by this library: every byte is under a crc */
};

/* How many bytes the header has, 8 + N, from the first 8 bytes of a file of `file_bytes`; with the
 * rules about them checked.  0, -ENODATA (too short), -EBADMSG. */
int mr_safetensors_header_bytes(const char *name, const uint8_t first[8], uint64_t file_bytes,
                                uint64_t *out, struct mr_error *err);
/* Read a header that is in memory, all 8 + N bytes.  *out is written on success only and then has
 * to be finished.  -EBADMSG, -ENOTSUP (more dimensions than we take), -ENOMEM. */
int mr_safetensors_parse(const char *name, const uint8_t *header, size_t len, uint64_t file_bytes,
                         struct mr_safetensors *out, struct mr_error *err);
void mr_safetensors_fini(struct mr_safetensors *s);

/* Sort the table into the order of the format and give every tensor its offset in the file.  Types
 * that safetensors lacks become bytes, with a note for our own reader.  0, -EINVAL (a name that is
 * not UTF-8, or reserved), -EOVERFLOW, -EFBIG (the header is too large), -ENOMEM. */
int mr_safetensors_layout(struct mr_tensor_table *t, uint64_t *header_bytes, uint64_t *file_bytes,
                          struct mr_error *err);
/* Append the header, padded to its size, of a table that has been laid out and has all its crcs. */
int mr_safetensors_write_header(const struct mr_tensor_table *t, struct mr_bytes *out,
                                struct mr_error *err);

#endif
