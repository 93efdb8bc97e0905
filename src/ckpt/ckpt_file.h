/* ckpt_file.h - a checkpoint that exists: what is in it, its bytes, and whether they are right.
 *
 * Every format, whoever wrote it: TensorFlow bundles with slices, strings, several data files and
 * compressed indexes, and every valid safetensors file.
 *
 * Lifetime: open -> (read, stream, verify)* -> close.  One thread at a time.
 * Errors:   -EBADMSG is a wrong checksum or structure, -ENODATA something missing at an end. */
#ifndef MR_CKPT_FILE_H
#define MR_CKPT_FILE_H

#include "ckpt_view.h"

struct mr_ckpt_file;

/* `path` is a head (FILE.index, FILE.safetensors) or a stem.  Reads the head, and checks that the
 * data files are there and large enough. */
int mr_ckpt_file_open(const char *path, struct mr_ckpt_file **out, struct mr_error *err);
/* NULL is a no-op. */
void mr_ckpt_file_close(struct mr_ckpt_file *c);

enum mr_checkpoint_format mr_ckpt_file_format(const struct mr_ckpt_file *c);
/* The stem, with the folder. */
const char *mr_ckpt_file_prefix(const struct mr_ckpt_file *c);
/* All files together. */
uint64_t mr_ckpt_file_bytes(const struct mr_ckpt_file *c);
/* Borrowed; in the order of names (TensorFlow) or of the data (safetensors). */
const struct mr_tensor_table *mr_ckpt_file_tensors(const struct mr_ckpt_file *c);
/* Every tensor has a checksum: always in a bundle, in safetensors if this library wrote it. */
int mr_ckpt_file_has_checksums(const struct mr_ckpt_file *c);
/* File number i of the checkpoint, the one that makes it valid last: its path, NULL after the last.
 * Valid until the next call. */
const char *mr_ckpt_file_path(struct mr_ckpt_file *c, unsigned i);

/* All of tensor number i to `buf`, which has room for its bytes.  Verified. */
int mr_ckpt_file_read(struct mr_ckpt_file *c, size_t i, void *buf, struct mr_error *err);
/* The same in pieces, in order; verified when the last one has been handed over.  What `sink`
 * returns other than 0 ends it. */
typedef int mr_ckpt_sink(void *ctx, const void *bytes, size_t len);
int mr_ckpt_file_stream(struct mr_ckpt_file *c, size_t i, mr_ckpt_sink *sink, void *ctx,
                        struct mr_error *err);

/* Read everything back, in the order of the files.  0, or what is wrong with the first bad tensor,
 * which verdict->where names; *verdict is always written. */
int mr_ckpt_file_verify(struct mr_ckpt_file *c, const struct mr_checkpoint_watch *watch,
                        struct mr_checkpoint_verdict *verdict, struct mr_error *err);

#endif
