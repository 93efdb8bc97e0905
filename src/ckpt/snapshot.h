/* snapshot.h - copy the registered arrays while training goes on.
 *
 * Weights do not change between two updates.  begin() only says that a copy is wanted; threads make
 * it, piece by piece, with its checksums.  A caller that is about to change a tensor calls
 * before_write, which copies what is left of that tensor, and waits for a piece that another thread
 * is copying, one at most.
 *
 * A shot is one copy: the image of a data file in memory.  There are one or two of them, allocated
 * and touched at opening; one is being copied at a time. */
#ifndef MR_SNAPSHOT_H
#define MR_SNAPSHOT_H

#include "file_image.h"

#define MR_MAX_SHOTS 2

struct mr_snapshot;

/* `n_shots` images of `im` (borrowed) and `n_threads` that copy.  0 or -errno. */
int mr_snapshot_open(const struct mr_file_image *im, unsigned n_shots, unsigned n_threads,
                     struct mr_snapshot **out);
/* Nothing may be under way.  NULL is a no-op. */
void mr_snapshot_close(struct mr_snapshot *s);
/* Bytes that opening takes. */
uint64_t mr_snapshot_memory(const struct mr_file_image *im, unsigned n_shots);

/* Begin to copy into shot i, which nobody uses; finishes the copy before it, if need be. */
void mr_snapshot_begin(struct mr_snapshot *s, unsigned i);
/* Tensor t may change when this returns. */
void mr_snapshot_before_write(struct mr_snapshot *s, size_t t);
/* Everything is copied. */
void mr_snapshot_finish(struct mr_snapshot *s);
/* 1 when everything is copied, without waiting. */
int mr_snapshot_is_done(struct mr_snapshot *s);

/* Chunk c of shot i, waited for; bytes beyond the file's end are zero. */
uint8_t *mr_snapshot_chunk(struct mr_snapshot *s, unsigned i, size_t c);
/* When the last piece of shot i was copied: CLOCK_MONOTONIC ns; as for the crcs. */
uint64_t mr_snapshot_copied_ns(const struct mr_snapshot *s, unsigned i);
/* [n_pieces], valid when every chunk has been waited for. */
const uint32_t *mr_snapshot_crcs(const struct mr_snapshot *s, unsigned i);

#endif
