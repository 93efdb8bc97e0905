/* scratch_dir.h - a folder for files that exist only while something is measured.
 *
 * It is called .millrace-scratch-HOST-BOOT-XXXXXX and goes with everything in it when it is closed.
 * Folders that killed processes of this host left behind are removed: their locks are free. */
#ifndef MR_SCRATCH_DIR_H
#define MR_SCRATCH_DIR_H

#include <millrace/api.h>

struct mr_scratch;

/* Make the folder in `dir`, which must be an existing folder that we may write to. */
int mr_scratch_open(const char *dir, struct mr_scratch **out, struct mr_error *err);
const char *mr_scratch_path(const struct mr_scratch *s);
int mr_scratch_fd(const struct mr_scratch *s);
/* Leftovers that were removed when it was opened. */
unsigned mr_scratch_n_stale(const struct mr_scratch *s);
/* A file without a name, which is gone as soon as its descriptor is closed, whatever happens.
 * Opened for reading and writing; the descriptor or -errno. */
int mr_scratch_unnamed(struct mr_scratch *s, struct mr_error *err);
/* Remove all that is in it. */
int mr_scratch_clear(struct mr_scratch *s);
void mr_scratch_close(struct mr_scratch *s);

/* Bytes that this process may still write into the file system of an open file or folder;
 * UINT64_MAX when it does not say. */
uint64_t mr_free_bytes(int fd);

#endif
