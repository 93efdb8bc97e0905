/* new_file.h - write a file under a name that somebody else may have prepared.
 *
 * Lifetime: begin -> write to fd -> commit or abort.
 * Errors:   0 (or a descriptor) is success, -errno is failure.
 *
 * A file is written under a random name in the same folder and renamed, so a reader sees the
 * earlier file or the new one, never a part.  What stands at the name decides what happens to it:
 *
 *   nothing              a new file with the permissions that the umask leaves
 *   a regular file       replaced; its permissions stay.  One that may not be written is refused
 *   a link to a file     the link is replaced; what it points to is never touched
 *   a link to nothing    refused (-ENOENT)
 *   device, pipe, link to one, /dev/stdout, /dev/fd/N     written to directly; no block device
 *   a file that is a mount point (a container's)          truncated and written to directly */
#ifndef MR_NEW_FILE_H
#define MR_NEW_FILE_H

#include <stddef.h>

struct mr_new_file {
    int fd;             /* write here */
    int folder;         /* -1: written to directly */
    char name[256];     /* in the folder, when it is whole */
    char temporary[40]; /* and until then */
};

/* Could this file be written?  Nothing is left behind and nothing is changed. */
int mr_new_file_check(const char *path);
int mr_new_file_begin(const char *path, struct mr_new_file *out);
/* Have it on stable storage, under its name.  After a failure the earlier file is still there. */
int mr_new_file_commit(struct mr_new_file *f);
/* Remove what was written.  After commit, or a begin that failed, it does nothing. */
void mr_new_file_abort(struct mr_new_file *f);

/* All at once. */
int mr_new_file_put(const char *path, const void *bytes, size_t n);
/* A descriptor of a new, empty file that has its name at once: for what is read while it grows, or
 * after a crash. */
int mr_new_file_stream(const char *path);

#endif
